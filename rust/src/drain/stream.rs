//! One stream: its descriptor, its queue, and what its reader waits for.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};

use super::rescuer::Rescuer;
use super::shared::Shared;
use super::state::{Rescued, State};

/// A stream, shared by its reader and the rescuer.
pub struct Stream {
    pub(super) id: u64,
    pub(super) shared: &'static Shared,
    pub(super) rescuer: Arc<Rescuer>,
    /// Device and inode of its descriptor.
    pub(super) file: (u64, u64),
    /// Whether the descriptor was blocking before.
    pub(super) was_blocking: AtomicBool,
    /// Reads by the reader, with or without result.
    pub(super) reads: AtomicU64,
    /// Whether the rescuer alone reads the descriptor: something is queued, or nobody else reads it.
    pub(super) behind: AtomicBool,
    /// None once it is closed.
    pub(super) state: Mutex<Option<State>>,
}

/// A panic broke the stream: it can only be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Whether a paused stream goes on.
#[derive(PartialEq, Eq)]
pub enum Resumed {
    /// It is read again, has ended or is closed.
    Done,
    /// It may not yet go on.
    NotYet,
    /// The system has no memory for it now.
    Failed,
}

impl Stream {
    /// One read by the rescuer.
    pub fn take(&self, scratch: &mut [u8]) -> Rescued {
        match self.state.lock() {
            Ok(mut guard) => match guard.as_mut() {
                Some(state) => state.take(self, scratch),
                None => Rescued::Last(0),
            },
            Err(poisoned) => {
                // Its state cannot be trusted any more. Its reader gets an error.
                if let Some(state) = poisoned.into_inner().as_ref() {
                    self.rescuer.delete(state.pipe.as_fd());
                }
                Rescued::Last(0)
            }
        }
    }

    /// Has the rescuer watch the descriptor, whatever the state of the stream.
    #[cfg(test)]
    pub fn see_again(&self) -> std::io::Result<()> {
        let guard = self.state.lock().unwrap();
        self.rescuer
            .add(guard.as_ref().unwrap().pipe.as_fd(), self.id)
    }

    /// Ends that.
    #[cfg(test)]
    pub fn see_no_more(&self) {
        let guard = self.state.lock().unwrap();
        self.rescuer.delete(guard.as_ref().unwrap().pipe.as_fd());
    }

    /// Resumes a paused stream if it may go on.
    pub fn resume(&self) -> Resumed {
        let Ok(mut guard) = self.state.lock() else {
            return Resumed::Done;
        };
        match guard.as_mut() {
            Some(state) if state.paused => {
                if !state.may_go_on(self.shared) {
                    return Resumed::NotYet;
                }
                if self.rescuer.add(state.pipe.as_fd(), self.id).is_err() {
                    return Resumed::Failed;
                }
                state.go_on(self.shared);
                Resumed::Done
            }
            _ => Resumed::Done,
        }
    }

    /// Closes the stream's descriptors and drops its queue. No method touches the descriptors afterwards.
    pub fn close(&self) {
        // A broken stream is closed as any other.
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.clear_poison();
        if let Some(mut state) = guard.take() {
            // A forked child may hold the same open file, so closing the descriptor would not remove it.
            self.rescuer.delete(state.pipe.as_fd());
            state.drop_waiting(self);
            state.go_on(self.shared);
            self.shared.leave(self, || {
                if let Ok(flags) = fcntl_getfl(&state.pipe) {
                    let _ = fcntl_setfl(&state.pipe, flags - OFlags::NONBLOCK);
                }
            });
        }
    }

    pub(super) fn give_back(&self, bytes: usize) {
        if self.shared.give_back(bytes) {
            self.rescuer.kick();
        }
    }

    /// For the owner of the drain, who alone can close it.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> Result<R, Broken> {
        let mut guard = self.state.lock().map_err(|_| Broken)?;
        guard.as_mut().map(f).ok_or(Broken)
    }
}
