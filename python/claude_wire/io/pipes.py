"""The two ends of an agent: where its input comes from, and where its lines go, one after another.

Knows bytes, descriptors and event loops; not what the lines say. What an agent does not read waits in the pipe, and so
does its host: no drain reads ahead.
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

from claude_wire.io.sources import open_source
from claude_wire.limits import BLOCK_BYTES, DEFAULT_SPILL_BYTES
from claude_wire.native.overflow import DrainOptions
from claude_wire.support.arguments import type_of
from claude_wire.support.waiting import Readiness

__all__ = ["GONE", "Sink", "open_input", "open_sink"]

#: Takes the next line to write; None if there is none.
Pop = Callable[[], bytes | None]


class Sink(ABC):
    """Writes the lines that ``pop`` gives, until it gives none. One task writes at a time."""

    #: Bytes of a line that has begun to be written.
    rest: bytes | memoryview = b""

    def write_now(self, pop: Pop) -> bool:
        """Write what can be written without waiting. Returns whether that was all.

        Raises:
            OSError: nobody reads it any more.
        """
        return False

    @abstractmethod
    async def write(self, pop: Pop) -> None:
        """Write all.

        Raises:
            OSError, BrokenResourceError, ClosedResourceError: nobody reads it any more.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back what was changed."""


class _Descriptor(Sink):
    """A descriptor. A pipe or a socket does not block until this is closed; a file or a terminal blocks."""

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
                while True:
                    line = self.rest or pop()
                    if line is None:
                        return True
                    self.rest = line
                    written = write(fd, line)
                    # A view: what is left of a long line is not copied each time.
                    self.rest = memoryview(line)[written:] if written < len(line) else b""
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
            # A terminal or a pipe of Windows may hold up its writer.
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


#: What tells that nobody reads a sink any more.
GONE = (OSError, BrokenResourceError, ClosedResourceError, ValueError)


def open_sink(target: Any) -> Sink:
    """The sink for a descriptor, an object with a ``fileno()``, or an anyio ``ByteSendStream``.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(target, ByteSendStream):
        return _Stream(target)
    if hasattr(target, "fileno"):
        target = target.fileno()
    if isinstance(target, int) and not isinstance(target, bool):
        return _Descriptor(target)
    raise TypeError(f"lines go to a descriptor or to an anyio ByteSendStream, not to {type_of(target)}")


def open_input(source: Any) -> Any:
    """The chunks of a descriptor, an object with a ``fileno()``, or another source of a ``MessageStream``.

    Raises:
        TypeError: it is none of these.
    """
    if hasattr(source, "fileno"):
        source = source.fileno()
    if isinstance(source, int) and not isinstance(source, bool):
        return _Input(source)
    return open_source(source, DrainOptions("pause", DEFAULT_SPILL_BYTES))


class _Input:
    """The chunks of a descriptor, read only when they are asked for: what is not read waits in the pipe."""

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
