"""Limit how many connections read journals at the same time. A connection with a slow client loses its slot to others.

Example: with four slots of 3 seconds, a fifth connection waits. As soon as one of the four connections has waited 3
seconds in total for its client to read, it loses its slot to the fifth.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Generator

    from typing_extensions import Self


class Slot:
    """One connection's slot, for ``async with``. Entering waits for a free slot."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._waited = 0.0
        self._since: float | None = None
        #: True once another connection took the slot.
        self.is_lost: bool = False

    async def __aenter__(self) -> Self:
        await self._slots.take(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._slots.release(self)

    @contextmanager
    def wait_for_client(self) -> Generator[None]:
        """Count the time inside this block as waiting for the connection's client to read."""
        self._since = anyio.current_time()
        try:
            yield
        finally:
            self._waited = self.waited
            self._since = None

    @property
    def waited(self) -> float:
        """The total time in seconds that the connection waited for its client."""
        return self._waited + (0.0 if self._since is None else anyio.current_time() - self._since)


class Slots:
    """A fixed number of slots.

    Args:
        most: number of slots.
        seconds: maximum total time in seconds that a connection waits for its client. Above this time, the connection
            loses its slot if another connection needs it.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._taken: list[Slot] = []
        # The first waiting connection holds this lock, so connections get slots in the order of arrival.
        self._queue = anyio.Lock()
        self._freed = anyio.Event()

    async def take(self, slot: Slot) -> None:
        async with self._queue:
            while len(self._taken) >= self._most:
                longest = max(self._taken, key=lambda taken: taken.waited)
                remaining = self._seconds - longest.waited
                if remaining <= 0:
                    longest.is_lost = True
                    self._taken.remove(longest)
                else:
                    with anyio.move_on_after(remaining):
                        await self._freed.wait()
            self._taken.append(slot)

    def release(self, slot: Slot) -> None:
        """Free a slot, unless another connection has already taken it."""
        if not slot.is_lost:
            self._taken.remove(slot)
            self._freed.set()
            self._freed = anyio.Event()
