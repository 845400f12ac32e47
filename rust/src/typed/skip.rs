//! Skips JSON values and checks that they are valid.
//!
//! The basic idea is simple: to find the tag in `{"input":{"a":[1,2]},"type":"tool_use"}`, the reader walks past the value of `input` with
//! [`skip`] without making an object of it.

use super::number::number;
use super::read::{white, MAX_DEPTH};
use super::text::unescape;
use crate::simd::{begins, string_end};

/// Returns the index after the value at `at`; `None` if the value is not valid JSON, or is nested deeper than [`MAX_DEPTH`]. `depth` is the
/// number of objects and arrays that contain the value.
pub fn skip(data: &[u8], at: usize, depth: usize, scratch: &mut Vec<u8>) -> Option<usize> {
    match *data.get(at)? {
        b'"' => skip_string(data, at + 1, scratch),
        b'{' => skip_items(data, at, depth, b'}', scratch),
        b'[' => skip_items(data, at, depth, b']', scratch),
        b't' => begins(data, at, b"true").then_some(at + 4),
        b'f' => begins(data, at, b"false").then_some(at + 5),
        b'n' => begins(data, at, b"null").then_some(at + 4),
        _ => number(data, at).map(|(_, end)| end),
    }
}

/// Returns the index after the closing quote of the string whose contents begin at `start`; `None` if the string is invalid.
fn skip_string(data: &[u8], start: usize, scratch: &mut Vec<u8>) -> Option<usize> {
    let (end, ascii) = string_end(data, start);
    let (text, end, ascii) = match data.get(end)? {
        b'"' => (&data[start..end], end, ascii),
        b'\\' => {
            let (end, ascii) = unescape(data, start, end, ascii, scratch)?;
            (scratch.as_slice(), end, ascii)
        }
        _ => return None,
    };
    (ascii || simdutf8::basic::from_utf8(text).is_ok()).then_some(end + 1)
}

fn skip_items(
    data: &[u8],
    at: usize,
    depth: usize,
    close: u8,
    scratch: &mut Vec<u8>,
) -> Option<usize> {
    if depth >= MAX_DEPTH {
        return None;
    }
    let mut at = white(data, at + 1);
    if data.get(at) == Some(&close) {
        return Some(at + 1);
    }
    loop {
        if close == b'}' {
            if data.get(at) != Some(&b'"') {
                return None;
            }
            at = white(data, skip_string(data, at + 1, scratch)?);
            if data.get(at) != Some(&b':') {
                return None;
            }
            at = white(data, at + 1);
        }
        at = white(data, skip(data, at, depth + 1, scratch)?);
        match data.get(at)? {
            b',' => at = white(data, at + 1),
            byte if *byte == close => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Returns the string value of a key in the object at `at`. The key may be anywhere in the object. Returns `None` if the object does not
/// have the key, or if the value is not a string or has escapes.
pub fn find_tag<'a>(
    data: &'a [u8],
    at: usize,
    key: &[u8],
    scratch: &mut Vec<u8>,
) -> Option<&'a [u8]> {
    let mut at = white(data, at + 1);
    loop {
        if data.get(at) != Some(&b'"') {
            return None;
        }
        let (end, _) = string_end(data, at + 1);
        let is_it = data.get(end) == Some(&b'"') && &data[at + 1..end] == key;
        at = white(data, skip_string(data, at + 1, scratch)?);
        if data.get(at) != Some(&b':') {
            return None;
        }
        at = white(data, at + 1);
        if is_it {
            if data.get(at) != Some(&b'"') {
                return None;
            }
            let (end, _) = string_end(data, at + 1);
            return (data.get(end) == Some(&b'"')).then(|| &data[at + 1..end]);
        }
        at = white(data, skip(data, at, 1, scratch)?);
        if data.get(at) != Some(&b',') {
            return None;
        }
        at = white(data, at + 1);
    }
}
