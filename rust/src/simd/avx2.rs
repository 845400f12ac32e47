//! The [`Engine`] with AVX2: it searches 32 or 64 bytes at a time.
//!
//! The basic idea is simple: compare 64 bytes with `"`, `\` and LF, and keep one bit per byte. A few operations on a `u64` then
//! answer questions about the whole block, such as which bytes are within strings. (Bit 0 is on the left here.)
//!
//! ```text
//! bytes                { "a":"b\"c" }
//! quotes               ..1.1.1..1.1..
//! backslashes          ........1.....
//! escaped              .........1....   the byte after an odd number of backslashes
//! quotes & !escaped    ..1.1.1....1..   the quotes that open or close a string
//! parity of these      ..11..11111...   the bytes within strings
//! ```
//!
//! All functions are inlined into [`super::run_avx2`], the only function that is compiled for AVX2. A value of [`Avx2`] proves that the
//! processor has AVX2. Each `SAFETY` comment below relies on this.

use std::arch::x86_64::{
    __m128i, __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256,
    _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_set_m128i,
    _mm256_storeu_si256, _mm256_testz_si256, _mm256_xor_si256, _mm_and_si128, _mm_cmpeq_epi8,
    _mm_cmpgt_epi8, _mm_cvtepu8_epi16, _mm_cvtepu8_epi32, _mm_loadu_si128, _mm_movemask_epi8,
    _mm_or_si128, _mm_packus_epi16, _mm_packus_epi32, _mm_set1_epi32, _mm_set1_epi8,
    _mm_shuffle_epi8, _mm_srli_epi32, _mm_srli_si128, _mm_storel_epi64, _mm_storeu_si128,
    _mm_storeu_si32, _mm_xor_si128,
};

use super::plain::last_special;
use super::steps::{SHUFFLES, STEPS, WINDOW};
use super::{escape_len, Ascii, Engine, Operation, Plain, Unit};

/// Proves that the processor has AVX2, and the other features that [`super::run_avx2`] requires. Only this function creates a value of this
/// type.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// # Safety
    ///
    /// The processor must have all features that [`super::run_avx2`] requires.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        Self(())
    }
}

const WIDTH: usize = 32;

/// Returns the 32 bytes of `data` that begin at `at`; `None` if fewer are left.
#[inline(always)]
fn chunk(data: &[u8], at: usize) -> Option<&[u8; WIDTH]> {
    if data.len() < WIDTH || at > data.len() - WIDTH {
        return None;
    }
    // SAFETY: `at + 32` is at most the length (checked above), and an array of bytes needs no alignment.
    Some(unsafe { &*data.as_ptr().add(at).cast() })
}

#[inline(always)]
fn load(_: Avx2, data: &[u8; WIDTH]) -> __m256i {
    // SAFETY: `data` is a reference to 32 bytes; the instruction needs no alignment. A value of `Avx2` proves that the processor has AVX2.
    unsafe { _mm256_loadu_si256(data.as_ptr().cast()) }
}

/// Returns a mask of the bytes `"`, `\` and below 0x20, one bit per byte.
#[inline(always)]
fn special_mask(engine: Avx2, data: &[u8; WIDTH]) -> u32 {
    let bytes = load(engine, data);
    // SAFETY: a value of `Avx2` proves that the processor has AVX2. These instructions only use registers.
    unsafe {
        let quote = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(0x22));
        let backslash = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(0x5c));
        let control = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);
        let found = _mm256_or_si256(_mm256_or_si256(quote, backslash), control);
        mask(engine, found)
    }
}

/// The half of a vector.
const HALF: usize = WIDTH / 2;

/// Shuffles for [`_mm_shuffle_epi8`]: the 16 bytes from index n on are the shuffle that moves a vector down by n bytes, towards byte 0, and
/// fills the rest with zeros.
static ORDER: [u8; 32] = {
    let mut order = [0x80; 32];
    let mut at = 0;
    while at < 16 {
        #[allow(clippy::cast_possible_truncation)] // The index is below 16.
        let index = at as u8;
        order[at] = index;
        at += 1;
    }
    order
};

