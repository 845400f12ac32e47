//! The kind of a line, found by its structure.
//!
//! Tags are found wherever they stand, never by prefix or substring: the line is walked from brace to brace, strings and
//! nested values are passed over whole. What is walked member by member are the objects on a *path*: the line's own, those of its
//! keys `event`, `request` and `response`, and `delta` and `content_block` within `event`. Each has a tag or two that the kind is made
//! of. All other values are passed over by their quotes and brackets alone.
//!
//! A line that is not one JSON object by that structure is *unclear*; so is one whose tags mean one thing to one reader
//! and another to the next: a tag twice with different values, a path key twice, a tag value that is no valid string.
//!
//! Linear in the line, without recursion or allocation. Every search ends at the line's LF.
// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

use crate::simd::Engine;

/// The contents of a JSON string, as they stand in the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Where they begin, behind the opening quote.
    pub start: usize,
    /// Bytes up to the closing quote.
    pub len: usize,
    /// Whether there is a backslash among them.
    pub escaped: bool,
}

impl Span {
    /// The bytes, still escaped.
    #[inline]
    #[must_use]
    pub fn of(self, data: &[u8]) -> &[u8] {
        &data[self.start..self.start + self.len]
    }
}

/// The kind of a line, as spans of its tags. A line without `type`, or an unclear one, has none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindSpans {
    /// The top-level `type`.
    pub name: Option<Span>,
    /// `event.type` of a `stream_event`, `request.subtype` of a `control_request`, `response.subtype` of a `control_response`,
    /// else the top-level `subtype`.
    pub subtype: Option<Span>,
    /// `event.delta.type` of a `stream_event`, or else its `event.content_block.type`.
    pub detail: Option<Span>,
}

/// What the scan of one line found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Behind the line's LF, or the end of the data if it has none.
    pub end: usize,
    /// Whether its structure and tags are clear.
    pub clear: bool,
    /// Its kind.
    pub kind: KindSpans,
    /// The value of the top-level `uuid`, if it is a string.
    pub uuid: Option<Span>,
    /// The first string in `event.delta` that is not its tag.
    pub text: Option<Span>,
}

/// An object whose members are walked one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Path {
    Top,
    Event,
    Request,
    Response,
    Delta,
    Block,
}

impl Path {
    #[inline]
    pub(crate) fn parent(self) -> Self {
        match self {
            Self::Top | Self::Event | Self::Request | Self::Response => Self::Top,
            Self::Delta | Self::Block => Self::Event,
        }
    }
}

/// What a key means in its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Other,
    Uuid,
    Tag(Tag),
    Path(Path),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    Type,
    Subtype,
    Request,
    Response,
    Event,
    Delta,
    Block,
}

const TAGS: usize = 7;
/// In `Walk::seen`, the path keys stand behind the tags.
const PATHS: u32 = 7;

/// What `key`, which is free of escapes, means in the object at `path`.
#[inline(always)]
pub(crate) fn meaning(path: Path, key: &[u8]) -> Key {
    match (path, key) {
        (Path::Top, b"type") => Key::Tag(Tag::Type),
        (Path::Top, b"subtype") => Key::Tag(Tag::Subtype),
        (Path::Top, b"event") => Key::Path(Path::Event),
        (Path::Top, b"request") => Key::Path(Path::Request),
        (Path::Top, b"response") => Key::Path(Path::Response),
        (Path::Top, b"uuid") => Key::Uuid,
        (Path::Request, b"subtype") => Key::Tag(Tag::Request),
        (Path::Response, b"subtype") => Key::Tag(Tag::Response),
        (Path::Event, b"type") => Key::Tag(Tag::Event),
        (Path::Event, b"delta") => Key::Path(Path::Delta),
        (Path::Event, b"content_block") => Key::Path(Path::Block),
        (Path::Delta, b"type") => Key::Tag(Tag::Delta),
        (Path::Block, b"type") => Key::Tag(Tag::Block),
        _ => Key::Other,
    }
}

