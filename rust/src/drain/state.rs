//! A stream's state, and how the reader and the rescuer read from it. All functions here run under the stream's lock.
//!
//! Bytes wait for the reader in three places, and are read in this order: `queue` in memory, `file`, and `after`, again in memory. `after`
//! holds the bytes that the rescuer had already read when writing to the file failed.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use rustix::event::{epoll, Timespec};
use rustix::io::Errno;

use super::queue::{read, Queue};
use super::ring::Ring;
use super::shared::Shared;
use super::spill::Spill;
use super::stream::Stream;
use super::{Got, Stats};

// The members of the epoll instance that the reader waits for.

/// The descriptor of the stream.
pub const PIPE: u64 = 0;
/// The eventfd that wakes the reader for bytes that are not in the pipe.
pub const READY: u64 = 1;
/// The descriptor of [`Drain::watch`](super::Drain::watch).
pub const WATCHED: u64 = 2;

/// The maximum number of reads in one [`Drain::tail`](super::Drain::tail), or in one [`Drain::read`](super::Drain::read) of a discarding
/// drain. Without a limit, a writer that never stops could keep the caller forever.
const MAX_READS: usize = 64;

/// The result of one read by the rescuer.
pub enum Rescued {
    /// The read returned this many bytes, and more may be available now.
    Some(usize),
    /// The read returned this many bytes, and no more are available now.
    Last(usize),
    /// There is no room for more bytes. The rescuer stops watching the stream until [`Stream::resume`].
    Paused,
}

/// The destination of the bytes that the rescuer reads.
pub enum Sink {
    /// Queue them for the reader.
    Queue(Overflow),
    /// Keep the last bytes, for [`Drain::tail`](super::Drain::tail).
    Last(Ring),
    /// Throw them away.
    Nowhere,
}

/// What the rescuer does when the budget is used up; see [`Mode`](super::Mode).
pub enum Overflow {
    Pause,
    Error,
    Spill { limit: u64, directory: CString },
}

/// Where the next bytes go, and how many fit there.
#[derive(Clone, Copy)]
enum Destination {
    Memory(usize),
    File(usize),
    /// A [`Sink`] other than a queue, which takes any number of bytes.
    Sink,
}

#[allow(clippy::struct_excessive_bools)] // Each is independent of the others.
pub struct State {
    pub(super) pipe: OwnedFd,
    pub(super) is_terminal: bool,
    /// The epoll instance that the reader waits for.
    pub(super) poll: OwnedFd,
    /// The eventfd that makes `poll` readable.
    pub(super) ready: Arc<OwnedFd>,
    pub(super) sink: Sink,
    /// Bytes in memory, which the reader gets first.
    pub(super) queue: Queue,
    /// Bytes in a file, which the reader gets after `queue`. `None` if there is no file, or if the reader has read all of it.
    pub(super) file: Option<Spill>,
    /// Bytes that could not be written to the file. The reader gets them after `file`.
    pub(super) after: Queue,
    /// How the stream ended; `None` if it has not ended.
    pub(super) end: Option<Got>,
    pub(super) paused: bool,
    /// Whether creating or writing a file has failed since the last resume.
    pub(super) spill_failed: bool,
    /// Whether the next read must return [`Got::Budget`].
    pub(super) report_budget: bool,
    /// Whether the eventfd is switched on in `poll`.
    pub(super) signalled: bool,
    /// Whether a descriptor is watched and has not become readable yet.
    pub(super) watching: bool,
    /// Whether the watched descriptor has become readable.
    pub(super) watched: bool,
    /// Whether the reader's last read returned no bytes.
    pub(super) idle: bool,
    /// Whether the rescuer's last read failed because memory ran out.
    pub(super) lacked_memory: bool,
    pub(super) stats: Stats,
}

impl State {
    /// Reads for the reader: takes waiting bytes if there are any, and otherwise reads the descriptor.
    pub(super) fn read(&mut self, stream: &Stream, out: &mut [u8]) -> Got {
        if self.report_budget {
            self.report_budget = false;
            self.update_signals(stream);
            return Got::Budget;
        }
        if self.has_waiting() {
            self.idle = false;
            return self.pop(stream, out);
        }
        let read = match self.sink {
            _ if self.end.is_some() => 0,
            Sink::Queue(_) => {
                let read = read(self.pipe.as_fd(), out);
                self.handle_read(stream, read)
            }
            // The drain has no queue, so the rescuer reads the descriptor. But the rescuer may have been stopped, so read here as well.
            _ => {
                self.take_all(stream, out);
                0
            }
        };
        if read > 0 {
            self.idle = false;
            return Got::Bytes(read);
        }
        // The reader got no bytes twice in a row. It waited in between, so the watched descriptor may have woken it.
        if std::mem::replace(&mut self.idle, true) {
            self.is_watching();
        }
        self.end.unwrap_or(Got::Nothing)
    }

