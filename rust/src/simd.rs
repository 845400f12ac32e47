//! Searches and comparisons of bytes, in vectors where the processor has them.
//!
//! An [`Operation`] is written once, over any [`Engine`], and run by [`run`], which picks the engine: [`Level::Fast`] takes AVX2 if
//! the processor has it, [`Level::Plain`] and everything else words of 8 bytes. All engines give the same answers; the
//! tests compare them.
//!
//! Knows bytes, and which of them end a run within a JSON string. It and its engines are all that has `unsafe` beside `ffi`.
//!
//! [`Operation`]: crate::simd::Operation
//! [`Engine`]: crate::simd::Engine
//! [`run`]: crate::simd::run
//! [`Level::Fast`]: crate::simd::Level::Fast
//! [`Level::Plain`]: crate::simd::Level::Plain
#![allow(unsafe_code)]
// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
mod avx2;

/// How much of the processor to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Words of 8 bytes, on every processor.
    Plain,
    /// The widest vectors that the processor has, chosen at run time.
    Fast,
}

/// Most bytes that [`Engine::line_feeds`] looks at in one call.
pub const PAGE: usize = 2048;

/// The searches that a scanner is made of.
pub trait Engine: Copy {
    /// What is known of the bytes around the last string, so that they need not be looked at again for the next.
    type Ahead: Default;

    /// The end of the string whose contents begin at `at`: its closing quote, or the LF before it, or the end of the
    /// data; and whether there is a backslash before. The opening quote does not follow a backslash. `ahead` is of the same
    /// data and of no later place.
    fn string_end(self, ahead: &mut Self::Ahead, data: &[u8], at: usize) -> (usize, bool);

    /// Behind the array or object whose first bracket is at `at`. Its brackets are counted, its strings passed over.
    ///
    /// # Errors
    ///
    /// Where the LF is that comes before its end, or the end of the data.
    fn container_end(self, data: &[u8], at: usize) -> Result<usize, usize>;

    /// Index of the first `"`, `\` or byte below 0x20 of `data` from `at` on; `data.len()` if there is none.
    fn special(self, data: &[u8], at: usize) -> usize;

    /// As [`special`](Self::special), and whether all bytes before it are ASCII.
    fn special_ascii(self, data: &[u8], at: usize) -> (usize, bool);

    /// Whether `data` from `at` on begins with `part`.
    fn begins(self, data: &[u8], at: usize, part: &[u8]) -> bool;

    /// Writes the indexes of the LFs of `data`, which are [`PAGE`] bytes at most, to `found`; returns their number, and
    /// whether all of `data` is ASCII.
    fn line_feeds(self, data: &[u8], found: &mut [u16; PAGE]) -> (usize, bool);

    /// Index of the first LF of `data`, or its length; and whether all bytes before it are ASCII.
    fn line_end(self, data: &[u8]) -> (usize, bool);

    /// Does `operation` in a function of its own, so that what it needs does not weigh on the caller.
    fn call<O: Operation>(self, operation: O) -> O::Output;
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
    if level == Level::Fast
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has AVX2 and the bit instructions of its time.
        return unsafe { run_avx2(operation) };
    }
    let _ = level;
    operation.run(Plain)
}

/// # Safety
///
/// The processor must have AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
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
    let quote = word ^ (ONES * 0x22);
    let backslash = word ^ (ONES * 0x5c);
    let found = (quote.wrapping_sub(ONES) & !quote)
        | (backslash.wrapping_sub(ONES) & !backslash)
        | (word.wrapping_sub(ONES * 0x20) & !word);
    found & HIGHS
}

/// An index within a page.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn index(at: usize) -> u16 {
    debug_assert!(at < PAGE);
    at as u16
}

#[inline(always)]
fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

