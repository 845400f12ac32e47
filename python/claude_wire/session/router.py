"""Splits a stream of messages in two: control messages go to whom they concern at once, all others wait to be taken.

Knows which messages are control messages, and who is reading; not what they mean.

Who reads: the consumer's own step, as long as somebody iterates. When nobody has asked for a message for
:data:`AWAY_SECONDS`, or a control message is waited for while nobody iterates, :meth:`Router.read_on` does: it keeps
the bytes as they are, for the consumer to decode when it comes, and decodes only the control messages among their
lines. The consumer comes across those again, and skips them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from anyio import CancelScope, Event, sleep
from anyio.lowlevel import checkpoint

from claude_wire.errors import ByteBudgetError, HandleError
from claude_wire.io.message_stream import receiver_of
from claude_wire.io.tasks import set_event
from claude_wire.messages import ControlCancelRequest, ControlRequest, ControlResponse, KeepAlive, UnknownMessage
from claude_wire.protocol.host import is_control
from claude_wire.support.waiting import cancel_scope, move_on_after

if TYPE_CHECKING:
    from claude_wire.codec.decoder import Decoder
    from claude_wire.codec.follower import Follower
    from claude_wire.io.message_stream import MessageStream
    from claude_wire.io.read_ahead import ReadAhead, Tap
    from claude_wire.session.control import Control

__all__ = ["KEPT_BACK", "Router"]

#: Seconds without a step of the consumer after which the stream is read ahead of it.
AWAY_SECONDS = 0.01
#: Seconds after which it is seen again whether there is room.
ROOM_SECONDS = 0.05

#: What is not for the consumer; and what may be a control message that does not fit its type.
KEPT_BACK = frozenset((ControlRequest, ControlResponse, ControlCancelRequest, KeepAlive))
_ROUTED = frozenset((*KEPT_BACK, UnknownMessage))


class _Found:
    """What was found in the chunks that are kept. A later router of the same stream goes on with it."""

    def __init__(self) -> None:
        # Splits what is read ahead into lines; in step with the decoder until the consumer has read by itself.
        self.follower: Follower[Any] | None = None
        self.followed = -1
        # Number of control messages that were handled while reading ahead. The consumer comes across them in the same
        # order, and skips as many.
        self.control: int = 0
        # In another dialect than stream-json, of each message that was translated while reading ahead: its digest (57
        # bytes in memory; its line, of at least 20 bytes, counts in the byte budget), and what the consumer still gets.
        self.translated: deque[tuple[bytes, list[Any]]] = deque()
        # Control messages that came in the moment in which their router was closed.
        self.late: list[Any] = []


class Router:
    """Reads a stream for a consumer that may stay away.

    Args:
        stream: of typed messages, with bad lines as values. From now on only this reads it.
        tap: is shown the chunks that are read.
        control: handles the control messages. One that does not fit its type is an :class:`UnknownMessage`; the
            consumer gets that, too. While it is full, nothing is read.
    """

    _ahead: ReadAhead
    _found: _Found
    _decoder: Decoder[Any]

    def __init__(
        self,
        stream: MessageStream[Any],
        tap: Tap | None,
        control: Control,
    ) -> None:
        self._receiver = receiver_of(stream)
        self._tap = tap
        self._control = control
        #: Decoded and not taken yet, without control messages; and their types, those of control messages perhaps too.
        self.ready: deque[Any] = deque()
        self.types: set[type] = set()
        # Whether the consumer is in a step, what ends that, and the number of steps so far.
        self._stepping = False
        self._scope: CancelScope | None = None
        self._steps = 0
        self._started = False
        #: Whether it was closed.
        self.closed: bool = False
        # What read_on() waits for: somebody has it look again. Whether it has to be told of the end of a step.
        self._noticed: Event | None = None
        self._asleep = False
        # The step after which the consumer was found to be away.
        self._away_since = -1

    def start(self, *, ends_with_stream: bool) -> None:
        """Take over the stream. If it ends together with the router, a step need not be ended by :meth:`close`.

        Raises:
            TypeError: its decoder gives something else, or not all of it.
            HandleError: it has a router already, or a task is in a step of it.
        """
        self._decoder = self._receiver.decoder
        if not self._decoder.typed or self._decoder.on_invalid == "raise":
            raise TypeError("a session needs a stream that gives typed messages, and does not raise for bad lines")
        if self._decoder.only is not None:
            raise TypeError("a session needs all lines of its stream: a decoder with only= passes over requests")
        self._ahead, ready = self._receiver.take_over(self._tap)
        if self._ahead.found is None:
            self._ahead.found = _Found()
        self._found = self._ahead.found
        self._started = True
        self._ends_with_stream = ends_with_stream
        self._route(ready)
        late, self._found.late = self._found.late, []
        if self._ahead.kept_bytes:  # else the owner of the stream has taken them
            for message in late:
                self._handle_ahead(message)

    async def step(self) -> None:
        """Wait until ``ready`` has something. Raises what the stream raises; StopAsyncIteration, too, when closed."""
        self.require_idle()
        if not self._started:
            raise HandleError("this session is not entered: use it as `async with ... as session`")
        # For the whole loop: a callback that begins between two batches may not begin a step of its own.
        self._stepping = True
        try:
            while not self.ready:
                if self.closed:
                    raise StopAsyncIteration
                self._steps += 1
                batch: list[Any] = []
                try:
                    if self._ends_with_stream:
                        batch = await self._next_batch()
                    else:
                        with cancel_scope() as self._scope:
                            batch = await self._next_batch()
                finally:
                    self._scope = None
                if self.closed:
                    self._receiver.give_back(batch)  # it came just then
                else:
                    self._route(batch)
                    if not self.ready:
                        await checkpoint()  # what a control message has begun goes first: somebody waits for that
        finally:
            self._stepping = False
            if self._asleep:
                self.notice()

    async def _next_batch(self) -> list[Any]:
        while self._control.is_full() and not self.closed:
            await sleep(ROOM_SECONDS)
        return await self._receiver.next_batch()

    def require_idle(self) -> None:
        """Raises HandleError if a task is in a step."""
        if self._stepping:
            raise HandleError("another task is iterating over this session")

    def notice(self) -> None:
        """Have it seen at once that a control message is waited for."""
        if self._noticed is not None:
            set_event(self._noticed)

    def end_cause(self) -> Exception | None:
        """Why the stream has ended, if that is known here."""
        return None

    def take_end_error(self) -> Exception | None:
        """The exception that the iteration ends with, once; None if it just ends."""
        return None

    def close(self) -> None:
        """End the iteration, also for a task that is in a step, and leave the stream to its owner."""
        self.closed = True
        if self._started:
            self._receiver.give_back(self.ready)
        self.ready.clear()
        if self._scope is not None:
            self._scope.cancel()

    def _route(self, batch: list[Any]) -> None:
        """Give the control messages of a batch to whom they concern, and keep all others for the consumer."""
        self.types = set(map(type, batch))
        if _ROUTED.isdisjoint(self.types):  # as in most batches
            self.ready.extend(batch)
            return
        control = [message for message in batch if is_control(message)]
        self.ready.extend(message for message in batch if type(message) not in KEPT_BACK)
        if self._found.followed != self._ahead.direct:
            self._found.control = 0  # the consumer has come across all of them
        # Only now, for what begins with it may begin at once, and iterate.
        for message in control:
            if not self._was_seen(message):
                self._handle(message)

    def _handle(self, message: Any) -> None:
        """Give a control message to whom it concerns."""
        self._control.handle(message)

    def _was_seen(self, message: Any) -> bool:
        """Whether a control message was handled while reading ahead."""
        if not self._found.control:
            return False
        self._found.control -= 1
        return True

    # --- while nobody iterates

    async def read_on(self) -> None:
        """Read ahead whenever the consumer is away, until the end of the stream. To be run in a task of its own."""
        ahead = self._ahead
        while True:
            await self._consumer_away()
            if self._control.is_full() or not ahead.may_keep_more():
                await sleep(ROOM_SECONDS)
                continue
            try:
                data = await ahead.advance()
            except ahead.final:
                return
            except ByteBudgetError:
                continue  # the consumer gets it; what comes behind it comes
            except Exception as error:  # the consumer gets it, and may have the stream go on
                self._control.reading_failed(error)
                await self._consumer_back()
                continue
            self._look_at(data)
            if not data:
                return

    async def _consumer_away(self) -> None:
        """Wait until the consumer is away, at a cost that does not depend on the number of its steps."""
        before = -1
        while self._stepping or not (self._control.is_awaited or self._away_since == self._steps):
            steps, stepping = self._steps, self._stepping
            # Who was in one step all the time waits for the stream. Until it has got something, there is nothing to do.
            self._asleep = stepping and steps == before
            await self._change(None if self._asleep else AWAY_SECONDS)
            self._asleep = False
            if not stepping and not self._stepping and self._steps == steps:
                self._away_since = steps
            before = steps

    async def _consumer_back(self) -> None:
        steps = self._steps
        while self._steps == steps:
            self._asleep = True
            await self._change(None)
        self._asleep = False

    async def _change(self, seconds: float | None) -> None:
        self._noticed = Event()
        with move_on_after(seconds):
            await self._noticed.wait()
        self._noticed = None

    def _look_at(self, data: bytes) -> None:
        """Find the control messages among the lines that end in a chunk that was read ahead; the last line, if none."""
        found = self._found
        if found.follower is None or found.followed != self._ahead.direct:
            found.follower = self._new_follower()
            found.followed = self._ahead.direct
        self._look_at_lines(found.follower, data)

    def _new_follower(self) -> Follower[Any]:
        return self._decoder.follower()

    def _look_at_lines(self, follower: Follower[Any], data: bytes) -> None:
        self._look_at_each(follower, follower.feed(data))

    def _look_at_each(self, follower: Follower[Any], lines: Sequence[bytes]) -> None:
        for line in lines:
            if b"control_" in line or b"\\u" in line:  # its tag may have escapes
                message = follower.decode(line)
                if is_control(message):
                    self._saw_ahead(message)

    def _saw_ahead(self, message: Any) -> None:
        if self.closed:
            self._found.late.append(message)
        else:
            self._handle_ahead(message)

    def _handle_ahead(self, message: Any) -> None:
        self._found.control += 1
        self._handle(message)
