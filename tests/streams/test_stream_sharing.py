"""MessageStream shares the event loop with other tasks, and the byte budget with other streams."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import pytest

import long_tests
from async_backends import DEADLINE, TRIO, Backend, every_backend
from claude_wire import InvalidLineError, MessageStream, read
from claude_wire.errors import ByteBudgetError
from claude_wire.limits import BLOCK_BYTES
from claude_wire.messages import ResultSuccess
from claude_wire.streams import byte_budget, set_byte_budget
from claude_wire.streams.sources import PipeChunks, open_pipe
from stream_sources import (
    BAD,
    BAD_TYPES,
    EVENT,
    LONG,
    RESULT,
    blocks,
    collect,
    generate,
    pipe,
    steps,
    watched,
    whole,
    written,
)

pytestmark = pytest.mark.usefixtures("no_descriptor_leaks")


# --- other tasks run --------------------------------------------------------------------------------------------------


#: The most bytes that a stream may read in one turn of the loop. It reads and decodes for 1 ms and then finishes its
#: chunk, which is 1 to 2 MB on a fast machine. A limit in bytes, unlike one in seconds, also holds on a busy machine.
MAX_BYTES_A_TURN = 15_000_000
#: At least twice as many bytes. A stream that starves other tasks would read all of them in one turn.
FLOOD = 60_000_000 if long_tests.LONG else 30_000_000


@contextmanager
def flood(size: int, block: bytes) -> Iterator[Any]:
    """Start a child process that writes ``size`` bytes as fast as it can."""
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


@every_backend
async def test_one_who_writes_on_after_the_process_has_ended_does_not_starve_other_tasks() -> None:
    readable, writable = os.pipe()
    ended, of_the_process = os.pipe()
    os.close(of_the_process)
    drain = open_pipe(readable)
    drain.watch(ended)
    while not drain.watched:
        assert drain.read() is None
    with written(writable, itertools.repeat(b"x" * BLOCK_BYTES)):
        chunks = PipeChunks(drain)
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
    assert turns >= FLOOD // MAX_BYTES_A_TURN


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
        assert max(by_turn) < MAX_BYTES_A_TURN
        assert max(by_tick) < MAX_BYTES_A_TURN

    backend.run(main)


@every_backend
async def test_a_line_of_100_mb_comes_and_other_tasks_run_while_it_does() -> None:
    start = b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"'
    text = b"x" * 100_000_000

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
    assert max(by_turn) < MAX_BYTES_A_TURN


# --- unread data ------------------------------------------------------------------------------------------------------


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
            while True:  # until the drain has taken as much as it will
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
        assert len(caplog.records) == (overflow == "pause")  # the pause is logged only once


@every_backend
async def test_the_pipe_is_emptied_while_the_loop_is_blocked() -> None:
    readable, writable = os.pipe()
    with os.fdopen(readable, "rb"), written(writable, blocks(LONG, 1000)) as writer:
        stream = MessageStream(readable)
        first = await anext(stream)
        # Block the loop until everything is written, which is ten times what the pipe holds.
        writer.join(DEADLINE)
        assert not writer.is_alive()
        assert [first, *await collect(stream)] == whole(LONG)


# --- the same, synchronously ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 50, 10_000])
def test_read_steps_over_bad_lines_as_a_stream_does(size: int) -> None:
    # Several bad lines in one chunk: each is raised before the next read.
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
