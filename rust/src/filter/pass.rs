//! One pass of a filter over complete lines.

use std::collections::TryReserveError;

use super::credit::Credit;
use super::delta::{self, DeltaKind};
use super::group::{append, write_key, Groups, Parts, MAX_OPEN};
use super::{Filter, Known, Taken, Verdict};
use crate::kinds::scan::{scan, Scan};
use crate::kinds::template::{Fitting, Gaps, Visit};
use crate::lines::buffer::BLOCK_BYTES;
use crate::lines::step::Place;
use crate::simd::{Engine, Operation};

/// Goes through lines for [`Filter::take`].
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
            data: &data[..0],
            max_line,
            place,
            lines: 0,
            at: 0,
            kept_from: 0,
            too_long: None,
        };
        // Window by window, so that a step searches no further than it gets.
        while pass.too_long.is_none() && filter.room(&pass) > 0 && !filter.credit.is_spent() {
            let Some(complete) = lines_end(data, pass.at) else {
                break;
            };
            pass.data = &data[..complete];
            while pass.at < complete
                && pass.too_long.is_none()
                && filter.room(&pass) > 0
                && !filter.credit.is_spent()
            {
                engine.call(FittingLines(filter, &mut pass));
                if pass.at < complete && filter.room(&pass) > 0 && !filter.credit.is_spent() {
                    engine.call(AnyLine(filter, &mut pass))?;
                }
            }
        }
        filter.keep(&mut pass)?;
        Ok(Taken {
            lines: pass.lines,
            bytes: pass.at,
            too_long: pass.too_long,
        })
    }
}

/// Behind the last LF of the next block of `data` from `at` on; behind the next LF if it has none.
fn lines_end(data: &[u8], at: usize) -> Option<usize> {
    let window = data.len().min(at + BLOCK_BYTES);
    let last = memchr::memrchr(b'\n', &data[at..window]).map(|found| at + found + 1);
    last.or_else(|| memchr::memchr(b'\n', &data[window..]).map(|found| window + found + 1))
}

/// A pass over complete lines: how far it has come.
pub(super) struct Pass<'a> {
    /// Complete lines, those of the window and all before.
    pub data: &'a [u8],
    pub max_line: usize,
    /// Of `data`.
    pub place: Place,
    /// Lines gone through.
    pub lines: usize,
    /// Behind them.
    pub at: usize,
    /// `data[kept_from..at]` are lines that are kept, and not copied yet. If there are any, no group is open.
    pub kept_from: usize,
    pub too_long: Option<usize>,
}

impl Pass<'_> {
    /// Passes a line that is not to be copied, and ends at `end`.
    fn drop_to(&mut self, end: usize) {
        self.lines += 1;
        self.at = end;
        self.kept_from = end;
    }

    /// Where the next line begins.
    pub fn place(&self) -> Place {
        Place {
            offset: self.place.offset + self.at as u64,
            lines: self.place.lines + self.lines as u64,
        }
    }
}

impl Filter {
    /// What is done with a line that was scanned and is clear, and the template that was made of it.
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
        // What cannot be merged gets no template: the next line may differ from it in just what was wrong.
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

    /// Takes the next line, a delta, of the template `known` or else with its key in `self.key`.
    fn delta(
        &mut self,
        known: Option<usize>,
        pass: &Pass,
        end: usize,
        parts: Parts,
    ) -> Result<(), TryReserveError> {
        let Some(index) = known else {
            self.merge(pass, end, parts)?;
            return Ok(());
        };
        if let Known::Merge {
            group, closed, key, ..
        } = self.templates.of(index)
        {
            if *closed == self.closed && self.groups.merged_len(*group, parts) <= pass.max_line {
                self.groups.add(*group, pass.data, parts)?;
                self.merged += 1;
                return Ok(());
            }
            self.key.clear();
            append(&mut self.key, key)?;
        }
        let into = self.merge(pass, end, parts)?;
        if let Known::Merge { group, closed, .. } = self.templates.of(index) {
            (*group, *closed) = (into, self.closed);
        }
        Ok(())
    }

    /// Puts the next line, a delta whose key is `self.key`, into a group, and returns which.
    fn merge(&mut self, pass: &Pass, end: usize, parts: Parts) -> Result<usize, TryReserveError> {
        let (data, from) = (pass.data, pass.at);
        match self.groups.find(&self.key) {
            Some(at)
                if self.groups.is_like(at, data, from, end, parts)
                    && self.groups.merged_len(at, parts) <= pass.max_line =>
            {
                self.groups.add(at, data, parts)?;
                self.merged += 1;
                return Ok(at);
            }
            None if self.groups.open() < MAX_OPEN => (),
            _ => self.finish()?,
        }
        self.groups
            .begin(&self.key, data, from, end, parts, pass.place())
    }

