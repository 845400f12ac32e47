"""The memory that a host can make an agent use is bounded, and no bound causes a deadlock."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import msgspec
import pytest

from agent_host import hosted, initialize, prompt
from claude_wire import Decoder
from claude_wire.agent import Agent, AgentOptions, AgentProtocol, AgentSession, Turn
from claude_wire.agent.protocol import MAX_PROMPT_BYTES, MAX_PROMPTS, MAX_UUIDS, Finished, InvalidInput
from claude_wire.agent.questions import MAX_HOOK_BYTES
from claude_wire.control.answers import MAX_TASKS
from claude_wire.messages import GetSettingsRequest
from virtual_time import every_virtual_backend


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(msgspec.json.encode(message) + b"\n" for message in messages)


def busy() -> AgentProtocol:
    """Return a protocol with a running turn."""
    protocol = AgentProtocol(AgentSession(AgentOptions(), "m"))
    protocol.feed(lines(prompt("begin")))
    return protocol


@every_virtual_backend
async def test_reading_stops_while_too_many_prompts_wait() -> None:
    async def answer(turn: Turn) -> None:
        await anyio.sleep(1)

    async with hosted(Agent(answer)) as host:
        for number in range(MAX_PROMPTS + 200):
            await host.tell(prompt(f"{number}"))
        await anyio.sleep(0.5)
        assert host.unread == 199
    assert [len(one["result"]) for one in host.of("result")] == [0] * 3


@every_virtual_backend
async def test_an_answer_behind_too_many_prompts_is_read() -> None:
    """A turn that waits for the host would hang if the agent stopped reading the host's answers."""

    async def answer(turn: Turn) -> str:
        if turn.text == "ask":
            use = await turn.use_tool("Bash", {})
            return str((await turn.allowed(use)).ok)
        return ""

    async with hosted(Agent(answer, options=AgentOptions(permission_prompt_tool="stdio"))) as host:
        await host.tell(prompt("ask"))
        question = await host.until("control_request")
        for number in range(MAX_PROMPTS + 200):
            await host.tell(prompt(f"{number}"))
        success = {"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}}
        await host.tell({"type": "control_response", "response": success})
        assert (await host.until("result"))["result"] == "True"


def test_prompts_that_wait_are_bounded_in_bytes() -> None:
    protocol = busy()
    large = "x" * (MAX_PROMPT_BYTES // 4)
    for _ in range(3):
        protocol.feed(lines(prompt(large)))
    assert not protocol.full()
    protocol.feed(lines(prompt(large)))
    assert protocol.full()
    assert not protocol.full(asking=True)
    assert protocol.inject()
    assert not protocol.full()


def test_uuids_of_prompts_are_bounded() -> None:
    protocol = busy()
    for number in range(MAX_UUIDS + 1):
        protocol.feed(lines(prompt("x", f"u{number}" + "long" * 50)))
        protocol.withdraw()
        protocol.drop_output()
    assert len(protocol._uuids) == MAX_UUIDS
    protocol.feed(lines(prompt("x", f"u{MAX_UUIDS}" + "long" * 50)))
    assert protocol.queued == []
    protocol.feed(lines(prompt("x", "u0" + "long" * 50)))
    assert len(protocol.queued) == 1


def test_prompts_that_ask_no_model_are_bounded() -> None:
    protocol = AgentProtocol(AgentSession(AgentOptions(), "m"))
    for number in range(MAX_PROMPTS + 10):
        protocol.feed(lines(prompt(f"{number}", shouldQuery=False)))
    protocol.feed(lines(prompt("go")))
    turn = protocol.turn
    assert turn is not None
    assert [one.text for one in turn.context] == [f"{number}" for number in range(10, MAX_PROMPTS + 10)]


@every_virtual_backend
async def test_reading_stops_while_too_many_requests_wait() -> None:
    waits = anyio.Event()

    async def settings(request: GetSettingsRequest) -> dict[str, Any]:
        await waits.wait()
        return {}

    async def answer(turn: Turn) -> None:
        pass

    async with hosted(Agent(answer, requests={GetSettingsRequest: settings})) as host:
        for number in range(MAX_TASKS + 100):
            await host.tell(host.ask(f"r{number}", "get_settings"))
        await anyio.sleep(1)
        assert 50 < host.unread <= 100
        waits.set()
        await host.until("control_response", MAX_TASKS + 100)


async def test_what_hooks_answer_is_bounded_and_too_much_refuses() -> None:
    """The agent must not drop an answer, because it may have denied the action."""
    tenth = MAX_HOOK_BYTES // 10

    async def answer(turn: Turn) -> str:
        assert sum(map(len, turn.hook_context)) < MAX_HOOK_BYTES
        hooked = await turn.hook("PreToolUse", tool_name="Bash")
        assert len(hooked.outputs) == 11
        assert 8 * tenth < sum(map(len, hooked.context)) < MAX_HOOK_BYTES
        return str(hooked.refusal)

    async with hosted(Agent(answer)) as host:
        host.answers = lambda request: {"hookSpecificOutput": {"additionalContext": "x" * tenth}}
        hooks = {
            "UserPromptSubmit": [{"hookCallbackIds": ["one"]}],
            "PreToolUse": [{"hookCallbackIds": [f"{number}" for number in range(11)]}],
        }
        await host.tell(initialize(hooks=hooks), prompt("go"))
        result = await host.until("result")
    assert result["result"] == "PreToolUse:Bash hook error: PreToolUse:Bash hook answered with too much"


async def test_of_several_initialize_the_last_one_is_kept() -> None:
    async def answer(turn: Turn) -> None: ...

    async with hosted(Agent(answer)) as host:
        for event in ("Stop", "PreToolUse"):
            await host.tell(initialize(hooks={event: [{"hookCallbackIds": [event]}]}, jsonSchema={"title": event}))
        await host.tell(initialize(systemPrompt="the last"))
        await host.until("control_response", 3)
        session = host.service.session
        assert session.initialize is not None
        assert session.initialize.to_dict() == {"subtype": "initialize", "systemPrompt": "the last"}
        assert session.hooks == {}
        assert session.schema == {"title": "PreToolUse"}


def test_a_line_that_is_too_long_to_keep_ends_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claude_wire.agent.protocol.Decoder", partial(Decoder, max_line_bytes=1000))
    protocol = AgentProtocol(AgentSession(AgentOptions(), "m"))
    events = protocol.feed(lines(initialize(systemPrompt="x" * 1000), prompt("go")))
    assert [type(event) for event in events] == [InvalidInput, Finished]
    assert protocol.code == 1
