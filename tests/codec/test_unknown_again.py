"""A stream with many unknown parts must give the same messages as each of its lines alone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import recordings
from claude_wire import AssistantMessage, Decoder, InvalidLine
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
ODD = {
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
#: The lines of which only a part is unknown, not the whole message.
PARTS = {name: odd for name, odd in ODD.items() if not name.startswith(("message", "subtype"))}
GOOD = [
    delta("text_delta", text="é"),
    assistant(TEXT, {"type": "tool_use", "id": "t", "name": "Bash", "input": {"type": "x"}}),
    user({"type": "tool_result", "tool_use_id": "t", "content": "plain"}),
    line({"type": "system", "subtype": "status", "status": None, "session_id": "s", "uuid": "u"}),
    line({"type": "keep_alive"}),
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


def alone(odd: bytes) -> Any:
    """Decode a line with a new decoder."""
    (message,) = fed(
        Decoder(), [b"\n", odd]
    )  # an empty line first: at the start of a stream, a line might look like a byte order mark
    return described(message)


def lines_of(stream: bytes) -> list[bytes]:
    return stream.splitlines(keepends=True)


def patterns(odd: bytes) -> Iterator[list[bytes]]:
    """Yield streams with this line in all, most, some and few places."""
    yield [odd] * 60
    for every in (2, 3, 7, 40):
        yield [odd if index % every == 0 else GOOD[index % len(GOOD)] for index in range(120)]
    yield [*GOOD, *[odd] * 20, *GOOD * 40, *[odd] * 20]


@each("name", ODD)
def test_a_line_is_the_same_however_often_it_comes(name: str) -> None:
    expected = {found: alone(found) for found in (ODD[name], *GOOD)}
    for lines in patterns(ODD[name]):
        stream = b"".join(lines)
        byte_by_byte = cut(stream, 1) if LONG or len(lines) == 60 else [stream]
        for chunks in ([stream], cut(stream, 1000), cut(stream, 300, 7), lines, byte_by_byte):
            decoder = Decoder()
            assert [described(message) for message in fed(decoder, chunks)] == [expected[found] for found in lines]
            assert decoder.stats.unknown == lines.count(ODD[name])


def test_all_of_them_in_one_stream_are_as_each_alone() -> None:
    rng = random.Random(1)
    lines = [rng.choice([*ODD.values(), *ODD.values(), *GOOD]) for _ in range(3000)]
    expected = {found: alone(found) for found in (*ODD.values(), *GOOD)}
    decoder = Decoder()
    found = [message for chunk in cut(b"".join(lines), 4000) for message in decoder.feed(chunk)]
    assert [described(message) for message in found] == [expected[line] for line in lines]


@pytest.mark.parametrize("seed", range(4))
def test_any_line_between_lines_with_something_unknown_is_as_alone(seed: int) -> None:
    recorded = [*GOOD, *ODD.values(), *lines_of(recordings.load("01_simple_bidi_init").stdout)]
    sources = [found.removesuffix(b"\n") for found in recorded if len(found) < 3000]
    odd = list(PARTS.values())
    decoder, lines = Decoder(), list[bytes]()
    for index, found in enumerate(mutants(sources, seed, 1500 if LONG else 400)):
        lines += [*odd[index % 3 :: 3], found + b"\n"]
    found = [message for chunk in cut(b"".join(lines), 60_000) for message in decoder.feed(chunk)]
    expected = [alone(line) for line in lines if line.strip(b" \t\r\n")]
    assert [described(message) for message in found] == expected


@each("name", ODD)
def test_msgspec_decodes_it_as_the_native_reader_does(name: str, by_msgspec: None) -> None:
    lines = [*GOOD, ODD[name], ODD[name]] * 20
    decoder = Decoder()
    found = [message for chunk in cut(b"".join(lines), 3000) for message in decoder.feed(chunk)]
    assert [described(message) for message in found] == [alone(line) for line in lines]
    assert decoder.stats.unknown == 40


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
