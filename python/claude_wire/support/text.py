"""Make untrusted text safe to print: no control characters, no escape sequences, and a limited length.

The text may come from anyone: a model, a tool, a web page. A terminal obeys escape sequences, direction marks reorder
the characters, some characters are invisible, and a lone surrogate cannot be encoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: Most characters of a name from the input, or of another program's text in an error. Longer ones are cut.
NAME_CHARS = 80
#: Number of characters of a text that :func:`quoted` reads.
LOOKED_AT = 4096
#: Number of bytes at the end of a standard error that :func:`reason_in` reads.
STDERR_LOOKED_AT = 64 * 1024
# The patterns are strings, which `re` compiles on first use: most programs that import the library do not need them.

#: Matches an invisible character that Python calls printable: Default_Ignorable_Code_Point in Unicode's
#: DerivedCoreProperties.txt, and on the last line blanks that this property does not include. The web page has the same
#: rule.
_UNSEEN = (
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u2800\U00013441\U00013442\U00016fe4\U0001d159]"
)
#: Matches an allowed joiner or variation selector; emoji, Persian and Indian scripts need them. Allowed is one at a
#: time: after a character that is not ASCII, after the digit of a keycap, and at the beginning (of a later piece of a
#: text).
_JOINED = (
    "(?:\\A|(?<=[^\x00-\x7f\xad\u2000-\u202f\u2060-\u206f\ufe00-\ufe0f]))(?:[\ufe0e\ufe0f]\u200d?|[\u200c\u200d])"
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"
)
#: Matches an escape sequence of terminals, such as a colour or a cursor movement.
_ESCAPES = r"\x1b\[[0-?]*[ -/]*[@-~]"
#: Matches the beginning of an error line: ``Error:``, ``error:``, ``TypeError:``, ``Error processing --x:``.
_ERROR = r"(?i)(?:\w+ )?\w*error\b"


def is_seen(text: str) -> bool:
    """Return True if a text is one line of visible characters, so that no character needs an escape."""
    return text.isprintable() and (text.isascii() or not re.search(_UNSEEN, text))


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Escape invisible characters, as Python does (``\\x1b``), except characters in ``keep``.

    Use this for names, and for commands that a person has to approve: the person must see each character. For other
    texts use :func:`prose`.
    """
    if is_seen(text):
        return text
    return "".join(c if c in keep or is_seen(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def prose(text: str, *, keep: str = "\n\t") -> str:
    """Escape like :func:`printable`, but keep joiners and variation selectors, which emoji and some scripts need."""
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
    """Return another program's message for an error text: one line of at most 80 characters, which may be empty."""
    return one_line(" ".join(re.sub(_ESCAPES, "", text[:LOOKED_AT]).split()))


def reason_in(stderr: bytes) -> str:
    """Return why a program failed, from the end of its standard error, in one line of at most 80 characters.

    The reason is the last line that begins with a word such as ``Error``, and the lines after it up to an indented line
    (of a stack) or a blank line. Without such a line, the reason is the last line that is not indented.
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
