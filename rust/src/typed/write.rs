//! Typed messages in, lines out: the other way, with as little known of what the values are.
//!
//! The [`Source`] says what a value is, and the [`Writer`] writes it, as the caller's slower way would. Of a class of records the
//! writer is told the keys in their order, the slot of each, and which value is left out; what a field may hold does not matter,
//! for values are written as what they are. Whatever is unusual is left to the caller, a whole line at a time.

#![allow(clippy::inline_always)] // They write a few bytes, on the way of every value.

use std::fmt::Write;

use super::read::MAX_DEPTH;
use crate::simd::{escape_of, Output, Words};

/// The bytes that the output may keep between two lines.
const KEPT_BYTES: usize = 64 * 1024;
/// The longest number, and more: `-1.2345678901234567e-300`.
const MAX_NUMBER: usize = 32;
/// The bytes of 14 digits and a point: a number of one digit more, which a float can have exactly, is not that float with fewer.
const MAX_UNTIED: usize = 15;

/// Says what values are. Nobody changes or frees one in `'a`.
pub trait Source<'a> {
    /// A value.
    type Value: Copy;
    /// The fields of a class: which slot each has, and with which value it is left out.
    type Fields;

    /// What a value is.
    fn look(&self, value: Self::Value) -> Seen<'a, Self::Value>;
    /// The first field from `from` on that is written, and its value; `None` if somebody has emptied the slot.
    fn next(
        &self,
        record: Self::Value,
        fields: &Self::Fields,
        from: usize,
    ) -> Option<(usize, Option<Self::Value>)>;
    /// The dict of the keys that a record has besides its fields; `None` if there are none.
    fn extra(&self, record: Self::Value, fields: &Self::Fields) -> Option<Self::Value>;
    /// Calls `each` with the items of a list, until it returns false.
    fn items(&self, list: Self::Value, each: impl FnMut(Self::Value) -> bool);
    /// Calls `each` with the keys and values of a dict, until it returns false.
    fn pairs(&self, dict: Self::Value, each: impl FnMut(Self::Value, Self::Value) -> bool);
}

/// What a value is.
#[derive(Clone, Copy)]
pub enum Seen<'a, V> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number that may have a fraction. It may be no finite one.
    Float(f64),
    /// A string.
    Text(Text<'a>),
    /// A list.
    List,
    /// A dict.
    Dict,
    /// A record of the class with this [shape](Writer::add).
    Record(usize),
    /// A record of a class that has no shape, which is the value here.
    Unplanned(V),
    /// Something else.
    Other,
}

