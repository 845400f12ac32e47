"""Add up numbers, some of them by name.

The number of names is limited, because a stream may have any number of different names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast

if TYPE_CHECKING:
    from typing_extensions import Self

#: When there are too many names, everything with another name is counted under this one.
OTHERS = "(others)"


def name_within(known: Mapping[Any, object], name: Any, most: int) -> Any:
    """Return ``name``, or :data:`OTHERS` if it is new and ``most`` names are already known."""
    return name if name in known or len(known) < most else OTHERS


@dataclass
class Sums:
    """A dataclass whose fields are numbers, other sums, or dicts from names to either."""

    most_names: ClassVar[int]
    """Maximum number of names in each dict."""

    def add(self, other: Self) -> None:
        """Add each field of ``other``. Fields that only a subclass has are ignored."""
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
