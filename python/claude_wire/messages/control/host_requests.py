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
    """Selects the hook events for which the CLI calls the host."""

    matcher: str | None = None
    """A pattern for the tool's name, or for another field of the event. None matches all."""
    hookCallbackIds: list[str]
    """Ids of the host's choice, which come back as ``callback_id``."""
    timeout: Number | None = None
    """Seconds that the host may take to answer."""
    # one of block, continue
    onFailure: str | None = None
    """The effect of a failed callback: ``block`` refuses the action; ``continue``, the default, lets it pass."""


class InitializeResponse(Wire, kw_only=True, frozen=True):
    """The commands, agents and models of the session, and which parts of the ``initialize`` request took effect.

    Each ``..._applied`` flag is absent when the request had no such part and when the CLI is too old to say. Any list
    may be missing. Requests that wait for an answer are not here, but in :class:`ControlSuccess`.
    """

    commands: list[SlashCommand] | None = None
    """The commands and skills that a prompt can call."""
    agents: list[AgentInfo] | None = None
    """The types of subagents."""
    output_style: str | None = None
    """The name of the output style."""
    available_output_styles: list[str] | None = None
    """The names of all output styles."""
    models: list[ModelInfo] | None = None
    """The models that the session can be switched to."""
    account: AccountInfo | None = None
    """The account that the CLI is logged in to, and the API that it uses."""
    hooks_applied: bool | None = None
    """True if the hooks of the request were registered."""
    hook_on_failure_supported: bool | None = None
    """True if the CLI heeds ``onFailure`` of a :class:`HookCallbackMatcher`."""
    plugins_applied: bool | None = None
    """True if all ``plugins`` of the request are loaded."""
    mcp_servers_applied: bool | None = None
    """True if the CLI took ``mcpServers`` of the request at its launch; each may still fail to connect."""
    sdk_mcp_manifests_parked: dict[str, str] | None = None
    """The outcome of each manifest, by server, such as ``parked``, ``malformed`` or ``not_honoured``."""
    claude_code_version: str | None = None
    """The version of the CLI."""
    # one of off, cooldown, on
    fast_mode_state: str | None = None
    """Whether fast mode is on; ``cooldown`` if a rate limit paused it."""
    # one of unknown, free, preference, extra_usage_disabled, network_error, not_first_party, disabled_by_env,
    # model_not_allowed, sdk_opt_in_required, pending
    fast_mode_disabled_reason: str | None = None
    """Why fast mode is off."""
    user_output_styles_dir: str | None = None
    """The folder of the user's own output styles."""
    current_permission_mode: str | None = None
    session_state: str | None = None
    """The state of the session, such as ``idle``; as in :class:`SessionStateChangedMessage`."""
    capabilities: list[str] | None = None
    """The protocol features that this CLI supports, such as ``interrupt_receipt_v1``. Ignore unknown ones."""
    pid: int | None = None
    """The process id of the CLI."""
    hooks_when_unanswered_kept: int | None = None
    """Observed: always 0."""
    feedback_mode: dict[str, Any] | None = None
    """Whether users may send feedback. Observed: ``kind`` is ``disabled``."""
    other_hook_ask_outranks_host: bool | None = None
    """Observed: always true."""
    analytics_disabled: bool | None = None
    """True if the CLI sends no analytics."""
    sandbox_enabled: bool | str | None = None
    """Whether shell commands run in a sandbox; the string ``unknown`` if the CLI cannot tell."""
    remote_control_available: bool | None = None
    """Whether the session can be controlled remotely."""
    remote_control_auto_enable: bool | None = None
    """Observed: always false."""
    remote_control_auto_connect_default: bool | None = None
    """Observed: always false."""
    remote_control_auto_on_by_default: bool | None = None
    """Observed: always false."""
    ide_rc_auto_enable_gate: bool | None = None
    """Observed: always false."""


