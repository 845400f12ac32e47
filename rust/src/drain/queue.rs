//! Bytes that wait for their reader, in memory or in a file.
//!
//! The rescuer calls all of this. An allocation that fails must not abort the host, so all of them may fail, and fail
//! before bytes are read that would be lost by it.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;

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

/// One read, which a signal does not end.
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
}
