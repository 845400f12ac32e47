"""Print a session's events on a :class:`Page`: streaming text, tools, questions and results.

The view prints deltas as they arrive, but not the whole text that repeats them. The main agent and its subagents may
stream at the same time. Then one of them has the floor until its message ends: the view prints this message first, and
the text of the others afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from claude_wire.messages import (
    CanUseToolRequest,
    InvalidLine,
    Message,
    PermissionResult,
    ResultMessage,
)
from claude_wire.support import one_line, printable, prose
from claude_wire_kit.events import events as e
from claude_wire_kit.events.bridge import Bridge
from claude_wire_kit.events.content import text_of
from claude_wire_kit.events.permissions import describe_permission
from claude_wire_kit.events.requests import describe_decision
from claude_wire_kit.events.tools import call_name
from claude_wire_kit.terminal.calls import call_lines
from claude_wire_kit.terminal.excerpts import detail, excerpt
from claude_wire_kit.terminal.notices import ERROR, QUIET, Lines, draw_notice, draw_question, draw_turn
from claude_wire_kit.terminal.page import Page

#: Maximum number of calls, of subagents and of streaming blocks to remember. Above this number, the view forgets the
#: oldest.
MAX_REMEMBERED = 1000

#: Maximum characters of text waiting for the floor. If a block would exceed the limit, the view prints the rest once
#: the block is whole.
MAX_WAITING_CHARS = 1 << 20

THINKING = "dim italic"

T = TypeVar("T")


class _Agent(NamedTuple):
    """A subagent: its label and its level. Subagents of the main conversation have level 1."""

    label: str
    level: int


class _Call(NamedTuple):
    """A tool call without a result, and the level of its caller."""

    name: str
    input: Any
    level: int


@dataclass(eq=False)
class _Block:
    #: The (conversation, subagent or None) that is writing the block, and the message's id.
    speaker: tuple[str | None, str | None]
    message: str
    #: The number of printed characters.
    shown: int = 0
    #: Text that is waiting for the floor, or for the second half of a surrogate pair.
    waiting: str = ""
    #: True if too much text was waiting. The view then prints the rest once the block is whole.
    is_late: bool = False


class LiveView:
    """Prints a session's messages on a page.

    Attributes:
        last_result: the latest result; None before the first.
        spent_usd: the cost of all turns so far in US dollars, according to their results.
    """

    def __init__(self, page: Page) -> None:
        self.last_result: ResultMessage | None = None
        self.spent_usd: float = 0.0
        self._page = page
        self._bridge = Bridge(progress=(), partial=True, details=True)
        self._blocks: dict[str, _Block] = {}
        # The speaker that has the floor, and its message.
        self._floor: tuple[tuple[str | None, str | None], str] | None = None
        # The last printed subagent, or None for the main conversation.
        self._speaker: str | None = None
        self._agents: dict[str, _Agent] = {}
        self._calls: dict[str, _Call] = {}

    def input_of(self, tool_use_id: str) -> Any:
        """Return the input of a printed call without a result, or None."""
        call = self._calls.get(tool_use_id)
        return None if call is None else call.input

    # --- messages -----------------------------------------------------------------------------------------------------

    def show(self, message: Message | InvalidLine) -> None:
        """Print a message from the CLI. Many messages print nothing."""
        if isinstance(message, ResultMessage):
            self.last_result = message
        for event in self._bridge.add(message):
            self.draw(event)

    def sent(self, message: Message | InvalidLine) -> None:
        for event in self._bridge.sent(message):
            self.draw(event)

    def typed(self, prompt: str) -> None:
        """Remember a prompt that the user typed in this terminal, and do not print it when the CLI repeats it."""
        self._bridge.expect_prompt(prompt)
        self._speaker = None

    def ask(self, request: CanUseToolRequest) -> None:
        """Print a permission question. The session passes questions to callbacks, not to :meth:`show`."""
        self._permission_request(describe_permission(request, details=True))

    def decide(self, result: PermissionResult) -> None:
        """Print the answer to a permission question."""
        self._notice(describe_decision(result))

    # --- events -------------------------------------------------------------------------------------------------------

    def draw(self, event: e.UiEvent) -> None:
        match event:
            case e.ClaudeResponse():
                self._text(event, ERROR if event.failed else "")
            case e.Thinking(redacted=True):
                self._page.line("(redacted thinking)", THINKING, self._speak(event.agentId))
            case e.Thinking():
                self._text(event, THINKING)
            case e.UserPrompt():
                text = excerpt(text_of(event.parts))
                style = QUIET if event.origin == "cli" else "bold"
                self._page.line("> " + "\n  ".join(text), style, self._speak(event.agentId))
            case e.Operation(state="started"):
                self._call(event)
            case e.Operation(content=content) if content is not None:
                self._result(event)
            case e.SubagentProgress(agentId=id, name=name, summary=summary) if id not in self._agents:
                self._agent(id, None if name == "subagent" else name, summary)
            case e.PermissionRequest():
                self._permission_request(event)
            case e.Notice():
                self._notice(event)
            case e.TurnComplete():
                self._turn(event)
            case e.SessionStarted():
                version = f", CLI {event.version}" if event.version else ""
                mode = event.permissionMode
                mode = f", permission mode {mode}" if mode not in (None, "default") else ""
                self._page.line(printable(f"* {event.model} in {event.folder}{version}{mode}", keep=""), "bold cyan")
            case e.Activity(what=what, detail=more):
                self._page.activity(one_line(what), detail(more or ""))
            case _:
                pass

    def _lines(self, lines: Lines, level: int = 0) -> None:
        self._page.line(lines.text, lines.style, level)

    def _permission_request(self, event: e.PermissionRequest) -> None:
        self._lines(draw_question(event))
        self._page.activity("waiting for an answer")

    def _notice(self, event: e.Notice) -> None:
        level = 0 if event.agentId is None and event.kind not in ("block", "cut_off") else self._speak(event.agentId)
        self._lines(draw_notice(event), level)
        if event.kind == "invalid_line" and event.detail is not None:
            # If the line is very long, ``detail`` has only its beginning.
            self._page.line("\n".join(f"    {line}" for line in excerpt(event.detail, 2)), QUIET)
        elif event.kind == "question" and event.level == "warning":
            self._page.activity("waiting for an answer")

    def _turn(self, event: e.TurnComplete) -> None:
        self.spent_usd += event.costUsd or 0
        self._floor = None
        self._speak(None)
        for lines in draw_turn(event):
            self._lines(lines)
        self._page.activity("")

    # --- text ---------------------------------------------------------------------------------------------------------

    def _text(self, event: e.ClaudeResponse | e.Thinking, style: str) -> None:
        if event.partial and event.id is not None:
            self._grow(event, event.id, style)
            return
        block = None if event.id is None else self._blocks.pop(event.id, None)
        rest = prose(event.content[block.shown if block is not None else 0 :])
        if block is not None and self._floor == (block.speaker, block.message):
            self._floor = None
        if block is not None and block.shown:
            self._page.text(rest, style, self._speak(event.agentId))
        elif rest.strip("\n"):
            self._page.line(rest.strip("\n"), style, self._speak(event.agentId))
        self._page.end_text()

    def _grow(self, event: e.ClaudeResponse | e.Thinking, id: str, style: str) -> None:
        """Print a delta if its speaker has the floor. Otherwise, keep it."""
        speaker, message = (event.conversationId, event.agentId), id.rpartition(".")[0]
        if self._floor is not None and self._floor[0] == speaker and self._floor[1] != message:
            self._yield_floor()  # the speaker's previous message is unfinished
        if not event.content:
            if self._floor == (speaker, message):
                self._yield_floor()
            return
        block = self._blocks.get(id) or _remember(self._blocks, id, _Block(speaker, message))
        self._floor = self._floor or (speaker, message)
        if self._floor != (speaker, message):
            self._hold(block, event.content)
        elif not block.is_late:
            text = _whole_characters(block.waiting + event.content)
            # Hold back the first half of a surrogate pair until the second half arrives.
            end = len(text) - ("\ud800" <= text[-1] <= "\udbff")
            block.waiting = text[end:]
            block.shown += end
            level = self._speak(event.agentId)
            self._page.activity("")
            self._page.text(prose(text[:end]), style, level)

    def _hold(self, block: _Block, text: str) -> None:
        if not block.is_late:
            block.waiting += text
            if sum(len(each.waiting) for each in self._blocks.values()) > MAX_WAITING_CHARS:
                block.waiting, block.is_late = "", True

    def _yield_floor(self) -> None:
        self._page.end_text()
        self._floor = None

    # --- tools and subagents ------------------------------------------------------------------------------------------

    def _call(self, event: e.Operation) -> None:
        level = self._speak(event.agentId)
        name = call_name(event.name or "")
        self._page.line("+ " + "\n".join(call_lines(event.name or "", event.input)), "cyan", level)
        _remember(self._calls, event.id, _Call(name, event.input, level))
        self._page.activity(f"running {name}")

    def _result(self, event: e.Operation) -> None:
        call = self._calls.pop(event.id, None)
        level = self._speak(event.agentId)
        first, *rest = excerpt(text_of(event.content))
        # If the same caller has other open calls, name the tool, to show which call ended.
        others = call is not None and any(other.level == call.level for other in self._calls.values())
        name = f"{call.name}: " if call is not None and others else ""
        lines = [f"  = {name}{first}".rstrip(), *(f"    {line}" for line in rest)]
        self._page.line("\n".join(lines), "green" if event.state == "succeeded" else "red", level)
        if self._floor is not None and self._floor[0][1] == event.id:
            self._yield_floor()  # the subagent ended before its message
        running = [call.name for call in self._calls.values()]
        self._page.activity(f"running {running[-1]}" if running else "waiting for the model")

    def _agent(self, id: str, *parts: str | None) -> _Agent:
        call = self._calls.get(id)
        level = call.level + 1 if call is not None else self._agents[id].level if id in self._agents else 1
        label = ": ".join(filter(None, parts)) or (call.name if call else "")
        return _remember(self._agents, id, _Agent(one_line(label), level))

    def _speak(self, id: str | None) -> int:
        """Return the level of a subagent; 0 for None, the main agent. First, print the subagent's name if another agent
        was printed last.
        """
        agent = None if id is None else self._agents.get(id) or self._agent(id)
        if id != self._speaker:
            self._speaker = id
            if agent is not None:
                self._page.line(f"-- subagent {agent.label}".rstrip(), "bold magenta", agent.level)
        return 0 if agent is None else agent.level


def _whole_characters(text: str) -> str:
    """Join surrogate pairs that were split between two deltas. Keep lone surrogates."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _remember(known: dict[str, T], key: str, value: T) -> T:
    """Store a value, and return it. Above :data:`MAX_REMEMBERED`, forget the oldest value."""
    known[key] = value
    if len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]
    return value
