//! One pass of a filter over the complete lines of a chunk.
//!
//! The basic idea is simple: if the filter wants to skip, skip, keep, keep and skip five lines, a pass skips the first two and keeps the
//! next two. Its result is one block of skipped or merged lines, and then one block of kept lines. The fifth line needs another pass.

use std::collections::TryReserveError;

use super::delta::{self, DeltaKind, MAX_BYTES};
use super::group::{append, write_key, Groups, Parts, MAX_OPEN};
use super::{Filter, Known, Taken, Verdict, LOOK, MERGED, OPEN, PAUSE_BYTES, PROBE, SCAN};
use crate::kinds::scan::{scan, Scan};
use crate::kinds::template::{Fitting, Gaps, Visit};
use crate::lines::place::Place;
use crate::simd::{Engine, Operation};

/// Takes lines, for [`Filter::take`].
pub(super) struct Take<'a> {
    pub data: &'a [u8],
    pub max_line: usize,
    pub place: Place,
    pub filter: &'a mut Filter,
}

impl Operation for Take<'_> {
    type Output = Result<Taken, TryReserveError>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self {
            data,
            max_line,
            place,
            filter,
        } = self;
        let mut pass = Pass {
            data,
            max_line,
            place,
            lines: 0,
            at: 0,
            kept_from: None,
            is_over: false,
        };
        while pass.at < data.len() && !pass.is_over {
            let fitting = engine.call(FittingLines(filter, &mut pass));
            if pass.at < data.len() {
                engine.call(NextLine(filter, &mut pass, fitting))?;
            }
        }
        filter.groups.settle(data)?;
        let passed = pass.kept_from.unwrap_or(pass.at);
        Ok(Taken {
            lines: pass.lines,
            bytes: passed,
            kept: pass.at - passed,
        })
    }
}

/// The progress of a pass over complete lines.
pub(super) struct Pass<'a> {
    pub data: &'a [u8],
    pub max_line: usize,
    /// Where `data` begins in the stream.
    pub place: Place,
    /// The number of skipped or merged lines, all before the kept lines.
    pub lines: usize,
    /// The end of the lines taken so far.
    pub at: usize,
    /// The beginning of the kept lines.
    pub kept_from: Option<usize>,
    /// True if the next line needs another pass.
    pub is_over: bool,
}

impl Pass<'_> {
    /// Skips the next line, which ends at `end`.
    fn drop_to(&mut self, end: usize) {
        self.lines += 1;
        self.at = end;
    }

    /// Keeps the lines from `at` to `end`.
    fn keep_to(&mut self, end: usize) {
        self.kept_from.get_or_insert(self.at);
        self.at = end;
    }

    /// Returns the place of the next line.
    fn place(&self) -> Place {
        Place {
            offset: self.place.offset + self.at as u64,
            lines: self.place.lines + self.lines as u64,
        }
    }
}

impl Filter {
    /// Returns the end of the lines to keep without a scan, for a filter that only merges: the next line if it cannot be merged, or several
    /// lines if the credit is used up. Returns `None` if the next line must be scanned.
    #[inline(always)]
    fn end_unseen<E: Engine>(&mut self, engine: E, data: &[u8], from: usize) -> Option<usize> {
        if self.credit < SCAN {
            self.credit = PROBE;
            self.pause = PAUSE_BYTES;
        }
        if self.pause > 0 {
            let rest = data.len() - from;
            let pause = self.pause.min(rest);
            self.pause -= pause;
            return Some(line_end(data, from + pause - 1));
        }
        let end = line_end(data, from);
        if end - from <= MAX_BYTES && !is_no_delta(engine, data, from) {
            self.credit -= SCAN;
            return None;
        }
        self.credit -= LOOK;
        Some(end)
    }

