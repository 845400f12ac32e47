//! Keeps the unfinished line of a stream: the piece of each chunk after its last LF.
//!
//! # Goals
//!
//! 1. Linear cost at any chunking: one byte at a time, 64 KiB at a time, or one line of 100 MB in small pieces.
//! 2. Bounded memory: a line longer than the limit is dropped while it arrives, and a huge line leaves nothing behind. A line for which
//!    there is no memory is dropped, too, and the lines around it are unharmed.
//!
//! # Memory
//!
//! The unfinished line is in `tail`. When a chunk completes it, `tail` and `lent` are swapped, and the line stays in `lent` until the
//! next chunk: the piece at the end of the chunk goes into the other half.
//!
//! # Costs
//!
//! Each byte of a carried line is copied once, and moved by growth twice at worst: capacity doubles, so the moves on the way to n bytes
//! add up to less than n + n/2 + n/4 + …. An idle buffer holds at most 64 KiB, two times `KEEP_BYTES`. [`Stats`] counts all of this.

use std::collections::TryReserveError;
use std::mem;

use crate::simd::PAD;

/// Bytes to keep of a line over the limit.
pub const HEAD_BYTES: usize = 1024;
/// Bytes of memory that each of the two halves keeps for later at most.
pub const KEEP_BYTES: usize = 32 * 1024;
/// Size of the first allocation: a line of the usual length. A process may have thousands of streams.
const FIRST_BYTES: usize = 512;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Work done since the buffer was made, and memory held now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes searched for a line feed.
    pub searched: u64,
    /// Bytes copied into the buffer, and moved when it grew.
    pub copied: u64,
    /// Bytes of memory held, lent memory included.
    pub held: u64,
}

/// How to treat a byte order mark (of UTF-8: EF BB BF) at the very start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bom {
    /// Skip it. The first line then begins at offset 3.
    Skip,
    /// Leave it in the first line, like any other bytes.
    Keep,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Buffer {
    /// The received part of the unfinished line, or its first [`HEAD_BYTES`] if it is over the limit.
    tail: Vec<u8>,
    /// The line lent by the last call.
    lent: Vec<u8>,
    /// Length so far of the unfinished line, once it is over the limit.
    too_long: Option<u64>,
    /// How much of a BOM has been seen, until the first byte that is not part of one (`None`).
    bom: Option<usize>,
    max_line_bytes: usize,
    on_bom: Bom,
    searched: u64,
    copied: u64,
}

impl Buffer {
    /// An empty buffer at the start of a stream. It holds no memory until a line is cut.
    ///
    /// A line of exactly `max_line_bytes` is allowed; a CR counts, the LF does not.
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
    /// There is no memory (for two bytes of an incomplete BOM). The stream then goes on.
    pub(crate) fn close(&mut self) -> Result<Option<u64>, TryReserveError> {
        self.release();
        if let Some(seen) = self.bom.filter(|&seen| seen > 0) {
            self.append(&BOM[..seen])?;
        }
        self.bom = at_start(self.on_bom);
        mem::swap(&mut self.tail, &mut self.lent);
        Ok(self.too_long.take())
    }

    /// The unfinished line as far as it has come; or its length so far, once it is over the limit.
    ///
    /// # Errors
    ///
    /// The length, if the line is being dropped.
    pub fn unfinished(&self) -> Result<&[u8], u64> {
        self.too_long.map_or(Ok(&self.tail), Err)
    }

    /// Work done and memory held so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            searched: self.searched,
            copied: self.copied,
            held: (self.tail.capacity() + self.lent.capacity()) as u64,
        }
    }

    /// Ends the loan of the last call.
    pub(crate) fn release(&mut self) {
        if self.lent.capacity() > KEEP_BYTES {
            self.lent = Vec::new();
        } else {
            self.lent.clear();
        }
    }

    /// How much of `data` is part of the stream's BOM. A BOM may come byte by byte, and the bytes may turn out to be something
    /// else.
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
    /// There is no memory for the head of the line. It is still unfinished then.
    pub(crate) fn complete(&mut self, piece: &[u8]) -> Result<Option<u64>, TryReserveError> {
        self.append_line(piece)?;
        self.searched += piece.len() as u64;
        mem::swap(&mut self.tail, &mut self.lent);
        Ok(self.too_long.take())
    }

    /// The line that was completed last, with its LF; its head, if it is over the limit.
    pub(crate) fn completed(&self) -> &[u8] {
        &self.lent
    }

    /// Adds [`PAD`] LFs to the line that was completed last, for readers that look at several bytes at a time. False without memory.
    pub(crate) fn pad_completed(&mut self) -> bool {
        let has_room = self.lent.try_reserve_exact(PAD).is_ok();
        if has_room {
            self.lent.resize(self.lent.len() + PAD, b'\n');
        }
        has_room
    }

    /// Keeps only the head of the line that was completed last. Returns its length without LF.
    pub(crate) fn drop_completed(&mut self) -> u64 {
        let length = self.lent.len() - 1;
        self.lent.truncate(length.min(HEAD_BYTES));
        self.lent.shrink_to(KEEP_BYTES);
        length as u64
    }

    /// Whether a line is unfinished.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.too_long.is_some() || !self.tail.is_empty()
    }

    pub(crate) fn max_line_bytes(&self) -> usize {
        self.max_line_bytes
    }

    /// Counts bytes that were searched elsewhere.
    pub(crate) fn count_searched(&mut self, bytes: usize) {
        self.searched += bytes as u64;
    }

    /// Adds a piece without LF to the unfinished line.
    ///
    /// # Errors
    ///
    /// There is no memory for the head of the line.
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

    /// Adds a piece without LF to an unfinished line that is over the limit or larger than memory: keeps its head, and counts the
    /// rest.
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
            [byte] => self.tail.push(byte), // without a call: bytes may come one by one
            _ => self.tail.extend_from_slice(piece),
        }
        self.copied += piece.len() as u64;
    }

    /// Makes room for `length` bytes, and for what a reader wants behind them: capacity doubles, up to the longest line that is allowed
    /// and its LF.
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
