//! Recognises lines that differ from an earlier line only in the contents of a few strings.
//!
//! The basic idea is simple: a stream has thousands of deltas that differ only in their text and their `uuid`:
//!
//! ```text
//! {"type":"stream_event","event":{"delta":{"text":"Hel"}},"uuid":"1"}
//! {"type":"stream_event","event":{"delta":{"text":"lo"}},"uuid":"2"}
//! ```
//!
//! The reader keeps the first line as a *pattern*. It compares the second line with the pattern instead of reading it key by key, and makes
//! its message by copying the earlier message with other strings. It copies the message itself, the records around a changed string, and
//! lists and dicts, because a program can change them. The two messages share everything else. The pattern has its own copies of lists and
//! dicts: if a program changes its message, the pattern does not change.
//!
//! The strings of a pattern that may differ are its *holes*. A new pattern has no holes. When a line differs from the pattern inside a
//! string, this string becomes a hole.

use super::builder::Builder;
use super::memo::Strings;
use super::plan::{may_be, Class, ClassId, Plan, ANY};
use super::read::white;
use super::skip::{find_tag, skip};
use super::text::{contents, Contents};
use crate::fallible::{collect, copied, push};
use crate::simd::{begins, difference, string_end, PAD};

/// The maximum number of patterns in a reader.
const PATTERNS: usize = 4;
/// The maximum length in bytes of a line that becomes a pattern.
const MAX_BYTES: usize = 4096;
/// The maximum number of holes in a pattern.
const MAX_HOLES: usize = 6;
/// The maximum number of lists and dicts in a message that becomes a pattern. A message with more of them rarely matches the next line.
pub const MAX_OWNED: usize = 2;
/// The credit that a new pattern costs. A line that matches a pattern earns [`ALIKE`], any other line earns 1. If a stream's lines change,
/// the reader soon makes new patterns. If all its lines differ, the reader makes eight patterns, and then at most one in 128 lines.
const COST: u32 = 128;
const ALIKE: u32 = 4;
/// The maximum credit.
const MAX_CREDIT: u32 = 8 * COST;
/// The maximum trust. A line that matches a pattern adds 1, and any other line subtracts [`DOUBT`]. When the trust is 0, the reader
/// compares only one line in [`TRIED`].
const MAX_TRUST: u32 = 32;
const DOUBT: u32 = 4;
const TRIED: u32 = 32;

/// A string of a pattern.
struct Leaf<V> {
    /// The start and the end of its contents in [`Pattern::bytes`].
    start: usize,
    end: usize,
    /// The index in [`Pattern::records`] of the record that contains the string.
    record: usize,
    slot: usize,
    /// The last strings in this hole. If two sessions write in turn, a `session_id` here repeats every other line.
    strings: Strings<V>,
}

/// A record in a pattern that contains strings, lists or dicts.
struct Record<V> {
    value: V,
    /// The index of the record that contains this record, and its slot there; `None` for the message.
    holder: Option<(usize, usize)>,
    /// The slots with a list or a dict. Each message gets its own copy of them.
    owned: Vec<usize>,
    /// True for a dict. Each message gets its own copy of the dict, and a slot is the index of a key.
    is_dict: bool,
}

impl<V> Record<V> {
    fn own(&mut self, slot: usize) -> Option<()> {
        if self.owned.contains(&slot) {
            return Some(());
        }
        push(&mut self.owned, slot).ok()
    }
}

/// A step in making a message. Each step pushes a value on a stack; the last step pushes the message.
enum Step<T> {
    /// Pushes the string of the hole with this index.
    Text(usize),
    /// Pops a value for each open slot of the template, puts them into a copy of it, and pushes the copy.
    Stamp(T),
}

struct Pattern<V, T> {
    bytes: Vec<u8>,
    leaves: Vec<Leaf<V>>,
    /// The indexes in `leaves` of the strings that are holes, in ascending order.
    holes: Vec<usize>,
    /// The message, and the records and dicts in it. A record follows the record that contains it.
    records: Vec<Record<V>>,
    steps: Vec<Step<T>>,
}