    /// Decides whether to keep, skip or merge a scanned and clear line. Returns the decision, and the index of the line's template if it
    /// made one.
    #[inline(always)]
    fn judge<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        from: usize,
        found: &Scan,
    ) -> Result<(Verdict, Option<usize>), TryReserveError> {
        let (end, wanted) = (found.end, self.wants(data, found));
        let delta = (wanted && self.coalesce).then(|| DeltaKind::of(data, found));
        let Some(kind) = delta.flatten() else {
            let (verdict, known) = if wanted {
                (Verdict::Keep, Known::Keep)
            } else {
                (Verdict::Skip, Known::Skip)
            };
            let gaps = Gaps::of(found);
            let pays = self.templates.pays();
            let index = pays.then(|| self.templates.add(data, from, end, gaps, false, known));
            return Ok((verdict, index.flatten()));
        };
        // A delta that cannot be merged does not get a template, because the reason may not apply to the next line that fits.
        if end - from > MAX_BYTES {
            return Ok((Verdict::Keep, None));
        }
        let checked = delta::check(engine, data, from, end - 1, kind, &mut self.scratch)?;
        let Some(delta) = checked else {
            return Ok((Verdict::Keep, None));
        };
        let parts = Parts {
            text: delta.text,
            uuid: delta.uuid,
        };
        write_key(&mut self.key, data, &delta)?;
        // Without `only`, the credit limits the templates.
        if self.names.is_some() && !self.templates.pays() {
            return Ok((Verdict::Merge(parts), None));
        }
        let mut key = Vec::new();
        append(&mut key, &self.key)?;
        let known = Known::Merge {
            key,
            order: parts.order(),
            group: 0,
            closed: u64::MAX,
        };
        let gaps = Gaps {
            text: Some(delta.text),
            uuid: delta.uuid,
        };
        let index = self.templates.add(data, from, end, gaps, true, known);
        Ok((Verdict::Merge(parts), index))
    }

    /// Adds the next line, a delta, to its group, or opens a group. `known` is the template with the key of the line; if it is `None`, the
    /// key is `self.key`. A line that is added to a group earns the credit `earned`. Returns false if the groups must be closed first.
    fn merge(
        &mut self,
        known: Option<usize>,
        pass: &Pass,
        end: usize,
        parts: Parts,
        earned: u32,
    ) -> Result<bool, TryReserveError> {
        let (data, from) = (pass.data, pass.at);
        if let Some(index) = known {
            if let Known::Merge { key, .. } = self.templates.of(index) {
                self.key.clear();
                append(&mut self.key, key)?;
            }
        }
        let into = match self.groups.find(&self.key) {
            Some(at)
                if self.groups.is_like(at, data, from, end, parts)
                    && self.groups.merged_len(at, parts) <= pass.max_line =>
            {
                self.groups.add(at, data, parts)?;
                self.merged += 1;
                self.earn(earned);
                at
            }
            None if self.groups.open() < MAX_OPEN => {
                self.credit = self.credit.saturating_sub(OPEN);
                self.groups
                    .begin(&self.key, data, from, end, parts, pass.place())?
            }
            _ => return Ok(false),
        };
        if let Some(index) = known {
            if let Known::Merge { group, closed, .. } = self.templates.of(index) {
                (*group, *closed) = (into, self.closed);
            }
        }
        Ok(true)
    }
}

/// Takes lines until one does not fit any template, or requires opening or closing a group. Returns the template of the next line, if it
/// fits one.
struct FittingLines<'s, 'c, 'd>(&'s mut Filter, &'c mut Pass<'d>);

impl Operation for FittingLines<'_, '_, '_> {
    type Output = Option<(usize, Fitting)>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self(filter, pass) = self;
        let mut visitor = Visitor {
            data: pass.data,
            max_line: pass.max_line,
            kept_from: pass.kept_from,
            lines: 0,
            merged: 0,
            closed: filter.closed,
            none_open: filter.groups.open() == 0,
            groups: &mut filter.groups,
        };
        let templates = &mut filter.templates;
        let (at, refused) = templates.take_fitting(engine, pass.data, pass.at, &mut visitor);
        pass.at = at;
        let Visitor { lines, merged, .. } = visitor;
        pass.kept_from = visitor.kept_from;
        pass.lines += lines;
        filter.merged += merged;
        filter.skipped += lines as u64 - merged;
        filter.earn(MERGED.saturating_mul(u32::try_from(merged).unwrap_or(u32::MAX)));
        refused
    }
}

/// Handles each line of [`FittingLines`].
struct Visitor<'t> {
    data: &'t [u8],
    max_line: usize,
    kept_from: Option<usize>,
    lines: usize,
    merged: u64,
    closed: u64,
    none_open: bool,
    groups: &'t mut Groups,
}

