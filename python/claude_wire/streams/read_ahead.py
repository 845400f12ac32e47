"""Read a source of bytes ahead of its reader, and keep the bytes for the reader.

A session does this to find requests of the CLI while its user does not iterate. Kept bytes count in the byte budget of
the process.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from claude_wire.limits import JOINED_BYTES
from claude_wire.native.budget import count_kept, has_room
from claude_wire.streams.tasks import set_event

if TYPE_CHECKING:
    from anyio import Event

#: Number of bytes that may be kept for each reader even if the byte budget is used up. With this share, one slow
#: consumer cannot stop all other sessions.
SHARE_BYTES = 256 * 1024

#: A function that gets a copy of all bytes: each chunk that was read, or each line that is sent.
Tap = Callable[[bytes], object]


def show(tap: Tap | None, data: bytes | memoryview, name: str = "on_received") -> None:
    """Call a tap with bytes. If the tap raises, log the type of the exception and ``name``."""
    if tap is not None and data:
        try:
            tap(bytes(data))
        except Exception as error:
            logging.getLogger("claude_wire").warning("%s raised %s", name, type(error).__name__)


class Chunks(Protocol):
    """A source of bytes."""

    @property
    def final(self) -> tuple[type[Exception], ...]:
        """The exceptions of :meth:`receive` after which no more bytes can come."""
        ...

    async def receive(self) -> bytes | memoryview:
        """Return the next bytes, at least one; empty at the end. A memoryview is valid until the next call."""
        ...

    async def aclose(self) -> None: ...


class ReadAhead:
    """The chunks of a source, for a reader. Another task may read chunks ahead, which are kept for the reader.

    The two tasks never read from the source at the same time. Kept bytes count in the byte budget of the process.
    """

    def __init__(self, source: Chunks, tap: Tap | None) -> None:
        self.source = source
        #: Number of chunks that the reader has read directly from the source.
        self.direct: int = 0
        #: Number of kept bytes, including the weight of messages that were decoded ahead.
        self.kept_bytes: int = 0
        #: Called with each chunk that is read; None if there is no tap.
        self.tap = tap
        #: True while a session has taken over the stream.
        self.in_use = True
        #: State of the task that reads ahead. A later task continues with it. None before the first task.
        self.found: Any = None
        self._kept: deque[bytes | Exception] = deque()
        self._ended = self._advancing = False
        # The event that wakes the reader when the other task has read a chunk. None while the reader does not wait.
        self._advanced: Event | None = None
        self._pid = os.getpid()

    @property
    def final(self) -> tuple[type[Exception], ...]:
        """See :attr:`Chunks.final`."""
        return self.source.final

    def may_keep_more(self) -> bool:
        """True if one more chunk may be kept: within this reader's share, or within the byte budget."""
        return self.kept_bytes < SHARE_BYTES or has_room()

    async def receive(self) -> bytes | memoryview:
        """Return the next bytes for the reader. Kept bytes come first."""
        while not self._kept:
            if self._ended:
                return b""
            if not self._advancing:
                self.direct += 1
                data = await self.source.receive()
                show(self.tap, data)
                return data
            from anyio import Event

            self._advanced = Event()
            await self._advanced.wait()
        kept = self._kept.popleft()
        if isinstance(kept, Exception):
            raise kept
        self.count(-len(kept))
        return kept

    async def advance(self) -> bytes:
        """Read the next bytes, keep them for the reader, and return them; empty at the end.

        Do not call this while the reader waits for the source. An exception of the source is raised here, and again in
        the reader.
        """
        self._advancing = True
        try:
            data = bytes(await self.source.receive())
            if data:
                # Join a small chunk to the last one: a small object takes more memory than its bytes count.
                if self._kept and isinstance(last := self._kept[-1], bytes) and len(last) + len(data) <= JOINED_BYTES:
                    self._kept[-1] = last + data
                else:
                    self._kept.append(data)
                self.count(len(data))
                show(self.tap, data)
            else:
                self._ended = True
            return data
        except Exception as error:
            self._kept.append(error)
            raise
        finally:
            self._advancing = False
            if self._advanced is not None:
                set_event(self._advanced)
                self._advanced = None

    async def aclose(self) -> None:
        """Close the source, and drop the kept chunks."""
        self.forget()
        await self.source.aclose()

    def forget(self) -> None:
        """Drop the kept chunks, and give their bytes back to the budget. The reader then gets the end."""
        self.count(-self.kept_bytes)
        self._kept.clear()
        self._ended = True

    def count(self, count: int) -> None:
        """Add ``count``, which may be negative, to the number of kept bytes."""
        self.kept_bytes += count
        if count and os.getpid() == self._pid:  # a forked child has its own budget
            count_kept(count)

    def __del__(self) -> None:
        if self._kept:
            self.forget()
