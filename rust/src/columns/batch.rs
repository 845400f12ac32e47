//! Growing columns, and batches of them, in the layout of the "Arrow Columnar Format".

use std::mem;

/// An allocation failed. Nothing here aborts the process: the caller decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// Makes room for `more` values.
///
/// # Errors
///
/// [`NoMemory`]. Then `values` is as before.
#[inline]
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
    values.try_reserve(more).map_err(|_| NoMemory)
}

/// Adds a value.
///
/// # Errors
///
/// [`NoMemory`].
#[inline]
pub fn push<T>(values: &mut Vec<T>, value: T) -> Result<(), NoMemory> {
    #[cold]
    #[inline(never)]
    fn grow<T>(values: &mut Vec<T>, value: T) -> Result<(), NoMemory> {
        reserve(values, 1)?;
        values.push(value);
        Ok(())
    }
    if values.len() == values.capacity() {
        return grow(values, value);
    }
    // The compiler knows here that there is room, and omits a second check.
    values.push(value);
    Ok(())
}

/// Adds bytes.
///
/// # Errors
///
/// [`NoMemory`].
#[inline]
pub fn append(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), NoMemory> {
    #[cold]
    #[inline(never)]
    fn grow(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), NoMemory> {
        reserve(bytes, more.len())?;
        bytes.extend_from_slice(more);
        Ok(())
    }
    if more.len() > bytes.capacity() - bytes.len() {
        return grow(bytes, more);
    }
    // As in `push`: no second check.
    bytes.extend_from_slice(more);
    Ok(())
}

/// An empty vector with room for `length` values.
///
/// # Errors
///
/// [`NoMemory`].
pub fn with_room<T>(length: usize) -> Result<Vec<T>, NoMemory> {
    let mut values = Vec::new();
    values.try_reserve_exact(length).map_err(|_| NoMemory)?;
    Ok(values)
}

/// Makes room for `length` values in all.
fn reserve_exact<T>(values: &mut Vec<T>, length: usize) -> Result<(), NoMemory> {
    let more = length.saturating_sub(values.len());
    values.try_reserve_exact(more).map_err(|_| NoMemory)
}

/// Rows that the first allocation has room for.
const FIRST_ROWS: usize = 16;

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

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// UTF-8, with offsets of 32 bits.
    Text,
    /// JSON as in the line, as UTF-8.
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

/// Bits, beginning at the lowest of each byte.
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

    /// Makes room for `length` bits in all.
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

    /// The bit at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        self.bytes[index / 8] >> (index % 8) & 1 == 1
    }

    /// The bytes. Unused bits of the last byte are zero.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The values of a column.
#[derive(Debug)]
pub enum Values {
    /// The start of each text and the end of the last; and their bytes.
    Text(Vec<i32>, Vec<u8>),
    /// Numbers and times by their bits.
    Words(Vec<u64>),
    /// True or false.
    Bools(Bits),
}

/// A column of a batch.
#[derive(Debug)]
pub struct Column {
    /// What the values are.
    pub values: Values,
    /// Which rows have a value.
    pub valid: Bits,
    /// Number of rows without a value.
    pub nulls: usize,
}

impl Column {
    /// An empty column, with room for `rows` rows and `bytes` bytes of text.
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

    /// Makes room for `rows` rows in all, but not for their texts.
    fn reserve(&mut self, rows: usize) -> Result<(), NoMemory> {
        match &mut self.values {
            Values::Text(starts, _) => reserve_exact(starts, rows + 1)?,
            Values::Words(words) => reserve_exact(words, rows)?,
            Values::Bools(bits) => bits.reserve(rows)?,
        }
        self.valid.reserve(rows)
    }

    /// The same values, with no room to spare.
    fn copy(&self) -> Result<Self, NoMemory> {
        fn of<T: Copy>(values: &[T]) -> Result<Vec<T>, NoMemory> {
            let mut copy = with_room(values.len())?;
            copy.extend_from_slice(values);
            Ok(copy)
        }
        let bits = |bits: &Bits| {
            Ok(Bits {
                bytes: of(&bits.bytes)?,
                length: bits.length,
            })
        };
        let values = match &self.values {
            Values::Text(starts, bytes) => Values::Text(of(starts)?, of(bytes)?),
            Values::Words(words) => Values::Words(of(words)?),
            Values::Bools(values) => Values::Bools(bits(values)?),
        };
        Ok(Self {
            values,
            valid: bits(&self.valid)?,
            nulls: self.nulls,
        })
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

    /// Adds a row. Call [`Batch::begin_row`] first, once for all columns: otherwise this may abort the process when there is no memory.
    /// The same holds for the methods below.
    ///
    /// # Errors
    ///
    /// [`NoMemory`] for a text. Then nothing is added.
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

    /// The bytes of all texts. Add those of the next text, then call [`Self::end_text`].
    #[inline]
    pub fn text(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.values {
            Values::Text(_, bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Adds a row with the text written since the last row.
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

    /// Removes the rows from `rows` on.
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

/// Where the next text begins. The reader keeps a batch below the number of bytes that 32 bits can count.
#[inline]
fn offset(bytes: &[u8]) -> i32 {
    debug_assert!(i32::try_from(bytes.len()).is_ok());
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // See above.
    return bytes.len() as i32;
}

/// Rows of a table.
#[derive(Debug, Default)]
pub struct Batch {
    /// The columns.
    pub columns: Vec<Column>,
    /// Rows that each column has.
    pub rows: usize,
    /// Rows that each column has room for, without their texts.
    room: usize,
}

impl Batch {
    /// An empty batch.
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

    /// Makes room for one more row in all columns, but not for its texts. A check in each column took up to 8 % more processor time.
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

    /// The same rows, with no room to spare.
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

    /// Bytes of all values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum()
    }

    /// Removes the rows from `rows` on. Some columns may have more of them than others.
    pub fn truncate(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.truncate(rows);
        }
        self.rows = rows;
    }

    /// Takes the rows, and leaves an empty batch with room for about as many.
    ///
    /// # Errors
    ///
    /// [`NoMemory`]. Then nothing is taken.
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
