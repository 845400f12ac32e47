//! Templates recognise a line that is like a recent one, without a scan.
//!
//! Most lines of a stream have the same keys in the same order as a recent line, and the same values except for the text and the uuid. A
//! template is a line without the contents of these two strings: *constants*, with *gaps* between them. A line *fits* if it begins with the
//! first constant, if the next byte that may end a string (`"` or a control byte, with escapes skipped) is a quote, if the second constant
//! follows, and so on. The last byte of the last constant is the LF.
//!
//! # Why this is sound
//!
//! Claim: if a line fits a template, then a scan of the line takes the same steps as a scan of the template's line, finds the same
//! tags, and ends at the corresponding LF.
//!
//! Proof. The state of a scan depends only on the bytes that it has read, from left to right. Both lines have the same bytes before the
//! first gap, so at the gap both scans are within a string that is a value but not a tag (only such strings become gaps). A scan then looks
//! for the next unescaped quote or an LF, and so does the fit. The gap ends there in both lines, and contains no LF. The scan does not use
//! the contents of the gap, because they are neither a key nor a tag. From the closing quote onward, both scans are in the same state
//! again, and the next constant has the same bytes. The last constant ends with the LF of the template's line, and constants have no other
//! LF. So the two lines have the same kind, and both are clear. ∎
//!
//! A *strict* fit also requires that each gap has valid escapes, no control byte, and valid UTF-8. A line that fits strictly is mergeable
//! ([`delta`](crate::filter::delta)) if the template's line is, because the check sees the same bytes outside the gaps. This requires that
//! the gaps are the text and the uuid, and that the uuid has no backslash. Constants begin and end at quotes, so each constant is valid
//! UTF-8.
//!
//! A line that does not fit is scanned. So templates change the cost of a line, never the result.
//!
//! # Finding the template of a line
//!
//! Templates with the same first constant form a *family*: for example, the deltas of all sessions, because their `session_id` follows the
//! text. The first constant and the first gap of a line are read once for the whole family. The second constants of the family differ, and
//! a hash of two words at these places chooses the template. So the sessions may take turns in any order, and the processor has no branch
//! to predict.
//!
//! If the template of this hash does not fit, the line is compared with all others, and the template that it fits gets this hash's slot. A
//! new template takes an older one's slot, because lines that differ only in `api_message_id` follow each other.
//!
//! At most [`MAX`] templates are kept. The next new template removes all of them, and recurring lines get new templates. Making a template
//! costs about as much as a scan, so if hardly any line fits, only one line in eight gets a template ([`Templates::pays`]).

// The operations are inlined into one function per engine, because only this function may use vector instructions.
#![allow(clippy::inline_always)]

use crate::kinds::scan::Scan;
use crate::kinds::string::Span;
use crate::simd::{Engine, Operation, HASH_FACTOR};

/// The maximum number of templates.
pub const MAX: usize = 64;
/// The maximum total length in bytes of a template's constants.
pub const MAX_BYTES: usize = 768;
/// The number of slots in a family. It is a power of two, so the highest bits of a hash choose a slot.
const SLOTS: usize = 128;
const WORD: usize = 8;
/// The cost of a template, in lines that do not fit. A line that fits pays for one template.
const COST: u32 = 8;
const MAX_BALANCE: u32 = 512;

/// The text and the uuid of a line, if the line has these strings. They may differ among the lines of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// The text.
    pub text: Option<Span>,
    /// The uuid.
    pub uuid: Option<Span>,
}

/// A line that fits a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitting {
    /// The index after the line's LF.
    pub end: usize,
    /// The contents of the line's gaps, in order. The second is empty if the template has only one gap. `escaped` is not set.
    pub gaps: [Span; 2],
}

/// Handles lines that fit. This is a trait and not a closure, so that `#[inline(always)]` applies.
pub trait Visit<T> {
    /// Takes the line at `from`, which fits a template with the attached value `known`. Returns false to leave the line.
    fn visit(&mut self, known: &mut T, from: usize, fitting: Fitting) -> bool;
}

