"""The fixture ``contest``, which a bench uses to compare claude_wire (the subject) with other packages (the peers).

A machine's speed changes by tens of percent from minute to minute, so the benches claim ratios, not times. In each
round every peer does the job once, and then the subject does it; the round gives one ratio of their times for each
peer. The table shows the median of the ratios, the lowest and the highest. pytest-benchmark keeps the times of the
subject, so ``--benchmark-compare`` and ``--benchmark-autosave`` work as usual.

A run of all benches, with all rounds and all peers, also writes docs/benchmarks.md, docs/benchmarks.json, the charts
and the table in the README.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import page
import peers
import workloads
from table import Measure, Row, Table

BENCHES = Path(__file__).parent
ROUNDS = 15
#: Module -> section title. The benches run, and the table is printed, in this order.
SECTIONS = {
    "test_live": "One live line at a time",
    "test_decode": "Typed messages and dicts, from chunks of 64 KiB",
    "test_filter": "Lines that need not become objects: only=, coalesce=, peek",
    "test_encode": "Encoding, and both ways",
    "test_transport": "Through a pipe",
    "test_session": "A session through a pipe",
    "test_agent": "An agent",
    "test_streams": "Many streams",
    "test_memory": "Memory",
    "test_import": "Import",
    "test_columns": "Columns of files",
    "test_variations": "Other traffic, made by a generator",
    "test_odd": "Where it costs more",
    "test_accumulate": "Whole messages from deltas",
    "test_bridge": "Events for a front end",
    "test_supervisor": "A supervisor of many sessions",
    "test_serve": "Events over HTTP",
    "test_tap": "The tap between a CLI and its host",
}

Job = Callable[[], object]
Runner = Callable[[Awaitable[Any]], Any]
#: Label of a peer -> its job (None if the package is not installed), and the claimed ratio (None for no claim).
Peers = Mapping[str, tuple[Job | None, float | None]]

_table = Table()
_deselected: list[str] = []
_own_time = 0.0


def own_time() -> float:
    """Return the time of a clock that advances by the times that a bench reports. See :meth:`Contest.measured`."""
    return _own_time


#: A mark for benches that call :meth:`Contest.measured`: pytest-benchmark then keeps the times that they report.
takes_own_time = pytest.mark.benchmark(timer=own_time)


class Contest:
    """Runs a subject and its peers alternately. Benches get it as the fixture ``contest``."""

    def __init__(self, benchmark: Any, rounds: int, section: str) -> None:
        self._benchmark = benchmark
        self._section = section
        self.rounds = rounds

    def __call__(
        self,
        job: str,
        lines: int,
        subject: Job,
        *,
        faster_than: Peers | None = None,
        at_most: Peers | None = None,
        rate: tuple[int, float | None] | None = None,
        passes: int = 1,
        charted: bool = False,
        rounds: int | None = None,
    ) -> None:
        """Measure ``subject``, which handles ``lines`` lines, against its peers.

        Args:
            job: the job's name in the table.
            lines: how many lines the subject and each peer handle.
            subject: the function to measure.
            faster_than: peers that should be slower. The ratio is their time divided by the subject's.
            at_most: peers that should be faster, such as msgspec below our decoder. The ratio is our time divided by
                theirs.
            rate: how many bytes the subject reads, and the claimed GB/s.
            passes: how often the subject does the job in a round: more than once if it takes very little time.
            charted: whether the chart shows ``faster_than``.
            rounds: the maximum number of rounds.
        """
        everyone = {**(faster_than or {}), **(at_most or {})}
        present = {label: peer for label, (peer, _) in everyone.items() if peer is not None}
        seconds: dict[str, list[float]] = {label: [] for label in present}

        def peers_turn() -> None:
            for label, peer in present.items():
                start = time.perf_counter()
                peer()
                seconds[label].append(time.perf_counter() - start)

        def subjects_turn() -> None:
            for _ in range(passes):
                subject()

        gc.collect()
        self._benchmark.pedantic(
            subject if passes == 1 else subjects_turn,
            setup=peers_turn,
            rounds=min(self.rounds, rounds or self.rounds),
            warmup_rounds=1,
        )
        if self._benchmark.disabled:
            return
        own = [taken / passes for taken in self._benchmark.stats.stats.data]
        if rate is None and not present:
            self._add(job, lines, own, Measure.FASTER)
        if rate is not None:
            size, claim = rate
            self._add(job, lines, own, Measure.RATE, claim, values=[size / s / 1e9 for s in own])
        for label in present:
            measure = Measure.TIME if label in (at_most or {}) else Measure.FASTER
            theirs, shown = seconds[label][-len(own) :], charted and measure is Measure.FASTER
            self._add(job, lines, own, measure, everyone[label][1], peer=label, theirs=theirs, charted=shown)

    def measured(
        self,
        job: str,
        subject: Callable[[], float],
        *,
        at_most: Mapping[str, tuple[Callable[[], float] | None, float | None]] | None = None,
        above: Mapping[str, tuple[Callable[[], float] | None, float | None]] | None = None,
        rounds: int | None = 5,
    ) -> None:
        """Measure functions that time their own work and return seconds. A call counts as one line.

        ``above`` gives peers whose time is subtracted from the subject's. Benches that call this are marked
        :data:`takes_own_time`.
        """
        everyone = {**(at_most or {}), **(above or {})}
        present = {label: peer for label, (peer, _) in everyone.items() if peer is not None}
        own: list[float] = []
        seconds: dict[str, list[float]] = {label: [] for label in present}

        def peers_turn() -> None:
            for label, peer in present.items():
                seconds[label].append(peer())

        def subjects_turn() -> None:
            global _own_time
            own.append(subject())
            _own_time += own[-1]

        count = min(self.rounds, rounds or self.rounds)
        self._benchmark.pedantic(subjects_turn, setup=peers_turn, rounds=count)
        if self._benchmark.disabled:
            return
        if not present:
            self._add(job, 1, own, Measure.TIME)
        for label, theirs in seconds.items():
            measure = Measure.ABOVE if label in (above or {}) else Measure.TIME
            self._add(job, 1, own, measure, everyone[label][1], peer=label, theirs=theirs)

    def memory(
        self,
        job: str,
        subject: Callable[[], float],
        others: Mapping[str, Callable[[], float] | None] | None = None,
        claim: float | None = None,
    ) -> None:
        """Measure functions that return bytes of memory, once each. The claim is in MB."""
        megabytes = self._benchmark.pedantic(lambda: subject() / 1e6, rounds=1)
        if self._benchmark.disabled:
            return
        _table.rows.append(Row(self._section, job, megabytes, "", None, [megabytes], Measure.MEMORY, claim, "MB"))
        self._benchmark.extra_info["MB"] = round(megabytes, 3)
        for label, other in (others or {}).items():
            if other is not None:
                theirs = other() / 1e6
                _table.rows.append(Row(self._section, job, megabytes, label, theirs, [], Measure.MEMORY, None, "MB"))

    def _add(
        self,
        job: str,
        lines: int,
        own: list[float],
        measure: Measure,
        claim: float | None = None,
        *,
        peer: str = "",
        theirs: list[float] | None = None,
        values: list[float] | None = None,
        charted: bool = False,
    ) -> None:
        if theirs is not None:
            values = [measure.of(s, t) for s, t in zip(own, theirs, strict=True)]
        ours = statistics.median(own) / lines
        peers_own = statistics.median(theirs) / lines if theirs else None
        row = Row(self._section, job, ours, peer, peers_own, values or [], measure, claim, charted=charted)
        _table.rows.append(row)
        if row.values:
            self._benchmark.extra_info[peer or measure.written] = round(row.median, 3)


@pytest.fixture(scope="session")
def lines_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with :func:`workloads.deltas`, for a child process to write."""
    path = tmp_path_factory.mktemp("lines") / "lines.ndjson"
    path.write_bytes(workloads.deltas())
    return path


