"""Turn a session's lines into events with ids, without I/O. A client that reconnects sends the id of its last event.

An event's id is ``EPOCH.LINE.K``: event number K (0-based) of line LINE in this epoch of the journal. An event depends
on all earlier lines that the reader has read. If the reader began with line 5001, the id contains this number:
``1@5001.6000.0``. With details, a line has other events, and their ids contain a ``d``: ``1d.6000.0``.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from claude_wire.codec import Decoder
from claude_wire.messages import ControlResponse, InitMessage, ResultMessage
from claude_wire_kit.events.bounds import bounded
from claude_wire_kit.events.bridge import Bridge
from claude_wire_kit.events.events import Activity, ClaudeResponse, PermissionCancelled, PermissionRequest, Thinking
from claude_wire_kit.supervisor.frames import INITIALIZE_ID
from claude_wire_kit.web.abilities import Abilities

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from claude_wire_kit.events.events import UiEvent

#: Maximum size, in characters, of the events on one page, and of the earlier events at the start of a stream.
WINDOW_CHARS = 1024 * 1024

_ID = re.compile(r"([1-9]\d{0,17})(?:@([1-9]\d{0,17}))?(d?)\.(\d{1,18})\.(\d{1,9})", re.ASCII)


class Place(NamedTuple):
    """The position of an event in a session. An earlier position is smaller.

    Attributes:
        line: the number of the line that produced the event.
        k: the 0-based number of the event among this line's events.
    """

    line: int
    k: int


class EventId(NamedTuple):
    """The id of an event.

    Attributes:
        epoch: the epoch of the journal.
        first: the number of the line at which reading began.
        place: the position of the event.
        details: whether the events have details.
    """

    epoch: int
    first: int
    place: Place
    details: bool = False

    @staticmethod
    def of(text: str) -> EventId:
        """Parse an id from a client.

        Raises:
            ValueError: ``text`` is not an id.
        """
        found = _ID.fullmatch(text)
        if found is None:
            raise ValueError("the id of an event must be EPOCH.LINE.K")
        return EventId(int(found[1]), int(found[2] or 1), Place(int(found[4]), int(found[5])), found[3] == "d")

    def __str__(self) -> str:
        return f"{stream_name(self.epoch, self.first, self.details)}.{self.place.line}.{self.place.k}"


class Event(NamedTuple):
    """An event with its id.

    Attributes:
        place: the position of the event.
        id: the id as text.
        json: the event as JSON.
        text: the id of the answer or thought that this event contains, whole or in part. None for other events.
        is_piece: True if the event contains only a part of that text.
    """

    place: Place
    id: str
    json: str
    text: str | None = None
    is_piece: bool = False

    @property
    def sse(self) -> bytes:
        """The event as bytes of a stream of Server-Sent Events."""
        data = self.json
        if "\r" in data:  # white space in JSON, but a line ending in Server-Sent Events
            data = data.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\ndata: ")
        return f"id: {self.id}\ndata: {data}\n\n".encode()

    @property
    def websocket(self) -> str:
        """The event as a WebSocket message: a JSON object with ``id`` and ``event``."""
        return f'{{"id":"{self.id}","event":{self.json}}}'


def last_of(events: Sequence[Event], count: int) -> tuple[Batch, Place | None]:
    """Choose the last ``count`` events, and all other events from the line of the first chosen event.

    If the whole text is among the events, omit its pieces; otherwise the pieces count as one event. If all events
    together exceed :data:`WINDOW_CHARS`, also omit the oldest.

    Returns:
        The events, and the place of the first one, for the client's next ``before``; None without events.
    """
    found: list[Event] = []
    place: Place | None = None
    # Text -> whether the whole text is among the events so far.
    texts: dict[str, bool] = {}
    counted = size = 0
    for event in reversed(events):
        if (counted >= count or size > WINDOW_CHARS) and place is not None and event.place.line != place.line:
            break
        place = event.place
        if event.text is not None:
            if event.is_piece and texts.get(event.text):
                continue
            counted -= event.text in texts
            texts[event.text] = not event.is_piece
        found.append(event)
        counted += 1
        size += len(event.json)
    return Batch(reversed(found)), place


class RawEvent(Event):
    """A line from the CLI, as an event. ``json`` is the raw line, which may not be valid JSON."""

    @property
    def websocket(self) -> str:
        """The event as a WebSocket message. A line that is not JSON becomes a JSON string, so it cannot forge an id."""
        try:
            msgspec.json.decode(self.json, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError):
            return self._replace(json=json.dumps(self.json)).websocket
        return super().websocket


class Batch(list[Event]):
    """Events to send together. All connections share the encoded bytes."""

    @cached_property
    def sse(self) -> bytes:
        """The events as bytes of a stream of Server-Sent Events."""
        return b"".join([event.sse for event in self])

    def pieces(self, most: int) -> Iterator[Batch]:
        """Yield batches of at most ``most`` characters. A larger event is alone in its batch."""
        piece, size = Batch(), 0
        for event in self:
            if piece and size + len(event.json) > most:
                yield piece
                piece, size = Batch(), 0
            piece.append(event)
            size += len(event.json)
        if piece:
            yield piece


def stream_name(epoch: int, first: int, details: bool = False) -> str:
    """Return the part of an event's id before the line number, such as ``1@5001d``."""
    return (str(epoch) if first == 1 else f"{epoch}@{first}") + ("d" if details else "")


