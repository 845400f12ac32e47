"""The known kinds of attachments. An attachment of another kind is an ``UnknownObject``."""

from __future__ import annotations

from typing import Any, TypeAlias

from claude_wire.messages.base import Number, Wire, null
from claude_wire.messages.blocks.content import ContentBlock
from claude_wire.messages.conversation.origins import MessageOrigin
from claude_wire.messages.unknown import OrUnknownObject

__all__ = [
    "AgentListingDelta",
    "Attachment",
    "AutoMode",
    "BudgetUsd",
    "CommandPermissions",
    "CurrentDate",
    "CurrentModel",
    "DeferredToolsDelta",
    "Environment",
    "FileContent",
    "GoalStatus",
    "HookAdditionalContext",
    "HookNonBlockingError",
    "HookSuccess",
    "HookSystemMessage",
    "Instructions",
    "InvokedSkills",
    "MaxTurnsReached",
    "McpInstructionsDelta",
    "NestedMemory",
    "PlanMode",
    "PlanModeExit",
    "PromptSnapshot",
    "QueuedCommand",
    "RemoteSessionChange",
    "SessionContext",
    "SilentTurnReminder",
    "SkillListing",
    "StructuredOutput",
    "TaskStatus",
    "TotalTokensReminder",
    "UnknownCommandFallback",
]


class AgentListingDelta(Wire, tag_field="type", tag="agent_listing_delta", kw_only=True, frozen=True):
    """The available types of subagents, as changes since the last such record."""

    addedTypes: list[str]
    addedLines: list[str]
    builtInTypes: list[str] | None = None
    builtInPluginTypes: list[str] | None = None
    removedTypes: list[str] | None = None
    isInitial: bool | None = None
    showConcurrencyNote: bool | None = None


class AutoMode(Wire, tag_field="type", tag="auto_mode", kw_only=True, frozen=True):
    """Instructions for the model to work without asking."""

    autoModeConsentFlow: bool | None = None
    finishExposedWork: bool | None = None
    bashFirst: bool | None = None
    bashFirstSteer: str | None = None
    steerOnly: bool | None = None
    bypass: bool | None = None


class BudgetUsd(Wire, tag_field="type", tag="budget_usd", kw_only=True, frozen=True):
    """The cost of the session so far, its budget, and the rest of the budget, in US dollars."""

    used: Number
    total: Number
    remaining: Number


class CommandPermissions(Wire, tag_field="type", tag="command_permissions", kw_only=True, frozen=True):
    """The tools that a custom command may use."""

    allowedTools: list[str]


class CurrentDate(Wire, tag_field="type", tag="date", kw_only=True, frozen=True):
    """The date, ``YYYY-MM-DD``."""

    date: str


class DeferredToolsDelta(Wire, tag_field="type", tag="deferred_tools_delta", kw_only=True, frozen=True):
    """The tools that the model can search for, as changes since the last such record."""

    addedNames: list[str]
    addedLines: list[str] | None = None
    removedNames: list[str] | None = None
    wireHiddenNames: list[str] | None = None
    readdedNames: list[str] | None = None
    pendingMcpServers: list[Any] | None = None
    needsAuthMcpServers: list[Any] | None = None
    failedMcpServers: list[Any] | None = None


class Environment(Wire, tag_field="type", tag="environment", kw_only=True, frozen=True):
    """Working directory, platform and shell of the CLI. ``changes`` lists the changes since the last such record."""

    snapshot: dict[str, Any]
    changes: list[Any] | None = None


class FileContent(Wire, tag_field="type", tag="file", kw_only=True, frozen=True):
    """The content of a file that a prompt names, or that a compaction has kept."""

    filename: str
    content: dict[str, Any]
    displayPath: str | None = None
    savedCopyFraming: dict[str, Any] | None = None


class GoalStatus(Wire, tag_field="type", tag="goal_status", kw_only=True, frozen=True):
    """The goal that the user set with ``/goal``, and whether it is met."""

    condition: str | None = None
    met: bool | None = None
    sentinel: bool | None = None


