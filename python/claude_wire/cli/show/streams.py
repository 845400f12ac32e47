"""What deltas have brought of a message, and how much of that was shown."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from claude_wire.accumulate.accumulator import PartialMessage

__all__ = ["Stream", "Streamed"]


@dataclass(eq=False)
class Streamed:
    """A block that deltas bring, and how much of it was shown."""

    index: int
    #: ``text`` or ``thinking``.
    type: str
    #: In characters.
    shown: int = 0
    #: Whether all that came was shown, so that what comes next can be shown as it is.
    whole: bool = True


@dataclass(eq=False)
class Stream:
    """A message that deltas bring."""

    partial: PartialMessage
    #: Blocks that no assistant line has repeated yet.
    blocks: deque[Streamed] = field(default_factory=lambda: deque[Streamed]())
