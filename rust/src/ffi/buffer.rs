//! The C functions of line buffers (`cw_buffer_…`), with or without a filter.
//!
//! A caller passes each chunk to [`cw_buffer_next`] until it is consumed, and reads the lines of each step. At the end of the
//! stream [`cw_buffer_close`] returns the last line if it has no LF. The steps are described in [`step`](super::step).

use std::collections::TryReserveError;
use std::ptr;

use super::forks::watch_forks;
use super::step::{CwStep, CwSteps, CW_LINE_BYTES};
use super::{bytes, guard, place, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY, CW_NOTHING};
use crate::ffi::handle::Table;
use crate::filter::Filter;
use crate::lines::buffer::{Bom, Buffer};
use crate::lines::step::{Place, Position, Step};
use crate::simd::Level;

/// An option of a buffer: keep a byte order mark at the start of the stream as a part of the first line. Without this option it is
/// skipped.
pub const CW_KEEP_BOM: u32 = 1;
/// An option of a buffer: let only lines of the named kinds through.
pub const CW_FILTER_ONLY: u32 = 2;
/// An option of a buffer: merge deltas of the same content block.
pub const CW_FILTER_COALESCE: u32 = 4;
/// An option of a buffer with a filter: use no vector instructions. Tests compare the results with those of the vector code.
pub const CW_FILTER_PLAIN: u32 = 8;

/// The work that a buffer has done since it was made, and the memory that it holds now.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwStats {
    /// Bytes searched for a line feed.
    pub searched: u64,
    /// Bytes copied into the buffer, and bytes moved when it grew.
    pub copied: u64,
    /// Bytes of memory held now, including lent memory and the filter's memory.
    pub held: u64,
    /// Lines that the filter skipped.
    pub skipped: u64,
    /// Lines that the filter merged into an earlier line.
    pub merged: u64,
    /// Bytes of all chunks consumed so far, over all streams of this buffer.
    pub taken: u64,
    /// The part of `taken` that belongs to earlier streams: those ended by `cw_buffer_close`.
    pub start: u64,
    /// Lines that the native reader decoded to messages.
    pub messages: u64,
    /// Those of the lines in `messages` that had unknown content.
    pub unknown: u64,
}

/// The value behind a buffer's handle.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) buffer: Buffer,
    pub(super) filter: Option<Box<Filter>>,
    pub(super) position: Position,
    /// Lines that the reader in [`python`](super::python) decoded to messages.
    pub(super) messages: u64,
    /// Those of the lines in `messages` that had unknown content.
    pub(super) unknown: u64,
}

pub(super) static BUFFERS: Table<Lines> = Table::new();

/// Makes a line buffer and writes its handle to `out`.
///
/// The buffer drops a line that has more than `max_line_bytes` before its LF. `options` is a sum of `CW_KEEP_BOM` and
/// `CW_FILTER_…`. `names` are the kinds for `CW_FILTER_ONLY`: `len` bytes of UTF-8, with a line feed between two names.
///
/// # Safety
///
/// `names` is null with `len` 0, or points to `len` readable bytes that no thread writes during the call. `out` is null or
/// writable.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_new(
    max_line_bytes: u64,
    options: u32,
    names: *const u8,
    len: u64,
    out: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees `len` readable bytes at `names`, and that `out` is null or writable.
        let (names, out) = unsafe { (bytes(names, len)?, place(out)?) };
        let names = std::str::from_utf8(names).map_err(|_| CW_ERROR_ARGUMENT)?;
        let names: Vec<&str> = names.split('\n').filter(|name| !name.is_empty()).collect();
        let has = |option| options & option != 0;
        let level = if has(CW_FILTER_PLAIN) {
            Level::Plain
        } else {
            Level::Fast
        };
        let filter = match (has(CW_FILTER_ONLY), has(CW_FILTER_COALESCE)) {
            (false, false) => None,
            (only, coalesce) => Some(Filter::new(only.then_some(&*names), coalesce, level)),
        };
        let on_bom = if has(CW_KEEP_BOM) {
            Bom::Keep
        } else {
            Bom::Skip
        };
        let max_line_bytes = usize::try_from(max_line_bytes).unwrap_or(usize::MAX);
        watch_forks();
        let handle = BUFFERS.insert(Lines {
            buffer: Buffer::new(max_line_bytes, on_bom),
            filter: filter.map(Box::new),
            position: Position::default(),
            messages: 0,
            unknown: 0,
        })?;
        out.write(handle);
        Ok(CW_NOTHING)
    })
}

