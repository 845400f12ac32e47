//! Remembers the values that the reader made, and returns them again for the same bytes.
//!
//! The basic idea is simple: the lines of a session repeat. If each line has `"session_id":"7f3a"`, the reader compares the bytes after
//! the key with the bytes of the previous line, finds them equal, and returns the same Python string instead of a new one.
//!
//! The memory is bounded: each store has a fixed number of entries, a kept string or value has a maximum length, and all objects and arrays
//! together have at most [`MAX_KEPT`] bytes of JSON. Python's objects take more: an empty list takes 40 times its two bytes of JSON. So a
//! value that consists of too many objects for its bytes is not kept (see [`max_objects`]). After several misses in a row, the reader looks
//! up only a few of the field's values. If memory runs out, a new value is not kept.

use crate::fallible::{boxed, Boxed};
use crate::simd::{begins, Key, HASH_FACTOR};

/// The maximum length in bytes of a string that a field keeps.
const MAX_STRING: usize = 96;
/// The lengths in bytes of the objects and arrays that a field keeps. Reading a shorter one again is as fast as a look-up.
const PART: std::ops::RangeInclusive<usize> = 16..=64 * 1024;
/// The maximum total size in bytes of the objects and arrays that a reader keeps, as JSON. With [`max_objects`], the Python objects and the
/// templates of these values take at most about 20 times as much.
pub const MAX_KEPT: usize = 1024 * 1024;
/// After this many misses in a row, the reader looks up only one value in [`AGAIN`].
const MISSES: u8 = 8;
const AGAIN: u8 = 64;

/// Returns the maximum number of lists, dicts and records in a kept value that has this many bytes of JSON. Values of recorded sessions
/// have less than half as many. With the template of its copies, each takes a few hundred bytes.
#[must_use]
pub fn max_objects(bytes: usize) -> usize {
    8 + bytes / 16
}

/// Returns a hash, with the initial value `start`, of the complete groups of 8 bytes.
#[inline]
pub(super) fn hash(start: u64, bytes: &[u8]) -> u64 {
    bytes.chunks_exact(8).fold(start, |hash, part| {
        let part = u64::from_le_bytes(part.try_into().unwrap_or_default());
        let hash = (hash ^ part).wrapping_mul(HASH_FACTOR);
        hash ^ hash >> 29
    })
}

/// Decides from the misses so far whether to look up a field's next value.
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

/// Marks an entry without a string. It is above [`MAX_STRING`].
const NO_STRING: u8 = u8::MAX;

/// The last two different strings of a field.
#[repr(align(32))] // In one line of the processor's cache.
pub struct Strings<V> {
    /// Room for both strings, allocated when the first is kept.
    bytes: Option<Box<[[u8; MAX_STRING]; 2]>>,
    values: [Option<V>; 2],
    /// The length of each string, or [`NO_STRING`].
    lengths: [u8; 2],
    oldest: u8,
    patience: Patience,
    is_looking: bool,
}

impl<V> Default for Strings<V> {
    fn default() -> Self {
        Self {
            bytes: None,
            values: [None, None],
            lengths: [NO_STRING; 2],
            oldest: 0,
            patience: Patience::default(),
            is_looking: false,
        }
    }
}

impl<V: Clone> Strings<V> {
    /// Returns the index of the kept string that equals the contents at `start`, and the index of the closing quote.
    #[inline]
    pub fn find(&mut self, data: &[u8], start: usize) -> Option<(usize, usize)> {
        self.is_looking = self.patience.looks();
        let kept = self.bytes.as_ref().filter(|_| self.is_looking)?;
        for (index, bytes) in kept.iter().enumerate() {
            let len = usize::from(self.lengths[index]);
            let end = start + len;
            // For an entry without a string, `get` returns `None`.
            let known = bytes.get(..len);
            if data.get(end) == Some(&b'"') && known.is_some_and(|known| begins(data, start, known))
            {
                self.patience.misses = 0;
                return Some((index, end));
            }
        }
        None
    }

    /// Returns the object of a string that [`find`](Self::find) found.
    #[inline]
    pub fn get(&self, index: usize) -> Option<V> {
        self.values[index].clone()
    }

    /// Keeps a string without escapes that [`find`](Self::find) just missed.
    #[inline]
    pub fn keep(&mut self, string: &[u8], value: &V) {
        if !self.is_looking || string.len() > MAX_STRING {
            return;
        }
        self.patience.miss();
        if self.bytes.is_none() {
            self.make_room();
        }
        let Some(bytes) = &mut self.bytes else {
            return;
        };
        let oldest = usize::from(self.oldest % 2);
        bytes[oldest][..string.len()].copy_from_slice(string);
        #[allow(clippy::cast_possible_truncation)] // The length is at most MAX_STRING.
        let length = string.len() as u8;
        self.lengths[oldest] = length;
        self.values[oldest] = Some(value.clone());
        self.oldest ^= 1;
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        self.bytes = boxed([[0; MAX_STRING]; 2]).ok();
    }
}

