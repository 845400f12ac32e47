"""Tests of the decoder: an invalid line does not affect other lines."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from typing import Any, get_args

import pytest

from claude_wire import (
    AssistantMessage,
    Decoder,
    InitMessage,
    InvalidLine,
    InvalidLineError,
    Message,
    TextBlock,
    decode,
)
from claude_wire.codec import DecoderStats
from claude_wire.messages import KeepAlive, ResultSuccess
from claude_wire.messages.invalid import InvalidKind
from decoder_lines import (
    ASSISTANT,
    BAD,
    BOM,
    EVENT,
    INIT,
    KEEP_ALIVE,
    LONE,
    NEW_BLOCK,
    NEW_TYPE,
    RESULT,
    chunkings,
    decoded,
    in_pieces,
)

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
        # One chunk with neighbours of every kind, including types that no class knows.
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


#: Without the lines that json.loads accepts, such as those with NaN: with ``loads=`` the caller's parser decides.
BAD_FOR_JSON = {name: bad for name, bad in BAD.items() if "JSON number" not in bad[1] and "two values" not in bad[1]}


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
    assert bad.reason == f"not JSON: {name} is not a JSON number"
    (value,) = Decoder(dict, loads=json.loads).feed(line)
    assert isinstance(value, dict)


def test_a_byte_order_mark_later_than_at_the_start_is_no_json() -> None:
    for kind in (Message, dict):
        found = decoded([b"\n".join([KEEP_ALIVE, BOM + KEEP_ALIVE, KEEP_ALIVE, b""])], Decoder(kind))
        assert [type(item) is InvalidLine for item in found] == [False, True, False]


def test_a_tag_that_is_given_twice_with_one_value_is_valid() -> None:
    same = b'{"type":"keep_alive","x":0,"type":"keep_alive"}'
    assert decoded([same + b"\n"]) == [KeepAlive(extra={"x": 0})]
    block = b'{"type":"assistant","message":{"content":[{"type":"text","type":"text","text":"a"}]}}'
    (message,) = decoded([block + b"\n"])
    assert message.content == [TextBlock("a")]
    assert decoded([b'{"type":"system","subtype":"init","cwd":"/","subtype":"init"}\n']) == [InitMessage(cwd="/")]


def test_a_key_with_two_values_has_the_last_of_them_where_it_does_not_tell_what_an_object_is() -> None:
    # A repeated "subtype" is not ambiguous here: the type is unknown, or the object is the input of a tool.
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


@pytest.mark.parametrize("end", [b"}]}}", b"}]}"], ids=["valid", "invalid"])
def test_a_key_with_two_values_is_let_go_of_with_its_message(end: bytes) -> None:
    start = b'{"type":"assistant","message":{"content":[{"type":"unheard_of","x":1,"x":'
    decoder = Decoder()
    decoder.feed(start + b"2" + end + b"\n")
    tracemalloc.start()
    try:
        decoder.feed(start + b"[" + b'{"a":1},' * 10_000 + b"2]" + end + b"\n")
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most > 2_000_000
    assert kept < 200_000


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
    # Between them comes a line of unknown type, so the decoder has seen one before the second try.
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
    # Two objects on one line, then one object over two lines: three lines and three objects in all, and each line
    # begins and ends with a brace.
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
    # If an object is cut inside an array, both halves can begin and end with braces. Neither half is valid JSON.
    halves = [b'{"type":"user","a":[{}', b"{}]}"]
    found = decoded([b"\n".join([KEEP_ALIVE, *halves, KEEP_ALIVE * 2, KEEP_ALIVE, b""])], Decoder(kind))
    assert [type(item) is InvalidLine for item in found] == [False, True, True, True, False]


def test_bytes_that_are_not_utf8_are_found_in_fields_that_no_one_reads() -> None:
    # msgspec does not check the UTF-8 of fields that it skips, so the decoder must.
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


@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_was_raised_is_let_go_of_though_every_chunk_has_a_bad_line(at: int) -> None:
    lines = [KEEP_ALIVE, KEEP_ALIVE]
    lines.insert(at, b"x" * 1000)
    chunk = b"\n".join(lines) + b"\n"
    decoder = Decoder(on_invalid="raise")
    messages = 0
    tracemalloc.start()
    try:
        for _ in range(1000):
            with pytest.raises(InvalidLineError) as caught:
                decoder.feed(chunk)
            messages += len(caught.value.messages)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
    assert messages + len(decoder.feed(b"")) == 2000


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
        rb"\ud83d--de00",
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
    # Each of these neighbours needs the slow path.
    lone = rb'{"type":"system","subtype":"init","cwd":"\ud83d"}'
    for neighbour in (b"bad", b'{"type":"system","subtype":"init","subtype":"status"}', NEW_TYPE, NEW_BLOCK, LONE):
        decoder = Decoder()
        decoder.feed(b"\n".join([lone, neighbour, b""]))
        assert decoder.stats.repaired == 1 + (neighbour == LONE), neighbour


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
    assert decoder._buffer.stats().held <= 20_000  # the buffer's native memory, which tracemalloc does not count
    (bad,) = decoder.feed(b"\n")
    assert isinstance(bad, InvalidLine)
    assert bad.length == 201 * 100_000


# --- Tests of ``InvalidLine.kind``: each kind of invalid line, cut into chunks at every position ----------------------


LIMIT = 2000

#: Line -> its kind. The lines are short because each is cut at every position.
LINES: list[tuple[bytes, InvalidKind]] = [
    (b"x", "not_json"),
    (b'{"type":"keep_alive"', "not_json"),
    (b'{"type":"keep_alive"}{"type":"keep_alive"}', "not_json"),
    (b'{"type":"keep_alive",}', "not_json"),
    (b'{"type":"of_tomorrow","x":NaN}', "not_json"),
    (b'{"type":"of_tomorrow","x":-Infinity}', "not_json"),
    (b'{"type":"keep_alive","x":"\xff"}', "not_utf8"),
    (b"\xff", "not_utf8"),
    (b"[]", "not_object"),
    (b'"text"', "not_object"),
    (b"7", "not_object"),
    (b"true", "not_object"),
    (b"null", "null"),
    (b'{"type":"of_tomorrow","x":1e999}', "number"),
    (b'{"type":"keep_alive","type":"user"}', "tags"),
    (b'{"type":"system","subtype":"init","subtype":"status"}', "tags"),
]
DEEP = b'{"type":"of_tomorrow","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
LONG = b'{"type":"of_tomorrow","x":"' + b"x" * LIMIT + b'"}'


def decoded_by(chunks: list[bytes], **options: Any) -> list[Any]:
    decoder = Decoder(**options)
    messages = [message for chunk in chunks for message in decoder.feed(chunk)]
    return messages + decoder.close()


def kinds(messages: list[Any]) -> list[str | None]:
    return [message.kind if isinstance(message, InvalidLine) else None for message in messages]


@pytest.mark.parametrize(("line", "kind"), LINES)
def test_each_kind_is_told_at_every_chunking(line: bytes, kind: InvalidKind) -> None:
    stream = b"\n".join([KEEP_ALIVE, line, KEEP_ALIVE, b""])
    expected = [None, kind, None]
    assert kinds(decoded_by([stream])) == expected
    assert kinds(decoded_by([stream[i : i + 1] for i in range(len(stream))])) == expected
    for cut in range(len(stream)):
        messages = decoded_by([stream[:cut], stream[cut:]])
        assert kinds(messages) == expected
        assert messages[1].raw == line
    assert kinds(decoded_by([line + b"\n"])) == [kind]  # a chunk of exactly one line takes another path
    assert kinds(decoded_by([line + b"\r\n"])) == [kind]
    with pytest.raises(InvalidLineError) as caught:
        decode(line)
    assert caught.value.line.kind == kind
    with pytest.raises(InvalidLineError) as caught:
        Decoder(on_invalid="raise").feed(line + b"\n")
    assert caught.value.line.kind == kind


@pytest.mark.parametrize(("line", "kind"), LINES)
def test_a_line_that_the_stream_ends_in_is_truncated(line: bytes, kind: InvalidKind) -> None:
    stream = KEEP_ALIVE + b"\n" + line
    for cut in range(len(stream)):
        messages = decoded_by([stream[:cut], stream[cut:]])
        assert kinds(messages) == [None, "truncated"]
        assert messages[1].reason.startswith("truncated: ")


def test_every_cut_of_a_line_is_truncated() -> None:
    for end in range(1, len(KEEP_ALIVE)):
        assert kinds(decoded_by([KEEP_ALIVE + b"\n" + KEEP_ALIVE[:end]])) == [None, "truncated"]
    assert decoded_by([KEEP_ALIVE]) == [KeepAlive()]


@pytest.mark.parametrize(
    ("line", "kind", "options"), [(DEEP, "too_deep", {}), (LONG, "too_long", {"max_line_bytes": LIMIT})]
)
def test_a_line_that_is_too_much_says_of_what(line: bytes, kind: InvalidKind, options: dict[str, Any]) -> None:
    stream = b"\n".join([KEEP_ALIVE, line, KEEP_ALIVE, b""])
    step = max(1, len(stream) // 17)
    for chunks in (
        [stream],
        [stream[i : i + step] for i in range(0, len(stream), step)],
        [stream[: len(KEEP_ALIVE) + 1], line, b"\n", KEEP_ALIVE + b"\n"],
        *([stream[:cut], stream[cut:]] for cut in range(0, len(stream), step)),
    ):
        assert kinds(decoded_by(chunks, **options)) == [None, kind, None]
    assert kinds(decoded_by([line + b"\n"], **options)) == [kind]


@pytest.mark.parametrize(("line", "kind"), [(line, kind) for line, kind in LINES if kind != "tags"])
def test_dicts_are_refused_for_the_same_kinds(line: bytes, kind: InvalidKind) -> None:
    stream = KEEP_ALIVE + b"\n" + line + b"\n"
    for cut in range(len(stream)):
        decoder = Decoder(dict)
        assert kinds([*decoder.feed(stream[:cut]), *decoder.feed(stream[cut:]), *decoder.close()]) == [None, kind]


def test_every_kind_but_that_of_exhausted_memory_is_tried_here() -> None:
    tried = {kind for _, kind in LINES} | {"truncated", "too_deep", "too_long"}
    assert tried == set(get_args(InvalidKind)) - {"no_memory"}


def test_the_kind_is_part_of_the_line() -> None:
    one, other = InvalidLine(b"x", 1, 0, "why", kind="null"), InvalidLine(b"x", 1, 0, "why", kind="tags")
    assert one != other
    assert InvalidLine(b"x", 1, 0, "why").kind == "not_json"
