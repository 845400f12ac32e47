"""Records of the type ``system``: the CLI's reports in the tree, with a class for each ``subtype``."""

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
    """The base class of ``system`` records."""

    subtype: str
    """The kind of system record."""
    content: str | None = None
    """Text for the user."""
    # one of info, warning, error, suggestion
    level: str | None = None
    """How to show the text."""
    isMeta: bool | None = None
    """Observed: false or absent."""


class ApiErrorRecord(SystemRecord, kw_only=True, frozen=True):
    """An API request failed. The CLI retries it."""

    subtype: Literal["api_error"] = constant("api_error")
    error: dict[str, Any] | None = None
    """The error, with a ``message``."""
    cause: Any = None
    retryInMs: Number | None = None
    """Milliseconds until the retry."""
    retryAttempt: int | None = None
    """The 1-based number of this retry."""
    maxRetries: int | None = None
    """How many retries the CLI makes before it gives up."""
    source: str | None = None
    """The operation that the CLI retries. Observed: ``request_retry``, ``connection_retry``."""


class KeptSegment(Wire, kw_only=True, frozen=True):
    """The first and the last of the successive records that a compaction kept, by uuid."""

    headUuid: str
    """The uuid of the first record."""
    anchorUuid: str
    """The uuid of the summary, which now precedes the kept records."""
    tailUuid: str
    """The uuid of the last record."""


class KeptMessages(Wire, kw_only=True, frozen=True):
    """The records that a compaction kept, by uuid."""

    anchorUuid: str
    """The uuid of the summary, which now precedes the kept records."""
    uuids: list[str]
    """The uuids of the records, in order."""
    allUuids: list[str] | None = None
    """Observed: always the same as ``uuids``."""


class CompactFacts(Wire, kw_only=True, frozen=True):
    """The cause, size and duration of a compaction."""

    # one of auto, manual
    trigger: str
    """``manual`` for ``/compact``, ``auto`` otherwise."""
    preTokens: Number | None = None
    """How many tokens the conversation had before the compaction."""
    preCompactOrganizationsCoverStart: bool | None = None
    """Observed: always false."""
    durationMs: Number | None = None
    """How long the compaction took, in milliseconds."""
    preservedSegment: KeptSegment | None = None
    """The first and the last kept record; None if no record was kept."""
    preservedMessages: KeptMessages | None = None
    """All kept records; None if no record was kept."""
    postTokens: Number | None = None
    """How many tokens the conversation had after the compaction."""
    cumulativeDroppedTokens: Number | None = None
    """How many tokens all of the session's compactions dropped."""
    runningTurnPrompt: dict[str, Any] | None = None
    """Present if the compaction happened during a turn. Observed: an empty object."""


class CompactBoundaryRecord(SystemRecord, kw_only=True, frozen=True):
    """After this record, the model sees a summary of the earlier records. The record is a root of the tree."""

    subtype: Literal["compact_boundary"] = constant("compact_boundary")
    logicalParentUuid: str | None = null()
    """The uuid of the last record before the compaction."""
    compactMetadata: CompactFacts | None = None
    """Details of the compaction."""


class InformationalRecord(SystemRecord, kw_only=True, frozen=True):
    """A note for the user."""

    subtype: Literal["informational"] = constant("informational")


class LocalCommandRecord(SystemRecord, kw_only=True, frozen=True):
    """The output of a CLI command, such as ``/context``."""

    subtype: Literal["local_command"] = constant("local_command")
    commandRun: dict[str, Any] | None = None
    """The ``command``, without the slash, and its ``args``."""
    commandOutcome: dict[str, Any] | None = None
    """Why the command did not run. Observed: the ``kind`` ``unavailable_headless``."""
    submitUuid: str | None = None
    """The prompt's uuid on the stream."""
    contextUsage: ContextUsage | None = None
    """The numbers that ``/context`` shows."""


class ModelFallbackRecord(SystemRecord, kw_only=True, frozen=True):
    """The model is not available, and the fallback model answers instead."""

    subtype: Literal["model_fallback"] = constant("model_fallback")
    trigger: str | None = None
    """The reason, such as ``overloaded``."""
    originalModel: str | None = None
    fallbackModel: str | None = None


class StopHookSummaryRecord(SystemRecord, kw_only=True, frozen=True):
    """A summary of the hooks that ran at the end of a turn."""

    subtype: Literal["stop_hook_summary"] = constant("stop_hook_summary")
    hookCount: int | None = None
    """How many hooks ran."""
    hookInfos: list[Any] | None = None
    """Each hook's ``command`` and, if the CLI measured it, ``durationMs`` in milliseconds."""
    hookErrors: list[Any] | None = None
    """The error messages."""
    failedHookErrorIndexes: list[int] | None = None
    """The indexes of the failed hooks' errors in ``hookErrors``."""
    hookAdditionalContext: list[Any] | None = None
    """Text for the model from the hooks."""
    preventedContinuation: bool | None = None
    """True if a hook stopped the agent."""
    stopReason: str | None = None
    """Why a hook stopped the agent; empty if no hook did."""
    hasOutput: bool | None = None
    """True if a hook wrote something."""
    toolUseID: str | None = None
    """The id of this group of hook runs."""
