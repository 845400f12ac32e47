"""``system`` messages: the CLI's reports about itself, its session and its work."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import MessageBase, Number, Wire, constant, null
from claude_wire.messages.control.catalog import LoadedPlugin, SlashCommand
from claude_wire.messages.conversation.usage import TaskUsage


class SystemMessage(MessageBase, tag="system", kw_only=True, frozen=True):
    """The base class of ``system`` messages. Each ``subtype`` has a subclass."""

    subtype: str
    """The kind of system message."""
    uuid: str | None = None
    """The id of this message."""
    session_id: str | None = None


# --- the start of a turn ----------------------------------------------------------------------------------------------


class InitMcpServer(Wire, frozen=True):
    """An MCP server of the session."""

    name: str
    status: str
    """``connected``, ``failed``, ``needs-auth``, ``pending``, ``disabled`` or another value."""
    source: str | None = None
    """``sdk``, ``plugin`` or the scope of its configuration, such as ``user`` or ``dynamic``."""


class InitPlugin(LoadedPlugin, kw_only=True, frozen=True):
    """A plugin in an :class:`InitMessage`."""


class PluginManagedLock(Wire, frozen=True):
    """The managed setting that kept the CLI from loading a copy of a plugin."""

    plugin_enabled: bool
    """True if the setting enables another copy of the plugin, False if it disables the plugin."""
    name: str
    """The name of the plugin in the setting."""
    marketplace: str | None = None
    """The marketplace of the plugin, if the setting names one."""


class PluginError(Wire, kw_only=True, frozen=True):
    """A plugin, or a part of a plugin, that the CLI could not load."""

    plugin: str
    """``name@marketplace``, or ``inline[N]`` or ``synced[N]`` for a directory that has no name yet."""
    type: str
    """The kind of error, such as ``path-not-found``, ``manifest-validation-error`` or ``hook-load-failed``."""
    message: str
    """The error as text for the user."""
    path: str | None = None
    """The directory or archive, if the CLI could not load any of it."""
    managed_lock: PluginManagedLock | None = None
    """The managed setting that refuses the plugin; None for other errors."""


class InitMessage(SystemMessage, kw_only=True, frozen=True):
    """Describes the session: directory, model, tools, permission mode, commands and more.

    The CLI sends this message at the start of each turn. Use the newest message, because the model and the session may
    have changed. Older CLIs and dialects omit many fields.
    """

    subtype: Literal["init"] = constant("init")
    cwd: str | None = None
    """The working directory."""
    tools: list[str | dict[str, Any]] | None = None
    """The model's tools: names, or objects in some dialects; read :attr:`tool_names` for the names."""
    mcp_servers: list[InitMcpServer] | None = None
    """The MCP servers, and whether each is connected."""
    model: str | None = None
    """The model that answers."""
    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    permissionMode: str | None = None
    slash_commands: list[str] | None = None
    """The commands that a prompt may begin with, without the slash."""
    terminal_slash_commands: list[str] | None = None
    """The slash commands that need the local terminal, such as ``doctor``."""
    # one of user, none, ANTHROPIC_API_KEY, apiKeyHelper, /login managed key, project, org, temporary, oauth
    apiKeySource: str | None = None
    """Where the credentials come from."""
    claude_code_version: str | None = None
    """The version of the CLI."""
    output_style: str | None = None
    """The name of the output style."""
    agents: list[str] | None = None
    """The types of subagents."""
    skills: list[str] | None = None
    plugins: list[InitPlugin] | None = None
    """The plugins that are loaded."""
    capabilities: list[str] | None = None
    """The protocol features that this CLI supports, such as ``interrupt_receipt_v1``; ignore unknown ones."""
    analytics_disabled: bool | None = None
    product_feedback_disabled: bool | None = None
    served_by_anthropic: bool | None = None
    """Whether requests go to Anthropic's own API; observed: false with another base URL."""
    memory_paths: dict[str, Any] | None = None
    """Folders with memories, by kind; observed: only the kind ``auto``."""
    original_cwd: str | None = None
    """The working directory at the start of the CLI, before any change of ``cwd``."""
    additional_directories: list[str] | None = None
    """Further directories that the session works in."""
    messaging_socket_path: str | None = None
    """The path of a Unix socket of the CLI process, such as ``/tmp/cc-socks/8333.sock``."""
    # one of off, cooldown, on
    fast_mode_state: str | None = None
    """Whether fast mode is on; ``cooldown`` if a rate limit paused it."""
    # one of unknown, free, preference, extra_usage_disabled, network_error, not_first_party, disabled_by_env,
    # model_not_allowed, sdk_opt_in_required, pending
    fast_mode_disabled_reason: str | None = None
    """Why fast mode is off."""
    per_turn_effort_active: bool | None = None
    """Observed: true with Claude 5.5 models, false with older ones."""
    ultrathink_available: bool | None = None
    ultrathink_typed_raises: bool | None = None
    # one of default, focus
    view_mode: str | None = None
    """``focus`` if the user sees only the prompt and the last message of each turn."""
    user_message_uuids: list[str] | None = None
    """The uuids of all prompts that this turn answers."""
    betas: list[str] | None = None
    """The beta features of the API that the session uses."""
    plugin_errors: list[PluginError] | None = None
    """Plugins, or parts of plugins, that the CLI could not load; None if there are none."""
    # one of low, medium, high, xhigh, max
    effort: str | UnsetType | None = UNSET
    """The effort level of the next message; null if the CLI sends no effort to the API."""
    timestamp: str | None = None
    """When the message was written, in ISO 8601; only in the ``permission_request`` dialect."""
    models: list[Any] | None = None
    """Only in CLI 2.1.7."""
    startup_timing: dict[str, Any] | None = None
    plugin_warnings: list[dict[str, Any]] | None = None
    mcp_server_errors: list[dict[str, Any]] | None = None
    footer_indicator: dict[str, Any] | None = None
    scratchpad_path: str | None = None
    synced_skills_path: str | None = None
    worker_epoch: int | None = None
    powershell_path: str | None = None
    host_dropped_env: list[dict[str, Any]] | None = None
    client_thinking: dict[str, Any] | None = None
    flag_restate_noop: bool | None = None
    cloud_session: dict[str, Any] | None = None
    sandbox_enabled: bool | str | None = None
    """Whether shell commands run in a sandbox; the string ``unknown`` if the CLI cannot tell."""

    @property
    def tool_names(self) -> list[str]:
        """The names of all tools, in order. A tool without a name is omitted."""
        names = (tool if isinstance(tool, str) else tool.get("name") for tool in self.tools or ())
        return [name for name in names if isinstance(name, str)]


