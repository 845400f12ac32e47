"""The sources of bytes for a stream: descriptors, asyncio readers, anyio streams and asynchronous iterables.

On Linux, a :class:`~claude_wire.native.drain.Drain` reads a pipe, socket or terminal even while nobody iterates. On
other systems, a :class:`PlainPipe` reads only in a step of the iteration, so a slow reader makes the writer wait.

Waiting: while a task is waiting for messages, the event loop reads the pipe. (On asyncio, the callback for readability
reads it.) If no task is waiting, the callback reads one chunk ahead and unregisters itself. From then on, the drain's
thread reads the pipe, if there is a drain.

Sharing the loop: after reading for 1 ms without a pause, the stream lets other tasks run. Decoding is not interrupted.
Decoding a chunk of 64 KiB takes about 0.1 ms. A long line also arrives in chunks, but it is decoded in one call: a line
of 100 MB that is one ASCII string blocks the loop for 75 ms, or for 130 ms if every 60th character is an escape
(CPython 3.11, two cores, best of five).
"""

from __future__ import annotations

import os
import stat
import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import suppress
from errno import EBADF, EIO, EPERM
from io import UnsupportedOperation
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, cast

from claude_wire.errors import HandleError
from claude_wire.limits import BLOCK_BYTES
from claude_wire.native.drain import Drain
from claude_wire.native.library import error as library_error
from claude_wire.native.library import lib
from claude_wire.native.overflow import CHUNK_BYTES, DEFAULTS, DrainOptions, check_fd
from claude_wire.streams.tasks import Task
from claude_wire.support.waiting import cancel_scope, running_trio

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterable, AsyncIterator

    from anyio import CancelScope
    from anyio.abc import ByteReceiveStream

    from claude_wire.streams.read_ahead import Chunks

    class HasFileno(Protocol):
        def fileno(self) -> int: ...

    Source = int | HasFileno | asyncio.StreamReader | ByteReceiveStream | AsyncIterable[bytes] | Chunks

#: After reading for this many seconds without a pause, a stream lets other tasks run.
SLICE_SECONDS = 0.001


def open_source(source: Any, options: DrainOptions) -> Chunks:
    if hasattr(source, "receive") and hasattr(source, "final"):
        return cast("Chunks", source)
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and isinstance(source, asyncio.StreamReader):
        return _FromStreamReader(source)
    if hasattr(source, "fileno"):
        with suppress(UnsupportedOperation):  # io.BytesIO has the method, but no descriptor
            source = source.fileno()
    if isinstance(source, int) and not isinstance(source, bool):
        try:
            return PipeChunks(open_pipe(source, options))
        except PermissionError:  # a regular file, which is always readable
            return _FromFile(source)
    from anyio.abc import ByteReceiveStream

    if isinstance(source, ByteReceiveStream):
        return _FromByteStream(source)
    if hasattr(source, "__aiter__"):
        return _FromIterable(cast("AsyncIterable[bytes]", source))
    given = type(source).__name__
    hint = "; to read a file by its path, use read(path)" if isinstance(source, (str, os.PathLike)) else ""
    raise TypeError(
        "MessageStream takes a descriptor, a file object, a socket, an asyncio.StreamReader, an anyio byte stream or "
        f"an asynchronous iterable of bytes, not {given}{hint}"
    )


