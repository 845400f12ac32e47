//! The C ABI of the library, which Python calls through cffi. Only this folder handles pointers that a caller passes in.
//!
//! All functions follow one pattern:
//!
//! ```c
//! uint64_t handle;
//! int32_t status = cw_buffer_new(max_line_bytes, 0, NULL, 0, &handle);
//! if (status < 0) { /* CW_ERROR_… */ }
//! ```
//!
//! A function returns a status: [`CW_NOTHING`] (0) or a positive number for success, a negative number for an error. It writes its result
//! through an out-pointer. A panic must not unwind into C, so the function catches it and returns [`CW_ERROR_PANIC`]. Buffers, drains and
//! scans are named by [handles](crate::ffi::handle), not pointers: using a freed handle is an error, not undefined behaviour. The caller
//! must only guarantee that the other pointers are valid; each function states this under *Safety*.
//!
//! * This file: the statuses, and the helpers that every function uses.
//! * [`buffer`]: line buffers.
//! * `python`: functions that Python calls directly, without cffi, and that make Python objects.
//! * [`lines`]: the kinds of the lines in a block.
//! * [`columns`]: reads transcripts into Arrow columns; `arrow`: exports Arrow structs; `imported`: reads Arrow structs from other
//!   libraries.
//! * [`drain`]: drains and their common budget; `shared`: the state that all drains of a process share.
//! * `forks`: what happens in a forked child.
//!
//! The build generates the C declarations from this folder with cbindgen.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;

use crate::fallible::NoMemory;
use crate::ffi::handle::Refused;
use crate::simd::Level;

/// cbindgen:ignore
mod arrow;
pub mod buffer;
pub mod columns;
pub mod drain;
mod forks;
/// cbindgen:ignore
#[forbid(unsafe_code)]
pub mod handle;
/// cbindgen:ignore
mod imported;
pub mod lines;
/// cbindgen:ignore
#[cfg(all(
    any(target_os = "linux", target_os = "macos"),
    target_pointer_width = "64"
))]
mod python;
#[cfg(target_os = "linux")]
mod shared;

/// The version of this ABI. Increment it with every change to a function, a struct or a constant in this folder. Python compares it when it
/// loads the library, because an editable install may leave an old library behind.
pub const CW_ABI_VERSION: u32 = 19;

/// The status of success.
pub const CW_NOTHING: i32 = 0;

/// The status of [`cw_python`] if `CPython`'s functions count references.
pub const CW_COUNTED_BY_FUNCTIONS: i32 = 1;

/// A pointer is null although it must not be, or a length or an option is out of range.
pub const CW_ERROR_ARGUMENT: i32 = -1;
/// The handle is 0 or freed, or was never returned to a caller.
pub const CW_ERROR_STALE: i32 = -2;
/// The handle belongs to the parent process: this process is a forked child.
pub const CW_ERROR_FORKED: i32 = -3;
/// Another thread is using the handle now.
pub const CW_ERROR_IN_USE: i32 = -4;
/// The call panicked, which is a bug in this library. The caller can only free the handle.
pub const CW_ERROR_PANIC: i32 = -5;
/// Memory ran out. Lines of the chunk may be lost.
pub const CW_ERROR_MEMORY: i32 = -6;
/// Too many handles are alive (see `handle::SLOTS`).
pub const CW_ERROR_FULL: i32 = -7;
/// The drains of the process have used up their budget, and this drain was made with `CW_OVERFLOW_ERROR`.
pub const CW_ERROR_BUDGET: i32 = -8;
/// Drains do not exist on this system, or the library does not know this interpreter.
pub const CW_ERROR_UNSUPPORTED: i32 = -9;
/// A system call failed. The status is this number minus the errno, such as -1002 for `ENOENT`.
pub const CW_ERROR_SYSTEM: i32 = -1000;

impl From<NoMemory> for i32 {
    fn from(NoMemory: NoMemory) -> Self {
        CW_ERROR_MEMORY
    }
}

impl From<Refused> for i32 {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Stale => CW_ERROR_STALE,
            Refused::Forked => CW_ERROR_FORKED,
            Refused::InUse => CW_ERROR_IN_USE,
            Refused::Broken => CW_ERROR_PANIC,
            Refused::Full => CW_ERROR_FULL,
        }
    }
}

/// Returns the [`CW_ABI_VERSION`] that the library was built with.
#[no_mangle]
pub extern "C" fn cw_abi_version() -> u32 {
    CW_ABI_VERSION
}

