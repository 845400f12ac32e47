"""Read files, ranges of files, or bytes as an Arrow stream of one table.

The native code reads the lines and extracts the values, without the interpreter's lock. If it cannot read a line, it
calls :func:`_decode`, which reads the line as a Decoder does and returns the same object as simpler JSON.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import stat
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

from claude_wire.codec.kind_names import KindName, kind_names
from claude_wire.codec.kinds import Kind
from claude_wire.codec.objects import BadLine, Objects
from claude_wire.columns.ranges import Range
from claude_wire.columns.report import Problem, ProblemKind, Report
from claude_wire.columns.tables import TableName, columns_of, spec
from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.native.block import byte_view
from claude_wire.native.capsules import stream_capsule
from claude_wire.native.library import checked, ffi, lib
from claude_wire.support.arguments import nearest, require_int, shown, type_of

Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | Range"

#: The maximum value of ``max_line_bytes``, because a column has 32-bit offsets.
MAX_LINE_BYTES = 2**29
_WHOLE = 0, 2**64 - 1
#: The problem kinds. The native code uses a kind's index in this tuple.
_KINDS: tuple[ProblemKind, ...] = ("surrogate", "misfit", "invalid", "too_long", "too_many_blocks")
_NO_COLUMN = 2**64 - 1
#: A native report has 6 counts, then two counts for each column, then 5 numbers for each of at most 100 problems.
_COUNTS, _CASE, _MAX_CASES = 6, 5, 100


def _decode(line: Any, length: int, reply: Any) -> int:
    try:
        value = Objects("keep").object(bytes(ffi.buffer(line, length)))
        text = json.dumps(value, ensure_ascii=False, check_circular=False, separators=(",", ":"))
        data = text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape
        return 1 if lib.cw_scan_reply(reply, data, len(data)) >= 0 else lib.CW_ERROR_MEMORY
    except (BadLine, RecursionError):
        return 0
    except MemoryError:
        return lib.CW_ERROR_MEMORY


def decoder(onerror: Callable[..., object] | None = None) -> Any:
    """Return a new native callback that decodes a line. ``onerror`` handles an exception in it; cffi prints it if None.

    The caller must keep the callback as long as a scan or one of its streams may use it.
    """
    return ffi.callback("int32_t(uint8_t *, uint64_t, void *)", _decode, error=-1, onerror=onerror)


#: The callback of streams is never freed, because a stream may use it until the process exits. An exception in the
#: callback ends the stream.
_stream_decoder = functools.cache(decoder)


class Scan:
    """A table of lines as an Arrow stream. :func:`scan` returns it.

    Any consumer of ``__arrow_c_stream__`` can read it: ``pyarrow.table(scan)``, ``polars.DataFrame(scan)``, DuckDB,
    DataFusion, nanoarrow. Each of these begins a new pass over all sources, which continues even if the scan is freed.
    """

    __slots__ = ("__weakref__", "_columns", "_finalize", "_handle", "_paths", "_table")

    def __init__(self, table: TableName, columns: tuple[str, ...], handle: int, paths: list[str | None]) -> None:
        self._table: TableName = table
        self._columns = columns
        self._handle = handle
        self._paths = paths
        self._finalize = weakref.finalize(self, lib.cw_scan_free, handle)

    @property
    def table(self) -> TableName:
        """The table's name."""
        return self._table

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names, in order."""
        return self._columns

    def __repr__(self) -> str:
        count = len(self._paths)
        return f"<Scan of {self._table}: {count:,} source{'' if count == 1 else 's'}, {len(self._columns)} columns>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Begin a pass over all sources. Return a capsule with an ``ArrowArrayStream``.

        ``requested_schema`` is ignored, as the interface allows.
        """
        out = ffi.new("void **")
        checked(lib.cw_scan_stream(self._handle, out))
        return stream_capsule(out[0])

    @property
    def report(self) -> Report:
        """The last pass's report. The pass may still be running."""
        columns = len(self._columns)
        most = _COUNTS + 2 * columns + _CASE * _MAX_CASES
        out = ffi.new("uint64_t[]", most)
        numbers = ffi.unpack(out, checked(lib.cw_scan_report(self._handle, out, most)))
        counts, cases = numbers[_COUNTS:], numbers[_COUNTS + 2 * columns :]

        def by_column(part: list[int]) -> dict[str, int]:
            return {name: number for name, number in zip(self._columns, part, strict=False) if number}

        size, lines, skipped, made, decoded, invalid = numbers[:_COUNTS]
        return Report(
            bytes=size,
            lines=lines,
            skipped=skipped,
            rows=made,
            decoded=decoded,
            invalid=invalid,
            surrogates=by_column(counts),
            misfits=by_column(counts[columns:]),
            problems=[self._problem(*cases[at : at + _CASE]) for at in range(0, len(cases), _CASE)],
        )

    def _problem(self, kind: int, column: int, source: int, offset: int, line_number: int) -> Problem:
        name = None if column == _NO_COLUMN else self._columns[column]
        return Problem(_KINDS[kind], name, self._paths[source], offset, line_number or None)


