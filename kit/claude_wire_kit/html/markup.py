"""Foreign text as safe HTML: escaped, cut and folded. The size of the page is limited.

No text can make an element or an attribute. Control characters and direction marks are shown as escapes, as ``\\x1b``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from html import escape

from claude_wire.support import prose as readable
from claude_wire_kit.events.events import Part
from claude_wire_kit.html.markdown import markdown

#: The limit of a page's characters. Parts that come after it are left out and counted.
MAX_CHARS = 32 * 1024 * 1024

#: Of one text, this many characters are shown.
TEXT_CHARS = 100_000

#: A text with more than twice these lines, or more than these characters, is folded after this many lines.
OPEN_LINES, OPEN_CHARS = 16, 4000

#: A picture with more base64 characters than this is only named.
PICTURE_CHARS = 2_000_000

#: Each part of the page counts this much in addition to its characters.
PART_CHARS = 100

#: Characters that are shown although they are not printable: white space that scripts use.
KEPT = "\n\t\u00a0\u3000"

_PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


class Room:
    """The number of characters that the page may still take.

    Attributes:
        left_out: how many parts found no room.
    """

    def __init__(self, chars: int = MAX_CHARS) -> None:
        self.left_out: int = 0
        self._left = chars

    def take(self, chars: int) -> bool:
        """Reserve room for a part. Returns False if there is too little."""
        chars += PART_CHARS
        if self.left_out or chars > self._left:  # after the first part that was left out, nothing is added
            self.left_out += 1
            return False
        self._left -= chars
        return True


class Box:
    """A place on the page that markup and other boxes are added to."""

    __slots__ = ("_parts", "_room")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._parts: list[str | Box] = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, *parts: str | Box) -> bool:
        """Add all parts, which must close their elements, or none if there is no room. Returns True if added."""
        if not self._room.take(sum(len(part) if isinstance(part, str) else PART_CHARS for part in parts)):
            return False
        self._parts += parts
        return True

    def box(self) -> Box:
        """Make an empty box for the same page. Add it to another box to show it."""
        return Box(self._room)

    def set(self, markup: str) -> None:
        if self._room.take(len(markup)):
            self._parts = [markup]

    def markup(self) -> Iterator[str]:
        """Yield everything that was added, in order."""
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
    """Return a text on one line, cut, in an element that isolates its direction."""
    line = readable(text[: most + 1].strip(), keep=KEPT).replace("\n", " ")
    return f"<bdi>{escape(line if len(line) <= most else line[: most - 1] + '…')}</bdi>"


def rows(lines: Iterable[str], kind: str = "") -> str:
    """Return lines in a fixed-width font, unchanged; many lines are folded. ``kind`` is a CSS class."""
    return folded("\n".join(lines), kind)


def folded(text: str, kind: str = "") -> str:
    """Return a text with its lines unchanged. The end of a long text is folded, that of a very long one left out."""
    shown = _shown(text).rstrip("\n")
    at = _opening(shown)
    markup = _pre(shown[:at], kind)
    if at < len(shown):
        markup += f"<details class=more><summary>{_count(shown[at:])}</summary>{_pre(shown[at:], kind)}</details>"
    return markup + _left_out(text)


def prose(text: str) -> str:
    """Return speech, which is Markdown. A very long text is cut."""
    # Once more after it: Markdown can name characters, as in "&#x202e;".
    markup = readable(markdown(_shown(text)), keep=KEPT)
    return f"<div class=markdown>{markup}</div>{_left_out(text)}"


def _shown(text: str) -> str:
    return readable(text[:TEXT_CHARS].replace("\r\n", "\n"), keep=KEPT)


def _left_out(text: str) -> str:
    more = len(text) - TEXT_CHARS
    return f"<p class=cut>… {more:,} more characters</p>" if more > 0 else ""


def _opening(text: str) -> int:
    """Return where the folded part of a text begins."""
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
    """Mark a line of a comparison as added or removed. The line must be escaped."""
    name = {"+": "ins", "-": "del", "@": "b"}.get(line[:1], "span")
    return f"<{name}>{line or ' '}\n</{name}>"


def picture(media_type: str, data: str) -> str:
    """Return a picture given in base64. A picture that is too large, invalid or of another type is only named."""
    if media_type in _PICTURES and len(data) <= PICTURE_CHARS and _BASE64.fullmatch(data):
        return f'<img alt="A picture of the conversation" src="data:{media_type};base64,{data}">'
    return f"<p class=cut>[{inline(media_type)}, {len(data):,} characters of base64]</p>"


def parts_markup(parts: Iterable[Part], *, plain: bool) -> str:
    """Return the content of a prompt or of a tool's result. Empty if nothing of it is visible.

    Args:
        plain: show text line by line, in a fixed-width font.
    """
    return "".join(_part(part, plain=plain) for part in parts)


def _part(part: Part, *, plain: bool) -> str:
    if part.text is not None:
        return (folded if plain else prose)(part.text) if part.text.strip() else ""
    if part.data is not None:
        return picture(part.mediaType or "", part.data)
    return f"<p class=quiet>[{inline(part.name or '')}]</p>"


def clock(when: datetime | None) -> str:
    """Return the time of day in UTC, or an empty text for None."""
    return "" if when is None else f"<time datetime={when:%Y-%m-%dT%H:%M:%SZ}>{when:%H:%M:%S}</time>"


def day(when: datetime) -> str:
    """Return a date and time in UTC."""
    return f"<time datetime={when:%Y-%m-%dT%H:%M:%SZ}>{when:%Y-%m-%d %H:%M} UTC</time>"
