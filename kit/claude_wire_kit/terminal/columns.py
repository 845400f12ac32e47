"""Print tables of numbers with bars that fit the terminal's width.

This module does not use rich: importing rich takes as long as everything else in ``claude-wire usage``.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import click

#: The gap between two columns, and the smallest and largest width of a bar.
GAP, LEAST_BAR, MAX_BAR = 2, 8, 40

#: In a narrow terminal, a table first cuts paths, down to this width. Then it drops columns of numbers. Then it cuts
#: other names.
LEAST_PATH = 24


class Column(NamedTuple):
    heading: str
    cells: list[str]
    #: In a narrow terminal, the table drops the columns with the highest number first. It keeps columns with 0.
    drop: int = 0

    @property
    def width(self) -> int:
        return max(map(cell_count, [self.heading, *self.cells]))


def terminal_width() -> int | None:
    """Return the terminal's width in columns, or None if the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def cell_count(text: str) -> int:
    """Return how many columns ``text`` takes in a terminal. The text must be safe to print."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def fitted(text: str, width: int, *, keep_end: bool = False) -> str:
    """Cut text to ``width`` columns, with an ellipsis at its end; with ``keep_end``, at its beginning."""
    if cell_count(text) <= width:
        return text
    kept = text
    while kept and cell_count(kept) >= width:
        kept = kept[1:] if keep_end else kept[:-1]
    return "…" + kept if keep_end else kept + "…"


def shortened(number: int, gap: str = "") -> str:
    """Return a number with a unit letter, such as ``12.3k``, and ``gap`` before the letter."""
    for unit, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= unit:
            return f"{number / unit:.1f}{gap}{letter}"
    return f"{number}{gap}"


def laid_out(
    names: Column, columns: Sequence[Column], shares: Sequence[float], width: int | None, *, keep_end: bool = False
) -> list[str]:
    """Return the lines of a table: names, numbers, and a bar for each share if there is room.

    Args:
        shares: the shares of the first rows, from 0 to 1. Other rows do not have a bar.
        width: the width of the terminal; None for no limit.
        keep_end: cut a long name at its beginning, as for a path.
    """
    shown = list(columns)
    room = width or sys.maxsize
    least = (min(names.width, LEAST_PATH) if keep_end else names.width) + (GAP + LEAST_BAR) * bool(shares)
    while any(column.drop for column in shown) and least + _width(shown) > room:
        shown.remove(max(shown, key=lambda column: column.drop))
    size = min(names.width, max(room - _width(shown), 1))
    bars = min(room - size - _width(shown) - GAP, MAX_BAR)
    lines: list[str] = []
    for row in range(-1, len(names.cells)):
        name = fitted(names.heading if row < 0 else names.cells[row], size, keep_end=keep_end)
        line = name + " " * (size - cell_count(name))
        for column in shown:
            cell = column.heading if row < 0 else column.cells[row]
            line += " " * (GAP + column.width - cell_count(cell)) + cell
        if 0 <= row < len(shares) and bars >= LEAST_BAR:
            line += " " * GAP + _bar(shares[row], bars)
        lines.append(line.rstrip())
    return lines


def _bar(share: float, width: int) -> str:
    """Return a bar of ``share`` times ``width`` columns, rounded to an eighth of a column."""
    if not _is_unicode():
        return "#" * round(share * width)
    whole, eighths = divmod(round(share * width * 8), 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[eighths].strip()


def printed(lines: Sequence[str], width: int | None) -> None:
    """Print lines. If ``width`` is given, break them between words."""
    for line in lines:
        for row in [line] if width is None else textwrap.wrap(line, width, break_on_hyphens=False):
            click.echo(row)


def _width(columns: Sequence[Column]) -> int:
    return sum(column.width + GAP for column in columns)


def _is_unicode() -> bool:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return encoding.startswith("utf") and os.environ.get("TERM") != "dumb"
