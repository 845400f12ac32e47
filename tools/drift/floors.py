"""The minimum count for each source of a comparison. Without it, a run that saw little would look successful.

A CLI without a help text, a scenario in which it writes nothing, or typings with other names leave nothing to compare.
So each source is counted, and a count below its floor is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["FLOORS", "Source", "sources"]

#: Source -> its floor. The floors are three quarters of the counts of CLI 2.1.332 and SDK 0.3.331, because versions and
#: timing change the number of messages. Raise them when a new version has more.
FLOORS: Mapping[str, int] = {
    "flags in the help": 50,
    "flags that the parser judged": 13,
    "kinds of messages": 38,
    "events of hooks": 11,
    "answers to requests": 60,
    "records of transcripts": 630,
    "scenario command_hooks, lines": 11,
    "scenario compact, lines": 30,
    "scenario errors, lines": 45,
    "scenario hooks, lines": 105,
    "scenario interrupt, lines": 27,
    "scenario limits, lines": 15,
    "scenario mcp, lines": 18,
    "scenario partial, lines": 31,
    "scenario permission, lines": 26,
    "scenario requests, lines": 60,
    "scenario resume, lines": 42,
    "scenario structured, lines": 21,
    "scenario subagent, lines": 53,
    "scenario task, lines": 18,
    "typings, messages": 580,
    "typings, answers": 60,
    "typings, words of EffortLevel": 4,
    "typings, words of HookEvent": 25,
    "typings, words of PermissionMode": 5,
    "typings, words of SettingSource": 3,
}


class Source(NamedTuple):
    """The count of one source."""

    name: str
    found: int
    floor: int

    @property
    def is_short(self) -> bool:
        """True if the count is below the floor."""
        return self.found < self.floor


def sources(found: Mapping[str, int], *, without: str = "") -> list[Source]:
    """Return each source that has a floor or a count.

    Args:
        found: source -> its count.
        without: a prefix: omit the sources whose names begin with this prefix.
    """
    names = dict.fromkeys([*FLOORS, *sorted(found)])
    asked = [name for name in names if not (without and name.startswith(without))]
    return [Source(name, found.get(name, 0), FLOORS.get(name, 0)) for name in asked]
