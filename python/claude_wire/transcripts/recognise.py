"""Detect from the first lines whether a stream is the CLI's output or a transcript on disk, without I/O.

A line is a record of a transcript if it has the envelope (``uuid`` and ``parentUuid``), or a type that only records
have.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeAlias

from claude_wire.codec.decoder import Decoder
from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.messages import InvalidLine
from claude_wire.messages.union import MESSAGES
from claude_wire.messages.vocabulary import vocabulary_of
from claude_wire.transcripts.records.base import Entry, Record

#: ``stream``: the CLI's output. ``transcript``: a session's file on disk.
LineDialect: TypeAlias = Literal["stream", "transcript"]

#: How many lines to examine. If these lines do not show the dialect, the stream counts as the CLI's output.
MAX_LINES = 64


@cache
def _types_without_envelope() -> frozenset[str]:
    types = vocabulary_of(Record).by_type
    return frozenset(type for type, cls in types.items() if not issubclass(cls, Entry)) - MESSAGES.names


def dialect_of(line: dict[str, Any]) -> LineDialect | None:
    """Return the dialect of a line's JSON object, or None if the object may be in either dialect.

    Only records have ``parentUuid`` and ``uuid``: a message never has ``parentUuid``.
    """
    type = line.get("type")
    if ("parentUuid" in line and "uuid" in line) or type in _types_without_envelope():
        return "transcript"
    return "stream" if type in MESSAGES.names else None


class Head:
    """Holds back the start of a stream until its dialect is known.

    Args:
        max_line_bytes: as for :class:`~claude_wire.Decoder`; also the limit for the bytes that are held back.

    Attributes:
        dialect: the stream's dialect; None until it is known.
    """

    def __init__(self, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self.dialect: LineDialect | None = None
        self._decoder = Decoder(dict, max_line_bytes=max_line_bytes)
        self._most_bytes = max_line_bytes
        self._held = bytearray()
        self._lines = 0

    def feed(self, data: bytes) -> bytes:
        """Add the next bytes. Return the bytes that can be decoded now; empty while the dialect is unknown."""
        if self.dialect is not None:
            return data
        self._held += data
        self._look(self._decoder.feed(data))
        if self.dialect is None and (self._lines >= MAX_LINES or len(self._held) > self._most_bytes):
            self.dialect = "stream"
        return self._let_go()

    def close(self) -> bytes:
        """End the stream. Return the bytes that were held back. Afterwards ``dialect`` is not None."""
        if self.dialect is None:
            self._look(self._decoder.close())
            self.dialect = self.dialect or "stream"
        return self._let_go()

    def _look(self, lines: list[dict[str, Any] | InvalidLine]) -> None:
        for line in lines:
            self._lines += 1
            if not isinstance(line, InvalidLine):
                self.dialect = self.dialect or dialect_of(line)

    def _let_go(self) -> bytes:
        if self.dialect is None:
            return b""
        held, self._held = bytes(self._held), bytearray()
        return held
