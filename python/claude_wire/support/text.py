"""Make untrusted text safe to print: escape control characters and escape sequences, and limit the length.

The text may come from a model, a tool or a web page. A terminal obeys escape sequences, direction marks reorder the
characters, some characters are invisible, and a lone surrogate cannot be encoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: Maximum length, in characters, of a name from the input, or of another program's text in an error. Longer texts are
#: cut.
NAME_CHARS = 80
#: :func:`quoted` reads only this many characters of a text.
QUOTED_CHARS = 4096
#: :func:`reason_in` reads only this many bytes at the end of a standard error.
STDERR_BYTES = 64 * 1024
# The patterns are strings, which `re` compiles on first use, because most programs that import the library never use
# them.

#: Matches an invisible character that ``str.isprintable`` accepts. The last line has blanks, such as U+2800. All other
#: characters have the property Default_Ignorable_Code_Point in Unicode's DerivedCoreProperties.txt. The web page has
#: the same rule.
_UNSEEN = (
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u2800\U00013441\U00013442\U00016fe4\U0001d159]"
)
#: Matches an allowed joiner or variation selector, which emoji, Persian and Indian scripts need. Only one at a time is
#: allowed: after a non-ASCII character, after a keycap's digit, or at the beginning of a text, which may be the middle
#: of a longer text.
_JOINED = (
    "(?:\\A|(?<=[^\x00-\x7f\xad\u2000-\u202f\u2060-\u206f\ufe00-\ufe0f]))(?:[\ufe0e\ufe0f]\u200d?|[\u200c\u200d])"
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"
)
#: Matches a terminal escape sequence, such as a colour or a cursor movement.
_ESCAPES = r"\x1b\[[0-?]*[ -/]*[@-~]"
#: Matches the beginning of an error line: ``Error:``, ``error:``, ``TypeError:``, ``Error processing --x:``.
_ERROR = r"(?i)(?:\w+ )?\w*error\b"


def is_seen(text: str) -> bool:
    """Return True if ``text`` is one line of visible characters, which need no escape."""
    return text.isprintable() and (text.isascii() or not re.search(_UNSEEN, text))


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Escape invisible characters, as Python does (``\\x1b``), except characters in ``keep``.

    Use this for names, and for commands that a person must approve, because the person must see each character. For
    other texts, use :func:`prose`.
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
    """Return ``text`` on one line: escape line feeds, and cut it to ``most`` characters with an ellipsis.

    Args:
        escape: the function that escapes the text. Use :func:`prose` for texts that people wrote.
    """
    line = escape(text[: most + 1], keep="")
    return line if len(line) <= most else line[: most - 1] + "…"


def quoted(text: str) -> str:
    """Return another program's message for use in an error: one line of at most 80 characters, possibly empty."""
    return one_line(" ".join(re.sub(_ESCAPES, "", text[:QUOTED_CHARS]).split()))


def reason_in(stderr: bytes) -> str:
    """Find in a program's standard error why it failed. Return the reason as one line of at most 80 characters.

    The reason is the last line that begins with a word such as ``Error``, and the lines after it, up to a blank line or
    an indented line (of a stack trace). Without an error line, the reason is the last line that is not indented.
    """
    lines = re.sub(_ESCAPES, "", stderr[-STDERR_BYTES:].decode(errors="replace")).splitlines()
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
