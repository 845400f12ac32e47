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
}

/// Bytes that are written before a value: a comma in a list, or a key.
pub trait Prefix {
    /// Returns the bytes.
    fn all(&self) -> &[u8];

    /// Makes room in `out` for the bytes and for `len` more, writes the bytes, and returns their end. `out` does not count them as
    /// written until `end_at`.
    fn begin(&self, out: &mut Output, len: usize) -> Option<*mut u8>;
}

impl<const N: usize> Prefix for [u8; N] {
    #[inline(always)]
    fn all(&self) -> &[u8] {
        self
    }

    #[inline(always)]
    fn begin(&self, out: &mut Output, len: usize) -> Option<*mut u8> {
        let to = out.reserve(N + len)?;
        // SAFETY: `reserve` made room for more than `N` bytes.
        unsafe {
            to.cast::<[u8; N]>().write_unaligned(*self);
            Some(to.add(N))
        }
    }
}

impl Prefix for Words {
    #[inline(always)]
    fn all(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.long)
    }

    #[inline(always)]
    fn begin(&self, out: &mut Output, len: usize) -> Option<*mut u8> {
        if self.len > PAD {
            out.bytes(&self.long)?;
            return out.reserve(len);
        }
        let to = out.reserve(PAD + len)?;
        // SAFETY: there is room for `PAD + len` bytes: for the words with the zeros after them, and for `len` bytes after the words,
        // which are at most `PAD`.
        unsafe {
            to.cast::<[u8; PAD]>().write_unaligned(self.bytes);
            Some(to.add(self.len))
        }
    }
}

/// An ASCII string in memory that has [`FRONT`](Self::FRONT) readable bytes before it, such as the header of a Python string.
///
/// The last 16 bytes of the memory can be loaded whatever the length of the string is. For a string of 5 bytes they are 11 bytes of the
/// header and the string.
#[derive(Clone, Copy)]
pub struct Ascii<'a>(&'a [u8]);

impl<'a> Ascii<'a> {
    /// The number of bytes before the string.
    pub const FRONT: usize = WIDTH;

    /// Returns the string after the first [`FRONT`](Self::FRONT) bytes of `memory`; `None` if `memory` is shorter. The string must be
    /// ASCII.
    #[inline(always)]
    #[must_use]
    pub fn after_front(memory: &'a [u8]) -> Option<Self> {
        (memory.len() >= Self::FRONT).then_some(Self(memory))
    }

    /// Returns the string.
    #[inline(always)]
    #[must_use]
    pub fn text(self) -> &'a [u8] {
        self.0.get(Self::FRONT..).unwrap_or_default()
    }
}

/// A character as CPython stores it in a string that is not ASCII: in one, two or four bytes.
pub trait Unit: Copy {
    /// Returns the code point, perhaps that of a surrogate.
    fn number(self) -> u32;
}

impl Unit for u8 {
    #[inline(always)]
    fn number(self) -> u32 {
        self.into()
    }
}

impl Unit for u16 {
    #[inline(always)]
    fn number(self) -> u32 {
        self.into()
    }
}

