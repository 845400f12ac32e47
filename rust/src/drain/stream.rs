//! One stream: its descriptor, its queue, and what its reader waits for.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::event::{epoll, Timespec};
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use rustix::termios::isatty;

use super::host::Host;
use super::queue::{read, Queue, Ring, Spill};
use super::rescuer::Rescuer;
use super::{Got, Mode, Notes, Stats};

/// What an event of a stream's own epoll instance is of.
const PIPE: u64 = 0;
const READY: u64 = 1;
const WATCHED: u64 = 2;

/// Reads that [`Drain::tail`] and a discarding [`Drain::read`] make at most: a writer that never pauses must not hold
/// the caller.
const MOST_READS: usize = 64;

/// Takes the bytes of a pipe, socket or terminal off the system's hands, whatever the reader does.
pub struct Drain(Arc<Stream>);

/// A stream as both sides see it.
pub struct Stream {
    id: u64,
    host: &'static Host,
    rescuer: Arc<Rescuer>,
    /// Reads by the reader, with or without result.
    reads: AtomicU64,
    /// Whether the descriptor is left to the rescuer: because something is queued, or nobody else reads it.
    behind: AtomicBool,
    /// None once it is closed.
    state: Mutex<Option<State>>,
}

/// A panic broke the stream: it can only be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// What the rescuer got by one read.
pub enum Taken {
    /// So many bytes, and there may be more.
    Some(usize),
    /// So many bytes, and there are no more for now, or ever.
    Last(usize),
    /// There is no room. The stream is out of the rescuer's sight until [`Stream::resume`].
    Paused,
}

/// What became of a paused stream.
#[derive(PartialEq, Eq)]
pub enum Resumed {
    /// It is read again, has ended or is closed.
    Done,
    /// It may not yet go on.
    NotYet,
    /// The system has no memory for it now.
    Failed,
}

/// Where bytes go that the reader does not fetch itself.
enum Sink {
    Queue(Overflow),
    Last(Ring),
    Nowhere,
}

enum Overflow {
    Pause,
    Error,
    Spill {
        limit: u64,
        directory: std::path::PathBuf,
    },
}

/// Where bytes go now, and how many of them.
#[derive(Clone, Copy)]
enum Place {
    Memory(usize),
    File(usize),
    /// Not to the reader.
    Sink,
}

#[allow(clippy::struct_excessive_bools)] // Each is independent of the others.
struct State {
    pipe: OwnedFd,
    is_terminal: bool,
    /// The reader's epoll instance.
    poll: OwnedFd,
    /// Whether the descriptor was blocking before.
    was_blocking: bool,
    sink: Sink,
    /// What waits comes from here first,
    queue: Queue,
    /// then from here, if anything of it is unread,
    file: Option<Spill>,
    /// and then from here, which is used only for what the file could not take.
    after: Queue,
    end: Option<Got>,
    paused: bool,
    /// Whether spilling failed since the last resume.
    spill_failed: bool,
    /// Whether the reader has still to be told [`Got::Budget`].
    say_budget: bool,
    /// Whether the reader is woken by the eventfd now.
    signalled: bool,
    /// Whether a descriptor is watched that has not fired yet.
    watching: bool,
    watched: bool,
    /// Whether the last read gave nothing.
    idle: bool,
    stats: Stats,
}

