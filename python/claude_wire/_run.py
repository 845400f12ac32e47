"""When a run is over: the turns that were asked for, and those that background work brings about.

Knows what messages say of turns and tasks. A result ends a turn, not the run: a subagent in the background goes on,
and its end wakes the session for another turn, for which the input must still be open. The rules are those of
claude-agent-sdk 0.2.187: a CLI that reports its state says ``idle`` when no turn is owed any more; of another one only
delegated work is counted, since a shell or a monitor in the background may run for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from claude_wire._ids import Ids
from claude_wire.messages import (
    AssistantMessage,
    InitMessage,
    ResultMessage,
    SessionStateChangedMessage,
    TaskNotificationMessage,
    TaskNotificationOrigin,
    TaskStartedMessage,
    TaskUpdatedMessage,
)
from claude_wire.messages.message import RESULT_BY_SUBTYPE

__all__ = ["MARKS", "Run", "brought_about", "prompts_of"]

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
        self._state: str | None = None
        # Delegated tasks in the background. Above 4,096 the oldest are not waited for.
        self._tasks = Ids()
        # The uuids of all prompts; of those that are owed a result, how many are owed one without having a uuid.
        self._uuids: set[str] = set()
        self._owed: set[str] = set()
        self._nameless = 0
        # Whether a turn is under way.
        self._turn = False
        # Whether background work has ended between turns, which brings about another one.
        self._woken = False
        #: ``error`` of the last assistant message of the turn.
        self.reason: str | None = None

    @property
    def between_turns(self) -> bool:
        """Whether nothing is known to be under way: what is waited for then may never come.

        A CLI that is idle although a result is owed has dropped the prompt, or has not come to it yet.
        """
        owed = (self._owed or self._nameless) and self._state != "idle"
        return not (owed or self._turn or self._tasks or self._state == "requires_action")

    @property
    def over(self) -> bool:
        """Whether nothing more will come, unless something is asked."""
        if self._owed or self._nameless or not self.between_turns:
            return False
        return not self._woken if self._state is None else self._state == "idle"

    def ask(self, uuid: str | None) -> bool:
        """A prompt is sent. Returns whether a turn is owed for it: not for one with the uuid of an earlier one."""
        if uuid is None:
            self._nameless += 1
        elif uuid in self._uuids:
            return False
        else:
            self._uuids.add(uuid)
            self._owed.add(uuid)
        return True

    def had(self, uuid: str | None) -> bool:
        """Whether a prompt with this uuid was sent before."""
        return uuid in self._uuids

    def take_back(self, uuid: str | None) -> None:
        """A prompt for which a turn was owed was not sent after all."""
        if uuid is None:
            self._nameless -= 1
        else:
            self._uuids.discard(uuid)
            self._owed.discard(uuid)

    def drop(self, uuids: Iterable[str]) -> None:
        """The CLI says that it has taken these prompts out of its queue."""
        self._owed.difference_update(uuids)

    def see(self, message: Any) -> bool:
        """Look at one of :data:`MARKS`. Returns whether it is for the host alone, which asked for it."""
        if isinstance(message, AssistantMessage):
            if message.parent_tool_use_id is None:
                self.reason = message.error_reason
        elif isinstance(message, ResultMessage):
            self._turn = self._woken = False
            self._pay(message)
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

    def _pay(self, result: ResultMessage) -> None:
        """Which prompts a result is for: those that it names, or all unless it says that others are queued."""
        named = prompts_of(result)
        if named:
            self._owed -= named
        elif not brought_about(result) and not result.queued_turn_count:
            self._owed.clear()
        if not brought_about(result) and not result.queued_turn_count:
            self._nameless = 0

    def _task_ended(self, task_id: str) -> None:
        if task_id in self._tasks:
            self._tasks.discard(task_id)
            self._woken = not self._turn


def prompts_of(result: ResultMessage) -> set[str]:
    """The uuids of the prompts that a result is for; none from a CLI that does not say."""
    return {uuid for uuid in (*(result.user_message_uuids or ()), result.user_message_uuid) if uuid is not None}


def brought_about(result: ResultMessage) -> bool:
    """Whether the turn was begun by background work, and by no prompt."""
    return isinstance(result.origin, TaskNotificationOrigin)
