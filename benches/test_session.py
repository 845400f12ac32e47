"""A session with a real child: what a message costs, how long a permission takes, and an idle session's memory.

One child (asker.py) lives for all rounds and writes on command, so the start of a process or an event loop is not
measured. ``query()`` of claude-agent-sdk starts a child for each call. The jobs that are compared with it do the same,
and the time counts from the first message.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import claude_wire
import peers
from conftest import Contest, Runner, takes_own_time

sdk = peers.agent_sdk
CHILD = Path(__file__).with_name("asker.py")
LINES = 40_000
QUESTIONS = 300

#: The flags that a host passes to the CLI. The stand-in ignores them.
STREAM_JSON = ("--input-format", "stream-json", "--output-format", "stream-json")


# --- what a message costs ---------------------------------------------------------------------------------------------


async def by_process(process: claude_wire.Process[Any], command: str) -> None:
    await process.send(claude_wire.UserMessage.of(command))
    async for message in process:
        if isinstance(message, claude_wire.ResultMessage):
            return


async def by_session(session: claude_wire.Session, command: str) -> None:
    await session.query(command)
    async for _ in session.receive_response():
        pass


async def by_process_in_batches(process: claude_wire.Process[Any], command: str) -> None:
    await process.send(claude_wire.UserMessage.of(command))
    async for batch in process.batches():
        if isinstance(batch[-1], claude_wire.ResultMessage):
            return


async def by_session_in_batches(session: claude_wire.Session, command: str) -> None:
    await session.query(command)
    async for batch in session.batches():
        if isinstance(batch[-1], claude_wire.ResultMessage):
            return


@pytest.mark.parametrize("how", ["blocks", "lines"])
@pytest.mark.parametrize("iterate", ["one by one", "in batches"])
def test_message(contest: Contest, stand_in: str, runner: Runner, how: str, iterate: str) -> None:
    """Read a child that writes blocks, like a CLI whose reader was busy, or one line at a time."""
    command = f"{how} {LINES}"
    argv = [stand_in, *STREAM_JSON]
    process, session = claude_wire.open_process(argv), claude_wire.open_session(argv)
    ours, theirs = by_session, by_process
    if iterate == "in batches":
        ours, theirs = by_session_in_batches, by_process_in_batches
    runner(process.__aenter__())
    runner(session.__aenter__())
    contest(
        f"session, child writes {how}, {iterate}",
        LINES,
        lambda: runner(ours(session, command)),
        at_most={"open_process alone": (lambda: runner(theirs(process, command)), 1.5)},
    )
    runner(session.aclose())
    runner(process.aclose())


@takes_own_time
def test_message_against_query(contest: Contest, stand_in: str) -> None:
    """Measure the seconds per message, from the first message to the result."""

    async def ours() -> float:
        async with claude_wire.open_session([stand_in, *STREAM_JSON]) as session:
            await session.query(f"blocks {LINES}")
            begin = 0.0
            async for _ in session.receive_response():
                begin = begin or time.perf_counter()
            return (time.perf_counter() - begin) / LINES

    async def theirs() -> float:
        begin = end = 0.0
        options = sdk.ClaudeAgentOptions(cli_path=stand_in, include_partial_messages=True)
        async for message in sdk.query(prompt=f"blocks {LINES}", options=options):
            begin = begin or time.perf_counter()
            if isinstance(message, sdk.ResultMessage):
                end = time.perf_counter()
        return (end - begin) / LINES

    contest.measured(
        "session, child writes blocks, from the first message on",
        lambda: anyio.run(ours),
        at_most={"claude-agent-sdk's query()": (sdk and (lambda: anyio.run(theirs)), 1 / 8)},
        rounds=3,
    )


# --- how long a permission takes --------------------------------------------------------------------------------------


# On trio, claude-agent-sdk leaves generators unclosed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator 'claude_agent_sdk:ResourceWarning")
@takes_own_time
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_permission(contest: Contest, stand_in: str, backend: str) -> None:
    """Measure the time from the write of a permission question to its answer at the child, one after another."""

    async def allow(request: claude_wire.CanUseToolRequest) -> claude_wire.messages.PermissionResult:
        return request.allow()

    async def ours() -> list[float]:
        options = claude_wire.ClaudeOptions(cli_path=stand_in)
        async with claude_wire.open_session(options, can_use_tool=allow) as session:
            result = await session.ask(f"ask {QUESTIONS}")
            return json.loads(result.result or "")

    async def allow_by_theirs(name: str, input: dict[str, Any], context: Any) -> Any:
        return sdk.PermissionResultAllow()

    async def theirs() -> list[float]:
        async with sdk.ClaudeSDKClient(
            sdk.ClaudeAgentOptions(cli_path=stand_in, can_use_tool=allow_by_theirs)
        ) as client:
            await client.query(f"ask {QUESTIONS}")
            results: list[str] = []
            async for message in client.receive_response():  # ends after the result
                if isinstance(message, sdk.ResultMessage):
                    results.append(message.result or "")
        return json.loads(results[0])

    def median(latencies: Callable[[], Awaitable[list[float]]]) -> float:
        found = anyio.run(latencies, backend=backend)
        assert len(found) == QUESTIONS
        return statistics.median(found) / 1e9

    contest.measured(
        f"permission, {backend}",
        lambda: median(ours),
        at_most={"claude-agent-sdk's client": (sdk and (lambda: median(theirs)), 1.0)},
    )


# --- what an idle session holds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_memory(contest: Contest, backend: str) -> None:
    """Measure in a new process, which has no freed memory of earlier benches to use."""
    program = [sys.executable, str(Path(__file__).with_name("idle_sessions.py")), backend]
    contest.memory(f"an idle session in memory, {backend}", lambda: float(subprocess.check_output(program)))
