"""The callbacks that a host gives the CLI: permissions, hooks, MCP servers, elicitation and dialogs.

For each request from the CLI, this module finds the callback, calls it, and checks its answer.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast, get_args

import msgspec

from claude_wire.control.answers import Handler, NoAnswer, Refusal, WrongAnswer, raised_outside
from claude_wire.control.guards import PERMISSION, Guard, GuardState, check_hook_output, compare_with_registered, refuse
from claude_wire.errors import RequestError
from claude_wire.messages import (
    AsyncHookOutput,
    CanUseToolRequest,
    ElicitationRequest,
    ElicitationResponse,
    HookCallbackMatcher,
    HookCallbackRequest,
    HookOutput,
    InitializeRequest,
    InitializeResponse,
    McpMessageRequest,
    McpMessageResponse,
    PermissionResultAllow,
    PermissionResultDeny,
    RequestUserDialogRequest,
    UnknownHookInput,
    UserDialogCancelled,
    UserDialogCompleted,
)
from claude_wire.messages.hooks.events import HOOK_EVENTS, hook_event
from claude_wire.session.arguments import McpServer, require_server
from claude_wire.support.arguments import (
    name_of,
    nearest,
    qualified_name_of,
    require_function,
    require_one_of,
    require_seconds,
    shown,
    tells_where,
    type_of,
)
from claude_wire.support.text import one_line
from claude_wire.support.waiting import move_on_after

if TYPE_CHECKING:
    from anyio import Event

    from claude_wire.control.guards import Registered
    from claude_wire.messages import InitMessage, PermissionResult, UserDialogResult
    from claude_wire.messages.base import Wire

CanUseTool: TypeAlias = "Callable[[CanUseToolRequest], Awaitable[PermissionResult] | PermissionResult]"
HookResult: TypeAlias = "HookOutput | AsyncHookOutput | dict[str, Any] | None"
Hook: TypeAlias = "Callable[[HookCallbackRequest], Awaitable[HookResult] | HookResult]"
Elicit: TypeAlias = "Callable[[ElicitationRequest], Awaitable[ElicitationResponse] | ElicitationResponse]"
Dialog: TypeAlias = "Callable[[RequestUserDialogRequest], Awaitable[UserDialogResult] | UserDialogResult]"
Decided: TypeAlias = PermissionResultAllow | PermissionResultDeny
OnFailure: TypeAlias = Literal["continue", "block"]

_log = logging.getLogger("claude_wire")

#: Seconds that a hook may run after its timeout. The CLI also checks the timeout, and must notice it first: when a hook
#: times out, the CLI refuses the tool, but if our error answer arrives earlier, the CLI runs the tool.
HOOK_SECONDS = 5.0
#: Error codes of JSON-RPC 2.0, section 5.1. MCP also uses "method not found" for unknown servers.
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603


class HookMatcher:
    """Functions to call for a hook event, either for all tools or only for some.

    Args:
        hooks: functions that get the :class:`HookCallbackRequest`, whose ``input`` says what happened, and return the
            output or None. All matching functions are called at the same time.
        matcher: names of tools such as ``"Bash"`` or ``"Edit|Write"``, compared exactly, or a regular expression. For
            an event without a tool, the CLI compares another field of the event. None matches all. ``Session.guards``
            says if the matcher matches no tool.
        timeout: seconds that each function may take. After that, the CLI withdraws the call and treats it as failed,
            and the session cancels the function. If the CLI does not withdraw the call, the session cancels the
            function 5 seconds later.
        on_failure: whether the CLI continues or blocks the action after a failed hook: ``"continue"`` or ``"block"``.
            None: if the function raises, the action continues (the CLI's default); if the function returns an invalid
            answer, the action is refused, for events that can be refused.
        unknown_event: True for an event of a newer CLI, whose name this version does not know.
        name: the name to use for the functions in their hook ids. None: the qualified name of each function. If several
            processes take turns driving one session, they must use the same names.

    Raises:
        TypeError: a function cannot be called with one argument, or an argument has the wrong type.
        ValueError: ``timeout`` is not a number of seconds, ``on_failure`` is unknown, or ``name`` is empty.
    """

    __slots__ = ("hooks", "matcher", "name", "on_failure", "timeout", "unknown_event")

    @tells_where({"hooks": "its functions come first and bare: HookMatcher(f, g, matcher='Bash')"}, owner="HookMatcher")
    def __init__(
        self,
        *hooks: Hook,
        matcher: str | None = None,
        timeout: float | None = None,
        on_failure: OnFailure | None = None,
        unknown_event: bool = False,
        name: str | None = None,
    ) -> None:
        if not hooks:
            raise TypeError("HookMatcher takes one or more functions: HookMatcher(f, matcher='Bash')")
        for hook in hooks:
            if isinstance(hook, (list, tuple, str)):
                kind = type_of(cast("object", hook))
                raise TypeError(f"HookMatcher takes functions, not {kind}: HookMatcher(f, g, matcher='Bash')")
            require_function("a hook", hook, "the HookCallbackRequest, whose input is request.input")
        if not isinstance(matcher, (str, type(None))):
            raise TypeError(f"matcher must be a str such as 'Edit|Write', not {type_of(matcher)}")
        if not isinstance(name, (str, type(None))):
            raise TypeError(f"name must be a str such as 'guard', not {type_of(name)}")
        if name == "":
            raise ValueError("name must not be empty; the default is the qualified name of each function")
        require_seconds("timeout", timeout)
        if on_failure is not None:
            require_one_of("on_failure", on_failure, get_args(OnFailure))
        self.hooks: tuple[Hook, ...] = hooks
        self.name: str | None = name
        self.unknown_event: bool = unknown_event
        self.matcher: str | None = matcher
        self.timeout: float | None = timeout
        self.on_failure: OnFailure | None = on_failure

    def __repr__(self) -> str:
        names = ", ".join(getattr(hook, "__qualname__", type(hook).__name__) for hook in self.hooks)
        return (
            f"HookMatcher({names}, matcher={self.matcher!r}, timeout={self.timeout!r}, on_failure={self.on_failure!r})"
        )


class _Hook(NamedTuple):
    """One function of a :class:`HookMatcher`, with its matcher's settings."""

    function: Hook
    timeout: float | None
    on_failure: OnFailure | None
    state: GuardState


class Callbacks:
    """All of a session's callbacks, and the descriptions that ``initialize`` sends to the CLI.

    Args:
        timeout: seconds for each callback that does not set a timeout. None: as long as the CLI waits.
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
        if can_use_tool is not None:
            require_function("can_use_tool", can_use_tool, "the CanUseToolRequest")
        if on_elicitation is not None:
            require_function("on_elicitation", on_elicitation, "the ElicitationRequest")
        for name, by_name, example in (
            ("hooks", hooks, "'PreToolUse': [HookMatcher(f)]"),
            ("mcp_servers", mcp_servers, "'name': server"),
            ("dialogs", dialogs, "'kind': f"),
        ):
            if not isinstance(by_name, (Mapping, type(None))):
                raise TypeError(f"{name} must be a dict such as {{{example}}}, not {type_of(by_name)}")
        for server_name, server in (mcp_servers or {}).items():
            require_server(server_name, server, mcp_servers or {})
        for kind, dialog in (dialogs or {}).items():
            require_function(f"dialogs[{shown(kind)}]", dialog, "the RequestUserDialogRequest")
        self._can_use_tool = can_use_tool
        self.mcp_servers: dict[str, McpServer] = dict(mcp_servers or {})
        #: True if another program owns the CLI. A request that has no callback here then stays open, because another
        #: session may answer it.
        self.shared: bool = False
        #: True if can_use_tool may return a bool, as the classic dialect allows.
        self.takes_booleans: bool = False
        #: :meth:`.HostHooks.before_use` if the host calls hooks itself, else None. Returns what the hooks decided about
        #: a permission request, or None if they decided nothing.
        self.before_use: Callable[[CanUseToolRequest], Awaitable[Decided | None]] | None = None
        #: MCP server -> event that is set after a takeover, once the server received the CLI's handshake again.
        #: Requests to the server wait for this event.
        self.greetings: dict[str, Event] = {}
        self._on_elicitation = on_elicitation
        self._dialogs = dict(dialogs or {})
        self._timeout = timeout
        self._permissions = None if can_use_tool is None else GuardState(qualified_name_of(can_use_tool), PERMISSION)
        self._hooks: dict[str, _Hook] = {}
        #: Hook event -> its matchers. The hook ids in them are valid for :meth:`call_hook`.
        self.matchers: dict[str, list[HookCallbackMatcher]] = {}
        for key, given in (hooks or {}).items():
            # In the classic dialect, {"pre-tool-use": function} is valid, without a HookMatcher.
            is_bare = isinstance(key, str) and "-" in key and callable(given)
            matchers = [HookMatcher(cast("Hook", given))] if is_bare else given
            event = _event(key, matchers)
            if event in self.matchers:
                raise ValueError(f"hooks has {event!r} twice, in two spellings: give one, with all its HookMatchers")
            self.matchers[event] = [self._register(event, matcher) for matcher in matchers]
        self._handlers: dict[type, Callable[[Any], Awaitable[Wire | dict[str, Any]]]] = {
            CanUseToolRequest: self._permission,
            HookCallbackRequest: self._hook,
            McpMessageRequest: self._mcp_message,
            ElicitationRequest: self._elicitation,
            RequestUserDialogRequest: self._dialog,
        }

    def find(self, body: object) -> Handler | None:
        """The handler for the body of a CLI request, or None for a type of request that has no callbacks."""
        handler = self._handlers.get(type(body))
        if handler is None:
            return None
        if self.shared and not self._is_served(body):
            return Handler(_leave_open, None, lambda: self._name(body))
        timeout = self._timeout
        if isinstance(body, HookCallbackRequest):
            hook = self._hooks.get(body.callback_id)
            timeout = timeout if hook is None or hook.timeout is None else hook.timeout + HOOK_SECONDS
        return Handler(handler, timeout, lambda: self._name(body))

    def _is_served(self, body: object) -> bool:
        if isinstance(body, CanUseToolRequest):
            return self._can_use_tool is not None
        if isinstance(body, HookCallbackRequest):
            return body.callback_id in self._hooks
        if isinstance(body, McpMessageRequest):
            return body.server_name in self.mcp_servers
        return not isinstance(body, ElicitationRequest) or self._on_elicitation is not None

    def _name(self, body: object) -> str:
        """The name that logs use for a request's callback, such as ``can_use_tool for Bash``."""
        if isinstance(body, CanUseToolRequest):
            return f"can_use_tool for {one_line(body.tool_name)}"
        if isinstance(body, HookCallbackRequest):
            hook = self._hooks.get(body.callback_id)
            return f"the hook {name_of(hook.function) if hook else ''} for {_event_of(body)}"
        if isinstance(body, McpMessageRequest):
            return f"the MCP server {one_line(body.server_name)}"
        if isinstance(body, ElicitationRequest):
            return f"on_elicitation for {one_line(body.mcp_server_name or 'an MCP server')}"
        return f"the dialog {one_line(getattr(body, 'dialog_kind', ''))}"

    def complete(self, request: InitializeRequest) -> InitializeRequest:
        """Add the descriptions of the callbacks to an ``initialize`` request.

        Raises:
            ValueError: the request sets hooks, MCP servers or dialogs that the callbacks also set.
        """
        ours: dict[str, Any] = {}
        if self.matchers:
            ours["hooks"] = self.matchers
        if self.mcp_servers:
            ours["sdkMcpServers"] = list(self.mcp_servers)
        if self._dialogs:
            ours["supportedDialogKinds"] = list(self._dialogs)
        for name in ours:
            if getattr(request, name) is not None:
                raise ValueError(f"{name} is given twice: in the request and in the session's callbacks")
        return msgspec.structs.replace(request, **ours)

    @property
    def hook_ids(self) -> list[str]:
        return list(self._hooks)

    async def call_hook(self, request: HookCallbackRequest) -> HookOutput | None:
        """Call a hook without the CLI. Return None if it fails, times out, or returns an :class:`AsyncHookOutput`."""
        timeout = self._hooks[request.callback_id].timeout
        output: Wire | dict[str, Any] | None = None
        try:
            with move_on_after(timeout):
                output = await self._hook(request)
        except WrongAnswer as error:
            _log.warning("%s", error)
            return None
        except Exception as error:
            name = self._name(request)
            _log.warning("%s raised %s", name, type(error).__name__, exc_info=raised_outside(error))
            return None
        if output is None:
            _log.warning("%s took longer than %g seconds", self._name(request), timeout)
            return None
        given = HookCallbackRequest.parse_answer(output if isinstance(output, dict) else output.to_dict())
        return given if isinstance(given, HookOutput) else None

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The permission callback, if there is one, followed by all hooks in the order in which they were passed."""
        states = [self._permissions, *(hook.state for hook in self._hooks.values())]
        return tuple(state.view for state in states if state is not None)

    def see_init(self, message: InitMessage) -> None:
        """Compare the hooks' matchers with the tools that ``system/init`` lists at the beginning of a turn."""
        if self._hooks and message.tools:  # agents other than the CLI may not list their tools
            more = any(server.status == "pending" for server in message.mcp_servers or ())
            for hook in self._hooks.values():
                hook.state.check_matcher(message.tool_names, more=more)

    def confirm_permissions(self, asks: bool | None) -> None:
        """Record whether the CLI's command line or dialect shows that it asks ``can_use_tool``. None: unknown."""
        if self._permissions is not None:
            self._permissions.confirmed = asks

    def confirm_hooks(self, info: InitializeResponse) -> None:
        """Record which hooks the CLI registered, according to its answer to ``initialize``.

        Raises:
            RequestError: the CLI did not register any hook, or a hook has ``on_failure="block"`` and the CLI does not
                support this setting.
        """
        if self._hooks and info.hooks_applied is False:
            raise RequestError(
                "initialize",
                "the CLI has not registered the hooks and would never call them; it takes the hooks of its first "
                "initialize, and later hooks of the process that owns its input",
            )
        blocks = any(one.onFailure == "block" for matchers in self.matchers.values() for one in matchers)
        if blocks and not info.hook_on_failure_supported:
            raise RequestError("initialize", "hooks that must block when they fail are not supported by this CLI")
        for hook in self._hooks.values():
            hook.state.confirmed = info.hooks_applied

    def confirm_registered(self, registered: Registered) -> None:
        """Compare these callbacks with the CLI's first callbacks. Log the callbacks that the CLI will never call."""
        hooks = {id: hook.state for id, hook in self._hooks.items()}
        compare_with_registered(registered, self._permissions, hooks, self.mcp_servers)

    def _register(self, event: str, matcher: HookMatcher) -> HookCallbackMatcher:
        ids: list[str] = []
        timeout = self._timeout if matcher.timeout is None else matcher.timeout
        for hook in matcher.hooks:
            name = matcher.name or qualified_name_of(hook)
            ids.append(self._new_id(f"{event}:{matcher.matcher or ''}:{name}"))
            self._hooks[ids[-1]] = _Hook(hook, timeout, matcher.on_failure, GuardState(name, event, matcher.matcher))
        return HookCallbackMatcher(
            matcher=matcher.matcher, hookCallbackIds=ids, timeout=timeout, onFailure=matcher.on_failure
        )

    def _new_id(self, id: str) -> str:
        """Return ``id``, or ``id#2``, ``id#3``, ... if another hook has it. The same hooks always get the same ids."""
        number, numbered = 1, id
        while numbered in self._hooks:
            number += 1
            numbered = f"{id}#{number}"
        return numbered

    async def _permission(self, request: CanUseToolRequest) -> Wire:
        if self._can_use_tool is None and self.before_use is None:
            raise Refusal("this host has no permission callback")
        if not request.tool_name.strip():  # a can_use_tool that compares names might allow it
            _log.warning("a permission request was denied, because the name of its tool cannot be read")
            return request.deny("The permission request names no tool that can be read.")
        decided = None if self.before_use is None else await self.before_use(request)
        if decided is not None and (self._can_use_tool is None or isinstance(decided, PermissionResultDeny)):
            return decided
        if self._can_use_tool is None:
            raise Refusal("this host has no permission callback, and no hook has allowed the tool")
        if self._permissions is not None:
            self._permissions.calls += 1
        result: object = await _answer(self._can_use_tool(request))
        if self.takes_booleans and isinstance(result, bool):
            result = request.allow() if result else request.deny("The user said no.")
        if not isinstance(result, (PermissionResultAllow, PermissionResultDeny)):
            raise WrongAnswer(
                f"can_use_tool returned {type_of(result)} for {one_line(request.tool_name)}; return request.allow() or "
                "request.deny('why')"
            )
        if result.toolUseID is None:
            result = msgspec.structs.replace(result, toolUseID=request.tool_use_id)
        if isinstance(result, PermissionResultAllow):
            if result.updatedInput is None:  # older CLIs require it
                result = msgspec.structs.replace(result, updatedInput=request.input)
            elif not isinstance(result.updatedInput, Mapping):
                raise WrongAnswer(
                    f"can_use_tool returned an updated_input that is {type_of(result.updatedInput)} for "
                    f"{one_line(request.tool_name)}; it must be a dict: the whole input of the tool"
                )
        return result

    async def _hook(self, request: HookCallbackRequest) -> Wire | dict[str, Any]:
        if request.callback_id not in self._hooks:
            raise Refusal(f"No hook callback found for ID: {request.callback_id}")
        hook = self._hooks[request.callback_id]
        hook.state.calls += 1
        output = await _answer(hook.function(request))
        try:
            return check_hook_output(name_of(hook.function), _event_of(request), output)
        except WrongAnswer as error:
            # The hook may have tried to refuse the action, so refuse it.
            refused = refuse(hook.state.event, str(error)) if hook.on_failure is None else None
            if refused is None:
                raise
            _log.warning("%s; the action is refused", error)
            return refused

    async def _mcp_message(self, request: McpMessageRequest) -> Wire:
        server = self.mcp_servers.get(request.server_name)
        message = request.message
        greeted = self.greetings.get(request.server_name)
        if greeted is not None:
            await greeted.wait()
        if server is None:
            return _mcp_error(message, METHOD_NOT_FOUND, f"Server '{request.server_name}' not found")
        try:
            response = cast("dict[str, Any] | None", await _answer(server.handle(message)))
        except Exception as error:
            name = one_line(request.server_name)
            _log.warning("the MCP server %s raised %s", name, type(error).__name__, exc_info=raised_outside(error))
            return _mcp_error(message, INTERNAL_ERROR, f"{request.server_name}: {type(error).__name__}")
        # A JSON-RPC notification has no response, but the control request that carries it needs an answer.
        return McpMessageResponse(mcp_response={"jsonrpc": "2.0", "result": {}} if response is None else response)

    async def _elicitation(self, request: ElicitationRequest) -> Wire:
        if self._on_elicitation is None:
            return ElicitationResponse(action="decline")
        response = await _answer(self._on_elicitation(request))
        if not isinstance(response, ElicitationResponse):
            raise WrongAnswer(
                f"on_elicitation returned {type_of(response)} for {one_line(request.mcp_server_name or '')}; return "
                "ElicitationResponse(action='accept', content={...}), or another action: 'decline', 'cancel'"
            )
        return response

    async def _dialog(self, request: RequestUserDialogRequest) -> Wire:
        dialog = self._dialogs.get(request.dialog_kind)
        if dialog is None:
            raise NoAnswer
        result = await _answer(dialog(request))
        if not isinstance(result, (UserDialogCompleted, UserDialogCancelled)):
            raise WrongAnswer(
                f"dialogs[{shown(request.dialog_kind)}] returned {type_of(result)}; return UserDialogCompleted(...) or "
                "UserDialogCancelled()"
            )
        return result


async def _leave_open(_: object) -> Wire:
    raise NoAnswer


async def _answer(given: object) -> object:
    """Return the answer of a callback that returned ``given``. Await it first if the callback is async."""
    if inspect.isawaitable(given):
        answer: object = await given
        return answer
    return given


def _event(key: object, matchers: object) -> str:
    """Return the hook event that a key of ``hooks`` names: ``PreToolUse`` for ``pre-tool-use``.

    Raises:
        TypeError: the key is not a str, or its value is not a sequence of HookMatcher.
        ValueError: the protocol has no such event, and the matchers do not have ``unknown_event=True``.
    """
    if not isinstance(key, str):
        raise TypeError(f"hooks takes events by name, such as 'PreToolUse', not {type_of(key)}")
    if not isinstance(matchers, Sequence) or not all(isinstance(one, HookMatcher) for one in cast("Any", matchers)):
        inner: Any = [*matchers] if isinstance(matchers, (list, tuple)) else [matchers]
        name = next((name_of(one) for one in inner if callable(one)), "f")
        raise TypeError(f"hooks[{shown(key)}] must be a list of HookMatcher: [HookMatcher({name})]")
    event = hook_event(key)
    if event is not None:
        return event
    if not all(matcher.unknown_event for matcher in cast("Sequence[HookMatcher]", matchers)) or not matchers:
        raise ValueError(
            f"hooks: there is no event {shown(key)}{nearest(key, HOOK_EVENTS)}; for an event that this version does "
            "not know: HookMatcher(..., unknown_event=True)"
        )
    return key


def _event_of(request: HookCallbackRequest) -> str:
    event: Any = request.input
    tag: object = event.get("hook_event_name") if isinstance(event, UnknownHookInput) else event.__struct_config__.tag
    return one_line(str(tag))


def _mcp_error(message: dict[str, Any], code: int, problem: str) -> Wire:
    error = {"code": code, "message": problem}
    return McpMessageResponse(mcp_response={"jsonrpc": "2.0", "id": message.get("id"), "error": error})