class InitializeRequest(ControlRequestBody[InitializeResponse], tag="initialize", kw_only=True, frozen=True):
    """Opens the session: registers hooks, MCP servers and agents, and asks what the CLI offers.

    Send it first and once, before any prompt; a repeated one is answered again, with part of it ignored. Members are
    camelCase.
    """

    hooks: dict[str, list[HookCallbackMatcher]] | None = None
    """The hooks of the host, by event such as ``PreToolUse``. None if there are none."""
    sdkMcpServers: list[str] | None = None
    """The names of the MCP servers that the host runs."""
    sdkMcpServerConfigs: dict[str, SdkMcpServerConfig] | None = None
    """Settings of the MCP servers in ``sdkMcpServers``, by name."""
    sdkMcpServerManifests: dict[str, SdkMcpServerManifest] | None = None
    """Handshake results of the MCP servers in ``sdkMcpServers``, by name, to save round trips."""
    sdkMcpServerManifestsOrigin: str | None = None
    """``host_per_send`` if the manifests were made for this request; for remote sessions."""
    jsonSchema: dict[str, Any] | None = None
    """The JSON schema that the answer must meet; see ``structured_output`` of the result."""
    systemPrompt: list[str] | str | None = None
    """The system prompt, in place of the CLI's own. Older hosts send one string."""
    appendSystemPrompt: str | None = None
    """Text to add to the system prompt."""
    systemPromptSnapshot: bool | None = None
    """False makes the system prompt anew for each request; otherwise the CLI keeps the first one."""
    planModeInstructions: str | None = None
    """The steps of plan mode, in place of the CLI's own."""
    toolAliases: dict[str, str] | None = None
    """Other names of tools: the model's name -> the tool that runs."""
    excludeDynamicSections: bool | None = None
    """True moves what differs by user from the system prompt to the first message, for the cache."""
    agents: dict[str, AgentDefinition] | None = None
    """Subagents to add, by name."""
    title: str | None = None
    """The title of the session. It turns off the automatic title."""
    skills: list[str] | None = None
    """The names of the skills to load into the main conversation. None for all."""
    promptSuggestions: bool | None = None
    """True asks for :class:`PromptSuggestionMessage` after each turn."""
    agentProgressSummaries: bool | None = None
    """True asks for ``summary`` in :class:`TaskProgressMessage`: what a running subagent does, about every 30 s."""
    forwardSubagentText: bool | None = None
    """True also sends the texts and thinking of subagents, not only their tool calls and results."""
    supportedDialogKinds: list[str] | None = None
    """The kinds of dialogs that the host can show. The CLI requests no others."""
    perTaskStopAffordance: bool | None = None
    """True if users can stop single tasks: an interrupt then does not stop background tasks."""
    plugins: list[SdkPluginConfig | OrUnknownObject] | None = None
    """Plugins to load, with ``--await-initialize`` only."""
    mcpServers: dict[str, McpServerConfig] | None = None
    """MCP servers for the CLI to run or to connect to, by name, with ``--await-initialize`` only."""


class InterruptResponse(Wire, kw_only=True, frozen=True):
    """The queued messages that remain after an interrupt, and those that it cancelled.

    Older CLIs answer with an empty object.
    """

    still_queued: list[str] | None = None
    """The uuids of messages that will still run. Messages sent without a uuid are never listed."""
    cancelled: list[str] | None = None
    """The uuids of messages that were cancelled; with ``cancel_queued`` only."""


class InterruptRequest(ControlRequestBody[InterruptResponse], tag="interrupt", kw_only=True, frozen=True):
    """Stops the running turn, which then ends with a result.

    Open permission questions are withdrawn first. Harmless when no turn is running.
    """

    cancel_queued: bool | None = None
    """True also cancels queued messages; otherwise they run afterwards."""


class SetPermissionModeResponse(Wire, kw_only=True, frozen=True):
    """The current permission mode.

    Older CLIs answer with an empty payload.
    """

    mode: str | None = None
    """The permission mode, which may differ from the one that was asked for."""


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
    """The current model.

    It does not prove that the model exists: an unknown name is also accepted, and fails at the next request.
    Older CLIs answer with an empty payload.
    """

    model: str | None = None
    """The model; after a reset, the actual default model."""


class SetModelRequest(ControlRequestBody[SetModelResponse], tag="set_model", kw_only=True, frozen=True):
    """Changes the model for the next turns."""

    model: str | UnsetType | None = UNSET
    """The model, or an alias. UNSET, null and ``default`` reset it. A name that no API knows is accepted, too."""


