"""What a session does for an agent that speaks another dialect than stream-json.

Knows when a line is to be translated (once, by the consumer, or before it by whoever reads ahead) and what a session
cannot do then; not what a line means.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from claude_wire.dialects.auto import AUTO
from claude_wire.dialects.dialect import CONTROL, SILENCE_SECONDS
from claude_wire.errors import DialectError, RequestTimeoutError
from claude_wire.io.waiting import move_on_after
from claude_wire.messages import InitializeRequest, InterruptRequest, InterruptResponse, InvalidLine, KeepAlive
from claude_wire.process.command_line import require_flags
from claude_wire.process.process import Process, exchange_of
from claude_wire.session.attached.router import AttachedRouter
from claude_wire.session.router import Router, digest_of

if TYPE_CHECKING:
    from claude_wire.codec.follower import Follower
    from claude_wire.control.requests import Requests
    from claude_wire.dialects import Connection, Dialect
    from claude_wire.io.message_stream import MessageStream
    from claude_wire.io.read_ahead import Tap
    from claude_wire.session.attached.link import Link
    from claude_wire.session.control import Control

__all__ = [
    "begins_without_initialize",
    "interrupt_before_close",
    "interrupt_by_request",
    "interrupt_by_signal",
    "require_callbacks",
    "require_status",
    "router_for",
]


def require_callbacks(
    dialect: Dialect, stream: MessageStream[Any], can_use_tool: object, callbacks: Mapping[str, object]
) -> None:
    """Refuse callbacks that an agent of a dialect never calls, or that the command line of a process rules out.

    Raises:
        DialectError: the dialect has no words for a callback.
        ValueError: the command line lacks a flag.
    """
    if can_use_tool is not None and dialect.permission == "never":
        raise DialectError(dialect.name, "has no permission requests: can_use_tool is never asked")
    for name, given in callbacks.items():
        if given and not dialect.initializes:
            raise DialectError(dialect.name, f"has no initialize, so {name} would never be called")
    if isinstance(stream, Process) and dialect.initializes:
        asks = can_use_tool is not None
        require_flags(exchange_of(stream).settings.argv, asks=asks, by_flag=dialect.permission == "flag")


def begins_without_initialize(dialect: Dialect, request: InitializeRequest | None) -> bool:
    """Whether a session begins without ``initialize``.

    Raises:
        DialectError: the dialect has no ``initialize``, and ``request`` is given.
    """
    if not dialect.initializes and request is not None:
        raise DialectError(dialect.name, "has no initialize")
    return not dialect.initializes


def require_status(dialect: Dialect) -> None:
    """Refuse to ask for the status of an agent that has no words for it.

    Raises:
        DialectError: the dialect has no status request.
    """
    if dialect is AUTO:
        raise DialectError(dialect.name, "has no status request before the agent shows what it speaks; name that")
    if not dialect.has_status:
        raise DialectError(dialect.name, "has no status request; Session.receive_run() tells when a run is over")


def interrupt_before_close(dialect: Dialect, requests: Requests, process: Process[Any]) -> bytes | None:
    """End the turn under way before a session closes: send SIGINT if the dialect interrupts by a signal.

    Returns:
        The line to write for any other dialect; None if a signal interrupts.
    """
    exchange = exchange_of(process)
    if dialect.signals:
        if exchange.turn.unfinished() and exchange.child is not None and not exchange.child.foreign:
            exchange.child.popen.send_signal(signal.SIGINT)
        return None
    return requests.line(InterruptRequest(cancel_queued=True if dialect.plain else None))


def interrupt_by_signal(
    dialect: Dialect, process: Process[Any] | None, cancel_queued: bool | None
) -> InterruptResponse:
    """Send SIGINT to an agent.

    Raises:
        DialectError: there is no process, or ``cancel_queued`` is true: a signal empties no queue.
    """
    if cancel_queued:
        raise DialectError(dialect.name, "has no cancel_queued for an interrupt")
    if process is None:
        raise DialectError(dialect.name, "interrupts by SIGINT, and this session has no process")
    exchange_of(process).started().popen.send_signal(signal.SIGINT)
    return InterruptResponse()


async def interrupt_by_request(
    connection: Connection, request: InterruptRequest, ask: Callable[..., Awaitable[InterruptResponse]]
) -> InterruptResponse:
    """Ask an agent to interrupt. One that runs nothing may say nothing: then this takes a few seconds."""
    if not connection.interrupt_may_be_unanswered:
        return await ask(request)
    try:
        return await ask(request, timeout=SILENCE_SECONDS)
    except RequestTimeoutError:
        return InterruptResponse()


class _TranslatingRouter(Router):
    """A :class:`Router` whose messages a connection translates.

    Args:
        connection: of the session.
        saw: is called with the messages that a translation has made. The stream's observer has seen the others.
    """

    def __init__(
        self,
        stream: MessageStream[Any],
        tap: Tap | None,
        control: Control,
        connection: Connection,
        saw: Callable[[list[Any]], object] | None,
    ) -> None:
        super().__init__(stream, tap, control)
        self._connection = connection
        self._saw = saw

    def start(self, *, ends_with_stream: bool) -> None:
        if self._receiver.decoder.coalesce:
            problem = "has no stream events, so a session takes no decoder with coalesce="
            raise DialectError(self._connection.dialect.name, problem)
        super().start(ends_with_stream=ends_with_stream)

    async def _next_batch(self) -> list[Any]:
        if not self._connection.result_may_be_missing:
            return await super()._next_batch()
        with move_on_after(SILENCE_SECONDS):
            return await super()._next_batch()
        self._give(self._connection.missing_result())
        return []

    def _route(self, batch: list[Any]) -> None:
        if not batch:  # what stands for a missing result was given already
            return
        found = self._found
        if found.followed != self._ahead.direct:
            found.control.clear()
            found.rest.clear()
        control: list[Any] = []
        others: list[Any] = []
        for message in batch:
            meant = self._seen_ahead(message)
            for one in self._connection.from_agent(message) if meant is None else meant:
                (control if isinstance(one, CONTROL) else others).append(one)
        known = set(map(id, batch))
        self._give([one for one in others if not isinstance(one, KeepAlive)], known)
        for one in control:
            self._control.handle(one)

    def _give(self, messages: list[Any], known: Collection[int] = ()) -> None:
        """Give messages to the consumer. The process's observer has seen those whose ids are ``known``."""
        self.types = set(map(type, messages))
        if self._saw is not None:
            self._saw([one for one in messages if id(one) not in known])
        self.ready.extend(messages)

    def _seen_ahead(self, message: Any) -> list[Any] | None:
        """What the consumer still gets of a message that was translated ahead; None for any other message."""
        found = self._found
        if not found.rest or isinstance(message, InvalidLine) or (digest := digest_of(message)) not in found.control:
            return None
        while found.control.popleft() != digest:
            found.rest.popleft()
        return found.rest.popleft()

    def _look_at_lines(self, follower: Follower[Any], data: bytes) -> None:
        connection = self._connection
        for line in follower.feed(data):
            if b"\\u" in line or any(mark in line for mark in connection.marks):
                message = follower.decode(line)
                if connection.urgent(message):
                    self._saw_ahead(message)

    def _handle_ahead(self, message: Any) -> None:
        meant = self._connection.from_agent(message)
        self._found.control.append(digest_of(message))
        self._found.rest.append([one for one in meant if not isinstance(one, CONTROL)])
        for one in meant:
            if isinstance(one, CONTROL):
                self._control.handle(one)


def router_for(
    connection: Connection, stream: MessageStream[Any], tap: Tap | None, control: Control, link: Link | None = None
) -> Router:
    """What reads the stream of a session in a dialect, or from a host."""
    if link is not None:
        return AttachedRouter(stream, tap, control, link)
    if connection.dialect.plain:
        return Router(stream, tap, control)
    saw = exchange_of(stream).saw if isinstance(stream, Process) else None
    return _TranslatingRouter(stream, tap, control, connection, saw)
