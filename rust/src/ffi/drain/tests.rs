use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;

use super::*;
use crate::ffi::CW_ERROR_IN_USE;

#[test]
#[cfg_attr(miri, ignore)] // Miri has no epoll for sockets.
fn a_drain_in_use_is_refused_and_left_alone() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let mut handle = 0;
    // SAFETY: the directory is null with length 0, and `handle` is writable.
    let made = unsafe {
        cw_drain_new(
            ours.as_raw_fd(),
            CW_OVERFLOW_PAUSE,
            0,
            ptr::null(),
            0,
            &raw mut handle,
        )
    };
    assert_eq!(made, CW_NOTHING);
    let during = DRAINS.with(handle, |_| {
        (cw_drain_discard(handle), cw_drain_free(handle))
    });
    assert!(matches!(during, Ok((CW_ERROR_IN_USE, CW_ERROR_IN_USE))));
    assert_eq!(cw_drain_discard(handle), CW_NOTHING);
    assert_eq!(cw_drain_free(handle), CW_NOTHING);
}
