"""Messages from any source of bytes, asynchronously, on asyncio (with any loop) and trio.

Knows chunks and when to wait for the next one; not what a process is. The bytes of a pipe, socket or terminal come
through a :class:`~claude_wire.draining.Drain`, which takes them off the system's hands while nobody iterates.

How it waits: while a task waits for messages, the event loop reads the pipe itself, in the very callback that tells of
readability. When no task waits it reads one chunk ahead, then stops looking; from then on the drain's thread does.
How it shares the loop: after 1 ms of reading without a pause it lets other tasks run, then goes on. Decoding is not
interrupted: a chunk of 64 KiB takes about 0.1 ms, but a single line is decoded at once, however long it is. A line of
100 MB, a string of ASCII, holds the loop for about {LONG}.
"""

from __future__ import annotations

import os
import sys
import weakref
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, overload

from claude_wire._inbox import Inbox
from claude_wire.codec import Decoder, DecoderStats
from claude_wire.draining import DEFAULT_SPILL_BYTES, Drain, DrainStats, ThreadDrain, open_drain
from claude_wire.errors import HandleError
from claude_wire.framing import BLOCK_BYTES

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterable, AsyncIterator
    from types import TracebackType

    from anyio.abc import ByteReceiveStream
    from typing_extensions import Self

    from claude_wire.messages import InvalidLine, Message

    class HasFileno(Protocol):
        def fileno(self) -> int: ...

    Source = int | HasFileno | asyncio.StreamReader | ByteReceiveStream | AsyncIterable[bytes]

__all__ = ["Batches", "MessageStream"]

T = TypeVar("T")

#: Seconds of reading without a pause after which other tasks are let run.
SLICE_SECONDS = 0.001


class MessageStream(Generic[T]):
    """Iterates over what a source of bytes says: ``async for message in stream``, or in lists with :meth:`batches`.

    Args:
        source: a descriptor (an ``int``) of a pipe, socket, terminal or file, or an object whose ``fileno()`` gives
            one; an :class:`asyncio.StreamReader`; an anyio ``ByteReceiveStream``; or an asynchronous iterable of bytes.
            A descriptor is duplicated and remains the caller's; a pipe becomes non-blocking until the stream is closed.
        decoder: says what messages become, and what is done with bad lines; ``Decoder()`` if not given. It must not be
            used otherwise.
        overflow, spill_limit: for descriptors, what happens when nobody reads and the bytes that wait exceed the budget
            of the process; see :class:`~claude_wire.Drain`.

    An exception does not end the iteration: the next step goes on behind what caused it. After the end, and after
    :meth:`aclose`, there are no more steps. A stream belongs to one event loop, and to one task at a time.

    Raises:
        OSError: the descriptor cannot be duplicated, or (by a step) read.
        TypeError: ``source`` is none of the above.
        HandleError: by a step, another task is iterating.
        InvalidLineError: by a step, with ``Decoder(on_invalid="raise")``.
        ByteBudgetError: by a step, with ``overflow="error"``.
    """

    @overload
    def __init__(
        self: MessageStream[Message | InvalidLine],
        source: Source,
        decoder: None = None,
        *,
        overflow: Literal["pause", "spill", "error"] = ...,
        spill_limit: int = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        source: Source,
        decoder: Decoder[T],
        *,
        overflow: Literal["pause", "spill", "error"] = ...,
        spill_limit: int = ...,
    ) -> None: ...
    def __init__(
        self,
        source: Source,
        decoder: Decoder[Any] | None = None,
        *,
        overflow: Literal["pause", "spill", "error"] = "pause",
        spill_limit: int = DEFAULT_SPILL_BYTES,
    ) -> None:
        self._begin(_chunks(source, overflow, spill_limit), decoder if decoder is not None else Decoder())

    def _begin(self, chunks: Chunks, decoder: Decoder[T]) -> None:
        self._chunks = chunks
        self._inbox: Inbox[T] = Inbox(decoder)
        self._ready = self._inbox.ready
        # Whether the source has ended; whether the stream was closed; whether a task is in the middle of a step.
        self._ended = self._closed = self._busy = False

    @property
    def stats(self) -> DecoderStats:
        """What was decoded so far."""
        return self._inbox.decoder.stats

    @property
    def drain_stats(self) -> DrainStats | None:
        """What became of the bytes of a pipe so far; None for sources without a drain."""
        return self._chunks.drain.stats if isinstance(self._chunks, Drained) else None

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
            self._closed = self._ended = True
            self._inbox.clear()
            await self._chunks.aclose()

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
            if self._ready:
                continue
            if self._ended:
                await self._finish()
                raise StopAsyncIteration
            data = await self._chunks.receive()
            if data:
                batch = inbox.feed(data)
            elif self._closed:
                raise StopAsyncIteration
            else:
                batch, self._ended = self._end_of_data()
            if batch:
                self._saw(batch)
                return batch

    def _end_of_data(self) -> tuple[list[T], bool]:
        """What is left in the decoder, and whether that was all."""
        return self._inbox.close()

    def _saw(self, batch: list[T]) -> None:
        """Called with each batch, once, before anyone gets it."""

    async def _finish(self) -> None:
        """Called at each step after the end of the source, when all was given."""
        await self.aclose()


