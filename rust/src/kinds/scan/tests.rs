use proptest::prelude::*;

use super::*;
use crate::simd::{run, Level, Operation};

struct One<'a>(&'a [u8]);

impl Operation for One<'_> {
    type Output = Scan;

    fn run<E: Engine>(self, engine: E) -> Scan {
        scan(engine, self.0, 0)
    }
}

/// Returns a line's kind, with slashes between its tags; `None` if the line is unclear.
fn kind(line: &[u8]) -> Option<String> {
    let found = run(Level::Plain, One(line));
    assert_eq!(found, run(Level::Fast, One(line)));
    let KindSpans {
        name,
        subtype,
        detail,
    } = found.kind;
    let text = |tag: Option<Span>| {
        tag.map_or("-".to_owned(), |tag| {
            decoded(tag.of(line))
                .map(|unit| char::from(u8::try_from(unit).unwrap()))
                .collect()
        })
    };
    found
        .clear
        .then(|| [name, subtype, detail].map(text).join("/"))
}

fn is(line: &str, expected: &str) {
    for line in [
        line.to_owned(),
        format!("{line}\n"),
        format!(" \t\r{line}\r \n"),
    ] {
        assert_eq!(kind(line.as_bytes()).as_deref(), Some(expected), "{line}");
    }
}

fn unclear(line: &str) {
    assert_eq!(kind(line.as_bytes()), None, "{line}");
}

