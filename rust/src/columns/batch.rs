//! Columns that grow row by row, and batches of them, in the memory layout of the "Arrow Columnar Format".
//!
//! A text column with the rows `"ab"`, null and `"c"` is stored as:
//!
//! ```text
//! valid     1 0 1       one bit per row
//! starts    0 2 2 3     the start of each string, and the end of the last
//! bytes     abc
//! ```

use std::mem;

use crate::fallible::{append, copied, with_room, NoMemory};

/// Makes room for `length` values in total, including the existing ones.
fn reserve_exact<T>(values: &mut Vec<T>, length: usize) -> Result<(), NoMemory> {
    let more = length.saturating_sub(values.len());
    values.try_reserve_exact(more).map_err(|_| NoMemory)
}

/// How many rows a batch has room for after its first allocation.
const FIRST_ROWS: usize = 16;

/// The value of one row in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// The row has no value.
    Null,
    /// Text, as valid UTF-8.
    Text(&'a [u8]),
    /// The 64 bits of an integer, a float or a time.
    Word(u64),
    /// A boolean.
    Bool(bool),
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// UTF-8, with 32-bit offsets.
    Text,
    /// A JSON value, stored exactly as it is written in the line.
    Json,
    /// A signed 64-bit integer.
    Int,
    /// A 64-bit float.
    Float,
    /// One bit.
    Bool,
    /// Microseconds since 1970 in UTC, as a signed 64-bit integer.
    Time,
}

impl Type {
    /// Returns the type with this name in a spec, such as `text`.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Self::Text,
            "json" => Self::Json,
            "int" => Self::Int,
            "float" => Self::Float,
            "bool" => Self::Bool,
            "time" => Self::Time,
            _ => return None,
        })
    }
}

/// A vector of bits. Bit 0 is the lowest bit of the first byte.
#[derive(Debug, Default)]
pub struct Bits {
    bytes: Vec<u8>,
    length: usize,
}

impl Bits {
    fn with_room(length: usize) -> Result<Self, NoMemory> {
        Ok(Self {
            bytes: with_room(length.div_ceil(8))?,
            length: 0,
        })
    }

    /// Makes room for `length` bits in total.
    fn reserve(&mut self, length: usize) -> Result<(), NoMemory> {
        reserve_exact(&mut self.bytes, length.div_ceil(8))
    }

    #[inline]
    fn push(&mut self, bit: bool) {
        let place = self.length % 8;
        if place == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << place;
        }
        self.length += 1;
    }

    fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length.div_ceil(8));
        if let Some(last) = self.bytes.last_mut().filter(|_| length % 8 > 0) {
            *last &= (1 << (length % 8)) - 1;
        }
        self.length = length;
    }

    /// Returns the bit at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        self.bytes[index / 8] >> (index % 8) & 1 == 1
    }

    /// Returns the bytes that hold the bits. Unused bits of the last byte are 0.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A column's values, by their layout in memory.
#[derive(Debug)]
pub enum Values {
    /// The start of each string and the end of the last, and then the bytes of all strings.
    Text(Vec<i32>, Vec<u8>),
    /// The bits of integers, floats or times.
    Words(Vec<u64>),
    /// One bit per row.
    Bools(Bits),
}

/// A column of a batch.
#[derive(Debug)]
pub struct Column {
    /// The values. A row without a value has an empty string, 0 or false here.
    pub values: Values,
    /// For each row, 1 if it has a value.
    pub valid: Bits,
    /// The number of rows without a value.
    pub nulls: usize,
}

