//! Where the values stand: one line is walked from key to key, as in [`crate::kinds::scan`], with more keys and with arrays.
//!
//! The line's own object is walked, those of its keys `message` and `usage`, what these hold of the same kind, and the
//! objects in the list `content`. All other values are skipped by their quotes and brackets alone.
//!
//! A line that is not one JSON object by that structure is unclear, and so is one in which a key of a column stands
//! twice: which of the two counts is for the decoder to say.
//!
//! Linear in the line, without recursion. Every search ends at the line's LF.
// The operations are inlined into one function per engine: only there the vector instructions may be used.
// Fields are few, and `None` of an `Option` means unclear in each function here.
#![allow(
    clippy::inline_always,
    clippy::cast_possible_truncation,
    clippy::option_option
)]

use crate::kinds::string::decoded;
use crate::simd::Engine;

/// What a value looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// There is none.
    #[default]
    Absent,
    /// A string without a backslash.
    Plain,
    /// A string with one.
    Escaped,
    /// A number, true, false or null, or something that is none of these.
    Word,
    /// An object.
    Object,
    /// An array.
    Array,
}

/// Where a value stands. Of a string that is what stands between its quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// What it looks like.
    pub form: Form,
    /// Where it begins.
    pub start: usize,
    /// Behind it.
    pub end: usize,
}

impl Value {
    /// Its bytes, still escaped.
    #[inline]
    #[must_use]
    pub fn of(self, data: &[u8]) -> &[u8] {
        &data[self.start..self.end]
    }

    /// Its bytes as they stand in the line, with the quotes of a string.
    #[must_use]
    pub fn whole(self, data: &[u8]) -> &[u8] {
        match self.form {
            Form::Plain | Form::Escaped => &data[self.start - 1..=self.end],
            _ => self.of(data),
        }
    }

    /// Whether there is a value, and it is not null.
    #[inline]
    #[must_use]
    pub fn is_some(self, data: &[u8]) -> bool {
        match self.form {
            Form::Absent => false,
            Form::Word => self.of(data) != b"null",
            _ => true,
        }
    }

    /// Whether it is the string `text`.
    #[inline]
    #[must_use]
    pub fn is(self, data: &[u8], text: &[u8]) -> bool {
        match self.form {
            Form::Plain => self.of(data) == text,
            Form::Escaped => decoded(self.of(data)).eq(text.iter().copied().map(u16::from)),
            _ => false,
        }
    }
}

/// A key of a line that some column has the value of.
#[allow(missing_docs)] // Each is a key, in the words of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Field {
    Type,
    Subtype,
    Uuid,
    ParentUuid,
    SessionIdCamel,
    SessionId,
    Timestamp,
    RequestIdCamel,
    RequestId,
    RequestSessionId,
    IsSidechain,
    AgentId,
    ParentToolUseId,
    Cwd,
    Version,
    GitBranch,
    TopContent,
    Result,
    IsError,
    NumTurns,
    DurationMs,
    DurationApiMs,
    TotalCost,
    TotalCostCamel,
    TotalDuration,
    TotalApiDuration,
    ModelUsage,
    TopStopReason,
    MessageId,
    Role,
    Model,
    StopReason,
    /// The `content` of `message`, where that is not a list that was walked.
    Content,
    InputTokens,
    OutputTokens,
    CacheCreation,
    CacheRead,
    Cache5m,
    Cache1h,
    Thinking,
    ServiceTier,
    ResultInputTokens,
    ResultOutputTokens,
    ResultCacheCreation,
    ResultCacheRead,
    ResultCache5m,
    ResultCache1h,
    ResultThinking,
    ResultServiceTier,
}

const FIELDS: usize = Field::ResultServiceTier as usize + 1;

/// A key of a content block that some column has the value of.
#[allow(missing_docs)] // Each is a key, in the words of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
    Type,
    Text,
    Thinking,
    Id,
    Name,
    Input,
    ToolUseId,
    IsError,
    /// The `content` of a tool's result, where that is not a list.
    Content,
}

