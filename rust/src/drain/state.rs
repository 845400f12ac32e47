//! The state of a stream that its reader and the rescuer share, under its lock.

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

/// Which descriptor an event of a stream's own epoll instance is about.
pub const PIPE: u64 = 0;
pub const READY: u64 = 1;
pub const WATCHED: u64 = 2;

/// Reads that [`Drain::tail`](super::Drain::tail) and a discarding [`Drain::read`](super::Drain::read) make at most: a writer that never pauses must not hold
/// the caller.
const MAX_READS: usize = 64;

/// The result of one read by the rescuer.
pub enum Rescued {
    /// This many bytes, and there may be more.
    Some(usize),
    /// This many bytes, and there are no more for now, or ever.
    Last(usize),
    /// There is no room. The rescuer does not watch the stream until [`Stream::resume`].
    Paused,
}

/// Where the rescuer puts bytes.
pub enum Sink {
    Queue(Overflow),
    Last(Ring),
    Nowhere,
}

pub enum Overflow {
    Pause,
    Error,
    Spill { limit: u64, directory: CString },
}

/// Where the next bytes go, and how many.
#[derive(Clone, Copy)]
enum Destination {
    Memory(usize),
    File(usize),
    /// Thrown away.
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
    /// Bytes that wait in memory: they are read first.
    pub(super) queue: Queue,
    /// Bytes that wait in a file: they are read next. None if the file was read to its end.
    pub(super) file: Option<Spill>,
    /// Bytes that the file could not take: they are read last.
    pub(super) after: Queue,
    pub(super) end: Option<Got>,
    pub(super) paused: bool,
    /// Whether spilling failed since the last resume.
    pub(super) spill_failed: bool,
    /// Whether the reader still has to get [`Got::Budget`].
    pub(super) say_budget: bool,
    /// Whether the eventfd wakes the reader now.
    pub(super) signalled: bool,
    /// Whether a watched descriptor has not become readable yet.
    pub(super) watching: bool,
    pub(super) watched: bool,
    /// Whether the reader's last read gave nothing.
    pub(super) idle: bool,
    /// Whether the rescuer had no memory at its last try.
    pub(super) short: bool,
    pub(super) stats: Stats,
}

impl State {
    /// One read by the reader.
    pub(super) fn read(&mut self, stream: &Stream, out: &mut [u8]) -> Got {
        if self.say_budget {
            self.say_budget = false;
            self.settle(stream);
            return Got::Budget;
        }
        if self.waits() {
            self.idle = false;
            return self.pop(stream, out);
        }
        let read = match self.sink {
            _ if self.end.is_some() => 0,
            Sink::Queue(_) => {
                let read = read(self.pipe.as_fd(), out);
                self.judge(stream, read)
            }
            // This is the rescuer's work, but the rescuer may have been stopped.
            _ => {
                self.take_all(stream, out);
                0
            }
        };
        if read > 0 {
            self.idle = false;
            return Got::Bytes(read);
        }
        // A reader that got nothing, waited, and got nothing again: perhaps the watched descriptor woke it.
        if std::mem::replace(&mut self.idle, true) {
            self.is_watching();
        }
        self.end.unwrap_or(Got::Nothing)
    }

    /// Moves waiting bytes to `out`.
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
        self.settle(stream);
        if self.paused && self.may_go_on(stream.shared) {
            stream.rescuer.kick();
        }
        Got::Bytes(bytes)
    }

    /// One read by the rescuer, or by the reader when there is no rescuer.
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
        // Memory for the bytes that the file may not take is reserved before the read.
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
        // The reader is told of a pause. The rescuer tries again at its next look.
        self.stats.pauses += u64::from(short && !self.short);
        self.short = short;
        if short {
            return Rescued::Last(0);
        }
        let more = read.is_ok_and(|(_, more)| more);
        let bytes = self.judge(stream, read.map(|(bytes, _)| bytes));
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
        self.settle(stream);
        if more {
            Rescued::Some(bytes)
        } else {
            Rescued::Last(bytes)
        }
    }

    /// Reads and throws away until the descriptor is empty.
    pub(super) fn take_all(&mut self, stream: &Stream, scratch: &mut [u8]) {
        for _ in 0..MAX_READS {
            if !matches!(self.take(stream, scratch), Rescued::Some(_)) {
                break;
            }
        }
    }

    /// Where the next bytes go, or None if there is no room for them.
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
            self.say_budget |= matches!(overflow, Overflow::Error);
            return None;
        }
        Some(Destination::Memory(room))
    }

    /// Writes to the file. Bytes that it does not take stay in memory, in `spare`, if need be above the budget.
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

    /// Handles the result of a read of the descriptor: the number of bytes, 0 if there are none now or no more.
    fn judge(&mut self, stream: &Stream, read: Result<usize, Errno>) -> usize {
        match read {
            Ok(bytes) if bytes > 0 => return bytes,
            Err(Errno::AGAIN) => {}
            Ok(_) => self.finish(stream, Got::End),
            // A terminal says this when its other side is closed.
            Err(Errno::IO) if self.is_terminal => self.finish(stream, Got::End),
            Err(error) => self.finish(stream, Got::Failed(error.raw_os_error())),
        }
        0
    }

    fn finish(&mut self, stream: &Stream, end: Got) {
        self.end = Some(end);
        // Otherwise it would stay readable for ever.
        stream.rescuer.delete(self.pipe.as_fd());
        self.go_on(stream.shared);
        self.settle(stream);
    }

    fn pause(&mut self, stream: &Stream) -> Rescued {
        self.paused = true;
        self.stats.pauses += 1;
        stream.shared.count_paused(true);
        // A descriptor that the rescuer watches wakes it whenever its writer hangs up.
        stream.rescuer.delete(self.pipe.as_fd());
        self.settle(stream);
        Rescued::Paused
    }

    pub(super) fn may_go_on(&self, shared: &Shared) -> bool {
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

    pub(super) fn go_on(&mut self, shared: &Shared) {
        if std::mem::take(&mut self.paused) {
            shared.count_paused(false);
        }
        self.spill_failed = false;
    }

    fn waits(&self) -> bool {
        !self.queue.is_empty() || self.file.is_some() || !self.after.is_empty()
    }

    /// Drops the waiting bytes, and returns their number.
    pub(super) fn drop_waiting(&mut self, stream: &Stream) -> u64 {
        let in_memory = self.queue.len() + self.after.len();
        let in_file = self.file.take().map_or(0, |file| file.unread());
        self.queue = Queue::default();
        self.after = Queue::default();
        stream.give_back(in_memory);
        in_memory as u64 + in_file
    }

    /// Tells the rescuer whether to read, and the reader whether there is something to read.
    pub(super) fn settle(&mut self, stream: &Stream) {
        let waits = self.waits();
        let nobody_reads = !matches!(self.sink, Sink::Queue(_));
        stream
            .behind
            .store(waits || nobody_reads, Ordering::Relaxed);
        let signal = waits || self.end.is_some() || self.say_budget;
        if signal != self.signalled {
            self.signalled = signal;
            let flags = if signal {
                epoll::EventFlags::IN
            } else {
                epoll::EventFlags::empty()
            };
            let data = epoll::EventData::new_u64(READY);
            // It was added when the stream was made. Modifying it takes no memory, so this does not fail.
            let _ = epoll::modify(&self.poll, &self.ready, data, flags);
        }
    }

    /// Whether a watched descriptor has not become readable yet.
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
