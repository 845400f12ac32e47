//! The C ABI: the only file that deals in pointers of others.
//!
//! Every function returns a status, [`CW_NOTHING`] or above for success and below 0 for an error, and writes its result
//! through an out-pointer. A panic is caught and becomes [`CW_ERROR_PANIC`]: it must not unwind into C. Buffers and
//! drains are named by [handles](crate::handle), so a wrong one is a status, too. What is left for the caller to promise is
//! about the pointers alone; each function says it under *Safety*.
//!
//! The declarations that the other side reads are generated from this file.
#![allow(unsafe_code)]

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::{ptr, slice};

use crate::buffer::{Bom, Buffer, Next, Place, Step};
#[cfg(target_os = "linux")]
use crate::drain::{self, Broken, Drain, Got, Mode};
use crate::frame;
use crate::handle::{Refused, Table};
use crate::peek::peek_lines;
use crate::scan::KindSpans;
use crate::sieve::Sieve;
use crate::sift;
use crate::simd::Level;

/// Kinds that one call of [`cw_peek_lines`] tells apart, at most.
const MOST_KINDS: usize = 64;

/// Changes whenever a function, a struct or a constant here does: editable installs leave old libraries behind.
pub const CW_ABI_VERSION: u32 = 6;

/// Success. For a step: no line was completed.
pub const CW_NOTHING: i32 = 0;
/// A step: one line in memory of the buffer, lent until the next call with the handle.
pub const CW_CARRY: i32 = 1;
/// A step: complete lines in the caller's memory.
pub const CW_BODY: i32 = 2;
/// A step: a line over the limit was dropped.
pub const CW_TOO_LONG: i32 = 3;
/// A step: lines that a sieve let through, lent until the next call with the handle.
pub const CW_SIFTED: i32 = 4;

/// Most bytes that are copied to the result of two steps.
pub const CW_LINE_BYTES: usize = 4096;

/// An option of a sieve: only lines of the named kinds are let through.
pub const CW_SIEVE_ONLY: u32 = 1;
/// An option of a sieve: deltas are merged.
pub const CW_SIEVE_COALESCE: u32 = 2;
/// An option of a sieve: no vectors are used, which is there to be compared with.
pub const CW_SIEVE_PLAIN: u32 = 4;

/// A pointer is null where it must not be, or a length or option is out of range.
pub const CW_ERROR_ARGUMENT: i32 = -1;
/// The handle is null, freed, or was never given out.
pub const CW_ERROR_STALE: i32 = -2;
/// The handle was made by another process, of which this one is a forked child.
pub const CW_ERROR_FORKED: i32 = -3;
/// Another thread is using the handle now.
pub const CW_ERROR_IN_USE: i32 = -4;
/// A panic: a bug in this library. The handle can only be freed.
pub const CW_ERROR_PANIC: i32 = -5;
/// Memory cannot be had. Nothing was consumed; with a sieve, lines may be lost.
pub const CW_ERROR_MEMORY: i32 = -6;
/// Too many handles are alive.
pub const CW_ERROR_FULL: i32 = -7;

/// More bytes are queued than the process may hold, and the drain was told to say so.
pub const CW_ERROR_BUDGET: i32 = -8;
/// This system has no drains.
pub const CW_ERROR_UNSUPPORTED: i32 = -9;
/// An error of the system: this minus its number.
pub const CW_ERROR_SYSTEM: i32 = -1000;

/// Added to the bytes that a read of a drain gave: the stream has ended.
pub const CW_DRAIN_END: i32 = 0x0100_0000;
/// Added to the bytes that a read of a drain gave: the stream has been paused, now or before, because too many bytes were
/// queued.
pub const CW_DRAIN_PAUSED: i32 = 0x0200_0000;
/// Added to the bytes that a read of a drain gave: what is watched has become readable.
pub const CW_DRAIN_WATCHED: i32 = 0x0400_0000;

/// Overflow of a drain: the writer has to wait.
pub const CW_OVERFLOW_PAUSE: u32 = 0;
/// Overflow of a drain: the writer has to wait, and the next read says `CW_ERROR_BUDGET`.
pub const CW_OVERFLOW_ERROR: u32 = 1;
/// Overflow of a drain: bytes go to a file.
pub const CW_OVERFLOW_SPILL: u32 = 2;
/// No overflow: only the last bytes of the stream are kept.
pub const CW_OVERFLOW_KEEP_LAST: u32 = 3;

/// A defect: a line does not begin with `{` or does not end with `}`, or is blank.
pub const CW_DEFECT_SHAPE: u32 = 1;
/// A defect: not valid UTF-8.
pub const CW_DEFECT_UTF8: u32 = 2;

const _: () = assert!(CW_DEFECT_SHAPE == frame::SHAPE && CW_DEFECT_UTF8 == frame::UTF8);

/// A step through a chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwStep {
    /// First byte of what is lent: the line of `CW_CARRY`, the lines of `CW_SIFTED`, the head of `CW_TOO_LONG`, otherwise
    /// null.
    pub lent: *const u8,
    /// Bytes at `lent`; for `CW_BODY` the bytes of the block, which begins at the `start` that the caller gave.
    pub bytes: u64,
    /// Where in the chunk the next call begins: 0 to the chunk's length.
    pub next: u64,
    /// Bytes of the stream before the block or line.
    pub offset: u64,
    /// Number of its first line, counted from 1.
    pub line_number: u64,
    /// Lines in it.
    pub lines: u64,
    /// `CW_DEFECT_…` added up, 0 if it is clean.
    pub defects: u64,
    /// For `CW_TOO_LONG`, the whole length of the line without its LF.
    pub length: u64,
}

