//! [`Reader`]: reads lines by a plan.
//!
//! The basic idea is simple: for the line `{"type":"result","num_turns":3}`, the reader finds the class by the type, begins a record, and
//! then reads key by key. It expects the same order of keys as in the previous line: after `"type"` it compares the next bytes with
//! `"num_turns":`, and looks up the key only if they differ.

use super::alike::{Patterns, MAX_OWNED};
use super::builder::Builder;
use super::guess::{string, tags, Guesses, Meant};
use super::memo::{max_objects, Found, Kept, Keys, Part, ShortStrings, Strings};
use super::number::{number, Number};
use super::plan::{may_be, Class, ClassId, FieldId, Kind, KindId, Plan, ANY, EXTRA, NO_FIELD};
use super::skip::find_tag;
use super::text::{remembered, unescape};
use crate::fallible::boxed;
use crate::simd::{begins, string_end, PAD};

/// The maximum depth of nested objects and arrays. Deeper lines fall through.
pub const MAX_DEPTH: usize = 100;
/// The maximum number of bytes that a buffer keeps between two blocks.
const KEPT_BYTES: usize = 64 * 1024;
/// If the last lines of a block must be copied, a block of at most this length is copied completely.
const SHORT_BYTES: usize = 1024;

/// The bit of [`EXTRA`] in the second of two words.
const EXTRA_BIT: u64 = 1 << (EXTRA - 64);

/// The result of reading a line.
#[derive(Debug, PartialEq)]
pub enum Line<V> {
    /// A message, and whether it or an object in it has an unknown tag.
    Message(V, bool),
    /// The caller must decode the line.
    FallsThrough,
    /// The caller must decode the line, because the plan does not have the fields of this class yet.
    Wants(ClassId),
}

/// Returns the index after the white space at `at`; `at` if there is no white space.
#[inline]
pub fn white(data: &[u8], mut at: usize) -> usize {
    if data.get(at).is_some_and(|&byte| byte > b' ') {
        return at; // The usual case.
    }
    while matches!(data.get(at), Some(b' ' | b'\t' | b'\r')) {
        at += 1;
    }
    at
}

/// Lets all lines at or after `at` fall through, because memory ran out.
#[cold]
fn pass_over<V>(data: &[u8], mut at: usize, take: &mut impl FnMut(Line<V>, usize, usize)) {
    while at < data.len() {
        let end = memchr::memchr(b'\n', &data[at..]).map_or(data.len(), |length| at + length + 1);
        take(Line::FallsThrough, at, end);
        at = end;
    }
}

/// Where an object or array is in a message. The reader remembers the last value of each place.
#[derive(Clone, Copy)]
enum PartOf {
    /// The value of a field.
    Field(FieldId),
    /// The value of a dict's key. The number is the slot of the key in [`Reader::keys`].
    Key(usize),
}

/// Reads lines by a plan. The top of this file explains how.
pub struct Reader<B: Builder> {
    /// Makes the objects.
    pub builder: B,
    /// The classes of lines, and their fields.
    plan: Plan<B::Value, B::Class>,
    /// The last strings of each field.
    strings: Vec<Strings<B::Value>>,
    /// The last object or array of each field.
    parts: Vec<Part<B::Value, B::Template>>,
    /// For each class: the first field of its last record, or [`NO_FIELD`].
    first: Vec<u32>,
    /// For each kind: the class of its last object, as an index in [`Kind::classes`].
    last: Vec<usize>,
    guesses: Guesses,
    /// For each class of a line: a bit for each field that is a tag. 0 until the first guess.
    tags: Vec<u128>,
    patterns: Patterns<B::Value, B::Template>,
    /// The keys of dicts.
    keys: Keys<B::Value, B::Template>,
    /// For each kind: the slot in `keys` of the first key of the last dict with values of this kind.
    first_key: Vec<usize>,
    short_strings: ShortStrings<B::Value>,
    /// The total number of bytes of all parts in `parts` and `keys`.
    kept_bytes: usize,
    /// The items of unfinished lists and dicts.
    stack: Vec<B::Value>,
    scratch: Vec<u8>,
    /// The number of lists and dicts made so far. If this number grows while the reader reads a value, messages must not share the value.
    changeable: usize,
    /// The number of objects with an unknown tag made so far.
    unknown: usize,
    /// The class whose fields Python must add to the plan before the reader can read the current line.
    wanted: Option<ClassId>,
    /// The memory of [`padded_copy`](Self::padded_copy).
    tail: Vec<u8>,
}

