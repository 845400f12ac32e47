"""Session: our control requests. Each is answered, refused or withdrawn, or ends with a timeout or the session."""

from __future__ import annotations

import json
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from async_backends import DEADLINE, Backend, every_asyncio, every_backend
from claude_wire import ControlResponse, ProcessError, RequestRefusedError, RequestTimeoutError, SessionEndedError
from claude_wire.codec import encode
from claude_wire.control.requests import Requests
from claude_wire.errors import PayloadError
from claude_wire.messages import (
    CancelAsyncMessageRequest,
    CancelAsyncMessageResponse,
    FileSuggestionsRequest,
    FileSuggestionsResponse,
    GetBinaryVersionRequest,
    GetBinaryVersionResponse,
    GetSettingsRequest,
    GetSettingsResponse,
    InterruptRequest,
    InterruptResponse,
    McpServerStatus,
    McpStatusRequest,
    McpStatusResponse,
    ReadFileRequest,
    ReadFileResponse,
    RewindFilesRequest,
    RewindFilesResponse,
    SetModelRequest,
    SetModelResponse,
    SetPermissionModeRequest,
    SetPermissionModeResponse,
    StopTaskRequest,
)
from claude_wire.protocol.requests import SentRequests
from claude_wire.streams.tasks import Tasks
from session_peer import RESULT, Peer, numbered, numbers, opened
from virtual_time import every_virtual_backend

# --- requests ---------------------------------------------------------------------------------------------------------

ANSWERS: list[tuple[Any, Any, Any]] = [
    (InterruptRequest(cancel_queued=True), {"still_queued": ["u"]}, InterruptResponse(still_queued=["u"])),
    (InterruptRequest(), None, InterruptResponse()),
    (SetModelRequest(model=None), {"model": "m"}, SetModelResponse(model="m")),
    (SetPermissionModeRequest(mode="plan"), {"mode": "plan"}, SetPermissionModeResponse(mode="plan")),
    (
        McpStatusRequest(),
        {"mcpServers": [{"name": "n", "status": "connected"}]},
        McpStatusResponse(mcpServers=[McpServerStatus(name="n", status="connected")]),
    ),
    (GetBinaryVersionRequest(), {"version": "2"}, GetBinaryVersionResponse(version="2")),
    (ReadFileRequest(path="p"), {"contents": "c", "absPath": "/p"}, ReadFileResponse(contents="c", absPath="/p")),
    (CancelAsyncMessageRequest(message_uuid="u"), {"cancelled": False}, CancelAsyncMessageResponse(cancelled=False)),
    (FileSuggestionsRequest(query="q"), {"suggestions": []}, FileSuggestionsResponse(suggestions=[])),
    (RewindFilesRequest(user_message_id="u"), {"canRewind": True}, RewindFilesResponse(canRewind=True)),
    (GetSettingsRequest(), {"effective": {}}, GetSettingsResponse(effective={})),
    (StopTaskRequest(task_id="t"), {}, {}),
]


@every_backend
async def test_each_request_gets_its_own_answer_typed() -> None:
    async with opened() as (peer, session):
        got: dict[int, Any] = {}

        async def ask(number: int, request: Any) -> None:
            got[number] = await session.request(request)

        async with anyio.create_task_group() as group:
            for number, (request, _, _) in enumerate(ANSWERS):
                group.start_soon(ask, number, request)
            await peer.until(lambda: len(peer.lines) == len(ANSWERS) + 1)
            sent = {id(asked): asked for asked in peer.lines[1:]}
            assert len({asked["request_id"] for asked in peer.lines}) == len(peer.lines)
            # Answer in reverse order.
            for asked in reversed(list(sent.values())):
                for request, payload, _ in ANSWERS:
                    if request.to_dict() == asked["request"]:
                        peer.answer(asked["request_id"], payload)
        assert [got[number] for number in range(len(ANSWERS))] == [answer for _, _, answer in ANSWERS]
        assert peer.withdrawn() == []


@every_backend
def test_the_common_requests_have_methods(backend: Backend) -> None:
    async def main() -> None:
        answers = {"interrupt": {}, "set_model": {"model": "m"}, "set_permission_mode": {}}
        async with opened(Peer(answers)) as (peer, session):
            assert await session.interrupt() == InterruptResponse()
            await session.interrupt(cancel_queued=True)
            assert (await session.set_model("m")).model == "m"
            await session.set_model(None)
            await session.set_permission_mode("plan")
            await session.initialize()
        assert [{key: request.get(key) for key in request if key != "request_id"} for request in asked(peer)[1:]] == [
            {"subtype": "interrupt"},
            {"subtype": "interrupt", "cancel_queued": True},
            {"subtype": "set_model", "model": "m"},
            {"subtype": "set_model", "model": None},
            {"subtype": "set_permission_mode", "mode": "plan"},
            {"subtype": "initialize"},
        ]

    def asked(peer: Peer) -> list[dict[str, Any]]:
        return [message["request"] for message in peer.lines if message["type"] == "control_request"]

    backend.run(main)


