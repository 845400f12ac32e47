//! Lines in, the lines that are wanted out: some kinds passed over (`only`), deltas merged (`coalesce`).
//!
//! What is kept is copied into a block of its own, with the place of each line in the stream, for it no longer lies in
//! one piece where it came from.
//!
//! # Passing over
//!
//! A line is passed over if and only if its kind ([`scan`](crate::scan)) has a type and matches none of the names. Nothing else of
//! it is checked. Blank lines go too, uncounted.
//!
//! # Merging
//!
//! Mergeable deltas ([`delta`](crate::delta)) of the same key form a group ([`group`](crate::group)), open until
//!
//! * any other line comes, kept or passed over (a blank one is none),
//! * a delta of its key comes whose other bytes differ,
//! * the merged line would become longer than the limit,
//! * a group is to be opened and as many are open as may be, or
//! * the caller finishes the block.
//!
//! Then all groups are closed, in the order of their first lines. So the text per key is what it was, and nothing but deltas of
//! different keys changes its order. At most [`MOST_OPEN`] groups are open, so that a stream of very many sessions costs no
//! more a line than one of few; deltas of more sessions than that, taking turns, are not merged.
//!
//! # Costs
//!
//! Linear in the data, without recursion. Lines that are like recent ones are recognised by their [`layout`](crate::layout),
//! others are scanned. Nothing is allocated for a line that is passed over. Nanoseconds a line of 285 bytes, deltas of two sessions line by
//! line, in takes of 64 KiB, the fastest of 150 rounds:
//!
//! | | [`Level::Fast`] (AVX2) | [`Level::Plain`] |
//! |---|---|---|
//! | all passed over | 16 | 32 |
//! | all kept (of one session) | 20 | 37 |
//! | merged | 24 | 48 |
//! | merged, an escape in every third text | 27 | 52 |
//! | merged, text of 7 CJK characters | 34 | 74 |
//! | merged, 1,000 sessions: none fits, hardly any merges | 740 | 1,000 |
//!
//! Whole recorded sessions, where lines of 830 bytes on average differ in more than text: 290 and 450 to pass nearly all over.
//!
//! [`MOST_OPEN`]: crate::group::MOST_OPEN
//! [`Level::Fast`]: crate::simd::Level::Fast
//! [`Level::Plain`]: crate::simd::Level::Plain
// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

use std::collections::TryReserveError;

use crate::buffer::{Place, BLOCK_BYTES, KEEP_BYTES};
use crate::credit::Credit;
use crate::delta::{self, DeltaKind};
use crate::frame;
use crate::group::{append, write_key, Groups, Order, Parts, MOST_OPEN};
use crate::layout::{Fitting, Gaps, Layouts, Visit};
use crate::scan::{scan, KindSpans, Scan, Span};
use crate::simd::{run, Engine, Level, Operation};

/// What each part may keep.
const KEEP_BLOCK_BYTES: usize = KEEP_BYTES / 8;
const KEEP_PLACES: usize = KEEP_BYTES / 16 / size_of::<Place>();
const KEEP_GROUP_BYTES: usize = KEEP_BYTES / 4;
const KEEP_SCRATCH_BYTES: usize = KEEP_BYTES / 16;
const KEEP_LAYOUT_BYTES: usize = KEEP_BYTES;

/// What [`Sieve::take`] went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Complete lines, kept, merged, passed over and blank.
    pub lines: usize,
    /// Their length with every LF. The rest of the data has no LF, unless the block is full or a line too long.
    pub bytes: usize,
    /// Length without its LF of the line that follows, if it is complete and longer than the limit.
    pub too_long: Option<usize>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Sieve {
    names: Option<Vec<Vec<Vec<u8>>>>,
    coalesce: bool,
    level: Level,
    block: Vec<u8>,
    places: Vec<Place>,
    groups: Groups,
    /// How often the groups were closed.
    closed: u64,
    layouts: Layouts<Known>,
    /// The key of the last delta that was scanned.
    key: Vec<u8>,
    scratch: delta::Scratch,
    /// Lines passed over since the sieve was made.
    pub skipped: u64,
    /// Lines that became part of the line of an earlier delta since the sieve was made.
    pub merged: u64,
    /// Of these, the lines whose groups are closed.
    settled: u64,
    /// Whether merging pays.
    pub credit: Credit,
}

