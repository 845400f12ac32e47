"""Foreign text made safe for a terminal: no control characters, no escapes, no end in sight.

Names and texts come from lines that anyone may have written. A terminal obeys escape sequences, direction marks reorder
what is read, and a lone surrogate has no bytes at all.
"""

from __future__ import annotations

__all__ = ["detail", "one_line", "printable"]

#: A name from the input is cut to this many characters.
NAME_CHARS = 80

#: A text from the input that is told on one line is cut to this many.
DETAIL_CHARS = 200


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Escape what is not printable, as Python would write it (``\\x1b``), but for the characters in ``keep``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)


def one_line(text: str, most: int = NAME_CHARS) -> str:
    """``text`` on one line, line feeds escaped too, cut to ``most`` characters with an ellipsis for the rest."""
    line = printable(text[: most + 1], keep="")
    return line if len(line) <= most else line[: most - 1] + "…"


def detail(text: str) -> str:
    """A text that may be longer than a name, on one line, without the white space around it."""
    return one_line(text.strip(), DETAIL_CHARS)
