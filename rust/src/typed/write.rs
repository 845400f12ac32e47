//! [`Writer`]: turns typed messages into lines.
//!
//! The writer asks a [`Source`] what each value is, and writes the same bytes as msgspec. For a class of records it needs the keys in
//! order, the slot of each field, and the value for which the field is omitted. It does not need the types of the fields, because the
//! source determines the type of each value. The writer does not write a line with an unusual value, such as a `datetime` or a lone
//! surrogate: the caller encodes such a message with msgspec.
//!
//! Most of the time is spent on short strings, and a processor with AVX2 copies and checks a string of up to 16 bytes with half of the
//! instructions. So the whole writer is compiled for each [`Engine`]. Records, dicts and lists contain each other, so the functions that
//! write them call themselves and cannot be inlined: [`Engine::call`] calls each as an [`Operation`].

#![allow(clippy::inline_always)] // The functions run for every value, and most write only a few bytes.

use std::fmt::Write;

use super::read::MAX_DEPTH;
use crate::fallible::push;
use crate::simd::{
    run, Ascii, Engine, Few, Level, Operation, Output, Pen, Plain, Prefix, Words, HASH_FACTOR,
};

/// The maximum memory in bytes that the output keeps between two calls.
const KEPT_BYTES: usize = 64 * 1024;
/// The room for a number. The longest, such as `-1.2345678901234567e-300`, have 24 bytes.
const MAX_NUMBER: usize = 32;
/// The length of 14 digits and a point. A number with at most this many digits is never halfway between two others (see
/// [`write_any_float`]).
const MAX_UNTIED: usize = 15;

/// Reads the values of messages. Values must not be changed or freed during `'a`.
pub trait Source<'a> {
    /// A reference to a value.
    type Value: Copy;
    /// The fields of a class: the slot of each field, and the value for which it is omitted.
    type Fields;
    /// A reference that keeps a value alive.
    type Kept;

    /// Returns the type of a value. For a Boolean or a number, the result contains the value.
    fn look(&self, value: Self::Value) -> Seen<Self::Value>;
    /// Returns a string that is not ASCII; `None` if the caller must write the line.
    fn text(&self, value: Self::Value) -> Option<Text<'a>>;
    /// Returns a function that takes a value, and returns the value's text if it is an ASCII string, else `None`. A loop gets the function
    /// before it begins, so that what the function needs stays in registers.
    fn ascii(&self) -> impl Fn(Self::Value) -> Option<Ascii<'a>> + Copy;
    /// Returns the shape of a record, or `None` if its class has none, or if the value is not a record.
    fn shape(&self, record: Self::Value) -> Option<usize>;
    /// Returns the index and the value of the first field at or after `from` that is not omitted. The value is `None` if the program
    /// emptied the slot.
    fn next(
        &self,
        record: Self::Value,
        fields: &Self::Fields,
        from: usize,
    ) -> Option<(usize, Option<Self::Value>)>;
    /// Returns the dict with the keys that are not fields; `None` if the record has only fields.
    fn extra(&self, record: Self::Value, fields: &Self::Fields) -> Option<Self::Value>;
    /// Returns whether all fields of this record are *known*: whether earlier records of its class had them.
    fn is_known(&self, record: Self::Value, fields: &Self::Fields) -> bool;
    /// Returns the indexes of the fields that are known or in this record, in order. Returns `None` if memory runs out.
    fn known_with(&self, record: Self::Value, fields: &Self::Fields) -> Option<Vec<usize>>;
    /// Makes these fields known, which [`known_with`](Self::known_with) returned. If memory runs out, returns `None` and changes nothing.
    fn know(&self, indexes: &[usize], fields: &mut Self::Fields) -> Option<()>;
    /// Returns the value of a field.
    fn field(&self, record: Self::Value, at: &FieldSlot) -> Field<Self::Value>;
    /// Returns the place of the field with this index.
    fn place(&self, fields: &Self::Fields, index: usize) -> FieldSlot;
    /// Returns a number other than 0 that no other string has while this string is alive.
    fn identity(&self, text: Self::Value) -> u64;
    /// Returns a reference that keeps a value alive.
    fn keep(&self, value: Self::Value) -> Self::Kept;
    /// Returns the items of a list.
    fn items(&self, list: Self::Value) -> impl Iterator<Item = Self::Value>;
    /// Returns a dict's keys and their values; `None` if only [`pairs`](Self::pairs) can return them.
    fn entries(
        &self,
        dict: Self::Value,
    ) -> Option<impl Iterator<Item = (Self::Value, Self::Value)>>;
    /// Does the same as [`entries`](Self::entries) for any dict, but slowly.
    fn pairs(&self, dict: Self::Value) -> impl Iterator<Item = (Self::Value, Self::Value)>;
}

