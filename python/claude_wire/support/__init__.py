"""Helpers that the library and the kit share. The kit imports them from here, the library from the single modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claude_wire.support.lazy import later as later

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

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from claude_wire.support.arguments import require_function as require_function
    from claude_wire.support.arguments import require_int as require_int
    from claude_wire.support.arguments import require_one_of as require_one_of
    from claude_wire.support.arguments import require_seconds as require_seconds
    from claude_wire.support.arguments import type_of as type_of
    from claude_wire.support.errors import describe_end as describe_end
    from claude_wire.support.extras import install_extra as install_extra
    from claude_wire.support.ids import LONGEST_ID as LONGEST_ID
    from claude_wire.support.ids import Ids as Ids
    from claude_wire.support.ids import Key as Key
    from claude_wire.support.ids import key_of as key_of
    from claude_wire.support.ids import short_id as short_id
    from claude_wire.support.internals import require_parts as require_parts
    from claude_wire.support.moments import moment as moment
    from claude_wire.support.plain_json import fields_of as fields_of
    from claude_wire.support.plain_json import items_of as items_of
    from claude_wire.support.plain_json import plain_object as plain_object
    from claude_wire.support.text import NAME_CHARS as NAME_CHARS
    from claude_wire.support.text import is_seen as is_seen
    from claude_wire.support.text import one_line as one_line
    from claude_wire.support.text import printable as printable
    from claude_wire.support.text import prose as prose
    from claude_wire.support.tool_calls import MAX_OPERATIONS as MAX_OPERATIONS
    from claude_wire.support.tool_calls import SUBAGENT_TOOLS as SUBAGENT_TOOLS
    from claude_wire.support.waiting import Readiness as Readiness
    from claude_wire.support.waiting import cancel_scope as cancel_scope
    from claude_wire.support.waiting import closing_coroutine as closing_coroutine
    from claude_wire.support.waiting import move_on_after as move_on_after
    from claude_wire.support.waiting import running_trio as running_trio
else:
    __all__ = sorted([*_LATER, "later"])

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = later(__name__, _LATER)
