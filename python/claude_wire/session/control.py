"""Pass the CLI's requests to the callbacks, and the CLI's answers to the tasks that are waiting for them.

This module also limits how many callbacks and answers may wait, and connects and closes MCP servers in this process.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from claude_wire.control.answers import MAX_TASKS, MAX_WAITING_BYTES, Answers
from claude_wire.control.requests import Requests
from claude_wire.errors import DialectError, EncodeError, HandleError, RequestRefusedError
from claude_wire.messages import (
    McpMessageRequest,
    McpSdkServerConfig,
    McpSetServersRequest,
)
from claude_wire.messages.base import Wire
from claude_wire.protocol.host import (
    CallbackWanted,
    CallbackWithdrawn,
    HostEvent,
    HostProtocol,
    PromptFinished,
    RequestAnswered,
)
from claude_wire.session.arguments import McpServer, require_server
from claude_wire.streams.tasks import Task, Tasks
from claude_wire.support.arguments import type_of
from claude_wire.support.waiting import move_on_after

if TYPE_CHECKING:
    from anyio import CancelScope

    from claude_wire.messages import ControlResponse, McpServerConfig, McpSetServersResponse
    from claude_wire.session.callbacks import Callbacks
    from claude_wire.session.sending import Sender

#: Seconds to wait for ``aclose()`` of an MCP server before connecting the same server again.
CLOSING_SECONDS = 10.0

_log = logging.getLogger("claude_wire")


class Control:
    """Both halves of the control protocol: the host's requests, and the CLI's requests, which callbacks answer."""

    def __init__(
        self,
        protocol: HostProtocol,
        callbacks: Callbacks,
        sender: Sender,
        tasks: Tasks,
        encode: Callable[[Any], bytes],
    ) -> None:
        self.protocol: HostProtocol = protocol
        self.callbacks: Callbacks = callbacks
        self.requests: Requests = Requests(protocol.requests, sender.send, tasks, encode)
        send_answer = partial(sender.send, is_answer=True)
        self.answers: Answers = Answers(protocol.questions, callbacks.find, send_answer, tasks, encode)
        #: The cancel scope of the task that is waiting for a message; None if no task is waiting. Cancelling the scope
        #: makes the task check the state of the run again.
        self.waiting: CancelScope | None = None
        #: The MCP servers in this process that may send to the CLI, by name.
        self.connected: dict[str, McpServer] = {}
        # Tasks that close MCP servers.
        self._closing = Tasks()
        # MCP servers that are closing, each paired with its task in `_closing`.
        self._leaving: list[tuple[McpServer, Task]] = []
        self._sender = sender
        self._was_full = False
        # True while set_servers() waits.
        self._sets_servers = False

    def is_full(self) -> bool:
        """True while too many callbacks and answers are waiting for the session to read more messages."""
        if not self.answers.is_full():
            return False
        if not self._was_full:
            self._was_full = True
            _log.warning(
                "a session stops reading until its callbacks and answers are fewer than %d tasks and %d bytes",
                MAX_TASKS,
                MAX_WAITING_BYTES,
            )
        return True

    def handle(self, message: Any) -> None:
        """Handle a control message. Call this once for each control message, in stream order."""
        self._dispatch(self.protocol.receive(message))

    def _dispatch(self, events: Iterable[HostEvent]) -> None:
        for event in events:
            if isinstance(event, CallbackWanted):
                self.answers.answer(event.question)
            elif isinstance(event, CallbackWithdrawn):
                self.answers.withdrawn(event.question)
            elif isinstance(event, RequestAnswered):
                self.requests.answered(event.request)
            elif isinstance(event, PromptFinished) and self.waiting is not None:
                self.waiting.cancel()  # the CLI may send no message that ends the wait

    def handle_answer(self, message: ControlResponse) -> None:
        """Handle an answer to a request of this session, while another session answers the CLI's requests."""
        self._dispatch(self.protocol.receive_answer(message))

    def connect(self, name: str, server: McpServer) -> None:
        """Let an MCP server in this process send to the CLI."""

        async def send(message: dict[str, Any]) -> None:
            await self._sender.send(self.requests.line(McpMessageRequest(server_name=name, message=message)))

        server.connect(send)
        self.connected[name] = server

    def drop_servers(self, names: Iterable[str]) -> None:
        """Disconnect MCP servers in this process, and start closing them."""
        for name in names:
            server = self.connected.pop(name, None)
            if server is not None:
                self.callbacks.mcp_servers.pop(name, None)
                task = self._closing.start(server.aclose, f"claude-wire-mcp-{name}")
                self._leaving = [(server, task), *(pair for pair in self._leaving if not pair[1].done)]

    async def end_servers(self, seconds: float) -> None:
        """Wait until all MCP servers are closed. After ``seconds``, cancel them and wait as long again."""
        await self._closing.wait(seconds)
        self._closing.cancel()
        await self._closing.wait(seconds)

    async def set_servers(
        self,
        servers: Mapping[str, McpServer | McpServerConfig],
        request: Callable[[McpSetServersRequest], Awaitable[McpSetServersResponse]],
    ) -> McpSetServersResponse:
        """See :meth:`claude_wire.Session.set_mcp_servers`. ``request`` sends the request to the CLI."""
        if self.callbacks.shared:
            raise HandleError("another program owns the CLI: the MCP servers of the session cannot change")
        if self._sets_servers:  # do not wait: an MCP server whose handle() calls set_servers() would wait for itself
            raise HandleError("another set_mcp_servers() call is running: wait until it returns")
        if not isinstance(servers, Mapping):
            raise TypeError(f"servers must be a dict such as {{'name': server}}, not {type_of(servers)}")
        ours: dict[str, McpServer] = {}
        configs: dict[str, McpServerConfig] = {}
        for name, server in servers.items():
            if isinstance(server, (Wire, dict)):
                configs[name] = server
                continue
            require_server(name, server, {**self.connected, **ours})
            if self.connected.get(name, server) is not server:
                raise ValueError(f"mcp_servers[{name!r}] already names another server: remove that server first")
            ours[name], configs[name] = server, McpSdkServerConfig(name)
        self._sets_servers = True
        try:
            return await self._set_servers(ours, McpSetServersRequest(servers=configs), request)
        finally:
            self._sets_servers = False

    async def _set_servers(
        self,
        ours: Mapping[str, McpServer],
        wanted: McpSetServersRequest,
        request: Callable[[McpSetServersRequest], Awaitable[McpSetServersResponse]],
    ) -> McpSetServersResponse:
        removed = [name for name in self.connected if name not in ours]
        added = [name for name in ours if name not in self.connected]
        await self._wait_until_closed({name: ours[name] for name in added})
        self._sender.require_open()  # the session may have been closed during the wait
        try:
            for name in added:  # the CLI may send requests to these servers before it answers
                self.connect(name, ours[name])
                self.callbacks.mcp_servers[name] = ours[name]
        except BaseException:
            self.drop_servers(added)
            raise
        try:
            answer = await request(wanted)
        except (RequestRefusedError, EncodeError, DialectError):  # the CLI refused or never got the request
            self.drop_servers(added)
            raise
        # After any other error (a timeout or a cancellation) the CLI may use either set, so both stay connected until
        # the next call.
        self.drop_servers(removed)
        return answer

    async def _wait_until_closed(self, servers: Mapping[str, McpServer]) -> None:
        """Wait until these servers can be connected. If one was removed earlier, its ``aclose()`` must return first.

        Raises:
            HandleError: ``aclose()`` takes longer than :data:`CLOSING_SECONDS`.
        """
        tasks = {name: task for name in servers for server, task in self._leaving if server is servers[name]}
        with move_on_after(CLOSING_SECONDS):
            for task in tasks.values():
                await task.wait()
        for name, task in tasks.items():
            if not task.done:
                raise HandleError(f"mcp_servers[{name!r}] was removed, and its aclose() has not returned yet")
