//! Reduces lines before they are decoded: skips unwanted kinds (`only`) and merges deltas (`coalesce`).
//!
//! The caller has complete lines, and alternates two calls. [`Filter::take`] moves past lines that are skipped or merged, and returns the
//! length of the unchanged lines after them. Then the caller gets the merged lines from [`Filter::close`], and reads the unchanged lines in
//! place. A blank line counts as skipped or as unchanged.
//!
//! # Skipping
//!
//! A line is skipped if and only if its kind ([`scan`](crate::kinds::scan)) has a type but does not match any of the [`names`]. The filter
//! checks nothing else.
//!
//! # Merging
//!
//! Mergeable deltas ([`delta`]) of the same key form a group ([`group`]), which is open until
//!
//! * any other line arrives, kept or skipped (a blank line does not count),
//! * a delta arrives that has the same key but differs in other bytes,
//! * the merged line would exceed the limit,
//! * a new group is needed while [`MAX_OPEN`] are open, or
//! * the chunk ends.
//!
//! Then all groups are closed, in the order of their first lines. So each key's text stays the same, and only deltas with different keys
//! change their order. A stream with many sessions costs no more per line than a stream with few, but if more than [`MAX_OPEN`] sessions
//! take turns, their deltas are not merged.
//!
//! # Costs
//!
//! The time is linear in the length of the data, and there is no recursion. A line that fits a [`template`](crate::kinds::template) takes
//! about as much time as comparing it with another line. Other lines are scanned. A skipped line allocates nothing, and a kept line is not
//! copied.
//!
//! Without `only`, the filter scans lines only to merge them, so it keeps a line without a scan if its first tags show that it is not a
//! delta. Scans and new groups cost credit, and merged lines earn it. When the credit is used up, the filter keeps the next `PAUSE_BYTES`
//! without looking at them.
//!
//! [`Filter::take`]: crate::filter::Filter::take
//! [`Filter::close`]: crate::filter::Filter::close
//! [`names`]: crate::filter::names
//! [`delta`]: crate::filter::delta
//! [`group`]: crate::filter::group
//! [`MAX_OPEN`]: crate::filter::group::MAX_OPEN
// The operations are inlined into one function per engine, because only this function may use vector instructions.
#![allow(clippy::inline_always)]

pub mod delta;
pub mod group;
pub mod names;
mod pass;

use std::collections::TryReserveError;

use self::group::{Groups, Order, Parts};
use self::names::Names;
use self::pass::Take;
use crate::kinds::scan::{Scan, ScanLine};
use crate::kinds::template::Templates;
use crate::lines::buffer::KEEP_BYTES;
use crate::lines::place::Place;
use crate::simd::{run, Level};

/// How many bytes of memory each part keeps for the next lines.
const KEEP_GROUP_BYTES: usize = KEEP_BYTES / 4;
const KEEP_SCRATCH_BYTES: usize = KEEP_BYTES / 16;
const KEEP_TEMPLATE_BYTES: usize = KEEP_BYTES;

/// The credit that a merged line earns, in units of about 15 ns: the time that a separate message would have taken.
const MERGED: u32 = 8;
/// The cost of scanning a line and checking its delta.
const SCAN: u32 = 40;
/// The cost of a new group, including the copy of its line.
const OPEN: u32 = 16;
/// The cost of a line that is kept because of its first tags.
const LOOK: u32 = 1;
/// The maximum credit.
const MAX_CREDIT: u32 = 96 * SCAN;
/// How many bytes the filter keeps without looking at them when the credit is used up, and the credit that it gets after them.
const PAUSE_BYTES: usize = 32 * 1024;
const PROBE: u32 = 3 * SCAN;

/// The result of [`Filter::take`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The number of lines that were merged, skipped or blank.
    pub lines: usize,
    /// The length of these lines in bytes, including LFs.
    pub bytes: usize,
    /// The length in bytes, including LFs, of the unchanged lines after them. Some may exceed the limit.
    pub kept: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Filter {
    names: Option<Names>,
    coalesce: bool,
    level: Level,
    groups: Groups,
    /// How often the groups were closed.
    closed: u64,
    templates: Templates<Known>,
    /// The key of the delta that was scanned last.
    key: Vec<u8>,
    scratch: delta::Scratch,
    /// The credit for scans without `only`. Tests set it.
    pub credit: u32,
    /// How many more bytes the filter keeps without looking at them.
    pause: usize,
    /// The number of lines skipped since the filter was created.
    pub skipped: u64,
    /// The number of lines merged into an earlier delta's line since the filter was created.
    pub merged: u64,
}

