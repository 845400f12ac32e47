//! Scans of files as columns, and what combines their rows. Both give Arrow streams.

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};
use std::{mem, ptr};

use super::arrow::{ArrowArrayStream, Batches, Ended};
use super::forks::watch_forks;
use super::imported::{Imported, Table};
use super::{
    bytes, bytes_mut, guard, place, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY, CW_ERROR_SYSTEM, CW_NOTHING,
};
use crate::columns::batch::{append, reserve, with_room, NoMemory, Type};
use crate::columns::combine::Combine;
use crate::columns::reader::{lock, Case, Failure, Plan, Problem, Reader, Reply, Report};
use crate::columns::source::{Input, Source};
use crate::columns::spec::Spec;
use crate::ffi::handle;
use crate::filter::names::Names;
use crate::simd::Level;

/// An option of a scan: the first thing that does not fit ends it.
pub const CW_SCAN_STRICT: u32 = 1;
/// An option of a scan: only lines of the named kinds.
pub const CW_SCAN_ONLY: u32 = 2;
/// An option of a scan that uses no vectors. Tests compare both.
pub const CW_SCAN_PLAIN: u32 = 4;

/// Has a line decoded that a scan does not understand: `len` bytes at `line`. Returns 1 when it has given the same object to
/// `cw_scan_reply` with this `reply`, 0 if the line is no JSON object, `CW_ERROR_MEMORY` if there is no memory for it, and another number below
/// 0 if it has failed. May be called by any thread.
pub type CwDecode =
    Option<unsafe extern "C" fn(line: *const u8, len: u64, reply: *mut c_void) -> i32>;

struct Scan {
    plan: Arc<Plan>,
    sources: Arc<Vec<Source>>,
    report: Arc<Mutex<Report>>,
}

static SCANS: handle::Table<Scan> = handle::Table::new();
static COMBINES: handle::Table<Combined> = handle::Table::new();

/// Makes a scan of the table that `spec` describes, as [`crate::columns::spec`] says. With `CW_SCAN_ONLY` among the `options`, `only` are the names of
/// the kinds that are wanted, a line each.
///
/// # Safety
///
/// Both texts are null with the length 0, or so many bytes may be read there. `out` is null or may be written. `decode`
/// keeps to what [`CwDecode`] says, as long as the scan or a stream of it lives.
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
        // SAFETY: the caller promises it.
        let (spec, only, out) =
            unsafe { (bytes(spec, spec_len)?, bytes(only, only_len)?, place(out)?) };
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| CW_ERROR_ARGUMENT);
        let spec = Spec::new(text(spec)?).ok_or(CW_ERROR_ARGUMENT)?;
        let names: Vec<_> = text(only)?.lines().collect();
        let decode = decode.ok_or(CW_ERROR_ARGUMENT)?;
        let ask = move |line: &[u8]| {
            let mut reply: Option<Vec<u8>> = None;
            let to = ptr::from_mut(&mut reply).cast();
            // SAFETY: the line may be read, and the reply be written, during the call; the rest is the caller's promise.
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
            level: match options & CW_SCAN_PLAIN {
                0 => Level::Fast,
                _ => Level::Plain,
            },
            decode: Box::new(ask),
        };
        watch_forks();
        let handle = SCANS.insert(Scan {
            plan: Arc::new(plan),
            sources: Arc::default(),
            report: Arc::default(),
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
        let mut copy = Vec::new();
        append(&mut copy, line)?;
        *reply = Some(copy);
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
            let mut copy = with_room(data.len())?;
            copy.extend_from_slice(data);
            (Input::Bytes(Arc::new(copy)), None)
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
            let report = Report::new(scan.plan.spec.columns.len())?;
            scan.report = Arc::new(Mutex::new(report));
            Ok::<_, NoMemory>((
                Arc::clone(&scan.plan),
                Arc::clone(&scan.sources),
                Arc::clone(&scan.report),
            ))
        })??;
        let columns = plan.spec.columns.iter();
        let columns = columns.map(|column| (column.name.clone(), column.kind));
        let columns = columns.collect();
        let mut reader = Reader::new(Arc::clone(&plan), Arc::clone(&sources), report)?;
        let batches: Batches = Box::new(move || {
            let next = reader.next_batch();
            next.map_err(|failure| match failure {
                Failure::NoMemory => Ended::NoMemory,
                failure => Ended::Because(message(&failure, &plan, &sources)),
            })
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
            drop(unsafe { Box::from_raw(stream.cast::<ArrowArrayStream>()) });
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
            let source = sources.get(case.source);
            let number = source.and_then(|source| source.line_number(case.offset, (0, 1)).ok());
            let line = number.unwrap_or(0);
            format!("{}, line {line}{column}: {what}", name(case.source))
        }
    }
}

