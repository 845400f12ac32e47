"""A line must give the same message in any stream as alone, whatever the reader has learnt from the lines before it."""

from __future__ import annotations

import functools
import json
import random
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import recordings
from claude_wire import AssistantMessage, Decoder, InvalidLine, InvalidLineError
from claude_wire.limits import BLOCK_BYTES
from claude_wire.messages import Unknown
from each import each
from feeding import cut, fed
from long_tests import LONG
from mutations import mutants


def line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def event(**fields: Any) -> bytes:
    return line({"type": "stream_event", "event": fields, "session_id": "s", "parent_tool_use_id": None, "uuid": "u"})


def delta(kind: str, **fields: Any) -> bytes:
    return event(type="content_block_delta", index=0, delta={"type": kind, **fields})


def assistant(*content: Any, **fields: Any) -> bytes:
    said = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": content, **fields}
    return line({"type": "assistant", "message": said, "parent_tool_use_id": None, "session_id": "s", "uuid": "u"})


def user(*content: Any) -> bytes:
    return line({"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None})


TEXT = {"type": "text", "text": "é \u2028 words"}
NEW = {"type": "of_tomorrow", "data": [1, {"type": "text", "text": 5}], "text": None}
MISFIT = {"type": "text", "text": 5}
#: Description of the unknown part -> a line with it.
UNKNOWN = {
    "delta": delta("dream_delta", dream="😀", deep={"type": [1.5]}),
    "delta that does not fit": delta("text_delta", text=["no"]),
    "delta without a type": event(type="content_block_delta", index=0, delta={"text": "t"}),
    "delta whose type is a list": event(type="content_block_delta", index=0, delta={"type": ["text_delta"]}),
    "event": event(type="of_tomorrow", delta={"type": "x"}),
    "event that does not fit": event(type="content_block_delta", index="0", delta={"type": "dream_delta"}),
    "block of an event": event(type="content_block_start", index=0, content_block=NEW),
    "block": assistant(TEXT, NEW, TEXT),
    "blocks": assistant(NEW, TEXT, NEW, NEW),
    "blocks that do not fit": assistant(MISFIT, TEXT, {"type": "tool_use", "id": 1}, NEW, {}),
    "block and iteration": assistant(NEW, usage={"input_tokens": 1, "iterations": [NEW, {"type": "message"}]}),
    "block in a tool result": user(TEXT, {"type": "tool_result", "tool_use_id": "t", "content": [NEW, TEXT, NEW]}),
    "block in a tool result beside one": user(NEW, {"type": "tool_result", "tool_use_id": "t", "content": [NEW]}),
    "tool result that does not fit": user({"type": "tool_result", "tool_use_id": 5, "content": [NEW]}),
    "request": line({"type": "control_request", "request_id": "r", "request": {"subtype": "of_tomorrow", "x": 1}}),
    "message": line({"type": "of_tomorrow", "x": NEW}),
    "message that does not fit": assistant(NEW).replace(b'"session_id":"s"', b'"session_id":5'),
    "subtype": line({"type": "system", "subtype": "of_tomorrow", "x": NEW}),
}
INIT = b'{"type":"system","subtype":"init","cwd":"/","session_id":"s","uuid":"u","tools":["Bash"]}\n'
STATUS = b'{"type":"system","subtype":"status","status":null,"session_id":"s","uuid":"u"}\n'
DONE = b'{"usage":{"input_tokens":1},"subtype":"success","is_error":false,"result":"type","type":"result"}\n'
FAILED = '{"type":"result","subtype":"error_max_turns","errors":["é"]}\r\n'.encode()
USER = b'{"type":"user","message":{"role":"user","content":"system"},"parent_tool_use_id":null}\n'
ALIVE = b'{"type":"keep_alive"}\n'
#: Description of a line whose subtype selects its class, or should -> the line.
SUBTYPED = {
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
ODD = {**UNKNOWN, **SUBTYPED}
GOOD = [
    delta("text_delta", text="é"),
    assistant(TEXT, {"type": "tool_use", "id": "t", "name": "Bash", "input": {"type": "x"}}),
    user({"type": "tool_result", "tool_use_id": "t", "content": "plain"}),
    *(INIT, STATUS, DONE, FAILED, USER, ALIVE),
]


def described(message: Any) -> Any:
    """Return everything that a program can see of a message: fields, classes, and the reasons of unknown parts."""
    if isinstance(message, Unknown):
        return type(message), message.reason, dict(message)
    if isinstance(message, msgspec.Struct):
        return type(message), {name: described(getattr(message, name)) for name in message.__struct_fields__}
    if isinstance(message, InvalidLine):
        return message.kind, message.reason, message.raw
    if isinstance(message, (list, tuple)):
        return [described(item) for item in message]
    return type(message), message


@functools.cache
def alone(odd: bytes) -> tuple[Any, tuple[int, int, int]]:
    """Decode a line with a new decoder. Return it described, and whether it counts as unknown, repaired and invalid."""
    decoder = Decoder()
    # An empty line first: at the start of a stream, a line might look like a byte order mark.
    (message,) = fed(decoder, [b"\n", odd])
    return described(message), (decoder.stats.unknown, decoder.stats.repaired, decoder.stats.invalid)


def require_as_alone(lines: list[bytes], chunks: list[bytes]) -> None:
    decoder = Decoder()
    found = fed(decoder, chunks)
    messages, counts = zip(*map(alone, lines), strict=True)
    assert [described(message) for message in found] == [*messages]
    stats = decoder.stats
    assert (stats.unknown, stats.repaired, stats.invalid) == tuple(map(sum, zip(*counts, strict=True)))


def patterns(odd: bytes) -> Iterator[list[bytes]]:
    """Yield streams with this line in all, most, some and few places."""
    yield [odd] * 60
    for every in (2, 3, 7):
        yield [odd if index % every == 0 else GOOD[index % len(GOOD)] for index in range(60)]
    yield [*GOOD, *[odd] * 20, *GOOD * 10, *[odd] * 20]
    yield [*[INIT] * 5, *[ALIVE] * 50, odd, *[DONE] * 50]


@each("name", ODD, str)
def test_a_line_is_the_same_however_often_it_comes(name: str) -> None:
    for lines in patterns(ODD[name]):
        stream = b"".join(lines)
        byte_by_byte = cut(stream, 1) if LONG or len(lines) == 60 else [stream]
        for chunks in ([stream], cut(stream, 300, 7), lines, byte_by_byte):
            require_as_alone(lines, chunks)


def test_all_of_them_in_one_stream_are_as_each_alone() -> None:
    rng = random.Random(1)
    lines = [rng.choice([*ODD.values(), *ODD.values(), *GOOD]) for _ in range(3000)]
    lines += [line({"type": "system", "subtype": f"new_{rng.randrange(40)}"}) for _ in range(800)]
    long = DONE.replace(b'"type",', b'"' + b"x" * 2 * BLOCK_BYTES + b'",')
    lines += [*GOOD, long, *GOOD, long, long, *GOOD]
    require_as_alone(lines, cut(b"".join(lines), 4000))


@pytest.mark.parametrize("seed", range(4))
def test_any_line_among_such_lines_is_as_alone(seed: int) -> None:
    recorded = recordings.load("01_simple_bidi_init").stdout.splitlines(keepends=True)
    sources = [found.rstrip(b"\r\n") for found in [*GOOD, *ODD.values(), *recorded] if len(found) < 3000]
    odd, lines = list(UNKNOWN.values()), [INIT] * 5
    for index, found in enumerate(mutants(sources, seed, 1500 if LONG else 300)):
        lines += [*odd[index % 3 :: 3], found + b"\n", *GOOD[index % 5 :: 5]]
    lines = [found for found in lines if found.strip(b" \t\r\n")]
    require_as_alone(lines, cut(b"".join(lines), 60_000))


@pytest.fixture
def natively_alone() -> None:
    """Let :func:`alone` keep what the native reader makes of each line, before by_msgspec replaces this reader."""
    for found in (*GOOD, *ODD.values()):
        alone(found)


@each("name", ODD, str)
def test_msgspec_decodes_it_as_the_native_reader_does(name: str, natively_alone: None, by_msgspec: None) -> None:
    lines = [*GOOD, ODD[name], ODD[name]] * 20
    require_as_alone(lines, cut(b"".join(lines), 3000))


def test_a_tag_of_two_values_is_refused_among_lines_with_something_unknown() -> None:
    odd, whole = ODD["block"], ODD["block"].removesuffix(b"\n")
    twice = whole.replace(b'"type":"of_tomorrow"', b'"type":"of_tomorrow","type":"text"')
    same = whole.replace(b'"type":"of_tomorrow"', b'"type":"of_tomorrow","type":"of_tomorrow"')
    decoder = Decoder()
    found = decoder.feed(odd * 100 + twice + b"\n" + same + b"\n" + odd * 100)
    assert [(index, message.kind) for index, message in enumerate(found) if isinstance(message, InvalidLine)] == [
        (100, "tags")
    ]
    bad = found[100]
    assert isinstance(bad, InvalidLine)
    assert (bad.line_number, bad.offset, bad.raw) == (101, 100 * len(odd), twice)
    assert described(found[101]) == described(found[0])


@pytest.mark.parametrize(("surrogates", "half"), [("keep", "\ud83d"), ("replace", "\ufffd")])
def test_lone_surrogates_among_lines_with_something_unknown(surrogates: Any, half: str) -> None:
    odd = ODD["block"]
    torn = assistant({"type": "of_tomorrow", "x": "?"}).replace(b"?", rb"\ud83d")
    decoder = Decoder(surrogates=surrogates)
    found = decoder.feed((odd * 20 + torn) * 20)
    said = found[20]
    assert isinstance(said, AssistantMessage)
    assert said.content == [{"type": "of_tomorrow", "x": half}]
    assert (decoder.stats.unknown, decoder.stats.repaired, decoder.stats.invalid) == (420, 20, 0)


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
    assert [described(message) for message in caught.value.messages] == [alone(DONE)[0], alone(INIT)[0]]
    assert [described(message) for message in decoder.feed(b"")] == [alone(USER)[0], alone(DONE)[0]]


@pytest.mark.parametrize("only", [None, {"system/init", "user"}])
@pytest.mark.parametrize("coalesce", [False, True])
def test_what_a_filter_lets_through_is_as_alone(only: Any, coalesce: bool) -> None:
    decoder = Decoder(only=only, coalesce=coalesce)
    lines = [*GOOD, *ODD.values()] * 5
    found = fed(decoder, cut(INIT * 5 + b"".join(lines), 3000))
    plain = Decoder(only=only, coalesce=coalesce)
    assert described(found) == described([message for one in [*[INIT] * 5, *lines] for message in plain.feed(one)])


def test_threads_decode_at_the_same_time() -> None:
    lines = [*GOOD, *ODD.values()] * 10
    expected = [alone(found)[0] for found in lines]
    wrong: list[int] = []

    def run(number: int) -> None:
        for _ in range(3):
            decoder = Decoder()
            decoder.feed(INIT * (number + 2))
            if [described(message) for message in decoder.feed(b"".join(lines))] != expected:
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong
