"""The JSON-RPC types of the package ``mcp``, and all differences between mcp 1 and mcp 2."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import mcp.types
from anyio import CancelScope, get_cancelled_exc_class
from mcp.shared import exceptions, message
from mcp.shared.message import SessionMessage

from claude_wire.streams.tasks import cancelled_by_nobody
from claude_wire.support.plain_json import fields_of
from claude_wire.support.waiting import cancel_scope

__all__ = [
    "CANCELS_BY_SCOPE",
    "CONNECTION_CLOSED",
    "INTERNAL_ERROR",
    "INVALID_REQUEST",
    "REQUEST_CANCELLED",
    "RequestId",
    "cancellable",
    "dump",
    "error_response",
    "parse",
    "request_id_of",
    "request_message",
    "root_of",
]

RequestId = int | str

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603
#: mcp's error code for a closed connection.
CONNECTION_CLOSED = -32000
#: mcp 2's error code for a cancelled request. JSON-RPC and MCP do not define such a code.
REQUEST_CANCELLED = -32800

# A type checker sees the installed version, and would report the names of the other version.
_types: Any = mcp.types
_message: Any = message
_exceptions: Any = exceptions

_MAJOR = 2 if hasattr(mcp.types, "jsonrpc_message_adapter") else 1

#: True for mcp 1, which answers a cancelled request immediately, and fails if the handler also answers. So mcp 1 does
#: not get ``notifications/cancelled``. We cancel the handler's scope instead, and the handler answers that it was
#: cancelled. mcp 2 gets ``notifications/cancelled``, and drops the handler's answer.
CANCELS_BY_SCOPE = _MAJOR == 1


def request_id_of(message: Any, key: str = "id") -> RequestId | None:
    """Return the id in a message or in its params, or None if there is no valid id. The message may have any type."""
    found = fields_of(message).get(key)
    return found if isinstance(found, (int, str)) and not isinstance(found, bool) else None


def error_response(request_id: RequestId | None, code: int, why: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": why}}


def parse(message: Any) -> Any:
    """Convert a message to the type of mcp's streams. Raises pydantic's ValidationError."""
    if _MAJOR == 1:
        return _types.JSONRPCMessage.model_validate(message)
    return _types.jsonrpc_message_adapter.validate_python(message)


def root_of(parsed: Any) -> Any:
    """Return the message without the wrapper object of mcp 1."""
    return getattr(parsed, "root", parsed)


def request_message(parsed: Any, unanswered: Callable[[], None]) -> SessionMessage:
    """Wrap a request for the server. mcp 2 calls ``unanswered`` when it ends a cancelled request without an answer."""
    if _MAJOR == 1:
        return SessionMessage(parsed)

    async def on_request_unanswered() -> None:
        unanswered()

    return SessionMessage(parsed, _message.ServerMessageMetadata(on_request_unanswered=on_request_unanswered))


def dump(item: SessionMessage) -> dict[str, Any]:
    """Convert a message to JSON like mcp's own transports. Raises pydantic's errors."""
    left_out: dict[str, Any] = {"exclude_none": True} if _MAJOR == 1 else {"exclude_unset": True}
    dumped: dict[str, Any] = item.message.model_dump(by_alias=True, mode="json", **left_out)
    return dumped


def cancellable(server: Any, scope_of: Callable[[RequestId], CancelScope | None]) -> Any:
    """Return a server whose handlers can be cancelled. mcp 2 supports this. For mcp 1, the result is a copy that runs
    each handler in the scope of its request.
    """
    if _MAJOR == 1:
        server = copy.copy(server)
        server.request_handlers = _Handlers(server, scope_of)
    return server


class _Handlers(Mapping[type, Callable[[Any], Awaitable[Any]]]):
    """The request handlers of an mcp 1 server, including those added later. Each runs in its request's scope."""

    def __init__(self, server: Any, scope_of: Callable[[RequestId], CancelScope | None]) -> None:
        self._server = server
        self._handlers: Mapping[type, Callable[[Any], Awaitable[Any]]] = server.request_handlers
        self._scope_of = scope_of

    def __len__(self) -> int:
        return len(self._handlers)

    def __iter__(self) -> Iterator[type]:
        return iter(self._handlers)

    def __getitem__(self, request_type: type) -> Callable[[Any], Awaitable[Any]]:
        handler = self._handlers[request_type]

        async def in_scope(request: Any) -> Any:
            scope = self._scope_of(self._server.request_context.request_id)
            try:
                with scope or cancel_scope():
                    return await handler(request)
            except get_cancelled_exc_class():
                # mcp would treat this exception as its own cancellation of the request, and never answer.
                if not cancelled_by_nobody():
                    raise
                raise _error(INTERNAL_ERROR, "a task that the handler awaits was cancelled") from None
            raise _error(REQUEST_CANCELLED, "Request cancelled")

        return in_scope


def _error(code: int, why: str) -> Exception:
    """Return the exception that makes mcp 1 answer a request with this error."""
    error: Exception = _exceptions.McpError(_types.ErrorData(code=code, message=why))
    return error
