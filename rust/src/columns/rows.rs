//! [`Rows`]: makes the rows of a line, and appends them to a [`Batch`].
//!
//! Most tables have one row per line. A table with `!each` has one row per content block:
//!
//! ```text
//! {"uuid":"a1","message":{"content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"t1"}]}}
//!
//! uuid  block  kind      text  tool
//! a1    0      text      hi    null
//! a1    1      tool_use  null  t1
//! ```
// Every operation must be inlined into one function per engine: the compiler emits vector instructions only in this function.
// `Engine::call` calls the functions that are too large for inlining. With plain calls instead, 14 columns with text would take 1.07 CPU
// seconds per GB instead of 0.82.
#![allow(clippy::inline_always)]

use super::batch::{Batch, Cell, Column, Type};
use super::reader::Problem;
use super::spec::{Origin, Rule, Spec};
use super::tree::{Slot, Tree};
use super::values::{json, text, timestamp, word, Fault, Word};
use super::walk::{walk, Form, Found, Item, List, Value};
use crate::fallible::{push, NoMemory};
use crate::kinds::cursor::space;
use crate::simd::{Engine, Operation};

/// The maximum number of content blocks in a line that become rows. Without a limit, one line could make a batch of any size.
pub const MAX_BLOCKS: usize = 1 << 16;

/// How many bytes (64 MiB) the rows of one line may have in addition to twice the line's size. Each row repeats the values outside the
/// line's blocks, so rows can be much larger than their line. With lines of at most 512 MiB, the limit keeps a column's offsets within 32
/// bits.
pub const MAX_REPEATED: usize = 64 << 20;

/// A problem of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The kind of problem.
    pub problem: Problem,
    /// The index of the column, for a surrogate or a misfit.
    pub column: Option<usize>,
    /// How often the problem occurred in this line.
    pub times: u32,
}

/// A line, its file, and its place in the file.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// Bytes that contain the line, and possibly more lines after its LF.
    pub data: &'a [u8],
    /// The index in `data` at which the line begins.
    pub at: usize,
    /// The name of the file, as UTF-8.
    pub path: Option<&'a [u8]>,
    /// The number of bytes before the line in its file.
    pub offset: u64,
}

/// The state of [`Rows`] other than its columns. The next line reuses its memory.
#[derive(Debug)]
struct Work {
    /// The values found in the line's object.
    line: Found,
    /// The values found in the row's object, such as a content block.
    block: Found,
    /// The wanted keys (`type` and `text`) of the objects in a list whose text is joined.
    parts: Tree,
    /// The values found in an object of such a list.
    part: Found,
    part_type: Slot,
    part_text: Slot,
    /// The text of a time, without escapes.
    scratch: Vec<u8>,
    /// The problems of the current line.
    notes: Vec<Note>,
}

/// Makes rows of lines, one line after another.
#[derive(Debug)]
pub struct Rows {
    types: Vec<Type>,
    work: Work,
    /// The rows so far.
    pub batch: Batch,
}

