"""Make frames without nulls and ids, and translate frames to messages, for the dialects of simple agents.

A frame is a message's JSON object on the wire.
"""

from __future__ import annotations

from typing import Any

from claude_wire.dialects.dialect import CONTROL, Connection
from claude_wire.messages import (
    AssistantMessage,
    MessageParam,
    ResultMessage,
    SystemErrorMessage,
    SystemToolResultMessage,
    TextBlock,
    ToolResultBlock,
    ToolResultMessage,
    ToolUseBlock,
    UnknownMessage,
    Usage,
    UserMessage,
)
from claude_wire.messages.base import Wire

#: Fields of a prompt that a simple agent reads, or that may be dropped without changing its answer.
_PROMPT_FIELDS = frozenset(("message", "session_id", "uuid", "parent_tool_use_id", "timestamp", "client_composed"))
_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def without_nulls(**fields: Any) -> dict[str, Any]:
    """Build an object from these fields, in this order, without fields that are None."""
    return {name: value for name, value in fields.items() if value is not None}


# --- from a host to an agent


def require_prompt(connection: Connection, prompt: UserMessage, *blocks: type[Wire]) -> None:
    """Check that the agent would read the whole prompt.

    Raises:
        DialectError: the prompt has a field that the agent does not know, or a block whose class is not in ``blocks``.
    """
    for name in prompt.__struct_fields__:
        if name not in _PROMPT_FIELDS and getattr(prompt, name) is not None:
            raise connection.cannot(f"has no {name} for a prompt")
    if prompt.parent_tool_use_id is not None:
        raise connection.cannot("has no parent_tool_use_id for a prompt")
    for block in () if isinstance(prompt.content, str) else prompt.content:
        if not isinstance(block, blocks):
            raise connection.cannot(f"has no {type(block).__name__} for a prompt")


def sent_prompt(connection: Connection, prompt: UserMessage) -> dict[str, Any]:
    """Build a prompt's frame.

    Raises:
        DialectError: the prompt has a field that the agent would not read, or a block other than text and tools.
    """
    require_prompt(connection, prompt, TextBlock, ToolUseBlock, ToolResultBlock)
    given = prompt.content
    content = given if isinstance(given, str) else [_block(block) for block in given]
    message = {"role": prompt.message.role, "content": content}
    return without_nulls(type="user", message=message, session_id=prompt.session_id or None)


def prompt_of(message: UserMessage) -> UserMessage:
    """Return a prompt without its uuid. An agent would report the state of a prompt with a uuid."""
    return UserMessage(message=message.message, session_id=message.session_id or None)


# --- from an agent to a host


def assistant_content(message: AssistantMessage) -> list[dict[str, Any]]:
    """Return a message's text and tool use blocks for a frame. Empty for a subagent's message."""
    blocks = message.content if message.parent_tool_use_id is None else []
    return [_block(block) for block in blocks if isinstance(block, (TextBlock, ToolUseBlock))]


def tool_results(message: UserMessage) -> list[dict[str, Any]]:
    """Return a message's tool results for frames. Empty for a subagent's message."""
    return [_tool_result(block) for block in message.tool_results] if message.parent_tool_use_id is None else []


def _tool_result(block: ToolResultBlock) -> dict[str, Any]:
    """Build the block for a frame. Omit ``is_error`` unless it is true."""
    given = block.content
    content = [_block(item) for item in given] if isinstance(given, list) else given or None
    is_error = True if block.is_error else None
    return without_nulls(type="tool_result", tool_use_id=block.tool_use_id, content=content, is_error=is_error)


def usage_counts(usage: Usage | None) -> dict[str, int] | None:
    """Return the token counts in the frame's order. Cache counts of 0 are omitted."""
    if usage is None:
        return None
    counts = {name: getattr(usage, name) or 0 for name in _COUNTS}
    return {name: count for name, count in counts.items() if count or not name.startswith("cache")}


def error_text(message: ResultMessage | SystemErrorMessage) -> str:
    """Return the error text of a failed result or of a ``system/error``."""
    if isinstance(message, SystemErrorMessage):
        return message.message or (message.error.message if message.error else "")
    if message.error is not None:
        return message.error.message
    return message.result or "\n".join(message.errors or ()) or message.subtype or ""


def _block(block: Wire | dict[str, Any]) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolUseBlock):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    if isinstance(block, ToolResultBlock):
        return _tool_result(block)
    return block.to_dict() if isinstance(block, Wire) else block


# --- messages for a host


def as_stream_json(message: Any) -> Any:
    """Translate a simple agent's message to stream-json. A control message becomes an :class:`UnknownMessage`."""
    if isinstance(message, SystemToolResultMessage):
        block = message.tool_result
        if block is None and message.tool_use_id is not None:
            block = ToolResultBlock(tool_use_id=message.tool_use_id, content=message.content)
        return _tool_result_message(block, message.session_id) if isinstance(block, ToolResultBlock) else message
    if isinstance(message, ToolResultMessage):
        given = message.result
        content = given if isinstance(given, (str, list)) else [given]
        is_error = message.is_error or (given.is_error if isinstance(given, ToolResultBlock) else None)
        return _tool_result_message(ToolResultBlock(message.tool_use_id, content, is_error), None)
    if isinstance(message, CONTROL):
        return UnknownMessage.because(message.to_dict(), "no message of this dialect")
    return message


def _tool_result_message(block: ToolResultBlock, session_id: str | None) -> UserMessage:
    return UserMessage(message=MessageParam("user", [block]), session_id=session_id)
