//! Finds the values of wanted keys: walks an object from key to key, as [`crate::kinds::scan`] does, with any [`Tree`] of keys.
//!
//! Objects with wanted keys are walked; all other values are skipped by their quotes and brackets alone. Lists are skipped, too; [`List`]
//! walks the objects in one. A value that is not an object by that structure is unclear, and so is an object that has a wanted key
//! twice: the decoder decides which of the two counts.
//!
//! Linear in the object, without recursion. Every search ends at the line's LF.
// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

use super::batch::{with_room, NoMemory};
use super::tree::{Slot, Tree};
use crate::kinds::string::decoded;
use crate::simd::Engine;

/// What a value looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// No value.
    #[default]
    Absent,
    /// A string without a backslash.
    Plain,
    /// A string with a backslash.
    Escaped,
    /// A number, true, false or null, or something invalid.
    Word,
    /// An object. A walked object has its start only.
    Object,
    /// An array.
    Array,
}

/// The place of a value. For a string: the bytes between its quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// What it looks like.
    pub form: Form,
    /// Where it begins.
    pub start: usize,
    /// The place after it.
    pub end: usize,
}

impl Value {
    /// Its bytes, still escaped.
    #[inline]
    #[must_use]
    pub fn of(self, data: &[u8]) -> &[u8] {
        &data[self.start..self.end]
    }

    /// Its bytes as in the line, with the quotes of a string.
    #[must_use]
    pub fn whole(self, data: &[u8]) -> &[u8] {
        let quote = usize::from(self.is_text());
        &data[self.start - quote..self.end + quote]
    }

    /// Whether it is a string.
    #[inline]
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self.form, Form::Plain | Form::Escaped)
    }

    /// Whether there is a value, and it is not null.
    #[inline]
    #[must_use]
    pub fn is_some(self, data: &[u8]) -> bool {
        match self.form {
            Form::Absent => false,
            Form::Word => self.of(data) != b"null",
            _ => true,
        }
    }

    /// Whether it is the string `text`.
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

/// The values of the keys of a tree in one object.
#[derive(Clone, Debug)]
pub struct Found {
    seen: u64,
    values: Vec<Value>,
}

impl Found {
    /// Values of no object yet.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn new(tree: &Tree) -> Result<Self, NoMemory> {
        let mut values = with_room(tree.slots())?;
        values.resize(tree.slots(), Value::default());
        Ok(Self { seen: 0, values })
    }

    /// The value of a key.
    #[inline]
    #[must_use]
    pub fn value(&self, slot: Slot) -> Value {
        if self.seen >> slot & 1 == 0 {
            return Value::default();
        }
        self.values[usize::from(slot)]
    }

    /// Sets it to the values of an object that has one key.
    pub fn set_only(&mut self, slot: Option<Slot>, value: Value) {
        self.seen = 0;
        if let Some(slot) = slot {
            self.seen = 1 << slot;
            self.values[usize::from(slot)] = value;
        }
    }
}

/// Walks the object whose `{` is at `at`, and writes its wanted values to `found`. Returns the place after it; `None` if it is unclear.
#[inline(always)]
pub fn walk<E: Engine>(
    engine: E,
    data: &[u8],
    at: usize,
    tree: &Tree,
    found: &mut Found,
) -> Option<usize> {
    let mut walker = Walker::<E> {
        data,
        at,
        ahead: E::Ahead::default(),
    };
    found.seen = 0;
    walker.object(engine, tree, found)?;
    Some(walker.at)
}

/// The first byte of the line at `at` that is not white space.
#[inline(always)]
#[must_use]
pub fn space(data: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r') = data.get(at) {
        at += 1;
    }
    at
}

/// The next item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An object. It has been walked.
    Object,
    /// Something else.
    Other,
    /// The end of the list.
    End,
}

/// A walk through a list.
#[derive(Debug)]
pub struct List {
    at: usize,
    end: usize,
    first: bool,
}

impl List {
    /// Through an array.
    #[must_use]
    pub fn new(array: Value) -> Self {
        Self {
            at: array.start + 1,
            end: array.end,
            first: true,
        }
    }

