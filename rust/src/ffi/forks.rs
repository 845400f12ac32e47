//! What a forked child does before it uses a handle: it learns its pid, and forgets the drains of its parent.

#[cfg(any(target_os = "linux", target_os = "macos"))]
use crate::ffi::handle::{pid_is_remembered, remember_pid};

/// Lets every forked child learn its pid, so that handles need not ask for it, and forget the drains of its parent.
/// Returns false if there is no memory for that. Threads that get here together register twice, which is harmless; a
/// lock would be left locked in a child if another thread forked meanwhile.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) fn watch_forks() -> bool {
    extern "C" fn in_child() {
        remember_pid();
        #[cfg(target_os = "linux")]
        super::shared::leave_to_parent();
    }
    if !pid_is_remembered() {
        // SAFETY: `in_child` lives as long as the process, as this library is never unloaded. In the child of a process
        // with threads only async-signal-safe functions may be called: getpid is one, and atomics are no calls at all.
        if unsafe { libc::pthread_atfork(None, None, Some(in_child)) } != 0 {
            return false;
        }
        remember_pid();
    }
    true
}

/// Elsewhere handles ask for the pid each time.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) fn watch_forks() -> bool {
    true
}
