//! What was read last, so that the same is not made twice.
//!
//! Everything here is bounded: by entries, by bytes an entry, and by [`MAX_KEPT`] in all. Where nothing repeats, looking for it stops
//! after a few misses, and is tried again now and then.

use crate::simd::{begins, Key};

/// A field keeps no string that is longer, in bytes.
const MAX_STRING: usize = 96;
/// The bytes of an object or array that are kept with a field: shorter ones are not worth it.
const PART: std::ops::RangeInclusive<usize> = 16..=64 * 1024;
/// The bytes of objects and arrays that are kept in all.
pub const MAX_KEPT: usize = 1024 * 1024;
/// After so many misses only one in [`AGAIN`] is looked at.
const MISSES: u8 = 8;
const AGAIN: u8 = 64;

/// Whether it is worth looking.
#[derive(Default)]
struct Patience {
    misses: u8,
    turn: u8,
}

impl Patience {
    #[inline]
    fn looks(&mut self) -> bool {
        if self.misses < MISSES {
            return true;
        }
        self.turn = (self.turn + 1) % AGAIN;
        self.turn == 0
    }

    #[inline]
    fn miss(&mut self) {
        self.misses = self.misses.saturating_add(1);
    }
}

/// The last two different strings of a field.
pub struct Strings<V> {
    kept: [Option<(Vec<u8>, V)>; 2],
    oldest: usize,
    patience: Patience,
    is_looking: bool,
}

impl<V> Default for Strings<V> {
    fn default() -> Self {
        Self {
            kept: [None, None],
            oldest: 0,
            patience: Patience::default(),
            is_looking: false,
        }
    }
}

impl<V: Clone> Strings<V> {
    /// The object for the string whose contents begin at `start`, and where its closing quote is.
    #[inline]
    pub fn find(&mut self, data: &[u8], start: usize) -> Option<(V, usize)> {
        self.is_looking = self.patience.looks();
        if !self.is_looking {
            return None;
        }
        for (bytes, value) in self.kept.iter().flatten() {
            let end = start + bytes.len();
            if data.get(end) == Some(&b'"') && begins(data, start, bytes) {
                self.patience.misses = 0;
                return Some((value.clone(), end));
            }
        }
        None
    }

    /// Keeps a string that [`find`](Self::find) has just missed, and that has no escapes.
    #[inline]
    pub fn keep(&mut self, string: &[u8], value: &V) {
        if !self.is_looking || string.len() > MAX_STRING {
            return;
        }
        self.patience.miss();
        let (mut bytes, _) = self.kept[self.oldest]
            .take()
            .map_or((Vec::new(), None), |(b, v)| (b, Some(v)));
        bytes.clear();
        bytes.extend_from_slice(string);
        self.kept[self.oldest] = Some((bytes, value.clone()));
        self.oldest ^= 1;
    }
}

/// The last object or array of a field.
pub struct Part<V> {
    bytes: Vec<u8>,
    /// What it became, and whether that may be shared; there from the second time on.
    value: Option<(V, bool)>,
    /// How deep it stood then. Deeper it is read again, lest it be nested more deeply than what is read.
    depth: usize,
    patience: Patience,
    /// While the value of this field is read, which may hold the same field.
    is_busy: bool,
}

impl<V> Default for Part<V> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            value: None,
            depth: 0,
            patience: Patience::default(),
            is_busy: false,
        }
    }
}

/// What a [`Part`] knows of the value that begins somewhere.
pub enum Found<V> {
    /// It is this one, and ends there; whether it may be shared.
    Same(V, usize, bool),
    /// Its bytes are those of last time. It is to be read, and then [kept](Part::keep).
    Again,
    /// It is another. It is to be read, and then [noted](Part::note).
    Other,
    /// It is not looked at.
    Nothing,
}

impl<V> Part<V> {
    /// The bytes that are kept.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.bytes.capacity()
    }
}

impl<V: Clone> Part<V> {
    /// What is known of the value at `at`, so many objects and arrays deep. After [`Found::Again`] and [`Found::Other`], [`Self::done`] must follow.
    #[inline]
    pub fn find(&mut self, data: &[u8], at: usize, depth: usize) -> Found<V> {
        if self.is_busy || !self.patience.looks() {
            return Found::Nothing;
        }
        if !self.bytes.is_empty() && begins(data, at, &self.bytes) {
            self.patience.misses = 0;
            match &self.value {
                Some((value, is_shared)) if depth <= self.depth => {
                    return Found::Same(value.clone(), at + self.bytes.len(), *is_shared);
                }
                _ => {}
            }
            self.is_busy = true;
            return Found::Again;
        }
        self.patience.miss();
        self.is_busy = true;
        Found::Other
    }

    /// The value that was looked for has been read, or could not be.
    #[inline]
    pub fn done(&mut self) {
        self.is_busy = false;
    }

    /// Keeps what the bytes became that came again, so deep, unless others were noted meanwhile.
    pub fn keep(&mut self, bytes: &[u8], value: V, is_shared: bool, depth: usize) {
        if self.bytes == bytes {
            self.value = Some((value, is_shared));
            self.depth = depth;
        }
    }

