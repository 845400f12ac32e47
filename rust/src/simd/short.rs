//! Searches and comparisons of a few bytes: 16 at a time by SSE2, which all of x86-64 has, elsewhere byte by byte.
//!
//! The strings of a line have 5 to 40 bytes mostly. For these a call into a function for wider vectors costs more than they
//! save, and functions that call themselves cannot be inlined into one.
//!
//! They read whole vectors, so [`PAD`] bytes must follow what is looked at. Where fewer follow, they find nothing.

use super::{Engine, Level, Operation};

/// The bytes that must follow a line.
pub const PAD: usize = 32;

#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };

    /// Bytes in a vector.
    pub const WIDTH: usize = 16;

    #[inline(always)]
    fn load(bytes: &[u8; WIDTH]) -> __m128i {
        // SAFETY: 16 bytes are there, and need no alignment; SSE2 is part of x86-64.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    /// A bit for each byte that ends a run within a string, and one for each byte that is not ASCII.
    #[inline(always)]
    #[allow(clippy::cast_sign_loss)] // The mask of 16 bytes is not negative.
    pub fn look(bytes: &[u8; WIDTH]) -> (u32, u32) {
        let vector = load(bytes);
        // SAFETY: SSE2 is part of x86-64.
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

    /// A bit for each byte that a string does not have as it is, and for each that is `also`.
    #[inline(always)]
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)] // The mask of 16 bytes is not negative; a byte is its bits.
    pub fn specials(bytes: &[u8; WIDTH], also: u8) -> u32 {
        let vector = load(bytes);
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            let quotes = _mm_cmpeq_epi8(vector, _mm_set1_epi8(0x22));
            let backslashes = _mm_cmpeq_epi8(vector, _mm_set1_epi8(0x5c));
            let controls = _mm_cmpeq_epi8(_mm_min_epu8(vector, _mm_set1_epi8(0x1f)), vector);
            let others = _mm_cmpeq_epi8(vector, _mm_set1_epi8(also as i8));
            let found = _mm_or_si128(
                _mm_or_si128(quotes, backslashes),
                _mm_or_si128(controls, others),
            );
            _mm_movemask_epi8(found) as u32
        }
    }

    /// A bit for each byte that is equal.
    #[inline(always)]
    #[allow(clippy::cast_sign_loss)] // The mask of 16 bytes is not negative.
    pub fn equal(a: &[u8; WIDTH], b: &[u8; WIDTH]) -> u32 {
        let (a, b) = (load(a), load(b));
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) as u32 }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod lanes {
    /// Bytes in a vector.
    pub const WIDTH: usize = 16;

    /// A bit for each byte that ends a run within a string, and one for each byte that is not ASCII.
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

    /// A bit for each byte that a string does not have as it is, and for each that is `also`.
    #[inline(always)]
    pub fn specials(bytes: &[u8; WIDTH], also: u8) -> u32 {
        look(bytes).0 | equal(bytes, &[also; WIDTH])
    }

    /// A bit for each byte that is equal.
    #[inline(always)]
    pub fn equal(a: &[u8; WIDTH], b: &[u8; WIDTH]) -> u32 {
        (0..WIDTH).fold(0, |equal, index| {
            equal | u32::from(a[index] == b[index]) << index
        })
    }
}

pub(super) use lanes::specials;
pub(super) use lanes::WIDTH;

#[inline(always)]
pub(super) fn vector(data: &[u8], at: usize) -> Option<&[u8; WIDTH]> {
    data.get(at..at + WIDTH)?.try_into().ok()
}

/// Index of the first `"`, `\` or byte below 0x20 of `data` from `at` on, and whether all bytes before it are ASCII. It is the
/// length of `data` if fewer than [`PAD`] bytes follow.
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

/// The vector that [`copy_plain`] looked at last: a string with many escapes has several in one.
#[derive(Default)]
pub struct Ahead {
    base: usize,
    ends: u32,
    high: u32,
}

/// As [`string_end`], and appends what is before to `out`; `None` without memory. `ahead` is of the same data and of no later place.
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

/// After this many bytes of a string, the call for wider vectors pays.
const LONG: usize = 256;

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

/// Whether `data` from `at` on begins with `part`.
#[inline(always)]
#[must_use]
pub fn begins(data: &[u8], at: usize, part: &[u8]) -> bool {
    data.get(at..at + part.len()) == Some(part)
}

/// How many bytes of `data` from `at` on are those of `part`.
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

/// A key of an object with its quotes and colon, as it is looked for.
pub struct Key {
    /// `"key":`, followed by zeros.
    pattern: [u8; 2 * WIDTH],
    /// The bits of the pattern that count, of either half.
    masks: [u32; 2],
    /// All of it.
    whole: Box<[u8]>,
}

impl Key {
    /// `name` is what stands between the quotes.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        let whole: Vec<u8> = [b"\"", name, b"\":"].concat();
        let mut pattern = [0; 2 * WIDTH];
        let part = whole.len().min(2 * WIDTH);
        pattern[..part].copy_from_slice(&whole[..part]);
        let bits: u64 = (1 << part) - 1;
        #[allow(clippy::cast_possible_truncation)] // Half of 32 bits.
        let masks = [(bits & 0xffff) as u32, (bits >> WIDTH) as u32];
        Self {
            pattern,
            masks,
            whole: whole.into(),
        }
    }

    /// What stands between the quotes.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.whole[1..self.whole.len() - 2]
    }

    /// Where the value begins if `data` has this key at `at`, with no white space in it.
    #[inline(always)]
    #[must_use]
    pub fn end(&self, data: &[u8], at: usize) -> Option<usize> {
        let half = |from: usize| -> Option<u32> {
            let pattern = self.pattern[from..from + WIDTH].try_into().ok()?;
            Some(lanes::equal(vector(data, at + from)?, pattern))
        };
        if half(0)? & self.masks[0] != self.masks[0] {
            return None;
        }
        if self.masks[1] != 0 {
            if half(WIDTH)? & self.masks[1] != self.masks[1] {
                return None;
            }
            if self.whole.len() > 2 * WIDTH && !begins(data, at, &self.whole) {
                return None;
            }
        }
        Some(at + self.whole.len())
    }
}
