"""A drain reads a pipe while nobody else does, within a shared budget, until its end."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import random
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from children import in_own_process
from claude_wire.errors import ByteBudgetError, HandleError
from claude_wire.native import drain as draining
from claude_wire.native.budget import DEFAULT_BYTE_BUDGET, byte_budget, set_byte_budget
from claude_wire.native.drain import Drain
from claude_wire.native.overflow import CHUNK_BYTES, DrainOptions, DrainStats
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


# --- Drains keep unread bytes within the budget or in a file, or discard them -----------------------------------------


# --- The budget -------------------------------------------------------------------------------------------------------


def test_above_the_budget_a_stream_is_paused(pipes: Callable[..., Pipe], caplog: pytest.LogCaptureFixture) -> None:
    set_byte_budget(MIB)
    pipe = pipes()
    data = data_of(4 * MIB)
    pipe.write_in_thread(data)
    wait_until(lambda: pipe.drain.stats.paused)
    stats = pipe.drain.stats
    assert stats.bytes_queued == MIB
    assert stats.pauses == 1
    assert not pipe.writer_done()
    assert not caplog.records
    assert read_all(pipe.drain) == data
    assert [(record.name, record.levelno) for record in caplog.records] == [("claude_wire", logging.WARNING)]


def test_a_paused_stream_goes_on_once_half_of_the_budget_is_free(pipes: Callable[..., Pipe]) -> None:
    set_byte_budget(MIB)
    pipe = pipes()
    data = data_of(8 * MIB)
    pipe.write_in_thread(data)
    got = b""
    for pauses in (1, 2, 3):
        wait_until(lambda: pipe.drain.stats.paused)
        assert pipe.drain.stats.pauses == pauses
        while pipe.drain.stats.bytes_queued - CHUNK_BYTES > MIB // 2:
            got += read_some(pipe.drain)
            assert pipe.drain.stats.paused
        rescued = pipe.drain.stats.bytes_rescued
        while pipe.drain.stats.bytes_queued > MIB // 2 and pipe.drain.stats.bytes_rescued == rescued:
            got += read_some(pipe.drain)
        # From here on the test does not read.
        wait_until(lambda rescued=rescued: pipe.drain.stats.bytes_rescued > rescued)
    assert got + read_all(pipe.drain) == data


def test_the_budget_is_shared_and_given_back(pipes: Callable[..., Pipe]) -> None:
    set_byte_budget(MIB)
    first, second = pipes(), pipes()
    first.write_in_thread(data_of(4 * MIB))
    wait_until(lambda: first.drain.stats.paused)
    data = data_of(300 * KIB)
    second.write_in_thread(data)
    wait_until(lambda: second.drain.stats.paused)
    assert second.drain.stats.bytes_queued == 0
    # The reader of a paused stream can still read, from the queue or from the descriptor.
    got = read_some(second.drain)
    first.close()
    wait_until(second.writer_done)
    assert got + read_all(second.drain) == data


def test_a_discarded_drain_gives_its_bytes_back(pipes: Callable[..., Pipe]) -> None:
    set_byte_budget(MIB)
    first, second = pipes(), pipes()
    first.write_in_thread(data_of(4 * MIB))
    wait_until(lambda: first.drain.stats.paused)
    data = data_of(300 * KIB)
    second.write_in_thread(data)
    wait_until(lambda: second.drain.stats.paused)
    first.drain.discard()
    wait_until(first.writer_done)
    wait_until(second.writer_done)
    assert read_all(second.drain) == data


def test_a_higher_budget_lets_paused_streams_go_on(pipes: Callable[..., Pipe]) -> None:
    set_byte_budget(MIB)
    pipe = pipes()
    data = data_of(4 * MIB)
    pipe.write_in_thread(data)
    wait_until(lambda: pipe.drain.stats.paused)
    set_byte_budget(16 * MIB)
    assert byte_budget() == 16 * MIB
    wait_until(pipe.writer_done)
    assert read_all(pipe.drain) == data


@pytest.mark.parametrize("limit", [1, 2, 1000, 65_536])
def test_the_smallest_budgets_work(pipes: Callable[..., Pipe], limit: int) -> None:
    set_byte_budget(limit)
    pipe = pipes()
    data = data_of(300 * KIB)
    pipe.write_in_thread(data)
    wait_until(lambda: pipe.drain.stats.paused)
    assert read_all(pipe.drain) == data


def test_an_error_is_raised_once_each_time_and_nothing_is_lost(pipes: Callable[..., Pipe]) -> None:
    set_byte_budget(MIB)
    pipe = pipes(overflow="error")
    data = data_of(8 * MIB)
    pipe.write_in_thread(data)
    got, errors, limits = bytearray(), 0, set()

    def read() -> bool:
        nonlocal errors
        try:
            more = pipe.drain.read()
        except ByteBudgetError as error:
            limits.add(error.limit)
            errors += 1
            assert errors <= pipe.drain.stats.pauses
            return True
        got.extend(more or b"")
        return more != b""

    for times in range(3):
        wait_until(lambda: pipe.drain.stats.pauses > errors)
        read()
        assert errors > times
        while pipe.drain.stats.bytes_queued > MIB // 2:
            read()
    while read():
        pass
    assert got == data
    assert errors >= 3
    assert limits == {MIB}


def test_an_error_wakes_a_reader_that_has_emptied_the_queue(pipes: Callable[..., Pipe]) -> None:
    set_byte_budget(MIB)
    full, pipe = pipes(), pipes(overflow="error")
    full.write_in_thread(data_of(2 * MIB))
    wait_until(lambda: full.drain.stats.paused)
    pipe.write(b"x")
    assert is_readable(pipe.drain, DEADLINE)
    with pytest.raises(ByteBudgetError):
        wait_until(lambda: pipe.drain.stats.paused and pipe.drain.read())
    assert pipe.drain.read() == b"x"
    assert not is_readable(pipe.drain)


@pytest.mark.parametrize(("limit", "error"), [(0, ValueError), (-1, ValueError), ("1", TypeError), (None, TypeError)])
def test_a_budget_that_is_no_size_is_refused(limit: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="limit must be"):
        set_byte_budget(limit)
    assert byte_budget() == DEFAULT_BYTE_BUDGET


# --- Spilling ---------------------------------------------------------------------------------------------------------


class OpenFile(NamedTuple):
    number: str
    inode: int
    mode: int


def temporary_files() -> set[OpenFile]:
    """Return the open files of this process that are already unlinked."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            status = os.stat(f"/proc/self/fd/{number}")
            if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                found.add(OpenFile(number, status.st_ino, stat.S_IMODE(status.st_mode)))
    return found


