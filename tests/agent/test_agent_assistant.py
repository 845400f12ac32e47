"""An agent's assistant message has every required field of the API's message."""

from __future__ import annotations

import pytest

from claude_wire.agent import Agent, Turn
from claude_wire.messages import AssistantMessage, ResultMessage
from claude_wire.testing import open_agent

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
