"""A scan's report: how many lines and rows it read, and which values did not fit their columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

ProblemKind = Literal["surrogate", "misfit", "invalid", "too_long", "too_many_blocks"]


class Problem(NamedTuple):
    """A value or a line that did not fit, and its position."""

    kind: ProblemKind
    """What did not fit.

    A value: ``surrogate`` (half of a surrogate pair, which UTF-8 cannot express) became U+FFFD; ``misfit`` (a value of
    the wrong type, or out of range) became null.

    A line, which has no row: ``invalid`` (not a JSON object); ``too_long`` (longer than ``max_line_bytes``);
    ``too_many_blocks`` (more than 65,536 content blocks, or their rows would repeat more than 64 MiB).
    """
    column: str | None
    """The column's name; None if the whole line is the problem."""
    path: str | None
    """The file's path; None if the source was bytes."""
    offset: int
    """The line's byte offset in the file."""
    line_number: int | None
    """The line's 1-based number in the file. None if the file can no longer be read."""


@dataclass(frozen=True)
class Report:
    """The counts of one pass over a scan's sources. The pass may still be running."""

    bytes: int = 0
    """The number of bytes read."""
    lines: int = 0
    """The number of lines that are not blank."""
    skipped: int = 0
    """The number of lines skipped because of ``only``."""
    rows: int = 0
    """The number of rows, including rows that the consumer did not request yet."""
    decoded: int = 0
    """The number of lines that Python decoded, because they are invalid or have a duplicate key."""
    invalid: int = 0
    """The number of lines without a row: not a JSON object, too long, or with too many content blocks."""
    surrogates: dict[str, int] = field(default_factory=dict[str, int])
    """Column -> the number of lone surrogates that became U+FFFD."""
    misfits: dict[str, int] = field(default_factory=dict[str, int])
    """Column -> the number of values that did not fit and became null."""
    problems: list[Problem] = field(default_factory=list[Problem])
    """The first 100 problems."""

    @property
    def warning(self) -> str:
        """The number of values and lines that did not fit, and the position of the first. Empty if all fit."""
        counts = [f"{number:,} lone surrogates in {name}" for name, number in self.surrogates.items()]
        counts += [f"{number:,} values that do not fit {name}" for name, number in self.misfits.items()]
        counts += [f"{self.invalid:,} lines that gave no row"] if self.invalid else []
        if not counts:
            return ""
        first = self.problems[0]
        line = "?" if first.line_number is None else f"{first.line_number:,}"
        return f"{', '.join(counts)}. The first is at {first.path}, line {line}"
