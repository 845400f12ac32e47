"""What a stream of lines holds: its kinds, its bad lines, and what no class knows.

Sans-IO: bytes go in, counts come out. Knows lines and messages; not files, nor how a count is printed. Its memory does
not grow with the stream: kinds are a fixed number, and of unknown things at most :data:`MOST_FINDINGS` are told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from claude_wire import Decoder, InvalidLineError, LineSplitter, LineTooLongError, decode
from claude_wire.cli.fields import Finding, find_unknown
from claude_wire.framing import DEFAULT_MAX_LINE_BYTES
from claude_wire.messages import (
    ContentBlockDeltaEvent,
    ControlRequest,
    ControlResponse,
    HookCallbackRequest,
    InvalidLine,
    Message,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    Unknown,
    UnknownMessage,
)
from claude_wire.messages._base import Wire

__all__ = ["MOST_FINDINGS", "Seen", "Summary", "Survey", "kind"]

#: At most this many different unknown things are listed; more are only counted. A file that makes up a new name on
#: every line is no protocol.
MOST_FINDINGS = 1000

_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Seen(NamedTuple):
    """How often a thing came, and where first."""

    times: int
    source: str
    line_number: int


@dataclass
class Summary:
    """What one stream holds, or several together."""

    #: Bytes, line feeds included.
    bytes: int = 0
    #: Lines that are one JSON object, known or not.
    messages: int = 0
    #: Lines that are not.
    invalid: int = 0
    #: Messages by kind, as :func:`kind` names it.
    kinds: Counter[str] = field(default_factory=lambda: Counter[str]())
    #: What no class knows.
    findings: dict[Finding, Seen] = field(default_factory=lambda: dict[Finding, Seen]())
    #: Finds beyond :data:`MOST_FINDINGS` different ones.
    more: int = 0

    @property
    def lines(self) -> int:
        """Lines that are not blank."""
        return self.messages + self.invalid

    def found(self, finding: Finding, seen: Seen) -> None:
        """Count a finding, keeping where it was first."""
        before = self.findings.get(finding)
        if before is not None:
            self.findings[finding] = before._replace(times=before.times + seen.times)
        elif len(self.findings) < MOST_FINDINGS:
            self.findings[finding] = seen
        else:
            self.more += seen.times

    def add(self, other: Summary) -> None:
        """Add what another stream, which came after, holds."""
        self.bytes += other.bytes
        self.messages += other.messages
        self.invalid += other.invalid
        self.kinds += other.kinds
        self.more += other.more
        for finding, seen in other.findings.items():
            self.found(finding, seen)


class _Line(NamedTuple):
    number: int
    offset: int
    data: bytes


class Survey:
    """Takes a stream, cut anywhere, and sums up its lines.

    Args:
        source: the stream's name, for :class:`Seen`.
        on_invalid: called with each line that is not one JSON object, in order; they are not kept here.
        max_line_bytes: as for :class:`~claude_wire.Decoder`.
    """

    def __init__(
        self,
        source: str,
        on_invalid: Callable[[InvalidLine], object],
        max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
    ) -> None:
        self.summary = Summary()
        self._source = source
        self._on_invalid = on_invalid
        # Lines with their line feeds, so that numbers and offsets can be counted along.
        self._splitter = LineSplitter(max_line_bytes=max_line_bytes, keepends=True)
        self._number = 1
        self._offset = 0
        self._objects = Decoder(dict)

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.summary.bytes += len(data)
        for line in self._split(lambda: self._splitter.feed(data)):
            self._take(line)

    def close(self) -> Summary:
        """End the stream and return what it holds."""
        for line in self._split(self._splitter.close):
            self._take(line)
        return self.summary

    def _split(self, split: Callable[[], list[bytes]]) -> Iterator[_Line]:
        """The lines that a call of the splitter completes; those above the limit are reported in between."""
        while True:
            try:
                lines = split()
            except LineTooLongError as long:
                yield from self._numbered(long.lines)
                reason = "longer than max_line_bytes"
                self._invalid(InvalidLine(long.head, long.line_number, long.offset, reason, long.length))
                self._number = long.line_number + 1
                self._offset = long.offset + long.length + 1
                split = self._rest
            else:
                yield from self._numbered(lines)
                return

    def _rest(self) -> list[bytes]:
        return self._splitter.feed(b"")

    def _numbered(self, lines: list[bytes]) -> Iterator[_Line]:
        for line in lines:
            offset, number = self._offset, self._number
            self._offset += len(line)
            self._number += 1
            if offset == 0 and line.startswith(_BOM):
                offset, line = len(_BOM), line[len(_BOM) :]
            if line.strip(_BLANK):
                yield _Line(number, offset, line)

    def _take(self, line: _Line) -> None:
        try:
            message = decode(line.data)
        except InvalidLineError as error:
            raw = line.data.removesuffix(b"\n")
            reason = error.line.reason if line.data.endswith(b"\n") else f"truncated: {error.line.reason}"
            self._invalid(InvalidLine(raw, line.number, line.offset, reason))
            return
        summary = self.summary
        summary.messages += 1
        summary.kinds[kind(message)] += 1
        for finding in find_unknown(self._object(line.data, message), message):
            summary.found(finding, Seen(1, self._source, line.number))

    def _invalid(self, line: InvalidLine) -> None:
        self.summary.invalid += 1
        self._on_invalid(line)

    def _object(self, line: bytes, message: Message) -> dict[str, Any]:
        """The plain object of a line that ``decode`` took, with lone surrogates as ``decode`` keeps them."""
        if isinstance(message, UnknownMessage):
            return message
        [value] = self._objects.feed(line if line.endswith(b"\n") else line + b"\n")
        return cast("dict[str, Any]", value)


# --- kinds ------------------------------------------------------------------------------------------------------------


def kind(message: Message) -> str:
    """A message's type and what else tells it apart: ``stream_event/content_block_delta/text_delta``.

    Each step is known to a class, or is ``unknown``: no text of a line gets into a kind, and their number is fixed.
    """
    return "/".join(_steps(message))


def _steps(message: Message) -> Iterator[str]:
    match message:
        case Unknown():
            yield "unknown"
        case SystemMessage(subtype=subtype):
            yield from ("system", subtype)
        case ResultMessage(subtype=subtype):
            yield from ("result", "unknown" if type(message) is ResultMessage else subtype)
        case StreamEvent(event=event):
            yield from ("stream_event", _tag(event))
            if isinstance(event, ContentBlockDeltaEvent):
                yield _tag(event.delta)
        case ControlRequest(request=request):
            yield from ("control_request", _tag(request))
            if isinstance(request, HookCallbackRequest):
                yield _tag(request.input)
        case ControlResponse(response=response):
            yield from ("control_response", _tag(response))
        case _:
            yield _tag(message)


def _tag(value: Wire | Unknown) -> str:
    if isinstance(value, Unknown):
        return "unknown"
    tag = type(value).__struct_config__.tag
    return tag if isinstance(tag, str) else type(value).__name__