class PluginInstallMessage(SystemMessage, kw_only=True, frozen=True):
    """Reports the progress of installing plugins at startup."""

    subtype: Literal["plugin_install"] = constant("plugin_install")
    # one of completed, failed, started, installed
    status: str
    """``started`` and ``completed`` report the whole installation, the others one part of it."""
    name: str | None = None
    """The plugin or marketplace; None for the whole installation."""
    error: str | None = None
    """Why the installation failed, as untrusted text, which may come from a plugin's author."""


# --- activities of the CLI --------------------------------------------------------------------------------------------


class StatusMessage(SystemMessage, kw_only=True, frozen=True):
    """The CLI's current activity, or a new permission mode."""

    subtype: Literal["status"] = constant("status")
    # one of compacting, requesting
    status: str | None = null()
    """The activity; null after ``compacting``, or with a new permission mode. No message ends ``requesting``."""
    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    permissionMode: str | None = None
    """The new permission mode; None if unchanged."""
    # one of success, failed
    compact_result: str | None = None
    """The outcome of a compaction that has just ended."""
    compact_error: str | None = None
    """Why the compaction failed."""
    running: bool | None = None
    """True during a turn; only in miriad-code's dialect, in the answer to a status request."""
    queued_messages: int | None = None
    """The number of waiting prompts; only in miriad-code's dialect, with ``running``."""
    user_message_uuids: list[str] | None = None
    """The uuids of all prompts that this turn answers."""
    compact_output_chars: int | None = None
    """Observed: 0, in a message about ``compacting``."""
    resume_held_for_plan: bool | None = None


class ControlRequestProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """The CLI is handling a control request of the host, and will answer it later.

    The fields about a retry are present only with the status ``api_retry``.
    """

    subtype: Literal["control_request_progress"] = constant("control_request_progress")
    request_id: str
    """The id of the control request."""
    # one of api_retry, started
    status: str
    """``started``: the CLI began to work; ``api_retry``: an API request failed, and the CLI repeats it."""
    attempt: int | None = None
    """The 1-based number of this retry."""
    max_retries: int | None = None
    """The number of retries after which the CLI gives up."""
    retry_delay_ms: Number | None = None
    """Milliseconds until the retry."""
    error_status: int | UnsetType | None = UNSET
    """The HTTP status; null if there was no HTTP answer."""


class LocalCommandOutputMessage(SystemMessage, kw_only=True, frozen=True):
    """The output of a slash command that ran in the CLI."""

    subtype: Literal["local_command_output"] = constant("local_command_output")
    content: str
    """The output, to be shown like the model's text."""


class ThinkingTokensMessage(SystemMessage, kw_only=True, frozen=True):
    """An estimate of the thinking tokens so far, before each delta of a thinking block, for a progress display.

    The usage has the true count.
    """

    subtype: Literal["thinking_tokens"] = constant("thinking_tokens")
    estimated_tokens: int
    """The tokens of the current thinking block so far."""
    estimated_tokens_delta: int
    """The tokens since the previous message about this block."""
    user_message_uuid: str | None = None
    """The uuid of the prompt that this turn answers."""


class ElicitationCompleteMessage(SystemMessage, kw_only=True, frozen=True):
    """An MCP server confirms that an elicitation by URL is complete."""

    subtype: Literal["elicitation_complete"] = constant("elicitation_complete")
    mcp_server_name: str
    elicitation_id: str
    """The id in the :class:`ElicitationRequest`."""


class PermissionDeniedMessage(SystemMessage, kw_only=True, frozen=True):
    """The CLI refused a tool call without asking the host. The tool result for the model follows.

    The CLI does not send this message for every refusal, but ``permission_denials`` of the result lists all refusals.
    """

    subtype: Literal["permission_denied"] = constant("permission_denied")
    tool_name: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for an MCP tool."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    agent_id: str | None = None
    """The id of the subagent; None in the main conversation."""
    decision_reason_type: str | None = None
    """The kind of reason, such as ``rule``, ``mode``, ``classifier`` or ``asyncAgent``."""
    decision_reason: str | None = None
    """The reason as human-readable text."""
    message: str
    """The text that the model gets as the tool result."""
    decision_reason_code: str | None = None
    """The reason as a code, such as ``auto_mode_no_check_in_session``."""


# --- the session, its title, commands, files and memories, and notes to the user --------------------------------------


class SessionStateChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """The session is now running, idle, or waiting for the host.

    The session is idle after the result, once the background work has also ended. The CLI sends these messages only
    with the environment variable ``CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1``.
    """

    subtype: Literal["session_state_changed"] = constant("session_state_changed")
    # one of running, idle, requires_action
    state: str
    """``requires_action``: the CLI is waiting for an answer from the host."""
    sdk_host_only: bool | None = None
    """True if the message is only for the SDK, not for the SDK's caller."""


class SessionTitleChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """The session has a new title, as after a ``rename_session`` request."""

    subtype: Literal["session_title_changed"] = constant("session_title_changed")
    title: str | None = None
    """The new title."""


class WorkerShuttingDownMessage(SystemMessage, kw_only=True, frozen=True):
    """The session's process is about to exit. Intended for clients that follow the session live."""

    subtype: Literal["worker_shutting_down"] = constant("worker_shutting_down")
    reason: str
    """Why the process exits, such as ``host_exit`` or ``remote_control_disabled``."""


class CommandsChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """The complete new list of slash commands, which replaces the previous one."""

    subtype: Literal["commands_changed"] = constant("commands_changed")
    commands: list[SlashCommand]