@every_backend
async def test_a_refused_request_raises_with_text_and_code() -> None:
    async with opened(Peer({"set_model": Exception("no such model", "invalid_model")})) as (_, session):
        with pytest.raises(RequestRefusedError) as info:
            await session.set_model("x")
        assert (info.value.subtype, info.value.error, info.value.error_code) == (
            "set_model",
            "no such model",
            "invalid_model",
        )
        assert str(info.value) == 'set_model: the request was refused (invalid_model): "no such model"'


@every_backend
async def test_an_answer_that_does_not_fit_is_a_payload_error() -> None:
    async with opened(Peer({"read_file": {"contents": 7}, "mcp_status": {"mcpServers": []}})) as (_, session):
        with pytest.raises(PayloadError):
            await session.request(ReadFileRequest(path="p"))
        await session.request(McpStatusRequest())


@every_virtual_backend
async def test_a_request_that_is_not_answered_in_time_is_withdrawn_and_its_late_answer_dropped() -> None:
    async with opened(request_timeout=0.03) as (peer, session):
        for timeout in None, 0.05:
            with pytest.raises(RequestTimeoutError) as info:
                await session.request(McpStatusRequest(), timeout=timeout)
            assert info.value.seconds == (timeout or 0.03)
            assert isinstance(info.value, TimeoutError)
        late = [request["request_id"] for request in peer.requests("mcp_status")]
        await peer.until(lambda: peer.withdrawn() == late)
        for request_id in late:
            peer.answer(request_id, {"mcpServers": []})
        peer.answer("of nobody", {})
        peer.answers["mcp_status"] = {"mcpServers": [{"name": "n", "status": "s"}]}
        answer = await session.request(McpStatusRequest(), timeout=20)
        assert [server.name for server in answer.mcpServers] == ["n"]
        peer.say(numbered(1), RESULT)
        assert numbers([message async for message in session.receive_response()][:-1]) == [1]


@every_backend
async def test_a_request_whose_caller_is_cancelled_is_withdrawn() -> None:
    async with opened() as (peer, session):
        async with anyio.create_task_group() as group:
            group.start_soon(session.request, McpStatusRequest())
            request = await peer.asked("mcp_status")
            group.cancel_scope.cancel()
        await peer.until(lambda: peer.withdrawn() == [request["request_id"]])


@every_asyncio
async def test_a_request_whose_task_is_cancelled_is_withdrawn() -> None:
    import asyncio

    async with opened() as (peer, session):
        task = asyncio.ensure_future(session.interrupt())
        request = await peer.asked("interrupt")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await peer.until(lambda: peer.withdrawn() == [request["request_id"]])


@every_virtual_backend
async def test_a_request_that_is_given_up_while_it_is_sent_is_withdrawn_when_it_was() -> None:
    async with opened() as (peer, session):
        go = anyio.Event()
        peer.hold = go.wait
        with pytest.raises(RequestTimeoutError):
            await session.request(McpStatusRequest(), timeout=0.03)
        go.set()
        request = await peer.asked("mcp_status")
        await peer.until(lambda: peer.withdrawn() == [request["request_id"]])


@every_backend
async def test_a_request_that_cannot_be_sent_raises_what_sending_raises() -> None:
    async with opened() as (peer, session):
        peer.failure = OSError("broken")
        with pytest.raises(OSError, match="broken"):
            await session.interrupt()
        peer.failure = None
        await anyio.wait_all_tasks_blocked()
        assert peer.withdrawn() == []


@every_backend
async def test_who_sends_from_another_loop_is_refused_and_holds_up_nobody() -> None:
    async with opened() as (peer, session):
        for send in (lambda: session.query("a"), lambda: session.interrupt()):
            with pytest.raises(RuntimeError):
                await anyio.to_thread.run_sync(anyio.run, send)
        with anyio.fail_after(DEADLINE):
            await session.query("b")
        assert [message["message"]["content"] for message in peer.lines if message["type"] == "user"] == ["b"]


