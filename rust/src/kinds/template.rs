//! Templates recognise a line that is like a recent one, without a scan.
//!
//! Most lines of a stream are like a recent one: the same keys in the same order, the same session, another text and another uuid.
//! A template is such a line without the contents of these two strings: *constants*, with *gaps* between them. A line *fits* if
//! it begins with the first constant; if after that the first byte that may end a string (`"` or a control byte, with escapes
//! skipped) is a quote; if the second constant follows; and so on up to the last constant, whose last byte is the LF.
//!
//! # Why this is sound
//!
//! Claim: if a line fits a template, then a scan of it takes the same steps as a scan of the template's line, finds the same tags,
//! and ends at the corresponding LF.
//!
//! Proof. The state of a scan depends only on the bytes so far, from left to right. Up to the first gap these are the same in both
//! lines, so at the gap both scans are within a string that is a value and no tag (a gap is nothing else). There a scan looks for the
//! next unescaped quote, or an LF, and so does the fit; the gap ends there in both lines, and neither has an LF in it. The scan does
//! not use the contents of the gap: they are no key and no tag. From the closing quote on both scans are in the same state again, and
//! the next constant is the same bytes. The last constant ends with the LF of the template's line; constants have no other LF. So the
//! two lines have the same kind, and both are clear. ∎
//!
//! A *strict* fit also requires that each gap has valid escapes, no control byte, and valid UTF-8. A line that fits strictly is
//! mergeable ([`delta`](crate::filter::delta)) if the template's line is: outside of the gaps, the check sees the same bytes. For
//! this the gaps must be the text and the uuid, and the uuid must have no backslash. Constants begin and end at quotes, so
//! each is valid UTF-8 by itself.
//!
//! A line that does not fit is scanned. So templates change the cost of a line, never the result.
//!
//! # Which templates there are
//!
//! Up to [`MAX`] templates are kept, of lines with a text or a uuid. Each remembers which template followed it last time. That one
//! is tried first, as the sessions in a stream often take turns. Next comes the template of the previous line, then a few that were
//! used recently, since turns may have any order. If none fits, the line is scanned, and its template is looked up by a hash of the
//! constants. A new template replaces the one that was not used for the longest time. Making one costs about as much as the scan;
//! where hardly any line fits, only one line in eight gets a template.

// The operations are inlined into one function per engine: vector instructions may be used only there.
#![allow(clippy::inline_always)]

use crate::kinds::scan::Scan;
use crate::kinds::string::Span;
use crate::simd::{escape_len, Engine};

/// The most templates.
pub const MAX: usize = 32;
/// Number of recently used templates to try.
const RECENT: usize = 4;
/// The most bytes of a template's constants.
pub const MAX_BYTES: usize = 768;
/// The cost of making a template, in lines that fit.
const COST: u32 = 8;
const MAX_BALANCE: u32 = 512;

/// The text and the uuid of a line, if it has these strings. They may differ among the lines of a template.
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
    /// The index after its LF.
    pub end: usize,
    /// The contents of its gaps, in order; empty spans for gaps that the template does not have. `escaped` is not set.
    pub gaps: [Span; 2],
}

/// Handles lines that fit. A trait instead of a closure, for `#[inline(always)]`.
pub trait Visit<T> {
    /// Takes the line at `from`, which fits a template with this `known`. Returns false if it does not take the line.
    fn visit(&mut self, known: &mut T, from: usize, fitting: Fitting) -> bool;
}

/// Templates, each with a value `K` that the user of the module attaches to its lines.
#[derive(Debug)]
pub struct Templates<T> {
    all: Vec<Template<T>>,
    /// Their hashes.
    hashes: [u64; MAX],
    /// The template of the last line.
    last: usize,
    /// The templates last found by [`guess`](Self::guess) or a look-up, or made; the newest first.
    recent: [usize; RECENT],
    clock: u64,
    /// Rises with each line that fits, falls with each new template: where templates do not pay, few are made.
    balance: u32,
}

#[derive(Debug)]
struct Template<T> {
    /// All constants, one after another.
    constants: Vec<u8>,
    /// Length of each constant.
    lengths: [usize; 3],
    two_gaps: bool,
    /// The index of the gap that is the text.
    text: usize,
    /// Whether a strict fit is required.
    strict: bool,
    /// The template that followed last time.
    next: usize,
    used: u64,
    known: T,
}

impl<T> Default for Templates<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            hashes: [0; MAX],
            last: 0,
            recent: [0; RECENT],
            clock: 0,
            balance: MAX_BALANCE,
        }
    }
}

impl Gaps {
    /// The gaps of a scanned line.
    #[inline]
    #[must_use]
    pub fn of(found: &Scan) -> Self {
        Self {
            text: found.text,
            uuid: found.uuid,
        }
    }