class NotificationMessage(SystemMessage, kw_only=True, frozen=True):
    """A short notice that the CLI shows in its own interface for a while."""

    subtype: Literal["notification"] = constant("notification")
    key: str
    """The kind of notice, such as ``stop-hook-error``."""
    text: str
    # one of low, medium, high, immediate
    priority: str
    """How urgent the notice is."""
    color: str | None = None
    """The name of a colour, such as ``warning``; None for the usual colour."""
    timeout_ms: Number | None = None
    """Milliseconds to show the notice."""


class InformationalMessage(SystemMessage, kw_only=True, frozen=True):
    """A line of text for the reader, such as a hook's ``systemMessage``."""

    subtype: Literal["informational"] = constant("informational")
    content: str
    """Plain text."""
    # one of info, notice, suggestion, warning
    level: str
    """How to show the text: ``info`` in a full transcript only, ``notice`` in grey, the others with emphasis."""
    tool_use_id: str | None = None
    """The tool call that the line is about; of several lines about one call, show the newest."""
    prevent_continuation: bool | None = None
    """True if the turn ends here, for example because a hook ended it."""
    tag: str | None = None
    """A label for hosts that know the label, such as ``auto_mode_no_server_check``; ignore other labels."""
    prompt_submit_outcome: dict[str, Any] | None = None
    model_restriction: dict[str, Any] | None = None
    isMeta: bool | None = None
    """Observed: false or absent."""
    timestamp: str | None = None
    """When the message was written, in ISO 8601."""
    hook_no_verdict: dict[str, Any] | None = None
    saved_files: list[dict[str, Any]] | None = None
    saved_from: dict[str, Any] | None = None


class UiInvalidateMessage(SystemMessage, kw_only=True, frozen=True):
    """The host's view of the session may be out of date."""

    subtype: Literal["ui_invalidate"] = constant("ui_invalidate")
    event: str | None = None
    prompts_screened: bool | None = None
    instances: list[dict[str, Any]] | None = None
    unhooked: list[str] | None = None


class PersistedFile(Wire, frozen=True):
    """A file that was stored, and its new id."""

    filename: str
    file_id: str
    """The new id of the file."""


class PersistFailure(Wire, frozen=True):
    """A file that could not be stored, and why."""

    filename: str
    error: str
    """Why the file could not be stored."""


class FilesPersistedMessage(SystemMessage, kw_only=True, frozen=True):
    """Some of the session's files were stored."""

    subtype: Literal["files_persisted"] = constant("files_persisted")
    files: list[PersistedFile]
    failed: list[PersistFailure]
    """The files that could not be stored."""
    processed_at: str
    """When the files were processed."""


class SessionWritesLostMessage(SystemMessage, kw_only=True, frozen=True):
    """The CLI lost data that it wanted to save, because the disk is full or over quota.

    The CLI sends this message at most once, when it exits, after the last result.
    """

    subtype: Literal["session_writes_lost"] = constant("session_writes_lost")
    # one of ENOSPC, EDQUOT
    error_code: str
    """``ENOSPC``: the disk is full; ``EDQUOT``: the quota is used up."""
    lost: list[str]
    """``transcript``, ``global_config`` (the file ``~/.claude.json``) or both; later CLIs may list more."""
    transcript_session_ids: list[str] | None = None
    """The sessions whose transcripts lack lines; None unless ``lost`` has ``transcript``."""


class RecalledMemory(Wire, frozen=True):
    """A recalled memory."""

    path: str
    """The file; or ``<synthesis:DIR>`` for a combined text; or a URL if the scope is ``organization``."""
    # one of personal, team, organization
    scope: str
    """The owner of the memory."""
    content: str | None = None
    """The text; None if only the file has the text."""


class MemoryRecallMessage(SystemMessage, kw_only=True, frozen=True):
    """Memories were recalled for the turn."""

    subtype: Literal["memory_recall"] = constant("memory_recall")
    # one of select, synthesize
    mode: str
    """``select``: the memories are unchanged; ``synthesize``: a model combined them into one text."""
    memories: list[RecalledMemory]


