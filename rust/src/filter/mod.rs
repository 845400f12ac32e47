//! Lines in, the lines that are wanted out: other kinds skipped (`only`), deltas merged (`coalesce`).
//!
//! Lines that are kept are copied into a block of the filter's own, each with its place in the stream: they no longer lie
//! in one piece where they came from.
//!
//! # Skipping
//!
//! A line is skipped if and only if its kind ([`scan`](crate::kinds::scan)) has a type and matches none of the [`names`]. Nothing
//! else of it is checked. Blank lines are left out, too, and not counted.
//!
//! # Merging
//!
//! Mergeable deltas ([`delta`]) of the same key form a group ([`group`]), which is open until
//!
//! * any other line comes, kept or skipped (a blank one does not count),
//! * a delta of its key comes whose other bytes differ,
//! * the merged line would become longer than the limit,
//! * a group is to be opened and [`MAX_OPEN`] are open, or
//! * the caller finishes the block.
//!
//! Then all groups are closed, in the order of their first lines. So the text per key is what it was, and nothing but deltas of
//! different keys changes its order. A stream of very many sessions costs no more per line than one of few; deltas of more
//! than [`MAX_OPEN`] sessions that take turns are not merged.
//!
//! # Steps
//!
//! [`Filter::next`] takes the steps of a [`Buffer`], with lines that were let through in place of all lines. A line that an
//! earlier chunk began and the lines after it come out as one block ([`Step::Filtered`]), so a chunk takes one step, unless a line
//! is over the limit or more is kept than a block may hold. All groups are closed at the end of each step: nothing is held back.
//! Where merging must be earned ([`credit`]) and is not, the step is the buffer's own: its lines are lent, not copied.
//!
//! # Costs
//!
//! Linear in the data, without recursion. Lines that are like recent ones are recognised by their [`template`](crate::kinds::template),
//! others are scanned. Nothing is allocated for a line that is skipped. Nanoseconds a line of 285 bytes, deltas of two sessions line by
//! line, in takes of 64 KiB, the fastest of 150 rounds:
//!
//! | | [`Level::Fast`] (AVX2) | [`Level::Plain`] |
//! |---|---|---|
//! | all skipped | 16 | 32 |
//! | all kept (of one session) | 20 | 37 |
//! | merged | 24 | 48 |
//! | merged, an escape in every third text | 27 | 52 |
//! | merged, text of 7 CJK characters | 34 | 74 |
//! | merged, 1,000 sessions: none fits, hardly any merges | 740 | 1,000 |
//!
//! Whole recorded sessions, where lines of 830 bytes on average differ in more than text: 290 and 450 to skip nearly all.
//!
//! [`names`]: crate::filter::names
//! [`delta`]: crate::filter::delta
//! [`group`]: crate::filter::group
//! [`credit`]: crate::filter::credit
//! [`MAX_OPEN`]: crate::filter::group::MAX_OPEN
//! [`Buffer`]: crate::lines::buffer::Buffer
//! [`Filter::next`]: crate::filter::Filter::next
//! [`Step::Filtered`]: crate::lines::step::Step::Filtered
//! [`Level::Fast`]: crate::simd::Level::Fast
//! [`Level::Plain`]: crate::simd::Level::Plain
// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

pub mod credit;
pub mod delta;
pub mod group;
pub mod names;
mod pass;

use std::collections::TryReserveError;

use self::credit::Credit;
use self::group::{Groups, Order, Parts};
use self::names::Names;
use self::pass::Take;
use crate::kinds::scan::{Scan, ScanLine};
use crate::kinds::template::Templates;
use crate::lines::buffer::{Buffer, BLOCK_BYTES, HEAD_BYTES, KEEP_BYTES};
use crate::lines::frame;
use crate::lines::step::{Place, Step};
use crate::simd::{run, Level};

/// Bytes of memory that each part keeps for the next block.
const KEEP_BLOCK_BYTES: usize = KEEP_BYTES / 8;
const KEEP_PLACES: usize = KEEP_BYTES / 16 / size_of::<Place>();
const KEEP_GROUP_BYTES: usize = KEEP_BYTES / 4;
const KEEP_SCRATCH_BYTES: usize = KEEP_BYTES / 16;
const KEEP_TEMPLATE_BYTES: usize = KEEP_BYTES;

