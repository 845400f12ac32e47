"""Read a stream's lines before its decoder does, because a session must find the CLI's requests early."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from claude_wire.codec.lines import Lines
from claude_wire.codec.objects import BadLine
from claude_wire.errors import LineTooLongError
from claude_wire.native.line_splitter import LineSplitter

T = TypeVar("T")


class Follower(Generic[T]):
    """Splits and decodes a stream's next lines before its decoder does. ``Decoder.follower()`` creates it."""

    def __init__(self, splitter: LineSplitter, lines: Lines) -> None:
        self._splitter = splitter
        self._lines = lines
        #: The number of lines that :meth:`feed` omitted because they are too long.
        self.long_lines: int = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Split the next bytes of the stream, ``b""`` at its end, and return the lines that they complete.

        The lines have no line ends. Blank lines, and lines that are too long, are omitted.
        """
        lines: list[bytes] = []
        is_end = not data
        while True:
            try:
                return lines + (self._splitter.close() if is_end else self._splitter.feed(data))
            except LineTooLongError as error:
                lines += error.lines
                self.long_lines += 1
                data = b""  # the next call returns the lines after the long one

    def control(self, lines: Sequence[bytes]) -> Iterator[T]:
        """Yield the messages of the lines that may be control messages."""
        for line in lines:
            if b"control_" in line or b"\\u" in line:  # the tag may have escapes
                message = self.decode(line)
                if message is not None:
                    yield message

    def decode(self, line: bytes) -> T | None:
        """Return the message that the decoder will return for the line, or None if the line is invalid."""
        try:
            message: T = self._lines.line(line)
        except BadLine:
            return None
        return message
