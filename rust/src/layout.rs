//! Layouts: what recent lines had in common, so that a line like one of them is recognised without a scan.
//!
//! Most lines of a stream are like one that came shortly before: the same keys in the same order, the same session, another
//! text and another uuid. A layout is such a line without the contents of these two strings: *constants*, and *gaps*
//! between them. A line *fits* if it begins with the first constant; if from there on the first byte that may end a string
//! (`"`, `\`, a control byte), escapes passed over, is a quote; if the second constant follows; and so on up to the last
//! constant, whose last byte is the LF.
//!
//! # Why that is sound
//!
//! Claim: if a line fits a layout, then a scan of it makes the same moves as a scan of the line that the layout is of, finds the
//! same tags, and ends at the same LF.
//!
//! Proof. A scan is a function of the bytes before it, from left to right. Up to the first gap these are the same in both
//! lines, so at the gap both scans are within a string that is a value and no tag (gaps are nothing else). There a scan looks for the next
//! quote that is not escaped, or an LF, and so does the fit; the gap ends there in both lines, and neither has met an LF. What stood in the
//! gap is not looked at again: it is no key and no tag. From the closing quote on both scans are in the same state again, and
//! the next constant is the same bytes. The last constant ends with the LF where the first line ended; constants hold no other. So
//! the two lines are of the same kind, and both are clear. ∎
//!
//! A *strict* fit also wants of each gap valid escapes, no control byte, and UTF-8. A line that fits strictly is
//! mergeable ([`delta`](crate::delta)) if the layout's is: what is checked there beyond its gaps is the same bytes. For
//! this the gaps must be its text and its uuid, and the uuid is without backslash. Constants end and begin at quotes, so
//! they are UTF-8 by themselves.
//!
//! A line that does not fit is scanned. So layouts change what a line costs, never what it is.
//!
//! # Which layouts there are
//!
//! The last few, up to [`MOST`]. Each remembers which came after it the last time, and that one is tried first: streams of
//! several sessions take turns. The one whose last use is the longest ago makes room for a new one.

use crate::delta::escape_len;
use crate::scan::Span;
use crate::simd::Engine;

/// Most layouts that are kept.
pub const MOST: usize = 8;
/// Most bytes that the constants of a layout may have.
pub const MOST_BYTES: usize = 1024;
/// Bytes behind the constants that may be read and do not count.
const PADDING: usize = 32;

/// A line that fits: where it ends, and what stands in its gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitting {
    /// Which layout, see [`Layouts::of`].
    pub index: usize,
    /// Behind its LF.
    pub end: usize,
    /// The contents of the gaps, in their order; those that there are.
    pub gaps: [Span; 2],
}

/// A few layouts, each with what its user wants to know of its lines.
#[derive(Debug)]
pub struct Layouts<T> {
    layouts: Vec<Layout<T>>,
    /// The layout of the last line.
    last: usize,
    clock: u64,
}

#[derive(Debug)]
struct Layout<T> {
    /// All constants, one after another, and the padding.
    constants: Vec<u8>,
    /// Length of each constant.
    lengths: [usize; 3],
    gaps: usize,
    /// Which gap is the text.
    text: usize,
    /// The layout that followed.
    next: usize,
    used: u64,
    known: T,
}

impl<T> Default for Layouts<T> {
    fn default() -> Self {
        Self {
            layouts: Vec::new(),
            last: 0,
            clock: 0,
        }
    }
}

/// The gaps of a line, in their order: text and uuid, as far as there are.
#[inline]
#[must_use]
pub fn in_order(text: Option<Span>, uuid: Option<Span>) -> [Option<Span>; 2] {
    match (text, uuid) {
        (Some(one), Some(other)) if other.start < one.start => [uuid, text],
        (None, _) => [uuid, None],
        _ => [text, uuid],
    }
}

impl<T> Layouts<T> {
    /// What is known of the lines of layout `index`.
    #[inline]
    pub fn of(&mut self, index: usize) -> &mut T {
        &mut self.layouts[index].known
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.layouts.clear();
    }

