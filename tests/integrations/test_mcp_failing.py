"""When an in-process MCP server fails, its waiting callers get an error, and the next request restarts it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from async_backends import DEADLINE, Backend, every_asyncio, every_backend

pytest.importorskip("mcp")

from mcp.server import Server

from claude_wire.integrations import mcp_run as integration
from claude_wire.integrations.mcp_versions import CANCELS_BY_SCOPE
from mcp_servers import (
    CALL,
    INITIALIZE,
    Client,
    Mortal,
    Slow,
    calculator,
    connected,
    dying,
    low_level,
    settled,
    stopped,
    the_run,
)


@every_backend
def test_a_server_that_does_not_start_is_an_error_until_it_does(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        client = Client(dying(calculator(), lambda number: number < 2, anyio.sleep_forever))
        client.server.connect(client.send)
        expected = {"code": -32603, "message": "MCP server 'calc' has stopped: Dies"}
        for _ in range(2):
            assert await client.error("initialize", INITIALIZE) == expected
            assert await client.error("tools/list") == expected
            await client.tell("notifications/initialized")
        assert (await client.initialize())["serverInfo"]["name"] == "calc"
        assert await client.result("ping") == {}
        await client.server.aclose()

    backend.run(main)
    ours = [record for record in caplog.records if record.name == "claude_wire" and record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in ours] == ["the MCP server 'calc' raised Dies"] * 2


@every_backend
def test_a_server_that_dies_answers_what_it_owes_and_starts_again(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    """The CLI sends its MCP handshake only once, so each restart of the server must repeat the handshake."""

    async def main() -> None:
        mortal = Mortal()
        async with connected(mortal.server) as client:
            responses: list[Any] = []

            async def call() -> None:
                responses.append(await client.server.handle(CALL))

            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await mortal.slow.entered.wait()
                mortal.die.set()
            assert responses == [{"jsonrpc": "2.0", "id": 100, "error": stopped("slow", ": Dies")}]
            for _ in range(2):
                assert (await client.call("client"))["content"][0]["text"] == "2.1.331"
                assert (await client.call("quick"))["content"][0]["text"] == "quick"
                await mortal.kill(client)
            await client.initialize()
            assert (await client.call("quick"))["content"][0]["text"] == "quick"
            assert mortal.runs == [0, 1, 2, 3]
            assert client.sent == []

    backend.run(main)
    ours = [record for record in caplog.records if record.name == "claude_wire" and record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in ours] == ["the MCP server 'slow' raised Dies"] * 3


@every_backend
async def test_a_server_that_dies_again_at_once_has_one_run_for_each_request() -> None:
    mortal = Mortal(1, 2)
    async with connected(mortal.server) as client:
        await mortal.kill(client)
        await client.tell("notifications/cancelled", {"requestId": 5})
        assert mortal.runs == [0]
        for number in (1, 2):
            assert await client.error("tools/list") == stopped("slow", ": Dies")
            assert mortal.runs[-1] == number
        assert (await client.call("quick"))["content"][0]["text"] == "quick"
        assert mortal.runs == [0, 1, 2, 3]


@every_backend
async def test_requests_that_meet_a_dead_server_together_share_the_new_run() -> None:
    mortal = Mortal()
    async with connected(mortal.server) as client:
        await mortal.kill(client)
        texts: list[str] = []

        async def call() -> None:
            texts.append((await client.call("quick"))["content"][0]["text"])

        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as scope:  # this must not cancel the repeated handshake
                scope.cancel()
                await client.call("quick")
            for _ in range(3):
                group.start_soon(call)
        assert texts == ["quick"] * 3
        assert mortal.runs == [0, 1]


@every_backend
@pytest.mark.parametrize("told_first", [True, False], ids=["told", "asked"])
async def test_a_server_that_dies_within_the_handshake_gets_the_whole_of_it(
    told_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integration, "GRACE_SECONDS", 2 * DEADLINE)

    mortal = Mortal()
    client = Client(mortal.server)
    client.server.connect(client.send)
    await client.result("initialize", INITIALIZE)
    await mortal.kill(client)
    texts: list[str] = []

    async def call() -> None:
        texts.append((await client.call("client"))["content"][0]["text"])

    async with anyio.create_task_group() as group:
        if told_first:
            await client.tell("notifications/initialized")
        group.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        if not told_first:
            assert texts == []
            await client.tell("notifications/initialized")
    assert texts == ["2.1.331"]
    await mortal.kill(client)
    assert (await client.call("client"))["content"][0]["text"] == "2.1.331"
    await client.server.aclose()


@every_backend
async def test_a_new_run_waits_until_the_lifespan_of_the_one_before_has_ended() -> None:
    steps: list[str] = []
    ending, go = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[None]:
        steps.append("begun")
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                ending.set()
                await go.wait()
            steps.append("ended")

    mortal = Mortal()
    mortal.server.lifespan = lifespan
    async with connected(mortal.server) as client:
        mortal.die.set()
        await ending.wait()
        run = the_run(client)
        await settled(lambda: run.over)
        async with anyio.create_task_group() as group:
            group.start_soon(client.call, "quick")
            await anyio.wait_all_tasks_blocked()
            assert steps == ["begun"]
            go.set()
        assert steps == ["begun", "ended", "begun"]


def cancelled_future() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    return future


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio cannot tell whose cancellation it is")
@every_asyncio
def test_a_tool_that_waits_for_what_was_cancelled_costs_its_call_at_most_the_run(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        slow = Slow()

        @slow.server.tool()
        async def gone() -> str:
            await cancelled_future()
            return ""

        async with connected(slow.server) as client, anyio.create_task_group() as group:
            group.start_soon(client.server.handle, CALL)
            await slow.entered.wait()
            error = await client.error("tools/call", {"name": "gone", "arguments": {}})
            if CANCELS_BY_SCOPE:
                assert error == {"code": -32603, "message": "a task that the handler awaits was cancelled"}
                assert not slow.cancelled.is_set()
            else:
                assert error == {"code": -32000, "message": "Connection closed"}
            assert (await client.call("quick"))["content"][0]["text"] == "quick"
            group.cancel_scope.cancel()

    backend.run(main)
    ours = [record for record in caplog.records if record.name == "claude_wire" and record.levelno >= logging.WARNING]
    expected = [] if CANCELS_BY_SCOPE else ["the MCP server 'slow' ended by itself"]
    assert [record.getMessage() for record in ours] == expected


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio cannot tell whose cancellation it is")
@every_asyncio
def test_a_lifespan_that_waits_for_what_was_cancelled_has_failed(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        @asynccontextmanager
        async def lifespan(server: Any) -> AsyncIterator[None]:
            await cancelled_future()
            yield

        client = Client(low_level(lifespan=lifespan))
        client.server.connect(client.send)
        assert await client.error("initialize", INITIALIZE) == stopped("low", ": CancelledError")
        await client.server.aclose()

    backend.run(main)
    ours = [record.getMessage() for record in caplog.records if record.name == "claude_wire"]
    assert ours == ["the MCP server 'low' ended, because a task that it awaits was cancelled"]


@every_backend
def test_a_server_whose_run_returns_has_stopped(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        class Returns(Server[Any]):
            async def run(self, *args: Any, **kwargs: Any) -> None:
                return None

        client = Client(Returns("returns", version="1"))
        client.server.connect(client.send)
        expected = {"code": -32603, "message": "MCP server 'returns' has stopped"}
        assert await client.error("initialize", INITIALIZE) == expected
        await client.server.aclose()

    backend.run(main)
    ours = [record.getMessage() for record in caplog.records if record.name == "claude_wire"]
    assert ours == ["the MCP server 'returns' ended by itself"]
