"""Make foreign text safe to print: no control characters, no escape sequences, and a limited length.

Names and texts come from lines that anyone may have written. A terminal obeys escape sequences, direction marks reorder
what is read, some characters are invisible, and a lone surrogate cannot be encoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: Names from the input, and the words of another program in an error, are cut to this many characters.
NAME_CHARS = 80
#: At most this many characters of a text are read to quote it.
LOOKED_AT = 4096
#: At most this many bytes at the end of a standard error are read.
STDERR_LOOKED_AT = 64 * 1024
# These patterns are compiled at first use (`re` keeps them): most programs that import the library need none.

#: Characters that Python calls printable, but that are invisible. First Default_Ignorable_Code_Point of Unicode's
#: DerivedCoreProperties.txt, which regular expressions of JavaScript know by name, then blanks that it leaves out.
#: ``exact`` in serve/page/text.js has the same rule.
_UNSEEN = (
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u2800\U00013441\U00013442\U00016fe4\U0001d159]"
)
#: Joiners and variation selectors, which emoji, Persian and Indian scripts need. Allowed: one at a time, after a
#: character that is not ASCII, after the digit of a keycap, and at the beginning (the text may be a later piece).
_JOINED = (
    "(?:\\A|(?<=[^\x00-\x7f\xad\u2000-\u202f\u2060-\u206f\ufe00-\ufe0f]))(?:[\ufe0e\ufe0f]\u200d?|[\u200c\u200d])"
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"
)
#: Escape sequences for a terminal: colours, cursor movements and the like.
_ESCAPES = r"\x1b\[[0-?]*[ -/]*[@-~]"
#: The beginning of a line with a reason: ``Error:``, ``error:``, ``TypeError:``, ``Error processing --x:``.
_ERROR = r"(?i)(?:\w+ )?\w*error\b"


def is_seen(text: str) -> bool:
    """Return True if each character of a text shows as what it is, on one line. Then nothing needs an escape."""
    return text.isprintable() and (text.isascii() or not re.search(_UNSEEN, text))


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Escape invisible characters as Python would write them (``\\x1b``), except for those in ``keep``.

    Use it for names and for anything that a person decides on: what a command looks like is what it does.
    :func:`prose` is for texts.
    """
    if is_seen(text):
        return text
    return "".join(c if c in keep or is_seen(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def prose(text: str, *, keep: str = "\n\t") -> str:
    """Escape like :func:`printable`, but keep joiners and variation selectors: emoji and words stay readable."""
    if is_seen(text):
        return text
    found: list[str] = []
    at = 0
    for joined in re.finditer(_JOINED, text):
        found += (printable(text[at : joined.start()], keep=keep), joined[0])
        at = joined.end()
    return "".join([*found, printable(text[at:], keep=keep)])


def one_line(text: str, most: int = NAME_CHARS, escape: Callable[..., str] = printable) -> str:
    """Return ``text`` on one line, with line feeds escaped, cut to ``most`` characters with an ellipsis.

    Args:
        escape: the function that escapes the text. Use :func:`prose` for texts that people write.
    """
    line = escape(text[: most + 1], keep="")
    return line if len(line) <= most else line[: most - 1] + "…"


def quoted(text: str) -> str:
    """Clean another program's message for an error text: one line of at most 80 characters, which may be empty."""
    return one_line(" ".join(re.sub(_ESCAPES, "", text[:LOOKED_AT]).split()))


def reason_in(stderr: bytes) -> str:
    """Return why a program failed, from the end of its standard error, in one line of at most 80 characters.

    The reason is the last line that begins with a word such as ``Error``, and the lines after it up to one that is
    indented (a stack) or blank. Without such a line it is the last line that is not indented.
    """
    lines = re.sub(_ESCAPES, "", stderr[-STDERR_LOOKED_AT:].decode(errors="replace")).splitlines()
    plain = [line for line in lines if line.strip() and not line[0].isspace()]
    for index in range(len(lines) - 1, -1, -1):
        if re.match(_ERROR, lines[index]):
            said: list[str] = []
            for line in lines[index:]:
                if not line.strip() or line[0].isspace():
                    break
                said.append(line)
            return quoted(" ".join(said))
    return quoted(plain[-1]) if plain else ""
