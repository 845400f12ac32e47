//! Skips values, and finds the tag of an object that does not begin with its tag.
//!
//! The basic idea is simple: to find the tag in `{"input":{"a":[1,2]},"type":"tool_use"}`, a [`Cursor`] skips the value of `input`: it only
//! looks for quotes and brackets. In invalid JSON it may find a wrong tag, but then the reader cannot read the object as that tag's class.
// The operations are inlined into one function per engine, because only this function may use vector instructions.
#![allow(clippy::inline_always)]

use crate::kinds::cursor::Cursor;
use crate::simd::{run, Engine, Level, Operation};

/// Returns the index after the value at `at`. If the value is not valid JSON, returns `None` or any index in the line.
pub fn skip(data: &[u8], at: usize) -> Option<usize> {
    run(Level::Fast, Skip { data, at })
}

/// Returns the string value of a key in the object at `at`. The key may be anywhere in the object. Returns `None` if the object does not
/// have the key, or if the value is not a string or has escapes. If the object is not valid JSON, the result may be wrong.
pub fn find_tag<'a>(data: &'a [u8], at: usize, key: &[u8]) -> Option<&'a [u8]> {
    run(Level::Fast, FindTag { data, at, key })
}

struct Skip<'a> {
    data: &'a [u8],
    at: usize,
}

impl Operation for Skip<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Option<usize> {
        let mut cursor = Cursor::new(self.data, self.at);
        cursor.value(engine)?;
        Some(cursor.at)
    }
}

struct FindTag<'a, 'k> {
    data: &'a [u8],
    at: usize,
    key: &'k [u8],
}

impl<'a> Operation for FindTag<'a, '_> {
    type Output = Option<&'a [u8]>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Option<&'a [u8]> {
        let mut cursor = Cursor::new(self.data, self.at + 1);
        loop {
            cursor.space();
            cursor.take(b'"')?;
            let name = cursor.string(engine)?;
            cursor.space();
            cursor.take(b':')?;
            cursor.space();
            if name.of(self.data) == self.key {
                cursor.take(b'"')?;
                let tag = cursor.string(engine)?;
                return (!tag.escaped).then(|| tag.of(self.data));
            }
            cursor.value(engine)?;
            cursor.space();
            cursor.take(b',')?;
        }
    }
}
