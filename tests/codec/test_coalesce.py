"""Tests of ``coalesce``: it reduces the number of messages, and changes neither their text nor their order."""

from __future__ import annotations

import functools
import io
import itertools
import json
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordings
from claude_wire import Decoder, InvalidLine, InvalidLineError, Message, StreamEvent, read
from claude_wire.accumulate.accumulator import Accumulator
from claude_wire.codec.stats import DecoderStats
from claude_wire.limits import BLOCK_BYTES, DEFAULT_MAX_LINE_BYTES
from claude_wire.native.line_buffer import LineBuffer
from delta_lines import BASE, CLOSING, EARNING, MERGEABLE, NOT_MERGEABLE, TEXT_KEYS, block, delta
from each import each
from feeding import cut, earned, fed, said, without_vectors
from long_tests import LONG
from mutations import mutated
from traffic import traffic

every_type = pytest.mark.parametrize("type_", [Message, dict], ids=["typed", "dict"])
NAMES = [name for name in recordings.names() if recordings.load(name).stdout]


def coalesced(*lines: bytes, **options: Any) -> list[Any]:
    """Feed the lines at once to a merging decoder, and return its dicts. Code without SIMD must give the same."""
    found = earned(Decoder(dict, coalesce=True, **options)).feed(block(*lines))
    plain = earned(without_vectors(Decoder(dict, coalesce=True, **options), coalesce=True))
    assert plain.feed(block(*lines)) == found
    return found


def texts(messages: Iterable[Any]) -> list[str]:
    """Return the text of each delta, and "?" for every other message."""
    inner = [message.get("event", {}).get("delta", {}) if isinstance(message, dict) else {} for message in messages]
    return [found.get(TEXT_KEYS.get(found.get("type"), ""), "?") for found in inner]


# --- What is merged ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TEXT_KEYS)
def test_deltas_that_follow_each_other_become_one(kind: str) -> None:
    lines = [delta("Hel", kind=kind, uuid="1"), delta("", kind=kind, uuid="2"), delta("lo", kind=kind, uuid="3")]
    (message,) = coalesced(*lines)
    assert message == {
        "type": "stream_event",
        "event": {"type": "content_block_delta", "index": 0, "delta": {"type": kind, TEXT_KEYS[kind]: "Hello"}},
        "session_id": "s",
        "parent_tool_use_id": None,
        "uuid": "3",
        "api_message_id": "m",
    }
    decoder = earned(Decoder(coalesce=True))
    before = decoder.stats
    (typed,) = decoder.feed(block(*lines))
    assert isinstance(typed, StreamEvent)
    assert typed.uuid == "3"
    stats = DecoderStats(*(now - then for now, then in zip(decoder.stats, before, strict=True)))
    assert (stats.lines, stats.messages, stats.merged, stats.skipped) == (1, 1, 2, 0)
    assert stats.bytes == len(block(*lines))


def test_without_the_option_nothing_is_merged() -> None:
    assert texts(Decoder(dict).feed(block(delta("a"), delta("b")))) == ["a", "b"]
    assert texts(Decoder(dict, only=["stream_event"]).feed(block(delta("a"), delta("b")))) == ["a", "b"]


OTHER_KEYS = {
    "session": {"session": "t"},
    "no session": {"session": None},
    "parent": {"parent": "toolu_1"},
    "index": {"index": 1},
    "kind": {"kind": "thinking_delta"},
}


@pytest.mark.parametrize("changes", OTHER_KEYS.values(), ids=OTHER_KEYS.keys())
def test_deltas_of_other_keys_are_apart(changes: dict[str, Any]) -> None:
    lines = [delta("a"), delta("1", **changes), delta("b"), delta("2", **changes), delta("c")]
    assert texts(coalesced(*lines)) == ["abc", "12"]


def test_groups_come_in_the_order_of_their_first_lines() -> None:
    lines = [delta(f"{session}{turn} ", session=session) for turn in range(3) for session in ("b", "a", "c")]
    lines.insert(4, delta("late ", index=9))
    assert texts(coalesced(*lines)) == ["b0 b1 b2 ", "a0 a1 a2 ", "c0 c1 c2 ", "late "]


