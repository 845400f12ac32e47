//! The native core of `claude_wire`: pipes, lines and their JSON structure, below Python.
//!
//! What this crate knows: descriptors, bytes, lines, and as much of JSON's structure as framing needs. What it must not know:
//! Python, and the meaning of any message. Every line feed is found here, and every line is checked here before a
//! JSON parser sees it.
//!
//! The folders stand on each other, bottom up:
//!
//! * [`simd`]: searches in vectors, chosen at run time, and the same in words.
//! * [`lines`]: chunks cut anywhere become blocks of complete lines; one pass over a block says whether it may be decoded at once.
//! * [`kinds`]: the kind of a line, by its structure; recent lines, by which a like line is recognised without a scan.
//! * [`filter`]: lines in, those of the wanted kinds out, deltas merged.
//! * [`columns`]: lines in, typed columns out.
//! * [`typed`]: lines in, typed messages out, made by whoever calls. Knows no more of Python than that.
//! * [`drain`]: keeps pipes from filling up while nobody reads them. Knows bytes only.
//! * [`ffi`]: the C ABI. It and [`simd`] are the only ones with `unsafe`.
#![deny(unsafe_code)]
#![warn(missing_docs)]

// The generated C declarations are those of `ffi` alone; cbindgen reads its marks from doc comments only.
/// cbindgen:ignore
pub mod columns;
/// cbindgen:ignore
#[cfg(target_os = "linux")]
pub mod drain;
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
pub mod typed;
