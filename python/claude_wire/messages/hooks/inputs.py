"""The inputs of hooks: a class for each event.

The CLI sends them in :attr:`HookCallbackRequest.input`, for the events that the host registered with ``initialize``.
``hook_event_name`` selects the class. Keys of inputs are snake_case, and keys of outputs are camelCase.
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
    """The CLI notifies the user, for example when it waits for an answer."""

    message: str
    """The text of the notification."""
    title: str | None = None
    notification_type: str | None = None
    """The kind of notification, such as ``elicitation_response``."""


class UserPromptSubmitHookInput(HookInputBase, tag="UserPromptSubmit", kw_only=True, frozen=True):
    """The CLI received a prompt, but has not begun the turn with ``system/init``. The hook may block the prompt."""

    prompt: str
    """The text of the prompt."""
    # one of user, system, sdk, loop_wakeup, schedule_wakeup, poll_event
    source: str | None = None
    """Where the prompt comes from: ``sdk`` is stdin, others are wake-ups and injected turns; may be absent."""
    session_title: str | None = None
    """The title of the session, if it has one."""


class UserPromptExpansionHookInput(HookInputBase, tag="UserPromptExpansion", kw_only=True, frozen=True):
    """The CLI is expanding a command into a prompt. The hook may block the prompt."""

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
    """A session begins, is resumed or forked, or continues after ``/clear`` or a compaction."""

    # one of clear, startup, resume, compact, fork
    source: str
    """How the session began or continues."""
    model: str | None = None
    """The model that answers."""
    session_title: str | None = None
    """The title of the session, if it has one."""
    seconds_since_last_response: Number | None = None
    """Seconds since the last answer of the conversation; only with ``resume`` and ``fork``."""
    context_tokens: Number | None = None
    """The tokens of the conversation so far; only with ``resume`` and ``fork``."""
    prompt_cache_likely_expired: bool | None = None
    """True if the prompt cache probably lost the conversation; only with ``resume`` and ``fork``."""
    estimated_cache_write_usd: Number | None = None
    """The cost of caching ``context_tokens`` again, in US dollars; only with ``resume`` and ``fork``."""


class SessionEndHookInput(HookInputBase, tag="SessionEnd", kw_only=True, frozen=True):
    """The session ends. The hook may ignore this event."""

    # one of clear, other, resume, logout, prompt_input_exit
    reason: str
    """Why the session ends."""


class StopHookInput(HookInputBase, tag="Stop", kw_only=True, frozen=True):
    """The model is about to end its turn, before the result. The hook may make the model continue."""

    stop_hook_active: bool
    """True if a stop hook already continued this turn; check this, or the turn may never end."""
    last_assistant_message: str | None = None
    """The text of the last assistant message."""
    background_tasks: list[BackgroundTaskSummary] | None = None
    """The tasks that are still running."""
    session_crons: list[SessionCronSummary] | None = None
    """The schedules that will wake the session later."""


class StopFailureHookInput(HookInputBase, tag="StopFailure", kw_only=True, frozen=True):
    """The turn ended with an API error, so there is no :class:`StopHookInput`. The hook's output has no effect."""

    # one of those of AssistantMessage.error
    error: str
    """Why the API refused; other values are possible."""
    error_details: str | None = None
    """More text about the error."""
    last_assistant_message: str | None = None
    """The text of the last assistant message, which reports the error."""


class SubagentStartHookInput(HookInputBase, tag="SubagentStart", kw_only=True, frozen=True):
    """A subagent started; ``agent_id`` and ``agent_type`` identify the subagent."""


