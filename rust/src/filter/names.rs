//! The names of the kinds that are wanted (`only`).

use crate::kinds::scan::KindSpans;
use crate::kinds::string::is;

/// Names of kinds: each a type, or a type and a subtype, or these and a detail, with slashes between, such as
/// `stream_event/content_block_delta/text_delta`.
#[derive(Debug)]
pub struct Names(Vec<Vec<Vec<u8>>>);

impl Names {
    /// Takes the names apart.
    #[must_use]
    pub fn new(names: &[&str]) -> Self {
        let parts = |name: &&str| name.split('/').map(Into::into).collect();
        Self(names.iter().map(parts).collect())
    }

    /// Whether a line of this kind, whose tags stand in `data`, is wanted: its kind begins with one of the names, or is unclear.
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
