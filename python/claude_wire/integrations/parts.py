"""Split files and folders into parts of about equal size, for libraries that read them in parallel tasks.

Also logs the values and lines that did not fit their columns.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from claude_wire.columns import Problem, Range, Report, Scan, plan

__all__ = ["PART_BYTES", "Paths", "files", "lost", "parts", "tell", "total"]

Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

#: Bytes of the files that become one part, one task, one partition.
PART_BYTES = 64 * 1024 * 1024

#: Problems that a sum of reports keeps.
MAX_PROBLEMS = 100
_NUMBERS = "bytes", "lines", "skipped", "rows", "decoded", "invalid"

_log = logging.getLogger("claude_wire")


def files(paths: Paths) -> list[str]:
    """The files of ``paths``, in order: those given, and for each folder the ``.jsonl`` files below it, sorted.

    What is named so in a folder and is no regular file, a FIFO, say, is left out.

    Raises:
        OSError: a folder cannot be read.
    """
    each = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    found: list[str] = []
    for path in [os.fspath(one) for one in each]:
        found += sorted(_below(path)) if os.path.isdir(path) else [path]
    return found


def _below(folder: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise error

    for parent, _, names in os.walk(folder, onerror=refuse):
        yield from filter(os.path.isfile, (os.path.join(parent, name) for name in names if name.endswith(".jsonl")))


def parts(paths: Paths, part_bytes: int = PART_BYTES) -> list[list[Range]]:
    """All lines of ``paths`` in lists of ranges: at most ``part_bytes`` bytes in each, small files together.

    Each list is a source for :func:`claude_wire.columns.scan`, and can be pickled. Together they have each line once,
    in the order of the files. Without any line there is one part, which is empty.

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


def total(reports: Iterable[Report]) -> Report:
    """The sum of several reports, with the first 100 problems of all."""
    surrogates, misfits = Counter[str](), Counter[str]()
    sums = Counter[str]()
    problems: list[Problem] = []
    for report in reports:
        surrogates.update(report.surrogates)
        misfits.update(report.misfits)
        sums.update({name: getattr(report, name) for name in _NUMBERS})
        problems += report.problems[: MAX_PROBLEMS - len(problems)]
    return Report(**sums, surrogates=dict(surrogates), misfits=dict(misfits), problems=problems)


def lost(report: Report) -> str:
    """The text of a warning about values that did not fit: their number, and the first place. Empty if all fit."""
    counts = [f"{number:,} lone surrogates in {name}" for name, number in report.surrogates.items()]
    counts += [f"{number:,} values that do not fit {name}" for name, number in report.misfits.items()]
    counts += [f"{report.invalid:,} lines that gave no row"] if report.invalid else []
    if not counts:
        return ""
    first = report.problems[0]
    line = "?" if first.line_number is None else f"{first.line_number:,}"
    return f"{', '.join(counts)}. The first is at {first.path}, line {line}"


def tell(scan: Scan) -> None:
    """Log a warning if values did not fit in the last pass of a scan."""
    if said := lost(scan.report):
        _log.warning("Table %s: %s", scan.table, said)
