"""Control requests of a host to the CLI. The class of each answer is defined before its request.

The CLI answers each request with one :class:`ControlResponse`. The answer to a request declared with ``dict[str, Any]``
has an empty payload, or a payload without a class. Other agents may answer any request with an empty payload: lists are
then empty, and all other fields None.

The CLI uses snake_case and camelCase, as in ``request_id`` and ``serverName``, and so do the fields.
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
    """Selects the events for which the CLI calls the host's hooks."""

    matcher: str | None = None
    """A pattern for the tool's name, or for another field of the event; None matches all."""
    hookCallbackIds: list[str]
    """Ids that the host chooses, one of which is the ``callback_id`` of a :class:`HookCallbackRequest`."""
    timeout: Number | None = None
    """Time limit for the answer, in seconds."""
    # one of block, continue
    onFailure: str | None = None
    """What a failed callback does: ``block`` refuses the action; ``continue``, the default, allows it."""


class InitializeResponse(Wire, kw_only=True, frozen=True):
    """The commands, agents and models of the session, and which parts of the ``initialize`` request took effect.

    An ``..._applied`` flag is None if the request has no such part, or if the CLI is too old. Any list may be absent.
    The CLI's requests that are waiting for an answer are in :class:`ControlSuccess`.
    """

    commands: list[SlashCommand] | None = None
    """The commands and skills for prompts."""
    agents: list[AgentInfo] | None = None
    """The types of subagents."""
    output_style: str | None = None
    """The name of the output style."""
    available_output_styles: list[str] | None = None
    """The names of all output styles."""
    models: list[ModelInfo] | None = None
    """The models that the session can switch to."""
    account: AccountInfo | None = None
    """The account that the CLI is logged in to, and the API that it uses."""
    hooks_applied: bool | None = None
    """True if the hooks of the request were registered."""
    hook_on_failure_supported: bool | None = None
    """True if the CLI supports ``onFailure`` of a :class:`HookCallbackMatcher`."""
    plugins_applied: bool | None = None
    """True if all ``plugins`` of the request are loaded."""
    mcp_servers_applied: bool | None = None
    """True if the CLI accepted the request's ``mcpServers``; each server may still fail to connect."""
    sdk_mcp_manifests_parked: dict[str, str] | None = None
    """Server -> what happened to its manifest: ``parked``, ``malformed``, ``not_honoured`` or another value."""
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
    """The state of the session, as in :class:`SessionStateChangedMessage`."""
    capabilities: list[str] | None = None
    """The protocol features that this CLI supports, such as ``interrupt_receipt_v1``; ignore unknown ones."""
    pid: int | None = None
    """The process id of the CLI."""
    hooks_when_unanswered_kept: int | None = None
    """Observed: always 0."""
    feedback_mode: dict[str, Any] | None = None
    """Whether users may send feedback; observed: ``kind`` is ``disabled``."""
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
    """Opens the session: registers hooks, MCP servers and agents, and asks for the CLI's commands and models.

    Send this request once, before any prompt. The CLI answers a second request, but ignores parts of it. Keys are
    camelCase.
    """

    hooks: dict[str, list[HookCallbackMatcher]] | None = None
    """The hooks of the host, by event such as ``PreToolUse``; None if there are none."""
    sdkMcpServers: list[str] | None = None
    """The names of the MCP servers that the host runs."""
    sdkMcpServerConfigs: dict[str, SdkMcpServerConfig] | None = None
    """Settings of the MCP servers in ``sdkMcpServers``, by name."""
    sdkMcpServerManifests: dict[str, SdkMcpServerManifest] | None = None
    """Handshake results of the MCP servers in ``sdkMcpServers``, by name, to save round trips."""
    sdkMcpServerManifestsOrigin: str | None = None
    """``host_per_send`` if the host made the manifests for this request; for remote sessions."""
    jsonSchema: dict[str, Any] | None = None
    """The JSON schema for ``structured_output`` of the result."""
    systemPrompt: list[str] | str | None = None
    """Replaces the CLI's system prompt; a string from older hosts."""
    appendSystemPrompt: str | None = None
    """Text to add to the system prompt."""
    systemPromptSnapshot: bool | None = None
    """False builds the system prompt again for each request; otherwise the CLI keeps the first one."""
    planModeInstructions: str | None = None
    """Replaces the CLI's instructions for plan mode."""
    toolAliases: dict[str, str] | None = None
    """Tool name for the model -> the tool that runs."""
    excludeDynamicSections: bool | None = None
    """True moves user-specific parts of the system prompt to the first message, for the prompt cache."""
    agents: dict[str, AgentDefinition] | None = None
    """Subagents to add, by name."""
    title: str | None = None
    """The title of the session, in place of an automatic one."""
    skills: list[str] | None = None
    """The names of the skills to load into the main conversation; None for all."""
    promptSuggestions: bool | None = None
    """True requests a :class:`PromptSuggestionMessage` after each turn."""
    agentProgressSummaries: bool | None = None
    """True requests ``summary`` in :class:`TaskProgressMessage` for running subagents, about every 30 s."""
    forwardSubagentText: bool | None = None
    """True also sends subagents' text and thinking, not only their tool calls and results."""
    supportedDialogKinds: list[str] | None = None
    """The kinds of dialogs that the host can show; the CLI requests only these."""
    perTaskStopAffordance: bool | None = None
    """True if users can stop individual tasks: an interrupt then does not stop background tasks."""
    plugins: list[SdkPluginConfig | OrUnknownObject] | None = None
    """Plugins to load, with ``--await-initialize`` only."""
    mcpServers: dict[str, McpServerConfig] | None = None
    """MCP servers for the CLI to run or to connect to, by name, with ``--await-initialize`` only."""