/// Templates, each with a value `T` that the caller attaches to its lines.
#[derive(Debug)]
pub struct Templates<T> {
    all: Vec<Template<T>>,
    families: Vec<Family>,
    /// The family of the last line.
    last: usize,
    /// Rises with each line and falls with each new template, so that few templates are made if they do not pay.
    balance: u32,
}

/// Templates with the same first constant.
#[derive(Debug)]
struct Family {
    /// The first constant.
    head: Vec<u8>,
    /// True if the first gap is the text, false if it is the uuid.
    text_first: bool,
    /// Whether the family's templates require a strict fit.
    strict: bool,
    /// The length of the shortest second constant.
    shortest: usize,
    /// The first and the last offset at which the second constants differ.
    differing: Option<[usize; 2]>,
    /// The offsets, in the second constant, of two words of 8 bytes that choose the slot of a line.
    words: Option<[usize; 2]>,
    /// For each slot, the index of the template to try first. It is always a template of this family.
    slots: [u8; SLOTS],
    /// The layout of the last line.
    layout: Layout,
}

/// The lengths of a line's parts after the first gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Layout {
    /// The length of the second gap.
    gap: usize,
    /// The lengths of the second and the third constant.
    lengths: [usize; 2],
}

#[derive(Debug)]
struct Template<T> {
    family: usize,
    /// The second constant, and the third if there are two gaps.
    constants: Vec<u8>,
    /// The lengths of both constants.
    lengths: [usize; 2],
    two_gaps: bool,
    known: T,
}

impl<T> Default for Templates<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            families: Vec::new(),
            last: 0,
            balance: MAX_BALANCE,
        }
    }
}

impl Gaps {
    /// Returns the gaps of a scanned line.
    #[inline]
    #[must_use]
    pub fn of(found: &Scan) -> Self {
        Self {
            text: found.text,
            uuid: found.uuid,
        }
    }

    /// Returns the first gap of the line, and the second if there are two. Returns `None` if there is no gap.
    #[inline]
    fn in_order(self) -> Option<(Span, Option<Span>)> {
        match (self.text, self.uuid) {
            (Some(text), Some(uuid)) if uuid.start < text.start => Some((uuid, Some(text))),
            (Some(text), uuid) => Some((text, uuid)),
            (None, uuid) => Some((uuid?, None)),
        }
    }
}

impl<T> Templates<T> {
    /// Returns the value attached to template `index`.
    #[inline]
    pub fn of(&mut self, index: usize) -> &mut T {
        &mut self.all[index].known
    }

