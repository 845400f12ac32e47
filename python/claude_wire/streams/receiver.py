"""Read chunks and decode them, one step at a time. Message streams and processes share this code.

A session can take over the reading (:meth:`Receiver.take_over`) and give it back.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from claude_wire.codec.decoder import Decoder
from claude_wire.errors import HandleError
from claude_wire.native.drain import Drain
from claude_wire.streams.read_ahead import Chunks, ReadAhead, Tap
from claude_wire.streams.sources import PipeChunks
from claude_wire.support.arguments import type_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from claude_wire.native.overflow import DrainStats

T = TypeVar("T")


def require_decoder(decoder: Decoder[Any] | None) -> Decoder[Any]:
    """Return a stream's ``decoder`` argument, or ``Decoder()`` for None.

    Raises:
        TypeError: ``decoder`` is not a :class:`~claude_wire.Decoder`.
    """
    if not isinstance(decoder, (Decoder, type(None))):
        raise TypeError(f"decoder must be a Decoder(...), such as Decoder(dict), not {type_of(decoder)}")
    return decoder or Decoder()


class Observer(Protocol):
    """Follows a receiver's messages, and decides which error ends the iteration."""

    def saw(self, batch: list[Any]) -> None:
        """Called once with each batch, before the consumer gets it."""
        ...

    async def ended(self, *, cut: bool) -> None:
        """Called in each step after the last message. If this method raises an exception, the step also raises it.

        Args:
            cut: True if the stream ended in the middle of a line.
        """
        ...


class Adapter(Protocol):
    """Translates messages from another dialect to stream-json."""

    async def receive(self, chunks: Chunks) -> bytes | memoryview | None:
        """Return the next bytes, like :meth:`Chunks.receive`, or None if :meth:`adapt` will return a message first."""
        ...

    def adapt(self, batch: list[Any]) -> list[Any]:
        """Translate a batch of decoded messages. Each message is in one batch."""
        ...


class Receiver(Generic[T]):
    """Receives chunks and decodes them, for one task at a time.

    Args:
        decoder: decodes the chunks. Do not use it for anything else.
        observer: follows the messages. Without an observer, the receiver closes the chunks when they end.
    """

    #: The source of bytes. Must be set before the first step.
    chunks: Chunks

    def __init__(self, decoder: Decoder[T], observer: Observer | None = None) -> None:
        self.decoder: Decoder[T] = decoder
        decoder.raise_in_turn()
        self.observer: Observer | None = observer
        #: Translates decoded messages; None for stream-json.
        self.adapter: Adapter | None = None
        #: Decoded messages that the consumer has not taken yet.
        self.ready: deque[T] = deque()
        #: True after the end of the data was decoded, and after :meth:`forget`.
        self.ended: bool = False
        #: True after :meth:`forget`.
        self.closed: bool = False
        # `_failed`: the source failed. `_cut`: the source ended in the middle of a line. `_busy`: a task is in a step.
        self._failed = self._cut = self._busy = False
        # Reads the chunks after the first take_over(). None until then.
        self._ahead: ReadAhead | None = None

    @property
    def drain_stats(self) -> DrainStats | None:
        """The drain's counts; None if the chunks have no drain."""
        chunks = self.chunks if self._ahead is None else self._ahead.source
        return chunks.pipe.stats if isinstance(chunks, PipeChunks) and isinstance(chunks.pipe, Drain) else None

    async def next_batch(self) -> list[T]:
        """Wait for messages, and return all messages that are ready. Raise StopAsyncIteration at the end."""
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
                data: bytes | memoryview | None = b""
                try:
                    if not self._failed:
                        adapter, chunks = self.adapter, self.chunks
                        data = await (chunks.receive() if adapter is None else adapter.receive(chunks))
                except self.chunks.final:
                    self._failed = True
                    raise
                if self.closed:
                    raise StopAsyncIteration
                if data is None:
                    decoded: list[T] = []
                else:
                    decoded = self.decoder.feed(data) if data else self._end_of_data()
                if batch := self._seen(decoded):
                    return batch
        finally:
            self._busy = False

    def _take(self) -> list[T]:
        """Return the messages that are available without reading: in ``ready``, or held back by the decoder."""
        ready = self.ready
        if ready:
            batch = list(ready)
            ready.clear()
            return batch
        return self._seen(self.decoder.feed(b"")) if self.decoder.holds_back else []

    def _seen(self, batch: list[T]) -> list[T]:
        """Translate decoded messages, and show them to the observer."""
        if self.adapter is not None:
            batch = self.adapter.adapt(batch)
        if batch and self.observer is not None:
            self.observer.saw(batch)
        return batch

    def _end_of_data(self) -> list[T]:
        """Tell the decoder that the source ended. If the last line has no line feed, return its message."""
        stats = self.decoder.stats
        invalid = stats.invalid
        try:
            batch = self.decoder.close()
            self.ended = True
        finally:
            self._cut = self._cut or self.decoder.stats.invalid > invalid
        return batch

    def take_over(self, tap: Tap | None) -> tuple[ReadAhead, list[T]]:
        """Read the chunks through a :class:`ReadAhead` from now on. Return it and all messages decoded so far.

        Raises:
            HandleError: a task is in a step, or the stream already has a session.
        """
        if self._busy:
            raise HandleError("another task is iterating over this stream")
        ahead = self._ahead
        if ahead is None:
            self.chunks = ahead = self._ahead = ReadAhead(self.chunks, tap)
        elif ahead.in_use:
            raise HandleError("this stream already has a session")
        else:
            ahead.tap, ahead.in_use = tap, True
        ready = list(self.ready)
        self.ready.clear()
        return ahead, ready

    def give_back(self, untaken: Iterable[T]) -> None:
        """Return the stream to its owner, with the messages that the session's consumer did not take."""
        if self._ahead is not None:
            self._ahead.tap, self._ahead.in_use = None, False
        if not self.closed:
            self.ready.extendleft(reversed(list(untaken)))

    def forget(self) -> None:
        """End the iteration, and drop all messages and kept chunks."""
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
