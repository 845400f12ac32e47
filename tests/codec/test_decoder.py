"""The decoder: any stream at any chunking becomes the same messages, and a bad line costs only itself."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from claude_wire import (
    AssistantMessage,
    ControlRequest,
    Decoder,
    DecoderStats,
    HandleError,
    InitMessage,
    InvalidLine,
    InvalidLineError,
    KeepAlive,
    Kind,
    Message,
    PermissionReply,
    ResultMessage,
    ResultSuccess,
    StreamEvent,
    TextBlock,
    UnknownMessage,
    UserMessage,
    decode,
)
from claude_wire.limits import BLOCK_BYTES
from interrupts import MODULES, at_each_line, interrupted

BOM = b"\xef\xbb\xbf"

#: One line of each way through the decoder: typed at once, by its subtype, learned, in pieces, repaired, invalid.
EVENT = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}}'
)
ASSISTANT = '{"type":"assistant","message":{"content":[{"type":"text","text":"é\u2028\U0001f600"}]}}'.encode()
INIT = b'{"type":"system","subtype":"init","cwd":"/"}'
RESULT = b'{"type":"result","subtype":"success","is_error":false}'
NEW_TYPE = b'{"type":"a_type_of_tomorrow","x":[1,2]}'
NEW_BLOCK = b'{"type":"assistant","message":{"content":[{"type":"a_block_of_tomorrow"}]}}'
LONE = b'{"type":"user","message":{"role":"user","content":"\\ud83d"}}'
KEEP_ALIVE = b'{"type":"keep_alive"}'

#: Lines that are no JSON object, by what is wrong with them; each reason names it.
BAD = {
    "no JSON": (b"Warning: something", "not JSON"),
    "an array": (b"[1]", "not an object but an array"),
    "a string": (b'"a"', "not an object but a string"),
    "a number": (b"7", "not an object but a number"),
    "a fraction": (b"7.5", "not an object but a number"),
    "null": (b"null", "not an object but null"),
    "true": (b"true", "not an object but true or false"),
    "an object cut short": (b'{"type":"user"', "not JSON"),
    "two objects": (KEEP_ALIVE + KEEP_ALIVE, "not JSON"),
    "two objects with a space": (KEEP_ALIVE + b" " + KEEP_ALIVE, "not JSON"),
    "text after the object": (KEEP_ALIVE + b"}", "not JSON"),
    "NaN": (b'{"type":"keep_alive","x":NaN}', "not JSON: NaN is no number"),
    "an infinity": (b'{"type":"keep_alive","x":-Infinity}', "not JSON: -Infinity is no number"),
    "a raw control character": (b'{"type":"user","x":"\x01"}', "not JSON"),
    "a CR within a string": (b'{"type":"user","x":"\r"}', "not JSON"),
    "a wrong escape": (b'{"type":"user","x":"\\x"}', "not JSON"),
    "single quotes": (b"{'type':'user'}", "not JSON"),
    "a trailing comma": (b'{"type":"user",}', "not JSON"),
    "a leading zero": (b'{"type":"user","x":01}', "not JSON"),
    "nested too deeply": (b'{"type":"user","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    "a byte that is not UTF-8": (b'{"type":"user\xff"}', "not UTF-8 at byte 13 of the line"),
    "an encoded surrogate": (b'{"type":"user","x":"\xed\xa0\xbd"}', "not UTF-8 at byte 20 of the line"),
    "an overlong form": (b'{"type":"user","x":"\xc0\xaf"}', "not UTF-8 at byte 20 of the line"),
    "a character cut short": (b'{"type":"user","x":"\xf0\x9f"}', "not UTF-8 at byte 20 of the line"),
    "two types": (b'{"type":"user","type":"assistant","message":{}}', "'type' has two values"),
    "a block of two types, the second unknown": (
        b'{"type":"assistant","message":{"content":[{"type":"text","type":"new","text":"a"}]}}',
        "'type' has two values",
    ),
    "a block of two types, the first unknown": (
        b'{"type":"assistant","message":{"content":[{"type":"new","type":"text","text":"a"}]}}',
        "'type' has two values",
    ),
    "a block of two unknown types": (
        b'{"type":"assistant","message":{"content":[{"type":"new","type":"newer"}]}}',
        "'type' has two values",
    ),
    "two subtypes": (b'{"type":"system","subtype":"init","subtype":"status"}', "'subtype' has two values"),
}


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def decoded(chunks: Iterable[bytes], decoder: Decoder[Any] | None = None) -> list[Any]:
    decoder = Decoder() if decoder is None else decoder
    return [message for chunk in chunks for message in decoder.feed(chunk)] + decoder.close()


def chunkings(stream: bytes) -> Iterator[list[bytes]]:
    """Whole, byte by byte, cut once at every position, and in three."""
    yield [stream]
    yield list(in_pieces(stream, 1))
    for cut in range(1, len(stream)):
        yield [stream[:cut], stream[cut:]]
    third = max(1, len(stream) // 3)
    yield list(in_pieces(stream, third))


# --- Chunking ---------------------------------------------------------------------------------------------------------

STREAMS = {
    "empty": b"",
    "one of each way": b"\n".join([EVENT, ASSISTANT, INIT, RESULT, NEW_TYPE, NEW_BLOCK, LONE, KEEP_ALIVE]) + b"\n",
    "no last line feed": EVENT + b"\n" + RESULT,
    "a last line cut short": EVENT + b"\n" + RESULT[:-3],
    "CR LF and blank lines": b"\r\n \t\n" + INIT + b"\r\n\n" + RESULT + b"\r\n\n",
    "BOM": BOM + INIT + b"\n" + EVENT + b"\n",
    "bad lines between": b"\n".join([EVENT, b"Warning", INIT, b'{"type":"user\xff"}', b"[]", RESULT, b"{", EVENT])
    + b"\n",
    "two on a line and one over two": KEEP_ALIVE * 2 + b'\n{"type":\n"keep_alive"}\n' + EVENT + b"\n",
}


@pytest.mark.parametrize("kind", [Message, dict], ids=["typed", "dict"])
@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
class TestEveryChunking:
    def test_gives_the_same_messages(self, stream: bytes, kind: Any) -> None:
        expected = decoded([stream], Decoder(kind))
        for chunks in chunkings(stream):
            assert decoded(chunks, Decoder(kind)) == expected, [len(chunk) for chunk in chunks][:5]

    def test_gives_the_same_counts(self, stream: bytes, kind: Any) -> None:
        whole = Decoder(kind)
        decoded([stream], whole)
        assert whole.stats.bytes == len(stream)
        for chunks in ([bytes([byte]) for byte in stream], list(in_pieces(stream, 7))):
            decoder = Decoder(kind)
            decoded(chunks, decoder)
            assert decoder.stats == whole.stats

    def test_with_trailing_data(self, stream: bytes, kind: Any) -> None:
        # What comes later changes nothing that was complete before.
        complete = Decoder(kind).feed(stream)
        for trailing in (b"\n", b"{", KEEP_ALIVE + b"\n", b"\xff"):
            assert Decoder(kind).feed(stream + trailing)[: len(complete)] == complete, trailing


def test_messages_come_with_the_chunk_that_completes_their_line() -> None:
    decoder = Decoder()
    assert decoder.feed(KEEP_ALIVE) == []
    assert decoder.feed(b"\n" + KEEP_ALIVE + b"\n" + INIT[:5]) == [KeepAlive(), KeepAlive()]
    assert decoder.feed(INIT[5:]) == []
    assert decoder.close() == [InitMessage(cwd="/")]


def test_messages_keep_their_order_whichever_way_each_was_decoded() -> None:
    lines = [EVENT, NEW_TYPE, ASSISTANT, b"bad", INIT, LONE, NEW_BLOCK, RESULT]
    for order in itertools.islice(itertools.permutations(lines), 0, None, 977):
        expected = [message for line in order for message in decoded([line + b"\n"])]
        found = decoded([b"\n".join(order) + b"\n"])
        assert [type(message) for message in found] == [type(message) for message in expected]
        assert [message for message in found if not isinstance(message, InvalidLine)] == [
            message for message in expected if not isinstance(message, InvalidLine)
        ]


def test_a_stream_longer_than_a_block() -> None:
    stream = (EVENT + b"\n") * 3000 + b"bad\n" + (ASSISTANT + b"\n") * 3000
    found = decoded([stream])
    assert [type(message) for message in found] == [StreamEvent] * 3000 + [InvalidLine] + [AssistantMessage] * 3000


def test_after_close_a_new_stream_begins() -> None:
    decoder = Decoder()
    decoder.feed(BOM + b"{}\nbad")
    assert [(line.line_number, line.offset) for line in decoder.close()] == [(2, 6)]
    assert decoder.close() == []
    (bad,) = decoder.feed(BOM + b"bad\n")
    assert isinstance(bad, InvalidLine)
    assert (bad.line_number, bad.offset, bad.raw) == (1, 3, b"bad")


# --- What is a line ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(separator: str) -> None:
    text = f"one{separator}two"
    line = json.dumps(
        {"type": "user", "message": {"role": "user", "content": text}}, ensure_ascii=separator < " "
    ).encode()
    (message,) = decoded([line + b"\n"])
    assert isinstance(message, UserMessage)
    assert message.text == text


def test_a_lone_carriage_return_ends_no_line() -> None:
    (bad,) = decoded([KEEP_ALIVE + b"\r" + KEEP_ALIVE + b"\n"])
    assert isinstance(bad, InvalidLine)
    assert decoded([b'{"type":\r"keep_alive"}\n']) == [KeepAlive()]


def test_one_carriage_return_before_the_line_feed_is_ignored() -> None:
    assert decoded([KEEP_ALIVE + b"\r\n" + INIT + b"\r\n" + NEW_BLOCK + b"\r\n"]) == [
        *decoded([KEEP_ALIVE + b"\n" + INIT + b"\n" + NEW_BLOCK + b"\n"])
    ]


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \n", b"\t\n", b" \t \r\n", b"\n\n\n"])
@pytest.mark.parametrize("kind", [Message, dict])
def test_blank_lines_are_skipped_and_counted_as_lines_of_the_stream(blank: bytes, kind: Any) -> None:
    decoder = Decoder(kind)
    found = decoded([blank + KEEP_ALIVE + b"\n" + blank + b"bad\n" + blank], decoder)
    assert len(found) == 2
    assert found[1].line_number == 2 * blank.count(b"\n") + 2
    assert found[1].offset == 2 * len(blank) + len(KEEP_ALIVE) + 1
    assert decoder.stats.lines == 2


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_byte_order_mark_at_the_start_is_skipped(size: int) -> None:
    assert decoded(in_pieces(BOM + INIT + b"\n" + KEEP_ALIVE + b"\n", size)) == [InitMessage(cwd="/"), KeepAlive()]


def test_a_byte_order_mark_alone_is_no_line() -> None:
    assert decoded(in_pieces(BOM, 1)) == []


def test_whitespace_around_the_object_is_json() -> None:
    assert decoded([b" \t" + KEEP_ALIVE + b" \t\n", b'{ "type" :\t"keep_alive" }\n']) == [KeepAlive(), KeepAlive()]


@pytest.mark.parametrize("kind", [Message, dict])
def test_a_whole_last_line_without_line_feed_is_decoded_by_close(kind: Any) -> None:
    decoder = Decoder(kind)
    assert decoder.feed(INIT + b"\n" + NEW_TYPE) == decoded([INIT + b"\n"], Decoder(kind))
    assert decoder.close() == decoded([NEW_TYPE + b"\n"], Decoder(kind))
    assert decoder.stats.invalid == 0


@pytest.mark.parametrize("kind", [Message, dict])
def test_a_last_line_cut_anywhere_is_reported_as_truncated(kind: Any) -> None:
    for cut in range(1, len(RESULT)):
        decoder = Decoder(kind)
        assert len(decoder.feed(KEEP_ALIVE + b"\n" + RESULT[:cut])) == 1
        (bad,) = decoder.close()
        assert isinstance(bad, InvalidLine)
        assert bad.reason.startswith("truncated")
        assert (bad.raw, bad.line_number, bad.offset) == (RESULT[:cut], 2, len(KEEP_ALIVE) + 1)


def test_only_an_unterminated_line_is_called_truncated() -> None:
    (bad,) = decoded([RESULT[:20] + b"\n"])
    assert not bad.reason.startswith("truncated")


# --- What may be fed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Message, dict])
@pytest.mark.parametrize(
    "wrap",
    [
        bytes,
        bytearray,
        memoryview,
        lambda data: memoryview(bytearray(data)),
        lambda data: memoryview(b"__" + data + b"__")[2:-2],
        type("Bytes", (bytes,), {}),
    ],
    ids=["bytes", "bytearray", "view", "writable view", "slice", "subclass"],
)
def test_any_contiguous_bytes_may_be_fed(wrap: Callable[[bytes], Any], kind: Any) -> None:
    stream = STREAMS["bad lines between"]
    for size in (1, 50, len(stream)):
        chunks = [wrap(chunk) for chunk in in_pieces(stream, size)]
        decoder = Decoder(kind)
        assert decoded(chunks, decoder) == decoded([stream], Decoder(kind))
        assert decoder.stats.bytes == len(stream)


def test_a_view_of_larger_items_is_counted_in_bytes() -> None:
    decoder = Decoder()
    decoder.feed(memoryview(b"{}\n ").cast("I"))
    assert decoder.stats.bytes == 4


def test_messages_do_not_read_from_the_memory_that_was_fed() -> None:
    data = bytearray(ASSISTANT + b"\n" + NEW_TYPE + b"\nbad\n" + ASSISTANT)
    decoder = Decoder()
    found = decoder.feed(data)
    expected = decoded([bytes(data[: len(ASSISTANT) + len(NEW_TYPE) + 6])])
    data[:] = b"x" * len(data)
    data.clear()
    assert found == expected
    assert decoder.close() == decoded([ASSISTANT])


def test_str_is_refused_with_advice() -> None:
    with pytest.raises(TypeError, match="takes bytes, not str; encode it as UTF-8 first"):
        Decoder().feed("{}\n")


@pytest.mark.parametrize("data", [None, 3, ["{}"], object()])
def test_what_has_no_bytes_is_refused(data: Any) -> None:
    with pytest.raises(TypeError, match=f"not {type(data).__name__}"):
        Decoder().feed(data)


def test_a_view_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        Decoder().feed(memoryview(b"{}\n{}\n")[::2])


def test_a_refused_argument_changes_nothing() -> None:
    decoder = Decoder()
    decoder.feed(KEEP_ALIVE[:5])
    before = decoder.stats
    for data in ("}\n", None, memoryview(b"}\n\n")[::2]):
        with pytest.raises((TypeError, ValueError)):
            decoder.feed(data)
    assert decoder.stats == before
    assert decoder.feed(KEEP_ALIVE[5:] + b"\n") == [KeepAlive()]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"type": list}, TypeError, "type must be Message or dict"),
        ({"type": AssistantMessage}, TypeError, "type must be Message or dict"),
        ({"type": dict[str, Any]}, TypeError, "type must be Message or dict"),
        ({"on_invalid": "ignore"}, ValueError, "on_invalid must be"),
        ({"on_invalid": None}, ValueError, "on_invalid must be"),
        ({"surrogates": "strict"}, ValueError, "surrogates must be 'keep' or 'replace', not 'strict'"),
        ({"type": dict, "surrogates": "ignore"}, ValueError, "surrogates must be"),
        ({"loads": json.loads}, TypeError, "loads is for type=dict"),
        ({"coalesce": "yes"}, TypeError, "coalesce must be True or False, not 'yes'"),
        ({"type": dict, "loads": "orjson"}, TypeError, "loads must be a function, not str"),
        ({"max_line_bytes": 0}, ValueError, "at least 1"),
        ({"max_line_bytes": -1}, ValueError, "at least 1"),
        ({"strict": True}, TypeError, "strict"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Decoder(**arguments)


# --- Bad lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "reason"), BAD.values(), ids=BAD)
class TestBadLine:
    def test_is_reported_in_its_place(self, line: bytes, reason: str) -> None:
        for chunks in ([b"\n".join([EVENT, line, RESULT, b""])], [EVENT + b"\n", line + b"\n", RESULT + b"\n"]):
            before, bad, after = decoded(chunks)
            assert isinstance(bad, InvalidLine)
            assert bad.reason.startswith(reason)
            assert (bad.raw, bad.length, bad.line_number, bad.offset) == (line, len(line), 2, len(EVENT) + 1)
            assert [before, after] == decoded([EVENT + b"\n" + RESULT + b"\n"])

    def test_costs_only_itself(self, line: bytes, reason: str) -> None:
        # Neighbours of every kind, learned types among them, in one chunk.
        lines = [EVENT, ASSISTANT, INIT, RESULT, NEW_TYPE, NEW_BLOCK, LONE]
        expected = decoded([b"\n".join(lines) + b"\n"])
        for at in range(len(lines) + 1):
            found = decoded([b"\n".join([*lines[:at], line, *lines[at:]]) + b"\n"])
            assert isinstance(found.pop(at), InvalidLine)
            assert found == expected

    def test_raises_from_decode(self, line: bytes, reason: str) -> None:
        with pytest.raises(InvalidLineError) as caught:
            decode(line)
        assert caught.value.line.raw == line
        assert caught.value.line.reason.startswith(reason)


#: What json.loads makes of a line is the caller's choice; it takes NaN.
BAD_FOR_JSON = {name: bad for name, bad in BAD.items() if "no number" not in bad[1] and "two values" not in bad[1]}


@pytest.mark.parametrize(("line", "reason"), BAD_FOR_JSON.values(), ids=BAD_FOR_JSON)
@pytest.mark.parametrize("loads", [None, json.loads], ids=["msgspec", "json"])
def test_a_bad_line_is_reported_in_its_place_as_dicts_too(line: bytes, reason: str, loads: Any) -> None:
    before, bad, after = decoded([b"\n".join([EVENT, line, RESULT, b""])], Decoder(dict, loads=loads))
    assert (before, after) == (json.loads(EVENT), json.loads(RESULT))
    assert isinstance(bad, InvalidLine)
    assert bad.reason.startswith(reason)
    assert bad.raw == line


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_json_number_is_refused_unless_the_callers_loads_takes_it(name: str) -> None:
    line = f'{{"a":{name}}}\n'.encode()
    (bad,) = Decoder(dict).feed(line)
    assert isinstance(bad, InvalidLine)
    assert bad.reason == f"not JSON: {name} is no number"
    (value,) = Decoder(dict, loads=json.loads).feed(line)
    assert isinstance(value, dict)


def test_a_byte_order_mark_later_than_at_the_start_is_no_json() -> None:
    for kind in (Message, dict):
        found = decoded([b"\n".join([KEEP_ALIVE, BOM + KEEP_ALIVE, KEEP_ALIVE, b""])], Decoder(kind))
        assert [type(item) is InvalidLine for item in found] == [False, True, False]


def test_a_tag_that_is_given_twice_with_one_value_is_valid() -> None:
    same = b'{"type":"keep_alive","x":0,"type":"keep_alive"}'
    assert decoded([same + b"\n"]) == [KeepAlive()]
    block = b'{"type":"assistant","message":{"content":[{"type":"text","type":"text","text":"a"}]}}'
    (message,) = decoded([block + b"\n"])
    assert message.content == [TextBlock("a")]
    assert decoded([b'{"type":"system","subtype":"init","cwd":"/","subtype":"init"}\n']) == [InitMessage(cwd="/")]


def test_a_key_with_two_values_has_the_last_of_them_where_it_does_not_tell_what_an_object_is() -> None:
    # Nobody knows whether a type that is unknown has subtypes; a tool's input is the tool's own.
    unheard_of = b'{"type":"unheard_of","subtype":"a","subtype":"b"}'
    tool_use = (
        b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"n","input":'
        b'{"type":"a","type":"b"}},{"type":"unheard_of"}]}}'
    )
    for _ in range(2):
        first, second = decoded([unheard_of + b"\n", tool_use + b"\n"])
        assert first == {"type": "unheard_of", "subtype": "b"}
        assert isinstance(second, AssistantMessage)
        assert second.tool_uses[0].input == {"type": "b"}


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"keep_alive","type":"b"}',
        b'{"type":"b","type":"keep_alive"}',
        b'{"type":"unheard_of","type":"unheard_of_either"}',
        b'{"type":"result","subtype":"success","subtype":"error"}',
        b'{"type":"result","subtype":"a","subtype":"b"}',
        b'{"type":"system","subtype":"status","subtype":"unheard_of"}',
        b'{"type":"assistant","message":{"content":[{"type":"text","type":"thinking","text":"a","thinking":"b"}]}}',
        b'{"type":"assistant","message":{"content":[{"type":"unheard_of","type":"text","text":"a"}]}}',
        b'{"type":"stream_event","event":{"type":"ping","type":"message_stop"}}',
        b'{"type":"control_request","request_id":"1","request":{"subtype":"interrupt","subtype":"initialize"}}',
        b'{"type":"control_response","response":{"subtype":"success","subtype":"error","request_id":"1","error":""}}',
    ],
)
def test_a_tag_with_two_values_makes_the_line_invalid_first_and_later(line: bytes) -> None:
    decoder = Decoder()
    # The type alone in between, so that an unknown one has been seen before the second time.
    between = b'{"type":"unheard_of"}'
    first, _, second = decoder.feed(b"\n".join([line, between, line, b""]))
    for bad in (first, second):
        assert isinstance(bad, InvalidLine)
        assert bad.reason in ("'type' has two values", "'subtype' has two values")
    assert isinstance(decoder.feed(line + b"\n")[0], InvalidLine)


def test_of_a_tag_with_two_values_a_dict_has_the_last_as_in_json() -> None:
    line = b'{"type":"a","type":"b"}\n'
    assert Decoder(dict).feed(line) == [json.loads(line)] == [{"type": "b"}]


@pytest.mark.parametrize("kind", [Message, dict])
def test_two_errors_that_cancel_out_in_number_are_found(kind: Any) -> None:
    # Two objects on a line, and one object over two lines: three lines with braces at the right ends, three objects.
    two, first, second = KEEP_ALIVE + KEEP_ALIVE, b'{"type":"user","a":{}', b',"b":{}}'
    assert json.loads(first + second)
    cancelling = [two, first, second]
    for order in (cancelling, [first, second, two]):
        for chunks in ([b"\n".join([EVENT, *order, RESULT, b""])], [line + b"\n" for line in [EVENT, *order, RESULT]]):
            found = decoded(chunks, Decoder(kind))
            assert [item.raw for item in found[1:-1]] == order
            assert [found[0], found[-1]] == decoded([EVENT + b"\n" + RESULT + b"\n"], Decoder(kind))


@pytest.mark.parametrize("kind", [Message, dict])
def test_an_object_over_two_lines_with_braces_at_all_ends_is_two_bad_lines(kind: Any) -> None:
    # Only an object within an array leaves braces at both sides of a cut; each half is no JSON.
    halves = [b'{"type":"user","a":[{}', b"{}]}"]
    found = decoded([b"\n".join([KEEP_ALIVE, *halves, KEEP_ALIVE * 2, KEEP_ALIVE, b""])], Decoder(kind))
    assert [type(item) is InvalidLine for item in found] == [False, True, True, True, False]


def test_bytes_that_are_not_utf8_are_found_in_fields_that_no_one_reads() -> None:
    # msgspec does not look at the bytes of what it skips.
    for line in (
        b'{"type":"keep_alive","x":"\xff"}',
        b'{"type":"keep_alive","\xff":1}',
        b'{"x":"\xed\xa0\xbd","type":"keep_alive"}',
    ):
        assert isinstance(decoded([line + b"\n"])[0], InvalidLine)
        found = decoded([KEEP_ALIVE + b"\n" + line + b"\n" + KEEP_ALIVE + b"\n"])
        assert [type(item) for item in found] == [KeepAlive, InvalidLine, KeepAlive]
        for chunks in chunkings(line + b"\n"):
            assert isinstance(decoded(chunks)[0], InvalidLine)
        with pytest.raises(InvalidLineError, match="not UTF-8"):
            decode(line)


def test_numbers_out_of_range_are_no_numbers() -> None:
    user = b'{"type":"user","message":{"role":"user","content":""},"tool_use_result":%s}'
    for digits in (b"1e400", b"-1e400", b"9" * 5000):
        before, bad, after = decoded([b"\n".join([KEEP_ALIVE, user % digits, KEEP_ALIVE, b""])])
        assert (before, after) == (KeepAlive(), KeepAlive())
        assert bad.reason == "a number is out of range"


@pytest.mark.parametrize("digits", ["18446744073709551615", "18446744073709551616", "-9223372036854775809", "9" * 400])
def test_whole_numbers_of_any_size_are_read_exactly(digits: str) -> None:
    line = f'{{"type":"user","message":{{"role":"user","content":""}},"tool_use_result":{digits}}}\n'.encode()
    assert decoded([line])[0].tool_use_result == int(digits)
    assert decoded([line], Decoder(dict))[0]["tool_use_result"] == int(digits)


@pytest.mark.parametrize("kind", [Message, dict])
def test_nesting_that_fits_is_read(kind: Any) -> None:
    deep = b"[" * 200 + b"]" * 200
    (message,) = decoded([b'{"type":"new","x":' + deep + b"}\n"], Decoder(kind))
    assert json.dumps(message["x"]).encode() == deep


# --- on_invalid -------------------------------------------------------------------------------------------------------


def test_raise_carries_the_messages_before_and_the_next_call_goes_on_after_the_line() -> None:
    decoder = Decoder(on_invalid="raise")
    with pytest.raises(InvalidLineError) as caught:
        decoder.feed(KEEP_ALIVE + b"\nbad\n" + INIT + b"\n" + RESULT[:7])
    assert caught.value.messages == [KeepAlive()]
    assert caught.value.line == InvalidLine(b"bad", 2, len(KEEP_ALIVE) + 1, caught.value.line.reason)
    assert decoder.feed(RESULT[7:] + b"\n") == [InitMessage(cwd="/"), ResultSuccess(is_error=False)]
    assert decoder.feed(b"") == []


def test_what_a_call_has_held_back_comes_first_in_the_next_and_once() -> None:
    decoder = Decoder(on_invalid="raise")
    for _ in range(3):
        with pytest.raises(InvalidLineError) as caught:
            decoder.feed(KEEP_ALIVE + b"\nbad\n" + INIT + b"\n")
        assert caught.value.messages == [KeepAlive()]
        assert decoder.feed(KEEP_ALIVE + b"\n") == [InitMessage(cwd="/"), KeepAlive()]
        assert decoder.feed(KEEP_ALIVE + b"\n") == [KeepAlive()]


@pytest.mark.parametrize("kind", [Message, dict])
@pytest.mark.parametrize("size", [1, 10, 100, 1000])
def test_raise_loses_nothing_at_any_chunking(kind: Any, size: int) -> None:
    stream = b"\n".join([b"bad 1", EVENT, b"bad 2", b"bad 3", NEW_TYPE, INIT, b"bad 4", RESULT, b"bad 5"])
    decoder: Decoder[Any] = Decoder(kind, on_invalid="raise")
    found = []
    for call in [*in_pieces(stream, size), *[None] * 6]:
        try:
            found += decoder.close() if call is None else decoder.feed(call)
        except InvalidLineError as error:
            found += [*error.messages, error.line]
    assert found == decoded([stream], Decoder(kind))
    assert decoder.stats.invalid == 5


def test_raise_at_close_and_close_again() -> None:
    decoder = Decoder(on_invalid="raise")
    with contextlib.suppress(InvalidLineError):
        decoder.feed(b"bad\n" + KEEP_ALIVE + b"\nworse\n" + KEEP_ALIVE + b"\n{")
    with pytest.raises(InvalidLineError) as caught:
        decoder.close()
    assert (caught.value.messages, caught.value.line.raw) == ([KeepAlive()], b"worse")
    with pytest.raises(InvalidLineError, match="truncated") as caught:
        decoder.close()
    assert (caught.value.messages, caught.value.line.raw) == ([KeepAlive()], b"{")
    assert decoder.close() == []


def test_a_callable_is_called_with_each_in_order_and_nothing_takes_its_place() -> None:
    seen: list[InvalidLine] = []
    decoder = Decoder(on_invalid=seen.append)
    assert decoder.feed(b"bad 1\n" + KEEP_ALIVE + b"\nbad 2\nbad 3\n" + INIT + b"\nbad 4") == [
        KeepAlive(),
        InitMessage(cwd="/"),
    ]
    assert [line.raw for line in seen] == [b"bad 1", b"bad 2", b"bad 3"]
    assert decoder.close() == []
    assert [line.raw for line in seen] == [b"bad 1", b"bad 2", b"bad 3", b"bad 4"]
    assert seen[-1].reason.startswith("truncated")


@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt])
def test_nothing_is_lost_when_the_callable_raises(kind: type[BaseException]) -> None:
    seen: list[InvalidLine] = []

    def complain(line: InvalidLine) -> None:
        seen.append(line)
        raise kind

    decoder = Decoder(on_invalid=complain)
    stream = b"\n".join([EVENT, b"bad 1", KEEP_ALIVE, b"bad 2", INIT, b""])
    with pytest.raises(kind):
        decoder.feed(stream)
    with pytest.raises(kind):
        decoder.feed(RESULT + b"\n")
    assert decoder.feed(b"") == decoded([b"\n".join([EVENT, KEEP_ALIVE, INIT, RESULT, b""])])
    assert [line.raw for line in seen] == [b"bad 1", b"bad 2"]


# --- Lone surrogates --------------------------------------------------------------------------------------------------


def user(text: bytes) -> bytes:
    return b'{"type":"user","message":{"role":"user","content":"' + text + b'"}}\n'


@pytest.mark.parametrize(
    "text",
    [
        rb"\ud83d",
        rb"\ude00",
        rb"a\ud83dz",
        rb"\ud83d\ud83d",
        rb"\ude00\ud83d",
        rb"\ud83dA",
        rb"\ud83d\n",
        rb"\uD83D",
        rb"\ud83d\ud83d\ude00",
        rb"\udfff",
    ],
)
def test_lone_surrogates_are_kept_as_json_keeps_them_or_replaced(text: bytes) -> None:
    line = user(text)
    value = json.loads(line)
    expected = value["message"]["content"]
    replaced = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in expected)
    for surrogates, wanted in (("keep", expected), ("replace", replaced)):
        typed = Decoder(surrogates=surrogates)
        plain = Decoder(dict, surrogates=surrogates)
        assert [message.text for message in decoded([line], typed)] == [wanted]
        assert [value["message"]["content"] for value in decoded([line], plain)] == [wanted]
        assert typed.stats.repaired == plain.stats.repaired == 1
    assert decode(line).text == expected


def test_halves_of_a_pair_in_separate_lines_stay_apart() -> None:
    first, second = decoded([user(rb"\ud83d") + user(rb"\ude00")])
    assert (first.text, second.text) == ("\ud83d", "\ude00")
    assert first.text + second.text != "\U0001f600"


def test_only_lines_that_need_it_are_repaired() -> None:
    whole = [
        user(rb"\ud83d\ude00"),
        user("\U0001f600".encode()),
        user(rb"\\ud83d"),
        user(rb"\u00e9"),
        user("\ufffd".encode()),
    ]
    for surrogates in ("keep", "replace"):
        decoder = Decoder(surrogates=surrogates)
        found = decoded([b"".join([whole[0], user(rb"\ud83d"), *whole[1:]])], decoder)
        assert [message.text for message in found[:1] + found[2:]] == [
            "\U0001f600",
            "\U0001f600",
            "\\ud83d",
            "é",
            "\ufffd",
        ]
        assert decoder.stats.repaired == 1


@pytest.mark.parametrize("kind", [Message, dict])
def test_surrogates_are_replaced_in_keys_and_at_any_depth(kind: Any) -> None:
    line = rb'{"type":"new","\ud83d":[{"a":"\ud83d","\ude00":["\ud83d\ude00"]}]}' + b"\n"
    for surrogates, high, low in (("keep", "\ud83d", "\ude00"), ("replace", "\ufffd", "\ufffd")):
        (message,) = decoded([line], Decoder(kind, surrogates=surrogates))
        assert message == {"type": "new", high: [{"a": high, low: ["\U0001f600"]}]}


@pytest.mark.parametrize("line", [INIT, NEW_BLOCK, NEW_TYPE, RESULT, EVENT])
def test_a_repaired_line_is_the_message_that_it_would_be(line: bytes) -> None:
    decoder = Decoder(surrogates="replace")
    (whole,) = decoded([line[:-1] + b',"uuid":"\xef\xbf\xbd"}\n'])
    assert decoded([line[:-1] + rb',"uuid":"\ud83d"}' + b"\n"], decoder) == [whole]
    assert decoder.stats.repaired == 1


@pytest.mark.parametrize("surrogates", ["keep", "replace"])
@pytest.mark.parametrize(
    "line",
    [
        rb'{"type":"user","type":"keep_alive","x":"\ud83d"}',
        rb'{"type":"system","subtype":"init","subtype":"status","cwd":"\ud83d"}',
        rb'{"type":"assistant","message":{"content":[{"type":"thinking","type":"text","text":"\ud83d"}]}}',
    ],
)
def test_a_tag_with_two_values_is_found_in_a_line_that_needs_repair(line: bytes, surrogates: Any) -> None:
    (bad,) = Decoder(surrogates=surrogates).feed(line + b"\n")
    assert isinstance(bad, InvalidLine)
    assert bad.reason in ("'type' has two values", "'subtype' has two values")
    assert bad.raw == line


def test_a_line_is_counted_as_repaired_once_whatever_its_neighbours_are() -> None:
    # Each neighbour sends the whole block back to be decoded line by line.
    lone = rb'{"type":"system","subtype":"init","cwd":"\ud83d"}'
    for neighbour in (b"bad", b'{"type":"system","subtype":"init","subtype":"status"}', NEW_TYPE, NEW_BLOCK, LONE):
        decoder = Decoder()
        decoder.feed(b"\n".join([lone, neighbour, b""]))
        assert decoder.stats.repaired == 1 + (neighbour == LONE), neighbour


# --- Dicts and loads --------------------------------------------------------------------------------------------------


def test_dicts_are_what_json_reads() -> None:
    lines = [
        EVENT,
        ASSISTANT,
        INIT,
        RESULT,
        NEW_TYPE,
        NEW_BLOCK,
        LONE,
        b'{"a":1.0,"b":-0.0,"c":1e5,"d":[],"":null}',
        b"{}",
    ]
    found = decoded([b"\n".join(lines)], Decoder(dict))
    assert found == [json.loads(line) for line in lines]
    assert {type(value) for value in found} == {dict}
    assert type(found[-2]["a"]) is float


def test_loads_is_called_with_the_bytes_of_each_line() -> None:
    seen = []

    def loads(line: bytes) -> Any:
        seen.append(line)
        return {"line": json.loads(line)}

    decoder = Decoder(dict, loads=loads)
    assert decoded([INIT + b"\n" + RESULT + b"\n" + INIT], decoder) == [
        {"line": json.loads(INIT)},
        {"line": json.loads(RESULT)},
        {"line": json.loads(INIT)},
    ]
    assert seen == [INIT, RESULT, INIT]
    assert {type(line) for line in seen} == {bytes}


def test_orjson_may_do_the_reading() -> None:
    orjson = pytest.importorskip("orjson")
    lines = [EVENT, b"bad", ASSISTANT, LONE, b'{"type":"user\xff"}', b"[1]", RESULT]
    decoder = Decoder(dict, loads=orjson.loads)
    for size in (1, 40, 10_000):
        found = decoded(in_pieces(b"\n".join(lines) + b"\n", size), decoder)
        assert found == decoded([b"\n".join(lines) + b"\n"], Decoder(dict))
    # orjson refuses lone surrogates; the decoder reads that line by itself.
    assert decoder.stats.repaired == 3


@pytest.mark.parametrize("loads", [json.loads, pytest.importorskip("orjson").loads])
@pytest.mark.parametrize("escape", [rb"\ud83d", rb"\uD83D", rb"\uDe00", rb"\udfff", rb"\uDBFF"])
def test_surrogates_are_replaced_whatever_reads_the_line(loads: Any, escape: bytes) -> None:
    decoder = Decoder(dict, loads=loads, surrogates="replace")
    assert decoded([b'{"a":"' + escape + b'"}\n'], decoder) == [{"a": "\ufffd"}]
    assert decoded([b'{"' + escape + b'":"' + escape + b'"}\n{}\n'], decoder) == [{"\ufffd": "\ufffd"}, {}]
    assert decoder.stats.repaired == 2


@pytest.mark.parametrize("answer", [[], None, "text"])
def test_what_loads_makes_of_a_line_is_not_taken_if_it_is_no_dict(answer: Any) -> None:
    alone = Decoder(dict, loads=lambda line: answer).feed(INIT + b"\n")
    beside = Decoder(dict, loads=lambda line: answer).feed(INIT + b"\nbad\n")
    assert alone == beside[:1]
    assert type(alone[0]) in (dict, InvalidLine)


def test_an_exception_that_is_no_error_passes_through_loads_and_the_decoder_goes_on() -> None:
    stop = [True]

    def loads(line: bytes) -> Any:
        if stop and line == RESULT:
            stop.clear()
            raise KeyboardInterrupt
        return json.loads(line)

    decoder = Decoder(dict, loads=loads)
    with pytest.raises(KeyboardInterrupt):
        decoder.feed(RESULT + b"\n")
    assert decoder.feed(INIT + b"\n") == [json.loads(INIT)]


# --- Lines above max_line_bytes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Message, dict])
@pytest.mark.parametrize("size", [1, 100, 4096, 10**9])
@pytest.mark.parametrize("end", [b"\n", b""], ids=["terminated", "unterminated"])
def test_a_line_too_long_is_reported_once_with_its_length_and_head(kind: Any, size: int, end: bytes) -> None:
    long = user(b"0123456789" * 1000)[:-1]
    stream = INIT + b"\n" + long + b"\n" + RESULT + b"\n" + long + end
    decoder = Decoder(kind, max_line_bytes=2000)
    first, dropped, second, dropped_too = decoded(in_pieces(stream, size), decoder)
    assert [first, second] == decoded([INIT + b"\n" + RESULT + b"\n"], Decoder(kind))
    for bad, number in ((dropped, 2), (dropped_too, 4)):
        assert isinstance(bad, InvalidLine)
        assert bad.raw == long[:1024]
        assert bad.length == len(long)
        assert bad.line_number == number
        assert stream[bad.offset :].startswith(bad.raw)
        assert bad.reason == "longer than max_line_bytes"
    assert decoder.stats == DecoderStats(len(stream), 4, 2, 2, 0, 0)


def test_the_limit_itself_is_allowed() -> None:
    for size in (1, 10**6):
        assert decoded(in_pieces(KEEP_ALIVE + b"\n", size), Decoder(max_line_bytes=len(KEEP_ALIVE))) == [KeepAlive()]
        (bad,) = decoded(in_pieces(KEEP_ALIVE + b"\n", size), Decoder(max_line_bytes=len(KEEP_ALIVE) - 1))
        assert bad.length == len(KEEP_ALIVE)


def test_a_line_too_long_goes_the_way_of_on_invalid() -> None:
    stream = KEEP_ALIVE + b"\n" + INIT + b"\n" + KEEP_ALIVE + b"\n"
    seen: list[InvalidLine] = []
    assert decoded([stream], Decoder(max_line_bytes=21, on_invalid=seen.append)) == [KeepAlive(), KeepAlive()]
    assert [line.raw for line in seen] == [INIT]
    decoder = Decoder(max_line_bytes=21, on_invalid="raise")
    with pytest.raises(InvalidLineError) as caught:
        decoder.feed(stream)
    assert (caught.value.messages, caught.value.line) == ([KeepAlive()], seen[0])
    assert decoder.close() == [KeepAlive()]


def test_a_line_too_long_is_dropped_in_bounded_memory() -> None:
    tracemalloc = pytest.importorskip("tracemalloc")
    decoder = Decoder(max_line_bytes=10_000)
    chunk = b"x" * 100_000
    decoder.feed(chunk)
    tracemalloc.start()
    try:
        for _ in range(200):
            assert decoder.feed(chunk) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
    assert decoder._buffer.stats().held <= 20_000  # native memory, which tracemalloc does not see
    (bad,) = decoder.feed(b"\n")
    assert isinstance(bad, InvalidLine)
    assert bad.length == 201 * 100_000


# --- Stats ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Message, dict])
@pytest.mark.parametrize("together", [0, 2], ids=["alone", "mixed"])
@pytest.mark.parametrize("unfinished", [b"", b"{"], ids=["whole", "cut"])
def test_after_the_end_of_a_stream_lines_and_bytes_are_counted_anew(
    kind: Any, together: int, unfinished: bytes
) -> None:
    """Also those that came alone, which the line buffer was not shown."""
    decoder: Decoder[Any] = Decoder(kind)
    for singles in (3, 0, 1, 2):
        stream = b""
        for chunk in [KEEP_ALIVE + b"\n"] * singles + [(KEEP_ALIVE + b"\n") * together] + [KEEP_ALIVE + b"\n"]:
            decoder.feed(chunk)
            stream += chunk
        (bad,) = decoder.feed(b"bad\n")
        assert (bad.line_number, bad.offset) == (stream.count(b"\n") + 1, len(stream))
        stream += b"bad\n"
        assert decoder.feed(unfinished) == []
        cut = decoder.close()
        assert [(bad.line_number, bad.offset) for bad in cut] == [(stream.count(b"\n") + 1, len(stream))][: len(cut)]
        assert len(cut) == len(unfinished)


def test_stats_count_what_was_seen() -> None:
    decoder = Decoder()
    assert decoder.stats == DecoderStats(bytes=0, lines=0, messages=0, invalid=0, unknown=0, repaired=0)
    stream = b"\n".join([EVENT, b"", b"bad", NEW_TYPE, NEW_TYPE, NEW_BLOCK, LONE, b" ", RESULT, b"x"])
    decoder.feed(stream)
    assert decoder.stats == DecoderStats(bytes=len(stream), lines=7, messages=6, invalid=1, unknown=3, repaired=1)
    decoder.close()
    assert decoder.stats == DecoderStats(bytes=len(stream), lines=8, messages=6, invalid=2, unknown=3, repaired=1)


def test_stats_count_a_message_with_several_unknown_parts_once() -> None:
    decoder = Decoder()
    decoder.feed(b'{"type":"assistant","message":{"content":[{"type":"b1"},{"type":"b2"},{"type":"b3"}]}}\n')
    assert decoder.stats.unknown == 1


def test_stats_are_of_one_decoder() -> None:
    one, other = Decoder(), Decoder()
    one.feed(NEW_TYPE + b"\n" + LONE + b"\n")
    assert other.stats == DecoderStats(0, 0, 0, 0, 0, 0)


# --- Whose decoder it is ----------------------------------------------------------------------------------------------


def test_two_threads_at_once_are_refused_and_nothing_is_lost() -> None:
    # The first thread is stopped inside the decoder, by its own callback; the second comes meanwhile.
    entered, leave = threading.Event(), threading.Event()
    found: list[Any] = []

    def hold(line: InvalidLine) -> None:
        entered.set()
        assert leave.wait(30)

    decoder = Decoder(on_invalid=hold)
    first = threading.Thread(target=lambda: found.extend(decoder.feed(KEEP_ALIVE + b"\nbad\n" + INIT + b"\n")))
    first.start()
    try:
        assert entered.wait(30)
        for call in (lambda: decoder.feed(RESULT + b"\n"), decoder.close):
            with pytest.raises(HandleError, match="two threads at the same time"):
                call()
    finally:
        leave.set()
        first.join()
    assert found == [KeepAlive(), InitMessage(cwd="/")]
    assert decoder.feed(RESULT + b"\n") == [ResultSuccess(is_error=False)]


def test_no_thread_slips_in_between_the_look_at_a_decoder_and_the_use_of_it() -> None:
    # Threads change places at calls. At the n-th call within feed() another one comes, and stays.
    def slips_in_at(number: int) -> bool:
        entered, leave = threading.Event(), threading.Event()
        mine, others = b'{"a":"mine"}', b'{"a":"another\'s"}'
        found: dict[str, Any] = {}

        def loads(line: bytes) -> Any:
            if line == others:
                entered.set()
                assert leave.wait(30)
            return json.loads(line)

        decoder = Decoder(dict, loads=loads)

        def feed(line: bytes) -> None:
            try:
                found[threading.current_thread().name] = decoder.feed(line + b"\n")
            except HandleError:
                found[threading.current_thread().name] = None
            finally:
                entered.set()

        second = threading.Thread(target=feed, args=[others], name="second")
        calls = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal calls
            if event == "call" and frame.f_code.co_filename.endswith(MODULES):
                calls += 1
                if calls == number:
                    sys.settrace(None)
                    second.start()
                    assert entered.wait(30)
            return None

        def traced() -> None:
            sys.settrace(trace)
            feed(mine)

        first = threading.Thread(target=traced, name="first")
        first.start()
        first.join(30)
        leave.set()
        if calls < number:
            return False
        second.join(30)
        messages = {"first": [json.loads(mine)], "second": [json.loads(others)]}
        assert found in (messages | {"first": None}, messages | {"second": None}), number
        return True

    assert sum(1 for _ in itertools.takewhile(slips_in_at, itertools.count(1))) > 3


def test_one_thread_after_the_other_may_use_it() -> None:
    decoder = Decoder()
    found: list[Any] = []
    for half in (INIT[:10], INIT[10:] + b"\n"):
        thread = threading.Thread(target=lambda half=half: found.extend(decoder.feed(half)))
        thread.start()
        thread.join()
    assert found == [InitMessage(cwd="/")]


def test_its_own_callback_may_not_use_it() -> None:
    refused: list[str] = []

    def reenter(line: InvalidLine) -> None:
        for call in (lambda: decoder.feed(KEEP_ALIVE + b"\n"), decoder.close):
            with pytest.raises(HandleError) as caught:
                call()
            refused.append(str(caught.value))

    decoder = Decoder(on_invalid=reenter)
    assert decoder.feed(INIT + b"\nbad\n" + KEEP_ALIVE + b"\n") == [InitMessage(cwd="/"), KeepAlive()]
    assert len(refused) == 2
    assert "its own on_invalid" in refused[0]


FORK = """
import os, sys
from claude_wire import Decoder, HandleError
def refused(call):
    try:
        call()
    except HandleError as error:
        return "process" in str(error)
    return False
