"""The frames that a host receives for each act of an agent's turn, in order, on every loop."""

from __future__ import annotations

import os
from typing import Any

import anyio
import pytest

from agent_host import hosted, initialize, prompt
from async_backends import every_backend
from claude_wire.agent import Agent, AgentOptions, Turn
from claude_wire.messages import AssistantMessage, ResultMessage
from claude_wire.testing import open_agent

STREAMED = AgentOptions(include_partial_messages=True)
ASKING = AgentOptions(permission_prompt_tool="stdio")


@every_backend
async def test_a_turn_has_its_frames_in_the_order_of_the_cli() -> None:
    async def answer(turn: Turn) -> None:
        await turn.say(f"You said {turn.text}")

    async with hosted(Agent(answer, options=AgentOptions(replay_user_messages=True))) as host:
        await host.tell(prompt("hello", "u1"))
        await host.until("command_lifecycle/completed")
    assert host.code == 0
    assert host.kinds == [
        "command_lifecycle/queued",
        "command_lifecycle/started",
        "system/init",
        "user/replay",
        "assistant",
        "result/success",
        "command_lifecycle/completed",
    ]
    result = host.messages[5]
    assert result["result"] == "You said hello"
    assert result["user_message_uuids"] == ["u1"]


@every_backend
async def test_what_is_streamed_is_one_block() -> None:
    async def words() -> Any:
        yield "three "
        yield "four"

    async def answer(turn: Turn) -> None:
        await turn.stream("one ")
        await turn.stream("two ")
        await turn.stream(words())
        await turn.stream("five")

    async with hosted(Agent(answer, options=STREAMED)) as host:
        await host.tell(prompt("go"))
    block = ["stream_event/content_block_start", *["stream_event/content_block_delta"] * 4, "assistant"]
    assert host.kinds == [
        "system/init",
        "stream_event/message_start",
        *block,
        "stream_event/content_block_stop",
        "stream_event/content_block_start",
        "stream_event/content_block_delta",
        "assistant",
        "stream_event/content_block_stop",
        "stream_event/message_delta",
        "stream_event/message_stop",
        "result/success",
    ]
    said = [message["message"]["content"] for message in host.of("assistant")]
    assert said == [[{"type": "text", "text": "one two three four"}], [{"type": "text", "text": "five"}]]


@every_backend
async def test_a_tool_is_run_with_the_input_that_the_host_allows() -> None:
    ran: list[Any] = []

    async def shell(given: dict[str, Any]) -> str:
        ran.append(given)
        return "made"

    async def answer(turn: Turn) -> None:
        first = await turn.run_tool("Bash", {"command": "ls"}, shell)
        second = await turn.run_tool("Bash", {"command": "rm"}, shell)
        await turn.say(f"{first.ran} {second.ran} {second.content}")

    def decide(request: dict[str, Any]) -> dict[str, Any]:
        if request["input"]["command"] == "ls":
            return {"behavior": "allow", "updatedInput": {"command": "ls -l"}}
        return {"behavior": "deny", "message": "Not today"}

    async with hosted(Agent(answer, options=ASKING)) as host:
        host.answers = decide
        await host.tell(prompt("go"))
        await host.until("result")
    assert ran == [{"command": "ls -l"}]
    use = ["assistant", "control_request/can_use_tool", "user/tool_result"]
    assert host.kinds == ["system/init", *use, *use, "assistant", "result/success"]
    result = host.of("result")[0]
    assert result["result"] == "True False Not today"
    assert result["num_turns"] == 3
    assert [denial["tool_input"] for denial in result["permission_denials"]] == [{"command": "rm"}]
    allowed, denied = host.of("user")
    assert "tool_result_meta" not in allowed
    (meta,) = denied["tool_result_meta"]
    assert meta == {"id": denied["message"]["content"][0]["tool_use_id"], "permission_decision": {"decision": "reject"}}


