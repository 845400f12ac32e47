"""The consumer and the session alternate in reading. Every message arrives once and in order, wherever they switch."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from async_backends import every_backend
from claude_wire import CanUseToolRequest, Decoder, InvalidLine
from claude_wire.messages import PermissionResult
from long_tests import LONG
from session_peer import RESULT, Peer, line, numbered, numbers, opened_for_questions, rest
from virtual_time import VirtualBackend, every_virtual_backend

pytestmark = pytest.mark.usefixtures("nothing_is_queued")

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


#: What the consumer receives from SAID: the number of each message, and (line number, byte offset) of each bad line.
PLACES = [1, (3, len(SAID[0] + SAID[1])), 2, 3, (10, len(WHOLE) - len(SAID[-1]) - 3), 4]


@every_virtual_backend
@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_the_consumer_may_leave_off_anywhere(virtual: VirtualBackend, taken: int) -> None:
    """At every byte of the stream, let the consumer stop there and the session read the rest until all is answered.

    The short tests try every eighth byte per loop and number of messages taken; the long tests try every byte.
    """

    async def main(cut: int) -> None:
        async with opened_for_questions() as (peer, session):
            got: list[Any] = []

            async def consume() -> None:
                async for message in session:
                    got.append(message)

            # The consumer starts and stops once first, so the session has already read ahead.
            peer.write(SAID[0][:7])
            await anyio.sleep(1)
            async with anyio.create_task_group() as group:
                group.start_soon(consume)
                await anyio.sleep(1)
                # The session reads the first chunk ahead. The consumer reads the second one itself.
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

    first = 12 + taken + (4 if virtual.id == "trio" else 0)
    for cut in range(12, len(WHOLE)) if LONG else range(first, len(WHOLE), 8):
        virtual.run(main, cut)


@every_virtual_backend
def test_the_consumer_may_come_back_anywhere_and_go_again(virtual: VirtualBackend) -> None:
    """Feed single bytes. The consumer iterates for ``stretch`` bytes, then is away for as many."""

    async def main(stretch: int) -> None:
        async with opened_for_questions() as (peer, session):
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
        async with opened_for_questions(Peer(), decoder=Decoder(max_line_bytes=limit)) as (peer, session):
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
async def test_what_the_stream_raises_comes_in_its_place(who: str) -> None:
    async with opened_for_questions() as (peer, session):
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


@every_virtual_backend
async def test_a_stream_that_raises_for_ever_is_not_asked_for_ever() -> None:
    async with opened_for_questions() as (peer, session):
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


@every_backend
async def test_a_last_line_without_line_feed_counts() -> None:
    async with opened_for_questions() as (peer, session):
        peer.write(line(numbered(1)) + line(Peer.permission("p"))[:-1])
        peer.output.end()
        await peer.answer_to("p")
        assert numbers(await rest(session)) == [1]
        assert len(peer.answers_to("p")) == 1


@every_backend
async def test_questions_are_answered_after_the_end_of_the_output_was_seen() -> None:
    go = anyio.Event()

    async def ask(request: CanUseToolRequest) -> PermissionResult:
        await go.wait()
        return request.allow()

    async with opened_for_questions(can_use_tool=ask) as (peer, session):
        peer.say(Peer.permission("p"))
        peer.output.end()
        assert await rest(session) == []
        go.set()
        await peer.answer_to("p")
