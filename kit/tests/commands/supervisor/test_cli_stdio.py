"""``claude-wire supervisor stdio`` connects standard input and output to the supervisor's socket."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")
if sys.platform != "linux":
    pytest.skip("a supervisor needs Linux", allow_module_level=True)

from screens import AtTerminal
from supervised import SECONDS, Commands


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Commands]:
    with Commands(tmp_path / "h") as commands:
        yield commands


def talk(process: subprocess.Popen[bytes], *messages: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    process.stdin.flush()


def until(process: subprocess.Popen[bytes], kind: str) -> list[Any]:
    assert process.stdout is not None
    got: list[Any] = []
    while not got or got[-1]["type"] != kind:
        line = process.stdout.readline()
        assert line, got
        got.append(json.loads(line))
    return got


def test_a_client_on_standard_streams_drives_a_session_to_its_end(supervisor: Commands) -> None:
    supervisor.serve()
    id = supervisor.create()
    with supervisor.start("supervisor", "stdio", stdin=subprocess.PIPE) as client:
        talk(client, {"list": {}}, {"attach": id, "role": "driver"})
        assert until(client, "supervisor_attached")[0]["sessions"][0]["id"] == id
        content = json.dumps({"ask": "q1", "stderr": "a warning"})
        talk(client, {"type": "user", "uuid": "p1", "message": {"role": "user", "content": content}})
        until(client, "control_request")
        interrupt = {"type": "control_request", "request_id": "i1", "request": {"subtype": "interrupt"}}
        answer = {"subtype": "success", "request_id": "q1", "response": {"behavior": "allow"}}
        talk(client, interrupt, {"type": "control_response", "response": answer})
        got = until(client, "result")
        assert {"i1"} == {one["response"]["request_id"] for one in got if one["type"] == "control_response"}
        talk(client, {"type": "supervisor_end_input"})
        ended = until(client, "supervisor_ended")[-1]
        assert (ended["exit_code"], ended["stderr"]) == (0, "a warning")
        _, err = client.communicate(timeout=SECONDS)
    assert (client.returncode, err) == (0, b"")


def test_with_an_id_the_lines_come_at_once_as_they_are(supervisor: Commands) -> None:
    supervisor.serve()
    id = supervisor.create("--name", "mine", lines=2000)
    journal = supervisor.folder / "sessions" / id / "parts" / "000001" / "stdout.ndjson"
    with supervisor.start("supervisor", "stdio", "mine", stdin=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert json.loads(client.stdout.readline())["role"] == "viewer"
        lines = []
        while not lines or b'"type": "result"' not in lines[-1]:
            line = client.stdout.readline()
            lines += [] if line.startswith(b'{"type":"supervisor_') else [line]
        assert b"".join(lines) == journal.read_bytes()
        client.communicate(timeout=SECONDS)
    assert client.returncode == 0


def test_the_end_of_the_input_lets_the_session_go_on(supervisor: Commands) -> None:
    supervisor.serve()
    supervisor.create("--name", "mine")
    with supervisor.start("supervisor", "stdio", "mine", "--drive", stdin=subprocess.PIPE) as client:
        until(client, "supervisor_attached")
        client.communicate(timeout=SECONDS)
    assert client.returncode == 0
    (session,) = supervisor.sessions()
    assert session["life"] in ("starting", "idle")
    assert not session["driver"]


def test_a_client_that_is_gone_is_let_go(supervisor: Commands) -> None:
    supervisor.serve()
    supervisor.create("--name", "mine", lines=2000)
    with supervisor.start("supervisor", "stdio", "mine", stdin=subprocess.PIPE) as client:
        assert client.stdout is not None
        client.stdout.readline()
        client.stdout.close()
        assert client.wait(SECONDS) == 0


def test_what_cannot_be_is_said_on_standard_error(supervisor: Commands) -> None:
    assert "no supervisor is running" in supervisor.refused("supervisor", "stdio")
    supervisor.serve()
    assert "there is no session 'x'" in supervisor.refused("supervisor", "stdio", "x")
    assert "need an ID" in supervisor.refused("supervisor", "stdio", "--drive")
    with AtTerminal([sys.executable, "-m", "claude_wire_kit", "supervisor", "stdio"], supervisor.environment) as screen:
        screen.until("claude-wire supervisor attach ID")
        assert screen.process.wait(SECONDS) == 2