/// A kept value.
pub enum Kept<V, T> {
    /// A program cannot change the value: messages share it.
    Shared(V),
    /// Each message gets a copy from the template.
    Copied(Boxed<T>),
}

/// The last object or array of a field.
#[repr(align(64))] // In one line of the processor's cache.
pub struct Part<V, T> {
    bytes: Vec<u8>,
    /// The value. The part keeps it when the field has the same bytes for the second time.
    value: Option<Kept<V, T>>,
    /// True if no template could be made for the value of these bytes. Other bytes get another try.
    is_refused: bool,
    /// How many objects and arrays contained the value when it was read. If more contain it now, the reader reads it again, because it may
    /// exceed the maximum depth.
    depth: u8,
    patience: Patience,
    /// True while the value is being read, because the same field may occur inside the value.
    is_busy: bool,
}

impl<V, T> Default for Part<V, T> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            value: None,
            is_refused: false,
            depth: 0,
            patience: Patience::default(),
            is_busy: false,
        }
    }
}

/// The result of [`Part::find`].
pub enum Found<'a, V, T> {
    /// The value, and the index after it.
    Same(&'a Kept<V, T>, usize),
    /// The same bytes as last time. Read the value, and then [keep](Part::keep) it.
    Again,
    /// Different bytes from last time. Read the value, and then [note](Part::note) its bytes.
    Other,
    /// There was no look-up, or the value of these bytes was refused. Read it, and neither keep nor note it.
    Nothing,
}

impl<V, T> Part<V, T> {
    /// Returns the number of bytes allocated for the kept object or array.
    #[cfg(test)]
    pub fn allocated(&self) -> usize {
        self.bytes.capacity()
    }

    /// Looks up the value at `at`. `depth` is the number of objects and arrays that contain it. After [`Found::Again`] and
    /// [`Found::Other`], the caller reads the value and then calls [`Self::done`].
    #[inline]
    pub fn find(&mut self, data: &[u8], at: usize, depth: usize) -> Found<'_, V, T> {
        if self.is_busy || !self.patience.looks() {
            return Found::Nothing;
        }
        if !self.bytes.is_empty() && begins(data, at, &self.bytes) {
            self.patience.misses = 0;
            match &self.value {
                Some(value) if depth <= usize::from(self.depth) => {
                    return Found::Same(value, at + self.bytes.len());
                }
                None if self.is_refused => return Found::Nothing,
                _ => {}
            }
            self.is_busy = true;
            return Found::Again;
        }
        self.patience.miss();
        self.is_busy = true;
        Found::Other
    }

    /// Allows look-ups again. Call it after the value was read, even if the value was invalid.
    #[inline]
    pub fn done(&mut self) {
        self.is_busy = false;
    }

    /// Keeps the value of `bytes`, unless the part noted other bytes since [`find`](Self::find). If `value` is `None`, the value of these
    /// bytes cannot be kept.
    pub fn keep(&mut self, bytes: &[u8], value: Option<Kept<V, T>>, depth: usize) {
        if self.bytes == bytes {
            self.is_refused = value.is_none();
            self.value = value;
            #[allow(clippy::cast_possible_truncation)] // `depth` is at most `MAX_DEPTH`.
            let depth = depth as u8;
            self.depth = depth;
        }
    }

    /// Replaces the kept bytes by the bytes of a new value, and drops the old value. `kept_bytes` counts the bytes of all parts.
    pub fn note(&mut self, bytes: &[u8], kept_bytes: &mut usize) {
        let others = *kept_bytes - self.bytes.len();
        if !PART.contains(&bytes.len()) || others + bytes.len() > MAX_KEPT {
            return;
        }
        self.value = None;
        self.is_refused = false;
        self.bytes.clear();
        // Not `shrink_to`, which aborts if memory runs out.
        if self.bytes.capacity() > 2 * bytes.len() {
            self.bytes = Vec::new();
        }
        if self.bytes.try_reserve(bytes.len()).is_ok() {
            self.bytes.extend_from_slice(bytes);
        }
        *kept_bytes = others + self.bytes.len();
    }
}

/// Remembers the keys of dicts, and the last object or array that followed each key.
///
/// A slot is an index from a hash of the key. Keys with the same slot replace each other.
pub struct Keys<V, T> {
    slots: Vec<Option<DictKey<V>>>,
    /// The part of the key in each slot.
    parts: Vec<Part<V, T>>,
}

/// The key of a slot.
#[repr(align(64))] // In one line of the processor's cache.
struct DictKey<V> {
    key: Key,
    value: V,
    /// The slot of the key that last followed this key in a dict.
    next: usize,
}

