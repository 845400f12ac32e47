//! Finds a line's kind by its structure.
//!
//! The basic idea is simple: the line `{"event":{"type":"content_block_stop"},"type":"stream_event"}` has the kind
//! `stream_event/content_block_stop`. Because a tag may be anywhere in an object, and the text of a tag may be in any string, the scan
//! walks the line key by key.
//!
//! The scan walks only the objects on a *path*: the line itself, the values of its keys `event`, `request` and `response`, and the values of
//! `delta` and `content_block` in `event`. Each of these objects has one or two tags of the kind. The scan skips all other values: it only
//! matches their quotes and brackets.
//!
//! A line that does not have the structure of one JSON object is *unclear*. A line is also unclear if two JSON parsers could disagree about
//! its tags: if it has a tag twice with different values, a path key twice, or a tag that is not a valid string.
//!
//! The time is linear in the length of the line. There is no recursion and no allocation, and every search ends at the LF of the line.
// The operations are inlined into one function per engine, because only this function may use vector instructions.
#![allow(clippy::inline_always)]

use super::cursor::{Cursor, Passed};
use super::string::{decoded, is, is_text, Span};
use crate::simd::{Engine, Operation};

/// The kind of a line, as spans of its tags. All are `None` if the line is unclear or has no `type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindSpans {
    /// The top-level `type`.
    pub name: Option<Span>,
    /// `event.type` of a `stream_event`, `request.subtype` of a `control_request`, `response.subtype` of a `control_response`, and the
    /// top-level `subtype` of any other line.
    pub subtype: Option<Span>,
    /// `event.delta.type` of a `stream_event`, or `event.content_block.type` if it has no delta.
    pub detail: Option<Span>,
}

/// The result of scanning one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The index after the line's LF, or the length of the data if there is no LF.
    pub end: usize,
    /// False if the line is unclear (see the [module](self)).
    pub clear: bool,
    /// The kind.
    pub kind: KindSpans,
    /// The value of the top-level `uuid`, if it is a string.
    pub uuid: Option<Span>,
    /// The first string in `event.delta` that is not its tag.
    pub text: Option<Span>,
}

/// An object that the scan walks key by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Path {
    Top,
    Event,
    Request,
    Response,
    Delta,
    Block,
}

impl Path {
    #[inline]
    pub(crate) fn parent(self) -> Self {
        match self {
            Self::Top | Self::Event | Self::Request | Self::Response => Self::Top,
            Self::Delta | Self::Block => Self::Event,
        }
    }
}

/// The meaning of a key in its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Other,
    Uuid,
    Tag(Tag),
    Path(Path),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    Type,
    Subtype,
    Request,
    Response,
    Event,
    Delta,
    Block,
}

const TAGS: usize = 7;
/// The bit of the first path key in `Scanner::seen`, after the bits of the tags.
const PATHS: u32 = 7;

/// Returns the meaning of `key`, which has no escapes, in the object at `path`.
#[inline(always)]
pub(crate) fn meaning(path: Path, key: &[u8]) -> Key {
    match (path, key) {
        (Path::Top, b"type") => Key::Tag(Tag::Type),
        (Path::Top, b"subtype") => Key::Tag(Tag::Subtype),
        (Path::Top, b"event") => Key::Path(Path::Event),
        (Path::Top, b"request") => Key::Path(Path::Request),
        (Path::Top, b"response") => Key::Path(Path::Response),
        (Path::Top, b"uuid") => Key::Uuid,
        (Path::Request, b"subtype") => Key::Tag(Tag::Request),
        (Path::Response, b"subtype") => Key::Tag(Tag::Response),
        (Path::Event, b"type") => Key::Tag(Tag::Event),
        (Path::Event, b"delta") => Key::Path(Path::Delta),
        (Path::Event, b"content_block") => Key::Path(Path::Block),
        (Path::Delta, b"type") => Key::Tag(Tag::Delta),
        (Path::Block, b"type") => Key::Tag(Tag::Block),
        _ => Key::Other,
    }
}

/// Returns the meaning of a key with escapes, like [`meaning`].
#[cold]
pub(crate) fn meaning_escaped(path: Path, key: &[u8]) -> Key {
    // The longest key with a meaning has 13 bytes.
    let mut bytes = [0; 16];
    let mut length = 0;
    for unit in decoded(key) {
        let (Some(place), Ok(byte)) = (bytes.get_mut(length), u8::try_from(unit)) else {
            return Key::Other;
        };
        *place = byte;
        length += 1;
    }
    meaning(path, &bytes[..length])
}

/// Scans the line that begins at `from`. The line ends at the first LF, or at the end of `data`.
#[inline(always)]
pub fn scan<E: Engine>(engine: E, data: &[u8], from: usize) -> Scan {
    let mut scanner = Scanner::<E>::new(data, from);
    let clear = scanner.line(engine).is_some();
    let end = line_end(data, scanner.cursor.at);
    if !clear {
        return Scan {
            end,
            ..Scan::default()
        };
    }
    Scan {
        end,
        clear,
        kind: kind(data, &scanner.tags),
        uuid: scanner.uuid,
        text: scanner.text,
    }
}