    /// Returns the values attached to all templates.
    pub fn all_known(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|template| &template.known)
    }

    /// Returns the memory held in bytes, without the attached values.
    #[must_use]
    pub fn held(&self) -> usize {
        let constants = self.all.iter().map(|it| it.constants.capacity());
        let heads = self.families.iter().map(|it| it.head.capacity());
        self.all.capacity() * size_of::<Template<T>>()
            + self.families.capacity() * size_of::<Family>()
            + constants.sum::<usize>()
            + heads.sum::<usize>()
    }

    /// Removes all templates.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Passes lines, starting at `from`, to `visitor` as long as each fits a template and `visitor` takes it. Returns where the next line
    /// begins, and the template that it fits, if any.
    #[inline(always)]
    pub fn take_fitting<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        from: usize,
        mut visitor: impl Visit<T>,
    ) -> (usize, Option<(usize, Fitting)>) {
        let mut at = from;
        let mut lines = 0;
        let mut found = None;
        'lines: while at < data.len() {
            let Some(family) = self.families.get(self.last) else {
                break;
            };
            let all = &mut self.all[..];
            let first = loop {
                match family.likely(engine, all, data, at) {
                    Ok((index, fitting)) => {
                        if !visitor.visit(&mut all[index].known, at, fitting) {
                            found = Some((index, fitting));
                            break 'lines;
                        }
                        at = fitting.end;
                        lines += 1;
                    }
                    Err(first) => break first,
                }
            };
            let Some((index, fitting)) = self.search(engine, data, at, first) else {
                break;
            };
            if !visitor.visit(&mut self.all[index].known, at, fitting) {
                found = Some((index, fitting));
                break;
            }
            at = fitting.end;
            lines += 1;
        }
        let earned = COST.saturating_mul(lines);
        self.balance = self.balance.saturating_add(earned).min(MAX_BALANCE);
        (at, found)
    }

    #[inline(always)]
    fn search<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        from: usize,
        first: Option<Span>,
    ) -> Option<(usize, Fitting)> {
        engine.call(Search {
            templates: self,
            data,
            from,
            first,
        })
    }

    /// Returns whether to make a template of a line that does not fit any. If hardly any line fits, this is true for one line in eight.
    pub fn pays(&mut self) -> bool {
        self.balance = (self.balance + 1).min(MAX_BALANCE);
        let pays = self.balance > COST;
        if pays {
            self.balance -= COST;
        }
        pays
    }

    /// Makes a template of the scanned, clear line `data[from..end]`, with its LF, and returns its index. `None` if the line has no gap
    /// or too many bytes, or if memory runs out.
    pub fn add(
        &mut self,
        data: &[u8],
        from: usize,
        end: usize,
        gaps: Gaps,
        strict: bool,
        known: T,
    ) -> Option<usize> {
        let (first, second) = gaps.in_order()?;
        let bytes = end - from - first.len - second.map_or(0, |gap| gap.len);
        if bytes > MAX_BYTES {
            return None;
        }
        if self.all.len() == MAX {
            self.all.clear();
            self.families.clear();
        }
        let (between, after) = match second {
            Some(second) => (&data[first.end()..second.start], &data[second.end()..end]),
            None => (&data[first.end()..end], &data[..0]),
        };
        self.all.try_reserve(1).ok()?;
        let mut constants = Vec::new();
        constants
            .try_reserve_exact(between.len() + after.len())
            .ok()?;
        constants.extend_from_slice(between);
        constants.extend_from_slice(after);
        let family = self.family(&data[from..first.start], gaps.text == Some(first), strict)?;
        self.all.push(Template {
            family,
            constants,
            lengths: [between.len(), after.len()],
            two_gaps: second.is_some(),
            known,
        });
        self.last = family;
        self.assign_slots(self.all.len() - 1);
        Some(self.all.len() - 1)
    }

    /// Returns the index of the family with this first constant. Adds the family if necessary; all its slots then have the index of the
    /// template that the caller adds next. Returns `None` if memory runs out.
    fn family(&mut self, head: &[u8], text_first: bool, strict: bool) -> Option<usize> {
        let known = self
            .families
            .iter()
            .position(|it| it.head == head && (it.text_first, it.strict) == (text_first, strict));
        if known.is_some() {
            return known;
        }
        let mut copy = Vec::new();
        copy.try_reserve_exact(head.len()).ok()?;
        copy.extend_from_slice(head);
        self.families.try_reserve(1).ok()?;
        #[allow(clippy::cast_possible_truncation)] // There are at most `MAX` templates.
        let next = self.all.len() as u8;
        self.families.push(Family {
            head: copy,
            text_first,
            strict,
            shortest: usize::MAX,
            differing: None,
            words: None,
            slots: [next; SLOTS],
            layout: Layout::default(),
        });
        Some(self.families.len() - 1)
    }

    /// Assigns a slot to a new template. If the template shows more differences within its family, all its templates get new slots.
    fn assign_slots(&mut self, index: usize) {
        let number = self.all[index].family;
        let (all, family) = (&self.all, &mut self.families[number]);
        let members = |from: usize| {
            let all = all.iter().enumerate().skip(from);
            all.filter(|(_, it)| it.family == number)
        };
        let new = all[index].second();
        family.shortest = family.shortest.min(new.len());
        // Comparing the first template with each of the others is enough: constants that equal the first also equal each other.
        let mut offsets = members(0).next().into_iter().flat_map(|(_, first)| {
            let pairs = first.second().iter().zip(new).enumerate();
            pairs.filter_map(|(at, (one, other))| (one != other).then_some(at))
        });
        if let Some(first) = offsets.next() {
            let last = offsets.last().unwrap_or(first);
            let [low, high] = family.differing.unwrap_or([first, last]);
            family.differing = Some([low.min(first), high.max(last)]);
        }
        let words = family.shortest.checked_sub(WORD).and_then(|most| {
            let [first, last] = family.differing?;
            Some([first.min(most), last.saturating_sub(WORD - 1).min(most)])
        });
        let from = if words == family.words { index } else { 0 };
        family.words = words;
        for (index, template) in members(from) {
            let slot = family.slot(&template.constants, 0);
            #[allow(clippy::cast_possible_truncation)] // There are at most `MAX` templates.
            let index = index as u8;
            family.slots[slot] = index;
        }
    }
}