/// The patterns of a reader.
pub struct Patterns<V, T> {
    /// The first pattern is the one that matched last.
    kept: Vec<Pattern<V, T>>,
    /// The credit for new patterns.
    credit: u32,
    trust: u32,
    /// The number of lines since the trust was last above 0, modulo [`TRIED`].
    turn: u32,
    /// The current line's strings in the holes.
    texts: Vec<Contents>,
}

impl<V, T> Default for Patterns<V, T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            credit: MAX_CREDIT,
            trust: MAX_TRUST,
            turn: 0,
            texts: Vec::new(),
        }
    }
}

/// Returns a shallow copy of a record or dict; `None` for any other value, or if memory runs out. A pattern needs copies, because the
/// program that decodes has the message and may change it, including its inner records.
fn own<B: Builder>(builder: &mut B, value: &B::Value) -> Option<B::Value> {
    let template = builder.template(value, Vec::new())?;
    builder.stamp(&template, &mut Vec::new())
}

impl<V: Clone, T> Patterns<V, T> {
    /// Returns the message of the line at `at` and the index after the line's object, if the line matches a pattern.
    #[inline]
    pub fn find<B: Builder<Value = V, Template = T>>(
        &mut self,
        builder: &mut B,
        stack: &mut Vec<V>,
        scratch: &mut Vec<u8>,
        data: &[u8],
        at: usize,
    ) -> Option<(V, usize)> {
        if self.kept.is_empty() {
            return None;
        }
        if self.trust == 0 {
            self.turn = (self.turn + 1) % TRIED;
            if self.turn != 0 {
                return None;
            }
        }
        let texts = &mut self.texts;
        let mut kept = self.kept.iter_mut().enumerate();
        let mut found = kept.find_map(|(index, pattern)| {
            let end = pattern.compare(data, at, texts)?;
            Some((index, pattern, end))
        });
        if found.is_none() {
            let mut kept = self.kept.iter_mut().enumerate();
            found = kept.find_map(|(index, pattern)| {
                let end = pattern.compare_with_more_holes(builder, data, at, texts)?;
                Some((index, pattern, end))
            });
        }
        let (index, pattern, end) = found?;
        let base = stack.len();
        let Some(message) = pattern.make(builder, stack, scratch, data, texts) else {
            stack.truncate(base);
            return None;
        };
        if index > 0 {
            self.kept.swap(0, index);
        }
        self.credit = (self.credit + ALIKE).min(MAX_CREDIT);
        self.trust = (self.trust + 1).min(MAX_TRUST);
        Some((message, end))
    }

    /// Notes that a line of this length matches no pattern. Returns whether to make a pattern of the line.
    pub fn miss(&mut self, bytes: usize) -> bool {
        if self.trust == 0 && self.turn != 0 {
            return false;
        }
        self.trust = self.trust.saturating_sub(DOUBT);
        self.credit = (self.credit + 1).min(MAX_CREDIT);
        let wants = bytes <= MAX_BYTES && self.credit >= COST;
        if wants {
            self.credit -= COST;
        }
        wants
    }

    /// Makes a pattern from a line and its message. `class` is the message's class; `None` for a dict. Returns `None` if the line cannot be
    /// a pattern, or if memory runs out.
    pub fn learn<B: Builder<Value = V, Template = T>>(
        &mut self,
        plan: &Plan<V, B::Class>,
        builder: &mut B,
        line: &[u8],
        class: Option<ClassId>,
        message: &V,
    ) -> Option<()> {
        // The program may change the lists and dicts of its message, so the pattern needs copies. The number of their objects has no
        // maximum, because the line of a pattern is short.
        let template = builder.deep_template(message, usize::MAX)?;
        let copy = builder.stamp(&template, &mut Vec::new())?;
        let message = Record {
            value: own(builder, &copy)?,
            holder: None,
            owned: Vec::new(),
            is_dict: false,
        };
        let mut pattern = Pattern {
            bytes: copied(line).ok()?,
            leaves: Vec::new(),
            holes: Vec::new(),
            records: collect([message].into_iter()).ok()?,
            steps: Vec::new(),
        };
        let mut padded = Vec::new();
        padded.try_reserve_exact(line.len() + PAD).ok()?;
        padded.extend_from_slice(line);
        padded.extend_from_slice(&[b'\n'; PAD]);
        pattern.walk(plan, builder, &padded, 0, class, 0)?;
        pattern.make_steps(builder)?;
        // With this room, `compare` pushes the strings of any line without an allocation.
        self.texts.clear();
        self.texts.try_reserve(MAX_HOLES).ok()?;
        self.kept.truncate(PATTERNS - 1);
        self.kept.try_reserve(1).ok()?;
        self.kept.insert(0, pattern);
        Some(())
    }
}

