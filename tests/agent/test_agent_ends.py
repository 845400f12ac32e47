"""An agent ends when it is told to, whatever its author's lifespan does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from agent_host import Host
from claude_wire.agent import Agent, AgentSession, Turn
from virtual_time import VirtualBackend, every_virtual_backend


async def answer(turn: Turn) -> None:
    pass


@pytest.mark.parametrize("when", ["begins", "ends"])
@every_virtual_backend
def test_a_lifespan_that_waits_for_ever_does_not_hold_up_a_signal(virtual: VirtualBackend, when: str) -> None:
    @asynccontextmanager
    async def lifespan(session: AgentSession) -> AsyncIterator[None]:
        if when == "begins":
            await anyio.sleep_forever()
        yield
        await anyio.sleep_forever()

    async def main() -> None:
        host = Host()
        async with anyio.create_task_group() as group:
            host.start(Agent(answer, lifespan=lifespan), group)
            await anyio.sleep(1)
            host.service.terminate()
        host.end()
        assert host.code == 143

    virtual.run(main)


@every_virtual_backend
def test_an_interrupt_by_signal_ends_an_agent_that_begins(virtual: VirtualBackend) -> None:
    @asynccontextmanager
    async def lifespan(session: AgentSession) -> AsyncIterator[None]:
        await anyio.sleep_forever()
        yield

    async def main() -> None:
        host = Host()
        async with anyio.create_task_group() as group:
            host.start(Agent(answer, lifespan=lifespan), group)
            await anyio.sleep(1)
            host.service.interrupt()
        host.end()
        assert host.code == 0

    virtual.run(main)
