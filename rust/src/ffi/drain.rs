//! Drains by their handles, and the budget that they share. Where there are none, every function says so.
#![cfg_attr(not(target_os = "linux"), allow(unused_variables))]

#[cfg(not(target_os = "linux"))]
use super::CW_ERROR_UNSUPPORTED;
#[cfg(target_os = "linux")]
use super::{
    bytes, bytes_mut, forks::watch_forks, guard, place, shared::shared, CW_ERROR_ARGUMENT,
    CW_ERROR_BUDGET, CW_ERROR_MEMORY, CW_ERROR_PANIC, CW_ERROR_SYSTEM, CW_NOTHING,
};
#[cfg(target_os = "linux")]
use crate::drain::{Broken, Drain, Got, Mode, CHUNK};
#[cfg(target_os = "linux")]
use crate::ffi::handle::Table;

/// Added to the bytes that a read of a drain gave: the stream has ended.
pub const CW_DRAIN_END: i32 = 0x0100_0000;
/// Added to the bytes that a read of a drain gave: the stream has been paused, now or before, because too many bytes were
/// queued.
pub const CW_DRAIN_PAUSED: i32 = 0x0200_0000;
/// Added to the bytes that a read of a drain gave: what is watched has become readable.
pub const CW_DRAIN_WATCHED: i32 = 0x0400_0000;

/// Overflow of a drain: the writer has to wait.
pub const CW_OVERFLOW_PAUSE: u32 = 0;
/// Overflow of a drain: the writer has to wait, and the next read says `CW_ERROR_BUDGET`.
pub const CW_OVERFLOW_ERROR: u32 = 1;
/// Overflow of a drain: bytes go to a file.
pub const CW_OVERFLOW_SPILL: u32 = 2;
/// No overflow: only the last bytes of the stream are kept.
pub const CW_OVERFLOW_KEEP_LAST: u32 = 3;

/// What a drain has done; see `drain::Stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CwDrainStats {
    /// Bytes given to the reader.
    pub read: u64,
    /// Bytes taken by the rescuer instead.
    pub rescued: u64,
    /// Times that the rescuer began to.
    pub rescues: u64,
    /// Times that the stream was paused.
    pub pauses: u64,
    /// Bytes that went to a file.
    pub spilled: u64,
    /// Times that a file could not be made or written.
    pub spill_errors: u64,
    /// Bytes thrown away.
    pub discarded: u64,
    /// Bytes in memory now.
    pub queued: u64,
    /// Bytes in the file now.
    pub in_file: u64,
    /// 1 if the stream is paused now.
    pub paused: u64,
}

/// Runs the body of an entry point on Linux, and refuses it elsewhere.
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

/// Makes a drain of a duplicate of the descriptor `fd`. `limit` is the most bytes of its file for `CW_OVERFLOW_SPILL`,
/// which is made in the directory whose name is the `directory_len` bytes at `directory`; and the bytes to keep for
/// `CW_OVERFLOW_KEEP_LAST`.
///
/// # Safety
///
/// `directory` is null with `directory_len` 0, or so many bytes may be read there. `out` is null or may be written.
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
        // SAFETY: the caller promises it.
        let directory = unsafe { bytes(directory, directory_len) }?;
        // SAFETY: the caller promises it.
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
        if !watch_forks() {
            return Err(CW_ERROR_MEMORY);
        }
        let drain = Drain::new(shared(), borrow(fd)?, mode).map_err(system)?;
        let handle = DRAINS.insert(drain)?;
        out.write(handle);
        Ok(CW_NOTHING)
    })
}

/// Closes a drain: its descriptors, and what is queued.
#[no_mangle]
pub extern "C" fn cw_drain_free(handle: u64) -> i32 {
    on_linux!({
        DRAINS.remove(handle)?;
        Ok(CW_NOTHING)
    })
}

