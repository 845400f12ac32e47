"""Many concurrent sessions with permission callbacks in one process: 1,000 in memory, 50 with child processes."""

from __future__ import annotations

import gc
import json
import resource
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import recordings
from async_backends import ASYNCIO, TRIO, Backend, every_backend
from children import linux_only, nothing_left
from claude_wire import CanUseToolRequest, ClaudeOptions, MessageStream, ResultMessage, Session, open_session
from claude_wire.messages import PermissionResult
from claude_wire.testing import Recording, Replay

SESSIONS = 1_000
CHILDREN = 50
QUESTIONS = 3
#: The most bytes that an idle session in memory may use. This is several times the measured size; see
#: benches/test_session.py.
IDLE_BYTES = 200 * 1024

every_loop = pytest.mark.parametrize("backend", [ASYNCIO, TRIO], ids=["asyncio", "trio"])
RECORDED = Recording.from_files(recordings.load("05_perm_allow_deny").files)
RESULT = RECORDED.stdout.splitlines(keepends=True)[-1]


def question(session: int, number: int) -> bytes:
    request = {
        "subtype": "can_use_tool",
        "tool_name": "Bash",
        "input": {"session": session, "number": number},
        "tool_use_id": f"toolu_{number}",
    }
    return json.dumps({"type": "control_request", "request_id": f"ask-{number}", "request": request}).encode() + b"\n"


class Pair:
    """A session in memory and its agent, which asks permission questions after a prompt and then sends a result."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.output, self.source = anyio.create_memory_object_stream[bytes](10)
        self.input, self.sent = anyio.create_memory_object_stream[bytes](10)
        self.session = Session(MessageStream(self.source), self.input.send, can_use_tool=self.decide)
        self.answers: list[dict[str, Any]] = []

    async def decide(self, request: CanUseToolRequest) -> PermissionResult:
        assert request.input["session"] == self.number
        await anyio.sleep(0)
        return request.deny("no") if request.input["number"] == 1 else request.allow()

    async def answer(self) -> None:
        """Play the agent: ask the questions after a prompt, and collect the answers of the session."""
        async for line in self.sent:
            message = json.loads(line)
            if message["type"] == "user":
                for number in range(QUESTIONS):
                    await self.output.send(question(self.number, number))
            else:
                self.answers.append(message["response"])
                if len(self.answers) == QUESTIONS:
                    await self.output.send(RESULT)

    def close(self) -> None:
        for stream in (self.output, self.source, self.input, self.sent):
            stream.close()

    @property
    def is_right(self) -> bool:
        """Whether every question got the answer that belongs to it."""
        given = {answer["request_id"]: answer["response"] for answer in self.answers}
        return len(self.answers) == QUESTIONS and all(
            given[f"ask-{number}"]["behavior"] == ("deny" if number == 1 else "allow")
            and given[f"ask-{number}"]["toolUseID"] == f"toolu_{number}"
            and (number == 1 or given[f"ask-{number}"]["updatedInput"] == {"session": self.number, "number": number})
            for number in range(QUESTIONS)
        )


@every_loop
def test_1000_sessions_at_once_in_memory_all_complete(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("async_backends.DEADLINE", 300.0)
    entered = done = 0

    async def run(pair: Pair, all_entered: anyio.Event) -> None:
        nonlocal entered, done
        async with anyio.create_task_group() as group, pair.session as session:
            entered += 1
            if entered == SESSIONS:
                all_entered.set()
            await all_entered.wait()
            group.start_soon(pair.answer)
            result = await session.ask("go")
            assert isinstance(result, ResultMessage)
            done += 1
            group.cancel_scope.cancel()
        pair.close()

    async def main() -> list[Pair]:
        pairs = [Pair(number) for number in range(SESSIONS)]
        all_entered = anyio.Event()
        async with anyio.create_task_group() as group:
            for pair in pairs:
                group.start_soon(run, pair, all_entered)
        return pairs

    pairs = backend.run(main)
    assert done == SESSIONS
    assert [pair.number for pair in pairs if not pair.is_right] == []


@linux_only
@every_backend
def test_50_sessions_at_once_with_children_all_complete(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("async_backends.DEADLINE", 300.0)
    stand_in = Replay(RECORDED).script(tmp_path / "claude")
    asked: list[str] = []
    results: list[list[str]] = []
    entered = 0

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request.tool_name)
        return request.allow()

    async def run(all_entered: anyio.Event) -> None:
        nonlocal entered
        async with open_session(
            ClaudeOptions(cli_path=stand_in), can_use_tool=decide, request_timeout=200.0, grace=60.0
        ) as session:
            entered += 1
            if entered == CHILDREN:
                all_entered.set()
            await all_entered.wait()
            await session.query("go")
            results.append([type(message).__name__ async for message in session.receive_response()])
            await session.end_input()
            assert [message async for message in session] == []

    async def main() -> None:
        all_entered = anyio.Event()
        async with anyio.create_task_group() as group:
            for _ in range(CHILDREN):
                group.start_soon(run, all_entered)

    with nothing_left():
        backend.run(main)
    assert len(results) == CHILDREN
    assert all(result == results[0] and result[-1].startswith("Result") for result in results)
    assert sorted(asked) == sorted(["Bash", "Bash", "Write"] * CHILDREN)


@every_loop
def test_an_idle_session_holds_little_memory(backend: Backend) -> None:
    async def iterate(session: Session) -> None:
        async for _ in session:
            pass

    async def main() -> float:
        pairs: list[Pair] = []
        async with anyio.create_task_group() as group:

            async def enter(count: int) -> int:
                for number in range(count):
                    pairs.append(Pair(number))
                    group.start_soon(iterate, await pairs[-1].session.__aenter__())
                await anyio.wait_all_tasks_blocked()
                gc.collect()
                return tracemalloc.get_traced_memory()[0]

            before = await enter(20)  # creates the shared objects, so the next measurement counts only sessions
            after = await enter(200)
            for pair in pairs:
                await pair.session.aclose()
                pair.close()
        return (after - before) / 200

    tracemalloc.start()
    try:
        found = backend.run(main)
    finally:
        tracemalloc.stop()
    assert 1024 < found < IDLE_BYTES


@pytest.fixture(autouse=True)
def _many_descriptors() -> Iterator[None]:
    """Raise the limit of open files: each child needs six descriptors, and the test process needs some more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 20 * CHILDREN:
        resource.setrlimit(resource.RLIMIT_NOFILE, (20 * CHILDREN, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
