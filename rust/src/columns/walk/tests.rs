use super::*;
use crate::simd::{run, Level, Operation};

struct Walk<'a>(&'a [u8], &'a Tree, &'a mut Found);

impl Operation for Walk<'_> {
    type Output = Option<usize>;

    fn run<E: Engine>(self, engine: E) -> Self::Output {
        walk(engine, self.0, space(self.0, 0), self.1, self.2)
    }
}

const PATHS: [&str; 6] = [
    "type",
    "message.usage.n",
    "message.usage",
    "message.content",
    "uuid",
    "x.y",
];

fn walked(text: &str) -> Option<[Value; 6]> {
    let mut tree = Tree::default();
    let slots = PATHS.map(|path| tree.want(path).unwrap());
    let mut found = Found::new(&tree).unwrap();
    let mut go = |level| run(level, Walk(text.as_bytes(), &tree, &mut found));
    let [plain, fast] = [Level::Plain, Level::Fast].map(&mut go);
    assert_eq!(plain, fast, "{text}");
    plain.map(|_| slots.map(|slot| found.value(slot)))
}

#[test]
fn values_are_found_in_any_position() {
    let text = r#" { "z" : {"type":"no"} , "message":{"usage":{"n": 5 , "m":{}},"content":[ 1, {"type":"text"} ] } , "t\u0079pe":"\u0061", "x":[] } "#;
    let [tag, number, usage, content, uuid, inner] = walked(text).unwrap();
    let data = text.as_bytes();
    assert!(tag.is(data, b"a") && !tag.is(data, b"b"));
    assert_eq!((number.of(data), number.form), (&b"5"[..], Form::Word));
    assert_eq!(usage.form, Form::Object);
    assert_eq!(content.whole(data), br#"[ 1, {"type":"text"} ]"#);
    assert_eq!((uuid, inner), (Value::default(), Value::default()));
    let [tag, ..] = walked(r#"{"type":"a"}"#).unwrap();
    assert_eq!(
        (tag.form, tag.whole(br#"{"type":"a"}"#)),
        (Form::Plain, &b"\"a\""[..])
    );
}

#[test]
fn the_form_of_a_value_is_known() {
    for (value, form) in [
        ("{}", Form::Object),
        ("{\"a\":[]}", Form::Object),
        ("[]", Form::Array),
        ("[{}]", Form::Array),
        ("null", Form::Word),
        ("-1", Form::Word),
        ("\"{}\"", Form::Plain),
        ("\"\\n\"", Form::Escaped),
    ] {
        let [tag, ..] = walked(&format!("{{\"type\":{value}}}")).unwrap();
        assert_eq!(tag.form, form, "{value}");
    }
}

#[test]
fn a_non_object_and_a_repeated_key_are_unclear() {
    for text in [
        "",
        "[]",
        "{",
        "{\"type\"}",
        "{\"type\":}",
        "{\"type\":\"a\",}",
        "{\"type\":\"a\" \"uuid\":\"b\"}",
        "{\"type\":\"a\n\"}",
        "{\"type\":\"a\",\"type\":\"a\"}",
        "{\"type\":\"a\",\"typ\\u0065\":\"a\"}",
        "{\"message\":{},\"message\":{}}",
        "{\"message\":1,\"message\":{}}",
        "{\"message\":{\"content\":[],\"content\":1}}",
        "{\"message\":{\"content\":[}}",
        "{\"message\":{",
    ] {
        assert!(walked(text).is_none(), "{text}");
    }
    for text in [
        "{}",
        "{\"z\":1,\"z\":2}",
        "{\"message\":{}}",
        "{\"message\":{\"content\":[]}}",
    ] {
        assert!(walked(text).is_some(), "{text}");
    }
}

struct Items<'a>(&'a [u8], &'a Tree);

impl Operation for Items<'_> {
    type Output = Option<Vec<String>>;

    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self(data, tree) = self;
        let mut found = Found::new(tree).unwrap();
        let mut list = List::new(Value {
            form: Form::Array,
            start: 0,
            end: engine.container_end(data, 0).ok()?,
        });
        let mut items = Vec::new();
        loop {
            match list.next(engine, data, tree, &mut found)? {
                Item::Object => {
                    let text = String::from_utf8_lossy(found.value(0).of(data));
                    items.push(text.into_owned());
                }
                Item::Other => items.push("other".into()),
                Item::End => return Some(items),
            }
        }
    }
}

#[test]
fn lists_are_walked_to_their_end() {
    let mut tree = Tree::default();
    tree.want("a").unwrap();
    let items = |text: &str| {
        let [plain, fast] =
            [Level::Plain, Level::Fast].map(|level| run(level, Items(text.as_bytes(), &tree)));
        assert_eq!(plain, fast, "{text}");
        plain
    };
    let found = items(r#"[ {"a":1} , 2,"x",[{"a":3}],{} , {"b":{"a":4},"a":5}]"#).unwrap();
    assert_eq!(found, ["1", "other", "other", "other", "", "5"]);
    assert_eq!(items("[]").unwrap(), [""; 0]);
    for text in [
        "[{},]",
        "[{} {}]",
        "[,{}]",
        "[{]}",
        "[{\"a\":1,\"a\":1}]",
        "[1}",
        "[\"]",
        "[{}",
    ] {
        assert!(items(text).is_none(), "{text}");
    }
}
