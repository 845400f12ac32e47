"""Run `make drift` against the real CLI, the typings of the TypeScript SDK, and an agent built with this library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from folders import ROOT
from places import CLI

TYPINGS = Path(__file__).parent / "typescript/node_modules/@anthropic-ai/claude-agent-sdk/sdk.d.ts"
#: Seconds in which all scenarios together must end.
DEADLINE = 600


def drift(cli: Path, *arguments: str) -> dict[str, Any]:
    """Run the drift command on a CLI. Return its JSON report."""
    command = [sys.executable, "-m", "drift", str(cli), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_nothing_that_the_bundled_cli_and_the_typings_say_is_unknown() -> None:
    found = drift(CLI, "--typings", str(TYPINGS))
    assert (found["drift"], found["failed"]) == ([], {})
    assert [source for source in found["sources"] if source["short"]] == []
    assert {"assistant", "system/init", "result/success", "control_request/can_use_tool"} <= found["kinds"].keys()


def test_an_agent_of_ours_says_nothing_unknown(tmp_path: Path) -> None:
    agent = tmp_path / "echo"
    echo = ROOT / "examples" / "echo.py"
    agent.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m claude_wire_kit agent "{echo}" "$@"\n')
    agent.chmod(0o700)
    found = drift(agent)
    assert [one for one in found["drift"] if one["change"] == "new"] == []
    assert found["kinds"]["result/success"] > 10
    # The agent has no --help and writes no transcripts, so the report must list both sources as short.
    assert {"flags in the help", "records of transcripts"} <= {one["name"] for one in found["sources"] if one["short"]}