// With values that are addresses, such as CPython's.
#[cfg(target_pointer_width = "64")]
const _: () = {
    type Address = std::ptr::NonNull<()>;
    assert!(size_of::<Strings<Address>>() == 32);
    assert!(size_of::<Part<Address, ()>>() == 64);
    assert!(size_of::<Option<DictKey<Address>>>() == 64);
};

impl<V, T> Default for Keys<V, T> {
    fn default() -> Self {
        let (mut slots, mut parts) = (Vec::new(), Vec::new());
        slots.resize_with(ShortString::SLOTS, || None);
        parts.resize_with(ShortString::SLOTS, Part::default);
        Self { slots, parts }
    }
}

impl<V, T> Keys<V, T> {
    /// Returns the number of bytes allocated for kept objects and arrays.
    #[cfg(test)]
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.parts.iter().map(Part::allocated).sum()
    }
}

impl<V: Clone, T> Keys<V, T> {
    /// Returns the object of the key at `at` and the index after its colon, if the data has this slot's key there, followed by a colon
    /// without white space.
    #[inline]
    #[must_use]
    pub fn find(&self, slot: usize, data: &[u8], at: usize) -> Option<(V, usize)> {
        let known = self.slots[slot].as_ref()?;
        let end = known.key.end(data, at)?;
        Some((known.value.clone(), end))
    }

    /// Returns the slot of the key that last followed this slot's key.
    #[inline]
    #[must_use]
    pub fn next(&self, slot: usize) -> usize {
        self.slots[slot].as_ref().map_or(slot, |key| key.next)
    }

    /// Notes that the key of `slot` follows the key of `before`.
    pub fn follows(&mut self, before: usize, slot: usize) {
        if let Some(before) = &mut self.slots[before] {
            before.next = slot;
        }
    }

    /// Returns the object of a key, and the key's slot. Calls `make` for a new key. A key of fewer than 2 or more than 32 bytes has no
    /// slot. `kept_bytes` counts the bytes of all parts.
    pub fn get(
        &mut self,
        name: &[u8],
        kept_bytes: &mut usize,
        make: impl FnOnce() -> Option<V>,
    ) -> Option<(V, Option<usize>)> {
        let Some((_, slot)) = ShortString::new(name) else {
            return Some((make()?, None));
        };
        if let Some(known) = self.slots[slot]
            .as_ref()
            .filter(|key| key.key.name() == name)
        {
            return Some((known.value.clone(), Some(slot)));
        }
        let value = make()?;
        let Some(key) = Key::new(name) else {
            return Some((value, None));
        };
        let old = std::mem::take(&mut self.parts[slot]);
        *kept_bytes -= old.bytes.len();
        self.slots[slot] = Some(DictKey {
            key,
            value: value.clone(),
            next: slot,
        });
        Some((value, Some(slot)))
    }

    /// Returns the last object or array that followed a slot's key.
    #[inline]
    pub fn part(&mut self, slot: usize) -> &mut Part<V, T> {
        &mut self.parts[slot]
    }
}

/// Remembers strings of 2 to 32 bytes in lists and dicts, by their hash. Strings with the same hash replace each other.
pub struct ShortStrings<V> {
    kept: Vec<Option<(ShortString, V)>>,
}

/// A string of at most 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ShortString {
    bytes: [u8; ShortString::MAX],
    len: u8,
}

impl ShortString {
    const MAX: usize = 32;
    const SLOTS: usize = 2048;

    /// Returns the string, and the index of its slot; `None` if it has fewer than 2 bytes or more than 32.
    #[inline]
    fn new(string: &[u8]) -> Option<(Self, usize)> {
        if !(2..=Self::MAX).contains(&string.len()) {
            return None;
        }
        let mut bytes = [0; Self::MAX];
        bytes[..string.len()].copy_from_slice(string);
        let hash = hash(
            string.len() as u64,
            &bytes[..string.len().next_multiple_of(8)],
        );
        #[allow(clippy::cast_possible_truncation)] // The length is at most 32.
        let word = Self {
            bytes,
            len: string.len() as u8,
        };
        #[allow(clippy::cast_possible_truncation)] // Only some bits of the hash are needed.
        let slot = (hash >> 40) as usize % Self::SLOTS;
        Some((word, slot))
    }
}

impl<V> Default for ShortStrings<V> {
    fn default() -> Self {
        let mut kept = Vec::new();
        kept.resize_with(ShortString::SLOTS, || None);
        Self { kept }
    }
}

impl<V: Clone> ShortStrings<V> {
    /// Returns the object of a string; calls `make` for a new string.
    #[inline]
    pub fn get(&mut self, string: &[u8], make: impl FnOnce() -> Option<V>) -> Option<V> {
        let Some((word, slot)) = ShortString::new(string) else {
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
