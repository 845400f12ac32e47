//! What the kind of a line is and what may be merged, in the simplest words: one byte after another, nothing reused.
//!
//! The fuzz targets compare the library with this. It is the same set of rules as `tests/kinds_model.py`, written a second time
//! because a fuzzer runs it some ten thousand times a second.
//!
//! A line comes without its line feed.

use claude_wire::frame;

/// Type, subtype and detail of a line, unescaped.
pub type Kind = [Option<Vec<u8>>; 3];

/// The kind of a line that is unclear or has no type.
pub const UNCLEAR: Kind = [None, None, None];

/// Most deltas of different keys that are being merged at a time.
const MOST_OPEN: usize = 64;

/// Most containers that are open at a time in a delta that may be merged, the line's own counted.
const MOST_DEPTH: usize = 64;

/// Most bytes of a number in it.
const MOST_DIGITS: usize = 64;

/// A member of an object: its key as it stands in the line, and where its value begins and is over.
type Member<'a> = (&'a [u8], usize, usize);

/// Objects on a path, each with its path and members.
type Objects<'a> = Vec<(Path, Vec<Member<'a>>)>;

/// Keys from the line's own object down.
type Path = &'static [&'static str];

/// The paths, each with the keys that lead on from it.
const PATHS: [(Path, &[(&str, Path)]); 6] = [
    (
        &[],
        &[
            ("event", &["event"]),
            ("request", &["request"]),
            ("response", &["response"]),
        ],
    ),
    (
        &["event"],
        &[
            ("delta", &["event", "delta"]),
            ("content_block", &["event", "content_block"]),
        ],
    ),
    (&["request"], &[]),
    (&["response"], &[]),
    (&["event", "delta"], &[]),
    (&["event", "content_block"], &[]),
];

/// Whether there is nothing but white space.
pub fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|&byte| is_white_space(byte))
}

/// The kind of a line.
pub fn kind(line: &[u8]) -> Kind {
    structure(line)
        .and_then(|objects| kind_of(line, &objects))
        .unwrap_or(UNCLEAR)
}

/// Whether `only` passes over the line.
pub fn skipped(line: &[u8], names: &[&str]) -> bool {
    let found = kind(line);
    let matches = |name: &&str| {
        name.split('/')
            .enumerate()
            .all(|(at, part)| found.get(at).and_then(Option::as_deref) == Some(part.as_bytes()))
    };
    found[0].is_some() && !names.iter().any(matches)
}

fn kind_of(line: &[u8], objects: &Objects) -> Option<Kind> {
    let tags: [(Path, &str); 7] = [
        (&[], "type"),
        (&[], "subtype"),
        (&["request"], "subtype"),
        (&["response"], "subtype"),
        (&["event"], "type"),
        (&["event", "delta"], "type"),
        (&["event", "content_block"], "type"),
    ];
    let mut found = Vec::new();
    for (path, name) in tags {
        found.push(match members(objects, path) {
            Some(members) => tag(line, members, name)?,
            None => None,
        });
    }
    let [name, subtype, request, response, event, delta, block] = found.try_into().unwrap();
    Some(match name.as_deref() {
        None => UNCLEAR,
        Some(b"stream_event") => [name, event, delta.or(block)],
        Some(b"control_request") => [name, request, None],
        Some(b"control_response") => [name, response, None],
        Some(_) => [name, subtype, None],
    })
}

fn members<'a, 'b>(objects: &'b Objects<'a>, path: Path) -> Option<&'b [Member<'a>]> {
    let found = objects.iter().find(|(at, _)| *at == path);
    found.map(|(_, members)| members.as_slice())
}

/// The value of a tag, None within if it is absent or no string. None if that is not clear.
fn tag(line: &[u8], members: &[Member], name: &str) -> Option<Option<Vec<u8>>> {
    let mut values = Vec::new();
    for (key, start, end) in members {
        if !means(key, name) {
            continue;
        }
        if line[*start] != b'"' {
            values.push(None);
            continue;
        }
        let raw = &line[start + 1..end - 1];
        if raw.iter().any(|&byte| byte < 0x20) {
            return None;
        }
        let value = unescaped(raw)?;
        std::str::from_utf8(&value).ok()?;
        values.push(Some(value));
    }
    let first = values.first().cloned().flatten();
    values.iter().all(|value| *value == first).then_some(first)
}

