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
    """The session's name as an agent. In all known files it is the custom title."""

    agentName: str


class AiTitleRecord(Record, tag="ai-title", kw_only=True, frozen=True):
    """A title written by the model."""

    aiTitle: str


class ApiRequestRecord(Record, tag="api-request", kw_only=True, frozen=True):
    """A request to the API: its ``params``, and its messages as hashes of :class:`ApiRequestBlobRecord`.

    The messages are the first ``keep`` messages of the request ``base``, followed by ``tail``. The system prompt and
    tools are in the :class:`ApiRequestShapeRecord` with the same ``shapeHash``.
    """

    agentId: str | None = None
    id: str
    timestamp: str | None = None
    version: str | None = None
    querySource: str | None = None
    shapeHash: str | None = None
    params: dict[str, Any] | None = None
    base: str | None = None
    keep: int | None = None
    tail: list[str] | None = None
    cacheControl: list[Any] | None = None
    requestDigest: str | None = None
    echoWireToolInputs: bool | None = None
    thread: dict[str, Any] | None = None


class ApiRequestBlobRecord(Record, tag="api-request-blob", kw_only=True, frozen=True):
    """A message of API requests, by its hash."""

    agentId: str | None = None
    hash: str
    message: dict[str, Any] | None = None


class ApiRequestShapeRecord(Record, tag="api-request-shape", kw_only=True, frozen=True):
    """The system prompt and the tools of API requests, by their hash."""

    agentId: str | None = None
    shapeHash: str
    timestamp: str | None = None
    version: str | None = None
    shape: dict[str, Any] | None = None


class AtisLatchRecord(Record, tag="atis-latch", kw_only=True, frozen=True):
    """A state of the CLI with an unknown meaning. ``atis`` is empty in all known files."""

    atis: str | None = None


class CostStateRecord(Record, tag="cost-state", kw_only=True, frozen=True):
    """The cost of the session so far, as calculated by the CLI. It includes subagents and side requests.

    Each record has the total so far, so the last record of a session counts. A fork continues the total of its
    original. After a kill of the CLI, the total starts again at zero. Times are in milliseconds; ``startTime`` is since
    1970.
    """

    totalCostUSD: Number | None = None
    totalAPIDuration: Number | None = None
    totalAPIDurationWithoutRetries: Number | None = None
    totalToolDuration: Number | None = None
    totalLinesAdded: int | None = None
    totalLinesRemoved: int | None = None
    totalDuration: Number | None = None
    startTime: Number | None = None
    modelUsage: dict[str, ModelUsage] | None = None
    hasUnknownModelCost: bool | None = None


class CustomTitleRecord(Record, tag="custom-title", kw_only=True, frozen=True):
    """A title from the user."""

    customTitle: str


class TagRecord(Record, tag="tag", kw_only=True, frozen=True):
    """A tag from the user; empty if the user has removed the tag."""

    # Not called `tag`, because that is a keyword for Structs. The key on the wire is `tag`.
    label: str = msgspec.field(name="tag")


class FileHistoryDeltaRecord(Record, tag="file-history-delta", kw_only=True, frozen=True):
    """A file that was changed after a snapshot, and its backup."""

    messageId: str
    snapshotMessageId: str | None = None
    trackingPath: str | None = None
    backup: dict[str, Any] | None = None
    timestamp: str | None = None


class FileHistorySnapshotRecord(Record, tag="file-history-snapshot", kw_only=True, frozen=True):
    """The backups of files at the prompt ``messageId``, a uuid."""

    messageId: str
    snapshot: dict[str, Any] | None = None
    isSnapshotUpdate: bool | None = None


class LastPromptRecord(Record, tag="last-prompt", kw_only=True, frozen=True):
    """The latest prompt, and in ``leafUuid`` the uuid of the record after which the conversation continues."""

    lastPrompt: str | None = None
    leafUuid: str | None = None


class ModeRecord(Record, tag="mode", kw_only=True, frozen=True):
    """The mode in which a resumed session continues."""

    # one of normal
    mode: str


class PrLinkRecord(Record, tag="pr-link", kw_only=True, frozen=True):
    """A pull request that the session works on."""

    prNumber: int | None = None
    prUrl: str | None = None
    prRepository: str | None = None
    timestamp: str | None = None


class QueueOperationRecord(Record, tag="queue-operation", kw_only=True, frozen=True):
    """A prompt was put into the queue (with its text) or taken out of the queue (without its text)."""

    # one of enqueue, dequeue, remove, popAll
    operation: str
    timestamp: str | None = None
    # A prompt with images is a list of blocks.
    content: Any = None
    commandUuid: str | None = None
    deliveryId: str | None = None
    # one of absorbed_mid_turn
    reason: str | None = None


class RelocatedRecord(Record, tag="relocated", kw_only=True, frozen=True):
    """The session continues in another directory, such as a worktree."""

    relocatedCwd: str


class SummaryRecord(Record, tag="summary", kw_only=True, frozen=True):
    """A title of the branch that ends with ``leafUuid``, which may be in another file. From older CLIs."""

    summary: str
    leafUuid: str | None = None


class ToolsUsedRecord(Record, tag="tools-used", kw_only=True, frozen=True):
    """The tools that were used so far."""

    tools: list[str]


class WorktreeStateRecord(Record, tag="worktree-state", kw_only=True, frozen=True):
    """The git worktree in which the session works. Null after the session has left the worktree."""

    worktreeSession: dict[str, Any] | None = null()
