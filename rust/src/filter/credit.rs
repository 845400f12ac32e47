//! Whether merging pays: which lines of a stream go through the filter, and which are left as they came.
//!
//! The filter scans and copies each line. That pays where most lines are merged; where few are, it costs up to as much again as
//! decoding them. So a stream begins *plain*, and merging is earned. A credit stands for the time that it saves:
//!
//! | | line | credit |
//! |---|---|---|
//! | [`MERGED`] | a delta that is merged into another | +2 |
//! | [`GROUP`] | the line that comes of merged deltas, or of one that found none to be merged with | -1 |
//! | [`OTHER`] | any other line | -3 |
//!
//! * Plain: the lines of a block are looked at before it is lent. One that looks like a delta counts as merged behind another that
//!   does, and as a group's behind any other line. The first line of a chunk says nothing, nor one behind a line that was not looked at. If the
//!   credit is [`NEEDED`] at the end of the block, merging begins behind the last line that left none, with it if it is a delta, or else with the
//!   first line of the block. The credit is [`START`] then.
//! * Merging: groups are counted when they close, the merged lines first, up to [`MAX`]; other lines at once. At 0 merging ends
//!   behind that line.
//! * If fewer than [`PAYS`] lines were merged until then, twice as much is needed the next time, up to [`MAX_NEEDED`]; else [`NEEDED`].
//!
//! So what is merged depends on the lines and on where chunks end, never on time. A line that is not looked at is one that is longer than a
//! block, or that an earlier chunk began.
//!
//! # Costs
//!
//! Nanoseconds: a merged line saves 370, a group takes 150, another line 600 (recorded ones, of 830 bytes), and that merging begins
//! and ends 7,000. A look takes 10 a line, of the 400 and more that decoding takes: a comparison where the line begins as the CLI's
//! events do, else a search of its first bytes.

use std::sync::LazyLock;

use memchr::{memchr_iter, memmem};

use crate::lines::buffer::BLOCK_BYTES;

/// What a merged line adds.
pub const MERGED: usize = 2;
/// What the line of a group takes.
pub const GROUP: usize = 1;
/// What any other line takes.
pub const OTHER: usize = 3;
/// Credit for which merging begins: that of 32 lines.
pub const NEEDED: usize = 32 * MERGED;
/// Most that is ever needed.
pub const MAX_NEEDED: usize = 4096 * MERGED;
/// Credit that merging begins with.
pub const START: usize = 8 * OTHER;
/// Most credit while merging.
pub const MAX: usize = 32 * OTHER;
/// Lines that must be merged until merging ends, for it to have paid.
pub const PAYS: usize = 32;
/// How much is searched of a line that does not begin as the CLI's events do.
pub const LOOK_BYTES: usize = 256;

/// How the CLI begins a line of an event, and the type of a delta's event.
const EVENT: &[u8; 39] = br#"{"type":"stream_event","event":{"type":"#;
const DELTA: &[u8; 21] = b"\"content_block_delta\"";

static FIND_DELTA: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(DELTA));

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Credit {
    left: usize,
    most: usize,
    needed: usize,
    merging: bool,
    /// Lines merged since merging began.
    merged: usize,
    /// Whether the line before, of this chunk, looks like a delta; `None` if it is not known.
    before: Option<bool>,
}

impl Credit {
    /// That of a stream that begins plain.
    #[must_use]
    pub fn earned() -> Self {
        Self {
            left: 0,
            most: MAX,
            needed: NEEDED,
            merging: false,
            merged: 0,
            before: None,
        }
    }

    /// That of a stream all of which goes through the filter: it is never spent.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            left: usize::MAX,
            most: usize::MAX,
            merging: true,
            ..Self::earned()
        }
    }

    /// Whether lines go through the filter.
    #[must_use]
    pub fn is_merging(&self) -> bool {
        self.merging
    }

    /// Whether no further line goes through the filter.
    #[inline]
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Counts groups that were closed, and the lines that were merged in them.
    pub fn groups(&mut self, groups: usize, merged: u64) {
        let merged = usize::try_from(merged).unwrap_or(usize::MAX);
        let earned = merged.saturating_mul(MERGED);
        self.left = self.left.saturating_add(earned).min(self.most);
        self.left = self.left.saturating_sub(GROUP * groups);
        self.merged = self.merged.saturating_add(merged);
    }

    /// Counts lines that came out of the filter as they were.
    #[inline]
    pub fn others(&mut self, lines: usize) {
        self.left = self.left.saturating_sub(OTHER * lines);
    }

    /// Ends merging if the credit is spent.
    pub fn settle(&mut self) {
        if self.is_spent() && self.merging {
            self.merging = false;
            self.needed = if self.merged < PAYS {
                MAX_NEEDED.min(2 * self.needed)
            } else {
                NEEDED
            };
        }
    }

    /// What comes next follows no line that is known: another chunk begins, or a line comes that is not looked at.
    pub fn forget(&mut self) {
        self.before = None;
    }

    /// Another stream begins.
    pub fn restart(&mut self) {
        if self.most == MAX {
            *self = Self::earned();
        }
    }

    /// Looks at the complete lines within the first [`BLOCK_BYTES`] of `data`, up to the first that is longer than `max_line` bytes, and
    /// returns how much of `data` is to be left as it came: all, or what stands before the line with which merging begins.
    pub fn look(&mut self, data: &[u8], max_line: usize) -> usize {
        let window = &data[..data.len().min(BLOCK_BYTES)];
        let (mut from, mut begin) = (0, 0);
        for at in memchr_iter(b'\n', window) {
            if at - from > max_line {
                break;
            }
            let looks = looks_like_delta(&window[from..at]);
            self.left_alone(looks);
            if self.left == 0 {
                begin = if looks { from } else { at + 1 };
            }
            from = at + 1;
        }
        if from == 0 {
            self.forget(); // its first line is too long for a look
        } else if self.left >= self.needed {
            self.merging = true;
            self.left = START;
            self.merged = 0;
            self.before = None;
            return begin;
        }
        data.len()
    }

    /// Counts a line as if it were merged where it can be.
    fn left_alone(&mut self, looks: bool) {
        match (self.before.replace(looks), looks) {
            (None, _) => (),
            (Some(true), true) => self.left += MERGED,
            (Some(false), true) => self.left = self.left.saturating_sub(GROUP),
            (Some(_), false) => self.left = self.left.saturating_sub(OTHER),
        }
    }
}

/// Whether a line is perhaps a delta: whether the type of its event stands where the CLI has it, or within the first bytes of
/// a line that begins otherwise.
#[inline]
fn looks_like_delta(line: &[u8]) -> bool {
    // Arrays of a known length are compared without a call.
    if line.first_chunk() == Some(EVENT) {
        return line[EVENT.len()..].first_chunk() == Some(DELTA);
    }
    let begin = &line[..line.len().min(LOOK_BYTES)];
    FIND_DELTA.find(begin).is_some()
}
