"""Read messages asynchronously from any source of bytes, on asyncio (with any event loop) and trio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from claude_wire.codec.decoder import Decoder
from claude_wire.codec.stats import DecoderStats
from claude_wire.limits import DEFAULT_SPILL_BYTES
from claude_wire.native.overflow import DrainOptions, DrainStats
from claude_wire.streams.receiver import Receiver, require_decoder
from claude_wire.streams.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from typing_extensions import Self, Unpack

    from claude_wire.messages import InvalidLine, Message
    from claude_wire.native.overflow import Overflow, OverflowArguments
    from claude_wire.streams.sources import Source

T = TypeVar("T")


class MessageStream(Generic[T]):
    """Iterates over the messages in a source of bytes: ``async for message in stream``, or :meth:`batches`.

    Args:
        source: a descriptor (an ``int``) of a pipe, socket, terminal or file, or an object whose ``fileno()`` returns
            one; an :class:`asyncio.StreamReader`; an anyio ``ByteReceiveStream``; an asynchronous iterable of bytes; or
            any :class:`~claude_wire.streams.read_ahead.Chunks`, with ``receive``, ``final`` and ``aclose``.
            The stream duplicates a descriptor and leaves the original open. A pipe is non-blocking until the stream is
            closed. If a file object has bytes in its buffer, the stream does not read them. Cancelling a step (one
            ``await`` of the iteration) does not lose any bytes, but cancelling ends an asynchronous generator.
        decoder: turns lines into messages; None: ``Decoder()``. Do not use the decoder for anything else.
        overflow, spill_limit: for descriptors: what happens when nobody reads and the waiting bytes exceed the
            process-wide byte budget (:func:`~claude_wire.streams.set_byte_budget`). ``"pause"``: the stream stops
            reading, so the writer must wait. ``"spill"``: the stream writes the bytes to a temporary file; when this
            file has ``spill_limit`` bytes, the stream pauses. ``"error"``: the stream pauses, and the next step raises
            ByteBudgetError. On systems other than Linux, the stream does not read ahead: the writer must wait when the
            pipe is full, and ``"spill"`` and ``"error"`` are refused.

    An exception does not end the iteration: the next step continues after its cause. If the source itself fails, the
    next steps return the messages that were read earlier (the last line may be cut), and then the iteration ends. It
    also ends after :meth:`aclose`. A stream belongs to one event loop, to one task at a time, and to the process that
    created it.

    Raises:
        OSError: the descriptor cannot be duplicated, or (in a step) read.
        TypeError: ``source`` is not a source of bytes, or ``decoder`` is not a :class:`~claude_wire.Decoder`.
        HandleError: in a step, if another task is iterating, or in another event loop or a forked child.
        InvalidLineError: in a step, with ``Decoder(on_invalid="raise")``.
        ByteBudgetError: in a step, with ``overflow="error"``.
        NotImplementedError: ``overflow`` is not ``"pause"``, and the system is not Linux.
    """

    @overload
    def __init__(
        self: MessageStream[Message | InvalidLine],
        source: Source,
        decoder: None = None,
        **waiting: Unpack[OverflowArguments],
    ) -> None: ...
    @overload
    def __init__(self, source: Source, decoder: Decoder[T], **waiting: Unpack[OverflowArguments]) -> None: ...
    def __init__(
        self,
        source: Source,
        decoder: Decoder[Any] | None = None,
        *,
        overflow: Overflow = "pause",
        spill_limit: int = DEFAULT_SPILL_BYTES,
    ) -> None:
        options = DrainOptions(overflow, spill_limit)
        self._receiver: Receiver[T] = Receiver(require_decoder(decoder))
        self._receiver.chunks = open_source(source, options)
        self._ready = self._receiver.ready

    @property
    def stats(self) -> DecoderStats:
        """The number of lines, messages and bytes so far."""
        return self._receiver.decoder.stats

    @property
    def drain_stats(self) -> DrainStats | None:
        """How many of a pipe's bytes were read, kept and spilled. None if no drain reads the source (``overflow``)."""
        return self._receiver.drain_stats

    def __repr__(self) -> str:
        state = "ended" if self._receiver.ended else "open"
        return f"<{type(self).__name__} {state}: {self.stats.summary()}>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        ready = self._ready
        if not ready:
            ready.extend(await self._receiver.next_batch())
        return ready.popleft()

    def batches(self) -> Batches[T]:
        """Iterate over non-empty lists, each with the messages from one read.

        Iterating over lists saves about 0.1 µs per message.
        """
        return Batches(self, self._receiver.next_batch)

    async def aclose(self) -> None:
        """End the iteration, and release the stream's resources. Any task may call this, any number of times.

        If the source is an asynchronous generator, this closes it. Any other source stays open.
        """
        await self._receiver.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def receiver_of(stream: MessageStream[T]) -> Receiver[T]:
    """Return a stream's receiver, for a session that takes the stream over."""
    return stream._receiver  # pyright: ignore[reportPrivateUsage]  # the class is in this module


class Batches(Generic[T]):
    """Iterates over a :class:`MessageStream` in lists. :meth:`MessageStream.batches` returns it.

    Args:
        owner: the stream or session, for ``repr()``.
        take: returns the next list.
    """

    __slots__ = ("_owner", "_take")

    def __init__(self, owner: object, take: Callable[[], Coroutine[Any, Any, list[T]]]) -> None:
        self._owner = owner
        self._take = take

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._owner!r}>"

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Coroutine[Any, Any, list[T]]:
        return self._take()
