"""``system`` messages: what the CLI reports about itself, its session and its work."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import MessageBase, Number, Wire, constant, null
from claude_wire.messages.control.catalog import SlashCommand
from claude_wire.messages.conversation.usage import TaskUsage


class SystemMessage(MessageBase, tag="system", kw_only=True, frozen=True):
    """The base class of ``system`` messages. Each ``subtype`` has a subclass."""

    subtype: str
    uuid: str | None = None
    session_id: str | None = None


# --- the start of a turn ----------------------------------------------------------------------------------------------


class InitMcpServer(Wire, frozen=True):
    """An MCP server at the start of the session; ``status`` may have values not known today."""

    name: str
    status: str
    source: str | None = None


class InitPlugin(Wire, kw_only=True, frozen=True):
    """A plugin of the session, and its source."""

    name: str
    path: str
    source: str | None = None
    version: str | None = None


class PluginManagedLock(Wire, frozen=True):
    """The managed setting that forces a plugin on or off."""

    plugin_enabled: bool
    name: str
    marketplace: str | None = None


class PluginError(Wire, kw_only=True, frozen=True):
    """A plugin that could not be loaded, and why."""

    plugin: str
    type: str
    message: str
    path: str | None = None
    managed_lock: PluginManagedLock | None = None


class InitMessage(SystemMessage, kw_only=True, frozen=True):
    """Describes the session: directory, model, tools, permission mode, commands and more.

    The CLI sends it at the start of every turn. The newest one counts, because model and session may have changed.
    Older CLIs and dialects leave out many fields. Only CLI 2.1.7 writes ``models``, and only the ``permission_request``
    dialect ``timestamp``. In ``tools``, the CLI lists names, but dialects may list objects: :attr:`tool_names` has the
    names in both cases.
    """

    subtype: Literal["init"] = constant("init")
    cwd: str | None = None
    """The working directory."""
    tools: list[str | dict[str, Any]] | None = None
    """The tools that the model has; :attr:`tool_names` has their names."""
    mcp_servers: list[InitMcpServer] | None = None
    """The MCP servers, and whether each is connected."""
    model: str | None = None
    """The model that answers."""
    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    permissionMode: str | None = None
    """The permission mode."""
    slash_commands: list[str] | None = None
    """The commands that a prompt may begin with, without the slash."""
    terminal_slash_commands: list[str] | None = None
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
    """The names of the skills."""
    plugins: list[InitPlugin] | None = None
    """The plugins that are loaded."""
    capabilities: list[str] | None = None
    analytics_disabled: bool | None = None
    product_feedback_disabled: bool | None = None
    served_by_anthropic: bool | None = None
    memory_paths: dict[str, Any] | None = None
    original_cwd: str | None = None
    additional_directories: list[str] | None = None
    """Further directories that the session works in."""
    messaging_socket_path: str | None = None
    # one of off, cooldown, on
    fast_mode_state: str | None = None
    # one of unknown, free, preference, extra_usage_disabled, network_error, not_first_party, disabled_by_env,
    # model_not_allowed, sdk_opt_in_required, pending
    fast_mode_disabled_reason: str | None = None
    per_turn_effort_active: bool | None = None
    ultrathink_available: bool | None = None
    ultrathink_typed_raises: bool | None = None
    # one of default, focus
    view_mode: str | None = None
    user_message_uuids: list[str] | None = None
    betas: list[str] | None = None
    plugin_errors: list[PluginError] | None = None
    # one of low, medium, high, xhigh, max
    effort: str | UnsetType | None = UNSET
    timestamp: str | None = None
    models: list[Any] | None = None
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
    # whether shell commands run in a sandbox; the string "unknown" if the CLI cannot tell
    sandbox_enabled: bool | str | None = None

    @property
    def tool_names(self) -> list[str]:
        """The names of all tools, in order. A tool without a name is left out."""
        names = (tool if isinstance(tool, str) else tool.get("name") for tool in self.tools or ())
        return [name for name in names if isinstance(name, str)]


class PluginInstallMessage(SystemMessage, kw_only=True, frozen=True):
    """Progress of the installation of plugins at the start.

    ``name`` is the plugin, if the message is about a single one; ``error`` says why it failed.
    """

    subtype: Literal["plugin_install"] = constant("plugin_install")
    # one of completed, failed, started, installed
    status: str
    name: str | None = None
    error: str | None = None


# --- what the CLI is busy with ----------------------------------------------------------------------------------------


class StatusMessage(SystemMessage, kw_only=True, frozen=True):
    """The CLI's current activity, or a new permission mode.

    ``requesting`` is sent before a request to the API, and its end is not reported. The end of ``compacting`` is a null
    ``status``, with the outcome in ``compact_result``. A change of the permission mode is a null ``status`` with
    ``permissionMode``. ``running`` and ``queued_messages`` answer a status request in miriad-code's dialect.
    """

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
    user_message_uuids: list[str] | None = None
    compact_output_chars: int | None = None
    resume_held_for_plan: bool | None = None


class ControlRequestProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """The CLI handles the host's control request ``request_id``, and has not answered it yet.

    The fields about a retry are present only if ``status`` is ``api_retry``. A null ``error_status`` means that there
    was no HTTP answer.
    """

    subtype: Literal["control_request_progress"] = constant("control_request_progress")
    request_id: str
    # one of api_retry, started
    status: str
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: Number | None = None
    error_status: int | UnsetType | None = UNSET


class LocalCommandOutputMessage(SystemMessage, kw_only=True, frozen=True):
    """The output of a slash command that ran in the CLI."""

    subtype: Literal["local_command_output"] = constant("local_command_output")
    content: str


class ThinkingTokensMessage(SystemMessage, kw_only=True, frozen=True):
    """An estimate of the thinking tokens so far, just before each delta of a thinking block.

    For a progress display only; the true count is in the usage.
    """

    subtype: Literal["thinking_tokens"] = constant("thinking_tokens")
    estimated_tokens: int
    estimated_tokens_delta: int
    user_message_uuid: str | None = None


class ElicitationCompleteMessage(SystemMessage, kw_only=True, frozen=True):
    """An elicitation of an MCP server is complete.

    ``elicitation_id`` is the id in the :class:`ElicitationRequest`.
    """

    subtype: Literal["elicitation_complete"] = constant("elicitation_complete")
    mcp_server_name: str
    elicitation_id: str


class PermissionDeniedMessage(SystemMessage, kw_only=True, frozen=True):
    """A tool call was refused without asking the host.

    It is sent before the tool result for the model. Not all refusals have such a message: ``permission_denials`` in the
    result is complete.
    """

    subtype: Literal["permission_denied"] = constant("permission_denied")
    tool_name: str
    tool_use_id: str
    agent_id: str | None = None
    decision_reason_type: str | None = None
    decision_reason: str | None = None
    message: str
    decision_reason_code: str | None = None


# --- the session, its title, commands, files and memories, and notes to the user --------------------------------------


class SessionStateChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """The session began to run, became idle, or waits for the host.

    ``idle`` is sent after the result, when the background work is done, too. The CLI sends these messages only if the
    host sets the environment variable ``CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1``.
    """

    subtype: Literal["session_state_changed"] = constant("session_state_changed")
    # one of running, idle, requires_action
    state: str
    sdk_host_only: bool | None = None


class SessionTitleChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """The session has a new title, as after a ``rename_session`` request."""

    subtype: Literal["session_title_changed"] = constant("session_title_changed")
    title: str | None = None


class WorkerShuttingDownMessage(SystemMessage, kw_only=True, frozen=True):
    """The process that runs the session is about to end. This is for clients that follow the session live."""

    subtype: Literal["worker_shutting_down"] = constant("worker_shutting_down")
    reason: str


class CommandsChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """The complete new list of slash commands, which replaces the previous one."""

    subtype: Literal["commands_changed"] = constant("commands_changed")
    commands: list[SlashCommand]


class NotificationMessage(SystemMessage, kw_only=True, frozen=True):
    """A short notice that the CLI would show in its own interface for a while.

    Notices of the same kind have the same ``key``; ``timeout_ms`` says how long to show the notice, in milliseconds.
    """

    subtype: Literal["notification"] = constant("notification")
    key: str
    text: str
    # one of low, medium, high, immediate
    priority: str
    color: str | None = None
    timeout_ms: Number | None = None


class InformationalMessage(SystemMessage, kw_only=True, frozen=True):
    """A line of text for the reader, such as a hook's ``systemMessage``.

    ``level`` says how to show it; ``tag`` is opaque.
    """

    subtype: Literal["informational"] = constant("informational")
    content: str
    # one of info, notice, suggestion, warning
    level: str
    tool_use_id: str | None = None
    prevent_continuation: bool | None = None
    tag: str | None = None
    prompt_submit_outcome: dict[str, Any] | None = None
    model_restriction: dict[str, Any] | None = None
    isMeta: bool | None = None
    timestamp: str | None = None
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


class PersistFailure(Wire, frozen=True):
    """A file that could not be stored, and why."""

    filename: str
    error: str


class FilesPersistedMessage(SystemMessage, kw_only=True, frozen=True):
    """Files of the session were stored. ``failed`` lists those that could not be stored."""

    subtype: Literal["files_persisted"] = constant("files_persisted")
    files: list[PersistedFile]
    failed: list[PersistFailure]
    processed_at: str


class SessionWritesLostMessage(SystemMessage, kw_only=True, frozen=True):
    """The disk is full or over quota, and data that the CLI wanted to save is lost.

    ``lost`` is ``transcript`` or ``global_config``; both it and ``error_code`` may have values not known today.
    """

    subtype: Literal["session_writes_lost"] = constant("session_writes_lost")
    # one of ENOSPC, EDQUOT
    error_code: str
    lost: list[str]
    transcript_session_ids: list[str] | None = None


class RecalledMemory(Wire, frozen=True):
    """A recalled memory: its path, its owner and, perhaps, its text."""

    path: str
    # one of personal, team, organization
    scope: str
    content: str | None = None


class MemoryRecallMessage(SystemMessage, kw_only=True, frozen=True):
    """Memories were recalled for the turn. They were either selected unchanged or combined into one text."""

    subtype: Literal["memory_recall"] = constant("memory_recall")
    # one of select, synthesize
    mode: str
    memories: list[RecalledMemory]


class MirrorKey(Wire, frozen=True):
    """The transcript that could not be mirrored; its keys are camelCase."""

    projectKey: str
    sessionId: str
    subpath: str | None = None


class MirrorErrorMessage(SystemMessage, kw_only=True, frozen=True):
    """The host's copy of the transcript could not be written.

    The CLI never writes this message: an SDK makes it for its caller.
    """

    subtype: Literal["mirror_error"] = constant("mirror_error")
    error: str
    key: MirrorKey


# --- subagents, shell commands and other work, in front or in the background ------------------------------------------


class McpResourceLink(Wire, kw_only=True, frozen=True):
    """A resource that an MCP server offers, by its URI; ``size`` is in bytes."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mimeType: str | None = None
    size: Number | None = None
    annotations: dict[str, Any] | None = None