    /// In the order of the line.
    #[inline]
    fn in_order(self) -> [Option<Span>; 2] {
        match (self.text, self.uuid) {
            (Some(text), Some(uuid)) if uuid.start < text.start => [self.uuid, self.text],
            (None, _) => [self.uuid, None],
            _ => [self.text, self.uuid],
        }
    }

    /// True without any gap.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.text.is_none() && self.uuid.is_none()
    }
}

/// A quick hash of `bytes`. Input can provoke collisions, so a hit is compared.
#[inline]
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    hash(bytes, 0, bytes.len(), [None; 2])
}

/// A hash of the line `data[from..end]` without its gaps.
#[inline]
fn hash(data: &[u8], from: usize, end: usize, gaps: [Option<Span>; 2]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = 0_u64;
    let mut factor = FACTOR;
    let mut add = |part: &[u8]| {
        let mut mix = |word: u64| {
            // The multiplications are independent of each other.
            sum = sum.wrapping_add((word ^ word >> 29).wrapping_mul(factor));
            factor = factor.wrapping_add(FACTOR << 1);
        };
        let words = part.chunks_exact(8);
        let rest = words.remainder();
        for word in words {
            if let Some(&word) = word.first_chunk() {
                mix(u64::from_le_bytes(word));
            }
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        mix(u64::from_le_bytes(last));
    };
    let mut at = from;
    for gap in gaps.into_iter().flatten() {
        add(&data[at..gap.start]);
        at = gap.start + gap.len;
    }
    add(&data[at..end]);
    sum
}

impl<T> Templates<T> {
    /// The value attached to template `index`.
    #[inline]
    pub fn of(&mut self, index: usize) -> &mut T {
        &mut self.all[index].known
    }

    /// The values attached to all templates.
    pub fn all_known(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|template| &template.known)
    }

    /// Bytes of memory held, without those of the attached values.
    #[must_use]
    pub fn held(&self) -> usize {
        let constants = self
            .all
            .iter()
            .map(|template| template.constants.capacity());
        self.all.capacity() * size_of::<Template<T>>() + constants.sum::<usize>()
    }

    /// Removes all templates.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Passes lines to `visitor` from `from` on, as long as each fits the expected template and `visitor` takes it. Returns where the
    /// first other line begins.
    #[inline(always)]
    pub fn take_fitting<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        from: usize,
        mut visitor: impl Visit<T>,
    ) -> usize {
        let mut at = from;
        let Some(mut last) = self.all.get(self.last) else {
            return at;
        };
        loop {
            let index = last.next;
            let template = &mut self.all[index];
            let Some(fitting) = template.fit(engine, data, at) else {
                break;
            };
            if !visitor.visit(&mut template.known, at, fitting) {
                break;
            }
            template.used = self.clock;
            self.balance = (self.balance + COST).min(MAX_BALANCE);
            at = fitting.end;
            self.last = index;
            last = &self.all[index];
        }
        at
    }

    /// The first of the likely templates that the line at `from` fits.
    #[inline(always)]
    pub fn guess<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        from: usize,
    ) -> Option<(usize, Fitting)> {
        let next = self.all.get(self.last)?.next;
        let [first, second, third, fourth] = self.recent;
        let mut tried = [MAX; 6];
        for (at, index) in [next, self.last, first, second, third, fourth]
            .into_iter()
            .enumerate()
        {
            if tried.contains(&index) {
                continue;
            }
            tried[at] = index;
            if let Some(fitting) = self.all[index].fit(engine, data, from) {
                self.follow(index);
                return Some((index, fitting));
            }
        }
        None
    }

    /// The template that the line `data[from..end]` fits. It includes its LF, and its scan has found these gaps.
    #[inline(always)]
    pub fn look_up<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        from: usize,
        end: usize,
        gaps: Gaps,
    ) -> Option<(usize, Fitting)> {
        if gaps.is_empty() {
            return None;
        }
        self.balance = (self.balance + 1).min(MAX_BALANCE);
        if self.all.is_empty() || self.balance <= 2 * COST {
            return None;
        }
        let hash = hash(data, from, end, gaps.in_order());
        let index = self.hashes[..self.all.len()]
            .iter()
            .position(|&known| known == hash)?;
        let fitting = self.all[index].fit(engine, data, from)?;
        self.follow(index);
        Some((index, fitting))
    }

    /// Notes that a line of template `index` came next.
    fn follow(&mut self, index: usize) {
        self.clock += 1;
        self.balance = (self.balance + COST).min(MAX_BALANCE);
        self.all[self.last].next = index;
        self.all[index].used = self.clock;
        self.last = index;
        let place = self.recent.iter().position(|&recent| recent == index);
        self.recent[..=place.unwrap_or(RECENT - 1)].rotate_right(1);
        self.recent[0] = index;
    }

    /// Makes a template of the scanned, clear line `data[from..end]`, with its LF, and returns its index. `None` if it would be too
    /// long, without gaps, and without memory.
    pub fn add(
        &mut self,
        data: &[u8],
        from: usize,
        end: usize,
        gaps: Gaps,
        strict: bool,
        known: T,
    ) -> Option<usize> {
        let ordered = gaps.in_order();
        let gap_bytes: usize = ordered.iter().flatten().map(|gap| gap.len).sum();
        let bytes = end - from - gap_bytes;
        if bytes > MAX_BYTES || gaps.is_empty() || self.balance <= 2 * COST {
            return None;
        }
        // Twice: also for the call of `follow` below.
        self.balance -= 2 * COST;
        let hash = hash(data, from, end, ordered);
        let same = self.hashes[..self.all.len()]
            .iter()
            .position(|&known| known == hash);
        let index = if let Some(index) = same {
            // It has the same constants, but the line did not fit: a gap may have a control byte.
            index
        } else if self.all.len() < MAX {
            self.all.try_reserve(1).ok()?;
            self.all.len()
        } else {
            (0..MAX).min_by_key(|&index| self.all[index].used)?
        };
        let old = self.all.get_mut(index);
        let mut constants = old.map_or_else(Vec::new, |old| std::mem::take(&mut old.constants));
        constants.clear();
        let reserved = constants.try_reserve_exact(bytes);
        let mut lengths = [0; 3];
        let mut count = 0;
        if reserved.is_ok() {
            let mut at = from;
            for gap in ordered.into_iter().flatten() {
                constants.extend_from_slice(&data[at..gap.start]);
                lengths[count] = gap.start - at;
                at = gap.start + gap.len;
                count += 1;
            }
            constants.extend_from_slice(&data[at..end]);
            lengths[count] = end - at;
        }
        let template = Template {
            constants,
            lengths,
            two_gaps: count == 2,
            text: usize::from(ordered[0] != gaps.text),
            strict,
            next: index,
            used: 0,
            known,
        };
        match self.all.get_mut(index) {
            Some(old) => *old = template,
            None => self.all.push(template),
        }
        if reserved.is_err() {
            // The template at this index has no constants now: every line would fit it.
            self.clear();
            return None;
        }
        self.hashes[index] = hash;
        self.follow(index);
        Some(index)
    }
}

