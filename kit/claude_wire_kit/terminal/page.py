"""Write lines and growing text to a console, and show the current activity in a last row.

Text must be safe to print. On a terminal, the page breaks lines between words, and shows the activity row while it
writes nothing else. The page erases only this row, never other output.
"""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from claude_wire_kit.terminal.wrapping import Wrapping, width_of, wrapped

#: The beginning of a subagent's line, repeated for each level.
BAR = "| "

#: Maximum number of bars in a line, because a narrow terminal does not have room for more.
MAX_LEVELS = 3

#: Maximum number of characters to give rich in one call. For each line, rich copies all text after it. In one
#: call, 120,000 lines took 35 seconds.
MAX_AT_ONCE = 4096

#: How many times per second the page draws the activity row, to update its clock.
ROWS_PER_SECOND = 4


class Page:
    """Writes to a console. Call :meth:`close` at the end to erase the activity row. Any method may raise OSError.

    Args:
        console: the console to write to.
        row: show the current activity in a last row, if the output is a terminal.

    Attributes:
        is_terminal: whether the output is a terminal.

    Raises:
        OSError: the console cannot be written.
    """

    def __init__(self, console: Console, *, row: bool = False) -> None:
        self._console = console
        # With FORCE_COLOR, rich treats a pipe as a terminal, but the row must not be written to a pipe.
        self.is_terminal: bool = console.is_terminal and console.file.isatty()
        # A dumb terminal cannot erase a row. rich 13.0 would write an empty line there, even without a row.
        self._has_row = row and self.is_terminal and not console.is_dumb_terminal
        self._row: Live | None = None
        self._activity = self._detail = ""
        self._since = time.monotonic()
        # The growing text's style and level. None if the cursor is at the start of a line.
        self._open: tuple[str, int] | None = None
        # Pieces of text not yet written.
        self._pieces: list[str] = []
        self._wrapping = Wrapping(None)

    def line(self, text: str, style: str = "", level: int = 0) -> None:
        """Write whole lines, each with a bar for each level."""
        self.end_text()
        self._hide_row()
        self._out(wrapped(text, width_of(self._console), BAR * min(level, MAX_LEVELS)), style)

    def text(self, piece: str, style: str = "", level: int = 0) -> None:
        """Add a piece to the growing text. A piece with another style or level begins a new line."""
        if not piece:
            return
        if self._open != (style, level):
            self.end_text()
            self._open = (style, level)
            bars = BAR * min(level, MAX_LEVELS)
            self._wrapping = Wrapping(width_of(self._console), bars)
            self._hide_row()
            self._out(bars, style, end="")
        self._pieces.append(piece)

    def end_text(self) -> None:
        self.flush()
        if self._open is not None:
            self._out("")
            self._open = None

    def typed(self) -> None:
        """Handle a line feed that the user typed: it ended the open line."""
        self._open = None

    def flush(self) -> None:
        """Write all text, including an unfinished word. Call this before the user types."""
        self._write(whole=True)

    def _write(self, *, whole: bool) -> None:
        """Write the growing text. On a terminal, hold back the last word, which may grow, unless ``whole``."""
        if self._open is not None:
            piece = self._wrapping.feed("".join(self._pieces))
            self._pieces.clear()
            if whole:
                piece += self._wrapping.rest()
            if piece:
                self._hide_row()
                self._out(piece, self._open[0], end="")
        self._console.file.flush()

    def _out(self, text: str, style: str = "", end: str = "\n") -> None:
        at = 0
        while len(text) - at > MAX_AT_ONCE:
            cut = text.rfind("\n", at, at + MAX_AT_ONCE) + 1 or at + MAX_AT_ONCE
            self._console.out(text[at:cut], style=style, end="", highlight=False)
            at = cut
        self._console.out(text[at:], style=style, end=end, highlight=False)

    def activity(self, what: str, detail: str = "") -> None:
        """Set the current activity, such as ``running Bash``; empty for none.

        The clock in the row starts again when ``what`` changes, but not when ``detail`` changes.
        """
        if what != self._activity:
            self._activity = what
            self._since = time.monotonic()
        self._detail = detail

    def wait(self) -> None:
        """Write the text so far, and show the activity row until the next output."""
        self._write(whole=False)
        if self._has_row and self._row is None and self._activity and self._open is None:
            self._row = Live(
                console=self._console,
                get_renderable=self._render_row,
                transient=True,
                refresh_per_second=ROWS_PER_SECOND,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._row.start(refresh=True)

    def close(self) -> None:
        """End an open line, and erase the row."""
        self._hide_row()
        self.end_text()

    def _render_row(self) -> Text:
        if not self._activity:  # rich draws once more before erasing the row
            return Text()
        seconds = time.monotonic() - self._since
        row = f"{self._activity}, {seconds:.0f} s{self._detail and f', {self._detail}'}"
        return Text(row, "dim", no_wrap=True, overflow="ellipsis")

    def _hide_row(self) -> None:
        if self._row is not None:
            row, self._row = self._row, None
            row.stop()
