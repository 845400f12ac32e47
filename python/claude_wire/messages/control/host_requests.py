"""Control requests that a host sends to the CLI. The class of each answer comes before its request.

Each is answered by one :class:`ControlResponse`. A payload has no tag: only the request says which class the payload
has. A request of ``dict[str, Any]`` is answered with an empty payload, or with one that has no class here. Agents other
than the CLI may answer any request with an empty payload: lists are then empty, and all other fields None.

The CLI mixes cases, so field names do, too: ``request_id`` here, ``serverName`` there.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Number, Wire, null
from claude_wire.messages.control.catalog import (
    AccountInfo,
    AgentDefinition,
    AgentInfo,
    LoadedPlugin,
    ModelInfo,
    PluginCacheImpact,
    SdkPluginConfig,
    SettingsParseError,
    SlashCommand,
)
from claude_wire.messages.control.mcp import (
    McpInputFile,
    McpOutputFile,
    McpResourceContent,
    McpServerConfig,
    McpServerStatus,
    SdkMcpServerConfig,
    SdkMcpServerManifest,
)
from claude_wire.messages.control.permissions import PermissionRulesState
from claude_wire.messages.control.request_body import ControlRequestBody
from claude_wire.messages.unknown import OrUnknownObject


class HookCallbackMatcher(Wire, kw_only=True, frozen=True):
    """Selects the hook events for which the CLI calls the host.

    ``matcher`` is a pattern for the tool's name, or for another field of the event; absent or null matches all.
    ``hookCallbackIds`` are ids of the host's choice, which come back as ``callback_id``. ``timeout`` is in seconds;
    ``onFailure`` ``block`` makes a failed callback block the action instead of letting it pass.
    """

    matcher: str | None = None
    hookCallbackIds: list[str]
    timeout: Number | None = None
    # one of block, continue
    onFailure: str | None = None


class InitializeResponse(Wire, kw_only=True, frozen=True):
    """The commands, agents and models of the session, and which parts of the ``initialize`` request took effect.

    Each ``..._applied`` flag is absent when the request had no such part and when the CLI is too old to say. Any list
    may be missing. Requests that wait for an answer are not here, but in :class:`ControlSuccess`.
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


class InitializeRequest(ControlRequestBody[InitializeResponse], tag="initialize", kw_only=True, frozen=True):
    """Opens the session: registers hooks, MCP servers and agents, and asks what the CLI offers.

    Send it first and once, before any prompt; a repeated one is answered again, with part of it ignored. ``hooks``
    maps event names to matchers, and may be null or absent when there are none; ``sdkMcpServers`` names the servers
    that the host runs. ``plugins`` and ``mcpServers`` are ignored unless the CLI was launched with ``--await-
    initialize``. ``systemPrompt`` is a list of strings, and of older hosts one string. Members are camelCase.
    """

    hooks: dict[str, list[HookCallbackMatcher]] | None = None
    sdkMcpServers: list[str] | None = None
    sdkMcpServerConfigs: dict[str, SdkMcpServerConfig] | None = None
    sdkMcpServerManifests: dict[str, SdkMcpServerManifest] | None = None
    sdkMcpServerManifestsOrigin: str | None = None
    jsonSchema: dict[str, Any] | None = None
    systemPrompt: list[str] | str | None = None
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
    plugins: list[SdkPluginConfig | OrUnknownObject] | None = None
    mcpServers: dict[str, McpServerConfig] | None = None


class InterruptResponse(Wire, kw_only=True, frozen=True):
    """The queued messages that remain after an interrupt, and those that it cancelled.

    ``still_queued`` lists the uuids of messages that will still run; messages sent without a uuid are never listed.
    ``cancelled`` comes when the request set ``cancel_queued``. Older CLIs answer with an empty object.
    """

    still_queued: list[str] | None = None
    cancelled: list[str] | None = None


class InterruptRequest(ControlRequestBody[InterruptResponse], tag="interrupt", kw_only=True, frozen=True):
    """Stops the running turn, which then ends with a result.

    Open permission questions are withdrawn first. Queued messages stay and run afterwards, unless ``cancel_queued``
    is true. Harmless when no turn is running.
    """

    cancel_queued: bool | None = None


class SetPermissionModeResponse(Wire, kw_only=True, frozen=True):
    """The current permission mode.

    Older CLIs answer with an empty payload.
    """

    mode: str | None = None


