//! Tests that a lack of memory never aborts the host: the rescuer continues without losing a byte, a scan ends with an error, and lines fall
//! through the typed reader.
//!
//! This program's allocator refuses memory when a test says so: all or most of the time in the rescuer's threads, and, in the thread of a
//! scan or a reader, from a chosen allocation onward. If the library made an allocation that must not fail, the program and the test would abort.
#![cfg(target_os = "linux")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::fmt::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::vec;

use claude_wire::drain::{Drain, Got, Mode, Shared, CHUNK};
use claude_wire::ffi::columns::{
    cw_combine_add, cw_combine_free, cw_combine_new, cw_combine_stream, cw_scan_add, cw_scan_free,
    cw_scan_new, cw_scan_reply, cw_scan_report, cw_scan_stream, cw_scan_usage, cw_stream_free,
    cw_sums_add, cw_sums_free, cw_sums_new,
};
use claude_wire::ffi::{CW_ERROR_MEMORY, CW_NOTHING};
use claude_wire::{simd, typed};
use plain::{reader_of, Plain, Values};
use rustix::pipe::pipe;
use typed::{Builder, Line, Reader};

#[allow(dead_code)] // The unit tests use the rest of both modules.
#[path = "../oracle/lib.rs"]
mod oracle;
#[allow(dead_code)] // As above.
#[path = "../src/typed/plain.rs"]
mod plain;

/// One in this many allocations of a rescuer succeeds: 1 for all of them, 3 for every third, 0 for none.
static ONE_IN: AtomicU32 = AtomicU32::new(1);
/// The number of rescuers' allocations that were refused.
static REFUSED: AtomicU32 = AtomicU32::new(0);
/// The number of rescuers' allocations while `ONE_IN` is above 1.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Locked by each test that uses the numbers above.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    static IS_RESCUER: Cell<bool> = const { Cell::new(false) };
    /// How many allocations of this thread succeed before some are refused, and how many are then refused.
    static LEFT: Cell<(usize, usize)> = const { Cell::new((usize::MAX, 0)) };
    /// The number of this thread's allocations that are not freed yet.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, except that it refuses some allocations.
struct Poor;

/// Decides whether to refuse this allocation, and counts it.
fn refuses() -> bool {
    let (left, refusals) = LEFT.try_with(Cell::get).unwrap_or((usize::MAX, 0));
    if refusals > 0 {
        let rest = left
            .checked_sub(1)
            .map_or((0, refusals - 1), |left| (left, refusals));
        LEFT.set(rest);
        return left == 0;
    }
    if !IS_RESCUER.try_with(Cell::get).unwrap_or(false) {
        return false;
    }
    let one_in = ONE_IN.load(Ordering::SeqCst);
    let refused =
        one_in != 1 && (one_in == 0 || COUNT.fetch_add(1, Ordering::SeqCst) % one_in != 0);
    if refused {
        REFUSED.fetch_add(1, Ordering::SeqCst);
    }
    refused
}

// SAFETY: all memory comes from `System`, which obeys the contract. An allocator may return null at any time.
unsafe impl GlobalAlloc for Poor {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses() {
            return std::ptr::null_mut();
        }
        let _ = HELD.try_with(|held| held.set(held.get() + 1));
        // SAFETY: the caller guarantees a layout of more than 0 bytes, which is what `System.alloc` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let _ = HELD.try_with(|held| held.set(held.get() - 1));
        // SAFETY: the caller guarantees that `alloc` returned `at` for this layout, and `alloc` got it from `System`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static POOR: Poor = Poor;

fn shared(limit: usize) -> &'static Shared {
    Box::leak(Box::new(Shared::new(limit, |body| {
        let body = move || {
            IS_RESCUER.with(|it| it.set(true));
            body();
        };
        thread::Builder::new().spawn(body).map(drop)
    })))
}

fn bytes(size: usize) -> Vec<u8> {
    (0..size)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect()
}

fn write_all(to: &OwnedFd, mut data: &[u8]) {
    while !data.is_empty() {
        data = &data[rustix::io::write(to, data).unwrap()..];
    }
}

/// Writes `data` in a thread, and closes the pipe. The thread is never joined, so a test that fails does not hang.
fn write_and_end(to: OwnedFd, data: Vec<u8>) {
    thread::spawn(move || write_all(&to, &data));
}

