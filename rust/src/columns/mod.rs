//! Reads lines into typed Arrow columns, without making an object for a line.
//!
//! The basic idea is simple: walk through a line's object from key to key, copy the values of the wanted keys to their columns, and skip
//! all other values by their brackets and quotes. For example, with the columns `uuid text first uuid` and `input int first
//! message.usage.input_tokens`:
//!
//! ```text
//! {"uuid":"a1","message":{"content":[…],"usage":{"input_tokens":5}}}
//!          ^^                       ^ skipped                   ^
//! column uuid: …, "a1"              column input: …, 5
//! ```
//!
//! The walk checks the structure of the line, its UTF-8, and each value that it copies, but not the values that it skips. If it does not
//! understand a line, it passes the line to the caller's decoder.
//!
//! * `tree`: the wanted keys; `walk`: finds their values in an object.
//! * `values`: converts JSON values to text, numbers and times.
//! * `spec`: the columns of a table, and the rules that fill them; `rows`: makes the rows of one line; `batch`: growing columns.
//! * `source`: files and bytes to read; `reader`: reads them line by line into batches, and counts problems.
//! * `combine`: keeps one row of each answer that has several rows; `usage_rows`: has a row of 88 bytes with the usage of
//!   each answer, and adds up such rows.

pub mod batch;
pub mod combine;
pub mod reader;
pub mod rows;
pub mod source;
pub mod spec;
pub mod tree;
pub mod usage_rows;
pub mod values;
pub mod walk;
