//! [`Output`]: the buffer for JSON lines. It copies strings 16 or 32 bytes at a time, and escapes them while it copies.
//!
//! The basic idea is simple: a function first reserves the maximum number of bytes that it may write, and then writes without checking for
//! the end of the memory. It may write more bytes than it keeps, so it can copy a few bytes without a loop: the 7 bytes `"type":` are
//! written as 32 bytes, padded with quotes, and `to` advances by 7. The next write overwrites the padding, except for the first quote if the
//! value is a string.
//!
//! ```text
//! {"uuid":"1","type":"""""""""""""""""""""""""··············
//! ^ start            ^ to                                   ^ end
//! ```
//!
//! So every `unsafe` block here relies on one invariant: `start <= to <= end`, the bytes before `to` are written, and no
//! function writes more than it has reserved after `to`.

use std::io::Write;

use super::short::{specials, vector, PAD, WIDTH};
use super::{run, Engine, Level, Operation, MOST_WIDTH};
use crate::fallible::copied;

/// The room for an integer. The longest integer, `-9223372036854775808`, has 20 bytes.
const INT_ROOM: usize = 20;
/// The maximum number of bytes of a string that are escaped after one reservation.
const PART: usize = 4096;

/// The room after a [`Prefix`]: for a string of fewer than [`LONG`] bytes.
const ROOM: usize = escaped_room(LONG);
/// The room for a prefix of at most [`PAD`] bytes and for what follows it.
const SLACK: usize = PAD + ROOM;

/// At most [`Few::MAX_LEN`] bytes that are often written, such as the key `,"session_id":`. They are stored so that a single copy of
/// [`PAD`] bytes writes them, and the quote of a string after them.
#[derive(Clone, Copy)]
pub struct Few {
    /// The bytes, followed by quotes.
    bytes: [u8; PAD],
    len: usize,
}

impl Few {
    /// The maximum number of bytes. At least one quote follows them.
    pub const MAX_LEN: usize = PAD - 1;
    /// No bytes.
    pub const NONE: Self = Self {
        bytes: [b'"'; PAD],
        len: 0,
    };

    /// Stores these bytes; `None` if there are too many.
    #[must_use]
    pub fn new(words: &[u8]) -> Option<Self> {
        let mut few = Self::NONE;
        few.len = words.len();
        let (part, _) = few.bytes.split_at_mut_checked(words.len())?;
        part.copy_from_slice(words);
        (words.len() <= Self::MAX_LEN).then_some(few)
    }
}

/// Any number of bytes that are often written, stored like [`Few`] if there are few of them.
pub struct Words {
    /// The bytes; nothing if there are too many.
    few: Few,
    /// The bytes if there are too many for `few`, otherwise empty.
    long: Vec<u8>,
}

impl Words {
    /// Stores these bytes.
    #[must_use]
    pub fn new(words: &[u8]) -> Self {
        match Few::new(words) {
            Some(few) => Self {
                few,
                long: Vec::new(),
            },
            None => Self {
                few: Few::NONE,
                long: words.to_vec(),
            },
        }
    }

    /// Returns a copy; `None` if memory runs out.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        Some(Self {
            few: self.few,
            long: copied(&self.long).ok()?,
        })
    }

    /// Returns the bytes.
    #[must_use]
    pub fn all(&self) -> &[u8] {
        if self.long.is_empty() {
            &self.few.bytes[..self.few.len]
        } else {
            &self.long
        }
    }
}

/// Bytes that are written before a value: a comma in a list, or a key.
pub trait Prefix {
    /// Writes the bytes, and makes room for `ROOM` more.
    fn begin<'o>(&self, pen: Pen<'o>) -> Option<Pen<'o>>;
    /// Writes the bytes and a quote, and makes room for `ROOM` more.
    fn quote<'o>(&self, pen: Pen<'o>) -> Option<Pen<'o>>;
}

impl<const N: usize> Prefix for [u8; N] {
    #[inline(always)]
    fn begin<'o>(&self, pen: Pen<'o>) -> Option<Pen<'o>> {
        const { assert!(N < PAD) };
        let pen = pen.reserve_slack()?;
        // SAFETY: there is room for a prefix of `N` bytes, and they are written.
        unsafe {
            pen.to.cast::<[u8; N]>().write_unaligned(*self);
            Some(pen.after(N))
        }
    }

    #[inline(always)]
    fn quote<'o>(&self, pen: Pen<'o>) -> Option<Pen<'o>> {
        const { assert!(N < PAD) };
        let pen = pen.reserve_slack()?;
        // SAFETY: there is room for a prefix of `N + 1` bytes, and they are written.
        unsafe {
            pen.to.cast::<[u8; N]>().write_unaligned(*self);
            pen.to.add(N).write(b'"');
            Some(pen.after(N + 1))
        }
    }
}

