"""The lines of a block, sorted by the type and the subtype that they claim to have.

What this module knows: how to talk to the native library, which finds and sorts them (rust/src/kinds/sort.rs).
What it must not know: messages.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

from claude_wire.limits import BLOCK_BYTES
from claude_wire.native.library import checked, ffi, lib

__all__ = ["Group", "Sorter"]

_HEAD = struct.Struct("@3Q")
_GROUP = struct.Struct("@6Q")


#: Lines that claim to be of one type and subtype: the contents of both strings in the first of them, still escaped; the
#: lines, with their line feeds; and how many they are.
Group: TypeAlias = tuple[tuple[bytes, bytes], memoryview, int]


class Sorter:
    """Sorts the lines of one block after another, in memory of its own: what it gives is good until the next block."""

    __slots__ = ("_groups", "_indexes", "_numbers", "_out", "_sorted", "_view", "groups", "picked", "rest")

    def __init__(self) -> None:
        self._out = ffi.new("uint8_t[]", BLOCK_BYTES)
        self._sorted = ffi.new("CwSorted *")
        self._numbers = ffi.buffer(self._sorted)
        self._indexes = memoryview(ffi.buffer(self._sorted.line)).cast("I")
        self._groups = memoryview(ffi.buffer(self._sorted.of))
        self._view = memoryview(ffi.buffer(self._out))
        #: The lines that were not picked, with their line feeds, in their order.
        self.rest: memoryview = self._view[:0]
        #: Those that were.
        self.groups: list[Group] = []
        #: Of each picked line the index in the block, in order, and the index of its group.
        self.picked: list[tuple[int, int]] = []

    def sort(self, data: bytes | memoryview, types: bytes) -> bool:
        """Pick the lines that claim to be of one of these types, which line feeds separate, and to have a subtype.

        ``data`` are complete lines, at most ``BLOCK_BYTES`` of them. Whether there are such lines.
        """
        source = data if type(data) is bytes else ffi.from_buffer("uint8_t[]", data)
        checked(lib.cw_sort_lines(source, len(data), types, len(types), self._out, self._sorted))
        at, picks, groups = _HEAD.unpack_from(self._numbers)
        if not picks:
            return False
        view = self._view
        self.rest = view[:at]
        self.groups = []
        for lines, size, type_, subtype, type_bytes, subtype_bytes in _GROUP.iter_unpack(
            self._numbers[_HEAD.size : _HEAD.size + groups * _GROUP.size]
        ):
            claim = bytes(data[type_ : type_ + type_bytes]), bytes(data[subtype : subtype + subtype_bytes])
            self.groups.append((claim, view[at : at + size], lines))
            at += size
        self.picked = list(zip(self._indexes[:picks].tolist(), self._groups[:picks].tolist(), strict=True))
        return True
