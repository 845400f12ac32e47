//! Reads another library's Arrow tables, for [`Combine`](crate::columns::combine::Combine).
//!
//! The basic idea is simple: the other library keeps its memory, and this module reads the values in place. An
//! `Imported` takes over the stream and its schema. Each batch of the stream becomes a `Table`, which owns the
//! `ArrowArray` and has one `View` per column. A view is a few pointers into the buffers of that array:
//!
//! ```text
//! format of the column   buffers of the column                  Values
//! "u"  text              validity, offsets of 32 bits, bytes    Text
//! "U"  text              validity, offsets of 64 bits, bytes    LargeText
//! "l" "g" "tsu:…"        validity, words of 64 bits             Words
//! "b"                    validity, bits                         Bools
//! ```
//!
//! The consumer must trust the lengths that the other library states, because the C data interface does not transmit the sizes of buffers.
//! `View::fits` checks the rest once per batch: the pointers and the outermost offsets.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, CStr};
use std::slice;

use super::arrow::{ArrowArray, ArrowArrayStream, ArrowSchema, StreamError, ENOMEM};
use crate::columns::batch::{Cell, Type};
use crate::columns::combine::Rows;
use crate::fallible::{push, with_room, NoMemory};

/// The maximum number of bytes of text in one column of one batch (1 GiB). Two such batches still fit 32-bit offsets.
const MAX_TEXT: usize = 1 << 30;

/// Another library's Arrow stream. Dropping the value releases the stream.
pub(super) struct Imported {
    stream: ArrowArrayStream,
    /// The name and the type of each column.
    pub(super) columns: Vec<(String, Type)>,
    /// For each column, whether it is a text column with 64-bit offsets (format `U`).
    large: Vec<bool>,
}

