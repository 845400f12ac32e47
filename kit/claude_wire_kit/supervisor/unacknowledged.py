"""Keep the lines that a supervisor has not acknowledged. After a lost connection, the client sends them again."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import msgspec

#: Maximum bytes in unacknowledged lines. Above this size, the session refuses prompts and requests. It still sends
#: answers, but does not keep them.
MAX_UNACKNOWLEDGED_BYTES = 64 * 1024 * 1024
#: Estimated memory of one entry, in bytes, without the line.
ENTRY_BYTES = 256


class _Said(msgspec.Struct):
    """The fields that identify a sent line."""

    type: str = ""
    uuid: Any = None
    request_id: Any = None


_decode_said = msgspec.json.Decoder(_Said).decode


class SentLine(NamedTuple):
    #: The 1-based number of the line in this connection.
    number: int
    #: The type of the line, such as ``user``.
    kind: str
    #: The uuid of a prompt, or the id of a request; else None.
    id: str | None
    #: A prompt or an answer, as sent. Empty for lines of other types: the client does not send them again.
    line: bytes

    @property
    def size(self) -> int:
        """The number of bytes that this line adds to the size limited by :data:`MAX_UNACKNOWLEDGED_BYTES`."""
        return len(self.line) + ENTRY_BYTES


class Unacknowledged:
    """The unacknowledged lines of one connection."""

    def __init__(self) -> None:
        self._count = 0
        self._bytes = 0
        self._sent: deque[SentLine] = deque()

    @property
    def lines(self) -> list[bytes]:
        """The prompts and answers, oldest first."""
        return [sent.line for sent in self._sent if sent.line]

    @property
    def size(self) -> int:
        """The total size of all kept lines, in bytes."""
        return self._bytes

    def has_room(self, line: bytes) -> bool:
        return self._bytes + len(line) + ENTRY_BYTES <= MAX_UNACKNOWLEDGED_BYTES

    def add(self, line: bytes) -> None:
        """Add a sent line. If there is no room, do not keep an answer: if it is lost, its question stays open."""
        self._count += 1
        said = _decode_said(line)
        is_answer = said.type == "control_response"
        id = said.uuid if said.type == "user" else said.request_id
        kept = line if is_answer or said.type == "user" else b""
        if not is_answer or self.has_room(line):
            sent = SentLine(self._count, said.type, id if isinstance(id, str) else None, kept)
            self._sent.append(sent)
            self._bytes += sent.size

    def settle(self, number: int) -> SentLine | None:
        """Remove all lines with at most this number, because the supervisor accepted or refused them. Return the line
        with exactly this number, or None if it was not kept.
        """
        last = None
        while self._sent and self._sent[0].number <= number:
            last = self._sent.popleft()
            self._bytes -= last.size
        return last if last is not None and last.number == number else None