class SetPermissionModeRequest(
    ControlRequestBody[SetPermissionModeResponse], tag="set_permission_mode", kw_only=True, frozen=True
):
    """Changes how permission questions are decided from now on.

    An unknown mode is refused with ``error_code`` ``invalid_mode``, and ``bypassPermissions`` with
    ``bypass_not_launched`` unless the CLI was launched with ``--dangerously-skip-permissions``.
    """

    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    mode: str


class SetModelResponse(Wire, kw_only=True, frozen=True):
    """The current model. After a reset, this is the actual default model.

    It does not prove that the model exists: an unknown name is also accepted, and fails at the next request.
    Older CLIs answer with an empty payload.
    """

    model: str | None = None


class SetModelRequest(ControlRequestBody[SetModelResponse], tag="set_model", kw_only=True, frozen=True):
    """Changes the model for the next turns.

    Absent, null and ``default`` all reset it to the session's default. The CLI also accepts a name that no API knows.
    """

    model: str | UnsetType | None = UNSET


class SetMaxThinkingTokensRequest(
    ControlRequestBody[dict[str, Any]], tag="set_max_thinking_tokens", kw_only=True, frozen=True
):
    """Changes the thinking budget, how thinking is shown, or both.

    Absent and null differ in both members: an absent ``max_thinking_tokens`` leaves the budget (in tokens) as it is,
    null resets it to the session's default. An absent ``thinking_display`` leaves the display as it is; null drops an
    earlier choice.
    """

    max_thinking_tokens: int | UnsetType | None = UNSET
    # one of summarized, omitted, highlights
    thinking_display: str | UnsetType | None = UNSET


class RenameSessionRequest(ControlRequestBody[dict[str, Any]], tag="rename_session", kw_only=True, frozen=True):
    """Gives the session a title.

    Followed by a ``session_title_changed`` message. ``source`` ``host`` counts as a renaming by the user; with
    ``session_id`` the request is refused if the process has moved on to another session.
    """

    title: str
    # one of remote, host
    source: str | None = None
    session_id: str | None = None


class SetColorRequest(ControlRequestBody[dict[str, Any]], tag="set_color", kw_only=True, frozen=True):
    """Changes the accent colour of the session; ``default`` resets it.

    The CLI 2.1.331 on stdin refuses it with ``unsupported_request``.
    """

    color: str


class McpStatusResponse(Wire, kw_only=True, frozen=True):
    """All MCP servers of the session and the states of their connections.

    ``mcpServers`` is camelCase, as are its rows.
    """

    mcpServers: list[McpServerStatus]


class McpStatusRequest(ControlRequestBody[McpStatusResponse], tag="mcp_status", kw_only=True, frozen=True):
    """Asks for the MCP servers of the session and the states of their connections.

    ``liveReply`` matters on remote sessions only.
    """

    liveReply: bool | None = None


class GetSessionCostResponse(Wire, kw_only=True, frozen=True):
    """A summary of cost, durations and tokens as text of several lines.

    Meant for display; :class:`GetUsageResponse` has the same as numbers.
    """

    text: str | None = None


class GetSessionCostRequest(ControlRequestBody[GetSessionCostResponse], tag="get_session_cost", frozen=True):
    """Asks for the cost of the session as text for display."""


class ListModelsResponse(Wire, kw_only=True, frozen=True):
    """The models that the session can be switched to."""

    models: list[ModelInfo] | None = None


class ListModelsRequest(ControlRequestBody[ListModelsResponse], tag="list_models", frozen=True):
    """Asks for the models that the session can be switched to."""


class GetBinaryVersionResponse(Wire, kw_only=True, frozen=True):
    """The version of the CLI and when it was built.

    ``buildTime`` is an ISO 8601 string. Members are camelCase.
    """

    version: str | None = None
    buildTime: str | None = None
    oldestDesktopSdk: str | None = None


class GetBinaryVersionRequest(ControlRequestBody[GetBinaryVersionResponse], tag="get_binary_version", frozen=True):
    """Asks for the version of the CLI."""


