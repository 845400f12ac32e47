"""The events of a session's lines, with ids. A client that reconnects names the id of its last event. Sans-IO.

An event's id is ``EPOCH.LINE.K``: the K-th event, from 0, of line LINE of the session, in an epoch of the journal. An
event depends on all lines before it. So if the journal had lost its first lines when the events were made, the epoch
names the first line: ``1@5001.6000.0``. With details a line has other events, which the epoch says, too: ``1d.6000.0``.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from claude_wire.codec import Decoder
from claude_wire.messages import ControlResponse
from claude_wire_kit.events.bounds import bounded
from claude_wire_kit.events.bridge import Bridge
from claude_wire_kit.events.events import Activity, PermissionCancelled, PermissionRequest
from claude_wire_kit.supervisor.frames import INITIALIZE_ID
from claude_wire_kit.web.abilities import Abilities

if TYPE_CHECKING:
    from collections.abc import Iterable

    from claude_wire_kit.events.events import UiEvent

_ID = re.compile(r"([1-9]\d{0,17})(?:@([1-9]\d{0,17}))?(d?)\.(\d{1,18})\.(\d{1,9})", re.ASCII)


class Place(NamedTuple):
    """The position of an event in a session. Positions can be compared.

    Attributes:
        line: the number of the line that gave the event.
        k: the number of the event among those of the line.
    """

    line: int
    k: int


class EventId(NamedTuple):
    """The id of an event.

    Attributes:
        epoch: of the journal.
        first: the number of the line with which the events begin.
        place: the position of the event.
        details: whether it is one of the events with details.
    """

    epoch: int
    first: int
    place: Place
    details: bool = False

    @staticmethod
    def of(text: str) -> EventId:
        """Parse an id that a client has sent.

        Raises:
            ValueError: the text is not an id.
        """
        found = _ID.fullmatch(text)
        if found is None:
            raise ValueError("an event's id is EPOCH.LINE.K")
        return EventId(int(found[1]), int(found[2] or 1), Place(int(found[4]), int(found[5])), found[3] == "d")

    def __str__(self) -> str:
        return f"{stream_name(self.epoch, self.first, self.details)}.{self.place.line}.{self.place.k}"


class Event(NamedTuple):
    """An event with its id.

    Attributes:
        place: the position of the event.
        id: the id, as clients see it.
        json: the event, on one line.
    """

    place: Place
    id: str
    json: str

    @property
    def sse(self) -> bytes:
        """The event as bytes of a stream of Server-Sent Events."""
        data = self.json
        if "\r" in data:  # JSON allows it as white space, but it would end the field here
            data = data.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\ndata: ")
        return f"id: {self.id}\ndata: {data}\n\n".encode()

    @property
    def websocket(self) -> str:
        """The event as a WebSocket message: a JSON object with ``id`` and ``event``."""
        return f'{{"id":"{self.id}","event":{self.json}}}'


class RawEvent(Event):
    """A line of the CLI as an event. It may be anything: the CLI need not write JSON."""

    @property
    def websocket(self) -> str:
        """The event as a WebSocket message. A line that is not JSON becomes a string, so that it cannot forge an id."""
        try:
            msgspec.json.decode(self.json, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError):
            return self._replace(json=json.dumps(self.json)).websocket
        return super().websocket


class Batch(list[Event]):
    """Events that are sent together. Their bytes for Server-Sent Events are made once for all connections."""

    @cached_property
    def sse(self) -> bytes:
        """The events as bytes of a stream of Server-Sent Events."""
        return b"".join([event.sse for event in self])


def stream_name(epoch: int, first: int, details: bool = False) -> str:
    """Return the part of an event's id before the line number."""
    return (str(epoch) if first == 1 else f"{epoch}@{first}") + ("d" if details else "")


def raw_event(epoch: int, number: int, line: bytes) -> Event:
    """Make an event of a line of the CLI. Bytes that are not UTF-8 are replaced."""
    place = Place(number, 0)
    return RawEvent(place, f"{epoch}.{number}.0", line.decode("utf-8", "replace"))


class Source:
    """Makes events of the lines of a session. The same lines always give the same events.

    So only lines go into the bridge: no clock, and no answers, because lines do not show who has answered.

    Args:
        epoch: of the journal.
        first: the number of the first line.
        details: give all that a person wants to see of a session, each event cut to a size that a browser takes.
    """

    def __init__(self, epoch: int, first: int, details: bool = False) -> None:
        self.name: str = stream_name(epoch, first, details)
        #: What the CLI offers, and how it is set.
        self.abilities: Abilities = Abilities()
        self._details = details
        self._ui = Bridge(partial=True, prompts=True, details=details)
        self._decoder: Decoder[Any] = Decoder()
        #: The ids of the open questions, according to the events.
        self.open: dict[str | float, None] = {}
        #: How often the open questions, the queue or the settings have changed.
        self.changes: int = 0

    def add(self, number: int, line: bytes) -> list[Event]:
        """Return the events of the next line, which is given without its line feed."""
        found: list[UiEvent] = []
        for message in self._decoder.feed(line + b"\n"):
            if isinstance(message, ControlResponse) and message.request_id == INITIALIZE_ID:
                found += self._ui.end()  # a new process goes on with the session
            found += self._ui.add(message)
            self.changes += self.abilities.add(message)
        if self._details:
            # Deltas of a tool's input would be as many events, and say only that there is one.
            found = [bounded(event) for event in found if not isinstance(event, Activity)]
        return [self._event(number, k, event) for k, event in enumerate(found)]

    def _event(self, number: int, k: int, event: UiEvent) -> Event:
        if isinstance(event, PermissionRequest):
            self.open[event.requestId] = None
            self.changes += 1
        elif isinstance(event, PermissionCancelled):
            self.settle([event.requestId])
        return Event(Place(number, k), f"{self.name}.{number}.{k}", event.to_json())

    def settle(self, ids: Iterable[str | float]) -> None:
        """Remove questions that were answered here. The lines will show it later."""
        for id in ids:
            self.open.pop(id, None)
            self.changes += 1
