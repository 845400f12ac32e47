"""Messages as the turns of a page: who said what, which tools were called, and what came of it.

Knows messages and boxes of markup; not files. What belongs to a call stands in the call: the change that it makes, who
allowed it, what its subagent said, its result.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import UNSET

from claude_wire import messages
from claude_wire.accumulate import Accumulator, PartialMessage
from claude_wire.messages import Message
from claude_wire.messages.control.envelopes import RequestId
from claude_wire.support import fields_of, items_of, moment, one_line
from claude_wire.transcripts import AiTitleRecord, CostStateRecord, CustomTitleRecord, Entry, Transcript
from claude_wire.transcripts import messages as transcript_messages
from claude_wire_kit.events.names import tag
from claude_wire_kit.html.blocks import block_markup, content_markup
from claude_wire_kit.html.calls import INPUT, Calls
from claude_wire_kit.html.markup import Box, Room, clock, folded, inline, prose, rows
from claude_wire_kit.terminal.calls import returned
from claude_wire_kit.terminal.excerpts import plain_json
from claude_wire_kit.terminal.notices import ERROR, WARNING, Notice, notice
from claude_wire_kit.terminal.questions import answer, permission_question, prompt_of, question, request
from claude_wire_kit.terminal.results import result_notices, token_counts
from claude_wire_kit.usage.meter import UsageMeter

__all__ = ["Facts", "Story"]

#: So many prompts and texts are remembered, because the CLI repeats them.
MAX_REMEMBERED = 100

#: What the CLI writes in the user's place.
INTERRUPTED = "[Request interrupted by user"

#: What the marks of notices are, as classes of the page.
MARKS = {"!": "error", "?": "question", "#": "hook", "<": "host", "=": "result", "*": "note"}


@dataclass
class Facts:
    """What the head of the page says."""

    title: str = ""
    #: In the order in which they were seen.
    sessions: dict[str, None] = field(default_factory=lambda: dict[str, None]())
    models: dict[str, None] = field(default_factory=lambda: dict[str, None]())
    folder: str | None = None
    version: str | None = None
    first: datetime | None = None
    last: datetime | None = None
    #: In US dollars; None if nothing says it.
    cost: float | None = None
    calls: int = 0
    errors: int = 0
    turns: int = 0

    def seen(self, stamp: str | None) -> datetime | None:
        """The time of a stamp, which is one of the session."""
        when = moment(stamp)
        if when is not None:
            self.first = when if self.first is None else min(self.first, when)
            self.last = when if self.last is None else max(self.last, when)
        return when


class _Stream:
    """A message that deltas bring, and how many of its blocks have come as a whole."""

    __slots__ = ("partial", "whole")

    def __init__(self, partial: PartialMessage) -> None:
        self.partial = partial
        self.whole = 0


class Story:
    """Makes the turns of a page of messages, in the order in which they came.

    Args:
        transcript: whether they are those of a transcript, where each prompt begins a turn and nothing ends one.

    Attributes:
        box: all turns.
        contents: a link to each turn.
        facts: what the head of the page says.
    """

    def __init__(self, room: Room, *, transcript: bool) -> None:
        self.box: Box = Box(room)
        self.contents: Box = Box(room)
        self.facts: Facts = Facts()
        self._transcript = transcript
        self._turn: Box | None = None
        self._calls = Calls()
        self._asked: dict[RequestId, tuple[str, Box]] = {}
        self._prompts: deque[str] = deque(maxlen=MAX_REMEMBERED)
        self._said: deque[str] = deque(maxlen=MAX_REMEMBERED)
        self._usage = UsageMeter()
        #: The usage of each answer of a turn; its last line has the final one.
        self._answers: dict[str, messages.Usage] = {}
        self._accumulator = Accumulator()
        self._streams: dict[tuple[str | None, str | None], _Stream] = {}

    def close(self) -> None:
        """End what is open: calls without a result, and texts that were cut off."""
        self._cut_off()
        self._end_turn()
        self._calls.close()
        self.facts.calls = self._calls.count
        total = self._usage.total
        if total.turns and self.facts.cost is None:
            self.facts.cost = total.cost_usd

    def tell(self, transcript: Transcript) -> None:
        """Add the active branch of a transcript, after the lines of it that are no records."""
        for record in transcript.records:
            match record:
                case CustomTitleRecord(customTitle=title) | AiTitleRecord(aiTitle=title):
                    self.facts.title = title.strip() or self.facts.title
                case CostStateRecord(totalCostUSD=cost) if cost is not None:
                    self.facts.cost = cost
                case Entry():
                    self.facts.folder = self.facts.folder or record.cwd
                    self.facts.version = self.facts.version or record.version
                case _:
                    pass
        for line in transcript.invalid:
            self.show(line)
        for message in transcript_messages(transcript):
            self.show(message)

    # --- places -------------------------------------------------------------------------------------------------------

    def _begin_turn(self) -> Box:
        self._end_turn()
        self.facts.turns += 1
        number, turn = self.facts.turns, self.box.box()
        heading = f"<h2 id=t{number}><a href=#t{number}>Turn {number:,}</a></h2>"
        self.box.add(f"<section class=turn aria-labelledby=t{number}>{heading}", turn, "</section>\n")
        self._turn = turn
        return turn

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None and self._answers:
            total = messages.Usage(
                input_tokens=sum(each.input_tokens or 0 for each in self._answers.values()),
                output_tokens=sum(each.output_tokens or 0 for each in self._answers.values()),
                cache_read_input_tokens=sum(each.cache_read_input_tokens or 0 for each in self._answers.values()),
            )
            count = len(self._answers)
            turn.add(f"<p class=quiet>{count:,} answer{'s' * (count > 1)}, tokens: {token_counts(total)}</p>")
        self._answers.clear()

    def _place(self, parent: str | None = None) -> Box:
        """Where something is added that the main conversation says, or the subagent of a call."""
        if parent is None:
            return self._begin_turn() if self._turn is None else self._turn
        call = self._calls.get(parent)
        if call is None:
            call = self._calls.open(self._place(), parent, "Agent")
        return call.subagent()

    # --- what the CLI writes ------------------------------------------------------------------------------------------

    def show(self, message: Message | messages.InvalidLine) -> None:
        """Add what a message of the CLI says; many say nothing."""
        if isinstance(message, messages.StreamEvent):
            self._event(message)
            return
        self._accumulator.add(message)
        session = None if isinstance(message, messages.InvalidLine) else getattr(message, "session_id", None)
        if isinstance(session, str) and len(self.facts.sessions) < MAX_REMEMBERED:
            self.facts.sessions.setdefault(session[:200])
        match message:
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
                name_and_place = self._asked.pop(request_id, None)
                if name_and_place is not None:
                    self._notice(Notice("? no longer asked", WARNING), name_and_place[1])
            case messages.ControlResponse(response=messages.ControlError(error=error)):
                self._notice(Notice(f"! a request of the host failed: {one_line(error)}", ERROR), self._place())
            case messages.SystemToolResultMessage() | messages.ToolResultMessage():
                self._tool_result(returned(message), None)
            case _:
                told = notice(message)
                if told is not None:
                    self._notice(told, self._place())

    def _init(self, init: messages.InitMessage) -> None:
        facts = self.facts
        facts.folder, facts.version = facts.folder or init.cwd, facts.version or init.claude_code_version
        self._model(init.model)

    def _model(self, name: str | None) -> None:
        if name and name != "<synthetic>" and len(self.facts.models) < MAX_REMEMBERED:
            self.facts.models.setdefault(name[:200])

    def _invalid(self, line: messages.InvalidLine, what: str) -> None:
        place = self._place()
        self._notice(Notice(f"! {what} {line.line_number:,}, byte {line.offset:,}: {line.reason}", ERROR), place)
        text = line.raw[:2000].decode("utf-8", "backslashreplace")
        if text.strip():
            place.add(folded(text))

    def _notice(self, told: Notice, place: Box) -> None:
        mark, first, rest = told.text[:1], *told.text.partition("\n")[::2]
        kind = MARKS.get(mark)
        if kind is None or (kind == "result" and told.style not in ("bold green", "bold red")):
            place.add(rows([told.text.removeprefix("= ")]) if rest else f"<p class=quiet>{inline(told.text, 2000)}</p>")
            return
        kind = {WARNING: "warning", ERROR: "error", "bold red": "error", "red": "error"}.get(told.style, kind)
        more = rows(line.strip() for line in rest.split("\n")) if rest else ""
        place.add(f"<div class={kind}>{inline(first[1:], 2000)}{more}</div>")

    # --- what is said -------------------------------------------------------------------------------------------------

    def _assistant(self, message: messages.AssistantMessage) -> None:
        parent, answer_id = message.parent_tool_use_id, message.message.id
        stream = self._streams.get((message.session_id, parent))
        if stream is not None and stream.partial.id == answer_id:
            stream.whole += len(message.content)
        when, place = self.facts.seen(message.timestamp), self._place(parent)
        self._model(message.model)
        if self._transcript and answer_id is not None and message.message.usage is not None:
            self._answers[answer_id] = message.message.usage
        for block in message.content:
            self._block(block, place, parent, when, failed=bool(message.error_reason))
        if message.error_reason:
            self.facts.errors += 1
            self._notice(Notice(f"! API error: {one_line(message.error_reason)}", ERROR), place)
        if message.aborted:
            place.add("<p class=warning>Cut off</p>")

    def _block(
        self, block: messages.ContentBlock, place: Box, parent: str | None, when: datetime | None, *, failed: bool
    ) -> None:
        match block:
            case messages.TextBlock(text=text):
                if parent is None:
                    self._said.append(text.strip())
                if text.strip():
                    who = "Subagent" if parent else "Claude"
                    self._say(place, who, "error" if failed else "model", prose(text), when)
            case messages.ThinkingBlock(thinking=thinking) if thinking.strip():
                about = f"Thinking <small>{len(thinking):,} characters</small>"
                place.add(f"<details class=thinking><summary>{about}</summary>{prose(thinking)}</details>")
            case messages.ThinkingBlock() | messages.RedactedThinkingBlock():
                place.add("<p class=quiet>Thinking that is not shown</p>")
            case messages.ToolUseBlock() | messages.ServerToolUseBlock() | messages.McpToolUseBlock():
                within = self._calls.get(parent)
                depth = 0 if within is None else within.depth + 1
                self._calls.open(place, block.id, block.name, block.input, depth=depth, when=when)
            case _:
                id = getattr(block, "tool_use_id", None)
                if isinstance(id, str):  # the result of a tool that the API runs
                    self._tool_result(messages.ToolResultBlock(id, plain_json(block.to_dict())), parent)
                else:
                    place.add(block_markup(block, plain=False))

    def _say(self, place: Box, who: str, kind: str, markup: str, when: datetime | None) -> None:
        place.add(f'<div class="say {kind}"><p class=who>{who} {clock(when)}</p>{markup}</div>')

    def _user(self, message: messages.UserMessage) -> None:
        parent, content, text = message.parent_tool_use_id, message.content, message.text
        when = self.facts.seen(message.timestamp)
        if not isinstance(content, str):
            about = [fields_of(each) for each in items_of(message.tool_result_meta)]
            for result in message.tool_results:
                meta = next((each for each in about if each.get("id") == result.tool_use_id), None)
                self._tool_result(result, parent, message.tool_use_result, meta)
            content = [block for block in content if not isinstance(block, messages.ToolResultBlock)]
        markup = content_markup(content, plain=False)
        if not markup:
            return
        if parent is not None:
            self._say(self._place(parent), "Prompt", "user", markup, when)
        elif message.isSynthetic:
            self._place().add(f"<details class=thinking><summary>The CLI adds</summary>{markup}</details>")
        elif text.startswith(INTERRUPTED):
            self._place().add(f"<p class=warning>{inline(text)}</p>")
        elif message.isReplay and text in self._prompts:
            self._prompts.remove(text)
        else:
            self._prompt(text, markup, when, begins=self._transcript and message.priority != "next")

    def _prompt(self, text: str, markup: str, when: datetime | None, *, begins: bool = False) -> None:
        if begins or self._turn is None:
            self._begin_turn()
            line = next((line.strip() for line in text.split("\n", 100) if line.strip()), "")
            self.facts.title = self.facts.title or line
            self.contents.add(f"<li><a href=#t{self.facts.turns}>{inline(line or 'Turn', 100)}</a></li>\n")
        self._say(self._place(), "Prompt", "user", markup, when)

    # --- text that no message has repeated ----------------------------------------------------------------------------

    def _event(self, message: messages.StreamEvent) -> None:
        partial = self._accumulator.add(message)
        if isinstance(message.event, messages.ErrorEvent):
            self._notice(Notice(f"! API error: {one_line(message.event.error.message or '')}", ERROR), self._place())
        if partial is None:
            return
        key = (message.session_id, message.parent_tool_use_id)
        stream = self._streams.get(key)
        if stream is None or stream.partial is not partial:
            if stream is not None:
                self._unfinished(stream)
            elif len(self._streams) >= 1024:
                self._cut_off()
            self._streams[key] = _Stream(partial)

    def _cut_off(self) -> None:
        for stream in self._streams.values():
            self._unfinished(stream)
        self._streams.clear()

    def _unfinished(self, stream: _Stream) -> None:
        """Show the blocks of a message that were never finished."""
        for block in [block for block in stream.partial.blocks if not block.left_out][stream.whole :]:
            if block.text.strip():
                place = self._place(stream.partial.parent_tool_use_id)
                self._say(place, "Claude", "model", prose(block.text), None)
                place.add("<p class=warning>Cut off</p>")

    # --- tools --------------------------------------------------------------------------------------------------------

    def _tool_result(
        self, result: messages.ToolResultBlock, parent: str | None, output: Any = None, meta: Any = None
    ) -> None:
        self.facts.errors += self._calls.end(result, lambda: self._place(parent), output, meta) != "done"

    # --- questions ----------------------------------------------------------------------------------------------------

    def _question(self, request_id: RequestId, asked: messages.ControlRequestPayload) -> None:
        prompt = prompt_of(asked)
        if prompt is not None and prompt.strip():
            if prompt in self._prompts:
                self._prompts.remove(prompt)
            else:
                self._prompt(prompt, prose(prompt), None)
                self._prompts.append(prompt)
        place = self._place()
        if isinstance(asked, messages.CanUseToolRequest):
            told: Notice | None = permission_question(asked)
            call = self._calls.get(asked.tool_use_id)
            if call is not None:
                place = call.permission
                call.expanded.set(" open")
        else:
            told = question(asked)
        if told is not None:
            self._notice(told, place)
        self._asked[None if request_id is UNSET else request_id] = tag(asked), place
        if len(self._asked) > MAX_REMEMBERED:
            del self._asked[next(iter(self._asked))]

    def sent(self, message: Message | messages.InvalidLine) -> None:
        """Add what the host wrote."""
        match message:
            case messages.UserMessage():
                markup = content_markup(message.content, plain=False)
                if markup:
                    self._prompt(message.text, markup, None)
                    self._prompts.append(message.text)
            case messages.ControlRequest(request=asked):
                told = request(asked, "<")
                if told is not None:
                    self._notice(told, self._place())
            case messages.ControlResponse():
                name, place = self._asked.pop(message.request_id, (None, None))
                told = answer(name, message)
                if told is not None:
                    self._notice(told, self._place() if place is None else place)
            case messages.PermissionReply(allow=allow):
                self._notice(Notice("? allowed" if allow else "? denied"), self._place())
            case messages.InvalidLine():
                self._invalid(message, "line to the CLI")
            case _:
                pass

    # --- results ------------------------------------------------------------------------------------------------------

    def _result(self, result: messages.ResultMessage) -> None:
        self._cut_off()
        turn, text = self._place(), (result.result or "").strip()
        if text and text not in self._said and result.structured_output is None:
            self._say(turn, "Claude" if result.ok else "Error", "model" if result.ok else "error", prose(text), None)
        self.facts.errors += not result.ok
        for told in result_notices(result, self._usage.add(result), INPUT):
            self._notice(told, turn)
        self._end_turn()
