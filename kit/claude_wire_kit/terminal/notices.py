"""What the CLI tells of itself, in one line each: its state, tasks, hooks, retries, limits.

Knows messages; not where the lines go. All text is safe to print.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

from claude_wire import messages
from claude_wire.messages import Message, UnknownMessage
from claude_wire.support import one_line, printable
from claude_wire_kit.terminal.calls import call_name
from claude_wire_kit.terminal.excerpts import detail, excerpt

__all__ = ["ERROR", "QUIET", "WARNING", "Notice", "activity", "notice"]

ERROR, WARNING, QUIET = "bold red", "yellow", "dim"


class Notice(NamedTuple):
    """Lines of text, and the style that they are shown in."""

    text: str
    style: str = QUIET


def notice(message: Message) -> Notice | None:
    """What a message tells, or None for what is shown otherwise or not at all."""
    match message:
        case messages.ApiRetryMessage():
            status = f" {message.error_status}" if message.error_status is not None else ""
            return Notice(
                f"! API error{status} ({one_line(message.error)}): try {message.attempt} of {message.max_retries} "
                f"in {message.retry_delay_ms / 1000:.1f} s",
                WARNING,
            )
        case (
            messages.ModelFallbackMessage()
            | messages.ModelRefusalFallbackMessage()
            | messages.ModelRefusalNoFallbackMessage()
        ):
            return Notice(f"! {detail(message.content or 'another model answers')}", WARNING)
        case messages.RateLimitEvent(rate_limit_info=limit) if limit.status != "allowed":
            kind = f" ({one_line(limit.rateLimitType)})" if limit.rateLimitType else ""
            resets = f", until {_time(limit.resetsAt)}" if limit.resetsAt is not None else ""
            return Notice(f"! rate limit{kind}: {one_line(limit.status)}{resets}", WARNING)
        case messages.SystemErrorMessage():
            text = message.message or (message.error.message if message.error else "")
            return Notice(f"! {detail(text)}", ERROR)
        case messages.SessionWritesLostMessage():
            lost = ", ".join(map(one_line, message.lost))
            return Notice(f"! not saved ({one_line(message.error_code)}): {lost}", ERROR)
        case messages.MirrorErrorMessage():
            return Notice(f"! the transcript was not mirrored: {detail(message.error)}", ERROR)
        case messages.AuthStatusMessage():
            output = message.output if isinstance(message.output, str) else "\n".join(message.output)
            text = message.error or output
            return Notice(f"! sign-in: {detail(text)}", ERROR if message.error else WARNING) if text else None
        case messages.PermissionDeniedMessage():
            reason = message.decision_reason or message.message
            return Notice(f"? {call_name(message.tool_name)} denied without a question: {detail(reason)}", WARNING)
        case messages.StatusMessage():
            return _status(message)
        case messages.CompactBoundaryMessage(compact_metadata=done):
            after = f" to {done.post_tokens:,}" if done.post_tokens is not None else ""
            return Notice(f"* compacted ({one_line(done.trigger)}): {done.pre_tokens:,}{after} tokens")
        case messages.ConversationResetMessage():
            return Notice("* the conversation starts afresh")
        case messages.HookResponseMessage():
            return _hook(message)
        case messages.InformationalMessage():
            return Notice(f"* {detail(message.content)}", WARNING if message.level == "warning" else QUIET)
        case messages.NotificationMessage():
            urgent = message.priority in ("high", "immediate")
            return Notice(f"* {detail(message.text)}", WARNING if urgent else QUIET)
        case messages.LocalCommandOutputMessage():
            return Notice(printable(message.content), "")
        case messages.TaskStartedMessage(description=description) if message.task_type != "local_agent":
            return Notice(
                f"* in the background: {detail(description)}" if message.is_backgrounded else f"* {detail(description)}"
            )
        case messages.TaskNotificationMessage():
            style = QUIET if message.status == "completed" else WARNING
            return Notice(f"* task {one_line(message.status)}: {detail(message.summary)}", style)
        case messages.TaskUpdatedMessage(patch=patch) if patch is not None and patch.error:
            return Notice(f"* task {one_line(patch.status or 'failed')}: {detail(patch.error)}", WARNING)
        case messages.PluginInstallMessage(status="failed"):
            named = f" {one_line(message.name)}" if message.name else ""
            return Notice(f"! plugin{named} not installed: {detail(message.error or '')}", WARNING)
        case messages.ToolUseSummaryMessage():
            return Notice(f"* {detail(message.summary)}")
        case messages.MemoryRecallMessage():
            return Notice(f"* memories recalled: {len(message.memories)}")
        case messages.SessionTitleChangedMessage(title=title) if title:
            return Notice(f"* title: {detail(title)}")
        case messages.ElicitationCompleteMessage():
            return Notice(f"* {one_line(message.mcp_server_name)} has its answer")
        case messages.PromptSuggestionMessage():
            return Notice(f"* suggestion: {detail(message.suggestion)}")
        case messages.WorkerShuttingDownMessage():
            return Notice(f"* shutting down: {detail(message.reason)}", WARNING)
        case UnknownMessage():
            named = "/".join(one_line(name) for name in (message.type, message.subtype) if name)
            return Notice(f"! {named or 'a message'}: {one_line(message.reason)}", WARNING)
        case _:
            return None


def activity(message: Message) -> tuple[str, str] | None:
    """What the CLI is busy with from now on, and a detail of it; None if the message does not say."""
    match message:
        case messages.StatusMessage(status=status) if status:
            return "waiting for the API" if status == "requesting" else one_line(status), ""
        case messages.ToolProgressMessage():
            return f"running {call_name(message.tool_name)}", f"{message.elapsed_time_seconds:.0f} s in all"
        case messages.TaskProgressMessage():
            return "running a task", detail(message.description)
        case messages.ThinkingTokensMessage():
            return "thinking", f"about {message.estimated_tokens:,} tokens"
        case messages.HookStartedMessage():
            return "running a hook", one_line(message.hook_name)
        case messages.ApiRetryMessage():
            return "waiting to ask the API again", ""
        case messages.BackgroundTasksChangedMessage(tasks=tasks) if tasks:
            return "running in the background", f"{len(tasks)}"
        case _:
            return None


def _time(seconds: float) -> str:
    try:
        return datetime.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return str(seconds)


def _status(message: messages.StatusMessage) -> Notice | None:
    if message.compact_result == "failed":
        return Notice(f"! not compacted: {detail(message.compact_error or '')}", ERROR)
    if message.status == "compacting":
        return Notice("* compacting the conversation")
    if message.permissionMode is not None:
        return Notice(f"* permission mode: {one_line(message.permissionMode)}")
    return None


def _hook(message: messages.HookResponseMessage) -> Notice:
    name = one_line(message.hook_name or message.hook_event)
    failed = message.outcome not in (None, "success")
    code = f", exit code {message.exit_code}" if message.exit_code else ""
    lines = [f"# hook {name}: {one_line(message.outcome or 'done')}{code}"]
    if message.output:
        lines += [f"    {line}" for line in excerpt(message.output)]
    return Notice("\n".join(lines), WARNING if failed else QUIET)
