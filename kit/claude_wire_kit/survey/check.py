"""Count the lines of a stream: by kind, the invalid ones, and everything unknown in them.

Sans-IO: bytes go in, counts come out. Memory does not grow with the stream: the number of kinds is fixed, and at most
:data:`MAX_FINDINGS` different unknown things are listed.
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

#: At most this many different unknown things are listed. Others are only counted, because a file may have a new name on
#: every line.
MAX_FINDINGS = 1000

_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Seen(NamedTuple):
    """How often a thing came, and where it came first."""

    times: int
    source: str
    line_number: int


@dataclass
class Summary:
    """What one or several streams contain."""

    #: Bytes, line feeds included.
    bytes: int = 0
    #: Lines that are one JSON object, of a known type or not.
    messages: int = 0
    #: Lines that are not one JSON object.
    invalid: int = 0
    #: Messages by their name from :func:`~claude_wire_kit.events.names.message_name`.
    kinds: Counter[str] = field(default_factory=lambda: Counter[str]())
    #: Everything unknown, with its count.
    findings: dict[Finding, Seen] = field(default_factory=lambda: dict[Finding, Seen]())
    #: How many findings are not listed, because :data:`MAX_FINDINGS` others are.
    more: int = 0

    @property
    def lines(self) -> int:
        """Return the number of lines that are not blank."""
        return self.messages + self.invalid

    def found(self, finding: Finding, seen: Seen) -> None:
        """Count a finding, and keep where it came first."""
        before = self.findings.get(finding)
        if before is not None:
            self.findings[finding] = before._replace(times=before.times + seen.times)
        elif len(self.findings) < MAX_FINDINGS:
            self.findings[finding] = seen
        else:
            self.more += seen.times

    def add(self, other: Summary) -> None:
        """Add the contents of a stream that came after this one."""
        self.bytes += other.bytes
        self.messages += other.messages
        self.invalid += other.invalid
        self.kinds += other.kinds
        self.more += other.more
        for finding, seen in other.findings.items():
            self.found(finding, seen)


class Survey:
    """Takes a stream in chunks, and counts its lines.

    Args:
        source: the stream's name, for :class:`Seen`.
        on_invalid: called with each line that is not one JSON object, in order. The survey does not keep these lines.
        max_line_bytes: as for :class:`~claude_wire.Decoder`.

    Attributes:
        dialect: what the lines are, as soon as a line shows it.
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
        # Each line is needed as a message, as a plain object, and with its number, which decoders do not have. So lines
        # are split first. Both decoders return one value for each line that is not blank.
        self._splitter = LineSplitter(max_line_bytes=max_line_bytes, keepends=True)
        self._messages = decoder_for("stream", max_line_bytes=max_line_bytes)
        self._objects = Decoder(dict, max_line_bytes=max_line_bytes)
        self._requests = Requests()
        self._line_number = 0
        # Bytes that the message decoder did not get: lines above the limit, and lines that another decoder took.
        self._long_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._summary.bytes += len(data)
        self._take(partial(self._splitter.feed, data))

    def sent(self, line: bytes) -> None:
        """Take a line of the other direction. It is not counted, but it shows what later answers belong to."""
        with suppress(InvalidLineError):
            message = decode(line)
            if isinstance(message, ControlRequest):
                self._requests.note(message)

    def close(self) -> Summary:
        """End the stream, and return what it contained."""
        self._take(self._splitter.close)
        return self._summary

    def _take(self, split: Callable[[], list[bytes]]) -> None:
        """Call the splitter, and count the lines that it completes. A line above the limit is counted at its place."""
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
            elif not isinstance(plain, InvalidLine):  # what is a message is an object, too
                self._count_message(message, plain, number)

    def _recognise(self, objects: list[dict[str, Any] | InvalidLine]) -> None:
        for line in objects:
            if self.dialect is None and not isinstance(line, InvalidLine):
                self.dialect = dialect_of(line)
        if self.dialect == "transcript":
            self._long_bytes += self._messages.stats.bytes
            self._messages = decoder_for("transcript", max_line_bytes=self._max_line_bytes)

    def _numbers(self, lines: list[bytes]) -> Iterator[int]:
        """Yield the line numbers of those lines that are not blank."""
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
