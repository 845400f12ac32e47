//! A buffer for lines that are written: it takes keys, and strings that are escaped on the way, a vector at a time.
//!
//! Each function makes room for the most that it may write, and then writes without looking for the end. So all that `unsafe` relies
//! on here is that no function writes more than it has reserved.

use super::short::{specials, vector, PAD, WIDTH};
use super::{run, Engine, Level, Operation, MOST_WIDTH};

/// The longest whole number: `-9223372036854775808`.
const INT_ROOM: usize = 20;
/// The bytes of a string that are written at once.
const PART: usize = 4096;

/// A few bytes that are written often.
#[derive(Clone)]
pub struct Words {
    /// The bytes, followed by zeros.
    bytes: [u8; PAD],
    len: usize,
    /// All of them, if they are more.
    long: Vec<u8>,
}

impl Words {
    /// Up to this many bytes need no memory of their own.
    pub const FEW: usize = PAD;

    /// These bytes.
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

    /// These bytes, which are at most [`FEW`](Self::FEW).
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

    /// The bytes.
    #[must_use]
    pub fn all(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.long)
    }
}

/// Bytes that are written. Without memory, its functions return `None` and write nothing.
pub struct Output {
    /// The memory. Its length is 0: how much is written is said by `at`.
    memory: Vec<u8>,
    /// The start of the memory.
    start: *mut u8,
    /// Where the next byte is written. All before are.
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
    /// Sets the pointers into the memory, of which `len` bytes are written.
    fn point(&mut self, len: usize) {
        self.start = self.memory.as_mut_ptr();
        // SAFETY: these bytes are written, and the memory is as long as its capacity.
        unsafe {
            self.at = self.start.add(len);
            self.end = self.start.add(self.memory.capacity());
        }
    }

    /// Where the next byte is written.
    #[inline(always)]
    #[must_use]
    pub fn place(&self) -> usize {
        self.at as usize - self.start as usize
    }

    /// What was written.
    #[inline(always)]
    #[must_use]
    pub fn written(&self) -> &[u8] {
        // SAFETY: all bytes up to `at` are written.
        unsafe { std::slice::from_raw_parts(self.start, self.place()) }
    }