class MirrorKey(Wire, frozen=True):
    """The transcript that could not be mirrored; its keys are camelCase."""

    projectKey: str
    """A name for the project; by default derived from the working directory."""
    sessionId: str
    subpath: str | None = None
    """The file of a subagent, such as ``subagents/agent-ID``; None for the session itself."""


class MirrorErrorMessage(SystemMessage, kw_only=True, frozen=True):
    """An SDK could not write the host's copy of the transcript.

    The SDK makes this message for its caller. The CLI never writes it.
    """

    subtype: Literal["mirror_error"] = constant("mirror_error")
    error: str
    """Why the copy could not be written."""
    key: MirrorKey


# --- subagents, shell commands and other work, in front or in the background ------------------------------------------


class McpResourceLink(Wire, kw_only=True, frozen=True):
    """A resource that an MCP server offers."""

    uri: str
    """Identifies the resource for the MCP server."""
    name: str
    title: str | None = None
    """The name to show to people."""
    description: str | None = None
    mimeType: str | None = None
    size: Number | None = None
    """The size of the resource in bytes."""
    annotations: dict[str, Any] | None = None
    """Hints for clients, such as ``audience`` and ``priority``."""


class TaskStartedMessage(SystemMessage, kw_only=True, frozen=True):
    """A task began: a subagent, a shell command or other work."""

    subtype: Literal["task_started"] = constant("task_started")
    task_id: str
    run_id: str | None = None
    """The id of this run of the task; a resumed task keeps its ``task_id`` and gets a new ``run_id``."""
    tool_use_id: str | None = None
    """The tool call that started the task."""
    description: str
    """The task in a few words."""
    subagent_type: str | None = None
    """The type of the subagent, such as ``general-purpose``; None for other tasks."""
    is_backgrounded: bool | None = None
    """True for a task in the background; False if the tool call waits for the task."""
    spawn_depth: int | None = None
    """1 for a subagent of the main conversation, 2 for its subagents, and so on; None for other tasks."""
    parent_task_id: str | None = None
    """The task of the subagent that started this task; None in the main conversation."""
    task_type: str | None = None
    """``local_agent`` for a subagent, ``local_bash`` for a shell command, or another value."""
    workflow_name: str | None = None
    """The name of the workflow; only if ``task_type`` is ``local_workflow``."""
    prompt: str | None = None
    """The prompt of a subagent; None if the CLI resumes the subagent with the CLI's own text."""
    skip_transcript: bool | None = None
    """True for housekeeping, which a front end should not show in the conversation."""
    ambient: bool | None = None
    """True for a watcher or for housekeeping, which does not count as activity."""
    awaited: bool | None = None
    owned_by_subagent: bool | None = None
    """True for the shell command of a subagent."""


class TaskProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """A task's current activity, and the task's usage so far."""

    subtype: Literal["task_progress"] = constant("task_progress")
    task_id: str
    run_id: str | None = None
    """The id of this run of the task; a resumed task keeps its ``task_id`` and gets a new ``run_id``."""
    tool_use_id: str | None = None
    """The tool call that started the task."""
    description: str
    """The current step, not the whole task, in a few words."""
    subagent_type: str | None = None
    """The type of the subagent, such as ``general-purpose``; None for other tasks."""
    usage: TaskUsage
    """The usage so far."""
    last_tool_name: str | None = None
    """The tool that the subagent called last."""
    summary: str | None = None
    """The progress of the task in one line, written by the model or by the MCP server."""


class TaskPatch(Wire, kw_only=True, frozen=True):
    """A task's changed fields. Absent fields did not change."""

    # one of completed, pending, failed, running, killed, paused
    status: str | None = None
    """A task that was stopped is ``killed`` here, and ``stopped`` in :class:`TaskNotificationMessage`."""
    description: str | None = None
    """The task in a few words."""
    end_time: Number | None = None
    """When the task ended, in milliseconds since 1970-01-01 UTC."""
    total_paused_ms: Number | None = None
    """Milliseconds for which the task was paused, in total."""
    error: str | None = None
    """Why the task failed."""
    is_backgrounded: bool | None = None
    """True if the task now runs in the background."""


