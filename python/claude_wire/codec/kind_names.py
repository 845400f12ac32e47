"""Check the kind names in the ``only`` argument."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import get_args

from claude_wire.codec.kinds import Kind
from claude_wire.codec.objects import SURROGATE
from claude_wire.messages.registry import KindName
from claude_wire.support.arguments import nearest, shown, type_of

__all__ = ["KindName", "kind_names", "known_kinds"]


@functools.cache
def known_kinds() -> frozenset[str]:
    """Return the names of all kinds in the protocol, and of all groups of kinds, such as ``"system"``."""
    return frozenset(get_args(KindName))


def kind_names(only: Iterable[str | Kind], known: frozenset[str] | None = None) -> frozenset[str]:
    """Check the ``only`` argument, and return the names as a set.

    Args:
        known: the names to accept; None for all names in the protocol.

    Raises:
        TypeError: an element is neither a str nor a Kind, or ``only`` is a single name.
        ValueError: a name is not known; or a Kind has no type, an empty tag, or a tag with a slash.
    """
    if isinstance(only, (str, Kind)):
        raise TypeError(f"only takes a set of kinds, not one: only={{{shown(only)}}}")
    if isinstance(only, type) or not isinstance(only, Iterable):
        raise TypeError(f"only takes a set of kinds, such as only={{'result'}}, not {type_of(only)}")
    known = known_kinds() if known is None else known
    names: list[str] = []
    for kind in only:
        if isinstance(kind, Kind):
            names.append(_name_of(kind))
        elif not isinstance(kind, str):
            raise TypeError(f"only takes names of kinds, such as 'result' or 'system/init', not {type_of(kind)}")
        elif kind not in known:
            raise ValueError(
                f"only: there is no kind {shown(kind)}{_nearest(kind, known)}; for a kind that this "
                "version does not know: Kind('type', 'subtype')"
            )
        else:
            names.append(kind)
    return frozenset(names)


def _nearest(name: str, known: frozenset[str]) -> str:
    """Return a hint with the kind that the user probably means: the only kind with this ending, or a similar one."""
    end = name.rpartition("/")[2]
    found = [kind for kind in known if kind.rpartition("/")[2] == end]
    return nearest(found[0], found) if len(found) == 1 else nearest(name, known)


def _name_of(kind: Kind) -> str:
    parts = [part for part in kind if part is not None]
    whole = list(kind[: len(parts)]) == parts and parts
    if not whole or not all(isinstance(part, str) and part and "/" not in part and "\n" not in part for part in parts):
        raise ValueError(f"only: {shown(kind)} is not a kind: its type is missing, or a tag is empty or has a slash")
    if SURROGATE.search(str(kind)):
        raise ValueError(f"only: {shown(kind)} is not a kind: it has an unpaired surrogate")
    return str(kind)
