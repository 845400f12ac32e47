"""The characters that are drawn as nothing, from ``tests/data/unseen.txt``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["unseen"]

LIST = Path(__file__).parents[1] / "data" / "unseen.txt"


def unseen() -> set[int]:
    """All of them, by their numbers."""
    found: set[int] = set()
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            first, _, last = line.partition("..")
            found.update(range(int(first, 16), int(last or first, 16) + 1))
    return found
