"""What the CLI tells of itself in the tree: records of the type ``system``, told apart by their ``subtype``."""

from __future__ import annotations

from typing import Any, Literal

from claude_wire.messages.base import Number, Wire, constant, null
from claude_wire.messages.conversation.usage import ContextUsage
from claude_wire.transcripts.records.base import Entry

__all__ = [
    "ApiErrorRecord",
    "CompactBoundaryRecord",
    "CompactFacts",
    "InformationalRecord",
    "KeptMessages",
    "KeptSegment",
    "LocalCommandRecord",
    "ModelFallbackRecord",
    "StopHookSummaryRecord",
    "SystemRecord",
]


class SystemRecord(Entry, tag="system", kw_only=True, frozen=True):
    """The base of the records of this type. ``content`` is text for display; ``level`` is an open set."""

    subtype: str
    content: str | None = None
    # one of info, warning, error, suggestion
    level: str | None = None
    isMeta: bool | None = None


class ApiErrorRecord(SystemRecord, kw_only=True, frozen=True):
    """A request to the API failed and is tried again after ``retryInMs`` milliseconds."""

    subtype: Literal["api_error"] = constant("api_error")
    error: dict[str, Any] | None = None
    cause: Any = None
    retryInMs: Number | None = None
    retryAttempt: int | None = None
    maxRetries: int | None = None
    source: str | None = None


class KeptSegment(Wire, kw_only=True, frozen=True):
    """The ends of the run of records that a compaction has kept; ``anchorUuid`` is the record that it follows now."""

    headUuid: str
    anchorUuid: str
    tailUuid: str


class KeptMessages(Wire, kw_only=True, frozen=True):
    """The records that a compaction has kept; ``anchorUuid`` is the record that they follow now."""

    anchorUuid: str
    uuids: list[str]
    allUuids: list[str] | None = None


class CompactFacts(Wire, kw_only=True, frozen=True):
    """What a compaction did: tokens before and after, and the uuids of the records that the model still sees."""

    # one of auto, manual
    trigger: str
    preTokens: Number | None = None
    preCompactOrganizationsCoverStart: bool | None = None
    durationMs: Number | None = None
    preservedSegment: KeptSegment | None = None
    preservedMessages: KeptMessages | None = None
    postTokens: Number | None = None
    cumulativeDroppedTokens: Number | None = None
    runningTurnPrompt: dict[str, Any] | None = None


class CompactBoundaryRecord(SystemRecord, kw_only=True, frozen=True):
    """From here on the model sees a summary. It is a root: ``logicalParentUuid`` is the record before it."""

    subtype: Literal["compact_boundary"] = constant("compact_boundary")
    logicalParentUuid: str | None = null()
    compactMetadata: CompactFacts | None = None


class InformationalRecord(SystemRecord, kw_only=True, frozen=True):
    """A note for the user."""

    subtype: Literal["informational"] = constant("informational")


class LocalCommandRecord(SystemRecord, kw_only=True, frozen=True):
    """What a command of the CLI itself printed."""

    subtype: Literal["local_command"] = constant("local_command")
    commandRun: dict[str, Any] | None = None
    commandOutcome: dict[str, Any] | None = None
    submitUuid: str | None = None
    contextUsage: ContextUsage | None = None


class ModelFallbackRecord(SystemRecord, kw_only=True, frozen=True):
    """The model was not to be had, and the fallback model answers instead."""

    subtype: Literal["model_fallback"] = constant("model_fallback")
    trigger: str | None = None
    originalModel: str | None = None
    fallbackModel: str | None = None


class StopHookSummaryRecord(SystemRecord, kw_only=True, frozen=True):
    """What the hooks at the end of a turn did."""

    subtype: Literal["stop_hook_summary"] = constant("stop_hook_summary")
    hookCount: int | None = None
    hookInfos: list[Any] | None = None
    hookErrors: list[Any] | None = None
    failedHookErrorIndexes: list[int] | None = None
    hookAdditionalContext: list[Any] | None = None
    preventedContinuation: bool | None = None
    stopReason: str | None = None
    hasOutput: bool | None = None
    toolUseID: str | None = None
