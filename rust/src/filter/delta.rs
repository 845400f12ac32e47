//! Decides whether a delta may be merged with other deltas, and finds its text, uuid and index.
//!
//! The basic idea is simple: a line such as `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":…},…}` is
//! *mergeable* if all JSON parsers agree about it. It must be strictly valid JSON and UTF-8, and no object on a path
//! ([`scan`](crate::kinds::scan)) may have a key twice. The kind of its delta is known, `event.index` is an integer, and session, parent
//! and uuid are strings without a backslash.
//!
//! Decoders refuse some valid JSON: deeply nested values, and numbers out of range. If two such lines were merged, they would become one
//! invalid line instead of two. So a line is not mergeable if it has more than [`MAX_DEPTH`] open containers, or a number with an exponent
//! or more than [`MAX_DIGITS`] bytes.
//!
//! The time is linear in the length of the line, except for a sort of the keys. There is no recursion.
// The operations are inlined into one function per engine, because only this function may use vector instructions.
#![allow(clippy::inline_always)]

use std::collections::TryReserveError;

use crate::kinds::scan::{meaning, meaning_escaped, Key, Path, Scan};
use crate::kinds::string::{decoded, Span};
use crate::simd::Engine;

/// The maximum number of open arrays and objects in a mergeable delta, including the line itself.
pub const MAX_DEPTH: usize = 64;
/// The maximum length in bytes of a mergeable delta, including its LF. Merging a longer delta takes as long as decoding it.
pub const MAX_BYTES: usize = 4 * 1024;
/// The maximum length in bytes of a number in a mergeable delta.
pub const MAX_DIGITS: usize = 64;

/// The parts of a mergeable delta, as spans of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The kind of the delta.
    pub kind: DeltaKind,
    /// The delta's text. Its escapes are not decoded.
    pub text: Span,
    /// `uuid`.
    pub uuid: Option<Span>,
    /// The digits of `event.index`.
    pub index: Span,
    /// `session_id`, unless it is null or absent.
    pub session: Option<Span>,
    /// `parent_tool_use_id`, unless it is null or absent.
    pub parent: Option<Span>,
}

/// The kinds of delta whose text may be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaKind {
    /// `text_delta`, whose text is `text`.
    Text,
    /// `thinking_delta`, whose text is `thinking`.
    Thinking,
    /// `input_json_delta`, whose text is `partial_json`.
    InputJson,
}

impl DeltaKind {
    const ALL: [Self; 3] = [Self::Text, Self::Thinking, Self::InputJson];

    /// Returns the tag of the delta, and the key of its text.
    fn names(self) -> (&'static [u8], &'static [u8]) {
        match self {
            Self::Text => (b"text_delta", b"text"),
            Self::Thinking => (b"thinking_delta", b"thinking"),
            Self::InputJson => (b"input_json_delta", b"partial_json"),
        }
    }

    /// Returns the delta kind of a scanned line from its tags; `None` if the line is not a known delta.
    #[must_use]
    pub fn of(data: &[u8], scan: &Scan) -> Option<Self> {
        let kind = &scan.kind;
        let is = |tag: Option<Span>, text| {
            tag.is_some_and(|tag| crate::kinds::string::is(data, tag, text))
        };
        if !is(kind.name, b"stream_event") || !is(kind.subtype, b"content_block_delta") {
            return None;
        }
        Self::ALL
            .into_iter()
            .find(|each| is(kind.detail, each.names().0))
    }
}

/// Memory that [`check`] reuses for the next line.
#[derive(Debug, Default)]
pub struct Scratch {
    keys: Vec<(Path, Span)>,
}

impl Scratch {
    /// Returns the allocated memory in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.keys.capacity() * size_of::<(Path, Span)>()
    }
}

/// Returns the parts of the line `data[from..end]`, which has no LF; `None` if the line is not mergeable. The caller must have scanned the
/// line and found that it is clear and has a delta of this kind.
///
/// # Errors
///
/// Memory for `scratch` ran out.
#[inline(always)]
pub fn check<E: Engine>(
    engine: E,
    data: &[u8],
    from: usize,
    end: usize,
    kind: DeltaKind,
    scratch: &mut Scratch,
) -> Result<Option<Delta>, TryReserveError> {
    let data = &data[..end];
    if simdutf8::basic::from_utf8(&data[from..]).is_err() {
        return Ok(None);
    }
    scratch.keys.clear();
    let mut parser = Parser {
        data,
        at: from,
        kind,
        scratch,
        depth: 0,
        objects: 0,
        path: None,
        inner: 0,
        fields: [Field::Absent; FIELDS],
    };
    match parser.line(engine) {
        Ok(()) => Ok(parser.delta()),
        Err(Stop::Invalid) => Ok(None),
        Err(Stop::Memory(error)) => Err(error),
    }
}