fn until(mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < end, "it did not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

fn read_to_end(drain: &Drain) -> Vec<u8> {
    let (mut all, mut out) = (Vec::new(), vec![0; CHUNK]);
    loop {
        match drain.read(&mut out).unwrap().0 {
            Got::Bytes(bytes) => all.extend_from_slice(&out[..bytes]),
            Got::End => return all,
            Got::Failed(number) => panic!("{number}"),
            Got::Nothing | Got::Budget => thread::yield_now(),
        }
    }
}

#[test]
fn a_rescuer_without_memory_leaves_the_bytes_in_their_pipe_and_takes_them_later() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    ONE_IN.store(1, Ordering::SeqCst);
    let shared = shared(1 << 30);
    let data = bytes(3 << 20);
    let (reader, writer) = pipe().unwrap();
    let drain = Drain::new(shared, reader.as_fd(), Mode::Pause).unwrap();
    // Make more streams readable than the rescuer reserves memory for when it starts.
    let others: Vec<_> = (0..200)
        .map(|_| {
            let (reader, writer) = pipe().unwrap();
            let drain = Drain::new(shared, reader.as_fd(), Mode::Pause).unwrap();
            (drain, writer)
        })
        .collect();
    ONE_IN.store(0, Ordering::SeqCst);
    let before = REFUSED.load(Ordering::SeqCst);
    for (_, writer) in &others {
        write_all(writer, b"x");
    }
    write_and_end(writer, data.clone());
    until(|| drain.stats().unwrap().pauses > 0);
    until(|| REFUSED.load(Ordering::SeqCst) > before + 1000);
    assert_eq!(shared.queued(), 0);
    let stats = drain.stats().unwrap();
    assert_eq!((stats.rescued, stats.pauses), (0, 1), "told once");
    // While the rescuer has no memory, the reader still reads the pipe itself.
    let mut some = [0; 1000];
    let (got, notes) = drain.read(&mut some).unwrap();
    assert_eq!(got, Got::Bytes(1000));
    assert!(notes.paused, "the reader is told");
    assert!(some[..] == data[..1000]);
    ONE_IN.store(1, Ordering::SeqCst);
    until(|| drain.stats().unwrap().rescued == data.len() as u64 - 1000);
    assert!(read_to_end(&drain) == data[1000..]);
    until(|| shared.queued() == others.len());
    drop((drain, others));
    assert_eq!(shared.queued(), 0);
}

#[test]
fn with_memory_now_and_then_no_byte_is_lost_in_any_mode() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    ONE_IN.store(1, Ordering::SeqCst);
    let data = bytes(2 << 20);
    let directory = std::env::temp_dir();
    for (mode, limit) in [
        (Mode::Pause, 1 << 30),
        (Mode::Pause, 100_000),
        (Mode::Error, 100_000),
        (Mode::Spill(u64::MAX, directory.clone()), 100_000),
        (
            Mode::Spill(u64::MAX, PathBuf::from("/nowhere at all")),
            100_000,
        ),
        // With a budget of 1 byte, nearly all bytes go to the file, which is full after 200,000.
        (Mode::Spill(200_000, directory), 1),
    ] {
        let shared = shared(limit);
        let (reader, writer) = pipe().unwrap();
        let drain = Drain::new(shared, reader.as_fd(), mode.clone()).unwrap();
        let before = REFUSED.load(Ordering::SeqCst);
        ONE_IN.store(3, Ordering::SeqCst);
        write_and_end(writer, data.clone());
        until(|| REFUSED.load(Ordering::SeqCst) > before);
        assert!(read_to_end(&drain) == data, "{mode:?} {limit}");
        ONE_IN.store(1, Ordering::SeqCst);
        drop(drain);
        assert_eq!(shared.queued(), 0, "{mode:?} {limit}");
    }
}

