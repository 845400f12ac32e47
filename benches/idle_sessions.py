"""Run as a program: how many bytes an idle session holds, its process and pipes aside. Its argument is the event loop.

It prints the bytes of memory by which a process grows for each of a thousand sessions, divided by their number.
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
    """Bytes of memory that this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def held() -> float:
    """Bytes of memory for each of many sessions that iterate, with nothing to receive."""

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

        await open(10)  # what is made once is made now
        before = resident()
        await open(SESSIONS)
        after = resident()
        group.cancel_scope.cancel()
    return (after - before) / SESSIONS


if __name__ == "__main__":
    print(anyio.run(held, backend=sys.argv[1]))
