use proptest::prelude::*;

use super::*;
use crate::simd::{run, Level, Operation};

struct Text<'a>(&'a [u8], Value);

impl Operation for Text<'_> {
    type Output = Option<(u32, String)>;

    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let mut out = b"before".to_vec();
        let replaced = text(engine, self.0, self.1, &mut out).ok()?;
        let text = String::from_utf8(out).expect("text is UTF-8");
        Some((replaced, text.strip_prefix("before")?.to_owned()))
    }
}

/// Reads a string with both engines, and returns the number of replaced surrogates and the text. `raw` has no quotes.
fn read(raw: &str) -> Option<(u32, String)> {
    let data = format!("\"{raw}\"");
    let form = if raw.contains('\\') {
        Form::Escaped
    } else {
        Form::Plain
    };
    let value = Value {
        form,
        start: 1,
        end: 1 + raw.len(),
    };
    let [plain, fast] =
        [Level::Plain, Level::Fast].map(|level| run(level, Text(data.as_bytes(), value)));
    assert_eq!(plain, fast, "{raw}");
    plain
}

#[test]
fn lone_surrogates_are_replaced_and_counted() {
    for (raw, replaced, text) in [
        ("", 0, ""),
        ("plain é 😀", 0, "plain é 😀"),
        (
            r#"\"\\\/\b\f\n\r\t\u00e9\u0000"#,
            0,
            "\"\\/\u{8}\u{c}\n\r\té\0",
        ),
        (r"a\ud83d\ude00b", 0, "a😀b"),
        (r"\ud83d", 1, "\u{fffd}"),
        (r"\ude00\ud83dx", 2, "\u{fffd}\u{fffd}x"),
        (r"\ud83d\ud83d\ude00", 1, "\u{fffd}😀"),
        (r"\ud83d\n", 1, "\u{fffd}\n"),
        (r"\ud83d\\ude00", 1, "\u{fffd}\\ude00"),
        (r"\uDBFF\uDFFF", 0, "\u{10ffff}"),
    ] {
        assert_eq!(read(raw), Some((replaced, text.to_owned())), "{raw}");
    }
}

#[test]
fn invalid_strings_are_refused() {
    for raw in ["\u{1}", "a\nb", r"\x", r"\u12", r"\u12g4", "\\n\u{1f}"] {
        assert_eq!(read(raw), None, "{raw:?}");
    }
}

#[test]
fn words_follow_the_json_grammar() {
    for bad in [
        "", "-", "01", "1.", ".5", "+1", "1e", "1e+", "tru", "NaN", "0x1", "1_0", "--1", "1.5.5",
        "1e999",
    ] {
        assert_eq!(word(bad.as_bytes()), Err(Fault::Unclear), "{bad}");
    }
    for (text, whole, float) in [
        ("0", Some(0), Some(0.0)),
        ("-0", Some(0), Some(0.0)),
        ("1.0", Some(1), Some(1.0)),
        ("1e2", Some(100), Some(100.0)),
        ("2.5", None, Some(2.5)),
        (
            "9223372036854775807",
            Some(i64::MAX),
            Some(9.223_372_036_854_776e18),
        ),
        ("9223372036854775808", None, Some(9.223_372_036_854_776e18)),
        (
            "9007199254740992.0",
            Some(1 << 53),
            Some(9_007_199_254_740_992.0),
        ),
        ("9007199254740994.0", None, Some(9_007_199_254_740_994.0)),
        ("true", None, None),
        ("null", None, None),
    ] {
        let found = match word(text.as_bytes()).unwrap() {
            Word::Number(whole, float) => (whole, Some(float)),
            _ => (None, None),
        };
        assert_eq!(found, (whole, float), "{text}");
    }
}

#[test]
fn times_are_microseconds_in_utc() {
    for (text, micros) in [
        ("1970-01-01", Some(0)),
        ("1970-01-01T00:00:00.000001Z", Some(1)),
        ("1969-12-31 23:59:59.5", Some(-500_000)),
        ("2026-11-22T19:55:45.198Z", Some(1_795_377_345_198_000)),
        (
            "2026-11-22T20:55:45.1989999+01:00",
            Some(1_795_377_345_198_999),
        ),
        ("2000-02-29T00:00", Some(951_782_400_000_000)),
        ("0001-01-01", Some(-62_135_596_800_000_000)),
        ("9999-12-31T23:59:59.999999", Some(253_402_300_799_999_999)),
        ("1900-02-29", None),
        ("0000-01-01", None),
        ("2026-11-22T24:00", None),
        ("2026-11-22T10:00:60", None),
        ("2026-11-22T10", None),
        ("2026-11-22T10:00Zx", None),
        ("2026-11-22T10:00+1", None),
        ("2026-11-2\u{e9}", None),
    ] {
        assert_eq!(timestamp(text.as_bytes()), micros, "{text}");
    }
}

struct Json<'a>(&'a [u8]);

impl Operation for Json<'_> {
    type Output = bool;

    fn run<E: Engine>(self, engine: E) -> bool {
        json(engine, self.0).is_ok()
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\\n\"",
        "\"\\x\"",
        "1",
        "-1.5e3",
        "01",
        "true",
        "null",
        " ",
        "\"",
        "{\"a\":1}",
        "[1,2]",
        "{}",
        "[]",
        "\u{1}",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..12)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn json_is_what_serde_takes(text in pieces()) {
        let expected = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        for level in [Level::Plain, Level::Fast] {
            prop_assert_eq!(run(level, Json(text.as_bytes())), expected);
        }
    }

    #[test]
    fn strings_are_read_as_serde_reads_them(text in any::<String>()) {
        let raw = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(read(&raw[1..raw.len() - 1]), Some((0, text)));
    }
}