impl<T> Template<T> {
    #[inline(always)]
    fn fit<E: Engine>(&self, engine: E, data: &[u8], from: usize) -> Option<Fitting> {
        let mut gaps = [Span::default(); 2];
        let [first, second, third] = self.lengths;
        let (constant, constants) = self.constants.split_at_checked(first)?;
        if !engine.begins(data, from, constant) {
            return None;
        }
        gaps[0] = self.gap(engine, data, from + first, self.text == 0)?;
        let at = gaps[0].start + gaps[0].len;
        let (constant, constants) = constants.split_at_checked(second)?;
        if !engine.begins(data, at, constant) {
            return None;
        }
        if !self.two_gaps {
            return Some(Fitting {
                end: at + second,
                gaps,
            });
        }
        gaps[1] = self.gap(engine, data, at + second, self.text == 1)?;
        let at = gaps[1].start + gaps[1].len;
        if !engine.begins(data, at, constants) {
            return None;
        }
        Some(Fitting {
            end: at + third,
            gaps,
        })
    }

    /// The contents of the gap that begins at `at`.
    #[inline(always)]
    fn gap<E: Engine>(&self, engine: E, data: &[u8], at: usize, text: bool) -> Option<Span> {
        let end = if self.strict {
            strict_end(engine, data, at, text)?
        } else {
            lax_end(engine, data, at)?
        };
        Some(Span {
            start: at,
            len: end - at,
            escaped: false,
        })
    }
}

/// The index of the closing quote of the string whose contents begin at `at`; `None` if a control byte comes first.
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

/// As [`lax_end`], for contents that are UTF-8 with valid escapes; without any escapes unless `escapes`.
#[inline(always)]
fn strict_end<E: Engine>(engine: E, data: &[u8], at: usize, escapes: bool) -> Option<usize> {
    let (mut end, mut ascii) = engine.special_ascii(data, at);
    loop {
        match data.get(end)? {
            b'"' if ascii || is_utf8(&data[at..end]) => return Some(end),
            b'\\' if escapes => {
                let (next, rest) = engine.special_ascii(data, end + escape_len(data, end)?);
                (end, ascii) = (next, ascii && rest);
            }
            _ => return None,
        }
    }
}

#[cold]
#[inline(never)]
fn is_utf8(text: &[u8]) -> bool {
    // Fewer bytes than these are not checked by vectors.
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
