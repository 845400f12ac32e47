"""Many concurrent processes, and many in succession.

On one loop 200 processes write 100 lines per second for 1 second; on each other loop 40 do. Another test opens and
closes 300 processes. With ``CLAUDE_WIRE_LONG=1`` every loop has 200 processes for 10 seconds, and 1,000 are opened.
"""

from __future__ import annotations

import gc
import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import async_backends
from async_backends import ASYNCIO, TRIO, Backend, backend_of, every_backend
from children import held, in_own_process, linux_only, python
from claude_wire import Decoder, ProcessError, open_process
from long_tests import LONG

pytestmark = [linux_only, pytest.mark.usefixtures("nothing_is_left")]

PROCESSES, LINES_A_SECOND, SECONDS = 200, 100, 10 if LONG else 1
CYCLES = 1000 if LONG else 150
MIB = 1024 * 1024


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Raise the limit of open files: each child needs six descriptors, and the test process needs some more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 10 * PROCESSES
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


#: A program that waits for a byte and then writes ``lines`` lines, ``a_second`` of them per second.
WRITER = """
process, lines, a_second = map(int, sys.argv[1:])
os.read(0, 1)
begin = time.monotonic()
for n in range(lines):
    early = begin + n / a_second - time.monotonic()
    if early > 0:
        time.sleep(early)
    os.write(1, b'{"type":"x","process":%d,"n":%d,"text":"%s"}\\n' % (process, n, b"x" * 200))
"""


@every_backend
@pytest.mark.usefixtures("many_descriptors")
def test_many_processes_at_once_lose_nothing(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("async_backends.DEADLINE", 300.0)
    processes = PROCESSES if LONG or backend is ASYNCIO else 40
    lines = LINES_A_SECOND * SECONDS
    right = 0

    async def run(number: int, started: anyio.Event) -> None:
        nonlocal ready, right
        argv = python(WRITER, number, lines, LINES_A_SECOND)
        async with open_process(argv, Decoder(dict), grace=60.0) as process:
            ready += 1
            await started.wait()
            await process.send_bytes(b"\n")
            got = [(message["process"], message["n"]) async for message in process]
            right += got == [(number, n) for n in range(lines)]
        assert process.returncode == 0

    async def main() -> None:
        started = anyio.Event()
        async with anyio.create_task_group() as group:
            for number in range(processes):
                group.start_soon(run, number, started)
            while ready < processes:
                await anyio.sleep(0.01)
            started.set()

    ready = 0
    backend.run(main)
    assert right == processes


class Left(Exception):
    pass


async def to_the_end(number: int) -> None:
    async with open_process(["/bin/cat"], Decoder(dict)) as process:
        await process.send({"n": number})
        await process.end_input()
        assert [message async for message in process] == [{"n": number}]
        assert await process.wait() == 0


async def with_a_callback(number: int) -> None:
    lines: list[str] = []
    argv = ["/bin/sh", "-c", "echo one >&2; exit 3"]
    async with open_process(argv, Decoder(dict), stderr=lines.append) as process:
        with pytest.raises(ProcessError):
            await process.__anext__()
    assert lines == ["one"]


async def broken_off(number: int) -> None:
    async with open_process(["/bin/cat"], Decoder(dict)) as process:
        for n in range(3):
            await process.send({"n": n})
        async for message in process:
            assert message == {"n": 0}
            break


async def left_by_an_exception(number: int) -> None:
    try:
        async with open_process(["/bin/cat"], Decoder(dict)):
            raise Left
    except Left:
        pass


async def cancelled(number: int) -> None:
    with anyio.CancelScope() as scope:
        async with open_process(["/bin/cat"], Decoder(dict)) as process, anyio.create_task_group() as group:
            group.start_soon(process.__anext__)
            await anyio.sleep(0)
            scope.cancel()


async def not_spawned(number: int) -> None:
    with pytest.raises(FileNotFoundError):
        await open_process(["/no/such/program"], Decoder(dict)).__aenter__()


def resident() -> int:
    """The resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@every_backend
def test_opening_and_closing_again_and_again_holds_on_to_nothing(backend: Backend) -> None:
    pytest.importorskip(backend.id)
    in_own_process(open_and_close_again_and_again, backend.id)


def open_and_close_again_and_again(backend: str) -> None:
    async_backends.DEADLINE = 300.0
    ways = [to_the_end, with_a_callback, broken_off, left_by_an_exception, cancelled, not_spawned]

    async def cycles(times: int) -> None:
        for number in range(times):
            await ways[number % len(ways)](number)

    async def measured() -> tuple[Any, int, int]:
        # The drain's thread ends, and closes its descriptors, a moment after the last process.
        with anyio.fail_after(60.0):
            while (now := held()).threads > 1:
                await anyio.sleep(0.005)
        gc.collect()
        return now, len(gc.get_objects()), resident()

    async def main() -> None:
        await cycles(60)  # create the objects that later processes share
        before, objects_before, resident_before = await measured()
        grown: list[int] = []
        for _ in range(3):
            await cycles(CYCLES // 3)
            after, objects_after, resident_after = await measured()
            assert after == before
            grown.append(objects_after - objects_before)
            objects_before = objects_after
        # Allow a few objects and a few pages. A leak per process would show in every round, but a rare code path may
        # create some objects the first time, in one round only.
        assert min(grown) < CYCLES // 30
        assert resident_after - resident_before < 2 * MIB

    backend_of(backend).run(main)


def test_loops_in_several_threads_do_not_disturb_each_other() -> None:
    """Each thread opens, reads and closes processes at the same time as the others."""
    failed: list[BaseException] = []

    async def one(number: int) -> None:
        async with open_process(python(CHATTER, number), Decoder(dict)) as process:
            assert [message["n"] async for message in process] == [number] * 2000

    async def main() -> None:
        for number in range(15):
            await one(number)

    def run(backend: Backend) -> None:
        try:
            backend.run(main)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(backend,)) for backend in (ASYNCIO, ASYNCIO, TRIO, TRIO)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


CHATTER = "for _ in range(2000): say(n=int(sys.argv[1]), text='x' * 100)"