def test_halves_of_a_surrogate_pair_meet() -> None:
    assert texts(coalesced(delta(r"x\ud83d"), delta(r"\ude00y"))) == ["x😀y"]
    assert texts(coalesced(delta(r"x\ud83d"), delta(""), delta(r"\ude00y"))) == ["x😀y"]
    # A lone half stays a lone half.
    assert texts(coalesced(delta(r"\ude00"), delta(r"\ud83d"))) == ["\ude00\ud83d"]
    assert texts(coalesced(delta(r"\ud83d"), delta("u"))) == ["\ud83du"]
    # Replacing comes after merging: the joined halves are one character, and only the lone half is replaced.
    replaced = coalesced(delta(r"x\ud83d"), delta(r"\ude00y"), delta(r"\ud83d"), surrogates="replace")
    assert texts(replaced) == ["x😀y\ufffd"]


def test_texts_that_look_like_escapes_when_joined_are_not() -> None:
    lines = [delta(r"\\"), delta("u0041"), delta(r"\\"), delta("n"), delta(r"\""), delta(r"\\\\"), delta(r"\"}}")]
    assert texts(coalesced(*lines)) == ['\\u0041\\n"\\\\"}}']


def test_text_is_joined_as_it_is_written() -> None:
    assert texts(coalesced(delta(r"\u00e9"), delta("é"), delta(r"\n\t\b\f\r\/"), delta("日本😀\u2028\x7f"))) == [
        "éé\n\t\b\f\r/日本😀\u2028\x7f"
    ]


def test_uuids_of_other_lengths() -> None:
    lines = [delta("a", uuid="long-uuid"), delta("b", uuid=""), delta("c", uuid="ü😀")]
    (message,) = coalesced(*lines)
    assert message["uuid"] == "ü😀"
    assert coalesced(*lines[:2])[0]["uuid"] == ""


def test_many_lines() -> None:
    lines = [delta(f"{number} ", uuid=str(number)) for number in range(300)]
    (message,) = coalesced(*lines)
    assert texts([message]) == ["".join(f"{number} " for number in range(300))]
    assert message["uuid"] == "299"


@pytest.mark.parametrize("count", [2, 63, 64, 65, 128, 200])
def test_many_keys(count: int) -> None:
    lines = [delta(f"{turn}", index=index) for turn in range(3) for index in range(count)]
    found = coalesced(*lines)
    assert said(found) == said(Decoder(dict).feed(block(*lines)))
    if count <= 64:
        assert texts(found) == ["012"] * count


# --- What may be merged -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", MERGEABLE.values(), ids=MERGEABLE.keys())
def test_merged_however_it_is_written(line: bytes) -> None:
    decoder = earned(Decoder(dict, coalesce=True))
    merged = decoder.stats.merged
    (message,) = decoder.feed(block(line, line, line))
    (alone,) = Decoder(dict).feed(block(line))
    alone["event"]["delta"]["text"] *= 3
    assert message == alone
    assert decoder.stats.merged == merged + 2
    assert coalesced(line, line, line) == [message]


@each("name", NOT_MERGEABLE, str)
def test_not_merged(name: str) -> None:
    line = NOT_MERGEABLE[name]
    # A byte order mark counts only at the start of the stream, so no line here is the first one.
    lines = [delta("before"), line, line, delta("between"), line, delta("after")]
    for type_ in (dict, Message):
        decoder: Decoder[Any] = earned(Decoder(type_, coalesce=True))
        merged = decoder.stats.merged
        assert decoder.feed(block(*lines)) == earned(Decoder(type_)).feed(block(*lines))
        assert decoder.stats.merged == merged
    coalesced(*lines)