class TaskUpdatedMessage(SystemMessage, kw_only=True, frozen=True):
    """A task changed.

    This message, :class:`TaskNotificationMessage` or both report the end of a task. Use the first report.
    """

    subtype: Literal["task_updated"] = constant("task_updated")
    task_id: str | None = None
    run_id: str | None = None
    """The id of this run of the task; a resumed task keeps its ``task_id`` and gets a new ``run_id``."""
    patch: TaskPatch | None = None
    """The changes; a final status ends the task."""


class TaskNotificationMessage(SystemMessage, kw_only=True, frozen=True):
    """A task ended, with this status and output. For some tasks, only a :class:`TaskUpdatedMessage` reports the end."""

    subtype: Literal["task_notification"] = constant("task_notification")
    task_id: str
    run_id: str | None = None
    """The id of this run of the task; a resumed task keeps its ``task_id`` and gets a new ``run_id``."""
    tool_use_id: str | None = None
    """The tool call that started the task."""
    # one of completed, failed, stopped
    status: str
    reason: str | None = None
    """``worker_restart`` if the CLI exited before the task ended; None in all other cases."""
    output_file: str
    """The path of the output on the CLI's machine; empty if there is no file."""
    summary: str
    """The answer of a subagent, or a line such as ``Background command "bg" completed (exit code 0)``."""
    usage: TaskUsage | None = None
    """The usage of a subagent; None for other tasks."""
    resource_links: list[McpResourceLink] | None = None
    """The files that a background MCP tool returned; None for other tasks."""
    skip_transcript: bool | None = None
    """True for housekeeping, which a front end should not show in the conversation."""
    ambient: bool | None = None
    """True for a watcher or for housekeeping, which does not count as activity."""
    summary_is_report: bool | None = None
    """Observed: true for subagents in the background, whose ``summary`` is their answer."""
    handback: str | None = None
    handback_report: dict[str, Any] | None = None
    owned_by_subagent: bool | None = None
    """True for the shell command of a subagent."""


class BackgroundTask(Wire, kw_only=True, frozen=True):
    """A task that is running in the background."""

    task_id: str
    run_id: str | None = None
    """The id of this run of the task; a resumed task keeps its ``task_id`` and gets a new ``run_id``."""
    task_type: str
    """``local_agent`` for a subagent, ``local_bash`` for a shell command, or another value."""
    subagent_type: str | None = None
    """The type of the subagent, such as ``general-purpose``; None for other tasks."""
    description: str
    """The task in a few words."""
    parent_task_id: str | None = None
    """The task of the subagent that started this task; None in the main conversation."""
    ambient: bool | None = None
    """True for a watcher or for housekeeping, which does not count as activity."""


class BackgroundTasksChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """All tasks that are running in the background.

    The CLI sends this message when a background task begins or ends. A new CLI process has no tasks and does not send
    this message.
    """

    subtype: Literal["background_tasks_changed"] = constant("background_tasks_changed")
    tasks: list[BackgroundTask]
    """The whole list, which replaces the previous one; empty after the end of the last task."""


class BackgroundTaskSummary(Wire, kw_only=True, frozen=True):
    """A background task as the input of a ``Stop`` or ``SubagentStop`` hook lists it."""

    id: str
    """The id of the task."""
    type: str
    """``shell``, ``subagent``, ``monitor``, ``workflow`` or another value."""
    status: str
    description: str
    """The task in a few words, cut off after 1000 characters."""
    command: str | None = None
    """The command of a ``shell``, cut off after 1000 characters; None for other types."""
    agent_type: str | None = None
    """The type of a ``subagent``; None for other types."""
    server: str | None = None
    """The MCP server of a ``monitor`` or an ``MCP task``; None for other types."""
    tool: str | None = None
    """The MCP tool of a ``monitor`` or an ``MCP task``; None for other types."""
    name: str | None = None
    """The name of a ``workflow``; None for other types."""


