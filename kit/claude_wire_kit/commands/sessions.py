"""The command ``claude-wire sessions``: list the sessions on disk, and show how to resume each."""

from __future__ import annotations

import json
import math
import os
import shlex
from datetime import datetime, timedelta, timezone
from itertools import islice
from pathlib import Path
from typing import Any, cast

import click

from claude_wire.support import one_line, printable, prose
from claude_wire.transcripts import SessionInfo
from claude_wire.transcripts.files import read_small
from claude_wire_kit.commands.shared.json_output import print_csv, print_json, time_as_json
from claude_wire_kit.commands.shared.options import takes_json_or_csv
from claude_wire_kit.commands.shared.progress import Progress
from claude_wire_kit.commands.shared.selection import Selection, takes_selection
from claude_wire_kit.terminal.columns import fitted, shortened, terminal_width

#: If the output is not a terminal, a title or a prompt is cut to this many characters.
TEXT_CHARS = 200

#: How many days the CLI keeps a session by default.
DEFAULT_DAYS_KEPT = 30
#: Maximum size in bytes of the CLI's settings file. A larger one is not read.
MAX_SETTINGS_BYTES = 1024 * 1024

#: The keys of each session that ``search`` prints with --json and --csv. ``sessions`` also prints :data:`KEPT_KEYS`.
SESSION_KEYS = (
    *("id", "path", "title", "project", "started", "ended", "first_prompt", "last_prompt", "tag", "bytes", "resume"),
)
KEPT_KEYS = ("kept_until", "goes_soon")

#: Warn this long before the CLI deletes a session.
SOON = timedelta(days=7)


