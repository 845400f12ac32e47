"""Store the line counts of a complete part in ``counted.json``, so opening a large session does not read its files.

A count is valid while its file has the same size and mtime, but only until the next boot: a power failure may lose data
without changing the file's size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, TypeAlias

import msgspec

from claude_wire_kit.supervisor.disk.files import open_private
from claude_wire_kit.supervisor.disk.record import boot_id

_NAME = "counted.json"
_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_Numbers: TypeAlias = Annotated[list[_Number], msgspec.Meta(min_length=1)]


class LineIndex(msgspec.Struct, array_like=True, frozen=True):
    """One file's line counts, with its size and mtime when the lines were counted.

    Attributes:
        size: the size of the file in bytes.
        modified: the file's mtime, in nanoseconds since 1970.
        count: the number of complete lines.
        end: the offset after the last complete line, in bytes.
        ordered, ordered_end: the number of lines with a row in ``order.jsonl``, and the offset after these lines.
        marks, offsets: the 0-based numbers of some lines, and their offsets.
    """

    size: int
    modified: int
    count: int
    end: int
    ordered: int
    ordered_end: int
    marks: _Numbers
    offsets: _Numbers

    def is_of(self, descriptor: int) -> bool:
        """Return True if an open file still has the size and mtime recorded in this index."""
        status = os.fstat(descriptor)
        return (status.st_size, status.st_mtime_ns) == (self.size, self.modified)


class _Index(msgspec.Struct, frozen=True):
    boot: str
    files: list[LineIndex]


def load(folder: str, count: int) -> list[LineIndex] | list[None]:
    """Return the stored indexes of a part's ``count`` files. If they are missing or outdated, return a list of None."""
    with suppress(OSError, ValueError):
        with open(os.path.join(folder, _NAME), "rb", opener=open_private) as file:
            index = msgspec.json.decode(file.read(), type=_Index)
        if index.boot and index.boot == boot_id() and len(index.files) == count:
            return index.files
    return [None] * count


def save(folder: str, files: Iterable[LineIndex]) -> None:
    """Store the indexes of a part's files. After a failed write, the next :class:`Part` counts the lines again."""
    with suppress(OSError), open(os.path.join(folder, _NAME), "wb", opener=open_private) as file:
        file.write(msgspec.json.encode(_Index(boot_id(), list(files))))