impl Prefix for Few {
    #[inline(always)]
    fn begin<'o>(&self, pen: Pen<'o>) -> Option<Pen<'o>> {
        let pen = pen.reserve_slack()?;
        // SAFETY: there is room for the words, which have fewer than `PAD` bytes, and the quotes after them, and then for `ROOM` bytes
        // after the words.
        unsafe {
            pen.to.cast::<[u8; PAD]>().write_unaligned(self.bytes);
            Some(pen.after(self.len))
        }
    }

    #[inline(always)]
    fn quote<'o>(&self, pen: Pen<'o>) -> Option<Pen<'o>> {
        let pen = pen.reserve_slack()?;
        // SAFETY: as in `begin`. A quote follows the words, and there is room for `ROOM` bytes after the quote.
        unsafe {
            pen.to.cast::<[u8; PAD]>().write_unaligned(self.bytes);
            Some(pen.after(self.len + 1))
        }
    }
}

impl Prefix for Words {
    #[inline(always)]
    fn begin<'o>(&self, pen: Pen<'o>) -> Option<Pen<'o>> {
        if self.long.is_empty() {
            return self.few.begin(pen);
        }
        pen.bytes(&self.long)?.reserve(ROOM)
    }

    #[inline(always)]
    fn quote<'o>(&self, pen: Pen<'o>) -> Option<Pen<'o>> {
        if self.long.is_empty() {
            return self.few.quote(pen);
        }
        pen.bytes(&self.long)?.bytes(b"\"")?.reserve(ROOM)
    }
}

/// An ASCII string in memory that has [`FRONT`](Self::FRONT) readable bytes before it, such as the header of a Python string.
///
/// So the last 16 bytes of this memory can always be loaded, even if the string is short. For a string of 5 bytes, they are 11 bytes of the
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

    /// Returns the length of the string, and a pointer to its end, before which all of the memory is readable.
    #[inline(always)]
    pub(super) fn end(self) -> (usize, *const u8) {
        let len = self.0.len();
        (len - Self::FRONT, self.0.as_ptr().wrapping_add(len))
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
    /// Returns the code point, which may be a surrogate.
    fn number(self) -> u32;

    /// Returns the unit of a code point that fits into it.
    fn of(number: u32) -> Self;
}

impl Unit for u8 {
    #[inline(always)]
    fn number(self) -> u32 {
        self.into()
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // The caller guarantees that it fits.
    fn of(number: u32) -> Self {
        number as Self
    }
}

impl Unit for u16 {
    #[inline(always)]
    fn number(self) -> u32 {
        self.into()
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // The caller guarantees that it fits.
    fn of(number: u32) -> Self {
        number as Self
    }
}

impl Unit for u32 {
    #[inline(always)]
    fn number(self) -> u32 {
        self
    }

