"""A supervisor: its memory and processor time per session, and the delay that it adds to an event.

The supervisor is a separate process (supervisor_process.py), and only this process is measured: its memory, with shared
pages counted in part (Pss), and its processor time. Each session has a real process as its CLI, so the supervisor has
the pipes and the journal of a real session. The bench writes the lines.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import workloads
from conftest import Contest, Runner, takes_own_time
from supervisor_process import Pace, SupervisorProcess, Writer

#: Starts a supervisor on an event loop.
Opener = Callable[..., SupervisorProcess]

#: How many seconds a round of events lasts.
SECONDS = 2.0

#: The claim for the supervisor's memory per idle session: 48 KiB, in MB.
MAX_MEMORY = 0.049


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Return a function that starts a supervisor on an event loop."""
    started: list[SupervisorProcess] = []

    def open_one(loop: str = "asyncio") -> SupervisorProcess:
        started.append(SupervisorProcess(tmp_path / str(len(started)), loop))
        return started[-1]

    yield open_one
    for one in started:
        one.close()


@pytest.mark.parametrize("sessions", [100, 1_000])
@pytest.mark.parametrize("attached", [False, True], ids=["alone", "attached"])
def test_idle(contest: Contest, opened: Opener, sessions: int, attached: bool) -> None:
    """Measure the memory per session after ``initialize``, without clients and with one client each."""

    def held() -> float:
        supervisor = opened()
        supervisor.open(10, attached=attached)  # a few sessions first: one-time allocations must not count
        before = supervisor.resident
        supervisor.open(sessions, attached=attached)
        return (supervisor.resident - before) / sessions

    followed = "with a client" if attached else "without clients"
    contest.memory(f"memory of an idle session {followed}, of {sessions:,}", held, claim=MAX_MEMORY)


@takes_own_time
@pytest.mark.parametrize(("loop", "claim"), [("asyncio", 1.35), ("uvloop", 1.3)])
@pytest.mark.parametrize("rate", [None, 2_000], ids=["each", "all"])
def test_replayed(contest: Contest, opened: Opener, loop: str, claim: float, rate: int | None) -> None:
    """Compare the processor time per event for 1,000 sessions, of which ten have slow readers, and for ten sessions.

    The events are at random moments: ten per second in each session, or 2,000 per second in all sessions together. With
    the same number of events, more sessions cost more because their memory is not in the processor's caches. With ten
    sessions, one read also returns several lines of a session more often: 0.72 to 0.92 reads per event, against 1.00
    with 1,000 sessions. A bare callback that reads each pipe, and writes to a file and to a socket, took 1.26 times as
    long with 1,000 pipes as with ten on asyncio, and 1.16 to 1.33 times on uvloop, on a busy machine.
    """

    def pace(sessions: int, slow: int) -> Callable[[], float]:
        supervisor = opened(loop)
        supervisor.open(sessions, attached=True)
        clients = Pace(supervisor.sessions[slow:], supervisor.sessions[:slow])
        count = round(SECONDS * (rate or 10 * sessions))

        def seconds() -> float:
            before = supervisor.seconds
            clients.run(count, SECONDS)
            return (supervisor.seconds - before) / count

        return seconds

    few, many = pace(10, 0), pace(1_000, 10)
    events = "2,000 events a second in all" if rate else "10 events a second each"
    contest.measured(
        f"an event of 1,000 sessions, {events}, {loop}", many, at_most={"an event of ten sessions": (few, claim)}
    )


@takes_own_time
def test_nobody_starves(contest: Contest, opened: Opener) -> None:
    """Measure the largest mean delay among 990 sessions with quick readers, while ten others have slow readers."""
    supervisor = opened()
    supervisor.open(1_000, attached=True)
    clients = Pace(supervisor.sessions[10:], supervisor.sessions[:10])
    delays: list[float] = []

    def median() -> float:
        delays[:] = [statistics.mean(found) for found in clients.run(6_000, SECONDS).values() if found]
        return statistics.median(delays)

    contest.measured(
        "the delay of the slowest of 1,000 sessions",
        lambda: max(delays),
        at_most={"100 ms": (lambda: 0.1, 1.0), "the delay of their median": (median, None)},
    )


@takes_own_time
@pytest.mark.parametrize(("loop", "claim"), [("asyncio", 0.06), ("uvloop", 0.035)])
def test_latency(
    contest: Contest,
    opened: Opener,
    lines_file: Path,
    runner: Runner,
    tmp_path: Path,
    loop: str,
    claim: float,
) -> None:
    """Measure the median time from the write of an event to its arrival at the client, with one event per 2 ms.

    Most of this time is the wake-up of processes, which changes with the load and the clock rate of the processor. So
    the bare pipe, the relay and the supervisor alternate every ten events. No supervisor can be faster than the relay.
    """
    bare, relayed = Writer(lines_file), Writer(lines_file, relayed=tmp_path / "relayed")
    through = Writer(lines_file, opened(loop))
    found: dict[Writer, list[float]] = {}

    def all_medians() -> float:
        found.update({writer: [] for writer in (bare, relayed, through)})
        for _ in range(10):
            for writer, taken in found.items():
                taken += runner(writer.latencies(10, 2_000))
        return median(bare)

    def median(writer: Writer) -> float:
        return statistics.median(found[writer])

    contest.measured(
        f"an event through a supervisor, {loop}",
        lambda: median(through),
        above={
            "a bare pipe": (all_medians, claim),
            "a relay of 15 lines on asyncio, with a file": (lambda: median(relayed), None),
        },
        rounds=None,
    )
    for writer in found:
        writer.close()


def test_throughput(contest: Contest, opened: Opener, lines_file: Path, runner: Runner) -> None:
    """Read blocks of one session with a client that drops them."""
    bare, through = Writer(lines_file), Writer(lines_file, opened())
    size = len(workloads.deltas()) * 4 * workloads.PASSES
    contest(
        "blocks through a supervisor",
        4 * workloads.LINES,
        lambda: runner(through.take(4 * workloads.LINES, size)),
        at_most={"a bare pipe": (lambda: runner(bare.take(4 * workloads.LINES, size)), None)},
        rate=(size, None),
        rounds=5,
    )
    bare.close()
    through.close()


@takes_own_time
def test_processor_time(contest: Contest, opened: Opener, lines_file: Path, runner: Runner) -> None:
    """Measure the supervisor's processor time for a GB of blocks of one session."""
    supervisor = opened()
    through = Writer(lines_file, supervisor)
    size = len(workloads.deltas()) * 4 * workloads.PASSES

    def seconds() -> float:
        before = supervisor.seconds
        runner(through.take(4 * workloads.LINES, size))
        return (supervisor.seconds - before) / size * 1e9

    contest.measured("processor time of a supervisor for a GB", seconds, at_most={"1 s": (lambda: 1.0, None)})
    through.close()
