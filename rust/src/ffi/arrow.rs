//! The structs of the Arrow C data interface and of the C stream interface, and the export of column batches as these structs.
//!
//! A consumer such as pyarrow gets a pointer to an `ArrowArrayStream` and calls the functions in it:
//!
//! ```text
//! get_schema → ArrowSchema   "+s" (a struct) with one child per column: "u" text, "l" integer, "tsu:UTC" time, …
//! get_next   → ArrowArray    one batch: one child per column, each with 2 or 3 buffers; a released array at the end
//! release                    frees the stream
//! ```
//!
//! An exported struct owns the memory that it points to until `release` is called. Any thread may call it. Each child has its own
//! `release`, because a consumer may move children out of their parent. `release` sets itself to null, which marks the struct as released,
//! so no code calls it again.
//!
//! "The Arrow C data interface" in the documentation of Apache Arrow defines the structs and their rules.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};
use std::{mem, ptr};

use crate::columns::batch::{Batch, Column, Type, Values};
use crate::fallible::{boxed, with_room, NoMemory};

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

/// Implements `Drop` for a struct of the interface: dropping it calls `release`, unless it is released or was moved out.
macro_rules! released {
    ($name:ident) => {
        impl $name {
            /// Returns a released struct: all fields are 0 or null.
            pub(super) fn empty() -> Self {
                // SAFETY: all fields are numbers, raw pointers or optional functions, for which zeros are a valid value.
                unsafe { mem::zeroed() }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: `release` is set, so the struct is not released. `&mut self` is the only access to it.
                    unsafe { release(self) };
                }
            }
        }
    };
}

released!(ArrowSchema);
released!(ArrowArray);
released!(ArrowArrayStream);

/// `ARROW_FLAG_NULLABLE`.
const NULLABLE: i64 = 2;
// The errno values that a stream's functions return. Consumers turn some of them into exceptions, for example `ENOMEM` into a
// `MemoryError`.
pub(super) const EIO: c_int = 5;
pub(super) const ENOMEM: c_int = 12;
const EBUSY: c_int = 16;
pub(super) const EINVAL: c_int = 22;

/// The memory that an exported struct points to, owned by its `private_data`. Moving a `Parts` does not move this memory, because it is in
/// vectors on the heap.
struct Parts<T, K> {
    /// The memory of the struct's own fields: a name or buffers.
    owned: K,
    #[allow(dead_code)] // Never read.
    // Dropping the vector releases the children, except those that a consumer moved out.
    children: Vec<T>,
    /// The addresses of `children`.
    pointers: Vec<*mut T>,
}

impl<T, K> Parts<T, K> {
    fn new(owned: K, mut children: Vec<T>) -> Result<Self, NoMemory> {
        let mut pointers = with_room(children.len())?;
        pointers.extend(children.iter_mut().map(ptr::from_mut));
        Ok(Self {
            owned,
            children,
            pointers,
        })
    }
}

/// Moves a value to the heap, or returns an error if memory runs out. [`drop_box`] frees it.
fn on_heap<T>(value: T) -> Result<*mut T, NoMemory> {
    // An array of one value has the layout of the value.
    Ok(Box::into_raw(boxed([value])?).cast())
}

/// Converts a length to the integer type of the interface.
fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Drops and frees a value on the heap. Ignores a panic of its destructor.
///
/// # Safety
///
/// `pointer` must come from [`on_heap`] or `Box::into_raw`, its value must be a `T`, and this must be its last use.
unsafe fn drop_box<T>(pointer: *mut c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller guarantees the origin and the type of the pointer, and that this is its last use.
        drop(unsafe { Box::from_raw(pointer.cast::<T>()) });
    }));
}

type SchemaParts = Parts<ArrowSchema, CString>;

impl ArrowSchema {
    /// Returns the schema of batches with these columns.
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
        schema.name = parts.owned.as_ptr();
        schema.flags = flags;
        schema.n_children = count(parts.pointers.len());
        schema.children = parts.pointers.as_mut_ptr();
        schema.private_data = on_heap(parts)?.cast();
        schema.release = Some(release_schema);
        Ok(schema)
    }
}

/// The `release` of an exported schema.
///
/// # Safety
///
/// `schema` must come from [`ArrowSchema::new`] and must not be released.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the caller guarantees that `new` made the schema, so `private_data` is a boxed `SchemaParts`. It is freed only once,
    // because `release` is cleared before.
    unsafe {
        (*schema).release = None;
        drop_box::<SchemaParts>((*schema).private_data);
    }
}

/// The memory of an exported array: the addresses of its buffers (at most 3), and the column that owns the buffers.
type ArrayParts = Parts<ArrowArray, (Vec<*const c_void>, Option<Column>)>;

impl ArrowArray {
    /// Exports a batch of rows: an Arrow struct with one child per column.
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
        array.n_buffers = count(parts.owned.0.len());
        array.buffers = parts.owned.0.as_mut_ptr();
        array.n_children = count(parts.pointers.len());
        array.children = parts.pointers.as_mut_ptr();
        array.private_data = on_heap(parts)?.cast();
        array.release = Some(release_array);
        Ok(array)
    }
}