class InterruptResponse(Wire, kw_only=True, frozen=True):
    """The queued messages that an interrupt kept or cancelled. Older CLIs answer with an empty object."""

    still_queued: list[str] | None = None
    """The uuids of messages that will still run; messages without a uuid are not listed."""
    cancelled: list[str] | None = None
    """The uuids of messages that were cancelled; with ``cancel_queued`` only."""


class InterruptRequest(ControlRequestBody[InterruptResponse], tag="interrupt", kw_only=True, frozen=True):
    """Stops the running turn, which then ends with a result. If no turn is running, this request does nothing.

    The CLI withdraws open permission questions first.
    """

    cancel_queued: bool | None = None
    """True also cancels queued messages, which otherwise run next."""


class SetPermissionModeResponse(Wire, kw_only=True, frozen=True):
    """The current permission mode. Older CLIs answer with an empty object."""

    mode: str | None = None
    """The permission mode, which may differ from the request's."""


class SetPermissionModeRequest(
    ControlRequestBody[SetPermissionModeResponse], tag="set_permission_mode", kw_only=True, frozen=True
):
    """Changes the permission mode.

    The CLI refuses an unknown mode with ``error_code`` ``invalid_mode``. Without ``--dangerously-skip-permissions``,
    the CLI refuses ``bypassPermissions`` with ``bypass_not_launched``.
    """

    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    mode: str


class SetModelResponse(Wire, kw_only=True, frozen=True):
    """The current model, which may not exist: the CLI accepts any name. Older CLIs answer with an empty object."""

    model: str | None = None
    """The model; after a reset, the default model."""


class SetModelRequest(ControlRequestBody[SetModelResponse], tag="set_model", kw_only=True, frozen=True):
    """Changes the model for the next turns."""

    model: str | UnsetType | None = UNSET
    """The model or an alias; UNSET, null and ``default`` reset it. An unknown name fails at the next API request."""


class SetMaxThinkingTokensRequest(
    ControlRequestBody[dict[str, Any]], tag="set_max_thinking_tokens", kw_only=True, frozen=True
):
    """Changes the thinking budget, how thinking is shown, or both."""

    max_thinking_tokens: int | UnsetType | None = UNSET
    """The budget in tokens; null resets it to the session's default, UNSET keeps it."""
    # one of summarized, omitted, highlights
    thinking_display: str | UnsetType | None = UNSET
    """How thinking is shown; null drops an earlier choice, UNSET keeps it."""