class McpCallRequest(ControlRequestBody[dict[str, Any]], tag="mcp_call", kw_only=True, frozen=True):
    """Calls a tool of an MCP server directly, without the model.

    ``tool`` is the full name, such as ``mcp__server__tool``; servers that the host runs are refused. No permission is
    asked unless ``check_permissions`` is true. ``timeout_ms`` is in milliseconds, 1000 to 600000, and ``expires_at``
    is an RFC 3339 time; either of them, or files, adds ``staging`` to the answer, which then reports failures inside
    a success. With ``soft_error_result`` an error of the tool itself is a success, too: its ``isError`` is true, and
    ``content`` says what went wrong.
    """

    tool: str
    arguments: dict[str, Any] | None = None
    expires_at: str | None = None
    timeout_ms: Number | None = None
    result_not_for_model: bool | None = None
    check_permissions: bool | None = None
    input_files: list[McpInputFile] | None = None
    output_files: list[McpOutputFile] | None = None
    soft_error_result: bool | None = None


class FileSuggestionsResponse(Wire, kw_only=True, frozen=True):
    """The files and directories that match a partial path, as the prompt's ``@`` shows them.

    The form of an item is not known.
    """

    suggestions: list[Any]
    cwd: str | None = None


class FileSuggestionsRequest(
    ControlRequestBody[FileSuggestionsResponse], tag="file_suggestions", kw_only=True, frozen=True
):
    """Asks for files whose paths match what the user has typed so far."""

    query: str


class RewindFilesResponse(Wire, kw_only=True, frozen=True):
    """The files that a rewind changed, or would change in a dry run.

    A rewind that is not possible is also a success, with ``canRewind`` false and ``error``. If checkpoints are
    switched off, the request itself fails. None for ``canRewind`` means that the agent has only acknowledged the
    request. ``skippedLinks`` counts the files that were not changed because they are links; a dry run does not count
    them. Keys are camelCase.
    """

    canRewind: bool | None = None
    error: str | None = None
    filesChanged: list[str] | None = None
    insertions: int | None = None
    deletions: int | None = None
    skippedLinks: int | None = None


class RewindFilesRequest(ControlRequestBody[RewindFilesResponse], tag="rewind_files", kw_only=True, frozen=True):
    """Restores files to their state at a given user message.

    The conversation is not rewound. Refused unless the CLI keeps file checkpoints. With ``dry_run`` nothing is
    written; see :class:`RewindFilesResponse`.
    """

    user_message_id: str
    dry_run: bool | None = None


class CancelAsyncMessageResponse(Wire, kw_only=True, frozen=True):
    """Whether a queued message was cancelled.

    False if it was not in the queue. It may already be running then.
    """

    cancelled: bool | None = None
    message_uuid: str | None = None


class CancelAsyncMessageRequest(
    ControlRequestBody[CancelAsyncMessageResponse], tag="cancel_async_message", kw_only=True, frozen=True
):
    """Cancels a queued user message before its turn.

    Works only for messages sent with a ``uuid`` and not yet taken from the queue.
    """

    message_uuid: str


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


class ReadFileRequest(ControlRequestBody[ReadFileResponse], tag="read_file", kw_only=True, frozen=True):
    """Reads a file as the CLI sees it.

    A relative path starts at the working directory, and the session's read permissions apply: a file outside of them
    is refused with ``read denied``. ``max_bytes`` is in bytes; use ``base64`` for anything but text.
    """

    path: str
    max_bytes: int | None = None
    # one of utf-8, base64
    encoding: str | None = None


class SeedReadStateRequest(ControlRequestBody[dict[str, Any]], tag="seed_read_state", kw_only=True, frozen=True):
    """Tells the CLI that a file counts as already read, so that it may be edited.

    Use it when the file's content is no longer in the context. ``mtime`` lets the CLI notice that the file has changed
    since.
    """

    path: str
    mtime: Number


class McpSetServersResponse(Wire, kw_only=True, frozen=True):
    """Which MCP servers were added and removed, and which failed.

    ``errors`` maps a server's name to the reason why it could not be connected.
    """

    added: list[str]
    removed: list[str]
    errors: dict[str, str]


class McpSetServersRequest(ControlRequestBody[McpSetServersResponse], tag="mcp_set_servers", kw_only=True, frozen=True):
    """Replaces the MCP servers of earlier such requests.

    Servers that the host runs are also replaced. Servers from settings files and plugins stay, so an empty map does
    not always leave none.
    """

    servers: dict[str, McpServerConfig]


