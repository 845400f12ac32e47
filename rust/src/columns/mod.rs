//! Lines to columns: the values of some keys of each line, in typed columns, without an object for any of them.
//!
//! * `tree`: which keys are wanted; `walk`: where in an object their values stand.
//! * `values`: those values as text, numbers, times.
//! * `spec`: which columns there are, and by which rules they are made; `rows`: the rows that a line gives; `batch`: columns that grow.
//! * `source`: where lines come from; `reader`: files and ranges of them, line by line, to batches, and what did not fit.
//! * `combine`: answers that stand in several rows, once.
//!
//! Whoever asks says which keys. What is promised of a line: its structure, UTF-8, and the validity of each value that is taken. Values that are
//! skipped are not judged. What is not understood is left to a decoder that is given.

pub mod batch;
pub mod combine;
pub mod reader;
pub mod rows;
pub mod source;
pub mod spec;
pub mod tree;
pub mod values;
pub mod walk;
