//! Searches and comparisons of bytes, in vectors where the processor has them.
//!
//! An [`Operation`] is written once, over any [`Engine`], and run by [`run`], which picks the engine: [`Level::Fast`] takes AVX2 if
//! the processor has it, [`Level::Plain`] and everything else words of 8 bytes. All engines give the same answers; the
//! tests compare them.
//!
//! Knows bytes, and which of them end a run within a JSON string. The only file with `unsafe` beside `ffi`.
#![allow(unsafe_code)]

/// How much of the processor to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Words of 8 bytes, on every processor.
    Plain,
    /// The widest vectors that the processor has, chosen at run time.
    Fast,
}

/// The searches that a scanner is made of.
pub trait Engine: Copy {
    /// Index of the first `"`, `\` or byte below 0x20 of `data` from `at` on; `data.len()` if there is none.
    fn special(self, data: &[u8], at: usize) -> usize;

    /// As [`special`](Self::special), and whether all bytes before it are ASCII.
    fn special_ascii(self, data: &[u8], at: usize) -> (usize, bool);

    /// Whether `data` from `at` on begins with `part`. More of `part` may be read: `part_len` bytes of it count.
    fn begins(self, data: &[u8], at: usize, part: &[u8], part_len: usize) -> bool;
}

/// Work to be done by some [`Engine`]. Implementations say `#[inline(always)]`, so that vectors stay in registers.
pub trait Operation {
    /// What comes of it.
    type Output;
    /// Does it.
    fn run<E: Engine>(self, engine: E) -> Self::Output;
}

/// Does `operation` at `level`.
#[inline]
pub fn run<O: Operation>(level: Level, operation: O) -> O::Output {
    #[cfg(target_arch = "x86_64")]
    if level == Level::Fast && is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { run_avx2(operation) };
    }
    let _ = level;
    operation.run(Plain)
}

/// # Safety
///
/// The processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn run_avx2<O: Operation>(operation: O) -> O::Output {
    operation.run(avx2::Avx2::new())
}

/// Words of 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The high bit of each byte of `word` that is special; above the lowest such byte also of some that are not.
#[inline(always)]
fn special_bytes(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let found = (quote.wrapping_sub(ONES) & !quote)
        | (backslash.wrapping_sub(ONES) & !backslash)
        | (word.wrapping_sub(ONES * 0x20) & !word);
    found & HIGHS
}

#[inline(always)]
fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

impl Engine for Plain {
    #[inline(always)]
    fn special(self, data: &[u8], mut at: usize) -> usize {
        while let Some(&word) = data.get(at..).and_then(<[u8]>::first_chunk) {
            let found = special_bytes(u64::from_le_bytes(word));
            if found != 0 {
                return at + (found.trailing_zeros() / 8) as usize;
            }
            at += 8;
        }
        while at < data.len() && !is_special(data[at]) {
            at += 1;
        }
        at.min(data.len())
    }

    #[inline(always)]
    fn special_ascii(self, data: &[u8], mut at: usize) -> (usize, bool) {
        let mut ascii = true;
        while let Some(&word) = data.get(at..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_le_bytes(word);
            let found = special_bytes(word);
            if found != 0 {
                let before = (found & found.wrapping_neg()) - 1;
                ascii &= word & before & HIGHS == 0;
                return (at + (found.trailing_zeros() / 8) as usize, ascii);
            }
            ascii &= word & HIGHS == 0;
            at += 8;
        }
        while at < data.len() && !is_special(data[at]) {
            ascii &= data[at].is_ascii();
            at += 1;
        }
        (at.min(data.len()), ascii)
    }

    #[inline(always)]
    fn begins(self, data: &[u8], at: usize, part: &[u8], part_len: usize) -> bool {
        let Some(data) = data.get(at..at + part_len) else {
            return false;
        };
        let part = &part[..part_len];
        let (Some(last), Some(part_last)) = (data.last_chunk::<8>(), part.last_chunk::<8>()) else {
            return data == part;
        };
        let words = data.chunks_exact(8).zip(part.chunks_exact(8));
        let differing = |(one, other): (&[u8], &[u8])| word(one) ^ word(other);
        let differing = words.fold(0, |all, pair| all | differing(pair));
        differing | (word(last) ^ word(part_last)) == 0
    }
}

