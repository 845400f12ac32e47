"""The names of version 0.2 that have moved. When a program uses such a name, the error says where to find it now."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

KIT = "claude_wire_kit"
RECIPE = "a recipe in docs/how-to/tables.md"
#: Old name, without ``claude_wire.`` -> what to use instead.
MOVED = {
    "bridge": f"{KIT}.events",
    "cli": f"{KIT}.commands",
    "host": f"{KIT}.supervisor",
    "io": "claude_wire.streams",
    "integrations.dask": RECIPE,
    "integrations.duckdb": RECIPE,
    "integrations.export": f"{KIT}.commands.table_files",
    "integrations.fleet": f"{KIT}.fleet",
    "integrations.parts": "claude_wire.columns",
    "integrations.polars": RECIPE,
    "integrations.ray": f"{RECIPE}, and Fleet is in {KIT}.fleet",
    "serve": f"{KIT}.web",
    "supervisor": f"{KIT}.supervisor",
    "tables": "claude_wire.columns",
    "usage": f"{KIT}.usage",
}


def place(name: str) -> str:
    """Return a hint that says where the unknown name has moved, or an empty string if it has not moved."""
    now = MOVED.get(name)
    if now is None:
        return ""
    return f"; it is {now} now" + (
        ", of the distribution claude-wire-kit (in a clone: pip install ./kit)" if now.startswith(KIT) else ""
    )


class _Moved:
    """The last finder in ``sys.meta_path``. It never finds a module. It raises an error if the module has moved."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        package, _, rest = name.partition(".")
        if package == "claude_wire" and rest in MOVED:
            # `from claude_wire import bridge` would swallow an error that has the old name as its `name`.
            raise ModuleNotFoundError(f"No module named {name!r}{place(rest)}", name=MOVED[rest])


sys.meta_path.append(_Moved)
