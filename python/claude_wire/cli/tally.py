"""What a recording adds up to: turns, tokens, cost, tools, times, and bytes by kind of line.

Sans-IO: bytes go in, sums come out. Its memory does not grow with the stream: kinds are a fixed number, of names that
the stream makes up at most :data:`MOST_NAMES` are told apart, and of calls that wait for their result as many are
remembered.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast

from claude_wire import Decoder
from claude_wire._turn import Turn
from claude_wire.cli.kinds import kind, why_failed
from claude_wire.framing import DEFAULT_MAX_LINE_BYTES
from claude_wire.messages import (
    ApiRetryMessage,
    AssistantMessage,
    InvalidLine,
    McpToolUseBlock,
    Message,
    ModelUsage,
    ResultMessage,
    ServerToolUseBlock,
    SystemToolResultMessage,
    ToolResultMessage,
    ToolUseBlock,
    Usage,
    UserMessage,
)

__all__ = ["MOST_NAMES", "OTHERS", "Count", "Model", "Stats", "Tally", "Tokens", "Tool"]

#: At most this many tools, models, reasons and sessions are told apart; what comes after them counts as :data:`OTHERS`.
MOST_NAMES = 1000

#: The name of all names beyond the first :data:`MOST_NAMES`.
OTHERS = "(others)"

#: Kinds of lines that are no messages.
INVALID, BLANK = "invalid", "blank"

T = TypeVar("T")


@dataclass
class Sums:
    """Numbers that add up, and mappings of names to such."""

    def add(self, other: Any) -> None:
        """Add those of another, field by field."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, Sums):
                mine.add(theirs)
            elif isinstance(mine, dict):
                _add_names(cast("dict[str, Any]", mine), theirs)
            else:
                setattr(self, each.name, mine + theirs)


def _add_names(mine: dict[str, Any], theirs: Mapping[str, Any]) -> None:
    for name, value in theirs.items():
        if isinstance(value, Sums):
            slot(mine, name, type(value)).add(value)
        else:
            count(mine, name, value)


def slot(names: dict[str, T], name: str, make: Callable[[], T]) -> T:
    """The value of a name, made if need be, or that of :data:`OTHERS` when there are too many names."""
    if name not in names and len(names) >= MOST_NAMES:
        name = OTHERS
    return names.setdefault(name, make())


def count(names: dict[str, int], name: str, times: int = 1) -> None:
    """Count a name, or :data:`OTHERS` when there are too many names."""
    if name not in names and len(names) >= MOST_NAMES:
        name = OTHERS
    names[name] = names.get(name, 0) + times


@dataclass
class Count(Sums):
    """Lines of one kind, and their bytes with their line feeds."""

    lines: int = 0
    bytes: int = 0


