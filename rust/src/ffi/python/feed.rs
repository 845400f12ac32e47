//! Turns a chunk into messages in one native call: finds the lines and reads them.
//!
//! The call returns some lines as *falls*: lines that the reader cannot read, and lines over the limit. Python decodes or reports them.

use std::collections::TryReserveError;
use std::panic::{catch_unwind, AssertUnwindSafe};

use super::object::{bytes, Object, Python};
use super::{int, list, none, number, tuple, State};
use crate::ffi::buffer::{Lines, BUFFERS};
use crate::filter::Filter;
use crate::lines::buffer::{Buffer, HEAD_BYTES};
use crate::lines::step::Place;
use crate::simd::PAD;
use crate::typed::{Line, Reader};

/// A line that Python has to decode or to report.
pub struct Fall {
    /// The index of its `None` in the list of messages.
    index: usize,
    /// The bytes of the line without the LF. Of a line over the limit only the head.
    line: Object,
    /// The place of the line in the stream.
    place: Place,
    /// The number of the class to plan, so that the reader can read such lines; -1 if a plan does not help.
    wanted: i64,
    /// The length of a line over the limit in bytes, without the LF; -1 for any other line.
    too_long: i64,
}

impl Fall {
    /// Returns the tuple that Python gets, `Fall` in engines.py.
    fn row(self) -> Option<Object> {
        tuple([
            int(number(self.index))?,
            self.line,
            int(signed(self.place.offset))?,
            int(signed(self.place.lines))?,
            int(self.wanted)?,
            int(self.too_long)?,
        ])
    }
}

/// Collects the messages and the falls of a chunk.
struct Sink<'a> {
    messages: &'a mut Vec<Option<Object>>,
    falls: &'a mut Vec<Fall>,
    line_number: u64,
    unknown: u64,
    max_line_bytes: usize,
    /// True after a message or a fall was lost for lack of memory.
    is_full: bool,
}

impl Sink<'_> {
    /// Adds the result of a line. `line` has its LF.
    #[inline]
    fn put(&mut self, read: Line<Object>, line: &[u8], place: Place) {
        if self.messages.try_reserve(1).is_err() {
            self.is_full = true;
            return;
        }
        let length = line.len() - 1;
        match read {
            _ if length > self.max_line_bytes => {
                self.too_long(&line[..length], length as u64, place);
            }
            Line::Message(message, is_unknown) => {
                self.unknown += u64::from(is_unknown);
                self.messages.push(Some(message));
            }
            Line::FallsThrough if is_blank(line) => {}
            Line::FallsThrough => self.fall(&line[..length], place, -1, -1),
            Line::Wants(class) => {
                self.fall(&line[..length], place, number(class), -1);
            }
        }
    }

    fn too_long(&mut self, line: &[u8], length: u64, place: Place) {
        let head = &line[..line.len().min(HEAD_BYTES)];
        self.fall(head, place, -1, signed(length));
    }

    #[cold]
    fn fall(&mut self, line: &[u8], place: Place, wanted: i64, too_long: i64) {
        let line = bytes(line);
        let has_room = self.messages.try_reserve(1).is_ok() && self.falls.try_reserve(1).is_ok();
        let (Some(line), true) = (line, has_room) else {
            self.is_full = true;
            return;
        };
        self.falls.push(Fall {
            index: self.messages.len(),
            line,
            place,
            wanted,
            too_long,
        });
        self.messages.push(None);
    }
}

/// The result of a chunk.
pub enum Fed {
    /// The list of messages, if the chunk has no falls.
    Messages(Object),
    /// The tuple `(messages, falls)`. `messages` has a None in the place of each fall.
    Rest(Object),
    /// Nothing of the chunk was taken. Python has to take the chunk.
    Nothing,
}