def forked(decoder):
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1] == 0
    ok = refused(lambda: decoder.feed(b"{}\\n")) and refused(lambda: decoder.feed(b"")) and refused(decoder.close)
    # A decoder of its own works, and what the parent had is not touched by the child's end.
    ok = ok and len(Decoder().feed(b"{}\\n")) == 1
    os._exit(not ok)
idle = Decoder()
idle.feed(b'{"type":"keep')
assert forked(idle)
assert len(idle.feed(b'_alive"}\\n')) == 1
# Forked in the middle of a call, so that the child inherits the decoder in use.
answers = []
busy = Decoder(on_invalid=lambda line: answers.append(forked(busy)))
assert busy.feed(b"bad\\n") == []
assert answers == [True]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_is_refused_and_the_parent_goes_on() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True, timeout=60)


def test_left_as_a_context_manager_it_is_closed() -> None:
    with Decoder() as decoder:
        assert decoder.feed(KEEP_ALIVE + b"\n") == [KeepAlive()]
    for call in (lambda: decoder.feed(KEEP_ALIVE + b"\n"), decoder.close):
        with pytest.raises(HandleError, match="closed"):
            call()
    assert decoder.stats.messages == 1


def test_an_exception_passes_through_the_context_manager() -> None:
    with pytest.raises(KeyError), Decoder():
        raise KeyError


