"""Constants for code that follows tool calls: the most open calls, and the tools that start a subagent."""

from __future__ import annotations

#: Most calls whose ends are waited for. One more gives up the oldest one.
MAX_OPERATIONS = 1024

#: Tools that start a subagent.
SUBAGENT_TOOLS = frozenset(("Agent", "Task"))
