//! Lines to columns: the values of some keys of each line, in typed columns, without an object for any of them.
//!
//! * `tree`: which keys are wanted; `walk`: where in an object their values stand.
//! * `values`: those values as text, numbers, times.
//! * `spec`: the columns of a table and their rules; `rows`: the rows of a line; `batch`: growing columns.
//! * `source`: where lines come from; `reader`: files and ranges of files, line by line, to batches and a report.
//! * `combine`: picks one row of each answer that has several.
//!
//! The caller says which keys. Checked of a line: its structure, its UTF-8, and each value that is taken. Skipped values are not checked.
//! A line that is not understood here goes to the decoder that the caller gives.

pub mod batch;
pub mod combine;
pub mod reader;
pub mod rows;
pub mod source;
pub mod spec;
pub mod tree;
pub mod values;
pub mod walk;
