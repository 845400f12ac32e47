//! The plan of a reader: the classes, their keys, and the types of each value.
//!
//! The basic idea is simple: for `{"type":"result","num_turns":3}`, the plan says that the type `result` has a class, that this class has a
//! key `num_turns`, that the key's value is an integer, and which slot of the record the value belongs in.
//!
//! A plan grows: Python adds the fields of a class when a stream has its first line with the class. Until then the class is
//! [`Class::Unplanned`]. The reader does not read a line of such a class, but returns [`Line::Wants`](super::Line::Wants) with the class.
//!
//! One part of a [`Field`] is not planned: the reader learns from the lines which field follows.

use crate::simd::Key;

/// The types that a value may have, as bits of `Kind::may_be`.
pub mod may_be {
    /// `null`.
    pub const NULL: u32 = 1;
    /// `true` and `false`.
    pub const BOOL: u32 = 1 << 1;
    /// A whole number.
    pub const INT: u32 = 1 << 2;
    /// A number. A whole number becomes a float, unless [`INT`] is also set.
    pub const FLOAT: u32 = 1 << 3;
    /// A string.
    pub const TEXT: u32 = 1 << 4;
    /// An array whose items have the kind [`Kind::item`](super::Kind::item).
    pub const LIST: u32 = 1 << 5;
    /// An object with any keys, whose values have the kind [`Kind::item`](super::Kind::item).
    pub const DICT: u32 = 1 << 6;
    /// An object of a class in [`Kind::classes`](super::Kind::classes).
    pub const RECORD: u32 = 1 << 7;
    /// One of the strings in [`Kind::words`](super::Kind::words).
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

/// The types that the value of a field, or an item of a list or dict, may have.
pub struct Kind<V> {
    /// A sum of [`may_be`].
    pub may_be: u32,
    /// The kind of a list's items or a dict's values.
    pub item: KindId,
    /// The classes that an object may have. If there are several, the value of the key [`tag_key`](Self::tag_key) decides.
    pub classes: Vec<Member>,
    /// The key of the tag.
    pub tag_key: Vec<u8>,
    /// The allowed strings, with their objects.
    pub words: Vec<(Vec<u8>, V)>,
    /// The class for objects with an unknown tag, and the reason to store in them. If `None`, the line falls through.
    pub unknown: Option<(V, V)>,
}

/// One of the classes that an object may have.
pub struct Member {
    /// The class.
    pub class: ClassId,
    /// The value of its tag.
    pub tag: Vec<u8>,
    /// The usual first bytes of such an object, such as `{"type":"text"`. Always ends with the tag and its closing quote.
    pub opening: Vec<u8>,
}

/// A key of a class, and what the reader needs for each value of it. The reader looks at a field for each key of a line, so a field is in
/// one line of the processor's cache.
#[repr(align(64))]
pub struct Field {
    /// The key.
    pub key: Key,
    kind: u32,
    slot: u32,
    /// The field that last followed this field in a record, or [`NO_FIELD`].
    pub(super) next: u32,
    /// The [`Kind::may_be`] of its kind; 0 for the tag, and until [`Reader::change_plan`](super::Reader::change_plan) sets it.
    pub(super) may_be: u32,
}

const _: () = assert!(size_of::<Field>() == 64);

/// The `kind` of a tag.
const NO_KIND: u32 = u32::MAX;
/// Marks that no following field is known. No plan has so many fields.
pub(super) const NO_FIELD: u32 = u32::MAX;

impl Field {
    /// A field with values of a kind, or the tag if `kind` is `None`: its value must be [`Shape::tag`]. `slot` is the slot of the value in a
    /// record.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // No plan has 2^32 kinds, and no record 2^32 slots.
    pub fn new(key: Key, kind: Option<KindId>, slot: usize) -> Self {
        Self {
            key,
            kind: kind.map_or(NO_KIND, |kind| kind as u32),
            slot: slot as u32,
            next: NO_FIELD,
            may_be: 0,
        }
    }

    /// Returns the kind of the field's value, or `None` if the field is the tag.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Option<KindId> {
        (self.kind != NO_KIND).then_some(self.kind as usize)
    }

    /// Returns the slot of the value in a record.
    #[inline]
    #[must_use]
    pub fn slot(&self) -> usize {
        self.slot as usize
    }
}

/// A class of records.
pub enum Class<C> {
    /// The plan does not have the fields of this class yet.
    Unplanned,
    /// The reader cannot make records of this class: a line with such a record always falls through.
    Refused,
    /// The reader can make records of this class.
    Planned(Shape<C>),
}

/// The maximum number of a class's fields. The reader has a bit for each field.
pub const MAX_FIELDS: usize = 127;
/// The index of the bit for [`Shape::extra`]. It follows the bits of the fields.
pub const EXTRA: usize = MAX_FIELDS;

/// The fields of a class.
pub struct Shape<C> {
    /// The class, for the builder.
    pub class: C,
    /// The range of its fields in [`Plan::fields`]: at most [`MAX_FIELDS`]. If the class has a tag, the tag is the last field.
    pub fields: std::ops::Range<FieldId>,
    /// A bit for each field without a default; bit 0 is the first field. A line without one of these keys falls through.
    pub required: u128,
    /// The value of the tag.
    pub tag: Vec<u8>,
    /// The slot for a dict with the keys that are not fields. If `None`, a line with an unknown key falls through.
    pub extra: Option<usize>,
}

/// The class of the lines with a certain type, or with a certain type and subtype.
pub struct Top {
    /// The value of `type`.
    pub tag: Vec<u8>,
    /// The value of `subtype`, if the type has several classes.
    pub subtype: Option<Vec<u8>>,
    /// Its class. If the class has a tag, the tag is the type.
    pub class: ClassId,
}

/// The classes, kinds and fields that a reader knows; see the [module](self).
pub struct Plan<V, C> {
    /// The classes of records.
    pub classes: Vec<Class<C>>,
    /// The kinds of values. The first is [`ANY`].
    pub kinds: Vec<Kind<V>>,
    /// The fields of all classes, one class after the other; see [`Shape::fields`].
    pub fields: Vec<Field>,
    /// The classes of lines. If empty, each line becomes a dict.
    pub tops: Vec<Top>,
    /// Types that have a class for all subtypes that are not in `tops`. The plan does not contain this class, so such lines fall through.
    pub open_types: Vec<Vec<u8>>,
    /// The class for lines with an unknown tag, the reason for an unknown type, and the reason for an unknown subtype.
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
    /// Returns the field of a class with this key.
    pub(super) fn find(&self, shape: &Shape<C>, key: &[u8]) -> Option<FieldId> {
        shape
            .fields
            .clone()
            .find(|&id| self.fields[id].key.name() == key)
    }
}