/// Returns the C string at `text`; an empty string if `text` is null.
///
/// # Safety
///
/// `text` must be null, or point to a string that ends with a NUL and that no code changes or frees during `'a`.
unsafe fn text<'a>(text: *const c_char) -> Cow<'a, str> {
    if text.is_null() {
        return Cow::default();
    }
    // SAFETY: `text` is not null; the caller guarantees the NUL at its end and that the string is unchanged during `'a`.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

impl Imported {
    /// Takes over the stream and reads its schema. The struct at `stream` is marked as released.
    ///
    /// # Errors
    ///
    /// Fails if the stream is already released, has no schema, or has a column of a type that `scan()` never writes.
    ///
    /// # Safety
    ///
    /// `stream` must point to an `ArrowArrayStream` that obeys the Arrow C stream interface.
    pub(super) unsafe fn new(stream: *mut ArrowArrayStream) -> Result<Self, StreamError> {
        let mut imported = Self {
            // SAFETY: the caller guarantees that `stream` points to a valid struct. The interface allows moving it: copy
            // the struct, then clear `release` in the old place, as `empty` does.
            stream: unsafe { stream.replace(ArrowArrayStream::empty()) },
            columns: Vec::new(),
            large: Vec::new(),
        };
        if imported.stream.release.is_none() {
            return Err("its stream was already read".into());
        }
        let mut schema = ArrowSchema::empty();
        let get = imported.stream.get_schema.ok_or("it has no schema")?;
        // SAFETY: `release` is set, so the stream is alive; `schema` is a local struct to write to.
        let status = unsafe { get(&raw mut imported.stream, &raw mut schema) };
        if status != 0 {
            return Err(imported.error(status));
        }
        // SAFETY: the producer filled `schema` (status 0), and it is released only when this function drops it. Until then
        // the interface guarantees that its strings end with a NUL and that `children` has `n_children` valid pointers.
        unsafe {
            if text(schema.format) != "+s" {
                return Err("it has no columns".into());
            }
            for index in 0..usize::try_from(schema.n_children).unwrap_or(0) {
                let child = &**schema.children.add(index);
                imported.add_column(&text(child.name), &text(child.format))?;
            }
        }
        Ok(imported)
    }

    fn add_column(&mut self, name: &str, format: &str) -> Result<(), StreamError> {
        let kind = match format {
            "u" | "U" => Type::Text,
            "l" => Type::Int,
            "g" => Type::Float,
            "b" => Type::Bool,
            _ if format.starts_with("tsu:") => Type::Time,
            _ => {
                return Err(StreamError::Other(format!(
                    "its column {name} is of the Arrow format {format}, which scan() does not write"
                )))
            }
        };
        let mut owned = String::new();
        owned.try_reserve_exact(name.len()).map_err(|_| NoMemory)?;
        owned.push_str(name);
        push(&mut self.columns, (owned, kind))?;
        push(&mut self.large, format == "U")?;
        Ok(())
    }

    /// Returns the next batch of rows; `None` at the end of the stream.
    pub(super) fn next(&mut self) -> Result<Option<Table>, StreamError> {
        let next = self.stream.get_next.ok_or("it has no rows")?;
        let mut array = ArrowArray::empty();
        // SAFETY: `new` checked that the stream is alive, and only `drop` releases it; `array` is a local struct to write to.
        let status = unsafe { next(&raw mut self.stream, &raw mut array) };
        if status != 0 {
            return Err(self.error(status));
        }
        if array.release.is_none() {
            return Ok(None);
        }
        let mut columns = with_room(self.columns.len())?;
        // SAFETY: the interface guarantees that the array has the stream's schema. The table below owns both the array
        // and the views, so no view outlives it.
        let views = unsafe { self.views(&array, &mut columns) };
        views.ok_or("its rows do not match its schema, or a column has more than 1 GiB of text")?;
        let rows = usize::try_from(array.length).unwrap_or(0);
        Ok(Some(Table {
            columns,
            rows,
            _array: array,
        }))
    }

    /// Returns why a call to the stream failed: the stream's own error text, if it has one.
    fn error(&mut self, status: c_int) -> StreamError {
        if status == ENOMEM {
            return StreamError::NoMemory;
        }
        let last = self.stream.get_last_error;
        // SAFETY: the stream is alive. Its error text is valid until the next call to the stream, and is copied before then.
        let reason = last.map(|last| unsafe { text(last(&raw mut self.stream)) });
        let reason = reason.filter(|reason| !reason.is_empty());
        StreamError::Other(reason.unwrap_or("its stream failed".into()).into_owned())
    }

    /// Appends a view of each column of `array` to `views`; `None` if the array does not match the schema.
    ///
    /// # Safety
    ///
    /// `array` must have this stream's schema and must not be released as long as a view is used.
    unsafe fn views(&self, array: &ArrowArray, views: &mut Vec<View>) -> Option<()> {
        if array.n_children != i64::try_from(self.columns.len()).ok()? {
            return None;
        }
        // A batch of rows is an Arrow struct. Its own offset and length apply to each of its children as well.
        let begin = usize::try_from(array.offset).ok()?;
        let length = usize::try_from(array.length).ok()?;
        let view = |(index, ((_, kind), &large)): (usize, (&(String, Type), &bool))| {
            // SAFETY: `index` is below the number of columns, which equals `n_children` (checked above).
            let child = unsafe { &**array.children.add(index) };
            let offset = begin + usize::try_from(child.offset).ok()?;
            let buffers = if *kind == Type::Text { 3 } else { 2 };
            if usize::try_from(child.length).ok()? < begin + length || child.n_buffers != buffers {
                return None;
            }
            // SAFETY: the indexes below are less than `n_buffers`, which was checked to be 3 for text and 2 otherwise.
            let buffer = |index| unsafe { *child.buffers.add(index) };
            let values = match kind {
                Type::Text if large => Values::LargeText(buffer(1).cast(), buffer(2).cast()),
                Type::Text => Values::Text(buffer(1).cast(), buffer(2).cast()),
                Type::Bool => Values::Bools(buffer(1).cast()),
                _ => Values::Words(buffer(1).cast()),
            };
            let view = View {
                valid: buffer(0).cast(),
                offset,
                values,
            };
            // SAFETY: the pointers are the buffers of `child`, which the caller guarantees to be alive.
            unsafe { view.fits(length) }.then_some(view)
        };
        for column in self.columns.iter().zip(&self.large).enumerate() {
            views.push(view(column)?);
        }
        Some(())
    }
}

/// One batch of rows in another library's memory.
pub(super) struct Table {
    columns: Vec<View>,
    rows: usize,
    /// Owns the buffers that the views in `columns` point to.
    _array: ArrowArray,
}

// SAFETY: the C data interface lets any thread read and release an array.
unsafe impl Send for Table {}
// SAFETY: the interface forbids changing the buffers of an exported array, and a `Table` only reads them.
unsafe impl Sync for Table {}

impl Rows for Table {
    fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    fn cell(&self, column: usize, row: usize) -> Cell<'_> {
        assert!(row < self.rows);
        let view = &self.columns[column];
        // SAFETY: `_array` is alive as long as this table, and `row` is below its length (asserted above).
        unsafe { view.cell(view.offset + row) }
    }
}