    /// Copies the lines that are kept and were not copied yet.
    fn keep(&mut self, pass: &mut Pass) -> Result<(), TryReserveError> {
        append(&mut self.block, &pass.data[pass.kept_from..pass.at])?;
        pass.kept_from = pass.at;
        Ok(())
    }

    /// How many bytes the block in making has to go.
    fn room(&self, pass: &Pass) -> usize {
        let pending = pass.at - pass.kept_from;
        BLOCK_BYTES.saturating_sub(self.block.len() + pending + self.groups.bytes())
    }
}

/// Goes through lines as long as each fits the template that is expected, and no group is to be opened or closed.
struct FittingLines<'s, 'c, 'd>(&'s mut Filter, &'c mut Pass<'d>);

impl Operation for FittingLines<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) {
        let Self(filter, pass) = self;
        let mut visitor = Visitor {
            data: pass.data,
            place: pass.place,
            max_line: pass.max_line,
            room: filter.room(pass),
            credit: &mut filter.credit,
            lines: pass.lines,
            kept_from: (pass.kept_from < pass.at).then_some(pass.kept_from),
            skipped: 0,
            merged: 0,
            closed: filter.closed,
            none_open: filter.groups.open() == 0,
            groups: &mut filter.groups,
            places: &mut filter.places,
        };
        pass.at = filter
            .templates
            .take_fitting(engine, pass.data, pass.at, &mut visitor);
        pass.lines = visitor.lines;
        pass.kept_from = visitor.kept_from.unwrap_or(pass.at);
        filter.skipped += visitor.skipped;
        filter.merged += visitor.merged;
    }
}

/// What [`FittingLines`] does with each line.
struct Visitor<'t> {
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

impl Visit<Known> for &mut Visitor<'_> {
    #[inline(always)]
    fn visit(&mut self, known: &mut Known, from: usize, fitting: Fitting) -> bool {
        // The limit does not count the LF.
        if fitting.end - from > self.max_line || self.room == 0 {
            return false;
        }
        match known {
            Known::Skip => {
                if self.kept_from.is_some() || !self.none_open {
                    return false;
                }
                self.skipped += 1;
            }
            Known::Merge {
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
            Known::Keep => {
                if !self.none_open || self.credit.is_spent() || self.places.try_reserve(1).is_err()
                {
                    return false;
                }
                self.places.push(Place {
                    offset: self.place.offset + from as u64,
                    lines: self.place.lines + self.lines as u64,
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
struct AnyLine<'s, 'c, 'd>(&'s mut Filter, &'c mut Pass<'d>);

impl Operation for AnyLine<'_, '_, '_> {
    type Output = Result<(), TryReserveError>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self(filter, pass) = self;
        let (data, from) = (pass.data, pass.at);
        let mut fitting = filter.templates.guess(engine, data, from);
        let mut found = Scan::default();
        if fitting.is_none() {
            found = scan(engine, data, from);
            if found.clear {
                let gaps = Gaps::of(&found);
                fitting = filter
                    .templates
                    .look_up(engine, data, from, found.end, gaps);
            }
        }
        let end = fitting.map_or(found.end, |(_, fitting)| fitting.end);
        let length = end - 1 - from;
        if length > pass.max_line {
            pass.too_long = Some(length);
            return Ok(());
        }
        let (verdict, template) = if let Some((index, fitting)) = fitting {
            let verdict = match filter.templates.of(index) {
                Known::Skip => Verdict::Skip,
                Known::Keep => Verdict::Keep,
                Known::Merge { order, .. } => Verdict::Merge(order.parts(fitting.gaps)),
            };
            (verdict, Some(index))
        } else if found.clear {
            filter.judge(engine, data, from, &found)?
        } else if is_blank(&data[from..end - 1]) {
            filter.keep(pass)?;
            pass.drop_to(end);
            return Ok(());
        } else {
            (Verdict::Keep, None)
        };
        match verdict {
            Verdict::Skip => {
                filter.keep(pass)?;
                filter.finish()?;
                filter.skipped += 1;
                pass.drop_to(end);
            }
            Verdict::Keep => {
                filter.finish()?;
                filter.places.try_reserve(1)?;
                filter.places.push(pass.place());
                filter.credit.others(1);
                pass.lines += 1;
                pass.at = end;
            }
            Verdict::Merge(parts) => {
                filter.keep(pass)?;
                filter.delta(template, pass, end, parts)?;
                pass.drop_to(end);
            }
        }
        Ok(())
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}
