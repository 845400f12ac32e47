"""Records of the type ``system``: reports of the CLI in the tree, one class for each ``subtype``."""

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
    """The base class of ``system`` records. ``content`` is a text for the user."""

    subtype: str
    content: str | None = None
    # one of info, warning, error, suggestion
    level: str | None = None
    isMeta: bool | None = None


class ApiErrorRecord(SystemRecord, kw_only=True, frozen=True):
    """An API request has failed. The CLI repeats it after ``retryInMs`` milliseconds."""

    subtype: Literal["api_error"] = constant("api_error")
    error: dict[str, Any] | None = None
    cause: Any = None
    retryInMs: Number | None = None
    retryAttempt: int | None = None
    maxRetries: int | None = None
    source: str | None = None


class KeptSegment(Wire, kw_only=True, frozen=True):
    """The first and last record of those that a compaction has kept. ``anchorUuid`` is now the record before them."""

    headUuid: str
    anchorUuid: str
    tailUuid: str


class KeptMessages(Wire, kw_only=True, frozen=True):
    """The records that a compaction has kept. ``anchorUuid`` is now the record before them."""

    anchorUuid: str
    uuids: list[str]
    allUuids: list[str] | None = None


class CompactFacts(Wire, kw_only=True, frozen=True):
    """Details of a compaction: tokens before and after, and the uuids of the records that the model still sees."""

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
    """After this record the model sees a summary of the earlier records. It is a root of the tree.

    ``logicalParentUuid`` is the uuid of the last record before the compaction.
    """

    subtype: Literal["compact_boundary"] = constant("compact_boundary")
    logicalParentUuid: str | None = null()
    compactMetadata: CompactFacts | None = None


class InformationalRecord(SystemRecord, kw_only=True, frozen=True):
    """A note for the user."""

    subtype: Literal["informational"] = constant("informational")


class LocalCommandRecord(SystemRecord, kw_only=True, frozen=True):
    """The output of a command of the CLI, such as ``/context``."""

    subtype: Literal["local_command"] = constant("local_command")
    commandRun: dict[str, Any] | None = None
    commandOutcome: dict[str, Any] | None = None
    submitUuid: str | None = None
    contextUsage: ContextUsage | None = None


class ModelFallbackRecord(SystemRecord, kw_only=True, frozen=True):
    """The model is not available, and the fallback model answers instead."""

    subtype: Literal["model_fallback"] = constant("model_fallback")
    trigger: str | None = None
    originalModel: str | None = None
    fallbackModel: str | None = None


class StopHookSummaryRecord(SystemRecord, kw_only=True, frozen=True):
    """A summary of the hooks at the end of a turn."""

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
