"""Which hooks and permission callbacks guard a session, and whether they are ever called.

A guard that is never called looks like one that allows everything. So the session keeps count: what the CLI has
confirmed, what a matcher fits, and how often each function was called.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from claude_wire.control.answers import WrongAnswer
from claude_wire.control.matchers import TOOL_EVENTS, fits_tool
from claude_wire.foundation.arguments import shown, type_of
from claude_wire.messages import AsyncHookOutput, HookOutput
from claude_wire.messages.hooks.outputs import ineffective

if TYPE_CHECKING:
    from claude_wire.control.supervisor_frames import Started
    from claude_wire.messages.base import Wire

__all__ = ["PERMISSION", "Guard", "GuardState", "compare_with_started", "hook_output", "refusal"]

#: What stands for the event of ``can_use_tool``.
PERMISSION = "can_use_tool"

#: How claude-agent-sdk spells what are keywords in Python.
_SPELLED = {"continue_": "continue", "async_": "async"}

_log = logging.getLogger("claude_wire")


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """One hook of a session, or its ``can_use_tool``, at the moment when ``Session.guards`` was read.

    Attributes:
        name: the function's qualified name, or what ``HookMatcher(name=)`` says.
        event: the hook event, or ``can_use_tool``.
        matcher: of the hook; None for all tools.
        confirmed: true if the CLI calls it: a hook is in what the CLI has registered, by its answer to ``initialize``,
            or the command line has the CLI ask ``can_use_tool``. False if it does not. None if nothing says so yet.
        fits: whether ``matcher`` fits one of the tools that the last ``system/init`` lists. None before that, while an
            MCP server still connects, and for events that have no tool.
        calls: how often the function was called in this session.
    """

    name: str
    event: str
    matcher: str | None = None
    confirmed: bool | None = None
    fits: bool | None = None
    calls: int = 0


class GuardState:
    """What is known of one guard so far."""

    __slots__ = ("calls", "confirmed", "event", "fits", "matcher", "name", "warned")

    def __init__(self, name: str, event: str, matcher: str | None = None) -> None:
        self.name: str = name
        self.event: str = event
        self.matcher: str | None = matcher
        self.confirmed: bool | None = None
        self.fits: bool | None = None
        self.calls: int = 0
        self.warned: bool = False

    @property
    def view(self) -> Guard:
        """The state as it is now."""
        return Guard(
            name=self.name,
            event=self.event,
            matcher=self.matcher,
            confirmed=self.confirmed,
            fits=self.fits,
            calls=self.calls,
        )

    def look_at(self, tools: Sequence[str], *, more: bool) -> None:
        """Compare the matcher with the tools of the session, and warn once if it fits none.

        Args:
            more: whether some MCP server is not connected yet, and may bring further tools.
        """
        if self.event not in TOOL_EVENTS:
            return
        fits = fits_tool(self.matcher, tools)
        self.fits = None if more and not fits else fits
        if self.fits is False and not self.warned:
            self.warned = True
            _log.warning(
                "the %s hook %s is never called: matcher=%s fits none of the %d tools of the session; names of tools "
                "are compared letter by letter, as in 'Bash' or 'Edit|Write'",
                self.event,
                self.name,
                shown(self.matcher),
                len(tools),
            )


def compare_with_started(
    started: Started, permissions: GuardState | None, hooks: Mapping[str, GuardState], servers: Iterable[str]
) -> None:
    """Note and log what the CLI of a supervisor never calls, because it was started without that.

    Args:
        hooks: by their ids.
        servers: names of MCP servers.
    """
    if permissions is not None and permissions.confirmed is None:
        permissions.confirmed = started.asks
    known = set(started.hooks)
    for id, hook in hooks.items():
        if id not in known:
            hook.confirmed = False
    states = [*([] if permissions is None else [permissions]), *hooks.values()]
    never = [
        PERMISSION if one is permissions else f"the {one.event} hook {one.name}"
        for one in states
        if one.confirmed is False
    ]
    never += [f"the MCP server {name}" for name in servers if name not in started.mcp]
    if never:
        _log.warning("never called, since the CLI of this session was started without: %s", ", ".join(never))


def hook_output(name: str, event: str, output: object) -> Wire | dict[str, Any]:
    """What a hook has returned, as the answer to the CLI.

    Raises:
        WrongAnswer: it is no answer, or has no effect.
    """
    if output is None:
        return {}
    if not isinstance(output, (HookOutput, AsyncHookOutput, dict)):
        raise WrongAnswer(
            f"the hook {name} returned {type_of(output)} for {event}; return a HookOutput, an AsyncHookOutput, a dict "
            "or None"
        )
    given = cast("HookOutput | AsyncHookOutput | dict[str, Any]", output)
    problem = ineffective(given)
    if problem:
        raise WrongAnswer(f"the hook {name} returned what has no effect for {event}: {problem}")
    if isinstance(given, dict):
        return {_SPELLED.get(key, key): value for key, value in given.items()}
    return given


def refusal(event: str, reason: str) -> dict[str, Any] | None:
    """The answer of a hook that refuses what its event is about; None if the event is no question."""
    if event == "PreToolUse":
        decision: Any = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    elif event == "PermissionRequest":
        decision = {"decision": {"behavior": "deny", "message": reason}}
    elif event == "UserPromptSubmit":
        return {"decision": "block", "reason": reason}
    else:
        return None
    return {"hookSpecificOutput": {"hookEventName": event, **decision}}
