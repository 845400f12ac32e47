"""One conversation's progress and streaming text. Other modules keep its calls, subagents and questions."""

from __future__ import annotations

from typing import Any

from claude_wire.support import short_id
from claude_wire_kit.events.events import ProgressUpdate, UiEvent
from claude_wire_kit.events.progress import ProgressRule, Step, find_step
from claude_wire_kit.events.todos import Todos

#: Maximum number of a conversation's streamed blocks whose whole block has not arrived.
MAX_STREAMED = 64
#: Maximum number of characters of a turn's repeated prompts to remember. Above this, the bridge cannot separate prompts
#: that the CLI has joined.
MAX_REPEATED = 65_536


class Conversation:
    """The progress and the streaming text of one session."""

    __slots__ = (
        "_last",
        "_repeated",
        "_structured",
        "fields",
        "id",
        "messages",
        "project",
        "streamed",
        "tells_subagents",
        "todos",
    )

    def __init__(self, id: str | None, project: str | None) -> None:
        self.id: str | None = id
        self.project: str | None = project
        #: The fields that name this conversation in an event.
        self.fields: dict[str, Any] = {"conversationId": id, "projectId": project}
        # The latest step that has an event.
        self._last: Step | None = None
        # True once a task list reported progress in this turn. From then on, progress in texts is ignored.
        self._structured: bool = False
        # The texts of the prompts that the CLI has repeated since the last result, each with a line feed.
        self._repeated: str = ""
        self.todos: Todos = Todos()
        #: Id of a subagent, or None for the main agent -> the id of the message that it is streaming.
        self.messages: dict[str | None, str] = {}
        #: Streamed blocks whose whole block has not arrived yet: id -> (agent, type).
        self.streamed: dict[str, tuple[str | None, str]] = {}
        #: True if messages report the subagents. Then texts are not searched for subagents.
        self.tells_subagents: bool = False

    def end_turn(self) -> None:
        """Forget the ended turn's state."""
        self._last, self._structured, self._repeated = None, False, ""
        self.streamed.clear()

    def repeat_prompt(self, text: str) -> str:
        """Note a prompt that the CLI repeats, and return the text that the host sent.

        The CLI answers prompts that waited for the end of a turn together. It repeats each of them, but in place of
        the last it sends the text of all, joined with line feeds. For ``a``, ``b`` and ``c`` it sends ``a``, ``b`` and
        ``a\\nb\\nc``.
        """
        own = text.removeprefix(self._repeated) or text
        is_long = len(self._repeated) + len(own) > MAX_REPEATED
        self._repeated = "" if is_long else f"{self._repeated}{own}\n"
        return own

    def start_message(self, agent: str | None, id: str) -> None:
        """Note that an agent starts to stream a message. Forget its previous message's streamed blocks."""
        self.streamed = {block: about for block, about in self.streamed.items() if about[0] != agent}
        if agent not in self.messages and len(self.messages) >= MAX_STREAMED:
            del self.messages[next(iter(self.messages))]
        self.messages[agent] = id

    def block_id(self, agent: str | None, index: int) -> str:
        """Return the id of the block with this index in the message that an agent streams."""
        return f"{self.messages.get(agent, '')}.{index}"

    def stream(self, id: str, agent: str | None, type: str) -> None:
        """Note the first delta of a block."""
        if len(self.streamed) >= MAX_STREAMED:
            del self.streamed[next(iter(self.streamed))]
        self.streamed[id] = agent, type

    def finish(self, agent: str | None, message: str | None, type: str) -> str | None:
        """Note that a whole block arrived, and return the id of its deltas. None if it was not streamed.

        The deltas are those of the oldest streamed block with this agent, message and type.
        """
        if not self.streamed:
            return None
        prefix = "" if message is None else f"{short_id(message)}."
        found = (id for id, about in self.streamed.items() if about == (agent, type) and id.startswith(prefix))
        id = next(found, None)
        if id is not None:
            del self.streamed[id]
        return id

    def tell_progress(self, step: Step | None, events: list[UiEvent]) -> None:
        """Add the event for progress that a task list reports. Until the turn ends, ignore progress in texts."""
        if step is not None:
            self._structured = True
            self._tell(step, events, self.fields)

    def read_progress(
        self, text: str, rules: tuple[ProgressRule, ...], events: list[UiEvent], *, follows: bool = False
    ) -> None:
        """Add the event for progress mentioned in text.

        Args:
            follows: omit the conversation's id, because the event directly follows the event of the text.
        """
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
