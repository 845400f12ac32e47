//! Compares and decodes JSON strings in the bytes of a line.
//!
//! The basic idea is simple: in `{"type":"user"}`, the string `user` is a [`Span`] that starts at 9 and has length 4. If the string has
//! escapes, such as `us\u0065r`, it is compared character by character.

/// Where the contents of a JSON string are in the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The index after the opening quote.
    pub start: usize,
    /// The number of bytes before the closing quote.
    pub len: usize,
    /// True if the contents include a backslash.
    pub escaped: bool,
}

impl Span {
    /// Returns the bytes of the contents. Escapes are not decoded.
    #[inline]
    #[must_use]
    pub fn of(self, data: &[u8]) -> &[u8] {
        &data[self.start..self.end()]
    }

    /// Returns the index of the closing quote.
    #[inline]
    #[must_use]
    pub fn end(self) -> usize {
        self.start + self.len
    }
}

/// Returns whether the decoded string at `span` equals `text`, which is ASCII.
#[inline]
#[must_use]
pub fn is(data: &[u8], span: Span, text: &[u8]) -> bool {
    let raw = span.of(data);
    if span.escaped {
        return decoded(raw).eq(text.iter().copied().map(u16::from));
    }
    raw == text
}

/// Returns whether a string's contents are valid: UTF-8 with valid escapes, but without control bytes or lone surrogates.
#[cold]
pub(crate) fn is_text(raw: &[u8]) -> bool {
    simdutf8::basic::from_utf8(raw).is_ok()
        && raw.iter().all(|&byte| byte >= 0x20)
        && decoded(raw).all(|unit| unit <= 0xff)
}

/// Iterates over a string's decoded contents: one number for each UTF-8 byte. A lone surrogate is one number from 0xD800 to 0xDFFF. At an
/// invalid escape, the iterator returns [`INVALID`] and ends.
pub(crate) fn decoded(raw: &[u8]) -> Decoded<'_> {
    Decoded {
        rest: raw,
        character: [0; 4],
        left: 0,
    }
}

/// The number that [`decoded`] returns for an invalid escape.
pub(crate) const INVALID: u16 = 0xffff;

#[derive(Clone)]
pub(crate) struct Decoded<'a> {
    rest: &'a [u8],
    /// The last escape's character in UTF-8, at the end of the array. The iterator must still return its last `left` bytes.
    character: [u8; 4],
    left: usize,
}

impl Decoded<'_> {
    fn invalid(&mut self) -> u16 {
        self.rest = &[];
        INVALID
    }

    /// Decodes `\uXXXX`, or a surrogate pair. `rest` begins with the digits. Returns the first byte of the character.
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

/// Returns the value of the four hexadecimal digits at the start of `raw`.
fn hex(raw: &[u8]) -> Option<u16> {
    raw.first_chunk::<4>()?.iter().try_fold(0, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(value << 4 | u16::try_from(digit).ok()?)
    })
}
