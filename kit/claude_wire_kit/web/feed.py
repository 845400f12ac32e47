"""One session's events, created once for all connections.

A feed reads the session from its first line or a later line, and keeps the latest events. A connection is only a
position in these events, so it needs almost no memory. To get events that the feed no longer keeps, a connection reads
the journal again, with a second bridge.

A connection begins in one of the ways below. The ids in the table omit the epoch. In an id, L.K is the position of the
event, and @F is the first line of the feed; ids of a feed that begins with line 1 have no @F. So the same id always
leads to the same events:

=======================  ================================  =============================================================
the client sends         its feed begins with              the client gets
=======================  ================================  =============================================================
nothing                  the first line                    all events
``last=N``               the first line that begins in     ``older`` with an id B, if there may be earlier events; the
                         the last :data:`TAIL_BYTES`; or   last N events and the rest of their first line; then each
                         any line, if a feed runs          new event
``Last-Event-ID: L.K``   the first line                    the events after L.K
``Last-Event-ID: @F.L.K``  line F                          the events after L.K
``before=B``             (no feed)                         one page: the last events before B, and the next id B
=======================  ================================  =============================================================

B names the first line whose events the client has, and ``before=B`` returns events of the lines before this line. So
pages neither overlap nor leave a gap. The lines of a page alone decide its events: if a tool call begins on one page
and ends on the next, the start is on the first page and the end on the second.

Up to 500 clients may read one feed, so a feed does little for each event and connection: no cancel scope, no generator
other than :meth:`Feed.follow`, and bytes joined only once. ``benches/test_serve.py`` has the numbers.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import deque
from contextlib import aclosing, asynccontextmanager
from sys import getsizeof
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.lowlevel
import msgspec
from msgspec import UNSET

from claude_wire.codec import decode
from claude_wire.support import short_id
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import NOTHING, Attach, Attached, Cursor, Cut, Ended
from claude_wire_kit.web.abilities import Abilities
from claude_wire_kit.web.events import Batch, EarlierQuestions, Event, EventId, Place, Source, last_of, raw_event
from claude_wire_kit.web.lines import Lines
from claude_wire_kit.web.slots import Slot, Slots

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from claude_wire_kit.supervisor.attach import Supervisor

#: Maximum size in bytes of the events that a feed keeps. The feed keeps the newest event even if it is larger.
MAX_KEPT = 4 * 1024 * 1024
#: The number of bytes that a kept event takes besides its JSON, for the id, the position, and the Python objects.
EVENT_BYTES = 350
#: Maximum number of characters in one batch of events. A larger event is alone in its batch.
MAX_AT_ONCE = 64 * 1024
#: Maximum number of connections that read older events from a journal at the same time. Others wait for a slot.
MAX_OLDER = 4
#: How many bytes of the journal ``last`` and ``before`` read.
TAIL_BYTES = 1024 * 1024
#: A connection that reads a journal may wait this many seconds in total for its client. After that, it loses its slot
#: as soon as another connection needs a slot.
OLDER_SECONDS = 3.0
#: Seconds between two ``beat`` signals to each connection.
BEAT_SECONDS = 15.0

_START = Place(0, -1)
_log = logging.getLogger("claude_wire")
_NOTHING = Batch()


class Signal(NamedTuple):
    """A message from the service itself. It has no id, and a client that reconnects does not get it again.

    Attributes:
        name: ``session_state``, ``permission_request``, ``older``, ``cut`` or ``beat``.
        json: the message as JSON.
    """

    name: str
    json: str


#: Each connection gets a beat at intervals, to show proxies and clients that the connection is alive.
BEAT: Signal = Signal("beat", '{"type":"beat"}')


class _State(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="session_state"):
    """A session's state.

    Attributes:
        ended: whether its CLI has exited.
        exitCode: the CLI's exit code; None while it is running, or if the code is not known.
        open: ids of the questions that are waiting for an answer.
        queued: ids of the prompts that are waiting for the current turn to end.
        model, permissionMode: the CLI's model and permission mode; None until a message names them.
        abilities: how many times the commands or models changed. ``GET .../abilities`` returns the new ones.
    """

    ended: bool
    exitCode: int | None
    open: list[str | float]
    queued: list[str]
    model: str | None
    permissionMode: str | None
    abilities: int


class _Cut(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="cut"):
    """The service ends the connection because the client reads too slowly. The client can reconnect after ``id``."""

    id: str


class _Older(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="older"):
    """There may be events before the first event that the client gets. The client can ask for them with ``before``."""

    before: str


class Feed:
    """One session's events from a given line onwards, shared by its connections.

    Args:
        supervisor: the supervisor.
        attach: the command that attaches to the session, with the first line to read.
        room: returns how many bytes of events the feed may keep now. The feed never keeps more than :data:`MAX_KEPT`.
        details: whether the events have details; see :class:`Source`.
    """

    def __init__(self, supervisor: Supervisor, attach: Attach, room: Callable[[], int], details: bool) -> None:
        self._supervisor = supervisor
        self._room = room
        self.details: bool = details
        self._attach = attach
        self.session: str = attach.attach
        self._events: deque[Event] = deque()
        # The size of all kept events in bytes, and the place of the newest dropped event.
        self._size = 0
        self._dropped = _START
        self._source: Source | None = None
        self._epoch = 0
        #: The number of the feed's first line; 0 until the supervisor names it.
        self.begins: int = 0 if self.is_tail else 1 if attach.after is None else attach.after.line + 1
        self._line = self._level_line = 0
        self._ended: Ended | None = None
        #: True once the feed has read all lines that the journal had when the feed attached.
        self.is_level: bool = False
        self._earlier = EarlierQuestions(details)
        # How many times the session's state changed, and how many times beat() was called.
        self._states = self._beats = 0
        # The latest batch, and the place before it. Other connections at this place get the same batch.
        self._latest: tuple[Place, Batch] | None = None
        # A future for each connection waiting for new events. A future takes a third of the time of an anyio.Event.
        self._waiting: list[asyncio.Future[None]] = []
        self._scope = anyio.CancelScope()
        self._older_readers = Slots(MAX_OLDER, OLDER_SECONDS)
        #: True once the journal no longer has the lines of the dropped events.
        self.is_stale: bool = False
        #: The number of connections.
        self.users: int = 0
        #: Set once the supervisor answered or refused the attach command.
        self.answered: anyio.Event = anyio.Event()
        #: The error that ended the feed; None while it runs.
        self.error: SupervisorError | None = None

    @property
    def is_whole(self) -> bool:
        """True if the feed begins at the first line in the journal."""
        return self._attach.tail is UNSET and self._attach.after is None

    @property
    def is_tail(self) -> bool:
        """True if the feed begins near the end of the journal."""
        return self._attach.tail is not UNSET

    async def run(self) -> None:
        """Read the session until the connection to the supervisor ends. Sets :attr:`error` instead of raising."""
        try:
            with self._scope:
                async with Lines(self._supervisor, self._attach) as lines:
                    await self._read(lines)
                self.error = SupervisorError("lost", "the supervisor has ended the connection")
        except SupervisorError as error:
            self.error = error
        except Exception as error:  # a bug triggered by one session must not end the feeds of others
            _log.error("the events of a session cannot be made: %s", type(error).__name__)
            self.error = SupervisorError("system", f"the events cannot be made: {type(error).__name__}")
        finally:
            self.error = self.error or SupervisorError("lost", "the service is stopping")
            self.answered.set()
            self._tell()

    async def _read(self, lines: Lines) -> None:
        answer = lines.answer
        self._epoch, self.begins, self._line = answer.epoch, answer.after + 1, answer.after
        self._source = source = Source(self._epoch, self.begins, self.details)
        self._level_line = answer.line
        if self.begins > 1:
            _set_abilities(source.abilities, answer)
        self.answered.set()
        self._look(answer)
        while received := await lines.receive():
            for one in received:
                if isinstance(one, tuple):
                    self._line = one[0]
                    changes = source.changes
                    self._keep(source.add(*one))
                    source.settle(self._earlier.add(one[1]))
                    if self._ended is not None or changes != source.changes:
                        self._ended = None
                        self._states += 1
                    self._look(answer)
                elif isinstance(one, Ended):
                    self._ended = one
                    source.settle(list(source.open))
                    self._earlier.open.clear()
                    self._states += 1
                elif isinstance(one, Cut):
                    return
            self._tell()
            if len(received) > 1:  # when many lines are ready, receive() does not wait, so let other tasks run here
                await anyio.lowlevel.checkpoint()

    def _look(self, answer: Attached) -> None:
        """Adopt the state in the supervisor's answer, once the feed has read all lines that this state covers."""
        if self.is_level or self._line < answer.line:
            return
        self.is_level = True
        self._ended = answer.ended
        assert self._source is not None
        still = open_ids(answer)
        self._source.settle([id for id in self._source.open if id not in still])
        for raw, id in zip(answer.open, still, strict=True):
            if id not in self._source.open:
                self._earlier.ask(bytes(raw))
        self._source.open.update(dict.fromkeys(self._earlier.open))
        self._states += 1

    def _keep(self, events: Iterable[Event]) -> None:
        for event in events:
            self._events.append(event)
            self._size += _size(event)
            self._latest = None
        self.trim()

    def trim(self) -> None:
        """Drop the oldest events until the rest fit the limit."""
        most = min(MAX_KEPT, self._room())
        while self._size > most and len(self._events) > 1:
            old = self._events.popleft()
            self._size -= _size(old)
            self._dropped = old.place

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def beat(self) -> None:
        """Make each connection send a ``beat``."""
        self._beats += 1
        self._tell()

    def close(self) -> None:
        self._scope.cancel()

    def settle(self, request_id: str | float) -> None:
        """Settle a question that one of this service's clients answered."""
        if self._source is not None:
            self._source.settle([request_id])
            self._earlier.open.pop(request_id, None)
            self._states += 1
            self._tell()

    @property
    def abilities(self) -> Abilities:
        """The CLI's commands, models and settings, according to the lines so far."""
        return Abilities() if self._source is None else self._source.abilities

    # --- connections

    def check(self, after: EventId | None) -> None:
        """Check that the events after an id are still available.

        Raises:
            SupervisorError: the events are not available (``epoch``, ``gone``), or the supervisor refused to attach.
        """
        if self.error is not None:
            raise self.error
        if after is None:
            return
        last = max(self._line, self._level_line)
        if after.epoch != self._epoch or after.place.line > last or after.details != self.details:
            raise SupervisorError("epoch", f"the id is from another journal; this one ends with line {last}", line=last)
        if after.first != self.begins:
            raise SupervisorError(
                "gone",
                f"the lines after this id were deleted; the first line is now {self.begins}",
                first=self.begins,
            )

    async def follow(self, after: EventId | None, last: int = 0) -> AsyncGenerator[Batch | Signal]:
        """Yield the events after an id, or all events, and then new events as they arrive.

        Ends when the feed ends, or after the event ``cut``.

        Args:
            after: an id that passed :meth:`check`; None for all events.
            last: if there is no id, begin with this many of the latest events; 0 for all.

        Raises:
            SupervisorError: older events cannot be read.
        """
        place = _START if after is None else after.place
        told, beats = -1, self._beats
        if last and after is None:
            while not self.is_level and self.error is None:
                await self._news()
            window, first = last_of(self._events, last)
            if first is not None:
                place = self._events[-1].place
            if self.begins > 1 or self._dropped != _START or (first is not None and first != self._events[0].place):
                yield _signal(_Older(before=str(self._id(first or Place(self.begins, 0)))))
            for events in window.pieces(MAX_AT_ONCE):
                yield events
        while self.error is None:
            if place < self._dropped:
                if self.is_level and told >= 0:
                    yield self._cut(place)
                    return
                async with aclosing(self._older(place)) as older:
                    async for events in older:
                        if not events:
                            yield self._cut(place)
                            return
                        place = events[-1].place
                        yield events
                        if place >= self._dropped:
                            break
                    else:
                        return
            if events := self._kept_after(place):
                place = events[-1].place
                yield events
            elif self.is_level and told != self._states:
                told = self._states
                assert self._source is not None
                for asked in self._earlier.open.values():
                    yield Signal("permission_request", asked)
                yield _state(self._ended, list(self._source.open), self._source.abilities)
            elif beats != self._beats:
                beats = self._beats
                yield BEAT
            else:
                await self._news()

    def _news(self) -> asyncio.Future[None]:
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(news)
        return news

    def _id(self, place: Place) -> EventId:
        return EventId(self._epoch, self.begins, place, self.details)

    def _kept_after(self, place: Place) -> Batch:
        """Return the kept events after the given place, at most one batch."""
        if self._latest is not None and self._latest[0] == place:
            return self._latest[1]
        kept = self._events
        if not kept or kept[-1].place <= place:
            return _NOTHING
        found = Batch()
        number = len(kept) - 1
        if number and kept[number - 1].place > place:
            number = bisect_right(kept, place, key=lambda event: event.place)
        size = 0
        while number < len(kept) and (not found or size + len(kept[number].json) <= MAX_AT_ONCE):
            found.append(kept[number])
            size += len(kept[number].json)
            number += 1
        self._latest = place, found
        return found

    async def _older(self, place: Place) -> AsyncGenerator[Batch]:
        """Yield the events after the given place, read from the journal again. End with ``_NOTHING`` if another
        connection took the slot.
        """
        async with Slot(self._older_readers) as slot, self._again() as lines:
            source = Source(self._epoch, self.begins, self.details)
            while received := await lines.receive():
                events = Batch()
                for one in received:
                    if isinstance(one, tuple):
                        events += [event for event in source.add(*one) if event.place > place]
                if events:
                    with slot.wait_for_client():
                        yield events
                    if slot.is_lost:
                        yield _NOTHING
                        return
                await anyio.lowlevel.checkpoint()

    @asynccontextmanager
    async def _again(self) -> AsyncGenerator[Lines]:
        """Attach again to read from the feed's first line."""
        try:
            after = Cursor(self.session, self._epoch, self.begins - 1)
            async with Lines(self._supervisor, Attach(attach=self.session, after=after)) as lines:
                yield lines
        except SupervisorError as error:
            self.is_stale = self.is_stale or error.error in ("gone", "epoch")
            raise

    def _cut(self, place: Place) -> Signal:
        return _signal(_Cut(id=str(self._id(place))))