#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |&bytes| u64::from_le_bytes(bytes))
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8, _mm256_testz_si256, _mm256_xor_si256,
    };

    use super::{Engine, Plain};

    /// A proof that the processor has AVX2: only [`super::run_avx2`] makes one.
    #[derive(Clone, Copy, Debug)]
    pub struct Avx2(());

    impl Avx2 {
        /// # Safety
        ///
        /// The processor must have AVX2.
        #[inline(always)]
        pub unsafe fn new() -> Self {
            Self(())
        }
    }

    const WIDTH: usize = 32;

    #[inline(always)]
    fn load(_: Avx2, data: &[u8; WIDTH]) -> __m256i {
        // SAFETY: `data` is 32 bytes to read, at any alignment, and the processor has AVX2.
        unsafe { _mm256_loadu_si256(data.as_ptr().cast()) }
    }

    #[inline(always)]
    fn special_mask(engine: Avx2, data: &[u8; WIDTH]) -> u32 {
        let bytes = load(engine, data);
        // SAFETY: the processor has AVX2; these work on registers.
        unsafe {
            let quote = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(0x22));
            let backslash = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(0x5c));
            let control = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);
            let found = _mm256_or_si256(_mm256_or_si256(quote, backslash), control);
            #[allow(clippy::cast_sign_loss)]
            let mask = _mm256_movemask_epi8(found) as u32;
            mask
        }
    }

    /// One bit for each byte that is not ASCII.
    #[inline(always)]
    fn high_mask(engine: Avx2, data: &[u8; WIDTH]) -> u32 {
        let bytes = load(engine, data);
        // SAFETY: the processor has AVX2; this works on registers.
        #[allow(clippy::cast_sign_loss)]
        unsafe {
            _mm256_movemask_epi8(bytes) as u32
        }
    }

    /// One bit for each byte that is the same in both.
    #[inline(always)]
    fn equal_mask(engine: Avx2, one: &[u8; WIDTH], other: &[u8; WIDTH]) -> u32 {
        let (one, other) = (load(engine, one), load(engine, other));
        // SAFETY: the processor has AVX2; these work on registers.
        #[allow(clippy::cast_sign_loss)]
        unsafe {
            _mm256_movemask_epi8(_mm256_cmpeq_epi8(one, other)) as u32
        }
    }

    #[inline(always)]
    fn or(_: Avx2, one: __m256i, other: __m256i) -> __m256i {
        // SAFETY: the processor has AVX2; this works on registers.
        unsafe { _mm256_or_si256(one, other) }
    }

    #[inline(always)]
    fn is_zero(_: Avx2, bytes: __m256i) -> bool {
        // SAFETY: the processor has AVX2; this works on registers.
        unsafe { _mm256_testz_si256(bytes, bytes) == 1 }
    }

    /// The bytes of two places that differ.
    #[inline(always)]
    fn differing(engine: Avx2, one: &[u8; WIDTH], other: &[u8; WIDTH]) -> __m256i {
        let (one, other) = (load(engine, one), load(engine, other));
        // SAFETY: the processor has AVX2; this works on registers.
        unsafe { _mm256_xor_si256(one, other) }
    }

    impl Engine for Avx2 {
        #[inline(always)]
        fn special(self, data: &[u8], mut at: usize) -> usize {
            while let Some(bytes) = data.get(at..).and_then(<[u8]>::first_chunk) {
                let found = special_mask(self, bytes);
                if found != 0 {
                    return at + found.trailing_zeros() as usize;
                }
                at += WIDTH;
            }
            Plain.special(data, at)
        }

        #[inline(always)]
        fn special_ascii(self, data: &[u8], mut at: usize) -> (usize, bool) {
            let mut ascii = true;
            while let Some(bytes) = data.get(at..).and_then(<[u8]>::first_chunk) {
                let found = special_mask(self, bytes);
                let high = high_mask(self, bytes);
                if found != 0 {
                    let before = (found & found.wrapping_neg()) - 1;
                    return (
                        at + found.trailing_zeros() as usize,
                        ascii && high & before == 0,
                    );
                }
                ascii &= high == 0;
                at += WIDTH;
            }
            let (end, rest) = Plain.special_ascii(data, at);
            (end, ascii && rest)
        }

        #[inline(always)]
        fn begins(self, data: &[u8], at: usize, part: &[u8], part_len: usize) -> bool {
            let Some(here) = data.get(at..) else {
                return false;
            };
            if part_len < WIDTH {
                if let (Some(one), Some(other)) = (here.first_chunk(), part.first_chunk()) {
                    let same = equal_mask(self, one, other);
                    return !same & ((1 << part_len) - 1) == 0;
                }
                return Plain.begins(data, at, part, part_len);
            }
            let Some(here) = here.get(..part_len) else {
                return false;
            };
            let part = &part[..part_len];
            let (Some(last), Some(part_last)) = (here.last_chunk(), part.last_chunk()) else {
                return false;
            };
            let mut all = differing(self, last, part_last);
            let pairs = here.chunks_exact(WIDTH).zip(part.chunks_exact(WIDTH));
            for (one, other) in pairs {
                if let (Some(one), Some(other)) = (one.first_chunk(), other.first_chunk()) {
                    all = or(self, all, differing(self, one, other));
                }
            }
            is_zero(self, all)
        }
    }
}