    #[inline(always)]
    fn of(number: u32) -> Self {
        number
    }
}

/// A growing buffer of bytes. A [`Pen`] writes them.
pub struct Output {
    /// Owns the memory. The vector's own length stays 0, and `at` says how much is written.
    memory: Vec<u8>,
    /// The first byte of the memory.
    start: *mut u8,
    /// The end of the written bytes. All bytes from `start` up to here are written.
    at: *mut u8,
    /// The end of the memory.
    end: *mut u8,
    /// The address [`SLACK`] bytes before the end of the memory; 0 if the memory is smaller.
    limit: usize,
}

impl Default for Output {
    fn default() -> Self {
        let mut output = Self {
            memory: Vec::new(),
            start: std::ptr::null_mut(),
            at: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
            limit: 0,
        };
        output.point(0);
        output
    }
}

impl Output {
    /// Sets the pointers and the limit after the memory moved or changed its size. The first `len` bytes must be written.
    fn point(&mut self, len: usize) {
        self.start = self.memory.as_mut_ptr();
        // SAFETY: `len` bytes are written, so `len` is at most the capacity, which is the size of the memory.
        unsafe {
            self.at = self.start.add(len);
            self.end = self.start.add(self.memory.capacity());
        }
        let has_slack = self.memory.capacity() >= SLACK;
        self.limit = if has_slack {
            self.end as usize - SLACK
        } else {
            0
        };
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

    /// Removes all bytes. Frees the memory if it has more than `kept` bytes.
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

    /// Returns a pen that writes after these bytes.
    #[inline(always)]
    pub fn pen(&mut self) -> Pen<'_> {
        let to = self.at;
        Pen { out: self, to }
    }
}

/// Writes to an [`Output`]. If memory runs out, its functions return `None`, possibly after writing a part of a string.
///
/// A pen is passed by value from each write to the next, so the place of the next write stays in a register. If this place were in memory,
/// each write would wait for the previous write's store, and a list of short strings would take 1.25 times as long.
pub struct Pen<'o> {
    out: &'o mut Output,
    /// The place of the next write. All bytes from the start of the output up to here are written.
    to: *mut u8,
}

impl Pen<'_> {
    /// Keeps the bytes that were written. If the pen is dropped instead, the output may have some of them: [`Output::truncate`] removes them.
    #[inline(always)]
    pub fn end(self) {
        self.out.at = self.to;
    }

    /// Returns the number of bytes in the output, which is the index of the next byte.
    #[inline(always)]
    #[must_use]
    pub fn place(&self) -> usize {
        self.to as usize - self.out.start as usize
    }

    /// Returns the bytes in the output.
    #[inline(always)]
    #[must_use]
    pub fn written(&self) -> &[u8] {
        // SAFETY: all bytes from `start` to `to` are written (the invariant of this type).
        unsafe { std::slice::from_raw_parts(self.out.start, self.place()) }
    }

    /// Replaces the byte at index `at`. Does nothing if that index is not written yet.
    #[inline(always)]
    #[must_use]
    pub fn change(self, at: usize, byte: u8) -> Self {
        if at < self.place() {
            // SAFETY: `at` is less than the number of bytes written.
            unsafe { self.out.start.add(at).write(byte) }
        }
        self
    }

    /// Makes room for `len` bytes.
    #[inline(always)]
    fn reserve(self, len: usize) -> Option<Self> {
        if (self.out.end as usize - self.to as usize) < len {
            return self.grow(len);
        }
        Some(self)
    }

    /// Ensures that at least [`SLACK`] bytes are free. This is faster than [`reserve`](Self::reserve), because the number is a constant.
    #[inline(always)]
    fn reserve_slack(self) -> Option<Self> {
        if self.to as usize > self.out.limit {
            return self.grow(SLACK);
        }
        Some(self)
    }

    #[cold]
    #[inline(never)]
    fn grow(self, len: usize) -> Option<Self> {
        let written = self.place();
        let out = self.out;
        // SAFETY: the bytes from `start` to `to` are written. Growing copies as many bytes as the vector's length says.
        unsafe { out.memory.set_len(written) };
        let grown = out.memory.try_reserve(len);
        // SAFETY: a length of 0 claims no written byte.
        unsafe { out.memory.set_len(0) };
        out.point(written);
        grown.ok().map(|()| out.pen())
    }

    /// Moves the place of the next write by `len` bytes.
    ///
    /// # Safety
    ///
    /// [`reserve`](Self::reserve) must have made room for these bytes, and all of them must be written.
    #[inline(always)]
    unsafe fn after(mut self, len: usize) -> Self {
        // SAFETY: the caller guarantees that there are `len` more bytes.
        self.to = unsafe { self.to.add(len) };
        self
    }

    /// Moves the place of the next write to `end`.
    ///
    /// # Safety
    ///
    /// `end` must be within the room that [`reserve`](Self::reserve) made last, and all bytes before it must be written.
    #[inline(always)]
    unsafe fn end_at(mut self, end: *mut u8) -> Self {
        self.to = end;
        self
    }

