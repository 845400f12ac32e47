//! Handles: numbers that C code holds instead of pointers.
//!
//! Using a pointer after it was freed, from two threads, or in a forked child is undefined behaviour. Using a `Handle`
//! like this returns an error of type `Refused`. The basic idea is simple: a handle is an index into a table, plus two
//! numbers that must match. The handle `0x3039_000002_0007` is slot 7, in its second use, of process 12345:
//!
//! ```text
//! bits 40..64  pid         of the process that made the handle; a forked child is refused before it touches a lock
//! bits 16..40  generation  counts the uses of the slot; a freed handle is refused although the slot is in use again
//! bits  0..16  index       of the slot in the table
//! ```
//!
//! The table is a fixed array of 1.5 MiB of zeros. The operating system provides only the pages that are used. The table as a whole has no
//! lock and never allocates, so a fork cannot leave it half changed. If a thread of the parent held a slot's lock, the slot stays locked in
//! the child, but the child uses other slots.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// The maximum number of values in a table at the same time.
pub const SLOTS: usize = 1 << 16;

const INDEX_BITS: u32 = 16;
const GENERATION_BITS: u32 = 24;
const LAST_GENERATION: u32 = (1 << GENERATION_BITS) - 1;
const PID_MASK: u32 = (1 << 24) - 1;

/// The number of a value in a [`Table`]. 0 is never a valid handle.
pub type Handle = u64;

/// Why a table refused a handle or a new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The handle is 0, freed, or was never returned by [`Table::insert`].
    Stale,
    /// Another process made the handle.
    Forked,
    /// Another thread is using the value now.
    InUse,
    /// An earlier use of the value panicked, so it may be inconsistent. It can only be removed.
    Broken,
    /// No slot is free for a new value.
    Full,
}

struct Slot<T> {
    /// How many handles of this slot were freed. The valid handle's generation is this number plus 1. It changes only while `value` is
    /// locked.
    generation: AtomicU32,
    value: Mutex<Option<Box<T>>>,
}

/// A fixed number of slots for values of one type. A handle names a slot.
pub struct Table<T: 'static> {
    slots: [Slot<T>; SLOTS],
    /// The index at which the search for a free slot begins.
    hint: AtomicUsize,
}

impl<T> Table<T> {
    /// Returns an empty table. It is too large for the stack: store it in a `static`.
    #[must_use]
    #[allow(clippy::new_without_default, clippy::large_stack_arrays)] // A `static` needs a const function, and no stack.
    pub const fn new() -> Self {
        Self {
            slots: [const {
                Slot {
                    generation: AtomicU32::new(0),
                    value: Mutex::new(None),
                }
            }; SLOTS],
            hint: AtomicUsize::new(0),
        }
    }

    /// Moves a value into a free slot and returns its handle.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] if no slot is free.
    pub fn insert(&self, value: T) -> Result<Handle, Refused> {
        let value = Box::new(value);
        let first = self.hint.load(Ordering::Relaxed);
        for index in (first..SLOTS).chain(0..first) {
            let slot = &self.slots[index];
            let Ok(mut guard) = slot.value.try_lock() else {
                continue;
            };
            let generation = slot.generation.load(Ordering::Relaxed);
            if guard.is_some() || generation == LAST_GENERATION {
                continue;
            }
            *guard = Some(value);
            self.hint.store((index + 1) % SLOTS, Ordering::Relaxed);
            return Ok(pack(own_pid(), generation + 1, index));
        }
        Err(Refused::Full)
    }

