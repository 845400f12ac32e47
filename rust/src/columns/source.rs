//! Where lines come from: files, ranges of files, and bytes.

use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

/// The bytes of a source.
#[derive(Debug)]
pub enum Input {
    /// A file, opened when its turn has come.
    File(PathBuf),
    /// Bytes.
    Bytes(Arc<Vec<u8>>),
}

/// The lines that begin in a range of some bytes.
#[derive(Debug)]
pub struct Source {
    /// The bytes.
    pub input: Input,
    /// The name of the file, as UTF-8.
    pub name: Option<Vec<u8>>,
    /// Lines that begin before this byte belong to another range.
    pub start: u64,
    /// So do lines that begin at this byte or after it.
    pub stop: u64,
}

/// An open source.
#[derive(Debug)]
pub enum Open {
    /// A file.
    File(File),
    /// Bytes.
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

/// Bytes shared by a source and its open form.
#[derive(Debug)]
pub struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Source {
    /// Opens it at a place. A FIFO may never have a writer, and a device may never end, so neither is opened.
    ///
    /// # Errors
    ///
    /// Those of the system; or it is not a regular file.
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

    /// The number of the line that begins at byte `offset`; the first is 1. All between it and `known` is read: the offset and the
    /// number of a line that does not come after it, such as `(0, 1)`.
    ///
    /// # Errors
    ///
    /// Those of the system.
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

/// Reads once, and again if that was interrupted.
///
/// # Errors
///
/// Those of the system.
pub fn read(from: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(out) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            done => return done,
        }
    }
}
