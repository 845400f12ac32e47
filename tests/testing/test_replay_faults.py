"""``claude_wire.testing``: faults that a test injects into a child process that replays a recording."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from typing import Any

import pytest

from claude_wire.testing import (
    CloseStdout,
    CutOutput,
    ExitAtOnce,
    Fault,
    FloodStderr,
    GarbageLine,
    GiveUp,
    HoldStdout,
    IgnoreTerm,
    Kill,
    Replay,
    Silence,
    Stall,
    WriteFirst,
    faults,
)
from replayed import (
    ASKING,
    DEADLINE,
    ONE_SHOT,
    PRINT,
    QUIET,
    STREAM,
    recording,
    request,
    response,
    run,
    running,
    said,
    user,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")


# --- faults -----------------------------------------------------------------------------------------------------------

LONG = recording("02_long_partial")


@pytest.mark.parametrize("at_byte", [0, 1, 5000, len(LONG.stdout)])
@pytest.mark.parametrize("writes", ["lines", "blocks"])
def test_cut_output(at_byte: int, writes: str, script: Any) -> None:
    done = run(script(LONG, writes=writes, faults=[CutOutput(at_byte, exit_code=4)]))
    assert (done.stdout, done.stderr, done.returncode) == (LONG.stdout[:at_byte], b"", 4)


@pytest.mark.parametrize("at_byte", [0, 5000])
@pytest.mark.parametrize("writes", ["lines", "blocks", "bytes"])
def test_kill(at_byte: int, writes: str, script: Any) -> None:
    done = run(script(LONG, writes=writes, faults=[Kill(at_byte)]))
    assert done.stdout == LONG.stdout[:at_byte]
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("place", "before"),
    [({"at_byte": len(said("a")) + 10}, said("a") + said("b")[:10]), ({"before_line": 2}, said("a"))],
)
def test_stall(place: dict[str, int], before: bytes, script: Any) -> None:
    with running(script(ONE_SHOT, faults=[Stall(60.0, **place)])) as child:
        data = b""
        while len(data) < len(before):
            assert child.process.stdout is not None
            data += os.read(child.process.stdout.fileno(), 1000)
        assert data == before
        assert child.is_quiet()
    began = time.monotonic()
    assert run(script(ONE_SHOT, faults=[Stall(0.3, **place)])).stdout == ONE_SHOT.stdout
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("before_line", [1, 2, 4])
def test_garbage_line(before_line: int, script: Any) -> None:
    lines = ONE_SHOT.stdout.splitlines(keepends=True)
    lines.insert(before_line - 1, b"\xff\x00{\n")
    assert run(script(ONE_SHOT, faults=[GarbageLine(before_line, b"\xff\x00{")])).stdout == b"".join(lines)


def asked() -> bytes:
    """Return the output of ``ASKING`` before it waits for an answer: its first three lines."""
    return b"".join(ASKING.stdout.splitlines(keepends=True)[:3])


@pytest.mark.parametrize(
    ("fault", "code"), [(CutOutput(len(asked()), 4), 4), (Kill(len(asked())), -signal.SIGKILL)], ids=["cut", "kill"]
)
def test_what_happens_after_a_byte_does_not_wait_for_the_input_before_the_next(
    fault: Fault, code: int, script: Any
) -> None:
    with running(script(ASKING, *STREAM, faults=[fault])) as child:
        child.send(request("r1", "initialize") + user("one"))
        assert child.rest() == asked()
        assert child.process.wait(DEADLINE) == code


@pytest.mark.parametrize(
    ("fault", "first"),
    [(GarbageLine(4, b"odd"), b"odd\n"), (CutOutput(0), b"")],
    ids=["garbage", "cut"],
)
def test_what_happens_before_a_line_waits_for_the_input_before_it(fault: Fault, first: bytes, script: Any) -> None:
    with running(script(ASKING, *STREAM, faults=[fault])) as child:
        if first:
            child.send(request("r1", "initialize") + user("one"))
            for line_before in asked().splitlines(keepends=True):
                assert child.receive_line() == line_before
        assert child.is_quiet()
        child.send(response("cli-1") if first else request("r1", "initialize"))
        assert child.receive_line() == first


@pytest.mark.parametrize(("place", "answers"), [({"before_line": 4}, True), ({"at_byte": len(asked())}, False)])
def test_stall_before_a_line_begins_behind_the_input_before_it(
    place: dict[str, int], answers: bool, script: Any
) -> None:
    with running(script(ASKING, *STREAM, faults=[Stall(60.0, **place)])) as child:
        child.send(request("r1", "initialize") + user("one"))
        for line_before in asked().splitlines(keepends=True):
            assert child.receive_line() == line_before
        child.send(request("r2", "interrupt"))
        assert (child.receive_line() == response("r2")) if answers else child.is_quiet()
        child.send(response("cli-1"))
        assert child.is_quiet()


def test_several_faults_at_one_place_happen_in_their_order(script: Any) -> None:
    ordered = [GarbageLine(2, b"one"), GarbageLine(2, b"two"), Kill(len(said("a")))]
    assert run(script(ONE_SHOT, faults=ordered)).stdout == said("a") + b"one\ntwo\n"


def test_faults_are_placed_by_the_recording_whatever_else_is_written(script: Any) -> None:
    with running(script(ONE_SHOT, *STREAM, faults=[Kill(len(said("a")) + 3)])) as child:
        child.send(request("live", "initialize") + user("hi"))
        child.receive_line()
        assert child.rest() == said("a") + said("b")[:3]


def test_flood_of_stderr_is_all_written_before_anything_else(script: Any) -> None:
    with running(script(ONE_SHOT, faults=[FloodStderr(1_000_000)])) as child:
        assert child.is_quiet()
        assert child.process.stderr is not None
        flood = child.process.stderr.read(1_000_000)
        while len(flood) < 1_000_000:
            flood += child.process.stderr.read(1_000_000 - len(flood))
        assert child.rest() == ONE_SHOT.stdout
        assert child.process.stderr.read() == b""
    assert max(map(len, flood.splitlines())) < 100


def test_ignore_term_and_the_end_of_input(script: Any) -> None:
    with running(script(ONE_SHOT, *STREAM, faults=[IgnoreTerm()])) as child:
        child.send(user("hi"))
        for step in ONE_SHOT.steps:
            assert child.receive_line() == step.data
        child.end()
        child.process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            child.process.wait(QUIET)
        child.process.kill()
        assert child.process.wait(DEADLINE) == -signal.SIGKILL


def test_ignore_term_ends_some_time(script: Any) -> None:
    assert run(script(ONE_SHOT, faults=[IgnoreTerm(0.01)])).returncode == 3


@pytest.mark.parametrize(("more", "stdout", "code"), [([], ONE_SHOT.stdout, 3), ([Kill(0)], b"", -signal.SIGKILL)])
def test_hold_stdout(more: list[Fault], stdout: bytes, code: int, script: Any) -> None:
    with running(script(ONE_SHOT, faults=[HoldStdout(60.0), *more]), start_new_session=True) as child:
        assert child.process.wait(DEADLINE) == code
        received = b""
        while len(received) < len(stdout):
            received += child.receive_line()
        assert child.is_quiet()  # the child still runs, but writes nothing more
        os.killpg(child.process.pid, signal.SIGKILL)
        assert received + child.rest() == stdout
    began = time.monotonic()
    assert run(script(ONE_SHOT, faults=[HoldStdout(0.5), *more])).stdout == stdout
    assert time.monotonic() - began >= 0.5


def test_close_stdout_and_live_on(script: Any) -> None:
    with running(script(ONE_SHOT, *STREAM, faults=[CloseStdout(60.0)])) as child:
        child.send(user("hi"))
        assert child.rest() == ONE_SHOT.stdout
        child.end()
        with pytest.raises(subprocess.TimeoutExpired):
            child.process.wait(QUIET)
        child.process.terminate()
        assert child.process.wait(DEADLINE) == 143


def test_exit_at_once(script: Any) -> None:
    with running(script(ASKING, faults=[ExitAtOnce(7)])) as child:
        assert child.rest() == b""
        assert child.process.wait(DEADLINE) == 7


@pytest.mark.parametrize("size", [22, 100, 300_000])
def test_write_first(size: int, script: Any) -> None:
    with running(script(ASKING, faults=[WriteFirst(size)])) as child:
        first = b""
        while len(first) < size:
            data = child.receive_line()
            assert json.loads(data) == {"type": "keep_alive"}
            first += data
        assert len(first) == size
        assert child.is_quiet()
        child.send(ASKING.stdin)
        assert child.finish() == (ASKING.stdout, b"", 0)


def test_write_first_reads_nothing_meanwhile(script: Any) -> None:
    with running(script(ASKING, faults=[WriteFirst(300_000)])) as child:
        assert child.process.stdin is not None
        os.set_blocking(child.process.stdin.fileno(), False)
        sent = 0
        deadline = time.monotonic() + DEADLINE
        with contextlib.suppress(BlockingIOError):
            while time.monotonic() < deadline:
                sent += os.write(child.process.stdin.fileno(), b"\n" * 4096)
        assert not select.select([], [child.process.stdin], [], QUIET)[1]
        assert sent <= 1 << 20  # at most the capacity of the pipe


@pytest.mark.parametrize("flags", [STREAM, PRINT])
def test_silence(flags: list[str], script: Any) -> None:
    with running(script(ASKING, *flags, faults=[Silence(60.0), GarbageLine(1)])) as child:
        child.send(ASKING.stdin)
        assert child.is_quiet()
        assert child.process.poll() is None
        if flags == STREAM:
            assert child.finish() == (b"", b"", 0)


def test_silence_means_no_answer_to_requests_either(script: Any) -> None:
    """The child answers neither recorded requests nor unknown ones, which otherwise get a success."""
    with running(script(ASKING, *STREAM, faults=[Silence(60.0)])) as child:
        child.send(
            request("live-1", "interrupt") + request("live-2", "initialize") + request("live-3", "never_recorded")
        )
        child.send(user("one") + request("live-4", "initialize"))
        assert child.finish() == (b"", b"", 0)  # the child has read all lines when it ends


def test_silence_of_a_one_shot_run_ends_some_time(script: Any) -> None:
    assert run(script(ONE_SHOT, *PRINT, faults=[Silence(0.01)])).stdout == b""


def test_give_up_leaves_what_the_cli_would_leave(script: Any) -> None:
    with running(script(LONG, faults=[GiveUp(0.1)])) as child:
        assert child.process.wait(DEADLINE) == 0
        out = child.rest()
    assert 0 < len(out) < len(LONG.stdout)
    assert LONG.stdout.startswith(out)


def test_give_up_waits_for_a_host_that_has_not_ended_its_input(script: Any) -> None:
    with running(script(LONG, *STREAM, faults=[GiveUp(0.05)])) as child:
        child.send(user("hi"))
        with pytest.raises(subprocess.TimeoutExpired):
            child.process.wait(QUIET * 2)
        child.end()
        assert child.process.wait(DEADLINE) == 0
        assert len(child.rest()) < len(LONG.stdout)


def test_give_up_needs_nobody_who_is_slow_but_reads(script: Any) -> None:
    assert run(script(LONG, faults=[GiveUp(5.0)])).stdout == LONG.stdout


@pytest.mark.parametrize(
    "fault",
    [
        Kill(len(ONE_SHOT.stdout) + 1),
        Kill(-1),
        CutOutput(10**9),
        GarbageLine(0),
        GarbageLine(5),
        Stall(1, before_line=9),
    ],
    ids=str,
)
def test_fault_that_would_never_happen_is_refused(fault: Fault) -> None:
    with pytest.raises(ValueError, match="beyond"):
        Replay(ONE_SHOT, faults=[fault])


def test_wrong_arguments_are_refused() -> None:
    for make in (
        lambda: Stall(1.0),
        lambda: Stall(1.0, at_byte=1, before_line=1),
        lambda: WriteFirst(21),
        lambda: Stall(-1.0, at_byte=0),
        lambda: Silence(float("nan")),
        lambda: IgnoreTerm(float("inf")),
        lambda: HoldStdout(-1.0),
        lambda: CloseStdout(-1.0),
        lambda: FloodStderr(-1),
        lambda: GiveUp(0),
        lambda: CutOutput(0, exit_code=256),
        lambda: ExitAtOnce(-9),
        lambda: Replay(ONE_SHOT, speed=0),
        lambda: Replay(ONE_SHOT, speed=float("inf")),
        lambda: Replay(ONE_SHOT, writes="words"),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - each case has a different message
            make()


@pytest.mark.parametrize("fault", ["kill", Silence, None])
def test_what_is_no_fault_is_refused(fault: Any) -> None:
    with pytest.raises(TypeError, match="is not a fault"):
        Replay(ONE_SHOT, faults=[fault])


def test_every_fault_is_exported_and_in_the_union() -> None:
    names = {name for name in faults.__all__ if name != "Fault"}
    assert names == {fault.__name__ for fault in Fault.__args__}
    assert names <= set(globals())
