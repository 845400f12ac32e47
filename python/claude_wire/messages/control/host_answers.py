"""The payloads of the CLI's answers to the requests of its host.

A payload is not tagged: only the request it answers says what it is. Requests without a Struct here are
answered with an empty payload or none. Other agents than the CLI acknowledge any request so: lists are then empty, and
all other fields None.
"""

from __future__ import annotations

from typing import Any

from claude_wire.messages.base import Number, Wire
from claude_wire.messages.control.catalog import (
    AccountInfo,
    AgentInfo,
    LoadedPlugin,
    ModelInfo,
    PluginCacheImpact,
    SettingsParseError,
    SlashCommand,
)
from claude_wire.messages.control.mcp import McpResourceContent, McpServerStatus
from claude_wire.messages.control.permissions import PermissionRulesState

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
    """Which queued messages outlive an interrupt, and which went with it.

    ``still_queued`` lists the uuids of messages that will still run; messages sent without a uuid are never listed.
    ``cancelled`` comes when the request set ``cancel_queued``. Older CLIs answer with an empty object.
    """

    still_queued: list[str] | None = None
    cancelled: list[str] | None = None


class InitializeResponse(Wire, kw_only=True, frozen=True):
    """What the session offers, and which parts of the ``initialize`` request took effect.

    Each ``..._applied`` flag is absent when the request had no such part and when the CLI is too old to say. Take any
    list as possibly missing. The requests that wait for an answer are not here but on :class:`ControlSuccess`.
    """

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
    user_output_styles_dir: str | None = None
    current_permission_mode: str | None = None
    session_state: str | None = None
    capabilities: list[str] | None = None
    pid: int | None = None
    hooks_when_unanswered_kept: int | None = None
    feedback_mode: dict[str, Any] | None = None
    other_hook_ask_outranks_host: bool | None = None
    analytics_disabled: bool | None = None
    # whether shell commands run in a sandbox; the string "unknown" if the CLI cannot tell
    sandbox_enabled: bool | str | None = None
    remote_control_available: bool | None = None
    remote_control_auto_enable: bool | None = None
    remote_control_auto_connect_default: bool | None = None
    remote_control_auto_on_by_default: bool | None = None
    ide_rc_auto_enable_gate: bool | None = None


class SetPermissionModeResponse(Wire, kw_only=True, frozen=True):
    """The permission mode that is in force now.

    Older CLIs answer with an empty payload.
    """

    mode: str | None = None


class SetModelResponse(Wire, kw_only=True, frozen=True):
    """The model that is in force now, with a reset resolved to the actual model.

    It is no proof that the model exists: a name that nobody knows is accepted too, and fails at the next request.
    Older CLIs answer with an empty payload.
    """

    model: str | None = None


class McpStatusResponse(Wire, kw_only=True, frozen=True):
    """All MCP servers of the session and the states of their connections.

    ``mcpServers`` is camelCase, as are its rows.
    """

    mcpServers: list[McpServerStatus]


class GetSessionCostResponse(Wire, kw_only=True, frozen=True):
    """A summary of cost, durations and tokens as text of several lines.

    Meant for display; :class:`GetUsageResponse` has the same as numbers.
    """

    text: str | None = None


class ListModelsResponse(Wire, kw_only=True, frozen=True):
    """The models that the session can be switched to."""

    models: list[ModelInfo] | None = None


class GetBinaryVersionResponse(Wire, kw_only=True, frozen=True):
    """The version of the CLI and when it was built.

    ``buildTime`` is an ISO 8601 string. Members are camelCase.
    """

    version: str | None = None
    buildTime: str | None = None
    oldestDesktopSdk: str | None = None


class FileSuggestionsResponse(Wire, kw_only=True, frozen=True):
    """The files and directories that match a partial path, as the prompt's ``@`` shows them.

    What an item looks like is not known.
    """

    suggestions: list[Any]
    cwd: str | None = None


class RewindFilesResponse(Wire, kw_only=True, frozen=True):
    """What a rewind of files changed, or would change in a dry run.

    A rewind that is not possible is a success too, with ``canRewind`` false and ``error``; with checkpoints switched
    off the request itself fails. None for ``canRewind`` means that the agent has only acknowledged the request.
    ``skippedLinks`` counts files left alone because they are links, never in a dry run. Members are camelCase.
    """

    canRewind: bool | None = None
    error: str | None = None
    filesChanged: list[str] | None = None
    insertions: int | None = None
    deletions: int | None = None
    skippedLinks: int | None = None


class CancelAsyncMessageResponse(Wire, kw_only=True, frozen=True):
    """Whether a queued message was taken back.

    False when it was no longer in the queue, or never there; it may then already be running.
    """

    cancelled: bool | None = None
    message_uuid: str | None = None


class ReadFileResponse(Wire, kw_only=True, frozen=True):
    """The contents of a file that the host asked for.

    ``contents`` is base64 only when ``encoding`` says so; else it is text, and ``lossy`` is true when bytes that are
    not UTF-8 were replaced. Note the camelCase ``absPath``.
    """

    contents: str | None = None
    absPath: str | None = None
    requested_path: str | None = None
    truncated: bool | None = None
    encoding: str | None = None
    lossy: bool | None = None