/// Why a line keeps its block from being clean: it is no `{…}`, or no UTF-8.
pub fn defects(line: &[u8]) -> u32 {
    let bare = line.strip_suffix(b"\r").unwrap_or(line);
    let framed = bare.len() > 1 && bare.starts_with(b"{") && bare.ends_with(b"}");
    let shape = if framed { 0 } else { frame::SHAPE };
    let utf8 = if std::str::from_utf8(line).is_ok() {
        0
    } else {
        frame::UTF8
    };
    shape | utf8
}

// --- Structure -------------------------------------------------------------------------------------------------------

fn structure(line: &[u8]) -> Option<Objects<'_>> {
    let mut objects = Objects::new();
    let at = after_white_space(line, 0);
    if !has(line, at, b"{") {
        return None;
    }
    let at = after_object(line, at, &[], &mut objects)?;
    (after_white_space(line, at) == line.len()).then_some(objects)
}

fn after_object<'a>(
    line: &'a [u8],
    at: usize,
    path: Path,
    objects: &mut Objects<'a>,
) -> Option<usize> {
    let (_, steps) = PATHS.iter().find(|(known, _)| *known == path)?;
    let mut members = Vec::new();
    let mut seen = Vec::new();
    let mut at = after_white_space(line, at + 1);
    let mut empty = has(line, at, b"}");
    while !empty {
        if !has(line, at, b"\"") {
            return None;
        }
        let key_end = after_string(line, at)?;
        let key = &line[at + 1..key_end - 1];
        at = after_white_space(line, key_end);
        if !has(line, at, b":") {
            return None;
        }
        let start = after_white_space(line, at + 1);
        let step = steps.iter().find(|(name, _)| means(key, name));
        if step.is_some_and(|step| seen.contains(step)) {
            return None;
        }
        seen.extend(step);
        at = match step {
            Some((_, path)) if has(line, start, b"{") => after_object(line, start, path, objects)?,
            _ => after_value(line, start)?,
        };
        members.push((key, start, at));
        at = after_white_space(line, at);
        if has(line, at, b",") {
            at = after_white_space(line, at + 1);
        } else if has(line, at, b"}") {
            empty = true;
        } else {
            return None;
        }
    }
    objects.push((path, members));
    Some(at + 1)
}

fn after_value(line: &[u8], start: usize) -> Option<usize> {
    if has(line, start, b"\"") {
        return after_string(line, start);
    }
    if has(line, start, b"{[") {
        return after_container(line, start);
    }
    let end = after_scalar(line, start);
    (end > start).then_some(end)
}

fn after_scalar(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && !is_white_space(line[at]) && !b",]}\"{[:".contains(&line[at]) {
        at += 1;
    }
    at
}

