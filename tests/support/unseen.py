"""The invisible characters, from ``tests/data/unseen.txt``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["unseen"]

LIST = Path(__file__).parents[1] / "data" / "unseen.txt"


def unseen() -> set[int]:
    """Return the code points of all invisible characters."""
    found: set[int] = set()
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            first, _, last = line.partition("..")
            found.update(range(int(first, 16), int(last or first, 16) + 1))
    return found
