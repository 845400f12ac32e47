//! The rescuer: the thread that reads descriptors if their readers leave them unread.
//!
//! The basic idea is simple: in a loop, the thread finds out which descriptors are readable (a *look*), reads those that are overdue,
//! and sleeps:
//!
//! ```text
//! no traffic since the last look       wait until any descriptor is readable
//! traffic                              sleep 10 ms (`TICK`)
//! 2048 bytes or more from one stream   sleep 1 ms (`FAST_TICK`)
//! ```
//!
//! A stream is overdue if it was also readable at the last look, and its reader has not read since then. The thread sleeps for a fixed
//! time, and does not wait for the next event, because an event would wake it at the same moment as the reader.
//!
//! A failed allocation must not abort the host. When the thread starts, it reserves the memory that it always needs ([`Work`]). If it
//! cannot get more memory, it skips the stream until the next look. Nothing is lost: the bytes stay in their pipe.

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

/// The id of the rescuer's own eventfd in its epoll instance. The ids of streams begin at 1.
const WAKE: u64 = 0;

/// The maximum number of reads of one stream per look. Without a limit, one fast writer could keep the thread from all other streams.
const READS_A_LOOK: usize = 16;

/// The maximum number of streams that share one eventfd of [`Rescuer::ready`]. Linux limits how many chains of epoll instances may end at
/// one descriptor: to 500 chains of two instances (an event loop's and a stream's), and to 100 chains of three instances.
const MAX_SHARING: usize = 50;

/// The part of the rescuer that streams also use: its epoll instance, and functions that wake or stop the thread.
pub struct Rescuer {
    /// Waits for the descriptors of all streams, and for `wake`.
    epoll: OwnedFd,
    /// The eventfd that [`kick`](Self::kick) writes to.
    wake: OwnedFd,
    /// Eventfds that are always readable. Each stream has one of them in the epoll instance of its reader.
    ready: Mutex<Vec<Weak<OwnedFd>>>,
    stop: AtomicBool,
    running: Mutex<bool>,
    ended: Condvar,
}

/// How many looks in a row may find a stream empty while it still counts as always readable. At the time of a look, the reader may have
/// just read everything, and the writer may not have run yet.
const MAX_MISSED: u32 = 2;

/// The maximum number of events from one wait. They are stored on the stack.
const EVENTS: usize = 1024;

/// The number of streams for which memory is reserved when the thread starts.
const FEW: usize = 64;

/// The memory that only the thread uses. It is reserved before the thread starts, and grows if it can.
pub struct Work {
    /// The streams that are readable at this look.
    found: Vec<Arc<Stream>>,
    /// The streams that were readable at a recent look, by id.
    sightings: HashMap<u64, Sighting>,
    /// The ids of paused streams.
    paused: Vec<u64>,
    /// A buffer for bytes that are not read directly into a queue.
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

/// What the thread remembers about a stream that was readable at a recent look.
struct Sighting {
    /// How often the reader had read at the last look.
    reads: u64,
    /// When the reader last made progress: `reads` changed, or the descriptor was empty.
    unread_since: Instant,
    /// When the descriptor was first found readable.
    readable_since: Instant,
    /// How many looks in a row found the descriptor empty.
    missed: u32,
    /// Whether the current look found the descriptor readable.
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

    /// Makes the thread wait for the descriptor of the stream `id`.
    pub fn add(&self, fd: BorrowedFd<'_>, id: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(id);
        Ok(epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN)?)
    }

    /// Makes the thread stop waiting for a descriptor.
    pub fn delete(&self, fd: BorrowedFd<'_>) {
        // This fails only if the descriptor is not a member, which is harmless.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Returns an eventfd that is always readable, for the epoll instance of a new stream.
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

    /// Wakes the thread from a wait or a sleep.
    pub fn kick(&self) {
        // This fails only if the eventfd would exceed 2^64 - 2, after that many kicks since the last look.
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.wake, &1u64.to_ne_bytes()));
    }

    /// Asks the thread to end. If `timeout` is given, waits at most that long for the thread to end. Returns true if the thread has ended.
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

    /// Returns how many streams the thread's epoll instance reports as readable now.
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

    /// Returns true if [`kick`](Self::kick) was called since the last look, or since the last call of this function.
    #[cfg(test)]
    pub fn kicked(&self) -> bool {
        rustix::io::read(&self.wake, &mut [0; 8]).is_ok()
    }

    #[cfg(test)]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Runs the loop of the thread until [`stop`](Self::stop).
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
            // If more streams are readable than fit, epoll returns the others first at the next look.
            let room = work.found.capacity().min(EVENTS);
            // This fails only if other code in the process closed our epoll instance. From then on, only the readers read.
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
            // Wait for the next event only if there was no traffic since the last look. Otherwise the event would wake this thread at
            // the same moment as the reader.
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

    /// Returns the readable descriptors. Without `sleep`, it waits until a descriptor is readable. With `sleep`, it sleeps that long or
    /// until a kick, and then returns without waiting.
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
            // The result does not matter: `epoll::wait` below returns what is readable.
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

    /// Sets whether the thread is running; [`stop`](Self::stop) waits until it is not. The caller sets it before the thread starts, so that
    /// a stop during the start also waits.
    pub fn set_running(&self, running: bool) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
        self.ended.notify_all();
    }
}

/// Reads the overdue streams among the readable ones in `work.found`. Returns the largest number of bytes that it read from one stream.
fn look(work: &mut Work) -> usize {
    let now = Instant::now();
    let mut most = 0;
    for stream in &work.found {
        if work.paused.try_reserve(1).is_err() {
            continue;
        }
        // If there is no memory for a sighting, read the stream now.
        let due = work.sightings.try_reserve(1).is_err()
            || sighted(&mut work.sightings, stream, now)
            || stream.rescuer_reads.load(Ordering::Relaxed);
        if due {
            let (paused, scratch) = (&mut work.paused, &mut work.scratch);
            // A panic poisons only this stream's lock. Its reader then gets `Broken`.
            let taken = catch_unwind(AssertUnwindSafe(|| rescue(stream, paused, scratch)));
            most = most.max(taken.unwrap_or(0));
        }
    }
    work.sightings.retain(|_, sighting| {
        let seen = std::mem::replace(&mut sighting.seen, false);
        if !seen {
            sighting.missed += 1;
            // The descriptor is empty, so its reader has read everything.
            sighting.unread_since = now;
        }
        sighting.missed <= MAX_MISSED
    });
    most
}

/// Records that a stream is readable now. Returns true if it is overdue: its reader has not read for [`TICK`], or the descriptor has been
/// readable for [`PATIENCE`].
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

/// Reads one stream until it is empty, at most [`READS_A_LOOK`] times, and returns how many bytes it read. It releases the stream's lock
/// after each read. If the stream pauses, its id is appended to `paused`.
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

/// Resumes the paused streams that have room again, and removes them from `paused`. Returns true if memory ran out while one was resumed;
/// the caller must then try again.
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
    fn an_eventfd_is_dropped_with_its_last_drain() {
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
    fn resuming_a_paused_stream_is_retried() {
        let shared: &'static Shared = Box::leak(Box::new(Shared::new(10, |_| Ok(()))));
        shared.stop(Duration::ZERO); // The test thread acts as the rescuer.
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
        // Resuming fails because the descriptor is already a member of the epoll instance.
        stream.see_again().unwrap();
        assert!(resume(shared, &mut paused));
        assert_eq!(paused, [stream.id]);
        stream.see_no_more();
        assert!(!resume(shared, &mut paused));
        assert!(paused.is_empty());
        assert!(!drain.stats().unwrap().paused);
    }
}