/// Returns the bytes of an ASCII string that a JSON string must escape, as bytes other than 0.
#[inline(always)]
fn half_specials(_: Avx2, bytes: __m128i) -> __m128i {
    // SAFETY: a value of `Avx2` proves that the processor has AVX2. These instructions only use registers.
    unsafe {
        // With bit 1 flipped, `"` and the bytes below 0x20 are the bytes up to 0x20.
        let flipped = _mm_xor_si128(bytes, _mm_set1_epi8(2));
        let controls = _mm_cmpgt_epi8(_mm_set1_epi8(0x21), flipped);
        let backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x5c));
        _mm_or_si128(controls, backslashes)
    }
}

/// Does the same as [`half_specials`] for a whole vector.
#[inline(always)]
fn ascii_specials(_: Avx2, bytes: __m256i) -> __m256i {
    // SAFETY: a value of `Avx2` proves that the processor has AVX2. These instructions only use registers.
    unsafe {
        let flipped = _mm256_xor_si256(bytes, _mm256_set1_epi8(2));
        let controls = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x21), flipped);
        let backslashes = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(0x5c));
        _mm256_or_si256(controls, backslashes)
    }
}

/// Returns the high bit of each byte. After a comparison, the bit is set in the bytes that were equal. In text, it is set in the bytes that
/// are not ASCII.
#[inline(always)]
fn mask(_: Avx2, bytes: __m256i) -> u32 {
    // SAFETY: a value of `Avx2` proves that the processor has AVX2. This instruction only uses registers.
    #[allow(clippy::cast_sign_loss)]
    unsafe {
        _mm256_movemask_epi8(bytes) as u32
    }
}

#[inline(always)]
fn or(_: Avx2, one: __m256i, other: __m256i) -> __m256i {
    // SAFETY: a value of `Avx2` proves that the processor has AVX2. This instruction only uses registers.
    unsafe { _mm256_or_si256(one, other) }
}

#[inline(always)]
fn is_zero(_: Avx2, bytes: __m256i) -> bool {
    // SAFETY: a value of `Avx2` proves that the processor has AVX2. This instruction only uses registers.
    unsafe { _mm256_testz_si256(bytes, bytes) == 1 }
}

/// Returns the exclusive or of two blocks: each byte that is equal in both is zero.
#[inline(always)]
fn differing(engine: Avx2, one: &[u8; WIDTH], other: &[u8; WIDTH]) -> __m256i {
    let (one, other) = (load(engine, one), load(engine, other));
    // SAFETY: a value of `Avx2` proves that the processor has AVX2. This instruction only uses registers.
    unsafe { _mm256_xor_si256(one, other) }
}

/// Three masks of a block of 64 bytes, one bit per byte.
struct Bits {
    quotes: u64,
    backslashes: u64,
    feeds: u64,
}

/// Returns the 64 bytes of `data` that begin at `at`. Beyond the end of the data, the block is filled with LFs, which stop every search.
#[inline(always)]
fn block(data: &[u8], at: usize) -> [[u8; WIDTH]; 2] {
    match (chunk(data, at), chunk(data, at + WIDTH)) {
        (Some(low), Some(high)) => [*low, *high],
        _ => last_block(data.get(at..).unwrap_or_default()),
    }
}

/// Copies the last bytes of the data (fewer than 64) into a block of LFs.
#[cold]
#[inline(never)]
fn last_block(rest: &[u8]) -> [[u8; WIDTH]; 2] {
    let mut bytes = [[b'\n'; WIDTH]; 2];
    for (to, from) in bytes.iter_mut().flatten().zip(rest) {
        *to = *from;
    }
    bytes
}

/// Returns a mask of the bytes in a block that equal `byte`.
#[inline(always)]
fn equal(engine: Avx2, block: &[__m256i; 2], byte: u8) -> u64 {
    let mask = |bytes| {
        // SAFETY: a value of `Avx2` proves that the processor has AVX2. These instructions only use registers.
        #[allow(clippy::cast_possible_wrap)]
        let found = unsafe { _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8)) };
        u64::from(mask(engine, found))
    };
    mask(block[0]) | mask(block[1]) << 32
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

    /// Returns a mask of the escaped bytes, which follow an odd number of backslashes. `carry` must be 1 if the first byte of this block is
    /// escaped. The function updates it for the first byte of the next block.
    #[inline(always)]
    fn escaped(&self, carry: &mut u64) -> u64 {
        // This is simdjson's algorithm. Consider a run of backslashes that begins at an odd bit. Adding 1 at its first bit carries through
        // the run to the bit after it. The parity of that bit shows whether the run's length is odd. There is no branch for blocks without
        // a backslash, because the processor would mispredict it too often in text.
        let backslashes = self.backslashes & !*carry;
        let follows = backslashes << 1 | *carry;
        let odd_starts = backslashes & !EVEN & !follows;
        let (sum, overflow) = odd_starts.overflowing_add(backslashes);
        *carry = u64::from(overflow);
        (EVEN ^ (sum << 1)) & follows
    }
}

