"""A real pipe: what a line from a child process costs, one event's latency, and what idle children cost.

One child (writer.py) lives for all rounds and writes on command, so the start of a process or an event loop is not
measured.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

import claude_wire
import peers
import workloads
from conftest import Contest, Runner, takes_own_time

CHILD = Path(__file__).with_name("writer.py")
LINES = 40_000
EVENTS = 200
SECONDS = 3.0
SDK = "claude-agent-sdk's transport, parse_message"


def writer(lines_file: Path) -> claude_wire.Process[Any]:
    return claude_wire.open_process([sys.executable, "-S", str(CHILD), str(lines_file)])


class Stock:
    """A child whose output claude-agent-sdk's transport and message parser read."""

    def __init__(self, stand_in: str) -> None:
        self._transport = peers.SubprocessCLITransport("", peers.agent_sdk.ClaudeAgentOptions(cli_path=stand_in))

    async def start(self) -> None:
        await self._transport.connect()
        self.messages: AsyncIterator[Any] = self._transport.read_messages()

    async def take(self, command: bytes) -> None:
        await self._transport.write(command.decode())
        left = LINES
        async for data in self.messages:
            peers.parse_message(data)
            left -= 1
            if not left:
                return

    async def latencies(self, command: bytes) -> list[float]:
        await self._transport.write(command.decode())
        found: list[float] = []
        async with aclosing(self.messages) as messages:
            async for data in messages:
                message: Any = peers.parse_message(data)
                found.append(time.perf_counter_ns() - int(message.event["delta"]["text"]))
                if len(found) == EVENTS:
                    break
        return found

    async def close(self) -> None:
        await self._transport.close()


@pytest.fixture
def stock(stand_in: str, runner: Runner) -> Iterator[Stock | None]:
    """Start claude-agent-sdk's transport with its child, for all rounds. None if the SDK is not installed."""
    if peers.SubprocessCLITransport is None or peers.parse_message is None:
        yield None
        return
    started = Stock(stand_in)
    runner(started.start())
    yield started
    runner(started.close())


async def one_by_one(process: claude_wire.Process[Any], command: bytes) -> None:
    await process.send_bytes(command)
    left = LINES
    async for _ in process:
        left -= 1
        if not left:
            return


async def in_batches(process: claude_wire.Process[Any], command: bytes) -> None:
    await process.send_bytes(command)
    left = LINES
    async for batch in process.batches():
        left -= len(batch)
        if not left:
            return


async def thrown_away(process: claude_wire.Process[Any], command: bytes, size: int) -> None:
    """Read the output of a command without decoding it."""
    await process.send_bytes(command)
    while size:
        size -= len(await process._receiver.chunks.receive())


def test_block_writer(contest: Contest, lines_file: Path, stock: Stock | None, runner: Runner) -> None:
    """Read a child that writes blocks, like a CLI whose reader was busy for a moment.

    The loop that throws the bytes away takes 0.4 times as long as the feed: the system calls, the copy out of the pipe,
    and a wake-up for each 64 KiB. So the feed from a pipe takes at least 1.4 times as long as in memory, and the first
    claim is missed. The second is about the sum of both.
    """
    command = b"blocks %d\n" % LINES
    size = len(workloads.deltas()) * workloads.PASSES
    chunks = workloads.chunks(workloads.deltas() * workloads.PASSES)
    assert LINES == workloads.LINES

    def in_memory() -> None:
        feed = claude_wire.Decoder().feed
        for chunk in chunks:
            feed(chunk)

    def read_then_feed() -> None:
        runner(thrown_away(process, command, size))
        in_memory()

    process = writer(lines_file)
    runner(process.__aenter__())
    contest(
        "open_process, child writes blocks, batches()",
        LINES,
        lambda: runner(in_batches(process, command)),
        at_most={
            "feed of the same in memory": (in_memory, 1.3),
            "reading and throwing away, then feed in memory": (read_then_feed, 1.3),
        },
        faster_than={
            SDK: (stock and (lambda: runner(stock.take(command))), 7),
            "claude_wire, async for, one by one": (lambda: runner(one_by_one(process, command)), None),
        },
    )
    runner(process.aclose())


def test_line_writer(contest: Contest, lines_file: Path, stock: Stock | None, runner: Runner) -> None:
    """Read a child that writes one line at a time without a pause, faster than a CLI would."""
    command = b"lines %d\n" % LINES
    size = len(workloads.deltas()) * workloads.PASSES
    process = writer(lines_file)
    runner(process.__aenter__())
    contest(
        "open_process, child writes lines, async for",
        LINES,
        lambda: runner(one_by_one(process, command)),
        at_most={
            "the same loop, reading and throwing away": (lambda: runner(thrown_away(process, command, size)), 1.2)
        },
        faster_than={SDK: (stock and (lambda: runner(stock.take(command))), None)},
    )
    runner(process.aclose())


@takes_own_time
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_latency(contest: Contest, lines_file: Path, stand_in: str, backend: str) -> None:
    """Measure the time from the write of a line to its message at the host, with one line per 2 ms."""
    command = b"paced %d 2000\n" % EVENTS

    async def ours() -> list[float]:
        async with writer(lines_file) as process:
            await process.send_bytes(command)
            found: list[float] = []
            async for message in process:
                found.append(time.perf_counter_ns() - int(message.text_delta))
                if len(found) == EVENTS:
                    break
            return found

    async def theirs() -> list[float]:
        transport = Stock(stand_in)
        await transport.start()
        try:
            return await transport.latencies(command)
        finally:
            await transport.close()

    def median(latencies: Callable[[], Awaitable[list[float]]]) -> float:
        return statistics.median(anyio.run(latencies, backend=backend)) / 1e9

    contest.measured(
        f"latency of one event, {backend}",
        lambda: median(ours),
        at_most={SDK: (peers.SubprocessCLITransport and (lambda: median(theirs)), 1.0)},
    )


@takes_own_time
def test_idle_sessions(contest: Contest, lines_file: Path) -> None:
    """Measure the processor time of all the host's threads while 100 children are idle."""

    async def idle() -> float:
        async with AsyncExitStack() as stack, anyio.create_task_group() as group:

            async def read(process: claude_wire.Process[Any]) -> None:
                async for _ in process:
                    pass

            for _ in range(100):
                group.start_soon(read, await stack.enter_async_context(writer(lines_file)))
            await anyio.sleep(2)  # wait until the children are running
            used = time.process_time()
            await anyio.sleep(SECONDS)
            used = time.process_time() - used
            group.cancel_scope.cancel()
        return used

    contest.measured(
        "100 idle children, 3 s",
        lambda: anyio.run(idle),
        at_most={"3 s of one core": (lambda: SECONDS, 0.01)},
        rounds=1,
    )
