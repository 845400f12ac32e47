"""A session that takes over a running CLI through a transport: what it counts, skips, answers and sends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from async_backends import DEADLINE, Backend, every_backend
from claude_wire import (
    ControlRequest,
    Decoder,
    HandleError,
    HookCallbackRequest,
    HookMatcher,
    MessageStream,
    PromptError,
    Session,
    decode,
    dialects,
    open_session,
)
from claude_wire.errors import DialectError
from claude_wire.messages import InitializeRequest
from claude_wire.session import Registered, RunningCLI, SessionPort, SessionTransport
from session_peer import INIT, RESULT, Output, Peer, allow, line, numbered, numbers, take

END = b'{"type":"end"}\n'


class Transport(SessionTransport):
    """A transport to an in-memory CLI that was already running before the session began."""

    end_input_line = END

    def __init__(self, past: Sequence[dict[str, Any]] = (), decoder: Decoder[Any] | None = None, **cli: Any) -> None:
        self.output = Output()
        self.stream = MessageStream(self.output, decoder or Decoder())
        self.sent: list[dict[str, Any]] = []
        self.closed = False
        self.error: Exception | None = None
        self.cli = RunningCLI(initialize_id="first", replayed=len(past), **cli)
        self.output.write(b"".join(map(line, past)))

    async def open(self, port: SessionPort) -> RunningCLI:
        self.port = port
        return self.cli

    async def send(self, line: bytes) -> None:
        self.sent.append(json.loads(line))

    def require(self, line: bytes, *, is_answer: bool) -> None:
        if not self.drives:
            raise HandleError("a viewer")

    def end_error(self) -> Exception | None:
        return self.error

    async def aclose(self) -> None:
        await super().aclose()
        self.closed = True

    def answered(self) -> list[str]:
        return [one["response"]["request_id"] for one in self.sent if one["type"] == "control_response"]


def question(id: str) -> ControlRequest:
    found = decode(line(Peer.permission(id)))
    assert isinstance(found, ControlRequest)
    return found


async def answered(transport: Transport, count: int) -> list[str]:
    with anyio.fail_after(DEADLINE):
        while len(transport.answered()) < count:
            await anyio.sleep(0.001)
    return transport.answered()


@every_backend
async def test_messages_are_counted_and_no_initialize_is_sent() -> None:
    transport = Transport([numbered(1), {"type": "keep_alive"}, numbered(2)])
    async with Session(transport) as session:
        assert transport.port.taken == 0
        assert numbers(await take(session, 1)) == [1]
        assert transport.port.taken == 1
        transport.output.write(b"nonsense\n" + line(numbered(3)))
        assert numbers(await take(session, 1)) == [2]
        assert transport.port.taken == 3
        await take(session, 1)
        assert transport.port.taken == 4
        assert numbers(await take(session, 1)) == [3]
        assert transport.port.taken == 5
        assert transport.sent == []
    assert transport.closed


@every_backend
def test_open_requests_are_answered_and_those_of_the_past_never_wherever_chunks_end(backend: Backend) -> None:
    past = [Peer.permission("settled"), numbered(1), Peer.permission("open"), RESULT]
    data = b"".join(map(line, [*past, Peer.permission("new"), numbered(2)]))

    async def main(cut: int, reads: bool) -> None:
        transport = Transport(open=[question("open")])
        transport.cli = RunningCLI(replayed=len(past), open=[question("open")])
        transport.output.write(data[:cut])
        transport.output.write(data[cut:])
        async with Session(transport, can_use_tool=allow) as session:
            if reads:
                messages = await take(session, 3)
                assert numbers([messages[0], messages[2]]) == [1, 2]
            assert await answered(transport, 2) == ["open", "new"]

    for cut in range(0, len(data), 7):
        backend.run(main, cut, True)
    for cut in 0, len(data) // 2, len(data):
        backend.run(main, cut, False)


@every_backend
async def test_a_run_goes_on_where_the_cli_is() -> None:
    transport = Transport([INIT], turn=True, owed=["p1"])
    async with Session(transport) as session:
        transport.output.write(line({**RESULT, "user_message_uuids": ["p1"]}))
        types = [type(message).__name__ async for message in session.receive_run()]
        assert types == ["InitMessage", "ResultSuccess"]


@every_backend
async def test_one_that_does_not_drive_answers_and_sends_nothing() -> None:
    transport = Transport(open=[question("open")])
    transport.drives = False
    async with Session(transport, can_use_tool=allow) as session:
        transport.output.write(line(Peer.permission("new")) + line(numbered(1)))
        await take(session, 1)
        with pytest.raises(HandleError, match="a viewer"):
            await session.query("hi")
    assert transport.sent == []


@every_backend
async def test_the_end_of_the_stream_is_what_the_transport_says() -> None:
    transport = Transport()
    transport.error = ConnectionError("cut")
    async with Session(transport) as session:
        # after a reconnect the cut line is sent again in full
        transport.output.write(line(numbered(1)) + b'{"type":"us')
        transport.output.end()
        assert numbers(await take(session, 1)) == [1]
        with pytest.raises(ConnectionError, match="cut"):
            await session.__anext__()
        with pytest.raises(StopAsyncIteration):
            await session.__anext__()


@every_backend
async def test_a_prompt_that_is_not_delivered_ends_its_asker() -> None:
    class Refusing(Transport):
        async def send(self, line: bytes) -> None:
            self.port.refuse_prompt(json.loads(line)["uuid"], "the disk is full")

    async with Session(Refusing()) as session:
        with pytest.raises(PromptError, match="the prompt was not delivered: the disk is full"):
            await session.ask("hi")


@every_backend
async def test_callbacks_that_the_cli_was_started_without_are_named(caplog: pytest.LogCaptureFixture) -> None:
    transport = Transport(registered=Registered(hooks=["other"], asks=True))
    async with Session(transport, can_use_tool=allow, hooks={"Stop": [HookMatcher(hook, name="n")]}) as session:
        assert [guard.confirmed for guard in session.guards] == [True, False]
        assert transport.port.hooks == ["Stop::n"]
        assert transport.port.complete(InitializeRequest()).hooks is not None
    assert "started without: the Stop hook n" in caplog.text


@every_backend
async def test_the_input_ends_by_the_line_of_the_transport() -> None:
    transport = Transport()
    async with Session(transport) as session:
        await session.end_input()
        assert transport.sent == [json.loads(END)]
        with pytest.raises(HandleError, match=r"session\.info"):
            await session.initialize()


@every_backend
async def test_a_stream_whose_messages_cannot_be_counted_is_refused() -> None:
    for decoder in Decoder(coalesce=True), Decoder(on_invalid=lambda _: None):
        with pytest.raises(TypeError, match="counts messages"):
            async with Session(Transport(decoder=decoder)):
                raise AssertionError
    transport = Transport([numbered(1), numbered(2)])
    await transport.stream.__anext__()
    with pytest.raises(HandleError, match="was not read before"):
        async with Session(transport):
            raise AssertionError


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="a transport sends by itself"):
        Session(Transport(), print)
    with pytest.raises(DialectError, match="through a transport"):
        Session(Transport(), dialect=dialects.CLASSIC)
    with pytest.raises(TypeError, match="options"):
        open_session()  # type: ignore[call-arg]


def hook(request: HookCallbackRequest) -> None:
    """A hook that makes no decision."""
