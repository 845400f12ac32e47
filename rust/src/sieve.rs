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
use crate::group::{append, write_key, Groups, Parts, MOST_OPEN};
use crate::layout::Layouts;
use crate::scan::{scan, KindSpans, Scan, Span};
use crate::simd::{run, Engine, Level, Operation};

/// What of [`KEEP_BYTES`] each part may keep.
const KEEP_BLOCK_BYTES: usize = KEEP_BYTES / 4;
const KEEP_PLACES: usize = KEEP_BYTES / 8 / size_of::<Place>();
const KEEP_GROUP_BYTES: usize = KEEP_BYTES / 4;
const KEEP_SCRATCH_BYTES: usize = KEEP_BYTES / 8;

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

/// What becomes of a line.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Blank,
    PassedOver,
    Kept,
    /// With its key in `Sieve::key`.
    Delta(Parts),
    /// Not judged yet.
    Scanned(Scan),
}

/// What is known of the lines of a layout.
#[derive(Debug)]
enum Known {
    PassedOver,
    Kept,
    Delta {
        key: Vec<u8>,
        /// Whether the uuid comes before the text.
        uuid_first: bool,
        uuid: bool,
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
        if self.scratch.held() > KEEP_SCRATCH_BYTES {
            self.scratch = delta::Scratch::default();
        }
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

    #[inline(always)]
    fn judge<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        from: usize,
        found: &Scan,
    ) -> Result<(Fate, Option<usize>), TryReserveError> {
        let line = &data[from..found.end - 1];
        if !found.clear {
            let fate = if is_blank(line) { Fate::Blank } else { Fate::Kept };
            return Ok((fate, None));
        }
        let (mut fate, mut known) = (Fate::PassedOver, Known::PassedOver);
        if self.wants(data, found) {
            (fate, known) = (Fate::Kept, Known::Kept);
            if let Some(kind) = DeltaKind::of(data, found).filter(|_| self.coalesce) {
                let end = found.end - 1;
                let checked = delta::check(engine, data, from, end, kind, &mut self.scratch)?;
                let Some(delta) = checked else {
                    return Ok((Fate::Kept, None));
                };
                write_key(&mut self.key, data, &delta)?;
                let (text, uuid) = (delta.text, delta.uuid);
                let mut key = Vec::new();
                append(&mut key, &self.key)?;
                let known = Known::Delta {
                    key,
                    uuid_first: uuid.is_some_and(|uuid| uuid.start < text.start),
                    uuid: uuid.is_some(),
                    group: 0,
                    closed: u64::MAX,
                };
                let index = self.layouts.add(data, from, found.end, Some(text), uuid, known);
                return Ok((Fate::Delta(Parts { text, uuid }), index));
            }
        }
        if found.text.is_some() || found.uuid.is_some() {
            self.layouts.add(data, from, found.end, found.text, found.uuid, known);
        }
        Ok((fate, None))
    }

    /// Takes a delta, of the layout `known` or else with its key in `self.key`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn delta(
        &mut self,
        known: Option<usize>,
        data: &[u8],
        from: usize,
        end: usize,
        parts: Parts,
        max_line: usize,
        place: Place,
    ) -> Result<(), TryReserveError> {
        let Some(index) = known else {
            self.merge(data, from, end, parts, max_line, place)?;
            return Ok(());
        };
        if let Known::Delta {
            group, closed, key, ..
        } = self.layouts.of(index)
        {
            if *closed == self.closed && self.groups.merged_len(*group, parts) <= max_line {
                self.groups.add(*group, data, parts)?;
                self.merged += 1;
                return Ok(());
            }
            self.key.clear();
            append(&mut self.key, key)?;
        }
        let into = self.merge(data, from, end, parts, max_line, place)?;
        if let Known::Delta { group, closed, .. } = self.layouts.of(index) {
            (*group, *closed) = (into, self.closed);
        }
        Ok(())
    }

    /// Keeps lines that were pending, `data[from..end]`.
    fn keep(&mut self, lines: &[u8]) -> Result<(), TryReserveError> {
        append(&mut self.block, lines)
    }

    /// Puts a delta whose key is `self.key` into a group, and returns which.
    fn merge(
        &mut self,
        data: &[u8],
        from: usize,
        end: usize,
        parts: Parts,
        max_line: usize,
        place: Place,
    ) -> Result<usize, TryReserveError> {
        match self.groups.find(&self.key) {
            Some(at)
                if self.groups.is_like(at, data, from, end, parts)
                    && self.groups.merged_len(at, parts) <= max_line =>
            {
                self.groups.add(at, data, parts)?;
                self.merged += 1;
                return Ok(at);
            }
            None if self.groups.open() < MOST_OPEN => (),
            _ => self.finish()?,
        }
        self.groups.begin(&self.key, data, from, end, parts, place)
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
        let data = &data[..complete];
        let mut taken = Taken::default();
        // Lines that are kept, and not copied yet.
        let mut kept_from = 0;
        let mut kept_end = 0;
        while taken.bytes < data.len() {
            let from = taken.bytes;
            if sieve.block.len() + (kept_end - kept_from) + sieve.groups.bytes() >= BLOCK_BYTES {
                break;
            }
            let here = Place {
                offset: place.offset + from as u64,
                line_number: place.line_number + taken.lines as u64,
            };
            let is_delta = |known: &Known| matches!(known, Known::Delta { .. });
            let mut known = None;
            let (end, mut fate) =
                if let Some(fitting) = sieve.layouts.find(engine, data, from, is_delta) {
                    known = Some(fitting.index);
                    let fate = match sieve.layouts.of(fitting.index) {
                        Known::PassedOver => Fate::PassedOver,
                        Known::Kept => Fate::Kept,
                        Known::Delta {
                            uuid_first, uuid, ..
                        } => {
                            let [one, two] = fitting.gaps;
                            let (text, other) = if *uuid_first { (two, one) } else { (one, two) };
                            Fate::Delta(Parts {
                                text,
                                uuid: uuid.then_some(other),
                            })
                        }
                    };
                    (fitting.end, fate)
                } else {
                    let found = scan(engine, data, from);
                    (found.end, Fate::Scanned(found))
                };
            let length = end - 1 - from;
            if length > max_line {
                taken.too_long = Some(length);
                break;
            }
            if let Fate::Scanned(found) = &fate {
                let (new, layout) = sieve.judge(engine, data, from, found)?;
                known = layout;
                fate = new;
            }
            if !matches!(fate, Fate::Kept) && kept_end > kept_from {
                sieve.keep(&data[kept_from..kept_end])?;
                kept_from = kept_end;
            }
            match fate {
                Fate::PassedOver => {
                    sieve.finish()?;
                    sieve.skipped += 1;
                }
                Fate::Kept => {
                    if kept_from == kept_end {
                        sieve.finish()?;
                        kept_from = from;
                    }
                    kept_end = end;
                    sieve.places.try_reserve(1)?;
                    sieve.places.push(here);
                }
                Fate::Delta(parts) => {
                    sieve.delta(known, data, from, end, parts, max_line, here)?;
                }
                Fate::Blank | Fate::Scanned(_) => (),
            }
            taken.lines += 1;
            taken.bytes = end;
        }
        sieve.keep(&data[kept_from..kept_end])?;
        Ok(taken)
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
}
