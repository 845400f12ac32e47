"""Many streams in one process, each with a separate decoder, which get chunks in turn.

The decoders live for all rounds, as a session's decoder does. Creating and freeing a decoder takes 3.5 µs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import claude_wire
import peers
import workloads
from conftest import Contest

#: The size of a chunk in bytes, as after a read from a pipe whose reader was busy for a moment.
CHUNK = 4_096
#: Chunks per round, for all streams together.
CHUNKS = 8_000

Feed = Callable[[bytes], object]


def turns(streams: int) -> list[list[bytes]]:
    """Return a list of turns. A turn has the next chunk of each stream; each stream begins at a different line.

    The last chunk of a stream ends with a line, so the same decoder can read the turns again.
    """
    lines = workloads.lines(workloads.deltas())
    count = CHUNKS // streams
    found = []
    for stream in range(streams):
        data = b"".join(lines[(stream * 7 + at) % len(lines)] for at in range(count * CHUNK // 250))
        data = data[: data.rindex(b"\n", 0, count * CHUNK) + 1]
        found.append([data[at : at + CHUNK] for at in range(0, len(data), CHUNK)])
    # Copy the chunks. They are then in memory in the order of feeding, like chunks that were just read.
    return [[bytes(bytearray(chunk)) for chunk in turn] for turn in zip(*found, strict=True)]


@pytest.mark.parametrize("streams", [100, 1_000])
def test_streams(contest: Contest, streams: int) -> None:
    """Feed chunks of 4 KiB to the streams in turn."""
    in_turn = turns(streams)

    def by(make: Callable[[], Feed]) -> Callable[[], None]:
        feeds = [make() for _ in range(streams)]

        def job() -> None:
            for turn in in_turn:
                for feed, chunk in zip(feeds, turn, strict=True):
                    feed(chunk)

        return job

    feed = claude_wire.Decoder().feed
    # The same chunks, one stream after another.
    alone = [bytes(bytearray(chunk)) for stream in zip(*in_turn, strict=True) for chunk in stream]

    def one_stream() -> None:
        for chunk in alone:
            feed(chunk)

    contest(
        f"{streams:,} streams, chunks of 4 KiB in turn",
        b"".join(alone).count(b"\n"),
        by(lambda: claude_wire.Decoder().feed),
        at_most={"one stream": (one_stream, 1.15)},
        faster_than={"claude-agent-sdk": (by(peers.agent_sdk_feed) if peers.agent_sdk_feed else None, None)},
    )