const PARTS: usize = Part::Content as usize + 1;

/// A content block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    seen: u16,
    values: [Value; PARTS],
    /// If its `content` is a list: which of [`Line::inner`] are in there.
    pub inner: Option<(usize, usize)>,
}

impl Block {
    /// The value of a key.
    #[inline]
    #[must_use]
    pub fn value(&self, part: Part) -> Value {
        self.values[part as usize]
    }
}

/// Most content blocks in a line, and most parts of the results of tools in there. A line with more gives no row: each block takes 240 bytes
/// of memory, and three bytes of the line.
pub const MOST_BLOCKS: usize = 1 << 16;

/// What was found in a line.
#[derive(Debug, Default)]
pub struct Line {
    /// Of each field, and behind them of each path, whether it came.
    seen: u64,
    fields: Vec<Value>,
    /// Whether the `content` of `message` is a list, which was walked.
    pub has_blocks: bool,
    /// The objects in that list.
    pub blocks: Vec<Block>,
    /// The objects in the lists that are the `content` of those.
    pub inner: Vec<Block>,
    /// Whether there was something in these lists that is no object: in that of `message`, and in one of a block.
    pub strays: (bool, bool),
}

impl Line {
    /// One that has nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            fields: vec![Value::default(); FIELDS],
            ..Self::default()
        }
    }

    /// The value of a field.
    #[inline]
    #[must_use]
    pub fn value(&self, field: Field) -> Value {
        if self.seen >> field as u32 & 1 == 0 {
            return Value::default();
        }
        self.fields[field as usize]
    }

    /// The first of two fields that has a value.
    #[inline]
    #[must_use]
    pub fn either(&self, data: &[u8], one: Field, other: Field) -> Value {
        let value = self.value(one);
        if value.is_some(data) {
            value
        } else {
            self.value(other)
        }
    }

    /// Whether `message.usage` is an object.
    #[must_use]
    pub fn has_usage(&self) -> bool {
        self.seen >> (FIELDS as u32 + Path::Usage as u32) & 1 == 1
    }

    /// Whether there was more in it than is taken of one line.
    #[must_use]
    pub fn is_too_much(&self) -> bool {
        self.blocks.len() > MOST_BLOCKS || self.inner.len() > MOST_BLOCKS
    }

    #[inline]
    fn clear(&mut self) {
        self.seen = 0;
        self.has_blocks = false;
        self.strays = (false, false);
        self.blocks.clear();
        self.inner.clear();
    }
}

/// An object whose members are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Path {
    Top,
    Message,
    Usage,
    UsageCache,
    UsageDetails,
    ResultUsage,
    ResultCache,
    ResultDetails,
    /// An object in the list `message.content`.
    Block,
    /// An object in the list `content` of such an object.
    Inner,
}

const _: () = assert!(FIELDS + Path::Inner as usize <= 64);

impl Path {
    #[inline(always)]
    fn parent(self) -> Self {
        match self {
            Self::Top | Self::Message | Self::ResultUsage => Self::Top,
            Self::Usage | Self::Block => Self::Message,
            Self::UsageCache | Self::UsageDetails => Self::Usage,
            Self::ResultCache | Self::ResultDetails => Self::ResultUsage,
            Self::Inner => Self::Block,
        }
    }
}

#[derive(Clone, Copy)]
enum Key {
    Other,
    Field(Field),
    Part(Part),
    Path(Path),
}

