//! The rows that a line gives.
// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

use super::batch::{Batch, Column, Type};
use super::report::Problem;
use super::tables::{From, Spec, Table};
use super::values::{is_json, number, text, timestamp, whole_number, word, Odd, Word};
use super::walk::{walk, Block, Field, Form, Line, Part, Value};
use crate::simd::Engine;

/// What of a line is not in the line.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The name of its file, as UTF-8.
    pub path: Option<&'a [u8]>,
    /// Bytes of the file before it.
    pub offset: u64,
}

/// Something in a line that did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// What is the matter: a surrogate, a misfit, or too many blocks.
    pub problem: Problem,
    /// Index of the column.
    pub column: Option<usize>,
    /// How often.
    pub times: u32,
}

/// Makes rows of lines.
#[derive(Debug)]
pub struct Rows {
    table: Table,
    specs: Vec<Spec>,
    types: Vec<Type>,
    /// Whether some column needs the content blocks.
    blocks: bool,
    line: Line,
    scratch: Vec<u8>,
    /// The rows so far.
    pub batch: Batch,
    /// What did not fit in the last line.
    pub notes: Vec<Note>,
}

impl Rows {
    /// Of these columns of a table.
    #[must_use]
    pub fn new(table: Table, specs: Vec<Spec>) -> Self {
        let types: Vec<_> = specs.iter().map(|spec| spec.kind).collect();
        let blocks = table == Table::Blocks || specs.iter().any(|spec| spec.from == From::Text);
        Self {
            table,
            batch: Batch::new(&types),
            specs,
            types,
            blocks,
            line: Line::new(),
            scratch: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Takes the batch, and begins another.
    #[must_use]
    pub fn take_batch(&mut self) -> Batch {
        self.batch.take(&self.types)
    }

    /// Adds the rows of the line that begins at `at` and ends with an LF. Returns where the next line begins.
    ///
    /// # Errors
    ///
    /// The line is unclear, or a value in it is invalid. Then it has given no row.
    #[inline(always)]
    pub fn add<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        at: usize,
        place: Place,
    ) -> Result<usize, Odd> {
        self.notes.clear();
        let end = walk(engine, data, at, self.blocks, &mut self.line).ok_or(Odd)?;
        let line = &self.line;
        let kind = line.value(Field::Type);
        let is = |name: &[u8]| kind.is(data, name);
        let wanted = match self.table {
            Table::Messages => true,
            Table::Blocks => is(b"assistant") || is(b"user"),
            Table::Usage => line.has_usage() && is(b"assistant"),
            Table::Results => is(b"result") || is(b"cost-state"),
        };
        if wanted {
            let rows = self.batch.rows;
            if let Err(odd) = self.add_rows(engine, data, place) {
                self.batch.truncate(rows);
                self.notes.clear();
                return Err(odd);
            }
        }
        Ok(end)
    }

    #[inline(always)]
    fn add_rows<E: Engine>(&mut self, engine: E, data: &[u8], place: Place) -> Result<(), Odd> {
        if self.line.is_too_much() {
            self.note(Problem::TooManyBlocks, None, 1);
            return Ok(());
        }
        if self.table != Table::Blocks {
            return self.add_row(engine, data, place, 0, None);
        }
        let column = self.column(From::BlockText);
        if self.line.strays.0 || self.line.strays.1 {
            self.note(Problem::Misfit, column, 1);
        }
        if self.line.has_blocks {
            for index in 0..self.line.blocks.len() {
                let block = self.line.blocks[index];
                self.add_row(engine, data, place, index, Some(&block))?;
            }
            return Ok(());
        }
        let content = self.line.value(Field::Content);
        match content.form {
            Form::Plain | Form::Escaped => self.add_row(engine, data, place, 0, None)?,
            _ if content.is_some(data) => self.note(Problem::Misfit, column, 1),
            _ => (),
        }
        Ok(())
    }

    fn column(&self, from: From) -> Option<usize> {
        self.specs.iter().position(|spec| spec.from == from)
    }

    fn note(&mut self, problem: Problem, column: Option<usize>, times: u32) {
        // What belongs to a column that nobody asked for is nobody's problem.
        if column.is_some() || problem == Problem::TooManyBlocks {
            self.notes.push(Note {
                problem,
                column,
                times,
            });
        }
    }

    /// Adds a row: of a content block, if one is given; in the table of these, without one, of a content that is a string.
    #[inline(always)]
    fn add_row<E: Engine>(
        &mut self,
        engine: E,
        data: &[u8],
        place: Place,
        index: usize,
        block: Option<&Block>,
    ) -> Result<(), Odd> {
        let line = &self.line;
        let part = |part| block.map_or_else(Value::default, |block| block.value(part));
        for (number, spec) in self.specs.iter().enumerate() {
            let column = &mut self.batch.columns[number];
            let value = match spec.from {
                From::Path => {
                    match place.path {
                        Some(path) => column.push_text(path),
                        None => column.push_null(),
                    }
                    continue;
                }
                From::Offset => {
                    column.push_word(place.offset);
                    continue;
                }
                From::Index => {
                    column.push_word(index as u64);
                    continue;
                }
                From::Source => {
                    match source(line) {
                        Some(source) => column.push_text(source),
                        None => column.push_null(),
                    }
                    continue;
                }
                From::Text | From::BlockText => {
                    let joined = if spec.from == From::Text {
                        message_text(engine, data, line, column)?
                    } else {
                        block_text(engine, data, line, block, column)?
                    };
                    joined.note(number, &mut self.notes);
                    continue;
                }
                From::BlockType => {
                    if let Some(block) = block {
                        block.value(Part::Type)
                    } else {
                        column.push_text(b"text");
                        continue;
                    }
                }
                From::Field(field) => line.value(field),
                From::Either(one, other) => line.either(data, one, other),
                From::Part(one) => part(one),
                From::EitherPart(one, other) => Some(part(one))
                    .filter(|value| value.is_some(data))
                    .unwrap_or_else(|| part(other)),
            };
            let found = cell(engine, spec.kind, data, value, column, &mut self.scratch)?;
            found.note(number, &mut self.notes);
        }
        self.batch.rows += 1;
        Ok(())
    }
}

/// What did not fit in one cell.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    surrogates: u32,
    misfits: u32,
}

