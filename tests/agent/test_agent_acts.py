"""The methods that an agent's author may call in a turn, and the errors for wrong calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from unittest.mock import AsyncMock

import anyio
import msgspec
import pytest

from agent_host import Host, hosted, initialize, prompt
from async_backends import ASYNCIO, Backend, every_backend
from claude_wire import TextBlock
from claude_wire.agent import Agent, AgentOptions, AgentSession, Turn
from claude_wire.dialects import STREAM_JSON_2_1_7
from claude_wire.messages import (
    InitializeRequest,
    ModelUsage,
    ResultErrorMaxTurns,
    SetModelRequest,
    SetPermissionModeRequest,
)
from virtual_time import VirtualBackend, every_virtual_backend

ASKING = AgentOptions(permission_prompt_tool="stdio")
STREAMED = AgentOptions(include_partial_messages=True)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Point(msgspec.Struct):
    n: Any


async def results_of(answer: Any, *messages: dict[str, Any], **arguments: Any) -> tuple[list[dict[str, Any]], Host]:
    """Send prompts to an agent. Return the results of its turns, and the host."""
    async with hosted(Agent(answer, **arguments)) as host:
        for message in messages or (prompt("go"),):
            await host.tell(message)
    return host.of("result"), host


def returning(value: Any) -> Any:
    async def answer(turn: Turn) -> Any:
        await turn.say("said")
        return value

    return answer


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, {"subtype": "success", "result": "said", "is_error": False}),
        ("other", {"subtype": "success", "result": "other"}),
        ({"n": 1}, {"subtype": "success", "structured_output": {"n": 1}, "result": '{"n":1}'}),
        (Point(2), {"structured_output": {"n": 2}}),
        (Point("x"), {"subtype": "error_max_structured_output_retries", "is_error": True}),
        ({"m": 1}, {"errors": ["the structured output does not fit the schema: $: 'n' is a required property"]}),
        (ResultErrorMaxTurns(num_turns=7), {"subtype": "error_max_turns", "num_turns": 7, "is_error": True}),
        (7, {"subtype": "error_during_execution", "is_error": True}),
    ],
)
def test_what_a_function_returns_is_the_result(value: Any, expected: dict[str, Any]) -> None:
    results, host = ASYNCIO.run(results_of, returning(value), initialize(jsonSchema=SCHEMA), prompt("go"))
    assert results[0] | expected == results[0]
    assert host.code == int(results[0]["is_error"])
    assert {"session_id", "uuid", "duration_ms", "duration_api_ms", "num_turns"} <= results[0].keys()


def test_a_mistake_is_told_with_the_authors_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def answer(turn: Turn) -> None:
        await turn.stream("half of ")
        raise ZeroDivisionError("by the author")

    results, host = ASYNCIO.run(results_of, answer)
    assert results[0]["errors"] == ["ZeroDivisionError: by the author"]
    assert host.of("assistant")[0]["message"]["content"][0]["text"] == "half of "
    assert host.code == 1
    told = capsys.readouterr().err
    assert 'raise ZeroDivisionError("by the author")' in told
    assert "agent/service.py" not in told


@every_backend
async def test_a_plain_function_runs_in_a_thread() -> None:
    def answer(turn: Any) -> None:
        turn.say(f"You said {turn.text}")
        outcome = turn.run_tool("Add", {"a": 1}, lambda given: given["a"] + 1)
        turn.usage(input_tokens=3)
        turn.say(outcome.content)

    results, host = await results_of(answer, options=AgentOptions(allowed_tools=("Add",)))
    assert results[0]["result"] == "2"
    assert results[0]["usage"]["input_tokens"] == 3
    assert host.kinds[1:4] == ["assistant", "assistant", "user/tool_result"]


class AsyncObject:
    """A callable object whose ``__call__`` is async."""

    async def __call__(self, turn: Turn) -> None:
        await turn.say(f"You said {turn.text}")


@pytest.mark.parametrize(
    "answer",
    [
        AsyncObject(),
        partial(AsyncObject()),
        partial(AsyncObject().__call__),
        AsyncMock(side_effect=AsyncObject().__call__),
    ],
    ids=["object", "partial of an object", "partial of a method", "mock"],
)
def test_every_kind_of_async_callable_gets_the_async_turn(answer: Any) -> None:
    results, _ = ASYNCIO.run(results_of, answer)
    assert results[0]["result"] == "You said go"


def test_use_is_added_up_into_the_result() -> None:
    async def answer(turn: Turn) -> None:
        turn.usage(input_tokens=10, output_tokens=1, cost_usd=0.5, model="a")
        turn.usage(input_tokens=5, model="b")

    results, _ = ASYNCIO.run(results_of, answer, prompt("one"), prompt("two"))
    first, last = results[0], results[-1]
    assert first["usage"]["input_tokens"] == 15
    assert first["total_cost_usd"] == 0.5
    assert last["total_cost_usd"] == 0.5 * len(results)
    assert last["modelUsage"]["a"]["inputTokens"] == 10 * len(results)
    assert last["model_usage_since_last_result"]["a"]["inputTokens"] == 10


def test_thinking_has_a_signature_and_a_subagent_its_parent() -> None:
    async def answer(turn: Turn) -> None:
        await turn.thinking("hm", signature="sig")
        use = await turn.use_tool("Task", {"description": "d"})
        async with turn.subagent(use, description="look") as helper:
            await helper.say("found")
        await turn.tool_result(use, [TextBlock("found")], structured={"a": 1})
        await turn.emit({"type": "tool_use_summary", "summary": "s", "preceding_tool_use_ids": []})

    _, host = ASYNCIO.run(results_of, answer)
    assert host.kinds == [
        "system/init",
        "assistant",
        "assistant",
        "system/task_started",
        "assistant",
        "system/task_notification",
        "user/tool_result",
        "tool_use_summary",
        "result/success",
    ]
    use = host.messages[2]["message"]["content"][0]["id"]
    assert host.messages[1]["message"]["content"] == [{"type": "thinking", "thinking": "hm", "signature": "sig"}]
    assert host.messages[3]["is_backgrounded"] is False, "a host waits for no turn that its end brings"
    assert host.messages[4]["parent_tool_use_id"] == use
    assert [m["parent_tool_use_id"] for m in host.of("assistant")] == [None, None, use]
    assert host.messages[3]["tool_use_id"] == host.messages[5]["tool_use_id"] == use


@every_backend
async def test_hooks_see_each_tool_and_may_change_it() -> None:
    asked: list[Any] = []

    def reply(request: dict[str, Any]) -> dict[str, Any]:
        asked.append((request["callback_id"], request["input"].get("tool_input")))
        if request["callback_id"] == "change":
            specific = {"permissionDecision": "allow", "updatedInput": {"n": 2}}
            return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **specific}}
        if request["callback_id"] == "guard":
            return {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}
        return {}

    async def answer(turn: Turn) -> str:
        first = await turn.run_tool("Bash", {"n": 1}, lambda given: given["n"])
        second = await turn.run_tool("Write", {"n": 1}, lambda given: given["n"])
        return f"{first.content} {second.content}"

    hooks = {
        "PreToolUse": [
            {"matcher": "Bash|Edit", "hookCallbackIds": ["change"]},
            {"matcher": "Write", "hookCallbackIds": ["guard"]},
        ],
        "PostToolUse": [{"hookCallbackIds": ["after"], "timeout": 5}],
        "UserPromptSubmit": [{"matcher": None, "hookCallbackIds": ["submit"]}],
        "Stop": [{"hookCallbackIds": ["stop"]}],
    }
    async with hosted(Agent(answer, options=ASKING)) as host:
        host.answers = reply
        await host.tell(initialize(hooks=hooks), prompt("go"))
        await host.until("result")
    assert host.of("result")[0]["result"] == "2 PreToolUse:Write hook error: no"
    names = ["submit", "change", "after", "guard", "stop"]
    assert [name for name, _ in asked] == names
    assert asked[2][1] == {"n": 2}


@every_backend
async def test_what_hooks_tell_the_model_reaches_the_author() -> None:
    def reply(request: dict[str, Any]) -> dict[str, Any]:
        if request["subtype"] == "can_use_tool":
            return {"behavior": "allow"}
        event = request["input"]["hook_event_name"]
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": f"of {request['callback_id']}"}}

    async def answer(turn: Turn) -> str:
        outcome = await turn.run_tool("Bash", {}, lambda given: "ran")
        return f"{turn.hook_context} {list(outcome.context)}"

    events = ("UserPromptSubmit", "PreToolUse", "PostToolUse")
    async with hosted(Agent(answer, options=ASKING)) as host:
        host.answers = reply
        await host.tell(initialize(hooks={event: [{"hookCallbackIds": [event]}] for event in events}), prompt("go"))
        await host.until("result")
    assert host.of("result")[0]["result"] == "['of UserPromptSubmit'] ['of PreToolUse', 'of PostToolUse']"


@every_backend
async def test_what_a_turn_has_used_that_json_cannot_say_is_an_error_and_no_silence() -> None:
    async def answer(turn: Turn) -> None:
        turn.session.cost_usd = "0.1"

    async with hosted(Agent(answer)) as host:
        await host.tell(prompt("go"))
        await host.until("result")
    assert host.of("result")[0]["is_error"] is True


@every_virtual_backend
async def test_a_hook_that_takes_too_long_is_withdrawn_and_the_act_refused() -> None:
    async def answer(turn: Turn) -> str:
        return str((await turn.run_tool("Bash", {}, lambda given: "ran")).content)

    hooks = {"PreToolUse": [{"hookCallbackIds": ["slow"], "timeout": 5}]}
    async with hosted(Agent(answer, options=ASKING)) as host:
        await host.tell(initialize(hooks=hooks), prompt("go"))
        await host.until("result")
    assert "control_cancel_request" in host.kinds
    assert "longer than its timeout" in host.of("result")[0]["result"]


async def test_a_server_in_the_host_is_connected_by_messages_or_by_its_manifest() -> None:
    sent: list[Any] = []

    def reply(request: dict[str, Any]) -> dict[str, Any]:
        message = request["message"]
        sent.append((request["server_name"], message["method"], message.get("id")))
        results: dict[str, Any] = {
            "initialize": {"serverInfo": {"name": "calc"}},
            "tools/list": {"tools": [{"name": "add", "inputSchema": {}}]},
            "tools/call": {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}},
        }
        return {
            "mcp_response": {"jsonrpc": "2.0", "id": message.get("id"), "result": results.get(message["method"], {})}
        }

    async def answer(turn: Turn) -> str:
        outcome = await turn.run_tool("mcp__calc__add", {"a": 1})
        direct = await turn.call_mcp("early", "x", {})
        assert direct.structured == {"sum": 3}
        return str(outcome.content[0]["text"])

    manifest = {"initializeResult": {}, "toolsListResult": {"tools": [{"name": "x"}]}}
    options = AgentOptions(mcp_config=({"mcpServers": {"calc": {"type": "sdk"}}},), allowed_tools=("mcp__calc",))
    async with hosted(Agent(answer, options=options)) as host:
        host.answers = reply
        servers = {"sdkMcpServers": ["early"], "sdkMcpServerManifests": {"early": manifest}}
        await host.tell(initialize(**servers), prompt("go"))
        await host.until("result")
        await host.tell(host.ask("s", "mcp_status"))
        await host.until("control_response", 2)
    init = host.of("system/init")[0]
    assert sorted(init["tools"]) == ["mcp__calc__add", "mcp__early__x"]
    assert host.of("result")[0]["result"] == "3"
    assert [one for one in sent if one[0] == "calc"][:3] == [
        ("calc", "initialize", 0),
        ("calc", "notifications/initialized", None),
        ("calc", "tools/list", 1),
    ]
    assert ("early", "tools/call", 2) in sent
    status = host.of("control_response")[1]["response"]["response"]["mcpServers"]
    assert {row["name"]: row["status"] for row in status} == {"calc": "connected", "early": "connected"}


async def test_prompts_that_come_meanwhile_are_injected() -> None:
    async def answer(turn: Turn) -> str:
        await turn.say("first")
        while not (prompts := await turn.injected()):
            await anyio.sleep(0)
        return ", ".join(one.text for one in prompts)

    async with hosted(Agent(answer, options=AgentOptions(replay_user_messages=True))) as host:
        await host.tell(prompt("one", "a"))
        await host.until("assistant")
        await host.tell(prompt("two", "b"), prompt("three", "c"))
        result = await host.until("result")
    assert result["result"] == "two, three"
    assert result["user_message_uuids"] == ["a", "b", "c"]
    assert [m["uuid"] for m in host.of("user/replay")] == ["a", "b", "c"]
    assert len(host.of("result")) == 1


@every_virtual_backend
async def test_an_interrupt_closes_what_is_streamed_and_ends_the_turn() -> None:
    ended: list[str] = []

    async def words() -> AsyncIterator[str]:
        try:
            while True:
                yield "word "
                await anyio.sleep(0.1)
        finally:
            ended.append("iterable")

    async def answer(turn: Turn) -> str:
        try:
            await turn.stream(words())
        finally:
            ended.append(f"author {turn.cancelled}")
            await turn.say("dropped") if not turn.cancelled else None
        return "not this"

    async with hosted(Agent(answer, options=STREAMED)) as host:
        await host.tell(prompt("go", "u"))
        await anyio.sleep(1)
        await host.tell(host.ask("i", "interrupt"), host.ask("again", "interrupt"))
        result = await host.until("result")
    assert ended == ["iterable", "author True"]
    assert result["subtype"] == "error_during_execution"
    assert result["terminal_reason"] == "aborted_streaming"
    assert [m["response"]["response"] for m in host.of("control_response")] == [{"still_queued": []}] * 2
    behind = host.kinds[host.kinds.index("control_response/success") :]
    assert behind == [
        "control_response/success",
        "control_response/success",
        "assistant",
        "user/text",
        "stream_event/content_block_stop",
        "stream_event/message_delta",
        "stream_event/message_stop",
        "result/error_during_execution",
        "command_lifecycle/cancelled",
    ]
    assert host.of("assistant")[0]["aborted"] is True


@every_virtual_backend
async def test_cleanup_may_wait_and_swallowing_changes_nothing(virtual: VirtualBackend) -> None:
    cleaned: list[str] = []

    async def answer(turn: Turn) -> str:
        if turn.text == "swallow":
            try:
                await anyio.sleep(100)
            except BaseException:
                if virtual.id == "trio":
                    raise
            return "swallowed"
        try:
            await anyio.sleep(100)
        finally:
            with anyio.CancelScope(shield=virtual.id == "trio"):
                await anyio.sleep(1)
            await turn.say("dropped")
            cleaned.append(turn.text)
        return ""

    async with hosted(Agent(answer)) as host:
        for number, text in enumerate(("clean", "swallow"), 1):
            await host.tell(prompt(text))
            await host.until("system/init", number)
            await host.tell(host.ask(text, "interrupt"))
            result = await host.until("result", number)
            assert result["terminal_reason"] == "aborted_streaming"
    assert "assistant" not in host.kinds
    assert cleaned == (["clean"] if virtual.id == "asyncio" else [])


@every_virtual_backend
async def test_a_turn_waits_while_its_host_does_not_read() -> None:
    said = 0

    async def answer(turn: Turn) -> None:
        nonlocal said
        for _ in range(100):
            await turn.say("x" * 50_000)
            said += 1

    async with hosted(Agent(answer)) as host:
        host.paused = anyio.Event()
        await host.tell(prompt("go"), host.ask("m", "mcp_status"))
        await anyio.sleep(10)
        assert 15 < said < 30
        waiting = host.service.protocol.unwritten
        assert 1024 * 1024 < waiting < 1_200_000
        host.paused.set()
        host.paused = None
        await host.until("result")
    assert said == 100
    # The answer overtakes all queued lines except the line that the agent was already writing.
    assert host.kinds.index("control_response/success") <= 1


@every_virtual_backend
async def test_a_host_that_reads_late_gets_all() -> None:
    async def answer(turn: Turn) -> None:
        await turn.say("x" * 100)

    async with hosted(Agent(answer)) as host:
        host.paused = anyio.Event()
        await host.tell(prompt("go"))
        host.end()
        await anyio.sleep(3600)
        assert host.code is None
        host.paused.set()
        host.paused = None
    assert host.kinds == ["system/init", "assistant", "result/success"]
    assert host.code == 0


async def test_handlers_of_the_author_answer_requests() -> None:
    async def answer(turn: Turn) -> str:
        return turn.session.model

    def refuse(request: SetPermissionModeRequest) -> None:
        raise ValueError("not in this agent")

    asked: list[Any] = []
    requests = {SetModelRequest: asked.append, SetPermissionModeRequest: refuse}
    async with hosted(Agent(answer, requests=requests, model="first")) as host:
        await host.tell(host.ask("a", "set_model", model="second"), host.ask("b", "set_permission_mode", mode="plan"))
        await host.until("control_response", 2)
        await host.tell(prompt("go"), host.ask({"odd": [1]}, "no_such"), host.ask(None, "get_context_usage"))
        await host.until("control_response", 4)
    by_id = {str(m["response"]["request_id"]): m["response"] for m in host.of("control_response")}
    assert by_id["a"]["response"] == {"model": "second"}
    assert by_id["b"]["error"] == "not in this agent"
    assert by_id["{'odd': [1]}"]["error"] == "Unsupported control request subtype: no_such"
    assert by_id["None"]["error_code"] == "unsupported_request"
    assert asked[0].model == "second"
    assert host.of("result")[0]["result"] == "second"
    assert host.of("system/init")[0]["permissionMode"] == "default"


async def test_the_same_uuid_again_begins_no_turn() -> None:
    async def answer(turn: Turn) -> str:
        return turn.text

    async with hosted(Agent(answer, options=AgentOptions(replay_user_messages=True))) as host:
        await host.tell(prompt("one", "u"))
        await host.until("result")
        await host.tell(prompt("two", "u"))
    assert len(host.of("result")) == 1
    echo = host.of("user/replay")[1]
    assert echo["message"]["content"] == "two"
    assert "timestamp" not in echo


def test_a_prompt_that_asks_no_model_is_context_of_the_next() -> None:
    async def answer(turn: Turn) -> str:
        return f"{[one.text for one in turn.context]} {turn.text}"

    results, _ = ASYNCIO.run(results_of, answer, prompt("know this", shouldQuery=False), prompt("go"))
    assert [one["num_turns"] for one in results] == [0, 0]
    assert results[1]["result"] == "['know this'] go"


def test_a_lifespan_is_entered_before_the_first_prompt_and_left_at_the_end() -> None:
    from contextlib import asynccontextmanager

    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(session: AgentSession) -> AsyncIterator[None]:
        session.state["n"] = 0
        seen.append("in")
        yield
        seen.append(f"out {session.state['n']}")

    async def answer(turn: Turn) -> None:
        turn.session.state["n"] += 1

    ASYNCIO.run(lambda: results_of(answer, prompt("a"), lifespan=lifespan))
    assert seen == ["in", "out 1"]


def test_a_resumed_agent_goes_on_with_what_its_author_has_kept() -> None:
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def lifespan(session: AgentSession) -> AsyncIterator[None]:
        session.cost_usd = 0.5
        session.used["a"] = ModelUsage(inputTokens=10, outputTokens=1, costUSD=0.5)
        yield

    async def answer(turn: Turn) -> None:
        turn.usage(input_tokens=5, cost_usd=0.25, model="a")

    results, _ = ASYNCIO.run(lambda: results_of(answer, lifespan=lifespan))
    assert results[0]["total_cost_usd"] == 0.75
    assert results[0]["modelUsage"]["a"]["inputTokens"] == 15
    assert results[0]["usage"]["input_tokens"] == 5


def test_a_strict_agent_ends_at_another_type(capsys: pytest.CaptureFixture[str]) -> None:
    lines = prompt("one"), {"type": "wobble"}, prompt("two")
    results, host = ASYNCIO.run(lambda: results_of(returning(None), *lines, dialect=STREAM_JSON_2_1_7))
    assert (len(results), host.code) == (1, 1)
    assert capsys.readouterr().err == "Error: Expected 'user' or 'control_request', got 'wobble'\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"answer": 5}, "answer must be"),
        ({"answer": returning(None), "dialect": 5}, "dialect must be STREAM_JSON"),
        ({"answer": returning(None), "requests": {int: print}}, "classes of control requests"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        Agent(**arguments)


@pytest.mark.parametrize("act", ["say", "stream", "thinking"])
def test_what_is_said_is_text(act: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def answer(turn: Turn) -> None:
        await getattr(turn, act)(5)

    results, _ = ASYNCIO.run(results_of, answer)
    assert f"TypeError: {act}() takes a str" in results[0]["errors"][0]
    assert "getattr(turn, act)(5)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("act", "arguments", "problem"),
    [
        ("use_tool", ("Bash", 5), "the input of a tool must be a dict, not int"),
        ("tool_result", ("id", "x"), "tool_result() takes the value that use_tool() returned, not str"),
        ("run_tool", ("Bash", {}), "run_tool() needs a function"),
        ("call_mcp", ("calc", "add"), "the host has no MCP server 'calc'"),
        ("emit", ("x",), "takes a message or a dict, not str"),
        ("stream", (["a"],), "stream() takes a str or an async iterable of str, not list"),
        ("hook", ("PreToolUsed",), "hook(): there is no event 'PreToolUsed' (did you mean 'PreToolUse'?)"),
        ("hook", ("stopped",), "hook(): there is no event 'stopped'"),
        ("hook", (5,), "hook() takes a str, not int"),
    ],
)
def test_wrong_arguments_of_an_act_are_told(act: str, arguments: tuple[Any, ...], problem: str) -> None:
    async def answer(turn: Turn) -> None:
        await getattr(turn, act)(*arguments)

    results, _ = ASYNCIO.run(lambda: results_of(answer, options=AgentOptions(allowed_tools=("Bash",))))
    assert problem in results[0]["errors"][0]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"input_tokens": "3"}, "input_tokens of usage() must be an int, not str"),
        ({"cache_read_input_tokens": None}, "cache_read_input_tokens of usage() must be an int, not NoneType"),
        ({"cost_usd": "0.1"}, "usage(cost_usd=) takes a number, not str"),
        ({"model": b"m"}, "usage(model=) takes a str, not bytes"),
    ],
)
def test_a_wrong_usage_fails_its_turn(given: dict[str, Any], problem: str) -> None:
    async def answer(turn: Turn) -> None:
        turn.usage(**given)

    results, _ = ASYNCIO.run(results_of, answer)
    assert problem in results[0]["errors"][0]


async def test_the_loop_that_is_closed_leaves_nothing_behind() -> None:
    async def answer(turn: Turn) -> None:
        await anyio.sleep(1000)

    host = Host()
    agent = Agent(answer)
    serving = asyncio.create_task(agent.serve(host.input, host))
    await host.tell(prompt("go"))
    await host.until("system/init")
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    host.end()
    host.input.close()


@every_backend
def test_a_mode_is_told_behind_the_answer_to_its_own_request(backend: Backend) -> None:
    async def main() -> Host:
        async with hosted(Agent(returning(None))) as host:
            await host.tell(
                host.ask("servers", "mcp_status"),
                host.ask("first", "set_permission_mode", mode="plan"),
                host.ask("second", "set_permission_mode", mode="dontAsk"),
            )
        return host

    told = [
        message["permissionMode"] if message["type"] == "system" else message["response"]["request_id"]
        for message in backend.run(main).messages
        if message["type"] == "control_response" or message.get("subtype") == "status"
    ]
    assert [one for one in told if one in ("plan", "dontAsk")] == ["plan", "dontAsk"]
    assert told.index("first") < told.index("plan")
    assert told.index("second") < told.index("dontAsk")


def test_what_the_author_raises_for_initialize_is_an_error_answer(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(request: InitializeRequest) -> None:
        raise ValueError("not today")

    async def main() -> Host:
        async with hosted(Agent(returning(None), requests={InitializeRequest: refuse})) as host:
            await host.tell(initialize())
        return host

    assert ASYNCIO.run(main).of("control_response/error")[0]["response"]["error"] == "not today"
    assert "the handler of InitializeRequest raised ValueError" in caplog.text


def test_an_answer_to_initialize_that_json_cannot_say_is_an_error_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> Host:
        requests = {InitializeRequest: lambda request: {"commands": object()}}
        async with hosted(Agent(returning(None), requests=requests)) as host:
            await host.tell(initialize())
        return host

    assert ASYNCIO.run(main).of("control_response/error")
    assert "the handler of InitializeRequest raised EncodeError" in caplog.text
