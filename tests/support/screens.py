"""Pseudo-terminals, for tests of commands that behave otherwise at a terminal."""

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

#: Seconds; longer than anything takes that is waited for.
PATIENCE = 60.0


class Screen:
    """A pseudo-terminal: ``terminal`` is for the child, ``master`` the end where the keyboard is.

    Attributes:
        shown: all that was written to it.
    """

    def __init__(self, columns: int) -> None:
        self.master, self.terminal = pty.openpty()
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        # Otherwise Ctrl-C throws away what was written to the terminal and not yet read here.
        modes = termios.tcgetattr(self.terminal)
        modes[3] |= termios.NOFLSH
        termios.tcsetattr(self.terminal, termios.TCSANOW, modes)
        self.shown = b""

    def read(self) -> bool:
        """Wait for more; whether there was any before the end."""
        ready, _, _ = select.select([self.master], [], [], PATIENCE)
        assert ready, self.shown
        try:
            data = os.read(self.master, 65536)
        except OSError:  # Linux says so when nobody has the other end any more
            return False
        self.shown += data
        return bool(data)

    def until(self, condition: Callable[[bytes], bool]) -> None:
        """Wait until what was shown fulfils a condition."""
        deadline = time.monotonic() + PATIENCE
        while not condition(self.shown):
            assert time.monotonic() < deadline, self.shown
            assert self.read(), self.shown

    def text(self) -> str:
        """What was shown, without escapes and carriage returns."""
        return re.sub(r"\x1b\[[?\d;]*[a-zA-Z]|\r", "", self.shown.decode("utf-8", "replace"))

    def close(self) -> None:
        """Close the end that is ours."""
        os.close(self.master)


class AtTerminal:
    """A command on a pseudo-terminal, with somebody who types. As a context manager it kills the command at the end."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], columns: int = 200) -> None:
        self.screen = Screen(columns)
        terminal = self.screen.terminal
        # In a session of its own whose terminal this is, so that Ctrl-C comes from there.
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
        """Wait until a text was shown so often."""
        self.screen.until(lambda all_shown: all_shown.count(shown.encode()) >= times)

    def type_when(self, asked: str, text: str, times: int = 1) -> None:
        """Type when a text was shown so often."""
        self.until(asked, times)
        os.write(self.screen.master, text.encode())

    def end(self) -> tuple[str, int]:
        """Wait for the end, and return what was shown, without escapes, and the exit code."""
        while self.screen.read():
            pass
        return self.screen.text(), self.process.wait(PATIENCE)


#: Makes standard input the terminal that Ctrl-C comes from.
BECOME = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


def terminal_environment(**others: str) -> dict[str, str]:
    """The environment, with nothing in it that says how to write to a terminal but ``TERM``."""
    told = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    plain = {name: value for name, value in os.environ.items() if name not in told}
    return {**plain, "TERM": "xterm-256color", **others}
