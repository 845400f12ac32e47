"""The records of a conversation: what the user, the model and the CLI wrote."""

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
    """Whether a tool call was allowed, and who decided. A newer CLI may write values that are not listed here."""

    # one of accept, reject
    decision: str
    # one of config, hook, user_temporary, user_permanent, user_reject
    source: str | None = None
    """Who decided: the settings, a hook, or the user, once or permanently."""
    # one of once
    grantScope: str | None = None
    """How long the user's permission is valid."""
    # one of unknown
    reasonCode: str | None = None
    """The reason as a word, such as ``classifier:auto-mode:unavailable``."""
    # one of mode, rule, subcommandResults, classifier
    reasonType: str | None = None
    """The kind of reason."""
    # one of cliArg, session, policySettings
    ruleSource: str | None = None
    """Where the deciding rule is defined."""


class TurnPosition(Wire, kw_only=True, frozen=True):
    """A prompt's number in the CLI's process, and its turn's number in the session."""

    promptIndex: int | None = None
    """The prompt's 0-based number in the CLI's process."""
    turnIndex: int | None = None
    """The turn's 1-based number in the session."""


class UserRecord(Entry, tag="user", kw_only=True, frozen=True):
    """A prompt, the result of one tool call, or text that the CLI wrote in place of the user.

    ``isMeta``, ``turnCompanion`` and ``isCompactSummary`` mark text that the user did not type.
    """

    promptId: str | None = None
    """The prompt's id, which the results and texts of the prompt's turn also have. A fork gets new ids."""
    message: MessageParam
    """The content, with its role."""
    isVisibleInTranscriptOnly: bool | None = None
    """True for a compaction summary, which only the full transcript shows."""
    isCompactSummary: bool | None = None
    """True for a compaction summary."""
    isMeta: bool | None = None
    """True for text that the CLI wrote for the model."""
    turnCompanion: bool | None = None
    """True for an addition to a prompt, such as the text of the command that the prompt names."""
    imagePasteIds: list[int] | None = None
    """The 1-based numbers of the images in the prompt."""
    queueSkipAttachments: bool | None = None
    """Observed: true for a task notification, and for the reminder before it."""
    summarizedTurnPromptUuids: list[str] | None = None
    """The uuids of the running turn's prompts; only on a summary that was written during a turn."""
    toolUseResult: Any = None
    """The tool's structured output, which may be any JSON; only in the main conversation."""
    mcpMeta: dict[str, Any] | None = None
    """The parts of an MCP result outside its content: ``_meta``, ``structuredContent``, ``resourceLinks``."""
    mcpCallNotReadOnly: str | None = None
    """Why an MCP call does not count as read-only: ``no_hint`` if the tool has no read-only hint."""
    # one of interrupted, user-rejected, permission-rule, automode-unavailable
    toolDenialKind: str | None = None
    """Why the call was not allowed; None if it was allowed."""
    toolEndsTurn: bool | None = None
    """True for a result that ends the turn, such as a result of ``StructuredOutput``."""
    holdsPersonsWords: bool | None = None
    """True if the user wrote the text of the result, to explain why they refused the call."""
    sandboxed: bool | None = None
    """True if the command of a ``Bash`` call ran in a sandbox."""
    sourceToolAssistantUUID: str | None = None
    """The uuid of the record with the tool call; only on a result."""
    permissionDecision: PermissionOutcome | None = None
    """Whether the call was allowed, and who decided; only on a result."""
    # one of default, acceptEdits, plan, bypassPermissions, dontAsk, auto
    permissionMode: str | None = None
    origin: MessageOrigin | None = None
    """The origin of the prompt, if no person typed it."""
    # one of sdk, system, typed
    promptSource: str | None = None
    """Who sent the prompt: a program, the CLI or a person."""
    # one of sdk, task_notification
    turnOrigin: str | None = None
    """What started the turn; None on a record that does not start a turn."""
    turnPosition: TurnPosition | None = None
    """The prompt's number in the CLI's process, and its turn's number in the session."""
    turnAttributionKey: str | None = None
    """Observed: the same as ``uuid``."""
    # one of local, harness, recorded
    rowSource: str | None = None
    """Observed: ``harness`` for a note from the CLI, ``recorded`` for a subagent's prompt, ``local`` otherwise."""
    ownNote: bool | None = None
    """True if the CLI wrote the text itself, such as ``Output token limit hit.``"""
    repeatsCompactSummary: bool | None = None
    """Observed: true for the output of ``/compact``."""
    sourceToolUseID: str | None = None
    """The ``id`` of the ``Skill`` call that added this text."""
    sentAtMs: Number | None = None
    """When the prompt was sent, in milliseconds since 1970-01-01 UTC."""
    refusedMessageId: str | None = None
    """The ``message.id`` of the answer that was refused; only on the note about the refusal."""

    @property
    def tool_results(self) -> list[ToolResultBlock]:
        """The tool results in the message, in order."""
        content = self.message.content
        return [] if isinstance(content, str) else [block for block in content if isinstance(block, ToolResultBlock)]

    @property
    def is_prompt(self) -> bool:
        """True if the record starts a turn: it has no tool result, and the CLI did not add it to a prompt."""
        # A compaction summary that was written during a turn also has this turn's origin.
        if self.turnOrigin is not None:
            return not self.isCompactSummary
        added = self.isMeta or self.turnCompanion or self.isCompactSummary or self.isVisibleInTranscriptOnly
        # Current CLIs write `turnOrigin` for each turn. Older CLIs wrote neither `turnOrigin` nor `promptId`.
        return not added and self.promptId is None and not self.tool_results


