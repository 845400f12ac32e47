//! Allocations that fail with [`NoMemory`] if memory runs out. Rust's own, such as `Vec::push` and `Box::new`, abort the process.
//!
//! [`NoMemory`]: crate::fallible::NoMemory

/// The error of a failed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// Makes room for `more` values.
///
/// # Errors
///
/// [`NoMemory`]; `values` is unchanged.
#[inline]
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
    values.try_reserve(more).map_err(|_| NoMemory)
}

/// Appends a value.
///
/// # Errors
///
/// [`NoMemory`]; `values` is unchanged.
#[inline]
pub fn push<T>(values: &mut Vec<T>, value: T) -> Result<(), NoMemory> {
    #[cold]
    #[inline(never)]
    fn grow<T>(values: &mut Vec<T>, value: T) -> Result<(), NoMemory> {
        reserve(values, 1)?;
        values.push(value);
        Ok(())
    }
    if values.len() == values.capacity() {
        return grow(values, value);
    }
    // Because of the check above, the compiler omits the check in `Vec::push`.
    values.push(value);
    Ok(())
}

/// Appends bytes.
///
/// # Errors
///
/// [`NoMemory`]; `bytes` is unchanged.
#[inline]
pub fn append(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), NoMemory> {
    #[cold]
    #[inline(never)]
    fn grow(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), NoMemory> {
        reserve(bytes, more.len())?;
        bytes.extend_from_slice(more);
        Ok(())
    }
    if more.len() > bytes.capacity() - bytes.len() {
        return grow(bytes, more);
    }
    // As in `push`, the compiler omits the second check.
    bytes.extend_from_slice(more);
    Ok(())
}

/// Returns an empty vector with room for `length` values.
///
/// # Errors
///
/// [`NoMemory`].
pub fn with_room<T>(length: usize) -> Result<Vec<T>, NoMemory> {
    let mut values = Vec::new();
    values.try_reserve_exact(length).map_err(|_| NoMemory)?;
    Ok(values)
}

/// Returns a copy of some values, without unused memory.
///
/// # Errors
///
/// [`NoMemory`].
pub fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>, NoMemory> {
    let mut copy = with_room(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// Collects items whose number is known.
///
/// # Errors
///
/// [`NoMemory`].
pub fn collect<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, NoMemory> {
    let mut all = with_room(items.len())?;
    all.extend(items);
    Ok(all)
}

/// A value on the heap, as an array of one item: [`boxed`] makes it, which does not abort as `Box::new` does if memory runs out.
pub type Boxed<T> = Box<[T; 1]>;

/// Moves values to the heap. `Box::try_new` is not stable, and a vector of the right length becomes a box without an allocation.
///
/// # Errors
///
/// [`NoMemory`].
pub fn boxed<T, const N: usize>(values: [T; N]) -> Result<Box<[T; N]>, NoMemory> {
    let all = collect(values.into_iter())?;
    all.try_into().map_err(|_| NoMemory)
}
