//! The incremental line buffer: chunks cut anywhere go in, blocks of complete lines come out.
//!
//! # Goals
//!
//! 1. Linear cost at any chunking: one byte at a time, 64 KiB at a time, or one line of 100 MB in small pieces.
//! 2. No needless copy: lines that are complete within the caller's chunk stay there.
//! 3. Memory lent to the caller does not change, move or go away before the caller's next call.
//! 4. Bounded memory: a line longer than the limit is dropped while it arrives, and a huge line leaves nothing behind. A line
//!    for which there is no memory is dropped, too, and the lines around it are unharmed.
//!
//! # Plan
//!
//! The caller pulls: it passes the rest of its chunk to `Buffer::next` until all is consumed, and gets one `Step` each time. Lines that are complete within the chunk come back as a range of it
//! (`Step::Body`), at most `BLOCK_BYTES` of them at a time so that they are still in the cache when they are
//! decoded. Only the piece after the last LF is copied, into `tail`. When its line is completed by a later chunk, `tail` and
//! `lent` are swapped, and the line is lent from there (`Step::Carry`): the next piece is written to other memory.
//! A chunk of 64 KiB thus costs two calls, one for the line that it completes and one for all others and the tail.
//!
//! `tail` never holds an LF: every byte in it was searched when it came, so it is not searched again.
//!
//! # Costs
//!
//! Each byte is searched once; twice at worst, where a chunk longer than a block is cut into blocks within a line. Each
//! byte of a carried line is copied once, and moved by growth twice at worst: capacity doubles, so the moves on the
//! way to n bytes add up to less than n + n/2 + n/4 + …. An idle buffer holds at most 64 KiB, two times
//! `KEEP_BYTES`. All of this is counted, see `Stats`.

use std::collections::TryReserveError;
use std::mem;

use memchr::memchr;

use super::frame;
use super::step::Step;
use crate::simd::PAD;

