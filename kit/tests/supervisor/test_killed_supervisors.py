"""Kill a supervisor at random moments, while its CLI runs tools.

The test kills it 6 times, or 100 times with ``CLAUDE_WIRE_LONG=1``.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

import toolsmith
from claude_wire.testing import Recording
from supervised import SECONDS, Commands, Talker

KILLS = 100 if os.environ.get("CLAUDE_WIRE_LONG") else 6


def test_no_tool_begins_once_the_supervisor_was_killed_and_what_it_leaves_is_reported(tmp_path: Path) -> None:
    chance = random.Random(7)
    log = tmp_path / "tools"
    environment = {**os.environ, "TOOL_LOG": os.fspath(log)}
    spec = {
        "argv": [sys.executable, "-B", toolsmith.__file__],
        "cwd": os.fspath(tmp_path),
        "env": environment,
    }
    id, line = "", 0
    with Commands(tmp_path / "h") as supervisor:
        pid = supervisor.serve()
        for n in range(KILLS):
            with Talker(tmp_path / "h") as client:
                resume = {"resume": id, "env": environment, "after": {"id": id, "epoch": 1, "line": line}}
                answer = client.ask({**(resume if id else {"create": spec}), "role": "driver"})
                assert answer["type"] == "supervisor_attached", answer
                id = answer["id"]
                client.send(prompt(f"p{n}", "tools"))
                client.until("assistant")
                # the supervisor may be killed at any moment, so the test does not depend on this time
                time.sleep(chance.random() * 0.15)
                watched = os.pidfd_open(pid)
                os.kill(pid, signal.SIGKILL)
                assert select.select([watched], [], [], SECONDS)[0]
                gone = time.monotonic_ns()
                os.close(watched)
                while client.line():  # read the lines that were already sent
                    pass
            pid = supervisor.serve()
            output = whole(tmp_path / "h" / "sessions" / id / "parts")[line:]
            assert output[: len(client.lines)] == client.lines
            line += len(output)
            assert reported(tmp_path / "h", id) == (line, f"p{n}", calls(output) - results(output))
            began, ran = tools(log)
            assert max(began.values()) < gone
            assert ran <= set(began)
        with Talker(tmp_path / "h") as client:
            client.ask({"resume": id, "role": "driver", "env": environment})
            client.send(prompt("last", "hi"))
            assert client.until("result")["user_message_uuids"] == ["last"]


def prompt(uuid: str, text: str) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}


def contents(lines: list[bytes], kind: str) -> list[dict[str, Any]]:
    messages: list[Any] = []
    for line in lines:
        with suppress(ValueError):  # the last line may be cut off
            messages.append(json.loads(line))
    return [message["message"]["content"][0] for message in messages if message["type"] == kind]


def calls(lines: list[bytes]) -> set[str]:
    return {block["id"] for block in contents(lines, "assistant")}


def results(lines: list[bytes]) -> set[str]:
    return {block["tool_use_id"] for block in contents(lines, "user")}


def reported(folder: Path, id: str) -> tuple[int, str, set[str]]:
    """Ask the next supervisor for the number of the last line, and for the prompt and calls without a result."""
    with Talker(folder) as client:
        answer = client.ask({"attach": id})
    ended = answer["ended"]
    assert ended["exit_code"] is None
    assert ended["unfinished"] == "in the middle of a turn"
    (owed,) = ended["owed"]
    return answer["line"], owed, set(ended["calls"])


def whole(parts: Path) -> list[bytes]:
    """Return the lines of all parts. Check that each part loads as a recording."""
    lines: list[bytes] = []
    for part in sorted(parts.iterdir()):
        kept = (part / "stdout.ndjson").read_bytes()
        assert Recording.load(part).stdout == kept
        lines += kept.splitlines(keepends=True)
    return lines


def tools(log: Path) -> tuple[dict[str, int], set[str]]:
    """Read the fake CLI's log. Return when each tool began, and the ids of the tools that ran."""
    rows = [line.split() for line in log.read_text().splitlines()]
    began = {id: int(moment) for what, id, moment in rows if what == "begins"}
    return began, {id for what, id, _ in rows if what == "runs"}
