"""A supervisor on a full file system of 8 MiB reports the error, keeps its journal, and continues."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import full_disk
from folders import ROOT

#: The command that creates a mount namespace, in which this user may mount a private file system.
NAMESPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
SECONDS = 120


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.fspath, [*sys.path, ROOT / "tests" / "support"]))}
    return subprocess.run(
        [*NAMESPACE, *command], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_on_a_full_disk_nothing_is_lost_that_counted_and_a_session_goes_on_when_there_is_room(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    try:
        tried = run("mount", "-t", "tmpfs", "tmpfs", os.fspath(tmp_path / "disk"))
    except FileNotFoundError:
        pytest.skip("there is no program unshare")
    if tried.returncode:
        pytest.skip(f"no file system can be mounted here: {tried.stderr.strip()}")
    ended = run(sys.executable, "-B", full_disk.__file__, os.fspath(tmp_path / "disk"))
    assert (ended.returncode, ended.stderr) == (0, "")
    blocked, stopped = json.loads(ended.stdout)

    no_room = "No space left on device"
    assert blocked.pop("blocked") == f"the journal cannot be written: {no_room}"
    assert blocked.pop("refused") == f"the journal cannot be written: {no_room}"
    refused = blocked.pop("create")
    assert (refused["type"], refused["error"]) == ("supervisor_error", "system")
    assert refused["message"].startswith(no_room)
    assert blocked == {
        "folders": [],
        "life": ["running"],
        "results": [["p1"], ["p2"], ["p3"]],
        "prompts": ["p1", "p2", "p3"],
        "accepted": [1, 2, 4],
    }

    code, said = stopped.pop("start")
    assert code == 2
    assert no_room in said
    assert stopped == {
        "stopped": {"waits": "idle", "ends": "ended"},
        "code": 0,
        "again": ["lost", 4],
        "resumed": "supervisor_session",
    }