    /// Calls `f` with the value, which is locked during the call. Never waits for the lock.
    ///
    /// # Errors
    ///
    /// Every reason of [`Refused`] except [`Refused::Full`].
    pub fn with<R>(&self, handle: Handle, f: impl FnOnce(&mut T) -> R) -> Result<R, Refused> {
        let (slot, generation) = self.slot(handle)?;
        let mut guard = match slot.value.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::WouldBlock) => return Err(Refused::InUse),
            Err(TryLockError::Poisoned(_)) => return Err(Refused::Broken),
        };
        live(slot, generation, &mut guard).map(f)
    }

    /// Drops the value. From now on its handle is refused as [`Refused::Stale`].
    ///
    /// # Errors
    ///
    /// [`Refused::Stale`], [`Refused::Forked`] or [`Refused::InUse`].
    pub fn remove(&self, handle: Handle) -> Result<(), Refused> {
        let (slot, generation) = self.slot(handle)?;
        let (.., index) = unpack(handle);
        let mut guard = match slot.value.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::WouldBlock) => return Err(Refused::InUse),
            Err(TryLockError::Poisoned(poisoned)) => {
                slot.value.clear_poison();
                poisoned.into_inner()
            }
        };
        live(slot, generation, &mut guard)?;
        let value = guard.take();
        slot.generation.store(generation, Ordering::Relaxed);
        drop(guard);
        drop(value);
        self.hint.store(index, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the slot and the generation that a handle names. Makes every check that does not need a lock.
    fn slot(&self, handle: Handle) -> Result<(&Slot<T>, u32), Refused> {
        let (pid, generation, index) = unpack(handle);
        if generation == 0 {
            return Err(Refused::Stale);
        }
        if pid != own_pid() {
            return Err(Refused::Forked);
        }
        let slot = &self.slots[index];
        if slot.generation.load(Ordering::Relaxed) + 1 != generation {
            return Err(Refused::Stale);
        }
        Ok((slot, generation))
    }
}

/// Returns the value in a locked slot. If another thread freed the value before the lock was taken, the handle is stale.
fn live<'a, T>(
    slot: &Slot<T>,
    generation: u32,
    guard: &'a mut MutexGuard<'_, Option<Box<T>>>,
) -> Result<&'a mut T, Refused> {
    match guard.as_deref_mut() {
        Some(value) if slot.generation.load(Ordering::Relaxed) + 1 == generation => Ok(value),
        _ => Err(Refused::Stale),
    }
}

/// The pid of this process; 0 until [`remember_pid`] is called.
static OWN_PID: AtomicU32 = AtomicU32::new(0);

/// Stores the pid of this process, which saves a system call (0.1 to 0.3 µs) on every use of a handle. The caller must arrange that
/// every forked child calls this again, before it calls any other function of this module.
pub fn remember_pid() {
    OWN_PID.store(std::process::id(), Ordering::Relaxed);
}

/// Returns true after [`remember_pid`] was called.
#[must_use]
pub fn pid_is_remembered() -> bool {
    OWN_PID.load(Ordering::Relaxed) != 0
}

fn own_pid() -> u32 {
    let pid = match OWN_PID.load(Ordering::Relaxed) {
        0 => std::process::id(),
        remembered => remembered,
    };
    pid & PID_MASK
}

fn pack(pid: u32, generation: u32, index: usize) -> Handle {
    u64::from(pid) << (INDEX_BITS + GENERATION_BITS)
        | u64::from(generation) << INDEX_BITS
        | index as u64
}