/// Compares the line at `from` with all templates.
struct Search<'s, 'd, T> {
    templates: &'s mut Templates<T>,
    data: &'d [u8],
    from: usize,
    /// The first gap of the line, if the line begins like the lines of the last family.
    first: Option<Span>,
}

impl<T> Operation for Search<'_, '_, T> {
    type Output = Option<(usize, Fitting)>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Templates {
            all,
            families,
            last,
            ..
        } = self.templates;
        let count = families.len();
        // Families may take turns, so the search begins with the last family and follows the order of their first lines.
        for number in (0..count).map(|offset| (*last + offset) % count) {
            let family = &mut families[number];
            let first = if number == *last {
                self.first
            } else {
                family.first_gap(engine, self.data, self.from)
            };
            let Some(first) = first else {
                continue;
            };
            let slot = family.slot(self.data, first.end());
            let likely = usize::from(family.slots[slot]);
            for index in std::iter::once(likely).chain((0..all.len()).rev()) {
                let template = &all[index];
                if template.family != number {
                    continue;
                }
                if let Some(fitting) = template.fit(engine, self.data, family, first) {
                    #[allow(clippy::cast_possible_truncation)] // There are at most `MAX` templates.
                    let place = index as u8;
                    family.slots[slot] = place;
                    family.layout = template.layout(fitting);
                    *last = number;
                    return Some((index, fitting));
                }
            }
        }
        None
    }
}

impl Family {
    /// Returns the template in the slot of the line at `from`, if the line fits it and has the same layout as the last line.
    ///
    /// # Errors
    ///
    /// If the line begins with the first constant, the error is its first gap.
    #[inline(always)]
    fn likely<T, E: Engine>(
        &self,
        engine: E,
        all: &[Template<T>],
        data: &[u8],
        from: usize,
    ) -> Result<(usize, Fitting), Option<Span>> {
        let layout = self.layout;
        let first = self.first_gap(engine, data, from).ok_or(None)?;
        // The end of the line does not depend on a load from the template, so the processor can already begin with the next line.
        let gap = Span {
            start: first.end() + layout.lengths[0],
            len: layout.gap,
            escaped: false,
        };
        let end = gap.end() + layout.lengths[1];
        let index = usize::from(self.slots[self.slot(data, first.end())]);
        let template = all.get(index).ok_or(None)?;
        if !template.fits_as(engine, data, self, first, gap) {
            return Err(Some(first));
        }
        let gaps = [first, gap];
        Ok((index, Fitting { end, gaps }))
    }

    /// Returns the first gap of the line at `from`, if the line begins with the first constant.
    #[inline(always)]
    fn first_gap<E: Engine>(&self, engine: E, data: &[u8], from: usize) -> Option<Span> {
        if !engine.begins(data, from, &self.head) {
            return None;
        }
        self.gap(engine, data, from + self.head.len(), self.text_first)
    }

    /// Returns the contents of the gap that begins at `at`.
    #[inline(always)]
    fn gap<E: Engine>(&self, engine: E, data: &[u8], at: usize, is_text: bool) -> Option<Span> {
        let end = if self.strict {
            strict_end(engine, data, at, is_text)?
        } else {
            lax_end(engine, data, at)?
        };
        Some(Span {
            start: at,
            len: end - at,
            escaped: false,
        })
    }

