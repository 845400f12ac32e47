//! Turns a chunk into messages in one native call: finds and reads the lines.
//!
//! The basic idea is simple: for the chunk `{"type":"user",…}\n[1]\n`, the call returns the list `[UserMessage(…), None]`, and one fall for the
//! line `[1]`.
//!
//! The call returns some lines as *falls*: lines that the reader cannot read, and lines over the limit. Python decodes or reports them.

use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

use super::object::{bytes, Object, Python};
use super::{int, list, none, number, tuple, State, Work};
use crate::fallible::push;
use crate::ffi::buffer::{Lines, BUFFERS};
use crate::lines::buffer::HEAD_BYTES;
use crate::lines::place::Place;
use crate::stream::Sink;
use crate::typed::{Line, Reader};

/// A line that Python must decode or report.
pub struct Fall {
    /// The index of its `None` in the list of messages.
    index: usize,
    /// The bytes of the line without its LF, or the head of a line over the limit.
    line: Object,
    /// The place of the line in the stream.
    place: Place,
    /// The number of the class whose fields Python must add to the plan before the reader can read such lines; -1 if this does not help.
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
struct Collected<'a> {
    messages: &'a mut Vec<Option<Object>>,
    falls: &'a mut Vec<Fall>,
    unknown: u64,
    max_line_bytes: usize,
    /// True if a message or a fall was lost because memory ran out.
    is_full: bool,
}

impl Collected<'_> {
    /// Adds the result of a line. `line` includes its LF.
    #[inline]
    fn put(&mut self, read: Line<Object>, line: &[u8], place: Place) {
        if self.messages.try_reserve(1).is_err() {
            self.is_full = true;
            return;
        }
        let length = line.len() - 1;
        match read {
            _ if length > self.max_line_bytes => {
                self.too_long(&line[..length.min(HEAD_BYTES)], length as u64, place);
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

    fn too_long(&mut self, head: &[u8], length: u64, place: Place) {
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
    /// The tuple `(messages, falls)`. `messages` has `None` in place of each fall.
    Rest(Object),
    /// The chunk was not consumed, so Python must decode it.
    Nothing,
}

/// Feeds a chunk to the line buffer with this handle, and reads the lines that the chunk completes. Returns `None` if memory runs out.
pub fn feed(handle: u64, state: &State, work: &mut Work, data: &[u8]) -> Option<Fed> {
    let taken = BUFFERS.with(handle, |lines| take(lines, state, work, data));
    let Work {
        messages, falls, ..
    } = work;
    let result = match taken {
        // The handle was refused. The fallback raises the exception that explains why.
        Err(_) => Some(Fed::Nothing),
        Ok(true) => fed(messages, falls),
        Ok(false) => None,
    };
    messages.clear();
    falls.clear();
    result
}

/// Returns the result of a chunk; `None` if memory runs out.
fn fed(messages: &mut Vec<Option<Object>>, falls: &mut Vec<Fall>) -> Option<Fed> {
    let messages = list(messages.drain(..).map(|it| it.unwrap_or_else(none)))?;
    if falls.is_empty() {
        return Some(Fed::Messages(messages));
    }
    let mut rows = Vec::new();
    for fall in falls.drain(..) {
        push(&mut rows, fall.row()?).ok()?;
    }
    Some(Fed::Rest(tuple([messages, list(rows)?])?))
}

/// Reads the lines that a chunk completes. Returns false if a line was lost because memory ran out.
fn take(lines: &mut Lines, state: &State, work: &mut Work, data: &[u8]) -> bool {
    let mut reading = Reading {
        reader: &mut work.reader,
        has_panicked: &state.has_panicked,
        found: Collected {
            messages: &mut work.messages,
            falls: &mut work.falls,
            unknown: 0,
            max_line_bytes: lines.stream.buffer.max_line_bytes(),
            is_full: false,
        },
    };
    let taken = lines.stream.take(data, &mut reading);
    let found = reading.found;
    lines.unknown += found.unknown;
    lines.messages += (found.messages.len() - found.falls.len()) as u64;
    taken.is_ok() && !found.is_full
}

/// Calls the reader. If the reader panics, all later lines fall through to Python.
struct Reading<'a> {
    reader: &'a mut Reader<Python>,
    has_panicked: &'a Cell<bool>,
    found: Collected<'a>,
}

impl Sink for Reading<'_> {
    const KEEPS_CARRIED: bool = false;

    fn lines(&mut self, data: &[u8], len: usize, place: Place) -> u64 {
        let Place { offset, lines } = place;
        let (mut done, mut count) = (0, 0);
        let mut take = |found: &mut Collected, read, line: &[u8]| {
            let place = Place {
                offset: offset + done as u64,
                lines: lines + count,
            };
            done += line.len();
            count += 1;
            found.put(read, line, place);
            done
        };
        let mut read_to = 0;
        if !self.has_panicked.get() {
            let read = catch_unwind(AssertUnwindSafe(|| {
                self.reader.block(data, len, |read, from, to| {
                    read_to = take(&mut self.found, read, &data[from..to]);
                });
            }));
            self.has_panicked.set(read.is_err());
        }
        // After a panic, the remaining lines fall through.
        for line in data[read_to..len].split_inclusive(|&byte| byte == b'\n') {
            take(&mut self.found, Line::FallsThrough, line);
        }
        count
    }

    fn carried(&mut self, data: &[u8], len: usize, place: Place) {
        let mut read = Line::FallsThrough;
        if !self.has_panicked.get() {
            let padded = catch_unwind(AssertUnwindSafe(|| self.reader.padded(data, len)));
            self.has_panicked.set(padded.is_err());
            read = padded.unwrap_or(read);
        }
        self.found.put(read, &data[..len], place);
    }

    fn merged(&mut self, data: &[u8], len: usize, place: Place) {
        self.carried(data, len, place);
    }

    fn too_long(&mut self, head: &[u8], length: u64, place: Place) {
        self.found.too_long(head, length, place);
    }
}

/// Returns true if a line contains only white space.
pub fn is_blank(line: &[u8]) -> bool {
    line.iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

#[allow(clippy::cast_possible_wrap)] // No stream has 2 to the power of 63 bytes.
fn signed(number: u64) -> i64 {
    number as i64
}
