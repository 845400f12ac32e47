"""Byte sources for the tests of streams, and helpers that list open descriptors."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import select
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

import recordings
from async_backends import BACKENDS, TRIO
from claude_wire import Decoder, InvalidLineError, MessageStream, StreamEvent
from claude_wire.limits import BLOCK_BYTES
from claude_wire.messages import ResultSuccess

if sys.platform != "linux":
    pytest.skip("these tests look for what was left behind in /proc", allow_module_level=True)

import pty
import tty

EVENT = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}},'
    b'"session_id":"5f2c7a1e-9d3b-4c55-8a27-0f6f0a1b2c3d","parent_tool_use_id":null,'
    b'"uuid":"b7a1c3d4-1111-4222-8333-444455556666"}\n'
)


RESULT = b'{"type":"result","subtype":"success"}\n'


def numbered(first: int, end: int) -> bytes:
    """Return lines with consecutive numbers in ``n``."""
    return b"".join(b'{"type":"keep_alive","n":%d}\n' % n for n in range(first, end))


def whole(data: bytes, make: Callable[[], Decoder[Any]] = Decoder) -> list[Any]:
    """Feed a whole stream at once, and return its messages."""
    decoder = make()
    return decoder.feed(data) + decoder.close()


def blocks(data: bytes, size: int = BLOCK_BYTES) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


async def collect(stream: Any) -> list[Any]:
    return [item async for item in stream]


def descriptors() -> dict[str, str]:
    """Return the open descriptors of this process: number -> target."""
    found: dict[str, str] = {}
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the descriptor of the listing itself
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


def opened_since(before: dict[str, str]) -> dict[str, str]:
    """Return the descriptors opened since ``before``. Descriptors closed since then may belong to an earlier test."""
    return dict(descriptors().items() - before.items())


@contextmanager
def written(fd: int, chunks: Iterable[bytes]) -> Iterator[threading.Thread]:
    """During the block, write the chunks to ``fd`` in a thread and then close it. The reader may stop early."""

    def write() -> None:
        try:
            for chunk in chunks:
                view = memoryview(chunk)
                while view:
                    view = view[os.write(fd, view) :]
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.EIO):  # a terminal raises EIO
                raise
        finally:
            os.close(fd)

    thread = threading.Thread(target=write, name="writer")
    thread.start()
    try:
        yield thread
    finally:
        thread.join()


@contextmanager
def pipe(chunks: Iterable[bytes]) -> Iterator[int]:
    readable, writable = os.pipe()
    with written(writable, chunks):
        try:
            yield readable
        finally:
            os.close(readable)


@asynccontextmanager
async def _pipe(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    with pipe(chunks) as readable:
        yield readable


@asynccontextmanager
async def _pipe_file(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    with pipe(chunks) as readable, open(readable, "rb", closefd=False) as file:
        yield file


@asynccontextmanager
async def _socket(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    ours, theirs = socket.socketpair()
    with written(theirs.detach(), chunks), ours:
        yield ours


@asynccontextmanager
async def _tcp(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _address = server.accept()
    with written(theirs.detach(), chunks), ours:
        yield ours.fileno()


@asynccontextmanager
async def _terminal(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    master, slave = pty.openpty()
    tty.setraw(slave)
    left = threading.Event()

    def until_read() -> Iterator[bytes]:
        # If the writer closes its end before the reader has read everything, Linux (6.18) sometimes drops the last
        # bytes: 1 time in 300 with a plain os.read.
        yield from chunks
        with suppress(OSError):  # the reader has just closed it
            while not left.wait(0.001) and select.select([master], [], [], 0)[0]:
                pass

    with written(slave, until_read()):
        try:
            yield master
        finally:
            left.set()
            os.close(master)


@asynccontextmanager
async def _file(chunks: Iterable[bytes], folder: Path) -> AsyncIterator[Any]:
    path = folder / "stdout.ndjson"
    path.write_bytes(b"".join(chunks))
    with open(path, "rb") as file:
        yield file


@asynccontextmanager
async def _stream_reader(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    reader = asyncio.StreamReader()

    async def feed() -> None:
        for chunk in chunks:
            reader.feed_data(chunk)
            await asyncio.sleep(0)
        reader.feed_eof()

    feeding = asyncio.create_task(feed())
    yield reader
    await feeding


@asynccontextmanager
async def _stream_reader_of_a_socket(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    ours, theirs = socket.socketpair()
    with written(theirs.detach(), chunks):
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            yield reader
        finally:
            writer.close()
            await writer.wait_closed()


@asynccontextmanager
async def _anyio_tcp(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        stream = await anyio.connect_tcp("127.0.0.1", server.getsockname()[1])
        theirs, _address = server.accept()
    with written(theirs.detach(), chunks):
        async with stream:
            yield stream


async def _send_all(chunks: Iterable[bytes], send: anyio.abc.ObjectSendStream[bytes]) -> None:
    async with send:
        with suppress(anyio.BrokenResourceError):
            for chunk in chunks:
                await send.send(chunk)


@asynccontextmanager
async def _anyio_memory(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    send, receive = anyio.create_memory_object_stream[bytes](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_send_all, chunks, send)
        async with receive:
            yield receive


@asynccontextmanager
async def _anyio_buffered(chunks: Iterable[bytes], folder: Path) -> AsyncIterator[Any]:
    async with _anyio_memory(chunks, folder) as receive:
        yield BufferedByteReceiveStream(receive)


@asynccontextmanager
async def _trio_socket(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    import trio

    ours, theirs = socket.socketpair()
    with written(theirs.detach(), chunks):
        async with trio.SocketStream(trio.socket.from_stdlib_socket(ours)) as stream:
            yield stream


@asynccontextmanager
async def _trio_pipe(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    import trio

    readable, writable = os.pipe()
    with written(writable, chunks):
        async with trio.lowlevel.FdStream(readable) as stream:
            yield stream


async def generate(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


class Chunks:
    """An asynchronous iterable that is not a generator.

    It yields each chunk after a turn of the loop, with empty chunks between.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.chunks = [item for chunk in chunks for item in (b"", chunk, b"", b"")]
        self.at = 0

    def __aiter__(self) -> Chunks:
        return self

    async def __anext__(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        if self.at == len(self.chunks):
            raise StopAsyncIteration
        self.at += 1
        return self.chunks[self.at - 1]


@asynccontextmanager
async def _generator(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    yield generate(chunks)


@asynccontextmanager
async def _iterable(chunks: Iterable[bytes], _: Path) -> AsyncIterator[Any]:
    yield Chunks(chunks)


SOURCES: dict[str, Callable[[Iterable[bytes], Path], Any]] = {
    "pipe": _pipe,
    "pipe-file": _pipe_file,
    "socket": _socket,
    "tcp": _tcp,
    "terminal": _terminal,
    "file": _file,
    "anyio-tcp": _anyio_tcp,
    "anyio-memory": _anyio_memory,
    "anyio-buffered": _anyio_buffered,
    "generator": _generator,
    "iterable": _iterable,
}


ASYNCIO_SOURCES = {"stream-reader": _stream_reader, "stream-reader-of-a-socket": _stream_reader_of_a_socket}
TRIO_SOURCES = {"trio-socket": _trio_socket, "trio-pipe": _trio_pipe}


def every_source(*only: str) -> pytest.MarkDecorator:
    """Parametrize a test with every kind of source on every event loop that supports it."""
    cases = [
        pytest.param(backend, make, id=f"{name}-{backend.id}")
        for backend in BACKENDS
        for name, make in {**SOURCES, **(TRIO_SOURCES if backend is TRIO else ASYNCIO_SOURCES)}.items()
        if not only or name in only
    ]
    return pytest.mark.parametrize(("backend", "source"), cases)


LONG = recordings.load("02_long_partial").stdout


async def steps(iterator: Any, *expected: type[BaseException], limit: int = 100_000) -> list[Any]:
    """Return the results and the expected exceptions of each step, to the end of the iterator."""
    found: list[Any] = []
    for _ in range(limit):
        try:
            found.append(await anext(iterator))
        except StopAsyncIteration:
            return found
        except expected as error:
            found.append(error)
    raise AssertionError("the iteration does not end")


BAD = b"".join([RESULT, b"bad 1\n", b"bad 2\n", RESULT, RESULT, b"bad 3\n", EVENT, b"bad 4\n"])
BAD_TYPES = [
    *[ResultSuccess, InvalidLineError, InvalidLineError, ResultSuccess, ResultSuccess, InvalidLineError],
    *[StreamEvent, InvalidLineError],
]


async def turns() -> None:
    """Let the event loop run ten times."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


async def until_it_waits() -> None:
    """Wait until other tasks have had time to reach the point where they wait."""
    await turns()
    await anyio.sleep(0.005)


async def leave_by_block(stream: MessageStream[Any]) -> None:
    async with stream:
        await anext(stream)


async def watched(stream: MessageStream[Any], iterate: Callable[[], Awaitable[Any]]) -> tuple[list[int], list[int]]:
    """Return the bytes decoded between turns of the loop, and between ticks of a 1 ms timer."""
    seen = [0]
    ticks = [0]
    async with anyio.create_task_group() as group:

        async def turn() -> None:
            while True:
                await anyio.lowlevel.checkpoint()
                seen.append(stream.stats.bytes)

        async def tick() -> None:
            while True:
                await anyio.sleep(0.001)
                ticks.append(stream.stats.bytes)

        group.start_soon(turn)
        group.start_soon(tick)
        await until_it_waits()
        await iterate()
        seen.append(stream.stats.bytes)
        ticks.append(stream.stats.bytes)
        group.cancel_scope.cancel()
    by_turn, by_tick = ([end - start for start, end in itertools.pairwise(counts)] for counts in (seen, ticks))
    return by_turn, by_tick
