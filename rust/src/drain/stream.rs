//! [`Stream`]: one descriptor with its queue, shared by the reader ([`Drain`](super::Drain)) and the rescuer.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};

use super::rescuer::Rescuer;
use super::shared::Shared;
use super::state::{Rescued, State};

/// One drained descriptor. The reader and the rescuer both hold a reference to it. The lock of `state` protects everything that changes.
pub struct Stream {
    /// The 1-based number that identifies the stream to the rescuer.
    pub(super) id: u64,
    pub(super) shared: &'static Shared,
    pub(super) rescuer: Arc<Rescuer>,
    /// The descriptor's device and inode. Two streams with the same pair read the same file.
    pub(super) file: (u64, u64),
    /// Whether the descriptor must be set to blocking again when the stream is closed.
    pub(super) was_blocking: AtomicBool,
    /// How often the reader called read, whether it got bytes or not. The rescuer compares this count to find out whether the reader is
    /// away.
    pub(super) reads: AtomicU64,
    /// Whether only the rescuer reads the descriptor now: earlier bytes are waiting elsewhere, or the drain has no reader.
    pub(super) rescuer_reads: AtomicBool,
    /// `None` after the stream is closed.
    pub(super) state: Mutex<Option<State>>,
}

/// The error after a call on a stream panicked. The stream can then only be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// The result of [`Stream::resume`].
#[derive(PartialEq, Eq)]
pub enum Resumed {
    /// The stream is no longer paused: it is read again, has ended, or is closed.
    Done,
    /// The stream stays paused, because there is not yet enough room.
    NotYet,
    /// The system ran out of memory while it added the descriptor again. Try again later.
    Failed,
}

impl Stream {
    /// Reads the descriptor once, for the rescuer.
    pub fn take(&self, scratch: &mut [u8]) -> Rescued {
        match self.state.lock() {
            Ok(mut guard) => match guard.as_mut() {
                Some(state) => state.take(self, scratch),
                None => Rescued::Last(0),
            },
            Err(poisoned) => {
                // A call panicked and may have left the state inconsistent. The reader gets `Broken`.
                if let Some(state) = poisoned.into_inner().as_ref() {
                    self.rescuer.delete(state.pipe.as_fd());
                }
                Rescued::Last(0)
            }
        }
    }

    /// Adds the descriptor to the rescuer's epoll instance, whatever the stream's state is.
    #[cfg(test)]
    pub fn see_again(&self) -> std::io::Result<()> {
        let guard = self.state.lock().unwrap();
        self.rescuer
            .add(guard.as_ref().unwrap().pipe.as_fd(), self.id)
    }

    /// Removes the descriptor from the rescuer's epoll instance.
    #[cfg(test)]
    pub fn see_no_more(&self) {
        let guard = self.state.lock().unwrap();
        self.rescuer.delete(guard.as_ref().unwrap().pipe.as_fd());
    }

    /// Resumes the stream if it is paused and has enough room again. The rescuer calls this.
    pub fn resume(&self) -> Resumed {
        let Ok(mut guard) = self.state.lock() else {
            return Resumed::Done;
        };
        match guard.as_mut() {
            Some(state) if state.paused => {
                if !state.may_resume(self.shared) {
                    return Resumed::NotYet;
                }
                if self.rescuer.add(state.pipe.as_fd(), self.id).is_err() {
                    return Resumed::Failed;
                }
                state.unpause(self.shared);
                Resumed::Done
            }
            _ => Resumed::Done,
        }
    }

    /// Closes the descriptors and drops the queue. No method uses the descriptors after this.
    pub fn close(&self) {
        // A stream in which a call panicked is closed like any other.
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.clear_poison();
        if let Some(mut state) = guard.take() {
            // A forked child may have the same file open. Then closing the descriptor does not remove it from the epoll instance.
            self.rescuer.delete(state.pipe.as_fd());
            state.drop_waiting(self);
            state.unpause(self.shared);
            self.shared.leave(self, || {
                if let Ok(flags) = fcntl_getfl(&state.pipe) {
                    let _ = fcntl_setfl(&state.pipe, flags - OFlags::NONBLOCK);
                }
            });
        }
    }

    /// Returns bytes to the budget, and wakes the rescuer if a paused stream can now be resumed.
    pub(super) fn give_back(&self, bytes: usize) {
        if self.shared.give_back(bytes) {
            self.rescuer.kick();
        }
    }

    /// Calls `f` with the locked state. Only the drain calls this. Only the drain closes the stream, so the state is not `None` yet.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> Result<R, Broken> {
        let mut guard = self.state.lock().map_err(|_| Broken)?;
        guard.as_mut().map(f).ok_or(Broken)
    }
}
