"""Run an MCP server's ``Server.run()`` over in-memory streams, and match its output to the open calls.

The module ``mcp`` decides when to run a server again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio import CancelScope, Event
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from claude_wire.errors import HandleError
from claude_wire.integrations.mcp_versions import (
    CANCELS_BY_SCOPE,
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    RequestId,
    cancellable,
    dump,
    error_response,
    parse,
    request_id_of,
    request_message,
)
from claude_wire.streams.tasks import Task, cancelled_by_nobody
from claude_wire.support.waiting import cancel_scope, move_on_after

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

__all__ = ["Handshake", "Refused", "Run", "Send"]

Send = Callable[[dict[str, Any]], Awaitable[None]]

#: Maximum duration of :meth:`InProcessMcpServer.aclose` in seconds, even if the server's tools keep running.
GRACE_SECONDS = 5.0

#: Seconds to hold back the answer "connection closed", which an mcp 2 server returns for every call when it fails. If
#: the cause of the failure becomes known within this time, the calls get the cause instead.
CAUSE_SECONDS = 1.0

#: Maximum number of unread messages, and of unanswered requests. More are refused: a client that sends notifications or
#: withdraws requests does not wait for answers, so it could queue any number.
MAX_WAITING = 4096

#: The id of the ``initialize`` request that is repeated for a new run. Clients do not use this id.
HANDSHAKE_ID = "claude-wire-handshake"

_log = logging.getLogger("claude_wire")


class Refused(Exception):
    """The server cannot accept a message. The exception has the text and the code for a JSON-RPC error."""

    def __init__(self, why: str, code: int = INTERNAL_ERROR) -> None:
        super().__init__(why)
        self.code: int = code


class Handshake(NamedTuple):
    """The two messages of the client's handshake, as received."""

    initialize: dict[str, Any]
    #: ``notifications/initialized``; None until the client sends it.
    initialized: dict[str, Any] | None = None


class Call:
    """A client's request that is waiting for the server's answer."""

    def __init__(self, method: str) -> None:
        self.method: str = method
        #: The scope in which a server of mcp 1 runs the handler.
        self.scope: CancelScope = cancel_scope()
        self._answer: dict[str, Any] | Refused | None = None
        self._answered = Event()

    def settle(self, answer: dict[str, Any] | Refused) -> None:
        if self._answer is None:
            self._answer = answer
            self._answered.set()

    async def wait(self) -> dict[str, Any]:
        await self._answered.wait()
        assert self._answer is not None
        if isinstance(self._answer, Refused):
            raise self._answer
        return self._answer


