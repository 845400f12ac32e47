"""An MCP server that runs inside this process, for the CLI: a server of the package ``mcp``, served over the session.

::

    from mcp.server import MCPServer  # mcp 2; mcp.server.fastmcp.FastMCP in mcp 1
    from claude_wire.integrations.mcp import InProcessMcpServer

    calculator = MCPServer("calc")

    @calculator.tool()
    def add(a: int, b: int) -> int: ...

    async with open_session(options, mcp_servers={"calc": InProcessMcpServer(calculator)}) as session: ...

Knows JSON-RPC as far as ids go, and how mcp runs a server over its in-memory streams; every method is mcp's own affair.
Knows nothing of the control protocol: the session brings the CLI's messages, and takes the server's.

Made for mcp 1.23 and above, and mcp 2. What differs between them is in ``_mcp_versions``.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio import CancelScope, Event

from claude_wire._tasks import Home, cancelled_by_nobody, spawn
from claude_wire._waiting import cancel_scope, move_on_after
from claude_wire.errors import HandleError

try:
    import mcp.types
except ModuleNotFoundError as _error:
    if _error.name != "mcp":
        raise
    raise ImportError("claude_wire.integrations.mcp needs mcp: pip install 'claude-wire[mcp]'", name="mcp") from _error

from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from claude_wire.integrations._mcp_versions import (
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
    root_of,
)

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

__all__ = ["InProcessMcpServer"]

Send = Callable[[dict[str, Any]], Awaitable[None]]

#: Seconds in which :meth:`InProcessMcpServer.aclose` ends, whatever the server's tools do.
GRACE_SECONDS = 5.0

#: Seconds that an answer "connection closed" is held back for the cause: mcp 2 gives it to all calls when it fails.
CAUSE_SECONDS = 1.0

#: Messages that a server may leave unread, and requests that it may leave unanswered. More are refused: a client that
#: withdraws its requests, or sends notifications, does not wait, so that nothing else holds it up.
MOST_WAITING = 4096

#: The id of an ``initialize`` that is repeated to a new run. No client has it.
HANDSHAKE_ID = "claude-wire-handshake"

_log = logging.getLogger("claude_wire")


class InProcessMcpServer:
    """An MCP server of the package ``mcp``, as a session wants its in-process servers.

    The server runs from the first message to :meth:`aclose`, in a task of its own, and serves any number of calls at a
    time. If it fails, that is logged, and what it has not answered gets an error. The next request runs it again: the
    client's handshake is repeated to it, since the CLI shakes hands once only, and then it gets the request. So each
    request has at most one new run. What the server kept for the client is lost, such as subscriptions and the state of
    its lifespan. A server that has never answered ``initialize`` is run again by the next ``initialize`` only.

    A call that the client withdraws, by ``notifications/cancelled`` or by cancelling :meth:`handle`, cancels the tool
    that runs for it. Tools that do not heed that, such as one that blocks a thread, run on; nobody gets their result.

    It serves one session at a time. After :meth:`aclose` it can be connected again.

    Args:
        server: a :class:`mcp.server.Server`, or what the package builds upon it: ``MCPServer``, ``FastMCP`` in mcp 1.

    Raises:
        TypeError: ``server`` is something else.
    """

    def __init__(self, server: Any) -> None:
        for inside in ("_lowlevel_server", "_mcp_server"):  # of MCPServer; of FastMCP. Neither has a public way to it
            server = getattr(server, inside, server)
        if not isinstance(server, Server):
            raise TypeError(f"server must be a server of the package mcp, not {type(server).__name__}")
        self._server: Any = server
        self._send: Send | None = None
        self._run: _Run | None = None
        self._handshake: _Handshake | None = None
        # Where the one lives that it serves.
        self._home: Home | None = None
        self._connected = False

    def __repr__(self) -> str:
        return f"<InProcessMcpServer {self.name!r}>"

    @property
    def name(self) -> str:
        """The server's own name, which need not be what the session calls it."""
        return str(self._server.name)

    def connect(self, send: Send) -> None:
        """Serve one client.

        Args:
            send: carries a JSON-RPC message to the client: a notification of the server's, or a request, whose answer
                comes back by :meth:`handle`. It returns when the message is written, and does not wait for that answer:
                the server waits as long as this does.

        Raises:
            RuntimeError: it serves another one already.
        """
        if self._connected and (self._home is None or not self._home.gone):
            raise RuntimeError("this MCP server serves a session already")
        self._run = self._handshake = None  # of one whose loop is gone
        self._home = None
        with suppress(RuntimeError):  # no loop runs
            self._home = Home()
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
        except Exception:  # pydantic's, whose text quotes the message
            return error_response(request_id, INVALID_REQUEST, "Invalid Request")
        is_request = isinstance(root_of(parsed), mcp.types.JSONRPCRequest)
        if not is_request and "method" in message and "id" in message:  # mcp 1 takes it for a notification
            return error_response(request_id, INVALID_REQUEST, "Invalid Request")
        try:
            return await self._forward(message, parsed, request_id if is_request else None)
        except _Refused as refused:
            if is_request:
                return error_response(request_id, refused.code, str(refused))
            _log.debug("a message to the MCP server %r was dropped: %s", self.name, refused)
            return None

    async def _forward(
        self, message: dict[str, Any], parsed: Any, request_id: RequestId | None
    ) -> dict[str, Any] | None:
        if not self._connected:
            raise _Refused(f"MCP server {self.name!r} is closed")
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
            self._handshake = _Handshake(message)
        return answer

    def _run_again(self, before: _Run | None, method: str | None) -> _Run:
        """A run for a message with this method, in the place of one that is over, or of none."""
        handshake = None if method == "initialize" else self._handshake
        if before is not None and handshake is None and method != "initialize":
            raise before.stopped()
        run = self._run = _Run(self._server, self._send, before)
        if handshake is not None:
            run.repeat(handshake)
        return run

    async def aclose(self) -> None:
        """End the server, cancelling what it does. Takes at most 5 seconds; what still runs then is left to itself."""
        self._connected = False
        self._send = None
        self._handshake = None
        run, self._run = self._run, None
        if run is not None:
            await run.aclose()


