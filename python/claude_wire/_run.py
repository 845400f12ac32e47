"""When a run is over: the turns that were asked for, and those that background work brings about.

Knows what messages say of turns and tasks. A result ends a turn, not the run: a subagent in the background goes on,
and its end wakes the session for another turn, for which the input must still be open. The rules are those of
claude-agent-sdk 0.2.187: a CLI that reports its state says ``idle`` when no turn is owed any more; of another one only
delegated work is counted, since a shell or a monitor in the background may run for ever.
"""

from __future__ import annotations

from typing import Any

from claude_wire.messages import (
    AssistantMessage,
    InitMessage,
    ResultMessage,
    SessionStateChangedMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
)
from claude_wire.messages.message import RESULT_BY_SUBTYPE

__all__ = ["MARKS", "Run"]

#: The types of messages that :meth:`Run.see` looks at.
MARKS = frozenset(
    (
        AssistantMessage,
        InitMessage,
        ResultMessage,
        *RESULT_BY_SUBTYPE.values(),
        SessionStateChangedMessage,
        TaskNotificationMessage,
        TaskStartedMessage,
        TaskUpdatedMessage,
    )
)
#: Types of tasks whose end wakes the session.
_DELEGATED = frozenset(("local_agent", "local_workflow"))
_ENDED = frozenset(("completed", "failed", "killed", "stopped"))


class Run:
    """Follows the messages of a session as they are taken."""

    def __init__(self) -> None:
        self._uuids: set[str] = set()
        self._state: str | None = None
        self._tasks: set[str] = set()
        # Prompts since the last result that left no other owed; whether a turn is under way.
        self._asked = 0
        self._turn = False
        # Whether background work has ended between turns, which brings about another one.
        self._woken = False
        #: ``error`` of the last assistant message of the turn.
        self.reason: str | None = None

    @property
    def between_turns(self) -> bool:
        """Whether nothing is under way that goes on without being waited for: background work may never end."""
        return not (self._asked or self._turn or self._tasks or self._state == "requires_action")

    @property
    def over(self) -> bool:
        """Whether nothing more will come, unless something is asked."""
        return self.between_turns and (not self._woken if self._state is None else self._state == "idle")

    def ask(self, uuid: str | None) -> bool:
        """A prompt is sent. Returns whether a turn is owed for it: not for one with the uuid of an earlier one."""
        if uuid is not None:
            if uuid in self._uuids:
                return False
            self._uuids.add(uuid)
        self._asked += 1
        return True

    def take_back(self, uuid: str | None) -> None:
        """A prompt for which a turn was owed was not sent after all."""
        self._uuids.discard(uuid or "")
        self._asked = max(self._asked - 1, 0)

    def see(self, message: Any) -> bool:
        """Look at one of :data:`MARKS`. Returns whether it is for the host alone, which asked for it."""
        if isinstance(message, AssistantMessage):
            if message.parent_tool_use_id is None:
                self.reason = message.error_reason
        elif isinstance(message, ResultMessage):
            self._turn = self._woken = False
            if not message.queued_turn_count:
                self._asked = 0
        elif isinstance(message, InitMessage):
            self._turn = True
            self.reason = None
        elif isinstance(message, SessionStateChangedMessage):
            self._state = message.state
            return message.sdk_host_only is True
        elif isinstance(message, TaskStartedMessage):
            if message.task_type in _DELEGATED:
                self._tasks.add(message.task_id)
        elif isinstance(message, TaskNotificationMessage):
            self._task_ended(message.task_id)
        elif isinstance(message, TaskUpdatedMessage) and message.patch is not None and message.patch.status in _ENDED:
            self._task_ended(message.task_id or "")
        return False

    def _task_ended(self, task_id: str) -> None:
        if task_id in self._tasks:
            self._tasks.remove(task_id)
            self._woken = not self._turn