@dataclass
class Tokens(Sums):
    """Tokens; those read from the cache or written to it are not among ``input``."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_creation: int = 0


@dataclass
class Model(Tokens):
    """What one model was used for."""

    cost_usd: float = 0.0


@dataclass
class Tool(Sums):
    """The calls of one tool."""

    calls: int = 0
    #: Calls whose result is an error; those that were denied are among them.
    errors: int = 0
    #: Calls that were denied, by the results' own lists.
    denied: int = 0
    #: Calls whose result is not in the stream.
    unanswered: int = 0


@dataclass
class Stats(Sums):
    """What one stream adds up to, or several together."""

    #: Bytes, line feeds included.
    bytes: int = 0
    #: Lines that are not blank.
    lines: int = 0
    messages: int = 0
    #: Lines that are not one JSON object.
    invalid: int = 0
    #: Messages that are, or have within them, something that no class knows.
    unknown: int = 0
    kinds: dict[str, Count] = field(default_factory=lambda: dict[str, Count]())
    #: Results, each of which ends a turn.
    results: int = 0
    ok: int = 0
    #: Of the others, how many for each reason.
    failed: dict[str, int] = field(default_factory=lambda: dict[str, int]())
    #: Streams that end in the middle of a turn. What such a turn used is not known.
    unfinished: int = 0
    #: The model's answers within the turns, as the results count them.
    num_turns: int = 0
    duration_ms: float = 0.0
    api_ms: float = 0.0
    #: What the results tell of each model, subagents included.
    models: dict[str, Model] = field(default_factory=lambda: dict[str, Model]())
    cost_usd: float = 0.0
    #: Of the turns' main loops, without subagents.
    main_loop: Tokens = field(default_factory=Tokens)
    tools: dict[str, Tool] = field(default_factory=lambda: dict[str, Tool]())
    api_retries: int = 0

    @property
    def tokens(self) -> Tokens:
        """Those of all models together."""
        total = Tokens()
        for model in self.models.values():
            total.add(model)
        return total


@dataclass
class _Running:
    """The running totals that the last result of a session had."""

    cost_usd: float = 0.0
    api_ms: float = 0.0
    models: Mapping[str, ModelUsage] = field(default_factory=lambda: dict[str, ModelUsage]())


class Tally:
    """Takes a stream, cut anywhere, and adds up what its lines say.

    Results carry the running totals of their session, which go on where it is resumed or forked from another. So what
    this stream has used is taken from ``model_usage_since_last_result``; where a result has none, as those of older
    CLIs and dialects, from the difference to the result before it.
    """

    def __init__(self, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self._stats = Stats()
        self._decoder = Decoder(max_line_bytes=max_line_bytes)
        # Of the line that is not complete yet.
        self._line_bytes = 0
        self._turn = Turn()
        self._sessions: dict[str | None, _Running] = {}
        # The tools of the calls that wait for their result, by id.
        self._waiting: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        # Piece by piece, none longer than a line: so it is known which bytes a message was.
        for piece in io.BytesIO(data):
            self._line_bytes += len(piece)
            messages = self._decoder.feed(piece)
            if piece.endswith(b"\n"):
                self._line(messages)

    def close(self) -> Stats:
        """End the stream and return what it adds up to."""
        messages = self._decoder.close()
        if self._line_bytes:
            self._line(messages)
        stats, seen = self._stats, self._decoder.stats
        stats.bytes, stats.lines, stats.messages = seen.bytes, seen.lines, seen.messages
        stats.invalid, stats.unknown = seen.invalid, seen.unknown
        stats.unfinished = int(self._turn.open)
        for tool in self._waiting.values():
            slot(stats.tools, tool, Tool).unanswered += 1
        return stats

    def _line(self, messages: list[Message | InvalidLine]) -> None:
        message = messages[0] if messages else None
        name = BLANK if message is None else INVALID if isinstance(message, InvalidLine) else kind(message)
        lines = slot(self._stats.kinds, name, Count)
        lines.lines += 1
        lines.bytes += self._line_bytes
        self._line_bytes = 0
        self._turn.see(messages)
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
        if id in self._waiting:  # the CLI sends a block again where it supersedes an earlier line
            return
        slot(self._stats.tools, name, Tool).calls += 1
        self._waiting[id] = name
        if len(self._waiting) > MOST_NAMES:
            oldest = next(iter(self._waiting))
            slot(self._stats.tools, self._waiting.pop(oldest), Tool).unanswered += 1

    def _answer(self, result: Any) -> None:
        """Count the result of a call, of whatever kind; other blocks have no ``tool_use_id``."""
        name = self._waiting.pop(getattr(result, "tool_use_id", None) or "", None)
        if name is None:
            return
        failed = getattr(result, "is_error", None) or hasattr(getattr(result, "content", None), "error_code")
        slot(self._stats.tools, name, Tool).errors += bool(failed)

    # --- results ------------------------------------------------------------------------------------------------------

    def _result(self, result: ResultMessage) -> None:
        stats = self._stats
        stats.results += 1
        if result.ok:
            stats.ok += 1
        else:
            count(stats.failed, why_failed(result))
        stats.num_turns += result.num_turns or 0
        stats.duration_ms += result.duration_ms or 0
        for denial in result.permission_denials or ():
            slot(stats.tools, denial.tool_name, Tool).denied += 1
        if result.usage is not None:
            stats.main_loop.add(_tokens(result.usage))
        self._spent(result)

    def _spent(self, result: ResultMessage) -> None:
        stats = self._stats
        before = self._sessions.pop(result.session_id, None) or _Running()
        cost, api_ms, models = result.total_cost_usd or 0.0, result.duration_api_ms or 0.0, result.modelUsage or {}
        recent = result.model_usage_since_last_result
        if recent is not None:
            spent = {name: _model(usage) for name, usage in recent.items()}
            stats.cost_usd += sum(model.cost_usd for model in spent.values())
        else:
            spent = {name: _difference(usage, before.models.get(name)) for name, usage in models.items()}
            stats.cost_usd += _grown(cost, before.cost_usd)
        for name, model in spent.items():
            slot(stats.models, name, Model).add(model)
        # Failed starts and local commands have zeros in the place of totals.
        stats.api_ms += _grown(api_ms, before.api_ms) if api_ms else 0.0
        running = _Running(cost or before.cost_usd, api_ms or before.api_ms, models or before.models)
        self._sessions[result.session_id] = running
        if len(self._sessions) > MOST_NAMES:
            del self._sessions[next(iter(self._sessions))]


def _grown(total: float, before: float) -> float:
    """What a running total has grown by; one that has shrunk began anew."""
    return total - before if total >= before else total


def _tokens(usage: Usage) -> Tokens:
    return Tokens(
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.cache_read_input_tokens or 0,
        usage.cache_creation_input_tokens or 0,
    )


def _model(usage: ModelUsage) -> Model:
    return Model(
        usage.inputTokens or usage.input_tokens or 0,
        usage.outputTokens or usage.output_tokens or 0,
        usage.cacheReadInputTokens or 0,
        usage.cacheCreationInputTokens or 0,
        usage.costUSD or 0.0,
    )


def _difference(usage: ModelUsage, before: ModelUsage | None) -> Model:
    now, then = _model(usage), _model(before) if before is not None else Model()
    for each in fields(Model):
        setattr(now, each.name, _grown(getattr(now, each.name), getattr(then, each.name)))
    return now