impl<V: Clone, T> Pattern<V, T> {
    /// Finds the strings of the line at `at` in the holes, and returns the index after the line's object; `None` if the line does not match.
    fn compare(&mut self, data: &[u8], mut at: usize, texts: &mut Vec<Contents>) -> Option<usize> {
        texts.clear();
        let mut from = 0;
        for &hole in &self.holes {
            let leaf = &mut self.leaves[hole];
            let part = &self.bytes[from..leaf.start];
            if !begins(data, at, part) {
                return None;
            }
            let text = contents(&mut leaf.strings, data, at + part.len())?;
            at = text.end;
            texts.push(text);
            from = leaf.end;
        }
        let part = &self.bytes[from..];
        begins(data, at, part).then(|| at + part.len())
    }

    /// Compares like [`compare`](Self::compare), but adds a new hole for each string that differs. If the line then matches, the pattern
    /// keeps the new holes.
    fn compare_with_more_holes<B: Builder<Value = V, Template = T>>(
        &mut self,
        builder: &mut B,
        data: &[u8],
        at: usize,
        texts: &mut Vec<Contents>,
    ) -> Option<usize> {
        if self.holes.len() == MAX_HOLES.min(self.leaves.len()) {
            return None;
        }
        let (mut from, mut here) = (0, at);
        let mut holes = Vec::new();
        loop {
            let part = &self.bytes[from..];
            let same = difference(data, here, part);
            if same == part.len() {
                break;
            }
            // The leaves are in the order of their bytes.
            let index = self.leaves.partition_point(|leaf| leaf.end < from + same);
            let leaf = self.leaves.get_mut(index)?;
            let before = leaf
                .start
                .checked_sub(from)
                .filter(|&before| before <= same)?;
            push(&mut holes, index).ok()?;
            here = contents(&mut leaf.strings, data, here + before)?.end;
            from = leaf.end;
        }
        holes.try_reserve(self.holes.len()).ok()?;
        holes.extend_from_slice(&self.holes);
        holes.sort_unstable();
        holes.dedup();
        if holes.len() > MAX_HOLES || holes.len() == self.holes.len() {
            return None;
        }
        let holes = std::mem::replace(&mut self.holes, holes);
        let steps = std::mem::take(&mut self.steps);
        if self.make_steps(builder).is_none() {
            (self.holes, self.steps) = (holes, steps);
            return None;
        }
        self.compare(data, at, texts)
    }

    /// Returns the message with `texts` in the holes; `None` if a string is not valid, or if memory runs out.
    fn make<B: Builder<Value = V, Template = T>>(
        &mut self,
        builder: &mut B,
        stack: &mut Vec<V>,
        scratch: &mut Vec<u8>,
        data: &[u8],
        texts: &[Contents],
    ) -> Option<V> {
        stack.try_reserve(self.steps.len()).ok()?;
        for step in &self.steps {
            let value = match step {
                Step::Text(index) => {
                    let strings = &mut self.leaves[self.holes[*index]].strings;
                    texts[*index].make(strings, builder, scratch, data)?
                }
                Step::Stamp(template) => builder.stamp(template, stack)?,
            };
            stack.push(value);
        }
        stack.pop()
    }

    /// Makes the steps for the current holes. If it returns `None`, the steps are incomplete.
    fn make_steps<B: Builder<Value = V, Template = T>>(&mut self, builder: &mut B) -> Option<()> {
        let changes = |record: &Record<V>| record.is_dict || !record.owned.is_empty();
        let mut changes = collect(self.records.iter().map(changes)).ok()?;
        changes[0] = true;
        for &hole in &self.holes {
            changes[self.leaves[hole].record] = true;
        }
        for (index, record) in self.records.iter().enumerate().rev() {
            if let (true, Some((holder, _))) = (changes[index], record.holder) {
                changes[holder] = true;
            }
        }
        self.steps.clear();
        self.make_steps_of(builder, 0, &changes)
    }