const FITS: Found = Found {
    surrogates: 0,
    misfits: 0,
};
const MISFIT: Found = Found {
    surrogates: 0,
    misfits: 1,
};

impl Found {
    #[inline(always)]
    fn note(self, column: usize, notes: &mut Vec<Note>) {
        for (problem, times) in [
            (Problem::Surrogate, self.surrogates),
            (Problem::Misfit, self.misfits),
        ] {
            if times > 0 {
                let column = Some(column);
                notes.push(Note {
                    problem,
                    column,
                    times,
                });
            }
        }
    }
}

fn source(line: &Line) -> Option<&'static [u8]> {
    let has = |field| line.value(field).form != Form::Absent;
    if has(Field::SessionIdCamel) || has(Field::ParentUuid) || has(Field::IsSidechain) {
        Some(b"transcript")
    } else if has(Field::SessionId) {
        Some(b"stream")
    } else {
        None
    }
}

/// Adds one value to its column.
#[inline(always)]
fn cell<E: Engine>(
    engine: E,
    kind: Type,
    data: &[u8],
    value: Value,
    column: &mut Column,
    scratch: &mut Vec<u8>,
) -> Result<Found, Odd> {
    if !value.is_some(data) {
        column.push_null();
        return Ok(FITS);
    }
    let is_text = matches!(value.form, Form::Plain | Form::Escaped);
    match kind {
        Type::Text if is_text => {
            let surrogates = match column.text() {
                Some(out) => text(engine, data, value, out)?,
                None => 0,
            };
            column.end_text();
            return Ok(Found {
                surrogates,
                misfits: 0,
            });
        }
        Type::Json => {
            let whole = value.whole(data);
            if !is_json(engine, whole) {
                return Err(Odd);
            }
            column.push_text(whole);
            return Ok(FITS);
        }
        Type::Time if is_text => {
            scratch.clear();
            text(engine, data, value, scratch)?;
            if let Some(time) = timestamp(scratch) {
                column.push_word(time.cast_unsigned_bits());
                return Ok(FITS);
            }
        }
        _ => {
            let word = match value.form {
                Form::Word => word(value.of(data))?,
                _ => Word::Null,
            };
            let bits = match kind {
                Type::Int => whole_number(word).map(CastBits::cast_unsigned_bits),
                Type::Float => number(word).map(f64::to_bits),
                _ => None,
            };
            match (bits, word) {
                (Some(bits), _) => column.push_word(bits),
                (None, Word::Bool(value)) if kind == Type::Bool => column.push_bool(value),
                _ => {
                    column.push_null();
                    return Ok(MISFIT);
                }
            }
            return Ok(FITS);
        }
    }
    column.push_null();
    Ok(MISFIT)
}

/// The bits of a signed number. (`i64::cast_unsigned` is of a later Rust than this library asks for.)
trait CastBits {
    fn cast_unsigned_bits(self) -> u64;
}

impl CastBits for i64 {
    #[allow(clippy::cast_sign_loss)] // The bits are what is meant.
    fn cast_unsigned_bits(self) -> u64 {
        self as u64
    }
}

/// Adds the text of a message: a string, or that of all blocks of text, joined; null if it has none.
#[inline(always)]
fn message_text<E: Engine>(
    engine: E,
    data: &[u8],
    line: &Line,
    column: &mut Column,
) -> Result<Found, Odd> {
    if line.has_blocks {
        let mut found = joined_text(engine, data, &line.blocks, column)?;
        found.misfits += u32::from(line.strays.0);
        return Ok(found);
    }
    let value = line.either(data, Field::Content, Field::TopContent);
    cell(engine, Type::Text, data, value, column, &mut Vec::new())
}

/// Adds the text of a content block; null if it has none.
#[inline(always)]
fn block_text<E: Engine>(
    engine: E,
    data: &[u8],
    line: &Line,
    block: Option<&Block>,
    column: &mut Column,
) -> Result<Found, Odd> {
    let value = match block {
        None => line.value(Field::Content),
        Some(block) => {
            let [text, thinking, content] =
                [Part::Text, Part::Thinking, Part::Content].map(|part| block.value(part));
            if text.is_some(data) {
                text
            } else if thinking.is_some(data) {
                thinking
            } else if let Some((begin, end)) = block.inner {
                return joined_text(engine, data, &line.inner[begin..end], column);
            } else {
                content
            }
        }
    };
    cell(engine, Type::Text, data, value, column, &mut Vec::new())
}

/// Adds the text of all blocks of text, joined; null if there is none.
#[inline(always)]
fn joined_text<E: Engine>(
    engine: E,
    data: &[u8],
    blocks: &[Block],
    column: &mut Column,
) -> Result<Found, Odd> {
    let mut found = FITS;
    let mut any = false;
    if let Some(out) = column.text() {
        for block in blocks {
            if !block.value(Part::Type).is(data, b"text") {
                continue;
            }
            let value = block.value(Part::Text);
            if let Form::Plain | Form::Escaped = value.form {
                any = true;
                found.surrogates += text(engine, data, value, out)?;
            } else {
                found.misfits += 1;
            }
        }
    }
    if any {
        column.end_text();
    } else {
        column.push_null();
    }
    Ok(found)
}
