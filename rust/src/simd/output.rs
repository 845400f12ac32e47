//! [`Output`]: the buffer that JSON lines are written to. It copies strings 16 or 32 bytes at a time, and escapes them on the way.
//!
//! The basic idea is simple: a function first reserves the most bytes that it may write, and then writes without checking for
//! the end of the memory. It may write more than it keeps, which is how a few bytes are copied without a loop: the 7 bytes
//! `"type":` are written as 32 bytes, padded with zeros, and `at` advances by 7. The next write overwrites the zeros.
//!
//! ```text
//! {"uuid":"1","type":0000000000000000000000000··············
//! ^ start            ^ at                                   ^ end
//! ```
//!
//! So every `unsafe` block here relies on one invariant: `start <= at <= end`, the bytes before `at` are written, and no
//! function writes more than it has reserved after `at`.

use super::short::{specials, vector, PAD, WIDTH};
use super::{run, Engine, Level, Operation, MOST_WIDTH};

/// The room for an integer. The longest has 20 bytes: `-9223372036854775808`.
const INT_ROOM: usize = 20;
/// The most bytes of a string that are escaped after one reservation.
const PART: usize = 4096;

/// Bytes that are written often, such as the key `,"session_id":`. They are stored so that one copy of [`PAD`] bytes writes them.
#[derive(Clone)]
pub struct Words {
    /// The bytes, followed by zeros, if there are at most [`PAD`].
    bytes: [u8; PAD],
    len: usize,
    /// The bytes, if there are more than [`PAD`].
    long: Vec<u8>,
}

impl Words {
    /// The most bytes that need no heap memory.
    pub const FEW: usize = PAD;

    /// Stores these bytes.
    #[must_use]
    pub fn new(words: &[u8]) -> Self {
        let mut made = Self::few(*b"");
        made.len = words.len();
        if let Some(part) = made.bytes.get_mut(..words.len()) {
            part.copy_from_slice(words);
        } else {
            made.long = words.to_vec();
        }
        made
    }

    /// Stores these bytes, at most [`FEW`](Self::FEW) of them.
    #[must_use]
    pub const fn few<const N: usize>(words: [u8; N]) -> Self {
        let mut bytes = [0; PAD];
        let mut at = 0;
        while at < N {
            bytes[at] = words[at];
            at += 1;
        }
        Self {
            bytes,
            len: N,
            long: Vec::new(),
        }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn all(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.long)
    }
}

/// A growing buffer of bytes. If memory runs out, its functions return `None`; a string may then be written in part.
pub struct Output {
    /// Owns the memory. Its own length stays 0: `at` says how much is written.
    memory: Vec<u8>,
    /// The first byte of the memory.
    start: *mut u8,
    /// The place of the next write. All bytes from `start` up to here are written.
    at: *mut u8,
    /// The end of the memory.
    end: *mut u8,
}

impl Default for Output {
    fn default() -> Self {
        let mut output = Self {
            memory: Vec::new(),
            start: std::ptr::null_mut(),
            at: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
        };
        output.point(0);
        output
    }
}

impl Output {
    /// Sets the three pointers after the memory has moved or changed its size. Its first `len` bytes are written.
    fn point(&mut self, len: usize) {
        self.start = self.memory.as_mut_ptr();
        // SAFETY: `len` bytes are written, so `len` is at most the capacity, which is the size of the memory.
        unsafe {
            self.at = self.start.add(len);
            self.end = self.start.add(self.memory.capacity());
        }
    }

    /// Returns the number of bytes written, which is the index of the next byte.
    #[inline(always)]
    #[must_use]
    pub fn place(&self) -> usize {
        self.at as usize - self.start as usize
    }

    /// Returns the bytes written.
    #[inline(always)]
    #[must_use]
    pub fn written(&self) -> &[u8] {
        // SAFETY: all bytes from `start` to `at` are written (the invariant of this type).
        unsafe { std::slice::from_raw_parts(self.start, self.place()) }
    }

    /// Returns how many bytes fit without growing.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Removes all bytes. Frees memory if there is more than `kept` bytes of it.
    #[inline]
    pub fn clear(&mut self, kept: usize) {
        self.at = self.start;
        if self.capacity() > kept {
            self.memory.shrink_to(kept);
            self.point(0);
        }
    }

