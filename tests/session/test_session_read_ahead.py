"""A session reads ahead while no task iterates, so it answers control messages even behind unread messages."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import pytest

from async_backends import every_backend
from children import ASKS, python
from claude_wire import (
    CanUseToolRequest,
    Decoder,
    HandleError,
    InvalidLine,
    MessageStream,
    ResultMessage,
    Session,
    SessionEndedError,
    UnknownMessage,
    open_process,
)
from claude_wire.messages import McpStatusRequest, PermissionResult
from session_peer import ASKING_CHILD, Output, Peer, line, numbered, numbers, opened_for_questions, queued_bytes, rest

pytestmark = pytest.mark.usefixtures("nothing_is_queued")


@every_backend
async def test_a_question_behind_ten_thousand_unread_messages_is_answered() -> None:
    async with opened_for_questions(Peer({"mcp_status": {"mcpServers": []}})) as (peer, session):
        said = [numbered(number, 100) for number in range(10_000)]
        peer.say(*said, Peer.permission("p"), size=65536)
        await peer.answer_to("p")
        assert await session.request(McpStatusRequest())
        peer.say(numbered(10_000), Peer.permission("q"))
        await peer.answer_to("q")
        # The session keeps the unread data as bytes, not as decoded messages.
        assert queued_bytes() > 10_000 * 100
        peer.output.end()
        assert numbers(await rest(session)) == list(range(10_001))


@every_backend
async def test_control_lines_are_found_whatever_stands_around_them() -> None:
    permission = line(Peer.permission("p"))
    escaped = line(Peer.permission("e")).replace(b"control_request", b"control\\u005frequest")
    spaced = json.dumps(Peer.permission("s"), indent=None, separators=(" ,  ", " : ")).encode() + b"\r\n"
    reordered = line(dict(reversed(Peer.permission("r").items())))
    text = line(numbered(0)).replace(b"0 ", b'0 \\"type\\":\\"control_request\\" ')

    async with opened_for_questions() as (peer, session):
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


@every_backend
@pytest.mark.parametrize("surrogates", ["keep", "replace"])
async def test_control_lines_with_lone_surrogates_are_served_once_each(surrogates: Any) -> None:
    calls: list[str | None] = []

    async def ask(request: CanUseToolRequest) -> PermissionResult:
        calls.append(request.tool_use_id)
        return request.allow({"x": request.input["command"]})

    async with opened_for_questions(Peer(), decoder=Decoder(surrogates=surrogates), can_use_tool=ask) as (
        peer,
        session,
    ):
        asked = [f"p{number}" for number in range(20)]
        for request_id in asked:
            peer.say(Peer.permission(request_id, input={"command": "\ud83d"}), numbered(0), Peer.permission("other"))
            answer = await peer.answer_to(request_id)
            assert answer["response"]["updatedInput"] == {"x": {"keep": "\ud83d", "replace": "\ufffd"}[surrogates]}
        peer.output.end()
        assert numbers(await rest(session)) == [0] * len(asked)
        assert calls.count("use-other") == 1
        assert len(calls) == len(asked) + 1


@every_backend
async def test_what_the_stream_had_decoded_before_the_session_is_not_lost() -> None:
    peer = Peer()
    peer.say(numbered(0), numbered(1), Peer.permission("p"), numbered(2))
    peer.write(line(Peer.permission("q"))[:20])
    assert numbers([await peer.stream.__anext__()]) == [0]
    async with opened_for_questions(peer) as (_, session):
        peer.write(line(Peer.permission("q"))[20:])
        peer.say(numbered(3), Peer.permission("r"))
        for request_id in "p", "q", "r":
            await peer.answer_to(request_id)
        peer.output.end()
        assert numbers(await rest(session)) == [1, 2, 3]


@every_backend
async def test_a_session_that_is_refused_its_stream_leaves_the_stream_as_it_was() -> None:
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


@every_backend
async def test_a_stream_that_a_task_is_iterating_over_takes_no_session() -> None:
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
    async with opened_for_questions(peer) as (_, session):
        peer.say(numbered(1))
        got.append(await session.__anext__())
    assert numbers(got) == [0, 1]


@every_backend
@pytest.mark.parametrize("text", ["", "\\ud800"], ids=["plain", "surrogate"])
@pytest.mark.parametrize("who", ["the consumer", "the session"])
async def test_requests_nested_as_deeply_as_can_be_read_are_answered_or_refused(who: str, text: str) -> None:
    """A message that can just be decoded may be too deep to encode. Try every depth near the recursion limit."""
    limit = sys.getrecursionlimit()
    depths = range(limit - 150, limit + 5)

    async with opened_for_questions() as (peer, session):
        if who == "the session":
            peer.say(Peer.permission("first"))
            await peer.answer_to("first")  # from now on the session reads ahead
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


@every_backend
async def test_a_process_is_answered_while_nobody_iterates() -> None:
    asked = anyio.Event()

    async def ask(request: CanUseToolRequest) -> PermissionResult:
        asked.set()
        return request.allow()

    async with (
        open_process(python(ASKING_CHILD, 10_000, *ASKS)) as process,
        Session(process, can_use_tool=ask) as session,
    ):
        await session.initialize()
        await session.query("x")
        await asked.wait()
        got = [message async for message in session.receive_response()]
        assert isinstance(got.pop(), ResultMessage)
        assert numbers(got) == list(range(10_000))


@every_backend
async def test_unknown_control_messages_reach_the_consumer_once() -> None:
    async with opened_for_questions() as (peer, session):
        peer.say({"type": "control_of_tomorrow", "x": 1}, Peer.permission("p"), {"type": "of_tomorrow"})
        await peer.answer_to("p")
        peer.output.end()
        got = await rest(session)
        assert [message.type for message in got if isinstance(message, UnknownMessage)] == [
            "control_of_tomorrow",
            "of_tomorrow",
        ]
        assert len(got) == 2


@every_backend
async def test_what_fails_while_nobody_iterates_is_told_to_whom_it_concerns_and_to_the_consumer() -> None:
    peer = Peer()
    async with peer.session() as session:
        peer.output.write(ConnectionResetError("text"))
        with pytest.raises(SessionEndedError) as caught:
            await session.initialize()
        assert isinstance(caught.value.__cause__, ConnectionResetError)
        with pytest.raises(ConnectionResetError, match="text"):
            await session.__anext__()
        await session.initialize()  # the session still works
