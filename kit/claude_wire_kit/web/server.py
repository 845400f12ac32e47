"""Run the service with uvicorn and additional limits for each connection.

uvicorn has no settings against clients that send a request's head slowly, or do not read, or send pings but do not
read. So this module subclasses uvicorn's protocol classes, which are not public. When it starts,
:class:`ServiceServer` checks that the methods and attributes used here still exist.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import socket
from typing import TYPE_CHECKING, Any, cast

import h11
import msgspec
from uvicorn import Config as UvicornConfig
from uvicorn import Server
from uvicorn.config import LOGGING_CONFIG
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.server import ServerProtocol

from claude_wire.support import require_parts
from claude_wire_kit.supervisor.child import raise_descriptors
from claude_wire_kit.web.access import HEADERS, Rate

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
    from websockets.http11 import Response

#: The newest versions of uvicorn and websockets that this module was tested with.
TESTED_UVICORN = "0.54.0"
TESTED_WEBSOCKETS = "17.4"

#: Maximum size in bytes of a request's head.
MAX_HEAD_BYTES = 64 * 1024
#: A request's head must arrive within this many seconds after the connection, or after the head's first byte.
HEAD_SECONDS = 10.0
#: The service disconnects a client that reads nothing for this many seconds while data is waiting for it.
STALLED_SECONDS = 30.0
#: When this many bytes are waiting for a client, uvicorn pauses the client's writer.
MAX_WAITING_BYTES = 32 * 1024
#: Maximum number of HTTP connections. The service closes additional connections immediately.
MAX_CONNECTIONS = 2048
#: Maximum number of connections that the kernel queues until the service accepts them.
BACKLOG = 256
#: Maximum size in bytes of a WebSocket message from a client. Clients have no reason to send messages.
MAX_MESSAGE_BYTES = 4096
#: Rate limit for lines in the log, because client requests can cause such lines: lines in one burst, and lines per
#: second.
LOG_BURST = 20
LOG_RATE = 0.1
#: When the service is stopping, running requests have this many seconds to finish.
END_SECONDS = 3


class _BoundedWrites(asyncio.Protocol):
    """Disconnects a client that reads nothing while data is waiting for it. A client that reads slowly may stay."""

    #: Tests set a smaller value.
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


class _Heads(h11.Connection):
    """Refuses a head above :data:`MAX_HEAD_BYTES`. h11 itself only refuses incomplete heads above its limit."""

    def next_event(self) -> Any:
        if self.their_state is not h11.IDLE:
            return super().next_event()
        before = len(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Request) and before - len(self.trailing_data[0]) > MAX_HEAD_BYTES:
            raise h11.RemoteProtocolError("the head is too long")
        return event


class BoundedProtocol(_BoundedWrites, H11Protocol):
    """uvicorn's HTTP/1.1 protocol with limits for slow heads, clients that do not read, and the number of connections.

    A response may take any time, because event streams last for hours.
    """

    #: Tests set smaller values.
    head_seconds = HEAD_SECONDS
    most_connections = MAX_CONNECTIONS

    _head: asyncio.TimerHandle | None = None
    # True after the connection became a :class:`BoundedWebSocket`.
    _is_websocket = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn: _Heads = _Heads(h11.SERVER, MAX_HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn has only TCP
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=MAX_WAITING_BYTES)
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
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        if cycle is None or cycle.response_complete:
            self._wait_for_head()
        else:
            self._head_is_there()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._head_is_there()
        self._is_websocket = True
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid request with status 400. If a reply has begun already, only close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = msgspec.json.encode({"error": "request", "message": msg})
            headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
            response = h11.Response(
                status_code=400, headers=[*headers.items(), *HEADERS.items()], reason=b"Bad Request"
            )
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

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


class _Handshakes(ServerProtocol):
    """Adds the security headers to the reply that refuses a handshake."""

    def send_response(self, response: Response) -> None:
        if response.status_code != 101:
            for name, value in HEADERS.items():
                if name not in response.headers:
                    response.headers[name] = value
        super().send_response(response)


class BoundedWebSocket(_BoundedWrites, WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol with limits. The connection ends even if the client does not read the close frame.

    If a client sends pings but does not read, it gets only the pong for its last ping, once there is room. RFC
    6455, 5.5.3, allows skipping the others.
    """

    _pong: bytes = b""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn: _Handshakes = _Handshakes(max_size=self.config.ws_max_size, logger=self.logger)

    def data_received(self, data: bytes) -> None:
        """Handle bytes from the client. If websockets cannot parse them, refuse the handshake or end the connection."""
        self.conn.receive_data(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            response = self.conn.reject(400, "The handshake cannot be read.")
            response.headers.update(HEADERS)
            self.handshake_complete = self.close_sent = True
            self.transport.write(response.serialize())
            self.transport.close()
        elif self.conn.parser_exc is None:
            self.handle_events()
        elif self.conn.close_sent is not None:
            self.handle_parser_exception()
        else:  # the client sent frames before the handshake was complete
            self.transport.abort()

    def handle_ping(self) -> None:
        """Answer a ping. If there is no room, keep the pong until there is room."""
        pongs = self.conn.data_to_send()
        if self.writable.is_set():
            self.transport.write(b"".join(pongs))
        elif pongs:
            self._pong = pongs[-1]

    def resume_writing(self) -> None:
        super().resume_writing()
        pong, self._pong = self._pong, b""
        self.transport.write(pong)


class _Sparing(logging.Filter):
    """Drops log lines above :data:`LOG_RATE`, and adds the number of dropped lines to the next line."""

    def __init__(self) -> None:
        super().__init__()
        self._rate = Rate(rate=LOG_RATE, burst=LOG_BURST)
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if not self._rate.passes():
            self._left_out += 1
            return False
        if self._left_out:
            record.msg, record.args = f"{record.getMessage()} ({self._left_out:,} lines were left out before)", ()
            self._left_out = 0
        return True


def _log_config() -> dict[str, Any]:
    config = copy.deepcopy(LOGGING_CONFIG)
    config["filters"] = {"sparing": {"()": _Sparing}}
    config["handlers"]["default"]["filters"] = ["sparing"]
    return config


# The attributes and methods overridden or used by the subclasses above.
_WRITES = "loop", "transport", "connection_lost", "pause_writing", "resume_writing"
_HTTP_PARTS = (
    *_WRITES,
    *("conn", "connection_made", "connections", "cycle", "data_received", "handle_websocket_upgrade"),
    *("on_response_complete", "send_400_response"),
)
_WEBSOCKET_PARTS = (
    *_WRITES,
    *("close_sent", "config", "conn", "data_received", "handle_events", "handle_parser_exception", "handle_ping"),
    *("handshake_complete", "handshake_initiated", "logger", "writable"),
)
_HANDSHAKE_PARTS = (
    *("close_sent", "data_to_send", "handshake_exc", "parser_exc", "receive_data", "reject", "send_response"),
)


class ServiceServer(Server):
    """uvicorn's server with this module's protocols. To stop, it closes event streams, then waits for other requests.

    Args:
        app: the application from :func:`~claude_wire_kit.web.create_app`.
    """

    def __init__(self, app: Starlette, protocol: type[BoundedProtocol] = BoundedProtocol) -> None:
        super().__init__(
            UvicornConfig(
                app,
                http=protocol,
                ws=BoundedWebSocket,
                ws_max_size=MAX_MESSAGE_BYTES,
                ws_per_message_deflate=False,
                h11_max_incomplete_event_size=MAX_HEAD_BYTES,
                timeout_graceful_shutdown=END_SECONDS,
                lifespan="on",
                log_config=_log_config(),
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
            )
        )
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Check the internals of uvicorn and websockets, then start to serve.

        Raises:
            ImportError: an attribute or method that this module uses no longer exists.
        """
        http: Any = H11Protocol(self.config, self.server_state, {})
        websocket: Any = WebSocketsSansIOProtocol(self.config, self.server_state, {})
        require_parts("uvicorn", TESTED_UVICORN, http, *_HTTP_PARTS)
        require_parts("uvicorn", TESTED_UVICORN, websocket, *_WEBSOCKET_PARTS)
        require_parts("websockets", TESTED_WEBSOCKETS, websocket.conn, *_HANDSHAKE_PARTS)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.service.close()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, and raise this process's descriptor limit. Port 0 means any free port.

    Raises:
        OSError: the socket cannot be opened.
    """
    listener = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
    )
    raise_descriptors()
    return listener
