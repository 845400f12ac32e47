"""Compare the speed of several decoders, with the same bytes and in this process.

The speed of a computer changes by 10 to 20 percent within seconds. So the decoders take turns in every round, and the
ratios of their times are more exact than the times themselves.
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
    """A way to decode a stream."""

    name: str
    #: Decodes all of the bytes, and returns the number of messages without keeping them.
    decode: Callable[[bytes], int]


class Lap(NamedTuple):
    """The result of one way to decode."""

    name: str
    #: The shortest time of all rounds.
    seconds: float
    messages: int
    rounds: int


def ways() -> list[Way]:
    """Return the ways to decode that can be compared: ours, :mod:`json`, and orjson if it is installed."""
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
    """Decode ``data`` in each way in turn, for ``rounds`` rounds or until ``seconds`` have passed.

    There is at least one round.
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
    # A BytesIO is the fastest way to split lines in Python, so it does not slow the other decoders down.
    count = 0
    for line in io.BytesIO(data):
        loads(line)
        count += 1
    return count


#: Decodes only results, and skips all other lines, as in a program that waits for results.
RESULTS_ONLY = Way("claude_wire, results only", partial(_in_chunks, partial(Decoder, only={"result"})))
