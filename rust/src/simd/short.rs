//! Searches and compares short strings, 16 bytes at a time. The functions use SSE2 on x86-64, where every processor has it, and plain loops
//! on other processors.
//!
//! Most strings of a line have 5 to 40 bytes. For these, calling a function with AVX2 costs more than its wider vectors save,
//! and AVX2 code cannot be inlined into the recursive functions of the typed reader.
//!
//! The basic idea is simple: load 16 bytes, compare all of them, and get a mask with one bit per byte. The lowest bit is the first byte
//! found. For example, [`string_end`] searches `hi "you…`:
//!
//! ```text
//! bytes   h i _ " y o u …     _ is a space
//! mask    0 0 0 1 0 0 0 …     trailing_zeros() = 3: the quote is at index 3
//! ```
//!
//! The functions load whole vectors only, so at least [`PAD`] bytes must follow a line that is searched. Their content does not matter.
//! Usually they are the next lines; the reader copies the last line of its data and appends LFs. If fewer than 16 bytes are left, the
//! functions do not find anything.

use super::{Engine, Level, Operation};
use crate::fallible::{boxed, Boxed};

/// How many bytes must follow a line in memory, so that whole vectors can be loaded up to its end.
pub const PAD: usize = 32;

#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8,
        _mm_or_si128, _mm_set1_epi8, _mm_xor_si128,
    };

    /// The number of bytes in a vector.
    pub const WIDTH: usize = 16;

    #[inline(always)]
    fn load(bytes: &[u8; WIDTH]) -> __m128i {
        // SAFETY: `bytes` is a reference to 16 bytes; the instruction needs no alignment, and every x86-64 has SSE2.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    /// Returns two masks with one bit per byte: the bytes `"`, `\` and below 0x20, and the bytes that are not ASCII.
    #[inline(always)]
    #[allow(clippy::cast_sign_loss)] // The mask has 16 bits, so it is not negative.
    pub fn look(bytes: &[u8; WIDTH]) -> (u32, u32) {
        let vector = load(bytes);
        // SAFETY: every x86-64 has SSE2; these instructions work on registers only.
        unsafe {
            let quotes = _mm_cmpeq_epi8(vector, _mm_set1_epi8(0x22));
            let backslashes = _mm_cmpeq_epi8(vector, _mm_set1_epi8(0x5c));
            let controls = _mm_cmpeq_epi8(_mm_min_epu8(vector, _mm_set1_epi8(0x1f)), vector);
            let ends = _mm_or_si128(_mm_or_si128(quotes, backslashes), controls);
            (
                _mm_movemask_epi8(ends) as u32,
                _mm_movemask_epi8(vector) as u32,
            )
        }
    }

    /// Returns a mask of the bytes that a JSON string must escape (`"`, `\`, below 0x20). With `UTF8`, the mask also includes 0xe2, the
    /// first byte of U+2028 and U+2029. Without `UTF8`, the mask also includes the bytes that are not ASCII.
    #[inline(always)]
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)] // The mask has 16 bits; 0xe2 keeps its bits as an `i8`.
    pub fn specials<const UTF8: bool>(bytes: &[u8; WIDTH]) -> u32 {
        let vector = load(bytes);
        // SAFETY: every x86-64 has SSE2; these instructions work on registers only.
        unsafe {
            // With bit 1 flipped, `"` and the bytes below 0x20 are the bytes up to 0x20.
            let flipped = _mm_xor_si128(vector, _mm_set1_epi8(2));
            let controls = if UTF8 {
                _mm_cmpeq_epi8(_mm_min_epu8(flipped, _mm_set1_epi8(0x20)), flipped)
            } else {
                // As signed bytes, those that are not ASCII are negative, so this comparison finds them, too.
                _mm_cmplt_epi8(flipped, _mm_set1_epi8(0x21))
            };
            let backslashes = _mm_cmpeq_epi8(vector, _mm_set1_epi8(0x5c));
            let mut found = _mm_or_si128(controls, backslashes);
            if UTF8 {
                let others = _mm_cmpeq_epi8(vector, _mm_set1_epi8(0xe2_u8 as i8));
                found = _mm_or_si128(found, others);
            }
            _mm_movemask_epi8(found) as u32
        }
    }

    /// Returns a mask of the bytes that are equal in `a` and `b`.
    #[inline(always)]
    #[allow(clippy::cast_sign_loss)] // The mask has 16 bits, so it is not negative.
    pub fn equal(a: &[u8; WIDTH], b: &[u8; WIDTH]) -> u32 {
        let (a, b) = (load(a), load(b));
        // SAFETY: every x86-64 has SSE2; these instructions work on registers only.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) as u32 }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod lanes {
    /// The number of bytes in a vector.
    pub const WIDTH: usize = 16;

    /// Returns two masks with one bit per byte: the bytes `"`, `\` and below 0x20, and the bytes that are not ASCII.
    #[inline(always)]
    pub fn look(bytes: &[u8; WIDTH]) -> (u32, u32) {
        bytes
            .iter()
            .enumerate()
            .fold((0, 0), |(ends, high), (index, &byte)| {
                let end = byte == b'"' || byte == b'\\' || byte < 0x20;
                (
                    ends | u32::from(end) << index,
                    high | u32::from(byte >> 7) << index,
                )
            })
    }

    /// Returns a mask of the bytes that a JSON string must escape (`"`, `\`, below 0x20). With `UTF8`, the mask also includes 0xe2, the
    /// first byte of U+2028 and U+2029.
    #[inline(always)]
    pub fn specials<const UTF8: bool>(bytes: &[u8; WIDTH]) -> u32 {
        let found = look(bytes).0;
        if UTF8 {
            found | equal(bytes, &[0xe2; WIDTH])
        } else {
            found
        }
    }

    /// Returns a mask of the bytes that are equal in `a` and `b`.
    #[inline(always)]
    pub fn equal(a: &[u8; WIDTH], b: &[u8; WIDTH]) -> u32 {
        (0..WIDTH).fold(0, |equal, index| {
            equal | u32::from(a[index] == b[index]) << index
        })
    }
}

