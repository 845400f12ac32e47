"""Decoding chunks: what a line costs, compared with msgspec alone and with other packages.

Each message is dropped immediately, as in an application that handles a stream, except in rows that say "kept".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import claude_wire
import msgspec_by_hand
import peers
import workloads
from conftest import Contest
from floor import floor

#: msgspec's decoder for classes that an application would write.
by_hand = msgspec_by_hand.decoder()


def feeding(chunks: list[bytes], make: Callable[[], Any] = claude_wire.Decoder) -> Callable[[], None]:
    def job() -> None:
        feed = make().feed
        for chunk in chunks:
            feed(chunk)

    return job


def aligned(decoder: msgspec.json.Decoder[Any], data: bytes, passes: int = 1) -> Callable[[], None]:
    """Return a job that calls msgspec's ``decode_lines`` on blocks of whole lines."""
    blocks = workloads.blocks(data) * passes

    def job() -> None:
        for block in blocks:
            decoder.decode_lines(block)

    return job


def test_typed(contest: Contest) -> None:
    """The main job: ``feed`` typed deltas in chunks of 64 KiB. Compare it with the part that msgspec does alone."""
    data = workloads.deltas()
    chunks = workloads.chunks(data) * workloads.PASSES
    contest(
        "feed, typed",
        workloads.LINES,
        feeding(chunks),
        at_most={
            "msgspec decode_lines of aligned blocks, our own decoder": (aligned(floor, data, workloads.PASSES), 0.7),
            "msgspec decode_lines of aligned blocks, the exact class": (
                aligned(msgspec.json.Decoder(claude_wire.StreamEvent), data, workloads.PASSES),
                0.55,
            ),
            "msgspec with rfind and decode_lines, our own decoder, unchecked": (
                peers.of(peers.block_lists(floor), chunks),
                None,
            ),
        },
    )


def test_typed_and_others(contest: Contest) -> None:
    """The main job, compared with other packages."""
    chunks = workloads.chunks(workloads.deltas()) * workloads.PASSES
    contest(
        "feed, typed",
        workloads.LINES,
        feeding(chunks),
        faster_than={
            **peers.entered(
                chunks,
                {
                    **peers.TYPED,
                    "msgspec by hand at its best, line by line": peers.line_by_line(by_hand.decode),
                    "msgspec by hand at its best, by blocks": peers.block_lists(by_hand),
                    **peers.DICTS,
                },
                {"claude-agent-sdk": 16, "pydantic": 8, "json": 7, "fastsimdjson": 2.8},
            ),
        },
        rate=(len(workloads.deltas()) * workloads.PASSES, None),
        charted=True,
    )


def test_mixed_sessions(contest: Contest) -> None:
    """``feed`` whole recorded sessions, which have system messages, results and long lines besides deltas."""
    data = workloads.mixed()
    chunks = workloads.chunks(data)
    contest(
        "feed, typed, mixed sessions",
        workloads.count(data),
        feeding(chunks),
        faster_than=peers.entered(
            chunks,
            {
                **peers.TYPED,
                "msgspec by hand at its best, line by line": peers.line_by_line(by_hand.decode),
                **peers.DICTS,
            },
            {"claude-agent-sdk": 6, "msgspec": 1.6, "orjson": 1.75, "fastsimdjson": 1.35},
        )
        | {"msgspec by hand at its best, by blocks": (peers.of(peers.block_lists(by_hand), chunks), 1.6)},
        charted=True,
    )


@pytest.mark.parametrize(
    ("job", "data", "passes", "claim"),
    [
        ("feed, dicts", workloads.deltas, workloads.PASSES, 0.93),
        ("feed, dicts, mixed sessions", workloads.mixed, 1, 0.85),
    ],
)
def test_dicts(contest: Contest, job: str, data: Callable[[], bytes], passes: int, claim: float) -> None:
    """``Decoder(dict)``, which decodes to dicts."""
    chunks = workloads.chunks(data()) * passes
    dicts = msgspec.json.Decoder(dict[str, Any])
    contest(
        job,
        workloads.count(data()) * passes,
        feeding(chunks, lambda: claude_wire.Decoder(dict)),
        faster_than={
            "msgspec decode_lines of aligned blocks": (aligned(dicts, data(), passes), 0.95),
            **peers.entered(chunks, peers.DICTS, {"fastsimdjson": claim}),
        },
        charted=True,
    )


def test_dicts_by_orjson(contest: Contest) -> None:
    """``Decoder(dict, loads=orjson.loads)``, compared with orjson in a loop over ``splitlines``."""
    if peers.orjson is None:
        pytest.skip("orjson is not installed")
    loads = peers.orjson.loads
    chunks = workloads.chunks(workloads.deltas()) * workloads.PASSES
    contest(
        "feed, dicts, loads=orjson.loads",
        workloads.LINES,
        feeding(chunks, lambda: claude_wire.Decoder(dict, loads=loads)),
        faster_than={"orjson.loads of each line": (peers.of(peers.by_orjson, chunks), 0.9)},
    )


def test_kept(contest: Contest) -> None:
    """Typed, with every message kept in a list. Objects that the garbage collector tracks then cost more."""
    chunks = workloads.chunks(workloads.deltas()) * workloads.PASSES

    def ours() -> list[Any]:
        kept: list[Any] = []
        feed = claude_wire.Decoder().feed
        for chunk in chunks:
            kept += feed(chunk)
        return kept

    def keeping(peer: peers.Peer | None) -> Callable[[], list[Any]] | None:
        if peer is None:
            return None

        def job() -> list[Any]:
            kept: list[Any] = []
            peer(chunks, kept.append)
            return kept

        return job

    others = {
        **peers.TYPED,
        "msgspec by hand at its best, line by line": peers.line_by_line(by_hand.decode),
        "json.loads (dicts)": peers.by_json,
        "orjson.loads (dicts)": peers.by_orjson,
        "fastsimdjson.loads_many (dicts)": peers.by_fastsimdjson,
    }
    contest(
        "feed, typed, all kept in a list",
        workloads.LINES,
        ours,
        faster_than={label: (keeping(peer), None) for label, peer in others.items()},
        charted=True,
        rounds=9,
    )
