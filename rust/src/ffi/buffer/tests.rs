use super::*;
use crate::ffi::step::{CW_BODY, CW_CARRY, CW_TOO_LONG};
use crate::ffi::{CW_ERROR_PANIC, CW_ERROR_STALE};

fn new_buffer() -> u64 {
    let mut handle = 0;
    // SAFETY: the list of names is null with length 0, and `handle` is writable.
    assert_eq!(
        unsafe { cw_buffer_new(100, 0, ptr::null(), 0, &raw mut handle) },
        CW_NOTHING
    );
    handle
}

fn no_steps() -> CwSteps {
    // SAFETY: all fields are numbers and raw pointers, for which zeros are a valid value.
    unsafe { std::mem::zeroed() }
}

/// Returns the status of `cw_buffer_next`, and the first step.
fn next(handle: u64, data: &[u8]) -> (i32, CwStep) {
    let mut out = no_steps();
    // SAFETY: `data` is a borrowed slice, and `out` is a local struct.
    let status = unsafe { cw_buffer_next(handle, data.as_ptr(), data.len() as u64, &raw mut out) };
    (status, out.steps[0])
}

#[test]
fn after_a_panic_a_buffer_can_only_be_freed() {
    let handle = new_buffer();
    assert_eq!(
        guard(|| BUFFERS.with(handle, |_| panic!("provoked by a test"))?),
        CW_ERROR_PANIC
    );
    assert_eq!(next(handle, b"{}\n").0, CW_ERROR_PANIC);
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
    assert_eq!(next(handle, b"{}\n").0, CW_ERROR_STALE);
}

#[test]
fn wrong_pointers_and_ranges_are_a_status() {
    let handle = new_buffer();
    let mut step = no_steps();
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
            cw_buffer_next(handle, ptr::null(), 1, &raw mut step),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_buffer_next(handle, data, u64::MAX, &raw mut step),
            CW_ERROR_ARGUMENT
        );
        for function in [cw_buffer_next, cw_buffer_drop] {
            step.at = 4;
            assert_eq!(function(handle, data, 3, &raw mut step), CW_ERROR_ARGUMENT);
            assert_eq!(
                function(handle, data, 3, ptr::null_mut()),
                CW_ERROR_ARGUMENT
            );
        }
        step.at = 0;
        assert_eq!(cw_buffer_next(handle, ptr::null(), 0, &raw mut step), 1);
        assert_eq!(cw_buffer_close(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
        assert_eq!(cw_buffer_stats(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
    }
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
}

#[test]
fn two_steps_are_those_that_two_calls_of_the_buffer_take() {
    let stream = b"{\"a\":1}\n{}\n[]\n{\"a\n\n{}\n{";
    for cut in 0..=stream.len() {
        for limit in [3, 100] {
            let mut handle = 0;
            // SAFETY: `handle` is writable, and the list of names is null with length 0.
            assert_eq!(
                unsafe { cw_buffer_new(limit, 0, ptr::null(), 0, &raw mut handle) },
                CW_NOTHING
            );
            let mut buffer = Buffer::new(usize::try_from(limit).unwrap(), Bom::Skip);
            let mut position = Position::default();
            for chunk in [&stream[..cut], &stream[cut..]] {
                let mut at = 0;
                let mut out = no_steps();
                while at < chunk.len() {
                    let (data, len) = (chunk.as_ptr(), chunk.len() as u64);
                    // SAFETY: `data` points to `len` bytes of `stream`, and `out` is a local struct.
                    let count = unsafe { cw_buffer_next(handle, data, len, &raw mut out) };
                    for step in &out.steps[..usize::try_from(count).unwrap()] {
                        // SAFETY: both steps of a call lend their bytes until the next call with the handle.
                        let lent = unsafe { lent(step) };
                        let (consumed, expected) = buffer.next(&chunk[at..]).unwrap();
                        at += consumed;
                        let place = position.pass(consumed, &expected);
                        let expected = CwStep::new(expected, at, place);
                        // SAFETY: `buffer` has not been used since it returned this step.
                        assert_eq!(lent, unsafe { self::lent(&expected) });
                        let numbers = |it: &CwStep| {
                            (
                                (it.kind, it.bytes, it.next, it.lines, it.defects),
                                (it.length, it.offset, it.line_number),
                            )
                        };
                        assert_eq!(numbers(step), numbers(&expected), "cut at {cut}");
                        if step.kind == i64::from(CW_CARRY) {
                            assert_eq!(out.line[..lent.len()], lent);
                        }
                    }
                }
            }
            assert_eq!(cw_buffer_free(handle), CW_NOTHING);
        }
    }
}

/// Returns a copy of the bytes that a step lends.
///
/// # Safety
///
/// The buffer has not been used since it returned the step.
unsafe fn lent(step: &CwStep) -> Vec<u8> {
    if step.lent.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller guarantees that the bytes are still lent.
    unsafe { bytes(step.lent, step.bytes) }.unwrap().to_vec()
}

#[test]
fn steps_cross_the_border_whole() {
    let handle = new_buffer();
    let (status, step) = next(handle, b"{}\n[]\n{\"a\"");
    assert_eq!((status, step.kind), (1, CW_BODY.into()));
    assert_eq!(
        (step.bytes, step.next, step.lines, step.defects),
        (6, 10, 2, 1)
    );
    assert!(step.lent.is_null());
    let (status, step) = next(handle, b":\xff}\n{");
    assert_eq!((status, step.kind), (2, CW_CARRY.into())); // The second step copies `{` into the buffer.
    assert_eq!(
        (step.bytes, step.next, step.lines, step.defects),
        (8, 4, 1, 2)
    );
    // SAFETY: the handle has not been used since it returned the step.
    assert_eq!(unsafe { lent(&step) }, b"{\"a\":\xff}\n");
    assert_eq!(next(handle, &[b'x'; 100]).1.kind, i64::from(CW_NOTHING));
    let (status, step) = next(handle, b"\n");
    assert_eq!((status, step.kind), (1, CW_TOO_LONG.into()));
    assert_eq!((step.bytes, step.length), (101, 101));
    assert_eq!((step.offset, step.line_number), (14, 4));
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
}
