"""The input that the CLI sends to a hook: one Struct for each event.

They arrive in :attr:`HookCallbackRequest.input`, only for events that the host registered with ``initialize``.
``hook_event_name`` selects the class. Member names are snake_case; the answers to them are camelCase.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from claude_wire.messages.base import Number, null
from claude_wire.messages.hooks.tool_inputs import (
    HookInputBase,
    PermissionDeniedHookInput,
    PermissionRequestHookInput,
    PostToolBatchHookInput,
    PostToolUseFailureHookInput,
    PostToolUseHookInput,
    PreToolUseHookInput,
)
from claude_wire.messages.system import BackgroundTaskSummary, SessionCronSummary
from claude_wire.messages.unknown import OrUnknownHookInput


class NotificationHookInput(HookInputBase, tag="Notification", kw_only=True, frozen=True):
    """The CLI notifies the user of something, such as that it waits for an answer."""

    message: str
    title: str | None = None
    notification_type: str | None = None


class UserPromptSubmitHookInput(HookInputBase, tag="UserPromptSubmit", kw_only=True, frozen=True):
    """A prompt has been submitted and its turn has not begun; the hook may block it.

    Comes before the turn's ``system/init`` message. ``source`` says who wrote it (``sdk`` for prompts on stdin,
    others for wake-ups and injected turns); it may be absent.
    """

    prompt: str
    # one of user, system, sdk, loop_wakeup, schedule_wakeup, poll_event
    source: str | None = None
    session_title: str | None = None


class UserPromptExpansionHookInput(HookInputBase, tag="UserPromptExpansion", kw_only=True, frozen=True):
    """A typed command is being expanded into a prompt; the hook may block it.

    ``prompt`` is the text, ``command_name`` and ``command_args`` are the parts of the command.
    """

    # one of slash_command, mcp_prompt
    expansion_type: str
    command_name: str
    command_args: str
    command_source: str | None = None
    prompt: str


class SessionStartHookInput(HookInputBase, tag="SessionStart", kw_only=True, frozen=True):
    """A session begins, is resumed or forked, or goes on after ``/clear`` or a compaction.

    The last four members come with ``resume`` and ``fork`` only: how old the conversation is (seconds), how many
    tokens it holds, and what it would cost to cache them again (USD, estimated).
    """

    # one of clear, startup, resume, compact, fork
    source: str
    model: str | None = None
    session_title: str | None = None
    seconds_since_last_response: Number | None = None
    context_tokens: Number | None = None
    prompt_cache_likely_expired: bool | None = None
    estimated_cache_write_usd: Number | None = None


class SessionEndHookInput(HookInputBase, tag="SessionEnd", kw_only=True, frozen=True):
    """The session ends. The hook need not answer."""

    # one of clear, other, resume, logout, prompt_input_exit
    reason: str


class StopHookInput(HookInputBase, tag="Stop", kw_only=True, frozen=True):
    """The model is about to end its turn; the hook may make it go on.

    It comes before the result. ``stop_hook_active`` is true if the turn already goes on because of a stop hook. Check
    it, or the turn may never end. Empty ``background_tasks`` and ``session_crons`` mean that nothing will wake the
    session later.
    """

    stop_hook_active: bool
    last_assistant_message: str | None = None
    background_tasks: list[BackgroundTaskSummary] | None = None
    session_crons: list[SessionCronSummary] | None = None


class StopFailureHookInput(HookInputBase, tag="StopFailure", kw_only=True, frozen=True):
    """The turn ended with an API error.

    The CLI sends it instead of :class:`StopHookInput`. ``error`` may have values not known today. There is no output
    for this event.
    """

    # one of those of AssistantMessage.error
    error: str
    error_details: str | None = None
    last_assistant_message: str | None = None


class SubagentStartHookInput(HookInputBase, tag="SubagentStart", kw_only=True, frozen=True):
    """A subagent has been started; ``agent_id`` and ``agent_type`` say which."""


class SubagentStopHookInput(HookInputBase, tag="SubagentStop", kw_only=True, frozen=True):
    """A subagent is about to finish; the hook may make it go on.

    ``agent_transcript_path`` is the subagent's own transcript, ``transcript_path`` that of the session.
    """

    stop_hook_active: bool
    agent_transcript_path: str | None = None
    last_assistant_message: str | None = None
    background_tasks: list[BackgroundTaskSummary] | None = None
    session_crons: list[SessionCronSummary] | None = None


class PreCompactHookInput(HookInputBase, tag="PreCompact", kw_only=True, frozen=True):
    """The conversation is about to be compacted.

    ``custom_instructions`` is the text after ``/compact``, null when there is none.
    """

    # one of auto, manual
    trigger: str
    custom_instructions: str | None = null()


class PostCompactHookInput(HookInputBase, tag="PostCompact", kw_only=True, frozen=True):
    """The conversation has been compacted; ``compact_summary`` replaces it from now on.

    Seen after the :class:`SessionStartHookInput` with source ``compact``.
    """

    # one of auto, manual
    trigger: str
    compact_summary: str


class _ModelSwitchHookInput(HookInputBase, kw_only=True, frozen=True):
    from_model: str
    to_model: str
    requested_model: str | None = null()
    # one of auto, sdk, resume, command, picker
    source: str
    context_tokens: Number
    prompt_cache_warm: bool
    # one of 5m, 1h
    cache_ttl: str
    estimated_cache_write_usd: Number
    # one of default, configured, catalog
    pricing: str


class PreModelSwitchHookInput(_ModelSwitchHookInput, tag="PreModelSwitch", kw_only=True, frozen=True):
    """A switch of the model has been asked for; the hook may deny it.

    ``requested_model`` is the requested name, null for the default; the other two are resolved ids. ``context_tokens``
    is the number of tokens that the next request must send again, ``estimated_cache_write_usd`` the cost of caching
    them (USD, without the reply). ``source`` is ``sdk``, ``command`` or ``picker``.
    """


class PostModelSwitchHookInput(_ModelSwitchHookInput, tag="PostModelSwitch", kw_only=True, frozen=True):
    """The model of the session has changed, for whatever reason.

    Unlike :class:`PreModelSwitchHookInput`, which has the same fields, it also comes for fallbacks (``auto``) and for
    resumed sessions.
    """


class SetupHookInput(HookInputBase, tag="Setup", kw_only=True, frozen=True):
    """The CLI was started to set up or maintain a repository."""

    # one of init, maintenance
    trigger: str


class TeammateIdleHookInput(HookInputBase, tag="TeammateIdle", kw_only=True, frozen=True):
    """A teammate agent is about to go idle.

    ``team_name`` is deprecated.
    """

    teammate_name: str
    team_name: str


class _TaskHookInput(HookInputBase, kw_only=True, frozen=True):
    task_id: str
    task_subject: str
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class TaskCreatedHookInput(_TaskHookInput, tag="TaskCreated", kw_only=True, frozen=True):
    """A task is being put on the task list.

    ``team_name`` is deprecated.
    """


class TaskCompletedHookInput(_TaskHookInput, tag="TaskCompleted", kw_only=True, frozen=True):
    """A task of the task list is being marked as completed.

    ``team_name`` is deprecated.
    """


class ElicitationHookInput(HookInputBase, tag="Elicitation", kw_only=True, frozen=True):
    """An MCP server asks the user for input; the hook may answer in the user's place.

    ``url`` belongs to the mode ``url``, ``requested_schema`` to the mode ``form``.
    """

    mcp_server_name: str
    message: str
    # one of form, url
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None


class ElicitationResultHookInput(HookInputBase, tag="ElicitationResult", kw_only=True, frozen=True):
    """The user has answered an MCP server; the hook may change the answer before it goes out."""

    mcp_server_name: str
    elicitation_id: str | None = None
    # one of form, url
    mode: str | None = None
    # one of cancel, accept, decline
    action: str
    content: dict[str, Any] | None = None


class ConfigChangeHookInput(HookInputBase, tag="ConfigChange", kw_only=True, frozen=True):
    """A settings file or a skill has changed on disk during the session."""

    # one of user_settings, project_settings, local_settings, policy_settings, skills
    source: str
    file_path: str | None = None


class InstructionsLoadedHookInput(HookInputBase, tag="InstructionsLoaded", kw_only=True, frozen=True):
    """An instruction file (a ``CLAUDE.md`` or a rule) has been loaded.

    ``load_reason`` says why; the last three members name the patterns or the file that brought it in.
    """

    file_path: str
    # one of User, Project, Local, Managed
    memory_type: str
    # one of compact, session_start, nested_traversal, path_glob_match, include
    load_reason: str
    globs: list[str] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None


class WorktreeCreateHookInput(HookInputBase, tag="WorktreeCreate", kw_only=True, frozen=True):
    """The hook is asked to create an isolated worktree.

    This needs an answer, which must name the path; see :class:`WorktreeCreateHookSpecificOutput`.
    """

    name: str


class WorktreeRemoveHookInput(HookInputBase, tag="WorktreeRemove", kw_only=True, frozen=True):
    """The hook is asked to remove a worktree that a hook created before."""

    worktree_path: str


class CwdChangedHookInput(HookInputBase, tag="CwdChanged", kw_only=True, frozen=True):
    """The working directory of the session has changed."""

    old_cwd: str
    new_cwd: str


class FileChangedHookInput(HookInputBase, tag="FileChanged", kw_only=True, frozen=True):
    """A watched file was changed, added or removed (``unlink``).

    Files are watched when a hook has named them in ``watchPaths``.
    """

    file_path: str
    # one of change, add, unlink
    event: str


class DirectoryAddedHookInput(HookInputBase, tag="DirectoryAdded", kw_only=True, frozen=True):
    """A working directory has been added during the session.

    ``source`` is ``register_repo_root`` for the control request of that name, ``slash_command`` for ``/add-dir``.
    """

    directory: str
    # one of register_repo_root, slash_command
    source: str


class MessageDisplayHookInput(HookInputBase, tag="MessageDisplay", kw_only=True, frozen=True):
    """New lines of an assistant message are about to be shown.

    Comes before the message itself, one call for each flush: ``delta`` holds the lines since the last one, ``index``
    counts from 0, and exactly one call of a message has ``final`` true, possibly with an empty ``delta``.
    ``message_id`` is a UUID, not the API's ``msg_...`` id.
    """

    turn_id: str
    message_id: str
    index: int
    final: bool
    delta: str


#: The input of a hook; each event has its class.
HookInput: TypeAlias = (
    PreToolUseHookInput
    | PostToolUseHookInput
    | PostToolUseFailureHookInput
    | PostToolBatchHookInput
    | PermissionDeniedHookInput
    | PermissionRequestHookInput
    | NotificationHookInput
    | UserPromptSubmitHookInput
    | UserPromptExpansionHookInput
    | SessionStartHookInput
    | SessionEndHookInput
    | StopHookInput
    | StopFailureHookInput
    | SubagentStartHookInput
    | SubagentStopHookInput
    | PreCompactHookInput
    | PostCompactHookInput
    | PreModelSwitchHookInput
    | PostModelSwitchHookInput
    | SetupHookInput
    | TeammateIdleHookInput
    | TaskCreatedHookInput
    | TaskCompletedHookInput
    | ElicitationHookInput
    | ElicitationResultHookInput
    | ConfigChangeHookInput
    | InstructionsLoadedHookInput
    | WorktreeCreateHookInput
    | WorktreeRemoveHookInput
    | CwdChangedHookInput
    | FileChangedHookInput
    | DirectoryAddedHookInput
    | MessageDisplayHookInput
    | OrUnknownHookInput
)
