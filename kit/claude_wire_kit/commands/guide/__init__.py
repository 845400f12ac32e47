"""The agent of ``claude-wire demo`` and ``claude-wire serve --demo``: an answer for each feature of a front end."""

from __future__ import annotations

import sys


def command() -> list[str]:
    """Return the command line that starts the agent. Run it in the project's folder."""
    flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--permission-prompt-tool", "stdio"]
    return [sys.executable, "-m", __name__, *flags, "--include-partial-messages", "--replay-user-messages"]
