//! Reads the strings of fields, and decodes escapes.
//!
//! The basic idea is simple: most strings have no escapes, and their bytes become the value. A string such as `"a\nb"` is decoded into a
//! buffer first. If the string equals one of the last strings of its field, the reader returns the earlier value.

use super::builder::Builder;
use super::memo::Strings;
use crate::simd::{copy_plain, string_end, Ahead};

/// A string that [`contents`] found in the data, and that [`make`](Contents::make) turns into a value.
pub struct Contents {
    start: usize,
    /// The index of the closing quote.
    pub end: usize,
    form: Form,
}

enum Form {
    /// The string equals the string with this index in [`Strings`].
    Kept(usize),
    /// The string has no escapes.
    Plain { ascii: bool },
    /// The index of the first backslash, and whether the bytes before it are ASCII.
    Escaped { at: usize, ascii: bool },
}

/// Finds the end of the string whose contents begin at `start`. Does not check the escapes or the UTF-8; [`Contents::make`] does this.
#[inline]
pub fn contents<V: Clone>(strings: &mut Strings<V>, data: &[u8], start: usize) -> Option<Contents> {
    if let Some((index, end)) = strings.find(data, start) {
        let form = Form::Kept(index);
        return Some(Contents { start, end, form });
    }
    let (end, ascii) = string_end(data, start);
    match data.get(end)? {
        b'"' => {
            let form = Form::Plain { ascii };
            Some(Contents { start, end, form })
        }
        b'\\' => {
            let form = Form::Escaped { at: end, ascii };
            let end = escaped_end(data, end)?;
            Some(Contents { start, end, form })
        }
        _ => None,
    }
}

/// Returns the index of the closing quote of a string that has a backslash at `at`.
fn escaped_end(data: &[u8], mut at: usize) -> Option<usize> {
    loop {
        (at, _) = string_end(data, at + 2);
        match data.get(at)? {
            b'"' => return Some(at),
            b'\\' => {}
            _ => return None,
        }
    }
}

impl Contents {
    /// Returns the value of the string; `None` if an escape or the UTF-8 is invalid, or if memory runs out.
    #[inline]
    pub fn make<B: Builder>(
        &self,
        strings: &mut Strings<B::Value>,
        builder: &mut B,
        scratch: &mut Vec<u8>,
        data: &[u8],
    ) -> Option<B::Value> {
        match self.form {
            Form::Kept(index) => strings.get(index),
            Form::Plain { ascii } => {
                let string = &data[self.start..self.end];
                let value = builder.text(string, ascii)?;
                strings.keep(string, &value);
                Some(value)
            }
            Form::Escaped { at, ascii } => {
                let (_, ascii) = unescape(data, self.start, at, ascii, scratch)?;
                builder.text(scratch, ascii)
            }
        }
    }
}

/// Returns the value of the string whose contents begin at `start`, and the index of its closing quote. Returns the value of an equal
/// string in `strings` if there is one.
#[inline]
pub fn remembered<B: Builder>(
    strings: &mut Strings<B::Value>,
    builder: &mut B,
    scratch: &mut Vec<u8>,
    data: &[u8],
    start: usize,
) -> Option<(B::Value, usize)> {
    if let Some((index, end)) = strings.find(data, start) {
        return Some((strings.get(index)?, end));
    }
    let (end, ascii) = string_end(data, start);
    match data.get(end)? {
        b'"' => {
            let string = &data[start..end];
            let value = builder.text(string, ascii)?;
            strings.keep(string, &value);
            Some((value, end))
        }
        b'\\' => {
            let (end, ascii) = unescape(data, start, end, ascii, scratch)?;
            Some((builder.text(scratch, ascii)?, end))
        }
        _ => None,
    }
}

/// Decodes a string into `out`. Its contents begin at `start`, and its first backslash is at `at`; `ascii` says whether the bytes before
/// the backslash are ASCII. Returns the index of the closing quote, and whether the result is ASCII. Returns `None` if an escape is
/// invalid, if there is a lone surrogate, or if memory runs out.
pub fn unescape(
    data: &[u8],
    start: usize,
    at: usize,
    mut ascii: bool,
    out: &mut Vec<u8>,
) -> Option<(usize, bool)> {
    out.clear();
    out.try_reserve(at - start).ok()?;
    out.extend_from_slice(&data[start..at]);
    let (mut at, mut ahead) = (at, Ahead::default());
    loop {
        match data.get(at)? {
            b'"' => return Some((at, ascii)),
            b'\\' => {}
            _ => return None,
        }
        let escape = *data.get(at + 1)?;
        // An escape becomes at most 4 bytes of UTF-8.
        out.try_reserve(4).ok()?;
        let plain = PLAIN[usize::from(escape)];
        at += 2;
        if plain != 0 {
            out.push(plain);
        } else if escape == b'u' {
            let (char, end) = unicode(data, at)?;
            ascii &= char.is_ascii();
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            at = end;
        } else {
            return None;
        }
        let (end, is_ascii) = copy_plain(data, at, out, &mut ahead)?;
        ascii &= is_ascii;
        at = end;
    }
}

/// Maps the byte after a backslash to its character: `n` to a line feed. The entry is 0 for `u` and for bytes that do not form an escape.
const PLAIN: [u8; 256] = {
    let mut all = [0; 256];
    let escapes = b"\"\"\\\\//b\x08f\x0cn\nr\rt\t";
    let mut at = 0;
    while at < escapes.len() {
        all[escapes[at] as usize] = escapes[at + 1];
        at += 2;
    }
    all
};

/// Returns the character for the hexadecimal digits at `at` (after `\u`), and the index after them. A surrogate pair, such as
/// `\ud83d\ude00`, is one character.
fn unicode(data: &[u8], at: usize) -> Option<(char, usize)> {
    let first = hex(data, at)?;
    let end = at + 4;
    if !(0xd800..0xe000).contains(&first) {
        return Some((char::from_u32(first)?, end));
    }
    if first >= 0xdc00 || data.get(end..end + 2)? != b"\\u" {
        return None;
    }
    let second = hex(data, end + 2)?;
    if !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    let both = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    Some((char::from_u32(both)?, end + 6))
}

fn hex(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..at + 4)?.iter().try_fold(0, |value, &byte| {
        Some(value * 16 + char::from(byte).to_digit(16)?)
    })
}
