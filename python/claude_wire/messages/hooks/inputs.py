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
    """The text of the notification."""
    title: str | None = None
    notification_type: str | None = None
    """What the notification is about, such as ``elicitation_response``."""


class UserPromptSubmitHookInput(HookInputBase, tag="UserPromptSubmit", kw_only=True, frozen=True):
    """A prompt has been submitted and its turn has not begun; the hook may block it.

    Comes before the turn's ``system/init`` message.
    """

    prompt: str
    """The text of the prompt."""
    # one of user, system, sdk, loop_wakeup, schedule_wakeup, poll_event
    source: str | None = None
    """Who wrote the prompt: ``sdk`` for one on stdin, others for wake-ups and injected turns. May be absent."""
    session_title: str | None = None
    """The title of the session, if it has one."""


class UserPromptExpansionHookInput(HookInputBase, tag="UserPromptExpansion", kw_only=True, frozen=True):
    """A typed command is being expanded into a prompt; the hook may block it."""

    # one of slash_command, mcp_prompt
    expansion_type: str
    """The kind of command."""
    command_name: str
    """The name of the command, without the slash."""
    command_args: str
    """The text after the name of the command."""
    command_source: str | None = None
    """Where the command is defined, such as ``projectSettings``."""
    prompt: str
    """The command as typed."""


class SessionStartHookInput(HookInputBase, tag="SessionStart", kw_only=True, frozen=True):
    """A session begins, is resumed or forked, or goes on after ``/clear`` or a compaction."""

    # one of clear, startup, resume, compact, fork
    source: str
    """Why the hook runs: how the session began or goes on."""
    model: str | None = None
    """The model that answers."""
    session_title: str | None = None
    """The title of the session, if it has one."""
    seconds_since_last_response: Number | None = None
    """Seconds since the last answer of the conversation. Only with ``resume`` and ``fork``."""
    context_tokens: Number | None = None
    """The tokens of the conversation so far. Only with ``resume`` and ``fork``."""
    prompt_cache_likely_expired: bool | None = None
    """True if the prompt cache has probably lost the conversation. Only with ``resume`` and ``fork``."""
    estimated_cache_write_usd: Number | None = None
    """What caching ``context_tokens`` again would cost, in US dollars. Only with ``resume`` and ``fork``."""


class SessionEndHookInput(HookInputBase, tag="SessionEnd", kw_only=True, frozen=True):
    """The session ends. The hook need not answer."""

    # one of clear, other, resume, logout, prompt_input_exit
    reason: str
    """Why the session ends."""


class StopHookInput(HookInputBase, tag="Stop", kw_only=True, frozen=True):
    """The model is about to end its turn; the hook may make it go on.

    It comes before the result.
    """

    stop_hook_active: bool
    """True if a stop hook already made this turn go on. Check it, or the turn may never end."""
    last_assistant_message: str | None = None
    """The text of the last assistant message."""
    background_tasks: list[BackgroundTaskSummary] | None = None
    """The tasks that still run; empty if there are none."""
    session_crons: list[SessionCronSummary] | None = None
    """The schedules that will wake the session later; empty if there are none."""


class StopFailureHookInput(HookInputBase, tag="StopFailure", kw_only=True, frozen=True):
    """The turn ended with an API error.

    The CLI sends it instead of :class:`StopHookInput`. There is no output for this event.
    """

    # one of those of AssistantMessage.error
    error: str
    """Why the API refused. New values may come."""
    error_details: str | None = None
    """More text about the error."""
    last_assistant_message: str | None = None
    """The text of the last assistant message, which reports the error."""


class SubagentStartHookInput(HookInputBase, tag="SubagentStart", kw_only=True, frozen=True):
    """A subagent has been started; ``agent_id`` and ``agent_type`` say which."""


class SubagentStopHookInput(HookInputBase, tag="SubagentStop", kw_only=True, frozen=True):
    """A subagent is about to finish; the hook may make it go on."""

    stop_hook_active: bool
    """True if a stop hook already made the subagent go on. Check it, or it may never end."""
    agent_transcript_path: str | None = None
    """The path of the subagent's own transcript; ``transcript_path`` is that of the session."""
    last_assistant_message: str | None = None
    """The text of the subagent's last assistant message."""
    background_tasks: list[BackgroundTaskSummary] | None = None
    """The tasks that still run; empty if there are none."""
    session_crons: list[SessionCronSummary] | None = None
    """The schedules that will wake the session later; empty if there are none."""


class PreCompactHookInput(HookInputBase, tag="PreCompact", kw_only=True, frozen=True):
    """The conversation is about to be compacted."""

    # one of auto, manual
    trigger: str
    """``manual`` for ``/compact``, ``auto`` otherwise."""
    custom_instructions: str | None = null()
    """The text after ``/compact``; null if there is none."""


class PostCompactHookInput(HookInputBase, tag="PostCompact", kw_only=True, frozen=True):
    """The conversation has been compacted.

    Seen after the :class:`SessionStartHookInput` with source ``compact``.
    """

    # one of auto, manual
    trigger: str
    """``manual`` for ``/compact``, ``auto`` otherwise."""
    compact_summary: str
    """The summary that replaces the conversation."""