#[test]
fn the_last_bytes_are_kept_in_as_much_memory_as_there_is() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    ONE_IN.store(1, Ordering::SeqCst);
    let shared = shared(1 << 30);
    let (reader, writer) = pipe().unwrap();
    let drain = Drain::new(shared, reader.as_fd(), Mode::KeepLast(100_000)).unwrap();
    let data = bytes(300_000);
    write_all(&writer, &data[..1000]);
    until(|| drain.stats().unwrap().queued == 1000);
    ONE_IN.store(0, Ordering::SeqCst);
    write_all(&writer, &data[1000..200_000]);
    until(|| drain.stats().unwrap().rescued == 200_000);
    let mut out = vec![0; 100_000];
    let kept = drain.tail(&mut out).unwrap();
    assert!((1000..100_000).contains(&kept), "{kept}");
    assert!(out[..kept] == data[200_000 - kept..200_000]);
    ONE_IN.store(1, Ordering::SeqCst);
    write_all(&writer, &data[200_000..]);
    until(|| drain.stats().unwrap().rescued == 300_000);
    let kept = drain.tail(&mut out).unwrap();
    assert!(kept == 100_000 && out == data[200_000..]);
}

/// `ArrowSchema` of the Arrow C data interface. Fields that the tests do not use are an array of words.
#[repr(C)]
struct Schema {
    before: [usize; 7],
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private: *mut c_void,
}

/// `ArrowArray` of the Arrow C data interface.
#[repr(C)]
struct Array {
    length: i64,
    before: [usize; 7],
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private: *mut c_void,
}

/// The first fields of `ArrowArrayStream` of the Arrow C stream interface.
#[allow(clippy::struct_field_names)] // The interface has these names.
#[repr(C)]
struct Stream {
    get_schema: unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int,
    get_next: unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut Stream) -> *const c_char,
}

const ENOMEM: c_int = 12;

const SPECS: [&str; 4] = [
    "path text path\noffset int offset\nuuid text first uuid\nat time first timestamp\nside bool first side\nn float first n\n\
     text text joined message.content content\nkind text if a uuid b n",
    "!where assistant user\n!each message.content\nblock int index\nkind text kind *.type\n\
     text text joined *.text\ninput json first *.input",
    "!where assistant\n!need assistant message.usage\nmessage_id text first message.id\nrequest_id text first requestId\n\
     n int first message.usage.n",
    "!where assistant\n!need assistant message.usage\ntype text first type\nmodel_usage json first modelUsage\npath text path\n\
     message_id text first message.id\nrequest_id text first requestId\nuuid text first uuid\n\
     request_session_id text first requestSessionId\nsession_id text first sessionId\nmodel text first uuid\n\
     cwd text first uuid\ntotal_cost_usd float first totalCostUSD\noffset int offset\ntimestamp time first timestamp\n\
     input_tokens int first message.usage.n\noutput_tokens int first message.usage.n\n\
     cache_creation_input_tokens int first message.usage.n\ncache_creation_5m int first message.usage.n\n\
     cache_creation_1h int first message.usage.n\ncache_read_input_tokens int first message.usage.n",
];

/// The scans' decoder: it answers every line with the same line, which has `uuid` only once.
unsafe extern "C" fn decode(_: *const u8, _: u64, reply: *mut c_void) -> i32 {
    let line = br#"{"type":"user","uuid":"decoded"}"#;
    // SAFETY: `reply` is the argument of this call, which has not returned yet; `line` is a static string.
    match unsafe { cw_scan_reply(reply, line.as_ptr(), line.len() as u64) } {
        CW_NOTHING => 1,
        error => error,
    }
}

/// Returns lines with everything that makes a scan allocate: long lines, escapes, deep nesting, several blocks, values that do not fit, and
/// lines for the decoder.
fn lines() -> Vec<u8> {
    let long = "long ".repeat(60_000);
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let escaped = r"\n\ud83d\ude00\ud83d".repeat(100);
    let mut lines = String::new();
    // A batch has room for 16 rows at first, so 20 make it grow.
    for number in 0..20 {
        let _ = write!(
            lines,
            r#"{{"type":"assistant","uuid":"u{number}","timestamp":"2026-01-0\u0031","side":7,"n":{number}.5,"requestId":"r{number}","message":{{"id":"m{number}","content":[{{"type":"text","text":"some text"}},{{"type":"tool_use","input":{{"deep":[1,{{}}]}}}}],"usage":{{"n":{number}}}}}}}"#
        );
        lines.push('\n');
    }
    let _ = write!(
        lines,
        r#"{{"type":"user","message":{{"content":"{long}"}}}}
{{"type":"user","message":{{"content":[{{"type":"text","text":"{escaped}"}},{{"type":"tool_use","input":{deep}}},5]}}}}
{{"type":"user","uuid":"twice","uuid":"twice"}}
{{"type":"user","\u006dessage":{{"content":"{escaped}"}}}}
{{"type":"user","uuid":"last"}}"#
    );
    lines.into_bytes()
}

