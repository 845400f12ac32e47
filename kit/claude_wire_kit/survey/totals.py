"""Add up a recording: turns, tokens, cost, tools, times, and bytes by kind of line.

Sans-IO: bytes go in, sums come out. Memory does not grow with the stream: the number of kinds is fixed, and at most
:data:`MAX_NAMES` names and waiting calls are kept.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.messages import (
    ApiRetryMessage,
    AssistantMessage,
    InvalidLine,
    McpToolUseBlock,
    ResultMessage,
    ServerToolUseBlock,
    SystemToolResultMessage,
    ToolResultMessage,
    ToolUseBlock,
    UserMessage,
)
from claude_wire.protocol import Run
from claude_wire.transcripts import AttachmentRecord, CostStateRecord, LineDialect, Record, UserRecord, message_of
from claude_wire.transcripts.read import decoder_for
from claude_wire_kit.events.names import message_name, why_failed
from claude_wire_kit.usage.meter import Totals, UsageMeter, models_of
from claude_wire_kit.usage.sums import Sums, name_within

#: At most this many names of tools and reasons are counted separately. All others count as ``(others)``.
MAX_NAMES = 1000

#: The names of lines that are not messages.
INVALID, BLANK = "invalid", "blank"

T = TypeVar("T")


@dataclass
class Count(Sums):
    """The lines of one kind, and their bytes with line feeds."""

    lines: int = 0
    bytes: int = 0


@dataclass
class Tool(Sums):
    calls: int = 0
    #: Calls whose result is an error. Denied calls are among them.
    errors: int = 0
    #: Calls that were denied, according to the lists in the results.
    denied: int = 0
    #: Calls whose result is not in the stream.
    unanswered: int = 0


@dataclass
class Stats(Sums):
    """The sums of one or several streams."""

    most_names: ClassVar[int] = MAX_NAMES

    #: Bytes, line feeds included.
    bytes: int = 0
    #: Lines that are not blank.
    lines: int = 0
    messages: int = 0
    #: Lines that are not one JSON object.
    invalid: int = 0
    #: Messages that are unknown, or contain something unknown.
    unknown: int = 0
    kinds: dict[str, Count] = field(default_factory=lambda: dict[str, Count]())
    #: Results, each of which ends a turn.
    results: int = 0
    ok: int = 0
    #: The results that are errors, by reason.
    failed: dict[str, int] = field(default_factory=lambda: dict[str, int]())
    #: Streams that end in the middle of a turn. What such a turn used is not known.
    unfinished: int = 0
    #: What the turns with a result have used.
    usage: Totals = field(default_factory=Totals)
    tools: dict[str, Tool] = field(default_factory=lambda: dict[str, Tool]())
    api_retries: int = 0
    #: Transcripts among the streams. They have no results.
    transcripts: int = 0
    prompts: int = 0
    #: Transcripts in which the CLI has not noted a cost.
    uncosted: int = 0

    @property
    def has_turns(self) -> bool:
        """Return False if all streams are transcripts, which have no numbers of single turns."""
        return bool(self.results or self.unfinished or not self.transcripts)

    @property
    def has_cost(self) -> bool:
        """Return False if no stream has a cost."""
        return self.has_turns or self.uncosted < self.transcripts


class Tally:
    """Takes a stream in chunks, and adds up its lines."""

    def __init__(self, dialect: LineDialect = "stream", max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self._stats = Stats(transcripts=int(dialect == "transcript"))
        self._decoder = decoder_for(dialect, max_line_bytes=max_line_bytes)
        # The length of the unfinished line so far.
        self._line_bytes = 0
        self._run = Run()
        self._usage = UsageMeter()
        # The last total that the CLI noted in a transcript.
        self._cost: Totals | None = None
        # The tools of calls without a result: id of the call -> name of the tool.
        self._waiting: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        # The decoder gets at most one line at a time, so that the bytes of each message are known.
        for piece in io.BytesIO(data):
            self._line_bytes += len(piece)
            messages = self._decoder.feed(piece)
            if piece.endswith(b"\n"):
                self._line(messages)

    def close(self) -> Stats:
        """End the stream, and return the sums."""
        messages = self._decoder.close()
        if self._line_bytes:
            self._line(messages)
        stats, seen = self._stats, self._decoder.stats
        stats.bytes, stats.lines, stats.messages = seen.bytes, seen.lines, seen.messages
        stats.invalid, stats.unknown = seen.invalid, seen.unknown
        stats.unfinished = int(self._run.turn)
        stats.usage = self._usage.total
        if self._cost is not None:
            stats.usage.add(self._cost)
        stats.uncosted = int(bool(stats.transcripts) and self._cost is None)
        for tool in self._waiting.values():
            _named(stats.tools, tool, Tool).unanswered += 1
        return stats

    def _line(self, messages: list[Any]) -> None:
        message: Any = messages[0] if messages else None
        name = BLANK if message is None else INVALID if isinstance(message, InvalidLine) else message_name(message)
        lines = _named(self._stats.kinds, name, Count)
        lines.lines += 1
        lines.bytes += self._line_bytes
        self._line_bytes = 0
        for message in messages:
            self._run.see(message)
        if isinstance(message, CostStateRecord):
            cost = message.totalCostUSD or 0.0
            time = message.totalAPIDuration or 0.0
            self._cost = Totals(cost_usd=cost, duration_api_ms=time, models=models_of(message.modelUsage))
        if isinstance(message, Record):
            self._stats.prompts += isinstance(message, (UserRecord, AttachmentRecord)) and message.is_prompt
            message = message_of(message)
        match message:
            case ResultMessage():
                self._result(message)
            case AssistantMessage():
                for block in message.content:
                    if isinstance(block, (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)):
                        self._call(block.id, block.name)
                    else:
                        self._answer(block)
            case UserMessage():
                for result in message.tool_results:
                    self._answer(result)
            case SystemToolResultMessage():
                self._answer(message.tool_result or message)
            case ToolResultMessage():
                self._answer(message)
            case ApiRetryMessage():
                self._stats.api_retries += 1
            case _:
                pass

    # --- tools --------------------------------------------------------------------------------------------------------

    def _call(self, id: str, name: str) -> None:
        if id in self._waiting:  # a block comes again when the CLI supersedes an earlier line
            return
        _named(self._stats.tools, name, Tool).calls += 1
        self._waiting[id] = name
        if len(self._waiting) > MAX_NAMES:
            oldest = next(iter(self._waiting))
            _named(self._stats.tools, self._waiting.pop(oldest), Tool).unanswered += 1

    def _answer(self, result: Any) -> None:
        """Count the result of a call, of whatever type. Blocks that are no results have no ``tool_use_id``."""
        name = self._waiting.pop(getattr(result, "tool_use_id", None) or "", None)
        if name is None:
            return
        failed = getattr(result, "is_error", None) or hasattr(getattr(result, "content", None), "error_code")
        _named(self._stats.tools, name, Tool).errors += bool(failed)

    # --- results ------------------------------------------------------------------------------------------------------

    def _result(self, result: ResultMessage) -> None:
        if self._usage.add(result) is None:  # the same result came before
            return
        stats = self._stats
        stats.results += 1
        if result.ok:
            stats.ok += 1
        else:
            reason = name_within(stats.failed, why_failed(result), MAX_NAMES)
            stats.failed[reason] = stats.failed.get(reason, 0) + 1
        for denial in result.permission_denials or ():
            _named(stats.tools, denial.tool_name, Tool).denied += 1


def _named(known: dict[str, T], name: str, make: Callable[[], T]) -> T:
    return known.setdefault(name_within(known, name, MAX_NAMES), make())
