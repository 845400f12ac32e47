"""Tasks: subagents, shell commands and other work that the CLI tracks, in front or in the background."""

from __future__ import annotations

from typing import Any, Literal

from claude_wire.messages.base import Number, Wire, constant
from claude_wire.messages.conversation.usage import TaskUsage
from claude_wire.messages.system.base import SystemMessage


class McpResourceLink(Wire, kw_only=True, frozen=True):
    """A resource that an MCP server offers, by its URI; ``size`` is in bytes."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mimeType: str | None = None
    size: Number | None = None
    annotations: dict[str, Any] | None = None


class TaskStartedMessage(SystemMessage, kw_only=True, frozen=True):
    """A task has begun: a subagent, a shell command or other work.

    ``task_type`` is an open set, seen as ``local_agent`` and ``local_bash``. ``tool_use_id`` names the tool call that
    began it; ``subagent_type`` and ``prompt`` come with subagents.
    """

    subtype: Literal["task_started"] = constant("task_started")
    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    description: str
    subagent_type: str | None = None
    is_backgrounded: bool | None = None
    spawn_depth: int | None = None
    parent_task_id: str | None = None
    task_type: str | None = None
    workflow_name: str | None = None
    prompt: str | None = None
    skip_transcript: bool | None = None
    ambient: bool | None = None
    awaited: bool | None = None
    owned_by_subagent: bool | None = None


class TaskProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """What a task is doing now and what it has used so far.

    ``description`` is that of the present step, not the task's own.
    """

    subtype: Literal["task_progress"] = constant("task_progress")
    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    description: str
    subagent_type: str | None = None
    usage: TaskUsage
    last_tool_name: str | None = None
    summary: str | None = None


class TaskPatch(Wire, kw_only=True, frozen=True):
    """The fields of a task that have changed; those that are absent stay as they were.

    ``end_time`` is Unix time in milliseconds. A task that was stopped has the status ``killed`` here and ``stopped``
    in :class:`TaskNotificationMessage`.
    """

    # one of completed, pending, failed, running, killed, paused
    status: str | None = None
    description: str | None = None
    end_time: Number | None = None
    total_paused_ms: Number | None = None
    error: str | None = None
    is_backgrounded: bool | None = None


class TaskUpdatedMessage(SystemMessage, kw_only=True, frozen=True):
    """A task has changed; a final status in ``patch`` ends it.

    The end of a task may come in this message, in :class:`TaskNotificationMessage` or in both: whichever is first
    ends it.
    """

    subtype: Literal["task_updated"] = constant("task_updated")
    task_id: str | None = None
    run_id: str | None = None
    patch: TaskPatch | None = None


class TaskNotificationMessage(SystemMessage, kw_only=True, frozen=True):
    """A task has ended: how, and with what to show for it.

    ``output_file`` is a path on the CLI's machine, and empty when there is none; ``summary`` is text. The end of a
    task may also come in :class:`TaskUpdatedMessage` alone.
    """

    subtype: Literal["task_notification"] = constant("task_notification")
    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    # one of completed, failed, stopped
    status: str
    reason: str | None = None
    output_file: str
    summary: str
    usage: TaskUsage | None = None
    resource_links: list[McpResourceLink] | None = None
    skip_transcript: bool | None = None
    ambient: bool | None = None
    summary_is_report: bool | None = None
    handback: str | None = None
    handback_report: dict[str, Any] | None = None
    owned_by_subagent: bool | None = None


class BackgroundTask(Wire, kw_only=True, frozen=True):
    """A task that is running in the background."""

    task_id: str
    run_id: str | None = None
    task_type: str
    subagent_type: str | None = None
    description: str
    parent_task_id: str | None = None
    ambient: bool | None = None


class BackgroundTasksChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """All tasks now running in the background; the list replaces the one known before.

    It comes when a background task begins or ends, and is empty after the last one.
    """

    subtype: Literal["background_tasks_changed"] = constant("background_tasks_changed")
    tasks: list[BackgroundTask]


class BackgroundTaskSummary(Wire, kw_only=True, frozen=True):
    """A background task as the input of a ``Stop`` or ``SubagentStop`` hook lists it.

    Which of the optional fields are there depends on ``type``.
    """

    id: str
    type: str
    status: str
    description: str
    command: str | None = None
    agent_type: str | None = None
    server: str | None = None
    tool: str | None = None
    name: str | None = None


class SessionCronSummary(Wire, kw_only=True, frozen=True):
    """A scheduled prompt of the session, as the input of a ``Stop`` or ``SubagentStop`` hook lists it."""

    id: str
    schedule: str
    recurring: bool
    prompt: str


class TaskListStatus(Wire, kw_only=True, frozen=True):
    """The status of one task on the task list."""

    id: str
    # one of pending, in_progress, completed
    status: str


class TaskListStatusesMessage(SystemMessage, kw_only=True, frozen=True):
    """The CLI has set statuses on the task list itself, where no call of TaskUpdate shows the change.

    A task that is not named keeps its last status. A later result of TaskUpdate wins. The CLI's public interface does
    not declare this message; CLI 2.1.331 writes it to some hosts.
    """

    subtype: Literal["task_list_statuses"] = constant("task_list_statuses")
    statuses: list[TaskListStatus]
