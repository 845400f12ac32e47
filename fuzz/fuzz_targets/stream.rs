//! Fuzzes a line buffer together with a filter: a stream in chunks of any sizes must give the same lines as the oracle after each chunk, with
//! vectors and without.
#![no_main]

use claude_wire::filter::Filter;
use claude_wire::lines::buffer::{Bom, Buffer, HEAD_BYTES};
use claude_wire::lines::step::Step;
use claude_wire::simd::Level;
use libfuzzer_sys::fuzz_target;

const ONLY: [&str; 3] = ["stream_event/content_block_delta", "result", "system/init"];

/// A line that came out: one that was kept, perhaps merged; or one over the limit, of which only the first bytes and the length are known.
#[derive(Debug, PartialEq)]
enum Found {
    Kept(Vec<u8>),
    TooLong(Vec<u8>, u64),
}

fuzz_target!(|input: &[u8]| {
    // The first bytes are the options, the limit of a line, and two sizes of chunks that alternate.
    let [how, limit, one, other, data @ ..] = input else {
        return;
    };
    let names: Option<&[&str]> = (how & 1 == 0).then_some(&ONLY);
    let coalesce = how & 2 == 0;
    let max_line = if *limit == 255 {
        usize::MAX
    } else {
        64 + 4 * usize::from(*limit)
    };
    let scale = if how & 4 == 0 { 1 } else { 16 };
    let mut sizes = [*one, *other]
        .map(|size| 1 + scale * usize::from(size))
        .into_iter()
        .cycle();

    let mut model = oracle::Filter::new(names, coalesce, max_line);
    let mut streams = [Level::Fast, Level::Plain].map(|level| {
        let mut filter = Filter::new(names, coalesce, level);
        filter.credit = u32::MAX / 2; // Enough credit that the filter never pauses merging.
        (Buffer::new(max_line, Bom::Skip), filter)
    });
    // For each stream, the number of lines that its steps have passed.
    let mut passed = [0; 2];
    // The first line begins after a byte order mark.
    let mut line_start = if data.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let mut at = 0;
    while at < data.len() {
        let end = data.len().min(at + sizes.next().unwrap());
        let complete = data[..end]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let expected = if complete > line_start {
            let mut lines: Vec<_> = data[line_start..complete]
                .split(|&byte| byte == b'\n')
                .collect();
            lines.pop();
            line_start = complete;
            expected_of(&mut model, &lines, max_line)
        } else {
            Vec::new()
        };
        for ((buffer, filter), passed) in streams.iter_mut().zip(&mut passed) {
            assert_eq!(fed(buffer, filter, data, at, end, passed), expected);
            assert_eq!(*passed, oracle::lines(&data[..complete]).len());
        }
        at = end;
    }

    let rest = data.get(line_start..).unwrap_or_default();
    let expected = if rest.len() > max_line {
        Some(Found::TooLong(
            rest[..rest.len().min(HEAD_BYTES)].to_vec(),
            rest.len() as u64,
        ))
    } else if rest.is_empty() || oracle::is_skipped(rest, names) {
        None
    } else {
        Some(Found::Kept(rest.to_vec()))
    };
    for (mut buffer, mut filter) in streams {
        let found = match filter.end(&mut buffer).unwrap() {
            Step::Nothing { .. } => None,
            Step::Carry { line, .. } => Some(Found::Kept(line.to_vec())),
            Step::TooLong { head, length, .. } => Some(Found::TooLong(head.to_vec(), length)),
            step => panic!("{step:?}"),
        };
        if data.len() >= 3 || !b"\xef\xbb\xbf".starts_with(data) {
            assert_eq!(found, expected);
        }
    }
});

/// Returns what must come out of the lines that a chunk completes. The filter does not see lines over the limit.
fn expected_of(model: &mut oracle::Filter, lines: &[&[u8]], max_line: usize) -> Vec<Found> {
    let mut found = Vec::new();
    for part in lines.split_inclusive(|line| line.len() > max_line) {
        let (part, long) = match part {
            [part @ .., long] if long.len() > max_line => (part, Some(long)),
            part => (part, None),
        };
        let kept = model.feed(part).lines;
        found.extend(kept.into_iter().map(|(_, line)| Found::Kept(line)));
        found.extend(long.map(|long| {
            let head = long[..long.len().min(HEAD_BYTES)].to_vec();
            Found::TooLong(head, long.len() as u64)
        }));
    }
    found
}

/// Feeds one chunk, `data[at..end]`, and returns the lines that come out. Asserts that each step reports its place in the
/// stream correctly.
fn fed(
    buffer: &mut Buffer,
    filter: &mut Filter,
    data: &[u8],
    mut at: usize,
    end: usize,
    passed: &mut usize,
) -> Vec<Found> {
    let mut found = Vec::new();
    let begin = at;
    while at < end {
        let start = at;
        let (consumed, step) = filter.next(buffer, &data[at..end], at == begin).unwrap();
        assert!(consumed > 0);
        at += consumed;
        let filtered = matches!(step, Step::Filtered { .. });
        let (first, lines) = note(step, data, start, at, &mut found);
        assert_eq!(oracle::lines(&data[..first]).len(), *passed);
        for place in filter.places().iter().filter(|_| filtered) {
            let before = &data[..first + usize::try_from(place.offset).unwrap()];
            let number = *passed + usize::try_from(place.lines).unwrap();
            assert_eq!(oracle::lines(before).len(), number);
        }
        *passed += lines;
    }
    found
}

/// Appends the lines of a step, which consumed `data[start..at]`, to `found`. Returns the start of the first line that it passed, and how many
/// lines it passed.
fn note(
    step: Step,
    data: &[u8],
    start: usize,
    at: usize,
    found: &mut Vec<Found>,
) -> (usize, usize) {
    match step {
        Step::Nothing { passed } => {
            let lines = oracle::lines(&data[..at]).len();
            let first = data[..at]
                .split_inclusive(|&byte| byte == b'\n')
                .take(lines - passed)
                .map(<[u8]>::len)
                .sum();
            (first, passed)
        }
        Step::Carry { line, .. } => {
            if !is_blank(line) {
                found.push(Found::Kept(line[..line.len() - 1].to_vec()));
            }
            (at - line.len(), 1)
        }
        Step::Body { end, lines, .. } => {
            let all = oracle::lines(&data[start..start + end]).into_iter();
            let all = all.filter(|line| !is_blank(line));
            found.extend(all.map(|line| Found::Kept(line.to_vec())));
            (start, lines)
        }
        Step::Filtered {
            block,
            lines,
            passed,
            begun,
            defects,
        } => {
            assert_eq!(
                defects,
                claude_wire::lines::frame::check_plain(block, usize::MAX).defects
            );
            let kept = oracle::lines(block);
            assert_eq!(kept.len(), lines);
            found.extend(kept.into_iter().map(|line| Found::Kept(line.to_vec())));
            (start - begun, passed)
        }
        Step::TooLong { head, length } => {
            found.push(Found::TooLong(head.to_vec(), length));
            (at - usize::try_from(length).unwrap() - 1, 1)
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| b" \t\r\n".contains(byte))
}
