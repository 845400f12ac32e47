//! Finds or guesses the class of a line from its first bytes.
//!
//! The basic idea is simple: the CLI writes the tags first, as in `{"type":"system","subtype":"init",…`. The reader then compares the tags
//! with the plan's tags. If a line begins with another key, as in `{"parentUuid":…,"type":"user"`, the reader guesses that it has the same
//! class as the last line with the same first [`HEAD`] bytes. It checks the guess after reading the line.

use super::memo::hash;
use super::plan::{Plan, Top};

/// The bytes before the type in a line that begins with its type.
const OPENING: &[u8] = b"{\"type\":\"";
const SUBTYPE: &[u8] = b"\",\"subtype\":\"";
const SLOTS: usize = 256;
const LAST: usize = 16;
/// How many bytes at the beginning of a line are hashed if the line does not begin with its type.
const HEAD: usize = 24;

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
    /// The subtype, if it follows the type.
    pub subtype: Option<&'a [u8]>,
}

/// Returns the tags of the line at `at`, if the line begins with its type.
#[inline]
pub fn tags(data: &[u8], at: usize) -> Option<Tags<'_>> {
    let (tag, end) = string(data, at, OPENING)?;
    let subtype = string(data, end, SUBTYPE).map(|(subtype, _)| subtype);
    Some(Tags { tag, subtype })
}

#[inline]
fn string<'a>(data: &'a [u8], at: usize, before: &[u8]) -> Option<(&'a [u8], usize)> {
    if !crate::simd::begins(data, at, before) {
        return None;
    }
    let start = at + before.len();
    let (end, _) = crate::simd::string_end(data, start);
    (data.get(end) == Some(&b'"')).then(|| (&data[start..end], end))
}

/// Remembers the first bytes of lines that do not begin with their type.
pub struct Guesses {
    /// The index in [`Plan::tops`] of the last line with these first bytes. A slot is a hash of the bytes.
    slots: Vec<Option<usize>>,
    /// The index in [`Plan::tops`] of the last line with a type of this length, modulo [`LAST`].
    last: [usize; LAST],
}

impl Default for Guesses {
    fn default() -> Self {
        Self {
            slots: vec![None; SLOTS],
            last: [0; LAST],
        }
    }
}

impl Guesses {
    fn slot(data: &[u8], at: usize) -> Option<usize> {
        let head = data.get(at..at + HEAD)?;
        usize::try_from(hash(0, head) % SLOTS as u64).ok()
    }

    /// Returns the index in [`Plan::tops`] of the last line with the same hash of its first bytes.
    pub fn guess(&self, data: &[u8], at: usize) -> Option<usize> {
        self.slots[Self::slot(data, at)?]
    }

    /// Remembers the class of lines that start with these bytes.
    pub fn learn(&mut self, data: &[u8], at: usize, top: usize) {
        if let Some(slot) = Self::slot(data, at) {
            self.slots[slot] = Some(top);
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