def test_above_the_budget_bytes_go_to_a_file(pipes: Callable[..., Pipe]) -> None:
    set_byte_budget(MIB)
    before = temporary_files()
    pipe = pipes(overflow="spill")
    data = data_of(5 * MIB)
    pipe.write_in_thread(data)
    wait_until(pipe.writer_done)
    wait_until(lambda: pipe.drain.stats.bytes_rescued == len(data))
    stats = pipe.drain.stats
    assert stats.bytes_queued == MIB
    assert stats.bytes_in_file == stats.bytes_spilled == len(data) - stats.bytes_queued
    assert (stats.pauses, stats.spill_errors) == (0, 0)
    if sys.platform == "linux":
        # Files of earlier tests may be closed meanwhile.
        (file,) = temporary_files() - before
        assert file.mode == 0o600
    assert read_all(pipe.drain) == data
    wait_until(lambda: temporary_files() <= before)


def test_order_holds_from_memory_to_the_file_and_back(pipes: Callable[..., Pipe]) -> None:
    set_byte_budget(256 * KIB)
    chance = random.Random(0)
    pipe = pipes(overflow="spill")
    data = data_of(16 * MIB)
    pipe.write_in_thread(data, sizes=lambda: chance.choice((1000, 30_000, 200_000)))
    got = bytearray()
    while more := read_some(pipe.drain):
        got += more
        if chance.random() < 0.05:  # read on when the drain has written more to the file
            spilled = pipe.drain.stats.bytes_spilled
            while not (pipe.writer_done() or pipe.drain.stats.bytes_spilled > spilled):
                time.sleep(0.002)
    assert got == data
    assert pipe.drain.stats.bytes_spilled


