"""Tests of the decoder: a stream gives the same messages, however it is cut into chunks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from claude_wire import AssistantMessage, Decoder, InitMessage, InvalidLine, Message, StreamEvent, UserMessage
from claude_wire.codec import DecoderStats
from claude_wire.messages import KeepAlive
from decoder_lines import (
    ASSISTANT,
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
        # Data after complete lines must not change their messages.
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


@pytest.mark.parametrize("kind", [Message, dict])
@pytest.mark.parametrize("line", [b"\x0b", b"\x0c", b"\x00", b"\xc2\xa0", b"\xef\xbb\xbf"])
def test_a_line_of_other_white_space_is_invalid(line: bytes, kind: Any) -> None:
    found = decoded([KEEP_ALIVE + b"\n" + line + b"\n"], Decoder(kind))
    assert isinstance(found[1], InvalidLine)
    assert found[1].raw == line


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


def test_orjson_may_do_the_reading() -> None:
    orjson = pytest.importorskip("orjson")
    lines = [EVENT, b"bad", ASSISTANT, LONE, b'{"type":"user\xff"}', b"[1]", RESULT]
    decoder = Decoder(dict, loads=orjson.loads)
    for size in (1, 40, 10_000):
        found = decoded(in_pieces(b"\n".join(lines) + b"\n", size), decoder)
        assert found == decoded([b"\n".join(lines) + b"\n"], Decoder(dict))
    # orjson refuses lone surrogates, so the decoder parses these lines itself.
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


def test_no_line_is_lost_if_loads_raises_stop_iteration() -> None:
    def loads(line: bytes) -> Any:
        return next(value for value in [json.loads(line)] if "subtype" in value)

    decoder = Decoder(dict, loads=loads)
    lines = [INIT, b'{"a":1}', b"bad", RESULT]
    found = decoder.feed(b"\n".join(lines) + b"\n")
    assert [json.loads(INIT), {"a": 1}, json.loads(RESULT)] == [found[0], found[1], found[3]]
    assert isinstance(found[2], InvalidLine)


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


# --- Stats ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Message, dict])
@pytest.mark.parametrize("together", [0, 2], ids=["alone", "mixed"])
@pytest.mark.parametrize("unfinished", [b"", b"{"], ids=["whole", "cut"])
def test_after_the_end_of_a_stream_lines_and_bytes_are_counted_anew(
    kind: Any, together: int, unfinished: bytes
) -> None:
    """This includes lines fed one at a time, which bypass the line buffer."""
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


def test_dicts_of_lines_that_are_alike_share_nothing_that_can_change() -> None:
    """The native reader builds the dict of a line from the dict of an earlier line that looks like it."""
    line = b'{"id":"%d","inner":{"text":"t%d","n":1},"list":["a"]}\n'
    first, *others = Decoder(dict).feed(b"".join(line % (index, index) for index in range(50)))
    first["inner"]["n"] = 2
    first["list"].append("b")
    del first["id"]
    for index, other in enumerate(others, 1):
        assert other == {"id": str(index), "inner": {"text": f"t{index}", "n": 1}, "list": ["a"]}
    others[-2]["inner"]["n"] = 2
    others[-2]["list"].clear()
    assert others[-1] == {"id": "49", "inner": {"text": "t49", "n": 1}, "list": ["a"]}
