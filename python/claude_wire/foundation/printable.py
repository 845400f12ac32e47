"""Foreign text made safe to print: no control characters, no escapes, and no more than fits.

Names and texts come from lines that anyone may have written. A terminal obeys escape sequences, direction marks reorder
what is read, and a lone surrogate has no bytes at all. Knows text only.
"""

from __future__ import annotations

import re

__all__ = ["NAME_CHARS", "one_line", "printable", "quoted", "reason_in"]

#: Names from the input, and the words of another program in an error, are cut to this many characters.
NAME_CHARS = 80
#: At most this many characters of a text are looked at to quote it.
LOOKED_AT = 4096
#: At most this many bytes of a standard error are looked at, from its end.
STDERR_LOOKED_AT = 64 * 1024
#: Colours, cursor movements and the like, which a program writes for a terminal.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
#: The beginning of a line that says what went wrong: ``Error:``, ``error:``, ``TypeError:``, ``Error processing --x:``.
_ERROR = re.compile(r"(?:\w+ )?\w*error\b", re.IGNORECASE)


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Escape what is not printable, as Python would write it (``\\x1b``), but for the characters in ``keep``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)


def one_line(text: str, most: int = NAME_CHARS) -> str:
    """``text`` on one line, line feeds escaped too, cut to ``most`` characters with an ellipsis for the rest."""
    line = printable(text[: most + 1], keep="")
    return line if len(line) <= most else line[: most - 1] + "…"


def quoted(text: str) -> str:
    """The words of another program for the text of an error: one line of at most 80 characters; nothing if none."""
    return one_line(" ".join(_ESCAPES.sub("", text[:LOOKED_AT]).split()))


def reason_in(stderr: bytes) -> str:
    """Why a program failed, by what it wrote to its standard error last: one line of at most 80 characters.

    The reason is the last line that begins with a word such as ``Error``, and the lines after it up to one that is
    indented (a stack) or blank. Without such a line it is the last line that is not indented.
    """
    lines = _ESCAPES.sub("", stderr[-STDERR_LOOKED_AT:].decode(errors="replace")).splitlines()
    plain = [line for line in lines if line.strip() and not line[0].isspace()]
    for index in range(len(lines) - 1, -1, -1):
        if _ERROR.match(lines[index]):
            said: list[str] = []
            for line in lines[index:]:
                if not line.strip() or line[0].isspace():
                    break
                said.append(line)
            return quoted(" ".join(said))
    return quoted(plain[-1]) if plain else ""
