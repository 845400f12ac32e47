//! The C functions that read transcripts into Arrow columns (`cw_scan_…`), and that remove repeated rows from `usage` tables
//! (`cw_combine_…`).
//!
//! A caller makes a scan, adds sources, and asks for a stream, which reads the sources as the consumer pulls batches:
//!
//! ```text
//! cw_scan_new     spec, options, decode  → handle
//! cw_scan_add     a file or bytes, once per source
//! cw_scan_stream                         → ArrowArrayStream, given to pyarrow or polars in a capsule
//! cw_scan_report  what the pass has counted so far, and the lines that had problems
//! ```
//!
//! A combination takes such streams as input: `cw_combine_new`, then `cw_combine_add` for each table. `cw_combine_stream` then returns one
//! row per answer.
//!
//! `cw_scan_usage` reads the sources itself and returns the usage of answers as small rows of numbers, which the caller can store.
//! `cw_sums_new` and `cw_sums_add` add up such rows, each answer once.
//!
//! A stream stays valid after its handle is freed, because both hold counted references to the plan and the sources.

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};
use std::{mem, ptr, slice};

use super::arrow::{ArrowArrayStream, Batches, StreamError, EINVAL, EIO};
use super::forks::watch_forks;
use super::imported::{Imported, Table};
use super::{
    bytes, bytes_mut, guard, length, level, place, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY,
    CW_ERROR_SYSTEM, CW_NOTHING,
};
use crate::columns::batch::Type;
use crate::columns::combine::Combine;
use crate::columns::reader::{lock, Case, Failure, Plan, Problem, Reader, Reply, Report};
use crate::columns::source::{Input, Source};
use crate::columns::spec::Spec;
use crate::columns::usage_rows::{Grouping, UsageRows, UsageSums, ROW_BYTES, WORDS};
use crate::fallible::{copied, reserve, with_room};
use crate::ffi::handle;
use crate::filter::names::Names;

/// An option of a scan: the first problem (an invalid line, a value of the wrong type) ends the stream with an error.
pub const CW_SCAN_STRICT: u32 = 1;
/// An option of a scan: read only lines of the named kinds.
pub const CW_SCAN_ONLY: u32 = 2;
/// An option of a scan: use no vector instructions. Tests compare the results with those of the vector code.
pub const CW_SCAN_PLAIN: u32 = 4;

/// The type of the caller's function that decodes a line if the scan cannot read it by structure alone. The line is the `len` bytes at
/// `line`.
///
/// The function encodes the object again and passes the new line to `cw_scan_reply`, together with `reply`. It then returns 1. It returns 0
/// if the line is not a JSON object, `CW_ERROR_MEMORY` if memory runs out, and another negative number if it fails. Any thread may call it.
pub type CwDecode =
    Option<unsafe extern "C" fn(line: *const u8, len: u64, reply: *mut c_void) -> i32>;

struct Scan {
    plan: Arc<Plan>,
    sources: Arc<Vec<Source>>,
    report: Arc<Mutex<Report>>,
    /// The rows that the last `cw_scan_usage` read. Its caller has their addresses.
    usage: Option<UsageRows>,
}

static SCANS: handle::Table<Scan> = handle::Table::new();
static COMBINES: handle::Table<Combined> = handle::Table::new();
static SUMS: handle::Table<UsageSums> = handle::Table::new();

