//! Finds the values of the wanted keys ([`Tree`]) in an object, without parsing the other values.
//!
//! The basic idea is simple: go from key to key. If a key is wanted and its value is an object with wanted keys, go into that object. Skip
//! every other value: a string ends at the next quote that is not escaped, and a container ends at the bracket that matches its opening
//! bracket. [`crate::kinds::scan`] does the same for a fixed set of keys. The walk also skips lists; [`List`] walks the objects in a list.
//!
//! The line is *unclear* if its structure is not that of a JSON object, or if it has a wanted key twice. The decoder then reads the line.
//!
//! The time is linear in the size of the object, and there is no recursion. Every search ends at the LF of the line.
// Every operation must be inlined into one function per engine: the compiler emits vector instructions only in this function.
#![allow(clippy::inline_always)]

use super::tree::{Slot, Tree};
use crate::fallible::{with_room, NoMemory};
use crate::kinds::cursor::{space, Cursor, Passed};
use crate::kinds::string::{decoded, Span};
use crate::simd::Engine;

/// The type of a value, determined from its first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The key is absent.
    #[default]
    Absent,
    /// A string without a backslash.
    Plain,
    /// A string with a backslash.
    Escaped,
    /// A number, `true`, `false` or `null`, or invalid JSON without brackets or quotes.
    Word,
    /// An object. If it has wanted keys, only the start of its [`Value`] is set.
    Object,
    /// An array.
    Array,
}

/// Where a value is in the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// The type of the value.
    pub form: Form,
    /// The index of its first byte. For a string, the index after its opening quote.
    pub start: usize,
    /// The index after its last byte. For a string, the index of its closing quote.
    pub end: usize,
}

impl Value {
    /// Returns the bytes of the value. For a string, these are the bytes between its quotes, including escapes.
    #[inline]
    #[must_use]
    pub fn of(self, data: &[u8]) -> &[u8] {
        &data[self.start..self.end]
    }

    /// Returns the bytes of the value, including the quotes of a string.
    #[must_use]
    pub fn whole(self, data: &[u8]) -> &[u8] {
        let quote = usize::from(self.is_text());
        &data[self.start - quote..self.end + quote]
    }

    /// Returns true for a string.
    #[inline]
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self.form, Form::Plain | Form::Escaped)
    }

    /// Returns true if the key is present and its value is not null.
    #[inline]
    #[must_use]
    pub fn is_some(self, data: &[u8]) -> bool {
        match self.form {
            Form::Absent => false,
            Form::Word => self.of(data) != b"null",
            _ => true,
        }
    }

    /// Returns true if the value is the string `text`.
    #[inline]
    #[must_use]
    pub fn is(self, data: &[u8], text: &[u8]) -> bool {
        match self.form {
            Form::Plain => self.of(data) == text,
            Form::Escaped => decoded(self.of(data)).eq(text.iter().copied().map(u16::from)),
            _ => false,
        }
    }
}

impl From<Span> for Value {
    fn from(text: Span) -> Self {
        Self {
            form: if text.escaped {
                Form::Escaped
            } else {
                Form::Plain
            },
            start: text.start,
            end: text.end(),
        }
    }
}

/// The values of the wanted keys in one object.
#[derive(Clone, Debug)]
pub struct Found {
    /// One bit per slot, set if the object has the key.
    seen: u64,
    /// The value of each slot. Slots that the object does not have keep the value of an earlier object.
    values: Vec<Value>,
}

impl Found {
    /// Returns an empty result with room for all slots of `tree`.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn new(tree: &Tree) -> Result<Self, NoMemory> {
        let mut values = with_room(tree.slots())?;
        values.resize(tree.slots(), Value::default());
        Ok(Self { seen: 0, values })
    }

    /// Returns the value of a key; [`Form::Absent`] if the object does not have it.
    #[inline]
    #[must_use]
    pub fn value(&self, slot: Slot) -> Value {
        if self.seen >> slot & 1 == 0 {
            return Value::default();
        }
        self.values[usize::from(slot)]
    }

    /// Sets the result as if the object had only this key and value.
    pub fn set_only(&mut self, slot: Option<Slot>, value: Value) {
        self.seen = 0;
        if let Some(slot) = slot {
            self.seen = 1 << slot;
            self.values[usize::from(slot)] = value;
        }
    }
}