/// What becomes of a line that is clear.
#[derive(Clone, Copy, Debug)]
enum Fate {
    PassedOver,
    Kept,
    /// Of a layout whose key is known, or else with its key in `Sieve::key`.
    Delta(Parts),
}

/// What is known of the lines of a layout.
#[derive(Debug)]
enum Known {
    PassedOver,
    Kept,
    Delta {
        key: Vec<u8>,
        order: Order,
        /// The group that the last such line went into, open if no group was closed since.
        group: usize,
        closed: u64,
    },
}

impl Sieve {
    /// A sieve that keeps lines of the kinds in `only` (all, if `None`), and those without a clear kind.
    ///
    /// A name is a type, or a type and a subtype, or these and a detail, with slashes between:
    /// `stream_event/content_block_delta/text_delta`.
    #[must_use]
    pub fn new(only: Option<&[&str]>, coalesce: bool, level: Level) -> Self {
        let parts = |name: &&str| {
            name.split('/')
                .map(|part| part.as_bytes().to_vec())
                .collect()
        };
        Self {
            names: only.map(|names| names.iter().map(parts).collect()),
            coalesce,
            level,
            block: Vec::new(),
            places: Vec::new(),
            groups: Groups::default(),
            closed: 0,
            layouts: Layouts::default(),
            key: Vec::new(),
            scratch: delta::Scratch::default(),
            skipped: 0,
            merged: 0,
            settled: 0,
            credit: Credit::unlimited(),
        }
    }

    /// A sieve that merges deltas where that [pays](crate::credit), and keeps lines of all kinds.
    #[must_use]
    pub fn earning(level: Level) -> Self {
        Self {
            credit: Credit::earned(),
            ..Self::new(None, true, level)
        }
    }

