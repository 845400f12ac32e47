"""Constants for following tool calls: the limit for open calls, and the tools that start a subagent."""

from __future__ import annotations

#: Most open calls that are remembered. One more drops the oldest.
MAX_OPERATIONS = 1024

#: Tools that start a subagent.
SUBAGENT_TOOLS = frozenset(("Agent", "Task"))
