"""Run a server of the package ``mcp`` inside this process, and serve it to the CLI over the session.

::

    from mcp.server import MCPServer  # mcp 2; mcp.server.fastmcp.FastMCP in mcp 1
    from claude_wire.integrations.mcp import InProcessMcpServer

    calculator = MCPServer("calc")

    @calculator.tool()
    def add(a: int, b: int) -> int: ...

    async with open_session(options, mcp_servers={"calc": InProcessMcpServer(calculator)}) as session: ...

This module only matches requests and responses by their JSON-RPC ids; the package mcp handles the methods. The session
carries the messages to and from the CLI.

It supports mcp 1.23 and above, and mcp 2. ``mcp_versions`` handles their differences, ``mcp_run`` runs a server.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from claude_wire.streams.tasks import EventLoopRef
from claude_wire.support.extras import install_extra

try:
    import mcp.types
except ModuleNotFoundError as _error:
    if _error.name != "mcp":
        raise
    raise ImportError(f"claude_wire.integrations.mcp needs mcp: {install_extra('mcp')}", name="mcp") from _error

from mcp.server import Server

from claude_wire.integrations.mcp_run import Handshake, Refused, Run, Send
from claude_wire.integrations.mcp_versions import (
    INVALID_REQUEST,
    RequestId,
    error_response,
    parse,
    request_id_of,
    root_of,
)

__all__ = ["InProcessMcpServer"]

_log = logging.getLogger("claude_wire")


class InProcessMcpServer:
    """Runs a server of the package ``mcp`` inside this process, for ``mcp_servers=`` of a session.

    The server runs from the first message to :meth:`aclose`, in a separate task, and serves any number of calls at the
    same time. If it fails, the failure is logged, and its open requests get an error. The next request starts the
    server again, at most once for each request. The new run first gets a copy of the client's handshake, because the
    CLI does the handshake only once. The server's state for the client is lost, such as subscriptions and the state of
    its lifespan. If the server never answered ``initialize``, only the next ``initialize`` starts it again.

    If the client withdraws a call, by ``notifications/cancelled`` or by cancelling :meth:`handle`, its tool is
    cancelled. A tool that ignores the cancellation, such as one that blocks a thread, keeps running, and its result is
    dropped.

    An object serves one session at a time. After :meth:`aclose` it can be connected again.

    Args:
        server: a :class:`mcp.server.Server`, or an ``MCPServer`` (``FastMCP`` in mcp 1).

    Raises:
        TypeError: ``server`` is not a server of the package mcp.
    """

    def __init__(self, server: Any) -> None:
        # MCPServer and FastMCP have no public attribute for the inner server.
        for inside in ("_lowlevel_server", "_mcp_server"):
            server = getattr(server, inside, server)
        if not isinstance(server, Server):
            raise TypeError(f"server must be a server of the package mcp, not {type(server).__name__}")
        self._server: Any = server
        self._send: Send | None = None
        self._run: Run | None = None
        self._handshake: Handshake | None = None
        # The event loop of the connected session; None before connect(), and if no loop ran then.
        self._home: EventLoopRef | None = None
        self._connected = False

    def __repr__(self) -> str:
        return f"<InProcessMcpServer {self.name!r}>"

    @property
    def name(self) -> str:
        """The server object's name. The session may use another name."""
        return str(self._server.name)

    def connect(self, send: Send) -> None:
        """Serve one client.

        Args:
            send: sends a JSON-RPC message of the server to the client: a notification, or a request, whose answer
                arrives at :meth:`handle`. It must return when the message is written, without waiting for the answer,
                because the server does nothing else meanwhile.

        Raises:
            RuntimeError: the object already serves another session.
        """
        if self._connected and (self._home is None or not self._home.gone):
            raise RuntimeError("this MCP server already serves a session")
        self._run = self._handshake = None  # an old run belongs to a session whose event loop no longer exists
        self._home = None
        with suppress(RuntimeError):  # no loop is running
            self._home = EventLoopRef()
        self._connected = True
        self._send = send

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Handle one JSON-RPC message from the client. Cancelling this call withdraws the request.

        Returns:
            The response to a request; None for a notification or a response. For an invalid message, or if the server
            cannot get the message, the response is a JSON-RPC error.
        """
        request_id = request_id_of(message)
        try:
            parsed = parse(message)
        except Exception:  # do not show pydantic's error, which quotes the message
            return error_response(request_id, INVALID_REQUEST, "Invalid Request")
        is_request = isinstance(root_of(parsed), mcp.types.JSONRPCRequest)
        if not is_request and "method" in message and "id" in message:  # a request that mcp 1 parses as a notification
            return error_response(request_id, INVALID_REQUEST, "Invalid Request")
        try:
            return await self._forward(message, parsed, request_id if is_request else None)
        except Refused as refused:
            if is_request:
                return error_response(request_id, refused.code, str(refused))
            _log.debug("a message to the MCP server %r was dropped: %s", self.name, refused)
            return None

    async def _forward(
        self, message: dict[str, Any], parsed: Any, request_id: RequestId | None
    ) -> dict[str, Any] | None:
        if not self._connected:
            raise Refused(f"MCP server {self.name!r} is closed")
        method = message.get("method")
        if method == "notifications/initialized" and self._handshake is not None:
            self._handshake = self._handshake._replace(initialized=message)
        run = self._run
        if run is None or (run.over and request_id is not None):
            run = self._run_again(run, method)
        if request_id is None:
            run.tell(message, parsed)
            return None
        if method != "initialize":
            return await run.ask(message, parsed, request_id)
        self._handshake = None
        answer = await run.ask(message, parsed, request_id)
        if "result" in answer and self._run is run:
            self._handshake = Handshake(message)
        return answer

    def _run_again(self, before: Run | None, method: str | None) -> Run:
        """Start the first run, or a new run after ``before``, for a message with this method."""
        handshake = None if method == "initialize" else self._handshake
        if before is not None and handshake is None and method != "initialize":
            raise before.stopped()
        run = self._run = Run(self._server, self._send, before)
        if handshake is not None:
            run.repeat(handshake)
        return run

    async def aclose(self) -> None:
        """Stop the server, and cancel its calls. This takes at most 5 seconds; calls that need longer keep running."""
        self._connected = False
        self._send = None
        self._handshake = None
        run, self._run = self._run, None
        if run is not None:
            await run.aclose()
