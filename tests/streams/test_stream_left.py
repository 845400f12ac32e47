"""MessageStream releases everything however it ends. It belongs to one event loop and one process."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import pytest

import claude_wire.streams.sources as sources_module
from async_backends import ASYNCIO, TRIO, UVLOOP, Backend, every_asyncio, every_backend
from claude_wire import Decoder, HandleError, MessageStream
from claude_wire.native.drain import Drain
from claude_wire.streams.sources import PipeChunks
from stream_sources import (
    RESULT,
    collect,
    descriptors,
    every_source,
    leave_by_block,
    numbered,
    opened_since,
    turns,
    until_it_waits,
)

pytestmark = pytest.mark.usefixtures("no_descriptor_leaks")


# --- a stream releases everything, however it ends --------------------------------------------------------------------


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The running asyncio loop, or None."""
    with suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None


async def settle() -> None:
    """Collect garbage, and run the loop until it has processed the consequences."""
    gc.collect()
    await turns()
    gc.collect()


async def assert_usable(count: int = 6) -> None:
    """Check that a task can wait for new descriptors, even if they reuse numbers that the loop has watched before."""
    pairs = [os.pipe() for _ in range(count)]
    loop = running_loop()
    for readable, writable in pairs:
        if loop is None:
            os.write(writable, b"x")
            await anyio.wait_readable(readable)
        else:
            woken = asyncio.Event()
            loop.add_reader(readable, woken.set)
            # The callback must not run before bytes are written.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not woken.is_set()
            os.write(writable, b"x")
            await woken.wait()
            loop.remove_reader(readable)
    for pair in pairs:
        for number in pair:
            os.close(number)


async def leave_by_break(stream: MessageStream[Any]) -> None:
    async for _ in stream:
        break


async def leave_by_exception(stream: MessageStream[Any]) -> None:
    with suppress(KeyError):
        async for _ in stream:
            raise KeyError


async def leave_at_end(stream: MessageStream[Any]) -> None:
    async for _ in stream:
        pass


async def leave_untouched(stream: MessageStream[Any]) -> None:
    pass


async def leave_while_waiting(stream: MessageStream[Any]) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(collect, stream)
        await until_it_waits()
        group.cancel_scope.cancel()


async def leave_in_a_cycle(stream: MessageStream[Any]) -> None:
    await anext(stream)
    cycle = [stream]
    cycle.append(cycle)


LEAVES = [
    leave_by_break,
    leave_by_exception,
    leave_by_block,
    leave_at_end,
    leave_untouched,
    leave_while_waiting,
    leave_in_a_cycle,
]


@pytest.mark.parametrize("leave", LEAVES)
# trio warns about every unfinished generator. Here the test itself drops some.
@pytest.mark.filterwarnings("ignore:Async generator 'stream_sources.generate':ResourceWarning")
@every_source("pipe", "socket", "terminal", "file", "generator", "iterable", "stream-reader", "anyio-tcp")
def test_leaving_it_leaves_nothing_behind(backend: Backend, source: Any, leave: Any, tmp_path: Path) -> None:
    async def main() -> None:
        await once()  # the loop opens its permanent descriptors now
        await settle()
        before = descriptors()
        for _ in range(2):
            await once()
            await settle()
            assert opened_since(before) == {}
            await assert_usable()

    async def once() -> None:
        async with source([RESULT * 3, RESULT[:-1]], tmp_path) as opened:
            await leave(MessageStream(opened))

    backend.run(main)


@every_backend
async def test_a_stream_may_be_dropped_in_another_thread_while_the_loop_waits() -> None:
    await anyio.to_thread.run_sync(int)
    await settle()
    before = descriptors()
    for in_a_cycle in (False, True):
        for _ in range(20):
            readable, writable = os.pipe()
            os.write(writable, RESULT)
            holder: list[Any] = [MessageStream(readable)]
            await anext(holder[0])
            if in_a_cycle:
                holder[0].cycle = holder[0]
            await anyio.to_thread.run_sync(lambda holder: (holder.clear(), gc.collect()), holder)
            os.write(writable, RESULT)  # this wakes a loop that still watches the descriptor
            os.close(readable)
            os.close(writable)
            await assert_usable(3)
    await settle()
    assert opened_since(before) == {}


