"""Both official SDKs through the tap: they see the same as without it, and the recording has every byte."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions

import driven_agent
from accounts import of_sdk
from agent_conversations import HOSTS
from checks import CHECKS
from claude_wire.testing import Recording
from places import CLI, Place
from same import comparable
from tapped import install_tap
from through_sdk import CONVERSATIONS, DEADLINE, SDK, hold

#: Conversations with deltas, tools, hooks, MCP servers and interrupts.
HELD: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "turns": ({}, ["echo a", "echo b"]),
    "deltas": ({"partial": True}, ["stream one two three"]),
    "permission": ({"permission": {"Bash": {"behavior": "allow"}}}, ["bash ls"]),
    "hooks": ({"hooks": {"PreToolUse": {}, "Stop": {}}, "permission": {"Bash": {"behavior": "allow"}}}, ["bash ls"]),
    "mcp": ({"mcp": True}, ["add 2 3"]),
    "interrupt": (
        {"partial": True},
        [("send", "forever"), ("delta", "working"), ("interrupt", None), ("result", None), "cleaned"],
    ),
    "large": ({}, ["echo " + "x" * 20_000]),
}


class Witness:
    """A CLI or an agent that copies its input and output, and a tap that runs and records it."""

    def __init__(self, folder: Path, cli: str | Path, *options: str) -> None:
        self._seen = folder / "seen"
        self._seen.mkdir(parents=True)
        path = folder / "witness"
        inner = shlex.quote(str(cli))
        path.write_text(
            f'#!/bin/sh\n/usr/bin/tee {self._seen}/in.$$ | {inner} "$@" | /usr/bin/tee {self._seen}/out.$$\n'
        )
        path.chmod(0o755)
        self._recorded = folder / "recorded"
        self.tap = install_tap(folder / "tap", str(path), self._recorded, *options)

    def check(self) -> list[Recording]:
        """Check that the recording equals the copied input and output, byte for byte. Return the recording."""
        recordings = load_ended(self._recorded)
        assert recordings
        for direction in "out", "in":
            seen = {path.read_bytes() for path in self._seen.glob(f"{direction}.*")}
            for recording in recordings:
                assert recording.files[f"std{direction}.ndjson"] in seen
            assert recordings[0].files[f"std{direction}.ndjson"]
        return recordings


def load_ended(folder: Path) -> list[Recording]:
    """Load all recordings after their taps have ended. A tap may end after its host."""
    folders = [*folder.iterdir()]
    deadline = time.monotonic() + DEADLINE
    for path in (one / "exit.json" for one in folders):
        while not (path.exists() and path.stat().st_size):
            assert time.monotonic() < deadline, f"{path} is missing"
            time.sleep(0.02)
    return [Recording.load(path) for path in folders]


@pytest.mark.parametrize("host", sorted(HOSTS))
@pytest.mark.parametrize("name", HELD)
def test_an_sdk_and_an_agent_through_the_tap(tmp_path: Path, host: str, name: str) -> None:
    agent = tmp_path / "agent"
    agent.write_text(f"#!{sys.executable}\n{Path(driven_agent.__file__).read_text()}")
    agent.chmod(0o755)
    options, acts = HELD[name]
    done: list[tuple[str, Any]] = []
    for act in acts:
        done += [("send", act), ("result", None)] if isinstance(act, str) else [act]
    conversation = {"options": options, "acts": [*done, ("end", None)]}
    witness = Witness(tmp_path / "tapped", agent)
    through = HOSTS[host](Path(witness.tap), conversation)
    bare = HOSTS[host](agent, conversation)
    assert through["error"] is None
    assert through["seen"] == bare["seen"]
    assert through["calls"] == bare["calls"]
    [recording] = witness.check()
    assert recording.stdin
    assert {json.loads(step.data)["type"] for step in recording.steps} >= {"control_request", "user", "result"}


class Tapped(SDK):
    """Run claude-agent-sdk with a tap in place of its CLI."""

    cli: str = ""

    def options(self, **more: Any) -> ClaudeAgentOptions:
        return super().options(**more, cli_path=self.cli)


@pytest.mark.parametrize("name", ["simple", "permission", "mcp", "interrupt"])
def test_the_real_cli_through_the_tap(name: str, tmp_path: Path, places: Callable[[str], Place]) -> None:
    stock, tapped = SDK(places("stock")), Tapped(places("tapped"))
    witness = Witness(tmp_path / "witness", CLI)
    tapped.cli = witness.tap

    async def both() -> None:
        await hold(CONVERSATIONS[name], stock)
        await hold(CONVERSATIONS[name], tapped)

    anyio.run(both)
    for sdk in stock, tapped:
        CHECKS[name](of_sdk(sdk))
    assert comparable(tapped.seen.messages, tapped.place) == comparable(stock.seen.messages, stock.place)
    assert comparable(tapped.seen.calls, tapped.place) == comparable(stock.seen.calls, stock.place)
    assert type(tapped.seen.error) is type(stock.seen.error)
    witness.check()


def test_the_real_cli_through_a_tap_that_redacts(tmp_path: Path, places: Callable[[str], Place]) -> None:
    tapped = Tapped(places("tapped"))
    tapped.cli = install_tap(tmp_path / "tap", str(CLI), tmp_path / "recorded", "--redact")
    anyio.run(hold, CONVERSATIONS["permission"], tapped)
    CHECKS["permission"](of_sdk(tapped))
    [recording] = load_ended(tmp_path / "recorded")
    kinds = [json.loads(step.data)["type"] for step in recording.steps]
    assert {"system", "assistant", "user", "result", "control_request", "control_response"} <= {*kinds}
    assert "masked" not in kinds
