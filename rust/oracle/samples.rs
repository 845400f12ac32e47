//! Random lines for the tests. They resemble the lines of real streams: many differ only in their text, and some are damaged.

use proptest::prelude::*;

fn text_of_delta() -> impl Strategy<Value = String> {
    let texts = [
        "",
        "word ",
        "a longer piece of text, longer than one vector of bytes is",
        "漢字かな",
        "\u{1f600}",
        "é",
        "\\n",
        "say \\\"hi\\\" now",
        "\\\\",
        "\\ud83d",
        "\\ude00",
        "\\u00e9x",
        "\\u12",
        "\\x",
        "a\tb",
        "\\\\\\",
        "}",
        "{[",
    ];
    prop_oneof![
        6 => proptest::sample::select(texts.to_vec()).prop_map(str::to_owned),
        1 => "[a-z\\\\\"é]{0,80}",
    ]
}

fn member_of_top() -> impl Strategy<Value = String> {
    let values = [
        "\"session_id\":\"s\"",
        "\"session_id\":\"t\"",
        "\"session_id\":null",
        "\"session_id\":1",
        "\"parent_tool_use_id\":null",
        "\"parent_tool_use_id\":\"p\"",
        "\"parent_tool_use_id\":\"\\\\u0070\"",
        "\"x\":[1,{\"type\":\"no\"},\"]\"]",
        "\"x\" : { } ",
        "\"x\":1e5",
        "\"x\":tru",
        "\"x\":[\\\"]",
        "\"x\":\"\\\\\"",
        "\"u\\u0075id\":\"y\"",
        "\"\\u0075uid\":\"y\"",
        "\"type\":\"stream_event\"",
        "\"type\":\"result\"",
        "\"subtype\":\"a\"",
        "\"event\":1",
        "\"x\":{\"uuid\":\"n\"}",
        "\"request\":{\"subtype\":\"r\",\"subtype\":\"r\"}",
    ];
    proptest::sample::select(values.to_vec()).prop_map(str::to_owned)
}

fn delta_line() -> impl Strategy<Value = Vec<u8>> {
    let kinds = [
        ("text_delta", "text"),
        ("text_delta", "text"),
        ("text_delta", "text"),
        ("thinking_delta", "thinking"),
        ("input_json_delta", "partial_json"),
        ("signature_delta", "signature"),
        ("text_delta", "thinking"),
        ("text_\\u0064elta", "te\\u0078t"),
    ];
    let uuid = prop_oneof![
        5 => "[0-9a-f]{8}-[0-9a-f]{27}".prop_map(|uuid| format!("\"uuid\":\"{uuid}\"")),
        1 => proptest::sample::select(vec!["\"uuid\":\"\"", "\"uuid\":null", "\"uuid\":\"a\\u0062\"", "\"uuid\":\"é\"", "\"y\":0"])
            .prop_map(str::to_owned),
    ];
    let usual = (
        proptest::sample::select(kinds.to_vec()),
        text_of_delta(),
        0..3_u8,
        uuid,
        0..3_u8,
    );
    let rest = (
        proptest::collection::vec(member_of_top(), 0..2),
        any::<u8>(),
        any::<u8>(),
    );
    (usual, rest).prop_map(
        |(((kind, key), text, index, uuid, session), (more, order, end))| {
            let delta = match order % 8 {
                0 => format!("{{\"{key}\":\"{text}\",\"type\":\"{kind}\"}}"),
                1 => format!("{{\"type\":\"{kind}\",\"{key}\":\"{text}\",\"z\":\"{text}\"}}"),
                2 => format!("{{\"type\":\"{kind}\",\"z\":\"{text}\",\"{key}\":\"{text}\"}}"),
                _ => format!("{{\"type\":\"{kind}\",\"{key}\":\"{text}\"}}"),
            };
            let event = match order / 8 % 8 {
                0 => format!(
                    "{{\"delta\":{delta},\"index\":{index},\"type\":\"content_block_delta\"}}"
                ),
                1 => format!("{{\"type\":\"content_block_delta\",\"delta\":{delta}}}"),
                2 => format!(
                    "{{\"type\":\"content_block_delta\",\"index\":0{index},\"delta\":{delta}}}"
                ),
                _ => format!(
                    "{{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{delta}}}"
                ),
            };
            let mut members = vec![
                "\"type\":\"stream_event\"".to_owned(),
                format!("\"event\":{event}"),
                format!("\"session_id\":\"session-{session}\""),
                "\"parent_tool_use_id\":null".to_owned(),
                uuid,
            ];
            if order >= 192 {
                members.extend(more);
                members.rotate_left(usize::from(order) % 5);
            }
            let end = match end {
                0..=15 => "}\r",
                16..=20 => "} x",
                21..=25 => "",
                _ => "}",
            };
            format!("{{{}{end}", members.join(",")).into_bytes()
        },
    )
}

/// Generates a line without an LF at its end. A damaged line may contain LFs.
pub fn line() -> impl Strategy<Value = Vec<u8>> {
    let others = [
        "", " \r", "{}", "nonsense", "{\"type\":\"result\",\"subtype\":\"success\",\"uuid\":\"1\"}", "{\"type\":\"system\",\"subtype\":\"init\",\"uuid\":\"22\"}",
        "{\"type\":\"system\",\"subtype\":\"init\",\"uuid\":\"é\\n\"}", "{\"type\":\"control_request\",\"request\":{\"subtype\":\"can_use_tool\",\"input\":{\"a\":\"}\"}}}",
        "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_stop\",\"index\":0},\"session_id\":\"session-0\",\"uuid\":\"333\"}",
        "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"}},\"uuid\":\"4\"}",
    ];
    let line = prop_oneof![
        8 => delta_line(),
        2 => proptest::sample::select(others.to_vec()).prop_map(|line| line.as_bytes().to_vec()),
    ];
    let damage = (
        0..16_u8,
        any::<proptest::sample::Index>(),
        any::<proptest::sample::Index>(),
        any::<u8>(),
    );
    (line, damage).prop_map(|(mut line, (what, one, two, byte))| {
        let (one, two) = (one.index(line.len() + 1), two.index(line.len() + 1));
        let (from, to) = (one.min(two), one.max(two));
        match what {
            0 if from < line.len() => line[from] = byte,
            1 => drop(line.drain(from..to)),
            2 => {
                let piece = line[from..to].to_vec();
                line.splice(to..to, piece).for_each(drop);
            }
            4 => {
                // Put a byte that is not valid UTF-8 into the text of a line that otherwise resembles the previous line.
                if let Some(at) = line.windows(4).position(|piece| piece == b"word") {
                    line[at + 1] = byte | 0x80;
                }
            }
            3 => line.insert(from, b"\"\\{}[]:, \t\n"[usize::from(byte) % 11]),
            _ => (),
        }
        line
    })
}

/// Generates fewer than `most` lines or groups of equal lines, with their LFs. The last line may have no LF.
pub fn lines(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let repeated = (line(), 1..4_usize).prop_map(|(line, times)| vec![line; times].join(&b'\n'));
    (
        proptest::collection::vec(prop_oneof![line(), repeated], 0..most),
        any::<bool>(),
    )
        .prop_map(|(lines, ended)| {
            let mut data = lines.join(&b'\n');
            if ended && !data.is_empty() {
                data.push(b'\n');
            }
            data
        })
}
