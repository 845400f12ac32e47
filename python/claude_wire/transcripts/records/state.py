"""Records outside of the tree: notes of the CLI for resuming, listing and showing a session."""

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
    """The session's name as an agent."""

    agentName: str
    """The name. In all known files it is the custom title."""


class AiTitleRecord(Record, tag="ai-title", kw_only=True, frozen=True):
    """A title written by the model."""

    aiTitle: str


class ApiRequestRecord(Record, tag="api-request", kw_only=True, frozen=True):
    """A request to the API, with its messages as hashes.

    The messages are the first ``keep`` messages of the request ``base``, followed by ``tail``.
    """

    agentId: str | None = None
    """The id of the subagent; None in the main conversation."""
    id: str
    """The id of this record; ``AssistantRecord.requestRef`` repeats it."""
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""
    version: str | None = None
    """The version of the CLI."""
    querySource: str | None = None
    """The purpose of the request, such as ``sdk`` or ``agent:builtin:general-purpose``."""
    shapeHash: str | None = None
    """The hash of the :class:`ApiRequestShapeRecord` with the system prompt and the tools."""
    params: dict[str, Any] | None = None
    """The other parameters, such as ``model``, ``max_tokens`` and ``thinking``."""
    base: str | None = None
    """The ``id`` of the earlier request that this one continues; None for a first request."""
    keep: int | None = None
    """The number of messages that are the same as in ``base``."""
    tail: list[str] | None = None
    """The messages after the first ``keep``, as the hashes of :class:`ApiRequestBlobRecord`."""
    cacheControl: list[Any] | None = None
    """The cache marks, each with its ``path`` in the request and its ``value``."""
    requestDigest: str | None = None
    """A hash of the whole request."""
    echoWireToolInputs: bool | None = None
    thread: dict[str, Any] | None = None


class ApiRequestBlobRecord(Record, tag="api-request-blob", kw_only=True, frozen=True):
    """A message of API requests."""

    agentId: str | None = None
    """The id of the subagent; None in the main conversation."""
    hash: str
    """The hash of the message, which ``tail`` of an :class:`ApiRequestRecord` lists."""
    message: dict[str, Any] | None = None
    """The message, with its role."""


class ApiRequestShapeRecord(Record, tag="api-request-shape", kw_only=True, frozen=True):
    """The system prompt and the tools of API requests."""

    agentId: str | None = None
    """The id of the subagent; None in the main conversation."""
    shapeHash: str
    """The hash of ``shape``, which an :class:`ApiRequestRecord` repeats."""
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""
    version: str | None = None
    """The version of the CLI."""
    shape: dict[str, Any] | None = None
    """The system prompt in ``system``, and the tools."""


class AtisLatchRecord(Record, tag="atis-latch", kw_only=True, frozen=True):
    """A state of the CLI with an unknown meaning."""

    atis: str | None = None
    """Observed: always empty."""


class CostStateRecord(Record, tag="cost-state", kw_only=True, frozen=True):
    """The cost of the session so far, as calculated by the CLI. It includes subagents and side requests.

    Each record has the total so far, so the last record of a session counts. A fork continues the total of its
    original. After a kill of the CLI, the total starts again at zero.
    """

    totalCostUSD: Number | None = None
    """The cost in US dollars, an estimate of the CLI."""
    totalAPIDuration: Number | None = None
    """Milliseconds of requests to the API, with retries."""
    totalAPIDurationWithoutRetries: Number | None = None
    """Milliseconds of requests to the API, without failed attempts."""
    totalToolDuration: Number | None = None
    """Milliseconds in which tools ran."""
    totalLinesAdded: int | None = None
    """Lines of files that tools added."""
    totalLinesRemoved: int | None = None
    """Lines of files that tools removed."""
    totalDuration: Number | None = None
    """Milliseconds that the session has run."""
    startTime: Number | None = None
    """When the session started, in milliseconds since 1970-01-01 UTC."""
    modelUsage: dict[str, ModelUsage] | None = None
    """The usage of each model, by its id."""
    hasUnknownModelCost: bool | None = None
    """True if the CLI does not know the price of a model, so that the cost is too low."""


class CustomTitleRecord(Record, tag="custom-title", kw_only=True, frozen=True):
    """A title from the user."""

    customTitle: str


class TagRecord(Record, tag="tag", kw_only=True, frozen=True):
    """A tag from the user."""

    # Not called `tag`, because that is a keyword for Structs. The key on the wire is `tag`.
    label: str = msgspec.field(name="tag")
    """The tag; empty if the user has removed it. The key on the wire is ``tag``."""


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
    """The uuid of the prompt."""
    snapshot: dict[str, Any] | None = None
    """The backups."""
    isSnapshotUpdate: bool | None = None


class LastPromptRecord(Record, tag="last-prompt", kw_only=True, frozen=True):
    """The latest prompt, and the place where the conversation continues."""

    lastPrompt: str | None = None
    """The text of the prompt."""
    leafUuid: str | None = None
    """The uuid of the record after which the conversation continues."""


class ModeRecord(Record, tag="mode", kw_only=True, frozen=True):
    """The mode in which a resumed session continues."""

    # one of normal
    mode: str


class PrLinkRecord(Record, tag="pr-link", kw_only=True, frozen=True):
    """A pull request that the session works on."""

    prNumber: int | None = None
    """The number of the pull request."""
    prUrl: str | None = None
    prRepository: str | None = None
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""


class QueueOperationRecord(Record, tag="queue-operation", kw_only=True, frozen=True):
    """A prompt was put into the queue or taken out of it."""

    # one of enqueue, dequeue, remove, popAll
    operation: str
    """``enqueue`` puts a prompt in; ``dequeue``, ``remove`` and ``popAll`` take prompts out."""
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""
    content: Any = None
    """The prompt, a text or a list of blocks; None if it was taken out."""
    commandUuid: str | None = None
    """The uuid of the prompt."""
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
    """A title of a branch of the conversation, from older CLIs."""

    summary: str
    """The title."""
    leafUuid: str | None = None
    """The uuid of the last record of the branch, which may be in another file."""


class ToolsUsedRecord(Record, tag="tools-used", kw_only=True, frozen=True):
    """The tools that were used so far."""

    tools: list[str]


class WorktreeStateRecord(Record, tag="worktree-state", kw_only=True, frozen=True):
    """The git worktree in which the session works."""

    worktreeSession: dict[str, Any] | None = null()
    """The path, branch and origin of the worktree; null after the session has left it."""
