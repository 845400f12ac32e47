//! The wanted keys of an object, and of the objects in it.

use crate::kinds::string::decoded;
use crate::simd::{Engine, Plain};

/// A wanted key, by its number in its tree.
pub type Slot = u8;

/// Limit for the keys of a tree: each has one bit of a word.
pub const MAX_SLOTS: usize = 64;
const NONE: u8 = u8::MAX;

/// The wanted keys of an object, at any depth, but not of objects in lists.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    slots: u8,
}

/// An object.
#[derive(Debug)]
struct Node {
    parent: u8,
    keys: Vec<Key>,
    /// Hash -> the first key with it.
    heads: [u8; 64],
}

/// A key of an object.
#[derive(Debug)]
pub struct Key {
    name: Box<[u8]>,
    /// Its number.
    pub slot: Slot,
    /// The node for the object that is its value, if keys of that object are wanted.
    pub inner: Option<u8>,
    next: u8,
}

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
    /// Adds the value at a path: keys with dots between. `None` if there are too many.
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

    /// Number of wanted keys.
    #[must_use]
    pub fn slots(&self) -> usize {
        usize::from(self.slots)
    }

    /// The parent of a node.
    #[inline]
    #[must_use]
    pub fn parent(&self, node: u8) -> u8 {
        self.nodes[usize::from(node)].parent
    }

    /// The key of this name, which has no escapes, in the object of a node.
    #[inline]
    #[must_use]
    pub fn key_of(&self, node: u8, name: &[u8]) -> Option<&Key> {
        let node = &self.nodes[usize::from(node)];
        node.find(name).map(|at| &node.keys[at])
    }

    /// As [`key_of`](Self::key_of), of a name with escapes.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn key_of_escaped(&self, node: u8, name: &[u8]) -> Option<&Key> {
        // Compare with each key in turn, without a copy of the name, which may be as long as the line. All known names are ASCII.
        let mut keys = self.nodes[usize::from(node)].keys.iter();
        keys.find(|key| decoded(name).eq(key.name.iter().copied().map(u16::from)))
    }
}

#[cfg(test)]
mod tests;
