"""Control requests that a host sends to the CLI.

Each is answered by one :class:`ControlResponse`; the payloads of the answers are in ``host_answers``, whose classes are
named here and imported when they are asked for. Case is mixed and must be kept: ``request_id`` here, ``serverName``
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Number, Wire, null
from claude_wire.messages.control.catalog import AgentDefinition, SdkPluginConfig
from claude_wire.messages.control.mcp import (
    McpInputFile,
    McpOutputFile,
    McpServerConfig,
    SdkMcpServerConfig,
    SdkMcpServerManifest,
)
from claude_wire.messages.control.request_body import ControlRequestBody
from claude_wire.messages.unknown import OrUnknownObject

if TYPE_CHECKING:
    # The strings below name their classes.
    from claude_wire.messages.control.context_usage import *
    from claude_wire.messages.control.host_answers import *

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
    """For which uses of a hook event the CLI shall call the host.

    ``matcher`` is a pattern for the tool's name or whatever the event goes by, and absent or null matches all.
    ``hookCallbackIds`` are ids of the host's choice, which come back as ``callback_id``. ``timeout`` is in seconds;
    ``onFailure`` ``block`` makes a failed callback block the action instead of letting it pass.
    """

    matcher: str | None = None
    hookCallbackIds: list[str]
    timeout: Number | None = None
    # one of block, continue
    onFailure: str | None = None


class InitializeRequest(ControlRequestBody["InitializeResponse"], tag="initialize", kw_only=True, frozen=True):
    """Opens the session: registers hooks, MCP servers and agents, and asks what there is.

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


class InterruptRequest(ControlRequestBody["InterruptResponse"], tag="interrupt", kw_only=True, frozen=True):
    """Stops the running turn, which then ends with a result.

    Open permission questions are withdrawn first. Queued messages stay and run afterwards, unless ``cancel_queued``
    is true. Harmless when no turn is running.
    """

    cancel_queued: bool | None = None


class SetPermissionModeRequest(
    ControlRequestBody["SetPermissionModeResponse"], tag="set_permission_mode", kw_only=True, frozen=True
):
    """Changes how permission questions are decided from now on.

    An unknown mode is refused with ``error_code`` ``invalid_mode``, and ``bypassPermissions`` with
    ``bypass_not_launched`` unless the CLI was launched with ``--dangerously-skip-permissions``.
    """

    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    mode: str


class SetModelRequest(ControlRequestBody["SetModelResponse"], tag="set_model", kw_only=True, frozen=True):
    """Changes the model for the next turns.

    Absent, null and ``default`` all reset it to the session's default. The CLI takes a name that no API knows as
    well.
    """

    model: str | UnsetType | None = UNSET


class SetMaxThinkingTokensRequest(
    ControlRequestBody[dict[str, Any]], tag="set_max_thinking_tokens", kw_only=True, frozen=True
):
    """Changes the thinking budget, how thinking is shown, or both.

    Absent and null differ in both members: an absent ``max_thinking_tokens`` leaves the budget (in tokens) as it is,
    null resets it to the session's default; an absent ``thinking_display`` leaves the display as it is, null drops an
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


class McpStatusRequest(ControlRequestBody["McpStatusResponse"], tag="mcp_status", kw_only=True, frozen=True):
    """Asks for the MCP servers of the session and the states of their connections.

    ``liveReply`` matters on remote sessions only.
    """

    liveReply: bool | None = None


class GetContextUsageRequest(
    ControlRequestBody["GetContextUsageResponse"], tag="get_context_usage", kw_only=True, frozen=True
):
    """Asks what fills the context window.

    The default ``full`` counts tokens with API requests; ``summary`` estimates from the last response and makes none.
    """

    # one of summary, full
    detail: str | None = None


class GetSessionCostRequest(ControlRequestBody["GetSessionCostResponse"], tag="get_session_cost", frozen=True):
    """Asks for the cost of the session as text for display."""


class ListModelsRequest(ControlRequestBody["ListModelsResponse"], tag="list_models", frozen=True):
    """Asks for the models that the session can be switched to."""


class GetUsageRequest(ControlRequestBody["GetUsageResponse"], tag="get_usage", kw_only=True, frozen=True):
    """Asks for the cost of the session and the use of the plan's limits, as numbers.

    ``skip_behaviors`` spares the CLI the reading of all transcripts of the last seven days. Experimental.
    """

    skip_behaviors: bool | None = None


class GetBinaryVersionRequest(ControlRequestBody["GetBinaryVersionResponse"], tag="get_binary_version", frozen=True):
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


class FileSuggestionsRequest(
    ControlRequestBody["FileSuggestionsResponse"], tag="file_suggestions", kw_only=True, frozen=True
):
    """Asks for files whose paths match what the user has typed so far."""

    query: str


class RewindFilesRequest(ControlRequestBody["RewindFilesResponse"], tag="rewind_files", kw_only=True, frozen=True):
    """Puts files back to what they were at a given user message.

    The conversation is not rewound. Refused unless the CLI keeps file checkpoints. With ``dry_run`` nothing is
    written; see :class:`RewindFilesResponse`.
    """

    user_message_id: str
    dry_run: bool | None = None


class CancelAsyncMessageRequest(
    ControlRequestBody["CancelAsyncMessageResponse"], tag="cancel_async_message", kw_only=True, frozen=True
):
    """Takes a queued user message back before its turn.

    Works only for messages sent with a ``uuid`` and not yet taken from the queue.
    """

    message_uuid: str


class ReadFileRequest(ControlRequestBody["ReadFileResponse"], tag="read_file", kw_only=True, frozen=True):
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

    For when the reading is no longer in the context. ``mtime`` lets the CLI notice that the file has changed since.
    """

    path: str
    mtime: Number


