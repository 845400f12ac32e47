"""Places for a few connections at a time; one whose client does not read gives its place to those that wait.

Knows time and tasks; not what is done at a place.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Generator

    from typing_extensions import Self

__all__ = ["Place", "Turns"]


class Place:
    """A place of one connection. To be entered; entering waits until there is room."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._rested = 0.0
        self._since: float | None = None
        #: True once others have taken the place.
        self.is_lost: bool = False

    async def __aenter__(self) -> Self:
        await self._turns.take(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._turns.leave(self)

    @contextmanager
    def rests(self) -> Generator[None]:
        """Nothing is done at the place inside the block: the client has to read first."""
        self._since = anyio.current_time()
        try:
            yield
        finally:
            self._rested = self.rested
            self._since = None

    @property
    def rested(self) -> float:
        """Seconds that the connection has waited for its client, in all."""
        return self._rested + (0.0 if self._since is None else anyio.current_time() - self._since)


class Turns:
    """The places.

    Args:
        most: so many.
        seconds: while others wait, a connection keeps its place until it has waited so long for its client.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._taken: list[Place] = []
        # Held by the first of those that wait, so that they come in order.
        self._door = anyio.Lock()
        self._left = anyio.Event()

    async def take(self, place: Place) -> None:
        """Wait for room."""
        async with self._door:
            while len(self._taken) >= self._most:
                longest = max(self._taken, key=lambda one: one.rested)
                left = self._seconds - longest.rested
                if left <= 0:
                    longest.is_lost = True
                    self._taken.remove(longest)
                else:
                    with anyio.move_on_after(left):
                        await self._left.wait()
            self._taken.append(place)

    def leave(self, place: Place) -> None:
        """Make room, unless the place was lost."""
        if not place.is_lost:
            self._taken.remove(place)
            self._left.set()
            self._left = anyio.Event()