    /// The bytes that there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Forgets what was written, and gives back room for more than `kept` bytes.
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
            // SAFETY: this many bytes are written.
            self.at = unsafe { self.start.add(len) };
        }
    }

    /// Changes a byte, if it was written.
    #[inline(always)]
    pub fn change(&mut self, at: usize, byte: u8) {
        if at < self.place() {
            // SAFETY: it was written.
            unsafe { self.start.add(at).write(byte) }
        }
    }

    /// Where the next bytes are written, with room for `len`.
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
        // SAFETY: all bytes up to `at` are written.
        unsafe { self.memory.set_len(written) };
        let grown = self.memory.try_reserve(len).ok();
        // SAFETY: none are fewer.
        unsafe { self.memory.set_len(0) };
        self.point(written);
        grown
    }

    /// # Safety
    ///
    /// All bytes up to `end` are written, which is in the room that was reserved last.
    #[inline(always)]
    unsafe fn end_at(&mut self, end: *mut u8) {
        self.at = end;
    }

    /// Writes bytes.
    #[inline(always)]
    pub fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let to = self.reserve(bytes.len())?;
        // SAFETY: there is room for as many.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            self.end_at(to.add(bytes.len()));
        }
        Some(())
    }

    /// Writes words, and a few bytes after them.
    #[inline(always)]
    pub fn words<const N: usize>(&mut self, words: &Words, behind: [u8; N]) -> Option<()> {
        // SAFETY: there is room for as many.
        unsafe {
            let to = self.reserve_words(words, N)?;
            to.cast::<[u8; N]>().write_unaligned(behind);
            self.end_at(to.add(N));
        }
        Some(())
    }

    /// Writes words, and returns where the next bytes are written, with room for `len`.
    #[inline(always)]
    fn reserve_words(&mut self, words: &Words, len: usize) -> Option<*mut u8> {
        if words.len > PAD {
            self.bytes(&words.long)?;
            return self.reserve(len);
        }
        let to = self.reserve(PAD + len)?;
        // SAFETY: there is room for all of them, zeros included; the words are no more.
        unsafe {
            to.cast::<[u8; PAD]>().write_unaligned(words.bytes);
            let to = to.add(words.len);
            Some(to)
        }
    }

    /// Writes words, and a string of ASCII with its quotes.
    #[inline(always)]
    pub fn words_and_text(&mut self, words: &Words, text: &[u8]) -> Option<()> {
        if text.len() > PART {
            self.bytes(words.all())?;
            return self.other_text(text, true);
        }
        // SAFETY: there is room for as many.
        unsafe {
            let to = self.reserve_words(words, escaped_room(text.len()))?;
            let end = quoted::<false>(text, to);
            self.end_at(end);
        }
        Some(())
    }

    /// Writes a string with its quotes, and a few bytes before and after it. Separators of lines are escaped unless the bytes are ASCII.
    #[inline(always)]
    pub fn text<const N: usize, const M: usize>(
        &mut self,
        before: [u8; N],
        text: &[u8],
        is_ascii: bool,
        behind: [u8; M],
    ) -> Option<()> {
        if text.len() > PART || !is_ascii {
            self.bytes(&before)?;
            self.other_text(text, is_ascii)?;
            return self.bytes(&behind);
        }
        // SAFETY: there is room for as many.
        unsafe {
            let to = self.reserve(N + escaped_room(text.len()) + M)?;
            to.cast::<[u8; N]>().write_unaligned(before);
            let to = quoted::<false>(text, to.add(N));
            to.cast::<[u8; M]>().write_unaligned(behind);
            self.end_at(to.add(M));
        }
        Some(())
    }

    /// Writes a string that is long, or not ASCII.
    #[inline(never)]
    fn other_text(&mut self, mut text: &[u8], is_ascii: bool) -> Option<()> {
        self.bytes(b"\"")?;
        while !text.is_empty() {
            let mut end = text.len().min(PART);
            // No character is cut.
            while text.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
                end -= 1;
            }
            let (part, rest) = text.split_at(end);
            let to = self.reserve(escaped_room(part.len()))?;
            // SAFETY: there is room for as many.
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

    /// Writes a whole number.
    #[inline(always)]
    pub fn int(&mut self, value: i64) -> Option<()> {
        let to = self.reserve(INT_ROOM)?;
        // SAFETY: there is room for as many.
        unsafe {
            let end = int(value, to);
            self.end_at(end);
        }
        Some(())
    }

    /// Writes a point, and the digits of a number in `places` places, at most 16. The number is not negative.
    pub fn fraction(&mut self, digits: i64, places: usize) -> Option<()> {
        let mut rest = digits;
        let mut written = [b'0'; 17];
        let written = written.get_mut(..=places)?;
        for place in written.iter_mut().rev() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is a digit.
            let digit = (rest % 10) as u8;
            *place = b'0' + digit;
            rest /= 10;
        }
        written[0] = b'.';
        self.bytes(written)
    }

    /// Writes words, and a whole number.
    #[inline(always)]
    pub fn words_and_int(&mut self, words: &Words, value: i64) -> Option<()> {
        // SAFETY: there is room for as many.
        unsafe {
            let to = self.reserve_words(words, INT_ROOM)?;
            let end = int(value, to);
            self.end_at(end);
        }
        Some(())
    }
}

/// Writes a whole number, and returns where it ends.
///
/// # Safety
///
/// There is room for [`INT_ROOM`] bytes.
#[inline(always)]
unsafe fn int(value: i64, to: *mut u8) -> *mut u8 {
    // SAFETY: the caller promises room.
    unsafe {
        match value {
            0..10 => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                // It is a digit.
                to.write(b'0' + value as u8);
                to.add(1)
            }
            _ => long_int(value, to),
        }
    }
}

