//! [`Drain`]: the reader's side of a stream.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustix::event::epoll;
use rustix::fs::{fcntl_getfl, fcntl_setfl, fstat, OFlags};
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use rustix::termios::isatty;

use super::queue::Queue;
use super::rescuer::Rescuer;
use super::ring::Ring;
use super::shared::Shared;
use super::spill::Spill;
use super::state::{Overflow, Sink, State, PIPE, READY, WATCHED};
use super::stream::{Broken, Stream};
use super::{Got, Mode, Notes, Stats};

/// The maximum number of bytes in one read of [`Drain::tail`]. Its buffer is on the stack.
const TAIL_READ: usize = 8 * 1024;

/// Reads a pipe, a socket or a terminal for its owner, and lets the rescuer read it while the owner is busy.
pub struct Drain(pub(super) Arc<Stream>);

impl Drain {
    /// Creates a drain that reads a duplicate of `fd`. The open file that `fd` refers to is non-blocking until the drain is dropped.
    ///
    /// # Errors
    ///
    /// `EPERM` for a descriptor that epoll does not support, such as a regular file; `EBADF` for the write end of a pipe; other system
    /// errors, such as `EMFILE`.
    pub fn new(shared: &'static Shared, fd: BorrowedFd<'_>, mode: Mode) -> io::Result<Self> {
        let pipe = fcntl_dupfd_cloexec(fd, 3)?;
        let flags = fcntl_getfl(&pipe)?;
        if flags & OFlags::RWMODE == OFlags::WRONLY {
            // Reading such a descriptor fails with EBADF. But it never becomes readable, so the reader would wait forever and not see the
            // error.
            return Err(Errno::BADF.into());
        }
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(PIPE);
        epoll::add(&poll, &pipe, data, epoll::EventFlags::IN)?;
        let sink = match mode {
            Mode::Pause => Sink::Queue(Overflow::Pause),
            Mode::Error => Sink::Queue(Overflow::Error),
            Mode::Spill(limit, directory) => {
                let directory = CString::new(directory.into_os_string().into_vec())?;
                Sink::Queue(Overflow::Spill { limit, directory })
            }
            Mode::KeepLast(limit) => Sink::Last(Ring::new(limit)),
        };
        let nobody_reads = matches!(sink, Sink::Last(_));
        let make = |id, rescuer: Arc<Rescuer>| {
            let ready = rescuer.ready()?;
            let data = epoll::EventData::new_u64(READY);
            epoll::add(&poll, &ready, data, epoll::EventFlags::empty())?;
            if nobody_reads {
                epoll::delete(&poll, &pipe)?;
            }
            let file = fstat(&pipe)?;
            let was_blocking = !flags.contains(OFlags::NONBLOCK);
            rescuer.add(pipe.as_fd(), id)?;
            let state = State {
                is_terminal: isatty(&pipe),
                pipe,
                poll,
                ready,
                sink,
                queue: Queue::default(),
                file: None,
                after: Queue::default(),
                end: None,
                paused: false,
                spill_failed: false,
                report_budget: false,
                signalled: false,
                watching: false,
                watched: false,
                idle: false,
                lacked_memory: false,
                stats: Stats::default(),
            };
            if was_blocking {
                if let Err(error) = fcntl_setfl(&state.pipe, flags | OFlags::NONBLOCK) {
                    rescuer.delete(state.pipe.as_fd());
                    return Err(error.into());
                }
            }
            Ok(Arc::new(Stream {
                id,
                shared,
                rescuer,
                file: (file.st_dev, file.st_ino),
                was_blocking: AtomicBool::new(was_blocking),
                reads: AtomicU64::new(0),
                rescuer_reads: AtomicBool::new(nobody_reads),
                state: Mutex::new(Some(state)),
            }))
        };
        shared.join(make).map(Self)
    }

