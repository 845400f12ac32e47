"""Split a stream into lines as bytes, without decoding, by the rules of :mod:`claude_wire.native.line_buffer`."""

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
        max_line_bytes: the limit for a line, in bytes without its line feed. A longer one is dropped in bounded memory.
        keepends: if false, lines come without line feed and without one CR before it, blank lines (nothing but spaces,
            tabs and CRs) are skipped, and so is a byte order mark at the start of the stream. If true, the output is
            byte for byte the input.

    A splitter belongs to one thread at a time and to the process that made it: any method raises :class:`HandleError`
    otherwise. As a context manager it frees its native memory at the end; else this happens when it is garbage
    collected.
    """

    __slots__ = ("_buffer", "_busy", "_keepends", "_lines", "_long")

    def __init__(self, *, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES, keepends: bool = False) -> None:
        self._buffer = LineBuffer(max_line_bytes, keep_bom=keepends)
        self._keepends = keepends
        # Lines that were split but not returned yet. `_long`: each line that was too long, with the lines before it.
        # `_lines`: the lines after the last such line.
        self._long: deque[tuple[list[bytes], Block]] = deque()
        self._lines: list[bytes] = []
        # True while a call uses the splitter, as in a Decoder.
        self._busy = False

    def __repr__(self) -> str:
        try:
            held = f"{self._buffer.stats().held:,} bytes of memory"
        except HandleError:
            held = "closed"
        return f"<LineSplitter{' with line feeds' if self._keepends else ''}: {held}>"

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """Take the next bytes of the stream, cut anywhere, and return the lines that they complete.

        ``data`` must not change until this returns: other threads run meanwhile.

        All of ``data`` is taken, also when an exception is raised: do not pass it again. (After a ``KeyboardInterrupt``
        or a ``MemoryError`` the lines of ``data`` that were not split yet are lost.)

        Raises:
            LineTooLongError: a line is above ``max_line_bytes``; the lines before it are in ``error.lines``, and
                the next call returns those after it.
            TypeError: ``data`` is not bytes.
            ValueError: ``data`` is a view with gaps.
            HandleError: the splitter is in use elsewhere, or was left as a context manager.
        """
        return self._take(data)

    def close(self) -> list[bytes]:
        """End the stream. Returns its last line if that has no line feed, and any lines that were held back.

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
