//! Typed messages in, lines out: the other way, with as little known of what the values are.
//!
//! The [`Source`] says what a value is, and the [`Writer`] writes it, as the caller's slower way would. Of a class of records the
//! writer is told the keys in their order, the slot of each, and which value is left out; what a field may hold does not matter,
//! for values are written as what they are. Whatever is unusual is left to the caller, a whole line at a time.

#![allow(clippy::inline_always)] // They write a few bytes, on the way of every value.

use std::fmt::Write;

use super::read::MAX_DEPTH;
use crate::simd::{escape, escape_of, escaped_room, PAD};

/// The bytes that the output may keep between two lines.
const KEPT_BYTES: usize = 64 * 1024;
/// The longest number, and more: `-1.2345678901234567e-300`.
const MAX_NUMBER: usize = 32;
/// The bytes of 14 digits and a point: a number of one digit more, which a float can have exactly, is not that float with fewer.
const MAX_UNTIED: usize = 15;
/// The bytes of a string that are written at once.
const PART: usize = 4096;

/// Says what values are. Nobody changes or frees one in `'a`.
pub trait Source<'a> {
    /// A value.
    type Value: Copy;
    /// The fields of a class: which slot each has, and with which value it is left out.
    type Fields;

    /// What a value is.
    fn look(&self, value: Self::Value) -> Seen<'a, Self::Value>;
    /// The text of a string of ASCII. It may be `None` for any value, which is then looked at.
    fn ascii(&self, value: Self::Value) -> Option<&'a [u8]>;
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

/// A few bytes that are written often.
pub struct Words {
    /// The bytes, with zeros behind.
    bytes: [u8; PAD],
    len: usize,
    /// All of them, if they are more.
    long: Box<[u8]>,
}

impl Words {
    /// These bytes.
    #[must_use]
    pub fn new(words: &[u8]) -> Self {
        let (mut bytes, mut long) = ([0; PAD], Box::default());
        if let Some(part) = bytes.get_mut(..words.len()) {
            part.copy_from_slice(words);
        } else {
            long = words.into();
        }
        Self {
            bytes,
            len: words.len(),
            long,
        }
    }

    fn all(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.long)
    }
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
    /// [`Unwritten`]: it is left to the caller. What was written of it stays there.
    pub fn line<'a>(&mut self, value: S::Value) -> Written<S::Value>
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
        out.byte(b'\n').ok_or(Unwritten::FallsThrough)
    }

    /// What was written.
    pub fn written(&self) -> &[u8] {
        &self.out.bytes[..self.out.len]
    }

    /// Forgets what was written.
    pub fn clear(&mut self) {
        self.out.len = 0;
        self.out.bytes.truncate(KEPT_BYTES);
        self.out.bytes.shrink_to(KEPT_BYTES);
    }

    /// The bytes that the output has room for.
    #[cfg(test)]
    fn kept(&self) -> usize {
        self.out.bytes.capacity()
    }
}

struct Writing<'w, S, F> {
    source: &'w S,
    shapes: &'w [Shape<F>],
    out: &'w mut Output,
}

