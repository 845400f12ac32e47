use proptest::prelude::*;

use super::*;
use crate::filter::delta::{MAX_BYTES, MAX_DEPTH, MAX_DIGITS};
use crate::filter::group::MAX_OPEN;
use crate::filter::pass::is_blank;
use crate::kinds::template;
use crate::oracle::lines;
use crate::oracle::Filter as Model;
use crate::simd::PAD;

fn delta(session: &str, text: &str, uuid: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}},"session_id":"{session}","uuid":"{uuid}"}}"#
    )
}

/// Returns a filter with enough credit to scan every line that it may merge.
fn unsparing(only: Option<&[&str]>, coalesce: bool, level: Level) -> Filter {
    let mut filter = Filter::new(only, coalesce, level);
    filter.credit = u32::MAX / 2;
    filter
}

/// Returns the lines that the filter lets through, each with the place where it began.
fn out(filter: &mut Filter, data: &[u8], max_line: usize) -> Vec<(Place, Vec<u8>)> {
    let mut found = Vec::new();
    let mut place = Place::default();
    loop {
        let rest = &data[usize::try_from(place.offset).unwrap()..];
        if rest.is_empty() {
            break;
        }
        let taken = filter.take(rest, max_line, place).unwrap();
        assert!(taken.bytes + taken.kept > 0);
        place.offset += taken.bytes as u64;
        place.lines += taken.lines as u64;
        filter
            .close(|line, len, place| {
                assert_eq!(line.len(), len + PAD);
                assert!(len - 1 <= max_line);
                found.push((place, line[..len - 1].to_vec()));
            })
            .unwrap();
        for line in lines(&rest[taken.bytes..taken.bytes + taken.kept]) {
            if !is_blank(line) {
                found.push((place, line.to_vec()));
            }
            place.offset += line.len() as u64 + 1;
            place.lines += 1;
        }
    }
    filter.rest();
    found
}

/// Returns the lines that the filter lets through, and their numbers.
fn filtered(filter: &mut Filter, lines: &[&str]) -> (Vec<String>, Vec<u64>) {
    let data = lines.join("\n") + "\n";
    out(filter, data.as_bytes(), usize::MAX)
        .into_iter()
        .map(|(place, line)| (String::from_utf8(line).unwrap(), place.lines + 1))
        .unzip()
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
fn deltas_of_one_session_and_two_blocks_are_not_merged() {
    let first = |session| delta(session, "x", "1");
    let second = |session| first(session).replace(":0,", ":1,");
    // Session `a` begins its second block after `b` and `c`, so the template of its first block is older than theirs.
    let before = [
        first("a"),
        second("b"),
        second("c"),
        second("b"),
        second("c"),
        second("b"),
    ];
    let lines = before.into_iter().chain([second("a"), second("a")]);
    let lines: Vec<_> = lines.collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    for level in levels() {
        let (out, numbers) = filtered(&mut Filter::new(None, true, level), &lines);
        assert_eq!(numbers, [1, 2, 3, 7]);
        assert_eq!(out[0], first("a"));
        assert_eq!(out[3], second("a").replace("\"x\"", "\"xx\""));
    }
}

#[test]
fn a_delta_that_fails_the_check_is_kept_in_its_place() {
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
fn a_skipped_line_closes_all_groups_every_time() {
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
    let line = delta("a", "x", "1");
    for level in levels() {
        let mut filter = Filter::new(None, true, level);
        let data = (line.clone() + "\n").repeat(7);
        let found = out(&mut filter, data.as_bytes(), line.len() + 2);
        let merged = delta("a", "xxx", "1");
        let found: Vec<_> = found.into_iter().map(|(_, line)| line).collect();
        assert_eq!(
            found,
            [merged.as_bytes(), merged.as_bytes(), line.as_bytes()]
        );
    }
}

#[test]
fn a_line_over_the_limit_is_kept_whatever_its_kind() {
    for level in levels() {
        let mut filter = Filter::new(Some(&[]), false, level);
        let long = r#"{"type":"system"}"#;
        let data = format!("{{\"type\":1}}\n{long}\n{{\"type\":\"\"}}\n");
        let found = out(&mut filter, data.as_bytes(), long.len() - 1);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].1, long.as_bytes());
        assert_eq!(filter.skipped, 1);
    }
}

#[test]
fn a_long_delta_is_not_merged() {
    // A line with a long session does not get a template.
    for session in ["a", &"a".repeat(template::MAX_BYTES)] {
        for (extra, merged) in [(0, 1), (1, 0)] {
            let line = delta(session, "x", "1");
            let text = "x".repeat(MAX_BYTES - line.len() + extra);
            let data = (delta(session, &text, "1") + "\n").repeat(2);
            // A filter that only merges does not scan a long line. With names, it scans every line.
            for only in [None, Some(&["stream_event"][..])] {
                for level in levels() {
                    let mut filter = Filter::new(only, true, level);
                    assert_eq!(
                        out(&mut filter, data.as_bytes(), usize::MAX).len(),
                        2 - merged
                    );
                    assert_eq!(filter.merged, merged as u64);
                }
            }
        }
    }
}

