"""Show a session's events as turns on a page: who said what, and which tools were called with what result.

Everything that belongs to a call is shown inside it: the change that it made, who allowed it, what its subagent said,
and its result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from claude_wire.messages import InvalidLine, Message
from claude_wire.support import moment
from claude_wire.transcripts import AiTitleRecord, CostStateRecord, CustomTitleRecord, Entry, Transcript
from claude_wire.transcripts import messages as transcript_messages
from claude_wire_kit.events import events as e
from claude_wire_kit.events.bridge import Bridge
from claude_wire_kit.html.calls import INPUT, Calls
from claude_wire_kit.html.markup import TEXT_CHARS, Box, Budget, clock, folded, inline, parts_markup, prose, rows
from claude_wire_kit.terminal.notices import ERROR, WARNING, Lines, draw_notice, draw_question, draw_tokens, draw_turn

#: Maximum number of models and of sessions that the page names, and maximum number of streaming blocks to keep.
MAX_NAMES, MAX_STREAMED = 100, 256

#: The CSS class of a notice, by its mark.
MARKS = {"!": "error", "?": "question", "#": "hook", "<": "host", "=": "result", "*": "note"}
#: The CSS class of a notice, by its style.
STYLES = {WARNING: "warning", ERROR: "error", "red": "error"}


@dataclass
class Facts:
    title: str = ""
    #: Session ids, in the order in which they appeared.
    sessions: dict[str, None] = field(default_factory=lambda: dict[str, None]())
    models: dict[str, None] = field(default_factory=lambda: dict[str, None]())
    folder: str | None = None
    version: str | None = None
    first: datetime | None = None
    last: datetime | None = None
    #: In US dollars. None if no message has a cost.
    cost: float | None = None
    calls: int = 0
    errors: int = 0
    turns: int = 0

    def see(self, stamp: str | None) -> datetime | None:
        when = moment(stamp)
        if when is not None:
            self.first = when if self.first is None else min(self.first, when)
            self.last = when if self.last is None else max(self.last, when)
        return when

    def see_model(self, name: str | None) -> None:
        if name and name != "<synthetic>" and len(self.models) < MAX_NAMES:
            self.models.setdefault(name[:200])


@dataclass
class _Streamed:
    speaker: tuple[str | None, str | None]
    text: str = ""


class Story:
    """Shows messages as turns on a page, in the order in which they are added.

    Args:
        transcript: whether the messages come from a transcript. In a transcript, each prompt begins a turn, and no
            message ends a turn.

    Attributes:
        budget: how many more characters the page may have.
        box: all turns.
        contents: the links to the turns.
        facts: the facts that are shown at the top of the page.
    """

    def __init__(self, *, transcript: bool) -> None:
        self.budget: Budget = Budget()
        self.box: Box = Box(self.budget)
        self.contents: Box = Box(self.budget)
        self.facts: Facts = Facts()
        self._transcript = transcript
        self._bridge = Bridge(progress=(), partial=True, details=True)
        self._turn: Box | None = None
        self._calls = Calls()
        #: The tokens of each answer in the turn, by answer id. An answer's last message has the final numbers.
        self._answers: dict[str, e.Tokens] = {}
        self._streamed: dict[str, _Streamed] = {}
        self._cost: float | None = None

    def show(self, message: Message | InvalidLine) -> None:
        """Add a message from the CLI to the page. Many messages are not shown."""
        for event in self._bridge.add(message):
            self.draw(event)

    def sent(self, message: Message | InvalidLine) -> None:
        for event in self._bridge.sent(message):
            self.draw(event)

    def tell(self, transcript: Transcript) -> None:
        """Add a transcript's invalid lines, then the messages on its active branch."""
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

    def close(self) -> None:
        """Mark calls without a result and texts that were cut off, and complete the facts."""
        self._cut_off()
        self._end_turn()
        self._calls.close()
        self.facts.calls = self._calls.count
        if self.facts.cost is None:
            self.facts.cost = self._cost

    def draw(self, event: e.UiEvent) -> None:
        if event.conversationId is not None and len(self.facts.sessions) < MAX_NAMES:
            self.facts.sessions.setdefault(event.conversationId)
        match event:
            case e.ClaudeResponse(partial=True):
                self._grow(event)
            case e.ClaudeResponse():
                self._text(event)
            case e.Thinking(partial=True):
                pass
            case e.Thinking():
                self._thinking(event)
            case e.UserPrompt():
                self._prompt(event)
            case e.Operation(state="started"):
                within = self._calls.get(event.agentId)
                depth = 0 if within is None else within.depth + 1
                self._calls.open(self._place(event.agentId), event, depth=depth, when=self.facts.see(event.at))
            case e.Operation(content=content) if content is not None:
                self.facts.see(event.at)
                self.facts.errors += event.state != "succeeded"
                self._calls.end(event, lambda: self._place(event.agentId))
            case e.PermissionRequest():
                call = self._calls.get(event.callId)
                if call is not None:
                    call.expanded.set(" open")
                self._lines(draw_question(event), self._place() if call is None else call.permission)
            case e.Notice():
                self._notice(event)
            case e.TurnComplete():
                self._complete(event)
            case e.SessionStarted():
                self.facts.folder = self.facts.folder or event.folder
                self.facts.version = self.facts.version or event.version
                self.facts.see_model(event.model)
            case e.Answer():
                self.facts.see(event.at)
                self.facts.see_model(event.model)
                self.facts.errors += bool(event.failed)
                if self._transcript and event.id is not None and event.tokens is not None:
                    self._answers[event.id] = event.tokens
            case _:
                pass

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
            answers = self._answers.values()
            total = e.Tokens(
                input=sum(each.input for each in answers),
                cached=sum(each.cached for each in answers),
                output=sum(each.output for each in answers),
            )
            count = len(answers)
            turn.add(f"<p class=quiet>{count:,} answer{'s' * (count > 1)}, tokens: {draw_tokens(total)}</p>")
        self._answers.clear()

    def _place(self, agent: str | None = None) -> Box:
        """Return the box of the main conversation, or of the subagent with this id."""
        if agent is None:
            return self._begin_turn() if self._turn is None else self._turn
        call = self._calls.get(agent)
        if call is None:
            unseen = e.Operation(id=agent, kind="subagent", title="", name="Agent", state="started")
            call = self._calls.open(self._place(), unseen)
        return call.subagent()

    # --- what is said -------------------------------------------------------------------------------------------------

    def _say(self, place: Box, who: str, kind: str, markup: str, when: datetime | None) -> None:
        place.add(f'<div class="say {kind}"><p class=who>{who} {clock(when)}</p>{markup}</div>')

    def _text(self, event: e.ClaudeResponse) -> None:
        if event.id is not None:
            self._streamed.pop(event.id, None)
        place = self._place(event.agentId)
        if event.content.strip():
            who = "Claude" if event.agentId is None else "Subagent"
            kind = "error" if event.failed else "model"
            self._say(place, who, kind, prose(event.content), self.facts.see(event.at))

    def _thinking(self, event: e.Thinking) -> None:
        place, text = self._place(event.agentId), event.content
        if text.strip():
            about = f"Thinking <small>{len(text):,} characters</small>"
            place.add(f"<details class=thinking><summary>{about}</summary>{prose(text)}</details>")
        else:
            place.add("<p class=quiet>Thinking that is not shown</p>")

    def _prompt(self, event: e.UserPrompt) -> None:
        when, markup = self.facts.see(event.at), parts_markup(event.parts or (), plain=False)
        if event.agentId is not None:
            self._say(self._place(event.agentId), "Prompt", "user", markup, when)
        elif event.origin == "cli":
            self._place().add(f"<details class=thinking><summary>The CLI adds</summary>{markup}</details>")
        elif event.origin == "interruption":
            self._place().add(f"<p class=warning>{inline(event.content)}</p>")
        else:
            if self._turn is None or (self._transcript and not event.duringTurn):
                self._begin_turn()
                line = next((line.strip() for line in event.content.split("\n", 100) if line.strip()), "")
                self.facts.title = self.facts.title or line
                self.contents.add(f"<li><a href=#t{self.facts.turns}>{inline(line or 'Turn', 100)}</a></li>\n")
            self._say(self._place(), "Prompt", "user", markup, when)

    # --- streamed text ------------------------------------------------------------------------------------------------

    def _grow(self, event: e.ClaudeResponse) -> None:
        id, speaker = event.id or "", (event.conversationId, event.agentId)
        if id not in self._streamed:
            message = id.rpartition(".")[0]
            over = [key for key, each in self._streamed.items() if each.speaker == speaker]
            self._cut_off([key for key in over if key.rpartition(".")[0] != message])
            if len(self._streamed) >= MAX_STREAMED:
                self._cut_off([next(iter(self._streamed))])
            self._streamed[id] = _Streamed(speaker)
        if len(self._streamed[id].text) <= TEXT_CHARS:
            self._streamed[id].text += event.content

    def _cut_off(self, ids: list[str] | None = None) -> None:
        """Show streamed blocks whose whole block never arrived. By default, check all of them."""
        for id in list(self._streamed) if ids is None else ids:
            block = self._streamed.pop(id)
            if block.text.strip():
                place = self._place(block.speaker[1])
                self._say(place, "Claude", "model", prose(block.text), None)
                place.add("<p class=warning>Cut off</p>")

    # --- notices ------------------------------------------------------------------------------------------------------

    def _notice(self, event: e.Notice) -> None:
        call = self._calls.get(event.callId)
        place = self._place(event.agentId) if call is None else call.permission
        if event.kind == "cut_off":
            place.add("<p class=warning>Cut off</p>")
            return
        self._lines(draw_notice(event), place)
        if event.kind == "invalid_line" and event.detail is not None:
            place.add(folded(event.detail[:2000]))

    def _lines(self, lines: Lines, place: Box) -> None:
        first, _, rest = lines.text.partition("\n")
        kind = MARKS.get(first[:1])
        if kind is None or (kind == "result" and not lines.style.startswith("bold")):
            text = lines.text
            place.add(rows([text.removeprefix("= ")]) if rest else f"<p class=quiet>{inline(text, 2000)}</p>")
            return
        kind = STYLES.get(lines.style, kind)
        more = rows(line.strip() for line in rest.split("\n")) if rest else ""
        place.add(f"<div class={kind}>{inline(first[1:], 2000)}{more}</div>")

    def _complete(self, event: e.TurnComplete) -> None:
        self._cut_off()
        self.facts.errors += not event.ok
        if event.costUsd is not None:
            self._cost = (self._cost or 0) + event.costUsd
        turn = self._place()
        for lines in draw_turn(event, INPUT):
            self._lines(lines, turn)
        self._end_turn()
