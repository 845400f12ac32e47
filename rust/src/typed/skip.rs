//! Finds the tag of an object whose first key is another one.
//!
//! The basic idea is simple: to find the tag in `{"input":{"a":[1,2]},"type":"tool_use"}`, the reader skips the value of `input`: it only
//! looks for quotes and brackets. It finds a wrong tag only in invalid JSON, and then cannot read the object as the class of this tag.

use super::read::white;
use crate::simd::string_end;

/// Returns the index after the value at `at`, which must be valid JSON; `None` or any index for other bytes.
pub fn skip(data: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match *data.get(at)? {
            b'"' => at = skip_string(data, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\r' => {
                at += 1;
                continue;
            }
            b'\n' => return None,
            _ => at = skip_word(data, at + 1),
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Returns the index after the closing quote of the string whose contents begin at `at`.
fn skip_string(data: &[u8], mut at: usize) -> Option<usize> {
    loop {
        (at, _) = string_end(data, at);
        match data.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => return None,
        }
    }
}

/// Returns the index after the number, `true`, `false` or `null` that contains the byte before `at`.
fn skip_word(data: &[u8], mut at: usize) -> usize {
    while let Some(b'0'..=b'9' | b'a'..=b'z' | b'.' | b'-' | b'+' | b'E') = data.get(at) {
        at += 1;
    }
    at
}

/// Returns the string value of a key in the object at `at`. The key may be anywhere in the object. Returns `None` if the object does not
/// have the key, or if the value is not a string or has escapes.
pub fn find_tag<'a>(data: &'a [u8], at: usize, key: &[u8]) -> Option<&'a [u8]> {
    let mut at = white(data, at + 1);
    loop {
        if data.get(at) != Some(&b'"') {
            return None;
        }
        let end = skip_string(data, at + 1)?;
        let name = &data[at + 1..end - 1];
        at = white(data, end);
        if data.get(at) != Some(&b':') {
            return None;
        }
        at = white(data, at + 1);
        if name == key {
            if data.get(at) != Some(&b'"') {
                return None;
            }
            let (end, _) = string_end(data, at + 1);
            return (data.get(end) == Some(&b'"')).then(|| &data[at + 1..end]);
        }
        at = white(data, skip(data, at)?);
        if data.get(at) != Some(&b',') {
            return None;
        }
        at = white(data, at + 1);
    }
}