@pytest.mark.parametrize("line", CLOSING.values(), ids=CLOSING.keys())
def test_nothing_is_merged_across_another_line(line: bytes) -> None:
    lines = [delta("a"), delta("1", index=1), delta("b"), line, delta("c"), delta("d"), delta("2", index=1)]
    merged = [delta("ab"), delta("1", index=1), line, delta("cd"), delta("2", index=1)]
    found = coalesced(*lines)
    assert len(found) == 5
    assert found[:2] + found[3:] == [m for one in merged if one != line for m in Decoder(dict).feed(block(one))]
    (alone,) = Decoder(dict).feed(block(line))
    if isinstance(alone, InvalidLine):
        assert found[2].raw == line
    else:
        assert found[2] == alone


@pytest.mark.parametrize("line", [b"", b" \t\r", b"\r"], ids=["empty", "spaces", "CR"])
def test_a_blank_line_is_nothing(line: bytes) -> None:
    assert texts(coalesced(delta("a"), line, delta("b"), line)) == ["ab"]


def test_a_line_that_is_passed_over_closes_too() -> None:
    lines = [delta("a"), delta("b"), b'{"type":"user"}', delta("c"), delta("d")]
    found = coalesced(*lines, only=["stream_event"])
    assert texts(found) == ["ab", "cd"]
    decoder = Decoder(dict, only=["stream_event"], coalesce=True)
    decoder.feed(block(*lines))
    assert (decoder.stats.skipped, decoder.stats.merged, decoder.stats.messages) == (1, 2, 2)


def test_deltas_that_are_passed_over_are_not_merged() -> None:
    decoder = Decoder(dict, only=["result"], coalesce=True)
    assert decoder.feed(block(delta("a"), delta("b"))) == []
    assert (decoder.stats.skipped, decoder.stats.merged) == (2, 0)
    lines = [delta("a"), delta("1", kind="thinking_delta"), delta("b")]
    only = ["stream_event/content_block_delta/text_delta"]
    assert texts(coalesced(*lines, only=only)) == ["a", "b"]


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace(b'"m"', b'"n"'),
        BASE.replace(b'"api_message_id":"m"', b'"api_message_id":"m","x":1'),
        BASE.replace(b":", b": "),
        BASE + b"\r",
        BASE.replace(b'"parent_tool_use_id":null,', b""),
        BASE.replace(b'"uuid":"u1",', b""),
        BASE.replace(b'"index"', rb'"\u0069ndex"'),
        BASE.replace(b'"text_delta"', rb'"text\u005fdelta"'),
    ],
    ids=["another value", "another key", "spaces", "a CR", "no parent", "no uuid", "an escaped key", "an escaped tag"],
)
def test_deltas_of_one_key_that_differ_are_apart_and_in_order(other: bytes) -> None:
    lines = [delta("1", index=1), BASE, BASE, other, delta("2", index=1), other, BASE]
    found = coalesced(*lines)
    assert texts(found) == ["1", "aa", "aa", "2", "a"]
    single = Decoder(dict).feed(block(*lines))
    without_text = [json.loads(json.dumps(message).replace('"aa"', '"a"')) for message in found]
    assert without_text == [single[0], single[1], single[3], single[4], single[6]]


def test_the_session_of_none_and_no_session_are_one() -> None:
    null = BASE.replace(b'"s"', b"null").replace(b'"a"', b'"1"')
    absent = BASE.replace(b'"session_id":"s",', b"").replace(b'"a"', b'"2"')
    assert texts(coalesced(null, absent, null, absent)) == ["1", "2", "1", "2"]


# --- Feeds ------------------------------------------------------------------------------------------------------------


def test_nothing_is_held_back_for_the_next_feed() -> None:
    decoder = earned(Decoder(dict, coalesce=True))
    assert texts(decoder.feed(block(delta("a"), delta("b")))) == ["ab"]
    assert texts(decoder.feed(block(delta("c")))) == ["c"]
    assert texts(decoder.feed(block(delta("d"), delta("e")))) == ["de"]
    assert decoder.close() == []


