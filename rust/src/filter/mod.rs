//! Reduces lines before they are decoded: skips other kinds (`only`), merges deltas (`coalesce`).
//!
//! The caller has complete lines, and alternates two calls. [`Filter::take`] goes past lines that are skipped or merged, and returns
//! the length of the unchanged lines after them. Then [`Filter::close`] gives the merged lines, and the caller reads
//! the unchanged lines in place. A blank line counts as skipped or as unchanged.
//!
//! # Skipping
//!
//! A line is skipped if and only if its kind ([`scan`](crate::kinds::scan)) has a type and matches none of the [`names`]. Nothing
//! else is checked.
//!
//! # Merging
//!
//! Mergeable deltas ([`delta`]) of the same key form a group ([`group`]), which is open until
//!
//! * any other line comes, kept or skipped (a blank line does not count),
//! * a delta with the same key comes, but differs in other bytes,
//! * the merged line would exceed the limit,
//! * a new group is needed while [`MAX_OPEN`] are open, or
//! * the chunk ends.
//!
//! Then all groups are closed, in the order of their first lines. So the text of each key stays the same, and only deltas of
//! different keys change their order. A stream of many sessions costs no more per line than a stream of few, but deltas of more
//! than [`MAX_OPEN`] sessions that take turns are not merged.
//!
//! # Costs
//!
//! Linear in the data, without recursion. A line that fits a [`template`](crate::kinds::template) takes about as much time as comparing
//! it with another line. Other lines are scanned. A skipped line allocates nothing, and a kept line is not copied.
//!
//! Without `only`, lines are scanned only to be merged, so the filter keeps a line unscanned if its first tags show that it is not a
//! delta. Scans and new groups cost credit, and merged lines earn it. When the credit is used up, the filter keeps the next
//! `PAUSE_BYTES` unseen.
//!
//! [`Filter::take`]: crate::filter::Filter::take
//! [`Filter::close`]: crate::filter::Filter::close
//! [`names`]: crate::filter::names
//! [`delta`]: crate::filter::delta
//! [`group`]: crate::filter::group
//! [`MAX_OPEN`]: crate::filter::group::MAX_OPEN
// The operations are inlined into one function per engine: vector instructions may be used only there.
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

/// Bytes of memory that each part keeps for the next lines.
const KEEP_GROUP_BYTES: usize = KEEP_BYTES / 4;
const KEEP_SCRATCH_BYTES: usize = KEEP_BYTES / 16;
const KEEP_TEMPLATE_BYTES: usize = KEEP_BYTES;

/// The credit that a merged line earns, in units of 15 ns or so: the time that a message would have taken.
const MERGED: u32 = 8;
/// The price of a scan, with the check of a delta.
const SCAN: u32 = 40;
/// The price of a new group, whose line is copied.
const OPEN: u32 = 16;
/// The price of a line that is kept because of its first tags.
const LOOK: u32 = 1;
/// The most credit.
const MAX_CREDIT: u32 = 96 * SCAN;
/// The bytes that are kept unseen when the credit is used up, and the credit after them.
const PAUSE_BYTES: usize = 32 * 1024;
const PROBE: u32 = 3 * SCAN;

/// The result of [`Filter::take`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Lines that were passed over: merged, skipped or blank.
    pub lines: usize,
    /// Their length, with LFs.
    pub bytes: usize,
    /// Length of the lines after them that are kept as they are, with LFs. Some may exceed the limit.
    pub kept: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Filter {
    names: Option<Names>,
    coalesce: bool,
    level: Level,
    groups: Groups,
    /// Number of times that the groups were closed.
    closed: u64,
    templates: Templates<Known>,
    /// The key of the last delta that was scanned.
    key: Vec<u8>,
    scratch: delta::Scratch,
    /// Credit for scans without `only`. Tests set it.
    pub credit: u32,
    /// Bytes that the filter still keeps unseen.
    pause: usize,
    /// Lines skipped since the filter was made.
    pub skipped: u64,
    /// Lines merged into the line of an earlier delta since the filter was made.
    pub merged: u64,
}

/// What to do with a clear line.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    Skip,
    Keep,
    /// Merge a delta. Its key is in its template, or else in `Filter::key`.
    Merge(Parts),
}

/// What to do with the lines of a template.
#[derive(Debug)]
enum Known {
    Skip,
    Keep,
    Merge {
        key: Vec<u8>,
        order: Order,
        /// The group of the last such line. It is open if `closed` is still that of the filter.
        group: usize,
        closed: u64,
    },
}

impl Filter {
    /// A filter that keeps lines of the kinds in `only` (`None` for all; see [`Names`]), and lines of unclear kind.
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

    /// Whether the filter can do anything with the lines that a chunk completes. A single line has no other to be merged with.
    #[must_use]
    pub fn is_for(&self, chunk: &[u8]) -> bool {
        self.names.is_some() || memchr::memchr_iter(b'\n', chunk).take(2).count() == 2
    }

    /// Whether a line of this length is kept as it is, whatever its kind.
    #[must_use]
    pub fn keeps(&self, bytes: usize) -> bool {
        self.names.is_none() && bytes > delta::MAX_BYTES
    }

    /// Takes complete lines, up to the first that needs the groups to be closed before it, or that is not kept after kept lines.
    /// `place` is that of `data[0]`. A merged line gets at most `max_line` bytes, without its LF.
    ///
    /// # Errors
    ///
    /// When memory cannot be had. Lines may be lost then.
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

    /// Closes all groups. Calls `each` with each merged line: bytes that begin with the line, its length with its LF, and where its first
    /// delta was. [`PAD`](crate::simd::PAD) bytes follow the line.
    ///
    /// # Errors
    ///
    /// When memory cannot be had. Some groups are lost then.
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

    /// Ends a chunk: keeps at most twice [`KEEP_BYTES`] of memory, most of it for templates.
    pub fn rest(&mut self) {
        if self.groups.open() > 0 {
            // After an error, the open groups must not come out later.
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

    /// Bytes of memory held.
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

    /// Whether a last line without LF is kept. Counts it as skipped if not.
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
