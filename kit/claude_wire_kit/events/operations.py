"""Keep the open tool calls. Each call ends exactly once, even if its result never arrives.

``MAX_OPERATIONS`` open calls take at most 12 MB. The next call ends the oldest as interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from claude_wire.support import MAX_OPERATIONS, Ids
from claude_wire_kit.events.events import Operation, OperationState

__all__ = ["MAX_OPERATIONS", "Operations", "Place", "joined"]

#: The id of a conversation, and the id of a call or subagent in this conversation.
Place = tuple[str | None, str]


def joined(place: Place) -> str:
    """Return a place as one string."""
    return f"{place[0]}\n{place[1]}"


class Operations:
    """The open tool calls of all conversations, in the order in which they started."""

    def __init__(self) -> None:
        self._open: dict[Place, Operation] = {}
        # Calls that ended. The CLI may repeat a call, which then must not start again.
        self._ended = Ids()
        # Ids of denied calls. The conversation is unknown, because a question does not name it.
        self._denied = Ids()

    def __len__(self) -> int:
        return len(self._open)

    def start(self, operation: Operation) -> Iterator[Operation]:
        """Add a call, and yield its start event. Yields nothing if the call already started."""
        place = operation.conversationId, operation.id
        if place not in self._open and joined(place) not in self._ended:
            if len(self._open) >= MAX_OPERATIONS:
                yield from self.end(next(iter(self._open)), "interrupted")
            # Do not keep the input, because it may be large.
            self._open[place] = msgspec.structs.replace(operation, name=None, input=None, change=None)
            yield operation

    def get(self, place: Place) -> Operation | None:
        return self._open.get(place)

    def find(self, id: str) -> Place | None:
        """Return the place of the newest open call with this id, in any conversation."""
        return next((place for place in reversed(self._open) if place[1] == id), None)

    def deny(self, id: str) -> None:
        """Note that a call was denied. Its result will be an error, which then means ``denied``."""
        self._denied.add(id)

    def end(self, place: Place, state: OperationState, result: Operation | None = None) -> Iterator[Operation]:
        """End a call if it is open, and yield the event. A failed call that was denied ends as ``denied``.

        Args:
            result: an operation with the details of the result. With it, a call that is not open also gets an event.
        """
        operation = self._open.pop(place, None)
        if operation is not None:
            self._ended.add(joined(place))
        ended = operation or result
        if ended is None:
            return
        if state != "succeeded" and place[1] in self._denied:
            self._denied.discard(place[1])
            state = "denied"
        if result is None:
            yield msgspec.structs.replace(ended, state=state)
        else:
            details = {name: getattr(result, name) for name in ("content", "change", "exitCode", "decision", "at")}
            yield msgspec.structs.replace(ended, state=state, **details)

    def end_all(self, conversation: str | None, of: Callable[[str | None], bool]) -> Iterator[Operation]:
        """End the open calls of a conversation as interrupted, if ``of(agentId)`` is true for their agent."""
        over = [place for place, one in self._open.items() if place[0] == conversation and of(one.agentId)]
        for place in over:
            yield from self.end(place, "interrupted")
