"""Numbers that add up, by themselves and by name, however many names a stream makes up.

Knows numbers and names; not what they count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast

if TYPE_CHECKING:
    from typing_extensions import Self

#: The name of all that is not told apart.
OTHERS = "(others)"


def name_within(known: Mapping[Any, object], name: Any, most: int) -> Any:
    """``name``, or :data:`OTHERS` for a new name when ``most`` names are known."""
    return name if name in known or len(known) < most else OTHERS


@dataclass
class Sums:
    """A dataclass of numbers, of other sums, and of dicts of either by name."""

    #: So many names of a dict are told apart.
    most_names: ClassVar[int]

    def add(self, other: Self) -> None:
        """Add those of another, field by field; a field that this class lacks is left out."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, Sums):
                mine.add(theirs)
            elif isinstance(mine, dict):
                self._add_by_name(cast("dict[str, Any]", mine), theirs)
            else:
                setattr(self, each.name, mine + theirs)

    def _add_by_name(self, mine: dict[str, Any], theirs: Mapping[str, Any]) -> None:
        for name, value in theirs.items():
            key = name_within(mine, name, self.most_names)
            if isinstance(value, Sums):
                mine.setdefault(key, type(value)()).add(value)
            else:
                mine[key] = mine.get(key, 0) + value
