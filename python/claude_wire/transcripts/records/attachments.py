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
    """The available subagent types, as changes since the previous record of this kind."""

    addedTypes: list[str]
    """The names of the new types."""
    addedLines: list[str]
    """A line for each new type, with its description and tools, for the model."""
    builtInTypes: list[str] | None = None
    """The available types that are built into the CLI."""
    builtInPluginTypes: list[str] | None = None
    """The available types from plugins that are built into the CLI."""
    removedTypes: list[str] | None = None
    """The names of the types that are no longer available."""
    isInitial: bool | None = None
    """True for the session's first record of this kind, which lists all types."""
    showConcurrencyNote: bool | None = None


class AutoMode(Wire, tag_field="type", tag="auto_mode", kw_only=True, frozen=True):
    """Instructions for the model to work without asking the user."""

    autoModeConsentFlow: bool | None = None
    finishExposedWork: bool | None = None
    bashFirst: bool | None = None
    bashFirstSteer: str | None = None
    """Observed: ``relaxed``."""
    steerOnly: bool | None = None
    bypass: bool | None = None


class BudgetUsd(Wire, tag_field="type", tag="budget_usd", kw_only=True, frozen=True):
    """The session's budget."""

    used: Number
    """The session's cost so far, in US dollars."""
    total: Number
    """The budget, in US dollars."""
    remaining: Number
    """The remaining budget, in US dollars."""


class CommandPermissions(Wire, tag_field="type", tag="command_permissions", kw_only=True, frozen=True):
    """The tools that a custom command may use."""

    allowedTools: list[str]
    """Permission rules, such as ``Bash(echo *)``."""


class CurrentDate(Wire, tag_field="type", tag="date", kw_only=True, frozen=True):
    """Today's date."""

    date: str
    """The date as ``YYYY-MM-DD``."""


class DeferredToolsDelta(Wire, tag_field="type", tag="deferred_tools_delta", kw_only=True, frozen=True):
    """The tools that the model can search for, as changes since the previous record of this kind."""

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
    """The CLI's working directory, platform and shell."""

    snapshot: dict[str, Any]
    """The facts, such as ``workingDirectory``, ``isGitRepo``, ``platform`` and ``shell``."""
    changes: list[Any] | None = None
    """The changes since the previous record of this kind, each with its ``field``; None in the first record."""


class FileContent(Wire, tag_field="type", tag="file", kw_only=True, frozen=True):
    """The content of a file that a prompt names, or that a compaction kept."""

    filename: str
    """The file's absolute path."""
    content: dict[str, Any]
    """The content, as the tool ``Read`` returns it."""
    displayPath: str | None = None
    """The path to show, relative to the working directory."""
    savedCopyFraming: dict[str, Any] | None = None


class GoalStatus(Wire, tag_field="type", tag="goal_status", kw_only=True, frozen=True):
    """The goal that the user set with ``/goal``, and whether the agent has reached it."""

    condition: str | None = None
    """The condition under which the agent may stop, in the user's words."""
    met: bool | None = None
    """True if the agent has reached the goal."""
    sentinel: bool | None = None
    """Observed: always true."""


class _FromHook(Wire, kw_only=True, frozen=True):
    """The base class of attachments that a hook caused."""

    hookName: str | None = None
    """The hook event and its matcher, such as ``SessionStart:startup``."""
    toolUseID: str | None = None
    """The tool call's ``id``, or an id that the CLI made up."""
    hookEvent: str | None = None
    """The hook event, such as ``PreToolUse``."""


class HookAdditionalContext(_FromHook, tag_field="type", tag="hook_additional_context", kw_only=True, frozen=True):
    """Text for the model from a hook."""

    content: list[str]
    """The texts."""


class HookNonBlockingError(_FromHook, tag_field="type", tag="hook_non_blocking_error", kw_only=True, frozen=True):
    """A hook failed, and the session continued."""

    stderr: str | None = None
    """The command's standard error, or the CLI's own error."""
    stdout: str | None = None
    """The command's standard output, or the model's answer."""
    exitCode: int | None = None
    """The exit code of the hook's command."""
    command: str | None = None
    """The hook's command, or its prompt if the hook asks a model."""
    durationMs: Number | None = None
    """How long the hook took, in milliseconds."""