/// Walks the object whose `{` is at `at`, and writes the values of its wanted keys to `found`. Returns the index after the object; `None` if
/// it is unclear.
#[inline(always)]
pub fn walk<E: Engine>(
    engine: E,
    data: &[u8],
    at: usize,
    tree: &Tree,
    found: &mut Found,
) -> Option<usize> {
    let mut cursor = Cursor::<E>::new(data, at);
    found.seen = 0;
    object(&mut cursor, engine, tree, found)?;
    Some(cursor.at)
}

/// The result of [`List::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// The item is an object, whose wanted values were found.
    Object,
    /// The item is not an object, and was skipped.
    Other,
    /// The list has no more items.
    End,
}

/// Iterates over the items of an array.
#[derive(Debug)]
pub struct List {
    /// The index of the next byte to read.
    at: usize,
    /// The index after the array, found by its brackets.
    end: usize,
    /// Whether the next item is the first item, which has no comma before it.
    first: bool,
}

impl List {
    /// Begins a walk at the first item of `array`.
    #[must_use]
    pub fn new(array: Value) -> Self {
        Self {
            at: array.start + 1,
            end: array.end,
            first: true,
        }
    }

    /// Reads the next item. If it is an object, writes the values of its wanted keys to `found`. Returns `None` if the list is unclear.
    #[inline(always)]
    pub fn next<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        tree: &Tree,
        found: &mut Found,
    ) -> Option<Item> {
        self.at = space(data, self.at);
        if data.get(self.at) == Some(&b']') {
            // If the items were read correctly, this is the bracket that the count of brackets found.
            return (self.at + 1 == self.end).then_some(Item::End);
        }
        if !self.first {
            if data.get(self.at) != Some(&b',') {
                return None;
            }
            self.at = space(data, self.at + 1);
        }
        self.first = false;
        if data.get(self.at) == Some(&b'{') {
            self.at = walk(engine, data, self.at, tree, found)?;
            return Some(Item::Object);
        }
        let mut cursor = Cursor::<E>::new(data, self.at);
        cursor.value(engine)?;
        self.at = cursor.at;
        Some(Item::Other)
    }
}

/// Walks one object and the wanted objects in it.
#[inline(always)]
fn object<E: Engine>(
    cursor: &mut Cursor<'_, E>,
    engine: E,
    tree: &Tree,
    found: &mut Found,
) -> Option<()> {
    cursor.take(b'{')?;
    let mut node = 0;
    let mut first = true;
    loop {
        cursor.space();
        if first && cursor.byte() == b'}' {
            // An empty object: the loop below reads its `}`.
        } else {
            cursor.take(b'"')?;
            let name = cursor.string(engine)?;
            let key = if name.escaped {
                tree.key_of_escaped(node, name.of(cursor.data))
            } else {
                tree.key_of(node, name.of(cursor.data))
            };
            cursor.space();
            cursor.take(b':')?;
            cursor.space();
            if let Some(key) = key {
                if found.seen >> key.slot & 1 == 1 {
                    return None;
                }
                found.seen |= 1 << key.slot;
                let place = &mut found.values[usize::from(key.slot)];
                match key.inner {
                    Some(inner) if cursor.byte() == b'{' => {
                        *place = Value {
                            form: Form::Object,
                            start: cursor.at,
                            end: cursor.at,
                        };
                        cursor.at += 1;
                        node = inner;
                        first = true;
                        continue;
                    }
                    _ => *place = value(cursor, engine)?,
                }
            } else {
                value(cursor, engine)?;
            }
            cursor.space();
        }
        first = false;
        loop {
            match cursor.byte() {
                b',' => break,
                b'}' => cursor.at += 1,
                _ => return None,
            }
            if node == 0 {
                return Some(());
            }
            node = tree.parent(node);
            cursor.space();
        }
        cursor.at += 1;
    }
}

/// Moves past any value, and returns where it is.
#[inline(always)]
fn value<E: Engine>(cursor: &mut Cursor<'_, E>, engine: E) -> Option<Value> {
    let start = cursor.at;
    let form = match cursor.value(engine)? {
        Passed::Text(text) => return Some(text.into()),
        Passed::Word => Form::Word,
        Passed::Object => Form::Object,
        Passed::Array => Form::Array,
    };
    let end = cursor.at;
    Some(Value { form, start, end })
}

#[cfg(test)]
mod tests;
