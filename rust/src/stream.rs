//! Cuts a stream of chunks into lines.
//!
//! The basic idea is simple: the chunks `{"a":1}\n{"b"` and `:2}\n` are two lines. The first line is complete within its chunk, and the sink
//! takes it from there. The start of the second line is copied into a buffer until the next chunk completes the line.
//!
//! A [`Buffer`](crate::lines::buffer::Buffer) keeps the unfinished line at the end of a chunk, a [`Filter`](crate::filter::Filter) skips and merges lines, and a
//! [`Position`](crate::lines::place::Position) counts bytes and lines. The caller's [`Sink`](crate::stream::Sink) takes the lines. It
//! takes the complete lines of a chunk in as few blocks as possible, without a copy.

use std::collections::TryReserveError;

use crate::filter::Filter;
use crate::lines::buffer::Buffer;
use crate::lines::place::{Place, Position};
use crate::simd::PAD;

/// Takes the lines of a stream.
pub trait Sink {
    /// True if the sink still uses a carried line's bytes after [`carried`](Self::carried) returns, until the next chunk.
    const KEEPS_CARRIED: bool;

    /// Takes the complete lines in the first `len` bytes of `data`. `data` extends to the end of the chunk. `place` is where the first line
    /// begins. Returns the number of lines. A line may be blank or longer than the limit.
    fn lines(&mut self, data: &[u8], len: usize, place: Place) -> u64;

    /// Takes a line that began in an earlier chunk. `len` is its length with its LF. At least [`PAD`] LFs follow the line. If it is the
    /// last line of a stream and has no LF, nothing follows it.
    fn carried(&mut self, data: &[u8], len: usize, place: Place);

    /// Takes a line that the filter has merged from several deltas. `len` is its length with its LF. [`PAD`] LFs follow the line.
    fn merged(&mut self, data: &[u8], len: usize, place: Place);

    /// Takes the head of a line that was dropped because it is too long. `length` is the whole line's length without its LF.
    fn too_long(&mut self, head: &[u8], length: u64, place: Place);
}

/// See the [module](self).
#[derive(Debug)]
pub struct Stream {
    /// The unfinished line.
    pub buffer: Buffer,
    /// Skips and merges lines.
    pub filter: Option<Box<Filter>>,
    /// Counts bytes and lines.
    pub position: Position,
}

impl Stream {
    /// Returns a new stream, which has not taken any bytes.
    #[must_use]
    pub fn new(buffer: Buffer, filter: Option<Filter>) -> Self {
        Self {
            buffer,
            filter: filter.map(Box::new),
            position: Position::default(),
        }
    }

    /// Takes a chunk: gives `sink` the lines that it completes, and keeps the rest.
    ///
    /// # Errors
    ///
    /// Memory ran out for the head of a line or for the filter. The position counts the whole chunk, but some of its lines are lost.
    pub fn take(&mut self, data: &[u8], sink: &mut impl Sink) -> Result<(), TryReserveError> {
        let before = self.position.taken;
        let taken = self.take_lines(data, sink);
        if taken.is_err() {
            if let Some(filter) = &mut self.filter {
                filter.rest();
            }
            #[allow(clippy::cast_possible_truncation)]
            // The count is at most the length of a slice.
            let taken = (self.position.taken - before) as usize;
            self.position.lose(&data[taken..]);
        }
        taken
    }