/// The steps that [`cw_buffer_next_two`] takes, and what it lends if that is short: reading it from here spares the caller
/// following a pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwSteps {
    /// The first step, and the second if there is one.
    pub steps: [CwStep; 2],
    /// If the first is `CW_CARRY` or `CW_SIFTED`, and what it lends has at most so many bytes: a copy of that.
    pub line: [u8; CW_LINE_BYTES],
}

/// Work done by a buffer since it was made, and the memory it holds now.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwStats {
    /// Bytes searched for a line feed.
    pub searched: u64,
    /// Bytes copied into the buffer, and moved when it grew.
    pub copied: u64,
    /// Bytes of memory held, lent memory and the sieve's included.
    pub held: u64,
    /// Lines that the sieve passed over.
    pub skipped: u64,
    /// Lines that the sieve made part of an earlier line.
    pub merged: u64,
    /// Bytes of all chunks that were consumed.
    pub taken: u64,
}

/// The kind of a line: three tags, each a string within the data, still escaped. `bytes` is `UINT64_MAX` for one that is
/// absent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwKind {
    /// Where each begins in the data.
    pub start: [u64; 3],
    /// Its bytes.
    pub bytes: [u64; 3],
}

/// What a look at the kinds of lines came to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwPeeked {
    /// Lines that were looked at.
    pub lines: u64,
    /// Kinds that they are of.
    pub kinds: u64,
    /// Where in the data the next call begins.
    pub next: u64,
}

/// The complete lines at the start of some data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwFrame {
    /// Complete lines.
    pub lines: u64,
    /// Their bytes, with every LF.
    pub bytes: u64,
    /// `CW_DEFECT_…` added up, 0 if the block is clean.
    pub defects: u64,
}

/// What a drain has done; see `drain::Stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwDrainStats {
    /// Bytes given to the reader.
    pub read: u64,
    /// Bytes taken by the rescuer instead.
    pub rescued: u64,
    /// Times that the rescuer began to.
    pub rescues: u64,
    /// Times that the stream was paused.
    pub pauses: u64,
    /// Bytes that went to a file.
    pub spilled: u64,
    /// Times that a file could not be made or written.
    pub spill_errors: u64,
    /// Bytes thrown away.
    pub discarded: u64,
    /// Bytes in memory now.
    pub queued: u64,
    /// Bytes in the file now.
    pub in_file: u64,
    /// 1 if the stream is paused now.
    pub paused: u64,
}

/// Runs the body of an entry point on Linux, and refuses it elsewhere.
#[cfg(target_os = "linux")]
macro_rules! on_linux {
    ($body:block) => {
        guard(|| $body)
    };
}
#[cfg(not(target_os = "linux"))]
macro_rules! on_linux {
    ($body:block) => {
        CW_ERROR_UNSUPPORTED
    };
}

/// What a buffer's handle stands for.
struct Lines {
    buffer: Buffer,
    sieve: Option<Box<Sieve>>,
    /// Bytes of all chunks that were consumed.
    taken: u64,
}

static BUFFERS: Table<Lines> = Table::new();

#[cfg(target_os = "linux")]
static DRAINS: Table<Drain> = Table::new();

impl From<Refused> for i32 {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Stale => CW_ERROR_STALE,
            Refused::Forked => CW_ERROR_FORKED,
            Refused::InUse => CW_ERROR_IN_USE,
            Refused::Broken => CW_ERROR_PANIC,
            Refused::Full => CW_ERROR_FULL,
        }
    }
}

/// The ABI number that the library was built with, see [`CW_ABI_VERSION`].
#[no_mangle]
pub extern "C" fn cw_abi_version() -> u32 {
    CW_ABI_VERSION
}

/// Makes a line buffer with a limit on the bytes of a line (without its LF). With `keep_bom` not 0, a byte order mark
/// at the start of the stream belongs to the first line; otherwise it is skipped.
///
/// # Safety
///
/// `out` is null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_new(max_line_bytes: u64, keep_bom: u32, out: *mut u64) -> i32 {
    guard(|| {
        let max_line_bytes = usize::try_from(max_line_bytes).unwrap_or(usize::MAX);
        let on_bom = if keep_bom == 0 { Bom::Skip } else { Bom::Keep };
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        watch_forks();
        let buffer = Buffer::new(max_line_bytes, on_bom);
        let handle = BUFFERS.insert(Lines {
            buffer,
            sieve: None,
            taken: 0,
        })?;
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { out.write(handle) };
        Ok(CW_NOTHING)
    })
}

/// Frees a buffer and all memory it has lent.
#[no_mangle]
pub extern "C" fn cw_buffer_free(handle: u64) -> i32 {
    guard(|| {
        BUFFERS
            .remove(handle)
            .map(|()| CW_NOTHING)
            .map_err(Into::into)
    })
}

/// Lets only some of the lines through, from now on, and merges deltas: `options` is `CW_SIEVE_…` added up, and `names` are
/// `len` bytes of UTF-8, the names of kinds, with a line feed between two. See `sieve`.
///
/// # Safety
///
/// `names` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them during the call.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_sieve(
    handle: u64,
    names: *const u8,
    len: u64,
    options: u32,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let names = unsafe { bytes(names, len) }?;
        let names = std::str::from_utf8(names).map_err(|_| CW_ERROR_ARGUMENT)?;
        let names: Vec<&str> = names.split('\n').filter(|name| !name.is_empty()).collect();
        let only = (options & CW_SIEVE_ONLY != 0).then_some(names.as_slice());
        let level = if options & CW_SIEVE_PLAIN == 0 {
            Level::Fast
        } else {
            Level::Plain
        };
        let sieve = Sieve::new(only, options & CW_SIEVE_COALESCE != 0, level);
        BUFFERS.with(handle, |lines| lines.sieve = Some(Box::new(sieve)))?;
        Ok(CW_NOTHING)
    })
}

