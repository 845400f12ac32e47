"""Sessions with an agent that speaks a dialect other than stream-json.

A :class:`DialectAdapter` translates the decoded messages for the session, which only handles stream-json.
If the dialect has no message for a session method, the method raises :class:`DialectError`.
"""

from __future__ import annotations

import logging
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from claude_wire.control.guards import PERMISSION
from claude_wire.dialects.auto import AUTO
from claude_wire.dialects.dialect import CONTROL, SILENCE_SECONDS
from claude_wire.errors import DialectError, RequestTimeoutError
from claude_wire.messages import (
    CanUseToolRequest,
    InterruptRequest,
    InterruptResponse,
    InvalidLine,
)
from claude_wire.process.command_line import require_flags
from claude_wire.process.process import Process, exchange_of
from claude_wire.streams.message_stream import receiver_of
from claude_wire.support.waiting import move_on_after

if TYPE_CHECKING:
    from claude_wire.codec.follower import Follower
    from claude_wire.control.requests import Requests
    from claude_wire.dialects import Connection, Dialect
    from claude_wire.session.callbacks import Callbacks
    from claude_wire.session.host_hooks import HostHooks
    from claude_wire.streams.message_stream import MessageStream
    from claude_wire.streams.read_ahead import Chunks, ReadAhead
    from claude_wire.streams.receiver import Receiver

#: In the byte budget, a translated message counts this many times the size of its line, because Python objects take
#: more memory than bytes.
KEPT_TIMES = 4

_log = logging.getLogger("claude_wire")


def require_callbacks(
    dialect: Dialect, argv: Sequence[str] | None, can_use_tool: object, callbacks: Mapping[str, object]
) -> bool | None:
    """Check that the agent's dialect and command line allow it to call these callbacks.

    Args:
        argv: the command line, or None for a stream that is not a process.

    Returns:
        True if the dialect or the command line shows that the agent asks ``can_use_tool``; None if unknown.

    Raises:
        DialectError: the dialect has no message for a callback.
        ValueError: the command line lacks a flag.
    """
    if can_use_tool is not None and dialect.permission == "never":
        raise DialectError(dialect.name, "has no permission requests: can_use_tool is never asked")
    for name, given in callbacks.items():
        if given and not dialect.initializes and not (name == "hooks" and dialect.host_hooks):
            raise DialectError(dialect.name, f"has no initialize, so {name} would never be called")
    if argv is not None and dialect.initializes:
        require_flags(argv, asks=can_use_tool is not None, by_flag=dialect.permission == "flag")
        return True
    return True if dialect.permission == "always" else None


def interrupt_before_close(dialect: Dialect, requests: Requests, process: Process[Any]) -> bytes | None:
    """End the current turn before a session closes: send SIGINT if the dialect interrupts by a signal.

    Returns:
        For any other dialect, the line to write. None if the dialect interrupts by a signal.
    """
    exchange = exchange_of(process)
    if dialect.signals:
        if exchange.run.unfinished_turn() and exchange.child is not None and not exchange.child.foreign:
            exchange.child.popen.send_signal(signal.SIGINT)
        return None
    return requests.line(InterruptRequest(cancel_queued=True if dialect.plain else None))


async def interrupt(
    connection: Connection,
    process: Process[Any] | None,
    cancel_queued: bool | None,
    ask: Callable[..., Awaitable[Any]],
) -> InterruptResponse:
    """Interrupt an agent's turn, by SIGINT or by a request, depending on its dialect.

    In some dialects, an idle agent does not answer the request. The function then returns after
    :data:`~claude_wire.dialects.dialect.SILENCE_SECONDS`.

    Args:
        ask: :meth:`.Session.request`.

    Raises:
        DialectError: the dialect interrupts by a signal, and there is no process to send it to, or ``cancel_queued`` is
            true. (A signal does not empty the queue.)
    """
    dialect = connection.dialect
    if dialect.signals:
        if cancel_queued:
            raise DialectError(dialect.name, "has no cancel_queued for an interrupt")
        if process is None:
            raise DialectError(dialect.name, "interrupts by SIGINT, and this session has no process")
        exchange_of(process).started().popen.send_signal(signal.SIGINT)
        return InterruptResponse()
    seconds = SILENCE_SECONDS if connection.interrupt_may_be_unanswered else None
    try:
        answer: InterruptResponse = await ask(InterruptRequest(cancel_queued=cancel_queued), timeout=seconds)
    except RequestTimeoutError:
        if seconds is None:
            raise
        return InterruptResponse()
    return answer


