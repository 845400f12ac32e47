//! [`Source`]: a file, a range of a file, or bytes, whose lines are read.
//!
//! A range `start..stop` owns the lines that begin in it. So several readers can share a file without losing or repeating a line:
//!
//! ```text
//! {"a":1}\n{"b":2}\n{"c":3}\n
//! 0        8        16
//! start 0,  stop 10   reads a and b: b begins at byte 8
//! start 10, stop 24   reads c
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

/// The bytes of a source.
#[derive(Debug)]
pub enum Input {
    /// A file. The reader opens it when it reaches this source.
    File(PathBuf),
    /// Bytes in memory.
    Bytes(Arc<Vec<u8>>),
}

/// The lines that begin in a range of an input.
#[derive(Debug)]
pub struct Source {
    /// The file or the bytes.
    pub input: Input,
    /// The name of the file, as UTF-8.
    pub name: Option<Vec<u8>>,
    /// The first byte of the range. Lines that begin before it are not read.
    pub start: u64,
    /// The end of the range. Lines that begin at this byte or later are not read.
    pub stop: u64,
}

/// A source that is open for reading.
#[derive(Debug)]
pub enum Open {
    /// An open file.
    File(File),
    /// Bytes in memory, and the index of the next read.
    Bytes(Cursor<Shared>),
}

impl Read for Open {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(out),
            Self::Bytes(bytes) => bytes.read(out),
        }
    }
}

/// A source's bytes, shared with its [`Open`], in a type that `Cursor` can read.
#[derive(Debug)]
pub struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Source {
    /// Opens the source for reading, starting at byte `at`. It opens regular files only: a FIFO may never get a writer, and a device may
    /// never end.
    ///
    /// # Errors
    ///
    /// System errors, and `InvalidInput` if the path is not a regular file.
    pub fn open(&self, at: u64) -> io::Result<Open> {
        Ok(match &self.input {
            Input::File(path) => {
                let mut options = OpenOptions::new();
                options.read(true);
                #[cfg(any(target_os = "linux", target_os = "macos"))]
                std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
                let mut file = options.open(path)?;
                if !file.metadata()?.is_file() {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        "not a regular file",
                    ));
                }
                if at > 0 {
                    file.seek(SeekFrom::Start(at))?;
                }
                Open::File(file)
            }
            Input::Bytes(bytes) => {
                let mut bytes = Cursor::new(Shared(Arc::clone(bytes)));
                bytes.set_position(at);
                Open::Bytes(bytes)
            }
        })
    }

    /// Returns the 1-based number of the line that begins at byte `offset`. `known` is an earlier line's offset and number, such as `(0,
    /// 1)`. The function reads the bytes in between and counts their LFs.
    ///
    /// # Errors
    ///
    /// System errors.
    pub fn line_number(&self, offset: u64, known: (u64, u64)) -> io::Result<u64> {
        let (start, mut number) = known;
        let mut before = self.open(start)?.take(offset - start);
        let mut buffer = [0; 16 * 1024];
        loop {
            let read = read(&mut before, &mut buffer)?;
            if read == 0 {
                return Ok(number);
            }
            number += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
        }
    }
}

/// Reads once. Repeats the call if a signal interrupts it.
///
/// # Errors
///
/// System errors.
pub fn read(from: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(out) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            done => return done,
        }
    }
}
