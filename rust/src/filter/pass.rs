//! One pass of a filter over complete lines.

use std::collections::TryReserveError;

use super::delta::{self, DeltaKind, MAX_BYTES};
use super::group::{append, write_key, Groups, Parts, MAX_OPEN};
use super::{Filter, Known, Taken, Verdict, MAX_CREDIT, SCAN};
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
            engine.call(FittingLines(filter, &mut pass));
            if pass.at < data.len() {
                engine.call(AnyLine(filter, &mut pass))?;
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
    /// The place of `data`.
    pub place: Place,
    /// Lines passed over, before the kept lines.
    pub lines: usize,
    /// The end of the lines taken so far.
    pub at: usize,
    /// The beginning of the kept lines.
    pub kept_from: Option<usize>,
    /// The next line needs another pass.
    pub is_over: bool,
}

impl Pass<'_> {
    /// Passes over a line that ends at `end`.
    fn drop_to(&mut self, end: usize) {
        self.lines += 1;
        self.at = end;
    }

    /// Keeps a line that ends at `end`.
    fn keep_to(&mut self, end: usize) {
        self.kept_from.get_or_insert(self.at);
        self.at = end;
    }

    /// Where the next line begins.
    fn place(&self) -> Place {
        Place {
            offset: self.place.offset + self.at as u64,
            lines: self.place.lines + self.lines as u64,
        }
    }
}

impl Filter {
    /// Whether there is credit for the scan of a line, if lines are scanned only to be merged.
    #[inline]
    fn has_credit(&mut self) -> bool {
        // The line after a first delta is worth a scan.
        let has = self.credit >= SCAN || self.groups.open() == 1;
        self.credit += u32::from(!has);
        has
    }

    /// What to do with a scanned, clear line; and the template made of it.
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
            let index = self.templates.add(data, from, end, gaps, false, known);
            return Ok((verdict, index));
        };
        // A delta that cannot be merged gets no template: the next line may be without the fault.
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

    /// Adds the next line, a delta, to a group. `known` is the template that has the line's key; without it the key is `self.key`.
    /// Returns false if the groups must be closed first.
    fn merge(
        &mut self,
        known: Option<usize>,
        pass: &Pass,
        end: usize,
        parts: Parts,
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
                let credit = MAX_CREDIT.min(self.credit + SCAN + 1);
                self.credit = self.credit.max(credit);
                at
            }
            None if self.groups.open() < MAX_OPEN => {
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

/// Takes lines, as long as each fits the expected template and no group has to be opened or closed.
struct FittingLines<'s, 'c, 'd>(&'s mut Filter, &'c mut Pass<'d>);

impl Operation for FittingLines<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) {
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
        pass.at = filter
            .templates
            .take_fitting(engine, pass.data, pass.at, &mut visitor);
        pass.kept_from = visitor.kept_from;
        pass.lines += visitor.lines;
        filter.merged += visitor.merged;
        filter.skipped += visitor.lines as u64 - visitor.merged;
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

/// Takes the next line of any kind, or finds that it needs another pass.
struct AnyLine<'s, 'c, 'd>(&'s mut Filter, &'c mut Pass<'d>);

impl Operation for AnyLine<'_, '_, '_> {
    type Output = Result<(), TryReserveError>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self(filter, pass) = self;
        let (data, from) = (pass.data, pass.at);
        if filter.names.is_none() {
            let end = memchr::memchr(b'\n', &data[from..]).map_or(data.len(), |at| from + at + 1);
            if end - from > MAX_BYTES || is_no_delta(engine, data, from) || !filter.has_credit() {
                pass.keep_to(end);
                return Ok(());
            }
        }
        let mut fitting = filter.templates.guess(engine, data, from);
        let mut found = Scan::default();
        if fitting.is_none() {
            filter.credit = filter.credit.saturating_sub(SCAN);
            found = scan(engine, data, from);
            if found.clear {
                let gaps = Gaps::of(&found);
                fitting = filter
                    .templates
                    .look_up(engine, data, from, found.end, gaps);
            }
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
                if filter.merge(template, pass, end, parts)? {
                    pass.drop_to(end);
                } else {
                    pass.is_over = true;
                }
            }
        }
        Ok(())
    }
}

/// Whether a line begins with tags, as the CLI's lines do, that show that it cannot be merged. In a line that could be merged, no key
/// comes twice.
#[inline(always)]
fn is_no_delta<E: Engine>(engine: E, data: &[u8], from: usize) -> bool {
    let mut at = from;
    for (opening, tag) in [
        (&b"{\"type\":\""[..], &b"stream_event\""[..]),
        (b",\"event\":{\"type\":\"", b"content_block_delta\""),
    ] {
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