class AssistantRecord(Entry, tag="assistant", kw_only=True, frozen=True):
    """One block of an answer. All records of an answer have the same ``message.id``; other records may be between them.

    Each has the answer's final usage; the records of an interrupted answer have the usage at its start.
    """

    message: ApiMessage
    """The API's message, with one block of its content."""
    thinkingDurationMs: Number | None = None
    """How long the model thought, in milliseconds; only on thinking blocks."""
    thinkingDisplay: str | None = None
    """How to show the thinking; only on thinking blocks. Observed: ``updates``."""
    isApiErrorMessage: bool | None = None
    """True if the text reports an API error."""
    apiErrorStatus: int | None = None
    """The HTTP status, if the API failed."""
    apiErrorType: str | None = None
    """The API's error type, such as ``rate_limit_error``; None if the line does not report an error."""
    # one of usage_limit_reached
    apiError: str | None = None
    """The CLI's name for the error that the line reports."""
    apiErrorParams: dict[str, Any] | None = None
    """Data about the error that the line reports, such as ``rate_limit_info``."""
    quotaLimits: dict[str, Any] | None = None
    """The rate limits after a ``rate_limit`` error, with the fields of :class:`~claude_wire.RateLimitInfo`."""
    toolInputStreamMs: Number | None = None
    """How long the tool call's input streamed, in milliseconds."""
    serverClassifierRequest: str | None = None
    """Observed: a UUID, the same on all records of an answer; usually absent."""
    apiBlockIndex: int | None = None
    """The block's 0-based index in the answer."""
    requestId: str | None = None
    """The API's request id."""
    error: str | None = None
    """Why the API refused the request, such as ``rate_limit`` or ``unknown``."""
    requestRef: str | None = None
    """The ``id`` of the :class:`ApiRequestRecord`."""
    requestedModel: str | None = None
    """The model that the CLI asked for. ``message.model`` is the model that answered."""
    promptCacheRequested: str | None = None
    """How long the API was asked to cache the prompt: ``5m`` or ``1h``."""
    attributionMcpServer: str | None = None
    """The MCP server of the tool call whose result precedes the answer."""
    attributionMcpTool: str | None = None
    """The MCP tool, without the server's name, whose result precedes the answer."""
    attributionSkill: str | None = None
    """The active skill or command."""
    attributionAgent: str | None = None
    """The subagent's type, such as ``general-purpose``."""
    attributionPlugin: str | None = None
    """The plugin whose skill, subagent or MCP server is active."""
    isAbortedMidStream: bool | None = None
    """True on the last record of an interrupted answer."""
    effort: str | None = None
    """The request's effort level, such as ``medium``."""
    perTurnEffort: str | None = None
    """The turn's effort level, such as ``medium``."""
    failedResponseHadNoToolCall: bool | None = None
    """Observed: true if the record reports an API error."""
    # one of model, other
    madeBy: str | None = None
    """``model``, or ``other`` if the CLI wrote the text."""
    requestSessionId: str | None = None
    """The id of the original's session, if the record is a copy."""


class AttachmentRecord(Entry, tag="attachment", kw_only=True, frozen=True):
    """Information from the CLI for the model, outside the conversation."""

    attachment: Attachment
    rendered: list[Any] | None = None
    """The text for the model, as messages; None if the attachment has no text for the model."""
    # one of system, user
    renderedRole: str | None = None
    """The role of this text in the request to the API."""
    renderedBesideToolResult: bool | None = None
    """True if this text is in the message of a tool result."""
    renderedInHumanTurn: list[Any] | None = None
    """The text for the model if the user also writes in this turn."""

    @property
    def message(self) -> MessageParam | None:
        """The message of a prompt that was sent during a turn; None for any other attachment."""
        queued = self.attachment
        return MessageParam("user", queued.prompt) if isinstance(queued, QueuedCommand) else None

    @property
    def is_prompt(self) -> bool:
        """True for a prompt that was sent during a turn and became part of it; False for a task notification."""
        return isinstance(self.attachment, QueuedCommand) and self.attachment.commandMode != "task-notification"


class ProgressRecord(Entry, tag="progress", kw_only=True, frozen=True):
    """The progress of a tool, a hook or a subagent. Only older CLIs write it."""

    data: dict[str, Any] | None = None
    """The progress, with its kind in ``type``."""
    toolUseID: str | None = None
    parentToolUseID: str | None = None
    """The tool call's ``id``."""
