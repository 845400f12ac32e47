"""Kill many clients one after another. Together they take each line once, and each question gets one answer.

The test kills 60 clients, or 1,000 with ``CLAUDE_WIRE_LONG=1``. ``pytest -s`` prints the totals.
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
from claude_wire.messages import HookCallbackMatcher, InitializeRequest
from claude_wire_kit.supervisor import connect, spec_of
from long_tests import LONG
from ssh import SSHD, ssh_command
from supervised import Commands, journal

KILLS = 1000 if LONG else 60
SECONDS = 5400 if LONG else 240
#: The minimum number of each kind of question in the long test. The short test needs at least one of each.
LEAST = {"permission questions": 200, "hooks": 100, "MCP calls": 50}
ATTACH = [sys.executable, "-m", "claude_wire_kit", "supervisor", "stdio"]


def by_ssh(folder: Path, supervised: Path) -> list[str]:
    """Return the command that attaches to a supervisor over ssh."""
    return [*ssh_command(folder, {"CLAUDE_WIRE_SUPERVISOR": os.fspath(supervised)}), shlex.join(ATTACH)]


@pytest.mark.parametrize(
    "way",
    [
        "socket",
        "command",
        pytest.param("ssh", marks=pytest.mark.skipif(SSHD is None, reason="there is no SSH server: see `make sshd`")),
    ],
)
def test_clients_that_are_killed_lose_nothing_and_repeat_nothing(tmp_path: Path, way: str) -> None:
    kills = KILLS if way == "socket" or LONG else KILLS // 3
    with Commands(tmp_path / "h") as supervisor:
        supervisor.serve()
        hooks = {"PreToolUse": [HookCallbackMatcher(hookCallbackIds=["PreToolUse::guard"])]}
        initialize = InitializeRequest(hooks=hooks, sdkMcpServers=["tools"])
        argv = [sys.executable, "-B", busy_agent.__file__, "--permission-prompt-tool", "stdio"]
        id = anyio.run(connect(supervisor.folder).start, spec_of(argv, initialize=initialize)).id
        log = tmp_path / "log"
        command = [] if way == "socket" else ATTACH if way == "command" else by_ssh(tmp_path, supervisor.folder)
        program = [
            sys.executable,
            killed_clients.__file__,
            os.fspath(supervisor.folder),
            id,
            os.fspath(log),
            str(kills),
            "1",
        ]
        ended = subprocess.run(
            [*program, *command],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=supervisor.environment,
            check=False,
        )
        noted = [line.split() for line in log.read_text().splitlines()]
        assert (ended.returncode, ended.stderr) == (0, ""), [words for words in noted if words[0] == "wrong"]
        died = json.loads(ended.stdout)
        written = [json.loads(line) for line in journal(supervisor.folder, id, "stdout.ndjson").splitlines()]
        sent = [json.loads(line) for line in journal(supervisor.folder, id, "stdin.ndjson").splitlines()]
    check_output(noted, written)
    check_input(noted, written, sent)
    found = totals(written, sent)
    print(f"\nclients killed over the {way}: {sum(died.values()):,}; {died}; {found}")
    assert died == dict.fromkeys(killed_clients.POINTS, kills // len(killed_clients.POINTS))
    assert {name: found[name] for name in LEAST if found[name] < (LEAST[name] if LONG else 1)} == {}
    prompts = sum(died[point] for point in died if point.startswith("prompt"))
    assert found["prompts while busy"] >= (prompts // 2 if LONG else 1)


def check_output(noted: list[list[str]], written: list[dict[str, Any]]) -> None:
    """Check that the clients took each message once, in order, and noted the number of its line."""
    assert [words for words in noted if words[0] == "wrong"] == []
    taken = [(int(words[1]), words[3]) for words in noted if words[0] == "took"]
    messages = [(number, line) for number, line in enumerate(written, 1) if not line["type"].startswith("control_")]
    assert taken == [(number, line["uuid"]) for number, line in messages]


def check_input(noted: list[list[str]], written: list[dict[str, Any]], sent: list[dict[str, Any]]) -> None:
    """Check that each question has one answer from any client, and that each prompt arrived once and has one result."""
    asked = [line["request_id"] for line in written if line["type"] == "control_request"]
    answers = {line["response"]["request_id"]: line["response"] for line in sent if line["type"] == "control_response"}
    answered = Counter(line["response"]["request_id"] for line in sent if line["type"] == "control_response")
    assert answered == Counter(asked)
    said = [answer["response"] for answer in answers.values()]
    assert len({one["behavior"] for one in said if "behavior" in one}) == 2, "all answers are of one client"
    assert len({one["reason"] for one in said if "reason" in one}) > 2, "the hooks are all of the same clients"
    prompts = [line["uuid"] for line in sent if line["type"] == "user"]
    assert sorted(prompts) == sorted(words[1] for words in noted if words[0] == "prompt")
    assert [line["user_message_uuids"] for line in written if line["type"] == "result"] == [[uuid] for uuid in prompts]


def totals(written: list[dict[str, Any]], sent: list[dict[str, Any]]) -> dict[str, int]:
    """Count the lines and questions of each kind."""
    kinds = Counter(line["request_id"].partition("-")[0] for line in written if line["type"] == "control_request")
    return {
        "lines": len(written),
        "deltas": sum(line["type"] == "stream_event" for line in written),
        "permission questions": kinds["may"],
        "hooks": kinds["hook"],
        "MCP calls": kinds["mcp"],
        "answers": sum(line["type"] == "control_response" for line in sent),
        "prompts": sum(line["type"] == "user" for line in sent),
        "prompts while busy": sum(line["type"] == "result" and line["result"] == "busy" for line in written),
    }
