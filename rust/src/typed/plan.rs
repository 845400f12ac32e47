//! Which classes there are, which keys they have, and what each value may be.
//!
//! A plan grows: a class is added when a stream first shows it. Until then it is [`Class::Unplanned`], and a line that needs it
//! falls through and says so ([`Line::Wants`](super::Line::Wants)).

use crate::simd::Key;

/// The types that a value may have, as bits of `Kind::may_be`.
pub mod may_be {
    /// `null`.
    pub const NULL: u32 = 1;
    /// `true` and `false`.
    pub const BOOL: u32 = 1 << 1;
    /// A whole number.
    pub const INT: u32 = 1 << 2;
    /// A number, made a float if it is whole and [`INT`] is not there.
    pub const FLOAT: u32 = 1 << 3;
    /// A string.
    pub const TEXT: u32 = 1 << 4;
    /// An array, of [`Kind::item`](super::Kind::item).
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

/// What the value of a field may be, or an item of a list or dict.
pub struct Kind<V> {
    /// A sum of [`may_be`].
    pub may_be: u32,
    /// Of what kind the items of a list or the values of a dict are.
    pub item: KindId,
    /// The classes of an object. If there are several, its tag tells them apart.
    pub classes: Vec<Member>,
    /// The key of that tag.
    pub tag_key: Vec<u8>,
    /// The strings that are allowed, and the objects for them.
    pub words: Vec<(Vec<u8>, V)>,
    /// The class and the reason for an object whose tag no class has; if it has none, the line falls through.
    pub unknown: Option<(V, V)>,
}

/// A class of an object that may be of several.
pub struct Member {
    /// The class.
    pub class: ClassId,
    /// The value of its tag.
    pub tag: Vec<u8>,
    /// How such an object mostly begins: `{"type":"text"`.
    pub opening: Vec<u8>,
}

/// A key of a class.
pub struct Field<V> {
    /// The key.
    pub key: Key,
    /// What its value may be; `None` for the tag, whose value must be that of the class.
    pub kind: Option<KindId>,
    /// Where the value stands in a record.
    pub slot: usize,
    /// What stands there if the key is absent; without one the line falls through.
    pub default: Option<V>,
}

/// A class of records.
pub enum Class<C> {
    /// Nobody has said yet what it is like.
    Unplanned,
    /// Lines with it always fall through.
    Refused,
    /// It can be made.
    Planned(Shape<C>),
}

/// What a class is like.
pub struct Shape<C> {
    /// The class, for the host.
    pub class: C,
    /// The range of its keys in [`Plan::fields`]. At most 128; the tag is the last, if there is one.
    pub fields: std::ops::Range<FieldId>,
    /// The value of the tag.
    pub tag: Vec<u8>,
    /// Where a dict of the keys stands that are no field of the class, or null. Without it a line with such a key falls through.
    pub extra: Option<usize>,
}

/// The class of the lines with a type, and perhaps a subtype.
pub struct Top {
    /// The value of `type`.
    pub tag: Vec<u8>,
    /// The value of `subtype`, where one type has several classes.
    pub subtype: Option<Vec<u8>>,
    /// Its class.
    pub class: ClassId,
}

/// All of it.
pub struct Plan<V, C> {
    /// Classes.
    pub classes: Vec<Class<C>>,
    /// Kinds of values. The first is anything.
    pub kinds: Vec<Kind<V>>,
    /// The fields of all classes.
    pub fields: Vec<Field<V>>,
    /// Classes of lines. Without any, each line becomes a dict.
    pub tops: Vec<Top>,
    /// Types with subtypes that also have a class for all others, which this pass does not know.
    pub open_types: Vec<Vec<u8>>,
    /// The class and the reasons for a line of an unknown type, and of an unknown subtype.
    pub unknown: Option<(V, V, V)>,
}

/// The kind of anything.
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
    /// The field with a key, of a class.
    pub(super) fn find(&self, shape: &Shape<C>, key: &[u8]) -> Option<FieldId> {
        shape
            .fields
            .clone()
            .find(|&id| self.fields[id].key.name() == key)
    }
}