impl<B: Builder> Reader<B> {
    /// Returns a reader with an empty plan, which makes each line a dict.
    pub fn new(builder: B) -> Self {
        let mut reader = Self {
            builder,
            plan: Plan::default(),
            strings: Vec::new(),
            parts: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
            guesses: Guesses::default(),
            tags: Vec::new(),
            patterns: Patterns::default(),
            keys: Keys::default(),
            first_key: Vec::new(),
            short_strings: ShortStrings::default(),
            kept_bytes: 0,
            stack: Vec::new(),
            scratch: Vec::new(),
            changeable: 0,
            unknown: 0,
            wanted: None,
            tail: Vec::new(),
        };
        reader.change_plan(|_| ());
        reader
    }

    /// Changes the plan. `change` may add classes, kinds and fields, or add the fields of a class, but must not remove anything.
    pub fn change_plan(&mut self, change: impl FnOnce(&mut Plan<B::Value, B::Class>)) {
        change(&mut self.plan);
        let count = self.plan.fields.len();
        self.strings.resize_with(count, Strings::default);
        self.parts.resize_with(count, Part::default);
        for field in &mut self.plan.fields {
            field.may_be = field.kind().map_or(0, |kind| self.plan.kinds[kind].may_be);
        }
        self.first.resize(self.plan.classes.len(), NO_FIELD);
        self.last.resize(self.plan.kinds.len(), 0);
        self.first_key.resize(self.plan.kinds.len(), 0);
        self.tags.resize(self.plan.tops.len(), 0);
    }

    /// Reads one line, without its LF.
    pub fn one(&mut self, line: &[u8]) -> Line<B::Value> {
        let Some(tail) = self.padded_copy(line) else {
            return Line::FallsThrough;
        };
        let read = self.padded(&tail, line.len() + 1);
        self.tail = tail;
        self.give_back();
        read
    }

    /// Reads the first line of `data`. `len` is the line's length including its LF. At least [`PAD`] bytes must follow the line.
    pub fn padded(&mut self, data: &[u8], len: usize) -> Line<B::Value> {
        match self.line(data, 0) {
            // The line has another LF before its end.
            (Line::Message(_, _), Some(end)) if end != len => Line::FallsThrough,
            (read, _) => read,
        }
    }

    /// Reads the complete lines in the first `end` bytes of `data`. Calls `take` with the result of each line, the index of its first byte,
    /// and the index after its LF.
    pub fn block(
        &mut self,
        data: &[u8],
        end: usize,
        mut take: impl FnMut(Line<B::Value>, usize, usize),
    ) {
        // The reader looks at up to PAD bytes after a line. If fewer bytes follow, it reads the last lines from a padded copy. Copying a
        // whole short block takes less time than finding its last line.
        let safe = match data.len().checked_sub(PAD) {
            Some(safe) if safe >= end => end,
            Some(safe) if data.len() > SHORT_BYTES => {
                memchr::memrchr(b'\n', &data[..safe]).map_or(0, |at| at + 1)
            }
            _ => 0,
        };
        self.lines(data, 0, safe, &mut take, 0);
        if safe < end {
            let Some(tail) = self.padded_copy(&data[safe..end]) else {
                return pass_over(&data[..end], safe, &mut take);
            };
            self.lines(&tail, 0, end - safe, &mut take, safe);
            self.tail = tail;
        }
        self.give_back();
    }

    /// Returns a copy of lines with [`PAD`] LFs after them, and one more LF for a last line that has none. The copy uses the memory of
    /// `tail`. Returns `None` if memory runs out.
    fn padded_copy(&mut self, lines: &[u8]) -> Option<Vec<u8>> {
        let mut tail = std::mem::take(&mut self.tail);
        tail.clear();
        tail.try_reserve(lines.len() + PAD + 1).ok()?;
        tail.extend_from_slice(lines);
        tail.extend_from_slice(&[b'\n'; PAD + 1]);
        Some(tail)
    }

