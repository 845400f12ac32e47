//! What all drains of a process share: their budget and their rescuer.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::rescuer::{Rescuer, Work};
use super::stream::Stream;

/// Starts a thread that takes no signals: signals are for the threads of the host.
pub type Spawn = fn(Box<dyn FnOnce() + Send>) -> io::Result<()>;

/// One per process. A forked child needs another.
pub struct Shared {
    spawn: Spawn,
    limit: AtomicUsize,
    /// Bytes in all queues, which the rescuer alone adds, and bytes that readers keep.
    queued: AtomicUsize,
    /// Streams that wait for room.
    paused: AtomicUsize,
    /// Reads by readers of all streams. While it moves, there is traffic.
    reads: AtomicU64,
    members: Mutex<Members>,
}

struct Members {
    rescuer: Option<Arc<Rescuer>>,
    streams: HashMap<u64, Arc<Stream>>,
    next_id: u64,
    stopped: bool,
}

impl Shared {
    /// For a budget of `limit` bytes and no drains.
    #[must_use]
    pub fn new(limit: usize, spawn: Spawn) -> Self {
        Self {
            spawn,
            limit: AtomicUsize::new(limit),
            queued: AtomicUsize::new(0),
            paused: AtomicUsize::new(0),
            reads: AtomicU64::new(0),
            members: Mutex::new(Members {
                rescuer: None,
                streams: HashMap::new(),
                next_id: 1,
                stopped: false,
            }),
        }
    }

    /// Bytes that all queues together may hold.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::SeqCst)
    }

    /// Bytes that they hold now.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::SeqCst)
    }

    /// Sets the limit. Streams above a lower one are paused when they would grow.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::SeqCst);
        self.kick();
    }

    /// Takes bytes off the count that somebody kept outside of any queue and had [added](Self::add).
    pub fn give_back_kept(&self, bytes: usize) {
        if self.give_back(bytes) {
            self.kick();
        }
    }

    /// Ends the rescuer for good and waits for it until the timeout. Drains go on without a rescuer. Returns whether it has ended.
    pub fn stop(&self, timeout: Duration) -> bool {
        let rescuer = {
            let mut members = self.members();
            members.stopped = true;
            members.rescuer.clone()
        };
        rescuer.is_none_or(|rescuer| rescuer.stop(Some(timeout)))
    }

    /// Makes a stream a member: it is rescued from now on. The first one starts the rescuer.
    pub(super) fn join(
        &'static self,
        make: impl FnOnce(u64, Arc<Rescuer>) -> io::Result<Arc<Stream>>,
    ) -> io::Result<Arc<Stream>> {
        let mut members = self.members();
        members.streams.try_reserve(1)?;
        let (rescuer, new) = match &members.rescuer {
            Some(rescuer) => (Arc::clone(rescuer), None),
            None => (Arc::new(Rescuer::new()?), Some(Work::new()?)),
        };
        let id = members.next_id;
        let stream = make(id, Arc::clone(&rescuer))?;
        if let Some(work) = new {
            if !members.stopped {
                rescuer.set_running(true);
                let thread = Arc::clone(&rescuer);
                if let Err(error) =
                    (self.spawn)(Box::new(move || thread.rescue_until_stopped(self, work)))
                {
                    drop(members);
                    stream.close();
                    return Err(error);
                }
            }
            members.rescuer = Some(rescuer);
        }
        members.next_id += 1;
        members.streams.insert(id, Arc::clone(&stream));
        Ok(stream)
    }

    /// Ends the membership. The last one ends the rescuer. A descriptor that was blocking becomes so again by `block`,
    /// or, if another stream reads the same file, when that one leaves: it would hang meanwhile.
    pub(super) fn leave(&self, stream: &Stream, block: impl FnOnce()) {
        let mut members = self.members();
        let left = members.streams.remove(&stream.id).is_some();
        if stream.was_blocking.load(Ordering::Relaxed) {
            let mut others = members.streams.values();
            match others.find(|other| other.file == stream.file) {
                Some(other) => other.was_blocking.store(true, Ordering::Relaxed),
                None => block(),
            }
        }
        if left && members.streams.is_empty() {
            if let Some(rescuer) = members.rescuer.take() {
                rescuer.stop(None);
            }
        }
    }

    /// A stream by its number, unless it has left.
    pub(super) fn stream(&self, id: u64) -> Option<Arc<Stream>> {
        self.members().streams.get(&id).map(Arc::clone)
    }

    /// Appends the streams with these numbers to `found`, up to its capacity. Skips those that have left.
    pub(super) fn find(&self, ids: impl Iterator<Item = u64>, found: &mut Vec<Arc<Stream>>) {
        let members = self.members();
        let room = found.capacity() - found.len();
        let streams = ids.filter_map(|id| members.streams.get(&id).map(Arc::clone));
        found.extend(streams.take(room));
    }

    pub(super) fn room(&self) -> usize {
        self.limit().saturating_sub(self.queued())
    }

    /// Whether streams that were paused for want of room may go on.
    pub(super) fn has_room_again(&self) -> bool {
        self.queued() <= self.limit() / 2
    }

    /// Counts bytes that were put into a queue, or that somebody keeps for the reader of a drain outside of any queue.
    pub fn add(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Takes bytes off the count. Returns whether to kick the rescuer because paused streams may go on.
    pub(super) fn give_back(&self, bytes: usize) -> bool {
        if bytes == 0 {
            return false;
        }
        self.queued.fetch_sub(bytes, Ordering::SeqCst);
        // A rescuer that pauses a stream counts the stream first and reads `queued` afterwards. The order here is the other way
        // around, so that one of the two sees the other.
        self.paused.load(Ordering::SeqCst) > 0 && self.has_room_again()
    }

    fn kick(&self) {
        let rescuer = self.members().rescuer.clone();
        if let Some(rescuer) = rescuer {
            rescuer.kick();
        }
    }

    pub(super) fn count_paused(&self, more: bool) {
        if more {
            self.paused.fetch_add(1, Ordering::SeqCst);
        } else {
            self.paused.fetch_sub(1, Ordering::SeqCst);
        }
    }

    pub(super) fn count_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// A change of the members is complete before anything that could panic.
    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
