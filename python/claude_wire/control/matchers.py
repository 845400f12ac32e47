"""Which tools the matcher of a hook fits, by the rule of the CLI.

``Bash``, ``Edit|Write`` and ``Edit, Write`` are names, which the CLI compares letter by letter: ``bash`` fits nothing.
Everything else is a regular expression that fits if it is found anywhere in a name, such as ``mcp__files__.*``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["TOOL_EVENTS", "fits_tool"]

#: The events whose matchers are for names of tools.
TOOL_EVENTS: frozenset[str] = frozenset(
    ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied")
)
_NAMES = re.compile(r"[a-zA-Z0-9_|, -]+")
#: Older names that matchers may have, and that ``system/init`` may list (CLI 2.1.331).
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
    """Whether a matcher fits any of these tools. An expression that Python cannot read may fit: the CLI's differs."""
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
    """All names of a tool, the older ones too."""
    name = _ALIASES.get(tool, tool)
    return {tool, name, *(old for old, new in _ALIASES.items() if new == name)}
