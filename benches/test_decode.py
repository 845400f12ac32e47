"""Decoding: what a line costs, against msgspec's own work as the floor and against what others spend on the same job.

Messages are dropped as soon as they are made, as an application that handles a stream does, except where a row says
"kept".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import orjson
import pytest

import claude_wire
import peers
import workloads
from claude_wire._decoding import SUBTYPED, union_decoder
from conftest import Contest

#: The decoder that stands below ours.
floor = union_decoder(SUBTYPED)


def feeding(chunks: list[bytes], make: Callable[[], Any] = claude_wire.Decoder) -> Callable[[], None]:
    def job() -> None:
        feed = make().feed
        for chunk in chunks:
            feed(chunk)

    return job


def of(peer: Callable[[Any, Any], object], chunks: list[bytes]) -> Callable[[], None]:
    return lambda: peer(chunks, peers.nothing)


def block_by_block(blocks: list[bytes]) -> Callable[[], None]:
    def job() -> None:
        for block in blocks:
            floor.decode_lines(block)

    return job


def test_one_line(contest: Contest) -> None:
    """``decode(line)``: what an interactive host does, one event at a time."""
    line = workloads.deltas().split(b"\n")[5]

    def times(function: Callable[[bytes], object]) -> Callable[[], None]:
        def job() -> None:
            for _ in range(workloads.LINES):
                function(line)

        return job

    contest(
        "decode(line)",
        workloads.LINES,
        times(claude_wire.decode),
        at_most={"msgspec decode": (times(floor.decode), 1.3)},
        faster_than={"orjson.loads (dict)": (times(orjson.loads), None)},
    )


def test_one_line_feed(contest: Contest) -> None:
    """``feed(line)``: as above, through a Decoder."""
    line = workloads.deltas().split(b"\n")[5] + b"\n"

    def ours() -> None:
        feed = claude_wire.Decoder().feed
        for _ in range(workloads.LINES):
            feed(line)

    def theirs() -> None:
        for _ in range(workloads.LINES):
            floor.decode(line)

    contest("feed(one line)", workloads.LINES, ours, at_most={"msgspec decode": (theirs, None)})


def test_typed_chunks(contest: Contest) -> None:
    """``feed`` in chunks of 64 KiB, typed: the main job, against msgspec's own part of it."""
    data = workloads.deltas()
    chunks = workloads.chunks(data) * workloads.PASSES
    contest(
        "feed, 64 KiB chunks",
        workloads.LINES,
        feeding(chunks),
        at_most={
            "msgspec decode_lines, aligned": (block_by_block(workloads.blocks(data) * workloads.PASSES), 1.10),
            "pure-Python feed, unchecked": (of(peers.by_pure_python_feed(floor), chunks), None),
        },
    )


def test_typed_chunks_and_others(contest: Contest) -> None:
    """The same against others."""
    chunks = workloads.chunks(workloads.deltas()) * workloads.PASSES
    contest(
        "feed, 64 KiB chunks",
        workloads.LINES,
        feeding(chunks),
        faster_than={
            "msgspec decode, line by line": (of(peers.by_msgspec_lines(floor), chunks), None),
            "orjson.loads (dicts)": (of(peers.by_orjson, chunks), None),
            "json.loads (dicts)": (of(peers.by_json, chunks), 6.0),
            "pydantic, discriminated unions": (of(peers.by_pydantic, chunks), 7.0),
            "claude-agent-sdk": (of(peers.by_claude_agent_sdk, chunks), 8.0),
        },
    )


@pytest.mark.parametrize(
    ("odd", "every", "name", "bound"),
    [
        (workloads.UNKNOWN_TYPE, 200, "1 in 200 of an unknown type", 1.3),
        (workloads.UNKNOWN_TYPE, 1, "all of an unknown type", 6.0),
        (workloads.UNKNOWN_DELTA, 200, "1 in 200 an unknown delta", None),
        (workloads.UNKNOWN_DELTA, 1, "all unknown deltas", None),
        (workloads.NOT_JSON, 200, "1 in 200 not JSON", None),
    ],
)
def test_odd_lines(contest: Contest, odd: tuple[bytes, bytes], every: int, name: str, bound: float | None) -> None:
    """Lines that no table knows, or that are none: what they cost, themselves and the lines around them."""
    known = feeding(workloads.chunks(workloads.deltas()) * workloads.PASSES)
    contest(
        f"feed, {name}",
        workloads.LINES,
        feeding(workloads.chunks(workloads.deltas(odd, every)) * workloads.PASSES),
        at_most={"feed, none": (known, bound)},
    )


def test_mixed_sessions(contest: Contest) -> None:
    """Whole recorded sessions: system messages, results and long lines among the deltas."""
    data = workloads.mixed()
    chunks = workloads.chunks(data)
    contest(
        "feed, mixed sessions",
        workloads.count(data),
        feeding(chunks),
        faster_than={
            "orjson.loads (dicts)": (of(peers.by_orjson, chunks), None),
            "json.loads (dicts)": (of(peers.by_json, chunks), None),
            "pydantic, discriminated unions": (of(peers.by_pydantic, chunks), None),
            "claude-agent-sdk": (of(peers.by_claude_agent_sdk, chunks), None),
        },
    )


def test_dicts(contest: Contest) -> None:
    """``Decoder(dict)``: the plain JSON objects."""
    data = workloads.deltas()
    chunks = workloads.chunks(data) * workloads.PASSES
    blocks = workloads.blocks(data) * workloads.PASSES
    dicts = msgspec.json.Decoder(dict[str, Any])

    def theirs() -> None:
        for block in blocks:
            dicts.decode_lines(block)

    contest(
        "feed, dicts",
        workloads.LINES,
        feeding(chunks, lambda: claude_wire.Decoder(dict)),
        at_most={"msgspec decode_lines, aligned": (theirs, None)},
        faster_than={
            "orjson.loads": (of(peers.by_orjson, chunks), None),
            "json.loads": (of(peers.by_json, chunks), None),
        },
    )


def test_kept(contest: Contest) -> None:
    """Typed, every message kept in a list: the garbage collector joins in, for those who let it."""
    chunks = workloads.chunks(workloads.deltas()) * workloads.PASSES

    def ours() -> list[Any]:
        kept: list[Any] = []
        feed = claude_wire.Decoder().feed
        for chunk in chunks:
            kept += feed(chunk)
        return kept

    def keeping(peer: Callable[[Any, Any], object]) -> Callable[[], list[Any]]:
        def job() -> list[Any]:
            kept: list[Any] = []
            peer(chunks, kept.append)
            return kept

        return job

    contest(
        "feed, kept in a list",
        workloads.LINES,
        ours,
        faster_than={
            "orjson.loads (dicts)": (keeping(peers.by_orjson), None),
            "json.loads (dicts)": (keeping(peers.by_json), None),
            "pydantic, discriminated unions": (keeping(peers.by_pydantic), None),
            "claude-agent-sdk": (keeping(peers.by_claude_agent_sdk), None),
        },
    )


def test_huge_line(contest: Contest) -> None:
    """A line of 3 MB in chunks of 64 KiB."""
    text = "All work and no play makes Jack a dull boy. " * 70_000
    line = claude_wire.encode(claude_wire.AssistantMessage.of(text))
    chunks = workloads.chunks(line)
    contest(
        "feed, a 3 MB line", 1, feeding(chunks), at_most={"msgspec decode, whole": (lambda: floor.decode(line), None)}
    )
