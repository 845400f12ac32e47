"""Only one task at a time iterates over a session. The next task receives the messages that it has not read."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import anyio
import pytest

from async_backends import every_backend
from claude_wire import CanUseToolRequest, ControlRequest, HandleError, MessageStream, Session
from claude_wire.messages import PermissionResult
from session_peer import Peer, allow, line, numbered, numbers, opened_for_questions, rest

pytestmark = pytest.mark.usefixtures("nothing_is_queued")


@every_backend
async def test_one_task_iterates_at_a_time() -> None:
    async with opened_for_questions() as (peer, session):
        got: list[Any] = []

        async def consume() -> None:
            got.append(await session.__anext__())

        async with anyio.create_task_group() as group:
            group.start_soon(consume)
            await anyio.wait_all_tasks_blocked()
            for step in session.__anext__, session.batches().__anext__, session.receive_response().__anext__:
                with pytest.raises(HandleError, match="another task"):
                    await step()
            peer.say(numbered(1))
        assert numbers(got) == [1]
        peer.say(numbered(2))
        assert numbers([await session.__anext__()]) == [2]


@every_backend
async def test_a_callback_that_begins_in_the_midst_of_a_step_may_not_read_or_ask_beside_it() -> None:
    """The consumer's step is still running, so the callback can neither read a message nor send a prompt."""
    begun = anyio.Event()
    asked: list[str] = []

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        begun.set()
        with pytest.raises(HandleError, match="another task"):
            await session.__anext__()
        return request.allow()

    async def ask() -> None:
        await begun.wait()
        with pytest.raises(HandleError, match="another task"):
            await session.ask("x")
        asked.append("refused")

    async with opened_for_questions(can_use_tool=decide) as (peer, session), anyio.create_task_group() as group:
        got: list[Any] = []

        async def consume() -> None:
            got.append(await session.__anext__())

        group.start_soon(ask)
        group.start_soon(consume)
        await anyio.wait_all_tasks_blocked()
        peer.say(Peer.permission("p"))
        assert (await peer.answer_to("p"))["subtype"] == "success"
        await anyio.wait_all_tasks_blocked()
        assert asked == ["refused"]
        assert peer.prompts() == []
        peer.say(numbered(1))
    assert numbers(got) == [1]


@every_backend
async def test_closing_ends_a_step_that_waits() -> None:
    for read_before in False, True:
        async with opened_for_questions() as (peer, session):
            if read_before:
                peer.say(Peer.permission("p"))
                await peer.answer_to("p")
            ended: list[int] = []

            async def consume(session: Session = session, ended: list[int] = ended) -> None:
                ended.append(len(await rest(session)))

            async with anyio.create_task_group() as group:
                group.start_soon(consume)
                await anyio.wait_all_tasks_blocked()
                await session.aclose()
            assert ended == [0]
            with pytest.raises(HandleError, match="this session is closed"):
                await rest(session)


@every_backend
async def test_control_messages_that_were_seen_ahead_are_served_once_and_then_forgotten() -> None:
    async with opened_for_questions() as (peer, session):
        served: list[Any] = []
        handle = session._control.handle

        def counted(message: Any) -> None:
            served.append(message)
            handle(message)

        session._control.handle = counted
        for turn in range(3):
            for number in range(5):
                request_id = f"p{turn}-{number}"
                peer.say(numbered(number), Peer.permission(request_id), Peer.cancel("nobody's"))
                await peer.answer_to(request_id)  # the session reads ahead, because no task iterates
            assert numbers([await session.__anext__() for _ in range(5)]) == list(range(5))
            peer.say(numbered(5))
            assert numbers([await session.__anext__()]) == [5]
            assert len(served) == 10 * (turn + 1)
            assert not session._router._state.control


@every_backend
async def test_a_session_leaves_the_stream_to_its_owner() -> None:
    peer = Peer()
    async with peer.session(can_use_tool=allow) as session:
        peer.say(numbered(1), numbered(2), Peer.permission("p"))
        await peer.answer_to("p")
        assert numbers([await session.__anext__()]) == [1]
    peer.say(numbered(3))
    peer.output.end()
    left = [message async for message in peer.stream]
    assert numbers(message for message in left if not hasattr(message, "request_id")) == [2, 3]


class Late:
    """A source that returns a chunk although its step was cancelled."""

    def __init__(self, chunk: bytes) -> None:
        self._chunks = [chunk]
        self.asked = anyio.Event()
        self.go = anyio.Event()

    def __aiter__(self) -> Late:
        return self

    async def __anext__(self) -> bytes:
        self.asked.set()
        with anyio.CancelScope(shield=True):
            await self.go.wait()
        if not self._chunks:
            raise StopAsyncIteration
        return self._chunks.pop()