    /// Moves waiting bytes to `out`, from the first place that holds any.
    fn pop(&mut self, stream: &Stream, out: &mut [u8]) -> Got {
        let bytes;
        if !self.queue.is_empty() {
            bytes = self.queue.pop(out);
            stream.give_back(bytes);
        } else if let Some(file) = &mut self.file {
            match file.pop(out) {
                Ok(read) => bytes = read,
                Err(error) => {
                    let number = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
                    self.drop_waiting(stream);
                    self.finish(stream, Got::Failed(number));
                    return Got::Failed(number);
                }
            }
            if file.unread() == 0 {
                self.file = None;
            }
        } else {
            bytes = self.after.pop(out);
            stream.give_back(bytes);
        }
        self.update_signals(stream);
        if self.paused && self.may_resume(stream.shared) {
            stream.rescuer.kick();
        }
        Got::Bytes(bytes)
    }

    /// Reads the descriptor once, and moves the bytes to their destination. The rescuer calls this. After the rescuer was stopped, the
    /// reader calls it.
    pub(super) fn take(&mut self, stream: &Stream, scratch: &mut [u8]) -> Rescued {
        if self.end.is_some() {
            return Rescued::Last(0);
        }
        let Some(place) = self.destination(stream.shared) else {
            return self.pause(stream);
        };
        let asked = match place {
            Destination::Sink => scratch.len(),
            Destination::File(room) | Destination::Memory(room) => scratch.len().min(room),
        };
        let scratch = &mut scratch[..asked];
        let pipe = self.pipe.as_fd();
        // Writing to the file may fail, so reserve memory for the bytes before reading them.
        let mut spare = Vec::new();
        let read = match place {
            Destination::Memory(_) => self.queue.fill(pipe, scratch),
            Destination::File(_) => self.after.reserve().and_then(|reserved| {
                spare = reserved;
                read(pipe, scratch).map(|bytes| (bytes, bytes == asked))
            }),
            Destination::Sink => read(pipe, scratch).map(|bytes| (bytes, bytes == asked)),
        };
        let short = read == Err(Errno::NOMEM);
        // If memory runs out, the bytes stay in the pipe until the rescuer's next look. This counts as a pause, which the reader sees.
        self.stats.pauses += u64::from(short && !self.lacked_memory);
        self.lacked_memory = short;
        if short {
            return Rescued::Last(0);
        }
        let more = read.is_ok_and(|(_, more)| more);
        let bytes = self.handle_read(stream, read.map(|(bytes, _)| bytes));
        self.stats.rescued += bytes as u64;
        match (place, &mut self.sink) {
            (Destination::Memory(_), _) => {
                stream.shared.add(bytes);
                if bytes > 0 && bytes == self.queue.len() {
                    self.stats.rescues += 1;
                }
            }
            (Destination::File(_), _) => self.spill(stream, &scratch[..bytes], spare),
            (Destination::Sink, Sink::Last(ring)) => {
                self.stats.discarded += ring.push(&scratch[..bytes]) as u64;
            }
            (Destination::Sink, _) => self.stats.discarded += bytes as u64,
        }
        self.update_signals(stream);
        if more {
            Rescued::Some(bytes)
        } else {
            Rescued::Last(bytes)
        }
    }

    /// Reads until the descriptor is empty, for a drain without a queue. Reads at most [`MAX_READS`] times.
    pub(super) fn take_all(&mut self, stream: &Stream, scratch: &mut [u8]) {
        for _ in 0..MAX_READS {
            if !matches!(self.take(stream, scratch), Rescued::Some(_)) {
                break;
            }
        }
    }

    /// Returns where the next bytes go, or `None` if there is no room for them. Creates the file if necessary.
    fn destination(&mut self, shared: &Shared) -> Option<Destination> {
        let Sink::Queue(overflow) = &self.sink else {
            return Some(Destination::Sink);
        };
        if !self.after.is_empty() {
            return None;
        }
        let room = shared.room();
        if let Overflow::Spill { limit, directory } = overflow {
            if self.file.is_none() && room == 0 {
                self.file = Spill::create(directory).ok();
                if self.file.is_none() {
                    self.stats.spill_errors += 1;
                    self.spill_failed = true;
                }
            }
            if let Some(file) = &self.file {
                let room = limit.saturating_sub(file.written());
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                return (room > 0).then_some(Destination::File(room));
            }
        }
        if room == 0 {
            self.report_budget |= matches!(overflow, Overflow::Error);
            return None;
        }
        Some(Destination::Memory(room))
    }

