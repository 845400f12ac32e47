"""MessageStream: what any source of bytes says comes out whole, in order, once; whoever is cancelled, fails or leaves.

The sources are real: pipes, sockets, terminals and files of the system. What is expected is what ``Decoder.feed`` makes
of the same bytes at once.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import io
import itertools
import os
import random
import re
import select
import socket
import subprocess
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from hypothesis import given, settings
from hypothesis import strategies as st

import claude_wire.io.sources as sources_module
import long_tests
import recordings
from async_backends import ASYNCIO, BACKENDS, DEADLINE, TRIO, UVLOOP, Backend, every_asyncio, every_backend
from children import wait_until
from claude_wire import (
    Batches,
    ByteBudgetError,
    Decoder,
    HandleError,
    InvalidLine,
    InvalidLineError,
    MessageStream,
    ResultSuccess,
    StreamEvent,
    byte_budget,
    read,
    set_byte_budget,
)
from claude_wire.io.sources import SLICE_SECONDS, Drained
from claude_wire.limits import BLOCK_BYTES
from claude_wire.native.drain import Drain, open_drain
from claude_wire.native.drain_thread import ThreadDrain

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
    """Lines that are told apart by their ``n``."""
    return b"".join(b'{"type":"keep_alive","n":%d}\n' % n for n in range(first, end))


def whole(data: bytes, make: Callable[[], Decoder[Any]] = Decoder) -> list[Any]:
    """The messages of a stream that is fed at once."""
    decoder = make()
    return decoder.feed(data) + decoder.close()


def blocks(data: bytes, size: int = BLOCK_BYTES) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def at_places(data: bytes, seed: int = 1) -> list[bytes]:
    """Cut anywhere, into a hundred pieces or so, some within a few bytes of a line's end."""
    rng = random.Random(seed)
    ends = [found.start() for found in re.finditer(b"\n", data)] or [0]
    cuts = {rng.randrange(len(data)) for _ in range(50)}
    cuts |= {max(0, min(len(data), rng.choice(ends) + rng.randint(-2, 2))) for _ in range(50)}
    places = [0, *sorted(cuts - {0, len(data)}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


async def collect(stream: Any) -> list[Any]:
    return [item async for item in stream]


# --- nothing is left behind -------------------------------------------------------------------------------------------


def descriptors() -> dict[str, str]:
    """The open descriptors of this process, by number, and what each is."""
    found: dict[str, str] = {}
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one that lists them
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


def opened_since(before: dict[str, str]) -> dict[str, str]:
    """The descriptors that were not open before. What is gone may be that of an earlier test."""
    return dict(descriptors().items() - before.items())


@pytest.fixture(scope="module", autouse=True)
def _warm() -> Iterator[None]:
    # The first of its kind may open what all later ones share.
    async def main() -> None:
        readable, writable = os.pipe()
        os.write(writable, RESULT)
        os.close(writable)
        assert len(await collect(MessageStream(readable))) == 1
        os.close(readable)

    for backend in BACKENDS:
        with suppress(pytest.skip.Exception):
            backend.run(main)
    # It and the thread live as long as there is any drain.
    readable, writable = os.pipe()
    lasting = MessageStream(readable)
    yield
    del lasting
    os.close(readable)
    os.close(writable)


@pytest.fixture(autouse=True)
def _no_descriptor_leaks(_warm: None) -> Iterator[None]:
    gc.collect()
    before = descriptors()
    yield
    gc.collect()
    assert opened_since(before) == {}


# --- sources ----------------------------------------------------------------------------------------------------------


@contextmanager
def written(fd: int, chunks: Iterable[bytes]) -> Iterator[threading.Thread]:
    """The thread that writes the chunks to ``fd`` and closes it, while the block runs; the reader may leave early."""

    def write() -> None:
        try:
            for chunk in chunks:
                view = memoryview(chunk)
                while view:
                    view = view[os.write(fd, view) :]
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.EIO):  # EIO is what a terminal says
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
        # If it is closed before, Linux (6.18) now and then drops the last bytes, 1 time in 300 with a plain os.read.
        yield from chunks
        with suppress(OSError):  # the reader closed it just now
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
    """An asynchronous iterable that is no generator; each chunk comes after a turn of the loop, and after nothing."""

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
#: Those at which a task that waits is woken by bytes only: nothing of them passes through a task of the test.
WAITING = ["pipe", "socket", "terminal", "anyio-tcp", "stream-reader-of-a-socket", "trio-socket", "trio-pipe"]


def every_source(*only: str) -> pytest.MarkDecorator:
    """Each kind of source on each loop that it is made for."""
    cases = [
        pytest.param(backend, make, id=f"{name}-{backend.id}")
        for backend in BACKENDS
        for name, make in {**SOURCES, **(TRIO_SOURCES if backend is TRIO else ASYNCIO_SOURCES)}.items()
        if not only or name in only
    ]
    return pytest.mark.parametrize(("backend", "source"), cases)


# --- everything comes, from every source, cut anywhere ----------------------------------------------------------------

LONG = recordings.load("02_long_partial").stdout
SHORT = recordings.load("14_bad_true").stdout
#: Ends in the middle of a line.
CUT = recordings.load("19_slowread_long_6").stdout


@pytest.mark.parametrize(
    ("data", "cut"),
    [
        pytest.param(LONG, blocks, id="in-blocks"),
        pytest.param(LONG, at_places, id="at-places"),
        pytest.param(CUT, at_places, id="truncated"),
        pytest.param(SHORT, lambda data: blocks(data, 1), id="byte-by-byte"),
        pytest.param(b"", blocks, id="nothing"),
        pytest.param(b"\xef\xbb\xbf\n" + RESULT + b"bad\n\n\r\n" + RESULT[:-1], blocks, id="odd-lines"),
    ],
)
@every_source()
def test_every_source_gives_what_the_decoder_makes_of_the_whole(
    backend: Backend, source: Any, data: bytes, cut: Callable[[bytes], list[bytes]], tmp_path: Path
) -> None:
    async def main() -> None:
        async with source(cut(data), tmp_path) as opened:
            stream = MessageStream(opened)
            assert await collect(stream) == whole(data)
            decoder = Decoder()
            decoder.feed(data)
            decoder.close()
            assert stream.stats == decoder.stats

    backend.run(main)


@every_source()
def test_batches_are_the_same_messages_in_lists(backend: Backend, source: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with source(at_places(LONG), tmp_path) as opened, MessageStream(opened) as stream:
            batches = stream.batches()
            assert isinstance(batches, Batches)
            lists = await collect(batches)
        assert all(type(batch) is list and batch for batch in lists)
        assert [message for batch in lists for message in batch] == whole(LONG)

    backend.run(main)


@every_backend
def test_every_recording_comes_through_a_pipe(backend: Backend) -> None:
    async def main() -> None:
        for name in recordings.names():
            data = recordings.load(name).stdout
            with pipe(blocks(data)) as readable:
                assert await collect(MessageStream(readable)) == whole(data)

    backend.run(main)


@every_backend
def test_messages_of_every_recorded_read_come_before_the_next_is_written(backend: Backend) -> None:
    # Whoever waited for a full block, or for a line more, would wait forever here.
    async def main(data: bytes, reads: list[int]) -> None:
        readable, writable = os.pipe()
        reference: Decoder[Any] = Decoder()
        async with MessageStream(readable) as stream:
            at = 0
            for size in reads:
                piece = data[at : at + size]
                at += size
                for part in blocks(piece, 32_768):  # a pipe holds 65,536
                    os.write(writable, part)
                    for message in reference.feed(part):
                        assert await anext(stream) == message
            os.close(writable)
            assert await collect(stream) == reference.close()
        os.close(readable)

    for name in ("02_long_partial", "08_control", "08_eof_midturn", "18_long_strace_desc"):
        recording = recordings.load(name)
        backend.run(main, recording.stdout, recording.reads)


@every_backend
def test_messages_one_by_one_and_in_lists_may_be_mixed(backend: Backend) -> None:
    data = numbered(0, 20_000)

    async def main() -> None:
        with pipe(blocks(data, 1000)) as readable:
            stream = MessageStream(readable, Decoder(dict))
            found: list[Any] = []
            for turn in itertools.count():
                try:
                    if turn % 3 == 2:
                        found += await anext(stream.batches())
                    else:
                        found.append(await anext(stream))
                except StopAsyncIteration:
                    break
            assert found == whole(data, lambda: Decoder(dict))

    backend.run(main)


@every_backend
def test_a_batch_holds_what_was_left_by_the_last_step(backend: Backend) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        os.write(writable, numbered(0, 5))
        async with MessageStream(readable, Decoder(dict)) as stream:
            assert (await anext(stream))["n"] == 0
            assert [message["n"] for message in await anext(stream.batches())] == [1, 2, 3, 4]
        os.close(readable)
        os.close(writable)

    backend.run(main)


@every_backend
def test_the_decoder_is_the_callers(backend: Backend) -> None:
    seen: list[InvalidLine] = []
    data = b'{"type":"keep_alive"}\nbad\n{"a":"\\ud83d"}\n'

    async def main(decoder: Decoder[Any]) -> list[Any]:
        return await collect(MessageStream(generate([data]), decoder))

    made = Decoder(dict, on_invalid=seen.append, surrogates="replace")
    assert backend.run(main, made) == [{"type": "keep_alive"}, {"a": "\ufffd"}]
    assert [line.raw for line in seen] == [b"bad"]
    assert made.stats.lines == 3
    assert backend.run(main, Decoder(max_line_bytes=5))[0].length == 21


def test_what_is_no_source_is_a_type_error() -> None:
    for wrong in ("/a/path", b"bytes", None, True, 1.5, [b"chunk"], Path("/"), io.BytesIO(b"a file in memory")):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            MessageStream(wrong)


@pytest.mark.parametrize("decoder", [dict, Decoder, {"type": "user"}, "dict"], ids=str)
def test_a_decoder_that_is_none_is_a_type_error(decoder: Any) -> None:
    readable, writable = os.pipe()
    with pytest.raises(TypeError, match=r"decoder must be a Decoder\(...\), such as Decoder\(dict\), not "):
        MessageStream(readable, decoder)
    os.close(readable)
    os.close(writable)


def test_a_descriptor_that_is_not_open_is_an_os_error() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    os.close(writable)
    with pytest.raises(OSError, match="Bad file descriptor"):
        MessageStream(readable)


@every_backend
def test_a_stream_may_be_made_before_the_loop_runs(backend: Backend) -> None:
    readable, writable = os.pipe()
    stream = MessageStream(readable)
    os.write(writable, RESULT)
    os.close(writable)
    assert backend.run(collect, stream) == whole(RESULT)
    os.close(readable)


@every_backend
def test_the_descriptor_remains_the_callers(backend: Backend) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        assert os.get_blocking(readable)
        stream = MessageStream(readable, Decoder(dict))
        os.write(writable, numbered(0, 1))
        assert (await anext(stream))["n"] == 0
        await stream.aclose()
        # It is open, it blocks again, and what the stream had not read is in it.
        assert os.get_blocking(readable)
        os.write(writable, b"for the next reader")
        assert os.read(readable, 100) == b"for the next reader"
        os.close(readable)
        os.close(writable)

    backend.run(main)


@every_backend
def test_the_caller_may_close_its_descriptor_at_once(backend: Backend) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        with written(writable, blocks(LONG)):
            stream = MessageStream(readable)
            os.close(readable)
            # The number is used again at once, by a pipe that nobody should read.
            other, other_end = os.pipe()
            os.write(other_end, RESULT)
            assert await collect(stream) == whole(LONG)
        assert os.read(other, 100) == RESULT
        os.close(other)
        os.close(other_end)

    backend.run(main)


@every_backend
def test_the_stats_tell_what_was_read_also_after_the_end(backend: Backend) -> None:
    async def main() -> None:
        with pipe(blocks(LONG)) as readable:
            stream = MessageStream(readable)
            assert stream.stats.bytes == 0
            await collect(stream)
            assert stream.stats.bytes == len(LONG)
            assert stream.drain_stats is not None
        assert MessageStream(generate([])).drain_stats is None

    backend.run(main)


# --- exceptions do not end the iteration ------------------------------------------------------------------------------


async def steps(iterator: Any, *expected: type[BaseException], limit: int = 100_000) -> list[Any]:
    """What each step gives or raises, until the end; only what is expected is caught."""
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


@pytest.mark.parametrize("size", [1, 50, 10_000])
@every_source()
def test_invalid_lines_are_raised_in_their_place(backend: Backend, source: Any, size: int, tmp_path: Path) -> None:
    data = BAD * 10 + b'{"cut'

    async def main() -> None:
        async with source(blocks(data, size), tmp_path) as opened:
            found = await steps(MessageStream(opened, Decoder(on_invalid="raise")), InvalidLineError)
        assert [type(item) for item in found] == [*BAD_TYPES * 10, InvalidLineError]
        raised = [item for item in found if isinstance(item, InvalidLineError)]
        assert [item.line for item in raised] == [item for item in whole(data) if isinstance(item, InvalidLine)]
        # Those before it were steps of their own, and must not be given twice.
        assert all(item.messages == [] for item in raised)

    backend.run(main)


@every_backend
def test_in_lists_too(backend: Backend) -> None:
    async def main() -> None:
        with pipe([BAD]) as readable:
            found = await steps(MessageStream(readable, Decoder(on_invalid="raise")).batches(), InvalidLineError)
        flat = [piece for item in found for piece in (item if isinstance(item, list) else [item])]
        assert [type(item) for item in flat] == BAD_TYPES

    backend.run(main)


@pytest.mark.parametrize("source", ["pipe", "generator", "stream-reader"])
@every_backend
def test_what_follows_a_bad_line_needs_no_more_bytes(backend: Backend, source: str) -> None:
    # Were it kept until the next bytes come, which is never, this would wait for them.
    if source == "stream-reader" and backend is TRIO:
        pytest.skip("asyncio's own")

    async def once_and_never_again() -> AsyncIterator[bytes]:
        yield BAD
        await anyio.sleep_forever()

    async def main() -> None:
        opened: Any
        if source == "pipe":
            opened, writable = os.pipe()
            os.write(writable, BAD)
        elif source == "generator":
            opened = once_and_never_again()
        else:
            opened = asyncio.StreamReader()
            opened.feed_data(BAD)
        async with MessageStream(opened, Decoder(on_invalid="raise")) as stream:
            for cls in BAD_TYPES:
                try:
                    found: Any = await anext(stream)
                except InvalidLineError as error:
                    found = error
                assert type(found) is cls
        if source == "pipe":
            os.close(opened)
            os.close(writable)

    backend.run(main)


@every_backend
def test_invalid_lines_are_values_in_their_place_unless_asked_otherwise(backend: Backend) -> None:
    async def main() -> None:
        with pipe(blocks(BAD, 7)) as readable:
            found = await collect(MessageStream(readable))
        assert found == whole(BAD)
        assert [item.raw for item in found if isinstance(item, InvalidLine)] == [b"bad 1", b"bad 2", b"bad 3", b"bad 4"]

    backend.run(main)


@pytest.mark.parametrize("end", [b'{"type":"resu', b"\xf0\x9f", b'"'])
@every_source()
def test_a_last_line_that_is_cut_is_told(backend: Backend, source: Any, end: bytes, tmp_path: Path) -> None:
    async def main() -> None:
        async with source([RESULT + end], tmp_path) as opened:
            result, cut = await collect(MessageStream(opened))
        assert type(result) is ResultSuccess
        assert isinstance(cut, InvalidLine)
        assert cut.raw == end
        assert cut.reason.startswith("truncated")

    backend.run(main)


@pytest.mark.parametrize("size", [1, 50, 10_000])
@every_backend
def test_an_exception_of_the_callable_is_raised_and_no_message_is_lost(backend: Backend, size: int) -> None:
    data = BAD + b"bad at the end"

    def complain(line: InvalidLine) -> None:
        raise KeyError(line.raw)

    async def main() -> None:
        with pipe(blocks(data, size)) as readable:
            found = await steps(MessageStream(readable, Decoder(on_invalid=complain)), KeyError)
        assert [error.args[0] for error in found if isinstance(error, KeyError)] == [
            *[b"bad 1", b"bad 2", b"bad 3", b"bad 4", b"bad at the end"]
        ]
        messages = [item for item in found if not isinstance(item, KeyError)]
        assert messages == [message for message in whole(data) if not isinstance(message, InvalidLine)]

    backend.run(main)


@pytest.mark.parametrize("size", [1, 4])
@every_backend
def test_what_loads_raises_is_raised_and_what_other_lines_say_comes(backend: Backend, size: int) -> None:
    class Stop(BaseException):
        pass

    def loads(line: bytes) -> Any:
        if line.strip() == b'{"n":5}':
            raise Stop
        return {"n": int(line.strip()[5:-1])}

    chunks = [b"".join(b'{"n":%d}\n' % n for n in range(first, first + size)) for first in range(0, 20, size)]

    async def main() -> None:
        found = await steps(MessageStream(generate(chunks), Decoder(dict, loads=loads)), Stop)
        assert [type(item) for item in found].count(Stop) == 1
        # As after Ctrl-C, what its own chunk held is lost (Decoder.feed says so), and nothing else is.
        lost = range(5 // size * size, 5 // size * size + size)
        assert [item["n"] for item in found if type(item) is dict] == [n for n in range(20) if n not in lost]

    backend.run(main)


@every_backend
def test_an_error_of_the_iterable_is_raised_and_the_iteration_goes_on(backend: Backend) -> None:
    class Failing(Chunks):
        async def __anext__(self) -> bytes:
            chunk = await super().__anext__()
            if chunk == b"fail":
                raise OSError("no carrier")
            return chunk

    async def main() -> None:
        source = Failing([RESULT[:10], b"fail", RESULT[10:] + EVENT, b"fail", b"fail", EVENT])
        found = await steps(MessageStream(source), OSError)
        assert [type(item) for item in found] == [OSError, ResultSuccess, StreamEvent, OSError, OSError, StreamEvent]

    backend.run(main)


@every_backend
def test_an_error_of_a_generator_ends_it_and_what_it_gave_is_told(backend: Backend) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield RESULT + RESULT[:9]
        raise OSError("no carrier")

    async def main() -> None:
        found = await steps(MessageStream(failing()), OSError)
        assert [type(item) for item in found] == [ResultSuccess, OSError, InvalidLine]
        assert found[-1].raw == RESULT[:9]

    backend.run(main)


@every_backend
def test_an_error_of_the_socket_is_raised_after_what_came_before_it(backend: Backend) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            ours = socket.create_connection(server.getsockname())
            theirs, _ = server.accept()
        with ours:
            stream = MessageStream(ours)
            theirs.sendall(RESULT)
            assert type(await anext(stream)) is ResultSuccess
            # A close that is not orderly: the peer sends a reset.
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            theirs.close()
            with pytest.raises(ConnectionResetError):
                await anext(stream)
            assert await collect(stream) == []

    backend.run(main)


@every_backend
def test_an_iterable_of_something_else_is_a_type_error(backend: Backend) -> None:
    async def main() -> None:
        stream = MessageStream(generate(["text", RESULT]))
        with pytest.raises(TypeError):
            await anext(stream)
        assert await collect(stream) == whole(RESULT)

    backend.run(main)


@every_backend
def test_a_directory_cannot_be_read(backend: Backend, tmp_path: Path) -> None:
    async def main() -> None:
        directory = os.open(tmp_path, os.O_RDONLY)
        try:
            with pytest.raises(IsADirectoryError):
                await anext(MessageStream(directory))
        finally:
            os.close(directory)

    backend.run(main)


# --- the end ----------------------------------------------------------------------------------------------------------


@every_source()
def test_after_the_end_there_are_no_more_steps(backend: Backend, source: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with source([RESULT], tmp_path) as opened:
            stream = MessageStream(opened)
            assert len(await collect(stream)) == 1
            for iterator in (stream, stream.batches(), stream):
                with pytest.raises(StopAsyncIteration):
                    await anext(iterator)
            await stream.aclose()
            assert await collect(stream) == []

    backend.run(main)


@every_source()
def test_after_closing_there_are_no_more_steps(backend: Backend, source: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with source(blocks(LONG), tmp_path) as opened:
            stream = MessageStream(opened)
            first = await anext(stream)
            assert first == whole(LONG)[0]
            for _ in range(2):
                await stream.aclose()
                # Neither what was decoded already nor what is still to come.
                assert await collect(stream) == []
                assert await collect(stream.batches()) == []

    backend.run(main)


@every_source()
def test_a_stream_may_be_closed_before_its_first_step(backend: Backend, source: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with source(blocks(LONG), tmp_path) as opened:
            async with MessageStream(opened) as stream:
                pass
            assert await collect(stream) == []

    backend.run(main)


@every_backend
def test_closing_forgets_an_exception_that_was_to_come(backend: Backend) -> None:
    async def main() -> None:
        stream = MessageStream(generate([RESULT + b"bad\n" + RESULT]), Decoder(on_invalid="raise"))
        await anext(stream)
        await stream.aclose()
        assert await collect(stream) == []

    backend.run(main)


async def turns() -> None:
    """Some turns of the loop."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


async def until_it_waits() -> None:
    """Long enough for a task that can run to come to where it waits."""
    await turns()
    await anyio.sleep(0.005)


async def nothing_yet(ended: anyio.Event) -> AsyncIterator[bytes]:
    try:
        yield RESULT
        await anyio.sleep_forever()
    finally:
        ended.set()


class Silent:
    def __aiter__(self) -> Silent:
        return self

    async def __anext__(self) -> bytes:
        await anyio.sleep_forever()
        return b""


@every_source(*WAITING)
def test_closing_ends_the_step_of_another_task_that_waits(backend: Backend, source: Any, tmp_path: Path) -> None:
    async def main() -> None:
        may_write = threading.Event()

        def later() -> Iterator[bytes]:
            yield RESULT
            may_write.wait()

        async with source(later(), tmp_path) as opened:
            try:
                stream = MessageStream(opened)
                found: list[Any] = []

                async def read() -> None:
                    async for message in stream:
                        found.append(message)

                async with anyio.create_task_group() as group:
                    group.start_soon(read)
                    while not found:
                        await anyio.lowlevel.checkpoint()
                    await until_it_waits()
                    await stream.aclose()
                assert found == whole(RESULT)
                assert await collect(stream) == []
            finally:
                may_write.set()

    backend.run(main)


@every_backend
def test_closing_ends_the_step_of_another_task_that_waits_for_an_iterable(backend: Backend) -> None:
    async def main() -> None:
        ended = anyio.Event()
        send, receive = anyio.create_memory_object_stream[bytes](0)
        for source in (nothing_yet(ended), Silent(), receive, BufferedByteReceiveStream(receive)):
            stream = MessageStream(source)
            async with anyio.create_task_group() as group:
                group.start_soon(collect, stream)
                await until_it_waits()
                await stream.aclose()
            assert await collect(stream) == []
        assert ended.is_set()
        send.close()
        receive.close()

    backend.run(main)


@every_backend
def test_a_generator_is_closed_with_the_stream(backend: Backend) -> None:
    async def main() -> None:
        for leave in ("aclose", "block", "end"):
            ended = anyio.Event()
            if leave == "aclose":
                stream = MessageStream(nothing_yet(ended))
                await anext(stream)
                await stream.aclose()
            elif leave == "block":
                await leave_by_block(MessageStream(nothing_yet(ended)))
            else:
                source = nothing_yet(ended)
                assert await anext(source) == RESULT
                await MessageStream(source).aclose()
            assert ended.is_set()

    backend.run(main)


@every_backend
def test_what_else_was_given_remains_the_callers(backend: Backend) -> None:
    class Closable(Chunks):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    async def main() -> None:
        iterable = Closable([RESULT])
        async with MessageStream(iterable) as stream:
            await anext(stream)
        assert not iterable.closed

        send, receive = anyio.create_memory_object_stream[bytes](2)
        for source in (receive, BufferedByteReceiveStream(receive)):
            send.send_nowait(RESULT)
            send.send_nowait(EVENT)
            async with MessageStream(source) as stream:
                assert type(await anext(stream)) is ResultSuccess
            assert await source.receive() == EVENT
        send.close()
        receive.close()

    backend.run(main)


def test_a_stream_of_trio_remains_the_callers() -> None:
    async def main() -> None:
        import trio

        ours, theirs = socket.socketpair()
        source = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        async with source:
            theirs.sendall(RESULT)
            async with MessageStream(source) as stream:
                await anext(stream)
            theirs.sendall(EVENT)
            assert await source.receive_some() == EVENT
        theirs.close()

    TRIO.run(main)


@every_backend
def test_two_tasks_cannot_iterate(backend: Backend) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        async with MessageStream(readable, Decoder(dict)) as stream:
            found: list[Any] = []

            async def read() -> None:
                found.append(await anext(stream))

            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await until_it_waits()
                for iterator in (stream, stream.batches()):
                    with pytest.raises(HandleError, match="another task"):
                        await anext(iterator)
                # The one that waited is not disturbed by it.
                os.write(writable, numbered(0, 2))
            assert [message["n"] for message in found] == [0]
            assert (await anext(stream))["n"] == 1
        os.close(readable)
        os.close(writable)

    backend.run(main)


# --- cancellation -----------------------------------------------------------------------------------------------------


Cancel = Callable[[Callable[[], Awaitable[None]], int], Awaitable[None]]


async def by_scope(work: Callable[[], Awaitable[None]], turns: int) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(work)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


async def by_task(work: Callable[[], Awaitable[None]], turns: int) -> None:
    task = asyncio.ensure_future(work())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def by_wait_for(work: Callable[[], Awaitable[None]], turns: int) -> None:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(work(), turns * 1e-4)


async def by_timeout(work: Callable[[], Awaitable[None]], turns: int) -> None:
    if sys.version_info >= (3, 11):
        with suppress(TimeoutError):
            async with asyncio.timeout(turns * 1e-4):
                await work()
    else:
        with anyio.move_on_after(turns * 1e-4):
            await work()


CANCELLATIONS = [
    pytest.param(backend, cancel, id=f"{cancel.__name__}-{backend.id}")
    for cancel in (by_scope, by_task, by_wait_for, by_timeout)
    for backend in ([ASYNCIO, UVLOOP, TRIO] if cancel is by_scope else [ASYNCIO, UVLOOP])
]


@asynccontextmanager
async def fed(kind: str) -> AsyncIterator[tuple[Any, int]]:
    """A source of that kind, and a descriptor that does not block, whose bytes it gives."""
    async with AsyncExitStack() as stack:
        source: Any
        if kind == "pipe":
            source, end = os.pipe()
            stack.callback(os.close, source)
        elif kind == "stream-reader":
            ours, theirs = socket.socketpair()
            end = theirs.detach()
            source, writer = await asyncio.open_connection(sock=ours)
            stack.push_async_callback(writer.wait_closed)
            stack.callback(writer.close)
        else:
            with socket.create_server(("127.0.0.1", 0)) as server:
                source = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", server.getsockname()[1]))
                end = server.accept()[0].detach()
            if kind == "iterable":
                source = Received(source)
        os.set_blocking(end, False)
        yield source, end


class Received:
    """An asynchronous iterable over a stream: a step that is cancelled takes nothing from it."""

    def __init__(self, stream: anyio.abc.ByteReceiveStream) -> None:
        self.stream = stream

    def __aiter__(self) -> Received:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self.stream.receive(1000)
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def write_some(fd: int, data: memoryview) -> memoryview:
    """Write what there is room for; returns the rest."""
    with suppress(BlockingIOError):
        return data[os.write(fd, data) :] if data else data
    return data


@pytest.mark.parametrize("kind", ["pipe", "stream-reader", "anyio-tcp", "iterable"])
@pytest.mark.parametrize(("backend", "cancel"), CANCELLATIONS)
@settings(max_examples=15)
@given(
    script=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 8), st.booleans()), max_size=12),
    on_invalid=st.sampled_from(["return", "raise"]),
)
def test_cancellation_at_any_time_loses_no_message_and_repeats_none(
    backend: Backend, cancel: Cancel, kind: str, script: list[tuple[int, int, bool]], on_invalid: Any
) -> None:
    """Each entry of the script: bytes to write, turns of the loop until the cancellation, and whether by batches."""
    if backend is TRIO and kind == "stream-reader":
        pytest.skip("asyncio's own")
    data = b"".join(b'{"n":%d}\n%s' % (n, b"bad\n" if n % 7 == 0 else b"") for n in range(3000))
    data = data[: sum(size for size, _, _ in script)]

    async def main() -> None:
        found: list[Any] = []
        async with fed(kind) as (source, end):
            decoder: Decoder[Any] = Decoder(dict, on_invalid=on_invalid)
            stream = MessageStream(source, decoder)

            async def take() -> None:
                while True:
                    try:
                        found.append(await anext(stream))
                    except InvalidLineError as error:
                        found.append(error.line)

            async def take_lists() -> None:
                while True:
                    try:
                        found.extend(await anext(stream.batches()))
                    except InvalidLineError as error:
                        found.append(error.line)

            rest = memoryview(data)
            at = 0
            for size, turns, lists in script:
                at += size
                left = write_some(end, memoryview(data)[len(data) - len(rest) : at])
                rest = memoryview(data)[at - len(left) :]
                await cancel(take_lists if lists else take, turns)
            os.set_blocking(end, True)
            with written(end, [bytes(rest)]), suppress(StopAsyncIteration):
                await take()
            await stream.aclose()
        assert found == whole(data, lambda: Decoder(dict))

    backend.run(main)


@pytest.mark.parametrize("kind", ["pipe", "stream-reader", "anyio-tcp", "iterable"])
@pytest.mark.parametrize(("backend", "cancel"), CANCELLATIONS)
def test_cancellation_while_a_thread_writes_loses_no_message(backend: Backend, cancel: Cancel, kind: str) -> None:
    if backend is TRIO and kind == "stream-reader":
        pytest.skip("asyncio's own")
    data = numbered(0, 30_000)
    rng = random.Random(7)

    async def main() -> None:
        found: list[int] = []
        async with fed(kind) as (source, end):
            stream = MessageStream(source, Decoder(dict))
            ended = False

            async def take() -> None:
                nonlocal ended
                async for message in stream:
                    found.append(message["n"])
                    if len(found) % 64 == 0:
                        await anyio.lowlevel.checkpoint()
                ended = True

            os.set_blocking(end, True)
            with written(end, blocks(data, 3001)):
                while not ended:
                    await cancel(take, rng.randrange(20))
        assert found == list(range(30_000))

    backend.run(main)


@pytest.mark.parametrize(("backend", "cancel"), CANCELLATIONS)
def test_a_step_that_was_cancelled_may_be_taken_again(backend: Backend, cancel: Cancel) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        async with MessageStream(readable, Decoder(dict)) as stream:

            async def wait() -> None:
                await anext(stream)

            for n in range(20):
                await cancel(wait, n)
                await cancel(wait, n)
                os.write(writable, numbered(n, n + 1))
                assert (await anext(stream))["n"] == n
        os.close(readable)
        os.close(writable)

    backend.run(main)


@every_backend
def test_a_step_in_a_cancelled_scope_takes_nothing_that_it_does_not_give(backend: Backend) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        async with MessageStream(readable, Decoder(dict)) as stream:
            found: list[Any] = []
            os.write(writable, numbered(0, 1))
            with anyio.CancelScope() as scope:
                scope.cancel()
                found.append(await anext(stream))
            os.write(writable, numbered(1, 2))
            while not found or found[-1]["n"] != 1:
                found.append(await anext(stream))
            assert [message["n"] for message in found] == [0, 1]
        os.close(readable)
        os.close(writable)

    backend.run(main)


@every_backend
def test_closing_needs_no_time_also_when_it_is_cancelled(backend: Backend) -> None:
    async def main() -> None:
        before = descriptors()
        readable, writable = os.pipe()
        stream = MessageStream(readable)
        os.write(writable, RESULT)
        await anext(stream)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await stream.aclose()
        os.close(readable)
        os.close(writable)
        assert opened_since(before) == {}

    backend.run(main)


# --- nothing is left behind, however a stream is left -----------------------------------------------------------------


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop of asyncio that runs, if any."""
    with suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None


async def settle() -> None:
    """Collect, and let the loop do what that leads to."""
    gc.collect()
    await turns()
    gc.collect()


async def assert_usable(count: int = 6) -> None:
    """New descriptors, whatever numbers they get, can be waited for: the loop knows nothing of old ones."""
    pairs = [os.pipe() for _ in range(count)]
    loop = running_loop()
    for readable, writable in pairs:
        if loop is None:
            os.write(writable, b"x")
            await anyio.wait_readable(readable)
        else:
            woken = asyncio.Event()
            loop.add_reader(readable, woken.set)
            # Nobody may have been told of it before it is written to.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not woken.is_set()
            os.write(writable, b"x")
            await woken.wait()
            loop.remove_reader(readable)
    for pair in pairs:
        for number in pair:
            os.close(number)


async def leave_by_break(stream: MessageStream[Any]) -> None:
    async for _ in stream:
        break


async def leave_by_exception(stream: MessageStream[Any]) -> None:
    with suppress(KeyError):
        async for _ in stream:
            raise KeyError


async def leave_by_block(stream: MessageStream[Any]) -> None:
    async with stream:
        await anext(stream)


async def leave_at_end(stream: MessageStream[Any]) -> None:
    async for _ in stream:
        pass


async def leave_untouched(stream: MessageStream[Any]) -> None:
    pass


async def leave_while_waiting(stream: MessageStream[Any]) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(collect, stream)
        await until_it_waits()
        group.cancel_scope.cancel()


async def leave_in_a_cycle(stream: MessageStream[Any]) -> None:
    await anext(stream)
    cycle = [stream]
    cycle.append(cycle)


LEAVES = [
    leave_by_break,
    leave_by_exception,
    leave_by_block,
    leave_at_end,
    leave_untouched,
    leave_while_waiting,
    leave_in_a_cycle,
]


@pytest.mark.parametrize("leave", LEAVES)
# What trio says of every generator that is dropped, here by the test, before its end.
@pytest.mark.filterwarnings("ignore:Async generator 'test_stream.generate':ResourceWarning")
@every_source("pipe", "socket", "terminal", "file", "generator", "iterable", "stream-reader", "anyio-tcp")
def test_leaving_it_leaves_nothing_behind(backend: Backend, source: Any, leave: Any, tmp_path: Path) -> None:
    async def main() -> None:
        await once()  # what the loop opens for good, it opens now
        await settle()
        before = descriptors()
        for _ in range(2):
            await once()
            await settle()
            assert opened_since(before) == {}
            await assert_usable()

    async def once() -> None:
        async with source([RESULT * 3, RESULT[:-1]], tmp_path) as opened:
            await leave(MessageStream(opened))

    backend.run(main)


@every_backend
def test_a_stream_may_be_dropped_in_another_thread_while_the_loop_waits(backend: Backend) -> None:
    async def main() -> None:
        await anyio.to_thread.run_sync(int)
        await settle()
        before = descriptors()
        for in_a_cycle in (False, True):
            for _ in range(20):
                readable, writable = os.pipe()
                os.write(writable, RESULT)
                holder: list[Any] = [MessageStream(readable)]
                await anext(holder[0])
                if in_a_cycle:
                    holder[0].cycle = holder[0]
                await anyio.to_thread.run_sync(lambda holder: (holder.clear(), gc.collect()), holder)
                os.write(writable, RESULT)  # which wakes a loop that still has the descriptor
                os.close(readable)
                os.close(writable)
                await assert_usable(3)
        await settle()
        assert opened_since(before) == {}

    backend.run(main)


@every_asyncio
def test_the_number_of_a_dropped_stream_is_not_used_again_before_the_loop_forgets_it(backend: Backend) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        for in_a_cycle, more in itertools.product((False, True), range(3)):
            readable, writable = os.pipe()
            os.write(writable, RESULT)
            holder: list[Any] = [MessageStream(readable)]
            await anext(holder[0])
            if in_a_cycle:
                holder[0].cycle = holder[0]
            # It is dropped by a thread while the loop is busy, which then watches new pipes before it hears of that.
            thread = threading.Thread(target=lambda holder: (holder.clear(), gc.collect()), args=[holder])
            thread.start()
            thread.join()
            others = [os.dup(readable) for _ in range(more)]  # so that each number is once that of a readable end
            pairs = [os.pipe() for _ in range(4)]
            woken = [asyncio.Event() for _ in pairs]
            for pair, event in zip(pairs, woken, strict=True):
                loop.add_reader(pair[0], event.set)
            await until_it_waits()
            for pair, event in zip(pairs, woken, strict=True):
                assert not event.is_set()
                os.write(pair[1], b"x")
                await event.wait()
                loop.remove_reader(pair[0])
            for number in (readable, writable, *others, *itertools.chain(*pairs)):
                os.close(number)

    backend.run(main)


def test_a_loop_that_runs_is_told_to_forget_a_stream_in_its_own_thread_only() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        remove, threads = loop.remove_reader, set[int]()

        def remove_reader(fd: Any) -> bool:
            threads.add(threading.get_ident())
            return remove(fd)

        loop.remove_reader = remove_reader
        readable, writable = os.pipe()
        os.write(writable, RESULT)
        holder: list[Any] = [MessageStream(readable)]
        await anext(holder[0])
        await anyio.to_thread.run_sync(holder.clear)
        await settle()
        assert threads == {threading.get_ident()}
        os.close(readable)
        os.close(writable)

    ASYNCIO.run(main)


@every_asyncio
def test_a_task_that_nobody_holds_is_not_collected_while_it_waits(backend: Backend) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        found: list[Any] = []

        async def read(stream: MessageStream[Any]) -> None:
            async for message in stream:
                found.append(message["n"])

        asyncio.get_running_loop().create_task(read(MessageStream(readable, Decoder(dict))))
        for n in range(3):
            await until_it_waits()
            gc.collect()
            os.write(writable, numbered(n, n + 1))
        os.close(writable)
        os.close(readable)
        while len(found) < 3:
            await asyncio.sleep(0.001)
        assert found == [0, 1, 2]

    backend.run(main)


@every_backend
def test_a_stream_that_nobody_holds_does_not_live_on_in_the_loop(backend: Backend) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        before = descriptors()
        stream = MessageStream(readable)
        gone = weakref.ref(stream)
        os.write(writable, RESULT)
        await anext(stream)
        # The pipe stays open and silent: nothing wakes the loop.
        del stream
        gc.collect()
        assert gone() is None
        assert opened_since(before) == {}
        os.close(readable)
        os.close(writable)

    backend.run(main)


@every_asyncio
def test_a_loop_that_nobody_reads_in_sleeps_and_does_not_spin(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop is not woken by a pipe that stays readable: a callback per turn would keep it from ever sleeping."""
    woken = 0
    readable_callback = sources_module._AsyncioWaiter.readable

    def counted(waiter: Any) -> None:
        nonlocal woken
        woken += 1
        readable_callback(waiter)

    monkeypatch.setattr(sources_module._AsyncioWaiter, "readable", counted)

    async def main() -> None:
        nonlocal woken
        readable, writable = os.pipe()
        async with MessageStream(readable, Decoder(dict)) as stream:
            for n in range(3):
                os.write(writable, numbered(n, n + 1))
                assert (await anext(stream))["n"] == n
            # More than is read ahead, so that the pipe stays readable.
            for n in range(3, 40):
                os.write(writable, numbered(n, n + 1))
                await asyncio.sleep(0)
            assert woken
            # It looks at its descriptors in each turn. Once it has found one that nobody reads, it forgets that.
            for _ in range(10):
                await asyncio.sleep(0)
            woken = 0
            for _ in range(1000):
                await asyncio.sleep(0)
            assert woken == 0
            for n in range(3, 40):
                assert (await anext(stream))["n"] == n
        os.close(readable)
        os.close(writable)

    backend.run(main)


@every_backend
def test_what_comes_in_the_moment_of_closing_is_not_given(backend: Backend) -> None:
    """A step ends with the stream, though its source had a chunk in hand and gave it all the same."""

    async def main() -> None:
        asked, go = anyio.Event(), anyio.Event()

        class Late:
            def __aiter__(self) -> Late:
                return self

            async def __anext__(self) -> bytes:
                asked.set()
                with anyio.CancelScope(shield=True):
                    await go.wait()
                return RESULT

        stream = MessageStream(Late())
        ended = False

        async def step() -> None:
            nonlocal ended
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
            ended = True

        async with anyio.create_task_group() as group:
            group.start_soon(step)
            await asked.wait()
            await stream.aclose()
            go.set()
        assert ended
        assert stream.stats.messages == 0

    backend.run(main)


class EndedJustNow(Drain):
    """A drain whose writer writes its last bytes, and ends, just before it is seen that the writer has ended."""

    def __init__(self, fd: int, last: Callable[[], object]) -> None:
        super().__init__(fd)
        self._last: Callable[[], object] | None = last

    @property
    def watched(self) -> bool:
        ended: bool = Drain.watched.__get__(self)
        if ended and self._last is not None:
            self._last()
            self._last = None
        return ended

    @watched.setter
    def watched(self, ended: bool) -> None:
        Drain.watched.__set__(self, ended)


@every_backend
def test_what_a_process_wrote_last_is_read_though_its_end_was_seen_first(backend: Backend) -> None:
    """Another process holds the pipe, so that it has no end, and the last bytes came after the last read."""
    readable, writable = os.pipe()
    alive, dead = os.pipe()

    async def main() -> None:
        drain = EndedJustNow(readable, lambda: os.write(writable, b"last"))
        chunks = Drained(drain)
        drain.watch(alive)

        async def end() -> None:
            await anyio.wait_all_tasks_blocked()
            os.close(dead)

        async with anyio.create_task_group() as group:
            group.start_soon(end)
            assert bytes(await chunks.receive()) == b"last"
        assert bytes(await chunks.receive()) == b""
        await chunks.aclose()

    backend.run(main)
    for number in (readable, writable, alive):
        os.close(number)


@every_asyncio
def test_closing_a_loop_with_streams_in_it_leaves_nothing_behind(backend: Backend) -> None:
    kept: list[Any] = []

    async def main(numbers: list[int]) -> None:
        for number in numbers:
            kept.append(MessageStream(number))
            with anyio.move_on_after(0.001):
                await anext(kept[-1])

    before = descriptors()
    pairs = [os.pipe() for _ in range(4)]
    backend.run(main, [readable for readable, _ in pairs])
    # Collected after the loop is closed, and in another one.
    kept.pop()

    async def drop() -> None:
        kept.pop()
        gc.collect()
        await kept.pop().aclose()
        await assert_usable()

    backend.run(drop)
    kept.clear()
    gc.collect()
    for pair in pairs:
        for number in pair:
            os.close(number)
    assert opened_since(before) == {}


# --- one loop, one process --------------------------------------------------------------------------------------------


@every_asyncio
def test_a_stream_belongs_to_the_loop_in_which_it_was_first_read(backend: Backend) -> None:
    readable, writable = os.pipe()
    stream = MessageStream(readable, Decoder(dict))

    async def step() -> Any:
        return await anext(stream)

    async def close() -> None:
        await stream.aclose()

    os.write(writable, numbered(0, 1))
    assert backend.run(step)["n"] == 0
    for other in (ASYNCIO, UVLOOP):
        with pytest.raises(HandleError, match="event loop"):
            other.run(step)
    with pytest.raises(RuntimeError):
        TRIO.run(step)
    backend.run(close)
    os.close(readable)
    os.close(writable)


@every_asyncio
def test_a_loop_may_stop_and_run_on_between_steps(backend: Backend) -> None:
    # As a synchronous program does that runs its loop for one step at a time.
    loop = pytest.importorskip("uvloop").new_event_loop() if backend is UVLOOP else asyncio.new_event_loop()
    readable, writable = os.pipe()
    stream = MessageStream(readable, Decoder(dict))

    async def step() -> Any:
        return await anext(stream)

    for n in range(10):
        os.write(writable, numbered(n, n + 1))
        assert loop.run_until_complete(step())["n"] == n
    loop.run_until_complete(stream.aclose())
    loop.close()
    os.close(readable)
    os.close(writable)


@every_backend
def test_a_stream_may_be_closed_after_its_loop(backend: Backend) -> None:
    readable, writable = os.pipe()
    os.write(writable, RESULT)

    async def main() -> MessageStream[Any]:
        stream = MessageStream(readable)
        await anext(stream)
        return stream

    with suppress(StopIteration):
        backend.run(main).aclose().__await__().send(None)
    assert os.get_blocking(readable)  # as it was before the stream
    os.close(readable)
    os.close(writable)


def in_child(action: Callable[[], object]) -> int:
    """Run ``action`` in a forked child and return its exit code: 0, or 1 if an exception came out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: that is what is tested
        pid = os.fork()
    if pid == 0:
        code = 1
        unraisable: list[Any] = []
        sys.unraisablehook = unraisable.append
        try:
            action()
            gc.collect()
            assert unraisable == []
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@every_backend
def test_a_forked_child_cannot_iterate_and_its_parent_goes_on(backend: Backend) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        streams = [MessageStream(readable, Decoder(dict))]

        def use() -> None:
            # On trio the child is in the midst of its parent's run.
            step = collect(streams[0])
            with pytest.raises(HandleError, match=r"process|fork"):
                next(step.__await__()) if backend is TRIO else asyncio.run(step)  # trio's run goes on in the child

        def drop() -> None:
            streams.clear()
            gc.collect()

        def close() -> None:
            with suppress(StopIteration, HandleError):
                streams[0].aclose().__await__().send(None)

        assert in_child(use) == 0  # before its first step
        n = 0
        for action in (use, drop, close):
            for _ in range(2):
                os.write(writable, numbered(n, n + 1))
                assert (await anext(streams[0]))["n"] == n
                n += 1
                assert in_child(action) == 0
            # Also while a task of the parent waits: what the child does must not make it deaf.
            async with anyio.create_task_group() as group:
                found: list[Any] = []

                async def read(found: list[Any] = found) -> None:
                    found.append(await anext(streams[0]))

                group.start_soon(read)
                await until_it_waits()
                if action is not use:
                    assert in_child(action) == 0
                os.write(writable, numbered(n, n + 1))
            assert found[0]["n"] == n
            n += 1
        await streams[0].aclose()
        os.close(readable)
        os.close(writable)

    backend.run(main)


# --- other tasks run --------------------------------------------------------------------------------------------------

#: Most bytes that may flow from one turn of the loop to the next. Reading and decoding go on for 1 ms, and then for one
#: chunk; that is 1 to 2 MB on a fast machine. Counted in bytes and not in seconds, it is the same on a busy one.
MOST_BYTES_A_TURN = 10_000_000

#: Three times as many at least: whoever starves the others lets them all flow at once.
FLOOD = 60_000_000 if long_tests.LONG else 30_000_000


@contextmanager
def flood(size: int, block: bytes) -> Iterator[Any]:
    """A child process that writes so many bytes as fast as it can."""
    script = "import os, sys\nblock = sys.stdin.buffer.read()\nfor _ in range(int(sys.argv[1])): os.write(1, block)"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", script, str(size // len(block))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        child.stdin.write(block)
        child.stdin.close()
        try:
            yield child.stdout
        finally:
            child.kill()


async def watched(stream: MessageStream[Any], iterate: Callable[[], Awaitable[Any]]) -> tuple[list[int], list[int]]:
    """Bytes that were decoded from turn to turn of the loop, and from tick to tick of a timer of 1 ms."""
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


@every_backend
def test_one_who_writes_on_after_the_process_has_ended_does_not_starve_other_tasks(backend: Backend) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        ended, of_the_process = os.pipe()
        os.close(of_the_process)
        drain = open_drain(readable)
        drain.watch(ended)
        while not drain.watched:
            assert drain.read() is None
        with written(writable, itertools.repeat(b"x" * BLOCK_BYTES)):
            chunks = Drained(drain)
            turns = seen = 0
            async with anyio.create_task_group() as group:

                async def turn() -> None:
                    nonlocal turns
                    while True:
                        await anyio.lowlevel.checkpoint()
                        turns += 1

                group.start_soon(turn)
                while seen < FLOOD:
                    seen += len(await chunks.receive())
                group.cancel_scope.cancel()
            await chunks.aclose()
            os.close(readable)
        os.close(ended)
        assert turns >= FLOOD // MOST_BYTES_A_TURN

    backend.run(main)


def unpaused() -> AsyncIterator[bytes]:
    """A generator that never waits."""
    block = EVENT * (BLOCK_BYTES // len(EVENT))
    return generate(itertools.repeat(block, FLOOD // len(block)))


@pytest.mark.parametrize("how", ["pipe", "file", "generator", "stream-reader", "anyio"])
@pytest.mark.parametrize("in_lists", [True, False], ids=["batches", "one-by-one"])
@every_backend
def test_a_producer_that_never_pauses_does_not_starve_other_tasks(
    backend: Backend, how: str, in_lists: bool, tmp_path: Path
) -> None:
    if how == "stream-reader" and backend is TRIO:
        pytest.skip("asyncio's own")
    block = EVENT * (BLOCK_BYTES // len(EVENT))

    async def main() -> None:
        count = 0
        async with AsyncExitStack() as stack:
            source: Any
            if how == "generator":
                source = unpaused()
            elif how == "file":
                path = tmp_path / "flood"
                path.write_bytes(block * (FLOOD // len(block)))
                source = stack.enter_context(path.open("rb"))
            elif how == "pipe":
                source = stack.enter_context(flood(FLOOD, block))
            elif how == "stream-reader":
                pipe = stack.enter_context(flood(FLOOD, block))
                source = asyncio.StreamReader(limit=1 << 20)
                transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                    lambda: asyncio.StreamReaderProtocol(source), os.fdopen(os.dup(pipe.fileno()), "rb")
                )
                stack.callback(transport.close)
            else:
                process = await stack.enter_async_context(
                    await anyio.open_process(
                        [
                            *[sys.executable, "-S", "-c"],
                            "import os, sys\nfor _ in range(int(sys.argv[1])): os.write(1, sys.argv[2].encode())",
                            *[str(FLOOD // len(block)), block.decode()],
                        ]
                    )
                )
                source = process.stdout
            stream = MessageStream(source)

            async def iterate() -> None:
                nonlocal count
                if in_lists:
                    async for batch in stream.batches():
                        count += len(batch)
                else:
                    async for _ in stream:
                        count += 1

            by_turn, by_tick = await watched(stream, iterate)
        assert count == FLOOD // len(block) * (len(block) // len(EVENT))
        assert sum(by_turn) == sum(by_tick) == FLOOD // len(block) * len(block)
        assert max(by_turn) < MOST_BYTES_A_TURN
        assert max(by_tick) < MOST_BYTES_A_TURN

    backend.run(main)


@every_backend
def test_a_line_of_100_mb_comes_and_other_tasks_run_while_it_does(backend: Backend) -> None:
    start = b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"'
    text = b"x" * 100_000_000

    async def main() -> None:
        readable, writable = os.pipe()
        line = start + text + b'"}]},"session_id":"s"}\n' + RESULT
        with written(writable, [line]):
            stream = MessageStream(readable)
            found: list[Any] = []

            async def iterate() -> None:
                async for message in stream:
                    found.append(message)

            by_turn, _ = await watched(stream, iterate)
        os.close(readable)
        message, result = found
        assert message.text == text.decode()
        assert type(result) is ResultSuccess
        assert sum(by_turn) == len(line)
        assert max(by_turn) < MOST_BYTES_A_TURN

    backend.run(main)


# --- what nobody reads ------------------------------------------------------------------------------------------------


@pytest.fixture
def small_budget() -> Iterator[int]:
    before = byte_budget()
    set_byte_budget(100_000)
    yield 100_000
    set_byte_budget(before)


@pytest.mark.parametrize("overflow", ["pause", "spill", "error"])
@every_backend
def test_all_that_came_while_nobody_read_comes_whatever_happens_above_the_budget(
    backend: Backend, overflow: Any, small_budget: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        with pipe(blocks(LONG, 1000)) as readable:
            stream = MessageStream(readable, overflow=overflow)
            while True:  # until as much was taken as will be
                stats = stream.drain_stats
                assert stats is not None
                if stats.paused or stats.bytes_rescued == len(LONG):
                    break
                await anyio.sleep(0.001)
            found = await steps(stream, ByteBudgetError)
            assert stream.drain_stats is not None
            assert (stream.drain_stats.pauses > 0) == (overflow != "spill")
            assert (stream.drain_stats.bytes_spilled > 0) == (overflow == "spill")
        assert [item for item in found if not isinstance(item, ByteBudgetError)] == whole(LONG)
        raised = [item for item in found if isinstance(item, ByteBudgetError)]
        assert bool(raised) == (overflow == "error")
        assert {error.limit for error in raised} <= {small_budget}

    backend.run(main)
    if overflow != "error":
        assert len(caplog.records) == (overflow == "pause")  # said once


@every_backend
def test_the_pipe_is_emptied_while_the_loop_is_blocked(backend: Backend) -> None:
    async def main() -> None:
        readable, writable = os.pipe()
        with os.fdopen(readable, "rb"), written(writable, blocks(LONG, 1000)) as writer:
            stream = MessageStream(readable)
            first = await anext(stream)
            # No turn of the loop until all of it is written, ten times what the pipe holds.
            writer.join(DEADLINE)
            assert not writer.is_alive()
            assert [first, *await collect(stream)] == whole(LONG)

    backend.run(main)


# --- where a pipe cannot be polled ------------------------------------------------------------------------------------


@contextmanager
def through_a_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """A pipe. Streams that are made meanwhile are read as on systems without epoll; their threads have ended after."""
    monkeypatch.setattr("claude_wire.io.sources.open_drain", ThreadDrain)
    others = set(threading.enumerate())
    readable, writable = os.pipe()
    try:
        yield readable, writable
    finally:
        monkeypatch.undo()
        os.close(writable)
        os.close(readable)
        for thread in set(threading.enumerate()) - others:
            if thread.name == "claude-wire-drain":
                thread.join(DEADLINE)


@every_backend
def test_a_thread_wakes_a_reader_that_was_long_busy(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(readable: int, writable: int) -> None:
        async with MessageStream(readable, Decoder(dict)) as stream:
            for n in range(10):
                if n % 2:  # what comes while it waits, and what comes before
                    async with anyio.create_task_group() as group:
                        group.start_soon(collect_one, stream, n)
                        await until_it_waits()
                        os.write(writable, numbered(n, n + 1))
                else:
                    os.write(writable, numbered(n, n + 1))
                    await collect_one(stream, n)
                time.sleep(2 * SLICE_SECONDS)  # so that it lets other tasks run before it reads on

    async def collect_one(stream: MessageStream[Any], n: int) -> None:
        assert (await anext(stream))["n"] == n

    with through_a_thread(monkeypatch) as pipe:
        backend.run(main, *pipe)


@every_backend
def test_what_comes_through_a_thread_after_the_loop_has_ended_is_nobodys_error(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(readable: int) -> MessageStream[Any]:
        stream = MessageStream(readable)
        with anyio.move_on_after(0.001):
            await anext(stream)
        return stream

    with through_a_thread(monkeypatch) as (readable, writable):
        stream = backend.run(main, readable)
        os.write(writable, RESULT)
        wait_until(lambda: stream._receiver.chunks.drain.ready)
        stream._receiver.chunks.drain.close()
    assert not caplog.records


@every_backend
def test_a_stream_through_a_thread_gives_all_and_may_be_cancelled(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(readable: int, writable: int) -> list[Any]:
        found: list[Any] = []
        with written(os.dup(writable), blocks(numbered(0, 20_000), 1000)):
            async with MessageStream(readable, Decoder(dict)) as stream:
                while len(found) < 20_000:
                    with anyio.move_on_after(0.001):
                        async for message in stream:
                            found.append(message["n"])
                            if message["n"] == 19_999:
                                break
        return found

    with through_a_thread(monkeypatch) as pipe:
        assert backend.run(main, *pipe) == list(range(20_000))


@every_backend
@pytest.mark.parametrize("in_a_cycle", [False, True])
def test_a_dropped_stream_does_not_live_on_in_its_thread(
    backend: Backend, in_a_cycle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(readable: int, writable: int) -> None:
        stream = MessageStream(readable)
        gone = weakref.ref(stream._receiver.chunks.drain)
        assert isinstance(gone(), ThreadDrain)
        os.write(writable, RESULT)
        await anext(stream)
        with anyio.move_on_after(0.001):  # it has waited, and is to be woken
            await anext(stream)
        if in_a_cycle:
            stream.cycle = stream
        del stream
        gc.collect()
        await anyio.sleep(0)
        gc.collect()
        assert gone() is None

    with through_a_thread(monkeypatch) as pipe:
        backend.run(main, *pipe)


# --- the same, synchronously ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 50, 10_000])
def test_read_steps_over_bad_lines_as_a_stream_does(size: int) -> None:
    # Several in one chunk, one behind the other: each is raised before more bytes are asked for.
    readable, writable = os.pipe()
    with written(writable, blocks(BAD * 3 + b"bad\nbad\n{", size)), open(readable, "rb") as file:
        reader = read(file, on_invalid="raise")
        found: list[type] = []
        while True:
            try:
                found.append(type(next(reader)))
            except InvalidLineError:
                found.append(InvalidLineError)
            except StopIteration:
                break
    assert found == [*BAD_TYPES * 3, InvalidLineError, InvalidLineError, InvalidLineError]


def test_what_follows_a_bad_line_needs_no_more_bytes_of_read_either() -> None:
    readable, writable = os.pipe()
    with open(readable, "rb") as file, open(writable, "wb", buffering=0) as sink:
        sink.write(BAD)
        reader = read(file, on_invalid="raise")
        for cls in BAD_TYPES:
            try:
                found: Any = next(reader)
            except InvalidLineError as error:
                found = error
            assert type(found) is cls