@every_backend
async def test_what_comes_in_the_moment_of_closing_is_left_to_the_owner_of_the_stream() -> None:
    source = Late(line(numbered(1)) + line(numbered(2)))
    stream = MessageStream(source)
    got: list[Any] = []

    async def consume(session: Session) -> None:
        got.extend(await rest(session))

    async with anyio.create_task_group() as group, Session(stream, Peer().send) as session:
        group.start_soon(consume, session)
        await source.asked.wait()
        group.start_soon(session.aclose)
        await anyio.wait_all_tasks_blocked()
        source.go.set()
    assert got == []
    assert numbers([message async for message in stream]) == [1, 2]


@every_backend
async def test_after_a_session_its_stream_may_have_another() -> None:
    peer = Peer()
    shown: list[bytes] = []
    async with peer.session(on_received=shown.append, can_use_tool=allow) as session:
        with pytest.raises(HandleError):
            async with Session(peer.stream, peer.send):
                raise AssertionError
        peer.say(*map(numbered, range(5)), Peer.permission("p"))
        await peer.answer_to("p")
        assert numbers([await session.__anext__()]) == [0]
    seen = len(shown)
    async with Session(peer.stream, peer.send, can_use_tool=allow) as session:
        peer.say(*map(numbered, range(5, 8)), Peer.permission("q"))
        await peer.answer_to("q")
        assert numbers([await session.__anext__() for _ in range(7)]) == list(range(1, 8))
    assert len(shown) == seen


@every_backend
@pytest.mark.parametrize("who", ["a session that iterates", "a session that does not", "the owner"])
async def test_a_question_that_comes_in_the_moment_of_closing_is_left_to_who_comes_next(who: str) -> None:
    peer = Peer()
    async with peer.session(can_use_tool=allow):
        peer.say(Peer.permission("first"))
        await peer.answer_to("first")
        await anyio.wait_all_tasks_blocked()  # the session now waits for the next chunk to read ahead
        peer.say(numbered(0), Peer.permission("late"))
    assert not peer.answers_to("late")
    taken: list[Any] = []
    if who == "the owner":
        while len(taken) < 3:
            taken.append(await peer.stream.__anext__())
    async with peer.session(can_use_tool=allow) as session:
        if who == "a session that iterates":
            taken.append(await session.__anext__())
        peer.say(Peer.permission("last"), numbered(1))
        await peer.answer_to("last")
        assert len(peer.answers_to("late")) == (who != "the owner")
        peer.output.end()
        taken += await rest(session)
        assert len(peer.answers_to("late")) == (who != "the owner")
    assert numbers(message for message in taken if not isinstance(message, ControlRequest)) == [0, 1]


@every_backend
async def test_a_later_session_goes_on_where_the_one_before_has_read_ahead() -> None:
    start = line(numbered(1)) + line(Peer.permission("p"))

    for cut in range(1, len(start) + 1, 12):
        peer = Peer()
        asked: list[str | None] = []

        async def decide(request: CanUseToolRequest, asked: list[str | None] = asked) -> PermissionResult:
            asked.append(request.tool_use_id)
            return request.allow()

        async with peer.session(can_use_tool=decide) as session:
            peer.say(numbered(0))
            assert numbers([await session.__anext__()]) == [0]
            peer.write(start[:cut])
            with anyio.fail_after(60):
                while peer.output.waiting:
                    await anyio.sleep(0.001)
        async with Session(peer.stream, peer.send, can_use_tool=decide) as session:
            peer.write(start[cut:])
            peer.say(Peer.permission("q"), numbered(2))
            await peer.answer_to("q")
            peer.output.end()
            assert numbers(await rest(session)) == [1, 2]
        assert sorted(map(str, asked)) == ["use-p", "use-q"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there are no eager tasks")
async def test_eager_callbacks_do_not_take_messages_before_their_turn() -> None:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    got: list[Any] = []

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        got.extend([await session.__anext__(), await session.__anext__()])
        return request.allow()

    async with opened_for_questions(can_use_tool=decide) as (peer, session):
        peer.write(b"".join(map(line, [numbered(1), Peer.permission("p"), numbered(2), numbered(3)])))
        first = await session.__anext__()
        await peer.answer_to("p")
        assert sorted([*numbers([first]), *numbers(got)]) == [1, 2, 3]
        assert numbers(got) == sorted(numbers(got))
