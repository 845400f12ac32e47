"""Cancelling a call to an in-process MCP server cancels the tool, and the server keeps running."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from async_backends import every_backend

pytest.importorskip("mcp")


from claude_wire.integrations.mcp import InProcessMcpServer
from claude_wire.integrations.mcp_versions import dump
from mcp_servers import (
    CALL,
    INITIALIZE,
    QUICK,
    Client,
    MCPServer,
    Message,
    Slow,
    connected,
    low_level,
    settled,
    the_run,
)
from session_peer import Peer, opened


@every_backend
@pytest.mark.parametrize("stubborn", [False, True], ids=["heeding", "stubborn"])
async def test_cancelling_handle_cancels_the_tool_and_frees_its_id(stubborn: bool) -> None:
    slow = Slow(stubborn)
    async with connected(slow.server) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.server.handle, CALL)
            await slow.entered.wait()
            group.cancel_scope.cancel()
        await slow.cancelled.wait()
        if stubborn:  # the tool still runs, so a new call with the same id is refused and cannot receive its answer
            refused = await client.server.handle(QUICK)
            assert refused is not None
            assert refused["error"]["code"] == -32600
            assert (await client.call("quick"))["content"][0]["text"] == "quick"
            slow.go.set()
        run = the_run(client)
        await settled(lambda: not run._calls)
        response = await client.server.handle(QUICK)
        assert response is not None
        assert response["result"]["content"][0]["text"] == "quick"


@every_backend
async def test_the_clients_own_cancellation_cancels_the_tool_and_answers_the_call() -> None:
    slow = Slow()
    async with connected(slow.server) as client:
        responses: list[Any] = []

        async def call() -> None:
            responses.append(await client.server.handle(CALL))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await slow.entered.wait()
            await client.tell("notifications/cancelled", {"requestId": 100, "reason": "interrupted"})
        assert slow.cancelled.is_set()
        error = {"code": -32800, "message": "Request cancelled"}
        assert responses == [{"jsonrpc": "2.0", "id": 100, "error": error}]
        odd: list[Message | None] = [{"requestId": 5}, {"requestId": None}, {}, None]
        for params in odd:
            await client.tell("notifications/cancelled", params)
        assert (await client.call("quick"))["content"][0]["text"] == "quick"


@every_backend
async def test_a_cancellation_right_behind_its_call_does_not_overtake_it() -> None:
    def rpc(name: str, method: str, **fields: Any) -> Message:
        message = {"jsonrpc": "2.0", "method": method, **fields}
        return Peer.request(name, "mcp_message", server_name="slow", message=message)

    server = MCPServer("slow")

    @server.tool()
    async def forever() -> None:
        await anyio.sleep_forever()

    async with opened(mcp_servers={"slow": InProcessMcpServer(server)}) as (peer, _):
        peer.say(rpc("i", "initialize", id=0, params=INITIALIZE), rpc("n", "notifications/initialized"))
        await peer.answer_to("i")
        await peer.answer_to("n")
        for number in range(1, 10):
            call = rpc(f"c{number}", "tools/call", id=number, params={"name": "forever", "arguments": {}})
            peer.say(call, rpc(f"x{number}", "notifications/cancelled", params={"requestId": number}))
            answer = await peer.answer_to(f"c{number}")
            assert "cancelled" in answer["response"]["mcp_response"]["error"]["message"]


@every_backend
async def test_a_call_withdrawn_before_it_began_leaves_nothing() -> None:
    slow = Slow()
    async with connected(slow.server) as client:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await client.server.handle(CALL)
        assert scope.cancelled_caught
        run = the_run(client)
        await settled(lambda: not run._calls)
        response = await client.server.handle(QUICK)
        assert response is not None
        assert "result" in response


@every_backend
async def test_initialize_is_withdrawn_and_not_cancelled() -> None:
    """The MCP specification forbids a client to cancel its initialize request."""
    read: list[str] = []
    server = low_level()

    async def run(source: Any, *args: Any) -> None:
        async for item in source:
            read.append(dump(item)["method"])

    server.run = run
    client = Client(server)
    client.server.connect(client.send)
    async with anyio.create_task_group() as group:
        group.start_soon(client.ask, "initialize", INITIALIZE)
        await settled(lambda: read == ["initialize"])
        group.cancel_scope.cancel()
    async with anyio.create_task_group() as group:
        group.start_soon(client.ask, "ping")
        await settled(lambda: "ping" in read)
        group.cancel_scope.cancel()
    assert read == ["initialize", "ping"]
    await client.server.aclose()
