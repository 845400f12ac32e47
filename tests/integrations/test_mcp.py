"""In-process servers of the package mcp: every feature that they offer is reachable by messages of the CLI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from async_backends import DEADLINE, Backend, every_backend

pytest.importorskip("mcp")

import mcp.types
from mcp.server import Server

import recordings
from children import ASKS
from claude_wire import open_session
from claude_wire.integrations import mcp_run as integration
from claude_wire.integrations.mcp import InProcessMcpServer
from claude_wire.testing import Recording, Replay
from mcp_servers import INITIALIZE, Client, MCPServer, Message, calculator, connected, low_level, settled
from session_peer import allow


@every_backend
async def test_all_that_a_server_offers_is_reached() -> None:
    client = Client(calculator())
    client.server.connect(client.send)
    hello = await client.initialize()
    assert hello["serverInfo"]["name"] == "calc"
    assert hello["instructions"] == "It adds."
    assert await client.result("ping") == {}

    tools = (await client.result("tools/list"))["tools"]
    assert [tool["name"] for tool in tools] == ["add", "structured", "bad"]
    assert tools[0]["inputSchema"]["required"] == ["a", "b"]
    assert (await client.call("add", a=1, b=2))["content"] == [{"type": "text", "text": "3"}]
    structured = await client.call("structured")
    assert structured["structuredContent"] == {"sum": 3, "none": None, "list": [1, None]}
    failed = await client.call("bad")
    assert failed["isError"] is True
    assert [block["type"] for block in failed["content"]] == ["text"]

    resources = (await client.result("resources/list"))["resources"]
    assert [(resource["uri"], resource["name"]) for resource in resources] == [("calc://pi", "pi")]
    assert (await client.result("resources/read", {"uri": "calc://pi"}))["contents"][0]["text"] == "3.14"
    prompts = (await client.result("prompts/list"))["prompts"]
    assert [prompt["name"] for prompt in prompts] == ["ask"]
    prompt = await client.result("prompts/get", {"name": "ask", "arguments": {"what": "1+1"}})
    assert prompt["messages"][0]["content"]["text"] == "How much is 1+1?"
    await client.server.aclose()
    assert client.sent == []


@every_backend
async def test_a_low_level_server_is_taken_as_it_is() -> None:
    server = low_level()
    async with connected(server) as client:
        assert client.server.name == "low"
        assert repr(client.server) == "<InProcessMcpServer 'low'>"
        assert (await client.initialize())["serverInfo"] == {"name": "low", "version": "1"}


@pytest.mark.parametrize("server", [None, object(), Server, "calc"], ids=["None", "object", "class", "name"])
def test_what_is_no_server_is_refused(server: Any) -> None:
    with pytest.raises(TypeError, match="must be a server of the package mcp"):
        InProcessMcpServer(server)


@every_backend
async def test_messages_that_are_no_json_rpc_get_an_error() -> None:
    malformed: list[Any] = [
        {},
        [],
        None,
        "text",
        {"jsonrpc": "2.0"},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "error": "text"},
        {"jsonrpc": "2.0", "method": None},
    ]

    async with connected(calculator()) as client:
        for message in malformed:
            response = await client.server.handle(message)
            found = message.get("id") if isinstance(message, dict) else None
            expected = found if type(found) is int else None
            error = {"code": -32600, "message": "Invalid Request"}
            assert response == {"jsonrpc": "2.0", "id": expected, "error": error}, message
        assert await client.result("ping") == {}


@every_backend
async def test_what_the_server_does_not_know_gets_its_error() -> None:
    async with connected(calculator()) as client:
        assert (await client.error("no/such/method"))["code"] in (-32601, -32602)
        assert (await client.error("prompts/get", {"name": 5}))["code"] == -32602
        await client.tell("notifications/no_such")
        assert await client.server.handle({"jsonrpc": "2.0", "id": 99, "result": {}}) is None
        assert await client.server.handle({"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": ""}}) is None
        assert await client.result("ping") == {}


@every_backend
async def test_an_id_under_way_is_not_taken_twice() -> None:
    server = MCPServer("twice")
    entered, go = anyio.Event(), anyio.Event()

    @server.tool()
    async def wait() -> str:
        entered.set()
        await go.wait()
        return "first"

    message = {"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
    async with connected(server) as client, anyio.create_task_group() as group:
        responses: list[Any] = []

        async def first() -> None:
            responses.append(await client.server.handle(dict(message)))

        group.start_soon(first)
        await entered.wait()
        second = await client.server.handle(dict(message))
        assert second is not None
        assert (second["id"], second["error"]["code"]) == ("x", -32600)
        go.set()
        await settled(lambda: bool(responses))
        assert responses[0]["result"]["content"][0]["text"] == "first"
        again = await client.server.handle(dict(message))
        assert again is not None
        assert "result" in again


@every_backend
async def test_calls_run_side_by_side() -> None:
    server = MCPServer("parallel")
    running: list[int] = []
    both = anyio.Event()

    @server.tool()
    async def meet(number: int) -> str:
        running.append(number)
        if len(running) == 2:
            both.set()
        await both.wait()
        return str(number)

    async with connected(server) as client:
        results: dict[int, Any] = {}

        async def call(number: int) -> None:
            results[number] = (await client.call("meet", number=number))["content"][0]["text"]

        async with anyio.create_task_group() as group:
            group.start_soon(call, 1)
            group.start_soon(call, 2)
        assert results == {1: "1", 2: "2"}


@every_backend
async def test_requests_right_behind_the_handshake_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CLI sends requests with the handshake, and the session handles each in a new task. A ping never waits."""
    monkeypatch.setattr(integration, "GRACE_SECONDS", 2 * DEADLINE)

    client = Client(calculator())
    client.server.connect(client.send)
    await client.result("initialize", INITIALIZE)
    tools: list[Message] = []

    async def list_tools() -> None:
        tools.append(await client.result("tools/list"))

    async with anyio.create_task_group() as group:
        group.start_soon(list_tools)
        await anyio.wait_all_tasks_blocked()
        assert tools == []
        assert await client.result("ping") == {}
        await client.tell("notifications/initialized")
    assert len(tools[0]["tools"]) == 3
    await client.server.aclose()


