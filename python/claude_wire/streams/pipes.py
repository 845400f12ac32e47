"""Read an agent's input and write its output. Both are descriptors or anyio streams.

This module does not read ahead. Bytes that the agent does not read stay in the pipe. When the pipe is full, the host
must wait.
"""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from anyio import BrokenResourceError, ClosedResourceError, to_thread
from anyio.abc import ByteSendStream
from anyio.lowlevel import checkpoint

from claude_wire.limits import BLOCK_BYTES, DEFAULT_SPILL_BYTES
from claude_wire.native.overflow import DrainOptions
from claude_wire.streams.sources import open_source
from claude_wire.support.arguments import type_of
from claude_wire.support.waiting import Readiness

#: A function that returns the next line to write, or None if there is none.
Pop = Callable[[], bytes | None]


class Sink(ABC):
    """Writes the lines that ``pop`` returns, until it returns None. One task writes at a time."""

    #: The unwritten rest of a partly written line; empty if there is none.
    rest: bytes | memoryview = b""

    def write_now(self, pop: Pop) -> bool:
        """Write as much as possible without waiting. Return True if all lines were written.

        Raises:
            OSError: the reader closed its end.
        """
        return False

    @abstractmethod
    async def write(self, pop: Pop) -> None:
        """Write all lines.

        Raises:
            OSError, BrokenResourceError, ClosedResourceError: the reader closed its end.
        """

    @abstractmethod
    def close(self) -> None:
        """Restore the descriptor's blocking mode. This does not close the descriptor."""


class _Descriptor(Sink):
    """Writes to a descriptor. Makes a pipe or socket non-blocking until :meth:`close`; writes to a file in a thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        mode = os.fstat(fd).st_mode
        self._waits = os.name != "nt" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
        self._was_blocking = not self._waits or os.get_blocking(fd)
        if self._waits:
            os.set_blocking(fd, False)
        self._room = Readiness(fd, writable=True)

    def write_now(self, pop: Pop) -> bool:
        if self._waits:
            fd, write = self._fd, os.write
            try:
                line = self.rest or pop()
                while line is not None:
                    self.rest = line
                    written = write(fd, line)
                    if written == len(line):
                        self.rest = b""
                        line = pop()
                    else:  # a memoryview does not copy the rest of a long line after each write
                        self.rest = line = memoryview(line)[written:]
                return True
            except BlockingIOError:
                pass
        return False

    async def write(self, pop: Pop) -> None:
        if self._waits:
            while not self.write_now(pop):
                await self._room.wait()
            return
        while line := self.rest or pop():
            self.rest = line
            # Write in a thread, because writing to a terminal, or to a pipe on Windows, may block.
            written = await to_thread.run_sync(os.write, self._fd, line)
            self.rest = memoryview(line)[written:] if written < len(line) else b""

    def close(self) -> None:
        self._room.close()
        if self._waits and self._was_blocking:
            with suppress(OSError):
                os.set_blocking(self._fd, True)


class _Stream(Sink):
    def __init__(self, stream: ByteSendStream) -> None:
        self._stream = stream

    async def write(self, pop: Pop) -> None:
        while line := pop():
            self.rest = line
            await self._stream.send(line)
            self.rest = b""

    def close(self) -> None:
        pass


#: The exceptions that writing to a sink raises when its reader closed its end.
GONE = (OSError, BrokenResourceError, ClosedResourceError, ValueError)


def open_sink(target: Any) -> Sink:
    """Return the sink for a descriptor, an object with a ``fileno()``, or an anyio ``ByteSendStream``.

    Raises:
        TypeError: ``target`` has another type.
    """
    if isinstance(target, ByteSendStream):
        return _Stream(target)
    if hasattr(target, "fileno"):
        target = target.fileno()
    if isinstance(target, int) and not isinstance(target, bool):
        return _Descriptor(target)
    raise TypeError(f"lines are written to a descriptor or an anyio ByteSendStream, not to {type_of(target)}")


def open_input(source: Any) -> Any:
    """Return the chunks that read a descriptor, an object with a ``fileno()``, or another ``MessageStream`` source.

    Raises:
        TypeError: ``source`` has another type.
    """
    if hasattr(source, "fileno"):
        source = source.fileno()
    if isinstance(source, int) and not isinstance(source, bool):
        return _Input(source)
    return open_source(source, DrainOptions("pause", DEFAULT_SPILL_BYTES))


class _Input:
    """Reads chunks from a descriptor without reading ahead, so unread bytes stay in the pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        mode = os.fstat(fd).st_mode
        self._waits = os.name != "nt" and not stat.S_ISREG(mode)
        self._in_thread = os.name == "nt" and not stat.S_ISREG(mode)
        self._data = Readiness(fd)

    async def receive(self) -> bytes:
        if self._in_thread:
            return await to_thread.run_sync(os.read, self._fd, BLOCK_BYTES, abandon_on_cancel=True)
        if not self._waits:
            await checkpoint()
            return os.read(self._fd, BLOCK_BYTES)
        while True:
            try:
                await self._data.wait()
                return os.read(self._fd, BLOCK_BYTES)
            except BlockingIOError:
                pass
