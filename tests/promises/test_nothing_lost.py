"""No line is lost if the consumer pauses, blocks the event loop, or holds the interpreter's lock.

The child behaves like the CLI after the end of its input: if its pipe stays full for 2 seconds, it drops its other
lines and exits with code 0. Each test also shows that a reader without a drain loses lines.

The pauses are 3 seconds, with 8 MB of lines; with ``CLAUDE_WIRE_LONG=1``, 3, 10 and 30 seconds with 40 MB.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from async_backends import BACKENDS, Backend, backend_of, every_backend
from children import PRELUDE, Host, held, in_own_process, linux_only, python
from claude_wire import Decoder, Process, encode, open_process
from claude_wire.errors import ByteBudgetError
from claude_wire.streams import DrainStats, byte_budget, set_byte_budget
from long_tests import LONG

pytestmark = [linux_only, pytest.mark.usefixtures("nothing_is_left")]

KIB, MIB = 1024, 1024 * 1024
PAUSES = [3, 10, 30] if LONG else [3]
TOTAL = 40_000_000 if LONG else 8_000_000
SEED = 2187


#: Code that generates the same lines in the child and in the test: most as long as a stream event, some longer than a
#: pipe.
LINES = """
import random
def lines(seed, total, longest=300_000):
    random = globals()["random"].Random(seed)
    made = n = 0
    yield b'{"type":"system","subtype":"init"}\\n'
    while made < total:
        size = random.choice((60, 100, 140, 200, 400, 2000)) if n % 1000 else longest // 2
        line = b'{"type":"stream_event","n":%d,"text":"%s"}\\n' % (n, random.randbytes(size).hex().encode())
        yield line
        made += len(line)
        n += 1
    yield b'{"type":"result","subtype":"success"}\\n'
"""

#: A child that writes the lines like the CLI: one write per line, and it gives up after a pipe was full for 2 s.
CLI = (
    LINES
    + """
import fcntl, select
os.set_blocking(1, False)
say(pipe=fcntl.fcntl(1, fcntl.F_GETPIPE_SZ))
made = list(lines(int(sys.argv[1]), int(sys.argv[2])))
poll = select.poll()
poll.register(1, select.POLLOUT)
for line in made:
    rest = memoryview(line)
    while rest:
        try:
            rest = rest[os.write(1, rest):]
        except BlockingIOError:
            if not poll.poll(2000):
                sys.exit(0)
"""
)


# --- (a) pauses -------------------------------------------------------------------------------------------------------

CONSUMER = (
    LINES
    + """
import anyio, ctypes
from claude_wire import Decoder, encode, open_process
backend, child, seed, total, moment, how, pause = json.loads(sys.argv[1])

