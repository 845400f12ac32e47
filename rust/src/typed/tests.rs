//! Tests of the reader with plain values instead of Python's objects: which messages the reader makes, and which lines fall through.

use std::collections::HashSet;
use std::rc::Rc;

use proptest::prelude::*;
use serde_json::{json, Value as Json};

use super::alike::Patterns;
use super::memo::{max_objects, Keys, Part, MAX_KEPT};
use super::plain::{field, reader, require_model, word, Plain, Values, LATER};
use super::plan::{Class, Shape, Top, ANY};
use super::{Line, Reader};

fn read(reader: &mut Reader<Values>, block: &[u8]) -> Vec<Line<Plain>> {
    let mut lines = Vec::new();
    let mut end = 0;
    reader.block(block, block.len(), |line, from, to| {
        assert_eq!(from, end, "lines follow each other");
        assert_eq!(block[to - 1], b'\n');
        end = to;
        lines.push(line);
    });
    assert_eq!(end, block.len());
    lines
}

fn one(line: &str) -> Line<Plain> {
    let mut reader = reader();
    let first = read(&mut reader, format!("{line}\n").as_bytes()).remove(0);
    // Remembered values must not change the result.
    for _ in 0..4 {
        let again = read(&mut reader, format!("{line}\n").as_bytes()).remove(0);
        assert_eq!(again, first, "{line}");
    }
    if let Line::Message(message, _) = &first {
        require_model(line.as_bytes(), message);
    }
    first
}

fn message(line: &str) -> Plain {
    match one(line) {
        Line::Message(message, false) => message,
        other => panic!("{line}: {other:?}"),
    }
}

fn record(class: &'static str, slots: Vec<Plain>) -> Plain {
    record_with(class, slots, Plain::Json(Json::Null))
}

fn record_with(class: &'static str, mut slots: Vec<Plain>, extra: Plain) -> Plain {
    slots.push(extra);
    Plain::Record(class, Rc::new(slots))
}

fn dict<const N: usize>(pairs: [(&str, Plain); N]) -> Plain {
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value));
    Plain::Dict(Rc::new(pairs.into()))
}

fn delta(text: &str) -> Plain {
    record("Delta", vec![word(text), Plain::Default])
}