class Batches(Generic[T]):
    """Iterates over a :class:`MessageStream` in lists; made by its ``batches()``."""

    __slots__ = ("_stream",)

    def __init__(self, stream: MessageStream[T]) -> None:
        self._stream = stream

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[T]:
        return await self._stream._next_batch()  # pyright: ignore[reportPrivateUsage]  # the other half of the same class


# --- where chunks come from -------------------------------------------------------------------------------------------


class Chunks(Protocol):
    async def receive(self) -> bytes | memoryview:
        """The next bytes, at least one; none at the end. A view is valid until the next call."""
        ...

    async def aclose(self) -> None: ...


def _chunks(source: Any, overflow: Literal["pause", "spill", "error"], spill_limit: int) -> Chunks:
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and isinstance(source, asyncio.StreamReader):
        return _FromStreamReader(source)
    if hasattr(source, "fileno"):
        source = source.fileno()
    if isinstance(source, int) and not isinstance(source, bool):
        try:
            return Drained(open_drain(source, overflow=overflow, spill_limit=spill_limit))
        except PermissionError:  # a file is always readable: there is nothing to wait for
            return _FromFile(source)
    from anyio.abc import ByteReceiveStream

    if isinstance(source, ByteReceiveStream):
        return _FromByteStream(source)
    if hasattr(source, "__aiter__"):
        return _FromIterable(source)
    raise TypeError(
        "MessageStream takes a descriptor, an asyncio.StreamReader, an anyio byte stream or an asynchronous iterable "
        f"of bytes, not {type(source).__name__}"
    )