class SetMaxThinkingTokensRequest(
    ControlRequestBody[dict[str, Any]], tag="set_max_thinking_tokens", kw_only=True, frozen=True
):
    """Changes the thinking budget, how thinking is shown, or both. UNSET and null differ in both members."""

    max_thinking_tokens: int | UnsetType | None = UNSET
    """The budget in tokens. UNSET leaves it; null resets it to the session's default."""
    # one of summarized, omitted, highlights
    thinking_display: str | UnsetType | None = UNSET
    """How thinking is shown. UNSET leaves it; null drops an earlier choice."""


class RenameSessionRequest(ControlRequestBody[dict[str, Any]], tag="rename_session", kw_only=True, frozen=True):
    """Gives the session a title. Followed by a ``session_title_changed`` message."""

    title: str
    """The new title."""
    # one of remote, host
    source: str | None = None
    """Who chose the title. ``host`` counts as a renaming by the user; ``remote`` is the default."""
    session_id: str | None = None
    """The session to rename. The request is refused if the process has moved on to another one."""


class SetColorRequest(ControlRequestBody[dict[str, Any]], tag="set_color", kw_only=True, frozen=True):
    """Changes the accent colour of the session.

    The CLI 2.1.331 on stdin refuses it with ``unsupported_request``.
    """

    color: str
    """The name of the colour; ``default`` resets it."""


class McpStatusResponse(Wire, kw_only=True, frozen=True):
    """All MCP servers of the session and the states of their connections."""

    mcpServers: list[McpServerStatus]


class McpStatusRequest(ControlRequestBody[McpStatusResponse], tag="mcp_status", kw_only=True, frozen=True):
    """Asks for the MCP servers of the session and the states of their connections."""

    liveReply: bool | None = None
    """True has the answer sent to connected clients only. Matters on remote sessions only."""


class GetSessionCostResponse(Wire, kw_only=True, frozen=True):
    """A summary of cost, durations and tokens. :class:`GetUsageResponse` has the same as numbers."""

    text: str | None = None
    """The summary, several lines for display."""


class GetSessionCostRequest(ControlRequestBody[GetSessionCostResponse], tag="get_session_cost", frozen=True):
    """Asks for the cost of the session as text for display."""


class ListModelsResponse(Wire, kw_only=True, frozen=True):
    """The models that the session can be switched to."""

    models: list[ModelInfo] | None = None


class ListModelsRequest(ControlRequestBody[ListModelsResponse], tag="list_models", frozen=True):
    """Asks for the models that the session can be switched to."""


class GetBinaryVersionResponse(Wire, kw_only=True, frozen=True):
    """The version of the CLI and when it was built. Members are camelCase."""

    version: str | None = None
    """The version of the CLI."""
    buildTime: str | None = None
    """When the CLI was built, in ISO 8601."""
    oldestDesktopSdk: str | None = None
    """A version such as ``0.3.280``; by its name, that of the oldest SDK that works with the CLI."""


class GetBinaryVersionRequest(ControlRequestBody[GetBinaryVersionResponse], tag="get_binary_version", frozen=True):
    """Asks for the version of the CLI."""


class McpCallRequest(ControlRequestBody[dict[str, Any]], tag="mcp_call", kw_only=True, frozen=True):
    """Calls a tool of an MCP server directly, without the model.

    Servers that the host runs are refused. ``timeout_ms``, ``expires_at`` or files add ``staging`` to the answer, which
    then reports failures inside a success.
    """

    tool: str
    """The full name of the tool, such as ``mcp__server__tool``."""
    arguments: dict[str, Any] | None = None
    """The arguments. ``{{in:NAME}}`` and ``{{out:NAME}}`` stand for the paths of staged files."""
    expires_at: str | None = None
    """The latest time to make the call, in RFC 3339. Required with ``output_files``."""
    timeout_ms: Number | None = None
    """Milliseconds that the tool may run, 1000 to 600000; 120000 by default."""
    result_not_for_model: bool | None = None
    """True returns the content as the server sent it, and not as a model would read it."""
    check_permissions: bool | None = None
    """True decides the call as one of the model, by rules, mode and hooks. Otherwise nothing is asked."""
    input_files: list[McpInputFile] | None = None
    """Files to stage before the tool runs."""
    output_files: list[McpOutputFile] | None = None
    """Files to collect after the tool has run."""
    soft_error_result: bool | None = None
    """True answers an error of the tool with a success: ``isError`` is true, ``content`` says what failed."""