@every_asyncio
async def test_the_number_of_a_dropped_stream_is_not_used_again_before_the_loop_forgets_it() -> None:
    loop = asyncio.get_running_loop()
    for in_a_cycle, more in itertools.product((False, True), range(3)):
        readable, writable = os.pipe()
        os.write(writable, RESULT)
        holder: list[Any] = [MessageStream(readable)]
        await anext(holder[0])
        if in_a_cycle:
            holder[0].cycle = holder[0]
        # A thread drops the stream while the loop is busy. The loop then watches new pipes before it learns of the
        # drop.
        thread = threading.Thread(target=lambda holder: (holder.clear(), gc.collect()), args=[holder])
        thread.start()
        thread.join()
        # this shifts the numbers, so each one is the readable end of a pipe in some run
        others = [os.dup(readable) for _ in range(more)]
        pairs = [os.pipe() for _ in range(4)]
        woken = [asyncio.Event() for _ in pairs]
        for pair, event in zip(pairs, woken, strict=True):
            loop.add_reader(pair[0], event.set)
        await until_it_waits()
        for pair, event in zip(pairs, woken, strict=True):
            assert not event.is_set()
            os.write(pair[1], b"x")
            await event.wait()
            loop.remove_reader(pair[0])
        for number in (readable, writable, *others, *itertools.chain(*pairs)):
            os.close(number)


async def test_a_loop_that_runs_is_told_to_forget_a_stream_in_its_own_thread_only() -> None:
    loop = asyncio.get_running_loop()
    remove, threads = loop.remove_reader, set[int]()

    def remove_reader(fd: Any) -> bool:
        threads.add(threading.get_ident())
        return remove(fd)

    loop.remove_reader = remove_reader
    readable, writable = os.pipe()
    os.write(writable, RESULT)
    holder: list[Any] = [MessageStream(readable)]
    await anext(holder[0])
    await anyio.to_thread.run_sync(holder.clear)
    await settle()
    assert threads == {threading.get_ident()}
    os.close(readable)
    os.close(writable)


@every_asyncio
async def test_a_task_that_nobody_holds_is_not_collected_while_it_waits() -> None:
    readable, writable = os.pipe()
    found: list[Any] = []

    async def read(stream: MessageStream[Any]) -> None:
        async for message in stream:
            found.append(message["n"])

    asyncio.get_running_loop().create_task(read(MessageStream(readable, Decoder(dict))))
    for n in range(3):
        await until_it_waits()
        gc.collect()
        os.write(writable, numbered(n, n + 1))
    os.close(writable)
    os.close(readable)
    while len(found) < 3:
        await asyncio.sleep(0.001)
    assert found == [0, 1, 2]


@every_backend
async def test_a_stream_that_nobody_holds_does_not_live_on_in_the_loop() -> None:
    readable, writable = os.pipe()
    before = descriptors()
    stream = MessageStream(readable)
    gone = weakref.ref(stream)
    os.write(writable, RESULT)
    await anext(stream)
    # The pipe stays open and silent, so nothing wakes the loop.
    del stream
    gc.collect()
    assert gone() is None
    assert opened_since(before) == {}
    os.close(readable)
    os.close(writable)


