//! The thread that reads what readers leave unread.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{epoll, eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::host::Host;
use super::stream::{Resumed, Stream, Taken};
use super::{CHUNK, FAST, FAST_TICK, PATIENCE, TICK};

/// Names the rescuer's own eventfd among the numbers of streams, which begin at 1.
const WAKE: u64 = 0;

/// Reads of one stream at one look, so that no stream waits for another one's flood.
const READS_A_LOOK: usize = 16;

/// Streams that share one of [`Rescuer::ready`]. Linux limits the ways that lead to one descriptor: to 500 from epoll
/// instances (of event loops) over others (of streams), and to 100 from instances which those of event loops are in.
const MOST_SHARING: usize = 50;

/// What the rescuer shares with the streams. It lives as long as one of them, the thread as long as it has members.
pub struct Rescuer {
    epoll: OwnedFd,
    wake: OwnedFd,
    /// Always readable; each stream has one of them in its own epoll instance.
    ready: Mutex<Vec<Weak<OwnedFd>>>,
    stop: AtomicBool,
    running: Mutex<bool>,
    ended: Condvar,
}

/// Looks at which a stream may be found empty and still count as always readable: its reader may just have taken all,
/// and its writer not yet be back.
const MOST_MISSED: u32 = 2;

/// When a stream was found readable, look after look.
struct Sighting {
    /// Reads by its reader until now.
    reads: u64,
    /// Since when that number is the same.
    unread_since: Instant,
    readable_since: Instant,
    /// Looks since the last one at which it was.
    missed: u32,
}

impl Rescuer {
    pub fn new() -> io::Result<Self> {
        let rescuer = Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            ready: Mutex::new(Vec::new()),
            stop: AtomicBool::new(false),
            running: Mutex::new(false),
            ended: Condvar::new(),
        };
        rescuer.add(rescuer.wake.as_fd(), WAKE)?;
        Ok(rescuer)
    }

    /// Waits for a descriptor of a stream.
    pub fn add(&self, fd: BorrowedFd<'_>, id: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(id);
        Ok(epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN)?)
    }

    /// Waits for it no more.
    pub fn delete(&self, fd: BorrowedFd<'_>) {
        // Fails only for a descriptor that is not there.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// A descriptor that is always readable, for one more stream.
    pub fn ready(&self) -> io::Result<Arc<OwnedFd>> {
        let mut all = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|it| it.strong_count() > 0);
        let mut free = all.iter().filter(|it| it.strong_count() < MOST_SHARING);
        if let Some(ready) = free.find_map(Weak::upgrade) {
            return Ok(ready);
        }
        let ready = Arc::new(eventfd(1, EventfdFlags::CLOEXEC)?);
        all.push(Arc::downgrade(&ready));
        Ok(ready)
    }

    /// Ends a wait or a sleep of the thread.
    pub fn kick(&self) {
        // Fails only if it was kicked 2^64 times since it last looked.
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.wake, &1u64.to_ne_bytes()));
    }

    /// Asks the thread to end, and waits for that at most so long, or not at all. Returns whether it has ended.
    pub fn stop(&self, timeout: Option<Duration>) -> bool {
        self.stop.store(true, Ordering::SeqCst);
        self.kick();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let timeout = timeout.unwrap_or_default();
        match self.ended.wait_timeout_while(running, timeout, |it| *it) {
            Ok((running, _)) => !*running,
            Err(_) => true,
        }
    }

    /// Streams that would wake the thread now, if it waited.
    #[cfg(test)]
    pub fn sees(&self) -> usize {
        let mut events = Vec::with_capacity(64);
        epoll::wait(
            &self.epoll,
            spare_capacity(&mut events),
            Some(&Timespec::default()),
        )
        .unwrap();
        let streams = events.iter().filter(|event| event.data.u64() != WAKE);
        streams.count()
    }

    #[cfg(test)]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Says that [`run`](Self::run) is about to be run, so that [`stop`](Self::stop) waits for its end.
    pub fn announce(&self) {
        self.set_running(true);
    }

    /// The thread.
    pub fn run(&self, host: &'static Host) {
        struct End<'a>(&'a Rescuer);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.set_running(false);
            }
        }
        let _end = End(self);
        let mut events = Vec::with_capacity(64);
        let mut scratch = vec![0; CHUNK];
        let mut sightings = HashMap::new();
        let mut paused = Vec::new();
        let mut reads = host.reads();
        let mut sleep = None;
        loop {
            let waited = self.wait(&mut events, sleep);
            // It fails only if somebody closed a descriptor that is not theirs. Readers read for themselves then.
            if waited.is_err() || self.stop.load(Ordering::SeqCst) {
                return;
            }
            let ids = events.iter().map(|event| event.data.u64());
            let found = host.streams(ids.filter(|id| *id != WAKE));
            let most = look(&found, &mut sightings, &mut paused, &mut scratch);
            let again = resume(host, &mut paused);
            // The next event is slept for only if there was no traffic since the last look: else it would wake this
            // thread at the same moment as the reader.
            let reads_before = std::mem::replace(&mut reads, host.reads());
            sleep = if most >= FAST {
                Some(FAST_TICK)
            } else if again || reads != reads_before || !found.is_empty() {
                Some(TICK)
            } else {
                None
            };
            if events.len() == events.capacity() {
                events.reserve(2 * events.capacity());
            }
        }
    }

    /// Without `sleep`, waits until anything is readable. With it, sleeps so long, or until kicked, and then looks what is.
    fn wait(&self, events: &mut Vec<epoll::Event>, sleep: Option<Duration>) -> Result<(), Errno> {
        let timeout = sleep.map(|_| Timespec::default());
        if let Some(sleep) = sleep {
            let sleep = Timespec {
                tv_sec: 0,
                tv_nsec: sleep.subsec_nanos().into(),
            };
            let mut wake = [PollFd::new(&self.wake, PollFlags::IN)];
            // Whether it fails or not, what is readable is looked at next.
            let _ = poll(&mut wake, Some(&sleep));
        }
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => events.clear(),
            Err(error) => return Err(error),
        }
        if events.iter().any(|event| event.data.u64() == WAKE) {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        Ok(())
    }

    fn set_running(&self, running: bool) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
        self.ended.notify_all();
    }
}

