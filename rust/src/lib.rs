//! The native core of `claude_wire`: pipes, lines and their JSON structure, below Python.
//!
//! What this crate knows: descriptors, bytes, lines, and as much of JSON's structure as framing needs. What it must not know:
//! Python, and the meaning of any message. Every line feed is found here, and every line is checked here before a
//! JSON parser sees it.
//!
//! The modules stand on each other, bottom up:
//!
//! * [`simd`]: searches in vectors, chosen at run time, and the same in words.
//! * [`frame`]: one pass over a block of lines that says whether the fast path of decoding is sound for it.
//! * [`buffer`]: the incremental line buffer; it turns chunks cut anywhere into blocks of complete lines.
//! * [`scan`]: the kind of a line, by its structure; [`layout`]: recent lines, by which a like line is recognised without a scan;
//!   [`peek`]: the kinds of the lines of a block.
//! * [`delta`] and [`group`]: lines that may be merged, and those that are being merged; [`credit`]: whether that pays; [`sieve`]: lines
//!   in, those that are wanted out; [`sift`]: the steps of a buffer through a sieve, or past it.
//! * [`drain`]: keeps pipes from filling up while nobody reads them. Knows bytes only.
//! * [`handle`]: numbers that stand for live values across the C border, and refuse every wrong use.
//! * [`ffi`]: the C ABI. It and [`simd`] are the only ones with `unsafe`.
#![deny(unsafe_code)]
#![warn(missing_docs)]

// The generated C declarations are those of `ffi` alone; cbindgen reads its marks from doc comments only.
/// cbindgen:ignore
pub mod buffer;
/// cbindgen:ignore
pub mod credit;
/// cbindgen:ignore
pub mod delta;
/// cbindgen:ignore
pub mod drain;
pub mod ffi;
/// cbindgen:ignore
pub mod frame;
/// cbindgen:ignore
pub mod group;
/// cbindgen:ignore
pub mod handle;
/// cbindgen:ignore
pub mod layout;
#[cfg(test)]
mod model;
/// cbindgen:ignore
pub mod peek;
/// cbindgen:ignore
pub mod scan;
/// cbindgen:ignore
pub mod sieve;
/// cbindgen:ignore
pub mod sift;
/// cbindgen:ignore
pub mod simd;