@every_backend
async def test_prompts_that_wait_are_one_turn() -> None:
    async def answer(turn: Turn) -> str:
        return f"<{turn.text}>"

    async with hosted(Agent(answer)) as host:
        lines = [prompt("one", "a"), prompt("two", "b"), prompt([{"type": "text", "text": "three"}], "c")]
        await host.tell(initialize(), *lines)
    assert [message["result"] for message in host.of("result")] == ["<one>", "<two\nthree>"]
    assert host.of("result")[1]["user_message_uuids"] == ["b", "c"]


@every_backend
async def test_a_turn_waits_for_its_host_until_the_last_of_its_questions_has_an_answer() -> None:
    async def answer(turn: Turn) -> None:
        async def ask() -> None:
            await turn.elicit("Who are you?")
            await turn.say("There is an answer.")

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)

    async with hosted(Agent(answer, options=AgentOptions(reads_session_state=True))) as host:
        await host.tell(prompt("go"))
        await host.until("control_request", 2)
        for number, asked in enumerate(host.of("control_request"), 1):
            states = [message["state"] for message in host.of("system/session_state_changed")]
            assert states == ["running", "requires_action"]
            done = {"subtype": "success", "request_id": asked["request_id"], "response": {"action": "cancel"}}
            await host.tell({"type": "control_response", "response": done})
            await host.until("assistant", number)
    states = [message["state"] for message in host.of("system/session_state_changed")]
    assert states == ["running", "requires_action", "running", "idle"]


@every_backend
async def test_an_agent_serves_pipes() -> None:
    async def answer(turn: Turn) -> None:
        await turn.say("é\u2028" * 1000)

    from_host, to_agent = os.pipe()
    from_agent, to_host = os.pipe()
    os.write(to_agent, b'{"type":"user","message":{"role":"user","content":"hi"}}\n')
    os.close(to_agent)
    assert await Agent(answer).serve(from_host, to_host) == 0
    assert os.get_blocking(to_host) is True
    os.close(to_host)
    with open(from_agent, "rb") as file:
        lines = file.read().split(b"\n")
    assert len(lines) == 4
    assert b"\xe2\x80\xa8" not in lines[1]
    os.close(from_host)


# --- An agent's assistant message has every required field of the API's message ---------------------------------------


pytestmark = pytest.mark.anyio


async def test_an_assistant_message_has_the_counts_that_a_message_must_have() -> None:
    async def answer(turn: Turn) -> None:
        await turn.say("Hello")

    async with open_agent(Agent(answer)) as session:
        await session.query("Hi")
        said = [one async for one in session.receive_response() if isinstance(one, AssistantMessage)]
    (message,) = said
    assert message.message.usage is not None
    assert message.message.to_dict()["usage"] == {"input_tokens": 0, "output_tokens": 0}


async def test_the_usage_of_a_message_is_what_the_turn_was_told_before_it_was_said() -> None:
    async def answer(turn: Turn) -> None:
        turn.usage(input_tokens=100, output_tokens=7, cache_read_input_tokens=50)
        await turn.say("I will look.")
        use = await turn.use_tool("Read", {"file_path": "/a"})
        await turn.tool_result(use, "text")
        turn.usage(input_tokens=10)
        turn.usage(output_tokens=3)
        await turn.say("Done.")
        turn.usage(output_tokens=1)

    async with open_agent(Agent(answer)) as session:
        await session.query("Hi")
        said = [one async for one in session.receive_response()]
    messages = [one.message for one in said if isinstance(one, AssistantMessage)]
    first = {"input_tokens": 100, "output_tokens": 7, "cache_read_input_tokens": 50}
    assert [one.to_dict()["usage"] for one in messages[:2]] == [first, first]
    assert messages[2].to_dict()["usage"] == {"input_tokens": 10, "output_tokens": 3}
    (result,) = [one for one in said if isinstance(one, ResultMessage)]
    assert result.usage is not None
    assert (result.usage.input_tokens, result.usage.output_tokens) == (110, 11)