class SubagentStopHookInput(HookInputBase, tag="SubagentStop", kw_only=True, frozen=True):
    """A subagent is about to finish. The hook may make the subagent continue."""

    stop_hook_active: bool
    """True if a stop hook already continued the subagent; check this, or the subagent may never end."""
    agent_transcript_path: str | None = None
    """The path of the subagent's transcript; ``transcript_path`` is the session's."""
    last_assistant_message: str | None = None
    """The text of the subagent's last assistant message."""
    background_tasks: list[BackgroundTaskSummary] | None = None
    """The tasks that are still running."""
    session_crons: list[SessionCronSummary] | None = None
    """The schedules that will wake the session later."""


class PreCompactHookInput(HookInputBase, tag="PreCompact", kw_only=True, frozen=True):
    """The CLI is about to compact the conversation."""

    # one of auto, manual
    trigger: str
    """``manual`` for ``/compact``, ``auto`` otherwise."""
    custom_instructions: str | None = null()
    """The text after ``/compact``; null if there is none."""


class PostCompactHookInput(HookInputBase, tag="PostCompact", kw_only=True, frozen=True):
    """The CLI compacted the conversation, after a :class:`SessionStartHookInput` with the source ``compact``."""

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
    """The requested name, such as ``opus`` or an id; null for the default."""
    # one of auto, sdk, resume, command, picker
    source: str
    """The cause of the switch: ``sdk`` is a control request, ``command`` is ``/model``, ``auto`` is a fallback."""
    context_tokens: Number
    """The tokens of the conversation in the next API request; 0 before the first answer."""
    prompt_cache_warm: bool
    """True if the old model's prompt cache probably still has the conversation."""
    # one of 5m, 1h
    cache_ttl: str
    """How long the prompt cache keeps the conversation."""
    estimated_cache_write_usd: Number
    """The cost of caching ``context_tokens`` for the new model in US dollars, excluding the answer."""
    # one of default, configured, catalog
    pricing: str
    """The prices: ``catalog``: a list; ``configured``: managed settings; ``default``: for an unknown model."""


class PreModelSwitchHookInput(_ModelSwitchHookInput, tag="PreModelSwitch", kw_only=True, frozen=True):
    """The model is about to change. The hook may refuse. ``source`` is ``sdk``, ``command`` or ``picker``."""


class PostModelSwitchHookInput(_ModelSwitchHookInput, tag="PostModelSwitch", kw_only=True, frozen=True):
    """The model changed, perhaps without a :class:`PreModelSwitchHookInput`: for a fallback or a resumed session."""


class SetupHookInput(HookInputBase, tag="Setup", kw_only=True, frozen=True):
    """The CLI started to set up or maintain a repository."""

    # one of init, maintenance
    trigger: str
    """The purpose of the setup."""


class TeammateIdleHookInput(HookInputBase, tag="TeammateIdle", kw_only=True, frozen=True):
    """A teammate agent is about to go idle."""

    teammate_name: str
    team_name: str
    """The name of the team; deprecated."""


class _TaskHookInput(HookInputBase, kw_only=True, frozen=True):
    task_id: str
    """The id of the task on the task list."""
    task_subject: str
    """The task in a few words."""
    task_description: str | None = None
    """The whole task."""
    teammate_name: str | None = None
    """The name of the teammate that has the task."""
    team_name: str | None = None
    """The name of the team; deprecated."""


class TaskCreatedHookInput(_TaskHookInput, tag="TaskCreated", kw_only=True, frozen=True):
    """The CLI is adding a task to the task list."""


class TaskCompletedHookInput(_TaskHookInput, tag="TaskCompleted", kw_only=True, frozen=True):
    """The CLI is marking a task of the task list as completed."""


class ElicitationHookInput(HookInputBase, tag="Elicitation", kw_only=True, frozen=True):
    """An MCP server asks the user for input. The hook may answer instead of the user."""

    mcp_server_name: str
    """The name of the MCP server that asks."""
    message: str
    """The question, as text for the user."""
    # one of form, url
    mode: str | None = None
    """How the user answers: in a form or on a web page."""
    url: str | None = None
    """The page to open in ``url`` mode."""
    elicitation_id: str | None = None
    """The id that :class:`ElicitationCompleteMessage` repeats; only in ``url`` mode."""
    requested_schema: dict[str, Any] | None = None
    """The JSON schema of the answer in ``form`` mode."""


