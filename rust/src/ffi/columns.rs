//! Scans of files as columns, and what combines their rows. Both give Arrow streams.

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};
use std::{mem, ptr};

use super::arrow::{ArrowArrayStream, Batches};
use super::forks::watch_forks;
use super::imported::Imported;
use super::{
    bytes, bytes_mut, guard, place, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY, CW_ERROR_SYSTEM, CW_NOTHING,
};
use crate::columns::batch::Type;
use crate::columns::combine::Combine;
use crate::columns::reader::{lock, Decode, Failure, Plan, Reader, Reply};
use crate::columns::report::{Case, Problem, Report};
use crate::columns::source::{Input, Source};
use crate::columns::tables::Table;
use crate::ffi::handle;
use crate::filter::names::Names;
use crate::simd::Level;

/// An option of a scan: the first thing that does not fit ends it.
pub const CW_SCAN_STRICT: u32 = 1;
/// An option of a scan: only lines of the named kinds.
pub const CW_SCAN_ONLY: u32 = 2;
/// An option of a scan that uses no vectors. Tests compare both.
pub const CW_SCAN_PLAIN: u32 = 4;

/// A problem: a lone surrogate became U+FFFD.
pub const CW_PROBLEM_SURROGATE: u64 = 0;
/// A problem: a value does not fit its column, and became null.
pub const CW_PROBLEM_MISFIT: u64 = 1;
/// A problem: a line is no JSON object.
pub const CW_PROBLEM_INVALID: u64 = 2;
/// A problem: a line is above the limit.
pub const CW_PROBLEM_TOO_LONG: u64 = 3;
/// A problem: a line has more content blocks than a row is made of.
pub const CW_PROBLEM_TOO_MANY_BLOCKS: u64 = 4;

/// Has a line decoded that a scan does not understand: `len` bytes at `line`. Returns 1 when it has given the same object to
/// `cw_scan_reply` with this `reply`, 0 if the line is no JSON object, and below 0 if it has failed. May be called by any thread.
pub type CwDecode =
    Option<unsafe extern "C" fn(line: *const u8, len: u64, reply: *mut c_void) -> i32>;

/// What the newest pass of a scan came to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwScanStats {
    /// Bytes that were read.
    pub bytes: u64,
    /// Lines that are not blank.
    pub lines: u64,
    /// Lines of kinds that were not wanted.
    pub skipped: u64,
    /// Rows that were made.
    pub rows: u64,
    /// Lines that the decoder was asked about.
    pub decoded: u64,
    /// Lines that are no JSON object, too long, or have too many blocks.
    pub invalid: u64,
    /// Cases that `cw_scan_case` tells.
    pub cases: u64,
}

/// Something that did not fit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwCase {
    /// `CW_PROBLEM_…`.
    pub problem: u64,
    /// Index of the column; `UINT64_MAX` if it is the line's.
    pub column: u64,
    /// Index of the source.
    pub source: u64,
    /// Bytes of the file before the line.
    pub offset: u64,
    /// Number of the line in the file, from 1; 0 if the file can no longer be read.
    pub line_number: u64,
}

struct Scan {
    plan: Arc<Plan>,
    sources: Arc<Vec<Source>>,
    report: Arc<Mutex<Report>>,
}

static SCANS: handle::Table<Scan> = handle::Table::new();
static COMBINES: handle::Table<Combined> = handle::Table::new();

/// Texts with a line feed between two; none if there are no bytes.
fn texts(bytes: &[u8]) -> Result<Vec<&str>, i32> {
    let text = std::str::from_utf8(bytes).map_err(|_| CW_ERROR_ARGUMENT)?;
    Ok(text.split('\n').filter(|name| !name.is_empty()).collect())
}

