"""DOC module host_requests"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from claude_wire.messages._base import Number, Wire, null
from claude_wire.messages.catalog import AgentDefinition, SdkPluginConfig
from claude_wire.messages.context_usage import GetContextUsageResponse, GetUsageResponse
from claude_wire.messages.host_answers import (
    BackgroundTasksResponse,
    CancelAsyncMessageResponse,
    FileSuggestionsResponse,
    GetBinaryVersionResponse,
    GetHooksListingResponse,
    GetSessionCostResponse,
    GetSettingsResponse,
    GetTaskOutputResponse,
    InitializeResponse,
    InterruptResponse,
    ListModelsResponse,
    ListPermissionRulesResponse,
    McpReadResourceResponse,
    McpSetServersResponse,
    McpStatusResponse,
    ReadFileResponse,
    ReloadOutputStylesResponse,
    ReloadPluginsResponse,
    ReloadSkillsResponse,
    RewindFilesResponse,
    SetModelResponse,
    SetPermissionModeResponse,
)
from claude_wire.messages.mcp import (
    McpInputFile,
    McpOutputFile,
    McpServerConfig,
    SdkMcpServerConfig,
    SdkMcpServerManifest,
)
from claude_wire.messages.request_body import ControlRequestBody

__all__ = [
    "ApplyFlagSettingsRequest",
    "BackgroundTasksRequest",
    "CancelAsyncMessageRequest",
    "FileSuggestionsRequest",
    "GetBinaryVersionRequest",
    "GetContextUsageRequest",
    "GetHooksListingRequest",
    "GetSessionCostRequest",
    "GetSettingsRequest",
    "GetTaskOutputRequest",
    "GetUsageRequest",
    "HookCallbackMatcher",
    "InitializeRequest",
    "InterruptRequest",
    "ListModelsRequest",
    "ListPermissionRulesRequest",
    "McpCallRequest",
    "McpReadResourceRequest",
    "McpReconnectRequest",
    "McpSetServersRequest",
    "McpStatusRequest",
    "McpToggleRequest",
    "ReadFileRequest",
    "RegisterRepoRootRequest",
    "ReloadOutputStylesRequest",
    "ReloadPluginsRequest",
    "ReloadSkillsRequest",
    "RenameSessionRequest",
    "RewindFilesRequest",
    "SeedReadStateRequest",
    "SetColorRequest",
    "SetHasSubscribersRequest",
    "SetMaxThinkingTokensRequest",
    "SetModelRequest",
    "SetPermissionModeRequest",
    "StopTaskRequest",
    "UpdateSettingsRequest",
]


class HookCallbackMatcher(Wire, kw_only=True, frozen=True):
    """DOC HookCallbackMatcher"""

    matcher: str | None = None
    hookCallbackIds: list[str]
    timeout: Number | None = None
    # one of block, continue
    onFailure: str | None = None


class InitializeRequest(ControlRequestBody[InitializeResponse], tag="initialize", kw_only=True, frozen=True):
    """DOC InitializeRequest"""

    hooks: dict[str, list[HookCallbackMatcher]] | None = None
    sdkMcpServers: list[str] | None = None
    sdkMcpServerConfigs: dict[str, SdkMcpServerConfig] | None = None
    sdkMcpServerManifests: dict[str, SdkMcpServerManifest] | None = None
    sdkMcpServerManifestsOrigin: str | None = None
    jsonSchema: dict[str, Any] | None = None
    systemPrompt: list[str] | None = None
    appendSystemPrompt: str | None = None
    systemPromptSnapshot: bool | None = None
    planModeInstructions: str | None = None
    toolAliases: dict[str, str] | None = None
    excludeDynamicSections: bool | None = None
    agents: dict[str, AgentDefinition] | None = None
    title: str | None = None
    skills: list[str] | None = None
    promptSuggestions: bool | None = None
    agentProgressSummaries: bool | None = None
    forwardSubagentText: bool | None = None
    supportedDialogKinds: list[str] | None = None
    perTaskStopAffordance: bool | None = None
    plugins: list[SdkPluginConfig] | None = None
    mcpServers: dict[str, McpServerConfig] | None = None


class InterruptRequest(ControlRequestBody[InterruptResponse], tag="interrupt", kw_only=True, frozen=True):
    """DOC InterruptRequest"""

    cancel_queued: bool | None = None


class SetPermissionModeRequest(
    ControlRequestBody[SetPermissionModeResponse], tag="set_permission_mode", kw_only=True, frozen=True
):
    """DOC SetPermissionModeRequest"""

    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    mode: str


class SetModelRequest(ControlRequestBody[SetModelResponse], tag="set_model", kw_only=True, frozen=True):
    """DOC SetModelRequest"""

    model: str | None | UnsetType = UNSET


class SetMaxThinkingTokensRequest(
    ControlRequestBody[dict[str, Any]], tag="set_max_thinking_tokens", kw_only=True, frozen=True
):
    """DOC SetMaxThinkingTokensRequest"""

    max_thinking_tokens: int | None | UnsetType = UNSET
    # one of summarized, omitted, highlights
    thinking_display: str | None | UnsetType = UNSET


class RenameSessionRequest(ControlRequestBody[dict[str, Any]], tag="rename_session", kw_only=True, frozen=True):
    """DOC RenameSessionRequest"""

    title: str
    # one of remote, host
    source: str | None = None
    session_id: str | None = None


class SetColorRequest(ControlRequestBody[dict[str, Any]], tag="set_color", kw_only=True, frozen=True):
    """DOC SetColorRequest"""

    color: str


class McpStatusRequest(ControlRequestBody[McpStatusResponse], tag="mcp_status", kw_only=True, frozen=True):
    """DOC McpStatusRequest"""

    liveReply: bool | None = None


class GetContextUsageRequest(
    ControlRequestBody[GetContextUsageResponse], tag="get_context_usage", kw_only=True, frozen=True
):
    """DOC GetContextUsageRequest"""

    # one of summary, full
    detail: str | None = None


class GetSessionCostRequest(ControlRequestBody[GetSessionCostResponse], tag="get_session_cost", frozen=True):
    """DOC GetSessionCostRequest"""


class ListModelsRequest(ControlRequestBody[ListModelsResponse], tag="list_models", frozen=True):
    """DOC ListModelsRequest"""


class GetUsageRequest(ControlRequestBody[GetUsageResponse], tag="get_usage", kw_only=True, frozen=True):
    """DOC GetUsageRequest"""

    skip_behaviors: bool | None = None


class GetBinaryVersionRequest(ControlRequestBody[GetBinaryVersionResponse], tag="get_binary_version", frozen=True):
    """DOC GetBinaryVersionRequest"""


class McpCallRequest(ControlRequestBody[dict[str, Any]], tag="mcp_call", kw_only=True, frozen=True):
    """DOC McpCallRequest"""

    tool: str
    arguments: dict[str, Any] | None = None
    expires_at: str | None = None
    timeout_ms: Number | None = None
    result_not_for_model: bool | None = None
    check_permissions: bool | None = None
    input_files: list[McpInputFile] | None = None
    output_files: list[McpOutputFile] | None = None


class FileSuggestionsRequest(
    ControlRequestBody[FileSuggestionsResponse], tag="file_suggestions", kw_only=True, frozen=True
):
    """DOC FileSuggestionsRequest"""

    query: str


class RewindFilesRequest(ControlRequestBody[RewindFilesResponse], tag="rewind_files", kw_only=True, frozen=True):
    """DOC RewindFilesRequest"""

    user_message_id: str
    dry_run: bool | None = None


class CancelAsyncMessageRequest(
    ControlRequestBody[CancelAsyncMessageResponse], tag="cancel_async_message", kw_only=True, frozen=True
):
    """DOC CancelAsyncMessageRequest"""

    message_uuid: str


class ReadFileRequest(ControlRequestBody[ReadFileResponse], tag="read_file", kw_only=True, frozen=True):
    """DOC ReadFileRequest"""

    path: str
    max_bytes: int | None = None
    # one of utf-8, base64
    encoding: str | None = None


class SeedReadStateRequest(ControlRequestBody[dict[str, Any]], tag="seed_read_state", kw_only=True, frozen=True):
    """DOC SeedReadStateRequest"""

    path: str
    mtime: Number


class McpSetServersRequest(ControlRequestBody[McpSetServersResponse], tag="mcp_set_servers", kw_only=True, frozen=True):
    """DOC McpSetServersRequest"""

    servers: dict[str, McpServerConfig]


class RegisterRepoRootRequest(ControlRequestBody[dict[str, Any]], tag="register_repo_root", kw_only=True, frozen=True):
    """DOC RegisterRepoRootRequest"""

    directory: str
    reload_claude_md: bool | None = None
    reload_plugins: bool | None = None
    reload_skills: bool | None = None


class ReloadPluginsRequest(ControlRequestBody[ReloadPluginsResponse], tag="reload_plugins", kw_only=True, frozen=True):
    """DOC ReloadPluginsRequest"""

    hold_on_cache_impact: bool | None = None
    add_plugins: list[SdkPluginConfig] | None = None
    refuse_if_busy: bool | None = None


class ReloadSkillsRequest(ControlRequestBody[ReloadSkillsResponse], tag="reload_skills", frozen=True):
    """DOC ReloadSkillsRequest"""


class ReloadOutputStylesRequest(
    ControlRequestBody[ReloadOutputStylesResponse], tag="reload_output_styles", frozen=True
):
    """DOC ReloadOutputStylesRequest"""


class McpReconnectRequest(ControlRequestBody[dict[str, Any]], tag="mcp_reconnect", kw_only=True, frozen=True):
    """DOC McpReconnectRequest"""

    serverName: str


class McpToggleRequest(ControlRequestBody[dict[str, Any]], tag="mcp_toggle", kw_only=True, frozen=True):
    """DOC McpToggleRequest"""

    serverName: str
    enabled: bool


class SetHasSubscribersRequest(
    ControlRequestBody[dict[str, Any]], tag="set_has_subscribers", kw_only=True, frozen=True
):
    """DOC SetHasSubscribersRequest"""

    has_subscribers: bool | None = null()


class StopTaskRequest(ControlRequestBody[dict[str, Any]], tag="stop_task", kw_only=True, frozen=True):
    """DOC StopTaskRequest"""

    task_id: str


class BackgroundTasksRequest(
    ControlRequestBody[BackgroundTasksResponse], tag="background_tasks", kw_only=True, frozen=True
):
    """DOC BackgroundTasksRequest"""

    tool_use_id: str | None = None


class GetTaskOutputRequest(ControlRequestBody[GetTaskOutputResponse], tag="get_task_output", kw_only=True, frozen=True):
    """DOC GetTaskOutputRequest"""

    task_id: str


class ApplyFlagSettingsRequest(
    ControlRequestBody[dict[str, Any]], tag="apply_flag_settings", kw_only=True, frozen=True
):
    """DOC ApplyFlagSettingsRequest"""

    settings: dict[str, Any]


class GetSettingsRequest(ControlRequestBody[GetSettingsResponse], tag="get_settings", frozen=True):
    """DOC GetSettingsRequest"""


class GetHooksListingRequest(ControlRequestBody[GetHooksListingResponse], tag="get_hooks_listing", frozen=True):
    """DOC GetHooksListingRequest"""


class UpdateSettingsRequest(ControlRequestBody[dict[str, Any]], tag="update_settings", kw_only=True, frozen=True):
    """DOC UpdateSettingsRequest"""

    # one of localSettings, userSettings
    source: str
    settings: dict[str, Any]


class ListPermissionRulesRequest(
    ControlRequestBody[ListPermissionRulesResponse], tag="list_permission_rules", frozen=True
):
    """DOC ListPermissionRulesRequest"""


class McpReadResourceRequest(
    ControlRequestBody[McpReadResourceResponse], tag="mcp_read_resource", kw_only=True, frozen=True
):
    """DOC McpReadResourceRequest"""

    serverName: str
    uri: str
