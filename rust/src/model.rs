//! What a line is and what becomes of it, said as plainly as can be: the tests compare the real thing with this.

use std::ops::Range;

use proptest::prelude::*;

/// The tags of a clear line.
pub type Kind = [Option<String>; 3];

/// The text of a string's contents; `None` if it has none.
fn text(raw: &[u8]) -> Option<String> {
    String::from_utf16(&units(raw)?).ok()
}

fn units(raw: &[u8]) -> Option<Vec<u16>> {
    let mut units = Vec::new();
    let mut chars = std::str::from_utf8(raw).ok()?.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            units.extend(char.encode_utf16(&mut [0; 2]).iter());
            continue;
        }
        units.push(match chars.next()? {
            'b' => 8,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                if digits.len() != 4 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                u16::from_str_radix(&digits, 16).ok()?
            }
            char @ ('"' | '\\' | '/') => char as u16,
            _ => return None,
        });
    }
    Some(units)
}

struct Loose<'a> {
    line: &'a [u8],
    at: usize,
    /// Path, key and value of each member of the objects that are walked. A value is `None` if it is no string.
    members: Vec<(String, Option<String>, Option<Vec<u8>>)>,
}

impl Loose<'_> {
    fn space(&mut self) -> Option<u8> {
        while matches!(self.line.get(self.at), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
        self.line.get(self.at).copied()
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        if self.space()? != b'"' {
            return None;
        }
        self.at += 1;
        let from = self.at;
        while *self.line.get(self.at)? != b'"' {
            self.at += if self.line[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        Some(self.line[from..self.at - 1].to_vec())
    }

    fn object(&mut self, path: &str) -> Option<()> {
        self.at += 1;
        if self.space()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let key = text(&self.string()?);
            if self.space()? != b':' {
                return None;
            }
            self.at += 1;
            let inner = match (path, key.as_deref()) {
                ("", Some(key @ ("event" | "request" | "response")))
                | ("event", Some(key @ ("delta" | "content_block"))) => Some(key.to_owned()),
                _ => None,
            };
            let mut value = None;
            match self.space()? {
                b'"' => value = Some(self.string()?),
                b'{' if inner.is_some() => self.object(inner.as_deref()?)?,
                b'{' | b'[' => self.container()?,
                _ => {
                    let from = self.at;
                    while !b" \t\r,]}\"{[:".contains(self.line.get(self.at)?) {
                        self.at += 1;
                    }
                    if self.at == from {
                        return None;
                    }
                }
            }
            self.members.push((path.to_owned(), key, value));
            match self.space()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn container(&mut self) -> Option<()> {
        let mut depth = 0;
        loop {
            match self.line.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => (),
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// The values of a key; `None` if one is a string without meaning.
    fn values(&self, path: &str, key: &str) -> Option<Vec<Option<String>>> {
        let members = self.members.iter();
        let found = members.filter(|member| member.0 == path && member.1.as_deref() == Some(key));
        found
            .map(|(_, _, value)| match value {
                None => Some(None),
                Some(raw) if raw.iter().any(|&byte| byte < 0x20) => None,
                Some(raw) => text(raw).map(Some),
            })
            .collect()
    }

    // Not clear, or absent.
    #[allow(clippy::option_option)]
    fn tag(&self, path: &str, key: &str) -> Option<Option<String>> {
        let values = self.values(path, key)?;
        if values.windows(2).any(|pair| pair[0] != pair[1]) {
            return None;
        }
        Some(values.first().cloned().flatten())
    }
}

/// The kind of a line without its LF; `None` if it is unclear.
pub fn kind(line: &[u8]) -> Option<Kind> {
    let mut walk = Loose {
        line,
        at: 0,
        members: Vec::new(),
    };
    if walk.space()? != b'{' {
        return None;
    }
    walk.object("")?;
    if walk.space().is_some() {
        return None;
    }
    let paths = [
        ("", "event"),
        ("", "request"),
        ("", "response"),
        ("event", "delta"),
        ("event", "content_block"),
    ];
    for (path, key) in paths {
        let same = |member: &&(String, Option<String>, _)| {
            member.0 == path && member.1.as_deref() == Some(key)
        };
        if walk.members.iter().filter(same).count() > 1 {
            return None;
        }
    }
    let [name, subtype] = [walk.tag("", "type")?, walk.tag("", "subtype")?];
    let [request, response] = [
        walk.tag("request", "subtype")?,
        walk.tag("response", "subtype")?,
    ];
    let event = walk.tag("event", "type")?;
    let [delta, block] = [
        walk.tag("delta", "type")?,
        walk.tag("content_block", "type")?,
    ];
    Some(match name.as_deref() {
        None => [None, None, None],
        Some("stream_event") => [name, event, delta.or(block)],
        Some("control_request") => [name, request, None],
        Some("control_response") => [name, response, None],
        Some(_) => [name, subtype, None],
    })
}

enum Json {
    Text(Range<usize>),
    Word(Range<usize>),
    Array,
    Object(Vec<(Vec<u16>, Json)>),
}

struct Strict<'a> {
    line: &'a str,
    at: usize,
}

impl Strict<'_> {
    fn rest(&self) -> &str {
        &self.line[self.at..]
    }

    fn take(&mut self, byte: char) -> Option<()> {
        self.space();
        self.at += self.rest().strip_prefix(byte).map(|_| 1)?;
        Some(())
    }

    fn space(&mut self) {
        self.at = self.line.len() - self.rest().trim_start_matches([' ', '\t', '\r']).len();
    }

    fn string(&mut self) -> Option<Range<usize>> {
        self.take('"')?;
        let from = self.at;
        let mut escaped = false;
        for (at, char) in self.rest().char_indices() {
            if char == '"' && !escaped {
                self.at += at + 1;
                let span = from..self.at - 1;
                return units(self.line[span.clone()].as_bytes()).map(|_| span);
            }
            if char < ' ' {
                return None;
            }
            escaped = char == '\\' && !escaped;
        }
        None
    }

    fn value(&mut self, room: usize) -> Option<Json> {
        self.space();
        match self.rest().chars().next()? {
            '"' => self.string().map(Json::Text),
            '[' | '{' if room == 0 => None,
            '[' => {
                self.take('[')?;
                if self.take(']').is_some() {
                    return Some(Json::Array);
                }
                loop {
                    self.value(room - 1)?;
                    if self.take(']').is_some() {
                        return Some(Json::Array);
                    }
                    self.take(',')?;
                }
            }
            '{' => {
                self.take('{')?;
                let mut members = Vec::new();
                if self.take('}').is_some() {
                    return Some(Json::Object(members));
                }
                loop {
                    self.space();
                    let key = self.string()?;
                    let key = units(self.line[key].as_bytes())?;
                    self.take(':')?;
                    members.push((key, self.value(room - 1)?));
                    if self.take('}').is_some() {
                        return Some(Json::Object(members));
                    }
                    self.take(',')?;
                }
            }
            _ => {
                let from = self.at;
                let rest = self.rest();
                let end = rest
                    .find([',', '}', ']', ' ', '\t', '\r'])
                    .unwrap_or(rest.len());
                let word = &rest[..end];
                let digits =
                    |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
                let number = || {
                    let word = word.strip_prefix('-').unwrap_or(word);
                    let (whole, part) = word.split_once('.').unwrap_or((word, "0"));
                    digits(whole) && (whole == "0" || !whole.starts_with('0')) && digits(part)
                };
                let known = matches!(word, "true" | "false" | "null");
                if !known && (word.len() > 64 || !number()) {
                    return None;
                }
                self.at += end;
                Some(Json::Word(from..from + end))
            }
        }
    }
}

/// A mergeable delta.
pub struct Mergeable {
    /// Session, parent, index and kind.
    pub key: [String; 4],
    pub text: Range<usize>,
    pub uuid: Option<Range<usize>>,
}

fn member<'a>(object: &'a Json, key: &str) -> Option<&'a Json> {
    let Json::Object(members) = object else {
        return None;
    };
    let key: Vec<u16> = key.encode_utf16().collect();
    members
        .iter()
        .find(|member| member.0 == key)
        .map(|member| &member.1)
}

fn repeats(object: Option<&Json>) -> bool {
    let Some(Json::Object(members)) = object else {
        return false;
    };
    (0..members.len()).any(|at| members[..at].iter().any(|member| member.0 == members[at].0))
}

/// What a line without its LF may be merged by; `None` if it may not be.
pub fn mergeable(line: &[u8]) -> Option<Mergeable> {
    let [name, subtype, detail] = kind(line)?;
    let kind = detail?;
    if name? != "stream_event" || subtype? != "content_block_delta" {
        return None;
    }
    let text_key = match kind.as_str() {
        "text_delta" => "text",
        "thinking_delta" => "thinking",
        "input_json_delta" => "partial_json",
        _ => return None,
    };
    let line = std::str::from_utf8(line).ok()?;
    let mut parser = Strict { line, at: 0 };
    let top = parser.value(64)?;
    let event = member(&top, "event")?;
    let delta = member(event, "delta")?;
    let block = member(event, "content_block");
    let others = [member(&top, "request"), member(&top, "response"), block];
    if [Some(&top), Some(event), Some(delta)]
        .into_iter()
        .chain(others)
        .any(repeats)
    {
        return None;
    }
    let Json::Text(text) = member(delta, text_key)? else {
        return None;
    };
    let Json::Word(index) = member(event, "index")? else {
        return None;
    };
    let index = &line[index.clone()];
    if !index.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let plain = |key| match member(&top, key) {
        None => Some(None),
        Some(Json::Text(span)) if !line[span.clone()].contains('\\') => Some(Some(span.clone())),
        _ => None,
    };
    let nullable = |key| match member(&top, key) {
        Some(Json::Word(span)) if &line[span.clone()] == "null" => Some(String::new()),
        _ => Some(plain(key)?.map_or_else(String::new, |span| format!("={}", &line[span]))),
    };
    Some(Mergeable {
        key: [
            nullable("session_id")?,
            nullable("parent_tool_use_id")?,
            index.to_owned(),
            kind,
        ],
        text: text.clone(),
        uuid: plain("uuid")?,
    })
}

/// What a sieve makes of data: lines with their numbers, how many were passed over, how many merged.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sieved {
    pub lines: Vec<(u64, Vec<u8>)>,
    pub skipped: u64,
    pub merged: u64,
}

