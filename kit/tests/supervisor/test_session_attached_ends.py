"""A session attached to a supervisor: how it ends, and what the next session continues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from async_backends import every_backend
from claude_wire import HandleError, ProcessError, ProcessInputError, SessionEndedError, TurnError, UnfinishedTurnError
from claude_wire_kit.supervisor.errors import DetachedError
from claude_wire_kit.supervisor.frames import Cursor, Ended
from session_peer import INIT, RESULT, Peer, allow, collect, line, numbered, numbers
from supervisor_peer import SupervisorPeer, result

ENDS: list[tuple[dict[str, Any], type[Exception] | None, str]] = [
    ({"exit_code": 0}, None, ""),
    ({"exit_code": 1, "stderr": "Error: no"}, ProcessError, "exited with code 1"),
    ({"exit_code": -9, "calls": ["t1", "t2"]}, ProcessError, "2 tool calls have no result, and were perhaps done"),
    ({"exit_code": None, "unfinished": "in the middle of a turn"}, UnfinishedTurnError, "ended with its supervisor"),
    ({"exit_code": 0, "unfinished": "in the middle of a turn"}, UnfinishedTurnError, "in the middle of a turn"),
    (
        {"exit_code": None, "unfinished": "while a subagent worked in the background"},
        UnfinishedTurnError,
        "output ended while a subagent worked in the background; the process ended with its supervisor",
    ),
]


@every_backend
@pytest.mark.parametrize(("ended", "error", "words"), ENDS)
@pytest.mark.parametrize("when", ["then", "before"])
async def test_the_stream_ends_as_that_of_a_process(
    ended: dict[str, Any], error: type[Exception] | None, words: str, when: str
) -> None:
    supervisor = SupervisorPeer()
    supervisor.say(numbered(1))
    if when == "before":
        supervisor.ended = Ended(**ended)
    wire, session = supervisor.connect()
    async with session:
        if when == "then":
            wire.say(type="supervisor_ended", **ended)
            supervisor.say(numbered(2))  # a line of the next process
        got: list[Any] = []
        if error is None:
            await collect(session, got)
        else:
            with pytest.raises(error, match=words) as caught:
                await collect(session, got)
            assert isinstance(caught.value, ProcessError)
            assert caught.value.returncode == ended["exit_code"]
            assert caught.value.calls == ended.get("calls", [])
            assert caught.value.stderr_tail == ended.get("stderr", "").encode()
        assert [message async for message in session] == []
        assert numbers(got) == [1]
        with pytest.raises(SessionEndedError):
            await session.set_model("x")
        with pytest.raises(ProcessInputError, match="has ended"):
            await session.query("x")
        assert wire.received == []


@every_backend
async def test_the_last_of_the_standard_error_is_kept_for_the_error() -> None:
    wire, session = SupervisorPeer().connect()
    async with session:
        for text in "first", "x" * 70_000, "last":
            wire.say(type="supervisor_stderr", text=text)
        wire.say(type="supervisor_ended", exit_code=2)
        with pytest.raises(ProcessError) as caught:
            await collect(session, [])
        assert len(caught.value.stderr_tail) == 64 * 1024
        assert caught.value.stderr_tail.endswith(b"xlast")


@every_backend
async def test_a_process_that_ends_for_a_failed_turn_raises_what_the_turn_says() -> None:
    supervisor = SupervisorPeer()
    wire, session = supervisor.connect()
    async with session:
        supervisor.say(INIT, {**RESULT, "is_error": True, "subtype": "error_max_turns"})
        wire.say(type="supervisor_ended", exit_code=1)
        with pytest.raises(TurnError, match="max_turns"):
            await collect(session, [])


@every_backend
@pytest.mark.parametrize("how", ["cut", "lost", "in the middle of a line", "of a frame", "failed"])
async def test_the_end_of_a_connection_has_the_cursor_and_what_was_not_acknowledged(how: str) -> None:
    supervisor = SupervisorPeer(acknowledges=False)
    supervisor.say(Peer.permission("q"), numbered(1))
    wire, session = supervisor.connect(can_use_tool=allow)
    async with session:
        await wire.answer_to("q")
        await session.query("one", uuid="p1")
        await session.query("two", uuid="p2")
        with anyio.move_on_after(0):
            await session.set_model("opus")
        wire.say(type="supervisor_accepted", lines=2)
        end: dict[str, Callable[[], object]] = {
            "cut": lambda: wire.say(type="supervisor_cut", cursor={"id": "s1", "epoch": 1, "line": 2}, message="slow"),
            "lost": lambda: None,
            "in the middle of a line": lambda: wire.write(line(numbered(2))[:-1]),
            "of a frame": lambda: wire.write(b'{"type":"supervisor_accep'),
            "failed": lambda: wire.output.write(ConnectionResetError("reset")),
        }
        end[how]()
        if how != "cut":
            wire.lose()
        got: list[Any] = []
        with pytest.raises(DetachedError, match="the session goes on there") as caught:
            await collect(session, got)
        assert numbers(got) == [1]
        assert caught.value.cursor == Cursor("s1", 1, 2) == session.cursor
        assert [b'"p2"' in sent for sent in caught.value.unacknowledged] == [True]
        assert [message async for message in session] == []
        with pytest.raises(SessionEndedError):
            await session.set_model("x")
        with pytest.raises(DetachedError) as refused:
            await session.query("x", uuid="p3")
        assert len(refused.value.unacknowledged) == (1 if how == "cut" else 2)


@every_backend
async def test_who_waits_is_told_that_the_connection_is_lost_though_nobody_iterates() -> None:
    for lose in (lambda wire: wire.lose(), lambda wire: wire.say(type="supervisor_ended", exit_code=3)):
        wire, session = SupervisorPeer().connect()
        async with session, anyio.create_task_group() as group:

            async def end(wire: Any = wire, lose: Any = lose) -> None:
                await wire.until(lambda: wire.received)
                lose(wire)

            group.start_soon(end)
            with pytest.raises(SessionEndedError):
                await session.set_model("opus")


@every_backend
async def test_what_was_not_acknowledged_is_sent_again_and_counts_once() -> None:
    supervisor = SupervisorPeer(acknowledges=False)
    supervisor.say(Peer.permission("q"))
    wire, session = supervisor.connect(can_use_tool=allow)
    async with session:
        await wire.answer_to("q")
        await session.query("one", uuid="p1")
        lost = session.unacknowledged
        assert len(lost) == 2
    wire.lose()
    supervisor.acknowledges = True
    supervisor.prompts, supervisor.owed = [], []  # the line with the prompt has not arrived
    again, second = supervisor.connect(session.cursor)
    async with second:
        await second.send_again(lost)
        assert again.prompts() == ["p1"] == supervisor.prompts
        assert len(again.answers_to("q")) == 1
        supervisor.say(result("p1"))
        assert [type(message).__name__ async for message in second.receive_run()] == ["ResultSuccess"]
        assert second.unacknowledged == []


@every_backend
async def test_a_prompt_that_is_sent_again_has_its_result_among_the_lines_that_were_missed() -> None:
    supervisor = SupervisorPeer()
    supervisor.prompts = ["p1"]
    supervisor.say(INIT, result("p1"), numbered(1))
    wire, session = supervisor.connect()
    async with session:
        await session.send_again([line({"type": "user", "uuid": "p1", "message": {"role": "user", "content": "x"}})])
        assert len([message async for message in session.receive_run()]) == 3
        assert supervisor.prompts == wire.prompts() == ["p1"]


@every_backend
async def test_what_is_not_acknowledged_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claude_wire_kit.supervisor.unacknowledged.MAX_UNACKNOWLEDGED_BYTES", 4096)

    supervisor = SupervisorPeer(acknowledges=False)
    wire, session = supervisor.connect(can_use_tool=allow)
    async with session:
        await session.query("x" * 3000, uuid="p1")
        for _ in range(2):
            with pytest.raises(HandleError, match="not acknowledged"):
                await session.query("x" * 3000, uuid="p2")
        supervisor.say(*(Peer.permission(f"q{number}") for number in range(20)))
        await wire.answer_to("q19")  # the session continues to answer, but does not keep the answers
        assert sum(map(len, session.unacknowledged)) < 4096
        wire.say(type="supervisor_accepted", lines=21)
        with anyio.fail_after(60):
            while session.unacknowledged:
                await anyio.sleep(0.001)
        await session.query("x" * 3000, uuid="p2")
    assert wire.prompts() == ["p1", "p2"]


@every_backend
async def test_the_input_of_a_managed_cli_is_ended_by_a_line() -> None:
    wire, session = SupervisorPeer().connect()
    async with session:
        await session.end_input()
    assert wire.received == [{"type": "supervisor_end_input"}]
