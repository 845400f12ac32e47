//! Decodes UTF-8 into characters of 1, 2 or 4 bytes, as CPython stores them.
//!
//! A short string is decoded and checked byte by byte, because anything else would cost more than it saves. An [`Engine`] decodes several
//! characters of a long string at a time.

use super::output::Unit;
use super::{run, Engine, Level, Operation};

/// The maximum length in bytes of a string that is decoded byte by byte.
const SHORT: usize = 32;

/// A valid string.
pub enum Utf8<'a> {
    /// A short string. Its characters, their number, and all of them joined by a bitwise or.
    Short([u32; SHORT], usize, u32),
    /// A long string, its number of characters, and its highest byte.
    Long(&'a str, usize, u8),
}

impl<'a> Utf8<'a> {
    /// Checks a string; returns `None` if it is not UTF-8.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() <= SHORT {
            return Self::short(bytes);
        }
        let text = simdutf8::basic::from_utf8(bytes).ok()?;
        let (mut len, mut highest) = (0, 0);
        // The number of characters in a part fits into a byte, so the compiler can use vectors of bytes.
        for part in bytes.chunks(128) {
            let starts = part.iter().map(|&byte| u8::from(!is_continuation(byte)));
            len += usize::from(starts.sum::<u8>());
            highest = part
                .iter()
                .fold(highest, |highest, &byte| byte.max(highest));
        }
        Some(Self::Long(text, len, highest))
    }

    #[inline]
    fn short(bytes: &[u8]) -> Option<Self> {
        let mut characters = [0; SHORT];
        let (mut at, mut len, mut all) = (0, 0, 0);
        while at < bytes.len() {
            let byte = |index| bytes.get(at + index).copied().unwrap_or(0);
            let low = |index| u32::from(byte(index) & 0x3f);
            let continues = |index| is_continuation(byte(index));
            let first = u32::from(byte(0));
            // Conditions on continuation bytes are joined by `&`: one branch costs less than three.
            let (width, character, is_valid) = match first {
                0..0x80 => (1, first, true),
                0x80..0xe0 => {
                    let character = (first & 0x1f) << 6 | low(1);
                    (2, character, (first >= 0xc2) & continues(1))
                }
                0xe0..0xf0 => {
                    let character = (first & 0xf) << 12 | low(1) << 6 | low(2);
                    let is_valid = character >= 0x800 && character & 0xf800 != 0xd800;
                    (3, character, is_valid & continues(1) & continues(2))
                }
                _ => {
                    let character = (first & 0xf) << 18 | low(1) << 12 | low(2) << 6 | low(3);
                    let is_valid = (0x1_0000..0x11_0000).contains(&character);
                    let continues = continues(1) & continues(2) & continues(3);
                    (4, character, is_valid & continues)
                }
            };
            if !is_valid {
                return None;
            }
            characters[len] = character;
            len += 1;
            all |= character;
            at += width;
        }
        Some(Self::Short(characters, len, all))
    }

    /// Returns the number of characters.
    #[inline]
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match *self {
            Self::Short(_, len, _) | Self::Long(_, len, _) => len,
        }
    }

    /// Returns a number in the same range as the highest character. The ranges end at 0x7f, 0xff, 0xffff and 0x10ffff: for each, CPython
    /// stores the characters of a string in another form.
    #[inline]
    #[must_use]
    pub fn most(&self) -> u32 {
        match *self {
            // A bitwise or is in the same range as the highest character, but may exceed the last range.
            Self::Short(_, _, all) => all.min(0x10_ffff),
            Self::Long(_, _, highest) => match highest {
                0..=0x7f => 0x7f,
                // The first byte of a character up to U+00FF, and of one up to U+FFFF.
                0x80..=0xc3 => 0xff,
                0xc4..=0xef => 0xffff,
                0xf0.. => 0x10_ffff,
            },
        }
    }

    /// Writes the characters to `to`.
    ///
    /// # Safety
    ///
    /// `to` must have room for [`len`](Self::len) units, and a unit must have room for [`most`](Self::most).
    #[inline]
    pub unsafe fn write<U: Unit>(&self, to: *mut U) {
        // SAFETY: the caller guarantees the room.
        unsafe {
            match self {
                Self::Short(characters, len, _) => {
                    for (index, &character) in characters[..*len].iter().enumerate() {
                        to.add(index).write(U::of(character));
                    }
                }
                Self::Long(text, ..) => run(Level::Fast, Decode::new(text, to)),
            }
        }
    }
}

#[inline(always)]
fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The [`Operation`] that writes the characters of a string.
pub(super) struct Decode<'a, U> {
    text: &'a str,
    to: *mut U,
}

impl<'a, U: Unit> Decode<'a, U> {
    /// # Safety
    ///
    /// Until the operation has run, `to` must have room for all characters of `text`, and a unit must have room for each of them.
    #[inline(always)]
    pub(super) unsafe fn new(text: &'a str, to: *mut U) -> Self {
        Self { text, to }
    }
}

impl<U: Unit> Operation for Decode<'_, U> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) {
        let Self { text, to } = self;
        // SAFETY: the caller of `new` guarantees room for all characters of `text`.
        unsafe {
            let (bytes, characters) = engine.decode(text, to);
            let rest = text[bytes..].chars().enumerate();
            rest.for_each(|(index, it)| to.add(characters + index).write(U::of(it.into())));
        }
    }
}