#[test]
fn where_nothing_is_merged_few_lines_are_scanned() {
    let lines: Vec<_> = (0..5000)
        .map(|n| delta(&n.to_string(), "x", "1").replacen('{', "{ ", 1))
        .collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    for level in levels() {
        let mut filter = Filter::new(None, true, level);
        filtered(&mut filter, &lines);
        // After a pause, the filter scans lines again.
        let chunks = (0..PAUSE_BYTES / lines[0].len())
            .map(|_| filtered(&mut filter, &[lines[0]; 3]).0.len());
        let counts: Vec<_> = chunks.collect();
        assert_eq!((counts[0], counts.last()), (3, Some(&1)));
    }
}

#[test]
fn an_unterminated_line_is_kept_by_its_kind() {
    let mut filter = Filter::new(Some(&["result"]), false, Level::Fast);
    assert!(filter.keeps_last(br#"{"type":"result"}"#));
    assert!(filter.keeps_last(br#"{"type":"system""#));
    assert!(!filter.keeps_last(br#"{"type":"system"}"#));
    assert_eq!(filter.skipped, 1);
}

/// Filters `data`, and returns the result in the oracle's type.
fn taken(filter: &mut Filter, data: &[u8], max_line: usize) -> crate::oracle::Filtered {
    (filter.skipped, filter.merged) = (0, 0);
    let found = out(filter, data, max_line);
    let starts: Vec<_> = std::iter::once(0)
        .chain(memchr::memchr_iter(b'\n', data).map(|lf| lf + 1))
        .collect();
    let index = |place: Place| {
        let index = usize::try_from(place.lines).unwrap();
        assert_eq!(starts[index] as u64, place.offset);
        index
    };
    crate::oracle::Filtered {
        lines: found
            .into_iter()
            .map(|(place, line)| (index(place), line))
            .collect(),
        skipped: usize::try_from(filter.skipped).unwrap(),
        merged: usize::try_from(filter.merged).unwrap(),
    }
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
    fn the_filter_returns_the_lines_of_the_oracle(
        data in crate::samples::lines(40),
        only in only(),
        coalesce: bool,
        limit in prop_oneof![Just(0), 1..200_usize],
    ) {
        let end = data.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let data = &data[..end];
        let longest = data.split(|&byte| byte == b'\n').map(<[u8]>::len).max().unwrap_or(0);
        let max_line = if limit == 0 { usize::MAX } else { longest + limit };
        let only = only.as_deref();
        let expected = Model::new(only, coalesce, max_line).feed(&lines(data));
        for level in levels() {
            let mut filter = unsparing(only, coalesce, level);
            // The second round uses the templates of the first.
            for _ in 0..2 {
                let found = taken(&mut filter, data, max_line);
                prop_assert_eq!(&found, &expected);
            }
            // A filter with limited credit merges less, but the text is the same.
            let mut sparing = Filter::new(only, coalesce, level);
            sparing.credit = 0;
            let found = taken(&mut sparing, data, max_line);
            prop_assert!(found.lines.len() + found.merged == expected.lines.len() + expected.merged);
        }
    }

    #[test]
    fn the_last_line_is_kept_as_any_other(line in crate::samples::line(), only in only()) {
        let line = line.split(|&byte| byte == b'\n').next().unwrap();
        let only = only.as_deref();
        let data = [line, b"\n"].concat();
        let skipped = Model::new(only, false, usize::MAX).feed(&lines(&data)).skipped;
        for level in levels() {
            prop_assert_eq!(Filter::new(only, false, level).keeps_last(line), skipped == 0);
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
            let mut filter = unsparing(None, true, level);
            let found = taken(&mut filter, data.as_bytes(), usize::MAX);
            let expected = Model::new(None, true, usize::MAX).feed(&lines(data.as_bytes()));
            assert_eq!(found, expected);
            assert_eq!(found.merged > 0, merged);
        }
    }
}

#[test]
fn between_chunks_the_filter_holds_at_most_64_kib() {
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
            let mut filter = Filter::new(Some(&["stream_event"]), coalesce, Level::Fast);
            out(&mut filter, data.as_bytes(), usize::MAX);
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
            let mut filter = Filter::new(Some(&["stream_event"]), true, level);
            out(&mut filter, data.as_bytes(), usize::MAX);
            assert_eq!(filter.merged, merged);
        }
        let deep = line(1_000_000);
        let mut filter = Filter::new(Some(&["stream_event"]), true, level);
        assert_eq!(out(&mut filter, deep.as_bytes(), usize::MAX).len(), 1);
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
