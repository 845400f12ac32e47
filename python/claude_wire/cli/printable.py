"""Foreign text on one line of a terminal; see :mod:`claude_wire._printable`."""

from __future__ import annotations

from claude_wire._printable import one_line, printable

__all__ = ["detail", "one_line", "printable"]

#: A text from the input that is told on one line is cut to this many characters.
DETAIL_CHARS = 200


def detail(text: str) -> str:
    """A text that may be longer than a name, on one line, without the white space around it."""
    return one_line(text.strip(), DETAIL_CHARS)
