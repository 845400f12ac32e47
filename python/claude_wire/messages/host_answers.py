"""DOC module host_answers"""

from __future__ import annotations

from typing import Any

from claude_wire.messages._base import Number, Wire
from claude_wire.messages.catalog import (
    AccountInfo,
    AgentInfo,
    LoadedPlugin,
    ModelInfo,
    PluginCacheImpact,
    SettingsParseError,
    SlashCommand,
)
from claude_wire.messages.mcp import McpResourceContent, McpServerStatus
from claude_wire.messages.permissions import PermissionRulesState

__all__ = [
    "BackgroundTasksResponse",
    "CancelAsyncMessageResponse",
    "FileSuggestionsResponse",
    "GetBinaryVersionResponse",
    "GetHooksListingResponse",
    "GetSessionCostResponse",
    "GetSettingsResponse",
    "GetTaskOutputResponse",
    "HookBareMode",
    "HookEditable",
    "HookEventCount",
    "HookEventInfo",
    "HookListing",
    "HookPolicy",
    "HookSafeMode",
    "InitializeResponse",
    "InterruptResponse",
    "ListModelsResponse",
    "ListPermissionRulesResponse",
    "McpReadResourceResponse",
    "McpSetServersResponse",
    "McpStatusResponse",
    "ReadFileResponse",
    "ReloadOutputStylesResponse",
    "ReloadPluginsResponse",
    "ReloadSkillsResponse",
    "RewindFilesResponse",
    "SetModelResponse",
    "SetPermissionModeResponse",
]


class InterruptResponse(Wire, kw_only=True, frozen=True):
    """DOC InterruptResponse"""

    still_queued: list[str] | None = None
    cancelled: list[str] | None = None


class InitializeResponse(Wire, kw_only=True, frozen=True):
    """DOC InitializeResponse"""

    commands: list[SlashCommand] | None = None
    agents: list[AgentInfo] | None = None
    output_style: str | None = None
    available_output_styles: list[str] | None = None
    models: list[ModelInfo] | None = None
    account: AccountInfo | None = None
    hooks_applied: bool | None = None
    hook_on_failure_supported: bool | None = None
    plugins_applied: bool | None = None
    mcp_servers_applied: bool | None = None
    sdk_mcp_manifests_parked: dict[str, str] | None = None
    claude_code_version: str | None = None
    # one of off, cooldown, on
    fast_mode_state: str | None = None
    # one of unknown, free, preference, extra_usage_disabled, network_error, not_first_party, disabled_by_env,
    # model_not_allowed, sdk_opt_in_required, pending
    fast_mode_disabled_reason: str | None = None


class SetPermissionModeResponse(Wire, kw_only=True, frozen=True):
    """DOC SetPermissionModeResponse"""

    mode: str | None = None


class SetModelResponse(Wire, kw_only=True, frozen=True):
    """DOC SetModelResponse"""

    model: str | None = None


class McpStatusResponse(Wire, kw_only=True, frozen=True):
    """DOC McpStatusResponse"""

    mcpServers: list[McpServerStatus]


class GetSessionCostResponse(Wire, kw_only=True, frozen=True):
    """DOC GetSessionCostResponse"""

    text: str | None = None


class ListModelsResponse(Wire, kw_only=True, frozen=True):
    """DOC ListModelsResponse"""

    models: list[ModelInfo] | None = None


class GetBinaryVersionResponse(Wire, kw_only=True, frozen=True):
    """DOC GetBinaryVersionResponse"""

    version: str | None = None
    buildTime: str | None = None
    oldestDesktopSdk: str | None = None


class FileSuggestionsResponse(Wire, kw_only=True, frozen=True):
    """DOC FileSuggestionsResponse"""

    suggestions: list[Any]


class RewindFilesResponse(Wire, kw_only=True, frozen=True):
    """DOC RewindFilesResponse"""

    canRewind: bool
    error: str | None = None
    filesChanged: list[str] | None = None
    insertions: int | None = None
    deletions: int | None = None
    skippedLinks: int | None = None


class CancelAsyncMessageResponse(Wire, kw_only=True, frozen=True):
    """DOC CancelAsyncMessageResponse"""

    cancelled: bool


