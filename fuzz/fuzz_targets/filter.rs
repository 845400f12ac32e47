//! Filter and coalesce: with vectors, without, and by the oracle, in feeds of any number of lines.
#![no_main]

use claude_wire::filter::Filter;
use claude_wire::lines::step::Place;
use claude_wire::simd::Level;
use libfuzzer_sys::fuzz_target;

const ONLY: [Option<&[&str]>; 4] = [
    None,
    Some(&["result", "assistant"]),
    Some(&["stream_event/content_block_delta/text_delta", "system/init"]),
    Some(&["stream_event", "control_request/can_use_tool", "a"]),
];

fuzz_target!(|input: &[u8]| {
    // The first three bytes say how.
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

    let mut filters = [Level::Fast, Level::Plain].map(|level| Filter::new(names, coalesce, level));
    let mut model = oracle::Filter::new(names, coalesce, max_line);
    let [mut skipped, mut merged] = [0, 0];
    let mut start = Place::default();
    for feed in lines.chunks(lines_per_feed) {
        let expected = model.feed(feed, false);
        let place_of = |index: usize| Place {
            offset: start.offset + length(&feed[..index]),
            lines: start.lines + index as u64,
        };
        let places: Vec<_> = expected
            .lines
            .iter()
            .map(|(index, _)| place_of(*index))
            .collect();
        let lines = expected.lines.iter();
        let block: Vec<_> = lines
            .flat_map(|(_, line)| [line, &b"\n"[..]].concat())
            .collect();
        for filter in &mut filters {
            take(filter, feed, unfinished, max_line, start);
            assert_eq!(filter.block(), block);
            assert_eq!(filter.places(), places);
            assert_eq!(
                filter.defects(),
                claude_wire::lines::frame::check_plain(&block, usize::MAX).defects
            );
            filter.clear();
        }
        skipped += expected.skipped as u64;
        merged += expected.merged as u64;
        start = place_of(feed.len());
    }

    let kept = !oracle::is_skipped(unfinished, names);
    for mut filter in filters {
        assert_eq!((filter.skipped, filter.merged), (skipped, merged));
        assert_eq!(filter.keeps(unfinished), kept);
    }
});

/// Bytes of lines with their LFs.
fn length(lines: &[&[u8]]) -> u64 {
    lines.iter().map(|line| line.len() as u64 + 1).sum()
}

fn take(filter: &mut Filter, feed: &[&[u8]], unfinished: &[u8], max_line: usize, place: Place) {
    let mut data: Vec<u8> = feed
        .iter()
        .flat_map(|line| [line, &b"\n"[..]].concat())
        .collect();
    let length = data.len();
    data.extend_from_slice(unfinished);
    let taken = filter.take(&data, max_line, place).unwrap();
    assert_eq!(
        (taken.lines, taken.bytes, taken.too_long),
        (feed.len(), length, None)
    );
    filter.finish().unwrap();
}