    /// Removes everything after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        if len < self.place() {
            // SAFETY: `len` is less than the number of bytes written.
            self.at = unsafe { self.start.add(len) };
        }
    }

    /// Replaces the byte at index `at`. Does nothing if that index is not written yet.
    #[inline(always)]
    pub fn change(&mut self, at: usize, byte: u8) {
        if at < self.place() {
            // SAFETY: `at` is less than the number of bytes written.
            unsafe { self.start.add(at).write(byte) }
        }
    }

    /// Makes room for `len` bytes and returns the place of the next write.
    #[inline(always)]
    fn reserve(&mut self, len: usize) -> Option<*mut u8> {
        if (self.end as usize - self.at as usize) < len {
            self.grow(len)?;
        }
        Some(self.at)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, len: usize) -> Option<()> {
        let written = self.place();
        // SAFETY: the bytes from `start` to `at` are written. Growing copies as many bytes as the vector's length says.
        unsafe { self.memory.set_len(written) };
        let grown = self.memory.try_reserve(len).ok();
        // SAFETY: a length of 0 claims no written byte.
        unsafe { self.memory.set_len(0) };
        self.point(written);
        grown
    }

    /// Moves the place of the next write to `end`.
    ///
    /// # Safety
    ///
    /// `end` is within the room that [`reserve`](Self::reserve) returned last, and all bytes before it are written.
    #[inline(always)]
    unsafe fn end_at(&mut self, end: *mut u8) {
        self.at = end;
    }

    /// Writes bytes unchanged.
    #[inline(always)]
    pub fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let to = self.reserve(bytes.len())?;
        // SAFETY: `reserve` made room for `bytes.len()` bytes, all of which are written. `bytes` cannot overlap this memory, because
        // `&mut self` excludes a borrow of it.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            self.end_at(to.add(bytes.len()));
        }
        Some(())
    }

    /// Writes `words`, and the bytes `after` them.
    #[inline(always)]
    pub fn words<const N: usize>(&mut self, words: &Words, after: [u8; N]) -> Option<()> {
        // SAFETY: `reserve_words` made room for `N` bytes at `to`, all of which are written.
        unsafe {
            let to = self.reserve_words(words, N)?;
            to.cast::<[u8; N]>().write_unaligned(after);
            self.end_at(to.add(N));
        }
        Some(())
    }

    /// Writes `words`, and makes room for `len` more bytes. Returns the place of the next write.
    #[inline(always)]
    fn reserve_words(&mut self, words: &Words, len: usize) -> Option<*mut u8> {
        if words.len > PAD {
            self.bytes(&words.long)?;
            return self.reserve(len);
        }
        let to = self.reserve(PAD + len)?;
        // SAFETY: there is room for `PAD + len` bytes: for the words with the zeros after them, and for `len` bytes after the words,
        // which are at most `PAD`.
        unsafe {
            to.cast::<[u8; PAD]>().write_unaligned(words.bytes);
            let to = to.add(words.len);
            Some(to)
        }
    }

    /// Writes `words`, and the ASCII string `text` in quotes.
    #[inline(always)]
    pub fn words_and_text(&mut self, words: &Words, text: &[u8]) -> Option<()> {
        if text.len() > PART {
            self.bytes(words.all())?;
            return self.other_text(text, true);
        }
        // SAFETY: there are `escaped_room` free bytes at `to`, as `quoted` requires. It returns the end of what it wrote.
        unsafe {
            let to = self.reserve_words(words, escaped_room(text.len()))?;
            let end = quoted::<false>(text, to);
            self.end_at(end);
        }
        Some(())
    }

    /// Writes the string `text` in quotes, with the bytes `before` and `after` it. If `is_ascii` is false, U+2028 and U+2029 are escaped
    /// as well, because some readers treat them as the end of a line.
    #[inline(always)]
    pub fn text<const N: usize, const M: usize>(
        &mut self,
        before: [u8; N],
        text: &[u8],
        is_ascii: bool,
        after: [u8; M],
    ) -> Option<()> {
        if text.len() > PART || !is_ascii {
            self.bytes(&before)?;
            self.other_text(text, is_ascii)?;
            return self.bytes(&after);
        }
        // SAFETY: there is room for `before`, `after` and `escaped_room` between them, which is what `quoted` requires.
        unsafe {
            let to = self.reserve(N + escaped_room(text.len()) + M)?;
            to.cast::<[u8; N]>().write_unaligned(before);
            let to = quoted::<false>(text, to.add(N));
            to.cast::<[u8; M]>().write_unaligned(after);
            self.end_at(to.add(M));
        }
        Some(())
    }

    /// Writes a string that is longer than [`PART`] or not ASCII, in quotes, one part after another.
    #[inline(never)]
    fn other_text(&mut self, mut text: &[u8], is_ascii: bool) -> Option<()> {
        self.bytes(b"\"")?;
        while !text.is_empty() {
            let mut end = text.len().min(PART);
            // End the part before a character, not within its bytes.
            while text.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
                end -= 1;
            }
            let (part, rest) = text.split_at(end);
            let to = self.reserve(escaped_room(part.len()))?;
            // SAFETY: there are `escaped_room` free bytes at `to`, more than `escape` requires.
            unsafe {
                let end = if is_ascii {
                    escape::<false>(part, to)
                } else {
                    escape::<true>(part, to)
                };
                self.end_at(end);
            }
            text = rest;
        }
        self.bytes(b"\"")
    }

    /// Writes an integer.
    #[inline(always)]
    pub fn int(&mut self, value: i64) -> Option<()> {
        let to = self.reserve(INT_ROOM)?;
        // SAFETY: there are `INT_ROOM` free bytes at `to`, as `int` requires.
        unsafe {
            let end = int(value, to);
            self.end_at(end);
        }
        Some(())
    }

    /// Writes a decimal point and `digits` with leading zeros to `places` places: `(5, 3)` gives `.005`. `places` is at most 16, and
    /// `digits` is not negative.
    pub fn fraction(&mut self, digits: i64, places: usize) -> Option<()> {
        let mut rest = digits;
        let mut written = [b'0'; 17];
        let written = written.get_mut(..=places)?;
        for place in written.iter_mut().rev() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 9.
            let digit = (rest % 10) as u8;
            *place = b'0' + digit;
            rest /= 10;
        }
        written[0] = b'.';
        self.bytes(written)
    }

    /// Writes `words` and an integer.
    #[inline(always)]
    pub fn words_and_int(&mut self, words: &Words, value: i64) -> Option<()> {
        // SAFETY: there are `INT_ROOM` free bytes at `to`, as `int` requires.
        unsafe {
            let to = self.reserve_words(words, INT_ROOM)?;
            let end = int(value, to);
            self.end_at(end);
        }
        Some(())
    }
}

