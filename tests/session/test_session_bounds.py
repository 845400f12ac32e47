"""The byte budget and the number of unanswered requests limit how much a session reads ahead."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import claude_wire.control.answers as answers_module
from async_backends import every_backend
from claude_wire import CanUseToolRequest
from claude_wire.errors import ByteBudgetError
from claude_wire.messages import PermissionResult
from claude_wire.streams import set_byte_budget
from claude_wire.streams.read_ahead import SHARE_BYTES
from session_peer import Peer, numbered, numbers, opened_for_questions, queued_bytes, rest

pytestmark = pytest.mark.usefixtures("nothing_is_queued")


@every_backend
async def test_reading_ahead_stops_at_the_byte_budget_and_goes_on_when_there_is_room() -> None:
    before = queued_bytes()
    budget = 2 * SHARE_BYTES
    set_byte_budget(before + budget)
    async with opened_for_questions() as (peer, session):
        for number in range(100):
            peer.say(numbered(number, 10_000))
        peer.say(Peer.permission("p"))
        peer.output.end()
        with anyio.fail_after(60):
            while queued_bytes() < before + budget:
                await anyio.sleep(0.001)
        for _ in range(3):
            await anyio.sleep(0.05)  # longer than the session waits before it checks for room again
        assert peer.output.waiting > 40
        assert before + budget <= queued_bytes() < before + budget + 22_000
        assert not peer.answers_to("p")
        # The consumer reads up to the question, or frees enough of the budget for the session to read it.
        got = [await session.__anext__() for _ in range(95)]
        await peer.answer_to("p")
        got += await rest(session)
        assert numbers(got) == list(range(100))
        assert queued_bytes() == before


@every_backend
async def test_one_session_that_exhausts_the_budget_does_not_silence_the_others() -> None:
    before = queued_bytes()
    set_byte_budget(before + 2 * SHARE_BYTES)
    async with opened_for_questions() as (peer, session):
        peer.say(*(numbered(number, 10_000) for number in range(100)))
        with anyio.fail_after(60):
            while queued_bytes() < before + 2 * SHARE_BYTES:
                await anyio.sleep(0.001)
        async with opened_for_questions() as (other, _):  # this also exchanges initialize and its answer
            other.say(*(numbered(number, 1000) for number in range(100)), Peer.permission("p"))
            await other.answer_to("p")
        assert numbers([await session.__anext__()]) == [0]


# --- too many requests ------------------------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize("who", ["the session", "the consumer"])
@pytest.mark.parametrize("how", ["callbacks do not end", "answers are not taken"])
async def test_a_peer_that_goes_on_asking_is_read_no_further_until_there_is_room(
    who: str, how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(answers_module, "MAX_TASKS", 10)

    go = anyio.Event()
    asked: list[str | None] = []

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request.tool_use_id)
        await go.wait()
        return request.allow()

    async with opened_for_questions(can_use_tool=decide) as (peer, session), anyio.create_task_group() as group:
        got: list[Any] = []

        async def consume() -> None:
            got.extend(await rest(session))

        if who == "the consumer":
            group.start_soon(consume)
            await anyio.wait_all_tasks_blocked()
        if how == "answers are not taken":
            peer.hold = go.wait
        ids = [f"p{number}" for number in range(100)]
        for request_id in ids:
            peer.say(Peer.permission(request_id) if how == "callbacks do not end" else Peer.request(request_id, "of"))
            peer.say(numbered(len(got)))
        peer.output.end()
        with anyio.fail_after(60):
            while peer.output.waiting > 190:
                await anyio.sleep(0.001)
        for _ in range(3):
            await anyio.sleep(0.06)  # longer than the session waits before it checks for room again
        assert peer.output.waiting > 170
        go.set()
        for request_id in ids:
            await peer.answer_to(request_id)
        if how == "callbacks do not end":
            assert sorted(map(str, asked)) == sorted(f"use-{request_id}" for request_id in ids)
        if who == "the session":
            await consume()
    assert len(got) == 100
    assert ["stops reading" in record.getMessage() for record in caplog.records] == [True]


@every_backend
@pytest.mark.parametrize("how", ["answered", "withdrawn"])
async def test_the_timers_of_callbacks_that_are_over_do_not_count(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the session would stop reading after a few thousand callbacks with long timeouts."""
    monkeypatch.setattr(answers_module, "MAX_TASKS", 5)

    begun: list[str | None] = []

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        begun.append(request.tool_use_id)
        if how == "withdrawn":
            await anyio.sleep_forever()
        return request.allow()

    async with opened_for_questions(can_use_tool=decide, callback_timeout=3600.0) as (peer, _):
        for number in range(30):
            peer.say(Peer.permission(f"p{number}"))
            if how == "withdrawn":
                with anyio.fail_after(60):
                    while len(begun) <= number:
                        await anyio.sleep(0.001)
                peer.say(Peer.cancel(f"p{number}"))
            else:
                await peer.answer_to(f"p{number}")