/// The `release` of an exported array.
///
/// # Safety
///
/// `array` must come from [`ArrowArray::new`] and must not be released.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the caller guarantees that `new` made the array, so `private_data` is a boxed `ArrayParts`. It is freed only once,
    // because `release` is cleared before.
    unsafe {
        (*array).release = None;
        drop_box::<ArrayParts>((*array).private_data);
    }
}

/// Why a stream failed before it was read to its end.
#[derive(Debug)]
pub(super) enum StreamError {
    NoMemory,
    /// Any other reason: an error message for the user.
    Other(String),
}

impl From<NoMemory> for StreamError {
    fn from(NoMemory: NoMemory) -> Self {
        Self::NoMemory
    }
}

impl From<&str> for StreamError {
    fn from(reason: &str) -> Self {
        Self::Other(reason.into())
    }
}

/// A function that returns the next batch of a stream, `None` at the end, or an error.
pub(super) type Batches = Box<dyn FnMut() -> Result<Option<Batch>, StreamError> + Send>;

/// The state of an exported stream.
///
/// The interface allows one thread at a time to use a stream, but some consumers call it from several. If a thread calls `get_next` while
/// another one reads, it gets `EBUSY`. The thread must not wait, because it may hold the interpreter's lock, which the reading thread needs
/// when it decodes a line.
struct StreamParts {
    columns: Vec<(String, Type)>,
    /// `None` after the stream has failed.
    batches: Mutex<Option<Batches>>,
    /// The text for `get_last_error`. It is set at most once, so a consumer never holds a pointer to freed text.
    error: OnceLock<Cow<'static, CStr>>,
}

const IN_USE: &CStr = c"another thread is reading this stream: give each thread its own";
const NO_MEMORY: &CStr = c"no memory for a line, or for its rows";

impl ArrowArrayStream {
    /// Exports a stream of batches with these columns.
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

/// Returns the state of an exported stream.
///
/// # Safety
///
/// `stream` must come from [`ArrowArrayStream::of`] and must not be released during `'a`.
unsafe fn parts<'a>(stream: *mut ArrowArrayStream) -> &'a StreamParts {
    // SAFETY: the caller guarantees that `of` made the stream, so `private_data` is a `StreamParts`, alive until `release`.
    unsafe { &*(*stream).private_data.cast::<StreamParts>() }
}

/// The `get_schema` of an exported stream.
///
/// # Safety
///
/// `stream` must come from [`ArrowArrayStream::of`] and must not be released during the call. `out` must be writable.
unsafe extern "C" fn stream_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the caller guarantees that this library made the stream, and that it is not released during the call.
    let columns = unsafe { &parts(stream).columns };
    match catch_unwind(AssertUnwindSafe(|| ArrowSchema::of(columns))) {
        Ok(Ok(schema)) => {
            // SAFETY: the caller guarantees that `out` is writable. `write` does not drop the old contents.
            unsafe { out.write(schema) };
            0
        }
        Ok(Err(NoMemory)) => ENOMEM,
        Err(_) => EIO,
    }
}

/// The `get_next` of an exported stream.
///
/// # Safety
///
/// `stream` must come from [`ArrowArrayStream::of`] and must not be released during the call. `out` must be writable.
unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: the caller guarantees that this library made the stream, and that it is not released during the call.
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
            // SAFETY: the caller guarantees that `out` is writable. `write` does not drop the old contents.
            unsafe { out.write(array) };
            return 0;
        }
        Ok(Err(StreamError::NoMemory)) => (ENOMEM, NO_MEMORY.into()),
        Ok(Err(StreamError::Other(reason))) => {
            let reason = CString::new(reason.replace('\0', "\u{fffd}"));
            (EINVAL, reason.unwrap_or_default().into())
        }
        Err(_) => (EINVAL, c"a bug in the native library of claude_wire".into()),
    };
    *reading = None;
    let _ = parts.error.set(error);
    status
}

/// The `get_last_error` of an exported stream.
///
/// # Safety
///
/// `stream` must come from [`ArrowArrayStream::of`] and must not be released while the text is used.
unsafe extern "C" fn stream_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the caller guarantees that this library made the stream, and that it is not released during the call.
    let parts = unsafe { parts(stream) };
    if let Some(error) = parts.error.get() {
        return error.as_ptr();
    }
    match parts.batches.try_lock() {
        Err(TryLockError::WouldBlock) => IN_USE.as_ptr(),
        _ => ptr::null(),
    }
}

/// The `release` of an exported stream.
///
/// # Safety
///
/// `stream` must come from [`ArrowArrayStream::of`], and the struct itself must be alive during the call.
unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: the caller guarantees that `of` made the stream, so `private_data` is a boxed `StreamParts`. If two threads release the
    // stream at the same time, the atomic swap lets only one of them free it. An optional function is laid out as a pointer.
    unsafe {
        let release = AtomicPtr::<()>::from_ptr((&raw mut (*stream).release).cast());
        if !release.swap(ptr::null_mut(), Ordering::AcqRel).is_null() {
            drop_box::<StreamParts>((*stream).private_data);
        }
    }
}

#[cfg(test)]
mod tests;
