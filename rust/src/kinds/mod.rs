//! Finds the kind of a line by its structure.

pub mod peek;
pub mod scan;
pub mod string;
pub mod template;