    /// After an unusually long line, frees each buffer that has more than [`KEPT_BYTES`]. It is not shrunk, because shrinking may allocate,
    /// and aborts if memory runs out.
    fn give_back(&mut self) {
        let free = |buffer: &mut Vec<u8>| {
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        };
        free(&mut self.tail);
        free(&mut self.scratch);
        if self.stack.capacity() * size_of::<B::Value>() > KEPT_BYTES {
            self.stack = Vec::new();
        }
    }

    /// Returns the capacity in bytes of the buffers, and the size in bytes of the remembered objects and arrays.
    #[cfg(test)]
    pub fn allocated(&self) -> (usize, usize) {
        let stack = self.stack.capacity() * size_of::<B::Value>();
        let parts: usize = self.parts.iter().map(Part::allocated).sum();
        (
            self.tail.capacity() + self.scratch.capacity() + stack,
            parts + self.keys.allocated(),
        )
    }

    /// Pushes a value on the stack; returns `None` if memory runs out.
    #[inline]
    fn push(&mut self, value: B::Value) -> Option<()> {
        if self.stack.len() == self.stack.capacity() {
            self.stack.try_reserve(64).ok()?;
        }
        self.stack.push(value);
        Some(())
    }

    fn lines(
        &mut self,
        data: &[u8],
        mut at: usize,
        end: usize,
        take: &mut impl FnMut(Line<B::Value>, usize, usize),
        before: usize,
    ) {
        while at < end {
            let (line, next) = match self.line(data, at) {
                (line, Some(next)) => (line, next),
                (line, None) => (
                    line,
                    memchr::memchr(b'\n', &data[at..end]).map_or(end, |length| at + length + 1),
                ),
            };
            take(line, before + at, before + next);
            at = next;
        }
    }

    /// Reads the line at `at`. For a message, also returns the index of the next line.
    fn line(&mut self, data: &[u8], at: usize) -> (Line<B::Value>, Option<usize>) {
        let Self {
            builder,
            stack,
            scratch,
            ..
        } = self;
        if let Some((message, end)) = self.patterns.find(builder, stack, scratch, data, at) {
            let end = white(data, end);
            if data.get(end) == Some(&b'\n') {
                return (Line::Message(message, false), Some(end + 1));
            }
        }
        let (unknown, changeable) = (self.unknown, self.changeable);
        if let Some((message, end, class)) = self.message(data, at) {
            let is_one = self.changeable - changeable <= MAX_OWNED && self.unknown == unknown;
            if self.patterns.miss(end - at) && is_one {
                let (plan, line) = (&self.plan, &data[at..end]);
                let patterns = &mut self.patterns;
                // Without a pattern, the next lines are read key by key.
                let _ = patterns.learn(plan, &mut self.builder, line, class, &message);
            }
            let end = white(data, end);
            if data.get(end) == Some(&b'\n') {
                return (
                    Line::Message(message, self.unknown != unknown),
                    Some(end + 1),
                );
            }
        }
        self.stack.clear();
        let line = self.wanted.take().map_or(Line::FallsThrough, Line::Wants);
        (line, None)
    }

    fn message(&mut self, data: &[u8], at: usize) -> Option<(B::Value, usize, Option<ClassId>)> {
        if data.get(at) != Some(&b'{') {
            return None;
        }
        if self.plan.tops.is_empty() {
            let base = self.stack.len();
            let end = self.pairs(data, at, ANY, 0)?;
            return Some((self.builder.dict(self.stack.drain(base..))?, end, None));
        }
        if let Some(tags) = tags(data, at) {
            let subtype = || tags.subtype.or_else(|| find_tag(data, at, b"subtype"));
            return match self.guesses.meant(&self.plan, tags.tag, subtype) {
                Meant::Top(top) => self.top(data, at, Some(tags.end), top),
                meant => self.unknown_line(data, at, meant),
            };
        }
        if let Some(top) = self.guesses.guess(data, at) {
            // If the guess was wrong, the code below reads the line again.
            let (stack, wanted, unknown) = (self.stack.len(), self.wanted, self.unknown);
            if let Some((message, end, seen)) =
                self.record(data, at, None, self.plan.tops[top].class, 0)
            {
                if self.is_certain(top, seen) {
                    return Some((message, end, Some(self.plan.tops[top].class)));
                }
            }
            self.stack.truncate(stack);
            (self.wanted, self.unknown) = (wanted, unknown);
        }
        let tag = find_tag(data, at, b"type")?;
        let subtype = || find_tag(data, at, b"subtype");
        let meant = self.guesses.meant(&self.plan, tag, subtype);
        let Meant::Top(top) = meant else {
            return self.unknown_line(data, at, meant);
        };
        self.guesses.learn(data, at, top);
        self.top(data, at, None, top)
    }

