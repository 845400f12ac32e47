"""Convert transcript records to stream messages, for code that was written for streams.

A message has the same uuid as on the stream, because the CLI gives a record and its message the same uuid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from claude_wire import messages as m
from claude_wire.transcripts.records.attachments import HookSystemMessage, QueuedCommand
from claude_wire.transcripts.records.base import Entry, Record
from claude_wire.transcripts.records.conversation import AssistantRecord, AttachmentRecord, UserRecord
from claude_wire.transcripts.records.system import (
    ApiErrorRecord,
    CompactBoundaryRecord,
    CompactFacts,
    InformationalRecord,
    LocalCommandRecord,
    ModelFallbackRecord,
)
from claude_wire.transcripts.transcript import MAX_BYTES, Subagent, Transcript
from claude_wire.transcripts.tree import Node

#: The API's HTTP status -> the error's name in ``api_retry``.
ERRORS = {401: "authentication_failed", 429: "rate_limit", 529: "overloaded"}

#: Matches the markup around a CLI command's output.
_PRINTED = re.compile(r"<local-command-(?:stdout|stderr)>(.*)</local-command-(?:stdout|stderr)>", re.DOTALL)


def message_of(record: Record | m.UnknownMessage, subagent: Subagent | None = None) -> m.Message | None:
    """Return the stream message for a record, or None if the stream has no such message, as for most attachments.

    Prompts are marked as repeated by the CLI (``isReplay``). A prompt that was sent during a turn, and became part of
    the turn, has the ``priority`` ``next``. An answer has its final usage; on the stream, it has the usage at its
    start.

    Args:
        subagent: the subagent that wrote the record; None means the main agent.
    """
    match record:
        case AssistantRecord():
            return _assistant(record, subagent)
        case UserRecord():
            return _user(record, subagent)
        case AttachmentRecord(attachment=HookSystemMessage() as hook):
            return m.InformationalMessage(
                content=f"{hook.hookName} says: {hook.content}", level="notice", **_place(record)
            )
        case AttachmentRecord(attachment=QueuedCommand() as queued):
            return _queued(record, queued, subagent)
        case ApiErrorRecord():
            return _retry(record)
        case CompactBoundaryRecord():
            return _boundary(record)
        case InformationalRecord():
            return m.InformationalMessage(content=record.content or "", level=record.level or "info", **_place(record))
        case LocalCommandRecord():
            return _printed(record)
        case ModelFallbackRecord():
            return m.ModelFallbackMessage(
                trigger=record.trigger,
                original_model=record.originalModel,
                fallback_model=record.fallbackModel,
                content=record.content,
                **_place(record),
            )
        case _:
            return None


def messages(
    transcript: Transcript, leaf: str | None = None, *, subagents: bool = True, max_bytes: int = MAX_BYTES
) -> Iterator[m.Message]:
    """Yield the conversation on one branch of a transcript as stream messages.

    Messages of a subagent follow the tool call that started it, even if it ran in the background. A transcript has no
    results and no deltas.

    Args:
        leaf: the last uuid of the branch; None: the active branch.
        subagents: include the messages of subagents. Their files are loaded one by one.
        max_bytes: maximum size of a subagent's file in bytes. A larger file is skipped, like a missing one.

    Raises:
        KeyError: there is no such leaf.
    """
    left = dict(transcript.subagents) if subagents else {}
    # Each subagent is used once, so the loop ends even if two subagents name each other as parents.
    speakers: list[tuple[Iterator[Node], Subagent | None]] = [(iter(transcript.branch(leaf)), None)]
    while speakers:
        records, speaker = speakers[-1]
        record = next(records, None)
        if record is None:
            speakers.pop()
            continue
        message = message_of(record, speaker)
        if message is None:
            continue
        yield message
        if isinstance(message, m.AssistantMessage):
            started = [left.pop(call.id) for call in message.tool_uses if call.id in left]
            for agent in reversed(started):
                try:
                    said = agent.load(max_bytes).branch()
                except (OSError, ValueError):
                    continue
                speakers.append((iter(said), agent))


def _place(record: Entry) -> dict[str, Any]:
    return {"uuid": record.uuid, "session_id": record.sessionId}


def _speaker(record: AssistantRecord | UserRecord | AttachmentRecord, subagent: Subagent | None) -> dict[str, Any]:
    """Return the fields that user and assistant messages share: ids, time and subagent."""
    said = {**_place(record), "timestamp": record.timestamp, "agent_id": record.agentId}
    if subagent is not None:
        meta = subagent.meta
        said |= {
            "parent_tool_use_id": meta.toolUseId,
            "subagent_type": meta.agentType,
            "task_description": meta.description,
        }
    return said


def _assistant(record: AssistantRecord, subagent: Subagent | None) -> m.AssistantMessage:
    return m.AssistantMessage(
        message=record.message,
        request_id=record.requestId,
        aborted=record.isAbortedMidStream,
        error=UNSET if record.error is None else record.error,
        is_api_error_message=record.isApiErrorMessage,
        api_error_status=record.apiErrorStatus,
        api_error_type=record.apiErrorType,
        api_error=record.apiError,
        api_error_params=record.apiErrorParams,
        thinking_duration_ms=record.thinkingDurationMs,
        thinking_display=record.thinkingDisplay,
        **_speaker(record, subagent),
    )


def _user(record: UserRecord, subagent: Subagent | None) -> m.UserMessage:
    # On the stream, a subagent's prompt is not marked as synthetic.
    made_up = subagent is None and (record.isMeta or record.turnCompanion or record.isCompactSummary)
    return m.UserMessage(
        message=record.message,
        tool_use_result=_structured(record),
        tool_result_meta=_decided(record),
        isReplay=True if record.is_prompt and subagent is None else None,
        isSynthetic=True if made_up else None,
        origin=record.origin,
        refused_message_id=record.refusedMessageId,
        **_speaker(record, subagent),
    )


def _structured(record: UserRecord) -> Any:
    """Return a tool's structured output. An MCP tool's output is inside an object, as on the stream."""
    return record.toolUseResult if record.mcpMeta is None else {"content": record.toolUseResult, **record.mcpMeta}


def _queued(record: AttachmentRecord, queued: QueuedCommand, subagent: Subagent | None) -> m.UserMessage:
    """Return the message for a prompt that was sent during a turn, with its uuid and time on the stream."""
    said = _speaker(record, subagent)
    said |= {"uuid": queued.source_uuid or record.uuid, "timestamp": queued.timestamp or record.timestamp}
    return m.UserMessage(
        message=m.MessageParam("user", queued.prompt),
        isReplay=True if record.is_prompt and subagent is None else None,
        isSynthetic=None if record.is_prompt else True,
        priority="next",
        origin=queued.origin,
        **said,
    )


def _decided(record: UserRecord) -> list[dict[str, Any]] | None:
    """Return the permission decisions for the tool calls whose results are in a record; None if it has no decision."""
    outcome = record.permissionDecision
    decided: dict[str, Any] = {}
    if record.toolDenialKind is not None:
        decided["non_execution_kind"] = record.toolDenialKind
    if outcome is not None:
        named = {"source": outcome.source, "reason_type": outcome.reasonType}
        said = {name: value for name, value in named.items() if value is not None}
        decided["permission_decision"] = {"decision": outcome.decision, **said}
    return [{"id": result.tool_use_id, **decided} for result in record.tool_results] if decided else None


def _printed(record: LocalCommandRecord) -> m.AssistantMessage | None:
    """Return a command's output as a message from the model ``<synthetic>``, as on the stream."""
    printed = _PRINTED.fullmatch(record.content or "")
    if printed is None:
        return None
    message = m.ApiMessage(role="assistant", model="<synthetic>", content=[m.TextBlock(printed[1].strip())])
    return m.AssistantMessage(
        message=message,
        local_command_source=record.content,
        local_command_run=record.commandRun,
        local_command_outcome=record.commandOutcome,
        context_usage=record.contextUsage,
        timestamp=record.timestamp,
        **_place(record),
    )


