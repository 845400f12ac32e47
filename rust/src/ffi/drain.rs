//! The C functions of drains (`cw_drain_…`) and of the byte budget that the drains of a process share (`cw_budget…`).
//!
//! Drains exist only on Linux. On other systems every function returns `CW_ERROR_UNSUPPORTED`.
#![cfg_attr(not(target_os = "linux"), allow(unused_variables))]

#[cfg(not(target_os = "linux"))]
use super::CW_ERROR_UNSUPPORTED;
#[cfg(target_os = "linux")]
use super::{
    bytes, bytes_mut, guard, place, shared::shared, CW_ERROR_ARGUMENT, CW_ERROR_BUDGET,
    CW_ERROR_PANIC, CW_ERROR_SYSTEM, CW_NOTHING,
};
#[cfg(target_os = "linux")]
use crate::drain::{Broken, Drain, Got, Mode, CHUNK};
#[cfg(target_os = "linux")]
use crate::ffi::handle::Table;

/// A flag in the result of [`cw_drain_read`]: the stream has ended.
pub const CW_DRAIN_END: i32 = 0x0100_0000;
/// A flag in the result of [`cw_drain_read`]: the stream is or was paused because too many bytes were queued.
pub const CW_DRAIN_PAUSED: i32 = 0x0200_0000;
/// A flag in the result of [`cw_drain_read`]: the descriptor passed to [`cw_drain_watch`] has become readable.
pub const CW_DRAIN_WATCHED: i32 = 0x0400_0000;

/// When the budget is used up, a drain stops reading, so the writer must wait.
pub const CW_OVERFLOW_PAUSE: u32 = 0;
/// When the budget is used up, a drain stops reading, and its next read returns `CW_ERROR_BUDGET`.
pub const CW_OVERFLOW_ERROR: u32 = 1;
/// When the budget is used up, a drain writes the bytes to a file.
pub const CW_OVERFLOW_SPILL: u32 = 2;
/// A drain keeps only the last bytes of the stream, so it never uses the budget.
pub const CW_OVERFLOW_KEEP_LAST: u32 = 3;

/// The counts of a drain; see `drain::Stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwDrainStats {
    /// The number of bytes returned to the reader.
    pub read: u64,
    /// The number of bytes that the rescuer thread read from the descriptor.
    pub rescued: u64,
    /// How often the rescuer thread began to fill an empty queue.
    pub rescues: u64,
    /// How often the stream was paused.
    pub pauses: u64,
    /// The number of bytes written to the file.
    pub spilled: u64,
    /// How often creating or writing the file failed.
    pub spill_errors: u64,
    /// The number of bytes thrown away.
    pub discarded: u64,
    /// The number of bytes in memory now.
    pub queued: u64,
    /// The number of unread bytes in the file now.
    pub in_file: u64,
    /// 1 if the stream is paused now, otherwise 0.
    pub paused: u64,
}

/// Runs the body of a C function on Linux, and returns `CW_ERROR_UNSUPPORTED` on other systems.
#[cfg(target_os = "linux")]
macro_rules! on_linux {
    ($body:block) => {
        guard(|| $body)
    };
}
#[cfg(not(target_os = "linux"))]
macro_rules! on_linux {
    ($body:block) => {
        CW_ERROR_UNSUPPORTED
    };
}

#[cfg(target_os = "linux")]
static DRAINS: Table<Drain> = Table::new();

