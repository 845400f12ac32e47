"""Messages from any source of bytes, asynchronously, on asyncio (with any loop) and trio."""

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
            A descriptor is duplicated and remains the caller's; a pipe becomes non-blocking until the stream is closed.
            Bytes in the buffer of a file object are not read. A step (one ``await`` of the iteration) may be cancelled
            without loss, except that cancelling ends an asynchronous generator.
        decoder: turns lines into messages; ``Decoder()`` if not given. Nobody else may use it.
        overflow, spill_limit: for descriptors, what happens when nobody reads and the waiting bytes exceed the budget
            of the process (:func:`~claude_wire.streams.set_byte_budget`). ``"pause"``: the writer has to wait.
            ``"spill"``: the bytes go to a temporary file; above ``spill_limit`` bytes in it the writer has to wait.
            ``"error"``: the writer has to wait, and the next step raises. Elsewhere than on Linux nothing is read
            ahead: the writer has to wait as soon as the pipe is full, and ``"spill"`` and ``"error"`` are refused.

    An exception does not end the iteration: the next step continues after its cause. When the source itself has failed,
    the next steps give the messages read before, with a last line that may be cut, and then the end. After the end, and
    after :meth:`aclose`, there are no more steps. A stream belongs to one event loop, to one task at a time, and to the
    process that made it.

    Raises:
        OSError: the descriptor cannot be duplicated, or (by a step) read.
        TypeError: ``source`` is none of the above, or ``decoder`` is not a :class:`~claude_wire.Decoder`.
        HandleError: by a step, another task is iterating, or this is another event loop or a forked child.
        InvalidLineError: by a step, with ``Decoder(on_invalid="raise")``.
        ByteBudgetError: by a step, with ``overflow="error"``.
        NotImplementedError: an ``overflow`` other than ``"pause"`` elsewhere than on Linux.
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
        """Counts of the bytes of a pipe so far: read, kept, spilled. None if the source has no drain."""
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
        """End the iteration, and release the stream's resources. Any task may call this, also repeatedly.

        A source that is an asynchronous generator is closed. Any other source remains the caller's.
        """
        await self._receiver.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def receiver_of(stream: MessageStream[T]) -> Receiver[T]:
    """The receiver of a stream, for a session that takes the stream over."""
    return stream._receiver  # pyright: ignore[reportPrivateUsage]  # of this module


class Batches(Generic[T]):
    """Iterates over a :class:`MessageStream` in lists; made by its ``batches()``.

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