pub(super) use lanes::specials;
pub(super) use lanes::WIDTH;

/// Returns the 16 bytes of `data` that begin at `at`; `None` if fewer are left.
#[inline(always)]
pub(super) fn vector(data: &[u8], at: usize) -> Option<&[u8; WIDTH]> {
    data.get(at..at + WIDTH)?.try_into().ok()
}

/// Returns the index of the first `"`, `\` or byte below 0x20 in `data` at or after `at`, and whether all bytes from `at` up to it are
/// ASCII. Returns the length of `data` if no whole vector has such a byte.
#[inline(always)]
#[must_use]
pub fn string_end(data: &[u8], mut at: usize) -> (usize, bool) {
    let mut high = 0;
    let long = at + LONG;
    while let Some(bytes) = vector(data, at) {
        let (ends, more) = lanes::look(bytes);
        if ends != 0 {
            let before = more & (ends - 1) & !ends;
            return (at + ends.trailing_zeros() as usize, high | before == 0);
        }
        high |= more;
        at += WIDTH;
        if at >= long {
            let (end, ascii) = super::run(Level::Fast, LongString { data, at });
            return (end, ascii && high == 0);
        }
    }
    (data.len(), true)
}

/// The masks of the last vector that [`copy_plain`] loaded. For a string with many escapes, the reader calls it several times within one
/// vector. Each call after the first only shifts these masks.
#[derive(Default)]
pub struct Ahead {
    /// The index in the data at which the vector begins.
    base: usize,
    /// The mask of `"`, `\` and bytes below 0x20.
    ends: u32,
    /// The mask of bytes that are not ASCII.
    high: u32,
}

/// Does the same as [`string_end`], and appends the bytes before the result to `out`. Returns `None` if memory runs out. `ahead` must be
/// new, or come from an earlier call with the same `data` and an `at` that was not larger.
#[inline]
pub fn copy_plain(
    data: &[u8],
    mut at: usize,
    out: &mut Vec<u8>,
    ahead: &mut Ahead,
) -> Option<(usize, bool)> {
    let mut all = 0;
    let skip = at - ahead.base;
    let (mut ends, mut high) = if skip < WIDTH {
        (ahead.ends >> skip, ahead.high >> skip)
    } else {
        (0, 0)
    };
    while let Some(bytes) = vector(data, at) {
        if ends == 0 {
            (ends, high) = lanes::look(bytes);
            *ahead = Ahead {
                base: at,
                ends,
                high,
            };
        }
        let len = out.len();
        if out.capacity() - len < WIDTH {
            out.try_reserve(WIDTH).ok()?;
        }
        out.extend_from_slice(bytes);
        if ends != 0 {
            let count = ends.trailing_zeros() as usize;
            out.truncate(len + count);
            let before = high & (ends - 1) & !ends;
            return Some((at + count, all | before == 0));
        }
        all |= high;
        at += WIDTH;
    }
    Some((data.len(), true))
}

