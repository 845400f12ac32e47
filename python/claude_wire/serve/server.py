"""The service as a process: uvicorn, with bounds on what a connection may take.

Knows uvicorn and sockets; not what the application does.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from uvicorn import Config as UvicornConfig
from uvicorn import Server
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    import h11
    from starlette.applications import Starlette
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

__all__ = ["BoundedProtocol", "BoundedWebSocket", "ServiceServer", "listen"]

#: Bytes of the head of a request.
MOST_HEAD_BYTES = 64 * 1024
#: Seconds in which the head of a request must have come, from the connection or the first byte on.
HEAD_SECONDS = 10.0
#: Seconds that a connection may take nothing of what waits for it.
STALLED_SECONDS = 30.0
#: Connections at once, of HTTP. One more is closed at once.
MOST_CONNECTIONS = 2048
#: Connections that the system keeps waiting.
BACKLOG = 256
#: Bytes of a message that a client sends over a WebSocket. It has nothing to say.
MOST_MESSAGE_BYTES = 4096
#: Seconds that requests under way get when the service ends.
END_SECONDS = 3


class _BoundedWrites(asyncio.Protocol):
    """Cuts off a client that takes nothing of what waits for it. One that is slow takes as long as it needs."""

    #: As :data:`STALLED_SECONDS`.
    stalled_seconds = STALLED_SECONDS

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _stalled: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._moves()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._look_again(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._moves()

    def _look_again(self, size: int) -> None:
        self._stalled = self.loop.call_later(self.stalled_seconds, self._look, size)

    def _look(self, before: int) -> None:
        size = self.transport.get_write_buffer_size()
        if size < before:
            self._look_again(size)
        else:
            self.transport.abort()

    def _moves(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class BoundedProtocol(_BoundedWrites, H11Protocol):
    """HTTP/1.1 as uvicorn has it, with limits that uvicorn has not: slow heads, stalled readers, connections.

    It gives a request as much time as it wants to be answered: events go on for hours.
    """

    #: As :data:`HEAD_SECONDS` and :data:`MOST_CONNECTIONS`.
    head_seconds = HEAD_SECONDS
    most_connections = MOST_CONNECTIONS

    _head: asyncio.TimerHandle | None = None
    # Whether the connection is that of a :class:`BoundedWebSocket` by now.
    _is_websocket = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn has TCP alone
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.abort()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._head_is_there()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_websocket:
            return
        cycle = cast("RequestResponseCycle | None", self.cycle)  # there is none before the first request
        if cycle is None or cycle.response_complete:
            self._wait_for_head()
        else:
            self._head_is_there()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._head_is_there()
        self._is_websocket = True
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        self._head_is_there()
        super().on_response_complete()

    def _wait_for_head(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(self.head_seconds, self.transport.abort)

    def _head_is_there(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class BoundedWebSocket(_BoundedWrites, WebSocketsSansIOProtocol):
    """A WebSocket as uvicorn has it, which ends also where its client takes not even the end."""


class ServiceServer(Server):
    """uvicorn with the service. It ends streams of events before it waits for requests to end.

    Args:
        app: of :func:`~claude_wire.serve.create_app`.
    """

    def __init__(self, app: Starlette, protocol: type[BoundedProtocol] = BoundedProtocol) -> None:
        super().__init__(
            UvicornConfig(
                app,
                http=protocol,
                ws=BoundedWebSocket,
                ws_max_size=MOST_MESSAGE_BYTES,
                ws_per_message_deflate=False,
                h11_max_incomplete_event_size=MOST_HEAD_BYTES,
                timeout_graceful_shutdown=END_SECONDS,
                lifespan="on",
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
            )
        )
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.service.close()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free one.

    Raises:
        OSError: it cannot be had.
    """
    listener = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
    )
    raise_descriptors()
    return listener


def raise_descriptors() -> None:
    """Take as many descriptors as the system allows: each connection has one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
