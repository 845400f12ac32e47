"""Many streams in one process. Each has its own decoder, and they get chunks in turn."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import claude_wire
import peers
import workloads
from conftest import Contest

#: Bytes of a chunk, as after a read of a pipe whose reader was away for a moment.
CHUNK = 4_096
#: Chunks per round, of all streams together.
CHUNKS = 3_000

Feed = Callable[[bytes], object]


def turns(streams: int) -> list[list[bytes]]:
    """Return a list of turns. A turn has the next chunk of each stream; each stream begins at a different line."""
    lines = workloads.lines(workloads.deltas())
    count = CHUNKS // streams
    found = []
    for stream in range(streams):
        data = b"".join(lines[(stream * 7 + at) % len(lines)] for at in range(count * CHUNK // 250))
        found.append([data[at : at + CHUNK] for at in range(0, count * CHUNK, CHUNK)])
    return [list(turn) for turn in zip(*found, strict=True)]


@pytest.mark.parametrize("streams", [100, 1_000])
def test_streams(contest: Contest, streams: int) -> None:
    """Feed chunks of 4 KiB to the streams in turn."""
    in_turn = turns(streams)
    alone = [chunk for turn in turns(1) for chunk in turn]
    assert sum(map(len, alone)) == sum(len(chunk) for turn in in_turn for chunk in turn)

    def by(make: Callable[[], Feed]) -> Callable[[], None]:
        def job() -> None:
            feeds = [make() for _ in range(streams)]
            for turn in in_turn:
                for feed, chunk in zip(feeds, turn, strict=True):
                    feed(chunk)

        return job

    def one_stream() -> None:
        feed = claude_wire.Decoder().feed
        for chunk in alone:
            feed(chunk)

    contest(
        f"{streams:,} streams, chunks of 4 KiB in turn",
        b"".join(alone).count(b"\n"),
        by(lambda: claude_wire.Decoder().feed),
        at_most={"one stream": (one_stream, None)},
        faster_than={"claude-agent-sdk": (by(peers.agent_sdk_feed) if peers.agent_sdk_feed else None, None)},
    )
