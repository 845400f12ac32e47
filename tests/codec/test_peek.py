"""Tests of ``peek`` and ``peek_lines``: they find the kind of any line from its structure, without parsing values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import long_tests
import recordings
from claude_wire import Decoder, Kind, decode, peek
from claude_wire.codec import peek_lines
from claude_wire.codec.kinds import _peek_lines
from decoded_kinds import checked_kind, kind_by_json
from each import each
from mutations import mutants
from traffic import Order, Style, Text, traffic

NONE = (None, None, None)
DELTA = ("stream_event", "content_block_delta", "text_delta")
BOM = b"\xef\xbb\xbf"
#: Filler for long lines whose "type" comes last.
LONG = b"x" * 200_000
DEEP = 100_000
USER = ("user", None, None)

#: What the case checks -> the line and its kind.
CASES: dict[str, tuple[bytes, tuple[str | None, str | None, str | None]]] = {
    # --- which tags make a kind
    "type alone": (b'{"type":"keep_alive"}', ("keep_alive", None, None)),
    "type and subtype": (b'{"type":"system","subtype":"init"}', ("system", "init", None)),
    "the subtype of a control request is that of its request": (
        b'{"type":"control_request","subtype":"no","request":{"subtype":"can_use_tool"}}',
        ("control_request", "can_use_tool", None),
    ),
    "the subtype of a control response is that of its response": (
        b'{"type":"control_response","subtype":"no","response":{"subtype":"success","response":{"subtype":"no"}}}',
        ("control_response", "success", None),
    ),
    "the subtype of a stream event is its event's type": (
        b'{"type":"stream_event","subtype":"no","event":{"type":"message_stop"}}',
        ("stream_event", "message_stop", None),
    ),
    "the detail of a stream event is its delta's type": (
        b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}}',
        DELTA,
    ),
    "or else its content block's": (
        b'{"type":"stream_event","event":{"type":"content_block_start","content_block":{"type":"tool_use"}}}',
        ("stream_event", "content_block_start", "tool_use"),
    ),
    "the delta's goes first, wherever it stands": (
        b'{"type":"stream_event","event":{"content_block":{"type":"no"},"delta":{"type":"yes"},"type":"t"}}',
        ("stream_event", "t", "yes"),
    ),
    "a delta without type leaves it to the content block": (
        b'{"type":"stream_event","event":{"delta":{"stop":1},"content_block":{"type":"b"},"type":"t"}}',
        ("stream_event", "t", "b"),
    ),
    "a detail without a subtype": (
        b'{"type":"stream_event","event":{"delta":{"type":"d"}}}',
        ("stream_event", None, "d"),
    ),
    "a request says nothing of another type": (b'{"type":"user","request":{"subtype":"no"}}', USER),
    "an event says nothing of another type": (b'{"type":"user","event":{"type":"no","delta":{"type":"no"}}}', USER),
    "no type, no kind": (b'{"subtype":"init","event":{"type":"x"}}', NONE),
    "an empty object": (b"{}", NONE),
    "an empty tag is a tag": (b'{"type":"","subtype":""}', ("", "", None)),
    "a slash is a character": (b'{"type":"a/b"}', ("a/b", None, None)),
    # --- where they stand
    "type after a long text": (
        b'{"result":"' + LONG + b'","subtype":"success","type":"result"}',
        ("result", "success", None),
    ),
    "type before a long text": (b'{"type":"result","result":"' + LONG + b'","subtype":"s"}', ("result", "s", None)),
    "tags behind everything else": (
        b'{"event":{"delta":{"text":"x","type":"text_delta"},"index":0,"type":"content_block_delta"},"type":"stream_event"}',
        DELTA,
    ),
    # --- white space
    "white space everywhere": (
        b'\t {\r "type" \t:\r"stream_event" , "event" : { "type"\t:"content_block_delta" ,'
        b'"delta" : { "type" : "text_delta" } } } \r',
        DELTA,
    ),
    "a CR at the end": (b'{"type":"user"}\r', USER),
    "an empty object with a space in it": (b'{"event":{ },"type":"user"}', USER),
    "a form feed is no white space": (b'{"type":"user"}\x0c', NONE),
    "nor is a no-break space": (b'\xc2\xa0{"type":"user"}', NONE),
    "nor a NUL": (b'{"type":"user"}\0', NONE),
    # --- strings
    "a look-alike in a string": (rb'{"text":"\",\"type\":\"result\",\"x\":\"","type":"user"}', USER),
    "a look-alike of the whole line in a string": (rb'{"a":"{\"type\":\"result\"}"}', NONE),
    "brackets in strings": (b'{"a":{"b":"}}]"},"c":["]","[{"],"type":"user"}', USER),
    "a string that ends with backslashes": (rb'{"a":"\\","b":"\\\"","c":"\\\\","type":"user"}', USER),
    "a quote behind an odd number of backslashes": (rb'{"a":"\\\",\"type\":\"no\"","type":"user"}', USER),
    "control bytes and bad UTF-8 in other strings": (b'{"a\x01\xff":"\x00\xff\r","type":"user"}', USER),
    "bad escapes in other strings": (rb'{"a\x":"\q\u12","type":"user"}', USER),
    # --- escapes
    "an escaped key": (rb'{"\u0074\u0079\u0070\u0065":"user"}', USER),
    "an escaped key of a path": (
        rb'{"type":"stream_event","\u0065vent":{"d\u0065lta":{"typ\u0065":"d"},"type":"t"}}',
        ("stream_event", "t", "d"),
    ),
    "an escaped tag": (rb'{"type":"\u0075ser","subtype":"a\/b\n\"\\\u00fc"}', ("user", 'a/b\n"\\ü', None)),
    "an escaped tag leads on": (
        rb'{"type":"stream\u005fevent","event":{"type":"t","delta":{"type":"d"}}}',
        ("stream_event", "t", "d"),
    ),
    "hexadecimal in both cases": (rb'{"type":"\u004A\u004a\u00eF"}', ("JJï", None, None)),
    "a surrogate pair": (rb'{"type":"\ud83d\uDE00"}', ("😀", None, None)),
    "UTF-8": ('{"type":"日本😀"}'.encode(), ("日本😀", None, None)),
    "the first pair": (rb'{"type":"\ud800\udc00"}', ("\U00010000", None, None)),
    "the last pair": (rb'{"type":"\udbff\udfff"}', ("\U0010ffff", None, None)),
    "the characters beside the halves": (rb'{"type":"\ud7ff\ue000\uffff"}', ("\ud7ff\ue000\uffff", None, None)),
    "a first half and the character behind the last half": (rb'{"type":"\udbff\ue000"}', NONE),
    "a first half and the last first half": (rb'{"type":"\udbff\udbff"}', NONE),
    "half a pair in a tag": (rb'{"type":"user","subtype":"\ud83d"}', NONE),
    "the other half": (rb'{"type":"user","subtype":"\ude00"}', NONE),
    "two first halves": (rb'{"type":"\ud83d\ud83d\ude00"}', NONE),
    "halves in the wrong order": (rb'{"type":"\ude00\ud83d"}', NONE),
    "half a pair before another escape": (rb'{"type":"\ud83d\n"}', NONE),
    "half a pair in a tag that is not part of the kind": (rb'{"type":"user","request":{"subtype":"\ud83d"}}', NONE),
    "half a pair in a key": (rb'{"type\ud83d":"no","type":"user"}', USER),
    "an unknown escape in a tag": (rb'{"type":"us\er"}', NONE),
    "a short escape in a tag": (rb'{"type":"\u12"}', NONE),
    "no hexadecimal in a tag": (rb'{"type":"\u12g4"}', NONE),
    "an unknown escape in a key": (rb'{"typ\e":"no","type":"user"}', USER),
    "a tag that is not UTF-8": (b'{"type":"us\xffer"}', NONE),
    "a surrogate in UTF-8": (b'{"type":"\xed\xa0\xbd"}', NONE),
    "an overlong form": (b'{"type":"\xc0\xaf"}', NONE),
    "a control byte in a tag": (b'{"type":"us\ter"}', NONE),
    "an escaped control byte in a tag": (rb'{"type":"a\u0000"}', ("a\0", None, None)),
    "a DEL in a tag": (b'{"type":"a\x7f"}', ("a\x7f", None, None)),
    "a key that only begins like one": (b'{"types":"no","typ":"no","type":"user","type ":"no"}', USER),
    "keys with capitals": (b'{"Type":"no","TYPE":"no","type":"user"}', USER),
    # --- twice
    "a tag twice with one value": (b'{"type":"user","type":"user"}', USER),
    "a tag twice with one value in two spellings": (rb'{"type":"user","\u0074ype":"u\u0073er"}', USER),
    "a tag twice with two values": (b'{"type":"user","type":"result"}', NONE),
    "a tag twice, once null": (b'{"type":"user","type":null}', NONE),
    "a tag twice, first null": (b'{"type":null,"type":"user"}', NONE),
    "a tag thrice": (b'{"type":"user","type":"user","type":"x"}', NONE),
    "a tag twice, neither a string": (b'{"subtype":1,"type":"user","subtype":{}}', USER),
    "a nested tag twice": (b'{"type":"user","event":{"delta":{"type":"a","type":"b"}}}', NONE),
    "a subtype twice that is not part of the kind": (b'{"type":"stream_event","subtype":"a","subtype":"b"}', NONE),
    "an event twice": (b'{"type":"user","event":{},"event":{}}', NONE),
    "an event twice, neither an object": (b'{"type":"user","event":1,"event":1}', NONE),
    "an event twice in two spellings": (rb'{"type":"user","event":{},"\u0065vent":{}}', NONE),
    "a delta twice": (b'{"type":"stream_event","event":{"type":"t","delta":{},"delta":{"type":"d"}}}', NONE),
    "a content block twice": (b'{"type":"user","event":{"content_block":1,"content_block":2}}', NONE),
    "other keys twice": (b'{"a":1,"a":2,"delta":1,"delta":2,"type":"user"}', USER),
    "a path key on another level is another key": (
        b'{"type":"stream_event","delta":{"type":"no"},"event":{"type":"t","event":{"type":"no"},"request":{"subtype":1}}}',
        ("stream_event", "t", None),
    ),
    # --- tags that are no strings
    "a type that is a number": (b'{"type":5,"subtype":"init"}', NONE),
    "a type that is null": (b'{"type":null}', NONE),
    "a type that is an object": (b'{"type":{"type":"user"}}', NONE),
    "a subtype that is a list": (b'{"type":"user","subtype":["init"]}', USER),
    "an event that is a string": (b'{"type":"stream_event","event":"message_stop"}', ("stream_event", None, None)),
    "an event that is a list": (b'{"type":"stream_event","event":[{"type":"no"}]}', ("stream_event", None, None)),
    "a delta that is null": (
        b'{"type":"stream_event","event":{"delta":null,"type":"t","content_block":{"type":"b"}}}',
        ("stream_event", "t", "b"),
    ),
    # --- nesting
    "a type within a message": (b'{"message":{"type":"no","content":[{"type":"no"}]},"type":"user"}', USER),
    "tags below the path": (
        b'{"type":"stream_event","event":{"delta":{"x":{"type":"no"},"type":"d"},"message":{"type":"no"},"type":"t"}}',
        ("stream_event", "t", "d"),
    ),
    "any depth": (b'{"a":' + b"[" * DEEP + b"]" * DEEP + b',"type":"user"}', USER),
    "any depth of objects": (b'{"a":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b',"type":"user"}', USER),
    "any depth, not closed": (b'{"type":"user","a":' + b"[" * DEEP, NONE),
    "any depth on the path": (b'{"event":' * DEEP + b"1" + b"}" * DEEP, NONE),
    "brackets are counted, not matched": (b'{"a":[{]},"b":[}, "type":"user"}', USER),
    "what is in a container is not looked at": (b'{"a":{1 2,,:},"b":[tru "x"],"type":"user"}', USER),
    # --- structure
    "other values are not looked at": (b'{"a":tru,"b":+-1.e,"c":\x00\xff,"type":"user"}', USER),
    "two values for a key": (b'{"a":1 2,"type":"user"}', NONE),
    "no value": (b'{"a":,"type":"user"}', NONE),
    "no colon": (b'{"a" 1,"type":"user"}', NONE),
    "two colons": (b'{"a"::1,"type":"user"}', NONE),
    "no key": (b'{:1,"type":"user"}', NONE),
    "a key that is no string": (b'{a:1,"type":"user"}', NONE),
    "no comma": (b'{"a":1"type":"user"}', NONE),
    "two commas": (b'{"a":1,,"type":"user"}', NONE),
    "a comma at the end": (b'{"type":"user",}', NONE),
    "a comma at the beginning": (b'{,"type":"user"}', NONE),
    "a bracket for a brace": (b'{"type":"user"]', NONE),
    "a value that runs into a quote": (b'{"a":1"","type":"user"}', NONE),
    "a string behind a string": (b'{"a":"" "","type":"user"}', NONE),
    "bad structure on the path": (b'{"type":"user","event":{"a" 1}}', NONE),
    "bad structure in a request": (b'{"type":"user","request":{1}}', NONE),
    "bad structure in a delta": (b'{"type":"user","event":{"delta":{"a":1,}}}', NONE),
    "bad structure in a content block": (b'{"type":"user","event":{"content_block":{]}}', NONE),
    "a delta that is not in an event is not on the path": (b'{"type":"user","delta":{1}}', USER),
    "something before the object": (b'x{"type":"user"}', NONE),
    "something behind the object": (b'{"type":"user"}x', NONE),
    "two objects": (b'{"type":"user"}{"type":"user"}', NONE),
    "a brace too many": (b'{"type":"user"}}', NONE),
    "a brace too few": (b'{"type":"user","event":{"type":"x"}', NONE),
    "an unfinished string": (b'{"type":"user', NONE),
    "an unfinished escape": (b'{"type":"user\\', NONE),
    "an unfinished member": (b'{"type":', NONE),
    "an unfinished object": (b'{"type":"user"', NONE),
    "an unfinished list": (b'{"type":"user","a":[1', NONE),
    "a list": (b'[{"type":"user"}]', NONE),
    "a string": (b'"type"', NONE),
    "a number": (b"1", NONE),
    "nothing": (b"", NONE),
    "blank": (b" \t\r", NONE),
}
every_case = each("case", CASES, str)

RECORDED = [
    f"{name}/{stream}"
    for name in recordings.names()
    for stream in ("stdout", "stdin")
    if getattr(recordings.load(name), stream)
]


def recorded(stream: str) -> bytes:
    name, _, which = stream.rpartition("/")
    data: bytes = getattr(recordings.load(name), which)
    return data


def split(block: bytes) -> list[bytes]:
    lines = block.split(b"\n")
    return lines if lines[-1] else lines[:-1]


@every_case
def test_the_kind_of_a_line(case: str) -> None:
    line, expected = CASES[case]
    assert kind_by_json(line) in (None, expected)
    assert peek(line) == expected
    assert peek(line + b"\n") == expected


def test_lines_of_all_cases_in_one_block() -> None:
    block = b"".join(line + b"\n" for line, _ in CASES.values())
    assert peek_lines(block) == [expected for _, expected in CASES.values()]
    # In reverse order, too, because a result must not depend on the line before.
    block = b"\n".join(line for line, _ in reversed(CASES.values()))
    assert peek_lines(block) == [expected for _, expected in reversed(CASES.values())]


def test_what_follows_a_line_is_not_part_of_it() -> None:
    for line, expected in CASES.values():
        for behind in (b'"', b"}", b'","type":"x"}', b"]]}}", b'{"type":"result"}', b"\\", b"\r"):
            found = peek_lines(line + b"\n" + behind)
            assert found[0] == expected, (line, behind)
            assert len(found) == 2


def test_a_kind_has_names_and_a_spelling() -> None:
    kind = peek(b'{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta"}}}')
    assert isinstance(kind, Kind)
    assert (kind.type, kind.subtype, kind.detail) == DELTA
    assert str(kind) == "stream_event/content_block_delta/text_delta"
    assert str(peek(b'{"type":"system","subtype":"init"}')) == "system/init"
    assert str(peek(b'{"type":"user"}')) == "user"


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview], ids=["bytes", "bytearray", "memoryview"])
@every_case
def test_any_bytes(make: Callable[[bytes], Any], case: str) -> None:
    line, expected = CASES[case]
    assert peek(make(line)) == expected
    assert peek_lines(make(line + b"\n" + line)) == ([expected, expected] if line else [expected])


@every_case
def test_a_str(case: str) -> None:
    line, expected = CASES[case]
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return
    assert peek(text) == expected
    assert peek(text + "\n") == expected


def test_a_str_with_half_a_pair() -> None:
    assert peek('{"text":"\ud83d","type":"user"}') == USER
    assert peek('{"type":"\ud83d"}') == NONE


def test_a_view_into_something_larger() -> None:
    line = b'{"type":"user"}'
    around = b'{"type":"result"}\n' + line + b'"}\n'
    view = memoryview(around)[18 : 18 + len(line)]
    assert peek(view) == USER
    assert peek_lines(view) == [USER]


def test_a_view_of_numbers() -> None:
    line = b'{"type":"user"}\n'
    assert peek(memoryview(line).cast("I")) == USER
    assert peek_lines(memoryview(line * 2).cast("H")) == [USER] * 2


def test_a_view_with_gaps() -> None:
    with pytest.raises(ValueError, match=r"contiguous|gaps"):
        peek(memoryview(b'{"type":"user"}')[::2])


@pytest.mark.parametrize("wrong", [None, 1, ["x"]], ids=["None", "int", "list"])
def test_what_has_no_bytes(wrong: Any) -> None:
    with pytest.raises(TypeError):
        peek(wrong)
    with pytest.raises(TypeError):
        peek_lines(wrong)


def test_an_empty_block_has_no_lines() -> None:
    assert peek_lines(b"") == []


def test_blank_lines_have_their_place() -> None:
    assert peek_lines(b'\n \r\n{"type":"user"}\n\n') == [NONE, NONE, USER, NONE]


def test_an_unterminated_last_line_counts() -> None:
    assert peek_lines(b'{"type":"user"}\n{"type":"x"}') == [USER, ("x", None, None)]
    assert peek_lines(b'{"type":"user"}\n{"type":"x"') == [USER, NONE]
    assert peek_lines(b'{"type":"user"}\n ') == [USER, NONE]


@pytest.mark.parametrize("count", [255, 256, 257, 300, 1_000])
def test_many_different_kinds_in_one_block(count: int) -> None:
    kinds = [("system", f"kind_{number % count}", None) for number in range(3 * count)]
    block = b"".join(b'{"type":"system","subtype":"%s"}\n' % kind[1].encode() for kind in kinds)
    assert peek_lines(block) == kinds


@pytest.mark.parametrize("count", [1, 63, 64, 65, 1_023, 1_024, 1_025, 4_096, 4_097, 70_000])
def test_many_lines_in_one_block(count: int) -> None:
    kinds = itertools.cycle([USER, NONE, ("system", "init", None)])
    lines = itertools.cycle([b'{"type":"user"}', b"", b'{"type":"system","subtype":"init"}'])
    block = b"\n".join(itertools.islice(lines, count)) + b"\n"
    assert peek_lines(block) == list(itertools.islice(kinds, count))


def test_a_long_line_among_short_ones() -> None:
    long = b'{"text":"' + b'\\"' * 1_500_000 + b'","type":"result"}'
    block = b"\n".join([b'{"type":"a"}', long, b'{"type":"b"}', long])
    assert peek_lines(block) == [("a", None, None), ("result", None, None), ("b", None, None), ("result", None, None)]


def test_every_place_in_a_vector() -> None:
    """SIMD vectors have 8 to 64 bytes: shift a line through all positions, with quotes and backslashes."""
    for ahead, inside in itertools.product(range(70), (0, 1, 2, 7, 8, 15, 31, 32, 33, 63, 64)):
        for end in (b"", b"\\", b'\\"', b"\\\\", b"\\\\\\"):
            expected = NONE if end in (b"\\", b"\\\\\\") else USER
            line = b" " * ahead + b'{"a":"' + b"x" * inside + end + b'","type":"user"}'
            assert peek(line) == expected, line


# --- Against JSON -----------------------------------------------------------------------------------------------------


@each("stream", RECORDED, str)
def test_recordings(stream: str) -> None:
    data = recorded(stream)
    lines = split(data)
    kinds = peek_lines(data)
    assert _peek_lines(data, plain=True) == kinds
    assert [peek(line) for line in lines] == kinds
    assert len(kinds) == len(lines)
    by_json = [kind_by_json(line) for line in lines]
    assert [kind for kind in by_json if kind is not None]
    for line, kind, expected in zip(lines, kinds, by_json, strict=True):
        assert expected in (None, kind), line


@every_case
def test_without_vectors(case: str) -> None:
    line, expected = CASES[case]
    assert _peek_lines(line + b"\n", plain=True) == [expected]


@pytest.mark.parametrize("style", ["compact", "python"])
@pytest.mark.parametrize("order", ["cli", "session", "shuffled"])
@pytest.mark.parametrize("text", ["ascii", "cjk", "emoji", "mixed"])
def test_traffic(text: Text, order: Order, style: Style) -> None:
    data = traffic(5, lines=250, text=text, order=order, style=style)
    lines = split(data)
    expected = [kind_by_json(line) for line in lines]
    assert None not in [kind and kind[0] for kind in expected]
    assert peek_lines(data) == _peek_lines(data, plain=True) == expected
    assert [peek(line) for line in lines] == expected


def seeds() -> list[bytes]:
    """Return the shortest recorded line of each kind, and some generated lines."""
    shortest: dict[object, bytes] = {}
    for stream in RECORDED:
        for line in split(recorded(stream)):
            if len(line) < 3_000:
                kind = checked_kind(line)
                if kind not in shortest or len(line) < len(shortest[kind]):
                    shortest[kind] = line
    return [*shortest.values(), *split(traffic(1, lines=60, text="mixed"))]


@pytest.mark.parametrize("seed", range(8 if long_tests.LONG else 3))
def test_mutated_lines(seed: int) -> None:
    lines = list(mutants(seeds(), seed, 1_000))
    for line in lines:
        assert peek(line) == checked_kind(line.removeprefix(BOM)), line
    block = b"\n".join([b"{}", *lines, b"{}"])
    expected = [NONE, *map(checked_kind, lines), NONE]
    assert peek_lines(block) == _peek_lines(block, plain=True) == expected


tokens = st.sampled_from(
    [
        *[b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b" ", b"\r", b"x", b"1", b"\xff", b"\x00", b"null"],
        *[b"\\u0074", b"\\ud83d", b"\\ude00", b'"a"', b'"type"', b'"\\u0074ype"', b'"subtype"', b'"event"', b'"delta"'],
        *[b'"content_block"', b'"request"', b'"response"', b'{"type":', b'"type":"stream_event",', b'"event":{'],
        *[b'"delta":{', b'"stream_event"', b'"type":"control_request",', b'"request":{', b'"response":{'],
        *[b'"content_block":{', b'"subtype":"s"'],
    ]
)
pieces = st.lists(tokens, max_size=30).map(b"".join)


keys = st.sampled_from(
    [
        *[b"type", b"type", b"subtype", b"event", b"delta", b"content_block", b"request", b"response", b"a"],
        *[rb"\u0074ype", rb"\u0065vent", rb"d\u0065lta", rb"typ\x", rb"\ud83d", b"\xff"],
    ]
)
leaves = st.sampled_from(
    [
        *[b'"stream_event"', b'"control_request"', b'"control_response"', b'"a"', b'"b"', rb'"\u0061"', b"null", b"1"],
        *[b"[]", b"{}", rb'"\ud83d"', rb'"\x"', b'"\xff"', b'"\x01"', b"[}", b"{1}", b"", b'[{"type":"x"}]'],
    ]
)
spaces = st.sampled_from([b"", b"", b" ", b"\t\r "])


@st.composite
def objects(draw: st.DrawFn, depth: int = 0) -> bytes:
    """JSON objects with valid structure, whose leaves may be invalid."""
    members: list[bytes] = []
    for _ in range(draw(st.integers(0, 4))):
        key, space = draw(keys), draw(spaces)
        value = draw(objects(depth + 1)) if depth < 3 and draw(st.booleans()) else draw(leaves)
        members.append(space + b'"' + key + b'"' + space + b":" + value + space)
    return b"{" + b",".join(members) + b"}"


@given(st.binary(max_size=100).map(lambda data: data.replace(b"\n", b"")) | pieces | objects())
@example(b'{"event":{"delta":{}},"type":"stream_event"}')
def test_anything(line: bytes) -> None:
    expected = checked_kind(line.removeprefix(BOM))
    assert peek(line) == expected
    assert peek_lines(line) == ([expected] if line.removeprefix(BOM) else [])
    assert peek_lines(line + b"\n" + line + b"\n") == [expected, checked_kind(line)]
    assert _peek_lines(line + b"\n", plain=True) == [expected]


@given(st.lists(pieces | objects() | st.just(b""), max_size=8))
def test_any_lines(lines: list[bytes]) -> None:
    block = b"".join(line + b"\n" for line in lines)
    expected = [checked_kind(line.removeprefix(BOM) if number == 0 else line) for number, line in enumerate(lines)]
    assert peek_lines(block) == _peek_lines(block, plain=True) == expected


def test_every_cut_of_a_line_is_unclear() -> None:
    for line in seeds():
        whole = line.rstrip(b" \t\r")
        if checked_kind(whole)[0] is not None:
            for end in range(len(whole)):
                assert peek(whole[:end]) == NONE, whole[:end]


# --- A byte order mark ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [b'{"type":"system","subtype":"init"}', b'{"type":"keep_alive"}', b"[]", b"", b"x"])
def test_a_byte_order_mark_is_passed_over_as_by_decode(line: bytes) -> None:
    assert peek(BOM + line) == peek(bytearray(BOM + line)) == peek(memoryview(BOM + line)) == peek(line)
    assert peek("\ufeff" + line.decode()) == peek(line)
    assert peek(BOM + line + b"\n") == peek(line)
    if line.startswith(b"{"):
        message = decode(BOM + line)
        assert message == decode(line)
        assert peek(BOM + line).type == message.to_dict()["type"]
    assert peek_lines(BOM + line + b"\n" + line + b"\n") == [peek(line)] * 2
    assert Decoder().feed(BOM + line + b"\n") == Decoder().feed(line + b"\n") or not line.startswith(b"{")


def test_only_one_byte_order_mark_at_the_very_start_is_passed_over() -> None:
    line = b'{"type":"keep_alive"}'
    assert peek(BOM + BOM + line) == peek(b" " + BOM + line) == peek(BOM[:2] + line) == NONE
    assert peek_lines(line + b"\n" + BOM + line) == [("keep_alive", None, None), NONE]