enum Stop {
    Invalid,
    Memory(TryReserveError),
}

impl From<TryReserveError> for Stop {
    fn from(error: TryReserveError) -> Self {
        Self::Memory(error)
    }
}

/// The value of a key that the merge needs.
#[derive(Clone, Copy, Debug)]
enum Field {
    Absent,
    Null,
    Text(Span),
    /// A number, true or false.
    Word(Span),
    Container,
}

const TEXT: usize = 0;
const UUID: usize = 1;
const INDEX: usize = 2;
const SESSION: usize = 3;
const PARENT: usize = 4;
const FIELDS: usize = 5;

struct Parser<'a> {
    data: &'a [u8],
    at: usize,
    kind: DeltaKind,
    scratch: &'a mut Scratch,
    /// The number of open containers.
    depth: usize,
    /// A bit for each open container: 1 for an object, 0 for an array. The lowest bit is the innermost container.
    objects: u64,
    /// The innermost open object on a path; `None` before the line's object begins.
    path: Option<Path>,
    /// The number of open containers inside `path`.
    inner: usize,
    fields: [Field; FIELDS],
}

impl Parser<'_> {
    #[inline(always)]
    fn line<E: Engine>(&mut self, engine: E) -> Result<(), Stop> {
        let mut key = Key::Path(Path::Top);
        let mut field = None;
        loop {
            // A value begins here.
            self.space();
            let start = self.at;
            let mut empty = false;
            let value = match self.peek()? {
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    self.push(open == b'{')?;
                    match key {
                        Key::Path(inner) if open == b'{' => {
                            self.path = Some(inner);
                            self.inner = 0;
                        }
                        _ => self.inner += 1,
                    }
                    self.space();
                    empty = self.peek()? == open + 2;
                    if let Some(field) = field {
                        self.fields[field] = Field::Container;
                    }
                    if !empty {
                        if open == b'{' {
                            (key, field) = self.key(engine)?;
                        } else {
                            (key, field) = (Key::Other, None);
                        }
                        continue;
                    }
                    Field::Container
                }
                b'"' => {
                    self.at += 1;
                    Field::Text(self.string(engine)?)
                }
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => {
                    self.word(b"null")?;
                    Field::Null
                }
                _ => {
                    self.number()?;
                    Field::Word(self.span(start))
                }
            };
            if let Some(field) = field {
                self.fields[field] = value;
            }
            loop {
                if self.depth == 0 {
                    return if self.at == self.data.len() {
                        Ok(())
                    } else {
                        Err(Stop::Invalid)
                    };
                }
                self.space();
                let object = self.objects & 1 == 1;
                match self.peek()? {
                    b',' if !empty => {
                        self.at += 1;
                        (key, field) = if object {
                            self.space();
                            self.key(engine)?
                        } else {
                            (Key::Other, None)
                        };
                        break;
                    }
                    b'}' if object => self.close(),
                    b']' if !object => self.close(),
                    _ => return Err(Stop::Invalid),
                }
                empty = false;
            }
        }
    }

    fn delta(&mut self) -> Option<Delta> {
        let Field::Text(text) = self.fields[TEXT] else {
            return None;
        };
        let Field::Word(index) = self.fields[INDEX] else {
            return None;
        };
        if !index.of(self.data).iter().all(u8::is_ascii_digit) {
            return None;
        }
        let optional = |field: Field, nullable| match field {
            Field::Text(span) if !span.escaped => Some(Some(span)),
            Field::Absent => Some(None),
            Field::Null if nullable => Some(None),
            _ => None,
        };
        let delta = Delta {
            kind: self.kind,
            text,
            index,
            uuid: optional(self.fields[UUID], false)?,
            session: optional(self.fields[SESSION], true)?,
            parent: optional(self.fields[PARENT], true)?,
        };
        (!self.repeats()).then_some(delta)
    }

    /// Returns whether an object on a path has a key twice.
    fn repeats(&mut self) -> bool {
        let data = self.data;
        let keys = &mut self.scratch.keys;
        if keys.len() <= 32 && keys.iter().all(|(_, key)| !key.escaped) {
            let same = |one: &(Path, Span), other: &(Path, Span)| {
                one.1.len == other.1.len && one.0 == other.0 && one.1.of(data) == other.1.of(data)
            };
            return (1..keys.len()).any(|at| keys[..at].iter().any(|key| same(key, &keys[at])));
        }
        keys.sort_unstable_by(|one, other| {
            let texts = || decoded(one.1.of(data)).cmp(decoded(other.1.of(data)));
            (one.0 as u8).cmp(&(other.0 as u8)).then_with(texts)
        });
        keys.windows(2).any(|pair| {
            pair[0].0 == pair[1].0 && decoded(pair[0].1.of(data)).eq(decoded(pair[1].1.of(data)))
        })
    }

    #[inline(always)]
    fn peek(&self) -> Result<u8, Stop> {
        self.data.get(self.at).copied().ok_or(Stop::Invalid)
    }

    #[inline(always)]
    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r') = self.data.get(self.at) {
            self.at += 1;
        }
    }

    fn span(&self, start: usize) -> Span {
        Span {
            start,
            len: self.at - start,
            escaped: false,
        }
    }

    #[inline]
    fn push(&mut self, object: bool) -> Result<(), Stop> {
        if self.depth == MAX_DEPTH {
            return Err(Stop::Invalid);
        }
        self.objects = self.objects << 1 | u64::from(object);
        self.depth += 1;
        Ok(())
    }

    #[inline]
    fn close(&mut self) {
        self.at += 1;
        self.depth -= 1;
        self.objects >>= 1;
        if self.inner > 0 {
            self.inner -= 1;
        } else {
            self.path = self.path.map(Path::parent);
        }
        if self.depth == 0 {
            self.space();
        }
    }

    /// Moves past a key and its colon. Returns the meaning of the key, and the index of its value in `fields`.
    #[inline(always)]
    fn key<E: Engine>(&mut self, engine: E) -> Result<(Key, Option<usize>), Stop> {
        if self.peek()? != b'"' {
            return Err(Stop::Invalid);
        }
        self.at += 1;
        let key = self.string(engine)?;
        self.space();
        if self.peek()? != b':' {
            return Err(Stop::Invalid);
        }
        self.at += 1;
        let Some(path) = self.path.filter(|_| self.inner == 0) else {
            return Ok((Key::Other, None));
        };
        self.scratch.keys.try_reserve(1)?;
        self.scratch.keys.push((path, key));
        let meaning = if key.escaped {
            meaning_escaped(path, key.of(self.data))
        } else {
            meaning(path, key.of(self.data))
        };
        Ok((meaning, self.field(path, key)))
    }

    #[inline]
    fn field(&self, path: Path, key: Span) -> Option<usize> {
        let is = |text| crate::kinds::string::is(self.data, key, text);
        match path {
            Path::Top if is(b"uuid") => Some(UUID),
            Path::Top if is(b"session_id") => Some(SESSION),
            Path::Top if is(b"parent_tool_use_id") => Some(PARENT),
            Path::Event if is(b"index") => Some(INDEX),
            Path::Delta if is(self.kind.names().1) => Some(TEXT),
            _ => None,
        }
    }

    /// Moves from after an opening quote to after the closing quote. Returns the contents of the string.
    #[inline(always)]
    fn string<E: Engine>(&mut self, engine: E) -> Result<Span, Stop> {
        let start = self.at;
        let end = engine.special(self.data, start);
        self.at = end;
        let mut span = self.span(start);
        if self.peek()? != b'"' {
            let (end, _) = engine.valid_end(self.data, end).ok_or(Stop::Invalid)?;
            self.at = end;
            span = self.span(start);
            span.escaped = true;
        }
        self.at += 1;
        Ok(span)
    }

    fn word(&mut self, word: &[u8]) -> Result<Field, Stop> {
        let start = self.at;
        if !self.data[start..].starts_with(word) {
            return Err(Stop::Invalid);
        }
        self.at += word.len();
        Ok(Field::Word(self.span(start)))
    }

    fn number(&mut self) -> Result<(), Stop> {
        let start = self.at;
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if let Some(b'.') = self.data.get(self.at) {
            self.at += 1;
            self.digits()?;
        }
        // The caller refuses an exponent: it expects a comma or a bracket after the number.
        if self.at - start > MAX_DIGITS {
            return Err(Stop::Invalid);
        }
        Ok(())
    }

    /// Moves past one or more digits.
    fn digits(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while self.data.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start {
            return Err(Stop::Invalid);
        }
        Ok(())
    }
}
