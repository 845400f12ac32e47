//! [`Combine`]: keeps one row for each of the model's answers in `usage` tables.
//!
//! An answer can have several rows, for three reasons: an answer with several content blocks has a line for each block, and each line has
//! the usage of the whole answer; a forked session copies lines into another file; and a recorded stream has the answers of the transcript
//! once more. Adding up all rows would count such an answer more than once.
//!
//! Rows with the same `message_id` and `request_id` belong to one answer. If a row has no `message_id`, its `uuid` is the key. A row
//! without both counts as a separate answer. Only one row per answer counts:
//!
//! ```text
//! 1. Prefer a row of a transcript. A stream's row has the output tokens at the start of the answer, which are too few.
//! 2. Prefer the original, which has no `request_session_id`, to a copy.
//! 3. Prefer the last row.
//! ```

use std::collections::HashMap;
use std::mem;

use super::batch::{Batch, Cell, Type};
use super::reader::BATCH_ROWS;
use crate::fallible::{append, copied, push, reserve, with_room, NoMemory};

/// A table of rows in the caller's memory.
pub trait Rows {
    /// Returns the number of rows.
    fn rows(&self) -> usize;
    /// Returns the value in this column and row.
    fn cell(&self, column: usize, row: usize) -> Cell<'_>;
}

/// The row that counts for an answer, among the rows added so far.
#[derive(Clone, Copy, Debug)]
struct Best {
    table: usize,
    row: usize,
    /// 0 to 3, from rules 1 and 2 of the module. A row replaces a row of the same or a lower rank.
    rank: u8,
}

/// Tables, and whether each of their rows counts.
#[derive(Debug)]
pub struct Combine<T> {
    types: Vec<Type>,
    /// The indexes of the columns [`NAMES`]; `None` for an absent column.
    places: [Option<usize>; 5],
    tables: Vec<T>,
    /// For each row of each table, whether it counts.
    counts: Vec<Vec<bool>>,
    /// Maps an answer's key to the answer's index in `answers`.
    known: HashMap<Box<[u8]>, usize>,
    answers: Vec<Best>,
}

/// The columns that determine a row's key and rank.
const NAMES: [&str; 5] = [
    "message_id",
    "request_id",
    "uuid",
    "source",
    "request_session_id",
];

impl<T: Rows> Combine<T> {
    /// Makes an empty combination for tables with these columns. Returns `None` if `message_id` or `request_id` is missing.
    #[must_use]
    pub fn new(columns: &[(String, Type)]) -> Option<Self> {
        let find = |name| {
            columns
                .iter()
                .position(|it| it.0 == name && it.1 == Type::Text)
        };
        let places = NAMES.map(find);
        places[0].and(places[1])?;
        Some(Self {
            types: columns.iter().map(|column| column.1).collect(),
            places,
            tables: Vec::new(),
            counts: Vec::new(),
            known: HashMap::new(),
            answers: Vec::new(),
        })
    }

    /// Adds a table.
    ///
    /// # Errors
    ///
    /// [`NoMemory`]. All rows that were not yet compared then count.
    pub fn add(&mut self, rows: T) -> Result<(), NoMemory> {
        let mut counts = with_room(rows.rows())?;
        counts.resize(rows.rows(), true);
        reserve(&mut self.tables, 1)?;
        push(&mut self.counts, counts)?;
        let added = self.count(&rows);
        self.tables.push(rows);
        added
    }

    /// Determines which rows of the next table count, and which rows of earlier tables they replace.
    fn count(&mut self, rows: &T) -> Result<(), NoMemory> {
        let table = self.tables.len();
        let (mut key, mut last_key, mut last) = (Vec::new(), Vec::new(), usize::MAX);
        for row in 0..rows.rows() {
            let text = |name: usize| match rows.cell(self.places[name]?, row) {
                Cell::Text(text) => Some(text),
                _ => None,
            };
            let message = text(0);
            let Some(id) = message.or_else(|| text(2)) else {
                continue;
            };
            key.clear();
            push(&mut key, u8::from(message.is_some()))?;
            append(&mut key, id)?;
            if message.is_some() {
                // UTF-8 never contains the byte 0xff, so it separates the two ids unambiguously.
                push(&mut key, 0xff)?;
                append(&mut key, text(1).unwrap_or(b"\xff"))?;
            }
            let rank = 2 * u8::from(text(3) != Some(b"stream")) + u8::from(text(4).is_none());
            let best = Best { table, row, rank };
            // The rows of an answer are usually adjacent, so compare with the last key before the look-up.
            if key != last_key {
                last = self
                    .known
                    .get(key.as_slice())
                    .copied()
                    .unwrap_or(usize::MAX);
                if last == usize::MAX {
                    last = self.answers.len();
                    let kept = copied(&key)?;
                    self.known.try_reserve(1).map_err(|_| NoMemory)?;
                    push(&mut self.answers, best)?;
                    self.known.insert(kept.into_boxed_slice(), last);
                    mem::swap(&mut key, &mut last_key);
                    continue;
                }
                mem::swap(&mut key, &mut last_key);
            }
            let before = &mut self.answers[last];
            let loser = if before.rank > rank {
                best
            } else {
                mem::replace(before, best)
            };
            self.counts[loser.table][loser.row] = false;
        }
        Ok(())
    }

    /// Returns the rows that count in some tables, starting with the table `next`, and advances `next`. Returns `None` after the last
    /// table.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn batch(&self, next: &mut usize) -> Result<Option<Batch>, NoMemory> {
        let mut batch = Batch::new(&self.types)?;
        while let Some(table) = self.tables.get(*next).filter(|_| batch.rows < BATCH_ROWS) {
            for row in 0..table.rows() {
                if self.counts[*next][row] {
                    batch.begin_row()?;
                    for (index, column) in batch.columns.iter_mut().enumerate() {
                        column.push(table.cell(index, row))?;
                    }
                    batch.rows += 1;
                }
            }
            *next += 1;
        }
        Ok(Some(batch).filter(|batch| batch.rows > 0))
    }
}

#[cfg(test)]
mod tests;
