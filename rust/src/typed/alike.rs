//! Lines that differ from an earlier line only in the contents of a few strings.
//!
//! A stream of deltas has thousands of lines that differ in their text and their `uuid`. The reader compares such a line with a
//! *pattern*, made of an earlier line, instead of reading it key by key. The message is a copy of the earlier message with other
//! strings. Only some of it is copied: the message itself, the records on the way to a changed string, and lists and dicts, which
//! a program can change. Everything else is shared. The pattern has its own copies of what can change, so a program can change its
//! messages freely.
//!
//! A new pattern has no *holes*. When a line differs from it within a string, that string becomes a hole.

use super::builder::Builder;
use super::memo::Strings;
use super::plan::{may_be, Class, ClassId, Plan};
use super::read::white;
use super::skip::skip;
use super::text::remembered;
use crate::simd::{begins, difference, string_end, PAD};

/// Patterns to keep.
const PATTERNS: usize = 4;
/// The longest line that becomes a pattern, in bytes.
const MAX_BYTES: usize = 4096;
/// The most holes of a pattern.
const MAX_HOLES: usize = 6;
/// A message with more lists and dicts than this becomes no pattern: they would mostly differ.
pub const MAX_OWNED: usize = 2;
/// The credit that making a pattern costs. A line that matches a pattern earns [`ALIKE`], for the time that it saved, and any other
/// line earns 1. So a stream that changes gets new patterns after a while, and a stream of unlike lines pays for few.
const COST: u32 = 128;
const ALIKE: u32 = 4;
/// The most credit.
const MAX_CREDIT: u32 = 8 * COST;
/// The most trust. A line that matches a pattern adds 1, any other line takes [`DOUBT`]: a comparison in vain costs as much time as a
/// match saves. Without trust only one line in [`TRIED`] is compared.
const MAX_TRUST: u32 = 32;
const DOUBT: u32 = 4;
const TRIED: u32 = 32;

/// A string of a pattern.
struct Leaf<V> {
    /// Where its contents are, in [`Pattern::bytes`].
    start: usize,
    end: usize,
    /// The record that has it: an index in [`Pattern::records`].
    record: usize,
    slot: usize,
    is_hole: bool,
    /// The last strings in this hole. They repeat when two sessions take turns.
    strings: Strings<V>,
}

/// A record of a pattern that has strings.
struct Record<V> {
    value: V,
    /// The record that holds it, and the slot there; `None` for the message itself.
    holder: Option<(usize, usize)>,
    /// The slots with a list or a dict: each message gets a copy.
    owned: Vec<usize>,
}

impl<V> Record<V> {
    fn own(&mut self, slot: usize) {
        if !self.owned.contains(&slot) {
            self.owned.push(slot);
        }
    }
}

/// A step of making a message: copies what a record owns, and then the record.
struct Step<V> {
    source: V,
    owned: Vec<V>,
    /// `(slot, index)`: the slots that change, and the index of the new value. The values are the strings of the holes, followed by all
    /// copies so far.
    changes: Vec<(usize, usize)>,
}

struct Pattern<V> {
    bytes: Vec<u8>,
    leaves: Vec<Leaf<V>>,
    /// Number of leaves that are holes.
    holes: usize,
    /// The message, and the records in it. A holder comes before the records that it holds.
    records: Vec<Record<V>>,
    /// The steps, in order. The last one makes the message.
    steps: Vec<Step<V>>,
}

/// The result of comparing a line with a pattern.
enum Compared {
    /// The line matches, and ends here.
    Alike(usize),
    /// The line differs at this byte of the pattern.
    Differs(usize),
    /// A string in a hole is invalid, or could not be made.
    Unclear,
}

/// The patterns of a reader.
pub struct Patterns<V> {
    kept: Vec<Pattern<V>>,
    /// The pattern of the last line.
    last: usize,
    /// The pattern that is replaced next.
    oldest: usize,
    /// Credit for new patterns.
    credit: u32,
    trust: u32,
    /// Lines since trust was lost, modulo [`TRIED`].
    turn: u32,
}

impl<V> Default for Patterns<V> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            last: 0,
            oldest: 0,
            credit: MAX_CREDIT,
            trust: MAX_TRUST,
            turn: 0,
        }
    }
}

