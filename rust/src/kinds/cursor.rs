//! [`Cursor`]: moves through the JSON of a line without parsing it.
//!
//! The basic idea is simple: a string ends at the next quote that is not escaped, and a container ends at the bracket that matches its
//! opening bracket. The cursor trusts everything between them. Every search ends at the LF of the line.
// The operations are inlined into one function per engine, because only this function may use vector instructions.
#![allow(clippy::inline_always)]

use super::string::Span;
use crate::simd::Engine;

/// A place in the data. Its methods move it, and return `None` if the line does not have the structure of JSON there.
pub(crate) struct Cursor<'a, E: Engine> {
    pub data: &'a [u8],
    /// The index of the next byte.
    pub at: usize,
    ahead: E::Ahead,
}

/// A value that [`Cursor::value`] moved past. Its first byte determines the type.
pub(crate) enum Passed {
    Text(Span),
    /// A number, `true`, `false` or `null`, or invalid JSON without brackets or quotes.
    Word,
    Object,
    Array,
}

impl<'a, E: Engine> Cursor<'a, E> {
    #[inline(always)]
    pub fn new(data: &'a [u8], at: usize) -> Self {
        Self {
            data,
            at,
            ahead: E::Ahead::default(),
        }
    }

    /// Returns the next byte, or an LF at the end of the data.
    #[inline(always)]
    pub fn byte(&self) -> u8 {
        self.data.get(self.at).map_or(b'\n', |&byte| byte)
    }

    /// Moves past `byte`.
    #[inline(always)]
    pub fn take(&mut self, byte: u8) -> Option<()> {
        if self.byte() != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// Moves past white space.
    #[inline(always)]
    pub fn space(&mut self) {
        if self.byte() <= b' ' {
            self.at = space(self.data, self.at);
        }
    }

    /// Moves from after the opening quote of a string to after its closing quote.
    #[inline(always)]
    pub fn string(&mut self, engine: E) -> Option<Span> {
        let start = self.at;
        let (end, escaped) = engine.string_end(&mut self.ahead, self.data, start);
        self.at = end;
        self.take(b'"')?;
        Some(Span {
            start,
            len: end - start,
            escaped,
        })
    }

    /// Moves past any value.
    #[inline(always)]
    pub fn value(&mut self, engine: E) -> Option<Passed> {
        match self.byte() {
            b'"' => {
                self.at += 1;
                self.string(engine).map(Passed::Text)
            }
            open @ (b'{' | b'[') => {
                let end = engine.container_end(self.data, self.at);
                self.at = end.unwrap_or_else(|line_end| line_end);
                end.ok()?;
                Some(if open == b'{' {
                    Passed::Object
                } else {
                    Passed::Array
                })
            }
            byte if ends_word(byte) => None,
            _ => {
                while !ends_word(self.byte()) {
                    self.at += 1;
                }
                Some(Passed::Word)
            }
        }
    }
}

/// Returns the index of the first byte at or after `at` that is not a space, a tab or a CR.
#[inline(always)]
pub(crate) fn space(data: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r') = data.get(at) {
        at += 1;
    }
    at
}

/// Returns true for the bytes that end a number or a word: white space, brackets, quotes, `,` and `:`. A word never begins with one of
/// these bytes.
#[inline(always)]
pub(crate) fn ends_word(byte: u8) -> bool {
    const ENDS: [bool; 256] = {
        let mut ends = [false; 256];
        let bytes = b" \t\r\n,]}\"{[:";
        let mut at = 0;
        while at < bytes.len() {
            ends[bytes[at] as usize] = true;
            at += 1;
        }
        ends
    };
    ENDS[usize::from(byte)]
}