    fn top(
        &mut self,
        data: &[u8],
        at: usize,
        after_tag: Option<usize>,
        top: usize,
    ) -> Option<(B::Value, usize, Option<ClassId>)> {
        let class = self.plan.tops[top].class;
        let (message, end, _) = self.record(data, at, after_tag, class, 0)?;
        Some((message, end, Some(class)))
    }

    /// Returns whether a line has the tags of the guessed class. The bits of `seen` are the line's fields. [`tag`](Self::tag) has already
    /// compared the value of the type.
    fn is_certain(&mut self, top: usize, seen: u128) -> bool {
        if self.tags[top] == 0 {
            self.tags[top] = self.tags_of(top).unwrap_or(0);
        }
        let tags = self.tags[top];
        tags != 0 && seen & tags == tags
    }

    /// Returns a bit for each field of a class that is a tag; `None` if the class does not have the tags as fields.
    fn tags_of(&self, top: usize) -> Option<u128> {
        let top = &self.plan.tops[top];
        let Class::Planned(shape) = &self.plan.classes[top.class] else {
            return None;
        };
        let bit = |key: &[u8]| {
            let field = self.plan.find(shape, key)?;
            Some(1 << (field - shape.fields.start))
        };
        let subtype = match top.subtype {
            Some(_) => bit(b"subtype")?,
            None => 0,
        };
        Some(bit(b"type")? | subtype)
    }

    fn unknown_line(
        &mut self,
        data: &[u8],
        at: usize,
        meant: Meant,
    ) -> Option<(B::Value, usize, Option<ClassId>)> {
        let (kind, of_type, of_subtype) = self.plan.unknown.clone()?;
        let reason = match meant {
            Meant::UnknownType => of_type,
            Meant::UnknownSubtype => of_subtype,
            Meant::Top(_) | Meant::Unclear => return None,
        };
        let (message, end) = self.unknown_object(data, at, &kind, &reason, 0)?;
        Some((message, end, None))
    }

    fn unknown_object(
        &mut self,
        data: &[u8],
        at: usize,
        kind: &B::Value,
        reason: &B::Value,
        depth: usize,
    ) -> Option<(B::Value, usize)> {
        let base = self.stack.len();
        let end = self.pairs(data, at, ANY, depth)?;
        let value = self
            .builder
            .unknown(kind, reason, self.stack.drain(base..))?;
        self.unknown += 1;
        self.changeable += 1;
        Some((value, end))
    }

    // --- objects of a class

    /// Reads the object at `at` as a record of a class. Returns the record, the index after the object, and a set bit for each field in it;
    /// if the object has other keys, also the bit [`EXTRA`].
    ///
    /// If the object begins with the tag of the class, `after_tag` may be the index after it.
    fn record(
        &mut self,
        data: &[u8],
        at: usize,
        after_tag: Option<usize>,
        id: ClassId,
        depth: usize,
    ) -> Option<(B::Value, usize, u128)> {
        let shape = match &self.plan.classes[id] {
            Class::Planned(shape) => shape,
            Class::Refused => return None,
            Class::Unplanned => {
                self.wanted = Some(id);
                return None;
            }
        };
        if depth >= MAX_DEPTH {
            return None;
        }
        let required = shape.required;
        let mut record = self.builder.begin(&shape.class)?;
        // Use two words, because shifting a `u128` by a variable takes many instructions.
        let mut seen = [0u64; 2];
        let end = self.fields(data, at, after_tag, id, depth, &mut record, &mut seen);
        let Class::Planned(shape) = &self.plan.classes[id] else {
            return None;
        };
        // Also finish an incomplete record, so that it can be dropped.
        let record = self.builder.finish(&shape.class, record, seen);
        let seen = u128::from(seen[1]) << 64 | u128::from(seen[0]);
        let end = end.filter(|_| required & !seen == 0)?;
        Some((record, end, seen))
    }

