//! The names of the kinds to keep (`only`).

use crate::kinds::scan::KindSpans;
use crate::kinds::string::is;

/// Names of kinds. Each name is a type, optionally followed by a subtype and a detail, separated by slashes:
/// `stream_event/content_block_delta/text_delta`.
#[derive(Debug)]
pub struct Names(Vec<Vec<Vec<u8>>>);

impl Names {
    /// Splits each name at its slashes.
    #[must_use]
    pub fn new(names: &[&str]) -> Self {
        let parts = |name: &&str| name.split('/').map(Into::into).collect();
        Self(names.iter().map(parts).collect())
    }

    /// Returns whether to keep a line of this kind: its kind begins with one of the names, or is unclear. Its tags are spans of `data`.
    #[must_use]
    pub fn want(&self, data: &[u8], kind: &KindSpans) -> bool {
        let tags = [kind.name, kind.subtype, kind.detail];
        let begins = |name: &Vec<Vec<u8>>| {
            let mut parts = name.iter().zip(&tags);
            let all = parts.all(|(part, tag)| tag.is_some_and(|tag| is(data, tag, part)));
            name.len() <= tags.len() && all
        };
        kind.name.is_none() || self.0.iter().any(begins)
    }
}
