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
    """The names of the new types."""
    addedLines: list[str]
    """A line for each new type, with its description and tools, for the model."""
    builtInTypes: list[str] | None = None
    """The available types that are part of the CLI."""
    builtInPluginTypes: list[str] | None = None
    """The available types of plugins that are part of the CLI."""
    removedTypes: list[str] | None = None
    """The names of the types that are no longer available."""
    isInitial: bool | None = None
    """True for the first such record, which lists all types."""
    showConcurrencyNote: bool | None = None


class AutoMode(Wire, tag_field="type", tag="auto_mode", kw_only=True, frozen=True):
    """Instructions for the model to work without asking."""

    autoModeConsentFlow: bool | None = None
    finishExposedWork: bool | None = None
    bashFirst: bool | None = None
    bashFirstSteer: str | None = None
    """Observed: ``relaxed``."""
    steerOnly: bool | None = None
    bypass: bool | None = None


class BudgetUsd(Wire, tag_field="type", tag="budget_usd", kw_only=True, frozen=True):
    """The budget of the session."""

    used: Number
    """The cost of the session so far, in US dollars."""
    total: Number
    """The budget, in US dollars."""
    remaining: Number
    """The rest of the budget, in US dollars."""


class CommandPermissions(Wire, tag_field="type", tag="command_permissions", kw_only=True, frozen=True):
    """The tools that a custom command may use."""

    allowedTools: list[str]
    """Permission rules, such as ``Bash(echo *)``."""


class CurrentDate(Wire, tag_field="type", tag="date", kw_only=True, frozen=True):
    """The date of today."""

    date: str
    """The date in the form ``YYYY-MM-DD``."""


class DeferredToolsDelta(Wire, tag_field="type", tag="deferred_tools_delta", kw_only=True, frozen=True):
    """The tools that the model can search for, as changes since the last such record."""

    addedNames: list[str]
    """The names of the new tools."""
    addedLines: list[str] | None = None
    """A line for each new tool, for the model."""
    removedNames: list[str] | None = None
    """The names of the tools that are no longer available."""
    wireHiddenNames: list[str] | None = None
    readdedNames: list[str] | None = None
    """The names of tools that are available again."""
    pendingMcpServers: list[Any] | None = None
    """MCP servers that are still connecting. Observed: always empty."""
    needsAuthMcpServers: list[Any] | None = None
    """MCP servers that need the user to sign in. Observed: always empty."""
    failedMcpServers: list[Any] | None = None
    """MCP servers that could not be connected. Observed: always empty."""


class Environment(Wire, tag_field="type", tag="environment", kw_only=True, frozen=True):
    """Working directory, platform and shell of the CLI."""

    snapshot: dict[str, Any]
    """The facts, such as ``workingDirectory``, ``isGitRepo``, ``platform`` and ``shell``."""
    changes: list[Any] | None = None
    """The changes since the last such record, each with its ``field``; None in the first record."""


class FileContent(Wire, tag_field="type", tag="file", kw_only=True, frozen=True):
    """The content of a file that a prompt names, or that a compaction has kept."""

    filename: str
    """The absolute path of the file."""
    content: dict[str, Any]
    """The content, in the form in which ``Read`` returns it."""
    displayPath: str | None = None
    """The path to show, relative to the working directory."""
    savedCopyFraming: dict[str, Any] | None = None


class GoalStatus(Wire, tag_field="type", tag="goal_status", kw_only=True, frozen=True):
    """The goal that the user set with ``/goal``, and whether it is met."""

    condition: str | None = None
    """The condition under which the agent may stop, in the user's words."""
    met: bool | None = None
    """True if the goal is met."""
    sentinel: bool | None = None
    """Observed: always true."""


class HookAdditionalContext(Wire, tag_field="type", tag="hook_additional_context", kw_only=True, frozen=True):
    """A text from a hook for the model."""

    content: list[str]
    """The texts."""
    hookName: str | None = None
    """The event with its matcher, such as ``SessionStart:startup``."""
    toolUseID: str | None = None
    """The ``id`` of the tool call, or an id made up by the CLI."""
    hookEvent: str | None = None
    """The event, such as ``PreToolUse``."""


class HookNonBlockingError(Wire, tag_field="type", tag="hook_non_blocking_error", kw_only=True, frozen=True):
    """A hook has failed, and the session continued."""

    hookName: str | None = None
    """The event with its matcher, such as ``SessionStart:startup``."""
    toolUseID: str | None = None
    """The ``id`` of the tool call, or an id made up by the CLI."""
    hookEvent: str | None = None
    """The event, such as ``PreToolUse``."""
    stderr: str | None = None
    """The command's standard error, or the CLI's own error."""
    stdout: str | None = None
    """The command's standard output, or the answer of the model."""
    exitCode: int | None = None
    """The exit code of the hook's command."""
    command: str | None = None
    """The command, or the prompt of a hook that asks a model."""
    durationMs: Number | None = None
    """Milliseconds that the hook took."""