/// Makes a scan and writes its handle to `out`.
///
/// `spec` describes the columns, in the format of [`crate::columns::spec`]. `options` is a sum of `CW_SCAN_…`. With
/// `CW_SCAN_ONLY`, `only` lists the names of the wanted kinds, one per line. Returns `CW_ERROR_ARGUMENT` if `spec` or `only`
/// is invalid.
///
/// # Safety
///
/// `spec` must be null with length 0, or point to `spec_len` readable bytes; the same holds for `only` and `only_len`. `out` must be null
/// or writable. `decode` must behave as [`CwDecode`] describes as long as the scan or one of its streams is alive.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_new(
    spec: *const u8,
    spec_len: u64,
    only: *const u8,
    only_len: u64,
    options: u32,
    max_line_bytes: u64,
    decode: CwDecode,
    out: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees the bytes at `spec` and `only`, and that `out` is null or writable.
        let (spec, only, out) =
            unsafe { (bytes(spec, spec_len)?, bytes(only, only_len)?, place(out)?) };
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| CW_ERROR_ARGUMENT);
        let spec = Spec::new(text(spec)?).ok_or(CW_ERROR_ARGUMENT)?;
        let names: Vec<_> = text(only)?.lines().collect();
        let decode = decode.ok_or(CW_ERROR_ARGUMENT)?;
        let ask = move |line: &[u8]| {
            let mut reply: Option<Vec<u8>> = None;
            let to = ptr::from_mut(&mut reply).cast();
            // SAFETY: `line` and `reply` are borrowed during the call, so it may read `line` and write `reply`. The caller of `cw_scan_new`
            // guarantees that `decode` behaves as `CwDecode` describes.
            let status = unsafe { decode(line.as_ptr(), line.len() as u64, to) };
            match (status, reply) {
                (1, Some(line)) => Reply::Line(line),
                (0, _) => Reply::Refused,
                (CW_ERROR_MEMORY, _) => Reply::NoMemory,
                _ => Reply::Failed,
            }
        };
        let plan = Plan {
            spec,
            only: (options & CW_SCAN_ONLY != 0).then(|| Names::new(&names)),
            strict: options & CW_SCAN_STRICT != 0,
            max_line: usize::try_from(max_line_bytes).unwrap_or(usize::MAX),
            level: level(options & CW_SCAN_PLAIN != 0),
            decode: Box::new(ask),
        };
        watch_forks();
        let handle = SCANS.insert(Scan {
            plan: Arc::new(plan),
            sources: Arc::default(),
            report: Arc::default(),
            usage: None,
        })?;
        out.write(handle);
        Ok(CW_NOTHING)
    })
}

/// Frees a scan. Its streams remain valid.
#[no_mangle]
pub extern "C" fn cw_scan_free(handle: u64) -> i32 {
    guard(|| {
        SCANS.remove(handle)?;
        Ok(CW_NOTHING)
    })
}

/// Stores the line that a [`CwDecode`] function has encoded: the `len` bytes at `line`, without an LF. Only a [`CwDecode`] function calls
/// this, with the `reply` that it received.
///
/// # Safety
///
/// `line` must be null with `len` 0, or point to `len` readable bytes. `reply` must be the argument of a [`CwDecode`] call that has not
/// returned yet.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_reply(reply: *mut c_void, line: *const u8, len: u64) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees `len` readable bytes at `line`.
        let (line, reply) = unsafe { (bytes(line, len)?, reply.cast::<Option<Vec<u8>>>()) };
        // SAFETY: the caller guarantees that the `CwDecode` call has not returned, so `reply` still points to the local variable
        // of the scan that started the call. Nothing else uses this variable during the call.
        let reply = unsafe { reply.as_mut() }.ok_or(CW_ERROR_ARGUMENT)?;
        *reply = Some(copied(line)?);
        Ok(CW_NOTHING)
    })
}

/// Adds a source to a scan. The scan reads only the lines that begin at byte `start` or later, and before byte `stop`.
///
/// If `is_path` is not 0, the `len` bytes at `data` are the name of a file. Otherwise they are the source itself, and this function copies
/// them. Returns `CW_ERROR_ARGUMENT` while a stream of the scan is alive.
///
/// # Safety
///
/// `data` must be null with `len` 0, or point to `len` readable bytes.
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
        // SAFETY: the caller guarantees `len` readable bytes at `data`.
        let data = unsafe { bytes(data, len) }?;
        let (input, name) = if is_path == 0 {
            (Input::Bytes(Arc::new(copied(data)?)), None)
        } else {
            let path = path(data)?;
            let name = path.to_string_lossy().into_owned().into_bytes();
            (Input::File(path), Some(name))
        };
        SCANS.with(handle, |scan| {
            let sources = Arc::get_mut(&mut scan.sources).ok_or(CW_ERROR_ARGUMENT)?;
            reserve(sources, 1)?;
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
#[allow(clippy::unnecessary_wraps)] // The version for other systems can fail.
fn path(bytes: &[u8]) -> Result<PathBuf, i32> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::ffi::OsStr::from_bytes(bytes).into())
}

