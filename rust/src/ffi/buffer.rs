//! Line buffers, with or without a filter, by their handles.

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

/// An option of a buffer: a byte order mark at the start of the stream belongs to the first line; otherwise it is skipped.
pub const CW_KEEP_BOM: u32 = 1;
/// An option of a buffer: only lines of the named kinds are let through.
pub const CW_FILTER_ONLY: u32 = 2;
/// An option of a buffer: deltas are merged.
pub const CW_FILTER_COALESCE: u32 = 4;
/// An option of a buffer with a filter: that uses no vectors. Tests compare both.
pub const CW_FILTER_PLAIN: u32 = 8;

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
    /// Bytes of these that came before this stream.
    pub start: u64,
    /// Lines that were read to messages without the caller.
    pub messages: u64,
    /// Lines of these with unknown content.
    pub unknown: u64,
}

/// What a buffer's handle stands for.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) buffer: Buffer,
    pub(super) filter: Option<Box<Filter>>,
    pub(super) position: Position,
    /// Lines that were read to messages by [`python`](super::python).
    pub(super) messages: u64,
    /// Lines of these with unknown content.
    pub(super) unknown: u64,
}

pub(super) static BUFFERS: Table<Lines> = Table::new();

/// Makes a line buffer with a limit on the bytes of a line (without its LF). `options` is `CW_KEEP_BOM` and `CW_FILTER_…`
/// added up, and `names` are `len` bytes of UTF-8, the names of kinds, with a line feed between two. See `filter`.
///
/// # Safety
///
/// `names` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them during the call. `out` is null
/// or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_new(
    max_line_bytes: u64,
    options: u32,
    names: *const u8,
    len: u64,
    out: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
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

/// Frees the buffer whose handle is here. Its owner's destructor calls this: so nothing of Python runs, which an interrupt might stop.
///
/// # Safety
///
/// `handle` is null or may be read.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_free_owned(handle: *const u64) -> i32 {
    // SAFETY: the caller promises it.
    let handle = unsafe { handle.as_ref() };
    handle.map_or(CW_ERROR_ARGUMENT, |&handle| cw_buffer_free(handle))
}

/// Takes the next step through the chunk of `len` bytes at `data`, from byte `at` of `out` on; see `Buffer::next`. If that
/// is `CW_CARRY`, and something of the chunk is left, also the step after it, with the carried line still lent: most chunks of
/// a stream take two steps. Returns how many were taken. Takes back what the call before it lent. The caller repeats it until
/// `next` of the last step is `len`.
///
/// # Safety
///
/// `data` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them during the call.
/// `out` is null or may be read and written. Memory that a step lends is not read after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_next(
    handle: u64,
    data: *const u8,
    len: u64,
    out: *mut CwSteps,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let data = unsafe { bytes(data, len) }?;
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        // SAFETY: not null, and the caller promises that all of it may be read and written: a number, two steps, and so many bytes.
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
                    // SAFETY: so many may be written, and it is not memory of a buffer.
                    unsafe { line.copy_from_nonoverlapping(lent.as_ptr(), lent.len()) };
                }
            }
            // SAFETY: see above.
            unsafe { steps.write(CwStep::new(step, next, place)) };
            if is_filtered || next == data.len() || !matches!(step, Step::Carry { .. }) {
                return Ok(1);
            }
            // Without memory nothing is consumed, and the next call says so.
            let Ok((consumed @ 1.., step)) = lines.buffer.follow(&data[next..]) else {
                return Ok(1);
            };
            let place = lines.position.pass(consumed, &step);
            *at = (next + consumed) as u64;
            // SAFETY: see above.
            unsafe {
                steps
                    .add(1)
                    .write(CwStep::new(step, next + consumed, place));
            };
            Ok(2)
        })?
    })
}

/// Takes the rest of a chunk, from byte `at` of `out` on, and drops all lines that it completes. What cannot be taken for lack of
/// memory is lost.
///
/// # Safety
///
/// As of [`cw_buffer_next`].
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_drop(
    handle: u64,
    data: *const u8,
    len: u64,
    out: *mut CwSteps,
) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
        let data = unsafe { bytes(data, len) }?;
        if out.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        // SAFETY: not null, and the caller promises that it may be read and written.
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
    /// Takes a step, and says where it began.
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

/// Ends the stream: the step lends the last line if it has no LF (`CW_CARRY` or `CW_TOO_LONG`). The buffer then is at the
/// start of a new stream.
///
/// # Safety
///
/// `out` is null or may be written. Memory that the step lends is not read after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_close(handle: u64, out: *mut CwStep) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
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

/// Lends the unfinished line as far as it has come: the step is `CW_CARRY`, or `CW_NOTHING` if there is none. It is
/// `CW_TOO_LONG` if the line is being dropped; then only its length is told. It remains unfinished, and is not checked.
///
/// # Safety
///
/// `out` is null or may be written. Memory that the step lends is not read after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_unfinished(handle: u64, out: *mut CwStep) -> i32 {
    guard(|| {
        // SAFETY: the caller promises it.
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

/// Writes where the first `count` lines of the block that was lent last by `CW_FILTERED` began: of each the bytes and the lines of the
/// stream between the first line that the step passed and it. `CW_ERROR_ARGUMENT` if they are fewer.
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
                    out.add(2 * index + 1).write(place.lines);
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
        // SAFETY: the caller promises it.
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