    /// Writes bytes unchanged.
    #[inline(always)]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Option<Self> {
        let pen = self.reserve(bytes.len())?;
        // SAFETY: `reserve` made room for `bytes.len()` bytes, all of which are written. `bytes` cannot overlap this memory, because the
        // pen borrows this memory exclusively.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), pen.to, bytes.len());
            Some(pen.after(bytes.len()))
        }
    }

    /// Writes the bytes `before`, and then `bytes`, such as `null`.
    #[inline(always)]
    #[must_use]
    pub fn constant<const N: usize>(self, before: &impl Prefix, bytes: [u8; N]) -> Option<Self> {
        const { assert!(N < ROOM) };
        let pen = before.begin(self)?;
        // SAFETY: `begin` made room for `N` bytes, all of which are written.
        unsafe {
            pen.to.cast::<[u8; N]>().write_unaligned(bytes);
            Some(pen.after(N))
        }
    }

    /// Writes the bytes `before`, and the ASCII string `text` in quotes.
    #[inline(always)]
    #[must_use]
    pub fn ascii<E: Engine>(
        self,
        engine: E,
        before: &impl Prefix,
        text: Ascii<'_>,
    ) -> Option<Self> {
        let pen = before.quote(self)?;
        // SAFETY: there are `ROOM` free bytes: enough for `copy_short`, `copy_medium` and `escape_from`, and the last quote. The conditions
        // on `len` are those of the two functions.
        unsafe {
            let len = text.text().len();
            let is_plain = if len <= SHORT {
                engine.copy_short(text, pen.to)
            } else if len < LONG {
                engine.copy_medium(text, pen.to)
            } else {
                return pen.long_ascii(engine, text.text());
            };
            let end = if is_plain {
                pen.to.add(len)
            } else {
                escape_from::<false>(text.text(), 0, pen.to)
            };
            end.write(b'"');
            Some(pen.end_at(end.add(1)))
        }
    }

    /// Writes a long ASCII string and its last quote.
    #[inline(never)]
    fn long_ascii<E: Engine>(self, engine: E, text: &[u8]) -> Option<Self> {
        engine.call(LongAscii(self, text))
    }

    /// Writes a UTF-8 string in quotes, part by part. Escapes U+2028 and U+2029 as well, because some readers treat them as the end of a
    /// line.
    #[inline(never)]
    #[must_use]
    pub fn utf8(self, mut text: &[u8]) -> Option<Self> {
        let mut pen = self.bytes(b"\"")?;
        while !text.is_empty() {
            let mut end = text.len().min(PART);
            // End the part before a character, not within its bytes.
            while text.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
                end -= 1;
            }
            let (part, rest) = text.split_at(end);
            pen = pen.reserve(escaped_room(part.len()))?;
            // SAFETY: there are `escaped_room` free bytes, more than `escape` requires.
            unsafe {
                let end = escape::<true>(part, pen.to);
                pen = pen.end_at(end);
            }
            text = rest;
        }
        pen.bytes(b"\"")
    }

    /// Writes a string of characters as UTF-8 in quotes. Escapes U+2028 and U+2029 as [`utf8`](Self::utf8) does. If the string has a
    /// surrogate, returns `None` after writing a part of it.
    #[inline(never)]
    #[must_use]
    pub fn characters<U: Unit>(self, text: &[U]) -> Option<Self> {
        self.bytes(b"\"")?.parts(text, |part, to| {
            // SAFETY: `parts` reserved `escaped_room` bytes at `to`.
            unsafe { escape_characters(part, to) }
        })
    }

    /// Writes a string and its last quote, part by part. `write` gets a part and a place with [`escaped_room`] bytes for it, and returns the end of
    /// what it wrote there.
    #[inline(always)]
    fn parts<U: Copy>(
        self,
        text: &[U],
        write: impl Fn(&[U], *mut u8) -> Option<*mut u8>,
    ) -> Option<Self> {
        let mut pen = self;
        for part in text.chunks(PART) {
            pen = pen.reserve(escaped_room(part.len()))?;
            let end = write(part, pen.to)?;
            // SAFETY: `write` wrote all bytes before `end`, within the part's room.
            pen = unsafe { pen.end_at(end) };
        }
        pen.bytes(b"\"")
    }

    /// Writes a decimal point and `digits` with leading zeros to `places` places: `(5, 3)` gives `.005`. `places` is at most 16, and
    /// `digits` is not negative.
    #[must_use]
    pub fn fraction(self, digits: i64, places: usize) -> Option<Self> {
        let mut rest = digits;
        let mut written = [b'0'; 17];
        let written = written.get_mut(..=places)?;
        for place in written.iter_mut().rev() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // The digit is 0 to 9.
            let digit = (rest % 10) as u8;
            *place = b'0' + digit;
            rest /= 10;
        }
        written[0] = b'.';
        self.bytes(written)
    }

    /// Writes the bytes `before`, and an integer.
    #[inline(always)]
    #[must_use]
    pub fn int(self, before: &impl Prefix, value: i64) -> Option<Self> {
        const { assert!(INT_ROOM < ROOM) };
        let pen = before.begin(self)?;
        // SAFETY: there are `INT_ROOM` free bytes, as `int` requires.
        unsafe {
            let end = int(value, pen.to);
            Some(pen.end_at(end))
        }
    }
}

