"""Convert text that others wrote to safe HTML: escaped, cut and folded. The page's size is limited.

Text cannot add an element or an attribute to the page. Control characters and direction marks are shown as escapes like
``\\x1b``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from html import escape

from claude_wire.support import prose as readable
from claude_wire_kit.events.events import Part
from claude_wire_kit.html.markdown import markdown

#: A page has at most this many characters. Parts that do not fit are omitted and counted.
MAX_CHARS = 32 * 1024 * 1024

#: Longer text is cut to this many characters.
TEXT_CHARS = 100_000

#: Text with at least twice ``OPEN_LINES`` lines, or with more than ``OPEN_CHARS`` characters, is folded. At most this
#: many lines and characters of it are shown above the fold.
OPEN_LINES, OPEN_CHARS = 16, 4000

#: Maximum number of base64 characters in a picture. The page shows only the type and the size of a larger picture.
PICTURE_CHARS = 2_000_000

#: What a part of the page costs, in characters, besides its text.
PART_CHARS = 100

#: White space that is shown unchanged, although it does not count as printable.
KEPT = "\n\t\u00a0\u3000"

_PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


class Budget:
    """Counts how many more characters the page may have.

    Attributes:
        left_out: how many parts did not fit.
    """

    def __init__(self, chars: int = MAX_CHARS) -> None:
        self.left_out: int = 0
        self._left = chars

    def take(self, chars: int) -> bool:
        """Subtract a part of this many characters. Return False if it does not fit."""
        chars += PART_CHARS
        if self.left_out or chars > self._left:  # after the first omitted part, nothing is added
            self.left_out += 1
            return False
        self._left -= chars
        return True


class Box:
    """A place on the page where markup and other boxes can be added."""

    __slots__ = ("_budget", "_parts")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._parts: list[str | Box] = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, *parts: str | Box) -> bool:
        """Add parts, which together must close all elements that they open.

        Return False and add none of them if they do not fit together.
        """
        if not self._budget.take(sum(len(part) if isinstance(part, str) else PART_CHARS for part in parts)):
            return False
        self._parts += parts
        return True

    def box(self) -> Box:
        """Return a new box for the same page. It is shown when it is added to another box."""
        return Box(self._budget)

    def set(self, markup: str) -> None:
        if self._budget.take(len(markup)):
            self._parts = [markup]

    def markup(self) -> Iterator[str]:
        """Yield everything that was added, in this order."""
        stack: list[Iterator[str | Box]] = [iter(self._parts)]
        while stack:
            for part in stack[-1]:
                if isinstance(part, Box):
                    stack.append(iter(part._parts))
                    break
                yield part
            else:
                stack.pop()


def inline(text: str, most: int = 200) -> str:
    """Return text on one line and cut, in an element that isolates its writing direction from the text around it."""
    line = readable(text[: most + 1].strip(), keep=KEPT).replace("\n", " ")
    return f"<bdi>{escape(line if len(line) <= most else line[: most - 1] + '…')}</bdi>"


def rows(lines: Iterable[str], kind: str = "") -> str:
    """Return lines unchanged, in a fixed-width font. Many lines are folded. ``kind`` is a CSS class."""
    return folded("\n".join(lines), kind)


def folded(text: str, kind: str = "") -> str:
    """Return text with its lines unchanged. The end of long text is folded, and very long text is cut."""
    shown = _shown(text).rstrip("\n")
    at = _opening(shown)
    markup = _pre(shown[:at], kind)
    if at < len(shown):
        markup += f"<details class=more><summary>{_count(shown[at:])}</summary>{_pre(shown[at:], kind)}</details>"
    return markup + _left_out(text)


def prose(text: str) -> str:
    """Convert Markdown text from the conversation to HTML. Very long text is cut."""
    # Control characters are replaced again in the HTML, because Markdown can write them as, for example, "&#x202e;".
    markup = readable(markdown(_shown(text)), keep=KEPT)
    return f"<div class=markdown>{markup}</div>{_left_out(text)}"


def _shown(text: str) -> str:
    return readable(text[:TEXT_CHARS].replace("\r\n", "\n"), keep=KEPT)


def _left_out(text: str) -> str:
    more = len(text) - TEXT_CHARS
    return f"<p class=cut>… {more:,} more characters</p>" if more > 0 else ""


def _opening(text: str) -> int:
    """Return the index at which the folded part of the text begins."""
    if len(text) <= OPEN_CHARS and text.count("\n") < OPEN_LINES * 2:
        return len(text)
    at = -1
    for _ in range(OPEN_LINES):
        at = text.find("\n", at + 1)
        if at < 0:
            break
    return min(at if at >= 0 else len(text), OPEN_CHARS)


def _count(rest: str) -> str:
    lines = rest.strip("\n").count("\n") + 1
    return f"{lines:,} more lines" if lines > 1 else f"{len(rest):,} more characters"


def _pre(text: str, kind: str) -> str:
    body = escape(text.strip("\n"))
    if kind == "diff":
        body = "".join(_row(line) for line in body.split("\n"))
    return f'<pre class="{kind}" dir=auto>{body}</pre>' if kind else f"<pre dir=auto>{body}</pre>"


def _row(line: str) -> str:
    """Mark a line of a diff as added, removed, or neither. The line must be escaped."""
    name = {"+": "ins", "-": "del", "@": "b"}.get(line[:1], "span")
    return f"<{name}>{line or ' '}\n</{name}>"


def picture(media_type: str, data: str) -> str:
    """Return a picture, or only its type and size if it is too large, invalid, or not of a type in ``_PICTURES``."""
    if media_type in _PICTURES and len(data) <= PICTURE_CHARS and _BASE64.fullmatch(data):
        return f'<img alt="A picture of the conversation" src="data:{media_type};base64,{data}">'
    return f"<p class=cut>[{inline(media_type)}, {len(data):,} characters of base64]</p>"


def parts_markup(parts: Iterable[Part], *, plain: bool) -> str:
    """Return the content of a prompt or a tool result. It is empty if nothing in it is visible.

    Args:
        plain: whether texts are shown unchanged in a fixed-width font instead of as Markdown.
    """
    return "".join(_part(part, plain=plain) for part in parts)


def _part(part: Part, *, plain: bool) -> str:
    if part.text is not None:
        return (folded if plain else prose)(part.text) if part.text.strip() else ""
    if part.data is not None:
        return picture(part.mediaType or "", part.data)
    return f"<p class=quiet>[{inline(part.name or '')}]</p>"


def clock(when: datetime | None) -> str:
    """Return the time of day in UTC, or an empty string for None."""
    return "" if when is None else f"<time datetime={when:%Y-%m-%dT%H:%M:%SZ}>{when:%H:%M:%S}</time>"


def day(when: datetime) -> str:
    """Return a date and time in UTC."""
    return f"<time datetime={when:%Y-%m-%dT%H:%M:%SZ}>{when:%Y-%m-%d %H:%M} UTC</time>"
