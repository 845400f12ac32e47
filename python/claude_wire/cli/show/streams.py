"""What deltas have brought of a message, and how much of that was shown."""

from __future__ import annotations

from collections import deque

from claude_wire.accumulate.accumulator import PartialMessage

__all__ = ["Stream", "Streamed"]


class Streamed:
    """A block that deltas bring, and how much of it was shown."""

    __slots__ = ("index", "kind", "shown", "whole")

    def __init__(self, index: int, kind: str) -> None:
        self.index: int = index
        self.kind: str = kind
        #: In characters.
        self.shown: int = 0
        #: Whether all that came was shown, so that what comes next can be shown as it is.
        self.whole: bool = True


class Stream:
    """A message that deltas bring."""

    __slots__ = ("blocks", "partial")

    def __init__(self, partial: PartialMessage) -> None:
        self.partial: PartialMessage = partial
        #: Blocks that no assistant line has repeated yet.
        self.blocks: deque[Streamed] = deque()
