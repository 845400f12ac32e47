//! Answers that stand in several rows of tables `usage`, once.
//!
//! An answer of several content blocks is several lines, each with the usage of all; a fork copies lines into another file; and a stream has
//! the same answers as the transcript. The key of an answer is its message id and its request id. Of its rows one counts: one of a
//! transcript before one of a stream, which has only the output tokens that the answer began with; the original, which has
//! no `request_session_id`, before a copy; and then the last. A row without a message id is an answer by its `uuid`, and one without that, too,
//! by itself.

use std::collections::HashMap;
use std::mem;

use super::batch::{append, push, reserve, with_room, Batch, Cell, NoMemory, Type};
use super::reader::BATCH_ROWS;

/// Rows that come from elsewhere, and stay where they are.
pub trait Rows {
    /// How many.
    fn rows(&self) -> usize;
    /// A value, by the index of its column and of its row.
    fn cell(&self, column: usize, row: usize) -> Cell<'_>;
}

/// The row of an answer that counts so far.
#[derive(Clone, Copy, Debug)]
struct Best {
    table: usize,
    row: usize,
    rank: u8,
}

/// Rows of which each answer has one.
#[derive(Debug)]
pub struct Combine<T> {
    types: Vec<Type>,
    /// Where the columns are that make the key and the rank of a row: those of [`NAMES`].
    places: [Option<usize>; 5],
    tables: Vec<T>,
    /// Of each row of each table, whether it counts.
    counts: Vec<Vec<bool>>,
    /// By its key, which of the answers it is.
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
    /// Of rows with these columns; `None` if there is no `message_id` or no `request_id` among them.
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
    /// [`NoMemory`]. Then all of the rows count that were not looked at.
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
                // No text has this byte, so that the two never run into each other.
                push(&mut key, 0xff)?;
                append(&mut key, text(1).unwrap_or(b"\xff"))?;
            }
            let rank = 2 * u8::from(text(3) != Some(b"stream")) + u8::from(text(4).is_none());
            let best = Best { table, row, rank };
            // Most rows of an answer stand next to each other: then it needs no look-up.
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

    /// The rows that count of the tables from `next` on, which is set to the table that comes then; `None` after the last.
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
