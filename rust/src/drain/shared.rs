//! [`Shared`]: the byte budget and the rescuer, which all drains of a process share.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::rescuer::{Rescuer, Work};
use super::stream::Stream;

/// A function that starts a thread with all signals blocked, so that the system delivers signals only to the host's threads.
pub type Spawn = fn(Box<dyn FnOnce() + Send>) -> io::Result<()>;

/// The budget and the rescuer of all drains. A process has one instance, and a forked child creates its own.
pub struct Shared {
    spawn: Spawn,
    /// The budget in bytes.
    limit: AtomicUsize,
    /// The number of bytes in all queues, plus the bytes that readers keep elsewhere and have [added](Self::add).
    queued: AtomicUsize,
    /// How many streams are paused.
    paused: AtomicUsize,
    /// How often the readers of all streams read. The rescuer compares this count to find out whether there is traffic.
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
    /// Creates a budget of `limit` bytes, without any drains. The first drain starts the rescuer with `spawn`.
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

    /// Returns the budget in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::SeqCst)
    }

    /// Returns how many bytes of the budget are in use.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::SeqCst)
    }

    /// Sets the budget in bytes. If more is in use already, streams pause before they queue more.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::SeqCst);
        self.kick();
    }

    /// Returns to the budget the bytes that a reader [added](Self::add) and no longer keeps.
    pub fn give_back_kept(&self, bytes: usize) {
        if self.give_back(bytes) {
            self.kick();
        }
    }

    /// Ends the rescuer permanently, and waits at most `timeout` for it to end. Drains still work, but only their readers read the
    /// descriptors. Returns true if the rescuer has ended.
    pub fn stop(&self, timeout: Duration) -> bool {
        let rescuer = {
            let mut members = self.members();
            members.stopped = true;
            members.rescuer.clone()
        };
        rescuer.is_none_or(|rescuer| rescuer.stop(Some(timeout)))
    }

    /// Calls `make` with an id and the rescuer, and adds the stream that `make` returns. The first stream starts the rescuer.
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

    /// Removes a stream. The last stream ends the rescuer.
    ///
    /// If the descriptor was blocking before, `block` makes it blocking again. If another stream reads the same file, the last of these
    /// streams does this when it leaves, because a blocking read would hang the others.
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

    /// Returns the stream with this id, if it is still a member.
    pub(super) fn stream(&self, id: u64) -> Option<Arc<Stream>> {
        self.members().streams.get(&id).map(Arc::clone)
    }

    /// Appends the streams with these ids to `found`, up to its capacity. Skips streams that are no longer members.
    pub(super) fn find(&self, ids: impl Iterator<Item = u64>, found: &mut Vec<Arc<Stream>>) {
        let members = self.members();
        let room = found.capacity() - found.len();
        let streams = ids.filter_map(|id| members.streams.get(&id).map(Arc::clone));
        found.extend(streams.take(room));
    }

    /// Returns how many bytes of the budget are free.
    pub(super) fn room(&self) -> usize {
        self.limit().saturating_sub(self.queued())
    }

    /// Returns true if at most half of the budget is in use, so that paused streams may be resumed.
    pub(super) fn has_room_again(&self) -> bool {
        self.queued() <= self.limit() / 2
    }

    /// Adds bytes to the used part of the budget. The bytes are in a queue, or a reader keeps them elsewhere.
    pub fn add(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Returns bytes to the budget. Returns true if the caller must kick the rescuer because a paused stream can be resumed.
    pub(super) fn give_back(&self, bytes: usize) -> bool {
        if bytes == 0 {
            return false;
        }
        self.queued.fetch_sub(bytes, Ordering::SeqCst);
        // The rescuer first counts a stream as paused, and then reads `queued`. Here the order is reversed: this function first changes
        // `queued`, and then reads `paused`. So at least one of the two threads sees the other's change, and the stream is resumed.
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

    /// Locks the members. A poisoned lock is harmless, because every change of the members is complete before code that may panic.
    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
