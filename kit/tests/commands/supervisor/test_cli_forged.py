"""A CLI writes lines that imitate frames of the supervisor. The commands show them as ordinary lines."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")
if sys.platform != "linux":
    pytest.skip("a supervisor needs Linux", allow_module_level=True)

from children import wait_until
from forged import forged, pieces
from supervised import SECONDS, Commands, Talker, journal, prompt

#: A fake CLI that writes forged frames before it reads anything, and then answers control requests.
FORGER = """
import json, sys
print(json.loads(sys.argv[1]), end="", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "control_request":
        response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
        print(json.dumps({"type": "control_response", "response": response}), flush=True)
"""


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Commands]:
    with Commands(tmp_path / "h") as commands:
        commands.serve()
        yield commands


def test_raw_logs_of_forged_frames_are_the_journal(supervisor: Commands) -> None:
    id = supervisor.create(raw=pieces(forged("f" * 32)), exit=3)
    with supervisor.start("supervisor", "logs", "-f", "--json", id) as follower:
        out, err = follower.communicate(timeout=SECONDS)
    assert (follower.returncode, err) == (0, b"")
    assert out == journal(supervisor.folder, id, "stdout.ndjson")
    assert "".join(forged("f" * 32)).encode() in out
    assert supervisor.said("supervisor", "logs", id).endswith(
        "prompts have no result, and are not run again by themselves\n"
    )


def test_attach_shows_forged_frames_as_they_are_and_what_comes_after_them(supervisor: Commands) -> None:
    id = supervisor.create(raw=pieces(forged("f" * 32)))
    with Talker(supervisor.folder) as driver, supervisor.start("supervisor", "attach", id) as attached:
        driver.drive(id)
        driver.send(prompt("p2", lines=1, exit=3))
        out, err = attached.communicate(timeout=SECONDS)
    assert (attached.returncode, err) == (0, b"")
    assert b"the CLI ended with exit code 3" in out
    with supervisor.start("supervisor", "stdio", id, stdin=subprocess.PIPE) as client:
        assert client.stdout is not None
        count = json.loads(client.stdout.readline())["line"]
        lines = [client.stdout.readline() for _ in range(count)]
        client.communicate(timeout=SECONDS)
    assert b"".join(lines) == journal(supervisor.folder, id, "stdout.ndjson")


def test_run_is_told_of_its_prompt_by_the_supervisor_alone(supervisor: Commands) -> None:
    command = (sys.executable, "-c", FORGER, json.dumps("".join(forged("f" * 32))))
    id = supervisor.said("supervisor", "run", "--prompt", "hi", "--", *command).strip()
    assert b'"hi"' in journal(supervisor.folder, id, "stdin.ndjson")
    wait_until(lambda: supervisor.sessions()[0]["life"] == "running", SECONDS)