class DialectAdapter:
    """Translates a stream's messages to stream-json, each line once and in order.

    When a session reads lines ahead, the adapter translates them and keeps the result until the decoder reaches them.

    Args:
        dialect: the session's dialect. If it is AUTO, ``can_use_tool`` is checked when the dialect is found.
        stream: the session's stream. If an earlier session read it in this dialect, the new session uses the same
            connection.
        hooks: the hooks that the host calls itself, or None if there are none.
    """

    def __init__(
        self, dialect: Dialect, stream: MessageStream[Any], callbacks: Callbacks, hooks: HostHooks | None
    ) -> None:
        receiver = receiver_of(stream)
        if receiver.decoder.coalesce:
            raise DialectError(dialect.name, "has no stream events, so a session takes no decoder with coalesce=")
        self.dialect: Dialect = dialect
        before = receiver.adapter
        connection = before.connection if isinstance(before, DialectAdapter) and before.dialect is dialect else None
        self.connection: Connection = connection or dialect.connect()
        # Store the command line, not the stream: the stream refers to this adapter, so they would form a cycle.
        self._argv = argv_of(stream)
        self._callbacks = callbacks
        self._hooks = hooks
        # True while AUTO has not found the dialect: it is then unknown whether the agent calls can_use_tool.
        self._is_unconfirmed = dialect is AUTO and any(guard.event == PERMISSION for guard in callbacks.guards)
        # The error to raise if the dialect that AUTO found never calls can_use_tool.
        self._refusal: ValueError | None = None
        # One entry for each message that was read ahead and that the decoder has not reached yet: the translation and
        # its weight in bytes, or None if the message needs no translation.
        self._kept: deque[tuple[list[Any], int] | None] = deque()
        # The result that the connection created because the agent did not send one; empty if there is none.
        self._missing: list[Any] = []

    def take_over(self, receiver: Receiver[Any], ahead: ReadAhead, ready: list[Any]) -> list[Any]:
        """Translate the stream's messages from now on. Return the translation of the decoded messages in ``ready``."""
        self._ahead, before = ahead, receiver.adapter
        if not isinstance(before, DialectAdapter):
            # An earlier session in stream-json did not translate the lines that it read ahead: drop its follower.
            self._follower: Follower[Any] | None = None
            return self.adapt(ready)
        self._kept, self._follower = before._kept, before._follower
        return ready

    async def receive(self, chunks: Chunks) -> bytes | memoryview | None:
        """See :class:`~claude_wire.streams.receiver.Adapter`."""
        if not self.connection.result_may_be_missing:
            return await chunks.receive()
        with move_on_after(SILENCE_SECONDS):
            return await chunks.receive()
        self._missing = self.connection.missing_result()
        return None

    def adapt(self, batch: list[Any]) -> list[Any]:
        """See :class:`~claude_wire.streams.receiver.Adapter`."""
        translated, self._missing = self._missing, []
        for message in batch:
            if not self._kept or isinstance(message, InvalidLine):
                translated += self._translate(message)
            elif (kept := self._kept.popleft()) is None:
                translated.append(message)
            else:
                self._ahead.count(-kept[1])
                translated += kept[0]
        return translated

    def follow(self, follower: Follower[Any]) -> None:
        """Use this follower, which begins at the decoder's position, to decode lines that are read ahead."""
        self._follower = follower
        self._kept.clear()

    def control(self, follower: Follower[Any], lines: Sequence[bytes]) -> list[Any]:
        """Translate lines that were read ahead, and return their messages."""
        found: list[Any] = []
        for line in lines if follower is self._follower else ():
            message = follower.decode(line)
            if message is not None:
                translated = self._translate(message)
                is_same = len(translated) == 1 and translated[0] is message
                size = 0 if is_same else KEPT_TIMES * len(line)
                self._kept.append(None if is_same else (translated, size))
                self._ahead.count(size)
                found += translated
        return found

    def is_control(self, message: Any) -> bool:
        """Return True for a control message that fits its type. (A stream-json session also counts invalid ones.)"""
        return isinstance(message, CONTROL)

    def route(self, batch: list[Any]) -> None:
        """Call the host's hooks for messages before the consumer gets these messages."""
        if self._hooks is not None:
            self._hooks.see(batch)

    def check(self) -> None:
        """Raise an error, once, if AUTO found a dialect that never calls ``can_use_tool``."""
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal

    def _translate(self, message: Any) -> list[Any]:
        translated = self.connection.from_agent(message)
        if self._is_unconfirmed:
            self._confirm(translated)
        return translated

    def _confirm(self, translated: list[Any]) -> None:
        """If AUTO found the dialect, check ``can_use_tool`` as a session with a fixed dialect does when it starts."""
        dialect = self.connection.dialect
        asks: bool | None = False
        if any(isinstance(getattr(one, "request", None), CanUseToolRequest) for one in translated):
            asks = True
        elif dialect is AUTO:
            return
        else:
            try:
                asks = require_callbacks(dialect, self._argv, True, {})
            except ValueError as error:  # DialectError is a subclass
                self._refusal = error  # raised by the next step of an iteration, if there is one
                _log.warning("%s", error)
        self._is_unconfirmed = False
        self._callbacks.confirm_permissions(asks)


def argv_of(stream: MessageStream[Any]) -> Sequence[str] | None:
    """Return a process's command line, or None for any other stream."""
    return exchange_of(stream).settings.argv if isinstance(stream, Process) else None
