//! The frame check: one pass over a block that says whether it may be decoded as a whole.
//!
//! # The fast path, and why it is sound
//!
//! A streaming JSON parser is not line-based: given a block of n lines it reads values one after another, and line
//! feeds are white space to it. It takes two objects on one line, or one object over two lines, and both in numbers
//! that cancel out. So "n values from n lines" alone proves nothing. It does together with this check. A block is
//! *clean* if and only if
//!
//! 1. every line begins with `{` and ends with `}`, where one CR may stand between the `}` and the LF
//!    (so no line is blank), and
//! 2. the whole block is valid UTF-8.
//!
//! Claim: if a block of n lines is clean, and a parser that obeys RFC 8259 reads exactly n values from it without an
//! error, then each line is exactly one object.
//!
//! Proof. Look at the end of a line with a line after it: `}`, perhaps CR, LF, `{`. JSON allows no raw control
//! byte inside a string, so the parser is not in a string at the LF, nor at the `}` before it or the `{` after it:
//! all of them are structural. Inside an array or object, a value's end and the next `{` are separated by at least a
//! comma, and here there is only white space. So the `}` ended a top-level value, and the `{` begins the next: every
//! line feed is a border between top-level values. Each line is therefore a whole number of values; at least one,
//! because it is not blank; and n values over n lines make one each. It begins with `{`, so it is an object. ∎
//!
//! Where the check is not clean, or the parser fails or counts differently, the caller goes line by line.
//!
//! # Costs
//!
//! Linear in the block, without allocation. Per line of 285 bytes, in blocks of 64 KiB, AVX2, one core:
//! see [`check`]. [`check_plain`] does the same one byte at a time; it is there to be compared with.

use memchr::memchr_iter;

/// A line does not begin with `{` or does not end with `}` (one CR may follow it), or is blank.
pub const SHAPE: u32 = 1;
/// The block is not valid UTF-8.
pub const UTF8: u32 = 2;

/// What one pass over the start of some data found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Complete lines, each ended by its LF.
    pub lines: usize,
    /// Their length with every LF: the block is `data[..bytes]`, the rest was not checked.
    pub bytes: usize,
    /// Why the block is not clean: 0, or [`SHAPE`] and [`UTF8`] added up.
    pub defects: u32,
    /// Length without its LF of the line that follows the block, if it is complete and longer than the limit.
    pub too_long: Option<usize>,
}

/// Checks the complete lines at the start of `data`, up to the first that is longer than `max_line` bytes (without
/// its LF). What follows the last LF is searched and found to have none, but not checked.
#[must_use]
pub fn check(data: &[u8], max_line: usize) -> Frame {
    let mut frame = scan(memchr_iter(b'\n', data), data, max_line);
    if simdutf8::basic::from_utf8(&data[..frame.bytes]).is_err() {
        frame.defects |= UTF8;
    }
    frame
}

/// The same as [`check`], byte by byte.
#[must_use]
pub fn check_plain(data: &[u8], max_line: usize) -> Frame {
    let line_feeds = data.iter().enumerate().filter(|(_, &byte)| byte == b'\n');
    let mut frame = scan(line_feeds.map(|(at, _)| at), data, max_line);
    if std::str::from_utf8(&data[..frame.bytes]).is_err() {
        frame.defects |= UTF8;
    }
    frame
}

/// The defects of one line whose end is already known. `line` comes without its LF.
#[must_use]
pub fn check_line(line: &[u8]) -> u32 {
    let shape = if is_framed(line) { 0 } else { SHAPE };
    let utf8 = if simdutf8::basic::from_utf8(line).is_ok() {
        0
    } else {
        UTF8
    };
    shape | utf8
}

#[inline]
fn scan(line_feeds: impl Iterator<Item = usize>, data: &[u8], max_line: usize) -> Frame {
    let mut frame = Frame {
        lines: 0,
        bytes: 0,
        defects: 0,
        too_long: None,
    };
    let mut framed = true;
    for at in line_feeds {
        let line = &data[frame.bytes..at];
        if line.len() > max_line {
            frame.too_long = Some(line.len());
            break;
        }
        framed &= is_framed(line);
        frame.lines += 1;
        frame.bytes = at + 1;
    }
    if !framed {
        frame.defects |= SHAPE;
    }
    frame
}

#[inline]
fn is_framed(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    matches!(line, [b'{', .., b'}'])
}