/// Feeds a chunk to the line buffer with this handle, and reads the lines that the chunk completes. Returns `None` without memory.
pub fn feed(handle: u64, state: &mut State, data: &[u8]) -> Option<Fed> {
    let taken = BUFFERS.with(handle, |lines| {
        let before = lines.position.taken;
        let taken = take(lines, state, data);
        if taken.is_err() {
            if let Some(filter) = &mut lines.filter {
                filter.rest();
            }
            #[allow(clippy::cast_possible_truncation)] // It is at most the length of a slice.
            let taken = (lines.position.taken - before) as usize;
            lines.position.lose(&data[taken..]);
        }
        taken
    });
    let State {
        messages, falls, ..
    } = state;
    let result = match taken {
        // The handle was refused. The fallback raises the exception for the reason.
        Err(_) => Some(Fed::Nothing),
        Ok(Ok(true)) => fed(messages, falls),
        Ok(_) => None,
    };
    messages.clear();
    falls.clear();
    result
}

/// Returns the result of a chunk; `None` without memory.
fn fed(messages: &mut Vec<Option<Object>>, falls: &mut Vec<Fall>) -> Option<Fed> {
    let messages = list(messages.drain(..).map(|it| it.unwrap_or_else(none)))?;
    if falls.is_empty() {
        return Some(Fed::Messages(messages));
    }
    let falls = falls.drain(..).map(Fall::row);
    let falls = list(falls.collect::<Option<Vec<_>>>()?)?;
    Some(Fed::Rest(tuple([messages, falls])?))
}

/// Reads the lines that a chunk completes, and keeps the rest of the chunk. Returns false if a line was lost for lack of memory.
fn take(lines: &mut Lines, state: &mut State, data: &[u8]) -> Result<bool, TryReserveError> {
    let Lines {
        buffer,
        filter,
        position,
        ..
    } = lines;
    let max_line_bytes = buffer.max_line_bytes();
    let mut sink = Sink {
        messages: &mut state.messages,
        falls: &mut state.falls,
        line_number: position.line,
        unknown: 0,
        max_line_bytes,
        is_full: false,
    };
    let mut reading = Reading {
        reader: &mut state.reader,
        has_panicked: &mut state.has_panicked,
    };
    buffer.release();
    let mut rest = data;
    while let Some(mark) = buffer.skip_bom(rest)? {
        position.taken += mark as u64;
        rest = &rest[mark..];
        if rest.is_empty() {
            return Ok(true);
        }
    }
    let mut filter = filter.as_deref_mut().filter(|filter| filter.is_for(rest));
    let mut begun = None;
    if buffer.is_unfinished() && !rest.is_empty() {
        let Some(end) = first_line_feed(rest) else {
            keep(lines, rest)?;
            return Ok(true);
        };
        let completed = buffer.complete_at(rest, end, false)?;
        rest = &rest[completed.consumed..];
        position.taken += completed.consumed as u64;
        begun = Some(completed.too_long);
    }
    // Most chunks are one line, or end at the end of a line.
    let end = if rest.ends_with(b"\n") {
        rest.len()
    } else {
        memchr::memrchr(b'\n', rest).map_or(0, |at| at + 1)
    };
    let start = position.offset();
    if let Some(too_long) = begun {
        let filter = filter.as_deref_mut();
        completed(buffer, filter, &mut reading, &mut sink, start, too_long);
    }
    let mut at = 0;
    while at < end {
        let mut kept = end;
        if let Some(filter) = &mut filter {
            let place = Place {
                offset: start + at as u64,
                lines: sink.line_number,
            };
            let taken = filter.take(&rest[at..end], max_line_bytes, place)?;
            at += taken.bytes;
            sink.line_number += taken.lines as u64;
            filter.close(|line, len, place| {
                sink.put(reading.padded(line, len), &line[..len], place);
                Ok(())
            })?;
            kept = taken.kept;
        }
        reading.lines(&mut sink, &rest[at..], kept, start + at as u64);
        at += kept;
    }
    if let Some(filter) = filter {
        filter.close(|line, len, place| {
            sink.put(reading.padded(line, len), &line[..len], place);
            Ok(())
        })?;
        filter.rest();
    }
    buffer.count_searched(end);
    position.taken += end as u64;
    position.line = sink.line_number;
    lines.unknown += sink.unknown;
    lines.messages += (sink.messages.len() - sink.falls.len()) as u64;
    let has_all = !sink.is_full;
    keep(lines, &rest[end..])?;
    Ok(has_all)
}