# --- decode: one line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap", [bytes, bytearray, memoryview, lambda line: line.decode()], ids=["bytes", "bytearray", "view", "str"]
)
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("line", [EVENT, ASSISTANT, INIT, RESULT, NEW_TYPE, NEW_BLOCK, LONE])
def test_decode_takes_a_line_with_or_without_its_end(line: bytes, end: bytes, wrap: Callable[[bytes], Any]) -> None:
    assert [decode(wrap(line + end))] == decoded([line + b"\n"])


def test_decode_takes_a_str_with_raw_surrogates() -> None:
    assert decode('{"type":"user","message":{"role":"user","content":"\ud83d"}}').text == "\ud83d"


def test_decode_skips_a_byte_order_mark() -> None:
    assert decode(BOM + KEEP_ALIVE) == decode("\ufeff" + KEEP_ALIVE.decode()) == KeepAlive()


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_decode_raises_with_the_line_but_not_its_line_feed(end: bytes) -> None:
    with pytest.raises(InvalidLineError) as caught:
        decode(b"bad" + end)
    assert caught.value.line.raw == b"bad" + end.removesuffix(b"\n")
    assert (caught.value.line.line_number, caught.value.line.offset, caught.value.messages) == (1, 0, [])


@pytest.mark.parametrize(
    "line", [b"", b"\n", b" \t\r\n", KEEP_ALIVE + b"\n" + KEEP_ALIVE, KEEP_ALIVE + b"\n" + KEEP_ALIVE + b"\n"]
)
def test_decode_refuses_what_is_not_one_line(line: bytes) -> None:
    with pytest.raises(InvalidLineError):
        decode(line)


