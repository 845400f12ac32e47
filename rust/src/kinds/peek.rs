//! Finds the kinds of the lines in a block.
//!
//! The basic idea is simple: the lines `{"type":"user"}`, `{"type":"result"}` and `{"type":"user"}` have the kinds `user` and `result`, and
//! the ids 0, 1 and 0. A line that resembles a recent line is compared with a template; any other line is scanned.
//!
//! # Costs
//!
//! The time is linear in the length of the data. A line of 285 bytes that fits a template takes 15 ns with AVX2, and 30 ns without. A line
//! from recorded sessions (830 bytes on average) takes 270 ns with AVX2, and 410 ns without. A line of 3.2 MB is scanned at these rates:
//!
//! | the line has | with AVX2 | without |
//! |---|---|---|
//! | one string without escapes | 23 GB/s | 6.5 GB/s |
//! | one string with an escape every 40 bytes | 15 GB/s | 4.9 GB/s |
//! | 80,000 small objects | 6.8 GB/s | 1.7 GB/s |
//!
//! A call allocates only if `data` holds more than one line.
// The operations are inlined into one function per engine, because only this function may use vector instructions.
#![allow(clippy::inline_always)]

use crate::kinds::scan::{scan, KindSpans};
use crate::kinds::string::Span;
use crate::kinds::template::{Fitting, Gaps, Templates, Visit};
use crate::simd::{run, Engine, Level, Operation};

/// The result of [`peek_lines`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peeked {
    /// The number of lines whose kinds were found. This many `ids` were written.
    pub lines: usize,
    /// The number of different kinds. This many `kinds` were written.
    pub kinds: usize,
    /// The total length of these lines in bytes, including their LFs. The next call begins after them.
    pub bytes: usize,
}

/// Finds the kind of each line of `data`. Blank lines count, and so does a last line without LF.
///
/// Sets `ids[i]` to the index in `kinds` of the kind of line i. The spans in `kinds` are in the first line of each kind. The kinds `user`
/// and `us\u0065r` count as different. Stops when `ids` is full, or before a line whose kind has no room in `kinds`. Uses at most 256 kinds.
pub fn peek_lines(data: &[u8], level: Level, ids: &mut [u8], kinds: &mut [KindSpans]) -> Peeked {
    let peek = Peek {
        data,
        ids,
        kinds,
        peeked: Peeked::default(),
        templates: Templates::default(),
    };
    run(level, peek)
}

struct Peek<'a> {
    data: &'a [u8],
    ids: &'a mut [u8],
    kinds: &'a mut [KindSpans],
    peeked: Peeked,
    templates: Templates<u8>,
}

impl Operation for Peek<'_> {
    type Output = Peeked;

    #[inline(always)]
    fn run<E: Engine>(mut self, engine: E) -> Peeked {
        loop {
            engine.call(FittingLines(&mut self));
            let is_over =
                self.peeked.bytes == self.data.len() || self.peeked.lines == self.ids.len();
            if is_over || !engine.call(OtherLine(&mut self)) {
                return self.peeked;
            }
        }
    }
}

/// Finds the kinds of the next lines until a line fits no template.
struct FittingLines<'p, 'a>(&'p mut Peek<'a>);

impl Operation for FittingLines<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) {
        let Peek {
            data,
            ids,
            peeked,
            templates,
            ..
        } = self.0;
        let room = ids.len();
        let mut ids = ids[peeked.lines..].iter_mut();
        (peeked.bytes, _) = templates.take_fitting(engine, data, peeked.bytes, WriteIds(&mut ids));
        peeked.lines = room - ids.len();
    }
}

struct WriteIds<'w, 'a>(&'w mut std::slice::IterMut<'a, u8>);

impl Visit<u8> for WriteIds<'_, '_> {
    #[inline(always)]
    fn visit(&mut self, known: &mut u8, _: usize, _: Fitting) -> bool {
        let Some(id) = self.0.next() else {
            return false;
        };
        *id = *known;
        true
    }
}

/// Scans the next line, which matches no template, to find its kind. Returns false if there is no memory to store the kind.
struct OtherLine<'p, 'a>(&'p mut Peek<'a>);

impl Operation for OtherLine<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> bool {
        let peek = self.0;
        let (data, from) = (peek.data, peek.peeked.bytes);
        let found = scan(engine, data, from);
        let Some(id) = peek.id(&found.kind) else {
            return false;
        };
        // No line follows the last one, so a template of it would not be used.
        if found.clear && found.end < data.len() && peek.templates.pays() {
            let gaps = Gaps::of(&found);
            peek.templates.add(data, from, found.end, gaps, false, id);
        }
        peek.ids[peek.peeked.lines] = id;
        peek.peeked.lines += 1;
        peek.peeked.bytes = found.end;
        true
    }
}

impl Peek<'_> {
    /// Returns the index of `kind` in `kinds`, and adds a new kind; `None` if there is no room.
    fn id(&mut self, kind: &KindSpans) -> Option<u8> {
        let (data, count) = (self.data, &mut self.peeked.kinds);
        let known = self.kinds[..*count]
            .iter()
            .position(|known| same(data, known, kind));
        let id = u8::try_from(known.unwrap_or(*count)).ok()?;
        if known.is_none() {
            *self.kinds.get_mut(*count)? = *kind;
            *count += 1;
        }
        Some(id)
    }
}

/// Returns whether two kinds have the same bytes.
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
    use proptest::prelude::*;

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
        let many: Vec<_> = (0..300)
            .map(|n| format!("{{\"type\":\"{n}\"}}\n"))
            .collect();
        let (ids, kinds, _) = peeked(&many.concat(), 1000, 1000);
        assert_eq!((ids.len(), kinds.len()), (256, 256));
    }

    proptest! {
        #[test]
        fn kinds_are_those_of_the_lines_one_by_one(data in crate::samples::lines(20), ids in 0..30_usize, most in 0..12_usize) {
            let mut results = Vec::new();
            for level in [Level::Plain, Level::Fast] {
                let mut written = vec![0; ids];
                let mut kinds = vec![KindSpans::default(); most];
                let found = peek_lines(&data, level, &mut written, &mut kinds);
                let lines: Vec<_> = data.split_inclusive(|&byte| byte == b'\n').collect();
                prop_assert!(found.lines <= lines.len());
                prop_assert_eq!(lines[..found.lines].concat().len(), found.bytes);
                prop_assert!(found.lines == lines.len().min(ids) || found.kinds == most);
                for (line, &id) in lines.iter().zip(&written[..found.lines]) {
                    let line = line.strip_suffix(b"\n").unwrap_or(line);
                    let expected = crate::oracle::kind(line).unwrap_or_default();
                    let kind = kinds[usize::from(id)];
                    for (tag, expected) in [kind.name, kind.subtype, kind.detail].into_iter().zip(expected) {
                        prop_assert_eq!(tag.is_some(), expected.is_some());
                        if let (Some(tag), Some(expected)) = (tag, expected) {
                            prop_assert!(crate::kinds::string::is(&data, tag, expected.as_bytes()));
                        }
                    }
                }
                results.push((found, written, kinds));
            }
            prop_assert_eq!(&results[0], &results[1]);
        }
    }
}
