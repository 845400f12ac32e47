//! The thread that reads what readers leave unread.
//!
//! An allocation that fails here must not abort the host. What the thread always needs it has from the beginning
//! ([`Work`]); for all else it asks, and where there is no memory it leaves a stream alone until the next look. Nothing
//! is lost by that: the bytes stay in their pipe.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::event::{epoll, eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::shared::Shared;
use super::state::Rescued;
use super::stream::{Resumed, Stream};
use super::{CHUNK, FAST, FAST_TICK, PATIENCE, TICK};

/// Names the rescuer's own eventfd among the numbers of streams, which begin at 1.
const WAKE: u64 = 0;

/// Reads of one stream at one look, so that no stream waits for another one's flood.
const READS_A_LOOK: usize = 16;

/// Streams that share one eventfd of [`Rescuer::ready`]. Linux limits how many chains of epoll instances may lead to one
/// descriptor: 500 of two instances (an event loop's, then a stream's), and 100 of three.
const MAX_SHARING: usize = 50;

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

/// Looks in a row that may find a stream empty while it still counts as always readable: its reader may just have taken
/// everything, and its writer may not have run since.
const MAX_MISSED: u32 = 2;

/// Events that one wait returns at most. They are on the stack.
const EVENTS: usize = 1024;

/// Streams for which memory is reserved when the thread starts.
const FEW: usize = 64;

/// The thread's own memory.
pub struct Work {
    found: Vec<Arc<Stream>>,
    sightings: HashMap<u64, Sighting>,
    /// Streams that wait for room.
    paused: Vec<u64>,
    scratch: Vec<u8>,
}

impl Work {
    pub fn new() -> io::Result<Self> {
        let mut work = Self {
            found: Vec::new(),
            sightings: HashMap::new(),
            paused: Vec::new(),
            scratch: Vec::new(),
        };
        work.found.try_reserve(FEW)?;
        work.sightings.try_reserve(FEW)?;
        work.paused.try_reserve(FEW)?;
        work.scratch.try_reserve_exact(CHUNK)?;
        work.scratch.resize(CHUNK, 0);
        Ok(work)
    }
}

/// How often, and since when, a stream was found readable.
struct Sighting {
    /// Number of reads that its reader had made.
    reads: u64,
    /// When that number changed last.
    unread_since: Instant,
    readable_since: Instant,
    /// Looks since the stream was last readable.
    missed: u32,
    /// Whether the stream was readable at this look.
    seen: bool,
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

    /// Adds a descriptor of a stream to those that the thread waits for.
    pub fn add(&self, fd: BorrowedFd<'_>, id: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(id);
        Ok(epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN)?)
    }

    /// Removes it.
    pub fn delete(&self, fd: BorrowedFd<'_>) {
        // Fails only for a descriptor that is not there.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// An eventfd that is always readable, for one more stream.
    pub fn ready(&self) -> io::Result<Arc<OwnedFd>> {
        let mut all = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|it| it.strong_count() > 0);
        let mut free = all.iter().filter(|it| it.strong_count() < MAX_SHARING);
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

    /// Asks the thread to end, and waits for its end until the timeout, or not at all. Returns whether it has ended.
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

    /// Streams that would wake the thread now if it were waiting.
    #[cfg(test)]
    pub fn sees(&self) -> usize {
        let mut events = Vec::with_capacity(64);
        epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&Timespec::default()),
        )
        .unwrap();
        let streams = events.iter().filter(|event| event.data.u64() != WAKE);
        streams.count()
    }

    /// Whether the thread was kicked since the last call of this, or since the thread last looked.
    #[cfg(test)]
    pub fn kicked(&self) -> bool {
        rustix::io::read(&self.wake, &mut [0; 8]).is_ok()
    }

    #[cfg(test)]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// The loop of the thread.
    pub fn rescue_until_stopped(&self, shared: &'static Shared, mut work: Work) {
        struct End<'a>(&'a Rescuer);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.set_running(false);
            }
        }
        let _end = End(self);
        let mut events = [const { MaybeUninit::uninit() }; EVENTS];
        let mut reads = shared.reads();
        let mut sleep = None;
        loop {
            // When more are readable than fit, the system begins the next wait with the others.
            let room = work.found.capacity().min(EVENTS);
            // This fails only if somebody closed a descriptor that they do not own. Readers then read for themselves.
            let Ok(events) = self.wait(&mut events[..room], sleep) else {
                return;
            };
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            let ids = events.iter().map(|event| event.data.u64());
            shared.find(ids.filter(|id| *id != WAKE), &mut work.found);
            let most = look(&mut work);
            let again = resume(shared, &mut work.paused);
            // Sleep until the next event only if there was no traffic since the last look: otherwise it would wake this
            // thread at the same moment as the reader.
            let reads_before = std::mem::replace(&mut reads, shared.reads());
            sleep = if most >= FAST {
                Some(FAST_TICK)
            } else if again || reads != reads_before || !work.found.is_empty() {
                Some(TICK)
            } else {
                None
            };
            work.found.clear();
            if events.len() == room {
                let _ = work.found.try_reserve(2 * room);
            }
        }
    }

    /// Without `sleep`, waits until anything is readable. With it, sleeps that long or until kicked, then looks what is readable.
    fn wait<'a>(
        &self,
        events: &'a mut [MaybeUninit<epoll::Event>],
        sleep: Option<Duration>,
    ) -> Result<&'a [epoll::Event], Errno> {
        let timeout = sleep.map(|_| Timespec::default());
        if let Some(sleep) = sleep {
            let sleep = Timespec {
                tv_sec: 0,
                tv_nsec: sleep.subsec_nanos().into(),
            };
            let mut wake = [PollFd::new(&self.wake, PollFlags::IN)];
            // The result does not matter: the next step looks what is readable.
            let _ = poll(&mut wake, Some(&sleep));
        }
        let events: &[epoll::Event] = match epoll::wait(&self.epoll, events, timeout.as_ref()) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &[],
            Err(error) => return Err(error),
        };
        if events.iter().any(|event| event.data.u64() == WAKE) {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        Ok(events)
    }

    /// Whether [`stop`](Self::stop) is to wait for the end of [`rescue_until_stopped`](Self::rescue_until_stopped), also if that is about
    /// to be called.
    pub fn set_running(&self, running: bool) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
        self.ended.notify_all();
    }
}

