//! A buffer for lines that are written: it takes keys, and strings that are escaped on the way, a vector at a time.
//!
//! Each function makes room for the most that it may write, and then writes without looking for the end. So all that `unsafe` relies
//! on here is that no function writes more than it has reserved.

use super::short::{specials, vector, PAD, WIDTH};

/// The longest whole number: `-9223372036854775808`.
const INT_ROOM: usize = 20;
/// The bytes of a string that are written at once.
const PART: usize = 4096;

/// A few bytes that are written often.
pub struct Words {
    /// The bytes, with zeros behind.
    bytes: [u8; PAD],
    len: usize,
    /// All of them, if they are more.
    long: Box<[u8]>,
}

impl Words {
    /// These bytes.
    #[must_use]
    pub fn new(words: &[u8]) -> Self {
        let (mut bytes, mut long) = ([0; PAD], Box::default());
        if let Some(part) = bytes.get_mut(..words.len()) {
            part.copy_from_slice(words);
        } else {
            long = words.into();
        }
        Self {
            bytes,
            len: words.len(),
            long,
        }
    }

    /// The bytes.
    #[must_use]
    pub fn all(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.long)
    }
}

/// Bytes that are written. Without memory, its functions return `None` and write nothing.
#[derive(Default)]
pub struct Output(Vec<u8>);

impl Output {
    /// What was written.
    #[inline(always)]
    #[must_use]
    pub fn written(&self) -> &[u8] {
        &self.0
    }

    /// The bytes that there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Forgets what was written, and gives back room for more than `kept` bytes.
    pub fn clear(&mut self, kept: usize) {
        self.0.clear();
        self.0.shrink_to(kept);
    }

    /// Forgets what was written after so many bytes.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Changes a byte that was written.
    #[inline(always)]
    pub fn change(&mut self, at: usize, byte: u8) {
        self.0[at] = byte;
    }

    /// Where the next bytes are written, with room for `len`.
    #[inline(always)]
    fn reserve(&mut self, len: usize) -> Option<*mut u8> {
        if self.0.capacity() - self.0.len() < len {
            self.grow(len)?;
        }
        // SAFETY: the length is at most the capacity.
        Some(unsafe { self.0.as_mut_ptr().add(self.0.len()) })
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, len: usize) -> Option<()> {
        self.0.try_reserve(len).ok()
    }

    /// # Safety
    ///
    /// All bytes up to `end` are written, which is in the room that was reserved last.
    #[inline(always)]
    unsafe fn end_at(&mut self, end: *mut u8) {
        let len = end as usize - self.0.as_ptr() as usize;
        // SAFETY: the caller promises it.
        unsafe { self.0.set_len(len) }
    }

    /// Writes bytes.
    #[inline(always)]
    pub fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.reserve(bytes.len())?;
        self.0.extend_from_slice(bytes);
        Some(())
    }

    /// Writes words, and a few bytes behind them.
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
            return self.long_text(text, true);
        }
        // SAFETY: there is room for as many.
        unsafe {
            let to = self.reserve_words(words, escaped_room(text.len()))?;
            let end = quoted::<false>(text, to);
            self.end_at(end);
        }
        Some(())
    }

    /// Writes a string with its quotes, and a few bytes before and behind. Separators of lines are escaped unless the bytes are ASCII.
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
            self.long_text(text, is_ascii)?;
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

    #[inline(never)]
    fn long_text(&mut self, mut text: &[u8], is_ascii: bool) -> Option<()> {
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
unsafe fn int(value: i64, mut to: *mut u8) -> *mut u8 {
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
        while place > to {
            place = place.sub(1);
            #[allow(clippy::cast_possible_truncation)] // It is a digit.
            place.write(b'0' + (rest % 10) as u8);
            rest /= 10;
        }
        end
    }
}

/// How many bytes a string may need, with its quotes and the rest of a vector.
fn escaped_room(len: usize) -> usize {
    6 * len + 2 + WIDTH
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
    let len = bytes.len();
    let mut at = 0;
    // SAFETY: as many bytes are written as are read, or a vector more.
    unsafe {
        if let Some(last) = bytes.last_chunk::<WIDTH>() {
            let end = len - WIDTH;
            loop {
                let block = &*bytes.as_ptr().add(at).cast::<[u8; WIDTH]>();
                to.add(at).cast::<[u8; WIDTH]>().write_unaligned(*block);
                if !is_plain(block) {
                    break;
                }
                at += WIDTH;
                if at > end {
                    // Some of the last vector was written before.
                    to.add(end).cast::<[u8; WIDTH]>().write_unaligned(*last);
                    if is_plain(last) {
                        return to.add(len);
                    }
                    break;
                }
            }
        } else if let (Some(first), Some(last)) =
            (bytes.first_chunk::<8>(), bytes.last_chunk::<8>())
        {
            to.cast::<[u8; 8]>().write_unaligned(*first);
            to.add(len - 8).cast::<[u8; 8]>().write_unaligned(*last);
            let both = [u64::from_le_bytes(*first), u64::from_le_bytes(*last)];
            if is_plain(&(u128::from(both[0]) | u128::from(both[1]) << 64).to_le_bytes()) {
                return to.add(len);
            }
        } else if let (Some(first), Some(last)) =
            (bytes.first_chunk::<4>(), bytes.last_chunk::<4>())
        {
            to.cast::<[u8; 4]>().write_unaligned(*first);
            to.add(len - 4).cast::<[u8; 4]>().write_unaligned(*last);
            let first = u64::from(u32::from_le_bytes(*first));
            let both = first | u64::from(u32::from_le_bytes(*last)) << 32;
            if is_plain(&(u128::from(both) | u128::from(both) << 64).to_le_bytes()) {
                return to.add(len);
            }
        } else if len == 0 {
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
            at += index;
            to = to.add(index);
            let byte = bytes[at];
            if UTF8 && byte == 0xe2 {
                let separator = match bytes.get(at + 1..at + 3) {
                    Some([0x80, 0xa8]) => b"\\u2028",
                    Some([0x80, 0xa9]) => b"\\u2029",
                    _ => {
                        // It is there already.
                        at += 1;
                        to = to.add(1);
                        continue;
                    }
                };
                to.cast::<[u8; 6]>().write_unaligned(*separator);
                at += 3;
                to = to.add(6);
            } else {
                let (written, len) = &ESCAPES[usize::from(byte) % ESCAPES.len()];
                to.cast::<[u8; 8]>().write_unaligned(*written);
                at += 1;
                to = to.add(*len);
            }
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
