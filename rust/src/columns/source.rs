//! Where lines come from: files, ranges of files, and bytes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// The bytes of a source.
#[derive(Debug)]
pub enum Input {
    /// A file, which is opened when its turn has come.
    File(PathBuf),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The lines that begin in a range of some bytes.
#[derive(Debug)]
pub struct Source {
    /// The bytes.
    pub input: Input,
    /// The name of the file, as UTF-8.
    pub name: Option<Vec<u8>>,
    /// A line before this byte belongs to another range.
    pub start: u64,
    /// So does a line from this byte on.
    pub stop: u64,
}

/// An open source.
pub enum Open {
    /// A file.
    File(File),
    /// Bytes of a source, from here on.
    Bytes(usize),
}

impl Source {
    /// Where reading begins: one byte before the range, for that tells whether a line begins with it.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.start.saturating_sub(1)
    }

    /// Opens it.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn open(&self) -> io::Result<Open> {
        match &self.input {
            Input::File(path) => {
                let mut file = File::open(path)?;
                if self.begin() > 0 {
                    file.seek(SeekFrom::Start(self.begin()))?;
                }
                Ok(Open::File(file))
            }
            Input::Bytes(_) => Ok(Open::Bytes(
                usize::try_from(self.begin()).unwrap_or(usize::MAX),
            )),
        }
    }

    /// Reads what comes next, and returns how many bytes; 0 at the end.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn read(&self, open: &mut Open, out: &mut [u8]) -> io::Result<usize> {
        match open {
            Open::File(file) => loop {
                match file.read(out) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                    done => return done,
                }
            },
            Open::Bytes(at) => {
                let Input::Bytes(bytes) = &self.input else {
                    return Ok(0);
                };
                let read = bytes.get(*at..).unwrap_or_default().read(out)?;
                *at += read;
                Ok(read)
            }
        }
    }

    /// The number of the line that begins at byte `offset`; the first is 1. All before it is read.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn line_number(&self, offset: u64) -> io::Result<u64> {
        let whole = Self {
            input: match &self.input {
                Input::File(path) => Input::File(path.clone()),
                Input::Bytes(bytes) => {
                    let end = usize::try_from(offset).unwrap_or(usize::MAX);
                    let before = bytes.get(..end).unwrap_or(bytes);
                    return Ok(1 + feeds(before));
                }
            },
            name: None,
            start: 0,
            stop: offset,
        };
        let (mut open, mut left, mut number) = (whole.open()?, offset, 1);
        let mut buffer = vec![0; 64 * 1024];
        while left > 0 {
            let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let read = whole.read(&mut open, &mut buffer[..most])?;
            if read == 0 {
                break;
            }
            number += feeds(&buffer[..read]);
            left -= read as u64;
        }
        Ok(number)
    }
}

fn feeds(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