class Slices:
    """Lets other tasks run now and then, in a loop whose reads or writes never wait."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = 0.0

    async def pause(self) -> None:
        if monotonic() - self._since > SLICE_SECONDS:
            from anyio.lowlevel import checkpoint

            await checkpoint()
            self._since = monotonic()


class _FromOther(ABC):
    """Reads chunks with an asynchronous method of another object. :meth:`aclose` ends a running wait."""

    final: tuple[type[Exception], ...] = ()

    def __init__(self) -> None:
        self._scope: CancelScope | None = None
        self._slices = Slices()

    async def receive(self) -> bytes:
        with cancel_scope() as self._scope:
            try:
                await self._slices.pause()
                return await self._next()
            finally:
                self._scope = None
        return b""

    @abstractmethod
    async def _next(self) -> bytes: ...

    async def aclose(self) -> None:
        if self._scope is not None:
            self._scope.cancel()


class _FromStreamReader(_FromOther):
    final: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__()
        self._reader = reader

    async def _next(self) -> bytes:
        return await self._reader.read(BLOCK_BYTES)


class _FromByteStream(_FromOther):
    def __init__(self, stream: ByteReceiveStream) -> None:
        from anyio import BrokenResourceError, ClosedResourceError, EndOfStream

        super().__init__()
        self._stream = stream
        self._end = EndOfStream
        self.final = (OSError, BrokenResourceError, ClosedResourceError)

    async def _next(self) -> bytes:
        try:
            return await self._stream.receive(BLOCK_BYTES)
        except self._end:
            return b""


class _FromIterable(_FromOther):
    def __init__(self, iterable: AsyncIterable[bytes]) -> None:
        super().__init__()
        self._iterator: AsyncIterator[bytes] = iterable.__aiter__()

    async def _next(self) -> bytes:
        data = b""
        while not data:  # an empty chunk does not mean that the source ended
            await self._slices.pause()
            try:
                data = await self._iterator.__anext__()
            except StopAsyncIteration:
                break
        return data

    async def aclose(self) -> None:
        if self._scope is not None:
            self._scope.cancel()  # this also ends a generator that is waiting
        elif isinstance(self._iterator, AsyncGenerator):
            await self._iterator.aclose()  # pyright: ignore[reportUnknownMemberType]  # the type of asend() is unknown


class _FromFile:
    final: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, fd: int) -> None:
        self._fd = os.dup(fd)
        self._owner = weakref.finalize(self, os.close, self._fd)
        self._slices = Slices()

    async def receive(self) -> bytes:
        await self._slices.pause()
        return os.read(self._fd, BLOCK_BYTES) if self._owner.alive else b""

    async def aclose(self) -> None:
        self._owner()


# --- pipes, sockets and terminals -------------------------------------------------------------------------------------


class PlainPipe:
    """Reads a pipe, socket or terminal, like a :class:`~claude_wire.native.drain.Drain`, but without reading ahead.

    While nobody reads, the pipe fills up, and its writer waits. The object reads a duplicate of ``fd``. Until
    :meth:`close`, the pipe is non-blocking, even for other processes that share it.

    Raises:
        OSError: EPERM (PermissionError) if ``fd`` is a file; EBADF if it is closed or is the write end of a pipe.
        HandleError: in any method, after :meth:`close` or in a forked child.
    """

    __slots__ = ("__weakref__", "_fd", "_finalize", "_pid")

    #: Always False. See :attr:`.Drain.watched`.
    watched = False

    def __init__(self, fd: int) -> None:
        import fcntl  # not on Windows

        check_fd(fd)
        status = os.fstat(fd)
        if not (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode) or os.isatty(fd)):
            raise PermissionError(EPERM, os.strerror(EPERM))
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
            raise OSError(EBADF, os.strerror(EBADF))  # otherwise waiting for readability would never end
        self._fd = os.dup(fd)
        self._pid = os.getpid()
        file = status.st_dev, status.st_ino
        if os.get_blocking(fd) or any(file == other for other, _ in list(_to_block)):
            _to_block.add((file, self._fd))
        self._finalize = weakref.finalize(self, _release, file, self._fd, self._pid)
        os.set_blocking(self._fd, False)

    def fileno(self) -> int:
        if self._pid != os.getpid():
            raise library_error(lib.CW_ERROR_FORKED)
        if not self._finalize.alive:
            raise library_error(lib.CW_ERROR_STALE)
        return self._fd

    def read(self) -> bytes | None:
        """Return the next bytes, ``b""`` at the end of the stream, or None if no bytes are available now."""
        fd = self.fileno()
        try:
            return os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == EIO and os.isatty(fd):  # the other end of the terminal was closed
                return b""
            raise

    def close(self) -> None:
        """Close the descriptor. A second call does nothing."""
        self._finalize()


#: Open pipes that were blocking, as pairs of the pipe (its device and inode) and a descriptor. When the last descriptor
#: of a pipe is closed, the pipe becomes blocking again.
_to_block: set[tuple[tuple[int, int], int]] = set()


def _release(file: tuple[int, int], fd: int, pid: int) -> None:
    if (file, fd) in _to_block:
        _to_block.discard((file, fd))
        # A forked child must not change the mode, because it shares the mode with its parent.
        if pid == os.getpid() and not any(file == other for other, _ in list(_to_block)):
            with suppress(OSError):
                os.set_blocking(fd, True)
    os.close(fd)


def open_pipe(fd: int, options: DrainOptions = DEFAULTS) -> Drain | PlainPipe:
    """Return a :class:`~claude_wire.native.drain.Drain` on Linux, or a :class:`PlainPipe` on other systems."""
    return Drain(fd, options) if sys.platform == "linux" else PlainPipe(fd)


class PipeChunks:
    """Reads chunks from a pipe, as the module docstring describes."""

    __slots__ = ("_discarding", "_resumed", "_stopped", "_waiter", "pipe")

    final: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, pipe: Drain | PlainPipe) -> None:
        self.pipe: Drain | PlainPipe = pipe
        # After discard() of a PlainPipe, the object that reads and drops the remaining bytes, and its task.
        self._discarding: tuple[PipeChunks, Task] | None = None
        self._waiter: _AsyncioWaiter | _TrioWaiter | None = None
        self._resumed = 0.0
        self._stopped = False

    async def receive(self) -> bytes | memoryview:
        if self._stopped:
            return b""
        waiter = self._waiter
        if waiter is None:
            waiter = self._waiter = _waiter(self.pipe)
        # After SLICE_SECONDS, wait even if a chunk is available, to let other tasks run.
        data = waiter.read() if monotonic() - self._resumed < SLICE_SECONDS else waiter.take()
        while data is None:
            if waiter.closed:
                return b""
            if self.pipe.watched:
                from anyio.lowlevel import checkpoint

                # The process has exited. It may have written after the last read, so read once more. Then stop, even if
                # another process still holds the pipe open.
                await checkpoint()
                self._resumed = monotonic()
                return waiter.read() or b""
            await waiter.wait()
            self._resumed = monotonic()
            data = waiter.read()
        return data

    def stop(self) -> None:
        """End the iteration, even if a task is waiting. The pipe stays open."""
        if self._waiter is None:
            self._stopped = True
        else:
            self._waiter.close()

    def discard(self) -> None:
        """End the iteration, and drop all later bytes, so that the writer never waits. Return immediately."""
        self.stop()
        with suppress(RuntimeError):  # the pipe is closed or garbage collected, or no event loop runs
            if isinstance(self.pipe, Drain):
                self.pipe.discard()
            elif self._discarding is None:
                rest = PipeChunks(self.pipe)
                self._discarding = rest, Task(rest._skip, "claude-wire-discard")

    async def _skip(self) -> None:
        with suppress(OSError):
            while await self.receive():
                pass

    def close(self) -> None:
        self.stop()
        if self._discarding is not None:
            self._discarding[0].stop()
        self.pipe.close()

    async def aclose(self) -> None:
        self.close()


def _waiter(pipe: Drain | PlainPipe) -> _AsyncioWaiter | _TrioWaiter:
    """Return the waiter for the running event loop."""
    if running_trio():
        return _TrioWaiter(pipe)
    import asyncio

    return _AsyncioWaiter(pipe, asyncio.get_running_loop())


class _AsyncioWaiter:
    """Reads in a callback of the event loop, one chunk ahead of the task that takes the chunk.

    The callback stays registered between waits, because registering costs two system calls. If the last chunk was not
    taken, the callback unregisters itself, because the loop would otherwise spin on a pipe that stays readable.

    The loop holds a :class:`_Registration` with a weak reference to the waiter, so a dropped stream is garbage
    collected.
    """

    __slots__ = (
        "__weakref__",
        "_arrived",
        "_error",
        "_fd",
        "_future",
        "_loop",
        "_pid",
        "_pipe",
        "_registration",
        "_running_loop",
        "_watching",
        "closed",
    )

    def __init__(self, pipe: Drain | PlainPipe, loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        # Set first, because fileno() may raise (after a fork), and __del__ needs the attribute.
        self._watching = False
        self._pipe = pipe
        self._loop = loop
        self._running_loop = asyncio.get_running_loop
        self._pid = os.getpid()
        self._fd = pipe.fileno()
        self._registration = _Registration(self, pipe)
        self._future: asyncio.Future[None] | None = None
        self._arrived: bytes | memoryview | None = None
        self._error: Exception | None = None
        self.closed = False

    def take(self) -> bytes | memoryview | None:
        """Return the chunk that the callback read ahead, or None if there is none."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        data, self._arrived = self._arrived, None
        return data

    def read(self) -> bytes | memoryview | None:
        """Read without waiting. Return None if no bytes are available."""
        data = self.take()
        return self._pipe.read() if data is None and not self.closed else data

    async def wait(self) -> None:
        """Wait until bytes may be available."""
        if os.getpid() != self._pid:
            raise HandleError("this stream was made before a fork: only the parent may use it")
        if not self._runs_here():
            raise HandleError(
                "this stream belongs to the event loop in which it was first read; open and use it in one asyncio.run()"
            )
        if not self._watching:
            self._loop.add_reader(self._fd, self._registration.readable)
            self._watching = True
        if self._arrived is not None or self._error is not None:
            return
        self._future = self._loop.create_future()
        self._registration.held = self
        try:
            await self._future
        finally:
            self._future = self._registration.held = None

    def close(self) -> None:
        self.closed = True
        self._unwatch()
        self._arrived = self._error = None
        self._wake()

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            # After a fork, the child shares the loop's epoll instance with its parent.
            if not self._loop.is_closed() and os.getpid() == self._pid:
                self._loop.remove_reader(self._fd)

    def readable(self) -> None:
        if self._arrived is not None or self._error is not None:
            self._unwatch()
            return
        try:
            self._arrived = self._pipe.read()
        except Exception as error:
            self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._future is not None and not self._future.done() and not self._loop.is_closed():
            self._future.set_result(None)

    def _runs_here(self) -> bool:
        try:
            return self._running_loop() is self._loop
        except RuntimeError:
            return False

    def __del__(self) -> None:
        # The garbage collector may run in any thread, but only the loop's thread may unregister from a running loop.
        if not self._loop.is_running() or self._runs_here():
            self._unwatch()
        elif self._watching and os.getpid() == self._pid:
            with suppress(RuntimeError):  # another thread just closed the loop
                self._loop.call_soon_threadsafe(self._loop.remove_reader, self._fd)


