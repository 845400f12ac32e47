"""Events with ids: what a line of a session gives, and where a client stands.

Knows the bridge, ids and how an event is written for a browser; not where lines come from. Sans-IO.

An event's id is ``EPOCH.LINE.K``: the K-th event, from 0, that line LINE of the session gave, in an epoch of its
journal. The events depend on the lines before, so where the journal had lost its first lines when the events were made,
the epoch names the line with which they began: ``1@5001.6000.0``.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from claude_wire.codec import Decoder
from claude_wire.messages import ControlResponse
from claude_wire_kit.events.bridge import Bridge
from claude_wire_kit.events.events import PermissionCancelled, PermissionRequest
from claude_wire_kit.supervisor.frames import INITIALIZE_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from claude_wire_kit.events.events import UiEvent

_ID = re.compile(r"([1-9]\d{0,17})(?:@([1-9]\d{0,17}))?\.(\d{1,18})\.(\d{1,9})", re.ASCII)


class Place(NamedTuple):
    """Where an event stands in a session; places are in order.

    Attributes:
        line: the number of the line that gave it.
        k: the number of the event among those of the line.
    """

    line: int
    k: int


class EventId(NamedTuple):
    """The id of an event.

    Attributes:
        epoch: of the journal.
        first: the number of the line with which the events begin.
        place: where the event stands.
    """

    epoch: int
    first: int
    place: Place

    @staticmethod
    def of(text: str) -> EventId:
        """An id as a client sends it.

        Raises:
            ValueError: it is none.
        """
        found = _ID.fullmatch(text)
        if found is None:
            raise ValueError("an event's id is EPOCH.LINE.K")
        return EventId(int(found[1]), int(found[2] or 1), Place(int(found[3]), int(found[4])))

    def __str__(self) -> str:
        return f"{stream_name(self.epoch, self.first)}.{self.place.line}.{self.place.k}"


class Event(NamedTuple):
    """An event that was given its id.

    Attributes:
        place: where it stands.
        id: as clients see it.
        json: the event, on one line.
    """

    place: Place
    id: str
    json: str

    @property
    def sse(self) -> bytes:
        """The event as a browser reads it from a stream of Server-Sent Events."""
        data = self.json
        if "\r" in data:  # white space between the tokens of a raw line; it would end the field
            data = data.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\ndata: ")
        return f"id: {self.id}\ndata: {data}\n\n".encode()

    @property
    def websocket(self) -> str:
        """The event as a message of a WebSocket: a JSON object with ``id`` and ``event``."""
        return f'{{"id":"{self.id}","event":{self.json}}}'


class RawEvent(Event):
    """A line of the CLI that is an event of its own. It may be anything: the CLI need not write JSON."""

    @property
    def websocket(self) -> str:
        """As :attr:`Event.websocket`. A line that is no JSON is a string there, so that it cannot be read as an id."""
        try:
            msgspec.json.decode(self.json, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError):
            return self._replace(json=json.dumps(self.json)).websocket
        return super().websocket


class Batch(list[Event]):
    """Events that are sent at once, and are written for Server-Sent Events once for all connections."""

    @cached_property
    def sse(self) -> bytes:
        """The events as :attr:`Event.sse` has each."""
        return b"".join([event.sse for event in self])


def stream_name(epoch: int, first: int) -> str:
    """What stands before the line in the ids of a stream of events."""
    return str(epoch) if first == 1 else f"{epoch}@{first}"


def raw_event(epoch: int, number: int, line: bytes) -> Event:
    """A line of the CLI as an event of its own. Bytes that are not UTF-8 are replaced."""
    place = Place(number, 0)
    return RawEvent(place, f"{epoch}.{number}.0", line.decode("utf-8", "replace"))


class Source:
    """Makes events of the lines of a session: always the same of the same lines.

    So nothing but lines goes into the bridge: no answer, which a client cannot see, and no clock.

    Args:
        epoch: of the journal.
        first: the number of the first line.
    """

    def __init__(self, epoch: int, first: int) -> None:
        self.name: str = stream_name(epoch, first)
        self._ui = Bridge(partial=True, prompts=True)
        self._decoder: Decoder[Any] = Decoder()
        #: The questions without an answer, as the events have told them.
        self.open: dict[str | float, None] = {}
        #: How often that has changed.
        self.changes: int = 0

    def add(self, number: int, line: bytes) -> list[Event]:
        """The events of the next line, which is given without its line feed."""
        found: list[UiEvent] = []
        for message in self._decoder.feed(line + b"\n"):
            if isinstance(message, ControlResponse) and message.request_id == INITIALIZE_ID:
                found += self._ui.end()  # another process goes on with the session
            found += self._ui.add(message)
        return [self._event(number, k, event) for k, event in enumerate(found)]

    def _event(self, number: int, k: int, event: UiEvent) -> Event:
        if isinstance(event, PermissionRequest):
            self.open[event.requestId] = None
            self.changes += 1
        elif isinstance(event, PermissionCancelled):
            self.settle([event.requestId])
        return Event(Place(number, k), f"{self.name}.{number}.{k}", event.to_json())

    def settle(self, ids: Iterable[str | float]) -> None:
        """These questions are answered, which the lines tell later."""
        for id in ids:
            self.open.pop(id, None)
            self.changes += 1
