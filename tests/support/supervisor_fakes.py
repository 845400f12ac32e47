"""A fake CLI for a supervisor, without a process. The test holds the other ends of its pipes."""

from __future__ import annotations

import os
import signal
from typing import Any

__all__ = ["FakeChild", "FakeClis"]

#: No process has this pid: it is above the maximum on Linux.
PID = 5_000_000


class FakeChild:
    """A replacement for :class:`claude_wire_kit.supervisor.child.Child`. The test holds the other ends of the pipes."""

    def __init__(self) -> None:
        self.reads, stdin = os.pipe()
        stdout, self.says = os.pipe()
        self.stderr, self.errors = os.pipe()
        self.pidfd, self._ends = os.pipe()
        self.stdin: int | None = stdin
        self.stdout: int | None = stdout
        for descriptor in (self.reads, stdin, stdout, self.says, self.stderr, self.errors):
            os.set_blocking(descriptor, False)
        self.pid = PID
        self.began = 1
        self.mark = "m"
        self.code: int | None = None
        self.is_killed = False
        self.is_closed = False

    # --- for the test

    def say(self, data: bytes) -> int:
        """Write output. Return the number of bytes that the pipe accepted."""
        try:
            return os.write(self.says, data)
        except BlockingIOError:
            return 0

    def read(self, size: int) -> bytes:
        """Read input."""
        try:
            return os.read(self.reads, size)
        except BlockingIOError:
            return b""

    def end(self, code: int) -> None:
        """Act like a process that has ended."""
        if self.code is None:
            self.code = code
            os.close(self._ends)

    # --- for the supervisor

    def insist(self, grace: float) -> None:
        self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        self.is_killed |= number == signal.SIGKILL
        self.end(-number)

    def poll(self) -> int | None:
        return self.code

    def end_input(self) -> None:
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None

    def end_output(self) -> None:
        if self.stdout is not None:
            os.close(self.stdout)
            self.stdout = None

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self.signal(signal.SIGKILL)
        self.end_input()
        self.end_output()
        for descriptor in (self.stderr, self.pidfd, self.reads, self.says, self.errors):
            os.close(descriptor)


class FakeClis:
    """Start fake CLIs and keep them in ``all``."""

    def __init__(self) -> None:
        self.all: list[FakeChild] = []

    def __call__(self, *_: Any, **__: Any) -> FakeChild:
        self.all.append(FakeChild())
        return self.all[-1]
