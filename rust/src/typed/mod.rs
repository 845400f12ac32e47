//! Turns lines into typed messages, and typed messages into lines.
//!
//! The basic idea is simple: a `plan` lists the classes, their keys, and the types of each value. For the line
//! `{"type":"result","num_turns":3}`, the `Reader` finds the class `result`, reads the keys one by one, and calls a `Builder` to make the
//! objects while it reads: there is no tree of JSON values in between. The library's builder makes msgspec's Structs in CPython
//! (`ffi::python`), and the tests' builder makes values of a Rust enum. `write` does the reverse.
//!
//! An unusual line *falls through*: for example, a line with a value of the wrong type, the same key twice, a lone surrogate, a number with
//! more than 18 digits, or deep nesting. The caller then decodes the line with msgspec, which also reports the error. Two rules follow: the
//! reader may refuse any line, and each message that it makes must equal the message that msgspec would make.
//!
//! The caller does not check lines in advance. The reader stops at a line's LF, and validates the UTF-8 of each string when it makes the
//! string.
//!
//! The reader is fast because it expects repetition. It compares the next key of an object with the key that followed last time, a string
//! with the last strings of its field, and an object or array with the last bytes of its field. If they are equal, the messages share the
//! value, or get a copy if a program can change it (see `memo`). The reader does not parse a line that differs from an earlier line only in
//! some strings (see `alike`).

mod alike;
mod builder;
mod guess;
pub mod memo;
mod number;
pub mod plan;
mod read;
mod skip;
mod text;
mod write;

pub use builder::Builder;
pub use read::{Line, Reader, MAX_DEPTH};
pub use write::{Field, FieldSlot, Seen, Shape, Source, Text, Unwritten, Writer};

#[cfg(test)]
mod plain;
#[cfg(test)]
mod tests;
