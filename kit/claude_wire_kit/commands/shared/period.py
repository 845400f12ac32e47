"""The options ``--since`` and ``--until``, and the period between them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from functools import wraps
from typing import Any, NamedTuple

import click

from claude_wire.support import one_line


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


def takes_period(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator that adds the options ``--since`` and ``--until``, and passes the command a ``period``.

    The days of the period are in the time zone of ``--tz``, if the command has that option as ``zone``.
    """

    @wraps(command)
    def with_period(*, since: str | None, until: str | None, **options: Any) -> None:
        zone = _zone(options.get("zone"))
        first, last = _day("--since", since, zone), _day("--until", until, zone)
        if first is not None and last is not None and first > last:
            raise click.UsageError(f"--since {first} is after --until {last}.")
        command(period=Period(first, last, zone), **options)

    since = click.option("--since", metavar="DAY", help="First day: YYYY-MM-DD, or 7d for seven days ago.")
    until = click.option("--until", metavar="DAY", help="Last day.")
    return since(until(with_period))


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