/// Reads a stream to its end, while allocations of this thread are refused as `LEFT` describes. Returns the number of rows, or an error if
/// the stream had no memory.
///
/// # Safety
///
/// `stream` must be an address from `cw_scan_stream` or `cw_combine_stream`, and must not be freed.
unsafe fn read_all(stream: *mut c_void, left: usize, refusals: usize) -> Result<i64, ()> {
    let stream = stream.cast::<Stream>();
    let mut rows = 0;
    LEFT.set((left, refusals));
    // SAFETY: the caller guarantees a live stream of the library, whose functions obey the interface. The code below releases each schema
    // and array once.
    let result = unsafe {
        let mut schema: Schema = std::mem::zeroed();
        let status = ((*stream).get_schema)(stream, &raw mut schema);
        if let Some(release) = schema.release {
            release(&raw mut schema);
        }
        if status != 0 {
            LEFT.set((usize::MAX, 0));
            assert_eq!(status, ENOMEM);
            return Err(());
        }
        loop {
            let mut array: Array = std::mem::zeroed();
            let status = ((*stream).get_next)(stream, &raw mut array);
            if status != 0 {
                let words = ((*stream).get_last_error)(stream);
                LEFT.set((usize::MAX, 0));
                assert_eq!(status, ENOMEM);
                assert!(CStr::from_ptr(words)
                    .to_str()
                    .unwrap()
                    .starts_with("no memory"));
                break Err(());
            }
            let Some(release) = array.release else {
                break Ok(rows);
            };
            rows += array.length;
            release(&raw mut array);
        }
    };
    LEFT.set((usize::MAX, 0));
    result
}

/// Calls `run` again and again, and refuses the first allocation, then the second, and so forth, until a call needs fewer allocations. Then
/// does the same, but refuses the chosen allocation and all later ones. Asserts that each call returns `right` or an error, and that more
/// than `least` calls return an error.
fn at_each_allocation(
    right: i64,
    least: usize,
    mut run: impl FnMut(usize, usize) -> Result<i64, ()>,
) {
    for refusals in [1, usize::MAX] {
        let mut failures = 0;
        for left in 0.. {
            let result = run(left, refusals);
            assert!(
                result == Err(()) || result == Ok(right),
                "{left}: {result:?}"
            );
            failures += usize::from(result.is_err());
            // A run never makes this many allocations, so otherwise the loop would never end.
            assert!(left < 100_000);
            if result.is_ok() && run(left + 1000, usize::MAX).is_ok() {
                break;
            }
        }
        assert!(failures > least, "{failures}");
    }
}

#[test]
fn a_scan_without_memory_ends_with_an_error_wherever_that_is() {
    let data = lines();
    let length = data.len() as u64;
    for spec in SPECS {
        let mut scan = 0;
        // SAFETY: each pointer is null, or points to live memory of the given length. Each stream is freed once.
        unsafe {
            let (text, len) = (spec.as_ptr(), spec.len() as u64);
            let new = cw_scan_new(
                text,
                len,
                std::ptr::null(),
                0,
                0,
                1 << 29,
                Some(decode),
                &raw mut scan,
            );
            assert_eq!(new, CW_NOTHING);
            assert_eq!(
                cw_scan_add(scan, data.as_ptr(), length, 0, 0, length),
                CW_NOTHING
            );
            let mut stream = std::ptr::null_mut();
            let mut pass = |left, refusals| {
                assert_eq!(cw_scan_stream(scan, &raw mut stream), CW_NOTHING);
                let result = read_all(stream, left, refusals);
                assert_eq!(cw_stream_free(stream), CW_NOTHING);
                let mut numbers = [0; 600];
                LEFT.set((left % 3, 1));
                let told = cw_scan_report(scan, numbers.as_mut_ptr(), 600);
                LEFT.set((usize::MAX, 0));
                assert!(told > 0 || told == CW_ERROR_MEMORY, "{told}");
                result
            };
            let right = pass(0, 0).unwrap();
            assert!(right >= 20);
            at_each_allocation(right, 20, pass);
            assert_eq!(cw_scan_free(scan), CW_NOTHING);
        }
    }
}

