//! Answers that stand in several rows of the table `usage`, once.
//!
//! An answer of several content blocks is several lines, each with the usage of all; a fork copies lines into another file; and a stream has
//! the same answers as the transcript. The key of an answer is its message id and its request id. Of its rows one counts: one of a
//! transcript before one of a stream, which has only the output tokens that the answer began with; the original, which has
//! no `request_session_id`, before a copy; and then the last. A row without a message id is an answer by its `uuid`, and one without that, too,
//! by itself.

use std::collections::hash_map::Entry;
use std::collections::HashMap;

use super::batch::{Batch, Column, Type};
use super::reader::BATCH_ROWS;

/// A value of a row that comes from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// None.
    Null,
    /// UTF-8.
    Text(&'a [u8]),
    /// A number or a time, by its bits.
    Word(u64),
    /// True or false.
    Bool(bool),
}

impl<'a> Cell<'a> {
    fn text(self) -> Option<&'a [u8]> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Where the columns are that make the key and the rank of a row.
#[derive(Clone, Copy, Debug)]
struct Places {
    message_id: usize,
    request_id: usize,
    uuid: Option<usize>,
    source: Option<usize>,
    request_session_id: Option<usize>,
}

/// The row of an answer that counts so far: where it is, and its rank.
type Best = (usize, u8);

/// Rows of which each answer has one.
#[derive(Debug)]
pub struct Combine {
    types: Vec<Type>,
    places: Places,
    best: HashMap<Box<[u8]>, Best>,
    /// All rows that counted when they came, so many to a batch.
    batches: Vec<Batch>,
    /// Of each of them, whether it still counts.
    counts: Vec<bool>,
    key: Vec<u8>,
}

impl Combine {
    /// Of rows with these columns; `None` if there is no `message_id` or no `request_id` among them.
    #[must_use]
    pub fn new(columns: &[(String, Type)]) -> Option<Self> {
        let find = |name: &str| {
            let found = columns.iter().position(|(column, _)| column == name);
            found.filter(|&index| columns[index].1 == Type::Text)
        };
        Some(Self {
            types: columns.iter().map(|&(_, kind)| kind).collect(),
            places: Places {
                message_id: find("message_id")?,
                request_id: find("request_id")?,
                uuid: find("uuid"),
                source: find("source"),
                request_session_id: find("request_session_id"),
            },
            best: HashMap::new(),
            batches: Vec::new(),
            counts: Vec::new(),
            key: Vec::new(),
        })
    }

    /// Takes a row; `cells` gives the value of a column by its index.
    pub fn add<'a>(&mut self, cells: impl Fn(usize) -> Cell<'a>) {
        let row = self.counts.len();
        if self.write_key(&cells) {
            let rank = self.rank(&cells);
            // Most rows of an answer stand next to each other, so its key is known.
            if let Some(best) = self.best.get_mut(self.key.as_slice()) {
                if best.1 > rank {
                    return;
                }
                self.counts[best.0] = false;
                *best = (row, rank);
            } else if let Entry::Vacant(vacant) = self.best.entry(self.key.as_slice().into()) {
                vacant.insert((row, rank));
            }
        }
        if row % BATCH_ROWS == 0 {
            self.batches.push(Batch::new(&self.types));
        }
        let Some(batch) = self.batches.last_mut() else {
            return;
        };
        for (index, column) in batch.columns.iter_mut().enumerate() {
            push(column, cells(index));
        }
        batch.rows += 1;
        self.counts.push(true);
    }

    /// Writes the key of a row; false if it has none.
    fn write_key<'a>(&mut self, cells: &impl Fn(usize) -> Cell<'a>) -> bool {
        self.key.clear();
        let places = self.places;
        let message = cells(places.message_id).text();
        let uuid = || places.uuid.and_then(|place| cells(place).text());
        let Some(id) = message.or_else(uuid) else {
            return false;
        };
        self.key.push(u8::from(message.is_some()));
        self.key.extend_from_slice(id);
        if message.is_some() {
            // No text has this byte, so that the two never run into each other.
            self.key.push(0xff);
            let request = cells(places.request_id).text();
            self.key.extend_from_slice(request.unwrap_or(b"\xff"));
        }
        true
    }

    fn rank<'a>(&self, cells: &impl Fn(usize) -> Cell<'a>) -> u8 {
        let text = |place: Option<usize>| place.and_then(|place| cells(place).text());
        let is_of_transcript = text(self.places.source) != Some(b"stream");
        let is_original = text(self.places.request_session_id).is_none();
        2 * u8::from(is_of_transcript) + u8::from(is_original)
    }

    /// The types of the columns.
    #[must_use]
    pub fn types(&self) -> &[Type] {
        &self.types
    }

    /// The rows that count of one batch after another; `None` behind the last.
    #[must_use]
    pub fn batch(&self, index: usize) -> Option<Batch> {
        let from = self.batches.get(index)?;
        let mut to = Batch::new(&self.types);
        let counts = &self.counts[index * BATCH_ROWS..];
        for (row, _) in counts.iter().take(from.rows).enumerate().filter(|it| *it.1) {
            for (to, from) in to.columns.iter_mut().zip(&from.columns) {
                push(to, from.cell(row));
            }
            to.rows += 1;
        }
        Some(to)
    }
}

fn push(column: &mut Column, cell: Cell) {
    match cell {
        Cell::Null => column.push_null(),
        Cell::Text(text) => column.push_text(text),
        Cell::Word(word) => column.push_word(word),
        Cell::Bool(value) => column.push_bool(value),
    }
}

#[cfg(test)]
mod tests;
