//! The [`Engine`] for every processor: it searches 8 bytes at a time, in general-purpose registers.
//!
//! The basic idea is the well-known trick to find a zero byte in a word: `(w - 0x0101…01) & !w & 0x8080…80` has the high bit set in the
//! lowest zero byte. To find a quote, first exclusive-or the word with `""""""""`, which makes its quotes zero. Bytes above
//! the lowest hit may be wrong, because the subtraction borrows from them, so only the lowest hit is used.

use super::short::{specials, vector, WIDTH};
use super::{Ascii, Engine, Operation};

/// The engine that works on words of 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Returns a word with the high bit set in the lowest byte that is `"`, `\` or below 0x20. In higher bytes, the bit may be wrong.
#[inline(always)]
fn special_bytes(word: u64) -> u64 {
    let quote = word ^ (ONES * 0x22);
    let backslash = word ^ (ONES * 0x5c);
    let found = (quote.wrapping_sub(ONES) & !quote)
        | (backslash.wrapping_sub(ONES) & !backslash)
        | (word.wrapping_sub(ONES * 0x20) & !word);
    found & HIGHS
}

/// Returns true for the bytes that a JSON string must escape.
#[inline(always)]
pub(super) fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

/// Does the same as [`Engine::special_ascii`], byte by byte, for the last bytes of the data.
#[cold]
#[inline(never)]
pub(super) fn last_special(data: &[u8], at: usize) -> (usize, bool) {
    let rest = data.get(at..).unwrap_or_default();
    let found = rest
        .iter()
        .position(|&byte| is_special(byte))
        .unwrap_or(rest.len());
    (data.len() - rest.len() + found, rest[..found].is_ascii())
}

impl Engine for Plain {
    type Ahead = ();

    #[inline(always)]
    fn string_end(self, (): &mut (), data: &[u8], at: usize) -> (usize, bool) {
        let mut end = self.special(data, at);
        let mut escaped = false;
        loop {
            match data.get(end) {
                None | Some(b'"' | b'\n') => return (end, escaped),
                Some(b'\\') => {
                    escaped = true;
                    end += 1;
                    match data.get(end) {
                        None | Some(b'\n') => return (end, escaped),
                        Some(_) => end = self.special(data, end + 1),
                    }
                }
                Some(_) => end = self.special(data, end + 1),
            }
        }
    }