def raw_event(epoch: int, number: int, line: bytes) -> Event:
    """Return one of the CLI's lines as an event. Replace bytes that are not UTF-8."""
    place = Place(number, 0)
    return RawEvent(place, f"{epoch}.{number}.0", line.decode("utf-8", "replace"))


class Source:
    """Turns a session's lines into events. The same lines always become the same events, because the bridge has no
    clock and does not see the answers of this service's clients.

    Args:
        epoch: the epoch of the journal.
        first: the number of the first line.
        details: create the events that the page shows, with tool inputs and results. Cut long texts in them.
    """

    def __init__(self, epoch: int, first: int, details: bool = False) -> None:
        self.name: str = stream_name(epoch, first, details)
        #: The CLI's commands, models and settings.
        self.abilities: Abilities = Abilities()
        self._details = details
        self._ui = Bridge(partial=True, prompts=True, details=details)
        self._decoder: Decoder[Any] = Decoder()
        # False until a turn begins, if the first line may be in the middle of a turn.
        self._has_begun = first == 1
        #: The ids of the open questions, according to the lines so far.
        self.open: dict[str | float, None] = {}
        #: How many times the open questions, the queue or the settings changed.
        self.changes: int = 0

    def add(self, number: int, line: bytes) -> list[Event]:
        """Return the events of the next line. ``line`` has no line feed."""
        found: list[UiEvent] = []
        for message in self._decoder.feed(line + b"\n"):
            if isinstance(message, ControlResponse) and message.request_id == INITIALIZE_ID:
                found += self._ui.end()  # a new CLI resumes the session
            self._has_begun = self._has_begun or isinstance(message, InitMessage)
            made = self._ui.add(message)
            if isinstance(message, ResultMessage) and not self._has_begun:
                # The result repeats the last text of its turn, which is already on an earlier page.
                made = [event for event in made if not isinstance(event, ClaudeResponse)]
                self._has_begun = True
            found += made
            self.changes += self.abilities.add(message)
        if self._details:
            # Omit Activity: each delta of a tool's input creates one, which only says that the CLI is writing input.
            found = [bounded(event) for event in found if not isinstance(event, Activity)]
        return [self._event(number, k, event) for k, event in enumerate(found)]

    def _event(self, number: int, k: int, event: UiEvent) -> Event:
        if isinstance(event, PermissionRequest):
            self.open[event.requestId] = None
            self.changes += 1
        elif isinstance(event, PermissionCancelled):
            self.settle([event.requestId])
        text, is_piece = None, False
        if isinstance(event, (ClaudeResponse, Thinking)) and event.id is not None:
            text, is_piece = f"{type(event).__name__} {event.id}", event.partial is True
        return Event(Place(number, k), f"{self.name}.{number}.{k}", event.to_json(), text, is_piece)

    def settle(self, ids: Iterable[str | float]) -> None:
        """Remove open questions because a client answered them. No line of the CLI shows the answer yet."""
        for id in ids:
            self.open.pop(id, None)
            self.changes += 1


class EarlierQuestions:
    """The questions that were open before a feed's first line. Their events have no id, because the feed did not read
    their lines.

    Args:
        details: see :class:`Source`.
    """

    def __init__(self, details: bool) -> None:
        self._ui = Bridge(details=details)
        self._decoder: Decoder[Any] = Decoder()
        #: Id -> event as JSON.
        self.open: dict[str | float, str] = {}

    def ask(self, line: bytes) -> None:
        """Add an open question from the CLI's line."""
        for event in self._events(line):
            if isinstance(event, PermissionRequest):
                self.open[event.requestId] = event.to_json()

    def add(self, line: bytes) -> list[str | float]:
        """Read a later line from the CLI. Returns the ids of the questions that it settles."""
        if not self.open:
            return []
        settled = [event.requestId for event in self._events(line) if isinstance(event, PermissionCancelled)]
        return [id for id in settled if self.open.pop(id, None) is not None]

    def _events(self, line: bytes) -> list[UiEvent]:
        return [event for message in self._decoder.feed(line + b"\n") for event in self._ui.add(message)]