    fn take_lines(&mut self, data: &[u8], sink: &mut impl Sink) -> Result<(), TryReserveError> {
        let Self {
            buffer,
            filter,
            position,
        } = self;
        buffer.release();
        let mut rest = data;
        while let Some(mark) = buffer.skip_bom(rest)? {
            position.taken += mark as u64;
            rest = &rest[mark..];
            if rest.is_empty() {
                return Ok(());
            }
        }
        let mut carried_end = None;
        if buffer.is_unfinished() && !rest.is_empty() {
            carried_end = first_line_feed(rest);
            if carried_end.is_none() {
                return keep(buffer, position, rest);
            }
        }
        let mut filter = filter.as_deref_mut().filter(|filter| filter.is_for(rest));
        if let Some(end) = carried_end {
            let too_long = buffer.complete(&rest[..=end])?;
            position.taken += end as u64 + 1;
            rest = &rest[end + 1..];
            completed(buffer, filter.as_deref_mut(), position, sink, too_long);
        }
        // Most chunks end with a complete line.
        let end = if rest.ends_with(b"\n") {
            rest.len()
        } else {
            memchr::memrchr(b'\n', rest).map_or(0, |at| at + 1)
        };
        let start = position.offset();
        let mut at = 0;
        while at < end {
            let place = |at: usize, position: &Position| Place {
                offset: start + at as u64,
                lines: position.line,
            };
            let mut kept = end;
            if let Some(filter) = &mut filter {
                let max_line = buffer.max_line_bytes();
                let taken = filter.take(&rest[at..end], max_line, place(at, position))?;
                at += taken.bytes;
                position.line += taken.lines as u64;
                close_groups(filter, sink)?;
                kept = taken.kept;
            }
            if kept > 0 {
                position.line += sink.lines(&rest[at..], kept, place(at, position));
                at += kept;
            }
        }
        if let Some(filter) = filter {
            close_groups(filter, sink)?;
            filter.rest();
        }
        buffer.count_searched(end);
        position.taken += end as u64;
        keep(buffer, position, &rest[end..])
    }

    /// Ends the stream: gives `sink` the last line if it has no LF. The next bytes begin a new stream.
    ///
    /// # Errors
    ///
    /// Memory ran out while an incomplete byte order mark was stored. In that case the stream has not ended.
    pub fn end(&mut self, sink: &mut impl Sink) -> Result<(), TryReserveError> {
        let too_long = self.buffer.close()?;
        let line = self.buffer.completed();
        let place = self.position.end(too_long.unwrap_or(line.len() as u64));
        if let Some(length) = too_long {
            sink.too_long(line, length, place);
        } else if !line.is_empty() {
            let filter = self.filter.as_deref_mut();
            if filter.is_none_or(|filter| filter.keeps_last(line)) {
                sink.carried(line, line.len(), place);
            } else {
                self.buffer.release();
            }
        }
        Ok(())
    }
}

/// Passes the line that `buffer` completed to the filter or to `sink`. `too_long` is the line's length if it is over the limit.
fn completed<S: Sink>(
    buffer: &mut Buffer,
    filter: Option<&mut Filter>,
    position: &mut Position,
    sink: &mut S,
    mut too_long: Option<u64>,
) {
    let bytes = too_long.map_or(buffer.completed().len() as u64, |length| length + 1);
    let place = Place {
        offset: position.offset() - bytes,
        lines: position.line,
    };
    position.line += 1;
    let mut is_kept = true;
    if let Some(filter) = filter {
        if too_long.is_none() && !filter.keeps(buffer.completed().len()) {
            if let Ok(taken) = filter.take(buffer.completed(), usize::MAX, place) {
                is_kept = taken.kept > 0;
            } else {
                // Memory ran out for a copy of the line: drop the line, as if it were over the limit.
                filter.rest();
                too_long = Some(buffer.drop_completed());
            }
        }
    }
    if too_long.is_none() && is_kept && !buffer.pad_completed() {
        too_long = Some(buffer.drop_completed());
    }
    if let Some(length) = too_long {
        sink.too_long(buffer.completed(), length, place);
    } else if is_kept {
        let data = buffer.completed();
        sink.carried(data, data.len() - PAD, place);
    }
    if !(S::KEEPS_CARRIED && is_kept) {
        buffer.release();
    }
}

/// Closes a filter's open groups, and passes their merged lines to `sink`.
fn close_groups(filter: &mut Filter, sink: &mut impl Sink) -> Result<(), TryReserveError> {
    filter.close(|line, len, place| sink.merged(line, len, place))
}

/// Adds the bytes after the last LF of a chunk to the unfinished line.
fn keep(buffer: &mut Buffer, position: &mut Position, rest: &[u8]) -> Result<(), TryReserveError> {
    if !rest.is_empty() {
        buffer.keep(rest)?;
        position.taken += rest.len() as u64;
    }
    Ok(())
}

/// Returns the index of the first LF. For fewer than 8 bytes, a loop is faster than calling `memchr`.
#[inline]
fn first_line_feed(data: &[u8]) -> Option<usize> {
    if data.len() < 8 {
        data.iter().position(|&byte| byte == b'\n')
    } else {
        memchr::memchr(b'\n', data)
    }
}

#[cfg(test)]
mod tests;