    /// Goes through the complete lines at the start of `data`, up to the first that is longer than `max_line` bytes (without its LF), or
    /// until the block in making holds [`BLOCK_BYTES`] or the credit is spent. `place` is that of `data[0]` in the stream.
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
            sieve: self,
        };
        run(take.sieve.level, take)
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

    /// Begins a new block. Keeps at most twice [`KEEP_BYTES`] of memory: layouts are worth most of it.
    pub fn clear(&mut self) {
        if self.groups.open() > 0 {
            // After an error: nothing of what was begun then may come out later.
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
        if self.held_by_layouts() > KEEP_LAYOUT_BYTES {
            self.layouts.clear();
        }
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.block.capacity()
            + self.places.capacity() * size_of::<Place>()
            + self.groups.held()
            + self.held_by_layouts()
            + self.scratch.held()
            + self.key.capacity()
    }

    fn held_by_layouts(&self) -> usize {
        let keys = self.layouts.all_known().map(|known| match known {
            Known::Delta { key, .. } => key.capacity(),
            Known::Kept | Known::PassedOver => 0,
        });
        self.layouts.held() + keys.sum::<usize>()
    }

    /// Whether a last line, which has no LF, is kept. Counts it if not.
    pub fn keeps(&mut self, line: &[u8]) -> bool {
        if self.names.is_none() {
            return true;
        }
        let found = run(self.level, ScanLine { line });
        let kept = self.wants(line, &found);
        self.skipped += u64::from(!kept);
        kept
    }

    fn wants(&self, data: &[u8], found: &Scan) -> bool {
        let Some(names) = &self.names else {
            return true;
        };
        found.kind.name.is_none() || names.iter().any(|name| matches(name, data, &found.kind))
    }

    /// What becomes of a line that was scanned and is clear, and the layout that was made of it.
    #[inline(always)]
    fn judge<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        from: usize,
        found: &Scan,
    ) -> Result<(Fate, Option<usize>), TryReserveError> {
        let gaps = Gaps {
            text: found.text,
            uuid: found.uuid,
        };
        if !self.wants(data, found) {
            let known = Known::PassedOver;
            let index = self.layouts.add(data, from, found.end, gaps, false, known);
            return Ok((Fate::PassedOver, index));
        }
        let Some(kind) = DeltaKind::of(data, found).filter(|_| self.coalesce) else {
            let known = Known::Kept;
            let index = self.layouts.add(data, from, found.end, gaps, false, known);
            return Ok((Fate::Kept, index));
        };
        // What cannot be merged gets no layout: the next line may differ from it in just what was wrong.
        let checked = delta::check(engine, data, from, found.end - 1, kind, &mut self.scratch)?;
        let Some(delta) = checked else {
            return Ok((Fate::Kept, None));
        };
        let parts = Parts {
            text: delta.text,
            uuid: delta.uuid,
        };
        write_key(&mut self.key, data, &delta)?;
        let mut key = Vec::new();
        append(&mut key, &self.key)?;
        let known = Known::Delta {
            key,
            order: parts.order(),
            group: 0,
            closed: u64::MAX,
        };
        let gaps = Gaps {
            text: Some(delta.text),
            uuid: delta.uuid,
        };
        let index = self.layouts.add(data, from, found.end, gaps, true, known);
        Ok((Fate::Delta(parts), index))
    }

    /// Takes the next line, a delta, of the layout `known` or else with its key in `self.key`.
    fn delta(
        &mut self,
        known: Option<usize>,
        course: &Course,
        end: usize,
        parts: Parts,
    ) -> Result<(), TryReserveError> {
        let Some(index) = known else {
            self.merge(course, end, parts)?;
            return Ok(());
        };
        if let Known::Delta {
            group, closed, key, ..
        } = self.layouts.of(index)
        {
            if *closed == self.closed && self.groups.merged_len(*group, parts) <= course.max_line {
                self.groups.add(*group, course.data, parts)?;
                self.merged += 1;
                return Ok(());
            }
            self.key.clear();
            append(&mut self.key, key)?;
        }
        let into = self.merge(course, end, parts)?;
        if let Known::Delta { group, closed, .. } = self.layouts.of(index) {
            (*group, *closed) = (into, self.closed);
        }
        Ok(())
    }

    /// Puts the next line, a delta whose key is `self.key`, into a group, and returns which.
    fn merge(
        &mut self,
        course: &Course,
        end: usize,
        parts: Parts,
    ) -> Result<usize, TryReserveError> {
        let (data, from) = (course.data, course.at);
        match self.groups.find(&self.key) {
            Some(at)
                if self.groups.is_like(at, data, from, end, parts)
                    && self.groups.merged_len(at, parts) <= course.max_line =>
            {
                self.groups.add(at, data, parts)?;
                self.merged += 1;
                return Ok(at);
            }
            None if self.groups.open() < MOST_OPEN => (),
            _ => self.finish()?,
        }
        self.groups
            .begin(&self.key, data, from, end, parts, course.place())
    }

    /// Copies the lines that are kept and were not copied yet.
    fn keep(&mut self, course: &mut Course) -> Result<(), TryReserveError> {
        append(&mut self.block, &course.data[course.kept_from..course.at])?;
        course.kept_from = course.at;
        Ok(())
    }

    /// How many bytes the block in making has to go.
    fn room(&self, course: &Course) -> usize {
        let pending = course.at - course.kept_from;
        BLOCK_BYTES.saturating_sub(self.block.len() + pending + self.groups.bytes())
    }
}

struct ScanLine<'a> {
    line: &'a [u8],
}

impl Operation for ScanLine<'_> {
    type Output = Scan;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Scan {
        scan(engine, self.line, 0)
    }
}

