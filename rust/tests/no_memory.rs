//! Without memory the rescuer goes on: it must not abort the host, and not lose a byte.
//!
//! The allocator of this program gives the rescuer's threads nothing, or only now and then, while a test says so. An
//! allocation that may not fail aborts the program then, and with it the test.
#![cfg(target_os = "linux")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use claude_wire::drain::{Drain, Got, Mode, Shared, CHUNK};
use rustix::pipe::pipe;

/// Of so many allocations of a rescuer one succeeds; 1: all of them, 0: none.
static ONE_IN: AtomicU32 = AtomicU32::new(1);
/// Allocations that were refused.
static REFUSED: AtomicU32 = AtomicU32::new(0);
static COUNT: AtomicU32 = AtomicU32::new(0);
/// The tests share the numbers above.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    static IS_RESCUER: Cell<bool> = const { Cell::new(false) };
}

struct Poor;

fn refuses() -> bool {
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

// SAFETY: it is the system's, but for null, which is allowed.
unsafe impl GlobalAlloc for Poor {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are handed on; all memory is from `System`.
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

/// In a thread that nobody waits for: a test that fails must not wait for it.
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
    // More streams than there is memory for from the beginning, all of them readable.
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
    // As long as there is none, a reader reads for itself.
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
        // A file that takes nothing: what was read for it stays in memory.
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