class McpSetServersResponse(Wire, kw_only=True, frozen=True):
    """Which MCP servers were added and removed, and which failed.

    ``errors`` maps a server's name to the reason why it could not be connected.
    """

    added: list[str]
    removed: list[str]
    errors: dict[str, str]


class ReloadPluginsResponse(Wire, kw_only=True, frozen=True):
    """What the session offers after a reload of plugins.

    With ``held`` true nothing was reloaded: the lists are as before and ``cache_impact`` says what a reload would
    change. ``held`` is absent unless the request asked for the check. Note the mix of ``mcpServers`` and
    ``error_count``.
    """

    commands: list[SlashCommand]
    agents: list[AgentInfo]
    plugins: list[LoadedPlugin]
    mcpServers: list[McpServerStatus]
    error_count: int | None = None
    held: bool | None = None
    cache_impact: PluginCacheImpact | None = None


class ReloadSkillsResponse(Wire, kw_only=True, frozen=True):
    """The skills of the session after a reload."""

    skills: list[SlashCommand]


class ReloadOutputStylesResponse(Wire, kw_only=True, frozen=True):
    """The names of the output styles after a reload."""

    available_output_styles: list[str]


class BackgroundTasksResponse(Wire, kw_only=True, frozen=True):
    """Whether any task was sent to the background.

    An absent ``backgrounded`` means true.
    """

    backgrounded: bool | None = None


class GetTaskOutputResponse(Wire, kw_only=True, frozen=True):
    """The last 8 KiB of what a background task has printed.

    ``total_bytes`` is the size of the whole output in bytes; ``truncated`` is true when ``output`` is only the end of
    it. The text may hold terminal escapes.
    """

    output: str | None = None
    total_bytes: int | None = None
    truncated: bool | None = None


class GetSettingsResponse(Wire, kw_only=True, frozen=True):
    """The settings in force, and those of each source.

    ``effective`` is the merged result, ``applied`` what the session runs with, such as model and effort. Files in
    ``errors`` were skipped.
    """

    effective: dict[str, Any] | None = None
    sources: Any = None
    applied: dict[str, Any] | None = None
    errors: list[SettingsParseError] | None = None
    served_settings_state: str | None = None


class HookEventCount(Wire, kw_only=True, frozen=True):
    """One hook event that has hooks, and how many."""

    name: str
    summary: str
    supportsMatcher: bool
    hookCount: int


class HookEditable(Wire, kw_only=True, frozen=True):
    """A configured hook as it stands in its settings file.

    ``matcher`` is empty when there is none. With ``headersRedacted`` true the values of HTTP headers in ``config``
    are blanked.
    """

    matcher: str
    config: dict[str, Any]
    headersRedacted: bool | None = None


class HookListing(Wire, kw_only=True, frozen=True):
    """One configured hook, worded for display.

    The texts have their control characters made visible, so do not run them; :attr:`editable` has the stored form, on
    hooks whose file may be written. ``timeout`` is in seconds. ``disabled`` is true or absent.
    """

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
    """One hook event that the CLI knows, whether or not it has hooks."""

    name: str
    summary: str
    supportsMatcher: bool


class HookPolicy(Wire, kw_only=True, frozen=True):
    """How managed settings restrict hooks.

    ``policyUnreadable`` is true when managed settings exist but could not be read, and absent otherwise.
    """

    disabledByPolicy: bool
    managedOnly: bool
    pluginOnly: bool
    allDisabled: bool
    policyHookCount: int
    policyUnreadable: bool | None = None


class HookSafeMode(Wire, kw_only=True, frozen=True):
    """That the session runs in safe mode, and how to leave it."""

    managedHooksStillApply: bool
    exitHint: str


class HookBareMode(Wire, kw_only=True, frozen=True):
    """That the session runs in bare mode, and how to leave it."""

    exitHint: str


class GetHooksListingResponse(Wire, kw_only=True, frozen=True):
    """All configured hooks of the session, as the ``/hooks`` menu shows them.

    ``events`` has only those with hooks, ``eventCatalog`` all that the CLI knows. ``safeMode`` and ``bareMode`` are
    absent unless the session runs in that mode.
    """

    events: list[HookEventCount] | None = None
    hooks: list[HookListing] | None = None
    eventCatalog: list[HookEventInfo] | None = None
    policy: HookPolicy | None = None
    safeMode: HookSafeMode | None = None
    bareMode: HookBareMode | None = None
    errors: list[SettingsParseError] | None = None


class ListPermissionRulesResponse(Wire, kw_only=True, frozen=True):
    """The permission rules of the session, under ``state``."""

    state: PermissionRulesState | None = None


class McpReadResourceResponse(Wire, kw_only=True, frozen=True):
    """What an MCP server returned for a resource; untrusted, often HTML."""

    contents: list[McpResourceContent]
