//! One stream: its descriptor, its queue, and what its reader waits for.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{epoll, Timespec};
use rustix::fs::{fcntl_getfl, fcntl_setfl, fstat, OFlags};
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

/// Bytes of one read by [`Drain::tail`], on the stack.
const TAIL_READ: usize = 8 * 1024;

/// Takes the bytes of a pipe, socket or terminal off the system's hands, whatever the reader does.
pub struct Drain(Arc<Stream>);

/// A stream as both sides see it.
pub struct Stream {
    id: u64,
    host: &'static Host,
    rescuer: Arc<Rescuer>,
    /// What its descriptor is of: device and inode.
    file: (u64, u64),
    /// Whether the descriptor was blocking before.
    was_blocking: AtomicBool,
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
    Spill { limit: u64, directory: CString },
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
    /// What makes that one readable.
    ready: Arc<OwnedFd>,
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
    /// Whether there was no memory for what the descriptor has, at the rescuer's last try.
    short: bool,
    stats: Stats,
}

impl Drain {
    /// Takes over a duplicate of `fd`, which is set to non-blocking until the drain is closed.
    ///
    /// # Errors
    ///
    /// `EPERM` for what cannot be waited for, as regular files; `EBADF` for the writing end of a pipe; `EMFILE` and others of the system.
    pub fn new(host: &'static Host, fd: BorrowedFd<'_>, mode: Mode) -> io::Result<Self> {
        let pipe = fcntl_dupfd_cloexec(fd, 3)?;
        let flags = fcntl_getfl(&pipe)?;
        if flags & OFlags::RWMODE == OFlags::WRONLY {
            return Err(Errno::BADF.into()); // what read() would say, but the wait for it has no end
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
                say_budget: false,
                signalled: false,
                watching: false,
                watched: false,
                idle: false,
                short: false,
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
                file: (file.st_dev, file.st_ino),
                was_blocking: AtomicBool::new(was_blocking),
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
            match epoll::add(&state.poll, fd, data, flags) {
                // Watched before, and switched off since.
                Err(Errno::EXIST) => epoll::modify(&state.poll, fd, data, flags)?,
                added => added?,
            }
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
                state.take_all(stream, &mut [0; TAIL_READ]);
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
    }
}

impl Stream {
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn file(&self) -> (u64, u64) {
        self.file
    }

    pub fn was_blocking(&self) -> bool {
        self.was_blocking.load(Ordering::Relaxed)
    }

    pub fn set_was_blocking(&self) {
        self.was_blocking.store(true, Ordering::Relaxed);
    }

    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }

    /// One read by the rescuer.
    pub fn take(&self, scratch: &mut [u8]) -> Taken {
        match self.state.lock() {
            Ok(mut guard) => match guard.as_mut() {
                Some(state) => state.take(self, scratch),
                None => Taken::Last(0),
            },
            Err(poisoned) => {
                // What it has is not to be trusted any more. Its reader is told so.
                if let Some(state) = poisoned.into_inner().as_ref() {
                    self.rescuer.delete(state.pipe.as_fd());
                }
                Taken::Last(0)
            }
        }
    }

    /// Puts the descriptor into the rescuer's sight, whatever the stream does.
    #[cfg(test)]
    pub fn see_again(&self) -> io::Result<()> {
        let guard = self.state.lock().unwrap();
        self.rescuer
            .add(guard.as_ref().unwrap().pipe.as_fd(), self.id)
    }

    /// Takes it out again.
    #[cfg(test)]
    pub fn see_no_more(&self) {
        let guard = self.state.lock().unwrap();
        self.rescuer.delete(guard.as_ref().unwrap().pipe.as_fd());
    }

    /// Takes a paused stream up again if it may go on.
    pub fn resume(&self) -> Resumed {
        let Ok(mut guard) = self.state.lock() else {
            return Resumed::Done;
        };
        match guard.as_mut() {
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
            self.host.leave(self, || {
                if let Ok(flags) = fcntl_getfl(&state.pipe) {
                    let _ = fcntl_setfl(&state.pipe, flags - OFlags::NONBLOCK);
                }
            });
        }
    }

