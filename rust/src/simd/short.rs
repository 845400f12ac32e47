//! Searches and comparisons of a few bytes: 16 at a time by SSE2, which all of x86-64 has, elsewhere byte by byte.
//!
//! The strings of a line have 5 to 40 bytes mostly. For these a call into a function for wider vectors costs more than they
//! save, and functions that call themselves cannot be inlined into one.
//!
//! They read whole vectors, so [`PAD`] bytes must follow what is looked at. Where fewer follow, they find nothing.

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

use lanes::WIDTH;

#[inline(always)]
fn vector(data: &[u8], at: usize) -> Option<&[u8; WIDTH]> {
    data.get(at..at + WIDTH)?.try_into().ok()
}

/// Index of the first `"`, `\` or byte below 0x20 of `data` from `at` on, and whether all bytes before it are ASCII. It is the
/// length of `data` if there are fewer than [`PAD`] bytes behind.
#[inline(always)]
#[must_use]
pub fn string_end(data: &[u8], mut at: usize) -> (usize, bool) {
    let mut high = 0;
    while let Some(bytes) = vector(data, at) {
        let (ends, more) = lanes::look(bytes);
        if ends != 0 {
            let before = more & (ends - 1) & !ends;
            return (at + ends.trailing_zeros() as usize, high | before == 0);
        }
        high |= more;
        at += WIDTH;
    }
    (data.len(), true)
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

/// How many bytes [`escape`] may need to write so many.
#[inline(always)]
#[must_use]
pub fn escaped_room(len: usize) -> usize {
    6 * len + WIDTH
}

/// Writes `bytes` to `out` from `to` on as a JSON string has them, and returns where they end there. U+2028 and U+2029 are escaped
/// if they are `UTF8`, or else the bytes are ASCII.
///
/// # Panics
///
/// If `out` has not [`escaped_room`] there.
#[inline(always)]
pub fn escape<const UTF8: bool>(bytes: &[u8], out: &mut [u8], to: usize) -> usize {
    let is_plain = |block: &[u8; WIDTH]| lanes::specials(block, also::<UTF8>()) == 0;
    let len = bytes.len();
    let mut at = 0;
    if let Some(last) = bytes.last_chunk::<WIDTH>() {
        loop {
            let Some(block) = vector(bytes, at) else {
                // Some of the last vector was written before.
                out[to + len - WIDTH..to + len].copy_from_slice(last);
                if is_plain(last) {
                    return to + len;
                }
                break;
            };
            out[to + at..to + at + WIDTH].copy_from_slice(block);
            if !is_plain(block) {
                break;
            }
            at += WIDTH;
        }
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        out[to..to + 8].copy_from_slice(first);
        out[to + len - 8..to + len].copy_from_slice(last);
        let both = [u64::from_le_bytes(*first), u64::from_le_bytes(*last)];
        if is_plain(&(u128::from(both[0]) | u128::from(both[1]) << 64).to_le_bytes()) {
            return to + len;
        }
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        out[to..to + 4].copy_from_slice(first);
        out[to + len - 4..to + len].copy_from_slice(last);
        let both =
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
        if is_plain(&(u128::from(both) | u128::from(both) << 64).to_le_bytes()) {
            return to + len;
        }
    } else if len == 0 {
        return to;
    }
    escape_from::<UTF8>(bytes, at, out, to + at)
}

/// The byte that is looked for beside those that every string escapes: the first of U+2028 and U+2029.
#[inline(always)]
fn also<const UTF8: bool>() -> u8 {
    if UTF8 {
        0xe2
    } else {
        b'"'
    }
}

/// As [`escape`], from `at` on.
#[inline(never)]
fn escape_from<const UTF8: bool>(
    bytes: &[u8],
    mut at: usize,
    out: &mut [u8],
    mut to: usize,
) -> usize {
    loop {
        let (block, count) = match vector(bytes, at) {
            Some(block) => (*block, WIDTH),
            None => (rest(bytes, at), bytes.len() - at),
        };
        out[to..to + WIDTH].copy_from_slice(&block);
        let found = lanes::specials(&block, also::<UTF8>()) & ((1 << count) - 1);
        if found == 0 {
            at += count;
            to += count;
            if count < WIDTH {
                return to;
            }
            continue;
        }
        let index = found.trailing_zeros() as usize;
        at += index;
        to += index;
        if UTF8 && bytes[at] == 0xe2 {
            let separator = match bytes.get(at + 1..at + 3) {
                Some([0x80, 0xa8]) => b"\\u2028",
                Some([0x80, 0xa9]) => b"\\u2029",
                _ => {
                    // It is there already.
                    at += 1;
                    to += 1;
                    continue;
                }
            };
            out[to..to + 6].copy_from_slice(separator);
            at += 3;
            to += 6;
        } else {
            let (written, len) = &ESCAPES[usize::from(bytes[at]) % ESCAPES.len()];
            out[to..to + 8].copy_from_slice(written);
            at += 1;
            to += len;
        }
    }
}

/// The bytes from `at` on, fewer than 16, with zeros behind.
fn rest(bytes: &[u8], at: usize) -> [u8; WIDTH] {
    if let Some(last) = bytes.last_chunk() {
        // In two steps, for at least one byte goes and perhaps all do.
        let all = u128::from_le_bytes(*last) >> 8 >> (8 * (WIDTH - 1 - (bytes.len() - at)));
        return all.to_le_bytes();
    }
    let mut block = [0; WIDTH];
    block[..bytes.len() - at].copy_from_slice(&bytes[at..]);
    block
}

/// How a string has the bytes that it does not have as they are, and how many bytes that takes.
static ESCAPES: [([u8; 8], usize); 128] = {
    let mut all = [([0; 8], 0); 128];
    let mut byte = 0;
    while byte < 128 {
        #[allow(clippy::cast_possible_truncation)] // It is below 128.
        let plain = byte as u8;
        let short = match plain {
            b'"' | b'\\' => plain,
            8 => b'b',
            9 => b't',
            10 => b'n',
            12 => b'f',
            13 => b'r',
            _ => 0,
        };
        let digits = b"0123456789abcdef";
        let (high, low) = (digits[byte >> 4], digits[byte & 15]);
        all[byte] = if short == 0 {
            ([b'\\', b'u', b'0', b'0', high, low, 0, 0], 6)
        } else {
            ([b'\\', short, 0, 0, 0, 0, 0, 0], 2)
        };
        byte += 1;
    }
    all
};

/// How a string has the byte of ASCII that it does not have as it is.
#[must_use]
pub fn escape_of(byte: u8) -> &'static [u8] {
    let (written, len) = &ESCAPES[usize::from(byte) % ESCAPES.len()];
    &written[..*len]
}

/// A key of an object with its quotes and colon, as it is looked for.
pub struct Key {
    /// `"key":`, with zeros behind.
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