/// As [`int`], for numbers of any length.
///
/// # Safety
///
/// As of [`int`].
#[inline(never)]
unsafe fn long_int(value: i64, mut to: *mut u8) -> *mut u8 {
    let mut rest = value.unsigned_abs();
    // SAFETY: there are as many digits as the logarithm says, at most 19, and perhaps a sign.
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
            #[allow(clippy::cast_possible_truncation)] // It is a digit.
            to.write(b'0' + rest as u8);
        }
        end
    }
}

/// The numbers of two digits.
static PAIRS: [[u8; 2]; 100] = {
    let mut all = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        #[allow(clippy::cast_possible_truncation)] // They are digits.
        let two = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        all[number] = two;
        number += 1;
    }
    all
};

/// How many bytes a string may need, with its quotes and the rest of the widest vector.
fn escaped_room(len: usize) -> usize {
    6 * len + 2 + MOST_WIDTH
}

/// Writes a string with its quotes, and returns where it ends.
///
/// # Safety
///
/// There is [`escaped_room`].
#[inline(always)]
unsafe fn quoted<const UTF8: bool>(bytes: &[u8], to: *mut u8) -> *mut u8 {
    // SAFETY: the caller promises room.
    unsafe {
        to.write(b'"');
        let end = escape::<UTF8>(bytes, to.add(1));
        end.write(b'"');
        end.add(1)
    }
}

/// Writes bytes as a JSON string has them, and returns where they end. U+2028 and U+2029 are escaped if they are `UTF8`, or else the
/// bytes are ASCII.
///
/// # Safety
///
/// There is room for six times as many, and a vector.
#[inline(always)]
unsafe fn escape<const UTF8: bool>(bytes: &[u8], to: *mut u8) -> *mut u8 {
    let is_plain = |block: &[u8; WIDTH]| specials(block, also::<UTF8>()) == 0;
    let both = |first: u64, last: u64| (u128::from(first) | u128::from(last) << 64).to_le_bytes();
    let len = bytes.len();
    let mut at = 0;
    // SAFETY: as many bytes are written as are read, or a vector more.
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
            // Some of the last vector may have been written before.
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

/// The byte that is looked for beside those that every string escapes: the first of U+2028 and U+2029.
#[inline(always)]
fn also<const UTF8: bool>() -> u8 {
    if UTF8 {
        0xe2
    } else {
        b'"'
    }
}

/// From this many bytes on, the call for wider vectors pays.
const LONG: usize = 96;

/// As [`escape`], for a long string.
///
/// # Safety
///
/// As of [`escape`], for the widest vector.
#[inline(never)]
unsafe fn escape_long<const UTF8: bool>(bytes: &[u8], to: *mut u8) -> *mut u8 {
    // SAFETY: the caller promises room.
    run(Level::Fast, unsafe { Long::<UTF8>::new(bytes, to) })
}

/// What [`escape_long`] does.
pub(super) struct Long<'a, const UTF8: bool> {
    bytes: &'a [u8],
    to: *mut u8,
}

impl<'a, const UTF8: bool> Long<'a, UTF8> {
    /// # Safety
    ///
    /// As of [`escape_long`].
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
        // SAFETY: who has made this has room for six times as many bytes, and a vector.
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

/// As [`escape`], from `at` on.
///
/// # Safety
///
/// As of [`escape`], for what is left.
#[inline(never)]
unsafe fn escape_from<const UTF8: bool>(bytes: &[u8], mut at: usize, mut to: *mut u8) -> *mut u8 {
    // SAFETY: a byte becomes at most six, of which eight are written; a vector of which some count is written whole.
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

/// Writes the special byte at `at`, or the separator that begins with it; returns where the next is, and where it is written.
///
/// # Safety
///
/// There is room for eight bytes.
#[inline(always)]
unsafe fn escape_one<const UTF8: bool>(bytes: &[u8], at: usize, to: *mut u8) -> (usize, *mut u8) {
    let byte = bytes[at];
    // SAFETY: no more are written.
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

/// The bytes from `at` on, fewer than 16, followed by zeros.
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
