"""Records outside the tree, which the CLI uses to resume, list and show a session."""

from __future__ import annotations

from typing import Any

import msgspec

from claude_wire.messages.base import Number, null
from claude_wire.messages.conversation.usage import ModelUsage
from claude_wire.transcripts.records.base import Record

__all__ = [
    "AgentNameRecord",
    "AiTitleRecord",
    "ApiRequestBlobRecord",
    "ApiRequestRecord",
    "ApiRequestShapeRecord",
    "AtisLatchRecord",
    "CostStateRecord",
    "CustomTitleRecord",
    "FileHistoryDeltaRecord",
    "FileHistorySnapshotRecord",
    "LastPromptRecord",
    "ModeRecord",
    "PrLinkRecord",
    "QueueOperationRecord",
    "RelocatedRecord",
    "SummaryRecord",
    "TagRecord",
    "ToolsUsedRecord",
    "WorktreeStateRecord",
]


class AgentNameRecord(Record, tag="agent-name", kw_only=True, frozen=True):
    """The name of the session's agent."""

    agentName: str
    """The agent's name. In all known files it is the custom title."""


class AiTitleRecord(Record, tag="ai-title", kw_only=True, frozen=True):
    """A title written by the model."""

    aiTitle: str


class ApiRequestRecord(Record, tag="api-request", kw_only=True, frozen=True):
    """A request to the API, with hashes in place of its messages.

    The messages are the first ``keep`` messages of the request ``base``, followed by those in ``tail``.
    """

    agentId: str | None = None
    """The subagent's id; None in the main conversation."""
    id: str
    """The record's id, to which ``AssistantRecord.requestRef`` refers."""
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""
    version: str | None = None
    """The CLI's version."""
    querySource: str | None = None
    """The request's purpose, such as ``sdk`` or ``agent:builtin:general-purpose``."""
    shapeHash: str | None = None
    """The hash of the :class:`ApiRequestShapeRecord` with the system prompt and the tools."""
    params: dict[str, Any] | None = None
    """The other parameters, such as ``model``, ``max_tokens`` and ``thinking``."""
    base: str | None = None
    """The ``id`` of the earlier request that this one continues; None for a first request."""
    keep: int | None = None
    """How many messages are the same as in ``base``."""
    tail: list[str] | None = None
    """The hashes of the messages after the first ``keep``; see :class:`ApiRequestBlobRecord`."""
    cacheControl: list[Any] | None = None
    """The cache marks. Each has a ``path`` in the request and a ``value``."""
    requestDigest: str | None = None
    """A hash of the whole request."""
    echoWireToolInputs: bool | None = None
    thread: dict[str, Any] | None = None


class ApiRequestBlobRecord(Record, tag="api-request-blob", kw_only=True, frozen=True):
    """A message that API requests contain."""

    agentId: str | None = None
    """The subagent's id; None in the main conversation."""
    hash: str
    """The message's hash, which an :class:`ApiRequestRecord` lists in ``tail``."""
    message: dict[str, Any] | None = None
    """The message with its role."""


class ApiRequestShapeRecord(Record, tag="api-request-shape", kw_only=True, frozen=True):
    """The system prompt and the tools that API requests contain."""

    agentId: str | None = None
    """The subagent's id; None in the main conversation."""
    shapeHash: str
    """The hash of ``shape``, to which an :class:`ApiRequestRecord` refers."""
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""
    version: str | None = None
    """The CLI's version."""
    shape: dict[str, Any] | None = None
    """The system prompt, in ``system``, and the tools."""


class AtisLatchRecord(Record, tag="atis-latch", kw_only=True, frozen=True):
    """A part of the CLI's state. Its meaning is unknown."""

    atis: str | None = None
    """Observed: always empty."""


