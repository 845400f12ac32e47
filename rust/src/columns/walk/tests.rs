use super::*;
use crate::simd::{run, Level, Operation};

struct Walk<'a>(&'a [u8], bool, &'a mut Line);

impl Operation for Walk<'_> {
    type Output = Option<usize>;

    fn run<E: Engine>(self, engine: E) -> Self::Output {
        walk(engine, self.0, 0, self.1, self.2)
    }
}

fn walked(text: &str, blocks: bool) -> Option<Line> {
    let data = format!("{text}\n").into_bytes();
    let mut line = Line::new();
    let [plain, fast] =
        [Level::Plain, Level::Fast].map(|level| run(level, Walk(&data, blocks, &mut line)));
    assert_eq!(plain, fast, "{text}");
    assert!(plain.is_none_or(|end| end == data.len()), "{text}");
    plain.map(|_| line)
}

#[test]
fn values_are_found_wherever_they_stand() {
    let text = r#" { "x" : {"type":"no"} , "message":{"usage":{"input_tokens": 5 ,"cache_creation":{"ephemeral_5m_input_tokens":6}},"content":[ 1, {"type":"text","text":"a"} , {"content":[{"type":"text"},[]],"id":"t"} ] } , "t\u0079pe":"assistant" } "#;
    let line = walked(text, true).unwrap();
    let data = text.as_bytes();
    assert!(line.value(Field::Type).is(data, b"assistant"));
    assert_eq!(line.value(Field::InputTokens).of(data), b"5");
    assert_eq!(line.value(Field::Cache5m).of(data), b"6");
    assert_eq!(line.value(Field::Uuid), Value::default());
    assert!(line.has_usage() && line.has_blocks && !line.is_too_much());
    assert_eq!(line.strays, (true, true));
    assert_eq!((line.blocks.len(), line.inner.len()), (2, 1));
    assert_eq!(line.blocks[0].value(Part::Text).whole(data), b"\"a\"");
    assert_eq!(line.blocks[1].inner, Some((0, 1)));
    assert_eq!(line.blocks[1].value(Part::Id).of(data), b"t");
    let line = walked(text, false).unwrap();
    assert!(!line.has_blocks && line.blocks.is_empty());
    assert_eq!(line.value(Field::Content).form, Form::Array);
}

#[test]
fn what_is_no_object_or_has_a_key_twice_is_unclear() {
    for text in [
        "",
        "[]",
        "{",
        "{}x",
        "{\"type\"}",
        "{\"type\":}",
        "{\"type\":\"a\",}",
        "{\"type\":\"a\",\"type\":\"a\"}",
        "{\"type\":\"a\",\"typ\\u0065\":\"a\"}",
        "{\"message\":{},\"message\":{}}",
        "{\"message\":{},\"message\":1}",
        "{\"message\":{\"content\":[],\"content\":1}}",
        "{\"message\":{\"content\":[{\"id\":1,\"id\":1}]}}",
        "{\"message\":{\"content\":[{\"content\":[],\"content\":1}]}}",
        "{\"message\":{\"content\":[{},]}}",
        "{\"message\":{\"content\":[{} {}]}}",
        "{\"message\":{\"content\":[,{}]}}",
        "{\"message\":{\"content\":[{}}}",
        "{\"message\":{\"content\":[{}]]}",
    ] {
        assert!(walked(text, true).is_none(), "{text}");
    }
    for text in [
        "{}",
        "{\"message\":1,\"message\":{}}",
        "{\"x\":1,\"x\":2}",
        "{\"message\":{\"content\":[]}}",
    ] {
        assert!(walked(text, true).is_some(), "{text}");
    }
}

#[test]
fn blocks_are_bounded() {
    let text = format!(
        "{{\"message\":{{\"content\":[{}{{}}]}}}}",
        "{},".repeat(MOST_BLOCKS)
    );
    let line = walked(&text, true).unwrap();
    assert!(line.is_too_much());
    assert_eq!(line.blocks.len(), MOST_BLOCKS + 1);
    let text = format!(
        "{{\"message\":{{\"content\":[{}{{}}]}}}}",
        "{},".repeat(MOST_BLOCKS - 1)
    );
    assert!(!walked(&text, true).unwrap().is_too_much());
}
