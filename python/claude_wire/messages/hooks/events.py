"""The names of the hook events."""

from __future__ import annotations

import re
from typing import get_args

from claude_wire.messages.hooks.inputs import HookInput

__all__ = ["HOOK_EVENTS", "hook_event"]

#: The CLI's names of all hook events, such as ``PreToolUse``.
HOOK_EVENTS: frozenset[str] = frozenset(str(cls.__struct_config__.tag) for cls in get_args(HookInput))
#: Name in early descriptions of the CLI, such as ``pre-tool-use`` -> event.
_BY_KEBAB = {re.sub("(?<=[a-z])(?=[A-Z])", "-", event).lower(): event for event in HOOK_EVENTS}


def hook_event(name: str) -> str | None:
    """Return the event for a name such as ``PreToolUse`` or ``pre-tool-use``; None if there is no such event."""
    return name if name in HOOK_EVENTS else _BY_KEBAB.get(name)
