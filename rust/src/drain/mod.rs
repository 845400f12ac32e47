//! Keeps pipes from filling up while nobody reads them.
//!
//! The Claude Code CLI exits 2 seconds after it has finished, even if its pipe is still full, and what it has not written by
//! then is lost. So a host that is busy, or holds Python's lock, must not leave a pipe full.
//!
//! *The reader first.* A [`Drain`] is read by whoever owns it, straight from the descriptor, without a thread between:
//! real traffic is one small event at a time, and a thread would cost a wake-up for each.
//!
//! *A rescuer second.* One thread per host process waits for all descriptors at once. Once one is readable it sleeps for
//! [`TICK`], on nothing that the streams could wake; whatever its reader has not looked at for so long, it reads into the
//! queue of that drain, and wakes the reader. As long as something is queued the reader reads that, and
//! the rescuer the descriptor. A reader that reads, but has not seen the end of the data for a whole [`PATIENCE`], is
//! slower than the writer, and is helped in the same way.
//!
//! *Order.* Both read under one lock per stream, so bytes come out as they came in: what is queued in memory, then what
//! is in the file, then what the descriptor has.
//!
//! *Waiting.* The reader waits for [`Drain::fileno`]: an epoll instance of the stream's own that holds the descriptor,
//! and an eventfd that is always readable, shared with other streams, switched off except while there is something to
//! say that the descriptor does not say. Switching is `EPOLL_CTL_MOD`, which needs no memory and cannot fail, under the
//! lock of the stream: no wake-up is lost between a rescuer that queues and a reader that empties the queue.
//!
//! *The budget.* All queues of a [`Shared`] together hold at most so many bytes; [`Mode`] says what happens above.
//!
//! *Memory.* What the rescuer allocates may fail: it leaves the bytes in their pipe then, and tries again. Nothing of it
//! aborts the host.
//!
//! *Forks.* A forked child must touch nothing that it shares with its parent: it makes a [`Shared`] of its own and
//! leaks the other one. Since it also keeps the parent's descriptors open, closing them does not take them out of an
//! epoll instance: that is always done explicitly.
//!
//! This module exists only where there is epoll. It knows nothing of lines and of Python.
//!
//! [`Drain`]: crate::drain::Drain
//! [`TICK`]: crate::drain::TICK
//! [`PATIENCE`]: crate::drain::PATIENCE
//! [`Drain::fileno`]: crate::drain::Drain::fileno
//! [`Shared`]: crate::drain::Shared
//! [`Mode`]: crate::drain::Mode

use std::time::Duration;

mod queue;
mod reader;
mod rescuer;
mod ring;
mod shared;
mod spill;
mod state;
mod stream;
#[cfg(test)]
mod tests;

pub use reader::Drain;
pub use shared::Shared;
pub use stream::Broken;

/// Bytes of one read, and of one piece of a queue: the size of a Linux pipe.
pub const CHUNK: usize = 64 * 1024;

/// How long a descriptor may be readable and unread before it is rescued, and how often the rescuer looks.
pub const TICK: Duration = Duration::from_millis(10);

/// How often the rescuer looks while it finds at least [`FAST`] bytes each time: a writer behind a pipe of 64 KiB then
/// gets 64 MB/s at most.
pub const FAST_TICK: Duration = Duration::from_millis(1);

/// See [`FAST_TICK`]. This fills the smallest pipe, which has one page and takes no line that does not fit whole.
pub const FAST: usize = 2048;

/// How long a descriptor may be found readable at nearly every look although its reader reads.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// Budget of a process that sets none.
pub const DEFAULT_LIMIT: usize = 256 * 1024 * 1024;

/// What happens to a stream whose bytes do not fit into the budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is not read, so that its writer has to wait, until the queues of the process are half empty.
    Pause,
    /// As [`Mode::Pause`], and the next [`Drain::read`] returns [`Got::Budget`].
    Error,
    /// The bytes go to an unlinked file in this directory, up to this many; above that, [`Mode::Pause`] until the file is read.
    Spill(u64, std::path::PathBuf),
    /// There is no queue: only this many of the last bytes are kept, for [`Drain::tail`]. They do not count in the budget.
    KeepLast(usize),
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// This many bytes, at least 1.
    Bytes(usize),
    /// None are there now.
    Nothing,
    /// The stream has ended. Every further read returns this, too.
    End,
    /// Reading failed with this errno. Every further read returns this, too.
    Failed(i32),
    /// The budget was exceeded. Returned once for each pause.
    Budget,
}

/// What else a read tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Whether the stream is or was paused.
    pub paused: bool,
    /// Whether the watched descriptor has become readable.
    pub watched: bool,
}

/// Counts of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes given to the reader.
    pub read: u64,
    /// Bytes taken by the rescuer instead of the reader.
    pub rescued: u64,
    /// Times that the queue was empty before the rescuer filled it.
    pub rescues: u64,
    /// Times that the stream was paused for want of room or memory.
    pub pauses: u64,
    /// Bytes that went to a file.
    pub spilled: u64,
    /// Times that a file could not be made or written.
    pub spill_errors: u64,
    /// Bytes thrown away, by a discarding drain or one that keeps the last bytes only.
    pub discarded: u64,
    /// Bytes in memory now, those that are kept for [`Drain::tail`] included.
    pub queued: u64,
    /// Bytes in the file now that were not read yet.
    pub in_file: u64,
    /// Whether the stream is paused now.
    pub paused: bool,
}
