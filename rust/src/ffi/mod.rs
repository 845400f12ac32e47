//! The C ABI: the only folder that deals in pointers of others.
//!
//! Every function returns a status, [`CW_NOTHING`] or above for success and below 0 for an error, and writes its result
//! through an out-pointer. A panic is caught and becomes [`CW_ERROR_PANIC`]: it must not unwind into C. Buffers and
//! drains are named by [handles](crate::ffi::handle), so a wrong one is a status, too. What is left for the caller to promise is
//! about the pointers alone; each function says it under *Safety*.
//!
//! * This file: the statuses, and what every entry point is wrapped in.
//! * [`step`]: the steps through a chunk, as C sees them; [`buffer`]: line buffers.
//! * `python`: functions that Python calls without cffi, and the objects that they make.
//! * [`lines`]: questions about a block of lines, without a buffer.
//! * [`columns`]: scans of files as columns; `arrow`: the structs that these are handed over in; `imported`: those of others.
//! * [`drain`]: drains, and the budget that they share.
//! * `forks`: what a forked child must learn, and forget; `shared`: what the drains of a process share.
//!
//! The declarations that the other side reads are generated from this folder.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;

use crate::columns::batch::NoMemory;
use crate::ffi::handle::Refused;
use crate::lines::frame;

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
pub mod step;

/// Changes whenever a function, a struct or a constant here does: editable installs leave old libraries behind.
pub const CW_ABI_VERSION: u32 = 15;

/// Success. For a step: no line was completed.
pub const CW_NOTHING: i32 = 0;

/// A pointer is null where it must not be, or a length or option is out of range.
pub const CW_ERROR_ARGUMENT: i32 = -1;
/// The handle is null, freed, or was never given out.
pub const CW_ERROR_STALE: i32 = -2;
/// The handle was made by another process, of which this one is a forked child.
pub const CW_ERROR_FORKED: i32 = -3;
/// Another thread is using the handle now.
pub const CW_ERROR_IN_USE: i32 = -4;
/// A panic: a bug in this library. The handle can only be freed.
pub const CW_ERROR_PANIC: i32 = -5;
/// Memory cannot be had. Nothing was consumed; with a filter, lines may be lost.
pub const CW_ERROR_MEMORY: i32 = -6;
/// Too many handles are alive.
pub const CW_ERROR_FULL: i32 = -7;
/// More bytes are queued than the process may hold, and the drain was told to say so.
pub const CW_ERROR_BUDGET: i32 = -8;
/// This system has no drains.
pub const CW_ERROR_UNSUPPORTED: i32 = -9;
/// An error of the system: this minus its number.
pub const CW_ERROR_SYSTEM: i32 = -1000;

/// A defect: a line does not begin with `{` or does not end with `}`, or is blank.
pub const CW_DEFECT_SHAPE: u32 = 1;
/// A defect: not valid UTF-8.
pub const CW_DEFECT_UTF8: u32 = 2;

const _: () = assert!(CW_DEFECT_SHAPE == frame::SHAPE && CW_DEFECT_UTF8 == frame::UTF8);

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

/// The ABI number that the library was built with, see [`CW_ABI_VERSION`].
#[no_mangle]
pub extern "C" fn cw_abi_version() -> u32 {
    CW_ABI_VERSION
}

/// Puts functions that Python calls without cffi into the dict at this address: see `python`. [`CW_ERROR_UNSUPPORTED`] where there
/// is no `CPython` that is known.
///
/// # Safety
///
/// `dict` is the address of a dict that is alive, of the interpreter of this process, whose lock this thread does not hold.
#[no_mangle]
pub unsafe extern "C" fn cw_python(dict: u64) -> i32 {
    guard(|| {
        #[cfg(all(
            any(target_os = "linux", target_os = "macos"),
            target_pointer_width = "64"
        ))]
        // SAFETY: the caller promises it.
        let is_known = unsafe { python::install(dict) };
        #[cfg(not(all(
            any(target_os = "linux", target_os = "macos"),
            target_pointer_width = "64"
        )))]
        let is_known = dict == 0;
        if is_known {
            Ok(CW_NOTHING)
        } else {
            Err(CW_ERROR_UNSUPPORTED)
        }
    })
}

/// Runs the body of an entry point. A panic in it becomes a status; a buffer that was in use is refused from then on
/// ([`Refused::Broken`]), so it does not matter in what state the panic left it.
fn guard(body: impl FnOnce() -> Result<i32, i32>) -> i32 {
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or(Err(CW_ERROR_PANIC))
        .unwrap_or_else(|error| error)
}

/// # Safety
///
/// `data` is null with `len` 0, or `len` bytes may be read there, and nobody writes to them as long as `'a` lasts.
unsafe fn bytes<'a>(data: *const u8, len: u64) -> Result<&'a [u8], i32> {
    if len == 0 {
        return Ok(&[]);
    }
    let len = length(data, len)?;
    // SAFETY: not null, not longer than the address space, and the caller promises the rest. A byte has no alignment.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

/// # Safety
///
/// As of [`bytes`], but they may be written, and nobody reads them either.
unsafe fn bytes_mut<'a>(data: *mut u8, len: u64) -> Result<&'a mut [u8], i32> {
    if len == 0 {
        return Ok(&mut []);
    }
    let len = length(data, len)?;
    // SAFETY: as in `bytes`.
    Ok(unsafe { slice::from_raw_parts_mut(data, len) })
}

/// The length of a slice at `data`, which is not null and fits into the address space.
fn length(data: *const u8, len: u64) -> Result<usize, i32> {
    let len = isize::try_from(len).map_err(|_| CW_ERROR_ARGUMENT)?;
    if data.is_null() {
        return Err(CW_ERROR_ARGUMENT);
    }
    Ok(len.unsigned_abs())
}

/// The place for a result.
///
/// # Safety
///
/// `out` is null, or aligned and may be written as long as `'a` lasts, and nobody reads there.
unsafe fn place<'a, T>(out: *mut T) -> Result<&'a mut MaybeUninit<T>, i32> {
    // SAFETY: the caller promises it; what is there need not be a value.
    unsafe { out.cast::<MaybeUninit<T>>().as_mut() }.ok_or(CW_ERROR_ARGUMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        assert_eq!(guard(|| panic!("provoked by a test")), CW_ERROR_PANIC);
    }
}