class TaskStartedMessage(SystemMessage, kw_only=True, frozen=True):
    """A task has begun: a subagent, a shell command or other work.

    ``task_type`` is ``local_agent``, ``local_bash`` or another word. ``tool_use_id`` is the id of the tool call that
    has started the task; ``subagent_type`` and ``prompt`` are present for subagents.
    """

    subtype: Literal["task_started"] = constant("task_started")
    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    description: str
    subagent_type: str | None = None
    is_backgrounded: bool | None = None
    spawn_depth: int | None = None
    parent_task_id: str | None = None
    task_type: str | None = None
    workflow_name: str | None = None
    prompt: str | None = None
    skip_transcript: bool | None = None
    ambient: bool | None = None
    awaited: bool | None = None
    owned_by_subagent: bool | None = None


class TaskProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """The current activity of a task, and its usage so far.

    ``description`` describes the current step, not the task.
    """

    subtype: Literal["task_progress"] = constant("task_progress")
    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    description: str
    subagent_type: str | None = None
    usage: TaskUsage
    last_tool_name: str | None = None
    summary: str | None = None


class TaskPatch(Wire, kw_only=True, frozen=True):
    """The changed fields of a task. Absent fields have not changed.

    ``end_time`` is Unix time in milliseconds. A task that was stopped has the status ``killed`` here and ``stopped``
    in :class:`TaskNotificationMessage`.
    """

    # one of completed, pending, failed, running, killed, paused
    status: str | None = None
    description: str | None = None
    end_time: Number | None = None
    total_paused_ms: Number | None = None
    error: str | None = None
    is_backgrounded: bool | None = None


