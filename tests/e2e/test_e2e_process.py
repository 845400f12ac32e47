"""On the real CLI, each message of `open_process` is the same as what claude-agent-sdk reads from that line."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from claude_agent_sdk._internal.message_parser import parse_message

from accounts import of_host
from checks import CHECKS
from claude_wire import decode
from correspondence import NOT_GIVEN, differences
from places import Place
from through_process import CONVERSATIONS, Host, hold, recording_cli


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_field_is_what_claude_agent_sdk_reads_from_the_same_line(name: str, place: Place) -> None:
    program, copy = recording_cli(place)
    host = Host(place, program)
    anyio.run(hold, name, host)
    CHECKS[name](of_host(host))
    # Not splitlines(): a JSON string may contain U+2028 and other characters that it splits at.
    *lines, last = copy.read_bytes().split(b"\n")
    assert last == b""
    assert len(lines) == len(host.messages)
    for line, ours in zip(lines, host.messages, strict=True):
        plain = json.loads(line)
        # The typed message also keeps every field of the line.
        assert ours.to_dict() == plain
        theirs = parse_message(plain)
        if theirs is None:
            assert isinstance(ours, NOT_GIVEN)
        else:
            assert differences(theirs, ours) == []


@pytest.mark.parametrize(
    "change",
    [
        {"message": {"model": "other", "content": [{"type": "text", "text": "Hello"}]}},
        {"message": {"model": "m", "content": [{"type": "text", "text": "Bye"}]}},
        {"message": {"model": "m", "content": []}},
        {"message": {"model": "m", "content": [{"type": "tool_use", "id": "i", "name": "n", "input": {}}]}},
        {"message": {"model": "m", "content": [{"type": "text", "text": "Hello"}], "usage": {"input_tokens": 1}}},
        {"parent_tool_use_id": "t"},
        {"type": "user"},
    ],
)
def test_any_difference_is_found(change: dict[str, Any]) -> None:
    plain: dict[str, Any] = {
        "type": "assistant",
        "message": {"model": "m", "content": [{"type": "text", "text": "Hello"}]},
        "parent_tool_use_id": None,
    }
    ours = decode(json.dumps(plain).encode())
    assert differences(parse_message(plain), ours) == []
    assert differences(parse_message({**plain, **change}), ours) != []


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("name", ["simple", "permission", "mcp", "interrupt", "max_turns"])
def test_with_nothing_between_host_and_cli(name: str, backend: str, place: Place) -> None:
    host = Host(place)
    anyio.run(hold, name, host, backend=backend)
    CHECKS[name](of_host(host))
