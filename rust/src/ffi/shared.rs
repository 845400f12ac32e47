//! What the drains of this process share: made when it is needed, and given up in a forked child.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use crate::drain::{Shared, DEFAULT_LIMIT};

/// Null until it is needed.
static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

/// The budget of the next [`SHARED`]: a forked child keeps that of its parent.
static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_LIMIT);

/// Made when first called, by whichever thread. It is never freed while this process can use it.
pub(super) fn shared() -> &'static Shared {
    let mut shared = SHARED.load(Acquire);
    if shared.is_null() {
        let new = Box::into_raw(Box::new(Shared::new(LIMIT.load(Acquire), spawn)));
        shared = match SHARED.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: it is from `into_raw`, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: it is from `into_raw`, and never freed.
    unsafe { &*shared }
}

/// Leaves what is shared to the parent, in a forked child. Atomics are all that it touches: it may be called where only
/// async-signal-safe functions may.
pub(super) fn leave_to_parent() {
    let parents = SHARED.swap(ptr::null_mut(), AcqRel);
    // SAFETY: null, or from `into_raw` and never freed. Only an atomic of it is read: a lock of it may be held for ever.
    if let Some(parents) = unsafe { parents.as_ref() } {
        LIMIT.store(parents.limit(), Release);
    }
}

/// Starts a thread that takes no signals: a signal that interrupts the rescuer would not interrupt what Python's
/// main thread waits in. A thread inherits the mask of the one that starts it, so it is never without.
fn spawn(body: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigfillset` fills in the first set, and `pthread_sigmask` the second one unless it fails.
    let blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let spawned = std::thread::Builder::new()
        .name("cw-drain".into())
        .stack_size(256 * 1024)
        .spawn(body);
    if blocked {
        // SAFETY: it was filled in.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    spawned.map(drop)
}