#[test]
fn rows_are_combined_or_there_is_an_error_wherever_memory_ends() {
    let data = lines();
    let (spec, length) = (SPECS[2], data.len() as u64);
    let mut scan = 0;
    // SAFETY: each pointer is null, or points to live memory of the given length. Each stream is freed once.
    unsafe {
        let (text, len) = (spec.as_ptr(), spec.len() as u64);
        cw_scan_new(
            text,
            len,
            std::ptr::null(),
            0,
            0,
            1 << 29,
            Some(decode),
            &raw mut scan,
        );
        cw_scan_add(scan, data.as_ptr(), length, 0, 0, length);
        let combine = |left, refusals| {
            let (mut combine, mut stream) = (0, std::ptr::null_mut());
            assert_eq!(cw_combine_new(&raw mut combine), CW_NOTHING);
            // Refuse nothing while the first table is added: the combination copies its column names, and this copy may abort the process.
            let mut statuses = Vec::with_capacity(2);
            for refusals in [0, refusals] {
                cw_scan_stream(scan, &raw mut stream);
                LEFT.set((left, refusals));
                statuses.push(cw_combine_add(combine, stream, std::ptr::null_mut(), 0));
                LEFT.set((usize::MAX, 0));
                cw_stream_free(stream);
            }
            assert!(
                matches!(statuses[..], [CW_NOTHING, CW_NOTHING | CW_ERROR_MEMORY]),
                "{statuses:?}"
            );
            assert_eq!(cw_combine_stream(combine, &raw mut stream), CW_NOTHING);
            let result = read_all(
                stream,
                left,
                if statuses[1] == CW_NOTHING {
                    refusals
                } else {
                    0
                },
            );
            cw_stream_free(stream);
            cw_combine_free(combine);
            if statuses[1] == CW_NOTHING {
                result
            } else {
                Err(())
            }
        };
        assert_eq!(combine(0, 0), Ok(20));
        at_each_allocation(20, 20, combine);
        cw_scan_free(scan);
    }
}

/// The numbers that `cw_scan_usage` writes.
const USAGE_NUMBERS: usize = 14;
/// The numbers in a sum of `cw_sums_add`.
const SUM_WORDS: usize = 11;
/// The place of the number of answers in a sum.
const ANSWERS: usize = 4;
/// The length of a period in microseconds.
const PERIOD: i64 = 9;
/// The number of tokens from which on prompts are summed separately.
const STEPS: [i64; 1] = [7];

#[test]
fn usage_is_read_and_summed_or_there_is_an_error_wherever_memory_ends() {
    let data = lines();
    let (spec, length) = (SPECS[3], data.len() as u64);
    let (mut scan, mut empty) = (0, 0);
    // SAFETY: each pointer is null, or points to live memory of the given length.
    unsafe {
        let (text, len) = (spec.as_ptr(), spec.len() as u64);
        let none = std::ptr::null();
        for handle in [&raw mut scan, &raw mut empty] {
            let new = cw_scan_new(text, len, none, 0, 0, 1 << 29, Some(decode), handle);
            assert_eq!(new, CW_NOTHING);
        }
        cw_scan_add(scan, data.as_ptr(), length, 0, 0, length);
        let read = |scan, left, refusals| {
            let mut out = [0; USAGE_NUMBERS];
            LEFT.set((left, refusals));
            let status = cw_scan_usage(scan, out.as_mut_ptr());
            let (rest, _) = LEFT.replace((usize::MAX, 0));
            assert!(matches!(status, CW_NOTHING | CW_ERROR_MEMORY), "{status}");
            (status, out, rest)
        };
        // The first allocations of a pass may abort the process. A scan without sources makes no others.
        let (.., rest) = read(empty, 1000, 1);
        let first = 1000 - rest;
        let size_of_rows = |out: [u64; USAGE_NUMBERS]| i64::try_from(out[1]).unwrap();
        let (_, all, _) = read(scan, 0, 0);
        at_each_allocation(size_of_rows(all), 20, |left, refusals| {
            let (status, out, _) = read(scan, first + left, refusals);
            if status == CW_NOTHING {
                Ok(size_of_rows(out))
            } else {
                Err(())
            }
        });
        // The rows stay where they are until the scan is read again.
        let (status, out, _) = read(scan, 0, 0);
        assert_eq!(status, CW_NOTHING);
        let (rows, bytes) = (out[0] as *const u8, out[1]);
        let mut groups = vec![0; usize::try_from(bytes).unwrap() / 8];
        at_each_allocation(20, 5, |left, refusals| {
            let (mut sums, mut count) = (0, 0);
            assert_eq!(cw_sums_new(&raw mut sums), CW_NOTHING);
            let (room, count) = (groups.as_mut_ptr(), &raw mut count);
            LEFT.set((left, refusals));
            let steps = STEPS.as_ptr();
            let status = cw_sums_add(sums, rows, bytes, PERIOD, steps, 1, room, count);
            LEFT.set((usize::MAX, 0));
            assert!(matches!(status, CW_NOTHING | CW_ERROR_MEMORY), "{status}");
            assert_eq!(cw_sums_free(sums), CW_NOTHING);
            if status == CW_ERROR_MEMORY {
                return Err(());
            }
            let groups = groups
                .chunks(SUM_WORDS)
                .take(usize::try_from(*count).unwrap());
            Ok(groups.map(|group| group[ANSWERS]).sum())
        });
        cw_scan_free(scan);
        cw_scan_free(empty);
    }
}