@every_backend
async def test_initialize_may_be_repeated() -> None:
    async with connected(calculator()) as client:
        for _ in range(3):
            assert (await client.initialize())["serverInfo"]["name"] == "calc"
            assert (await client.call("add", a=1, b=2))["content"][0]["text"] == "3"


# --- within a session -------------------------------------------------------------------------------------------------


@every_backend
def test_a_session_answers_a_recorded_cli_by_its_server_as_the_recorded_host_did(
    backend: Backend, tmp_path: Path
) -> None:
    recorded = recordings.load("07_mcp_viainit")
    asked = [line["request"]["message"] for line in map(json.loads, recorded.stdout.splitlines()) if is_for_mcp(line)]
    expected = [response for line in recorded.stdin.splitlines() if (response := mcp_response(line)) is not None]
    assert [message["method"] for message in asked] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "tools/call",
    ]
    sum_result, boom_result = (mcp.types.CallToolResult.model_validate(answer["result"]) for answer in expected[3:])

    server = MCPServer("calc")

    @server.tool(description="Add")
    def add(a: float, b: float) -> mcp.types.CallToolResult:
        assert (a, b) == (1.5, 2)
        return sum_result

    @server.tool(description="Fails")
    def boom() -> mcp.types.CallToolResult:
        return boom_result

    answers: list[Message] = []

    def sent(data: bytes) -> None:
        answers.extend(answer for line in data.splitlines() if (answer := mcp_response(line)) is not None)

    async def main() -> None:
        stand_in = Replay(Recording.from_files(recorded.files)).script(tmp_path / "stand-in")
        servers = {"calc": InProcessMcpServer(server)}
        async with open_session([stand_in, *ASKS], mcp_servers=servers, can_use_tool=allow, on_sent=sent) as session:
            assert (await session.ask("add")).result == "sum done"

    backend.run(main)
    assert [answer.get("id") for answer in answers] == [answer.get("id") for answer in expected]
    hello, acknowledged, tools, *called = answers
    version = min(expected[0]["result"]["protocolVersion"], mcp.types.LATEST_PROTOCOL_VERSION)
    assert hello["result"]["protocolVersion"] == version
    assert hello["result"]["serverInfo"]["name"] == "calc"
    assert "tools" in hello["result"]["capabilities"]
    assert acknowledged == expected[1]
    for ours, theirs in zip(tools["result"]["tools"], expected[2]["result"]["tools"], strict=True):
        assert (ours["name"], ours["description"]) == (theirs["name"], theirs["description"])
        assert ours["inputSchema"].get("required") == theirs["inputSchema"].get("required")
    assert [answer["result"]["content"] for answer in called] == [
        answer["result"]["content"] for answer in expected[3:]
    ]
    assert called[0]["result"]["structuredContent"] == {"sum": 3.5}
    assert [answer["result"].get("isError", False) for answer in called] == [False, True]


def is_for_mcp(line: Message) -> bool:
    return line["type"] == "control_request" and bool(line["request"]["subtype"] == "mcp_message")


def mcp_response(line: bytes) -> Message | None:
    """Return the MCP response inside a line that the host wrote, or None if the line holds no MCP response."""
    message = json.loads(line)
    response: Message | None = message.get("response", {}).get("response", {}).get("mcp_response")
    return response
