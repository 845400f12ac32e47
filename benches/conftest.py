"""How a bench compares: subject and peers take turns, round by round, in one process; what is claimed is their ratio.

Machines drift by tens of percent from minute to minute, so two numbers taken one after the other say little. In each
round every peer does the job once and then the subject does, and the ratio of that round is kept; the table shows the
median of the ratios with the lowest and the highest. pytest-benchmark keeps the subject's own times, so
``--benchmark-compare`` works as usual.
"""

from __future__ import annotations

import gc
import importlib.metadata
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

Job = Callable[[], object]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=15, help="rounds of each bench (default: 15)")


@dataclass
class Row:
    """A line of the table: the subject against one peer."""

    job: str
    subject_ns: float
    peer: str
    peer_ns: float
    ratios: list[float]
    #: What is claimed, such as ("at least", 8.0) for peer/subject or ("at most", 1.1) for subject/peer.
    claim: tuple[str, float] | None


@dataclass
class Table:
    rows: list[Row] = field(default_factory=list)


_table = Table()


class Contest:
    """Runs a subject and its peers alternately. Given to benches as the fixture ``contest``."""

    def __init__(self, benchmark: Any, rounds: int) -> None:
        self._benchmark = benchmark
        self._rounds = rounds

    def __call__(
        self,
        job: str,
        lines: int,
        subject: Job,
        *,
        faster_than: dict[str, tuple[Job, float | None]] | None = None,
        at_most: dict[str, tuple[Job, float | None]] | None = None,
    ) -> None:
        """Measure ``subject``, which handles ``lines`` lines, against its peers.

        ``faster_than`` gives peers whose time is divided by the subject's (the more the better), ``at_most`` peers by
        whose time the subject's is divided (a floor: the less the better); each with the number that is claimed, if one
        is.
        """
        peers = {**(faster_than or {}), **(at_most or {})}
        seconds: dict[str, list[float]] = {name: [] for name in peers}

        def peers_turn() -> None:
            for name, (peer, _) in peers.items():
                start = time.perf_counter()
                peer()
                seconds[name].append(time.perf_counter() - start)

        gc.collect()
        self._benchmark.pedantic(subject, setup=peers_turn, rounds=self._rounds, warmup_rounds=1)
        if self._benchmark.disabled:
            return
        own: list[float] = self._benchmark.stats.stats.data
        for name, (_, claimed) in peers.items():
            theirs = seconds[name][-len(own) :]
            upside_down = name in (at_most or {})
            ratios = [s / t if upside_down else t / s for s, t in zip(own, theirs, strict=True)]
            claim = None if claimed is None else ("at most" if upside_down else "at least", claimed)
            row = Row(job, _ns(own, lines), name, _ns(theirs, lines), ratios, claim)
            _table.rows.append(row)
            self._benchmark.extra_info[name] = round(statistics.median(ratios), 3)

    def measured(
        self,
        job: str,
        subject: Callable[[], float],
        *,
        at_most: dict[str, tuple[Callable[[], float], float | None]] | None = None,
        rounds: int | None = None,
    ) -> None:
        """As above, for functions that take their own times and return seconds; a round of them is one line."""
        peers = at_most or {}
        own: list[float] = []
        seconds: dict[str, list[float]] = {name: [] for name in peers}

        def turn() -> None:
            for name, (peer, _) in peers.items():
                seconds[name].append(peer())
            own.append(subject())

        self._benchmark.pedantic(turn, rounds=rounds or min(self._rounds, 5))
        for name, (_, claimed) in peers.items():
            ratios = [s / t for s, t in zip(own, seconds[name], strict=True)]
            claim = None if claimed is None else ("at most", claimed)
            _table.rows.append(Row(job, _ns(own, 1), name, _ns(seconds[name], 1), ratios, claim))
            self._benchmark.extra_info[name] = round(statistics.median(ratios), 3)


def _ns(seconds: list[float], lines: int) -> float:
    return statistics.median(seconds) / lines * 1e9


@pytest.fixture
def contest(benchmark: Any, request: pytest.FixtureRequest) -> Contest:
    return Contest(benchmark, request.config.getoption("--rounds"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    rows = _table.rows
    if not rows:
        return
    write = terminalreporter.write_line
    packages = ("msgspec", "orjson", "pydantic", "claude-agent-sdk")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    write("")
    write(f"CPython {platform.python_version()}, {platform.machine()}; {versions}")
    write("ns a line are medians; ratios are of rounds taken alternately: median (lowest to highest)")
    write("")
    width = max(len(row.job) for row in rows)
    peer_width = max(len(row.peer) for row in rows)
    for row in rows:
        median = statistics.median(row.ratios)
        shown = f"{median:6.2f} ({min(row.ratios):.2f} to {max(row.ratios):.2f})"
        verdict = ""
        if row.claim is not None:
            kind, bound = row.claim
            met = median <= bound if kind == "at most" else median >= bound
            verdict = f"{kind} {bound:g}: {'yes' if met else 'NO'}"
        ours = f"{row.job:<{width}}  {row.subject_ns:8.0f}"
        theirs = f"{row.peer:<{peer_width}}  {row.peer_ns:8.0f}"
        write(f"{ours}  {theirs}  {shown:<24}  {verdict}".rstrip())
