//! The interface between the reader, which parses JSON, and the builder, which makes objects.

/// Makes the objects of messages.
///
/// A method returns `None` if it cannot make the object: the line falls through.
pub trait Builder {
    /// A reference to an object. Dropping it gives it up; a clone is another reference to the same object.
    type Value: Clone;
    /// A class of records.
    type Class;
    /// A record that is being made. Dropping it frees it, with its values.
    type Record;
    /// A record or dict of which copies are made.
    type Template;

    /// A string of UTF-8; all of it is ASCII if `is_ascii`. `None` if it is not UTF-8.
    fn text(&mut self, bytes: &[u8], is_ascii: bool) -> Option<Self::Value>;
    /// A whole number.
    fn int(&mut self, value: i64) -> Option<Self::Value>;
    /// A finite number with a fraction or an exponent.
    fn float(&mut self, value: f64) -> Option<Self::Value>;
    /// `null`.
    fn null(&mut self) -> Self::Value;
    /// `true` or `false`.
    fn bool(&mut self, value: bool) -> Self::Value;
    /// A list of the values in `items`, which is empty afterwards.
    fn list(&mut self, items: std::vec::Drain<'_, Self::Value>) -> Option<Self::Value>;
    /// A dict. Keys and values alternate in `pairs`; of equal keys the last counts.
    fn dict(&mut self, pairs: std::vec::Drain<'_, Self::Value>) -> Option<Self::Value>;
    /// As [`dict`](Self::dict), for an object of an unknown tag: an instance of `kind`, with the reason. `None` if two keys are equal.
    fn unknown(
        &mut self,
        kind: &Self::Value,
        reason: &Self::Value,
        pairs: std::vec::Drain<'_, Self::Value>,
    ) -> Option<Self::Value>;
    /// A new record with the defaults of its class.
    fn begin(&mut self, class: &Self::Class) -> Option<Self::Record>;
    /// Replaces the value in a slot.
    fn set(&mut self, record: &mut Self::Record, slot: usize, value: Self::Value);
    /// The finished record. Each slot without a default has been set.
    fn finish(&mut self, record: Self::Record) -> Self::Value;
    /// Return the value in a slot of a record, or of the key with this index of a dict. `None` if there is no value: a program can
    /// empty a slot.
    fn slot(&mut self, record: &Self::Value, slot: usize) -> Option<Self::Value>;
    /// Make a template from a record or dict. Its copies share all values, except those in `slots`.
    fn template(&mut self, record: &Self::Value, slots: Vec<usize>) -> Option<Self::Template>;
    /// Make a copy from a template. Pop the values of its `slots` from `values`, where they are the last, in order.
    fn stamp(
        &mut self,
        template: &Self::Template,
        values: &mut Vec<Self::Value>,
    ) -> Option<Self::Value>;
    /// A deep copy: it shares only values that cannot change.
    fn copy(&mut self, value: &Self::Value) -> Option<Self::Value>;
    /// A copy of a list or dict. It shares the items.
    fn copy_flat(&mut self, value: &Self::Value) -> Option<Self::Value>;
}