def test_a_file_has_a_limit(pipes: Callable[..., Pipe]) -> None:
    set_byte_budget(MIB)
    pipe = pipes(overflow="spill", spill_limit=MIB)
    data = data_of(6 * MIB)
    pipe.write_in_thread(data)
    wait_until(lambda: pipe.drain.stats.paused)
    stats = pipe.drain.stats
    assert stats.bytes_in_file == MIB
    assert not pipe.writer_done()
    # The drain resumes with a new file once the test has read the first one.
    got = read_exactly(pipe.drain, 2 * MIB)
    wait_until(lambda: pipe.drain.stats.paused)
    assert got + read_all(pipe.drain) == data


def test_a_file_that_cannot_be_made_means_a_pause(pipes: Callable[..., Pipe], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere at all")
    set_byte_budget(MIB)
    pipe = pipes(overflow="spill")
    data = data_of(3 * MIB)
    pipe.write_in_thread(data)
    wait_until(lambda: pipe.drain.stats.paused)
    assert pipe.drain.stats.spill_errors >= 1
    assert pipe.drain.stats.bytes_spilled == 0
    assert read_all(pipe.drain) == data


def test_after_a_pause_a_file_is_tried_again(
    pipes: Callable[..., Pipe], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    folder = tmp_path / "not yet"
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    set_byte_budget(MIB)
    pipe = pipes(overflow="spill")
    data = data_of(6 * MIB)
    pipe.write_in_thread(data)
    wait_until(lambda: pipe.drain.stats.paused)
    assert (pipe.drain.stats.spill_errors, pipe.drain.stats.bytes_spilled) == (1, 0)
    folder.mkdir()
    got = b""
    while pipe.drain.stats.paused and pipe.drain.stats.bytes_queued > MIB // 2:
        got += read_some(pipe.drain)
    # From here on the test does not read.
    wait_until(pipe.writer_done)
    assert pipe.drain.stats.bytes_spilled > 0
    assert got + read_all(pipe.drain) == data


@pytest.mark.parametrize("room", [100_001, 0])
def test_a_disk_that_is_full_means_a_pause_and_no_loss(room: int) -> None:
    out = run(
        f"""
        import os, random, resource, signal, threading, time
        from claude_wire.native.budget import queued_bytes, set_byte_budget
        from claude_wire.native.drain import Drain
        from claude_wire.native.overflow import DrainOptions
        # Writing beyond it fails as on a full disk, in the middle of a piece; the signal for it is ignored by Python.
        resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))
        set_byte_budget(1 << 18)
        data = random.Random(0).randbytes(1 << 20)
        read_end, write_end = os.pipe()
        drain = Drain(read_end, DrainOptions(overflow="spill"))
        def write():
            at = 0
            while at < len(data):
                at += os.write(write_end, data[at : at + 65536])
            os.close(write_end)
        threading.Thread(target=write).start()
        end = time.monotonic() + 60
        while not drain.stats.paused:
            assert time.monotonic() < end
            time.sleep(0.01)
        stats = drain.stats
        assert stats.spill_errors == 1, stats
        assert stats.bytes_spilled == {room}, stats
        # What the file could not take is in memory, and counted there: else the count would come out below 0.
        assert stats.bytes_queued == stats.bytes_rescued - stats.bytes_spilled == queued_bytes(), stats
        got = b""
        while (more := drain.read()) != b"":
            assert time.monotonic() < end
            got += more or b""
        assert got == data
        assert queued_bytes() == 0
        print("ok")
        """
    )
    assert out == "ok\n"


# --- Discarding, and keeping the last bytes ---------------------------------------------------------------------------


def test_a_discarding_drain_never_holds_its_writer_up(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes()
    pipe.write(b"x" * 1000)
    wait_until(lambda: pipe.drain.stats.bytes_queued == 1000)
    pipe.drain.discard()
    assert pipe.drain.stats.bytes_queued == 0
    pipe.write_in_thread(b"x" * 20 * MIB)
    assert pipe.drain.read() in (None, b"")
    wait_until(pipe.writer_done)
    wait_until(lambda: pipe.drain.read() == b"")
    assert pipe.drain.stats.bytes_discarded == 20 * MIB + 1000
    assert pipe.drain.stats.bytes_read == 0
    pipe.drain.discard()


@pytest.mark.parametrize("overflow", ["pause", "spill", "error"])
def test_a_drain_that_is_paused_can_be_discarded(pipes: Callable[..., Pipe], overflow: str) -> None:
    set_byte_budget(MIB)
    pipe = pipes(overflow=overflow, spill_limit=MIB)
    pipe.write_in_thread(b"x" * 8 * MIB)
    wait_until(lambda: pipe.drain.stats.paused)
    pipe.drain.discard()
    wait_until(pipe.writer_done)
    wait_until(lambda: pipe.drain.read() == b"")
    assert pipe.drain.stats.bytes_discarded == 8 * MIB
    assert (pipe.drain.stats.bytes_queued, pipe.drain.stats.bytes_in_file) == (0, 0)


@pytest.mark.parametrize("size", [1, 10, 64 * KIB, MIB])
@pytest.mark.parametrize("keep", [1, 10, 64 * KIB])
def test_the_last_bytes_are_kept(pipes: Callable[..., Pipe], size: int, keep: int) -> None:
    pipe = pipes(keep_last=keep)
    data = data_of(size)
    pipe.write_in_thread(data)
    wait_until(lambda: pipe.drain.read() == b"")
    assert pipe.drain.tail() == data[-keep:]
    stats = pipe.drain.stats
    assert stats.bytes_queued == min(size, keep)
    assert stats.bytes_discarded == size - stats.bytes_queued


def test_a_tail_has_what_is_in_the_pipe_now(pipes: Callable[..., Pipe]) -> None:
    pipe = pipes(keep_last=10)
    assert pipe.drain.tail() == b""
    for number in range(100):
        pipe.write(b"%05d" % number)
        assert pipe.drain.tail() == (b"%05d%05d" % (number - 1, number) if number else b"00000")
    assert pipe.drain.read() is None


def test_kept_bytes_do_not_count_in_the_budget(pipes: Callable[..., Pipe]) -> None:
    set_byte_budget(1)
    pipe = pipes(keep_last=MIB)
    data = data_of(3 * MIB)
    pipe.write_in_thread(data)
    wait_until(lambda: pipe.drain.read() == b"")
    assert pipe.drain.tail() == data[-MIB:]
    assert pipe.drain.stats.pauses == 0


def test_a_tail_is_only_for_drains_that_keep_one(pipes: Callable[..., Pipe]) -> None:
    with pytest.raises(ValueError, match="without keep_last"):
        pipes().drain.tail()


# --- Every way in which a stream, a drain or a process can end, and the descriptors that are held until then ----------


# --- Descriptors ------------------------------------------------------------------------------------------------------


# Runs in a new process. In this one, garbage of earlier tests might be closed meanwhile, and its descriptor reused.
COUNTING = """
import gc, os, threading, time
from claude_wire.native.drain import Drain

def descriptors():
    with os.scandir("/proc/self/fd") as entries:
        found = [entry.path for entry in entries]
    return {path for path in found if os.path.exists(path)}

def threads():
    return set(os.listdir("/proc/self/task"))

def wait_until(is_so):
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.005)

def open_pipe():
    read_end, write_end = os.pipe()
    drain = Drain(read_end)
    os.close(read_end)
    return drain, write_end

at_start, alone = descriptors(), threads()
"""


def test_a_stream_costs_two_descriptors() -> None:
    run(
        COUNTING
        + """
first, first_writer = open_pipe()  # brings what all drains share
wait_until(lambda: threads() != alone)
before = descriptors()
drain, writer = open_pipe()
added = descriptors() - before
assert len(added) == 3, "one is the writer's end"
assert not any(os.get_inheritable(int(os.path.basename(path))) for path in added)
drain.close()
os.close(writer)
assert descriptors() == before
first.close()
os.close(first_writer)
wait_until(lambda: threads() == alone)
assert descriptors() == at_start
assert len(before - at_start) == 6, "three are of the first stream"
"""
    )


def test_an_event_loop_may_wait_for_any_number_of_streams() -> None:
    """Linux allows at most 500 paths from one epoll instance, through others, to one descriptor."""
    out = run(
        """
        import os, resource, select, time
        from claude_wire.native.drain import Drain
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        loop, outer = select.epoll(), select.epoll()
        outer.register(loop, select.EPOLLIN)
        drains = {}
        writers = []
        for number in range(600):
            read_end, write_end = os.pipe()
            drain = Drain(read_end)
            os.close(read_end)
            loop.register(drain, select.EPOLLIN)
            drains[drain.fileno()] = drain
            writers.append(write_end)
        assert not outer.poll(0)
        for write_end in writers:
            os.write(write_end, b"x")
        end = time.monotonic() + 60
        while not all(drain.stats.bytes_queued for drain in drains.values()):
            assert time.monotonic() < end
            time.sleep(0.01)
        assert outer.poll(0)
        assert {number for number, _ in loop.poll(0, 600)} == set(drains)
        assert [drain.read() for drain in drains.values()] == [b"x"] * 600
        assert not loop.poll(0)
        print("ok")
        """
    )
    assert out == "ok\n"


def test_a_thousand_drains_one_after_another_leave_nothing() -> None:
    run(
        COUNTING
        + """
for number in range(1000):
    drain, writer = open_pipe()
    os.write(writer, b"x")
    if number % 2:
        wait_until(lambda: drain.read() == b"x")
    drain.close()
    os.close(writer)
wait_until(lambda: threads() == alone)
assert descriptors() == at_start
"""
    )


def test_a_drain_that_is_dropped_is_closed() -> None:
    run(
        COUNTING
        + """
drain, writer = open_pipe()
os.write(writer, b"x")
os.close(writer)
del drain
gc.collect()
wait_until(lambda: threads() == alone)
assert descriptors() == at_start
"""
    )


def test_the_number_may_be_closed_and_used_again_at_once(pipes: Callable[..., Pipe]) -> None:
    """If the drain did not duplicate the descriptor, it would read the bytes of another pipe."""
    read_end, write_end = os.pipe()
    drain = Drain(read_end)
    os.close(read_end)
    again, other_end = os.pipe()
    try:
        assert again == read_end
        os.write(other_end, b"not ours")
        os.write(write_end, b"ours")
        assert read_some(drain) == b"ours"
        drain.close()
        assert os.read(again, 100) == b"not ours"
    finally:
        for fd in (again, other_end, write_end):
            os.close(fd)


def test_closing_is_immediate_also_while_bytes_come(pipes: Callable[..., Pipe]) -> None:
    for _ in range(50):
        read_end, write_end = os.pipe()
        drain = Drain(read_end)
        os.write(write_end, b"x" * 60_000)
        drain.close()
        os.close(read_end)
        with pytest.raises(BrokenPipeError):
            os.write(write_end, b"nobody has the other end")
        os.close(write_end)


@pytest.mark.parametrize("blocking", [True, False])
def test_the_blocking_mode_is_given_back(blocking: bool) -> None:
    read_end, write_end = os.pipe()
    try:
        os.set_blocking(read_end, blocking)
        drain = Drain(read_end)
        assert not os.get_blocking(read_end)
        assert os.get_blocking(write_end)
        drain.close()
        assert os.get_blocking(read_end) is blocking
    finally:
        os.close(read_end)
        os.close(write_end)


def test_a_descriptor_that_is_in_non_blocking_mode_works() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with contextlib.closing(Drain(read_end)) as drain:
        os.close(read_end)
        assert drain.read() is None
        for piece in (b"x", b"y" * 1000, data_of(60_000)):
            os.write(write_end, piece)
            assert read_exactly(drain, len(piece)) == piece
        os.close(write_end)
        assert read_some(drain) == b""


def test_the_blocking_mode_is_given_back_by_the_last_drain_of_a_pipe(pipes: Callable[..., Pipe]) -> None:
    """A new stream may exist before the old one is collected. Neither it nor the shared rescuer may block."""
    bystander = pipes()
    read_end, write_end = os.pipe()
    try:
        first, second = Drain(read_end), Drain(read_end)
        first.close()
        assert not os.get_blocking(read_end)
        assert second.read() is None
        os.write(write_end, b"x" * CHUNK_BYTES)  # exactly one read, so the rescuer tries to read again
        wait_until(lambda: second.stats.bytes_queued == CHUNK_BYTES)
        bystander.write(b"y")
        wait_until(lambda: bystander.drain.stats.bytes_queued == 1)
        second.close()
        assert os.get_blocking(read_end)
    finally:
        os.close(read_end)
        os.close(write_end)


def test_sockets_work() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, contextlib.closing(Drain(ours.fileno())) as drain:
        data = data_of(3 * MIB)
        writer = threading.Thread(target=lambda: (theirs.sendall(data), theirs.shutdown(socket.SHUT_WR)))
        writer.start()
        assert read_all(drain) == data
        writer.join()
        # The other direction still works.
        ours.sendall(b"answer")
        assert theirs.recv(100) == b"answer"


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no terminals")
def test_terminals_work() -> None:
    ours, theirs = os.openpty()
    with contextlib.closing(Drain(ours)) as drain:
        os.close(ours)
        os.write(theirs, b"a line\n")
        assert read_exactly(drain, 8) == b"a line\r\n"
        os.close(theirs)
        assert read_some(drain) == b"", "the system says EIO"


def test_regular_files_are_refused(tmp_path: Any) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with open(tmp_path / "file", "rb") as file, pytest.raises(PermissionError):
        Drain(file.fileno())


def test_the_wrong_end_of_a_pipe_is_an_error_and_no_wait() -> None:
    read_end, write_end = os.pipe()
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            Drain(write_end)
    finally:
        os.close(read_end)
        os.close(write_end)


def test_what_is_no_descriptor_is_refused() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    os.close(write_end)
    for fd in (read_end, -1, -(2**40), 2**31, 2**64):
        with pytest.raises(OSError, match="Bad file descriptor"):
            Drain(fd)
    for fd in ("0", None, 1.0):
        with pytest.raises(TypeError, match="fd must be an int"):
            Drain(fd)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"overflow": "drop"}, ValueError),
        ({"spill_limit": 0}, ValueError),
        ({"spill_limit": "1"}, TypeError),
        ({"keep_last": 0}, ValueError),
        ({"keep_last": 1.5}, TypeError),
        ({"keep_last": 10, "overflow": "spill"}, ValueError),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Drain(0, DrainOptions(**options))


def test_no_descriptor_left_is_an_error_that_leaves_nothing() -> None:
    out = run(
        """
        import errno, os, resource
        from claude_wire.native.drain import Drain
        read_end, write_end = os.pipe()
        fds = len(os.listdir("/proc/self/fd"))
        highest = max(map(int, os.listdir("/proc/self/fd")))
        failed = 0
        for limit in range(4, highest + 12):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, 1024))
            try:
                drain = Drain(read_end)
            except OSError as error:
                assert error.errno == errno.EMFILE, error
                failed += 1
            else:
                os.write(write_end, b"x")
                while drain.read() is None:
                    pass
                drain.close()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
            while len(os.listdir("/proc/self/task")) > 1:
                pass
            assert len(os.listdir("/proc/self/fd")) == fds
            assert os.get_blocking(read_end)
        print(failed)
        """
    )
    assert int(out) >= 5


# --- Wrong use --------------------------------------------------------------------------------------------------------


def test_a_closed_drain_is_refused() -> None:
    pipe = Pipe(keep_last=5)
    pipe.write(b"12345678")
    wait_until(lambda: pipe.drain.stats.bytes_rescued == 8)
    pipe.close()
    pipe.drain.close()
    uses: list[Callable[[], Any]] = [pipe.drain.read, pipe.drain.discard, pipe.drain.tail]
    uses += [pipe.drain.fileno, lambda: pipe.drain.watch(0)]
    for use in uses:
        with pytest.raises(HandleError, match="closed"):
            use()
    # The statistics are still available.
    assert pipe.drain.stats.bytes_rescued == 8
    assert (pipe.drain.stats.bytes_queued, pipe.drain.stats.paused) == (0, False)


def test_a_forked_child_is_refused_and_makes_its_own() -> None:
    out = run(
        """
        import os, time
        from claude_wire.native.budget import byte_budget, set_byte_budget
        from claude_wire.native.drain import Drain
        from claude_wire.errors import HandleError

        def drained():
            read_end, write_end = os.pipe()
            drain = Drain(read_end)
            os.close(read_end)
            return drain, write_end

        def until(condition):
            end = time.monotonic() + 60
            while not condition():
                assert time.monotonic() < end
                time.sleep(0.001)

        def read(drain):
            until(lambda: (data.append(drain.read()), data[-1] is not None)[1])
            return data[-1]

        data = []
        set_byte_budget(1 << 20)
        drain, write_end = drained()
        os.write(write_end, b"queued")
        until(lambda: drain.stats.bytes_queued == 6)
        others = [drained() for _ in range(10)]
        (hold, release) = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(release)
            for use in (drain.read, drain.discard, lambda: drain.stats):
                try:
                    use()
                except HandleError as error:
                    said = str(error)
                else:
                    os._exit(2)
            assert "another process" in said
            drain.close()
            del drain
            assert byte_budget() == 1 << 20
            own, own_end = drained()
            os.write(own_end, b"x" * 1000)
            until(lambda: own.stats.bytes_queued == 1000)  # by a rescuer of its own
            grandchild = os.fork()
            if not grandchild:
                again, again_end = drained()
                os.write(again_end, b"y")
                os._exit(0 if read(again) == b"y" else 3)
            assert os.waitpid(grandchild, 0)[1] == 0
            assert read(own) == b"x" * 1000
            own.close()
            os.read(hold, 1)
            os._exit(0)
        # While the child keeps a copy of every descriptor. What is queued is read first: more might be joined to it.
        assert read(drain) == b"queued"
        os.write(write_end, b" and more")
        assert read(drain) == b" and more"
        for other, end in others[:5]:
            other.close()
            os.write(end, b"nobody reads this")
        for other, end in others[5:]:
            os.write(end, b"rescued")
            until(lambda: other.stats.bytes_queued == 7)
            assert read(other) == b"rescued"
        os.close(release)
        assert os.waitpid(pid, 0)[1] == 0
        os.close(write_end)
        assert read(drain) == b""
        print("ok")
        """
    )
    assert out == "ok\n"


def test_a_fork_while_streams_are_rescued_leaves_the_child_no_lock() -> None:
    out = run(
        """
        import os, threading
        from claude_wire.native.drain import Drain
        read_end, write_end = os.pipe()
        drain = Drain(read_end)
        drain.discard()
        def write():
            try:
                while True:
                    os.write(write_end, b"x" * 65536)
            except OSError:
                pass
        threading.Thread(target=write, daemon=True).start()
        for _ in range(50):
            pid = os.fork()
            if not pid:
                own_end, end = os.pipe()
                own = Drain(own_end)
                os.write(end, b"x")
                while not own.stats.bytes_queued:
                    pass
                own.close()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        print("ok")
        """
    )
    assert out == "ok\n"


# --- Ends of the process ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state",
    [
        "pass",
        "os.write(write_end, b'x' * 1000)",
        "os.write(write_end, b'x' * 1000); time.sleep(0.1)",
        "os.write(write_end, b'x' * 50_000); view = drain.read()",
        "drain.discard(); flood()",
        "set_byte_budget(1 << 18); flood(); time.sleep(0.1)",
        "os.close(write_end)",
        "other = Drain(read_end, DrainOptions(keep_last=10))",
        "threading.Thread(target=read_on, daemon=True).start()",
        "atexit.register(lambda: (Drain(read_end).close(), drain.stats, drain.close()))",
        "cycle = [drain]; cycle.append(cycle); del drain, cycle; gc.disable()",
    ],
)
def test_open_drains_do_not_disturb_the_end_of_the_interpreter(state: str) -> None:
    out = run(
        f"""
        import atexit, gc, os, threading, time
        from claude_wire import HandleError
        from claude_wire.native.budget import set_byte_budget
        from claude_wire.native.drain import Drain
        from claude_wire.native.overflow import DrainOptions
        read_end, write_end = os.pipe()
        drain = Drain(read_end)
        def read_on():
            try:
                while True:
                    drain.read()
            except HandleError:  # it was closed; a traceback of a daemon thread at this time is fatal to CPython
                pass
        def flood():
            def write():
                while True:
                    os.write(write_end, b"x" * 65536)
            threading.Thread(target=write, daemon=True).start()
        {state}
        print("end")
        """
    )
    assert out == "end\n"


