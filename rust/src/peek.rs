//! The kinds of the lines of a block, without anything else of them.

use crate::scan::{scan, KindSpans, Span};
use crate::simd::{run, Engine, Level, Operation};

/// What [`peek_lines`] wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peeked {
    /// Lines whose kinds were found: so many of `ids` are written.
    pub lines: usize,
    /// Kinds that they are of: so many of `kinds` are written.
    pub kinds: usize,
    /// Bytes of `data` that the lines take, with their LFs. The next call begins behind them.
    pub bytes: usize,
}

/// Finds the kind of each line of `data`; an unterminated last line is one, too, and so is a blank one.
///
/// `ids[i]` becomes the index in `kinds` of the kind of line i. The spans in `kinds` are those of the first line of the kind; kinds
/// that differ in their escapes only are different there. Stops when `ids` is full, or before a line whose kind
/// finds no place in `kinds`, of which 256 at most are used.
pub fn peek_lines(data: &[u8], level: Level, ids: &mut [u8], kinds: &mut [KindSpans]) -> Peeked {
    run(level, Peek { data, ids, kinds })
}

struct Peek<'a> {
    data: &'a [u8],
    ids: &'a mut [u8],
    kinds: &'a mut [KindSpans],
}

impl Operation for Peek<'_> {
    type Output = Peeked;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Peeked {
        let Self { data, ids, kinds } = self;
        let mut peeked = Peeked::default();
        while peeked.bytes < data.len() && peeked.lines < ids.len() {
            let found = scan(engine, data, peeked.bytes);
            let known = kinds[..peeked.kinds]
                .iter()
                .position(|kind| same(data, kind, &found.kind));
            let index = known.unwrap_or(peeked.kinds);
            let Ok(id) = u8::try_from(index) else {
                break;
            };
            if known.is_none() {
                let Some(place) = kinds.get_mut(index) else {
                    break;
                };
                *place = found.kind;
                peeked.kinds += 1;
            }
            ids[peeked.lines] = id;
            peeked.lines += 1;
            peeked.bytes = found.end;
        }
        peeked
    }
}

/// Whether two kinds are the same, byte for byte.
#[inline]
fn same(data: &[u8], one: &KindSpans, other: &KindSpans) -> bool {
    let same = |one: Option<Span>, other: Option<Span>| match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.of(data) == other.of(data),
        _ => false,
    };
    same(one.detail, other.detail) && same(one.subtype, other.subtype) && same(one.name, other.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peeked(data: &str, ids: usize, kinds: usize) -> (Vec<u8>, Vec<String>, usize) {
        let both = [Level::Plain, Level::Fast].map(|level| {
            let mut ids = vec![0; ids];
            let mut kinds = vec![KindSpans::default(); kinds];
            let found = peek_lines(data.as_bytes(), level, &mut ids, &mut kinds);
            ids.truncate(found.lines);
            let text = |kind: &KindSpans| {
                kind.name
                    .map_or("", |tag| {
                        std::str::from_utf8(tag.of(data.as_bytes())).unwrap()
                    })
                    .to_owned()
            };
            (
                ids,
                kinds[..found.kinds].iter().map(text).collect::<Vec<_>>(),
                found.bytes,
            )
        });
        assert_eq!(both[0], both[1]);
        let [one, _] = both;
        one
    }

    #[test]
    fn each_line_has_a_kind() {
        let data =
            "{\"type\":\"a\"}\n\n{\"type\":\"b\"}\r\n{\"type\":\"a\",\"x\":1}\n{\"type\":\"a\"}";
        let names = ["a", "", "b"].map(str::to_owned).to_vec();
        assert_eq!(peeked(data, 9, 9), (vec![0, 1, 2, 0, 0], names, data.len()));
        assert_eq!(peeked("", 9, 9), (vec![], vec![], 0));
    }

    #[test]
    fn it_stops_when_either_is_full() {
        let data = "{\"type\":\"a\"}\n{\"type\":\"a\"}\n{\"type\":\"b\"}\n";
        assert_eq!(peeked(data, 1, 9).2, 13);
        assert_eq!(peeked(data, 9, 1).2, 26);
        assert_eq!(peeked(data, 9, 0).2, 0);
        let many: String = (0..300)
            .map(|n| format!("{{\"type\":\"{n}\"}}\n"))
            .collect();
        let (ids, kinds, _) = peeked(&many, 1000, 1000);
        assert_eq!((ids.len(), kinds.len()), (256, 256));
    }
}