/// Reads the next bytes of a stream, at most `len`, and returns how many; `CW_NOTHING` if there are none now.
///
/// # Safety
///
/// `out` is null, or `len` bytes may be written there, and nobody else reads or writes them during the call.
#[no_mangle]
pub unsafe extern "C" fn cw_drain_read(handle: u64, out: *mut u8, len: u64) -> i32 {
    on_linux!({
        // SAFETY: the caller promises it.
        let out = unsafe { bytes_mut(out, len) }?;
        let most = out.len().min(CHUNK);
        if most == 0 {
            return Err(CW_ERROR_ARGUMENT);
        }
        let (got, notes) = DRAINS.with(handle, |drain| drain.read(&mut out[..most]))??;
        let status = match got {
            // At most CHUNK.
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

/// Returns the number of the descriptor that is readable when a read has something to give. It belongs to the drain.
#[no_mangle]
pub extern "C" fn cw_drain_fileno(handle: u64) -> i32 {
    on_linux!({ Ok(DRAINS.with(handle, |drain| drain.fileno())??) })
}

/// That descriptor also becomes readable when `fd` does, once.
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

/// Throws away what is queued, and everything that comes.
#[no_mangle]
pub extern "C" fn cw_drain_discard(handle: u64) -> i32 {
    on_linux!({
        DRAINS.with(handle, |drain| drain.discard())??;
        Ok(CW_NOTHING)
    })
}

/// Copies the last bytes of a stream, at most `len`, and writes how many to `written`.
///
/// # Safety
///
/// `out` is null, or `len` bytes may be written there, and nobody else reads or writes them during the call.
/// `written` is null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_drain_tail(
    handle: u64,
    out: *mut u8,
    len: u64,
    written: *mut u64,
) -> i32 {
    on_linux!({
        // SAFETY: the caller promises it.
        let out = unsafe { bytes_mut(out, len) }?;
        if written.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        let bytes = DRAINS.with(handle, |drain| drain.tail(out))??;
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { written.write(bytes as u64) };
        Ok(CW_NOTHING)
    })
}

/// Counts what a drain has done.
///
/// # Safety
///
/// `out` is null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_drain_stats(handle: u64, out: *mut CwDrainStats) -> i32 {
    on_linux!({
        // SAFETY: the caller promises it.
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

/// Ends the rescuer for good, as the process is about to end, and waits for it, at most so long. Drains go on, but only
/// their readers read. Returns 0 if it has ended, else 1.
#[no_mangle]
pub extern "C" fn cw_drain_stop(milliseconds: u32) -> i32 {
    on_linux!({
        let ended = shared().stop(std::time::Duration::from_millis(milliseconds.into()));
        Ok(i32::from(!ended))
    })
}

/// Sets the bytes that the drains of this process may queue in memory, all together.
#[no_mangle]
pub extern "C" fn cw_budget_set(limit: u64) -> i32 {
    on_linux!({
        if !watch_forks() {
            return Err(CW_ERROR_MEMORY);
        }
        shared().set_limit(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(CW_NOTHING)
    })
}

/// Counts bytes that the caller keeps for the reader of a drain, as if they were queued there; a negative number gives
/// them back. What is given back must have been counted before, in this process.
#[no_mangle]
pub extern "C" fn cw_budget_count(bytes: i64) -> i32 {
    on_linux!({
        if !watch_forks() {
            return Err(CW_ERROR_MEMORY);
        }
        let number = usize::try_from(bytes.unsigned_abs()).map_err(|_| CW_ERROR_ARGUMENT)?;
        if bytes < 0 {
            shared().give_back_kept(number);
        } else {
            shared().add(number);
        }
        Ok(CW_NOTHING)
    })
}

/// Writes the bytes that the drains of this process may queue, and those that they have queued.
///
/// # Safety
///
/// `limit` and `queued` are null or may be written.
#[no_mangle]
pub unsafe extern "C" fn cw_budget(limit: *mut u64, queued: *mut u64) -> i32 {
    on_linux!({
        if limit.is_null() || queued.is_null() {
            return Err(CW_ERROR_ARGUMENT);
        }
        if !watch_forks() {
            return Err(CW_ERROR_MEMORY);
        }
        // SAFETY: neither is null, and the caller promises that both may be written.
        unsafe {
            limit.write(shared().limit() as u64);
            queued.write(shared().queued() as u64);
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
#[allow(clippy::needless_pass_by_value)] // For map_err.
fn system(error: std::io::Error) -> i32 {
    CW_ERROR_SYSTEM - error.raw_os_error().unwrap_or(libc::EIO)
}

/// A descriptor for the length of a call. That its number may stand for nothing, or for something else by now, is
/// for the system to refuse: no memory depends on it.
#[cfg(target_os = "linux")]
fn borrow(fd: i32) -> Result<std::os::fd::BorrowedFd<'static>, i32> {
    if fd < 0 {
        return Err(CW_ERROR_SYSTEM - libc::EBADF);
    }
    // SAFETY: not -1, and it is not kept: what is kept of it is a duplicate, or a registration in an epoll instance.
    Ok(unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) })
}
