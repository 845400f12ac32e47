"""Every exception that this package raises on purpose.

    ClaudeWireError
    ├── InvalidLineError (ValueError)   a line that is not one JSON object
    ├── LineTooLongError (ValueError)   a line above ``max_line_bytes`` (LineSplitter only)
    ├── EncodeError (ValueError)        a value that JSON cannot carry
    ├── PayloadError (ValueError)       an answer that does not fit the request it answers
    └── HandleError (RuntimeError)      an object used by two threads at once, after its end, or in a forked child

A wrong argument (a ``str`` where bytes belong, an unknown option) is an ordinary ``TypeError`` or ``ValueError``.

No bytes of a line are ever in ``str(error)`` or ``repr(error)``: lines carry prompts and secrets, and errors go to
logs. They are in attributes, for the caller who wants them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from claude_wire.messages import InvalidLine

__all__ = [
    "ClaudeWireError",
    "EncodeError",
    "HandleError",
    "InvalidLineError",
    "LineTooLongError",
    "PayloadError",
]


class ClaudeWireError(Exception):
    """The root of every exception of this package."""


class InvalidLineError(ClaudeWireError, ValueError):
    """A line is not one JSON object, and the caller asked for an exception.

    Attributes:
        line: the :class:`~claude_wire.InvalidLine`, with its bytes, number, offset and reason.
        messages: what the same call had decoded before it, in order; none from ``read()``, which yields them first.
            What comes after it is not lost: the next call of ``feed`` or ``close`` returns it.
    """

    def __init__(self, line: InvalidLine, messages: list[Any] | None = None) -> None:
        super().__init__(f"line {line.line_number} at byte {line.offset} is not one JSON object: {line.reason}")
        self.line = line
        self.messages: list[Any] = [] if messages is None else messages

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.line, self.messages)


class LineTooLongError(ClaudeWireError, ValueError):
    """A line was longer than ``max_line_bytes`` and was dropped.

    Attributes:
        lines: what the same call had split before it, in order. What comes after it is returned by the next call.
        head: the first bytes of the line, at most 1024.
        length: the line's true length in bytes, without its line feed.
        line_number: 1 for the stream's first line.
        offset: of the line's first byte in the stream, in bytes.
    """

    def __init__(self, lines: list[bytes], head: bytes, length: int, line_number: int, offset: int) -> None:
        super().__init__(f"line {line_number} at byte {offset} is {length} bytes long, above max_line_bytes")
        self.lines = lines
        self.head = head
        self.length = length
        self.line_number = line_number
        self.offset = offset

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.lines, self.head, self.length, self.line_number, self.offset)


class EncodeError(ClaudeWireError, ValueError):
    """A message holds a value that JSON has no form for, such as an object of a foreign class."""


class PayloadError(ClaudeWireError, ValueError):
    """The payload of a control response does not fit the request that it answers.

    Attributes:
        payload: what came instead, as plain Python objects.
    """

    def __init__(self, message: str, payload: Any = None) -> None:
        super().__init__(message)
        self.payload = payload

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.payload)


class HandleError(ClaudeWireError, RuntimeError):
    """A decoder or splitter was used by two threads at once, after it was closed, or in a forked child.

    Each belongs to one thread at a time and to the process that made it; make a new one per stream.
    """