fn after_string(line: &[u8], mut at: usize) -> Option<usize> {
    at += 1;
    while at < line.len() {
        match line[at] {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

fn after_container(line: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    while at < line.len() {
        match line[at] {
            b'"' => {
                at = after_string(line, at)?;
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => (),
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn after_white_space(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && is_white_space(line[at]) {
        at += 1;
    }
    at
}

fn is_white_space(byte: u8) -> bool {
    b" \t\r".contains(&byte)
}

fn has(line: &[u8], at: usize, which: &[u8]) -> bool {
    at < line.len() && which.contains(&line[at])
}

/// A part of a string: a byte as it stands there, or what a `\u` escape says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Byte(u8),
    Escaped(u32),
}

/// The parts of a string; None if it has an escape that JSON does not know.
fn units(raw: &[u8]) -> Option<Vec<Unit>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < raw.len() {
        if raw[at] != b'\\' {
            found.push(Unit::Byte(raw[at]));
            at += 1;
        } else if raw[at + 1] == b'u' {
            let digits = raw.get(at + 2..at + 6)?;
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let digits = std::str::from_utf8(digits).unwrap();
            found.push(Unit::Escaped(u32::from_str_radix(digits, 16).unwrap()));
            at += 6;
        } else {
            let known = b"\"\\/bfnrt"
                .iter()
                .position(|&known| known == raw[at + 1])?;
            found.push(Unit::Byte(b"\"\\/\x08\x0c\n\r\t"[known]));
            at += 2;
        }
    }
    Some(found)
}

/// The parts of a string with all that makes a character put into its bytes: halves of pairs without the other are left.
fn joined(units: &[Unit]) -> Vec<Unit> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < units.len() {
        let (character, length) = match (units[at], units.get(at + 1)) {
            (Unit::Escaped(high @ 0xD800..=0xDBFF), Some(Unit::Escaped(low @ 0xDC00..=0xDFFF))) => {
                (
                    char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)),
                    2,
                )
            }
            (Unit::Escaped(unit), _) => (char::from_u32(unit), 1),
            (Unit::Byte(_), _) => (None, 1),
        };
        match character {
            Some(character) => {
                let mut bytes = [0; 4];
                found.extend(character.encode_utf8(&mut bytes).bytes().map(Unit::Byte));
            }
            None => found.push(units[at]),
        }
        at += length;
    }
    found
}

/// What a string means; None if that cannot be said in UTF-8.
pub fn unescaped(raw: &[u8]) -> Option<Vec<u8>> {
    let byte = |unit: &Unit| match unit {
        Unit::Byte(byte) => Some(*byte),
        Unit::Escaped(_) => None,
    };
    joined(&units(raw)?).iter().map(byte).collect()
}

/// Whether a key is this one. Most have no escapes.
fn means(key: &[u8], name: &str) -> bool {
    if key.contains(&b'\\') {
        unescaped(key).as_deref() == Some(name.as_bytes())
    } else {
        key == name.as_bytes()
    }
}

// --- Merging ---------------------------------------------------------------------------------------------------------

/// A delta that may be merged with others.
#[derive(Clone, Debug)]
pub struct Delta {
    /// Session, parent, index and type.
    pub key: (Option<Vec<u8>>, Option<Vec<u8>>, Vec<u8>, Vec<u8>),
    /// The line around its text and its uuid.
    template: Vec<Vec<u8>>,
    /// Its text, escaped.
    pub text: Vec<u8>,
    uuid: Option<Vec<u8>>,
    text_first: bool,
}

impl Delta {
    /// The line.
    pub fn line(&self) -> Vec<u8> {
        let mut variable = vec![self.text.as_slice()];
        if let Some(uuid) = &self.uuid {
            variable.insert(usize::from(self.text_first), uuid);
        }
        let mut line = self.template[0].clone();
        for (variable, constant) in variable.iter().zip(&self.template[1..]) {
            line.extend_from_slice(variable);
            line.extend_from_slice(constant);
        }
        line
    }
}

/// The parts of a delta that may be merged; None for any other line.
pub fn delta(line: &[u8]) -> Option<Delta> {
    let objects = structure(line)?;
    let [name, event, Some(detail)] = kind_of(line, &objects)? else {
        return None;
    };
    if name? != b"stream_event" || event? != b"content_block_delta" {
        return None;
    }
    let text_key = match detail.as_slice() {
        b"text_delta" => "text",
        b"thinking_delta" => "thinking",
        b"input_json_delta" => "partial_json",
        _ => return None,
    };
    if !is_strict_json(line) || !is_read_by_all(line) {
        return None;
    }
    for (_, members) in &objects {
        let mut keys = Vec::new();
        for (key, _, _) in members {
            let key = joined(&units(key)?);
            if keys.contains(&key) {
                return None;
            }
            keys.push(key);
        }
    }
    let value = |path: Path, name: &str| {
        let found = members(&objects, path)?
            .iter()
            .find(|(key, _, _)| means(key, name));
        found.map(|&(_, start, end)| (start, end))
    };

    let text = value(&["event", "delta"], text_key)?;
    if line[text.0] != b'"' {
        return None;
    }
    let index = value(&["event"], "index")?;
    let index = &line[index.0..index.1];
    if !index.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let owner = |name: &str| match value(&[], name).map(|(start, end)| &line[start..end]) {
        None | Some(b"null") => Some(None),
        Some(raw) => (raw[0] == b'"' && !raw.contains(&b'\\')).then(|| Some(raw.to_vec())),
    };
    let uuid = value(&[], "uuid");
    if uuid.is_some_and(|(start, end)| line[start] != b'"' || line[start..end].contains(&b'\\')) {
        return None;
    }

    let mut spans: Vec<_> = [Some(text), uuid].into_iter().flatten().collect();
    spans.sort_unstable();
    let mut template = Vec::new();
    let mut at = 0;
    for (start, end) in spans {
        template.push(line[at..=start].to_vec());
        at = end - 1;
    }
    template.push(line[at..].to_vec());
    Some(Delta {
        key: (
            owner("session_id")?,
            owner("parent_tool_use_id")?,
            index.to_vec(),
            detail,
        ),
        template,
        text: line[text.0 + 1..text.1 - 1].to_vec(),
        uuid: uuid.map(|(start, end)| line[start + 1..end - 1].to_vec()),
        text_first: uuid.is_some_and(|uuid| text < uuid),
    })
}

/// Whether strict JSON has no value that decoders refuse: nested deeply, or a number that is perhaps out of range.
fn is_read_by_all(line: &[u8]) -> bool {
    let mut depth = 0;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b'"' => {
                let Some(end) = after_string(line, at) else {
                    return false;
                };
                at = end;
                continue;
            }
            b'-' | b'0'..=b'9' => {
                let end = after_scalar(line, at);
                let number = &line[at..end];
                if number.len() > MOST_DIGITS || number.contains(&b'e') || number.contains(&b'E') {
                    return false;
                }
                at = end;
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => (),
        }
        if depth > MOST_DEPTH {
            return false;
        }
        at += 1;
    }
    true
}

/// What is left of the lines of one feed, without blank ones and those that `only` passes over.
pub fn coalesced(lines: &[&[u8]], names: Option<&[&str]>, max_line: usize) -> Vec<Vec<u8>> {
    merged(lines, names, max_line, &mut Earning::endless()).0
}

/// As [`coalesced`]; and how many lines were gone through until the credit was spent.
fn merged(
    lines: &[&[u8]],
    names: Option<&[&str]>,
    max_line: usize,
    credit: &mut Earning,
) -> (Vec<Vec<u8>>, usize) {
    let mut out = Vec::new();
    let mut groups: Vec<Delta> = Vec::new();
    let mut joined = 0;
    let mut taken = 0;
    let close = |out: &mut Vec<Vec<u8>>,
                 groups: &mut Vec<Delta>,
                 joined: &mut u64,
                 credit: &mut Earning| {
        credit.count(*joined, groups.len() as u64, 0);
        *joined = 0;
        out.extend(groups.drain(..).map(|group| group.line()));
    };
    for line in lines {
        if credit.left == 0 {
            break;
        }
        taken += 1;
        if is_blank(line) {
            continue;
        }
        let passed_over = names.is_some_and(|names| skipped(line, names));
        let found = if passed_over { None } else { delta(line) };
        let Some(found) = found else {
            close(&mut out, &mut groups, &mut joined, credit);
            if !passed_over {
                out.push(line.to_vec());
                credit.count(0, 0, 1);
            }
            continue;
        };
        let group = groups.iter_mut().find(|group| group.key == found.key);
        let mut full = group.is_some();
        if let Some(group) = group {
            let mut merged = group.clone();
            merged.text.extend_from_slice(&found.text);
            merged.uuid.clone_from(&found.uuid);
            if group.template == found.template && merged.line().len() <= max_line {
                *group = merged;
                joined += 1;
                continue;
            }
        }
        full |= groups.len() == MOST_OPEN;
        if full {
            close(&mut out, &mut groups, &mut joined, credit);
        }
        groups.push(found);
    }
    close(&mut out, &mut groups, &mut joined, credit);
    (out, taken)
}

/// When lines are merged, where that is to be earned. Credit: a merged line adds 2, up to 96; a group takes 1, another line 3.
pub struct Earning {
    merging: bool,
    left: u64,
    most: u64,
    needed: u64,
    merged: u64,
    before: Option<bool>,
}

impl Default for Earning {
    fn default() -> Self {
        Self {
            merging: false,
            left: 0,
            most: 96,
            needed: 64,
            merged: 0,
            before: None,
        }
    }
}

impl Earning {
    fn endless() -> Self {
        Self {
            left: 1 << 60,
            most: 1 << 60,
            ..Self::default()
        }
    }

    fn count(&mut self, merged: u64, groups: u64, others: u64) {
        self.left = (self.left + 2 * merged).min(self.most);
        self.left = self.left.saturating_sub(groups + 3 * others);
        self.merged += merged;
    }

    /// What is left of lines of one chunk, all of those that are left alone included. `begun`: an earlier chunk began the first.
    pub fn feed(&mut self, mut lines: &[&[u8]], begun: bool, max_line: usize) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        self.before = None;
        if begun && !self.merging && !lines.is_empty() {
            out.push(lines[0].to_vec());
            lines = &lines[1..];
        }
        while !lines.is_empty() {
            let taken = if self.merging {
                let (kept, taken) = merged(lines, None, max_line, self);
                out.extend(kept);
                if self.left == 0 {
                    self.merging = false;
                    self.needed = if self.merged < 32 {
                        (2 * self.needed).min(8192)
                    } else {
                        64
                    };
                    self.before = None;
                }
                taken
            } else {
                let begin = self.begin(lines);
                out.extend(lines[..begin].iter().map(|line| line.to_vec()));
                begin
            };
            lines = &lines[taken..];
        }
        out
    }

    /// With which of the lines merging begins.
    fn begin(&mut self, lines: &[&[u8]]) -> usize {
        let mut begin = 0;
        for (number, line) in lines.iter().enumerate() {
            let looks = looks_like_delta(line);
            match (self.before, looks) {
                (None, _) => (),
                (Some(true), true) => self.left += 2,
                (_, true) => self.left = self.left.saturating_sub(1),
                (_, false) => self.left = self.left.saturating_sub(3),
            }
            self.before = Some(looks);
            if self.left == 0 {
                begin = number + usize::from(!looks);
            }
        }
        if self.left < self.needed {
            return lines.len();
        }
        (self.merging, self.left, self.merged) = (true, 24, 0);
        begin
    }
}

