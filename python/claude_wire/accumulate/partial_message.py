"""What a streamed message says so far: its blocks, and what stands around them.

Knows events, one at a time and in any order; not lines, and not which conversation an event belongs to. The rules are
those that :mod:`claude_wire.accumulate.accumulator` states.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from claude_wire.accumulate.partial_json import NotJson, read_part, read_whole
from claude_wire.messages import (
    ApiMessage,
    Citation,
    CitationsDelta,
    CompactionBlock,
    CompactionDelta,
    Container,
    ContentBlock,
    ContentBlockDeltaEvent,
    ContentBlockStartEvent,
    ContentBlockStopEvent,
    ContextManagementResponse,
    ErrorEvent,
    Event,
    InputJsonDelta,
    InputTransformation,
    McpToolUseBlock,
    MessageDeltaEvent,
    MessageDeltaUsage,
    MessageStartEvent,
    MessageStopEvent,
    RefusalStopDetails,
    ServerToolUseBlock,
    SignatureDelta,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    UnknownBlock,
    UnknownDelta,
    Usage,
)
from claude_wire.messages.base import short_repr

__all__ = ["PartialBlock", "State"]

#: As many UTF-16 units of input that is no JSON are kept by the CLI.
_RAW_UNITS = 2048
#: Counts that a zero at the end of a message does not replace.
_INPUT_COUNTS = frozenset({"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"})
#: What String.prototype.trim() takes off; str.strip() takes off others.
_JS_BLANK = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
#: Texts that say nothing, by the CLI's own rule (2.1.330): it writes no line for a block of one.
_NO_TEXT = frozenset(("", "(no content)", "[Request interrupted by user for tool use]"))
_WITH_INPUT = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)


def _joined(text: str, pieces: list[str]) -> str:
    """``text`` and the pieces as one, with the halves of surrogate pairs put together."""
    new = "".join(pieces)
    if new.isascii():
        return text + new
    try:
        new.encode()
    except UnicodeEncodeError:
        if "\ud800" <= text[-1:] <= "\udbff":
            text, new = text[:-1], text[-1] + new
        new = new.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text + new


class _Text:
    """A text that lies in one or more runs of a message's pieces."""

    __slots__ = ("_read", "_runs")

    def __init__(self, text: str = "") -> None:
        #: Each the number of its first piece and of the one after its last, None while it goes on.
        self._runs: list[list[int | None]] = []
        #: The number of runs that were read to their ends, that of the piece after the last that was read, and what
        #: was read. One tuple, so that two threads that read a snapshot at a time both read it right.
        self._read = (0, 0, text)

    def go_on(self, at: int) -> list[int | None]:
        run: list[int | None] = [at, None]
        self._runs.append(run)
        return run

    def read(self, pieces: list[str], limit: int, whole: bool) -> str:
        passed, at, text = self._read
        new: list[str] = []
        for run in self._runs[passed:]:  # they lie one after another
            start, end = cast(int, run[0]), run[1]
            end = limit if end is None else end
            if end > at:
                new += pieces[max(start, at) : end]
                at = end
        if new:
            text = _joined(text, new)
            self._read = (len(self._runs) - 1, at, text)
        if not whole and "\ud800" <= text[-1:] <= "\udbff":
            return text[:-1]  # its other half is to come
        return text