struct Take<'a> {
    data: &'a [u8],
    max_line: usize,
    place: Place,
    sieve: &'a mut Sieve,
}

impl Operation for Take<'_> {
    type Output = Result<Taken, TryReserveError>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self {
            data,
            max_line,
            place,
            sieve,
        } = self;
        let mut course = Course {
            data: &data[..0],
            max_line,
            place,
            lines: 0,
            at: 0,
            kept_from: 0,
            too_long: None,
        };
        // Window by window, so that a step searches no further than it gets.
        while course.too_long.is_none() && sieve.room(&course) > 0 && !sieve.credit.is_spent() {
            let Some(complete) = lines_end(data, course.at) else {
                break;
            };
            course.data = &data[..complete];
            while course.at < complete
                && course.too_long.is_none()
                && sieve.room(&course) > 0
                && !sieve.credit.is_spent()
            {
                engine.call(Run(sieve, &mut course));
                if course.at < complete && sieve.room(&course) > 0 && !sieve.credit.is_spent() {
                    engine.call(Next(sieve, &mut course))?;
                }
            }
        }
        sieve.keep(&mut course)?;
        Ok(Taken {
            lines: course.lines,
            bytes: course.at,
            too_long: course.too_long,
        })
    }
}

/// Behind the last LF of the next block of `data` from `at` on; behind the next LF if it has none.
fn lines_end(data: &[u8], at: usize) -> Option<usize> {
    let window = data.len().min(at + BLOCK_BYTES);
    let last = memchr::memrchr(b'\n', &data[at..window]).map(|found| at + found + 1);
    last.or_else(|| memchr::memchr(b'\n', &data[window..]).map(|found| window + found + 1))
}

/// How far a take has come.
struct Course<'a> {
    /// Complete lines, those of the window and all before.
    data: &'a [u8],
    max_line: usize,
    /// Of `data`.
    place: Place,
    /// Lines gone through.
    lines: usize,
    /// Behind them.
    at: usize,
    /// `data[kept_from..at]` are lines that are kept, and not copied yet. If there are any, no group is open.
    kept_from: usize,
    too_long: Option<usize>,
}

impl Course<'_> {
    /// Passes a line that is not to be copied, and ends at `end`.
    fn pass(&mut self, end: usize) {
        self.lines += 1;
        self.at = end;
        self.kept_from = end;
    }

    /// Where the next line begins.
    fn place(&self) -> Place {
        Place {
            offset: self.place.offset + self.at as u64,
            line_number: self.place.line_number + self.lines as u64,
        }
    }
}

/// Goes through lines as long as each fits the layout that is expected, and no group is to be opened or closed.
struct Run<'s, 'c, 'd>(&'s mut Sieve, &'c mut Course<'d>);

impl Operation for Run<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) {
        let Self(sieve, course) = self;
        let mut tally = Tally {
            data: course.data,
            place: course.place,
            max_line: course.max_line,
            room: sieve.room(course),
            credit: &mut sieve.credit,
            lines: course.lines,
            kept_from: (course.kept_from < course.at).then_some(course.kept_from),
            skipped: 0,
            merged: 0,
            closed: sieve.closed,
            none_open: sieve.groups.open() == 0,
            groups: &mut sieve.groups,
            places: &mut sieve.places,
        };
        course.at = sieve
            .layouts
            .run(engine, course.data, course.at, &mut tally);
        course.lines = tally.lines;
        course.kept_from = tally.kept_from.unwrap_or(course.at);
        sieve.skipped += tally.skipped;
        sieve.merged += tally.merged;
    }
}

/// What a [`Run`] has done.
struct Tally<'t> {
    data: &'t [u8],
    place: Place,
    max_line: usize,
    /// Bytes that the block has to go.
    room: usize,
    credit: &'t mut Credit,
    lines: usize,
    kept_from: Option<usize>,
    skipped: u64,
    merged: u64,
    closed: u64,
    none_open: bool,
    groups: &'t mut Groups,
    places: &'t mut Vec<Place>,
}