/// Writes an integer at `to`, and returns the end of its digits.
///
/// # Safety
///
/// There must be room for [`INT_ROOM`] bytes at `to`.
#[inline(always)]
unsafe fn int(value: i64, to: *mut u8) -> *mut u8 {
    // SAFETY: the caller guarantees `INT_ROOM` free bytes at `to`.
    unsafe {
        match value {
            0..10 => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                // The value is 0 to 9.
                to.write(b'0' + value as u8);
                to.add(1)
            }
            _ => long_int(value, to),
        }
    }
}

/// Returns the digits of an integer below 100,000,000, and how many there are.
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
    // The first digit is the lowest byte, so the zeros before the first digit are shifted out. The integer 0 keeps one zero.
    let zeros = (ones | 1 << 56).trailing_zeros() / 8;
    let digits = (ones | 0x3030_3030_3030_3030) >> (8 * zeros);
    (digits.to_le_bytes(), 8 - zeros as usize)
}

/// Like [`int`], for integers of any length.
///
/// # Safety
///
/// There must be room for [`INT_ROOM`] bytes at `to`.
#[inline(never)]
unsafe fn long_int(value: i64, to: *mut u8) -> *mut u8 {
    let mut text = [0; INT_ROOM];
    let len = if let Ok(value @ 0..=99_999_999) = u32::try_from(value) {
        let (digits, len) = eight_digits(value);
        text[..8].copy_from_slice(&digits);
        len
    } else {
        let mut room = &mut text[..];
        // Writing to memory fails only if the room is too small, and every integer fits.
        let _ = write!(room, "{value}");
        INT_ROOM - room.len()
    };
    // SAFETY: the caller guarantees `INT_ROOM` bytes, and `len` is at most `INT_ROOM`.
    unsafe {
        to.cast::<[u8; INT_ROOM]>().write_unaligned(text);
        to.add(len)
    }
}

/// Returns how much room a string of `len` bytes needs: 6 bytes for each byte (`\u0000`), two quotes, and one vector of the widest kind,
/// because a write may extend that far beyond the end.
const fn escaped_room(len: usize) -> usize {
    6 * len + 2 + MOST_WIDTH
}