def test_a_line_that_was_begun_before_is_merged_with_those_after_it() -> None:
    data = block(delta("a"), delta("b"), delta("c"), delta("d"))
    line = len(data) // 4
    for at in range(line + 1, 2 * line):
        decoder = earned(Decoder(dict, coalesce=True))
        assert texts(decoder.feed(data[:at])) == ["a"]
        assert texts(decoder.feed(data[at:])) == ["bcd"]


def test_a_last_line_without_line_feed() -> None:
    decoder = earned(Decoder(dict, coalesce=True))
    assert texts(decoder.feed(block(delta("a"), delta("b")) + delta("c"))) == ["ab"]
    assert texts(decoder.close()) == ["c"]


def test_more_than_a_block_in_one_feed() -> None:
    lines = [delta("x" * 100, uuid=str(number)) for number in range(5_000)]
    found = Decoder(dict, coalesce=True).feed(block(*lines))
    assert len(found) < 50
    assert said(found) == said(Decoder(dict).feed(block(*lines)))


@pytest.mark.parametrize("size", [1_000, 60_000, 70_000, 1_000_000])
def test_long_texts(size: int) -> None:
    lines = [delta(letter * size) for letter in "abcdef"] + [delta("short")]
    found = Decoder(dict, coalesce=True).feed(block(*lines))
    assert "".join(texts(found)) == "".join(letter * size for letter in "abcdef") + "short"


# --- Limits and places ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", range(-2, 3))
def test_a_merged_line_is_never_above_the_limit(extra: int) -> None:
    lines = [delta("aaaa"), delta("1", index=1), delta("bbbb"), delta("cc"), delta("2", index=1)]
    limit = len(lines[0]) + 4 + extra
    found = coalesced(*lines, max_line_bytes=limit)
    if extra < 0:
        assert texts(found) == ["aaaa", "1", "bbbb" + "cc", "2"]
    elif extra < 2:
        assert texts(found) == ["aaaabbbb", "1", "cc", "2"]
    else:
        assert texts(found) == ["aaaabbbbcc", "12"]


def test_the_length_of_the_last_uuid_counts() -> None:
    lines = [delta("a", uuid="u"), delta("b", uuid="u" * 50)]
    limit = len(lines[1]) + 1
    assert texts(coalesced(*lines, max_line_bytes=limit)) == ["ab"]
    assert texts(coalesced(*lines, max_line_bytes=limit - 1)) == ["a", "b"]


def test_lines_above_the_limit_close_and_keep_their_place() -> None:
    long = delta("x" * 300)
    lines = [delta("a"), delta("b"), long, delta("c"), delta("d"), b"bad"]
    found = coalesced(*lines, max_line_bytes=400)
    assert texts([found[0], found[2]]) == ["ab", "cd"]
    assert isinstance(found[1], InvalidLine)
    number, offset = len(EARNING), len(block(*EARNING))
    assert (found[1].length, found[1].line_number, found[1].offset) == (
        len(long),
        number + 3,
        offset + len(block(*lines[:2])),
    )
    assert (found[3].line_number, found[3].offset) == (number + 6, offset + len(block(*lines[:5])))


def test_places_behind_merged_lines() -> None:
    lines = [delta("a"), delta("b"), b"bad", b"", delta("c"), delta("d"), delta("e", index=1), b"worse"]
    data = block(*lines)
    decoders: list[tuple[Callable[[], Decoder[Any]], int, int]] = [
        (lambda: Decoder(dict, coalesce=True), 0, 0),
        (lambda: earned(Decoder(dict, coalesce=True)), len(EARNING), len(block(*EARNING))),
    ]
    for (make, number, offset), chunks in itertools.product(decoders, ([data], cut(data, 300), cut(data, 7))):
        bad, worse = (message for message in fed(make(), chunks) if isinstance(message, InvalidLine))
        assert (bad.raw, bad.line_number, bad.offset) == (b"bad", number + 3, offset + data.index(b"bad"))
        assert (worse.raw, worse.line_number, worse.offset) == (b"worse", number + 8, offset + data.index(b"worse"))