class TaskUpdatedMessage(SystemMessage, kw_only=True, frozen=True):
    """A task has changed; a final status in ``patch`` ends it.

    This message, :class:`TaskNotificationMessage` or both report the end of a task. The first report counts.
    """

    subtype: Literal["task_updated"] = constant("task_updated")
    task_id: str | None = None
    run_id: str | None = None
    patch: TaskPatch | None = None


class TaskNotificationMessage(SystemMessage, kw_only=True, frozen=True):
    """A task has ended, with its final status and its output.

    ``output_file`` is a path on the CLI's machine; empty if there is no file. Some ends of tasks are reported only by a
    :class:`TaskUpdatedMessage`.
    """

    subtype: Literal["task_notification"] = constant("task_notification")
    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    # one of completed, failed, stopped
    status: str
    reason: str | None = None
    output_file: str
    summary: str
    usage: TaskUsage | None = None
    resource_links: list[McpResourceLink] | None = None
    skip_transcript: bool | None = None
    ambient: bool | None = None
    summary_is_report: bool | None = None
    handback: str | None = None
    handback_report: dict[str, Any] | None = None
    owned_by_subagent: bool | None = None


class BackgroundTask(Wire, kw_only=True, frozen=True):
    """A task that is running in the background."""

    task_id: str
    run_id: str | None = None
    task_type: str
    subagent_type: str | None = None
    description: str
    parent_task_id: str | None = None
    ambient: bool | None = None


class BackgroundTasksChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """All tasks that are now running in the background. The list replaces the previous one.

    It is sent when a background task begins or ends. The list is empty after the end of the last task.
    """

    subtype: Literal["background_tasks_changed"] = constant("background_tasks_changed")
    tasks: list[BackgroundTask]


class BackgroundTaskSummary(Wire, kw_only=True, frozen=True):
    """A background task as the input of a ``Stop`` or ``SubagentStop`` hook lists it.

    ``type`` decides which of the optional fields are present.
    """

    id: str
    type: str
    status: str
    description: str
    command: str | None = None
    agent_type: str | None = None
    server: str | None = None
    tool: str | None = None
    name: str | None = None


class SessionCronSummary(Wire, kw_only=True, frozen=True):
    """A scheduled prompt of the session, as the input of a ``Stop`` or ``SubagentStop`` hook lists it."""

    id: str
    schedule: str
    recurring: bool
    prompt: str


class TaskListStatus(Wire, kw_only=True, frozen=True):
    """The status of one task on the task list."""

    id: str
    # one of pending, in_progress, completed
    status: str


class TaskListStatusesMessage(SystemMessage, kw_only=True, frozen=True):
    """The CLI has changed statuses on the task list without a call of the tool TaskUpdate.

    The status of tasks that are not listed is unchanged. A later result of TaskUpdate has precedence. The CLI's public
    interface does not declare this message, but CLI 2.1.331 writes it to some hosts.
    """

    subtype: Literal["task_list_statuses"] = constant("task_list_statuses")
    statuses: list[TaskListStatus]


# --- hooks that the CLI runs ------------------------------------------------------------------------------------------


class HookStartedMessage(SystemMessage, kw_only=True, frozen=True):
    """A hook begins to run; its :class:`HookResponseMessage` has the same ``hook_id``.

    Sent only with ``--include-hook-events``, for hooks that the CLI runs. (Hooks of the host are called by
    ``hook_callback``.) ``hook_name`` is the event with its matcher, such as ``SessionStart:startup``.
    """

    subtype: Literal["hook_started"] = constant("hook_started")
    hook_id: str
    hook_name: str
    hook_event: str
    origin: str | None = None
    label: str | None = None
    plugin_name: str | None = None


class HookProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """The output of a running hook so far."""

    subtype: Literal["hook_progress"] = constant("hook_progress")
    hook_id: str
    hook_name: str
    hook_event: str
    stdout: str
    stderr: str
    output: str
    backgrounded: bool | None = None


class HookResponseMessage(SystemMessage, kw_only=True, frozen=True):
    """A hook has ended, with its output, its exit code and its outcome.

    ``output`` has the text of both streams. CLI 2.1.7 writes only ``hook_event`` and a ``response`` object.
    """

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


