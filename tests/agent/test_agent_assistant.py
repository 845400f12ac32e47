"""An agent's assistant message has all that the API's message must have."""

from __future__ import annotations

import pytest

from claude_wire.agent import Agent, Turn
from claude_wire.messages import AssistantMessage
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
