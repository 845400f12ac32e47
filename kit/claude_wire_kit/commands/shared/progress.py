"""Show on a terminal how far a command is."""

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

#: Progress is shown after the first number of seconds, and again each time that the second number has passed.
FIRST_SECONDS, STEP_SECONDS = 1.0, 0.1


class Progress:
    """A row on standard error with a percentage, if that is a terminal and the command takes longer than a second.

    A context manager: the row is erased at the end of the block.
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
        """Show that ``done`` of ``total`` is done. If the total is not known, it is 0, and nothing is shown."""
        if time.monotonic() >= self._next and total:
            self._next = time.monotonic() + STEP_SECONDS
            self._row = f"{self._what}: {done / total:.0%}"
            click.echo(f"\r{self._row}", nl=False, err=True)

    def hide(self) -> None:
        """Erase the row. Do so before anything else is printed, because that may be on the same terminal."""
        if self._row:
            click.echo(f"\r{' ' * len(self._row)}\r", nl=False, err=True)
            self._row = ""

    def of(self, pieces: Iterable[Piece], size: int) -> Iterator[Piece]:
        """Yield the pieces of a source of ``size`` bytes, and show how much of it has been read."""
        done = 0
        for piece in pieces:
            yield piece
            done += len(piece.data)
            self.show(done, size)
