//! The steps through a chunk. Where in the stream a step stands is for the caller to count.

/// Where a line that a filter let through began, as seen from the first line that its step passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the beginning of that line.
    pub offset: u64,
    /// Lines from that line.
    pub lines: u64,
}

/// What came next in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Nothing came of the lines that were passed, if there were any.
    Nothing {
        /// Lines that a filter skipped, or that were blank.
        passed: usize,
    },
    /// One line that began in an earlier chunk, with its LF (without at [`Buffer::close`](super::buffer::Buffer::close)).
    Carry {
        /// The line, in memory of the buffer.
        line: &'a [u8],
        /// See [`Frame::defects`](super::frame::Frame::defects).
        defects: u32,
    },
    /// Complete lines within the caller's chunk: at most [`BLOCK_BYTES`](super::buffer::BLOCK_BYTES) of them, or one longer line.
    Body {
        /// The block is `data[..end]`, which ends with an LF.
        end: usize,
        /// Number of lines, at least 1.
        lines: usize,
        /// See [`Frame::defects`](super::frame::Frame::defects).
        defects: u32,
    },
    /// Lines that a filter let through.
    Filtered {
        /// Lines, each with its LF, in memory of the filter.
        block: &'a [u8],
        /// Number of lines, at least 1.
        lines: usize,
        /// Number of lines of the stream that they were let through from.
        passed: usize,
        /// Bytes of the first of these that came in earlier chunks.
        begun: usize,
        /// See [`Frame::defects`](super::frame::Frame::defects).
        defects: u32,
    },
    /// A line over the limit, or for which there was no memory, now that its end has been seen.
    TooLong {
        /// Its first bytes, at most [`HEAD_BYTES`](super::buffer::HEAD_BYTES).
        head: &'a [u8],
        /// Its whole length, without the LF.
        length: u64,
    },
}

impl Step<'_> {
    /// No line was completed.
    pub const NOTHING: Self = Self::Nothing { passed: 0 };
}
