"""Our own host against our own agent in each dialect, under any interleaving.

The promises: each prompt is in exactly one turn, unless the agent refuses it, each turn has one result, and the host's
run ends soon after the agent's work. A script runs in one event loop, in virtual time.

``CLAUDE_WIRE_LONG=1`` runs more of them.
"""

from __future__ import annotations

import os
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from claude_wire import ClaudeOptions, InterruptRequest, RequestError, ResultMessage, Session
from claude_wire.agent import Agent, Turn
from claude_wire.dialects import CLASSIC, JSON_RPC, MIRIAD, STREAM_JSON, Dialect
from claude_wire.testing import open_agent
from virtual_time import VirtualBackend, every_virtual_backend

EXAMPLES = 1_000 if os.environ.get("CLAUDE_WIRE_LONG") else 60
ALL = [STREAM_JSON, CLASSIC, MIRIAD, JSON_RPC]
#: Longest virtual time that all work takes, in seconds.
LONGEST = 1_000


class Author:
    """The function of an agent, and the prompts of each of its turns."""

    def __init__(self) -> None:
        self.turns: list[list[str]] = []

    async def answer(self, turn: Turn) -> None:
        texts = turn.text.split()
        self.turns.append(texts)
        for text in list(texts):
            if text.startswith("slow"):
                await turn.say("half")
                await anyio.sleep(3)
            elif text.startswith("tool"):
                await turn.run_tool("read", {}, read)
                await anyio.sleep(0.3)
                for one in await turn.injected():
                    texts += one.text.split()
            elif text.startswith("crash"):
                raise ValueError(text)
        await turn.say("done")


async def read(given: dict[str, Any]) -> str:
    return "contents"


class World:
    """A host, and what it has sent and got."""

    def __init__(self, session: Session, dialect: Dialect) -> None:
        self.session = session
        self.dialect = dialect
        self.sent: list[str] = []
        self.results: list[ResultMessage] = []

    async def query(self, how: str) -> None:
        text = f"{how}{len(self.sent)}"
        self.sent.append(text)
        await self.session.query(text)

    async def interrupt(self) -> None:
        if self.dialect is not CLASSIC:  # which has SIGINT alone
            await self.session.request(InterruptRequest())

    async def status(self) -> None:
        if self.dialect in (MIRIAD, JSON_RPC):
            assert isinstance((await self.session.status()).running, bool)

    async def take(self) -> None:
        async for message in self.session.receive_run():
            if isinstance(message, ResultMessage):
                self.results.append(message)


def action(name: str, *arguments: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *arguments)


HOW = st.sampled_from(["quick", "slow", "tool", "crash"])
SECONDS = st.sampled_from([0.0, 0.05, 0.5, 10.0])
STEPS = st.one_of(
    action("query", HOW),
    action("query", HOW),
    action("interrupt"),
    action("status"),
    action("take"),
    action("sleep", SECONDS),
    action("sleep", SECONDS),
)


async def play(dialect: Dialect, script: list[tuple[Any, ...]]) -> None:
    author = Author()
    options = ClaudeOptions(permission_prompt_tool="stdio")
    callbacks: dict[str, Any] = {}
    if dialect.permission != "never":
        callbacks["can_use_tool"] = lambda request: request.allow()
    async with open_agent(Agent(author.answer, dialect=dialect), options, **callbacks) as session:
        world = World(session, dialect)
        for name, *arguments in script:
            if name == "sleep":
                await anyio.sleep(*arguments)
            else:
                try:
                    await getattr(world, name)(*arguments)
                except RequestError:
                    assert name == "interrupt"
        with anyio.fail_after(LONGEST):
            await world.take()
    begun = [text for turn in author.turns for text in turn]
    assert len(begun) == len(set(begun))
    refused = [one for one in world.results if one.error is not None and one.error.code == "-32001"]
    assert len(begun) + len(refused) == len(world.sent)
    assert len(world.results) == len(author.turns) + len(refused)
    assert set(begun) <= set(world.sent)


@pytest.mark.parametrize("dialect", ALL, ids=[dialect.name for dialect in ALL])
@every_virtual_backend
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([("query", "slow"), ("query", "tool"), ("sleep", 0.5), ("interrupt",), ("query", "quick")])
@example([("query", "tool"), ("sleep", 0.05), ("query", "quick"), ("query", "crash"), ("sleep", 0.5), ("interrupt",)])
@given(st.lists(STEPS, max_size=10))
def test_each_prompt_is_in_one_turn_and_each_turn_has_one_result(
    virtual: VirtualBackend, dialect: Dialect, script: list[tuple[Any, ...]]
) -> None:
    virtual.run(play, dialect, script)
