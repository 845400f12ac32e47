"""Drains keep unread bytes within the budget or in a file, or discard them."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from claude_wire.errors import ByteBudgetError
from claude_wire.native.budget import DEFAULT_BYTE_BUDGET, byte_budget, set_byte_budget
from claude_wire.native.overflow import CHUNK_BYTES
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