/// As [`meaning`], of a key with escapes.
#[cold]
pub(crate) fn meaning_escaped(path: Path, key: &[u8]) -> Key {
    // The longest key that means something has 13 bytes.
    let mut bytes = [0; 16];
    let mut length = 0;
    for unit in decoded(key) {
        let (Some(place), Ok(byte)) = (bytes.get_mut(length), u8::try_from(unit)) else {
            return Key::Other;
        };
        *place = byte;
        length += 1;
    }
    meaning(path, &bytes[..length])
}

/// Scans the line that begins at `from`. It ends at the first LF or at the end of `data`.
#[inline(always)]
pub fn scan<E: Engine>(engine: E, data: &[u8], from: usize) -> Scan {
    let mut walk = Walk::<E> {
        data,
        at: from,
        ahead: E::Ahead::default(),
        seen: 0,
        tags: [None; TAGS],
        uuid: None,
        text: None,
    };
    let clear = walk.line(engine).is_some();
    let end = line_end(data, walk.at);
    if !clear {
        return Scan {
            end,
            ..Scan::default()
        };
    }
    Scan {
        end,
        clear,
        kind: kind(data, &walk.tags),
        uuid: walk.uuid,
        text: walk.text,
    }
}

/// Behind the first LF from `at` on, or the end of the data.
#[inline]
fn line_end(data: &[u8], at: usize) -> usize {
    match data.get(at) {
        Some(b'\n') => at + 1,
        _ => memchr::memchr(b'\n', &data[at..]).map_or(data.len(), |found| at + found + 1),
    }
}

fn kind(data: &[u8], tags: &[Option<Span>; TAGS]) -> KindSpans {
    let tag = |tag: Tag| tags[tag as usize];
    let Some(name) = tag(Tag::Type) else {
        return KindSpans::default();
    };
    let (subtype, detail) = if is(data, name, b"stream_event") {
        (tag(Tag::Event), tag(Tag::Delta).or(tag(Tag::Block)))
    } else if is(data, name, b"control_request") {
        (tag(Tag::Request), None)
    } else if is(data, name, b"control_response") {
        (tag(Tag::Response), None)
    } else {
        (tag(Tag::Subtype), None)
    };
    KindSpans {
        name: Some(name),
        subtype,
        detail,
    }
}

/// Whether the string at `span` reads `text`.
#[inline]
#[must_use]
pub fn is(data: &[u8], span: Span, text: &[u8]) -> bool {
    let raw = span.of(data);
    if span.escaped {
        return decoded(raw).eq(text.iter().copied().map(u16::from));
    }
    raw == text
}

struct Walk<'a, E: Engine> {
    data: &'a [u8],
    at: usize,
    ahead: E::Ahead,
    /// Of each tag and path key, whether it came.
    seen: u16,
    tags: [Option<Span>; TAGS],
    uuid: Option<Span>,
    text: Option<Span>,
}

