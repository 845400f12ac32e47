"""DOC module hooks"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from claude_wire.messages._base import Number, Wire, null
from claude_wire.messages.mcp import McpServerProvenance
from claude_wire.messages.permissions import PermissionUpdate
from claude_wire.messages.tasks import BackgroundTaskSummary, SessionCronSummary
from claude_wire.messages.unknown import UnknownHookInput

__all__ = [
    "ConfigChangeHookInput",
    "CwdChangedHookInput",
    "DirectoryAddedHookInput",
    "ElicitationHookInput",
    "ElicitationResultHookInput",
    "FileChangedHookInput",
    "HookEffort",
    "HookInput",
    "HookInputBase",
    "InstructionsLoadedHookInput",
    "MessageDisplayHookInput",
    "NotificationHookInput",
    "PermissionDeniedHookInput",
    "PermissionRequestHookInput",
    "PostCompactHookInput",
    "PostModelSwitchHookInput",
    "PostToolBatchHookInput",
    "PostToolBatchToolCall",
    "PostToolUseFailureHookInput",
    "PostToolUseHookInput",
    "PreCompactHookInput",
    "PreModelSwitchHookInput",
    "PreToolUseHookInput",
    "SessionEndHookInput",
    "SessionStartHookInput",
    "SetupHookInput",
    "StopFailureHookInput",
    "StopHookInput",
    "SubagentStartHookInput",
    "SubagentStopHookInput",
    "TaskCompletedHookInput",
    "TaskCreatedHookInput",
    "TeammateIdleHookInput",
    "UserPromptExpansionHookInput",
    "UserPromptSubmitHookInput",
    "WorktreeCreateHookInput",
    "WorktreeRemoveHookInput",
]


class HookEffort(Wire, frozen=True):
    """The reasoning effort that was in force when a hook ran."""

    level: str


class HookInputBase(Wire, tag_field="hook_event_name", kw_only=True, frozen=True):
    """What every hook is told, whatever its event: the fields that all hook inputs share."""

    session_id: str
    transcript_path: str
    cwd: str
    prompt_id: str | None = None
    permission_mode: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    effort: HookEffort | None = None


class PreToolUseHookInput(HookInputBase, tag="PreToolUse", kw_only=True, frozen=True):
    """DOC PreToolUseHookInput"""

    tool_name: str
    tool_input: Any
    tool_use_id: str
    mcp_server: McpServerProvenance | None = None


class PostToolUseHookInput(HookInputBase, tag="PostToolUse", kw_only=True, frozen=True):
    """DOC PostToolUseHookInput"""

    tool_name: str
    tool_input: Any
    tool_response: Any
    tool_use_id: str
    duration_ms: Number | None = None
    mcp_server: McpServerProvenance | None = None


class PostToolUseFailureHookInput(HookInputBase, tag="PostToolUseFailure", kw_only=True, frozen=True):
    """DOC PostToolUseFailureHookInput"""

    tool_name: str
    tool_input: Any
    tool_use_id: str
    error: str
    is_interrupt: bool | None = None
    duration_ms: Number | None = None
    mcp_server: McpServerProvenance | None = None


class PostToolBatchToolCall(Wire, kw_only=True, frozen=True):
    """DOC PostToolBatchToolCall"""

    tool_name: str
    tool_input: Any
    tool_use_id: str
    tool_response: Any = None


class PostToolBatchHookInput(HookInputBase, tag="PostToolBatch", kw_only=True, frozen=True):
    """DOC PostToolBatchHookInput"""

    tool_calls: list[PostToolBatchToolCall]


class PermissionDeniedHookInput(HookInputBase, tag="PermissionDenied", kw_only=True, frozen=True):
    """DOC PermissionDeniedHookInput"""

    tool_name: str
    tool_input: Any
    tool_use_id: str
    reason: str
    mcp_server: McpServerProvenance | None = None


class PermissionRequestHookInput(HookInputBase, tag="PermissionRequest", kw_only=True, frozen=True):
    """DOC PermissionRequestHookInput"""

    tool_name: str
    tool_input: Any
    permission_suggestions: list[PermissionUpdate] | None = None
    mcp_server: McpServerProvenance | None = None


class NotificationHookInput(HookInputBase, tag="Notification", kw_only=True, frozen=True):
    """DOC NotificationHookInput"""

    message: str
    title: str | None = None
    notification_type: str


class UserPromptSubmitHookInput(HookInputBase, tag="UserPromptSubmit", kw_only=True, frozen=True):
    """DOC UserPromptSubmitHookInput"""

    prompt: str
    # one of user, system, sdk, loop_wakeup, schedule_wakeup, poll_event
    source: str | None = None
    session_title: str | None = None


class UserPromptExpansionHookInput(HookInputBase, tag="UserPromptExpansion", kw_only=True, frozen=True):
    """DOC UserPromptExpansionHookInput"""

    # one of slash_command, mcp_prompt
    expansion_type: str
    command_name: str
    command_args: str
    command_source: str | None = None
    prompt: str


class SessionStartHookInput(HookInputBase, tag="SessionStart", kw_only=True, frozen=True):
    """DOC SessionStartHookInput"""

    # one of clear, startup, resume, compact, fork
    source: str
    model: str | None = None
    session_title: str | None = None
    seconds_since_last_response: Number | None = None
    context_tokens: int | None = None
    prompt_cache_likely_expired: bool | None = None
    estimated_cache_write_usd: Number | None = None


class SessionEndHookInput(HookInputBase, tag="SessionEnd", kw_only=True, frozen=True):
    """DOC SessionEndHookInput"""

    # one of clear, other, resume, logout, prompt_input_exit
    reason: str


class StopHookInput(HookInputBase, tag="Stop", kw_only=True, frozen=True):
    """DOC StopHookInput"""

    stop_hook_active: bool
    last_assistant_message: str | None = None
    background_tasks: list[BackgroundTaskSummary] | None = None
    session_crons: list[SessionCronSummary] | None = None


class StopFailureHookInput(HookInputBase, tag="StopFailure", kw_only=True, frozen=True):
    """DOC StopFailureHookInput"""

    # one of authentication_failed, oauth_org_not_allowed, account_on_hold, verification_required, billing_error,
    # rate_limit, overloaded, invalid_request, model_not_found, server_error, unknown, max_output_tokens,
    # cloud_credential_error
    error: str
    error_details: str | None = None
    last_assistant_message: str | None = None


class SubagentStartHookInput(HookInputBase, tag="SubagentStart", kw_only=True, frozen=True):
    """DOC SubagentStartHookInput"""

    agent_id: str
    agent_type: str


class SubagentStopHookInput(HookInputBase, tag="SubagentStop", kw_only=True, frozen=True):
    """DOC SubagentStopHookInput"""

    agent_id: str
    agent_type: str
    stop_hook_active: bool
    agent_transcript_path: str
    last_assistant_message: str | None = None
    background_tasks: list[BackgroundTaskSummary] | None = None
    session_crons: list[SessionCronSummary] | None = None


class PreCompactHookInput(HookInputBase, tag="PreCompact", kw_only=True, frozen=True):
    """DOC PreCompactHookInput"""

    # one of auto, manual
    trigger: str
    custom_instructions: str | None = null()


class PostCompactHookInput(HookInputBase, tag="PostCompact", kw_only=True, frozen=True):
    """DOC PostCompactHookInput"""

    # one of auto, manual
    trigger: str
    compact_summary: str


class PreModelSwitchHookInput(HookInputBase, tag="PreModelSwitch", kw_only=True, frozen=True):
    """DOC PreModelSwitchHookInput"""

    from_model: str
    to_model: str
    requested_model: str | None = null()
    # one of sdk, command, picker
    source: str
    context_tokens: int
    prompt_cache_warm: bool
    # one of 5m, 1h
    cache_ttl: str
    estimated_cache_write_usd: Number
    # one of default, configured, catalog
    pricing: str


class PostModelSwitchHookInput(HookInputBase, tag="PostModelSwitch", kw_only=True, frozen=True):
    """DOC PostModelSwitchHookInput"""

    from_model: str
    to_model: str
    requested_model: str | None = null()
    # one of auto, sdk, resume, command, picker
    source: str
    context_tokens: int
    prompt_cache_warm: bool
    # one of 5m, 1h
    cache_ttl: str
    estimated_cache_write_usd: Number
    # one of default, configured, catalog
    pricing: str


class SetupHookInput(HookInputBase, tag="Setup", kw_only=True, frozen=True):
    """DOC SetupHookInput"""

    # one of init, maintenance
    trigger: str


class TeammateIdleHookInput(HookInputBase, tag="TeammateIdle", kw_only=True, frozen=True):
    """DOC TeammateIdleHookInput"""

    teammate_name: str
    team_name: str


class TaskCreatedHookInput(HookInputBase, tag="TaskCreated", kw_only=True, frozen=True):
    """DOC TaskCreatedHookInput"""

    task_id: str
    task_subject: str
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class TaskCompletedHookInput(HookInputBase, tag="TaskCompleted", kw_only=True, frozen=True):
    """DOC TaskCompletedHookInput"""

    task_id: str
    task_subject: str
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class ElicitationHookInput(HookInputBase, tag="Elicitation", kw_only=True, frozen=True):
    """DOC ElicitationHookInput"""

    mcp_server_name: str
    message: str
    # one of form, url
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None


class ElicitationResultHookInput(HookInputBase, tag="ElicitationResult", kw_only=True, frozen=True):
    """DOC ElicitationResultHookInput"""

    mcp_server_name: str
    elicitation_id: str | None = None
    # one of form, url
    mode: str | None = None
    # one of cancel, accept, decline
    action: str
    content: dict[str, Any] | None = None


class ConfigChangeHookInput(HookInputBase, tag="ConfigChange", kw_only=True, frozen=True):
    """DOC ConfigChangeHookInput"""

    # one of user_settings, project_settings, local_settings, policy_settings, skills
    source: str
    file_path: str | None = None


class InstructionsLoadedHookInput(HookInputBase, tag="InstructionsLoaded", kw_only=True, frozen=True):
    """DOC InstructionsLoadedHookInput"""

    file_path: str
    # one of User, Project, Local, Managed
    memory_type: str
    # one of compact, session_start, nested_traversal, path_glob_match, include
    load_reason: str
    globs: list[str] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None


class WorktreeCreateHookInput(HookInputBase, tag="WorktreeCreate", kw_only=True, frozen=True):
    """DOC WorktreeCreateHookInput"""

    name: str


class WorktreeRemoveHookInput(HookInputBase, tag="WorktreeRemove", kw_only=True, frozen=True):
    """DOC WorktreeRemoveHookInput"""

    worktree_path: str


class CwdChangedHookInput(HookInputBase, tag="CwdChanged", kw_only=True, frozen=True):
    """DOC CwdChangedHookInput"""

    old_cwd: str
    new_cwd: str


class FileChangedHookInput(HookInputBase, tag="FileChanged", kw_only=True, frozen=True):
    """DOC FileChangedHookInput"""

    file_path: str
    # one of change, add, unlink
    event: str


class DirectoryAddedHookInput(HookInputBase, tag="DirectoryAdded", kw_only=True, frozen=True):
    """DOC DirectoryAddedHookInput"""

    directory: str
    # one of register_repo_root, slash_command
    source: str


class MessageDisplayHookInput(HookInputBase, tag="MessageDisplay", kw_only=True, frozen=True):
    """DOC MessageDisplayHookInput"""

    turn_id: str
    message_id: str
    index: int
    final: bool
    delta: str


KnownHookInput: TypeAlias = (
    PreToolUseHookInput
    | PostToolUseHookInput
    | PostToolUseFailureHookInput
    | PostToolBatchHookInput
    | PermissionDeniedHookInput
    | PermissionRequestHookInput
    | NotificationHookInput
    | UserPromptSubmitHookInput
    | UserPromptExpansionHookInput
    | SessionStartHookInput
    | SessionEndHookInput
    | StopHookInput
    | StopFailureHookInput
    | SubagentStartHookInput
    | SubagentStopHookInput
    | PreCompactHookInput
    | PostCompactHookInput
    | PreModelSwitchHookInput
    | PostModelSwitchHookInput
    | SetupHookInput
    | TeammateIdleHookInput
    | TaskCreatedHookInput
    | TaskCompletedHookInput
    | ElicitationHookInput
    | ElicitationResultHookInput
    | ConfigChangeHookInput
    | InstructionsLoadedHookInput
    | WorktreeCreateHookInput
    | WorktreeRemoveHookInput
    | CwdChangedHookInput
    | FileChangedHookInput
    | DirectoryAddedHookInput
    | MessageDisplayHookInput
)
if TYPE_CHECKING:
    HookInput: TypeAlias = KnownHookInput | UnknownHookInput
else:
    HookInput = KnownHookInput
