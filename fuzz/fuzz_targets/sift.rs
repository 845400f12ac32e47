//! A buffer with a sieve: a stream cut anywhere against the reference, chunk by chunk; with vectors and without.
#![no_main]

use claude_wire::buffer::{self, Bom, Buffer, HEAD_BYTES};
use claude_wire::sieve::Sieve;
use claude_wire::sift::{self, Step};
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
    let mut earning = reference::Earning::default();
    let mut streams = [Level::Fast, Level::Plain].map(|level| {
        let sieve = if earns {
            Sieve::earning(level)
        } else {
            Sieve::new(names, coalesce, level)
        };
        (Buffer::new(max_line, Bom::Skip), sieve)
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
            if earns {
                earned(&lines, &mut earning, begun, max_line)
            } else {
                sifted(&lines, names, coalesce, max_line)
            }
        } else {
            Vec::new()
        };
        for (buffer, sieve) in &mut streams {
            assert_eq!(fed(buffer, sieve, data, at, end), expected);
        }
        at = end;
    }

    let rest = data.get(line_start..).unwrap_or_default();
    let expected = if rest.len() > max_line {
        Some(Found::TooLong(
            rest[..rest.len().min(HEAD_BYTES)].to_vec(),
            rest.len() as u64,
        ))
    } else if rest.is_empty() || names.is_some_and(|names| reference::skipped(rest, names)) {
        None
    } else {
        Some(Found::Kept(rest.to_vec()))
    };
    for (mut buffer, mut sieve) in streams {
        let found = match sift::close(&mut buffer, &mut sieve).unwrap() {
            buffer::Step::Nothing => None,
            buffer::Step::Carry { line, .. } => Some(Found::Kept(line.to_vec())),
            buffer::Step::TooLong { head, length, .. } => {
                Some(Found::TooLong(head.to_vec(), length))
            }
            step => panic!("{step:?}"),
        };
        if data.len() >= 3 || !b"\xef\xbb\xbf".starts_with(data) {
            assert_eq!(found, expected);
        }
    }
});

/// Lines above the limit are looked at by nobody.
fn earned(
    lines: &[&[u8]],
    earning: &mut reference::Earning,
    mut begun: bool,
    max_line: usize,
) -> Vec<Found> {
    let mut found = Vec::new();
    for part in lines.split_inclusive(|line| line.len() > max_line) {
        let (part, long) = match part {
            [part @ .., long] if long.len() > max_line => (part, Some(long)),
            part => (part, None),
        };
        let kept = earning.feed(part, begun, max_line);
        begun = false;
        found.extend(kept.into_iter().map(Found::Kept));
        found.extend(long.map(|long| {
            let head = long[..long.len().min(HEAD_BYTES)].to_vec();
            Found::TooLong(head, long.len() as u64)
        }));
    }
    found
}

fn sifted(lines: &[&[u8]], names: Option<&[&str]>, coalesce: bool, max_line: usize) -> Vec<Found> {
    let mut found = Vec::new();
    for part in lines.split_inclusive(|line| line.len() > max_line) {
        let (part, long) = match part {
            [part @ .., long] if long.len() > max_line => (part, Some(long)),
            part => (part, None),
        };
        let kept = if coalesce {
            reference::coalesced(part, names, max_line)
        } else {
            let wanted = |line: &&&[u8]| {
                !reference::is_blank(line)
                    && !names.is_some_and(|names| reference::skipped(line, names))
            };
            part.iter()
                .filter(wanted)
                .map(|line| line.to_vec())
                .collect()
        };
        found.extend(kept.into_iter().map(Found::Kept));
        found.extend(long.map(|long| {
            Found::TooLong(
                long[..long.len().min(HEAD_BYTES)].to_vec(),
                long.len() as u64,
            )
        }));
    }
    found
}

fn fed(
    buffer: &mut Buffer,
    sieve: &mut Sieve,
    data: &[u8],
    mut at: usize,
    end: usize,
) -> Vec<Found> {
    let mut found = Vec::new();
    while at < end {
        if let Some(next) = sift::pass(buffer, sieve, &data[at..end]).unwrap() {
            assert!(next.consumed > 0);
            let start = at;
            at += next.consumed;
            match next.step {
                buffer::Step::Nothing => (),
                buffer::Step::Carry { line, .. } => {
                    found.push(Found::Kept(line[..line.len() - 1].to_vec()));
                    if at < end {
                        // As the C border does: the rest of the chunk in the same call.
                        if let Some(next) = sift::follow(buffer, sieve, &data[at..end]).unwrap() {
                            past(&next.step, &data[at..end], &mut found);
                            at += next.consumed;
                        }
                    }
                }
                step => past(&step, &data[start..end], &mut found),
            }
            continue;
        }
        let next = sift::next(buffer, sieve, &data[at..end]).unwrap();
        assert!(next.consumed > 0);
        at += next.consumed;
        let place = match next.step {
            Step::Nothing => continue,
            Step::Sifted {
                block,
                lines,
                place,
                defects,
            } => {
                assert_eq!(
                    defects,
                    claude_wire::frame::check_plain(block, usize::MAX).defects
                );
                let kept: Vec<_> = block.split_inclusive(|&byte| byte == b'\n').collect();
                assert_eq!(kept.len(), lines);
                found.extend(
                    kept.iter()
                        .map(|line| Found::Kept(line[..line.len() - 1].to_vec())),
                );
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
        assert_eq!(
            place.line_number,
            1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64
        );
    }
    found
}

/// What a step past the sieve gave, but for a carried line.
fn past(step: &buffer::Step, rest: &[u8], found: &mut Vec<Found>) {
    match *step {
        buffer::Step::Body { end, .. } => {
            let lines = rest[..end - 1].split(|&byte| byte == b'\n');
            found.extend(lines.map(|line| Found::Kept(line.to_vec())));
        }
        buffer::Step::TooLong { head, length, .. } => {
            found.push(Found::TooLong(head.to_vec(), length));
        }
        _ => (),
    }
}
