//! The C functions of line buffers (`cw_buffer_…`), with or without a filter.
//!
//! A caller passes each chunk to [`cw_buffer_take`], and reads the lines that the chunk completes. At the end of the stream,
//! [`cw_buffer_close`] returns the last line if it has no LF.

use std::mem::MaybeUninit;

use super::forks::watch_forks;
use super::{bytes, guard, level, place, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY, CW_NOTHING};
use crate::ffi::handle::Table;
use crate::filter::Filter;
use crate::lines::buffer::{Bom, Buffer, HEAD_BYTES};
use crate::lines::place::Place;
use crate::stream::{Sink, Stream};

/// An option of a buffer: keep a byte order mark at the start of the stream as a part of the first line. Without this option the buffer
/// skips the mark.
pub const CW_KEEP_BOM: u32 = 1;
/// An option of a buffer: let only lines of the named kinds through.
pub const CW_FILTER_ONLY: u32 = 2;
/// An option of a buffer: merge deltas of the same content block.
pub const CW_FILTER_COALESCE: u32 = 4;
/// An option of a buffer with a filter: use no vector instructions. Tests compare the results with those of the vector code.
pub const CW_FILTER_PLAIN: u32 = 8;

/// How much work a buffer has done since it was created, and how much memory it holds now.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwStats {
    /// The number of bytes searched for a line feed.
    pub searched: u64,
    /// The number of bytes copied into the buffer, or moved when it grew.
    pub copied: u64,
    /// The number of bytes of memory held now, including lent memory and the filter's memory.
    pub held: u64,
    /// The number of lines that the filter skipped.
    pub skipped: u64,
    /// The number of lines that the filter merged into an earlier line.
    pub merged: u64,
    /// The number of bytes in all chunks consumed so far, in all streams through this buffer.
    pub taken: u64,
    /// The part of `taken` that belongs to earlier streams, which `cw_buffer_close` ended.
    pub start: u64,
    /// The number of lines that the native reader decoded to messages.
    pub messages: u64,
    /// The number of lines in `messages` that had unknown content.
    pub unknown: u64,
}

/// One or more consecutive lines of a stream, or the head of a line over the limit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwBlock {
    /// The address of the first byte in the buffer's memory. 0 for complete lines within the chunk.
    pub lent: u64,
    /// Where the lines begin in the chunk, if `lent` is 0.
    pub start: u64,
    /// The length of the lines in bytes, including their LFs. A block of several lines has at most 64 KiB.
    pub bytes: u64,
    /// The number of bytes in the stream before the first line.
    pub offset: u64,
    /// The 1-based number of the first line in the stream.
    pub line_number: u64,
    /// If the block is the head of a line over the limit, the length of the whole line without its LF; otherwise -1.
    pub length: i64,
}

/// The blocks that a call lends.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwBlocks {
    /// The first block. This array and the memory of the blocks are lent until the next call with the handle.
    pub blocks: *const CwBlock,
}

/// The value that a buffer's handle names.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) stream: Stream,
    blocks: Blocks,
    /// The number of lines that the reader in [`python`](super::python) decoded to messages.
    pub(super) messages: u64,
    /// The number of lines in `messages` that had unknown content.
    pub(super) unknown: u64,
}

/// The maximum size of a block with more than one line. The caller copies one block at a time.
const BLOCK_BYTES: usize = 64 * 1024;
/// How many blocks and bytes of memory to keep for the next chunk.
const KEEP_BLOCKS: usize = 32;
const KEEP_COPIES: usize = 2 * 1024;

pub(super) static BUFFERS: Table<Lines> = Table::new();

/// Makes a line buffer and writes its handle to `out`.
///
/// The buffer drops a line that has more than `max_line_bytes` before its LF. `options` is a sum of `CW_KEEP_BOM` and
/// `CW_FILTER_…`. `names` are the kinds for `CW_FILTER_ONLY`: `len` bytes of UTF-8, with a line feed between two names.
///
/// # Safety
///
/// `names` must be null with `len` 0, or point to `len` readable bytes that no thread writes during the call. `out` must be null or
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
        let level = level(has(CW_FILTER_PLAIN));
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
            stream: Stream::new(Buffer::new(max_line_bytes, on_bom), filter),
            blocks: Blocks::default(),
            messages: 0,
            unknown: 0,
        })?;
        out.write(handle);
        Ok(CW_NOTHING)
    })
}

