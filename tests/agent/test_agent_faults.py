"""If its streams, host or author misbehave, an agent continues, or it ends with a reason."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from agent_host import Host, hosted, initialize, prompt
from async_backends import ASYNCIO, every_backend
from claude_wire import ToolUseBlock, UserDialogCancelled
from claude_wire.agent import Agent, AgentOptions, AgentSession, Turn
from claude_wire.agent.questions import Decision
from claude_wire.agent.service import MAX_UNWRITTEN
from claude_wire.agent.session import MAX_ALLOWED, MAX_SERVER_BYTES, MAX_SERVERS
from claude_wire.dialects import CLASSIC
from claude_wire.messages import ResultSuccess
from claude_wire.streams.pipes import open_sink
from virtual_time import every_virtual_backend

ASKING = AgentOptions(permission_prompt_tool="stdio", replay_user_messages=True)


async def run(given: dict[str, Any]) -> str:
    return "ran"


async def uses_a_tool(turn: Turn) -> str:
    outcome = await turn.run_tool("Bash", {}, run)
    return str(outcome.content)


async def allow(host: Host, question: dict[str, Any]) -> None:
    """Answer a permission question of the agent with allow."""
    response = {"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}}
    await host.tell({"type": "control_response", "response": response})


# --- streams


@every_virtual_backend
async def test_what_the_input_raises_is_raised_when_the_turn_is_finished() -> None:
    async def answer(turn: Turn) -> str:
        await anyio.sleep(1)
        return "done"

    async def source() -> AsyncIterator[bytes]:
        yield json.dumps(prompt("go")).encode() + b"\n"
        raise LookupError("the source")

    host = Host()
    with pytest.raises(LookupError, match="the source"):
        await Agent(answer).serve(source(), host)
    assert [message["result"] for message in host.of("result")] == ["done"]
    host.end()
    host.input.close()


@every_virtual_backend
async def test_what_the_output_raises_is_raised_and_ends_the_agent() -> None:
    class Sink(Host):
        async def send(self, data: bytes) -> None:
            raise LookupError("the sink")

    host = Sink()
    await host.tell(prompt("go"))
    with pytest.raises(LookupError, match="the sink"):
        await Agent(uses_a_tool).serve(host.input, host)
    host.end()
    host.input.close()


def test_what_is_left_of_a_long_line_is_not_copied() -> None:
    reader, writer = os.pipe()
    lines = [b"x" * 4_000_000]
    whole = lines[0]
    sink = open_sink(writer)
    assert not sink.write_now(lambda: lines.pop() if lines else None)
    assert isinstance(sink.rest, memoryview)
    assert sink.rest.obj is whole
    assert 0 < len(sink.rest) < len(whole)
    sink.rest.release()
    sink.rest = b""
    sink.close()
    os.close(reader)
    os.close(writer)


# --- hosts


@every_virtual_backend
async def test_a_question_fails_whose_answer_stands_behind_too_many_prompts() -> None:
    async with hosted(Agent(uses_a_tool, options=ASKING)) as host:
        await host.tell(prompt("go"))
        question = await host.until("control_request/can_use_tool")
        for number in range(2500):
            await host.tell(prompt(f"{number}", shouldQuery=False))
        await allow(host, question)
        result = await host.until("result")
        assert "Tool permission request failed" in result["result"]
        await host.until("result", 2501)


@pytest.mark.parametrize("known", [True, False])
@every_virtual_backend
async def test_reading_stops_while_too_much_output_waits(known: bool) -> None:
    async with hosted(Agent(uses_a_tool, options=ASKING)) as host:
        host.paused = anyio.Event()
        text = "x" * 1_000_000
        for _ in range(50):
            # The agent echoes each prompt: because its uuid is already known, or because shouldQuery is false.
            await host.tell(prompt(text, "same" if known else None, shouldQuery=False))
        await anyio.sleep(1)
        assert MAX_UNWRITTEN <= host.service.protocol.unwritten < MAX_UNWRITTEN + 2_000_000
        assert host.unread > 20
        host.paused.set()
        host.paused = None
        await host.until("user/replay", 50)


@every_backend
async def test_a_request_with_an_id_that_was_answered_is_another_one() -> None:
    async with hosted(Agent(uses_a_tool)) as host:
        for number, subtype in enumerate(("initialize", "set_model", "set_model", "interrupt", "interrupt"), 1):
            await host.tell(host.ask("1", subtype))
            await host.until("control_response/success", number)


@every_virtual_backend
async def test_a_question_that_was_not_written_is_withdrawn_behind_it() -> None:
    async with hosted(Agent(uses_a_tool, options=ASKING)) as host:
        host.paused = anyio.Event()
        await host.tell(prompt("go", "u"))
        await anyio.sleep(1)
        await host.tell(host.ask("i", "interrupt"))
        await anyio.sleep(1)
        host.paused.set()
        await host.until("result")
        kinds = host.kinds
        assert kinds.index("control_cancel_request") == kinds.index("control_request/can_use_tool") + 1


@every_backend
async def test_a_prompt_that_is_interrupted_in_its_hook_is_not_begun() -> None:
    begun: list[Turn] = []

    async with hosted(Agent(begun.append)) as host:
        hooks = {"UserPromptSubmit": [{"hookCallbackIds": ["h"]}], "Stop": [{"hookCallbackIds": ["s"]}]}
        await host.tell(initialize(hooks=hooks), prompt("go", "u"))
        await host.until("control_request/hook_callback")
        await host.tell(host.ask("i", "interrupt"))
        result = await host.until("result")
        assert result["terminal_reason"] == "aborted_streaming"
    assert len(host.of("control_request")) == 1
    assert begun == []


# --- authors


@every_backend
async def test_a_turn_that_is_over_asks_its_host_nothing() -> None:
    asked: list[Any] = []

    async def go_on(turn: Turn, over: anyio.Event) -> None:
        await over.wait()
        use = await turn.use_tool("Bash")
        asked.append((await turn.allowed(use)).ok)
        asked.append((await turn.hook("PreToolUse", tool_name="Bash")).outputs)
        asked.append((await turn.call_mcp("calc", "add")).is_error)
        asked.append((await turn.elicit("Who are you?")).action)
        asked.append(await turn.show_dialog("choice", {}))
        asked.append((await turn.run_tool("Bash", {}, asked.append)).ran)

    over = anyio.Event()
    async with anyio.create_task_group() as group:

        async def answer(turn: Turn) -> None:
            group.start_soon(go_on, turn, over)

        async with hosted(Agent(answer, options=ASKING)) as host:
            hooks = {"PreToolUse": [{"hookCallbackIds": ["h"]}]}
            manifest = {"calc": {"initializeResult": {}, "toolsListResult": {"tools": []}}}
            servers = {"sdkMcpServers": ["calc"], "sdkMcpServerManifests": manifest}
            await host.tell(initialize(hooks=hooks, **servers), prompt("go", "u"))
            await host.until("command_lifecycle/completed")
            written = len(host.messages)
            over.set()
            while len(asked) < 5:
                await anyio.lowlevel.checkpoint()
            assert host.messages[written:] == []
    assert asked == [False, [], True, "cancel", UserDialogCancelled(), False]


async def test_an_interrupted_turn_that_goes_on_asks_its_host_nothing() -> None:
    decisions: list[Decision] = []

    async def answer(turn: Turn) -> None:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            decisions.append(await turn.allowed(ToolUseBlock(id="t", name="Bash", input={})))

    async with hosted(Agent(answer, options=ASKING)) as host:
        await host.tell(initialize(hooks={"Stop": [{"hookCallbackIds": ["s"]}]}), prompt("go"))
        await host.until("system/init")
        await host.tell(host.ask("i", "interrupt"))
        await host.until("result/error_during_execution")
    assert host.of("control_request") == []
    assert [decision.ok for decision in decisions] == [False]


@every_backend
async def test_a_result_that_no_json_has_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    async def answer(turn: Turn) -> ResultSuccess:
        return ResultSuccess(is_error=False, structured_output=object() if turn.text == "bad" else 1)

    async with hosted(Agent(answer)) as host:
        await host.tell(prompt("bad", "a"))
        await host.until("result/error_during_execution")
        await host.tell(prompt("good", "b"))
    results = host.of("result")
    assert [(result["subtype"], result["result_index"]) for result in results] == [
        ("error_during_execution", 0),
        ("success", 1),
    ]
    told = capsys.readouterr().err
    assert "EncodeError" in told
    assert "async def answer(turn: Turn) -> ResultSuccess:" in told


@every_backend
async def test_a_function_that_exits_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(turn: Turn) -> None:
        sys.exit(3)

    async with hosted(Agent(answer)) as host:
        await host.tell(prompt("go"))
    assert host.code == 1
    assert [result["errors"] for result in host.of("result")] == [["SystemExit: 3"]]
    assert "sys.exit(3)" in capsys.readouterr().err


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio cannot tell who was cancelled")
async def test_a_function_whose_awaited_task_was_cancelled_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    async def answer(turn: Turn) -> None:
        task = asyncio.create_task(anyio.sleep_forever())
        task.cancel()
        await task

    async with hosted(Agent(answer)) as host:
        await host.tell(prompt("go"))
    assert host.of("result")[0]["errors"] == ["CancelledError: "]
    assert "await task" in capsys.readouterr().err


@every_backend
async def test_a_plain_function_has_subagents() -> None:
    def answer(turn: Any) -> None:
        use = turn.use_tool("Task", {})
        with turn.subagent(use) as helper:
            helper.say("found")
        turn.tool_result(use, "found")

    async with hosted(Agent(answer)) as host:
        await host.tell(prompt("go"))
    assert host.kinds == [
        "system/init",
        "assistant",
        "system/task_started",
        "assistant",
        "system/task_notification",
        "user/tool_result",
        "result/success",
    ]
    assert (
        host.of("assistant")[1]["parent_tool_use_id"]
        == host.of("user/tool_result")[0]["message"]["content"][0]["tool_use_id"]
    )


@every_virtual_backend
async def test_an_interrupt_closes_all_that_a_subagent_has_open() -> None:
    async def forever(given: dict[str, Any]) -> None:
        await anyio.sleep_forever()

    async def answer(turn: Turn) -> None:
        use = await turn.use_tool("Task")
        async with turn.subagent(use) as helper:
            await helper.say("hello")
            await helper.run_tool("Bash", {}, forever)

    options = AgentOptions(include_partial_messages=True, permission_mode="bypassPermissions")
    async with hosted(Agent(answer, options=options)) as host:
        await host.tell(prompt("go"))
        await host.until("assistant", 3)
        await host.tell(host.ask("i", "interrupt"))
        await host.until("result")
    kinds = host.kinds
    assert kinds.count("stream_event/message_start") == kinds.count("stream_event/message_stop") == 2
    uses = [message["message"]["content"][0].get("id") for message in host.of("assistant")]
    results = host.of("user/tool_result")
    assert [one["message"]["content"][0]["tool_use_id"] for one in results] == [uses[2], uses[0]]
    assert [one["parent_tool_use_id"] for one in results] == [uses[0], None]
    assert [one["status"] for one in host.of("system/task_notification")] == ["stopped"]
    assert kinds.count("user/text") == 1


@every_virtual_backend
async def test_an_iterable_that_makes_a_generator_is_closed() -> None:
    closed: list[bool] = []

    class Pieces:
        async def __aiter__(self) -> AsyncIterator[str]:
            try:
                while True:
                    yield "x" * 100_000
            finally:
                closed.append(True)

    async def answer(turn: Turn) -> None:
        try:
            await turn.stream(Pieces())
        finally:
            assert closed == [True]
            closed.append(False)

    async with hosted(Agent(answer, options=AgentOptions(include_partial_messages=True))) as host:
        host.paused = anyio.Event()
        await host.tell(prompt("go"))
        await anyio.sleep(1)
        await host.tell(host.ask("i", "interrupt"))
        await anyio.sleep(1)
        host.paused.set()
        host.paused = None
        await host.until("result")
    assert closed == [True, False]


# --- what a host says, once more


async def test_hooks_and_system_prompts_of_older_hosts_are_taken() -> None:
    async with hosted(Agent(uses_a_tool)) as host:
        host.answers = lambda request: {"decision": "block", "reason": "no"}
        hooks = {"user-prompt-submit": [{"matcher": None, "hookCallbackIds": ["h"]}]}
        await host.tell(initialize(hooks=hooks, systemPrompt="Be brief."), prompt("go"))
        await host.until("result")
    assert host.of("control_response/success")
    assert host.of("result")[0]["result"] == "UserPromptSubmit hook error: no"


async def test_a_known_request_that_cannot_be_read_is_refused_with_the_reason() -> None:
    async with hosted(Agent(uses_a_tool)) as host:
        await host.tell(initialize(hooks=[]))
    error = host.of("control_response/error")[0]["response"]["error"]
    assert error.startswith("this control request cannot be read: ")
    assert "hooks" in error


TOOLS: list[Any] = [[1, {"name": "add"}], {"x": 1}, 5, None]


@pytest.mark.parametrize("tools", TOOLS)
async def test_a_manifest_that_lists_no_tools_is_one_without_tools(tools: Any) -> None:
    async with hosted(Agent(uses_a_tool)) as host:
        manifest = {"initializeResult": {}, "toolsListResult": {"tools": tools}}
        await host.tell(initialize(sdkMcpServerManifests={"calc": manifest}), prompt("go"))
    tool_names = host.of("system/init")[0]["tools"]
    assert tool_names == (["mcp__calc__add"] if tools == TOOLS[0] else [])


async def test_what_is_known_of_mcp_servers_is_bounded() -> None:
    async with hosted(Agent(uses_a_tool)) as host:
        large = {"initializeResult": {}, "toolsListResult": {"tools": [{"name": "x" * MAX_SERVER_BYTES}]}}
        small = {"initializeResult": {}, "toolsListResult": {"tools": []}}
        manifests = {"large": large, **{f"{number}": small for number in range(MAX_SERVERS + 10)}}
        await host.tell(initialize(sdkMcpServerManifests=manifests), prompt("go"))
    servers = host.of("system/init")[0]["mcp_servers"]
    assert len(servers) == MAX_SERVERS
    assert [server["name"] for server in servers if server["status"] == "failed"] == ["large"]


def test_the_tools_that_answers_allow_are_bounded() -> None:
    session = AgentSession(AgentOptions(), "m")
    session.allow("x" * 1000)
    for number in range(MAX_ALLOWED + 10):
        session.allow(f"Tool{number}")
    assert len(session.allowed_tools) == MAX_ALLOWED
    assert session.may_use("Tool0")
    assert session.may_use(f"Tool{MAX_ALLOWED}") is None


async def test_a_mode_that_there_is_not_is_not_set() -> None:
    async with hosted(Agent(uses_a_tool, options=ASKING)) as host:
        update = {"type": "setMode", "mode": "other", "destination": "session"}
        host.answers = lambda request: {"behavior": "allow", "updatedPermissions": [update]}
        await host.tell(prompt("go"))
        await host.until("result/success")
        assert host.service.session.permission_mode == "default"


@pytest.mark.parametrize("subtype", ["interrupt", "set_model", "initialize", "other"])
@pytest.mark.parametrize("request_id", ["\0json:{", "\0json:5", "\0"])
async def test_any_text_is_an_id(subtype: str, request_id: str) -> None:
    async with hosted(Agent(uses_a_tool)) as host:
        await host.tell(host.ask(request_id, subtype), prompt("go"))
    assert host.of("control_response")[0]["response"]["request_id"] == request_id
    assert len(host.of("result")) == 1


async def test_an_integer_of_any_length_is_a_number() -> None:
    async with hosted(Agent(uses_a_tool)) as host:
        await host.send_bytes(b'{"n":' + b"9" * 5000 + b"}\n")
        await host.tell(prompt("go"))
    assert host.code == 0
    assert len(host.of("result")) == 1


# --- dialects


def test_an_agent_that_finds_out_a_dialect_knows_the_turn_under_way() -> None:
    frames: list[dict[str, Any]] = []

    async def answer(turn: Turn) -> None:
        begun.set()
        await anyio.sleep_forever()

    async def main() -> None:
        nonlocal begun
        begun = anyio.Event()
        host = Host(raw=frames.append)
        async with anyio.create_task_group() as group:
            host.start(Agent(answer, dialect="auto"), group)
            await host.tell(prompt("go"))
            await begun.wait()
            await host.tell({"type": "control", "action": "interrupt"})
            host.end()
        # In MIRIAD an interrupted turn is not a failure, so the exit code is 0.
        assert host.code == 0

    begun: anyio.Event
    ASYNCIO.run(main)
    assert [frame["subtype"] for frame in frames] == ["init", "interrupted", "cancelled"]


async def test_an_agent_of_classic_takes_no_control_messages() -> None:
    frames: list[dict[str, Any]] = []

    host = Host(raw=frames.append)
    async with anyio.create_task_group() as group:
        host.start(Agent(lambda turn: "done", dialect=CLASSIC), group)
        hooks = {"UserPromptSubmit": [{"hookCallbackIds": ["h"]}]}
        await host.tell(initialize(hooks=hooks, sdkMcpServers=["calc"]), prompt("go"))
        host.end()
    assert [frame["subtype"] for frame in frames] == ["init", "success"]
