//! Tests of the writer, with values of the enum [`Plain`] instead of Python's objects.

use std::hash::{Hash, Hasher};

use proptest::prelude::*;
use serde_json::{json, Value as Json};

use super::*;

/// How the tests' source stores a string.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// As UTF-8.
    Bytes,
    /// As CPython does: one, two or four bytes per character, depending on the highest character.
    Characters,
}

/// A value of the tests' source.
#[derive(Clone, Debug)]
enum Plain {
    Json(Json),
    /// [`Ascii::FRONT`] bytes, followed by a UTF-8 string.
    Text(Vec<u8>),
    Latin(Vec<u8>),
    Wide(Vec<u16>),
    Full(Vec<u32>),
    List(Vec<Plain>),
    Dict(Vec<(Plain, Plain)>),
    /// A record: its class's shape, if there is one, and the values of its slots. `None` is an empty slot.
    Record(Option<usize>, Vec<Option<Plain>>),
    Absent,
    Odd,
}

impl Plain {
    fn text(text: &str, form: Form) -> Self {
        let all: Vec<u32> = text.chars().map(u32::from).collect();
        let most = all.iter().copied().max().unwrap_or(0);
        match form {
            Form::Characters if most > 0xffff => Plain::Full(all),
            Form::Characters if most > 0xff => Plain::Wide(text.encode_utf16().collect()),
            Form::Characters if most > 0x7f => {
                Plain::Latin(all.iter().map(|&one| u8::try_from(one).unwrap()).collect())
            }
            _ => Plain::Text([&[b'\n'; Ascii::FRONT], text.as_bytes()].concat()),
        }
    }

    fn json(value: &Json, form: Form) -> Self {
        match value {
            Json::String(text) => Plain::text(text, form),
            Json::Array(items) => {
                Plain::List(items.iter().map(|item| Plain::json(item, form)).collect())
            }
            Json::Object(pairs) => Plain::Dict(
                pairs
                    .iter()
                    .map(|(key, value)| (Plain::text(key, form), Plain::json(value, form)))
                    .collect(),
            ),
            other => Plain::Json(other.clone()),
        }
    }
}

/// Returns the values of a record's slots.
fn slots(record: &Plain) -> &[Option<Plain>] {
    match record {
        Plain::Record(_, slots) => slots,
        _ => panic!("no record: {record:?}"),
    }
}

fn is_written(slot: Option<&Plain>, omitted: &Json) -> bool {
    match slot {
        Some(Plain::Json(value)) => value != omitted,
        Some(Plain::Absent) => false,
        _ => true,
    }
}

struct Values;

impl<'a> Source<'a> for Values {
    type Value = &'a Plain;
    /// For each field, the value for which it is omitted, and whether the field is known.
    type Fields = Vec<(Json, bool)>;
    type Kept = ();

