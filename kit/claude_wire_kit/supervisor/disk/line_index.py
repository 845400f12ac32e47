"""Line counts of a finished part, in ``counted.json``. With them a large session is opened without being read.

The numbers hold as long as a file has the same size and time of change, and until the machine is restarted: a loss of
power may take written data and leave the size.
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
    """The line count of one file, and the state of the file that it holds for.

    Attributes:
        size: the size of the file in bytes.
        modified: when it was last written, in nanoseconds since 1970.
        count: the number of complete lines.
        end: the offset after the last complete line.
        ordered, ordered_end: the same for the lines whose order is written.
        marks, offsets: the numbers of some lines, and their offsets.
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
        """Return True if an open file is still in the state that this count holds for."""
        status = os.fstat(descriptor)
        return (status.st_size, status.st_mtime_ns) == (self.size, self.modified)


class _Index(msgspec.Struct, frozen=True):
    boot: str
    files: list[LineIndex]


def load(folder: str, count: int) -> list[LineIndex] | list[None]:
    """Return the counts of a part's files, or None for each of them."""
    with suppress(OSError, ValueError):
        with open(open_private(os.path.join(folder, _NAME), os.O_RDONLY), "rb") as file:
            index = msgspec.json.decode(file.read(), type=_Index)
        if index.boot and index.boot == boot_id() and len(index.files) == count:
            return index.files
    return [None] * count


def save(folder: str, files: Iterable[LineIndex]) -> None:
    """Store the counts of a part. If that fails, the lines are counted again the next time."""
    with suppress(OSError):
        descriptor = open_private(os.path.join(folder, _NAME), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(_Index(boot_id(), list(files))))
