"""Pseudo-terminals, for tests of commands that behave differently at a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence

__all__ = ["PATIENCE", "AtTerminal", "Screen", "terminal_environment"]

#: Seconds after which a waiting test fails.
PATIENCE = 60.0


class Screen:
    """A pseudo-terminal. ``terminal`` is the child's end, ``master`` is the test's end, the keyboard.

    Attributes:
        shown: the bytes written to the terminal so far.
    """

    def __init__(self, columns: int) -> None:
        self.master, self.terminal = pty.openpty()
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        # Without NOFLSH, Ctrl-C discards output that the test has not read yet.
        modes = termios.tcgetattr(self.terminal)
        modes[3] |= termios.NOFLSH
        termios.tcsetattr(self.terminal, termios.TCSANOW, modes)
        self.shown = b""

    def read(self) -> bool:
        """Wait for more output. Return False at the end."""
        ready, _, _ = select.select([self.master], [], [], PATIENCE)
        assert ready, self.shown
        try:
            data = os.read(self.master, 65536)
        except OSError:  # Linux raises this once the other end is closed
            return False
        self.shown += data
        return bool(data)

    def until(self, condition: Callable[[bytes], bool]) -> None:
        """Wait until the output so far satisfies a condition."""
        deadline = time.monotonic() + PATIENCE
        while not condition(self.shown):
            assert time.monotonic() < deadline, self.shown
            assert self.read(), self.shown

    def text(self) -> str:
        """Return the output so far, without escape sequences and carriage returns."""
        return _without_escapes(self.shown).replace("\r", "")

    def rows(self) -> list[str]:
        """Return the rows as the terminal shows them: text after a carriage return overwrites the row's beginning.

        So a row has no trace of a progress row that the command has erased.
        """
        rows = []
        for written in _without_escapes(self.shown).replace("\r\n", "\n").split("\n"):
            row = ""
            for piece in written.split("\r"):
                row = piece + row[len(piece) :]
            rows.append(row)
        return rows

    def close(self) -> None:
        """Close the test's end."""
        os.close(self.master)


def _without_escapes(shown: bytes) -> str:
    return re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", shown.decode("utf-8", "replace"))


class AtTerminal:
    """A command on a pseudo-terminal into which a test types. Leaving the block kills the command."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], columns: int = 200) -> None:
        self.screen = Screen(columns)
        terminal = self.screen.terminal
        # Run it in a new session with this controlling terminal, so Ctrl-C arrives as SIGINT.
        self.process = subprocess.Popen(
            [sys.executable, "-c", BECOME, *command],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            env=environment,
        )
        os.close(terminal)

    def __enter__(self) -> AtTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self.screen.close()

    def until(self, shown: str, times: int = 1) -> None:
        """Wait until a text was shown ``times`` times."""
        self.screen.until(lambda all_shown: all_shown.count(shown.encode()) >= times)

    def type_when(self, asked: str, text: str, times: int = 1) -> None:
        """Wait until ``asked`` was shown ``times`` times, then type ``text``."""
        self.until(asked, times)
        os.write(self.screen.master, text.encode())

    def end(self) -> tuple[str, int]:
        """Wait for the end. Return the output without escape sequences, and the exit code."""
        while self.screen.read():
            pass
        return self.screen.text(), self.process.wait(PATIENCE)


#: A program that makes its standard input the controlling terminal, and then runs the command.
BECOME = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


def terminal_environment(**others: str) -> dict[str, str]:
    """Return the environment with ``TERM``, but without the other variables that control terminal output."""
    told = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    plain = {name: value for name, value in os.environ.items() if name not in told}
    return {**plain, "TERM": "xterm-256color", **others}
