"""The folder of sessions that a command reads, and the shell command that resumes one of its sessions."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable

import click

from claude_wire.support import printable
from claude_wire_kit.commands.shared.failure import Failure


def projects_folder() -> str:
    """Return where the CLI keeps sessions: ``projects`` in ``CLAUDE_CONFIG_DIR``, or in ``~/.claude``."""
    return os.path.join(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude"), "projects")


def takes_folder(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator that adds the argument ``folder``. Its default is the folder of all sessions."""
    kind = click.Path(exists=True, file_okay=False, readable=True)
    return click.argument("folder", required=False, type=kind, callback=_folder)(command)


def _folder(context: click.Context, parameter: click.Parameter, folder: str | None) -> str:
    if folder is None:
        folder = projects_folder()
        if not os.path.isdir(folder):
            raise Failure(f"there are no sessions: {printable(folder, keep='')} is no folder. Name another one.")
    # The user may also name the CLI's configuration folder.
    inside = os.path.join(folder, "projects")
    return inside if os.path.isdir(inside) else folder


def resume_command(session: str, project: str | None) -> str:
    """Return the shell command that resumes a session. It may contain control characters: escape it before printing."""
    # As a separate word, an id that begins with a dash would be an option.
    resume = f"claude --resume{'=' if session.startswith('-') else ' '}{shlex.quote(session)}"
    change = "cd --" if project is not None and project.startswith("-") else "cd"
    return resume if project is None else f"{change} {shlex.quote(project)} && {resume}"