class McpSetServersRequest(
    ControlRequestBody["McpSetServersResponse"], tag="mcp_set_servers", kw_only=True, frozen=True
):
    """Puts a new set of MCP servers in place of those set before.

    Servers from settings files and plugins stay, those that the host runs are replaced as well; an empty map
    therefore does not always leave none.
    """

    servers: dict[str, McpServerConfig]


class RegisterRepoRootRequest(ControlRequestBody[dict[str, Any]], tag="register_repo_root", kw_only=True, frozen=True):
    """Adds a directory to those that the session works in.

    It must lie below the working directory or below one given with ``--add-dir``, and one that is already known is
    refused. The ``reload_...`` flags make the CLI look there for instructions, plugins and skills.
    """

    directory: str
    reload_claude_md: bool | None = None
    reload_plugins: bool | None = None
    reload_skills: bool | None = None


class ReloadPluginsRequest(
    ControlRequestBody["ReloadPluginsResponse"], tag="reload_plugins", kw_only=True, frozen=True
):
    """Loads the plugins from disk again.

    With ``hold_on_cache_impact`` the reload is held when it would spoil the prompt cache; with ``refuse_if_busy`` it
    fails with ``reload_plugins_busy`` during a turn. ``add_plugins`` need absolute paths.
    """

    hold_on_cache_impact: bool | None = None
    add_plugins: list[SdkPluginConfig | OrUnknownObject] | None = None
    refuse_if_busy: bool | None = None


class ReloadSkillsRequest(ControlRequestBody["ReloadSkillsResponse"], tag="reload_skills", frozen=True):
    """Loads the skills from disk again."""


class ReloadOutputStylesRequest(
    ControlRequestBody["ReloadOutputStylesResponse"], tag="reload_output_styles", frozen=True
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
    """Says whether anybody is watching the output.

    Null means that the host does not know, and counts as true. It matters only when the CLI was started with the
    environment variables that make it hold stream events back.
    """

    has_subscribers: bool | None = null()


class StopTaskRequest(ControlRequestBody[dict[str, Any]], tag="stop_task", kw_only=True, frozen=True):
    """Stops a background task.

    A task id that nobody knows is acknowledged too; the end of a task comes as a task message.
    """

    task_id: str


class BackgroundTasksRequest(
    ControlRequestBody["BackgroundTasksResponse"], tag="background_tasks", kw_only=True, frozen=True
):
    """Sends running foreground tasks to the background, so that the turn goes on.

    Without ``tool_use_id`` all of them, as Ctrl+B does. Each tool returns at once, and its task reports later with a
    task message.
    """

    tool_use_id: str | None = None


class GetTaskOutputRequest(
    ControlRequestBody["GetTaskOutputResponse"], tag="get_task_output", kw_only=True, frozen=True
):
    """Asks for the end of what a background shell or monitor task has printed.

    An unknown task is an error. May be repeated while the task runs, and asked once more after its end.
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


class GetSettingsRequest(ControlRequestBody["GetSettingsResponse"], tag="get_settings", frozen=True):
    """Asks for the settings in force and those of each source."""


class GetHooksListingRequest(ControlRequestBody["GetHooksListingResponse"], tag="get_hooks_listing", frozen=True):
    """Asks for all configured hooks, as the ``/hooks`` menu shows them."""


class UpdateSettingsRequest(ControlRequestBody[dict[str, Any]], tag="update_settings", kw_only=True, frozen=True):
    """Writes settings to a file.

    Only few keys are allowed: ``outputStyle`` for ``localSettings``, ``effortLevel`` for ``userSettings``, with
    string values. A key cannot be deleted, and remote sessions refuse the request.
    """

    # one of localSettings, userSettings
    source: str
    settings: dict[str, Any]


class ListPermissionRulesRequest(
    ControlRequestBody["ListPermissionRulesResponse"], tag="list_permission_rules", frozen=True
):
    """Asks for all permission rules and additional directories of the session."""


class McpReadResourceRequest(
    ControlRequestBody["McpReadResourceResponse"], tag="mcp_read_resource", kw_only=True, frozen=True
):
    """Reads a ``ui://`` resource from an MCP server, for a host that shows it.

    Other schemes are refused, as are servers that the host runs itself. ``serverName`` is the configured name.
    """

    serverName: str
    uri: str
