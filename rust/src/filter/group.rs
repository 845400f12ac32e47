//! The open groups of deltas that the filter merges.
//!
//! The basic idea is simple: if three deltas have the text `Hel`, `lo` and `!`, a group keeps the first line, appends the text of the later
//! lines, and remembers the last uuid. When the group is closed, it writes the first line with the text `Hello!` and the last uuid. The
//! text keeps its escapes.
//!
//! A group's key is the session, the parent, the index and the kind of its deltas. At most [`MAX_OPEN`] groups are open, so finding one
//! takes little time.

// The functions that run for each delta are inlined into one function per engine.
#![allow(clippy::inline_always)]

use std::collections::TryReserveError;

use crate::filter::delta::Delta;
use crate::kinds::string::Span;
use crate::lines::place::Place;
use crate::simd::{HASH_FACTOR, PAD};

/// The maximum number of open groups.
pub const MAX_OPEN: usize = 64;

/// Open groups, in the order of their first lines.
#[derive(Debug, Default)]
pub struct Groups {
    /// The first `open` groups are open. The closed groups after them are kept to reuse their memory.
    all: Vec<Group>,
    /// The hashes of the open groups' keys.
    hashes: Vec<u64>,
    open: usize,
    /// The merged line of the group that was closed last.
    made: Vec<u8>,
}

#[derive(Debug, Default)]
struct Group {
    place: Place,
    key: Vec<u8>,
    /// The first line, with its LF.
    line: Vec<u8>,
    /// The text and uuid of the first line, as spans of `line`.
    parts: Parts,
    /// The length of `line` without its LF and uuid.
    fixed: usize,
    /// The joined text of the later lines.
    more: Vec<u8>,
    /// The uuid of the last line, unless `last_uuid` has it.
    last: Vec<u8>,
    /// The uuid of the last line as a span of the current data, until [`settle`](Groups::settle) copies it.
    last_uuid: Option<Span>,
}

/// The strings that may differ within a group, as spans of the data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// The text.
    pub text: Span,
    /// The uuid.
    pub uuid: Option<Span>,
}

