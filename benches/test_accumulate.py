"""Accumulating: what a delta costs when whole messages are built from deltas, including the final text."""

from __future__ import annotations

import pytest

from claude_wire import StreamEvent, decode
from claude_wire.accumulate.accumulator import Accumulator
from claude_wire.messages import ContentBlockDeltaEvent, TextDelta
from conftest import Contest

LINE = (
    b'{"type":"stream_event","event":%s,"session_id":"5f0c2f4e-8a0e-4f6b-9d57-0d7f3f1f2a11",'
    b'"parent_tool_use_id":null,"api_message_id":"msg_01"}'
)
START = b'{"type":"message_start","message":{"id":"msg_01","role":"assistant","model":"x","content":[]}}'
TEXT = b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
DELTA = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word%d "}}'


def stream(deltas: int) -> list[StreamEvent]:
    lines = [START, TEXT, *(DELTA % number for number in range(deltas))]
    events = [decode(LINE % line) for line in lines]
    return [event for event in events if isinstance(event, StreamEvent)]


@pytest.mark.parametrize("deltas", [200, 2_000, 20_000])
def test_text(contest: Contest, deltas: int) -> None:
    """The peer is the simplest code: a dict keyed by (conversation, block), to which ``+=`` adds each delta."""
    events = stream(deltas)
    passes = 20_000 // deltas

    def ours() -> None:
        for _ in range(passes):
            accumulator = Accumulator()
            for event in events:
                accumulator.add(event)
            assert accumulator.current is not None
            assert accumulator.current.text

    def by_dict() -> None:
        for _ in range(passes):
            state: dict[tuple[str | None, str | None], dict[int, str]] = {}
            for message in events:
                event = message.event
                if isinstance(event, ContentBlockDeltaEvent) and isinstance(event.delta, TextDelta):
                    blocks = state.setdefault((message.session_id, message.parent_tool_use_id), {})
                    blocks[event.index] = blocks.get(event.index, "") + event.delta.text

    contest(
        f"accumulate, {deltas:,} deltas",
        passes * len(events),
        ours,
        faster_than={"dict and += (no snapshots)": (by_dict, None)},
    )


def test_snapshots(contest: Contest) -> None:
    """Take a snapshot after each delta and do not read it. The cost must not depend on the message's size."""
    events = stream(20_000)

    def snapshots() -> None:
        accumulator = Accumulator()
        for event in events:
            partial = accumulator.add(event)
            assert partial is not None
            partial.snapshot()

    def none() -> None:
        accumulator = Accumulator()
        for event in events:
            accumulator.add(event)

    contest("accumulate, a snapshot each", len(events), snapshots, at_most={"no snapshots": (none, None)})