    /// Reads the fields of the object at `at` into a new record. Sets the bits in `seen` that [`record`](Self::record) returns, and returns
    /// the index after the object.
    #[inline]
    #[allow(clippy::too_many_arguments)] // The function is a part of `record`.
    fn fields(
        &mut self,
        data: &[u8],
        at: usize,
        after_tag: Option<usize>,
        id: ClassId,
        depth: usize,
        record: &mut B::Record,
        seen: &mut [u64; 2],
    ) -> Option<usize> {
        let Class::Planned(shape) = &self.plan.classes[id] else {
            return None;
        };
        let fields = shape.fields.clone();
        let (first, extra) = (fields.start, shape.extra);
        let base = self.stack.len();
        let mut before: Option<FieldId> = None;
        let mut expected = self.first[id];
        let mut at = white(data, at + 1);
        let mut is_open = data.get(at) != Some(&b'}');
        let tag = fields
            .last()
            .filter(|&tag| self.plan.fields[tag].kind().is_none());
        if let (Some(end), Some(tag)) = (after_tag, tag) {
            let index = tag - first;
            seen[index / 64 % 2] = 1 << (index % 64);
            before = Some(tag);
            expected = self.plan.fields[tag].next;
            at = white(data, end);
            is_open = match data.get(at)? {
                b',' => true,
                b'}' => false,
                _ => return None,
            };
            at = if is_open { white(data, at + 1) } else { at };
        }
        if is_open {
            loop {
                let known = self.plan.fields.get(expected as usize);
                let met = known.and_then(|known| known.key.end(data, at));
                // The line may leave out the expected key, and go on with the next one.
                let next = known.map_or(NO_FIELD, |known| known.next) as usize;
                let (field, value) = if let Some(value) = met {
                    (Some(expected as usize), value)
                } else if let Some(value) =
                    (self.plan.fields.get(next)).and_then(|known| known.key.end(data, at))
                {
                    (Some(next), value)
                } else {
                    let (field, value) = self.key(data, at, id)?;
                    let place = before.map_or(&mut self.first[id], |before| {
                        &mut self.plan.fields[before].next
                    });
                    #[allow(clippy::cast_possible_truncation)] // No plan has 2^32 fields.
                    let next = field.map_or(*place, |field| field as u32);
                    *place = next;
                    (field, value)
                };
                at = white(data, value);
                if let Some(field) = field {
                    let index = field - first;
                    // A class has at most MAX_FIELDS fields, so `% 2` changes nothing. But it removes the bounds check.
                    let (word, bit) = (index / 64 % 2, 1 << (index % 64));
                    if seen[word] & bit != 0 {
                        return None;
                    }
                    let known = &self.plan.fields[field];
                    let (slot, may) = (known.slot(), known.may_be);
                    // Read this here, while the field is in the cache: the value may be long.
                    expected = known.next;
                    if let Some(kind) = known.kind() {
                        let (value, end) = self.field(data, at, kind, may, field, depth)?;
                        self.builder.set(record, slot, value);
                        at = end;
                    } else {
                        at = self.tag(data, at, id)?;
                    }
                    seen[word] |= bit;
                    before = Some(field);
                } else {
                    let (value, end) = self.value(data, at, ANY, depth)?;
                    self.push(value)?;
                    at = end;
                    // After an unknown key, expect the field that was expected instead of the unknown key.
                    expected =
                        before.map_or(self.first[id], |before| self.plan.fields[before].next);
                }
                at = white(data, at);
                match data.get(at)? {
                    b',' => at = white(data, at + 1),
                    b'}' => break,
                    _ => return None,
                }
            }
        }
        if self.stack.len() > base {
            self.changeable += 1;
            let value = self.builder.dict(self.stack.drain(base..))?;
            self.builder.set(record, extra?, value);
            seen[1] |= EXTRA_BIT;
        }
        Some(at + 1)
    }