def scan(
    source: Source | Iterable[Source],
    table: TableName = "messages",
    columns: Iterable[str] | None = None,
    only: Iterable[KindName | Kind] | None = None,
    *,
    strict: bool = False,
    max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
) -> Scan:
    """Read the lines of streams and transcripts as a table: an Arrow stream, in constant memory.

    Args:
        source: a path, a :class:`Range` of a file, or the bytes of lines, which are copied; or several of these, which
            are read in order.
        table: ``messages`` has a row for each line, ``blocks`` for each content block, ``usage`` for each assistant
            line with usage, ``results`` for each ``result`` and ``cost-state``.
        columns: names of columns, in the desired order; None: all columns. :func:`columns_of` lists them.
        only: the kinds of lines to read, as for :class:`~claude_wire.Decoder`. For a kind of transcripts write, for
            example, ``Kind("attachment")``. None: all kinds.
        strict: the first problem ends the stream. The consumer raises its own exception, with file, line and column.
        max_line_bytes: the limit for a line with a row, in bytes without its line feed; at most 2**29.

    The scan checks only the structure of a line, its UTF-8, and the values of columns. To skip other values, it looks
    only at their quotes and brackets.

    Raises:
        OSError: there is no such file, or it is a directory. The consumer raises later errors.
        ValueError: there is no such table, column or kind.
        TypeError: an argument has the wrong type.
    """
    names = _columns(table, columns)
    require_int("max_line_bytes", max_line_bytes, 1)
    if max_line_bytes > MAX_LINE_BYTES:
        raise ValueError(f"max_line_bytes must be at most {MAX_LINE_BYTES}, not {shown(max_line_bytes)}")
    if not isinstance(strict, bool):
        raise TypeError(f"strict must be True or False, not {shown(strict)}")
    options = lib.CW_SCAN_STRICT * strict | lib.CW_SCAN_ONLY * (only is not None)
    return _scan(_sources(source), table, names, kind_names(only) if only is not None else (), options, max_line_bytes)


def _scan(
    sources: list[Source],
    table: TableName,
    columns: tuple[str, ...],
    only: Iterable[str],
    options: int,
    max_line_bytes: int,
) -> Scan:
    handle = new_scan(spec(table, columns), only, options, max_line_bytes)
    try:
        return Scan(table, columns, handle, [add_source(handle, source) for source in sources])
    except BaseException:
        lib.cw_scan_free(handle)
        raise


def new_scan(
    specification: bytes,
    only: Iterable[str] = (),
    options: int = 0,
    max_line_bytes: int = MAX_LINE_BYTES,
    callback: Any = None,
) -> int:
    """Make a native scan without sources. Return its handle, which ``cw_scan_free`` must free.

    ``callback`` is a :func:`decoder`. By default, it is one that is never freed.
    """
    kinds = "\n".join(sorted(only)).encode()
    handle = ffi.new("uint64_t *")
    texts = specification, len(specification), kinds, len(kinds)
    checked(lib.cw_scan_new(*texts, options, max_line_bytes, callback or _stream_decoder(), handle))
    return int(handle[0])


def _columns(table: TableName, columns: Iterable[str] | None) -> tuple[str, ...]:
    known = columns_of(table)
    if columns is None:
        return known
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise TypeError(f"columns takes names, such as columns=['text'], not {type_of(columns)}")
    names = tuple(columns)
    for name in names:
        if name not in known:
            raise ValueError(f"columns: {table} has no column {shown(name)}{nearest(str(name), known)}")
    if not names or len(set(names)) < len(names):
        raise ValueError("columns needs at least one name, and no name twice")
    return names


def _sources(source: Source | Iterable[Source]) -> list[Source]:
    if isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview, Range)):
        return [cast("Source", source)]
    if not isinstance(source, Iterable):
        raise TypeError(f"scan() takes paths, Ranges or bytes, not {type_of(source)}")
    return list(source)


def add_source(handle: int, source: Source) -> str | None:
    """Add a source to a native scan. Return the source's path, or None for bytes."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        view = byte_view(source, "scan()")
        checked(lib.cw_scan_add(handle, ffi.from_buffer("uint8_t[]", view), len(view), 0, *_WHOLE))
        return None
    bounds = _WHOLE
    if isinstance(source, Range):
        source, *rest = source
        for name, number in zip(("start", "stop"), rest, strict=True):
            require_int(name, number, 0)
        bounds = rest[0], rest[1]
    elif not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"sources are paths, Ranges or bytes, not {type_of(source)}")
    path = os.fspath(source)
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "a directory: pass its files", path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file: each path is read more than once", path)
    encoded = path.encode() if sys.platform == "win32" else os.fsencode(path)
    checked(lib.cw_scan_add(handle, encoded, len(encoded), 1, *bounds))
    return path