/// Adds the functions that Python calls without cffi to the dict at the address `dict` (see `python`). If `by_functions` is not 0, `CPython`'s
/// functions count references on every interpreter. Returns [`CW_COUNTED_BY_FUNCTIONS`] if they do, and [`CW_NOTHING`] if the library counts
/// them itself, which is faster. Returns [`CW_ERROR_UNSUPPORTED`] if the interpreter is not a `CPython` version that the library knows, or
/// if memory runs out. Python must not call the other functions if `claim()` returns False.
///
/// # Safety
///
/// `dict` must be the address of a live dict of this process's interpreter. This thread must not hold the interpreter's lock.
#[no_mangle]
pub unsafe extern "C" fn cw_python(dict: u64, by_functions: u32) -> i32 {
    guard(|| {
        #[cfg(all(
            any(target_os = "linux", target_os = "macos"),
            target_pointer_width = "64"
        ))]
        // SAFETY: the caller guarantees that the dict is alive and that this thread does not hold the lock.
        let counting = unsafe { python::install(dict, by_functions != 0) };
        #[cfg(not(all(
            any(target_os = "linux", target_os = "macos"),
            target_pointer_width = "64"
        )))]
        let counting = (dict == 0).then_some(by_functions != 0);
        match counting {
            Some(true) => Ok(CW_COUNTED_BY_FUNCTIONS),
            Some(false) => Ok(CW_NOTHING),
            None => Err(CW_ERROR_UNSUPPORTED),
        }
    })
}

/// Runs the body of a C function, and turns a panic into [`CW_ERROR_PANIC`]. A panic may leave a buffer in any state. This is harmless,
/// because the buffer's handle is refused from then on ([`Refused::Broken`]).
fn guard(body: impl FnOnce() -> Result<i32, i32>) -> i32 {
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or(Err(CW_ERROR_PANIC))
        .unwrap_or_else(|error| error)
}

/// Returns the `len` bytes at `data` as a slice.
///
/// # Safety
///
/// `data` must be null with `len` 0, or point to `len` readable bytes that no code writes during `'a`.
unsafe fn bytes<'a>(data: *const u8, len: u64) -> Result<&'a [u8], i32> {
    if len == 0 {
        return Ok(&[]);
    }
    let len = length(data, len)?;
    // SAFETY: `length` checked that `data` is not null and `len` fits `isize`; bytes need no alignment. The caller guarantees that
    // they are readable and unchanged during `'a`.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

/// Returns the `len` bytes at `data` as a mutable slice.
///
/// # Safety
///
/// `data` must be null with `len` 0, or point to `len` writable bytes that no other code reads or writes during `'a`.
unsafe fn bytes_mut<'a>(data: *mut u8, len: u64) -> Result<&'a mut [u8], i32> {
    if len == 0 {
        return Ok(&mut []);
    }
    let len = length(data, len)?;
    // SAFETY: as in `bytes`; the caller guarantees exclusive access during `'a`.
    Ok(unsafe { slice::from_raw_parts_mut(data, len) })
}

/// Returns [`Level::Plain`], which uses no vector instructions, if `is_plain` is true; otherwise [`Level::Fast`].
fn level(is_plain: bool) -> Level {
    if is_plain {
        Level::Plain
    } else {
        Level::Fast
    }
}

/// Returns `len` as a `usize`; an error if `data` is null or `len` is too long for a slice.
fn length(data: *const u8, len: u64) -> Result<usize, i32> {
    let len = isize::try_from(len).map_err(|_| CW_ERROR_ARGUMENT)?;
    if data.is_null() {
        return Err(CW_ERROR_ARGUMENT);
    }
    Ok(len.unsigned_abs())
}

/// Returns the out-pointer `out` as a place to write a result to; an error if it is null.
///
/// # Safety
///
/// `out` must be null, or aligned, writable, and not used by other code during `'a`.
unsafe fn place<'a, T>(out: *mut T) -> Result<&'a mut MaybeUninit<T>, i32> {
    // SAFETY: the caller guarantees an aligned, writable place. A `MaybeUninit` need not be initialised.
    unsafe { out.cast::<MaybeUninit<T>>().as_mut() }.ok_or(CW_ERROR_ARGUMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        assert_eq!(guard(|| panic!("provoked by a test")), CW_ERROR_PANIC);
    }

    #[test]
    fn without_an_interpreter_there_are_no_functions_for_python() {
        // SAFETY: without an interpreter, the address is not used.
        assert_eq!(unsafe { cw_python(8, 0) }, CW_ERROR_UNSUPPORTED);
    }
}
