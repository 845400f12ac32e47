"""On the real CLI, a `Session` gives the same messages, calls and answers as the client of claude-agent-sdk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from claude_agent_sdk._internal.message_parser import parse_message

import sdk_callbacks
import sdk_runs
import session_callbacks
import session_runs
import through_sdk
import through_session
from accounts import of_host, of_sdk
from checks import CHECKS
from correspondence import differences
from places import Place
from same import comparable
from through_sdk import SDK
from through_session import Talk

THEIRS = {**through_sdk.CONVERSATIONS, **sdk_callbacks.CONVERSATIONS, **sdk_runs.CONVERSATIONS}
OURS = {**through_session.CONVERSATIONS, **session_callbacks.CONVERSATIONS, **session_runs.CONVERSATIONS}


def as_the_sdk_reads_them(messages: list[Any]) -> list[Any]:
    """Parse the lines of these messages with claude-agent-sdk, and check that both have the same fields."""
    read = []
    for message in messages:
        parsed = parse_message(message.to_dict())
        # The SDK does not pass unknown messages to its users.
        if parsed is not None:
            assert differences(parsed, message) == []
            read.append(parsed)
    return read


def test_every_conversation_is_held_through_both() -> None:
    assert THEIRS.keys() == OURS.keys() == CHECKS.keys()


@pytest.mark.parametrize("name", OURS)
def test_the_same_messages_calls_and_answers_as_with_claude_agent_sdk(
    name: str, places: Callable[[str], Place]
) -> None:
    # Both names have the same length, because the CLI counts the characters of a path.
    sdk = SDK(places("sdk"))
    talk = Talk(places("own"))

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(through_sdk.hold, THEIRS[name], sdk)
            tasks.start_soon(through_session.hold, OURS[name], talk)

    anyio.run(both)
    CHECKS[name](of_sdk(sdk))
    CHECKS[name](of_host(talk))
    ours = as_the_sdk_reads_them(talk.messages)
    assert comparable(ours, talk.place) == comparable(sdk.seen.messages, sdk.place)
    assert comparable(talk.calls, talk.place) == comparable(sdk.seen.calls, sdk.place)
    assert comparable(talk.answers, talk.place) == comparable(sdk.seen.answers, sdk.place)
    assert (talk.error is None) == (sdk.seen.error is None)


@pytest.mark.parametrize(
    "name", ["mcp", "interrupt", "permission_open", "hooks_decide", "background_agent", "max_turns", "requests"]
)
def test_on_trio_too(name: str, place: Place) -> None:
    talk = Talk(place)
    anyio.run(through_session.hold, OURS[name], talk, backend="trio")
    CHECKS[name](of_host(talk))
