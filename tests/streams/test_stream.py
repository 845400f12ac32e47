"""MessageStream returns every message of a source once and in order, and raises exceptions at the right place.

The sources are real pipes, sockets, terminals and files. The tests compare the stream's messages with those that
``Decoder.feed`` returns for the same bytes in one call.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import random
import re
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import pytest

import recordings
from async_backends import TRIO, Backend, every_backend
from claude_wire import Decoder, InvalidLine, InvalidLineError, MessageStream, StreamEvent
from claude_wire.messages import ResultSuccess
from claude_wire.streams import Batches
from stream_sources import (
    BAD,
    BAD_TYPES,
    EVENT,
    LONG,
    RESULT,
    Chunks,
    blocks,
    collect,
    every_source,
    generate,
    numbered,
    pipe,
    steps,
    whole,
    written,
)

pytestmark = pytest.mark.usefixtures("no_descriptor_leaks")


def at_places(data: bytes, seed: int = 1) -> list[bytes]:
    """Cut the data at about a hundred random places, half of them within two bytes of the end of a line."""
    rng = random.Random(seed)
    ends = [found.start() for found in re.finditer(b"\n", data)] or [0]
    cuts = {rng.randrange(len(data)) for _ in range(50)}
    cuts |= {max(0, min(len(data), rng.choice(ends) + rng.randint(-2, 2))) for _ in range(50)}
    places = [0, *sorted(cuts - {0, len(data)}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


# --- every message arrives, from every source, wherever the chunks are cut --------------------------------------------


SHORT = recordings.load("14_bad_true").stdout
#: A recording that ends in the middle of a line.
CUT = recordings.load("19_slowread_long_6").stdout


@pytest.mark.parametrize(
    ("data", "cut"),
    [
        pytest.param(LONG, blocks, id="in-blocks"),
        pytest.param(LONG, at_places, id="at-places"),
        pytest.param(CUT, at_places, id="truncated"),
        pytest.param(SHORT[:1500], lambda data: blocks(data, 1), id="byte-by-byte"),
        pytest.param(b"", blocks, id="nothing"),
        pytest.param(b"\xef\xbb\xbf\n" + RESULT + b"bad\n\n\r\n" + RESULT[:-1], blocks, id="odd-lines"),
    ],
)
@every_source()
async def test_every_source_gives_what_the_decoder_makes_of_the_whole(
    backend: Backend, source: Any, data: bytes, cut: Callable[[bytes], list[bytes]], tmp_path: Path
) -> None:
    async with source(cut(data), tmp_path) as opened:
        stream = MessageStream(opened)
        assert await collect(stream) == whole(data)
        decoder = Decoder()
        decoder.feed(data)
        decoder.close()
        assert stream.stats == decoder.stats


@every_source()
async def test_batches_are_the_same_messages_in_lists(backend: Backend, source: Any, tmp_path: Path) -> None:
    async with source(at_places(LONG), tmp_path) as opened, MessageStream(opened) as stream:
        batches = stream.batches()
        assert isinstance(batches, Batches)
        lists = await collect(batches)
    assert all(type(batch) is list and batch for batch in lists)
    assert [message for batch in lists for message in batch] == whole(LONG)


@every_backend
async def test_every_recording_comes_through_a_pipe() -> None:
    for name in recordings.names():
        data = recordings.load(name).stdout
        with pipe(blocks(data)) as readable:
            assert await collect(MessageStream(readable)) == whole(data)


@every_backend
def test_messages_of_every_recorded_read_come_before_the_next_is_written(backend: Backend) -> None:
    # A stream that waits for a full block, or for one more line, would hang here.
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
async def test_messages_one_by_one_and_in_lists_may_be_mixed() -> None:
    data = numbered(0, 20_000)

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


@every_backend
async def test_a_batch_holds_what_was_left_by_the_last_step() -> None:
    readable, writable = os.pipe()
    os.write(writable, numbered(0, 5))
    async with MessageStream(readable, Decoder(dict)) as stream:
        assert (await anext(stream))["n"] == 0
        assert [message["n"] for message in await anext(stream.batches())] == [1, 2, 3, 4]
    os.close(readable)
    os.close(writable)


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
async def test_the_descriptor_remains_the_callers() -> None:
    readable, writable = os.pipe()
    assert os.get_blocking(readable)
    stream = MessageStream(readable, Decoder(dict))
    os.write(writable, numbered(0, 1))
    assert (await anext(stream))["n"] == 0
    await stream.aclose()
    # The pipe is still open and blocking again, and it still holds the bytes that the stream did not read.
    assert os.get_blocking(readable)
    os.write(writable, b"for the next reader")
    assert os.read(readable, 100) == b"for the next reader"
    os.close(readable)
    os.close(writable)


@every_backend
async def test_the_caller_may_close_its_descriptor_at_once() -> None:
    readable, writable = os.pipe()
    with written(writable, blocks(LONG)):
        stream = MessageStream(readable)
        os.close(readable)
        # A new pipe reuses the number of the closed descriptor immediately. The stream must not read that pipe.
        other, other_end = os.pipe()
        os.write(other_end, RESULT)
        assert await collect(stream) == whole(LONG)
    assert os.read(other, 100) == RESULT
    os.close(other)
    os.close(other_end)


@every_backend
async def test_the_stats_tell_what_was_read_also_after_the_end() -> None:
    with pipe(blocks(LONG)) as readable:
        stream = MessageStream(readable)
        assert stream.stats.bytes == 0
        await collect(stream)
        assert stream.stats.bytes == len(LONG)
        assert stream.drain_stats is not None
    assert MessageStream(generate([])).drain_stats is None


# --- exceptions do not end the iteration ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 50, 10_000])
@every_source()
async def test_invalid_lines_are_raised_in_their_place(
    backend: Backend, source: Any, size: int, tmp_path: Path
) -> None:
    data = BAD * 10 + b'{"cut'

    async with source(blocks(data, size), tmp_path) as opened:
        found = await steps(MessageStream(opened, Decoder(on_invalid="raise")), InvalidLineError)
    assert [type(item) for item in found] == [*BAD_TYPES * 10, InvalidLineError]
    raised = [item for item in found if isinstance(item, InvalidLineError)]
    assert [item.line for item in raised] == [item for item in whole(data) if isinstance(item, InvalidLine)]
    # The iteration has already returned the messages before the bad line, so the error must not repeat them.
    assert all(item.messages == [] for item in raised)


@every_backend
async def test_in_lists_too() -> None:
    with pipe([BAD]) as readable:
        found = await steps(MessageStream(readable, Decoder(on_invalid="raise")).batches(), InvalidLineError)
    flat = [piece for item in found for piece in (item if isinstance(item, list) else [item])]
    assert [type(item) for item in flat] == BAD_TYPES


@pytest.mark.parametrize("source", ["pipe", "generator", "stream-reader"])
@every_backend
def test_what_follows_a_bad_line_needs_no_more_bytes(backend: Backend, source: str) -> None:
    # The source sends no more bytes. A stream that holds the messages back until the next bytes would hang here.
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
async def test_invalid_lines_are_values_in_their_place_unless_asked_otherwise() -> None:
    with pipe(blocks(BAD, 7)) as readable:
        found = await collect(MessageStream(readable))
    assert found == whole(BAD)
    assert [item.raw for item in found if isinstance(item, InvalidLine)] == [b"bad 1", b"bad 2", b"bad 3", b"bad 4"]


@pytest.mark.parametrize("end", [b'{"type":"resu', b"\xf0\x9f", b'"'])
@every_source()
async def test_a_last_line_that_is_cut_is_told(backend: Backend, source: Any, end: bytes, tmp_path: Path) -> None:
    async with source([RESULT + end], tmp_path) as opened:
        result, cut = await collect(MessageStream(opened))
    assert type(result) is ResultSuccess
    assert isinstance(cut, InvalidLine)
    assert cut.raw == end
    assert cut.reason.startswith("truncated")


@pytest.mark.parametrize("size", [1, 50, 10_000])
@every_backend
async def test_an_exception_of_the_callable_is_raised_and_no_message_is_lost(size: int) -> None:
    data = BAD + b"bad at the end"

    def complain(line: InvalidLine) -> None:
        raise KeyError(line.raw)

    with pipe(blocks(data, size)) as readable:
        found = await steps(MessageStream(readable, Decoder(on_invalid=complain)), KeyError)
    assert [error.args[0] for error in found if isinstance(error, KeyError)] == [
        *[b"bad 1", b"bad 2", b"bad 3", b"bad 4", b"bad at the end"]
    ]
    messages = [item for item in found if not isinstance(item, KeyError)]
    assert messages == [message for message in whole(data) if not isinstance(message, InvalidLine)]


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
        # As after Ctrl-C, the messages of the interrupted chunk are lost (see Decoder.feed), and no others.
        lost = range(5 // size * size, 5 // size * size + size)
        assert [item["n"] for item in found if type(item) is dict] == [n for n in range(20) if n not in lost]

    backend.run(main)


@every_backend
async def test_an_error_of_the_iterable_is_raised_and_the_iteration_goes_on() -> None:
    class Failing(Chunks):
        async def __anext__(self) -> bytes:
            chunk = await super().__anext__()
            if chunk == b"fail":
                raise OSError("no carrier")
            return chunk

    source = Failing([RESULT[:10], b"fail", RESULT[10:] + EVENT, b"fail", b"fail", EVENT])
    found = await steps(MessageStream(source), OSError)
    assert [type(item) for item in found] == [OSError, ResultSuccess, StreamEvent, OSError, OSError, StreamEvent]


@every_backend
async def test_an_error_of_a_generator_ends_it_and_what_it_gave_is_told() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield RESULT + RESULT[:9]
        raise OSError("no carrier")

    found = await steps(MessageStream(failing()), OSError)
    assert [type(item) for item in found] == [ResultSuccess, OSError, InvalidLine]
    assert found[-1].raw == RESULT[:9]


@every_backend
async def test_an_error_of_the_socket_is_raised_after_what_came_before_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    with ours:
        stream = MessageStream(ours)
        theirs.sendall(RESULT)
        assert type(await anext(stream)) is ResultSuccess
        # With a linger time of 0, closing the socket sends a reset instead of an orderly end.
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        theirs.close()
        with pytest.raises(ConnectionResetError):
            await anext(stream)
        assert await collect(stream) == []


@every_backend
async def test_an_iterable_of_something_else_is_a_type_error() -> None:
    stream = MessageStream(generate(["text", RESULT]))
    with pytest.raises(TypeError):
        await anext(stream)
    assert await collect(stream) == whole(RESULT)


@every_backend
async def test_a_directory_cannot_be_read(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(IsADirectoryError):
            await anext(MessageStream(directory))
    finally:
        os.close(directory)
