"""Describe in words what the CLI reports besides the conversation, such as tasks, hooks, retries and limits.

The functions return a :class:`~claude_wire_kit.events.Notice` without ``conversationId``, which the bridge adds.
"""

from __future__ import annotations

from typing import Any

from claude_wire import messages as m
from claude_wire.support import one_line
from claude_wire_kit.events.events import Activity, Notice
from claude_wire_kit.events.tools import call_name

#: The kinds of notices that every front end gets. All other kinds are details.
FOR_ALL = frozenset(("error", "retry", "auth", "rate_limit", "info"))
#: The messages that may become a notice of one of these kinds.
MAY_BE_FOR_ALL: frozenset[type] = frozenset(
    (
        m.ApiRetryMessage,
        m.AuthStatusMessage,
        m.InformationalMessage,
        m.LocalCommandOutputMessage,
        m.MirrorErrorMessage,
        m.ModelFallbackMessage,
        m.ModelRefusalFallbackMessage,
        m.ModelRefusalNoFallbackMessage,
        m.NotificationMessage,
        m.RateLimitEvent,
        m.SessionWritesLostMessage,
        m.StatusMessage,
        m.SystemErrorMessage,
    )
)


def describe_message(message: Any) -> Notice | None:
    """Return the notice for a message; None for most messages."""
    match message:
        case m.StatusMessage():  # first, because it is the most frequent message
            return _describe_status(message)
        case m.ApiRetryMessage():
            status = f" {message.error_status}" if message.error_status is not None else ""
            tries = f"try {message.attempt} of {message.max_retries} in {message.retry_delay_ms / 1000:.1f} s"
            return Notice(kind="retry", text=f"API error{status} ({one_line(message.error)}): {tries}")
        case m.ModelFallbackMessage() | m.ModelRefusalFallbackMessage():
            return Notice(kind="retry", text=message.content or "another model answers")
        case m.ModelRefusalNoFallbackMessage():
            return Notice(kind="error", text=message.content or "the model refuses", level="warning")
        case m.RateLimitEvent(rate_limit_info=limit) if limit.status != "allowed":
            kind = f" ({one_line(limit.rateLimitType)})" if limit.rateLimitType else ""
            return Notice(kind="rate_limit", text=f"rate limit{kind}: {one_line(limit.status)}", until=limit.resetsAt)
        case m.SystemErrorMessage():
            return Notice(kind="error", text=(message.error.message if message.error else message.message) or "error")
        case m.StreamEvent(event=m.ErrorEvent(error=error)):
            return Notice(kind="error", text=f"API error: {error.message or error.type or ''}")
        case m.SessionWritesLostMessage():
            lost = ", ".join(map(one_line, message.lost))
            return Notice(kind="error", text=f"not saved ({one_line(message.error_code)}): {lost}")
        case m.MirrorErrorMessage():
            return Notice(kind="error", text=f"the transcript was not mirrored: {message.error}")
        case m.AuthStatusMessage():
            output = message.output if isinstance(message.output, str) else "\n".join(message.output)
            text = message.error or output
            return Notice(kind="auth", text=text, level="error" if message.error else None) if text else None
        case m.InformationalMessage():
            return Notice(kind="info", text=message.content, level="warning" if message.level == "warning" else None)
        case m.NotificationMessage():
            urgent = message.priority in ("high", "immediate")
            return Notice(kind="info", text=message.text, level="warning" if urgent else None)
        case m.LocalCommandOutputMessage():
            return Notice(kind="info", text=message.content, level="plain")
        case m.PermissionDeniedMessage():
            text = f"{call_name(message.tool_name)} denied without a question"
            reason = message.decision_reason or message.message
            return Notice(kind="question", text=f"{text}: {reason}", level="warning")
        case m.PluginInstallMessage(status="failed"):
            named = f" {one_line(message.name)}" if message.name else ""
            return Notice(kind="warning", text=f"plugin{named} not installed: {message.error or ''}")
        case m.HookResponseMessage():
            return _describe_hook(message)
        case m.UnknownMessage():
            named = "/".join(one_line(name) for name in (message.type, message.subtype) if name)
            return Notice(kind="warning", text=f"{named or 'a message'}: {one_line(message.reason)}")
        case _:
            return _describe_state(message)


