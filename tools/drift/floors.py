"""How much each source of the comparison has to give, so that a run that saw little cannot look like one without drift.

A CLI that shows no help, a scenario in which it says nothing, and typings with other names all leave nothing to
compare. Each source is counted, and less than its floor is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["FLOORS", "Source", "sources"]

#: Source -> the least that it gives. These are three quarters of what CLI 2.1.332 and SDK 0.3.331 gave: a CLI may say a
#: bit less than another, and timing changes how much is said in a scenario. Raise them when a version says more.
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
    """What one source gave."""

    name: str
    found: int
    floor: int

    @property
    def is_short(self) -> bool:
        """True if it gave less than it has to."""
        return self.found < self.floor


def sources(found: Mapping[str, int], *, without: str = "") -> list[Source]:
    """Each source that has a floor, and each that gave something.

    Args:
        found: how much each source gave.
        without: how the names of sources begin that nobody asked for.
    """
    names = dict.fromkeys([*FLOORS, *sorted(found)])
    asked = [name for name in names if not (without and name.startswith(without))]
    return [Source(name, found.get(name, 0), FLOORS.get(name, 0)) for name in asked]