/// Creates a drain that reads a duplicate of the descriptor `fd`, and writes the drain's handle to `out`.
///
/// `overflow` is one of `CW_OVERFLOW_…`. For `CW_OVERFLOW_SPILL`, `limit` is the maximum size of the file in bytes, and the `directory_len`
/// bytes at `directory` name the directory of the file. For `CW_OVERFLOW_KEEP_LAST`, `limit` is the number of bytes to keep.
///
/// # Safety
///
/// `directory` must be null with `directory_len` 0, or point to `directory_len` readable bytes. `out` must be null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_drain_new(
    fd: i32,
    overflow: u32,
    limit: u64,
    directory: *const u8,
    directory_len: u64,
    out: *mut u64,
) -> i32 {
    on_linux!({
        use std::os::unix::ffi::OsStrExt;
        // SAFETY: the caller guarantees `directory_len` readable bytes at `directory`.
        let directory = unsafe { bytes(directory, directory_len) }?;
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        let mode = match overflow {
            CW_OVERFLOW_PAUSE => Mode::Pause,
            CW_OVERFLOW_ERROR => Mode::Error,
            CW_OVERFLOW_SPILL => Mode::Spill(limit, std::ffi::OsStr::from_bytes(directory).into()),
            CW_OVERFLOW_KEEP_LAST => {
                Mode::KeepLast(usize::try_from(limit).map_err(|_| CW_ERROR_ARGUMENT)?)
            }
            _ => return Err(CW_ERROR_ARGUMENT),
        };
        let drain = Drain::new(shared()?, borrow(fd)?, mode).map_err(system)?;
        let handle = DRAINS.insert(drain)?;
        out.write(handle);
        Ok(CW_NOTHING)
    })
}

/// Closes the descriptors of a drain and drops its queue.
#[no_mangle]
pub extern "C" fn cw_drain_free(handle: u64) -> i32 {
    on_linux!({
        DRAINS.remove(handle)?;
        Ok(CW_NOTHING)
    })
}

/// Reads the next bytes of the stream, at most `len` of them. Returns how many bytes it read, plus the flags `CW_DRAIN_…`; 0 if no bytes
/// are available now.
///
/// # Safety
///
/// `out` must be null, or point to `len` writable bytes that no other thread uses during the call.
#[no_mangle]
pub unsafe extern "C" fn cw_drain_read(handle: u64, out: *mut u8, len: u64) -> i32 {
    on_linux!({
        // SAFETY: the caller guarantees `len` writable bytes at `out` that no other thread uses.
        let out = unsafe { bytes_mut(out, len) }?;
        let most = out.len().min(CHUNK);
        if most == 0 {
            return Err(CW_ERROR_ARGUMENT);
        }
        let (got, notes) = DRAINS.with(handle, |drain| drain.read(&mut out[..most]))??;
        let status = match got {
            // The number is at most `CHUNK`, which is less than the lowest flag.
            Got::Bytes(bytes) => i32::try_from(bytes).map_err(|_| CW_ERROR_ARGUMENT)?,
            Got::Nothing => CW_NOTHING,
            Got::End => CW_DRAIN_END,
            Got::Failed(number) => return Err(CW_ERROR_SYSTEM - number),
            Got::Budget => return Err(CW_ERROR_BUDGET),
        };
        let paused = i32::from(notes.paused) * CW_DRAIN_PAUSED;
        let watched = i32::from(notes.watched) * CW_DRAIN_WATCHED;
        Ok(status + paused + watched)
    })
}

/// Returns the number of a descriptor that is readable when [`cw_drain_read`] has a result. The drain owns the descriptor.
#[no_mangle]
pub extern "C" fn cw_drain_fileno(handle: u64) -> i32 {
    on_linux!({ Ok(DRAINS.with(handle, |drain| drain.fileno())??) })
}

/// Watches `fd` as well: when it becomes readable, the descriptor of [`cw_drain_fileno`] also becomes readable, once, and a read returns
/// `CW_DRAIN_WATCHED`.
#[no_mangle]
pub extern "C" fn cw_drain_watch(handle: u64, fd: i32) -> i32 {
    on_linux!({
        let fd = borrow(fd)?;
        DRAINS
            .with(handle, |drain| drain.watch(fd))??
            .map(|()| CW_NOTHING)
            .map_err(system)
    })
}

/// Throws away the queued bytes, and from now on everything that the writer writes.
#[no_mangle]
pub extern "C" fn cw_drain_discard(handle: u64) -> i32 {
    on_linux!({
        DRAINS.with(handle, |drain| drain.discard())??;
        Ok(CW_NOTHING)
    })
}

/// Copies the last bytes of the stream, at most `len` of them, to `out`. Writes how many it copied to `written`.
///
/// # Safety
///
/// `out` must be null, or point to `len` writable bytes that no other thread uses during the call. `written` must be null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_drain_tail(
    handle: u64,
    out: *mut u8,
    len: u64,
    written: *mut u64,
) -> i32 {
    on_linux!({
        // SAFETY: the caller guarantees `len` writable bytes at `out` that no other thread uses.
        let out = unsafe { bytes_mut(out, len) }?;
        if written.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let bytes = DRAINS.with(handle, |drain| drain.tail(out))??;
        // SAFETY: `written` is not null, and the caller guarantees that it is writable.
        unsafe { written.write(bytes as u64) };
        Ok(CW_NOTHING)
    })
}