class HookSuccess(Wire, tag_field="type", tag="hook_success", kw_only=True, frozen=True):
    """A hook has run."""

    content: Any = None
    """The part of the hook's output for the model."""
    hookName: str | None = None
    """The event with its matcher, such as ``SessionStart:startup``."""
    toolUseID: str | None = None
    """The ``id`` of the tool call, or an id made up by the CLI."""
    hookEvent: str | None = None
    """The event, such as ``PreToolUse``."""
    stdout: str | None = None
    stderr: str | None = None
    exitCode: int | None = None
    """The exit code of the hook's command."""
    command: str | None = None
    """The command, or the prompt of a hook that asks a model."""
    durationMs: Number | None = None
    """Milliseconds that the hook took."""


class HookSystemMessage(Wire, tag_field="type", tag="hook_system_message", kw_only=True, frozen=True):
    """A text from a hook for the user."""

    content: str
    hookName: str | None = None
    """The event with its matcher, such as ``SessionStart:startup``."""
    toolUseID: str | None = None
    """The ``id`` of the tool call, or an id made up by the CLI."""
    hookEvent: str | None = None
    """The event, such as ``PreToolUse``."""


class Instructions(Wire, tag_field="type", tag="instructions", kw_only=True, frozen=True):
    """The instruction files, such as CLAUDE.md."""

    files: list[dict[str, Any]]
    """For each file its ``path``, its ``type``, such as ``Project``, and its ``content``."""


class InvokedSkills(Wire, tag_field="type", tag="invoked_skills", kw_only=True, frozen=True):
    """The skills that were used before a compaction."""

    skills: list[dict[str, Any]]
    """For each skill its ``name``, ``path`` and ``content``."""


class MaxTurnsReached(Wire, tag_field="type", tag="max_turns_reached", kw_only=True, frozen=True):
    """The run ended because it reached its limit for answers of the model."""

    maxTurns: int
    """The limit."""
    turnCount: int | None = None
    """The number of answers."""
    exitCommitted: bool | None = None


class McpInstructionsDelta(Wire, tag_field="type", tag="mcp_instructions_delta", kw_only=True, frozen=True):
    """The instructions of MCP servers, as changes since the last such record."""

    addedNames: list[str]
    """The names of the servers with new instructions."""
    addedBlocks: list[str] | None = None
    """The new instructions, each under a heading with the name of its server."""
    removedNames: list[str] | None = None
    """The names of the servers whose instructions no longer hold."""


class CurrentModel(Wire, tag_field="type", tag="model", kw_only=True, frozen=True):
    """The model of the following answers."""

    identity: dict[str, Any]
    """The ``modelId``, the ``marketingName`` and the ``knowledgeCutoff``."""
    text: str | None = None
    """The content of ``identity`` as a text for the model."""


class NestedMemory(Wire, tag_field="type", tag="nested_memory", kw_only=True, frozen=True):
    """The CLAUDE.md of a subfolder, added when the model works there."""

    path: str
    """The absolute path of the file."""
    content: dict[str, Any] | None = None
    """The file, with its ``path``, its ``type`` and its ``content``."""
    displayPath: str | None = None
    """The path to show, relative to the working directory."""


class PlanMode(Wire, tag_field="type", tag="plan_mode", kw_only=True, frozen=True):
    """Plan mode began: the model should plan, and change nothing."""

    reminderType: str | None = None
    """How long the text for the model is. Observed: ``full``."""
    isSubAgent: bool | None = None
    """True if the model is a subagent."""
    planFilePath: str | None = None
    planExists: bool | None = None
    """True if ``planFilePath`` exists."""


class PlanModeExit(Wire, tag_field="type", tag="plan_mode_exit", kw_only=True, frozen=True):
    """Plan mode ended: the model may change things again."""

    planFilePath: str | None = None
    planExists: bool | None = None
    """True if ``planFilePath`` exists."""


class PromptSnapshot(Wire, tag_field="type", tag="prompt_snapshot", kw_only=True, frozen=True):
    """The system prompt and the tools of the following requests."""

    systemPrompt: list[Any]
    """The parts of the system prompt, as texts."""
    tools: list[Any] | None = None
    """The tools with their schemas; None if the tools have not changed."""
    cliPrefix: str | None = None
    """The sentence of the CLI before the system prompt."""
    reminderFold: bool | None = None
    systemTurns: bool | None = None
    toolChangeHeader: bool | None = None
    inlineTools: bool | None = None
    keptReminders: bool | None = None
    echoWireToolInputs: bool | None = None
    contextRendering: str | None = None
    """Observed: ``announced``."""