/// A string, in any of the forms that a host may have it in.
#[derive(Clone, Copy)]
pub enum Text<'a> {
    /// ASCII.
    Ascii(&'a [u8]),
    /// UTF-8.
    Utf8(&'a [u8]),
    /// Characters below 256.
    Latin(&'a [u8]),
    /// Characters below 65536, perhaps with surrogates.
    Wide(&'a [u16]),
    /// Any characters, perhaps with surrogates.
    Full(&'a [u32]),
}

/// Why a line is not written.
#[derive(Debug, PartialEq)]
pub enum Unwritten<V> {
    /// It is left to the caller.
    FallsThrough,
    /// It is left to the caller, and would not be if this class had a shape.
    Wants(V),
}

type Written<V> = Result<(), Unwritten<V>>;

/// How records of a class are written.
pub struct Shape<F> {
    /// How each begins: `{"type":"user"`, or nothing if the class has no tag.
    pub opening: Words,
    /// Its fields.
    pub fields: F,
    /// What is written before the values of these fields: `,"key":`.
    pub keys: Vec<Words>,
    /// As much for the tag, or nothing.
    pub tag_key: Words,
}

/// Writes lines.
pub struct Writer<S, F> {
    /// Says what values are.
    pub source: S,
    shapes: Vec<Shape<F>>,
    out: Output,
}

impl<S, F> Writer<S, F> {
    /// A writer without shapes.
    pub fn new(source: S) -> Self {
        Self {
            source,
            shapes: Vec::new(),
            out: Output::default(),
        }
    }

    /// Adds the shape of a class, and returns its number.
    pub fn add(&mut self, shape: Shape<F>) -> usize {
        self.shapes.push(shape);
        self.shapes.len() - 1
    }

    /// Writes a record or a dict as a line, after the lines that were written before.
    ///
    /// # Errors
    ///
    /// [`Unwritten`]: it is left to the caller, and nothing of it was written.
    pub fn line<'a>(&mut self, value: S::Value) -> Written<S::Value>
    where
        S: Source<'a, Fields = F>,
    {
        let start = self.out.written().len();
        let written = self.whole_line(value);
        if written.is_err() {
            self.out.truncate(start);
        }
        written
    }

    fn whole_line<'a>(&mut self, value: S::Value) -> Written<S::Value>
    where
        S: Source<'a, Fields = F>,
    {
        let Self {
            source,
            shapes,
            out,
        } = self;
        let mut writing = Writing {
            source,
            shapes,
            out,
        };
        match source.look(value) {
            Seen::Record(shape) => writing.record(value, shape, 0)?,
            Seen::Dict => writing.dict(value, 0)?,
            Seen::Unplanned(class) => return Err(Unwritten::Wants(class)),
            _ => return Err(Unwritten::FallsThrough),
        }
        out.bytes(b"\n").ok_or(Unwritten::FallsThrough)
    }

    /// What was written.
    pub fn written(&self) -> &[u8] {
        self.out.written()
    }

    /// Forgets what was written.
    pub fn clear(&mut self) {
        self.out.clear(KEPT_BYTES);
    }

    /// The bytes that the output has room for.
    #[cfg(test)]
    fn kept(&self) -> usize {
        self.out.capacity()
    }
}

struct Writing<'w, S, F> {
    source: &'w S,
    shapes: &'w [Shape<F>],
    out: &'w mut Output,
}

impl<'a, S: Source<'a>> Writing<'_, S, S::Fields> {
    /// Writes a value, with words before it if there are any.
    #[inline(always)]
    fn value(
        &mut self,
        before: Option<&Words>,
        value: S::Value,
        depth: usize,
    ) -> Written<S::Value> {
        let seen = self.source.look(value);
        let written = match (seen, before) {
            (Seen::Text(Text::Ascii(text)), Some(before)) => self.out.words_and_text(before, text),
            (Seen::Text(Text::Ascii(text)), None) => self.out.text([], text, true, []),
            (Seen::Null, Some(before)) => self.out.words(before, *b"null"),
            (Seen::Null, None) => self.out.bytes(b"null"),
            (Seen::Int(value), Some(before)) => self.out.words_and_int(before, value),
            (Seen::Int(value), None) => self.out.int(value),
            _ => {
                if let Some(before) = before {
                    self.out.words(before, []).ok_or(Unwritten::FallsThrough)?;
                }
                return self.other(value, seen, depth);
            }
        };
        written.ok_or(Unwritten::FallsThrough)
    }

    fn other(
        &mut self,
        value: S::Value,
        seen: Seen<'a, S::Value>,
        depth: usize,
    ) -> Written<S::Value> {
        let written = match seen {
            Seen::Text(text) => write_text(self.out, text),
            Seen::Null => self.out.bytes(b"null"),
            Seen::Bool(true) => self.out.bytes(b"true"),
            Seen::Bool(false) => self.out.bytes(b"false"),
            Seen::Int(value) => self.out.int(value),
            Seen::Float(value) => write_float(self.out, value),
            Seen::List => return self.list(value, depth + 1),
            Seen::Dict => return self.dict(value, depth + 1),
            Seen::Record(shape) => return self.record(value, shape, depth + 1),
            Seen::Unplanned(class) => return Err(Unwritten::Wants(class)),
            Seen::Other => None,
        };
        written.ok_or(Unwritten::FallsThrough)
    }

    fn record(&mut self, record: S::Value, shape: usize, depth: usize) -> Written<S::Value> {
        if depth >= MAX_DEPTH {
            return Err(Unwritten::FallsThrough);
        }
        let shape = &self.shapes[shape];
        let start = self.out.written().len();
        let opened = self.out.words(&shape.opening, []);
        opened.ok_or(Unwritten::FallsThrough)?;
        let mut from = 0;
        while let Some((index, value)) = self.source.next(record, &shape.fields, from) {
            let value = value.ok_or(Unwritten::FallsThrough)?;
            from = index + 1;
            self.value(Some(&shape.keys[index]), value, depth)?;
        }
        if let Some(extra) = self.source.extra(record, &shape.fields) {
            self.extra(extra, shape, depth)?;
        }
        close(self.out, start, b'{', b'}').ok_or(Unwritten::FallsThrough)
    }

    /// Writes keys that a record has besides its fields. If one of them is a field's, it depends on the field which is written:
    /// that is left to the caller.
    #[cold]
    fn extra(
        &mut self,
        extra: S::Value,
        shape: &Shape<S::Fields>,
        depth: usize,
    ) -> Written<S::Value> {
        if !matches!(self.source.look(extra), Seen::Dict) {
            return Err(Unwritten::FallsThrough);
        }
        let mut written = Ok(());
        self.source.pairs(extra, |key, value| {
            let start = self.out.written().len();
            written = self
                .key(key)
                .filter(|()| {
                    let key = &self.out.written()[start..];
                    let mut keys = shape.keys.iter().chain([&shape.tag_key]);
                    keys.all(|other| other.all() != key)
                })
                .ok_or(Unwritten::FallsThrough)
                .and_then(|()| self.value(None, value, depth));
            written.is_ok()
        });
        written
    }

    fn list(&mut self, list: S::Value, depth: usize) -> Written<S::Value> {
        if depth >= MAX_DEPTH {
            return Err(Unwritten::FallsThrough);
        }
        let start = self.out.written().len();
        let mut written = Ok(());
        self.source.items(list, |item| {
            written = self
                .out
                .bytes(b",")
                .ok_or(Unwritten::FallsThrough)
                .and_then(|()| self.value(None, item, depth));
            written.is_ok()
        });
        written?;
        close(self.out, start, b'[', b']').ok_or(Unwritten::FallsThrough)
    }

    fn dict(&mut self, dict: S::Value, depth: usize) -> Written<S::Value> {
        if depth >= MAX_DEPTH {
            return Err(Unwritten::FallsThrough);
        }
        let start = self.out.written().len();
        let mut written = Ok(());
        self.source.pairs(dict, |key, value| {
            written = self
                .key(key)
                .ok_or(Unwritten::FallsThrough)
                .and_then(|()| self.value(None, value, depth));
            written.is_ok()
        });
        written?;
        close(self.out, start, b'{', b'}').ok_or(Unwritten::FallsThrough)
    }

    fn key(&mut self, key: S::Value) -> Option<()> {
        match self.source.look(key) {
            Seen::Text(Text::Ascii(key)) => self.out.text([b','], key, true, [b':']),
            Seen::Text(key) => {
                self.out.bytes(b",")?;
                write_text(self.out, key)?;
                self.out.bytes(b":")
            }
            _ => None,
        }
    }
}

// These return `None` without memory, and for what is left to the caller.

/// Ends an object or array that begins at `start`, where so far there is the comma before its first item, or nothing; or an object
/// with its opening.
#[inline(always)]
fn close(out: &mut Output, start: usize, opening: u8, closing: u8) -> Option<()> {
    if out.written().len() == start {
        return out.bytes(&[opening, closing]);
    }
    out.change(start, opening);
    out.bytes(&[closing])
}

#[inline(never)]
fn write_text(out: &mut Output, text: Text<'_>) -> Option<()> {
    match text {
        Text::Ascii(bytes) => out.text([], bytes, true, []),
        Text::Utf8(bytes) => out.text([], bytes, false, []),
        Text::Latin(bytes) => write_characters(out, bytes.iter().map(|&byte| u32::from(byte))),
        Text::Wide(units) => write_characters(out, units.iter().map(|&unit| u32::from(unit))),
        Text::Full(units) => write_characters(out, units.iter().copied()),
    }
}

/// Writes a string of characters, of which none may be half of a surrogate pair.
fn write_characters(out: &mut Output, characters: impl Iterator<Item = u32>) -> Option<()> {
    out.bytes(b"\"")?;
    for character in characters {
        match character {
            0..0x20 | 0x22 | 0x5c => {
                #[allow(clippy::cast_possible_truncation)] // It is ASCII.
                out.bytes(escape_of(character as u8))?;
            }
            0x2028 => out.bytes(b"\\u2028")?,
            0x2029 => out.bytes(b"\\u2029")?,
            _ => {
                let character = char::from_u32(character)?;
                out.bytes(character.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
        }
    }
    out.bytes(b"\"")
}

/// Writes the fewest digits that say this number and no other. With an exponent if the number is below 0.00001, or not below 1e16;
/// `null` if it is not finite.
#[inline(never)]
fn write_float(out: &mut Output, value: f64) -> Option<()> {
    if !value.is_finite() {
        return out.bytes(b"null");
    }
    let value_of = |written: &Scratch| written.text().and_then(|text| text.parse::<f64>().ok());
    let (negative, value) = (value.is_sign_negative(), value.abs());
    let mut written = Scratch::default();
    write!(written, "{value:e}").ok()?;
    let mut e = written.exponent()?;
    if e > MAX_UNTIED {
        // It may be in the middle between two numbers of so many digits, of which the even one is written.
        let mut even = Scratch::default();
        write!(even, "{value:.*e}", e - 2).ok()?;
        if value_of(&even) == Some(value) {
            (e, written) = (even.exponent()?, even);
        }
    }
    let written = &written.bytes[..written.len];
    let exponent: i32 = std::str::from_utf8(&written[e + 1..]).ok()?.parse().ok()?;
    if negative {
        out.bytes(b"-")?;
    }
    // One digit, a point, and the others.
    let (first, others) = (written[0], written.get(2..e).unwrap_or_default());
    let zeros = &[b'0'; 16];
    match usize::try_from(exponent) {
        Ok(whole) if whole < 16 => {
            let (before, behind) = others.split_at(others.len().min(whole));
            out.bytes(&[first])?;
            out.bytes(before)?;
            out.bytes(&zeros[..whole - before.len()])?;
            out.bytes(b".")?;
            out.bytes(if behind.is_empty() { b"0" } else { behind })
        }
        Err(_) if exponent >= -5 => {
            out.bytes(b"0.")?;
            out.bytes(&zeros[..exponent.unsigned_abs() as usize - 1])?;
            out.bytes(&[first])?;
            out.bytes(others)
        }
        _ => out.bytes(written),
    }
}

/// What a number is formatted in.
#[derive(Default)]
struct Scratch {
    bytes: [u8; MAX_NUMBER],
    len: usize,
}

impl Scratch {
    fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes[..self.len]).ok()
    }

    /// Where the exponent begins.
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
