//! Lines to columns: the values of some keys of each line, in typed columns, without an object for any of them.
//!
//! * [`walk`]: where in a line the values of the keys stand that some table has a column for.
//! * [`values`]: those values as text, numbers, times.
//! * [`tables`]: which tables there are, and which columns they have.
//! * [`batch`]: columns that grow, and rows of them; [`rows`]: the rows that a line gives.
//! * [`source`]: where lines come from; [`reader`]: files and ranges of them, line by line, to batches.
//! * [`report`]: what did not fit.
//! * [`combine`]: answers that stand in several rows, once.
//!
//! Knows the keys of messages on streams and in transcripts, which no other folder does. What it promises of a line: its structure, its
//! tags, UTF-8, and the validity of each value that it takes. Values that it skips are not judged. What it does not understand
//! is left to a decoder that is given to it.

pub mod batch;
pub mod combine;
pub mod reader;
pub mod report;
pub mod rows;
pub mod source;
pub mod tables;
pub mod values;
pub mod walk;