#[cfg(not(unix))]
fn path(bytes: &[u8]) -> Result<PathBuf, i32> {
    let text = std::str::from_utf8(bytes).map_err(|_| CW_ERROR_ARGUMENT)?;
    Ok(text.into())
}

/// Begins a pass over all sources. Writes the address of a new `ArrowArrayStream` to `out`; [`cw_stream_free`] frees it.
///
/// # Safety
///
/// `out` must be null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_stream(handle: u64, out: *mut *mut c_void) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        let (plan, sources, mut reader) = begin(handle)?;
        let columns = plan.spec.columns.iter();
        let columns = columns.map(|column| (column.name.clone(), column.kind));
        let columns = columns.collect();
        let batches: Batches = Box::new(move || {
            let next = reader.next_batch();
            next.map_err(|failure| match failure {
                Failure::NoMemory => StreamError::NoMemory,
                failure => StreamError::Other(message(&failure, &plan, &sources)),
            })
        });
        out.write(give(ArrowArrayStream::of(columns, batches)));
        Ok(CW_NOTHING)
    })
}

/// A pass over the sources of a scan.
type Pass = (Arc<Plan>, Arc<Vec<Source>>, Reader);

/// Begins a pass, whose reader counts in a new report.
fn begin(handle: u64) -> Result<Pass, i32> {
    SCANS.with(handle, |scan| {
        let report = Report::new(scan.plan.spec.columns.len())?;
        let report = Arc::new(Mutex::new(report));
        let (plan, sources) = (Arc::clone(&scan.plan), Arc::clone(&scan.sources));
        scan.report = Arc::clone(&report);
        let reader = Reader::new(Arc::clone(&plan), Arc::clone(&sources), report)?;
        Ok((plan, sources, reader))
    })?
}

/// Reads all sources, and keeps their usage in the scan. Writes seven pairs of an address and a length in bytes to `out`: the public fields
/// of [`UsageRows`], in the order of their declaration. The bytes are valid until the scan is freed or this function is called again.
///
/// Returns `CW_ERROR_ARGUMENT` if the scan lacks a column that [`UsageRows`] needs, and `CW_ERROR_SYSTEM` if a source cannot be read or the
/// decoder fails.
///
/// # Safety
///
/// `out` must be null or have room for 14 numbers.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_usage(handle: u64, out: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or has room for 14 numbers.
        let out = unsafe { place(out.cast::<[u64; 14]>()) }?;
        let (plan, _, mut reader) = begin(handle)?;
        let mut usage = UsageRows::new(&plan.spec).ok_or(CW_ERROR_ARGUMENT)?;
        while let Some(batch) = reader.next_batch().map_err(status)? {
            usage.add(&batch)?;
        }
        SCANS.with(handle, |scan| {
            let usage = scan.usage.insert(usage);
            let parts = [
                &usage.originals,
                &usage.copies,
                &usage.names,
                &usage.session,
                &usage.cwd,
                &usage.cost,
                &usage.cost_session,
            ];
            let mut pairs = [0; 14];
            for (pair, part) in pairs.chunks_exact_mut(2).zip(parts) {
                pair.copy_from_slice(&[part.as_ptr() as u64, part.len() as u64]);
            }
            out.write(pairs);
            Ok(CW_NOTHING)
        })?
    })
}

/// Returns the status for a pass that failed.
fn status(failure: Failure) -> i32 {
    match failure {
        Failure::NoMemory => CW_ERROR_MEMORY,
        Failure::Io(error, _) => CW_ERROR_SYSTEM - error.raw_os_error().unwrap_or(EINVAL),
        Failure::Decoder | Failure::Strict(_) => CW_ERROR_SYSTEM - EIO,
    }
}

/// Makes an empty [`UsageSums`], and writes its handle to `out`.
///
/// # Safety
///
/// `out` must be null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_sums_new(out: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        watch_forks();
        out.write(SUMS.insert(UsageSums::default())?);
        Ok(CW_NOTHING)
    })
}

/// Frees a [`UsageSums`].
#[no_mangle]
pub extern "C" fn cw_sums_free(handle: u64) -> i32 {
    guard(|| {
        SUMS.remove(handle)?;
        Ok(CW_NOTHING)
    })
}