class HookSuccess(_FromHook, tag_field="type", tag="hook_success", kw_only=True, frozen=True):
    """A hook ran."""

    content: Any = None
    """The part of the hook's output that the model gets."""
    stdout: str | None = None
    stderr: str | None = None
    exitCode: int | None = None
    """The exit code of the hook's command."""
    command: str | None = None
    """The hook's command, or its prompt if the hook asks a model."""
    durationMs: Number | None = None
    """How long the hook took, in milliseconds."""


class HookSystemMessage(_FromHook, tag_field="type", tag="hook_system_message", kw_only=True, frozen=True):
    """Text for the user from a hook."""

    content: str


class Instructions(Wire, tag_field="type", tag="instructions", kw_only=True, frozen=True):
    """The instruction files, such as CLAUDE.md."""

    files: list[dict[str, Any]]
    """Each file's ``path``, ``type`` (such as ``Project``) and ``content``."""


class InvokedSkills(Wire, tag_field="type", tag="invoked_skills", kw_only=True, frozen=True):
    """The skills that were used before a compaction."""

    skills: list[dict[str, Any]]
    """Each skill's ``name``, ``path`` and ``content``."""


class MaxTurnsReached(Wire, tag_field="type", tag="max_turns_reached", kw_only=True, frozen=True):
    """The run ended because it reached the maximum number of answers from the model."""

    maxTurns: int
    """The limit."""
    turnCount: int | None = None
    """How many answers the model gave."""
    exitCommitted: bool | None = None


class McpInstructionsDelta(Wire, tag_field="type", tag="mcp_instructions_delta", kw_only=True, frozen=True):
    """The MCP servers' instructions, as changes since the previous record of this kind."""

    addedNames: list[str]
    """The names of the servers with new instructions."""
    addedBlocks: list[str] | None = None
    """The new instructions, each under a heading with its server's name."""
    removedNames: list[str] | None = None
    """The names of the servers whose instructions are no longer valid."""


class CurrentModel(Wire, tag_field="type", tag="model", kw_only=True, frozen=True):
    """The model that gives the following answers."""

    identity: dict[str, Any]
    """The ``modelId``, the ``marketingName`` and the ``knowledgeCutoff``."""
    text: str | None = None
    """The content of ``identity``, as text for the model."""


class NestedMemory(Wire, tag_field="type", tag="nested_memory", kw_only=True, frozen=True):
    """A subfolder's CLAUDE.md, which the CLI adds when the model works there."""

    path: str
    """The file's absolute path."""
    content: dict[str, Any] | None = None
    """The file's ``path``, ``type`` and ``content``."""
    displayPath: str | None = None
    """The path to show, relative to the working directory."""


class PlanMode(Wire, tag_field="type", tag="plan_mode", kw_only=True, frozen=True):
    """Plan mode began: the model should plan, but not change anything."""

    reminderType: str | None = None
    """How detailed the text for the model is. Observed: ``full``."""
    isSubAgent: bool | None = None
    """True if the model is a subagent."""
    planFilePath: str | None = None
    planExists: bool | None = None
    """True if ``planFilePath`` exists."""


class PlanModeExit(Wire, tag_field="type", tag="plan_mode_exit", kw_only=True, frozen=True):
    """Plan mode ended: the model may make changes again."""

    planFilePath: str | None = None
    planExists: bool | None = None
    """True if ``planFilePath`` exists."""


class PromptSnapshot(Wire, tag_field="type", tag="prompt_snapshot", kw_only=True, frozen=True):
    """The system prompt and the tools for the following requests."""

    systemPrompt: list[Any]
    """The parts of the system prompt, each a string."""
    tools: list[Any] | None = None
    """The tools with their schemas; None if they are unchanged."""
    cliPrefix: str | None = None
    """The CLI's sentence before the system prompt."""
    reminderFold: bool | None = None
    systemTurns: bool | None = None
    toolChangeHeader: bool | None = None
    inlineTools: bool | None = None
    keptReminders: bool | None = None
    echoWireToolInputs: bool | None = None
    contextRendering: str | None = None
    """Observed: ``announced``."""


