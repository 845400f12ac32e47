"""A session of ours and an agent of ours, joined in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import ByteSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from claude_wire import MessageStream, Session
from claude_wire.agent import Agent
from claude_wire.agent.service import Service

__all__ = ["joined"]


class _End(ByteSendStream):
    """Where an agent writes: what it writes is read by the session, as anyio has it, in other pieces."""

    def __init__(self, to: MemoryObjectSendStream[bytes]) -> None:
        self._to = to

    async def send(self, data: bytes) -> None:
        await self._to.send(data)

    async def aclose(self) -> None:
        await self._to.aclose()


@asynccontextmanager
async def joined(agent: Agent, **arguments: Any) -> AsyncIterator[Session]:
    """A session with an agent, not initialized. Behind the block the agent's input ends, and it is waited for."""
    to_agent, input = anyio.create_memory_object_stream[bytes](100)
    output: MemoryObjectReceiveStream[bytes]
    to_host, output = anyio.create_memory_object_stream[bytes](100)

    async def serve() -> None:
        with input, to_host:
            await Service(agent).run(input, _End(to_host))

    async with anyio.create_task_group() as group:
        group.start_soon(serve)
        try:
            async with MessageStream(output) as stream, Session(stream, to_agent.send, **arguments) as session:
                yield session
        finally:
            to_agent.close()
            with anyio.move_on_after(5, shield=True):
                async for _ in output:  # the agent ends when its host reads
                    pass
            output.close()
