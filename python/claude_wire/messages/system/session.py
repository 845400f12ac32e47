"""``system`` messages about the session itself: its state, title, commands, files and memories, and notes to the
user."""

from __future__ import annotations

from typing import Any, Literal

from claude_wire.messages.base import Number, Wire, constant
from claude_wire.messages.control.catalog import SlashCommand
from claude_wire.messages.system.base import SystemMessage


class SessionStateChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """The session began to run, became idle, or waits for the host.

    ``idle`` comes after the result, once background work is done too. Sent only when the host asks by environment
    variable, ``CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1``.
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
    """The process behind the session is about to end, for those who follow it live."""

    subtype: Literal["worker_shutting_down"] = constant("worker_shutting_down")
    reason: str


class CommandsChangedMessage(SystemMessage, kw_only=True, frozen=True):
    """The whole new list of slash commands; it replaces the one known before."""

    subtype: Literal["commands_changed"] = constant("commands_changed")
    commands: list[SlashCommand]


class NotificationMessage(SystemMessage, kw_only=True, frozen=True):
    """A short notice that the CLI would show in its interface for a while.

    Notices of the same sort have the same ``key``; ``timeout_ms`` is how long to show it, in milliseconds.
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
    """What the host shows of the session may be out of date."""

    subtype: Literal["ui_invalidate"] = constant("ui_invalidate")
    event: str | None = None
    prompts_screened: bool | None = None
    instances: list[dict[str, Any]] | None = None
    unhooked: list[str] | None = None


class PersistedFile(Wire, frozen=True):
    """A file that was stored, with the id it got."""

    filename: str
    file_id: str


class PersistFailure(Wire, frozen=True):
    """A file that could not be stored, and why."""

    filename: str
    error: str


class FilesPersistedMessage(SystemMessage, kw_only=True, frozen=True):
    """Files of the session were stored, and some perhaps not; look at ``failed``."""

    subtype: Literal["files_persisted"] = constant("files_persisted")
    files: list[PersistedFile]
    failed: list[PersistFailure]
    processed_at: str


class SessionWritesLostMessage(SystemMessage, kw_only=True, frozen=True):
    """The disk is full or over quota, and what the CLI meant to save is lost.

    ``error_code`` and ``lost`` are open sets; ``lost`` names ``transcript`` or ``global_config``.
    """

    subtype: Literal["session_writes_lost"] = constant("session_writes_lost")
    # one of ENOSPC, EDQUOT
    error_code: str
    lost: list[str]
    transcript_session_ids: list[str] | None = None


class RecalledMemory(Wire, frozen=True):
    """One memory that was recalled: its path, whose it is and, perhaps, its text."""

    path: str
    # one of personal, team, organization
    scope: str
    content: str | None = None


class MemoryRecallMessage(SystemMessage, kw_only=True, frozen=True):
    """Memories were recalled for the turn, either picked as they are or put together into one text."""

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
    """The host's own copy of the transcript could not be written.

    An SDK makes this message for its caller; the CLI never writes it.
    """

    subtype: Literal["mirror_error"] = constant("mirror_error")
    error: str
    key: MirrorKey
