"""DOC module tasks"""

from __future__ import annotations

from typing import Any, Literal

from claude_wire.messages._base import Number, Wire, constant
from claude_wire.messages.system import SystemMessage
from claude_wire.messages.usage import TaskUsage

__all__ = [
    "BackgroundTask",
    "BackgroundTaskSummary",
    "BackgroundTasksChangedMessage",
    "McpResourceLink",
    "SessionCronSummary",
    "TaskNotificationMessage",
    "TaskPatch",
    "TaskProgressMessage",
    "TaskStartedMessage",
    "TaskUpdatedMessage",
]


class McpResourceLink(Wire, kw_only=True, frozen=True):
    """DOC McpResourceLink"""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mimeType: str | None = None
    size: int | None = None
    annotations: dict[str, Any] | None = None


class TaskStartedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC TaskStartedMessage"""

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


class TaskProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC TaskProgressMessage"""

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
    """DOC TaskPatch"""

    # one of completed, pending, failed, running, killed, paused
    status: str | None = None
    description: str | None = None
    end_time: Number | None = None
    total_paused_ms: Number | None = None
    error: str | None = None
    is_backgrounded: bool | None = None


class TaskUpdatedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC TaskUpdatedMessage"""

    subtype: Literal["task_updated"] = constant("task_updated")
    task_id: str | None = None
    run_id: str | None = None
    patch: TaskPatch | None = None


class TaskNotificationMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC TaskNotificationMessage"""

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


class BackgroundTask(Wire, kw_only=True, frozen=True):
    """DOC BackgroundTask"""

    task_id: str
    run_id: str | None = None
    task_type: str
    subagent_type: str | None = None
    description: str
    parent_task_id: str | None = None
    ambient: bool | None = None


class BackgroundTasksChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC BackgroundTasksChangedMessage"""

    subtype: Literal["background_tasks_changed"] = constant("background_tasks_changed")
    tasks: list[BackgroundTask]


class BackgroundTaskSummary(Wire, kw_only=True, frozen=True):
    """DOC BackgroundTaskSummary"""

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
    """DOC SessionCronSummary"""

    id: str
    schedule: str
    recurring: bool
    prompt: str