def _size(event: Event) -> int:
    return EVENT_BYTES + getsizeof(event.json)


def open_ids(answer: Attached) -> list[str | float]:
    """Return the ids of the open questions, shortened in the same way as in events."""
    ids = [msgspec.json.decode(raw, type=_Asked).request_id for raw in answer.open]
    return [short_id(id) if isinstance(id, str) else id for id in ids]


class _Asked(msgspec.Struct):
    request_id: str | int | float


async def follow_raw(lines: Lines) -> AsyncGenerator[Batch | Signal]:
    """Yield a session's lines as events. Ends with a ``cut`` if the supervisor disconnects a slow connection."""
    answer = lines.answer
    number, is_level = answer.after, False
    while True:
        if not is_level and number >= answer.line:
            is_level = True
            yield _state(answer.ended, open_ids(answer))
        received = await lines.receive_within(BEAT_SECONDS)
        if received is None:
            yield BEAT
            continue
        if not received:
            return
        events = Batch()
        for one in received:
            if isinstance(one, tuple):
                number = one[0]
                if one[1].strip(b" \t\r"):
                    events.append(raw_event(answer.epoch, *one))
            elif isinstance(one, (Ended, Cut)):
                if events:
                    yield events
                    events = Batch()
                if isinstance(one, Cut):
                    yield _signal(_Cut(id=str(EventId(answer.epoch, 1, Place(number, 0)))))
                    return
                yield _state(one, [])
        if events:
            yield events


def _state(ended: Ended | None, open: list[str | float], abilities: Abilities | None = None) -> Signal:
    abilities = abilities or Abilities()
    return _signal(
        _State(
            ended=ended is not None,
            exitCode=None if ended is None else ended.exit_code,
            open=open,
            queued=[] if ended else list(abilities.queued),
            model=abilities.model,
            permissionMode=abilities.mode,
            abilities=abilities.changes,
        )
    )


def _signal(message: _State | _Cut | _Older) -> Signal:
    return Signal(str(message.__struct_config__.tag), msgspec.json.encode(message).decode())


def _set_abilities(abilities: Abilities, answer: Attached) -> None:
    """Set the abilities from the supervisor's answer, which covers the lines before the feed's first line."""
    if answer.initialized != NOTHING:
        abilities.add(decode(bytes(answer.initialized)))
    abilities.model = answer.model or abilities.model
    abilities.mode = answer.permission_mode or abilities.mode
