"""The kinds of attachments. The set is open: one that has no class is an ``UnknownObject``."""

from __future__ import annotations

from typing import Any, TypeAlias

from claude_wire.messages.base import Wire, null
from claude_wire.messages.unknown import OrUnknownObject

__all__ = [
    "AgentListingDelta",
    "Attachment",
    "AutoMode",
    "CommandPermissions",
    "CurrentDate",
    "CurrentModel",
    "DeferredToolsDelta",
    "Environment",
    "FileContent",
    "HookAdditionalContext",
    "HookSystemMessage",
    "Instructions",
    "MaxTurnsReached",
    "PlanMode",
    "PlanModeExit",
    "PromptSnapshot",
    "RemoteSessionChange",
    "SessionContext",
    "SilentTurnReminder",
    "SkillListing",
    "StructuredOutput",
    "TotalTokensReminder",
]


class AgentListingDelta(Wire, tag_field="type", tag="agent_listing_delta", kw_only=True, frozen=True):
    """Which types of subagents there are now, as a change of those before."""

    addedTypes: list[str]
    addedLines: list[str]
    builtInTypes: list[str] | None = None
    builtInPluginTypes: list[str] | None = None
    removedTypes: list[str] | None = None
    isInitial: bool | None = None
    showConcurrencyNote: bool | None = None


class AutoMode(Wire, tag_field="type", tag="auto_mode", kw_only=True, frozen=True):
    """What the model is told to do by itself."""

    autoModeConsentFlow: bool | None = None
    finishExposedWork: bool | None = None
    bashFirst: bool | None = None
    bashFirstSteer: str | None = None
    steerOnly: bool | None = None
    bypass: bool | None = None


class CommandPermissions(Wire, tag_field="type", tag="command_permissions", kw_only=True, frozen=True):
    """The tools that a custom command may use."""

    allowedTools: list[str]


class CurrentDate(Wire, tag_field="type", tag="date", kw_only=True, frozen=True):
    """The date, ``YYYY-MM-DD``."""

    date: str


class DeferredToolsDelta(Wire, tag_field="type", tag="deferred_tools_delta", kw_only=True, frozen=True):
    """Which tools the model can search for now, as a change of those before."""

    addedNames: list[str]
    addedLines: list[str] | None = None
    removedNames: list[str] | None = None
    wireHiddenNames: list[str] | None = None
    readdedNames: list[str] | None = None
    pendingMcpServers: list[Any] | None = None
    needsAuthMcpServers: list[Any] | None = None
    failedMcpServers: list[Any] | None = None


class Environment(Wire, tag_field="type", tag="environment", kw_only=True, frozen=True):
    """Where the CLI runs: working directory, platform, shell. ``changes`` are those since the record before."""

    snapshot: dict[str, Any]
    changes: list[Any] | None = None


class FileContent(Wire, tag_field="type", tag="file", kw_only=True, frozen=True):
    """The content of a file, which a prompt names or a compaction has kept."""

    filename: str
    content: dict[str, Any]
    displayPath: str | None = None
    savedCopyFraming: dict[str, Any] | None = None


class HookAdditionalContext(Wire, tag_field="type", tag="hook_additional_context", kw_only=True, frozen=True):
    """What a hook tells the model."""

    content: list[str]
    hookName: str | None = None
    toolUseID: str | None = None
    hookEvent: str | None = None


class HookSystemMessage(Wire, tag_field="type", tag="hook_system_message", kw_only=True, frozen=True):
    """What a hook tells the user."""

    content: str
    hookName: str | None = None
    toolUseID: str | None = None
    hookEvent: str | None = None


class Instructions(Wire, tag_field="type", tag="instructions", kw_only=True, frozen=True):
    """The files of instructions, such as CLAUDE.md, with their content."""

    files: list[dict[str, Any]]


class MaxTurnsReached(Wire, tag_field="type", tag="max_turns_reached", kw_only=True, frozen=True):
    """The run ended at its limit of answers."""

    maxTurns: int
    turnCount: int | None = None
    exitCommitted: bool | None = None


class CurrentModel(Wire, tag_field="type", tag="model", kw_only=True, frozen=True):
    """The model that answers from here on."""

    identity: dict[str, Any]
    text: str | None = None


class PlanMode(Wire, tag_field="type", tag="plan_mode", kw_only=True, frozen=True):
    """The model is to plan, and to change nothing."""

    reminderType: str | None = None
    isSubAgent: bool | None = None
    planFilePath: str | None = None
    planExists: bool | None = None


class PlanModeExit(Wire, tag_field="type", tag="plan_mode_exit", kw_only=True, frozen=True):
    """The model may work again."""

    planFilePath: str | None = None
    planExists: bool | None = None


class PromptSnapshot(Wire, tag_field="type", tag="prompt_snapshot", kw_only=True, frozen=True):
    """The system prompt and the tools of the requests that follow."""

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


class RemoteSessionChange(Wire, tag_field="type", tag="remote_session_change", kw_only=True, frozen=True):
    """What commits and pull requests of the session are to say."""

    url: str | None = null()
    commit: str | None = None
    pr: str | None = None
    sendUserFileHint: bool | None = None
    managedCommit: bool | None = None
    managedPr: bool | None = None


class SessionContext(Wire, tag_field="type", tag="session_context", kw_only=True, frozen=True):
    """What the model is told of the session once, such as ``gitStatus``."""

    context: dict[str, Any]


class SilentTurnReminder(Wire, tag_field="type", tag="silent_turn_reminder", kw_only=True, frozen=True):
    """The model is reminded to tell the user something."""

    text: str


class SkillListing(Wire, tag_field="type", tag="skill_listing", kw_only=True, frozen=True):
    """Which skills there are."""

    content: str
    skillCount: int | None = None
    isInitial: bool | None = None
    names: list[str] | None = None
    digests: list[str] | None = None


class StructuredOutput(Wire, tag_field="type", tag="structured_output", kw_only=True, frozen=True):
    """The answer as the JSON that was asked for."""

    data: Any = None
    toolUseID: str | None = None


class TotalTokensReminder(Wire, tag_field="type", tag="total_tokens_reminder", kw_only=True, frozen=True):
    """How many tokens are left."""

    text: str


Attachment: TypeAlias = (
    AgentListingDelta
    | AutoMode
    | CommandPermissions
    | CurrentDate
    | CurrentModel
    | DeferredToolsDelta
    | Environment
    | FileContent
    | HookAdditionalContext
    | HookSystemMessage
    | Instructions
    | MaxTurnsReached
    | PlanMode
    | PlanModeExit
    | PromptSnapshot
    | RemoteSessionChange
    | SessionContext
    | SilentTurnReminder
    | SkillListing
    | StructuredOutput
    | TotalTokensReminder
    | OrUnknownObject
)