class RegisterRepoRootRequest(ControlRequestBody[dict[str, Any]], tag="register_repo_root", kw_only=True, frozen=True):
    """Adds a directory to those that the session works in.

    The directory must be below the working directory or below one given with ``--add-dir``. A known directory is
    refused. The ``reload_...`` flags make the CLI look there for instructions, plugins and skills.
    """

    directory: str
    reload_claude_md: bool | None = None
    reload_plugins: bool | None = None
    reload_skills: bool | None = None


class ReloadPluginsResponse(Wire, kw_only=True, frozen=True):
    """The commands, agents, plugins and MCP servers after a reload of plugins.

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


class ReloadPluginsRequest(ControlRequestBody[ReloadPluginsResponse], tag="reload_plugins", kw_only=True, frozen=True):
    """Loads the plugins from disk again.

    With ``hold_on_cache_impact``, the CLI does not reload if that would make the prompt cache useless. With
    ``refuse_if_busy`` the request fails with ``reload_plugins_busy`` during a turn. ``add_plugins`` need absolute
    paths.
    """

    hold_on_cache_impact: bool | None = None
    add_plugins: list[SdkPluginConfig | OrUnknownObject] | None = None
    refuse_if_busy: bool | None = None


class ReloadSkillsResponse(Wire, kw_only=True, frozen=True):
    """The skills of the session after a reload."""

    skills: list[SlashCommand]


class ReloadSkillsRequest(ControlRequestBody[ReloadSkillsResponse], tag="reload_skills", frozen=True):
    """Loads the skills from disk again."""


class ReloadOutputStylesResponse(Wire, kw_only=True, frozen=True):
    """The names of the output styles after a reload."""

    available_output_styles: list[str]


class ReloadOutputStylesRequest(
    ControlRequestBody[ReloadOutputStylesResponse], tag="reload_output_styles", frozen=True
):
    """Loads the output styles from disk again."""


class McpReconnectRequest(ControlRequestBody[dict[str, Any]], tag="mcp_reconnect", kw_only=True, frozen=True):
    """Connects a failed or disconnected MCP server again.

    An unknown server is an error. Note the camelCase ``serverName``.
    """

    serverName: str


class McpToggleRequest(ControlRequestBody[dict[str, Any]], tag="mcp_toggle", kw_only=True, frozen=True):
    """Switches an MCP server on or off.

    An unknown server is an error. Note the camelCase ``serverName``.
    """

    serverName: str
    enabled: bool


class SetHasSubscribersRequest(
    ControlRequestBody[dict[str, Any]], tag="set_has_subscribers", kw_only=True, frozen=True
):
    """Tells the CLI whether someone is watching the output.

    Null means that the host does not know, and counts as true. It matters only when the CLI was started with the
    environment variables that make it hold stream events back.
    """

    has_subscribers: bool | None = null()


class StopTaskRequest(ControlRequestBody[dict[str, Any]], tag="stop_task", kw_only=True, frozen=True):
    """Stops a background task.

    An unknown task id is also acknowledged. The end of a task comes as a task message.
    """

    task_id: str


class BackgroundTasksResponse(Wire, kw_only=True, frozen=True):
    """Whether any task was sent to the background.

    An absent ``backgrounded`` means true.
    """

    backgrounded: bool | None = None


class BackgroundTasksRequest(
    ControlRequestBody[BackgroundTasksResponse], tag="background_tasks", kw_only=True, frozen=True
):
    """Sends running foreground tasks to the background, so that the turn goes on.

    Without ``tool_use_id`` it sends all of them, like Ctrl+B. Each tool returns at once, and its task reports later
    with a task message.
    """

    tool_use_id: str | None = None


class GetTaskOutputResponse(Wire, kw_only=True, frozen=True):
    """The last 8 KiB of a background task's output.

    ``total_bytes`` is the size of the whole output in bytes; ``truncated`` is true when ``output`` is only the end of
    it. The text may hold terminal escapes.
    """

    output: str | None = None
    total_bytes: int | None = None
    truncated: bool | None = None


class GetTaskOutputRequest(ControlRequestBody[GetTaskOutputResponse], tag="get_task_output", kw_only=True, frozen=True):
    """Asks for the end of the output of a background shell or monitor task.

    An unknown task is an error. It may be repeated while the task runs, and once more after its end.
    """

    task_id: str


class ApplyFlagSettingsRequest(
    ControlRequestBody[dict[str, Any]], tag="apply_flag_settings", kw_only=True, frozen=True
):
    """Changes settings for this session only, ahead of the settings files of user and project.

    Managed settings still win. Each top-level key replaces its former value, and null clears it. If one value makes
    the settings invalid, the whole request fails and nothing of it applies.
    """

    settings: dict[str, Any]


class GetSettingsResponse(Wire, kw_only=True, frozen=True):
    """The settings that apply, and those of each source.

    ``effective`` is the merged result; ``applied`` has what the session uses, such as model and effort. Files in
    ``errors`` were skipped.
    """

    effective: dict[str, Any] | None = None
    sources: Any = None
    applied: dict[str, Any] | None = None
    errors: list[SettingsParseError] | None = None
    served_settings_state: str | None = None


class GetSettingsRequest(ControlRequestBody[GetSettingsResponse], tag="get_settings", frozen=True):
    """Asks for the settings that apply, and those of each source."""


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
    """The session runs in safe mode. The fields say how to leave it."""

    managedHooksStillApply: bool
    exitHint: str


class HookBareMode(Wire, kw_only=True, frozen=True):
    """The session runs in bare mode. The fields say how to leave it."""

    exitHint: str


class HookEventCount(Wire, kw_only=True, frozen=True):
    """One hook event that has hooks, and how many."""

    name: str
    summary: str
    supportsMatcher: bool
    hookCount: int


class HookEditable(Wire, kw_only=True, frozen=True):
    """A configured hook as written in its settings file.

    ``matcher`` is empty if the hook has none. With ``headersRedacted`` true the values of HTTP headers in ``config``
    are blanked.
    """

    matcher: str
    config: dict[str, Any]
    headersRedacted: bool | None = None


class HookListing(Wire, kw_only=True, frozen=True):
    """A configured hook, as text for display.

    The texts have their control characters made visible, so do not run them. :attr:`editable` has the stored form, for
    hooks in a writable file. ``timeout`` is in seconds. ``disabled`` is true or absent.
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


