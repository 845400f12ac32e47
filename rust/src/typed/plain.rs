//! A builder that makes values of the enum [`Plain`] instead of Python's objects, a reader with a small plan, and a model of this reader,
//! for the tests and the fuzzer.

use std::rc::Rc;
use std::vec::Drain;

use serde_json::{json, Value as Json};

use crate::oracle;
use crate::simd::Key;
use crate::typed::plan::{may_be, Class, Field, Kind, Member, Plan, Shape, Top, ANY, EXTRA};
use crate::typed::{Builder, Reader};

/// A value that [`Values`] makes. A record contains the name of its class and the values of its slots.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    Json(Json),
    List(Rc<Vec<Plain>>),
    Dict(Rc<Vec<(String, Plain)>>),
    Record(&'static str, Rc<Vec<Plain>>),
    Unknown(String, String, Rc<Vec<(String, Plain)>>),
    Default,
}

impl Plain {
    /// Returns the text of a string. Panics for any other value.
    pub fn text(&self) -> String {
        match self {
            Plain::Json(Json::String(text)) => text.clone(),
            other => panic!("no text: {other:?}"),
        }
    }

    /// Returns the value as JSON. A record becomes `{"class": …, "slots": […]}`, and an object with an unknown tag
    /// `{"class": …, "reason": …, "pairs": {…}}`.
    pub fn json(&self) -> Json {
        let object = |pairs: &[(String, Plain)]| {
            Json::Object(
                pairs
                    .iter()
                    .map(|(key, value)| (key.clone(), value.json()))
                    .collect(),
            )
        };
        match self {
            Plain::Json(json) => json.clone(),
            Plain::List(items) => Json::Array(items.iter().map(Plain::json).collect()),
            Plain::Dict(pairs) => object(pairs),
            Plain::Unknown(class, reason, pairs) => {
                json!({ "class": class, "reason": reason, "pairs": object(pairs) })
            }
            Plain::Record(class, slots) => {
                json!({ "class": class, "slots": slots.iter().map(Plain::json).collect::<Vec<_>>() })
            }
            Plain::Default => json!("default"),
        }
    }
}

/// A builder of [`Plain`] values. It counts its calls, so that a test can check which values were newly made.
#[derive(Default)]
pub struct Values {
    /// The number of strings that were made.
    pub made: usize,
    /// The number of records that were read field by field.
    pub begun: usize,
    /// The number of values that were made from a template.
    pub copied: usize,
}

fn pairs_of(drain: Drain<'_, Plain>) -> Vec<(String, Plain)> {
    let all: Vec<Plain> = drain.collect();
    let mut pairs: Vec<(String, Plain)> = Vec::new();
    for pair in all.chunks_exact(2) {
        let (key, value) = (pair[0].text(), pair[1].clone());
        match pairs.iter_mut().find(|(other, _)| *other == key) {
            Some(there) => there.1 = value,
            None => pairs.push((key, value)),
        }
    }
    pairs
}

