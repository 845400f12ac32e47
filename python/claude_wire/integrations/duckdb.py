# pyright: basic, reportMissingImports=false
# DuckDB need not be installed.
"""A relation of DuckDB over lines, which SQL knows by its name.

::

    import duckdb
    from claude_wire.integrations.duckdb import register

    connection = duckdb.connect()
    register(connection, "/home/user/.claude/projects", "blocks")
    connection.sql("select tool_name, count(*) from blocks group by all").show()
"""

from __future__ import annotations

from collections.abc import Iterable

from claude_wire.codec.kind_names import KindName
from claude_wire.codec.kinds import Kind
from claude_wire.columns import scan
from claude_wire.columns.tables import TableName
from claude_wire.integrations.parts import Paths, files
from claude_wire.support.extras import install_extra

try:
    import duckdb
except ModuleNotFoundError as _error:
    if _error.name != "duckdb":
        raise
    _advice = f"claude_wire.integrations.duckdb needs duckdb: {install_extra('duckdb')}"
    raise ImportError(_advice, name="duckdb") from _error

__all__ = ["register"]


def register(
    connection: duckdb.DuckDBPyConnection,
    paths: Paths,
    table: TableName = "messages",
    columns: Iterable[str] | None = None,
    only: Iterable[KindName | Kind] | None = None,
    *,
    name: str | None = None,
    strict: bool = False,
) -> duckdb.DuckDBPyRelation:
    """A table of the lines in files and folders, as a view of a connection. Each query reads the lines anew.

    DuckDB asks for all columns of a stream: those that no query uses are read, too, unless ``columns`` leaves them out.
    It cannot tell what did not fit its column: for that register a :class:`claude_wire.columns.Scan` of your own, and
    look at its ``report`` after a query.

    Args:
        connection: a connection of DuckDB, to which the view belongs.
        paths: files, and folders, of which all ``.jsonl`` files are taken now.
        table, columns, only, strict: as for :func:`claude_wire.columns.scan`.
        name: name of the view; the table's if None.

    Raises:
        OSError: there is no such file.
        ValueError: there is no such table, column or kind.
    """
    view = table if name is None else name
    connection.register(view, scan(files(paths), table, columns, only, strict=strict))
    return connection.view(view)
