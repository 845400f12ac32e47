"""Find the Claude Code CLI on this machine, without starting it."""

from __future__ import annotations

import importlib.util
import os
import sys

from claude_wire.errors import CLINotFoundError

#: The first bytes of a program that ``claude-wire tap --install`` wrote.
TAP_HEAD = b"#!/bin/sh\n# claude-wire tap\n"


def find_cli() -> str:
    """Return the path of the Claude Code CLI on this machine.

    The search covers ``PATH``, then the folders that the CLI's installers use, then an installed claude-agent-sdk. It
    skips a tap (``claude-wire tap --install``), because a tap that searches for the CLI must not find itself. To run a
    tap, pass its path. The CLI's version is not checked. On Windows, only a native ``claude.exe`` counts, as in
    claude-agent-sdk (see :meth:`ClaudeOptions.argv`).

    Raises:
        CLINotFoundError: the CLI is not in any of these places. The message says how to install it.
    """
    for path in _candidates():
        # os.path.isfile returns False in a directory that may not be read; Path.is_file raises there.
        if os.path.isfile(path) and os.access(path, os.X_OK) and not is_tap(path):
            return os.path.abspath(path)
    if sys.platform == "win32":
        how = "install it with (PowerShell): irm https://claude.ai/install.ps1 | iex"
    else:
        how = "install it with: npm install -g @anthropic-ai/claude-code"
    raise CLINotFoundError(
        "no Claude Code CLI was found in PATH, in the usual places, or in an installed claude-agent-sdk; "
        f"{how}; or: pip install claude-agent-sdk; or set its path: ClaudeOptions(cli_path=...)"
    )


def is_tap(path: str | os.PathLike[str]) -> bool:
    """Return True if ``claude-wire tap --install`` wrote this program, or False if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(len(TAP_HEAD)) == TAP_HEAD
    except OSError:
        return False


def _candidates() -> list[str]:
    """Return the paths where the CLI may be, best first. They are the same as in claude-agent-sdk."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        # shutil.which would search the working directory first, and find npm's claude.cmd.
        folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
        found = [os.path.join(folder, "claude.exe") for folder in folders]
        found.append(os.path.join(home, ".local", "bin", "claude.exe"))
    else:
        found = [os.path.join(folder, "claude") for folder in os.get_exec_path()]
        found += [
            os.path.join(home, ".npm-global/bin/claude"),
            "/usr/local/bin/claude",
            os.path.join(home, ".local/bin/claude"),
            os.path.join(home, "node_modules/.bin/claude"),
            os.path.join(home, ".yarn/bin/claude"),
            os.path.join(home, ".claude/local/claude"),
        ]
    try:
        spec = importlib.util.find_spec("claude_agent_sdk")  # finds the package without importing it
    except (ImportError, ValueError):
        spec = None  # an object in sys.modules has this name, but no __spec__
    for folder in (spec and spec.submodule_search_locations) or ():
        found.append(os.path.join(folder, "_bundled", "claude.exe" if sys.platform == "win32" else "claude"))
    return found