class SessionCronSummary(Wire, kw_only=True, frozen=True):
    """A scheduled prompt of the session, as the input of a ``Stop`` or ``SubagentStop`` hook lists it."""

    id: str
    """The id of the schedule."""
    schedule: str
    """A cron expression, such as ``0 9 * * 1-5``."""
    recurring: bool
    """False if the prompt runs once, True if the prompt runs at every match of the schedule."""
    prompt: str
    """The prompt, cut off after 1000 characters."""


class TaskListStatus(Wire, kw_only=True, frozen=True):
    """The status of one task on the task list."""

    id: str
    """The id of the task on the list."""
    # one of pending, in_progress, completed
    status: str


class TaskListStatusesMessage(SystemMessage, kw_only=True, frozen=True):
    """The CLI changed statuses on the task list without a call to the TaskUpdate tool.

    A later result of TaskUpdate takes precedence. CLI 2.1.331 writes this message to some hosts, although its public
    interface does not declare it.
    """

    subtype: Literal["task_list_statuses"] = constant("task_list_statuses")
    statuses: list[TaskListStatus]
    """The tasks whose status changed."""


# --- hooks that the CLI runs ------------------------------------------------------------------------------------------


class HookStartedMessage(SystemMessage, kw_only=True, frozen=True):
    """The CLI began to run a hook. Sent only with ``--include-hook-events``, and not for hooks of the host."""

    subtype: Literal["hook_started"] = constant("hook_started")
    hook_id: str
    """The id of this run of the hook; :class:`HookResponseMessage` repeats it."""
    hook_name: str
    """The event with its matcher, such as ``SessionStart:startup``."""
    hook_event: str
    """The event, such as ``PreToolUse``."""
    origin: str | None = None
    label: str | None = None
    plugin_name: str | None = None
    """The plugin that the hook belongs to."""


class HookProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """The output of a running hook so far."""

    subtype: Literal["hook_progress"] = constant("hook_progress")
    hook_id: str
    """The id of this run of the hook."""
    hook_name: str
    """The event with its matcher, such as ``SessionStart:startup``."""
    hook_event: str
    """The event, such as ``PreToolUse``."""
    stdout: str
    stderr: str
    output: str
    """The text of both streams, in the order of arrival."""
    backgrounded: bool | None = None


class HookResponseMessage(SystemMessage, kw_only=True, frozen=True):
    """A hook ended, with this output, exit code and outcome."""

    subtype: Literal["hook_response"] = constant("hook_response")
    hook_id: str | None = None
    """The id of this run of the hook; None in CLI 2.1.7."""
    hook_name: str | None = None
    """The event with its matcher, such as ``SessionStart:startup``; None in CLI 2.1.7."""
    hook_event: str
    """The event, such as ``PreToolUse``."""
    output: str | None = None
    """The text of both streams, in the order of arrival."""
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None
    """The exit code of the hook's command; None if unknown."""
    # one of success, error, cancelled
    outcome: str | None = None
    """How the hook ended."""
    response: dict[str, Any] | None = None
    """The hook's output; only in CLI 2.1.7."""


# --- a summary takes the place of older messages ----------------------------------------------------------------------


class PreservedSegment(Wire, frozen=True):
    """The uuids of the first and last of the successive messages that a compaction kept."""

    head_uuid: str
    """The uuid of the first message."""
    anchor_uuid: str
    """The uuid of the summary, which is now before the kept messages."""
    tail_uuid: str
    """The uuid of the last message."""


class PreservedMessages(Wire, frozen=True):
    """The uuids of the messages that a compaction kept."""

    anchor_uuid: str
    """The uuid of the summary, which is now before the kept messages."""
    uuids: list[str]
    """The uuids of the messages, in their order."""
    all_uuids: list[str] | None = None
    """Observed: always the same as ``uuids``."""


class CompactMetadata(Wire, kw_only=True, frozen=True):
    """The cause, size and duration of a compaction."""

    # one of auto, manual
    trigger: str
    """``manual`` for ``/compact``, ``auto`` otherwise."""
    pre_tokens: Number
    """The tokens of the conversation before the compaction."""
    post_tokens: Number | None = None
    """The tokens of the conversation after the compaction."""
    duration_ms: Number | None = None
    """Milliseconds that the compaction took."""
    preserved_segment: PreservedSegment | None = None
    """The first and last kept message; None if no message was kept."""
    preserved_messages: PreservedMessages | None = None
    """All kept messages; None if no message was kept."""
    cumulative_dropped_tokens: Number | None = None
    """The tokens that all compactions of the session dropped."""