    /// Returns the field of the key at `at`, and the index after the colon. If the class does not have the key, pushes the key on the stack
    /// and returns `None` as the field.
    #[inline(never)]
    fn key(&mut self, data: &[u8], at: usize, id: ClassId) -> Option<(Option<FieldId>, usize)> {
        let Class::Planned(shape) = &self.plan.classes[id] else {
            return None;
        };
        // Comparing with all keys of the class takes less time than finding the end of this key.
        let all = shape
            .fields
            .clone()
            .zip(&self.plan.fields[shape.fields.clone()]);
        for (field, known) in all {
            if let Some(value) = known.key.end(data, at) {
                return Some((Some(field), value));
            }
        }
        if data.get(at) != Some(&b'"') {
            return None;
        }
        let (end, ascii) = string_end(data, at + 1);
        if data.get(end) != Some(&b'"') {
            return None;
        }
        let colon = white(data, end + 1);
        if data.get(colon) != Some(&b':') {
            return None;
        }
        let name = &data[at + 1..end];
        let field = self.plan.find(shape, name);
        if field.is_none() {
            shape.extra?;
            let builder = &mut self.builder;
            let (key, _) = self
                .keys
                .get(name, &mut self.kept_bytes, || builder.text(name, ascii))?;
            self.push(key)?;
        }
        Some((field, colon + 1))
    }

    /// Returns the index after the string at `at`, if the string is the tag of the class.
    fn tag(&self, data: &[u8], at: usize, id: ClassId) -> Option<usize> {
        let Class::Planned(shape) = &self.plan.classes[id] else {
            return None;
        };
        let end = at + 1 + shape.tag.len();
        let is_it = data.get(at) == Some(&b'"')
            && begins(data, at + 1, &shape.tag)
            && data.get(end) == Some(&b'"');
        is_it.then_some(end + 1)
    }

    // --- values

    /// Reads the value of a field. Returns the value, and the index after it.
    #[inline]
    fn field(
        &mut self,
        data: &[u8],
        at: usize,
        kind: KindId,
        may: u32,
        field: FieldId,
        depth: usize,
    ) -> Option<(B::Value, usize)> {
        match data.get(at)? {
            b'"' if may & (may_be::TEXT | may_be::ANY) != 0 => self.field_text(data, at + 1, field),
            b'{' | b'[' => self.part(data, at, kind, PartOf::Field(field), depth),
            b't' | b'f' | b'n' => self.literal(data, at, may),
            _ => self.value(data, at, kind, depth),
        }
    }

    #[inline]
    fn field_text(
        &mut self,
        data: &[u8],
        start: usize,
        field: FieldId,
    ) -> Option<(B::Value, usize)> {
        let Self {
            strings,
            builder,
            scratch,
            ..
        } = self;
        let (value, end) = remembered(&mut strings[field], builder, scratch, data, start)?;
        Some((value, end + 1))
    }

    /// Reads an object or array at a place where the reader remembers the last one.
    fn part(
        &mut self,
        data: &[u8],
        at: usize,
        kind: KindId,
        of: PartOf,
        depth: usize,
    ) -> Option<(B::Value, usize)> {
        let Self {
            parts,
            keys,
            builder,
            stack,
            ..
        } = self;
        let part = match of {
            PartOf::Field(field) => &mut parts[field],
            PartOf::Key(slot) => keys.part(slot),
        };
        let is_again = match part.find(data, at, depth) {
            Found::Nothing => return self.value(data, at, kind, depth),
            Found::Same(Kept::Shared(value), end) => return Some((value.clone(), end)),
            Found::Same(Kept::Copied(template), end) => {
                self.changeable += 1;
                return Some((builder.stamp(&template[0], stack)?, end));
            }
            Found::Again => true,
            Found::Other => false,
        };
        let (changeable, unknown) = (self.changeable, self.unknown);
        let read = self.value(data, at, kind, depth);
        self.part_at(of).done();
        let (value, end) = read?;
        if self.unknown != unknown {
            return Some((value, end));
        }
        let bytes = &data[at..end];
        if is_again {
            let kept = if self.changeable == changeable {
                Some(Kept::Shared(value.clone()))
            } else {
                self.builder
                    .deep_template(&value, max_objects(bytes.len()))
                    .and_then(|template| Some(Kept::Copied(boxed([template]).ok()?)))
            };
            self.part_at(of).keep(bytes, kept, depth);
        } else {
            let mut kept_bytes = self.kept_bytes;
            self.part_at(of).note(bytes, &mut kept_bytes);
            self.kept_bytes = kept_bytes;
        }
        Some((value, end))
    }

