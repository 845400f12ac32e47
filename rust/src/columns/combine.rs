//! Picks one row of each answer that has several rows in tables `usage`.
//!
//! An answer of several content blocks is several lines, each with the usage of all; a fork copies lines into another file; and a stream has
//! the same answers as the transcript. The key of an answer is its message id and its request id. One of its rows counts: a row of a
//! transcript before one of a stream, which has only the output tokens that the answer began with; the original, which has
//! no `request_session_id`, before a copy; and of equals the last. The key of a row without a message id is its `uuid`; a row without
//! either is an answer of its own.

use std::collections::HashMap;
use std::mem;

use super::batch::{append, push, reserve, with_room, Batch, Cell, NoMemory, Type};
use super::reader::BATCH_ROWS;

/// A table of rows that the caller owns.
pub trait Rows {
    /// How many.
    fn rows(&self) -> usize;
    /// A value, by the index of its column and of its row.
    fn cell(&self, column: usize, row: usize) -> Cell<'_>;
}

/// The row of an answer that counts, so far.
#[derive(Clone, Copy, Debug)]
struct Best {
    table: usize,
    row: usize,
    rank: u8,
}

/// The counting rows, one for each answer.
#[derive(Debug)]
pub struct Combine<T> {
    types: Vec<Type>,
    /// Indexes of the columns that make the key and the rank of a row: those of [`NAMES`].
    places: [Option<usize>; 5],
    tables: Vec<T>,
    /// For each row of each table, whether it counts.
    counts: Vec<Vec<bool>>,
    /// Key -> index of its answer.
    known: HashMap<Box<[u8]>, usize>,
    answers: Vec<Best>,
}

const NAMES: [&str; 5] = [
    "message_id",
    "request_id",
    "uuid",
    "source",
    "request_session_id",
];

impl<T: Rows> Combine<T> {
    /// For rows with these columns. `None` if `message_id` or `request_id` is missing.
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

    /// Takes rows.
    ///
    /// # Errors
    ///
    /// [`NoMemory`]. All rows that were not looked at then count.
    pub fn add(&mut self, rows: T) -> Result<(), NoMemory> {
        let mut counts = with_room(rows.rows())?;
        counts.resize(rows.rows(), true);
        reserve(&mut self.tables, 1)?;
        push(&mut self.counts, counts)?;
        let added = self.count(&rows);
        self.tables.push(rows);
        added
    }

    /// Finds out which of the rows of the next table count.
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
                // No text has this byte, so the two ids cannot be confused.
                push(&mut key, 0xff)?;
                append(&mut key, text(1).unwrap_or(b"\xff"))?;
            }
            let rank = 2 * u8::from(text(3) != Some(b"stream")) + u8::from(text(4).is_none());
            let best = Best { table, row, rank };
            // Most rows of an answer are neighbours: no look-up is needed for them.
            if key != last_key {
                last = self
                    .known
                    .get(key.as_slice())
                    .copied()
                    .unwrap_or(usize::MAX);
                if last == usize::MAX {
                    last = self.answers.len();
                    let mut kept = with_room(key.len())?;
                    kept.extend_from_slice(&key);
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

    /// The counting rows of the next tables. Advances `next`; `None` after the last table.
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
