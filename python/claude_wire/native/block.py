"""The blocks of lines that :class:`~claude_wire.native.line_buffer.LineBuffer` returns."""

from __future__ import annotations

#: Successive lines of a stream, or the first bytes of a line above the limit: ``(data, offset, line_number, length)``.
#:
#: * ``data``: one line, or several lines of at most 64 KiB together, with their line feeds. For a line above the limit,
#:   its first 1024 bytes.
#: * ``offset``: the number of bytes of the stream before the first line, including a byte order mark.
#: * ``line_number``: the 1-based number of the first line. Blank, skipped and dropped lines count.
#: * ``length``: the length in bytes of a line above the limit, without its line feed; -1 otherwise.
Block = tuple[bytes | memoryview, int, int, int]


def bare_line(line: bytes) -> bytes:
    """Return a line without its line feed and one CR before it. Empty for a blank line: only spaces, tabs, CRs."""
    bare = line.removesuffix(b"\n").removesuffix(b"\r")
    return bare if bare.strip(b" \t\r") else b""


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
