"""What a stream of lines is, by its first lines: what the CLI writes to its output, or what it keeps on disk.

Sans-IO. Nothing is guessed: a line is a record of a transcript if it has the envelope, or a type that only records
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

__all__ = ["Head", "LineDialect", "dialect_of"]

#: ``stream`` is what the CLI writes to its output, ``transcript`` what it keeps on disk.
LineDialect: TypeAlias = Literal["stream", "transcript"]

#: A stream is one of messages if none of so many lines says what it is.
MAX_LINES = 64


@cache
def _types_without_envelope() -> frozenset[str]:
    types = vocabulary_of(Record).by_type
    return frozenset(type for type, cls in types.items() if not issubclass(cls, Entry)) - MESSAGES.names


def dialect_of(line: dict[str, Any]) -> LineDialect | None:
    """What the object of a line says of its stream; None for one that either may have.

    ``parentUuid`` and ``uuid`` make an envelope: no message has the former.
    """
    type = line.get("type")
    if ("parentUuid" in line and "uuid" in line) or type in _types_without_envelope():
        return "transcript"
    return "stream" if type in MESSAGES.names else None


class Head:
    """The start of a stream, which is held back until its lines say what they are.

    Args:
        max_line_bytes: as for :class:`~claude_wire.Decoder`; about as much is held back at most.

    Attributes:
        dialect: what the stream is, or None as long as that is not known.
    """

    def __init__(self, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self.dialect: LineDialect | None = None
        self._decoder = Decoder(dict, max_line_bytes=max_line_bytes)
        self._most_bytes = max_line_bytes
        self._held = bytearray()
        self._lines = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes. Returns those that can be decoded now: none as long as the dialect is not known."""
        if self.dialect is not None:
            return data
        self._held += data
        self._look(self._decoder.feed(data))
        if self.dialect is None and (self._lines >= MAX_LINES or len(self._held) > self._most_bytes):
            self.dialect = "stream"
        return self._let_go()

    def close(self) -> bytes:
        """End the stream. Returns the bytes that were still held back; ``dialect`` is known now."""
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