# --- a summary takes the place of older messages ----------------------------------------------------------------------


class PreservedSegment(Wire, frozen=True):
    """The uuids of the first and last of the successive messages that a compaction has kept.

    ``anchor_uuid`` is the uuid of the message that is now before them: the summary.
    """

    head_uuid: str
    anchor_uuid: str
    tail_uuid: str


class PreservedMessages(Wire, frozen=True):
    """The uuids of the messages that a compaction has kept.

    ``anchor_uuid`` is the uuid of the message that is now before them: the summary.
    """

    anchor_uuid: str
    uuids: list[str]
    all_uuids: list[str] | None = None


class CompactMetadata(Wire, kw_only=True, frozen=True):
    """The trigger of a compaction, token counts before and after, and its duration in milliseconds.

    ``trigger`` is ``manual`` for ``/compact`` and ``auto`` otherwise. The two ``preserved_`` fields are missing when
    no message was kept.
    """

    # one of auto, manual
    trigger: str
    pre_tokens: Number
    post_tokens: Number | None = None
    duration_ms: Number | None = None
    preserved_segment: PreservedSegment | None = None
    preserved_messages: PreservedMessages | None = None
    cumulative_dropped_tokens: Number | None = None


class CompactBoundaryMessage(SystemMessage, kw_only=True, frozen=True):
    """After this message the model sees a summary instead of the earlier messages.

    It follows the :class:`StatusMessage` for the end of the compaction. The summary follows as a synthetic user
    message.
    """

    subtype: Literal["compact_boundary"] = constant("compact_boundary")
    compact_metadata: CompactMetadata
    logical_parent_uuid: str | None = None


# --- requests to the API that failed, and models that take over from others -------------------------------------------


class NoResponse(Wire, frozen=True):
    """The API gave no answer for ``waited_ms`` milliseconds. The CLI tries again after ``retry_wait_ms``."""

    waited_ms: Number
    retry_wait_ms: Number


class ApiRetryMessage(SystemMessage, kw_only=True, frozen=True):
    """A request to the API has failed, and is repeated after ``retry_delay_ms`` milliseconds.

    ``attempt`` counts from 1 to ``max_retries``. A null ``error_status`` means that there was no HTTP answer.
    """

    subtype: Literal["api_retry"] = constant("api_retry")
    attempt: int
    max_retries: int
    retry_delay_ms: Number
    error_status: int | None = null()
    # one of those of AssistantMessage.error
    error: str
    no_response: NoResponse | None = None


class ModelRefusalFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """The model has refused. ``direction`` says whether the session changes to a fallback model, or back.

    The messages in ``retracted_message_uuids`` are withdrawn, and a front end should hide them. ``content`` is a text
    for the user.
    """

    subtype: Literal["model_refusal_fallback"] = constant("model_refusal_fallback")
    trigger: str
    # one of retry, revert, sticky
    direction: str
    # one of session, local
    scope: str | None = None
    original_model: str
    fallback_model: str
    request_id: str | None = null()
    api_refusal_category: str | UnsetType | None = UNSET
    api_refusal_explanation: str | UnsetType | None = UNSET
    retracted_message_uuids: list[str] | None = None
    refused_user_message_uuid: str | UnsetType | None = UNSET
    content: str
    saw_cyber_refusal: bool | None = None
    api_refusal_cyber_verification: dict[str, Any] | None = None


class ModelRefusalNoFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """The model has refused, and no fallback model answers instead. ``content`` is a text for the user."""

    subtype: Literal["model_refusal_no_fallback"] = constant("model_refusal_no_fallback")
    original_model: str
    request_id: str | None = null()
    api_refusal_category: str | UnsetType | None = UNSET
    api_refusal_explanation: str | UnsetType | None = UNSET
    refused_user_message_uuid: str | UnsetType | None = UNSET
    content: str


class ModelFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """The model is not available, and the fallback model answers instead.

    It is sent after the retries, and before the answer of the fallback model. ``trigger`` is the reason, such as
    ``overloaded``.
    """

    subtype: Literal["model_fallback"] = constant("model_fallback")
    trigger: str | None = None
    original_model: str | None = None
    fallback_model: str | None = None
    content: str | None = None
