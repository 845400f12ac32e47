//! Steps through a chunk, as C sees them.

use std::ptr;

use super::CW_NOTHING;
use crate::lines::step::{Place, Step};

/// A step: one line in memory of the buffer, lent until the next call with the handle.
pub const CW_CARRY: i32 = 1;
/// A step: complete lines in the caller's memory.
pub const CW_BODY: i32 = 2;
/// A step: a line over the limit was dropped.
pub const CW_TOO_LONG: i32 = 3;
/// A step: lines that a filter let through, lent until the next call with the handle.
pub const CW_FILTERED: i32 = 4;

/// Most bytes that are copied to the result of two steps.
pub const CW_LINE_BYTES: usize = 4096;

/// A step through a chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwStep {
    /// First byte of what is lent: the line of `CW_CARRY`, the lines of `CW_FILTERED`, the head of `CW_TOO_LONG`, otherwise
    /// null.
    pub lent: *const u8,
    /// `CW_CARRY`, `CW_BODY`, `CW_TOO_LONG`, `CW_FILTERED`, or `CW_NOTHING` if it gives no line.
    pub kind: i64,
    /// Bytes at `lent`; for `CW_BODY` the bytes of the block, which begins at the `start` that the caller gave.
    pub bytes: u64,
    /// Where in the chunk the next call begins: 0 to the chunk's length.
    pub next: u64,
    /// Lines in what is lent or in the block.
    pub lines: u64,
    /// `CW_DEFECT_…` added up, 0 if it is clean.
    pub defects: u64,
    /// For `CW_TOO_LONG`, the whole length of the line without its LF.
    pub length: u64,
    /// Bytes of the stream before the first line that the step passed.
    pub offset: u64,
    /// The number of that line in the stream, from 1.
    pub line_number: u64,
}

/// The steps that `cw_buffer_next` takes, and what it lends if that is short: reading it from here spares the caller
/// following a pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwSteps {
    /// Bytes of the chunk that are taken. The caller sets it to 0 before the first call with a chunk.
    pub at: u64,
    /// The first step, and the second if there is one.
    pub steps: [CwStep; 2],
    /// If the first is `CW_CARRY` or `CW_FILTERED`, and what it lends has at most so many bytes: a copy of that.
    pub line: [u8; CW_LINE_BYTES],
}

impl CwStep {
    /// `next` is where in the chunk the next call begins, `place` where in the stream the step does.
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
