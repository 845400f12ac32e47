//! Decodes UTF-8 into characters of 1, 2 or 4 bytes, as CPython stores them.
//!
//! A short string is decoded and checked byte by byte, because anything else would cost more than it saves. The basic idea for a long string
//! is simple: a shuffle moves the bytes of the next four characters into four lanes of 32 bits, the last byte of each character first. A few
//! operations on all lanes then remove the marks of UTF-8 and join the other bits. For `aé日b`:
//!
//! ```text
//! bytes       61 c3 a9 e6 97 a5 62
//! lanes       00000061  0000c3a9  00e697a5  00000062
//! characters  00000061  000000e9  000065e5  00000062
//! ```
//!
//! A mask with one bit for each of the next 12 bytes says where the characters end. It chooses the shuffle from a table, so no branch depends
//! on the lengths of the characters.

use super::output::Unit;
use super::{run, Engine, Level, Operation};

/// The maximum length in bytes of a string that is decoded byte by byte.
const SHORT: usize = 32;
/// The number of bytes that the mask of a step describes.
pub(super) const WINDOW: usize = 12;
/// The maximum number of characters that a step decodes.
const LANES: usize = 4;

/// A valid string.
pub enum Text<'a> {
    /// A short string. Its characters, their number, and all of them joined by a bitwise or.
    Short([u32; SHORT], usize, u32),
    /// A long string, its number of characters, and its highest byte.
    Long(&'a str, usize, u8),
}

impl<'a> Text<'a> {
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

    /// Returns a number that needs as many bytes as the highest character: 0x7f, or from 0x80 to 0xff, or from 0x100 to 0xffff, or more.
    #[inline]
    #[must_use]
    pub fn most(&self) -> u32 {
        match *self {
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
                Self::Long(text, ..) => run(Level::Fast, Decode { text, to }),
            }
        }
    }
}

#[inline(always)]
fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Writes the characters of `text` to `to`, which has room for them.
pub(super) struct Decode<'a, U> {
    pub text: &'a str,
    pub to: *mut U,
}

impl<U: Unit> Operation for Decode<'_, U> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) {
        // SAFETY: `to` has room for all characters of `text`.
        unsafe {
            let (bytes, characters) = engine.decode(self.text.as_bytes(), self.to);
            let rest = self.text[bytes..].chars().enumerate();
            rest.for_each(|(index, it)| self.to.add(characters + index).write(U::of(it.into())));
        }
    }
}

/// A step: its index in [`SHUFFLES`], and how many bytes and characters it decodes.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub shuffle: u16,
    pub bytes: u8,
    pub characters: u8,
}

/// The number of different lengths of a character in bytes, including 0 for a lane without a character.
const LENGTHS: usize = 5;
const COMBINATIONS: usize = LENGTHS * LENGTHS * LENGTHS * LENGTHS;

/// The step for each mask of [`WINDOW`] bytes. The bit of a character's last byte is set.
pub(super) static STEPS: [Step; 1 << WINDOW] = {
    let none = Step {
        shuffle: 0,
        bytes: 0,
        characters: 0,
    };
    let mut steps = [none; 1 << WINDOW];
    let mut mask = 0;
    while mask < steps.len() {
        let step = &mut steps[mask];
        let (mut at, mut unit) = (0, 1);
        while at < WINDOW && (step.characters as usize) < LANES {
            if mask >> at & 1 == 1 {
                let len = at + 1 - step.bytes as usize;
                if len >= LENGTHS {
                    break; // No UTF-8 has this mask.
                }
                #[allow(clippy::cast_possible_truncation)] // There are 625 combinations.
                let shuffle = (len * unit) as u16;
                step.shuffle += shuffle;
                #[allow(clippy::cast_possible_truncation)] // There are 12 bytes.
                let bytes = (at + 1) as u8;
                step.bytes = bytes;
                step.characters += 1;
                unit *= LENGTHS;
            }
            at += 1;
        }
        mask += 1;
    }
    steps
};

/// The shuffle for each combination of the lengths of four characters: the first length is the lowest digit of the index.
pub(super) static SHUFFLES: [[u8; 4 * LANES]; COMBINATIONS] = {
    /// A lane gets a zero for this index.
    const ZERO: u8 = 0x80;
    let mut shuffles = [[ZERO; 4 * LANES]; COMBINATIONS];
    let mut index = 0;
    while index < COMBINATIONS {
        let (mut lengths, mut lane, mut end) = (index, 0, 0);
        while lane < LANES {
            let len = lengths % LENGTHS;
            end += len;
            let mut byte = 0;
            while byte < len {
                #[allow(clippy::cast_possible_truncation)] // There are at most 16 bytes.
                let from = (end - 1 - byte) as u8;
                shuffles[index][4 * lane + byte] = from;
                byte += 1;
            }
            lengths /= LENGTHS;
            lane += 1;
        }
        index += 1;
    }
    shuffles
};
