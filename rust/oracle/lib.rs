//! The oracle: the rules of kinds, filtering and merging, written as simply as possible. Unit tests and fuzz targets compare the
//! library with it.
//!
//! The oracle does not use any code of the library, and does not try to be fast: it splits a line into tokens, and collects all values of
//! all keys in a map. In all functions, a line does not include its line feed.

use std::collections::BTreeMap;

use serde_bytes::ByteBuf;

/// The type, the subtype and the detail of a line, such as `stream_event`, `content_block_delta`, `text_delta`.
pub type Kind = [Option<String>; 3];

/// Returns the complete lines of some data: those that end with an LF.
pub fn lines(data: &[u8]) -> Vec<&[u8]> {
    let lines = data.split_inclusive(|&byte| byte == b'\n');
    lines.filter_map(|line| line.strip_suffix(b"\n")).collect()
}

/// Returns true if a line contains only white space.
pub fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| b" \t\r".contains(byte))
}

/// Splits a line into tokens: strings with their quotes, brackets, commas, colons, and the words between these. Returns `None` if a string
/// does not end.
fn tokens(line: &[u8]) -> Option<Vec<&[u8]>> {
    let ends_word = |byte: &u8| b" \t\r,]}\"{[:".contains(byte);
    let (mut tokens, mut rest) = (Vec::new(), line);
    while let Some(first) = rest.first() {
        let mut length = 1;
        if *first == b'"' {
            while *rest.get(length)? != b'"' {
                length += if rest[length] == b'\\' { 2 } else { 1 };
            }
            length += 1;
        } else if !ends_word(first) {
            length = rest.iter().position(ends_word).unwrap_or(rest.len());
        }
        tokens.push(&rest[..length]);
        rest = &rest[length..];
    }
    tokens.retain(|token| !is_blank(token));
    Some(tokens)
}

/// Returns 1 for a token that opens a container, -1 for a token that closes it, and 0 for other tokens.
fn opened(token: &[u8]) -> i32 {
    i32::from(b"{[".contains(&token[0])) - i32::from(b"}]".contains(&token[0]))
}

/// Maps (object, key) to all values of this key.
///
/// The object is `""` for the line's object, or the key that leads to the object, such as `event`. The key's escapes are decoded; the key
/// is `None` if an escape is invalid. A value is a token: a string, a word, or the opening bracket of an object or an array.
type Members<'a> = BTreeMap<(&'static str, Option<Vec<u8>>), Vec<&'a [u8]>>;

/// The members of the objects in a line that can have tags.
struct Walk<'a> {
    tokens: std::vec::IntoIter<&'a [u8]>,
    members: Members<'a>,
}

impl<'a> Walk<'a> {
    /// Walks a line. Returns `None` if the line does not have the structure of an object.
    fn of(line: &'a [u8]) -> Option<Self> {
        let (tokens, members) = (tokens(line)?.into_iter(), Members::new());
        let mut walk = Self { tokens, members };
        walk.tokens.next().filter(|first| *first == b"{")?;
        walk.object("")?;
        walk.tokens.next().is_none().then_some(walk)
    }

    /// Walks an object, starting at the token after its opening bracket.
    fn object(&mut self, object: &'static str) -> Option<()> {
        let mut next = self.tokens.next()?;
        while next != b"}" {
            if next[0] != b'"' || self.tokens.next()? != b":" {
                return None;
            }
            let key = decoded(next);
            let inner = match (object, key.as_deref()) {
                ("", Some(b"event")) => "event",
                ("", Some(b"request")) => "request",
                ("", Some(b"response")) => "response",
                ("event", Some(b"delta")) => "delta",
                ("event", Some(b"content_block")) => "content_block",
                _ => "",
            };
            let key = (object, key);
            if !inner.is_empty() && self.members.contains_key(&key) {
                return None;
            }
            let value = self.tokens.next()?;
            match value {
                b"{" if !inner.is_empty() => self.object(inner)?,
                b"{" | b"[" => {
                    let mut depth = 1;
                    while depth > 0 {
                        depth += opened(self.tokens.next()?);
                    }
                }
                b"}" | b"]" | b"," | b":" => return None,
                _ => (),
            }
            self.members.entry(key).or_default().push(value);
            match self.tokens.next()? {
                b"}" => break,
                b"," => next = self.tokens.next().filter(|next| *next != b"}")?,
                _ => return None,
            }
        }
        Some(())
    }