/// Frees a buffer and all memory that it lent.
#[no_mangle]
pub extern "C" fn cw_buffer_free(handle: u64) -> i32 {
    guard(|| {
        BUFFERS.remove(handle)?;
        Ok(CW_NOTHING)
    })
}

/// Frees the buffer whose handle is stored at `handle`. cffi calls this as a destructor. It is one native call, so a `KeyboardInterrupt`
/// cannot stop it halfway.
///
/// # Safety
///
/// `handle` must be null or point to a readable handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_free_owned(handle: *const u64) -> i32 {
    // SAFETY: the caller guarantees that `handle` is null or readable.
    let handle = unsafe { handle.as_ref() };
    handle.map_or(CW_ERROR_ARGUMENT, |&handle| cw_buffer_free(handle))
}

/// Collects the lines of a chunk for the caller.
#[derive(Debug, Default)]
struct Blocks {
    all: Vec<CwBlock>,
    /// Copies of lines and heads that the buffer does not keep. [`lend`](Blocks::lend) sets the `lent` of their blocks.
    copies: Vec<u8>,
    /// The length of the chunk.
    len: usize,
    max_line_bytes: usize,
    is_full: bool,
}

/// The preliminary `lent` of a block whose bytes are in `copies`, which may still move.
const COPIED: u64 = 1;

impl Blocks {
    /// Takes back what the last call lent, and frees memory above a small amount.
    fn begin(&mut self, len: usize, max_line_bytes: usize) {
        self.all.clear();
        self.copies.clear();
        self.all.shrink_to(KEEP_BLOCKS);
        self.copies.shrink_to(KEEP_COPIES);
        (self.len, self.max_line_bytes, self.is_full) = (len, max_line_bytes, false);
    }

    fn push(&mut self, block: CwBlock) {
        if self.all.try_reserve(1).is_ok() {
            self.all.push(block);
        } else {
            self.is_full = true;
        }
    }

    /// Adds a copy of a line or of a head.
    fn copy(&mut self, data: &[u8], place: Place, length: i64) {
        if self.copies.try_reserve(data.len()).is_err() {
            self.is_full = true;
            return;
        }
        self.push(CwBlock::new(
            COPIED,
            self.copies.len(),
            data.len(),
            place,
            length,
        ));
        self.copies.extend_from_slice(data);
    }

    /// Lends all blocks. Returns how many there are.
    fn lend(&mut self, out: &mut MaybeUninit<CwBlocks>) -> Result<i32, i32> {
        if self.is_full {
            return Err(CW_ERROR_MEMORY);
        }
        let copies = address(&self.copies);
        for block in self.all.iter_mut().filter(|block| block.lent == COPIED) {
            block.lent = copies + block.start;
        }
        out.write(CwBlocks {
            blocks: self.all.as_ptr(),
        });
        i32::try_from(self.all.len()).map_err(|_| CW_ERROR_MEMORY)
    }

    fn held(&self) -> usize {
        self.all.capacity() * size_of::<CwBlock>() + self.copies.capacity()
    }
}

fn address(data: &[u8]) -> u64 {
    data.as_ptr() as u64
}

impl CwBlock {
    fn new(lent: u64, start: usize, bytes: usize, place: Place, length: i64) -> Self {
        Self {
            lent,
            start: start as u64,
            bytes: bytes as u64,
            offset: place.offset,
            line_number: place.lines,
            length,
        }
    }
}

impl Sink for Blocks {
    const KEEPS_CARRIED: bool = true;