impl Unit for u32 {
    #[inline(always)]
    fn number(self) -> u32 {
        self
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

    /// Writes the bytes `before`, and then `bytes`, such as `null`.
    #[inline(always)]
    pub fn constant<const N: usize>(&mut self, before: &impl Prefix, bytes: [u8; N]) -> Option<()> {
        let to = before.begin(self, N)?;
        // SAFETY: `begin` made room for `N` bytes at `to`, all of which are written.
        unsafe {
            to.cast::<[u8; N]>().write_unaligned(bytes);
            self.end_at(to.add(N));
        }
        Some(())
    }

    /// Writes the bytes `before`, and the ASCII string `text` in quotes.
    #[inline(always)]
    pub fn ascii(&mut self, before: &impl Prefix, text: Ascii<'_>) -> Option<()> {
        let len = text.text().len();
        if len > PART {
            return self.long_ascii(before.all(), text.text());
        }
        let to = before.begin(self, escaped_room(len))?;
        // SAFETY: there are `escaped_room` free bytes at `to`: for two quotes, and for what `escape_ascii` requires between them.
        unsafe {
            to.write(b'"');
            let end = escape_ascii(text, to.add(1));
            end.write(b'"');
            self.end_at(end.add(1));
        }
        Some(())
    }

    /// Does the same as [`ascii`](Self::ascii) for a string longer than [`PART`], one part after another.
    #[inline(never)]
    fn long_ascii(&mut self, before: &[u8], text: &[u8]) -> Option<()> {
        self.bytes(before)?;
        self.parts(text, |part, to| {
            // SAFETY: `parts` has made `escaped_room` free bytes at `to`.
            Some(unsafe { escape_long::<false>(part, to) })
        })
    }

    /// Writes a string of UTF-8 in quotes, one part after another. Escapes U+2028 and U+2029 as well, because some readers treat them as
    /// the end of a line.
    #[inline(never)]
    pub fn utf8(&mut self, mut text: &[u8]) -> Option<()> {
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
                let end = escape::<true>(part, to);
                self.end_at(end);
            }
            text = rest;
        }
        self.bytes(b"\"")
    }

    /// Writes a string of characters as UTF-8 in quotes. Escapes U+2028 and U+2029 as [`utf8`](Self::utf8) does. If there is a surrogate,
    /// returns `None` after writing a part of the string.
    #[inline(never)]
    pub fn characters<U: Unit>(&mut self, text: &[U]) -> Option<()> {
        self.parts(text, |part, to| {
            // SAFETY: `parts` has made `escaped_room` free bytes at `to`.
            unsafe { escape_characters(part, to) }
        })
    }

    /// Writes a string in quotes, one part after another. `write` gets a part and a place with [`escaped_room`] for it, and returns the
    /// end of what it wrote there.
    #[inline(always)]
    fn parts<U: Copy>(
        &mut self,
        text: &[U],
        write: impl Fn(&[U], *mut u8) -> Option<*mut u8>,
    ) -> Option<()> {
        self.bytes(b"\"")?;
        for part in text.chunks(PART) {
            let to = self.reserve(escaped_room(part.len()))?;
            let end = write(part, to)?;
            // SAFETY: `write` has written all bytes before `end`, within the room of the part.
            unsafe { self.end_at(end) };
        }
        self.bytes(b"\"")
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

    /// Writes the bytes `before`, and an integer.
    #[inline(always)]
    pub fn int(&mut self, before: &impl Prefix, value: i64) -> Option<()> {
        let to = before.begin(self, INT_ROOM)?;
        // SAFETY: there are `INT_ROOM` free bytes at `to`, as `int` requires.
        unsafe {
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

/// Returns the digits of an integer below 100,000,000, and their number.
///
/// One multiplication divides several parts of the integer: 12345678 becomes 1234 and 5678, then 12, 34, 56 and 78, then 8 digits.
#[inline(always)]
fn eight_digits(value: u32) -> ([u8; 8], usize) {
    let fours = u64::from(value / 10_000) | u64::from(value % 10_000) << 32;
    // For a number below 10,000, n * 10486 >> 20 is n / 100; for one below 100, n * 103 >> 10 is n / 10.
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | (twos - 10 * tens) << 8;
    // The first digit is the lowest byte, so the zeros before the first digit are shifted out. The integer 0 keeps one.
    let zeros = (ones | 1 << 56).trailing_zeros() / 8;
    let digits = (ones | 0x3030_3030_3030_3030) >> (8 * zeros);
    (digits.to_le_bytes(), 8 - zeros as usize)
}

/// Like [`int`], for integers of any length: up to eight digits in one step, longer ones two digits at a time.
///
/// # Safety
///
/// There is room for [`INT_ROOM`] bytes at `to`.
#[inline(never)]
unsafe fn long_int(value: i64, mut to: *mut u8) -> *mut u8 {
    let mut rest = value.unsigned_abs();
    // SAFETY: the caller guarantees 20 bytes. A sign is 1 byte, and the logarithm gives the exact number of digits: at most 19.
    unsafe {
        if let Ok(value @ 0..=99_999_999) = u32::try_from(value) {
            let (digits, len) = eight_digits(value);
            to.cast::<[u8; 8]>().write_unaligned(digits);
            return to.add(len);
        }
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

/// Writes the content of a JSON string at `to`, without quotes, and returns its end.
///
/// Up to 16 bytes take no loop: the last 16 bytes of the memory are searched at the same time, and the bits of the bytes before the
/// string are shifted out. If there is a byte to escape, [`escape_from`] writes the string again.
///
/// # Safety
///
/// There is room at `to` for 6 bytes per byte, and for one vector of [`MOST_WIDTH`] more.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // The length is below 8 where it is cast.
unsafe fn escape_ascii(text: Ascii<'_>, to: *mut u8) -> *mut u8 {
    let Ascii(memory) = text;
    let text = text.text();
    let len = text.len();
    // SAFETY: each load is within `memory`. Each store begins at most `len` bytes after `to` and has at most one vector, for which the
    // caller guarantees room. `escape_from` gets what is left of the room.
    unsafe {
        let Some(last) = memory.last_chunk::<WIDTH>() else {
            return to;
        };
        if len <= WIDTH {
            let front = WIDTH - len;
            if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
                to.cast::<[u8; 8]>().write_unaligned(*first);
                to.add(len - 8).cast::<[u8; 8]>().write_unaligned(*last);
            } else if let Some(last) = memory.last_chunk::<8>() {
                // Shift out the bytes before the string. For an empty string nothing is shifted, and nothing of this is kept.
                let bytes = u64::from_le_bytes(*last).wrapping_shr(8 * (8 - len as u32));
                to.cast::<[u8; 8]>().write_unaligned(bytes.to_le_bytes());
            }
            if specials(last, also::<false>()) >> front == 0 {
                return to.add(len);
            }
            return escape_from::<false>(text, 0, to);
        }
        if len >= LONG {
            return escape_long::<false>(text, to);
        }
        let end = len - WIDTH;
        let mut at = 0;
        while at < end {
            let block = &*text.as_ptr().add(at).cast::<[u8; WIDTH]>();
            to.add(at).cast::<[u8; WIDTH]>().write_unaligned(*block);
            if specials(block, also::<false>()) != 0 {
                return escape_from::<false>(text, at, to.add(at));
            }
            at += WIDTH;
        }
        to.add(end).cast::<[u8; WIDTH]>().write_unaligned(*last);
        if specials(last, also::<false>()) == 0 {
            return to.add(len);
        }
        escape_from::<false>(text, end, to.add(end))
    }
}

/// Writes the content of a JSON string at `to`, without quotes, and returns its end. With `UTF8`, it also escapes U+2028 and U+2029;
/// without `UTF8`, the bytes must be ASCII.
///
/// # Safety
///
/// There is room at `to` for 6 bytes per byte, and for one vector of [`MOST_WIDTH`] more.
#[inline(always)]
unsafe fn escape<const UTF8: bool>(bytes: &[u8], to: *mut u8) -> *mut u8 {
    // SAFETY: the caller guarantees room for that many bytes.
    unsafe {
        if bytes.len() >= LONG {
            escape_long::<UTF8>(bytes, to)
        } else {
            escape_from::<UTF8>(bytes, 0, to)
        }
    }
}

/// Writes the content of a JSON string as UTF-8 at `to`, without quotes, and returns its end; `None` for a surrogate.
///
/// Sixteen characters of ASCII are written as one vector. Of sixteen with another among them, each is written by itself.
///
/// # Safety
///
/// There is room at `to` for 6 bytes per character, and for one vector of [`MOST_WIDTH`] more.
#[inline(always)]
unsafe fn escape_characters<U: Unit>(mut text: &[U], mut to: *mut u8) -> Option<*mut u8> {
    // SAFETY: the caller guarantees room for 6 bytes per character, and for a vector. Each character takes at most 6, and a store writes
    // at most one vector beyond that.
    unsafe {
        while let Some(block) = text.first_chunk::<WIDTH>() {
            let mut count = WIDTH;
            if block.iter().fold(0, |all, unit| all | unit.number()) < 0x80 {
                #[allow(clippy::cast_possible_truncation)] // They are below 0x80.
                let bytes = block.map(|unit| unit.number() as u8);
                to.cast::<[u8; WIDTH]>().write_unaligned(bytes);
                let found = specials(&bytes, also::<false>());
                if found == 0 {
                    to = to.add(WIDTH);
                } else {
                    let index = found.trailing_zeros() as usize;
                    (count, to) = escape_one::<false>(&bytes, index, to.add(index));
                }
            } else {
                for unit in block {
                    to = escape_character(unit.number(), to)?;
                }
            }
            text = &text[count..];
        }
        for unit in text {
            to = escape_character(unit.number(), to)?;
        }
    }
    Some(to)
}

/// Writes a character of a JSON string as UTF-8 or as an escape, and returns its end; `None` for a surrogate.
///
/// # Safety
///
/// There is room for 8 bytes at `to`.
#[inline(always)]
unsafe fn escape_character(character: u32, to: *mut u8) -> Option<*mut u8> {
    // Returns six bits of the character, from bit `shift` on, as byte `index` of a word.
    let six = |shift: u32, index: u32| (character >> shift & 0x3f) << (8 * index);
    let (bytes, len) = match character {
        0..0x20 | 0x22 | 0x5c => {
            let (escape, len) = &ESCAPES[character as usize];
            // SAFETY: the caller guarantees room for that many bytes.
            unsafe {
                to.cast::<[u8; 8]>().write_unaligned(*escape);
                return Some(to.add(*len));
            }
        }
        0x20..0x80 => (character, 1),
        0x80..0x800 => (0x80c0 | character >> 6 | six(0, 1), 2),
        0x2028 | 0x2029 => {
            let escape = b"\\u202";
            // SAFETY: the caller guarantees room for that many bytes.
            unsafe {
                to.cast::<[u8; 5]>().write_unaligned(*escape);
                to.add(5)
                    .write(if character & 1 == 0 { b'8' } else { b'9' });
                return Some(to.add(6));
            }
        }
        0xd800..0xe000 | 0x11_0000.. => return None,
        0x800..0x1_0000 => (0x80_80e0 | character >> 12 | six(6, 1) | six(0, 2), 3),
        0x1_0000..0x11_0000 => (
            0x8080_80f0 | character >> 18 | six(12, 1) | six(6, 2) | six(0, 3),
            4,
        ),
    };
    // SAFETY: the caller guarantees room for that many bytes.
    unsafe {
        to.cast::<[u8; 4]>().write_unaligned(bytes.to_le_bytes());
        Some(to.add(len))
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

/// Does the same as [`escape`] for the bytes from `at` on, 16 at a time.
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

/// How a string has the byte of ASCII that it does not have as it is.
#[cfg(test)]
pub(super) fn escape_of(byte: u8) -> &'static [u8] {
    let (written, len) = &ESCAPES[usize::from(byte) % ESCAPES.len()];
    &written[..*len]
}