impl<V: Clone> Patterns<V> {
    /// The message of the line at `at`, and where the line ends, if it matches a pattern.
    #[inline]
    pub fn find<B: Builder<Value = V>>(
        &mut self,
        builder: &mut B,
        stack: &mut Vec<V>,
        scratch: &mut Vec<u8>,
        data: &[u8],
        at: usize,
    ) -> Option<(V, usize)> {
        if self.trust == 0 {
            self.turn = (self.turn + 1) % TRIED;
            if self.turn != 0 {
                return None;
            }
        }
        for turn in 0..self.kept.len() {
            let index = match turn {
                0 => self.last,
                turn if turn <= self.last => turn - 1,
                turn => turn,
            };
            if let Some(found) = self.kept[index].read(builder, stack, scratch, data, at) {
                self.last = index;
                self.credit = (self.credit + ALIKE).min(MAX_CREDIT);
                self.trust = (self.trust + 1).min(MAX_TRUST);
                return Some(found);
            }
        }
        self.trust = self.trust.saturating_sub(DOUBT);
        None
    }

    /// Whether a line of this length that matches no pattern should become one.
    pub fn wants(&mut self, bytes: usize) -> bool {
        if self.trust == 0 && self.turn != 0 {
            return false;
        }
        self.credit = (self.credit + 1).min(MAX_CREDIT);
        let wants = bytes <= MAX_BYTES && self.credit >= COST;
        if wants {
            self.credit -= COST;
        }
        wants
    }

    /// Makes a pattern of a line and its message.
    pub fn learn<B: Builder<Value = V>>(
        &mut self,
        plan: &Plan<V, B::Class>,
        builder: &mut B,
        line: &[u8],
        class: ClassId,
        message: &V,
    ) {
        // A program may change lists and dicts of the message that it gets. The pattern needs a copy of its own.
        let Some(value) = builder.copy(message) else {
            return;
        };
        let message = Record {
            value,
            holder: None,
            owned: Vec::new(),
        };
        let mut pattern = Pattern {
            bytes: line.to_vec(),
            leaves: Vec::new(),
            holes: 0,
            records: vec![message],
            steps: Vec::new(),
        };
        let mut padded = line.to_vec();
        padded.resize(line.len() + PAD, b'\n');
        if pattern.walk(plan, builder, &padded, 0, class, 0).is_none()
            || pattern.make_steps(builder).is_none()
        {
            return;
        }
        if self.kept.len() < PATTERNS {
            self.kept.push(pattern);
        } else {
            self.kept[self.oldest] = pattern;
            self.oldest = (self.oldest + 1) % PATTERNS;
        }
    }
}

impl<V: Clone> Pattern<V> {
    fn read<B: Builder<Value = V>>(
        &mut self,
        builder: &mut B,
        stack: &mut Vec<V>,
        scratch: &mut Vec<u8>,
        data: &[u8],
        at: usize,
    ) -> Option<(V, usize)> {
        let base = stack.len();
        loop {
            match self.compare(builder, stack, scratch, data, at) {
                Compared::Alike(end) => {
                    let message = self.make(builder, stack, base);
                    stack.truncate(base);
                    return Some((message?, end));
                }
                Compared::Differs(place) => {
                    stack.truncate(base);
                    // Leaves are in the order of the bytes.
                    let index = self.leaves.partition_point(|leaf| leaf.end < place);
                    let leaf = self
                        .leaves
                        .get_mut(index)
                        .filter(|leaf| leaf.start <= place)?;
                    if leaf.is_hole || self.holes == MAX_HOLES {
                        return None;
                    }
                    leaf.is_hole = true;
                    self.holes += 1;
                    self.make_steps(builder)?;
                }
                Compared::Unclear => {
                    stack.truncate(base);
                    return None;
                }
            }
        }
    }

    /// Compares a line with the pattern, and pushes the strings of its holes on the stack.
    fn compare<B: Builder<Value = V>>(
        &mut self,
        builder: &mut B,
        stack: &mut Vec<V>,
        scratch: &mut Vec<u8>,
        data: &[u8],
        mut at: usize,
    ) -> Compared {
        let mut from = 0;
        for leaf in self.leaves.iter_mut().filter(|leaf| leaf.is_hole) {
            let part = &self.bytes[from..leaf.start];
            if !begins(data, at, part) {
                return Compared::Differs(from + difference(data, at, part));
            }
            let start = at + part.len();
            let Some((value, end)) = remembered(&mut leaf.strings, builder, scratch, data, start)
            else {
                return Compared::Unclear;
            };
            stack.push(value);
            at = end;
            from = leaf.end;
        }
        let part = &self.bytes[from..];
        if begins(data, at, part) {
            Compared::Alike(at + part.len())
        } else {
            Compared::Differs(from + difference(data, at, part))
        }
    }