@every_asyncio
def test_a_loop_that_nobody_reads_in_sleeps_and_does_not_spin(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe that stays readable must not wake the loop. A callback in every turn would keep the loop from sleeping."""
    woken = 0
    readable_callback = sources_module._AsyncioWaiter.readable

    def counted(waiter: Any) -> None:
        nonlocal woken
        woken += 1
        readable_callback(waiter)

    monkeypatch.setattr(sources_module._AsyncioWaiter, "readable", counted)

    async def main() -> None:
        nonlocal woken
        readable, writable = os.pipe()
        async with MessageStream(readable, Decoder(dict)) as stream:
            for n in range(3):
                os.write(writable, numbered(n, n + 1))
                assert (await anext(stream))["n"] == n
            # Write more than the stream reads ahead, to keep the pipe readable.
            for n in range(3, 40):
                os.write(writable, numbered(n, n + 1))
                await asyncio.sleep(0)
            assert woken
            # The loop polls its descriptors in each turn. When it finds one without a reader, it stops watching it.
            for _ in range(10):
                await asyncio.sleep(0)
            woken = 0
            for _ in range(1000):
                await asyncio.sleep(0)
            assert woken == 0
            for n in range(3, 40):
                assert (await anext(stream))["n"] == n
        os.close(readable)
        os.close(writable)

    backend.run(main)


@every_backend
async def test_what_comes_in_the_moment_of_closing_is_not_given() -> None:
    """Closing the stream ends a waiting step, even if the source returns a chunk at that moment."""
    asked, go = anyio.Event(), anyio.Event()

    class Late:
        def __aiter__(self) -> Late:
            return self

        async def __anext__(self) -> bytes:
            asked.set()
            with anyio.CancelScope(shield=True):
                await go.wait()
            return RESULT

    stream = MessageStream(Late())
    ended = False

    async def step() -> None:
        nonlocal ended
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        ended = True

    async with anyio.create_task_group() as group:
        group.start_soon(step)
        await asked.wait()
        await stream.aclose()
        go.set()
    assert ended
    assert stream.stats.messages == 0


class EndedJustNow(Drain):
    """A drain whose writer writes its last bytes and ends just before the drain notices the end."""

    def __init__(self, fd: int, last: Callable[[], object]) -> None:
        super().__init__(fd)
        self._last: Callable[[], object] | None = last

    @property
    def watched(self) -> bool:
        ended: bool = Drain.watched.__get__(self)
        if ended and self._last is not None:
            self._last()
            self._last = None
        return ended

    @watched.setter
    def watched(self, ended: bool) -> None:
        Drain.watched.__set__(self, ended)


@every_backend
def test_what_a_process_wrote_last_is_read_though_its_end_was_seen_first(backend: Backend) -> None:
    """Another process keeps the pipe open, so it has no end, and the last bytes arrive after the last read."""
    readable, writable = os.pipe()
    alive, dead = os.pipe()

    async def main() -> None:
        drain = EndedJustNow(readable, lambda: os.write(writable, b"last"))
        chunks = PipeChunks(drain)
        drain.watch(alive)

        async def end() -> None:
            await anyio.wait_all_tasks_blocked()
            os.close(dead)

        async with anyio.create_task_group() as group:
            group.start_soon(end)
            assert bytes(await chunks.receive()) == b"last"
        assert bytes(await chunks.receive()) == b""
        await chunks.aclose()

    backend.run(main)
    for number in (readable, writable, alive):
        os.close(number)


@every_asyncio
def test_closing_a_loop_with_streams_in_it_leaves_nothing_behind(backend: Backend) -> None:
    kept: list[Any] = []

    async def main(numbers: list[int]) -> None:
        for number in numbers:
            kept.append(MessageStream(number))
            with anyio.move_on_after(0.001):
                await anext(kept[-1])

    before = descriptors()
    pairs = [os.pipe() for _ in range(4)]
    backend.run(main, [readable for readable, _ in pairs])
    # Drop one stream after its loop has closed, and one inside another loop.
    kept.pop()

    async def drop() -> None:
        kept.pop()
        gc.collect()
        await kept.pop().aclose()
        await assert_usable()

    backend.run(drop)
    kept.clear()
    gc.collect()
    for pair in pairs:
        for number in pair:
            os.close(number)
    assert opened_since(before) == {}


# --- one loop, one process --------------------------------------------------------------------------------------------


@every_asyncio
def test_a_stream_belongs_to_the_loop_in_which_it_was_first_read(backend: Backend) -> None:
    readable, writable = os.pipe()
    stream = MessageStream(readable, Decoder(dict))

    async def step() -> Any:
        return await anext(stream)

    async def close() -> None:
        await stream.aclose()

    os.write(writable, numbered(0, 1))
    assert backend.run(step)["n"] == 0
    for other in (ASYNCIO, UVLOOP):
        with pytest.raises(HandleError, match="event loop"):
            other.run(step)
    with pytest.raises(RuntimeError):
        TRIO.run(step)
    backend.run(close)
    os.close(readable)
    os.close(writable)


@every_asyncio
def test_a_loop_may_stop_and_run_on_between_steps(backend: Backend) -> None:
    # A synchronous program may run its loop for only one step at a time.
    loop = pytest.importorskip("uvloop").new_event_loop() if backend is UVLOOP else asyncio.new_event_loop()
    readable, writable = os.pipe()
    stream = MessageStream(readable, Decoder(dict))

    async def step() -> Any:
        return await anext(stream)

    for n in range(10):
        os.write(writable, numbered(n, n + 1))
        assert loop.run_until_complete(step())["n"] == n
    loop.run_until_complete(stream.aclose())
    loop.close()
    os.close(readable)
    os.close(writable)


@every_backend
def test_a_stream_may_be_closed_after_its_loop(backend: Backend) -> None:
    readable, writable = os.pipe()
    os.write(writable, RESULT)

    async def main() -> MessageStream[Any]:
        stream = MessageStream(readable)
        await anext(stream)
        return stream

    with suppress(StopIteration):
        backend.run(main).aclose().__await__().send(None)
    assert os.get_blocking(readable)  # the stream has restored the blocking mode
    os.close(readable)
    os.close(writable)


def in_child(action: Callable[[], object]) -> int:
    """Run ``action`` in a forked child and return its exit code: 0, or 1 if an exception came out."""
    with warnings.catch_warnings():
        # Python warns about a fork with threads, which this test needs
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 1
        unraisable: list[Any] = []
        sys.unraisablehook = unraisable.append
        try:
            action()
            gc.collect()
            assert unraisable == []
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@every_backend
async def test_a_forked_child_cannot_iterate_and_its_parent_goes_on(backend: Backend) -> None:
    readable, writable = os.pipe()
    streams = [MessageStream(readable, Decoder(dict))]

    def use() -> None:
        # On trio the child is still inside the parent's run.
        step = collect(streams[0])
        with pytest.raises(HandleError, match=r"process|fork"):
            # trio's run continues in the child, so a single step is enough
            next(step.__await__()) if backend is TRIO else asyncio.run(step)

    def drop() -> None:
        streams.clear()
        gc.collect()

    def close() -> None:
        with suppress(StopIteration, HandleError):
            streams[0].aclose().__await__().send(None)

    assert in_child(use) == 0  # before the first step of the stream
    n = 0
    for action in (use, drop, close):
        for _ in range(2):
            os.write(writable, numbered(n, n + 1))
            assert (await anext(streams[0]))["n"] == n
            n += 1
            assert in_child(action) == 0
        # Fork while a task of the parent waits, too. The child's actions must not stop the parent from being woken.
        async with anyio.create_task_group() as group:
            found: list[Any] = []

            async def read(found: list[Any] = found) -> None:
                found.append(await anext(streams[0]))

            group.start_soon(read)
            await until_it_waits()
            if action is not use:
                assert in_child(action) == 0
            os.write(writable, numbered(n, n + 1))
        assert found[0]["n"] == n
        n += 1
    await streams[0].aclose()
    os.close(readable)
    os.close(writable)