class PartialBlock:
    """One content block of a message, as far as it has come.

    Attributes:
        index: its number in the message.
        start: the block as it began, None if that was not seen. It is complete for types without deltas.
    """

    __slots__ = (
        "_citations",
        "_compaction",
        "_estimated",
        "_guess",
        "_input",
        "_json",
        "_signature",
        "_state",
        "_stopped",
        "_text",
        "_thinking",
        "_unknown",
        "index",
        "start",
    )

    def __init__(self, state: State, index: int, start: ContentBlock | None, whole: bool = False) -> None:
        self.index: int = index
        self.start: ContentBlock | None = start
        self._state = state
        self._stopped = whole
        self._text: _Text | None = None
        self._thinking: _Text | None = None
        self._json: _Text | None = None
        self._signature: str | None = None
        self._citations: list[Citation] = []
        self._compaction: dict[str, Any] = {}
        self._estimated = 0
        self._unknown: list[UnknownDelta] = []
        #: Without a start: the block's type, by the first delta.
        self._guess: type[msgspec.Struct] | None = None
        #: The length and completeness of the JSON that was read last, what it said, and why it is none.
        self._input: tuple[int, bool, Any, str | None] | None = None
        if whole:
            self._take(start)

    def _take(self, start: object) -> None:
        """Keep the text of a block that came whole as if deltas had brought it: this makes it count."""
        if isinstance(start, TextBlock):
            self._text = _Text(start.text)
        elif isinstance(start, ThinkingBlock):
            self._thinking = _Text(start.thinking)
            self._signature = start.signature
        elif isinstance(start, _WITH_INPUT):
            self._input = (0, True, start.input, None)

    def _read(self, text: _Text | None) -> str:
        return "" if text is None else text.read(self._state.pieces, self._state.limit, self.done)

    @property
    def type(self) -> str:
        """The block's type, such as ``text`` or ``tool_use``; empty if its start and all that it is were unknown."""
        if isinstance(self.start, msgspec.Struct):
            return str(self.start.__struct_config__.tag)
        if self.start is not None:
            return self.start.type or ""
        return "" if self._guess is None else str(self._guess.__struct_config__.tag)

    @property
    def id(self) -> str | None:
        """The id of the tool call, None for other blocks."""
        return self.start.id if isinstance(self.start, _WITH_INPUT) else None

    @property
    def name(self) -> str | None:
        """The name of the tool that is called, None for other blocks."""
        return self.start.name if isinstance(self.start, _WITH_INPUT) else None

    @property
    def done(self) -> bool:
        """Whether it is complete: its stop came, or that of the message."""
        return self._stopped or self._state.done

    @property
    def text(self) -> str:
        """The text so far. Half of a surrogate pair at its end is left out until the block is done.

        Reading it copies it if more of it came since the last reading, which takes time in proportion to its length:
        after each delta, that is quadratic. To show a text while it grows, use the text of each event's delta.
        """
        return self._read(self._text)

    @property
    def thinking(self) -> str:
        """The reasoning so far; read like :attr:`text`."""
        return self._read(self._thinking)

    @property
    def signature(self) -> str:
        """The signature of a thinking block, empty before it came."""
        return self._signature or ""

    @property
    def estimated_tokens(self) -> int:
        """The sum of the estimates that thinking deltas brought; 0 if none did."""
        return self._estimated

    @property
    def citations(self) -> list[Citation]:
        """The citations so far, those of the start included."""
        first = self.start.citations if isinstance(self.start, TextBlock) else None
        return [*(first or ()), *self._citations]

    @property
    def unknown_deltas(self) -> list[UnknownDelta]:
        """The deltas that are of an unknown type or do not fit theirs, in order. They change nothing else."""
        return list(self._unknown)

    @property
    def partial_json(self) -> str:
        """The JSON text of a tool's input so far, exactly as it came; read like :attr:`text`."""
        return self._read(self._json)

    @property
    def input(self) -> Any:
        """The tool's input: what can be read of it so far, and when the block is done, what it is.

        So far it is the beginning of the final input, ``{}`` where nothing can be read: each object has its first keys
        and each array its first items, of which only the last may be incomplete. A string goes as far as it came, less
        an escape that is cut off; a number too, so it may get more digits; a key without a value is left out. What was
        there once stays there, unless its key comes twice, or this turns out to be no JSON or to be nested some
        200 levels deep, which is read only when it is whole. A lone surrogate reads as U+FFFD until then.

        It is read again only after more of it came, in time proportional to its length: after each delta, that is
        quadratic. The same object is returned until then: do not change it.
        """
        return self._read_input()[2]

    @property
    def input_error(self) -> str | None:
        """Why the complete input is no JSON, without any of it (that is in :attr:`partial_json`). None if it is."""
        return self._read_input()[3]

    def _read_input(self) -> tuple[int, bool, Any, str | None]:
        if self._json is None:
            if self._input is None:
                # Of the other two kinds of calls the input of the start does not count.
                whole: Any = self.start.input if isinstance(self.start, McpToolUseBlock) else {}
                self._input = (0, True, whole, None)
            return self._input
        text, done = self._read(self._json), self.done
        read = self._input
        if read is None or read[:2] != (len(text), done):
            value, error = _final_input(text) if done else (read_part(text), None)
            read = self._input = (len(text), done, value, error)
        return read

    @property
    def left_out(self) -> bool:
        """Whether the CLI writes no ``assistant`` line for it: it is a complete text block, and its text is blank."""
        if not self.done or self.type != "text":
            return False
        text = self.text
        return text in _NO_TEXT or not text.strip(_JS_BLANK)

    def content(self) -> ContentBlock:
        """The block as the ``assistant`` line has it, as far as it has come.

        A block without a start gets an empty tool id and name; a block of an unknown type is as it started.
        """
        start = self.start
        if start is None:
            return self._content_without_start()
        if isinstance(start, TextBlock):
            return replace(start, text=self.text, citations=self.citations if self._citations else start.citations)
        if isinstance(start, ThinkingBlock):
            return replace(start, thinking=self.thinking, signature=self.signature)
        if isinstance(start, _WITH_INPUT):
            return replace(start, input=self.input)
        if isinstance(start, CompactionBlock):
            return replace(start, **self._compaction)
        return start

    def _content_without_start(self) -> ContentBlock:
        if self._guess is TextBlock:
            return TextBlock(self.text, citations=self.citations if self._citations else UNSET)
        if self._guess is ThinkingBlock:
            return ThinkingBlock(self.thinking, self.signature)
        if self._guess is ToolUseBlock:
            return ToolUseBlock(id="", name="", input=self.input)
        if self._guess is CompactionBlock:
            return CompactionBlock(**self._compaction)
        return UnknownBlock.because({}, "its start was not seen")

    def _add(self, delta: object, at: int) -> list[int | None] | None:
        """Take a delta that is no mere piece of the text under way; returns the run of text that begins with it."""
        text: _Text | None = None
        kind: type[msgspec.Struct] | None = None
        if isinstance(delta, TextDelta):
            kind, text = TextBlock, self._text or _Text()
            self._text = text
        elif isinstance(delta, ThinkingDelta):
            kind, text = ThinkingBlock, self._thinking or _Text()
            self._thinking = text
            self._estimated += delta.estimated_tokens or 0
        elif isinstance(delta, InputJsonDelta):
            kind, text = ToolUseBlock, self._json or _Text()
            self._json = text
        elif isinstance(delta, SignatureDelta):
            kind = ThinkingBlock
            self._signature = delta.signature
        elif isinstance(delta, CitationsDelta):
            kind = TextBlock
            self._citations.append(delta.citation)
        elif isinstance(delta, CompactionDelta):
            kind = CompactionBlock
            given = {"content": delta.content, "encrypted_content": delta.encrypted_content}
            self._compaction.update({k: v for k, v in given.items() if not isinstance(v, UnsetType)})
        else:
            self._unknown.append(cast(UnknownDelta, delta))
        self._guess = self._guess or kind
        return None if text is None else text.go_on(at)

    def __repr__(self) -> str:
        return short_repr("PartialBlock", [("index", self.index), ("type", self.type), ("done", self.done)])