    #[inline(always)]
    fn container_end(self, data: &[u8], mut at: usize) -> Result<usize, usize> {
        let mut depth = 0_usize;
        while let Some(byte) = data.get(at) {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(at + 1);
                    }
                }
                b'"' => {
                    (at, _) = self.string_end(&mut (), data, at + 1);
                    if data.get(at) != Some(&b'"') {
                        return Err(at);
                    }
                }
                b'\n' => return Err(at),
                _ => (),
            }
            at += 1;
        }
        Err(at)
    }

    #[inline(always)]
    fn special(self, data: &[u8], mut at: usize) -> usize {
        while let Some(&word) = data.get(at..).and_then(<[u8]>::first_chunk) {
            let found = special_bytes(u64::from_le_bytes(word));
            if found != 0 {
                return at + (found.trailing_zeros() / 8) as usize;
            }
            at += 8;
        }
        last_special(data, at).0
    }

    #[inline(always)]
    fn special_ascii(self, data: &[u8], mut at: usize) -> (usize, bool) {
        let mut high = 0;
        while let Some(&word) = data.get(at..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_le_bytes(word);
            let found = special_bytes(word);
            if found != 0 {
                let before = (found & found.wrapping_neg()) - 1;
                high |= word & before;
                return (
                    at + (found.trailing_zeros() / 8) as usize,
                    high & HIGHS == 0,
                );
            }
            high |= word;
            at += 8;
        }
        let (end, ascii) = last_special(data, at);
        (end, ascii && high & HIGHS == 0)
    }

    #[inline(always)]
    fn begins(self, data: &[u8], at: usize, part: &[u8]) -> bool {
        let Some(data) = data.get(at..).and_then(|data| data.get(..part.len())) else {
            return false;
        };
        let (Some(last), Some(part_last)) = (data.last_chunk::<8>(), part.last_chunk::<8>()) else {
            return short_equal(data, part);
        };
        let words = data.chunks_exact(8).zip(part.chunks_exact(8));
        let differing = |(one, other): (&[u8], &[u8])| word(one) ^ word(other);
        let differing = words.fold(0, |all, pair| all | differing(pair));
        differing | (word(last) ^ word(part_last)) == 0
    }

    const WIDTH: usize = WIDTH;

    #[inline(always)]
    unsafe fn copy<const UTF8: bool>(self, data: &[u8], at: usize, to: *mut u8) -> Option<u64> {
        let block = vector(data, at)?;
        // SAFETY: the caller guarantees the room.
        unsafe { to.cast::<[u8; WIDTH]>().write_unaligned(*block) };
        Some(specials::<UTF8>(block).into())
    }

    /// This function copies the string and searches it at the same time, without a loop: for up to 16 bytes, it also searches the bytes
    /// before the string, and shifts them out of the mask.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // 8 bytes have 64 bits.
    unsafe fn copy_short(self, text: Ascii<'_>, to: *mut u8) -> bool {
        let (len, end) = text.end();
        // SAFETY: each load is within the string and the bytes before it. The caller guarantees the room for each store.
        unsafe {
            let last = &*end.sub(WIDTH).cast::<[u8; WIDTH]>();
            if len <= WIDTH {
                // For fewer than 8 bytes, load the 8 bytes before the string's end, and shift out those before the string. For an empty
                // string, bytes are written, but the output does not grow, so the next write replaces them.
                let all = len.max(8);
                let half = |from: *const u8| from.cast::<u64>().read_unaligned();
                let first = u64::from_le(half(end.sub(all))).wrapping_shr(8 * (all - len) as u32);
                to.add(all - 8)
                    .cast::<u64>()
                    .write_unaligned(half(end.sub(8)));
                to.cast::<u64>().write_unaligned(first.to_le());
                return specials::<false>(last) >> (WIDTH - len) == 0;
            }
            let first = &*end.sub(len).cast::<[u8; WIDTH]>();
            to.cast::<[u8; WIDTH]>().write_unaligned(*first);
            to.add(len - WIDTH)
                .cast::<[u8; WIDTH]>()
                .write_unaligned(*last);
            specials::<false>(first) | specials::<false>(last) == 0
        }
    }

    #[inline(always)]
    unsafe fn copy_medium(self, text: Ascii<'_>, to: *mut u8) -> bool {
        let text = text.text();
        let mut found = 0;
        // SAFETY: all blocks are within the string, and each is copied to its place.
        unsafe {
            let copy = |at: usize| {
                let block = &*text.as_ptr().add(at).cast::<[u8; WIDTH]>();
                to.add(at).cast::<[u8; WIDTH]>().write_unaligned(*block);
                specials::<false>(block)
            };
            let last = text.len() - WIDTH;
            let mut at = 0;
            while at < last {
                found |= copy(at);
                at += WIDTH;
            }
            found | copy(last) == 0
        }
    }

    #[inline(never)]
    fn call<O: Operation>(self, operation: O) -> O::Output {
        operation.run(self)
    }
}

/// Returns true if two slices are equal. Both must have the same length, which is less than 8. Unlike `==`, this does not call `memcmp`.
#[inline(always)]
fn short_equal(one: &[u8], other: &[u8]) -> bool {
    let half = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    if let (Some(a), Some(b), Some(c), Some(d)) = (
        one.first_chunk(),
        one.last_chunk(),
        other.first_chunk(),
        other.last_chunk(),
    ) {
        return (half(a) ^ half(c)) | (half(b) ^ half(d)) == 0;
    }
    one.iter()
        .zip(other)
        .fold(0, |all, (one, other)| all | (one ^ other))
        == 0
}

/// Returns the first 8 bytes as a little-endian number.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |&bytes| u64::from_le_bytes(bytes))
}
