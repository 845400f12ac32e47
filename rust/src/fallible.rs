//! Allocations that return `None` if memory runs out. Rust's own, such as `Vec::push` and `Box::new`, abort the process.

/// Appends an item.
pub fn push<T>(items: &mut Vec<T>, item: T) -> Option<()> {
    if items.len() == items.capacity() {
        items.try_reserve_exact(items.len().max(4)).ok()?;
    }
    items.push(item);
    Some(())
}

/// Collects items whose number is known.
pub fn collect<T>(items: impl ExactSizeIterator<Item = T>) -> Option<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(items.len()).ok()?;
    all.extend(items);
    Some(all)
}

/// Copies items.
pub fn copy<T: Copy>(items: &[T]) -> Option<Vec<T>> {
    collect(items.iter().copied())
}

/// Moves values to the heap. `Box::try_new` is not stable, and a vector of the right length becomes a box without an allocation.
pub fn boxed<T, const N: usize>(values: [T; N]) -> Option<Box<[T; N]>> {
    collect(values.into_iter())?.try_into().ok()
}