/// Strings with more bytes than this are searched with the processor's widest vectors. For shorter strings, calling a function with AVX2
/// costs more time than it saves.
const LONG: usize = 256;

/// The [`Operation`] that finishes [`string_end`] for a long string.
struct LongString<'a> {
    data: &'a [u8],
    at: usize,
}

impl Operation for LongString<'_> {
    type Output = (usize, bool);

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> (usize, bool) {
        engine.special_ascii(self.data, self.at)
    }
}

/// Returns the length of the escape that begins at `at`. Returns `None` if the escape is not valid.
#[inline(always)]
#[must_use]
pub fn escape_len(data: &[u8], at: usize) -> Option<usize> {
    match (data.get(at)?, data.get(at + 1)?) {
        (b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Some(2),
        (b'\\', b'u') => {
            let digits = data.get(at + 2..at + 6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(6)
        }
        _ => None,
    }
}

/// Returns true if `part` occurs in `data` at index `at`.
#[inline(always)]
#[must_use]
pub fn begins(data: &[u8], at: usize, part: &[u8]) -> bool {
    data.get(at..at + part.len()) == Some(part)
}

/// Returns the length of the longest common prefix of `part` and of the bytes of `data` that begin at `at`.
#[must_use]
pub fn difference(data: &[u8], at: usize, part: &[u8]) -> usize {
    let mut same = 0;
    while let (Some(one), Some(other)) = (vector(data, at + same), vector(part, same)) {
        let equal = lanes::equal(one, other);
        if equal != (1 << WIDTH) - 1 {
            return same + equal.trailing_ones() as usize;
        }
        same += WIDTH;
    }
    let rest = data.get(at + same..).unwrap_or_default().iter();
    let rest = rest.zip(&part[same..]);
    same + rest.take_while(|(one, other)| one == other).count()
}

/// A key of a JSON object, prepared for a fast comparison with the bytes of a line. One vector compares 16 bytes; a mask shows which of
/// them belong to the key.
pub struct Key {
    /// The first 32 bytes of `"name":`, padded with zeros.
    pattern: [u8; 2 * WIDTH],
    /// For each half of the pattern, a bit for each byte that belongs to the key.
    masks: [u16; 2],
    /// The number of bytes of `"name":`.
    len: u32,
    /// All bytes of `"name":`, if there are more than 32.
    /// A vector takes three words. A box around it takes one, so a `Field` fits 64 bytes.
    whole: Option<Boxed<Vec<u8>>>,
}

impl Key {
    /// Prepares the key `name`: the bytes between the quotes, still escaped. Returns `None` if memory runs out.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // Each half has 16 of the 32 bits, and no key has 4 GiB.
    pub fn new(name: &[u8]) -> Option<Self> {
        let mut whole = Vec::new();
        whole.try_reserve_exact(name.len() + 3).ok()?;
        for part in [b"\"", name, b"\":"] {
            whole.extend_from_slice(part);
        }
        let mut pattern = [0; 2 * WIDTH];
        let part = whole.len().min(2 * WIDTH);
        pattern[..part].copy_from_slice(&whole[..part]);
        let bits: u64 = (1 << part) - 1;
        Some(Self {
            pattern,
            masks: [bits as u16, (bits >> WIDTH) as u16],
            len: whole.len() as u32,
            whole: if whole.len() > part {
                Some(boxed([whole]).ok()?)
            } else {
                None
            },
        })
    }

    /// Returns the bytes between the quotes.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        let whole = self
            .whole
            .as_ref()
            .map_or(&self.pattern[..], |whole| &whole[0]);
        &whole[1..self.len as usize - 2]
    }

    /// Returns the index after the colon if `data` has `"name":` at `at`, without white space; `None` otherwise.
    #[inline(always)]
    #[must_use]
    pub fn end(&self, data: &[u8], at: usize) -> Option<usize> {
        let differs = |half: usize| -> Option<bool> {
            let from = half * WIDTH;
            let pattern = self.pattern[from..from + WIDTH].try_into().ok()?;
            let mask = u32::from(self.masks[half]);
            Some(lanes::equal(vector(data, at + from)?, pattern) & mask != mask)
        };
        if differs(0)? {
            return None;
        }
        if self.masks[1] != 0 {
            if differs(1)? {
                return None;
            }
            if let Some(whole) = &self.whole {
                if !begins(data, at, &whole[0]) {
                    return None;
                }
            }
        }
        Some(at + self.len as usize)
    }
}