class ElicitationResultHookInput(HookInputBase, tag="ElicitationResult", kw_only=True, frozen=True):
    """The user answered an MCP server. The hook may change the answer before the CLI sends it."""

    mcp_server_name: str
    """The name of the MCP server that asked."""
    elicitation_id: str | None = None
    """The id of the question; only in ``url`` mode."""
    # one of form, url
    mode: str | None = None
    """How the user answered: in a form or on a web page."""
    # one of cancel, accept, decline
    action: str
    """What the user did; ``cancel`` if the user did not decide."""
    content: dict[str, Any] | None = None
    """The completed form, if ``action`` is ``accept``."""


class ConfigChangeHookInput(HookInputBase, tag="ConfigChange", kw_only=True, frozen=True):
    """A settings file or a skill changed on disk."""

    # one of user_settings, project_settings, local_settings, policy_settings, skills
    source: str
    """The kind of settings that changed."""
    file_path: str | None = None
    """The file that changed."""


class InstructionsLoadedHookInput(HookInputBase, tag="InstructionsLoaded", kw_only=True, frozen=True):
    """The CLI loaded an instruction file: a ``CLAUDE.md`` or a rule."""

    file_path: str
    """The loaded file."""
    # one of User, Project, Local, Managed
    memory_type: str
    """The level of the file."""
    # one of compact, session_start, nested_traversal, path_glob_match, include
    load_reason: str
    """Why the CLI loaded the file."""
    globs: list[str] | None = None
    """The patterns that matched, with ``path_glob_match``."""
    trigger_file_path: str | None = None
    """The file that the model used, which made the CLI load this file, if any."""
    parent_file_path: str | None = None
    """The file that includes this one, with ``include``."""


class WorktreeCreateHookInput(HookInputBase, tag="WorktreeCreate", kw_only=True, frozen=True):
    """The CLI asks the hook to create an isolated worktree.

    The hook must return the path, in a :class:`WorktreeCreateHookSpecificOutput`.
    """

    name: str


class WorktreeRemoveHookInput(HookInputBase, tag="WorktreeRemove", kw_only=True, frozen=True):
    """The CLI asks the hook to remove a worktree that a hook created."""

    worktree_path: str


class CwdChangedHookInput(HookInputBase, tag="CwdChanged", kw_only=True, frozen=True):
    """The working directory of the session changed."""

    old_cwd: str
    """The working directory before the change."""
    new_cwd: str
    """The working directory now."""


class FileChangedHookInput(HookInputBase, tag="FileChanged", kw_only=True, frozen=True):
    """A watched file was changed, added or removed. The CLI watches the files in ``watchPaths`` of hook outputs."""

    file_path: str
    """The file that changed."""
    # one of change, add, unlink
    event: str
    """What happened to the file; ``unlink`` if the file was removed."""


class DirectoryAddedHookInput(HookInputBase, tag="DirectoryAdded", kw_only=True, frozen=True):
    """The session got an additional working directory."""

    directory: str
    """The absolute path of the directory."""
    # one of register_repo_root, slash_command
    source: str
    """How the directory was added: by the control request ``register_repo_root``, or by ``/add-dir``."""


class MessageDisplayHookInput(HookInputBase, tag="MessageDisplay", kw_only=True, frozen=True):
    """The CLI is about to show new lines of an assistant message, which it sends later."""

    turn_id: str
    """The UUID of the turn."""
    message_id: str
    """The UUID of the message, the same in all calls for the message; not the API's ``msg_…`` id."""
    index: int
    """The 0-based number of this call for the message."""
    final: bool
    """True only in the last call for the message."""
    delta: str
    """The lines since the previous call; empty in the last call if the message ends with a newline."""


#: The input of a hook.
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