@pytest.mark.parametrize("line", [None, 5, [123, 125], {"type": "keep_alive"}])
def test_decode_refuses_what_is_neither_bytes_nor_str(line: Any) -> None:
    with pytest.raises(TypeError, match=type(line).__name__):
        decode(line)


def test_what_a_line_decodes_to() -> None:
    classes = {
        EVENT: StreamEvent,
        ASSISTANT: AssistantMessage,
        INIT: InitMessage,
        RESULT: ResultSuccess,
        NEW_TYPE: UnknownMessage,
        NEW_BLOCK: AssistantMessage,
        LONE: UserMessage,
        b'{"type":"result","subtype":"of_tomorrow"}': ResultMessage,
        b'{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}': ControlRequest,
        b'{"allow": true}': PermissionReply,
        b"{}": UnknownMessage,
    }
    for line, cls in classes.items():
        assert type(decode(line)) is cls


# --- A line among others, and a line alone -------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [b"bad", NEW_BLOCK, LONE, b"", KEEP_ALIVE + KEEP_ALIVE, NEW_TYPE, RESULT])
@pytest.mark.parametrize(
    "places", [[0], [31], [32], [33], [299], [0, 299], [5, 6, 7, 40], range(0, 300, 32), range(300)]
)
def test_odd_lines_of_a_long_block_are_judged_alone_and_change_no_other(odd: bytes, places: Iterable[int]) -> None:
    lines = [odd if index in places else EVENT for index in range(300)]
    stream = b"".join(line + b"\n" for line in lines)
    # The second time the decoder goes more warily from the start.
    decoder = Decoder()
    for start in (0, len(stream)):
        found = decoder.feed(stream)
        expected: list[Any] = []
        offset = start
        for number, line in enumerate(lines, 1 + 300 * (start > 0)):
            if line:
                (item,) = Decoder().feed(line + b"\n")
                if isinstance(item, InvalidLine):
                    item = InvalidLine(item.raw, number, offset, item.reason, kind=item.kind)
                expected.append(item)
            offset += len(line) + 1
        assert found == expected
        assert list(map(type, found)) == list(map(type, expected))


