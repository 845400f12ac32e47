"""Blocks of complete lines, and functions to split them."""

from __future__ import annotations

from typing import NamedTuple, final

from claude_wire.native.library import checked, ffi, lib


@final
class Block(NamedTuple):
    """Successive complete lines of the stream."""

    #: The lines with their line feeds. This is the caller's ``bytes`` object if the lines are all of it, else a view of
    #: the caller's memory; or a view of native memory, which is released after the block is handled.
    data: bytes | memoryview
    #: The number of lines, at least 1.
    lines: int
    #: True if every line begins with ``{`` and ends with ``}`` (one CR may follow) and everything is UTF-8. If a JSON
    #: parser then reads as many values as there are lines, each line is one object.
    clean: bool
    #: Bytes of the stream before the block, including a byte order mark.
    offset: int
    #: The number of its first line. The first line of the stream is 1; blank and dropped lines count.
    line_number: int
    #: False only for a last line without line feed.
    terminated: bool
    #: True if a filter has chosen these lines. Then lines between them may be missing, and :meth:`LineBuffer.places`
    #: returns the place of each. ``offset`` and ``line_number`` are those of the first line.
    filtered: bool = False


@final
class LongLine(NamedTuple):
    """A line above the limit, which was dropped."""

    #: Its first bytes, at most 1024.
    head: bytes
    #: Its length in bytes, without the line feed.
    length: int
    #: Bytes of the stream before it.
    offset: int
    #: Its number in the stream, from 1.
    line_number: int


def split_lines(data: bytes) -> list[bytes]:
    """Split into lines without line feeds. Text after the last line feed is also a line."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def bare_line(line: bytes) -> bytes:
    """Return a line without its line feed and one CR before it. Empty for a blank line: only spaces, tabs, CRs."""
    bare = line.removesuffix(b"\n").removesuffix(b"\r")
    return bare if bare.strip(b" \t\r") else b""


def line_starts(block: bytes | memoryview, count: int) -> list[int]:
    """Return the offsets of the ``count`` lines of a block, and of its end. About 28 ns a line."""
    starts = ffi.new("uint64_t[]", count)
    source = block if type(block) is bytes else ffi.from_buffer("uint8_t[]", block)
    checked(lib.cw_line_starts(source, len(block), starts, count))
    return [*ffi.unpack(starts, count), len(block)]


def byte_view(data: bytes | bytearray | memoryview, taker: str = "feed()") -> memoryview:
    """Return a view of the bytes of ``data``, without a copy. ``taker`` is the caller's name for error messages."""
    if isinstance(data, str):
        raise TypeError(f"{taker} takes bytes, not str; encode it as UTF-8 first")
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"{taker} takes bytes, bytearray or memoryview, not {type(data).__name__}") from None
    if not view.nbytes:
        return memoryview(b"")
    if not view.c_contiguous:
        raise ValueError(f"{taker} takes contiguous memory; copy the view with bytes() first")
    return view.cast("B")
