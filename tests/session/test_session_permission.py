"""Session: the permission callback, and the rules for callbacks of every kind."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from async_backends import Backend, every_asyncio, every_backend
from claude_wire import CanUseToolRequest, HandleError, HookCallbackRequest, HookMatcher, PermissionResultDeny
from claude_wire.messages import McpStatusRequest, PermissionResult, SetMode
from session_peer import RESULT, Peer, Server, allow, hook_request, never, numbered, numbers, opened, stays_unanswered
from virtual_time import every_virtual_backend

# --- callbacks: permission --------------------------------------------------------------------------------------------


@every_backend
async def test_permission_is_what_the_callback_says() -> None:
    mode = SetMode("acceptEdits", "session")

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        await anyio.lowlevel.checkpoint()
        seen.append(request)
        answers: dict[str, Callable[[], PermissionResult]] = {
            "Allowed": request.allow,
            "Changed": lambda: request.allow({"command": "pwd"}),
            "Always": lambda: request.allow(updated_permissions=[mode]),
            "Denied": lambda: request.deny("not this"),
            "Stopped": lambda: request.deny("no", interrupt=True),
            "Bare": lambda: PermissionResultDeny("bare"),
        }
        return answers[request.tool_name]()

    seen: list[CanUseToolRequest] = []

    async with opened(can_use_tool=decide) as (peer, _):
        expected: dict[str, dict[str, Any]] = {
            "Allowed": {"behavior": "allow", "updatedInput": {"command": "ls"}},
            "Changed": {"behavior": "allow", "updatedInput": {"command": "pwd"}},
            "Always": {
                "behavior": "allow",
                "updatedInput": {"command": "ls"},
                "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
            },
            "Denied": {"behavior": "deny", "message": "not this"},
            "Stopped": {"behavior": "deny", "message": "no", "interrupt": True},
            "Bare": {"behavior": "deny", "message": "bare"},
        }
        peer.say(*(Peer.permission(f"p-{tool}", tool) for tool in expected))
        for tool, payload in expected.items():
            answer = await peer.answer_to(f"p-{tool}")
            assert answer["subtype"] == "success"
            assert answer["response"] == {**payload, "toolUseID": f"use-p-{tool}"}
    assert all(request.input == {"command": "ls"} for request in seen)


@every_backend
async def test_without_a_permission_callback_the_question_is_an_error() -> None:
    async with opened() as (peer, _):
        peer.say(Peer.permission("p"))
        assert (await peer.answer_to("p"))["subtype"] == "error"


@every_backend
def test_a_callback_that_fails_is_an_error_answer_and_the_session_goes_on(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(BaseException):
        pass

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    async def decide(request: CanUseToolRequest) -> Any:
        if request.tool_name == "Raises":
            raise ValueError("for a reason")
        if request.tool_name == "Silent":
            raise ValueError
        if request.tool_name == "Mute":
            raise Mute
        if request.tool_name == "Odd":
            raise Odd("odd")
        if request.tool_name == "Group":
            async with anyio.create_task_group() as group:
                group.start_soon(fails)
        if request.tool_name == "Text":
            return request.allow("ls")  # type: ignore[arg-type] # the mistake
        return {"Wrong": {"behavior": "allow"}, "None": None}.get(request.tool_name) or request.allow({"x": object()})

    async def fails() -> None:
        raise ValueError("in a task of its own")

    async def main() -> None:
        async with opened(can_use_tool=decide) as (peer, session):
            for tool in "Raises", "Silent", "Mute", "Odd", "Group", "Text", "Wrong", "None", "Unencodable":
                peer.say(Peer.permission(tool, tool))
                answer = await peer.answer_to(tool)
                assert answer["subtype"] == "error", tool
                assert isinstance(answer["error"], str), tool
                assert answer["error"], tool
            assert "for a reason" in peer.answers_to("Raises")[0]["error"]
            peer.say(RESULT)
            assert len([message async for message in session.receive_response()]) == 1

    with caplog.at_level(logging.WARNING, "claude_wire"):
        backend.run(main)
    messages = [record.getMessage() for record in caplog.records]
    for tool in "Raises", "Silent":
        assert f"can_use_tool for {tool} raised ValueError" in messages
    assert "can_use_tool returned dict for Wrong; return request.allow() or request.deny('why')" in messages
    updated = (
        "can_use_tool returned an updated_input that is str for Text; it must be a dict: the whole input of the tool"
    )
    assert updated in messages
    assert not any("for a reason" in message for message in messages)
    # The logged traceback begins with the callback, without the frames of the library that called it.
    for record in caplog.records:
        if record.getMessage() == "can_use_tool for Raises raised ValueError":
            assert record.exc_info is not None
            assert record.exc_info[2] is not None
            assert record.exc_info[2].tb_frame.f_code.co_name == "decide"


@every_asyncio
async def test_a_callback_that_was_cancelled_by_its_own_doing_is_an_error_answer() -> None:
    async def decide(request: CanUseToolRequest) -> PermissionResult:
        import asyncio

        task = asyncio.ensure_future(anyio.sleep_forever())
        asyncio.get_running_loop().call_soon(task.cancel)
        await task
        return request.allow()

    async with opened(can_use_tool=decide) as (peer, _):
        peer.say(Peer.permission("p"))
        assert (await peer.answer_to("p"))["subtype"] == "error"


@every_backend
async def test_callbacks_run_side_by_side_and_are_answered_as_they_end() -> None:
    events = {str(number): anyio.Event() for number in range(20)}

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        await events[request.tool_name].wait()
        return request.allow()

    async with opened(can_use_tool=decide) as (peer, _):
        peer.say(*(Peer.permission(f"p{number}", number) for number in events))
        await stays_unanswered(peer, *(f"p{number}" for number in events))
        for number in reversed(events):
            events[number].set()
            await peer.answer_to(f"p{number}")


@every_backend
async def test_a_callback_that_takes_too_long_is_an_error_answer_and_cancelled() -> None:
    cancelled = anyio.Event()

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        try:
            return await never()
        finally:
            cancelled.set()

    async with opened(can_use_tool=decide, callback_timeout=0.03) as (peer, _):
        peer.say(Peer.permission("p"))
        answer = await peer.answer_to("p")
        assert answer["subtype"] == "error"
        assert "0.03 seconds" in answer["error"]
        await cancelled.wait()


@every_virtual_backend
async def test_a_hook_has_its_own_time_and_a_little_more_for_the_cli_to_withdraw_it() -> None:
    ends: dict[str, float] = {}

    def sleeps(name: str, seconds: float) -> Any:
        async def hook(request: HookCallbackRequest) -> None:
            try:
                await anyio.sleep(seconds)
            finally:
                ends[name] = anyio.current_time() - start

        return hook

    matchers = [
        HookMatcher(sleeps("h0", 15), timeout=30),
        HookMatcher(sleeps("h1", 15), timeout=14),
        HookMatcher(sleeps("h2", 3600)),
        HookMatcher(sleeps("h3", 3600), timeout=30),
        HookMatcher(sleeps("h4", 3600), timeout=30),
    ]
    async with opened(hooks={"Stop": matchers}, callback_timeout=10) as (peer, _):
        told = (await peer.asked("initialize"))["hooks"]["Stop"]
        start = anyio.current_time()
        for number, matcher in enumerate(told):
            peer.say(hook_request(f"h{number}", matcher["hookCallbackIds"][0]))
        # The CLI also applies these timeouts, and withdraws a hook that is late. Ours must not send an error before
        # that.
        assert [matcher["timeout"] for matcher in told] == [30, 14, 10, 30, 30]
        assert (await peer.answer_to("h0"))["subtype"] == "success"
        assert (await peer.answer_to("h1"))["subtype"] == "success"
        assert (await peer.answer_to("h2"))["subtype"] == "error"
        assert 10 < ends["h2"] < 30
        await anyio.sleep(start + 30 - anyio.current_time())
        peer.say(Peer.cancel("h3"))
        await stays_unanswered(peer, "h3", "h4")
        assert (await peer.answer_to("h4"))["subtype"] == "error"
        assert 30 <= ends["h3"] < 31
        assert 30 < ends["h4"] < 60
        await stays_unanswered(peer, "h3")


@every_backend
@pytest.mark.parametrize("how", ["ignores cancellation", "blocks a worker thread"])
async def test_a_callback_that_cannot_be_stopped_is_answered_for_in_time_and_once(how: str) -> None:
    go, done = anyio.Event(), anyio.Event()
    thread_go = threading.Event()

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        if how == "ignores cancellation":
            with anyio.CancelScope(shield=True):
                await go.wait()
        else:
            await anyio.to_thread.run_sync(thread_go.wait, 20)
        done.set()
        return request.allow()

    async with opened(can_use_tool=decide, callback_timeout=0.03) as (peer, _):
        peer.say(Peer.permission("p"))
        assert "0.03 seconds" in (await peer.answer_to("p"))["error"]
        assert not done.is_set()
        go.set()
        thread_go.set()
        if how == "ignores cancellation":
            await done.wait()
        await stays_unanswered(peer)
        assert len(peer.answers_to("p")) == 1


@every_backend
async def test_a_withdrawn_callback_is_cancelled_and_not_answered() -> None:
    begun, cancelled = anyio.Event(), anyio.Event()

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        if request.tool_name == "Quick":
            return request.allow()
        begun.set()
        try:
            return await never()
        finally:
            cancelled.set()

    async with opened(can_use_tool=decide) as (peer, _):
        peer.say(Peer.permission("p"))
        await begun.wait()
        peer.say(Peer.cancel("p"), Peer.cancel("of nobody"))
        await cancelled.wait()
        await stays_unanswered(peer, "p")
        # "q" is withdrawn in the same chunk, before its callback begins; "p" is asked again with the same id.
        peer.say(Peer.permission("q", "Quick"), Peer.cancel("q"), Peer.permission("p", "Quick"))
        peer.say(Peer.permission("r", "Quick"))
        await peer.answer_to("r")
        peer.say(Peer.cancel("r"))
        await stays_unanswered(peer, "p", "q")


@every_backend
async def test_callbacks_are_cancelled_when_the_session_is_closed() -> None:
    begun, cancelled = anyio.Event(), anyio.Event()

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        begun.set()
        try:
            return await never()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            cancelled.set()

    async with opened(can_use_tool=decide) as (peer, _):
        peer.say(Peer.permission("p"))
        await begun.wait()
    assert cancelled.is_set()
    assert peer.answers_to("p") == []


@every_backend
async def test_a_callback_cannot_ask_for_a_turn_while_its_own_waits_for_it() -> None:
    async def decide(request: CanUseToolRequest) -> PermissionResult:
        with anyio.fail_after(60):
            await session.ask("and this?")
        return request.allow()

    async with opened(can_use_tool=decide) as (peer, session):
        peer.say(Peer.permission("p"))
        answer = await peer.answer_to("p")
        assert answer["subtype"] == "error"
        assert "in a callback" in answer["error"]
        assert peer.prompts() == []


@every_backend
async def test_a_cancelled_block_waits_for_its_callbacks_to_end() -> None:
    begun, ended = anyio.Event(), anyio.Event()

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        begun.set()
        try:
            return await never()
        finally:
            with anyio.CancelScope(shield=True):
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
            ended.set()

    with anyio.CancelScope() as scope:
        async with opened(can_use_tool=decide) as (peer, _):
            peer.say(Peer.permission("p"))
            await begun.wait()
            scope.cancel()
    assert ended.is_set()


@every_backend
async def test_closing_a_session_again_does_nothing() -> None:
    """It leaves its MCP servers alone, and also the session that now uses the same stream."""
    peer, server = Peer(), Server()
    first = peer.session(mcp_servers={"s": server})
    async with first:
        pass
    async with peer.session(can_use_tool=allow) as second:
        await first.aclose()
        peer.say(numbered(1), Peer.permission("p"))
        await peer.answer_to("p")
        assert numbers([await second.__anext__()]) == [1]
        with pytest.raises(HandleError):
            await peer.session().__aenter__()  # the stream still belongs to the other session
    assert server.closed == 1


@every_backend
async def test_a_callback_may_use_the_session() -> None:
    async def decide(request: CanUseToolRequest) -> PermissionResult:
        status = await session.request(McpStatusRequest())
        await session.interrupt()
        await session.query("by the way")
        return request.allow({"servers": len(status.mcpServers)})

    async with opened(Peer({"mcp_status": {"mcpServers": []}, "interrupt": {}}), can_use_tool=decide) as (
        peer,
        session,
    ):
        # Ask once while no task iterates over the session, and once while a task does.
        peer.say(Peer.permission("p"))
        assert (await peer.answer_to("p"))["response"]["updatedInput"] == {"servers": 0}

        async def iterate() -> None:
            async for _ in session.receive_response():
                pass

        async with anyio.create_task_group() as group:
            group.start_soon(iterate)
            await anyio.wait_all_tasks_blocked()
            peer.say(Peer.permission("q"))
            assert (await peer.answer_to("q"))["response"]["updatedInput"] == {"servers": 0}
            peer.say(RESULT)
        assert len(peer.prompts()) == 2


@every_virtual_backend
async def test_a_callback_may_end_the_session() -> None:
    async def decide(request: CanUseToolRequest) -> PermissionResult:
        await session.aclose()
        return request.allow()

    async with opened(can_use_tool=decide) as (peer, session):
        begun = anyio.current_time()
        peer.say(numbered(1), Peer.permission("p"))
        assert numbers([message async for message in session]) in ([], [1])
    assert anyio.current_time() - begun < 1
    assert peer.answers_to("p") == []


@every_backend
async def test_who_closes_a_session_second_waits_for_as_long() -> None:
    stopping, go = anyio.Event(), anyio.Event()

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        try:
            return await never()
        finally:
            with anyio.CancelScope(shield=True):
                stopping.set()
                await go.wait()

    ended: list[str] = []
    async with opened(can_use_tool=decide) as (peer, session), anyio.create_task_group() as group:
        peer.say(Peer.permission("p"))
        await anyio.wait_all_tasks_blocked()

        async def close(name: str) -> None:
            await session.aclose()
            ended.append(name)

        group.start_soon(close, "first")
        await stopping.wait()
        group.start_soon(close, "second")
        await anyio.wait_all_tasks_blocked()
        assert ended == []
        go.set()
    assert sorted(ended) == ["first", "second"]


VARIABLE = contextvars.ContextVar("VARIABLE", default="none")


@every_backend
async def test_callbacks_have_the_context_in_which_the_session_was_made() -> None:
    seen: list[str] = []

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        seen.append(VARIABLE.get())
        return request.allow()

    VARIABLE.set("made")
    async with opened(can_use_tool=decide) as (peer, session):
        VARIABLE.set("iterating")
        peer.say(Peer.permission("p"))
        await peer.answer_to("p")  # the session reads ahead to answer this
        peer.say(Peer.permission("q"), RESULT)
        async for _ in session.receive_response():
            pass
        await peer.answer_to("q")
    assert seen == ["made", "made"]
