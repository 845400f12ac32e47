//! Which tables there are, and where the values of their columns come from.

use super::batch::Type;
use super::walk::{Field, Part};

/// Where the values of a column come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The name of the file; null for bytes.
    Path,
    /// Bytes of the file before the line.
    Offset,
    /// Whether the line is of a stream or of a transcript, by how it writes the session's id.
    Source,
    /// One key of the line.
    Field(Field),
    /// The first of two keys that has a value.
    Either(Field, Field),
    /// The text of a message: `content` of `message`, or the `content` beside it.
    Text,
    /// Which content block of its line it is, from 0.
    Index,
    /// The text of a content block: its `text`, its `thinking`, or the text of its `content`.
    BlockText,
    /// One key of the content block.
    Part(Part),
    /// The first of two keys of the content block that has a value.
    EitherPart(Part, Part),
    /// The type of the content block: `text` where `content` is a string.
    BlockType,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub kind: Type,
    /// Where they come from.
    pub from: From,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A row for each line.
    Messages,
    /// A row for each content block of a message of the user or the assistant.
    Blocks,
    /// A row for each line of the assistant that says what was used.
    Usage,
    /// A row for each `result` of a stream, and each `cost-state` of a transcript.
    Results,
}

const fn text(name: &'static str, from: From) -> Spec {
    Spec {
        name,
        kind: Type::Text,
        from,
    }
}

const fn int(name: &'static str, field: Field) -> Spec {
    Spec {
        name,
        kind: Type::Int,
        from: From::Field(field),
    }
}

const fn spec(name: &'static str, kind: Type, from: From) -> Spec {
    Spec { name, kind, from }
}

const SOURCE: Spec = text("source", From::Source);
const PATH: Spec = text("path", From::Path);
const OFFSET: Spec = spec("offset", Type::Int, From::Offset);
const TYPE: Spec = text("type", From::Field(Field::Type));
const SUBTYPE: Spec = text("subtype", From::Field(Field::Subtype));
const UUID: Spec = text("uuid", From::Field(Field::Uuid));
const SESSION_ID: Spec = text(
    "session_id",
    From::Either(Field::SessionIdCamel, Field::SessionId),
);
const TIMESTAMP: Spec = spec("timestamp", Type::Time, From::Field(Field::Timestamp));
const MESSAGE_ID: Spec = text("message_id", From::Field(Field::MessageId));
const REQUEST_ID: Spec = text(
    "request_id",
    From::Either(Field::RequestIdCamel, Field::RequestId),
);
const MODEL: Spec = text("model", From::Field(Field::Model));
const ROLE: Spec = text("role", From::Field(Field::Role));
const IS_SIDECHAIN: Spec = spec("is_sidechain", Type::Bool, From::Field(Field::IsSidechain));
const AGENT_ID: Spec = text("agent_id", From::Field(Field::AgentId));
const PARENT_TOOL: Spec = text("parent_tool_use_id", From::Field(Field::ParentToolUseId));
const CWD: Spec = text("cwd", From::Field(Field::Cwd));

const MESSAGES: &[Spec] = &[
    SOURCE,
    PATH,
    OFFSET,
    TYPE,
    SUBTYPE,
    UUID,
    text("parent_uuid", From::Field(Field::ParentUuid)),
    SESSION_ID,
    TIMESTAMP,
    MESSAGE_ID,
    REQUEST_ID,
    ROLE,
    MODEL,
    text("text", From::Text),
    text("stop_reason", From::Field(Field::StopReason)),
    IS_SIDECHAIN,
    AGENT_ID,
    PARENT_TOOL,
    CWD,
    text("git_branch", From::Field(Field::GitBranch)),
    text("version", From::Field(Field::Version)),
];

const BLOCKS: &[Spec] = &[
    SOURCE,
    PATH,
    OFFSET,
    UUID,
    SESSION_ID,
    TIMESTAMP,
    MESSAGE_ID,
    ROLE,
    MODEL,
    IS_SIDECHAIN,
    AGENT_ID,
    PARENT_TOOL,
    spec("block", Type::Int, From::Index),
    text("block_type", From::BlockType),
    text("text", From::BlockText),
    text("tool_use_id", From::EitherPart(Part::Id, Part::ToolUseId)),
    text("tool_name", From::Part(Part::Name)),
    spec("tool_input", Type::Json, From::Part(Part::Input)),
    spec("is_error", Type::Bool, From::Part(Part::IsError)),
];

const USAGE: &[Spec] = &[
    SOURCE,
    PATH,
    OFFSET,
    UUID,
    SESSION_ID,
    TIMESTAMP,
    MESSAGE_ID,
    REQUEST_ID,
    text("request_session_id", From::Field(Field::RequestSessionId)),
    MODEL,
    int("input_tokens", Field::InputTokens),
    int("output_tokens", Field::OutputTokens),
    int("cache_creation_input_tokens", Field::CacheCreation),
    int("cache_creation_5m", Field::Cache5m),
    int("cache_creation_1h", Field::Cache1h),
    int("cache_read_input_tokens", Field::CacheRead),
    int("thinking_tokens", Field::Thinking),
    text("service_tier", From::Field(Field::ServiceTier)),
    IS_SIDECHAIN,
    AGENT_ID,
    PARENT_TOOL,
    CWD,
];

const RESULTS: &[Spec] = &[
    SOURCE,
    PATH,
    OFFSET,
    TYPE,
    SUBTYPE,
    UUID,
    SESSION_ID,
    TIMESTAMP,
    spec("is_error", Type::Bool, From::Field(Field::IsError)),
    int("num_turns", Field::NumTurns),
    spec(
        "duration_ms",
        Type::Float,
        From::Either(Field::DurationMs, Field::TotalDuration),
    ),
    spec(
        "duration_api_ms",
        Type::Float,
        From::Either(Field::DurationApiMs, Field::TotalApiDuration),
    ),
    spec(
        "total_cost_usd",
        Type::Float,
        From::Either(Field::TotalCost, Field::TotalCostCamel),
    ),
    text("text", From::Field(Field::Result)),
    text("stop_reason", From::Field(Field::TopStopReason)),
    int("input_tokens", Field::ResultInputTokens),
    int("output_tokens", Field::ResultOutputTokens),
    int("cache_creation_input_tokens", Field::ResultCacheCreation),
    int("cache_creation_5m", Field::ResultCache5m),
    int("cache_creation_1h", Field::ResultCache1h),
    int("cache_read_input_tokens", Field::ResultCacheRead),
    int("thinking_tokens", Field::ResultThinking),
    text("service_tier", From::Field(Field::ResultServiceTier)),
    spec("model_usage", Type::Json, From::Field(Field::ModelUsage)),
];

impl Table {
    /// By its name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "messages" => Self::Messages,
            "blocks" => Self::Blocks,
            "usage" => Self::Usage,
            "results" => Self::Results,
            _ => return None,
        })
    }

    /// All columns that it has.
    #[must_use]
    pub fn specs(self) -> &'static [Spec] {
        match self {
            Self::Messages => MESSAGES,
            Self::Blocks => BLOCKS,
            Self::Usage => USAGE,
            Self::Results => RESULTS,
        }
    }

    /// The columns of these names, in this order; all of them if there is no name.
    #[must_use]
    pub fn columns(self, names: &[&str]) -> Option<Vec<Spec>> {
        if names.is_empty() {
            return Some(self.specs().to_vec());
        }
        let find = |name: &&str| self.specs().iter().find(|spec| spec.name == *name).copied();
        names.iter().map(find).collect()
    }
}
