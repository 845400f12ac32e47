# pyright: basic, reportMissingImports=false
# Dask and pandas need not be installed, and have few types.
"""A dataframe of Dask over lines: partitions are read by workers, and only in the columns that are used.

::

    from claude_wire.integrations.dask import dataframe

    dataframe("/home/user/.claude/projects", "blocks").groupby("tool_name").size().compute()
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from claude_wire.codec.kind_names import KindName
from claude_wire.codec.kinds import Kind
from claude_wire.columns import columns_of, scan
from claude_wire.columns.tables import TableName
from claude_wire.integrations.parts import PART_BYTES, Paths, parts, tell
from claude_wire.support.extras import install_extra

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

try:
    import pandas
    import pyarrow
    from dask.dataframe import from_map
except ModuleNotFoundError as _error:
    if _error.name not in ("dask", "pandas", "pyarrow"):
        raise
    _advice = f"claude_wire.integrations.dask needs Dask and its dataframes: {install_extra('dask')}"
    raise ImportError(_advice, name=_error.name) from _error

__all__ = ["dataframe"]


def dataframe(
    paths: Paths,
    table: TableName = "messages",
    columns: Iterable[str] | None = None,
    only: Iterable[KindName | Kind] | None = None,
    *,
    strict: bool = False,
    part_bytes: int = PART_BYTES,
) -> DataFrame:
    """A table of the lines in files and folders, as a dataframe of Dask. A worker reads a partition when it is needed.

    Its columns have the types of Arrow (``pandas.ArrowDtype``), so that a null is a null and the
    integer beside it an integer. Only the columns that the computation uses are read. The partitions are in the order
    of the files.

    Args:
        paths: files, and folders, of which all ``.jsonl`` files are taken. They mean the same for every worker.
        table, columns, only, strict: as for :func:`claude_wire.columns.scan`.
        part_bytes: bytes of the files that become a partition, at most. Small files share one.

    What does not fit its column is logged by the workers.

    Raises:
        OSError: there is no such file.
        ValueError: there is no such table, column or kind.
    """
    names = list(columns_of(table)) if columns is None else list(columns)
    options: dict[str, Any] = {"table": table, "only": None if only is None else list(only), "strict": strict}
    meta = _read(b"", names, **options)
    return from_map(_read, parts(paths, part_bytes), columns=names, meta=meta, label=table, **options)


def _read(source: Any, columns: list[str], table: TableName, only: Any, strict: bool) -> pandas.DataFrame:
    # To count rows, Dask asks for no column at all.
    found = scan(source, table, columns or columns_of(table)[:1], only, strict=strict)
    frame = pyarrow.table(found).to_pandas(types_mapper=pandas.ArrowDtype)
    tell(found)
    return frame[columns]
