"""Split a stream of messages in two: control messages are handled at once, all others wait for the consumer.

While somebody iterates, the consumer's own step reads the stream. If no step has begun for :data:`AWAY_SECONDS`, or if
a request waits for its answer while nobody iterates, :meth:`Router.read_on` reads ahead. It keeps the bytes, for the
consumer to decode later, and decodes only the control messages among their lines. When the consumer comes back, it
finds these control messages again, and skips them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from anyio import CancelScope, Event, sleep
from anyio.lowlevel import checkpoint

from claude_wire.errors import ByteBudgetError, HandleError
from claude_wire.messages import ControlCancelRequest, ControlRequest, ControlResponse, KeepAlive, UnknownMessage
from claude_wire.protocol.host import is_control
from claude_wire.streams.message_stream import receiver_of
from claude_wire.streams.tasks import set_event
from claude_wire.support.waiting import cancel_scope, move_on_after

if TYPE_CHECKING:
    from claude_wire.codec.decoder import Decoder
    from claude_wire.codec.follower import Follower
    from claude_wire.session.control import Control
    from claude_wire.session.dialect import DialectAdapter
    from claude_wire.streams.message_stream import MessageStream
    from claude_wire.streams.read_ahead import ReadAhead, Tap

#: Seconds without a step of the consumer after which the router reads ahead.
AWAY_SECONDS = 0.01
#: Seconds between two checks for room, while nothing may be read.
ROOM_SECONDS = 0.05

#: Types of messages that the consumer does not get. An UnknownMessage may be a control message, too: one whose content
#: does not fit its type.
KEPT_BACK = frozenset((ControlRequest, ControlResponse, ControlCancelRequest, KeepAlive))
_ROUTED = frozenset((*KEPT_BACK, UnknownMessage))


class _Found:
    """State of reading ahead, about the kept chunks. A later router of the same stream continues with it."""

    def __init__(self) -> None:
        # Splits the chunks that are read ahead into lines. Valid while the consumer has not read the stream directly:
        # `followed` is the value of ReadAhead.direct for which it was made.
        self.follower: Follower[Any] | None = None
        self.followed = -1
        # Number of control messages that were handled while reading ahead. The consumer meets them in the same order,
        # and skips this many.
        self.control: int = 0
        # Control messages that were read just when their router was closed.
        self.late: list[Any] = []


class Router:
    """Reads a stream for a consumer that may pause between messages.

    Args:
        stream: of typed messages, with bad lines as values. From now on only the router reads it.
        tap: called with each chunk that is read.
        control: handles the control messages. A control message that does not fit its type is an
            :class:`UnknownMessage`; the consumer gets it, too. While ``control`` is full, nothing is read.
        adapter: for a stream in another dialect than stream-json.
    """

    _ahead: ReadAhead
    _found: _Found
    _decoder: Decoder[Any]

    def __init__(
        self,
        stream: MessageStream[Any],
        tap: Tap | None,
        control: Control,
        adapter: DialectAdapter | None = None,
    ) -> None:
        self._adapter = adapter
        self._is_control = is_control if adapter is None else adapter.is_control
        self._receiver = receiver_of(stream)
        self._tap = tap
        self._control = control
        #: Decoded messages that the consumer has not taken, without control messages; and the types in the last batch,
        #: which may include those of control messages.
        self.ready: deque[Any] = deque()
        self.types: set[type] = set()
        # True while the consumer is in a step, the scope that cancels the step, and the number of steps so far.
        self._stepping = False
        self._scope: CancelScope | None = None
        self._steps = 0
        self._started = False
        self.closed: bool = False
        # Set to make read_on() check its conditions again. `_asleep` is True if the end of a step has to set it.
        self._noticed: Event | None = None
        self._asleep = False
        # The step after which the consumer was found to be away.
        self._away_since = -1

    def start(self, *, ends_with_stream: bool) -> None:
        """Take over the stream.

        Args:
            ends_with_stream: True if the stream is closed together with the router: the end of the stream then ends a
                waiting step, and :meth:`close` need not cancel it.

        Raises:
            TypeError: the decoder gives dicts, raises for bad lines, or skips messages.
            HandleError: the stream has a router already, or a task is in a step of it.
        """
        self._decoder = self._receiver.decoder
        if not self._decoder.typed or self._decoder.on_invalid == "raise":
            raise TypeError("a session needs a stream that gives typed messages, and does not raise for bad lines")
        if self._decoder.only is not None:
            raise TypeError("a session needs all lines of its stream: a decoder with only= passes over requests")
        self._ahead, ready = self._receiver.take_over(self._tap)
        if self._adapter is not None:
            ready = self._adapter.take_over(self._receiver, self._ahead, ready)
        self._receiver.adapter = self._adapter
        if self._ahead.found is None:
            self._ahead.found = _Found()
        self._found = self._ahead.found
        self._started = True
        self._ends_with_stream = ends_with_stream
        self._route(ready)
        late, self._found.late = self._found.late, []
        if self._ahead.kept_bytes:  # else the owner of the stream has read them in the meantime
            for message in late:
                self._handle_ahead(message)

    async def step(self) -> None:
        """Wait until ``ready`` has a message. Raises what the stream raises, and StopAsyncIteration after close()."""
        self.require_idle()
        if not self._started:
            raise HandleError("this session is not entered: use it as `async with ... as session`")
        # Set for the whole loop: a callback that starts between two batches must not start a step of its own.
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
                    self._receiver.give_back(batch)  # the router was closed while the batch was read
                else:
                    self._route(batch)
                    if self._adapter is not None:
                        self._adapter.check()
                    if not self.ready:
                        await checkpoint()  # let the tasks run that the control messages have started or woken
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
        """Wake :meth:`read_on`, because a request now waits for its answer."""
        if self._noticed is not None:
            set_event(self._noticed)

    def end_cause(self) -> Exception | None:
        """The exception that explains the end of the stream; None if the router knows no reason."""
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
        """Handle the control messages of a batch, and keep all others for the consumer."""
        self.types = set(map(type, batch))
        if self._adapter is not None:
            self._adapter.route(batch)
        if _ROUTED.isdisjoint(self.types):  # as in most batches
            self.ready.extend(batch)
            return
        control = [message for message in batch if self._is_control(message)]
        self.ready.extend(message for message in batch if type(message) not in KEPT_BACK)
        if self._found.followed != self._ahead.direct:
            self._found.control = 0  # the consumer has met all of them
        # Only after `ready` is filled: a handler may start a task at once that iterates.
        for message in control:
            if not self._was_seen(message):
                self._handle(message)

    def _handle(self, message: Any) -> None:
        self._control.handle(message)

    def _was_seen(self, message: Any) -> bool:
        """True if a control message was handled while reading ahead. Counts it as met."""
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
                continue  # the consumer gets this error, too; later chunks still come
            except Exception as error:  # the consumer gets this error, too, and may go on reading after it
                self._control.reading_failed(error)
                await self._consumer_back()
                continue
            self._look_at(data)
            if not data:
                return

    async def _consumer_away(self) -> None:
        """Wait until the consumer is away. Polls at intervals, so that its cost is the same for slow and fast steps."""
        before = -1
        while self._stepping or not (self._control.is_awaited or self._away_since == self._steps):
            steps, stepping = self._steps, self._stepping
            # In one step all the time: the consumer waits for the stream. Sleep until the step has ended.
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
        """Handle the control messages among the lines that end in a chunk. ``b""`` is the end of the stream."""
        found = self._found
        if found.follower is None or found.followed != self._ahead.direct:
            found.follower = self._new_follower()
            found.followed = self._ahead.direct
        self._look_at_lines(found.follower, data)

    def _new_follower(self) -> Follower[Any]:
        follower = self._decoder.follower()
        if self._adapter is not None:
            self._adapter.follow(follower)
        return follower

    def _look_at_lines(self, follower: Follower[Any], data: bytes) -> None:
        self._look_at_each(follower, follower.feed(data))

    def _look_at_each(self, follower: Follower[Any], lines: Sequence[bytes]) -> None:
        found = follower.control(lines) if self._adapter is None else self._adapter.control(follower, lines)
        for message in found:
            if self._is_control(message):
                self._saw_ahead(message)

    def _saw_ahead(self, message: Any) -> None:
        if self.closed:
            self._found.late.append(message)
        else:
            self._handle_ahead(message)

    def _handle_ahead(self, message: Any) -> None:
        self._found.control += 1
        self._handle(message)
