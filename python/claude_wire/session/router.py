"""Split a stream of messages: handle control messages immediately, and keep all other messages for the consumer.

The consumer (the task that iterates) reads the stream in steps. If no step begins for :data:`AWAY_SECONDS`, or if a
request is waiting for its answer while no task iterates, :meth:`Router.read_ahead` reads ahead. It decodes only the
control messages, but keeps all bytes. The consumer decodes the kept bytes in its next step, and skips the control
messages that were already handled.
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

#: The router reads ahead if the consumer does not begin a step for this many seconds.
AWAY_SECONDS = 0.01
#: While the router must not read, it checks at this interval, in seconds, whether it may read again.
ROOM_SECONDS = 0.05

#: Message types that the consumer does not get. (A control message whose content does not fit its type is an
#: UnknownMessage, so the consumer gets it.)
KEPT_BACK = frozenset((ControlRequest, ControlResponse, ControlCancelRequest, KeepAlive))
_ROUTED = frozenset((*KEPT_BACK, UnknownMessage))


class _AheadState:
    """The read-ahead state of one stream. A later router of the same stream continues with it."""

    def __init__(self) -> None:
        # Splits the chunks that are read ahead into lines. `followed` is the value of ReadAhead.direct when the
        # follower was created. When the consumer reads the stream directly, ReadAhead.direct changes, and the follower
        # becomes invalid.
        self.follower: Follower[Any] | None = None
        self.followed = -1
        # The number of control messages that were handled while reading ahead, but that the consumer has not reached.
        self.control: int = 0
        # Control messages that arrived after their router was closed.
        self.late: list[Any] = []


class Router:
    """Reads a stream for a consumer that may pause between messages.

    Args:
        stream: a stream of typed messages that returns bad lines as :class:`InvalidLine`. After :meth:`start`, only the
            router reads it.
        tap: called with each chunk that is read.
        control: handles the control messages. While ``control`` is full, the router reads nothing.
        adapter: translates messages in a dialect other than stream-json; None for stream-json.
    """

    _ahead: ReadAhead
    _state: _AheadState
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
        #: Decoded messages that the consumer has not taken yet, without control messages.
        self.ready: deque[Any] = deque()
        #: The types of all messages in the last batch, including control messages.
        self.types: set[type] = set()
        # `_stepping`: the consumer is in a step. `_scope` cancels this step. `_steps`: the number of steps so far.
        self._stepping = False
        self._scope: CancelScope | None = None
        self._steps = 0
        self._started = False
        self.closed: bool = False
        # Set this event to make read_ahead() check its conditions again. While `_asleep` is True, read_ahead() waits
        # for the consumer, so the consumer sets the event when its step ends.
        self._noticed: Event | None = None
        self._asleep = False
        # The value of `_steps` when read_ahead() last found that no step had begun for AWAY_SECONDS.
        self._away_since = -1

    def start(self, *, ends_with_stream: bool) -> None:
        """Take over the stream.

        Args:
            ends_with_stream: True if the stream is closed together with the router. The end of the stream then ends a
                waiting step, so :meth:`close` does not need to cancel it.

        Raises:
            TypeError: the decoder returns dicts, raises for bad lines, or skips messages.
            HandleError: the stream already has a router, or a task is in a step of it.
        """
        self._decoder = self._receiver.decoder
        if not self._decoder.typed or self._decoder.on_invalid == "raise":
            raise TypeError("a session needs a stream of typed messages that does not raise for bad lines")
        if self._decoder.only is not None:
            raise TypeError("a session needs all lines of its stream: a decoder with only= skips control requests")
        self._ahead, ready = self._receiver.take_over(self._tap)
        if self._adapter is not None:
            ready = self._adapter.take_over(self._receiver, self._ahead, ready)
        self._receiver.adapter = self._adapter
        if self._ahead.state is None:
            self._ahead.state = _AheadState()
        self._state = self._ahead.state
        self._started = True
        self._ends_with_stream = ends_with_stream
        self._route(ready)
        late, self._state.late = self._state.late, []
        if self._ahead.kept_bytes:  # otherwise the owner of the stream has read these messages since
            for message in late:
                self._handle_ahead(message)

    async def step(self) -> None:
        """Wait until ``ready`` has a message.

        Raises:
            StopAsyncIteration: the stream ended, or the router was closed.
            HandleError: another task is in a step.
            Exception: any exception that the stream raises.
        """
        self.require_idle()
        if not self._started:
            raise HandleError("this session is not entered: use it as `async with ... as session`")
        # Keep this true for the whole loop. Otherwise a callback that starts between two batches could start a step.
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
                        await checkpoint()  # let tasks run that the control messages started or woke
        finally:
            self._stepping = False
            if self._asleep:
                self.notice()

    async def _next_batch(self) -> list[Any]:
        while self._control.is_full() and not self.closed:
            await sleep(ROOM_SECONDS)
        return await self._receiver.next_batch()

    def require_idle(self) -> None:
        """Raise HandleError if a task is iterating over the session at the moment."""
        if self._stepping:
            raise HandleError("another task is iterating over this session")

    def notice(self) -> None:
        """Wake :meth:`read_ahead`, because a request is now waiting for its answer."""
        if self._noticed is not None:
            set_event(self._noticed)

    def end_cause(self) -> Exception | None:
        """The exception that explains why the stream ended; None if the router does not know the reason."""
        return None

    def take_end_error(self) -> Exception | None:
        """Return the exception to raise when the stream ends. None for a normal end, and from the second call on."""
        return None

    def close(self) -> None:
        """End the iteration, even if a task is in a step, and give the unread messages back to the stream."""
        self.closed = True
        if self._started:
            self._receiver.give_back(self.ready)
        self.ready.clear()
        if self._scope is not None:
            self._scope.cancel()

    def _route(self, batch: list[Any]) -> None:
        """Handle the control messages in a batch, and keep all other messages for the consumer."""
        self.types = set(map(type, batch))
        if self._adapter is not None:
            self._adapter.route(batch)
        if _ROUTED.isdisjoint(self.types):  # as in most batches
            self.ready.extend(batch)
            return
        control = [message for message in batch if self._is_control(message)]
        self.ready.extend(message for message in batch if type(message) not in KEPT_BACK)
        if self._state.followed != self._ahead.direct:
            self._state.control = 0  # the consumer has passed all of them
        # Fill `ready` first, because a handler may start a task that iterates immediately.
        for message in control:
            if not self._was_seen(message):
                self._handle(message)

    def _handle(self, message: Any) -> None:
        self._control.handle(message)

    def _was_seen(self, message: Any) -> bool:
        """Return True if this control message was handled while reading ahead, and count it as passed."""
        if not self._state.control:
            return False
        self._state.control -= 1
        return True

    # --- while nobody iterates

    async def read_ahead(self) -> None:
        """Read ahead whenever the consumer is away, until the end of the stream. The session runs this in a task."""
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
                continue  # the consumer also gets this error, and the stream continues after it
            except Exception as error:  # the consumer also gets this error, and may then continue to read
                self._control.requests.fail_waiting("reading failed", error)
                await self._consumer_back()
                continue
            self._handle_chunk(data)
            if not data:
                return

    async def _consumer_away(self) -> None:
        """Poll until the consumer is away. Polling makes the cost independent of the number of steps."""
        before = -1
        while self._stepping or not (self._control.requests.waiting or self._away_since == self._steps):
            steps, stepping = self._steps, self._stepping
            # If the same step was running at the last poll, the consumer is waiting for the stream. Sleep until it ends
            # its step.
            self._asleep = stepping and steps == before
            await self._wait_for_notice(None if self._asleep else AWAY_SECONDS)
            self._asleep = False
            if not stepping and not self._stepping and self._steps == steps:
                self._away_since = steps
            before = steps

    async def _consumer_back(self) -> None:
        steps = self._steps
        while self._steps == steps:
            self._asleep = True
            await self._wait_for_notice(None)
        self._asleep = False

    async def _wait_for_notice(self, seconds: float | None) -> None:
        """Wait for :meth:`notice`, for at most ``seconds``."""
        self._noticed = Event()
        with move_on_after(seconds):
            await self._noticed.wait()
        self._noticed = None

    def _handle_chunk(self, data: bytes) -> None:
        """Handle the control messages among the lines that a chunk completes. ``b""`` marks the end of the stream."""
        state = self._state
        if state.follower is None or state.followed != self._ahead.direct:
            state.follower = self._new_follower()
            state.followed = self._ahead.direct
        self._handle_lines(state.follower, data)

    def _new_follower(self) -> Follower[Any]:
        follower = self._decoder.follower()
        if self._adapter is not None:
            self._adapter.follow(follower)
        return follower

    def _handle_lines(self, follower: Follower[Any], data: bytes) -> None:
        self._handle_control_lines(follower, follower.feed(data))

    def _handle_control_lines(self, follower: Follower[Any], lines: Sequence[bytes]) -> None:
        found = follower.control(lines) if self._adapter is None else self._adapter.control(follower, lines)
        for message in found:
            if self._is_control(message):
                if self.closed:
                    self._state.late.append(message)
                else:
                    self._handle_ahead(message)

    def _handle_ahead(self, message: Any) -> None:
        self._state.control += 1
        self._handle(message)
