//! The kind of a line, by its structure. Knows the tags of a line, not what is done with lines.

pub mod peek;
pub mod scan;
pub mod string;
pub mod template;
