"""Limit the size of an event for a browser, because tool inputs and results may be very large.

Long text keeps its beginning and its end. A note between them counts the omitted characters.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from claude_wire.support import fields_of, items_of
from claude_wire_kit.events.changes import without_change
from claude_wire_kit.events.events import Notice, Operation, Part, UiEvent, UserPrompt

#: The number of characters that long text keeps at its beginning, and at its end.
HEAD_CHARS, TAIL_CHARS = 60_000, 40_000
#: Maximum number of characters in all texts of an event. Text above this limit is omitted.
EVENT_CHARS = 400_000
#: Maximum number of base64 characters in all pictures of an event. Pictures above this limit are omitted.
PICTURE_CHARS = 2_000_000
#: Limits for a tool's input: the members of each list and object, and the depth of nesting.
MAX_MEMBERS, MAX_DEPTH = 200, 20


def bounded(event: UiEvent) -> UiEvent:
    """Cut the texts, lists and pictures of an event to the limits of this module.

    The input of a permission question stays whole, because a person must see all of it to decide.
    """
    budget = _Budget()
    match event:
        case Operation():
            given = event.input if event.change is None else without_change(event.name or "", event.input)
            change = None if event.change is None else budget.lines(event.change)
            return replace(event, input=budget.value(given), change=change, content=budget.parts(event.content))
        case UserPrompt(parts=parts) if parts is not None:
            return replace(event, parts=budget.parts(parts))
        case Notice():
            detail = None if event.detail is None else budget.text(event.detail)
            return replace(event, detail=detail, fields=budget.value(event.fields))
        case _:
            return event


class _Budget:
    """Cuts the values of one event, and counts how many more characters the event may have."""

    def __init__(self) -> None:
        self._chars = EVENT_CHARS
        self._picture = PICTURE_CHARS

    def text(self, text: str) -> str:
        over = len(text) - HEAD_CHARS - TAIL_CHARS
        if over > 0:
            text = f"{text[:HEAD_CHARS]}\n… {over:,} characters are left out …\n{text[-TAIL_CHARS:]}"
        if len(text) > self._chars:
            text = f"… {len(text):,} characters are left out …"
        self._chars -= len(text)
        return text

    def lines(self, lines: list[str]) -> list[str]:
        return self.text("\n".join(lines)).split("\n")

    def parts(self, parts: list[Part] | None) -> list[Part] | None:
        return None if parts is None else [self._part(part) for part in parts[:MAX_MEMBERS]]

    def _part(self, part: Part) -> Part:
        if part.text is not None:
            return replace(part, text=self.text(part.text))
        if part.data is not None and len(part.data) > self._picture:
            return replace(part, data=None, name=f"{part.name}, {len(part.data):,} characters of base64")
        self._picture -= len(part.data or "")
        return part

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return a JSON value with its texts, lists, objects and depth cut."""
        if isinstance(value, str):
            return self.text(value)
        self._chars -= 10
        items, members = items_of(value), list(fields_of(value).items())
        if not items and not members:
            return value
        if depth == MAX_DEPTH or self._chars <= 0:
            return "…"
        if items:
            more = ["…"] if len(items) > MAX_MEMBERS else []
            return [*(self.value(item, depth + 1) for item in items[:MAX_MEMBERS]), *more]
        kept = {self.text(name): self.value(member, depth + 1) for name, member in members[:MAX_MEMBERS]}
        return {**kept, "…": f"{len(members) - MAX_MEMBERS:,} more"} if len(members) > MAX_MEMBERS else kept
