"""The report of a scan: counts of lines and rows, and the values that did not fit their columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

ProblemKind = Literal["surrogate", "misfit", "invalid", "too_long", "too_many_blocks"]


class Problem(NamedTuple):
    """A value or a line that did not fit, with its place."""

    kind: ProblemKind
    """What did not fit.

    A value: ``surrogate``, half of a surrogate pair, which UTF-8 cannot express, became U+FFFD; ``misfit``, a value of
    another type than its column, or out of range, became null.

    A line, which then has no row: ``invalid``, it is not a JSON object; ``too_long``, it is longer than
    ``max_line_bytes``; ``too_many_blocks``, it has more than 65,536 content blocks, or their rows would repeat more
    than 64 MiB.
    """
    column: str | None
    """Name of the column; None if the whole line is the problem."""
    path: str | None
    """Path of the file; None if the source was bytes."""
    offset: int
    """Offset of the line in the file, in bytes."""
    line_number: int | None
    """Number of the line in its file, from 1. None if the file can no longer be read."""


@dataclass(frozen=True)
class Report:
    """The counts of one pass over a scan's sources. The pass may still be running."""

    bytes: int = 0
    """Number of bytes that were read."""
    lines: int = 0
    """Number of lines that are not blank."""
    skipped: int = 0
    """Number of lines that ``only`` leaves out."""
    rows: int = 0
    """Number of rows, including rows that the consumer has not asked for yet."""
    decoded: int = 0
    """Number of lines that the native code left to the Python decoder.

    They are invalid, or have a duplicate key.
    """
    invalid: int = 0
    """Number of lines without a row: not a JSON object, too long, or with too many content blocks."""
    surrogates: dict[str, int] = field(default_factory=lambda: dict[str, int]())
    """Column -> the number of lone surrogates that became U+FFFD."""
    misfits: dict[str, int] = field(default_factory=lambda: dict[str, int]())
    """Column -> the number of values that did not fit and became null."""
    problems: list[Problem] = field(default_factory=lambda: list[Problem]())
    """The first 100 problems."""

    @property
    def warning(self) -> str:
        """Say how many values and lines did not fit the columns, and where the first one is. Empty if all fit."""
        counts = [f"{number:,} lone surrogates in {name}" for name, number in self.surrogates.items()]
        counts += [f"{number:,} values that do not fit {name}" for name, number in self.misfits.items()]
        counts += [f"{self.invalid:,} lines that gave no row"] if self.invalid else []
        if not counts:
            return ""
        first = self.problems[0]
        line = "?" if first.line_number is None else f"{first.line_number:,}"
        return f"{', '.join(counts)}. The first is at {first.path}, line {line}"
