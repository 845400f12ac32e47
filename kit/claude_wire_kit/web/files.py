"""Find files in a folder by part of their path."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator

#: Maximum number of files and folders to examine.
MAX_ENTRIES = 20_000
#: Maximum number of paths to return.
MAX_FOUND = 50
#: The search skips folders with these names: their files are generated or installed.
_SKIPPED = frozenset({".git", "__pycache__", "node_modules", "target", "venv"})


def find_files(root: str, sought: str) -> list[str]:
    """Return the files below ``root`` whose path contains ``sought``, ignoring case; the best matches first.

    Symbolic links are neither followed nor returned. Only a search that begins with a dot finds hidden files.

    Args:
        root: the folder. The paths are relative to the folder. If the folder does not exist, the result is empty.
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
    """Yield the files below a folder, nearest first (breadth first)."""
    waiting = deque([""])
    count = 0
    while waiting:
        folder = waiting.popleft()
        try:
            entries = os.scandir(os.path.join(root, folder))
        except OSError:  # the folder was removed, or cannot be read
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
                    if entry.name not in _SKIPPED:
                        waiting.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path
