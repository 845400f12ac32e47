"""Find files by a part of their path, below one folder and never outside it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator

#: At most this many entries are looked at, and this many paths are returned.
MAX_ENTRIES = 20_000
MAX_FOUND = 50
#: Folders that nobody writes into by hand.
_SKIPPED = frozenset({"__pycache__", "node_modules", "target", "venv"})


def find_files(root: str, sought: str) -> list[str]:
    """Return paths relative to a folder that contain a text, whatever its case: the best first.

    A symbolic link is neither followed nor returned. Hidden files are found if the text begins with a dot.

    Args:
        root: the folder. Without it, nothing is found.
    """
    wanted = sought.casefold()
    found: list[tuple[int, int, str]] = []
    for path in _paths(root, hidden=sought.startswith(".")):
        folded = path.casefold()
        if wanted in folded:
            name = os.path.basename(folded)
            rank = 0 if name.startswith(wanted) else 1 if wanted in name else 2
            found.append((rank, path.count(os.sep), path))
    return [path for _, _, path in sorted(found)[:MAX_FOUND]]


def _paths(root: str, *, hidden: bool) -> Iterator[str]:
    """Yield the files below a folder: those of the folder itself first, then those of the folders in it."""
    waiting = deque([""])
    count = 0
    while waiting:
        folder = waiting.popleft()
        try:
            entries = os.scandir(os.path.join(root, folder))
        except OSError:  # it is gone, or may not be read
            continue
        with entries:
            for entry in entries:
                count += 1
                if count > MAX_ENTRIES:
                    return
                if (entry.name.startswith(".") and not hidden) or not entry.name.isprintable():
                    continue
                path = os.path.join(folder, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED and entry.name != ".git":
                        waiting.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path
