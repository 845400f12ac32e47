"""An agent ends on request, whatever its author's lifespan function does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from agent_host import Host
from claude_wire.agent import Agent, AgentSession, Turn
from claude_wire.agent.service import Service
from virtual_time import every_virtual_backend


async def answer(turn: Turn) -> None:
    pass


@pytest.mark.parametrize(
    ("when", "signal", "code"),
    [("begins", Service.terminate, 143), ("ends", Service.terminate, 143), ("begins", Service.interrupt, 0)],
    ids=["SIGTERM as it begins", "SIGTERM as it ends", "SIGINT as it begins"],
)
@every_virtual_backend
async def test_a_lifespan_that_waits_for_ever_does_not_hold_up_a_signal(
    when: str, signal: Callable[[Service], None], code: int
) -> None:
    @asynccontextmanager
    async def lifespan(session: AgentSession) -> AsyncIterator[None]:
        if when == "begins":
            await anyio.sleep_forever()
        yield
        await anyio.sleep_forever()

    host = Host()
    async with anyio.create_task_group() as group:
        host.start(Agent(answer, lifespan=lifespan), group)
        await anyio.sleep(1)
        signal(host.service)
    host.end()
    assert host.code == code
