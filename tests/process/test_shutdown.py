"""A process ends by the same steps however its block, its host or its event loop ends."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import patience
from async_backends import ASYNCIO, BACKENDS, Backend, every_asyncio, every_backend
from children import GRACE, LADDER, Host, exists, linux_only, python, wait_until
from claude_wire import Decoder, Process, ProcessError, open_process
from claude_wire.native.budget import DEFAULT_BYTE_BUDGET
from claude_wire.streams import set_byte_budget
from folders import SUPPORT
from ladders import Boom, Ladder, eventually_gone, watched

pytestmark = linux_only


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    with watched():
        yield


# --- ways out of the block on every loop ------------------------------------------------------------------------------


async def normally(ladder: Ladder) -> None:
    async with ladder.process() as process:
        await ladder.ready(process)
    assert process.returncode == {"eof": 0, "term": 143, "kill": -9}[ladder.ends_at]


async def by_break(ladder: Ladder) -> None:
    async with ladder.process() as process:
        async for message in process:
            ladder.pid = message["pid"]
            break


async def by_exception(ladder: Ladder) -> None:
    async def fail() -> None:
        async with ladder.process() as process:
            await ladder.ready(process)
            raise Boom

    with pytest.raises(Boom):
        await fail()


async def by_cancellation(ladder: Ladder) -> None:
    with anyio.CancelScope() as scope:
        async with ladder.process() as process:
            await ladder.ready(process)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught


async def by_cancellation_of_a_step(ladder: Ladder) -> None:
    with anyio.CancelScope() as scope:
        async with ladder.process() as process:
            await ladder.ready(process)
            async with anyio.create_task_group() as group:
                group.start_soon(process.__anext__)
                for _ in range(5):
                    await anyio.sleep(0)
                scope.cancel()
    assert scope.cancelled_caught


async def by_cancellation_of_a_send(ladder: Ladder) -> None:
    with anyio.CancelScope() as scope:
        async with ladder.process() as process:
            await ladder.ready(process)
            os.kill(process.pid, signal.SIGSTOP)
            async with anyio.create_task_group() as group:
                group.start_soon(process.send_bytes, b'{"text":"%s"}\n' % (b"x" * 1_000_000))
                for _ in range(5):
                    await anyio.sleep(0)
                os.kill(process.pid, signal.SIGCONT)
                scope.cancel()
    assert scope.cancelled_caught


async def by_deadline(ladder: Ladder) -> None:
    async def fail() -> None:
        async with ladder.process() as process:
            await ladder.ready(process)
            with anyio.fail_after(0.01):
                await process.wait()

    with pytest.raises(TimeoutError):
        await fail()


async def by_cancellation_while_it_is_ended(ladder: Ladder) -> None:
    async with anyio.create_task_group() as group, ladder.process() as process:
        await ladder.ready(process)

        async def cancel() -> None:
            while not ladder.met():  # until the child has seen the end of its input
                await anyio.sleep(0.001)
            group.cancel_scope.cancel()

        group.start_soon(cancel)
    assert group.cancel_scope.cancel_called


async def by_closing(ladder: Ladder) -> None:
    async with ladder.process() as process:
        await ladder.ready(process)
        await process.aclose()
        ladder.check()
        await process.aclose()


async def by_two_who_close(ladder: Ladder) -> None:
    """Both calls of aclose() return only after the process has ended."""

    async def close() -> None:
        await process.aclose()
        ladder.check()

    async with ladder.process() as process:
        await ladder.ready(process)
        async with anyio.create_task_group() as group:
            group.start_soon(close)
            group.start_soon(close)


async def by_two_who_close_of_whom_one_is_cancelled(ladder: Ladder) -> None:
    """Cancel the second call of aclose(), which is the one at the end of the block."""
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            async with ladder.process() as process:
                await ladder.ready(process)
                group.start_soon(process.aclose)
                while not process._exchange.child.closed:
                    await anyio.sleep(0)
                scope.cancel()
        ladder.check()


async def by_closing_while_another_task_iterates(ladder: Ladder) -> None:
    async def iterate() -> None:
        assert [message async for message in process] == []

    async with ladder.process() as process:
        await ladder.ready(process)
        async with anyio.create_task_group() as group:
            group.start_soon(iterate)
            for _ in range(5):
                await anyio.sleep(0)
            await process.aclose()


async def by_closing_a_generator(ladder: Ladder) -> None:
    async def messages() -> AsyncIterator[Any]:
        async with ladder.process() as process:
            async for message in process:
                yield message

    generator = messages()
    async for message in generator:
        ladder.pid = message["pid"]
        break
    await generator.aclose()


WAYS: list[Callable[[Ladder], Awaitable[None]]] = [
    normally,
    by_break,
    by_exception,
    by_cancellation,
    by_cancellation_of_a_step,
    by_cancellation_of_a_send,
    by_deadline,
    by_cancellation_while_it_is_ended,
    by_closing,
    by_two_who_close,
    by_two_who_close_of_whom_one_is_cancelled,
    by_closing_while_another_task_iterates,
    by_closing_a_generator,
]


@every_backend
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_however_the_block_is_left_one_that_ignores_everything_is_killed(
    way: Callable[[Ladder], Awaitable[None]], tmp_path: Path
) -> None:
    ladder = Ladder(tmp_path / "met")
    await way(ladder)
    ladder.check()


@every_backend
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_however_the_block_is_left_the_end_of_the_input_is_enough_for_most(
    way: Callable[[Ladder], Awaitable[None]], tmp_path: Path
) -> None:
    ladder = Ladder(tmp_path / "met", "eof", 30.0)
    await way(ladder)
    ladder.check()


@every_backend
async def test_sigterm_comes_when_the_end_of_the_input_was_not_enough(tmp_path: Path) -> None:
    ladder = Ladder(tmp_path / "met", "term", 1.0)
    await normally(ladder)
    ladder.check()


@every_backend
async def test_without_grace_it_is_killed_at_once_and_gone_at_the_end_of_the_block() -> None:
    for another in (False, True):
        async with anyio.create_task_group() as group:
            async with open_process(python("say(a=1); signal.pause()"), Decoder(dict), grace=0.0) as process:
                await process.__anext__()
                if another:  # another task has already started to close the process
                    group.start_soon(process.aclose)
                    while not process._exchange.child.closed:
                        await anyio.sleep(0)
            assert process.returncode in (-signal.SIGTERM, -signal.SIGKILL)
            assert not exists(process.pid)


@every_backend
@pytest.mark.parametrize("budget", [DEFAULT_BYTE_BUDGET, 1000])
def test_what_it_writes_while_it_is_ended_does_not_hold_it_up(backend: Backend, budget: int) -> None:
    """The child writes more than a pipe and the byte budget can hold, on both streams."""
    set_byte_budget(budget)
    code = """
