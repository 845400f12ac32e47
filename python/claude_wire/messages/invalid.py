"""``InvalidLine``, which a decoder returns for a line that is not one JSON object, and ``InvalidLineError``."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from claude_wire.messages.base import short_repr
from claude_wire.support.errors import ClaudeWireError

InvalidKind: TypeAlias = Literal[
    "not_json",  # malformed JSON, NaN and infinities included
    "not_utf8",  # bytes that are not UTF-8
    "not_object",  # JSON, but a string, number, array, true or false
    "null",  # the JSON value null
    "number",  # a number out of range
    "too_deep",  # nested too deeply
    "tags",  # a tag of an object has two values
    "truncated",  # the stream ended in this line; the line may also be wrong in other ways
    "too_long",  # longer than max_line_bytes
    "no_memory",  # longer than the available memory
]


class InvalidLine:
    """A line that is not one JSON object. A decoder returns this instead of a message. Instances are immutable.

    An invalid line is not a message and cannot be encoded; ``raw`` has the bytes of the line.

    Attributes:
        raw: the line's bytes without its line feed; only the first 1024 bytes of a line longer than ``max_line_bytes``.
        line_number: 1 for the stream's first line; blank lines count.
        offset: the position of the line's first byte in the stream.
        reason: why the line is invalid, in English, without the line's content.
        length: the length of the whole line in bytes, without its line feed.
        kind: the reason as a word: ``not_json``, ``not_utf8``, ``not_object``, ``null``, ``number`` (out of range),
            ``too_deep``, ``tags`` (a tag has two values), ``truncated`` (the stream ended in the line), ``too_long`` or
            ``no_memory``.
    """

    # Not a Struct or a dataclass, because msgspec would encode it inside a dict.
    __slots__ = ("kind", "length", "line_number", "offset", "raw", "reason")

    raw: bytes
    line_number: int
    offset: int
    reason: str
    length: int
    kind: InvalidKind

    def __init__(
        self,
        raw: bytes,
        line_number: int,
        offset: int,
        reason: str,
        length: int | None = None,
        kind: InvalidKind = "not_json",
    ) -> None:
        values = (raw, line_number, offset, reason, len(raw) if length is None else length, kind)
        for name, value in zip(("raw", "line_number", "offset", "reason", "length", "kind"), values, strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"immutable type: {type(self).__name__!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"immutable type: {type(self).__name__!r}")

    def _key(self) -> tuple[bytes, int, int, str, int, InvalidKind]:
        return self.raw, self.line_number, self.offset, self.reason, self.length, self.kind

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, InvalidLine) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._key()

    def __repr__(self) -> str:
        return short_repr(
            type(self).__name__,
            [
                ("line_number", self.line_number),
                ("offset", self.offset),
                ("length", self.length),
                ("reason", self.reason),
            ],
        )


class InvalidLineError(ClaudeWireError, ValueError):
    """A line is not one JSON object, and the caller asked for an exception.

    Attributes:
        line: the :class:`~claude_wire.InvalidLine`, with its bytes, number, offset and reason.
        messages: the messages before this line in the same call; empty from ``read()``, which yields these messages
            first. The next call to ``feed`` or ``close`` returns the later messages.
    """

    def __init__(self, line: InvalidLine, messages: list[Any] | None = None) -> None:
        super().__init__(f"line {line.line_number} at byte {line.offset} is not one JSON object: {line.reason}")
        self.line = line
        self.messages: list[Any] = [] if messages is None else messages
