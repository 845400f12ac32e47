"""Corrupted lines never make a dialect raise, on either side, and a session continues to read."""

from __future__ import annotations

from random import Random
from typing import Any

import anyio
import pytest

from async_backends import every_backend
from claude_wire import ControlRequest, ControlResponse, Decoder, MessageStream, ResultMessage, Session
from claude_wire.dialects import AUTO, CLASSIC, JSON_RPC, MIRIAD, Dialect
from claude_wire.messages import GetStatusRequest, InterruptRequest
from claude_wire.session.router import KEPT_BACK
from dialect_peer import LinePeer
from mutations import mutants
from virtual_time import VirtualBackend, every_virtual_backend

LINES = [
    b'{"type":"control","action":"interrupt"}',
    b'{"type":"control","action":"status"}',
    b'{"type":"system","subtype":"interrupted","session_id":"S"}',
    b'{"type":"system","subtype":"error","message":"No turn is currently running"}',
    b'{"type":"system","subtype":"status","running":true,"session_id":"S","queued_messages":0}',
    b'{"type":"system","subtype":"permission_request","tool_name":"Bash","input":{"a":1},"tool_use_id":"t"}',
    b'{"type":"system","subtype":"tool_result","tool_result":{"type":"tool_result","tool_use_id":"t","content":"x"}}',
    b'{"type":"tool_result","tool_use_id":"t","result":{"type":"text","text":"x"}}',
    b'{"type":"user","message":{"role":"user","content":"b"},"session_id":"s"}',
    b'{"allow":true,"updatedInput":{"a":1}}',
    b'{"jsonrpc":"2.0","id":"1","result":{"type":"system","subtype":"status","running":false}}',
    b'{"jsonrpc":"2.0","id":"run","result":{"type":"result","subtype":"success","result":"Hi"}}',
    b'{"jsonrpc":"2.0","id":"2","error":{"code":-32002,"message":"none","data":{}}}',
    b'{"jsonrpc":"2.0","id":8,"method":"run","params":{"prompt":"b","session_id":"s"}}',
    b'{"jsonrpc":"2.0","id":9,"method":"cancel"}',
    b'{"jsonrpc":"2.0","method":"message","params":{"type":"assistant","message":{"content":[]}}}',
]


@pytest.mark.parametrize("dialect", [CLASSIC, MIRIAD, JSON_RPC, AUTO], ids=str)
def test_no_line_breaks_a_connection(dialect: Dialect) -> None:
    decoder = Decoder()
    host, agent = dialect.connect(), dialect.connect()
    for number, line in enumerate(mutants(LINES, 1, 6000)):
        if dialect in (MIRIAD, JSON_RPC) and number % 5 == 0:
            host.to_agent(ControlRequest("1", GetStatusRequest()))
            host.to_agent(ControlRequest("2", InterruptRequest()))
        for message in decoder.feed(line.replace(b"\n", b" ") + b"\n"):
            host.from_agent(message)
            for one in agent.from_host(message):
                if isinstance(one, ControlRequest) and dialect is not AUTO:
                    agent.to_host(ControlResponse.success(one.request_id, {"running": True}))
            assert agent.reply()[-1:] in (b"", b"\n")


@every_backend
@pytest.mark.parametrize("dialect", [CLASSIC, MIRIAD, JSON_RPC, AUTO], ids=str)
async def test_a_session_reads_on_behind_wrong_lines(dialect: Dialect) -> None:
    peer = LinePeer()
    allow = (lambda request: request.allow()) if dialect is CLASSIC else None
    async with peer.session(dialect=dialect, can_use_tool=allow) as session:
        for line in mutants(LINES, 2, 400):
            peer.output.write(line.replace(b"\n", b" ") + b"\n")
        last = '{"type":"result","subtype":"success","result":"the last one"}'
        peer.say(f'{{"jsonrpc":"2.0","id":"x","result":{last}}}' if dialect is JSON_RPC else last)
        await anyio.wait_all_tasks_blocked()  # lets the session read some lines ahead
        async for message in session:
            if isinstance(message, ResultMessage) and message.result == "the last one":
                break


@every_virtual_backend
@pytest.mark.parametrize("dialect", [CLASSIC, MIRIAD, JSON_RPC, AUTO], ids=str)
def test_nothing_changes_when_sessions_take_turns_and_iterate_now_and_then(
    virtual: VirtualBackend, dialect: Dialect
) -> None:
    """A session that reads corrupted lines in arbitrary chunks gives the same messages as a connection line by line."""
    data = b"".join(line.replace(b"\n", b" ") + b"\n" for line in mutants(LINES, 3, 300))
    connection, random = dialect.connect(), Random(3)
    expected = [one for message in Decoder().feed(data) for one in connection.from_agent(message)]
    chooses: dict[str, Any] = {"can_use_tool": lambda request: request.allow()} if dialect is CLASSIC else {}
    received: list[Any] = []

    async def take(session: Session, count: int, seconds: float) -> bool:
        with anyio.move_on_after(seconds) as scope:
            for _ in range(count):
                received.append(await session.__anext__())
        return not scope.cancelled_caught

    async def main() -> None:
        peer, at = LinePeer(), 0
        async with MessageStream(peer.output) as stream:
            while at < len(data):
                async with Session(stream, peer.send, dialect=dialect, **chooses) as session:
                    for _ in range(random.randrange(1, 6)):
                        size = random.choice([1, 30, 200, 1000, 5000])
                        peer.output.write(data[at : at + size])
                        at += size
                        await anyio.sleep(random.choice([0, 0.05]))  # after 0.05 s the session has read the chunk ahead
                        await take(session, random.randrange(20), 0.002)
                    while at >= len(data) and await take(session, 1, 1):
                        pass

    virtual.run(main)
    assert list(map(repr, received)) == [repr(one) for one in expected if type(one) not in KEPT_BACK]
