//! Keeps the unfinished line of a stream: the bytes of each chunk after its last LF.
//!
//! The basic idea is simple: the buffer keeps `{"b"` from the chunk `{"a":1}\n{"b"`. When the next chunk begins with `:2}\n`, the buffer
//! appends these bytes, and the line `{"b":2}\n` is complete.
//!
//! # Goals
//!
//! 1. The cost is linear for chunks of any size: one byte at a time, 64 KiB at a time, or one line of 100 MB in small pieces.
//! 2. The memory is bounded: the buffer drops a line over the limit while the line arrives, and frees the memory of a huge line. If memory
//!    runs out for a line, the buffer drops this line, but not the lines around it.
//!
//! # Memory
//!
//! The unfinished line is in `tail`. When a chunk completes it, the buffer swaps `tail` and `lent`. The completed line stays in `lent`
//! until the next chunk, and the bytes at the end of the same chunk go into `tail`.
//!
//! # Costs
//!
//! Each byte of a line that began in an earlier chunk is copied once. When the buffer grows, its bytes may move: the capacity doubles each
//! time, so a line of n bytes moves fewer than n + n/2 + n/4 + … bytes. Between two lines, a buffer holds at most 64 KiB, which is twice
//! `KEEP_BYTES`. [`Stats`] counts the copied bytes and the memory.

use std::collections::TryReserveError;
use std::mem;

use crate::simd::PAD;

/// The number of bytes that the buffer keeps if a line is over the limit.
pub const HEAD_BYTES: usize = 1024;
/// The maximum number of bytes of memory that `tail` and `lent` each keep for the next line.
pub const KEEP_BYTES: usize = 32 * 1024;
/// The size in bytes of the first allocation: enough for most lines, and small, because a process may have thousands of streams.
const FIRST_BYTES: usize = 512;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// How many bytes a buffer searched and copied since it was created, and how much memory it holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of bytes searched for a line feed.
    pub searched: u64,
    /// The number of bytes copied into the buffer, or moved when it grew.
    pub copied: u64,
    /// The number of bytes of memory held, including the completed line.
    pub held: u64,
}

/// How to treat a UTF-8 byte order mark (EF BB BF) at the very start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bom {
    /// Skip the mark. The first line then begins at offset 3.
    Skip,
    /// Keep the mark as part of the first line.
    Keep,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Buffer {
    /// The unfinished line so far, or its first [`HEAD_BYTES`] bytes if it is over the limit.
    tail: Vec<u8>,
    /// The line that was completed last. Its bytes stay here until [`release`](Self::release).
    lent: Vec<u8>,
    /// The unfinished line's length so far, if it is over the limit.
    too_long: Option<u64>,
    /// The number of BOM bytes received so far at the start of the stream; `None` after the BOM, or after a byte that is not part of a BOM.
    bom: Option<usize>,
    max_line_bytes: usize,
    on_bom: Bom,
    searched: u64,
    copied: u64,
}

impl Buffer {
    /// Returns an empty buffer for a new stream. The buffer allocates memory when a chunk first ends in the middle of a line.
    ///
    /// A line of exactly `max_line_bytes` is allowed. A CR before the LF counts, but the LF does not.
    #[must_use]
    pub fn new(max_line_bytes: usize, on_bom: Bom) -> Self {
        Self {
            tail: Vec::new(),
            lent: Vec::new(),
            too_long: None,
            bom: at_start(on_bom),
            max_line_bytes,
            on_bom,
            searched: 0,
            copied: 0,
        }
    }

    /// Ends the stream, and moves its last line, which has no LF, to [`completed`](Self::completed). Returns the length of the line if it
    /// is over the limit. The next bytes begin a new stream.
    ///
    /// # Errors
    ///
    /// Memory ran out while an incomplete BOM was stored. In that case the stream has not ended.
    pub(crate) fn close(&mut self) -> Result<Option<u64>, TryReserveError> {
        self.release();
        if let Some(seen) = self.bom.filter(|&seen| seen > 0) {
            self.append(&BOM[..seen])?;
        }
        self.bom = at_start(self.on_bom);
        mem::swap(&mut self.tail, &mut self.lent);
        Ok(self.too_long.take())
    }

    /// Returns the bytes received so far of the unfinished line.
    ///
    /// # Errors
    ///
    /// If the line is over the limit, the error is its length so far.
    pub fn unfinished(&self) -> Result<&[u8], u64> {
        self.too_long.map_or(Ok(&self.tail), Err)
    }

