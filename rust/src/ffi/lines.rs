//! The C functions that look into a block of lines without a buffer: the kinds of its lines, and where they begin.

use std::slice;

use super::{bytes, bytes_mut, guard, place, CW_ERROR_ARGUMENT, CW_NOTHING};
use crate::kinds::peek::peek_lines;
use crate::kinds::scan::KindSpans;
use crate::lines::frame;
use crate::simd::Level;

/// The most different kinds that one call of [`cw_peek_lines`] can find.
const MAX_KINDS: usize = 64;

/// The kind of a line: the places in the data of its three tags, such as `stream_event`, (absent), `text_delta`. A tag is the content
/// of a JSON string, without its quotes, and still escaped.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwKind {
    /// Where each tag begins in the data.
    pub start: [u64; 3],
    /// The length of each tag in bytes; `UINT64_MAX` for an absent tag.
    pub bytes: [u64; 3],
}

/// The counts of one [`cw_peek_lines`] call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwPeeked {
    /// Lines whose kind was written to `ids`.
    pub lines: u64,
    /// Different kinds of these lines, written to `kinds`.
    pub kinds: u64,
    /// Where in the data the next call begins.
    pub next: u64,
}

/// Finds the kinds of the lines in the `len` bytes at `data`, from byte `start` on.
///
/// It writes one byte per line to `ids`: the index of the line's kind in `kinds`. The call stops when `ids` or `kinds` is
/// full; the caller repeats it until `next` is `len`. With `plain` not 0 it uses no vector instructions, which tests compare.
///
/// # Safety
///
/// `data` is null with `len` 0, or points to `len` readable bytes that no thread writes during the call. `ids` is null or has
/// room for `most_lines` bytes, `kinds` is null or has room for `most_kinds` structs, and `out` is null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_peek_lines(
    data: *const u8,
    len: u64,
    start: u64,
    plain: u32,
    ids: *mut u8,
    most_lines: u64,
    kinds: *mut CwKind,
    most_kinds: u64,
    out: *mut CwPeeked,
) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees `len` readable bytes at `data`.
        let data = unsafe { bytes(data, len) }?;
        let start = usize::try_from(start).map_err(|_| CW_ERROR_ARGUMENT)?;
        let rest = data.get(start..).ok_or(CW_ERROR_ARGUMENT)?;
        // SAFETY: the caller guarantees `most_lines` writable bytes at `ids`.
        let ids = unsafe { bytes_mut(ids, most_lines) }?;
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        if kinds.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let mut found = [KindSpans::default(); MAX_KINDS];
        let most_kinds = usize::try_from(most_kinds).map_or(MAX_KINDS, |most| most.min(MAX_KINDS));
        let level = if plain == 0 {
            Level::Fast
        } else {
            Level::Plain
        };
        let peeked = peek_lines(rest, level, ids, &mut found[..most_kinds]);
        for (index, kind) in found[..peeked.kinds].iter().enumerate() {
            let tags = [kind.name, kind.subtype, kind.detail];
            let kind = CwKind {
                start: tags.map(|tag| tag.map_or(0, |tag| (start + tag.start) as u64)),
                bytes: tags.map(|tag| tag.map_or(u64::MAX, |tag| tag.len as u64)),
            };
            // SAFETY: `kinds` is not null, `index` is below `most_kinds`, and the caller guarantees room for that many.
            unsafe { kinds.add(index).write(kind) };
        }
        let peeked = CwPeeked {
            lines: peeked.lines as u64,
            kinds: peeked.kinds as u64,
            next: (start + peeked.bytes) as u64,
        };
        out.write(peeked);
        Ok(CW_NOTHING)
    })
}

/// Writes to `starts` the offsets at which the first `count` lines of the `len` bytes at `data` begin. Returns `CW_ERROR_ARGUMENT`
/// if there are fewer lines.
///
/// # Safety
///
/// `data` is null with `len` 0, or points to `len` readable bytes that no thread writes during the call. `starts` is null or
/// has room for `count` numbers.
#[no_mangle]
pub unsafe extern "C" fn cw_line_starts(
    data: *const u8,
    len: u64,
    starts: *mut u64,
    count: u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees `len` readable bytes at `data`.
        let data = unsafe { bytes(data, len) }?;
        if starts.is_null() || !starts.is_aligned() || count > len {
            return Err(CW_ERROR_ARGUMENT);
        }
        // SAFETY: `starts` is not null and is aligned, and the caller guarantees room for `count` numbers. `count` is at most
        // `len`, the length of a real slice, so its 8 bytes per number do not overflow a pointer of 64 bits.
        let starts = unsafe {
            slice::from_raw_parts_mut(
                starts,
                usize::try_from(count).map_err(|_| CW_ERROR_ARGUMENT)?,
            )
        };
        if frame::line_starts(data, starts) {
            Ok(CW_NOTHING)
        } else {
            Err(CW_ERROR_ARGUMENT)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn line_starts_are_written_or_refused() {
        let data = b"{}\n{}\n";
        let mut starts = [7_u64; 2];
        let written = starts.as_mut_ptr();
        // SAFETY: each pointer is null, or points to live memory of at least the given length.
        unsafe {
            assert_eq!(cw_line_starts(data.as_ptr(), 6, written, 2), CW_NOTHING);
            assert_eq!(
                cw_line_starts(data.as_ptr(), 3, written, 2),
                CW_ERROR_ARGUMENT
            );
            assert_eq!(
                cw_line_starts(data.as_ptr(), 6, ptr::null_mut(), 2),
                CW_ERROR_ARGUMENT
            );
            assert_eq!(
                cw_line_starts(data.as_ptr(), 6, written, u64::MAX),
                CW_ERROR_ARGUMENT
            );
            assert_eq!(
                cw_line_starts(ptr::null(), 6, written, 2),
                CW_ERROR_ARGUMENT
            );
        }
        assert_eq!(starts, [0, 3]);
    }
}
