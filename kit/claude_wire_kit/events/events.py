"""The classes of events. The terminal, the HTML page and the web page show them.

To add an event, write a class in this module, create it in :class:`~claude_wire_kit.events.bridge.Bridge`, and show it
in each of the three front ends. Classes and fields marked *detail* need ``Bridge(details=True)``.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from claude_wire.codec import encode
from claude_wire.messages import Wire

__all__ = [
    "Activity",
    "Answer",
    "CancelReason",
    "ClaudeResponse",
    "Notice",
    "NoticeKind",
    "NoticeLevel",
    "Operation",
    "OperationKind",
    "OperationState",
    "Part",
    "PermissionCancelled",
    "PermissionRequest",
    "ProgressUpdate",
    "PromptOrigin",
    "SessionStarted",
    "SubagentProgress",
    "SubagentStatus",
    "Thinking",
    "Tokens",
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
NoticeKind: TypeAlias = (
    Literal["error", "retry", "auth", "rate_limit", "info"]
    | Literal["warning", "status", "hook", "question", "allowed", "denied", "host", "invalid_line", "block", "cut_off"]
)
NoticeLevel: TypeAlias = Literal["error", "warning", "plain"]
PromptOrigin: TypeAlias = Literal["cli", "interruption"]


class _Event(Wire, tag_field="type", kw_only=True, frozen=True):
    def to_json(self) -> str:
        """Return the event as compact JSON on one line, without a line feed."""
        return encode(self)[:-1].decode()


class Part(Wire, kw_only=True, frozen=True):
    """A piece of a prompt or a tool result: a ``text``, or the ``name`` of a block of another type.

    For a picture, ``data`` is its base64, and ``mediaType`` is set.
    """

    text: str | None = None
    name: str | None = None
    mediaType: str | None = None
    data: str | None = None


class Tokens(Wire, kw_only=True, frozen=True):
    """Token counts: new input, input read from the cache, and output."""

    input: int = 0
    cached: int = 0
    output: int = 0


class UserPrompt(_Event, tag="user_prompt", kw_only=True, frozen=True):
    """A person's prompt that the CLI accepted.

    Requires ``Bridge(prompts=True)``, and a CLI that repeats prompts: ``ClaudeOptions(replay_user_messages=True)``.
    ``id`` is the uuid that the prompt was sent with. ``attachments`` is the number of its images and documents, if any.
    If the CLI joins prompts that waited, each one's event has its text alone.

    With ``Bridge(details=True)`` there is one event for each prompt in any message, including subagents' prompts
    (``agentId``) and user messages that the CLI itself wrote (``origin``). ``parts`` is the whole content, ``at`` is
    the time, and ``duringTurn`` is true for a prompt that joins the current turn.
    """

    content: str
    id: str | None = None
    attachments: int | None = None
    parts: list[Part] | None = None
    agentId: str | None = None
    origin: PromptOrigin | None = None
    duringTurn: bool | None = None
    at: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class ClaudeResponse(_Event, tag="claude_response", kw_only=True, frozen=True):
    """A text block of the main conversation. It is never empty.

    With ``Bridge(partial=True)``, deltas come first. A delta has ``partial`` true; append its ``content`` to the
    earlier deltas with the same ``id``. The event with this ``id`` and without ``partial`` has the whole text, and
    replaces the deltas.

    Details: subagents' texts (``agentId``), blank texts, a delta without content at the end of a streamed block,
    ``failed`` for the text of a failed answer, and the time, ``at``.
    """

    content: str
    conversationId: str | None = None
    projectId: str | None = None
    id: str | None = None
    partial: bool | None = None
    agentId: str | None = None
    failed: bool | None = None
    at: str | None = None


class Thinking(_Event, tag="thinking", kw_only=True, frozen=True):
    """A thinking block, or a delta of one. Deltas work as in :class:`ClaudeResponse`. Detail.

    ``redacted`` is true if the API hides the block's content.
    """

    content: str
    id: str | None = None
    partial: bool | None = None
    redacted: bool | None = None
    agentId: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class Answer(_Event, tag="answer", kw_only=True, frozen=True):
    """A message in a model's answer, with the model, the time, and the tokens so far. Detail.

    ``failed`` is true if the API returned an error instead of an answer.
    """

    id: str | None = None
    model: str | None = None
    failed: bool | None = None
    tokens: Tokens | None = None
    at: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class ProgressUpdate(_Event, tag="progress_update", kw_only=True, frozen=True):
    """How far the work is: ``completedSteps`` of ``totalSteps``, and ``percentage`` from 0 to 100.

    An update from an answer's text directly follows the :class:`ClaudeResponse` with this text. It does not have a
    ``conversationId``; use the one of the response. All other updates have one.
    """

    currentStep: str
    completedSteps: int
    totalSteps: int
    percentage: float
    conversationId: str | None = None
    projectId: str | None = None


class Operation(_Event, tag="operation", kw_only=True, frozen=True):
    """A tool call started or ended. Each call that started ends exactly once.

    ``agentId`` is the subagent that made the call, or None for the main agent.

    Details: the start has the tool's ``name`` and ``input``, and the ``change`` that it asks for in a file. The end has
    the result in ``content``, the change that was made, the ``exitCode`` of a command that failed, and in words who
    allowed or denied the call (``decision``). A result without an open call also creates an end event.
    """

    id: str
    kind: OperationKind
    title: str
    path: str | None = None
    command: str | None = None
    state: OperationState
    agentId: str | None = None
    name: str | None = None
    input: Any = None
    content: list[Part] | None = None
    change: list[str] | None = None
    exitCode: int | None = None
    decision: str | None = None
    at: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class SubagentProgress(_Event, tag="subagent_progress", kw_only=True, frozen=True):
    """The state of a subagent. Each subagent ends once, with the status ``completed``, ``failed`` or ``stopped``.

    ``agentId`` is the id of the tool call that started the subagent, or of its task if no call started it.
    """

    agentId: str
    name: str
    status: SubagentStatus
    lastTool: str | None = None
    summary: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class PermissionRequest(_Event, tag="permission_request", kw_only=True, frozen=True):
    """A tool is waiting for a person's permission.

    ``options`` are the ways to allow the call, in words. The first one allows only this call; the others also change
    the permissions of later calls.

    Details: the ``question`` in words, the CLI's ``reason`` for asking, the ``path`` of the file or folder in question,
    and the tool call's id.
    """

    requestId: str | float
    tool: str
    description: str | None = None
    input: dict[str, Any]
    options: list[str]
    question: str | None = None
    reason: str | None = None
    path: str | None = None
    callId: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class PermissionCancelled(_Event, tag="permission_cancelled", kw_only=True, frozen=True):
    """A question no longer needs an answer. It was withdrawn, answered elsewhere, or dropped because of a limit.

    ``allowed`` says how the question was answered, if the answer or the tool's result shows it.
    """

    requestId: str | float
    reason: CancelReason
    allowed: bool | None = None
    conversationId: str | None = None
    projectId: str | None = None


class TurnComplete(_Event, tag="turn_complete", kw_only=True, frozen=True):
    """A turn ended. The run also ended, unless ``background`` is set.

    ``costUsd`` is the cost of this turn in US dollars. ``turns`` counts the model's answers in the turn. ``error`` says
    what went wrong if ``ok`` is false. ``background`` counts the subagents that are still working in the background.
    When one of them ends, it has a :class:`SubagentProgress`, and then another turn follows, unless the status is
    ``stopped``.

    Details: the ``reason`` for a failure as one word, all ``errors``, the structured ``output``, the session's cost so
    far, how many calls were ``denied``, and the main conversation's tokens.
    """

    ok: bool
    costUsd: float | None = None
    durationMs: float | None = None
    turns: int | None = None
    error: str | None = None
    background: int | None = None
    reason: str | None = None
    errors: list[str] | None = None
    output: Any = None
    sessionCostUsd: float | None = None
    denied: int | None = None
    tokens: Tokens | None = None
    conversationId: str | None = None
    projectId: str | None = None


class Notice(_Event, tag="notice", kw_only=True, frozen=True):
    """A message to the person about the session, such as an error, a retry, or sign-in progress.

    ``text`` may contain text from the model or from tools: escape it. ``until`` is when a rate limit ends, in seconds
    since 1970. ``level`` is set if the urgency differs from that of the ``kind``. ``plain`` marks output, not a report.

    Details: all kinds except the first five, longer text (``detail``) or JSON (``fields``) for the notice, and the ids
    of the tool call and the subagent that it is about.
    """

    kind: NoticeKind
    text: str
    level: NoticeLevel | None = None
    until: float | None = None
    detail: str | None = None
    fields: dict[str, Any] | None = None
    callId: str | None = None
    agentId: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class SessionStarted(_Event, tag="session_started", kw_only=True, frozen=True):
    """The CLI is ready, or changed its model, folder or permission mode. Detail."""

    model: str | None = None
    folder: str | None = None
    version: str | None = None
    permissionMode: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class Activity(_Event, tag="activity", kw_only=True, frozen=True):
    """The CLI started to do something. ``what`` says it in words, such as ``running Bash``. Detail."""

    what: str
    detail: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


UiEvent: TypeAlias = (
    UserPrompt
    | ClaudeResponse
    | Thinking
    | Answer
    | ProgressUpdate
    | Operation
    | SubagentProgress
    | PermissionRequest
    | PermissionCancelled
    | TurnComplete
    | Notice
    | SessionStarted
    | Activity
)


def event_schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of all events."""
    schema = msgspec.json.schema(UiEvent)
    (extra,) = Wire.__struct_encode_fields__  # the field for unknown keys, which events do not have
    for part in schema["$defs"].values():
        part["properties"].pop(extra)
        part.pop("additionalProperties")
    return schema
