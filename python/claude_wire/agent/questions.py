"""An agent's questions to its host: about permissions, hooks, MCP servers in the host, and questions to the user.

Hooks and MCP handshakes have a timeout. Any other question waits until the host answers, the input ends or the turn
ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, cast

import anyio

from claude_wire.agent.protocol import AgentProtocol
from claude_wire.agent.session import PERMISSION_MODES, AgentSession, McpConnection
from claude_wire.codec.encoder import encode
from claude_wire.control.matchers import TOOL_EVENTS, fits_tool
from claude_wire.control.requests import Requests
from claude_wire.errors import (
    DialectError,
    EncodeError,
    PayloadError,
    RequestError,
    RequestRefusedError,
    RequestTimeoutError,
    SessionEndedError,
)
from claude_wire.messages import (
    AddRules,
    CanUseToolRequest,
    ElicitationRequest,
    ElicitationResponse,
    HookCallbackMatcher,
    HookCallbackRequest,
    McpMessageRequest,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    RequestUserDialogRequest,
    SetMode,
    ToolUseBlock,
    UserDialogCancelled,
    UserDialogResult,
)
from claude_wire.support.plain_json import fields_of, items_of

#: Timeout in seconds for each step of the handshake with an MCP server in the host.
HANDSHAKE_SECONDS = 60.0
MCP_VERSION = "2025-11-25"
#: Maximum total size of all hook answers for one event, in bytes as JSON.
MAX_HOOK_BYTES = 16 * 1024 * 1024
#: The text that the model gets after an invalid answer from the host. (CLI 2.1.331.)
INVALID_ANSWER = (
    "The canUseTool callback returned an invalid permission result. Expected {behavior: 'allow', updatedInput?: "
    "object} or {behavior: 'deny', message: string}. updatedPermissions may hold at most 4096 updates, rules and "
    "directories in all."
)


class Decision(NamedTuple):
    """The decision about a tool use."""

    ok: bool
    message: str
    """The reason for the model if the tool is refused."""
    input: dict[str, Any]
    """The input for the tool, which the host may have changed."""
    interrupt: bool = False
    """True if the host also wants the turn to end."""


class McpResult(NamedTuple):
    """The result of an MCP tool: blocks of content, as JSON objects."""

    content: list[Any]
    is_error: bool
    structured: Any = None


class Hooked:
    """The combined answers of the host's hooks for one event."""

    def __init__(self) -> None:
        #: The answers as received, in the order of the hooks.
        self.outputs: list[dict[str, Any]] = []
        #: Why the action is refused; None if no hook refuses it.
        self.refusal: str | None = None
        #: True if the turn must end.
        self.stop: bool = False
        #: The reason for the user if ``stop`` is true.
        self.stop_reason: str = ""
        #: The strictest decision of the hooks: ``allow``, ``ask`` or ``deny``; None if no hook decides.
        self.decision: str | None = None
        #: A new input for the tool; None keeps the input.
        self.updated_input: dict[str, Any] | None = None
        #: The hooks' texts for the model.
        self.context: list[str] = []

    def add(self, output: dict[str, Any]) -> None:
        """Add the answer of one hook."""
        self.outputs.append(output)
        specific = fields_of(output.get("hookSpecificOutput"))
        if isinstance(specific.get("decision"), dict):
            permission = fields_of(specific["decision"])
            said, reason = permission.get("behavior"), permission.get("message")
            changed = permission.get("updatedInput")
        else:
            said, reason = specific.get("permissionDecision"), specific.get("permissionDecisionReason")
            changed = specific.get("updatedInput")
        if output.get("decision") == "block":
            said, reason = "deny", output.get("reason")
        if output.get("continue", output.get("continue_")) is False:
            self.stop, self.stop_reason = True, str(output.get("stopReason") or "")
        ranks = (None, "allow", "ask", "deny")
        if said in ranks and ranks.index(said) > ranks.index(self.decision):
            self.decision = said
        if said == "deny" and self.refusal is None:
            self.refusal = str(reason or "blocked by a hook")
        if isinstance(changed, dict):
            self.updated_input = cast("dict[str, Any]", changed)
        if isinstance(specific.get("additionalContext"), str):
            self.context.append(specific["additionalContext"])


class ToolOutcome(NamedTuple):
    """The outcome of a tool use."""

    use: ToolUseBlock
    content: str | list[Any]
    """The tool's result for the model: text or blocks."""
    is_error: bool
    ran: bool
    """True if the tool was run; False if the host or a hook refused it."""
    context: Sequence[str] = ()
    """Texts of the host's hooks for the model, in addition to the content."""


