//! The interface between the reader, which parses, and the host, which makes the objects.

/// Makes the objects that a line is turned into.
///
/// A function returns `None` if it cannot make the object: the line falls through.
pub trait Host {
    /// A reference to an object. Dropping it gives it up; a clone is another reference to the same object.
    type Value: Clone;
    /// A class of records.
    type Class;
    /// A record that nobody has seen yet. Dropping it gives it up with all that was set.
    type Record;

    /// A string; its bytes are UTF-8, and ASCII if `is_ascii`.
    fn text(&mut self, bytes: &[u8], is_ascii: bool) -> Option<Self::Value>;
    /// A whole number.
    fn int(&mut self, value: i64) -> Option<Self::Value>;
    /// A number with a fraction or an exponent, which is finite.
    fn float(&mut self, value: f64) -> Option<Self::Value>;
    /// `null`.
    fn null(&mut self) -> Self::Value;
    /// `true` or `false`.
    fn bool(&mut self, value: bool) -> Self::Value;
    /// A list of the values in `items`, which is empty afterwards.
    fn list(&mut self, items: std::vec::Drain<'_, Self::Value>) -> Option<Self::Value>;
    /// A dict of the keys and values that take turns in `pairs`; of equal keys the last counts.
    fn dict(&mut self, pairs: std::vec::Drain<'_, Self::Value>) -> Option<Self::Value>;
    /// As [`dict`](Self::dict), of the class `kind` for objects that no class fits, with the reason; `None` for equal keys.
    fn unknown(
        &mut self,
        kind: &Self::Value,
        reason: &Self::Value,
        pairs: std::vec::Drain<'_, Self::Value>,
    ) -> Option<Self::Value>;
    /// A new record, in which nothing is set.
    fn begin(&mut self, class: &Self::Class) -> Option<Self::Record>;
    /// Sets a slot in which nothing is set.
    fn set(&mut self, record: &mut Self::Record, slot: usize, value: Self::Value);
    /// The record, in which every slot is set.
    fn finish(&mut self, record: Self::Record) -> Self::Value;
    /// What stands in a slot of a record; `None` if somebody has emptied it.
    fn slot(&mut self, record: &Self::Value, slot: usize) -> Option<Self::Value>;
    /// A copy of a record that shares all its values but some: each change is a slot, and the index of what it gets.
    fn copy_with(
        &mut self,
        record: &Self::Value,
        changes: &[(usize, usize)],
        values: &[Self::Value],
    ) -> Option<Self::Value>;
    /// A copy that shares nothing that can change: lists and dicts are copied, at any depth.
    fn copy(&mut self, value: &Self::Value) -> Option<Self::Value>;
}