/// Writes the names of the columns of a table to the `len` bytes at `out`, with a line feed between two. Returns how many bytes
/// they are. `CW_ERROR_ARGUMENT` if there is no such table, or no room.
///
/// # Safety
///
/// `table` is null with `table_len` 0, or so many bytes may be read there. `out` is null with `len` 0, or `len` bytes may be
/// written there.
#[no_mangle]
pub unsafe extern "C" fn cw_table_columns(
    table: *const u8,
    table_len: u64,
    out: *mut u8,
    len: u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let (table, out) = unsafe { (bytes(table, table_len)?, bytes_mut(out, len)?) };
        let table = std::str::from_utf8(table).ok().and_then(Table::of);
        let specs = table.ok_or(CW_ERROR_ARGUMENT)?.specs().iter();
        let names: Vec<_> = specs.map(|spec| spec.name).collect();
        let names = names.join("\n");
        let out = out.get_mut(..names.len()).ok_or(CW_ERROR_ARGUMENT)?;
        out.copy_from_slice(names.as_bytes());
        i32::try_from(names.len()).map_err(|_| CW_ERROR_ARGUMENT)
    })
}

/// Makes a scan of a table. `columns` are names with a line feed between two, all columns if there is none. With `CW_SCAN_ONLY` among the
/// `options`, `only` are the names of the kinds that are wanted.
///
/// # Safety
///
/// Each of the three texts is null with the length 0, or so many bytes of UTF-8 may be read there. `out` is null or may be written. `decode`
/// keeps to what [`CwDecode`] says, as long as the scan or a stream of it lives.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_new(
    table: *const u8,
    table_len: u64,
    columns: *const u8,
    columns_len: u64,
    only: *const u8,
    only_len: u64,
    options: u32,
    max_line_bytes: u64,
    decode: CwDecode,
    out: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let (table, columns, only, out) = unsafe {
            (
                bytes(table, table_len)?,
                bytes(columns, columns_len)?,
                bytes(only, only_len)?,
                place(out)?,
            )
        };
        let table = std::str::from_utf8(table).ok().and_then(Table::of);
        let table = table.ok_or(CW_ERROR_ARGUMENT)?;
        let specs = table.columns(&texts(columns)?).ok_or(CW_ERROR_ARGUMENT)?;
        let decode = decode.ok_or(CW_ERROR_ARGUMENT)?;
        let ask: Decode = Box::new(move |line| {
            let mut reply: Option<Vec<u8>> = None;
            // SAFETY: the line may be read, and the reply be written, during the call; the rest is the caller's promise.
            let status = unsafe {
                decode(
                    line.as_ptr(),
                    line.len() as u64,
                    ptr::addr_of_mut!(reply).cast(),
                )
            };
            match (status, reply) {
                (1, Some(line)) => Reply::Line(line),
                (0, _) => Reply::Refused,
                _ => Reply::Failed,
            }
        });
        let only = (options & CW_SCAN_ONLY != 0).then_some(texts(only)?);
        let level = match options & CW_SCAN_PLAIN {
            0 => Level::Fast,
            _ => Level::Plain,
        };
        let report = Report::new(specs.len());
        let plan = Plan {
            table,
            specs,
            only: only.map(|names| Names::new(&names)),
            strict: options & CW_SCAN_STRICT != 0,
            max_line: usize::try_from(max_line_bytes).unwrap_or(usize::MAX),
            level,
            decode: ask,
        };
        watch_forks();
        let handle = SCANS.insert(Scan {
            plan: Arc::new(plan),
            sources: Arc::default(),
            report: Arc::new(Mutex::new(report)),
        })?;
        out.write(handle);
        Ok(CW_NOTHING)
    })
}

/// Frees a scan. Its streams live on.
#[no_mangle]
pub extern "C" fn cw_scan_free(handle: u64) -> i32 {
    guard(|| {
        SCANS.remove(handle)?;
        Ok(CW_NOTHING)
    })
}

/// Gives a decoded line: `len` bytes at `line`, without LF. Called by a [`CwDecode`] with the `reply` that it was given.
///
/// # Safety
///
/// `line` is null with `len` 0, or `len` bytes may be read there. `reply` is that of the call that is under way.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_reply(reply: *mut c_void, line: *const u8, len: u64) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let (line, reply) = unsafe { (bytes(line, len)?, reply.cast::<Option<Vec<u8>>>()) };
        // SAFETY: the caller promises it: it is the place that the call under way waits for.
        let reply = unsafe { reply.as_mut() }.ok_or(CW_ERROR_ARGUMENT)?;
        *reply = Some(line.to_vec());
        Ok(CW_NOTHING)
    })
}

