//! The unfinished line of a stream, and the places of lines. The code here handles bytes and line feeds, not JSON.

pub mod buffer;
pub mod place;