    /// Makes the message. Its strings are on the stack, from `base` on.
    fn make<B: Builder<Value = V>>(
        &self,
        builder: &mut B,
        stack: &mut Vec<V>,
        base: usize,
    ) -> Option<V> {
        for step in &self.steps {
            for value in &step.owned {
                let copy = builder.copy(value)?;
                stack.push(copy);
            }
            let made = builder.copy_with(&step.source, &step.changes, &stack[base..])?;
            stack.push(made);
        }
        stack.pop()
    }

    /// Makes the steps for the present holes.
    fn make_steps<B: Builder<Value = V>>(&mut self, builder: &mut B) -> Option<()> {
        let holes: Vec<&Leaf<V>> = self.leaves.iter().filter(|leaf| leaf.is_hole).collect();
        let mut changes: Vec<Vec<(usize, usize)>> =
            self.records.iter().map(|_| Vec::new()).collect();
        for (index, hole) in holes.iter().enumerate() {
            changes[hole.record].push((hole.slot, index));
        }
        self.steps.clear();
        let mut made = holes.len();
        // In reverse: a record is copied before the record that holds it.
        for (index, record) in self.records.iter().enumerate().rev() {
            if changes[index].is_empty() && record.owned.is_empty() && index > 0 {
                continue;
            }
            let mut owned = Vec::new();
            for &slot in &record.owned {
                owned.push(builder.slot(&record.value, slot)?);
                changes[index].push((slot, made));
                made += 1;
            }
            if let Some((holder, slot)) = record.holder {
                changes[holder].push((slot, made));
            }
            made += 1;
            self.steps.push(Step {
                source: record.value.clone(),
                owned,
                changes: std::mem::take(&mut changes[index]),
            });
        }
        Some(())
    }

    /// Finds the strings, lists and dicts of the record at `at`. `None` if one cannot be found.
    fn walk<B: Builder<Value = V>>(
        &mut self,
        plan: &Plan<V, B::Class>,
        builder: &mut B,
        data: &[u8],
        at: usize,
        class: ClassId,
        record: usize,
    ) -> Option<()> {
        let Class::Planned(shape) = &plan.classes[class] else {
            return None;
        };
        let mut scratch = Vec::new();
        let mut at = white(data, at + 1);
        while data.get(at)? != &b'}' {
            let (end, _) = string_end(data, at + 1);
            let field = plan.find(shape, data.get(at + 1..end)?);
            at = white(data, white(data, end + 1) + 1);
            let end = skip(data, at, 0, &mut scratch)?;
            let (slot, kind) = match field.map(|field| &plan.fields[field]) {
                Some(field) => (field.slot, field.kind.map(|kind| &plan.kinds[kind])),
                None => (shape.extra?, None),
            };
            match (data.get(at)?, kind) {
                (_, None) if field.is_none() => self.records[record].own(slot),
                (b'"', Some(kind)) if kind.may_be & (may_be::TEXT | may_be::ANY) != 0 => {
                    self.leaves.push(Leaf {
                        start: at + 1,
                        end: end - 1,
                        record,
                        slot,
                        is_hole: false,
                        strings: Strings::default(),
                    });
                }
                (b'{', Some(kind)) if kind.may_be & may_be::RECORD != 0 => {
                    let class = match kind.classes.as_slice() {
                        [only] => only.class,
                        members => {
                            let tag = super::skip::find_tag(data, at, &kind.tag_key, &mut scratch)?;
                            members.iter().find(|member| member.tag == tag)?.class
                        }
                    };
                    let value = builder.slot(&self.records[record].value, slot)?;
                    self.records.push(Record {
                        value,
                        holder: Some((record, slot)),
                        owned: Vec::new(),
                    });
                    self.walk(plan, builder, data, at, class, self.records.len() - 1)?;
                }
                (b'{' | b'[', Some(_)) => self.records[record].own(slot),
                _ => {}
            }
            at = white(data, end);
            if data.get(at)? == &b',' {
                at = white(data, at + 1);
            }
        }
        Some(())
    }
}
