"""Add up a recording: turns, tokens, cost, times, each tool's calls, and the size of each kind of line.

This module does no input or output: it takes bytes and returns sums. Memory does not grow with the stream, because the
number of kinds is fixed, and at most :data:`MAX_NAMES` names and open calls are kept.
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

#: At most this many names of tools, and as many reasons, are counted separately. All others are counted together as
#: ``(others)``.
MAX_NAMES = 1000

#: The kinds of lines that are not messages.
INVALID, BLANK = "invalid", "blank"

T = TypeVar("T")


@dataclass
class Count(Sums):
    """The number of lines of one kind, and the number of bytes in them, including line feeds."""

    lines: int = 0
    bytes: int = 0


@dataclass
class Tool(Sums):
    calls: int = 0
    #: The number of calls whose result is an error, including denied calls.
    errors: int = 0
    #: The number of calls that were denied, according to ``permission_denials`` at the end of each turn.
    denied: int = 0
    #: The number of calls whose result is not in the stream.
    unanswered: int = 0


@dataclass
class Stats(Sums):
    """The sums of one or several streams."""

    most_names: ClassVar[int] = MAX_NAMES

    #: The number of bytes, including line feeds.
    bytes: int = 0
    #: The number of lines that are not blank.
    lines: int = 0
    messages: int = 0
    #: The number of lines that are neither blank nor one JSON object.
    invalid: int = 0
    #: The number of messages that are unknown, or contain something unknown.
    unknown: int = 0
    kinds: dict[str, Count] = field(default_factory=lambda: dict[str, Count]())
    #: The number of result messages, which is the number of turns that ended.
    results: int = 0
    #: The number of turns that succeeded.
    ok: int = 0
    #: The number of turns that failed, by reason.
    failed: dict[str, int] = field(default_factory=lambda: dict[str, int]())
    #: The number of streams that end in the middle of a turn. The usage of this turn is not known.
    unfinished: int = 0
    #: The usage of the turns that ended. For transcripts, the usage that the CLI stored.
    usage: Totals = field(default_factory=Totals)
    tools: dict[str, Tool] = field(default_factory=lambda: dict[str, Tool]())
    api_retries: int = 0
    #: The number of streams that are transcripts. They have no result messages.
    transcripts: int = 0
    #: The number of prompts in transcripts.
    prompts: int = 0
    #: The number of transcripts in which the CLI did not store a cost.
    uncosted: int = 0

    @property
    def has_turns(self) -> bool:
        """Return False if all streams are transcripts, which do not show turns."""
        return bool(self.results or self.unfinished or not self.transcripts)

    @property
    def has_cost(self) -> bool:
        """Return False if no stream has a cost."""
        return self.has_turns or self.uncosted < self.transcripts


class Tally:
    """Adds up what a stream contains. The stream is fed in pieces of any size."""

    def __init__(self, dialect: LineDialect = "stream", max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self._stats = Stats(transcripts=int(dialect == "transcript"))
        self._decoder = decoder_for(dialect, max_line_bytes=max_line_bytes)
        # The number of bytes fed so far of the current line.
        self._line_bytes = 0
        self._run = Run()
        self._usage = UsageMeter()
        # The last totals that the CLI stored in a transcript.
        self._cost: Totals | None = None
        # The calls without a result so far: id of the call -> name of the tool.
        self._waiting: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Add up the next bytes of the stream."""
        # The decoder is fed at most one line per call, because each message is counted with its size.
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
        if id in self._waiting:  # the CLI sends a block again in a line that replaces an earlier one
            return
        _named(self._stats.tools, name, Tool).calls += 1
        self._waiting[id] = name
        if len(self._waiting) > MAX_NAMES:
            oldest = next(iter(self._waiting))
            _named(self._stats.tools, self._waiting.pop(oldest), Tool).unanswered += 1

    def _answer(self, result: Any) -> None:
        """Count ``result`` if it is the result of a call. Without a ``tool_use_id``, it is not one."""
        name = self._waiting.pop(getattr(result, "tool_use_id", None) or "", None)
        if name is None:
            return
        failed = getattr(result, "is_error", None) or hasattr(getattr(result, "content", None), "error_code")
        _named(self._stats.tools, name, Tool).errors += bool(failed)

    # --- results ------------------------------------------------------------------------------------------------------

    def _result(self, result: ResultMessage) -> None:
        if self._usage.add(result) is None:  # this result was counted before
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
