"""Show the JSON of each command with ``--json``, for the site's page how-to/command-line.md.

The forms are in the docstrings of the functions that build the JSON.
"""

from __future__ import annotations

import inspect

from claude_wire_kit.commands import check, search, sessions, stats, usage
from claude_wire_kit.commands.supervisor import table
from claude_wire_kit.conform import report

#: Command -> the function whose docstring has the form of its JSON.
COMMANDS = {
    "usage": usage.usage_as_json,
    "sessions": sessions.session_as_json,
    "search": search.found_as_json,
    "check": check.check_as_json,
    "conform": report.report_as_json,
    "stats": stats.stats_as_json,
    "supervisor ps": table.session_as_json,
}


def form(command: str) -> str:
    """Return the form of a command's JSON in Markdown: the docstring without its first paragraph."""
    return (inspect.getdoc(COMMANDS[command]) or "").partition("\n\n")[2]


def described() -> str:
    """Return a heading and a form for each command."""
    return "\n\n".join(f"### {command} --json\n\n{form(command)}" for command in COMMANDS)