/// The place of a field in a record.
#[derive(Clone, Copy)]
pub struct FieldSlot {
    /// The slot that contains the value.
    pub slot: usize,
    /// The value for which the field is omitted.
    pub omitted: usize,
}

/// The value of a field.
pub enum Field<V> {
    /// A value to write.
    Value(V),
    /// The field is omitted.
    Absent,
    /// The program emptied the slot.
    Emptied,
}

/// The type of a value, and the value of a Boolean or a number.
#[derive(Clone, Copy)]
pub enum Seen<V> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float, possibly infinite or NaN.
    Float(f64),
    /// A string.
    Text,
    /// A list.
    List,
    /// A dict.
    Dict,
    /// A record of the class with this [shape](Writer::add).
    Record(usize),
    /// A record whose class has no shape. The value is the class.
    Unplanned(V),
    /// Something else.
    Other,
}

/// A string that is not ASCII, in one of the forms that CPython uses.
#[derive(Clone, Copy)]
pub enum Text<'a> {
    /// UTF-8.
    Utf8(&'a [u8]),
    /// Characters below 256.
    Latin(&'a [u8]),
    /// Characters below 65536, possibly surrogates.
    Wide(&'a [u16]),
    /// Any characters, possibly surrogates.
    Full(&'a [u32]),
}

/// Why a line is not written.
#[derive(Debug, PartialEq)]
pub enum Unwritten<V> {
    /// The caller must write the line.
    FallsThrough,
    /// The caller must write the line, because this class has no shape yet.
    Wants(V),
}

/// How to write records of a class.
pub struct Shape<F> {
    /// The beginning of each record, such as `{"type":"user"`; empty if the class has no tag.
    pub opening: Words,
    /// The fields.
    pub fields: F,
    /// The text before each field's value: `,"key":`.
    pub keys: Vec<Words>,
    /// The text before the tag's value; empty if the class has no tag.
    pub tag_key: Words,
    /// The [known](Source::is_known) fields, and the text before each value.
    known: Vec<(FieldSlot, Words)>,
}

impl<F> Shape<F> {
    /// Returns a shape without known fields.
    pub fn new(opening: &[u8], tag_key: &[u8], keys: Vec<Words>, fields: F) -> Self {
        Self {
            opening: Words::new(opening),
            fields,
            keys,
            tag_key: Words::new(tag_key),
            known: Vec::new(),
        }
    }
}

/// The dict keys that were written last, in their written form.
struct Keys<K> {
    /// The keys. Each is at one of its [places](Keys::places).
    all: Box<[Key<K>; KEYS]>,
}

/// The number of keys.
const KEYS: usize = 1024;

/// A key, in a cache line of its own.
#[repr(align(64))]
struct Key<K> {
    /// See [`Source::identity`].
    identity: u64,
    /// A comma, the key in quotes, and a colon: `,"key":`.
    words: Few,
    #[allow(dead_code)] // This field only keeps the key alive: no other string gets its identity.
    kept: Option<K>,
}

impl<K> Keys<K> {
    fn new() -> Self {
        let none = || Key {
            identity: 0,
            words: Few::NONE,
            kept: None,
        };
        let all: Box<[_]> = std::iter::repeat_with(none).take(KEYS).collect();
        let Ok(all) = all.try_into() else {
            unreachable!()
        };
        Self { all }
    }

    /// Returns a key in its written form; `None` if it is not stored.
    #[inline(always)]
    fn get(&self, identity: u64) -> Option<&Few> {
        Self::places(identity).iter().find_map(|&place| {
            let key = &self.all[place];
            (key.identity == identity).then_some(&key.words)
        })
    }

    /// Stores each of these keys at an empty place. If a key has none, it is stored at its first place. The previous key there moves to the
    /// second place, whose previous key is removed. Keys in the second pair are replaced only through that pair's own first places.
    #[cold]
    fn add(&mut self, keys: impl Iterator<Item = Key<K>>) {
        for key in keys {
            if self.get(key.identity).is_some() {
                continue;
            }
            let places = Self::places(key.identity);
            let empty = places
                .into_iter()
                .find(|&place| self.all[place].identity == 0);
            let place = empty.unwrap_or_else(|| {
                self.all.swap(places[0], places[1]);
                places[0]
            });
            self.all[place] = key;
        }
    }

    /// Returns the places where a key may be: two pairs of neighbors. The dicts of a session have hundreds of keys. With two places for each,
    /// a fifth of the look-ups would miss, and each miss takes as long as ten hits.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // The places are below KEYS.
    fn places(identity: u64) -> [usize; 4] {
        let hash = identity.wrapping_mul(HASH_FACTOR);
        let (first, other) = ((hash >> 54) as usize % KEYS, (hash >> 44) as usize % KEYS);
        [first, first ^ 1, other, other ^ 1]
    }
}

/// Writes lines.
pub struct Writer<S, F, K> {
    /// Reads the values.
    pub source: S,
    shapes: Vec<Shape<F>>,
    keys: Keys<K>,
    /// The keys that are stored after the line, at most [`KEYS`].
    new_keys: Vec<Key<K>>,
    out: Output,
    /// Which of the processor's instructions to use. Only tests change this.
    level: Level,
}

impl<S, F, K> Writer<S, F, K> {
    /// Returns a writer without shapes.
    pub fn new(source: S) -> Self {
        Self {
            source,
            shapes: Vec::new(),
            keys: Keys::new(),
            new_keys: Vec::new(),
            out: Output::default(),
            level: Level::Fast,
        }
    }

    /// Adds the shape of a class, and returns its number.
    pub fn add(&mut self, shape: Shape<F>) -> usize {
        self.shapes.push(shape);
        self.shapes.len() - 1
    }

    /// Writes a record or a dict as a line, after the lines already written.
    ///
    /// # Errors
    ///
    /// [`Unwritten`]: no part of the line was written here, and the caller must write it.
    #[inline]
    pub fn line<'a>(&mut self, value: S::Value) -> Result<(), Unwritten<S::Value>>
    where
        S: Source<'a, Fields = F, Kept = K>,
    {
        let start = self.out.place();
        let mut writing = Writing {
            source: &self.source,
            shapes: &self.shapes,
            keys: &self.keys,
            new_keys: &mut self.new_keys,
            new: None,
            unplanned: None,
        };
        let line = Line(&mut writing, self.out.pen(), value);
        let written = run(self.level, line).map(Pen::end);
        let Writing { new, unplanned, .. } = writing;
        if !self.new_keys.is_empty() {
            self.keys.add(self.new_keys.drain(..));
        }
        if written.is_none() {
            self.out.truncate(start);
            return Err(unplanned.map_or(Unwritten::FallsThrough, Unwritten::Wants));
        }
        if let Some((record, shape)) = new {
            // Without memory, the next record makes its fields known.
            let _ = self.learn(record, shape);
        }
        Ok(())
    }

    /// Makes the fields of a record [known](Source::is_known) for the next records with its shape. If memory runs out, returns `None` and
    /// changes nothing.
    #[cold]
    fn learn<'a>(&mut self, record: S::Value, shape: usize) -> Option<()>
    where
        S: Source<'a, Fields = F, Kept = K>,
    {
        let shape = &mut self.shapes[shape];
        let indexes = self.source.known_with(record, &shape.fields)?;
        let mut known = Vec::new();
        known.try_reserve_exact(indexes.len()).ok()?;
        for &index in &indexes {
            let place = self.source.place(&shape.fields, index);
            known.push((place, shape.keys[index].try_clone()?));
        }
        self.source.know(&indexes, &mut shape.fields)?;
        shape.known = known;
        Some(())
    }

    /// Returns the lines written so far.
    #[inline]
    pub fn written(&self) -> &[u8] {
        self.out.written()
    }

    /// Removes all written lines.
    #[inline]
    pub fn clear(&mut self) {
        self.out.clear(KEPT_BYTES);
    }

    /// Returns the output's capacity in bytes.
    #[cfg(test)]
    fn kept(&self) -> usize {
        self.out.capacity()
    }
}

/// Writes one line. Its functions return `None` if this writer cannot write the line (the caller then writes it with msgspec), or if memory runs
/// out.
struct Writing<'w, V, S, F, K> {
    source: &'w S,
    shapes: &'w [Shape<F>],
    keys: &'w Keys<K>,
    /// See [`Writer::new_keys`].
    new_keys: &'w mut Vec<Key<K>>,
    /// A record with fields that are not [known](Source::is_known), and its shape.
    new: Option<(V, usize)>,
    /// The class without a shape that stopped this line.
    unplanned: Option<V>,
}

impl<'a, S: Source<'a>> Writing<'_, S::Value, S, S::Fields, S::Kept> {
    /// Writes a record or a dict, and a line feed.
    #[inline(always)]
    fn line<'o, E: Engine>(&mut self, engine: E, pen: Pen<'o>, value: S::Value) -> Option<Pen<'o>> {
        let seen = match self.source.shape(value) {
            Some(shape) => Seen::Record(shape),
            None => self.source.look(value),
        };
        let pen = match seen {
            Seen::Record(shape) => engine.call(Record(self, pen, value, shape, 0))?,
            Seen::Dict => engine.call(Dict(self, pen, value, 0))?,
            Seen::Unplanned(class) => return self.wants(class),
            _ => return None,
        };
        pen.bytes(b"\n")
    }

    /// Remembers the class that needs a shape, and returns `None`.
    #[cold]
    fn wants<'o>(&mut self, class: S::Value) -> Option<Pen<'o>> {
        self.unplanned = Some(class);
        None
    }

    /// Writes a value, and the text before it.
    #[inline(always)]
    fn value<'o, E: Engine>(
        &mut self,
        engine: E,
        pen: Pen<'o>,
        before: &impl Prefix,
        value: S::Value,
        depth: usize,
    ) -> Option<Pen<'o>> {
        // Test this first, because most values are ASCII strings.
        if let Some(text) = self.source.ascii()(value) {
            return pen.ascii(engine, before, text);
        }
        match self.source.look(value) {
            Seen::Null => pen.constant(before, *b"null"),
            Seen::Int(value) => pen.int(before, value),
            Seen::Bool(true) => pen.constant(before, *b"true"),
            Seen::Bool(false) => pen.constant(before, *b"false"),
            Seen::Text => self.text(pen.constant(before, [])?, value),
            Seen::Float(value) => write_float(pen.constant(before, [])?, value),
            Seen::Record(shape) => {
                let pen = pen.constant(before, [])?;
                engine.call(Record(self, pen, value, shape, depth + 1))
            }
            Seen::Dict => engine.call(Dict(self, pen.constant(before, [])?, value, depth + 1)),
            Seen::List => engine.call(List(self, pen.constant(before, [])?, value, depth + 1)),
            Seen::Unplanned(class) => self.wants(class),
            Seen::Other => None,
        }
    }

    /// Writes a value, without text before it.
    #[inline(always)]
    fn bare<'o, E: Engine>(
        &mut self,
        engine: E,
        pen: Pen<'o>,
        value: S::Value,
        depth: usize,
    ) -> Option<Pen<'o>> {
        self.value(engine, pen, b"", value, depth)
    }

    /// Writes a string that is not ASCII.
    #[inline(never)]
    fn text<'o>(&self, pen: Pen<'o>, text: S::Value) -> Option<Pen<'o>> {
        match self.source.text(text)? {
            Text::Utf8(text) => pen.utf8(text),
            Text::Latin(text) => pen.characters(text),
            Text::Wide(text) => pen.characters(text),
            Text::Full(text) => pen.characters(text),
        }
    }

    #[inline(always)]
    fn record<'o, E: Engine>(
        &mut self,
        engine: E,
        pen: Pen<'o>,
        record: S::Value,
        shape: usize,
        depth: usize,
    ) -> Option<Pen<'o>> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let number = shape;
        let shape = &self.shapes[number];
        let start = pen.place();
        let mut pen = pen.constant(&shape.opening, [])?;
        if self.source.is_known(record, &shape.fields) {
            for (place, words) in &shape.known {
                match self.source.field(record, place) {
                    Field::Value(value) => pen = self.value(engine, pen, words, value, depth)?,
                    Field::Absent => {}
                    Field::Emptied => return None,
                }
            }
        } else {
            self.new = Some((record, number));
            pen = self.new_record(engine, pen, record, shape, depth)?;
        }
        close(pen, start, b'{', b'}')
    }

    /// Writes the fields of a record, and its other keys.
    #[inline(never)]
    fn new_record<'o, E: Engine>(
        &mut self,
        engine: E,
        mut pen: Pen<'o>,
        record: S::Value,
        shape: &Shape<S::Fields>,
        depth: usize,
    ) -> Option<Pen<'o>> {
        let mut from = 0;
        while let Some((index, value)) = self.source.next(record, &shape.fields, from) {
            from = index + 1;
            pen = pen.bytes(shape.keys[index].all())?;
            pen = engine.call(Value(self, pen, value?, depth))?;
        }
        match self.source.extra(record, &shape.fields) {
            Some(extra) => self.extra(engine, pen, extra, shape, depth),
            None => Some(pen),
        }
    }

    /// Writes a record's keys that are not fields. If a field has the same key, the line falls through, and the caller decides which of the
    /// two to write.
    #[cold]
    fn extra<'o, E: Engine>(
        &mut self,
        engine: E,
        mut pen: Pen<'o>,
        extra: S::Value,
        shape: &Shape<S::Fields>,
        depth: usize,
    ) -> Option<Pen<'o>> {
        if !matches!(self.source.look(extra), Seen::Dict) {
            return None;
        }
        for (key, value) in self.source.pairs(extra) {
            let start = pen.place();
            pen = self.key(pen, key)?;
            let key = &pen.written()[start..];
            let mut keys = shape.keys.iter().chain([&shape.tag_key]);
            if keys.any(|other| other.all() == key) {
                return None;
            }
            pen = engine.call(Value(self, pen, value, depth))?;
        }
        Some(pen)
    }

    #[inline(always)]
    fn list<'o, E: Engine>(
        &mut self,
        engine: E,
        mut pen: Pen<'o>,
        list: S::Value,
        depth: usize,
    ) -> Option<Pen<'o>> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let start = pen.place();
        let ascii = self.source.ascii();
        for item in self.source.items(list) {
            pen = match ascii(item) {
                Some(text) => pen.ascii(engine, b",", text)?,
                None => engine.call(Value(self, pen.bytes(b",")?, item, depth))?,
            };
        }
        close(pen, start, b'[', b']')
    }

    #[inline(always)]
    fn dict<'o, E: Engine>(
        &mut self,
        engine: E,
        mut pen: Pen<'o>,
        dict: S::Value,
        depth: usize,
    ) -> Option<Pen<'o>> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let start = pen.place();
        let Some(entries) = self.source.entries(dict) else {
            for (key, value) in self.source.pairs(dict) {
                pen = self.new_key(pen, key)?;
                pen = engine.call(Value(self, pen, value, depth))?;
            }
            return close(pen, start, b'{', b'}');
        };
        for (key, value) in entries {
            pen = if let Some(words) = self.keys.get(self.source.identity(key)) {
                self.value(engine, pen, words, value, depth)?
            } else {
                pen = self.new_key(pen, key)?;
                engine.call(Value(self, pen, value, depth))?
            };
        }
        close(pen, start, b'{', b'}')
    }

    /// Writes a key. A short key that is not stored yet is stored when the current line is done.
    #[inline(never)]
    fn new_key<'o>(&mut self, pen: Pen<'o>, key: S::Value) -> Option<Pen<'o>> {
        let identity = self.source.identity(key);
        if let Some(words) = self.keys.get(identity) {
            return pen.constant(words, []);
        }
        let start = pen.place();
        let pen = self.key(pen, key)?;
        match Few::new(&pen.written()[start..]) {
            Some(words) if self.new_keys.len() < KEYS => {
                let key = Key {
                    identity,
                    words,
                    kept: Some(self.source.keep(key)),
                };
                // Without memory, the key is not stored.
                let _ = push(self.new_keys, key);
            }
            _ => {}
        }
        Some(pen)
    }

    fn key<'o>(&mut self, pen: Pen<'o>, key: S::Value) -> Option<Pen<'o>> {
        let pen = match self.source.ascii()(key) {
            Some(key) => pen.ascii(Plain, b",", key)?,
            None if matches!(self.source.look(key), Seen::Text) => {
                self.text(pen.bytes(b",")?, key)?
            }
            None => return None,
        };
        pen.bytes(b":")
    }
}

