"""Constants for tracking tool calls: the maximum number of open calls, and the tools that start a subagent."""

from __future__ import annotations

#: Maximum number of open calls to remember. If there are more, the oldest is dropped.
MAX_OPERATIONS = 1024

#: Tools that start a subagent.
SUBAGENT_TOOLS = frozenset(("Agent", "Task"))
