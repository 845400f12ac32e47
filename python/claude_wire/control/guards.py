"""Show which hooks and permission callbacks guard a session, and whether the CLI calls them.

A guard that is never called looks like a guard that allows everything. The session therefore records for each guard
whether the CLI confirmed it, whether its matcher fits a tool, and how often the CLI called it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from claude_wire.control.answers import WrongAnswer
from claude_wire.control.matchers import TOOL_EVENTS, fits_tool
from claude_wire.messages import AsyncHookOutput, HookOutput
from claude_wire.messages.hooks.outputs import ineffective
from claude_wire.support.arguments import shown, type_of

if TYPE_CHECKING:
    from claude_wire.messages.base import Wire

#: The ``event`` of the ``can_use_tool`` guard, which has no hook event.
PERMISSION = "can_use_tool"

#: Key in claude-agent-sdk -> key on the wire. The wire's keys are Python keywords.
_WIRE_KEYS = {"continue_": "continue", "async_": "async"}

_log = logging.getLogger("claude_wire")


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of one of a session's hooks, or its ``can_use_tool``, taken when ``Session.guards`` is read.

    Attributes:
        name: the function's qualified name, or the ``name`` of its ``HookMatcher``.
        event: the hook event, or ``can_use_tool``.
        matcher: the hook's matcher; None for all tools.
        confirmed: True if the CLI calls the guard, because the answer to ``initialize`` says that the hooks are
            registered, or because the command line makes the CLI ask ``can_use_tool``. False if the CLI does not call
            the guard. None if unknown.
        fits: whether ``matcher`` fits a tool in the last ``system/init``. None before the first ``system/init``, while
            an MCP server that may add a tool is connecting, and for events without a tool.
        calls: the number of calls in this session.
    """

    name: str
    event: str
    matcher: str | None = None
    confirmed: bool | None = None
    fits: bool | None = None
    calls: int = 0


class GuardState(msgspec.Struct, eq=False):
    """The state of one guard, which changes during the session. The fields are those of :class:`Guard`."""

    name: str
    event: str
    matcher: str | None = None
    confirmed: bool | None = None
    fits: bool | None = None
    calls: int = 0
    warned: bool = False

    @property
    def view(self) -> Guard:
        """A snapshot of the state."""
        return Guard(**{name: getattr(self, name) for name in Guard.__struct_fields__})

    def check_matcher(self, tools: Sequence[str], *, more: bool) -> None:
        """Compare the matcher with the session's tools. Warn once if the matcher does not fit any tool.

        Args:
            more: whether an MCP server is still connecting and may add tools.
        """
        if self.event not in TOOL_EVENTS:
            return
        fits = fits_tool(self.matcher, tools)
        self.fits = None if more and not fits else fits
        if self.fits is False and not self.warned:
            self.warned = True
            _log.warning(
                "the %s hook %s is never called: matcher=%s matches none of the %d tools of the session; tool names "
                "must match exactly, as in 'Bash' or 'Edit|Write'",
                self.event,
                self.name,
                shown(self.matcher),
                len(tools),
            )


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """The callbacks that a CLI was started with. Later sessions cannot change them.

    Attributes:
        hooks: the ids of the hooks that the CLI calls.
        mcp: the names of the MCP servers that the CLI expects in its host.
        asks: whether the command line makes the CLI ask its host for permission.
    """

    hooks: Sequence[str] = ()
    mcp: Sequence[str] = ()
    asks: bool = False


def compare_with_registered(
    registered: Registered, permissions: GuardState | None, hooks: Mapping[str, GuardState], servers: Iterable[str]
) -> None:
    """Find the guards and MCP servers that a running CLI never calls because it was started without them.

    This sets ``confirmed`` to False for these guards, and logs one warning.

    Args:
        registered: the callbacks that the CLI was started with.
        permissions: the ``can_use_tool`` guard, or None if there is none.
        hooks: hook id -> guard.
        servers: the names of the session's MCP servers.
    """
    if permissions is not None and permissions.confirmed is None:
        permissions.confirmed = registered.asks
    known = set(registered.hooks)
    for id, hook in hooks.items():
        if id not in known:
            hook.confirmed = False
    states = [*([] if permissions is None else [permissions]), *hooks.values()]
    never = [
        PERMISSION if one is permissions else f"the {one.event} hook {one.name}"
        for one in states
        if one.confirmed is False
    ]
    never += [f"the MCP server {name}" for name in servers if name not in registered.mcp]
    if never:
        _log.warning("never called, because the CLI of this session was started without: %s", ", ".join(never))


def check_hook_output(name: str, event: str, output: object) -> Wire | dict[str, Any]:
    """Check a hook's return value, and return the answer to the CLI.

    Raises:
        WrongAnswer: the value is not a valid hook output, or has no effect for this event.
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
        raise WrongAnswer(f"the hook {name} returned an output that has no effect for {event}: {problem}")
    if isinstance(given, dict):
        return {_WIRE_KEYS.get(key, key): value for key, value in given.items()}
    return given


def refuse(event: str, reason: str) -> dict[str, Any] | None:
    """Return the hook output that refuses an event's action, or None if the action cannot be refused."""
    if event == "PreToolUse":
        decision: Any = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    elif event == "PermissionRequest":
        decision = {"decision": {"behavior": "deny", "message": reason}}
    elif event == "UserPromptSubmit":
        return {"decision": "block", "reason": reason}
    else:
        return None
    return {"hookSpecificOutput": {"hookEventName": event, **decision}}
