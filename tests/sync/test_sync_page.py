"""The programs of docs/how-to/sync.md run and print the expected text."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import recordings
from claude_wire.testing import Recording, Replay
from folders import ROOT

PAGE = (ROOT / "docs" / "how-to" / "sync.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.S)
#: For each program: the recording that replaces the CLI, and the expected lines of output.
PLAYED = [
    ("01_simple_bidi_init", ["Hello from the fake API. You said: Hello bidi with initialize"]),
    (
        "05_perm_allow_deny",
        ["Two writes. []", " ['Bash']", " ['Bash']", " ['Write']", "finished []", "True finished 0.0005"],
    ),
]


@pytest.mark.parametrize(("program", "played"), [*zip(PROGRAMS, PLAYED, strict=True)], ids=["ask", "session"])
def test_a_program_of_the_page_runs(program: str, played: tuple[str, list[str]], tmp_path: Path) -> None:
    name, printed = played
    Replay(Recording.from_files(recordings.load(name).files)).script(tmp_path / "claude")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == printed