class FileSuggestionsResponse(Wire, kw_only=True, frozen=True):
    """The files and directories that match a partial path, as the prompt's ``@`` shows them."""

    suggestions: list[Any]
    """The matches; the form of an item is not known."""
    cwd: str | None = None
    """The working directory."""


class FileSuggestionsRequest(
    ControlRequestBody[FileSuggestionsResponse], tag="file_suggestions", kw_only=True, frozen=True
):
    """Asks for files whose paths match what the user has typed so far."""

    query: str
    """The partial path."""


class RewindFilesResponse(Wire, kw_only=True, frozen=True):
    """The files that a rewind changed, or would change in a dry run.

    A rewind that is not possible is also a success. If checkpoints are switched off, the request itself fails. Keys are
    camelCase.
    """

    canRewind: bool | None = None
    """False if the rewind is not possible. None if the agent has only acknowledged the request."""
    error: str | None = None
    """Why the rewind is not possible."""
    filesChanged: list[str] | None = None
    """The paths of the files."""
    insertions: int | None = None
    """The number of lines added."""
    deletions: int | None = None
    """The number of lines removed."""
    skippedLinks: int | None = None
    """The number of files not changed because they are links. A dry run does not count them."""


class RewindFilesRequest(ControlRequestBody[RewindFilesResponse], tag="rewind_files", kw_only=True, frozen=True):
    """Restores files to their state at a given user message.

    The conversation is not rewound. Refused unless the CLI keeps file checkpoints.
    """

    user_message_id: str
    """The uuid of the user message."""
    dry_run: bool | None = None
    """True writes nothing."""


class CancelAsyncMessageResponse(Wire, kw_only=True, frozen=True):
    """Whether a queued message was cancelled."""

    cancelled: bool | None = None
    """False if the message was not in the queue. It may already be running then."""
    message_uuid: str | None = None


class CancelAsyncMessageRequest(
    ControlRequestBody[CancelAsyncMessageResponse], tag="cancel_async_message", kw_only=True, frozen=True
):
    """Cancels a queued user message before its turn.

    Works only for messages sent with a ``uuid`` and not yet taken from the queue.
    """

    message_uuid: str


class ReadFileResponse(Wire, kw_only=True, frozen=True):
    """The contents of a file that the host asked for."""

    contents: str | None = None
    """The text, or base64 if ``encoding`` says so."""
    absPath: str | None = None
    """The absolute path of the file."""
    requested_path: str | None = None
    """The path in the request."""
    truncated: bool | None = None
    """True if the file is longer than ``max_bytes``."""
    encoding: str | None = None
    """``base64``, or None for text."""
    lossy: bool | None = None
    """True if bytes that are not UTF-8 were replaced."""


class ReadFileRequest(ControlRequestBody[ReadFileResponse], tag="read_file", kw_only=True, frozen=True):
    """Reads a file as the CLI sees it.

    The session's read permissions apply: a file outside of them is refused with ``read denied``.
    """

    path: str
    """The path; a relative one starts at the working directory."""
    max_bytes: int | None = None
    """The most bytes to read."""
    # one of utf-8, base64
    encoding: str | None = None
    """How to return the bytes; ``utf-8`` is the default. Use ``base64`` for anything but text."""


class SeedReadStateRequest(ControlRequestBody[dict[str, Any]], tag="seed_read_state", kw_only=True, frozen=True):
    """Tells the CLI that a file counts as already read, so that it may be edited.

    Use it when the file's content is no longer in the context.
    """

    path: str
    mtime: Number
    """The file's mtime when it was read, in whole milliseconds since 1970-01-01 UTC. A newer file is skipped."""


class McpSetServersResponse(Wire, kw_only=True, frozen=True):
    """Which MCP servers were added and removed, and which failed."""

    added: list[str]
    """The names of the added servers."""
    removed: list[str]
    """The names of the removed servers."""
    errors: dict[str, str]
    """Why servers could not be connected, by name."""


