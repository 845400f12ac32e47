"""Answer the control requests that a host sends to an agent.

If the author has a handler for a request, the agent calls the handler, and sends its return value as the answer. If
there is no handler, or the handler returns None, the agent answers with a method of :class:`HostRequests` or from
:data:`NOTHING`. Any other request is refused as unsupported. :class:`AgentProtocol` itself answers ``interrupt``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, cast

import msgspec

from claude_wire.agent.runtime import Runtime
from claude_wire.agent.session import MAX_SETTINGS_BYTES, PERMISSION_MODES, McpConnection
from claude_wire.codec.encoder import encode
from claude_wire.control.answers import UNKNOWN_SUBTYPE, Followed, Handler, Refusal
from claude_wire.errors import RequestError
from claude_wire.messages import (
    ApplyFlagSettingsRequest,
    BackgroundTasksRequest,
    BackgroundTasksResponse,
    CancelAsyncMessageRequest,
    CancelAsyncMessageResponse,
    EndSessionRequest,
    GetBinaryVersionRequest,
    GetBinaryVersionResponse,
    GetSettingsRequest,
    GetStatusRequest,
    GetUsageRequest,
    GetUsageResponse,
    InitializeRequest,
    InitializeResponse,
    ListModelsRequest,
    ListModelsResponse,
    McpMessageRequest,
    McpReconnectRequest,
    McpSetServersRequest,
    McpSetServersResponse,
    McpStatusRequest,
    McpToggleRequest,
    MessageParam,
    ReloadOutputStylesRequest,
    ReloadOutputStylesResponse,
    ReloadPluginsRequest,
    ReloadPluginsResponse,
    ReloadSkillsRequest,
    ReloadSkillsResponse,
    RewindFilesRequest,
    RewindFilesResponse,
    SeedReadStateRequest,
    SessionUsage,
    SetMaxThinkingTokensRequest,
    SetMcpPermissionModeOverrideRequest,
    SetModelRequest,
    SetModelResponse,
    SetPermissionModeRequest,
    SetPermissionModeResponse,
    StatusMessage,
    StopTaskRequest,
    UnknownRequest,
    UserMessage,
)
from claude_wire.messages.base import Wire

Payload = Wire | dict[str, Any] | None
Answer = Payload | Followed

#: Answers of an agent without tasks, models, skills, plugins and checkpoints.
NOTHING: dict[type, Payload] = {
    StopTaskRequest: {},
    BackgroundTasksRequest: BackgroundTasksResponse(backgrounded=False),
    ListModelsRequest: ListModelsResponse(models=[]),
    ReloadSkillsRequest: ReloadSkillsResponse(skills=[]),
    ReloadPluginsRequest: ReloadPluginsResponse(commands=[], agents=[], plugins=[], mcpServers=[], error_count=0),
    ReloadOutputStylesRequest: ReloadOutputStylesResponse(available_output_styles=["default"]),
    RewindFilesRequest: RewindFilesResponse(canRewind=False, error="this agent keeps no checkpoints of files"),
    SeedReadStateRequest: {},
}


class HostRequests:
    """One agent's handlers for its host's requests."""

    def __init__(self, service: Runtime, handlers: dict[type, Callable[[Any], Any]]) -> None:
        self._service = service
        self._handlers = handlers
        self._own: dict[type, Callable[[Any], Answer]] = {
            CancelAsyncMessageRequest: self._cancel,
            SetPermissionModeRequest: self._set_permission_mode,
            SetModelRequest: self._set_model,
            McpStatusRequest: self._mcp_status,
            McpMessageRequest: self._mcp_message,
            McpSetServersRequest: self._mcp_set_servers,
            McpReconnectRequest: self._mcp_known,
            McpToggleRequest: self._mcp_known,
            SetMcpPermissionModeOverrideRequest: self._set_mcp_permission_mode,
            SetMaxThinkingTokensRequest: self._set_max_thinking_tokens,
            ApplyFlagSettingsRequest: self._apply_flag_settings,
            GetSettingsRequest: lambda body: {"effective": service.session.flag_settings, "sources": []},
            GetBinaryVersionRequest: lambda body: GetBinaryVersionResponse(version=service.session.version),
            GetUsageRequest: self._usage,
            EndSessionRequest: lambda body: Followed({}, service.end_input),
            UnknownRequest: self._unsupported,
        }
        self._own.update((kind, partial(_same, answer)) for kind, answer in NOTHING.items())
        if not service.protocol.plain:  # stream-json does not have this request
            self._own[GetStatusRequest] = lambda body: service.protocol.status

    def find(self, body: object) -> Handler | None:
        """Return the handler for a request's body, or None.

        If the author has no handler, this method already changes the session: the next line may be a prompt, and
        after ``set_model`` its turn must begin with the new model.
        """
        kind = type(body)
        own = self._own.get(kind)
        if kind in self._handlers:
            function: Callable[[Any], Awaitable[Any]] = self._handle
        elif own is not None:
            try:
                function = partial(_give, own(body))
            except Refusal as refusal:
                function = partial(_refuse, refusal)
        else:
            return None
        return Handler(function, None, lambda: f"the handler of {kind.__name__}")

    async def initialize(self, body: InitializeRequest) -> Payload:
        """Return what the agent supports, with the fields from the author's handler."""
        service = self._service
        given = await self._asked(body)
        version = service.session.version
        answer = InitializeResponse(
            commands=[],
            agents=[],
            output_style="default",
            available_output_styles=["default"],
            models=[],
            account=None,
            hooks_applied=True if body.hooks else None,
            hook_on_failure_supported=True if body.hooks else None,
            plugins_applied=True if body.plugins else None,
            mcp_servers_applied=None if body.mcpServers is None else True,
            claude_code_version=version,
        ).to_dict()
        answer["account"] = {}
        return {**answer, **(given.to_dict() if isinstance(given, Wire) else given or {})}

    async def _asked(self, body: object) -> Payload:
        """Return the answer from the author's handler, or None if there is no handler."""
        handler = self._handlers.get(type(body))
        return None if handler is None else await self._service.call(handler, body)

    async def _handle(self, body: object) -> Any:
        given = await self._asked(body)
        own = self._own.get(type(body))
        if own is None:
            return given
        answer = own(body)
        if given is None:
            return answer
        return answer._replace(payload=given) if isinstance(answer, Followed) else given

    def _cancel(self, body: CancelAsyncMessageRequest) -> Payload:
        return CancelAsyncMessageResponse(cancelled=bool(self._service.protocol.withdraw(body.message_uuid)))

    def _set_permission_mode(self, body: SetPermissionModeRequest) -> Answer:
        session = self._service.session
        if body.mode not in PERMISSION_MODES:
            problem = f"Cannot set permission mode: must be one of {', '.join(PERMISSION_MODES)}"
            raise Refusal(problem, "invalid_mode")
        answer = SetPermissionModeResponse(mode=body.mode)
        if session.permission_mode == body.mode:
            return answer
        session.permission_mode = body.mode
        return Followed(answer, partial(self._tell_mode, body.mode))

    def _tell_mode(self, mode: str) -> None:
        protocol, session = self._service.protocol, self._service.session
        protocol.send(StatusMessage(permissionMode=mode, uuid=protocol.new_uuid(), session_id=session.id))
        self._service.flush()

    def _set_model(self, body: SetModelRequest) -> Payload:
        protocol, session = self._service.protocol, self._service.session
        wanted = body.model if isinstance(body.model, str) and body.model != "default" else session.default_model
        if wanted != session.model:
            session.model = wanted
            text = f"<local-command-stdout>Set model to `{wanted}`</local-command-stdout>"
            message = UserMessage(
                message=MessageParam("user", text), session_id=session.id, uuid=protocol.new_uuid(), isReplay=True
            )
            protocol.send(message)
        return SetModelResponse(model=wanted)

    def _mcp_status(self, body: McpStatusRequest) -> Payload:
        servers = self._service.session.mcp_servers.values()
        rows: list[dict[str, Any]] = []
        for server in servers:
            row: dict[str, Any] = {"name": server.name, "status": server.status, "transport": "sdk", "source": "sdk"}
            if "serverInfo" in server.info:
                row["serverInfo"] = server.info["serverInfo"]
            row["tools"] = [
                {"name": tool.get("name"), "annotations": tool.get("annotations") or {}} for tool in server.tools
            ]
            rows.append(row)
        return {"mcpServers": rows}

    def _mcp_message(self, body: McpMessageRequest) -> Payload:
        """Answer a JSON-RPC request from an MCP server in the host: the agent has no methods."""
        message = body.message
        server = self._service.session.mcp_servers.get(body.server_name)
        if server is not None and "method" in message and "id" in message:
            error = {"code": -32601, "message": "Method not found"}
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            self._service.start(partial(self._tell_server, server, answer))
        return {}

    async def _tell_server(self, server: McpConnection, answer: dict[str, Any]) -> None:
        with suppress(RequestError):
            await self._service.questions.mcp_message(server, answer)

    def _mcp_set_servers(self, body: McpSetServersRequest) -> Payload:
        """Add and remove servers in the host. Report all other servers as errors."""
        session = self._service.session
        configs = cast("dict[str, dict[str, Any]]", body.servers)  # the decoder gives dicts, for any kind of server
        wanted = [name for name, config in configs.items() if config.get("type") == "sdk"]
        removed = [name for name in session.mcp_servers if name not in wanted]
        for name in removed:
            del session.mcp_servers[name]
        added = session.add_servers(wanted)
        errors = {
            name: "this agent connects to servers in the host only" for name in body.servers if name not in wanted
        }
        errors |= {name: "this agent has too many servers" for name in wanted if name not in session.mcp_servers}
        for server in added:
            self._service.start(partial(self._connect, server))
        return McpSetServersResponse(added=[server.name for server in added], removed=removed, errors=errors)

    async def _connect(self, server: McpConnection) -> None:
        await self._service.questions.greet(server)
        if server.status == "pending":
            await self._service.questions.connect(server)

    def _mcp_known(self, body: McpReconnectRequest | McpToggleRequest) -> Payload:
        """Accept the request for a server in the host, which is always connected. Refuse it for other servers."""
        server = self._service.session.mcp_servers.get(body.serverName)
        if server is None:
            raise Refusal(f"Server not found: {body.serverName}")
        if isinstance(body, McpToggleRequest) and not body.enabled:
            raise Refusal("this agent cannot switch off a server; mcp_set_servers removes it")
        return {}

    def _set_mcp_permission_mode(self, body: SetMcpPermissionModeOverrideRequest) -> Payload:
        session, name = self._service.session, body.serverName
        if body.mode not in ("default", "auto", None):
            raise Refusal("an override must be default, auto or null", "invalid_mode")
        if not session.set_mcp_mode(name, body.mode):
            raise Refusal("this agent has too many overrides")
        known = body.mode is None or name in session.mcp_servers
        return {} if known else {"warning": f"there is no MCP server of this name: {name}"}

    def _usage(self, body: GetUsageRequest) -> Payload:
        session = self._service.session
        usage = SessionUsage(
            total_cost_usd=session.cost_usd,
            total_api_duration_ms=0,
            total_duration_ms=int((monotonic() - session.began) * 1000),
            total_lines_added=0,
            total_lines_removed=0,
            model_usage=session.used,
        )
        return GetUsageResponse(session=usage, rate_limits_available=False)

    def _set_max_thinking_tokens(self, body: SetMaxThinkingTokensRequest) -> Payload:
        if body.max_thinking_tokens is not msgspec.UNSET:
            self._service.session.max_thinking_tokens = body.max_thinking_tokens
        return {}

    def _apply_flag_settings(self, body: ApplyFlagSettingsRequest) -> Payload:
        session = self._service.session
        settings = {**session.flag_settings, **body.settings}
        settings = {key: value for key, value in settings.items() if value is not None}
        if len(encode(settings)) > MAX_SETTINGS_BYTES:
            raise Refusal("the settings are too large for this agent")
        session.flag_settings = settings
        return {}

    def _unsupported(self, body: UnknownRequest) -> Payload:
        subtype = body.get("subtype", msgspec.UNSET)
        name = "undefined" if subtype is msgspec.UNSET else subtype if isinstance(subtype, str) else None
        words = msgspec.json.encode(subtype).decode() if name is None else name
        if isinstance(subtype, str) and body.reason != UNKNOWN_SUBTYPE:
            raise Refusal(f"this control request cannot be read: {body.reason}")
        raise Refusal(f"Unsupported control request subtype: {words}", "unsupported_request")


def _same(answer: Payload, body: object) -> Payload:
    return answer


async def _give(answer: Answer, body: Any) -> Answer:
    return answer


async def _refuse(refusal: Refusal, body: Any) -> Any:
    raise refusal