impl Rows {
    /// Makes an empty batch for the table `spec`.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn new(spec: &Spec) -> Result<Self, NoMemory> {
        let mut parts = Tree::default();
        let [part_type, part_text] =
            ["type", "text"].map(|key| parts.want(key).unwrap_or_default());
        let types = spec.types();
        Ok(Self {
            batch: Batch::new(&types)?,
            types,
            work: Work {
                line: Found::new(&spec.line)?,
                block: Found::new(&spec.block)?,
                part: Found::new(&parts)?,
                parts,
                part_type,
                part_text,
                scratch: Vec::new(),
                notes: Vec::new(),
            },
        })
    }

    /// Returns the batch, and begins a new one.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn take_batch(&mut self) -> Result<Batch, NoMemory> {
        self.batch.take(&self.types)
    }

    /// Returns the problems of the last line, and forgets them.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.work.notes)
    }

    /// Appends the rows of a line. Returns the index of the next line in its data, and whether the line has problems (see
    /// [`take_notes`](Self::take_notes)).
    ///
    /// # Errors
    ///
    /// [`Fault::Unclear`] if the decoder must read the line, or [`Fault::NoMemory`]. In both cases no row is appended.
    #[inline(always)]
    pub fn add<E: Engine>(
        &mut self,
        engine: E,
        spec: &Spec,
        line: Line,
    ) -> Result<(usize, bool), Fault> {
        let (data, found) = (line.data, &mut self.work.line);
        let end =
            walk(engine, data, space(data, line.at), &spec.line, found).ok_or(Fault::Unclear)?;
        let end = space(data, end);
        if data.get(end).is_some_and(|&byte| byte != b'\n') {
            return Err(Fault::Unclear);
        }
        let tag = found.value(spec.tag);
        let lacks = |(name, slot): &(Vec<u8>, Slot)| {
            found.value(*slot).form != Form::Object && tag.is(data, name)
        };
        if !spec.types.is_empty() && !spec.types.iter().any(|name| tag.is(data, name))
            || spec.need.as_ref().is_some_and(lacks)
        {
            return Ok((end + 1, false));
        }
        let rows = self.batch.rows;
        let added = if spec.each.is_empty() {
            engine.call(Row(self, spec, line, 0, false))
        } else {
            self.add_blocks(engine, spec, line, end - line.at)
        };
        if let Err(fault) = added {
            self.batch.truncate(rows);
            self.work.notes.clear();
            return Err(fault);
        }
        Ok((end + 1, !self.work.notes.is_empty()))
    }

    /// Appends a row for each object in the line's list, or one row for a string in place of the list.
    #[inline(always)]
    fn add_blocks<E: Engine>(
        &mut self,
        engine: E,
        spec: &Spec,
        line: Line,
        length: usize,
    ) -> Result<(), Fault> {
        let mut lists = spec.each.iter().map(|&slot| self.work.line.value(slot));
        let content = lists.find(|list| list.is_some(line.data));
        let content = content.unwrap_or_default();
        let texts = spec
            .columns
            .iter()
            .position(|column| matches!(column.rule, Rule::Joined(_)));
        let mut strays = !content.is_text() && content.is_some(line.data);
        if content.is_text() {
            let text = spec.block.key_of(0, b"text").map(|key| key.slot);
            self.work.block.set_only(text, content);
            engine.call(Row(self, spec, line, 0, true))?;
        } else if content.form == Form::Array {
            let (rows, bytes, mut index) = (self.batch.rows, self.batch.bytes(), 0);
            let mut list = List::new(content);
            strays = false;
            loop {
                match list
                    .next(engine, line.data, &spec.block, &mut self.work.block)
                    .ok_or(Fault::Unclear)?
                {
                    Item::Object => engine.call(Row(self, spec, line, index, false))?,
                    Item::Other => {
                        strays = true;
                        continue;
                    }
                    Item::End => break,
                }
                index += 1;
                let most = 2 * length + MAX_REPEATED;
                if index > MAX_BLOCKS || self.batch.bytes() - bytes > most {
                    self.batch.truncate(rows);
                    self.work.notes.clear();
                    self.work.note(Problem::TooManyBlocks, None, 1)?;
                    return Ok(());
                }
            }
        }
        // A list with items other than objects, or a value other than a list, is reported as a problem of the text column, if there is one.
        if texts.is_some() {
            self.work.note(Problem::Misfit, texts, strays.into())?;
        }
        Ok(())
    }

    /// Appends a row. With `bare`, the row is for a string in place of a list of blocks.
    #[inline(always)]
    fn add_row<E: Engine>(
        &mut self,
        engine: E,
        spec: &Spec,
        line: Line,
        index: usize,
        bare: bool,
    ) -> Result<(), Fault> {
        let (data, work) = (line.data, &mut self.work);
        self.batch.begin_row()?;
        for (number, of) in spec.columns.iter().enumerate() {
            let column = &mut self.batch.columns[number];
            let value = match &of.rule {
                Rule::Path => {
                    column.push(line.path.map_or(Cell::Null, Cell::Text))?;
                    continue;
                }
                Rule::Offset => {
                    column.push(Cell::Word(line.offset))?;
                    continue;
                }
                Rule::Index => {
                    column.push(Cell::Word(index as u64))?;
                    continue;
                }
                Rule::If(pairs) => {
                    let is_there = |slot: &Slot| work.line.value(*slot).form != Form::Absent;
                    let found = pairs.iter().find(|(_, slot)| is_there(slot));
                    column.push(found.map_or(Cell::Null, |(text, _)| Cell::Text(text)))?;
                    continue;
                }
                Rule::Kind(_) if bare => {
                    column.push(Cell::Text(b"text"))?;
                    continue;
                }
                Rule::First(places) | Rule::Kind(places) => work.first(data, places),
                Rule::Joined(places) => {
                    let value = work.first(data, places);
                    if value.form == Form::Array {
                        work.join(engine, data, value, column, number)?;
                        continue;
                    }
                    value
                }
            };
            if !value.is_some(data) {
                column.push_null();
            } else if of.kind == Type::Text && value.is_text() {
                // A closure here would be compiled as a separate function, without vector instructions.
                let mut surrogates = 0;
                if let Some(out) = column.text() {
                    surrogates = text(engine, data, value, out)?;
                }
                column.end_text();
                work.note(Problem::Surrogate, Some(number), surrogates)?;
            } else if let Some(cell) = cell(engine, of.kind, data, value, &mut work.scratch)? {
                column.push(cell)?;
            } else {
                column.push_null();
                work.note(Problem::Misfit, Some(number), 1)?;
            }
        }
        self.batch.rows += 1;
        Ok(())
    }
}