/// The bits 0, 2, 4, …, 62.
const EVEN: u64 = 0x5555_5555_5555_5555;

/// The masks of the last block that [`string_end`](Engine::string_end) loaded. A block often contains several short strings, so the next
/// call often finds its answer here.
#[derive(Debug, Default)]
pub struct Ahead {
    /// The index in the data at which the block begins.
    base: usize,
    /// The index after the block.
    end: usize,
    /// A mask of the quotes that are not escaped, and of the LFs.
    stops: u64,
    /// A mask of all backslashes.
    backslashes: u64,
    /// 1 if the first byte after the block is escaped, otherwise 0.
    carry: u64,
}

impl Ahead {
    /// Loads the block that begins at `base`.
    #[inline(always)]
    fn look(&mut self, engine: Avx2, data: &[u8], base: usize) {
        let bits = Bits::of(engine, &load_block(engine, data, base));
        self.base = base;
        self.end = base + 64;
        self.stops = bits.quotes & !bits.escaped(&mut self.carry) | bits.feeds;
        self.backslashes = bits.backslashes;
    }
}

/// Returns a mask in which bit i is set if an odd number of the bits 0 to i are set. For the quotes of a block, the mask marks the opening
/// quotes and the bytes within strings.
#[inline(always)]
fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// The number of bytes in a vector of four lanes.
const LANES: usize = 16;

/// Decodes the next characters of `bytes` and writes them to `to`: up to four, or 12 if the next 12 bytes are ASCII. Bit i of `ends` is set if
/// byte i is the last byte of a character. Returns how many bytes and how many characters it decoded.
///
/// # Safety
///
/// `to` must have room for four units, or for 12 if the next 12 bytes are ASCII. A unit must have room for each character.
#[inline(always)]
unsafe fn decode_step<U: Unit>(_: Avx2, bytes: __m128i, ends: u32, to: *mut U) -> (usize, usize) {
    const ALL: u32 = (1 << WINDOW) - 1;
    // SAFETY: the caller guarantees the room. A value of `Avx2` proves that the processor has AVX2.
    unsafe {
        if ends & ALL == ALL {
            match size_of::<U>() {
                1 => {
                    _mm_storel_epi64(to.cast(), bytes);
                    _mm_storeu_si32(to.add(8).cast(), _mm_srli_si128(bytes, 8));
                }
                2 => {
                    let rest = _mm_cvtepu8_epi16(_mm_srli_si128(bytes, 8));
                    _mm_storeu_si128(to.cast(), _mm_cvtepu8_epi16(bytes));
                    _mm_storel_epi64(to.add(8).cast(), rest);
                }
                _ => {
                    let second = _mm_cvtepu8_epi32(_mm_srli_si128(bytes, 4));
                    let third = _mm_cvtepu8_epi32(_mm_srli_si128(bytes, 8));
                    _mm_storeu_si128(to.cast(), _mm_cvtepu8_epi32(bytes));
                    _mm_storeu_si128(to.add(4).cast(), second);
                    _mm_storeu_si128(to.add(8).cast(), third);
                }
            }
            return (WINDOW, WINDOW);
        }
        let step = STEPS[(ends & ALL) as usize];
        let shuffle = &SHUFFLES[usize::from(step.shuffle)];
        let lanes = _mm_shuffle_epi8(bytes, _mm_loadu_si128(shuffle.as_ptr().cast()));
        // Clear the mark of a first byte of three, 1110xxxx: its bit 5 is where a byte that continues a character has data. The third byte
        // from the end has bit 6 only if it is such a first byte.
        let marks = _mm_and_si128(lanes, _mm_set1_epi32(0x40_0000));
        let lanes = _mm_xor_si128(lanes, _mm_srli_epi32(marks, 1));
        let bits = |mask| _mm_and_si128(lanes, _mm_set1_epi32(mask));
        let low = _mm_or_si128(bits(0x7f), _mm_srli_epi32(bits(0x3f00), 2));
        let high = _mm_or_si128(
            _mm_srli_epi32(bits(0x3f_0000), 4),
            _mm_srli_epi32(bits(0x700_0000), 6),
        );
        let characters = _mm_or_si128(low, high);
        let narrow = _mm_packus_epi32(characters, characters);
        match size_of::<U>() {
            1 => _mm_storeu_si32(to.cast(), _mm_packus_epi16(narrow, narrow)),
            2 => _mm_storel_epi64(to.cast(), narrow),
            _ => _mm_storeu_si128(to.cast(), characters),
        }
        (step.bytes.into(), step.characters.into())
    }
}