/// As [`Engine::special_ascii`], for the last bytes of the data.
#[cold]
#[inline(never)]
fn last_special(data: &[u8], at: usize) -> (usize, bool) {
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

    fn line_end(self, data: &[u8]) -> (usize, bool) {
        let end = memchr::memchr(b'\n', data).unwrap_or(data.len());
        (end, data[..end].is_ascii())
    }

    fn line_feeds(self, data: &[u8], found: &mut [u16; PAGE]) -> (usize, bool) {
        let mut count = 0;
        for (place, at) in found.iter_mut().zip(memchr::memchr_iter(b'\n', data)) {
            *place = index(at);
            count += 1;
        }
        (count, data.is_ascii())
    }

    #[inline(never)]
    fn call<O: Operation>(self, operation: O) -> O::Output {
        operation.run(self)
    }
}

/// Whether two slices of the same length, less than 8, are equal; without a call.
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

#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |&bytes| u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything that an engine finds in `data` from `at` on.
    struct All<'a> {
        data: &'a [u8],
        at: usize,
        part: &'a [u8],
    }

    #[derive(Debug, PartialEq, Eq)]
    struct Found {
        strings: Vec<(usize, bool)>,
        container: Result<usize, usize>,
        special: usize,
        special_ascii: (usize, bool),
        begins: bool,
        line_end: (usize, bool),
        line_feeds: (Vec<u16>, bool),
    }

    impl Operation for All<'_> {
        type Output = Found;

        #[inline(always)]
        fn run<E: Engine>(self, engine: E) -> Self::Output {
            let Self { data, at, part } = self;
            let mut ahead = E::Ahead::default();
            let mut strings = Vec::new();
            let mut next = Some(0);
            while let Some(start) = next {
                let (end, escaped) = engine.string_end(&mut ahead, data, start);
                strings.push((end, escaped));
                let rest = data.get(end + 1..).unwrap_or_default();
                let opens = |pair: &[u8]| pair[0] != b'\\' && pair[1] == b'"';
                let opening = rest.windows(2).position(opens);
                next = opening.map(|found| end + 1 + found + 2);
            }
            let page = &data[..data.len().min(PAGE)];
            let mut feeds = [0; PAGE];
            let (count, ascii) = engine.line_feeds(page, &mut feeds);
            Found {
                strings,
                container: engine.container_end(data, at),
                special: engine.special(data, at),
                special_ascii: engine.special_ascii(data, at),
                begins: engine.begins(data, at, part),
                line_end: engine.line_end(data),
                line_feeds: (feeds[..count].to_vec(), ascii),
            }
        }
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let pieces = [
            "\"",
            "\"",
            "\\",
            "\\",
            "\\\"",
            "\\\\",
            "\n",
            "\t",
            "{",
            "[",
            "}",
            "]",
            "é",
            ":",
            ",",
            "x",
            "a piece of text that is longer than one vector of bytes",
        ];
        let piece = prop_oneof![
            9 => proptest::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..40),
            1 => (0..140_usize).prop_map(|length| vec![b'x'; length]),
        ];
        proptest::collection::vec(piece, 0..50).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn all_engines_find_the_same(
            data in bytes(),
            at in any::<proptest::sample::Index>(),
            length in 0..100_usize,
            flip in proptest::option::of(any::<proptest::sample::Index>()),
        ) {
            let mut data = data;
            let at = at.index(data.len() + 1);
            data.insert(at, b'[');
            let mut part = data[at..].to_vec();
            part.truncate(length);
            if let Some(flip) = flip.filter(|_| !part.is_empty()) {
                let place = flip.index(part.len());
                part[place] ^= 1;
            }
            let [plain, fast] = [Level::Plain, Level::Fast]
                .map(|level| run(level, All { data: &data, at, part: &part }));
            prop_assert_eq!(plain.begins, data[at..].starts_with(&part));
            let special = data[at..].iter().position(|&byte| is_special(byte));
            let special = special.map_or(data.len(), |found| at + found);
            prop_assert_eq!(plain.special, special);
            prop_assert_eq!(plain.special_ascii, (special, data[at..special].is_ascii()));
            prop_assert_eq!(plain, fast);
        }
    }
}
