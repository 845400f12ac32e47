//! The plan of a reader: the classes, their keys, and the types of each value.
//!
//! A plan grows: a class is planned when a stream first has it. Until then it is [`Class::Unplanned`]: a line that needs it
//! falls through, and names it ([`Line::Wants`](super::Line::Wants)).

use crate::simd::Key;

/// The types that a value may have, as bits of `Kind::may_be`.
pub mod may_be {
    /// `null`.
    pub const NULL: u32 = 1;
    /// `true` and `false`.
    pub const BOOL: u32 = 1 << 1;
    /// A whole number.
    pub const INT: u32 = 1 << 2;
    /// A number; a whole one becomes a float, unless [`INT`] is set too.
    pub const FLOAT: u32 = 1 << 3;
    /// A string.
    pub const TEXT: u32 = 1 << 4;
    /// An array with items of [`Kind::item`](super::Kind::item).
    pub const LIST: u32 = 1 << 5;
    /// An object of any keys, with values of [`Kind::item`](super::Kind::item).
    pub const DICT: u32 = 1 << 6;
    /// An object of a class of [`Kind::classes`](super::Kind::classes).
    pub const RECORD: u32 = 1 << 7;
    /// One of the strings of [`Kind::words`](super::Kind::words).
    pub const WORD: u32 = 1 << 8;
    /// Anything.
    pub const ANY: u32 = 1 << 9;
}

/// An index in [`Plan::classes`].
pub type ClassId = usize;
/// An index in [`Plan::kinds`].
pub type KindId = usize;
/// An index in [`Plan::fields`].
pub type FieldId = usize;

/// What a value may be: of a field, or of an item of a list or dict.
pub struct Kind<V> {
    /// A sum of [`may_be`].
    pub may_be: u32,
    /// The kind of the items of a list or the values of a dict.
    pub item: KindId,
    /// The classes of an object. If there are several, its tag tells them apart.
    pub classes: Vec<Member>,
    /// The key of the tag.
    pub tag_key: Vec<u8>,
    /// The allowed strings, with their objects.
    pub words: Vec<(Vec<u8>, V)>,
    /// The class and the reason for an object of an unknown tag. Without them the line falls through.
    pub unknown: Option<(V, V)>,
}

/// One of the classes that an object may have.
pub struct Member {
    /// The class.
    pub class: ClassId,
    /// The value of its tag.
    pub tag: Vec<u8>,
    /// The usual beginning of such an object: `{"type":"text"`.
    pub opening: Vec<u8>,
}

/// A key of a class.
pub struct Field<V> {
    /// The key.
    pub key: Key,
    /// The kind of its value; `None` for the tag, whose value must be that of the class.
    pub kind: Option<KindId>,
    /// The slot of the value in a record.
    pub slot: usize,
    /// The value for an absent key. Without one the line falls through.
    pub default: Option<V>,
}

/// A class of records.
pub enum Class<C> {
    /// Not planned yet.
    Unplanned,
    /// Lines with it always fall through.
    Refused,
    /// Records of it can be made.
    Planned(Shape<C>),
}

/// The fields of a class.
pub struct Shape<C> {
    /// The class, for the builder.
    pub class: C,
    /// The range of its keys in [`Plan::fields`]. At most 128; the tag is the last, if there is one.
    pub fields: std::ops::Range<FieldId>,
    /// The value of the tag.
    pub tag: Vec<u8>,
    /// The slot for a dict of the keys that are no fields, or null. Without such a slot, a line with such a key falls through.
    pub extra: Option<usize>,
}

/// The class of the lines with a type, and perhaps a subtype.
pub struct Top {
    /// The value of `type`.
    pub tag: Vec<u8>,
    /// The value of `subtype`, if the type has several classes.
    pub subtype: Option<Vec<u8>>,
    /// Its class.
    pub class: ClassId,
}

/// A plan.
pub struct Plan<V, C> {
    /// The classes of records.
    pub classes: Vec<Class<C>>,
    /// The kinds of values. The first is [`ANY`].
    pub kinds: Vec<Kind<V>>,
    /// The fields of all classes.
    pub fields: Vec<Field<V>>,
    /// The classes of lines. If empty, each line becomes a dict.
    pub tops: Vec<Top>,
    /// Types with a class for all other subtypes. This pass does not know that class.
    pub open_types: Vec<Vec<u8>>,
    /// The class and the reasons for a line of an unknown type, and of an unknown subtype.
    pub unknown: Option<(V, V, V)>,
}

/// The kind that allows anything.
pub const ANY: KindId = 0;

impl<V, C> Default for Plan<V, C> {
    fn default() -> Self {
        let any = Kind {
            may_be: may_be::ANY,
            item: ANY,
            classes: Vec::new(),
            tag_key: Vec::new(),
            words: Vec::new(),
            unknown: None,
        };
        Self {
            classes: Vec::new(),
            kinds: vec![any],
            fields: Vec::new(),
            tops: Vec::new(),
            open_types: Vec::new(),
            unknown: None,
        }
    }
}

impl<V, C> Plan<V, C> {
    /// The field of a class that has this key.
    pub(super) fn find(&self, shape: &Shape<C>, key: &[u8]) -> Option<FieldId> {
        shape
            .fields
            .clone()
            .find(|&id| self.fields[id].key.name() == key)
    }
}