/// Whether to keep, skip or merge a line whose kind is clear.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    Skip,
    Keep,
    /// Merge a delta. Its key is in its template if it has one, and otherwise in `Filter::key`.
    Merge(Parts),
}

/// What to do with the lines that fit a template.
#[derive(Debug)]
enum Known {
    Skip,
    Keep,
    Merge {
        key: Vec<u8>,
        order: Order,
        /// The group of the last such line. It is still open if `closed` equals the filter's `closed`.
        group: usize,
        closed: u64,
    },
}

impl Filter {
    /// Returns a filter that keeps the lines whose kind is in `only` (`None` for all; see [`Names`]), and unclear lines.
    #[must_use]
    pub fn new(only: Option<&[&str]>, coalesce: bool, level: Level) -> Self {
        Self {
            names: only.map(Names::new),
            coalesce,
            level,
            groups: Groups::default(),
            closed: 0,
            templates: Templates::default(),
            key: Vec::new(),
            scratch: delta::Scratch::default(),
            credit: MAX_CREDIT,
            pause: 0,
            skipped: 0,
            merged: 0,
        }
    }

    /// Returns whether the filter can do anything with the lines that a chunk completes. A single line cannot be merged.
    #[must_use]
    pub fn is_for(&self, chunk: &[u8]) -> bool {
        self.names.is_some() || memchr::memchr_iter(b'\n', chunk).take(2).count() == 2
    }

    /// Returns whether the filter keeps every line of this length unchanged, whatever its kind.
    #[must_use]
    pub fn keeps(&self, bytes: usize) -> bool {
        self.names.is_none() && bytes > delta::MAX_BYTES
    }

    /// Takes complete lines. Stops before a line that closes the groups, and before a skipped or merged line that follows kept lines.
    /// `place` is where `data[0]` is in the stream. A merged line has at most `max_line` bytes, without its LF.
    ///
    /// # Errors
    ///
    /// Memory ran out, and lines may be lost.
    pub fn take(
        &mut self,
        data: &[u8],
        max_line: usize,
        place: Place,
    ) -> Result<Taken, TryReserveError> {
        let take = Take {
            data,
            max_line,
            place,
            filter: self,
        };
        run(take.filter.level, take)
    }

    /// Closes all groups. Calls `each` for each merged line, with bytes that begin with the line, the line's length including its LF, and
    /// the place of its first delta. [`PAD`](crate::simd::PAD) bytes follow the line.
    ///
    /// # Errors
    ///
    /// Memory ran out, and some groups are lost.
    pub fn close(&mut self, each: impl FnMut(&[u8], usize, Place)) -> Result<(), TryReserveError> {
        if self.groups.open() == 0 {
            return Ok(());
        }
        self.closed += 1;
        self.groups.close(each)
    }

    fn earn(&mut self, credit: u32) {
        let credit = self.credit.saturating_add(credit).min(MAX_CREDIT);
        self.credit = self.credit.max(credit);
    }

    /// Ends a chunk. Keeps at most twice [`KEEP_BYTES`] of memory, most of it for templates.
    pub fn rest(&mut self) {
        if self.groups.open() > 0 {
            // After an error, a later call must not return the open groups.
            self.groups.abandon();
            self.closed += 1;
        }
        self.groups.shrink(KEEP_GROUP_BYTES);
        if self.scratch.held() + self.key.capacity() > KEEP_SCRATCH_BYTES {
            self.scratch = delta::Scratch::default();
            self.key = Vec::new();
        }
        if self.held_by_templates() > KEEP_TEMPLATE_BYTES {
            self.templates.clear();
        }
    }

    /// Returns the number of bytes of memory held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.groups.held() + self.held_by_templates() + self.scratch.held() + self.key.capacity()
    }

    fn held_by_templates(&self) -> usize {
        let keys = self.templates.all_known().map(|known| match known {
            Known::Merge { key, .. } => key.capacity(),
            Known::Keep | Known::Skip => 0,
        });
        self.templates.held() + keys.sum::<usize>()
    }

    /// Returns whether a last line without LF is kept. If it is not, counts it as skipped.
    pub fn keeps_last(&mut self, line: &[u8]) -> bool {
        if self.names.is_none() {
            return true;
        }
        let found = run(self.level, ScanLine(line, 0));
        let kept = self.wants(line, &found);
        self.skipped += u64::from(!kept);
        kept
    }

    #[inline(never)]
    fn wants(&self, data: &[u8], found: &Scan) -> bool {
        let names = self.names.as_ref();
        names.is_none_or(|names| names.want(data, &found.kind))
    }
}

#[cfg(test)]
mod tests;
