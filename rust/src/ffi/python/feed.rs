//! A chunk in, messages out, in one call: framing and reading without Python in between.
//!
//! What is unusual comes back with the messages as a *fall*: a line that the reader leaves to others, or that is over the limit.

use std::collections::TryReserveError;
use std::panic::{catch_unwind, AssertUnwindSafe};

use super::object::{bytes, Object};
use super::{empty_list, int, list, none, number, tuple, State};
use crate::ffi::buffer::{Lines, BUFFERS};
use crate::lines::buffer::HEAD_BYTES;
use crate::simd::PAD;
use crate::typed::Line;

/// A line that is left to others, in its place among the messages.
pub struct Fall {
    /// Its index among the messages.
    index: usize,
    /// Its bytes without the LF; of a line over the limit, its head.
    line: Object,
    /// Where it begins in the stream.
    offset: u64,
    line_number: u64,
    /// The class that it wants, or -1.
    wanted: i64,
    /// Its length if it is over the limit, or -1.
    too_long: i64,
}

impl Fall {
    /// The tuple that Python gets.
    fn row(self) -> Option<Object> {
        tuple([
            int(number(self.index))?,
            self.line,
            int(signed(self.offset))?,
            int(signed(self.line_number))?,
            int(self.wanted)?,
            int(self.too_long)?,
        ])
    }
}

/// Gathers what becomes of the lines of a chunk.
struct Sink<'a> {
    messages: &'a mut Vec<Option<Object>>,
    falls: &'a mut Vec<Fall>,
    line_number: u64,
    unknown: u64,
    max_line_bytes: usize,
    /// Something was lost for lack of memory.
    is_full: bool,
}

impl Sink<'_> {
    /// A complete line with its LF.
    #[inline]
    fn line(&mut self, read: Line<Object>, line: &[u8], offset: u64) {
        let line_number = self.line_number;
        self.line_number += 1;
        if self.messages.try_reserve(1).is_err() {
            self.is_full = true;
            return;
        }
        let length = line.len() - 1;
        match read {
            _ if length > self.max_line_bytes => {
                self.too_long(&line[..length], length as u64, offset, line_number);
            }
            Line::Message(message, is_unknown) => {
                self.unknown += u64::from(is_unknown);
                self.messages.push(Some(message));
            }
            Line::FallsThrough if is_blank(line) => {}
            Line::FallsThrough => self.fall(&line[..length], offset, line_number, -1, -1),
            Line::Wants(class) => {
                self.fall(&line[..length], offset, line_number, number(class), -1);
            }
        }
    }

    fn too_long(&mut self, line: &[u8], length: u64, offset: u64, line_number: u64) {
        let head = &line[..line.len().min(HEAD_BYTES)];
        self.fall(head, offset, line_number, -1, signed(length));
    }

    #[cold]
    fn fall(&mut self, line: &[u8], offset: u64, line_number: u64, wanted: i64, too_long: i64) {
        let line = bytes(line);
        let has_room = self.messages.try_reserve(1).is_ok() && self.falls.try_reserve(1).is_ok();
        let (Some(line), true) = (line, has_room) else {
            self.is_full = true;
            return;
        };
        self.falls.push(Fall {
            index: self.messages.len(),
            line,
            offset,
            line_number,
            wanted,
            too_long,
        });
        self.messages.push(None);
    }
}

/// What a chunk gives.
pub enum Fed {
    /// A list of messages.
    Messages(Object),
    /// The same with None in the place of lines that were not read, and a list of those: `(messages, falls)`.
    Rest(Object),
    /// Nothing of it was taken: others must do that.
    Nothing,
}

