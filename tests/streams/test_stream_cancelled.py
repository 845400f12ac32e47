"""MessageStream loses no message at the end of a source or when a step is cancelled."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
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

import long_tests
from async_backends import ASYNCIO, TRIO, UVLOOP, Backend, every_backend
from claude_wire import Decoder, HandleError, InvalidLineError, MessageStream
from claude_wire.messages import ResultSuccess
from stream_sources import (
    EVENT,
    LONG,
    RESULT,
    Chunks,
    blocks,
    collect,
    descriptors,
    every_source,
    generate,
    leave_by_block,
    numbered,
    opened_since,
    until_it_waits,
    whole,
    written,
)

pytestmark = pytest.mark.usefixtures("no_descriptor_leaks")


# --- sources ----------------------------------------------------------------------------------------------------------


#: Sources that the system feeds directly. Only bytes wake the waiting task, not another task of the test.
WAITING = ["pipe", "socket", "terminal", "anyio-tcp", "stream-reader-of-a-socket", "trio-socket", "trio-pipe"]


# --- the end ----------------------------------------------------------------------------------------------------------


@every_source()
async def test_after_the_end_there_are_no_more_steps(backend: Backend, source: Any, tmp_path: Path) -> None:
    async with source([RESULT], tmp_path) as opened:
        stream = MessageStream(opened)
        assert len(await collect(stream)) == 1
        for iterator in (stream, stream.batches(), stream):
            with pytest.raises(StopAsyncIteration):
                await anext(iterator)
        await stream.aclose()
        assert await collect(stream) == []


@every_source()
async def test_after_closing_there_are_no_more_steps(backend: Backend, source: Any, tmp_path: Path) -> None:
    async with source(blocks(LONG), tmp_path) as opened:
        stream = MessageStream(opened)
        first = await anext(stream)
        assert first == whole(LONG)[0]
        for _ in range(2):
            await stream.aclose()
            # The closed stream returns neither messages that it had decoded nor those still in the pipe.
            assert await collect(stream) == []
            assert await collect(stream.batches()) == []


@every_source()
async def test_a_stream_may_be_closed_before_its_first_step(backend: Backend, source: Any, tmp_path: Path) -> None:
    async with source(blocks(LONG), tmp_path) as opened:
        async with MessageStream(opened) as stream:
            pass
        assert await collect(stream) == []


@every_backend
async def test_closing_forgets_an_exception_that_was_to_come() -> None:
    stream = MessageStream(generate([RESULT + b"bad\n" + RESULT]), Decoder(on_invalid="raise"))
    await anext(stream)
    await stream.aclose()
    assert await collect(stream) == []


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
async def test_closing_ends_the_step_of_another_task_that_waits(backend: Backend, source: Any, tmp_path: Path) -> None:
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


@every_backend
async def test_closing_ends_the_step_of_another_task_that_waits_for_an_iterable() -> None:
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


@every_backend
async def test_a_generator_is_closed_with_the_stream() -> None:
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


@every_backend
async def test_what_else_was_given_remains_the_callers() -> None:
    class Closable(Chunks):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

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
async def test_two_tasks_cannot_iterate() -> None:
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
            # The task that was already waiting is not disturbed by the error of the second one.
            os.write(writable, numbered(0, 2))
        assert [message["n"] for message in found] == [0]
        assert (await anext(stream))["n"] == 1
    os.close(readable)
    os.close(writable)


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
    """Yield a source of this kind and a non-blocking descriptor.

    Bytes written to the descriptor arrive at the source.
    """
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
    """An async iterator over an anyio stream. A cancelled step consumes no bytes."""

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
    """Write as many bytes as there is room for, and return the rest."""
    with suppress(BlockingIOError):
        return data[os.write(fd, data) :] if data else data
    return data


@pytest.mark.parametrize("kind", ["pipe", "stream-reader", "anyio-tcp", "iterable"])
@pytest.mark.parametrize(("backend", "cancel"), CANCELLATIONS)
@settings(max_examples=15 if long_tests.LONG else 5)
@given(
    script=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 8), st.booleans()), max_size=12),
    on_invalid=st.sampled_from(["return", "raise"]),
)
def test_cancellation_at_any_time_loses_no_message_and_repeats_none(
    backend: Backend, cancel: Cancel, kind: str, script: list[tuple[int, int, bool]], on_invalid: Any
) -> None:
    """An entry of the script is: bytes to write, loop turns until the cancellation, and whether to read in batches."""
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
async def test_a_step_that_was_cancelled_may_be_taken_again(backend: Backend, cancel: Cancel) -> None:
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


@every_backend
async def test_a_step_in_a_cancelled_scope_takes_nothing_that_it_does_not_give() -> None:
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


@every_backend
async def test_closing_needs_no_time_also_when_it_is_cancelled() -> None:
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
