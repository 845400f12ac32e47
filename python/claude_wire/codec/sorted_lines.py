"""Sort the lines of a block by type and subtype, with the native library (rust/src/kinds/sort.rs).

So all lines of one subtype can be decoded at once. The library does not check lines: the tags are only a claim.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

from claude_wire.limits import BLOCK_BYTES
from claude_wire.native.library import checked, ffi, lib

_HEAD = struct.Struct("@3Q")
_GROUP = struct.Struct("@6Q")


#: Lines that claim the same type and subtype: both tags as in the first line, still escaped; the lines, with their line
#: feeds; and their number.
Group: TypeAlias = tuple[tuple[bytes, bytes], memoryview, int]


class Sorter:
    """Sorts the lines of one block after another. The results are views of its memory, valid until the next block."""

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
        #: The picked lines, by type and subtype.
        self.groups: list[Group] = []
        #: For each picked line, in order: its index in the block, and the index of its group.
        self.picked: list[tuple[int, int]] = []

    def sort(self, data: bytes | memoryview, types: bytes) -> bool:
        """Pick the lines that claim one of these types, and a subtype. Returns False if there are none.

        Args:
            data: complete lines, at most ``BLOCK_BYTES`` bytes.
            types: names of types, separated by line feeds.
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