def test_lines_fed_one_by_one_and_many_at_once_are_counted_alike() -> None:
    lines = [KEEP_ALIVE, EVENT, ASSISTANT, b"bad", b"", INIT, KEEP_ALIVE + b"\r", NEW_TYPE, b"bad"]
    chunks = [line + b"\n" for line in lines]
    stream = b"".join(chunks)
    whole = Decoder()
    expected = whole.feed(stream * 3)
    for pattern in (
        chunks * 3,
        [stream, *chunks, stream],
        [*chunks, stream, *chunks],
        [*chunks, stream[:40], stream[40:], *chunks],
    ):
        decoder = Decoder()
        assert decoded(pattern, decoder) == expected
        assert decoder.stats == whole.stats


def test_a_byte_order_mark_is_skipped_at_the_start_only_also_when_lines_come_alone() -> None:
    found = decoded([BOM + KEEP_ALIVE + b"\n", BOM + KEEP_ALIVE + b"\n", KEEP_ALIVE + b"\n", BOM + KEEP_ALIVE + b"\n"])
    assert [type(item) for item in found] == [KeepAlive, InvalidLine, KeepAlive, InvalidLine]


@pytest.mark.parametrize("limit", [len(KEEP_ALIVE), 5_000, BLOCK_BYTES - 3])
def test_a_line_alone_over_the_limit_is_too_long(limit: int) -> None:
    decoder = Decoder(max_line_bytes=limit)
    longest = KEEP_ALIVE[:-1].ljust(limit - 1) + b"}"
    longer = KEEP_ALIVE[:-1].ljust(limit) + b"}"
    found = decoded([longest + b"\n", longest + b"\n", longer + b"\n", KEEP_ALIVE + b"\n"], decoder)
    assert [type(item) for item in found] == [KeepAlive, KeepAlive, InvalidLine, KeepAlive]
    assert (found[2].offset, found[2].line_number, found[2].length) == (2 * limit + 2, 3, limit + 1)