    /// Returns the tag under a key. `Some(None)`: the key is absent or its value is not a string. `None`: the key occurs several times
    /// with different values.
    #[allow(clippy::option_option)]
    fn tag(&self, object: &'static str, key: &str) -> Option<Option<String>> {
        let values = self.members.get(&(object, Some(key.into())));
        let tag = |value: &&[u8]| match value[0] {
            b'"' => serde_json::from_slice(value).ok().map(Some),
            _ => Some(None),
        };
        let mut tags = values.into_iter().flatten().map(tag);
        let first = tags.next().unwrap_or(Some(None))?;
        let clear = tags.all(|tag| tag.as_ref() == Some(&first));
        clear.then_some(first)
    }
}

/// Returns all values, as tokens, that a key has in the line's object (`""`) or in the object under a key such as `event`. There are several
/// if the key repeats. Returns none if it is unclear which object is meant.
pub fn values<'a>(line: &'a [u8], object: &'static str, key: &str) -> Vec<&'a [u8]> {
    let values =
        Walk::of(line).and_then(|mut walk| walk.members.remove(&(object, Some(key.into()))));
    values.unwrap_or_default()
}

/// Returns the decoded bytes of a quoted string; `None` if an escape is invalid. Half of a surrogate pair is allowed.
pub fn decoded(quoted: &[u8]) -> Option<Vec<u8>> {
    serde_json::from_slice(quoted).ok().map(ByteBuf::into_vec)
}

/// Returns the kind of a line; `None` if it is unclear.
pub fn kind(line: &[u8]) -> Option<Kind> {
    let walk = Walk::of(line)?;
    let [name, subtype] = [walk.tag("", "type")?, walk.tag("", "subtype")?];
    let request = walk.tag("request", "subtype")?;
    let response = walk.tag("response", "subtype")?;
    let event = walk.tag("event", "type")?;
    let delta = walk.tag("delta", "type")?;
    let block = walk.tag("content_block", "type")?;
    Some(match name.as_deref() {
        None => Kind::default(),
        Some("stream_event") => [name, event, delta.or(block)],
        Some("control_request") => [name, request, None],
        Some("control_response") => [name, response, None],
        Some(_) => [name, subtype, None],
    })
}

/// Returns true if a filter for the kinds `only` skips this line.
pub fn is_skipped(line: &[u8], only: Option<&[&str]>) -> bool {
    let (Some(names), Some(kind @ [Some(_), ..])) = (only, kind(line)) else {
        return false;
    };
    let fits = |name: &&str| {
        let mut parts = name.split('/').enumerate();
        parts.all(|(at, part)| kind.get(at).and_then(Option::as_deref) == Some(part))
    };
    !names.iter().any(fits)
}

/// A line with a delta that may be merged with others.
#[derive(Clone)]
struct Delta {
    /// The session, the parent tool use, the index and the type. Only deltas with the same key are merged.
    key: [Vec<u8>; 4],
    /// The line in parts. Parts at even indexes are fixed, and the parts between them are the text and the uuid, in the order of the line:
    /// `{…"text":"`, `hello`, `"…,"uuid":"`, `1234`, `"}`.
    parts: Vec<Vec<u8>>,
    /// The index of the text in `parts`.
    text: usize,
    /// The index, among the lines of a feed, of the first line that was merged into this line.
    index: usize,
}

impl Delta {
    /// Returns the merged delta: the line of `other`, with the text of both lines. Returns `None` if the lines differ in more than the text
    /// and the uuid.
    fn merged(&self, other: &Self) -> Option<Self> {
        let fixed = |delta: &Self| delta.parts.iter().step_by(2).cloned().collect::<Vec<_>>();
        if fixed(self) != fixed(other) || self.text != other.text {
            return None;
        }
        let mut merged = other.clone();
        merged.index = self.index;
        merged.parts[self.text] = [&self.parts[self.text][..], &other.parts[self.text]].concat();
        Some(merged)
    }
}