class _Refused(Exception):
    """Why a message was not given to the server: the text of the JSON-RPC error."""

    def __init__(self, why: str, code: int = INTERNAL_ERROR) -> None:
        super().__init__(why)
        self.code = code


class _Handshake(NamedTuple):
    """What the client began with, as it sent it."""

    initialize: dict[str, Any]
    #: None before the client has sent it.
    initialized: dict[str, Any] | None = None


class _Call:
    """A request of the client's that the server has not answered."""

    def __init__(self, method: str) -> None:
        self.method = method
        #: What the handler runs in, with mcp 1.
        self.scope = cancel_scope()
        self._answer: dict[str, Any] | _Refused | None = None
        self._answered = Event()

    def settle(self, answer: dict[str, Any] | _Refused) -> None:
        if self._answer is None:
            self._answer = answer
            self._answered.set()

    async def wait(self) -> dict[str, Any]:
        await self._answered.wait()
        assert self._answer is not None
        if isinstance(self._answer, _Refused):
            raise self._answer
        return self._answer


class _Run:
    """One ``Server.run()``, over one pair of in-memory streams, and the only reader of what it writes."""

    def __init__(self, server: Any, send: Send | None, before: _Run | None) -> None:
        self.failure: BaseException | None = None
        self._name = str(server.name)
        self._calls: dict[RequestId, _Call] = {}
        self._server = cancellable(server, self._scope)
        self._send = send
        #: The one before, which may still be ending.
        self._before = before
        #: Set unless the client owes ``notifications/initialized``.
        self._initialized = Event()
        self._initialized.set()
        #: What the server has not read yet.
        self._given: deque[SessionMessage] = deque()
        self._more = Event()
        self._group: TaskGroup | None = None
        self._ended = False
        #: Around what is just being sent to the client.
        self._sending: CancelScope | None = None
        self._served = Event()
        self._closing = False
        self._task = spawn(self._main, name=f"MCP server {self._name!r}")

    @property
    def over(self) -> bool:
        """Whether it answers nothing any more. A lifespan may still be ending then."""
        return self._ended or self._task.done

    def stopped(self) -> _Refused:
        """Why it answers nothing any more."""
        if self._closing:
            return _Refused(f"MCP server {self._name!r} is closed")
        cause = "" if self.failure is None else f": {type(self.failure).__name__}"
        return _Refused(f"MCP server {self._name!r} has stopped{cause}")

    async def aclose(self) -> None:
        """End it, within the grace."""
        self._closing = True
        deadline = anyio.current_time() + GRACE_SECONDS
        if self._sending is not None:
            self._sending.cancel()
        try:
            with move_on_after(GRACE_SECONDS):
                if CANCELS_BY_SCOPE:
                    # mcp below 1.27 waits for its handlers when its input ends, and fails if they answer after that.
                    with move_on_after(GRACE_SECONDS / 2):
                        await self._cancel_all()
                self._more.set()
                await self._task.wait()
        finally:
            if not self._task.done:
                if anyio.current_time() >= deadline:
                    _log.warning(
                        "the MCP server %r has not ended in %s s; it is left to itself", self._name, GRACE_SECONDS
                    )
                self._task.cancel()
            self._settle_all()

    def _scope(self, request_id: RequestId) -> CancelScope | None:
        call = self._calls.get(request_id)
        return None if call is None else call.scope

    # --- from the client ----------------------------------------------------------------------------------------------

    def repeat(self, handshake: _Handshake) -> None:
        """Give the server what the client began with. Nobody gets the answer. Comes before everything else.

        Does not wait, so that no cancellation comes between: a server reads in order, and answers ``initialize`` before
        it reads on.
        """
        initialize = {**handshake.initialize, "id": HANDSHAKE_ID}
        self._calls[HANDSHAKE_ID] = _Call("initialize")
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
        """Give a request to the server, and wait for its answer."""
        if request_id in self._calls:
            raise _Refused("Invalid Request: its id is that of a request under way", INVALID_REQUEST)
        if len(self._calls) >= MOST_WAITING:
            raise _Refused(f"MCP server {self._name!r} has too many requests to answer")
        call = self._calls[request_id] = _Call(message["method"])
        given = False
        try:
            if call.method == "initialize":
                self._initialized = Event()
            elif call.method != "ping" and not self._initialized.is_set():
                # The client sends requests right behind `notifications/initialized`, and a session may handle each in a
                # task of its own, which run in any order. A server refuses what comes before. Where it is set already,
                # wait() would yield, and what comes next overtake this request.
                with move_on_after(GRACE_SECONDS):
                    await self._initialized.wait()
            cancelled = error_response(request_id, REQUEST_CANCELLED, "Request cancelled")
            self._give(request_message(parsed, lambda: self._settle(request_id, cancelled)))
            given = True
            return await call.wait()
        except anyio.get_cancelled_exc_class():
            if given:  # its id is taken until the server is done with it
                self._cancel(request_id, call)
            raise
        finally:
            if not given and self._calls.get(request_id) is call:
                del self._calls[request_id]

    def _cancel(self, request_id: RequestId, call: _Call) -> None:
        """Cancel what the server does for a request."""
        if call.method == "initialize":  # which must not be cancelled, by the specification
            return
        if CANCELS_BY_SCOPE:
            call.scope.cancel()
            return
        params = {"requestId": request_id, "reason": "withdrawn by the client"}
        with suppress(_Refused):  # it is ending, and all that it does is cancelled
            self._give(SessionMessage(parse({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})))

    async def _cancel_all(self) -> None:
        calls = [call for call in self._calls.values() if call.method != "initialize"]
        for call in calls:
            call.scope.cancel()
        for call in calls:
            with suppress(_Refused):
                await call.wait()

    def _give(self, message: SessionMessage) -> None:
        """Have it read by the server. Does not wait: so all is read in the order in which it was given."""
        if self.over or self._closing:
            raise self.stopped()
        if len(self._given) >= MOST_WAITING:
            raise _Refused(f"MCP server {self._name!r} does not read")
        self._given.append(message)
        self._more.set()

    def _answer(self, response: dict[str, Any]) -> None:
        """Answer a request of the server's."""
        with suppress(_Refused):  # it is closing, and its tools are cancelled
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
                # Its lifespan may end now. What has no answer waits, to be told the cause.
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
            if not self._closing:  # mcp 2 on asyncio, if what a tool waits for was cancelled
                _log.error("the MCP server %r ended by itself", self._name)
        except anyio.get_cancelled_exc_class() as error:
            if not cancelled_by_nobody():
                raise
            self.failure = error
            _log.error("the MCP server %r ended, since what it waits for was cancelled", self._name)
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
        """Take one message that the server has written. Must not wait for the server, nor raise."""
        if isinstance(item, Exception):  # by the type of the stream; only clients' transports write them
            return
        message = dump(item)
        method = message.get("method")
        if method is None and message.get("error", {}).get("code") == CONNECTION_CLOSED and self._group is not None:
            self._group.start_soon(self._settle_late, message)
        elif method is None:
            self._settle(message.get("id"), message)
        elif "id" not in message:
            await self._carry(message)
        elif method == "ping":  # which asks for nothing but an answer
            self._answer({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        elif (failure := await self._carry(message)) is not None:
            self._answer(error_response(message["id"], INTERNAL_ERROR, f"it was not sent to the client: {failure}"))

    async def _carry(self, message: dict[str, Any]) -> str | None:
        """Send a message to the client. Returns why not."""
        if self._send is None or self._closing:
            return "it is closed"
        try:
            with cancel_scope() as self._sending:
                await self._send(message)
                return None
        except Exception as error:
            # A session that is closed is no fault of anybody.
            level = logging.DEBUG if isinstance(error, HandleError) else logging.WARNING
            _log.log(level, "a message of the MCP server %r was not sent: %s", self._name, type(error).__name__)
            return type(error).__name__
        finally:
            self._sending = None
        return "it is closed"

    def _settle(self, request_id: RequestId | None, answer: dict[str, Any]) -> None:
        call = None if request_id is None else self._calls.pop(request_id, None)
        if call is None:
            _log.debug("the MCP server %r has answered what nobody asked", self._name)
        else:
            call.settle(answer)

    async def _settle_late(self, answer: dict[str, Any]) -> None:
        with move_on_after(CAUSE_SECONDS):
            await self._served.wait()
        if self.failure is None:  # or all that is left is settled with it
            self._settle(answer.get("id"), answer)

    def _settle_all(self) -> None:
        for call in self._calls.values():
            call.settle(self.stopped())
        self._calls.clear()


def _innermost(error: BaseException) -> BaseException:
    """What a task group has wrapped, if it is just one."""
    grouped: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _innermost(grouped[0]) if len(grouped) == 1 else error
