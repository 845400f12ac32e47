# pyright: basic, reportMissingImports=false
# polars need not be installed.
"""A LazyFrame of polars over lines: what a query does not use is not read.

::

    from claude_wire.integrations.polars import lazyframe

    lazyframe("/home/user/.claude/projects", "blocks").group_by("tool_name").len().collect()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from claude_wire.codec.kind_names import KindName
from claude_wire.codec.kinds import Kind
from claude_wire.columns import scan
from claude_wire.columns.tables import TableName
from claude_wire.integrations.parts import PART_BYTES, Paths, parts, tell
from claude_wire.support.extras import install_extra

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame

try:
    import polars
    from polars.io.plugins import register_io_source
except ModuleNotFoundError as _error:
    if _error.name != "polars":
        raise
    _advice = f"claude_wire.integrations.polars needs polars: {install_extra('polars')}"
    raise ImportError(_advice, name="polars") from _error

__all__ = ["lazyframe"]


def lazyframe(
    paths: Paths,
    table: TableName = "messages",
    columns: Iterable[str] | None = None,
    only: Iterable[KindName | Kind] | None = None,
    *,
    strict: bool = False,
    part_bytes: int = PART_BYTES,
) -> LazyFrame:
    """A table of the lines in files and folders, as a LazyFrame of polars. It reads when it is collected.

    Only the columns that the query uses are read, and after ``head`` no more parts than it takes. A predicate is
    applied to each part, so that no more than one part and what is left of the others is in memory.

    Args:
        paths: files, and folders, of which all ``.jsonl`` files are taken, each time when the frame is collected.
        table, columns, only, strict: as for :func:`claude_wire.columns.scan`.
        part_bytes: bytes of the files that are read at a time, at most.

    What does not fit its column is logged.

    Raises:
        ValueError: there is no such table, column or kind.
    """
    kinds = None if only is None else list(only)
    schema = polars.DataFrame(scan(b"", table, columns, kinds)).schema

    def read(
        with_columns: list[str] | None, predicate: Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[DataFrame]:
        wanted = list(schema) if with_columns is None else with_columns
        needed = wanted if predicate is None else [*dict.fromkeys([*wanted, *predicate.meta.root_names()])]
        for part in parts(paths, part_bytes):
            found = scan(part, table, needed, kinds, strict=strict)
            frame = polars.DataFrame(found)
            tell(found)
            if n_rows is not None:  # before the predicate
                frame = frame.head(n_rows)
                n_rows -= len(frame)
            yield (frame if predicate is None else frame.filter(predicate)).select(wanted)
            if n_rows == 0:
                return

    return register_io_source(read, schema=schema, validate_schema=True)
