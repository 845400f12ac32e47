"""A run's results as rows, and how a terminal shows them. This module does not know how benches measure.

A row is one job of the subject (claude_wire), mostly compared with one peer. ``values`` has one number for each round,
usually a ratio. The claim is about their median.
"""

from __future__ import annotations

import enum
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["TIMES", "Measure", "Row", "Table", "quantity", "shown"]


TIMES = "\N{MULTIPLICATION SIGN}"


class Measure(enum.Enum):
    """What a row's values mean, their unit, and whether more is better."""

    #: The peer's time divided by the subject's.
    FASTER = (f"{TIMES} faster", "at least", True)
    #: The subject's time divided by the peer's, for a peer that should be faster.
    TIME = (f"{TIMES} its time", "at most", False)
    #: Input bytes divided by the subject's time.
    RATE = ("GB/s", "at least", True)
    #: Memory, with 1 MB = 1,000,000 bytes.
    MEMORY = ("MB", "at most", False)
    #: The subject's time minus the peer's.
    ABOVE = ("ms above it", "at most", False)

    def __init__(self, written: str, bound: str, more_is_better: bool) -> None:
        self.written = written
        self.bound = bound
        self.more_is_better = more_is_better

    def of(self, ours: float, theirs: float) -> float:
        """Return a round's value from the subject's and the peer's seconds."""
        if self is Measure.ABOVE:
            return (ours - theirs) * 1e3
        return theirs / ours if self is Measure.FASTER else ours / theirs


@dataclass
class Row:
    """A row of the table."""

    section: str
    job: str
    #: The subject's median: seconds (usually per line) or MB, see ``unit``.
    ours: float
    #: The peer's label, which begins with the package name. Empty for a row without a peer.
    peer: str
    #: The peer's median, in the same unit.
    theirs: float | None
    values: list[float]
    measure: Measure
    #: The bound that the median of the values must keep; None for no claim.
    claim: float | None = None
    unit: str = "s"
    #: True if the chart shows this row.
    charted: bool = False

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def package(self) -> str:
        """The name of the peer's package, from its label."""
        return self.peer.replace(",", " ").replace(".", " ").split(" ")[0].removesuffix("'s")

    @property
    def met(self) -> bool | None:
        """True if the claim holds; None if there is no claim."""
        if self.claim is None:
            return None
        return self.median >= self.claim if self.measure.more_is_better else self.median <= self.claim

    @property
    def lost(self) -> bool:
        """True if the claim does not hold, or if the peer is faster."""
        return self.met is False or (self.measure is Measure.FASTER and bool(self.values) and self.median < 1)


@dataclass
class Table:
    """All rows of a run, in the order in which the benches added them."""

    rows: list[Row] = field(default_factory=list)

    def sections(self) -> Iterator[tuple[str, list[Row]]]:
        """Yield each section with its rows, in the order in which the sections began."""
        for section in dict.fromkeys(row.section for row in self.rows):
            yield section, [row for row in self.rows if row.section == section]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table for a terminal."""
        widths = [max((len(cells[at]) for cells in map(_cells, self.rows)), default=0) for at in range(5)]
        for section, rows in self.sections():
            yield ""
            yield section
            last = "", ""
            for row in rows:
                job, ours, peer, theirs, value, verdict = _cells(row)
                same = last == (job, ours)
                first = f"{'' if same else job:<{widths[0]}}  {'' if same else ours:>{widths[1]}}"
                last = job, ours
                rest = f"{peer:<{widths[2]}}  {theirs:>{widths[3]}}  {value:<{widths[4]}}  {verdict}"
                yield f"  {first}  {rest}".rstrip()


def quantity(value: float | None, unit: str) -> str:
    """Return a number with its unit: ``320 ns``, ``12.0 ms``, ``3.4 MB``, ``27 KB``."""
    if value is None:
        return ""
    if unit == "MB":
        return f"{value:,.1f} MB" if abs(value) >= 0.1 else f"{value * 1e3:,.0f} KB"
    for name, size in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if value < 9_999.5 * size or name == "ms":
            digits = 0 if name == "ns" or value >= 100 * size else 1
            return f"{value / size:,.{digits}f} {name}"
    raise AssertionError


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def shown(row: Row) -> tuple[str, str]:
    """Return two strings, which may be empty: the median with the lowest and highest value, and the claim's verdict."""
    if not row.values:
        return "", ""
    memory = row.measure is Measure.MEMORY
    numbers = quantity(row.median, "MB") if memory else f"{_number(row.median)} {row.measure.written}"
    if len(row.values) > 1:
        numbers += f" ({_number(min(row.values))} to {_number(max(row.values))})"
    if row.claim is None:
        return numbers, ""
    return numbers, f"{row.measure.bound} {row.claim:.3g}: {'yes' if row.met else 'NO'}"


def _cells(row: Row) -> tuple[str, str, str, str, str, str]:
    numbers, verdict = shown(row)
    return row.job, quantity(row.ours, row.unit), row.peer, quantity(row.theirs, row.unit), numbers, verdict