/// Writes an integer at `to`, and returns the end of its digits.
///
/// # Safety
///
/// There is room for [`INT_ROOM`] bytes at `to`.
#[inline(always)]
unsafe fn int(value: i64, to: *mut u8) -> *mut u8 {
    // SAFETY: the caller guarantees `INT_ROOM` free bytes at `to`.
    unsafe {
        match value {
            0..10 => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                // 0 to 9.
                to.write(b'0' + value as u8);
                to.add(1)
            }
            _ => long_int(value, to),
        }
    }
}

/// Does the same as [`int`] for integers of any length, two digits at a time.
///
/// # Safety
///
/// There is room for [`INT_ROOM`] bytes at `to`.
#[inline(never)]
unsafe fn long_int(value: i64, mut to: *mut u8) -> *mut u8 {
    let mut rest = value.unsigned_abs();
    // SAFETY: the caller guarantees 20 bytes. A sign is 1 byte, and the logarithm gives the exact number of digits: at most 19.
    unsafe {
        if value < 0 {
            to.write(b'-');
            to = to.add(1);
        }
        let digits = rest.checked_ilog10().map_or(1, |log| log as usize + 1);
        let end = to.add(digits);
        let mut place = end;
        while rest >= 10 {
            place = place.sub(2);
            let two = PAIRS[(rest % 100) as usize];
            place.cast::<[u8; 2]>().write_unaligned(two);
            rest /= 100;
        }
        if place > to {
            #[allow(clippy::cast_possible_truncation)] // 0 to 9.
            to.write(b'0' + rest as u8);
        }
        end
    }
}

/// The ASCII digits of the numbers 00 to 99.
static PAIRS: [[u8; 2]; 100] = {
    let mut all = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        #[allow(clippy::cast_possible_truncation)] // 0 to 9.
        let two = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        all[number] = two;
        number += 1;
    }
    all
};

/// Returns the room that writing a string of `len` bytes needs: 6 bytes for each byte (`\u0000`), two quotes, and one vector of the
/// widest kind, which may be written beyond the end.
fn escaped_room(len: usize) -> usize {
    6 * len + 2 + MOST_WIDTH
}

/// Writes a string in quotes at `to`, and returns its end.
///
/// # Safety
///
/// There are at least [`escaped_room`] free bytes at `to`.
#[inline(always)]
unsafe fn quoted<const UTF8: bool>(bytes: &[u8], to: *mut u8) -> *mut u8 {
    // SAFETY: the caller guarantees room for two quotes, and for the escaped bytes and a vector between them.
    unsafe {
        to.write(b'"');
        let end = escape::<UTF8>(bytes, to.add(1));
        end.write(b'"');
        end.add(1)
    }
}

