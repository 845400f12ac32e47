"""One line at a time, as an interactive host decodes each event when it arrives."""

from __future__ import annotations

import json
from collections.abc import Callable

import claude_wire
import msgspec_by_hand
import peers
import workloads
from conftest import Contest, Job
from floor import floor


def each_of(
    lines: list[bytes], function: Callable[[bytes], object] | None, passes: int = workloads.PASSES
) -> Job | None:
    """Return a job that calls a function with each line. It repeats a few lines, which all fit in the cache."""
    if function is None:
        return None

    def job() -> None:
        for _ in range(passes):
            for line in lines:
                function(line)

    return job


def by_agent_sdk(lines: list[bytes]) -> Job | None:
    """Return a job that has claude-agent-sdk's framing, json and message parser read one line after another."""
    if peers.by_agent_sdk is None:
        return None
    return peers.of(peers.by_agent_sdk, lines * workloads.PASSES)


def test_decode(contest: Contest) -> None:
    """``decode(line)`` of deltas."""
    lines = [line[:-1] for line in workloads.lines(workloads.deltas())]
    ours = each_of(lines, claude_wire.decode)
    assert ours is not None
    contest(
        "decode(line)",
        workloads.LINES,
        ours,
        at_most={"msgspec decode, our own decoder": (each_of(lines, floor.decode), 1.2)},
        faster_than={
            "msgspec by hand at its best": (each_of(lines, msgspec_by_hand.decoder().decode), 1.61),
            "takopi": (each_of(lines, peers.by_takopi), 1.7),
            "claude-agent-sdk": (by_agent_sdk(workloads.lines(workloads.deltas())), 7),
            "pydantic, discriminated unions": (each_of(lines, peers.validate), None),
            "json.loads (dicts)": (each_of(lines, json.loads), None),
            "orjson.loads (dicts)": (each_of(lines, peers.orjson and peers.orjson.loads), None),
            "jiter.from_json (dicts)": (each_of(lines, peers.jiter and peers.jiter.from_json), None),
            "fastsimdjson.loads (dicts)": (each_of(lines, peers.fastsimdjson and peers.fastsimdjson.loads), None),
        },
        charted=True,
    )


def test_decode_mixed_sessions(contest: Contest) -> None:
    """``decode(line)`` of whole recorded sessions, also compared with the parser of an existing program, takopi."""
    lines = workloads.mixed().splitlines()
    ours = each_of(lines, claude_wire.decode, passes=1)
    assert ours is not None
    contest(
        "decode(line), mixed sessions",
        len(lines),
        ours,
        faster_than={
            "msgspec by hand at its best": (each_of(lines, msgspec_by_hand.decoder().decode, passes=1), 1.6),
            "takopi": (each_of(lines, peers.by_takopi, passes=1), 1.0),
            "claude-agent-sdk": (peers.of(peers.by_agent_sdk, [line + b"\n" for line in lines]), 3),
        },
    )


def test_feed(contest: Contest) -> None:
    """``Decoder.feed(line)`` of deltas."""
    lines = workloads.lines(workloads.deltas())

    def ours() -> None:
        feed = claude_wire.Decoder().feed
        for _ in range(workloads.PASSES):
            for line in lines:
                feed(line)

    contest(
        "feed(one line)",
        workloads.LINES,
        ours,
        at_most={"msgspec by hand at its best": (each_of(lines, msgspec_by_hand.decoder().decode), 0.75)},
        faster_than={"claude-agent-sdk": (by_agent_sdk(lines), 5)},
        charted=True,
    )
