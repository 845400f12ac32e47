"""The output of a live view: lines, text that grows, and a last row that shows the current activity.

Text must be safe to print. On a terminal, lines are broken between words, and the row is shown while nothing is
written. The row is the only output that is ever rewritten.
"""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from claude_wire_kit.terminal.wrapping import Wrapping, width_of, wrapped

#: Each line of a subagent begins with this, once for each level.
BAR = "| "

#: Deeper levels look the same as this one, because a narrow terminal has no room for more.
MAX_LEVELS = 3

#: rich gets at most this many characters at once. For each line it copies all that follows, which took 35 seconds for
#: an answer of 120,000 lines.
MAX_AT_ONCE = 4096

#: The row is drawn this many times a second, so that its clock runs.
ROWS_PER_SECOND = 4


class Page:
    """Writes to a console. The owner must close it, which leaves the terminal as it was.

    Args:
        console: where to write.
        row: show the current activity in a last row, if the output is a terminal.

    Attributes:
        is_terminal: whether the output is a terminal.

    Raises:
        OSError: by any method, the console cannot be written.
    """

    def __init__(self, console: Console, *, row: bool = False) -> None:
        self._console = console
        # FORCE_COLOR makes rich take a pipe for a terminal. The row must not be written to a pipe.
        self.is_terminal: bool = console.is_terminal and console.file.isatty()
        # A terminal that cannot erase gets no row: rich 13.0 would end the row with an empty line, even if it never
        # wrote it.
        self._has_row = row and self.is_terminal and not console.is_dumb_terminal
        self._row: Live | None = None
        self._activity = self._detail = ""
        self._since = time.monotonic()
        # The style and level of the line that the cursor is in. None at the start of a line.
        self._open: tuple[str, int] | None = None
        # Text that is not written yet. A chunk of input has many small pieces.
        self._pieces: list[str] = []
        # Breaks the lines of the growing text.
        self._wrapping = Wrapping(None)

    def line(self, text: str, style: str = "", level: int = 0) -> None:
        """Write whole lines, each after the bars of its level."""
        self.end_text()
        self._hide_row()
        self._out(wrapped(text, width_of(self._console), BAR * min(level, MAX_LEVELS)), style)

    def text(self, piece: str, style: str = "", level: int = 0) -> None:
        """Add to the growing text. Text of another style or level begins a new line."""
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
        """Note that the user has ended the open line by typing."""
        self._open = None

    def flush(self) -> None:
        """Write the text that is held back. Call this before the user types."""
        self._write(whole=True)

    def _write(self, *, whole: bool) -> None:
        """Write the growing text. On a terminal the last word is held back while it may grow, unless ``whole``."""
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
        """Set the current activity: one line, safe to print; empty for none.

        The clock starts when ``what`` changes. ``detail`` may change meanwhile.
        """
        if what != self._activity:
            self._activity = what
            self._since = time.monotonic()
        self._detail = detail

    def wait(self) -> None:
        """Show the text and the activity while nothing else is written."""
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
        """End the open line, and remove the row."""
        self._hide_row()
        self.end_text()

    def _render_row(self) -> Text:
        if not self._activity:  # no activity any more: the row is about to go
            return Text()
        seconds = time.monotonic() - self._since
        row = f"{self._activity}, {seconds:.0f} s{self._detail and f', {self._detail}'}"
        return Text(row, "dim", no_wrap=True, overflow="ellipsis")

    def _hide_row(self) -> None:
        if self._row is not None:
            row, self._row = self._row, None
            row.stop()
