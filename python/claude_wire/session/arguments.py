"""The arguments that a session takes: their defaults and checks, and hints for arguments that belong elsewhere.

For example, ``open_session(model="opus")`` fails with a hint to write ``ClaudeOptions(model=...)``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from claude_wire.process.options import PLACES as OPTION_PLACES
from claude_wire.process.options import ClaudeOptions
from claude_wire.support.arguments import require_function, type_of

#: Default ``timeout`` for requests, in seconds. claude-agent-sdk has the same default.
REQUEST_SECONDS = 60.0
#: Default ``ceiling``, in seconds. The CLI itself waits this long for background work after its input ends.
CEILING_SECONDS = 600.0
#: CLI or claude-agent-sdk option that :func:`open_session` does not take -> hint that says where to put the option.
PLACES: dict[str, str] = {
    **OPTION_PLACES,
    **{
        field.name: f"it is a flag of the CLI: open_session(ClaudeOptions({field.name}=...))"
        for field in dataclasses.fields(ClaudeOptions)
    },
    "max_buffer_size": "a session takes lines up to 128 MiB",
    "prompt": "send it: await session.query(...), or session.ask(...)",
}

#: The same mapping, for :class:`Session`.
STREAM_PLACES: dict[str, str] = {
    **PLACES,
    **dict.fromkeys(("cwd", "env", "extra_env", "user", "stderr"), "open_process(..., NAME=...)"),
}


class McpServer(Protocol):
    """An MCP server in the host's process; :class:`claude_wire.integrations.mcp.InProcessMcpServer` is one."""

    def connect(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Start. The session calls this before it calls :meth:`handle`, and again if it adds a closed server again.

        ``send`` sends one JSON-RPC object to the CLI: a notification or a request from the server. It returns when the
        object is written. The session passes the CLI's response to :meth:`handle`.
        """
        ...

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Handle one JSON-RPC object from the CLI. Return the response to a request, and None for other objects.

        The call is cancelled if the CLI withdraws its request.
        """
        ...

    async def aclose(self) -> None:
        """Stop. The session calls this once for each :meth:`connect`, when it removes the server or closes."""
        ...


def require_server(name: str, server: object, others: Mapping[str, object]) -> None:
    """Check an MCP server in ``mcp_servers``.

    Raises:
        TypeError: ``server`` is not an MCP server.
        ValueError: ``others`` has the same server under another name.
    """
    methods = ("connect", "handle", "aclose")
    if isinstance(server, type) or not all(callable(getattr(server, method, None)) for method in methods):
        raise TypeError(
            f"mcp_servers[{name!r}] must be an McpServer, not {type_of(server)}: wrap a server of the mcp package in "
            "claude_wire.integrations.mcp.InProcessMcpServer; pass a server that the CLI runs to "
            "ClaudeOptions(mcp_config=...)"
        )
    require_function(f"mcp_servers[{name!r}].connect", getattr(server, "connect", None), "a function", awaited=False)
    require_function(f"mcp_servers[{name!r}].handle", getattr(server, "handle", None), "a JSON-RPC object")
    for other, one in others.items():
        if one is server and other != name:
            raise ValueError(
                f"mcp_servers[{name!r}] is the same object as mcp_servers[{other!r}], and a server has one name: to "
                "rename it, remove it first"
            )
