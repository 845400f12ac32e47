"""Messages as a live view: what the model says while it says it, tools, questions, results.

Knows messages and a :class:`Page`; not where messages come from. Text appears as its deltas come, and the finished
blocks that repeat it are not shown again. Where several speak at once, one has the floor until its block ends; what the
others say in the meantime is shown after that.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

from msgspec import UNSET

from claude_wire import messages
from claude_wire.accumulate import Accumulator, PartialMessage
from claude_wire.codec.objects import SURROGATE
from claude_wire.messages import Message
from claude_wire.messages.control.envelopes import RequestId
from claude_wire.support import one_line, printable, prose
from claude_wire_kit.events.names import tag
from claude_wire_kit.terminal.calls import call_lines, call_name, returned
from claude_wire_kit.terminal.excerpts import (
    block_name,
    content_text,
    detail,
    excerpt,
    plain_json,
)
from claude_wire_kit.terminal.notices import ERROR, QUIET, WARNING, Notice, activity, notice
from claude_wire_kit.terminal.page import Page
from claude_wire_kit.terminal.questions import answer, prompt_of, question, request
from claude_wire_kit.terminal.results import result_notices
from claude_wire_kit.usage.meter import UsageMeter

__all__ = ["LiveView"]

#: This many calls, requests, prompts and subagents are remembered, for later messages about them.
MAX_REMEMBERED = 1000

#: This many texts are remembered, because results repeat them.
MAX_SAID = 20

#: The styles of the two types of blocks whose text grows.
STYLES = {"text": "", "thinking": "dim italic"}

#: The tools that start subagents.
AGENT_TOOLS = ("Agent", "Task")

T = TypeVar("T")


class _Agent(NamedTuple):
    """A subagent: what it is called, and how deep it is, 1 for those of the main conversation."""

    label: str
    level: int


class _Call(NamedTuple):
    """A tool that was called, and the level of who called it."""

    name: str
    input: Any
    level: int


@dataclass(eq=False)
class _Streamed:
    """A block that deltas bring, and how much of it was shown."""

    index: int
    #: ``text`` or ``thinking``.
    type: str
    #: In characters.
    shown: int = 0
    #: Whether all that came was shown, so that what comes next can be shown as it is.
    whole: bool = True


@dataclass(eq=False)
class _Stream:
    """A message that deltas bring."""

    partial: PartialMessage
    #: Blocks that no assistant line has repeated yet.
    blocks: deque[_Streamed] = field(default_factory=lambda: deque[_Streamed]())


class LiveView:
    """Shows messages one after another, in the order in which they come.

    Args:
        page: where they are shown.

    Attributes:
        last_result: the last result that was shown.
    """

    def __init__(self, page: Page) -> None:
        self.last_result: messages.ResultMessage | None = None
        self._page = page
        self._accumulator = Accumulator()
        self._streams: dict[tuple[str | None, str | None], _Stream] = {}
        #: The message whose text is shown while it grows.
        self._floor: _Stream | None = None
        #: The call whose subagent was shown last; None for the main conversation.
        self._speaker: str | None = None
        self._agents: dict[str, _Agent] = {}
        #: Calls without a result yet.
        self._calls: dict[str, _Call] = {}
        #: Requests of the CLI without an answer yet, by their subtype.
        self._asked: dict[RequestId, str] = {}
        #: Prompts that were shown when the host sent them, and which the CLI may repeat.
        self._prompts: deque[str] = deque(maxlen=MAX_REMEMBERED)
        self._header: tuple[str | None, ...] = ()
        #: The last texts of the main conversation. A result repeats them, at times those of several turns.
        self._said: deque[str] = deque(maxlen=MAX_SAID)
        self._usage = UsageMeter()
        self._input_chars = 0

    @property
    def spent_usd(self) -> float:
        """What all turns have cost that were shown, in US dollars, as far as their results say."""
        return self._usage.total.cost_usd

    def input_of(self, tool_use_id: str) -> Any:
        """The input of a call that was shown and has no result yet, else None."""
        call = self._calls.get(tool_use_id)
        return None if call is None else call.input

    # --- what the CLI writes ------------------------------------------------------------------------------------------

    def show(self, message: Message | messages.InvalidLine) -> None:
        """Show what a message of the CLI adds; many add nothing."""
        partial = self._accumulator.add(message)
        match message:
            case messages.StreamEvent(event=messages.ErrorEvent(error=error)):
                self._page.line(f"! API error: {detail(error.message or error.type or '')}", ERROR)
            case messages.StreamEvent():
                if partial is not None:
                    self._event(message, partial)
            case messages.AssistantMessage():
                self._assistant(message)
            case messages.UserMessage():
                self._user(message)
            case messages.ResultMessage():
                self._result(message)
            case messages.InitMessage():
                self._init(message)
            case messages.InvalidLine():
                self._invalid(message, "line")
            case messages.ControlRequest(request_id=request_id, request=asked):
                self._question(request_id, asked)
            case messages.ControlCancelRequest(request_id=request_id):
                if self._asked.pop(request_id, None) is not None:
                    self._page.line("? no longer asked", WARNING)
            case messages.ControlResponse(response=messages.ControlError(error=error)):
                self._page.line(f"! a request of the host failed: {detail(error)}", ERROR)
            case messages.PermissionRequestMessage():
                self._page.line(f"? may {call_name(message.tool_name or message.name or 'a tool')} run?", WARNING)
            case messages.SystemToolResultMessage() | messages.ToolResultMessage():
                self._tool_result(returned(message), None)
            case _:
                self._notice(message)

    def _notice(self, message: Message) -> None:
        if isinstance(message, messages.TaskStartedMessage) and message.tool_use_id is not None:
            self._agent(message.tool_use_id, message.subagent_type, message.description)
        busy = activity(message)
        if busy is not None:
            self._page.activity(*busy)
        self._line(notice(message))

    def _line(self, told: Notice | None) -> None:
        if told is not None:
            self._page.line(told.text, told.style)

    def _invalid(self, line: messages.InvalidLine, what: str) -> None:
        self._page.line(f"! {what} {line.line_number}, byte {line.offset}: {line.reason}", ERROR)
        # A line above the limit comes with its beginning only.
        text = line.raw.decode("utf-8", "backslashreplace")
        if text.strip():
            self._page.line("\n".join(f"    {part}" for part in excerpt(text, 2)), QUIET)

    def _init(self, init: messages.InitMessage) -> None:
        header = (init.model, init.cwd, init.permissionMode)
        if header != self._header:  # it comes with every turn, mostly unchanged
            self._header = header
            version = f", CLI {init.claude_code_version}" if init.claude_code_version else ""
            mode = f", permission mode {init.permissionMode}" if init.permissionMode not in (None, "default") else ""
            self._page.line(printable(f"* {init.model} in {init.cwd}{version}{mode}", keep=""), "bold cyan")
        self._page.activity("waiting for the model")

    # --- text while it grows ------------------------------------------------------------------------------------------

    def _event(self, message: messages.StreamEvent, partial: PartialMessage) -> None:
        key = (message.session_id, message.parent_tool_use_id)
        stream = self._streams.get(key)
        if stream is None or stream.partial is not partial:
            if stream is not None and self._floor is stream:
                self._yield_floor()
            stream = _Stream(partial)
            _remember(self._streams, key, stream)
        match message.event:
            case messages.ContentBlockDeltaEvent(index=index, delta=messages.TextDelta(text=piece)) if piece:
                self._grow(stream, index, "text", piece)
            case messages.ContentBlockDeltaEvent(index=index, delta=messages.ThinkingDelta(thinking=piece)) if piece:
                self._grow(stream, index, "thinking", piece)
            case messages.ContentBlockDeltaEvent(delta=messages.InputJsonDelta(partial_json=piece)):
                self._input_chars += len(piece)
                self._page.activity("writing a tool's input", f"{self._input_chars:,} characters")
            case messages.ContentBlockStartEvent():
                self._input_chars = 0
            case messages.ContentBlockStopEvent():
                if self._floor is stream:
                    self._yield_floor()
            case _:
                pass

    def _grow(self, stream: _Stream, index: int, type: str, piece: str) -> None:
        blocks = stream.blocks
        if not blocks or blocks[-1].index != index or blocks[-1].type != type:
            blocks.append(_Streamed(index, type))
        block = blocks[-1]
        if self._floor is None:
            self._floor = stream
        elif self._floor is not stream:
            block.whole = False
            return
        if block.whole and (piece.isascii() or not SURROGATE.search(piece)):
            block.shown += len(piece)
        else:
            # Others had the floor, or half of a character waits for its other half: the accumulator has it all.
            partial = stream.partial.block(index)
            text = "" if partial is None else partial.text if type == "text" else partial.thinking
            block.whole = not "\ud800" <= piece[-1] <= "\udbff"
            piece, block.shown = text[block.shown :], len(text)
        level = self._speaks(stream.partial.parent_tool_use_id)
        self._page.activity("")
        self._page.text(prose(piece), STYLES[type], level)

    def _yield_floor(self) -> None:
        self._page.end_text()
        self._floor = None

    def _repeats(self, message: messages.AssistantMessage, type: str) -> int:
        """How many characters of a finished block were shown while it grew."""
        stream = self._streams.get((message.session_id, message.parent_tool_use_id))
        if stream is None or stream.partial.id != message.message.id:
            return 0
        for block in stream.blocks:
            if block.type == type:
                stream.blocks.remove(block)
                break
        else:
            return 0
        if self._floor is stream:
            self._floor = None
        return block.shown

    # --- whole messages -----------------------------------------------------------------------------------------------

    def _assistant(self, message: messages.AssistantMessage) -> None:
        parent = message.parent_tool_use_id
        if parent is not None and parent not in self._agents and (message.subagent_type or message.task_description):
            self._agent(parent, message.subagent_type, message.task_description)
        for block in message.content:
            match block:
                case messages.TextBlock(text=text):
                    if parent is None:
                        self._said.append(text.strip())
                    style = ERROR if message.error_reason else STYLES["text"]
                    self._whole(text, style, self._repeats(message, "text"), parent)
                case messages.ThinkingBlock(thinking=thinking):
                    self._whole(thinking, STYLES["thinking"], self._repeats(message, "thinking"), parent)
                case messages.RedactedThinkingBlock():
                    self._page.line("(redacted thinking)", STYLES["thinking"], self._speaks(parent))
                case messages.ToolUseBlock() | messages.ServerToolUseBlock() | messages.McpToolUseBlock():
                    self._tool_use(block, parent)
                case _:
                    self._other_block(block, parent)
        if message.error_reason:
            self._page.line(f"! API error: {one_line(message.error_reason)}", ERROR, self._speaks(parent))
        if message.aborted:
            self._page.line("(cut off)", QUIET, self._speaks(parent))

    def _whole(self, text: str, style: str, shown: int, parent: str | None) -> None:
        rest = prose(text[shown:])
        if shown:
            self._page.text(rest, style, self._speaks(parent))
        elif rest.strip("\n"):
            self._page.line(rest.strip("\n"), style, self._speaks(parent))
        self._page.end_text()

    def _tool_use(
        self, block: messages.ToolUseBlock | messages.ServerToolUseBlock | messages.McpToolUseBlock, parent: str | None
    ) -> None:
        level = self._speaks(parent)
        name = call_name(block.name)
        self._page.line("+ " + "\n".join(call_lines(block.name, block.input)), "cyan", level)
        _remember(self._calls, block.id, _Call(name, block.input, level))
        given: Any = block.input
        if block.name in AGENT_TOOLS and isinstance(given, dict):
            parts = (cast("dict[str, Any]", given).get(name) for name in ("subagent_type", "description"))
            self._agent(block.id, *(part for part in parts if isinstance(part, str)))
        self._page.activity(f"running {name}")

    def _other_block(self, block: messages.ContentBlock, parent: str | None) -> None:
        """A block that is neither text nor a call: mostly the result of a tool that the API runs."""
        id = getattr(block, "tool_use_id", None)
        if isinstance(id, str):
            self._tool_result(messages.ToolResultBlock(id, plain_json(block.to_dict())), parent)
        else:
            self._page.line(f"[{block_name(block)}]", QUIET, self._speaks(parent))

    def _user(self, message: messages.UserMessage) -> None:
        parent = message.parent_tool_use_id
        content = message.content
        if not isinstance(content, str):
            for result in message.tool_results:
                self._tool_result(result, parent)
            content = [block for block in content if not isinstance(block, messages.ToolResultBlock)]
        text = content_text(content)
        if message.isReplay:
            self._prompt(text)
        elif text.strip():
            self._say(text, QUIET if message.isSynthetic else "bold", self._speaks(parent))

    def _prompt(self, text: str) -> None:
        """A prompt that the CLI repeats, unless it was shown already."""
        if text in self._prompts:
            self._prompts.remove(text)
        elif text.strip():
            self._say(text, "bold", self._speaks(None))

    def _say(self, text: str, style: str, level: int) -> None:
        self._page.line("> " + "\n  ".join(excerpt(text)), style, level)

    def _tool_result(self, result: messages.ToolResultBlock, parent: str | None) -> None:
        call = self._calls.pop(result.tool_use_id, None)
        level = self._speaks(parent)
        first, *rest = excerpt(content_text(result.content or None))
        # Where others of the same caller are under way it is not clear whose result this is.
        others = call is not None and any(other.level == call.level for other in self._calls.values())
        name = f"{call.name}: " if call is not None and others else ""
        lines = [f"  = {name}{first}".rstrip(), *(f"    {line}" for line in rest)]
        self._page.line("\n".join(lines), "red" if result.is_error else "green", level)
        if self._floor is not None and self._floor.partial.parent_tool_use_id == result.tool_use_id:
            self._yield_floor()  # a subagent that was ended in mid-sentence
        running = [call.name for call in self._calls.values()]
        self._page.activity(f"running {running[-1]}" if running else "waiting for the model")

    # --- subagents ----------------------------------------------------------------------------------------------------

    def _agent(self, id: str, *parts: str | None) -> _Agent:
        call = self._calls.get(id)
        level = call.level + 1 if call is not None else self._agents[id].level if id in self._agents else 1
        label = ": ".join(filter(None, parts)) or (call.name if call else "")
        return _remember(self._agents, id, _Agent(one_line(label), level))

    def _speaks(self, parent: str | None) -> int:
        """The level of who speaks next; a subagent is named when it begins."""
        agent = None if parent is None else self._agents.get(parent) or self._agent(parent)
        if parent != self._speaker:
            self._speaker = parent
            if agent is not None:
                self._page.line(f"-- subagent {agent.label}".rstrip(), "bold magenta", agent.level)
        return 0 if agent is None else agent.level

    # --- questions ----------------------------------------------------------------------------------------------------

    def _question(self, request_id: RequestId, asked: messages.ControlRequestPayload) -> None:
        prompt = prompt_of(asked)
        if prompt is not None:
            self._prompt(prompt)
        self._line(question(asked))
        name = tag(asked)
        _remember(self._asked, None if request_id is UNSET else request_id, name)
        if name in ("can_use_tool", "elicitation", "request_user_dialog"):
            self._page.activity("waiting for an answer")

    def typed(self, prompt: str) -> None:
        """The user has typed a prompt, which stands on the page by that."""
        self._prompts.append(prompt)
        self._speaker = None

    def sent(self, message: Message | messages.InvalidLine) -> None:
        """Show what the host wrote."""
        match message:
            case messages.UserMessage():
                text = content_text(message.content)
                self._prompts.append(text)
                self._say(text, "bold", self._speaks(None))
            case messages.ControlRequest(request=asked):
                self._line(request(asked, "<"))
            case messages.ControlResponse():
                self._line(answer(self._asked.pop(message.request_id, None), message))
            case messages.ControlCancelRequest():
                self._page.line("< no longer asked", QUIET)
            case messages.PermissionReply(allow=allow):
                self._page.line("? allowed" if allow else "? denied", "green" if allow else "red")
            case messages.InvalidLine():
                self._invalid(message, "line to the CLI")
            case _:
                pass

    # --- results ------------------------------------------------------------------------------------------------------

    def _result(self, result: messages.ResultMessage) -> None:
        self.last_result = result
        self._floor = None
        self._speaks(None)
        text = result.result or ""
        if text.strip() and text.strip() not in self._said and result.structured_output is None:
            self._whole(text, "" if result.ok else ERROR, 0, None)
        for told in result_notices(result, self._usage.add(result)):
            self._line(told)
        self._page.activity("")


def _remember(known: dict[Any, T], key: Any, value: T) -> T:
    """Keep a value, and forget the oldest when there are too many."""
    known[key] = value
    if len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]
    return value
