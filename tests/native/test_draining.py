"""A drain keeps the bytes of a pipe in order, also when its rescuer thread reads them, and wakes event loops."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from children import in_own_process
from claude_wire.native import drain as draining
from claude_wire.native.drain import Drain
from claude_wire.native.overflow import CHUNK_BYTES, DrainStats
from drained_pipes import (
    DEADLINE,
    KIB,
    MIB,
    Pipe,
    data_of,
    is_readable,
    linux,
    read_all,
    read_exactly,
    read_some,
    run,
    wait_until,
)

pytestmark = linux

# --- Reading ----------------------------------------------------------------------------------------------------------


def test_bytes_come_out_as_they_went_in(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes()
    assert pipe.drain.read() is None
    for size in (1, 285, 4096, 4097, 20_000, 65_536):
        data = data_of(size)
        pipe.write(data)
        assert read_exactly(pipe.drain, size) == data
    assert pipe.drain.read() is None


def test_the_end_comes_after_everything_and_again_and_again(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes()
    data = data_of(3 * MIB)
    pipe.write_in_thread(data)
    wait_until(pipe.writer_done)
    assert read_all(pipe.drain) == data
    for _ in range(3):
        assert pipe.drain.read() == b""


def test_a_read_gives_at_most_a_chunk(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes()
    pipe.write_in_thread(data_of(MIB))
    wait_until(pipe.writer_done)
    while data := read_some(pipe.drain):
        assert len(data) <= CHUNK_BYTES


def test_order_holds_while_reader_and_rescuer_race(pipes: Callable[..., Pipe]) -> None:
    """The reader sometimes pauses for about the time after which the rescuer starts to read."""
    for seed in range(3):
        chance = random.Random(seed)
        pipe = pipes()
        data = data_of(8 * MIB, seed)
        pipe.write_in_thread(data, sizes=lambda chance=chance: chance.choice((1, 285, 4000, 65_536, 200_000)))
        got = bytearray()
        while more := read_some(pipe.drain):
            got += more
            if chance.random() < 0.02:
                time.sleep(chance.choice((0.001, 0.009, 0.011, 0.03)))
        assert got == data
        assert pipe.drain.stats.bytes_read == len(data)


def test_a_reader_that_comes_often_is_left_alone(pipes: Callable[..., Pipe]) -> None:
    def nothing_is_rescued() -> bool:
        pipe = pipes()
        for number in range(6):
            pipe.write(b"%d\n" % number)
            time.sleep(0.003)  # too short for the rescuer; a busy machine may take longer
            assert read_some(pipe.drain) == b"%d\n" % number
        return pipe.drain.stats.bytes_rescued == 0

    wait_until(nothing_is_rescued)


def test_a_view_is_released_by_the_next_read(pipes: Callable[..., Pipe]) -> None:
    pipe, other = pipes(), pipes()
    data, more = data_of(60_000, 1), data_of(60_000, 2)
    pipe.write(data)
    other.write(more)
    view = pipe.drain.read()
    # A read of another drain, for example in a callback, does not affect this view.
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
    looking = draining.ffi.from_buffer("uint8_t[]", view)
    assert pipe.drain.read() is None
    pipe.write(data_of(60_000, 2))
    assert pipe.drain.read() == data_of(60_000, 2)
    assert bytes(draining.ffi.buffer(looking)) == data_of(60_000, 1)


def test_many_idle_drains_hold_no_memory_for_reading(pipes: Callable[..., Pipe]) -> None:
    few = [pipes() for _ in range(100)]
    for pipe in few:
        pipe.write(data_of(60_000))
    views = [pipe.drain.read() for pipe in few]
    assert all(isinstance(view, memoryview) for view in views)
    assert [pipe.drain.read() for pipe in few] == [None] * 100
    assert len(draining._scratches) <= draining.MAX_IDLE_SCRATCHES


# --- Rescue -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("away", ["time.sleep(1)", "ctypes.PyDLL(None).usleep(1_000_000)"], ids=["idle", "GIL held"])
def test_a_writer_is_never_held_up_while_the_reader_is_away(away: str) -> None:
    """A child writes much more than a pipe holds and exits, while this process sleeps or holds the GIL."""
    out = run(
        f"""
        import ctypes, os, subprocess, sys, time
        from claude_wire.native.drain import Drain
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