def _retry(record: ApiErrorRecord) -> m.ApiRetryMessage:
    status = (record.error or {}).get("status")
    status = status if isinstance(status, int) else None
    other = "server_error" if status is not None and status >= 500 else "unknown"
    return m.ApiRetryMessage(
        attempt=record.retryAttempt or 0,
        max_retries=record.maxRetries or 0,
        retry_delay_ms=record.retryInMs or 0,
        error_status=status,
        error=other if status is None else ERRORS.get(status, other),
        **_place(record),
    )


def _boundary(record: CompactBoundaryRecord) -> m.CompactBoundaryMessage:
    facts = record.compactMetadata or CompactFacts(trigger="auto")
    segment, kept = facts.preservedSegment, facts.preservedMessages
    return m.CompactBoundaryMessage(
        compact_metadata=m.CompactMetadata(
            trigger=facts.trigger,
            pre_tokens=facts.preTokens or 0,
            post_tokens=facts.postTokens,
            duration_ms=facts.durationMs,
            preserved_segment=None
            if segment is None
            else m.PreservedSegment(segment.headUuid, segment.anchorUuid, segment.tailUuid),
            preserved_messages=None
            if kept is None
            else m.PreservedMessages(kept.anchorUuid, kept.uuids, kept.allUuids),
            cumulative_dropped_tokens=facts.cumulativeDroppedTokens,
        ),
        logical_parent_uuid=record.logicalParentUuid,
        **_place(record),
    )