/// A value of [`Sparing`]. A clone needs no memory, like a reference to an object of CPython.
#[derive(Clone, Debug, PartialEq)]
struct Made(Rc<Plain>);

/// Makes the values of [`Values`]. A value that it makes counts as one allocation: if that is refused, there is no value.
struct Sparing(Values);

/// Calls `run`, and refuses no allocation.
fn spare<T>(run: impl FnOnce() -> T) -> T {
    let left = LEFT.replace((usize::MAX, 0));
    let result = run();
    LEFT.set(left);
    result
}

fn make<T>(run: impl FnOnce() -> Option<T>) -> Option<T> {
    (!refuses()).then(|| spare(run))?
}

fn make_value(run: impl FnOnce() -> Option<Plain>) -> Option<Made> {
    make(|| Some(Made(Rc::new(run()?))))
}

fn plain<'a>(values: impl Iterator<Item = &'a Made>) -> Vec<Plain> {
    values.map(|value| Plain::clone(&value.0)).collect()
}

impl Builder for Sparing {
    type Value = Made;
    type Class = <Values as Builder>::Class;
    type Record = <Values as Builder>::Record;
    type Template = <Values as Builder>::Template;

    fn text(&mut self, bytes: &[u8], is_ascii: bool) -> Option<Made> {
        make_value(|| self.0.text(bytes, is_ascii))
    }
    fn int(&mut self, value: i64) -> Option<Made> {
        make_value(|| self.0.int(value))
    }
    fn float(&mut self, value: f64) -> Option<Made> {
        make_value(|| self.0.float(value))
    }
    fn null(&mut self) -> Made {
        spare(|| Made(Rc::new(self.0.null())))
    }
    fn bool(&mut self, value: bool) -> Made {
        spare(|| Made(Rc::new(self.0.bool(value))))
    }
    fn list(&mut self, items: vec::Drain<'_, Made>) -> Option<Made> {
        make_value(|| self.0.list(plain(items.as_slice().iter()).drain(..)))
    }
    fn dict(&mut self, pairs: vec::Drain<'_, Made>) -> Option<Made> {
        make_value(|| self.0.dict(plain(pairs.as_slice().iter()).drain(..)))
    }
    fn unknown(&mut self, kind: &Made, reason: &Made, pairs: vec::Drain<'_, Made>) -> Option<Made> {
        let pairs = || plain(pairs.as_slice().iter());
        make_value(|| self.0.unknown(&kind.0, &reason.0, pairs().drain(..)))
    }
    fn begin(&mut self, class: &Self::Class) -> Option<Self::Record> {
        make(|| self.0.begin(class))
    }
    fn set(&mut self, record: &mut Self::Record, slot: usize, value: Made) {
        spare(|| self.0.set(record, slot, Plain::clone(&value.0)));
    }
    fn finish(&mut self, class: &Self::Class, record: Self::Record, set: [u64; 2]) -> Made {
        spare(|| Made(Rc::new(self.0.finish(class, record, set))))
    }
    fn slot(&mut self, record: &Made, slot: usize) -> Option<Made> {
        spare(|| Some(Made(Rc::new(self.0.slot(&record.0, slot)?))))
    }
    fn template(&mut self, record: &Made, slots: Vec<usize>) -> Option<Self::Template> {
        make(|| self.0.template(&record.0, slots))
    }
    fn stamp(&mut self, template: &Self::Template, values: &mut Vec<Made>) -> Option<Made> {
        make_value(|| {
            let mut all = plain(values.iter());
            let value = self.0.stamp(template, &mut all)?;
            values.truncate(all.len());
            Some(value)
        })
    }
    fn deep_template(&mut self, value: &Made, max_objects: usize) -> Option<Self::Template> {
        make(|| self.0.deep_template(&value.0, max_objects))
    }
}

