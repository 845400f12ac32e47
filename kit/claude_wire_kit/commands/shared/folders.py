"""Find the sessions folder that a command reads, and build the shell command that resumes a session."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from claude_wire.support import printable
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.options import Decorator, absolute

if TYPE_CHECKING:
    from claude_wire.transcripts import SessionInfo


def projects_folder() -> str:
    """Return the folder in which the CLI keeps sessions: ``projects`` in ``CLAUDE_CONFIG_DIR``, or in ``~/.claude``."""
    return os.path.join(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude"), "projects")


class _Folder(click.Path):
    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False, readable=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            pattern = ctx and ctx.params.get("pattern")
            if isinstance(pattern, str) and os.path.isdir(pattern):  # the arguments of `search` in the wrong order
                right = shlex.join([os.fsdecode(value), pattern])
                advice = f"PATTERN comes before FOLDER: claude-wire search {printable(right, keep='')}"
                raise click.UsageError(advice, ctx) from error
            raise


def _folder(context: click.Context, parameter: click.Parameter, folder: str | None) -> str:
    if folder is None:
        folder = projects_folder()
        if not os.path.isdir(folder):
            raise Failure(f"No sessions found: {printable(folder, keep='')} is not a directory. Pass FOLDER.")
    # The user may also name the CLI's configuration folder.
    inside = os.path.join(folder, "projects")
    return inside if os.path.isdir(inside) else folder


#: Adds the argument ``folder``. Its default is :func:`projects_folder`.
takes_folder: Decorator = click.argument("folder", required=False, type=_Folder(), callback=_folder)

#: Adds the option ``--project``. Its value is an absolute path, or None.
takes_project: Decorator = click.option(
    "--project", metavar="DIR", callback=absolute, help="Only sessions that began in this directory."
)


def files_of_project(folder: str, project: str) -> list[Path]:
    """Return the files of the sessions that began in a directory, and their subagents' files."""
    from claude_wire_kit.survey.search import files_of

    return [path for session in sessions_in(folder, project, newest_first=False) for path in files_of(session.path)]


def sessions_in(folder: str, project: str | None, *, newest_first: bool) -> Iterator[SessionInfo]:
    """Yield the sessions that began in the directory ``project``, or all if it is None."""
    from claude_wire.transcripts import find_sessions

    inside = narrowed(folder, project)
    for session in find_sessions(inside, newest_first=newest_first) if inside is not None else ():
        if project is None or session.project == project:
            yield session


def narrowed(folder: str, project: str | None) -> str | None:
    """Return the folder in which the CLI keeps a directory's sessions, or None if it does not exist.

    Several directories may share the folder: ``/a/b`` and ``/a-b`` both have ``-a-b``. Without a ``project``, the
    folder is the one with the sessions of all directories.
    """
    if project is None:
        return folder
    found = os.path.join(folder, re.sub("[^a-zA-Z0-9]", "-", project))
    return found if os.path.isdir(found) else None


def resume_command(session: str, project: str | None) -> str:
    """Return the shell command that resumes a session. It may contain control characters: escape it before printing."""
    # Join an id that begins with a dash to the flag. Otherwise the CLI would treat the id as an option.
    resume = f"claude --resume{'=' if session.startswith('-') else ' '}{shlex.quote(session)}"
    change = "cd --" if project is not None and project.startswith("-") else "cd"
    return resume if project is None else f"{change} {shlex.quote(project)} && {resume}"