/// Adds a source: the lines that begin at `start` or behind it, and before `stop`. With `is_path` the `len` bytes at `data` are the name of a
/// file, otherwise they are copied. `CW_ERROR_ARGUMENT` once the scan has given a stream.
///
/// # Safety
///
/// `data` is null with `len` 0, or `len` bytes may be read there.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_add(
    handle: u64,
    data: *const u8,
    len: u64,
    is_path: u32,
    start: u64,
    stop: u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let data = unsafe { bytes(data, len) }?;
        let (input, name) = if is_path == 0 {
            let mut copy = Vec::new();
            copy.try_reserve_exact(data.len())
                .map_err(|_| CW_ERROR_MEMORY)?;
            copy.extend_from_slice(data);
            (Input::Bytes(copy), None)
        } else {
            let path = path(data)?;
            let name = path.to_string_lossy().into_owned().into_bytes();
            (Input::File(path), Some(name))
        };
        SCANS.with(handle, |scan| {
            let sources = Arc::get_mut(&mut scan.sources).ok_or(CW_ERROR_ARGUMENT)?;
            sources.push(Source {
                input,
                name,
                start,
                stop,
            });
            Ok(CW_NOTHING)
        })?
    })
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere it may fail.
fn path(bytes: &[u8]) -> Result<PathBuf, i32> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::ffi::OsStr::from_bytes(bytes).into())
}

#[cfg(not(unix))]
fn path(bytes: &[u8]) -> Result<PathBuf, i32> {
    let text = std::str::from_utf8(bytes).map_err(|_| CW_ERROR_ARGUMENT)?;
    Ok(text.into())
}

/// Begins a pass over all sources. Writes the address of its `ArrowArrayStream` to `out`; [`cw_stream_free`] frees it.
///
/// # Safety
///
/// `out` is null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_stream(handle: u64, out: *mut *mut c_void) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out) }?;
        let (plan, sources, report) = SCANS.with(handle, |scan| {
            scan.report = Arc::new(Mutex::new(Report::new(scan.plan.specs.len())));
            (
                Arc::clone(&scan.plan),
                Arc::clone(&scan.sources),
                Arc::clone(&scan.report),
            )
        })?;
        let specs = plan.specs.iter();
        let columns = specs.map(|spec| (spec.name.to_owned(), spec.kind));
        let columns = columns.collect();
        let mut reader = Reader::new(Arc::clone(&plan), Arc::clone(&sources), report);
        let batches: Batches = Box::new(move || {
            let next = reader.next_batch();
            next.map_err(|failure| message(&failure, &plan, &sources))
        });
        out.write(give(ArrowArrayStream::of(columns, batches)));
        Ok(CW_NOTHING)
    })
}

/// Moves a stream to memory of its own.
fn give(stream: ArrowArrayStream) -> *mut c_void {
    Box::into_raw(Box::new(stream)).cast()
}

/// Releases a stream, unless a consumer has, and frees its memory.
///
/// # Safety
///
/// `stream` is null, or from [`cw_scan_stream`] or [`cw_combine_stream`], and not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn cw_stream_free(stream: *mut c_void) -> i32 {
    guard(|| {
        if !stream.is_null() {
            // SAFETY: the caller promises it.
            let mut stream = unsafe { Box::from_raw(stream.cast::<ArrowArrayStream>()) };
            if let Some(release) = stream.release {
                // SAFETY: it is not released.
                unsafe { release(&raw mut *stream) };
            }
        }
        Ok(CW_NOTHING)
    })
}

/// A function that gives the pointer of a capsule: `PyCapsule_GetPointer` of Python.
type PointerOf = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
static POINTER_OF: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Says how [`cw_capsule_free`] gets the pointer of a capsule: the address of `void *(*)(void *capsule, const char *name)`.
///
/// # Safety
///
/// It is such a function, and lives as long as the process.
#[no_mangle]
pub unsafe extern "C" fn cw_capsule_pointer_of(pointer_of: *mut c_void) -> i32 {
    POINTER_OF.store(pointer_of, Ordering::Release);
    CW_NOTHING
}

