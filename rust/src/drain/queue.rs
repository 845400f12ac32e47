//! Bytes that wait for their reader, in memory or in a file.
//!
//! The rescuer calls all of this. An allocation that fails must not abort the host, so all of them may fail, and fail
//! before bytes are read that would be lost by it.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::DecInt;

use super::CHUNK;

/// A piece with less room than this is not read into any more: a read of few bytes costs as much as one of many.
const ROOM: usize = 8 * 1024;

/// Bytes in memory, first in, first out.
#[derive(Default)]
pub struct Queue {
    /// None of them is empty.
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first one that were taken already.
    taken: usize,
    len: usize,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads once, at most as many bytes as `scratch` has room for, into which it reads if that is less than [`CHUNK`].
    /// Returns how many bytes were read, and whether there may be more. [`Errno::NOMEM`] before anything was read.
    pub fn fill(
        &mut self,
        from: BorrowedFd<'_>,
        scratch: &mut [u8],
    ) -> Result<(usize, bool), Errno> {
        let last = self.last()?;
        let room = last.capacity() - last.len();
        let (read, most) = if scratch.len() < CHUNK {
            let most = room.min(scratch.len());
            let read = read(from, &mut scratch[..most]);
            if let Ok(bytes) = read {
                last.extend_from_slice(&scratch[..bytes]); // there is room
            }
            (read, most)
        } else {
            let read = loop {
                match rustix::io::read(from, spare_capacity(last)) {
                    Err(Errno::INTR) => {}
                    read => break read,
                }
            };
            (read, room)
        };
        if last.is_empty() {
            self.chunks.pop_back();
        }
        let bytes = read?;
        self.len += bytes;
        Ok((bytes, bytes == most))
    }

    /// Memory for [`CHUNK`] bytes that are to be appended by [`push`](Self::push).
    pub fn reserve(&mut self) -> Result<Vec<u8>, Errno> {
        let mut chunk = Vec::new();
        chunk
            .try_reserve_exact(CHUNK)
            .and_then(|()| self.chunks.try_reserve(1))
            .map_err(|_| Errno::NOMEM)?;
        Ok(chunk)
    }

