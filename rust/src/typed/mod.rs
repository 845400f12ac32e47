//! Lines in, typed messages out, in one pass: the objects are made while the JSON is read. And the other way, see `write`.
//!
//! A `plan` says which classes there are, which keys they have, and what each value may be. The `Reader` follows it over
//! the lines of a block and has a `Host` make the objects; here nothing is known of what they are. The host of the library
//! makes msgspec's Structs in CPython (`ffi::python`), that of the tests plain values.
//!
//! Whatever is unusual is left to the caller, a line at a time: a value that does not fit, a tag given twice, a lone
//! surrogate, a number beyond 18 digits, deep nesting. Such a line *falls through*; the caller has a slower way that also
//! finds out what is wrong. So this pass need not have an opinion about what it does not understand, and everything
//! that it does make must be what the slower way would have made.
//!
//! Nobody has looked at the lines before. A line is read up to its LF, and each string that is not ASCII is checked where it is made
//! or passed over, so what becomes a message is valid UTF-8.
//!
//! Most of the speed comes from expecting the same again. The next key of an object is compared with the one that followed
//! last time, a string with the last ones of its field, an object or a list with the last bytes of its field. What is equal is
//! shared, or copied if it can change. See `memo`.

mod alike;
mod guess;
mod host;
pub mod memo;
mod number;
pub mod plan;
mod read;
mod skip;
mod text;
mod write;

pub use host::Host;
pub use read::{Line, Reader};
pub use write::{Field, Place, Seen, Shape, Source, Text, Unwritten, Writer};

#[cfg(test)]
mod plain;
#[cfg(test)]
mod tests;