    /// Writes `data` to the file. If that fails, the rest stays in memory, in `spare`, even if the budget is exceeded.
    fn spill(&mut self, stream: &Stream, data: &[u8], mut spare: Vec<u8>) {
        let Some(file) = &mut self.file else { return };
        let written = file.push(data);
        self.stats.spilled += written as u64;
        if file.unread() == 0 {
            self.file = None;
        }
        if written < data.len() {
            self.stats.spill_errors += 1;
            self.spill_failed = true;
            spare.extend_from_slice(&data[written..]);
            self.after.push(spare);
            stream.shared.add(data.len() - written);
        }
    }

    /// Handles the result of reading the descriptor. Returns the number of bytes: 0 if none are available now, or if the stream has ended
    /// or failed.
    fn handle_read(&mut self, stream: &Stream, read: Result<usize, Errno>) -> usize {
        match read {
            Ok(bytes) if bytes > 0 => return bytes,
            Err(Errno::AGAIN) => {}
            Ok(_) => self.finish(stream, Got::End),
            // A terminal returns EIO when its other end is closed.
            Err(Errno::IO) if self.is_terminal => self.finish(stream, Got::End),
            Err(error) => self.finish(stream, Got::Failed(error.raw_os_error())),
        }
        0
    }

    /// Ends the stream.
    fn finish(&mut self, stream: &Stream, end: Got) {
        self.end = Some(end);
        // After the end of the stream the descriptor stays readable, and would wake the rescuer again and again.
        stream.rescuer.delete(self.pipe.as_fd());
        self.unpause(stream.shared);
        self.update_signals(stream);
    }

    /// Stops reading the descriptor until [`Stream::resume`].
    fn pause(&mut self, stream: &Stream) -> Rescued {
        self.paused = true;
        self.stats.pauses += 1;
        stream.shared.count_paused(true);
        // Remove the descriptor: an epoll instance reports a closed pipe even to a member that waits for no event.
        stream.rescuer.delete(self.pipe.as_fd());
        self.update_signals(stream);
        Rescued::Paused
    }

    /// Returns true if a paused stream has enough room to be read again.
    pub(super) fn may_resume(&self, shared: &Shared) -> bool {
        match &self.sink {
            Sink::Queue(overflow) => {
                let can_spill = matches!(overflow, Overflow::Spill { .. }) && !self.spill_failed;
                self.file.is_none()
                    && self.after.is_empty()
                    && (can_spill || shared.has_room_again())
            }
            _ => true,
        }
    }

    /// Marks the stream as not paused.
    pub(super) fn unpause(&mut self, shared: &Shared) {
        if std::mem::take(&mut self.paused) {
            shared.count_paused(false);
        }
        self.spill_failed = false;
    }

    /// Returns true if bytes are waiting for the reader, in memory or in the file.
    fn has_waiting(&self) -> bool {
        !self.queue.is_empty() || self.file.is_some() || !self.after.is_empty()
    }

    /// Drops the bytes that are waiting for the reader, and returns how many it dropped.
    pub(super) fn drop_waiting(&mut self, stream: &Stream) -> u64 {
        let in_memory = self.queue.len() + self.after.len();
        let in_file = self.file.take().map_or(0, |file| file.unread());
        self.queue = Queue::default();
        self.after = Queue::default();
        stream.give_back(in_memory);
        in_memory as u64 + in_file
    }

    /// Call this after any change: it updates whether the rescuer must read the descriptor, and whether the eventfd wakes the reader.
    pub(super) fn update_signals(&mut self, stream: &Stream) {
        let waits = self.has_waiting();
        let nobody_reads = !matches!(self.sink, Sink::Queue(_));
        stream
            .rescuer_reads
            .store(waits || nobody_reads, Ordering::Relaxed);
        let signal = waits || self.end.is_some() || self.report_budget;
        if signal != self.signalled {
            self.signalled = signal;
            let flags = if signal {
                epoll::EventFlags::IN
            } else {
                epoll::EventFlags::empty()
            };
            let data = epoll::EventData::new_u64(READY);
            // This cannot fail: the eventfd has been a member since the stream was created, and modifying a member does not allocate.
            let _ = epoll::modify(&self.poll, &self.ready, data, flags);
        }
    }

    /// Checks whether the watched descriptor has become readable. Returns true if a descriptor is watched and has not become readable.
    pub(super) fn is_watching(&mut self) -> bool {
        if self.watching {
            let mut events = [const { MaybeUninit::uninit() }; 4];
            let now = Timespec::default();
            let seen = epoll::wait(&self.poll, &mut events[..], Some(&now));
            if seen.is_ok_and(|(seen, _)| seen.iter().any(|it| it.data.u64() == WATCHED)) {
                self.watching = false;
                self.watched = true;
            }
        }
        self.watching
    }
}