/// Counts lines up to one case after another: from the case before, if that stands before it in the same source.
struct LineNumbers<'a> {
    sources: &'a [Source],
    source: usize,
    known: (u64, u64),
}

impl LineNumbers<'_> {
    /// The number of the line of a case, or 0 if it can no longer be read.
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

/// Tells what the newest pass came to so far, in numbers: bytes, lines, lines of other kinds, rows, lines that were decoded, lines without a row; by
/// column lone surrogates, and then by column values that did not fit; and for each case what was the matter (from 0: a surrogate, a misfit, no
/// JSON object, too long, too many blocks), the index of the column or `UINT64_MAX`, that of the source, the bytes of it before the line, and the
/// number of the line, or 0 if it can no longer be read. Returns how many there are; `CW_ERROR_ARGUMENT` if they are more than `len`.
///
/// # Safety
///
/// `out` is null, or so many numbers may be written there.
#[no_mangle]
pub unsafe extern "C" fn cw_scan_report(handle: u64, out: *mut u64, len: u64) -> i32 {
    guard(|| {
        let (report, sources) = SCANS.with(handle, |scan| {
            (Arc::clone(&scan.report), Arc::clone(&scan.sources))
        })?;
        let report = lock(&report);
        let numbers = 6 + 2 * report.surrogates.len() + 5 * report.cases.len();
        let (mut told, mut cases) = (with_room(numbers)?, with_room(report.cases.len())?);
        told.extend([report.bytes, report.lines, report.skipped]);
        told.extend([report.rows, report.decoded, report.invalid]);
        told.extend(report.surrogates.iter().chain(&report.misfits));
        cases.extend_from_slice(&report.cases);
        drop(report); // Lines are counted without it.
        let mut numbers = LineNumbers {
            sources: &sources,
            source: 0,
            known: (0, 1),
        };
        for case in &cases {
            let column = case.column.map_or(u64::MAX, |column| column as u64);
            let number = numbers.of(case);
            told.extend([case.problem as u64, column, case.source as u64]);
            told.extend([case.offset, number]);
        }
        if out.is_null() || len < told.len() as u64 {
            return Err(CW_ERROR_ARGUMENT);
        }
        // SAFETY: not null, and the caller promises that so many may be written.
        unsafe { ptr::copy_nonoverlapping(told.as_ptr(), out, told.len()) };
        i32::try_from(told.len()).map_err(|_| CW_ERROR_ARGUMENT)
    })
}

/// What tables are combined in, and their columns; `None` until the first has come.
type Combined = Option<(Vec<(String, Type)>, Arc<Combine<Table>>)>;

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
        out.write(COMBINES.insert(None)?);
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

/// Takes the `ArrowArrayStream` at `stream`, reads it to its end and releases it. `CW_ERROR_MEMORY` if it has no memory. If it cannot be combined, `CW_ERROR_SYSTEM`, and why is written to
/// the `len` bytes at `error`, as far as there is room.
///
/// # Safety
///
/// `stream` is null or a stream of the C stream interface, which keeps to it, and which nobody else uses during the call. `error` is null with `len` 0, or `len`
/// bytes may be written there.
#[no_mangle]
pub unsafe extern "C" fn cw_combine_add(
    handle: u64,
    stream: *mut c_void,
    error: *mut u8,
    len: u64,
) -> i32 {
    guard(|| {
        let stream = stream.cast::<ArrowArrayStream>();
        // SAFETY: the caller promises it.
        let out = unsafe { bytes_mut(error, len) }?;
        if stream.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        COMBINES.with(handle, |combined| {
            // SAFETY: not null, and the caller promises it.
            let added = unsafe { Imported::new(stream) }.and_then(|it| add(combined, it));
            let Err(error) = added else {
                return Ok(CW_NOTHING);
            };
            let Ended::Because(reason) = error else {
                return Err(CW_ERROR_MEMORY);
            };
            for (to, from) in out.iter_mut().zip(reason.bytes()) {
                *to = from;
            }
            Err(CW_ERROR_SYSTEM)
        })?
    })
}

fn add(combined: &mut Combined, mut imported: Imported) -> Result<(), Ended> {
    if combined.is_none() {
        let rows = Combine::new(&imported.columns);
        let rows = rows.ok_or("it lacks the column message_id or request_id")?;
        *combined = Some((imported.columns.clone(), Arc::new(rows)));
    }
    let Some((columns, rows)) = combined else {
        return Ok(());
    };
    if *columns != imported.columns {
        return Err("its columns are not those of the table before".into());
    }
    let rows = Arc::get_mut(rows).ok_or("a stream of the rows was begun")?;
    while let Some(table) = imported.next()? {
        rows.add(table)?;
    }
    Ok(())
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