/// Takes the next step through the chunk of `len` bytes at `data`, from byte `start` of it on; see
/// `Buffer::next`. Takes back what the call before it lent. The caller repeats it until `next` is `len`.
///
/// # Safety
///
/// `data` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them during the call.
/// `out` is null or may be written. Memory that a step lends is not read after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_next(
    handle: u64,
    data: *const u8,
    len: u64,
    start: u64,
    out: *mut CwStep,
) -> i32 {
    // SAFETY: the caller promises it; without a place for a line one step is written.
    unsafe { take(handle, data, len, start, out, ptr::null_mut()) }
}

/// Takes a step as [`cw_buffer_next`] does; if that is `CW_CARRY`, and something of the chunk is left, also the step after
/// it, with the carried line still lent. Returns the status of the first, plus 8 times one more than the status of the
/// second if there is one. Most chunks of a stream take two steps.
///
/// # Safety
///
/// As of [`cw_buffer_next`].
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_next_two(
    handle: u64,
    data: *const u8,
    len: u64,
    start: u64,
    out: *mut CwSteps,
) -> i32 {
    if out.is_null() {
        return CW_ERROR_ARGUMENT;
    }
    // SAFETY: not null, and the caller promises that all of it may be written: two steps, and so many bytes.
    unsafe {
        let line = ptr::addr_of_mut!((*out).line).cast();
        take(
            handle,
            data,
            len,
            start,
            ptr::addr_of_mut!((*out).steps).cast(),
            line,
        )
    }
}

/// What [`cw_buffer_next`] and [`cw_buffer_next_two`] do.
///
/// # Safety
///
/// As of the one or the other: `line` is null, or two steps may be written to `out` and [`CW_LINE_BYTES`] to `line`.
unsafe fn take(
    handle: u64,
    data: *const u8,
    len: u64,
    start: u64,
    out: *mut CwStep,
    line: *mut u8,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let data = unsafe { bytes(data, len) }?;
        let start = usize::try_from(start).map_err(|_| CW_ERROR_ARGUMENT)?;
        let rest = data.get(start..).ok_or(CW_ERROR_ARGUMENT)?;
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        BUFFERS.with(
            handle,
            |Lines {
                 buffer,
                 sieve,
                 taken,
             }| {
                let next = match sieve {
                    Some(sieve) => sift::next(buffer, sieve, rest),
                    None => buffer.next(rest),
                };
                let Next { consumed, step } = next.map_err(|_| CW_ERROR_MEMORY)?;
                *taken += consumed as u64;
                let next = start + consumed;
                if let Step::Carry { line: lent, .. } | Step::Sifted { block: lent, .. } = step {
                    if !line.is_null() && lent.len() <= CW_LINE_BYTES {
                        // SAFETY: not null, so the caller promises that so many may be written; its memory is not the buffer's.
                        unsafe { line.copy_from_nonoverlapping(lent.as_ptr(), lent.len()) };
                    }
                }
                let (status, step) = CwStep::new(step, next);
                // SAFETY: not null, and the caller promises that it may be written.
                unsafe { out.write(step) };
                if line.is_null() || status != CW_CARRY || next == data.len() {
                    return Ok(status);
                }
                // Without memory nothing was consumed, and the next call says so.
                let Ok(Next { consumed, step }) = buffer.follow(&data[next..]) else {
                    return Ok(status);
                };
                *taken += consumed as u64;
                let (second, step) = CwStep::new(step, next + consumed);
                // SAFETY: as above, and the caller promises a second one.
                unsafe { out.add(1).write(step) };
                Ok(status + 8 * (second + 1))
            },
        )?
    })
}

/// Ends the stream: lends the last line if it has no LF (`CW_CARRY` or `CW_TOO_LONG`). The buffer then is at the
/// start of a new stream.
///
/// # Safety
///
/// `out` is null or may be written. Memory that the step lends is not read after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_close(handle: u64, out: *mut CwStep) -> i32 {
    guard(|| {
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        BUFFERS.with(handle, |Lines { buffer, sieve, .. }| {
            let last = match sieve {
                Some(sieve) => sift::close(buffer, sieve),
                None => buffer.close(),
            };
            let (status, step) = CwStep::new(last.map_err(|_| CW_ERROR_MEMORY)?, 0);
            // SAFETY: not null, and the caller promises that it may be written.
            unsafe { out.write(step) };
            Ok(status)
        })?
    })
}

/// Lends the unfinished line as far as it has come: `CW_CARRY`, or `CW_NOTHING` if there is none. `CW_TOO_LONG` if it is
/// being dropped; then only its length is told. It remains unfinished.
///
/// # Safety
///
/// `out` is null or may be written. Memory that the step lends is not read after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_unfinished(handle: u64, out: *mut CwStep) -> i32 {
    guard(|| {
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        BUFFERS.with(handle, |lines| {
            let (status, line, length) = match lines.buffer.unfinished() {
                Ok([]) => (CW_NOTHING, &[][..], 0),
                Ok(line) => (CW_CARRY, line, line.len() as u64),
                Err(length) => (CW_TOO_LONG, &[][..], length),
            };
            let step = CwStep {
                lent: line.as_ptr(),
                bytes: line.len() as u64,
                next: 0,
                offset: 0,
                line_number: 0,
                lines: 0,
                defects: 0,
                length,
            };
            // SAFETY: not null, and the caller promises that it may be written.
            unsafe { out.write(step) };
            Ok(status)
        })?
    })
}

