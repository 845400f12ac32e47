"""Print how many bytes of memory an idle session takes: ``idle_sessions.py LOOP``.

It opens a thousand sessions in one process, without child processes or pipes, and prints how much the process grew per
session.
"""

from __future__ import annotations

import gc
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio

import claude_wire

SESSIONS = 1_000


def resident() -> int:
    """Return this process's resident memory in bytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def held() -> float:
    """Return how many bytes of memory a session takes. Each session has a task that waits for the next message."""

    async def send(line: bytes) -> None:
        raise AssertionError("nothing is asked")

    async def allow(request: claude_wire.CanUseToolRequest) -> claude_wire.messages.PermissionResult:
        return request.allow()

    async with AsyncExitStack() as stack, anyio.create_task_group() as group:

        async def iterate(session: claude_wire.Session) -> None:
            async for _ in session:
                pass

        async def open(count: int) -> None:
            for _ in range(count):
                output, source = anyio.create_memory_object_stream[bytes]()
                stack.enter_context(output)
                stack.enter_context(source)
                session = claude_wire.Session(claude_wire.MessageStream(source), send, can_use_tool=allow)
                group.start_soon(iterate, await stack.enter_async_context(session))
            await anyio.sleep(0.5)

        await open(10)  # a few sessions first: one-time allocations must not count
        before = resident()
        await open(SESSIONS)
        after = resident()
        group.cancel_scope.cancel()
    return (after - before) / SESSIONS


if __name__ == "__main__":
    print(anyio.run(held, backend=sys.argv[1]))