/// Frees the stream in a capsule that is named `arrow_array_stream`: the capsule's destructor. It needs nothing of an interpreter that may be ending.
///
/// # Safety
///
/// The capsule is of that name, and has a stream for [`cw_stream_free`].
#[no_mangle]
pub unsafe extern "C" fn cw_capsule_free(capsule: *mut c_void) {
    let pointer_of = POINTER_OF.load(Ordering::Acquire);
    if !pointer_of.is_null() {
        // SAFETY: whoever set it promised that it is such a function, and the caller the rest.
        unsafe {
            let pointer_of = mem::transmute::<*mut c_void, PointerOf>(pointer_of);
            cw_stream_free(pointer_of(capsule, c"arrow_array_stream".as_ptr()));
        }
    }
}

/// What a consumer is told of a failure.
fn message(failure: &Failure, plan: &Plan, sources: &[Source]) -> String {
    let name = |source: usize| {
        let name = sources.get(source).and_then(|it| it.name.as_deref());
        name.map_or("bytes".into(), String::from_utf8_lossy)
    };
    match failure {
        Failure::Io(error, source) => format!("{}: {error}", name(*source)),
        Failure::Decoder => "the decoder of claude_wire failed; it has said why".into(),
        Failure::Strict(case) => {
            let what = match case.problem {
                Problem::Surrogate => "half of a surrogate pair",
                Problem::Misfit => "a value that does not fit",
                Problem::Invalid => "not a JSON object",
                Problem::TooLong => "longer than max_line_bytes",
                Problem::TooManyBlocks => "too many content blocks",
            };
            let column = case.column.and_then(|column| plan.specs.get(column));
            let column = column.map_or(String::new(), |spec| format!(", column {}", spec.name));
            let line = line_number(sources, case);
            format!("{}, line {line}{column}: {what}", name(case.source))
        }
    }
}

fn line_number(sources: &[Source], case: &Case) -> u64 {
    let source = sources.get(case.source);
    let number = source.and_then(|source| source.line_number(case.offset).ok());
    number.unwrap_or(0)
}

/// Tells what the newest pass came to so far.
///
/// # Safety
///
/// `out` is null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_stats(handle: u64, out: *mut CwScanStats) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out) }?;
        let report = SCANS.with(handle, |scan| Arc::clone(&scan.report))?;
        let report = lock(&report);
        out.write(CwScanStats {
            bytes: report.bytes,
            lines: report.lines,
            skipped: report.skipped,
            rows: report.rows,
            decoded: report.decoded,
            invalid: report.invalid,
            cases: report.cases.len() as u64,
        });
        Ok(CW_NOTHING)
    })
}

/// Writes of each of the `columns` columns of a scan how many lone surrogates became U+FFFD, and then of each how many values did not fit.
/// `CW_ERROR_ARGUMENT` if it has another number of columns.
///
/// # Safety
///
/// `out` is null, or twice `columns` numbers may be written there.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_counts(handle: u64, out: *mut u64, columns: u64) -> i32 {
    guard(|| {
        let report = SCANS.with(handle, |scan| Arc::clone(&scan.report))?;
        let report = lock(&report);
        if out.is_null() || columns != report.misfits.len() as u64 {
            return Err(CW_ERROR_ARGUMENT);
        }
        let counts = report.surrogates.iter().chain(&report.misfits);
        for (index, &count) in counts.enumerate() {
            // SAFETY: not null, and the caller promises that so many may be written.
            unsafe { out.add(index).write(count) };
        }
        Ok(CW_NOTHING)
    })
}

/// Tells a case, by its index.
///
/// # Safety
///
/// `out` is null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_case(handle: u64, index: u64, out: *mut CwCase) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out) }?;
        let (report, sources) = SCANS.with(handle, |scan| {
            (Arc::clone(&scan.report), Arc::clone(&scan.sources))
        })?;
        let index = usize::try_from(index).map_err(|_| CW_ERROR_ARGUMENT)?;
        let case = lock(&report).cases.get(index).copied();
        let case = case.ok_or(CW_ERROR_ARGUMENT)?;
        out.write(CwCase {
            problem: match case.problem {
                Problem::Surrogate => CW_PROBLEM_SURROGATE,
                Problem::Misfit => CW_PROBLEM_MISFIT,
                Problem::Invalid => CW_PROBLEM_INVALID,
                Problem::TooLong => CW_PROBLEM_TOO_LONG,
                Problem::TooManyBlocks => CW_PROBLEM_TOO_MANY_BLOCKS,
            },
            column: case.column.map_or(u64::MAX, |column| column as u64),
            source: case.source as u64,
            offset: case.offset,
            line_number: line_number(&sources, &case),
        });
        Ok(CW_NOTHING)
    })
}

