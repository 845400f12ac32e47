"""Hooks that the CLI runs: start, output and end."""

from __future__ import annotations

from typing import Any, Literal

from claude_wire.messages.base import constant
from claude_wire.messages.system.base import SystemMessage


class HookStartedMessage(SystemMessage, kw_only=True, frozen=True):
    """A hook begins to run; its :class:`HookResponseMessage` has the same ``hook_id``.

    Asked for with ``--include-hook-events``, and about hooks that the CLI runs; a hook of the host is asked by
    ``hook_callback`` instead. ``hook_name`` is the event with its matcher, such as ``SessionStart:startup``.
    """

    subtype: Literal["hook_started"] = constant("hook_started")
    hook_id: str
    hook_name: str
    hook_event: str
    origin: str | None = None
    label: str | None = None
    plugin_name: str | None = None


class HookProgressMessage(SystemMessage, kw_only=True, frozen=True):
    """What a running hook has printed so far."""

    subtype: Literal["hook_progress"] = constant("hook_progress")
    hook_id: str
    hook_name: str
    hook_event: str
    stdout: str
    stderr: str
    output: str
    backgrounded: bool | None = None


class HookResponseMessage(SystemMessage, kw_only=True, frozen=True):
    """A hook has ended: what it printed, its exit code and its outcome.

    ``output`` is both streams together. The 2.1.7 CLI's dialect has ``hook_event`` and a ``response`` object and
    nothing else of it.
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
