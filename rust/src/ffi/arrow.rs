//! The Arrow C data interface and the C stream interface: schemas, arrays and streams that are handed to others, or taken from them.
//!
//! A struct that is handed out owns what it points to, until its `release` is called; that may be by any thread. Each child has its own, for
//! a consumer may move children out. A released struct has no `release`: calling it twice is not possible.
//! See "The Arrow C data interface" of Apache Arrow, which fixes the structs.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::{mem, ptr};

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

/// That a struct is released when it is dropped, unless it was moved out: then it has no `release`.
macro_rules! released {
    ($name:ident) => {
        impl $name {
            /// One that is released.
            pub(super) fn empty() -> Self {
                // SAFETY: numbers, pointers and functions that may be null.
                unsafe { mem::zeroed() }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: it is not released, and nobody else has it.
                    unsafe { release(self) };
                }
            }
        }
    };
}

released!(ArrowSchema);
released!(ArrowArray);
released!(ArrowArrayStream);

const NULLABLE: i64 = 2;
/// `EIO` and `EINVAL`.
const EIO: c_int = 5;
const EINVAL: c_int = 22;

/// What a struct of ours points to: its own things, its children, and pointers to these. What a vector points to stays where it is when the
/// vector is moved.
struct Parts<T, K> {
    keep: K,
    #[allow(dead_code)] // It is dropped, which releases those that no consumer has moved out.
    children: Vec<T>,
    pointers: Vec<*mut T>,
}

impl<T, K> Parts<T, K> {
    fn new(keep: K, mut children: Vec<T>) -> Self {
        let pointers = children.iter_mut().map(ptr::from_mut).collect();
        Self {
            keep,
            children,
            pointers,
        }
    }
}

/// A length as the interface counts.
fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Drops what is at a pointer that a box was made into.
///
/// # Safety
///
/// It was, of this type, and is used no more.
unsafe fn drop_box<T>(pointer: *mut c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller promises it.
        drop(unsafe { Box::from_raw(pointer.cast::<T>()) });
    }));
}

type SchemaParts = Parts<ArrowSchema, CString>;

impl ArrowSchema {
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
        Self::new(c"+s", "", 0, fields.collect())
    }

    fn new(format: &'static CStr, name: &str, flags: i64, children: Vec<Self>) -> Self {
        let parts = Parts::new(CString::new(name).unwrap_or_default(), children);
        let mut parts: Box<SchemaParts> = Box::new(parts);
        let mut schema = Self::empty();
        schema.format = format.as_ptr();
        schema.name = parts.keep.as_ptr();
        schema.flags = flags;
        schema.n_children = count(parts.pointers.len());
        schema.children = parts.pointers.as_mut_ptr();
        schema.release = Some(release_schema);
        schema.private_data = Box::into_raw(parts).cast();
        schema
    }
}

/// # Safety
///
/// `schema` is one of ours, not released.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the caller promises it; `private_data` is from `new`, and taken once, for `release` is gone afterwards.
    unsafe {
        (*schema).release = None;
        drop_box::<SchemaParts>((*schema).private_data);
    }
}

/// The buffers of an array, and what owns them.
type ArrayParts = Parts<ArrowArray, (Vec<*const c_void>, Option<Column>)>;

impl ArrowArray {
    /// The rows of a batch, as a struct of its columns.
    pub(super) fn of(batch: Batch) -> Self {
        let columns = batch.columns.into_iter().map(Self::column);
        let parts = Parts::new((vec![ptr::null()], None), columns.collect());
        Self::new(batch.rows, 0, parts)
    }

    fn column(column: Column) -> Self {
        let valid = column.valid.bytes().as_ptr().cast();
        let mut buffers = vec![if column.nulls == 0 {
            ptr::null()
        } else {
            valid
        }];
        match &column.values {
            Values::Text(starts, bytes) => {
                buffers.push(starts.as_ptr().cast());
                buffers.push(bytes.as_ptr().cast());
            }
            Values::Words(words) => buffers.push(words.as_ptr().cast()),
            Values::Bools(bits) => buffers.push(bits.bytes().as_ptr().cast()),
        }
        let (rows, nulls) = (column.rows(), column.nulls);
        Self::new(rows, nulls, Parts::new((buffers, Some(column)), Vec::new()))
    }

    fn new(rows: usize, nulls: usize, parts: ArrayParts) -> Self {
        let mut parts = Box::new(parts);
        let mut array = Self::empty();
        array.length = count(rows);
        array.null_count = count(nulls);
        array.n_buffers = count(parts.keep.0.len());
        array.buffers = parts.keep.0.as_mut_ptr();
        array.n_children = count(parts.pointers.len());
        array.children = parts.pointers.as_mut_ptr();
        array.release = Some(release_array);
        array.private_data = Box::into_raw(parts).cast();
        array
    }
}

/// # Safety
///
/// `array` is one of ours, not released.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as in `release_schema`.
    unsafe {
        (*array).release = None;
        drop_box::<ArrayParts>((*array).private_data);
    }
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
/// `stream` is one of ours, not released.
unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: as in `release_schema`.
    unsafe {
        (*stream).release = None;
        drop_box::<StreamParts>((*stream).private_data);
    }
}

#[cfg(test)]
mod tests;
