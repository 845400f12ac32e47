//! Finds a line's kind by its structure.

pub mod peek;
pub mod scan;
pub mod string;
pub mod template;
