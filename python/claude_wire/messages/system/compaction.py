"""Compaction: a summary takes the place of older messages."""

from __future__ import annotations

from typing import Literal

from claude_wire.messages.base import Number, Wire, constant
from claude_wire.messages.system.base import SystemMessage


class PreservedSegment(Wire, frozen=True):
    """The run of messages kept through a compaction, by the uuids of its two ends.

    ``anchor_uuid`` is the message that the run now follows: the summary.
    """

    head_uuid: str
    anchor_uuid: str
    tail_uuid: str


class PreservedMessages(Wire, frozen=True):
    """The uuids of the messages kept through a compaction.

    ``anchor_uuid`` is the message that they now follow: the summary.
    """

    anchor_uuid: str
    uuids: list[str]
    all_uuids: list[str] | None = None


class CompactMetadata(Wire, kw_only=True, frozen=True):
    """How a compaction came about and what it did: token counts before and after, and milliseconds.

    ``trigger`` is ``manual`` for ``/compact`` and ``auto`` otherwise. The two ``preserved_`` fields are missing when
    no message was kept.
    """

    # one of auto, manual
    trigger: str
    pre_tokens: Number
    post_tokens: Number | None = None
    duration_ms: Number | None = None
    preserved_segment: PreservedSegment | None = None
    preserved_messages: PreservedMessages | None = None
    cumulative_dropped_tokens: Number | None = None


class CompactBoundaryMessage(SystemMessage, kw_only=True, frozen=True):
    """From here on the model sees a summary in the place of what was said before.

    It follows a :class:`StatusMessage` that ends the compacting; the summary comes next, as a synthetic user message.
    """

    subtype: Literal["compact_boundary"] = constant("compact_boundary")
    compact_metadata: CompactMetadata
    logical_parent_uuid: str | None = None