/// Adds up the `len` bytes of usage rows at `rows`, without answers that were added before. Writes the sums to `out`, which needs as much
/// room as the rows, and their number to `count`. [`UsageSums::add`] describes a sum.
///
/// Returns `CW_ERROR_ARGUMENT` if `len` is not a multiple of a row's size.
///
/// # Safety
///
/// `rows` must be null with `len` 0, or point to `len` readable bytes. `steps` must be null with `steps_len` 0, or point to `steps_len`
/// numbers, aligned to 8. `out` must be null with `len` 0, or point to `len` writable bytes, aligned to 8. `count` must be null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_sums_add(
    handle: u64,
    rows: *const u8,
    len: u64,
    period: i64,
    steps: *const i64,
    steps_len: u64,
    out: *mut i64,
    count: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees `len` readable bytes at `rows`, and that `count` is null or writable.
        let (rows, count) = unsafe { (bytes(rows, len)?, place(count)?) };
        if rows.len() % ROW_BYTES != 0 || out.is_null() && len > 0 {
            return Err(CW_ERROR_ARGUMENT);
        }
        let steps = if steps_len == 0 {
            &[]
        } else {
            let steps_len = length(steps.cast(), steps_len.saturating_mul(8))? / 8;
            // SAFETY: `length` checked that `steps` is not null. The caller guarantees `steps_len` numbers that nobody writes during the call.
            unsafe { slice::from_raw_parts(steps, steps_len) }
        };
        let grouping = Grouping { period, steps };
        let sums = SUMS.with(handle, |sums| sums.add(rows, &grouping))??;
        if !sums.is_empty() {
            // SAFETY: each sum is the sum of at least one row and has a row's size, so the sums have at most `len` bytes. The caller
            // guarantees that `out` has room for them; it is not null, because there are rows.
            unsafe { ptr::copy_nonoverlapping(sums.as_ptr().cast(), out, sums.len() * WORDS) };
        }
        count.write(sums.len() as u64);
        Ok(CW_NOTHING)
    })
}

/// Moves a stream to the heap and returns its address, which [`cw_stream_free`] frees.
fn give(stream: ArrowArrayStream) -> *mut c_void {
    Box::into_raw(Box::new(stream)).cast()
}

/// Releases a stream unless its consumer has already done so, and frees its struct.
///
/// # Safety
///
/// `stream` must be null or an address that [`cw_scan_stream`] or [`cw_combine_stream`] wrote. The caller must not use it again.
#[no_mangle]
pub unsafe extern "C" fn cw_stream_free(stream: *mut c_void) -> i32 {
    guard(|| {
        if !stream.is_null() {
            // SAFETY: the caller guarantees that the address is from `give`, and that this is its last use.
            drop(unsafe { Box::from_raw(stream.cast::<ArrowArrayStream>()) });
        }
        Ok(CW_NOTHING)
    })
}

/// The type of Python's `PyCapsule_GetPointer`, which returns the pointer that a capsule holds.
type PointerOf = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
static POINTER_OF: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Sets the function that [`cw_capsule_free`] calls to get a capsule's pointer. Pass the address of `PyCapsule_GetPointer`.
///
/// # Safety
///
/// `pointer_of` must be the address of a `void *(*)(void *capsule, const char *name)` that stays valid until the process exits.
#[no_mangle]
pub unsafe extern "C" fn cw_capsule_pointer_of(pointer_of: *mut c_void) -> i32 {
    POINTER_OF.store(pointer_of, Ordering::Release);
    CW_NOTHING
}

/// Frees the stream in a capsule. Python calls this as the capsule's destructor. It is native because a destructor written in Python cannot
/// run while the interpreter shuts down.
///
/// # Safety
///
/// `capsule` must be a Python capsule with the name `arrow_array_stream`, and its pointer must be valid for [`cw_stream_free`].
#[no_mangle]
pub unsafe extern "C" fn cw_capsule_free(capsule: *mut c_void) {
    let pointer_of = POINTER_OF.load(Ordering::Acquire);
    if !pointer_of.is_null() {
        // SAFETY: the caller of `cw_capsule_pointer_of` guaranteed the type of the function. The caller of this function
        // guarantees the capsule's name and its stream.
        unsafe {
            let pointer_of = mem::transmute::<*mut c_void, PointerOf>(pointer_of);
            cw_stream_free(pointer_of(capsule, c"arrow_array_stream".as_ptr()));
        }
    }
}

