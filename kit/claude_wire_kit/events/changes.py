"""Show how a tool call changes a file, as lines that begin with ``-`` (old) or ``+`` (new).

The functions accept any JSON. If a value has an unexpected type, they return no lines.
"""

from __future__ import annotations

from typing import Any

from claude_wire.support import fields_of, items_of

#: Tool -> the fields of its input that the change shows.
SHOWN: dict[str, tuple[str, ...]] = {
    "Edit": ("old_string", "new_string"),
    "MultiEdit": ("edits",),
    "Write": ("content",),
}

#: Maximum number of lines in a change.
MAX_LINES = 5000


def without_change(name: str, given: Any) -> Any:
    """Return a call's input without the fields that :func:`asked_change` shows."""
    if not asked_change(name, given):
        return given
    left = {key: value for key, value in fields_of(given).items() if key not in SHOWN[name]}
    if left.get("replace_all") is False:
        del left["replace_all"]
    return left


def asked_change(name: str, given: Any) -> list[str]:
    """Return the change that a call asks for, from its input. Empty for tools that do not change files."""
    members = fields_of(given)
    match name:
        case "Edit":
            return _replaced(members)
        case "MultiEdit":
            edits = items_of(members.get("edits"))
            return [line for edit in edits[:MAX_LINES] for line in ["@@", *_replaced(fields_of(edit))]][:MAX_LINES]
        case "Write" if isinstance(members.get("content"), str):
            return _signed("+", members["content"])
        case _:
            return []


def done_change(result: Any) -> list[str]:
    """Return the change that a call made, from ``structuredPatch`` in the tool's result. Empty without that field."""
    lines: list[str] = []
    for each in items_of(fields_of(result).get("structuredPatch")):
        hunk = fields_of(each)
        starts = hunk.get("oldStart"), hunk.get("newStart")
        lines.append("@@ -{} +{} @@".format(*(start if isinstance(start, int) else "?" for start in starts)))
        # A line of the patch may contain a line feed, which would split it here.
        lines += [line.replace("\n", " ") for line in items_of(hunk.get("lines")) if isinstance(line, str)]
        if len(lines) > MAX_LINES:
            return [*lines[:MAX_LINES], "…"]
    return lines


def _replaced(members: dict[str, Any]) -> list[str]:
    old, new = members.get("old_string"), members.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str):
        return []
    return [*_signed("-", old), *_signed("+", new)]


def _signed(sign: str, text: str) -> list[str]:
    if not text:
        return []
    lines = text.removesuffix("\n").split("\n", MAX_LINES)
    return [*(f"{sign}{line}" for line in lines[:MAX_LINES]), *(["…"] if len(lines) > MAX_LINES else [])]