@pytest.fixture
def stand_in(request: pytest.FixtureRequest, lines_file: Path, tmp_path: Path) -> str:
    """The path of a program that runs the module's ``CHILD``, for a host that starts the program as its CLI."""
    path = tmp_path / "claude"
    child = request.module.CHILD
    path.write_text(f"#!/bin/sh\nLINES_FILE='{lines_file}' exec '{sys.executable}' -S '{child}' \"$@\"\n")
    path.chmod(0o700)
    return str(path)


@pytest.fixture
def runner() -> Iterator[Runner]:
    """A function that runs a coroutine in an event loop that lives for all rounds."""
    loop = asyncio.new_event_loop()
    yield loop.run_until_complete
    loop.close()


@pytest.fixture
def contest(benchmark: Any, request: pytest.FixtureRequest) -> Contest:
    module = request.module.__name__
    return Contest(benchmark, request.config.getoption("--rounds"), SECTIONS[module])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=ROUNDS, help=f"rounds of each bench (default: {ROUNDS})")
    parser.addoption("--page", type=Path, help="write the page, rows and charts to this folder, whatever the run")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = list(SECTIONS)
    items.sort(key=lambda item: order.index(item.path.stem))


def pytest_deselected(items: list[pytest.Item]) -> None:
    _deselected.extend(item.nodeid for item in items)


def _why_no_page(config: pytest.Config, reporter: Any) -> str | None:
    """Return why this run cannot write the page, or None if it can."""
    if config.getoption("--rounds") < ROUNDS:
        return f"fewer than {ROUNDS} rounds"
    files = {report.fspath for report in reporter.stats.get("passed", ())}
    everything = {f"benches/{module}.py" for module in SECTIONS}
    if _deselected or not everything <= files or any("::" in argument for argument in config.args):
        return "not all benches were run"
    if reporter.stats.get("failed") or reporter.stats.get("error") or reporter.stats.get("skipped"):
        return "not all benches came to their end"
    if not peers.SPARED.issuperset(peers.missing):
        return "not all peers are installed"
    return None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not _table.rows:
        return
    write = terminalreporter.write_line
    write("")
    for line in page.machine():
        write(line)
    for name in peers.missing:
        write(f"not installed, so not compared with: {name}")
    write("ns and the like are medians for a line; what is claimed are ratios of rounds taken alternately:")
    write("median (lowest to highest)")
    for line in _table.lines():
        write(line)
    missed = [row for row in _table.rows if row.met is False]
    claims = sum(row.met is not None for row in _table.rows)
    write("")
    write(f"{claims} claims, {len(missed)} of them not met in this run")
    why_not = _why_no_page(config, terminalreporter)
    folder = config.getoption("--page") or (BENCHES.parent / "docs" if why_not is None else None)
    if folder is None:
        write(f"the page was not written: {why_not}")
    else:
        page.write(_table, folder, config.getoption("--rounds"))
        write(f"written: {folder}/benchmarks.md, benchmarks.json and the charts")