@pytest.mark.parametrize(
    "begun",
    [[b'{"a":'], [b'{"a', b'":'], [b'{}\n{"a":'], [b'{"a":1}\n{"a":', b""], [b'{"a"', b':1}\n{"a":'], [b'{"a":', b" "]],
    ids=range(6),
)
@pytest.mark.parametrize("options", [{}, {"coalesce": True}], ids=["plain", "filtered"])
def test_what_would_be_a_line_is_none_within_another(begun: list[bytes], options: dict[str, Any]) -> None:
    decoder: Decoder[Any] = Decoder(dict, **options)
    decoder.feed(KEEP_ALIVE + b"\n")
    for chunk in begun:
        decoder.feed(chunk)
    (bad,) = decoder.feed(KEEP_ALIVE + b"\n")
    assert isinstance(bad, InvalidLine)
    assert bad.raw == b"".join(begun).rpartition(b"\n")[2] + KEEP_ALIVE


@pytest.mark.parametrize("chunk", [KEEP_ALIVE + b"\n", KEEP_ALIVE + b"\n" + KEEP_ALIVE + b"\n"])
def test_a_second_thread_is_refused_while_loads_runs(chunk: bytes) -> None:
    entered, leave = threading.Event(), threading.Event()

    def loads(line: bytes) -> Any:
        entered.set()
        assert leave.wait(30)
        return json.loads(line)

    decoder: Decoder[Any] = Decoder(dict, loads=loads)
    leave.set()
    decoder.feed(chunk)  # past the start of the stream
    entered.clear()
    leave.clear()
    found: list[Any] = []
    first = threading.Thread(target=lambda: found.extend(decoder.feed(chunk)))
    first.start()
    try:
        assert entered.wait(30)
        for call in (lambda: decoder.feed(chunk), decoder.close):
            with pytest.raises(HandleError, match="two threads"):
                call()
    finally:
        leave.set()
        first.join()
    assert found == [json.loads(KEEP_ALIVE)] * chunk.count(b"\n")
    assert decoder.feed(chunk) == found


