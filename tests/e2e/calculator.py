"""A minimal handwritten MCP server in the host's process, with only the methods that a `Session` needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

__all__ = ["Calculator"]

Message = dict[str, Any]


class Calculator:
    """An MCP server with tools that add two numbers, fail, and send the CLI an unknown request.

    It records its calls.
    """

    TOOLS = ("add", "fail", "ask")

    def __init__(self, calls: list[Any]) -> None:
        self._calls = calls
        self._send: Callable[[Message], Awaitable[None]] | None = None
        #: Set when the CLI has answered the server's own request.
        self._answered = anyio.Event()
        self._answer: Message = {}
        self.closed = False

    def connect(self, send: Callable[[Message], Awaitable[None]]) -> None:
        """Store the send function. The session calls this once, first."""
        assert self._send is None
        self._send = send

    async def handle(self, message: Message) -> Message | None:
        """Answer a request, and accept any other message."""
        if "method" not in message:
            self._answer = message
            self._answered.set()
        if "id" not in message or "method" not in message:
            return None
        return {"jsonrpc": "2.0", "id": message["id"], "result": await self._result(message)}

    async def aclose(self) -> None:
        """Mark the server as closed. The session calls this once, last."""
        self.closed = True

    async def _result(self, request: Message) -> Message:
        if request["method"] == "initialize":
            return {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "calc", "version": "1"},
            }
        if request["method"] == "tools/list":
            schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
            return {"tools": [{"name": name, "description": name, "inputSchema": schema} for name in self.TOOLS]}
        if request["method"] != "tools/call":
            return {}
        name, arguments = request["params"]["name"], request["params"]["arguments"]
        self._calls.append((name, arguments))
        return {"content": [{"type": "text", "text": await self._call(name, arguments)}], "isError": name == "fail"}

    async def _call(self, name: str, arguments: Message) -> str:
        if name == "add":
            return str(arguments["a"] + arguments["b"])
        if name == "fail":
            return "it failed"
        assert self._send is not None
        # The CLI answers this request while the tool call is still running.
        await self._send({"jsonrpc": "2.0", "id": 77, "method": "no/such/method", "params": {}})
        await self._answered.wait()
        return str(self._answer["error"]["message"])