class _Registration:
    """Holds a weak reference to a waiter, because the event loop holds strong references to its callbacks."""

    __slots__ = ("_pipe", "_waiter", "held")

    def __init__(self, waiter: _AsyncioWaiter, pipe: Drain | PlainPipe) -> None:
        self._waiter = weakref.ref(waiter)
        # Keeps the descriptor open until it is unregistered, because otherwise another file might get its number.
        self._pipe = pipe
        #: The waiter while a task is waiting, else None. This may be the only reference that keeps the task alive.
        self.held: _AsyncioWaiter | None = None

    def readable(self) -> None:
        waiter = self._waiter()
        if waiter is not None:
            waiter.readable()


class _TrioWaiter:
    """Waits for readability, then lets the caller read."""

    __slots__ = ("_pipe", "closed")

    def __init__(self, pipe: Drain | PlainPipe) -> None:
        self._pipe = pipe
        self.closed = False

    def take(self) -> bytes | memoryview | None:
        return None

    def read(self) -> bytes | memoryview | None:
        return None if self.closed else self._pipe.read()

    async def wait(self) -> None:
        import trio

        try:
            await trio.lowlevel.wait_readable(self._pipe.fileno())
        except trio.ClosedResourceError:
            if not self.closed:
                raise

    def close(self) -> None:
        import trio

        self.closed = True
        with suppress(RuntimeError):  # no loop is running, so no task is waiting
            trio.lowlevel.notify_closing(self._pipe.fileno())