/// What tables are combined in.
struct Combined {
    columns: Vec<(String, Type)>,
    /// `None` until the first table has come.
    rows: Option<Arc<Combine>>,
    error: String,
}

/// Makes what rows of the table `usage` are combined in.
///
/// # Safety
///
/// `out` is null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_combine_new(out: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out) }?;
        watch_forks();
        let handle = COMBINES.insert(Combined {
            columns: Vec::new(),
            rows: None,
            error: String::new(),
        })?;
        out.write(handle);
        Ok(CW_NOTHING)
    })
}

/// Frees it. Its streams live on.
#[no_mangle]
pub extern "C" fn cw_combine_free(handle: u64) -> i32 {
    guard(|| {
        COMBINES.remove(handle)?;
        Ok(CW_NOTHING)
    })
}

/// Takes the `ArrowArrayStream` at `stream`, reads it to its end and releases it. If it cannot be combined, `CW_ERROR_SYSTEM`, and
/// [`cw_combine_error`] tells why.
///
/// # Safety
///
/// `stream` is null or a stream of the C stream interface, which keeps to it, and which nobody else uses during the call.
#[no_mangle]
pub unsafe extern "C" fn cw_combine_add(handle: u64, stream: *mut c_void) -> i32 {
    guard(|| {
        let stream = stream.cast::<ArrowArrayStream>();
        if stream.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        COMBINES.with(handle, |combined| {
            // SAFETY: not null, and the caller promises it.
            let added = unsafe { Imported::new(stream) }
                .and_then(|mut imported| combined.add(&mut imported));
            match added {
                Ok(()) => Ok(CW_NOTHING),
                Err(error) => {
                    combined.error = error;
                    Err(CW_ERROR_SYSTEM)
                }
            }
        })?
    })
}

impl Combined {
    fn add(&mut self, imported: &mut Imported) -> Result<(), String> {
        let columns = imported.columns();
        if self.rows.is_none() {
            let rows = Combine::new(&columns);
            let rows = rows.ok_or("it lacks the column message_id or request_id")?;
            self.rows = Some(Arc::new(rows));
            self.columns = columns;
        } else if self.columns != columns {
            return Err("its columns are not those of the table before".into());
        }
        let rows = self.rows.as_mut().and_then(Arc::get_mut);
        imported.add_to(rows.ok_or("a stream of the rows was begun")?)
    }
}

/// Writes why the last [`cw_combine_add`] failed to the `len` bytes at `out`, as far as there is room. Returns how many bytes were written.
///
/// # Safety
///
/// `out` is null with `len` 0, or `len` bytes may be written there.
#[no_mangle]
pub unsafe extern "C" fn cw_combine_error(handle: u64, out: *mut u8, len: u64) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { bytes_mut(out, len) }?;
        let error = COMBINES.with(handle, |combined| combined.error.clone())?;
        let length = error.len().min(out.len());
        out[..length].copy_from_slice(&error.as_bytes()[..length]);
        i32::try_from(length).map_err(|_| CW_ERROR_ARGUMENT)
    })
}

/// Writes the address of an `ArrowArrayStream` of the rows that count to `out`; [`cw_stream_free`] frees it. `CW_ERROR_ARGUMENT` if nothing was added.
///
/// # Safety
///
/// `out` is null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_combine_stream(handle: u64, out: *mut *mut c_void) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out) }?;
        let (columns, rows) = COMBINES.with(handle, |combined| {
            (combined.columns.clone(), combined.rows.clone())
        })?;
        let rows = rows.ok_or(CW_ERROR_ARGUMENT)?;
        let mut index = 0;
        let batches: Batches = Box::new(move || {
            while let Some(batch) = rows.batch(index) {
                index += 1;
                if batch.rows > 0 {
                    return Ok(Some(batch));
                }
            }
            Ok(None)
        });
        out.write(give(ArrowArrayStream::of(columns, batches)));
        Ok(CW_NOTHING)
    })
}

#[cfg(test)]
mod tests;
