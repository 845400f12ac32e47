//! Searches and compares bytes, with vector instructions if the processor has them.
//!
//! The basic idea is simple: code that searches is an [`Operation`], written once for any [`Engine`]. [`run`] chooses the engine at
//! run time, and compiles the operation for each:
//!
//! ```text
//! run(Level::Fast,  operation)   the engine with AVX2, if the processor has it, else Plain
//! run(Level::Plain, operation)   words of 8 bytes, on every processor
//! ```
//!
//! All engines return the same results; the tests compare them. [`string_end`] and the other functions in `short` do not use an engine: for
//! strings of a few bytes, choosing one would cost more than it saves.
//!
//! This module handles bytes, and knows which bytes a JSON string must escape. It does not know about lines or messages. Only this folder
//! and `ffi` contain `unsafe` code.
//!
//! [`Operation`]: crate::simd::Operation
//! [`string_end`]: crate::simd::string_end
//! [`Engine`]: crate::simd::Engine
//! [`run`]: crate::simd::run
//! [`Level::Fast`]: crate::simd::Level::Fast
//! [`Level::Plain`]: crate::simd::Level::Plain
#![allow(unsafe_code)]
// Every operation must be inlined into `run_avx2`: the compiler emits AVX2 instructions only in this function.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
mod avx2;
mod output;
mod plain;
mod short;
#[cfg(target_arch = "x86_64")]
mod steps;
mod utf8;

pub use output::{Ascii, Few, Output, Pen, Prefix, Unit, Words};
pub use plain::Plain;
pub use short::{begins, copy_plain, difference, escape_len, string_end, Ahead, Key, PAD};
pub use utf8::Utf8;

/// Which instructions of the processor to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Words of 8 bytes, on every processor.
    Plain,
    /// The widest vectors that the processor has, determined at run time.
    Fast,
}

/// Multiplying by this odd number mixes all bits of a word into the high bits (Fibonacci hashing).
pub const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of bytes in the widest vector of any engine.
const MOST_WIDTH: usize = 32;

/// The searches that an [`Operation`] can use, implemented for one kind of processor.
pub trait Engine: Copy {
    /// What [`string_end`](Self::string_end) remembers about the bytes that it loaded, so that the search for the next string does not load
    /// them again.
    type Ahead: Default;

    /// Finds the end of a string whose content begins at `at`, after a quote that is not escaped.
    ///
    /// Returns the index of the closing quote, or of an LF before it, or the length of the data; and whether the string has a backslash.
    /// `ahead` must be new, or come from an earlier call with the same `data` and an `at` that was not larger.
    fn string_end(self, ahead: &mut Self::Ahead, data: &[u8], at: usize) -> (usize, bool);

    /// Returns the index after the array or object whose opening bracket is at `at`. It counts brackets and skips strings.
    ///
    /// # Errors
    ///
    /// If the closing bracket is missing, the error is the index of the LF, or the length of the data.
    fn container_end(self, data: &[u8], at: usize) -> Result<usize, usize>;

    /// Returns the index of the first `"`, `\` or byte below 0x20 in `data` at or after `at`; `data.len()` if there is none.
    fn special(self, data: &[u8], at: usize) -> usize;

    /// Does the same as [`special`](Self::special), and also returns whether all bytes from `at` up to that index are ASCII.
    fn special_ascii(self, data: &[u8], at: usize) -> (usize, bool);

    /// Returns the index of the closing quote of a string, and whether all bytes from `at` up to it are ASCII. The contents of the string,
    /// or the rest of them, begin at `at`. Returns `None` if there is no closing quote, or if a control byte or an invalid escape comes
    /// first. A lone surrogate is a valid escape.
    #[inline(always)]
    fn valid_end(self, data: &[u8], at: usize) -> Option<(usize, bool)> {
        let (mut end, mut ascii) = self.special_ascii(data, at);
        while *data.get(end)? != b'"' {
            let (next, rest) = self.special_ascii(data, end + escape_len(data, end)?);
            (end, ascii) = (next, ascii && rest);
        }
        Some((end, ascii))
    }

    /// Returns true if `part` occurs in `data` at index `at`.
    fn begins(self, data: &[u8], at: usize, part: &[u8]) -> bool;

    /// The number of bytes that [`copy`](Self::copy) copies.
    const WIDTH: usize;

    /// Copies [`WIDTH`](Self::WIDTH) bytes of `data`, starting at `at`, to `to`; `None` if fewer are left. Returns a mask of the copied
    /// bytes that a JSON string must escape. With `UTF8`, the mask includes the first bytes of U+2028 and U+2029, and possibly other 0xe2
    /// bytes.
    ///
    /// # Safety
    ///
    /// `to` must have room for these bytes.
    unsafe fn copy<const UTF8: bool>(self, data: &[u8], at: usize, to: *mut u8) -> Option<u64>;

    /// Copies a short string to `to`. Returns false if the string has a byte that a JSON string must escape.
    ///
    /// # Safety
    ///
    /// The string must have at most 32 bytes. `to` must have room for the string, and for 16 bytes, because the function writes 16 bytes even
    /// if the string is shorter.
    unsafe fn copy_short(self, text: Ascii<'_>, to: *mut u8) -> bool;

    /// Does the same as [`copy_short`](Self::copy_short) for a longer string.
    ///
    /// # Safety
    ///
    /// The string must have 33 to 95 bytes, and `to` must have room for it.
    unsafe fn copy_medium(self, text: Ascii<'_>, to: *mut u8) -> bool;

    /// Decodes the first characters of `text`, and writes them to `to`. Returns how many bytes and how many characters it decoded: 0 if the
    /// engine has no instructions for it. The caller decodes the rest.
    ///
    /// # Safety
    ///
    /// `to` must have room for all characters of `text`, and a unit must have room for each of them.
    #[inline(always)]
    unsafe fn decode<U: Unit>(self, text: &str, to: *mut U) -> (usize, usize) {
        let _ = (text, to);
        (0, 0)
    }

    /// Runs `operation` in a separate function that is not inlined. The calling function then needs fewer registers and less stack.
    fn call<O: Operation>(self, operation: O) -> O::Output;
}

/// A computation that runs on any [`Engine`]. Implementations of `run` have `#[inline(always)]`, so that vectors stay in registers.
pub trait Operation {
    /// The result of the computation.
    type Output;
    /// Does the computation with the searches of `engine`.
    fn run<E: Engine>(self, engine: E) -> Self::Output;
}

/// Runs `operation` on the best engine that `level` allows.
#[inline]
pub fn run<O: Operation>(level: Level, operation: O) -> O::Output {
    #[cfg(target_arch = "x86_64")]
    if level == Level::Fast && has_avx2() {
        // SAFETY: `has_avx2` checked all five features that `run_avx2` requires.
        return unsafe { run_avx2(operation) };
    }
    let _ = level;
    operation.run(Plain)
}

/// Returns true if the processor has all features that [`run_avx2`] requires. False if the crate is built with `--cfg without_avx2`, to test
/// it as it is on other processors.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    // The five tests together take 1% of the time to write a prompt, so their result is kept.
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        !cfg!(without_avx2)
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    })
}

/// Runs `operation` on the engine with AVX2.
///
/// # Safety
///
/// The processor must have AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
unsafe fn run_avx2<O: Operation>(operation: O) -> O::Output {
    operation.run(avx2::Avx2::new())
}

#[cfg(test)]
mod tests;
