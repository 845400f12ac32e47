//! [`Spill`]: bytes that are waiting in a file for the reader, for [`Mode::Spill`](super::Mode::Spill).

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::DecInt;

/// A file without a name and with mode 0600, used as a queue of bytes. The system deletes it when this value is dropped. Space is not
/// reused after a read, so the owner drops the file after reading all of it.
pub struct Spill {
    file: File,
    read: u64,
    written: u64,
}

impl Spill {
    /// Creates a file in `directory`. Does not allocate memory.
    pub fn create(directory: &CStr) -> Result<Self, Errno> {
        let (how, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::from_raw_mode(0o600));
        // With EXCL, no process can give the file a name through /proc.
        let unnamed = how | OFlags::TMPFILE | OFlags::EXCL;
        let file = match rustix::fs::open(directory, unnamed, mode) {
            // The file system does not support O_TMPFILE. These are the errors that open(2) lists for this case.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
                create_unlinked(directory, how, mode)?
            }
            file => file?,
        };
        Ok(Self {
            file: file.into(),
            read: 0,
            written: 0,
        })
    }

    /// Returns the length of the file.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the number of unread bytes.
    pub fn unread(&self) -> u64 {
        self.written - self.read
    }

    /// Appends `data` to the file. Returns the number of bytes written, which is less than the length of `data` if writing failed.
    pub fn push(&mut self, data: &[u8]) -> usize {
        let mut done = 0;
        while done < data.len() {
            match self.file.write_at(&data[done..], self.written) {
                Ok(0) => break,
                Ok(now) => {
                    done += now;
                    self.written += now as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        done
    }

    /// Reads the next bytes into `out`, and returns how many it read.
    pub fn pop(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.unread()).unwrap_or(usize::MAX);
        let room = room.min(out.len());
        loop {
            match self.file.read_at(&mut out[..room], self.read) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(now) => {
                    self.read += now as u64;
                    return Ok(now);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Creates a file and deletes its name immediately.
fn create_unlinked(directory: &CStr, how: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    /// How many names to try. Another user of the directory may have guessed the next names and used them.
    const TRIES: u32 = 100;
    static NEXT: AtomicU32 = AtomicU32::new(0);

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = now.map_or(0, |now| now.subsec_nanos());
    for _ in 0..TRIES {
        let number = u64::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 32 | u64::from(nanos);
        let name = DecInt::new(number);
        let name = name.as_c_str();
        match rustix::fs::openat(&directory, name, how | OFlags::CREATE | OFlags::EXCL, mode) {
            Err(Errno::EXIST) => {}
            Ok(file) => {
                rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
                return Ok(file);
            }
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::super::tests::bytes_from as bytes;
    use super::*;

    #[test]
    fn a_file_gives_what_it_got() {
        let directory = temporary();
        let (how, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::from_raw_mode(0o600));
        let unlinked = create_unlinked(&directory, how, mode).unwrap();
        for mut spill in [
            Spill::create(&directory).unwrap(),
            Spill {
                file: unlinked.into(),
                read: 0,
                written: 0,
            },
        ] {
            let metadata = spill.file.metadata().unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
            assert_eq!(metadata.nlink(), 0, "it has no name");
            let mut out = [0; 700];
            let mut at = 0;
            for round in 0..10 {
                assert_eq!(spill.push(&bytes(round * 1000, 1000)), 1000);
                let got = spill.pop(&mut out).unwrap();
                assert_eq!(out[..got], bytes(at, got));
                at += got;
            }
            assert_eq!((spill.written(), spill.unread()), (10_000, 3000));
        }
    }

    fn temporary() -> CString {
        CString::new(std::env::temp_dir().into_os_string().into_vec()).unwrap()
    }

    #[test]
    fn a_file_that_cannot_be_made_is_an_error() {
        assert!(Spill::create(c"/nowhere at all").is_err());
    }
}