impl Column {
    /// Returns an empty column with room for `rows` rows and `bytes` bytes of text.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn new(kind: Type, rows: usize, bytes: usize) -> Result<Self, NoMemory> {
        let values = match kind {
            Type::Text | Type::Json => {
                let mut starts = with_room(rows + 1)?;
                starts.push(0);
                Values::Text(starts, with_room(bytes.max(1))?)
            }
            Type::Int | Type::Float | Type::Time => Values::Words(with_room(rows.max(1))?),
            Type::Bool => Values::Bools(Bits::with_room(rows)?),
        };
        Ok(Self {
            values,
            valid: Bits::with_room(rows)?,
            nulls: 0,
        })
    }

    /// Makes room for `rows` rows in total, but not for the bytes of their text.
    fn reserve(&mut self, rows: usize) -> Result<(), NoMemory> {
        match &mut self.values {
            Values::Text(starts, _) => reserve_exact(starts, rows + 1)?,
            Values::Words(words) => reserve_exact(words, rows)?,
            Values::Bools(bits) => bits.reserve(rows)?,
        }
        self.valid.reserve(rows)
    }

    /// Returns a copy that has no unused memory.
    fn copy(&self) -> Result<Self, NoMemory> {
        let bits = |bits: &Bits| {
            Ok(Bits {
                bytes: copied(&bits.bytes)?,
                length: bits.length,
            })
        };
        let values = match &self.values {
            Values::Text(starts, bytes) => Values::Text(copied(starts)?, copied(bytes)?),
            Values::Words(words) => Values::Words(copied(words)?),
            Values::Bools(values) => Values::Bools(bits(values)?),
        };
        Ok(Self {
            values,
            valid: bits(&self.valid)?,
            nulls: self.nulls,
        })
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.valid.length
    }

    /// Returns the size of the values in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.values {
            Values::Text(starts, bytes) => bytes.len() + 4 * starts.len(),
            Values::Words(words) => 8 * words.len(),
            Values::Bools(bits) => bits.bytes.len(),
        }
    }

    /// Appends a row with this value, or with null if the value's type is not the column's type.
    ///
    /// Call [`Batch::begin_row`] first, once for all columns of a batch. Otherwise this method and those below may abort the process if
    /// memory runs out.
    ///
    /// # Errors
    ///
    /// [`NoMemory`] for the bytes of a string; no row is appended.
    #[inline]
    pub fn push(&mut self, cell: Cell) -> Result<(), NoMemory> {
        match (&mut self.values, cell) {
            (Values::Text(_, bytes), Cell::Text(text)) => {
                append(bytes, text)?;
                self.end_text();
                return Ok(());
            }
            (Values::Words(words), Cell::Word(word)) => words.push(word),
            (Values::Bools(bits), Cell::Bool(bit)) => bits.push(bit),
            _ => {
                self.push_null();
                return Ok(());
            }
        }
        self.valid.push(true);
        Ok(())
    }

    /// Appends a row without a value.
    #[inline]
    pub fn push_null(&mut self) {
        match &mut self.values {
            Values::Text(starts, bytes) => starts.push(offset(bytes)),
            Values::Words(words) => words.push(0),
            Values::Bools(bits) => bits.push(false),
        }
        self.valid.push(false);
        self.nulls += 1;
    }

    /// Returns the bytes of all strings; `None` if the column is not a text column. The caller appends the next string to these bytes, and
    /// then calls [`Self::end_text`].
    #[inline]
    pub fn text(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.values {
            Values::Text(_, bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Appends a row with the bytes that were appended to [`Self::text`] since the last row.
    #[inline]
    pub fn end_text(&mut self) {
        if let Values::Text(starts, bytes) = &mut self.values {
            starts.push(offset(bytes));
            self.valid.push(true);
        }
    }

    /// Returns the value of a row.
    #[must_use]
    pub fn cell(&self, row: usize) -> Cell<'_> {
        if !self.valid.get(row) {
            return Cell::Null;
        }
        match &self.values {
            Values::Text(starts, bytes) => {
                let place = |index: usize| starts[index].unsigned_abs() as usize;
                Cell::Text(&bytes[place(row)..place(row + 1)])
            }
            Values::Words(words) => Cell::Word(words[row]),
            Values::Bools(bits) => Cell::Bool(bits.get(row)),
        }
    }

    /// Removes all rows after the first `rows`.
    pub fn truncate(&mut self, rows: usize) {
        match &mut self.values {
            Values::Text(starts, bytes) => {
                starts.truncate(rows + 1);
                bytes.truncate(starts.last().map_or(0, |&end| end.unsigned_abs() as usize));
            }
            Values::Words(words) => words.truncate(rows),
            Values::Bools(bits) => bits.truncate(rows),
        }
        self.valid.truncate(rows);
        let valid = self.valid.bytes.iter();
        let valid = valid.map(|byte| byte.count_ones() as usize);
        self.nulls = rows - valid.sum::<usize>();
    }
}

/// Returns the start of the next string. It fits 32 bits, because the reader limits the size of a batch.
#[inline]
fn offset(bytes: &[u8]) -> i32 {
    debug_assert!(i32::try_from(bytes.len()).is_ok());
    // The reader limits the length, and the assertion above checks it.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    return bytes.len() as i32;
}

/// Some rows of a table, as columns of the same length.
#[derive(Debug, Default)]
pub struct Batch {
    /// The columns.
    pub columns: Vec<Column>,
    /// The number of complete rows.
    pub rows: usize,
    /// How many rows every column has room for, not counting the bytes of text.
    room: usize,
}

impl Batch {
    /// Returns an empty batch with columns of these types.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn new(types: &[Type]) -> Result<Self, NoMemory> {
        let mut columns = with_room(types.len())?;
        for &kind in types {
            columns.push(Column::new(kind, 0, 0)?);
        }
        Ok(Self {
            columns,
            rows: 0,
            room: 0,
        })
    }

    /// Makes room for one more row in all columns, but not for the bytes of its text. One check here instead of one per column saves up to
    /// 8% of the processor time.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    #[inline]
    pub fn begin_row(&mut self) -> Result<(), NoMemory> {
        if self.rows == self.room {
            return self.grow();
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Result<(), NoMemory> {
        let room = (2 * self.room).max(FIRST_ROWS);
        for column in &mut self.columns {
            column.reserve(room)?;
        }
        self.room = room;
        Ok(())
    }

    /// Returns a copy that has no unused memory.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn copy(&self) -> Result<Self, NoMemory> {
        let mut columns = with_room(self.columns.len())?;
        for column in &self.columns {
            columns.push(column.copy()?);
        }
        Ok(Self {
            columns,
            rows: self.rows,
            room: self.rows,
        })
    }

    /// Returns the size of all values in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum()
    }

    /// Removes all rows after the first `rows`. Before the call, columns may have different lengths, for example after a row that failed
    /// halfway.
    pub fn truncate(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.truncate(rows);
        }
        self.rows = rows;
    }

    /// Returns the rows, and leaves an empty batch with room for as many rows.
    ///
    /// # Errors
    ///
    /// [`NoMemory`]; the batch is unchanged.
    pub fn take(&mut self, types: &[Type]) -> Result<Self, NoMemory> {
        let mut columns = with_room(types.len())?;
        for (column, &kind) in self.columns.iter().zip(types) {
            let bytes = match &column.values {
                Values::Text(_, bytes) => bytes.len(),
                _ => 0,
            };
            columns.push(Column::new(kind, self.rows, bytes)?);
        }
        let new = Self {
            columns,
            rows: 0,
            room: self.rows,
        };
        Ok(mem::replace(self, new))
    }
}

#[cfg(test)]
mod tests;
