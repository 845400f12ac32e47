"""Messages from any source of bytes, asynchronously, on asyncio (with any loop) and trio.

Knows chunks and when to wait for the next one; not what a process is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, get_args, overload

from claude_wire.codec.decoder import Decoder
from claude_wire.codec.stats import DecoderStats
from claude_wire.errors import HandleError
from claude_wire.foundation.arguments import kind_of, require_one_of
from claude_wire.io.inbox import Inbox
from claude_wire.io.read_ahead import Chunks, ReadAhead, Tap
from claude_wire.io.sources import Drained, open_source
from claude_wire.limits import DEFAULT_SPILL_BYTES
from claude_wire.native.overflow import DrainStats, Overflow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from typing_extensions import Self

    from claude_wire.io.sources import Source
    from claude_wire.messages import InvalidLine, Message

__all__ = ["Batches", "MessageStream", "read_ahead", "stop_reading_ahead"]

T = TypeVar("T")


class MessageStream(Generic[T]):
    """Iterates over what a source of bytes says: ``async for message in stream``, or in lists with :meth:`batches`.

    Args:
        source: a descriptor (an ``int``) of a pipe, socket, terminal or file, or an object whose ``fileno()`` gives
            one; an :class:`asyncio.StreamReader`; an anyio ``ByteReceiveStream``; or an asynchronous iterable of bytes.
            A descriptor is duplicated and remains the caller's; a pipe becomes non-blocking until the stream is closed.
            Bytes that a file object has read into its own buffer already are not seen.
            Cancelling a step loses nothing, except with a generator, which cancellation ends.
        decoder: says what messages become, and what is done with bad lines; ``Decoder()`` if not given. It must not be
            used otherwise.
        overflow, spill_limit: for descriptors, what happens when nobody reads and the bytes that wait exceed the budget
            of the process; see :class:`~claude_wire.Drain`.

    An exception does not end the iteration: the next step goes on behind what caused it. If the source itself has
    failed, that is what is left, a last line that was cut, and then the end. After the end, and after :meth:`aclose`,
    there are no more steps. A stream belongs to one event loop, to one task at a time, and to the process that made it.

    Raises:
        OSError: the descriptor cannot be duplicated, or (by a step) read.
        TypeError: ``source`` is none of the above, or ``decoder`` is no :class:`~claude_wire.Decoder`.
        HandleError: by a step, another task is iterating, or this is another event loop or a forked child.
        InvalidLineError: by a step, with ``Decoder(on_invalid="raise")``.
        ByteBudgetError: by a step, with ``overflow="error"``.
    """

    _chunks: Chunks

    @overload
    def __init__(
        self: MessageStream[Message | InvalidLine],
        source: Source,
        decoder: None = None,
        *,
        overflow: Overflow = ...,
        spill_limit: int = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        source: Source,
        decoder: Decoder[T],
        *,
        overflow: Overflow = ...,
        spill_limit: int = ...,
    ) -> None: ...
    def __init__(
        self,
        source: Source,
        decoder: Decoder[Any] | None = None,
        *,
        overflow: Overflow = "pause",
        spill_limit: int = DEFAULT_SPILL_BYTES,
    ) -> None:
        require_one_of("overflow", overflow, get_args(Overflow))
        self._begin(decoder)
        self._chunks = open_source(source, overflow, spill_limit)

    def _begin(self, decoder: Decoder[Any] | None) -> None:
        """All but where the chunks come from."""
        if not isinstance(decoder, (Decoder, type(None))):
            raise TypeError(f"decoder must be a Decoder(...), such as Decoder(dict), not {kind_of(decoder)}")
        self._inbox: Inbox[T] = Inbox(cast("Decoder[T]", decoder or Decoder()))
        self._ready = self._inbox.ready
        # Whether the source has failed; has ended; whether the stream was closed; whether a task is in a step.
        self._failed = self._ended = self._closed = self._busy = False

    @property
    def stats(self) -> DecoderStats:
        """What was decoded so far."""
        return self._inbox.decoder.stats

    @property
    def drain_stats(self) -> DrainStats | None:
        """What became of the bytes of a pipe so far; None for sources without a drain."""
        chunks = self._chunks.source if isinstance(self._chunks, ReadAhead) else self._chunks
        return chunks.drain.stats if isinstance(chunks, Drained) else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._state()}: {self.stats.summary()}>"

    def _state(self) -> str:
        """Where it stands, in a word."""
        return "ended" if self._ended or self._closed else "open"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        ready = self._ready
        if not ready:
            ready.extend(await self._next_batch())
        return ready.popleft()

    def batches(self) -> Batches[T]:
        """Iterate over lists of messages instead, each of at least one: what one read of the source gave.

        A list costs less than its messages one by one: about 0.1 µs a message.
        """
        return Batches(self)

    async def aclose(self) -> None:
        """Stop, and give back what the stream holds. May be called again, and from another task than the iterating one.

        An asynchronous generator that was given as the source is closed; what else was given remains the caller's.
        """
        if not self._closed:
            self._forget()
            await self._chunks.aclose()

    def _forget(self) -> None:
        """There are no more steps, and nothing is kept for them."""
        self._closed = self._ended = True
        self._inbox.clear()
        if isinstance(self._chunks, ReadAhead):
            self._chunks.forget()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _next_batch(self) -> list[T]:
        """What can be taken now, at least one message."""
        if self._busy:
            raise HandleError("another task is iterating over this stream")
        self._busy = True
        try:
            return await self._wait_for_batch()
        finally:
            self._busy = False

    async def _wait_for_batch(self) -> list[T]:
        inbox = self._inbox
        while True:
            if self._ready:
                batch = list(self._ready)
                self._ready.clear()
                return batch
            inbox.resume()
            if self._ready:  # what an exception held back
                self._saw(list(self._ready))
                continue
            if self._ended:
                await self._finish()
                raise StopAsyncIteration
            data = b"" if self._failed else await self._receive()
            if self._closed:
                raise StopAsyncIteration
            if data:
                batch = inbox.feed(data)
            else:
                batch, self._ended = self._end_of_data()
            if batch:
                self._saw(batch)
                return batch

    async def _receive(self) -> bytes | memoryview:
        try:
            return await self._chunks.receive()
        except self._chunks.final:
            self._failed = True
            raise

    def _end_of_data(self) -> tuple[list[T], bool]:
        """What is left in the decoder, and whether that was all."""
        return self._inbox.close()

    def _saw(self, batch: list[T]) -> None:
        """Called with each batch, once, before anyone gets it."""

    async def _finish(self) -> None:
        """Called at each step after the end of the source, when all was given."""
        await self.aclose()


def read_ahead(stream: MessageStream[T], tap: Tap | None = None) -> tuple[ReadAhead, Decoder[T], list[T]]:
    """Have a stream read through a :class:`ReadAhead` from now on.

    Returned with the decoder that it feeds, and with what that has given already.
    """
    inner = stream._chunks  # pyright: ignore[reportPrivateUsage]  # of this module
    if not isinstance(inner, ReadAhead):
        ahead = stream._chunks = ReadAhead(inner, tap)  # pyright: ignore[reportPrivateUsage]
    elif inner.in_use:
        raise HandleError("this stream has a session already")
    else:
        ahead = inner
        ahead.tap, ahead.in_use = tap, True
    inbox = stream._inbox  # pyright: ignore[reportPrivateUsage]
    ready = list(inbox.ready)
    inbox.ready.clear()
    return ahead, inbox.decoder, ready


def stop_reading_ahead(stream: MessageStream[T], untaken: Iterable[T]) -> None:
    """Leave the stream to its owner again, with what was taken out of it and given to nobody."""
    ahead = stream._chunks  # pyright: ignore[reportPrivateUsage]
    if isinstance(ahead, ReadAhead):
        ahead.tap, ahead.in_use = None, False
    if not stream._closed:  # pyright: ignore[reportPrivateUsage]
        stream._inbox.ready.extendleft(reversed(list(untaken)))  # pyright: ignore[reportPrivateUsage]


class Batches(Generic[T]):
    """Iterates over a :class:`MessageStream` in lists; made by its ``batches()``."""

    __slots__ = ("_stream",)

    def __init__(self, stream: MessageStream[T]) -> None:
        self._stream = stream

    def __repr__(self) -> str:
        return f"<Batches of {self._stream!r}>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[T]:
        return await self._stream._next_batch()  # pyright: ignore[reportPrivateUsage]  # the other half of the same class
