//! Places in a stream.

/// Where a line begins in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Bytes of the stream before the line.
    pub offset: u64,
    /// The number of the line, from 1.
    pub lines: u64,
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

    /// Counts bytes that were lost, and their lines.
    pub fn lose(&mut self, bytes: &[u8]) {
        self.taken += bytes.len() as u64;
        self.line += memchr::memchr_iter(b'\n', bytes).count() as u64;
    }

    /// Ends the stream, whose last line has `length` bytes and no LF. Returns where that line began.
    pub fn end(&mut self, length: u64) -> Place {
        let place = Place {
            offset: self.offset() - length,
            lines: self.line,
        };
        (self.start, self.line) = (self.taken, 1);
        place
    }
}