    fn ascii(&self) -> impl Fn(&'a Plain) -> Option<Ascii<'a>> + Copy {
        |value| {
            let Plain::Text(memory) = value else {
                return None;
            };
            Ascii::after_front(memory).filter(|text| text.text().is_ascii())
        }
    }

    fn text(&self, value: &'a Plain) -> Option<Text<'a>> {
        match value {
            Plain::Text(memory) => Some(Text::Utf8(&memory[Ascii::FRONT..])),
            Plain::Latin(text) => Some(Text::Latin(text)),
            Plain::Wide(text) => Some(Text::Wide(text)),
            Plain::Full(text) => Some(Text::Full(text)),
            _ => None,
        }
    }

    fn shape(&self, record: &'a Plain) -> Option<usize> {
        match record {
            Plain::Record(shape, _) => *shape,
            _ => None,
        }
    }

    fn look(&self, value: &'a Plain) -> Seen<&'a Plain> {
        match value {
            Plain::Json(Json::Null) => Seen::Null,
            Plain::Json(Json::Bool(value)) => Seen::Bool(*value),
            Plain::Json(Json::Number(number)) => match number.as_i64() {
                Some(number) => Seen::Int(number),
                None => number.as_f64().map_or(Seen::Other, Seen::Float),
            },
            Plain::Text(_) | Plain::Latin(_) | Plain::Wide(_) | Plain::Full(_) => Seen::Text,
            Plain::List(_) => Seen::List,
            Plain::Dict(_) => Seen::Dict,
            Plain::Record(Some(shape), _) => Seen::Record(*shape),
            Plain::Record(None, _) => Seen::Unplanned(value),
            Plain::Json(_) | Plain::Absent | Plain::Odd => Seen::Other,
        }
    }

    fn next(
        &self,
        record: &'a Plain,
        fields: &Vec<(Json, bool)>,
        from: usize,
    ) -> Option<(usize, Option<&'a Plain>)> {
        let slots = slots(record);
        let is_written = |index: &usize| is_written(slots[*index].as_ref(), &fields[*index].0);
        let index = (from..fields.len()).find(is_written)?;
        Some((index, slots[index].as_ref()))
    }

    fn is_known(&self, record: &'a Plain, fields: &Vec<(Json, bool)>) -> bool {
        let slots = slots(record).iter().zip(fields);
        let mut others = slots.filter(|(_, (_, is_known))| !is_known);
        self.extra(record, fields).is_none()
            && others.all(|(slot, (omitted, _))| !is_written(slot.as_ref(), omitted))
    }

    fn known_with(&self, record: &'a Plain, fields: &Vec<(Json, bool)>) -> Option<Vec<usize>> {
        let mut known = Vec::new();
        for (index, (slot, (omitted, is_known))) in slots(record).iter().zip(fields).enumerate() {
            if *is_known || is_written(slot.as_ref(), omitted) {
                known.push(index);
            }
        }
        Some(known)
    }

    fn know(&self, indexes: &[usize], fields: &mut Vec<(Json, bool)>) -> Option<()> {
        for &index in indexes {
            fields[index].1 = true;
        }
        Some(())
    }

    fn place(&self, fields: &Vec<(Json, bool)>, index: usize) -> FieldSlot {
        let omitted = usize::from(fields[index].0.is_null());
        FieldSlot {
            slot: index,
            omitted,
        }
    }

    fn field(&self, record: &'a Plain, at: &FieldSlot) -> Field<&'a Plain> {
        match &slots(record)[at.slot] {
            Some(Plain::Absent) => Field::Absent,
            Some(Plain::Json(Json::Null)) if at.omitted == 1 => Field::Absent,
            Some(value) => Field::Value(value),
            None => Field::Emptied,
        }
    }

    fn identity(&self, key: &'a Plain) -> u64 {
        // A hash of the content: only equal keys have the same identity.
        let mut hasher = std::hash::DefaultHasher::new();
        format!("{key:?}").hash(&mut hasher);
        hasher.finish() << 4 | 1
    }

    fn keep(&self, _: &'a Plain) {}

    fn extra(&self, record: &'a Plain, fields: &Vec<(Json, bool)>) -> Option<&'a Plain> {
        slots(record).get(fields.len())?.as_ref()
    }

    fn items(&self, list: &'a Plain) -> impl Iterator<Item = &'a Plain> {
        let Plain::List(items) = list else {
            panic!("not a list: {list:?}");
        };
        items.iter()
    }

    fn entries(&self, dict: &'a Plain) -> Option<impl Iterator<Item = (&'a Plain, &'a Plain)>> {
        let is_read = matches!(dict, Plain::Dict(pairs) if pairs.len() % 3 != 0);
        is_read.then(|| self.pairs(dict))
    }

    fn pairs(&self, dict: &'a Plain) -> impl Iterator<Item = (&'a Plain, &'a Plain)> {
        let Plain::Dict(pairs) = dict else {
            panic!("not a dict: {dict:?}");
        };
        pairs.iter().map(|(key, value)| (key, value))
    }
}

const USER: usize = 0;
const PART: usize = 1;
const LONG_KEY: &str = "a_key_that_has_more_than_thirty_two_bytes";

/// Returns a writer for two classes of two fields each: `USER` with a tag, and `PART` without one. The second field of each class is
/// omitted if its value is null.
fn writer() -> Writer<Values, Vec<(Json, bool)>, ()> {
    let mut writer = Writer::new(Values);
    let key = |key: &str| Words::new(format!(",\"{key}\":").as_bytes());
    let fields = || vec![(json!("?"), false), (json!(null), false)];
    let user = writer.add(Shape::new(
        b"{\"type\":\"user\"",
        key("type").all(),
        vec![key("text"), key(LONG_KEY)],
        fields(),
    ));
    let part = writer.add(Shape::new(b"", b"", vec![key("a"), key("b")], fields()));
    assert_eq!((user, part), (USER, PART));
    writer
}

fn null() -> Plain {
    Plain::Json(Json::Null)
}

fn record(class: usize, first: Plain, second: Plain) -> Plain {
    Plain::Record(Some(class), vec![Some(first), Some(second)])
}

/// Returns the line of a value, without its LF. Writes the value four more times, and asserts that the line is the same when its keys and
/// fields are known.
fn written(value: &Plain) -> Option<String> {
    let mut writer = writer();
    let once = |writer: &mut Writer<_, _, _>| {
        writer.clear();
        writer.line(value).ok()?;
        let line = std::str::from_utf8(writer.written()).expect("it is UTF-8");
        Some(line.strip_suffix('\n').expect("it is a line").to_owned())
    };
    let first = once(&mut writer);
    for level in [Level::Plain, Level::Fast].repeat(2) {
        writer.level = level;
        assert_eq!(once(&mut writer), first);
    }
    first
}

fn within(value: Plain) -> Option<String> {
    let line = written(&Plain::Dict(vec![(Plain::text("v", Form::Bytes), value)]))?;
    let value = line
        .strip_prefix("{\"v\":")
        .and_then(|rest| rest.strip_suffix('}'));
    Some(value.expect("it is in an object").to_owned())
}

#[test]
fn a_record_has_its_tag_and_the_fields_that_are_not_left_out() {
    let text = || Plain::text("hi", Form::Bytes);
    let expected = [
        (
            record(USER, text(), null()),
            r#"{"type":"user","text":"hi"}"#.to_owned(),
        ),
        (
            record(USER, null(), text()),
            format!(r#"{{"type":"user","text":null,"{LONG_KEY}":"hi"}}"#),
        ),
        (
            record(USER, Plain::Absent, Plain::Absent),
            r#"{"type":"user"}"#.to_owned(),
        ),
        (record(PART, Plain::Absent, null()), "{}".to_owned()),
        (
            record(PART, Plain::Absent, text()),
            r#"{"b":"hi"}"#.to_owned(),
        ),
        (
            record(
                PART,
                record(PART, null(), Plain::Absent),
                Plain::List(vec![record(PART, text(), null())]),
            ),
            r#"{"a":{"a":null},"b":[{"a":"hi"}]}"#.to_owned(),
        ),
    ];
    for (value, line) in expected {
        assert_eq!(written(&value), Some(line));
    }
}

#[test]
fn keys_without_a_field_come_after_the_fields() {
    let with = |class: usize, first: Plain, extra: Json| {
        let extra = Plain::json(&extra, Form::Bytes);
        written(&Plain::Record(
            Some(class),
            vec![Some(first), Some(Plain::Absent), Some(extra)],
        ))
    };
    let written = |line: &str| Some(line.to_owned());
    assert_eq!(
        with(USER, null(), json!({"new": [1]})),
        written(r#"{"type":"user","text":null,"new":[1]}"#)
    );
    assert_eq!(
        with(USER, null(), json!({})),
        written(r#"{"type":"user","text":null}"#)
    );
    assert_eq!(
        with(PART, Plain::Absent, json!({"type": 1, "z": {}})),
        written(r#"{"type":1,"z":{}}"#)
    );
    for odd in [
        json!({"x": 1, "text": 2}),
        json!({"type": 1}),
        json!({LONG_KEY: 1}),
        json!(1),
        json!(null),
    ] {
        assert_eq!(with(USER, null(), odd), None);
    }
}

#[test]
fn unusual_values_are_left_to_the_caller() {
    let surrogate = || Plain::Wide(vec![0xd83d]);
    let pair = |key: Plain| Plain::Dict(vec![(key, null())]);
    for value in [
        Plain::Odd,
        Plain::Absent,
        surrogate(),
        Plain::Full(vec![0x1f980, 0xdfff]),
        pair(Plain::Odd),
        pair(null()),
        pair(Plain::Json(json!(1))),
        pair(surrogate()),
        Plain::List(vec![null(), Plain::Odd]),
        Plain::Record(Some(PART), vec![None, None]),
        record(USER, Plain::Odd, null()),
    ] {
        assert_eq!(within(value), None);
    }
    for value in [
        null(),
        Plain::Json(json!(1)),
        Plain::List(vec![]),
        Plain::text("{}", Form::Bytes),
    ] {
        assert_eq!(
            writer().line(&value).map_err(|_| ()),
            Err(()),
            "{value:?} is not a line"
        );
    }
}

#[test]
fn a_class_without_a_shape_is_asked_for() {
    let unplanned = Plain::Record(None, vec![]);
    let outer = record(USER, Plain::List(vec![unplanned.clone()]), null());
    for value in [&unplanned, &outer] {
        let mut writer = writer();
        assert!(matches!(
            writer.line(value),
            Err(Unwritten::Wants(Plain::Record(None, _)))
        ));
    }
}

#[test]
fn keys_with_the_same_places_replace_each_other_if_all_four_are_in_use() {
    /// `HASH_FACTOR * INVERSE` is 1 modulo 2^64, so this turns a hash back into the identity that has it.
    const INVERSE: u64 = 0xf1de_83e1_9937_733d;
    let identity = |number: u64| (6 << 54 | 9 << 44 | number).wrapping_mul(INVERSE);
    let mut keys = Keys::<()>::new();
    let kept: [&[u64]; 6] = [
        &[0],
        &[0, 1],
        &[0, 1, 2],
        &[0, 1, 2, 3],
        &[0, 2, 3, 4],
        &[2, 3, 4, 5],
    ];
    for (number, kept) in (0..).zip(kept) {
        assert_eq!(Keys::<()>::places(identity(number)), [6, 7, 9, 8]);
        assert!(keys.get(identity(number)).is_none());
        let key = || Key {
            identity: identity(number),
            words: Few::NONE,
            kept: None,
        };
        // Adding a key again changes nothing.
        keys.add([key(), key()].into_iter());
        let found = (0..6).filter(|&other| keys.get(identity(other)).is_some());
        assert_eq!(found.collect::<Vec<_>>(), kept);
    }
}

#[test]
fn deep_nesting_is_left_to_the_caller() {
    let test = || {
        for wrap in [
            |inner| Plain::List(vec![inner]),
            |inner| Plain::Dict(vec![(Plain::text("a", Form::Bytes), inner)]),
            |inner| record(PART, inner, null()),
        ] {
            let nested = |depth: usize| (0..depth).fold(null(), |inner, _| wrap(inner));
            assert!(within(nested(MAX_DEPTH - 1)).is_some());
            assert!(within(nested(MAX_DEPTH)).is_none());
        }
    };
    // Without optimization, the functions of the writer need many times the stack.
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(test);
    thread.unwrap().join().unwrap();
}

#[test]
fn lines_are_appended_and_memory_is_freed() {
    let mut writer = writer();
    let short = record(USER, Plain::text("a", Form::Bytes), null());
    let long = record(
        USER,
        Plain::text(&"b\n".repeat(100_000), Form::Bytes),
        null(),
    );
    for _ in 0..3 {
        writer
            .line(&short)
            .unwrap_or_else(|_| panic!("it is written"));
        writer
            .line(&long)
            .unwrap_or_else(|_| panic!("it is written"));
        let lines: Vec<Json> = serde_json::Deserializer::from_slice(writer.written())
            .into_iter()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(lines[0], json!({"type": "user", "text": "a"}));
        assert_eq!(lines[1]["text"].as_str().map(str::len), Some(200_000));
        writer.clear();
        assert!(writer.written().is_empty());
        assert!(writer.kept() <= KEPT_BYTES);
    }
}

#[test]
fn nothing_of_a_line_that_is_left_to_the_caller_stays() {
    let mut writer = writer();
    let short = record(USER, Plain::text("a", Form::Bytes), null());
    // The output grows while the line is written, before the value that cannot be written.
    let long = Plain::text(&"b".repeat(100_000), Form::Bytes);
    for _ in 0..2 {
        assert!(writer.line(&short).is_ok());
        let before = writer.written().to_vec();
        assert!(writer
            .line(&record(USER, long.clone(), Plain::Odd))
            .is_err());
        assert!(writer.written() == before);
    }
}

#[test]
fn numbers_have_as_many_digits_as_they_need() {
    let cases = [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (0.00001, "0.00001"),
        (0.000_009_9, "9.9e-6"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e16"),
        (1.5e300, "1.5e300"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e308"),
        (0.1 + 0.2, "0.30000000000000004"),
        // If a float is exactly halfway between two decimals, the writer chooses the decimal with the even last digit.
        (811_212_085_039_910.0 + 0.25, "811212085039910.2"),
        (2f64.powi(-44), "5.684341886080802e-14"),
        (2f64.powi(-25), "2.9802322387695312e-8"),
        (f64::NAN, "null"),
        (f64::INFINITY, "null"),
    ];
    for (number, expected) in cases {
        let mut out = Output::default();
        write_float(out.pen(), number).unwrap().end();
        assert_eq!(std::str::from_utf8(out.written()), Ok(expected));
    }
}

#[test]
fn known_fields_may_be_absent_and_unknown_fields_present() {
    let mut writer = writer();
    let text = |text| Plain::text(text, Form::Bytes);
    let deep = |inner| record(PART, inner, text("b"));
    let expected = [
        (record(PART, text("a"), null()), r#"{"a":"a"}"#),
        (record(PART, Plain::Absent, text("b")), r#"{"b":"b"}"#),
        (record(PART, text("a"), text("b")), r#"{"a":"a","b":"b"}"#),
        (record(PART, text("?"), null()), r#"{"a":"?"}"#),
        (record(PART, Plain::Absent, null()), "{}"),
        (
            deep(deep(record(PART, Plain::Absent, null()))),
            r#"{"a":{"a":{},"b":"b"},"b":"b"}"#,
        ),
    ];
    let lines = || expected.iter().chain(&expected);
    for (value, _) in lines() {
        writer.line(value).unwrap_or_else(|_| panic!("{value:?}"));
    }
    let written: Vec<&[u8]> = writer.written().split(|&byte| byte == b'\n').collect();
    let expected: Vec<&[u8]> = lines()
        .map(|(_, line)| line.as_bytes())
        .chain([&[][..]])
        .collect();
    assert_eq!(written, expected);
    let emptied = Plain::Record(Some(PART), vec![Some(null()), None]);
    assert!(writer.line(&emptied).is_err());
}

#[test]
fn more_keys_than_the_writer_remembers_are_written() {
    let name = |number: usize| format!("{}{number}", "k".repeat(number % 40));
    let dict: serde_json::Map<_, _> = (0..2000)
        .map(|number| (name(number), json!(number)))
        .collect();
    let value = Json::Object(dict);
    for form in [Form::Bytes, Form::Characters] {
        assert_eq!(within(Plain::json(&value, form)), Some(value.to_string()));
    }
}

fn values() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        (-1000i64..1000).prop_map(|value| json!(value)),
        "\\PC{0,60}".prop_map(|value| json!(value)),
        "[a-z\"\\\\\u{0}-\u{1f}\u{e9}\u{2014}\u{2028}\u{2029}\u{1f980}]{0,60}"
            .prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::vec(("[a-z\u{e9}\u{2028}\"]{0,40}", inner), 0..6)
                .prop_map(|pairs| Json::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn anything_is_written_as_compact_json(value in values()) {
        let expected = value.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
        for form in [Form::Bytes, Form::Characters] {
            prop_assert_eq!(within(Plain::json(&value, form)), Some(expected.clone()));
        }
    }

    #[test]
    fn long_strings_are_cut_between_characters(text in "[a\n\u{e9}\u{2014}\u{2028}\u{1f980}]{1,9}", times in 1usize..2000) {
        let text = text.repeat(times);
        let expected = json!(text).to_string().replace('\u{2028}', "\\u2028");
        for form in [Form::Bytes, Form::Characters] {
            prop_assert_eq!(within(Plain::text(&text, form)), Some(expected.clone()));
        }
    }

    #[test]
    fn short_decimals_are_written_without_extra_digits(digits in -1_000_000_000i64..1_000_000_000, places in 0i32..12) {
        let number: f64 = format!("{digits}e-{places}").parse().unwrap();
        let mut out = Output::default();
        write_float(out.pen(), number).unwrap().end();
        let text = std::str::from_utf8(out.written()).unwrap();
        prop_assert_eq!(text.parse(), Ok(number));
        let mut any = Output::default();
        write_any_float(any.pen(), number.abs()).unwrap().end();
        prop_assert_eq!(text.trim_start_matches('-').as_bytes(), any.written());
    }

    #[test]
    fn written_floats_read_back_as_the_same_float(number: f64) {
        prop_assume!(number.is_finite());
        let mut out = Output::default();
        write_float(out.pen(), number).unwrap().end();
        let text = std::str::from_utf8(out.written()).unwrap();
        prop_assert_eq!(text.parse(), Ok(number));
        prop_assert!(text.contains(['.', 'e']));
    }
}
