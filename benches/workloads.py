"""Inputs, made of recorded lines of the real CLI."""

from __future__ import annotations

import itertools
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import recordings

CHUNK = 64 * 1024
#: Different lines of deltas: half a megabyte, so that chunks are in the cache when they are fed, as after a read.
DIFFERENT = 1_600
#: How often a round goes through them.
PASSES = 25
#: Lines of deltas in a round.
LINES = DIFFERENT * PASSES


#: What is replaced by what, to make a line odd.
UNKNOWN_TYPE = (b'"type":"stream_event"', b'"type":"dream_event"')
UNKNOWN_DELTA = (b'"type":"text_delta"', b'"type":"test_delta"')
NOT_JSON = (b'"index":', b"index:")


@cache
def deltas(odd: tuple[bytes, bytes] = (b"", b""), every: int = DIFFERENT) -> bytes:
    """Text deltas of 280 bytes or so; in each ``every``-th the first of ``odd`` is replaced by the second."""
    recorded = [line for line in recordings.load("02_long_partial").stdout.split(b"\n") if b'"text_delta"' in line]
    lines = list(itertools.islice(itertools.cycle(recorded), DIFFERENT))
    for index in range(0, DIFFERENT, every):
        lines[index] = lines[index].replace(*odd)
    return b"".join(line + b"\n" for line in lines)


@cache
def mixed() -> bytes:
    """Whole sessions, everything that the CLI says in them, 4 to 6 MB; without the recordings of megabyte lines, and
    those with lines that some peer refuses."""
    names = [
        name
        for name in recordings.names()
        if not name.startswith(("02_", "10_", "11_", "14_", "16_anthropic", "16_unknown", "17_", "18_long", "19_"))
    ]
    session = b"".join(recordings.load(name).stdout for name in names)
    return session * (5_000_000 // len(session) + 1)


def count(data: bytes) -> int:
    """Number of lines."""
    return data.count(b"\n")


def chunks(data: bytes) -> list[bytes]:
    """64 KiB each, cut wherever that falls, as a pipe is read."""
    return [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]


def blocks(data: bytes) -> list[bytes]:
    """Whole lines, at most 64 KiB of them each."""
    found: list[bytes] = []
    at = 0
    while at < len(data):
        end = data.rfind(b"\n", at, at + CHUNK) + 1
        if end <= at:
            end = data.index(b"\n", at) + 1
        found.append(data[at:end])
        at = end
    return found