class Run:
    """One ``Server.run()`` over a pair of in-memory streams, and the only reader of its output."""

    def __init__(self, server: Any, send: Send | None, before: Run | None) -> None:
        self.failure: BaseException | None = None
        self._name = str(server.name)
        self._calls: dict[RequestId, Call] = {}
        self._server = cancellable(server, self._scope)
        self._send = send
        # The previous run, which may still be ending, or None.
        self._before = before
        # Set, except between the client's `initialize` and its `notifications/initialized`.
        self._initialized = Event()
        self._initialized.set()
        # Messages that the server has not read yet.
        self._given: deque[SessionMessage] = deque()
        self._more = Event()
        self._group: TaskGroup | None = None
        self._ended = False
        # The cancel scope of the message that is being sent to the client, or None.
        self._sending: CancelScope | None = None
        self._served = Event()
        self._closing = False
        self._task = Task(self._main, f"MCP server {self._name!r}")

    @property
    def over(self) -> bool:
        """True if the run no longer answers requests. The server's lifespan may still be ending."""
        return self._ended or self._task.done

    def stopped(self) -> Refused:
        """Return the error for requests that the run did not answer, and for requests after the end of the run."""
        if self._closing:
            return Refused(f"MCP server {self._name!r} is closed")
        cause = "" if self.failure is None else f": {type(self.failure).__name__}"
        return Refused(f"MCP server {self._name!r} has stopped{cause}")

    async def aclose(self) -> None:
        """End the run within :data:`GRACE_SECONDS`."""
        self._closing = True
        deadline = anyio.current_time() + GRACE_SECONDS
        if self._sending is not None:
            self._sending.cancel()
        try:
            with move_on_after(GRACE_SECONDS):
                if CANCELS_BY_SCOPE:
                    # mcp below 1.27 waits for its handlers when its input ends, and fails if they answer later.
                    with move_on_after(GRACE_SECONDS / 2):
                        await self._cancel_all()
                self._more.set()
                await self._task.wait()
        finally:
            if not self._task.done:
                if anyio.current_time() >= deadline:
                    _log.warning("the MCP server %r did not end in %s s and keeps running", self._name, GRACE_SECONDS)
                self._task.cancel()
            self._settle_all()

    def _scope(self, request_id: RequestId) -> CancelScope | None:
        call = self._calls.get(request_id)
        return None if call is None else call.scope

    # --- from the client ----------------------------------------------------------------------------------------------

    def repeat(self, handshake: Handshake) -> None:
        """Give the server the client's handshake before any other message, and drop the answer.

        This does not wait, so it cannot be cancelled halfway. The server reads messages in order.
        """
        initialize = {**handshake.initialize, "id": HANDSHAKE_ID}
        self._calls[HANDSHAKE_ID] = Call("initialize")
        self._initialized = Event()
        self._give(request_message(parse(initialize), lambda: None))
        if handshake.initialized is not None:
            self.tell(handshake.initialized, parse(handshake.initialized))

    def tell(self, message: dict[str, Any], parsed: Any) -> None:
        """Give a notification or a response to the server."""
        method = message.get("method")
        if CANCELS_BY_SCOPE and method == "notifications/cancelled":
            request_id = request_id_of(message.get("params"), "requestId")
            if request_id is not None and (call := self._calls.get(request_id)) is not None:
                call.scope.cancel()
            return
        self._give(SessionMessage(parsed))
        if method == "notifications/initialized":
            self._initialized.set()

    async def ask(self, message: dict[str, Any], parsed: Any, request_id: RequestId) -> dict[str, Any]:
        """Give a request to the server, and wait for the answer."""
        if request_id in self._calls:
            raise Refused("Invalid Request: another open request has this id", INVALID_REQUEST)
        if len(self._calls) >= MAX_WAITING:
            raise Refused(f"MCP server {self._name!r} has too many open requests")
        call = self._calls[request_id] = Call(message["method"])
        given = False
        try:
            if call.method == "initialize":
                self._initialized = Event()
            elif call.method != "ping" and not self._initialized.is_set():
                # The client sends requests right after `notifications/initialized`. A session handles each message in a
                # separate task, in any order, but a server refuses requests before the notification. Check is_set()
                # first, because wait() would let other tasks run, and the next request would overtake this one.
                with move_on_after(GRACE_SECONDS):
                    await self._initialized.wait()
            cancelled = error_response(request_id, REQUEST_CANCELLED, "Request cancelled")
            self._give(request_message(parsed, lambda: self._settle(request_id, cancelled)))
            given = True
            return await call.wait()
        except anyio.get_cancelled_exc_class():
            if given:  # the server still handles the request, so the id remains in use
                self._cancel(request_id, call)
            raise
        finally:
            if not given and self._calls.get(request_id) is call:
                del self._calls[request_id]

    def _cancel(self, request_id: RequestId, call: Call) -> None:
        """Tell the server to cancel its work on a request."""
        if call.method == "initialize":  # MCP's specification forbids cancelling `initialize`
            return
        if CANCELS_BY_SCOPE:
            call.scope.cancel()
            return
        params = {"requestId": request_id, "reason": "withdrawn by the client"}
        with suppress(Refused):  # the run is ending, which cancels all calls
            self._give(SessionMessage(parse({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})))

    async def _cancel_all(self) -> None:
        calls = [call for call in self._calls.values() if call.method != "initialize"]
        for call in calls:
            call.scope.cancel()
        for call in calls:
            with suppress(Refused):
                await call.wait()

    def _give(self, message: SessionMessage) -> None:
        """Queue a message for the server. This does not wait, so the server reads messages in call order."""
        if self.over or self._closing:
            raise self.stopped()
        if len(self._given) >= MAX_WAITING:
            raise Refused(f"MCP server {self._name!r} does not read")
        self._given.append(message)
        self._more.set()

    def _answer(self, response: dict[str, Any]) -> None:
        """Give the server the answer to the server's own request."""
        with suppress(Refused):  # the run is closing, which cancels the server's tools
            self._give(SessionMessage(parse(response)))

    # --- the server ---------------------------------------------------------------------------------------------------

    async def _main(self) -> None:
        try:
            if self._before is not None:
                with move_on_after(GRACE_SECONDS):
                    await self._before._task.wait()
                self._before = None
            async with (
                create_client_server_memory_streams() as ((output, source), streams),
                anyio.create_task_group() as self._group,
            ):
                self._group.start_soon(self._serve, streams)
                self._group.start_soon(self._feed, source)
                async for item in output:
                    await self._deliver(item)
                self._ended = True
                # Let the server's lifespan end. Open calls wait, because their error names the cause of the end.
                with move_on_after(GRACE_SECONDS):
                    await self._served.wait()
                self._group.cancel_scope.cancel()
        finally:
            self._ended = True
            self._settle_all()

    async def _feed(self, source: Any) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while not self._closing:
                while self._given:
                    await source.send(self._given.popleft())
                await self._more.wait()
                self._more = Event()
        source.close()

    async def _serve(self, streams: Any) -> None:
        source, sink = streams
        try:
            await self._server.run(source, sink, self._server.create_initialization_options())
            if not self._closing:  # with mcp 2 on asyncio, this happens if the future that a tool awaits is cancelled
                _log.error("the MCP server %r ended by itself", self._name)
        except anyio.get_cancelled_exc_class() as error:
            if not cancelled_by_nobody():
                raise
            self.failure = error
            _log.error("the MCP server %r ended, because a task that it awaits was cancelled", self._name)
        except Exception as error:
            self.failure = _innermost(error)
            level = logging.DEBUG if self._closing else logging.ERROR
            _log.log(level, "the MCP server %r raised %s", self._name, type(self.failure).__name__, exc_info=error)
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._served.set()
            source.close()
            sink.close()

    # --- to the client ------------------------------------------------------------------------------------------------

    async def _deliver(self, item: SessionMessage | Exception) -> None:
        """Handle a message that the server wrote. This must not wait for the server, and must not raise."""
        if isinstance(item, Exception):  # the stream's type allows exceptions, but a server does not write them
            return
        message = dump(item)
        method = message.get("method")
        if method is None and message.get("error", {}).get("code") == CONNECTION_CLOSED and self._group is not None:
            self._group.start_soon(self._settle_late, message)
        elif method is None:
            self._settle(message.get("id"), message)
        elif "id" not in message:
            await self._carry(message)
        elif method == "ping":  # answered here, because it only checks the connection
            self._answer({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        elif (failure := await self._carry(message)) is not None:
            self._answer(error_response(message["id"], INTERNAL_ERROR, f"not sent to the client: {failure}"))

    async def _carry(self, message: dict[str, Any]) -> str | None:
        """Send a message to the client. Return None, or the reason why the message was not sent."""
        if self._send is None or self._closing:
            return "it is closed"
        try:
            with cancel_scope() as self._sending:
                await self._send(message)
                return None
        except Exception as error:
            # HandleError is not a fault: the session was closed in the meantime.
            level = logging.DEBUG if isinstance(error, HandleError) else logging.WARNING
            _log.log(level, "a message of the MCP server %r was not sent: %s", self._name, type(error).__name__)
            return type(error).__name__
        finally:
            self._sending = None
        return "it is closed"

    def _settle(self, request_id: RequestId | None, answer: dict[str, Any]) -> None:
        call = None if request_id is None else self._calls.pop(request_id, None)
        if call is None:
            _log.debug("the MCP server %r has answered a request that was not open", self._name)
        else:
            call.settle(answer)

    async def _settle_late(self, answer: dict[str, Any]) -> None:
        with move_on_after(CAUSE_SECONDS):
            await self._served.wait()
        if self.failure is None:  # after a failure, _settle_all() answers all open calls with the failure
            self._settle(answer.get("id"), answer)

    def _settle_all(self) -> None:
        for call in self._calls.values():
            call.settle(self.stopped())
        self._calls.clear()


def _innermost(error: BaseException) -> BaseException:
    """Return the exception within nested exception groups that have only one exception each."""
    grouped: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _innermost(grouped[0]) if len(grouped) == 1 else error
