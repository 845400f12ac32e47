"""Ending a process when its event loop stops or closes, and when its last reference is dropped.

In each case it leaves no zombie, orphan, descriptor or thread behind.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import patience
from async_backends import ASYNCIO, Backend, every_asyncio, every_backend
from children import GRACE, LADDER, exists, linux_only, python, wait_until
from claude_wire import Decoder, Process, open_process
from ladders import Boom, Ladder, eventually_gone, watched

pytestmark = linux_only


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    with watched():
        yield


# --- ways out of the block that only asyncio has ----------------------------------------------------------------------


async def in_block(ladder: Ladder, ready: asyncio.Event) -> None:
    async with ladder.process() as process:
        await ladder.ready(process)
        ready.set()
        await asyncio.sleep(3600)


async def started(ladder: Ladder) -> asyncio.Task[None]:
    ready = asyncio.Event()
    task = asyncio.ensure_future(in_block(ladder, ready))
    await ready.wait()
    return task


async def until_cancelled(task: asyncio.Task[None]) -> None:
    done, _ = await asyncio.wait([task])
    assert done == {task}
    assert task.cancelled()


async def cancelled_once(ladder: Ladder) -> None:
    task = await started(ladder)
    task.cancel()
    await until_cancelled(task)


async def cancelled_again_and_again(ladder: Ladder) -> None:
    task = await started(ladder)
    task.cancel()
    while not task.done():
        await asyncio.sleep(GRACE / 10)
        task.cancel()
    await until_cancelled(task)


async def cancelled_when_its_input_has_ended(ladder: Ladder) -> None:
    """Cancel the task during a normal shutdown, just before SIGTERM."""

    async def leave() -> None:
        async with ladder.process() as process:
            await ladder.ready(process)

    task = asyncio.ensure_future(leave())
    patience.before_sigterm.append(task.cancel)
    await until_cancelled(task)


async def cancelled_before_it_runs(ladder: Ladder) -> None:
    task = asyncio.ensure_future(in_block(ladder, asyncio.Event()))
    await asyncio.sleep(0)
    task.cancel()
    await until_cancelled(task)


async def wait_for(ladder: Ladder) -> None:
    seconds = 0.25
    while True:
        ready = asyncio.Event()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(in_block(ladder, ready), seconds)
        if ready.is_set():
            break
        ladder.path.unlink(missing_ok=True)  # the child was not ready in time: try again with more seconds
        seconds *= 2


async def timeout(ladder: Ladder) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("asyncio.timeout is new in Python 3.11")
    ready = asyncio.Event()

    async def expire() -> None:
        await ready.wait()
        deadline.reschedule(asyncio.get_running_loop().time())

    expiring = asyncio.ensure_future(expire())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as deadline:
            await in_block(ladder, ready)
    await expiring
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0
    await asyncio.sleep(0)


async def gathered(ladder: Ladder) -> None:
    ready = asyncio.Event()

    async def fail() -> None:
        await ready.wait()
        raise Boom

    gather = asyncio.gather(in_block(ladder, ready), fail())
    with pytest.raises(Boom):
        await gather
    (task,) = [task for task in asyncio.all_tasks() if "in_block" in repr(task.get_coro())]
    task.cancel()
    await until_cancelled(task)


@every_asyncio
@pytest.mark.parametrize(
    "way",
    [cancelled_once, cancelled_again_and_again, cancelled_when_its_input_has_ended, wait_for, timeout, gathered],
    ids=lambda way: way.__name__,
)
@pytest.mark.parametrize("ends_at", ["eof", "kill"])
def test_cancellation_by_asyncio_ends_it_by_the_same_steps(
    backend: Backend, way: Callable[[Ladder], Awaitable[None]], ends_at: str, tmp_path: Path
) -> None:
    if ends_at == "eof" and way is cancelled_when_its_input_has_ended:
        pytest.skip("it ends before it can be cancelled")

    async def main() -> None:
        ladder = Ladder(tmp_path / "met", ends_at, 30.0 if ends_at == "eof" else GRACE)
        await way(ladder)
        ladder.check()

    backend.run(main)


@every_asyncio
async def test_cancelled_at_its_first_wait_nothing_is_left(tmp_path: Path) -> None:
    await cancelled_before_it_runs(Ladder(tmp_path / "met"))


@every_asyncio
@pytest.mark.parametrize("ends_at", ["eof", "kill"])
def test_a_loop_that_ends_while_it_runs_ends_it(backend: Backend, ends_at: str, tmp_path: Path) -> None:
    """At the end of its main task, asyncio.run() cancels the remaining tasks."""
    ladder = Ladder(tmp_path / "met", ends_at, 30.0 if ends_at == "eof" else GRACE)
    keep: list[Any] = []

    async def main() -> None:
        keep.append(await started(ladder))

    backend.run(main)
    ladder.check()


@pytest.mark.parametrize("ends_at", ["eof", "kill"])
@pytest.mark.parametrize("close_loop", [False, True])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_coroutine_that_is_closed_without_a_running_loop_ends_it(
    close_loop: bool, ends_at: str, tmp_path: Path
) -> None:
    ladder = Ladder(tmp_path / "met", ends_at)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # silence asyncio's complaint about the pending task

    async def main() -> tuple[Any, asyncio.Task[None]]:
        ready = asyncio.Event()
        coroutine = in_block(ladder, ready)
        task = asyncio.ensure_future(coroutine)
        await ready.wait()
        return coroutine, task

    coroutine, task = loop.run_until_complete(main())
    if close_loop:
        loop.close()
    coroutine.close()
    eventually_gone(ladder)
    del task
    gc.collect()
    loop.close()


@every_backend
@pytest.mark.parametrize("ends_at", ["eof", "kill"])
@pytest.mark.parametrize("iterated", [False, True])
@pytest.mark.parametrize("callback", [False, True])
def test_one_that_is_dropped_is_ended(
    backend: Backend, ends_at: str, iterated: bool, callback: bool, tmp_path: Path
) -> None:
    ladder = Ladder(tmp_path / "met", ends_at)

    async def main() -> None:
        argv = python(LADDER, ladder.path, ends_at)
        process = open_process(argv, Decoder(dict), stderr=(lambda line: None) if callback else None, grace=GRACE)
        await process.__aenter__()
        ladder.pid = process.pid
        if iterated:
            await ladder.ready(process)
        del process
        gc.collect()
        while exists(ladder.pid):
            await anyio.sleep(0.001)

    backend.run(main)
    if iterated:  # without an iteration nothing reads "ready", and the child may have died before it
        ladder.check()


@every_backend
@pytest.mark.parametrize("ends_at", ["eof", "kill"])
@pytest.mark.parametrize("callback", [False, True])
def test_one_that_outlives_its_loop_is_ended_when_it_is_dropped(
    backend: Backend, ends_at: str, callback: bool, tmp_path: Path
) -> None:
    ladder = Ladder(tmp_path / "met", ends_at)
    kept: list[Process[Any]] = []

    async def main() -> None:
        argv = python(LADDER, ladder.path, ends_at)
        process = open_process(argv, Decoder(dict), stderr=(lambda line: None) if callback else None, grace=GRACE)
        kept.append(process)
        await process.__aenter__()
        await ladder.ready(process)
        with anyio.move_on_after(0.01):  # leave it waiting for another message
            await process.__anext__()

    backend.run(main)
    assert exists(ladder.pid)
    kept.clear()
    gc.collect()
    eventually_gone(ladder)
    ladder.check()


@pytest.fixture
def starved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every timed wait for a process time out."""
    wait = subprocess.Popen.wait

    def too_short(popen: subprocess.Popen[Any], timeout: float | None = None) -> int:
        if timeout is not None:
            raise subprocess.TimeoutExpired(popen.args, timeout)
        return wait(popen)

    monkeypatch.setattr(subprocess.Popen, "wait", too_short)


