# pyright: basic, reportMissingImports=false
# pyarrow need not be installed.
"""Write a table of lines as Parquet or CSV files, by threads in bounded memory. Either all files appear, or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from claude_wire.columns import Problem, Range, Report, parts, scan, usage
from claude_wire.support import install_extra, require_one_of

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
Format = Literal["parquet", "csv"]
#: ``answers`` is the table ``usage`` with each answer once.
ExportTable = Literal["messages", "blocks", "usage", "results", "answers"]
Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

#: A thread holds this many bytes of the source files at a time, as a table and as output.
PART_BYTES = 16 * 1024 * 1024
#: A file of ``answers`` has at most this many rows.
PART_ROWS = 100_000
#: The sum of several reports keeps this many problems.
MAX_PROBLEMS = 100
#: Hive's name for the folder of rows without a time. Readers make null of it.
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
_NUMBERS = "bytes", "lines", "skipped", "rows", "decoded", "invalid"


class Exported(NamedTuple):
    """The outcome of an export."""

    rows: int
    files: int
    #: The report of reading the lines, with the values that did not fit.
    report: Report


def export(
    paths: Paths,
    folder: str,
    table: ExportTable = "messages",
    format: Format = "parquet",
    *,
    by_day: bool = False,
    zone: str = "UTC",
    within: tuple[datetime | None, datetime | None] = (None, None),
    jobs: int = 1,
    on_part: Callable[[int, int], object] = lambda done, parts: None,
) -> Exported:
    """Write a table of the lines in files and folders as files below a new folder.

    The files are ``part-00000.parquet`` and so on, in the order of the lines; with ``by_day``, they are in a folder
    for each day, such as ``day=2026-11-23``. Everything is written to a temporary folder, which is renamed at the end.
    So an export that fails or is killed leaves nothing under the folder's name.

    Args:
        paths: files, and folders, of which all ``.jsonl`` files are taken.
        folder: where to write. It must be empty, or not exist.
        zone: the time zone of days, by its name.
        within: the time from which rows are written, and the time before which. None is no limit.
        jobs: threads. Each holds a part of 16 MiB of lines, or one line that is longer. The table ``answers`` is held
            whole, at 0.3 KB for each answer.
        on_part: called after each part was read, with the number of parts read so far and the number of parts.

    Raises:
        FileExistsError: the folder is not empty, or is not a folder.
        OSError: something cannot be read or written.
        ValueError: there is no such table or format, or pyarrow does not know the time zone.
    """
    require_one_of("table", table, get_args(ExportTable))
    require_one_of("format", format, get_args(Format))
    target = _new_folder(folder)
    planned = parts(paths, PART_BYTES)
    parent, name = os.path.split(target)
    made = _make(parent)
    beside = None
    try:
        # A name may have 255 bytes, and the temporary name is longer than the folder's.
        beside = tempfile.mkdtemp(prefix=f".{name[:40]}.", suffix=".partial", dir=parent)
        write = _Writer(beside, format, zone if by_day else None, within)
        with ThreadPoolExecutor(jobs) as pool:
            done = _export(table, planned, write, pool, on_part)
        os.replace(beside, target)
        return done
    except BaseException:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)
        for each in made:
            with suppress(OSError):  # another program has put something there
                os.rmdir(each)
        raise


def _new_folder(folder: str) -> str:
    """Return the absolute path of a folder that does not exist, or is empty and can be replaced."""
    target = os.path.realpath(folder)  # a link to an empty folder remains a link
    if not folder:
        raise ValueError("the folder has no name")
    if os.path.lexists(target) and not os.path.isdir(target):
        raise FileExistsError(17, "it is there already, and is no folder", folder)
    if os.path.isdir(target):
        if os.listdir(target):
            raise FileExistsError(17, "there is something in it already", folder)
        # A mount point cannot be replaced, and a program that works in the current folder would not see its
        # replacement.
        if os.path.ismount(target) or target == os.path.realpath(os.curdir):
            raise FileExistsError(17, "it is in use: name a new folder in it", folder)
    return target


def _make(folder: str) -> list[str]:
    """Make a folder and those above it. Returns the new ones, the innermost first."""
    missing: list[str] = []
    at = folder
    while not os.path.isdir(at):
        missing.append(at)
        at = os.path.dirname(at)
    os.makedirs(folder, exist_ok=True)
    return missing


def _export(
    name: ExportTable,
    planned: list[list[Range]],
    write: _Writer,
    pool: ThreadPoolExecutor,
    on_part: Callable[[int, int], object],
) -> Exported:
    """Read and write part by part. The first error is raised, and parts that wait are not started."""

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
    """Writes parts as files."""

    def __init__(
        self, folder: str, format: Format, zone: str | None, within: tuple[datetime | None, datetime | None]
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
            # pyarrow accepts only UTF-8 paths, so open the file here.
            with open(os.path.join(self._folder, folder, f"part-{number:05}.{self._format}"), "xb") as file:
                self._write(rows, file)
            files += 1
        return len(table), files

    def _limited(self, table: Table) -> Table:
        """Leave out the rows that are not within the times, and those without a time."""
        compute: Any = pyarrow.compute  # pyarrow makes its functions at import, so types do not show them
        for moment, is_in in zip(self._within, (compute.greater_equal, compute.less), strict=True):
            if moment is not None:
                table = table.filter(is_in(table["timestamp"], pyarrow.scalar(moment, pyarrow.timestamp("us", "UTC"))))
        return table

    def _split(self, table: Table) -> Iterator[tuple[str, Table]]:
        if not len(table):
            return
        if self._zone is None:
            yield "", table
            return
        compute: Any = pyarrow.compute  # pyarrow makes its functions at import, so types do not show them
        times = table["timestamp"].combine_chunks()
        if self._zone != "UTC":
            zoned = times.cast(pyarrow.timestamp("us", tz=self._zone))
            times = compute.local_timestamp(zoned)
        # Sorting by day puts the rows of a day together, in their order.
        days = times.cast(pyarrow.date32())
        order = compute.array_sort_indices(days)
        table, runs = table.take(order), compute.run_end_encode(days.take(order))
        start = 0
        for day, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield f"day={NO_DAY if day is None else day.isoformat()}", table.slice(start, end - start)
            start = end
