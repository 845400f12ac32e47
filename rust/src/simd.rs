//! Searches and comparisons of bytes, in vectors where the processor has them.
//!
//! An [`Operation`] is written once, over any [`Engine`], and run by [`run`], which picks the engine: [`Level::Fast`] takes AVX2 if
//! the processor has it, [`Level::Plain`] and everything else words of 8 bytes. All engines give the same answers; the
//! tests compare them.
//!
//! Knows bytes, and which of them end a run within a JSON string. The only file with `unsafe` beside `ffi`.
#![allow(unsafe_code)]
// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

/// How much of the processor to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Words of 8 bytes, on every processor.
    Plain,
    /// The widest vectors that the processor has, chosen at run time.
    Fast,
}

/// Most bytes that [`Engine::line_feeds`] looks at in one call.
pub const PAGE: usize = 4096;

/// The searches that a scanner is made of.
pub trait Engine: Copy {
    /// What is known of the bytes around the last string, so that they need not be looked at again for the next.
    type Ahead: Default;

    /// The end of the string whose contents begin at `at`: its closing quote, or the LF before it, or the end of the
    /// data; and whether there is a backslash before. `ahead` is of the same data and of no later place.
    fn string_end(self, ahead: &mut Self::Ahead, data: &[u8], at: usize) -> (usize, bool);

    /// Behind the array or object whose first bracket is at `at`. Its brackets are counted, its strings passed over.
    ///
    /// # Errors
    ///
    /// Where the LF is that comes before its end, or the end of the data.
    fn container_end(self, data: &[u8], at: usize) -> Result<usize, usize>;

    /// Index of the first `"`, `\` or byte below 0x20 of `data` from `at` on; `data.len()` if there is none.
    fn special(self, data: &[u8], at: usize) -> usize;

    /// As [`special`](Self::special), but what is near the end of the data may be missed.
    fn special_near(self, data: &[u8], at: usize) -> usize;

    /// As [`special_near`](Self::special_near), and whether all bytes before it are ASCII.
    fn special_near_ascii(self, data: &[u8], at: usize) -> (usize, bool);

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
    fn special(self, data: &[u8], at: usize) -> usize {
        let near = self.special_near(data, at);
        if near < data.len() {
            return near;
        }
        // The words began at `at`; less than one is left.
        let rest = data.len().saturating_sub(at) % 8;
        let rest = &data[data.len() - rest..];
        let found = rest.iter().position(|&byte| is_special(byte));
        data.len() - rest.len() + found.unwrap_or(rest.len())
    }

    #[inline(always)]
    fn special_near(self, data: &[u8], mut at: usize) -> usize {
        while let Some(&word) = data.get(at..).and_then(<[u8]>::first_chunk) {
            let found = special_bytes(u64::from_le_bytes(word));
            if found != 0 {
                return at + (found.trailing_zeros() / 8) as usize;
            }
            at += 8;
        }
        data.len()
    }

    #[inline(always)]
    fn special_near_ascii(self, data: &[u8], mut at: usize) -> (usize, bool) {
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
        (data.len(), high & HIGHS == 0)
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

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8, _mm256_testz_si256, _mm256_xor_si256,
    };

    use super::{index, Engine, Operation, Plain, PAGE};

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

    /// The 32 bytes of `data` from `at` on, if there are so many.
    #[inline(always)]
    fn chunk(data: &[u8], at: usize) -> Option<&[u8; WIDTH]> {
        if data.len() < WIDTH || at > data.len() - WIDTH {
            return None;
        }
        // SAFETY: `at + 32` is at most the length, and an array of bytes needs no alignment.
        Some(unsafe { &*data.as_ptr().add(at).cast() })
    }

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