/// Scans the line of the data that begins at this index.
pub struct ScanLine<'a>(pub &'a [u8], pub usize);

impl Operation for ScanLine<'_> {
    type Output = Scan;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Scan {
        scan(engine, self.0, self.1)
    }
}

/// Returns the index after the first LF at or after `at`, or the length of the data.
#[inline]
fn line_end(data: &[u8], at: usize) -> usize {
    match data.get(at) {
        Some(b'\n') => at + 1,
        _ => memchr::memchr(b'\n', &data[at..]).map_or(data.len(), |found| at + found + 1),
    }
}

fn kind(data: &[u8], tags: &[Option<Span>; TAGS]) -> KindSpans {
    let tag = |tag: Tag| tags[tag as usize];
    let Some(name) = tag(Tag::Type) else {
        return KindSpans::default();
    };
    let (subtype, detail) = if is(data, name, b"stream_event") {
        (tag(Tag::Event), tag(Tag::Delta).or(tag(Tag::Block)))
    } else if is(data, name, b"control_request") {
        (tag(Tag::Request), None)
    } else if is(data, name, b"control_response") {
        (tag(Tag::Response), None)
    } else {
        (tag(Tag::Subtype), None)
    };
    KindSpans {
        name: Some(name),
        subtype,
        detail,
    }
}

struct Scanner<'a, E: Engine> {
    cursor: Cursor<'a, E>,
    /// A bit for each tag and path key found in the line so far.
    seen: u16,
    tags: [Option<Span>; TAGS],
    uuid: Option<Span>,
    text: Option<Span>,
}

impl<'a, E: Engine> Scanner<'a, E> {
    #[inline(always)]
    fn new(data: &'a [u8], at: usize) -> Self {
        Self {
            cursor: Cursor::new(data, at),
            seen: 0,
            tags: [None; TAGS],
            uuid: None,
            text: None,
        }
    }

    /// Scans the line, but not past its LF. Returns `None` if the line is unclear.
    #[inline(always)]
    fn line(&mut self, engine: E) -> Option<()> {
        self.cursor.space();
        self.cursor.take(b'{')?;
        let mut path = Path::Top;
        let mut first = true;
        loop {
            self.cursor.space();
            if first && self.cursor.byte() == b'}' {
                // The object is empty. The loop below closes it.
            } else {
                self.cursor.take(b'"')?;
                let key = self.cursor.string(engine)?;
                let key = if key.escaped {
                    meaning_escaped(path, key.of(self.cursor.data))
                } else {
                    meaning(path, key.of(self.cursor.data))
                };
                self.cursor.space();
                self.cursor.take(b':')?;
                self.cursor.space();
                if let Key::Path(inner) = key {
                    self.see(PATHS + inner as u32)?;
                    if self.cursor.byte() == b'{' {
                        self.cursor.at += 1;
                        path = inner;
                        first = true;
                        continue;
                    }
                }
                self.value(engine, path, key)?;
                self.cursor.space();
            }
            first = false;
            loop {
                match self.cursor.byte() {
                    b',' => break,
                    b'}' if path == Path::Top => {
                        self.cursor.at += 1;
                        self.cursor.space();
                        return (self.cursor.byte() == b'\n').then_some(());
                    }
                    b'}' => path = path.parent(),
                    _ => return None,
                }
                self.cursor.at += 1;
                self.cursor.space();
            }
            self.cursor.at += 1;
        }
    }

    /// Sets the bit of a key. Returns `None` if the line already has the key.
    #[inline(always)]
    fn see(&mut self, bit: u32) -> Option<()> {
        if self.seen >> bit & 1 == 1 {
            return None;
        }
        self.seen |= 1 << bit;
        Some(())
    }

    #[inline(always)]
    fn value(&mut self, engine: E, path: Path, key: Key) -> Option<()> {
        let found = match self.cursor.value(engine)? {
            Passed::Text(text) => Some(text),
            _ => None,
        };
        match key {
            Key::Other if path == Path::Delta && self.text.is_none() => self.text = found,
            Key::Tag(tag) => self.tag(engine, tag, found)?,
            Key::Uuid => self.uuid = found,
            _ => (),
        }
        Some(())
    }

    #[inline(always)]
    fn tag(&mut self, engine: E, tag: Tag, value: Option<Span>) -> Option<()> {
        let data = self.cursor.data;
        if let Some(span) = value {
            // An ASCII string without escapes is valid. Any other string has a special byte, or a byte that is not ASCII.
            let plain = engine.special_ascii(data, span.start);
            if plain != (span.start + span.len, true) && !is_text(span.of(data)) {
                return None;
            }
        }
        let place = tag as usize;
        if self.see(tag as u32).is_none() && !self.same(self.tags[place], value) {
            return None;
        }
        self.tags[place] = value;
        Some(())
    }

    #[cold]
    fn same(&self, one: Option<Span>, other: Option<Span>) -> bool {
        let data = self.cursor.data;
        match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => decoded(one.of(data)).eq(decoded(other.of(data))),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
