//! Steps through a chunk, as C sees them: one struct for those of a buffer and those through a sieve.

use std::ptr;

use super::CW_NOTHING;
use crate::buffer::{Place, Step};
use crate::sift;

/// A step: one line in memory of the buffer, lent until the next call with the handle.
pub const CW_CARRY: i32 = 1;
/// A step: complete lines in the caller's memory.
pub const CW_BODY: i32 = 2;
/// A step: a line over the limit was dropped.
pub const CW_TOO_LONG: i32 = 3;
/// A step: lines that a sieve let through, lent until the next call with the handle.
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
    /// A step of a buffer, after its status. `next` is where in the chunk the next call begins.
    pub(super) fn new(step: Step<'_>, next: usize) -> (i32, Self) {
        match step {
            Step::Nothing => (CW_NOTHING, Self::nothing(next)),
            Step::Carry {
                line,
                place,
                defects,
            } => {
                let step = Self::of(line.as_ptr(), line.len(), next, 1, place, defects);
                (CW_CARRY, step)
            }
            Step::Body {
                end,
                lines,
                place,
                defects,
            } => {
                let step = Self::of(ptr::null(), end, next, lines, place, defects);
                (CW_BODY, step)
            }
            Step::TooLong {
                head,
                length,
                place,
            } => (CW_TOO_LONG, Self::too_long(head, length, next, place)),
        }
    }

    /// A step through a sieve, as [`CwStep::new`].
    pub(super) fn sifted(step: sift::Step<'_>, next: usize) -> (i32, Self) {
        match step {
            sift::Step::Nothing => (CW_NOTHING, Self::nothing(next)),
            sift::Step::Sifted {
                block,
                lines,
                place,
                defects,
            } => {
                let step = Self::of(block.as_ptr(), block.len(), next, lines, place, defects);
                (CW_SIFTED, step)
            }
            sift::Step::TooLong {
                head,
                length,
                place,
            } => (CW_TOO_LONG, Self::too_long(head, length, next, place)),
        }
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

    fn of(
        lent: *const u8,
        bytes: usize,
        next: usize,
        lines: usize,
        place: Place,
        defects: u32,
    ) -> Self {
        Self {
            lent,
            bytes: bytes as u64,
            next: next as u64,
            offset: place.offset,
            line_number: place.line_number,
            lines: lines as u64,
            defects: defects.into(),
            length: 0,
        }
    }

    fn too_long(head: &[u8], length: u64, next: usize, place: Place) -> Self {
        Self {
            length,
            ..Self::of(head.as_ptr(), head.len(), next, 1, place, 0)
        }
    }
}
