//! Finds or guesses the class of a line from its first bytes.
//!
//! The basic idea is simple: the CLI writes the tags first, as in `{"type":"system","subtype":"init",…`. The reader then compares the tags
//! with the plan's tags. If a line begins with another key, as in `{"duration_ms":…,"type":"result"`, the reader guesses that it has the same
//! class as the most recent lines that began with this key. It checks the guess after reading the line. If the class changes too often after
//! a key, as after `{"parentUuid":`, the reader does not guess.

use super::memo::hash;
use super::plan::{Plan, Top};

/// The bytes before the type in a line that begins with its type.
const OPENING: &[u8] = b"{\"type\":\"";
const SUBTYPE: &[u8] = b"\",\"subtype\":\"";
const SLOTS: usize = 256;
const LAST: usize = 16;
/// The reader guesses a class only if it trusts the guess at least this much. Lines without a guess, and lines with a wrong guess, change
/// the trust: it grows by 1 for a line of this class, and falls by 2 for a line of another class.
const TRUST: u8 = 4;
/// The maximum trust.
const MAX_TRUST: u8 = 8;

/// The class of a line, determined by its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// The class with this index in [`Plan::tops`].
    Top(usize),
    /// The plan has no class for this type.
    UnknownType,
    /// The plan has classes for this type, but not for this subtype.
    UnknownSubtype,
    /// The caller must decode the line: the subtype is missing or is not a plain string, or the type is one of [`Plan::open_types`].
    Unclear,
}

/// The tags at the beginning of a line.
pub struct Tags<'a> {
    /// The type.
    pub tag: &'a [u8],
    /// The index after the type's closing quote.
    pub end: usize,
    /// The subtype, if it follows the type.
    pub subtype: Option<&'a [u8]>,
}

/// Returns the tags of the line at `at`, if the line begins with its type.
#[inline]
pub fn tags(data: &[u8], at: usize) -> Option<Tags<'_>> {
    let (tag, end) = string(data, at, OPENING)?;
    let subtype = string(data, end, SUBTYPE).map(|(subtype, _)| subtype);
    let end = end + 1;
    Some(Tags { tag, end, subtype })
}

/// Returns the string without escapes that follows `before`, and the index of its closing quote, if `before` is at `at`.
#[inline]
pub fn string<'a>(data: &'a [u8], at: usize, before: &[u8]) -> Option<(&'a [u8], usize)> {
    if !crate::simd::begins(data, at, before) {
        return None;
    }
    let start = at + before.len();
    let (end, _) = crate::simd::string_end(data, start);
    (data.get(end) == Some(&b'"')).then(|| (&data[start..end], end))
}

/// Remembers the first keys of lines that do not begin with their type.
pub struct Guesses {
    /// For each hash of a first key: the class to guess, as an index in [`Plan::tops`], and how much the reader trusts the guess.
    slots: Vec<(usize, u8)>,
    /// The index in [`Plan::tops`] of the last line with a type of this length, modulo [`LAST`].
    last: [usize; LAST],
}

impl Default for Guesses {
    fn default() -> Self {
        Self {
            slots: vec![(0, 0); SLOTS],
            last: [0; LAST],
        }
    }
}

impl Guesses {
    /// Returns the index in `slots` for the first key of the line at `at`.
    fn slot(data: &[u8], at: usize) -> usize {
        let start = at + 2;
        let (end, _) = crate::simd::string_end(data, start);
        let key = data.get(start..end).unwrap_or_default();
        let first = key.first().map_or(0, |&byte| usize::from(byte));
        let hash = hash((256 * key.len() + first) as u64, key);
        usize::try_from(hash % SLOTS as u64).unwrap_or(0)
    }

    /// Returns the class to guess for the line at `at`, as an index in [`Plan::tops`].
    pub fn guess(&self, data: &[u8], at: usize) -> Option<usize> {
        let (top, trust) = self.slots[Self::slot(data, at)];
        (trust >= TRUST).then_some(top)
    }

    /// Changes the trust after a line whose class was not guessed, or guessed wrongly.
    pub fn learn(&mut self, data: &[u8], at: usize, top: usize) {
        let (last, trust) = &mut self.slots[Self::slot(data, at)];
        if *last == top {
            *trust = (*trust + 1).min(MAX_TRUST);
        } else if *trust > 2 {
            *trust -= 2;
        } else {
            (*last, *trust) = (top, 1);
        }
    }

    /// Finds the class of a line by its tags. Calls `subtype` only for a type that has several subtypes.
    #[inline]
    pub fn meant<'a, V, C>(
        &mut self,
        plan: &Plan<V, C>,
        tag: &[u8],
        subtype: impl FnOnce() -> Option<&'a [u8]>,
    ) -> Meant {
        let last = &mut self.last[tag.len() % LAST];
        let Some(first) = plan.tops.get(*last) else {
            return Meant::UnknownType;
        };
        let first = if first.tag == tag {
            first
        } else {
            let Some(found) = plan.tops.iter().position(|top| top.tag == tag) else {
                return Meant::UnknownType;
            };
            *last = found;
            &plan.tops[found]
        };
        if first.subtype.is_none() {
            return Meant::Top(*last);
        }
        let Some(subtype) = subtype() else {
            return Meant::Unclear;
        };
        let of_it = |top: &Top| top.subtype.as_deref() == Some(subtype) && top.tag == tag;
        if of_it(first) {
            return Meant::Top(*last);
        }
        match plan.tops.iter().position(of_it) {
            Some(found) => {
                *last = found;
                Meant::Top(found)
            }
            None if plan.open_types.iter().any(|open| open == tag) => Meant::Unclear,
            None => Meant::UnknownSubtype,
        }
    }
}
