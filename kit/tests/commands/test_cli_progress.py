"""Long commands show their progress on a terminal only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from cli_lines import line

#: A program that runs the command, and shows its progress without the usual delay.
PROGRAM = """if True:
    import claude_wire_kit.commands.shared.progress as progress
    progress.FIRST_SECONDS = progress.STEP_SECONDS = 0.0
    from claude_wire_kit.commands import main
    main()
"""


def command(name: str, folder: Path) -> list[str]:
    file = str(folder / "a.jsonl")
    return {
        "check": ["check", file],
        "export": ["export", str(folder), "-o", str(folder / "new")],
        "search": ["search", "needle", str(folder)],
        "sessions": ["sessions", str(folder)],
        "stats": ["stats", file],
        "usage": ["usage", "--no-index", str(folder)],
        "view": ["view", "--html", file],
    }[name]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    message = {"role": "assistant", "content": [{"type": "text", "text": "needle"}]}
    record = {"type": "assistant", "sessionId": "s", "parentUuid": None, "uuid": "u", "message": message}
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(line(record))
    return tmp_path


def on_terminal(arguments: Sequence[str]) -> str:
    """Run the command with standard error on a terminal. Return what the terminal received."""
    leader, follower = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=follower
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # EIO means that the other end is closed
                break
            if not piece:
                break
            shown += piece
        os.close(leader)
    assert process.returncode == 0, shown
    return shown.decode()


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals of POSIX")
@pytest.mark.parametrize("name", ["check", "export", "search", "sessions", "stats", "usage", "view"])
def test_a_terminal_shows_how_far_the_command_is_and_then_nothing(name: str, folder: Path) -> None:
    if name == "export":
        pytest.importorskip("pyarrow")
    shown = on_terminal(command(name, folder))
    assert "%" in shown
    *_, erased, end = shown.split("note:")[0].split("\r")
    assert (erased.strip(), end) == ("", "")


@pytest.mark.parametrize("name", ["check", "export", "search", "sessions", "stats", "usage", "view"])
def test_nothing_is_shown_where_standard_error_is_no_terminal(name: str, folder: Path) -> None:
    if name == "export":
        pytest.importorskip("pyarrow")
    arguments = [sys.executable, "-c", PROGRAM, *command(name, folder)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "%" not in done.stderr
    assert "\r" not in done.stdout + done.stderr
