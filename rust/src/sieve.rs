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
//! different keys changes its order.

use std::collections::TryReserveError;

use crate::buffer::{Place, BLOCK_BYTES, KEEP_BYTES};
use crate::delta::{self, DeltaKind};
use crate::frame;
use crate::group::{append, write_key, Groups, Order, Parts, MOST_OPEN};
use crate::layout::{Fitting, Gaps, Layouts, Visit};
use crate::scan::{scan, KindSpans, Scan, Span};
use crate::simd::{run, Engine, Level, Operation};

/// What of [`KEEP_BYTES`] each part may keep.
const KEEP_BLOCK_BYTES: usize = KEEP_BYTES / 4;
const KEEP_PLACES: usize = KEEP_BYTES / 8 / size_of::<Place>();
const KEEP_GROUP_BYTES: usize = KEEP_BYTES / 4;
const KEEP_SCRATCH_BYTES: usize = KEEP_BYTES / 8;
const KEEP_LAYOUT_BYTES: usize = KEEP_BYTES / 4;

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
        }
    }

    /// Goes through the complete lines at the start of `data`, up to the first that is longer than `max_line` bytes (without its LF), or
    /// until the block in making holds [`BLOCK_BYTES`]. `place` is that of `data[0]` in the stream.
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

    /// Whether [`take`](Self::take) takes nothing more before the block is cleared.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.block.len() + self.groups.bytes() >= BLOCK_BYTES
    }

    /// Closes all groups: the block is complete.
    ///
    /// # Errors
    ///
    /// When memory cannot be had. The call may be repeated.
    pub fn finish(&mut self) -> Result<(), TryReserveError> {
        if self.groups.open() > 0 {
            self.groups.close(&mut self.block, &mut self.places)?;
            self.closed += 1;
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

    /// Begins a new block. Keeps at most [`KEEP_BYTES`] of memory.
    pub fn clear(&mut self) {
        self.block.clear();
        self.places.clear();
        self.block.shrink_to(KEEP_BLOCK_BYTES);
        self.places.shrink_to(KEEP_PLACES);
        self.groups.shrink(KEEP_GROUP_BYTES);
        if self.scratch.held() + self.key.capacity() > KEEP_SCRATCH_BYTES {
            self.scratch = delta::Scratch::default();
            self.key = Vec::new();
        }
        if self.layouts.held() > KEEP_LAYOUT_BYTES {
            self.layouts.clear();
        }
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.block.capacity()
            + self.places.capacity() * size_of::<Place>()
            + self.groups.held()
            + self.layouts.held()
            + self.scratch.held()
            + self.key.capacity()
    }

    /// Whether a last line, which has no LF, is kept. Counts it if not.
    pub fn keeps(&mut self, line: &[u8]) -> bool {
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
        let complete = memchr::memrchr(b'\n', data).map_or(0, |at| at + 1);
        let mut course = Course {
            data: &data[..complete],
            max_line,
            place,
            lines: 0,
            at: 0,
            kept_from: 0,
            too_long: None,
        };
        while course.at < complete && course.too_long.is_none() && sieve.room(&course) > 0 {
            engine.call(Run(sieve, &mut course));
            if course.at < complete && sieve.room(&course) > 0 {
                engine.call(Next(sieve, &mut course))?;
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

/// How far a take has come.
struct Course<'a> {
    /// Complete lines.
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
                if !self.none_open || self.places.try_reserve(1).is_err() {
                    return false;
                }
                self.places.push(Place {
                    offset: self.place.offset + from as u64,
                    line_number: self.place.line_number + self.lines as u64,
                });
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Place = Place {
        offset: 0,
        line_number: 1,
    };

    fn delta(session: &str, text: &str, uuid: &str) -> String {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}},"session_id":"{session}","uuid":"{uuid}"}}"#
        )
    }

    /// The block and the line numbers that come of `lines`, in one take.
    fn sieved(sieve: &mut Sieve, lines: &[&str]) -> (Vec<String>, Vec<u64>) {
        let data: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let taken = sieve.take(data.as_bytes(), usize::MAX, START).unwrap();
        assert_eq!((taken.lines, taken.bytes), (lines.len(), data.len()));
        sieve.finish().unwrap();
        let block = std::str::from_utf8(sieve.block()).unwrap();
        let out = block.lines().map(str::to_owned).collect();
        let numbers = sieve
            .places()
            .iter()
            .map(|place| place.line_number)
            .collect();
        sieve.clear();
        (out, numbers)
    }

    fn levels() -> [Level; 2] {
        [Level::Plain, Level::Fast]
    }

    #[test]
    fn lines_of_other_kinds_are_passed_over() {
        let result = r#"{"result":"a}","type":"result"}"#;
        let init = r#" {"type":"system","subtype":"init"}"#;
        let status = r#"{"type":"system","subtype":"status"}"#;
        let text = delta("s", "x", "u");
        let lines = [result, "", init, " \t\r", status, &text, "{}", "nonsense"];
        for level in levels() {
            let kept = |only: &[&str]| {
                let mut sieve = Sieve::new(Some(only), false, level);
                let (_, numbers) = sieved(&mut sieve, &lines);
                assert_eq!(sieve.skipped as usize + numbers.len(), 6);
                numbers
            };
            assert_eq!(kept(&[]), [7, 8]);
            assert_eq!(kept(&["result"]), [1, 7, 8]);
            assert_eq!(kept(&["system"]), [3, 5, 7, 8]);
            assert_eq!(kept(&["system/init", "result/x"]), [3, 7, 8]);
            assert_eq!(kept(&["stream_event/content_block_delta"]), [6, 7, 8]);
            assert_eq!(
                kept(&["stream_event/content_block_delta/text_delta"]),
                [6, 7, 8]
            );
            assert_eq!(
                kept(&["stream_event/content_block_delta/text_delta/x"]),
                [7, 8]
            );
            assert_eq!(kept(&["stream_event/text_delta", "resul", ""]), [7, 8]);
        }
    }

    #[test]
    fn deltas_of_one_key_become_one_line() {
        let lines = [
            delta("a", "one\\ud83d", "1"),
            delta("b", "x", "2"),
            delta("a", "\\ude00", "three"),
            String::new(),
            delta("b", "", "4"),
            delta("a", "é", "5"),
            "{}".to_owned(),
            delta("a", "y", "6"),
        ];
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        for level in levels() {
            let mut sieve = Sieve::new(None, true, level);
            let (out, numbers) = sieved(&mut sieve, &lines);
            let expected = [
                delta("a", "one\\ud83d\\ude00é", "5"),
                delta("b", "x", "4"),
                "{}".to_owned(),
                delta("a", "y", "6"),
            ];
            assert_eq!(out, expected);
            assert_eq!(numbers, [1, 2, 7, 8]);
            assert_eq!((sieve.merged, sieve.skipped), (3, 0));
        }
    }

    #[test]
    fn what_cannot_be_checked_is_not_merged_and_keeps_its_place() {
        let good = delta("a", "x", "1");
        let others = [
            good.replace("\"x\"", "\"\\x\""),
            good.replace("\"x\"", "\"\\u12g4\""),
            good.replace("\"x\"", "\"a\tb\""),
            good.replace("\"x\"", "1"),
            good.replace("\"x\"", "\"x\",\"text\":\"x\""),
            good.replace("\"x\"", "\"x\",\"t\\u0065xt\":\"x\""),
            good.replace(":0,", ":-1,"),
            good.replace(":0,", ":1.0,"),
            good.replace(":0,", ":01,"),
            good.replace("\"index\":0,", ""),
            good.replace("\"1\"", "null"),
            good.replace("\"1\"", "\"\\u0031\""),
            good.replace("\"a\"", "\"\\u0031\""),
            good.replace("\"a\"", "[]"),
            good.replace("\"a\"", "[1,]"),
            good.replace("text_delta", "signature_delta"),
        ];
        for level in levels() {
            for other in &others {
                let lines = [&good, other, other, &good, &good];
                let lines: Vec<_> = lines.iter().map(|line| line.as_str()).collect();
                let (out, numbers) = sieved(&mut Sieve::new(None, true, level), &lines);
                assert_eq!(numbers, [1, 2, 3, 4], "{other}");
                assert_eq!(out[..3], lines[..3], "{other}");
            }
        }
    }

    #[test]
    fn a_delta_of_an_open_key_with_other_bytes_closes_all_groups() {
        let (a, b) = (delta("a", "x", "1"), delta("b", "x", "1"));
        let other = a.replace("}}", "} }");
        for level in levels() {
            let lines = [a.as_str(), &b, &other, &b, &a];
            let (out, numbers) = sieved(&mut Sieve::new(None, true, level), &lines);
            assert_eq!(numbers, [1, 2, 3, 4, 5]);
            assert_eq!(out, lines);
        }
    }

    #[test]
    fn a_merged_line_stays_within_the_limit() {
        let line = delta("a", "x", "1") + "\n";
        for level in levels() {
            let mut sieve = Sieve::new(None, true, level);
            let taken = sieve
                .take(line.repeat(7).as_bytes(), line.len() + 1, START)
                .unwrap();
            assert_eq!(taken.lines, 7);
            sieve.finish().unwrap();
            let merged = delta("a", "xxx", "1") + "\n";
            assert_eq!(sieve.block(), (merged.repeat(2) + &line).as_bytes());
            assert_eq!(sieve.defects(), 0);
        }
    }

    #[test]
    fn taking_stops_before_a_line_over_the_limit() {
        let mut sieve = Sieve::new(Some(&[]), false, Level::Fast);
        let taken = sieve.take(b"{}\n{1}\n{}\n", 2, START).unwrap();
        let expected = Taken {
            lines: 1,
            bytes: 3,
            too_long: Some(3),
        };
        assert_eq!(taken, expected);
        let taken = sieve.take(b"{}\n{1}", 2, START).unwrap();
        assert_eq!((taken.bytes, taken.too_long), (3, None));
    }

    #[test]
    fn a_block_holds_64_kib_and_no_line_more() {
        let line = delta("a", &"x".repeat(1000), "1") + "\n";
        for coalesce in [false, true] {
            let mut sieve = Sieve::new(None, coalesce, Level::Fast);
            let data = line.repeat(100);
            let taken = sieve.take(data.as_bytes(), usize::MAX, START).unwrap();
            assert!(taken.bytes < data.len());
            sieve.finish().unwrap();
            let length = sieve.block().len();
            assert!((BLOCK_BYTES..BLOCK_BYTES + line.len()).contains(&length));
        }
    }

    #[test]
    fn an_unterminated_line_is_kept_by_its_kind() {
        let mut sieve = Sieve::new(Some(&["result"]), false, Level::Fast);
        assert!(sieve.keeps(br#"{"type":"result"}"#));
        assert!(sieve.keeps(br#"{"type":"system""#));
        assert!(!sieve.keeps(br#"{"type":"system"}"#));
        assert_eq!(sieve.skipped, 1);
    }

    /// What comes of taking `data` in pieces that end at `cuts`, all in one block, as the model tells it.
    fn taken(
        sieve: &mut Sieve,
        data: &[u8],
        cuts: &[usize],
        max_line: usize,
        forget: bool,
    ) -> crate::model::Sieved {
        let (mut at, mut lines) = (0, 0);
        for &cut in cuts {
            if forget {
                sieve.layouts.clear();
            }
            let place = Place {
                offset: at as u64,
                line_number: 1 + lines as u64,
            };
            let taken = sieve.take(&data[at..cut.max(at)], max_line, place).unwrap();
            assert_eq!(taken.too_long, None);
            at += taken.bytes;
            lines += taken.lines;
        }
        assert_eq!(at, data.len());
        sieve.finish().unwrap();
        let block = sieve.block().split_inclusive(|&byte| byte == b'\n');
        let block: Vec<_> = block.map(|line| line.strip_suffix(b"\n").unwrap().to_vec()).collect();
        assert_eq!(block.len(), sieve.places().len());
        let starts: Vec<_> = std::iter::once(0).chain(memchr::memchr_iter(b'\n', data).map(|lf| lf + 1)).collect();
        for place in sieve.places() {
            assert_eq!(starts[usize::try_from(place.line_number).unwrap() - 1] as u64, place.offset);
        }
        let defects = frame::check(&block.join(&b'\n'), usize::MAX).defects;
        assert_eq!(sieve.defects() & defects, defects);
        let numbers = sieve.places().iter().map(|place| place.line_number);
        let sieved = crate::model::Sieved {
            lines: numbers.zip(block).collect(),
            skipped: sieve.skipped,
            merged: sieve.merged,
        };
        sieve.clear();
        (sieve.skipped, sieve.merged) = (0, 0);
        sieved
    }

    fn only() -> impl Strategy<Value = Option<Vec<&'static str>>> {
        let names = [
            "result",
            "system",
            "stream_event/content_block_delta/text_delta",
            "stream_event/content_block_stop",
            "stream_event",
        ];
        proptest::option::of(proptest::sample::subsequence(names.to_vec(), 0..4))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]

        #[test]
        fn any_cutting_into_takes_gives_what_the_definition_says(
            data in crate::model::lines(40),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
            only in only(),
            coalesce: bool,
            limit in prop_oneof![Just(0), 1..200_usize],
        ) {
            let end = data.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            let data = &data[..end];
            let longest = data.split(|&byte| byte == b'\n').map(<[u8]>::len).max().unwrap_or(0);
            let max_line = if limit == 0 { usize::MAX } else { longest + limit };
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(end + 1)).collect();
            cuts.push(end);
            cuts.sort_unstable();
            let every: Vec<_> = memchr::memchr_iter(b'\n', data).map(|at| at + 1).collect();
            let only = only.as_deref();
            let expected = crate::model::sieve(data, only, coalesce, max_line);
            for level in levels() {
                let mut sieve = Sieve::new(only, coalesce, level);
                // Twice: the second time with the layouts of the first.
                for _ in 0..2 {
                    prop_assert_eq!(&taken(&mut sieve, data, &cuts, max_line, false), &expected);
                }
                let forgetful = taken(&mut sieve, data, &every, max_line, true);
                prop_assert_eq!(&forgetful, &expected);
            }
        }

        #[test]
        fn the_last_line_is_kept_as_any_other(line in crate::model::line(), only in only()) {
            let line = line.split(|&byte| byte == b'\n').next().unwrap();
            let only = only.as_deref();
            let data = [line, b"\n"].concat();
            let skipped = crate::model::sieve(&data, only, false, usize::MAX).skipped;
            for level in levels() {
                prop_assert_eq!(Sieve::new(only, false, level).keeps(line), skipped == 0);
            }
        }
    }

    #[test]
    fn many_sessions_are_merged_up_to_the_number_of_groups() {
        for (sessions, merged) in [(MOST_OPEN, true), (MOST_OPEN + 1, false), (1000, false)] {
            let lines = (0..2 * sessions).map(|n| delta(&(n % sessions).to_string(), "x", "1") + "\n");
            let data: String = lines.take(300).collect();
            for level in levels() {
                let mut sieve = Sieve::new(None, true, level);
                let found = taken(&mut sieve, data.as_bytes(), &[data.len()], usize::MAX, false);
                assert_eq!(found, crate::model::sieve(data.as_bytes(), None, true, usize::MAX));
                assert_eq!(found.merged > 0, merged);
            }
        }
    }

    #[test]
    fn cleared_it_holds_32_kib_at_most() {
        let long = delta("a", &"x".repeat(1_000_000), "1");
        let many: String = (0..300).map(|n| delta(&"s".repeat(n), &"t".repeat(n), "1") + "\n").collect();
        let keys: String = (0..10_000).map(|n| format!("\"{n}\":[[[],1]],")).collect();
        let keys = delta("a", "x", "1").replacen('{', &format!("{{{keys}"), 1);
        for data in [format!("{long}\n{long}\n"), many, keys + "\n", "{}\n".repeat(20_000)] {
            for coalesce in [false, true] {
                let mut sieve = Sieve::new(None, coalesce, Level::Fast);
                sieve.take(data.as_bytes(), usize::MAX, START).unwrap();
                sieve.finish().unwrap();
                assert!(sieve.held() > 0);
                sieve.clear();
                assert!(sieve.held() <= KEEP_BYTES, "{}", sieve.held());
            }
        }
    }

    #[test]
    fn depth_is_no_limit() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        let line = delta("a", "x", "1").replacen('{', &format!("{{\"deep\":{deep},"), 1);
        let data = format!("{line}\n{line}\n");
        for level in levels() {
            let mut sieve = Sieve::new(None, true, level);
            let first = sieve.take(data.as_bytes(), usize::MAX, START).unwrap();
            assert_eq!((first.lines, sieve.groups.open()), (1, 1));
            sieve.take(&data.as_bytes()[first.bytes..], usize::MAX, START).unwrap();
            sieve.finish().unwrap();
            assert_eq!(sieve.block(), [&line, "\n"].concat().as_bytes());
        }
    }
}