    /// Appends what [`reserve`](Self::reserve) gave, filled. That needs no memory.
    pub fn push(&mut self, chunk: Vec<u8>) {
        self.len += chunk.len();
        if !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// Moves as many bytes to `out` as there are, or as it has room for.
    pub fn pop(&mut self, out: &mut [u8]) -> usize {
        let mut at = 0;
        while let Some(first) = self.chunks.front() {
            let waiting = &first[self.taken..];
            let now = waiting.len().min(out.len() - at);
            out[at..at + now].copy_from_slice(&waiting[..now]);
            at += now;
            if now < waiting.len() {
                self.taken += now;
                break;
            }
            self.chunks.pop_front();
            self.taken = 0;
        }
        self.len -= at;
        if self.len == 0 {
            // Its own memory may lie above that of a hundred megabytes of chunks, which would then not be given back.
            self.chunks = VecDeque::new();
        }
        at
    }

    /// The piece to append to.
    fn last(&mut self) -> Result<&mut Vec<u8>, Errno> {
        let full = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() < ROOM;
        if self.chunks.back().is_none_or(full) {
            let chunk = self.reserve()?;
            self.chunks.push_back(chunk);
        }
        self.chunks.back_mut().ok_or(Errno::NOMEM)
    }
}

/// The last bytes of a stream.
pub struct Ring {
    bytes: VecDeque<u8>,
    limit: usize,
}

impl Ring {
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            limit,
        }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends; returns how many bytes fell out at the other end. Without memory to grow it keeps as many of the last
    /// bytes as it has room for.
    pub fn push(&mut self, data: &[u8]) -> usize {
        let wanted = self.limit.min(self.bytes.len() + data.len());
        let _ = self.bytes.try_reserve(wanted - self.bytes.len());
        let limit = self.limit.min(self.bytes.capacity());
        let kept = &data[data.len().saturating_sub(limit)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(limit);
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
        excess + data.len() - kept.len()
    }

    /// Copies the last bytes that `out` has room for.
    pub fn copy(&self, out: &mut [u8]) -> usize {
        let len = self.bytes.len().min(out.len());
        let from = self.bytes.range(self.bytes.len() - len..);
        for (to, byte) in out.iter_mut().zip(from) {
            *to = *byte;
        }
        len
    }
}

/// Bytes in a file without a name, mode 0600, which is gone with this value. It is only appended to; when it has been
/// read to its end it is to be dropped.
pub struct Spill {
    file: File,
    read: u64,
    written: u64,
}

impl Spill {
    /// Takes no memory of the process.
    pub fn create(directory: &CStr) -> Result<Self, Errno> {
        let (how, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::from_raw_mode(0o600));
        // With EXCL nobody can give it a name, by /proc.
        let unnamed = how | OFlags::TMPFILE | OFlags::EXCL;
        let file = match rustix::fs::open(directory, unnamed, mode) {
            // Not every file system has files without names. Errors are those that open(2) names for that.
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

    /// Bytes that the file has.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that were not read yet.
    pub fn unread(&self) -> u64 {
        self.written - self.read
    }

    /// Appends. Returns the bytes written, which are fewer if writing failed.
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

    /// Moves bytes to `out`.
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

/// A file whose name is taken away at once.
fn create_unlinked(directory: &CStr, how: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    /// Names that are tried. Whoever knows the next ones may have taken them.
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

/// One read, which a signal does not end.
pub fn read(from: BorrowedFd<'_>, out: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| rustix::io::read(from, &mut *out))
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn push(queue: &mut Queue, data: &[u8]) {
        let mut chunk = queue.reserve().unwrap();
        chunk.extend_from_slice(data);
        queue.push(chunk);
    }

    fn bytes(from: usize, len: usize) -> Vec<u8> {
        (from..from + len)
            .map(|at| u8::try_from(at % 251).unwrap())
            .collect()
    }

    #[test]
    fn a_queue_gives_what_it_got_at_any_sizes() {
        for (size, pop) in [
            (1, 1),
            (100, 7),
            (7, 100),
            (CHUNK, CHUNK),
            (CHUNK + 1, 1000),
            (999, CHUNK),
        ] {
            let mut queue = Queue::default();
            let (mut pushed, mut popped) = (0, 0);
            let mut out = vec![0; pop];
            while popped < 3 * CHUNK {
                if pushed < 3 * CHUNK {
                    push(&mut queue, &bytes(pushed, size));
                    pushed += size;
                }
                let got = queue.pop(&mut out);
                assert_eq!(out[..got], bytes(popped, got));
                popped += got;
                assert_eq!(queue.len(), pushed - popped);
            }
            while !queue.is_empty() {
                let got = queue.pop(&mut out);
                assert_eq!(out[..got], bytes(popped, got));
                popped += got;
            }
            assert_eq!(pushed, popped);
            assert!(queue.chunks.is_empty(), "its memory is freed");
        }
    }

    #[test]
    fn a_queue_that_finds_nothing_to_read_holds_no_memory() {
        use std::os::fd::AsFd;

        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let mut queue = Queue::default();
        let mut scratch = vec![0; CHUNK];
        let nothing = queue.fill(reader.as_fd(), &mut scratch);
        assert_eq!(nothing, Err(Errno::AGAIN));
        assert!(queue.chunks.is_empty());
        rustix::io::write(&writer, b"x").unwrap();
        drop(writer);
        let some = queue.fill(reader.as_fd(), &mut scratch);
        assert_eq!(some, Ok((1, false)));
        let end = queue.fill(reader.as_fd(), &mut scratch);
        assert_eq!((end, queue.len()), (Ok((0, false)), 1));
    }

    #[test]
    fn a_ring_keeps_the_last_bytes() {
        for limit in [0, 1, 10, 1000] {
            let mut ring = Ring::new(limit);
            let mut all = Vec::new();
            let mut lost = 0;
            for size in [0, 1, 3, 10, 11, 400, 5, 2000, 1] {
                let data = bytes(all.len(), size);
                all.extend_from_slice(&data);
                lost += ring.push(&data);
                let mut out = vec![0; limit + 5];
                let got = ring.copy(&mut out);
                assert_eq!(got, limit.min(all.len()));
                assert_eq!(out[..got], all[all.len() - got..]);
                assert_eq!((ring.len(), lost), (got, all.len() - got));
                let few = ring.copy(&mut out[..got.min(2)]);
                assert_eq!(out[..few], all[all.len() - few..]);
            }
        }
    }

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
