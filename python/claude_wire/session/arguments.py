"""The arguments of a session: which others there are, where those go, and checks of some.

Knows what a session takes; not what it does with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from claude_wire.process.options import PLACES as OPTION_PLACES
from claude_wire.process.options import ClaudeOptions
from claude_wire.support.arguments import require_function, type_of

__all__ = [
    "CEILING_SECONDS",
    "PLACES",
    "REQUEST_SECONDS",
    "STREAM_PLACES",
    "McpServer",
    "require_server",
]

#: Default for ``timeout`` of requests, in seconds, as in claude-agent-sdk.
REQUEST_SECONDS = 60.0
#: Default for ``ceiling``, in seconds: how long the CLI waits for background work when its input has ended.
CEILING_SECONDS = 600.0
#: Options of the CLI, and of claude-agent-sdk, that are no arguments here, and where each goes.
PLACES: dict[str, str] = {
    **OPTION_PLACES,
    **{
        field.name: f"it is a flag of the CLI: open_session(ClaudeOptions({field.name}=...))"
        for field in dataclasses.fields(ClaudeOptions)
    },
    "max_buffer_size": "a session takes lines up to 128 MiB",
    "prompt": "send it: await session.query(...), or session.ask(...)",
}

#: The same for a session that is made of a stream.
STREAM_PLACES: dict[str, str] = {
    **PLACES,
    **dict.fromkeys(("cwd", "env", "extra_env", "user", "stderr"), "open_process(..., NAME=...)"),
}


class McpServer(Protocol):
    """An MCP server in the host's process; :class:`claude_wire.integrations.mcp.InProcessMcpServer` is one."""

    def connect(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Called before any :meth:`handle`. Called again if the server was closed and the session adds it again.

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
        """Stop. Called once for each :meth:`connect`: when the session leaves the server out, or ends."""
        ...


def require_server(name: str, server: object, others: Mapping[str, object]) -> None:
    """Refuse what is no MCP server, or is one of ``others`` under another name.

    Raises:
        TypeError: it is no MCP server.
        ValueError: it is there already.
    """
    methods = ("connect", "handle", "aclose")
    if isinstance(server, type) or not all(callable(getattr(server, method, None)) for method in methods):
        raise TypeError(
            f"mcp_servers[{name!r}] must be an McpServer, not {type_of(server)}: a server of the mcp package goes into "
            "claude_wire.integrations.mcp.InProcessMcpServer, one that the CLI runs into ClaudeOptions(mcp_config=...)"
        )
    require_function(f"mcp_servers[{name!r}].connect", getattr(server, "connect", None), "a function", awaited=False)
    require_function(f"mcp_servers[{name!r}].handle", getattr(server, "handle", None), "a JSON-RPC object")
    for other, one in others.items():
        if one is server and other != name:
            raise ValueError(
                f"mcp_servers[{name!r}] is the same object as mcp_servers[{other!r}], and a server has one name: to "
                "rename it, leave it out first"
            )
