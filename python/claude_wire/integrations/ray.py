# pyright: basic, reportMissingImports=false
# Ray and pyarrow need not be installed, and have few types.
"""A dataset of Ray Data over lines, which tasks read.

::

    from claude_wire.integrations.ray import dataset

    dataset("/home/user/.claude/projects", "blocks", ["tool_name"]).groupby("tool_name").count().show()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from claude_wire.codec.kind_names import KindName
from claude_wire.codec.kinds import Kind
from claude_wire.columns import Range, scan
from claude_wire.columns.tables import TableName
from claude_wire.integrations.parts import PART_BYTES, Paths, parts, tell
from claude_wire.moved import place
from claude_wire.support.extras import install_extra

if TYPE_CHECKING:
    from ray.data import Dataset

try:
    import pyarrow
    from ray.data import Datasource, ReadTask, read_datasource
    from ray.data.block import BlockMetadata
except ModuleNotFoundError as _error:
    if _error.name not in ("ray", "pyarrow"):
        raise
    _advice = f"claude_wire.integrations.ray needs Ray Data: {install_extra('ray')}"
    raise ImportError(_advice, name=_error.name) from _error

__all__ = ["dataset"]


def dataset(
    paths: Paths,
    table: TableName = "messages",
    columns: Iterable[str] | None = None,
    only: Iterable[KindName | Kind] | None = None,
    *,
    strict: bool = False,
    part_bytes: int = PART_BYTES,
    **options: Any,
) -> Dataset:
    """A table of the lines in files and folders, as a dataset of Ray Data. Its tasks read a part each.

    Args:
        paths: files, and folders, of which all ``.jsonl`` files are taken. They mean the same on every machine.
        table, columns, only, strict: as for :func:`claude_wire.columns.scan`. Ray Data asks for no columns: those that
            are not given here are not read.
        part_bytes: bytes of the files that a task reads, at most. It keeps about as much in memory.
        options: those of ``ray.data.read_datasource``, such as ``concurrency``.

    What does not fit its column is logged by the tasks. Ray Data returns blocks in the order in which tasks end, unless
    its ``preserve_order`` is set; :func:`claude_wire.columns.usage.combine` needs the order of the files.

    Raises:
        OSError: there is no such file.
        ValueError: there is no such table, column or kind.
    """
    kinds = None if only is None else list(only)
    names = scan(b"", table, columns, kinds).columns

    def read(part: list[Range]) -> Iterator[pyarrow.Table]:
        found = scan(part, table, names, kinds, strict=strict)
        yield pyarrow.table(found)
        tell(found)

    return read_datasource(_Lines(parts(paths, part_bytes), read), **options)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{place(f'integrations.ray.{name}')}")


class _Lines(Datasource):
    def __init__(self, planned: list[list[Range]], read: Callable[[list[Range]], Iterator[pyarrow.Table]]) -> None:
        super().__init__()
        self._parts = planned
        self._read = read

    def estimate_inmemory_data_size(self) -> int:
        return sum(map(_size, self._parts))

    def get_read_tasks(self, parallelism: int, *limits: Any, **more: Any) -> list[ReadTask]:
        tasks: list[ReadTask] = []
        for part in self._parts:
            size, names = _size(part), tuple(one.path for one in part)
            metadata = BlockMetadata(num_rows=None, size_bytes=size, exec_stats=None, input_files=names)
            tasks.append(ReadTask(partial(self._read, part), metadata))
        return tasks


def _size(part: list[Range]) -> int:
    return sum(one.stop - one.start for one in part)