class HookAdditionalContext(Wire, tag_field="type", tag="hook_additional_context", kw_only=True, frozen=True):
    """A text from a hook for the model."""

    content: list[str]
    hookName: str | None = None
    toolUseID: str | None = None
    hookEvent: str | None = None


class HookNonBlockingError(Wire, tag_field="type", tag="hook_non_blocking_error", kw_only=True, frozen=True):
    """A hook has failed, and the session continued. ``durationMs`` is in milliseconds."""

    hookName: str | None = None
    toolUseID: str | None = None
    hookEvent: str | None = None
    stderr: str | None = None
    stdout: str | None = None
    exitCode: int | None = None
    command: str | None = None
    durationMs: Number | None = None


class HookSuccess(Wire, tag_field="type", tag="hook_success", kw_only=True, frozen=True):
    """A hook has run. ``content`` is the part of its output for the model; ``durationMs`` is in milliseconds."""

    content: Any = None
    hookName: str | None = None
    toolUseID: str | None = None
    hookEvent: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    exitCode: int | None = None
    command: str | None = None
    durationMs: Number | None = None


class HookSystemMessage(Wire, tag_field="type", tag="hook_system_message", kw_only=True, frozen=True):
    """A text from a hook for the user."""

    content: str
    hookName: str | None = None
    toolUseID: str | None = None
    hookEvent: str | None = None


class Instructions(Wire, tag_field="type", tag="instructions", kw_only=True, frozen=True):
    """The instruction files, such as CLAUDE.md, with their content."""

    files: list[dict[str, Any]]


class InvokedSkills(Wire, tag_field="type", tag="invoked_skills", kw_only=True, frozen=True):
    """The skills that were used before a compaction, each with its name, path and content."""

    skills: list[dict[str, Any]]


class MaxTurnsReached(Wire, tag_field="type", tag="max_turns_reached", kw_only=True, frozen=True):
    """The run ended because it reached ``maxTurns``, its limit for answers of the model."""

    maxTurns: int
    turnCount: int | None = None
    exitCommitted: bool | None = None


class McpInstructionsDelta(Wire, tag_field="type", tag="mcp_instructions_delta", kw_only=True, frozen=True):
    """The instructions of MCP servers, as changes since the last such record."""

    addedNames: list[str]
    addedBlocks: list[str] | None = None
    removedNames: list[str] | None = None


class CurrentModel(Wire, tag_field="type", tag="model", kw_only=True, frozen=True):
    """The model of the following answers."""

    identity: dict[str, Any]
    text: str | None = None


class NestedMemory(Wire, tag_field="type", tag="nested_memory", kw_only=True, frozen=True):
    """The CLAUDE.md of a subfolder, added when the model works there."""

    path: str
    content: dict[str, Any] | None = None
    displayPath: str | None = None


class PlanMode(Wire, tag_field="type", tag="plan_mode", kw_only=True, frozen=True):
    """Plan mode began: the model should plan, and change nothing."""

    reminderType: str | None = None
    isSubAgent: bool | None = None
    planFilePath: str | None = None
    planExists: bool | None = None


class PlanModeExit(Wire, tag_field="type", tag="plan_mode_exit", kw_only=True, frozen=True):
    """Plan mode ended: the model may change things again."""

    planFilePath: str | None = None
    planExists: bool | None = None


class PromptSnapshot(Wire, tag_field="type", tag="prompt_snapshot", kw_only=True, frozen=True):
    """The system prompt and the tools of the following requests."""

    systemPrompt: list[Any]
    tools: list[Any] | None = None
    cliPrefix: str | None = None
    reminderFold: bool | None = None
    systemTurns: bool | None = None
    toolChangeHeader: bool | None = None
    inlineTools: bool | None = None
    keptReminders: bool | None = None
    echoWireToolInputs: bool | None = None
    contextRendering: str | None = None


