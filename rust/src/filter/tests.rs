use proptest::prelude::*;

use super::*;
use crate::filter::delta::{MAX_DEPTH, MAX_DIGITS};
use crate::filter::group::MAX_OPEN;
use crate::lines::buffer::Bom;
use crate::oracle::lines;
use crate::oracle::Filter as Model;

fn delta(session: &str, text: &str, uuid: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}},"session_id":"{session}","uuid":"{uuid}"}}"#
    )
}

/// The block and the line numbers that come of `lines`, in one take.
fn filtered(filter: &mut Filter, lines: &[&str]) -> (Vec<String>, Vec<u64>) {
    let data = lines.join("\n") + "\n";
    let taken = filter
        .take(data.as_bytes(), usize::MAX, Place::default())
        .unwrap();
    assert_eq!((taken.lines, taken.bytes), (lines.len(), data.len()));
    filter.finish().unwrap();
    let block = std::str::from_utf8(filter.block()).unwrap();
    let out = block.lines().map(str::to_owned).collect();
    let numbers = filter
        .places()
        .iter()
        .map(|place| place.lines + 1)
        .collect();
    filter.clear();
    (out, numbers)
}

fn levels() -> [Level; 2] {
    [Level::Plain, Level::Fast]
}

#[test]
fn lines_of_other_kinds_are_passed_over() {
    let result = r#"{"result":"a}","type":"result"}"#;
    let init = r#" {"type":"system","subtype":"init"}"#;
    let status = r#"{"type":"system","subtype":"status"}"#;
    let text = delta("s", "x", "u");
    let lines = [result, "", init, " \t\r", status, &text, "{}", "nonsense"];
    for level in levels() {
        let kept = |only: &[&str]| {
            let mut filter = Filter::new(Some(only), false, level);
            let (_, numbers) = filtered(&mut filter, &lines);
            assert_eq!(filter.skipped + numbers.len() as u64, 6);
            numbers
        };
        assert_eq!(kept(&[]), [7, 8]);
        assert_eq!(kept(&["result"]), [1, 7, 8]);
        assert_eq!(kept(&["system"]), [3, 5, 7, 8]);
        assert_eq!(kept(&["system/init", "result/x"]), [3, 7, 8]);
        assert_eq!(kept(&["stream_event/content_block_delta"]), [6, 7, 8]);
        assert_eq!(
            kept(&["stream_event/content_block_delta/text_delta"]),
            [6, 7, 8]
        );
        assert_eq!(
            kept(&["stream_event/content_block_delta/text_delta/x"]),
            [7, 8]
        );
        assert_eq!(kept(&["stream_event/text_delta", "resul", ""]), [7, 8]);
    }
}

#[test]
fn deltas_of_one_key_become_one_line() {
    let lines = [
        delta("a", "one\\ud83d", "1"),
        delta("b", "x", "2"),
        delta("a", "\\ude00", "three"),
        String::new(),
        delta("b", "", "4"),
        delta("a", "é", "5"),
        "{}".to_owned(),
        delta("a", "y", "6"),
    ];
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    for level in levels() {
        let mut filter = Filter::new(None, true, level);
        let (out, numbers) = filtered(&mut filter, &lines);
        let expected = [
            delta("a", "one\\ud83d\\ude00é", "5"),
            delta("b", "x", "4"),
            "{}".to_owned(),
            delta("a", "y", "6"),
        ];
        assert_eq!(out, expected);
        assert_eq!(numbers, [1, 2, 7, 8]);
        assert_eq!((filter.merged, filter.skipped), (3, 0));
    }
}

#[test]
fn what_cannot_be_checked_is_not_merged_and_keeps_its_place() {
    let good = delta("a", "x", "1");
    let others = [
        good.replace("\"x\"", "\"\\x\""),
        good.replace("\"x\"", "\"\\u12g4\""),
        good.replace("\"x\"", "\"a\tb\""),
        good.replace("\"x\"", "1"),
        good.replace("\"x\"", "\"x\",\"text\":\"x\""),
        good.replace("\"x\"", "\"x\",\"t\\u0065xt\":\"x\""),
        good.replace(":0,", ":-1,"),
        good.replace(":0,", ":1.0,"),
        good.replace(":0,", ":01,"),
        good.replace("\"index\":0,", ""),
        good.replace("\"1\"", "null"),
        good.replace("\"1\"", "\"\\u0031\""),
        good.replace("\"a\"", "\"\\u0031\""),
        good.replace("\"a\"", "[]"),
        good.replace("\"a\"", "[1,]"),
        good.replace("text_delta", "signature_delta"),
    ];
    for level in levels() {
        for other in &others {
            let lines = [&good, other, other, &good, &good];
            let lines: Vec<_> = lines.iter().map(|line| line.as_str()).collect();
            let (out, numbers) = filtered(&mut Filter::new(None, true, level), &lines);
            assert_eq!(numbers, [1, 2, 3, 4], "{other}");
            assert_eq!(out[..3], lines[..3], "{other}");
        }
    }
}