    /// The layout that the line at `from` fits. `strict` says of which layouts a strict fit is wanted.
    #[inline(always)]
    pub fn find<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        from: usize,
        strict: impl Fn(&T) -> bool,
    ) -> Option<Fitting> {
        let first = self.layouts.get(self.last)?.next;
        let layout = &self.layouts[first];
        if let Some((end, gaps)) = layout.fit(engine, data, from, strict(&layout.known)) {
            self.last = first;
            return Some(Fitting {
                index: first,
                end,
                gaps,
            });
        }
        self.find_other(engine, data, from, strict, first)
    }

    #[inline(always)]
    fn find_other<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        from: usize,
        strict: impl Fn(&T) -> bool,
        tried: usize,
    ) -> Option<Fitting> {
        for index in (0..self.layouts.len()).filter(|&index| index != tried) {
            let layout = &self.layouts[index];
            if let Some((end, gaps)) = layout.fit(engine, data, from, strict(&layout.known)) {
                self.follow(index);
                return Some(Fitting { index, end, gaps });
            }
        }
        None
    }

    /// Notes that `index` came after the last.
    fn follow(&mut self, index: usize) {
        self.clock += 1;
        self.layouts[self.last].next = index;
        self.layouts[self.last].used = self.clock;
        self.layouts[index].used = self.clock;
        self.last = index;
    }

    /// Makes a layout of a line that was scanned, `data[from..end]` with its LF, and returns its index. None is made if it would
    /// be too long, or memory cannot be had.
    pub fn add(
        &mut self,
        data: &[u8],
        from: usize,
        end: usize,
        text: Option<Span>,
        uuid: Option<Span>,
        known: T,
    ) -> Option<usize> {
        let gaps = in_order(text, uuid);
        let gap_bytes: usize = gaps.iter().flatten().map(|gap| gap.len).sum();
        let bytes = end - from - gap_bytes;
        if bytes > MOST_BYTES {
            return None;
        }
        let index = if self.layouts.len() < MOST {
            self.layouts.try_reserve_exact(MOST).ok()?;
            self.layouts.len()
        } else {
            (0..MOST).min_by_key(|&index| self.layouts[index].used)?
        };
        let mut constants = Vec::new();
        if let Some(old) = self.layouts.get_mut(index) {
            std::mem::swap(&mut constants, &mut old.constants);
        }
        constants.clear();
        constants.try_reserve_exact(MOST_BYTES + PADDING).ok()?;
        let mut lengths = [0; 3];
        let mut count = 0;
        let mut at = from;
        for gap in gaps.into_iter().flatten() {
            constants.extend_from_slice(&data[at..gap.start]);
            lengths[count] = gap.start - at;
            at = gap.start + gap.len;
            count += 1;
        }
        constants.extend_from_slice(&data[at..end]);
        lengths[count] = end - at;
        constants.extend_from_slice(&[0; PADDING]);
        let layout = Layout {
            constants,
            lengths,
            gaps: count,
            text: usize::from(text.is_none() || gaps[0] != text),
            next: index,
            used: 0,
            known,
        };
        match self.layouts.get_mut(index) {
            Some(old) => *old = layout,
            None => self.layouts.push(layout),
        }
        self.follow(index);
        Some(index)
    }
}

impl<T> Layout<T> {
    #[inline(always)]
    fn fit<E: Engine>(
        &self,
        engine: E,
        data: &[u8],
        from: usize,
        strict: bool,
    ) -> Option<(usize, [Span; 2])> {
        let mut gaps = [Span::default(); 2];
        let mut constants = &self.constants[..];
        let mut at = from;
        for count in 0.. {
            let length = self.lengths[count];
            if !engine.begins(data, at, constants, length) {
                return None;
            }
            at += length;
            if count == self.gaps {
                break;
            }
            constants = &constants[length..];
            let end = if strict {
                strict_end(engine, data, at, count == self.text)?
            } else {
                lax_end(engine, data, at)?
            };
            gaps[count] = Span {
                start: at,
                len: end - at,
                escaped: false,
            };
            at = end;
        }
        Some((at, gaps))
    }
}

/// The closing quote of the string whose contents begin at `at`, unless there is a control byte before it.
#[inline(always)]
fn lax_end<E: Engine>(engine: E, data: &[u8], at: usize) -> Option<usize> {
    let mut end = engine.special(data, at);
    while data.get(end) == Some(&b'\\') {
        if data.get(end + 1).is_none_or(|&byte| byte < 0x20) {
            return None;
        }
        end = engine.special(data, end + 2);
    }
    (data.get(end) == Some(&b'"')).then_some(end)
}

/// As [`lax_end`], if the contents are UTF-8 and the escapes valid, or none if there may be no `escapes`.
#[inline(always)]
fn strict_end<E: Engine>(engine: E, data: &[u8], at: usize, escapes: bool) -> Option<usize> {
    let (mut end, mut ascii) = engine.special_ascii(data, at);
    while data.get(end) == Some(&b'\\') {
        end += escape_len(data, end).filter(|_| escapes)?;
        let (next, rest) = engine.special_ascii(data, end);
        (end, ascii) = (next, ascii && rest);
    }
    if data.get(end) != Some(&b'"') || !(ascii || is_utf8(&data[at..end])) {
        return None;
    }
    Some(end)
}

#[cold]
fn is_utf8(text: &[u8]) -> bool {
    simdutf8::basic::from_utf8(text).is_ok()
}