#[test]
fn a_record_has_its_values_and_defaults() {
    let expected = record("Event", vec![delta("hi"), word("s"), Plain::Default]);
    assert_eq!(
        message(r#"{"type":"event","event":{"type":"delta","text":"hi"},"session_id":"s"}"#),
        expected
    );
    assert_eq!(
        message(r#"{"session_id":"s","event":{"text":"hi","type":"delta"},"type":"event"}"#),
        expected
    );
    assert_eq!(message("{ \"type\" : \"event\" , \"event\" : { \"type\":\"delta\", \"text\" :\t\"hi\" } , \"session_id\":\"s\" }\r"), expected);
}

#[test]
fn without_classes_of_lines_each_object_is_a_dict() {
    let mut reader = Reader::new(Values::default());
    let lines = b"{\"type\":\"word\",\"a\":[{}]}\n[]\n{} \n{\"a\":1}x\n";
    let found = read(&mut reader, lines);
    let json: Vec<_> = found
        .iter()
        .map(|line| match line {
            Line::Message(message @ Plain::Dict(_), false) => message.json(),
            other => json!(format!("{other:?}")),
        })
        .collect();
    let expected = [
        json!({"type": "word", "a": [{}]}),
        json!("FallsThrough"),
        json!({}),
        json!("FallsThrough"),
    ];
    assert_eq!(json, expected);
}

#[test]
fn keys_without_a_field_are_kept_in_their_record() {
    let line = r#"{"of":1,"type":"event","event":{"type":"delta","new":{"a":[null]},"text":"hi","of":[]},"session_id":"s","of":"é"}"#;
    let new = dict([("a", Plain::List(Rc::new(vec![Plain::Json(Json::Null)])))]);
    let event = record_with(
        "Delta",
        vec![word("hi"), Plain::Default],
        dict([("new", new), ("of", Plain::List(Rc::default()))]),
    );
    let expected = record_with(
        "Event",
        vec![event, word("s"), Plain::Default],
        dict([("of", word("é"))]),
    );
    assert_eq!(message(line), expected);
    // A line that fails halfway must not affect the next line.
    let mut reader = reader();
    let broken = line.replace("\"s\"", "s");
    let block = format!("{broken}\n{line}\n{broken}\n{line}\n");
    for (index, read) in read(&mut reader, block.as_bytes()).into_iter().enumerate() {
        let is_broken = index % 2 == 0;
        assert_eq!(read == Line::FallsThrough, is_broken);
        assert!(is_broken || read == Line::Message(expected.clone(), false));
    }
}

#[test]
fn a_remembered_value_cannot_exceed_the_maximum_depth() {
    let mut reader = reader();
    let mut value = "[1,2,3,4,5,6,7,8]".to_owned();
    for turn in 0..20 {
        let key = ["one", "other"][turn % 2];
        let line = format!("{{\"type\":\"new\",\"{key}\":{value}}}\n");
        for _ in 0..3 {
            let found = read(&mut reader, line.as_bytes()).remove(0);
            assert_eq!(found == Line::FallsThrough, turn > 2, "{turn}");
        }
        value = format!("{}{{\"{key}\":{value}}}{}", "[".repeat(40), "]".repeat(40));
    }
    // The reader shares the remembered value at the same nesting depth or above. Deeper, it reads the value again.
    let part = format!("{}{}", "[".repeat(60), "]".repeat(60));
    let line = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!("{{\"type\":\"new\",\"a\":{open}{{\"part\":{part}}}{close}}}\n")
    };
    for (depth, is_read) in [
        (20, true),
        (20, true),
        (38, true),
        (20, true),
        (39, false),
        (38, true),
    ] {
        let found = read(&mut reader, line(depth).as_bytes()).remove(0);
        assert_eq!(found != Line::FallsThrough, is_read, "{depth}");
    }
}

#[test]
fn keys_of_any_length_are_found() {
    let long = "a_key_that_has_more_than_thirty_two_bytes";
    let line = format!(r#"{{"type":"event","event":{{"type":"stop"}},"{long}":"x"}}"#);
    let expected = record(
        "Event",
        vec![
            record("Stop", vec![Plain::Default]),
            Plain::Default,
            word("x"),
        ],
    );
    assert_eq!(message(&line), expected);
    let other = line.replace("two_bytes", "two_bitten");
    let without = record_with(
        "Event",
        vec![
            record("Stop", vec![Plain::Default]),
            Plain::Default,
            Plain::Default,
        ],
        dict([(long.replace("two_bytes", "two_bitten").as_str(), word("x"))]),
    );
    assert_eq!(message(&other), without);
}

#[test]
fn whole_numbers_become_floats_in_float_fields() {
    let stop = |seconds: Plain| {
        record(
            "Event",
            vec![
                record("Stop", vec![seconds]),
                Plain::Default,
                Plain::Default,
            ],
        )
    };
    let line = |seconds: &str| {
        format!(r#"{{"type":"event","event":{{"type":"stop","seconds":{seconds}}}}}"#)
    };
    assert_eq!(message(&line("5")), stop(Plain::Json(json!(5.0))));
    assert_eq!(message(&line("0.25e1")), stop(Plain::Json(json!(2.5))));
    assert_eq!(one(&line("\"5\"")), Line::FallsThrough);
    assert_eq!(one(&line("9007199254740993")), Line::FallsThrough);
}

#[test]
fn a_field_may_have_any_type_and_its_own_class() {
    let parts = Plain::List(Rc::new(vec![record("Stop", vec![Plain::Default])]));
    let json = |value: Json| Plain::Json(value);
    let parent = record(
        "Node",
        vec![
            json(Json::Null),
            json(json!(0.5)),
            Plain::Default,
            dict([("b", json(json!(3))), ("a", json(json!(2)))]),
            json(Json::Null),
        ],
    );
    let expected = record(
        "Node",
        vec![
            json(json!(true)),
            json(json!(1)),
            parts,
            Plain::Default,
            parent,
        ],
    );
    let parent = r#"{"counts":{"b":1,"a":2,"b":3},"cost":0.5,"done":null,"parent":null}"#;
    let line = format!(
        r#"{{"type":"node","done":true,"cost":1,"parts":[{{"type":"stop"}}],"parent":{parent}}}"#
    );
    assert_eq!(message(&line), expected);
    for (value, other) in [
        ("true", "1"),
        ("1,", "null,"),
        ("2,", "2.0,"),
        ("0.5", "\"\""),
    ] {
        let line = line.replacen(value, other, 1);
        assert_eq!(one(&line), Line::FallsThrough, "{line}");
    }
}

#[test]
fn a_class_by_subtype_is_found_wherever_its_tags_are() {
    let init = |tools: Plain| record("Init", vec![word("init"), tools, Plain::Default]);
    let tools = Plain::List(Rc::new(vec![word("a"), word("b"), Plain::Json(Json::Null)]));
    assert_eq!(
        message(r#"{"type":"system","subtype":"init","tools":["a","b",null]}"#),
        init(tools.clone())
    );
    assert_eq!(
        message(r#"{"tools":["a","b",null],"subtype":"init","type":"system"}"#),
        init(tools)
    );
    assert_eq!(
        message(r#"{"subtype":"init","tools":null,"type":"system"}"#),
        init(Plain::Json(Json::Null))
    );
}

#[test]
fn a_tag_before_the_other_keys_is_read_once() {
    let stop = record(
        "Event",
        vec![
            record("Stop", vec![Plain::Default]),
            Plain::Default,
            Plain::Default,
        ],
    );
    let line = |event: &str, rest: &str| format!(r#"{{"type":"event","event":{event}{rest}}}"#);
    let event = r#"{"type":"stop"}"#;
    assert_eq!(message(&line(event, "")), stop);
    assert_eq!(
        message(r#"{"type":"event" , "event":{"type":"stop" } }"#),
        stop
    );
    for (event, rest) in [
        (event, r#","type":"event""#),
        (event, ","),
        (event, r#""session_id":"s""#),
        (r#"{"type":"stop","type":"stop"}"#, ""),
        (r#"{"type":"stop",}"#, ""),
        (r#"{"type":"stop"]"#, ""),
        (r#"{"type":"delta"}"#, ""),
    ] {
        assert_eq!(
            one(&line(event, rest)),
            Line::FallsThrough,
            "{event} {rest}"
        );
    }
    assert_eq!(
        one(r#"{"type":"event"}"#),
        Line::FallsThrough,
        "a required key is absent"
    );
}

#[test]
fn the_type_of_a_class_without_a_tag_is_a_key_like_any_other() {
    let mut reader = Reader::new(Values::default());
    reader.change_plan(|plan| {
        plan.fields.push(field("text", Some(ANY), 0));
        plan.classes.push(Class::Planned(Shape {
            class: ("Turn", 1),
            fields: 0..1,
            required: 0,
            tag: Vec::new(),
            extra: Some(1),
        }));
        plan.tops = vec![Top {
            tag: b"turn".to_vec(),
            subtype: None,
            class: 0,
        }];
    });
    let line = b"{\"type\":\"turn\",\"text\":\"a\"}\n";
    let turn = record_with("Turn", vec![word("a")], dict([("type", word("turn"))]));
    assert_eq!(read(&mut reader, line), [Line::Message(turn, false)]);
}

#[test]
fn an_object_without_a_class_is_unknown() {
    let unknown = |kind: &str, reason: &str, key: &str, value: &str| {
        Plain::Unknown(
            kind.into(),
            reason.into(),
            Rc::new(vec![(key.into(), word(value))]),
        )
    };
    for news in ["news", &"news".repeat(100)] {
        assert_eq!(
            one(&format!(r#"{{"type":"{news}"}}"#)),
            Line::Message(
                unknown("UnknownMessage", "unknown type", "type", news),
                true
            )
        );
    }
    let event = record(
        "Event",
        vec![
            unknown("UnknownEvent", "unknown type", "type", "x"),
            Plain::Default,
            Plain::Default,
        ],
    );
    assert_eq!(
        one(r#"{"type":"event","event":{"type":"x"}}"#),
        Line::Message(event, true)
    );
    let Line::Message(Plain::Unknown(_, reason, _), true) =
        one(r#"{"type":"system","subtype":"x"}"#)
    else {
        panic!("it is known");
    };
    assert_eq!(reason, "unknown subtype");
}

#[test]
fn a_class_that_is_not_planned_is_asked_for() {
    assert_eq!(one(r#"{"type":"later"}"#), Line::Wants(LATER));
}

#[test]
fn unusual_lines_fall_through() {
    for line in [
        r#"{"type":"event","event":{"type":"stop","seconds":1.}}"#,
        r#"{"type":"event","event":{"type":"stop","seconds":1.e5}}"#,
        r#"{"type":"event","event":{"type":"stop","seconds":1e}}"#,
        r#"{"type":"event"}"#,
        r#"{"type":"event","event":null}"#,
        r#"{"type":"event","event":{"type":"delta"}}"#,
        r#"{"type":"event","event":{"type":"delta","text":1}}"#,
        r#"{"type":"event","event":{"type":"delta","text":{}}}"#,
        r#"{"type":"event","event":{"type":"delta","text":[]}}"#,
        r#"{"type":"event","event":{"type":"delta","text":"a","text":"b"}}"#,
        r#"{"type":"event","event":{"type":"delta","text":"a","text":"index":1}}"#,
        r#"{"type":"event","type":"event","event":{"type":"stop"}}"#,
        r#"{"type":"event","event":{"type":"stop","type":"stop"}}"#,
        r#"{"type":"event","event":{"type":"delta","text":"\ud83d"}}"#,
        r#"{"type":"event","event":{"type":"delta","text":"\x"}}"#,
        r#"{"type":"event","event":{"type":"delta","text":"a","index":1.5}}"#,
        r#"{"type":"event","event":{"type":"delta","text":"a","index":12345678901234567890}}"#,
        r#"{"type":"event","event":{"type":"delta","text":"a","index":-0}}"#,
        r#"{"type":"event","event":{"type":"delta","text":"a","index":01}}"#,
        r#"{"type":"event","event":{"type":"stop","seconds":1e999}}"#,
        r#"{"type":"event","event":{"text":"a"}}"#,
        r#"{"type":"event","event":{"type":"stop"}} {}"#,
        r#"{"type":"event","event":{"type":"stop"},}"#,
        r#"{"type":"event","event":{"type":"stop"},"x":nul}"#,
        r#"{"type":"event","event":{"type":"stop"},"x":[1,]}"#,
        r#"{"type":"event","event":{"type":"stop"},"x":{"a"}}"#,
        r#"{"type":"event","event":{"type":"stop"},"\u0078":1"#,
        r#"{"type":"system","subtype":"init","subtype":"x"}"#,
        r#"{"type":"news","type":"news"}"#,
        r#"{"type":"n\u0065ws"}"#,
        r#"{"type":1}"#,
        r#"x"type":"event","event":{"type":"stop"}}"#,
        r#"x"subtype":"init","type":"system"}"#,
        "{}",
        "[]",
        "",
        "x",
    ] {
        assert_eq!(one(line), Line::FallsThrough, "{line}");
    }
    let deep = format!(
        r#"{{"type":"system","subtype":"init","more":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    assert_eq!(one(&deep), Line::FallsThrough);
}

#[test]
fn lists_and_dicts_are_not_shared() {
    let mut reader = reader();
    let line = br#"{"type":"system","subtype":"init","tools":["a","b","c","d","e","f"],"more":{"a":[1,{"b":2}],"c":"long enough"}}"#;
    let block = [line.as_slice(), b"\n"].concat().repeat(6);
    let lines = read(&mut reader, &block);
    let parts = |line: &Line<Plain>| match line {
        Line::Message(Plain::Record(_, slots), false) => match (&slots[1], &slots[2]) {
            (Plain::List(tools), Plain::Dict(more)) => {
                (Rc::as_ptr(tools) as usize, Rc::as_ptr(more) as usize)
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    for (index, one) in lines.iter().enumerate() {
        assert_eq!(*one, lines[0]);
        for other in &lines[index + 1..] {
            assert_ne!(parts(one).0, parts(other).0);
            assert_ne!(parts(one).1, parts(other).1);
        }
    }
}

#[test]
fn the_repeated_value_of_a_dict_key_is_copied() {
    let mut reader = reader();
    let value = r#"{"a":["long enough",{"deep":[1,2,3]}],"again":{"deep":[1,2,3]}}"#;
    let line = |index| {
        format!(
            "{{\"type\":\"system\",\"subtype\":\"init\",\"more\":{{\"key\":{value},\"n\":{index}}}}}\n"
        )
    };
    let block = (0..8).map(line).collect::<Vec<_>>().concat();
    let lines = read(&mut reader, block.as_bytes());
    let values: Vec<_> = lines
        .iter()
        .map(|line| match line {
            Line::Message(Plain::Record(_, slots), false) => match &slots[2] {
                Plain::Dict(more) => match &more[0].1 {
                    Plain::Dict(value) => value.clone(),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    let expected: Json = serde_json::from_str(value).unwrap();
    for (index, one) in values.iter().enumerate() {
        assert_eq!(Plain::Dict(one.clone()).json(), expected);
        assert!(values[index + 1..]
            .iter()
            .all(|other| !Rc::ptr_eq(one, other)));
    }
}

#[test]
fn a_value_that_consists_of_many_small_objects_is_not_kept() {
    let copies = |value: &str| {
        let mut reader = reader();
        for number in 0..20 {
            let line = format!("{{\"type\":\"system\",\"subtype\":\"init\",\"more\":{{\"a\":[],\"b\":[],\"n\":{number},\"key\":[{value}]}}}}\n");
            let found = read(&mut reader, line.as_bytes()).remove(0);
            assert!(matches!(found, Line::Message(_, false)), "{found:?}");
        }
        reader.builder.copied
    };
    let lists = "[],".repeat(98);
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    // The reader reads the value twice, and then copies it.
    let most = 16 * (99 - 8) - 2;
    assert_eq!(max_objects(most + 2), 99);
    assert_eq!(copies(&(lists.clone() + &text(most - lists.len()))), 18);
    assert_eq!(copies(&(lists.clone() + &text(most - lists.len() - 1))), 0);
}

#[test]
fn repeated_values_are_not_made_again() {
    // Counts the strings, records and copies that twenty lines make after twenty similar lines.
    let makes = |line: &dyn Fn(usize) -> String| {
        let mut reader = reader();
        let mut counts = [[0; 3]; 2];
        for (turn, counts) in counts.iter_mut().enumerate() {
            for index in 20 * turn..20 * (turn + 1) {
                let found = read(&mut reader, line(index).as_bytes()).remove(0);
                assert!(matches!(found, Line::Message(_, false)), "{found:?}");
            }
            let Values {
                made,
                begun,
                copied,
            } = reader.builder;
            *counts = [made, begun, copied];
        }
        [0, 1, 2].map(|what| counts[1][what] - counts[0][what])
    };
    let long = "longer than the strings that are kept wherever they stand";
    let list = |index| {
        format!("{{\"type\":\"system\",\"subtype\":\"init\",\"tools\":[\"{long}\"],\"more\":{index}}}\n")
    };
    assert_eq!(makes(&list), [0, 20, 20]);
    let event = |text: &str, index: usize, session: &str| {
        format!("{{\"type\":\"event\",\"event\":{{\"type\":\"delta\",\"index\":{index},\"text\":\"{text}\"}},\"session_id\":\"{session}\"}}\n")
    };
    let strings = |index| event(["a", long][index % 2], index, "s");
    assert_eq!(makes(&strings), [0, 40, 0]);
    // Lines that differ only in strings become copies. The reader makes new strings only for those that do not repeat.
    let text = |index: usize| event(&format!("text {index}"), 0, "s");
    assert_eq!(makes(&text), [20, 0, 40]);
    let session = |index| event("a", 0, ["one", "two"][index % 2]);
    assert_eq!(makes(&session), [0, 0, 20]);
}

#[test]
fn halves_of_surrogate_pairs_are_found_up_to_the_last() {
    let line =
        |text: &str| format!(r#"{{"type":"event","event":{{"type":"delta","text":"{text}"}}}}"#);
    let whole = r"\ud7ff\ud800\udc00\udbff\udfff\ue000";
    let event = record(
        "Event",
        vec![
            delta("\u{d7ff}\u{10000}\u{10ffff}\u{e000}"),
            Plain::Default,
            Plain::Default,
        ],
    );
    assert_eq!(message(&line(whole)), event);
    for half in [
        r"\ud800",
        r"\udbff",
        r"\udc00",
        r"\udfff",
        r"\ud800a",
        r"\ud800\n",
        r"\ud800--dc00",
        r"\ud800\ud800",
        r"\ud800\udbff",
        r"\ud800\ue000",
        r"\udc00\udc00",
    ] {
        assert_eq!(one(&line(half)), Line::FallsThrough, "{half}");
    }
}

#[test]
fn few_patterns_are_made_if_all_lines_differ() {
    let mut patterns = Patterns::<u8, ()>::default();
    let first = (0..1_000).filter(|_| patterns.miss(100)).count();
    let later = (0..12_800).filter(|_| patterns.miss(100)).count();
    assert!((8..20).contains(&first), "{first}");
    assert!((90..110).contains(&later), "{later}");
    assert!(!(0..1_000).any(|_| patterns.miss(100_000)));
}

#[test]
fn remembered_arrays_and_objects_have_a_bound() {
    let mut kept_bytes = 0;
    let mut parts: Vec<Part<u8, ()>> = (0..100).map(|_| Part::default()).collect();
    for round in 1..5 {
        for (index, part) in parts.iter_mut().enumerate() {
            let bytes = vec![b'x'; (index * 7919 * round) % 80_000];
            part.note(&bytes, &mut kept_bytes);
            assert!(kept_bytes <= MAX_KEPT);
        }
    }
    assert!(kept_bytes > MAX_KEPT / 2);
    // The reader must compare the line up to its last byte.
    let mut kept_bytes = MAX_KEPT - 16;
    for (bytes, is_kept) in [(17, false), (16, true), (16, false)] {
        let before = kept_bytes;
        Part::<u8, ()>::default().note(&vec![b'x'; bytes], &mut kept_bytes);
        assert_eq!(kept_bytes > before, is_kept);
    }
}

#[test]
fn bytes_that_are_no_longer_kept_are_no_longer_counted() {
    let (mut part, mut kept_bytes) = (Part::<u8, ()>::default(), 100);
    for bytes in [1_000, 20, 500] {
        part.note(&vec![b'x'; bytes], &mut kept_bytes);
        assert_eq!(kept_bytes, 100 + bytes);
    }
    // Most of these keys replace another one.
    let (mut keys, mut kept_bytes) = (Keys::<u8, ()>::default(), 0);
    let mut slots = HashSet::new();
    for number in 0..10_000 {
        let name = format!("key {number}");
        let found = keys.get(name.as_bytes(), &mut kept_bytes, || Some(0));
        let slot = found.and_then(|(_, slot)| slot).unwrap();
        keys.part(slot).note(&[b'x'; 16], &mut kept_bytes);
        slots.insert(slot);
    }
    assert!(slots.len() < 5_000);
    assert_eq!(kept_bytes, 16 * slots.len());
}

#[test]
fn the_memory_of_a_reader_is_bounded() {
    let mut reader = reader();
    let items = "\"\\n\",".repeat(400_000);
    let long = format!("\\n{}", "x".repeat(3_000_000));
    read(
        &mut reader,
        format!(
            r#"{{"type":"later","list":[{items}0],"text":"{long}"}}{}"#,
            '\n'
        )
        .as_bytes(),
    );
    for length in 1..300 {
        let part = format!(r#"["{}"]"#, "x".repeat(length * 1000 % 70_000));
        let line = format!(
            r#"{{"type":"system","subtype":"init","tools":{part},"more":{part}}}{}"#,
            '\n'
        );
        read(&mut reader, line.repeat(3).as_bytes());
    }
    // Lines that begin like a line of another class: the guess is wrong.
    for number in 0..20_000 {
        let rest = [
            r#""type":"event","event":{"type":"stop"}"#,
            r#""type":"system","subtype":"init""#,
        ][usize::from(number % 9 == 8)];
        let line = format!("{{\"session_id\":\"s\",\"a\":{number},{rest}}}\n");
        let found = read(&mut reader, line.as_bytes()).remove(0);
        assert!(matches!(found, Line::Message(_, false)), "{line}");
    }
    let (buffers, parts) = reader.allocated();
    assert!(buffers <= 3 * 64 * 1024, "{buffers}");
    assert!(parts <= 2 * super::memo::MAX_KEPT, "{parts}");
}

#[test]
fn a_wrong_guess_changes_nothing() {
    // The numbers differ, so that the reader makes no line from the pattern of another line.
    let events = (0..20).fold(String::new(), |events, number| {
        events + &format!("{{\"session_id\":\"s\",\"a\":{number},\"event\":{{\"type\":\"stop\"}},\"type\":\"event\"}}\n")
    });
    for rest in [
        r#""type":"event","event":{"type":"stop"}"#,
        r#""type":"system","subtype":"init""#,
        r#""subtype":"init","type":"system""#,
        r#""subtype":"other","type":"system""#,
        r#""type":"system""#,
        r#""type":"of_tomorrow","event":{"type":"stop"}"#,
        r#""event":{"type":"stop"}"#,
        r#""event":{"type":"stop"},"type":"ev\u0065nt""#,
        r#""event":{"type":"stop"},"type":"event","type":"event""#,
        r#""event":{"type":"stop"},"type":["event"]"#,
        r#""a":{"type":"system"},"subtype":"init","type":"system""#,
        r#""a":"\"type\":\"x\"","type":"event","event":{"type":"stop"}"#,
        r#""a":[1,{],"type":"event","event":{"type":"stop"}"#,
        r#""a":"\x","type":"event","event":{"type":"stop"}"#,
        r#""a":01,"type":"system","subtype":"init""#,
    ] {
        let line = format!("{{\"session_id\":\"s\",{rest}}}\n");
        let mut guesses = reader();
        read(&mut guesses, events.as_bytes());
        let expected = read(&mut reader(), line.as_bytes());
        assert_eq!(read(&mut guesses, line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn similar_lines_get_their_own_strings() {
    let mut reader = reader();
    let texts = [
        "a",
        "",
        "with \\\"escapes\\\"\\n",
        "ünïcode 🦀",
        "\\ud83e\\udd80",
        "b",
        "b",
    ];
    let lines: Vec<String> = (0..200)
        .map(|index| {
            let (text, session) = (texts[index % texts.len()], index / 50);
            format!("{{\"type\":\"event\",\"event\":{{\"type\":\"delta\",\"text\":\"{text}\",\"index\":{}}},\"session_id\":\"{session}\"}}\n", index % 2)
        })
        .collect();
    for (line, read) in lines
        .iter()
        .zip(read(&mut reader, lines.concat().as_bytes()))
    {
        let Line::Message(message, false) = read else {
            panic!("{line}: {read:?}");
        };
        require_model(line.as_bytes(), &message);
    }
}

#[test]
fn short_strings_and_keys_in_the_same_slot_are_told_apart() {
    // There are more strings and keys than slots.
    let words: Vec<String> = (0..5_000)
        .map(|number| format!("\"word {number:04}\""))
        .collect();
    let pairs: Vec<String> = words.iter().map(|key| format!("{key}:[{key}]")).collect();
    let (tools, more) = (words.join(","), pairs.join(","));
    message(&format!(
        r#"{{"type":"system","subtype":"init","tools":[{tools}],"more":{{{more}}}}}"#
    ));
}

#[test]
fn similar_dicts_get_their_own_strings() {
    let mut reader = Reader::new(Values::default());
    let lines: Vec<String> = (0..200)
        .map(|index| {
            let text = ["a", r#"with \"escapes\""#, "ünïcode 🦀"][index % 3];
            // A line with the same key twice, and a line with an escape in a key.
            let more = ["", r#","a":1,"a":"x""#, r#","\u0061b":"x""#][index / 70];
            format!("{{\"id\":\"{index}\"{more},\"inner\":{{\"text\":\"{text}\",\"n\":1}},\"list\":[1],\"end\":\"{}\"}}\n", index % 7)
        })
        .collect();
    let found = read(&mut reader, lines.concat().as_bytes());
    // Making a pattern also copies a few objects.
    assert!(reader.builder.copied > 100, "most lines match a pattern");
    for (line, read) in lines.iter().zip(found) {
        let expected: Json = serde_json::from_str(line).unwrap();
        let Line::Message(message, false) = read else {
            panic!("{line}: {read:?}");
        };
        assert_eq!(message.json(), expected, "{line}");
    }
}

#[test]
fn the_values_of_a_repeated_key_are_told_apart() {
    let mut reader = Reader::new(Values::default());
    // The dict has only the second value of "a", in which a pattern must not search for the objects of the first.
    for second in [r#""x""#, "1", "[]", r#"{"b":"x"}"#] {
        let line = format!("{{\"a\":{{\"b\":{{\"c\":\"x\"}}}},\"a\":{second}}}\n");
        let expected: Json = serde_json::from_str(&line).unwrap();
        for read in read(&mut reader, line.repeat(50).as_bytes()) {
            let Line::Message(message, false) = read else {
                panic!("{line}: {read:?}");
            };
            assert_eq!(message.json(), expected, "{line}");
        }
    }
}

/// Generates JSON that the reader can read: whole numbers with at most 18 digits, and finite floats.
fn values() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(|value| json!(value)),
        (-999_999_999_999_999_999i64..=999_999_999_999_999_999).prop_map(|value| json!(value)),
        (-1e15f64..1e15)
            .prop_filter("whole", |value| value.fract() != 0.0)
            .prop_map(|value| json!(value)),
        "\\PC{0,40}".prop_map(|value| json!(value)),
        "[a-z\"\\\\\u{0}-\u{1f}\u{e9}\u{1f980}]{0,40}".prop_map(|value| json!(value)),
        "[a-zA-Z\"\n]{0,200}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::vec(("[a-z\u{e9}\"]{0,40}", inner), 0..6)
                .prop_map(|pairs| Json::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Returns a line with the value in a field that accepts anything.
fn line_with(value: &Json, pretty: bool) -> String {
    let value = if pretty {
        serde_json::to_string_pretty(value)
            .unwrap()
            .replace('\n', "\t")
    } else {
        value.to_string()
    };
    format!(r#"{{"type":"system","subtype":"init","more":{value}}}"#)
}

proptest! {
    #[test]
    fn any_value_is_read_as_serde_reads_it(values in prop::collection::vec(values(), 1..8), pretty: bool) {
        let mut reader = reader();
        let lines: Vec<String> = values.iter().map(|value| line_with(value, pretty) + "\n").collect();
        // Read three times: remembered values must not change the result.
        for _ in 0..3 {
            for (line, read) in lines.iter().zip(read(&mut reader, lines.concat().as_bytes())) {
                let Line::Message(message, false) = read else {
                    panic!("{line}: {read:?}");
                };
                require_model(line.as_bytes(), &message);
            }
        }
    }

    #[test]
    fn what_is_read_is_json(value in values(), cut in 0.0f64..1.0, byte: u8, insert: bool) {
        let mut line = line_with(&value, false).into_bytes();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let at = (cut * line.len() as f64) as usize;
        if insert {
            line.insert(at, byte);
        } else {
            line[at] = byte;
        }
        line.retain(|&byte| byte != b'\n');
        line.push(b'\n');
        // The reader gets only valid UTF-8.
        if std::str::from_utf8(&line).is_err() {
            return Ok(());
        }
        let read = read(&mut reader(), &line).remove(0);
        if let Line::Message(message, _) = read {
            require_model(&line, &message);
        }
    }

    #[test]
    fn a_truncated_line_falls_through(value in values(), cut in 0.0f64..1.0) {
        let line = line_with(&value, false);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let mut at = (cut * line.len() as f64) as usize;
        while !line.is_char_boundary(at) {
            at -= 1;
        }
        let cut = format!("{}\n", &line[..at]);
        prop_assert_eq!(read(&mut reader(), cut.as_bytes()).remove(0), Line::FallsThrough);
    }
}

#[test]
fn a_class_may_have_more_than_64_fields() {
    let mut reader = Reader::new(Values::default());
    reader.change_plan(|plan| {
        let mut fields: Vec<_> = (0..99)
            .map(|slot| field(&format!("k{slot}"), Some(ANY), slot))
            .collect();
        fields.push(field("type", None, 0));
        plan.fields.extend(fields);
        plan.classes.push(Class::Planned(Shape {
            class: ("Wide", 99),
            fields: 0..100,
            required: 1 << 98,
            tag: b"wide".to_vec(),
            extra: None,
        }));
        plan.tops = vec![Top {
            tag: b"wide".to_vec(),
            subtype: None,
            class: 0,
        }];
    });
    let mut wide = |slots: &[usize]| {
        let pairs = slots.iter().map(|slot| format!(r#","k{slot}":"{slot}""#));
        let line = format!("{{\"type\":\"wide\"{}}}\n", pairs.collect::<String>());
        read(&mut reader, line.as_bytes()).remove(0)
    };
    let all: Vec<usize> = (0..99).collect();
    let slots = all.iter().map(|slot| word(&slot.to_string())).collect();
    let message = record("Wide", slots);
    assert_eq!(wide(&all), Line::Message(message, false));
    for slot in [0, 34, 63, 64, 97, 98] {
        let twice = [&all[..], &[slot]].concat();
        assert_eq!(wide(&twice), Line::FallsThrough, "k{slot} comes twice");
    }
    assert_eq!(
        wide(&all[..98]),
        Line::FallsThrough,
        "a required key is absent"
    );
}