/// Takes a chunk, if nothing else is to be done with its lines than to read them; `None` without memory.
pub fn feed(handle: u64, state: &mut State, data: &[u8]) -> Option<Fed> {
    let taken = BUFFERS.with(handle, |lines| {
        if lines.filter.is_some() {
            return None;
        }
        let before = lines.position.taken;
        let taken = take(lines, state, data);
        if taken.is_err() {
            #[allow(clippy::cast_possible_truncation)] // It is at most the length of a slice.
            let taken = (lines.position.taken - before) as usize;
            lines.position.lose(&data[taken..]);
        }
        Some(taken)
    });
    let State {
        messages, falls, ..
    } = state;
    let result = match taken {
        // Who takes it otherwise says what is wrong.
        Err(_) | Ok(None) => Some(Fed::Nothing),
        Ok(Some(Ok(true))) if messages.is_empty() => empty_list().map(Fed::Messages),
        Ok(Some(Ok(true))) => (|| {
            let falls = falls.drain(..).map(Fall::row);
            let falls = falls.collect::<Option<Vec<_>>>()?;
            let messages = list(messages.drain(..).map(|it| it.unwrap_or_else(none)))?;
            if falls.is_empty() {
                return Some(Fed::Messages(messages));
            }
            Some(Fed::Rest(tuple([messages, list(falls)?])?))
        })(),
        Ok(Some(_)) => None,
    };
    messages.clear();
    falls.clear();
    result
}

/// Reads the lines that a chunk completes, and keeps the rest of it. Returns whether nothing was lost.
fn take(lines: &mut Lines, state: &mut State, data: &[u8]) -> Result<bool, TryReserveError> {
    let Lines {
        buffer, position, ..
    } = lines;
    let mut sink = Sink {
        messages: &mut state.messages,
        falls: &mut state.falls,
        line_number: position.line,
        unknown: 0,
        max_line_bytes: buffer.max_line_bytes(),
        is_full: false,
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
    if buffer.is_unfinished() && !rest.is_empty() {
        let Some(end) = first_line_feed(rest) else {
            keep(lines, rest)?;
            return Ok(true);
        };
        let completed = buffer.complete_at(rest, end, false)?;
        rest = &rest[completed.consumed..];
        position.taken += completed.consumed as u64;
        let end = position.offset();
        if let Some(length) = completed.too_long {
            let number = sink.line_number;
            sink.line_number += 1;
            sink.too_long(buffer.completed(), length, end - length - 1, number);
        } else if let Some((line, len)) = buffer.completed_and(PAD) {
            let reader = &mut state.reader;
            let read = catch_unwind(AssertUnwindSafe(|| reader.padded(line, len)));
            state.has_panicked |= read.is_err();
            let read = read.unwrap_or(Line::FallsThrough);
            sink.line(read, &line[..len], end - len as u64);
        } else {
            let line = buffer.completed();
            sink.line(Line::FallsThrough, line, end - line.len() as u64);
        }
    }
    // Most chunks are one line, or end with one.
    let end = if rest.ends_with(b"\n") {
        rest.len()
    } else {
        memchr::memrchr(b'\n', rest).map_or(0, |at| at + 1)
    };
    if end > 0 {
        let start = position.offset();
        let mut done = 0;
        if !state.has_panicked {
            let reader = &mut state.reader;
            let read = catch_unwind(AssertUnwindSafe(|| {
                reader.block(rest, end, |read, from, to| {
                    done = to;
                    sink.line(read, &rest[from..to], start + from as u64);
                });
            }));
            state.has_panicked |= read.is_err();
        }
        // Those that a panic has left.
        for line in rest[done..end].split_inclusive(|&byte| byte == b'\n') {
            sink.line(Line::FallsThrough, line, start + done as u64);
            done += line.len();
        }
        buffer.count_searched(end);
        position.taken += end as u64;
        rest = &rest[end..];
    }
    position.line = sink.line_number;
    lines.unknown += sink.unknown;
    lines.messages += (sink.messages.len() - sink.falls.len()) as u64;
    let has_all = !sink.is_full;
    keep(lines, rest)?;
    Ok(has_all)
}

/// Whether a line has nothing in it.
fn is_blank(line: &[u8]) -> bool {
    line.iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

/// Where the first LF is. To call `memchr` takes longer than to look at a few bytes.
#[inline]
fn first_line_feed(data: &[u8]) -> Option<usize> {
    if data.len() < 8 {
        data.iter().position(|&byte| byte == b'\n')
    } else {
        memchr::memchr(b'\n', data)
    }
}

#[allow(clippy::cast_possible_wrap)] // No stream has so many bytes.
fn signed(number: u64) -> i64 {
    number as i64
}

/// Keeps the beginning of a line.
fn keep(lines: &mut Lines, rest: &[u8]) -> Result<(), TryReserveError> {
    if !rest.is_empty() {
        lines.buffer.keep(rest, false)?;
        lines.position.taken += rest.len() as u64;
    }
    Ok(())
}
