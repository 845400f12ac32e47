//! The C form of a [`Step`]: what a line buffer found in the next part of a chunk.
//!
//! The caller reads the kind, and then the fields that belong to it. With the chunks `{"a":1}\n{"b"` and `:2}\n`:
//!
//! ```text
//! chunk 1  CW_BODY     bytes 8, lines 1       {"a":1}\n lies in the chunk; the buffer copies {"b"
//! chunk 2  CW_CARRY    lent, bytes 8, lines 1 {"b":2}\n lies in the buffer
//! ```

use std::ptr;

use super::CW_NOTHING;
use crate::lines::step::{Place, Step};

/// A kind of step: one line that began in an earlier chunk. It lies in the buffer's memory and is lent until the next call with
/// the handle.
pub const CW_CARRY: i32 = 1;
/// A kind of step: a block of complete lines in the caller's chunk.
pub const CW_BODY: i32 = 2;
/// A kind of step: the buffer dropped a line that is longer than `max_line_bytes`, or that it had no memory for.
pub const CW_TOO_LONG: i32 = 3;
/// A kind of step: lines that the filter let through. They are lent until the next call with the handle.
pub const CW_FILTERED: i32 = 4;

/// The most bytes of a lent line that are also copied to [`CwSteps::line`].
pub const CW_LINE_BYTES: usize = 4096;

/// What a line buffer found in the next part of a chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwStep {
    /// The lent bytes: the line of `CW_CARRY`, the lines of `CW_FILTERED`, or the first bytes of the line of `CW_TOO_LONG`.
    /// Null for the other kinds.
    pub lent: *const u8,
    /// `CW_CARRY`, `CW_BODY`, `CW_TOO_LONG`, `CW_FILTERED`, or `CW_NOTHING` if no line was completed.
    pub kind: i64,
    /// The number of bytes at `lent`. For `CW_BODY` the size of the block, which begins where the step began in the chunk.
    pub bytes: u64,
    /// The place in the chunk where the next step begins: 0 to the chunk's length.
    pub next: u64,
    /// The number of lines at `lent` or in the block.
    pub lines: u64,
    /// The sum of the `CW_DEFECT_…` of these lines; 0 if they are clean.
    pub defects: u64,
    /// For `CW_TOO_LONG`, the length of the dropped line in bytes, without its LF.
    pub length: u64,
    /// The byte offset in the stream of the first line of this step, including lines that the filter skipped.
    pub offset: u64,
    /// The number of this first line in the stream, from 1.
    pub line_number: u64,
}

/// The result of `cw_buffer_next`: one or two steps, and a copy of the lent line if it is short. Reading the copy spares the
/// caller a pointer into other memory, which is slow through cffi.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwSteps {
    /// The number of bytes of the chunk that the steps so far have consumed. The caller sets it to 0 before the first call with
    /// a chunk.
    pub at: u64,
    /// The first step, and the second if the call returned 2.
    pub steps: [CwStep; 2],
    /// A copy of the bytes that the first step lends, if it is `CW_CARRY` or `CW_FILTERED` and lends at most this many bytes.
    pub line: [u8; CW_LINE_BYTES],
}

impl CwStep {
    /// Returns the C form of `step`. The next step begins at byte `next` of the chunk; this one began at `place` of the stream.
    pub(super) fn new(step: Step<'_>, next: usize, place: Place) -> Self {
        let nothing = Self {
            lent: ptr::null(),
            kind: CW_NOTHING.into(),
            bytes: 0,
            next: next as u64,
            lines: 0,
            defects: 0,
            length: 0,
            offset: place.offset,
            line_number: place.lines,
        };
        match step {
            Step::Nothing { .. } => nothing,
            Step::Carry { line, defects } => Self {
                lent: line.as_ptr(),
                kind: CW_CARRY.into(),
                bytes: line.len() as u64,
                lines: 1,
                defects: defects.into(),
                ..nothing
            },
            Step::Body {
                end,
                lines,
                defects,
            } => Self {
                kind: CW_BODY.into(),
                bytes: end as u64,
                lines: lines as u64,
                defects: defects.into(),
                ..nothing
            },
            Step::Filtered {
                block,
                lines,
                defects,
                ..
            } => Self {
                lent: block.as_ptr(),
                kind: CW_FILTERED.into(),
                bytes: block.len() as u64,
                lines: lines as u64,
                defects: defects.into(),
                ..nothing
            },
            Step::TooLong { head, length } => Self {
                lent: head.as_ptr(),
                kind: CW_TOO_LONG.into(),
                bytes: head.len() as u64,
                lines: 1,
                length,
                ..nothing
            },
        }
    }
}