struct Group {
    number: u64,
    key: [String; 4],
    /// The first line with marks for text and uuid.
    frame: Vec<u8>,
    text: Vec<u8>,
    uuid: Vec<u8>,
}

impl Group {
    fn of(line: &[u8], number: u64) -> Option<Self> {
        let Mergeable { key, text, uuid } = mergeable(line)?;
        let mut frame = Vec::new();
        for (at, &byte) in line.iter().enumerate() {
            // A mark stands for what it replaces from its opening quote on: contents may be empty.
            if text.start == at + 1 {
                frame.push(1);
            } else if uuid.as_ref().is_some_and(|uuid| uuid.start == at + 1) {
                frame.push(2);
            } else if !text.contains(&at) && !uuid.as_ref().is_some_and(|uuid| uuid.contains(&at)) {
                frame.push(byte);
            }
        }
        Some(Self {
            number,
            key,
            frame,
            text: line[text].to_vec(),
            uuid: uuid.map_or(Vec::new(), |uuid| line[uuid].to_vec()),
        })
    }

    fn line(&self) -> Vec<u8> {
        let mut line = Vec::new();
        for &byte in &self.frame {
            line.push(if byte <= 2 { b'"' } else { byte });
            line.extend_from_slice(match byte {
                1 => &self.text,
                2 => &self.uuid,
                _ => &[],
            });
        }
        line
    }
}