/// Writes the content of a JSON string at `to`, without quotes, and returns its end. With `UTF8`, it also escapes U+2028 and U+2029;
/// without `UTF8`, the bytes must be ASCII.
///
/// Short strings take no loop: two vectors, or two words, that overlap in the middle cover them. 11 bytes are copied as the
/// words 0..8 and 3..11. If either has a byte to escape, [`escape_from`] writes the string again.
///
/// # Safety
///
/// There is room at `to` for 6 bytes per byte, and for one vector more.
#[inline(always)]
unsafe fn escape<const UTF8: bool>(bytes: &[u8], to: *mut u8) -> *mut u8 {
    let is_plain = |block: &[u8; WIDTH]| specials(block, also::<UTF8>()) == 0;
    let both = |first: u64, last: u64| (u128::from(first) | u128::from(last) << 64).to_le_bytes();
    let len = bytes.len();
    let mut at = 0;
    // SAFETY: each load is within `bytes`, as its place is at most `len` minus its width. Each store goes to the same place after `to`,
    // where the caller guarantees room. `escape_from` gets what is left of the room.
    unsafe {
        if len >= LONG {
            return escape_long::<UTF8>(bytes, to);
        }
        if let Some(last) = bytes.last_chunk::<WIDTH>() {
            let end = len - WIDTH;
            while at < end {
                let block = &*bytes.as_ptr().add(at).cast::<[u8; WIDTH]>();
                to.add(at).cast::<[u8; WIDTH]>().write_unaligned(*block);
                if !is_plain(block) {
                    return escape_from::<UTF8>(bytes, at, to.add(at));
                }
                at += WIDTH;
            }
            // The last vector may overlap the one before, with the same bytes.
            to.add(end).cast::<[u8; WIDTH]>().write_unaligned(*last);
            if is_plain(last) {
                return to.add(len);
            }
        } else if let (Some(first), Some(last)) =
            (bytes.first_chunk::<8>(), bytes.last_chunk::<8>())
        {
            to.cast::<[u8; 8]>().write_unaligned(*first);
            to.add(len - 8).cast::<[u8; 8]>().write_unaligned(*last);
            if is_plain(&both(u64::from_le_bytes(*first), u64::from_le_bytes(*last))) {
                return to.add(len);
            }
        } else if let (Some(first), Some(last)) =
            (bytes.first_chunk::<4>(), bytes.last_chunk::<4>())
        {
            to.cast::<[u8; 4]>().write_unaligned(*first);
            to.add(len - 4).cast::<[u8; 4]>().write_unaligned(*last);
            let first = u64::from(u32::from_le_bytes(*first));
            let all = first | u64::from(u32::from_le_bytes(*last)) << 32;
            if is_plain(&both(all, all)) {
                return to.add(len);
            }
        } else if let (Some(first), Some(last)) = (bytes.first(), bytes.last()) {
            let middle = bytes[len / 2];
            to.write(*first);
            to.add(len / 2).write(middle);
            to.add(len - 1).write(*last);
            let all = u64::from_le_bytes([*first, middle, *last, b' ', b' ', b' ', b' ', b' ']);
            if is_plain(&both(all, all)) {
                return to.add(len);
            }
        } else {
            return to;
        }
        escape_from::<UTF8>(bytes, at, to.add(at))
    }
}

/// Returns one more byte that a search stops at, besides those that every string escapes: with `UTF8` 0xe2, the first byte of U+2028
/// and U+2029; otherwise `"`, which is escaped anyway.
#[inline(always)]
fn also<const UTF8: bool>() -> u8 {
    if UTF8 {
        0xe2
    } else {
        b'"'
    }
}

/// The length in bytes from which wider vectors save more time than the call into a function with AVX2 costs.
const LONG: usize = 96;

/// Does the same as [`escape`] for a long string, with the widest vectors that the processor has.
///
/// # Safety
///
/// There is room at `to` for 6 bytes per byte, and for one vector of [`MOST_WIDTH`] more.
#[inline(never)]
unsafe fn escape_long<const UTF8: bool>(bytes: &[u8], to: *mut u8) -> *mut u8 {
    // SAFETY: the caller guarantees the room that `Long::new` requires.
    run(Level::Fast, unsafe { Long::<UTF8>::new(bytes, to) })
}

/// The [`Operation`] of [`escape_long`].
pub(super) struct Long<'a, const UTF8: bool> {
    bytes: &'a [u8],
    to: *mut u8,
}