/// Rescues what must be, of the streams that are readable now. Returns the most bytes that one of them gave.
fn look(
    readable: &[Arc<Stream>],
    sightings: &mut HashMap<u64, Sighting>,
    paused: &mut Vec<u64>,
    scratch: &mut [u8],
) -> usize {
    let now = Instant::now();
    let mut most = 0;
    let mut seen = HashMap::with_capacity(readable.len());
    for stream in readable {
        let reads = stream.reads();
        let mut sighting = sightings.remove(&stream.id()).unwrap_or(Sighting {
            reads,
            unread_since: now,
            readable_since: now,
            missed: 0,
        });
        sighting.missed = 0;
        if sighting.reads != reads {
            sighting.reads = reads;
            sighting.unread_since = now;
        }
        if stream.is_behind()
            || now - sighting.unread_since >= TICK
            || now - sighting.readable_since >= PATIENCE
        {
            // A panic leaves the stream's lock poisoned, which its reader is told. The others go on.
            let taken = catch_unwind(AssertUnwindSafe(|| rescue(stream, paused, scratch)));
            most = most.max(taken.unwrap_or(0));
        }
        seen.insert(stream.id(), sighting);
    }
    for (id, mut sighting) in sightings.drain() {
        if sighting.missed < MOST_MISSED {
            sighting.missed += 1;
            // It was read, or it would be readable.
            sighting.unread_since = now;
            seen.insert(id, sighting);
        }
    }
    *sightings = seen;
    most
}

/// Reads what one stream has now, and returns how many bytes that was. The lock is given back after each read.
fn rescue(stream: &Stream, paused: &mut Vec<u64>, scratch: &mut [u8]) -> usize {
    let mut bytes = 0;
    for _ in 0..READS_A_LOOK {
        match stream.take(scratch) {
            Taken::Some(read) => bytes += read,
            Taken::Last(read) => return bytes + read,
            Taken::Paused => {
                paused.push(stream.id());
                return bytes;
            }
        }
    }
    bytes
}

/// Takes streams up again that may go on. Returns whether one of them must be tried again.
fn resume(host: &'static Host, paused: &mut Vec<u64>) -> bool {
    let mut failed = false;
    if !paused.is_empty() {
        let streams = host.streams(paused.iter().copied());
        paused.clear();
        for stream in streams {
            let resumed = stream.resume();
            failed |= resumed == Resumed::Failed;
            if resumed != Resumed::Done {
                paused.push(stream.id());
            }
        }
    }
    failed
}
