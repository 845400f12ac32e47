//! [`Queue`]: the bytes that the rescuer has read and that are waiting in memory for the reader.
//!
//! A failed allocation must not abort the host. Each function that allocates returns an error instead, and does so before it reads
//! bytes that would then be lost.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use super::CHUNK;

/// The minimum number of free bytes for another read into the last chunk. With less room, the queue uses a new chunk, because reading a few
/// bytes costs as much as reading many.
const ROOM: usize = 8 * 1024;

/// A first-in, first-out queue of bytes in chunks of [`CHUNK`].
#[derive(Default)]
pub struct Queue {
    /// The chunks. They are never empty.
    chunks: VecDeque<Vec<u8>>,
    /// How many bytes of the first chunk were already popped.
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

    /// Reads the descriptor once, at most `scratch.len()` bytes, and appends them. Returns how many bytes it read, and whether more may be
    /// available.
    ///
    /// If `scratch` is as long as a [`CHUNK`], the function reads directly into the last chunk. A shorter `scratch` limits the number of
    /// bytes: the function reads into `scratch`, and copies the bytes. It returns [`Errno::NOMEM`] only if it has not read anything.
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
                last.extend_from_slice(&scratch[..bytes]); // This does not allocate: `most` is at most the room.
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

    /// Reserves a chunk of [`CHUNK`] bytes, and a place for it in the queue. The caller fills it and passes it to [`push`](Self::push).
    pub fn reserve(&mut self) -> Result<Vec<u8>, Errno> {
        let mut chunk = Vec::new();
        chunk
            .try_reserve_exact(CHUNK)
            .and_then(|()| self.chunks.try_reserve(1))
            .map_err(|_| Errno::NOMEM)?;
        Ok(chunk)
    }

    /// Appends a chunk that [`reserve`](Self::reserve) returned. Does not allocate.
    pub fn push(&mut self, chunk: Vec<u8>) {
        self.len += chunk.len();
        if !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// Moves as many of the first bytes as fit to `out`, and returns how many it moved.
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
            // Also free the deque's own memory. On the heap it may lie above a hundred megabytes of freed chunks, which the allocator could
            // not return to the system.
            self.chunks = VecDeque::new();
        }
        at
    }

    /// Returns a chunk with room for at least [`ROOM`] bytes, either the last or a new one.
    fn last(&mut self) -> Result<&mut Vec<u8>, Errno> {
        let full = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() < ROOM;
        if self.chunks.back().is_none_or(full) {
            let chunk = self.reserve()?;
            self.chunks.push_back(chunk);
        }
        self.chunks.back_mut().ok_or(Errno::NOMEM)
    }
}

/// Reads a descriptor once. Repeats the call if a signal interrupts it.
pub fn read(from: BorrowedFd<'_>, out: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| rustix::io::read(from, &mut *out))
}

#[cfg(test)]
mod tests {
    use super::super::tests::bytes_from as bytes;
    use super::*;

    fn push(queue: &mut Queue, data: &[u8]) {
        let mut chunk = queue.reserve().unwrap();
        chunk.extend_from_slice(data);
        queue.push(chunk);
    }

    #[test]
    fn a_queue_returns_its_bytes_in_reads_of_any_size() {
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
}