    fn lines(&mut self, data: &[u8], len: usize, place: Place) -> u64 {
        let start = self.len - data.len();
        let (mut line, mut from) = (place, 0);
        // Where the open block begins, if there is one.
        let mut open = None;
        for at in memchr::memchr_iter(b'\n', &data[..len]) {
            let length = at - from;
            let is_too_long = length > self.max_line_bytes;
            if let Some((first, begin)) = open {
                if is_too_long || at - begin >= BLOCK_BYTES {
                    self.push(CwBlock::new(0, start + begin, from - begin, first, -1));
                    open = None;
                }
            }
            if is_too_long {
                let head = &data[from..at.min(from + HEAD_BYTES)];
                self.too_long(head, length as u64, line);
            } else {
                open.get_or_insert((line, from));
            }
            from = at + 1;
            line.offset = place.offset + from as u64;
            line.lines += 1;
        }
        if let Some((first, begin)) = open {
            self.push(CwBlock::new(0, start + begin, len - begin, first, -1));
        }
        line.lines - place.lines
    }

    fn carried(&mut self, data: &[u8], len: usize, place: Place) {
        self.push(CwBlock::new(address(data), 0, len, place, -1));
    }

    fn merged(&mut self, data: &[u8], len: usize, place: Place) {
        self.copy(&data[..len], place, -1);
    }

    #[allow(clippy::cast_possible_wrap)] // No stream is that long.
    fn too_long(&mut self, head: &[u8], length: u64, place: Place) {
        self.copy(head, place, length as i64);
    }
}

/// Takes a chunk of `len` bytes at `data`, and lends the lines that it completes. Returns the number of blocks.
///
/// # Safety
///
/// `data` must be null with `len` 0, or point to `len` readable bytes that no thread writes during the call. `out` must be null or
/// writable. The caller must not read lent memory after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_take(
    handle: u64,
    data: *const u8,
    len: u64,
    out: *mut CwBlocks,
) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees `len` readable bytes at `data`, and that `out` is null or writable.
        let (data, out) = unsafe { (bytes(data, len)?, place(out)?) };
        BUFFERS.with(handle, |lines| {
            let max_line_bytes = lines.stream.buffer.max_line_bytes();
            lines.blocks.begin(data.len(), max_line_bytes);
            let taken = lines.stream.take(data, &mut lines.blocks);
            taken.map_err(|_| CW_ERROR_MEMORY)?;
            lines.blocks.lend(out)
        })?
    })
}

/// Ends the stream, and lends its last line if this line has no LF. Returns the number of blocks. The next bytes begin a new stream.
///
/// # Safety
///
/// `out` must be null or writable. The caller must not read lent memory after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_close(handle: u64, out: *mut CwBlocks) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        BUFFERS.with(handle, |lines| {
            lines.blocks.begin(0, 0);
            let ended = lines.stream.end(&mut lines.blocks);
            ended.map_err(|_| CW_ERROR_MEMORY)?;
            lines.blocks.lend(out)
        })?
    })
}

/// Lends the unfinished line so far as one block, and returns 1. Returns 0 if there is no unfinished line. If the line is being dropped,
/// the block has only its length.
///
/// # Safety
///
/// `out` must be null or writable. The caller must not read lent memory after the next call with the same handle.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_unfinished(handle: u64, out: *mut CwBlocks) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        BUFFERS.with(handle, |lines| {
            lines.blocks.begin(0, 0);
            match lines.stream.buffer.unfinished() {
                Ok([]) => {}
                Ok(line) => lines.blocks.carried(line, line.len(), Place::default()),
                Err(length) => lines.blocks.too_long(&[], length, Place::default()),
            }
            lines.blocks.lend(out)
        })?
    })
}

/// Writes how much work a buffer has done, and how much memory it holds.
///
/// # Safety
///
/// `out` must be null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_buffer_stats(handle: u64, out: *mut CwStats) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        let stats = BUFFERS.with(handle, |lines| {
            let Stream {
                buffer,
                filter,
                position,
            } = &lines.stream;
            let (stats, filter) = (buffer.stats(), filter.as_ref());
            let held = lines.blocks.held() + filter.map_or(0, |filter| filter.held());
            CwStats {
                searched: stats.searched,
                copied: stats.copied,
                held: stats.held + held as u64,
                skipped: filter.map_or(0, |filter| filter.skipped),
                merged: filter.map_or(0, |filter| filter.merged),
                taken: position.taken,
                start: position.start,
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
