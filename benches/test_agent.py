"""An agent: the cost of a delta that it writes to a pipe, and of a message that our host reads in memory.

A child process (agent_writer.py) writes the deltas with one ``write`` per line, and ``cat`` reads them. The benches
measure the child's CPU time from the first delta to the last.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import claude_wire
from claude_wire.agent import Agent, AgentOptions, Turn
from claude_wire.testing import open_agent
from conftest import Contest, takes_own_time

WRITER = Path(__file__).with_name("agent_writer.py")
DELTAS = 50_000
SESSIONS = 1_000
WORDS = 50


def cpu_seconds(how: str) -> float:
    """Return the child's CPU seconds per delta."""
    program = [sys.executable, str(WRITER), how, str(DELTAS)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        reader = subprocess.Popen(["cat"], stdin=writer.stdout, stdout=subprocess.DEVNULL)
        told = writer.communicate()[1]
        reader.wait()
    return float(told) / DELTAS


@takes_own_time
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_delta(contest: Contest, backend: str) -> None:
    contest.measured(
        f"agent, CPU of a delta through a pipe, {backend}",
        lambda: cpu_seconds(backend),
        at_most={"uuid4, json.dumps and print": (lambda: cpu_seconds("plain"), 1 / 3)},
    )


async def speak(turn: Turn) -> None:
    for _ in range(WORDS):
        await turn.stream("word ")


OPTIONS = claude_wire.ClaudeOptions(include_partial_messages=True)


async def drain(session: claude_wire.Session) -> int:
    await session.query("go")
    count = 0
    async for _ in session.receive_response():
        count += 1
    return count


async def with_agents() -> int:
    async def one() -> int:
        async with open_agent(Agent(speak), OPTIONS) as session:
            return await drain(session)

    return await together(one)


async def recorded() -> list[bytes]:
    """Return the lines that an agent writes in one turn."""
    lines: list[bytes] = []

    class Target(anyio.abc.ByteSendStream):
        async def send(self, item: bytes) -> None:
            lines.append(item)

        async def aclose(self) -> None:
            pass

    async def source() -> Any:
        yield b'{"type":"user","message":{"role":"user","content":"go"}}\n'

    await Agent(speak, options=AgentOptions(include_partial_messages=True)).serve(source(), Target())
    return lines


@asynccontextmanager
async def replayed(lines: list[bytes]) -> Any:
    to_host, output = anyio.create_memory_object_stream[bytes](64)

    async def write() -> None:
        for line in lines:
            await to_host.send(line)

    async def send(line: bytes) -> None:
        group.start_soon(write)

    async with anyio.create_task_group() as group:
        with to_host, output:
            async with claude_wire.MessageStream(output) as stream, claude_wire.Session(stream, send) as session:
                yield session


async def with_replays(lines: list[bytes]) -> int:
    async def one() -> int:
        async with replayed(lines) as session:
            return await drain(session)

    return await together(one)


async def together(one: Callable[[], Awaitable[int]]) -> int:
    total = 0

    async def add() -> None:
        nonlocal total
        count = await one()
        total += count

    async with anyio.create_task_group() as group:
        for _ in range(SESSIONS):
            group.start_soon(add)
    return total


@takes_own_time
def test_message(contest: Contest) -> None:
    """Run 1,000 pairs of our host and our agent at the same time; compare with hosts that read recorded lines."""
    lines = anyio.run(recorded)

    def seconds(main: Callable[..., Awaitable[int]], *args: Any) -> float:
        began = time.process_time()
        count = anyio.run(main, *args)
        return (time.process_time() - began) / count

    contest.measured(
        "agent and session in memory, 1,000 at once",
        lambda: seconds(with_agents),
        at_most={"replay of the same lines": (lambda: seconds(with_replays, lines), 1.5)},
        rounds=3,
    )
