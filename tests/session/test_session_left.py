"""A session that ends leaves no task, descriptor, thread or child process behind."""

from __future__ import annotations

import asyncio
import gc

import anyio
import anyio.lowlevel
import pytest

from async_backends import Backend, every_backend
from children import ASKS, exists, linux_only, nothing_left, python, wait_until
from claude_wire import CanUseToolRequest, ResultMessage, open_session
from claude_wire.messages import McpStatusRequest, PermissionResult
from session_peer import ASKING_CHILD, Peer, allow, numbered, opened_for_questions, rest

pytestmark = pytest.mark.usefixtures("nothing_is_queued")


def living_tasks(backend: Backend) -> int:
    if backend.name == "trio":
        import trio

        return trio.lowlevel.current_statistics().tasks_living

    return len(asyncio.all_tasks())


@every_backend
@pytest.mark.parametrize("how", ["closed", "left by an exception", "cancelled", "iterating", "asking"])
async def test_no_task_is_left(backend: Backend, how: str) -> None:
    before = living_tasks(backend)

    async def forever(request: CanUseToolRequest) -> PermissionResult:
        await anyio.sleep_forever()
        return request.allow()

    async def use() -> None:
        peer = Peer()
        async with opened_for_questions(peer, can_use_tool=forever, callback_timeout=1000) as (_, session):
            peer.say(Peer.permission("p"), numbered(1))
            await anyio.wait_all_tasks_blocked()
            if how == "left by an exception":
                raise ValueError("of the host")
            if how == "iterating":
                async for _ in session:
                    break
            if how == "asking":
                await session.request(McpStatusRequest())
            if how == "cancelled":
                await rest(session)

    if how in ("cancelled", "asking"):
        async with anyio.create_task_group() as group:
            group.start_soon(use)
            await anyio.wait_all_tasks_blocked()
            await anyio.sleep(0.02)
            group.cancel_scope.cancel()
    elif how == "left by an exception":
        with pytest.raises(ValueError, match="of the host"):
            await use()
    else:
        await use()
    with anyio.fail_after(60):
        while living_tasks(backend) > before:
            await anyio.lowlevel.checkpoint()


#: Asks for permission behind so many messages; the result comes with the answer.
@linux_only
@every_backend
@pytest.mark.parametrize("how", ["to its end", "broken off", "cancelled", "raised"])
def test_a_process_leaves_no_descriptor_thread_or_child(backend: Backend, how: str) -> None:
    async def main() -> None:
        async with open_session(python(ASKING_CHILD, 50, *ASKS), can_use_tool=allow) as session:
            await session.query("x")
            if how == "raised":
                raise ValueError("of the host")
            async for message in session:
                if how == "broken off":
                    break
                if how == "cancelled":
                    scopes[0].cancel()
                if how == "to its end" and isinstance(message, ResultMessage):
                    await session.end_input()

    async def cancelled() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await main()

    scopes: list[anyio.CancelScope] = []
    with nothing_left():
        if how == "raised":
            with pytest.raises(ValueError, match="of the host"):
                backend.run(main)
        else:
            backend.run(cancelled)


@linux_only
def test_a_session_that_is_dropped_with_its_closed_loop_ends_its_process() -> None:
    """The loop closes while a task iterates over the session, and the task is never cancelled."""
    pids: list[int] = []

    async def use() -> None:
        async with open_session(python(ASKING_CHILD)) as session:
            pids.append(session.process.pid)
            await rest(session)

    async def leave() -> None:
        task = asyncio.ensure_future(use())
        setattr(task, "_log_destroy_pending", False)  # noqa: B010 - as asyncio's own code does; it has no type
        while not pids:
            await asyncio.sleep(0.001)
        await anyio.wait_all_tasks_blocked()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.close()
    del loop
    gc.collect()
    wait_until(lambda: not exists(pids[0]))