/// Returns lines with everything that the reader remembers: strings, keys, lists, dicts, records, and lines that are alike. Also returns
/// lines with escapes, unknown tags, more items than the stack has room for at first, and a line after which buffers are freed.
fn typed_lines() -> Vec<String> {
    let mut lines = Vec::new();
    for number in 0..6 {
        lines.push(format!(
            r#"{{"type":"event","event":{{"type":"delta","text":"text {number}"}},"session_id":"s{}","of":["b"]}}"#,
            number % 2
        ));
    }
    for number in 0..4 {
        lines.push(format!(
            r#"{{"type":"event","event":{{"type":"delta","text":"a\n{number}","index":{number}}},"more":{{"a key of 31 bytes, a long one..":[1,{{"b":[2]}}],"list":["a list of strings","d"]}}}}"#
        ));
        lines.push(format!(
            r#"{{"session_id":"a","n":{number},"event":{{"type":"stop","seconds":1.5,"of":true}},"type":"event"}}"#
        ));
    }
    for number in 0..3 {
        lines.push(format!(
            r#"{{"type":"system","subtype":"init","tools":["Read","Write",null],"more":{{"n":{number},"of":[{{}}]}}}}"#
        ));
        lines.push(format!(
            r#"{{"type":"new","n":{number},"of":[{{"a":null}}]}}"#
        ));
        lines.push(format!(
            r#"{{"type":"event","event":{{"type":"new","n":{number}}},"session_id":"\u00e9"}}"#
        ));
    }
    let (long, many) = ("long ".repeat(14_000), "null,".repeat(100));
    lines.push(format!(
        r#"{{"type":"new","of":"\u00e9{long}","many":[{many}{{}}]}}"#
    ));
    lines
}

/// Reads all lines as one block, and then one by one.
fn read_lines(reader: &mut Reader<Sparing>, lines: &[String], block: &[u8]) -> Vec<Line<Made>> {
    let mut found = spare(|| Vec::with_capacity(2 * lines.len()));
    reader.block(block, block.len(), |line, _, _| found.push(line));
    for line in lines {
        found.push(reader.one(line.as_bytes()));
    }
    found
}

#[test]
fn a_reader_without_memory_lets_lines_fall_through_and_reads_the_others_rightly() {
    let lines = typed_lines();
    let block = lines.join("\n") + "\n";
    let new = || reader_of(Sparing(Values::default()), |value| Made(Rc::new(value)));
    let read = |reader: &mut _| read_lines(reader, &lines, block.as_bytes());
    let expected = read(&mut new());
    assert!(!expected.contains(&Line::FallsThrough));
    for refusals in [1, usize::MAX] {
        let mut fell_through = 0;
        for left in 0.. {
            let held = HELD.get();
            let mut reader = new();
            LEFT.set((left, refusals));
            let found = read(&mut reader);
            let (_, rest) = LEFT.replace((usize::MAX, 0));
            for (found, expected) in found.iter().zip(&expected) {
                assert!(found == expected || *found == Line::FallsThrough, "{left}");
            }
            fell_through += usize::from(found.contains(&Line::FallsThrough));
            assert!(
                read(&mut reader) == expected,
                "{left}: the same lines with memory"
            );
            drop((found, reader));
            assert_eq!(HELD.get(), held, "{left}: allocations that are not freed");
            if rest == refusals {
                assert!(left > 400 && fell_through > 300, "{left} {fell_through}");
                break;
            }
        }
    }
}
