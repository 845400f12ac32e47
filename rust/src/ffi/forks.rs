//! Prepares a forked child: the child refuses every handle of the parent, and forgets the parent's drains.

#[cfg(any(target_os = "linux", target_os = "macos"))]
use crate::ffi::handle::{pid_is_remembered, remember_pid};

/// Registers a function that runs in every forked child. The function stores the child's pid, so that using a handle does not need a system
/// call, and forgets the parent's drains. Returns false if memory for the registration runs out.
///
/// Two threads that call this at the same time register the function twice, which is harmless. A lock would prevent this, but it would stay
/// locked in a child if another thread forked at that moment.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) fn watch_forks() -> bool {
    extern "C" fn in_child() {
        remember_pid();
        #[cfg(target_os = "linux")]
        super::shared::leave_to_parent();
    }
    if !pid_is_remembered() {
        // SAFETY: this library is never unloaded, so `in_child` is callable until the process exits. In the child of a process with
        // threads, it may call only async-signal-safe functions: it calls `getpid`, which is async-signal-safe, and uses atomics.
        if unsafe { libc::pthread_atfork(None, None, Some(in_child)) } != 0 {
            return false;
        }
        remember_pid();
    }
    true
}

/// Does nothing on other systems: there, every use of a handle asks the system for the pid.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) fn watch_forks() -> bool {
    true
}