@pytest.mark.parametrize("chunk", [KEEP_ALIVE + b"\n", KEEP_ALIVE + b"\n" + KEEP_ALIVE + b"\n"])
def test_loads_that_feeds_its_own_decoder_is_refused(chunk: bytes) -> None:
    refused: list[bytes] = []

    def loads(line: bytes) -> Any:
        with pytest.raises(HandleError):
            decoder.feed(line + b"\n")
        refused.append(line)
        return {"n": len(refused)}

    decoder: Decoder[Any] = Decoder(dict, loads=loads)
    assert [*decoder.feed(chunk), *decoder.feed(chunk)] == [{"n": n} for n in range(1, 2 * chunk.count(b"\n") + 1)]


@pytest.mark.parametrize("error", [KeyError, ValueError, RecursionError, TypeError])
@pytest.mark.parametrize("size", [1, 3, 12, 50, 1_000_000])
def test_no_line_is_lost_or_misnumbered_when_loads_raises(error: type[Exception], size: int) -> None:
    def loads(line: bytes) -> Any:
        if b"boom" in line:
            raise error
        return json.loads(line)

    stream = b'{}\n{"boom":1}\nxx\n' + b'{"x":1}\n' * 100 + b'{"boom":2}\n{"y":1}\nyy'
    decoder = Decoder(dict, loads=loads)
    found = decoded(in_pieces(stream, size), decoder)
    assert [(bad.line_number, bad.offset) for bad in found if isinstance(bad, InvalidLine)] == [(3, 14), (106, 836)]
    rest = [item for item in found if not isinstance(item, InvalidLine)]
    assert rest == [{}, {"boom": 1}, *[{"x": 1}] * 100, {"boom": 2}, {"y": 1}]
    assert decoder.stats.bytes == len(stream)


@pytest.mark.parametrize("chunk", [KEEP_ALIVE + b"\n", KEEP_ALIVE + b"\n" + KEEP_ALIVE + b"\n" * 2 + b'{"y":'])
def test_after_an_interrupt_the_stream_is_in_step(chunk: bytes) -> None:
    interrupt = [False, True]

    def loads(line: bytes) -> Any:
        if interrupt.pop(0):
            raise KeyboardInterrupt
        return json.loads(line)

    decoder: Decoder[Any] = Decoder(dict, loads=loads)
    decoder.feed(b"{}\n")
    with pytest.raises(KeyboardInterrupt):
        decoder.feed(chunk)
    interrupt += [False] * 2
    tail = b"1}\n" if chunk.endswith(b":") else b""
    *whole, bad = decoder.feed(tail + b"bad\n")
    assert whole == [{"y": 1}] * bool(tail)
    before = b"{}\n" + chunk + tail
    assert (bad.line_number, bad.offset) == (before.count(b"\n") + 1, len(before))
    assert decoder.stats.bytes in (len(before) + 4, len(before) + 4 - len(chunk))


@pytest.mark.parametrize("options", [{}, {"only": ["assistant"], "coalesce": True}], ids=["plain", "filtered"])
@pytest.mark.parametrize(
    "chunk",
    [
        KEEP_ALIVE + b"\n",
        KEEP_ALIVE + b"\nbad\n" + KEEP_ALIVE + b'\n{"type":',
        b"x" * 100_000 + b"\n" + (KEEP_ALIVE + b"\n") * 4_000 + b'{"type":',
    ],
    ids=["line", "chunk", "many"],
)
@pytest.mark.parametrize("first", [b"{}\n", b'{}\n{"type":'], ids=["at rest", "in a line"])
def test_an_interrupt_at_any_line_of_code_leaves_the_stream_in_step(
    first: bytes, chunk: bytes, options: dict[str, Any]
) -> None:
    def interrupted_at(at: int) -> bool:
        decoder: Decoder[Any] = Decoder(**options)
        decoder.feed(first)
        before = decoder.stats.bytes
        was_interrupted = interrupted(lambda: decoder.feed(chunk), at)
        if decoder.stats.bytes == before:  # it came before anything was taken
            decoder.feed(chunk)
        assert decoder.stats.bytes == before + len(chunk)
        tail = b'"assistant","message":{"role":"assistant","content":[]}}\n' if chunk.endswith(b":") else b""
        *_, bad = found = decoder.feed(tail + b"bad\n")
        assert not tail or isinstance(found[-2], AssistantMessage)
        stream = first + chunk + tail
        assert isinstance(bad, InvalidLine)
        assert (bad.line_number, bad.offset, bad.raw) == (stream.count(b"\n") + 1, len(stream), b"bad")
        return was_interrupted

    at_each_line(interrupted_at)


STARVED = """
import resource
from claude_wire import Decoder

keep_alive = b'{"type":"keep_alive"}\\n'
decoder = Decoder(only=["keep_alive"])  # what is kept is copied
decoder.feed(keep_alive)
huge = b'{"type":"keep_alive","x":"' + b"x" * 60_000_000 + b'"}\\n'
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit, most = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (held + 30_000_000, most))
for _ in range(2):
    try:
        decoder.feed(huge)
    except MemoryError:
        continue
    raise AssertionError("there was memory")
resource.setrlimit(resource.RLIMIT_AS, (limit, most))
assert len(decoder.feed(keep_alive * 2)) == 2
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is limited as Linux does it")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer ends who gets no memory")
def test_a_decoder_goes_on_after_memory_errors() -> None:
    subprocess.run([sys.executable, "-c", STARVED], check=True, timeout=60)


def test_a_decoder_is_wary_no_longer_than_there_are_odd_lines() -> None:
    refusals = [True]

    def loads(line: bytes) -> Any:
        if refusals and refusals.pop():
            raise ValueError
        return json.loads(line)

    decoder = Decoder(dict, loads=loads)
    for _ in range(3):
        assert decoder.feed(b"{}\n" * 100) == [{}] * 100
        assert decoder._lines._wary == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_is_refused_also_for_a_line_alone() -> None:
    code = f"""
import os
from claude_wire import Decoder, HandleError
line = {KEEP_ALIVE!r} + b"\\n"
decoder = Decoder()
assert len(decoder.feed(line)) == len(decoder.feed(line)) == 1
if child := os.fork():
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(decoder.feed(line)) == 1
else:
    try:
        decoder.feed(line)
    except HandleError:
        os._exit(7)
    os._exit(1)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