/// Writes the content of a JSON string at `to`, without quotes, and returns its end. With `UTF8`, it also escapes U+2028 and U+2029;
/// without `UTF8`, the bytes must be ASCII.
///
/// # Safety
///
/// There must be room at `to` for 6 bytes per byte, and for one more vector of [`MOST_WIDTH`] bytes.
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
/// Sixteen ASCII characters are written as one vector. If any of the sixteen is not ASCII, each is written separately.
///
/// # Safety
///
/// There must be room at `to` for 6 bytes per character, and for one more vector of [`MOST_WIDTH`] bytes.
#[inline(always)]
unsafe fn escape_characters<U: Unit>(mut text: &[U], mut to: *mut u8) -> Option<*mut u8> {
    // SAFETY: the caller guarantees room for 6 bytes per character, and for a vector. Each character takes at most 6, and a store writes
    // at most one vector beyond that.
    unsafe {
        while let Some(block) = text.first_chunk::<WIDTH>() {
            let mut count = WIDTH;
            if block.iter().fold(0, |all, unit| all | unit.number()) < 0x80 {
                #[allow(clippy::cast_possible_truncation)] // The characters are below 0x80.
                let bytes = block.map(|unit| unit.number() as u8);
                to.cast::<[u8; WIDTH]>().write_unaligned(bytes);
                let found = specials::<false>(&bytes);
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
/// There must be room for 8 bytes at `to`.
#[inline(always)]
unsafe fn escape_character(character: u32, to: *mut u8) -> Option<*mut u8> {
    // Returns six bits of the character, starting at bit `shift`, as byte `index` of a word.
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

/// The maximum length in bytes of a short string, which is copied as one or two vectors.
pub(super) const SHORT: usize = 2 * WIDTH;
/// At this length in bytes or more, a separate function copies a string.
pub(super) const LONG: usize = 96;

/// Does the same as [`escape`] for a long string, with the widest vectors that the processor has.
///
/// # Safety
///
/// There must be room at `to` for 6 bytes per byte, and for one more vector of [`MOST_WIDTH`] bytes.
#[inline(never)]
unsafe fn escape_long<const UTF8: bool>(bytes: &[u8], to: *mut u8) -> *mut u8 {
    // SAFETY: the caller guarantees the room that `Long::new` requires.
    run(Level::Fast, unsafe { Long::<UTF8>::new(bytes, to) })
}

/// Writes a long ASCII string and its last quote, part by part.
struct LongAscii<'o, 't>(Pen<'o>, &'t [u8]);

impl<'o> Operation for LongAscii<'o, '_> {
    type Output = Option<Pen<'o>>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self(pen, text) = self;
        pen.parts(text, |part, to| {
            // SAFETY: `parts` reserved `escaped_room` bytes at `to`.
            let long = unsafe { Long::<false>::new(part, to) };
            Some(long.run(engine))
        })
    }
}

/// The [`Operation`] of [`escape_long`].
pub(super) struct Long<'a, const UTF8: bool> {
    bytes: &'a [u8],
    to: *mut u8,
}

impl<'a, const UTF8: bool> Long<'a, UTF8> {
    /// # Safety
    ///
    /// There must be room at `to` for 6 bytes per byte, and for one more vector of [`MOST_WIDTH`] bytes, until the operation has run.
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
        // The bytes from `plain` up to `at` are copied unchanged.
        let (mut at, mut plain) = (0, 0);
        // SAFETY: the caller of `new` guarantees room for 6 bytes per byte of the string, and for a vector. Each byte so far took at most 6
        // bytes, so the remaining room is enough for the rest of the string. The last vector begins at the copy of a plain byte.
        unsafe {
            while let Some(mut found) = engine.copy::<UTF8>(bytes, at, to) {
                if found == 0 {
                    at += E::WIDTH;
                    to = to.add(E::WIDTH);
                    continue;
                }
                let start = at;
                while found != 0 {
                    let index = start + found.trailing_zeros() as usize;
                    (plain, to) = escape_one::<UTF8>(bytes, index, to.add(index - at));
                    at = plain;
                    // Copy the bytes after the escape. `found` is the mask of these bytes, up to the end of the vector.
                    let Some(rest) = bytes.get(at..at + E::WIDTH) else {
                        break;
                    };
                    std::ptr::copy_nonoverlapping(rest.as_ptr(), to, E::WIDTH);
                    found &= u64::MAX << (at - start);
                }
                if found == 0 && at < start + E::WIDTH {
                    to = to.add(start + E::WIDTH - at);
                    at = start + E::WIDTH;
                }
            }
            // Copy the last bytes together with some bytes before them, unless one of the earlier bytes was escaped.
            let again = (at + E::WIDTH).wrapping_sub(bytes.len());
            if again <= at - plain {
                let found = engine.copy::<UTF8>(bytes, at - again, to.sub(again));
                if found.is_some_and(|found| found >> again == 0) {
                    return to.add(E::WIDTH - again);
                }
            }
            escape_from::<UTF8>(bytes, at, to)
        }
    }
}

/// Does the same as [`escape`] for the bytes at or after `at`, 16 at a time.
///
/// # Safety
///
/// There must be room at `to` for 6 bytes per byte at or after `at`, and for one more vector.
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
            let found = specials::<UTF8>(&block) & ((1 << count) - 1);
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

/// Writes the escape of the byte at `at`, or of the three bytes of U+2028 or U+2029 there. Returns the index of the next byte to read, and
/// where to write it.
///
/// # Safety
///
/// There must be room for 8 bytes at `to`.
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

/// Returns the bytes at or after `at` (fewer than 16), followed by zeros.
fn rest(bytes: &[u8], at: usize) -> [u8; WIDTH] {
    if let Some(last) = bytes.last_chunk() {
        // Shift out 1 to 16 bytes, in two steps, because a single shift of a `u128` by 128 bits overflows.
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

/// Returns the escape of an ASCII byte: `\n` for a line feed.
#[cfg(test)]
pub(super) fn escape_of(byte: u8) -> &'static [u8] {
    let (written, len) = &ESCAPES[usize::from(byte) % ESCAPES.len()];
    &written[..*len]
}