fn looks_like_delta(line: &[u8]) -> bool {
    let delta = b"\"content_block_delta\"";
    match line.strip_prefix(br#"{"type":"stream_event","event":{"type":"#) {
        Some(rest) => rest.starts_with(delta),
        None => line[..line.len().min(256)]
            .windows(delta.len())
            .any(|part| part == delta),
    }
}

// --- Strict JSON -----------------------------------------------------------------------------------------------------

/// Whether the line is one JSON value, by RFC 8259 and in UTF-8.
pub fn is_strict_json(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok()
        && after_json(line).is_some_and(|at| after_white_space(line, at) == line.len())
}

fn after_json(line: &[u8]) -> Option<usize> {
    let mut open = Vec::new();
    let mut at = 0;
    loop {
        at = after_white_space(line, at);
        let first = *line.get(at)?;
        if first == b'{' || first == b'[' {
            let closing = if first == b'{' { b'}' } else { b']' };
            at = after_white_space(line, at + 1);
            if !has(line, at, &[closing]) {
                open.push(closing);
                if closing == b'}' {
                    at = after_json_key(line, at)?;
                }
                continue;
            }
            at += 1;
        } else if first == b'"' {
            at = after_json_string(line, at)?;
        } else {
            let end = after_scalar(line, at);
            if !is_json_scalar(&line[at..end]) {
                return None;
            }
            at = end;
        }
        loop {
            let Some(&closing) = open.last() else {
                return Some(at);
            };
            at = after_white_space(line, at);
            if has(line, at, b",") {
                at = after_white_space(line, at + 1);
                if closing == b'}' {
                    at = after_json_key(line, at)?;
                }
                break;
            }
            if !has(line, at, &[closing]) {
                return None;
            }
            open.pop();
            at += 1;
        }
    }
}

fn after_json_key(line: &[u8], at: usize) -> Option<usize> {
    if !has(line, at, b"\"") {
        return None;
    }
    let at = after_white_space(line, after_json_string(line, at)?);
    has(line, at, b":").then_some(at + 1)
}

fn after_json_string(line: &[u8], at: usize) -> Option<usize> {
    let end = after_string(line, at)?;
    let raw = &line[at + 1..end - 1];
    (units(raw).is_some() && raw.iter().all(|&byte| byte >= 0x20)).then_some(end)
}

fn is_json_scalar(word: &[u8]) -> bool {
    if matches!(word, b"true" | b"false" | b"null") {
        return true;
    }
    let digits = |word: &[u8]| word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = word.strip_prefix(b"-").unwrap_or(word);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let [b'.', fraction @ ..] = rest {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', exponent @ ..] => exponent,
            _ => exponent,
        };
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}