def test_what_an_exception_leaves_over_is_not_copied() -> None:
    # Or a file of bad lines would take time that grows with the square of its length.
    decoder = Decoder(on_invalid="raise")
    with pytest.raises(InvalidLineError):
        decoder.feed(b"bad\n" * 1000 + KEEP_ALIVE + b"\n")
    left = decoder._ready
    assert len(left) == 1001
    for number in range(2, 1001):
        with pytest.raises(InvalidLineError) as caught:
            decoder.feed(b"")
        assert caught.value.line.line_number == number
        assert decoder._ready is left
    assert decoder.feed(b"") == [KeepAlive()]
    assert decoder._ready == []


def test_a_callback_that_raises_each_time_is_called_once_for_each_line_and_loses_nothing() -> None:
    seen: list[int] = []

    def complain(line: InvalidLine) -> None:
        seen.append(line.line_number)
        raise LookupError

    decoder = Decoder(on_invalid=complain)
    with pytest.raises(LookupError):
        decoder.feed(KEEP_ALIVE + b"\nbad\n" + EVENT + b"\nbad\n" + RESULT + b"\n")
    with pytest.raises(LookupError):
        decoder.feed(b"")
    assert [type(message) for message in decoder.feed(INIT + b"\n")] == [
        KeepAlive,
        StreamEvent,
        ResultSuccess,
        InitMessage,
    ]
    assert seen == [2, 4]


def test_an_exception_does_not_hold_on_to_a_bytearray() -> None:
    data = bytearray(b"bad\n")
    with pytest.raises(InvalidLineError) as caught:
        Decoder(on_invalid="raise").feed(data)
    assert caught.traceback  # its frames are alive
    data.clear()


@pytest.mark.parametrize("limit", [None, "1", 1.5])
def test_a_limit_that_is_no_int_is_a_type_error(limit: Any) -> None:
    with pytest.raises(TypeError, match="max_line_bytes"):
        Decoder(max_line_bytes=limit)


# --- Looking at lines before they are decoded -------------------------------------------------------------------------


@pytest.mark.parametrize("start", [b"", BOM])
@pytest.mark.parametrize("kind", [Message, dict])
def test_a_follower_gives_the_lines_and_messages_that_the_decoder_will_give(kind: Any, start: bytes) -> None:
    lines = [KEEP_ALIVE, b"[1]", BOM + b"{}", ASSISTANT, LONE, NEW_BLOCK, RESULT, b'{"type":"keep_alive"}']
    stream = start + b"\n".join(lines)
    surrogates: Any
    for surrogates, cut in itertools.product(("keep", "replace"), range(len(start), len(stream) + 1, 3)):
        decoder = Decoder(kind, surrogates=surrogates)
        first = len(decoder.feed(stream[:cut]))
        follower = decoder.follower()
        rest = [line for piece in in_pieces(stream[cut:], 7) for line in follower.feed(piece)] + follower.feed(b"")
        assert rest == lines[first:]
        for line, message in zip(rest, decoder.feed(stream[cut:]) + decoder.close(), strict=True):
            assert follower.decode(line) == (None if isinstance(message, InvalidLine) else message)


def test_a_follower_has_the_limit_of_its_decoder_and_takes_no_rest_of_a_line_for_one() -> None:
    decoder = Decoder(max_line_bytes=30)
    decoder.feed(b'{"type":"x","t":"' + b"t" * 30)
    follower = decoder.follower()
    lines = follower.feed(KEEP_ALIVE + b"\n" + b"x" * 31 + b"\n" + KEEP_ALIVE + b"\n" + b"y" * 31 + b"\nlast")
    assert lines == [b"\0" + KEEP_ALIVE, KEEP_ALIVE]
    assert [follower.decode(line) for line in lines] == [None, KeepAlive()]
    assert follower.feed(b"") == [b"last"]


def test_a_follower_of_a_decoder_that_was_closed_is_at_the_start_of_a_stream() -> None:
    decoder = Decoder()
    for line in (KEEP_ALIVE, KEEP_ALIVE + b"\n"):  # of which the second needs no framing
        decoder.feed(b"\n")
        decoder.feed(line)
        decoder.close()
        assert decoder.follower().feed(BOM + KEEP_ALIVE + b"\n") == [KEEP_ALIVE]
        decoder.feed(KEEP_ALIVE + b"\n")
        assert decoder.follower().feed(BOM + KEEP_ALIVE + b"\n") == [BOM + KEEP_ALIVE]
        decoder.close()


def test_a_follower_does_not_change_its_decoder() -> None:
    decoder = Decoder()
    assert decoder.feed(b'{"type":"keep') == []
    decoder.follower().feed(b'_alive"}\n{"type')
    assert decoder.feed(b'_alive"}\n') == [KeepAlive()]


def test_a_decoder_says_what_it_gives() -> None:
    assert [Decoder().typed, Decoder(dict).typed] == [True, False]
    assert [Decoder().raises, Decoder(on_invalid="raise").raises, Decoder(on_invalid=print).raises] == [
        False,
        True,
        False,
    ]


# --- a line and its neighbours ----------------------------------------------------------------------------------------

#: Taken, though json would refuse it: the number is in a field that no class has.
SKIPPED_NUMBER = b'{"type":"keep_alive","n":1e999}\n'


@pytest.mark.parametrize(
    "odd",
    [
        KEEP_ALIVE + b" " + KEEP_ALIVE + b"\n",
        b'{"type":"`$[0]`"}\n',
        b'{"type":"stream_event"}\n',
        b'{"type":"keep_alive" (byte 3)}\n',
        b"{x}\n",
    ],
)
@pytest.mark.parametrize("count", [1, 40])
def test_what_a_line_is_does_not_depend_on_its_neighbours(odd: bytes, count: int) -> None:
    lines = [SKIPPED_NUMBER] * count + [odd] + [SKIPPED_NUMBER] * count
    alone = [message for line in lines for message in Decoder().feed(line)]
    together = Decoder().feed(b"".join(lines))
    assert [type(message) for message in together] == [type(message) for message in alone]
    assert [type(message) for message in together[:count]] == [KeepAlive] * count


@pytest.mark.parametrize("space", [b"", b" "])
@pytest.mark.parametrize("depth", [100, 520, 3_000])
def test_depth_is_no_exception_for_the_lines_around_it(depth: int, space: bytes) -> None:
    deep = b'{"type":"zz","x":' + space + b"[" * depth + b'"\\ud800"' + b"]" * depth + b"}\n"
    found = Decoder(surrogates="replace").feed(KEEP_ALIVE + b"\n" + deep + KEEP_ALIVE + b"\n")
    assert [type(found[0]), type(found[2])] == [KeepAlive, KeepAlive]
    assert isinstance(found[1], (InvalidLine, UnknownMessage))


def test_an_exception_that_has_no_text_loses_no_line() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def loads(line: bytes) -> Any:
        if b"2" in line:
            raise MuteError
        return json.loads(line)

    found = Decoder(dict, loads=loads).feed(b'{"a":1}\n{"a":2}\n{"a":3}\n')
    assert found == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_what_an_interrupt_left_is_not_counted_later() -> None:
    interrupt = [False, False, True]

    def loads(line: bytes) -> Any:
        if b"bad" in line:
            raise ValueError
        if interrupt and interrupt.pop(0):
            raise KeyboardInterrupt
        return json.loads(line)

    decoder: Decoder[Any] = Decoder(dict, loads=loads)
    with pytest.raises(KeyboardInterrupt):
        decoder.feed(b"{bad}\n" + b"{}\n" * 4)
    before = decoder.stats
    assert decoder.feed(b"{}\n{}\n") == [{}, {}]
    assert decoder.stats.messages == before.messages + 2
    assert decoder.stats.invalid == before.invalid


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("options", ["", "only={'result'}", "coalesce=True"])
def test_a_child_leaves_the_with_block_of_its_parent(options: str) -> None:
    code = f"""
import os
from claude_wire import Decoder
with Decoder(dict, {options}) as decoder:
    decoder.feed(b'{{}}\\n')
    child = os.fork()
    if not child:
        decoder.stats
if not child:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_end_of_a_stream_gives_its_memory_back_whatever_its_last_line_is() -> None:
    for only in (None, ["result"], [Kind("a")]):
        decoder = Decoder(dict, only=only)
        decoder.feed(b'{"type":"a","text":"' + b"x" * 5_000_000 + b'"}')
        assert decoder._buffer.stats().held >= 5_000_000
        decoder.close()
        assert decoder._buffer.stats().held <= 2 * BLOCK_BYTES


def test_a_decoder_is_not_left_from_its_own_loads() -> None:
    refused: list[type[BaseException]] = []

    def loads(line: bytes) -> Any:
        try:
            decoder.__exit__(None, None, None)
        except HandleError as error:
            refused.append(type(error))
        return json.loads(line)

    for options in ({}, {"only": [Kind("a")]}):
        decoder: Decoder[Any] = Decoder(dict, loads=loads, **options)
        assert decoder.feed(b'{"type":"a"}\n{"type":"a"}\n') == [{"type": "a"}] * 2
    assert refused == [HandleError] * len(refused)
    assert refused