@every_backend
@pytest.mark.parametrize("who", ["nobody", "a consumer"])
async def test_requests_fail_when_the_output_ends(who: str) -> None:
    async with opened() as (peer, session):
        failed: list[str] = []

        async def ask() -> None:
            with pytest.raises(SessionEndedError) as info:
                await session.interrupt()
            failed.append(info.value.subtype)

        async def iterate() -> None:
            async for _ in session:
                pass

        async with anyio.create_task_group() as group:
            if who != "nobody":
                group.start_soon(iterate)
            group.start_soon(ask)
            group.start_soon(ask)
            await peer.asked("interrupt", 2)
            peer.output.end()
        assert failed == ["interrupt", "interrupt"]
        before = len(peer.lines)
        with pytest.raises(SessionEndedError):
            await session.interrupt()
        assert len(peer.lines) == before


@every_backend
async def test_requests_fail_when_the_session_is_closed() -> None:
    async with opened() as (peer, session):
        failed = anyio.Event()

        async def ask() -> None:
            with pytest.raises(SessionEndedError, match="closed"):
                await session.interrupt()
            failed.set()

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await peer.asked("interrupt")
            await session.aclose()
            await failed.wait()
        assert peer.withdrawn() == []


@every_backend
async def test_a_request_without_an_answer_that_can_be_read_ends_all_the_same() -> None:
    async with opened() as (peer, session), anyio.create_task_group() as group:

        async def ask() -> None:
            with pytest.raises(RequestRefusedError):
                await session.interrupt()

        group.start_soon(ask)
        request = await peer.asked("interrupt")
        peer.say({"type": "control_response", "response": {"request_id": request["request_id"]}})


# --- the moment of an answer ------------------------------------------------------------------------------------------


class Asking:
    """A request that waits for its answer, and its outcome."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.sent = SentRequests()
        self.requests = Requests(self.sent, self._send, Tasks(), encode)
        self.outcome: Any = None

    async def _send(self, line: bytes) -> None:
        self.lines.append(line)

    async def ask(self) -> None:
        try:
            self.outcome = (await self.requests.ask(InterruptRequest(), 60.0, lambda: None)).response
        except SessionEndedError as error:
            self.outcome = error

    def answer(self, payload: dict[str, Any]) -> None:
        request_id = json.loads(self.lines[0])["request_id"]
        answered = self.sent.resolve(ControlResponse.success(request_id, payload))
        if answered is not None:
            self.requests.answered(answered)


@every_backend
async def test_an_answer_that_has_come_is_given_whatever_comes_before_it_is_taken() -> None:
    for then in ("the end", "another answer"):
        asking = Asking()
        async with anyio.create_task_group() as group:
            group.start_soon(asking.ask)
            await anyio.wait_all_tasks_blocked()
            asking.answer({"first": 1})
            if then == "the end":
                asking.requests.fail("the output has ended")
            else:
                asking.answer({"second": 2})
        assert asking.outcome == {"first": 1}


@every_backend
async def test_a_request_that_is_over_is_not_waited_for_any_more() -> None:
    """Otherwise the session would read ahead forever, as if a task still waited for the answer."""
    asking = Asking()
    assert not asking.requests.waiting
    async with anyio.create_task_group() as group:
        group.start_soon(asking.ask)
        await anyio.wait_all_tasks_blocked()
        assert asking.requests.waiting
        asking.answer({})
    assert not asking.requests.waiting
    with anyio.move_on_after(0):
        await asking.requests.ask(InterruptRequest(), 60.0, lambda: None)
    assert not asking.requests.waiting
    with pytest.raises(RequestTimeoutError):
        await asking.requests.ask(InterruptRequest(), 0.0, lambda: None)
    assert not asking.requests.waiting


@every_backend
async def test_why_nothing_is_answered_any_more_is_the_first_reason() -> None:
    asking = Asking()
    cause = ProcessError(3, b"")
    asking.requests.fail("the output has ended", cause)
    asking.requests.fail("the session was closed")
    await asking.ask()
    assert isinstance(asking.outcome, SessionEndedError)
    assert asking.outcome.__cause__ is cause
    assert "the output has ended" in str(asking.outcome)
    assert asking.lines == []


@every_virtual_backend
async def test_an_answer_is_looked_for_at_once() -> None:
    """The session reads ahead immediately, even if a task took a message a moment ago and might iterate on."""
    async with opened(Peer({"interrupt": {}})) as (peer, session):
        for number in range(5):
            peer.say(numbered(number))
            assert numbers([await session.__anext__()]) == [number]
            before = anyio.current_time()
            await session.interrupt()
            assert anyio.current_time() == before