/// What [`Filter::take`] went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Complete lines: kept, merged, skipped and blank ones.
    pub lines: usize,
    /// Their length with every LF. The rest of the data has no LF, unless the block is full or a line too long.
    pub bytes: usize,
    /// Length without its LF of the line that follows, if it is complete and longer than the limit.
    pub too_long: Option<usize>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Filter {
    names: Option<Names>,
    coalesce: bool,
    level: Level,
    block: Vec<u8>,
    places: Vec<Place>,
    groups: Groups,
    /// How many times the groups were closed.
    closed: u64,
    templates: Templates<Known>,
    /// The key of the last delta that was scanned.
    key: Vec<u8>,
    scratch: delta::Scratch,
    /// Lines skipped since the filter was made.
    pub skipped: u64,
    /// Lines that became part of the line of an earlier delta since the filter was made.
    pub merged: u64,
    /// The part of `merged` that is in groups already closed.
    settled: u64,
    /// Whether merging pays.
    pub credit: Credit,
}

/// What is done with a line that is clear.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    Skip,
    Keep,
    /// A delta, whose template knows its key, or else with its key in `Filter::key`.
    Merge(Parts),
}

/// What is done with the lines of a template.
#[derive(Debug)]
enum Known {
    Skip,
    Keep,
    Merge {
        key: Vec<u8>,
        order: Order,
        /// The group that the last such line went into, open if no group was closed since.
        group: usize,
        closed: u64,
    },
}

impl Filter {
    /// A filter that keeps lines of the kinds in `only` (all, if `None`; see [`Names`]), and those without a clear kind.
    #[must_use]
    pub fn new(only: Option<&[&str]>, coalesce: bool, level: Level) -> Self {
        Self {
            names: only.map(Names::new),
            coalesce,
            level,
            block: Vec::new(),
            places: Vec::new(),
            groups: Groups::default(),
            closed: 0,
            templates: Templates::default(),
            key: Vec::new(),
            scratch: delta::Scratch::default(),
            skipped: 0,
            merged: 0,
            settled: 0,
            credit: Credit::unlimited(),
        }
    }

    /// A filter that merges deltas where that [pays](crate::filter::credit), and keeps lines of all kinds.
    #[must_use]
    pub fn earning(level: Level) -> Self {
        Self {
            credit: Credit::earned(),
            ..Self::new(None, true, level)
        }
    }

