"""A session that reads lines of other dialects ahead translates each once, and keeps line numbers and offsets."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from claude_wire import CanUseToolRequest, Decoder, InvalidLine, MessageStream, ResultMessage, Session
from claude_wire.dialects import AUTO, CLASSIC, JSON_RPC, STREAM_JSON, Dialect
from claude_wire.messages import PermissionResult
from dialect_peer import LinePeer
from session_peer import queued_bytes

pytestmark = pytest.mark.anyio

STATUS = '{"type":"system","subtype":"status","running":true}'
RESULT = '{"type":"result","subtype":"success","result":"Hi"}'


def response(request_id: str, frame: str) -> str:
    return f'{{"jsonrpc":"2.0","id":"{request_id}","result":{frame}}}'


def spoken(text: str) -> str:
    content = [{"type": "text", "text": text}]
    return json.dumps({"type": "assistant", "message": {"role": "assistant", "content": content, "model": "m"}})


def seen(messages: list[Any]) -> list[Any]:
    """Return the text of each message; for an invalid line its number, offset and bytes."""
    return [
        (one.line_number, one.offset, one.raw)
        if isinstance(one, InvalidLine)
        else one.result
        if isinstance(one, ResultMessage)
        else one.message.content[0].text
        for one in messages
    ]


@pytest.mark.parametrize("collects", [False, True])
async def test_invalid_lines_keep_their_places(collects: bool) -> None:
    peer, before, collected = LinePeer(), queued_bytes(), []
    decoder = Decoder(on_invalid=collected.append) if collects else Decoder()
    async with Session(MessageStream(peer.output, decoder), peer.send, dialect=JSON_RPC) as session:
        await session.query("go", uuid="run")
        first, last = response("run", spoken("a")), response("run", RESULT)

        async def answer() -> None:
            status = (await peer.got(2))[1]
            peer.say(first, "nonsense", "", response(status["id"], STATUS), "[]", last)

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            assert (await session.status()).running
        assert queued_bytes() - before > 5 * (len(first) + len(last))  # the lines now wait in the queue as messages
        received = [message async for message in session.receive_response()]
        assert queued_bytes() == before
    bad = collected if collects else [one for one in received if isinstance(one, InvalidLine)]
    assert [(one.line_number, one.raw) for one in bad] == [(2, b"nonsense"), (5, b"[]")]
    assert bad[0].offset == len(first) + 1
    expected = ["a", *([] if collects else seen(bad)), "Hi"]
    assert seen(received) == expected


@pytest.mark.parametrize("between", [0, 1, 2])
@pytest.mark.parametrize(("one", "other"), [(CLASSIC, CLASSIC), (AUTO, CLASSIC), (AUTO, AUTO)], ids=str)
async def test_the_next_session_is_asked_nothing_again(one: Dialect, other: Dialect, between: int) -> None:
    peer, asked = LinePeer(), []

    def decide(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request.tool_name)
        return request.allow()

    question = '{"type":"system","subtype":"permission_request","tool_name":"%s","input":{}}'
    tool = '{"type":"tool_result","tool_use_id":"t","result":"out"}'
    stream = MessageStream(peer.output)
    async with stream:
        async with Session(stream, peer.send, dialect=one, can_use_tool=decide):
            peer.say(spoken("a"), question % "First", spoken("b"), tool)
            await peer.got(1)
        received = [await stream.__anext__() for _ in range(between)]
        assert seen(received[:1]) == ["a"][:between]
        async with Session(stream, peer.send, dialect=other, can_use_tool=decide) as session:
            peer.say(question % "Second", RESULT)
            await peer.got(2)
            rest = [message async for message in session.receive_response()]
    assert asked == ["First", "Second"]
    assert peer.sent == [b'{"allow":true}\n'] * 2
    assert rest[-2].tool_results[0].tool_use_id == "t"
    assert seen([*rest[:-2], rest[-1]]) == [*(["a", "b"] if between == 0 else ["b"]), "Hi"]


async def test_a_session_in_stream_json_goes_on_where_auto_has_stopped() -> None:
    peer, asked = LinePeer(), []

    def decide(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request.tool_name)
        return request.allow()

    def question(name: str) -> dict[str, Any]:
        body = {"subtype": "can_use_tool", "tool_name": name, "input": {}, "tool_use_id": name}
        return {"type": "control_request", "request_id": name, "request": body}

    async with MessageStream(peer.output) as stream:
        async with Session(stream, peer.send, dialect=AUTO, can_use_tool=decide):
            peer.say(spoken("a"), question("First"), spoken("b"))
            await peer.got(1)
        async with Session(stream, peer.send, dialect=STREAM_JSON, can_use_tool=decide) as session:
            peer.say(question("Second"), RESULT)
            await peer.got(2)
            received = [message async for message in session.receive_response()]
    assert asked == ["First", "Second"]
    assert seen(received) == ["a", "b", "Hi"]
