//! Steps through a chunk, as C sees them.

use std::ptr;

use super::CW_NOTHING;
use crate::lines::step::Step;

/// A step: one line in memory of the buffer, lent until the next call with the handle.
pub const CW_CARRY: i32 = 1;
/// A step: complete lines in the caller's memory.
pub const CW_BODY: i32 = 2;
/// A step: a line over the limit was dropped.
pub const CW_TOO_LONG: i32 = 3;
/// A step: lines that a filter let through, lent until the next call with the handle.
pub const CW_SIFTED: i32 = 4;

/// Most bytes that are copied to the result of two steps.
pub const CW_LINE_BYTES: usize = 4096;

/// A step through a chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwStep {
    /// First byte of what is lent: the line of `CW_CARRY`, the lines of `CW_SIFTED`, the head of `CW_TOO_LONG`, otherwise
    /// null.
    pub lent: *const u8,
    /// Bytes at `lent`; for `CW_BODY` the bytes of the block, which begins at the `start` that the caller gave.
    pub bytes: u64,
    /// Where in the chunk the next call begins: 0 to the chunk's length.
    pub next: u64,
    /// Bytes of the stream before the block or line.
    pub offset: u64,
    /// Number of its first line, counted from 1.
    pub line_number: u64,
    /// Lines in it.
    pub lines: u64,
    /// `CW_DEFECT_…` added up, 0 if it is clean.
    pub defects: u64,
    /// For `CW_TOO_LONG`, the whole length of the line without its LF.
    pub length: u64,
}

/// The steps that `cw_buffer_next_two` takes, and what it lends if that is short: reading it from here spares the caller
/// following a pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwSteps {
    /// The first step, and the second if there is one.
    pub steps: [CwStep; 2],
    /// If the first is `CW_CARRY` or `CW_SIFTED`, and what it lends has at most so many bytes: a copy of that.
    pub line: [u8; CW_LINE_BYTES],
}

impl CwStep {
    /// A step of a stream, after its status. `next` is where in the chunk the next call begins.
    pub(super) fn new(step: Step<'_>, next: usize) -> (i32, Self) {
        let (status, lent, bytes, lines, place, defects, length) = match step {
            Step::Nothing => return (CW_NOTHING, Self::nothing(next)),
            Step::Carry {
                line,
                place,
                defects,
            } => (CW_CARRY, line.as_ptr(), line.len(), 1, place, defects, 0),
            Step::Body {
                end,
                lines,
                place,
                defects,
            } => (CW_BODY, ptr::null(), end, lines, place, defects, 0),
            Step::Filtered {
                block: lent,
                lines,
                place,
                defects,
            } => (
                CW_SIFTED,
                lent.as_ptr(),
                lent.len(),
                lines,
                place,
                defects,
                0,
            ),
            Step::TooLong {
                head,
                length,
                place,
            } => (CW_TOO_LONG, head.as_ptr(), head.len(), 1, place, 0, length),
        };
        let step = Self {
            lent,
            bytes: bytes as u64,
            next: next as u64,
            offset: place.offset,
            line_number: place.line_number,
            lines: lines as u64,
            defects: defects.into(),
            length,
        };
        (status, step)
    }

    /// A step that lends nothing and says nothing else.
    pub(super) fn nothing(next: usize) -> Self {
        Self {
            lent: ptr::null(),
            bytes: 0,
            next: next as u64,
            offset: 0,
            line_number: 0,
            lines: 0,
            defects: 0,
            length: 0,
        }
    }
}
