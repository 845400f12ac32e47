"""Clients that are killed, hundreds of them: together they take each line once, and each question has one answer.

The short form kills 60, ``CLAUDE_WIRE_LONG=1`` a thousand.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

if sys.platform != "linux":
    pytest.skip("a supervisor needs Linux", allow_module_level=True)
pytest.importorskip("click")
pytest.importorskip("rich")

import busy_agent
import killed_clients
from claude_wire import HookCallbackMatcher, InitializeRequest
from claude_wire.host import connect, spec_of
from long_tests import LONG
from ssh import SSHD, ssh_command
from supervised import Commands, journal

KILLS = 1000 if LONG else 60
SECONDS = 2400 if LONG else 240
ATTACH = [sys.executable, "-m", "claude_wire.cli", "attach"]


def by_ssh(folder: Path, supervised: Path) -> list[str]:
    """The command that attaches through sshd."""
    return [*ssh_command(folder, {"CLAUDE_WIRE_HOST": os.fspath(supervised)}), shlex.join(ATTACH)]


@pytest.mark.parametrize(
    "way",
    [
        "socket",
        "command",
        pytest.param("ssh", marks=pytest.mark.skipif(SSHD is None, reason="there is no SSH server: see `make sshd`")),
    ],
)
def test_clients_that_are_killed_lose_nothing_and_repeat_nothing(tmp_path: Path, way: str) -> None:
    kills = KILLS if way == "socket" or LONG else KILLS // 6
    questions = 4 * kills + 100
    with Commands(tmp_path / "h") as host:
        host.serve()
        hooks = {"PreToolUse": [HookCallbackMatcher(hookCallbackIds=["PreToolUse::guard"])]}
        initialize = InitializeRequest(hooks=hooks, sdkMcpServers=["tools"])
        argv = [sys.executable, "-B", busy_agent.__file__, str(questions)]
        id = anyio.run(connect(host.folder).start, spec_of(argv, initialize=initialize)).id
        log = tmp_path / "log"
        command = [] if way == "socket" else ATTACH if way == "command" else by_ssh(tmp_path, host.folder)
        program = [sys.executable, killed_clients.__file__, os.fspath(host.folder), id, os.fspath(log), str(kills), "1"]
        ended = subprocess.run(
            [*program, *command], capture_output=True, text=True, timeout=SECONDS, env=host.environment, check=False
        )
        noted = [line.split() for line in log.read_text().splitlines()]
        assert (ended.returncode, ended.stderr) == (0, ""), [words for words in noted if words[0] == "wrong"]
        died = json.loads(ended.stdout)
        assert min(died.values()) >= kills // 10
        assert set(died) == set(killed_clients.POINTS)
        written = [json.loads(line) for line in journal(host.folder, id, "stdout.ndjson").splitlines()]
        sent = [json.loads(line) for line in journal(host.folder, id, "stdin.ndjson").splitlines()]
    check_output(noted, written)
    check_input(written, sent)


def check_output(noted: list[list[str]], written: list[dict[str, Any]]) -> None:
    """Each message was taken once, in order, and noted with the number of its line."""
    assert [words for words in noted if words[0] == "wrong"] == []
    taken = [(int(words[1]), words[3]) for words in noted if words[0] == "took"]
    messages = [(number, line) for number, line in enumerate(written, 1) if not line["type"].startswith("control_")]
    assert taken == [(number, line["uuid"]) for number, line in messages]


def check_input(written: list[dict[str, Any]], sent: list[dict[str, Any]]) -> None:
    """Each question has one answer, by whoever it was, and each prompt came once."""
    asked = [line["request_id"] for line in written if line["type"] == "control_request"]
    answered = Counter(line["response"]["request_id"] for line in sent if line["type"] == "control_response")
    assert answered == Counter(asked)
    kinds = Counter(id.partition("-")[0] for id in asked)
    assert kinds["may"] >= 2 * kinds["hook"] > 2 * kinds["mcp"] > 20
    said = [line["response"]["response"] for line in sent if line["type"] == "control_response"]
    assert len({one["behavior"] for one in said if "behavior" in one}) == 2, "all answers are of one client"
    prompts = [line["uuid"] for line in sent if line["type"] == "user"]
    assert sorted(prompts) == sorted(f"p{number}" for number in range(killed_clients.PROMPTS))
