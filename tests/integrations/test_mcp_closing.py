"""Closing an in-process MCP server cancels its running calls, and it sends nothing afterwards."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from async_backends import Backend, every_backend

pytest.importorskip("mcp")

import anyio.to_thread
from mcp.shared.message import SessionMessage

from claude_wire.integrations import mcp_run as integration
from claude_wire.integrations.mcp import InProcessMcpServer
from claude_wire.integrations.mcp_versions import parse
from mcp_servers import (
    CALL,
    INITIALIZE,
    Client,
    Context,
    MCPServer,
    Message,
    Slow,
    calculator,
    connected,
    low_level,
    settled,
    the_run,
)


@every_backend
async def test_closing_cancels_what_runs_and_ends_the_lifespan() -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[None]:
        steps.append("begun")
        yield
        await anyio.lowlevel.checkpoint()
        steps.append("ended")

    slow = Slow()
    low: Any = InProcessMcpServer(slow.server)._server
    low.lifespan = lifespan
    responses: list[Any] = []
    async with connected(low) as client, anyio.create_task_group() as group:

        async def call() -> None:
            responses.append(await client.server.handle(CALL))

        group.start_soon(call)
        await slow.entered.wait()
        await client.server.aclose()
        await client.server.aclose()
    assert slow.cancelled.is_set()
    assert steps == ["begun", "ended"]
    assert "error" in responses[0]
    assert await client.error("ping") == {"code": -32603, "message": "MCP server 'slow' is closed"}


@every_backend
@pytest.mark.parametrize("how", ["shield", "thread"])
def test_closing_does_not_wait_for_a_tool_that_blocks(
    backend: Backend, how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(integration, "GRACE_SECONDS", 0.2)

    async def main() -> None:
        server = MCPServer("blocking")
        entered, go, ended = threading.Event(), threading.Event(), anyio.Event()

        def in_thread() -> None:
            entered.set()
            go.wait()

        @server.tool()
        async def block() -> str:
            try:
                if how == "thread":
                    await anyio.to_thread.run_sync(in_thread)
                else:
                    with anyio.CancelScope(shield=True):
                        entered.set()
                        await settled(go.is_set)
            finally:
                ended.set()
            return ""

        responses: list[Any] = []
        client = Client(server)
        client.server.connect(client.send)
        await client.initialize()
        try:
            async with anyio.create_task_group() as group:

                async def call() -> None:
                    params = {"name": "block", "arguments": {}}
                    responses.append(await client.server.handle({**CALL, "params": params}))

                group.start_soon(call)
                await settled(entered.is_set)
                run = the_run(client)
                await client.server.aclose()
            assert not ended.is_set()
            error = {"code": -32603, "message": "MCP server 'blocking' is closed"}
            assert responses == [{"jsonrpc": "2.0", "id": 100, "error": error}]
            assert not run._task.done
        finally:
            go.set()
        await run._task.wait()

    backend.run(main)
    ours = [record.getMessage() for record in caplog.records if record.name == "claude_wire"]
    assert ours == ["the MCP server 'blocking' did not end in 0.2 s and keeps running"]


@every_backend
async def test_closing_gives_up_what_is_being_sent() -> None:
    server = MCPServer("notifier")
    sending = anyio.Event()

    @server.tool()
    async def work(ctx: Context) -> str:
        await ctx.report_progress(1, 2)
        return "done"

    async def send(message: Message) -> None:
        sending.set()
        await anyio.sleep_forever()

    client = Client(server)
    client.server.connect(send)
    await client.initialize()
    async with anyio.create_task_group() as group:
        params = {"name": "work", "arguments": {}, "_meta": {"progressToken": 1}}
        group.start_soon(client.ask, "tools/call", params)
        await sending.wait()
        run = the_run(client)
        await client.server.aclose()
        assert run._task.done


@every_backend
@pytest.mark.parametrize("where", ["beginning", "ending"])
async def test_closing_ends_a_lifespan_that_does_not(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integration, "GRACE_SECONDS", 0.2)

    steps: list[str] = []

    async def step(name: str) -> None:
        steps.append(name)
        if name == where:
            try:
                await anyio.sleep_forever()
            finally:
                steps.append("cancelled")

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[None]:
        await step("beginning")
        yield
        await step("ending")

    client = Client(low_level(lifespan=lifespan))
    client.server.connect(client.send)
    async with anyio.create_task_group() as group:
        group.start_soon(client.ask, "initialize", INITIALIZE)
        await settled(lambda: bool(steps))
        run = the_run(client)
        await client.server.aclose()
    await run._task.wait()
    assert steps[-2:] == [where, "cancelled"]


@every_backend
async def test_a_server_that_is_being_closed_sends_nothing() -> None:
    began, said = anyio.Event(), anyio.Event()

    async def run(source: Any, sink: Any, options: Any) -> None:
        async for _ in source:
            began.set()
        await sink.send(SessionMessage(parse({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})))
        said.set()

    server = low_level()
    server.run = run
    client = Client(server)
    client.server.connect(client.send)
    await client.tell("notifications/initialized")
    await began.wait()
    await client.server.aclose()
    assert said.is_set()
    assert client.sent == []


@every_backend
def test_closing_can_be_cancelled_and_the_server_ends_all_the_same(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        slow = Slow()
        client = Client(slow.server)
        client.server.connect(client.send)
        await client.initialize()
        async with anyio.create_task_group() as group:
            group.start_soon(client.server.handle, CALL)
            await slow.entered.wait()
            run = the_run(client)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await client.server.aclose()
        await run._task.wait()
        assert slow.cancelled.is_set()

    backend.run(main)
    assert [record.getMessage() for record in caplog.records if record.name == "claude_wire"] == []


@every_backend
async def test_a_call_may_be_withdrawn_while_the_server_is_closing() -> None:
    slow = Slow(stubborn=True)
    client = Client(slow.server)
    client.server.connect(client.send)
    await client.initialize()
    scope = anyio.CancelScope()
    ended: list[bool] = []

    async def call() -> None:
        with scope:
            await client.server.handle(CALL)
        ended.append(scope.cancelled_caught)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await slow.entered.wait()
        group.start_soon(client.server.aclose)
        await slow.cancelled.wait()
        scope.cancel()
        await settled(lambda: bool(ended))
        slow.go.set()
    assert ended == [True]


@every_backend
async def test_it_is_closed_before_it_was_used_and_connected_again_after() -> None:
    client = Client(calculator())
    await client.server.aclose()
    assert (await client.error("ping"))["message"] == "MCP server 'calc' is closed"
    for _ in range(2):
        client.server.connect(client.send)
        with pytest.raises(RuntimeError, match="already serves a session"):
            client.server.connect(client.send)
        await client.initialize()
        assert await client.result("ping") == {}
        await client.server.aclose()


@every_backend
def test_a_loop_that_ends_takes_the_server_along(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        client = Client(calculator())
        client.server.connect(client.send)
        await client.initialize()
        assert (await client.call("add", a=1, b=2))["content"][0]["text"] == "3"

    backend.run(main)
    assert [record.getMessage() for record in caplog.records if record.name == "claude_wire"] == []
