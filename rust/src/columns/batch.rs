//! Columns that grow, and batches of them, laid out as Arrow wants it: see "Arrow Columnar Format".

use std::mem;

/// A value of a row.
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

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// UTF-8, with offsets of 32 bits.
    Text,
    /// JSON as it stands in the line, as UTF-8.
    Json,
    /// 64 bits, signed.
    Int,
    /// 64 bits.
    Float,
    /// One bit.
    Bool,
    /// Microseconds since 1970, in UTC.
    Time,
}

impl Type {
    /// By its name.
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

/// Bits, from the lowest of each byte on.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    bytes: Vec<u8>,
    length: usize,
}

impl Bits {
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

    /// The bit at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        self.bytes[index / 8] >> (index % 8) & 1 == 1
    }

    /// The bytes, the last one filled up with zeros.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The values of a column.
#[derive(Clone, Debug)]
pub enum Values {
    /// Of each text where it begins, and where the last one ends; and their bytes.
    Text(Vec<i32>, Vec<u8>),
    /// Numbers and times by their bits.
    Words(Vec<u64>),
    /// True or false.
    Bools(Bits),
}

/// A column of a batch.
#[derive(Clone, Debug)]
pub struct Column {
    /// What the values are.
    pub values: Values,
    /// Which of them are there.
    pub valid: Bits,
    /// How many are not.
    pub nulls: usize,
}

impl Column {
    /// An empty one, with room for `rows` rows, and `bytes` bytes of text.
    #[must_use]
    pub fn new(kind: Type, rows: usize, bytes: usize) -> Self {
        let values = match kind {
            Type::Text | Type::Json => {
                let mut starts = Vec::with_capacity(rows + 1);
                starts.push(0);
                Values::Text(starts, Vec::with_capacity(bytes.max(1)))
            }
            Type::Int | Type::Float | Type::Time => Values::Words(Vec::with_capacity(rows.max(1))),
            Type::Bool => Values::Bools(Bits::default()),
        };
        Self {
            values,
            valid: Bits::default(),
            nulls: 0,
        }
    }

    /// Its rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.valid.length
    }

    /// Bytes of its values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.values {
            Values::Text(starts, bytes) => bytes.len() + 4 * starts.len(),
            Values::Words(words) => 8 * words.len(),
            Values::Bools(bits) => bits.bytes.len(),
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, cell: Cell) {
        match (&mut self.values, cell) {
            (Values::Text(_, bytes), Cell::Text(text)) => {
                bytes.extend_from_slice(text);
                return self.end_text();
            }
            (Values::Words(words), Cell::Word(word)) => words.push(word),
            (Values::Bools(bits), Cell::Bool(bit)) => bits.push(bit),
            _ => return self.push_null(),
        }
        self.valid.push(true);
    }

    /// Adds a row without a value.
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

    /// The bytes of all texts, to which those of the next are added before [`Self::end_text`].
    #[inline]
    pub fn text(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.values {
            Values::Text(_, bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Adds a row with the text that was written since the last.
    #[inline]
    pub fn end_text(&mut self) {
        if let Values::Text(starts, bytes) = &mut self.values {
            starts.push(offset(bytes));
            self.valid.push(true);
        }
    }

    /// The value of a row.
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

    /// Takes back the rows from `rows` on.
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

/// Where the next text begins. A batch has fewer bytes than 32 bits can count: the reader sees to that.
#[inline]
fn offset(bytes: &[u8]) -> i32 {
    debug_assert!(i32::try_from(bytes.len()).is_ok());
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // See above.
    return bytes.len() as i32;
}

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct Batch {
    /// One for each column of the scan.
    pub columns: Vec<Column>,
    /// Rows that each column has.
    pub rows: usize,
}

impl Batch {
    /// An empty one.
    #[must_use]
    pub fn new(types: &[Type]) -> Self {
        let columns = types.iter().map(|&kind| Column::new(kind, 0, 0));
        Self {
            columns: columns.collect(),
            rows: 0,
        }
    }

    /// Bytes of all values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum()
    }

    /// Takes back the rows from `rows` on, of which some columns may have more than others.
    pub fn truncate(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.truncate(rows);
        }
        self.rows = rows;
    }

    /// Takes what is there, and leaves an empty batch that has room for about as much.
    #[must_use]
    pub fn take(&mut self, types: &[Type]) -> Self {
        let columns = self.columns.iter().zip(types).map(|(column, &kind)| {
            let bytes = match &column.values {
                Values::Text(_, bytes) => bytes.len(),
                _ => 0,
            };
            Column::new(kind, self.rows, bytes)
        });
        let columns = columns.collect();
        let rows = mem::take(&mut self.rows);
        Self {
            columns: mem::replace(&mut self.columns, columns),
            rows,
        }
    }
}

#[cfg(test)]
mod tests;
