"""The agent of ``claude-wire demo`` and ``claude-wire serve --demo``: it shows what a front end can show."""

from __future__ import annotations

import sys


def command() -> list[str]:
    """Return the command line that starts the agent. Its working folder is the project."""
    flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--permission-prompt-tool", "stdio"]
    return [sys.executable, "-m", __name__, *flags, "--include-partial-messages", "--replay-user-messages"]
