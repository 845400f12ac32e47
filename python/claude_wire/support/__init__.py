"""Helpers that the library and the kit share. The kit imports them from here, the library from the single modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claude_wire.support.lazy import later

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from claude_wire.support.arguments import require_function, require_int, require_one_of, require_seconds, type_of
    from claude_wire.support.errors import describe_end
    from claude_wire.support.extras import install_extra
    from claude_wire.support.ids import LONGEST_ID, Ids, Key, key_of, short_id
    from claude_wire.support.internals import require_parts
    from claude_wire.support.moments import moment
    from claude_wire.support.plain_json import fields_of, items_of, plain_object
    from claude_wire.support.text import NAME_CHARS, is_seen, one_line, printable, prose
    from claude_wire.support.tool_calls import MAX_OPERATIONS, SUBAGENT_TOOLS
    from claude_wire.support.waiting import Readiness, cancel_scope, closing_coroutine, move_on_after, running_trio

__all__ = [
    "LONGEST_ID",
    "MAX_OPERATIONS",
    "NAME_CHARS",
    "SUBAGENT_TOOLS",
    "Ids",
    "Key",
    "Readiness",
    "cancel_scope",
    "closing_coroutine",
    "describe_end",
    "fields_of",
    "install_extra",
    "is_seen",
    "items_of",
    "key_of",
    "later",
    "moment",
    "move_on_after",
    "one_line",
    "plain_object",
    "printable",
    "prose",
    "require_function",
    "require_int",
    "require_one_of",
    "require_parts",
    "require_seconds",
    "running_trio",
    "short_id",
    "type_of",
]

#: Name -> module. Names are imported on first use, because some modules need anyio, which is slow to import.
_LATER = {
    "Ids": "ids",
    "Key": "ids",
    "LONGEST_ID": "ids",
    "MAX_OPERATIONS": "tool_calls",
    "NAME_CHARS": "text",
    "Readiness": "waiting",
    "SUBAGENT_TOOLS": "tool_calls",
    "cancel_scope": "waiting",
    "closing_coroutine": "waiting",
    "describe_end": "errors",
    "fields_of": "plain_json",
    "install_extra": "extras",
    "is_seen": "text",
    "items_of": "plain_json",
    "key_of": "ids",
    "moment": "moments",
    "move_on_after": "waiting",
    "one_line": "text",
    "plain_object": "plain_json",
    "printable": "text",
    "prose": "text",
    "require_function": "arguments",
    "require_int": "arguments",
    "require_one_of": "arguments",
    "require_parts": "internals",
    "require_seconds": "arguments",
    "running_trio": "waiting",
    "short_id": "ids",
    "type_of": "arguments",
}

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = later(__name__, _LATER)
