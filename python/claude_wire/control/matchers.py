"""Compare a hook's matcher with tool names by the CLI's rule.

``Bash``, ``Edit|Write`` and ``Edit, Write`` are lists of names. The CLI compares names exactly, so ``bash`` does not
fit any tool. Any other matcher, such as ``mcp__files__.*``, is a regular expression, and fits a name that contains a
match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: The events whose matchers are compared with tool names.
TOOL_EVENTS: frozenset[str] = frozenset(
    ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied")
)
_NAMES = re.compile(r"[a-zA-Z0-9_|, -]+")
#: Old tool name -> new tool name. Matchers and ``system/init`` may still use the old names (CLI 2.1.331).
_ALIASES = {
    "Brief": "SendUserMessage",
    "Eval": "REPL",
    "KillBash": "TaskStop",
    "KillShell": "TaskStop",
    "ListMcpResources": "ListMcpResourcesTool",
    "ListPeers": "ListAgents",
    "ProposeGoal": "SetGoal",
    "ReadMcpResource": "ReadMcpResourceTool",
    "ReadMcpResourceDir": "ReadMcpResourceDirTool",
    "Task": "Agent",
}


def fits_tool(matcher: str | None, tools: Iterable[str]) -> bool:
    """Return True if a matcher fits any of these tools, or is a JavaScript expression that Python cannot compile."""
    if matcher in (None, "", "*"):
        return True
    assert matcher is not None
    names = {other for tool in tools for other in _names_of(tool)}
    if _NAMES.fullmatch(matcher):
        given = (word.strip() for word in re.split(r"[|,]", matcher))
        return any(_ALIASES.get(name, name) in names for name in given if name)
    try:
        expression = re.compile(matcher)
    except re.error:
        return True
    return any(expression.search(name) for name in names)


def _names_of(tool: str) -> set[str]:
    """Return all of a tool's names, old and new."""
    name = _ALIASES.get(tool, tool)
    return {tool, name, *(old for old, new in _ALIASES.items() if new == name)}