    /// Returns the slot of a line whose first gap ends at `at`. Input can provoke collisions, so the caller compares the template in the
    /// slot.
    #[inline(always)]
    fn slot(&self, data: &[u8], at: usize) -> usize {
        let Some(words) = self.words else {
            return 0;
        };
        let [one, other] = words.map(|offset| {
            let word = data.get(at + offset..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |&word| u64::from_le_bytes(word))
        });
        let hash = (one ^ other.rotate_left(32)).wrapping_mul(HASH_FACTOR);
        #[allow(clippy::cast_possible_truncation)] // The slot is below `SLOTS`.
        let slot = (hash >> (u64::BITS - SLOTS.trailing_zeros())) as usize;
        slot
    }
}

impl<T> Template<T> {
    fn second(&self) -> &[u8] {
        &self.constants[..self.lengths[0]]
    }

    fn layout(&self, fitting: Fitting) -> Layout {
        Layout {
            gap: fitting.gaps[1].len,
            lengths: self.lengths,
        }
    }

    /// Returns whether the line fits with `gap` as its second gap.
    #[inline(always)]
    fn fits_as<E: Engine>(
        &self,
        engine: E,
        data: &[u8],
        family: &Family,
        first: Span,
        gap: Span,
    ) -> bool {
        let layout = family.layout;
        if self.lengths != layout.lengths {
            return false;
        }
        let Some((second, third)) = self.constants.split_at_checked(layout.lengths[0]) else {
            return false;
        };
        if !engine.begins(data, first.end(), second) {
            return false;
        }
        if !self.two_gaps {
            return true;
        }
        let found = family.gap(engine, data, gap.start, !family.text_first);
        found == Some(gap) && engine.begins(data, gap.end(), third)
    }

    /// Compares the rest of a line, after its first gap, with the template.
    #[inline(always)]
    fn fit<E: Engine>(
        &self,
        engine: E,
        data: &[u8],
        family: &Family,
        first: Span,
    ) -> Option<Fitting> {
        let (second, third) = self.constants.split_at_checked(self.lengths[0])?;
        let mut at = first.end();
        if !engine.begins(data, at, second) {
            return None;
        }
        at += second.len();
        let mut gaps = [first, Span::default()];
        if self.two_gaps {
            gaps[1] = family.gap(engine, data, at, !family.text_first)?;
            at = gaps[1].end();
            if !engine.begins(data, at, third) {
                return None;
            }
            at += third.len();
        }
        Some(Fitting { end: at, gaps })
    }
}

/// Returns the index of the closing quote of the string whose contents begin at `at`; `None` if a control byte comes first.
#[inline(always)]
fn lax_end<E: Engine>(engine: E, data: &[u8], at: usize) -> Option<usize> {
    let mut end = engine.special(data, at);
    loop {
        match data.get(end)? {
            b'"' => return Some(end),
            b'\\' if data.get(end + 1).is_some_and(|&byte| byte >= 0x20) => {
                end = engine.special(data, end + 2);
            }
            _ => return None,
        }
    }
}

/// Does the same as [`lax_end`], but requires valid UTF-8 and valid escapes. If `escapes` is false, any escape is an error.
#[inline(always)]
fn strict_end<E: Engine>(engine: E, data: &[u8], at: usize, escapes: bool) -> Option<usize> {
    let (end, ascii) = if escapes {
        engine.valid_end(data, at)?
    } else {
        let (end, ascii) = engine.special_ascii(data, at);
        if data.get(end) != Some(&b'"') {
            return None;
        }
        (end, ascii)
    };
    (ascii || is_utf8(&data[at..end])).then_some(end)
}

#[cold]
#[inline(never)]
fn is_utf8(text: &[u8]) -> bool {
    // The validator uses vectors only for at least 64 bytes.
    let mut block = [0; 64];
    let text = match block.get_mut(..text.len()) {
        Some(begin) => {
            begin.copy_from_slice(text);
            &block
        }
        None => text,
    };
    simdutf8::basic::from_utf8(text).is_ok()
}

#[cfg(test)]
mod tests;