impl Visit<Known> for &mut Visitor<'_> {
    #[inline(always)]
    fn visit(&mut self, known: &mut Known, from: usize, fitting: Fitting) -> bool {
        if let Known::Keep = known {
            self.kept_from.get_or_insert(from);
            return true;
        }
        // The limit does not count the LF.
        if self.kept_from.is_some() || fitting.end - from > self.max_line {
            return false;
        }
        match known {
            Known::Merge {
                order,
                group,
                closed,
                ..
            } => {
                let parts = order.parts(fitting.gaps);
                if *closed != self.closed
                    || fitting.end - from > MAX_BYTES
                    || self.groups.merged_len(*group, parts) > self.max_line
                    || self.groups.add(*group, self.data, parts).is_err()
                {
                    return false;
                }
                self.merged += 1;
            }
            _ if self.none_open => {}
            _ => return false,
        }
        self.lines += 1;
        true
    }
}

/// Takes the next line, or ends the pass before it. The third field is the template that the line fits.
struct NextLine<'s, 'c, 'd>(&'s mut Filter, &'c mut Pass<'d>, Option<(usize, Fitting)>);

impl Operation for NextLine<'_, '_, '_> {
    type Output = Result<(), TryReserveError>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self(filter, pass, fitting) = self;
        let (data, from) = (pass.data, pass.at);
        let mut found = Scan::default();
        if fitting.is_none() {
            if filter.names.is_none() {
                if let Some(end) = filter.end_unseen(engine, data, from) {
                    pass.keep_to(end);
                    return Ok(());
                }
            }
            found = scan(engine, data, from);
        }
        let end = fitting.map_or(found.end, |(_, fitting)| fitting.end);
        let (verdict, template) = if end - 1 - from > pass.max_line {
            (Verdict::Keep, None)
        } else if let Some((index, fitting)) = fitting {
            let verdict = match filter.templates.of(index) {
                Known::Skip => Verdict::Skip,
                Known::Merge { .. } if end - from > MAX_BYTES => Verdict::Keep,
                Known::Keep => Verdict::Keep,
                Known::Merge { order, .. } => Verdict::Merge(order.parts(fitting.gaps)),
            };
            (verdict, Some(index))
        } else if found.clear {
            filter.judge(engine, data, from, &found)?
        } else if pass.kept_from.is_none() && is_blank(&data[from..end - 1]) {
            pass.drop_to(end);
            return Ok(());
        } else {
            (Verdict::Keep, None)
        };
        match verdict {
            Verdict::Keep => pass.keep_to(end),
            _ if pass.kept_from.is_some() => pass.is_over = true,
            Verdict::Skip => {
                filter.skipped += 1;
                pass.drop_to(end);
                pass.is_over = filter.groups.open() > 0;
            }
            Verdict::Merge(parts) => {
                // A merged line earns back the credit that its scan cost.
                let earned = if fitting.is_none() {
                    MERGED + SCAN
                } else {
                    MERGED
                };
                if filter.merge(template, pass, end, parts, earned)? {
                    pass.drop_to(end);
                } else {
                    pass.is_over = true;
                }
            }
        }
        Ok(())
    }
}

/// Returns the index after the first LF at or after `at`, or the length of the data.
fn line_end(data: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &data[at..]).map_or(data.len(), |found| at + found + 1)
}

/// Returns true if the first tags of a line show that it is not a delta: `{"type":"user"` or
/// `{"type":"stream_event","event":{"type":"message_stop"`. A later tag cannot change this, because a line with a key twice is not mergeable.
#[inline(always)]
fn is_no_delta<E: Engine>(engine: E, data: &[u8], from: usize) -> bool {
    let is_spaced = data.get(from + 8) == Some(&b' ');
    let openings: [&[u8]; 2] = if is_spaced {
        [b"{\"type\": \"", b", \"event\": {\"type\": \""]
    } else {
        [b"{\"type\":\"", b",\"event\":{\"type\":\""]
    };
    let tags: [&[u8]; 2] = [b"stream_event\"", b"content_block_delta\""];
    let mut at = from;
    for (opening, tag) in openings.into_iter().zip(tags) {
        if !engine.begins(data, at, opening) {
            return false;
        }
        at += opening.len();
        if !engine.begins(data, at, tag) {
            let end = engine.special(data, at);
            return data.get(end) == Some(&b'"');
        }
        at += tag.len();
    }
    false
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}