def test_on_invalid_raise() -> None:
    decoder = earned(Decoder(dict, coalesce=True, on_invalid="raise"))
    with pytest.raises(InvalidLineError) as caught:
        decoder.feed(block(delta("a"), delta("b"), b"bad", delta("c"), delta("d")))
    assert texts(caught.value.messages) == ["ab"]
    assert caught.value.line.line_number == len(EARNING) + 3
    assert texts(decoder.feed(block(delta("e")))) == ["cd", "e"]


def test_reading_a_file() -> None:
    stream = traffic(4, lines=600)
    with read(io.BytesIO(stream), dict, coalesce=True) as reader:
        found = list(reader)
    assert said(found) == said(Decoder(dict).feed(stream))
    assert reader.stats.merged == 600 - len(found) > 100


# --- Real and generated traffic ---------------------------------------------------------------------------------------


@functools.cache
def expected(name: str) -> list[Any]:
    return said(fed(Decoder(dict), [recordings.load(name).stdout]))


@each("name", NAMES, str)
def test_recordings(name: str) -> None:
    recording = recordings.load(name)
    stream = recording.stdout
    reads = iter(recording.reads)
    at = 0
    as_read: list[bytes] = []
    for size in reads:
        as_read.append(stream[at : at + size])
        at += size
    small = 1 if len(stream) < (60_000 if LONG else 8_000) else 1_009
    for chunks in ([stream], as_read, cut(stream, BLOCK_BYTES), cut(stream, 4_001, 13), cut(stream, small)):
        decoder = Decoder(dict, coalesce=True)
        found = fed(decoder, chunks)
        assert said(found) == expected(name)
        assert decoder.stats.merged == count(name) - len(found)
    assert said(fed(without_vectors(Decoder(dict), coalesce=True), [stream])) == expected(name)


@functools.cache
def count(name: str) -> int:
    return len(fed(Decoder(dict), [recordings.load(name).stdout]))


#: Built lazily, because every worker of pytest-xdist imports this module.
STREAMS: dict[str, Callable[[], bytes]] = {
    **{
        f"{text}-{order}-{style}": functools.partial(
            traffic, 2, lines=300, sessions=3, text=text, order=order, style=style
        )
        for text in ("ascii", "cjk", "emoji", "mixed")
        for order in ("cli", "session", "shuffled")
        for style in ("compact", "python")
    },
    "deltas only": functools.partial(traffic, 3, lines=600, sessions=2, text="mixed", deltas_only=True),
    "one session": functools.partial(traffic, 3, lines=600, sessions=1, text="emoji", deltas_only=True),
    "many sessions": functools.partial(traffic, 3, lines=600, sessions=100, text="mixed", deltas_only=True),
    "of all sizes": functools.partial(traffic, 3, lines=400, sessions=3, text="mixed", size="mixed"),
    "large": functools.partial(traffic, 3, lines=20, sessions=2, text="mixed", size="large", deltas_only=True),
}


@each("name", STREAMS, str)
def test_traffic(name: str) -> None:
    stream = STREAMS[name]()
    single = fed(Decoder(dict), [stream])
    expected = said(single)
    merged = 0
    sizes = [(len(stream),), (BLOCK_BYTES,), (5_000,), (331, 7, 2_000)]
    makes: list[Callable[[Decoder[Any]], Decoder[Any]]] = [lambda decoder: decoder, earned]
    for chunks in [cut(stream, *size) for size in sizes] + [stream.splitlines(keepends=True)]:
        for make in makes:
            decoder = make(Decoder(dict, coalesce=True))
            before = decoder.stats.merged
            found = fed(decoder, chunks)
            assert said(found) == expected
            assert decoder.stats.merged - before == len(single) - len(found)
            merged += decoder.stats.merged - before
    assert said(fed(without_vectors(Decoder(dict), coalesce=True), [stream])) == expected
    if "shuffled" not in name and name != "large":  # in those streams the lines differ too much, or are too long
        assert merged > len(single) // 10


