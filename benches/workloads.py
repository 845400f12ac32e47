"""The benches' inputs: recorded lines from the real CLI, and lines from the tests' generator."""

from __future__ import annotations

import itertools
import json
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import recordings
import traffic

CHUNK = 64 * 1024
#: How many different deltas an input has: half a megabyte. Chunks are then in the cache, as after a read.
DIFFERENT = 1_600
#: How many times a round goes through the input.
PASSES = 25
#: How many delta lines a round has.
LINES = DIFFERENT * PASSES


#: Pairs of bytes: replacing the first by the second gives a line an unknown type, or an unknown delta.
UNKNOWN_TYPE = (b'"type":"stream_event"', b'"type":"dream_event"')
UNKNOWN_DELTA = (b'"type":"text_delta"', b'"type":"test_delta"')
IN_CJK = (b'"text":"word', '"text":"日本語の文字列'.encode())
NOT_JSON = (b'"index":', b"index:")
#: A key that no class has, first in the line or in its delta.
UNKNOWN_KEY = (b'{"type":"stream_event"', b'{"of_tomorrow":1,"type":"stream_event"')
NESTED_UNKNOWN_KEY = (b'"delta":{', b'"delta":{"of_tomorrow":1,')


@cache
def deltas(odd: tuple[bytes, bytes] = (b"", b""), every: int = DIFFERENT) -> bytes:
    """Return text deltas of about 280 bytes. Each ``every``-th line has the second of ``odd`` in place of the first."""
    recorded = [line for line in recordings.load("02_long_partial").stdout.split(b"\n") if b'"text_delta"' in line]
    lines = list(itertools.islice(itertools.cycle(recorded), DIFFERENT))
    for index in range(0, DIFFERENT, every):
        lines[index] = lines[index].replace(*odd)
    return b"".join(line + b"\n" for line in lines)


@cache
def mixed() -> bytes:
    """Return whole recorded sessions, 4 to 6 MB.

    Recordings with lines of megabytes, or with lines that a peer refuses, are omitted.
    """
    names = [
        name
        for name in recordings.names()
        if not name.startswith(("02_", "10_", "11_", "14_", "16_anthropic", "16_unknown", "17_", "18_long", "19_"))
    ]
    session = b"".join(recordings.load(name).stdout for name in names)
    return session * (5_000_000 // len(session) + 1)


@cache
def unknown_blocks(count: int) -> bytes:
    """Return recorded ``assistant`` lines whose content blocks are repeated and have an unknown type."""
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
    """Return recorded ``system`` lines with unknown subtypes."""
    tag = b'{"type":"system","subtype":"'
    recorded = (line for line in lines(mixed()) if line.startswith(tag))
    found = itertools.islice(itertools.cycle(recorded), DIFFERENT // 2)
    return b"".join(line.replace(tag, tag + b"future_") for line in found)


@cache
def session_of_deltas() -> bytes:
    """Return a recorded session of 2,009 lines: 2,000 deltas, an ``assistant`` of 20 KB and a ``result`` of 20 KB."""
    return recordings.load("02_long_partial").stdout


@cache
def pairs() -> bytes:
    """Return groups of three lines: two deltas, then another recorded line."""
    others = itertools.cycle(
        line for line in lines(mixed()) if b"content_block_delta" not in line and len(line) < 1_500
    )
    two = zip(*[iter(lines(deltas()))] * 2, strict=True)
    return b"".join(one + other + next(others) for one, other in itertools.islice(two, DIFFERENT // 3))


@cache
def deltas_and_end() -> bytes:
    """Return the lines of :func:`deltas`, then a short ``assistant`` and a short ``result``."""
    recorded = lines(recordings.load("01_simple_bidi_init").stdout)
    return deltas() + b"".join(line for line in recorded if b'"type":"assistant"' in line or b'"type":"result"' in line)


@cache
def interleaved(at_random: bool = False) -> bytes:
    """Return the lines of :func:`deltas`, divided between two sessions: alternately, or at random."""
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
    """Return two lines of 3.5 MB: a recorded ``assistant``, and the ``result``, in which ``type`` follows the text."""
    return b"".join(line for line in recordings.load("11_huge").stdout.splitlines(keepends=True) if len(line) > 10**6)


#: Name of a variation -> options of the generator, which makes deltas of three sessions and the whole messages.
VARIATIONS: dict[str, dict[str, Any]] = {
    "ASCII": {},
    "CJK": {"text": "cjk"},
    "emoji": {"text": "emoji"},
    "keys in another order in each line": {"order": "shuffled"},
    "spaces and escapes as Python writes them": {"text": "mixed", "style": "python"},
    "lines of 150 bytes to 1 MB": {"size": "mixed"},
}


@cache
def made(variation: str, *, sessions: int = 3, deltas_only: bool = False) -> bytes:
    """Return 1,600 lines of generated traffic.

    They have no halves of surrogate pairs, which most peers refuse, and all have a ``uuid``, without which
    claude-agent-sdk refuses a line.
    """
    options = VARIATIONS[variation] | {"sessions": sessions, "deltas_only": deltas_only}
    found = traffic.traffic(7, lines=DIFFERENT, halves=False, **options)
    return b"".join(line for line in lines(found) if b'"uuid"' in line)


@cache
def answers(text: str, sessions: int) -> bytes:
    """Return 8,000 text deltas of answers of 400 deltas. If there are several sessions, their lines alternate."""
    rng = random.Random(5)

    def uuid() -> str:
        return str(UUID(int=rng.getrandbits(128), version=4))

    ids = [uuid() for _ in range(sessions)]
    found: list[bytes] = []
    for index in range(8_000):
        delta = {"type": "text_delta", "text": " ".join(rng.choices(traffic.WORDS[text], k=3))}
        session = index % sessions
        line = {
            "type": "stream_event",
            "event": {"type": "content_block_delta", "index": 0, "delta": delta},
            "session_id": ids[session],
            "parent_tool_use_id": None,
            "uuid": uuid(),
            "api_message_id": f"msg_{session}{index // (400 * sessions):023}",
        }
        found.append(traffic.dumps(line, "compact") + b"\n")
    return b"".join(found)


def lines(data: bytes) -> list[bytes]:
    """Split the data into lines, each with its line feed."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def count(data: bytes) -> int:
    """Return how many lines the data has."""
    return data.count(b"\n")


def chunks(data: bytes) -> list[bytes]:
    """Split the data into chunks of 64 KiB, regardless of lines, as a pipe is read."""
    return [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]


def blocks(data: bytes) -> list[bytes]:
    """Split the data into blocks of whole lines, each of at most 64 KiB."""
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
    """Return the recorded answer of the CLI (17 KB) to an ``initialize`` request with this id."""
    recorded = recordings.load("14_bad_initialize_only").stdout.split(b"\n")
    line = next(line for line in recorded if b'"commands"' in line and b'"control_response"' in line)
    answer = json.loads(line)
    answer["response"]["request_id"] = request_id
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"
