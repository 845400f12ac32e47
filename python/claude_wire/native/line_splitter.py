"""Split a stream into lines, as bytes. :mod:`claude_wire.native.line_buffer` describes where a line ends."""

from __future__ import annotations

from collections import deque
from io import BytesIO
from typing import TYPE_CHECKING

from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.native.block import Block, bare_line
from claude_wire.native.functions import functions_if_any
from claude_wire.native.line_buffer import LineBuffer
from claude_wire.support.errors import HandleError, LineTooLongError

if TYPE_CHECKING:
    from typing_extensions import Self


class LineSplitter:
    """Splits a stream of bytes into lines, only at 0x0A.

    Args:
        max_line_bytes: the limit for a line, in bytes without its line feed. A longer line is dropped while it arrives.
        keepends: if false, remove the line feed of each line and one CR before it, and skip a byte order mark at the
            start of the stream and blank lines (only spaces, tabs and CRs). If true, keep every byte: the lines
            together are the input.

    Only one thread at a time may use a splitter, and only the process that created it; otherwise any method raises
    :class:`HandleError`. The end of a ``with`` block, or the garbage collector, frees its native memory.
    """

    __slots__ = ("_buffer", "_busy", "_keepends", "_lines", "_long")

    def __init__(self, *, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES, keepends: bool = False) -> None:
        self._buffer = LineBuffer(max_line_bytes, keep_bom=keepends)
        self._keepends = keepends
        # Lines that were split but not returned yet. `_long`: each line above the limit, with the lines before it.
        # `_lines`: the lines after the last line above the limit.
        self._long: deque[tuple[list[bytes], Block]] = deque()
        self._lines: list[bytes] = []
        # True while a call uses the splitter.
        self._busy = False

    def __repr__(self) -> str:
        try:
            held = f"{self._buffer.stats().held:,} bytes of memory"
        except HandleError:
            held = "closed"
        return f"<LineSplitter{' with line feeds' if self._keepends else ''}: {held}>"

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """Take the next bytes of the stream, which may end anywhere, and return the lines that they complete.

        No thread may change ``data`` until this returns.

        After an exception, ``data`` still counts as taken: do not pass it again. (After a ``KeyboardInterrupt`` or a
        ``MemoryError`` the lines of ``data`` that were not split yet are lost.)

        Raises:
            LineTooLongError: a line is longer than ``max_line_bytes``. ``error.lines`` has the lines before it; the
                next call returns the lines after it.
            TypeError: ``data`` is not bytes.
            ValueError: ``data`` is a view with gaps.
            HandleError: another thread is using the splitter, it belongs to another process, or its ``with`` block is
                over.
        """
        return self._take(data)

    def close(self) -> list[bytes]:
        """End the stream, and return its last line if that line has no line feed, and lines that were not returned yet.

        The next bytes begin a new stream. Raises like :meth:`feed`; after :class:`LineTooLongError` call it again.
        """
        return self._take(b"", ending=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._buffer.free()

    def _take(self, data: bytes | bytearray | memoryview, *, ending: bool = False) -> list[bytes]:
        if self._busy:
            raise self._buffer.refusal()
        try:
            self._busy = True
            for block in self._buffer.close() if ending else self._buffer.feed(data):
                data, _, _, length = block
                if length >= 0:
                    self._long.append((self._lines, block))
                    self._lines = []
                else:
                    self._lines += _lines_with_ends(data) if self._keepends else _bare_lines(data)
            if self._long:
                before, (head, offset, line_number, length) = self._long.popleft()
                raise LineTooLongError(before, bytes(head), length, line_number, offset)
            lines = self._lines
            self._lines = []
            return lines
        finally:
            self._busy = False


def _lines_with_ends(block: bytes | memoryview) -> list[bytes]:
    return list(BytesIO(block))


def _bare_lines(block: bytes | memoryview) -> list[bytes]:
    return [bare for line in BytesIO(block) if (bare := bare_line(line))]


if not TYPE_CHECKING:
    # Splitting a block in Python takes three times as long.
    _lines_with_ends = functions_if_any().get("lines_with_ends", _lines_with_ends)
    _bare_lines = functions_if_any().get("bare_lines", _bare_lines)
