"""Remove duplicate rows from ``usage`` tables, to count each of the model's answers once."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Protocol, cast

from claude_wire.native.capsules import stream_capsule, stream_in
from claude_wire.native.library import checked, ffi, lib
from claude_wire.support.arguments import type_of


class ArrowStream(Protocol):
    """An object with an Arrow stream, such as a :class:`Scan`, a pyarrow table or a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class Combined:
    """The rows without duplicates, as an Arrow stream that may be read several times. :func:`combine` returns it."""

    __slots__ = ("__weakref__", "_finalize", "_handle")

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._finalize = weakref.finalize(self, lib.cw_combine_free, handle)

    def __repr__(self) -> str:
        return "<Combined usage>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule with an ``ArrowArrayStream``."""
        out = ffi.new("void **")
        checked(lib.cw_combine_stream(self._handle, out))
        return stream_capsule(out[0])


def combine(tables: ArrowStream | Iterable[ArrowStream]) -> Combined:
    """Keep one row for each of the model's answers, from the ``usage`` tables of any files.

    Rows with the same message id and request id are the same answer; so are rows without a message id that have the
    same ``uuid``. An answer has a row for each content block, rows from several files if the session was forked, and
    rows from both the stream and the transcript. The row to keep is:

    1. from a transcript, because a stream has only the few output tokens of the start;
    2. then an original, not a copy in a fork, which has a ``request_session_id``;
    3. then the last in the order of the tables.

    The tables need the columns ``message_id`` and ``request_id``, and for these rules ``source``,
    ``request_session_id`` and ``uuid``. All tables must have the same columns. They are kept in memory: about 0.3 KB a
    row with all columns, a tenth of that with only ids and counts.

    Raises:
        TypeError: a table has no Arrow stream.
        ValueError: a table lacks a column, differs from the first, or failed while it was read; or there is no table.
    """
    out = ffi.new("uint64_t *")
    checked(lib.cw_combine_new(out))
    combined = Combined(out[0])
    count = 0
    each = [tables] if hasattr(tables, "__arrow_c_stream__") else tables
    for table in cast("Iterable[ArrowStream]", each):
        if not hasattr(table, "__arrow_c_stream__"):
            raise TypeError(f"combine() takes Arrow streams, such as Scans, not {type_of(table)}")
        capsule = table.__arrow_c_stream__()
        _add(out[0], capsule)
        count += 1
    if not count:
        raise ValueError("combine() needs at least one table")
    return combined


def _add(handle: int, capsule: object) -> None:
    error = ffi.new("uint8_t[]", 1024)
    status = lib.cw_combine_add(handle, stream_in(capsule), error, len(error))
    if status == lib.CW_ERROR_SYSTEM:
        text = bytes(ffi.buffer(error)).rstrip(b"\0").decode("utf-8", "replace")
        raise ValueError(f"combine() cannot take a table: {text}")
    checked(status)
