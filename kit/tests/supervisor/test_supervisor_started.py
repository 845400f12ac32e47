"""A supervisor reports how it started the CLI of a session."""

from __future__ import annotations

from typing import Any

import pytest

from children import ASKS
from claude_wire_kit.supervisor.disk.record import MAX_STARTED_CHARS, Record
from claude_wire_kit.supervisor.frames import Started


def started(argv: list[str], initialize: dict[str, Any]) -> Started | None:
    return Record(id="s", name=None, created=0.0, argv=argv, cwd="/", initialize=initialize).started


def test_a_record_knows_which_hooks_and_servers_its_cli_calls_and_whether_it_asks() -> None:
    matchers = [{"matcher": "Bash", "hookCallbackIds": ["a", "b"]}, {"hookCallbackIds": ["c"]}]
    initialize = {"hooks": {"PreToolUse": matchers[:1], "Stop": matchers[1:]}, "sdkMcpServers": ["calc"]}
    assert started(["claude", *ASKS], initialize) == Started(hooks=["a", "b", "c"], mcp=["calc"], asks=True)
    assert started(["claude"], {}) == Started()
    assert started(["claude", "--permission-prompt-tool", "mcp__a__b"], {}) == Started()
    assert started(["claude", *ASKS, "--permission-prompts", "none"], {}) == Started()


@pytest.mark.parametrize(
    "initialize", [{"hooks": 5}, {"hooks": {"Stop": [{}]}}, {"sdkMcpServers": ["x" * (MAX_STARTED_CHARS + 1)]}]
)
def test_what_cannot_be_read_or_is_too_long_is_not_told(initialize: dict[str, Any]) -> None:
    assert started(["claude"], initialize) is None
