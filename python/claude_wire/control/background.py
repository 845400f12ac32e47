"""What works in the background of a session: subagents and commands, and the turns that their ends bring.

What CLI 2.1.331 does, by which this goes:

* ``background_tasks_changed`` lists everything in the background, and replaces the list before it. ``task_started``,
  ``task_updated`` and ``task_notification`` say the same of one task. A task in the foreground (``is_backgrounded`` is
  false) belongs to its turn. It may go on after the turn's result, if a budget has ended the turn, and brings no turn.
* A task that completes or fails brings a turn. One of a subagent (``parent_task_id``) wakes that subagent, if anything.
* A subagent that is stopped (``killed``, ``stopped``) brings a turn if the host has stopped it by ``stop_task``. If a
  budget trips in it, or the host interrupts, all subagents are stopped and **no turn and no result follow**.
"""

from __future__ import annotations

from typing import TypeAlias

from claude_wire.codec.kind_names import KindName
from claude_wire.foundation.ids import Ids
from claude_wire.messages import (
    BackgroundTasksChangedMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
)

__all__ = ["TASK_KINDS", "TASK_MARKS", "Background", "TaskMessage"]

TaskMessage: TypeAlias = (
    BackgroundTasksChangedMessage | TaskNotificationMessage | TaskStartedMessage | TaskUpdatedMessage
)
#: The types of messages that :meth:`Background.see` looks at, and the kinds of their lines.
TASK_MARKS = (BackgroundTasksChangedMessage, TaskNotificationMessage, TaskStartedMessage, TaskUpdatedMessage)
TASK_KINDS: tuple[KindName, ...] = (
    "system/background_tasks_changed",
    "system/task_notification",
    "system/task_started",
    "system/task_updated",
)

#: Types of tasks that are waited for: their work is what the prompt asked for. All others are commands and monitors,
#: which may run for ever.
_DELEGATED = frozenset(("local_agent", "local_workflow"))
_STOPPED = frozenset(("killed", "stopped"))
_ENDED = frozenset(("completed", "failed")) | _STOPPED


class Background:
    """Follows the background work of a session. Of each set, the oldest above 4,096 are not waited for."""

    __slots__ = ("_owned", "due", "is_certain", "shells", "stopped", "subagents")

    def __init__(self) -> None:
        #: Subagents and workflows at work.
        self.subagents: Ids = Ids()
        #: Commands, monitors and whatever else may run for ever.
        self.shells: Ids = Ids()
        #: Subagents that were stopped between turns, and that no turn has taken up since.
        self.stopped: Ids = Ids()
        # Tasks of subagents, whose ends wake these.
        self._owned = Ids()
        #: Turns that may be due because tasks have ended; and whether one of them is certain.
        self.due: int = 0
        self.is_certain: bool = False

    def unfinished(self) -> str:
        """Where the output would end if it ended now, in words; nothing if no subagent works and no turn is certain."""
        if self.subagents:
            return "while a subagent worked in the background"
        return "before the turn that the end of a background task brings" if self.is_certain else ""

    def see(self, message: TaskMessage, *, in_turn: bool) -> None:
        """Look at what the CLI says of tasks.

        Args:
            in_turn: whether a turn is under way, which may take up the end of a task itself.
        """
        if isinstance(message, TaskStartedMessage):
            if message.is_backgrounded is not False and not message.ambient:
                self._works(message.task_id, message.task_type, message.parent_task_id)
        elif isinstance(message, BackgroundTasksChangedMessage):
            self._replace(message, in_turn=in_turn)
        elif isinstance(message, TaskNotificationMessage):
            self._ended(message.task_id, message.status, in_turn=in_turn)
        elif message.patch is not None and message.patch.status in _ENDED:
            self._ended(message.task_id or "", message.patch.status, in_turn=in_turn)

    def turn_began(self) -> None:
        """A turn begins, and takes up what has ended."""
        self.stopped = Ids()

    def turn_ended(self, *, takes_one_up: bool) -> None:
        """A result has come. ``takes_one_up``: the turn was for the end of a task."""
        self.is_certain = False
        self.stopped = Ids()
        if takes_one_up and self.due:
            self.due -= 1

    def settle(self) -> None:
        """Ends that may have brought a turn have brought none."""
        self.due, self.is_certain = 0, False

    def _works(self, id: str, kind: str | None, owner: str | None) -> None:
        (self.subagents if kind in _DELEGATED else self.shells).add(id)
        if owner is not None:
            self._owned.add(id)

    def _replace(self, message: BackgroundTasksChangedMessage, *, in_turn: bool) -> None:
        tasks = [task for task in message.tasks if not task.ambient]
        listed = {task.task_id for task in tasks}
        for id in (*self.subagents.strings(), *self.shells.strings()):
            if id not in listed:  # its end was not said, so neither was how it ended
                self._ended(id, None, in_turn=in_turn)
        for task in tasks:
            self._works(task.task_id, task.task_type, task.parent_task_id)

    def _ended(self, id: str, status: str | None, *, in_turn: bool) -> None:
        is_subagent = id in self.subagents
        if not is_subagent and id not in self.shells:
            return
        brings_turn = status is not None and status not in _STOPPED and id not in self._owned
        for known in (self.subagents, self.shells, self._owned):
            known.discard(id)
        self.due += 1
        self.is_certain |= brings_turn and not in_turn
        if is_subagent and status in _STOPPED and not in_turn:
            self.stopped.add(id)
