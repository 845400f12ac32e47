"""Iterators over a session: in lists, and over a part of what it says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from claude_wire.io.message_stream import Batches

if TYPE_CHECKING:
    from typing_extensions import Self

    from claude_wire.messages import InvalidLine, Message

__all__ = ["SessionBatches", "SessionMessages"]


class SessionBatches(Batches["Message | InvalidLine"]):
    """Iterates over a :class:`Session` in lists; made by its ``batches()``."""

    __slots__ = ()


class SessionMessages:
    """Iterates over a part of what a :class:`Session` says; made by its ``receive_response`` and ``receive_run``.

    Args:
        take: gives the next message, or raises StopAsyncIteration.
        is_last: says whether there is none after this one.
    """

    def __init__(
        self, take: Callable[[], Awaitable[Message | InvalidLine]], is_last: Callable[[Message | InvalidLine], bool]
    ) -> None:
        self._take = take
        self._is_last = is_last
        self._ended = False

    def __repr__(self) -> str:
        return f"<SessionMessages {'ended' if self._ended else 'open'}>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message | InvalidLine:
        if self._ended:
            raise StopAsyncIteration
        try:
            message = await self._take()
        except StopAsyncIteration:
            self._ended = True
            raise
        self._ended = self._is_last(message)
        return message