impl Groups {
    /// Returns the number of open groups.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open
    }

    /// Returns how many bytes of memory all groups hold.
    #[must_use]
    pub fn held(&self) -> usize {
        let each = |group: &Group| {
            let vectors = [&group.key, &group.line, &group.more, &group.last];
            size_of::<Group>() + vectors.map(Vec::capacity).iter().sum::<usize>()
        };
        self.made.capacity() + self.hashes.capacity() * 8 + self.all.iter().map(each).sum::<usize>()
    }

    /// Returns the index of the open group with this key.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        let hash = hash(key);
        let mut open = self.all.iter().zip(&self.hashes);
        open.position(|(group, &known)| known == hash && group.key == key)
    }

    /// Returns whether the line `data[from..end]` equals the first line of group `at`, except for the text and the uuid.
    #[must_use]
    pub fn is_like(&self, at: usize, data: &[u8], from: usize, end: usize, parts: Parts) -> bool {
        let group = &self.all[at];
        Pieces::of(&group.line, group.parts) == Pieces::of(&data[from..end], parts.moved(from))
    }

    /// Returns how long the merged line of group `at` would be with one more delta, without the LF.
    #[inline]
    #[must_use]
    pub fn merged_len(&self, at: usize, parts: Parts) -> usize {
        let group = &self.all[at];
        group.fixed + group.more.len() + parts.text.len + parts.uuid.map_or(0, |uuid| uuid.len)
    }

    /// Opens a group with its first line, `data[from..end]`, whose last byte is its LF. Returns the index of the group.
    ///
    /// # Errors
    ///
    /// Memory ran out, and the group is not open.
    pub fn begin(
        &mut self,
        key: &[u8],
        data: &[u8],
        from: usize,
        end: usize,
        parts: Parts,
        place: Place,
    ) -> Result<usize, TryReserveError> {
        if self.open == self.all.len() {
            self.all.try_reserve(1)?;
            self.all.push(Group::default());
        }
        let group = &mut self.all[self.open];
        let uuid = parts.uuid.map_or(&[][..], |uuid| uuid.of(data));
        group.more.clear();
        group.last_uuid = None;
        for (part, bytes) in [
            (&mut group.key, key),
            (&mut group.line, &data[from..end]),
            (&mut group.last, uuid),
        ] {
            part.clear();
            append(part, bytes)?;
        }
        group.fixed = end - 1 - from - uuid.len();
        group.parts = parts.moved(from);
        group.place = place;
        self.hashes.try_reserve(1)?;
        self.hashes.push(hash(key));
        self.open += 1;
        Ok(self.open - 1)
    }

    /// Adds a delta to group `at`. Before the caller drops `data`, it calls [`settle`](Self::settle) to copy the uuid.
    ///
    /// # Errors
    ///
    /// Memory ran out, and the group is unchanged.
    #[inline(always)]
    pub fn add(&mut self, at: usize, data: &[u8], parts: Parts) -> Result<(), TryReserveError> {
        let group = &mut self.all[at];
        append_span(&mut group.more, data, parts.text)?;
        group.last_uuid = parts.uuid;
        Ok(())
    }

    /// Copies the last uuid of each open group from `data`.
    ///
    /// # Errors
    ///
    /// Memory ran out.
    pub fn settle(&mut self, data: &[u8]) -> Result<(), TryReserveError> {
        for group in &mut self.all[..self.open] {
            if let Some(uuid) = group.last_uuid.take() {
                group.last.clear();
                append(&mut group.last, uuid.of(data))?;
            }
        }
        Ok(())
    }

    /// Closes all groups, and calls `each` with each group's merged line; see [`Filter::close`](super::Filter::close).
    ///
    /// # Errors
    ///
    /// Memory ran out, and the lines of some groups are lost.
    pub fn close(
        &mut self,
        mut each: impl FnMut(&[u8], usize, Place),
    ) -> Result<(), TryReserveError> {
        let open = self.open;
        self.abandon();
        for group in &mut self.all[..open] {
            self.made.clear();
            self.made.try_reserve(group.most_bytes() + PAD)?;
            group.write(&mut self.made);
            let len = self.made.len();
            self.made.resize(len + PAD, b'\n');
            each(&self.made, len, group.place);
        }
        Ok(())
    }

    /// Closes all groups, and drops their lines.
    pub fn abandon(&mut self) {
        self.hashes.clear();
        self.open = 0;
    }

    /// Frees the memory of closed groups until all groups hold at most `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        self.made.shrink_to(most / 2);
        while self.held() > most {
            if self.all.len() == self.open {
                break;
            }
            self.all.pop();
        }
        if self.all.is_empty() {
            *self = Self::default();
        }
    }
}

impl Group {
    fn most_bytes(&self) -> usize {
        self.line.len() + self.more.len() + self.last.len()
    }

    /// Appends the merged line. The caller must have reserved room for it.
    fn write(&self, block: &mut Vec<u8>) {
        let pieces = Pieces::of(&self.line, self.parts);
        let text = [self.parts.text.of(&self.line), &self.more];
        let all: [&[u8]; 6] = match pieces.order {
            Order::TextOnly => [pieces.before, text[0], text[1], pieces.after, &[], &[]],
            Order::TextFirst => [
                pieces.before,
                text[0],
                text[1],
                pieces.between,
                &self.last,
                pieces.after,
            ],
            Order::UuidFirst => [
                pieces.before,
                &self.last,
                pieces.between,
                text[0],
                text[1],
                pieces.after,
            ],
        };
        for piece in all {
            block.extend_from_slice(piece);
        }
    }
}

/// The order of the text and the uuid in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The line has no uuid.
    TextOnly,
    /// The text is before the uuid.
    TextFirst,
    /// The uuid is before the text.
    UuidFirst,
}

impl Order {
    /// Returns the text and the uuid from two spans that are in the order of their bytes.
    #[inline]
    #[must_use]
    pub fn parts(self, [one, two]: [Span; 2]) -> Parts {
        let (text, uuid) = match self {
            Self::TextOnly => (one, None),
            Self::TextFirst => (one, Some(two)),
            Self::UuidFirst => (two, Some(one)),
        };
        Parts { text, uuid }
    }
}