@pytest.mark.parametrize("text", ["ascii", "cjk", "emoji", "mixed"])
def test_whole_messages_are_the_same(text: Any) -> None:
    stream = traffic(13, lines=1_500, sessions=3, text=text)

    def whole(messages: list[Any]) -> list[Any]:
        accumulator = Accumulator()
        found: list[Any] = []
        for message in messages:
            partial = accumulator.add(message)
            if partial is not None and partial.done:
                found.append((partial.session_id, partial.parent_tool_use_id, partial.message()))
        return found

    decoder = Decoder(coalesce=True)
    merged = whole(fed(decoder, cut(stream, 20_000)))
    assert merged == whole(Decoder().feed(stream))
    assert len(merged) > 5
    assert decoder.stats.merged > 300


# --- Any lines --------------------------------------------------------------------------------------------------------


def lines_out(chunks: Iterable[bytes], **options: Any) -> list[bytes]:
    """Return the lines that the native filter keeps, not decoded."""
    buffer = LineBuffer(options.get("max_line_bytes", DEFAULT_MAX_LINE_BYTES), only=options.get("only"), coalesce=True)
    blocks = [block for chunk in chunks for block in buffer.feed(chunk)] + buffer.close()
    return [line for data, *_, length in blocks if length < 0 for line in bytes(data).removesuffix(b"\n").split(b"\n")]


def check_merging(chunks: list[bytes], type_: Any, **options: Any) -> None:
    """Check that merging keeps the content, and that each message equals the decoded line of the native filter."""
    alone = Decoder(dict, **options)
    single = fed(alone, chunks)
    merging = Decoder(dict, coalesce=True, **options)
    found = fed(merging, chunks)
    assert said(found) == said(single)
    assert merging.stats.merged == len(single) - len(found)
    assert merging.stats.skipped == alone.stats.skipped
    lines = lines_out(chunks, **options)
    expected = without_places(Decoder(type_).feed(block(b"", *lines)))
    decoder = Decoder(type_, coalesce=True, **options)
    for tried in (decoder, without_vectors(Decoder(type_, coalesce=True, **options), coalesce=True)):
        assert without_places(fed(tried, chunks)) == expected
    assert decoder.stats == merging.stats or type_ is not dict


def without_places(messages: list[Any]) -> list[Any]:
    return [(m.raw, m.reason) if isinstance(m, InvalidLine) else m for m in messages]


def in_feeds(lines: list[bytes], rng: random.Random) -> list[list[bytes]]:
    """Split the lines into feeds of 1 to 40 lines, each shorter than a block."""
    feeds: list[list[bytes]] = []
    at = 0
    while at < len(lines):
        end = at + 1 + rng.randrange(40)
        while end > at + 1 and len(block(*lines[at:end])) >= BLOCK_BYTES // 2:
            end -= 1
        feeds.append(lines[at:end])
        at = end
    return feeds


@every_type
@pytest.mark.parametrize("seed", range(6))
def test_mutated_lines(seed: int, type_: Any) -> None:
    """Mutate some deltas of a few sessions. A mutated line may come twice, or next to its original."""
    rng = random.Random(seed)
    order = rng.choice(["cli", "session"])
    style = rng.choice(["compact", "python"])
    lines: list[bytes] = []
    stream = traffic(seed, lines=250, text="mixed", order=order, style=style, deltas_only=seed % 2 == 0)
    for line in stream.splitlines():
        if rng.random() < 0.3:
            other = mutated(line, rng)
            lines += rng.choice([[other], [other, other], [line, other, line], [other, line, other]])
        else:
            lines.append(line)
    feeds = [EARNING, *in_feeds(lines, rng)] if seed % 3 else in_feeds(lines, rng)
    for options in ({}, {"max_line_bytes": 700}, {"only": ["stream_event/content_block_delta/thinking_delta", "user"]}):
        if "max_line_bytes" in options:
            feeds = [[line for line in feed if len(line) <= 700] for feed in feeds]
            assert max(map(len, lines_out([block(*feed) for feed in feeds], **options))) <= 700
        check_merging([block(*feed) for feed in feeds], type_, **options)