/// What `key`, which is free of escapes, means in the object at `path`.
#[inline(always)]
fn meaning(path: Path, key: &[u8]) -> Key {
    match path {
        Path::Top => top(key),
        Path::Message => match key {
            b"id" => Key::Field(Field::MessageId),
            b"role" => Key::Field(Field::Role),
            b"model" => Key::Field(Field::Model),
            b"stop_reason" => Key::Field(Field::StopReason),
            b"content" => Key::Path(Path::Block),
            b"usage" => Key::Path(Path::Usage),
            _ => Key::Other,
        },
        Path::Usage | Path::ResultUsage => usage(path == Path::ResultUsage, key),
        Path::UsageCache | Path::ResultCache => match (path, key) {
            (Path::UsageCache, b"ephemeral_5m_input_tokens") => Key::Field(Field::Cache5m),
            (Path::UsageCache, b"ephemeral_1h_input_tokens") => Key::Field(Field::Cache1h),
            (_, b"ephemeral_5m_input_tokens") => Key::Field(Field::ResultCache5m),
            (_, b"ephemeral_1h_input_tokens") => Key::Field(Field::ResultCache1h),
            _ => Key::Other,
        },
        Path::UsageDetails | Path::ResultDetails => match (path, key) {
            (Path::UsageDetails, b"thinking_tokens") => Key::Field(Field::Thinking),
            (_, b"thinking_tokens") => Key::Field(Field::ResultThinking),
            _ => Key::Other,
        },
        Path::Block | Path::Inner => match key {
            b"type" => Key::Part(Part::Type),
            b"text" => Key::Part(Part::Text),
            b"thinking" => Key::Part(Part::Thinking),
            b"id" => Key::Part(Part::Id),
            b"name" => Key::Part(Part::Name),
            b"input" => Key::Part(Part::Input),
            b"tool_use_id" => Key::Part(Part::ToolUseId),
            b"is_error" => Key::Part(Part::IsError),
            b"content" => Key::Part(Part::Content),
            _ => Key::Other,
        },
    }
}

#[inline(always)]
fn top(key: &[u8]) -> Key {
    let field = match key {
        b"message" => return Key::Path(Path::Message),
        b"usage" => return Key::Path(Path::ResultUsage),
        b"type" => Field::Type,
        b"subtype" => Field::Subtype,
        b"uuid" => Field::Uuid,
        b"parentUuid" => Field::ParentUuid,
        b"sessionId" => Field::SessionIdCamel,
        b"session_id" => Field::SessionId,
        b"timestamp" => Field::Timestamp,
        b"requestId" => Field::RequestIdCamel,
        b"request_id" => Field::RequestId,
        b"requestSessionId" => Field::RequestSessionId,
        b"isSidechain" => Field::IsSidechain,
        b"agentId" => Field::AgentId,
        b"parent_tool_use_id" => Field::ParentToolUseId,
        b"cwd" => Field::Cwd,
        b"version" => Field::Version,
        b"gitBranch" => Field::GitBranch,
        b"content" => Field::TopContent,
        b"result" => Field::Result,
        b"is_error" => Field::IsError,
        b"num_turns" => Field::NumTurns,
        b"duration_ms" => Field::DurationMs,
        b"duration_api_ms" => Field::DurationApiMs,
        b"total_cost_usd" => Field::TotalCost,
        b"totalCostUSD" => Field::TotalCostCamel,
        b"totalDuration" => Field::TotalDuration,
        b"totalAPIDuration" => Field::TotalApiDuration,
        b"modelUsage" => Field::ModelUsage,
        b"stop_reason" => Field::TopStopReason,
        _ => return Key::Other,
    };
    Key::Field(field)
}

#[inline(always)]
fn usage(of_result: bool, key: &[u8]) -> Key {
    let (message, result) = match key {
        b"input_tokens" => (Field::InputTokens, Field::ResultInputTokens),
        b"output_tokens" => (Field::OutputTokens, Field::ResultOutputTokens),
        b"cache_creation_input_tokens" => (Field::CacheCreation, Field::ResultCacheCreation),
        b"cache_read_input_tokens" => (Field::CacheRead, Field::ResultCacheRead),
        b"service_tier" => (Field::ServiceTier, Field::ResultServiceTier),
        b"cache_creation" if of_result => return Key::Path(Path::ResultCache),
        b"cache_creation" => return Key::Path(Path::UsageCache),
        b"output_tokens_details" if of_result => return Key::Path(Path::ResultDetails),
        b"output_tokens_details" => return Key::Path(Path::UsageDetails),
        _ => return Key::Other,
    };
    Key::Field(if of_result { result } else { message })
}