@click.command()
@takes_selection
@click.option("-n", "--newest", type=click.IntRange(1), default=20, show_default=True, help="Number of sessions.")
@click.option("--all", "show_all", is_flag=True, help="Show all sessions.")
@takes_json_or_csv("session")
def sessions(
    selection: Selection,
    newest: int,
    show_all: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """List the sessions on disk, the newest first.

    The output shows each session and the command that resumes it. The CLI deletes a session some days after the last
    change of its file (cleanupPeriodDays in settings.json, by default 30). The output warns seven days before.

    FOLDER is by default the CLI's "projects" folder in CLAUDE_CONFIG_DIR or in ~/.claude. At most 128 KiB of each file
    are read, at its beginning and its end. The sessions are sorted by the time of their last record.

    With --since and --until, a session is listed if any day from its first record to its last is in the period.

    Exit code: 0, even if there are no sessions; 2 if the folder cannot be read.

    The keys of --json are on the page "Use the command" of the documentation.
    """
    has = selection.period.has
    days, now = _days_kept(selection.folder), datetime.now(timezone.utc)
    width = terminal_width() or TEXT_CHARS
    number = -1
    as_objects: list[dict[str, Any]] = []
    with Progress("reading sessions") as progress:
        every = selection.sessions(newest_first=True, on_file=progress.show)
        found = (each for each in every if has(each.started, each.ended))
        for number, session in enumerate(islice(found, None if show_all else newest)):
            end = _kept_until(session, days)
            goes_soon = end is not None and end - now <= SOON
            if as_json or as_csv:
                kept = {"kept_until": time_as_json(end), "goes_soon": goes_soon}
                as_objects.append({**session_as_json(session), **kept})
                continue
            progress.hide()
            click.echo("\n" * bool(number) + click.style(fitted(headline(session), width), bold=True))
            for name, text in (("", session.first_prompt), ("last: ", session.last_prompt)):
                # Show a prompt only if it differs from the headline and from the previous row.
                if text and text != _title(session) and (not name or text != session.first_prompt):
                    click.echo(fitted(f"  {name}{_line(text)}", width))
            click.echo(f"  {resume_line(session)}")
            if end is not None and goes_soon:
                when = "at its next start" if end <= now else f"when it starts after {_local(end)}"
                click.echo(fitted(f"  the CLI deletes this session {when}", width))
    if as_json:
        print_json({"sessions": as_objects})
    elif as_csv:
        print_csv([*SESSION_KEYS, *KEPT_KEYS], as_objects)
    if number < 0:
        click.echo(f"note: no sessions found in {printable(selection.folder, keep='')}", err=True)


def _title(session: SessionInfo) -> str:
    return session.title or session.last_prompt or session.first_prompt or "(no prompt)"


def headline(session: SessionInfo) -> str:
    """Return a session's end time, size and title."""
    ended = "(no time)" if session.ended is None else _local(session.ended)
    return f"{ended}  {shortened(session.size, ' ')}B  {_line(_title(session))}"


def resume_command(session: str, project: str | None) -> str:
    """Return the shell command that resumes a session. It may contain control characters: escape it before printing."""
    # Join an id that begins with a dash to the flag. Otherwise the CLI would treat the id as an option.
    resume = f"claude --resume{'=' if session.startswith('-') else ' '}{shlex.quote(session)}"
    change = "cd --" if project is not None and project.startswith("-") else "cd"
    return resume if project is None else f"{change} {shlex.quote(project)} && {resume}"


def resume_line(session: SessionInfo) -> str:
    """Return the command that resumes a session, safe to print: control characters are shown as escapes."""
    return printable(resume_command(session.id, session.project), keep="")


def session_as_json(session: SessionInfo) -> dict[str, Any]:
    r"""Return a session for ``sessions --json``, without the last two keys.

        {"sessions": [{"id": str, "path": PATH, "title": str or null, "project": PATH or null,
          "started": TIME or null, "ended": TIME or null, "bytes": int, "first_prompt": str or null,
          "last_prompt": str or null, "tag": str or null, "resume": str, "kept_until": TIME or null,
          "goes_soon": bool}, ...]}

    Titles and prompts are cut to 1,000 characters. ``resume`` is a shell command. The first start of the CLI after
    ``kept_until`` deletes the session. Bytes of ``path`` that are not UTF-8 become ``\udc80`` to ``\udcff``, as in
    Python's ``os.fsdecode``.
    """
    times = {"started": time_as_json(session.started), "ended": time_as_json(session.ended)}
    resume = resume_command(session.id, session.project)
    fields = session._asdict()
    fields["bytes"] = fields.pop("size")
    return {**fields, "path": str(session.path), **times, "resume": resume}


def _days_kept(folder: str) -> float | None:
    """Return how many days the CLI keeps a session: ``cleanupPeriodDays`` in ``settings.json`` next to ``projects``.

    Returns None if the CLI deletes no sessions: ``folder`` is neither ``projects`` nor directly in it, or the settings
    cannot be read or are invalid.
    """
    projects = os.path.abspath(folder)
    if os.path.basename(projects) != "projects":
        projects = os.path.dirname(projects)
    if os.path.basename(projects) != "projects":
        return None
    try:
        settings: Any = json.loads(read_small(Path(projects).with_name("settings.json"), MAX_SETTINGS_BYTES))
    except FileNotFoundError:
        return DEFAULT_DAYS_KEPT
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(settings, dict):
        return None
    days: object = cast("dict[str, object]", settings).get("cleanupPeriodDays", DEFAULT_DAYS_KEPT)
    if not isinstance(days, (int, float)) or isinstance(days, bool):
        return None
    return days if 1 <= days < math.inf and days == int(days) else None


def _kept_until(session: SessionInfo, days: float | None) -> datetime | None:
    """Return the time after which the CLI may delete a session: ``days`` after its file last changed."""
    if days is None:
        return None
    try:
        changed = datetime.fromtimestamp(os.stat(session.path).st_mtime, timezone.utc)
        return changed + timedelta(days=days)
    except (OSError, ValueError, OverflowError):  # the file was deleted, or the date is too late for datetime
        return None


def _local(time: datetime) -> str:
    try:
        return f"{time.astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):  # in the local zone, the date is out of range
        return f"{time:%Y-%m-%d %H:%M}"


def _line(text: str) -> str:
    return one_line(" ".join(prose(text).split()), TEXT_CHARS, prose)