impl<'a, S: Source<'a>> Writing<'_, S, S::Fields> {
    /// The text of a string of ASCII that may be written at once.
    #[inline(always)]
    fn short_ascii(&self, value: S::Value) -> Option<&'a [u8]> {
        self.source.ascii(value).filter(|text| text.len() <= PART)
    }

    #[inline(always)]
    fn value(&mut self, value: S::Value, depth: usize) -> Written<S::Value> {
        if let Some(text) = self.short_ascii(value) {
            return self.out.part(text, b"").ok_or(Unwritten::FallsThrough);
        }
        self.other(value, depth)
    }

    /// Writes a value that is no short string of ASCII.
    fn other(&mut self, value: S::Value, depth: usize) -> Written<S::Value> {
        let written = match self.source.look(value) {
            Seen::Text(text) => self.out.text(text),
            Seen::Null => self.out.bytes(b"null"),
            Seen::Bool(true) => self.out.bytes(b"true"),
            Seen::Bool(false) => self.out.bytes(b"false"),
            Seen::Int(value) => self.out.int(value),
            Seen::Float(value) => self.out.float(value),
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
        let start = self.out.len;
        self.out
            .words(&shape.opening)
            .ok_or(Unwritten::FallsThrough)?;
        let mut from = 0;
        while let Some((index, value)) = self.source.next(record, &shape.fields, from) {
            let value = value.ok_or(Unwritten::FallsThrough)?;
            from = index + 1;
            let key = &shape.keys[index];
            if let Some(text) = self.short_ascii(value) {
                self.out
                    .words_and_part(key, text)
                    .ok_or(Unwritten::FallsThrough)?;
            } else {
                self.out.words(key).ok_or(Unwritten::FallsThrough)?;
                self.other(value, depth)?;
            }
        }
        if let Some(extra) = self.source.extra(record, &shape.fields) {
            self.extra(extra, shape, depth)?;
        }
        self.out
            .close(start, b'{', b'}')
            .ok_or(Unwritten::FallsThrough)
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
            let start = self.out.len;
            written = self
                .key(key)
                .filter(|()| {
                    let key = &self.out.bytes[start..self.out.len];
                    let mut keys = shape.keys.iter().chain([&shape.tag_key]);
                    keys.all(|other| other.all() != key)
                })
                .ok_or(Unwritten::FallsThrough)
                .and_then(|()| self.value(value, depth));
            written.is_ok()
        });
        written
    }

    fn list(&mut self, list: S::Value, depth: usize) -> Written<S::Value> {
        if depth >= MAX_DEPTH {
            return Err(Unwritten::FallsThrough);
        }
        let start = self.out.len;
        let mut written = Ok(());
        self.source.items(list, |item| {
            written = self
                .out
                .byte(b',')
                .ok_or(Unwritten::FallsThrough)
                .and_then(|()| self.value(item, depth));
            written.is_ok()
        });
        written?;
        self.out
            .close(start, b'[', b']')
            .ok_or(Unwritten::FallsThrough)
    }

    fn dict(&mut self, dict: S::Value, depth: usize) -> Written<S::Value> {
        if depth >= MAX_DEPTH {
            return Err(Unwritten::FallsThrough);
        }
        let start = self.out.len;
        let mut written = Ok(());
        self.source.pairs(dict, |key, value| {
            written = self
                .key(key)
                .ok_or(Unwritten::FallsThrough)
                .and_then(|()| self.value(value, depth));
            written.is_ok()
        });
        written?;
        self.out
            .close(start, b'{', b'}')
            .ok_or(Unwritten::FallsThrough)
    }

    fn key(&mut self, key: S::Value) -> Option<()> {
        self.out.byte(b',')?;
        if let Some(key) = self.short_ascii(key) {
            return self.out.part(key, b":");
        }
        let Seen::Text(key) = self.source.look(key) else {
            return None;
        };
        self.out.text(key)?;
        self.out.byte(b':')
    }
}

/// Bytes that are written. Its functions return `None` without memory, and for what is left to the caller.
#[derive(Default)]
struct Output {
    /// Those that are written, and others behind.
    bytes: Vec<u8>,
    len: usize,
}

impl Output {
    /// Makes room.
    #[inline(always)]
    fn room(&mut self, len: usize) -> Option<()> {
        if self.bytes.len() - self.len < len {
            self.grow(len)?;
        }
        Some(())
    }