def _final_input(text: str) -> tuple[Any, str | None]:
    if not text:
        return {}, None
    try:
        value = read_whole(text)
    except NotJson as error:
        units = text.encode("utf-16-le", "surrogatepass")
        raw = units[: _RAW_UNITS * 2].decode("utf-16-le", "surrogatepass")
        return {"__unparsedToolInput": {"raw": raw, "len": len(units) // 2}}, f"not JSON: {error}"
    return {} if value is None else value, None


class State:
    """What a message says, by its marks up to some point."""

    __slots__ = (
        "_limit",
        "abandoned",
        "blocks",
        "container",
        "context_management",
        "done",
        "error",
        "input_transformations",
        "others",
        "pieces",
        "run",
        "start",
        "stop_details",
        "stop_reason",
        "stop_sequence",
        "usage",
    )

    def __init__(self, pieces: list[str], limit: int | None = None) -> None:
        self.pieces: list[str] = pieces
        self._limit = limit
        #: The run of text that goes on.
        self.run: list[int | None] | None = None
        self.start: ApiMessage | None = None
        self.blocks: dict[int, PartialBlock] = {}
        self.usage: Usage | None = None
        self.stop_reason: str | None = None
        self.stop_sequence: str | None = None
        self.stop_details: RefusalStopDetails | UnsetType | None = UNSET
        self.container: Container | UnsetType | None = UNSET
        self.context_management: ContextManagementResponse | UnsetType | None = UNSET
        self.input_transformations: list[InputTransformation] | UnsetType | None = UNSET
        self.done: bool = False
        self.abandoned: bool = False
        self.error: ErrorEvent | None = None
        self.others: list[Event] = []

    @property
    def limit(self) -> int:
        return len(self.pieces) if self._limit is None else self._limit

    def apply(self, at: int, event: Event | None) -> None:
        """Take a mark: the event, None for the abandoning of the message, and the number of pieces before it."""
        if self.run is not None:
            self.run[1] = at
            self.run = None
        if isinstance(event, ContentBlockDeltaEvent):
            block = self.blocks.get(event.index)
            if block is None:
                block = self.blocks[event.index] = PartialBlock(self, event.index, None)
            self.run = block._add(event.delta, at)  # pyright: ignore[reportPrivateUsage]
        elif isinstance(event, ContentBlockStartEvent):
            self.blocks[event.index] = PartialBlock(self, event.index, event.content_block)
        elif isinstance(event, ContentBlockStopEvent):
            if event.index in self.blocks:
                self.blocks[event.index]._stopped = True  # pyright: ignore[reportPrivateUsage]
            else:
                self.others.append(event)
        elif isinstance(event, MessageStartEvent):
            self._begin(event.message)
        elif isinstance(event, MessageDeltaEvent):
            self._end(event)
        elif isinstance(event, MessageStopEvent):
            self.done = True
        elif event is None:
            self.abandoned = True
        else:
            if isinstance(event, ErrorEvent):
                self.error = event
            self.others.append(event)

    def _begin(self, message: ApiMessage) -> None:
        self.start = message
        self.usage = message.usage
        self.stop_reason, self.stop_sequence = message.stop_reason, message.stop_sequence
        self.stop_details, self.container = message.stop_details, message.container
        self.context_management = message.context_management
        self.input_transformations = message.input_transformations
        self.blocks = {index: PartialBlock(self, index, block, True) for index, block in enumerate(message.content)}

    def _end(self, event: MessageDeltaEvent) -> None:
        delta = event.delta
        self.stop_reason, self.stop_sequence = delta.stop_reason, delta.stop_sequence
        for name, value in (
            ("stop_details", delta.stop_details),
            ("container", delta.container),
            ("context_management", event.context_management),
            ("input_transformations", event.input_transformations),
        ):
            if value is not UNSET:
                setattr(self, name, value)
        self.usage = replace(self.usage or Usage(), **_given(event.usage))


def _given(usage: MessageDeltaUsage) -> dict[str, Any]:
    given = {name: getattr(usage, name) for name in usage.__struct_fields__}
    return {
        name: value
        for name, value in given.items()
        if value is not None and value is not UNSET and (value or name not in _INPUT_COUNTS)
    }
