"""What is remembered of one conversation, beside what is open in it."""

from __future__ import annotations

from claude_wire_kit.events.events import ProgressUpdate, UiEvent
from claude_wire_kit.events.progress import ProgressRule, Step, find_step
from claude_wire_kit.events.todos import Todos

__all__ = ["Conversation"]


class Conversation:
    """One session: how far its work is, and the text that is being streamed."""

    __slots__ = ("_last", "_structured", "id", "message", "project", "streamed", "tells_subagents", "todos")

    def __init__(self, id: str | None, project: str | None) -> None:
        self.id: str | None = id
        self.project: str | None = project
        #: The progress that was told last.
        self._last: Step | None = None
        #: Whether this turn has told progress otherwise than in words.
        self._structured: bool = False
        self.todos: Todos = Todos()
        #: The id of the message that is being streamed, and the ids of its blocks that were told in part.
        self.message: str = ""
        self.streamed: dict[str, None] = {}
        #: Whether the agent tells of its subagents in messages of their own.
        self.tells_subagents: bool = False

    def end_turn(self) -> None:
        """Forget what is a matter of one turn."""
        self._last, self._structured = None, False
        self.streamed.clear()

    def tell_progress(self, step: Step | None, events: list[UiEvent]) -> None:
        """Tell what a structured source says. From then on, text does not count until the turn ends."""
        if step is not None:
            self._structured = True
            self._tell(step, events, self.id, self.project)

    def read_progress(
        self, text: str, rules: tuple[ProgressRule, ...], events: list[UiEvent], *, follows: bool = False
    ) -> None:
        """Tell the progress that a text speaks of. ``follows``: directly after the response with this text."""
        step = None if self._structured else find_step(text, rules)
        if step is not None:
            self._tell(step, events, *((None, None) if follows else (self.id, self.project)))

    def _tell(self, step: Step, events: list[UiEvent], id: str | None, project: str | None) -> None:
        if self._last is None or step[1:] != self._last[1:]:
            self._last = step
            update = ProgressUpdate(
                currentStep=step.name,
                completedSteps=step.completed,
                totalSteps=step.total,
                percentage=round(100 * step.completed / step.total, 2),
                conversationId=id,
                projectId=project,
            )
            events.append(update)
