"""Read a file that is either the output of the CLI or a transcript on disk. The first lines show which one it is."""

from __future__ import annotations

from typing import Any

from claude_wire.codec.decoder import Decoder
from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.messages import InvalidLine, Message
from claude_wire.streams.read import Reader, Source
from claude_wire.transcripts.recognise import Head, LineDialect
from claude_wire.transcripts.records.base import Record


def decoder_for(dialect: LineDialect, **arguments: Any) -> Decoder[Any]:
    """Create a decoder for lines of this dialect, with the ``arguments`` of :class:`~claude_wire.Decoder`."""
    return Decoder(Record, **arguments) if dialect == "transcript" else Decoder(**arguments)


class LineReader(Reader[Record | Message | InvalidLine]):
    """A :class:`~claude_wire.streams.Reader` that detects what kind of file it reads. :func:`read` returns it.

    Attributes:
        dialect: ``"transcript"`` if the reader yields records, ``"stream"`` if it yields messages.
    """

    __slots__ = ("dialect",)

    def __init__(self, source: Source, max_line_bytes: int) -> None:
        super().__init__(source, decoder_for("stream", max_line_bytes=max_line_bytes))
        try:
            head, first = Head(max_line_bytes), b""
            while head.dialect is None:
                data = self._chunk()
                first = head.feed(data) if data else head.close()
            self.dialect: LineDialect = head.dialect
            if self.dialect == "transcript":
                self._decoder = decoder_for(self.dialect, max_line_bytes=max_line_bytes)
            self._ready.extend(self._decoder.feed(first))
        except BaseException:
            self.close()
            raise


def read(source: Source, *, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> LineReader:
    """Iterate over a transcript's records, or over the messages in the CLI's output, in constant memory.

    The result's ``dialect`` says which of the two the file is. The call reads the first lines to detect the dialect;
    the iteration reads the other lines. A line that is not one JSON object is an ``InvalidLine``, with its number and
    its offset.

    Args:
        source: a path, a binary file, or ``"-"`` for standard input.
        max_line_bytes: as for :class:`~claude_wire.Decoder`.

    Raises:
        OSError: the file cannot be opened or read.
        TypeError: the file is a text file.
    """
    return LineReader(source, max_line_bytes)