/// The [`Operation`] that appends a row. Inlining [`Rows::add_row`] into its three callers instead would make the library 55 kB larger, but
/// not faster.
struct Row<'a>(&'a mut Rows, &'a Spec, Line<'a>, usize, bool);

impl Operation for Row<'_> {
    type Output = Result<(), Fault>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self(rows, spec, line, index, bare) = self;
        rows.add_row(engine, spec, line, index, bare)
    }
}

impl Work {
    /// Records a problem that occurred `times` times; does nothing if `times` is 0.
    #[inline(always)]
    fn note(
        &mut self,
        problem: Problem,
        column: Option<usize>,
        times: u32,
    ) -> Result<(), NoMemory> {
        if times > 0 {
            let note = Note {
                problem,
                column,
                times,
            };
            push(&mut self.notes, note)?;
        }
        Ok(())
    }

    /// Returns the first of these values that is present and not null; an absent value if there is none.
    #[inline(always)]
    fn first(&self, data: &[u8], places: &[Origin]) -> Value {
        for place in places {
            let value = match *place {
                Origin::Line(slot) => self.line.value(slot),
                Origin::Block(slot) => self.block.value(slot),
            };
            if value.is_some(data) {
                return value;
            }
        }
        Value::default()
    }

    /// Appends a row with the joined text of the objects of type `text` in a list; null if the list has none.
    #[inline(always)]
    fn join<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        array: Value,
        column: &mut Column,
        number: usize,
    ) -> Result<(), Fault> {
        let Some(out) = column.text() else {
            return Ok(());
        };
        let (mut any, mut surrogates, mut misfits, mut strays) = (false, 0, 0, 0);
        let mut list = List::new(array);
        loop {
            match list
                .next(engine, data, &self.parts, &mut self.part)
                .ok_or(Fault::Unclear)?
            {
                Item::Object => (),
                Item::Other => {
                    strays = 1;
                    continue;
                }
                Item::End => break,
            }
            if !self.part.value(self.part_type).is(data, b"text") {
                continue;
            }
            let value = self.part.value(self.part_text);
            if value.is_text() {
                any = true;
                surrogates += text(engine, data, value, out)?;
            } else {
                misfits += 1;
            }
        }
        if any {
            column.end_text();
        } else {
            column.push_null();
        }
        self.note(Problem::Surrogate, Some(number), surrogates)?;
        self.note(Problem::Misfit, Some(number), misfits + strays)?;
        Ok(())
    }
}

/// Converts a value to a cell of this type; `None` if the value has a different type.
#[inline(always)]
fn cell<'a, E: Engine>(
    engine: E,
    kind: Type,
    data: &'a [u8],
    value: Value,
    scratch: &mut Vec<u8>,
) -> Result<Option<Cell<'a>>, Fault> {
    #[allow(clippy::cast_sign_loss)] // A cell stores the bits of the number.
    let bits = |number: i64| Cell::Word(number as u64);
    Ok(match (kind, value.form) {
        (Type::Json, _) => Some(Cell::Text(json(engine, value.whole(data))?)),
        (Type::Time, Form::Plain | Form::Escaped) => {
            scratch.clear();
            text(engine, data, value, scratch)?;
            timestamp(scratch).map(bits)
        }
        (_, Form::Word) => match (kind, word(value.of(data))?) {
            (Type::Int, Word::Number(whole, _)) => whole.map(bits),
            (Type::Float, Word::Number(_, float)) if float.is_finite() => {
                Some(Cell::Word(float.to_bits()))
            }
            (Type::Bool, Word::Bool(bit)) => Some(Cell::Bool(bit)),
            _ => None,
        },
        _ => None,
    })
}