@every_backend
async def test_a_session_whose_requests_are_too_many_bytes_reads_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "MAX_WAITING_BYTES", 2000)

    go = anyio.Event()

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        await go.wait()
        return request.allow()

    async with opened_for_questions(can_use_tool=decide) as (peer, session):
        for number in range(20):
            peer.say(Peer.permission(f"p{number}", input={"command": "x" * 500}))
        with anyio.fail_after(60):
            while session._control.answers.waiting_bytes < 2000:
                await anyio.sleep(0.001)
        await anyio.wait_all_tasks_blocked()
        assert peer.output.waiting >= 16
        go.set()
        for number in range(20):
            await peer.answer_to(f"p{number}")


@every_backend
@pytest.mark.parametrize("kind", ["can_use_tool", "nonsense", "withdrawn"])
async def test_the_bytes_of_requests_that_are_over_do_not_count(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the session would stop reading after some tens of megabytes of finished requests."""
    monkeypatch.setattr(answers_module, "MAX_WAITING_BYTES", 2000)

    begun: list[str | None] = []

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        begun.append(request.tool_use_id)
        if kind == "withdrawn":
            await anyio.sleep_forever()
        return request.allow()

    async with opened_for_questions(can_use_tool=decide) as (peer, session):
        for number in range(20):
            request_id, text = f"p{number}", "x" * 500
            if kind == "nonsense":
                peer.say(Peer.request(request_id, kind, text=text))
            else:
                peer.say(Peer.permission(request_id, input={"command": text}))
            if kind == "withdrawn":
                with anyio.fail_after(60):
                    while len(begun) <= number:
                        await anyio.sleep(0.001)
                peer.say(Peer.cancel(request_id))
            else:
                await peer.answer_to(request_id)
        await anyio.wait_all_tasks_blocked()
        assert kind == "withdrawn" or session._control.answers.waiting_bytes == 0


@every_backend
async def test_closing_ends_a_step_that_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "MAX_TASKS", 3)

    async def forever(request: CanUseToolRequest) -> PermissionResult:
        await anyio.sleep_forever()
        return request.allow()

    async with opened_for_questions(can_use_tool=forever) as (peer, session), anyio.create_task_group() as group:
        for number in range(9):
            peer.say(Peer.permission(f"p{number}"))
        group.start_soon(rest, session)
        await anyio.sleep(0.1)
        assert peer.output.waiting
        await session.aclose()


@every_backend
async def test_what_is_kept_is_given_back_when_it_is_not_wanted() -> None:
    before = queued_bytes()
    peer = Peer()
    async with opened_for_questions(peer) as (_, session):
        peer.say(*(numbered(number, 1000) for number in range(50)), Peer.permission("p"))
        await peer.answer_to("p")
        assert queued_bytes() > before + 50_000
        assert numbers([await session.__anext__()]) == [0]
        peer.say(*(numbered(number, 1000) for number in range(50)), Peer.permission("q"))
        await peer.answer_to("q")
        assert queued_bytes() > before + 50_000
    assert queued_bytes() == before


@every_backend
async def test_reading_ahead_goes_on_behind_an_exhausted_budget_that_is_an_error() -> None:
    async with opened_for_questions() as (peer, session):
        peer.output.write(ByteBudgetError(100))
        peer.say(Peer.permission("p"), numbered(1))
        await peer.answer_to("p")
        with pytest.raises(ByteBudgetError):
            await session.__anext__()
        assert numbers([await session.__anext__()]) == [1]