/// Returns the error text that a consumer of the stream sees, such as `log.jsonl, line 7, column cost: a value that does not
/// fit`.
fn message(failure: &Failure, plan: &Plan, sources: &[Source]) -> String {
    let name = |source: usize| {
        let name = sources.get(source).and_then(|it| it.name.as_deref());
        name.map_or("bytes".into(), String::from_utf8_lossy)
    };
    match failure {
        Failure::Io(error, source) => format!("{}: {error}", name(*source)),
        Failure::NoMemory => "no memory".into(),
        Failure::Decoder => "the decoder of claude_wire failed; it has said why".into(),
        Failure::Strict(case) => {
            let what = match case.problem {
                Problem::Surrogate => "half of a surrogate pair",
                Problem::Misfit => "a value that does not fit",
                Problem::Invalid => "not a JSON object",
                Problem::TooLong => "longer than max_line_bytes",
                Problem::TooManyBlocks => "too many content blocks",
            };
            let column = case.column.and_then(|index| plan.spec.columns.get(index));
            let column = column.map_or(String::new(), |it| format!(", column {}", it.name));
            let line = LineNumbers::new(sources).of(case);
            format!("{}, line {line}{column}: {what}", name(case.source))
        }
    }
}

/// Finds the line numbers of cases by counting line feeds. It continues from the previous case if the previous case is earlier in the same
/// source, and otherwise starts at the beginning of the source.
struct LineNumbers<'a> {
    sources: &'a [Source],
    /// The source of the previous case.
    source: usize,
    /// The byte offset of the previous case, and its line number.
    known: (u64, u64),
}

impl<'a> LineNumbers<'a> {
    fn new(sources: &'a [Source]) -> Self {
        Self {
            sources,
            source: 0,
            known: (0, 1),
        }
    }

    /// Returns the 1-based line number of a case; 0 if the source can no longer be read.
    fn of(&mut self, case: &Case) -> u64 {
        if case.source != self.source || case.offset < self.known.0 {
            (self.source, self.known) = (case.source, (0, 1));
        }
        let source = self.sources.get(case.source);
        match source.map(|source| source.line_number(case.offset, self.known)) {
            Some(Ok(number)) => {
                self.known = (case.offset, number);
                number
            }
            _ => 0,
        }
    }
}

/// Writes the newest pass's counts so far to `out`, as a list of numbers. Returns how many it wrote:
///
/// ```text
/// 6            bytes, lines, skipped lines, rows, lines decoded by CwDecode, lines without a row
/// 1 per column strings with a lone surrogate
/// 1 per column values that did not fit the column
/// 5 per case   problem, column, source, offset, line number
/// ```
///
/// A case is a line with a problem. The problem is 0 for a lone surrogate, 1 for a value that does not fit, 2 for a line that is not a JSON
/// object, 3 for a line that is too long, and 4 for too many content blocks. The column is an index, or `UINT64_MAX` if the problem
/// concerns the whole line. The source is an index. The offset is the number of bytes before the line in its source. The line number is 0
/// if the source can no longer be read.
///
/// Returns `CW_ERROR_ARGUMENT` if there are more numbers than `len`.
///
/// # Safety
///
/// `out` must be null or have room for `len` numbers.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_report(handle: u64, out: *mut u64, len: u64) -> i32 {
    guard(|| {
        let (report, sources) = SCANS.with(handle, |scan| {
            (Arc::clone(&scan.report), Arc::clone(&scan.sources))
        })?;
        let report = lock(&report);
        let numbers = 6 + 2 * report.surrogates.len() + 5 * report.cases.len();
        let (mut list, cases) = (with_room(numbers)?, copied(&report.cases)?);
        list.extend([report.bytes, report.lines, report.skipped]);
        list.extend([report.rows, report.decoded, report.invalid]);
        list.extend(report.surrogates.iter().chain(&report.misfits));
        drop(report); // Counting lines reads files, so let the scan continue meanwhile.
        let mut numbers = LineNumbers::new(&sources);
        for case in &cases {
            let column = case.column.map_or(u64::MAX, |column| column as u64);
            let number = numbers.of(case);
            list.extend([case.problem as u64, column, case.source as u64]);
            list.extend([case.offset, number]);
        }
        if out.is_null() || len < list.len() as u64 {
            return Err(CW_ERROR_ARGUMENT);
        }
        // SAFETY: `out` is not null, and the caller guarantees room for `len` numbers. The list has at most `len` numbers.
        unsafe { ptr::copy_nonoverlapping(list.as_ptr(), out, list.len()) };
        i32::try_from(list.len()).map_err(|_| CW_ERROR_ARGUMENT)
    })
}

