//! Arrow streams of others: their rows, for [`Combine`].

use std::ffi::{c_void, CStr};
use std::slice;

use super::arrow::{ArrowArray, ArrowArrayStream, ArrowSchema};
use crate::columns::batch::Type;
use crate::columns::combine::{Cell, Combine};

/// A stream of another library, which is released at the end.
pub(super) struct Imported {
    stream: ArrowArrayStream,
    /// Of each column its name, its type, and whether its offsets have 64 bits.
    columns: Vec<(String, Type, bool)>,
}

struct Schema(ArrowSchema);

impl Drop for Schema {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: it is not released, and nobody else has it.
            unsafe { release(&raw mut self.0) };
        }
    }
}

struct Array(ArrowArray);

impl Drop for Array {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: it is not released, and nobody else has it.
            unsafe { release(&raw mut self.0) };
        }
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        if let Some(release) = self.stream.release {
            // SAFETY: it is not released, and nobody else has it.
            unsafe { release(&raw mut self.stream) };
        }
    }
}

impl Imported {
    /// Takes a stream over; what is left at `stream` is released.
    ///
    /// # Safety
    ///
    /// `stream` is a stream of the C stream interface, which keeps to it.
    pub(super) unsafe fn new(stream: *mut ArrowArrayStream) -> Result<Self, String> {
        // SAFETY: the caller promises it. To move a struct is to copy it, and to mark the old one as released.
        let stream = unsafe {
            let taken = stream.read();
            (*stream).release = None;
            taken
        };
        if stream.release.is_none() {
            return Err("its stream was read already".into());
        }
        let mut imported = Self {
            stream,
            columns: Vec::new(),
        };
        let mut schema = Schema(ArrowSchema::empty());
        let get = imported.stream.get_schema.ok_or("it has no schema")?;
        // SAFETY: the stream is not released, and `schema` may be written.
        if unsafe { get(&raw mut imported.stream, &raw mut schema.0) } != 0 {
            return Err(imported.error());
        }
        // SAFETY: the schema is valid as long as it is not released.
        imported.columns = unsafe { columns(&schema.0) }?;
        Ok(imported)
    }

    /// The columns.
    pub(super) fn columns(&self) -> Vec<(String, Type)> {
        let columns = self.columns.iter();
        columns
            .map(|(name, kind, _)| (name.clone(), *kind))
            .collect()
    }

    /// Adds all rows.
    pub(super) fn add_to(&mut self, combine: &mut Combine) -> Result<(), String> {
        let next = self.stream.get_next.ok_or("it has no rows")?;
        loop {
            let mut array = Array(ArrowArray::empty());
            // SAFETY: the stream is not released, and `array` may be written.
            if unsafe { next(&raw mut self.stream, &raw mut array.0) } != 0 {
                return Err(self.error());
            }
            if array.0.release.is_none() {
                return Ok(());
            }
            // SAFETY: the array is of the stream's schema, and valid as long as it is not released.
            let views = unsafe { views(&array.0, &self.columns) }
                .ok_or("its rows are not of its schema")?;
            let rows = usize::try_from(array.0.length).unwrap_or(0);
            for row in 0..rows {
                combine.add(|column| views[column].cell(row));
            }
        }
    }

