//! Where lines end, and whether a block of lines may be decoded at once. This module knows bytes and line feeds, not JSON.

pub mod buffer;
pub mod frame;
pub mod step;