    /// Notes the bytes of another value. `kept` counts the bytes of all parts.
    pub fn note(&mut self, bytes: &[u8], kept: &mut usize) {
        let others = *kept - self.bytes.len();
        if !PART.contains(&bytes.len()) || others + bytes.len() > MAX_KEPT {
            return;
        }
        *kept = others + bytes.len();
        self.value = None;
        self.bytes.clear();
        self.bytes.shrink_to(2 * bytes.len());
        self.bytes.extend_from_slice(bytes);
    }
}

/// Keys of dicts that came last, wherever they stood, and what is remembered of their values.
pub struct Keys<V> {
    slots: Vec<Option<DictKey<V>>>,
}

struct DictKey<V> {
    key: Key,
    value: V,
    /// The slot of the key that followed.
    next: usize,
    part: Part<V>,
}

impl<V> Default for Keys<V> {
    fn default() -> Self {
        let mut slots = Vec::new();
        slots.resize_with(Word::SLOTS, || None);
        Self { slots }
    }
}

impl<V> Keys<V> {
    /// The bytes that are kept.
    #[cfg(test)]
    #[must_use]
    pub fn kept(&self) -> usize {
        let parts = self.slots.iter().flatten().map(|key| key.part.kept());
        parts.sum()
    }
}

impl<V: Clone> Keys<V> {
    /// The object for the key at `at`, and where its value begins, if it is the key of this slot, with no white space.
    #[inline]
    #[must_use]
    pub fn find(&self, slot: usize, data: &[u8], at: usize) -> Option<(V, usize)> {
        let known = self.slots[slot].as_ref()?;
        let end = known.key.end(data, at)?;
        Some((known.value.clone(), end))
    }

    /// The slot of the key that probably follows that of a slot.
    #[inline]
    #[must_use]
    pub fn next(&self, slot: usize) -> usize {
        self.slots[slot].as_ref().map_or(slot, |key| key.next)
    }

    /// Notes that the key of one slot follows that of another.
    pub fn follows(&mut self, before: usize, slot: usize) {
        if let Some(before) = &mut self.slots[before] {
            before.next = slot;
        }
    }

    /// The object for a key, made by `make` if it is not there, and its slot; a long key has none. `kept` counts the bytes of all parts.
    pub fn get(
        &mut self,
        name: &[u8],
        kept: &mut usize,
        make: impl FnOnce() -> Option<V>,
    ) -> Option<(V, Option<usize>)> {
        let Some((_, slot)) = Word::new(name) else {
            return Some((make()?, None));
        };
        if let Some(known) = self.slots[slot]
            .as_ref()
            .filter(|key| key.key.name() == name)
        {
            return Some((known.value.clone(), Some(slot)));
        }
        let value = make()?;
        if let Some(old) = &self.slots[slot] {
            *kept -= old.part.bytes.len();
        }
        self.slots[slot] = Some(DictKey {
            key: Key::new(name),
            value: value.clone(),
            next: slot,
            part: Part::default(),
        });
        Some((value, Some(slot)))
    }

    /// What is remembered of the values of the key in a slot.
    #[inline]
    pub fn part(&mut self, slot: usize) -> Option<&mut Part<V>> {
        Some(&mut self.slots[slot].as_mut()?.part)
    }
}

/// Short strings that were made last, wherever they stood.
pub struct Words<V> {
    kept: Vec<Option<(Word, V)>>,
}

/// A string of at most 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word {
    bytes: [u8; Word::MAX],
    len: u8,
}

impl Word {
    const MAX: usize = 32;
    const SLOTS: usize = 2048;

    /// The word, and the index of its slot.
    #[inline]
    fn new(string: &[u8]) -> Option<(Self, usize)> {
        if !(2..=Self::MAX).contains(&string.len()) {
            return None;
        }
        let mut bytes = [0; Self::MAX];
        bytes[..string.len()].copy_from_slice(string);
        let mut hash = string.len() as u64;
        for part in bytes.chunks_exact(8).take(string.len().div_ceil(8)) {
            let part = u64::from_le_bytes(part.try_into().unwrap_or_default());
            hash = (hash ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^= hash >> 29;
        }
        #[allow(clippy::cast_possible_truncation)]
        // The length is at most 32, and of the hash any bits do.
        let word = Self {
            bytes,
            len: string.len() as u8,
        };
        #[allow(clippy::cast_possible_truncation)]
        // The length is at most 32, and of the hash any bits do.
        let slot = (hash >> 40) as usize % Self::SLOTS;
        Some((word, slot))
    }
}

impl<V> Default for Words<V> {
    fn default() -> Self {
        let mut kept = Vec::new();
        kept.resize_with(Word::SLOTS, || None);
        Self { kept }
    }
}

impl<V: Clone> Words<V> {
    /// The object for a string, made by `make` if it is not there.
    #[inline]
    pub fn get(&mut self, string: &[u8], make: impl FnOnce() -> Option<V>) -> Option<V> {
        let Some((word, slot)) = Word::new(string) else {
            return make();
        };
        if let Some((known, value)) = &self.kept[slot] {
            if *known == word {
                return Some(value.clone());
            }
        }
        let value = make()?;
        self.kept[slot] = Some((word, value.clone()));
        Some(value)
    }
}
