//! Guesses the class of a line from its first bytes.

use super::plan::{Plan, Top};

/// How a line begins whose type comes first.
const OPENING: &[u8] = b"{\"type\":\"";
const SUBTYPE: &[u8] = b"\",\"subtype\":\"";
const SLOTS: usize = 256;
const LAST: usize = 16;
/// The first bytes that are hashed of a line whose type does not come first.
const HEAD: usize = 24;

/// What the tags of a line mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// A line of this index in [`Plan::tops`].
    Top(usize),
    /// No class has this type.
    UnknownType,
    /// No class has this subtype of its type.
    UnknownSubtype,
    /// The slow way must decide.
    Unclear,
}

/// The tags with which a line begins.
pub struct Tags<'a> {
    /// The type.
    pub tag: &'a [u8],
    /// The subtype, if it comes next.
    pub subtype: Option<&'a [u8]>,
}

/// The tags of a line, if it begins with its type.
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
    /// By a hash of the first bytes: an index in [`Plan::tops`].
    slots: Vec<Option<usize>>,
    /// By the length of a type: the index in [`Plan::tops`] of the last line with such a type.
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
        let hash = head.chunks_exact(8).fold(0u64, |hash, part| {
            let part = u64::from_le_bytes(part.try_into().unwrap_or_default());
            let hash = (hash ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^ hash >> 29
        });
        usize::try_from(hash % SLOTS as u64).ok()
    }

    /// The index in [`Plan::tops`] of the last line that began like this.
    pub fn guess(&self, data: &[u8], at: usize) -> Option<usize> {
        self.slots[Self::slot(data, at)?]
    }

    /// Remembers the class of lines that start with these bytes.
    pub fn learn(&mut self, data: &[u8], at: usize, top: usize) {
        if let Some(slot) = Self::slot(data, at) {
            self.slots[slot] = Some(top);
        }
    }

    /// What the tags of a line mean. Calls `subtype` only for a type that has several subtypes.
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