class RenameSessionRequest(ControlRequestBody[dict[str, Any]], tag="rename_session", kw_only=True, frozen=True):
    """Gives the session a title. The CLI then sends a :class:`SessionTitleChangedMessage`."""

    title: str
    """The new title."""
    # one of remote, host
    source: str | None = None
    """Who chose the title: ``host`` counts as the user; ``remote`` is the default."""
    session_id: str | None = None
    """The session to rename; the CLI refuses the request if this is no longer its session."""


class SetColorRequest(ControlRequestBody[dict[str, Any]], tag="set_color", kw_only=True, frozen=True):
    """Changes the accent colour of the session. CLI 2.1.331 refuses this on stdin with ``unsupported_request``."""

    color: str
    """The name of the colour; ``default`` resets it."""


class McpStatusResponse(Wire, kw_only=True, frozen=True):
    """All MCP servers of the session and the states of their connections."""

    mcpServers: list[McpServerStatus]


class McpStatusRequest(ControlRequestBody[McpStatusResponse], tag="mcp_status", kw_only=True, frozen=True):
    """Asks for the MCP servers of the session and the states of their connections."""

    liveReply: bool | None = None
    """For remote sessions: true sends the answer only to connected clients."""


class GetSessionCostResponse(Wire, kw_only=True, frozen=True):
    """A summary of cost, durations and tokens. :class:`GetUsageResponse` has the numbers."""

    text: str | None = None
    """The summary, as lines for display."""


class GetSessionCostRequest(ControlRequestBody[GetSessionCostResponse], tag="get_session_cost", frozen=True):
    """Asks for the cost of the session as text for display."""


class ListModelsResponse(Wire, kw_only=True, frozen=True):
    """The models that the session can switch to."""

    models: list[ModelInfo] | None = None


class ListModelsRequest(ControlRequestBody[ListModelsResponse], tag="list_models", frozen=True):
    """Asks for the models that the session can be switched to."""


class GetBinaryVersionResponse(Wire, kw_only=True, frozen=True):
    """The version of the CLI and when it was built. Keys are camelCase."""

    version: str | None = None
    """The version of the CLI."""
    buildTime: str | None = None
    """When the CLI was built, in ISO 8601."""
    oldestDesktopSdk: str | None = None
    """A version such as ``0.3.280``; the name suggests the oldest SDK that works with the CLI."""


class GetBinaryVersionRequest(ControlRequestBody[GetBinaryVersionResponse], tag="get_binary_version", frozen=True):
    """Asks for the version of the CLI."""


class McpCallRequest(ControlRequestBody[dict[str, Any]], tag="mcp_call", kw_only=True, frozen=True):
    """Calls a tool of an MCP server directly, without the model. The CLI refuses servers of the host.

    With ``timeout_ms``, ``expires_at`` or files, the answer has ``staging``, and is a success even if the call failed.
    """

    tool: str
    """The full name of the tool, such as ``mcp__server__tool``."""
    arguments: dict[str, Any] | None = None
    """The arguments, with ``{{in:NAME}}`` and ``{{out:NAME}}`` for the paths of staged files."""
    expires_at: str | None = None
    """The latest time to make the call, in RFC 3339; required with ``output_files``."""
    timeout_ms: Number | None = None
    """Time limit for the tool in milliseconds, 1000 to 600000; 120000 by default."""
    result_not_for_model: bool | None = None
    """True returns the content as the server sent it, not as a model would read it."""
    check_permissions: bool | None = None
    """True checks the call like a call by the model, with rules, mode and hooks; otherwise the CLI does not ask."""
    input_files: list[McpInputFile] | None = None
    """Files to stage before the tool runs."""
    output_files: list[McpOutputFile] | None = None
    """Files to collect after the tool has run."""
    soft_error_result: bool | None = None
    """True answers with a success if the tool fails: ``isError`` is true, and ``content`` has the error."""


class FileSuggestionsResponse(Wire, kw_only=True, frozen=True):
    """The files and directories that match a partial path, as after ``@`` in a prompt."""

    suggestions: list[Any]
    """The matches; the format of an item is unknown."""
    cwd: str | None = None
    """The working directory."""