class ReadFileResponse(Wire, kw_only=True, frozen=True):
    """DOC ReadFileResponse"""

    contents: str
    absPath: str
    truncated: bool | None = None
    encoding: str | None = None
    lossy: bool | None = None


class McpSetServersResponse(Wire, kw_only=True, frozen=True):
    """DOC McpSetServersResponse"""

    added: list[str]
    removed: list[str]
    errors: dict[str, str]


class ReloadPluginsResponse(Wire, kw_only=True, frozen=True):
    """DOC ReloadPluginsResponse"""

    commands: list[SlashCommand]
    agents: list[AgentInfo]
    plugins: list[LoadedPlugin]
    mcpServers: list[McpServerStatus]
    error_count: int
    held: bool | None = None
    cache_impact: PluginCacheImpact | None = None


class ReloadSkillsResponse(Wire, kw_only=True, frozen=True):
    """DOC ReloadSkillsResponse"""

    skills: list[SlashCommand]


class ReloadOutputStylesResponse(Wire, kw_only=True, frozen=True):
    """DOC ReloadOutputStylesResponse"""

    available_output_styles: list[str]


class BackgroundTasksResponse(Wire, kw_only=True, frozen=True):
    """DOC BackgroundTasksResponse"""

    backgrounded: bool | None = None


class GetTaskOutputResponse(Wire, kw_only=True, frozen=True):
    """DOC GetTaskOutputResponse"""

    output: str
    total_bytes: int
    truncated: bool


class GetSettingsResponse(Wire, kw_only=True, frozen=True):
    """DOC GetSettingsResponse"""

    effective: dict[str, Any] | None = None
    sources: Any = None
    applied: dict[str, Any] | None = None
    errors: list[SettingsParseError] | None = None
    served_settings_state: str | None = None


class HookEventCount(Wire, kw_only=True, frozen=True):
    """DOC HookEventCount"""

    name: str
    summary: str
    supportsMatcher: bool
    hookCount: int


class HookEditable(Wire, kw_only=True, frozen=True):
    """DOC HookEditable"""

    matcher: str
    config: dict[str, Any]
    headersRedacted: bool | None = None


class HookListing(Wire, kw_only=True, frozen=True):
    """DOC HookListing"""

    event: str
    matcher: str
    source: str
    sourceLabel: str
    pluginName: str | None = None
    type: str
    displayText: str
    commandText: str
    contentLabel: str
    condition: str | None = None
    timeout: Number | None = None
    statusMessage: str | None = None
    runsOnce: bool | None = None
    runsInBackground: bool | None = None
    disabled: bool | None = None
    editable: HookEditable | None = None


class HookEventInfo(Wire, kw_only=True, frozen=True):
    """DOC HookEventInfo"""

    name: str
    summary: str
    supportsMatcher: bool


class HookPolicy(Wire, kw_only=True, frozen=True):
    """DOC HookPolicy"""

    disabledByPolicy: bool
    managedOnly: bool
    pluginOnly: bool
    allDisabled: bool
    policyHookCount: int
    policyUnreadable: bool | None = None


class HookSafeMode(Wire, kw_only=True, frozen=True):
    """DOC HookSafeMode"""

    managedHooksStillApply: bool
    exitHint: str


class HookBareMode(Wire, kw_only=True, frozen=True):
    """DOC HookBareMode"""

    exitHint: str


class GetHooksListingResponse(Wire, kw_only=True, frozen=True):
    """DOC GetHooksListingResponse"""

    events: list[HookEventCount] | None = None
    hooks: list[HookListing] | None = None
    eventCatalog: list[HookEventInfo] | None = None
    policy: HookPolicy | None = None
    safeMode: HookSafeMode | None = None
    bareMode: HookBareMode | None = None
    errors: list[SettingsParseError] | None = None


class ListPermissionRulesResponse(Wire, kw_only=True, frozen=True):
    """DOC ListPermissionRulesResponse"""

    state: PermissionRulesState


class McpReadResourceResponse(Wire, kw_only=True, frozen=True):
    """DOC McpReadResourceResponse"""

    contents: list[McpResourceContent]
