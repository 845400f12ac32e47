"""The events that a front end gets. Knows JSON; not messages."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from claude_wire.codec import encode
from claude_wire.messages.base import Number, Wire

__all__ = [
    "CancelReason",
    "ClaudeResponse",
    "Notice",
    "NoticeKind",
    "Operation",
    "OperationKind",
    "OperationState",
    "PermissionCancelled",
    "PermissionRequest",
    "ProgressUpdate",
    "SubagentProgress",
    "SubagentStatus",
    "TurnComplete",
    "UiEvent",
    "UserPrompt",
    "event_schema",
]

OperationKind: TypeAlias = Literal[
    "file_read", "file_write", "file_edit", "command", "search", "web", "mcp", "subagent", "other"
]
OperationState: TypeAlias = Literal["started", "succeeded", "failed", "denied", "interrupted"]
SubagentStatus: TypeAlias = Literal["started", "running", "completed", "failed", "stopped"]
CancelReason: TypeAlias = Literal["withdrawn", "answered", "dropped"]
NoticeKind: TypeAlias = Literal["error", "retry", "auth", "rate_limit", "info"]


class _Event(Wire, tag_field="type", kw_only=True, frozen=True):
    def to_json(self) -> str:
        """Return the event as compact JSON on one line, without a line feed."""
        return encode(self)[:-1].decode()


class UserPrompt(_Event, tag="user_prompt", kw_only=True, frozen=True):
    """A prompt of a person, when the CLI has taken it.

    It comes with ``Bridge(prompts=True)``, if the CLI repeats prompts: with
    ``ClaudeOptions(replay_user_messages=True)``. ``id`` is the uuid with
    which the prompt was sent. ``attachments`` counts the images and documents in it, if there are any.
    """

    content: str
    id: str | None = None
    attachments: int | None = None
    conversationId: str | None = None
    projectId: str | None = None


class ClaudeResponse(_Event, tag="claude_response", kw_only=True, frozen=True):
    """One text block of the main conversation; never empty.

    ``id`` is there if deltas came before, with ``Bridge(partial=True)``. A delta has ``partial`` true, and its
    ``content`` is added to what came under the same ``id``. The event without ``partial`` replaces all of them.
    """

    content: str
    conversationId: str | None = None
    projectId: str | None = None
    id: str | None = None
    partial: bool | None = None


class ProgressUpdate(_Event, tag="progress_update", kw_only=True, frozen=True):
    """How far the work is: ``completedSteps`` of ``totalSteps``, and ``percentage`` from 0 to 100.

    An update that was found in a text comes directly after the :class:`ClaudeResponse` with this text and is of its
    conversation: it has no ``conversationId``. All other updates have one.
    """

    currentStep: str
    completedSteps: int
    totalSteps: int
    percentage: float
    conversationId: str | None = None
    projectId: str | None = None


class Operation(_Event, tag="operation", kw_only=True, frozen=True):
    """A tool call that has started or ended. Each one that started ends once.

    ``agentId`` names the subagent whose call it is.
    """

    id: str
    kind: OperationKind
    title: str
    path: str | None = None
    command: str | None = None
    state: OperationState
    agentId: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class SubagentProgress(_Event, tag="subagent_progress", kw_only=True, frozen=True):
    """What a subagent does. It ends once, with the status ``completed``, ``failed`` or ``stopped``.

    ``agentId`` is the id of the tool call that began it, or of its task if no call did.
    """

    agentId: str
    name: str
    status: SubagentStatus
    lastTool: str | None = None
    summary: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class PermissionRequest(_Event, tag="permission_request", kw_only=True, frozen=True):
    """A tool waits for a person's answer.

    ``options`` are the ways to allow it, in words. The first one allows this call only; the others also change the
    permissions.
    """

    requestId: str | Number
    tool: str
    description: str | None = None
    input: dict[str, Any]
    options: list[str]
    conversationId: str | None = None
    projectId: str | None = None


class PermissionCancelled(_Event, tag="permission_cancelled", kw_only=True, frozen=True):
    """A question needs no answer any more: withdrawn, answered elsewhere, or dropped because too many were open.

    ``allowed`` is there if it was answered and the messages say how: the CLI says it in the result of the tool.
    """

    requestId: str | Number
    reason: CancelReason
    allowed: bool | None = None
    conversationId: str | None = None
    projectId: str | None = None


class TurnComplete(_Event, tag="turn_complete", kw_only=True, frozen=True):
    """A turn has ended; and the run, too, if there is no ``background``.

    ``costUsd`` is what this turn has cost, in US dollars; ``turns`` counts the model's answers within it. ``error``
    says what went wrong when ``ok`` is false. ``background`` counts the subagents that go on in the background. When
    one of them ends, its :class:`SubagentProgress` says so, and another turn follows unless it was ``stopped``.
    """

    ok: bool
    costUsd: float | None = None
    durationMs: Number | None = None
    turns: int | None = None
    error: str | None = None
    background: int | None = None
    conversationId: str | None = None
    projectId: str | None = None


class Notice(_Event, tag="notice", kw_only=True, frozen=True):
    """Something that a person should see beside the conversation: an error, a retry, how signing in gets on."""

    kind: NoticeKind
    text: str
    conversationId: str | None = None
    projectId: str | None = None


UiEvent: TypeAlias = (
    UserPrompt
    | ClaudeResponse
    | ProgressUpdate
    | Operation
    | SubagentProgress
    | PermissionRequest
    | PermissionCancelled
    | TurnComplete
    | Notice
)


def event_schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of all events, made of their classes."""
    return msgspec.json.schema(UiEvent)