impl Drain {
    /// Takes over a duplicate of `fd`, which is set to non-blocking until the drain is closed.
    ///
    /// # Errors
    ///
    /// `EPERM` for what cannot be waited for, as regular files; `EMFILE` and others of the system.
    pub fn new(host: &'static Host, fd: BorrowedFd<'_>, mode: Mode) -> io::Result<Self> {
        let pipe = fcntl_dupfd_cloexec(fd, 3)?;
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(PIPE);
        epoll::add(&poll, &pipe, data, epoll::EventFlags::IN)?;
        let sink = match mode {
            Mode::Pause => Sink::Queue(Overflow::Pause),
            Mode::Error => Sink::Queue(Overflow::Error),
            Mode::Spill(limit, directory) => Sink::Queue(Overflow::Spill { limit, directory }),
            Mode::KeepLast(limit) => Sink::Last(Ring::new(limit)),
        };
        let nobody_reads = matches!(sink, Sink::Last(_));
        let make = |id, rescuer: Arc<Rescuer>| {
            let data = epoll::EventData::new_u64(READY);
            epoll::add(&poll, rescuer.ready(), data, epoll::EventFlags::empty())?;
            if nobody_reads {
                epoll::delete(&poll, &pipe)?;
            }
            let flags = fcntl_getfl(&pipe)?;
            let was_blocking = !flags.contains(OFlags::NONBLOCK);
            rescuer.add(pipe.as_fd(), id)?;
            let state = State {
                is_terminal: isatty(&pipe),
                pipe,
                poll,
                was_blocking,
                sink,
                queue: Queue::default(),
                file: None,
                after: Queue::default(),
                end: None,
                paused: false,
                spill_failed: false,
                say_budget: false,
                signalled: false,
                watching: false,
                watched: false,
                idle: false,
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
                host,
                rescuer,
                reads: AtomicU64::new(0),
                behind: AtomicBool::new(nobody_reads),
                state: Mutex::new(Some(state)),
            }))
        };
        host.join(make).map(Self)
    }

    /// The next bytes, at most as many as `out` has room for.
    ///
    /// # Errors
    ///
    /// [`Broken`]
    pub fn read(&self, out: &mut [u8]) -> Result<(Got, Notes), Broken> {
        let stream = &*self.0;
        stream.with(|state| {
            // Under the lock, so that a rescuer that sees it also sees what was read.
            stream.reads.fetch_add(1, Ordering::Relaxed);
            stream.host.count_read();
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

    /// The number of a descriptor that is readable when [`read`](Self::read) has something to give.
    ///
    /// # Errors
    ///
    /// [`Broken`]
    pub fn fileno(&self) -> Result<i32, Broken> {
        self.0.with(|state| state.poll.as_raw_fd())
    }

    /// [`fileno`](Self::fileno) becomes readable once when `fd` does, too. One at a time.
    ///
    /// # Errors
    ///
    /// [`Broken`], or an error of the system; `EBUSY` while another one is watched.
    pub fn watch(&self, fd: BorrowedFd<'_>) -> Result<io::Result<()>, Broken> {
        self.0.with(|state| {
            if state.is_watching() {
                return Err(Errno::BUSY.into());
            }
            let data = epoll::EventData::new_u64(WATCHED);
            // Once it was seen it is switched off, and need not be taken out.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
            epoll::add(&state.poll, fd, data, flags)?;
            state.watching = true;
            state.watched = false;
            Ok(())
        })
    }

    /// Throws away what is queued, and all that comes from now on.
    ///
    /// # Errors
    ///
    /// [`Broken`]
    pub fn discard(&self) -> Result<(), Broken> {
        let stream = &*self.0;
        stream.with(|state| {
            if matches!(state.sink, Sink::Nowhere) {
                return;
            }
            state.stats.discarded += state.drop_waiting(stream);
            if matches!(state.sink, Sink::Queue(_)) {
                // Fails only if it is not there.
                let _ = epoll::delete(&state.poll, &state.pipe);
            }
            state.sink = Sink::Nowhere;
            state.say_budget = false;
            state.settle(stream);
            if state.paused {
                stream.rescuer.kick();
            }
        })
    }

    /// Copies the last bytes of the stream to `out`, those that can be read now included. None unless the drain
    /// was made with [`Mode::KeepLast`].
    ///
    /// # Errors
    ///
    /// [`Broken`]
    pub fn tail(&self, out: &mut [u8]) -> Result<usize, Broken> {
        let stream = &*self.0;
        stream.with(|state| {
            if matches!(state.sink, Sink::Last(_)) {
                let mut scratch = vec![0; super::CHUNK];
                state.take_all(stream, &mut scratch);
            }
            match &state.sink {
                Sink::Last(ring) => ring.copy(out),
                _ => 0,
            }
        })
    }

    /// What was done so far.
    ///
    /// # Errors
    ///
    /// [`Broken`]
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
        self.0.host.leave(self.0.id);
    }
}

impl Stream {
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }

    /// One read by the rescuer.
    pub fn take(&self, scratch: &mut [u8]) -> Taken {
        match self.lock().as_mut() {
            Some(state) => state.take(self, scratch),
            None => Taken::Last(0),
        }
    }

    /// Takes a paused stream up again if it may go on.
    pub fn resume(&self) -> Resumed {
        match self.lock().as_mut() {
            Some(state) if state.paused => {
                if !state.may_go_on(self.host) {
                    return Resumed::NotYet;
                }
                if self.rescuer.add(state.pipe.as_fd(), self.id).is_err() {
                    return Resumed::Failed;
                }
                state.go_on(self.host);
                Resumed::Done
            }
            _ => Resumed::Done,
        }
    }

    /// Gives everything back. Nobody touches its descriptors afterwards.
    pub fn close(&self) {
        // A broken stream is closed as any other.
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.clear_poison();
        if let Some(mut state) = guard.take() {
            // A forked child may hold the same open file, so that closing it would not do.
            self.rescuer.delete(state.pipe.as_fd());
            state.drop_waiting(self);
            state.go_on(self.host);
            if state.was_blocking {
                if let Ok(flags) = fcntl_getfl(&state.pipe) {
                    let _ = fcntl_setfl(&state.pipe, flags - OFlags::NONBLOCK);
                }
            }
        }
    }

    fn give_back(&self, bytes: usize) {
        if self.host.give_back(bytes) {
            self.rescuer.kick();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As the owner of the drain, who alone can close it.
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> Result<R, Broken> {
        let mut guard = self.state.lock().map_err(|_| Broken)?;
        guard.as_mut().map(f).ok_or(Broken)
    }
}

impl State {
    /// One read by the reader.
    fn read(&mut self, stream: &Stream, out: &mut [u8]) -> Got {
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
            // The rescuer does it. But it may have been stopped.
            _ => {
                self.take_all(stream, out);
                0
            }
        };
        if read > 0 {
            self.idle = false;
            return Got::Bytes(read);
        }
        // A reader that got nothing, waited, and got nothing again was perhaps woken by what is watched.
        if std::mem::replace(&mut self.idle, true) {
            self.is_watching();
        }
        self.end.unwrap_or(Got::Nothing)
    }

    /// Takes what waits.
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
        if self.paused && self.may_go_on(stream.host) {
            stream.rescuer.kick();
        }
        Got::Bytes(bytes)
    }

    /// One read by the rescuer, or in its place.
    fn take(&mut self, stream: &Stream, scratch: &mut [u8]) -> Taken {
        if self.end.is_some() {
            return Taken::Last(0);
        }
        let Some(place) = self.place(stream.host) else {
            return self.pause(stream);
        };
        let asked = match place {
            Place::Sink => scratch.len(),
            Place::File(room) | Place::Memory(room) => scratch.len().min(room),
        };
        let scratch = &mut scratch[..asked];
        let pipe = self.pipe.as_fd();
        let read = match place {
            Place::Memory(_) => self.queue.fill(pipe, scratch),
            _ => read(pipe, scratch).map(|bytes| (bytes, bytes == asked)),
        };
        if read == Err(Errno::NOMEM) {
            return self.pause(stream);
        }
        let more = read.is_ok_and(|(_, more)| more);
        let bytes = self.judge(stream, read.map(|(bytes, _)| bytes));
        self.stats.rescued += bytes as u64;
        match (place, &mut self.sink) {
            (Place::Memory(_), _) => {
                stream.host.add(bytes);
                if bytes > 0 && bytes == self.queue.len() {
                    self.stats.rescues += 1;
                }
            }
            (Place::File(_), _) => self.spill(stream, &scratch[..bytes]),
            (Place::Sink, Sink::Last(ring)) => {
                self.stats.discarded += ring.push(&scratch[..bytes]) as u64;
            }
            (Place::Sink, _) => self.stats.discarded += bytes as u64,
        }
        self.settle(stream);
        if more {
            Taken::Some(bytes)
        } else {
            Taken::Last(bytes)
        }
    }

    /// Until nothing is left in the descriptor.
    fn take_all(&mut self, stream: &Stream, scratch: &mut [u8]) {
        for _ in 0..MOST_READS {
            if !matches!(self.take(stream, scratch), Taken::Some(_)) {
                break;
            }
        }
    }

    /// Where the next bytes go, or None if there is no room for them.
    fn place(&mut self, host: &Host) -> Option<Place> {
        let Sink::Queue(overflow) = &self.sink else {
            return Some(Place::Sink);
        };
        if !self.after.is_empty() {
            return None;
        }
        let room = host.room();
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
                return (room > 0).then_some(Place::File(room));
            }
        }
        if room == 0 {
            self.say_budget |= matches!(overflow, Overflow::Error);
            return None;
        }
        Some(Place::Memory(room))
    }

    /// Writes to the file. What it does not take stays in memory, beyond the budget if need be.
    fn spill(&mut self, stream: &Stream, data: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let written = file.push(data);
        self.stats.spilled += written as u64;
        if file.unread() == 0 {
            self.file = None;
        }
        if written < data.len() {
            self.stats.spill_errors += 1;
            self.spill_failed = true;
            self.after.push(&data[written..]);
            stream.host.add(data.len() - written);
        }
    }

    /// The bytes that a read of the descriptor gave. 0 if there are none now, or if it was the last one.
    fn judge(&mut self, stream: &Stream, read: Result<usize, Errno>) -> usize {
        match read {
            Ok(bytes) if bytes > 0 => return bytes,
            Err(Errno::AGAIN) => {}
            Ok(_) => self.finish(stream, Got::End),
            // A terminal ends so when its other side is closed.
            Err(Errno::IO) if self.is_terminal => self.finish(stream, Got::End),
            Err(error) => self.finish(stream, Got::Failed(error.raw_os_error())),
        }
        0
    }

    fn finish(&mut self, stream: &Stream, end: Got) {
        self.end = Some(end);
        // Else it would be readable for ever.
        stream.rescuer.delete(self.pipe.as_fd());
        self.go_on(stream.host);
        self.settle(stream);
    }

    fn pause(&mut self, stream: &Stream) -> Taken {
        self.paused = true;
        self.stats.pauses += 1;
        stream.host.count_paused(true);
        // A descriptor that is in the rescuer's sight wakes it whenever its writer hangs up.
        stream.rescuer.delete(self.pipe.as_fd());
        self.settle(stream);
        Taken::Paused
    }

    fn may_go_on(&self, host: &Host) -> bool {
        match &self.sink {
            Sink::Queue(overflow) => {
                let can_spill = matches!(overflow, Overflow::Spill { .. }) && !self.spill_failed;
                self.file.is_none() && self.after.is_empty() && (can_spill || host.has_room_again())
            }
            _ => true,
        }
    }

    fn go_on(&mut self, host: &Host) {
        if std::mem::take(&mut self.paused) {
            host.count_paused(false);
        }
        self.spill_failed = false;
    }

    fn waits(&self) -> bool {
        !self.queue.is_empty() || self.file.is_some() || !self.after.is_empty()
    }

    /// Forgets what waits, and returns how many bytes that was.
    fn drop_waiting(&mut self, stream: &Stream) -> u64 {
        let in_memory = self.queue.len() + self.after.len();
        let in_file = self.file.take().map_or(0, |file| file.unread());
        self.queue = Queue::default();
        self.after = Queue::default();
        stream.give_back(in_memory);
        in_memory as u64 + in_file
    }

    /// Says to the rescuer whether it is to read, and to the reader whether it has something to read.
    fn settle(&mut self, stream: &Stream) {
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
            // It was added when the stream was made, and to modify it takes no memory: this does not fail.
            let _ = epoll::modify(&self.poll, stream.rescuer.ready(), data, flags);
        }
    }

    /// Whether a descriptor is watched, and has not become readable.
    fn is_watching(&mut self) -> bool {
        if self.watching {
            let mut events = Vec::with_capacity(4);
            let now = Timespec::default();
            let _ = epoll::wait(&self.poll, spare_capacity(&mut events), Some(&now));
            if events.iter().any(|event| event.data.u64() == WATCHED) {
                self.watching = false;
                self.watched = true;
            }
        }
        self.watching
    }
}
