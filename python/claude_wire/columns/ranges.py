"""Split files and folders into ranges and parts that several threads, processes or machines can read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from claude_wire.support.arguments import require_int

Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

#: The default size of a range or a part in bytes.
PART_BYTES = 64 * 1024 * 1024


class Range(NamedTuple):
    """A byte range of a file. It selects the lines that begin in the range, even if they end after it.

    Each line of a file is thus in exactly one range, and a range in the middle of a long line has no line. A range can
    be pickled. Where the range is read, ``path`` must name the same file.
    """

    path: str
    start: int
    """Offset of the first byte."""
    stop: int
    """Offset of the byte after the last one."""


def plan(paths: Paths, target_bytes: int = PART_BYTES) -> list[Range]:
    """Split files by size into ranges of at most about ``target_bytes`` each, without reading the files.

    Lines that are added to a file later are not in any range.

    Raises:
        OSError: there is no such file.
        ValueError: ``target_bytes`` is below 1.
    """
    require_int("target_bytes", target_bytes, 1)
    ranges: list[Range] = []
    for path in _each(paths):
        size = os.stat(path).st_size
        parts = -(-size // target_bytes)
        cuts = [size * part // parts for part in range(parts + 1)] if parts else []
        ranges += [Range(path, start, stop) for start, stop in itertools.pairwise(cuts)]
    return ranges


def files(paths: Paths) -> list[str]:
    """Return the files of ``paths`` in order. For a folder, these are the ``.jsonl`` files below it, sorted.

    Below a folder, entries that are not regular files, such as a FIFO, are omitted.

    Raises:
        OSError: a folder cannot be read.
    """
    found: list[str] = []
    for path in _each(paths):
        found += sorted(_below(path)) if os.path.isdir(path) else [path]
    return found


def parts(paths: Paths, part_bytes: int = PART_BYTES) -> list[list[Range]]:
    """Split the lines of files and folders into parts of at most ``part_bytes``. Small files share a part.

    Each part is a source for :func:`scan`, and can be pickled. Together, the parts contain each line once, in the order
    of the files. If there are no lines, the result is one empty part. For folders, see :func:`files`.

    Raises:
        OSError: there is no such file.
        ValueError: ``part_bytes`` is below 1.
    """
    found: list[list[Range]] = [[]]
    size = 0
    for part in plan(files(paths), part_bytes):
        length = part.stop - part.start
        if found[-1] and size + length > part_bytes:
            found.append([])
            size = 0
        found[-1].append(part)
        size += length
    return found


def _each(paths: Paths) -> list[str]:
    return [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def _below(folder: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise error

    for parent, _, names in os.walk(folder, onerror=refuse):
        yield from filter(os.path.isfile, (os.path.join(parent, name) for name in names if name.endswith(".jsonl")))
