"""Compare the fast and the slow paths of the decoder on the same streams.

The reference uses a new decoder for each line, and a JSON parser for its kind. All other paths must give the same:
whole or cut anywhere, with SIMD or without, typed or as dicts, with each option on and off.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordings
from claude_wire import Decoder, InvalidLine, InvalidLineError, Message, decode, peek, read
from claude_wire.codec import peek_lines
from claude_wire.codec.kinds import _peek_lines
from claude_wire.limits import BLOCK_BYTES
from decoded_kinds import checked_kind, is_blank, is_wanted, value_by_json
from delta_lines import CLOSING, MERGEABLE, NOT_MERGEABLE, block
from each import each
from feeding import cut, fed, said, without_vectors
from long_tests import LONG
from mutations import mutants, mutated
from traffic import traffic

BOM = b"\xef\xbb\xbf"
ONLY: list[tuple[str, ...] | None] = [
    None,
    ("result", "assistant", "system/init"),
    ("stream_event/content_block_delta/text_delta", "user", "control_response"),
]
#: In bytes. The tests of ``only`` and ``coalesce`` use longer lines.
LONGEST = 20_000


class Line(NamedTuple):
    """A line, as the reference decodes it."""

    raw: bytes
    kind: tuple[str | None, ...]
    #: Its message, typed and as a dict.
    typed: Any
    plain: Any


def slowest(stream: bytes) -> list[Line]:
    """Decode each line that is not blank with a new decoder."""
    found: list[Line] = []
    offset = len(BOM) if stream.startswith(BOM) else 0
    lines = stream[offset:].split(b"\n")
    for number, raw in enumerate(lines, 1):
        if not is_blank(raw):
            messages: list[Any] = []
            for type_ in (Message, dict):
                # Feed an empty line first: at the start of a stream, the line might look like a byte order mark.
                (message,) = fed(Decoder(type_), [b"\n", raw, b"\n" if number < len(lines) else b""])
                if isinstance(message, InvalidLine):
                    assert (message.line_number, message.offset, message.raw) == (2, 1, raw)
                    message = InvalidLine(raw, number, offset, message.reason, kind=message.kind)
                messages.append(message)
            found.append(Line(raw, checked_kind(raw), *messages))
        offset += len(raw) + 1
    return found


def ways(stream: bytes) -> Iterator[list[bytes]]:
    """Yield the stream cut into chunks in several ways."""
    yield [stream]
    yield stream.splitlines(keepends=True)
    yield cut(stream, BLOCK_BYTES)
    yield cut(stream, 2_000, 1, 300)
    if len(stream) < 8_000:
        yield cut(stream, 1)


def compare(stream: bytes) -> None:
    """Check that all paths of the decoder agree on the stream."""
    lines = slowest(stream)
    kinds = [line.kind for line in lines]
    whole = block(*[line.raw for line in lines])
    assert peek_lines(whole) == _peek_lines(whole, plain=True) == kinds
    for type_ in (Message, dict):
        for only in ONLY:
            kept = [line for line in lines if only is None or is_wanted(line.kind, only)]
            expected = [line.typed if type_ is Message else line.plain for line in kept]
            for chunks in ways(stream):
                decoder: Decoder[Any] = Decoder(type_, only=only)
                assert fed(decoder, chunks) == expected
                assert decoder.stats.skipped == len(lines) - len(kept)
            assert fed(without_vectors(Decoder(type_, only=only)), [stream]) == expected
            assert list(read(io.BytesIO(stream), type_, only=only)) == expected
            chunks = cut(stream, 3_000)
            assert fed(Decoder(type_, only=only), map(memoryview, chunks)) == expected
            assert fed(Decoder(type_, only=only), map(bytearray, chunks)) == expected
    for only in ONLY:
        kept = [line for line in lines if only is None or is_wanted(line.kind, only)]
        expected = said(line.plain for line in kept)
        for chunks in ways(stream):
            coalescing = Decoder(dict, only=only, coalesce=True)
            found = fed(coalescing, chunks)
            assert said(found) == expected
            plain = without_vectors(Decoder(dict, only=only), coalesce=True)
            assert fed(plain, chunks) == found
            typed = Decoder(only=only, coalesce=True)
            for message, one in zip(fed(typed, chunks), found, strict=True):
                assert message == one or not isinstance(one, InvalidLine)
            assert coalescing.stats.skipped == typed.stats.skipped == len(lines) - len(kept)
            assert coalescing.stats.merged == typed.stats.merged == len(kept) - len(found)


@each("name", [name for name in recordings.names() if recordings.load(name).stdout], str)
def test_recordings(name: str) -> None:
    lines = [line for line in recordings.load(name).stdout.split(b"\n") if len(line) < LONGEST]
    # Keep the last lines: a stream may end without a line feed.
    compare(b"\n".join(lines if LONG else [*lines[:20], *lines[20:][-10:]]))


@pytest.mark.parametrize("style", ["compact", "python"])
@pytest.mark.parametrize("order", ["cli", "session", "shuffled"])
@pytest.mark.parametrize("text", ["ascii", "cjk", "emoji", "mixed"])
def test_traffic(text: Any, order: Any, style: Any) -> None:
    compare(traffic(31, lines=80, sessions=3, text=text, order=order, style=style))


def seeds() -> list[bytes]:
    """Return the shortest recorded line of each kind, and deltas of every kind."""
    shortest: dict[object, bytes] = {}
    for name in recordings.names():
        recording = recordings.load(name)
        for line in (recording.stdout + b"\n" + recording.stdin).split(b"\n"):
            kind = peek(line)
            if kind not in shortest or len(line) < len(shortest[kind]):
                shortest[kind] = line
    return [*shortest.values(), *MERGEABLE.values(), *traffic(1, lines=60, text="mixed").split(b"\n")[:-1]]


@pytest.mark.parametrize("seed", range(12 if LONG else 6))
def test_mutated_lines(seed: int) -> None:
    rng = random.Random(seed)
    stream = b"\n".join(mutants(seeds(), 100 + seed, 200))
    compare(stream)
    # A few mutated lines among many normal ones, because the fast paths need runs of normal lines.
    lines = traffic(seed, lines=100, sessions=2, text=rng.choice(["ascii", "emoji"])).split(b"\n")[:-1]
    for at in range(0, len(lines), rng.choice([3, 10, 40])):
        lines[at] = mutated(lines[at], rng)
    compare(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize("seed", range(3))
def test_lines_mutated_by_one_bit(seed: int) -> None:
    """Flip one bit in each byte of a delta and of a result, which gives the lines most easily mistaken for them."""
    rng = random.Random(seed)
    lines = traffic(seed, lines=600).split(b"\n")
    delta = next(line for line in lines if checked_kind(line)[2] == "text_delta")
    result = next(line for line in lines if checked_kind(line)[0] == "result")
    for line in (delta, result[:400] + result[-400:]):
        changed: list[bytes] = []
        for at in range(len(line)):
            byte = line[at] ^ (1 << rng.randrange(8))
            changed.append(line[:at] + bytes([byte if byte != 10 else 11]) + line[at + 1 :])
        lines = [part for one in changed for part in (line, one)]
        assert peek_lines(block(*lines)) == [checked_kind(one) for one in lines]
        decoder = Decoder(dict, only=["stream_event", "result"], coalesce=True)
        kept = [one for one in lines if is_wanted(checked_kind(one), ["stream_event", "result"])]
        assert said(decoder.feed(block(*lines))) == said(without_places(Decoder(dict).feed(block(*kept)), lines))


def without_places(messages: list[Any], lines: list[bytes]) -> list[Any]:
    """Give invalid lines the line numbers and offsets that they have in the whole stream."""
    starts: dict[bytes, list[tuple[int, int]]] = {}
    offset = 0
    for number, line in enumerate(lines, 1):
        starts.setdefault(line, []).append((number, offset))
        offset += len(line) + 1
    return [
        InvalidLine(m.raw, *starts[m.raw].pop(0), m.reason, kind=m.kind) if isinstance(m, InvalidLine) else m
        for m in messages
    ]


def test_one_line_by_every_entry() -> None:
    for line in [*seeds(), *mutants(seeds(), 7, 1_000)]:
        if is_blank(line):
            continue
        (typed,) = Decoder().feed(b"\n" + line + b"\n")
        if isinstance(typed, InvalidLine):
            with pytest.raises(InvalidLineError) as caught:
                decode(b"\n" + line if line.startswith(BOM) else line)
            assert typed.reason in str(caught.value)
        elif not line.startswith(BOM):
            assert decode(line) == decode(line + b"\n") == typed
            assert decode(bytearray(line)) == decode(memoryview(line)) == decode(line.decode()) == typed


def test_dicts_are_what_json_reads() -> None:
    for line in [*seeds(), *mutants(seeds(), 8, 1_500)]:
        for message in Decoder(dict).feed(b"\n" + line + b"\n"):
            if isinstance(message, InvalidLine):
                message = None
            assert message == _by_json(line)


def _by_json(line: bytes) -> dict[str, Any] | None:
    try:
        value = value_by_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


tokens = st.sampled_from(
    [
        *[b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b" ", b"\r", b"\n", b"1", b"\xff", b"null", b"{}\n", BOM],
        *[rb"\ud83d", rb"\ude00", b'"type":"result"', b'"type":"stream_event",', b'"event":{', b'"text":"x"'],
        *[line + b"\n" for line in (*MERGEABLE.values(), *NOT_MERGEABLE.values(), *CLOSING.values())],
    ]
)


@given(st.lists(tokens, max_size=12).map(b"".join), st.lists(st.integers(1, 300), min_size=1, max_size=3))
def test_any_stream(stream: bytes, sizes: list[int]) -> None:
    lines = slowest(stream)
    for only in ONLY:
        kept = [line for line in lines if only is None or is_wanted(line.kind, only)]
        for chunks in ([stream], cut(stream, *sizes)):
            assert fed(Decoder(only=only), chunks) == [line.typed for line in kept]
            assert fed(Decoder(dict, only=only), chunks) == [line.plain for line in kept]
            found = fed(Decoder(dict, only=only, coalesce=True), chunks)
            assert said(found) == said(line.plain for line in kept)
            assert fed(without_vectors(Decoder(dict, only=only), coalesce=True), chunks) == found
