"""An MCP server that runs inside this process, for the CLI: a server of the package ``mcp``, served over the session.

::

    from mcp.server import MCPServer  # mcp 2; mcp.server.fastmcp.FastMCP in mcp 1
    from claude_wire.integrations.mcp import InProcessMcpServer

    calculator = MCPServer("calc")

    @calculator.tool()
    def add(a: int, b: int) -> int: ...

    async with open_session(options, mcp_servers={"calc": InProcessMcpServer(calculator)}) as session: ...

This module only matches requests and responses by their JSON-RPC ids; the package mcp handles the methods. The session
carries the messages to and from the CLI.

Made for mcp 1.23 and above, and mcp 2. Their differences are in ``mcp_versions``; ``mcp_run`` has one run of a server.
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

    The server runs from the first message to :meth:`aclose`, in a task of its own, and serves any number of calls at a
    time. If it fails, that is logged, and what it has not answered gets an error. The next request runs it again:
    first it gets the client's handshake once more, since the CLI shakes hands only once, and then the request. So each
    request has at most one new run. What the server kept for the client is lost, such as subscriptions and the state
    of its lifespan. A server that has never answered ``initialize`` is run again by the next ``initialize`` only.

    A call that the client withdraws, by ``notifications/cancelled`` or by cancelling :meth:`handle`, cancels the tool
    that runs for it. A tool that ignores this, such as one that blocks a thread, runs on, and its result is dropped.

    It serves one session at a time. After :meth:`aclose` it can be connected again.

    Args:
        server: a :class:`mcp.server.Server`, or what the package builds upon it: ``MCPServer``, ``FastMCP`` in mcp 1.

    Raises:
        TypeError: ``server`` is something else.
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
        # The event loop of the session that it serves.
        self._home: EventLoopRef | None = None
        self._connected = False

    def __repr__(self) -> str:
        return f"<InProcessMcpServer {self.name!r}>"

    @property
    def name(self) -> str:
        """The server's own name. The session may use another."""
        return str(self._server.name)

    def connect(self, send: Send) -> None:
        """Serve one client.

        Args:
            send: carries a JSON-RPC message to the client: a notification of the server's, or a request, whose answer
                comes back by :meth:`handle`. It returns when the message is written, and does not wait for that answer:
                the server waits as long as this does.

        Raises:
            RuntimeError: it serves another session already.
        """
        if self._connected and (self._home is None or not self._home.gone):
            raise RuntimeError("this MCP server serves a session already")
        self._run = self._handshake = None  # the old run belonged to a session whose loop is gone
        self._home = None
        with suppress(RuntimeError):  # no loop is running
            self._home = EventLoopRef()
        self._connected = True
        self._send = send

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Take one JSON-RPC message from the client.

        Returns:
            The response if it is a request, and None if it is a notification or a response. A message that is none of
            these, or that the server cannot be given, is answered by a JSON-RPC error. Nothing is raised but
            cancellation, which withdraws the request.
        """
        request_id = request_id_of(message)
        try:
            parsed = parse(message)
        except Exception:  # an error of pydantic, whose text quotes the message
            return error_response(request_id, INVALID_REQUEST, "Invalid Request")
        is_request = isinstance(root_of(parsed), mcp.types.JSONRPCRequest)
        if not is_request and "method" in message and "id" in message:  # mcp 1 takes it for a notification
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
        """Return a run for a message with this method, to replace one that is over, or to be the first."""
        handshake = None if method == "initialize" else self._handshake
        if before is not None and handshake is None and method != "initialize":
            raise before.stopped()
        run = self._run = Run(self._server, self._send, before)
        if handshake is not None:
            run.repeat(handshake)
        return run

    async def aclose(self) -> None:
        """End the server, and cancel its calls. Takes at most 5 seconds; calls that still run then are left alone."""
        self._connected = False
        self._send = None
        self._handshake = None
        run, self._run = self._run, None
        if run is not None:
            await run.aclose()