/// One column of a batch: pointers into the buffers of its `ArrowArray`.
struct View {
    /// The validity bits: 1 for a value, 0 for a null. A null pointer means that no row is null.
    valid: *const u8,
    /// The index of the batch's first row in the buffers.
    offset: usize,
    values: Values,
}

/// A column's values, by their layout in memory. For strings, the first pointer points to the offsets, and the second to the bytes.
enum Values {
    Text(*const i32, *const u8),
    LargeText(*const i64, *const u8),
    Words(*const u64),
    Bools(*const u8),
}

impl View {
    /// Returns true if the view can be read for `rows` rows: the pointers to the values are aligned and not null, and in a text column the
    /// first and the last offset are in order and at most [`MAX_TEXT`] apart.
    ///
    /// # Safety
    ///
    /// The buffers must obey the C data interface and have `offset + rows` rows.
    unsafe fn fits(&self, rows: usize) -> bool {
        let (first, last) = (self.offset, self.offset + rows);
        let is_text = |begin: Option<usize>, end: Option<usize>| {
            begin
                .zip(end)
                .is_some_and(|(begin, end)| begin <= end && end - begin <= MAX_TEXT)
        };
        // SAFETY: the caller guarantees `last` rows, and a text column has one more offset than rows, so `last` is a valid index.
        rows == 0
            || match self.values {
                Values::Text(at, _) => {
                    is_there(at)
                        && is_text(unsafe { text_offset(at, first) }, unsafe {
                            text_offset(at, last)
                        })
                }
                Values::LargeText(at, _) => {
                    is_there(at)
                        && is_text(unsafe { text_offset(at, first) }, unsafe {
                            text_offset(at, last)
                        })
                }
                Values::Words(at) => is_there(at),
                Values::Bools(at) => is_there(at),
            }
    }

    /// Returns the value at index `row` in the buffers.
    ///
    /// # Safety
    ///
    /// The array must not be released during `'a`, its buffers must have the row, and [`fits`](Self::fits) must have returned true.
    #[inline]
    unsafe fn cell<'a>(&self, row: usize) -> Cell<'a> {
        // SAFETY: the caller guarantees that the buffers are alive and have this row. The C data interface guarantees that the offsets of a
        // string are within the column's bytes.
        unsafe {
            let bit = |bits: *const u8| *bits.add(row / 8) >> (row % 8) & 1 == 1;
            let text =
                |data: *const u8, begin: Option<usize>, end: Option<usize>| match begin.zip(end) {
                    Some((begin, end)) if begin < end && !data.is_null() => {
                        Cell::Text(slice::from_raw_parts(data.add(begin), end - begin))
                    }
                    _ => Cell::Text(&[]),
                };
            if !self.valid.is_null() && !bit(self.valid) {
                return Cell::Null;
            }
            match self.values {
                Values::Text(at, data) => {
                    text(data, text_offset(at, row), text_offset(at, row + 1))
                }
                Values::LargeText(at, data) => {
                    text(data, text_offset(at, row), text_offset(at, row + 1))
                }
                Values::Words(words) => Cell::Word(*words.add(row)),
                Values::Bools(bits) => Cell::Bool(bit(bits)),
            }
        }
    }
}

fn is_there<T>(buffer: *const T) -> bool {
    !buffer.is_null() && buffer.is_aligned()
}

/// Reads the offset at `index`; `None` if it is negative.
///
/// # Safety
///
/// `at` must be aligned and point to more than `index` numbers.
#[inline]
unsafe fn text_offset<T: Copy + TryInto<usize>>(at: *const T, index: usize) -> Option<usize> {
    // SAFETY: the caller guarantees that there is an aligned number at `index`.
    unsafe { *at.add(index) }.try_into().ok()
}