#[test]
fn tags_are_found_in_any_position() {
    is("{}", "-/-/-");
    is(r#"{"type":"result"}"#, "result/-/-");
    is(
        r#"{"a":{"type":"x"},"b":[{"type":"y"}],"subtype":"s","type":"result"}"#,
        "result/s/-",
    );
    is(
        r#"{ "type" : "system" , "subtype" : "init" }"#,
        "system/init/-",
    );
    is(
        r#"{"a":"\"type\":\"x\",","type":"result","b":"\\"}"#,
        "result/-/-",
    );
    is(r#"{"subtype":"x"}"#, "-/-/-");
    is(r#"{"type":null,"subtype":"x"}"#, "-/-/-");
    is(r#"{"\u0074ype":"re\u0073ult"}"#, "result/-/-");
    is(
        r#"{"event":{"delta":{"type":"d"},"content_block":{"type":"c"},"type":"e"},"subtype":"s","type":"stream_event"}"#,
        "stream_event/e/d",
    );
    is(
        r#"{"event":{"content_block":{"type":"c"},"delta":{},"type":"e"},"type":"stream_event"}"#,
        "stream_event/e/c",
    );
    is(
        r#"{"event":[{"type":"e"}],"type":"stream_\u0065vent"}"#,
        "stream_event/-/-",
    );
    is(
        r#"{"request":{"subtype":"r"},"response":{"subtype":"p"},"type":"control_request"}"#,
        "control_request/r/-",
    );
    is(
        r#"{"request":{"subtype":"r"},"response":{"subtype":"p"},"type":"control_response"}"#,
        "control_response/p/-",
    );
    is(r#"{"a":tru?e,"b":[{]},"type":"result"}"#, "result/-/-");
    is(r#"{"type":"result","type":"result"}"#, "result/-/-");
    is(r#"{"type":"result","type":"resul\u0074"}"#, "result/-/-");
    is(r#"{"type":1,"type":null}"#, "-/-/-");
    is(
        r#"{"type":"a\ud83d\ude00"}"#,
        "a\u{f0}\u{9f}\u{98}\u{80}/-/-",
    );
    is(r#"{"\ud83d":1,"\x":2,"type":"result"}"#, "result/-/-");
}

#[test]
fn other_lines_are_unclear() {
    for line in [
        "",
        " ",
        "{",
        "}",
        "[]",
        "{}{}",
        "{} x",
        "x{}",
        "{,}",
        r#"{"a":1,}"#,
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1 2}"#,
        r#"{"a":1"b":2}"#,
        r"{a:1}",
        r#"{"a":"b}"#,
        r#"{"a":[}"#,
        r#"{"a":1"}"#,
        r#"{"a"::1}"#,
        r#"{"a":1:}"#,
        r#"{"event":{"a"},"type":"result"}"#,
        r#"{"event":{"a":1,},"type":"result"}"#,
        r#"{"type":"a","type":"b"}"#,
        r#"{"type":"a","type":1}"#,
        r#"{"type":1,"type":"a"}"#,
        r#"{"event":1,"event":2}"#,
        r#"{"event":{"delta":{},"delta":1}}"#,
        r#"{"type":"\ud83d"}"#,
        r#"{"type":"\x"}"#,
        r#"{"type":"\u12"}"#,
        "{\"type\":\"a\tb\"}",
        r#"{"request":{"subtype":"\ude00"},"type":"result"}"#,
    ] {
        unclear(line);
    }
    assert_eq!(kind(b"{\"type\":\"\xff\"}"), None);
    assert_eq!(
        kind(b"{\"a\":\"\xff\",\"type\":\"b\"}").as_deref(),
        Some("b/-/-")
    );
}

#[test]
fn a_line_ends_at_its_line_feed() {
    for line in [
        "{\"a\":\"b\n",
        "{\"a\":\"\\\n",
        "{\"a\":[[\n",
        "{\"a\":1\n",
        "{\"a\":12\n",
        "{\"a\n",
        "{} x\n",
        "\n",
    ] {
        let data = format!("{line}\"}}]]}}\n");
        for level in [Level::Plain, Level::Fast] {
            let found = run(level, One(data.as_bytes()));
            assert_eq!((found.end, found.clear), (line.len(), false), "{line:?}");
        }
    }
}

#[test]
fn an_escape_ends_with_its_string_wherever_a_vector_ends() {
    for fill in 0..200 {
        let fill = "x".repeat(fill);
        is(
            &format!("{{\"a\":[\"{fill}\\n\"],\"\":1,\"type\":\"result\"}}"),
            "result/-/-",
        );
        is(
            &format!("{{\"a\":\"{fill}\\\\\",\"b\":\"\\\"\",\"type\":\"result\"}}"),
            "result/-/-",
        );
    }
}

#[test]
fn depth_is_no_limit() {
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    is(
        &format!("{{\"a\":{},\"type\":\"result\"}}", deep(1_000_000)),
        "result/-/-",
    );
    unclear(&format!("{{\"a\":{}", "[".repeat(1_000_000)));
}

fn kinds(data: &[u8], found: &Scan) -> Option<crate::oracle::Kind> {
    let KindSpans {
        name,
        subtype,
        detail,
    } = found.kind;
    let text = |tag: Option<Span>| {
        tag.map(|tag| {
            let bytes = decoded(tag.of(data)).map(|unit| u8::try_from(unit).unwrap());
            String::from_utf8(bytes.collect()).unwrap()
        })
    };
    found.clear.then(|| [name, subtype, detail].map(text))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_kind_is_the_kind_of_the_oracle(data in crate::samples::line(), ended: bool, before in 0..70_usize) {
        let end = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
        let behind: &[u8] = if ended { b"\n\"}" } else { b"" };
        let data = [&vec![b'"'; before], &data[..end], behind].concat();
        let line = &data[before..before + end];
        for level in [Level::Plain, Level::Fast] {
            let found = run(level, At(&data, before));
            prop_assert_eq!(found.end, before + end + usize::from(ended));
            prop_assert_eq!(kinds(&data, &found), crate::oracle::kind(line));
        }
    }

    #[test]
    fn brackets_and_quotes_are_skipped_as_defined(
        pieces in proptest::collection::vec(proptest::sample::select(
            vec!["{", "}", "[", "]", "\"", "\\", "\\\"", "\"a\"", "x", "0123456789abcdef0123456789", ",", ":", " ", "\n", "é"]), 0..60),
        tail in "[\\]}]{0,3}",
    ) {
        let data = format!("{{\"a\":[{}{tail},\"type\":\"t\"}}\n", pieces.concat());
        let line = &data.as_bytes()[..data.find('\n').unwrap()];
        for level in [Level::Plain, Level::Fast] {
            let found = run(level, One(data.as_bytes()));
            prop_assert_eq!(found.end, line.len() + 1);
            prop_assert_eq!(kinds(line, &found), crate::oracle::kind(line));
        }
    }
}

struct At<'a>(&'a [u8], usize);

impl Operation for At<'_> {
    type Output = Scan;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Scan {
        scan(engine, self.0, self.1)
    }
}