    /// Reads the next bytes of the stream into `out`. Does not wait for them.
    ///
    /// # Errors
    ///
    /// [`Broken`] after a panic.
    pub fn read(&self, out: &mut [u8]) -> Result<(Got, Notes), Broken> {
        let stream = &*self.0;
        stream.with(|state| {
            // Count under the lock: a rescuer that sees the new count then also sees the descriptor after this read.
            stream.reads.fetch_add(1, Ordering::Relaxed);
            stream.shared.count_read();
            let got = state.read(stream, out);
            if let Got::Bytes(bytes) = got {
                state.stats.read += bytes as u64;
            }
            let notes = Notes {
                paused: state.stats.pauses > 0,
                watched: state.watched,
            };
            (got, notes)
        })
    }

    /// Returns the number of a descriptor that is readable when [`read`](Self::read) has a result. The drain owns the descriptor.
    ///
    /// # Errors
    ///
    /// [`Broken`] after a panic.
    pub fn fileno(&self) -> Result<i32, Broken> {
        self.0.with(|state| state.poll.as_raw_fd())
    }

    /// Watches one more descriptor: when `fd` becomes readable, [`fileno`](Self::fileno) also becomes readable, once, and a read reports it
    /// in [`Notes::watched`].
    ///
    /// # Errors
    ///
    /// [`Broken`] after a panic. System errors, and `EBUSY` while another descriptor is watched.
    pub fn watch(&self, fd: BorrowedFd<'_>) -> Result<io::Result<()>, Broken> {
        self.0.with(|state| {
            if state.is_watching() {
                return Err(Errno::BUSY.into());
            }
            let data = epoll::EventData::new_u64(WATCHED);
            // With ONESHOT, a descriptor is switched off when it becomes readable, but stays a member.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
            match epoll::add(&state.poll, fd, data, flags) {
                // The same descriptor was watched before: switch it on again.
                Err(Errno::EXIST) => epoll::modify(&state.poll, fd, data, flags)?,
                added => added?,
            }
            state.watching = true;
            state.watched = false;
            Ok(())
        })
    }

    /// Throws away the queued bytes, and from now on all bytes that the writer writes.
    ///
    /// # Errors
    ///
    /// [`Broken`] after a panic.
    pub fn discard(&self) -> Result<(), Broken> {
        let stream = &*self.0;
        stream.with(|state| {
            if matches!(state.sink, Sink::Nowhere) {
                return;
            }
            state.stats.discarded += state.drop_waiting(stream);
            if matches!(state.sink, Sink::Queue(_)) {
                // This fails only if the descriptor is not a member, which is harmless.
                let _ = epoll::delete(&state.poll, &state.pipe);
            }
            state.sink = Sink::Nowhere;
            state.report_budget = false;
            state.update_signals(stream);
            if state.paused {
                stream.rescuer.kick();
            }
        })
    }

    /// Copies the last bytes of the stream to `out`, including the bytes that are still unread in the descriptor, and returns how many it
    /// copied. Returns 0 if the drain was not made with [`Mode::KeepLast`].
    ///
    /// # Errors
    ///
    /// [`Broken`] after a panic.
    pub fn tail(&self, out: &mut [u8]) -> Result<usize, Broken> {
        let stream = &*self.0;
        stream.with(|state| {
            if matches!(state.sink, Sink::Last(_)) {
                state.take_all(stream, &mut [0; TAIL_READ]);
            }
            match &state.sink {
                Sink::Last(ring) => ring.copy(out),
                _ => 0,
            }
        })
    }

    /// Returns the counts so far.
    ///
    /// # Errors
    ///
    /// [`Broken`] after a panic.
    pub fn stats(&self) -> Result<Stats, Broken> {
        self.0.with(|state| {
            let kept = match &state.sink {
                Sink::Last(ring) => ring.len(),
                _ => state.queue.len() + state.after.len(),
            };
            Stats {
                queued: kept as u64,
                in_file: state.file.as_ref().map_or(0, Spill::unread),
                paused: state.paused,
                ..state.stats
            }
        })
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.0.close();
    }
}
