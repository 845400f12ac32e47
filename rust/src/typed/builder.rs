//! The interface between the reader, which parses JSON, and the builder, which makes objects.

/// Makes the objects of messages.
///
/// A method returns `None` if it cannot make the object. The line then falls through.
pub trait Builder {
    /// A reference to an object. Dropping the value releases the reference; a clone is another reference to the same object.
    type Value: Clone;
    /// A class of records.
    type Class;
    /// An unfinished record. Dropping it without [`finish`](Self::finish) does not free it.
    type Record;
    /// Describes how to make copies of a value.
    type Template;

    /// Makes a string from UTF-8, which is all ASCII if `is_ascii`. Returns `None` if the bytes are not valid UTF-8.
    fn text(&mut self, bytes: &[u8], is_ascii: bool) -> Option<Self::Value>;
    /// Makes a whole number.
    fn int(&mut self, value: i64) -> Option<Self::Value>;
    /// Makes a float. `value` is finite.
    fn float(&mut self, value: f64) -> Option<Self::Value>;
    /// Makes `null`.
    fn null(&mut self) -> Self::Value;
    /// Makes `true` or `false`.
    fn bool(&mut self, value: bool) -> Self::Value;
    /// Makes a list of the values in `items`.
    fn list(&mut self, items: std::vec::Drain<'_, Self::Value>) -> Option<Self::Value>;
    /// Makes a dict. Keys and values alternate in `pairs`. If keys are equal, the last one counts.
    fn dict(&mut self, pairs: std::vec::Drain<'_, Self::Value>) -> Option<Self::Value>;
    /// Like [`dict`](Self::dict), but for an object with an unknown tag: makes an instance of `kind` with the reason. Returns `None` if two
    /// keys are equal.
    fn unknown(
        &mut self,
        kind: &Self::Value,
        reason: &Self::Value,
        pairs: std::vec::Drain<'_, Self::Value>,
    ) -> Option<Self::Value>;
    /// Begins a record.
    fn begin(&mut self, class: &Self::Class) -> Option<Self::Record>;
    /// Sets the value of a slot, once.
    fn set(&mut self, record: &mut Self::Record, slot: usize, value: Self::Value);
    /// Returns the finished record. `set` has a bit for each field of the class, and the bit [`EXTRA`](super::plan::EXTRA). A bit is 1
    /// exactly if [`set`](Self::set) was called for the field's slot. The tag's bit does not matter. A wrong bit makes reference counts
    /// wrong. The other slots get the defaults of the class.
    fn finish(&mut self, class: &Self::Class, record: Self::Record, set: [u64; 2]) -> Self::Value;
    /// Returns the value in a record's slot, or the value of a dict's key with this index. Returns `None` if `record` is neither, if it has
    /// no such slot or key, or if a program has emptied the slot. The caller may pass any value.
    fn slot(&mut self, record: &Self::Value, slot: usize) -> Option<Self::Value>;
    /// Makes a template from a record or dict. Its copies share all values except those in `slots`. Returns `None` if `record` is neither, if
    /// it has no such slot or key, if a program has emptied one of its slots, or if memory runs out.
    fn template(&mut self, record: &Self::Value, slots: Vec<usize>) -> Option<Self::Template>;
    /// Makes a copy from a template. Pops the values of the template's `slots` from the end of `values`, where they are in order.
    fn stamp(
        &mut self,
        template: &Self::Template,
        values: &mut Vec<Self::Value>,
    ) -> Option<Self::Value>;
    /// Makes a template whose copies are deep copies of a value: they share only values that a program cannot change. The template has no
    /// open slots, so [`stamp`](Self::stamp) pops nothing. Returns `None` if the value consists of more than `max_objects` lists, dicts and
    /// records, if a program has emptied a slot of it, or if memory runs out.
    fn deep_template(&mut self, value: &Self::Value, max_objects: usize) -> Option<Self::Template>;
}
