"""Count a stream's lines by kind, and find invalid lines and everything unknown.

This module does no input or output: it takes bytes and returns counts. Memory does not grow with the stream, because
the number of kinds is fixed, and at most :data:`MAX_FINDINGS` different unknown things are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from claude_wire import Decoder, LineSplitter, decode
from claude_wire.errors import InvalidLineError, LineTooLongError
from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.messages import ControlRequest, ControlResponse, InvalidLine, Message
from claude_wire.transcripts import LineDialect, Record
from claude_wire.transcripts.read import decoder_for
from claude_wire.transcripts.recognise import dialect_of
from claude_wire_kit.events.names import message_name
from claude_wire_kit.survey.answers import Requests
from claude_wire_kit.survey.fields import Finding, found_in

#: At most this many different unknown things are listed. Others are only counted, because every line of a file may have
#: a new one.
MAX_FINDINGS = 1000

_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Seen(NamedTuple):
    """How many times something was found, and where it was found first."""

    times: int
    source: str
    line_number: int


@dataclass
class Summary:
    """What one or several streams contain."""

    #: The number of bytes, including line feeds.
    bytes: int = 0
    #: The number of lines with one JSON object, of a known or an unknown type.
    messages: int = 0
    #: The number of lines that are neither blank nor one JSON object.
    invalid: int = 0
    #: The number of messages of each kind, by its :func:`~claude_wire_kit.events.names.message_name`.
    kinds: Counter[str] = field(default_factory=lambda: Counter[str]())
    #: Everything unknown.
    findings: dict[Finding, Seen] = field(default_factory=lambda: dict[Finding, Seen]())
    #: How many times something unknown was found that is not in ``findings``, because the list is full.
    more: int = 0

    @property
    def lines(self) -> int:
        """Return the number of lines that are not blank."""
        return self.messages + self.invalid

    def found(self, finding: Finding, seen: Seen) -> None:
        """Count something unknown."""
        before = self.findings.get(finding)
        if before is not None:
            self.findings[finding] = before._replace(times=before.times + seen.times)
        elif len(self.findings) < MAX_FINDINGS:
            self.findings[finding] = seen
        else:
            self.more += seen.times

    def add(self, other: Summary) -> None:
        """Add the summary of a later stream."""
        self.bytes += other.bytes
        self.messages += other.messages
        self.invalid += other.invalid
        self.kinds += other.kinds
        self.more += other.more
        for finding, seen in other.findings.items():
            self.found(finding, seen)


class Survey:
    """Counts the lines in a stream, which is fed in pieces of any size.

    Args:
        source: the stream's name, for :class:`Seen`.
        on_invalid: called with each line that is not one JSON object, in order. These lines are not kept.
        max_line_bytes: as for :class:`~claude_wire.Decoder`.

    Attributes:
        dialect: whether the lines are from a stream or a transcript. None until a line shows which.
    """

    def __init__(
        self,
        source: str,
        on_invalid: Callable[[InvalidLine], object],
        max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
    ) -> None:
        self.dialect: LineDialect | None = None
        self._max_line_bytes = max_line_bytes
        self._summary = Summary()
        self._source = source
        self._on_invalid = on_invalid
        # Each line is decoded twice, to a message and to a dict, to compare the two. Each of these decoders returns one
        # value for each line that is not blank. Lines are split first, because decoders do not number messages.
        self._splitter = LineSplitter(max_line_bytes=max_line_bytes, keepends=True)
        self._messages = decoder_for("stream", max_line_bytes=max_line_bytes)
        self._objects = Decoder(dict, max_line_bytes=max_line_bytes)
        self._requests = Requests()
        self._line_number = 0
        # The number of bytes in lines that `_messages` did not get: too long, or read by the previous decoder.
        self._long_bytes = 0

    def feed(self, data: bytes) -> None:
        """Count the lines in the next bytes of the stream."""
        self._summary.bytes += len(data)
        self._take(partial(self._splitter.feed, data))

    def sent(self, line: bytes) -> None:
        """Read a line sent in the other direction. It is not counted, but later lines may answer a request in it."""
        with suppress(InvalidLineError):
            message = decode(line)
            if isinstance(message, ControlRequest):
                self._requests.note(message)

    def close(self) -> Summary:
        """End the stream, and return what it contained."""
        self._take(self._splitter.close)
        return self._summary

    def _take(self, split: Callable[[], list[bytes]]) -> None:
        """Call the splitter, and count, in order, the lines that it returns and lines that are too long."""
        while True:
            try:
                lines = split()
            except LineTooLongError as long:
                self._count_lines(long.lines)
                self._count_long(long)
                split = partial(self._splitter.feed, b"")
            else:
                self._count_lines(lines)
                return

    def _count_long(self, long: LineTooLongError) -> None:
        self._line_number += 1
        self._long_bytes += long.length + 1
        reason = "longer than max_line_bytes"
        self._count_invalid(InvalidLine(long.head, long.line_number, long.offset, reason, long.length, "too_long"))

    def _count_lines(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        objects = self._objects.feed(data)
        if self.dialect is None:
            self._recognise(objects)
        messages = self._messages.feed(data)
        if data and not data.endswith(b"\n"):
            messages += self._messages.close()
            objects += self._objects.close()
        for number, message, plain in zip(self._numbers(lines), messages, objects, strict=True):
            if isinstance(message, InvalidLine):
                offset = message.offset + self._long_bytes
                self._count_invalid(InvalidLine(message.raw, number, offset, message.reason, kind=message.kind))
            elif not isinstance(plain, InvalidLine):  # always true, because every message is an object
                self._count_message(message, plain, number)

    def _recognise(self, objects: list[dict[str, Any] | InvalidLine]) -> None:
        for line in objects:
            if self.dialect is None and not isinstance(line, InvalidLine):
                self.dialect = dialect_of(line)
        if self.dialect == "transcript":
            self._long_bytes += self._messages.stats.bytes
            self._messages = decoder_for("transcript", max_line_bytes=self._max_line_bytes)

    def _numbers(self, lines: list[bytes]) -> Iterator[int]:
        """Yield the numbers of the lines that are not blank."""
        for line in lines:
            self._line_number += 1
            if self._line_number == 1:
                line = line.removeprefix(_BOM)
            if line.strip(_BLANK):
                yield self._line_number

    def _count_invalid(self, line: InvalidLine) -> None:
        self._summary.invalid += 1
        self._on_invalid(line)

    def _count_message(self, message: Message | Record, plain: dict[str, Any], number: int) -> None:
        summary = self._summary
        summary.messages += 1
        summary.kinds[message_name(message)] += 1
        if isinstance(message, ControlRequest):
            self._requests.note(message)
        unknown = found_in(plain, message)
        if isinstance(message, ControlResponse):
            unknown = chain(unknown, self._requests.find_unknown(message))
        for found in unknown:
            summary.found(found.finding, Seen(1, self._source, number))