class _ModelSwitchHookInput(HookInputBase, kw_only=True, frozen=True):
    from_model: str
    """The id of the model before the switch."""
    to_model: str
    """The id of the model after the switch."""
    requested_model: str | None = null()
    """The name that was asked for, such as ``opus`` or a full id; null for the default."""
    # one of auto, sdk, resume, command, picker
    source: str
    """What switched the model: ``sdk`` is a control request, ``command`` is ``/model``, ``auto`` is a fallback."""
    context_tokens: Number
    """The tokens that the next request sends again; 0 before the first answer."""
    prompt_cache_warm: bool
    """True if the prompt cache of the previous model probably still has the conversation."""
    # one of 5m, 1h
    cache_ttl: str
    """How long the prompt cache keeps the conversation."""
    estimated_cache_write_usd: Number
    """What caching ``context_tokens`` for the new model costs, in US dollars, without the answer."""
    # one of default, configured, catalog
    pricing: str
    """The prices: ``catalog`` is the list, ``configured`` is managed settings, ``default`` is for an unknown model."""


class PreModelSwitchHookInput(_ModelSwitchHookInput, tag="PreModelSwitch", kw_only=True, frozen=True):
    """A switch of the model has been asked for; the hook may deny it.

    ``source`` is ``sdk``, ``command`` or ``picker``.
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
    """What the setup is for."""


class TeammateIdleHookInput(HookInputBase, tag="TeammateIdle", kw_only=True, frozen=True):
    """A teammate agent is about to go idle."""

    teammate_name: str
    team_name: str
    """The name of the team. Deprecated."""


class _TaskHookInput(HookInputBase, kw_only=True, frozen=True):
    task_id: str
    """The id of the task on the task list."""
    task_subject: str
    """The task in a few words."""
    task_description: str | None = None
    """The task in full."""
    teammate_name: str | None = None
    """The name of the teammate that has the task."""
    team_name: str | None = None
    """The name of the team. Deprecated."""


class TaskCreatedHookInput(_TaskHookInput, tag="TaskCreated", kw_only=True, frozen=True):
    """A task is being put on the task list."""


class TaskCompletedHookInput(_TaskHookInput, tag="TaskCompleted", kw_only=True, frozen=True):
    """A task of the task list is being marked as completed."""


class ElicitationHookInput(HookInputBase, tag="Elicitation", kw_only=True, frozen=True):
    """An MCP server asks the user for input; the hook may answer in the user's place."""

    mcp_server_name: str
    """The name of the MCP server that asks."""
    message: str
    """The question, as text for the user."""
    # one of form, url
    mode: str | None = None
    """How the user answers: in a form, or at a web page."""
    url: str | None = None
    """The page to open, in the mode ``url``."""
    elicitation_id: str | None = None
    """The id of the question; :class:`ElicitationCompleteMessage` repeats it. Only in the mode ``url``."""
    requested_schema: dict[str, Any] | None = None
    """The JSON schema of the answer, in the mode ``form``."""


class ElicitationResultHookInput(HookInputBase, tag="ElicitationResult", kw_only=True, frozen=True):
    """The user has answered an MCP server; the hook may change the answer before it goes out."""

    mcp_server_name: str
    """The name of the MCP server that asked."""
    elicitation_id: str | None = None
    """The id of the question. Only in the mode ``url``."""
    # one of form, url
    mode: str | None = None
    """How the user answered: in a form, or at a web page."""
    # one of cancel, accept, decline
    action: str
    """What the user did; ``cancel`` if the user did not decide."""
    content: dict[str, Any] | None = None
    """The filled form, with ``accept``."""


class ConfigChangeHookInput(HookInputBase, tag="ConfigChange", kw_only=True, frozen=True):
    """A settings file or a skill has changed on disk during the session."""

    # one of user_settings, project_settings, local_settings, policy_settings, skills
    source: str
    """The kind of settings that changed."""
    file_path: str | None = None
    """The file that changed."""


class InstructionsLoadedHookInput(HookInputBase, tag="InstructionsLoaded", kw_only=True, frozen=True):
    """An instruction file (a ``CLAUDE.md`` or a rule) has been loaded."""

    file_path: str
    """The file that was loaded."""
    # one of User, Project, Local, Managed
    memory_type: str
    """The level that the file belongs to."""
    # one of compact, session_start, nested_traversal, path_glob_match, include
    load_reason: str
    """Why the file was loaded."""
    globs: list[str] | None = None
    """The patterns that brought the file in, with ``path_glob_match``."""
    trigger_file_path: str | None = None
    """The file that the model worked on, if that brought this file in."""
    parent_file_path: str | None = None
    """The file that includes this one, with ``include``."""


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
    """The working directory before the change."""
    new_cwd: str
    """The working directory now."""


class FileChangedHookInput(HookInputBase, tag="FileChanged", kw_only=True, frozen=True):
    """A watched file was changed, added or removed.

    Files are watched when a hook has named them in ``watchPaths``.
    """

    file_path: str
    """The file that changed."""
    # one of change, add, unlink
    event: str
    """What happened to the file; ``unlink`` if it was removed."""


class DirectoryAddedHookInput(HookInputBase, tag="DirectoryAdded", kw_only=True, frozen=True):
    """A working directory has been added during the session."""

    directory: str
    """The absolute path of the directory."""
    # one of register_repo_root, slash_command
    source: str
    """How the directory was added: by the control request ``register_repo_root``, or by ``/add-dir``."""


class MessageDisplayHookInput(HookInputBase, tag="MessageDisplay", kw_only=True, frozen=True):
    """New lines of an assistant message are about to be shown.

    Comes before the message itself, one call for each flush.
    """

    turn_id: str
    """The UUID of the turn."""
    message_id: str
    """The UUID of the message, the same in all its calls; not the API's ``msg_...`` id."""
    index: int
    """The number of this call for the message, from 0."""
    final: bool
    """True on the last call for the message, and only there."""
    delta: str
    """The lines since the previous call. Empty on a last call if the message ends with a newline."""


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
