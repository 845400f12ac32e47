"""Drains: order, rescue, the budget, and every end that a stream, a drain or a process can come to."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import io
import logging
import os
import random
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import pytest

from claude_wire import draining
from claude_wire.draining import (
    CHUNK_BYTES,
    DEFAULT_BYTE_BUDGET,
    Drain,
    DrainStats,
    ThreadDrain,
    byte_budget,
    open_drain,
    set_byte_budget,
)
from claude_wire.errors import ByteBudgetError, HandleError

AnyDrain: TypeAlias = Drain | ThreadDrain
T = TypeVar("T")

#: For what must happen soon, on a machine that does something else just now.
DEADLINE = 30.0

linux = pytest.mark.skipif(sys.platform != "linux", reason="native drains are for Linux")

KIB = 1024
MIB = 1024 * 1024


def wait_until(condition: Callable[[], T]) -> T:
    end = time.monotonic() + DEADLINE
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def data_of(size: int, seed: int = 0) -> bytes:
    """Bytes of which no part equals another one."""
    return random.Random(seed).randbytes(size)


class Pipe:
    """A pipe with a drain at its end."""

    def __init__(self, kind: type[Drain] | type[ThreadDrain] = Drain, **options: Any) -> None:
        read_end, self.write_end = os.pipe()
        try:
            self.drain: AnyDrain = kind(read_end, **options)
        finally:
            os.close(read_end)
        self._writer: threading.Thread | None = None

    def write(self, data: bytes) -> None:
        assert os.write(self.write_end, data) == len(data)

    def write_in_thread(self, data: bytes, *, sizes: Callable[[], int] = lambda: 65536, close: bool = True) -> None:
        """Another thread writes, as long as that takes."""

        def write() -> None:
            at = 0
            while at < len(data):
                at += os.write(self.write_end, data[at : at + sizes()])
            if close:
                self.close_writer()

        self._writer = threading.Thread(target=write)
        self._writer.start()

    def writer_done(self) -> bool:
        return self._writer is None or not self._writer.is_alive()

    def close_writer(self) -> None:
        end, self.write_end = self.write_end, -1
        if end >= 0:
            os.close(end)

    def close(self) -> None:
        with contextlib.suppress(HandleError):
            self.drain.discard()  # lets a writer go on
        if self._writer is not None:
            self._writer.join(DEADLINE)
            assert not self._writer.is_alive()
        self.close_writer()
        self.drain.close()


@pytest.fixture(params=[pytest.param(Drain, marks=linux), ThreadDrain], ids=["native", "thread"])
def kind(request: pytest.FixtureRequest) -> type[AnyDrain]:
    cls: type[AnyDrain] = request.param
    return cls


@pytest.fixture
def pipes() -> Iterator[Callable[..., Pipe]]:
    made: list[Pipe] = []

    def make(kind: type[AnyDrain] = Drain, **options: Any) -> Pipe:
        made.append(Pipe(kind, **options))
        return made[-1]

    yield make
    for pipe in made:
        pipe.close()


@pytest.fixture(autouse=True)
def budget() -> Iterator[None]:
    yield
    set_byte_budget(DEFAULT_BYTE_BUDGET)


def read_some(drain: AnyDrain) -> bytes:
    """The next bytes, waited for; b"" at the end."""

    def read() -> tuple[bytes] | None:
        data = drain.read()
        return None if data is None else (bytes(data),)

    return wait_until(read)[0]


def read_all(drain: AnyDrain) -> bytes:
    """Everything up to the end of the stream."""
    return b"".join(iter(lambda: read_some(drain), b""))


def read_exactly(drain: AnyDrain, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = read_some(drain)
        assert more, "the stream ended early"
        data += more
    assert len(data) == size
    return data


def is_readable(drain: AnyDrain, timeout: float = 0) -> bool:
    assert isinstance(drain, Drain)
    return bool(select.select([drain], [], [], timeout)[0])


def run(program: str, **options: Any) -> str:
    """Runs a program in an interpreter of its own and returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- Reading ----------------------------------------------------------------------------------------------------------


def test_bytes_come_out_as_they_went_in(kind: type[AnyDrain], pipes: Callable[..., Pipe]) -> None:
    pipe = pipes(kind)
    assert pipe.drain.read() is None
    for size in (1, 285, 4096, 4097, 20_000, 65_536):
        data = data_of(size)
        pipe.write(data)
        assert read_exactly(pipe.drain, size) == data
    assert pipe.drain.read() is None