#[test]
fn a_delta_of_an_open_key_with_other_bytes_closes_all_groups() {
    let (a, b) = (delta("a", "x", "1"), delta("b", "x", "1"));
    let other = a.replace("}}", "} }");
    for level in levels() {
        let lines = [a.as_str(), &b, &other, &b, &a];
        let (out, numbers) = filtered(&mut Filter::new(None, true, level), &lines);
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(out, lines);
    }
}

#[test]
fn a_line_that_is_passed_over_closes_all_groups_however_often_it_comes() {
    let text = delta("a", "x", "1");
    let other = text.replace("text_delta", "signature_delta");
    let only = ["stream_event/content_block_delta/text_delta"];
    for level in levels() {
        let mut filter = Filter::new(Some(&only), true, level);
        let lines = [text.as_str(), &other, &text, &text, &other].repeat(5);
        let (out, _) = filtered(&mut filter, &lines);
        let merged = delta("a", "xx", "1");
        assert_eq!(out, [text.as_str(), &merged].repeat(5));
        assert_eq!((filter.skipped, filter.merged), (10, 5));
    }
}

#[test]
fn a_merged_line_stays_within_the_limit() {
    let line = delta("a", "x", "1") + "\n";
    for level in levels() {
        let mut filter = Filter::new(None, true, level);
        let taken = filter
            .take(line.repeat(7).as_bytes(), line.len() + 1, Place::default())
            .unwrap();
        assert_eq!(taken.lines, 7);
        filter.finish().unwrap();
        let merged = delta("a", "xxx", "1") + "\n";
        assert_eq!(filter.block(), (merged.repeat(2) + &line).as_bytes());
        assert_eq!(filter.defects(), 0);
    }
}

#[test]
fn taking_stops_before_a_line_over_the_limit() {
    let mut filter = Filter::new(Some(&[]), false, Level::Fast);
    let taken = filter.take(b"{}\n{1}\n{}\n", 2, Place::default()).unwrap();
    let expected = Taken {
        lines: 1,
        bytes: 3,
        too_long: Some(3),
    };
    assert_eq!(taken, expected);
    let taken = filter.take(b"{}\n{1}", 2, Place::default()).unwrap();
    assert_eq!((taken.bytes, taken.too_long), (3, None));
}

#[test]
fn a_block_holds_64_kib_and_no_line_more() {
    let line = delta("a", &"x".repeat(1000), "1") + "\n";
    for coalesce in [false, true] {
        let mut filter = Filter::new(None, coalesce, Level::Fast);
        let data = line.repeat(100);
        let taken = filter
            .take(data.as_bytes(), usize::MAX, Place::default())
            .unwrap();
        assert!(taken.bytes < data.len());
        filter.finish().unwrap();
        let length = filter.block().len();
        assert!((BLOCK_BYTES..BLOCK_BYTES + line.len()).contains(&length));
    }
}