/// Defines an [`Operation`] for each of these functions of [`Writing`]: it has the function's arguments.
macro_rules! operations {
    ($( $name:ident: $function:ident($($argument:ident: $kind:ty),*); )*) => { $(
        struct $name<'s, 'o, W, V>(&'s mut W, Pen<'o>, V $(, $kind)*);

        impl<'a, 'o, S: Source<'a>> Operation
            for $name<'_, 'o, Writing<'_, S::Value, S, S::Fields, S::Kept>, S::Value>
        {
            type Output = Option<Pen<'o>>;

            #[inline(always)]
            fn run<E: Engine>(self, engine: E) -> Self::Output {
                let Self(writing, pen, value $(, $argument)*) = self;
                writing.$function(engine, pen, value $(, $argument)*)
            }
        }
    )* };
}

operations! {
    Line: line();
    Record: record(shape: usize, depth: usize);
    List: list(depth: usize);
    Dict: dict(depth: usize);
    Value: bare(depth: usize);
}

/// Ends an object or array that begins at `start`. The byte at `start` becomes the opening bracket; until now it is the comma before the
/// first item, or already a record's bracket. If there is no byte at `start`, writes both brackets.
#[inline(always)]
fn close(pen: Pen<'_>, start: usize, opening: u8, closing: u8) -> Option<Pen<'_>> {
    if pen.place() == start {
        return pen.bytes(&[opening, closing]);
    }
    pen.change(start, opening).bytes(&[closing])
}

/// Writes a float with the fewest digits that read back as the same float: `0.3`, `9.9e-6`, `1e16`. Uses an exponent if the absolute value
/// is below 0.00001, or is 1e16 or more. Writes `null` for an infinite number and for NaN.
#[inline(never)]
fn write_float(mut pen: Pen<'_>, value: f64) -> Option<Pen<'_>> {
    if !value.is_finite() {
        return pen.bytes(b"null");
    }
    let (negative, value) = (value.is_sign_negative(), value.abs());
    if negative {
        pen = pen.bytes(b"-")?;
    }
    if let Some((whole, fraction, places)) = short_decimal(value) {
        return pen.int(b"", whole)?.fraction(fraction, places);
    }
    write_any_float(pen, value)
}

/// Returns the decimal of at most 15 digits that reads as this float, if there is one: the digits before the point, the digits after it,
/// and how many digits are after the point. For 12.05 these are `(12, 5, 2)`. Two different decimals of at most 15 digits never read as the
/// same float. `value` must be finite and not negative.
#[allow(clippy::cast_possible_truncation)] // All numbers are at most 1e15.
#[allow(clippy::cast_precision_loss, clippy::float_cmp)] // Floats represent whole numbers of 15 digits, and these powers of ten, exactly.
fn short_decimal(value: f64) -> Option<(i64, i64, usize)> {
    let (mut places, mut power) = match value {
        0.0 => return Some((0, 0, 1)),
        1e-5..1e5 => (10, 10_000_000_000),
        1e5..1e10 => (5, 100_000),
        1e10..1e15 => (0, 1),
        _ => return None,
    };
    // The product is rounded, so the digits may be wrong. The division below rounds correctly, so it detects wrong digits.
    let mut digits = (value * power as f64 + 0.5) as i64;
    if digits as f64 / power as f64 != value {
        return None;
    }
    while places > 1 && digits % 10 == 0 {
        (digits, power, places) = (digits / 10, power / 10, places - 1);
    }
    Some((digits / power, digits % power, places.max(1)))
}

/// Writes any finite float that is not negative, like [`write_float`].
#[inline(never)]
fn write_any_float(pen: Pen<'_>, value: f64) -> Option<Pen<'_>> {
    let value_of = |written: &Scratch| written.text().and_then(|text| text.parse::<f64>().ok());
    let mut written = Scratch::default();
    write!(written, "{value:e}").ok()?;
    let mut e = written.exponent()?;
    if e > MAX_UNTIED && may_be_tied(value) {
        // If the float is exactly halfway between two decimals of this length, write the decimal with the even last digit, as msgspec
        // does: 811212085039910.25 becomes 811212085039910.2.
        let mut even = Scratch::default();
        write!(even, "{value:.*e}", e - 2).ok()?;
        if value_of(&even) == Some(value) {
            (e, written) = (even.exponent()?, even);
        }
    }
    let written = &written.bytes[..written.len];
    let exponent: i32 = std::str::from_utf8(&written[e + 1..]).ok()?.parse().ok()?;
    // Before the exponent, `written` has one digit, a point, and the other digits.
    let (first, others) = (written[0], written.get(2..e).unwrap_or_default());
    let zeros = &[b'0'; 16];
    match usize::try_from(exponent) {
        Ok(whole) if whole < 16 => {
            let (before, after) = others.split_at(others.len().min(whole));
            let pen = pen.bytes(&[first])?.bytes(before)?;
            let pen = pen.bytes(&zeros[..whole - before.len()])?.bytes(b".")?;
            pen.bytes(if after.is_empty() { b"0" } else { after })
        }
        Err(_) if exponent >= -5 => {
            let zeros = &zeros[..exponent.unsigned_abs() as usize - 1];
            pen.bytes(b"0.")?
                .bytes(zeros)?
                .bytes(&[first])?
                .bytes(others)
        }
        _ => pen.bytes(written),
    }
}

/// Returns whether this float may be exactly halfway between two decimals of 17 digits or less. Only a float whose exact decimal value has
/// at most 18 digits can be halfway. A float with n binary places has n decimal places, and at least as many digits as `5.powi(n)`.
fn may_be_tied(value: f64) -> bool {
    /// `5.powi(26)` has more than 18 digits.
    const MAX_PLACES: i32 = 25;
    // The fraction is 0 if the float has at most MAX_PLACES binary places.
    let shifted = value * 2f64.powi(MAX_PLACES);
    shifted.fract() == 0.0
}

/// A buffer for formatting a number.
#[derive(Default)]
struct Scratch {
    bytes: [u8; MAX_NUMBER],
    len: usize,
}

impl Scratch {
    fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes[..self.len]).ok()
    }

    /// Returns the index of the `e` before the exponent.
    fn exponent(&self) -> Option<usize> {
        self.bytes.iter().position(|&byte| byte == b'e')
    }
}

impl Write for Scratch {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        let end = self.len + part.len();
        let place = self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?;
        place.copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
