//! Fuzzes the filter: with and without vectors, and for feeds with any number of lines, it must return the same lines as the oracle.
#![no_main]

use claude_wire::filter::Filter;
use claude_wire::lines::place::Place;
use claude_wire::simd::Level;
use libfuzzer_sys::fuzz_target;

const ONLY: [Option<&[&str]>; 4] = [
    None,
    Some(&["result", "assistant"]),
    Some(&["stream_event/content_block_delta/text_delta", "system/init"]),
    Some(&["stream_event", "control_request/can_use_tool", "a"]),
];

fuzz_target!(|input: &[u8]| {
    // The first three bytes are the options: the kinds and whether to merge, the maximum length of a line, and the number of lines per
    // feed.
    let [how, limit, lines_per_feed, data @ ..] = input else {
        return;
    };
    let names = ONLY[usize::from(how % 4)];
    let coalesce = how & 4 == 0;
    let max_line = if *limit == 255 {
        usize::MAX
    } else {
        256 + usize::from(*limit)
    };
    let lines_per_feed = usize::from(lines_per_feed % 32) + 1;

    let mut lines: Vec<_> = data.split(|&byte| byte == b'\n').collect();
    let unfinished = lines.pop().unwrap_or_default();
    lines.retain(|line| line.len() <= max_line);

    let mut filters = [Level::Fast, Level::Plain].map(|level| {
        let mut filter = Filter::new(names, coalesce, level);
        filter.credit = u32::MAX / 2; // Enough credit that the filter never pauses merging.
        filter
    });
    let mut model = oracle::Filter::new(names, coalesce, max_line);
    let [mut skipped, mut merged] = [0, 0];
    let mut start = Place::default();
    for feed in lines.chunks(lines_per_feed) {
        let expected = model.feed(feed);
        let place_of = |index: usize| Place {
            offset: start.offset + length(&feed[..index]),
            lines: start.lines + index as u64,
        };
        let lines = expected.lines.iter();
        let lines: Vec<_> = lines
            .map(|(index, line)| (place_of(*index), line.clone()))
            .collect();
        for filter in &mut filters {
            assert_eq!(take(filter, feed, max_line, start), lines);
        }
        skipped += expected.skipped as u64;
        merged += expected.merged as u64;
        start = place_of(feed.len());
    }

    let kept = !oracle::is_skipped(unfinished, names);
    for mut filter in filters {
        assert_eq!((filter.skipped, filter.merged), (skipped, merged));
        assert_eq!(filter.keeps_last(unfinished), kept);
    }
});

/// Returns the total length of lines in bytes, including their LFs.
fn length(lines: &[&[u8]]) -> u64 {
    lines.iter().map(|line| line.len() as u64 + 1).sum()
}

/// Filters the lines of one feed, which begins at `place`. Returns the lines that the filter lets through, and the place of each.
fn take(
    filter: &mut Filter,
    feed: &[&[u8]],
    max_line: usize,
    mut place: Place,
) -> Vec<(Place, Vec<u8>)> {
    let data: Vec<u8> = feed
        .iter()
        .flat_map(|line| [line, &b"\n"[..]].concat())
        .collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let taken = filter.take(&data[at..], max_line, place).unwrap();
        at += taken.bytes;
        place.offset += taken.bytes as u64;
        place.lines += taken.lines as u64;
        let merged = filter.close(|line, len, place| {
            found.push((place, line[..len - 1].to_vec()));
        });
        merged.unwrap();
        for line in oracle::lines(&data[at..at + taken.kept]) {
            if !line.iter().all(|byte| b" \t\r".contains(byte)) {
                found.push((place, line.to_vec()));
            }
            place.offset += line.len() as u64 + 1;
            place.lines += 1;
        }
        at += taken.kept;
    }
    filter.rest();
    found
}