class CostStateRecord(Record, tag="cost-state", kw_only=True, frozen=True):
    """The session's cost so far, as calculated by the CLI. It includes subagents and side requests.

    Each record has the total so far, so only the session's last record counts. A fork continues the total of its
    original. If the CLI was killed, the total starts again at zero.
    """

    totalCostUSD: Number | None = None
    """The cost in US dollars, as estimated by the CLI."""
    totalAPIDuration: Number | None = None
    """The duration of all API requests in milliseconds, including retries."""
    totalAPIDurationWithoutRetries: Number | None = None
    """The duration of all API requests in milliseconds, without failed attempts."""
    totalToolDuration: Number | None = None
    """How long tools ran, in milliseconds."""
    totalLinesAdded: int | None = None
    """How many lines tools added to files."""
    totalLinesRemoved: int | None = None
    """How many lines tools removed from files."""
    totalDuration: Number | None = None
    """How long the session has run, in milliseconds."""
    startTime: Number | None = None
    """When the session started, in milliseconds since 1970-01-01 UTC."""
    modelUsage: dict[str, ModelUsage] | None = None
    """Model id -> the model's usage."""
    hasUnknownModelCost: bool | None = None
    """True if the CLI does not know a model's price, so the cost is too low."""


class CustomTitleRecord(Record, tag="custom-title", kw_only=True, frozen=True):
    """A title from the user."""

    customTitle: str


class TagRecord(Record, tag="tag", kw_only=True, frozen=True):
    """A tag from the user."""

    # Not called `tag`, because that name is a keyword argument of Struct classes. The key on the wire is `tag`.
    label: str = msgspec.field(name="tag")
    """The tag; empty if the user removed the tag. The key on the wire is ``tag``."""


class FileHistoryDeltaRecord(Record, tag="file-history-delta", kw_only=True, frozen=True):
    """A file that was changed after a snapshot, and its backup."""

    messageId: str
    snapshotMessageId: str | None = None
    """The ``messageId`` of the snapshot."""
    trackingPath: str | None = None
    """The path of the changed file."""
    backup: dict[str, Any] | None = None
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""


class FileHistorySnapshotRecord(Record, tag="file-history-snapshot", kw_only=True, frozen=True):
    """The backups of files at a prompt."""

    messageId: str
    """The prompt's uuid."""
    snapshot: dict[str, Any] | None = None
    """The backups."""
    isSnapshotUpdate: bool | None = None


class LastPromptRecord(Record, tag="last-prompt", kw_only=True, frozen=True):
    """The latest prompt, and the record after which the conversation continues."""

    lastPrompt: str | None = None
    """The prompt's text."""
    leafUuid: str | None = None
    """The uuid of the record after which the conversation continues."""


class ModeRecord(Record, tag="mode", kw_only=True, frozen=True):
    """The mode in which a resumed session continues."""

    # one of normal
    mode: str


class PrLinkRecord(Record, tag="pr-link", kw_only=True, frozen=True):
    """A pull request that the session works on."""

    prNumber: int | None = None
    """The pull request's number."""
    prUrl: str | None = None
    prRepository: str | None = None
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""


class QueueOperationRecord(Record, tag="queue-operation", kw_only=True, frozen=True):
    """A prompt entered or left the queue."""

    # one of enqueue, dequeue, remove, popAll
    operation: str
    """``enqueue`` adds a prompt to the queue; ``dequeue``, ``remove`` and ``popAll`` remove prompts."""
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""
    content: Any = None
    """The prompt: a string or a list of blocks. None if the prompt left the queue."""
    commandUuid: str | None = None
    """The prompt's uuid."""
    deliveryId: str | None = None
    """The id that ``QueuedCommand.delivery_id`` repeats."""
    # one of absorbed_mid_turn
    reason: str | None = None
    """``absorbed_mid_turn``: the running turn took the prompt."""


class RelocatedRecord(Record, tag="relocated", kw_only=True, frozen=True):
    """The session continues in another directory, such as a worktree."""

    relocatedCwd: str
    """The new working directory."""


class SummaryRecord(Record, tag="summary", kw_only=True, frozen=True):
    """The title of one branch of the conversation. Only older CLIs write it."""

    summary: str
    """The title."""
    leafUuid: str | None = None
    """The uuid of the branch's last record, which may be in another file."""


class ToolsUsedRecord(Record, tag="tools-used", kw_only=True, frozen=True):
    """The tools that the session has used so far."""

    tools: list[str]


class WorktreeStateRecord(Record, tag="worktree-state", kw_only=True, frozen=True):
    """The git worktree in which the session works."""

    worktreeSession: dict[str, Any] | None = null()
    """The worktree's path, branch and origin; null after the session left the worktree."""