def ended(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "Z"

async def away(process):
    if moment == "after the result was written":
        while not ended(process.pid):  # it has nothing more to say, and would have given up by now
            if how == "by await":
                await anyio.sleep(0.01)
            else:
                time.sleep(0.01)
    while True:
        if how == "by await":
            await anyio.sleep(pause)
        elif how == "by blocking the loop":
            time.sleep(pause)
        else:
            ctypes.PyDLL(None).sleep(pause)
        # On a busy machine the child may have written little so far. Only the drain can have read it.
        if moment == "in mid-stream" or process.drain_stats.bytes_rescued > 10 * 64 * 1024:
            break

async def main():
    expected = list(lines(seed, total))
    at = 1 if moment == "at the first event" else len(expected) // 2
    async with open_process(child, Decoder(dict)) as process:
        pipe = (await process.__anext__())["pipe"]
        equal = n = 0
        async for message in process:
            if n == at:
                await away(process)
            equal += encode(message) == expected[n]
            n += 1
        code = await process.wait()
    say(pipe=pipe, expected=len(expected), got=n, equal=equal, code=code, stats=process.drain_stats._asdict())

anyio.run(main, backend="trio" if backend == "trio" else "asyncio",
          backend_options={"use_uvloop": True} if backend == "uvloop" else {})
"""
)


class PlainReader(threading.Thread):
    """A reader without a drain: it reads two lines, pauses until the child has given up, and reads the rest."""

    def __init__(self, argv: list[str]) -> None:
        super().__init__()
        self._argv = argv
        self.lines: list[bytes] = []
        self.code: int | None = None
        self.start()

    def run(self) -> None:
        with subprocess.Popen(self._argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as popen:
            assert popen.stdout is not None
            popen.stdout.readline()
            self.lines.append(popen.stdout.readline())
            popen.wait()
            self.lines += popen.stdout
        self.code = popen.returncode


def all_lines(total: int, longest: int) -> list[bytes]:
    made: dict[str, Any] = {}
    exec(PRELUDE + LINES, made)
    return list(made["lines"](SEED, total, longest))


@pytest.mark.parametrize("pause", PAUSES, ids=lambda pause: f"{pause} s")
@pytest.mark.parametrize("how", ["by await", "by blocking the loop", "by holding the interpreter's lock"])
@pytest.mark.parametrize("moment", ["at the first event", "in mid-stream", "after the result was written"])
def test_a_consumer_that_pauses_gets_every_line(pause: int, how: str, moment: str) -> None:
    child = python(CLI, SEED, TOTAL)
    plain = PlainReader(child)
    hosts = [Host(CONSUMER, json.dumps([backend.id, child, SEED, TOTAL, moment, how, pause])) for backend in BACKENDS]
    try:
        for backend, host in zip(BACKENDS, hosts, strict=True):
            said = host.says()
            assert said["pipe"] <= 64 * KIB
            assert said["equal"] == said["got"] == said["expected"], (backend.id, said)
            assert said["code"] == 0
            assert host.ends() == 0
            # The pause was real: the drain, not the consumer, emptied the pipe.
            assert said["stats"]["bytes_rescued"] > 10 * 64 * KIB or moment == "in mid-stream", (backend.id, said)
    finally:
        for host in hosts:
            host.__exit__(None, None, None)
        plain.join()
    # Without a drain the same child exits with 0, but many of its lines are missing.
    assert plain.code == 0
    expected = all_lines(TOTAL, 300_000)
    assert b"".join(expected).startswith(b"".join(plain.lines))
    assert len(plain.lines) < len(expected) // 2
    assert b'"result"' not in plain.lines[-1]


# --- (d) overflow -----------------------------------------------------------------------------------------------------

#: A child that writes its lines and waits for room in the pipe without a time limit.
WRITER = (
    LINES
    + """
for line in lines(int(sys.argv[1]), int(sys.argv[2]), 4000):
    while line:
        line = line[os.write(1, line):]
"""
)
#: Bytes that may be queued beyond the budget, because the drain checks the budget only after a read.
SLACK = 128 * KIB


@pytest.fixture
def small_budget() -> Iterator[int]:
    before = byte_budget()
    set_byte_budget(MIB)
    yield MIB
    set_byte_budget(before)


def writer(total: int, **options: Any) -> Process[Any]:
    return open_process(python(WRITER, SEED, total), Decoder(dict), **options)


def stats(process: Process[Any]) -> DrainStats:
    found = process.drain_stats
    assert found is not None
    return found


async def until_paused(process: Process[Any]) -> None:
    while not stats(process).paused:
        await anyio.sleep(0.001)


async def rest(process: Process[Any]) -> list[bytes]:
    return [encode(message) async for message in process]


@every_backend
def test_pausing_holds_the_writer_up_and_says_so_once(
    backend: Backend, small_budget: int, caplog: pytest.LogCaptureFixture
) -> None:
    expected = all_lines(8 * MIB, 4000)

    async def main() -> None:
        got: list[bytes] = []
        async with writer(8 * MIB) as process:
            for pauses in (1, 2, 3):
                await until_paused(process)
                assert stats(process).pauses == pauses
                assert small_budget - SLACK <= stats(process).bytes_queued <= small_budget + SLACK
                assert process.returncode is None
                # The drain stays paused until more than half of the budget is free. Then it continues without a reader.
                for left in (small_budget, small_budget * 3 // 4):
                    while stats(process).bytes_queued > left:
                        got.append(encode(await process.__anext__()))
                    before = stats(process).bytes_rescued
                    await anyio.sleep(0.05)
                    assert stats(process).bytes_rescued == before
                # Reading wakes the drain's thread, which may refill the queue before the next check.
                while stats(process).bytes_queued > small_budget // 2 and stats(process).bytes_rescued == before:
                    got.append(encode(await process.__anext__()))
                while stats(process).bytes_rescued == before:
                    await anyio.sleep(0.001)
            got += await rest(process)
        assert got == expected
        assert stats(process).bytes_spilled == 0
        assert stats(process).bytes_queued == 0

    with caplog.at_level(logging.INFO, "claude_wire"):
        backend.run(main)
    assert [(record.name, record.levelname) for record in caplog.records] == [("claude_wire", "WARNING")]


@every_backend
def test_spilling_lets_the_writer_finish(backend: Backend, small_budget: int, caplog: pytest.LogCaptureFixture) -> None:
    expected = all_lines(8 * MIB, 4000)

    async def main() -> None:
        async with writer(8 * MIB, overflow="spill") as process:
            assert await process.wait() == 0  # no task reads meanwhile
            found = stats(process)
            assert found.bytes_spilled > 6 * MIB
            assert found.bytes_queued <= small_budget + SLACK
            assert found.bytes_in_file == found.bytes_spilled
            assert (found.pauses, found.paused, found.spill_errors) == (0, False, 0)
            assert await rest(process) == expected
            assert stats(process).bytes_in_file == 0
            assert stats(process).pauses == 0

    with caplog.at_level(logging.INFO, "claude_wire"):
        backend.run(main)
    assert caplog.records == []


@every_backend
def test_the_file_has_no_name_and_is_for_nobody_else(backend: Backend) -> None:
    pytest.importorskip(backend.id)
    in_own_process(spill_and_look, backend.id)


def spill_and_look(backend: str) -> None:
    async def main() -> None:
        set_byte_budget(MIB)
        assert unlinked_files() == []
        async with writer(8 * MIB, overflow="spill") as process:
            await process.wait()
            assert [stat.S_IMODE(os.fstat(fd).st_mode) for fd in unlinked_files()] == [0o600]
        assert unlinked_files() == []

    backend_of(backend).run(main)


def unlinked_files() -> list[int]:
    """The descriptors of open files that are already deleted, like a spill file."""
    return [fd for fd, link in held().descriptors.items() if "(deleted)" in link and link.startswith("/")]


@every_backend
def test_spilling_has_a_limit_and_pauses_there(
    backend: Backend, small_budget: int, caplog: pytest.LogCaptureFixture
) -> None:
    expected = all_lines(8 * MIB, 4000)

    async def main() -> None:
        async with writer(8 * MIB, overflow="spill", spill_limit=2 * MIB) as process:
            await until_paused(process)
            assert stats(process).bytes_in_file <= 2 * MIB
            assert process.returncode is None
            assert await rest(process) == expected
            assert stats(process).bytes_spilled >= 2 * MIB - SLACK

    with caplog.at_level(logging.INFO, "claude_wire"):
        backend.run(main)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@every_backend
async def test_an_error_is_raised_and_nothing_is_lost_by_it(small_budget: int) -> None:
    expected = all_lines(8 * MIB, 4000)

    got: list[bytes] = []
    errors: list[ByteBudgetError] = []
    async with writer(8 * MIB, overflow="error", grace=30.0) as process:
        await until_paused(process)
        assert process.returncode is None
        while True:
            try:
                got.append(encode(await process.__anext__()))
            except ByteBudgetError as error:
                errors.append(error)
                assert len(errors) == stats(process).pauses
                if len(errors) == 1:
                    assert got == []  # the error precedes all messages
            except StopAsyncIteration:
                break
            if len(got) in (500, 1500):
                await anyio.sleep(0.2)
        assert process.returncode == 0
    assert got == expected
    assert len(errors) == stats(process).pauses >= 1
    assert {error.limit for error in errors} == {small_budget}
    assert stats(process).bytes_spilled == 0


@every_backend
async def test_one_budget_is_for_all_processes_and_is_given_back(small_budget: int) -> None:
    expected = all_lines(2 * MIB, 4000)

    async with writer(2 * MIB) as first:
        await until_paused(first)
        async with writer(2 * MIB) as second:
            await until_paused(second)
            assert stats(first).bytes_queued + stats(second).bytes_queued <= small_budget + 2 * SLACK
            # The reader of the second process receives everything, while the first one still uses up the budget.
            assert await rest(second) == expected
    # The first process was closed unread, so the whole budget is free again.
    async with writer(2 * MIB) as third:
        await until_paused(third)
        assert stats(third).bytes_queued >= small_budget - SLACK
        assert await rest(third) == expected


@every_backend
async def test_closing_while_it_is_paused_does_not_hang(small_budget: int, tmp_path: Path) -> None:
    done = tmp_path / "done"

    argv = python(WRITER + "open(sys.argv[3], 'w').close()", SEED, 8 * MIB, done)
    async with open_process(argv, Decoder(dict), grace=30.0) as process:
        await until_paused(process)
    assert process.returncode == 0
    assert done.exists()  # the drain discarded the rest of its output, and it exited without a signal
