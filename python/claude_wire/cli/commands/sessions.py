"""The command ``claude-wire sessions``: the sessions on disk, and how to go on with each."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import click

from claude_wire.cli.folders import resume_command, takes_folder
from claude_wire.cli.show.columns import fitted, terminal_width
from claude_wire.foundation.printable import one_line, printable, prose
from claude_wire.transcripts.sessions import SessionInfo, find_sessions

__all__ = ["headline", "resume_line", "session_as_json", "sessions"]

#: A title or a prompt is cut to so many characters where no terminal shows it.
TEXT_CHARS = 200


@click.command()
@takes_folder
@click.option("-n", "--newest", type=click.IntRange(1), default=20, help="So many, the newest; 20 if not said.")
@click.option("--all", "show_all", is_flag=True, help="All of them.")
@click.option("--project", metavar="DIR", help="Those that began in this directory.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sessions(folder: str, newest: int, show_all: bool, project: str | None, as_json: bool) -> None:
    """List the sessions in FOLDER, the newest first, each with the command that goes on with it.

    FOLDER is the CLI's projects folder, if none is named: that in CLAUDE_CONFIG_DIR, or in ~/.claude. The beginning and
    the end of each file are read, 128 KiB at most. Sessions come by the time of their last record, which is shown.

    Exit code: 0, also if there are none; 2 if the folder cannot be read.

    \b
    --json prints {"sessions": [{"id": str, "title": str or null, "project": str or null,
      "started": TIME, "ended": TIME, "size": int, "first_prompt": str or null,
      "last_prompt": str or null, "path": str, "resume": str}, ...]}
    TIME is ISO 8601, or null. Titles and prompts have at most 1,000 characters. "resume" is for
    a shell. Bytes of "path" that are no UTF-8 are \\udc80 to \\udcff, as in Python's os.fsdecode.
    """
    found = islice(_found(folder, project), None if show_all else newest)
    if as_json:
        click.echo(json.dumps({"sessions": [session_as_json(each) for each in found]}))
        return
    width = terminal_width()
    number = -1
    for number, session in enumerate(found):
        click.echo("\n" * bool(number) + click.style(fitted(headline(session), width or TEXT_CHARS), bold=True))
        for name, text in (("", session.first_prompt), ("last: ", session.last_prompt)):
            # What the headline, or the row before, does not say.
            if text and text != _title(session) and (not name or text != session.first_prompt):
                click.echo(fitted(f"  {name}{_line(text)}", width or TEXT_CHARS))
        click.echo(f"  {resume_line(session)}")
    if number < 0:
        click.echo("no sessions")


def _found(folder: str, project: str | None) -> Iterator[SessionInfo]:
    if project is None:
        return find_sessions(folder, newest_first=True)
    directory = os.path.abspath(project)
    # The CLI names the folder of a project so; several projects may share one.
    own = os.path.join(folder, re.sub("[^a-zA-Z0-9]", "-", directory))
    found = find_sessions(own, newest_first=True) if os.path.isdir(own) else ()
    return (each for each in found if each.project == directory)


def _title(session: SessionInfo) -> str:
    return session.title or session.last_prompt or session.first_prompt or "(no prompt)"


def headline(session: SessionInfo) -> str:
    """When a session ended, how large it is, and what it is called."""
    ended = "(no time)" if session.ended is None else _local(session.ended)
    return f"{ended}  {_size(session.size)}  {_line(_title(session))}"


def resume_line(session: SessionInfo) -> str:
    """What to type to go on with a session. What a terminal would obey is escaped; such a folder is typed by hand."""
    return printable(resume_command(session.id, session.project), keep="")


def session_as_json(session: SessionInfo) -> dict[str, Any]:
    """A session, and the command that goes on with it."""
    times = {name: time and time.isoformat() for name, time in (("started", session.started), ("ended", session.ended))}
    resume = resume_command(session.id, session.project)
    return {**session._asdict(), "path": str(session.path), **times, "resume": resume}


def _local(time: datetime) -> str:
    try:
        return f"{time.astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):  # the first and the last day that there are
        return f"{time:%Y-%m-%d %H:%M}"


def _line(text: str) -> str:
    return one_line(" ".join(prose(text).split()), TEXT_CHARS, prose)


def _size(size: int) -> str:
    for unit, letter in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {letter}"
    return f"{size} B"