class McpSetServersRequest(ControlRequestBody[McpSetServersResponse], tag="mcp_set_servers", kw_only=True, frozen=True):
    """Replaces the MCP servers of earlier such requests.

    Servers that the host runs are also replaced. Servers from settings files and plugins stay.
    """

    servers: dict[str, McpServerConfig]
    """The new set, by name. An empty one removes the servers of earlier requests."""


class RegisterRepoRootRequest(ControlRequestBody[dict[str, Any]], tag="register_repo_root", kw_only=True, frozen=True):
    """Adds a directory to those that the session works in.

    The directory must be below the working directory or below one given with ``--add-dir``. A known directory is
    refused.
    """

    directory: str
    """The path of the directory."""
    reload_claude_md: bool | None = None
    """True looks there for instructions, such as a ``CLAUDE.md``."""
    reload_plugins: bool | None = None
    """True looks there for plugins."""
    reload_skills: bool | None = None
    """True looks there for skills."""


class ReloadPluginsResponse(Wire, kw_only=True, frozen=True):
    """The commands, agents, plugins and MCP servers after a reload of plugins. If ``held``, nothing was reloaded."""

    commands: list[SlashCommand]
    """The commands and skills that a prompt can call."""
    agents: list[AgentInfo]
    """The types of subagents."""
    plugins: list[LoadedPlugin]
    """The plugins that are loaded."""
    mcpServers: list[McpServerStatus]
    """The MCP servers and the states of their connections."""
    error_count: int | None = None
    """The number of errors while loading."""
    held: bool | None = None
    """True if the lists are as before. None unless the request has ``hold_on_cache_impact``."""
    cache_impact: PluginCacheImpact | None = None
    """What the held reload would change; with ``held`` true only."""


class ReloadPluginsRequest(ControlRequestBody[ReloadPluginsResponse], tag="reload_plugins", kw_only=True, frozen=True):
    """Loads the plugins from disk again."""

    hold_on_cache_impact: bool | None = None
    """True skips a reload that would make the prompt cache useless."""
    add_plugins: list[SdkPluginConfig | OrUnknownObject] | None = None
    """Plugins to load as well; their paths must be absolute."""
    refuse_if_busy: bool | None = None
    """True fails with ``reload_plugins_busy`` during a turn."""


class ReloadSkillsResponse(Wire, kw_only=True, frozen=True):
    """The skills of the session after a reload."""

    skills: list[SlashCommand]


class ReloadSkillsRequest(ControlRequestBody[ReloadSkillsResponse], tag="reload_skills", frozen=True):
    """Loads the skills from disk again."""


class ReloadOutputStylesResponse(Wire, kw_only=True, frozen=True):
    """The names of the output styles after a reload."""

    available_output_styles: list[str]
    """The names of all output styles."""


class ReloadOutputStylesRequest(
    ControlRequestBody[ReloadOutputStylesResponse], tag="reload_output_styles", frozen=True
):
    """Loads the output styles from disk again."""


class McpReconnectRequest(ControlRequestBody[dict[str, Any]], tag="mcp_reconnect", kw_only=True, frozen=True):
    """Connects a failed or disconnected MCP server again. An unknown server is an error."""

    serverName: str
    """The configured name of the server."""


class McpToggleRequest(ControlRequestBody[dict[str, Any]], tag="mcp_toggle", kw_only=True, frozen=True):
    """Switches an MCP server on or off. An unknown server is an error."""

    serverName: str
    """The configured name of the server."""
    enabled: bool
    """True switches the server on, false off."""


class SetHasSubscribersRequest(
    ControlRequestBody[dict[str, Any]], tag="set_has_subscribers", kw_only=True, frozen=True
):
    """Tells the CLI whether someone is watching the output.

    It matters only when the CLI was started with the environment variables that make it hold stream events back.
    """

    has_subscribers: bool | None = null()
    """Whether someone is watching; null if the host does not know, which counts as true."""


class StopTaskRequest(ControlRequestBody[dict[str, Any]], tag="stop_task", kw_only=True, frozen=True):
    """Stops a background task.

    An unknown task id is also acknowledged. The end of a task comes as a task message.
    """

    task_id: str