/// Writes where in the stream the first `count` lines of the block that was lent last by `CW_SIFTED` began: of each its offset in
/// bytes and its number. `CW_ERROR_ARGUMENT` if they are fewer.
///
/// # Safety
///
/// `out` is null or twice `count` numbers may be written there.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_places(handle: u64, out: *mut u64, count: u64) -> i32 {
    guard(|| {
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let count = usize::try_from(count).map_err(|_| CW_ERROR_ARGUMENT)?;
        BUFFERS.with(handle, |lines| {
            let places = lines.sieve.as_ref().map_or(&[][..], |sieve| sieve.places());
            let places = places.get(..count).ok_or(CW_ERROR_ARGUMENT)?;
            for (index, place) in places.iter().enumerate() {
                // SAFETY: not null, and the caller promises that so many may be written.
                unsafe {
                    out.add(2 * index).write(place.offset);
                    out.add(2 * index + 1).write(place.line_number);
                }
            }
            Ok(CW_NOTHING)
        })?
    })
}

/// Counts the work that a buffer has done and the memory that it holds.
///
/// # Safety
///
/// `out` is null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_stats(handle: u64, out: *mut CwStats) -> i32 {
    guard(|| {
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let stats = BUFFERS.with(
            handle,
            |Lines {
                 buffer,
                 sieve,
                 taken,
             }| {
                let stats = buffer.stats();
                CwStats {
                    searched: stats.searched,
                    copied: stats.copied,
                    held: stats.held + sieve.as_ref().map_or(0, |sieve| sieve.held() as u64),
                    skipped: sieve.as_ref().map_or(0, |sieve| sieve.skipped),
                    merged: sieve.as_ref().map_or(0, |sieve| sieve.merged),
                    taken: *taken,
                }
            },
        )?;
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { out.write(stats) };
        Ok(CW_NOTHING)
    })
}

/// Checks the complete lines at the start of `len` bytes at `data`, as every block is checked. With `plain` not 0, by
/// the version that is only there to be compared with.
///
/// # Safety
///
/// `data` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them during the call.
/// `out` is null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_frame_check(
    data: *const u8,
    len: u64,
    plain: u32,
    out: *mut CwFrame,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let data = unsafe { bytes(data, len) }?;
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let check = if plain == 0 {
            frame::check
        } else {
            frame::check_plain
        };
        let found = check(data, usize::MAX);
        let found = CwFrame {
            lines: found.lines as u64,
            bytes: found.bytes as u64,
            defects: found.defects.into(),
        };
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { out.write(found) };
        Ok(CW_NOTHING)
    })
}

/// Finds the kinds of the lines of `len` bytes at `data`, from byte `start` of it on: `ids` gets one byte for each line, which
/// is the index of its kind in `kinds`. Stops when either is full; the caller repeats it until `next` is `len`. With
/// `plain` not 0, by the version that is only there to be compared with. See `peek`.
///
/// # Safety
///
/// `data` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them during the call. `ids` is null
/// or `most_lines` bytes may be written there, `kinds` is null or `most_kinds` structs may be, `out` is null or may be
/// written.
#[no_mangle]
pub unsafe extern "C" fn cw_peek_lines(
    data: *const u8,
    len: u64,
    start: u64,
    plain: u32,
    ids: *mut u8,
    most_lines: u64,
    kinds: *mut CwKind,
    most_kinds: u64,
    out: *mut CwPeeked,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let data = unsafe { bytes(data, len) }?;
        let start = usize::try_from(start).map_err(|_| CW_ERROR_ARGUMENT)?;
        let rest = data.get(start..).ok_or(CW_ERROR_ARGUMENT)?;
        // SAFETY: the caller promises it.
        let ids = unsafe { bytes_mut(ids, most_lines) }?;
        if kinds.is_null() || out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let mut found = [KindSpans::default(); MOST_KINDS];
        let most_kinds =
            usize::try_from(most_kinds).map_or(MOST_KINDS, |most| most.min(MOST_KINDS));
        let level = if plain == 0 {
            Level::Fast
        } else {
            Level::Plain
        };
        let peeked = peek_lines(rest, level, ids, &mut found[..most_kinds]);
        for (index, kind) in found[..peeked.kinds].iter().enumerate() {
            let tags = [kind.name, kind.subtype, kind.detail];
            let kind = CwKind {
                start: tags.map(|tag| tag.map_or(0, |tag| (start + tag.start) as u64)),
                bytes: tags.map(|tag| tag.map_or(u64::MAX, |tag| tag.len as u64)),
            };
            // SAFETY: not null, and the caller promises that so many may be written.
            unsafe { kinds.add(index).write(kind) };
        }
        let peeked = CwPeeked {
            lines: peeked.lines as u64,
            kinds: peeked.kinds as u64,
            next: (start + peeked.bytes) as u64,
        };
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { out.write(peeked) };
        Ok(CW_NOTHING)
    })
}

/// Writes where the first `count` lines of `len` bytes at `data` begin. `CW_ERROR_ARGUMENT` if they are fewer.
///
/// # Safety
///
/// `data` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them during the call.
/// `starts` is null or `count` numbers may be written there.
#[no_mangle]
pub unsafe extern "C" fn cw_line_starts(
    data: *const u8,
    len: u64,
    starts: *mut u64,
    count: u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let data = unsafe { bytes(data, len) }?;
        if starts.is_null() || !starts.is_aligned() || count > len {
            return Err(CW_ERROR_ARGUMENT);
        }
        // SAFETY: not null, aligned, and the caller promises that so many may be written; `count` is at most `len`,
        // which is the length of a slice, and eight times that is far from wrapping around on 64 bits.
        let starts = unsafe {
            slice::from_raw_parts_mut(
                starts,
                usize::try_from(count).map_err(|_| CW_ERROR_ARGUMENT)?,
            )
        };
        if frame::line_starts(data, starts) {
            Ok(CW_NOTHING)
        } else {
            Err(CW_ERROR_ARGUMENT)
        }
    })
}

