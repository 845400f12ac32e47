//! The functions that split a block of lines for `LineSplitter`.

use super::api::{api, Pointer};
use super::feed::is_blank;
use super::object::{bytes, Object};
use super::{body, list, with_bytes};

/// `lines_with_ends(block)`: returns the lines of a block, each with its LF.
pub unsafe extern "C" fn lines_with_ends(_: Pointer, block: Pointer) -> Pointer {
    // SAFETY: CPython calls this with a live argument.
    body(|| unsafe { with_bytes(block, |data| split(data, Some))? })
}

/// `bare_lines(block)`: returns the lines of a block that are not blank, each without its LF and one CR before the LF.
pub unsafe extern "C" fn bare_lines(_: Pointer, block: Pointer) -> Pointer {
    // SAFETY: CPython calls this with a live argument.
    body(|| unsafe { with_bytes(block, |data| split(data, bare))? })
}

/// Returns a line without its LF and without a CR before the LF; `None` if the line is blank.
fn bare(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    (!is_blank(line)).then_some(line)
}

/// Returns a list with `part(line)` for each line of `data`, without the lines for which `part` returns `None`. `part` gets each line with
/// its LF. If memory runs out, raises `MemoryError` and returns `None`.
fn split<'a>(data: &'a [u8], part: impl Fn(&'a [u8]) -> Option<&'a [u8]>) -> Option<Object> {
    let mut lines = Vec::new();
    let mut add = |line| {
        if let Some(part) = part(line) {
            lines.try_reserve(1).ok()?;
            lines.push(bytes(part)?);
        }
        Some(())
    };
    let mut start = 0;
    let result = memchr::memchr_iter(b'\n', data)
        .try_for_each(|end| {
            add(&data[start..=end])?;
            start = end + 1;
            Some(())
        })
        .and_then(|()| {
            if start < data.len() {
                add(&data[start..])
            } else {
                Some(())
            }
        })
        .and_then(|()| list(lines));
    if result.is_none() {
        // SAFETY: see `api`.
        unsafe { (api().PyErr_NoMemory)() };
    }
    result
}
