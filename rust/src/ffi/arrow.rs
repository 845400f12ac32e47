//! The Arrow C data interface and the C stream interface: schemas, arrays and streams that are handed to others, or taken from them.
//!
//! A struct that is handed out owns what it points to, until its `release` is called; that may be by any thread. Each child has its own, for
//! a consumer may move children out. A released struct has no `release`: calling it twice is not possible.
//! See "The Arrow C data interface" of Apache Arrow, which fixes the structs.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};
use std::{mem, ptr};

use crate::columns::batch::{with_room, Batch, Column, NoMemory, Type, Values};

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
/// Numbers of the system: consumers make exceptions of some of them, such as a `MemoryError`.
const EIO: c_int = 5;
pub(super) const ENOMEM: c_int = 12;
const EBUSY: c_int = 16;
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
    fn new(keep: K, mut children: Vec<T>) -> Result<Self, NoMemory> {
        let mut pointers = with_room(children.len())?;
        pointers.extend(children.iter_mut().map(ptr::from_mut));
        Ok(Self {
            keep,
            children,
            pointers,
        })
    }
}

/// A value in memory of its own, for [`drop_box`].
fn boxed<T>(value: T) -> Result<*mut T, NoMemory> {
    // `Box::new` aborts the process where there is no memory. A slice of one value is laid out as the value is.
    let mut one = with_room(1)?;
    one.push(value);
    Ok(Box::into_raw(one.into_boxed_slice()).cast())
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
    fn of(columns: &[(String, Type)]) -> Result<Self, NoMemory> {
        let mut fields = with_room(columns.len())?;
        for (name, kind) in columns {
            let format = match kind {
                Type::Text | Type::Json => c"u",
                Type::Int => c"l",
                Type::Float => c"g",
                Type::Bool => c"b",
                Type::Time => c"tsu:UTC",
            };
            fields.push(Self::new(format, name, NULLABLE, Vec::new())?);
        }
        Self::new(c"+s", "", 0, fields)
    }

    fn new(
        format: &'static CStr,
        name: &str,
        flags: i64,
        children: Vec<Self>,
    ) -> Result<Self, NoMemory> {
        let mut bytes = with_room(name.len() + 1)?;
        bytes.extend_from_slice(name.as_bytes());
        let mut parts: SchemaParts = Parts::new(CString::new(bytes).unwrap_or_default(), children)?;
        let mut schema = Self::empty();
        schema.format = format.as_ptr();
        schema.name = parts.keep.as_ptr();
        schema.flags = flags;
        schema.n_children = count(parts.pointers.len());
        schema.children = parts.pointers.as_mut_ptr();
        schema.private_data = boxed(parts)?.cast();
        schema.release = Some(release_schema);
        Ok(schema)
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

/// The buffers of an array, of which there are three at most, and what owns them.
type ArrayParts = Parts<ArrowArray, (Vec<*const c_void>, Option<Column>)>;

impl ArrowArray {
    /// The rows of a batch, as a struct of its columns.
    pub(super) fn of(batch: Batch) -> Result<Self, NoMemory> {
        let mut columns = with_room(batch.columns.len())?;
        for column in batch.columns {
            columns.push(Self::column(column)?);
        }
        let mut buffers = with_room(1)?;
        buffers.push(ptr::null());
        Self::new(batch.rows, 0, Parts::new((buffers, None), columns)?)
    }

    fn column(column: Column) -> Result<Self, NoMemory> {
        let valid = column.valid.bytes().as_ptr().cast();
        let mut buffers = with_room(3)?;
        buffers.push(if column.nulls == 0 {
            ptr::null()
        } else {
            valid
        });
        match &column.values {
            Values::Text(starts, bytes) => {
                buffers.push(starts.as_ptr().cast());
                buffers.push(bytes.as_ptr().cast());
            }
            Values::Words(words) => buffers.push(words.as_ptr().cast()),
            Values::Bools(bits) => buffers.push(bits.bytes().as_ptr().cast()),
        }
        let (rows, nulls) = (column.rows(), column.nulls);
        let parts = Parts::new((buffers, Some(column)), Vec::new())?;
        Self::new(rows, nulls, parts)
    }

    fn new(rows: usize, nulls: usize, mut parts: ArrayParts) -> Result<Self, NoMemory> {
        let mut array = Self::empty();
        array.length = count(rows);
        array.null_count = count(nulls);
        array.n_buffers = count(parts.keep.0.len());
        array.buffers = parts.keep.0.as_mut_ptr();
        array.n_children = count(parts.pointers.len());
        array.children = parts.pointers.as_mut_ptr();
        array.private_data = boxed(parts)?.cast();
        array.release = Some(release_array);
        Ok(array)
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

/// Why a stream ends before its end.
#[derive(Debug)]
pub(super) enum Ended {
    /// There is no memory.
    NoMemory,
    /// For this reason.
    Because(String),
}

impl From<NoMemory> for Ended {
    fn from(NoMemory: NoMemory) -> Self {
        Self::NoMemory
    }
}

impl From<&str> for Ended {
    fn from(reason: &str) -> Self {
        Self::Because(reason.into())
    }
}

/// What a stream gives: one batch after another, `None` at the end, or what went wrong.
pub(super) type Batches = Box<dyn FnMut() -> Result<Option<Batch>, Ended> + Send>;

/// The interface lets one thread at a time use a stream. Some consumers let several: a thread that comes while another one reads is
/// refused. It cannot wait, for it may hold the lock of the interpreter, which the other one may need to decode a line.
struct StreamParts {
    columns: Vec<(String, Type)>,
    /// Gone once it has failed.
    batches: Mutex<Option<Batches>>,
    /// Set once, so that nobody reads words that go.
    error: OnceLock<Cow<'static, CStr>>,
}

const IN_USE: &CStr = c"another thread is reading this stream: give each thread its own";
const NO_MEMORY: &CStr = c"no memory for a line, or for its rows";

impl ArrowArrayStream {
    /// A stream of batches with these columns.
    pub(super) fn of(columns: Vec<(String, Type)>, batches: Batches) -> Self {
        let parts = Box::new(StreamParts {
            columns,
            batches: Mutex::new(Some(batches)),
            error: OnceLock::new(),
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
/// `stream` is one of ours, and not released before this is used for the last time.
unsafe fn parts<'a>(stream: *mut ArrowArrayStream) -> &'a StreamParts {
    // SAFETY: the caller promises it, and `private_data` is from `of`.
    unsafe { &*(*stream).private_data.cast::<StreamParts>() }
}

/// # Safety
///
/// As of [`parts`]. `out` may be written, and is not read.
unsafe extern "C" fn stream_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the caller promises it.
    let columns = unsafe { &parts(stream).columns };
    match catch_unwind(AssertUnwindSafe(|| ArrowSchema::of(columns))) {
        Ok(Ok(schema)) => {
            // SAFETY: the caller promises it.
            unsafe { out.write(schema) };
            0
        }
        Ok(Err(NoMemory)) => ENOMEM,
        Err(_) => EIO,
    }
}

/// # Safety
///
/// As of [`stream_schema`].
unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: the caller promises it.
    let parts = unsafe { parts(stream) };
    let Ok(mut reading) = parts.batches.try_lock() else {
        return EBUSY;
    };
    let Some(batches) = &mut *reading else {
        return EINVAL;
    };
    let next = catch_unwind(AssertUnwindSafe(|| match batches()? {
        Some(batch) => Ok(ArrowArray::of(batch)?),
        None => Ok(ArrowArray::empty()),
    }));
    let (status, error) = match next {
        Ok(Ok(array)) => {
            // SAFETY: the caller promises it.
            unsafe { out.write(array) };
            return 0;
        }
        Ok(Err(Ended::NoMemory)) => (ENOMEM, NO_MEMORY.into()),
        Ok(Err(Ended::Because(reason))) => {
            let reason = CString::new(reason.replace('\0', "\u{fffd}"));
            (EINVAL, reason.unwrap_or_default().into())
        }
        Err(_) => (EINVAL, c"a bug in the native library of claude_wire".into()),
    };
    *reading = None;
    let _ = parts.error.set(error);
    status
}

/// # Safety
///
/// As of [`parts`].
unsafe extern "C" fn stream_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the caller promises it.
    let parts = unsafe { parts(stream) };
    if let Some(error) = parts.error.get() {
        return error.as_ptr();
    }
    match parts.batches.try_lock() {
        Err(TryLockError::WouldBlock) => IN_USE.as_ptr(),
        _ => ptr::null(),
    }
}

/// # Safety
///
/// `stream` is one of ours, not released.
unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: as in `release_schema`. Of two threads that release it at once, one finds that it is released. A function that may be null
    // is a pointer.
    unsafe {
        let release = AtomicPtr::<()>::from_ptr((&raw mut (*stream).release).cast());
        if !release.swap(ptr::null_mut(), Ordering::AcqRel).is_null() {
            drop_box::<StreamParts>((*stream).private_data);
        }
    }
}

#[cfg(test)]
mod tests;
