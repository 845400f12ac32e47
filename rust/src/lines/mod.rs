//! Finds where lines end, and keeps what a chunk cuts. This module knows bytes and line feeds, not JSON.

pub mod buffer;
pub mod place;