class QueuedCommand(Wire, tag_field="type", tag="queued_command", kw_only=True, frozen=True):
    """A prompt that was sent during a turn. The model gets the prompt in this turn, so the prompt starts no turn."""

    prompt: str | list[ContentBlock]
    """The prompt, a text or a list of blocks."""
    source_uuid: str | None = None
    """The uuid of the message on the stream."""
    delivery_id: str | None = None
    """The id that ``QueueOperationRecord.deliveryId`` repeats."""
    # one of prompt, task-notification
    commandMode: str | None = None
    """``task-notification`` for a text of the CLI about a task that has ended."""
    origin: MessageOrigin | None = None
    """Where the prompt comes from, if no person typed it."""
    # one of local, harness, recorded
    rowSource: str | None = None
    """Observed: ``recorded`` or ``harness`` for the notification of a task, ``local`` for a prompt."""
    runId: str | None = None
    """The id of the run of the task; None for a prompt."""
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""
    isMeta: bool | None = None
    """True for a text that the CLI wrote for the model."""
    hostsOwnTurn: bool | None = None
    imagePasteIds: list[int] | None = None
    """The numbers of the images in the prompt, from 1."""
    toolsUsedDelta: list[str] | None = None
    """The tools that were used since the last :class:`ToolsUsedRecord`."""
    usage: dict[str, Any] | None = None
    """The usage of the task, with the fields of :class:`~claude_wire.TaskUsage` in camelCase."""


class RemoteSessionChange(Wire, tag_field="type", tag="remote_session_change", kw_only=True, frozen=True):
    """Instructions for the texts of the session's commits and pull requests."""

    url: str | None = null()
    """The address of the session on the web. Observed: always null."""
    commit: str | None = None
    """The line for the end of a commit message, such as ``Co-Authored-By: …``."""
    pr: str | None = None
    """The line for the end of a pull request's text."""
    sendUserFileHint: bool | None = None
    managedCommit: bool | None = None
    """True if a managed setting prescribes ``commit``."""
    managedPr: bool | None = None
    """True if a managed setting prescribes ``pr``."""


class SessionContext(Wire, tag_field="type", tag="session_context", kw_only=True, frozen=True):
    """Facts about the session that the model gets once."""

    context: dict[str, Any]
    """The facts by name, such as ``gitStatus``; may be empty."""


class SilentTurnReminder(Wire, tag_field="type", tag="silent_turn_reminder", kw_only=True, frozen=True):
    """A reminder for the model to tell the user something."""

    text: str
    """The text for the model."""


class SkillListing(Wire, tag_field="type", tag="skill_listing", kw_only=True, frozen=True):
    """The available skills."""

    content: str
    """The listing for the model: a line for each skill, with its name and description."""
    skillCount: int | None = None
    """The number of skills in the listing."""
    isInitial: bool | None = None
    """True for the first such record."""
    names: list[str] | None = None
    digests: list[str] | None = None
    """A hash for each skill, in the order of ``names``."""


class StructuredOutput(Wire, tag_field="type", tag="structured_output", kw_only=True, frozen=True):
    """The structured output of the answer."""

    data: Any = None
    """The output, any JSON."""
    toolUseID: str | None = None
    """The ``id`` of the ``StructuredOutput`` call."""


class TaskStatus(Wire, tag_field="type", tag="task_status", kw_only=True, frozen=True):
    """The state of a background task, as reported to the model."""

    taskId: str
    # one of local_agent, local_bash
    taskType: str
    description: str
    """The task in a few words."""
    # one of running, completed, failed, killed
    status: str
    deltaSummary: str | None = null()
    """The progress or the error of a subagent; null if there is none."""
    outputFilePath: str | None = None
    """The path of the output on the CLI's machine."""
    canContinueAgent: bool | None = None
    """True if the model may send the subagent another message."""
    shell: dict[str, Any] | None = None
    """The ``command`` of a ``local_bash`` task, with its ``kind`` and ``toolUseId``."""
    endsUnannounced: bool | None = None


class TotalTokensReminder(Wire, tag_field="type", tag="total_tokens_reminder", kw_only=True, frozen=True):
    """The number of tokens that are left."""

    text: str
    """A text for the model, such as ``<total_tokens>15000000 tokens left</total_tokens>``."""


class UnknownCommandFallback(Wire, tag_field="type", tag="unknown_command_fallback", kw_only=True, frozen=True):
    """A prompt begins with a command that the session does not have. The model gets the prompt as text."""

    commandName: str
    """The name, without the slash."""
    availableCommandNames: list[str] | None = None
    """The commands of the session; not all of them, if there are many."""
    availableCommandCount: int | None = None
    """The number of all commands of the session."""


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