class Questions:
    """One agent's questions to its host."""

    def __init__(self, protocol: AgentProtocol, requests: Requests) -> None:
        self._protocol = protocol
        self._session: AgentSession = protocol.session
        self._requests = requests

    async def permission(
        self, name: str, given: dict[str, Any], use_id: str, suggestions: list[PermissionUpdate] | None = None
    ) -> Decision:
        """Decide whether the agent may use a tool, by a rule, by the permission mode, or by asking the host."""
        decided = self._session.may_use(name)
        policy = self._protocol.dialect.permission
        if decided is not None and policy == "flag":
            return Decision(decided, f"Permission to use {name} has been denied.", given)
        if policy == "never":
            return Decision(True, "", given)
        if policy == "flag" and self._session.options.permission_prompt_tool != "stdio":
            return Decision(
                False, f"Claude requested permissions to use {name}, but you haven't granted it yet.", given
            )
        request = CanUseToolRequest(
            tool_name=name, display_name=name, input=given, tool_use_id=use_id, permission_suggestions=suggestions
        )
        open_before = not self._protocol.input_ended
        try:
            with self._protocol.asking():
                answer = await self._requests.ask(request, None)
        except SessionEndedError:
            why = "Tool permission stream closed before response received" if open_before else "Stream closed"
            return Decision(False, f"Tool permission request failed: AbortError: {why}", given)
        except RequestError as error:
            why = error.error if isinstance(error, RequestRefusedError) else str(error)
            return Decision(False, f"Tool permission request failed: Error: {why}", given)
        return self._decided(answer.response or {}, given)

    def _decided(self, payload: dict[str, Any], given: dict[str, Any]) -> Decision:
        try:
            result = CanUseToolRequest.parse_answer(payload)
        except PayloadError:
            return Decision(False, INVALID_ANSWER, given)
        if isinstance(result, PermissionResultAllow):
            for update in result.updatedPermissions or ():
                if isinstance(update, SetMode) and update.mode in PERMISSION_MODES:
                    self._session.permission_mode = update.mode
                elif isinstance(update, AddRules) and update.behavior == "allow":
                    for rule in update.rules:
                        if rule.ruleContent is None:
                            self._session.allow(rule.toolName)
            return Decision(True, "", given if result.updatedInput is None else result.updatedInput)
        if isinstance(result, PermissionResultDeny):
            return Decision(False, result.message or "The user said no.", given, result.interrupt is True)
        return Decision(False, INVALID_ANSWER, given)

    async def hooks(self, event: str, fields: dict[str, Any], use_id: str | None = None) -> Hooked:
        """Call the host's hooks for an event, all at the same time."""
        hooked = Hooked()
        subject = fields.get("tool_name") if event in TOOL_EVENTS else None
        matchers = [
            one
            for one in self._session.hooks.get(event, ())
            if not isinstance(subject, str) or fits_tool(one.matcher, [subject])
        ]
        calls = [(matcher, callback) for matcher in matchers for callback in matcher.hookCallbackIds]
        if not calls:
            return hooked
        common = {
            "session_id": self._session.id,
            "transcript_path": "",
            "cwd": self._session.cwd,
            "permission_mode": self._session.permission_mode,
            "hook_event_name": event,
            **fields,
        }
        name = f"{event}:{subject}" if subject else event
        outputs: list[dict[str, Any]] = [{} for _ in calls]
        left_bytes = MAX_HOOK_BYTES

        async def call(number: int, matcher: HookCallbackMatcher, callback: str) -> None:
            nonlocal left_bytes
            request = HookCallbackRequest(callback_id=callback, input=cast("Any", common), tool_use_id=use_id)
            try:
                answer = await self._requests.ask(request, matcher.timeout)
                left_bytes -= len(encode(answer))
                if left_bytes >= 0:
                    outputs[number] = answer.response or {}
                    return
                problem = "answered with too much"  # the unread answer might refuse the action, so block it
            except EncodeError:  # nested too deeply for the encoder
                problem = "answered with too much"
            except RequestTimeoutError:
                problem = "took longer than its timeout"
            except RequestError as error:
                if matcher.onFailure != "block":
                    return
                problem = f"failed: {error}"
            outputs[number] = {"decision": "block", "reason": f"{name} hook {problem}"}

        async with anyio.create_task_group() if len(calls) > 1 else nullcontext() as group:
            for number, (matcher, callback) in enumerate(calls):
                if group is None:
                    await call(number, matcher, callback)
                else:
                    group.start_soon(call, number, matcher, callback)
        for output in outputs:
            hooked.add(output)
        if hooked.refusal is not None:
            hooked.refusal = f"{name} hook error: {hooked.refusal}"
        return hooked

    # --- MCP servers in the host

    async def greet(self, server: McpConnection) -> None:
        """Do the first step of the handshake with a server. If it fails, set the server's status to ``failed``."""
        client = {"name": "claude-wire", "version": self._session.version}
        params = {"protocolVersion": MCP_VERSION, "capabilities": {}, "clientInfo": client}
        try:
            server.info = await self._result(server, "initialize", params, HANDSHAKE_SECONDS)
        except (RequestError, _McpError):
            server.status = "failed"

    async def connect(self, server: McpConnection) -> None:
        """Do the second step of the handshake: ask the server for its tools, and set the server's status."""
        try:
            await self.mcp_message(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
            listed = await self._result(server, "tools/list", None, HANDSHAKE_SECONDS)
            server.connected(listed)
        except (RequestError, _McpError):
            server.status = "failed"

    async def call(self, server: McpConnection, tool: str, arguments: dict[str, Any], use_id: str | None) -> McpResult:
        """Call a tool of a server in the host. After a failure, return a result with ``is_error``."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if use_id is not None:
            params["_meta"] = {"claudecode/toolUseId": use_id, "progressToken": server.next_id}
        try:
            result = await self._result(server, "tools/call", params, None)
        except (RequestError, _McpError) as error:
            return McpResult([{"type": "text", "text": str(error)}], True)
        content = items_of(result.get("content"))
        return McpResult(content, result.get("isError") is True, result.get("structuredContent"))

    async def _result(
        self, server: McpConnection, method: str, params: dict[str, Any] | None, seconds: float | None
    ) -> dict[str, Any]:
        message: dict[str, Any] = {"method": method, "jsonrpc": "2.0", "id": server.next_id}
        if params is not None:
            message["params"] = params
        server.next_id += 1
        answer = await self.mcp_message(server, message, seconds)
        response = fields_of(answer.get("mcp_response"))
        error = response.get("error")
        if error is not None:
            raise _McpError(str(cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error))
        if not isinstance(response.get("result"), dict):
            raise _McpError(f"the MCP server {server.name} gave no result for {method}")
        return fields_of(response["result"])

    async def mcp_message(
        self, server: McpConnection, message: dict[str, Any], seconds: float | None = HANDSHAKE_SECONDS
    ) -> dict[str, Any]:
        """Send a JSON-RPC message to a server in the host. Return the payload of the answer.

        Raises:
            RequestError: the host does not answer, or has removed the server (even if a new server has the same name).
        """
        if self._session.mcp_servers.get(server.name) is not server:
            raise RequestRefusedError("mcp_message", f"the host has removed the MCP server {server.name}")
        request = McpMessageRequest(server_name=server.name, message=message)
        return (await self._requests.ask(request, seconds)).response or {}

    async def elicit(self, request: ElicitationRequest) -> ElicitationResponse:
        """Ask the host's user a question. The answer is ``decline`` if the host cannot ask."""
        try:
            with self._protocol.asking():
                answer = await self._requests.ask(request, None)
            return ElicitationRequest.parse_answer(answer.response or {})
        except SessionEndedError:
            return ElicitationResponse(action="cancel")
        except (RequestError, PayloadError, DialectError):
            return ElicitationResponse(action="decline")

    async def dialog(self, request: RequestUserDialogRequest) -> UserDialogResult:
        """Let the host show a dialog. The answer is "cancelled" if the host does not know the kind, or fails."""
        initialize = self._session.initialize
        if initialize is None or request.dialog_kind not in (initialize.supportedDialogKinds or ()):
            return UserDialogCancelled()  # a host does not answer requests for dialog kinds that it has not listed
        try:
            with self._protocol.asking():
                answer = await self._requests.ask(request, None)
            return RequestUserDialogRequest.parse_answer(answer.response or {})
        except (RequestError, PayloadError, DialectError):
            return UserDialogCancelled()


class _McpError(Exception):
    """An MCP server answered with an error, or with an invalid answer."""