/// Makes a drain of a duplicate of the descriptor `fd`. `limit` is the most bytes of its file for `CW_OVERFLOW_SPILL`,
/// which is made in the directory whose name is the `directory_len` bytes at `directory`; and the bytes to keep for
/// `CW_OVERFLOW_KEEP_LAST`.
///
/// # Safety
///
/// `directory` is null with `directory_len` 0, or so many bytes may be read there. `out` is null or may be written.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub unsafe extern "C" fn cw_drain_new(
    fd: i32,
    overflow: u32,
    limit: u64,
    directory: *const u8,
    directory_len: u64,
    out: *mut u64,
) -> i32 {
    on_linux!({
        use std::os::unix::ffi::OsStrExt;
        // SAFETY: the caller promises it.
        let directory = unsafe { bytes(directory, directory_len) }?;
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let mode = match overflow {
            CW_OVERFLOW_PAUSE => Mode::Pause,
            CW_OVERFLOW_ERROR => Mode::Error,
            CW_OVERFLOW_SPILL => Mode::Spill(limit, std::ffi::OsStr::from_bytes(directory).into()),
            CW_OVERFLOW_KEEP_LAST => {
                Mode::KeepLast(usize::try_from(limit).map_err(|_| CW_ERROR_ARGUMENT)?)
            }
            _ => return Err(CW_ERROR_ARGUMENT),
        };
        if !watch_forks() {
            return Err(CW_ERROR_MEMORY);
        }
        let drain = Drain::new(host(), borrow(fd)?, mode).map_err(system)?;
        let handle = DRAINS.insert(drain)?;
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { out.write(handle) };
        Ok(CW_NOTHING)
    })
}

/// Closes a drain: its descriptors, and what is queued.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub extern "C" fn cw_drain_free(handle: u64) -> i32 {
    on_linux!({
        DRAINS
            .remove(handle)
            .map(|()| CW_NOTHING)
            .map_err(Into::into)
    })
}

/// Reads the next bytes of a stream, at most `len`, and returns how many; `CW_NOTHING` if there are none now.
///
/// # Safety
///
/// `out` is null, or `len` bytes may be written there, and nobody else reads or writes them during the call.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub unsafe extern "C" fn cw_drain_read(handle: u64, out: *mut u8, len: u64) -> i32 {
    on_linux!({
        // SAFETY: the caller promises it.
        let out = unsafe { bytes_mut(out, len) }?;
        let most = out.len().min(drain::CHUNK);
        if most == 0 {
            return Err(CW_ERROR_ARGUMENT);
        }
        let (got, notes) = DRAINS.with(handle, |drain| drain.read(&mut out[..most]))??;
        let status = match got {
            // At most CHUNK.
            Got::Bytes(bytes) => i32::try_from(bytes).map_err(|_| CW_ERROR_ARGUMENT)?,
            Got::Nothing => CW_NOTHING,
            Got::End => CW_DRAIN_END,
            Got::Failed(number) => return Err(CW_ERROR_SYSTEM - number),
            Got::Budget => return Err(CW_ERROR_BUDGET),
        };
        let paused = i32::from(notes.paused) * CW_DRAIN_PAUSED;
        let watched = i32::from(notes.watched) * CW_DRAIN_WATCHED;
        Ok(status + paused + watched)
    })
}

/// Returns the number of the descriptor that is readable when a read has something to give. It belongs to the drain.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub extern "C" fn cw_drain_fileno(handle: u64) -> i32 {
    on_linux!({ Ok(DRAINS.with(handle, |drain| drain.fileno())??) })
}

/// That descriptor also becomes readable when `fd` does, once.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub extern "C" fn cw_drain_watch(handle: u64, fd: i32) -> i32 {
    on_linux!({
        let fd = borrow(fd)?;
        DRAINS
            .with(handle, |drain| drain.watch(fd))??
            .map(|()| CW_NOTHING)
            .map_err(system)
    })
}

/// Throws away what is queued, and everything that comes.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub extern "C" fn cw_drain_discard(handle: u64) -> i32 {
    on_linux!({
        DRAINS.with(handle, |drain| drain.discard())??;
        Ok(CW_NOTHING)
    })
}

/// Copies the last bytes of a stream, at most `len`, and writes how many to `written`.
///
/// # Safety
///
/// `out` is null, or `len` bytes may be written there, and nobody else reads or writes them during the call.
/// `written` is null or may be written.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub unsafe extern "C" fn cw_drain_tail(
    handle: u64,
    out: *mut u8,
    len: u64,
    written: *mut u64,
) -> i32 {
    on_linux!({
        // SAFETY: the caller promises it.
        let out = unsafe { bytes_mut(out, len) }?;
        if written.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let bytes = DRAINS.with(handle, |drain| drain.tail(out))??;
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { written.write(bytes as u64) };
        Ok(CW_NOTHING)
    })
}