/// The largest block of more than one line, in bytes.
pub const BLOCK_BYTES: usize = 64 * 1024;
/// Bytes to keep of a line over the limit.
pub const HEAD_BYTES: usize = 1024;
/// Bytes of memory that each of the two halves keeps for later at most.
pub const KEEP_BYTES: usize = 32 * 1024;
/// Size of the first allocation: a line of the usual length. A process may have thousands of streams.
const FIRST_BYTES: usize = 512;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// An unfinished line whose end has been found.
pub(crate) struct Completed {
    /// Bytes of the data up to its end.
    pub(crate) consumed: usize,
    /// Its length without LF, if it is over the limit.
    pub(crate) too_long: Option<u64>,
    /// Whether it is known to be ASCII.
    pub(crate) ascii: bool,
}

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
    /// Whether the unfinished line is known to be ASCII so far.
    ascii: bool,
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
            ascii: true,
            too_long: None,
            bom: at_start(on_bom),
            max_line_bytes,
            on_bom,
            searched: 0,
            copied: 0,
        }
    }

    /// Takes the next step through `data`, the rest of the caller's chunk. Returns how many bytes of it were consumed: the next call
    /// begins after them.
    ///
    /// Consumes at least one byte unless `data` is empty. Ends the loan of the previous call, also when
    /// `data` is empty.
    ///
    /// # Errors
    ///
    /// There is no memory for the head of an unfinished line. Nothing is consumed, and the call may be repeated.
    pub fn next<'a>(&'a mut self, data: &'a [u8]) -> Result<(usize, Step<'a>), TryReserveError> {
        self.release();
        if let Some(consumed) = self.skip_bom(data)? {
            return Ok((consumed, Step::NOTHING));
        }
        if data.is_empty() {
            return Ok((0, Step::NOTHING));
        }
        if self.is_unfinished() {
            return self.carry(data);
        }
        self.body(data)
    }

    /// Takes the step that follows a [`Step::Carry`] through the rest of the same chunk, and leaves that line lent.
    ///
    /// # Errors
    ///
    /// As [`Buffer::next`].
    pub fn follow<'a>(&mut self, data: &'a [u8]) -> Result<(usize, Step<'a>), TryReserveError> {
        debug_assert!(self.tail.is_empty() && self.too_long.is_none() && self.bom.is_none());
        if data.is_empty() {
            return Ok((0, Step::NOTHING));
        }
        self.body(data)
    }

    /// Ends the stream: lends the last line if it has no LF, and begins a new stream.
    ///
    /// # Errors
    ///
    /// There is no memory (for two bytes of an incomplete BOM). The stream then goes on.
    pub fn close(&mut self) -> Result<Step<'_>, TryReserveError> {
        self.release();
        if let Some(seen) = self.bom.filter(|&seen| seen > 0) {
            self.append(&BOM[..seen], false)?;
        }
        self.bom = at_start(self.on_bom);
        let ascii = mem::replace(&mut self.ascii, true);
        mem::swap(&mut self.tail, &mut self.lent);
        Ok(match self.too_long.take() {
            Some(length) => Step::TooLong {
                head: &self.lent,
                length,
            },
            None if self.lent.is_empty() => Step::NOTHING,
            None => Step::Carry {
                line: &self.lent,
                defects: frame::check_line(&self.lent, ascii),
            },
        })
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
        self.append(&BOM[..seen], false)?;
        self.bom = None;
        Ok(None)
    }

    /// Goes on with the unfinished line.
    fn carry<'a>(&'a mut self, data: &[u8]) -> Result<(usize, Step<'a>), TryReserveError> {
        let Some(Completed {
            consumed,
            too_long,
            ascii,
        }) = self.complete(data)?
        else {
            return Ok((data.len(), Step::NOTHING));
        };
        let line = self.completed();
        let step = match too_long {
            Some(length) => Step::TooLong { head: line, length },
            None => Step::Carry {
                line,
                defects: frame::check_line(&line[..line.len() - 1], ascii),
            },
        };
        Ok((consumed, step))
    }

    /// Adds to the unfinished line. If `data` has an LF, the line ends at the first one, and [`completed`](Self::completed) lends
    /// it. Otherwise all of `data` is kept.
    pub(crate) fn complete(&mut self, data: &[u8]) -> Result<Option<Completed>, TryReserveError> {
        let (at, ascii) = frame::line_end(data);
        if at == data.len() {
            self.keep(data, ascii)?;
            return Ok(None);
        }
        self.complete_at(data, at, ascii).map(Some)
    }

    /// Ends the unfinished line at the first LF of `data`, which is at `at`; `ascii` says whether all before it is known to be ASCII.
    pub(crate) fn complete_at(
        &mut self,
        data: &[u8],
        at: usize,
        ascii: bool,
    ) -> Result<Completed, TryReserveError> {
        self.append_line(&data[..=at])?;
        self.searched += at as u64 + 1;
        mem::swap(&mut self.tail, &mut self.lent);
        Ok(Completed {
            consumed: at + 1,
            too_long: self.too_long.take(),
            ascii: mem::replace(&mut self.ascii, true) && ascii,
        })
    }

    /// The line that was completed last, with its LF; its head, if it is over the limit.
    pub(crate) fn completed(&self) -> &[u8] {
        &self.lent
    }

    /// As above, followed by this many LFs, for readers that look at several bytes at a time; and its length. `None` without memory.
    pub(crate) fn completed_and(&mut self, pad: usize) -> Option<(&[u8], usize)> {
        let len = self.lent.len();
        self.lent.try_reserve_exact(pad).ok()?;
        self.lent.resize(len + pad, b'\n');
        Some((&self.lent, len))
    }

    /// Keeps only the head of the line that was completed last. Returns its length without LF.
    pub(crate) fn drop_completed(&mut self) -> usize {
        let length = self.lent.len() - 1;
        self.lent.truncate(length.min(HEAD_BYTES));
        self.lent.shrink_to(KEEP_BYTES);
        length
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

    /// Lends the lines at the start of `data`, which is the start of a line.
    fn body<'a>(&mut self, data: &'a [u8]) -> Result<(usize, Step<'a>), TryReserveError> {
        let window = &data[..data.len().min(BLOCK_BYTES)];
        let found = frame::check(window, self.max_line_bytes);
        if found.lines > 0 {
            return self.block(data, window.len(), &found);
        }
        // The first line is longer than the limit or than the window: look further.
        let end = found
            .too_long
            .or_else(|| memchr(b'\n', &data[window.len()..]).map(|at| window.len() + at));
        let Some(end) = end else {
            self.keep(data, data.is_ascii())?;
            return Ok((data.len(), Step::NOTHING));
        };
        let line = &data[..end];
        let consumed = end + 1;
        self.searched += consumed as u64;
        let step = if end > self.max_line_bytes {
            Step::TooLong {
                head: &line[..end.min(HEAD_BYTES)],
                length: end as u64,
            }
        } else {
            Step::Body {
                end: consumed,
                lines: 1,
                defects: frame::check_line(line, false),
            }
        };
        Ok((consumed, step))
    }

    /// Lends the block that was `found`. Keeps the rest of the chunk in the same call if it was `searched`.
    fn block<'a>(
        &mut self,
        data: &'a [u8],
        searched: usize,
        found: &frame::Frame,
    ) -> Result<(usize, Step<'a>), TryReserveError> {
        let end = found.bytes;
        let mut consumed = end;
        if let Some(length) = found.too_long {
            self.searched += (end + length + 1) as u64;
        } else {
            if searched == data.len() {
                let rest = &data[end..];
                self.append(rest, rest.is_ascii())?;
                consumed = searched;
            }
            self.searched += searched as u64;
        }
        let step = Step::Body {
            end,
            lines: found.lines,
            defects: found.defects,
        };
        Ok((consumed, step))
    }

    /// Keeps all of `data`, which has no LF. `ascii` says whether it is known to be ASCII.
    pub(crate) fn keep(&mut self, data: &[u8], ascii: bool) -> Result<(), TryReserveError> {
        self.append(data, ascii)?;
        self.searched += data.len() as u64;
        Ok(())
    }

    /// Adds a piece without LF to the unfinished line, or drops that if it is too long. `ascii` says whether the piece is known to
    /// be ASCII.
    fn append(&mut self, piece: &[u8], ascii: bool) -> Result<(), TryReserveError> {
        let length = self.tail.len() + piece.len();
        if self.too_long.is_some() || length > self.max_line_bytes || self.grow(length).is_err() {
            return self.drop_line(piece);
        }
        self.push(piece);
        self.ascii &= ascii || piece.is_empty();
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

#[cfg(test)]
mod tests;
