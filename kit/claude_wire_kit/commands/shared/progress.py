"""Show a command's progress in the terminal."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from typing_extensions import Self

    from claude_wire_kit.commands.shared.sources import Piece

#: Seconds before progress is shown for the first time, and seconds between two updates.
FIRST_SECONDS, STEP_SECONDS = 1.0, 0.1


class Progress:
    """Shows a row with a percentage on standard error, if that is a terminal and the command takes more than a second.

    This is a context manager, and erases the row at the end.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._next = time.monotonic() + FIRST_SECONDS if sys.stderr.isatty() else math.inf
        self._row = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()

    def show(self, done: int, total: int) -> None:
        """Show ``done / total`` as a percentage. If ``total`` is 0, it is unknown: show nothing."""
        if time.monotonic() >= self._next and total:
            self._next = time.monotonic() + STEP_SECONDS
            self._row = f"{self._what}: {done / total:.0%}"
            click.echo(f"\r{self._row}", nl=False, err=True)

    def hide(self) -> None:
        """Erase the row. Call this before printing, because the output may be the same terminal."""
        if self._row:
            click.echo(f"\r{' ' * len(self._row)}\r", nl=False, err=True)
            self._row = ""

    def of(self, pieces: Iterable[Piece], size: int) -> Iterator[Piece]:
        """Yield the pieces of a source, and show how much of its ``size`` in bytes was read."""
        done = 0
        for piece in pieces:
            yield piece
            done += len(piece.data)
            self.show(done, size)
