"""Chunks to messages, one step at a time: what a :class:`~claude_wire.MessageStream` has, and what a process has.

Knows chunks, the decoder and who may read them at a time; not where the chunks come from.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from claude_wire.codec.decoder import Decoder
from claude_wire.errors import HandleError
from claude_wire.io.read_ahead import Chunks, ReadAhead, Tap
from claude_wire.io.sources import Drained
from claude_wire.support.arguments import type_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from claude_wire.native.overflow import DrainStats

__all__ = ["Observer", "Receiver", "require_decoder"]

T = TypeVar("T")


def require_decoder(decoder: Decoder[Any] | None) -> Decoder[Any]:
    """The decoder of a stream that is made with this one; ``Decoder()`` for None.

    Raises:
        TypeError: it is no :class:`~claude_wire.Decoder`.
    """
    if not isinstance(decoder, (Decoder, type(None))):
        raise TypeError(f"decoder must be a Decoder(...), such as Decoder(dict), not {type_of(decoder)}")
    return decoder or Decoder()


class Observer(Protocol):
    """Is told what a receiver decodes, and gives it its end."""

    def saw(self, batch: list[Any]) -> None:
        """Called with each batch, once, before anybody gets it."""
        ...

    async def ended(self, *, cut: bool) -> None:
        """Called by each step behind the last message. The step raises what this raises.

        Args:
            cut: whether the stream ended in the middle of a line.
        """
        ...


class Receiver(Generic[T]):
    """Receives chunks and decodes them, for one task at a time.

    Args:
        decoder: is fed by this alone.
        observer: without one, the chunks are closed at their end.
    """

    #: Where the bytes come from. Set before the first step.
    chunks: Chunks

    def __init__(self, decoder: Decoder[T], observer: Observer | None = None) -> None:
        self.decoder: Decoder[T] = decoder
        decoder.raise_in_turn()
        self.observer: Observer | None = observer
        #: What was decoded and not taken yet.
        self.ready: deque[T] = deque()
        #: Whether there are no more steps.
        self.ended: bool = False
        #: Whether that is because it was closed.
        self.closed: bool = False
        # Whether the source has failed; whether it ended in the middle of a line; whether a task is in a step.
        self._failed = self._cut = self._busy = False
        # What the chunks are read through, once somebody has read ahead.
        self._ahead: ReadAhead | None = None

    @property
    def drain_stats(self) -> DrainStats | None:
        """As of :class:`~claude_wire.MessageStream`."""
        chunks = self.chunks if self._ahead is None else self._ahead.source
        return chunks.drain.stats if isinstance(chunks, Drained) else None

    async def next_batch(self) -> list[T]:
        """Wait until there are messages, and take them all."""
        if self._busy:
            raise HandleError("another task is iterating over this stream")
        self._busy = True
        try:
            while True:
                if batch := self._take():
                    return batch
                if self.ended:
                    if self.observer is None:
                        await self.aclose()
                    else:
                        await self.observer.ended(cut=self._cut)
                    raise StopAsyncIteration
                try:
                    data = b"" if self._failed else await self.chunks.receive()
                except self.chunks.final:
                    self._failed = True
                    raise
                if self.closed:
                    raise StopAsyncIteration
                batch = self.decoder.feed(data) if data else self._end_of_data()
                if batch:
                    if self.observer is not None:
                        self.observer.saw(batch)
                    return batch
        finally:
            self._busy = False

    def _take(self) -> list[T]:
        """What is there already, or what an exception held back."""
        ready = self.ready
        if ready:
            batch = list(ready)
            ready.clear()
            return batch
        batch = self.decoder.feed(b"") if self.decoder.holds_back else []
        if batch and self.observer is not None:
            self.observer.saw(batch)
        return batch

    def _end_of_data(self) -> list[T]:
        """What is left in the decoder."""
        stats = self.decoder.stats
        invalid = stats.invalid
        try:
            batch = self.decoder.close()
            self.ended = True
        finally:
            self._cut = self._cut or self.decoder.stats.invalid > invalid
        return batch

    def take_over(self, tap: Tap | None) -> tuple[ReadAhead, list[T]]:
        """Have the chunks read through a :class:`ReadAhead` from now on.

        It is returned with the messages that were decoded already.
        """
        if self._busy:
            raise HandleError("another task is iterating over this stream")
        ahead = self._ahead
        if ahead is None:
            self.chunks = ahead = self._ahead = ReadAhead(self.chunks, tap)
        elif ahead.in_use:
            raise HandleError("this stream has a session already")
        else:
            ahead.tap, ahead.in_use = tap, True
        ready = list(self.ready)
        self.ready.clear()
        return ahead, ready

    def give_back(self, untaken: Iterable[T]) -> None:
        """Leave the stream to its owner again, with the messages that nobody has got."""
        if self._ahead is not None:
            self._ahead.tap, self._ahead.in_use = None, False
        if not self.closed:
            self.ready.extendleft(reversed(list(untaken)))

    def forget(self) -> None:
        """End the iteration, and keep nothing for it."""
        self.closed = self.ended = True
        self.ready.clear()
        self.decoder.forget()
        if self._ahead is not None:
            self._ahead.forget()

    async def aclose(self) -> None:
        """End the iteration, and close the chunks."""
        if not self.closed:
            self.forget()
            await self.chunks.aclose()