    /// The high bit of each byte.
    #[inline(always)]
    fn mask(_: Avx2, bytes: __m256i) -> u32 {
        // SAFETY: the processor has AVX2; this works on registers.
        #[allow(clippy::cast_sign_loss)]
        unsafe {
            _mm256_movemask_epi8(bytes) as u32
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

    /// 64 bytes, one bit each.
    struct Bits {
        quotes: u64,
        backslashes: u64,
        feeds: u64,
    }

    /// The 64 bytes of `data` from `at` on, with LFs behind the end of the data.
    #[inline(always)]
    fn block(data: &[u8], at: usize) -> [[u8; WIDTH]; 2] {
        match (chunk(data, at), chunk(data, at + WIDTH)) {
            (Some(low), Some(high)) => [*low, *high],
            _ => last_block(data.get(at..).unwrap_or_default()),
        }
    }

    #[cold]
    #[inline(never)]
    fn last_block(rest: &[u8]) -> [[u8; WIDTH]; 2] {
        let mut bytes = [[b'\n'; WIDTH]; 2];
        for (to, from) in bytes.iter_mut().flatten().zip(rest) {
            *to = *from;
        }
        bytes
    }

    /// Which bytes of a block are `byte`.
    #[inline(always)]
    fn equal(_: Avx2, block: &[__m256i; 2], byte: u8) -> u64 {
        let mask = |bytes| {
            // SAFETY: the processor has AVX2; these work on registers.
            #[allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)]
            unsafe {
                _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8))) as u32
            }
        };
        u64::from(mask(block[0])) | u64::from(mask(block[1])) << 32
    }

    #[inline(always)]
    fn load_block(engine: Avx2, data: &[u8], at: usize) -> [__m256i; 2] {
        let [low, high] = block(data, at);
        [load(engine, &low), load(engine, &high)]
    }

    impl Bits {
        #[inline(always)]
        fn of(engine: Avx2, block: &[__m256i; 2]) -> Self {
            Self {
                quotes: equal(engine, block, b'"'),
                backslashes: equal(engine, block, b'\\'),
                feeds: equal(engine, block, b'\n'),
            }
        }

        /// Which bytes are escaped: each that follows an odd number of backslashes. `carry` says so of the first byte, and
        /// then of the first byte of the next block.
        #[inline(always)]
        fn escaped(&self, carry: &mut u64) -> u64 {
            if self.backslashes == 0 {
                return std::mem::take(carry);
            }
            // After simdjson: a run of backslashes that begins at an odd bit, added to, carries through it; where
            // it ends tells whether its length is odd.
            let backslashes = self.backslashes & !*carry;
            let follows = backslashes << 1 | *carry;
            let odd_starts = backslashes & !EVEN & !follows;
            let (sum, overflow) = odd_starts.overflowing_add(backslashes);
            *carry = u64::from(overflow);
            (EVEN ^ (sum << 1)) & follows
        }
    }

    /// Every other bit, from the lowest on.
    const EVEN: u64 = 0x5555_5555_5555_5555;

    /// The block that was looked at last.
    #[derive(Debug, Default)]
    pub struct Ahead {
        /// Where it begins.
        base: usize,
        /// Behind it.
        end: usize,
        /// Its quotes that are not escaped, and its LFs.
        stops: u64,
        backslashes: u64,
        /// Whether the first byte behind it is escaped.
        carry: u64,
    }

    impl Ahead {
        /// Looks at the block that begins at `base`.
        #[inline(always)]
        fn look(&mut self, engine: Avx2, data: &[u8], base: usize) {
            let bits = Bits::of(engine, &load_block(engine, data, base));
            self.base = base;
            self.end = base + 64;
            self.stops = bits.quotes & !bits.escaped(&mut self.carry) | bits.feeds;
            self.backslashes = bits.backslashes;
        }
    }

    /// Bit i is set if an odd number of the bits up to i are.
    #[inline(always)]
    fn parity(mut bits: u64) -> u64 {
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        bits
    }

    impl Engine for Avx2 {
        type Ahead = Ahead;

        #[inline(always)]
        fn string_end(self, ahead: &mut Ahead, data: &[u8], at: usize) -> (usize, bool) {
            // The byte at `at` follows a quote, so it is not escaped.
            if at >= ahead.end {
                ahead.carry = 0;
                ahead.look(self, data, at);
            }
            let skip = at - ahead.base;
            let stops = ahead.stops >> skip;
            let backslashes = ahead.backslashes >> skip;
            if stops != 0 {
                let before = (stops & stops.wrapping_neg()) - 1;
                return (
                    at + stops.trailing_zeros() as usize,
                    backslashes & before != 0,
                );
            }
            let mut backslashes = backslashes;
            loop {
                ahead.look(self, data, ahead.end);
                if ahead.stops != 0 {
                    let before = (ahead.stops & ahead.stops.wrapping_neg()) - 1;
                    let end = ahead.base + ahead.stops.trailing_zeros() as usize;
                    return (end, backslashes | (ahead.backslashes & before) != 0);
                }
                backslashes |= ahead.backslashes;
            }
        }

        #[inline(always)]
        fn container_end(self, data: &[u8], at: usize) -> Result<usize, usize> {
            let mut depth = 0;
            let (mut carry, mut in_string) = (0, 0);
            let mut base = at;
            loop {
                let block = load_block(self, data, base);
                let bits = Bits::of(self, &block);
                let quotes = bits.quotes & !bits.escaped(&mut carry);
                let strings = parity(quotes) ^ in_string;
                if bits.backslashes & !strings != 0 {
                    // Not an escape: what follows was read wrongly.
                    return Plain.container_end(data, at);
                }
                in_string = 0_u64.wrapping_sub(strings >> 63);
                // SAFETY: the processor has AVX2; these work on registers.
                let lower =
                    block.map(|half| unsafe { _mm256_or_si256(half, _mm256_set1_epi8(0x20)) });
                let opens = equal(self, &lower, b'{') & !strings;
                let closes = equal(self, &lower, b'}') & !strings;
                if bits.feeds != 0 || depth <= closes.count_ones() as usize {
                    let mut stops = opens | closes | bits.feeds;
                    while stops != 0 {
                        let bit = stops & stops.wrapping_neg();
                        let place = base + stops.trailing_zeros() as usize;
                        if opens & bit != 0 {
                            depth += 1;
                        } else if closes & bit != 0 {
                            depth -= 1;
                            if depth == 0 {
                                return Ok(place + 1);
                            }
                        } else {
                            return Err(place);
                        }
                        stops ^= bit;
                    }
                } else {
                    depth += opens.count_ones() as usize;
                    depth -= closes.count_ones() as usize;
                }
                base += 64;
            }
        }

        #[inline(always)]
        fn special(self, data: &[u8], mut at: usize) -> usize {
            while let Some(bytes) = chunk(data, at) {
                let found = special_mask(self, bytes);
                if found != 0 {
                    return at + found.trailing_zeros() as usize;
                }
                at += WIDTH;
            }
            Plain.special(data, at)
        }

        #[inline(always)]
        fn special_near(self, data: &[u8], mut at: usize) -> usize {
            while let Some(bytes) = chunk(data, at) {
                let found = special_mask(self, bytes);
                if found != 0 {
                    return at + found.trailing_zeros() as usize;
                }
                at += WIDTH;
            }
            data.len()
        }

        #[inline(always)]
        fn special_near_ascii(self, data: &[u8], mut at: usize) -> (usize, bool) {
            let mut high = 0;
            while let Some(bytes) = chunk(data, at) {
                let found = special_mask(self, bytes);
                let here = high_mask(self, bytes);
                if found != 0 {
                    let before = (found & found.wrapping_neg()) - 1;
                    return (
                        at + found.trailing_zeros() as usize,
                        high | (here & before) == 0,
                    );
                }
                high |= here;
                at += WIDTH;
            }
            (data.len(), high == 0)
        }

        #[inline(always)]
        fn begins(self, data: &[u8], at: usize, part: &[u8]) -> bool {
            let Some(last) = part.len().checked_sub(WIDTH) else {
                return Plain.begins(data, at, part);
            };
            let Some(here) = data.get(at..).and_then(|data| data.get(..part.len())) else {
                return false;
            };
            let differing = |at: usize| {
                // SAFETY: only called with `at <= last`, and both have `last + 32` bytes.
                let (one, other) = unsafe {
                    (
                        &*here.as_ptr().add(at).cast(),
                        &*part.as_ptr().add(at).cast(),
                    )
                };
                differing(self, one, other)
            };
            let mut all = differing(last);
            let mut place = 0;
            while place < last {
                all = or(self, all, differing(place));
                place += WIDTH;
            }
            is_zero(self, all)
        }

        #[inline(always)]
        fn line_end(self, data: &[u8]) -> (usize, bool) {
            let mut at = 0;
            let mut high = 0;
            while let (Some(low), Some(top)) = (chunk(data, at), chunk(data, at + WIDTH)) {
                let block = [load(self, low), load(self, top)];
                let feeds = equal(self, &block, b'\n');
                if feeds != 0 {
                    break;
                }
                high |= mask(self, or(self, block[0], block[1]));
                at += 2 * WIDTH;
            }
            let (rest, ascii) = Plain.line_end(&data[at..]);
            (at + rest, ascii && high == 0)
        }

        #[inline(always)]
        fn line_feeds(self, data: &[u8], found: &mut [u16; PAGE]) -> (usize, bool) {
            let (blocks, rest) = data.split_at(data.len() - data.len() % (2 * WIDTH));
            let mut count = 0;
            let mut high = 0;
            for (number, block) in blocks.chunks_exact(2 * WIDTH).enumerate() {
                let (Some(low), Some(top)) = (chunk(block, 0), chunk(block, WIDTH)) else {
                    break;
                };
                let block = [load(self, low), load(self, top)];
                let mut feeds = equal(self, &block, b'\n');
                high |= mask(self, or(self, block[0], block[1]));
                // Most blocks have one LF or none, and which of both cannot be predicted: the next place is written in any case.
                while {
                    found[count % PAGE] =
                        index(number * 2 * WIDTH + (feeds.trailing_zeros() as usize) % (2 * WIDTH));
                    count += usize::from(feeds != 0);
                    feeds &= feeds.wrapping_sub(1);
                    feeds != 0
                } {}
            }
            for (at, &byte) in rest.iter().enumerate() {
                if byte == b'\n' {
                    found[count % PAGE] = index(blocks.len() + at);
                    count += 1;
                }
            }
            (count, high == 0 && rest.is_ascii())
        }

        #[inline(always)]
        fn call<O: Operation>(self, operation: O) -> O::Output {
            // SAFETY: the processor has AVX2.
            unsafe { super::run_avx2(operation) }
        }
    }
}
