"""The records of the conversation: texts of the user and the model, and additions of the CLI."""

from __future__ import annotations

from typing import Any

from claude_wire.messages.base import Number, Wire
from claude_wire.messages.blocks.content import ToolResultBlock
from claude_wire.messages.conversation.api import ApiMessage, MessageParam
from claude_wire.messages.conversation.origins import MessageOrigin
from claude_wire.transcripts.records.attachments import Attachment, QueuedCommand
from claude_wire.transcripts.records.base import Entry

__all__ = [
    "AssistantRecord",
    "AttachmentRecord",
    "PermissionOutcome",
    "ProgressRecord",
    "TurnPosition",
    "UserRecord",
]


class PermissionOutcome(Wire, kw_only=True, frozen=True):
    """Whether a tool call was allowed, and who decided. A later CLI may write other values than the known ones."""

    # one of accept, reject
    decision: str
    # one of config, hook, user_temporary, user_permanent, user_reject
    source: str | None = None
    # one of once
    grantScope: str | None = None
    # one of unknown
    reasonCode: str | None = None
    # one of mode, rule, subcommandResults
    reasonType: str | None = None
    # the source of the rule, one of cliArg, session, policySettings
    ruleSource: str | None = None


class TurnPosition(Wire, kw_only=True, frozen=True):
    """The number of the prompt in its process, from 0, and the number of the turn in the session, from 1."""

    promptIndex: int | None = None
    turnIndex: int | None = None


class UserRecord(Entry, tag="user", kw_only=True, frozen=True):
    """A prompt, the result of one tool call, or a text that the CLI wrote in place of the user.

    A result has ``sourceToolAssistantUUID``, the uuid of the record with its call, and in the file of the main agent
    ``toolUseResult``, the structured output of the tool as any JSON. ``isMeta``, ``turnCompanion`` and
    ``isCompactSummary`` mark texts that the user did not type. In a fork, ``promptId`` is a new id.
    """

    promptId: str | None = None
    message: MessageParam
    isVisibleInTranscriptOnly: bool | None = None
    isCompactSummary: bool | None = None
    isMeta: bool | None = None
    turnCompanion: bool | None = None
    imagePasteIds: list[int] | None = None
    queueSkipAttachments: bool | None = None
    summarizedTurnPromptUuids: list[str] | None = None
    toolUseResult: Any = None
    mcpMeta: dict[str, Any] | None = None
    mcpCallNotReadOnly: str | None = None
    # one of interrupted, user-rejected, permission-rule
    toolDenialKind: str | None = None
    toolEndsTurn: bool | None = None
    holdsPersonsWords: bool | None = None
    sandboxed: bool | None = None
    sourceToolAssistantUUID: str | None = None
    permissionDecision: PermissionOutcome | None = None
    # one of default, acceptEdits, plan, bypassPermissions, dontAsk, auto
    permissionMode: str | None = None
    origin: MessageOrigin | None = None
    # one of sdk, system, typed
    promptSource: str | None = None
    # one of sdk, task_notification
    turnOrigin: str | None = None
    turnPosition: TurnPosition | None = None
    turnAttributionKey: str | None = None
    # one of local, harness, recorded
    rowSource: str | None = None
    ownNote: bool | None = None
    repeatsCompactSummary: bool | None = None
    sourceToolUseID: str | None = None
    sentAtMs: Number | None = None
    refusedMessageId: str | None = None

    @property
    def tool_results(self) -> list[ToolResultBlock]:
        """The tool results in the message, in order."""
        content = self.message.content
        return [] if isinstance(content, str) else [block for block in content if isinstance(block, ToolResultBlock)]

    @property
    def is_prompt(self) -> bool:
        """True if the record starts a turn: it has no tool result, and is not an addition of the CLI to a prompt."""
        # The summary of a compaction within a turn has the origin of this turn, too.
        if self.turnOrigin is not None:
            return not self.isCompactSummary
        added = self.isMeta or self.turnCompanion or self.isCompactSummary or self.isVisibleInTranscriptOnly
        # Current CLIs write `turnOrigin` for each turn. Older CLIs wrote neither `turnOrigin` nor `promptId`.
        return not added and self.promptId is None and not self.tool_results


class AssistantRecord(Entry, tag="assistant", kw_only=True, frozen=True):
    """One block of an answer. All records of an answer have the same ``message.id``; other records may be between them.

    Each has the final usage of the answer. ``requestId`` is the id of the API request, ``requestRef`` the ``id`` of an
    :class:`ApiRequestRecord`. In a copied answer, ``requestSessionId`` is the session of the original.
    ``isAbortedMidStream`` marks the last record of an interrupted answer, whose usage is that of its start.
    """

    message: ApiMessage
    thinkingDurationMs: Number | None = None
    thinkingDisplay: str | None = None
    isApiErrorMessage: bool | None = None
    apiErrorStatus: int | None = None
    apiErrorType: str | None = None
    # one of usage_limit_reached
    apiError: str | None = None
    apiErrorParams: dict[str, Any] | None = None
    quotaLimits: dict[str, Any] | None = None
    toolInputStreamMs: Number | None = None
    serverClassifierRequest: str | None = None
    apiBlockIndex: int | None = None
    requestId: str | None = None
    error: str | None = None
    requestRef: str | None = None
    requestedModel: str | None = None
    promptCacheRequested: str | None = None
    attributionMcpServer: str | None = None
    attributionMcpTool: str | None = None
    attributionSkill: str | None = None
    attributionAgent: str | None = None
    attributionPlugin: str | None = None
    isAbortedMidStream: bool | None = None
    effort: str | None = None
    perTurnEffort: str | None = None
    failedResponseHadNoToolCall: bool | None = None
    # one of model, other
    madeBy: str | None = None
    requestSessionId: str | None = None


class AttachmentRecord(Entry, tag="attachment", kw_only=True, frozen=True):
    """Information from the CLI for the model, outside of the conversation. ``rendered`` is the text for the model."""

    attachment: Attachment
    rendered: list[Any] | None = None
    # one of system, user
    renderedRole: str | None = None
    renderedBesideToolResult: bool | None = None
    renderedInHumanTurn: list[Any] | None = None

    @property
    def message(self) -> MessageParam | None:
        """The message of a prompt that was sent during a turn; None for any other attachment."""
        queued = self.attachment
        return MessageParam("user", queued.prompt) if isinstance(queued, QueuedCommand) else None

    @property
    def is_prompt(self) -> bool:
        """True for a prompt that was sent during a turn and became part of it; not for the notification of a task."""
        return isinstance(self.attachment, QueuedCommand) and self.attachment.commandMode != "task-notification"


class ProgressRecord(Entry, tag="progress", kw_only=True, frozen=True):
    """The progress of a tool, a hook or a subagent, from older CLIs. ``data`` has a ``type``."""

    data: dict[str, Any] | None = None
    toolUseID: str | None = None
    parentToolUseID: str | None = None