impl Builder for Values {
    type Value = Plain;
    /// The name of the class, and the number of its fields without the tag. Each field is in the slot with its own index, the tag is the
    /// last field, and the slot for other keys follows.
    type Class = (&'static str, usize);
    /// The values that were set.
    type Record = Vec<Option<Plain>>;
    type Template = Template;

    fn text(&mut self, bytes: &[u8], is_ascii: bool) -> Option<Plain> {
        self.made += 1;
        assert!(!is_ascii || bytes.is_ascii());
        Some(Plain::Json(Json::String(
            String::from_utf8(bytes.to_vec()).ok()?,
        )))
    }
    fn int(&mut self, value: i64) -> Option<Plain> {
        Some(Plain::Json(json!(value)))
    }
    fn float(&mut self, value: f64) -> Option<Plain> {
        Some(Plain::Json(json!(value)))
    }
    fn null(&mut self) -> Plain {
        Plain::Json(Json::Null)
    }
    fn bool(&mut self, value: bool) -> Plain {
        Plain::Json(json!(value))
    }
    fn list(&mut self, items: Drain<'_, Plain>) -> Option<Plain> {
        Some(Plain::List(Rc::new(items.collect())))
    }
    fn dict(&mut self, pairs: Drain<'_, Plain>) -> Option<Plain> {
        Some(Plain::Dict(Rc::new(pairs_of(pairs))))
    }
    fn unknown(&mut self, kind: &Plain, reason: &Plain, pairs: Drain<'_, Plain>) -> Option<Plain> {
        let count = pairs.len() / 2;
        let pairs = pairs_of(pairs);
        (pairs.len() == count).then(|| Plain::Unknown(kind.text(), reason.text(), Rc::new(pairs)))
    }
    fn begin(&mut self, class: &(&'static str, usize)) -> Option<Self::Record> {
        self.begun += 1;
        Some(vec![None; class.1 + 1])
    }
    fn set(&mut self, record: &mut Self::Record, slot: usize, value: Plain) {
        let old = record[slot].replace(value);
        assert!(old.is_none(), "a slot is set twice: {old:?}");
    }
    fn finish(&mut self, class: &Self::Class, record: Self::Record, set: [u64; 2]) -> Plain {
        let &(name, fields) = class;
        let finish = |(slot, value): (usize, Option<Plain>)| {
            let is_extra = slot == fields;
            let bit = if is_extra { EXTRA } else { slot };
            let is_set = set[bit / 64] >> (bit % 64) & 1 == 1;
            assert_eq!(is_set, value.is_some(), "slot {slot} of {name}");
            value.unwrap_or(if is_extra {
                Plain::Json(Json::Null)
            } else {
                Plain::Default
            })
        };
        Plain::Record(
            name,
            Rc::new(record.into_iter().enumerate().map(finish).collect()),
        )
    }
    fn slot(&mut self, record: &Plain, slot: usize) -> Option<Plain> {
        match record {
            Plain::Record(_, slots) => slots.get(slot).cloned(),
            Plain::Dict(pairs) => pairs.get(slot).map(|(_, value)| value.clone()),
            _ => None,
        }
    }
    fn template(&mut self, record: &Plain, slots: Vec<usize>) -> Option<Template> {
        matches!(record, Plain::Record(..) | Plain::Dict(_))
            .then(|| Template::Slots(record.clone(), slots))
    }
    fn stamp(&mut self, template: &Template, values: &mut Vec<Plain>) -> Option<Plain> {
        self.copied += 1;
        let (record, slots) = match template {
            Template::Slots(record, slots) => (record, slots),
            Template::Deep(value) => return Some(deep_copy(value)),
        };
        let new = values.split_off(values.len() - slots.len());
        let new = slots.iter().zip(new);
        Some(match record {
            Plain::Record(class, old) => {
                let mut all = old.to_vec();
                new.for_each(|(&slot, value)| all[slot] = value);
                Plain::Record(class, Rc::new(all))
            }
            Plain::Dict(old) => {
                let mut all = old.to_vec();
                new.for_each(|(&slot, value)| all[slot].1 = value);
                Plain::Dict(Rc::new(all))
            }
            other => panic!("no record: {other:?}"),
        })
    }
    fn deep_template(&mut self, value: &Plain, max_objects: usize) -> Option<Template> {
        (objects(value) <= max_objects).then(|| Template::Deep(value.clone()))
    }
}

/// A value from which [`Values`] makes copies.
pub enum Template {
    /// A record or dict, and its slots that get new values.
    Slots(Plain, Vec<usize>),
    /// A value that each copy is a deep copy of.
    Deep(Plain),
}

/// Returns the number of lists, dicts and records that a value consists of.
fn objects(value: &Plain) -> usize {
    match value {
        Plain::List(items) | Plain::Record(_, items) => {
            1 + items.iter().map(objects).sum::<usize>()
        }
        Plain::Dict(pairs) => 1 + pairs.iter().map(|(_, item)| objects(item)).sum::<usize>(),
        _ => 0,
    }
}

fn deep_copy(value: &Plain) -> Plain {
    let each = |items: &[Plain]| Rc::new(items.iter().map(deep_copy).collect());
    match value {
        Plain::List(items) => Plain::List(each(items)),
        Plain::Record(class, slots) => Plain::Record(class, each(slots)),
        Plain::Dict(pairs) => {
            let pairs = pairs.iter();
            Plain::Dict(Rc::new(
                pairs
                    .map(|(key, item)| (key.clone(), deep_copy(item)))
                    .collect(),
            ))
        }
        other => other.clone(),
    }
}

pub const EVENT: usize = 0;
pub const DELTA: usize = 1;
pub const STOP: usize = 2;
pub const INIT: usize = 3;
pub const NODE: usize = 4;
pub const LATER: usize = 5;

pub fn kind<V>(may_be: u32) -> Kind<V> {
    Kind {
        may_be,
        item: ANY,
        classes: Vec::new(),
        tag_key: Vec::new(),
        words: Vec::new(),
        unknown: None,
    }
}

pub fn word(text: &str) -> Plain {
    Plain::Json(json!(text))
}

pub fn field(key: &str, kind: Option<usize>, slot: usize) -> Field {
    Field::new(Key::new(key.as_bytes()).expect("memory"), kind, slot)
}

/// Returns a reader of four kinds of lines: type `event` with an object `delta` or `stop` under the key `event`, type `system` with
/// subtype `init`, type `node`, and type `later`, whose fields are not in the plan.
pub fn reader() -> Reader<Values> {
    reader_of(Values::default(), |value| value)
}

/// Returns a [`reader`] with another builder. `value` makes the builder's values.
#[allow(clippy::too_many_lines)] // The function is a table.
pub fn reader_of<B: Builder<Class = (&'static str, usize)>>(
    builder: B,
    value: impl Fn(Plain) -> B::Value,
) -> Reader<B> {
    let word = |text: &str| value(word(text));
    let mut reader = Reader::new(builder);
    reader.change_plan(|plan: &mut Plan<B::Value, B::Class>| {
        let mut add_kind = |kind| {
            plan.kinds.push(kind);
            plan.kinds.len() - 1
        };
        let text = add_kind(kind(may_be::TEXT | may_be::NULL));
        let float = add_kind(kind(may_be::FLOAT));
        let whole = add_kind(kind(may_be::INT));
        let member = |class, tag: &str| Member {
            class,
            tag: tag.into(),
            opening: format!("{{\"type\":\"{tag}\"").into(),
        };
        let events = add_kind(Kind {
            classes: vec![member(DELTA, "delta"), member(STOP, "stop")],
            tag_key: b"type".to_vec(),
            unknown: Some((word("UnknownEvent"), word("unknown type"))),
            ..kind(may_be::RECORD)
        });
        let texts = add_kind(Kind {
            item: text,
            ..kind(may_be::LIST | may_be::NULL)
        });
        let subtype = add_kind(Kind {
            words: vec![(b"init".to_vec(), word("init"))],
            ..kind(may_be::WORD)
        });
        let flag = add_kind(kind(may_be::BOOL | may_be::NULL));
        let number = add_kind(kind(may_be::INT | may_be::FLOAT));
        let counts = add_kind(Kind {
            item: whole,
            ..kind(may_be::DICT)
        });
        let parts = add_kind(Kind {
            item: events,
            ..kind(may_be::LIST)
        });
        let node = add_kind(Kind {
            classes: vec![member(NODE, "node")],
            ..kind(may_be::RECORD | may_be::NULL)
        });
        let mut add =
            |class: &'static str, slots: usize, tag: &str, required: u128, fields: Vec<Field>| {
                let start = plan.fields.len();
                plan.fields.extend(fields);
                plan.classes.push(Class::Planned(Shape {
                    class: (class, slots),
                    fields: start..plan.fields.len(),
                    required,
                    tag: tag.into(),
                    extra: Some(slots),
                }));
            };
        add(
            "Event",
            3,
            "event",
            1,
            vec![
                field("event", Some(events), 0),
                field("session_id", Some(text), 1),
                field("a_key_that_has_more_than_thirty_two_bytes", Some(text), 2),
                field("type", None, 0),
            ],
        );
        add(
            "Delta",
            2,
            "delta",
            1,
            vec![
                field("text", Some(text), 0),
                field("index", Some(whole), 1),
                field("type", None, 0),
            ],
        );
        add(
            "Stop",
            1,
            "stop",
            0,
            vec![field("seconds", Some(float), 0), field("type", None, 0)],
        );
        add(
            "Init",
            3,
            "system",
            1,
            vec![
                field("subtype", Some(subtype), 0),
                field("tools", Some(texts), 1),
                field("more", Some(ANY), 2),
                field("type", None, 0),
            ],
        );
        add(
            "Node",
            5,
            "node",
            0,
            vec![
                field("done", Some(flag), 0),
                field("cost", Some(number), 1),
                field("parts", Some(parts), 2),
                field("counts", Some(counts), 3),
                field("parent", Some(node), 4),
                field("type", None, 0),
            ],
        );
        plan.classes.push(Class::Unplanned);
        let top = |tag: &str, subtype: Option<&str>, class| Top {
            tag: tag.into(),
            subtype: subtype.map(Into::into),
            class,
        };
        plan.tops = vec![
            top("event", None, EVENT),
            top("system", Some("init"), INIT),
            top("node", None, NODE),
            top("later", None, LATER),
        ];
        plan.unknown = Some((
            word("UnknownMessage"),
            word("unknown type"),
            word("unknown subtype"),
        ));
    });
    reader
}

/// Asserts that [`reader`] may make this message from this line.
pub fn require_model(line: &[u8], message: &Plain) {
    let json: Json = serde_json::from_slice(line).expect("it is JSON");
    assert_eq!(message.json(), model("line", &json));
    // Other keys may repeat, and the last value counts, as in serde's value.
    let tags = match json["type"].as_str() {
        Some("event") => &[("", "type"), ("event", "type")][..],
        Some("system") => &[("", "type"), ("", "subtype")],
        _ => &[("", "type")],
    };
    for (object, key) in tags {
        assert!(
            oracle::values(line.trim_ascii_end(), object, key).len() < 2,
            "{key} repeats"
        );
    }
}

/// The model of [`reader`]: returns what it must make of a value of the type `of`, in the form of [`Plain::json`]. Panics if the reader must
/// refuse the value. `json` is serde's value of the same bytes.
fn model(of: &str, json: &Json) -> Json {
    let tag = |key: &str| json[key].as_str().expect("a tag is a string");
    let record = |class, fields: &[_]| model_record(class, fields, json);
    let unknown = |class, reason| json!({ "class": class, "reason": reason, "pairs": json });
    match (of, json) {
        ("any", _)
        | ("text", Json::Null | Json::String(_))
        | ("flag", Json::Null | Json::Bool(_))
        | ("number", Json::Number(_))
        | ("node", Json::Null) => json.clone(),
        ("whole", Json::Number(number)) if number.is_i64() => json.clone(),
        ("float", Json::Number(number)) => json!(number.as_f64()),
        ("texts", Json::Null) => Json::Null,
        ("texts", Json::Array(items)) => items.iter().map(|item| model("text", item)).collect(),
        ("events", Json::Array(items)) => items.iter().map(|item| model("event", item)).collect(),
        ("counts", Json::Object(pairs)) => pairs
            .iter()
            .map(|(key, value)| (key.clone(), model("whole", value)))
            .collect(),
        ("event", Json::Object(_)) => match tag("type") {
            "delta" => record("Delta", &[("text", "text"), ("index", "whole")]),
            "stop" => record("Stop", &[("seconds", "float")]),
            _ => unknown("UnknownEvent", "unknown type"),
        },
        ("node", Json::Object(pairs)) if pairs.get("type").is_none_or(|tag| tag == "node") => {
            record(
                "Node",
                &[
                    ("done", "flag"),
                    ("cost", "number"),
                    ("parts", "events"),
                    ("counts", "counts"),
                    ("parent", "node"),
                ],
            )
        }
        ("line", Json::Object(_)) => match tag("type") {
            "event" => record(
                "Event",
                &[
                    ("event", "event"),
                    ("session_id", "text"),
                    ("a_key_that_has_more_than_thirty_two_bytes", "text"),
                ],
            ),
            "system" if tag("subtype") == "init" => record(
                "Init",
                &[("subtype", "text"), ("tools", "texts"), ("more", "any")],
            ),
            "system" => unknown("UnknownMessage", "unknown subtype"),
            "node" => model("node", json),
            "later" => panic!("the class is not planned"),
            _ => unknown("UnknownMessage", "unknown type"),
        },
        _ => panic!("no {of}: {json}"),
    }
}

/// Returns the model of a record: the value of each field, `"default"` for a field without a key, and the other keys.
fn model_record(class: &str, fields: &[(&str, &str)], json: &Json) -> Json {
    let mut others = json.as_object().cloned().unwrap_or_default();
    others.remove("type");
    let value = |(key, of): &(&str, &str)| match others.remove(*key) {
        Some(value) => model(of, &value),
        None => json!("default"),
    };
    let mut slots: Vec<Json> = fields.iter().map(value).collect();
    slots.push(if others.is_empty() {
        Json::Null
    } else {
        Json::Object(others)
    });
    json!({ "class": class, "slots": slots })
}
