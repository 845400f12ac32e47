"""Ending a process: close its input, then send SIGTERM, then SIGKILL.

However the block ends and however the child reacts, it leaves no zombie, orphan, descriptor or thread behind.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from async_backends import Backend, every_backend
from children import exists, linux_only, python
from claude_wire import Decoder, ProcessError, open_process
from claude_wire.native.budget import DEFAULT_BYTE_BUDGET
from claude_wire.streams import set_byte_budget
from ladders import Boom, Ladder, watched

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
