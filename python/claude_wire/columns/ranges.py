"""Cut files into ranges that several threads, processes or machines can read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import NamedTuple

from claude_wire.support.arguments import require_int


class Range(NamedTuple):
    """A range of bytes of a file. It has all lines that begin in it, also a line that ends after it.

    So each line of a file is in one of its ranges, wherever they are cut, and a range in the middle of a long line is
    empty. A range can be pickled; the path must mean the same file where it is read.
    """

    path: str
    #: First byte.
    start: int
    #: One after the last byte.
    stop: int


def plan(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], target_bytes: int = 64 * 1024 * 1024
) -> list[Range]:
    """Cut files into ranges of about ``target_bytes`` each, at most. Only the sizes of the files are looked at.

    What is added to a file afterwards is in none of its ranges, unless it belongs to a line that had begun.

    Raises:
        OSError: there is no such file.
        ValueError: ``target_bytes`` is below 1.
    """
    require_int("target_bytes", target_bytes, 1)
    each = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    ranges: list[Range] = []
    for path in [os.fspath(one) for one in each]:
        size = os.stat(path).st_size
        parts = -(-size // target_bytes)
        cuts = [size * part // parts for part in range(parts + 1)] if parts else []
        ranges += [Range(path, start, stop) for start, stop in itertools.pairwise(cuts)]
    return ranges
