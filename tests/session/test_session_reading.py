"""How a session reads: whoever reads, every message comes once, in order, and control messages are served in time.

The consumer reads while it iterates; while it is away the session reads ahead. So there are hand-overs, which these
tests put at every place.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import claude_wire.session.control as control_module
from async_backends import ASYNCIO, Backend, every_backend
from children import linux_only, nothing_left, python
from claude_wire import (
    ByteBudgetError,
    CanUseToolRequest,
    ControlRequest,
    Decoder,
    HandleError,
    InvalidLine,
    McpStatusRequest,
    MessageStream,
    PermissionResult,
    ResultMessage,
    Session,
    SessionEndedError,
    UnknownMessage,
    byte_budget,
    open_process,
    open_session,
    set_byte_budget,
)
from claude_wire.io.read_ahead import SHARE_BYTES
from long_tests import LONG
from session_peer import RESULT, Output, Peer, line, numbered, numbers, queued_bytes
from virtual_time import VirtualBackend, every_virtual_backend


async def allow(request: CanUseToolRequest) -> PermissionResult:
    return request.allow()


@asynccontextmanager
async def opened(peer: Peer | None = None, **arguments: Any) -> AsyncIterator[tuple[Peer, Session]]:
    peer = peer or Peer()
    async with peer.session(**{"can_use_tool": allow, **arguments}) as session:
        yield peer, session
    await peer.stream.aclose()


async def rest(session: Session) -> list[Any]:
    return [message async for message in session]


@pytest.fixture(autouse=True)
def _nothing_is_queued() -> Iterator[None]:
    gc.collect()
    before, limit = queued_bytes(), byte_budget()
    yield
    set_byte_budget(limit)
    gc.collect()
    assert queued_bytes() == before


# --- nobody iterates --------------------------------------------------------------------------------------------------


@every_backend
def test_a_question_behind_ten_thousand_unread_messages_is_answered(backend: Backend) -> None:
    async def main() -> None:
        async with opened(Peer({"mcp_status": {"mcpServers": []}})) as (peer, session):
            said = [numbered(number, 100) for number in range(10_000)]
            peer.say(*said, Peer.permission("p"), size=65536)
            await peer.answer_to("p")
            assert await session.request(McpStatusRequest())
            peer.say(numbered(10_000), Peer.permission("q"))
            await peer.answer_to("q")
            # Bytes, and no messages, are what is kept.
            assert queued_bytes() > 10_000 * 100
            peer.output.end()
            assert numbers(await rest(session)) == list(range(10_001))

    backend.run(main)


@every_backend
def test_control_lines_are_found_whatever_stands_around_them(backend: Backend) -> None:
    permission = line(Peer.permission("p"))
    escaped = line(Peer.permission("e")).replace(b"control_request", b"control\\u005frequest")
    spaced = json.dumps(Peer.permission("s"), indent=None, separators=(" ,  ", " : ")).encode() + b"\r\n"
    reordered = line(dict(reversed(Peer.permission("r").items())))
    text = line(numbered(0)).replace(b"0 ", b'0 \\"type\\":\\"control_request\\" ')

    async def main() -> None:
        async with opened() as (peer, session):
            peer.write(b"\xef\xbb\xbf" + text + b"control_request\n\n{" + permission + escaped + text)
            peer.write(spaced + reordered + permission)
            for request_id in "e", "s", "r", "p":
                assert (await peer.answer_to(request_id))["subtype"] == "success"
            peer.output.end()
            got = await rest(session)
            assert [type(message) is InvalidLine for message in got] == [False, True, True, False]
            assert [(bad.line_number, bad.length) for bad in got if isinstance(bad, InvalidLine)] == [
                (2, 15),
                (4, len(permission)),
            ]
            for request_id in "e", "s", "r", "p":
                assert len(peer.answers_to(request_id)) == 1

    backend.run(main)


@every_backend
@pytest.mark.parametrize("surrogates", ["keep", "replace"])
def test_control_lines_with_lone_surrogates_are_served_once_each(backend: Backend, surrogates: Any) -> None:
    calls: list[str | None] = []

    async def ask(request: CanUseToolRequest) -> PermissionResult:
        calls.append(request.tool_use_id)
        return request.allow({"x": request.input["command"]})

    async def main() -> None:
        async with opened(Peer(), decoder=Decoder(surrogates=surrogates), can_use_tool=ask) as (peer, session):
            asked = [f"p{number}" for number in range(20)]
            for request_id in asked:
                peer.say(
                    Peer.permission(request_id, input={"command": "\ud83d"}), numbered(0), Peer.permission("other")
                )
                answer = await peer.answer_to(request_id)
                assert answer["response"]["updatedInput"] == {"x": {"keep": "\ud83d", "replace": "\ufffd"}[surrogates]}
            peer.output.end()
            assert numbers(await rest(session)) == [0] * len(asked)
            assert calls.count("use-other") == 1
            assert len(calls) == len(asked) + 1

    backend.run(main)


@every_backend
def test_what_the_stream_had_decoded_before_the_session_is_not_lost(backend: Backend) -> None:
    async def main() -> None:
        peer = Peer()
        peer.say(numbered(0), numbered(1), Peer.permission("p"), numbered(2))
        peer.write(line(Peer.permission("q"))[:20])
        assert numbers([await peer.stream.__anext__()]) == [0]
        async with opened(peer) as (_, session):
            peer.write(line(Peer.permission("q"))[20:])
            peer.say(numbered(3), Peer.permission("r"))
            for request_id in "p", "q", "r":
                await peer.answer_to(request_id)
            peer.output.end()
            assert numbers(await rest(session)) == [1, 2, 3]

    backend.run(main)


@every_backend
def test_a_session_that_is_refused_its_stream_leaves_the_stream_as_it_was(backend: Backend) -> None:
    async def main() -> None:
        output = Output()
        output.write(b"".join(line(numbered(number)) for number in range(3)))
        stream = MessageStream(output, Decoder(on_invalid="raise"))
        assert numbers([await stream.__anext__()]) == [0]
        for _ in range(2):
            with pytest.raises(TypeError, match="does not raise"):
                async with Session(stream, Peer().send):
                    raise AssertionError
        output.end()
        assert numbers([message async for message in stream]) == [1, 2]

    backend.run(main)


@every_backend
def test_a_stream_that_a_task_is_iterating_over_takes_no_session(backend: Backend) -> None:
    async def main() -> None:
        peer = Peer()
        got: list[Any] = []

        async def owner() -> None:
            got.append(await peer.stream.__anext__())

        async with anyio.create_task_group() as group:
            group.start_soon(owner)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(HandleError, match="another task"):
                async with peer.session():
                    raise AssertionError
            peer.say(numbered(0))
        async with opened(peer) as (_, session):
            peer.say(numbered(1))
            got.append(await session.__anext__())
        assert numbers(got) == [0, 1]

    backend.run(main)


@every_backend
@pytest.mark.parametrize("text", ["", "\\ud800"], ids=["plain", "surrogate"])
@pytest.mark.parametrize("who", ["the consumer", "the session"])
def test_requests_nested_as_deeply_as_can_be_read_are_answered_or_refused(
    backend: Backend, who: str, text: str
) -> None:
    """Where a line can just be decoded, its message may be too deep to be encoded. Each depth about there is tried."""
    limit = sys.getrecursionlimit()
    depths = range(limit - 150, limit + 5)

    async def main() -> None:
        async with opened() as (peer, session):
            if who == "the session":
                peer.say(Peer.permission("first"))
                await peer.answer_to("first")  # from here on it reads ahead
            for depth in depths:
                input = f'{{"x":"{text}","y":{"[" * depth + "]" * depth}}}'
                peer.write(
                    f'{{"type":"control_request","request_id":"{depth}","request":{{"subtype":"can_use_tool",'
                    f'"tool_name":"Bash","tool_use_id":"t","input":{input}}}}}\n'.encode()
                )
            peer.say(Peer.permission("last"), numbered(1))
            if who == "the session":
                await peer.answer_to("last")
            peer.output.end()
            got = [message for message in await rest(session) if not isinstance(message, InvalidLine)]
            assert numbers(got) == [1]
            await peer.answer_to("last")
            assert all(len(peer.answers_to(str(depth))) <= 1 for depth in depths)

    backend.run(main)


# --- hand-overs -------------------------------------------------------------------------------------------------------

#: Five lines for the consumer, one of them bad, with three control lines between them.
SAID = [
    line(numbered(1)),
    line(Peer.permission("p")),
    b'{"type":"bad\n',
    line({"type": "keep_alive"}),
    line(numbered(2)),
    line(Peer.permission("q")),
    line(Peer.permission("r")),
    line(numbered(3)),
    b"\n[]\n",
    line(numbered(4)),
]
WHOLE = b"".join(SAID)


def places(got: list[Any]) -> list[Any]:
    return [
        (message.line_number, message.offset) if isinstance(message, InvalidLine) else numbers([message])[0]
        for message in got
    ]


#: What the consumer gets of them.
PLACES = [1, (3, len(SAID[0] + SAID[1])), 2, 3, (10, len(WHOLE) - len(SAID[-1]) - 3), 4]


@every_virtual_backend
@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_the_consumer_may_leave_off_anywhere(virtual: VirtualBackend, taken: int) -> None:
    """For each place in the stream: up to there the consumer reads, from there on nobody, until all is answered.

    Where only the loop or the messages that are taken differ, at other places each: one in eleven, or all in the long
    tests.
    """

    async def main(cut: int) -> None:
        async with opened() as (peer, session):
            got: list[Any] = []

            async def consume() -> None:
                async for message in session:
                    got.append(message)

            # First it comes, and goes, so that something was read ahead before.
            peer.write(SAID[0][:7])
            await anyio.sleep(1)
            async with anyio.create_task_group() as group:
                group.start_soon(consume)
                await anyio.sleep(1)
                # The first chunk is the last that is read ahead; the second one is the consumer's own.
                for chunk in WHOLE[7:12], WHOLE[12:cut]:
                    peer.write(chunk)
                    await anyio.sleep(1)
                group.cancel_scope.cancel()
            peer.write(WHOLE[cut:], 3)
            await anyio.sleep(1)
            for request_id in "p", "q", "r":
                await peer.answer_to(request_id)
            for _ in range(taken):
                if len(got) < len(PLACES):
                    got.append(await session.__anext__())
            peer.output.end()
            got += await rest(session)
            assert places(got) == PLACES
            assert all(len(peer.answers_to(request_id)) == 1 for request_id in ("p", "q", "r"))

    everywhere = LONG or (virtual.id == "asyncio" and taken == 0)
    for cut in range(12, len(WHOLE)) if everywhere else range(12 + taken, len(WHOLE), 11):
        virtual.run(main, cut)


@every_virtual_backend
def test_the_consumer_may_come_back_anywhere_and_go_again(virtual: VirtualBackend) -> None:
    """Byte by byte, with a consumer that is there for so many bytes and away for as many."""

    async def main(stretch: int) -> None:
        async with opened() as (peer, session):
            got: list[Any] = []

            async def consume() -> None:
                async for message in session:
                    got.append(message)

            for start in range(0, len(WHOLE), stretch):
                async with anyio.create_task_group() as group:
                    if start // stretch % 2:
                        group.start_soon(consume)
                        await anyio.sleep(0.1)
                    for at in range(start, min(start + stretch, len(WHOLE))):
                        peer.write(WHOLE[at : at + 1])
                        await anyio.sleep(0.1)
                    group.cancel_scope.cancel()
            for request_id in "p", "q", "r":
                await peer.answer_to(request_id)
            peer.output.end()
            got += await rest(session)
            assert places(got) == PLACES
            assert all(len(peer.answers_to(request_id)) == 1 for request_id in ("p", "q", "r"))

    for stretch in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233):
        virtual.run(main, stretch)


@every_virtual_backend
@pytest.mark.parametrize("more", [-1, 0, 1, 2])
def test_lines_about_as_long_as_they_may_be_are_the_same_to_both(virtual: VirtualBackend, more: int) -> None:
    asked = line(Peer.permission("p"))
    limit = len(asked) - 1 - more

    async def main(cut: int) -> None:
        async with opened(Peer(), decoder=Decoder(max_line_bytes=limit)) as (peer, session):
            got: list[Any] = []

            async def consume() -> None:
                async for message in session:
                    got.append(message)

            short = line(RESULT)
            async with anyio.create_task_group() as group:
                group.start_soon(consume)
                await anyio.sleep(1)
                peer.write(short + asked[:cut])
                await anyio.sleep(1)
                group.cancel_scope.cancel()
            peer.write(asked[cut:] + asked + short)
            await anyio.sleep(1)
            assert len(peer.answers_to("p")) == (0 if more > 0 else 1)
            peer.output.end()
            got += await rest(session)
            bad = [True, True] if more > 0 else []
            assert [type(message) is InvalidLine for message in got] == [False, *bad, False]
            lengths = [message.length for message in got if isinstance(message, InvalidLine)]
            assert lengths == [len(asked) - 1] * len(bad)

    assert len(line(RESULT)) < limit
    for cut in range(1, len(asked), 3):
        virtual.run(main, cut)


# --- what the stream raises, and its end ------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize("who", ["read ahead", "by the consumer"])
def test_what_the_stream_raises_comes_in_its_place(backend: Backend, who: str) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            peer.say(numbered(1), Peer.permission("p"))
            if who == "read ahead":
                await peer.answer_to("p")
            half = line(numbered(2))
            peer.write(half[:10])
            peer.output.write(OSError("first"))
            peer.write(half[10:])
            peer.output.write(ValueError("second"))
            peer.say(Peer.permission("q"))
            peer.output.end()
            if who == "read ahead":
                await anyio.wait_all_tasks_blocked()
            got: list[Any] = []
            for _ in range(4):
                try:
                    got.append(numbers([await session.__anext__()])[0])
                except (OSError, ValueError) as error:
                    got.append(str(error))
            assert got == [1, "first", 2, "second"]
            assert await rest(session) == []
            await peer.answer_to("q")

    backend.run(main)


@every_virtual_backend
def test_a_stream_that_raises_for_ever_is_not_asked_for_ever(virtual: VirtualBackend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            for _ in range(1000):
                peer.output.write(OSError("again"))
            await anyio.sleep(3600)
            assert peer.output.waiting >= 998
            for _ in range(3):
                with pytest.raises(OSError, match="again"):
                    await session.__anext__()
            peer.output._chunks.clear()
            peer.output.end()
            assert await rest(session) == []

    virtual.run(main)


@every_backend
def test_a_last_line_without_line_feed_counts(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            peer.write(line(numbered(1)) + line(Peer.permission("p"))[:-1])
            peer.output.end()
            await peer.answer_to("p")
            assert numbers(await rest(session)) == [1]
            assert len(peer.answers_to("p")) == 1

    backend.run(main)


@every_backend
def test_questions_are_answered_after_the_end_of_the_output_was_seen(backend: Backend) -> None:
    async def main() -> None:
        go = anyio.Event()

        async def ask(request: CanUseToolRequest) -> PermissionResult:
            await go.wait()
            return request.allow()

        async with opened(can_use_tool=ask) as (peer, session):
            peer.say(Peer.permission("p"))
            peer.output.end()
            assert await rest(session) == []
            go.set()
            await peer.answer_to("p")

    backend.run(main)


# --- the byte budget --------------------------------------------------------------------------------------------------


@every_backend
def test_reading_ahead_stops_at_the_byte_budget_and_goes_on_when_there_is_room(backend: Backend) -> None:
    async def main() -> None:
        before = queued_bytes()
        budget = 2 * SHARE_BYTES
        set_byte_budget(before + budget)
        async with opened() as (peer, session):
            for number in range(100):
                peer.say(numbered(number, 10_000))
            peer.say(Peer.permission("p"))
            peer.output.end()
            with anyio.fail_after(60):
                while queued_bytes() < before + budget:
                    await anyio.sleep(0.001)
            for _ in range(3):
                await anyio.sleep(0.05)  # as often as it looks for room
            assert peer.output.waiting > 40
            assert before + budget <= queued_bytes() < before + budget + 22_000
            assert not peer.answers_to("p")
            # By the consumer it comes to the question; or by the room that it makes.
            got = [await session.__anext__() for _ in range(95)]
            await peer.answer_to("p")
            got += await rest(session)
            assert numbers(got) == list(range(100))
            assert queued_bytes() == before

    backend.run(main)


@every_backend
def test_one_session_that_exhausts_the_budget_does_not_silence_the_others(backend: Backend) -> None:
    async def main() -> None:
        before = queued_bytes()
        set_byte_budget(before + 2 * SHARE_BYTES)
        async with opened() as (peer, session):
            peer.say(*(numbered(number, 10_000) for number in range(100)))
            with anyio.fail_after(60):
                while queued_bytes() < before + 2 * SHARE_BYTES:
                    await anyio.sleep(0.001)
            async with opened() as (other, _):  # with initialize, and its answer
                other.say(*(numbered(number, 1000) for number in range(100)), Peer.permission("p"))
                await other.answer_to("p")
            assert numbers([await session.__anext__()]) == [0]

    backend.run(main)


# --- too many requests ------------------------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize("who", ["the session", "the consumer"])
@pytest.mark.parametrize("how", ["callbacks do not end", "answers are not taken"])
def test_a_peer_that_goes_on_asking_is_read_no_further_until_there_is_room(
    backend: Backend, who: str, how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(control_module, "MOST_TASKS", 10)

    async def main() -> None:
        go = anyio.Event()
        asked: list[str | None] = []

        async def decide(request: CanUseToolRequest) -> PermissionResult:
            asked.append(request.tool_use_id)
            await go.wait()
            return request.allow()

        async with opened(can_use_tool=decide) as (peer, session), anyio.create_task_group() as group:
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
                peer.say(
                    Peer.permission(request_id) if how == "callbacks do not end" else Peer.request(request_id, "of")
                )
                peer.say(numbered(len(got)))
            peer.output.end()
            with anyio.fail_after(60):
                while peer.output.waiting > 190:
                    await anyio.sleep(0.001)
            for _ in range(3):
                await anyio.sleep(0.06)  # as often as it looks for room
            assert peer.output.waiting > 170
            go.set()
            for request_id in ids:
                await peer.answer_to(request_id)
            if how == "callbacks do not end":
                assert sorted(map(str, asked)) == sorted(f"use-{request_id}" for request_id in ids)
            if who == "the session":
                await consume()
        assert len(got) == 100

    backend.run(main)
    assert ["reads nothing" in record.getMessage() for record in caplog.records] == [True]


@every_backend
@pytest.mark.parametrize("how", ["answered", "withdrawn"])
def test_the_timers_of_callbacks_that_are_over_do_not_count(
    backend: Backend, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long their time would have been: else the session would read nothing any more after some thousands."""
    monkeypatch.setattr(control_module, "MOST_TASKS", 5)

    async def main() -> None:
        begun: list[str | None] = []

        async def decide(request: CanUseToolRequest) -> PermissionResult:
            begun.append(request.tool_use_id)
            if how == "withdrawn":
                await anyio.sleep_forever()
            return request.allow()

        async with opened(can_use_tool=decide, callback_timeout=3600.0) as (peer, _):
            for number in range(30):
                peer.say(Peer.permission(f"p{number}"))
                if how == "withdrawn":
                    with anyio.fail_after(60):
                        while len(begun) <= number:
                            await anyio.sleep(0.001)
                    peer.say(Peer.cancel(f"p{number}"))
                else:
                    await peer.answer_to(f"p{number}")

    backend.run(main)


