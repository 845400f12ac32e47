"""What a host lets the CLI call: permission, hooks, MCP servers, elicitation and dialogs.

Knows what each request of the CLI means and how it is answered; not how requests and answers travel.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import msgspec

from claude_wire._control import Handler, NoAnswer, Refusal
from claude_wire.messages import (
    AsyncHookOutput,
    CanUseToolRequest,
    ElicitationRequest,
    ElicitationResponse,
    HookCallbackMatcher,
    HookCallbackRequest,
    HookOutput,
    InitializeRequest,
    McpMessageRequest,
    McpMessageResponse,
    PermissionResultAllow,
    PermissionResultDeny,
    RequestUserDialogRequest,
    UserDialogCancelled,
    UserDialogCompleted,
)

if TYPE_CHECKING:
    from claude_wire.messages import PermissionResult, UserDialogResult
    from claude_wire.messages._base import Wire

__all__ = ["Callbacks", "CanUseTool", "Dialog", "Elicit", "Hook", "HookMatcher", "McpServer", "require_seconds"]

CanUseTool: TypeAlias = "Callable[[CanUseToolRequest], Awaitable[PermissionResult]]"
Hook: TypeAlias = "Callable[[HookCallbackRequest], Awaitable[HookOutput | AsyncHookOutput | dict[str, Any] | None]]"
Elicit: TypeAlias = "Callable[[ElicitationRequest], Awaitable[ElicitationResponse]]"
Dialog: TypeAlias = "Callable[[RequestUserDialogRequest], Awaitable[UserDialogResult]]"

_log = logging.getLogger("claude_wire")

#: Seconds that a hook may take beyond its own timeout, which the CLI keeps by itself. An error answer that came first
#: would have the tool run: the CLI refuses it for a hook that did not answer, but not for one that failed.
HOOK_SECONDS = 5.0
#: JSON-RPC 2.0, section 5.1: no such method, which MCP uses for servers that are not there; and an error in the server.
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603


class McpServer(Protocol):
    """An MCP server in the host's process; :class:`claude_wire.integrations.mcp.InProcessMcpServer` is one."""

    def connect(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Called once, before any :meth:`handle`.

        ``send`` takes the server's own notifications and requests to the CLI, one JSON-RPC object each. It returns when
        that is written; the response to a request comes through :meth:`handle`.
        """
        ...

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Take one JSON-RPC object from the CLI. Returns the response to a request, and None for all others.

        It is cancelled if the CLI withdraws what it asked.
        """
        ...

    async def aclose(self) -> None:
        """Stop. Called once, at the end of the session."""
        ...


#: How claude-agent-sdk spells what are keywords in Python.
_SPELLED = {"continue_": "continue", "async_": "async"}


class HookMatcher:
    """Functions that are called for some uses of a hook event.

    Args:
        hooks: each is called with the :class:`HookCallbackRequest`, whose ``input`` says what happened, and returns the
            output, or None for none. All matching ones are called at the same time.
        matcher: a pattern for the tool's name, or for what else the event goes by, as the CLI has it:
            ``"Bash"``, ``"Edit|Write"``. None matches all.
        timeout: seconds that each may take. The CLI withdraws what takes longer, which cancels it, and treats it as
            failed; a few seconds later it is cancelled also if the CLI does not.
        on_failure: what a failed one does: ``"continue"`` (the CLI's default), or ``"block"`` the action.
    """

    __slots__ = ("hooks", "matcher", "on_failure", "timeout")

    def __init__(
        self, *hooks: Hook, matcher: str | None = None, timeout: float | None = None, on_failure: str | None = None
    ) -> None:
        if not hooks or not all(map(callable, hooks)):
            raise TypeError("HookMatcher takes one or more functions")
        require_seconds("timeout", timeout)
        if on_failure not in (None, "continue", "block"):
            raise ValueError(f"on_failure must be 'continue' or 'block', not {on_failure!r}")
        self.hooks = hooks
        self.matcher = matcher
        self.timeout = timeout
        self.on_failure = on_failure


class Callbacks:
    """All callbacks of a session, and what ``initialize`` tells the CLI of them.

    Args:
        timeout: seconds that each may take that has no time of its own; None for as long as the CLI waits.
    """

    def __init__(
        self,
        can_use_tool: CanUseTool | None,
        hooks: Mapping[str, Sequence[HookMatcher]] | None,
        mcp_servers: Mapping[str, McpServer] | None,
        on_elicitation: Elicit | None,
        dialogs: Mapping[str, Dialog] | None,
        timeout: float | None,
    ) -> None:
        require_seconds("callback_timeout", timeout)
        for name, callback in ("can_use_tool", can_use_tool), ("on_elicitation", on_elicitation):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} must be an async function, not {type(callback).__name__}")
        for name, by_name in ("hooks", hooks), ("mcp_servers", mcp_servers), ("dialogs", dialogs):
            if not isinstance(by_name, (Mapping, type(None))):
                raise TypeError(f"{name} must be a dict, not {type(by_name).__name__}")
        for server_name, server in (mcp_servers or {}).items():
            if not all(callable(getattr(server, method, None)) for method in ("connect", "handle", "aclose")):
                raise TypeError(
                    f"mcp_servers[{server_name!r}] must be an McpServer, not {type(server).__name__}: a server of the "
                    "mcp package goes into claude_wire.integrations.mcp.InProcessMcpServer, one that the CLI runs into "
                    "ClaudeOptions(mcp_config=...)"
                )
        for kind, dialog in (dialogs or {}).items():
            if not callable(dialog):
                raise TypeError(f"dialogs[{kind!r}] must be an async function, not {type(dialog).__name__}")
        self._can_use_tool = can_use_tool
        self.mcp_servers = dict(mcp_servers or {})
        self._on_elicitation = on_elicitation
        self._dialogs = dict(dialogs or {})
        self._timeout = timeout
        self._hooks: dict[str, tuple[Hook, float | None]] = {}
        self._matchers: dict[str, list[HookCallbackMatcher]] = {}
        for event, matchers in (hooks or {}).items():
            if not isinstance(matchers, Sequence) or not all(isinstance(matcher, HookMatcher) for matcher in matchers):
                raise TypeError(f"hooks[{event!r}] must be a sequence of HookMatcher")
            self._matchers[event] = [self._register(matcher) for matcher in matchers]
        self._handlers: dict[type, Callable[[Any], Awaitable[Wire | dict[str, Any]]]] = {
            CanUseToolRequest: self._permission,
            HookCallbackRequest: self._hook,
            McpMessageRequest: self._mcp_message,
            ElicitationRequest: self._elicitation,
            RequestUserDialogRequest: self._dialog,
        }

    def find(self, body: object) -> Handler | None:
        """The handler for what a request of the CLI asks for."""
        handler = self._handlers.get(type(body))
        if handler is None:
            return None
        timeout = self._timeout
        if isinstance(body, HookCallbackRequest):
            own = self._hooks.get(body.callback_id, (None, None))[1]
            timeout = timeout if own is None else own + HOOK_SECONDS
        return handler, timeout

    def complete(self, request: InitializeRequest) -> InitializeRequest:
        """Add what the CLI has to know of the callbacks.

        Raises:
            ValueError: the request has fields of its own for that.
        """
        ours: dict[str, Any] = {}
        if self._matchers:
            ours["hooks"] = self._matchers
        if self.mcp_servers:
            ours["sdkMcpServers"] = list(self.mcp_servers)
        if self._dialogs:
            ours["supportedDialogKinds"] = list(self._dialogs)
        for name in ours:
            if getattr(request, name) is not None:
                raise ValueError(f"{name} is given twice: in the request, and by the session's callbacks")
        return msgspec.structs.replace(request, **ours)

    @property
    def must_block(self) -> bool:
        """Whether the failure of some hook must block."""
        return any(matcher.onFailure == "block" for matchers in self._matchers.values() for matcher in matchers)

    def _register(self, matcher: HookMatcher) -> HookCallbackMatcher:
        ids: list[str] = []
        timeout = self._timeout if matcher.timeout is None else matcher.timeout
        for hook in matcher.hooks:
            ids.append(f"hook_{len(self._hooks)}")
            self._hooks[ids[-1]] = hook, timeout
        return HookCallbackMatcher(
            matcher=matcher.matcher, hookCallbackIds=ids, timeout=timeout, onFailure=matcher.on_failure
        )

    async def _permission(self, request: CanUseToolRequest) -> Wire:
        if self._can_use_tool is None:
            raise Refusal("this host has no permission callback")
        result = await self._can_use_tool(request)
        if not isinstance(result, (PermissionResultAllow, PermissionResultDeny)):
            raise TypeError(f"can_use_tool must return request.allow() or request.deny(), not {type(result).__name__}")
        if result.toolUseID is None:
            result = msgspec.structs.replace(result, toolUseID=request.tool_use_id)
        if isinstance(result, PermissionResultAllow) and result.updatedInput is None:
            result = msgspec.structs.replace(result, updatedInput=request.input)  # older CLIs require it
        return result

    async def _hook(self, request: HookCallbackRequest) -> Wire | dict[str, Any]:
        if request.callback_id not in self._hooks:
            raise Refusal(f"No hook callback found for ID: {request.callback_id}")
        output = await self._hooks[request.callback_id][0](request)
        if output is None:
            return {}
        if isinstance(output, dict):
            return {_SPELLED.get(key, key): value for key, value in output.items()}
        if not isinstance(output, (HookOutput, AsyncHookOutput)):
            kind = type(output).__name__
            raise TypeError(f"a hook must return HookOutput, AsyncHookOutput, a dict or None, not {kind}")
        return output

    async def _mcp_message(self, request: McpMessageRequest) -> Wire:
        server = self.mcp_servers.get(request.server_name)
        message = request.message
        if server is None:
            return _mcp_error(message, METHOD_NOT_FOUND, f"Server '{request.server_name}' not found")
        try:
            response = await server.handle(message)
        except Exception as error:
            _log.warning("an MCP server raised %s", type(error).__name__, exc_info=error)
            return _mcp_error(message, INTERNAL_ERROR, f"{request.server_name}: {type(error).__name__}")
        # What is no request has no response in JSON-RPC, but the control request that brought it waits for an answer.
        return McpMessageResponse(mcp_response={"jsonrpc": "2.0", "result": {}} if response is None else response)

    async def _elicitation(self, request: ElicitationRequest) -> Wire:
        if self._on_elicitation is None:
            return ElicitationResponse(action="decline")
        response = cast("object", await self._on_elicitation(request))
        if not isinstance(response, ElicitationResponse):
            raise TypeError(f"on_elicitation must return an ElicitationResponse, not {type(response).__name__}")
        return response

    async def _dialog(self, request: RequestUserDialogRequest) -> Wire:
        dialog = self._dialogs.get(request.dialog_kind)
        if dialog is None:
            raise NoAnswer
        result = await dialog(request)
        if not isinstance(result, (UserDialogCompleted, UserDialogCancelled)):
            raise TypeError(f"a dialog must return a UserDialogResult, not {type(result).__name__}")
        return result


def require_seconds(name: str, seconds: float | None, *, or_zero: bool = False) -> None:
    """Raises TypeError or ValueError for what is no length of time; 0 is one if ``or_zero``."""
    if seconds is not None:
        if not isinstance(seconds, (int, float)):
            raise TypeError(f"{name} must be a number of seconds, not {type(seconds).__name__}")
        if not (seconds > 0 or (or_zero and seconds == 0)):
            raise ValueError(f"{name} must be more than 0 seconds, not {seconds!r}")


def _mcp_error(message: dict[str, Any], code: int, problem: str) -> Wire:
    error = {"code": code, "message": problem}
    return McpMessageResponse(mcp_response={"jsonrpc": "2.0", "id": message.get("id"), "error": error})
