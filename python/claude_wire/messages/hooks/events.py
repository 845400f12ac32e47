"""The events that a hook can be for, by their names."""

from __future__ import annotations

import re
from typing import get_args

from claude_wire.messages.hooks.inputs import HookInput

__all__ = ["HOOK_EVENTS", "hook_event"]

#: The events, as the CLI names them.
HOOK_EVENTS: frozenset[str] = frozenset(str(cls.__struct_config__.tag) for cls in get_args(HookInput))
#: The same by the names that early descriptions of the CLI have: ``pre-tool-use``.
_BY_KEBAB = {re.sub("(?<=[a-z])(?=[A-Z])", "-", event).lower(): event for event in HOOK_EVENTS}


def hook_event(name: str) -> str | None:
    """The event of this name, in either spelling; None if the protocol has none."""
    return name if name in HOOK_EVENTS else _BY_KEBAB.get(name)
