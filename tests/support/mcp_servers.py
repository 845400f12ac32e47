"""In-process MCP servers built with the package mcp, which must be installed, and a client that acts like the CLI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import mcp.types

from claude_wire.integrations.mcp import InProcessMcpServer

if TYPE_CHECKING or hasattr(mcp.types, "jsonrpc_message_adapter"):
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
else:  # mcp 1
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer

from mcp.server import Server

__all__ = [
    "CALL",
    "INITIALIZE",
    "QUICK",
    "Client",
    "Context",
    "Dies",
    "MCPServer",
    "Message",
    "Mortal",
    "Slow",
    "calculator",
    "connected",
    "dying",
    "low_level",
    "settled",
    "stopped",
    "the_run",
]

Message = dict[str, Any]

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "claude-code", "title": "Claude Code", "version": "2.1.331"},
}


class Client:
    """A client that talks to a server as the CLI does, and keeps the messages from the server."""

    def __init__(self, server: Any) -> None:
        self.server = InProcessMcpServer(server)
        self.sent: list[Message] = []
        self.ids = count()
        self._changed = anyio.Event()

    async def send(self, message: Message) -> None:
        await anyio.lowlevel.checkpoint()
        self.sent.append(message)
        self._changed.set()
        self._changed = anyio.Event()

    async def until_sent(self, method: str) -> Message:
        while True:
            for message in self.sent:
                if message.get("method") == method:
                    return message
            await self._changed.wait()

    async def ask(self, method: str, params: Message | None = None) -> Message:
        """Send a request and return the response."""
        message: Message = {"method": method, "jsonrpc": "2.0", "id": next(self.ids)}
        if params is not None:
            message["params"] = params
        response = await self.server.handle(message)
        assert response is not None
        assert (response["jsonrpc"], response["id"]) == ("2.0", message["id"])
        return response

    async def result(self, method: str, params: Message | None = None) -> Message:
        response = await self.ask(method, params)
        result: Message = response["result"]
        return result

    async def error(self, method: str, params: Message | None = None) -> Message:
        response = await self.ask(method, params)
        error: Message = response["error"]
        return error

    async def tell(self, method: str, params: Message | None = None) -> None:
        message: Message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        assert await self.server.handle(message) is None

    async def call(self, tool: str, **arguments: Any) -> Message:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": 7}}
        return await self.result("tools/call", params)

    async def initialize(self) -> Message:
        result = await self.result("initialize", INITIALIZE)
        await self.tell("notifications/initialized")
        return result


@asynccontextmanager
async def connected(server: Any) -> AsyncIterator[Client]:
    client = Client(server)
    client.server.connect(client.send)
    try:
        await client.initialize()
        yield client
    finally:
        await client.server.aclose()


def calculator() -> Any:
    server = MCPServer("calc", instructions="It adds.")

    @server.tool()
    def add(a: int, b: int) -> str:
        return f"{a + b}"

    @server.tool()
    def structured() -> dict[str, Any]:
        return {"sum": 3, "none": None, "list": [1, None]}

    @server.tool()
    def bad() -> str:
        raise ValueError("it does not work")

    @server.resource("calc://pi")
    def pi() -> str:
        return "3.14"

    @server.prompt()
    def ask(what: str) -> str:
        return f"How much is {what}?"

    return server


def low_level(name: str = "low", **hooks: Any) -> Any:
    """Return a low-level server without tools, for mcp 1 and mcp 2."""
    return Server(name, version="1", **hooks)


def the_run(client: Client) -> Any:
    """Return the object that runs the client's server."""
    assert client.server._run is not None
    return client.server._run


async def settled(condition: Callable[[], bool]) -> None:
    """Poll until a condition holds that no event announces."""
    while not condition():
        await anyio.sleep(0.001)


class Slow:
    """A server with a tool that runs until it is cancelled."""

    def __init__(self, stubborn: bool = False) -> None:
        self.server = MCPServer("slow")
        self.entered = anyio.Event()
        self.cancelled = anyio.Event()
        #: Set this to let a stubborn tool end.
        self.go = anyio.Event()

        @self.server.tool()
        async def slow() -> str:
            self.entered.set()
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                if stubborn:
                    with anyio.CancelScope(shield=True):
                        await self.go.wait()
                    return "all the same"
                raise
            return ""

        @self.server.tool()
        def quick() -> str:
            return "quick"


CALL = {"jsonrpc": "2.0", "id": 100, "method": "tools/call", "params": {"name": "slow", "arguments": {}}}
QUICK = {**CALL, "params": {"name": "quick", "arguments": {}}}


def stopped(name: str, why: str = "") -> Message:
    return {"code": -32603, "message": f"MCP server {name!r} has stopped{why}"}


class Dies(RuntimeError):
    """The error with which a dying server fails."""


def dying(server: Any, fails: Callable[[int], bool], die: Callable[[], Awaitable[object]]) -> Any:
    """Make a server's run fail: at its start if ``fails(number of the run)``, or once ``die()`` returns."""
    low = InProcessMcpServer(server)._server
    starts = count()
    run = low.run

    async def failing(*args: Any) -> None:
        if fails(next(starts)):
            raise Dies("secret")

        async def fail() -> None:
            await die()
            raise Dies("secret")

        async with anyio.create_task_group() as group:
            group.start_soon(fail)
            await run(*args)
            group.cancel_scope.cancel()

    low.run = failing
    return low


class Mortal:
    """A slow server that a test can make fail.

    It records the numbers of its runs; the ``stillborn`` runs fail at their start.
    """

    def __init__(self, *stillborn: int) -> None:
        self.slow = Slow()
        self.runs: list[int] = []
        #: Set this to make the current run fail.
        self.die = anyio.Event()

        @self.slow.server.tool()
        def client(ctx: Context) -> str:
            params = ctx.session.client_params
            return "nobody" if params is None else str(params.model_dump(by_alias=True)["clientInfo"]["version"])

        def fails(number: int) -> bool:
            self.runs.append(number)
            return number in stillborn

        async def die() -> None:
            self.die = anyio.Event()
            await self.die.wait()

        self.server = dying(self.slow.server, fails, die)

    async def kill(self, client: Client) -> None:
        run = the_run(client)
        self.die.set()
        await settled(lambda: run.over)
