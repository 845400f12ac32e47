//! Turns lines into typed messages in one pass: objects are made while the JSON is read. `write` does the reverse.
//!
//! A `plan` lists the classes, their keys, and the types of each value. The `Reader` reads the lines of a block by the plan, and
//! calls a `Builder` to make the objects. The library's builder makes msgspec's Structs in CPython (`ffi::python`). The tests' builder
//! makes values of a Rust enum.
//!
//! An unusual line *falls through*: one with a value of a wrong type, a tag given twice, a lone surrogate, a number of more than
//! 18 digits, or deep nesting. The caller decodes it in a slower way, which also finds out what is wrong. So there are two rules:
//! this pass may refuse any line, and a message that it makes must equal the one of the slower way.
//!
//! Lines need not be checked before. A line is read up to its LF, and each string that is not ASCII is checked where it is made or
//! skipped, so messages are valid UTF-8.
//!
//! Most of the speed comes from expecting repetition. The next key of an object is compared with the key that followed last time,
//! a string with the last strings of its field, an object or array with the last bytes of its field. An equal value is shared, or
//! copied if it can change: see `memo`. A line that differs from an earlier one only in some strings is not parsed: see `alike`.

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
pub use read::{Line, Reader};
pub use write::{Field, FieldSlot, Seen, Shape, Source, Text, Unwritten, Writer};

#[cfg(test)]
mod plain;
#[cfg(test)]
mod tests;