    fn give_back(&self, bytes: usize) {
        if self.host.give_back(bytes) {
            self.rescuer.kick();
        }
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
        // What a file does not take must find its place in memory, so that comes before the read.
        let mut spare = Vec::new();
        let read = match place {
            Place::Memory(_) => self.queue.fill(pipe, scratch),
            Place::File(_) => self.after.reserve().and_then(|reserved| {
                spare = reserved;
                read(pipe, scratch).map(|bytes| (bytes, bytes == asked))
            }),
            Place::Sink => read(pipe, scratch).map(|bytes| (bytes, bytes == asked)),
        };
        let short = read == Err(Errno::NOMEM);
        // The reader is told as of a pause. The rescuer tries again at its next look.
        self.stats.pauses += u64::from(short && !self.short);
        self.short = short;
        if short {
            return Taken::Last(0);
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
            (Place::File(_), _) => self.spill(stream, &scratch[..bytes], spare),
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

    /// Writes to the file. What it does not take stays in memory, in `spare`, beyond the budget if need be.
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
            let _ = epoll::modify(&self.poll, &self.ready, data, flags);
        }
    }

    /// Whether a descriptor is watched, and has not become readable.
    fn is_watching(&mut self) -> bool {
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

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::buffer::spare_capacity;
    use rustix::event::{poll, PollFd, PollFlags};
    use rustix::pipe::pipe;

    use super::super::{CHUNK, DEFAULT_LIMIT};
    use super::*;

    fn host(limit: usize) -> &'static Host {
        Box::leak(Box::new(Host::new(limit, |body| {
            thread::Builder::new().spawn(body).map(drop)
        })))
    }

    fn drained(host: &'static Host, mode: Mode) -> (Drain, OwnedFd) {
        let (reader, writer) = pipe().unwrap();
        (Drain::new(host, reader.as_fd(), mode).unwrap(), writer)
    }

    fn bytes(size: usize) -> Vec<u8> {
        let mut state = 1u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        (0..size).map(next).collect()
    }

    fn write_all(to: &OwnedFd, mut data: &[u8]) {
        while !data.is_empty() {
            data = &data[rustix::io::write(to, data).unwrap()..];
        }
    }

