//! A buffer and a filter: a stream cut anywhere against the oracle, chunk by chunk; with vectors and without.
#![no_main]

use claude_wire::filter::Filter;
use claude_wire::lines::buffer::{Bom, Buffer, HEAD_BYTES};
use claude_wire::lines::step::Step;
use claude_wire::simd::Level;
use libfuzzer_sys::fuzz_target;

const ONLY: [&str; 3] = ["stream_event/content_block_delta", "result", "system/init"];

const DELTA: &[u8] = b"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\"}}}\n";

/// What a line became: itself, perhaps with others; or its head and its length, if it is above the limit.
#[derive(Debug, PartialEq)]
enum Found {
    Kept(Vec<u8>),
    TooLong(Vec<u8>, u64),
}

fuzz_target!(|input: &[u8]| {
    // The first bytes say how: options, the limit, and two lengths of chunks that take turns.
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
    // With deltas in front, for which merging begins.
    let earned_before = DELTA.repeat(if how & 8 == 0 { 0 } else { 40 });
    let data = &[&earned_before, data].concat();
    let scale = if how & 4 == 0 { 1 } else { 16 };
    let mut sizes = [*one, *other]
        .map(|size| 1 + scale * usize::from(size))
        .into_iter()
        .cycle();

    let earns = coalesce && names.is_none();
    let mut model = if earns {
        oracle::Filter::earning(max_line)
    } else {
        oracle::Filter::new(names, coalesce, max_line)
    };
    let mut streams = [Level::Fast, Level::Plain].map(|level| {
        let filter = if earns {
            Filter::earning(level)
        } else {
            Filter::new(names, coalesce, level)
        };
        (Buffer::new(max_line, Bom::Skip), filter)
    });
    // Where the stream's mark is no part of a line any more.
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
            let begun = line_start < at;
            line_start = complete;
            expected_of(&mut model, &lines, begun, max_line)
        } else {
            Vec::new()
        };
        for (buffer, filter) in &mut streams {
            assert_eq!(fed(buffer, filter, data, at, end), expected);
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
        let found = match filter.close(&mut buffer).unwrap() {
            Step::Nothing => None,
            Step::Carry { line, .. } => Some(Found::Kept(line.to_vec())),
            Step::TooLong { head, length, .. } => Some(Found::TooLong(head.to_vec(), length)),
            step => panic!("{step:?}"),
        };
        if data.len() >= 3 || !b"\xef\xbb\xbf".starts_with(data) {
            assert_eq!(found, expected);
        }
    }
});

/// What comes out of the lines that a chunk completes; those above the limit are looked at by nobody.
fn expected_of(
    model: &mut oracle::Filter,
    lines: &[&[u8]],
    mut begun: bool,
    max_line: usize,
) -> Vec<Found> {
    let mut found = Vec::new();
    for part in lines.split_inclusive(|line| line.len() > max_line) {
        let (part, long) = match part {
            [part @ .., long] if long.len() > max_line => (part, Some(long)),
            part => (part, None),
        };
        let kept = model.feed(part, begun).lines;
        begun = false;
        found.extend(kept.into_iter().map(|(_, line)| Found::Kept(line)));
        found.extend(long.map(|long| {
            let head = long[..long.len().min(HEAD_BYTES)].to_vec();
            Found::TooLong(head, long.len() as u64)
        }));
    }
    found
}

fn fed(
    buffer: &mut Buffer,
    filter: &mut Filter,
    data: &[u8],
    mut at: usize,
    end: usize,
) -> Vec<Found> {
    let mut found = Vec::new();
    while at < end {
        let start = at;
        let (consumed, step) = filter.next(buffer, &data[at..end]).unwrap();
        assert!(consumed > 0);
        at += consumed;
        note(step, data, start, &mut found);
        if matches!(step, Step::Carry { .. }) && at < end {
            // As the C border does: the rest of the chunk in the same call.
            let (consumed, step) = filter.follow(buffer, &data[at..end]).unwrap();
            note(step, data, at, &mut found);
            at += consumed;
        }
    }
    found
}

/// What a step from `start` of the data on gave. What it says of the data before it is checked.
fn note(step: Step, data: &[u8], start: usize, found: &mut Vec<Found>) {
    let place = match step {
        Step::Nothing => return,
        Step::Carry { line, place, .. } => {
            found.push(Found::Kept(line[..line.len() - 1].to_vec()));
            place
        }
        Step::Body { end, place, .. } => {
            let lines = oracle::lines(&data[start..start + end]).into_iter();
            found.extend(lines.map(|line| Found::Kept(line.to_vec())));
            place
        }
        Step::Filtered {
            block,
            lines,
            place,
            defects,
        } => {
            assert_eq!(
                defects,
                claude_wire::lines::frame::check_plain(block, usize::MAX).defects
            );
            let kept = oracle::lines(block);
            assert_eq!(kept.len(), lines);
            found.extend(kept.into_iter().map(|line| Found::Kept(line.to_vec())));
            place
        }
        Step::TooLong {
            head,
            length,
            place,
        } => {
            found.push(Found::TooLong(head.to_vec(), length));
            place
        }
    };
    let before = &data[..usize::try_from(place.offset).unwrap()];
    let line_number = 1 + oracle::lines(before).len() as u64;
    assert_eq!(place.line_number, line_number);
}
