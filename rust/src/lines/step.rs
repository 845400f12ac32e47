//! The steps through a chunk. The caller counts where in the stream a step stands.

/// Where a line began: in the stream, or as seen from the first line that its step passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Bytes before it, from there on.
    pub offset: u64,
    /// Lines before it; of a stream its number, from 1.
    pub lines: u64,
}

/// The next thing in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Nothing to decode; lines may have been passed.
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
    /// Lines that a filter passed.
    Filtered {
        /// Lines, each with its LF, in memory of the filter.
        block: &'a [u8],
        /// Number of lines, at least 1.
        lines: usize,
        /// Number of lines of the stream that the filter looked at for them.
        passed: usize,
        /// Bytes of the first of these that came in earlier chunks.
        begun: usize,
        /// See [`Frame::defects`](super::frame::Frame::defects).
        defects: u32,
    },
    /// A line over the limit, or without memory for it. Its end has now been seen.
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

/// How far a stream has come.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Bytes of all chunks, of all streams of a buffer.
    pub taken: u64,
    /// Bytes that came before this stream.
    pub start: u64,
    /// The number of the next or unfinished line, from 1.
    pub line: u64,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            taken: 0,
            start: 0,
            line: 1,
        }
    }
}

impl Position {
    /// Bytes of this stream.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.taken - self.start
    }

    /// Advances by a step that has taken this many bytes. Returns where its first line began.
    pub fn pass(&mut self, bytes: usize, step: &Step<'_>) -> Place {
        let before = self.offset();
        self.taken += bytes as u64;
        let after = self.offset();
        let (offset, passed) = match *step {
            Step::Nothing { passed } => (before, passed),
            Step::Carry { line, .. } => (after - line.len() as u64, 1),
            Step::Body { lines, .. } => (before, lines),
            Step::Filtered { passed, begun, .. } => (before - begun as u64, passed),
            Step::TooLong { length, .. } => (after - length - 1, 1),
        };
        let lines = self.line;
        self.line += passed as u64;
        Place { offset, lines }
    }

    /// Passes over bytes that were lost.
    pub fn lose(&mut self, bytes: &[u8]) {
        self.taken += bytes.len() as u64;
        self.line += memchr::memchr_iter(b'\n', bytes).count() as u64;
    }

    /// Ends the stream, with its last line if that has no LF. Returns where that began.
    pub fn end(&mut self, last: &Step<'_>) -> Place {
        let length = match *last {
            Step::Carry { line, .. } => line.len() as u64,
            Step::TooLong { length, .. } => length,
            _ => 0,
        };
        let place = Place {
            offset: self.offset() - length,
            lines: self.line,
        };
        (self.start, self.line) = (self.taken, 1);
        place
    }
}
