//! Counts the bytes and lines of a stream.
//!
//! The basic idea is simple: in the stream `{}\n{"a":1}\n`, the second line has the offset 3 and the number 2. Errors report both.

/// The place of a line in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of bytes before the line in the stream.
    pub offset: u64,
    /// The 1-based number of the line.
    pub lines: u64,
}

/// How many bytes and lines a stream has taken so far.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The number of bytes in all chunks so far, including earlier streams through the same buffer.
    pub taken: u64,
    /// The number of bytes in earlier streams.
    pub start: u64,
    /// The 1-based number of the next or unfinished line.
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
    /// Returns the number of bytes that this stream has taken so far.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.taken - self.start
    }

    /// Counts bytes that did not become lines, and the LFs in them.
    pub fn lose(&mut self, bytes: &[u8]) {
        self.taken += bytes.len() as u64;
        self.line += memchr::memchr_iter(b'\n', bytes).count() as u64;
    }

    /// Ends the stream. Its last line has `length` bytes and no LF. Returns the place of this line.
    pub fn end(&mut self, length: u64) -> Place {
        let place = Place {
            offset: self.offset() - length,
            lines: self.line,
        };
        (self.start, self.line) = (self.taken, 1);
        place
    }
}
