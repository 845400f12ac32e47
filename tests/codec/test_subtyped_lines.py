"""Lines whose subtype selects their class must give the same messages in a block and alone."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import recordings
from claude_wire import Decoder, InvalidLine, InvalidLineError
from claude_wire.limits import BLOCK_BYTES
from claude_wire.messages import Unknown
from each import each
from feeding import cut, fed
from mutations import mutants

INIT = b'{"type":"system","subtype":"init","cwd":"/","session_id":"s","uuid":"u","tools":["Bash"]}\n'
STATUS = b'{"type":"system","subtype":"status","status":null,"session_id":"s","uuid":"u"}\n'
DONE = b'{"usage":{"input_tokens":1},"subtype":"success","is_error":false,"result":"type","type":"result"}\n'
FAILED = '{"type":"result","subtype":"error_max_turns","errors":["é"]}\r\n'.encode()
USER = b'{"type":"user","message":{"role":"user","content":"system"},"parent_tool_use_id":null}\n'
ALIVE = b'{"type":"keep_alive"}\n'
KNOWN = [INIT, STATUS, DONE, FAILED, USER, ALIVE]
ODD = {
    "another type later": INIT.replace(b"}\n", b',"type":"result"}\n'),
    "the same type later": INIT.replace(b"}\n", b',"type":"system"}\n'),
    "another subtype later": INIT.replace(b"}\n", b',"subtype":"status"}\n'),
    "the same subtype later": INIT.replace(b"}\n", b',"subtype":"init"}\n'),
    "an unknown subtype": STATUS.replace(b"status", b"of_tomorrow"),
    "an unknown subtype, then a known one": STATUS.replace(b'"status",', b'"of_tomorrow","subtype":"init",', 1),
    "an unknown subtype of result": DONE.replace(b"success", b"of_tomorrow"),
    "an unknown subtype of result, then a known one": DONE.replace(b'"success"', b'"new","subtype":"success"'),
    "an escaped subtype": DONE.replace(b"success", b"succ\\u0065ss"),
    "an escaped type": DONE.replace(b'"result"}', b'"r\\u0065sult"}'),
    "a subtype in another alphabet": STATUS.replace(b'"status",', '"übermorgen",'.encode(), 1),
    "half an emoji": DONE.replace(b'"type",', b'"\\ud83d",'),
    "half an emoji in a subtype": DONE.replace(b"success", b"\\ud83d"),
    "a field that does not fit": INIT.replace(b'"cwd":"/"', b'"cwd":5'),
    "something unknown": DONE.replace(b'{"input_tokens":1}', b'{"iterations":[{"type":"of_tomorrow"}]}'),
    "keys that are kept": b'{"type":"system","subtype":"interrupted","new":1}\n',
    "no subtype": b'{"type":"system"}\n',
    "a subtype that is no string": b'{"type":"system","subtype":5}\n',
    "a type that is no string": b'{"type":["system"],"subtype":"init"}\n',
    "no JSON": INIT.replace(b'"cwd":', b"cwd:"),
    "two objects": INIT.replace(b"\n", b"") + INIT,
    "no end": INIT.replace(b'"]}', b'"]'),
    "no UTF-8": INIT.replace(b"Bash", b"B\xff"),
    "NaN": DONE.replace(b"false", b"NaN"),
    "a number out of range": DONE.replace(b"false", b"1e400"),
    "only a subtype within": b'{"x":{"type":"system","subtype":"init"},"type":"system"}\n',
}


def described(messages: list[Any]) -> list[Any]:
    return [
        (message.kind, message.reason, message.raw)
        if isinstance(message, InvalidLine)
        else (type(message), getattr(message, "reason", None) if isinstance(message, Unknown) else None, message)
        for message in messages
    ]


def alone(line: bytes) -> Any:
    (message,) = described(
        fed(Decoder(), [b"\n", line])
    )  # an empty line first: at the start of a stream, a line might look like a byte order mark
    return message


def streams(odd: bytes) -> Iterator[list[bytes]]:
    yield [*KNOWN, odd] * 20
    yield [INIT, *[odd] * 30, *KNOWN]
    yield [INIT, *[ALIVE] * 50, odd, *[DONE] * 50]
    yield [STATUS] * 10 + [odd] * 2 + [USER] * 10


@each("name", ODD)
def test_a_line_among_such_lines_is_as_alone(name: str) -> None:
    expected = {line: alone(line) for line in [*KNOWN, ODD[name]]}
    for lines in streams(ODD[name]):
        stream = b"".join(lines)
        for chunks in ([INIT * 5, stream], [INIT * 5, *cut(stream, 1000)], [INIT * 5, *cut(stream, 600, 11)]):
            decoder = Decoder()
            assert described(fed(decoder, chunks))[5:] == [expected[line] for line in lines]
            stats = decoder.stats
            assert stats.lines == len(lines) + 5
            assert stats.invalid == sum(isinstance(expected[line][0], str) for line in lines)
            wanted = fed_alone(lines)
            assert (stats.unknown, stats.repaired) == wanted


def fed_alone(lines: list[bytes]) -> tuple[int, int]:
    """Feed one line at a time, and return how many are counted as unknown and as repaired."""
    decoder = Decoder()
    for line in lines:
        decoder.feed(line)
    return decoder.stats.unknown, decoder.stats.repaired


@pytest.mark.parametrize("seed", range(3))
def test_any_line_among_such_lines_is_as_alone(seed: int) -> None:
    recorded = recordings.load("01_simple_bidi_init").stdout.splitlines(keepends=True)
    sources = [line.rstrip(b"\r\n") for line in [*KNOWN, *ODD.values(), *recorded] if len(line) < 3000]
    rng = random.Random(seed)
    lines = [INIT] * 5
    for mutant in mutants(sources, seed, 1200):
        lines += [mutant + b"\n", rng.choice(KNOWN), rng.choice(KNOWN)]
    decoder = Decoder()
    found = [message for chunk in cut(b"".join(lines), 20_000) for message in decoder.feed(chunk)]
    assert described(found) == [alone(line) for line in lines if line.strip(b" \t\r\n")]


def test_an_invalid_line_among_such_lines_says_where_it_stood() -> None:
    bad = ODD["another subtype later"]
    lines = [INIT, DONE, bad, USER, INIT, bad, STATUS, b"no\n", DONE]
    decoder = Decoder()
    decoder.feed(INIT * 5)
    found = decoder.feed(b"".join(lines))
    before = 5 * len(INIT)
    assert [(m.line_number, m.offset, m.raw) for m in found if isinstance(m, InvalidLine)] == [
        (index + 6, before + len(b"".join(lines[:index])), lines[index].removesuffix(b"\n")) for index in (2, 5, 7)
    ]


def test_messages_before_a_line_that_raises_are_those_before_it() -> None:
    decoder = Decoder(on_invalid="raise")
    decoder.feed(INIT * 5)
    with pytest.raises(InvalidLineError) as caught:
        decoder.feed(DONE + INIT + ODD["another type later"] + USER + DONE)
    assert described(caught.value.messages) == [alone(DONE), alone(INIT)]
    assert described(decoder.feed(b"")) == [alone(USER), alone(DONE)]


@pytest.mark.parametrize("only", [None, {"system/init", "user"}])
@pytest.mark.parametrize("coalesce", [False, True])
def test_what_a_filter_lets_through_is_as_alone(only: Any, coalesce: bool) -> None:
    decoder = Decoder(only=only, coalesce=coalesce)
    lines = [*KNOWN, *ODD.values()] * 5
    found = fed(decoder, cut(INIT * 5 + b"".join(lines), 3000))
    plain = Decoder(only=only, coalesce=coalesce)
    assert described(found) == described([message for line in [*[INIT] * 5, *lines] for message in plain.feed(line)])


def test_many_lines_and_subtypes_are_as_alone() -> None:
    decoder = Decoder()
    decoder.feed(INIT * 5)
    lines = [json.dumps({"type": "system", "subtype": f"new_{index % 40}"}).encode() + b"\n" for index in range(800)]
    rng = random.Random(3)
    lines += [ALIVE, USER, INIT, DONE] * 100
    rng.shuffle(lines)
    stream = b"".join(lines)
    expected = {line: alone(line) for line in set(lines)}
    assert described(decoder.feed(stream)) == [expected[line] for line in lines]


def test_a_long_line_among_such_lines_is_as_alone() -> None:
    long = DONE.replace(b'"type",', b'"' + b"x" * 2 * BLOCK_BYTES + b'",')
    decoder = Decoder()
    lines = [*KNOWN, long, *KNOWN, long, long, *KNOWN]
    decoder.feed(INIT * 5)
    assert described(decoder.feed(b"".join(lines))) == [alone(line) for line in lines]


def test_threads_decode_at_the_same_time() -> None:
    lines = [*KNOWN, *ODD.values()] * 20
    expected = [alone(line) for line in lines]
    wrong: list[int] = []

    def run(number: int) -> None:
        for _ in range(10):
            decoder = Decoder()
            decoder.feed(INIT * (number + 2))
            if described(decoder.feed(b"".join(lines))) != expected:
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong
