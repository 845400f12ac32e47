"""`make drift` reads a bounded amount of data from a CLI and from typings: the limits of tools/drift/README.md."""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from children import linux_only
from claude_wire.testing import Recording
from claude_wire_kit.commands.shared.failure import Failure
from drift import command, disk, inside, scenarios, typings
from folders import ROOT
from offline import sandbox

MIB = 1 << 20
#: Seconds to wait for another thread.
SECONDS = 30.0


def row(begins: str) -> str:
    """Return the limit in the row of the README's table that begins with this text."""
    page = (ROOT / "tools" / "drift" / "README.md").read_text()
    found = re.search(rf"^\| {re.escape(begins)}[^|]* \| ([^|]+) \|", page, re.MULTILINE)
    assert found is not None, begins
    return found[1]


def test_the_page_says_the_bounds_of_the_code() -> None:
    assert row("the output of a CLI in a scenario") == f"{scenarios.MAX_BYTES // MIB} MiB in each file of its recording"
    assert row("the transcripts that") == f"{disk.MAX_BYTES // MIB} MiB in {disk.MAX_FILES} files"
    assert row("the typings") == f"{typings.MAX_BYTES // MIB} MiB, and {typings.MAX_STEPS:,} steps through them"
    assert row("the help of a CLI") == f"{inside.HELP_BYTES >> 10} KiB"


def test_the_recording_of_a_scenario_ends_at_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "require", lambda: None)  # the test does not enter the session, so no CLI starts
    api: Any = SimpleNamespace(url="http://127.0.0.1:9")
    stage = scenarios.Stage(tmp_path / "claude", api, tmp_path, tmp_path, tmp_path / "recordings", "talkative")
    stage.session()
    with closing(*stage.recorders) as recorder:
        for _ in range(9):
            recorder.received(b"x" * (MIB - 1) + b"\n")
            recorder.stderr("y" * (MIB - 1))
    recorded = Recording.load(tmp_path / "recordings" / "talkative.1")
    assert len(recorded.stdout) == 8 * MIB
    assert len(recorded.stderr) <= 8 * MIB


def test_of_the_transcripts_on_disk_whole_lines_up_to_the_bounds_are_kept(tmp_path: Path) -> None:
    project = tmp_path / ".claude" / "projects" / "p"
    project.mkdir(parents=True)
    line = b"x" * (MIB - 1) + b"\n"
    for number in range(disk.MAX_FILES + 1):
        (project / f"{number}.jsonl").write_bytes(b"y\n" if number else line * 9 + b"x")
    disk.keep(tmp_path, tmp_path, "talkative")
    files = [data for _, data in disk.kept(tmp_path)]
    assert len(files) <= disk.MAX_FILES
    assert sum(map(len, files)) <= disk.MAX_BYTES
    assert all(not data or data.endswith(b"\n") for data in files)


@linux_only
def test_of_typings_without_an_end_no_more_is_read_than_is_allowed() -> None:
    """The typings come from another project, so drift must not read a file without end into memory."""
    with pytest.raises(Failure, match="more than 8,388,608 bytes"):
        command.typings_of(Path("/dev/zero"))


@linux_only
def test_of_a_help_without_an_end_the_beginning_is_read(tmp_path: Path) -> None:
    """One limit applies to stdout and stderr of the help together."""
    endless = "import os\nwhile True: os.write(1, b'o' * 4096); os.write(2, b'e' * 4096)"
    said = inside.said_by([sys.executable, "-c", endless], tmp_path)
    assert (len(said), set(said)) == (1 << 18, {"o", "e"})


@linux_only
def test_a_help_is_never_killed_after_it_was_reaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the time limit expires while the help ends, drift must not signal a process group that may be reused."""
    cancelled, goes_on = threading.Event(), threading.Event()
    were_there: list[bool] = []
    timers: list[threading.Timer] = []

    class Late(threading.Timer):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            timers.append(self)

        def run(self) -> None:
            assert cancelled.wait(SECONDS)
            assert goes_on.wait(SECONDS)
            self.function()

        def cancel(self) -> None:
            cancelled.set()

        def join(self, timeout: float | None = None) -> None:
            goes_on.set()
            super().join(timeout)

    def killpg(group: int, number: int) -> None:
        were_there.append(Path(f"/proc/{group}").exists())

    monkeypatch.setattr(threading, "Timer", Late)
    monkeypatch.setattr(os, "killpg", killpg)
    assert inside.said_by([sys.executable, "-c", "print('help')"], tmp_path) == "help\n"
    goes_on.set()
    threading.Thread.join(timers[0], SECONDS)
    assert were_there == [True, True]
