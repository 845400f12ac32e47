"""Read a source of bytes ahead of its reader, and keep the bytes for the reader.

A session does this to find the CLI's requests while the user does not iterate. Kept bytes count toward the process-wide
byte budget.
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

#: Maximum number of bytes to keep for each reader when the byte budget is used up. Because of this share, one slow
#: consumer cannot stop all other sessions.
SHARE_BYTES = 256 * 1024

#: A function that gets a copy of all bytes: each chunk that is read, or each line that is sent.
Tap = Callable[[bytes], object]


def show(tap: Tap | None, data: bytes | memoryview, name: str = "on_received") -> None:
    """Call a tap with bytes. If the tap raises, log ``name`` and the exception's type."""
    if tap is not None and data:
        try:
            tap(bytes(data))
        except Exception as error:
            logging.getLogger("claude_wire").warning("%s raised %s", name, type(error).__name__)


class Chunks(Protocol):
    """A source of bytes."""

    @property
    def final(self) -> tuple[type[Exception], ...]:
        """The exceptions from :meth:`receive` that mean that there are no more bytes."""
        ...

    async def receive(self) -> bytes | memoryview:
        """Return at least one byte, or empty bytes at the end. A memoryview is valid until the next call."""
        ...

    async def aclose(self) -> None: ...


class ReadAhead:
    """Passes a source's chunks to a reader. Another task may read chunks ahead, which are kept for the reader.

    The two tasks never read from the source at the same time. Kept bytes count toward the process-wide byte budget.
    """

    def __init__(self, source: Chunks, tap: Tap | None) -> None:
        self.source = source
        #: The number of chunks that the reader read directly from the source.
        self.direct: int = 0
        #: The number of kept bytes, including the weight of messages that were decoded ahead.
        self.kept_bytes: int = 0
        #: Called with each chunk that is read; None if there is no tap.
        self.tap = tap
        #: True while a session uses the stream.
        self.in_use = True
        #: The state of the task that reads ahead. A later task continues with it. None before the first task.
        self.state: Any = None
        self._kept: deque[bytes | Exception] = deque()
        self._ended = self._advancing = False
        # The event that wakes the reader when the other task reads a chunk. None while the reader is not waiting.
        self._advanced: Event | None = None
        self._pid = os.getpid()

    @property
    def final(self) -> tuple[type[Exception], ...]:
        """See :attr:`Chunks.final`."""
        return self.source.final

    def may_keep_more(self) -> bool:
        """Return True if another chunk fits into this reader's share or into the byte budget."""
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
        """Read the next bytes, keep them for the reader, and return them. Return empty bytes at the end.

        Do not call this while the reader is waiting for the source. If the source raises an exception, the call raises
        it, and the reader raises it again.
        """
        self._advancing = True
        try:
            data = bytes(await self.source.receive())
            if data:
                # Join a small chunk to the last one, because a small object takes more memory than its bytes.
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
        """Drop the kept chunks, and give their bytes back to the budget. For the reader, the source then ends."""
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
