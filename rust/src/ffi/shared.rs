//! The one [`Shared`] of this process: the budget and the rescuer thread of all its drains.
//!
//! The first call that needs it creates it. A forked child leaks its parent's [`Shared`] and creates its own, because a thread of the
//! parent may have held one of the locks at the moment of the fork.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use super::forks::watch_forks;
use super::CW_ERROR_MEMORY;
use crate::drain::{Shared, DEFAULT_LIMIT};

/// The [`Shared`] of this process; null before it is created, and again in a forked child.
static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

/// The budget in bytes for the next [`Shared`]. A forked child inherits its parent's budget through this value.
static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_LIMIT);

/// Returns the [`Shared`] of this process. The first call creates it. Any thread may call this. Returns [`CW_ERROR_MEMORY`] if memory for
/// [`watch_forks`] runs out: without it, a forked child would use its parent's [`Shared`].
pub(super) fn shared() -> Result<&'static Shared, i32> {
    if !watch_forks() {
        return Err(CW_ERROR_MEMORY);
    }
    let mut shared = SHARED.load(Acquire);
    if shared.is_null() {
        let new = Box::into_raw(Box::new(Shared::new(LIMIT.load(Acquire), spawn)));
        shared = match SHARED.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: `new` is from `into_raw` above. Another thread won the exchange, so no other code has seen `new`.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: a pointer in `SHARED` is from `into_raw`, and no code frees it.
    Ok(unsafe { &*shared })
}

/// Forgets the parent's [`Shared`] in a forked child, but keeps its budget. Uses only atomics, because in a forked child of a process with
/// threads, only async-signal-safe functions may be called.
pub(super) fn leave_to_parent() {
    let parents = SHARED.swap(ptr::null_mut(), AcqRel);
    // SAFETY: the pointer is null, or from `into_raw` and never freed. `limit` reads an atomic and takes no lock: a lock
    // that a thread of the parent held stays locked in the child.
    if let Some(parents) = unsafe { parents.as_ref() } {
        LIMIT.store(parents.limit(), Release);
    }
}

/// Starts the rescuer thread with all signals blocked. The system may deliver a signal to any thread that does not block it; if the rescuer
/// received a signal, the signal would not interrupt a wait in Python's main thread.
///
/// A thread inherits its mask from the thread that starts it, so this function blocks the signals before it starts the thread, and then
/// restores its own mask.
fn spawn(body: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both pointers are to local sets. `sigfillset` initialises `all`; `pthread_sigmask` initialises `before` if it
    // returns 0.
    let blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let spawned = std::thread::Builder::new()
        .name("cw-drain".into())
        .stack_size(256 * 1024)
        .spawn(body);
    if blocked {
        // SAFETY: `blocked` says that `pthread_sigmask` initialised `before`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    spawned.map(drop)
}
