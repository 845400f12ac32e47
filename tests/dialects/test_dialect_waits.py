"""In MIRIAD, interrupts, prompts and status requests never wait for a message that the documents do not promise.

There are two fake agents. The first follows the document: it answers an interrupt with a ``cancelled`` result, and
writes nothing if no turn runs. The second follows the public source of miriad-code: it starts with an init, reports
``interrupted``, and ends a turn without a result if the interrupt aborts a request to the model.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from claude_wire import InitMessage, MessageStream, ResultMessage, Session
from claude_wire.dialects import AUTO, MIRIAD, Dialect
from claude_wire.errors import TurnCancelledError
from claude_wire.messages import InterruptedMessage, SystemErrorMessage
from dialect_peer import LinePeer
from virtual_time import VirtualBackend, every_virtual_backend

Frame = dict[str, Any]


def says(text: str) -> Frame:
    return {
        "type": "assistant",
        "message": {"role": "assistant", "content": [{"type": "text", "text": text}], "model": "m"},
    }


def result(subtype: str, **more: Any) -> Frame:
    return {
        "type": "result",
        "subtype": subtype,
        "duration_ms": 7,
        "is_error": subtype == "error",
        "num_turns": 0,
        "session_id": "s",
        **more,
    }


class Server(LinePeer):
    """Fake agent that follows the document. A prompt starts a turn, `finish` ends it, and later prompts queue."""

    def __init__(self) -> None:
        super().__init__()
        self.running: str | None = None
        self.queue: list[str] = []

    async def send(self, line: bytes) -> None:
        await super().send(line)
        for one in line.splitlines():
            self.take(json.loads(one))

    def take(self, frame: Frame) -> None:
        if frame["type"] == "user":
            if self.running is None:
                self.begin(frame["message"]["content"])
            else:
                self.queue.append(frame["message"]["content"])
                self.say({"type": "system", "subtype": "queued", "session_id": "s", "position": len(self.queue)})
        else:
            assert frame["type"] == "control"
            self.control(frame["action"])

    def begin(self, prompt: str) -> None:
        self.running = prompt
        self.say(says(f"doing {prompt}"))

    def finish(self) -> None:
        self.end(result("success", result=f"did {self.running}"))

    def end(self, *frames: Frame) -> None:
        self.running = None
        if frames:
            self.say(*frames)
        if self.queue:
            self.begin(self.queue.pop(0))

    def control(self, action: str) -> None:
        raise NotImplementedError


class OfTheDocument(Server):
    def control(self, action: str) -> None:
        if action == "interrupt" and self.running is not None:
            self.end(result("cancelled"))


class OfTheSource(Server):
    """Fake agent like miriad-code. If `with_result`, an interrupted turn ends with a ``cancelled`` result."""

    def __init__(self, *, with_result: bool = False, begins: bool = True) -> None:
        super().__init__()
        self.with_result = with_result
        if begins:
            self.say({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": []})

    def control(self, action: str) -> None:
        if action == "status":
            queued = len(self.queue)
            self.say(
                {
                    "type": "system",
                    "subtype": "status",
                    "running": self.running is not None,
                    "session_id": "s",
                    "queued_messages": queued,
                }
            )
        elif self.running is None:
            self.say({"type": "system", "subtype": "error", "message": "No turn is currently running"})
        else:
            self.say({"type": "system", "subtype": "interrupted", "session_id": "s"})
            self.end(*([result("cancelled")] if self.with_result else []))


def within_a_minute(test: Callable[[Session, Any], Awaitable[None]], server: Server, dialect: Dialect = MIRIAD) -> Any:
    async def main() -> None:
        with anyio.fail_after(59):  # virtual seconds: less than the time limit of a request
            async with Session(MessageStream(server.output), server.send, dialect=dialect) as session:
                await test(session, server)

    return main


SERVERS = [
    pytest.param(OfTheDocument, id="the document"),
    pytest.param(OfTheSource, id="the source, without a result"),
    pytest.param(lambda: OfTheSource(with_result=True), id="the source, with a result"),
]


@every_virtual_backend
@pytest.mark.parametrize("server", SERVERS)
def test_an_interrupt_returns_and_ends_the_turn_for_receive_response(
    virtual: VirtualBackend, server: Callable[[], Server]
) -> None:
    async def check(session: Session, peer: Server) -> None:
        await session.query("a")
        await session.interrupt()
        received = [message async for message in session.receive_response()]
        assert isinstance(received[-1], ResultMessage)
        assert received[-1].cancelled
        assert isinstance(received[-1].to_error(), TurnCancelledError)
        await session.query("b")
        peer.finish()
        received = [message async for message in session.receive_response()]
        assert isinstance(received[-1], ResultMessage)
        assert received[-1].result == "did b"

    virtual.run(within_a_minute(check, server()))


@every_virtual_backend
@pytest.mark.parametrize("server", SERVERS)
def test_an_interrupt_ends_the_wait_of_ask_and_the_next_prompt_is_answered(
    virtual: VirtualBackend, server: Callable[[], Server]
) -> None:
    async def check(session: Session, peer: Server) -> None:
        async def interrupt() -> None:
            await peer.got(1)
            await session.interrupt()

        async with anyio.create_task_group() as group:
            group.start_soon(interrupt)
            with pytest.raises(TurnCancelledError):
                await session.ask("a")

        async def finish() -> None:
            await peer.got(3)
            peer.finish()

        async with anyio.create_task_group() as group:
            group.start_soon(finish)
            assert (await session.ask("b")).result == "did b"

    virtual.run(within_a_minute(check, server()))


@every_virtual_backend
@pytest.mark.parametrize("server", SERVERS)
def test_an_interrupt_ends_the_run(virtual: VirtualBackend, server: Callable[[], Server]) -> None:
    async def check(session: Session, peer: Server) -> None:
        await session.query("a")
        await session.interrupt()
        results = [message async for message in session.receive_run() if isinstance(message, ResultMessage)]
        assert [one.cancelled for one in results] == [True]

    virtual.run(within_a_minute(check, server()))


@every_virtual_backend
@pytest.mark.parametrize("server", SERVERS)
def test_an_interrupt_between_turns_returns_and_the_session_goes_on(
    virtual: VirtualBackend, server: Callable[[], Server]
) -> None:
    async def check(session: Session, peer: Server) -> None:
        await session.interrupt()

        async def finish() -> None:
            await peer.got(2)
            peer.finish()

        async with anyio.create_task_group() as group:
            group.start_soon(finish)
            assert (await session.ask("a")).result == "did a"
        await session.interrupt()

    virtual.run(within_a_minute(check, server()))


@every_virtual_backend
@pytest.mark.parametrize("server", SERVERS)
def test_a_prompt_that_waited_behind_an_interrupted_turn_keeps_its_own_result(
    virtual: VirtualBackend, server: Callable[[], Server]
) -> None:
    async def check(session: Session, peer: Server) -> None:
        await session.query("a")
        await session.query("b")
        await session.interrupt()
        peer.finish()
        results = [message async for message in session.receive_run() if isinstance(message, ResultMessage)]
        assert [(one.cancelled, one.result) for one in results] == [(True, None), (False, "did b")]

    virtual.run(within_a_minute(check, server()))


@every_virtual_backend
@pytest.mark.parametrize("pause", [0, 10])
def test_a_result_that_comes_late_is_not_that_of_the_next_prompt(virtual: VirtualBackend, pause: float) -> None:
    async def check(session: Session, peer: OfTheSource) -> None:
        await session.query("a")
        peer.say({"type": "system", "subtype": "interrupted", "session_id": "s"})
        if pause:
            results = [message async for message in session.receive_run() if isinstance(message, ResultMessage)]
            assert [one.cancelled for one in results] == [True]
        await session.query("b")  # queued, since the tool of the interrupted turn has not returned yet
        peer.running = None
        peer.say(result("cancelled"))
        peer.queue.clear()
        peer.begin("b")
        peer.finish()
        results = [message async for message in session.receive_run() if isinstance(message, ResultMessage)]
        expected = [None, "did b"][1 if pause else 0 :]
        assert [one.result for one in results] == expected

    virtual.run(within_a_minute(check, OfTheSource()))


@every_virtual_backend
def test_a_turn_that_still_writes_after_interrupted_is_not_cut_off(virtual: VirtualBackend) -> None:
    async def check(session: Session, peer: OfTheSource) -> None:
        await session.query("a")
        peer.say({"type": "system", "subtype": "interrupted", "session_id": "s"})

        async def go_on() -> None:
            for _ in range(5):
                await anyio.sleep(2)
                peer.say(says("still there"))
            peer.end(result("cancelled"))

        async with anyio.create_task_group() as group:
            group.start_soon(go_on)
            received = [message async for message in session.receive_response()]
        assert sum(not isinstance(one, (InitMessage, InterruptedMessage, ResultMessage)) for one in received) == 6
        assert isinstance(received[-1], ResultMessage)
        assert received[-1].duration_ms == 7

    virtual.run(within_a_minute(check, OfTheSource()))


@every_virtual_backend
def test_a_result_of_a_failed_turn_answers_an_interrupt_that_came_too_late(virtual: VirtualBackend) -> None:
    async def check(session: Session, peer: OfTheDocument) -> None:
        await session.query("a")

        async def fail() -> None:
            await peer.got(2)
            peer.say(result("error", result="no model"))

        peer.control = lambda action: None  # type: ignore[method-assign]
        async with anyio.create_task_group() as group:
            group.start_soon(fail)
            await session.interrupt()
        received = [message async for message in session.receive_response()]
        assert isinstance(received[-1], ResultMessage)
        assert not received[-1].cancelled

    virtual.run(within_a_minute(check, OfTheDocument()))


@every_virtual_backend
def test_a_greeting_begins_no_turn(virtual: VirtualBackend) -> None:
    async def check(session: Session, peer: OfTheSource) -> None:
        assert isinstance(await session.__anext__(), InitMessage)
        assert [message async for message in session.receive_run(ceiling=5)] == []

    virtual.run(within_a_minute(check, OfTheSource()))


@every_virtual_backend
@pytest.mark.parametrize("subtype", ["status", "status_response"])
def test_status_is_known_by_its_fields(virtual: VirtualBackend, subtype: str) -> None:
    async def check(session: Session, peer: Server) -> None:
        peer.control = lambda action: peer.say(  # type: ignore[method-assign]
            {"type": "system", "subtype": subtype, "running": False, "session_id": "s", "queued_messages": 0}
        )
        status = await session.status()
        assert (status.running, status.session_id, status.queued_messages) == (False, "s", 0)

    virtual.run(within_a_minute(check, OfTheDocument()))


@every_virtual_backend
def test_an_unknown_dialect_that_turns_out_to_be_this_one_waits_no_longer(virtual: VirtualBackend) -> None:
    async def check(session: Session, peer: OfTheSource) -> None:
        await session.query("a")
        peer.say({"type": "system", "subtype": "error", "message": "something"})
        while not isinstance(await session.__anext__(), SystemErrorMessage):
            pass
        await session.interrupt()
        results = [message async for message in session.receive_run() if isinstance(message, ResultMessage)]
        assert [one.cancelled for one in results] == [True]

    virtual.run(within_a_minute(check, OfTheSource(), AUTO))
