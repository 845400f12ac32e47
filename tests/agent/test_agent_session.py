"""A Session of claude_wire and an agent of claude_wire understand each other, on every loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from agent_host import hosted, prompt
from async_backends import ASYNCIO, every_backend
from claude_wire import (
    PROTOCOL_VERSION,
    AssistantMessage,
    ClaudeOptions,
    HookMatcher,
    RequestRefusedError,
    ResultMessage,
    UserMessage,
    decode,
    messages,
)
from claude_wire.agent import Agent, AgentOptions, AgentProtocol, AgentSession, Finished, Turn, TurnStarted
from claude_wire.errors import PromptAnsweredError, TurnCancelledError
from claude_wire.messages import (
    ContentBlock,
    ControlRequest,
    GetUsageRequest,
    InterruptRequest,
    McpSetServersRequest,
    McpStatusRequest,
    McpStdioServerConfig,
    SetMcpPermissionModeOverrideRequest,
)
from claude_wire.messages.control.envelopes import ControlRequestPayload
from claude_wire.messages.control.request_body import ControlRequestBody
from claude_wire.testing import open_agent
from examples import full, is_struct, minimal

ASKING = ClaudeOptions(permission_prompt_tool="stdio", include_partial_messages=True)


@every_backend
async def test_a_session_talks_with_an_agent() -> None:
    seen: list[str] = []

    async def answer(turn: Turn) -> str | None:
        if turn.text == "sleep":
            await anyio.sleep(1000)
        outcome = await turn.run_tool("Bash", {"command": "ls"}, lambda given: f"ran {given['command']}")
        await turn.say(str(outcome.content))
        return None

    async def guard(request: Any) -> Any:
        seen.append(request.input.tool_name)

    def decide(request: Any) -> Any:
        return request.allow({"command": "ls -l"})

    hooks = {"PreToolUse": [HookMatcher(guard)]}
    async with open_agent(answer, ASKING, can_use_tool=decide, hooks=hooks) as session:
        assert session.info is not None
        assert session.info.claude_code_version == PROTOCOL_VERSION
        result = await session.ask("go")
        assert result.result == "ran ls -l"
        assert seen == ["Bash"]
        await session.set_model("other")
        await session.set_permission_mode("bypassPermissions")
        assert (await session.request(McpStatusRequest())).mcpServers == []
        result = await session.ask("again")
        assert result.result == "ran ls"
        await session.query("sleep")
        await session.query("last")
        results: list[ResultMessage] = []
        async for message in session.receive_run():
            if isinstance(message, messages.InitMessage) and not results:
                await session.request(InterruptRequest())
            elif isinstance(message, ResultMessage):
                results.append(message)
        assert [one.ok for one in results] == [False, True]
        assert isinstance(results[0].to_error(), TurnCancelledError)


INFO = {"name": "calc", "version": "1"}


class Calculator:
    """An MCP server with one tool. It counts the requests that it receives."""

    def __init__(self) -> None:
        self.open = False

    def connect(self, send: Any) -> None:
        assert not self.open
        self.open = True

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        if "id" not in message:
            return None
        results: dict[str, Any] = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO},
            "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "3"}]},
        }
        return {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}

    async def aclose(self) -> None:
        self.open = False


async def _add(turn: Turn) -> str:
    outcome = await turn.run_tool("mcp__calc__add")
    return str(outcome.content)


@every_backend
async def test_mcp_servers_come_and_go_in_mid_session() -> None:
    first, calc = Calculator(), Calculator()
    options = ClaudeOptions(permission_mode="bypassPermissions")
    async with open_agent(_add, options, mcp_servers={"first": first}) as session:
        stdio = McpStdioServerConfig(command="no-such-program")
        answer = await session.set_mcp_servers({"calc": calc, "other": stdio})
        assert (answer.added, answer.removed, list(answer.errors)) == (["calc"], ["first"], ["other"])
        while first.open:
            await anyio.sleep(0)
        assert "3" in str((await session.ask("go")).result)
        assert (await session.set_mcp_servers({"calc": calc})).added == []
        with pytest.raises(ValueError, match="already names another server"):
            await session.set_mcp_servers({"calc": Calculator()})
        with pytest.raises(TypeError, match="must be an McpServer"):
            await session.set_mcp_servers({"calc": Calculator})  # type: ignore[dict-item]
        assert calc.open
    assert not calc.open


class Gated(Calculator):
    """An MCP server that holds back its answers to one method until the test opens a gate."""

    def __init__(self, method: str = "") -> None:
        super().__init__()
        self.methods: list[str] = []
        self.asked, self.go = anyio.Event(), anyio.Event()
        self._method = method

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        self.methods.append(message["method"])
        if message["method"] == self._method:
            self.asked.set()
            await self.go.wait()
        return await super().handle(message)


HANDSHAKE = ["initialize", "notifications/initialized", "tools/list"]


async def all_connected(session: Any, names: list[str]) -> None:
    """Wait until the agent is connected to exactly these servers."""
    found: list[tuple[str, str]] = []
    while found != [(name, "connected") for name in names]:
        await anyio.lowlevel.checkpoint()
        found = sorted((one.name, one.status) for one in (await session.request(McpStatusRequest())).mcpServers)


@every_backend
@pytest.mark.parametrize("method", ["initialize", "tools/list"])
async def test_a_server_that_replaces_another_one_gets_its_own_handshake_only(method: str) -> None:
    old, new = Gated(method), Gated("initialize")
    async with open_agent(_add) as session:
        await session.set_mcp_servers({"a": old})
        await old.asked.wait()
        await session.set_mcp_servers({})
        await session.set_mcp_servers({"a": new})
        await new.asked.wait()
        old.go.set()
        await anyio.wait_all_tasks_blocked()
        assert new.methods == ["initialize"]
        new.go.set()
        await all_connected(session, ["a"])
    assert new.methods == HANDSHAKE


@every_backend
async def test_a_server_that_is_added_during_the_first_handshakes_stops_none_of_them() -> None:
    servers = {"a": Gated("tools/list"), "c": Gated()}
    added = Gated()
    async with open_agent(_add, mcp_servers=servers) as session:
        await servers["a"].asked.wait()
        await session.set_mcp_servers({**servers, "b": added})
        servers["a"].go.set()
        await all_connected(session, ["a", "b", "c"])
    assert [one.methods for one in (*servers.values(), added)] == [HANDSHAKE] * 3


@every_backend
async def test_mcp_servers_that_an_agent_refuses_are_closed() -> None:
    def refuse(request: McpSetServersRequest) -> None:
        raise ValueError("not today")

    first, calc = Calculator(), Calculator()
    agent = Agent(_add, requests={McpSetServersRequest: refuse})
    async with open_agent(agent, mcp_servers={"first": first}) as session:
        with pytest.raises(RequestRefusedError, match="not today"):
            await session.set_mcp_servers({"calc": calc})
        while calc.open:
            await anyio.sleep(0)
        assert first.open
    assert not first.open


async def test_the_tools_of_an_mcp_server_are_asked_for_where_the_host_says_so() -> None:
    asked: list[str] = []

    def decide(request: Any) -> Any:
        asked.append(request.tool_name)
        return request.allow()

    options = ClaudeOptions(permission_mode="bypassPermissions")
    async with open_agent(_add, options, can_use_tool=decide, mcp_servers={"calc": Calculator()}) as session:
        for mode, expected in ((None, 0), ("default", 1), ("auto", 2), (None, 2)):
            assert await session.request(SetMcpPermissionModeOverrideRequest(serverName="calc", mode=mode)) == {}
            await session.ask("go")
            assert asked == ["mcp__calc__add"] * expected
        with pytest.raises(RequestRefusedError, match="default, auto or null"):
            await session.request(SetMcpPermissionModeOverrideRequest(serverName="calc", mode="plan"))
        other = SetMcpPermissionModeOverrideRequest(serverName="clac", mode="default")
        assert "clac" in (await session.request(other))["warning"]
        for number in range(127):
            await session.request(SetMcpPermissionModeOverrideRequest(serverName=f"s{number}", mode="default"))
        with pytest.raises(RequestRefusedError, match="too many"):
            await session.request(SetMcpPermissionModeOverrideRequest(serverName="more", mode="default"))


async def test_a_server_with_two_underscores_in_its_name_has_tools_and_overrides() -> None:
    async def use(turn: Turn) -> str:
        return str((await turn.run_tool("mcp__a__b__add")).content)

    asked: list[str] = []

    def decide(request: Any) -> Any:
        asked.append(request.tool_name)
        return request.allow()

    options = ClaudeOptions(permission_mode="bypassPermissions")
    servers = {"a": Calculator(), "a__b": Calculator()}
    async with open_agent(use, options, can_use_tool=decide, mcp_servers=servers) as session:
        assert "3" in str((await session.ask("go")).result)
        assert asked == []
        await session.request(SetMcpPermissionModeOverrideRequest(serverName="a__b", mode="default"))
        assert "3" in str((await session.ask("go")).result)
        assert asked == ["mcp__a__b__add"]


@pytest.mark.parametrize(
    ("server", "name", "expected"),
    [
        ("a__b", "mcp__a__b__t", None),
        ("a__b", "mcp__a__c__t", True),
        ("calc", "mcp__calc__t", None),
        ("calc", "mcp__calculator__t", True),
        ("calc", "calc__t", True),
        ("Bash", "Bash", True),
        ("Bash", "mcp__Bash__t", None),
    ],
)
def test_an_override_is_for_the_tools_of_its_server_alone(server: str, name: str, expected: bool | None) -> None:
    session = AgentSession(AgentOptions(permission_mode="bypassPermissions"), "m")
    assert session.set_mcp_mode(server, "default")
    assert session.may_use(name) is expected


@pytest.mark.parametrize(
    ("rule", "name", "applies"),
    [
        ("mcp__a__b", "mcp__a__b__t", True),
        ("mcp__calc", "mcp__calc__t", True),
        ("mcp__calc", "mcp__calculator__t", False),
        ("mcp__calc__t", "mcp__calc__t", True),
        ("mcp__calc__t", "mcp__calc__tt", False),
        ("deploy__test", "deploy__test__live", False),
        ("Bash", "Bash", True),
    ],
)
def test_a_rule_is_for_a_tool_or_for_all_tools_of_a_server(rule: str, name: str, applies: bool) -> None:
    allowed = AgentSession(AgentOptions(allowed_tools=(rule,)), "m")
    assert allowed.may_use(name) is (True if applies else None)
    refused = AgentSession(AgentOptions(disallowed_tools=(rule,), permission_mode="bypassPermissions"), "m")
    assert refused.may_use(name) is not applies


async def test_an_agent_says_what_its_session_has_used() -> None:
    async def answer(turn: Turn) -> str:
        turn.usage(input_tokens=5, output_tokens=7, cost_usd=0.25, model="small")
        return "done"

    async with open_agent(answer) as session:
        await session.ask("go")
        await session.ask("go")
        usage = (await session.request(GetUsageRequest(skip_behaviors=True))).session
        assert usage is not None
        assert usage.total_cost_usd == 0.5
        assert usage.model_usage["small"].outputTokens == 14


@every_backend
async def test_a_session_asks_many_prompts_at_once() -> None:
    async def answer(turn: Turn) -> str:
        await anyio.sleep(0)
        return turn.text

    async with open_agent(answer, ASKING) as session:
        for number in range(20):
            await session.query(UserMessage.of(str(number), uuid=f"u{number}"))
        texts: list[str] = []
        async for message in session.receive_run():
            if isinstance(message, ResultMessage):
                texts += (message.result or "").split("\n")
        assert texts == [str(number) for number in range(20)]


@every_backend
async def test_a_prompt_from_before_a_resume_begins_no_turn() -> None:
    @asynccontextmanager
    async def lifespan(session: AgentSession) -> AsyncIterator[None]:
        session.answered.add("old")
        yield

    async def answer(turn: Turn) -> str:
        return turn.text

    async with open_agent(Agent(answer, lifespan=lifespan), ASKING) as session:
        with pytest.raises(PromptAnsweredError):
            await session.ask(UserMessage.of("again", uuid="old"))
        assert (await session.ask("new")).result == "new"


# --- every block and every request has a row

BLOCKS = list(msgspec.inspect.type_info(ContentBlock).types)
REQUESTS = [info.cls for info in msgspec.inspect.type_info(ControlRequestPayload).types]


@pytest.mark.parametrize("cls", [info.cls for info in BLOCKS], ids=lambda cls: cls.__name__)
async def test_every_block_that_an_agent_says_is_read_as_it_was(cls: type) -> None:
    blocks = [msgspec.convert(make(cls), ContentBlock) for make in (minimal, full)]

    async def answer(turn: Turn) -> None:
        for block in blocks:
            await turn.block(block)
        use = await turn.use_tool("T", {})
        await turn.tool_result(use, blocks)

    async with open_agent(answer, ClaudeOptions(include_partial_messages=True)) as session:
        await session.query("go")
        said: list[Any] = []
        results: list[Any] = []
        async for message in session.receive_run():
            if isinstance(message, AssistantMessage):
                said += message.content
            elif isinstance(message, UserMessage):
                results += message.tool_results[0].content or []
    assert said[:-1] == blocks
    assert results == blocks


@pytest.mark.parametrize("cls", REQUESTS, ids=lambda cls: cls.__name__)
def test_every_request_of_a_host_has_one_answer(cls: type[ControlRequestBody[Any]]) -> None:
    """An agent answers every request of a host once, if only with the error that it does not support the request."""
    assert is_struct(cls)
    body = full(cls)

    async def answer(turn: Turn) -> None:
        await turn.say("x")

    async def main() -> list[dict[str, Any]]:
        async with hosted(Agent(answer)) as host:
            await host.tell({"type": "control_request", "request_id": "r", "request": body}, prompt("go"))
        return host.of("control_response")

    answers = ASYNCIO.run(main)
    assert [one["response"]["request_id"] for one in answers] == ["r"]
    read = decode(msgspec.json.encode({"type": "control_request", "request_id": "r", "request": body}))
    assert isinstance(read, ControlRequest)
    assert type(read.request) is cls
    if answers[0]["response"]["subtype"] == "error":
        not_found = answers[0]["response"]["error"].startswith("Server not found")
        assert not_found or answers[0]["response"]["error_code"] in ("unsupported_request", "invalid_mode")


# --- without input and output


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_a_protocol_gives_the_same_at_every_chunking(size: int) -> None:
    lines = [
        b'\xef\xbb\xbf{"type":"control_request","request_id":"1","request":{"subtype":"set_model","model":"m"}}\r\n\n',
        b'{"type":"user","message":{"role":"user","content":"\xc3\xa9 one"},"uuid":"u"}\n[1]\n',
        b'{"type":"control_request","request_id":"2","request":{"subtype":"interrupt"}}\n',
        b'{"type":"user","message":{"role":"user","content":"two"}}\n{"type":"keep_alive"}\nnull',
    ]
    data = b"".join(lines)
    protocol = AgentProtocol(AgentSession(AgentOptions(), "m"))
    events: list[str] = []

    def handle(given: list[Any]) -> None:
        for event in given:
            events.append(type(event).__name__ if not isinstance(event, Finished) else f"Finished {event.code}")
            if isinstance(event, TurnStarted):
                protocol.open_turn(event.turn)

    for start in range(0, len(data), size):
        handle(protocol.feed(data[start : start + size]))
    handle(protocol.end_input())
    turn = protocol.turn
    assert turn is not None
    handle(protocol.end_turn(turn, messages.ResultSuccess(is_error=False)))
    assert events == ["ControlRequest", "TurnStarted", "Interrupted", "TurnStopped", "InvalidInput", "Finished 1"]
    written = b"".join(iter(protocol.pop, None))
    kinds = [type(decode(line)).__name__ for line in written.splitlines()]
    lifecycle = "CommandLifecycleMessage"
    assert kinds == [lifecycle, lifecycle, "InitMessage", "ResultSuccess", lifecycle]
