"""What was counted in the files of a part that is done: ``counted.json`` beside them, so that nobody counts them again.

Knows numbers and when they hold; not what is counted. A large session is opened without being read by that. The numbers
hold while a file has the size and the time that it had, and until the machine is started again: a loss of power may
take what was written, and leave the size.
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
    """What was counted in one file, and which state of the file that was.

    Attributes:
        size: its bytes.
        modified: when it was last written, in nanoseconds since 1970.
        count: lines that are complete.
        end: the offset behind the last of them.
        ordered, ordered_end: the same for those whose order is written.
        marks, offsets: numbers of some lines, and where they begin.
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
        """Whether this was counted in an open file, as that is now."""
        status = os.fstat(descriptor)
        return (status.st_size, status.st_mtime_ns) == (self.size, self.modified)


class _Index(msgspec.Struct, frozen=True):
    boot: str
    files: list[LineIndex]


def load(folder: str, count: int) -> list[LineIndex] | list[None]:
    """What was counted in the files of a part; None for each of them if that is not known."""
    with suppress(OSError, ValueError):
        with open(open_private(os.path.join(folder, _NAME), os.O_RDONLY), "rb") as file:
            index = msgspec.json.decode(file.read(), type=_Index)
        if index.boot and index.boot == boot_id() and len(index.files) == count:
            return index.files
    return [None] * count


def save(folder: str, files: Iterable[LineIndex]) -> None:
    """Note what was counted. What cannot be written is counted again."""
    with suppress(OSError):
        descriptor = open_private(os.path.join(folder, _NAME), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(_Index(boot_id(), list(files))))
