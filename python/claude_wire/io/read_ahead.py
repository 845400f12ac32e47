"""Reads a source of bytes ahead of its reader, who gets the same bytes later.

Knows chunks, and the byte budget that what is kept counts in; not lines. It is for whoever must see what comes before
the reader asks for it.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from claude_wire.io.tasks import set_event
from claude_wire.limits import JOINED_BYTES
from claude_wire.native.budget import count_kept, has_room

if TYPE_CHECKING:
    from anyio import Event

__all__ = ["Chunks", "ReadAhead", "Tap", "show"]

#: What each reader may keep, in bytes, however much others do: their consumers must not silence it.
SHARE_BYTES = 256 * 1024

#: Is shown each chunk that is read, as it was read.
Tap = Callable[[bytes], object]


def show(tap: Tap | None, data: bytes | memoryview, name: str = "on_received") -> None:
    """Show bytes to a tap, which has this name in logs. An exception of the tap is logged and stops nothing."""
    if tap is not None and data:
        try:
            tap(bytes(data))
        except Exception as error:
            logging.getLogger("claude_wire").warning("%s raised %s", name, type(error).__name__)


class Chunks(Protocol):
    """Where the bytes of a stream come from."""

    @property
    def final(self) -> tuple[type[Exception], ...]:
        """What :meth:`receive` raises if nothing can come after it."""
        ...

    async def receive(self) -> bytes | memoryview:
        """The next bytes, at least one; none at the end. A view is valid until the next call."""
        ...

    async def aclose(self) -> None: ...


class ReadAhead:
    """Chunks that one task receives, and that another one may read before: both of them, at the same time, never read.

    Bytes that are kept count in the byte budget of the process.
    """

    def __init__(self, source: Chunks, tap: Tap | None) -> None:
        self.source = source
        #: Chunks that were received without having been kept.
        self.direct: int = 0
        #: Bytes that are kept.
        self.kept_bytes: int = 0
        #: Is shown what is read; and whether anybody reads ahead at present.
        self.tap = tap
        self.in_use = True
        #: What whoever reads ahead has found in what is kept; the next one goes on with it.
        self.found: Any = None
        self._kept: deque[bytes | Exception] = deque()
        self._ended = self._advancing = False
        # What the reader waits for while somebody else reads.
        self._advanced: Event | None = None
        self._pid = os.getpid()

    @property
    def final(self) -> tuple[type[Exception], ...]:
        """As of the source."""
        return self.source.final

    def may_keep_more(self) -> bool:
        """Whether there is room for more: in the share that each may keep, or in the byte budget."""
        return self.kept_bytes < SHARE_BYTES or has_room()

    async def receive(self) -> bytes | memoryview:
        """The next bytes for the reader, as :meth:`Chunks.receive`."""
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
        self._count(-len(kept))
        return kept

    async def advance(self) -> bytes:
        """Read the next bytes, keep them for the reader and return them; none at the end.

        The reader must not be receiving from the source meanwhile. What the source raises, the reader will get, too.
        """
        self._advancing = True
        try:
            data = bytes(await self.source.receive())
            if data:
                # A small chunk is joined to the one before: alone it would take more memory than the budget counts.
                if self._kept and isinstance(last := self._kept[-1], bytes) and len(last) + len(data) <= JOINED_BYTES:
                    self._kept[-1] = last + data
                else:
                    self._kept.append(data)
                self._count(len(data))
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
        """Close the source, and forget what is kept."""
        self.forget()
        await self.source.aclose()

    def forget(self) -> None:
        """Give back what is kept."""
        self._count(-self.kept_bytes)
        self._kept.clear()
        self._ended = True

    def _count(self, count: int) -> None:
        self.kept_bytes += count
        if count and os.getpid() == self._pid:  # the budget of a forked child is another
            count_kept(count)

    def __del__(self) -> None:
        if self._kept:
            self.forget()