say(type="ready")
while os.read(0, 65536):
    pass
for _ in range(64):
    os.write(1, b"x" * 65536)
    os.write(2, b"y" * 65536)
os.write(2, b"done")
"""

    async def main() -> None:
        async with open_process(python(code), Decoder(dict), grace=30.0) as process:
            await process.__anext__()
        assert process.returncode == 0
        assert process.stderr_tail == b"y" * (64 * 1024 - 4) + b"done"

    try:
        backend.run(main)
    finally:
        set_byte_budget(DEFAULT_BYTE_BUDGET)


@every_backend
async def test_its_end_by_us_is_no_error(tmp_path: Path) -> None:
    for ends_at in ("term", "kill"):
        ladder = Ladder(tmp_path / ends_at, ends_at, 0.05)
        await normally(ladder)


@every_backend
async def test_an_error_of_the_body_is_passed_on_as_it_is() -> None:
    with pytest.raises(ProcessError, match="code 3") as raised:
        async with open_process(python("sys.exit(3)"), Decoder(dict)) as process:
            await process.__anext__()
    assert raised.value.__context__ is None


# --- A process ends with its host when the host is interrupted, exits without closing it, or is killed ----------------


HOST = """
import anyio, asyncio
sys.path.append(sys.argv.pop())
import patience
patience.begin()
from claude_wire import Decoder, open_process
backend, child, grace = sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3])

async def main():
    async with open_process(child, Decoder(dict), grace=grace) as process:
        say(**await process.__anext__())
        {body}

