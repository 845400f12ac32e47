"""What the CLI tells of itself, in one line each: its state, tasks, hooks, retries, limits.

Knows messages; not where the lines go. All text is safe to print.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

from claude_wire.cli.show.excerpts import detail, excerpt
from claude_wire.foundation.printable import one_line, printable
from claude_wire.messages import (
    ApiRetryMessage,
    AuthStatusMessage,
    BackgroundTasksChangedMessage,
    CompactBoundaryMessage,
    ConversationResetMessage,
    ElicitationCompleteMessage,
    HookResponseMessage,
    HookStartedMessage,
    InformationalMessage,
    LocalCommandOutputMessage,
    MemoryRecallMessage,
    Message,
    MirrorErrorMessage,
    ModelFallbackMessage,
    ModelRefusalFallbackMessage,
    ModelRefusalNoFallbackMessage,
    NotificationMessage,
    PermissionDeniedMessage,
    PluginInstallMessage,
    PromptSuggestionMessage,
    RateLimitEvent,
    SessionTitleChangedMessage,
    SessionWritesLostMessage,
    StatusMessage,
    SystemErrorMessage,
    TaskNotificationMessage,
    TaskProgressMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    ThinkingTokensMessage,
    ToolProgressMessage,
    ToolUseSummaryMessage,
    WorkerShuttingDownMessage,
)
from claude_wire.messages.unknown import UnknownMessage

__all__ = ["ERROR", "QUIET", "WARNING", "Notice", "activity", "notice"]

ERROR, WARNING, QUIET = "bold red", "yellow", "dim"


class Notice(NamedTuple):
    """Lines of text, and the style that they are shown in."""

    text: str
    style: str = QUIET


def notice(message: Message) -> Notice | None:
    """What a message tells, or None for what is shown otherwise or not at all."""
    match message:
        case ApiRetryMessage():
            status = f" {message.error_status}" if message.error_status is not None else ""
            return Notice(
                f"! API error{status} ({one_line(message.error)}): try {message.attempt} of {message.max_retries} "
                f"in {message.retry_delay_ms / 1000:.1f} s",
                WARNING,
            )
        case ModelFallbackMessage() | ModelRefusalFallbackMessage() | ModelRefusalNoFallbackMessage():
            return Notice(f"! {detail(message.content or 'another model answers')}", WARNING)
        case RateLimitEvent(rate_limit_info=limit) if limit.status != "allowed":
            kind = f" ({one_line(limit.rateLimitType)})" if limit.rateLimitType else ""
            resets = f", until {_time(limit.resetsAt)}" if limit.resetsAt is not None else ""
            return Notice(f"! rate limit{kind}: {one_line(limit.status)}{resets}", WARNING)
        case SystemErrorMessage():
            text = message.message or (message.error.message if message.error else "")
            return Notice(f"! {detail(text)}", ERROR)
        case SessionWritesLostMessage():
            lost = ", ".join(map(one_line, message.lost))
            return Notice(f"! not saved ({one_line(message.error_code)}): {lost}", ERROR)
        case MirrorErrorMessage():
            return Notice(f"! the transcript was not mirrored: {detail(message.error)}", ERROR)
        case AuthStatusMessage():
            output = message.output if isinstance(message.output, str) else "\n".join(message.output)
            text = message.error or output
            return Notice(f"! sign-in: {detail(text)}", ERROR if message.error else WARNING) if text else None
        case PermissionDeniedMessage():
            reason = message.decision_reason or message.message
            return Notice(f"? {one_line(message.tool_name)} denied without a question: {detail(reason)}", WARNING)
        case StatusMessage():
            return _status(message)
        case CompactBoundaryMessage(compact_metadata=done):
            after = f" to {done.post_tokens:,}" if done.post_tokens is not None else ""
            return Notice(f"* compacted ({one_line(done.trigger)}): {done.pre_tokens:,}{after} tokens")
        case ConversationResetMessage():
            return Notice("* the conversation starts afresh")
        case HookResponseMessage():
            return _hook(message)
        case InformationalMessage():
            return Notice(f"* {detail(message.content)}", WARNING if message.level == "warning" else QUIET)
        case NotificationMessage():
            urgent = message.priority in ("high", "immediate")
            return Notice(f"* {detail(message.text)}", WARNING if urgent else QUIET)
        case LocalCommandOutputMessage():
            return Notice(printable(message.content), "")
        case TaskStartedMessage(description=description) if message.task_type != "local_agent":
            return Notice(
                f"* in the background: {detail(description)}" if message.is_backgrounded else f"* {detail(description)}"
            )
        case TaskNotificationMessage():
            style = QUIET if message.status == "completed" else WARNING
            return Notice(f"* task {one_line(message.status)}: {detail(message.summary)}", style)
        case TaskUpdatedMessage(patch=patch) if patch is not None and patch.error:
            return Notice(f"* task {one_line(patch.status or 'failed')}: {detail(patch.error)}", WARNING)
        case PluginInstallMessage(status="failed"):
            named = f" {one_line(message.name)}" if message.name else ""
            return Notice(f"! plugin{named} not installed: {detail(message.error or '')}", WARNING)
        case ToolUseSummaryMessage():
            return Notice(f"* {detail(message.summary)}")
        case MemoryRecallMessage():
            return Notice(f"* memories recalled: {len(message.memories)}")
        case SessionTitleChangedMessage(title=title) if title:
            return Notice(f"* title: {detail(title)}")
        case ElicitationCompleteMessage():
            return Notice(f"* {one_line(message.mcp_server_name)} has its answer")
        case PromptSuggestionMessage():
            return Notice(f"* suggestion: {detail(message.suggestion)}")
        case WorkerShuttingDownMessage():
            return Notice(f"* shutting down: {detail(message.reason)}", WARNING)
        case UnknownMessage():
            named = "/".join(one_line(name) for name in (message.type, message.subtype) if name)
            return Notice(f"! {named or 'a message'}: {one_line(message.reason)}", WARNING)
        case _:
            return None


def activity(message: Message) -> tuple[str, str] | None:
    """What the CLI is busy with from now on, and a detail of it; None if the message does not say."""
    match message:
        case StatusMessage(status=status) if status:
            return "waiting for the API" if status == "requesting" else one_line(status), ""
        case ToolProgressMessage():
            return f"running {one_line(message.tool_name)}", f"{message.elapsed_time_seconds:.0f} s in all"
        case TaskProgressMessage():
            return "running a task", detail(message.description)
        case ThinkingTokensMessage():
            return "thinking", f"about {message.estimated_tokens:,} tokens"
        case HookStartedMessage():
            return "running a hook", one_line(message.hook_name)
        case ApiRetryMessage():
            return "waiting to ask the API again", ""
        case BackgroundTasksChangedMessage(tasks=tasks) if tasks:
            return "running in the background", f"{len(tasks)}"
        case _:
            return None


def _time(seconds: float) -> str:
    try:
        return datetime.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return str(seconds)


def _status(message: StatusMessage) -> Notice | None:
    if message.compact_result == "failed":
        return Notice(f"! not compacted: {detail(message.compact_error or '')}", ERROR)
    if message.status == "compacting":
        return Notice("* compacting the conversation")
    if message.permissionMode is not None:
        return Notice(f"* permission mode: {one_line(message.permissionMode)}")
    return None


def _hook(message: HookResponseMessage) -> Notice:
    name = one_line(message.hook_name or message.hook_event)
    failed = message.outcome not in (None, "success")
    code = f", exit code {message.exit_code}" if message.exit_code else ""
    lines = [f"# hook {name}: {one_line(message.outcome or 'done')}{code}"]
    if message.output:
        lines += [f"    {line}" for line in excerpt(message.output)]
    return Notice("\n".join(lines), WARNING if failed else QUIET)
