"""The events: what a person sees of a session. The terminal, the HTML page and the web page draw them.

A new event is a class here, the lines of :class:`~claude_wire_kit.events.bridge.Bridge` that make it, and one drawing
in each of the three. Fields and classes marked *detail* come with ``Bridge(details=True)`` only.
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
    """A piece of a prompt or of a tool's result: a ``text``, or the ``name`` of a block of another type.

    A picture has its base64 in ``data`` and its ``mediaType``.
    """

    text: str | None = None
    name: str | None = None
    mediaType: str | None = None
    data: str | None = None


class Tokens(Wire, kw_only=True, frozen=True):
    """The number of tokens that went in, of those that were read from the cache, and of those that came out."""

    input: int = 0
    cached: int = 0
    output: int = 0


class UserPrompt(_Event, tag="user_prompt", kw_only=True, frozen=True):
    """A prompt of a person, when the CLI has taken it.

    It comes with ``Bridge(prompts=True)``, if the CLI repeats prompts: with
    ``ClaudeOptions(replay_user_messages=True)``. ``id`` is the uuid with
    which the prompt was sent. ``attachments`` counts the images and documents in it, if there are any.

    With ``Bridge(details=True)`` it comes once for each prompt that any message shows, also for those of subagents
    (``agentId``) and for what the CLI writes in the user's place (``origin``). ``parts`` is the whole content, ``at``
    the time, and ``duringTurn`` is true for a prompt that joins the turn under way.
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
    """One text block of the main conversation; never empty.

    ``id`` is there if deltas came before, with ``Bridge(partial=True)``. A delta has ``partial`` true, and its
    ``content`` is added to what came under the same ``id``. The event without ``partial`` replaces all of them.

    Details: texts of subagents (``agentId``), blank texts, a delta without content where the text pauses, ``failed``
    for the text of a failed answer, and ``at``.
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
    """A block of thinking, or a delta of one. Deltas work as in :class:`ClaudeResponse`. Detail.

    ``redacted`` is true if the API does not show the block.
    """

    content: str
    id: str | None = None
    partial: bool | None = None
    redacted: bool | None = None
    agentId: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class Answer(_Event, tag="answer", kw_only=True, frozen=True):
    """The start of a model's answer, or a further message of it: the model, the time, and the tokens so far. Detail.

    ``failed`` is true where the API gave an error in place of an answer.
    """

    id: str | None = None
    model: str | None = None
    failed: bool | None = None
    tokens: Tokens | None = None
    at: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class ProgressUpdate(_Event, tag="progress_update", kw_only=True, frozen=True):
    """The progress of the work: ``completedSteps`` of ``totalSteps``, and ``percentage`` from 0 to 100.

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

    Details: the start has the tool's ``name`` and ``input``, and the ``change`` that it asks for in a file. The end has
    the result in ``content``, the change that was made, the ``exitCode`` of a command that failed, and who allowed or
    denied the call (``decision``, in words). A result whose call is not open also gives an end.
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
    """A tool waits for a person's permission.

    ``options`` are the ways to allow it, in words. The first one allows this call only; the others also change the
    permissions.

    Details: the ``question`` in words, the ``reason`` why the CLI asks, the ``path`` that it is about, and the id of
    the tool call.
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
    """A question needs no answer any more: withdrawn, answered elsewhere, or dropped because too many were open.

    ``allowed`` is there if it was answered and the messages say how: the CLI says it in the result of the tool.
    """

    requestId: str | float
    reason: CancelReason
    allowed: bool | None = None
    conversationId: str | None = None
    projectId: str | None = None


class TurnComplete(_Event, tag="turn_complete", kw_only=True, frozen=True):
    """A turn has ended; and the run, too, if there is no ``background``.

    ``costUsd`` is what this turn has cost, in US dollars; ``turns`` counts the model's answers within it. ``error``
    says what went wrong when ``ok`` is false. ``background`` counts the subagents that go on in the background. When
    one of them ends, its :class:`SubagentProgress` says so, and another turn follows unless it was ``stopped``.

    Details: the ``reason`` of a failure as one word, all ``errors``, the structured ``output``, what the session has
    cost so far, how many calls were ``denied``, and the tokens of the main conversation.
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
    """Something that a person should see beside the conversation: an error, a retry, the progress of a sign-in.

    ``text`` has the words, which may hold text of others: escape them. ``until`` is when a limit ends, in seconds since
    1970. ``level`` says how urgent the notice is, if the kind does not: ``plain`` is a text of its own.

    Details: kinds other than the first five, longer text (``detail``) and JSON (``fields``) that belongs to the notice,
    and the ids of the tool call and of the subagent that it is about.
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
    """The CLI is ready, or it changed its model, folder or permission mode. Detail."""

    model: str | None = None
    folder: str | None = None
    version: str | None = None
    permissionMode: str | None = None
    conversationId: str | None = None
    projectId: str | None = None


class Activity(_Event, tag="activity", kw_only=True, frozen=True):
    """What the CLI is doing from now on, in words. Detail."""

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
    """Return the JSON schema (2020-12) of all events, made from their classes."""
    schema = msgspec.json.schema(UiEvent)
    (extra,) = Wire.__struct_encode_fields__  # the place for keys without a field: an event has none
    for part in schema["$defs"].values():
        part["properties"].pop(extra)
        part.pop("additionalProperties")
    return schema