/// Counts what a drain has done.
///
/// # Safety
///
/// `out` is null or may be written.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub unsafe extern "C" fn cw_drain_stats(handle: u64, out: *mut CwDrainStats) -> i32 {
    on_linux!({
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let stats = DRAINS.with(handle, |drain| drain.stats())??;
        let stats = CwDrainStats {
            read: stats.read,
            rescued: stats.rescued,
            rescues: stats.rescues,
            pauses: stats.pauses,
            spilled: stats.spilled,
            spill_errors: stats.spill_errors,
            discarded: stats.discarded,
            queued: stats.queued,
            in_file: stats.in_file,
            paused: stats.paused.into(),
        };
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { out.write(stats) };
        Ok(CW_NOTHING)
    })
}

/// Ends the rescuer for good, as the process is about to end, and waits for it, at most so long. Drains go on, but only
/// their readers read. Returns 0 if it has ended, else 1.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub extern "C" fn cw_drain_stop(milliseconds: u32) -> i32 {
    on_linux!({
        let ended = host().stop(std::time::Duration::from_millis(milliseconds.into()));
        Ok(i32::from(!ended))
    })
}

/// Sets the bytes that the drains of this process may queue in memory, all together.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub extern "C" fn cw_budget_set(limit: u64) -> i32 {
    on_linux!({
        if !watch_forks() {
            return Err(CW_ERROR_MEMORY);
        }
        host().set_limit(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(CW_NOTHING)
    })
}

/// Counts bytes that the caller keeps for the reader of a drain, as if they were queued there; a negative number gives
/// them back. What is given back must have been counted before, in this process.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub extern "C" fn cw_budget_count(bytes: i64) -> i32 {
    on_linux!({
        if !watch_forks() {
            return Err(CW_ERROR_MEMORY);
        }
        let number = usize::try_from(bytes.unsigned_abs()).map_err(|_| CW_ERROR_ARGUMENT)?;
        if bytes < 0 {
            host().give_back_kept(number);
        } else {
            host().keep(number);
        }
        Ok(CW_NOTHING)
    })
}

/// Writes the bytes that the drains of this process may queue, and those that they have queued.
///
/// # Safety
///
/// `limit` and `queued` are null or may be written.
#[no_mangle]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub unsafe extern "C" fn cw_budget(limit: *mut u64, queued: *mut u64) -> i32 {
    on_linux!({
        if limit.is_null() || queued.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        if !watch_forks() {
            return Err(CW_ERROR_MEMORY);
        }
        // SAFETY: neither is null, and the caller promises that both may be written.
        unsafe {
            limit.write(host().limit() as u64);
            queued.write(host().queued() as u64);
        }
        Ok(CW_NOTHING)
    })
}

#[cfg(target_os = "linux")]
impl From<Broken> for i32 {
    fn from(_: Broken) -> Self {
        CW_ERROR_PANIC
    }
}

#[cfg(target_os = "linux")]
#[allow(clippy::needless_pass_by_value)] // For map_err.
fn system(error: std::io::Error) -> i32 {
    CW_ERROR_SYSTEM - error.raw_os_error().unwrap_or(libc::EIO)
}

/// A descriptor for the length of a call. That its number may stand for nothing, or for something else by now, is
/// for the system to refuse: no memory depends on it.
#[cfg(target_os = "linux")]
fn borrow(fd: i32) -> Result<std::os::fd::BorrowedFd<'static>, i32> {
    if fd < 0 {
        return Err(CW_ERROR_SYSTEM - libc::EBADF);
    }
    // SAFETY: not -1, and it is not kept: what is kept of it is a duplicate, or a registration in an epoll instance.
    Ok(unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) })
}

/// What the drains of this process share. Null until it is needed.
#[cfg(target_os = "linux")]
static HOST: std::sync::atomic::AtomicPtr<drain::Host> =
    std::sync::atomic::AtomicPtr::new(ptr::null_mut());

/// The budget of the next [`HOST`]: a forked child keeps that of its parent.
#[cfg(target_os = "linux")]
static LIMIT: std::sync::atomic::AtomicUsize =
    std::sync::atomic::AtomicUsize::new(drain::DEFAULT_LIMIT);

/// Made when first called, by whichever thread. It is never freed while this process can use it.
#[cfg(target_os = "linux")]
fn host() -> &'static drain::Host {
    use std::sync::atomic::Ordering::{AcqRel, Acquire};
    let mut host = HOST.load(Acquire);
    if host.is_null() {
        let new = Box::into_raw(Box::new(drain::Host::new(LIMIT.load(Acquire), spawn)));
        host = match HOST.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: it is from `into_raw`, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: it is from `into_raw`, and never freed.
    unsafe { &*host }
}

