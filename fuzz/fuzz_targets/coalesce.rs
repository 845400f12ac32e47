//! Filter and coalesce: with vectors, without, and by the reference, in feeds of any number of lines.
#![no_main]

use claude_wire::buffer::Place;
use claude_wire::sieve::Sieve;
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

    let mut sieves = [Level::Fast, Level::Plain].map(|level| Sieve::new(names, coalesce, level));
    let [mut kept, mut wanted] = [0, 0];
    let mut place = Place {
        offset: 0,
        line_number: 1,
    };
    for feed in lines.chunks(lines_per_feed) {
        let not_skipped = |line: &&[u8]| {
            !reference::is_blank(line)
                && !names.is_some_and(|names| reference::skipped(line, names))
        };
        let left: Vec<_> = feed.iter().copied().filter(not_skipped).collect();
        wanted += left.len();
        let expected = if coalesce {
            reference::coalesced(feed, names, max_line)
        } else {
            left.into_iter().map(<[u8]>::to_vec).collect()
        };
        for sieve in &mut sieves {
            take(sieve, feed, unfinished, max_line, place);
            let mut block = expected.join(&b"\n"[..]);
            block.extend_from_slice(if expected.is_empty() { b"" } else { b"\n" });
            assert_eq!(sieve.block(), block);
            check_places(sieve.places(), &expected, feed, place);
            assert_eq!(
                sieve.defects(),
                claude_wire::frame::check_plain(&block, usize::MAX).defects
            );
            sieve.clear();
        }
        kept += expected.len();
        place.offset += feed.iter().map(|line| line.len() as u64 + 1).sum::<u64>();
        place.line_number += feed.len() as u64;
    }

    let alone = names.is_none_or(|names| !reference::skipped(unfinished, names));
    let all = lines
        .iter()
        .filter(|line| !reference::is_blank(line))
        .count();
    for mut sieve in sieves {
        assert_eq!(sieve.merged, (wanted - kept) as u64);
        assert_eq!(sieve.skipped, (all - wanted) as u64);
        assert_eq!(sieve.keeps(unfinished), alone);
    }
});

fn take(sieve: &mut Sieve, feed: &[&[u8]], unfinished: &[u8], max_line: usize, place: Place) {
    let mut data: Vec<u8> = feed
        .iter()
        .flat_map(|line| [line, &b"\n"[..]].concat())
        .collect();
    let length = data.len();
    data.extend_from_slice(unfinished);
    let taken = sieve.take(&data, max_line, place).unwrap();
    assert_eq!(
        (taken.lines, taken.bytes, taken.too_long),
        (feed.len(), length, None)
    );
    sieve.finish().unwrap();
}

/// Each line is where it, or the first of those that it was merged from, stood in the stream.
fn check_places(places: &[Place], kept: &[Vec<u8>], feed: &[&[u8]], start: Place) {
    assert_eq!(places.len(), kept.len());
    let mut next = 0;
    for (place, line) in places.iter().zip(kept) {
        let at = usize::try_from(place.line_number - start.line_number).unwrap();
        assert!(at >= next, "in the order of their first lines");
        next = at + 1;
        let before: usize = feed[..at].iter().map(|line| line.len() + 1).sum();
        assert_eq!(place.offset, start.offset + before as u64);
        if feed[at] != line {
            let [first, merged] = [feed[at], line].map(|line| reference::delta(line).unwrap());
            assert_eq!(first.key, merged.key);
            assert!(merged.text.starts_with(&first.text));
        }
    }
}