/// As [`meaning`], of a key with escapes.
#[cold]
#[inline(never)]
fn meaning_escaped(path: Path, key: &[u8]) -> Key {
    // The longest key that means something has 27 bytes.
    let mut bytes = [0; 32];
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

/// Walks the line that begins at `from` and ends with an LF, and writes what it finds to `line`: the end of the line behind its LF if it is clear, else
/// `None`. With `blocks` the list `content` of `message` is walked, too.
#[inline(always)]
pub fn walk<E: Engine>(
    engine: E,
    data: &[u8],
    from: usize,
    blocks: bool,
    line: &mut Line,
) -> Option<usize> {
    line.clear();
    let mut walker = Walker::<E> {
        data,
        at: from,
        ahead: E::Ahead::default(),
        blocks,
        line,
    };
    walker.line(engine)?;
    Some(walker.at + 1)
}

struct Walker<'a, E: Engine> {
    data: &'a [u8],
    at: usize,
    ahead: E::Ahead,
    blocks: bool,
    line: &'a mut Line,
}

impl<E: Engine> Walker<'_, E> {
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
                let key = self.key(engine, path)?;
                if let Some(inner) = self.member(engine, path, key)? {
                    path = inner;
                    first = true;
                    continue;
                }
                self.space();
            }
            first = false;
            loop {
                match self.byte() {
                    b',' => break,
                    b'}' => self.at += 1,
                    _ => return None,
                }
                self.space();
                match path {
                    Path::Top => return (self.byte() == b'\n').then_some(()),
                    Path::Block | Path::Inner => {
                        if self.next_object(engine, path, false)? {
                            first = true;
                            break;
                        }
                        self.space();
                        path = path.parent();
                    }
                    _ => path = path.parent(),
                }
            }
            if !first {
                self.at += 1;
            }
        }
    }

    #[inline(always)]
    fn key(&mut self, engine: E, path: Path) -> Option<Key> {
        self.take(b'"')?;
        let key = self.string(engine)?;
        let meaning = if key.form == Form::Escaped {
            meaning_escaped(path, key.of(self.data))
        } else {
            meaning(path, key.of(self.data))
        };
        self.space();
        self.take(b':')?;
        self.space();
        Some(meaning)
    }

    /// Takes the value of a key, or goes into it: then the path that leads there is returned.
    #[inline(always)]
    fn member(&mut self, engine: E, path: Path, key: Key) -> Option<Option<Path>> {
        let opens = self.byte();
        let mut lists = opens == b'[' && self.blocks;
        match key {
            Key::Path(Path::Block) => {
                self.see(Field::Content as u32)?;
                if lists {
                    self.line.has_blocks = true;
                    self.line.fields[Field::Content as usize] = Value::default();
                    return self.list(engine, Path::Block);
                }
            }
            Key::Path(inner) if opens == b'{' => {
                self.see(FIELDS as u32 + inner as u32)?;
                self.at += 1;
                return Some(Some(inner));
            }
            Key::Part(Part::Content) if path == Path::Block => {
                let begin = self.line.inner.len();
                let block = self.line.blocks.last_mut()?;
                lists &= block.seen >> Part::Content as u32 & 1 == 0;
                if lists {
                    block.seen |= 1 << Part::Content as u32;
                    block.inner = Some((begin, begin));
                    return self.list(engine, Path::Inner);
                }
            }
            _ => (),
        }
        let value = self.value(engine)?;
        match key {
            Key::Other | Key::Path(Path::Top | Path::Inner) => (),
            Key::Path(Path::Block) => self.line.fields[Field::Content as usize] = value,
            // Not an object, so none of its columns has a value; but it may stand here once.
            Key::Path(inner) => {
                if self.line.seen >> (FIELDS as u32 + inner as u32) & 1 == 1 {
                    return None;
                }
            }
            Key::Field(field) => {
                self.see(field as u32)?;
                self.line.fields[field as usize] = value;
            }
            Key::Part(part) => {
                let list = if path == Path::Block {
                    &mut self.line.blocks
                } else {
                    &mut self.line.inner
                };
                let block = list.last_mut()?;
                if block.seen >> part as u32 & 1 == 1 {
                    return None;
                }
                block.seen |= 1 << part as u32;
                block.values[part as usize] = value;
            }
        }
        Some(None)
    }

    /// Goes into a list, to its first object; if it has none, behind it.
    #[inline(always)]
    fn list(&mut self, engine: E, path: Path) -> Option<Option<Path>> {
        self.at += 1;
        let found = self.next_object(engine, path, true)?;
        Some(found.then_some(path))
    }

    /// Goes on to the next object of a list, or behind its end: whether there is one.
    #[inline(always)]
    fn next_object(&mut self, engine: E, path: Path, mut first: bool) -> Option<bool> {
        loop {
            self.space();
            match self.byte() {
                b']' => {
                    self.at += 1;
                    return Some(false);
                }
                b',' if !first => {
                    self.at += 1;
                    self.space();
                }
                _ if first => (),
                _ => return None,
            }
            first = false;
            if self.byte() == b'{' {
                self.at += 1;
                self.begin(path);
                return Some(true);
            }
            self.value(engine)?;
            if path == Path::Block {
                self.line.strays.0 = true;
            } else {
                self.line.strays.1 = true;
            }
        }
    }

    #[inline(always)]
    fn begin(&mut self, path: Path) {
        if path == Path::Block {
            if self.line.blocks.len() > MOST_BLOCKS {
                self.line.blocks.pop();
            }
            self.line.blocks.push(Block::default());
            return;
        }
        if self.line.inner.len() > MOST_BLOCKS {
            self.line.inner.pop();
        }
        self.line.inner.push(Block::default());
        let end = self.line.inner.len();
        if let Some(Block {
            inner: Some(inner), ..
        }) = self.line.blocks.last_mut()
        {
            inner.1 = end;
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
        if self.line.seen >> bit & 1 == 1 {
            return None;
        }
        self.line.seen |= 1 << bit;
        Some(())
    }

    /// Passes a string whose opening quote is behind us.
    #[inline(always)]
    fn string(&mut self, engine: E) -> Option<Value> {
        let start = self.at;
        let (end, escaped) = engine.string_end(&mut self.ahead, self.data, start);
        self.at = end;
        self.take(b'"')?;
        let form = if escaped { Form::Escaped } else { Form::Plain };
        Some(Value { form, start, end })
    }

    #[inline(always)]
    fn value(&mut self, engine: E) -> Option<Value> {
        let start = self.at;
        let form = match self.byte() {
            b'"' => {
                self.at += 1;
                return self.string(engine);
            }
            open @ (b'{' | b'[') => {
                self.at = engine.container_end(self.data, start).ok()?;
                if open == b'{' {
                    Form::Object
                } else {
                    Form::Array
                }
            }
            byte if ends_word(byte) => return None,
            _ => {
                while !ends_word(self.byte()) {
                    self.at += 1;
                }
                Form::Word
            }
        };
        let end = self.at;
        Some(Value { form, start, end })
    }
}

/// Whether a byte ends a value that is no string, object or array, and cannot begin one.
#[inline(always)]
pub(super) fn ends_word(byte: u8) -> bool {
    const ENDS: [bool; 256] = {
        let mut ends = [false; 256];
        let bytes = b" \t\r\n,]}\"{[:";
        let mut at = 0;
        while at < bytes.len() {
            ends[bytes[at] as usize] = true;
            at += 1;
        }
        ends
    };
    ENDS[usize::from(byte)]
}

#[cfg(test)]
mod tests;
