//! Searches and comparisons of bytes, in vectors where the processor has them.
//!
//! An [`Operation`] is written once, over any [`Engine`], and run by [`run`], which picks the engine: [`Level::Fast`] takes AVX2 if
//! the processor has it, [`Level::Plain`] and everything else words of 8 bytes. All engines give the same answers; the
//! tests compare them.
//!
//! This module knows bytes, which bytes end a run within a JSON string, and how such a string escapes them. Only this folder and `ffi`
//! have `unsafe`.
//!
//! [`Operation`]: crate::simd::Operation
//! [`Engine`]: crate::simd::Engine
//! [`run`]: crate::simd::run
//! [`Level::Fast`]: crate::simd::Level::Fast
//! [`Level::Plain`]: crate::simd::Level::Plain
#![allow(unsafe_code)]
// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod output;
mod plain;
mod short;

pub use output::{escape_of, Output, Words};
pub use plain::Plain;
pub use short::{begins, copy_plain, difference, string_end, Ahead, Key, PAD};

/// How much of the processor to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Words of 8 bytes, on every processor.
    Plain,
    /// The widest vectors that the processor has, chosen at run time.
    Fast,
}

/// Most bytes that [`Engine::line_feeds`] looks at in one call.
pub const PAGE: usize = 2048;

/// The bytes of the widest vector.
const MOST_WIDTH: usize = 32;

/// The searches that a scanner is made of.
pub trait Engine: Copy {
    /// What is known of the bytes around the last string, so that they need not be looked at again for the next.
    type Ahead: Default;

    /// The end of the string whose contents begin at `at`: its closing quote, or the LF before it, or the end of the
    /// data; and whether there is a backslash before. The opening quote does not follow a backslash. `ahead` is of the same
    /// data and of no later place.
    fn string_end(self, ahead: &mut Self::Ahead, data: &[u8], at: usize) -> (usize, bool);

    /// The end of the array or object whose first bracket is at `at`. Brackets are counted, strings skipped.
    ///
    /// # Errors
    ///
    /// Where the LF is that comes before its end, or the end of the data.
    fn container_end(self, data: &[u8], at: usize) -> Result<usize, usize>;

    /// Index of the first `"`, `\` or byte below 0x20 of `data` from `at` on; `data.len()` if there is none.
    fn special(self, data: &[u8], at: usize) -> usize;

    /// As [`special`](Self::special), and whether all bytes before it are ASCII.
    fn special_ascii(self, data: &[u8], at: usize) -> (usize, bool);

    /// Whether `data` from `at` on begins with `part`.
    fn begins(self, data: &[u8], at: usize, part: &[u8]) -> bool;

    /// Writes the indexes of the LFs of `data`, which are [`PAGE`] bytes at most, to `found`; returns their number, and
    /// whether all of `data` is ASCII.
    fn line_feeds(self, data: &[u8], found: &mut [u16; PAGE]) -> (usize, bool);

    /// Index of the first LF of `data`, or its length; and whether all bytes before it are ASCII.
    fn line_end(self, data: &[u8]) -> (usize, bool);

    /// Copies bytes of `data` from `at` on, up to the first that a string does not have as it is, or that is `also`, or to where fewer
    /// are left than a vector has. Returns its index, and whether it is such a byte.
    ///
    /// # Safety
    ///
    /// `to` has room for as many bytes as there are from `at` on, and for 32 more.
    unsafe fn copy_plain(self, data: &[u8], at: usize, to: *mut u8, also: u8) -> (usize, bool);

    /// Runs `operation` in a function of its own, which keeps the caller's registers and stack small.
    fn call<O: Operation>(self, operation: O) -> O::Output;
}

/// Work to be done by some [`Engine`]. Implementations say `#[inline(always)]`, so that vectors stay in registers.
pub trait Operation {
    /// What comes of it.
    type Output;
    /// Does it.
    fn run<E: Engine>(self, engine: E) -> Self::Output;
}

/// Does `operation` at `level`.
#[inline]
pub fn run<O: Operation>(level: Level, operation: O) -> O::Output {
    #[cfg(target_arch = "x86_64")]
    if level == Level::Fast
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has AVX2 and the bit instructions of its time.
        return unsafe { run_avx2(operation) };
    }
    let _ = level;
    operation.run(Plain)
}

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