    fn error(&mut self) -> String {
        let Some(last) = self.stream.get_last_error else {
            return "its stream failed".into();
        };
        // SAFETY: the stream is not released; the text is valid until the next call.
        unsafe {
            let text = last(&raw mut self.stream);
            if text.is_null() {
                return "its stream failed".into();
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// # Safety
///
/// A schema of the C data interface, not released.
unsafe fn columns(schema: &ArrowSchema) -> Result<Vec<(String, Type, bool)>, String> {
    // SAFETY: the caller promises it: texts end with a NUL, and there are so many children.
    let text = |text| {
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    };
    if schema.format.is_null() || text(schema.format) != "+s" {
        return Err("it has no columns".into());
    }
    let mut columns = Vec::new();
    for index in 0..usize::try_from(schema.n_children).unwrap_or(0) {
        // SAFETY: see above.
        let child = unsafe { &**schema.children.add(index) };
        let name = text(child.name);
        let (kind, is_large) = match text(child.format).as_str() {
            "u" => (Type::Text, false),
            "U" => (Type::Text, true),
            "l" => (Type::Int, false),
            "g" => (Type::Float, false),
            "b" => (Type::Bool, false),
            format if format.starts_with("tsu:") => (Type::Time, false),
            other => {
                return Err(format!(
                    "its column {name} is of the Arrow format {other}, not as scan() gives it"
                ))
            }
        };
        columns.push((name, kind, is_large));
    }
    Ok(columns)
}

/// A column of an array of another library.
struct View<'a> {
    valid: Option<&'a [u8]>,
    /// Rows of the buffers before the first of the array.
    offset: usize,
    values: Buffers<'a>,
}

enum Buffers<'a> {
    Text(&'a [i32], *const u8),
    LargeText(&'a [i64], *const u8),
    Words(&'a [u64]),
    Bools(&'a [u8]),
}

/// # Safety
///
/// An array with these columns, not released; the views end before it is.
unsafe fn views<'a>(
    array: &'a ArrowArray,
    columns: &[(String, Type, bool)],
) -> Option<Vec<View<'a>>> {
    if array.n_children != i64::try_from(columns.len()).ok()? {
        return None;
    }
    // The struct's own offset and length count for its children, too.
    let begin = usize::try_from(array.offset).ok()?;
    let length = usize::try_from(array.length).ok()?;
    let mut views = Vec::new();
    for (index, (_, kind, is_large)) in columns.iter().enumerate() {
        // SAFETY: there are so many children.
        let child = unsafe { &**array.children.add(index) };
        let offset = begin + usize::try_from(child.offset).ok()?;
        let end = offset + length;
        if usize::try_from(child.length).ok()? < begin + length {
            return None;
        }
        let needed = if *kind == Type::Text { 3 } else { 2 };
        if child.n_buffers != needed {
            return None;
        }
        // SAFETY: there are so many buffers, each as long as the type says, or null if it has nothing.
        let view = unsafe {
            let buffer = |index: usize| *child.buffers.add(index);
            let valid = slice_at::<u8>(buffer(0), end.div_ceil(8));
            let values = match (kind, is_large) {
                (Type::Text | Type::Json, false) => Buffers::Text(
                    slice_at(buffer(1), end + 1).unwrap_or_default(),
                    buffer(2).cast(),
                ),
                (Type::Text | Type::Json, true) => Buffers::LargeText(
                    slice_at(buffer(1), end + 1).unwrap_or_default(),
                    buffer(2).cast(),
                ),
                (Type::Bool, _) => {
                    Buffers::Bools(slice_at(buffer(1), end.div_ceil(8)).unwrap_or_default())
                }
                _ => Buffers::Words(slice_at(buffer(1), end).unwrap_or_default()),
            };
            View {
                valid,
                offset,
                values,
            }
        };
        views.push(view);
    }
    Some(views)
}

/// # Safety
///
/// `buffer` is null, or `length` values may be read there, aligned, as long as `'a` lasts.
unsafe fn slice_at<'a, T>(buffer: *const c_void, length: usize) -> Option<&'a [T]> {
    let buffer = buffer.cast::<T>();
    // SAFETY: the caller promises it.
    (!buffer.is_null() && buffer.is_aligned())
        .then(|| unsafe { slice::from_raw_parts(buffer, length) })
}

impl<'a> View<'a> {
    fn cell(&self, row: usize) -> Cell<'a> {
        let row = row + self.offset;
        let bit = |bits: &[u8]| {
            bits.get(row / 8)
                .is_some_and(|byte| byte >> (row % 8) & 1 == 1)
        };
        if self.valid.is_some_and(|valid| !bit(valid)) {
            return Cell::Null;
        }
        let text = |data: *const u8, begin: Option<usize>, end: Option<usize>| {
            let (Some(begin), Some(end)) = (begin, end) else {
                return Cell::Null;
            };
            if data.is_null() || end <= begin {
                return Cell::Text(&[]);
            }
            // SAFETY: the offsets of a text are within its bytes, as the interface says.
            Cell::Text(unsafe { slice::from_raw_parts(data.add(begin), end - begin) })
        };
        match self.values {
            Buffers::Text(offsets, data) => {
                let place = |row: usize| offsets.get(row).and_then(|&it| usize::try_from(it).ok());
                text(data, place(row), place(row + 1))
            }
            Buffers::LargeText(offsets, data) => {
                let place = |row: usize| offsets.get(row).and_then(|&it| usize::try_from(it).ok());
                text(data, place(row), place(row + 1))
            }
            Buffers::Words(words) => words.get(row).map_or(Cell::Null, |&word| Cell::Word(word)),
            Buffers::Bools(bits) => Cell::Bool(bit(bits)),
        }
    }
}
