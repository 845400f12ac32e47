//! The native core of `claude_wire`: it reads pipes, finds the lines in their bytes, and reads JSON lines by structure.
//!
//! Only `ffi/python` knows Python, and no module knows the meaning of a message. This crate finds every line feed.
//!
//! The modules, from the bottom up. A module uses only modules above it in this list:
//!
//! * [`fallible`]: allocates memory without aborting the process if there is none.
//! * [`simd`]: searches bytes with vector instructions, or with 8-byte words on processors that have none.
//! * [`lines`]: keeps the line that a chunk leaves unfinished, and counts bytes and lines.
//! * [`kinds`]: finds a line's kind by its structure, and recognises a line that is like a recent one without a scan.
//! * [`filter`]: lets lines of the wanted kinds through, and merges deltas.
//! * [`stream`]: turns chunks that are cut anywhere into complete lines, with a buffer and a filter.
//! * [`columns`]: reads lines into typed Arrow columns.
//! * [`typed`]: reads lines into messages and writes messages as lines. The caller makes the objects.
//! * [`drain`]: reads pipes while their reader is busy, so that they do not fill up. It handles bytes, not lines.
//! * [`ffi`]: the C ABI. Only [`ffi`] and [`simd`] contain `unsafe` code.
#![deny(unsafe_code)]
#![warn(missing_docs)]

// cbindgen generates C declarations for `ffi` only. The mark `cbindgen:ignore` in a doc comment excludes a module.
/// cbindgen:ignore
pub mod columns;
/// cbindgen:ignore
#[cfg(target_os = "linux")]
pub mod drain;
/// cbindgen:ignore
pub mod fallible;
pub mod ffi;
/// cbindgen:ignore
pub mod filter;
/// cbindgen:ignore
pub mod kinds;
/// cbindgen:ignore
pub mod lines;
#[cfg(test)]
#[path = "../oracle/lib.rs"]
mod oracle;
#[cfg(test)]
#[path = "../oracle/samples.rs"]
mod samples;
/// cbindgen:ignore
pub mod simd;
/// cbindgen:ignore
pub mod stream;
/// cbindgen:ignore
pub mod typed;
