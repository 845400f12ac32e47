"""The web service: what a connection and an event cost, compared with a plain endpoint that sends the same bytes.

500 connections read 50 sessions. The service and the endpoint (serving.py) are separate processes, on uvicorn with the
same settings, and read the same supervisor. Only the memory and the processor time of these processes count. The
endpoint does not decode lines or make events; the service does that once for all readers of a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import peers
import serving
from conftest import Contest, takes_own_time
from supervisor_process import SupervisorProcess

SESSIONS = 50
#: Connections per session.
READERS = 10
#: Events per round. Each goes to all readers of its session.
EVENTS = 1_000

#: The claimed memory of a connection in MB: 1.3 times 27 KiB.
MAX_MEMORY = 0.036


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[SupervisorProcess]:
    running = SupervisorProcess(tmp_path / "supervisor", "asyncio")
    yield running
    running.close()


@pytest.fixture
def opened(supervisor: SupervisorProcess, tmp_path: Path) -> Iterator[tuple[serving.Served, serving.Served]]:
    """Start the service and the plain endpoint."""
    folder = tmp_path / "supervisor"
    both = (
        serving.start("service", supervisor, folder, SESSIONS),
        serving.start("plain", supervisor, folder, SESSIONS),
    )
    yield both
    for one in both:
        one.close()


def test_memory(contest: Contest, opened: tuple[serving.Served, serving.Served]) -> None:
    """Measure the memory of connections that received an event."""

    def held(served: serving.Served) -> float:
        served.connect(1)
        served.run(EVENTS, SESSIONS)  # a first run: one-time allocations must not count
        before = served.resident
        served.connect(READERS)
        served.run(SESSIONS, SESSIONS)
        return (served.resident - before) / (SESSIONS * READERS)

    service, plain = opened
    contest.memory(
        "the memory of a service for a connection",
        lambda: held(service),
        {"a plain endpoint of Starlette": lambda: held(plain)},
        claim=MAX_MEMORY,
    )


@takes_own_time
@pytest.mark.parametrize("at_once", [SESSIONS, 1], ids=["together", "alone"])
def test_processor_time(contest: Contest, opened: tuple[serving.Served, serving.Served], at_once: int) -> None:
    """Measure the processor time per event and connection: for events of all sessions together, and for single events.

    Sending costs 1.05 times as much as the endpoint (23 and 22 µs, mostly in uvicorn, h11 and the kernel). Making an
    event costs 23 µs, or 64 µs if its line alone wakes the service; it is made once for ten readers. Counted in
    instructions without the kernel, the service takes 1.13 to 1.22 times as many. An earlier version took 1.6 times the
    time: it had a cancel scope for each wait of a connection, and generators and middleware around each event.
    """
    service, plain = opened
    for one in opened:
        one.connect(READERS)
        one.run(EVENTS, at_once)
    several = "events of all sessions" if at_once > 1 else "one event"
    contest.measured(
        f"an event to a connection, {several} at a time",
        lambda: service.run(EVENTS, at_once),
        at_most={"a plain endpoint of Starlette": (lambda: plain.run(EVENTS, at_once), 1.3)},
        rounds=None,
    )


@takes_own_time
def test_the_end_of_a_long_session(contest: Contest, supervisor: SupervisorProcess, tmp_path: Path) -> None:
    """A newly started service must send the last 200 events of a session of 100 MB as fast as those of one of 2 MB."""
    folder = tmp_path / "supervisor"
    long, short = serving.write_long(supervisor, 1_100), serving.write_long(supervisor, 22)
    contest.measured(
        "the end of a session of 100 MB over HTTP",
        lambda: serving.end_of(supervisor, folder, long),
        at_most={"of a session of 2 MB": (lambda: serving.end_of(supervisor, folder, short), 1.5)},
    )


@takes_own_time
@pytest.mark.parametrize("what", ["first paint", "last answer"])
def test_opening_a_long_session(contest: Contest, supervisor: SupervisorProcess, tmp_path: Path, what: str) -> None:
    """Open the page of a newly started service in Chromium, on a session of 100 MB and on one of 2 MB.

    Times count from the start of the navigation. The page shows its first paint before it has the events, and then the
    last answer, at the end of the session.
    """
    if peers.browser is None:
        pytest.skip("needs Chromium and Playwright")
    folder = tmp_path / "supervisor"
    long, short = (serving.write_long(supervisor, turns) for turns in (1_100, 22))
    which = ["first paint", "last answer"].index(what)
    contest.measured(
        f"the page in Chromium, a session of 100 MB: {what}",
        lambda: serving.paint_of(folder, long, "Answer 1099")[which],
        at_most={"a session of 2 MB": (lambda: serving.paint_of(folder, short, "Answer 21")[which], 1.25)},
    )
