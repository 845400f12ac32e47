"""Track a session's background work: subagents, commands, and the turns that the CLI starts when a task ends.

CLI 2.1.331 follows these rules:

* ``background_tasks_changed`` lists all background tasks and replaces the previous list. ``task_started``,
  ``task_updated`` and ``task_notification`` report one task each.
* A foreground task (``is_backgrounded`` is false) belongs to its turn. If a budget ends the turn first, the task
  continues, and no turn follows when it ends.
* A task that completes or fails starts a turn. A subagent's task (``parent_task_id``) does not, because the CLI reports
  its completion to the subagent.
* A subagent that the host stops with ``stop_task`` starts a turn (status ``killed`` or ``stopped``). If the host
  interrupts, or a budget is exceeded in a subagent, the CLI stops all subagents, and **no turn and no result follow**.
"""

from __future__ import annotations

from typing import TypeAlias

from claude_wire.codec.kind_names import KindName
from claude_wire.messages import (
    BackgroundTasksChangedMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
)
from claude_wire.support.ids import Ids

TaskMessage: TypeAlias = (
    BackgroundTasksChangedMessage | TaskNotificationMessage | TaskStartedMessage | TaskUpdatedMessage
)
#: The types of messages that :meth:`Background.see` handles, and the kinds of their lines.
TASK_MARKS = (BackgroundTasksChangedMessage, TaskNotificationMessage, TaskStartedMessage, TaskUpdatedMessage)
TASK_KINDS: tuple[KindName, ...] = (
    "system/background_tasks_changed",
    "system/task_notification",
    "system/task_started",
    "system/task_updated",
)

#: The types of tasks that a run waits for. All other types are commands and monitors, which may run forever.
_DELEGATED = frozenset(("local_agent", "local_workflow"))
_STOPPED = frozenset(("killed", "stopped"))
_ENDED = frozenset(("completed", "failed")) | _STOPPED


class Background:
    """A session's background work. Each set has at most 4,096 tasks; a run does not wait for older tasks."""

    __slots__ = ("_owned", "due", "is_certain", "shells", "stopped", "subagents")

    def __init__(self) -> None:
        #: Running subagents and workflows.
        self.subagents: Ids = Ids()
        #: Running commands, monitors and all other tasks that may run forever.
        self.shells: Ids = Ids()
        #: Subagents that were stopped after the last turn ended.
        self.stopped: Ids = Ids()
        # Tasks that a subagent started. The CLI reports their completion to the subagent.
        self._owned = Ids()
        #: The number of turns that may start because tasks ended.
        self.due: int = 0
        #: True if at least one of the turns in ``due`` will certainly start.
        self.is_certain: bool = False

    def unfinished(self) -> str:
        """Describe the unfinished work if the output ends now: a subagent, or a turn that is certain. Empty if none."""
        if self.subagents:
            return "while a subagent worked in the background"
        return "before the turn that the end of a background task brings" if self.is_certain else ""

    def see(self, message: TaskMessage, *, in_turn: bool) -> None:
        """Update the state from a message about tasks.

        Args:
            in_turn: whether a turn is running. If this turn handles the end of a task, no other turn starts.
        """
        if isinstance(message, TaskStartedMessage):
            if message.is_backgrounded is not False and not message.ambient:
                self._add(message.task_id, message.task_type, message.parent_task_id)
        elif isinstance(message, BackgroundTasksChangedMessage):
            self._replace(message, in_turn=in_turn)
        elif isinstance(message, TaskNotificationMessage):
            self._remove(message.task_id, message.status, in_turn=in_turn)
        elif message.patch is not None and message.patch.status in _ENDED:
            self._remove(message.task_id or "", message.patch.status, in_turn=in_turn)

    def turn_ended(self, *, was_due: bool) -> None:
        """Update the state when a result arrives.

        Args:
            was_due: whether the turn started because a task ended.
        """
        self.is_certain = False
        self.stopped = Ids()
        if was_due and self.due:
            self.due -= 1

    def settle(self) -> None:
        """Stop expecting turns for tasks that ended."""
        self.due, self.is_certain = 0, False

    def _add(self, id: str, kind: str | None, owner: str | None) -> None:
        (self.subagents if kind in _DELEGATED else self.shells).add(id)
        if owner is not None:
            self._owned.add(id)

    def _replace(self, message: BackgroundTasksChangedMessage, *, in_turn: bool) -> None:
        tasks = [task for task in message.tasks if not task.ambient]
        listed = {task.task_id for task in tasks}
        for id in (*self.subagents.strings(), *self.shells.strings()):
            if id not in listed:  # the task ended with an unknown status
                self._remove(id, None, in_turn=in_turn)
        for task in tasks:
            self._add(task.task_id, task.task_type, task.parent_task_id)

    def _remove(self, id: str, status: str | None, *, in_turn: bool) -> None:
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
