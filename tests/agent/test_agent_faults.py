"""An agent whose streams, host or author do what they should not: it goes on, or it ends and says why."""

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
from async_backends import ASYNCIO, Backend, every_backend
from claude_wire import ResultSuccess, ToolUseBlock
from claude_wire.agent import Agent, AgentOptions, Turn
from claude_wire.agent.questions import Decision
from claude_wire.agent.service import MOST_UNWRITTEN
from claude_wire.io.pipes import open_sink
from virtual_time import VirtualBackend, every_virtual_backend

ASKING = AgentOptions(permission_prompt_tool="stdio", replay_user_messages=True)


async def run(given: dict[str, Any]) -> str:
    return "ran"


async def uses_a_tool(turn: Turn) -> str:
    outcome = await turn.run_tool("Bash", {}, run)
    return str(outcome.content)


async def allow(host: Host, question: dict[str, Any]) -> None:
    """Answer a permission question."""
    response = {"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}}
    await host.tell({"type": "control_response", "response": response})


# --- streams


@every_virtual_backend
def test_what_the_input_raises_is_raised_when_the_turn_is_finished(virtual: VirtualBackend) -> None:
    async def answer(turn: Turn) -> str:
        await anyio.sleep(1)
        return "done"

    async def source() -> AsyncIterator[bytes]:
        yield json.dumps(prompt("go")).encode() + b"\n"
        raise LookupError("the source")

    async def main() -> None:
        host = Host()
        with pytest.raises(LookupError, match="the source"):
            await Agent(answer).serve(source(), host)
        assert [message["result"] for message in host.of("result")] == ["done"]
        host.end()
        host.input.close()

    virtual.run(main)


@every_virtual_backend
def test_what_the_output_raises_is_raised_and_ends_the_agent(virtual: VirtualBackend) -> None:
    class Sink(Host):
        async def send(self, data: bytes) -> None:
            raise LookupError("the sink")

    async def main() -> None:
        host = Sink()
        await host.tell(prompt("go"))
        with pytest.raises(LookupError, match="the sink"):
            await Agent(uses_a_tool).serve(host.input, host)
        host.end()
        host.input.close()

    virtual.run(main)


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
def test_a_question_fails_whose_answer_stands_behind_too_many_prompts(virtual: VirtualBackend) -> None:
    async def main() -> None:
        async with hosted(Agent(uses_a_tool, options=ASKING)) as host:
            await host.tell(prompt("go"))
            question = await host.until("control_request/can_use_tool")
            for number in range(2500):
                await host.tell(prompt(f"{number}", shouldQuery=False))
            await allow(host, question)
            result = await host.until("result")
            assert "Tool permission request failed" in result["result"]
            await host.until("result", 2501)

    virtual.run(main)


@pytest.mark.parametrize("known", [True, False])
@every_virtual_backend
def test_reading_stops_while_too_much_output_waits(virtual: VirtualBackend, known: bool) -> None:
    async def main() -> None:
        async with hosted(Agent(uses_a_tool, options=ASKING)) as host:
            host.paused = anyio.Event()
            text = "x" * 1_000_000
            for _ in range(50):
                # Each has an echo: of a prompt that is known, or in a turn that asks no model.
                await host.tell(prompt(text, "same" if known else None, shouldQuery=False))
            await anyio.sleep(1)
            assert MOST_UNWRITTEN <= host.service.protocol.unwritten < MOST_UNWRITTEN + 2_000_000
            assert host.unread > 20
            host.paused.set()
            host.paused = None
            await host.until("user/replay", 50)

    virtual.run(main)


@every_backend
def test_a_request_with_an_id_that_was_answered_is_another_one(backend: Backend) -> None:
    async def main() -> None:
        async with hosted(Agent(uses_a_tool)) as host:
            for number, subtype in enumerate(("initialize", "set_model", "set_model", "interrupt", "interrupt"), 1):
                await host.tell(host.ask("1", subtype))
                await host.until("control_response/success", number)

    backend.run(main)


@every_virtual_backend
def test_a_question_that_was_not_written_is_withdrawn_behind_it(virtual: VirtualBackend) -> None:
    async def main() -> None:
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

    virtual.run(main)


@every_backend
def test_a_prompt_that_is_interrupted_in_its_hook_is_not_begun(backend: Backend) -> None:
    begun: list[Turn] = []

    async def main() -> None:
        async with hosted(Agent(begun.append)) as host:
            hooks = {"UserPromptSubmit": [{"hookCallbackIds": ["h"]}], "Stop": [{"hookCallbackIds": ["s"]}]}
            await host.tell(initialize(hooks=hooks), prompt("go", "u"))
            await host.until("control_request/hook_callback")
            await host.tell(host.ask("i", "interrupt"))
            result = await host.until("result")
            assert result["terminal_reason"] == "aborted_streaming"
        assert len(host.of("control_request")) == 1

    backend.run(main)
    assert begun == []


# --- authors


@every_backend
def test_a_turn_that_is_over_asks_its_host_nothing(backend: Backend) -> None:
    asked: list[Any] = []

    async def go_on(turn: Turn, over: anyio.Event) -> None:
        await over.wait()
        use = await turn.use_tool("Bash")
        asked.append((await turn.allowed(use)).ok)
        asked.append((await turn.hook("PreToolUse", tool_name="Bash")).outputs)
        asked.append((await turn.call_mcp("calc", "add")).is_error)
        asked.append((await turn.elicit("Who are you?")).action)
        asked.append((await turn.run_tool("Bash", {}, asked.append)).ran)

    async def main() -> None:
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

    backend.run(main)
    assert asked == [False, [], True, "cancel", False]


def test_an_interrupted_turn_that_goes_on_asks_its_host_nothing() -> None:
    decisions: list[Decision] = []

    async def answer(turn: Turn) -> None:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            decisions.append(await turn.allowed(ToolUseBlock(id="t", name="Bash", input={})))

    async def main() -> None:
        async with hosted(Agent(answer, options=ASKING)) as host:
            await host.tell(initialize(hooks={"Stop": [{"hookCallbackIds": ["s"]}]}), prompt("go"))
            await host.until("system/init")
            await host.tell(host.ask("i", "interrupt"))
            await host.until("result/error_during_execution")
        assert host.of("control_request") == []

    ASYNCIO.run(main)
    assert [decision.ok for decision in decisions] == [False]


@every_backend
def test_a_result_that_no_json_has_is_an_error(backend: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    async def answer(turn: Turn) -> ResultSuccess:
        return ResultSuccess(is_error=False, structured_output=object() if turn.text == "bad" else 1)

    async def main() -> None:
        async with hosted(Agent(answer)) as host:
            await host.tell(prompt("bad", "a"))
            await host.until("result/error_during_execution")
            await host.tell(prompt("good", "b"))
        results = host.of("result")
        assert [(result["subtype"], result["result_index"]) for result in results] == [
            ("error_during_execution", 0),
            ("success", 1),
        ]

    backend.run(main)
    assert "EncodeError" in capsys.readouterr().err


@every_backend
def test_a_function_that_exits_has_failed(backend: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(turn: Turn) -> None:
        sys.exit(3)

    async def main() -> None:
        async with hosted(Agent(answer)) as host:
            await host.tell(prompt("go"))
        assert host.code == 1
        assert [result["errors"] for result in host.of("result")] == [["SystemExit: 3"]]

    backend.run(main)
    assert "sys.exit(3)" in capsys.readouterr().err


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio cannot tell who was cancelled")
def test_a_function_whose_awaited_task_was_cancelled_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    async def answer(turn: Turn) -> None:
        task = asyncio.create_task(anyio.sleep_forever())
        task.cancel()
        await task

    async def main() -> None:
        async with hosted(Agent(answer)) as host:
            await host.tell(prompt("go"))
        assert host.of("result")[0]["errors"] == ["CancelledError: "]

    ASYNCIO.run(main)
    assert "await task" in capsys.readouterr().err


@every_backend
def test_a_plain_function_has_subagents(backend: Backend) -> None:
    def answer(turn: Any) -> None:
        use = turn.use_tool("Task", {})
        with turn.subagent(use) as helper:
            helper.say("found")
        turn.tool_result(use, "found")

    async def main() -> None:
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

    backend.run(main)