class FileSuggestionsRequest(
    ControlRequestBody[FileSuggestionsResponse], tag="file_suggestions", kw_only=True, frozen=True
):
    """Asks for files that match a partial path."""

    query: str
    """The partial path."""


class RewindFilesResponse(Wire, kw_only=True, frozen=True):
    """The files that a rewind changed, or would change in a dry run. Keys are camelCase.

    The answer is a success even if the rewind is impossible: ``canRewind`` is then false. Without checkpoints, the
    request fails.
    """

    canRewind: bool | None = None
    """False if the rewind is not possible; None if the agent only acknowledged the request."""
    error: str | None = None
    """Why the rewind is not possible."""
    filesChanged: list[str] | None = None
    """The paths of the files."""
    insertions: int | None = None
    """The number of lines added."""
    deletions: int | None = None
    """The number of lines removed."""
    skippedLinks: int | None = None
    """The number of links, which a rewind does not change; not in a dry run."""


class RewindFilesRequest(ControlRequestBody[RewindFilesResponse], tag="rewind_files", kw_only=True, frozen=True):
    """Restores files, but not the conversation, to their state at a user message.

    The CLI refuses this request unless it keeps file checkpoints.
    """

    user_message_id: str
    """The uuid of the user message."""
    dry_run: bool | None = None
    """True only reports what would change."""


class CancelAsyncMessageResponse(Wire, kw_only=True, frozen=True):
    """Whether the CLI cancelled a queued message."""

    cancelled: bool | None = None
    """False if the message was not in the queue, perhaps because its turn had begun."""
    message_uuid: str | None = None


class CancelAsyncMessageRequest(
    ControlRequestBody[CancelAsyncMessageResponse], tag="cancel_async_message", kw_only=True, frozen=True
):
    """Cancels a user message that has a ``uuid`` and is still in the queue."""

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
    """Reads a file on the CLI's machine. Without the session's permission to read it, the error is ``read denied``."""

    path: str
    """The path, absolute or relative to the working directory."""
    max_bytes: int | None = None
    """The maximum number of bytes to read."""
    # one of utf-8, base64
    encoding: str | None = None
    """How to return the bytes: ``utf-8``, the default, for text; ``base64`` for other files."""


class SeedReadStateRequest(ControlRequestBody[dict[str, Any]], tag="seed_read_state", kw_only=True, frozen=True):
    """Tells the CLI that the model has read a file, so the model may edit the file.

    Use this request if the file's content is no longer in the context.
    """

    path: str
    mtime: Number
    """The file's mtime when it was read, in whole milliseconds since 1970-01-01 UTC; a newer file is skipped."""


class McpSetServersResponse(Wire, kw_only=True, frozen=True):
    """The MCP servers that were added, were removed, or failed."""

    added: list[str]
    """The names of the added servers."""
    removed: list[str]
    """The names of the removed servers."""
    errors: dict[str, str]
    """Server -> why the CLI could not connect to the server."""


class McpSetServersRequest(ControlRequestBody[McpSetServersResponse], tag="mcp_set_servers", kw_only=True, frozen=True):
    """Replaces the MCP servers of earlier requests of this kind, and the servers of the host.

    Servers from settings files and plugins stay.
    """

    servers: dict[str, McpServerConfig]
    """The new servers, by name; may be empty."""


class RegisterRepoRootRequest(ControlRequestBody[dict[str, Any]], tag="register_repo_root", kw_only=True, frozen=True):
    """Adds a directory that the session works in.

    The directory must be below the working directory or a directory of ``--add-dir``. The CLI refuses a directory that
    it already has.
    """

    directory: str
    """The path of the directory."""
    reload_claude_md: bool | None = None
    """True loads instructions from there, such as a ``CLAUDE.md``."""
    reload_plugins: bool | None = None
    """True loads plugins from there."""
    reload_skills: bool | None = None
    """True loads skills from there."""


