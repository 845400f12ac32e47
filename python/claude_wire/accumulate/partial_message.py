"""The current state of a streamed message: its blocks and fields.

Events may arrive in any order. :mod:`claude_wire.accumulate.accumulator` has the rules, and decides to which message an
event belongs.
"""

# Users read blocks. Only a State changes blocks, by their private methods.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import asdict, replace

from claude_wire.accumulate.partial_json import NotJson, read_part, read_whole
from claude_wire.messages import (
    ApiMessage,
    Citation,
    CitationsDelta,
    CompactionBlock,
    CompactionDelta,
    ContentBlock,
    ContentBlockDeltaEvent,
    ContentBlockStartEvent,
    ContentBlockStopEvent,
    Delta,
    ErrorEvent,
    Event,
    InputJsonDelta,
    McpToolUseBlock,
    MessageDeltaEvent,
    MessageStartEvent,
    MessageStopEvent,
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

#: Type of a delta -> the field with its text.
TEXT_FIELDS: dict[type[object], str] = {
    TextDelta: "text",
    ThinkingDelta: "thinking",
    InputJsonDelta: "partial_json",
}
#: Type of a delta -> the start that is assumed for a block whose start was not seen.
_BLANKS: dict[type[object], ContentBlock] = {
    TextDelta: TextBlock(""),
    CitationsDelta: TextBlock(""),
    ThinkingDelta: ThinkingBlock("", ""),
    SignatureDelta: ThinkingBlock("", ""),
    InputJsonDelta: ToolUseBlock(id="", name="", input={}),
    CompactionDelta: CompactionBlock(),
}
_NOT_STARTED = ApiMessage(type="message", role="assistant", content=[])
#: The CLI keeps this many UTF-16 units of input that is not JSON.
_RAW_UNITS = 2048
#: Token counts of the message's start that a zero in a message delta must not replace.
_INPUT_COUNTS = frozenset({"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"})
#: The characters that JavaScript's String.prototype.trim() removes. Python's str.strip() removes a different set.
_JS_BLANK = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
#: The CLI (2.1.331) writes no line for a block with one of these texts.
_NO_TEXT = frozenset(("", "(no content)", "[Request interrupted by user for tool use]"))
_WITH_INPUT = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)


def _joined(text: str, pieces: list[str]) -> str:
    """Join ``text`` and the pieces. Join surrogate pairs that were split between two pieces."""
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
    """Text that arrives in pieces. A snapshot shares the list of pieces, and reads only the pieces before ``end``."""

    __slots__ = ("_read", "end", "pieces")

    def __init__(self, text: str = "") -> None:
        self.pieces: list[str] = []
        #: The number of pieces; None while the text may continue.
        self.end: int | None = None
        # The number of joined pieces, and their text. They are one tuple, because two threads may read a snapshot at
        # the same time, and must not mix the number of one thread with the text of the other.
        self._read = (0, text)

    def read(self, done: bool) -> str:
        count, text = self._read
        end = len(self.pieces) if self.end is None else self.end
        if end > count:
            text = _joined(text, self.pieces[count:end])
            self._read = (end, text)
        if not done and "\ud800" <= text[-1:] <= "\udbff":
            return text[:-1]  # the other half of the surrogate pair has not arrived
        return text