def test_after_the_rescuer_was_stopped_readers_still_read() -> None:
    out = run(
        """
        import os
        from claude_wire.native import drain as draining
        from claude_wire.native.drain import Drain
        from claude_wire.native.overflow import DrainOptions
        read_end, write_end = os.pipe()
        drain = Drain(read_end)
        kept = Drain(os.dup(read_end), DrainOptions(keep_last=3))
        assert draining.lib.cw_drain_stop(1000) == 0
        while len(os.listdir("/proc/self/task")) > 1:
            pass
        os.write(write_end, b"x" * 1000)
        assert drain.read() == b"x" * 1000
        os.write(write_end, b"12345")
        assert kept.tail() == b"345"
        later_end, end = os.pipe()
        later = Drain(later_end)
        os.write(end, b"y")
        assert later.read() == b"y"
        later.discard()
        os.write(end, b"z")
        assert later.read() is None
        os.close(end)
        assert later.read() == b""
        assert len(os.listdir("/proc/self/task")) == 1
        print("ok")
        """
    )
    assert out == "ok\n"


def test_a_rescuer_whose_descriptors_were_closed_ends() -> None:
    """Daemons close almost all descriptors when they start. The rescuer must not spin after that."""
    out = run(
        """
        import os, time
        from claude_wire.native.drain import Drain
        read_end, write_end = os.pipe()
        drain = Drain(read_end)
        names = {number: f"/proc/self/fd/{number}" for number in range(3, 50)}
        (its,) = (
            number
            for number, name in names.items()
            if number != drain.fileno() and os.path.lexists(name) and "eventpoll" in os.readlink(name)
        )
        os.close(its)
        os.write(write_end, b"x")  # so that it looks
        end = time.monotonic() + 60
        while len(os.listdir("/proc/self/task")) > 1:
            assert time.monotonic() < end
            time.sleep(0.001)
        assert drain.read() == b"x"
        print("ok", flush=True)
        os._exit(0)
        """
    )
    assert out == "ok\n"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_signals_with_a_handler_disturb_no_read(pipes: Callable[..., Pipe]) -> None:
    handled = 0

    def handle(number: int, frame: object) -> None:
        nonlocal handled
        handled += 1

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        pipe = pipes()
        data = data_of(8 * MIB)
        pipe.write_in_thread(data, sizes=lambda: 1000)
        assert read_all(pipe.drain) == data
        wait_until(lambda: handled > 10)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