    fn until(mut condition: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !condition() {
            assert!(Instant::now() < end, "it did not happen");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_readable(drain: &Drain, timeout: i64) -> bool {
        let guard = drain.0.state.lock().unwrap();
        let fd = guard.as_ref().unwrap().poll.try_clone().unwrap();
        drop(guard);
        let timeout = Timespec {
            tv_sec: timeout,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).unwrap() == 1
    }

    /// Reads up to the end, waiting as a reader does.
    fn read_to_end(drain: &Drain, mut after_read: impl FnMut()) -> Vec<u8> {
        let mut all = Vec::new();
        let mut out = vec![0; CHUNK];
        loop {
            match drain.read(&mut out).unwrap().0 {
                Got::Bytes(bytes) => all.extend_from_slice(&out[..bytes]),
                Got::Nothing => assert!(is_readable(drain, 30), "a wake-up was lost"),
                Got::Budget => {}
                Got::End => return all,
                Got::Failed(number) => panic!("{number}"),
            }
            after_read();
        }
    }

    #[test]
    fn order_holds_while_reader_and_rescuer_race() {
        let data = bytes(8 << 20);
        let directory = std::env::temp_dir();
        for (mode, limit) in [
            (Mode::Pause, DEFAULT_LIMIT),
            (Mode::Pause, 300_000),
            (Mode::Pause, 1),
            (Mode::Error, 300_000),
            (Mode::Spill(u64::MAX, directory.clone()), 300_000),
            (Mode::Spill(100_000, directory.clone()), 300_000),
            (
                Mode::Spill(1 << 20, directory.join("nowhere at all")),
                300_000,
            ),
        ] {
            let host = host(limit);
            let (drain, writer) = drained(host, mode.clone());
            thread::scope(|scope| {
                scope.spawn(|| {
                    for (number, piece) in data.chunks(50_021).enumerate() {
                        write_all(&writer, piece);
                        if number % 20 == 0 {
                            thread::sleep(Duration::from_millis(1));
                        }
                    }
                    drop(writer);
                });
                let mut reads = 0;
                let got = read_to_end(&drain, || {
                    reads += 1;
                    if reads % 60 == 0 {
                        thread::sleep(Duration::from_millis(40));
                    }
                });
                assert!(got == data, "{mode:?} {limit}");
            });
            assert_eq!(host.queued(), 0);
            let stats = drain.stats().unwrap();
            assert_eq!(stats.read, data.len() as u64);
            assert!(stats.rescued > 0, "{mode:?} {limit}: {stats:?}");
        }
    }

    #[test]
    fn a_reader_that_waits_is_woken_by_a_rescue_and_not_by_nothing() {
        let (drain, writer) = drained(host(DEFAULT_LIMIT), Mode::Pause);
        let mut out = [0; 100];
        for _ in 0..3 {
            assert!(!is_readable(&drain, 0));
            write_all(&writer, b"left unread");
            until(|| drain.stats().unwrap().queued == 11);
            assert!(is_readable(&drain, 0));
            assert_eq!(drain.read(&mut out[..5]).unwrap().0, Got::Bytes(5));
            assert!(is_readable(&drain, 0), "some of it is still there");
            assert_eq!(drain.read(&mut out).unwrap().0, Got::Bytes(6));
            assert_eq!(drain.read(&mut out).unwrap().0, Got::Nothing);
        }
        drop(writer);
        for _ in 0..3 {
            assert!(is_readable(&drain, 30));
            assert_eq!(drain.read(&mut out).unwrap().0, Got::End);
        }
    }

    #[test]
    fn bytes_that_a_reader_keeps_leave_less_room_until_they_are_given_back() {
        let host = host(200_000);
        host.keep(150_000);
        let (drain, writer) = drained(host, Mode::Pause);
        thread::scope(|scope| {
            scope.spawn(|| write_all(&writer, &bytes(150_000)));
            until(|| drain.stats().unwrap().paused);
            assert_eq!(host.queued(), 200_000);
            assert_eq!(drain.stats().unwrap().queued, 50_000);
            host.give_back_kept(100_000);
            until(|| drain.stats().unwrap().queued > 50_000);
            host.give_back_kept(50_000);
            until(|| host.queued() == 150_000);
        });
        drop(drain);
        assert_eq!(host.queued(), 0);
    }

    #[test]
    fn bytes_given_back_let_others_go_on() {
        let host = host(200_000);
        let (first, first_writer) = drained(host, Mode::Pause);
        let (second, second_writer) = drained(host, Mode::Error);
        thread::scope(|scope| {
            scope.spawn(|| write_all(&first_writer, &bytes(260_000)));
            until(|| first.stats().unwrap().paused);
            assert_eq!(host.queued(), 200_000);
            write_all(&second_writer, b"no room");
            until(|| second.stats().unwrap().paused);
            assert!(is_readable(&second, 0));
            let mut out = [0; 100];
            assert_eq!(second.read(&mut out).unwrap().0, Got::Budget);
            assert_eq!(second.read(&mut out).unwrap().0, Got::Bytes(7));
            write_all(&second_writer, b"still none");
            first.discard().unwrap();
            until(|| second.stats().unwrap().queued == 10);
        });
        drop(second);
        assert_eq!(host.queued(), 0);
    }

    #[test]
    fn a_paused_stream_goes_on_at_half_of_the_budget_and_no_earlier() {
        let host = host(1000);
        let (drain, writer) = drained(host, Mode::Pause);
        let mut out = [0; 1000];
        write_all(&writer, &[1; 1500]);
        until(|| drain.stats().unwrap().paused);
        assert_eq!(host.queued(), 1000);
        assert_eq!(drain.read(&mut out[..499]).unwrap().0, Got::Bytes(499));
        assert!(drain.0.resume() == Resumed::NotYet);
        assert!(drain.stats().unwrap().paused);
        assert_eq!(drain.read(&mut out[..1]).unwrap().0, Got::Bytes(1));
        until(|| drain.stats().unwrap().queued == 1000);
    }

    #[test]
    fn a_descriptor_that_need_not_be_read_is_out_of_the_rescuers_sight() {
        // One that has ended, or whose stream is paused, is readable for ever: the thread would spin.
        for mode in [Mode::Pause, Mode::Error, Mode::KeepLast(10)] {
            let (drain, writer) = drained(host(DEFAULT_LIMIT), mode);
            let mut out = [0; 10];
            write_all(&writer, b"x");
            drop(writer);
            until(|| drain.read(&mut out).unwrap().0 == Got::End);
            assert_eq!(drain.0.rescuer.sees(), 0);
        }
        let (drain, writer) = drained(host(10), Mode::Pause);
        write_all(&writer, &[1; 100]);
        until(|| drain.stats().unwrap().paused);
        assert_eq!(drain.0.rescuer.sees(), 0);
        drain.discard().unwrap();
        until(|| drain.stats().unwrap().discarded == 100);
        drop(writer);
        until(|| drain.read(&mut [0; 10]).unwrap().0 == Got::End);
        assert_eq!(drain.0.rescuer.sees(), 0);
    }

    #[test]
    fn whoever_gives_back_the_bytes_that_a_paused_stream_waits_for_wakes_the_rescuer() {
        let host = host(1000);
        host.stop(Duration::ZERO); // so that this thread is the rescuer
        host.keep(990);
        let (drain, writer) = drained(host, Mode::Pause);
        write_all(&writer, &[2; 30]);
        let mut scratch = [0; 100];
        assert!(matches!(drain.0.take(&mut scratch), Taken::Some(10)));
        assert!(!host.give_back(490) && !drain.0.rescuer.kicked());
        host.keep(490);
        assert!(matches!(drain.0.take(&mut scratch), Taken::Paused));
        assert!(!host.give_back(499));
        assert!(host.give_back(1));
        host.give_back_kept(1);
        assert!(drain.0.rescuer.kicked());
        drop(drain);
        assert!(!host.give_back(1), "nobody waits any more");
    }

    #[test]
    fn a_paused_stream_that_is_discarded_goes_on_though_there_is_no_room() {
        let host = host(10);
        host.stop(Duration::ZERO); // so that this thread is the rescuer
        host.keep(10);
        let (drain, writer) = drained(host, Mode::Pause);
        write_all(&writer, &[1; 100]);
        let mut scratch = [0; 1000];
        assert!(matches!(drain.0.take(&mut scratch), Taken::Paused));
        assert!(drain.0.resume() == Resumed::NotYet);
        assert!(!drain.0.rescuer.kicked());
        drain.discard().unwrap();
        assert!(drain.0.rescuer.kicked());
        assert!(drain.0.resume() == Resumed::Done);
        assert!(matches!(drain.0.take(&mut scratch), Taken::Last(100)));
        assert_eq!((host.queued(), drain.stats().unwrap().discarded), (10, 100));
    }

    #[test]
    fn a_stream_that_has_ended_while_it_was_paused_is_not_taken_up_again() {
        let host = host(10);
        host.stop(Duration::ZERO); // so that this thread is the rescuer
        let (drain, writer) = drained(host, Mode::Pause);
        write_all(&writer, &[1; 100]);
        drop(writer);
        let mut out = [0; 100];
        assert!(matches!(drain.0.take(&mut out), Taken::Some(10)));
        assert!(matches!(drain.0.take(&mut out), Taken::Paused));
        assert!(drain.stats().unwrap().paused);
        assert_eq!(drain.read(&mut out).unwrap().0, Got::Bytes(10));
        assert_eq!(drain.read(&mut out).unwrap().0, Got::Bytes(90));
        assert_eq!(drain.read(&mut out).unwrap().0, Got::End);
        assert!(!drain.stats().unwrap().paused);
        assert!(drain.0.resume() == Resumed::Done);
        assert_eq!(drain.0.rescuer.sees(), 0);
    }

    #[test]
    fn a_budget_error_wakes_a_reader_that_the_same_bytes_had_woken_before() {
        let host = host(10);
        host.stop(Duration::ZERO); // so that this thread is the rescuer
        host.keep(10);
        let (drain, writer) = drained(host, Mode::Error);
        let outer = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let edges = || {
            let mut events = Vec::with_capacity(4);
            let now = Timespec::default();
            epoll::wait(&outer, spare_capacity(&mut events), Some(&now)).unwrap()
        };
        drain
            .0
            .with(|state| {
                let data = epoll::EventData::new_u64(0);
                let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
                epoll::add(&outer, &state.poll, data, flags).unwrap();
            })
            .unwrap();
        assert_eq!(edges(), 0);
        write_all(&writer, b"x");
        assert_eq!((edges(), edges()), (1, 0));
        assert!(matches!(drain.0.take(&mut vec![0; CHUNK]), Taken::Paused));
        assert_eq!(edges(), 1);
        let mut out = [0; 10];
        assert_eq!(drain.read(&mut out).unwrap().0, Got::Budget);
        assert_eq!(drain.read(&mut out).unwrap().0, Got::Bytes(1));
    }

    #[test]
    fn a_higher_limit_lets_a_stream_go_on() {
        let host = host(10);
        let (drain, writer) = drained(host, Mode::Pause);
        write_all(&writer, &[1; 100]);
        until(|| drain.stats().unwrap().paused);
        host.set_limit(1000);
        until(|| drain.stats().unwrap().queued == 100);
        assert_eq!((host.limit(), host.queued()), (1000, 100));
    }

    #[test]
    fn a_change_of_the_limit_wakes_the_rescuer() {
        let host = host(10);
        host.stop(Duration::ZERO); // so that nobody else looks
        let (drain, _writer) = drained(host, Mode::Pause);
        assert!(!drain.0.rescuer.kicked());
        host.set_limit(1000);
        assert!(drain.0.rescuer.kicked());
    }

    #[test]
    fn nothing_of_a_discarding_drain_is_kept() {
        let host = host(DEFAULT_LIMIT);
        let (drain, writer) = drained(host, Mode::Pause);
        write_all(&writer, b"queued");
        until(|| host.queued() == 6);
        drain.discard().unwrap();
        drain.discard().unwrap();
        assert_eq!(host.queued(), 0);
        write_all(&writer, &vec![0; 1 << 20]);
        drop(writer);
        assert!(is_readable(&drain, 30));
        assert_eq!(drain.read(&mut [0; 100]).unwrap().0, Got::End);
        assert_eq!(drain.stats().unwrap().discarded, (1 << 20) + 6);
    }

    #[test]
    fn the_last_bytes_are_those_in_the_pipe_too() {
        let (drain, writer) = drained(host(1), Mode::KeepLast(10));
        let mut out = [0; 20];
        for number in 0..100 {
            let line = format!("{number:05}");
            write_all(&writer, line.as_bytes());
            let got = drain.tail(&mut out).unwrap();
            assert!(out[..got].ends_with(line.as_bytes()));
            assert_eq!(got, if number == 0 { 5 } else { 10 });
        }
        assert_eq!(drain.read(&mut out).unwrap().0, Got::Nothing);
        let (other, _writer) = drained(host(1), Mode::Pause);
        assert_eq!(other.tail(&mut out).unwrap(), 0);
    }

    #[test]
    fn what_is_watched_is_told_once() {
        let (drain, writer) = drained(host(DEFAULT_LIMIT), Mode::Pause);
        let (watched, other_end) = pipe().unwrap();
        let mut out = [0; 10];
        drain.watch(watched.as_fd()).unwrap().unwrap();
        let busy = drain.watch(writer.as_fd()).unwrap().unwrap_err();
        assert_eq!(busy.raw_os_error(), Some(Errno::BUSY.raw_os_error()));
        assert!(!is_readable(&drain, 0));
        drop(other_end);
        assert!(is_readable(&drain, 30));
        until(|| {
            drain.read(&mut out).unwrap()
                == (
                    Got::Nothing,
                    Notes {
                        watched: true,
                        paused: false,
                    },
                )
        });
        assert!(!is_readable(&drain, 0));
        // The same one again.
        drain.watch(watched.as_fd()).unwrap().unwrap();
        until(|| drain.read(&mut out).unwrap().1.watched);
    }

    #[test]
    fn a_panic_breaks_one_stream_and_no_other() {
        let host = host(DEFAULT_LIMIT);
        let (broken, broken_writer) = drained(host, Mode::Pause);
        let (other, writer) = drained(host, Mode::Pause);
        write_all(&broken_writer, b"queued");
        until(|| host.queued() == 6);
        let panic = || broken.0.with(|_| panic!("provoked by a test"));
        assert!(catch_unwind(AssertUnwindSafe(panic)).is_err());
        assert_eq!(broken.read(&mut [0; 10]), Err(Broken));
        assert_eq!(broken.stats(), Err(Broken));
        write_all(&broken_writer, b"more");
        write_all(&writer, b"other");
        until(|| other.stats().unwrap().queued == 5);
        drop(broken);
        assert_eq!(host.queued(), 5);
        assert_eq!(rustix::io::write(&broken_writer, b"x"), Err(Errno::PIPE));
    }

    #[test]
    fn the_rescuer_ends_with_the_last_drain_and_another_begins() {
        let host = host(DEFAULT_LIMIT);
        for _ in 0..20 {
            let (first, writer) = drained(host, Mode::Pause);
            let (second, _other_writer) = drained(host, Mode::Pause);
            let rescuer = Arc::clone(&first.0.rescuer);
            assert!(Arc::ptr_eq(&rescuer, &second.0.rescuer));
            write_all(&writer, b"x");
            until(|| first.stats().unwrap().queued == 1);
            drop(first);
            assert!(!rescuer.stopped());
            drop(second);
            assert!(rescuer.stop(Some(Duration::from_secs(30))));
        }
        assert_eq!(host.queued(), 0);
    }

    #[test]
    fn after_a_stop_readers_read_for_themselves() {
        let host = host(DEFAULT_LIMIT);
        assert!(host.stop(Duration::ZERO), "there is nothing to stop");
        let (drain, writer) = drained(host, Mode::Pause);
        write_all(&writer, b"x");
        let mut out = [0; 10];
        assert_eq!(drain.read(&mut out).unwrap().0, Got::Bytes(1));
        drain.discard().unwrap();
        write_all(&writer, b"y");
        assert_eq!(drain.read(&mut out).unwrap().0, Got::Nothing);
        drop(writer);
        assert_eq!(drain.read(&mut out).unwrap().0, Got::End);
        let other = super::super::Host::new(1, |_| Err(Errno::AGAIN.into()));
        let other: &'static Host = Box::leak(Box::new(other));
        let (reader, writer) = pipe().unwrap();
        let error = Drain::new(other, reader.as_fd(), Mode::Pause)
            .err()
            .unwrap();
        assert_eq!(error.raw_os_error(), Some(Errno::AGAIN.raw_os_error()));
        assert!(!fcntl_getfl(&reader).unwrap().contains(OFlags::NONBLOCK));
        drop(reader);
        assert_eq!(rustix::io::write(&writer, b"x"), Err(Errno::PIPE));
    }
}