impl Engine for Avx2 {
    type Ahead = Ahead;

    #[inline(always)]
    fn string_end(self, ahead: &mut Ahead, data: &[u8], at: usize) -> (usize, bool) {
        // The byte at `at` follows an opening quote, so it is not escaped: the block may begin here.
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
            if in_string != 0 && quotes | bits.feeds == 0 {
                // The whole block lies within one string, as most blocks do.
                base += 64;
                continue;
            }
            let strings = parity(quotes) ^ in_string;
            if bits.backslashes & !strings != 0 {
                // A backslash outside of a string is invalid JSON. The masks took it for an escape, so they are wrong after it.
                return Plain.container_end(data, at);
            }
            in_string = 0_u64.wrapping_sub(strings >> 63);
            // Setting bit 5 turns `[` into `{` and `]` into `}`, so two comparisons find all four brackets.
            // SAFETY: a value of `Avx2` proves that the processor has AVX2. These instructions only use registers.
            let lower = block.map(|half| unsafe { _mm256_or_si256(half, _mm256_set1_epi8(0x20)) });
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
        last_special(data, at).0
    }

    #[inline(always)]
    fn special_ascii(self, data: &[u8], mut at: usize) -> (usize, bool) {
        let mut high = 0;
        while let Some(bytes) = chunk(data, at) {
            let found = special_mask(self, bytes);
            let here = mask(self, load(self, bytes));
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
        let (end, ascii) = last_special(data, at);
        (end, ascii && high == 0)
    }

    #[inline(always)]
    fn valid_end(self, data: &[u8], mut at: usize) -> Option<(usize, bool)> {
        let mut high = 0;
        while let Some(bytes) = chunk(data, at) {
            let mut found = special_mask(self, bytes);
            let here = mask(self, load(self, bytes));
            // Where the next vector begins: after the last escape that begins in this one.
            let mut next = WIDTH;
            while found != 0 {
                let place = found.trailing_zeros() as usize;
                if bytes[place] == b'"' {
                    let before = (found & found.wrapping_neg()) - 1;
                    return Some((at + place, high | (here & before) == 0));
                }
                let after = place + escape_len(data, at + place)?;
                if after >= WIDTH {
                    next = after;
                    break;
                }
                found &= u32::MAX << after;
            }
            high |= here;
            at += next;
        }
        let (end, ascii) = Plain.valid_end(data, at)?;
        Some((end, ascii && high == 0))
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
            // SAFETY: both slices have `part.len() = last + 32` bytes, and the calls below pass an `at` of at most `last`.
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

    const WIDTH: usize = WIDTH;

    #[inline(always)]
    #[allow(clippy::cast_possible_wrap)] // The constants keep their bits as an `i8`.
    unsafe fn copy<const UTF8: bool>(self, data: &[u8], at: usize, to: *mut u8) -> Option<u64> {
        let vector = load(self, chunk(data, at)?);
        // SAFETY: the caller guarantees the room. A value of `Avx2` proves that the processor has AVX2.
        let mut found = unsafe {
            _mm256_storeu_si256(to.cast(), vector);
            // With bit 1 flipped, `"` and the bytes below 0x20 are the bytes up to 0x20.
            let flipped = _mm256_xor_si256(vector, _mm256_set1_epi8(2));
            let controls =
                _mm256_cmpeq_epi8(_mm256_min_epu8(flipped, _mm256_set1_epi8(0x20)), flipped);
            let backslashes = _mm256_cmpeq_epi8(vector, _mm256_set1_epi8(0x5c));
            _mm256_or_si256(controls, backslashes)
        };
        if UTF8 {
            // SAFETY: a value of `Avx2` proves that the processor has AVX2. These instructions only use registers.
            let first = unsafe { _mm256_cmpeq_epi8(vector, _mm256_set1_epi8(0xe2_u8 as i8)) };
            let third = chunk(data, at + 2).map_or(first, |third| {
                let third = load(self, third);
                // SAFETY: as above. The third byte is 0xa8 or 0xa9.
                unsafe {
                    let even = _mm256_and_si256(third, _mm256_set1_epi8(0xfe_u8 as i8));
                    _mm256_cmpeq_epi8(even, _mm256_set1_epi8(0xa8_u8 as i8))
                }
            });
            // SAFETY: as above.
            found = or(self, found, unsafe { _mm256_and_si256(first, third) });
        }
        Some(mask(self, found).into())
    }

    /// A string of up to 16 bytes is moved to the start of a vector. The bits of the bytes before the string are shifted out of the mask.
    #[inline(always)]
    #[allow(clippy::cast_sign_loss)] // The mask has 16 bits, so it is not negative.
    unsafe fn copy_short(self, text: Ascii<'_>, to: *mut u8) -> bool {
        let (len, end) = text.end();
        // SAFETY: each load is within the string and the bytes before it. The caller guarantees the room for each store. A value of `Avx2`
        // proves that the processor has AVX2.
        unsafe {
            let last = _mm_loadu_si128(end.sub(HALF).cast());
            if len <= HALF {
                let before = HALF - len;
                let order = _mm_loadu_si128(ORDER.as_ptr().add(before).cast());
                _mm_storeu_si128(to.cast(), _mm_shuffle_epi8(last, order));
                let found = _mm_movemask_epi8(half_specials(self, last)) as u32;
                return found >> before == 0;
            }
            let first = _mm_loadu_si128(end.sub(len).cast());
            _mm_storeu_si128(to.cast(), first);
            _mm_storeu_si128(to.add(len - HALF).cast(), last);
            is_zero(self, ascii_specials(self, _mm256_set_m128i(last, first)))
        }
    }

    #[inline(always)]
    unsafe fn copy_medium(self, text: Ascii<'_>, to: *mut u8) -> bool {
        let (text, len) = (text.text().as_ptr(), text.text().len());
        // SAFETY: each load is within the string, and each store within the room for it. A value of `Avx2` proves that the processor has
        // AVX2.
        unsafe {
            let copy = |at: usize| {
                let block = _mm256_loadu_si256(text.add(at).cast());
                _mm256_storeu_si256(to.add(at).cast(), block);
                ascii_specials(self, block)
            };
            let mut found = or(self, copy(0), copy(len - WIDTH));
            if len > 2 * WIDTH {
                found = or(self, found, copy(WIDTH));
            }
            is_zero(self, found)
        }
    }

    #[inline(always)]
    unsafe fn decode<U: Unit>(self, text: &str, to: *mut U) -> (usize, usize) {
        /// The number of bytes after a block that its last step may load.
        const AFTER: usize = LANES - WINDOW;
        let text = text.as_bytes();
        let (mut at, mut count) = (0, 0);
        while let Some(block) = chunk(text, at).filter(|_| at + WIDTH + AFTER <= text.len()) {
            // SAFETY: a value of `Avx2` proves that the processor has AVX2. The last step in a block begins at most 20 bytes after the
            // block's start, so its 16 bytes are within the text (checked above). These bytes begin with at least four characters that are
            // not written yet, or with 12 ASCII characters, so `to` has room for as many units as the step writes.
            unsafe {
                let starts = _mm256_cmpgt_epi8(load(self, block), _mm256_set1_epi8(-65));
                // A character ends before the next one starts. The last bit is always 0: the next block decodes a character that ends there.
                let mut ends = mask(self, starts) >> 1;
                // A pointer from `block` must not be used to load the bytes after it.
                let start = text.as_ptr().add(at);
                let mut used = 0;
                while used <= WIDTH - WINDOW {
                    let bytes = _mm_loadu_si128(start.add(used).cast());
                    let (bytes, units) = decode_step(self, bytes, ends, to.add(count));
                    used += bytes;
                    ends >>= bytes;
                    count += units;
                }
                at += used;
            }
        }
        (at, count)
    }

    #[inline(always)]
    fn call<O: Operation>(self, operation: O) -> O::Output {
        // SAFETY: a value of `Avx2` proves that the processor has all features that `run_avx2` requires.
        unsafe { super::run_avx2(operation) }
    }
}
