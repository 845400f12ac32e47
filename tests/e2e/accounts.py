"""What a conversation must have shown, whichever library held it.

So two that went wrong alike are not taken for right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import claude_agent_sdk
from places import Place
from scripts import DELTAS, HUGE, UNICODE
from through_process import Host
from through_sdk import SDK

import claude_wire

__all__ = ["CHECKS", "Account", "of_host", "of_sdk"]


@dataclass(frozen=True)
class Account:
    """The outcome of one conversation, as plain values."""

    place: Place
    #: Of text blocks, of thinking blocks (text and signature), and of text deltas, joined.
    texts: list[str]
    thoughts: list[tuple[str, str | None]]
    streamed: str
    #: The model of each assistant message.
    models: list[str]
    #: Of each tool result: whether it is an error, and its content.
    tools: list[tuple[bool | None, Any]]
    #: Of each hook message: its subtype, and the event that the hook was for.
    hooks: list[tuple[str, str]]
    #: Of each result: subtype, is_error, api_error_status, text.
    results: list[tuple[str, bool, int | None, str | None]]
    #: Of callbacks and tools of the host.
    calls: list[Any]
    #: Whether the end was an error.
    failed: bool


def of_sdk(sdk: SDK) -> Account:
    """What claude-agent-sdk showed."""
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
        failed=seen.error is not None,
    )


def of_host(host: Host) -> Account:
    """What `open_process` showed."""

    def of(kind: Any) -> list[Any]:
        return [message for message in host.messages if isinstance(message, kind)]

    said = of(claude_wire.AssistantMessage)
    blocks = [block for message in said for block in message.content]
    tools = [block for message in of(claude_wire.UserMessage) for block in message.tool_results]
    hooks = of((claude_wire.HookStartedMessage, claude_wire.HookResponseMessage))
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
        failed=host.error is not None,
    )


def _plain(content: Any) -> Any:
    """Typed blocks as the objects that they were made of."""
    return [block.to_dict() for block in content] if isinstance(content, list) else content


# --- The checks, by the names of the conversations --------------------------------------------------------------------


def simple(seen: Account) -> None:
    assert seen.texts == ["Hello, world."]
    assert seen.results == [("success", False, None, "Hello, world.")]


def partial(seen: Account) -> None:
    simple(seen)
    assert seen.streamed == "Hello, world."


def thinking(seen: Account) -> None:
    assert seen.thoughts == [("First this, then that.", "c2lnbmF0dXJl")]
    assert seen.texts == ["Done thinking."]


def tool(seen: Account) -> None:
    [(_, content)] = seen.tools
    assert "Another note." in content


def permission(seen: Account) -> None:
    assert [call[0] for call in seen.calls] == ["Bash", "Bash", "Write"]
    assert (seen.place.work / "allowed").exists()
    assert not (seen.place.work / "refused").exists()
    assert (seen.place.work / "changed.txt").read_text() == "as the host wanted it"
    assert seen.tools[1] == (True, "Not today")


def hooks(seen: Account) -> None:
    names = [call[0] for call in seen.calls]
    assert names == ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PreToolUse", "Stop"]
    assert [is_error for is_error, _ in seen.tools] == [False, True]


def command_hooks(seen: Account) -> None:
    assert {kind for kind, _ in seen.hooks} == {"hook_started", "hook_response"}
    assert {event for _, event in seen.hooks} == {"PreToolUse", "PostToolUse"}


def mcp(seen: Account) -> None:
    assert seen.calls == [("add", {"a": 20, "b": 22}), ("fail", {})]
    assert seen.tools[0][1] == [{"type": "text", "text": "42"}]


def interrupt(seen: Account) -> None:
    assert [result[0] for result in seen.results] == ["error_during_execution", "success"]
    assert seen.texts == ["One two ", "Hello again."]


def set_model(seen: Account) -> None:
    assert seen.models == ["claude-sonnet-4-5", "claude-haiku-4-5"]


def queued(seen: Account) -> None:
    # The two that waited were put to the model together.
    assert seen.texts == ["Slowly.", "Hello again."]
    assert seen.place.api is not None
    [request] = seen.place.api.asked("again")
    assert all(f"[[{name}]]" in str(request.body["messages"]) for name in ("slow", "simple", "again"))


def max_turns(seen: Account) -> None:
    assert [result[0] for result in seen.results] == ["error_max_turns"]
    assert seen.failed


def unicode(seen: Account) -> None:
    # The halves that met are one character; those that are alone stay alone.
    whole = "".join(UNICODE).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert "\ud83d" in whole
    assert seen.streamed == "".join(UNICODE)
    assert seen.texts == [whole] == [seen.results[0][3]]


def long(seen: Account) -> None:
    assert seen.streamed == "".join(f"word {number} " for number in range(DELTAS))
    assert seen.texts == [seen.streamed]


def huge(seen: Account) -> None:
    assert seen.streamed == "x" * HUGE
    assert seen.texts == [seen.streamed]


def huge_at_once(seen: Account) -> None:
    assert seen.streamed == "y" * HUGE
    assert seen.texts == [seen.streamed]


def failed(status: int) -> Callable[[Account], None]:
    def check(seen: Account) -> None:
        [(_, is_error, api_error_status, _)] = seen.results
        assert is_error
        assert api_error_status == status
        assert seen.failed

    return check


def recovered(text: str) -> Callable[[Account], None]:
    def check(seen: Account) -> None:
        assert seen.texts == [text]
        assert seen.results == [("success", False, None, text)]
        assert not seen.failed

    return check


CHECKS: dict[str, Callable[[Account], None]] = {
    "simple": simple,
    "partial": partial,
    "thinking": thinking,
    "tool": tool,
    "permission": permission,
    "hooks": hooks,
    "command_hooks": command_hooks,
    "mcp": mcp,
    "interrupt": interrupt,
    "set_model": set_model,
    "queued": queued,
    "three_in_a_stream": queued,
    "max_turns": max_turns,
    "unicode": unicode,
    "long": long,
    "huge": huge,
    "huge_at_once": huge_at_once,
    "error_400": failed(400),
    "error_401": failed(401),
    "error_429": recovered("After the limit."),
    "error_500": failed(500),
    "overloaded": recovered("At the second try."),
}