    /// Goes to the next item; `None` if the list is unclear.
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
            // The array ends where its brackets said.
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
        let mut walker = Walker::<E> {
            data,
            at: self.at,
            ahead: E::Ahead::default(),
        };
        walker.value(engine)?;
        self.at = walker.at;
        Some(Item::Other)
    }
}

struct Walker<'a, E: Engine> {
    data: &'a [u8],
    at: usize,
    ahead: E::Ahead,
}

impl<E: Engine> Walker<'_, E> {
    #[inline(always)]
    fn object(&mut self, engine: E, tree: &Tree, found: &mut Found) -> Option<()> {
        self.take(b'{')?;
        let mut node = 0;
        let mut first = true;
        loop {
            self.space();
            if first && self.byte() == b'}' {
                // An empty object; it is closed below.
            } else {
                self.take(b'"')?;
                let name = self.string(engine)?;
                let key = if name.form == Form::Escaped {
                    tree.key_of_escaped(node, name.of(self.data))
                } else {
                    tree.key_of(node, name.of(self.data))
                };
                self.space();
                self.take(b':')?;
                self.space();
                if let Some(key) = key {
                    if found.seen >> key.slot & 1 == 1 {
                        return None;
                    }
                    found.seen |= 1 << key.slot;
                    let place = &mut found.values[usize::from(key.slot)];
                    match key.inner {
                        Some(inner) if self.byte() == b'{' => {
                            *place = Value {
                                form: Form::Object,
                                start: self.at,
                                end: self.at,
                            };
                            self.at += 1;
                            node = inner;
                            first = true;
                            continue;
                        }
                        _ => *place = self.value(engine)?,
                    }
                } else {
                    self.value(engine)?;
                }
                self.space();
            }
            first = false;
            loop {
                match self.byte() {
                    b',' => break,
                    b'}' => self.at += 1,
                    _ => return None,
                }
                if node == 0 {
                    return Some(());
                }
                node = tree.parent(node);
                self.space();
            }
            self.at += 1;
        }
    }

    /// The next byte; an LF at the end of the data, where a line ends as well.
    #[inline(always)]
    fn byte(&self) -> u8 {
        self.data.get(self.at).map_or(b'\n', |&byte| byte)
    }

    #[inline(always)]
    fn take(&mut self, byte: u8) -> Option<()> {
        if self.byte() != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    #[inline(always)]
    fn space(&mut self) {
        if self.byte() <= b' ' {
            self.at = space(self.data, self.at);
        }
    }

    /// Passes a string whose opening quote has been passed.
    #[inline(always)]
    fn string(&mut self, engine: E) -> Option<Value> {
        let start = self.at;
        let (end, escaped) = engine.string_end(&mut self.ahead, self.data, start);
        self.at = end;
        self.take(b'"')?;
        let form = if escaped { Form::Escaped } else { Form::Plain };
        Some(Value { form, start, end })
    }

    #[inline(always)]
    fn value(&mut self, engine: E) -> Option<Value> {
        let start = self.at;
        let form = match self.byte() {
            b'"' => {
                self.at += 1;
                return self.string(engine);
            }
            open @ (b'{' | b'[') => {
                self.at = engine.container_end(self.data, start).ok()?;
                if open == b'{' {
                    Form::Object
                } else {
                    Form::Array
                }
            }
            byte if ends_word(byte) => return None,
            _ => {
                while !ends_word(self.byte()) {
                    self.at += 1;
                }
                Form::Word
            }
        };
        let end = self.at;
        Some(Value { form, start, end })
    }
}

/// Whether a byte ends a number or a word, and cannot begin a value.
#[inline(always)]
pub(super) fn ends_word(byte: u8) -> bool {
    const ENDS: [bool; 256] = {
        let mut ends = [false; 256];
        let bytes = b" \t\r\n,]}\"{[:";
        let mut at = 0;
        while at < bytes.len() {
            ends[bytes[at] as usize] = true;
            at += 1;
        }
        ends
    };
    ENDS[usize::from(byte)]
}

#[cfg(test)]
mod tests;
