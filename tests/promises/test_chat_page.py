"""Run the program of docs/how-to/chat.md in a terminal: it streams, asks for permission, and handles Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from folders import ROOT
from pages import blocks

(PROGRAM,) = (block.text for block in blocks(ROOT / "docs" / "how-to" / "chat.md") if block.language == "python")

AGENT = f"""#!{sys.executable}
import anyio
from claude_wire.agent import Agent


async def answer(turn):
    if turn.text == "work":
        await turn.stream("working ")
        await anyio.sleep_forever()
    elif turn.text == "write":
        outcome = await turn.run_tool("Write", {{"file_path": "a.txt"}}, lambda given: "written")
        await turn.stream("Refused." if outcome.is_error else "Written.")
    else:
        await turn.stream("You said: " + turn.text)


Agent(answer).main()
"""

CTRL_C, CTRL_D = "\x03", "\x04"
#: Seconds to wait for the next output before the test fails.
PATIENCE = 60


class Terminal:
    """The chat program, running in a pseudo-terminal."""

    def __init__(self, folder: Path) -> None:
        self._shown = ""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            os.execv(sys.executable, [sys.executable, "chat.py"])

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str) -> None:
        """Read the output until the text appears. Each call continues after the text that the previous call found."""
        while text not in self._shown:
            assert self._read(), f"{text!r} does not come after {self._shown!r}"
        self._shown = self._shown.partition(text)[2]

    def end(self) -> tuple[int, str]:
        """Wait for the end of the program. Return its exit code, and the output since the last text that was found."""
        while self._read():
            pass
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1]), self._shown

    def _read(self) -> bool:
        """Read what the program writes next. Return False if it has closed the terminal."""
        ready, _, _ = select.select([self._terminal], [], [], PATIENCE)
        assert ready, f"nothing comes after {self._shown!r}"
        try:
            written = os.read(self._terminal, 65536)
        except OSError:  # Linux has no end of file here
            written = b""
        self._shown += written.decode()
        return written != b""


@pytest.fixture
def start(tmp_path: Path) -> Callable[[str], Terminal]:
    """Return a function that starts the chat with this program as its agent."""

    def start(program: str) -> Terminal:
        agent = tmp_path / "agent.py"
        agent.write_text(program)
        agent.chmod(0o700)
        options = f"ClaudeOptions(cli_path={str(agent)!r}, "
        (tmp_path / "chat.py").write_text(PROGRAM.replace("ClaudeOptions(i", options + "i"))
        return Terminal(tmp_path)

    return start


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
def test_ctrl_c_stops_the_turn_or_the_question_and_at_the_prompt_the_program(
    start: Callable[[str], Terminal], key: str
) -> None:
    terminal = start(AGENT)
    for typed, shown in [
        ("hello\n", "You said: hello"),
        ("work\n", "working "),
        (CTRL_C, "dollars so far]"),
        ("again\n", "You said: again"),
        ("write\n", "allow? [y/N] "),
        (CTRL_C, "dollars so far]"),
        ("still\n", "You said: still"),
        ("write\n", "allow? [y/N] "),
        ("y\n", "Written."),
    ]:
        if typed != CTRL_C and shown != "Written.":
            terminal.wait_for("> ")
        terminal.type(typed)
        terminal.wait_for(shown)
    terminal.wait_for("> ")
    terminal.type(key)
    code, shown = terminal.end()
    assert code == 0
    assert "Traceback" not in shown


def test_ctrl_c_before_the_first_prompt_ends_the_program(start: Callable[[str], Terminal], tmp_path: Path) -> None:
    terminal = start(f"#!/bin/sh\ntouch {tmp_path}/started\nexec sleep 999\n")
    until = time.monotonic() + PATIENCE
    while not (tmp_path / "started").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    terminal.type(CTRL_C)
    code, shown = terminal.end()
    assert (code, shown.strip("^C")) == (0, "")


def test_ctrl_c_at_the_first_prompt_ends_the_program(start: Callable[[str], Terminal]) -> None:
    terminal = start(AGENT)
    terminal.wait_for("> ")
    terminal.type(CTRL_C)
    code, shown = terminal.end()
    assert (code, shown.strip("^C")) == (0, "")
