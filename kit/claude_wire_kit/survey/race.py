"""How long several ways of decoding take on the same bytes, measured in turns in this process.

Knows bytes and clocks; not where the bytes come from, nor how the times are shown. Machines drift by 10 to 20 percent
within seconds, so the ways take turns in every round, and only their ratios mean much.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import io
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from claude_wire import Decoder

CHUNK_BYTES = 64 * 1024


class Way(NamedTuple):
    """A way to decode: takes all the bytes, drops each message at once, returns how many there were."""

    name: str
    decode: Callable[[bytes], int]


class Lap(NamedTuple):
    """The best time of a way over all rounds, in seconds."""

    name: str
    seconds: float
    messages: int
    rounds: int


def ways() -> list[Way]:
    """The ways that this installation has: our decoders, :mod:`json`, and orjson if it is there."""
    found = [
        Way("claude_wire, typed", partial(_in_chunks, Decoder)),
        Way("claude_wire, dict", partial(_in_chunks, partial(Decoder, dict))),
        Way("json.loads per line", partial(_line_by_line, json.loads)),
    ]
    if importlib.util.find_spec("orjson") is not None:
        orjson = importlib.import_module("orjson")
        found.append(Way("orjson.loads per line", partial(_line_by_line, orjson.loads)))
    return found


def race(ways: list[Way], data: bytes, *, rounds: int, seconds: float) -> list[Lap]:
    """Let all ways decode ``data`` in turns, for ``rounds`` rounds, or until ``seconds`` have passed.

    There is one round at least.
    """
    best: dict[str, float] = {}
    messages: dict[str, int] = {}
    began = time.perf_counter()
    done = 0
    while done < rounds and (done == 0 or time.perf_counter() - began < seconds):
        for way in ways:
            gc.collect()
            start = time.perf_counter()
            messages[way.name] = way.decode(data)
            taken = time.perf_counter() - start
            best[way.name] = min(taken, best.get(way.name, taken))
        done += 1
    return [Lap(way.name, best[way.name], messages[way.name], done) for way in ways]


def _in_chunks(new_decoder: Callable[[], Decoder[Any]], data: bytes) -> int:
    count, decoder = 0, new_decoder()
    for at in range(0, len(data), CHUNK_BYTES):
        count += len(decoder.feed(data[at : at + CHUNK_BYTES]))
    return count + len(decoder.close())


def _line_by_line(loads: Callable[[bytes], Any], data: bytes) -> int:
    # BytesIO finds lines as fast as anything in Python; a pipe's readline would be slower.
    count = 0
    for line in io.BytesIO(data):
        loads(line)
        count += 1
    return count


#: A program that waits for results has no use for the other lines, and passes over them.
RESULTS_ONLY = Way("claude_wire, results only", partial(_in_chunks, partial(Decoder, only={"result"})))
