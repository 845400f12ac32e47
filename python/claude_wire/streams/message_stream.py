"""Read messages from any source of bytes, asynchronously, on asyncio (with any event loop) and trio."""

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
    """Iterates over the messages of a source of bytes: ``async for message in stream``, or :meth:`batches`.

    Args:
        source: a descriptor (an ``int``) of a pipe, socket, terminal or file, or an object whose ``fileno()`` gives
            one; an :class:`asyncio.StreamReader`; an anyio ``ByteReceiveStream``; an asynchronous iterable of bytes; or
            any :class:`~claude_wire.streams.read_ahead.Chunks`, with ``receive``, ``final`` and ``aclose``.
            The stream duplicates a descriptor and leaves the original open; a pipe is non-blocking until the stream is
            closed. Bytes in the buffer of a file object are not read. Cancelling a step (one ``await`` of the
            iteration) loses no bytes; but cancelling ends an asynchronous generator.
        decoder: turns lines into messages; None: ``Decoder()``. Use the decoder for nothing else.
        overflow, spill_limit: for descriptors: what happens when nobody reads, and the waiting bytes exceed the byte
            budget of the process (:func:`~claude_wire.streams.set_byte_budget`). ``"pause"``: the stream reads no more,
            so the writer has to wait. ``"spill"``: the bytes go to a temporary file, of at most ``spill_limit`` bytes;
            then as ``"pause"``. ``"error"``: as ``"pause"``, and the next step raises ByteBudgetError. Systems other
            than Linux read nothing ahead: the writer has to wait as soon as the pipe is full, and ``"spill"`` and
            ``"error"`` are refused.

    An exception does not end the iteration: the next step continues after its cause. If the source itself has failed,
    the next steps give the messages that were read before, with a last line that may be cut, and then the end. After
    the end, and after :meth:`aclose`, the iteration is over. A stream belongs to one event loop, to one task at a time,
    and to the process that made it.

    Raises:
        OSError: the descriptor cannot be duplicated, or (in a step) read.
        TypeError: ``source`` is not a source of bytes, or ``decoder`` is not a :class:`~claude_wire.Decoder`.
        HandleError: in a step: another task is iterating, or this is another event loop or a forked child.
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
        """Counts of lines, messages and bytes so far."""
        return self._receiver.decoder.stats

    @property
    def drain_stats(self) -> DrainStats | None:
        """Counts of the bytes of a pipe: read, kept, spilled. None if no drain reads the source (see ``overflow``)."""
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
        """Iterate over non-empty lists, each with the messages of one read.

        This saves about 0.1 µs a message.
        """
        return Batches(self, self._receiver.next_batch)

    async def aclose(self) -> None:
        """End the iteration, and release the stream's resources. Any task may call this, and more than once.

        This closes a source that is an asynchronous generator, and leaves any other source open.
        """
        await self._receiver.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def receiver_of(stream: MessageStream[T]) -> Receiver[T]:
    """The receiver of a stream, for a session that takes the stream over."""
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