    /// Makes the steps for the record with this index: first the steps for its values, then the step for the record itself. `changes` says
    /// for each record whether every message gets its own copy.
    fn make_steps_of<B: Builder<Value = V, Template = T>>(
        &mut self,
        builder: &mut B,
        index: usize,
        changes: &[bool],
    ) -> Option<()> {
        let mut slots = Vec::new();
        for (text, &hole) in self.holes.iter().enumerate() {
            let leaf = &self.leaves[hole];
            if leaf.record == index {
                push(&mut self.steps, Step::Text(text)).ok()?;
                push(&mut slots, leaf.slot).ok()?;
            }
        }
        let record = &self.records[index];
        for &slot in &record.owned {
            let value = builder.slot(&record.value, slot)?;
            let template = builder.deep_template(&value, usize::MAX)?;
            push(&mut self.steps, Step::Stamp(template)).ok()?;
            push(&mut slots, slot).ok()?;
        }
        for inner in index + 1..self.records.len() {
            match self.records[inner].holder {
                Some((holder, slot)) if holder == index && changes[inner] => {
                    self.make_steps_of(builder, inner, changes)?;
                    push(&mut slots, slot).ok()?;
                }
                _ => {}
            }
        }
        let template = builder.template(&self.records[index].value, slots)?;
        push(&mut self.steps, Step::Stamp(template)).ok()
    }

    /// Finds the strings, lists, dicts and records in the object at `at`, and adds them to the pattern. `class` is `None` for a dict. Returns
    /// `None` if the object cannot be part of a pattern, for example because a dict has the same key twice. A dict has only the last value of such a
    /// key, so until the walk finds the second key, the value of a record may be another than the object in the line, of any type.
    fn walk<B: Builder<Value = V, Template = T>>(
        &mut self,
        plan: &Plan<V, B::Class>,
        builder: &mut B,
        data: &[u8],
        at: usize,
        class: Option<ClassId>,
        record: usize,
    ) -> Option<()> {
        let shape = match class.map(|class| &plan.classes[class]) {
            Some(Class::Planned(shape)) => Some(shape),
            Some(_) => return None,
            None => None,
        };
        self.records[record].is_dict = shape.is_none();
        let mut names = Vec::new();
        let mut at = white(data, at + 1);
        while data.get(at)? != &b'}' {
            let (end, _) = string_end(data, at + 1);
            let name = data.get(at + 1..end)?;
            if data.get(end)? != &b'"' || shape.is_none() && names.contains(&name) {
                return None;
            }
            at = white(data, white(data, end + 1) + 1);
            let end = skip(data, at)?;
            let (slot, kind) = match shape {
                None => (names.len(), Some(&plan.kinds[ANY])),
                Some(shape) => {
                    if let Some(field) = plan.find(shape, name).map(|field| &plan.fields[field]) {
                        (field.slot(), field.kind().map(|kind| &plan.kinds[kind]))
                    } else {
                        let slot = shape.extra?;
                        self.records[record].own(slot)?;
                        (slot, None)
                    }
                }
            };
            push(&mut names, name).ok()?;
            match (data.get(at)?, kind) {
                (b'"', Some(kind)) if kind.may_be & (may_be::TEXT | may_be::ANY) != 0 => {
                    let leaf = Leaf {
                        start: at + 1,
                        end: end - 1,
                        record,
                        slot,
                        strings: Strings::default(),
                    };
                    push(&mut self.leaves, leaf).ok()?;
                }
                (b'{', Some(kind)) if shape.is_none() || kind.may_be & may_be::RECORD != 0 => {
                    let class = match kind.classes.as_slice() {
                        [] => None,
                        [only] => Some(only.class),
                        members => {
                            let tag = find_tag(data, at, &kind.tag_key)?;
                            Some(members.iter().find(|member| member.tag == tag)?.class)
                        }
                    };
                    let value = builder.slot(&self.records[record].value, slot)?;
                    let inner = Record {
                        value: own(builder, &value)?,
                        holder: Some((record, slot)),
                        owned: Vec::new(),
                        is_dict: false,
                    };
                    push(&mut self.records, inner).ok()?;
                    self.walk(plan, builder, data, at, class, self.records.len() - 1)?;
                }
                (b'{' | b'[', Some(_)) => self.records[record].own(slot)?,
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
