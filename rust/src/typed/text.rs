//! Escapes of strings.

use crate::simd::string_end;

/// Decodes the string of `data` whose contents begin at `start` and whose first backslash is at `at`, into `out`. Returns where
/// its closing quote is, and whether it is ASCII; `None` if an escape is wrong, or half of a surrogate pair, or without memory.
pub fn unescape(data: &[u8], start: usize, at: usize, out: &mut Vec<u8>) -> Option<(usize, bool)> {
    out.clear();
    let mut ascii = data[start..at].is_ascii();
    let (mut from, mut at) = (start, at);
    loop {
        // An escape becomes at most 4 bytes of UTF-8.
        out.try_reserve(at - from + 4).ok()?;
        out.extend_from_slice(&data[from..at]);
        match data.get(at)? {
            b'"' => return Some((at, ascii)),
            b'\\' => {}
            _ => return None,
        }
        from = at + 2;
        let plain = match data.get(at + 1)? {
            byte @ (b'"' | b'\\' | b'/') => *byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (char, end) = unicode(data, at + 2)?;
                ascii &= char.is_ascii();
                out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                from = end;
                (at, ascii) = end_of_run(data, from, ascii);
                continue;
            }
            _ => return None,
        };
        out.push(plain);
        (at, ascii) = end_of_run(data, from, ascii);
    }
}

fn end_of_run(data: &[u8], from: usize, ascii: bool) -> (usize, bool) {
    let (end, is_ascii) = string_end(data, from);
    (end, ascii && is_ascii)
}

/// The character of the digits behind `\u`, and where they end; both halves of a pair are one.
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
