//! Lines: where they end, and whether a block of them may be decoded at once. Knows bytes and line feeds, not JSON.

pub mod buffer;
pub mod frame;
pub mod step;
