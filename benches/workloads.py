"""Inputs: recorded lines of the real CLI, and those of the tests' generator."""

from __future__ import annotations

import itertools
import json
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import recordings
import traffic

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
IN_CJK = (b'"text":"word', '"text":"日本語の文字列'.encode())
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


@cache
def unknown_blocks(count: int) -> bytes:
    """Recorded ``assistant`` lines, with each content block so often, and of a type that no table has."""
    recorded = (line for line in lines(mixed()) if line.startswith(b'{"type":"assistant"'))
    found: list[bytes] = []
    for line in itertools.islice(itertools.cycle(recorded), DIFFERENT // 2):
        value = json.loads(line)
        blocks = value["message"]["content"] * count
        value["message"]["content"] = [{**block, "type": f"future_{block['type']}"} for block in blocks]
        found.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return b"".join(found)


@cache
def unknown_subtypes() -> bytes:
    """Recorded ``system`` lines, of subtypes that no table has."""
    tag = b'{"type":"system","subtype":"'
    recorded = (line for line in lines(mixed()) if line.startswith(tag))
    found = itertools.islice(itertools.cycle(recorded), DIFFERENT // 2)
    return b"".join(line.replace(tag, tag + b"future_") for line in found)


@cache
def session_of_deltas() -> bytes:
    """A whole recorded session, 2,009 lines: two thousand deltas, and an ``assistant`` and a ``result`` of 20 KB."""
    return recordings.load("02_long_partial").stdout


@cache
def pairs() -> bytes:
    """Two deltas, then another recorded line, over and over."""
    others = itertools.cycle(
        line for line in lines(mixed()) if b"content_block_delta" not in line and len(line) < 1_500
    )
    two = zip(*[iter(lines(deltas()))] * 2, strict=True)
    return b"".join(one + other + next(others) for one, other in itertools.islice(two, DIFFERENT // 3))


@cache
def deltas_and_end() -> bytes:
    """The lines of :func:`deltas`, then an ``assistant`` and a ``result`` of a recorded session that says little."""
    recorded = lines(recordings.load("01_simple_bidi_init").stdout)
    return deltas() + b"".join(line for line in recorded if b'"type":"assistant"' in line or b'"type":"result"' in line)


@cache
def interleaved(at_random: bool = False) -> bytes:
    """The lines of :func:`deltas` as those of two sessions: each line is the other's, or chance says whose it is."""
    found = lines(deltas())
    start = found[0].index(b'"session_id":"') + len(b'"session_id":"')
    session = found[0][start : start + 36]
    rng = random.Random(7)
    for index, line in enumerate(found):
        if rng.random() < 0.5 if at_random else index % 2:
            found[index] = line.replace(session, session[::-1])
    return b"".join(found)


@cache
def huge() -> bytes:
    """Two lines of 3.5 MB: a recorded ``assistant``, and the ``result`` with ``type`` behind its text."""
    return b"".join(line for line in recordings.load("11_huge").stdout.splitlines(keepends=True) if len(line) > 10**6)


#: What the generator makes for the main job: text, thinking and tool input of three sessions, whole messages of it.
VARIATIONS: dict[str, dict[str, Any]] = {
    "ASCII": {},
    "CJK": {"text": "cjk"},
    "emoji": {"text": "emoji"},
    "keys in another order in each line": {"order": "shuffled"},
    "spaces and escapes as Python writes them": {"text": "mixed", "style": "python"},
    "lines of 150 bytes to 1 MB": {"size": "mixed"},
}


@cache
def made(variation: str) -> bytes:
    """Traffic of the generator, 1,600 lines of it, without halves of characters and without lines that have no
    ``uuid``: most peers refuse the former, and claude-agent-sdk the latter."""
    found = traffic.traffic(7, lines=DIFFERENT, sessions=3, halves=False, **VARIATIONS[variation])
    return b"".join(line for line in lines(found) if b'"uuid"' in line)


def lines(data: bytes) -> list[bytes]:
    """Each with its line feed."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


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


@cache
def initialized(request_id: str) -> bytes:
    """The recorded answer of the CLI to an ``initialize`` with this id: 17 KB."""
    recorded = recordings.load("14_bad_initialize_only").stdout.split(b"\n")
    line = next(line for line in recorded if b'"commands"' in line and b'"control_response"' in line)
    answer = json.loads(line)
    answer["response"]["request_id"] = request_id
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"
