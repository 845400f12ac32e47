# pyright: basic, reportMissingImports=false
# pyright is also run where pyarrow is not installed, so it must not report the missing import.
"""Write a table of lines as Parquet or CSV files, with threads, in bounded memory. All files appear, or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias, TypeVar, cast

from claude_wire.columns import Problem, Range, Report, parts, scan, usage
from claude_wire.support import install_extra

if TYPE_CHECKING:
    from pyarrow import Table

try:
    import pyarrow
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet
except ModuleNotFoundError as _error:
    if _error.name != "pyarrow":
        raise
    _advice = install_extra("export", distribution="claude-wire-kit", folder="./kit")
    raise ImportError(f"this needs pyarrow: {_advice}", name="pyarrow") from _error

T = TypeVar("T")
Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

#: A thread reads this many bytes of the source files, makes a table from them, and writes it as one file.
PART_BYTES = 16 * 1024 * 1024
#: Maximum number of rows in one ``answers`` file.
PART_ROWS = 100_000
#: Maximum number of problems in the sum of several reports.
MAX_PROBLEMS = 100
#: Hive's name for the folder with rows without a day. Readers turn it into null.
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
#: pyarrow creates these functions at import, so type checkers do not know them.
_compute: Any = pyarrow.compute
_NUMBERS = "bytes", "lines", "skipped", "rows", "decoded", "invalid"


class Exported(NamedTuple):
    """The outcome of an export."""

    rows: int
    files: int
    #: The report on reading the lines, with the values that did not fit their columns.
    report: Report


def export(
    paths: Paths,
    folder: str,
    table: str = "messages",
    format: str = "parquet",
    *,
    by_day: bool = False,
    zone: str = "UTC",
    within: tuple[datetime | None, datetime | None] = (None, None),
    jobs: int = 1,
    on_part: Callable[[int, int], object] = lambda done, parts: None,
) -> Exported:
    """Read lines from files, and write a table of them as files in a new folder.

    The files are ``part-00000.parquet`` and so on, in the order of the lines. With ``by_day``, they are in a folder for
    each day, such as ``day=2026-11-23``. The export writes to a temporary folder, and renames it at the end. So an
    export that fails or is killed leaves no folder with the name ``folder``.

    Args:
        paths: files to read, and folders whose ``.jsonl`` files are read.
        folder: the folder to write. It must be empty, or not exist.
        table: a table of :func:`claude_wire.columns.scan`, or ``answers``: ``usage`` with one row for each answer.
        format: ``parquet`` or ``csv``.
        zone: the name of the time zone for the days.
        within: write only rows at or after the first time and before the second. None for no limit.
        jobs: the number of threads. Each keeps 16 MiB of lines in memory, or one longer line. The table ``answers``
            also keeps 0.3 KB for each answer.
        on_part: called after each part, with the number of parts read so far and of all parts.

    Raises:
        FileExistsError: ``folder`` is not empty, or is not a folder.
        OSError: a file cannot be read or written.
        ValueError: ``folder`` is empty, or the table or the time zone is unknown.
    """
    target = _new_folder(folder)
    planned = parts(paths, PART_BYTES)
    parent, name = os.path.split(target)
    made = _make(parent)
    unfinished = None
    try:
        # Truncate the name: the temporary name is longer, and file names are limited to 255 bytes.
        unfinished = tempfile.mkdtemp(prefix=f".{name[:40]}.", suffix=".partial", dir=parent)
        write = _Writer(unfinished, format, zone if by_day else None, within)
        with ThreadPoolExecutor(jobs) as pool:
            done = _export(table, planned, write, pool, on_part)
        os.replace(unfinished, target)
        return done
    except BaseException:
        if unfinished is not None:
            shutil.rmtree(unfinished, ignore_errors=True)
        for each in made:
            with suppress(OSError):  # another program put a file into the folder
                os.rmdir(each)
        raise


def _new_folder(folder: str) -> str:
    """Return the absolute path of a folder to write. Check that it does not exist, or is empty and can be replaced."""
    target = os.path.realpath(folder)  # replace the target of a link, not the link
    if not folder:
        raise ValueError("the folder has no name")
    if os.path.lexists(target) and not os.path.isdir(target):
        raise FileExistsError(17, "the path exists and is not a folder", folder)
    if os.path.isdir(target):
        if os.listdir(target):
            raise FileExistsError(17, "the folder is not empty", folder)
        # A mount point cannot be replaced, and a program that works in the current folder would not see its
        # replacement.
        if os.path.ismount(target) or target == os.path.realpath(os.curdir):
            raise FileExistsError(17, "the folder is in use: choose a new folder inside it", folder)
    return target


def _make(folder: str) -> list[str]:
    """Create a folder and its missing parents. Returns the new folders, the innermost first."""
    missing: list[str] = []
    at = folder
    while not os.path.isdir(at):
        missing.append(at)
        at = os.path.dirname(at)
    os.makedirs(folder, exist_ok=True)
    return missing


def _export(
    name: str,
    planned: list[list[Range]],
    write: _Writer,
    pool: ThreadPoolExecutor,
    on_part: Callable[[int, int], object],
) -> Exported:
    """Read and write the parts in the pool. After an error, do not start more parts."""

    def write_part(number: int, part: list[Range]) -> tuple[int, int, Report]:
        found = scan(part, cast("Any", name))
        return *write(number, pyarrow.table(found)), found.report

    def counted(done: Iterable[T]) -> list[T]:
        found: list[T] = []
        for each in done:
            found.append(each)
            on_part(len(found), len(planned))
        return found

    def combine_part(part: list[Range]) -> tuple[Any, Report]:
        found = scan(part, "usage")
        return usage.combine(found), found.report

    try:
        if name != "answers":
            each = counted(pool.map(write_part, range(len(planned)), planned))
            return Exported(
                sum(rows for rows, _, _ in each), sum(files for _, files, _ in each), _total(r for *_, r in each)
            )
        combined = counted(pool.map(combine_part, planned))
        answers = usage.combine(table for table, _ in combined)
        report = _total(report for _, report in combined)
        del combined
        written = [write(number, some) for number, some in enumerate(_pieces(answers))]
        return Exported(sum(rows for rows, _ in written), sum(files for _, files in written), report)
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise


def _total(reports: Iterable[Report]) -> Report:
    """Add up several reports, and keep the first problems."""
    surrogates, misfits, sums = Counter[str](), Counter[str](), Counter[str]()
    problems: list[Problem] = []
    for report in reports:
        surrogates.update(report.surrogates)
        misfits.update(report.misfits)
        sums.update({name: getattr(report, name) for name in _NUMBERS})
        problems += report.problems[: MAX_PROBLEMS - len(problems)]
    return Report(**sums, surrogates=dict(surrogates), misfits=dict(misfits), problems=problems)


def _pieces(stream: Any) -> Iterator[Table]:
    batches: list[Any] = []
    with pyarrow.RecordBatchReader.from_stream(stream) as reader:
        for batch in reader:
            batches.append(batch)
            if sum(map(len, batches)) >= PART_ROWS:
                yield pyarrow.Table.from_batches(batches)
                batches = []
        if batches:
            yield pyarrow.Table.from_batches(batches)


class _Writer:
    """Writes tables as files in a folder, split by day if requested."""

    def __init__(
        self, folder: str, format: str, zone: str | None, within: tuple[datetime | None, datetime | None]
    ) -> None:
        self._folder = folder
        self._within = within
        self._format = format
        self._zone = zone
        self._write: Callable[[Table, BinaryIO], object] = (
            pyarrow.csv.write_csv if format == "csv" else pyarrow.parquet.write_table
        )

    def __call__(self, number: int, table: Table) -> tuple[int, int]:
        """Write a table as a file, or as a file for each day. Returns the number of rows and of files."""
        table, files = self._limited(table), 0
        for folder, rows in self._split(table):
            os.makedirs(os.path.join(self._folder, folder), exist_ok=True)
            # Open the file here, because pyarrow accepts only paths in UTF-8.
            with open(os.path.join(self._folder, folder, f"part-{number:05}.{self._format}"), "xb") as file:
                self._write(rows, file)
            files += 1
        return len(table), files

    def _limited(self, table: Table) -> Table:
        """Drop rows outside ``within``. If it has a limit, also drop rows without a time."""
        for moment, is_in in zip(self._within, (_compute.greater_equal, _compute.less), strict=True):
            if moment is not None:
                table = table.filter(is_in(table["timestamp"], pyarrow.scalar(moment, pyarrow.timestamp("us", "UTC"))))
        return table

    def _split(self, table: Table) -> Iterator[tuple[str, Table]]:
        if not len(table):
            return
        if self._zone is None:
            yield "", table
            return
        times = table["timestamp"].combine_chunks()
        if self._zone != "UTC":
            zoned = times.cast(pyarrow.timestamp("us", tz=self._zone))
            times = _compute.local_timestamp(zoned)
        # Sorting by day keeps each day's rows together, in the same order as before.
        days = times.cast(pyarrow.date32())
        order = _compute.array_sort_indices(days)
        table, runs = table.take(order), _compute.run_end_encode(days.take(order))
        start = 0
        for day, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield f"day={NO_DAY if day is None else day.isoformat()}", table.slice(start, end - start)
            start = end