class CompactBoundaryMessage(SystemMessage, kw_only=True, frozen=True):
    """From here on, the model sees a summary instead of the earlier messages.

    This message follows the :class:`StatusMessage` about the end of the compaction. The summary follows as a synthetic
    :class:`UserMessage`.
    """

    subtype: Literal["compact_boundary"] = constant("compact_boundary")
    compact_metadata: CompactMetadata
    logical_parent_uuid: str | None = None
    """The uuid of the last message before the compaction."""


# --- requests to the API that failed, and models that take over from others -------------------------------------------


class NoResponse(Wire, frozen=True):
    """The API did not send the headers of an answer in time."""

    waited_ms: Number
    """How long the failed attempt waited, in milliseconds."""
    retry_wait_ms: Number
    """How long the retry will wait, in milliseconds."""


class ApiRetryMessage(SystemMessage, kw_only=True, frozen=True):
    """An API request failed, and the CLI repeats it."""

    subtype: Literal["api_retry"] = constant("api_retry")
    attempt: int
    """The 1-based number of this retry."""
    max_retries: int
    """The number of retries after which the CLI gives up."""
    retry_delay_ms: Number
    """Milliseconds until the retry."""
    error_status: int | None = null()
    """The HTTP status; null if there was no HTTP answer."""
    # one of those of AssistantMessage.error
    error: str
    """Why the request failed."""
    no_response: NoResponse | None = None
    """Present if the API did not answer in time; ``max_retries`` then counts only such retries."""


class ModelRefusalFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """The model refused, and a fallback model answers instead."""

    subtype: Literal["model_refusal_fallback"] = constant("model_refusal_fallback")
    trigger: str
    """Always ``refusal``."""
    # one of retry, revert, sticky
    direction: str
    """``retry``, the only value in current CLIs: the fallback model gets the prompt."""
    # one of session, local
    scope: str | None = None
    """``session`` or None: the session's model changes; ``local``: only this answer is from the fallback model."""
    original_model: str
    fallback_model: str
    request_id: str | None = null()
    """The API's id of the refused request."""
    api_refusal_category: str | UnsetType | None = UNSET
    """The subject of the refusal, such as ``cyber`` or ``bio``; null if the API does not name a subject."""
    api_refusal_explanation: str | UnsetType | None = UNSET
    """The API's explanation, for display only; null if there is none."""
    retracted_message_uuids: list[str] | None = None
    """The uuids of withdrawn messages, which a front end should hide."""
    refused_user_message_uuid: str | UnsetType | None = UNSET
    """The uuid of the prompt that was refused; null if it was not a user's."""
    content: str
    """Text for the user."""
    saw_cyber_refusal: bool | None = None
    api_refusal_cyber_verification: dict[str, Any] | None = None


class ModelRefusalNoFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """The model refused, and no fallback model answers instead."""

    subtype: Literal["model_refusal_no_fallback"] = constant("model_refusal_no_fallback")
    original_model: str
    request_id: str | None = null()
    """The API's id of the refused request."""
    api_refusal_category: str | UnsetType | None = UNSET
    """The subject of the refusal, such as ``cyber`` or ``bio``; null if the API does not name a subject."""
    api_refusal_explanation: str | UnsetType | None = UNSET
    """The API's explanation, for display only; null if there is none."""
    refused_user_message_uuid: str | UnsetType | None = UNSET
    """The uuid of the prompt that was refused; null if it was not a user's."""
    content: str
    """Text for the user."""


class ModelFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """The model is not available, and the fallback model answers instead.

    The CLI sends this message after the retries, before the fallback model's answer.
    """

    subtype: Literal["model_fallback"] = constant("model_fallback")
    trigger: str | None = None
    """The reason, such as ``overloaded``."""
    original_model: str | None = None
    fallback_model: str | None = None
    content: str | None = None
    """Text for the user."""