class QueuedCommand(Wire, tag_field="type", tag="queued_command", kw_only=True, frozen=True):
    """A prompt that was sent during a turn. The model gets the prompt in this turn, so the prompt starts no turn.

    ``commandMode`` is ``prompt``, or ``task-notification`` for a text of the CLI about a task that has ended.
    ``source_uuid`` is the uuid of the message on the stream. ``usage`` has the same fields as in a
    :class:`~claude_wire.TaskNotificationMessage`.
    """

    prompt: str | list[ContentBlock]
    source_uuid: str | None = None
    delivery_id: str | None = None
    # one of prompt, task-notification
    commandMode: str | None = None
    origin: MessageOrigin | None = None
    # one of local, harness, recorded
    rowSource: str | None = None
    runId: str | None = None
    timestamp: str | None = None
    isMeta: bool | None = None
    hostsOwnTurn: bool | None = None
    imagePasteIds: list[int] | None = None
    toolsUsedDelta: list[str] | None = None
    usage: dict[str, Any] | None = None


class RemoteSessionChange(Wire, tag_field="type", tag="remote_session_change", kw_only=True, frozen=True):
    """Instructions for the texts of the session's commits and pull requests."""

    url: str | None = null()
    commit: str | None = None
    pr: str | None = None
    sendUserFileHint: bool | None = None
    managedCommit: bool | None = None
    managedPr: bool | None = None


class SessionContext(Wire, tag_field="type", tag="session_context", kw_only=True, frozen=True):
    """Facts about the session that the model gets once, such as ``gitStatus``."""

    context: dict[str, Any]


class SilentTurnReminder(Wire, tag_field="type", tag="silent_turn_reminder", kw_only=True, frozen=True):
    """A reminder for the model to tell the user something."""

    text: str


class SkillListing(Wire, tag_field="type", tag="skill_listing", kw_only=True, frozen=True):
    """The available skills."""

    content: str
    skillCount: int | None = None
    isInitial: bool | None = None
    names: list[str] | None = None
    digests: list[str] | None = None


class StructuredOutput(Wire, tag_field="type", tag="structured_output", kw_only=True, frozen=True):
    """The structured output of the answer, as JSON."""

    data: Any = None
    toolUseID: str | None = None


class TaskStatus(Wire, tag_field="type", tag="task_status", kw_only=True, frozen=True):
    """The state of a background task, as reported to the model.

    ``deltaSummary`` is the progress or the error of a subagent; null if there is none. ``shell`` has the command of a
    task of the type ``local_bash``.
    """

    taskId: str
    # one of local_agent, local_bash
    taskType: str
    description: str
    # one of running, completed, failed, killed
    status: str
    deltaSummary: str | None = null()
    outputFilePath: str | None = None
    canContinueAgent: bool | None = None
    shell: dict[str, Any] | None = None
    endsUnannounced: bool | None = None


class TotalTokensReminder(Wire, tag_field="type", tag="total_tokens_reminder", kw_only=True, frozen=True):
    """The number of tokens that are left."""

    text: str


class UnknownCommandFallback(Wire, tag_field="type", tag="unknown_command_fallback", kw_only=True, frozen=True):
    """A prompt begins with a command that the session does not have. The model gets the prompt as text."""

    commandName: str
    availableCommandNames: list[str] | None = None
    availableCommandCount: int | None = None


Attachment: TypeAlias = (
    AgentListingDelta
    | AutoMode
    | BudgetUsd
    | CommandPermissions
    | CurrentDate
    | CurrentModel
    | DeferredToolsDelta
    | Environment
    | FileContent
    | GoalStatus
    | HookAdditionalContext
    | HookNonBlockingError
    | HookSuccess
    | HookSystemMessage
    | Instructions
    | InvokedSkills
    | MaxTurnsReached
    | McpInstructionsDelta
    | NestedMemory
    | PlanMode
    | PlanModeExit
    | PromptSnapshot
    | QueuedCommand
    | RemoteSessionChange
    | SessionContext
    | SilentTurnReminder
    | SkillListing
    | StructuredOutput
    | TaskStatus
    | TotalTokensReminder
    | UnknownCommandFallback
    | OrUnknownObject
)