/// Rescues those of the readable streams that their readers have left for too long. Returns the largest number of bytes that
/// one stream gave.
fn look(work: &mut Work) -> usize {
    let now = Instant::now();
    let mut most = 0;
    for stream in &work.found {
        if work.paused.try_reserve(1).is_err() {
            continue;
        }
        // Without memory to note the stream, it is left for the next look.
        let due = work.sightings.try_reserve(1).is_err()
            || sighted(&mut work.sightings, stream, now)
            || stream.behind.load(Ordering::Relaxed);
        if due {
            let (paused, scratch) = (&mut work.paused, &mut work.scratch);
            // A panic poisons the stream's lock, and its reader gets an error. The other streams go on.
            let taken = catch_unwind(AssertUnwindSafe(|| rescue(stream, paused, scratch)));
            most = most.max(taken.unwrap_or(0));
        }
    }
    work.sightings.retain(|_, sighting| {
        let seen = std::mem::replace(&mut sighting.seen, false);
        if !seen {
            sighting.missed += 1;
            // It is not readable any more, so its reader has read it.
            sighting.unread_since = now;
        }
        sighting.missed <= MAX_MISSED
    });
    most
}

/// Notes that a stream is readable now. Returns whether its reader has left it unread for too long.
fn sighted(sightings: &mut HashMap<u64, Sighting>, stream: &Stream, now: Instant) -> bool {
    let reads = stream.reads.load(Ordering::Relaxed);
    let sighting = sightings.entry(stream.id).or_insert(Sighting {
        reads,
        unread_since: now,
        readable_since: now,
        missed: 0,
        seen: true,
    });
    sighting.missed = 0;
    sighting.seen = true;
    if sighting.reads != reads {
        sighting.reads = reads;
        sighting.unread_since = now;
    }
    now - sighting.unread_since >= TICK || now - sighting.readable_since >= PATIENCE
}

/// Reads what one stream has now, and returns the number of bytes. The lock is released after each read.
fn rescue(stream: &Stream, paused: &mut Vec<u64>, scratch: &mut [u8]) -> usize {
    let mut bytes = 0;
    for _ in 0..READS_A_LOOK {
        match stream.take(scratch) {
            Rescued::Some(read) => bytes += read,
            Rescued::Last(read) => return bytes + read,
            Rescued::Paused => {
                paused.push(stream.id);
                return bytes;
            }
        }
    }
    bytes
}

/// Resumes paused streams that may go on. Returns whether one of them must be tried again.
fn resume(shared: &'static Shared, paused: &mut Vec<u64>) -> bool {
    let mut failed = false;
    paused.retain(|id| {
        let resumed = shared.stream(*id).map_or(Resumed::Done, |it| it.resume());
        failed |= resumed == Resumed::Failed;
        resumed != Resumed::Done
    });
    failed
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use rustix::pipe::pipe;

    use super::super::{Drain, Mode};
    use super::*;

    #[test]
    fn what_drains_shared_is_forgotten_with_the_last_of_them() {
        let rescuer = Rescuer::new().unwrap();
        for _ in 0..3 {
            let many: Vec<_> = (0..3 * MAX_SHARING)
                .map(|_| rescuer.ready().unwrap())
                .collect();
            let mut different: Vec<_> = many.iter().map(AsRawFd::as_raw_fd).collect();
            different.dedup();
            assert_eq!(different.len(), 3);
        }
        drop(rescuer.ready().unwrap());
        assert_eq!(rescuer.ready.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_paused_stream_that_cannot_be_taken_up_is_tried_again() {
        let shared: &'static Shared = Box::leak(Box::new(Shared::new(10, |_| Ok(()))));
        shared.stop(Duration::ZERO); // so that this thread is the rescuer
        shared.add(10);
        let (reader, writer) = pipe().unwrap();
        let drain = Drain::new(shared, reader.as_fd(), Mode::Pause).unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        let stream = &shared.stream(1).unwrap();
        assert!(matches!(stream.take(&mut [0; 10]), Rescued::Paused));
        let mut paused = vec![stream.id];
        assert!(!resume(shared, &mut paused));
        assert_eq!(paused, [stream.id], "there is no room yet");
        shared.give_back_kept(10);
        // The system refuses a descriptor that it has already.
        stream.see_again().unwrap();
        assert!(resume(shared, &mut paused));
        assert_eq!(paused, [stream.id]);
        stream.see_no_more();
        assert!(!resume(shared, &mut paused));
        assert!(paused.is_empty());
        assert!(!drain.stats().unwrap().paused);
    }
}