anyio.run(main, backend="trio" if backend == "trio" else "asyncio", backend_options={options}.get(backend, {}))
"""


def host(backend: Backend, ladder: Ladder, body: str) -> Host:
    code = HOST.replace("{body}", body).replace("{options}", "{'uvloop': {'use_uvloop': True}}")
    argv = json.dumps(python(LADDER, ladder.path, ladder.ends_at))
    return Host(code, backend.id, argv, ladder.grace, SUPPORT)


@pytest.mark.parametrize("backend", BACKENDS, ids=[backend.id for backend in BACKENDS])
@pytest.mark.parametrize(
    "body",
    ["await anyio.sleep(3600)", "await process.__anext__()", "await process.wait()", "while True: pass"],
    ids=["sleeping", "iterating", "waiting", "busy"],
)
def test_a_host_that_is_interrupted_ends_it(backend: Backend, body: str, tmp_path: Path) -> None:
    if "while" in body and backend.name == "asyncio":
        pytest.skip("asyncio only cancels the main task at the first interrupt, which this one does not notice")
    ladder = Ladder(tmp_path / "met")
    with host(backend, ladder, body) as interrupted:
        ladder.pid = interrupted.says()["pid"]
        interrupted.interrupt()
        assert interrupted.ends() != 0
        ladder.check()
        # Before Python 3.11 the loop reports a CancelledError instead of the KeyboardInterrupt.
        assert b"KeyboardInterrupt" in interrupted.errors or sys.version_info < (3, 11)


@pytest.mark.parametrize("backend", BACKENDS, ids=[backend.id for backend in BACKENDS])
def test_a_host_that_is_interrupted_twice_leaves_no_orphan(backend: Backend, tmp_path: Path) -> None:
    # On trio the second interrupt ends the shutdown early; asyncio finishes the shutdown before it ends its loop.
    ladder = Ladder(tmp_path / "met", grace=30.0 if backend.name == "trio" else 1.0)
    with host(backend, ladder, "await anyio.sleep(3600)") as interrupted:
        ladder.pid = interrupted.says()["pid"]
        interrupted.interrupt()
        wait_until(lambda: ladder.met() != [])  # the shutdown has begun
        interrupted.interrupt()
        assert interrupted.ends() != 0
        eventually_gone(ladder)
        # Both the exit of the interpreter and the shutdown thread may have sent SIGTERM.
        met = ladder.met()
        assert met[:2] == ["eof", "term"]
        assert set(met[1:]) == {"term"}


@pytest.mark.parametrize("ends_at", ["eof", "term", "kill"])
@pytest.mark.parametrize("how", ["sys.exit(5)", "raise Boom", "return"])
def test_a_host_that_ends_with_a_process_that_nobody_closed_leaves_no_orphan(
    ends_at: str, how: str, tmp_path: Path
) -> None:
    ladder = Ladder(tmp_path / "met", ends_at)
    code = """
import asyncio
from claude_wire import Decoder, open_process
keep = []
class Boom(Exception): pass

async def main():
    process = open_process(json.loads(sys.argv[1]), Decoder(dict))
    keep.append(process)
    await process.__aenter__()
    say(**await process.__anext__())
    {how}

asyncio.run(main())
"""
    with Host(code.replace("{how}", how), json.dumps(python(LADDER, ladder.path, ends_at))) as ending:
        ladder.pid = ending.says()["pid"]
        assert ending.ends() == {"sys.exit(5)": 5, "raise Boom": 1, "return": 0}[how]
        assert not exists(ladder.pid)
        assert b"Exception ignored" not in ending.errors


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_host_that_is_killed_ends_one_that_ends_with_its_input(number: int, tmp_path: Path) -> None:
    ladder = Ladder(tmp_path / "met", "eof")
    with host(ASYNCIO, ladder, "await anyio.sleep(3600)") as killed:
        ladder.pid = killed.says()["pid"]
        os.kill(killed.popen.pid, number)
        assert killed.ends() == -number
        # The child has a new parent that may never collect its exit code, so check only that it saw the end of its
        # input.
        wait_until(lambda: ladder.met() == ["eof"])


# --- Ending a process when its event loop stops or closes, and when its last reference is dropped ---------------------


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