impl<E: Engine> Walk<'_, E> {
    /// Walks the line; `None` if it is unclear. Never goes beyond the line's LF.
    #[inline(always)]
    fn line(&mut self, engine: E) -> Option<()> {
        self.space();
        self.take(b'{')?;
        let mut path = Path::Top;
        let mut first = true;
        loop {
            self.space();
            if first && self.byte() == b'}' {
                // An empty object; it is closed below.
            } else {
                self.take(b'"')?;
                let key = self.string(engine)?;
                let key = if key.escaped {
                    meaning_escaped(path, key.of(self.data))
                } else {
                    meaning(path, key.of(self.data))
                };
                self.space();
                self.take(b':')?;
                self.space();
                if let Key::Path(inner) = key {
                    self.see(PATHS + inner as u32)?;
                    if self.byte() == b'{' {
                        self.at += 1;
                        path = inner;
                        first = true;
                        continue;
                    }
                }
                self.value(engine, path, key)?;
                self.space();
            }
            first = false;
            loop {
                match self.byte() {
                    b',' => break,
                    b'}' if path == Path::Top => {
                        self.at += 1;
                        self.space();
                        return (self.byte() == b'\n').then_some(());
                    }
                    b'}' => path = path.parent(),
                    _ => return None,
                }
                self.at += 1;
                self.space();
            }
            self.at += 1;
        }
    }

    /// The next byte; an LF at the end of the data, where a line ends as well.
    #[inline(always)]
    fn byte(&self) -> u8 {
        self.data.get(self.at).map_or(b'\n', |&byte| byte)
    }

    #[inline(always)]
    fn take(&mut self, byte: u8) -> Option<()> {
        if self.byte() != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    #[inline(always)]
    fn space(&mut self) {
        while self.byte() <= b' ' && matches!(self.byte(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// Notes a key that may come once.
    #[inline(always)]
    fn see(&mut self, bit: u32) -> Option<()> {
        if self.seen >> bit & 1 == 1 {
            return None;
        }
        self.seen |= 1 << bit;
        Some(())
    }

    /// Passes a string whose opening quote is behind us.
    #[inline(always)]
    fn string(&mut self, engine: E) -> Option<Span> {
        let start = self.at;
        let (end, escaped) = engine.string_end(&mut self.ahead, self.data, start);
        self.at = end;
        self.take(b'"')?;
        Some(Span {
            start,
            len: end - start,
            escaped,
        })
    }

    #[inline(always)]
    fn value(&mut self, engine: E, path: Path, key: Key) -> Option<()> {
        let mut found = None;
        match self.byte() {
            b'"' => {
                self.at += 1;
                found = Some(self.string(engine)?);
            }
            b'{' | b'[' => match engine.container_end(self.data, self.at) {
                Ok(end) => self.at = end,
                Err(end) => {
                    self.at = end;
                    return None;
                }
            },
            byte if ENDS_WORD[usize::from(byte)] => return None,
            _ => {
                self.at += 1;
                while !ENDS_WORD[usize::from(self.byte())] {
                    self.at += 1;
                }
            }
        }
        match key {
            Key::Other if path == Path::Delta && self.text.is_none() => self.text = found,
            Key::Tag(tag) => self.tag(engine, tag, found)?,
            Key::Uuid => self.uuid = found,
            _ => (),
        }
        Some(())
    }

    #[inline(always)]
    fn tag(&mut self, engine: E, tag: Tag, value: Option<Span>) -> Option<()> {
        if let Some(span) = value {
            // Text without escapes and other alphabets is text, and has no special byte before its closing quote.
            let plain = engine.special_ascii(self.data, span.start);
            if plain != (span.start + span.len, true) && !is_text(span.of(self.data)) {
                return None;
            }
        }
        let place = tag as usize;
        if self.see(tag as u32).is_none() && !self.same(self.tags[place], value) {
            return None;
        }
        self.tags[place] = value;
        Some(())
    }

    #[cold]
    fn same(&self, one: Option<Span>, other: Option<Span>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => decoded(one.of(self.data)).eq(decoded(other.of(self.data))),
            _ => false,
        }
    }
}

/// Whether a string's contents are text: UTF-8 without control bytes, valid escapes, no lone surrogate.
#[cold]
fn is_text(raw: &[u8]) -> bool {
    simdutf8::basic::from_utf8(raw).is_ok()
        && raw.iter().all(|&byte| byte >= 0x20)
        && decoded(raw).all(|unit| unit <= 0xff)
}

/// The bytes that end a value that is no string, object or array, and cannot begin one.
const ENDS_WORD: [bool; 256] = {
    let mut ends = [false; 256];
    let bytes = b" \t\r\n,]}\"{[:";
    let mut at = 0;
    while at < bytes.len() {
        ends[bytes[at] as usize] = true;
        at += 1;
    }
    ends
};

/// The bytes of a string's contents without its escapes. A lone surrogate comes as one unit, 0xD800 to 0xDFFF, and at an
/// invalid escape [`INVALID`] is the last.
pub(crate) fn decoded(raw: &[u8]) -> Decoded<'_> {
    Decoded {
        rest: raw,
        character: [0; 4],
        left: 0,
    }
}

/// What stands for an escape that is none.
pub(crate) const INVALID: u16 = 0xffff;

#[derive(Clone)]
pub(crate) struct Decoded<'a> {
    rest: &'a [u8],
    /// The last bytes of a character that was escaped, `left` of them.
    character: [u8; 4],
    left: usize,
}