def test_the_end_comes_after_everything_and_again_and_again(kind: type[AnyDrain], pipes: Callable[..., Pipe]) -> None:
    pipe = pipes(kind)
    data = data_of(3 * MIB)
    pipe.write_in_thread(data)
    wait_until(pipe.writer_done)
    assert read_all(pipe.drain) == data
    for _ in range(3):
        assert pipe.drain.read() == b""


def test_a_read_gives_at_most_a_chunk(kind: type[AnyDrain], pipes: Callable[..., Pipe]) -> None:
    pipe = pipes(kind)
    pipe.write_in_thread(data_of(MIB))
    wait_until(pipe.writer_done)
    while data := read_some(pipe.drain):
        assert len(data) <= CHUNK_BYTES


def test_order_holds_while_reader_and_rescuer_race(kind: type[AnyDrain], pipes: Callable[..., Pipe]) -> None:
    """The reader pauses now and then, for as long as it takes a rescuer to come, or not quite."""
    for seed in range(3):
        chance = random.Random(seed)
        pipe = pipes(kind)
        data = data_of(8 * MIB, seed)
        pipe.write_in_thread(data, sizes=lambda chance=chance: chance.choice((1, 285, 4000, 65_536, 200_000)))  # type: ignore[misc]
        got = bytearray()
        while more := read_some(pipe.drain):
            got += more
            if chance.random() < 0.02:
                time.sleep(chance.choice((0.001, 0.009, 0.011, 0.03)))
        assert got == data
        assert pipe.drain.stats.bytes_read == len(data)


def test_a_reader_that_comes_often_is_left_alone(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes()
    for number in range(200):
        pipe.write(b"%d\n" % number)
        assert read_some(pipe.drain) == b"%d\n" % number
    assert pipe.drain.stats.bytes_read == sum(len(b"%d\n" % number) for number in range(200))


def test_a_view_is_released_by_the_next_read(pipes: Callable[..., Pipe]) -> None:
    pipe, other = pipes(), pipes()
    data, more = data_of(60_000, 1), data_of(60_000, 2)
    pipe.write(data)
    other.write(more)
    view = pipe.drain.read()
    # A read of another drain, as a callback might make, does not touch it.
    assert other.drain.read() == more
    assert isinstance(view, memoryview)
    assert view == data
    assert pipe.drain.read() is None
    with pytest.raises(ValueError, match="released"):
        view[0]


def test_memory_that_is_still_looked_at_is_not_read_into(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes()
    pipe.write(data_of(60_000, 1))
    view = pipe.drain.read()
    assert isinstance(view, memoryview)
    holder = ctypes.c_char * 4
    held = io.BytesIO()  # keeps nothing; a consumer that does is the ctypes array below
    del holder, held
    exported = memoryview(view)
    assert pipe.drain.read() is None
    pipe.write(data_of(60_000, 2))
    assert pipe.drain.read() == data_of(60_000, 2)
    exported.release()


# --- Rescue -----------------------------------------------------------------------------------------------------------


@linux
@pytest.mark.parametrize("away", ["time.sleep(1)", "ctypes.PyDLL(None).usleep(1_000_000)"], ids=["idle", "GIL held"])
def test_a_writer_is_never_held_up_while_the_reader_is_away(away: str) -> None:
    """A child writes far more than a pipe holds and exits, while this process does nothing, or keeps the GIL."""
    out = run(
        f"""
        import ctypes, os, subprocess, sys, time
        from claude_wire.draining import Drain
        line = b"x" * 284 + b"\\n"
        read_end, write_end = os.pipe()
        child = "import os\\nfor _ in range(4000): os.write(1, b'x' * 284 + b'\\\\n')"
        process = subprocess.Popen([sys.executable, "-c", child], stdout=write_end)
        os.close(write_end)
        drain = Drain(read_end)
        deadline = time.monotonic() + 30
        while True:
            {away}
            # Nothing was read, so only the rescuer can have let it end.
            if process.poll() is not None or time.monotonic() > deadline:
                break
        assert process.returncode == 0, process.returncode
        got = b""
        while (data := drain.read()) != b"":
            if data is not None:
                got += data
        assert got == line * 4000
        print(drain.stats.bytes_rescued)
        """
    )
    assert int(out) > 64 * KIB