def _describe_status(message: m.StatusMessage) -> Notice | None:
    if message.compact_result == "failed":
        return Notice(kind="error", text=f"not compacted: {message.compact_error or ''}")
    if message.status == "compacting":
        return Notice(kind="status", text="compacting the conversation")
    if message.permissionMode is not None:
        return Notice(kind="status", text=f"permission mode: {message.permissionMode}")
    return None


def _describe_hook(message: m.HookResponseMessage) -> Notice:
    code = f", exit code {message.exit_code}" if message.exit_code else ""
    return Notice(
        kind="hook",
        text=f"hook {one_line(message.hook_name or message.hook_event)}: {one_line(message.outcome or 'done')}{code}",
        level=None if message.outcome in (None, "success") else "warning",
        detail=message.output or None,
    )


def _describe_state(message: Any) -> Notice | None:
    """Return the notice for a message about the CLI's state or its tasks; None for other messages."""
    match message:
        case m.CompactBoundaryMessage(compact_metadata=done):
            after = f" to {done.post_tokens:,}" if done.post_tokens is not None else ""
            text = f"compacted ({one_line(done.trigger)}): {done.pre_tokens:,}{after} tokens"
        case m.ConversationResetMessage():
            text = "the conversation starts afresh"
        case m.TaskStartedMessage(description=description) if message.task_type != "local_agent":
            text = f"in the background: {description}" if message.is_backgrounded else description
        case m.TaskNotificationMessage(status=status, summary=summary):
            text = f"task {one_line(status)}: {summary}"
            return Notice(kind="status", text=text, level=None if status == "completed" else "warning")
        case m.TaskUpdatedMessage(patch=patch) if patch is not None and patch.error:
            text = f"task {one_line(patch.status or 'failed')}: {patch.error}"
            return Notice(kind="status", text=text, level="warning")
        case m.ToolUseSummaryMessage(summary=text):
            pass
        case m.MemoryRecallMessage(memories=memories):
            text = f"memories recalled: {len(memories)}"
        case m.SessionTitleChangedMessage(title=title) if title:
            text = f"title: {title}"
        case m.ElicitationCompleteMessage(mcp_server_name=server):
            text = f"{one_line(server)} has its answer"
        case m.PromptSuggestionMessage(suggestion=suggestion):
            text = f"suggestion: {suggestion}"
        case m.WorkerShuttingDownMessage(reason=reason):
            return Notice(kind="status", text=f"shutting down: {reason}", level="warning")
        case _:
            return None
    return Notice(kind="status", text=text)


def describe_activity(message: Any) -> Activity | None:
    """Return what the CLI is starting to do, or None if the message does not say so."""
    match message:
        case m.StatusMessage(status=status) if status:
            return Activity(what="waiting for the API" if status == "requesting" else status)
        case m.ToolProgressMessage():
            seconds = f"{message.elapsed_time_seconds:.0f} s in all"
            return Activity(what=f"running {call_name(message.tool_name)}", detail=seconds)
        case m.TaskProgressMessage():
            return Activity(what="running a task", detail=message.description)
        case m.ThinkingTokensMessage():
            return Activity(what="thinking", detail=f"about {message.estimated_tokens:,} tokens")
        case m.HookStartedMessage():
            return Activity(what="running a hook", detail=message.hook_name)
        case m.ApiRetryMessage():
            return Activity(what="waiting to ask the API again")
        case m.BackgroundTasksChangedMessage(tasks=tasks) if tasks:
            return Activity(what="running in the background", detail=f"{len(tasks)}")
        case _:
            return None