class _Slices:
    """Lets other tasks run when a source gives one chunk after another without ever waiting."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = 0.0

    async def pause(self) -> None:
        if monotonic() - self._since > SLICE_SECONDS:
            from anyio.lowlevel import checkpoint

            await checkpoint()
            self._since = monotonic()


class _FromStreamReader:
    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._slices = _Slices()

    async def receive(self) -> bytes:
        await self._slices.pause()
        return await self._reader.read(BLOCK_BYTES)

    async def aclose(self) -> None:
        pass


class _FromByteStream:
    def __init__(self, stream: ByteReceiveStream) -> None:
        self._stream = stream
        self._slices = _Slices()

    async def receive(self) -> bytes:
        from anyio import EndOfStream

        await self._slices.pause()
        try:
            return await self._stream.receive(BLOCK_BYTES)
        except EndOfStream:
            return b""

    async def aclose(self) -> None:
        pass


class _FromIterable:
    def __init__(self, iterable: AsyncIterable[bytes]) -> None:
        self._iterator: AsyncIterator[bytes] = iterable.__aiter__()
        self._slices = _Slices()

    async def receive(self) -> bytes:
        data = b""
        while not data:  # an empty chunk is not the end
            await self._slices.pause()
            try:
                data = await self._iterator.__anext__()
            except StopAsyncIteration:
                break
        return data

    async def aclose(self) -> None:
        aclose = getattr(self._iterator, "aclose", None)
        if aclose is not None:
            await aclose()


class _FromFile:
    def __init__(self, fd: int) -> None:
        self._fd = os.dup(fd)
        self._owner = weakref.finalize(self, os.close, self._fd)
        self._slices = _Slices()

    async def receive(self) -> bytes:
        await self._slices.pause()
        return os.read(self._fd, BLOCK_BYTES) if self._owner.alive else b""

    async def aclose(self) -> None:
        self._owner()


# --- waiting for a drain ----------------------------------------------------------------------------------------------


class Drained:
    """The chunks of a drain, read as described at the top of the module."""

    __slots__ = ("_resumed", "_stopped", "_waiter", "drain")

    def __init__(self, drain: Drain | ThreadDrain) -> None:
        self.drain = drain
        self._waiter: _AsyncioWaiter | _TrioWaiter | None = None
        self._resumed = 0.0
        self._stopped = False

    async def receive(self) -> bytes | memoryview:
        if self._stopped:
            return b""
        waiter = self._waiter
        if waiter is None:
            waiter = self._waiter = _waiter(self.drain)
        # Waiting, even for what is there already, is what lets other tasks run.
        data = waiter.read() if monotonic() - self._resumed < SLICE_SECONDS else waiter.take()
        while data is None:
            if waiter.closed:
                return b""
            if self.drain.watched:
                # What was watched, the end of the writer, may have come after the last read.
                return waiter.read() or b""
            await waiter.wait()
            self._resumed = monotonic()
            data = waiter.read()
        return data

    def stop(self) -> None:
        """End the iteration, also for a task that is waiting; the drain remains."""
        if self._waiter is None:
            self._stopped = True
        else:
            self._waiter.close()

    async def aclose(self) -> None:
        self.stop()
        self.drain.close()


def running_trio() -> bool:
    """Whether the caller runs in trio rather than in asyncio."""
    if "trio" not in sys.modules:
        return False
    import sniffio

    return sniffio.current_async_library() == "trio"


def _waiter(drain: Drain | ThreadDrain) -> _AsyncioWaiter | _TrioWaiter:
    """What waits for the drain in the event loop that is running."""
    if running_trio():
        return _TrioWaiter(drain)
    import asyncio

    return _AsyncioWaiter(drain, asyncio.get_running_loop())


class _AsyncioWaiter:
    """Reads in the loop's callback, one chunk ahead of the task that takes it.

    The callback stays registered from wait to wait: a registration costs two system calls. When a chunk lies there that
    nobody took, it is removed, or a loop would spin on a pipe that stays readable.

    The loop knows this object by a weak reference only, so that a stream that was dropped does not live on in it.
    """

    __slots__ = ("__weakref__", "_arrived", "_drain", "_error", "_fd", "_future", "_loop", "_watching", "closed")

    def __init__(self, drain: Drain | ThreadDrain, loop: asyncio.AbstractEventLoop) -> None:
        self._drain = drain
        self._loop = loop
        self._fd = drain.fileno() if isinstance(drain, Drain) else None
        self._future: asyncio.Future[None] | None = None
        self._arrived: bytes | memoryview | None = None
        self._error: Exception | None = None
        self._watching = False
        self.closed = False

    def take(self) -> bytes | memoryview | None:
        """What the callback read ahead."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        data, self._arrived = self._arrived, None
        return data

    def read(self) -> bytes | memoryview | None:
        """What can be had without waiting."""
        data = self.take()
        return self._drain.read() if data is None and not self.closed else data

    async def wait(self) -> None:
        """Until there may be something to read."""
        if not self._watching:
            self._watch()
        if self._arrived is not None or self._error is not None:
            return
        self._future = self._loop.create_future()
        try:
            await self._future
        finally:
            self._future = None

    def close(self) -> None:
        self.closed = True
        self._unwatch()
        self._arrived = self._error = None
        self._wake()

    def _watch(self) -> None:
        this = weakref.ref(self)
        self._watching = True
        if self._fd is not None:
            self._loop.add_reader(self._fd, _readable, this)
        elif isinstance(self._drain, ThreadDrain):
            loop = self._loop
            self._drain.set_wakeup(lambda: loop.call_soon_threadsafe(_readable, this))
            loop.call_soon(_readable, this)  # for what came before

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            if self._fd is None:
                if isinstance(self._drain, ThreadDrain):
                    self._drain.set_wakeup(None)
            elif not self._loop.is_closed():
                self._loop.remove_reader(self._fd)

    def readable(self) -> None:
        """The loop's callback."""
        if self._arrived is not None or self._error is not None:
            self._unwatch()
            return
        try:
            self._arrived = self._drain.read()
        except Exception as error:
            self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def __del__(self) -> None:
        # The collector may run in any thread, and the loop must forget the descriptor before its number is used again.
        if self._watching and not self._loop.is_closed():
            if self._loop.is_running() and not _runs_here(self._loop):
                drain, loop, fd = self._drain, self._loop, self._fd
                if fd is not None:
                    loop.call_soon_threadsafe(lambda: (loop.remove_reader(fd), drain.close()))
            else:
                self._unwatch()


def _readable(waiter: weakref.ref[_AsyncioWaiter]) -> None:
    alive = waiter()
    if alive is not None:
        alive.readable()


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    import asyncio

    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class _TrioWaiter:
    """Waits for readability, then lets the caller read."""

    __slots__ = ("_drain", "_event", "closed")

    def __init__(self, drain: Drain | ThreadDrain) -> None:
        import trio

        self._drain = drain
        self._event = trio.Event()
        self.closed = False
        if isinstance(drain, ThreadDrain):
            token = trio.lowlevel.current_trio_token()
            drain.set_wakeup(lambda: token.run_sync_soon(self._wake))

    def take(self) -> bytes | memoryview | None:
        return None

    def read(self) -> bytes | memoryview | None:
        return None if self.closed else self._drain.read()

    async def wait(self) -> None:
        import trio

        if isinstance(self._drain, ThreadDrain):
            self._event = trio.Event()
            if not self._drain.ready:
                await self._event.wait()
            else:
                await trio.lowlevel.checkpoint()
            return
        try:
            await trio.lowlevel.wait_readable(self._drain.fileno())
        except trio.ClosedResourceError:
            if not self.closed:
                raise

    def close(self) -> None:
        import trio

        self.closed = True
        self._wake()
        if isinstance(self._drain, Drain):
            trio.lowlevel.notify_closing(self._drain.fileno())

    def _wake(self) -> None:
        self._event.set()