def test_what_is_left_unread_is_taken_and_the_reader_woken(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes()
    drain = pipe.drain
    for number in range(3):
        pipe.write(b"x" * 285)
        wait_until(lambda: drain.stats.bytes_queued == 285)
        assert is_readable(drain)
        assert drain.read() == b"x" * 285
        assert not is_readable(drain)
        assert drain.read() is None
        assert drain.stats.rescues == number + 1
    assert drain.stats == DrainStats(855, 855, 3, 0, 0, 0, 0, 0, 0, False)


def test_a_reader_that_is_slower_than_the_writer_is_helped(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            os.write(pipe.write_end, b"x" * 4096)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        end = time.monotonic() + DEADLINE
        while not pipe.drain.stats.bytes_rescued:
            pipe.drain.read()  # the reader never pauses
            assert time.monotonic() < end
            time.sleep(0.003)
    finally:
        stop.set()
        pipe.drain.discard()
        writer.join(DEADLINE)


def test_many_streams_are_rescued_at_once(pipes: Callable[..., Pipe]) -> None:
    many = [pipes() for _ in range(200)]
    for number, pipe in enumerate(many):
        pipe.write(b"%d" % number * 100)
    wait_until(lambda: all(pipe.drain.stats.bytes_queued for pipe in many))
    assert [pipe.drain.read() for pipe in many] == [b"%d" % number * 100 for number in range(200)]


def test_the_rescuer_takes_no_signals_and_ends_with_the_last_drain() -> None:
    in_own_process(drains_begin_and_end)


def drains_begin_and_end() -> None:
    first, other = Pipe(), Pipe()
    (thread,) = wait_until(rescuers)
    with open(f"/proc/self/task/{thread}/status") as status:
        blocked = next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD, signal.SIGXFSZ):
        assert blocked >> (number - 1) & 1, number
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []), "this thread takes them as before"
    other.close()
    assert rescuers() == [thread]
    first.close()
    wait_until(lambda: not rescuers())


def rescuers() -> list[str]:
    """Return the thread ids of the rescuers in this process."""
    found = []
    for number in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{number}/comm") as comm:
            if comm.read() == "cw-drain\n":
                found.append(number)
    return found


# --- Waiting ----------------------------------------------------------------------------------------------------------


def wait_by_select(drain: Drain) -> None:
    assert select.select([drain], [], [], DEADLINE)[0]


def wait_by_poll(drain: Drain) -> None:
    poll = select.poll()
    poll.register(drain, select.POLLIN)
    assert poll.poll(DEADLINE * 1000)


def wait_by_epoll(drain: Drain) -> None:
    with select.epoll() as epoll:
        epoll.register(drain, select.EPOLLIN)
        assert epoll.poll(DEADLINE)


def wait_by_epoll_that_is_edge_triggered(drain: Drain) -> None:
    with select.epoll() as epoll:
        epoll.register(drain, select.EPOLLIN | select.EPOLLET)
        assert epoll.poll(DEADLINE)