class QueuedCommand(Wire, tag_field="type", tag="queued_command", kw_only=True, frozen=True):
    """A prompt that was sent during a turn. The model gets it in this turn, so the prompt does not start a turn."""

    prompt: str | list[ContentBlock]
    """The prompt: a string or a list of blocks."""
    source_uuid: str | None = None
    """The message's uuid on the stream."""
    delivery_id: str | None = None
    """The id that ``QueueOperationRecord.deliveryId`` repeats."""
    # one of prompt, task-notification
    commandMode: str | None = None
    """``task-notification`` if the CLI wrote the text, because a task ended."""
    origin: MessageOrigin | None = None
    """The origin of the prompt, if no person typed it."""
    # one of local, harness, recorded
    rowSource: str | None = None
    """Observed: ``recorded`` or ``harness`` for a task notification, ``local`` for a prompt."""
    runId: str | None = None
    """The id of the task's run; None for a prompt."""
    timestamp: str | None = None
    """When the record was written, in ISO 8601."""
    isMeta: bool | None = None
    """True for text that the CLI wrote for the model."""
    hostsOwnTurn: bool | None = None
    imagePasteIds: list[int] | None = None
    """The 1-based numbers of the images in the prompt."""
    toolsUsedDelta: list[str] | None = None
    """The tools that were used since the last :class:`ToolsUsedRecord`."""
    usage: dict[str, Any] | None = None
    """The task's usage, with the fields of :class:`~claude_wire.TaskUsage` in camelCase."""


class RemoteSessionChange(Wire, tag_field="type", tag="remote_session_change", kw_only=True, frozen=True):
    """What the model must add to the session's commit messages and pull requests."""

    url: str | None = null()
    """The session's address on the web. Observed: always null."""
    commit: str | None = None
    """The last line of a commit message, such as ``Co-Authored-By: …``."""
    pr: str | None = None
    """The last line of a pull request's description."""
    sendUserFileHint: bool | None = None
    managedCommit: bool | None = None
    """True if a managed setting prescribes ``commit``."""
    managedPr: bool | None = None
    """True if a managed setting prescribes ``pr``."""


class SessionContext(Wire, tag_field="type", tag="session_context", kw_only=True, frozen=True):
    """Facts about the session, which the model gets once."""

    context: dict[str, Any]
    """Name of a fact, such as ``gitStatus``, -> the fact. May be empty."""


class SilentTurnReminder(Wire, tag_field="type", tag="silent_turn_reminder", kw_only=True, frozen=True):
    """A reminder that the model should tell the user something."""

    text: str
    """The text for the model."""


class SkillListing(Wire, tag_field="type", tag="skill_listing", kw_only=True, frozen=True):
    """The available skills."""

    content: str
    """The listing for the model: a line for each skill, with its name and description."""
    skillCount: int | None = None
    """The number of skills in the listing."""
    isInitial: bool | None = None
    """True for the session's first record of this kind."""
    names: list[str] | None = None
    digests: list[str] | None = None
    """A hash for each skill, in the order of ``names``."""


class StructuredOutput(Wire, tag_field="type", tag="structured_output", kw_only=True, frozen=True):
    """The answer's structured output."""

    data: Any = None
    """The output, any JSON."""
    toolUseID: str | None = None
    """The ``id`` of the ``StructuredOutput`` call."""


class TaskStatus(Wire, tag_field="type", tag="task_status", kw_only=True, frozen=True):
    """A background task's state, as the model gets it."""

    taskId: str
    # one of local_agent, local_bash
    taskType: str
    description: str
    """The task in a few words."""
    # one of running, completed, failed, killed
    status: str
    deltaSummary: str | None = null()
    """A subagent's progress or error; null if it reports neither."""
    outputFilePath: str | None = None
    """The path of the task's output on the CLI's machine."""
    canContinueAgent: bool | None = None
    """True if the model may send the subagent another message."""
    shell: dict[str, Any] | None = None
    """The ``command`` of a ``local_bash`` task, with its ``kind`` and ``toolUseId``."""
    endsUnannounced: bool | None = None


class TotalTokensReminder(Wire, tag_field="type", tag="total_tokens_reminder", kw_only=True, frozen=True):
    """The number of tokens that the session may still use."""

    text: str
    """Text for the model, such as ``<total_tokens>15000000 tokens left</total_tokens>``."""


class UnknownCommandFallback(Wire, tag_field="type", tag="unknown_command_fallback", kw_only=True, frozen=True):
    """A prompt began with a command that the session does not have. The model gets the prompt as text."""

    commandName: str
    """The command's name, without the slash."""
    availableCommandNames: list[str] | None = None
    """The session's commands, but not all of them if there are many."""
    availableCommandCount: int | None = None
    """How many commands the session has."""


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
