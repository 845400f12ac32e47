"""Select the sessions that a command reads, with FOLDER, ``--project``, ``--since`` and ``--until``."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from claude_wire.support import one_line, printable
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.options import absolute

if TYPE_CHECKING:
    from claude_wire.transcripts import SessionInfo


class Period(NamedTuple):
    """The days from ``first`` to ``last`` in a time zone. None for no limit."""

    first: date | None
    last: date | None
    #: None for the time zone of this computer.
    zone: tzinfo | None

    @property
    def is_limited(self) -> bool:
        return self.first is not None or self.last is not None

    def has(self, begin: datetime | None, end: datetime | None) -> bool:
        """Return True if any day from ``begin`` to ``end`` is in the period, or if the period is not limited."""
        if begin is None or end is None:
            return not self.is_limited
        return (self.first is None or self._day(end) >= self.first) and (
            self.last is None or self._day(begin) <= self.last
        )

    def begins_after(self, seconds: float) -> bool:
        """Return True if the period begins after a time, in seconds since 1970."""
        return self.first is not None and self._day(datetime.fromtimestamp(seconds, timezone.utc)) < self.first

    def _day(self, moment: datetime) -> date:
        try:
            return moment.astimezone(self.zone).date()
        except (ValueError, OverflowError):  # in this zone, the date is out of range
            return moment.date()

    def bounds(self) -> tuple[datetime | None, datetime | None]:
        """Return the first moment of the period, and the first moment after it."""
        after = None if self.last is None or self.last == date.max else self.last + timedelta(days=1)
        return self._begin(self.first), self._begin(after)

    def _begin(self, day: date | None) -> datetime | None:
        try:
            return None if day is None else datetime.combine(day, time(), self.zone).astimezone(timezone.utc)
        except (ValueError, OverflowError):  # in UTC, the date is out of range
            return None


class Selection(NamedTuple):
    """The sessions that a command reads."""

    folder: str
    #: The absolute path of the directory in which the sessions began. None for any.
    project: str | None
    period: Period

    @property
    def is_limited(self) -> bool:
        """Return True if ``--project``, ``--since`` or ``--until`` excludes sessions."""
        return self.project is not None or self.period.is_limited

    @property
    def narrowed(self) -> str | None:
        """Return the folder in which the CLI keeps the sessions of ``project``, or None if it does not exist.

        Several directories may share the folder: ``/a/b`` and ``/a-b`` both have ``-a-b``. Without a ``project``,
        return the folder with the sessions of all directories.
        """
        if self.project is None:
            return self.folder
        found = os.path.join(self.folder, re.sub("[^a-zA-Z0-9]", "-", self.project))
        return found if os.path.isdir(found) else None

    def sessions(
        self, *, newest_first: bool, on_file: Callable[[int, int], None] | None = None
    ) -> Iterator[SessionInfo]:
        """Yield the sessions that began in ``project``, at any time. ``on_file`` is as for ``find_sessions``."""
        from claude_wire.transcripts import find_sessions

        inside = self.narrowed
        if inside is None:
            return
        for session in find_sessions(inside, newest_first=newest_first, on_file=on_file):
            if self.project is None or session.project == self.project:
                yield session

    def files(self) -> str | list[Path]:
        """Return the files of the sessions that began in ``project`` and of their subagents.

        Without a ``project``, return the folder.
        """
        from claude_wire_kit.survey.search import files_of

        if self.project is None:
            return self.folder
        return [path for session in self.sessions(newest_first=False) for path in files_of(session.path)]


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


def takes_selection(command: Callable[..., None]) -> Callable[..., None]:
    """Add FOLDER, ``--since``, ``--until`` and ``--project``, and pass the command a ``selection``.

    The days of the period are in the time zone of ``--tz``, if the command has that option as ``zone``.
    """

    @wraps(command)
    def with_selection(
        *, folder: str, project: str | None, since: str | None, until: str | None, **options: Any
    ) -> None:
        zone = _zone(options.get("zone"))
        first, last = _day("--since", since, zone), _day("--until", until, zone)
        if first is not None and last is not None and first > last:
            raise click.UsageError(f"--since {first} is after --until {last}.")
        command(selection=Selection(folder, project, Period(first, last, zone)), **options)

    for decorate in (
        click.option("--project", metavar="DIR", callback=absolute, help="Only sessions that began in this directory."),
        click.option("--until", metavar="DAY", help="Last day."),
        click.option("--since", metavar="DAY", help="First day: YYYY-MM-DD, or 7d for seven days ago."),
        click.argument("folder", required=False, type=_Folder(), callback=_folder),
    ):
        decorate(with_selection)
    return with_selection


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:  # a name like ".." is a ValueError
        raise click.BadParameter(
            f"this computer does not know the time zone {one_line(name)!r}.", param_hint="--tz"
        ) from error


def _day(option: str, text: str | None, zone: tzinfo | None) -> date | None:
    if text is None:
        return None
    days = re.fullmatch(r"(\d{1,5})d", text)
    try:
        return datetime.now(zone).date() - timedelta(days=int(days[1])) if days else date.fromisoformat(text)
    except OverflowError:
        return date.min
    except ValueError as error:
        wrong = f"{one_line(text)!r} is neither a day such as 2026-11-23 nor a number of days such as 7d."
        raise click.BadParameter(wrong, param_hint=f"'{option}'") from error