/// Frees a buffer and all memory it has lent.
#[no_mangle]
pub extern "C" fn cw_buffer_free(handle: u64) -> i32 {
    guard(|| {
        BUFFERS.remove(handle)?;
        Ok(CW_NOTHING)
    })
}

/// Frees the buffer whose handle is stored at `handle`. cffi calls this as a destructor. It is one native call, so that a
/// `KeyboardInterrupt` cannot stop it halfway.
///
/// # Safety
///
/// `handle` is null or points to a readable handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_free_owned(handle: *const u64) -> i32 {
    // SAFETY: the caller guarantees that `handle` is null or readable.
    let handle = unsafe { handle.as_ref() };
    handle.map_or(CW_ERROR_ARGUMENT, |&handle| cw_buffer_free(handle))
}

/// Takes the next step through the chunk of `len` bytes at `data`, from byte `out->at` on, and returns the number of steps
/// taken: 1 or 2.
///
/// It takes a second step if the first is `CW_CARRY` and a part of the chunk is left. Most chunks consist of the end of a
/// line and of whole lines, so this saves a call for each chunk. Memory lent by the previous call is no longer valid. The
/// caller repeats the call until `next` of the last step is `len`.
///
/// # Safety
///
/// `data` is null with `len` 0, or points to `len` readable bytes that no thread writes during the call. `out` is null, or is
/// readable and writable. The caller does not read lent memory after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_next(
    handle: u64,
    data: *const u8,
    len: u64,
    out: *mut CwSteps,
) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees `len` readable bytes at `data`.
        let data = unsafe { bytes(data, len) }?;
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        // SAFETY: `out` is not null, and the caller guarantees that the whole struct is readable and writable. The three places
        // are different fields of it. Only `at` is initialised, so only `at` becomes a reference.
        let (at, steps, line) = unsafe {
            let steps = ptr::addr_of_mut!((*out).steps).cast::<CwStep>();
            let line = ptr::addr_of_mut!((*out).line).cast::<u8>();
            (&mut *ptr::addr_of_mut!((*out).at), steps, line)
        };
        let start = usize::try_from(*at).map_err(|_| CW_ERROR_ARGUMENT)?;
        let rest = data.get(start..).ok_or(CW_ERROR_ARGUMENT)?;
        BUFFERS.with(handle, |lines| {
            let is_filtered = lines.filter.is_some();
            let (consumed, step, place) =
                lines.next(rest, start == 0).map_err(|_| CW_ERROR_MEMORY)?;
            let next = start + consumed;
            *at = next as u64;
            if let Step::Carry { line: lent, .. } | Step::Filtered { block: lent, .. } = step {
                if lent.len() <= CW_LINE_BYTES {
                    // SAFETY: `line` has room for `CW_LINE_BYTES`. It belongs to the caller, so it does not overlap the buffer's
                    // memory.
                    unsafe { line.copy_from_nonoverlapping(lent.as_ptr(), lent.len()) };
                }
            }
            // SAFETY: `steps` points to two steps in the caller's struct.
            unsafe { steps.write(CwStep::new(step, next, place)) };
            if is_filtered || next == data.len() || !matches!(step, Step::Carry { .. }) {
                return Ok(1);
            }
            // Without memory the second step consumes nothing. The next call then takes it as its first step and returns
            // the error.
            let Ok((consumed @ 1.., step)) = lines.buffer.follow(&data[next..]) else {
                return Ok(1);
            };
            let place = lines.position.pass(consumed, &step);
            *at = (next + consumed) as u64;
            // SAFETY: `steps` points to two steps in the caller's struct; this is the second.
            unsafe {
                steps
                    .add(1)
                    .write(CwStep::new(step, next + consumed, place));
            };
            Ok(2)
        })?
    })
}

