//! The steps through a chunk, and where in the stream they stand.

/// Where a block or a line stands in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes of the stream before it, a skipped BOM included.
    pub offset: u64,
    /// Number of its first line. The first line of the stream is 1; blank and dropped lines count.
    pub line_number: u64,
}

impl Place {
    /// The start of a stream.
    pub const START: Self = Self {
        offset: 0,
        line_number: 1,
    };
}

/// What came next in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// No line was completed.
    Nothing,
    /// One line that began in an earlier chunk, with its LF (without at [`Buffer::close`](super::buffer::Buffer::close)).
    Carry {
        /// The line, in memory of the buffer.
        line: &'a [u8],
        /// Where it begins.
        place: Place,
        /// See [`Frame::defects`](super::frame::Frame::defects).
        defects: u32,
    },
    /// Complete lines within the caller's chunk: at most [`BLOCK_BYTES`](super::buffer::BLOCK_BYTES) of them, or one longer line.
    Body {
        /// The block is `data[..end]`, which ends with an LF.
        end: usize,
        /// Number of lines, at least 1.
        lines: usize,
        /// Where the first line begins.
        place: Place,
        /// See [`Frame::defects`](super::frame::Frame::defects).
        defects: u32,
    },
    /// Lines that a filter let through.
    Filtered {
        /// Lines, each with its LF, in memory of the filter.
        block: &'a [u8],
        /// Number of lines, at least 1.
        lines: usize,
        /// Where the first of them begins in the stream.
        place: Place,
        /// See [`Frame::defects`](super::frame::Frame::defects).
        defects: u32,
    },
    /// A line over the limit, or for which there was no memory, now that its end has been seen.
    TooLong {
        /// Its first bytes, at most [`HEAD_BYTES`](super::buffer::HEAD_BYTES).
        head: &'a [u8],
        /// Its whole length, without the LF.
        length: u64,
        /// Where it begins.
        place: Place,
    },
}
