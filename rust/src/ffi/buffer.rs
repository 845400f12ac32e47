//! Line buffers, with or without a filter, by their handles.

use std::ptr;

use super::forks::watch_forks;
use super::step::{CwStep, CwSteps, CW_CARRY, CW_LINE_BYTES, CW_TOO_LONG};
use super::{bytes, guard, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY, CW_NOTHING};
use crate::ffi::handle::Table;
use crate::filter::Filter;
use crate::lines::buffer::{Bom, Buffer};
use crate::lines::step::Step;
use crate::simd::Level;

/// An option of a filter: only lines of the named kinds are let through.
pub const CW_SIEVE_ONLY: u32 = 1;
/// An option of a filter: deltas are merged.
pub const CW_SIEVE_COALESCE: u32 = 2;
/// An option of a filter: no vectors are used. Tests compare both.
pub const CW_SIEVE_PLAIN: u32 = 4;

/// Work done by a buffer since it was made, and the memory it holds now.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwStats {
    /// Bytes searched for a line feed.
    pub searched: u64,
    /// Bytes copied into the buffer, and moved when it grew.
    pub copied: u64,
    /// Bytes of memory held, lent memory and the filter's included.
    pub held: u64,
    /// Lines that the filter skipped.
    pub skipped: u64,
    /// Lines that the filter made part of an earlier line.
    pub merged: u64,
    /// Bytes of all chunks that were consumed.
    pub taken: u64,
}

/// What a buffer's handle stands for.
struct Lines {
    buffer: Buffer,
    filter: Option<Box<Filter>>,
    /// Bytes of all chunks that were consumed.
    taken: u64,
}

static BUFFERS: Table<Lines> = Table::new();

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
            filter: None,
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
/// `len` bytes of UTF-8, the names of kinds, with a line feed between two. See `filter`.
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
        let coalesce = options & CW_SIEVE_COALESCE != 0;
        let filter = if coalesce && only.is_none() {
            Filter::earning(level)
        } else {
            Filter::new(only, coalesce, level)
        };
        BUFFERS.with(handle, |lines| lines.filter = Some(Box::new(filter)))?;
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
                 filter,
                 taken,
             }| {
                let next = match filter {
                    Some(filter) => filter.next(buffer, rest),
                    None => buffer.next(rest),
                };
                let (consumed, step) = next.map_err(|_| CW_ERROR_MEMORY)?;
                *taken += consumed as u64;
                let at = start + consumed;
                if let Step::Carry { line: lent, .. } | Step::Filtered { block: lent, .. } = step {
                    // SAFETY: the caller promises it.
                    unsafe { copy_short(lent, line) };
                }
                let (status, step) = CwStep::new(step, at);
                // SAFETY: not null, and the caller promises that it may be written.
                unsafe { out.write(step) };
                if line.is_null() || status != CW_CARRY || at == data.len() {
                    return Ok(status);
                }
                // Without memory nothing is consumed, and the next call says so; it also takes lines that are to be merged.
                let following = match filter {
                    Some(filter) => filter.follow(buffer, &data[at..]),
                    None => buffer.follow(&data[at..]),
                };
                let Ok((consumed @ 1.., step)) = following else {
                    return Ok(status);
                };
                *taken += consumed as u64;
                let (second, step) = CwStep::new(step, at + consumed);
                // SAFETY: as above, and the caller promises a second one.
                unsafe { out.add(1).write(step) };
                Ok(status + 8 * (second + 1))
            },
        )?
    })
}

/// Copies what is lent to `line`, if it fits there.
///
/// # Safety
///
/// `line` is null, or [`CW_LINE_BYTES`] may be written there, and it is not memory of a buffer.
unsafe fn copy_short(lent: &[u8], line: *mut u8) {
    if !line.is_null() && lent.len() <= CW_LINE_BYTES {
        // SAFETY: not null, so the caller promises that so many may be written, and that the two do not overlap.
        unsafe { line.copy_from_nonoverlapping(lent.as_ptr(), lent.len()) };
    }
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
        BUFFERS.with(handle, |Lines { buffer, filter, .. }| {
            let last = match filter {
                Some(filter) => filter.close(buffer),
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
                length,
                ..CwStep::nothing(0)
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
            let places = lines.filter.as_ref().map_or(&[][..], |it| it.places());
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
                 filter,
                 taken,
             }| {
                let stats = buffer.stats();
                CwStats {
                    searched: stats.searched,
                    copied: stats.copied,
                    held: stats.held + filter.as_ref().map_or(0, |filter| filter.held() as u64),
                    skipped: filter.as_ref().map_or(0, |filter| filter.skipped),
                    merged: filter.as_ref().map_or(0, |filter| filter.merged),
                    taken: *taken,
                }
            },
        )?;
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { out.write(stats) };
        Ok(CW_NOTHING)
    })
}

#[cfg(test)]
mod tests;
