"""Send a session's events to a client as Server-Sent Events or as WebSocket messages."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING

import anyio
import msgspec
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.websockets import WebSocketDisconnect

from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import Cursor
from claude_wire_kit.web.events import EventId
from claude_wire_kit.web.feed import BEAT, Signal, follow_raw
from claude_wire_kit.web.refusals import refusal, supervisor_refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.datastructures import QueryParams
    from starlette.requests import HTTPConnection, Request
    from starlette.types import Message, Receive, Scope, Send
    from starlette.websockets import WebSocket

    from claude_wire_kit.web.events import Batch
    from claude_wire_kit.web.past import PastId
    from claude_wire_kit.web.service import Service

#: Tells a browser to reconnect 1,000 milliseconds after a lost connection.
RETRY = b"retry: 1000\n\n"
#: The largest value of the parameter ``last``.
MAX_COUNT = 2_000
#: The number of events on a page (``before``) if the client sends no ``last``.
DEFAULT_COUNT = 200
#: Close codes of a WebSocket. TRY_AGAIN: the client may reconnect. REFUSED: the client sent a message.
TRY_AGAIN = 1013
REFUSED = 1008


class _Opened(AsyncExitStack):
    """One connection's events, and the feed or the lines to close after them."""

    events: AsyncGenerator[Batch | Signal]

    async def open(self, connection: HTTPConnection) -> None:
        """Open the events requested by the parameters and ``Last-Event-ID``.

        Raises:
            ValueError: the id or the number of events is invalid.
            SupervisorError: the events after the id are not available, or no session has this id.
        """
        service: Service = connection.state.service
        last = count_of(connection.query_params)
        session = str(connection.path_params["id"])
        # A browser that reconnects sends the same URL, and its last event's id in the header.
        given = connection.headers.get("last-event-id") or connection.query_params.get("lastEventId")
        after = EventId.of(given) if given else None
        if _is_set(connection.query_params, "raw"):
            if last is not None:
                raise ValueError("last works only for events, not for raw lines")
            cursor = None if after is None else Cursor(session, after.epoch, after.place.line)
            lines = await self.enter_async_context(service.lines(session, cursor))
            self.events = follow_raw(lines)
        else:
            details = _is_set(connection.query_params, "details")
            is_tail = last is not None and after is None
            feed = await self.enter_async_context(service.feed(session, details, after=after, is_tail=is_tail))
            feed.check(after)
            self.events = feed.follow(after, last or 0)
        await self.enter_async_context(aclosing(self.events))


class _Stream(StreamingResponse):
    """A streaming response that closes its events even if the client disconnects."""

    def __init__(self, opened: _Opened) -> None:
        super().__init__((), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._opened:
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        """Send all events. The base class needs a generator, which would take 1/15 of the time for an event."""

        def body(data: bytes, more: bool = True) -> Message:
            return {"type": "http.response.body", "body": data, "more_body": more}

        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send(body(RETRY))
        try:
            async for one in self._opened.events:
                if not isinstance(one, Signal):
                    await send({"type": "http.response.body", "body": one.sse, "more_body": True})
                elif one is BEAT:
                    await send(body(b":\n\n"))
                else:
                    await send(body(f"event: {one.name}\ndata: {one.json}\n\n".encode()))
        except SupervisorError as error:
            await send(body(f"event: failed\ndata: {_failed(error)}\n\n".encode()))
        await send(body(b"", more=False))


async def events(request: Request) -> Response:
    """Handle a request for Server-Sent Events, or for a page of events as JSON if it has ``before``."""
    if "before" in request.query_params:
        return await _older(request)
    opened = _Opened()
    try:
        await opened.open(request)
    except BaseException as error:
        await opened.aclose()
        if isinstance(error, ValueError):
            return refusal(400, "id", str(error))
        raise
    return _Stream(opened)


async def _older(request: Request) -> Response:
    service: Service = request.state.service
    try:
        before = EventId.of(request.query_params["before"])
        count = count_of(request.query_params) or DEFAULT_COUNT
    except ValueError as error:
        return refusal(400, "id", str(error))
    found, more = await service.older(str(request.path_params["id"]), before, count)
    return page_of_events([event.websocket for event in found], more)


def page_of_events(events: list[str], before: EventId | PastId | None) -> Response:
    """Return the reply with a page of events (JSON strings), and the id to send for earlier events."""
    body = f'{{"events":[{",".join(events)}],"before":{json_of_id(before)}}}'
    return Response(body, media_type="application/json")


def json_of_id(id: EventId | PastId | None) -> str:
    """Return an id as a JSON string, or ``null``."""
    return json.dumps(None if id is None else str(id))


async def websocket(websocket: WebSocket) -> None:
    """Handle a WebSocket: send events until the client disconnects. A message from the client ends the connection."""
    async with _Opened() as opened:
        try:
            await opened.open(websocket)
        except (ValueError, SupervisorError) as error:
            await websocket.send_denial_response(_denial(error))
            return
        await websocket.accept()
        code = TRY_AGAIN
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                nonlocal code
                try:
                    message = await websocket.receive()
                    if message["type"] == "websocket.receive":
                        code = REFUSED
                except WebSocketDisconnect:
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(listen)
            try:
                async for one in opened.events:
                    if not isinstance(one, Signal):
                        for event in one:
                            await websocket.send_text(event.websocket)
                    elif one is not BEAT:  # WebSockets have pings instead
                        await websocket.send_text(f'{{"event":{one.json}}}')
            except SupervisorError as error:
                await websocket.send_text(f'{{"event":{_failed(error)}}}')
            except (WebSocketDisconnect, RuntimeError):  # the client disconnected
                pass
            tasks.cancel_scope.cancel()
        try:
            await websocket.close(code)
        except (WebSocketDisconnect, RuntimeError):
            pass  # already closed


def count_of(params: QueryParams) -> int | None:
    """Return the parameter ``last``: how many of the latest events a client asks for. None if it asks for all.

    Raises:
        ValueError: ``last`` is not a number from 1 to :data:`MAX_COUNT`.
    """
    given = params.get("last")
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 6 and 0 < int(given) <= MAX_COUNT):
        raise ValueError(f"last must be a number of events, at most {MAX_COUNT:,}")
    return int(given)


def _is_set(params: QueryParams, name: str) -> bool:
    return params.get(name, "") in ("1", "true")


def _failed(error: SupervisorError) -> str:
    return msgspec.json.encode({"type": "failed", "error": error.error, "message": str(error)}).decode()


def _denial(error: ValueError | SupervisorError) -> JSONResponse:
    return supervisor_refusal(error) if isinstance(error, SupervisorError) else refusal(400, "id", str(error))