/// Starts a thread that takes no signals: a signal that interrupts the rescuer would not interrupt what Python's
/// main thread waits in. A thread inherits the mask of the one that starts it, so it is never without.
#[cfg(target_os = "linux")]
fn spawn(body: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigfillset` fills in the first set, and `pthread_sigmask` the second one unless it fails.
    let blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let spawned = std::thread::Builder::new()
        .name("cw-drain".into())
        .stack_size(256 * 1024)
        .spawn(body);
    if blocked {
        // SAFETY: it was filled in.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    spawned.map(drop)
}

impl CwStep {
    fn new(step: Step<'_>, next: usize) -> (i32, Self) {
        let nothing = Self {
            lent: ptr::null(),
            bytes: 0,
            next: next as u64,
            offset: 0,
            line_number: 0,
            lines: 0,
            defects: 0,
            length: 0,
        };
        let of = |lent: *const u8, bytes: usize, lines: usize, place: Place, defects: u32| Self {
            lent,
            bytes: bytes as u64,
            offset: place.offset,
            line_number: place.line_number,
            lines: lines as u64,
            defects: defects.into(),
            ..nothing
        };
        match step {
            Step::Nothing => (CW_NOTHING, nothing),
            Step::Carry {
                line,
                place,
                defects,
            } => (CW_CARRY, of(line.as_ptr(), line.len(), 1, place, defects)),
            Step::Body {
                end,
                lines,
                place,
                defects,
            } => (CW_BODY, of(ptr::null(), end, lines, place, defects)),
            Step::Sifted {
                block,
                lines,
                place,
                defects,
            } => (
                CW_SIFTED,
                of(block.as_ptr(), block.len(), lines, place, defects),
            ),
            Step::TooLong {
                head,
                length,
                place,
            } => {
                let step = Self {
                    length,
                    ..of(head.as_ptr(), head.len(), 1, place, 0)
                };
                (CW_TOO_LONG, step)
            }
        }
    }
}

/// Lets every forked child learn its pid, so that handles need not ask for it, and forget the drains of its parent.
/// Returns false if there is no memory for that. Threads that get here together register twice, which is harmless; a
/// lock would be left locked in a child if another thread forked meanwhile.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn watch_forks() -> bool {
    extern "C" fn in_child() {
        crate::handle::remember_pid();
        #[cfg(target_os = "linux")]
        {
            use std::sync::atomic::Ordering::AcqRel;
            let parents = HOST.swap(ptr::null_mut(), AcqRel);
            // SAFETY: null, or from `into_raw` and never freed. Only an atomic of it is read: a lock of it may be
            // held for ever.
            if let Some(parents) = unsafe { parents.as_ref() } {
                LIMIT.store(parents.limit(), std::sync::atomic::Ordering::Release);
            }
        }
    }
    if !crate::handle::pid_is_remembered() {
        // SAFETY: `in_child` lives as long as the process, as this library is never unloaded. In the child of a process
        // with threads only async-signal-safe functions may be called: getpid is one, and atomics are no calls at all.
        if unsafe { libc::pthread_atfork(None, None, Some(in_child)) } != 0 {
            return false;
        }
        crate::handle::remember_pid();
    }
    true
}

/// Elsewhere handles ask for the pid each time.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn watch_forks() -> bool {
    true
}

/// Runs the body of an entry point. A panic in it becomes a status; a buffer that was in use is refused from then on
/// ([`Refused::Broken`]), so it does not matter in what state the panic left it.
fn guard(body: impl FnOnce() -> Result<i32, i32>) -> i32 {
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or(Err(CW_ERROR_PANIC))
        .unwrap_or_else(|error| error)
}

/// # Safety
///
/// `data` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them as long as `'a` lasts.
unsafe fn bytes<'a>(data: *const u8, len: u64) -> Result<&'a [u8], i32> {
    if len == 0 {
        return Ok(&[]);
    }
    let len = isize::try_from(len)
        .map_err(|_| CW_ERROR_ARGUMENT)?
        .unsigned_abs();
    if data.is_null() {
        return Err(CW_ERROR_ARGUMENT);
    }
    // SAFETY: not null, not longer than the address space, and the caller promises the rest. A byte has no alignment.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

/// # Safety
///
/// As of [`bytes`], but they may be written, and nobody reads them either.
unsafe fn bytes_mut<'a>(data: *mut u8, len: u64) -> Result<&'a mut [u8], i32> {
    if len == 0 {
        return Ok(&mut []);
    }
    let len = isize::try_from(len)
        .map_err(|_| CW_ERROR_ARGUMENT)?
        .unsigned_abs();
    if data.is_null() {
        return Err(CW_ERROR_ARGUMENT);
    }
    // SAFETY: as in `bytes`.
    Ok(unsafe { slice::from_raw_parts_mut(data, len) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_buffer() -> u64 {
        let mut handle = 0;
        // SAFETY: `out` may be written.
        assert_eq!(
            unsafe { cw_buffer_new(100, 0, &raw mut handle) },
            CW_NOTHING
        );
        handle
    }

    fn next(handle: u64, data: &[u8]) -> (i32, CwStep) {
        let (_, mut step) = CwStep::new(Step::Nothing, 0);
        // SAFETY: `data` may be read, `out` may be written.
        let status =
            unsafe { cw_buffer_next(handle, data.as_ptr(), data.len() as u64, 0, &raw mut step) };
        (status, step)
    }

    #[test]
    fn a_panic_becomes_a_status() {
        assert_eq!(guard(|| panic!("provoked by a test")), CW_ERROR_PANIC);
        let handle = new_buffer();
        assert_eq!(
            guard(|| BUFFERS.with(handle, |_| panic!("provoked by a test"))?),
            CW_ERROR_PANIC
        );
        assert_eq!(next(handle, b"{}\n").0, CW_ERROR_PANIC);
        assert_eq!(cw_buffer_free(handle), CW_NOTHING);
        assert_eq!(next(handle, b"{}\n").0, CW_ERROR_STALE);
    }

    #[test]
    fn wrong_pointers_and_ranges_are_a_status() {
        let handle = new_buffer();
        let (_, mut step) = CwStep::new(Step::Nothing, 0);
        let data = b"{}\n".as_ptr();
        // SAFETY: each pointer is null or good for its length; lengths out of range must be refused before they are used.
        unsafe {
            assert_eq!(cw_buffer_new(1, 0, ptr::null_mut()), CW_ERROR_ARGUMENT);
            assert_eq!(
                cw_buffer_next(handle, ptr::null(), 1, 0, &raw mut step),
                CW_ERROR_ARGUMENT
            );
            assert_eq!(
                cw_buffer_next(handle, data, u64::MAX, 0, &raw mut step),
                CW_ERROR_ARGUMENT
            );
            assert_eq!(
                cw_buffer_next(handle, data, 3, 4, &raw mut step),
                CW_ERROR_ARGUMENT
            );
            assert_eq!(
                cw_buffer_next(handle, data, 3, 0, ptr::null_mut()),
                CW_ERROR_ARGUMENT
            );
            assert_eq!(
                cw_buffer_next(handle, ptr::null(), 0, 0, &raw mut step),
                CW_NOTHING
            );
            assert_eq!(cw_buffer_close(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
            assert_eq!(cw_buffer_stats(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
            assert_eq!(
                cw_frame_check(data, 3, 0, ptr::null_mut()),
                CW_ERROR_ARGUMENT
            );
        }
        assert_eq!(cw_buffer_free(handle), CW_NOTHING);
    }

    #[test]
    fn two_steps_are_those_that_two_calls_take() {
        let stream = b"{\"a\":1}\n{}\n[]\n{\"a\n\n{}\n{";
        for cut in 0..=stream.len() {
            for limit in [3, 100] {
                let mut steps = [Vec::new(), Vec::new()];
                for (two, steps) in steps.iter_mut().enumerate() {
                    let mut handle = 0;
                    // SAFETY: the pointers are to live memory of that length.
                    assert_eq!(
                        unsafe { cw_buffer_new(limit, 0, &raw mut handle) },
                        CW_NOTHING
                    );
                    for chunk in [&stream[..cut], &stream[cut..]] {
                        let mut at = 0;
                        while at < chunk.len() as u64 {
                            // SAFETY: all zero is a valid value of numbers and pointers.
                            let mut out: CwSteps = unsafe { std::mem::zeroed() };
                            let (data, len) = (chunk.as_ptr(), chunk.len() as u64);
                            // SAFETY: the pointers are to live memory of that length.
                            let status = unsafe {
                                if two == 1 {
                                    cw_buffer_next_two(handle, data, len, at, &raw mut out)
                                } else {
                                    cw_buffer_next(handle, data, len, at, out.steps.as_mut_ptr())
                                }
                            };
                            assert!(status >= 0);
                            let [first, second] = out.steps;
                            if two == 1 && status % 8 == CW_CARRY {
                                // SAFETY: what is lent is so until the next call.
                                let lent = unsafe { bytes(first.lent, first.bytes) }.unwrap();
                                assert_eq!(&out.line[..lent.len()], lent);
                            }
                            let second = (status / 8 > 0).then(|| (status / 8 - 1, second));
                            for (status, step) in
                                [Some((status % 8, first)), second].into_iter().flatten()
                            {
                                at = step.next;
                                if status != CW_NOTHING {
                                    // SAFETY: what is lent is so until the next call, also by the first of two steps.
                                    let lent = (!step.lent.is_null()).then(|| unsafe {
                                        slice::from_raw_parts(
                                            step.lent,
                                            usize::try_from(step.bytes).unwrap(),
                                        )
                                        .to_vec()
                                    });
                                    steps.push((
                                        status,
                                        lent,
                                        step.bytes,
                                        step.next,
                                        step.offset,
                                        step.line_number,
                                        step.lines,
                                        step.defects,
                                        step.length,
                                    ));
                                }
                            }
                        }
                    }
                    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
                }
                assert_eq!(steps[0], steps[1], "cut at {cut}");
                assert!(!steps[0].is_empty());
            }
        }
    }

    #[test]
    fn line_starts_are_written_or_refused() {
        let data = b"{}\n{}\n";
        let mut starts = [7_u64; 2];
        let written = starts.as_mut_ptr();
        // SAFETY: the pointers are to live memory of that length, or null.
        unsafe {
            assert_eq!(cw_line_starts(data.as_ptr(), 6, written, 2), CW_NOTHING);
            assert_eq!(
                cw_line_starts(data.as_ptr(), 3, written, 2),
                CW_ERROR_ARGUMENT
            );
            assert_eq!(
                cw_line_starts(data.as_ptr(), 6, ptr::null_mut(), 2),
                CW_ERROR_ARGUMENT
            );
            assert_eq!(
                cw_line_starts(data.as_ptr(), 6, written, u64::MAX),
                CW_ERROR_ARGUMENT
            );
            assert_eq!(
                cw_line_starts(ptr::null(), 6, written, 2),
                CW_ERROR_ARGUMENT
            );
        }
        assert_eq!(starts, [0, 3]);
    }

    #[test]
    fn steps_cross_the_border_whole() {
        let handle = new_buffer();
        let (status, step) = next(handle, b"{}\n[]\n{\"a\"");
        assert_eq!(
            (status, step.bytes, step.next, step.lines, step.defects),
            (CW_BODY, 6, 10, 2, 1)
        );
        assert_eq!(
            (step.offset, step.line_number, step.lent),
            (0, 1, ptr::null())
        );
        let (status, step) = next(handle, b":\xff}\n{");
        assert_eq!(
            (status, step.bytes, step.next, step.lines, step.defects),
            (CW_CARRY, 8, 4, 1, 2)
        );
        assert_eq!((step.offset, step.line_number), (6, 3));
        // SAFETY: the step lends so many bytes until the next call.
        assert_eq!(
            unsafe { slice::from_raw_parts(step.lent, 8) },
            b"{\"a\":\xff}\n"
        );
        assert_eq!(next(handle, &[b'x'; 101]).0, CW_NOTHING);
        let (status, step) = next(handle, b"\n");
        assert_eq!(
            (
                status,
                step.bytes,
                step.length,
                step.offset,
                step.line_number
            ),
            (CW_TOO_LONG, 101, 101, 14, 4)
        );
        assert_eq!(cw_buffer_free(handle), CW_NOTHING);
    }
}