class ReloadPluginsResponse(Wire, kw_only=True, frozen=True):
    """The commands, agents, plugins and MCP servers after a reload of plugins."""

    commands: list[SlashCommand]
    """The commands and skills for prompts."""
    agents: list[AgentInfo]
    """The types of subagents."""
    plugins: list[LoadedPlugin]
    """The plugins that are loaded."""
    mcpServers: list[McpServerStatus]
    """The MCP servers and the states of their connections."""
    error_count: int | None = None
    """The number of errors while loading."""
    held: bool | None = None
    """True if the CLI did not reload; None unless the request has ``hold_on_cache_impact``."""
    cache_impact: PluginCacheImpact | None = None
    """What the reload would change; only with ``held`` true."""


class ReloadPluginsRequest(ControlRequestBody[ReloadPluginsResponse], tag="reload_plugins", kw_only=True, frozen=True):
    """Loads the plugins from disk again."""

    hold_on_cache_impact: bool | None = None
    """True skips a reload that would invalidate the prompt cache."""
    add_plugins: list[SdkPluginConfig | OrUnknownObject] | None = None
    """More plugins to load, with absolute paths."""
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
    """Reconnects an MCP server. An unknown server is an error."""

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

    The CLI ignores this request unless environment variables tell it to hold back stream events.
    """

    has_subscribers: bool | None = null()
    """Whether someone is watching; null (unknown) counts as true."""


class StopTaskRequest(ControlRequestBody[dict[str, Any]], tag="stop_task", kw_only=True, frozen=True):
    """Stops a background task. A task message reports the end of the task.

    The CLI acknowledges the request even if the task id is unknown.
    """

    task_id: str


class BackgroundTasksResponse(Wire, kw_only=True, frozen=True):
    """Whether the CLI moved a task to the background."""

    backgrounded: bool | None = None
    """False if there was no task to move; None means true."""


class BackgroundTasksRequest(
    ControlRequestBody[BackgroundTasksResponse], tag="background_tasks", kw_only=True, frozen=True
):
    """Moves running foreground tasks to the background, so the turn continues.

    Each tool returns immediately. A task message reports the end of its task.
    """

    tool_use_id: str | None = None
    """The ``id`` of the tool call; None moves all tasks, like Ctrl+B."""


class GetTaskOutputResponse(Wire, kw_only=True, frozen=True):
    """The last 8 KiB of a background task's output."""

    output: str | None = None
    """The text, which may contain terminal escapes; empty if the task wrote nothing."""
    total_bytes: int | None = None
    """The size of the whole output in bytes."""
    truncated: bool | None = None
    """True if ``output`` is not the whole output."""


class GetTaskOutputRequest(ControlRequestBody[GetTaskOutputResponse], tag="get_task_output", kw_only=True, frozen=True):
    """Asks for the last output of a background shell or monitor task. An unknown task is an error.

    A host may repeat this request while the task runs, and once after the task ends.
    """

    task_id: str


class ApplyFlagSettingsRequest(
    ControlRequestBody[dict[str, Any]], tag="apply_flag_settings", kw_only=True, frozen=True
):
    """Changes settings for this session only.

    They override the settings files of user and project, but not managed settings. If a value is invalid, the whole
    request fails and changes nothing.
    """

    settings: dict[str, Any]
    """The settings to change, by top-level key; null clears a key."""


class GetSettingsResponse(Wire, kw_only=True, frozen=True):
    """The settings that apply, and the settings of each source."""

    effective: dict[str, Any] | None = None
    """The merged settings."""
    sources: Any = None
    """The settings of each source."""
    applied: dict[str, Any] | None = None
    """What the session uses, such as ``model`` and ``effort``."""
    errors: list[SettingsParseError] | None = None
    """Why the CLI skipped settings files."""
    served_settings_state: str | None = None
    """Whether a server provides settings; observed: ``ineligible``."""


class GetSettingsRequest(ControlRequestBody[GetSettingsResponse], tag="get_settings", frozen=True):
    """Asks for the settings that apply, and the settings of each source."""


