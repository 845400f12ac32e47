"""Pipes whose read end is a native drain."""

from __future__ import annotations

import contextlib
import os
import random
import select
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from claude_wire.errors import HandleError
from claude_wire.native.drain import Drain
from claude_wire.native.overflow import DrainOptions

T = TypeVar("T")
#: Seconds to wait for something that must happen soon, even on a loaded machine.
DEADLINE = 60.0


linux = pytest.mark.skipif(sys.platform != "linux", reason="native drains are for Linux")


KIB = 1024
MIB = 1024 * 1024


def wait_until(condition: Callable[[], T]) -> T:
    end = time.monotonic() + DEADLINE
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def data_of(size: int, seed: int = 0) -> bytes:
    """Return random bytes, so a misplaced part is noticed."""
    return random.Random(seed).randbytes(size)


class Pipe:
    """A pipe whose read end is a native drain."""

    def __init__(self, **options: Any) -> None:
        read_end, self.write_end = os.pipe()
        try:
            self.drain = Drain(read_end, DrainOptions(**options))
        finally:
            os.close(read_end)
        self._writer: threading.Thread | None = None

    def write(self, data: bytes) -> None:
        assert os.write(self.write_end, data) == len(data)

    def write_in_thread(self, data: bytes, *, sizes: Callable[[], int] = lambda: 65536, close: bool = True) -> None:
        """Write the data from another thread, which may block."""

        def write() -> None:
            at = 0
            while at < len(data):
                at += os.write(self.write_end, data[at : at + sizes()])
            if close:
                self.close_writer()

        self._writer = threading.Thread(target=write)
        self._writer.start()

    def writer_done(self) -> bool:
        return self._writer is None or not self._writer.is_alive()

    def close_writer(self) -> None:
        end, self.write_end = self.write_end, -1
        if end >= 0:
            os.close(end)

    def close(self) -> None:
        with contextlib.suppress(HandleError):
            self.drain.discard()  # unblocks the writer
        if self._writer is not None:
            self._writer.join(DEADLINE)
            assert not self._writer.is_alive()
        self.close_writer()
        self.drain.close()


def read_some(drain: Drain) -> bytes:
    """Wait for the next bytes and return them; b"" at the end of the stream."""

    def read() -> tuple[bytes] | None:
        data = drain.read()
        return None if data is None else (bytes(data),)

    return wait_until(read)[0]


def read_all(drain: Drain) -> bytes:
    """Read to the end of the stream."""
    return b"".join(iter(lambda: read_some(drain), b""))


def read_exactly(drain: Drain, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = read_some(drain)
        assert more, "the stream ended early"
        data += more
    assert len(data) == size
    return data


def is_readable(drain: Drain, timeout: float = 0) -> bool:
    return bool(select.select([drain], [], [], timeout)[0])


def run(program: str, **options: Any) -> str:
    """Run a program in a new interpreter and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
