"""Format tool calls for people: ``Bash touch a.txt``, checklists, edits as ``-`` and ``+`` lines.

All lines are safe to print. A special field, such as ``todos``, appears like any other field if its type is
unexpected.
"""

from __future__ import annotations

from typing import Any, cast

from claude_wire.support import one_line
from claude_wire_kit.events.tools import call_name
from claude_wire_kit.terminal.excerpts import CUT, MAX_FIELDS, Cut, detail, excerpt, fields

#: The most informative fields of a call, for the CLI's tools and many others. The title shows the first field that has
#: text.
MAIN_MEMBERS = (
    *("command", "file_path", "notebook_path", "pattern", "url", "query", "description", "path", "prompt"),
    *("subject", "skill", "plan"),
)

#: Status of a task -> the mark in its box.
TICKS = {"completed": "x", "in_progress": ">", "pending": " "}


def call_lines(name: str, given: Any, cut: Cut = CUT) -> list[str]:
    """Return the lines of a tool call: its name and main field, such as ``Bash touch a.txt``, then its other fields.

    Args:
        cut: limits for lines, characters and fields.
    """
    title = call_name(name)
    if not isinstance(given, dict):
        first, *rest = fields(given, cut)
        return [f"{title} {first}", *(f"    {line}" for line in rest)]
    others = dict(cast("dict[str, Any]", given))
    main = next((each for each in MAIN_MEMBERS if isinstance(others.get(each), str) and others[each].strip()), None)
    lines = [title]
    if main is not None:
        first, *rest = excerpt(others.pop(main), *cut[:2])
        # Indent this text more than the fields, so no line of it looks like a field.
        lines = [f"{title} {first}", *(f"      {line}" for line in rest)]
    below = [*_to_do(others), *_questions(others), *_edit(others)]
    members = fields(others, cut) if others else []
    if main is None and not below and len(members) == 1:
        return [f"{title} {members[0]}"]
    return [*lines, *(f"    {line}" for line in (*members, *below))]


def _taken(members: dict[str, Any], name: str, key: str) -> list[dict[str, Any]]:
    """Remove the list ``name`` from the input and return it, if each item is an object with a string in ``key``;
    else return [].
    """
    items: Any = members.get(name)
    if not isinstance(items, list):
        return []
    found = cast("list[dict[str, Any]]", items)
    if not all(isinstance(cast("object", item), dict) and isinstance(item.get(key), str) for item in found):
        return []
    del members[name]
    return found


def _most(lines: list[str]) -> list[str]:
    more = len(lines) - MAX_FIELDS
    return [*lines[:MAX_FIELDS], f"… {more:,} more"] if more > 0 else lines


def _to_do(members: dict[str, Any]) -> list[str]:
    """Return the lines of a ``TodoWrite`` list."""
    items = _taken(members, "todos", "content")
    return _most([f"[{TICKS.get(str(item.get('status')), '?')}] {detail(item['content'])}" for item in items])


def _questions(members: dict[str, Any]) -> list[str]:
    """Return the questions in ``AskUserQuestion``, each with its options."""
    lines: list[str] = []
    for asked in _taken(members, "questions", "question"):
        lines.append(detail(asked["question"]))
        for option in _taken(dict(asked), "options", "label"):
            about = option.get("description")
            label = one_line(option["label"])
            lines.append(f"  - {label}: {detail(about)}" if isinstance(about, str) and about else f"  - {label}")
    return _most(lines)


def _edit(members: dict[str, Any]) -> list[str]:
    """Return the change that an ``Edit`` makes, as ``-`` and ``+`` lines."""
    if not all(isinstance(members.get(name), str) for name in ("old_string", "new_string")):
        return []
    old, new = members.pop("old_string"), members.pop("new_string")
    if members.get("replace_all") is False:
        del members["replace_all"]
    return [f"{sign} {line}" for sign, text in (("-", old), ("+", new)) if text for line in excerpt(text)]