class BackgroundTasksResponse(Wire, kw_only=True, frozen=True):
    """Whether any task was sent to the background."""

    backgrounded: bool | None = None
    """False if no task was sent; None means true."""


class BackgroundTasksRequest(
    ControlRequestBody[BackgroundTasksResponse], tag="background_tasks", kw_only=True, frozen=True
):
    """Sends running foreground tasks to the background, so that the turn goes on.

    Each tool returns at once, and its task reports later with a task message.
    """

    tool_use_id: str | None = None
    """The ``id`` of the tool call. None sends all tasks, like Ctrl+B."""


class GetTaskOutputResponse(Wire, kw_only=True, frozen=True):
    """The last 8 KiB of a background task's output."""

    output: str | None = None
    """The text, which may hold terminal escapes; empty if the task has written nothing."""
    total_bytes: int | None = None
    """The size of the whole output in bytes."""
    truncated: bool | None = None
    """True if ``output`` is only the end of the whole output."""


class GetTaskOutputRequest(ControlRequestBody[GetTaskOutputResponse], tag="get_task_output", kw_only=True, frozen=True):
    """Asks for the end of the output of a background shell or monitor task.

    An unknown task is an error. It may be repeated while the task runs, and once more after its end.
    """

    task_id: str


class ApplyFlagSettingsRequest(
    ControlRequestBody[dict[str, Any]], tag="apply_flag_settings", kw_only=True, frozen=True
):
    """Changes settings for this session only, ahead of the settings files of user and project.

    Managed settings still win. If one value makes the settings invalid, the whole request fails and nothing of it
    applies.
    """

    settings: dict[str, Any]
    """The settings to change. Each top-level key replaces its former value, and null clears it."""


class GetSettingsResponse(Wire, kw_only=True, frozen=True):
    """The settings that apply, and those of each source."""

    effective: dict[str, Any] | None = None
    """The merged settings."""
    sources: Any = None
    """The settings of each source."""
    applied: dict[str, Any] | None = None
    """What the session uses, such as ``model`` and ``effort``."""
    errors: list[SettingsParseError] | None = None
    """Why settings files were skipped."""
    served_settings_state: str | None = None
    """Whether a server provides settings. Observed: ``ineligible``."""


class GetSettingsRequest(ControlRequestBody[GetSettingsResponse], tag="get_settings", frozen=True):
    """Asks for the settings that apply, and those of each source."""


class HookPolicy(Wire, kw_only=True, frozen=True):
    """How managed settings restrict hooks."""

    disabledByPolicy: bool
    """True if managed settings switch off all hooks."""
    managedOnly: bool
    """True if only the hooks of managed settings run."""
    pluginOnly: bool
    """True if only plugins may bring hooks."""
    allDisabled: bool
    """True if any settings switch off all hooks."""
    policyHookCount: int
    """The number of hooks in managed settings."""
    policyUnreadable: bool | None = None
    """True if managed settings exist but could not be read; None otherwise."""


class HookSafeMode(Wire, kw_only=True, frozen=True):
    """The session runs in safe mode."""

    managedHooksStillApply: bool
    """True if the hooks of managed settings run nevertheless."""
    exitHint: str
    """How to leave the mode, for people."""


class HookBareMode(Wire, kw_only=True, frozen=True):
    """The session runs in bare mode."""

    exitHint: str
    """How to leave the mode, for people."""


class HookEventCount(Wire, kw_only=True, frozen=True):
    """One hook event that has hooks, and how many."""

    name: str
    """The event, such as ``PreToolUse``."""
    summary: str
    """A description of the event, such as ``After tool execution``."""
    supportsMatcher: bool
    """Whether hooks of this event can have a matcher."""
    hookCount: int
    """The number of hooks."""


class HookEditable(Wire, kw_only=True, frozen=True):
    """A configured hook as written in its settings file."""

    matcher: str
    """The matcher; empty if the hook has none."""
    config: dict[str, Any]
    """The hook's object in the file."""
    headersRedacted: bool | None = None
    """True if the values of HTTP headers in ``config`` are blanked."""