impl Decoded<'_> {
    fn invalid(&mut self) -> u16 {
        self.rest = &[];
        INVALID
    }

    /// The character of `\uXXXX` (and of the low half that follows a high one); `rest` begins with the digits.
    fn unicode(&mut self) -> u16 {
        let Some(unit) = hex(self.rest) else {
            return self.invalid();
        };
        self.rest = &self.rest[4..];
        let mut code = u32::from(unit);
        if let 0xd800..=0xdbff = unit {
            let low = self.rest.strip_prefix(b"\\u").and_then(hex);
            if let Some(low @ 0xdc00..=0xdfff) = low {
                code = 0x10000 + ((code - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                self.rest = &self.rest[6..];
            }
        }
        let Some(character) = char::from_u32(code) else {
            return unit;
        };
        let length = character.len_utf8();
        character.encode_utf8(&mut self.character[4 - length..]);
        self.left = length - 1;
        u16::from(self.character[4 - length])
    }
}

impl Iterator for Decoded<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if self.left > 0 {
            self.left -= 1;
            return Some(u16::from(self.character[3 - self.left]));
        }
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        if byte != b'\\' {
            return Some(u16::from(byte));
        }
        let Some((&escape, rest)) = self.rest.split_first() else {
            return Some(self.invalid());
        };
        self.rest = rest;
        Some(match escape {
            b'"' | b'\\' | b'/' => u16::from(escape),
            b'b' => 8,
            b'f' => 12,
            b'n' => 10,
            b'r' => 13,
            b't' => 9,
            b'u' => self.unicode(),
            _ => self.invalid(),
        })
    }
}

/// The value of the four hexadecimal digits that `raw` begins with.
fn hex(raw: &[u8]) -> Option<u16> {
    raw.first_chunk::<4>()?.iter().try_fold(0, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(value << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
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

    /// The kind of a line with slashes between its tags; `None` if it is unclear.
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
    fn tags_are_found_wherever_they_stand() {
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

    fn kinds(data: &[u8], found: &Scan) -> Option<crate::model::Kind> {
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
        fn the_kind_is_that_of_the_definition(data in crate::model::line(), ended: bool, before in 0..70_usize) {
            let end = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
            let behind: &[u8] = if ended { b"\n\"}" } else { b"" };
            let data = [&vec![b'"'; before], &data[..end], behind].concat();
            let line = &data[before..before + end];
            for level in [Level::Plain, Level::Fast] {
                let found = run(level, At(&data, before));
                prop_assert_eq!(found.end, before + end + usize::from(ended));
                prop_assert_eq!(kinds(&data, &found), crate::model::kind(line));
            }
        }

        #[test]
        fn brackets_and_quotes_are_passed_over_as_defined(
            pieces in proptest::collection::vec(proptest::sample::select(
                vec!["{", "}", "[", "]", "\"", "\\", "\\\"", "\"a\"", "x", "0123456789abcdef0123456789", ",", ":", " ", "\n", "é"]), 0..60),
            tail in "[\\]}]{0,3}",
        ) {
            let data = format!("{{\"a\":[{}{tail},\"type\":\"t\"}}\n", pieces.concat());
            let line = &data.as_bytes()[..data.find('\n').unwrap()];
            for level in [Level::Plain, Level::Fast] {
                let found = run(level, One(data.as_bytes()));
                prop_assert_eq!(found.end, line.len() + 1);
                prop_assert_eq!(kinds(line, &found), crate::model::kind(line));
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
}
