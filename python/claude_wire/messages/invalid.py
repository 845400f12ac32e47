"""What stands in the place of a line that is not one JSON object."""

from __future__ import annotations

from typing import Any

from claude_wire.messages._base import short_repr

__all__ = ["InvalidLine"]


class InvalidLine:
    """A line that is not one JSON object, in the place where its message would have been. Immutable.

    It is not a message and cannot be encoded; ``raw`` holds the bytes for who wants to keep or print them.

    Attributes:
        raw: the line's bytes without its line feed; of a line above ``max_line_bytes`` the first 1024.
        line_number: 1 for the stream's first line; blank lines count.
        offset: of the line's first byte in the stream, in bytes.
        reason: why, in English, without any of the line's content.
        length: the line's true length in bytes, without its line feed.
    """

    __slots__ = ("length", "line_number", "offset", "raw", "reason")

    raw: bytes
    line_number: int
    offset: int
    reason: str
    length: int

    def __init__(self, raw: bytes, line_number: int, offset: int, reason: str, length: int | None = None) -> None:
        values = (raw, line_number, offset, reason, len(raw) if length is None else length)
        for name, value in zip(("raw", "line_number", "offset", "reason", "length"), values, strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"immutable type: {type(self).__name__!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"immutable type: {type(self).__name__!r}")

    def _key(self) -> tuple[bytes, int, int, str, int]:
        return self.raw, self.line_number, self.offset, self.reason, self.length

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