class GetHooksListingResponse(Wire, kw_only=True, frozen=True):
    """All configured hooks of the session, as the ``/hooks`` menu shows them.

    ``events`` has only the events with hooks, ``eventCatalog`` all events of the CLI. ``safeMode`` and ``bareMode`` are
    absent unless the session runs in that mode.
    """

    events: list[HookEventCount] | None = None
    hooks: list[HookListing] | None = None
    eventCatalog: list[HookEventInfo] | None = None
    policy: HookPolicy | None = None
    safeMode: HookSafeMode | None = None
    bareMode: HookBareMode | None = None
    errors: list[SettingsParseError] | None = None


class GetHooksListingRequest(ControlRequestBody[GetHooksListingResponse], tag="get_hooks_listing", frozen=True):
    """Asks for all configured hooks, as the ``/hooks`` menu shows them."""


class UpdateSettingsRequest(ControlRequestBody[dict[str, Any]], tag="update_settings", kw_only=True, frozen=True):
    """Writes settings to a file.

    Only few keys are allowed: ``outputStyle`` for ``localSettings``, ``effortLevel`` for ``userSettings``, with
    string values. A key cannot be deleted, and remote sessions refuse the request.
    """

    # one of localSettings, userSettings
    source: str
    settings: dict[str, Any]


class ListPermissionRulesResponse(Wire, kw_only=True, frozen=True):
    """The permission rules of the session, under ``state``."""

    state: PermissionRulesState | None = None


class ListPermissionRulesRequest(
    ControlRequestBody[ListPermissionRulesResponse], tag="list_permission_rules", frozen=True
):
    """Asks for all permission rules and additional directories of the session."""


class McpReadResourceResponse(Wire, kw_only=True, frozen=True):
    """The content that an MCP server returned for a resource. It is untrusted, and often HTML."""

    contents: list[McpResourceContent]


class McpReadResourceRequest(
    ControlRequestBody[McpReadResourceResponse], tag="mcp_read_resource", kw_only=True, frozen=True
):
    """Reads a ``ui://`` resource from an MCP server, for a host that shows it.

    Other schemes are refused, as are servers that the host runs itself. ``serverName`` is the configured name.
    """

    serverName: str
    uri: str