class HookPolicy(Wire, kw_only=True, frozen=True):
    """How managed settings restrict hooks."""

    disabledByPolicy: bool
    """True if managed settings switch off all hooks."""
    managedOnly: bool
    """True if only the hooks of managed settings run."""
    pluginOnly: bool
    """True if only plugins may have hooks."""
    allDisabled: bool
    """True if any settings switch off all hooks."""
    policyHookCount: int
    """The number of hooks in managed settings."""
    policyUnreadable: bool | None = None
    """True if managed settings exist but could not be read; None otherwise."""


class HookSafeMode(Wire, kw_only=True, frozen=True):
    """Describes safe mode. Present only if the session runs in safe mode."""

    managedHooksStillApply: bool
    """True if the hooks of managed settings still run."""
    exitHint: str
    """How to leave the mode, as human-readable text."""


class HookBareMode(Wire, kw_only=True, frozen=True):
    """Describes bare mode. Present only if the session runs in bare mode."""

    exitHint: str
    """How to leave the mode, as human-readable text."""


class HookEventInfo(Wire, kw_only=True, frozen=True):
    """A hook event of the CLI, with or without hooks."""

    name: str
    """The event, such as ``PreToolUse``."""
    summary: str
    """A description of the event, such as ``After tool execution``."""
    supportsMatcher: bool
    """Whether hooks of this event can have a matcher."""


class HookEventCount(HookEventInfo, kw_only=True, frozen=True):
    """A hook event, and the number of its hooks."""

    hookCount: int
    """The number of hooks."""


class HookEditable(Wire, kw_only=True, frozen=True):
    """A configured hook as written in its settings file."""

    matcher: str
    """The matcher; empty if the hook has none."""
    config: dict[str, Any]
    """The hook's object in the file."""
    headersRedacted: bool | None = None
    """True if the CLI removed the values of HTTP headers in ``config``."""


class HookListing(Wire, kw_only=True, frozen=True):
    """A configured hook, as text for display.

    Do not run this text: the CLI replaced control characters in it with visible characters.
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
    """The plugin that provides the hook, such as ``plug@inline``."""
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
    """Time limit for the hook, in seconds."""
    statusMessage: str | None = None
    """The text to show while the hook runs."""
    runsOnce: bool | None = None
    """True if the hook runs only once."""
    runsInBackground: bool | None = None
    """True if the CLI does not wait for the hook."""
    disabled: bool | None = None
    """True if the session's mode or a policy disables the hook; None otherwise."""
    editable: HookEditable | None = None
    """The hook as stored, if its settings file is writable."""


class GetHooksListingResponse(Wire, kw_only=True, frozen=True):
    """All configured hooks of the session, as in the ``/hooks`` menu."""

    events: list[HookEventCount] | None = None
    """The events that have hooks."""
    hooks: list[HookListing] | None = None
    eventCatalog: list[HookEventInfo] | None = None
    """All hook events of the CLI."""
    policy: HookPolicy | None = None
    """How managed settings restrict hooks."""
    safeMode: HookSafeMode | None = None
    """Describes safe mode; None if the session does not run in safe mode."""
    bareMode: HookBareMode | None = None
    """Describes bare mode; None if the session does not run in bare mode."""
    errors: list[SettingsParseError] | None = None
    """Why the CLI skipped settings files and their hooks."""


class GetHooksListingRequest(ControlRequestBody[GetHooksListingResponse], tag="get_hooks_listing", frozen=True):
    """Asks for all configured hooks, as in the ``/hooks`` menu."""


class UpdateSettingsRequest(ControlRequestBody[dict[str, Any]], tag="update_settings", kw_only=True, frozen=True):
    """Writes settings to a file. This request cannot delete a key. Remote sessions refuse the request."""

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
    """The content of an MCP server's resource: untrusted, and often HTML."""

    contents: list[McpResourceContent]
    """The items of the resource."""


class McpReadResourceRequest(
    ControlRequestBody[McpReadResourceResponse], tag="mcp_read_resource", kw_only=True, frozen=True
):
    """Reads a ``ui://`` resource from an MCP server, for a host that shows the resource.

    The CLI refuses other schemes, and servers of the host.
    """

    serverName: str
    """The configured name of the server."""
    uri: str
    """The URI of the resource, such as ``ui://panel``."""