/// Writes the counts of a drain to `out`.
///
/// # Safety
///
/// `out` must be null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_drain_stats(handle: u64, out: *mut CwDrainStats) -> i32 {
    on_linux!({
        // SAFETY: the caller guarantees that `out` is null or writable.
        let out = unsafe { place(out) }?;
        let stats = DRAINS.with(handle, |drain| drain.stats())??;
        let stats = CwDrainStats {
            read: stats.read,
            rescued: stats.rescued,
            rescues: stats.rescues,
            pauses: stats.pauses,
            spilled: stats.spilled,
            spill_errors: stats.spill_errors,
            discarded: stats.discarded,
            queued: stats.queued,
            in_file: stats.in_file,
            paused: stats.paused.into(),
        };
        out.write(stats);
        Ok(CW_NOTHING)
    })
}

/// Ends the rescuer thread permanently, and waits at most `milliseconds` for it to end. Python calls this when the process is about to
/// exit. Drains still work, but only their readers read the pipes. Returns 0 if the thread has ended, otherwise 1.
#[no_mangle]
pub extern "C" fn cw_drain_stop(milliseconds: u32) -> i32 {
    on_linux!({
        let ended = shared()?.stop(std::time::Duration::from_millis(milliseconds.into()));
        Ok(i32::from(!ended))
    })
}

/// Sets the budget: the maximum number of bytes that all drains of this process together may queue in memory.
#[no_mangle]
pub extern "C" fn cw_budget_set(limit: u64) -> i32 {
    on_linux!({
        shared()?.set_limit(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(CW_NOTHING)
    })
}

/// Adds `bytes` to the used part of the budget, because the caller keeps them for a drain's reader. A negative number returns bytes that
/// were added earlier in this process.
#[no_mangle]
pub extern "C" fn cw_budget_count(bytes: i64) -> i32 {
    on_linux!({
        let shared = shared()?;
        let number = usize::try_from(bytes.unsigned_abs()).map_err(|_| CW_ERROR_ARGUMENT)?;
        if bytes < 0 {
            shared.give_back_kept(number);
        } else {
            shared.add(number);
        }
        Ok(CW_NOTHING)
    })
}

/// Writes the budget of this process to `limit`, and how much of it is in use to `queued`, both in bytes.
///
/// # Safety
///
/// `limit` and `queued` must each be null or writable.
#[no_mangle]
pub unsafe extern "C" fn cw_budget(limit: *mut u64, queued: *mut u64) -> i32 {
    on_linux!({
        if limit.is_null() || queued.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let shared = shared()?;
        // SAFETY: neither pointer is null, and the caller guarantees that both are writable.
        unsafe {
            limit.write(shared.limit() as u64);
            queued.write(shared.queued() as u64);
        }
        Ok(CW_NOTHING)
    })
}

#[cfg(target_os = "linux")]
impl From<Broken> for i32 {
    fn from(_: Broken) -> Self {
        CW_ERROR_PANIC
    }
}

#[cfg(target_os = "linux")]
#[allow(clippy::needless_pass_by_value)] // `map_err` passes a value.
fn system(error: std::io::Error) -> i32 {
    CW_ERROR_SYSTEM - error.raw_os_error().unwrap_or(libc::EIO)
}

/// Borrows the caller's descriptor for one call. If the descriptor was closed or its number was reused, the system call fails or acts on
/// another file. This does not affect memory safety.
#[cfg(target_os = "linux")]
fn borrow(fd: i32) -> Result<std::os::fd::BorrowedFd<'static>, i32> {
    if fd < 0 {
        return Err(CW_ERROR_SYSTEM - libc::EBADF);
    }
    // SAFETY: `fd` is not -1. The borrow ends with the call: a drain keeps only a duplicate of the descriptor, or an entry for it in an
    // epoll instance.
    Ok(unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) })
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
