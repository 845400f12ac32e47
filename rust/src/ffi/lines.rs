//! Blocks of lines without a buffer: where lines begin, and of what kinds they are.

use std::slice;

use super::{bytes, bytes_mut, guard, place, CW_ERROR_ARGUMENT, CW_NOTHING};
use crate::kinds::peek::peek_lines;
use crate::kinds::scan::KindSpans;
use crate::lines::frame;
use crate::simd::Level;

/// Kinds that one call of [`cw_peek_lines`] tells apart, at most.
const MAX_KINDS: usize = 64;

/// The kind of a line: three tags, each a string within the data, still escaped. `bytes` is `UINT64_MAX` for one that is
/// absent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwKind {
    /// Where each begins in the data.
    pub start: [u64; 3],
    /// Its bytes.
    pub bytes: [u64; 3],
}

/// What a look at the kinds of lines came to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwPeeked {
    /// Lines that were looked at.
    pub lines: u64,
    /// Kinds that they are of.
    pub kinds: u64,
    /// Where in the data the next call begins.
    pub next: u64,
}

/// Finds the kinds of the lines of `len` bytes at `data`, from byte `start` of it on: `ids` gets one byte for each line, which
/// is the index of its kind in `kinds`. Stops when either is full; the caller repeats it until `next` is `len`. With
/// `plain` not 0, by the version that is only there to be compared with. See `peek`.
///
/// # Safety
///
/// `data` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them during the call. `ids` is null
/// or `most_lines` bytes may be written there, `kinds` is null or `most_kinds` structs may be, `out` is null or may be
/// written.
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
        // SAFETY: the caller promises it.
        let data = unsafe { bytes(data, len) }?;
        let start = usize::try_from(start).map_err(|_| CW_ERROR_ARGUMENT)?;
        let rest = data.get(start..).ok_or(CW_ERROR_ARGUMENT)?;
        // SAFETY: the caller promises it.
        let ids = unsafe { bytes_mut(ids, most_lines) }?;
        // SAFETY: the caller promises it.
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
            // SAFETY: not null, and the caller promises that so many may be written.
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

/// Writes where the first `count` lines of `len` bytes at `data` begin. `CW_ERROR_ARGUMENT` if they are fewer.
///
/// # Safety
///
/// `data` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them during the call.
/// `starts` is null or `count` numbers may be written there.
#[no_mangle]
pub unsafe extern "C" fn cw_line_starts(
    data: *const u8,
    len: u64,
    starts: *mut u64,
    count: u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let data = unsafe { bytes(data, len) }?;
        if starts.is_null() || !starts.is_aligned() || count > len {
            return Err(CW_ERROR_ARGUMENT);
        }
        // SAFETY: not null, aligned, and the caller promises that so many may be written; `count` is at most `len`,
        // which is the length of a slice, and eight times that is far from wrapping around on 64 bits.
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
        // SAFETY: the pointers are to live memory of that length, or null.
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
