//! Finds a line's kind by its structure.

pub(crate) mod cursor;
pub mod peek;
pub mod scan;
pub mod string;
pub mod template;