/// Returns the delta in a line; `None` if the line has no delta that may be merged.
fn delta(line: &[u8], index: usize) -> Option<Delta> {
    let walk = Walk::of(line)?;
    let repeats = walk.members.values().any(|values| values.len() > 1);
    if line.len() >= 4096 || repeats || !is_read_by_all(line) {
        return None;
    }
    let kind = kind(line)?.map(Option::unwrap_or_default);
    let text_key = match kind.each_ref().map(String::as_str) {
        ["stream_event", "content_block_delta", "text_delta"] => "text",
        ["stream_event", "content_block_delta", "thinking_delta"] => "thinking",
        ["stream_event", "content_block_delta", "input_json_delta"] => "partial_json",
        _ => return None,
    };
    let is_plain = |value: &[u8]| value[0] == b'"' && !value.contains(&b'\\');
    let value = |object, key: &str| Some(walk.members.get(&(object, Some(key.into())))?[0]);
    let owner = |key| match value("", key) {
        None | Some(b"null") => Some(Vec::new()),
        Some(value) => is_plain(value).then(|| value.to_vec()),
    };
    let [session, parent] = [owner("session_id")?, owner("parent_tool_use_id")?];
    let text = value("delta", text_key).filter(|text| text[0] == b'"')?;
    let digits = value("event", "index").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let uuid = value("", "uuid");
    if uuid.is_some_and(|uuid| !is_plain(uuid)) {
        return None;
    }
    let start = |value: &[u8]| value.as_ptr() as usize - line.as_ptr() as usize;
    let mut variable: Vec<_> = [Some(text), uuid].into_iter().flatten().collect();
    variable.sort_by_key(|value| start(value));
    let (mut parts, mut at) = (Vec::new(), 0);
    for value in &variable {
        let (open, close) = (start(value) + 1, start(value) + value.len() - 1);
        parts.extend([line[at..open].to_vec(), line[open..close].to_vec()]);
        at = close;
    }
    parts.push(line[at..].to_vec());
    Some(Delta {
        key: [session, parent, digits.to_vec(), kind[2].clone().into()],
        parts,
        text: 1 + 2 * usize::from(start(variable[0]) != start(text)),
        index,
    })
}

/// Returns true if every decoder accepts the line: it is valid JSON, nested at most 64 levels deep, and without numbers that have an
/// exponent or more than 64 bytes. Decoders may refuse JSON that is nested deeply, and numbers that are out of their range.
fn is_read_by_all(line: &[u8]) -> bool {
    let mut depth = 0;
    for token in tokens(line).unwrap_or_default() {
        depth += opened(token);
        let is_number = token[0] == b'-' || token[0].is_ascii_digit();
        let is_large = token.len() > 64 || token.iter().any(|byte| b"eE".contains(byte));
        if depth > 64 || is_number && is_large {
            return false;
        }
    }
    serde_json::from_slice::<&serde_json::value::RawValue>(line).is_ok()
}

/// The result of [`Filter::feed`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// The lines that the filter lets through, each with the index of its input line, or of the first input line that was merged into it.
    pub lines: Vec<(usize, Vec<u8>)>,
    /// How many lines were skipped.
    pub skipped: usize,
    /// How many lines were merged into earlier lines.
    pub merged: usize,
}

/// The model of the library's filter: it skips lines of unwanted kinds, and merges deltas.
#[derive(Default)]
pub struct Filter<'a> {
    only: Option<&'a [&'a str]>,
    merge: bool,
    max_line: usize,
    groups: Vec<Delta>,
    out: Filtered,
}

impl<'a> Filter<'a> {
    /// Creates a filter. `only` lists the wanted kinds, and `merge` says whether to merge deltas. A merged line has at most `max_line`
    /// bytes.
    pub fn new(only: Option<&'a [&'a str]>, merge: bool, max_line: usize) -> Self {
        Self {
            only,
            merge,
            max_line,
            ..Self::default()
        }
    }

    /// Filters the lines that one chunk completes. At the end of a chunk, the filter returns all merged lines.
    pub fn feed(&mut self, lines: &[&[u8]]) -> Filtered {
        for (index, line) in lines.iter().enumerate() {
            self.line(index, line);
        }
        self.close();
        std::mem::take(&mut self.out)
    }

    fn line(&mut self, index: usize, line: &[u8]) {
        if is_blank(line) {
            return;
        }
        let skipped = is_skipped(line, self.only);
        let Some(delta) = delta(line, index).filter(|_| self.merge && !skipped) else {
            self.close();
            self.out.skipped += usize::from(skipped);
            if !skipped {
                self.out.lines.push((index, line.to_vec()));
            }
            return;
        };
        let known = self.groups.iter().position(|group| group.key == delta.key);
        let merged = known.and_then(|at| self.groups[at].merged(&delta));
        let merged = merged.filter(|merged| merged.parts.concat().len() <= self.max_line);
        if let (Some(at), Some(merged)) = (known, merged) {
            self.groups[at] = merged;
            self.out.merged += 1;
            return;
        }
        if known.is_some() || self.groups.len() == 64 {
            self.close();
        }
        self.groups.push(delta);
    }

    /// Moves the merged lines of all groups to the output.
    fn close(&mut self) {
        let lines = self.groups.drain(..);
        let lines = lines.map(|group| (group.index, group.parts.concat()));
        self.out.lines.extend(lines);
    }
}