    #[inline]
    fn part_at(&mut self, of: PartOf) -> &mut Part<B::Value, B::Template> {
        match of {
            PartOf::Field(field) => &mut self.parts[field],
            PartOf::Key(slot) => self.keys.part(slot),
        }
    }

    /// Reads a value of a kind. Returns the value, and the index after it.
    fn value(
        &mut self,
        data: &[u8],
        at: usize,
        id: KindId,
        depth: usize,
    ) -> Option<(B::Value, usize)> {
        let kind = &self.plan.kinds[id];
        let (may, item) = (kind.may_be, kind.item);
        match data.get(at)? {
            b'"' if may & (may_be::TEXT | may_be::ANY) != 0 => self.text(data, at + 1),
            b'"' => {
                let (end, _) = string_end(data, at + 1);
                let word = kind
                    .words
                    .iter()
                    .find(|(word, _)| *word == data[at + 1..end])?;
                (data.get(end) == Some(&b'"')).then(|| (word.1.clone(), end + 1))
            }
            b'{' if may & may_be::RECORD != 0 => self.object(data, at, id, depth + 1),
            b'{' if may & (may_be::DICT | may_be::ANY) != 0 => {
                let base = self.stack.len();
                let end = self.pairs(data, at, item, depth + 1)?;
                self.changeable += 1;
                Some((self.builder.dict(self.stack.drain(base..))?, end))
            }
            b'[' if may & (may_be::LIST | may_be::ANY) != 0 => self.list(data, at, item, depth + 1),
            b't' | b'f' | b'n' => self.literal(data, at, may),
            b'-' | b'0'..=b'9' => {
                let (number, end) = number(data, at)?;
                let value = match number {
                    Number::Int(value) if may & (may_be::INT | may_be::ANY) != 0 => {
                        self.builder.int(value)?
                    }
                    #[allow(clippy::cast_precision_loss)]
                    // The integer is below 2 to the power of 53.
                    Number::Int(value)
                        if may & may_be::FLOAT != 0 && value.unsigned_abs() < 1 << 53 =>
                    {
                        self.builder.float(value as f64)?
                    }
                    Number::Float(value) if may & (may_be::FLOAT | may_be::ANY) != 0 => {
                        self.builder.float(value)?
                    }
                    _ => return None,
                };
                Some((value, end))
            }
            _ => None,
        }
    }

    /// Reads `true`, `false` or `null`. `may` is [`Kind::may_be`].
    #[inline]
    fn literal(&mut self, data: &[u8], at: usize, may: u32) -> Option<(B::Value, usize)> {
        if may & (may_be::BOOL | may_be::ANY) != 0 {
            if begins(data, at, b"true") {
                return Some((self.builder.bool(true), at + 4));
            }
            if begins(data, at, b"false") {
                return Some((self.builder.bool(false), at + 5));
            }
        }
        if may & (may_be::NULL | may_be::ANY) != 0 && begins(data, at, b"null") {
            return Some((self.builder.null(), at + 4));
        }
        None
    }

    /// Reads a string in a list or a dict. The reader remembers short strings, because they often repeat.
    fn text(&mut self, data: &[u8], start: usize) -> Option<(B::Value, usize)> {
        let (end, ascii) = string_end(data, start);
        if data.get(end) != Some(&b'"') {
            return self.escaped(data, start, end, ascii);
        }
        let string = &data[start..end];
        let builder = &mut self.builder;
        let value = self
            .short_strings
            .get(string, || builder.text(string, ascii))?;
        Some((value, end + 1))
    }

    #[cold]
    fn escaped(
        &mut self,
        data: &[u8],
        start: usize,
        at: usize,
        ascii: bool,
    ) -> Option<(B::Value, usize)> {
        if data.get(at) != Some(&b'\\') {
            return None;
        }
        let (end, ascii) = unescape(data, start, at, ascii, &mut self.scratch)?;
        Some((self.builder.text(&self.scratch, ascii)?, end + 1))
    }