@every_backend
@pytest.mark.usefixtures("starved")
def test_one_that_is_dropped_and_takes_long_to_die_is_no_zombie(backend: Backend) -> None:
    async def main() -> int:
        process = open_process(python("signal.pause()"), Decoder(dict))
        await process.__aenter__()
        return process.pid

    pid = backend.run(main)
    gc.collect()
    wait_until(lambda: not exists(pid))


@pytest.mark.usefixtures("starved")
def test_one_that_cannot_be_used_and_takes_long_to_die_is_no_zombie(monkeypatch: pytest.MonkeyPatch) -> None:
    pids = []

    def fail(popen: subprocess.Popen[bytes]) -> None:
        pids.append(popen.pid)
        raise OSError("no such luck")

    monkeypatch.setattr("claude_wire.process.child.Stdin", fail)

    async def main() -> None:
        with pytest.raises(OSError, match="luck"):
            await open_process(python("signal.pause()"), Decoder(dict)).__aenter__()

    ASYNCIO.run(main)
    (pid,) = pids
    wait_until(lambda: not exists(pid))


@every_backend
def test_a_generator_that_is_left_and_dropped_ends_it(backend: Backend, tmp_path: Path) -> None:
    ladder = Ladder(tmp_path / "met")

    async def messages() -> AsyncIterator[Any]:
        async with ladder.process() as process:
            async for message in process:
                yield message

    async def main() -> None:
        async for message in messages():
            ladder.pid = message["pid"]
            break
        gc.collect()
        while exists(ladder.pid):
            await anyio.sleep(0.001)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # trio warns that the process was not closed
        backend.run(main)
    ladder.check()