    #[cold]
    fn grow(&mut self, len: usize) -> Option<()> {
        self.bytes.try_reserve(len).ok()?;
        self.bytes.resize(self.bytes.capacity(), 0);
        Some(())
    }

    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.room(bytes.len())?;
        let end = self.len + bytes.len();
        self.bytes[self.len..end].copy_from_slice(bytes);
        self.len = end;
        Some(())
    }

    #[inline(always)]
    fn byte(&mut self, byte: u8) -> Option<()> {
        self.bytes(&[byte])
    }

    #[inline(always)]
    fn words(&mut self, words: &Words) -> Option<()> {
        if words.len > PAD {
            return self.bytes(&words.long);
        }
        self.bytes(&words.bytes)?;
        self.len -= PAD - words.len;
        Some(())
    }

    /// Ends an object or array that begins at `start`, where so far there is the comma before its first item, or nothing; or an
    /// object with its opening.
    #[inline(always)]
    fn close(&mut self, start: usize, opening: u8, closing: u8) -> Option<()> {
        if self.len == start {
            self.byte(opening)?;
        } else {
            self.bytes[start] = opening;
        }
        self.byte(closing)
    }

    /// Writes a string of ASCII with its quotes, of at most [`PART`] bytes, and what follows.
    #[inline(always)]
    fn part(&mut self, bytes: &[u8], behind: &[u8]) -> Option<()> {
        self.room(escaped_room(bytes.len()) + 2 + behind.len())?;
        self.len = quoted(bytes, &mut self.bytes, self.len);
        for &byte in behind {
            self.bytes[self.len] = byte;
            self.len += 1;
        }
        Some(())
    }

    /// Writes words, and a string as [`part`](Self::part) does.
    #[inline(always)]
    fn words_and_part(&mut self, words: &Words, bytes: &[u8]) -> Option<()> {
        if words.len > PAD {
            self.bytes(&words.long)?;
            return self.part(bytes, b"");
        }
        self.room(PAD + escaped_room(bytes.len()) + 2)?;
        let to = self.len;
        self.bytes[to..to + PAD].copy_from_slice(&words.bytes);
        self.len = quoted(bytes, &mut self.bytes, to + words.len);
        Some(())
    }

    /// Writes a string.
    #[inline(never)]
    fn text(&mut self, text: Text<'_>) -> Option<()> {
        self.byte(b'"')?;
        match text {
            Text::Ascii(bytes) => self.parts::<false>(bytes)?,
            Text::Utf8(bytes) => self.parts::<true>(bytes)?,
            Text::Latin(bytes) => self.characters(bytes.iter().map(|&byte| u32::from(byte)))?,
            Text::Wide(units) => self.characters(units.iter().map(|&unit| u32::from(unit)))?,
            Text::Full(units) => self.characters(units.iter().copied())?,
        }
        self.byte(b'"')
    }

    fn parts<const UTF8: bool>(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let mut end = bytes.len().min(PART);
            // No character is cut.
            while bytes.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
                end -= 1;
            }
            let (part, rest) = bytes.split_at(end);
            self.room(escaped_room(part.len()))?;
            self.len = escape::<UTF8>(part, &mut self.bytes, self.len);
            bytes = rest;
        }
        Some(())
    }

    /// Writes characters, of which none may be half of a surrogate pair.
    fn characters(&mut self, characters: impl ExactSizeIterator<Item = u32>) -> Option<()> {
        self.room(3 * characters.len())?;
        for character in characters {
            match character {
                0..0x20 | 0x22 | 0x5c => {
                    #[allow(clippy::cast_possible_truncation)] // It is ASCII.
                    self.bytes(escape_of(character as u8))?;
                }
                0x2028 => self.bytes(b"\\u2028")?,
                0x2029 => self.bytes(b"\\u2029")?,
                _ => {
                    let mut bytes = [0; 4];
                    let character = char::from_u32(character)?;
                    self.bytes(character.encode_utf8(&mut bytes).as_bytes())?;
                }
            }
        }
        Some(())
    }

    #[inline(always)]
    fn int(&mut self, value: i64) -> Option<()> {
        self.room(MAX_NUMBER)?;
        if value < 0 {
            self.byte(b'-')?;
        }
        let mut rest = value.unsigned_abs();
        let digits = rest.checked_ilog10().map_or(1, |log| log as usize + 1);
        let end = self.len + digits;
        for place in self.bytes[self.len..end].iter_mut().rev() {
            #[allow(clippy::cast_possible_truncation)] // It is a digit.
            let digit = (rest % 10) as u8;
            *place = b'0' + digit;
            rest /= 10;
        }
        self.len = end;
        Some(())
    }

    /// The fewest digits that say this number and no other. With an exponent if the number is below 0.00001, or not below 1e16;
    /// `null` if it is not finite.
    fn float(&mut self, value: f64) -> Option<()> {
        if !value.is_finite() {
            return self.bytes(b"null");
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
            self.byte(b'-')?;
        }
        // One digit, a point, and the others.
        let (first, others) = (written[0], written.get(2..e).unwrap_or_default());
        let zeros = &[b'0'; 16];
        match usize::try_from(exponent) {
            Ok(whole) if whole < 16 => {
                self.byte(first)?;
                let (before, behind) = others.split_at(others.len().min(whole));
                self.bytes(before)?;
                self.bytes(&zeros[..whole - before.len()])?;
                self.byte(b'.')?;
                self.bytes(if behind.is_empty() { b"0" } else { behind })
            }
            Err(_) if exponent >= -5 => {
                self.bytes(b"0.")?;
                self.bytes(&zeros[..exponent.unsigned_abs() as usize - 1])?;
                self.byte(first)?;
                self.bytes(others)
            }
            _ => self.bytes(written),
        }
    }
}

/// Writes a string of ASCII with its quotes from `to` on, where there is room, and returns where it ends.
#[inline(always)]
fn quoted(bytes: &[u8], out: &mut [u8], to: usize) -> usize {
    out[to] = b'"';
    let end = escape::<false>(bytes, out, to + 1);
    out[end] = b'"';
    end + 1
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