impl Visit<Known> for &mut Tally<'_> {
    #[inline(always)]
    fn visit(&mut self, known: &mut Known, from: usize, fitting: Fitting) -> bool {
        // The limit does not count the LF.
        if fitting.end - from > self.max_line || self.room == 0 {
            return false;
        }
        match known {
            Known::PassedOver => {
                if self.kept_from.is_some() || !self.none_open {
                    return false;
                }
                self.skipped += 1;
            }
            Known::Delta {
                order,
                group,
                closed,
                ..
            } => {
                let parts = order.parts(fitting.gaps);
                if *closed != self.closed
                    || self.groups.merged_len(*group, parts) > self.max_line
                    || self.groups.add(*group, self.data, parts).is_err()
                {
                    return false;
                }
                self.room = self.room.saturating_sub(parts.text.len);
                self.merged += 1;
            }
            Known::Kept => {
                if !self.none_open || self.credit.is_spent() || self.places.try_reserve(1).is_err()
                {
                    return false;
                }
                self.places.push(Place {
                    offset: self.place.offset + from as u64,
                    line_number: self.place.line_number + self.lines as u64,
                });
                self.credit.others(1);
                self.room = self.room.saturating_sub(fitting.end - from);
                self.kept_from.get_or_insert(from);
            }
        }
        self.lines += 1;
        true
    }
}

/// Goes through the next line, whatever it is, or finds it too long.
struct Next<'s, 'c, 'd>(&'s mut Sieve, &'c mut Course<'d>);

impl Operation for Next<'_, '_, '_> {
    type Output = Result<(), TryReserveError>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self(sieve, course) = self;
        let (data, from) = (course.data, course.at);
        let mut fitting = sieve.layouts.guess(engine, data, from);
        let mut found = Scan::default();
        if fitting.is_none() {
            found = scan(engine, data, from);
            if found.clear {
                let gaps = Gaps {
                    text: found.text,
                    uuid: found.uuid,
                };
                fitting = sieve.layouts.look_up(engine, data, from, found.end, gaps);
            }
        }
        let end = fitting.map_or(found.end, |(_, fitting)| fitting.end);
        let length = end - 1 - from;
        if length > course.max_line {
            course.too_long = Some(length);
            return Ok(());
        }
        let (fate, layout) = if let Some((index, fitting)) = fitting {
            let fate = match sieve.layouts.of(index) {
                Known::PassedOver => Fate::PassedOver,
                Known::Kept => Fate::Kept,
                Known::Delta { order, .. } => Fate::Delta(order.parts(fitting.gaps)),
            };
            (fate, Some(index))
        } else if found.clear {
            sieve.judge(engine, data, from, &found)?
        } else if is_blank(&data[from..end - 1]) {
            sieve.keep(course)?;
            course.pass(end);
            return Ok(());
        } else {
            (Fate::Kept, None)
        };
        match fate {
            Fate::PassedOver => {
                sieve.keep(course)?;
                sieve.finish()?;
                sieve.skipped += 1;
                course.pass(end);
            }
            Fate::Kept => {
                sieve.finish()?;
                sieve.places.try_reserve(1)?;
                sieve.places.push(course.place());
                sieve.credit.others(1);
                course.lines += 1;
                course.at = end;
            }
            Fate::Delta(parts) => {
                sieve.keep(course)?;
                sieve.delta(layout, course, end, parts)?;
                course.pass(end);
            }
        }
        Ok(())
    }
}

/// Whether the kind begins with the parts of the name.
fn matches(name: &[Vec<u8>], data: &[u8], kind: &KindSpans) -> bool {
    let tags = [kind.name, kind.subtype, kind.detail];
    let is = |part: &Vec<u8>, tag: &Option<Span>| {
        tag.is_some_and(|tag| crate::scan::is(data, tag, part))
    };
    name.len() <= tags.len() && name.iter().zip(&tags).all(|(part, tag)| is(part, tag))
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests;
