//! Handles: numbers that stand for live values across the C border.
//!
//! A pointer that is freed, null, used by two threads or used in a forked child is undefined behaviour. A `Handle` in
//! the same situation is an error of type `Refused`. It is made of three parts:
//!
//! ```text
//! bits 40..64  pid         the process that made it; a forked child is refused before any lock is touched
//! bits 16..40  generation  counts the uses of the slot; a freed handle is refused although its slot is used again
//! bits  0..16  index       of the slot
//! ```
//!
//! The table is a fixed array: 1 MiB and a half of zeros that the operating system provides page by page as slots
//! are used. It has no lock and no allocation of its own, so a fork in another thread cannot leave it half changed:
//! at worst the child inherits some slots locked for ever, and goes past them.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Values that can be alive at once.
pub const SLOTS: usize = 1 << 16;

const INDEX_BITS: u32 = 16;
const GENERATION_BITS: u32 = 24;
const LAST_GENERATION: u32 = (1 << GENERATION_BITS) - 1;
const PID_MASK: u32 = (1 << 24) - 1;

/// Stands for a value in a [`Table`]. 0 is never one.
pub type Handle = u64;

/// Why a handle was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is 0, freed, or was never given out.
    Stale,
    /// Another process made it.
    Forked,
    /// Another thread is using it now.
    InUse,
    /// An earlier use of it panicked, so its value may be inconsistent. It can only be freed.
    Broken,
    /// No slot is free.
    Full,
}

struct Slot<T> {
    /// Generation of the handle that is valid, or would be next. It changes under the lock only.
    generation: AtomicU32,
    value: Mutex<Option<Box<T>>>,
}

/// The values that handles stand for.
pub struct Table<T: 'static> {
    slots: [Slot<T>; SLOTS],
    /// Where to look for a free slot first.
    hint: AtomicUsize,
}

impl<T> Table<T> {
    /// An empty table, to be kept in a `static`.
    #[must_use]
    #[allow(clippy::new_without_default, clippy::large_stack_arrays)] // For a `static`, see above.
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

    /// Moves a value into the table.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`].
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

    /// Runs `f` on the value, which no other thread uses meanwhile.
    ///
    /// # Errors
    ///
    /// As in [`Refused`]; never [`Refused::Full`].
    pub fn with<R>(&self, handle: Handle, f: impl FnOnce(&mut T) -> R) -> Result<R, Refused> {
        let (slot, generation) = self.slot(handle)?;
        let mut guard = match slot.value.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::WouldBlock) => return Err(Refused::InUse),
            Err(TryLockError::Poisoned(_)) => return Err(Refused::Broken),
        };
        live(slot, generation, &mut guard).map(f)
    }

    /// Drops the value. The handle is stale from now on.
    ///
    /// # Errors
    ///
    /// As in [`Refused`]; never [`Refused::Full`] or [`Refused::Broken`].
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

    /// The slot and the generation that a handle names, unless it can be refused without the lock.
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

/// The value under the lock, if it is still that of the handle: it may have been freed before the lock was had.
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

/// The pid of this process once it is remembered, 0 before.
static OWN_PID: AtomicU32 = AtomicU32::new(0);

/// Remembers the pid of this process, which spares a system call (0.1 to 0.3 µs) on every use of a handle. Whoever
/// calls this sees to it that it is called again in every forked child before anything else of this module.
pub fn remember_pid() {
    OWN_PID.store(std::process::id(), Ordering::Relaxed);
}

/// Whether [`remember_pid`] was called.
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
    fn a_full_table_says_so_and_goes_on() {
        static TABLE: Table<u8> = Table::new();
        let handles: Vec<_> = (0..SLOTS).map(|_| TABLE.insert(1).unwrap()).collect();
        assert_eq!(TABLE.insert(2), Err(Refused::Full));
        TABLE.remove(handles[12_345]).unwrap();
        let handle = TABLE.insert(2).unwrap();
        assert_eq!(TABLE.with(handle, |value| *value), Ok(2));
    }
}
