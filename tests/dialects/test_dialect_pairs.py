"""A host and an agent of the same dialect, under any interleaving of what the host does.

The promises: no prompt is lost and none is answered twice, each request has its answer, and nothing waits without end.
A script runs in one event loop, in virtual time. ``CLAUDE_WIRE_LONG=1`` runs more of them.
"""

from __future__ import annotations

import os
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from claude_wire import CanUseToolRequest, InjectedMessage, PermissionResult, ResultMessage, Session, TurnError
from claude_wire.agent import Agent, Turn
from claude_wire.dialects import AUTO, CLASSIC, JSON_RPC, MIRIAD, STREAM_JSON, Dialect
from claude_wire.testing import open_agent
from dialect_peer import LinePeer
from virtual_time import VirtualBackend, every_virtual_backend

EXAMPLES = 2_000 if os.environ.get("CLAUDE_WIRE_LONG") else 60

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("prompt"), st.sampled_from(["quick", "slow", "tool", "crash"])),
        st.tuples(st.just("sleep"), st.sampled_from([0.0, 0.005, 0.02, 0.5, 2.0])),
        st.tuples(st.sampled_from(["interrupt", "status", "take"]), st.just("")),
    ),
    max_size=12,
)


async def author(turn: Turn) -> str:
    """Does what the first word of the prompt says. The result has the texts of all prompts of the turn."""
    said = [turn.text]
    how = turn.text.split()[0]
    if how == "slow":
        for _ in range(3):
            await turn.say("x ")
            await anyio.sleep(0.3)
    elif how == "tool":
        for _ in range(2):
            await turn.run_tool("Bash", {"command": "ls"}, ran)
            said += [one.text for one in await turn.injected()]
    elif how == "crash":
        raise ValueError("as the script says")
    await turn.say("done")
    return "\n".join(said)


async def ran(given: dict[str, Any]) -> str:
    await anyio.sleep(0.2)
    return "out"


async def decide(request: CanUseToolRequest) -> PermissionResult:
    await anyio.sleep(0.05)
    return request.allow() if len(request.input) == 1 else request.deny("why")


class World:
    """A host, and what it has sent and got."""

    def __init__(self, session: Session, dialect: Dialect) -> None:
        self.session = session
        self.dialect = dialect
        self.prompts: list[str] = []
        self.received: list[Any] = []

    async def do(self, act: str, how: str | float) -> None:
        session = self.session
        if act == "prompt":
            self.prompts.append(f"{how} {len(self.prompts)}")
            await session.query(self.prompts[-1], session_id="S")
        elif act == "sleep":
            await anyio.sleep(float(how))
        elif act == "interrupt" and not self.dialect.signals:
            await session.interrupt()
        elif act == "status" and self.dialect.has_status:
            status = await session.status()
            assert status.running in (True, False)
        elif act == "take" and not session._reading.run.over:
            self.received.append(await session.__anext__())

    async def check(self) -> None:
        self.received += [message async for message in self.session.receive_run(ceiling=None)]
        results = [message for message in self.received if isinstance(message, ResultMessage)]
        injected = sum(message.message_count for message in self.received if isinstance(message, InjectedMessage))
        assert len(results) + injected == len(self.prompts)
        if self.dialect is not MIRIAD:
            assert injected == 0
        answered = [text for result in results if result.ok for text in (result.result or "").split("\n") if text]
        assert len(answered) == len(set(answered))
        assert set(answered) <= set(self.prompts)
        if self.dialect.has_status:
            status = await self.session.status()
            assert status.running is False
        assert (await self.session.ask("quick last")).result == "quick last"
        with pytest.raises(TurnError):
            await self.session.ask("crash last")


@every_virtual_backend
@pytest.mark.parametrize("dialect", [CLASSIC, MIRIAD, JSON_RPC], ids=str)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@example(steps=[("prompt", "tool"), ("prompt", "quick"), ("prompt", "quick"), ("take", "")])
@example(steps=[("prompt", "slow"), ("sleep", 0.02), ("interrupt", ""), ("prompt", "slow"), ("interrupt", "")])
@example(steps=[("prompt", "slow"), ("prompt", "slow"), ("interrupt", ""), ("status", ""), ("interrupt", "")])
def test_each_host_understands_its_agent(
    virtual: VirtualBackend, dialect: Dialect, steps: list[tuple[str, str | float]]
) -> None:
    async def main() -> None:
        asked = decide if dialect is CLASSIC else None
        async with open_agent(Agent(author, dialect=dialect), can_use_tool=asked) as session:
            world = World(session, dialect)
            for act, how in steps:
                await world.do(act, how)
            await world.check()

    virtual.run(main)


@every_virtual_backend
def test_prompts_that_wait_in_the_queue_of_classic_are_waited_for(virtual: VirtualBackend) -> None:
    async def main() -> None:
        peer = LinePeer()
        async with peer.session(dialect=CLASSIC) as session, anyio.create_task_group() as group:
            for text in ("a", "b", "c"):
                await session.query(text)

            async def answer() -> None:
                peer.say({"type": "system", "subtype": "init", "session_id": "s"})
                for _ in range(3):
                    await anyio.sleep(1000)  # longer than a host waits for a turn that is announced
                    peer.say({"type": "result", "subtype": "success"})

            group.start_soon(answer)
            received = [message async for message in session.receive_run()]
            assert [isinstance(message, ResultMessage) for message in received] == [False, True, True, True]

    virtual.run(main)


@every_virtual_backend
def test_both_sides_may_leave_the_dialect_open(virtual: VirtualBackend) -> None:
    async def main() -> None:
        async with open_agent(Agent(author, dialect=AUTO)) as session:
            assert (await session.ask("tool 1")).result == "tool 1"
            assert (await session.ask("quick 2")).result == "quick 2"
            assert session._connection.dialect is STREAM_JSON

    virtual.run(main)
