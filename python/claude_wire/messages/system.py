"""DOC module system"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from claude_wire.messages._base import Number, Wire, constant, null
from claude_wire.messages.catalog import SlashCommand

__all__ = [
    "ApiRetryMessage",
    "CommandsChangedMessage",
    "CompactBoundaryMessage",
    "CompactMetadata",
    "ControlRequestProgressMessage",
    "ElicitationCompleteMessage",
    "FilesPersistedMessage",
    "HookProgressMessage",
    "HookResponseMessage",
    "HookStartedMessage",
    "InformationalMessage",
    "InitMcpServer",
    "InitMessage",
    "InitPlugin",
    "LocalCommandOutputMessage",
    "MemoryRecallMessage",
    "MirrorErrorMessage",
    "MirrorKey",
    "ModelFallbackMessage",
    "ModelRefusalFallbackMessage",
    "ModelRefusalNoFallbackMessage",
    "NoResponse",
    "NotificationMessage",
    "PermissionDeniedMessage",
    "PersistFailure",
    "PersistedFile",
    "PluginError",
    "PluginInstallMessage",
    "PluginManagedLock",
    "PreservedMessages",
    "PreservedSegment",
    "RecalledMemory",
    "SessionStateChangedMessage",
    "SessionTitleChangedMessage",
    "SessionWritesLostMessage",
    "StatusMessage",
    "SystemMessage",
    "ThinkingTokensMessage",
    "UiInvalidateMessage",
    "WorkerShuttingDownMessage",
]


class SystemMessage(Wire, tag_field="type", tag="system", kw_only=True, frozen=True):
    """The base of every ``system`` message; ``subtype`` says which it is, and each subtype has a class of its own."""

    subtype: str
    uuid: str | None = None
    session_id: str | None = None


class InitMcpServer(Wire, frozen=True):
    """DOC InitMcpServer"""

    name: str
    status: str
    source: str | None = None


class InitPlugin(Wire, frozen=True):
    """DOC InitPlugin"""

    name: str
    path: str
    version: str | None = None


class PluginManagedLock(Wire, frozen=True):
    """DOC PluginManagedLock"""

    plugin_enabled: bool
    name: str
    marketplace: str | None = None


class PluginError(Wire, kw_only=True, frozen=True):
    """DOC PluginError"""

    plugin: str
    type: str
    message: str
    path: str | None = None
    managed_lock: PluginManagedLock | None = None


class InitMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC InitMessage"""

    subtype: Literal["init"] = constant("init")
    cwd: str | None = None
    model: str | None = None
    tools: list[str] | None = None
    mcp_servers: list[InitMcpServer] | None = None
    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    permissionMode: str | None = None
    agents: list[str] | None = None
    # one of user, none, ANTHROPIC_API_KEY, apiKeyHelper, /login managed key, project, org, temporary, oauth
    apiKeySource: str | None = None
    betas: list[str] | None = None
    claude_code_version: str | None = None
    slash_commands: list[str] | None = None
    terminal_slash_commands: list[str] | None = None
    output_style: str | None = None
    skills: list[str] | None = None
    plugins: list[InitPlugin] | None = None
    plugin_errors: list[PluginError] | None = None
    # one of off, cooldown, on
    fast_mode_state: str | None = None
    # one of unknown, free, preference, extra_usage_disabled, network_error, not_first_party, disabled_by_env,
    # model_not_allowed, sdk_opt_in_required, pending
    fast_mode_disabled_reason: str | None = None
    # one of low, medium, high, xhigh, max
    effort: str | None | UnsetType = UNSET
    # one of default, focus
    view_mode: str | None = None
    capabilities: list[str] | None = None
    timestamp: str | None = None
    models: list[Any] | None = None


class StatusMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC StatusMessage"""

    subtype: Literal["status"] = constant("status")
    # one of compacting, requesting
    status: str | None = null()
    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    permissionMode: str | None = None
    # one of success, failed
    compact_result: str | None = None
    compact_error: str | None = None
    running: bool | None = None
    queued_messages: int | None = None


class PreservedSegment(Wire, frozen=True):
    """DOC PreservedSegment"""

    head_uuid: str
    anchor_uuid: str
    tail_uuid: str


class PreservedMessages(Wire, frozen=True):
    """DOC PreservedMessages"""

    anchor_uuid: str
    uuids: list[str]


class CompactMetadata(Wire, kw_only=True, frozen=True):
    """DOC CompactMetadata"""

    # one of auto, manual
    trigger: str
    pre_tokens: int
    post_tokens: int | None = None
    duration_ms: Number | None = None
    preserved_segment: PreservedSegment | None = None
    preserved_messages: PreservedMessages | None = None


class CompactBoundaryMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC CompactBoundaryMessage"""

    subtype: Literal["compact_boundary"] = constant("compact_boundary")
    compact_metadata: CompactMetadata


class NoResponse(Wire, frozen=True):
    """DOC NoResponse"""

    waited_ms: Number
    retry_wait_ms: Number


class ApiRetryMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC ApiRetryMessage"""

    subtype: Literal["api_retry"] = constant("api_retry")
    attempt: int
    max_retries: int
    retry_delay_ms: Number
    error_status: int | None = null()
    # one of authentication_failed, oauth_org_not_allowed, account_on_hold, verification_required, billing_error,
    # rate_limit, overloaded, invalid_request, model_not_found, server_error, unknown, max_output_tokens,
    # cloud_credential_error
    error: str
    no_response: NoResponse | None = None


class ControlRequestProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC ControlRequestProgressMessage"""

    subtype: Literal["control_request_progress"] = constant("control_request_progress")
    request_id: str
    # one of api_retry, started
    status: str
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: Number | None = None
    error_status: int | None | UnsetType = UNSET


class ModelRefusalFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC ModelRefusalFallbackMessage"""

    subtype: Literal["model_refusal_fallback"] = constant("model_refusal_fallback")
    trigger: str
    # one of retry, revert, sticky
    direction: str
    # one of session, local
    scope: str | None = None
    original_model: str
    fallback_model: str
    request_id: str | None = null()
    api_refusal_category: str | None | UnsetType = UNSET
    api_refusal_explanation: str | None | UnsetType = UNSET
    retracted_message_uuids: list[str] | None = None
    refused_user_message_uuid: str | None | UnsetType = UNSET
    content: str


class ModelRefusalNoFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC ModelRefusalNoFallbackMessage"""

    subtype: Literal["model_refusal_no_fallback"] = constant("model_refusal_no_fallback")
    original_model: str
    request_id: str | None = null()
    api_refusal_category: str | None | UnsetType = UNSET
    api_refusal_explanation: str | None | UnsetType = UNSET
    refused_user_message_uuid: str | None | UnsetType = UNSET
    content: str


class ModelFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC ModelFallbackMessage"""

    subtype: Literal["model_fallback"] = constant("model_fallback")
    trigger: str | None = None
    original_model: str | None = None
    fallback_model: str | None = None
    content: str | None = None


class LocalCommandOutputMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC LocalCommandOutputMessage"""

    subtype: Literal["local_command_output"] = constant("local_command_output")
    content: str


class HookStartedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC HookStartedMessage"""

    subtype: Literal["hook_started"] = constant("hook_started")
    hook_id: str
    hook_name: str
    hook_event: str


class HookProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC HookProgressMessage"""

    subtype: Literal["hook_progress"] = constant("hook_progress")
    hook_id: str
    hook_name: str
    hook_event: str
    stdout: str
    stderr: str
    output: str


class HookResponseMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC HookResponseMessage"""

    subtype: Literal["hook_response"] = constant("hook_response")
    hook_id: str | None = None
    hook_name: str | None = None
    hook_event: str
    output: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None
    # one of success, error, cancelled
    outcome: str | None = None
    response: dict[str, Any] | None = None


class PluginInstallMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC PluginInstallMessage"""

    subtype: Literal["plugin_install"] = constant("plugin_install")
    # one of completed, failed, started, installed
    status: str
    name: str | None = None
    error: str | None = None


class ThinkingTokensMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC ThinkingTokensMessage"""

    subtype: Literal["thinking_tokens"] = constant("thinking_tokens")
    estimated_tokens: int
    estimated_tokens_delta: int
    user_message_uuid: str | None = None


class SessionStateChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC SessionStateChangedMessage"""

    subtype: Literal["session_state_changed"] = constant("session_state_changed")
    # one of running, idle, requires_action
    state: str


class SessionTitleChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC SessionTitleChangedMessage"""

    subtype: Literal["session_title_changed"] = constant("session_title_changed")
    title: str | None = None


class WorkerShuttingDownMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC WorkerShuttingDownMessage"""

    subtype: Literal["worker_shutting_down"] = constant("worker_shutting_down")
    reason: str


class CommandsChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC CommandsChangedMessage"""

    subtype: Literal["commands_changed"] = constant("commands_changed")
    commands: list[SlashCommand]


class NotificationMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC NotificationMessage"""

    subtype: Literal["notification"] = constant("notification")
    key: str
    text: str
    # one of low, medium, high, immediate
    priority: str
    color: str | None = None
    timeout_ms: Number | None = None


class InformationalMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC InformationalMessage"""

    subtype: Literal["informational"] = constant("informational")
    content: str
    # one of info, notice, suggestion, warning
    level: str
    tool_use_id: str | None = None
    prevent_continuation: bool | None = None
    tag: str | None = None


class UiInvalidateMessage(SystemMessage, frozen=True):
    """DOC UiInvalidateMessage"""

    subtype: Literal["ui_invalidate"] = constant("ui_invalidate")


class PersistedFile(Wire, frozen=True):
    """DOC PersistedFile"""

    filename: str
    file_id: str


class PersistFailure(Wire, frozen=True):
    """DOC PersistFailure"""

    filename: str
    error: str


class FilesPersistedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC FilesPersistedMessage"""

    subtype: Literal["files_persisted"] = constant("files_persisted")
    files: list[PersistedFile]
    failed: list[PersistFailure]
    processed_at: str


class SessionWritesLostMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC SessionWritesLostMessage"""

    subtype: Literal["session_writes_lost"] = constant("session_writes_lost")
    # one of ENOSPC, EDQUOT
    error_code: str
    lost: list[str]
    transcript_session_ids: list[str] | None = None


class RecalledMemory(Wire, frozen=True):
    """DOC RecalledMemory"""

    path: str
    # one of personal, team, organization
    scope: str
    content: str | None = None


class MemoryRecallMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC MemoryRecallMessage"""

    subtype: Literal["memory_recall"] = constant("memory_recall")
    # one of select, synthesize
    mode: str
    memories: list[RecalledMemory]


class ElicitationCompleteMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC ElicitationCompleteMessage"""

    subtype: Literal["elicitation_complete"] = constant("elicitation_complete")
    mcp_server_name: str
    elicitation_id: str


class PermissionDeniedMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC PermissionDeniedMessage"""

    subtype: Literal["permission_denied"] = constant("permission_denied")
    tool_name: str
    tool_use_id: str
    agent_id: str | None = None
    decision_reason_type: str | None = None
    decision_reason: str | None = None
    message: str


class MirrorKey(Wire, frozen=True):
    """DOC MirrorKey"""

    projectKey: str
    sessionId: str
    subpath: str | None = None


class MirrorErrorMessage(SystemMessage, kw_only=True, frozen=True):
    """DOC MirrorErrorMessage"""

    subtype: Literal["mirror_error"] = constant("mirror_error")
    error: str
    key: MirrorKey
