"""The state of one conversation that is not an open call, subagent or question."""

from __future__ import annotations

from typing import Any

from claude_wire.support import short_id
from claude_wire_kit.events.events import ProgressUpdate, UiEvent
from claude_wire_kit.events.progress import ProgressRule, Step, find_step
from claude_wire_kit.events.todos import Todos

#: At most this many streamed blocks of a conversation wait for the whole block.
MAX_STREAMED = 64


class Conversation:
    """One session: how far its work is, and the text that is being streamed."""

    __slots__ = ("_last", "_structured", "fields", "id", "messages", "project", "streamed", "tells_subagents", "todos")

    def __init__(self, id: str | None, project: str | None) -> None:
        self.id: str | None = id
        self.project: str | None = project
        #: The fields that say where an event belongs.
        self.fields: dict[str, Any] = {"conversationId": id, "projectId": project}
        # The latest progress event.
        self._last: Step | None = None
        # Whether a list of tasks has given progress in this turn.
        self._structured: bool = False
        self.todos: Todos = Todos()
        #: The id of the message that streams, by its speaker: None or the id of a subagent.
        self.messages: dict[str | None, str] = {}
        #: The blocks that have streamed and are not whole yet: id -> speaker and type.
        self.streamed: dict[str, tuple[str | None, str]] = {}
        #: Whether messages name the subagents, so that text need not be searched for them.
        self.tells_subagents: bool = False

    def end_turn(self) -> None:
        """Forget what belongs to one turn."""
        self._last, self._structured = None, False
        self.streamed.clear()

    def start_message(self, agent: str | None, id: str) -> None:
        """A message of a speaker begins to stream: the blocks of the speaker's message before will not become whole."""
        self.streamed = {block: about for block, about in self.streamed.items() if about[0] != agent}
        if agent not in self.messages and len(self.messages) >= MAX_STREAMED:
            del self.messages[next(iter(self.messages))]
        self.messages[agent] = id

    def block_id(self, agent: str | None, index: int) -> str:
        """Return the id of a block of the message of a speaker that streams."""
        return f"{self.messages.get(agent, '')}.{index}"

    def stream(self, id: str, agent: str | None, type: str) -> None:
        """Take the first delta of a block."""
        if len(self.streamed) >= MAX_STREAMED:
            del self.streamed[next(iter(self.streamed))]
        self.streamed[id] = agent, type

    def finish(self, agent: str | None, message: str | None, type: str) -> str | None:
        """Take a whole block. Returns the id of the oldest block that streamed and may be this one."""
        if not self.streamed:
            return None
        prefix = "" if message is None else f"{short_id(message)}."
        found = (id for id, about in self.streamed.items() if about == (agent, type) and id.startswith(prefix))
        id = next(found, None)
        if id is not None:
            del self.streamed[id]
        return id

    def tell_progress(self, step: Step | None, events: list[UiEvent]) -> None:
        """Tell what a structured source says. From then on, text does not count until the turn ends."""
        if step is not None:
            self._structured = True
            self._tell(step, events, self.fields)

    def read_progress(
        self, text: str, rules: tuple[ProgressRule, ...], events: list[UiEvent], *, follows: bool = False
    ) -> None:
        """Tell the progress that a text speaks of. ``follows``: directly after the response with this text."""
        step = None if self._structured else find_step(text, rules)
        if step is not None:
            self._tell(step, events, {} if follows else self.fields)

    def _tell(self, step: Step, events: list[UiEvent], fields: dict[str, Any]) -> None:
        if self._last is None or step[1:] != self._last[1:]:
            self._last = step
            update = ProgressUpdate(
                currentStep=step.name,
                completedSteps=step.completed,
                totalSteps=step.total,
                percentage=round(100 * step.completed / step.total, 2),
                **fields,
            )
            events.append(update)