class PartialBlock:
    """One content block of a message, which may still be streaming.

    Attributes:
        index: index of the block in the message.
        start: the block in its start event; None if the start was not seen. Complete for types without deltas.
    """

    __slots__ = ("_blank", "_deltas", "_input", "_state", "_stopped", "_texts", "_whole", "index", "start")

    def __init__(self, state: State, index: int, start: ContentBlock | None, whole: bool = False) -> None:
        self.index: int = index
        self.start: ContentBlock | None = start
        self._state = state
        # `_whole` is True if the block was complete in the start of its message: then the text in its start counts.
        self._whole = self._stopped = whole
        # Field of the deltas, such as "thinking" -> text.
        self._texts: dict[str, _Text] = {}
        # The deltas that have more than text.
        self._deltas: list[Delta] = []
        # The assumed start if the start was not seen; else None.
        self._blank: ContentBlock | None = None
        # The last reading of the JSON input: its length, whether it was complete, the value, and the error.
        self._input: tuple[int, bool, Any, str | None] | None = None
        if whole and isinstance(start, TextBlock):
            self._texts["text"] = _Text(start.text)
        elif whole and isinstance(start, ThinkingBlock):
            self._texts["thinking"] = _Text(start.thinking)

    def _read(self, field: str) -> str:
        text = self._texts.get(field)
        return "" if text is None else text.read(self.done)

    @property
    def type(self) -> str:
        """The block's type, such as ``text`` or ``tool_use``. Empty if neither the start nor a delta shows it."""
        block = self._blank if self.start is None else self.start
        if block is None:
            return ""
        return str(block.__struct_config__.tag) if isinstance(block, Struct) else block.type or ""

    @property
    def id(self) -> str | None:
        """The id of a tool call; None for other blocks."""
        return self.start.id if isinstance(self.start, _WITH_INPUT) else None

    @property
    def name(self) -> str | None:
        """The called tool's name; None for other blocks."""
        return self.start.name if isinstance(self.start, _WITH_INPUT) else None

    @property
    def done(self) -> bool:
        """True if the block is complete: its stop, or the stop of the message, was seen."""
        return self._stopped or self._state.done

    @property
    def text(self) -> str:
        """The text so far. While the block streams, half of a surrogate pair at the end is omitted.

        A read after new text takes time proportional to the length, so reading after each delta is quadratic. To show a
        text while it streams, use the text of each event's delta.
        """
        return self._read("text")

    @property
    def thinking(self) -> str:
        """The reasoning so far. Reading it is as costly as reading :attr:`text`."""
        return self._read("thinking")

    @property
    def signature(self) -> str:
        """A thinking block's signature; empty before the signature arrives."""
        given = [delta.signature for delta in self._deltas if isinstance(delta, SignatureDelta)]
        if not given and self._whole and isinstance(self.start, ThinkingBlock):
            return self.start.signature or ""
        return given[-1] if given else ""

    @property
    def estimated_tokens(self) -> int:
        """The sum of the token estimates in thinking deltas; 0 if there are none."""
        return sum(delta.estimated_tokens or 0 for delta in self._deltas if isinstance(delta, ThinkingDelta))

    @property
    def citations(self) -> list[Citation]:
        """The citations so far, including citations in the block's start."""
        first = self.start.citations if isinstance(self.start, TextBlock) else None
        return [*(first or ()), *(delta.citation for delta in self._deltas if isinstance(delta, CitationsDelta))]

    @property
    def unknown_deltas(self) -> list[UnknownDelta]:
        """The deltas of an unknown type, and deltas that do not fit their type, in order. They have no other effect."""
        return [delta for delta in self._deltas if isinstance(delta, UnknownDelta)]

    @property
    def partial_json(self) -> str:
        """The JSON text of a tool's input so far, as received. Reading it is as costly as reading :attr:`text`."""
        return self._read("partial_json")

    @property
    def input(self) -> Any:
        """The tool's input; while the block streams, the part that can be read so far.

        That part is the beginning of the final input, or ``{}`` if nothing can be read. Each object has its first keys
        and each array its first items, and only the last of these may be incomplete. A string has its characters so
        far, without an incomplete escape. A number has its digits so far. A key without a value is omitted. As the
        input grows, no part of it disappears, unless a key is repeated, or the text turns out not to be JSON or to be
        nested more than about 200 levels deep (such input is read only when it is complete). In an incomplete input, a
        lone surrogate reads as U+FFFD.

        A read after new text parses the whole text again, so reading after each delta is quadratic. Without new text,
        the same object is returned: do not change it.
        """
        return self._read_input()[2]

    @property
    def input_error(self) -> str | None:
        """Why the complete input is not JSON, without quoting the input. None if it is JSON."""
        return self._read_input()[3]

    def _read_input(self) -> tuple[int, bool, Any, str | None]:
        start, read = self.start, self._input
        if "partial_json" not in self._texts:
            # The start event of an MCP call has the input. For other calls only a block in a message's start has it.
            given = isinstance(start, McpToolUseBlock) or (self._whole and isinstance(start, _WITH_INPUT))
            read = self._input = read or (0, True, getattr(start, "input", None) if given else {}, None)
            return read
        text, done = self._read("partial_json"), self.done
        if read is None or read[:2] != (len(text), done):
            value, error = _final_input(text) if done else (read_part(text), None)
            read = self._input = (len(text), done, value, error)
        return read

    @property
    def left_out(self) -> bool:
        """True for a complete text block with blank text: the CLI writes no ``assistant`` line for it."""
        if not self.done or self.type != "text":
            return False
        text = self.text
        return text in _NO_TEXT or not text.strip(_JS_BLANK)

    def content(self) -> ContentBlock:
        """Return the block so far, as in the ``assistant`` line.

        A tool call without a start gets an empty id and name. A block of an unknown type is returned as in its start.
        """
        start = self._blank if self.start is None else self.start
        if start is None:
            return UnknownBlock.because({}, "its start was not seen")
        if isinstance(start, TextBlock):
            return replace(start, text=self.text, citations=self.citations or start.citations)
        if isinstance(start, ThinkingBlock):
            return replace(start, thinking=self.thinking, signature=self.signature)
        if isinstance(start, _WITH_INPUT):
            return replace(start, input=self.input)
        if isinstance(start, CompactionBlock):
            for delta in self._deltas:
                if isinstance(delta, CompactionDelta):
                    start = replace(start, **_given(asdict(delta)))
        return start

    def _add(self, delta: Delta) -> _Text | None:
        """Take the first delta of a text, or a delta with more than text. Return the text it continues, or None."""
        self._blank = self._blank or _BLANKS.get(type(delta))
        field = TEXT_FIELDS.get(type(delta))
        if field is None or (isinstance(delta, ThinkingDelta) and delta.estimated_tokens):
            self._deltas.append(delta)
        return None if field is None else self._texts.setdefault(field, _Text())

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
    """A message's content after some of its marks were applied."""

    __slots__ = ("abandoned", "blocks", "done", "error", "message", "others", "started", "text")

    def __init__(self) -> None:
        #: The message without its content.
        self.message: ApiMessage = _NOT_STARTED
        self.started: bool = False
        self.blocks: dict[int, PartialBlock] = {}
        #: The text that the next delta may continue; None if there is none.
        self.text: _Text | None = None
        self.done: bool = False
        self.abandoned: bool = False
        self.error: ErrorEvent | None = None
        self.others: list[Event] = []

    def end_text(self, count: int) -> None:
        """End the text that could be continued, with ``count`` pieces."""
        if self.text is not None:
            self.text.end = count
            self.text = None

    def apply(self, event: Event | None, count: int, pieces: list[str] | None = None) -> None:
        """Apply a mark.

        Args:
            event: the event; None abandons the message.
            count: number of pieces of the text before the event.
            pieces: for a snapshot: the pieces of the text that the event begins. None for a message that grows.
        """
        self.end_text(count)
        if isinstance(event, ContentBlockDeltaEvent):
            block = self.blocks.get(event.index)
            if block is None:
                block = self.blocks[event.index] = PartialBlock(self, event.index, None)
            self.text = block._add(event.delta)
            if self.text is not None:
                self.text.end = None
                self.text.pieces = self.text.pieces if pieces is None else pieces
        elif isinstance(event, ContentBlockStartEvent):
            self.blocks[event.index] = PartialBlock(self, event.index, event.content_block)
        elif isinstance(event, ContentBlockStopEvent) and event.index in self.blocks:
            self.blocks[event.index]._stopped = True
        elif isinstance(event, MessageStartEvent):
            self.message, self.started = event.message, True
            self.blocks = {at: PartialBlock(self, at, block, True) for at, block in enumerate(event.message.content)}
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

    def _end(self, event: MessageDeltaEvent) -> None:
        usage = {
            name: value
            for name, value in asdict(event.usage).items()
            if value is not None and value is not UNSET and (value or name not in _INPUT_COUNTS)
        }
        end = {**asdict(event), **asdict(event.delta), "usage": replace(self.message.usage or Usage(), **usage)}
        del end["delta"]
        self.message = replace(self.message, **_given(end))


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not UNSET}