/// What becomes of the complete lines of `data`, taken at once.
pub fn sieve(data: &[u8], only: Option<&[&str]>, coalesce: bool, max_line: usize) -> Sieved {
    let mut sieved = Sieved::default();
    let mut open: Vec<Group> = Vec::new();
    let close = |sieved: &mut Sieved, open: &mut Vec<Group>| {
        sieved
            .lines
            .extend(open.drain(..).map(|group| (group.number, group.line())));
    };
    let lines = data.split_inclusive(|&byte| byte == b'\n');
    for (number, line) in (1..).zip(lines.filter_map(|line| line.strip_suffix(b"\n"))) {
        if line.iter().all(|byte| b" \t\r".contains(byte)) {
            continue;
        }
        let tags = kind(line).unwrap_or_default();
        let fits = |name: &&str| {
            let parts: Vec<_> = name.split('/').collect();
            parts.len() <= 3
                && parts
                    .iter()
                    .zip(&tags)
                    .all(|(part, tag)| tag.as_deref() == Some(*part))
        };
        if tags[0].is_some() && only.is_some_and(|names| !names.iter().any(fits)) {
            sieved.skipped += 1;
            close(&mut sieved, &mut open);
            continue;
        }
        let Some(group) = Group::of(line, number).filter(|_| coalesce) else {
            close(&mut sieved, &mut open);
            sieved.lines.push((number, line.to_vec()));
            continue;
        };
        if let Some(known) = open.iter_mut().find(|known| known.key == group.key) {
            let mut more = Group {
                text: [&known.text[..], &group.text].concat(),
                frame: known.frame.clone(),
                key: group.key.clone(),
                uuid: group.uuid.clone(),
                number: known.number,
            };
            if known.frame == group.frame && more.line().len() <= max_line {
                std::mem::swap(known, &mut more);
                sieved.merged += 1;
                continue;
            }
            close(&mut sieved, &mut open);
        } else if open.len() == crate::group::MOST_OPEN {
            close(&mut sieved, &mut open);
        }
        open.push(group);
    }
    close(&mut sieved, &mut open);
    sieved
}

// --- what they are compared on

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

/// A line like those of real streams, often the same but for its text, sometimes damaged. It may hold LFs.
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
                // Not UTF-8, where only a text differs from that of the line before.
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

/// Lines with their LFs; the last may have none.
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
