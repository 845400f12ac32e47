//! The contents of JSON strings, as they stand in the data.
// Inlined into the scanners: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

use crate::simd::Engine;

/// The contents of a JSON string, as they stand in the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Where they begin, behind the opening quote.
    pub start: usize,
    /// Bytes up to the closing quote.
    pub len: usize,
    /// Whether there is a backslash among them.
    pub escaped: bool,
}

impl Span {
    /// The bytes, still escaped.
    #[inline]
    #[must_use]
    pub fn of(self, data: &[u8]) -> &[u8] {
        &data[self.start..self.start + self.len]
    }
}

/// Whether the string at `span` reads `text`.
#[inline]
#[must_use]
pub fn is(data: &[u8], span: Span, text: &[u8]) -> bool {
    let raw = span.of(data);
    if span.escaped {
        return decoded(raw).eq(text.iter().copied().map(u16::from));
    }
    raw == text
}

/// Whether a string's contents are text: UTF-8 without control bytes, valid escapes, no lone surrogate.
#[cold]
pub(crate) fn is_text(raw: &[u8]) -> bool {
    simdutf8::basic::from_utf8(raw).is_ok()
        && raw.iter().all(|&byte| byte >= 0x20)
        && decoded(raw).all(|unit| unit <= 0xff)
}

/// The bytes of a string's contents without its escapes. A lone surrogate comes as one unit, 0xD800 to 0xDFFF, and at an
/// invalid escape [`INVALID`] is the last.
pub(crate) fn decoded(raw: &[u8]) -> Decoded<'_> {
    Decoded {
        rest: raw,
        character: [0; 4],
        left: 0,
    }
}

/// What stands for an escape that is none.
pub(crate) const INVALID: u16 = 0xffff;

#[derive(Clone)]
pub(crate) struct Decoded<'a> {
    rest: &'a [u8],
    /// The last bytes of a character that was escaped, `left` of them.
    character: [u8; 4],
    left: usize,
}

impl Decoded<'_> {
    fn invalid(&mut self) -> u16 {
        self.rest = &[];
        INVALID
    }

    /// The character of `\uXXXX` (and of the low half that follows a high one); `rest` begins with the digits.
    fn unicode(&mut self) -> u16 {
        let Some(unit) = hex(self.rest) else {
            return self.invalid();
        };
        self.rest = &self.rest[4..];
        let mut code = u32::from(unit);
        if let 0xd800..=0xdbff = unit {
            let low = self.rest.strip_prefix(b"\\u").and_then(hex);
            if let Some(low @ 0xdc00..=0xdfff) = low {
                code = 0x10000 + ((code - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                self.rest = &self.rest[6..];
            }
        }
        let Some(character) = char::from_u32(code) else {
            return unit;
        };
        let length = character.len_utf8();
        character.encode_utf8(&mut self.character[4 - length..]);
        self.left = length - 1;
        u16::from(self.character[4 - length])
    }
}

impl Iterator for Decoded<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if self.left > 0 {
            self.left -= 1;
            return Some(u16::from(self.character[3 - self.left]));
        }
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        if byte != b'\\' {
            return Some(u16::from(byte));
        }
        let Some((&escape, rest)) = self.rest.split_first() else {
            return Some(self.invalid());
        };
        self.rest = rest;
        Some(match escape {
            b'"' | b'\\' | b'/' => u16::from(escape),
            b'b' => 8,
            b'f' => 12,
            b'n' => 10,
            b'r' => 13,
            b't' => 9,
            b'u' => self.unicode(),
            _ => self.invalid(),
        })
    }
}

/// The value of the four hexadecimal digits that `raw` begins with.
fn hex(raw: &[u8]) -> Option<u16> {
    raw.first_chunk::<4>()?.iter().try_fold(0, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(value << 4 | u16::try_from(digit).ok()?)
    })
}

/// The closing quote of a string, of which all before `at` was passed and `at` is special; `None` if there is none, or a
/// control byte or an invalid escape before it. A lone surrogate is a valid escape.
#[inline(always)]
pub(crate) fn escaped_end<E: Engine>(engine: E, data: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match data.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += escape_len(data, at)?,
            _ => return None,
        }
        at = engine.special(data, at);
    }
}

/// Length of the escape whose backslash is at `at`, if it is valid.
#[inline(always)]
pub(crate) fn escape_len(data: &[u8], at: usize) -> Option<usize> {
    match data.get(at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' if data.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => Some(6),
        _ => None,
    }
}