@pytest.mark.parametrize(
    "wait",
    [wait_by_select, wait_by_poll, wait_by_epoll, wait_by_epoll_that_is_edge_triggered],
    ids=lambda wait: wait.__name__,
)
class TestWaking:
    """Every kind of event wakes a waiting reader, whichever way it waits."""

    def test_by_bytes_that_come(self, pipes: Callable[..., Pipe], wait: Callable[[Drain], None]) -> None:
        pipe = pipes()
        assert pipe.drain.read() is None
        threading.Timer(0.002, pipe.write, [b"x"]).start()
        wait(pipe.drain)
        assert read_some(pipe.drain) == b"x"

    def test_by_bytes_that_were_rescued(self, pipes: Callable[..., Pipe], wait: Callable[[Drain], None]) -> None:
        pipe = pipes()
        pipe.write(b"x")
        wait_until(lambda: pipe.drain.stats.bytes_queued)
        wait(pipe.drain)
        assert pipe.drain.read() == b"x"

    def test_by_the_end(self, pipes: Callable[..., Pipe], wait: Callable[[Drain], None]) -> None:
        pipe = pipes()
        assert pipe.drain.read() is None
        threading.Timer(0.002, pipe.close_writer).start()
        for _ in range(3):
            wait(pipe.drain)
            assert read_some(pipe.drain) == b""

    def test_by_an_end_that_the_rescuer_saw(self, pipes: Callable[..., Pipe], wait: Callable[[Drain], None]) -> None:
        pipe = pipes()
        pipe.write(b"x")
        wait_until(lambda: pipe.drain.stats.bytes_queued)
        pipe.close_writer()
        for expected in (b"x", b"", b""):
            wait(pipe.drain)
            assert read_some(pipe.drain) == expected

    def test_by_the_end_of_what_is_thrown_away(self, pipes: Callable[..., Pipe], wait: Callable[[Drain], None]) -> None:
        pipe = pipes()
        pipe.drain.discard()
        pipe.write(b"x")
        pipe.close_writer()
        wait(pipe.drain)
        assert pipe.drain.read() == b""

    def test_by_the_end_of_what_is_kept(self, pipes: Callable[..., Pipe], wait: Callable[[Drain], None]) -> None:
        pipe = pipes(keep_last=10)
        pipe.write(b"x")
        pipe.close_writer()
        wait(pipe.drain)
        assert pipe.drain.read() == b""

    def test_by_an_error(self, pipes: Callable[..., Pipe], wait: Callable[[Drain], None]) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs, contextlib.closing(Drain(ours.fileno())) as drain:
            # The peer closes with unread data, so this side gets a connection reset.
            ours.send(b"unread")
            theirs.close()
            for _ in range(3):
                wait(drain)
                with pytest.raises(ConnectionResetError):
                    drain.read()

    def test_by_the_end_of_a_process(self, pipes: Callable[..., Pipe], wait: Callable[[Drain], None]) -> None:
        pipe = pipes()
        drain = pipe.drain
        assert isinstance(drain, Drain)
        with watched_process() as (process, pidfd):
            drain.watch(pidfd)
            assert drain.read() is None
            assert not is_readable(drain)
            process.kill()
            wait_until(lambda: wait(drain) or drain.read() is not None or drain.watched)
        assert not is_readable(drain), "it is said once"


@contextlib.contextmanager
def watched_process() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        pidfd = os.pidfd_open(process.pid)
        try:
            yield process, pidfd
        finally:
            process.kill()
            os.close(pidfd)


def test_what_is_watched_does_not_hide_bytes(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes()
    drain = pipe.drain
    with watched_process() as (process, pidfd):
        drain.watch(pidfd)
        pipe.write(b"before")
        process.kill()
        wait_until(lambda: select.select([pidfd], [], [], 0)[0])
        assert drain.read() == b"before"
        pipe.write(b"after")
        assert drain.read() == b"after"
        wait_until(lambda: drain.read() is None and drain.watched)


def test_one_descriptor_is_watched_at_a_time(pipes: Callable[..., Pipe]) -> None:
    drain = pipes().drain
    with watched_process() as (first, first_fd), watched_process() as (second, second_fd):
        drain.watch(first_fd)
        with pytest.raises(OSError, match="busy") as caught:
            drain.watch(second_fd)
        assert caught.value.errno == errno.EBUSY
        first.kill()
        wait_until(lambda: drain.read() is None and drain.watched)
        drain.watch(second_fd)
        assert not drain.watched
        assert not is_readable(drain)
        second.kill()
        wait_until(lambda: drain.read() is None and drain.watched)
        drain.watch(second_fd)  # watch the same descriptor again
        assert not drain.watched
        wait_until(lambda: drain.read() is None and drain.watched)


def test_a_descriptor_that_is_watched_may_be_closed(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes()
    with watched_process() as (_, pidfd):
        pipe.drain.watch(pidfd)
    pipe.write(b"x")
    assert pipe.drain.read() == b"x"


def test_what_cannot_be_watched_is_an_os_error(pipes: Callable[..., Pipe]) -> None:
    drain = pipes().drain
    with tempfile.TemporaryFile() as file, pytest.raises(PermissionError):
        drain.watch(file.fileno())
    with pytest.raises(OSError, match="Bad file descriptor"):
        drain.watch(-1)
    with pytest.raises(TypeError, match="fd must be an int"):
        drain.watch("3")
