use std::slice;

use super::*;
use crate::ffi::step::{CW_BODY, CW_TOO_LONG};
use crate::ffi::{CW_ERROR_PANIC, CW_ERROR_STALE};

fn new_buffer() -> u64 {
    let mut handle = 0;
    // SAFETY: `out` may be written.
    assert_eq!(
        unsafe { cw_buffer_new(100, 0, &raw mut handle) },
        CW_NOTHING
    );
    handle
}

fn next(handle: u64, data: &[u8]) -> (i32, CwStep) {
    let mut step = CwStep::nothing(0);
    // SAFETY: `data` may be read, `out` may be written.
    let status =
        unsafe { cw_buffer_next(handle, data.as_ptr(), data.len() as u64, 0, &raw mut step) };
    (status, step)
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
    let mut step = CwStep::nothing(0);
    let data = b"{}\n".as_ptr();
    // SAFETY: each pointer is null or good for its length; lengths out of range must be refused before they are used.
    unsafe {
        assert_eq!(cw_buffer_new(1, 0, ptr::null_mut()), CW_ERROR_ARGUMENT);
        assert_eq!(
            cw_buffer_next(handle, ptr::null(), 1, 0, &raw mut step),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_buffer_next(handle, data, u64::MAX, 0, &raw mut step),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_buffer_next(handle, data, 3, 4, &raw mut step),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_buffer_next(handle, data, 3, 0, ptr::null_mut()),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_buffer_next(handle, ptr::null(), 0, 0, &raw mut step),
            CW_NOTHING
        );
        assert_eq!(cw_buffer_close(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
        assert_eq!(cw_buffer_stats(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
    }
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
}

#[test]
fn two_steps_are_those_that_two_calls_take() {
    let stream = b"{\"a\":1}\n{}\n[]\n{\"a\n\n{}\n{";
    for cut in 0..=stream.len() {
        for limit in [3, 100] {
            let mut steps = [Vec::new(), Vec::new()];
            for (two, steps) in steps.iter_mut().enumerate() {
                let mut handle = 0;
                // SAFETY: the pointers are to live memory of that length.
                assert_eq!(
                    unsafe { cw_buffer_new(limit, 0, &raw mut handle) },
                    CW_NOTHING
                );
                for chunk in [&stream[..cut], &stream[cut..]] {
                    let mut at = 0;
                    while at < chunk.len() as u64 {
                        // SAFETY: all zero is a valid value of numbers and pointers.
                        let mut out: CwSteps = unsafe { std::mem::zeroed() };
                        let (data, len) = (chunk.as_ptr(), chunk.len() as u64);
                        // SAFETY: the pointers are to live memory of that length.
                        let status = unsafe {
                            if two == 1 {
                                cw_buffer_next_two(handle, data, len, at, &raw mut out)
                            } else {
                                cw_buffer_next(handle, data, len, at, out.steps.as_mut_ptr())
                            }
                        };
                        assert!(status >= 0);
                        let [first, second] = out.steps;
                        if two == 1 && status % 8 == CW_CARRY {
                            // SAFETY: what is lent is so until the next call.
                            let lent = unsafe { bytes(first.lent, first.bytes) }.unwrap();
                            assert_eq!(&out.line[..lent.len()], lent);
                        }
                        let second = (status / 8 > 0).then(|| (status / 8 - 1, second));
                        for (status, step) in
                            [Some((status % 8, first)), second].into_iter().flatten()
                        {
                            at = step.next;
                            if status != CW_NOTHING {
                                // SAFETY: what is lent is so until the next call, also by the first of two steps.
                                let lent = (!step.lent.is_null()).then(|| unsafe {
                                    slice::from_raw_parts(
                                        step.lent,
                                        usize::try_from(step.bytes).unwrap(),
                                    )
                                    .to_vec()
                                });
                                steps.push((
                                    status,
                                    lent,
                                    step.bytes,
                                    step.next,
                                    step.offset,
                                    step.line_number,
                                    step.lines,
                                    step.defects,
                                    step.length,
                                ));
                            }
                        }
                    }
                }
                assert_eq!(cw_buffer_free(handle), CW_NOTHING);
            }
            assert_eq!(steps[0], steps[1], "cut at {cut}");
            assert!(!steps[0].is_empty());
        }
    }
}

#[test]
fn steps_cross_the_border_whole() {
    let handle = new_buffer();
    let (status, step) = next(handle, b"{}\n[]\n{\"a\"");
    assert_eq!(
        (status, step.bytes, step.next, step.lines, step.defects),
        (CW_BODY, 6, 10, 2, 1)
    );
    assert_eq!(
        (step.offset, step.line_number, step.lent),
        (0, 1, ptr::null())
    );
    let (status, step) = next(handle, b":\xff}\n{");
    assert_eq!(
        (status, step.bytes, step.next, step.lines, step.defects),
        (CW_CARRY, 8, 4, 1, 2)
    );
    assert_eq!((step.offset, step.line_number), (6, 3));
    // SAFETY: the step lends so many bytes until the next call.
    assert_eq!(
        unsafe { slice::from_raw_parts(step.lent, 8) },
        b"{\"a\":\xff}\n"
    );
    assert_eq!(next(handle, &[b'x'; 101]).0, CW_NOTHING);
    let (status, step) = next(handle, b"\n");
    assert_eq!(
        (
            status,
            step.bytes,
            step.length,
            step.offset,
            step.line_number
        ),
        (CW_TOO_LONG, 101, 101, 14, 4)
    );
    assert_eq!(cw_buffer_free(handle), CW_NOTHING);
}
