//! The frame check: one pass over a block that says whether it may be decoded as a whole.
//!
//! # The fast path, and why it is sound
//!
//! A streaming JSON parser is not line-based: given a block of n lines it reads values one after another, and line
//! feeds are white space to it. It accepts two objects on one line and one object over two lines, and the numbers of both may
//! cancel out. So "n values from n lines" alone proves nothing. Together with this check it does. A block is
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
//! If the block is not clean, or the parser fails or counts differently, the caller goes line by line.
//!
//! # Costs
//!
//! Linear in the block, without allocation. `check_plain` does the same one byte at a time, for comparison. Nanoseconds for a line
//! of ASCII in blocks of 64 KiB, AVX2, in one run; beside it the cost of two passes, memchr for the line feeds and then simdutf8.
//! Text that is not ASCII costs the second pass here, too.
//!
//! | bytes a line | `check` | in two passes | `check_plain` |
//! |---|---|---|---|
//! | 55 | 2.2 | 6.5 | 19 |
//! | 279 | 7.2 | 9.4 | 107 |
//! | 1,994 | 46 | 31 | 594 |

// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

use memchr::memchr_iter;

use crate::simd::{run, Engine, Level, Operation, PAGE};

/// A line does not begin with `{` or does not end with `}` (one CR may follow it), or is blank.
pub const SHAPE: u32 = 1;
/// The block is not valid UTF-8.
pub const UTF8: u32 = 2;

/// The result of one pass over the start of some data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
/// its LF). The bytes after the last LF are searched for an LF, but not checked.
#[must_use]
pub fn check(data: &[u8], max_line: usize) -> Frame {
    run(Level::Fast, Check { data, max_line })
}

struct Check<'a> {
    data: &'a [u8],
    max_line: usize,
}

impl Operation for Check<'_> {
    type Output = Frame;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Frame {
        let Self { data, max_line } = self;
        let mut checker = Checker::new(data, max_line);
        let mut ascii = true;
        let mut found = [0; PAGE];
        for (number, page) in data.chunks(PAGE).enumerate() {
            let (count, page_ascii) = engine.line_feeds(page, &mut found);
            ascii &= page_ascii;
            let mut feeds = found[..count].iter();
            if !feeds.all(|&at| checker.line_feed(number * PAGE + usize::from(at))) {
                break;
            }
        }
        checker.frame(|block| ascii || simdutf8::basic::from_utf8(block).is_ok())
    }
}

/// The same as [`check`], byte by byte.
#[must_use]
pub fn check_plain(data: &[u8], max_line: usize) -> Frame {
    let mut checker = Checker::new(data, max_line);
    let mut line_feeds = data.iter().enumerate().filter(|(_, &byte)| byte == b'\n');
    line_feeds.all(|(at, _)| checker.line_feed(at));
    checker.frame(|block| std::str::from_utf8(block).is_ok())
}

/// The end of the first line of `data` without its LF, or the length of `data` if it has none; and whether all of it up to
/// there is ASCII.
#[must_use]
pub fn line_end(data: &[u8]) -> (usize, bool) {
    run(Level::Fast, LineEnd { data })
}

struct LineEnd<'a> {
    data: &'a [u8],
}

impl Operation for LineEnd<'_> {
    type Output = (usize, bool);

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> (usize, bool) {
        engine.line_end(self.data)
    }
}

/// The defects of one line whose end is already known. `line` comes without its LF; if it is known to be ASCII, its bytes
/// are not looked at.
#[must_use]
pub fn check_line(line: &[u8], is_ascii: bool) -> u32 {
    let shape = if is_framed(line) { 0 } else { SHAPE };
    let utf8 = if is_ascii || simdutf8::basic::from_utf8(line).is_ok() {
        0
    } else {
        UTF8
    };
    shape | utf8
}

/// Writes where each line of `block` begins, the first at 0, to `starts`. Returns false if it has fewer lines than that.
#[must_use]
pub fn line_starts(block: &[u8], starts: &mut [u64]) -> bool {
    let mut written = 0;
    let begins = std::iter::once(0).chain(memchr_iter(b'\n', block).map(|at| at + 1));
    for (start, begin) in starts
        .iter_mut()
        .zip(begins.take_while(|&at| at < block.len()))
    {
        *start = begin as u64;
        written += 1;
    }
    written == starts.len()
}

/// The state of the pass, from line feed to line feed.
struct Checker<'a> {
    data: &'a [u8],
    max_line: usize,
    framed: bool,
    frame: Frame,
}

impl<'a> Checker<'a> {
    fn new(data: &'a [u8], max_line: usize) -> Self {
        Self {
            data,
            max_line,
            framed: true,
            frame: Frame::default(),
        }
    }

    /// Goes on to the next line feed. Returns whether to go on from there.
    #[inline(always)]
    fn line_feed(&mut self, at: usize) -> bool {
        let line = &self.data[self.frame.bytes..at];
        if line.len() > self.max_line {
            self.frame.too_long = Some(line.len());
            return false;
        }
        self.framed &= is_framed(line);
        self.frame.lines += 1;
        self.frame.bytes = at + 1;
        true
    }