    /// Takes the next step through `data`, the rest of the caller's chunk, as [`Buffer::next`] does.
    ///
    /// # Errors
    ///
    /// When memory cannot be had. Lines of `data` may be lost then.
    pub fn next<'a>(
        &'a mut self,
        buffer: &'a mut Buffer,
        data: &'a [u8],
    ) -> Result<(usize, Step<'a>), TryReserveError> {
        if self.credit.is_merging() || !self.places.is_empty() {
            self.clear();
        }
        buffer.release();
        if let Some(consumed) = buffer.skip_bom(data)? {
            return Ok((consumed, Step::NOTHING));
        }
        if data.is_empty() {
            return Ok((0, Step::NOTHING));
        }
        let (mut at, mut begun) = (0, 0);
        let mut place = Place::default();
        if buffer.is_unfinished() {
            if !self.credit.is_merging() {
                self.credit.forget();
                return buffer.next(data);
            }
            let Some(completed) = buffer.complete(data)? else {
                return Ok((data.len(), Step::NOTHING));
            };
            at = completed.consumed;
            let mut too_long = completed.too_long;
            if too_long.is_none() {
                let line = buffer.completed();
                begun = line.len() - at;
                let taken = self.take(line, usize::MAX, place);
                place = Place {
                    offset: line.len() as u64,
                    lines: 1,
                };
                if taken.is_err() {
                    // There is no memory for the line twice: it is dropped, as if it were over the limit.
                    self.clear();
                    too_long = Some(buffer.drop_completed() as u64);
                }
            }
            if let Some(length) = too_long {
                let step = Step::TooLong {
                    head: buffer.completed(),
                    length,
                };
                return Ok((at, step));
            }
            buffer.release(); // the filter has a copy of what it keeps
        } else if !self.credit.is_merging() {
            let plain = self.plain_part(buffer, data);
            if plain > 0 {
                return buffer.follow(&data[..plain]);
            }
        }
        let taken = self.take(&data[at..], buffer.max_line_bytes(), place)?;
        buffer.count_searched(taken.bytes);
        at += taken.bytes;
        let passed = usize::from(place.lines > 0) + taken.lines;
        let full = self.is_full();
        self.finish()?;
        self.credit.settle();
        if let (Some(length), 0) = (taken.too_long, passed) {
            let step = Step::TooLong {
                head: &data[at..at + length.min(HEAD_BYTES)],
                length: length as u64,
            };
            buffer.count_searched(length + 1);
            return Ok((at + length + 1, step));
        }
        // A line over the limit behind other lines is found again by the next step.
        if taken.too_long.is_none() && !full {
            buffer.keep(&data[at..], false)?;
            at = data.len();
        }
        let step = match self.places().len() {
            0 => Step::Nothing { passed },
            lines => Step::Filtered {
                block: self.block(),
                lines,
                passed,
                begun,
                defects: self.defects(),
            },
        };
        Ok((at, step))
    }

    /// Takes the step that follows a [`Step::Carry`], as [`Buffer::follow`] does. Consumes nothing if lines are to be merged: that
    /// is for [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// As [`Buffer::follow`].
    pub fn follow<'a>(
        &mut self,
        buffer: &mut Buffer,
        data: &'a [u8],
    ) -> Result<(usize, Step<'a>), TryReserveError> {
        let plain = self.plain_part(buffer, data);
        buffer.follow(&data[..plain])
    }

    /// How much of `data`, which is the start of a line and goes up to the end of its chunk, is not filtered.
    fn plain_part(&mut self, buffer: &Buffer, data: &[u8]) -> usize {
        let end = self.credit.look(data, buffer.max_line_bytes());
        if data.len() <= BLOCK_BYTES {
            self.credit.forget(); // another chunk comes behind these lines
        }
        end
    }

    /// Ends the stream, as [`Buffer::close`] does.
    ///
    /// # Errors
    ///
    /// As [`Buffer::close`].
    pub fn close<'a>(&mut self, buffer: &'a mut Buffer) -> Result<Step<'a>, TryReserveError> {
        self.credit.restart();
        Ok(match buffer.close()? {
            Step::Carry { line, .. } if !self.keeps(line) => Step::NOTHING,
            step => step,
        })
    }

    /// Goes through the complete lines at the start of `data`, up to the first that is longer than `max_line` bytes (without its LF), or
    /// until the block in making holds [`BLOCK_BYTES`] or the credit is spent. `place` is that of `data[0]`.
    ///
    /// # Errors
    ///
    /// When memory cannot be had. Part of the data may have been taken then: the stream cannot be gone on with.
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

    /// Whether [`take`](Self::take) takes nothing more before the block is cleared, and perhaps nothing at all.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.block.len() + self.groups.bytes() >= BLOCK_BYTES || self.credit.is_spent()
    }

    /// Closes all groups: the block is complete.
    ///
    /// # Errors
    ///
    /// When memory cannot be had. The call may be repeated.
    pub fn finish(&mut self) -> Result<(), TryReserveError> {
        let open = self.groups.open();
        if open > 0 {
            self.groups.close(&mut self.block, &mut self.places)?;
            self.closed += 1;
            self.credit.groups(open, self.merged - self.settled);
            self.settled = self.merged;
        }
        Ok(())
    }

    /// The lines that were kept, each with its LF; complete after [`finish`](Self::finish).
    #[must_use]
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// Where each line of the block, or the first of those that it was merged from, began.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Why the block is not clean: see [`Frame::defects`](frame::Frame::defects).
    #[must_use]
    pub fn defects(&self) -> u32 {
        frame::check(&self.block, usize::MAX).defects
    }

    /// Begins a new block. Keeps at most twice [`KEEP_BYTES`] of memory: templates are worth most of it.
    pub fn clear(&mut self) {
        if self.groups.open() > 0 {
            // After an error, nothing of the open groups may come out later.
            self.groups.abandon();
            self.closed += 1;
            self.settled = self.merged;
        }
        self.block.clear();
        self.places.clear();
        self.block.shrink_to(KEEP_BLOCK_BYTES);
        self.places.shrink_to(KEEP_PLACES);
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
        self.block.capacity()
            + self.places.capacity() * size_of::<Place>()
            + self.groups.held()
            + self.held_by_templates()
            + self.scratch.held()
            + self.key.capacity()
    }

    fn held_by_templates(&self) -> usize {
        let keys = self.templates.all_known().map(|known| match known {
            Known::Merge { key, .. } => key.capacity(),
            Known::Keep | Known::Skip => 0,
        });
        self.templates.held() + keys.sum::<usize>()
    }

    /// Whether a last line, which has no LF, is kept. Counts it if not.
    pub fn keeps(&mut self, line: &[u8]) -> bool {
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