/// The bytes of a line around its text and uuid.
#[derive(PartialEq, Eq)]
struct Pieces<'a> {
    before: &'a [u8],
    between: &'a [u8],
    after: &'a [u8],
    order: Order,
}

impl<'a> Pieces<'a> {
    fn of(line: &'a [u8], parts: Parts) -> Self {
        let order = parts.order();
        let (first, second) = match (order, parts.uuid) {
            (Order::UuidFirst, Some(uuid)) => (uuid, Some(parts.text)),
            (_, uuid) => (parts.text, uuid),
        };
        let (between, after) = match second {
            None => (&line[..0], &line[first.end()..]),
            Some(second) => (&line[first.end()..second.start], &line[second.end()..]),
        };
        Self {
            before: &line[..first.start],
            between,
            after,
            order,
        }
    }
}

impl Parts {
    /// Returns the order of the text and the uuid.
    #[must_use]
    pub fn order(self) -> Order {
        match self.uuid {
            None => Order::TextOnly,
            Some(uuid) if uuid.start < self.text.start => Order::UuidFirst,
            Some(_) => Order::TextFirst,
        }
    }

    /// Returns the parts as spans of the line, which begins at `from` in the data.
    fn moved(self, from: usize) -> Self {
        let moved = |span: Span| Span {
            start: span.start - from,
            ..span
        };
        Self {
            text: moved(self.text),
            uuid: self.uuid.map(moved),
        }
    }
}

/// Writes the key of a group: the kind, the index, the session and the parent. These parts never have a quote or a control byte, so the
/// quote or NUL byte between them separates them, and different keys have different bytes.
///
/// # Errors
///
/// Memory ran out.
pub fn write_key(key: &mut Vec<u8>, data: &[u8], delta: &Delta) -> Result<(), TryReserveError> {
    key.clear();
    append(key, &[delta.kind as u8])?;
    append(key, delta.index.of(data))?;
    for part in [delta.session, delta.parent] {
        append(key, if part.is_some() { b"\"" } else { b"\0" })?;
        append(key, part.map_or(&[], |part| part.of(data)))?;
    }
    Ok(())
}

/// Returns a hash of all complete 8-byte groups. Different keys may have the same hash, and an attacker can construct such keys, so the
/// caller also compares the keys.
fn hash(bytes: &[u8]) -> u64 {
    let (mut sum, mut factor) = (0_u64, HASH_FACTOR);
    for word in bytes.chunks_exact(8) {
        if let Some(&word) = word.first_chunk() {
            // The multiplications do not depend on each other, so the processor runs them in parallel.
            sum = sum.wrapping_add(u64::from_le_bytes(word).wrapping_mul(factor));
            factor = factor.wrapping_add(HASH_FACTOR << 1);
        }
    }
    sum
}

/// To copy a span of at most this length, copy this many bytes and truncate: the compiler inlines a copy of fixed length, but calls memcpy
/// for any other copy.
const SHORT: usize = 64;

/// Appends the bytes of a span to `to`; returns an error if memory runs out.
#[inline(always)]
fn append_span(to: &mut Vec<u8>, data: &[u8], span: Span) -> Result<(), TryReserveError> {
    match data[span.start..].first_chunk::<SHORT>() {
        Some(bytes) if span.len <= SHORT && to.capacity() - to.len() >= SHORT => {
            let len = to.len() + span.len;
            to.extend_from_slice(bytes);
            to.truncate(len);
            Ok(())
        }
        _ => {
            to.try_reserve(SHORT)?;
            append(to, span.of(data))
        }
    }
}

/// Appends `bytes` to `to`; returns an error if memory runs out.
#[inline(never)]
pub(crate) fn append(to: &mut Vec<u8>, bytes: &[u8]) -> Result<(), TryReserveError> {
    to.try_reserve(bytes.len())?;
    to.extend_from_slice(bytes);
    Ok(())
}