#[test]
fn an_unterminated_line_is_kept_by_its_kind() {
    let mut filter = Filter::new(Some(&["result"]), false, Level::Fast);
    assert!(filter.keeps(br#"{"type":"result"}"#));
    assert!(filter.keeps(br#"{"type":"system""#));
    assert!(!filter.keeps(br#"{"type":"system"}"#));
    assert_eq!(filter.skipped, 1);
}

/// What comes of taking `data` in pieces that end at `cuts`, all in one block, as the model tells it.
fn taken(
    filter: &mut Filter,
    data: &[u8],
    cuts: &[usize],
    max_line: usize,
    forget: bool,
) -> crate::oracle::Filtered {
    let (mut at, mut lines) = (0, 0);
    for &cut in cuts {
        if forget {
            filter.templates.clear();
        }
        let place = Place {
            offset: at as u64,
            lines: lines as u64,
        };
        let taken = filter
            .take(&data[at..cut.max(at)], max_line, place)
            .unwrap();
        assert_eq!(taken.too_long, None);
        at += taken.bytes;
        lines += taken.lines;
    }
    assert_eq!(at, data.len());
    filter.finish().unwrap();
    let block = filter.block().split_inclusive(|&byte| byte == b'\n');
    let block: Vec<_> = block
        .map(|line| line.strip_suffix(b"\n").unwrap().to_vec())
        .collect();
    assert_eq!(block.len(), filter.places().len());
    let starts: Vec<_> = std::iter::once(0)
        .chain(memchr::memchr_iter(b'\n', data).map(|lf| lf + 1))
        .collect();
    for place in filter.places() {
        assert_eq!(
            starts[usize::try_from(place.lines).unwrap()] as u64,
            place.offset
        );
    }
    let defects = frame::check(&block.join(&b'\n'), usize::MAX).defects;
    assert_eq!(filter.defects() & defects, defects);
    let places = filter.places().iter();
    let indexes = places.map(|place| usize::try_from(place.lines).unwrap());
    let filtered = crate::oracle::Filtered {
        lines: indexes.zip(block).collect(),
        skipped: usize::try_from(filter.skipped).unwrap(),
        merged: usize::try_from(filter.merged).unwrap(),
    };
    filter.clear();
    (filter.skipped, filter.merged, filter.settled) = (0, 0, 0);
    filtered
}

fn only() -> impl Strategy<Value = Option<Vec<&'static str>>> {
    let names = [
        "result",
        "system",
        "stream_event/content_block_delta/text_delta",
        "stream_event/content_block_stop",
        "stream_event",
    ];
    proptest::option::of(proptest::sample::subsequence(names.to_vec(), 0..4))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_cutting_into_takes_gives_what_the_definition_says(
        data in crate::samples::lines(40),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        only in only(),
        coalesce: bool,
        limit in prop_oneof![Just(0), 1..200_usize],
    ) {
        let end = data.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let data = &data[..end];
        let longest = data.split(|&byte| byte == b'\n').map(<[u8]>::len).max().unwrap_or(0);
        let max_line = if limit == 0 { usize::MAX } else { longest + limit };
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(end + 1)).collect();
        cuts.push(end);
        cuts.sort_unstable();
        let every: Vec<_> = memchr::memchr_iter(b'\n', data).map(|at| at + 1).collect();
        let only = only.as_deref();
        let expected = Model::new(only, coalesce, max_line).feed(&lines(data), false);
        for level in levels() {
            let mut filter = Filter::new(only, coalesce, level);
            // Twice: the second time with the templates of the first.
            for _ in 0..2 {
                prop_assert_eq!(&taken(&mut filter, data, &cuts, max_line, false), &expected);
            }
            let forgetful = taken(&mut filter, data, &every, max_line, true);
            prop_assert_eq!(&forgetful, &expected);
        }
    }

    #[test]
    fn the_last_line_is_kept_as_any_other(line in crate::samples::line(), only in only()) {
        let line = line.split(|&byte| byte == b'\n').next().unwrap();
        let only = only.as_deref();
        let data = [line, b"\n"].concat();
        let skipped = Model::new(only, false, usize::MAX).feed(&lines(&data), false).skipped;
        for level in levels() {
            prop_assert_eq!(Filter::new(only, false, level).keeps(line), skipped == 0);
        }
    }
}

/// The lines that come out of one chunk, as the C border takes the steps.
fn stepped(filter: &mut Filter, buffer: &mut Buffer, chunk: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut note = |step: Step, rest: &[u8]| match step {
        Step::Nothing { .. } => (),
        Step::Carry { line: block, .. } | Step::Filtered { block, .. } => {
            found.extend(lines(block).into_iter().map(<[u8]>::to_vec));
        }
        Step::Body { end, .. } => {
            found.extend(lines(&rest[..end]).into_iter().map(<[u8]>::to_vec));
        }
        Step::TooLong { .. } => panic!("there is no limit"),
    };
    let mut at = 0;
    while at < chunk.len() {
        let rest = &chunk[at..];
        let (consumed, step) = filter.next(buffer, rest).unwrap();
        assert!(consumed > 0);
        at += consumed;
        note(step, rest);
        if matches!(step, Step::Carry { .. }) {
            let (consumed, step) = filter.follow(buffer, &chunk[at..]).unwrap();
            note(step, &chunk[at..]);
            at += consumed;
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_stream_cut_anywhere_is_filtered_chunk_by_chunk(
        data in crate::samples::lines(30),
        bom: bool,
        repeated in 0..60_usize,
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
        only in only(),
    ) {
        // Deltas for which merging begins.
        let earning = (delta("s", "x", "1") + "\n").repeat(repeated);
        let bom: &[u8] = if bom { b"\xef\xbb\xbf" } else { b"" };
        let data = [bom, earning.as_bytes(), &data].concat();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(data.len() + 1)).collect();
        cuts.extend([0, data.len()]);
        cuts.sort_unstable();
        let only = only.as_deref();
        for level in levels() {
            let (mut filter, mut model) = match only {
                None => (Filter::earning(level), Model::earning(usize::MAX)),
                only => (Filter::new(only, true, level), Model::new(only, true, usize::MAX)),
            };
            let mut buffer = Buffer::new(usize::MAX, Bom::Skip);
            let mut begin = bom.len();
            for cut in cuts.windows(2) {
                let complete = data.get(begin..cut[1]).unwrap_or_default();
                let end = complete.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
                let expected = model.feed(&lines(&complete[..end]), begin < cut[0]).lines;
                let expected: Vec<_> = expected.into_iter().map(|(_, line)| line).collect();
                prop_assert_eq!(stepped(&mut filter, &mut buffer, &data[cut[0]..cut[1]]), expected);
                begin += end;
            }
            let last = match filter.close(&mut buffer).unwrap() {
                Step::Carry { line, .. } => line.to_vec(),
                _ => Vec::new(),
            };
            let rest = &data[begin..];
            let skipped = crate::oracle::is_skipped(rest, only);
            prop_assert_eq!(&last[..], if skipped { b"" } else { rest });
        }
    }
}

#[test]
fn a_backslash_does_not_hide_a_line_feed() {
    let lines = ["{\"type\":\"a\",\"uuid\":\"1\"}"; 2];
    let cut = ["{\"type\":\"a\",\"uuid\":\"1\\", "\"}"];
    for level in levels() {
        let mut filter = Filter::new(Some(&[]), false, level);
        let (out, numbers) = filtered(&mut filter, &[lines, cut, lines].concat());
        assert_eq!(out, cut);
        assert_eq!((numbers, filter.skipped), (vec![3, 4], 4));
    }
}

#[test]
fn many_sessions_are_merged_up_to_the_number_of_groups() {
    for (sessions, merged) in [(MAX_OPEN, true), (MAX_OPEN + 1, false), (1000, false)] {
        let all = (0..2 * sessions).map(|n| delta(&(n % sessions).to_string(), "x", "1") + "\n");
        let data: String = all.take(300).collect();
        for level in levels() {
            let mut filter = Filter::new(None, true, level);
            let found = taken(
                &mut filter,
                data.as_bytes(),
                &[data.len()],
                usize::MAX,
                false,
            );
            assert_eq!(
                found,
                Model::new(None, true, usize::MAX).feed(&lines(data.as_bytes()), false)
            );
            assert_eq!(found.merged > 0, merged);
        }
    }
}

#[test]
fn cleared_it_holds_64_kib_at_most() {
    let long = delta("a", &"x".repeat(1_000_000), "1");
    let many: String = (0..300)
        .map(|n| delta(&"s".repeat(n), &"t".repeat(n), "1") + "\n")
        .collect();
    let keys: Vec<_> = (0..10_000).map(|n| format!("\"{n}\":[[[],1]],")).collect();
    let keys = keys.concat();
    let keys = delta("a", "x", "1").replacen('{', &format!("{{{keys}"), 1);
    for data in [
        format!("{long}\n{long}\n"),
        many,
        keys + "\n",
        "{}\n".repeat(20_000),
    ] {
        for coalesce in [false, true] {
            let mut filter = Filter::new(None, coalesce, Level::Fast);
            filter
                .take(data.as_bytes(), usize::MAX, Place::default())
                .unwrap();
            filter.finish().unwrap();
            assert!(filter.held() > 0);
            filter.clear();
            assert!(filter.held() <= 2 * KEEP_BYTES, "{}", filter.held());
        }
    }
}

#[test]
fn deltas_are_merged_up_to_a_depth() {
    let line = |depth: usize| {
        let deep = "[".repeat(depth - 1) + &"]".repeat(depth - 1);
        delta("a", "x", "1").replacen('{', &format!("{{\"deep\":{deep},"), 1) + "\n"
    };
    for level in levels() {
        for (depth, merged) in [(MAX_DEPTH, 1), (MAX_DEPTH + 1, 0), (5_000, 0)] {
            let data = line(depth).repeat(2);
            let mut filter = Filter::new(None, true, level);
            let taken = filter
                .take(data.as_bytes(), usize::MAX, Place::default())
                .unwrap();
            assert_eq!((taken.lines, filter.merged), (2, merged));
        }
        let deep = line(1_000_000);
        let mut filter = Filter::new(None, true, level);
        filter
            .take(deep.as_bytes(), usize::MAX, Place::default())
            .unwrap();
        assert_eq!(filter.block(), deep.as_bytes());
    }
}

#[test]
fn deltas_with_numbers_that_decoders_may_refuse_are_not_merged() {
    let numbers = [
        ("1", 1),
        ("-0.5", 1),
        ("1e5", 0),
        ("1E999", 0),
        (&"1".repeat(MAX_DIGITS), 1),
        (&"1".repeat(MAX_DIGITS + 1), 0),
    ];
    for (number, merged) in numbers {
        let line = delta("a", "x", "1").replacen('{', &format!("{{\"n\":{number},"), 1);
        let mut filter = Filter::new(None, true, Level::Fast);
        filtered(&mut filter, &[&line, &line]);
        assert_eq!(filter.merged, merged, "{number}");
    }
}
