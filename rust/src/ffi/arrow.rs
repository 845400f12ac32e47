//! The Arrow C data interface and the C stream interface: schemas, arrays and streams that are handed to others, or taken from them.
//!
//! A struct that is handed out owns what it points to, until its `release` is called; that may be by any thread. Each child has its own, for
//! a consumer may move children out. A released struct has no `release`: calling it twice is not possible.
//! See "The Arrow C data interface" of Apache Arrow, which fixes the structs.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;

use crate::columns::batch::{Batch, Column, Type, Values};

/// `ArrowSchema` of the C data interface.
#[repr(C)]
pub struct ArrowSchema {
    pub(super) format: *const c_char,
    pub(super) name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    pub(super) n_children: i64,
    pub(super) children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `ArrowArray` of the C data interface.
#[repr(C)]
pub struct ArrowArray {
    pub(super) length: i64,
    null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *mut *const c_void,
    pub(super) children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// `ArrowArrayStream` of the C stream interface.
#[repr(C)]
pub struct ArrowArrayStream {
    pub(super) get_schema:
        Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub(super) get_next:
        Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(super) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

const NULLABLE: i64 = 2;
/// `EIO`, `EINVAL` and `ENOTSUP`: the same numbers on all systems but for the last.
const EIO: c_int = 5;
const EINVAL: c_int = 22;

impl ArrowSchema {
    /// One that is released.
    pub(super) fn empty() -> Self {
        Self {
            format: ptr::null(),
            name: ptr::null(),
            metadata: ptr::null(),
            flags: 0,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// That of rows with these columns.
    fn of(columns: &[(String, Type)]) -> Self {
        let fields = columns.iter().map(|(name, kind)| {
            let format = match kind {
                Type::Text | Type::Json => c"u",
                Type::Int => c"l",
                Type::Float => c"g",
                Type::Bool => c"b",
                Type::Time => c"tsu:UTC",
            };
            Self::new(format, name, NULLABLE, Vec::new())
        });
        let children = fields.map(|field| Box::into_raw(Box::new(field))).collect();
        Self::new(c"+s", "", 0, children)
    }

    fn new(format: &'static CStr, name: &str, flags: i64, children: Vec<*mut Self>) -> Self {
        let mut private = Box::new(SchemaParts {
            name: CString::new(name).unwrap_or_default(),
            children,
        });
        Self {
            format: format.as_ptr(),
            name: private.name.as_ptr(),
            flags,
            n_children: count(private.children.len()),
            children: private.children.as_mut_ptr(),
            release: Some(release_schema),
            private_data: Box::into_raw(private).cast(),
            ..Self::empty()
        }
    }
}

struct SchemaParts {
    name: CString,
    children: Vec<*mut ArrowSchema>,
}

/// A length as the interface counts.
fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// # Safety
///
/// `schema` is one of ours, not released.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller promises it; `private_data` is from `new`, and taken once, for `release` is gone afterwards.
        unsafe {
            let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
            for &child in &parts.children {
                let mut child = Box::from_raw(child);
                if let Some(release) = child.release {
                    release(&raw mut *child);
                }
            }
            (*schema).release = None;
        }
    }));
}

impl ArrowArray {
    /// One that is released.
    pub(super) fn empty() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// The rows of a batch, as a struct of its columns.
    pub(super) fn of(batch: Batch) -> Self {
        let columns = batch.columns.into_iter().map(Self::column);
        let children = columns.map(|column| Box::into_raw(Box::new(column)));
        let parts = ArrayParts {
            column: None,
            buffers: vec![ptr::null()],
            children: children.collect(),
        };
        Self::new(batch.rows, 0, parts)
    }

    fn column(column: Column) -> Self {
        let valid = if column.nulls == 0 {
            ptr::null()
        } else {
            column.valid.bytes().as_ptr().cast()
        };
        let mut buffers = vec![valid];
        // What a vector points to stays where it is when the vector is moved.
        match &column.values {
            Values::Text(starts, bytes) => {
                buffers.push(starts.as_ptr().cast());
                buffers.push(bytes.as_ptr().cast());
            }
            Values::Words(words) => buffers.push(words.as_ptr().cast()),
            Values::Bools(bits) => buffers.push(bits.bytes().as_ptr().cast()),
        }
        let (rows, nulls) = (column.rows(), column.nulls);
        let parts = ArrayParts {
            column: Some(column),
            buffers,
            children: Vec::new(),
        };
        Self::new(rows, nulls, parts)
    }

