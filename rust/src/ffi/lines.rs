//! The C function that finds the kinds of the lines in a block.

use super::{bytes, bytes_mut, guard, level, place, CW_ERROR_ARGUMENT, CW_NOTHING};
use crate::kinds::peek::peek_lines;
use crate::kinds::scan::KindSpans;

/// The maximum number of different kinds that one [`cw_peek_lines`] call can find.
const MAX_KINDS: usize = 64;

/// The kind of a line: where its three tags are in the data, such as `stream_event`, (absent), `text_delta`. A tag is the content of a JSON
/// string, without its quotes, and with its escapes.
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
    /// The number of lines whose kind was written to `ids`.
    pub lines: u64,
    /// The number of different kinds that were written to `kinds`.
    pub kinds: u64,
    /// Where in the data the next call begins.
    pub next: u64,
}

/// Finds the kinds of the lines in the `len` bytes at `data`, starting at byte `start`.
///
/// Writes one byte per line to `ids`: the index of the line's kind in `kinds`. Stops when `ids` or `kinds` is full; the caller repeats the
/// call until `next` is `len`. If `plain` is not 0, does not use vector instructions; tests compare the results.
///
/// # Safety
///
/// `data` must be null with `len` 0, or point to `len` readable bytes that no thread writes during the call. `ids` must be null or have
/// room for `most_lines` bytes, `kinds` must be null or have room for `most_kinds` structs, and `out` must be null or writable.
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
        let peeked = peek_lines(rest, level(plain != 0), ids, &mut found[..most_kinds]);
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
