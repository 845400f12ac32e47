use std::ptr;

use super::*;
use crate::ffi::{CW_ERROR_FORKED, CW_ERROR_IN_USE, CW_ERROR_PANIC, CW_ERROR_STALE};

fn new_buffer() -> u64 {
    let mut handle = 0;
    // SAFETY: the list of names is null with length 0, and `handle` is writable.
    assert_eq!(
        unsafe { cw_buffer_new(100, 0, ptr::null(), 0, &raw mut handle) },
        CW_NOTHING
    );
    handle
}

/// The blocks of a call: for each, the lines, their offset and number, and the length of a line over the limit.
type Found = Vec<(Vec<u8>, u64, u64, i64)>;

/// Returns the status of `cw_buffer_take`, and copies of the blocks.
fn take(handle: u64, data: &[u8]) -> (i32, Found) {
    let mut out = CwBlocks {
        blocks: ptr::null(),
    };
    // SAFETY: `data` is a borrowed slice, and `out` is a local struct.
    let count = unsafe { cw_buffer_take(handle, data.as_ptr(), data.len() as u64, &raw mut out) };
    let mut found = Vec::new();
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: `count` blocks are lent until the next call with the handle.
        let block = unsafe { out.blocks.add(index).read() };
        let bytes = if block.lent == 0 {
            let start = usize::try_from(block.start).unwrap();
            data[start..start + usize::try_from(block.bytes).unwrap()].to_vec()
        } else {
            let lent = usize::try_from(block.lent).unwrap() as *const u8;
            // SAFETY: as above.
            unsafe { bytes(lent, block.bytes) }.unwrap().to_vec()
        };
        found.push((bytes, block.offset, block.line_number, block.length));
    }
    (count, found)
}

#[test]
fn after_a_panic_a_buffer_can_only_be_freed() {
    let handle = new_buffer();
    assert_eq!(
        guard(|| BUFFERS.with(handle, |_| panic!("provoked by a test"))?),
        CW_ERROR_PANIC
    );
    assert_eq!(take(handle, b"{}\n").0, CW_ERROR_PANIC);
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
    assert_eq!(take(handle, b"{}\n").0, CW_ERROR_STALE);
}

#[test]
fn a_buffer_in_use_is_refused_and_left_alone() {
    let handle = new_buffer();
    let during = BUFFERS.with(handle, |_| {
        (take(handle, b"{}\n").0, cw_buffer_free(handle))
    });
    assert_eq!(during, Ok((CW_ERROR_IN_USE, CW_ERROR_IN_USE)));
    assert_eq!(take(handle, b"{}\n").0, 1);
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
}

/// A thread of the parent may hold the lock of a buffer at the moment of the fork. Here the thread that forks holds it.
#[test]
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[cfg_attr(miri, ignore)] // Miri has no fork.
fn a_child_forked_during_a_call_refuses_the_buffer_and_makes_its_own() {
    let handle = new_buffer();
    let status = BUFFERS.with(handle, |_| {
        // SAFETY: the child calls only functions of this module and `_exit`. It may allocate, because the C library
        // unlocks the allocator in a forked child.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // A panic must not return to the test harness, which would then also run in the child.
            let found = std::panic::catch_unwind(|| {
                let own = new_buffer();
                (
                    take(handle, b"{}\n").0,
                    cw_buffer_free(handle),
                    take(own, b"{}\n").0,
                )
            });
            let right = matches!(found, Ok((CW_ERROR_FORKED, CW_ERROR_FORKED, 1)));
            // SAFETY: `_exit` terminates the child and has no preconditions.
            unsafe { libc::_exit(i32::from(!right)) }
        }
        let mut status = -1;
        // SAFETY: `status` is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        status
    });
    assert_eq!(status, Ok(0));
    assert_eq!(take(handle, b"{}\n").0, 1);
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
}

#[test]
fn wrong_pointers_and_ranges_return_a_status() {
    let handle = new_buffer();
    let mut blocks = CwBlocks {
        blocks: ptr::null(),
    };
    let mut other = 0;
    let data = b"{}\n".as_ptr();
    // SAFETY: each pointer is null or valid. Lengths that are too large must be refused before any byte is read.
    unsafe {
        assert_eq!(
            cw_buffer_new(1, 0, ptr::null(), 0, ptr::null_mut()),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_buffer_new(1, CW_FILTER_ONLY, ptr::null(), 1, &raw mut other),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_buffer_new(1, CW_FILTER_ONLY, b"\xff".as_ptr(), 1, &raw mut other),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_buffer_take(handle, ptr::null(), 1, &raw mut blocks),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_buffer_take(handle, data, u64::MAX, &raw mut blocks),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_buffer_take(handle, data, 3, ptr::null_mut()),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(cw_buffer_take(handle, ptr::null(), 0, &raw mut blocks), 0);
        assert_eq!(cw_buffer_close(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
        assert_eq!(cw_buffer_stats(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
    }
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
}

#[test]
fn blocks_are_lent_complete() {
    let handle = new_buffer();
    let lines = |data: &[u8], offset, number| (data.to_vec(), offset, number, -1);
    let (count, found) = take(handle, b"{}\n[]\n{\"a\"");
    assert_eq!((count, found), (1, vec![lines(b"{}\n[]\n", 0, 1)]));
    let long = [&[b'x'; 101][..], b"\n"].concat();
    let data = [&b":1}\n{}\n"[..], &long, b"[]\n\n{"].concat();
    let expected = vec![
        lines(b"{\"a\":1}\n", 6, 3),
        lines(b"{}\n", 14, 4),
        (long[..101].to_vec(), 17, 5, 101),
        lines(b"[]\n\n", 119, 6),
    ];
    assert_eq!(take(handle, &data), (4, expected));
    assert_eq!(take(handle, &[b'x'; 5000]), (0, Vec::new()));
    let head = ([&b"{"[..], &[b'x'; HEAD_BYTES - 1]].concat(), 123, 8, 5001);
    assert_eq!(take(handle, b"\n"), (1, vec![head]));
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
}

#[test]
fn a_block_of_several_lines_is_at_most_64_kib() {
    let handle = new_buffer();
    let line = [&[b'x'; 99][..], b"\n"].concat();
    let data = line.repeat(2000);
    let (count, found) = take(handle, &data);
    assert_eq!(count, 4);
    let (mut offset, mut number) = (0, 1);
    for (bytes, from, first, length) in &found {
        assert!(bytes.len() <= BLOCK_BYTES && bytes.len() % 100 == 0);
        assert_eq!((*from, *first, *length), (offset, number, -1));
        offset += bytes.len() as u64;
        number += bytes.len() as u64 / 100;
    }
    assert_eq!(offset, data.len() as u64);
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
}