@every_backend
def test_a_session_whose_requests_are_too_many_bytes_reads_nothing_more(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "MOST_WAITING_BYTES", 2000)

    async def main() -> None:
        go = anyio.Event()

        async def decide(request: CanUseToolRequest) -> PermissionResult:
            await go.wait()
            return request.allow()

        async with opened(can_use_tool=decide) as (peer, session):
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

    backend.run(main)


@every_backend
@pytest.mark.parametrize("kind", ["can_use_tool", "nonsense", "withdrawn"])
def test_the_bytes_of_requests_that_are_over_do_not_count(
    backend: Backend, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the session would read nothing any more after some tens of megabytes."""
    monkeypatch.setattr(control_module, "MOST_WAITING_BYTES", 2000)

    async def main() -> None:
        begun: list[str | None] = []

        async def decide(request: CanUseToolRequest) -> PermissionResult:
            begun.append(request.tool_use_id)
            if kind == "withdrawn":
                await anyio.sleep_forever()
            return request.allow()

        async with opened(can_use_tool=decide) as (peer, session):
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

    backend.run(main)


@every_backend
def test_closing_ends_a_step_that_waits_for_room(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_module, "MOST_TASKS", 3)

    async def main() -> None:
        async def forever(request: CanUseToolRequest) -> PermissionResult:
            await anyio.sleep_forever()
            return request.allow()

        async with opened(can_use_tool=forever) as (peer, session), anyio.create_task_group() as group:
            for number in range(9):
                peer.say(Peer.permission(f"p{number}"))
            group.start_soon(rest, session)
            await anyio.sleep(0.1)
            assert peer.output.waiting
            await session.aclose()

    backend.run(main)


@every_backend
def test_what_is_kept_is_given_back_when_it_is_not_wanted(backend: Backend) -> None:
    async def main() -> None:
        before = queued_bytes()
        peer = Peer()
        async with opened(peer) as (_, session):
            peer.say(*(numbered(number, 1000) for number in range(50)), Peer.permission("p"))
            await peer.answer_to("p")
            assert queued_bytes() > before + 50_000
            assert numbers([await session.__anext__()]) == [0]
            peer.say(*(numbered(number, 1000) for number in range(50)), Peer.permission("q"))
            await peer.answer_to("q")
            assert queued_bytes() > before + 50_000
        assert queued_bytes() == before

    backend.run(main)


# --- who iterates -----------------------------------------------------------------------------------------------------


@every_backend
def test_one_task_iterates_at_a_time(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
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

    backend.run(main)


@every_backend
def test_a_callback_that_begins_in_the_midst_of_a_step_may_not_read_or_ask_beside_it(backend: Backend) -> None:
    """The step of the consumer goes on behind the question, so nobody else has one, and nothing is sent."""

    async def main() -> None:
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

        async with opened(can_use_tool=decide) as (peer, session), anyio.create_task_group() as group:
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

    backend.run(main)


@every_backend
def test_closing_ends_a_step_that_waits(backend: Backend) -> None:
    async def main() -> None:
        for read_before in False, True:
            async with opened() as (peer, session):
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
                assert await rest(session) == []

    backend.run(main)


@every_backend
def test_control_messages_that_were_seen_ahead_are_served_once_and_then_forgotten(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
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
                    await peer.answer_to(request_id)  # nobody iterates
                assert numbers([await session.__anext__() for _ in range(5)]) == list(range(5))
                peer.say(numbered(5))
                assert numbers([await session.__anext__()]) == [5]
                assert len(served) == 10 * (turn + 1)
                assert not session._router._found.control

    backend.run(main)


@every_backend
def test_a_session_leaves_the_stream_to_its_owner(backend: Backend) -> None:
    async def main() -> None:
        peer = Peer()
        async with peer.session(can_use_tool=allow) as session:
            peer.say(numbered(1), numbered(2), Peer.permission("p"))
            await peer.answer_to("p")
            assert numbers([await session.__anext__()]) == [1]
        peer.say(numbered(3))
        peer.output.end()
        left = [message async for message in peer.stream]
        assert numbers(message for message in left if not hasattr(message, "request_id")) == [2, 3]

    backend.run(main)


class Late:
    """A source that has a chunk in hand when its step is cancelled, and gives it all the same."""

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
def test_what_comes_in_the_moment_of_closing_is_left_to_the_owner_of_the_stream(backend: Backend) -> None:
    async def main() -> None:
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

    backend.run(main)


@every_backend
def test_after_a_session_its_stream_may_have_another(backend: Backend) -> None:
    async def main() -> None:
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

    backend.run(main)


@every_backend
@pytest.mark.parametrize("who", ["a session that iterates", "a session that does not", "the owner"])
def test_a_question_that_comes_in_the_moment_of_closing_is_left_to_who_comes_next(backend: Backend, who: str) -> None:
    async def main() -> None:
        peer = Peer()
        async with peer.session(can_use_tool=allow):
            peer.say(Peer.permission("first"))
            await peer.answer_to("first")
            await anyio.wait_all_tasks_blocked()  # it reads ahead, and waits for a chunk
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

    backend.run(main)


@every_backend
def test_a_later_session_goes_on_where_the_one_before_has_read_ahead(backend: Backend) -> None:
    start = line(numbered(1)) + line(Peer.permission("p"))

    async def main() -> None:
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

    backend.run(main)


# --- nothing is left --------------------------------------------------------------------------------------------------


def living_tasks(backend: Backend) -> int:
    if backend.name == "trio":
        import trio

        return trio.lowlevel.current_statistics().tasks_living
    import asyncio

    return len(asyncio.all_tasks())


@every_backend
@pytest.mark.parametrize("how", ["closed", "left by an exception", "cancelled", "iterating", "asking"])
def test_no_task_is_left(backend: Backend, how: str) -> None:
    async def main() -> None:
        before = living_tasks(backend)

        async def forever(request: CanUseToolRequest) -> PermissionResult:
            await anyio.sleep_forever()
            return request.allow()

        async def use() -> None:
            peer = Peer()
            async with opened(peer, can_use_tool=forever, callback_timeout=1000) as (_, session):
                peer.say(Peer.permission("p"), numbered(1))
                await anyio.wait_all_tasks_blocked()
                if how == "left by an exception":
                    raise ValueError("of the host")
                if how == "iterating":
                    async for _ in session:
                        break
                if how == "asking":
                    await session.request(McpStatusRequest())
                if how == "cancelled":
                    await rest(session)

        if how in ("cancelled", "asking"):
            async with anyio.create_task_group() as group:
                group.start_soon(use)
                await anyio.wait_all_tasks_blocked()
                await anyio.sleep(0.02)
                group.cancel_scope.cancel()
        elif how == "left by an exception":
            with pytest.raises(ValueError, match="of the host"):
                await use()
        else:
            await use()
        with anyio.fail_after(60):
            while living_tasks(backend) > before:
                await anyio.lowlevel.checkpoint()

    backend.run(main)


#: Asks for permission behind so many messages; the result comes with the answer.
CHILD = """
for text in sys.stdin:
    message = json.loads(text)
    if message["type"] == "control_request":
        say(type="control_response", response={"subtype": "success", "request_id": message["request_id"]})
    elif message["type"] == "user":
        for number in range(int(sys.argv[1])):
            say(type="user", message={"role": "user", "content": f"{number} "}, session_id="")
        say(type="control_request", request_id="p" + message["uuid"], request={"subtype": "can_use_tool",
            "tool_name": "Bash", "input": {}, "tool_use_id": "t"})
    elif message["type"] == "control_response":
        say(type="result", subtype="success", is_error=False)
"""


@linux_only
@every_backend
@pytest.mark.parametrize("how", ["to its end", "broken off", "cancelled", "raised"])
def test_a_process_leaves_no_descriptor_thread_or_child(backend: Backend, how: str) -> None:
    async def main() -> None:
        async with open_session(python(CHILD, 50), can_use_tool=allow) as session:
            await session.query("x")
            if how == "raised":
                raise ValueError("of the host")
            async for message in session:
                if how == "broken off":
                    break
                if how == "cancelled":
                    scopes[0].cancel()
                if how == "to its end" and isinstance(message, ResultMessage):
                    await session.end_input()

    async def cancelled() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await main()

    scopes: list[anyio.CancelScope] = []
    with nothing_left():
        if how == "raised":
            with pytest.raises(ValueError, match="of the host"):
                backend.run(main)
        else:
            backend.run(cancelled)


@every_backend
def test_a_process_is_answered_while_nobody_iterates(backend: Backend) -> None:
    async def main() -> None:
        asked = anyio.Event()

        async def ask(request: CanUseToolRequest) -> PermissionResult:
            asked.set()
            return request.allow()

        async with open_process(python(CHILD, 10_000)) as process, Session(process, can_use_tool=ask) as session:
            await session.initialize()
            await session.query("x")
            await asked.wait()
            got = [message async for message in session.receive_response()]
            assert isinstance(got.pop(), ResultMessage)
            assert numbers(got) == list(range(10_000))

    backend.run(main)


@every_backend
def test_unknown_control_messages_reach_the_consumer_once(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            peer.say({"type": "control_of_tomorrow", "x": 1}, Peer.permission("p"), {"type": "of_tomorrow"})
            await peer.answer_to("p")
            peer.output.end()
            got = await rest(session)
            assert [message.type for message in got if isinstance(message, UnknownMessage)] == [
                "control_of_tomorrow",
                "of_tomorrow",
            ]
            assert len(got) == 2

    backend.run(main)


@every_backend
def test_what_fails_while_nobody_iterates_is_told_to_whom_it_concerns_and_to_the_consumer(backend: Backend) -> None:
    async def main() -> None:
        peer = Peer()
        async with peer.session() as session:
            peer.output.write(ConnectionResetError("text"))
            with pytest.raises(SessionEndedError) as caught:
                await session.initialize()
            assert isinstance(caught.value.__cause__, ConnectionResetError)
            with pytest.raises(ConnectionResetError, match="text"):
                await session.__anext__()
            await session.initialize()  # it goes on

    backend.run(main)


@every_backend
def test_reading_ahead_goes_on_behind_an_exhausted_budget_that_is_an_error(backend: Backend) -> None:
    async def main() -> None:
        async with opened() as (peer, session):
            peer.output.write(ByteBudgetError(100))
            peer.say(Peer.permission("p"), numbered(1))
            await peer.answer_to("p")
            with pytest.raises(ByteBudgetError):
                await session.__anext__()
            assert numbers([await session.__anext__()]) == [1]

    backend.run(main)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there are no eager tasks")
def test_eager_callbacks_do_not_take_messages_before_their_turn() -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        got: list[Any] = []

        async def decide(request: CanUseToolRequest) -> PermissionResult:
            got.extend([await session.__anext__(), await session.__anext__()])
            return request.allow()

        async with opened(can_use_tool=decide) as (peer, session):
            peer.write(b"".join(map(line, [numbered(1), Peer.permission("p"), numbered(2), numbered(3)])))
            first = await session.__anext__()
            await peer.answer_to("p")
            assert sorted([*numbers([first]), *numbers(got)]) == [1, 2, 3]
            assert numbers(got) == sorted(numbers(got))

    ASYNCIO.run(main)
