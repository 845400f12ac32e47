"""In-process servers of the package mcp, driven by messages of the CLI: requests, withdrawals, failures and closing."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from async_backends import DEADLINE, Backend, every_asyncio, every_backend

pytest.importorskip("mcp")

import anyio.to_thread
import mcp.types
from mcp.server import Server
from mcp.shared.message import SessionMessage

import recordings
from children import ASKS
from claude_wire import open_session
from claude_wire.integrations import mcp_run as integration
from claude_wire.integrations.mcp import InProcessMcpServer
from claude_wire.integrations.mcp_versions import CANCELS_BY_SCOPE, dump, parse
from claude_wire.testing import Recording, Replay
from mcp_servers import (
    CALL,
    INITIALIZE,
    QUICK,
    Client,
    Context,
    MCPServer,
    Message,
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
from session_peer import Peer, allow, opened
from supervisor_peer import SupervisorPeer


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


# --- Messages that an in-process MCP server sends unprompted: notifications, and requests to its client ---------------


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@every_backend
async def test_notifications_are_sent_before_the_result_and_in_order() -> None:
    server = MCPServer("notifier")

    @server.tool()
    async def work(ctx: Context) -> str:
        await ctx.report_progress(1, 2)
        await ctx.session.send_log_message(level="info", data="half")
        await ctx.session.send_tool_list_changed()
        await ctx.report_progress(2, 2)
        return "done"

    async with connected(server) as client:
        await client.call("work")
        assert [message["method"] for message in client.sent] == [
            "notifications/progress",
            "notifications/message",
            "notifications/tools/list_changed",
            "notifications/progress",
        ]
        assert all(message["jsonrpc"] == "2.0" and "id" not in message for message in client.sent)
        assert client.sent[0]["params"] == {"progressToken": 7, "progress": 1.0, "total": 2.0}
        assert client.sent[1]["params"] == {"level": "info", "data": "half"}


def asking(answers: list[Any]) -> Any:
    """Return a server whose tool sends an elicitation request to the client."""
    server = MCPServer("asking")

    @server.tool()
    async def who(ctx: Context) -> str:
        try:
            answers.append(await ctx.session.elicit_form("Who?", {"type": "object", "properties": {}}))
        except Exception as error:
            answers.append(str(error))
        return "asked"

    return server


@every_backend
async def test_a_request_of_the_server_is_sent_and_its_answer_comes_back() -> None:
    """The server may send any request, whatever the client has declared. The client refuses unsupported ones."""
    answers: list[Any] = []
    async with connected(asking(answers)) as client, anyio.create_task_group() as group:
        group.start_soon(client.call, "who")
        request = await client.until_sent("elicitation/create")
        assert request["params"]["message"] == "Who?"
        result = {"action": "accept", "content": {"name": "Bob"}}
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        assert await client.server.handle(answer) is None
        await settled(lambda: bool(answers))
        assert (answers[0].action, answers[0].content) == ("accept", {"name": "Bob"})

        client.sent.clear()
        group.start_soon(client.call, "who")
        request = await client.until_sent("elicitation/create")
        error = {"code": -32601, "message": "Method not found"}
        assert await client.server.handle({"jsonrpc": "2.0", "id": request["id"], "error": error}) is None
        await settled(lambda: len(answers) == 2)
        assert answers[1] == "Method not found"


@every_backend
async def test_a_ping_of_the_server_is_answered() -> None:
    server = MCPServer("pinging")

    @server.tool()
    async def ping(ctx: Context) -> str:
        await ctx.session.send_ping()
        return "answered"

    async with connected(server) as client:
        assert (await client.call("ping"))["content"][0]["text"] == "answered"
        assert client.sent == []


@every_backend
def test_a_failing_send_costs_the_message_and_not_the_server(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        answers: list[Any] = []
        client = Client(asking(answers))

        async def send(message: Message) -> None:
            raise ConnectionError("secret")

        client.server.connect(send)
        await client.initialize()
        assert (await client.call("who"))["content"][0]["text"] == "asked"
        assert answers == ["not sent to the client: ConnectionError"]
        await client.server.aclose()

    backend.run(main)
    ours = [record.getMessage() for record in caplog.records if record.name == "claude_wire"]
    assert ours == ["a message of the MCP server 'asking' was not sent: ConnectionError"]


@every_backend
async def test_lone_surrogates_pass_in_both_directions() -> None:
    server = MCPServer("odd")

    @server.tool()
    def cut() -> Any:
        return mcp.types.TextContent(type="text", text="cut \ud83d")

    async with connected(server) as client:
        assert (await client.call("cut", unused="\ud83d"))["content"][0]["text"] == "cut \ud83d"


# --- Cancelling a call to an in-process MCP server cancels the tool, and the server keeps running ---------------------


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


# --- A server of the package mcp in a session that attaches to an already running CLI ---------------------------------


HANDSHAKE: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
ADD = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}


@every_backend
@pytest.mark.parametrize("when", ["open", "later"])
async def test_a_server_that_has_not_seen_the_handshake_is_called_all_the_same(when: str) -> None:
    host = SupervisorPeer()
    host.handshakes = {"calc": HANDSHAKE}
    call = Peer.request("call", "mcp_message", server_name="calc", message=ADD)
    if when == "open":
        host.say(call)
    wire, session = host.connect(mcp_servers={"calc": InProcessMcpServer(calculator())})
    async with session:
        if when == "later":
            host.say(call)
        answer = (await wire.answer_to("call"))["response"]["mcp_response"]
        assert answer["id"] == 7
        assert answer["result"]["content"][0]["text"] == "3"
        assert [line["type"] for line in wire.received] == ["control_response"]


# --- When an in-process MCP server fails, its waiting callers get an error, and the next request restarts it ----------


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


# --- Closing an in-process MCP server cancels its running calls, and it sends nothing afterwards ----------------------


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