/// The columns and the rows of the combined tables. `None` until the first table is added.
type Combined = Option<(Vec<(String, Type)>, Arc<Combine<Table>>)>;

/// Makes an empty combination of `usage` tables, and writes its handle to `out`.
///
/// # Safety
///
/// `out` must be null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_combine_new(out: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        watch_forks();
        out.write(COMBINES.insert(None)?);
        Ok(CW_NOTHING)
    })
}

/// Frees a combination. Its streams remain valid.
#[no_mangle]
pub extern "C" fn cw_combine_free(handle: u64) -> i32 {
    guard(|| {
        COMBINES.remove(handle)?;
        Ok(CW_NOTHING)
    })
}

/// Adds a table: takes over the `ArrowArrayStream` at `stream`, reads all of it and releases it.
///
/// Returns `CW_ERROR_MEMORY` if memory runs out. If the table cannot be combined, returns `CW_ERROR_SYSTEM` and writes the reason,
/// truncated if necessary, to the `len` bytes at `error`.
///
/// # Safety
///
/// `stream` must be null or point to an `ArrowArrayStream` that obeys the C stream interface and that no other thread uses during the call.
/// `error` must be null with `len` 0, or point to `len` writable bytes.
#[no_mangle]
pub unsafe extern "C" fn cw_combine_add(
    handle: u64,
    stream: *mut c_void,
    error: *mut u8,
    len: u64,
) -> i32 {
    guard(|| {
        let stream = stream.cast::<ArrowArrayStream>();
        // SAFETY: the caller guarantees `len` writable bytes at `error`.
        let out = unsafe { bytes_mut(error, len) }?;
        if stream.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        COMBINES.with(handle, |combined| {
            // SAFETY: `stream` is not null; the caller guarantees that the stream obeys the interface and is used only here.
            let added = unsafe { Imported::new(stream) }.and_then(|it| add(combined, it));
            let Err(error) = added else {
                return Ok(CW_NOTHING);
            };
            let StreamError::Other(reason) = error else {
                return Err(CW_ERROR_MEMORY);
            };
            for (to, from) in out.iter_mut().zip(reason.bytes()) {
                *to = from;
            }
            Err(CW_ERROR_SYSTEM)
        })?
    })
}

fn add(combined: &mut Combined, mut imported: Imported) -> Result<(), StreamError> {
    if combined.is_none() {
        let rows = Combine::new(&imported.columns);
        let rows = rows.ok_or("it lacks the column message_id or request_id")?;
        *combined = Some((imported.columns.clone(), Arc::new(rows)));
    }
    let Some((columns, rows)) = combined else {
        return Ok(());
    };
    if *columns != imported.columns {
        return Err("its columns are not those of the first table".into());
    }
    let rows = Arc::get_mut(rows).ok_or("a stream of the combined rows is in use")?;
    while let Some(table) = imported.next()? {
        rows.add(table)?;
    }
    Ok(())
}

/// Writes the address of a new `ArrowArrayStream` to `out`. It has the rows of all tables that were added, but only one row per answer, and
/// [`cw_stream_free`] frees it. Returns `CW_ERROR_ARGUMENT` if no table was added.
///
/// # Safety
///
/// `out` must be null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_combine_stream(handle: u64, out: *mut *mut c_void) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        let (columns, rows) = COMBINES
            .with(handle, |combined| combined.clone())?
            .ok_or(CW_ERROR_ARGUMENT)?;
        let mut next = 0;
        let batches: Batches = Box::new(move || Ok(rows.batch(&mut next)?));
        out.write(give(ArrowArrayStream::of(columns, batches)));
        Ok(CW_NOTHING)
    })
}

#[cfg(test)]
mod tests;