    fn new(rows: usize, nulls: usize, parts: ArrayParts) -> Self {
        let mut parts = Box::new(parts);
        Self {
            length: count(rows),
            null_count: count(nulls),
            n_buffers: count(parts.buffers.len()),
            n_children: count(parts.children.len()),
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            release: Some(release_array),
            private_data: Box::into_raw(parts).cast(),
            ..Self::empty()
        }
    }
}

struct ArrayParts {
    /// Owns what the buffers point to.
    #[allow(dead_code)] // It is dropped, and nothing else.
    column: Option<Column>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
}

/// # Safety
///
/// `array` is one of ours, not released.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as in `release_schema`. A child that a consumer has moved out is marked as released here, and keeps its own.
        unsafe {
            let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
            for &child in &parts.children {
                let mut child = Box::from_raw(child);
                if let Some(release) = child.release {
                    release(&raw mut *child);
                }
            }
            (*array).release = None;
        }
    }));
}

/// What a stream gives: one batch after another, `None` at the end, or what went wrong.
pub(super) type Batches = Box<dyn FnMut() -> Result<Option<Batch>, String> + Send>;

struct StreamParts {
    columns: Vec<(String, Type)>,
    /// Gone once it has failed.
    batches: Option<Batches>,
    error: CString,
}

impl ArrowArrayStream {
    /// A stream of batches with these columns.
    pub(super) fn of(columns: Vec<(String, Type)>, batches: Batches) -> Self {
        let parts = Box::new(StreamParts {
            columns,
            batches: Some(batches),
            error: CString::default(),
        });
        Self {
            get_schema: Some(stream_schema),
            get_next: Some(stream_next),
            get_last_error: Some(stream_error),
            release: Some(release_stream),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

/// # Safety
///
/// `stream` is one of ours, not released, and used by one thread at a time, as the interface says.
unsafe fn parts<'a>(stream: *mut ArrowArrayStream) -> &'a mut StreamParts {
    // SAFETY: the caller promises it, and `private_data` is from `of`.
    unsafe { &mut *(*stream).private_data.cast::<StreamParts>() }
}

/// # Safety
///
/// As of [`parts`]. `out` may be written, and is not read.
unsafe extern "C" fn stream_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    let made = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller promises it.
        unsafe { out.write(ArrowSchema::of(&parts(stream).columns)) };
    }));
    made.map_or(EIO, |()| 0)
}

/// # Safety
///
/// As of [`stream_schema`].
unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: the caller promises it.
    let parts = unsafe { parts(stream) };
    let Some(batches) = &mut parts.batches else {
        return EINVAL;
    };
    let next = catch_unwind(AssertUnwindSafe(|| {
        batches().map(|batch| batch.map_or_else(ArrowArray::empty, ArrowArray::of))
    }));
    let message = match next {
        Ok(Ok(array)) => {
            // SAFETY: the caller promises it.
            unsafe { out.write(array) };
            return 0;
        }
        Ok(Err(message)) => message,
        Err(_) => "a bug in the native library of claude_wire".into(),
    };
    parts.batches = None;
    parts.error = CString::new(message.replace('\0', "\u{fffd}")).unwrap_or_default();
    EINVAL
}

/// # Safety
///
/// As of [`parts`].
unsafe extern "C" fn stream_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the caller promises it.
    let error = unsafe { &parts(stream).error };
    if error.is_empty() {
        ptr::null()
    } else {
        error.as_ptr()
    }
}

/// # Safety
///
/// As of [`parts`].
unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller promises it; it is taken once, for `release` is gone afterwards.
        unsafe {
            (*stream).release = None;
            drop(Box::from_raw((*stream).private_data.cast::<StreamParts>()));
        }
    }));
}

#[cfg(test)]
mod tests;