    /// Reads an object as a record of a kind's only class, or of the class with the object's tag.
    fn object(
        &mut self,
        data: &[u8],
        at: usize,
        id: KindId,
        depth: usize,
    ) -> Option<(B::Value, usize)> {
        let kind: &Kind<B::Value> = &self.plan.kinds[id];
        let record = match kind.classes.as_slice() {
            [only] => self.record(data, at, None, only.class, depth),
            members => {
                let last = &members[self.last[id]];
                if begins(data, at, &last.opening) {
                    let end = at + last.opening.len();
                    self.record(data, at, Some(end), last.class, depth)
                } else {
                    let before = &last.opening[..last.opening.len() - last.tag.len() - 1];
                    let (tag, end) = match string(data, at, before) {
                        Some((tag, end)) => (tag, Some(end + 1)),
                        None => (find_tag(data, at, &kind.tag_key)?, None),
                    };
                    if let Some(index) = members.iter().position(|member| member.tag == tag) {
                        let class = members[index].class;
                        self.last[id] = index;
                        self.record(data, at, end, class, depth)
                    } else {
                        let (class, reason) = kind.unknown.clone()?;
                        return self.unknown_object(data, at, &class, &reason, depth);
                    }
                }
            }
        };
        record.map(|(value, end, _)| (value, end))
    }

    fn list(
        &mut self,
        data: &[u8],
        at: usize,
        item: KindId,
        depth: usize,
    ) -> Option<(B::Value, usize)> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let base = self.stack.len();
        let mut at = white(data, at + 1);
        if data.get(at) == Some(&b']') {
            at += 1;
        } else {
            loop {
                let (value, end) = self.value(data, at, item, depth)?;
                self.push(value)?;
                at = white(data, end);
                match data.get(at)? {
                    b',' => at = white(data, at + 1),
                    b']' => {
                        at += 1;
                        break;
                    }
                    _ => return None,
                }
            }
        }
        self.changeable += 1;
        Some((self.builder.list(self.stack.drain(base..))?, at))
    }

    /// Pushes the keys and values of the object at `at` on the stack, and returns the index after the object.
    fn pairs(&mut self, data: &[u8], at: usize, item: KindId, depth: usize) -> Option<usize> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let mut at = white(data, at + 1);
        if data.get(at) == Some(&b'}') {
            return Some(at + 1);
        }
        let mut before = None;
        loop {
            let expected = before.map_or(self.first_key[item], |slot| self.keys.next(slot));
            let (key, end) = match self.keys.find(expected, data, at) {
                Some((key, end)) => {
                    before = Some(expected);
                    (key, end)
                }
                None => self.other_key(data, at, item, &mut before)?,
            };
            self.push(key)?;
            at = white(data, end);
            let (value, end) = match (data.get(at)?, before) {
                // Do this only for the kind ANY, because another kind would make different values from the same bytes.
                (b'{' | b'[', Some(slot)) if item == ANY => {
                    self.part(data, at, item, PartOf::Key(slot), depth)?
                }
                _ => self.value(data, at, item, depth)?,
            };
            self.push(value)?;
            at = white(data, end);
            match data.get(at)? {
                b',' => at = white(data, at + 1),
                b'}' => return Some(at + 1),
                _ => return None,
            }
        }
    }

    /// Reads the key at `at` in a dict if it is not the expected key. Returns the key, and the index after the colon. `before` is the slot
    /// of the previous key, and becomes the slot of this key.
    #[inline(never)]
    fn other_key(
        &mut self,
        data: &[u8],
        at: usize,
        item: KindId,
        before: &mut Option<usize>,
    ) -> Option<(B::Value, usize)> {
        if data.get(at) != Some(&b'"') {
            return None;
        }
        let (end, ascii) = string_end(data, at + 1);
        let (key, end, slot) = if data.get(end) == Some(&b'"') {
            let string = &data[at + 1..end];
            let builder = &mut self.builder;
            let make = || builder.text(string, ascii);
            let (key, slot) = self.keys.get(string, &mut self.kept_bytes, make)?;
            (key, end + 1, slot)
        } else {
            let (key, end) = self.escaped(data, at + 1, end, ascii)?;
            (key, end, None)
        };
        if let Some(slot) = slot {
            match *before {
                Some(before) => self.keys.follows(before, slot),
                None => self.first_key[item] = slot,
            }
        }
        *before = slot;
        let colon = white(data, end);
        (data.get(colon) == Some(&b':')).then_some((key, colon + 1))
    }
}
