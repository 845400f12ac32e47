//! Arrow streams of others: their rows, as they are, for [`Combine`](crate::columns::combine::Combine).

use std::borrow::Cow;
use std::ffi::{c_char, c_int, CStr};
use std::slice;

use super::arrow::{ArrowArray, ArrowArrayStream, ArrowSchema, Ended, ENOMEM};
use crate::columns::batch::{push, with_room, Cell, NoMemory, Type};
use crate::columns::combine::Rows;

/// Most bytes of text in one column of one batch: those of two fit into offsets of 32 bits.
const MAX_TEXT: usize = 1 << 30;

/// A stream of another library, which is released at the end.
pub(super) struct Imported {
    stream: ArrowArrayStream,
    /// Of each column its name and its type.
    pub(super) columns: Vec<(String, Type)>,
    /// Whether the offsets of its texts have 64 bits.
    large: Vec<bool>,
}

/// # Safety
///
/// `text` is null, or ends with a NUL, and stays as it is while `'a` lasts.
unsafe fn text<'a>(text: *const c_char) -> Cow<'a, str> {
    if text.is_null() {
        return Cow::default();
    }
    // SAFETY: not null, and the caller promises the rest.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

impl Imported {
    /// Takes a stream over; what is left at `stream` is released.
    ///
    /// # Safety
    ///
    /// `stream` is a stream of the C stream interface, which keeps to it.
    pub(super) unsafe fn new(stream: *mut ArrowArrayStream) -> Result<Self, Ended> {
        let mut imported = Self {
            // SAFETY: the caller promises it. To move a struct is to copy it, and to mark the old one as released.
            stream: unsafe { stream.replace(ArrowArrayStream::empty()) },
            columns: Vec::new(),
            large: Vec::new(),
        };
        if imported.stream.release.is_none() {
            return Err("its stream was read already".into());
        }
        let mut schema = ArrowSchema::empty();
        let get = imported.stream.get_schema.ok_or("it has no schema")?;
        // SAFETY: the stream is not released, and `schema` may be written.
        let status = unsafe { get(&raw mut imported.stream, &raw mut schema) };
        if status != 0 {
            return Err(imported.error(status));
        }
        // SAFETY: the schema is valid as long as it is not released: texts end with a NUL, and `n_children` is the number of children.
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

    fn add_column(&mut self, name: &str, format: &str) -> Result<(), Ended> {
        let kind = match format {
            "u" | "U" => Type::Text,
            "l" => Type::Int,
            "g" => Type::Float,
            "b" => Type::Bool,
            _ if format.starts_with("tsu:") => Type::Time,
            _ => {
                return Err(Ended::Because(format!(
                    "its column {name} is of the Arrow format {format}, not as scan() gives it"
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

    /// The next rows; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Table>, Ended> {
        let next = self.stream.get_next.ok_or("it has no rows")?;
        let mut array = ArrowArray::empty();
        // SAFETY: the stream is not released, and `array` may be written.
        let status = unsafe { next(&raw mut self.stream, &raw mut array) };
        if status != 0 {
            return Err(self.error(status));
        }
        if array.release.is_none() {
            return Ok(None);
        }
        let mut columns = with_room(self.columns.len())?;
        // SAFETY: the array is of the stream's schema, and kept beside its columns.
        let views = unsafe { self.views(&array, &mut columns) };
        views.ok_or("its rows are not of its schema, or have more than 1 GiB of text")?;
        let rows = usize::try_from(array.length).unwrap_or(0);
        Ok(Some(Table {
            columns,
            rows,
            _array: array,
        }))
    }

    fn error(&mut self, status: c_int) -> Ended {
        if status == ENOMEM {
            return Ended::NoMemory;
        }
        let last = self.stream.get_last_error;
        // SAFETY: the stream is not released; the text is valid until the next call.
        let told = last.map(|last| unsafe { text(last(&raw mut self.stream)) });
        let told = told.filter(|told| !told.is_empty());
        Ended::Because(told.unwrap_or("its stream failed".into()).into_owned())
    }

    /// # Safety
    ///
    /// An array with these columns, not released; the views are used before it is.
    unsafe fn views(&self, array: &ArrowArray, views: &mut Vec<View>) -> Option<()> {
        if array.n_children != i64::try_from(self.columns.len()).ok()? {
            return None;
        }
        // The struct's own offset and length count for its children, too.
        let begin = usize::try_from(array.offset).ok()?;
        let length = usize::try_from(array.length).ok()?;
        let view = |(index, ((_, kind), &large)): (usize, (&(String, Type), &bool))| {
            // SAFETY: there are so many children.
            let child = unsafe { &**array.children.add(index) };
            let offset = begin + usize::try_from(child.offset).ok()?;
            let buffers = if *kind == Type::Text { 3 } else { 2 };
            if usize::try_from(child.length).ok()? < begin + length || child.n_buffers != buffers {
                return None;
            }
            // SAFETY: there are so many buffers.
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
            // SAFETY: the caller promises it.
            unsafe { view.fits(length) }.then_some(view)
        };
        for column in self.columns.iter().zip(&self.large).enumerate() {
            views.push(view(column)?);
        }
        Some(())
    }
}

/// Rows of another library.
pub(super) struct Table {
    columns: Vec<View>,
    rows: usize,
    /// It owns what the columns point to.
    _array: ArrowArray,
}

// SAFETY: an array may be used and released by any thread, and nobody changes what it points to.
unsafe impl Send for Table {}
// SAFETY: see above.
unsafe impl Sync for Table {}

impl Rows for Table {
    fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    fn cell(&self, column: usize, row: usize) -> Cell<'_> {
        assert!(row < self.rows);
        let view = &self.columns[column];
        // SAFETY: the array is not released, and has this row.
        unsafe { view.cell(view.offset + row) }
    }
}

/// A column of an array.
struct View {
    /// Null if all are.
    valid: *const u8,
    /// Rows of the buffers before the first of the array.
    offset: usize,
    values: Values,
}

enum Values {
    Text(*const i32, *const u8),
    LargeText(*const i64, *const u8),
    Words(*const u64),
    Bools(*const u8),
}

impl View {
    /// Whether the buffers are there and aligned, and offsets within bounds, for rows of which there are so many.
    ///
    /// # Safety
    ///
    /// The buffers are as the interface says.
    unsafe fn fits(&self, rows: usize) -> bool {
        let (first, last) = (self.offset, self.offset + rows);
        let is_text = |begin: Option<usize>, end: Option<usize>| {
            begin
                .zip(end)
                .is_some_and(|(begin, end)| begin <= end && end - begin <= MAX_TEXT)
        };
        // SAFETY: an array of so many rows has one offset more.
        rows == 0
            || match self.values {
                Values::Text(at, _) => {
                    is_there(at) && is_text(unsafe { place(at, first) }, unsafe { place(at, last) })
                }
                Values::LargeText(at, _) => {
                    is_there(at) && is_text(unsafe { place(at, first) }, unsafe { place(at, last) })
                }
                Values::Words(at) => is_there(at),
                Values::Bools(at) => is_there(at),
            }
    }

    /// # Safety
    ///
    /// The array is not released, and its buffers have this row.
    #[inline]
    unsafe fn cell<'a>(&self, row: usize) -> Cell<'a> {
        // SAFETY: the caller promises it; the offsets of a text are within its bytes, as the interface says.
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
                Values::Text(at, data) => text(data, place(at, row), place(at, row + 1)),
                Values::LargeText(at, data) => text(data, place(at, row), place(at, row + 1)),
                Values::Words(words) => Cell::Word(*words.add(row)),
                Values::Bools(bits) => Cell::Bool(bit(bits)),
            }
        }
    }
}

fn is_there<T>(buffer: *const T) -> bool {
    !buffer.is_null() && buffer.is_aligned()
}

/// # Safety
///
/// There is such a number, aligned.
#[inline]
unsafe fn place<T: Copy + TryInto<usize>>(at: *const T, index: usize) -> Option<usize> {
    // SAFETY: the caller promises it.
    unsafe { *at.add(index) }.try_into().ok()
}