    fn frame(mut self, is_utf8: impl FnOnce(&[u8]) -> bool) -> Frame {
        if !self.framed {
            self.frame.defects |= SHAPE;
        }
        if !is_utf8(&self.data[..self.frame.bytes]) {
            self.frame.defects |= UTF8;
        }
        self.frame
    }
}

#[inline(always)]
fn is_framed(line: &[u8]) -> bool {
    matches!(line, [b'{', .., b'}'] | [b'{', .., b'}', b'\r'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NO_LIMIT: usize = usize::MAX;

    fn defects(data: &[u8]) -> u32 {
        check(data, NO_LIMIT).defects
    }

    #[test]
    fn clean_blocks_are_clean() {
        for block in [
            "",
            "{}\n",
            "{}\r\n",
            "{\"a\":{}}\n{}\n",
            "{\"é\":\"\u{2028}\u{1f600}\"}\n",
        ] {
            assert_eq!(defects(block.as_bytes()), 0, "{block:?}");
        }
    }

    #[test]
    fn a_line_of_another_shape_is_a_defect() {
        let lines = [
            "",
            "\r",
            " ",
            "{",
            "}",
            "{}\r\r",
            " {}",
            "{} ",
            "[]",
            "{}\r{",
            "\r{}",
            "}{",
            "\u{feff}{}",
        ];
        for line in lines {
            for block in [
                format!("{line}\n"),
                format!("{{}}\n{line}\n"),
                format!("{line}\n{{}}\n"),
            ] {
                assert_eq!(defects(block.as_bytes()), SHAPE, "{block:?}");
            }
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_a_defect() {
        for bytes in [
            &b"\xff"[..],
            b"\xc3",
            b"\xed\xa0\xbd",
            b"\xf5\x80\x80\x80",
            b"\xc0\x80",
        ] {
            let line = [b"{", bytes, b"}\n"].concat();
            assert_eq!(defects(&line), UTF8, "{bytes:?}");
            assert_eq!(
                check_line(&line[..line.len() - 1], false),
                UTF8,
                "{bytes:?}"
            );
        }
        assert_eq!(defects(b"\xff\n"), SHAPE | UTF8);
    }

    #[test]
    fn a_character_cut_by_a_line_feed_is_a_defect() {
        assert_eq!(defects(b"{\xc3\n\xa9}\n"), SHAPE | UTF8);
        assert_eq!(defects(b"{\xc3}\n{\xa9}\n"), UTF8);
    }

    #[test]
    fn what_follows_the_last_line_feed_is_not_checked() {
        let found = check(b"{}\n{}\n\xff", NO_LIMIT);
        assert_eq!(
            found,
            Frame {
                lines: 2,
                bytes: 6,
                defects: 0,
                too_long: None
            }
        );
        assert_eq!(check(b"\xff", NO_LIMIT), Frame::default());
    }

    #[test]
    fn line_starts_are_where_lines_begin() {
        let block = b"{}\n\n{1}\nrest";
        let mut starts = [9; 4];
        assert!(line_starts(block, &mut starts));
        assert_eq!(starts, [0, 3, 4, 8]);
        assert!(line_starts(block, &mut [9; 2]));
        assert!(!line_starts(block, &mut [9; 5]));
        assert!(!line_starts(b"{}\n", &mut [9; 2]));
        assert!(!line_starts(b"", &mut [9; 1]));
        assert!(line_starts(b"", &mut []));
    }

    #[test]
    fn the_block_ends_before_a_line_over_the_limit() {
        let found = check(b"{}\n{1}\n{}\n", 2);
        assert_eq!(
            found,
            Frame {
                lines: 1,
                bytes: 3,
                defects: 0,
                too_long: Some(3)
            }
        );
        assert_eq!(
            check(b"{}\n{1}", 2),
            Frame {
                lines: 1,
                bytes: 3,
                defects: 0,
                too_long: None
            }
        );
    }

    fn lines() -> impl Strategy<Value = Vec<u8>> {
        let pieces: [&[u8]; 10] = [
            b"{",
            b"}",
            b"\n",
            b"\r",
            b" ",
            b"\xc3",
            b"\xa9",
            b"{}\n",
            b"{\"a\":1}\n",
            "{é😀}\n".as_bytes(),
        ];
        proptest::collection::vec(
            prop_oneof![4 => proptest::sample::select(pieces.to_vec()).prop_map(<[u8]>::to_vec),
            1 => proptest::collection::vec(any::<u8>(), 0..200)],
            0..60,
        )
        .prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn both_versions_agree(data in lines(), max_line in prop_oneof![0..40_usize, Just(NO_LIMIT)]) {
            prop_assert_eq!(check(&data, max_line), check_plain(&data, max_line));
        }

        #[test]
        fn a_block_is_clean_exactly_if_its_lines_are(data in lines()) {
            let found = check(&data, NO_LIMIT);
            let each = data[..found.bytes].split_inclusive(|&byte| byte == b'\n');
            let mut all = 0;
            for line in each {
                let line = &line[..line.len() - 1];
                prop_assert_eq!(check_line(line, false), crate::oracle::defects(line));
                all |= crate::oracle::defects(line);
            }
            prop_assert_eq!(found.defects, all);
        }
    }
}
