//! Reads pipes while their reader is busy, so that they do not fill up.
//!
//! The Claude Code CLI exits 2 seconds after it finishes, even if its pipe is full. Everything that it has not written by then is lost. So
//! somebody must read the pipe even while the host is busy or holds Python's lock.
//!
//! The basic idea is simple: the host reads its pipe itself, and one thread, the *rescuer*, reads the pipes that their readers
//! have left unread for 10 ms:
//!
//! ```text
//!  pipe ──────────────────────────► reader      the reader keeps up: no thread, no copy
//!
//!  pipe ──► rescuer ──► queue ────► reader      the reader was away for 10 ms
//!                  └──► file ─────► reader      the budget for queues is used up (`Mode::Spill`)
//! ```
//!
//! *The reader comes first.* A [`Drain`]'s owner reads the descriptor directly. Real traffic consists of single small events, and passing
//! each event through a thread would cost a wake-up.
//!
//! *The rescuer.* One thread per process waits for all descriptors. When a descriptor becomes readable, the rescuer sleeps for [`TICK`]. If
//! the reader has not read by then, the rescuer reads the bytes into the drain's queue, and wakes the reader. As long as bytes are queued,
//! the reader reads the queue, and only the rescuer reads the descriptor. If a reader does read, but finds more data every time for as long
//! as [`PATIENCE`], it is slower than the writer. The rescuer helps it in the same way.
//!
//! *Order.* Reader and rescuer read under one lock per stream. The reader first gets the bytes in memory, then those in the file, then
//! those in the descriptor: the order in which they were written.
//!
//! *Waiting.* The reader waits for the descriptor [`Drain::fileno`], an epoll instance with two members: the pipe, and an eventfd that is
//! always readable. The eventfd is switched off, and switched on while the reader has something to read that is not in the pipe. Switching
//! is `EPOLL_CTL_MOD` under the stream's lock. Switching does not allocate and cannot fail, so no wake-up is lost.
//!
//! *The budget.* All queues of a [`Shared`] together hold a limited number of bytes. [`Mode`] says what happens above the limit.
//!
//! *Memory.* If the rescuer cannot allocate memory, it leaves the bytes in their pipe and tries again later. It never aborts the host.
//!
//! *Forks.* A forked child shares epoll instances and open files with its parent, so it must not use them. It leaks the parent's [`Shared`]
//! and creates its own. The child also keeps the parent's descriptors open, so closing a descriptor in the parent does not remove it from
//! an epoll instance. This module therefore removes each descriptor before it closes it.
//!
//! This module exists only on Linux, which has epoll. It does not know about lines or Python.
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

/// The maximum number of bytes in one read by the rescuer, and the size of a chunk in a queue. A Linux pipe has this size.
pub const CHUNK: usize = 64 * 1024;

/// How long a reader may leave a readable descriptor unread before the rescuer reads it, and the rescuer's interval.
pub const TICK: Duration = Duration::from_millis(10);

/// The rescuer's interval while it reads at least [`FAST`] bytes each time. With a pipe of 64 KiB, a writer then gets at most 64 MB/s.
pub const FAST_TICK: Duration = Duration::from_millis(1);

/// The rescuer uses [`FAST_TICK`] if it has just read at least this many bytes from one stream. The smallest pipe holds one page (4096
/// bytes). When half of it is full, its writer may already be waiting, because the kernel does not split a write of up to a page.
pub const FAST: usize = 2048;

/// If a descriptor is readable nearly every time that the rescuer checks it, for this long, the rescuer helps the reader even though the
/// reader does read.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// The default budget of a process, in bytes.
pub const DEFAULT_LIMIT: usize = 256 * 1024 * 1024;

/// What a drain does with bytes that exceed the budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Stop reading until the process's queues use at most half of the budget. Until then the writer must wait.
    Pause,
    /// Stop reading, as [`Mode::Pause`] does, and return [`Got::Budget`] from the next [`Drain::read`].
    Error,
    /// Write the bytes to an unlinked file of at most this size, in this directory. When the file is full, stop reading until the reader
    /// has read the whole file.
    Spill(u64, std::path::PathBuf),
    /// Keep only the last bytes, at most this many, for [`Drain::tail`]. The drain then has no queue. These bytes do not count against the
    /// budget.
    KeepLast(usize),
}

/// The result of [`Drain::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// This many bytes were read, at least 1.
    Bytes(usize),
    /// No bytes are available now.
    Nothing,
    /// The stream has ended. Every later read returns this as well.
    End,
    /// Reading failed with this errno. Every later read returns this as well.
    Failed(i32),
    /// The budget was exceeded. Returned once per pause.
    Budget,
}

/// Events that [`Drain::read`] reports besides its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Whether the stream is or was paused.
    pub paused: bool,
    /// Whether the descriptor of [`Drain::watch`] has become readable.
    pub watched: bool,
}

/// The counts of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of bytes returned to the reader.
    pub read: u64,
    /// The number of bytes that the rescuer read from the descriptor.
    pub rescued: u64,
    /// How often the rescuer began to fill an empty queue.
    pub rescues: u64,
    /// How often the stream was paused because the budget or the memory was used up.
    pub pauses: u64,
    /// The number of bytes written to the file.
    pub spilled: u64,
    /// How often creating or writing the file failed.
    pub spill_errors: u64,
    /// The number of bytes thrown away after [`Drain::discard`] or by [`Mode::KeepLast`].
    pub discarded: u64,
    /// The number of bytes in memory now, including those kept for [`Drain::tail`].
    pub queued: u64,
    /// The number of unread bytes in the file now.
    pub in_file: u64,
    /// Whether the stream is paused now.
    pub paused: bool,
}
