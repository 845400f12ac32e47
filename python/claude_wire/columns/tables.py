"""The tables, and where in a line each column's value is. The native library extracts the values.

A column has a type, a rule, and paths of keys in the line, such as ``message.id``, or in a content block, such as
``*.id``. ``rust/src/columns/spec.rs`` defines the rules, and the lines that begin with ``!``.
"""

from __future__ import annotations

import functools
from typing import Literal, get_args

from claude_wire.support.arguments import require_one_of

TableName = Literal["messages", "blocks", "usage", "results"]

_LINE = {
    # "transcript" if the line has one of the three keys of transcripts, "stream" if it has session_id.
    "source": "text if transcript sessionId transcript parentUuid transcript isSidechain stream session_id",
    "path": "text path",
    "offset": "int offset",
}
_TYPE = {"type": "text first type", "subtype": "text first subtype"}
_SESSION = {
    "uuid": "text first uuid",
    "session_id": "text first sessionId session_id",
    "timestamp": "time first timestamp",
}
_MESSAGE = {"message_id": "text first message.id"}
_REQUEST = {"request_id": "text first requestId request_id"}
_ROLE = {"role": "text first message.role"}
_MODEL = {"model": "text first message.model"}
_AGENT = {
    "is_sidechain": "bool first isSidechain",
    "agent_id": "text first agentId",
    "parent_tool_use_id": "text first parent_tool_use_id",
}
_CWD = {"cwd": "text first cwd"}


def _tokens(usage: str) -> dict[str, str]:
    return {
        "input_tokens": f"int first {usage}.input_tokens",
        "output_tokens": f"int first {usage}.output_tokens",
        "cache_creation_input_tokens": f"int first {usage}.cache_creation_input_tokens",
        "cache_creation_5m": f"int first {usage}.cache_creation.ephemeral_5m_input_tokens",
        "cache_creation_1h": f"int first {usage}.cache_creation.ephemeral_1h_input_tokens",
        "cache_read_input_tokens": f"int first {usage}.cache_read_input_tokens",
        "thinking_tokens": f"int first {usage}.output_tokens_details.thinking_tokens",
        "service_tier": f"text first {usage}.service_tier",
    }


#: Table -> which lines have rows, and the columns.
_TABLES: dict[TableName, tuple[list[str], dict[str, str]]] = {
    "messages": (
        [],
        {
            **_LINE,
            **_TYPE,
            **_SESSION,
            "parent_uuid": "text first parentUuid",
            **_MESSAGE,
            **_REQUEST,
            **_ROLE,
            **_MODEL,
            "text": "text joined message.content attachment.prompt content",
            "stop_reason": "text first message.stop_reason",
            **_AGENT,
            **_CWD,
            "git_branch": "text first gitBranch",
            "version": "text first version",
        },
    ),
    "blocks": (
        # In transcripts, a prompt that was sent during a turn is an attachment.
        ["!where assistant user attachment", "!each message.content attachment.prompt"],
        {
            **_LINE,
            **_SESSION,
            **_MESSAGE,
            **_ROLE,
            **_MODEL,
            **_AGENT,
            "block": "int index",
            "block_type": "text kind *.type",
            "text": "text joined *.text *.thinking *.content",
            "tool_use_id": "text first *.id *.tool_use_id",
            "tool_name": "text first *.name",
            "tool_input": "json first *.input",
            "is_error": "bool first *.is_error",
        },
    ),
    "usage": (
        ["!where assistant", "!need assistant message.usage"],
        {
            **_LINE,
            **_SESSION,
            **_MESSAGE,
            **_REQUEST,
            "request_session_id": "text first requestSessionId",
            **_MODEL,
            **_tokens("message.usage"),
            **_AGENT,
            **_CWD,
        },
    ),
    "results": (
        ["!where result cost-state"],
        {
            **_LINE,
            **_TYPE,
            **_SESSION,
            "is_error": "bool first is_error",
            "num_turns": "int first num_turns",
            "duration_ms": "float first duration_ms totalDuration",
            "duration_api_ms": "float first duration_api_ms totalAPIDuration",
            "total_cost_usd": "float first total_cost_usd totalCostUSD",
            "text": "text first result",
            "stop_reason": "text first stop_reason",
            **_tokens("usage"),
            "model_usage": "json first modelUsage",
        },
    ),
}


def columns_of(table: TableName) -> tuple[str, ...]:
    """Return the names of all of a table's columns, in order."""
    require_one_of("table", table, get_args(TableName))
    return tuple(_TABLES[table][1])


def spec(table: TableName, columns: tuple[str, ...]) -> bytes:
    """Return these columns' specification for the native library."""
    which, known = _TABLES[table]
    return "\n".join([*which, *(f"{name} {known[name]}" for name in columns)]).encode()


#: The columns that ``rust/src/columns/usage_rows.rs`` needs.
_ROW_COLUMNS = (
    *("type", "path", "offset", "timestamp", "message_id", "request_id", "uuid", "request_session_id", "session_id"),
    *("model", "cwd", "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_creation_5m"),
    *("cache_creation_1h", "cache_read_input_tokens", "total_cost_usd", "model_usage"),
)


@functools.cache
def usage_rows_spec() -> bytes:
    """Return the specification of a table with the usage of answers, and the costs of sessions."""
    known = {**_TABLES["results"][1], **_TABLES["usage"][1]}
    which = ["!where assistant cost-state", "!need assistant message.usage"]
    return "\n".join([*which, *(f"{name} {known[name]}" for name in _ROW_COLUMNS)]).encode()