class HookListing(Wire, kw_only=True, frozen=True):
    """A configured hook, as text for display.

    The texts have their control characters made visible, so do not run them.
    """

    event: str
    """The event, such as ``PreToolUse``."""
    matcher: str
    """The matcher; empty if the hook has none."""
    source: str
    """Where the hook is configured, such as ``userSettings`` or ``pluginHook``."""
    sourceLabel: str
    """A description of the source."""
    pluginName: str | None = None
    """The plugin that has the hook, such as ``plug@inline``."""
    type: str
    """The type of the hook, such as ``command``, ``prompt`` or ``http``."""
    displayText: str
    """The text for a list: ``statusMessage`` if the hook has one, else ``commandText``."""
    commandText: str
    """The command, prompt or URL that runs."""
    contentLabel: str
    """What ``commandText`` is, such as ``Command``."""
    condition: str | None = None
    """The condition under which the hook runs."""
    timeout: Number | None = None
    """Seconds that the hook may run."""
    statusMessage: str | None = None
    """The text to show while the hook runs."""
    runsOnce: bool | None = None
    """True if the hook runs only once."""
    runsInBackground: bool | None = None
    """True if the CLI does not wait for the hook."""
    disabled: bool | None = None
    """True if the mode of the session or a policy keeps the hook from running; None otherwise."""
    editable: HookEditable | None = None
    """The hook as stored, if its settings file can be written."""


class HookEventInfo(Wire, kw_only=True, frozen=True):
    """One hook event that the CLI knows, whether or not it has hooks."""

    name: str
    """The event, such as ``PreToolUse``."""
    summary: str
    """A description of the event, such as ``After tool execution``."""
    supportsMatcher: bool
    """Whether hooks of this event can have a matcher."""


class GetHooksListingResponse(Wire, kw_only=True, frozen=True):
    """All configured hooks of the session, as the ``/hooks`` menu shows them."""

    events: list[HookEventCount] | None = None
    """The events that have hooks."""
    hooks: list[HookListing] | None = None
    eventCatalog: list[HookEventInfo] | None = None
    """All events that the CLI knows."""
    policy: HookPolicy | None = None
    """How managed settings restrict hooks."""
    safeMode: HookSafeMode | None = None
    """How to leave safe mode; None if the session does not run in it."""
    bareMode: HookBareMode | None = None
    """How to leave bare mode; None if the session does not run in it."""
    errors: list[SettingsParseError] | None = None
    """Why settings files were skipped, with all their hooks."""


class GetHooksListingRequest(ControlRequestBody[GetHooksListingResponse], tag="get_hooks_listing", frozen=True):
    """Asks for all configured hooks, as the ``/hooks`` menu shows them."""


class UpdateSettingsRequest(ControlRequestBody[dict[str, Any]], tag="update_settings", kw_only=True, frozen=True):
    """Writes settings to a file.

    A key cannot be deleted, and remote sessions refuse the request.
    """

    # one of localSettings, userSettings
    source: str
    """The file to write."""
    settings: dict[str, Any]
    """``outputStyle`` for ``localSettings``, ``effortLevel`` for ``userSettings``; the values are strings."""


class ListPermissionRulesResponse(Wire, kw_only=True, frozen=True):
    """The permission rules of the session."""

    state: PermissionRulesState | None = None
    """The rules and additional directories."""


class ListPermissionRulesRequest(
    ControlRequestBody[ListPermissionRulesResponse], tag="list_permission_rules", frozen=True
):
    """Asks for all permission rules and additional directories of the session."""


class McpReadResourceResponse(Wire, kw_only=True, frozen=True):
    """The content that an MCP server returned for a resource. It is untrusted, and often HTML."""

    contents: list[McpResourceContent]
    """The items of the resource."""


class McpReadResourceRequest(
    ControlRequestBody[McpReadResourceResponse], tag="mcp_read_resource", kw_only=True, frozen=True
):
    """Reads a ``ui://`` resource from an MCP server, for a host that shows it.

    Other schemes are refused, as are servers that the host runs itself.
    """

    serverName: str
    """The configured name of the server."""
    uri: str
    """The URI of the resource, such as ``ui://panel``."""