#[allow(clippy::cast_possible_truncation)] // Each part is masked to its own bits.
fn unpack(handle: Handle) -> (u32, u32, usize) {
    let pid = (handle >> (INDEX_BITS + GENERATION_BITS)) as u32;
    let generation = (handle >> INDEX_BITS) as u32 & LAST_GENERATION;
    (pid, generation, handle as usize % SLOTS)
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn a_handle_gives_its_value_until_it_is_removed() {
        static TABLE: Table<u8> = Table::new();
        let (one, two) = (TABLE.insert(1).unwrap(), TABLE.insert(2).unwrap());
        assert_eq!(TABLE.with(one, |value| std::mem::replace(value, 3)), Ok(1));
        assert_eq!(TABLE.with(one, |value| *value), Ok(3));
        assert_eq!(TABLE.with(two, |value| *value), Ok(2));
        assert_eq!(TABLE.remove(one), Ok(()));
        assert_eq!(TABLE.with(one, |value| *value), Err(Refused::Stale));
        assert_eq!(TABLE.remove(one), Err(Refused::Stale));
        assert_eq!(TABLE.with(two, |value| *value), Ok(2));
    }

    #[test]
    fn a_slot_that_is_used_again_refuses_its_old_handles() {
        static TABLE: Table<u8> = Table::new();
        let old = TABLE.insert(1).unwrap();
        TABLE.remove(old).unwrap();
        let new = TABLE.insert(2).unwrap();
        assert_eq!(unpack(old).2, unpack(new).2);
        assert_eq!(TABLE.with(old, |value| *value), Err(Refused::Stale));
        assert_eq!(TABLE.remove(old), Err(Refused::Stale));
        assert_eq!(TABLE.with(new, |value| *value), Ok(2));
    }

    #[test]
    fn zero_and_handles_never_given_out_are_stale() {
        static TABLE: Table<u8> = Table::new();
        for handle in [
            0,
            pack(own_pid(), 1, 0),
            pack(own_pid(), LAST_GENERATION, SLOTS - 1),
            pack(own_pid(), 0, 7),
        ] {
            assert_eq!(
                TABLE.with(handle, |value| *value),
                Err(Refused::Stale),
                "{handle:x}"
            );
            assert_eq!(TABLE.remove(handle), Err(Refused::Stale), "{handle:x}");
        }
    }

    #[test]
    fn a_slot_is_retired_when_its_generations_are_used_up() {
        static TABLE: Table<u8> = Table::new();
        TABLE.slots[0]
            .generation
            .store(LAST_GENERATION - 1, Ordering::Relaxed);
        let last = TABLE.insert(1).unwrap();
        assert_eq!(unpack(last), (own_pid(), LAST_GENERATION, 0));
        TABLE.remove(last).unwrap();
        assert_eq!(TABLE.with(last, |value| *value), Err(Refused::Stale));
        let next = TABLE.insert(2).unwrap();
        assert_eq!(unpack(next), (own_pid(), 1, 1));
    }

    #[test]
    fn a_handle_of_another_process_is_refused_before_the_lock() {
        static TABLE: Table<u8> = Table::new();
        let handle = TABLE.insert(1).unwrap();
        let (pid, generation, index) = unpack(handle);
        let other = pack(pid ^ 1, generation, index);
        let _locked = TABLE.slots[index].value.lock().unwrap();
        assert_eq!(TABLE.with(other, |value| *value), Err(Refused::Forked));
        assert_eq!(TABLE.remove(other), Err(Refused::Forked));
    }

    #[test]
    fn a_handle_in_use_is_refused_and_left_alone() {
        static TABLE: Table<u8> = Table::new();
        let handle = TABLE.insert(1).unwrap();
        let (inside, done) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                TABLE.with(handle, |_| {
                    inside.wait();
                    done.wait();
                })
            });
            inside.wait();
            assert_eq!(TABLE.with(handle, |value| *value), Err(Refused::InUse));
            assert_eq!(TABLE.remove(handle), Err(Refused::InUse));
            let other = TABLE.insert(2).unwrap();
            assert_eq!(TABLE.with(other, |value| *value), Ok(2));
            done.wait();
        });
        assert_eq!(TABLE.with(handle, |value| *value), Ok(1));
    }

    #[test]
    fn after_a_panic_a_handle_can_only_be_freed() {
        static TABLE: Table<u8> = Table::new();
        let handle = TABLE.insert(1).unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            TABLE.with(handle, |_| panic!("provoked by a test"))
        }));
        assert!(panicked.is_err());
        assert_eq!(TABLE.with(handle, |value| *value), Err(Refused::Broken));
        assert_eq!(TABLE.remove(handle), Ok(()));
        assert_eq!(TABLE.with(handle, |value| *value), Err(Refused::Stale));
        let next = TABLE.insert(2).unwrap();
        assert_eq!(unpack(next).2, unpack(handle).2);
        assert_eq!(TABLE.with(next, |value| *value), Ok(2));
    }

    #[test]
    fn a_full_table_refuses_until_a_slot_is_free() {
        static TABLE: Table<u8> = Table::new();
        let handles: Vec<_> = (0..SLOTS).map(|_| TABLE.insert(1).unwrap()).collect();
        assert_eq!(TABLE.insert(2), Err(Refused::Full));
        TABLE.remove(handles[12_345]).unwrap();
        let handle = TABLE.insert(2).unwrap();
        assert_eq!(TABLE.with(handle, |value| *value), Ok(2));
    }
}