/// Reads the line that `buffer` has completed. `end` is the offset after the line in the stream. `too_long` is the length of a line over the
/// limit.
fn completed(
    buffer: &mut Buffer,
    filter: Option<&mut Filter>,
    reading: &mut Reading,
    sink: &mut Sink,
    end: u64,
    mut too_long: Option<u64>,
) {
    let place = Place {
        offset: end - too_long.map_or(buffer.completed().len() as u64, |length| length + 1),
        lines: sink.line_number,
    };
    let kept = match filter {
        Some(filter) if too_long.is_none() && !filter.keeps(buffer.completed().len()) => {
            let taken = filter.take(buffer.completed(), usize::MAX, place);
            taken.map_or_else(
                |_| {
                    // Without memory for a copy, the line is dropped and reported as if it were over the limit.
                    filter.rest();
                    too_long = Some(buffer.drop_completed() as u64);
                    1
                },
                |taken| taken.kept,
            )
        }
        _ => 1,
    };
    sink.line_number += 1;
    if let Some(length) = too_long {
        sink.too_long(buffer.completed(), length, place);
    } else if kept > 0 {
        if let Some((line, len)) = buffer.completed_and(PAD) {
            sink.put(reading.padded(line, len), &line[..len], place);
        } else {
            sink.put(Line::FallsThrough, buffer.completed(), place);
        }
    }
}

/// Calls the reader. After a panic of the reader, all lines fall through to Python.
struct Reading<'a> {
    reader: &'a mut Reader<Python>,
    has_panicked: &'a mut bool,
}

impl Reading<'_> {
    /// Calls [`Reader::padded`].
    fn padded(&mut self, data: &[u8], len: usize) -> Line<Object> {
        if *self.has_panicked {
            return Line::FallsThrough;
        }
        let read = catch_unwind(AssertUnwindSafe(|| self.reader.padded(data, len)));
        *self.has_panicked = read.is_err();
        read.unwrap_or(Line::FallsThrough)
    }

    /// Reads the lines in the first `len` bytes of `data` into `sink`. The bytes end with an LF. `start` is their offset in the stream.
    fn lines(&mut self, sink: &mut Sink, data: &[u8], len: usize, start: u64) {
        let mut done = 0;
        let take = |sink: &mut Sink, done: &mut usize, read, line: &[u8]| {
            let place = Place {
                offset: start + *done as u64,
                lines: sink.line_number,
            };
            *done += line.len();
            sink.line_number += 1;
            sink.put(read, line, place);
        };
        if !*self.has_panicked {
            let read = catch_unwind(AssertUnwindSafe(|| {
                self.reader.block(data, len, |read, from, to| {
                    take(sink, &mut done, read, &data[from..to]);
                });
            }));
            *self.has_panicked = read.is_err();
        }
        // After a panic, the remaining lines fall through.
        for line in data[done..len].split_inclusive(|&byte| byte == b'\n') {
            take(sink, &mut done, Line::FallsThrough, line);
        }
    }
}

/// Returns true if a line has only white space.
pub fn is_blank(line: &[u8]) -> bool {
    line.iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

/// Returns the index of the first LF. For less than 8 bytes, a loop is faster than a call of `memchr`.
#[inline]
fn first_line_feed(data: &[u8]) -> Option<usize> {
    if data.len() < 8 {
        data.iter().position(|&byte| byte == b'\n')
    } else {
        memchr::memchr(b'\n', data)
    }
}

#[allow(clippy::cast_possible_wrap)] // No stream has 2 to the power of 63 bytes.
fn signed(number: u64) -> i64 {
    number as i64
}

/// Keeps the beginning of a line until the next chunk comes.
fn keep(lines: &mut Lines, rest: &[u8]) -> Result<(), TryReserveError> {
    if !rest.is_empty() {
        lines.buffer.keep(rest, false)?;
        lines.position.taken += rest.len() as u64;
    }
    Ok(())
}
