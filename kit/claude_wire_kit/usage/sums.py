"""Numbers that can be added, alone and by name. The number of names is limited: a stream may make up any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast

if TYPE_CHECKING:
    from typing_extensions import Self

#: The name under which everything beyond a limit is counted.
OTHERS = "(others)"


def name_within(known: Mapping[Any, object], name: Any, most: int) -> Any:
    """Return ``name``, or :data:`OTHERS` if it is new and ``most`` names are known already."""
    return name if name in known or len(known) < most else OTHERS


@dataclass
class Sums:
    """A dataclass of numbers, of other sums, and of dicts from names to either."""

    #: The limit for the number of names in each dict.
    most_names: ClassVar[int]

    def add(self, other: Self) -> None:
        """Add another instance field by field. Fields that only ``other`` has are ignored."""
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