@every_type
def test_traffic_merged_says_the_same(type_: Any) -> None:
    rng = random.Random(5)
    for text in ("ascii", "emoji"):
        feeds = in_feeds(traffic(21, lines=500, sessions=3, text=text).splitlines(), rng)
        feeds.insert(10, EARNING)
        check_merging([block(*feed) for feed in feeds], type_)


some_text = st.sampled_from(
    ["", "a", r"\ud83d", r"\ude00", r"\\", r"\"", "é", "日", r"\u0041", "u0041", r"\n", "}", "x" * 40]
)
some_delta = st.builds(
    lambda text, session, index, kind, uuid: delta(text, session=session, index=index, kind=kind, uuid=uuid),
    some_text,
    st.sampled_from(["s", "t", None]),
    st.integers(0, 1),
    st.sampled_from(["text_delta", "text_delta", "thinking_delta"]),
    st.sampled_from(["1", "2", "33"]),
)
other_lines = st.sampled_from([*CLOSING.values(), *MERGEABLE.values(), *NOT_MERGEABLE.values(), b"", b"\r"])


#: The same line 1 to 50 times: a delta, or a line of another kind.
some_run = st.builds(lambda line, times: [line] * times, some_delta | other_lines, st.integers(1, 50))


# An example takes 0.1 s.
@settings(max_examples=200 if LONG else 25)
@given(
    st.lists(st.lists(some_delta | some_delta | some_delta | other_lines, max_size=15) | some_run, max_size=8),
    st.lists(st.integers(1, 6_000), min_size=1, max_size=4),
    st.booleans(),
)
def test_any_lines_at_any_cut(parts: list[list[bytes]], sizes: list[int], earn: bool) -> None:
    # An empty first line, because a line at the start of a stream may begin with a byte order mark.
    lines = [b"", *(EARNING if earn else []), *(line for part in parts for line in part)]
    while len(block(*lines)) >= BLOCK_BYTES:
        lines.pop()
    stream = block(*lines)
    for chunks in ([stream], cut(stream, *sizes)):
        check_merging(chunks, dict)


# --- Where merging would save nothing ---------------------------------------------------------------------------------


def test_the_first_deltas_of_a_stream_are_merged() -> None:
    decoder = Decoder(dict, coalesce=True)
    for _ in range(2):
        assert texts(decoder.feed(block(delta("a"), delta("b")))) == ["ab"]
        assert decoder.close() == []


@pytest.mark.parametrize("size", [4_000, 10_000, 100_000])
def test_long_deltas_are_not_merged(size: int) -> None:
    lines = [delta(letter * size) for letter in "ab"]
    assert len(coalesced(*lines)) == (2 if len(lines[0]) >= 4096 else 1)


def test_merging_pauses_where_nothing_is_merged_and_begins_again() -> None:
    decoder = Decoder(dict, coalesce=True)
    sessions = [b" " + delta(session=str(number)) for number in range(3_000)]
    assert len(decoder.feed(block(*sessions))) == 3_000
    assert decoder.stats.merged == 0
    counts = [len(decoder.feed(block(*[delta(session="new")] * 3))) for _ in range(100)]
    assert counts[-1] == 1


@pytest.mark.parametrize("size", [1, 2, 3])
def test_lines_that_come_alone_are_as_they_were(size: int) -> None:
    decoder = Decoder(dict, coalesce=True)
    decoder.feed(b"\n")
    line = delta()
    for _ in range(100):
        assert texts(fed_in_pieces(decoder, line + b"\n", size)) == ["a"]
    assert texts(decoder.feed(block(delta("a"), delta("b")))) == ["ab"]


def fed_in_pieces(decoder: Decoder[Any], line: bytes, count: int) -> list[Any]:
    size = -(-len(line) // count)
    return [message for piece in cut(line, size) for message in decoder.feed(piece)]