    /// Returns the counts of this buffer.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            searched: self.searched,
            copied: self.copied,
            held: (self.tail.capacity() + self.lent.capacity()) as u64,
        }
    }

    /// Clears the completed line, and frees its memory if it is more than [`KEEP_BYTES`].
    pub(crate) fn release(&mut self) {
        if self.lent.capacity() > KEEP_BYTES {
            self.lent = Vec::new();
        } else {
            self.lent.clear();
        }
    }

    /// Returns the number of bytes at the start of `data` that belong to the stream's BOM; `None` after the BOM. A BOM may arrive byte by
    /// byte. If the stream begins with EF BB and another byte, these two bytes become the start of the first line.
    pub(crate) fn skip_bom(&mut self, data: &[u8]) -> Result<Option<usize>, TryReserveError> {
        let Some(seen) = self.bom else {
            return Ok(None);
        };
        let missing = &BOM[seen..];
        let matched = missing.iter().zip(data).take_while(|(a, b)| a == b).count();
        if matched == missing.len() {
            self.bom = None;
            return Ok(Some(matched));
        }
        if matched == data.len() {
            self.bom = Some(seen + matched);
            return Ok(Some(matched));
        }
        self.append(&BOM[..seen])?;
        self.bom = None;
        Ok(None)
    }

    /// Ends the unfinished line with `piece`, whose last byte is its only LF, and moves it to [`completed`](Self::completed). Returns its
    /// length if it is over the limit.
    ///
    /// # Errors
    ///
    /// Memory ran out for the head of the line. In that case the line is still unfinished.
    pub(crate) fn complete(&mut self, piece: &[u8]) -> Result<Option<u64>, TryReserveError> {
        self.append_line(piece)?;
        self.searched += piece.len() as u64;
        mem::swap(&mut self.tail, &mut self.lent);
        Ok(self.too_long.take())
    }

    /// Returns the line that was completed last, with its LF. Returns only the head of a line over the limit.
    pub(crate) fn completed(&self) -> &[u8] {
        &self.lent
    }

    /// Adds [`PAD`] LFs to the line that was completed last, because the scanner loads several bytes at a
    /// time. Returns false if memory runs out.
    pub(crate) fn pad_completed(&mut self) -> bool {
        let has_room = self.lent.try_reserve_exact(PAD).is_ok();
        if has_room {
            self.lent.resize(self.lent.len() + PAD, b'\n');
        }
        has_room
    }

    /// Truncates the line that was completed last to its head. Returns the length of the whole line without its LF.
    pub(crate) fn drop_completed(&mut self) -> u64 {
        let length = self.lent.len() - 1;
        self.lent.truncate(length.min(HEAD_BYTES));
        self.lent.shrink_to(KEEP_BYTES);
        length as u64
    }

    /// Returns whether the buffer holds part of an unfinished line.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.too_long.is_some() || !self.tail.is_empty()
    }

    pub(crate) fn max_line_bytes(&self) -> usize {
        self.max_line_bytes
    }

    /// Counts the bytes that the caller searched for line feeds.
    pub(crate) fn count_searched(&mut self, bytes: usize) {
        self.searched += bytes as u64;
    }

    /// Adds a piece without LF to the unfinished line.
    ///
    /// # Errors
    ///
    /// Memory ran out for the head of the line.
    pub(crate) fn keep(&mut self, piece: &[u8]) -> Result<(), TryReserveError> {
        self.append(piece)?;
        self.searched += piece.len() as u64;
        Ok(())
    }

    /// Adds a piece without LF to the unfinished line, or drops the line if it is too long.
    fn append(&mut self, piece: &[u8]) -> Result<(), TryReserveError> {
        let length = self.tail.len() + piece.len();
        if self.too_long.is_some() || length > self.max_line_bytes || self.grow(length).is_err() {
            return self.drop_line(piece);
        }
        self.push(piece);
        Ok(())
    }

    /// Adds a piece without LF to an unfinished line that is over the limit, or for which memory ran out: keeps the head of the line, and
    /// counts the remaining bytes.
    fn drop_line(&mut self, piece: &[u8]) -> Result<(), TryReserveError> {
        let length = self.too_long.unwrap_or(self.tail.len() as u64) + piece.len() as u64;
        let head = &piece[..piece.len().min(HEAD_BYTES.saturating_sub(self.tail.len()))];
        self.grow(self.tail.len() + head.len())?;
        self.push(head);
        self.tail.truncate(HEAD_BYTES);
        self.tail.shrink_to(KEEP_BYTES);
        self.too_long = Some(length);
        Ok(())
    }

    /// Ends the unfinished line with `piece`, whose last byte is its only LF.
    fn append_line(&mut self, piece: &[u8]) -> Result<(), TryReserveError> {
        let length = self.tail.len() + piece.len();
        if self.too_long.is_some() || length - 1 > self.max_line_bytes || self.grow(length).is_err()
        {
            return self.drop_line(&piece[..piece.len() - 1]);
        }
        self.push(piece);
        Ok(())
    }

    fn push(&mut self, piece: &[u8]) {
        match *piece {
            [byte] => self.tail.push(byte), // No function call: a stream may arrive byte by byte.
            _ => self.tail.extend_from_slice(piece),
        }
        self.copied += piece.len() as u64;
    }

    /// Makes room for `length` bytes and [`PAD`] more. Doubles the capacity, but not above the longest allowed line with its LF and the
    /// padding.
    fn grow(&mut self, length: usize) -> Result<(), TryReserveError> {
        let capacity = self.tail.capacity();
        if length > capacity {
            let longest = self.max_line_bytes.saturating_add(1 + PAD);
            let wanted = capacity
                .saturating_mul(2)
                .max(FIRST_BYTES)
                .min(longest)
                .max(length + PAD);
            self.tail.try_reserve_exact(wanted - self.tail.len())?;
            self.copied += self.tail.len() as u64;
        }
        Ok(())
    }
}

fn at_start(on_bom: Bom) -> Option<usize> {
    match on_bom {
        Bom::Skip => Some(0),
        Bom::Keep => None,
    }
}