impl<'a, const UTF8: bool> Long<'a, UTF8> {
    /// # Safety
    ///
    /// There is room at `to` for 6 bytes per byte, and for one vector of [`MOST_WIDTH`] more, until the operation has run.
    #[inline(always)]
    pub(super) unsafe fn new(bytes: &'a [u8], to: *mut u8) -> Self {
        Self { bytes, to }
    }
}

impl<const UTF8: bool> Operation for Long<'_, UTF8> {
    type Output = *mut u8;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> *mut u8 {
        let Self { bytes, mut to } = self;
        let mut at = 0;
        // SAFETY: the caller of `new` guarantees room for 6 bytes per byte of the string, and for a vector. Each byte so far took at
        // most 6, so the rest of the room is enough for the rest of the string.
        unsafe {
            loop {
                let (next, is_special) = engine.copy_plain(bytes, at, to, also::<UTF8>());
                to = to.add(next - at);
                if !is_special {
                    return escape_from::<UTF8>(bytes, next, to);
                }
                (at, to) = escape_one::<UTF8>(bytes, next, to);
            }
        }
    }
}

/// Does the same as [`escape`] for the bytes from `at` on, of which some have to be escaped.
///
/// # Safety
///
/// There is room at `to` for 6 bytes per byte from `at` on, and for one vector more.
#[inline(never)]
unsafe fn escape_from<const UTF8: bool>(bytes: &[u8], mut at: usize, mut to: *mut u8) -> *mut u8 {
    // SAFETY: the caller guarantees room for 6 bytes per remaining byte of the string, and for a vector. Each byte takes at most 6,
    // and a store writes at most one vector beyond that.
    unsafe {
        loop {
            let (block, count) = match vector(bytes, at) {
                Some(block) => (*block, WIDTH),
                None => (rest(bytes, at), bytes.len() - at),
            };
            to.cast::<[u8; WIDTH]>().write_unaligned(block);
            let found = specials(&block, also::<UTF8>()) & ((1 << count) - 1);
            if found == 0 {
                at += count;
                to = to.add(count);
                if count < WIDTH {
                    return to;
                }
                continue;
            }
            let index = found.trailing_zeros() as usize;
            (at, to) = escape_one::<UTF8>(bytes, at + index, to.add(index));
        }
    }
}

/// Writes the escape of the byte at `at`, or of the three bytes of U+2028 or U+2029 there. Returns the index of the next byte to
/// read, and the place to write it to.
///
/// # Safety
///
/// There is room for 8 bytes at `to`.
#[inline(always)]
unsafe fn escape_one<const UTF8: bool>(bytes: &[u8], at: usize, to: *mut u8) -> (usize, *mut u8) {
    let byte = bytes[at];
    // SAFETY: each store has at most 8 bytes, for which the caller guarantees room.
    unsafe {
        if UTF8 && byte == 0xe2 {
            let separator = match bytes.get(at + 1..at + 3) {
                Some([0x80, 0xa8]) => b"\\u2028",
                Some([0x80, 0xa9]) => b"\\u2029",
                _ => {
                    to.write(byte);
                    return (at + 1, to.add(1));
                }
            };
            to.cast::<[u8; 6]>().write_unaligned(*separator);
            return (at + 3, to.add(6));
        }
        let (written, len) = &ESCAPES[usize::from(byte) % ESCAPES.len()];
        to.cast::<[u8; 8]>().write_unaligned(*written);
        (at + 1, to.add(*len))
    }
}

/// Returns the bytes from `at` on, of which there are fewer than 16, followed by zeros.
fn rest(bytes: &[u8], at: usize) -> [u8; WIDTH] {
    if let Some(last) = bytes.last_chunk() {
        // Shift out 1 to 16 bytes, in two steps: a shift of a `u128` by 128 bits at once is an overflow.
        let all = u128::from_le_bytes(*last) >> 8 >> (8 * (WIDTH - 1 - (bytes.len() - at)));
        return all.to_le_bytes();
    }
    let mut block = [0; WIDTH];
    block[..bytes.len() - at].copy_from_slice(&bytes[at..]);
    block
}

/// The escape of each ASCII byte, padded with zeros, and its length: `\n` and 2, `\u0001` and 6.
static ESCAPES: [([u8; 8], usize); 128] = {
    let mut all = [([0; 8], 0); 128];
    let mut byte = 0;
    while byte < 128 {
        #[allow(clippy::cast_possible_truncation)] // `byte` is below 128.
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

/// Returns the escape of an ASCII byte in a JSON string: `\n` for a line feed, `\u0001` for the byte 1.
#[must_use]
pub fn escape_of(byte: u8) -> &'static [u8] {
    let (written, len) = &ESCAPES[usize::from(byte) % ESCAPES.len()];
    &written[..*len]
}
