//! [`Tree`]: the wanted keys of an object, and of the objects in it.
//!
//! For example, a tree has the paths `type`, `message.id` and `message.usage`. Each key has a number, its *slot*, which is the index of the
//! key's value:
//!
//! ```text
//! node 0           type (slot 0), message (slot 1) ──► node 1
//! node 1           id (slot 2), usage (slot 3)
//! ```

use crate::kinds::string::decoded;
use crate::simd::{Engine, Plain};

/// The 0-based number of a wanted key in its tree.
pub type Slot = u8;

/// The maximum number of keys in a tree. A walk has one bit for each key in a `u64`.
pub const MAX_SLOTS: usize = 64;
/// Marks the end of a chain of keys with the same hash.
const NONE: u8 = u8::MAX;

/// The wanted keys of an object, at any depth, but not of objects in lists.
#[derive(Debug)]
pub struct Tree {
    /// The objects with wanted keys. Node 0 is the outermost.
    nodes: Vec<Node>,
    slots: u8,
}

/// An object with wanted keys.
#[derive(Debug)]
struct Node {
    /// The node of the object that contains this one.
    parent: u8,
    keys: Vec<Key>,
    /// A hash table: for each hash, the index of the first key in `keys`.
    heads: [u8; 64],
}

/// A wanted key of an object.
#[derive(Debug)]
pub struct Key {
    name: Box<[u8]>,
    /// The number of the key in its tree.
    pub slot: Slot,
    /// The node of the object that is the key's value, if keys of that object are wanted.
    pub inner: Option<u8>,
    /// The index of the next key with the same hash.
    next: u8,
}

/// Returns a hash of a key's length, first byte and last byte.
fn hash(name: &[u8]) -> usize {
    let (first, last) = (name.first(), name.last());
    let ends =
        first.map_or(0, |&byte| usize::from(byte)) * 5 + last.map_or(0, |&byte| usize::from(byte));
    (ends + name.len() * 11) % 64
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: vec![Node::new(0)],
            slots: 0,
        }
    }
}

impl Node {
    fn new(parent: u8) -> Self {
        Self {
            parent,
            keys: Vec::new(),
            heads: [NONE; 64],
        }
    }

    /// Returns the index of the key with this name.
    #[inline]
    fn find(&self, name: &[u8]) -> Option<usize> {
        let mut at = self.heads[hash(name)];
        while let Some(key) = self.keys.get(usize::from(at)) {
            if key.name.len() == name.len() && Plain.begins(name, 0, &key.name) {
                return Some(usize::from(at));
            }
            at = key.next;
        }
        None
    }
}

impl Tree {
    /// Adds a path (keys joined by dots), and returns the slot of its last key. Returns `None` if the tree would have more than
    /// [`MAX_SLOTS`] keys.
    pub fn want(&mut self, path: &str) -> Option<Slot> {
        let (mut node, mut slot) = (0_usize, None);
        for (depth, name) in path.split('.').enumerate() {
            if depth > 0 {
                node = usize::from(self.inner(node, slot?)?);
            }
            slot = Some(self.key(node, name.as_bytes())?);
        }
        slot
    }

    /// Returns the slot of a node's key, and adds the key if it is new.
    fn key(&mut self, node: usize, name: &[u8]) -> Option<Slot> {
        let new = self.slots;
        let node = &mut self.nodes[node];
        if let Some(found) = node.find(name) {
            return Some(node.keys[found].slot);
        }
        if usize::from(new) >= MAX_SLOTS {
            return None;
        }
        let head = &mut node.heads[hash(name)];
        node.keys.push(Key {
            name: name.into(),
            slot: new,
            inner: None,
            next: *head,
        });
        *head = u8::try_from(node.keys.len() - 1).ok()?;
        self.slots += 1;
        Some(new)
    }

    /// Returns the node of the object under a key, and adds the node if it is new.
    fn inner(&mut self, node: usize, slot: Slot) -> Option<u8> {
        let new = u8::try_from(self.nodes.len()).ok()?;
        let key = self.nodes[node]
            .keys
            .iter_mut()
            .find(|key| key.slot == slot)?;
        if let Some(inner) = key.inner {
            return Some(inner);
        }
        key.inner = Some(new);
        self.nodes.push(Node::new(u8::try_from(node).ok()?));
        Some(new)
    }

    /// Returns the number of wanted keys.
    #[must_use]
    pub fn slots(&self) -> usize {
        usize::from(self.slots)
    }

    /// Returns the node of the object that contains the object of `node`.
    #[inline]
    #[must_use]
    pub fn parent(&self, node: u8) -> u8 {
        self.nodes[usize::from(node)].parent
    }

    /// Returns the wanted key `name` of a node, if there is one. `name` has no escapes.
    #[inline]
    #[must_use]
    pub fn key_of(&self, node: u8, name: &[u8]) -> Option<&Key> {
        let node = &self.nodes[usize::from(node)];
        node.find(name).map(|at| &node.keys[at])
    }

    /// Does the same as [`key_of`](Self::key_of) for a `name` with escapes.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn key_of_escaped(&self, node: u8, name: &[u8]) -> Option<&Key> {
        // Compare with each key in turn, because decoding the name first would copy it, and it may be as long as the line. All wanted keys
        // are ASCII, so each of their bytes is one code unit.
        let mut keys = self.nodes[usize::from(node)].keys.iter();
        keys.find(|key| decoded(name).eq(key.name.iter().copied().map(u16::from)))
    }
}

#[cfg(test)]
mod tests;