/// Consumes the rest of a chunk, from byte `out->at` on, and drops the lines that it completes. Without memory for an unfinished
/// line at its end, that line is lost.
///
/// # Safety
///
/// The same as for [`cw_buffer_next`].
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_drop(
    handle: u64,
    data: *const u8,
    len: u64,
    out: *mut CwSteps,
) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees `len` readable bytes at `data`.
        let data = unsafe { bytes(data, len) }?;
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        // SAFETY: `out` is not null, and the caller guarantees that it is readable and writable.
        let at = unsafe { &mut *ptr::addr_of_mut!((*out).at) };
        let start = usize::try_from(*at).map_err(|_| CW_ERROR_ARGUMENT)?;
        let mut rest = data.get(start..).ok_or(CW_ERROR_ARGUMENT)?;
        BUFFERS.with(handle, |lines| {
            *at = len;
            while !rest.is_empty() {
                let Ok((consumed @ 1.., ..)) = lines.next(rest, false) else {
                    lines.position.lose(rest);
                    break;
                };
                rest = &rest[consumed..];
            }
        })?;
        Ok(CW_NOTHING)
    })
}

impl Lines {
    /// Takes the next step through `data`. Returns the bytes that it consumed, the step, and its place in the stream. `is_start`
    /// says whether `data` is the start of a chunk.
    fn next<'a>(
        &'a mut self,
        data: &'a [u8],
        is_start: bool,
    ) -> Result<(usize, Step<'a>, Place), TryReserveError> {
        let (consumed, step) = match &mut self.filter {
            Some(filter) => filter.next(&mut self.buffer, data, is_start)?,
            None => self.buffer.next(data)?,
        };
        let place = self.position.pass(consumed, &step);
        Ok((consumed, step, place))
    }
}

/// Ends the stream. The step is the last line if it has no LF (`CW_CARRY` or `CW_TOO_LONG`), otherwise `CW_NOTHING`. After that the
/// buffer is ready for a new stream.
///
/// # Safety
///
/// `out` is null or writable. The caller does not read lent memory after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_close(handle: u64, out: *mut CwStep) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        BUFFERS.with(handle, |lines| {
            let last = match &mut lines.filter {
                Some(filter) => filter.end(&mut lines.buffer),
                None => lines.buffer.close(),
            };
            let last = last.map_err(|_| CW_ERROR_MEMORY)?;
            out.write(CwStep::new(last, 0, lines.position.end(&last)));
            Ok(CW_NOTHING)
        })?
    })
}

/// Lends the bytes of the unfinished line that have arrived so far, and leaves them in the buffer.
///
/// The step is `CW_CARRY`, or `CW_NOTHING` if no line is unfinished. If the line is already over the limit, the step is
/// `CW_TOO_LONG` and has only its length. The line is not checked for defects.
///
/// # Safety
///
/// `out` is null or writable. The caller does not read lent memory after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_unfinished(handle: u64, out: *mut CwStep) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        BUFFERS.with(handle, |lines| {
            let step = match lines.buffer.unfinished() {
                Ok([]) => Step::NOTHING,
                Ok(line) => Step::Carry { line, defects: 0 },
                Err(length) => Step::TooLong { head: &[], length },
            };
            out.write(CwStep::new(step, 0, Place::default()));
            Ok(CW_NOTHING)
        })?
    })
}

/// Writes the places in the stream of the first `count` lines of the last `CW_FILTERED` block. Each place is two numbers: the bytes
/// and the lines of the stream between the step's first line and this line. Returns `CW_ERROR_ARGUMENT` if the block has fewer
/// lines.
///
/// # Safety
///
/// `out` is null or has room for `2 * count` numbers.
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
                // SAFETY: `out` is not null, `index` is below `count`, and the caller guarantees room for `2 * count` numbers.
                unsafe {
                    out.add(2 * index).write(place.offset);
                    out.add(2 * index + 1).write(place.lines);
                }
            }
            Ok(CW_NOTHING)
        })?
    })
}

/// Writes the work that a buffer has done, and the memory that it holds.
///
/// # Safety
///
/// `out` is null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_stats(handle: u64, out: *mut CwStats) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        let stats = BUFFERS.with(handle, |lines| {
            let (stats, filter) = (lines.buffer.stats(), lines.filter.as_ref());
            CwStats {
                searched: stats.searched,
                copied: stats.copied,
                held: stats.held + filter.map_or(0, |filter| filter.held() as u64),
                skipped: filter.map_or(0, |filter| filter.skipped),
                merged: filter.map_or(0, |filter| filter.merged),
                taken: lines.position.taken,
                start: lines.position.start,
                messages: lines.messages,
                unknown: lines.unknown,
            }
        })?;
        out.write(stats);
        Ok(CW_NOTHING)
    })
}

#[cfg(test)]
mod tests;
