"""Cut text and JSON values to a few lines, and say how much was omitted. All lines are safe to print.

Text may be very long: after the shown lines, :func:`excerpt` only counts line feeds.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias, cast

from claude_wire.support import is_seen, one_line, printable
from claude_wire_kit.events.content import plain_json

#: Limits for an excerpt: the number of lines, and of characters in each line.
MAX_LINES = 6
MAX_CHARS = 160

#: Maximum number of characters of text on one line.
DETAIL_CHARS = 200

#: Maximum number of characters of a JSON object on one line. A longer object gets a line for each field.
ONE_LINE_CHARS = 76

#: Maximum number of fields of an object.
MAX_FIELDS = 12

#: The limits of an excerpt: lines of text, characters in a line, fields of an object.
Cut: TypeAlias = "tuple[int, int, int]"
CUT: Cut = (MAX_LINES, MAX_CHARS, MAX_FIELDS)
WHOLE: Cut = (sys.maxsize, sys.maxsize, sys.maxsize)


def detail(text: str) -> str:
    """Return ``text`` on one line, stripped and cut to :data:`DETAIL_CHARS`."""
    return one_line(text.strip(), DETAIL_CHARS)


def excerpt(text: str, most_lines: int = MAX_LINES, most_chars: int = MAX_CHARS) -> list[str]:
    """Return the first lines of ``text``. If lines or characters are omitted, add a line that says how many."""
    text = text.rstrip("\n")
    lines: list[str] = []
    cut = at = 0
    while len(lines) < most_lines and at <= len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        lines.append(printable(text[at : min(end, at + most_chars)], keep="\t"))
        over = end - at - most_chars
        if over > 0:
            cut += over
            lines[-1] += "…"
        at = end + 1
    left = len(text) - at
    if left >= 0:
        lines.append(f"… {text.count(chr(10), at) + 1:,} more lines, {left + cut:,} characters")
    elif cut:
        lines.append(f"… {cut:,} more characters")
    return lines


def fields(value: Any, cut: Cut = CUT) -> list[str]:
    """Return the lines of a JSON value. An object has one line if it is short, else at least one for each field.

    Args:
        cut: the limits; ``WHOLE`` for no limits.
    """
    if not isinstance(value, dict):
        lines, chars, _ = cut
        return excerpt(value if isinstance(value, str) else plain_json(value), lines, chars)
    return _members(cast("dict[str, Any]", value), cut)


def _members(members: dict[str, Any], cut: Cut) -> list[str]:
    if not members:
        return ["{}"]
    texts = [member for member in members.values() if isinstance(member, str)]
    if not any(len(text) > ONE_LINE_CHARS or "\n" in text for text in texts):
        line = ", ".join(f"{one_line(name)}: {_short(member)}" for name, member in members.items())
        if len(line) <= ONE_LINE_CHARS and is_seen(line):
            return [line]
    most_lines, most_chars, most_fields = cut
    lines: list[str] = []
    for shown, (name, member) in enumerate(members.items()):
        if shown == most_fields:
            lines.append(f"… {len(members) - shown:,} more members")
            break
        text = member if isinstance(member, str) else plain_json(member)
        first, *rest = excerpt(text, most_lines, most_chars)
        lines += [f"{one_line(name)}: {first}", *(f"  {line}" for line in rest)]
    return lines


def _short(member: Any) -> str:
    """Return a field's value for a line with several fields. Quote a string that could be taken for several fields."""
    if isinstance(member, str) and member and member == member.strip() and member[0] != '"' and "," not in member:
        return member
    return plain_json(member)
