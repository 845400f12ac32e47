"""The outcome of a conversation as plain values, in the same form for both libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import claude_agent_sdk

import claude_wire
from places import Place
from through_process import Host
from through_sdk import SDK

if TYPE_CHECKING:
    from through_session import Talk

__all__ = ["Account", "of_host", "of_sdk"]


@dataclass(frozen=True)
class Account:
    """The outcome of one conversation, as plain values."""

    place: Place
    #: The texts of text blocks, the thinking blocks (text and signature), and the joined text deltas.
    texts: list[str]
    thoughts: list[tuple[str, str | None]]
    streamed: str
    #: The model of each assistant message.
    models: list[str]
    #: For each tool result: whether it is an error, and its content.
    tools: list[tuple[bool | None, Any]]
    #: For each hook message: its subtype and the event of the hook.
    hooks: list[tuple[str, str]]
    #: For each result: subtype, is_error, api_error_status, text.
    results: list[tuple[str, bool, int | None, str | None]]
    #: The calls of the host's callbacks and tools.
    calls: list[Any]
    #: For each request: its subtype, and the answer or the error.
    answers: list[tuple[str, Any]]
    #: The events in order: the texts of the model, those of a subagent with the prefix "sub: ", and `_event` of the
    #: rest.
    course: list[str]
    #: For each result: the structured output and the session id.
    structured: list[Any]
    sessions: list[str | None]
    #: Whether the conversation ended with an error.
    failed: bool

    def made(self, name: str) -> bool:
        """Whether the CLI has created a file of this name in its working directory."""
        return (self.place.work / name).exists()


def _event(plain: Mapping[str, Any]) -> list[str]:
    """Return the entry of a wire message in `course`: a list of one text, or an empty list if it has none."""
    kind, subtype = plain["type"], plain.get("subtype", "")
    if kind == "result":
        return ["result"]
    if kind == "assistant":
        sub = "sub: " if plain.get("parent_tool_use_id") else ""
        return [sub + block["text"] for block in plain["message"]["content"] if block["type"] == "text"]
    if kind == "system" and subtype in ("task_started", "task_notification", "compact_boundary"):
        return [f"{subtype} {plain['status']}" if "status" in plain else subtype]
    return []


def of_sdk(sdk: SDK) -> Account:
    """The outcome of a conversation through claude-agent-sdk."""
    seen = sdk.seen
    said = seen.of(claude_agent_sdk.AssistantMessage)
    blocks = [block for message in said for block in message.content]
    users = [message.content for message in seen.of(claude_agent_sdk.UserMessage) if isinstance(message.content, list)]
    tools = [block for content in users for block in content if isinstance(block, claude_agent_sdk.ToolResultBlock)]
    results = seen.of(claude_agent_sdk.ResultMessage)
    return Account(
        place=sdk.place,
        texts=[block.text for block in blocks if isinstance(block, claude_agent_sdk.TextBlock)],
        thoughts=[
            (block.thinking, block.signature) for block in blocks if isinstance(block, claude_agent_sdk.ThinkingBlock)
        ],
        streamed="".join(
            message.event.get("delta", {}).get("text", "") for message in seen.of(claude_agent_sdk.StreamEvent)
        ),
        models=[message.model for message in said],
        tools=[(block.is_error, block.content) for block in tools],
        hooks=[(message.subtype, message.hook_event_name) for message in seen.of(claude_agent_sdk.HookEventMessage)],
        results=[(one.subtype, one.is_error, one.api_error_status, one.result) for one in results],
        calls=seen.calls,
        answers=seen.answers,
        course=[event for message in seen.messages for event in _event(_wire(message))],
        structured=[one.structured_output for one in results],
        sessions=[one.session_id for one in results],
        failed=seen.error is not None,
    )


def _wire(message: Any) -> Mapping[str, Any]:
    """Convert a message of claude-agent-sdk back to the fields of the wire that `_event` reads."""
    if isinstance(message, claude_agent_sdk.SystemMessage):
        return {**message.data}
    if isinstance(message, claude_agent_sdk.ResultMessage):
        return {"type": "result"}
    if isinstance(message, claude_agent_sdk.AssistantMessage):
        texts = [block for block in message.content if isinstance(block, claude_agent_sdk.TextBlock)]
        content = [{"type": "text", "text": block.text} for block in texts]
        return {
            "type": "assistant",
            "parent_tool_use_id": message.parent_tool_use_id,
            "message": {"content": content},
        }
    return {"type": "other"}


def of_host(host: Host | Talk) -> Account:
    """The outcome of a conversation through `open_process` or a session."""

    def of(kind: Any) -> list[Any]:
        return [message for message in host.messages if isinstance(message, kind)]

    said = of(claude_wire.AssistantMessage)
    blocks = [block for message in said for block in message.content]
    tools = [block for message in of(claude_wire.UserMessage) for block in message.tool_results]
    hooks = of((claude_wire.messages.HookStartedMessage, claude_wire.messages.HookResponseMessage))
    results = of(claude_wire.ResultMessage)
    return Account(
        place=host.place,
        texts=[block.text for block in blocks if isinstance(block, claude_wire.TextBlock)],
        thoughts=[
            (block.thinking, block.signature) for block in blocks if isinstance(block, claude_wire.ThinkingBlock)
        ],
        streamed="".join(message.text_delta or "" for message in of(claude_wire.StreamEvent)),
        models=[message.model for message in said],
        tools=[(block.is_error, _plain(block.content)) for block in tools],
        hooks=[(message.subtype, message.hook_event) for message in hooks],
        results=[(one.subtype, one.is_error, one.api_error_status or None, one.result) for one in results],
        calls=host.calls,
        answers=getattr(host, "answers", []),
        course=[event for message in host.messages for event in _event(message.to_dict())],
        structured=[one.structured_output for one in results],
        sessions=[one.session_id for one in results],
        failed=host.error is not None,
    )


def _plain(content: Any) -> Any:
    """Convert typed content blocks to plain dicts."""
    return [block.to_dict() for block in content] if isinstance(content, list) else content
