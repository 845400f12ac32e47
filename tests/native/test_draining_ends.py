"""Every way in which a stream, a drain or a process can end, and the descriptors that are held until then."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from claude_wire.errors import HandleError
from claude_wire.native.drain import Drain
from claude_wire.native.overflow import CHUNK_BYTES, DrainOptions
from drained_pipes import (
    MIB,
    Pipe,
    data_of,
    linux,
    read_all,
    read_exactly,
    read_some,
    run,
    wait_until,
)

pytestmark = linux

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
