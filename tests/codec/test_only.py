"""Tests of ``only``: the messages of the whole stream, without those that are certainly of other kinds.

The expected messages come from the same stream with each line of another kind replaced by spaces: blank lines give no
message, but still count as lines and bytes. ``peek`` gives the kinds, checked against the JSON of each line.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Sequence
from typing import Any, cast, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import recordings
from claude_wire import (
    AssistantMessage,
    Decoder,
    InvalidLine,
    InvalidLineError,
    Kind,
    Message,
    ResultMessage,
    decode,
    peek,
    read,
)
from claude_wire.codec import peek_lines
from claude_wire.codec.kind_names import KindName, known_kinds
from claude_wire.limits import BLOCK_BYTES, DEFAULT_MAX_LINE_BYTES
from claude_wire.messages import ContentBlock, ControlAnswer, ControlRequestPayload, Delta, Event
from claude_wire.messages.union import MESSAGES, RESULT_BY_SUBTYPE, SYSTEM_BY_SUBTYPE
from decoded_kinds import checked_kind, is_wanted
from each import each
from feeding import cut, fed, without_vectors
from mutations import mutants
from traffic import traffic

BOM = b"\xef\xbb\xbf"
ONLY = [
    ("result", "assistant"),
    ("system/init", "stream_event/content_block_delta/text_delta"),
    ("stream_event/content_block_delta", "control_request/can_use_tool", "user"),
    (),
]
every_only = pytest.mark.parametrize("only", ONLY, ids=["results", "nested", "mixed", "nothing"])
every_type = pytest.mark.parametrize("type_", [Message, dict], ids=["typed", "dict"])

NAMES = [name for name in recordings.names() if recordings.load(name).stdout]


def passed_over(line: bytes, only: Iterable[str]) -> bool:
    """Return whether ``only`` skips the line, judged by its kind."""
    return not is_wanted(checked_kind(line), only)


def blanked(stream: bytes, only: Iterable[str], max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> bytes:
    """Replace the lines that ``only`` skips by spaces."""
    only = list(only)
    start = BOM if stream.startswith(BOM) else b""
    lines = stream[len(start) :].split(b"\n")
    kept = [b" " * len(line) if len(line) <= max_line_bytes and passed_over(line, only) else line for line in lines]
    return start + b"\n".join(kept)


def message(kind: str) -> bytes:
    """Return a line of the kind with this name, such as ``system/init``."""
    name, *rest = kind.split("/")
    value = b'{"type":"%s"' % name.encode()
    if name == "stream_event":
        detail = b',"delta":{"type":"%s","text":"t"},"index":0' % rest[1].encode() if len(rest) > 1 else b""
        return value + b',"event":{"type":"%s"%s}}' % (rest[0].encode(), detail)
    if name in ("control_request", "control_response"):
        inside = {"control_request": b"request", "control_response": b"response"}[name]
        return value + b',"request_id":"1","%s":{"subtype":"%s"}}' % (inside, rest[0].encode())
    return value + (b',"subtype":"%s"}' % rest[0].encode() if rest else b"}")


KINDS = [
    *["keep_alive", "system/init", "system/status", "system/of_tomorrow", "of_tomorrow", "of_tomorrow/x"],
    *["control_request/can_use_tool", "control_request/interrupt", "control_response/success", "stream_event/ping"],
    *["stream_event/message_stop", "stream_event/content_block_delta/text_delta"],
    *["stream_event/content_block_delta/signature_delta", "stream_event/content_block_delta"],
]


# --- Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({"/".join(kind.split("/")[:parts]) for kind in KINDS for parts in (1, 2, 3)}))
def test_a_name_stands_for_the_kinds_that_begin_with_its_parts(name: str) -> None:
    parts = name.split("/")
    wanted = [kind for kind in KINDS if kind.split("/")[: len(parts)] == parts]
    assert wanted
    decoder = Decoder(dict, only=[Kind(*parts)])
    decoded = decoder.feed(b"".join(message(kind) + b"\n" for kind in KINDS))
    expected = Decoder(dict).feed(b"".join(message(kind) + b"\n" for kind in wanted))
    assert decoded == expected
    assert decoder.stats.skipped == len(KINDS) - len(wanted)


@pytest.mark.parametrize(
    "name", ["syst", "system/ini", "system/init/x", "System", "init", "stream_event/text_delta", "a"]
)
def test_half_a_name_is_no_name(name: str) -> None:
    decoder = Decoder(dict, only={Kind(*name.split("/"))})
    assert decoder.feed(b"".join(message(kind) + b"\n" for kind in KINDS)) == []
    assert decoder.stats.skipped == len(KINDS)


def test_no_names_pass_over_all_that_has_a_type() -> None:
    decoder = Decoder(dict, only=())
    lines = [b'{"type":"user"}', b'{"type":""}', b'{"x":1}', b'{"type":5}', b"{"]
    found = decoder.feed(b"\n".join(lines) + b"\n")
    assert found[:2] == [{"x": 1}, {"type": 5}]
    assert isinstance(found[2], InvalidLine)
    assert (found[2].line_number, found[2].offset) == (5, 47)
    assert decoder.stats.skipped == 2


def test_any_iterable_of_names() -> None:
    for only in (
        *(["result"], ("result",), {"result"}, iter(["result"]), {"result": 1}, frozenset({"result"})),
        *([Kind("result")], {"result", Kind("result")}, {peek(b'{"type":"result"}')}),
    ):
        decoder = Decoder(dict, only=only)
        assert decoder.only == frozenset({"result"})
        assert decoder.feed(b'{"type":"user"}\n{"type":"result"}\n') == [{"type": "result"}]
    assert Decoder(dict).only is None


def test_names_in_any_script() -> None:
    lines = '{"type":"日本"}\n{"type":"\\u65e5\\u672c"}\n{"type":"日"}\n{"type":"\\ud83d\\ude00"}\n'.encode()
    assert Decoder(dict, only=[Kind("日本")]).feed(lines) == [{"type": "日本"}, {"type": "日本"}]
    assert Decoder(dict, only=[Kind("😀")]).feed(lines) == [{"type": "😀"}]


def test_an_escaped_tag_is_matched_by_what_it_says() -> None:
    line = rb'{"\u0074ype":"re\u0073ult"}' + b"\n"
    assert Decoder(dict, only=["result"]).feed(line) == [{"type": "result"}]
    assert Decoder(dict, only=["user"]).feed(line) == []


@pytest.mark.parametrize("wrong", ["result", b"result", [b"result"], [1], 5, Kind("result"), dict], ids=repr)
def test_names_of_another_type(wrong: Any) -> None:
    with pytest.raises(TypeError):
        Decoder(only=wrong)
    with pytest.raises(TypeError):
        read(io.BytesIO(), only=wrong)


UNKNOWN = ["", "/", "result/", "/result", "a//b", "a/b/c/d", "a\nb", "\ud800", "asistant", "system/ini", "of_tomorrow"]


@pytest.mark.parametrize("wrong", UNKNOWN)
def test_a_name_that_no_kind_has_is_refused_at_once(wrong: Any) -> None:
    for make in (lambda only: Decoder(only=only), lambda only: read(io.BytesIO(), only=only)):
        with pytest.raises(ValueError, match="only: there is no kind "):
            make(["result", wrong])


@pytest.mark.parametrize(
    "wrong",
    [
        *(Kind(), Kind(None, "init"), Kind("system", None, "x"), Kind("a/b"), Kind("system", ""), Kind("a\nb")),
        *(Kind("\ud800"), Kind(cast("str", 5))),
    ],
)
def test_tags_that_no_line_is_named_by_are_refused_at_once(wrong: Kind) -> None:
    with pytest.raises(ValueError, match="is not a kind"):
        Decoder(only=[wrong])


def test_the_names_for_type_checkers_are_those_of_the_protocol() -> None:
    def tags(union: object) -> list[str]:
        configs = [getattr(cls, "__struct_config__", None) for cls in get_args(union)]
        return [str(config.tag) for config in configs if config is not None and config.tag]

    parts = {
        "system": SYSTEM_BY_SUBTYPE,
        "result": RESULT_BY_SUBTYPE,
        "stream_event": tags(Event),
        "stream_event/content_block_start": tags(ContentBlock),
        "stream_event/content_block_delta": tags(Delta),
        "control_request": tags(ControlRequestPayload),
        "control_response": tags(ControlAnswer),
    }
    kinds = {f"{kind}/{part}" for kind in parts for part in parts[kind]}
    assert set(get_args(KindName)) == known_kinds() == {*MESSAGES.by_type, "system", "result", *kinds}


def test_every_kind_that_was_recorded_has_a_name() -> None:
    kinds = {kind for name in NAMES for kind in peek_lines(recordings.load(name).stdout)}
    unknown = {str(kind) for kind in kinds if kind.type is not None and str(kind) not in known_kinds()}
    assert unknown == {"stream_event/content_block_start/wibble_block"}  # from the recording with an unknown block


# --- What is passed over ----------------------------------------------------------------------------------------------


def test_lines_whose_kind_is_unclear_are_decoded() -> None:
    lines = [
        b'{"type":"user","type":"system"}',
        b'{"type":"user"',
        b"not json",
        b'{"type":"user"}{"type":"user"}',
        rb'{"type":"\ud83d"}',
        b"[]",
    ]
    found = Decoder(only=["result"]).feed(b"\n".join(lines) + b"\n")
    assert found == Decoder().feed(b"\n".join(lines) + b"\n")
    assert len(found) == len(lines)


def test_passed_over_lines_are_not_checked() -> None:
    lines = [
        b'{"type":"user","x":tru}',
        b'{"type":"user","x":"\xff"}',
        b'{"type":"user","x":"\x00"}',
        b'{"type":"user","x":[}}',
        b'{"type":"user","x":{1 2}}',
    ]
    decoder = Decoder(only=["result"])
    assert decoder.feed(b"\n".join(lines) + b"\n") == []
    assert decoder.stats.skipped == len(lines)
    assert decoder.stats.invalid == 0


def test_kept_lines_are_checked_as_ever() -> None:
    lines = [b'{"type":"user","x":tru}', b'{"type":"result","x":tru}', b'{"type":"result","x":"\xff"}', b'{"type":"x"}']
    found = Decoder(dict, only=["result"]).feed(b"\n".join(lines) + b"\n")
    assert [type(message) for message in found] == [InvalidLine, InvalidLine]


def test_a_late_type_behind_megabytes() -> None:
    long = b'{"result":"' + b"\\n" * 1_700_000 + b'","subtype":"success","type":"result"}\n'
    decoder = Decoder(only=["result"])
    (result,) = decoder.feed(long)
    assert isinstance(result, ResultMessage)
    decoder = Decoder(only=["assistant"])
    assert fed(decoder, cut(long, BLOCK_BYTES)) == []
    assert decoder.stats.skipped == 1


def test_any_depth() -> None:
    line = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b',"type":"user"}\n'
    decoder = Decoder(only=["result"])
    assert decoder.feed(line) == []
    assert decoder.stats.skipped == 1


# --- Places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [0, 1, 2, 500, 5_000])
def test_a_line_keeps_its_place_behind_lines_that_were_passed_over(before: int) -> None:
    passed = b'{"type":"keep_alive"}\n'
    stream = passed * before + b"\n" + passed + b"bad\n" + passed + b'{"type":"result"}\r\n\xff\n'
    for chunks in ([stream], cut(stream, 1_000), cut(stream, 7)):
        bad, result, worse = fed(Decoder(dict, only=["result"]), chunks)
        assert (bad.raw, bad.line_number, bad.offset) == (b"bad", before + 3, (before + 1) * len(passed) + 1)
        assert result == {"type": "result"}
        assert (worse.raw, worse.line_number) == (b"\xff", before + 6)
        assert stream[worse.offset :] == b"\xff\n"


def test_a_last_line_without_line_feed() -> None:
    for start in (b"", b'{"type":"user"}\n'):
        decoder = Decoder(dict, only=["result"])
        assert decoder.feed(start + b'{"type":"result"}') == []
        assert decoder.close() == [{"type": "result"}]

        decoder = Decoder(dict, only=["result"])
        assert decoder.feed(start + b'{"type":"user"}') == []
        assert decoder.close() == []
        assert decoder.stats.skipped == 1 + bool(start)

        decoder = Decoder(dict, only=["result"])
        assert decoder.feed(start + b'{"type":"user"') == []
        (truncated,) = decoder.close()
        assert isinstance(truncated, InvalidLine)
        assert truncated.reason.startswith("truncated")
        assert (truncated.line_number, truncated.offset) == (1 + bool(start), len(start))


def test_a_new_stream_begins_after_close() -> None:
    decoder = Decoder(dict, only=["result"])
    decoder.feed(b'{"type":"user"}\n{"type":"user"}')
    decoder.close()
    (bad,) = decoder.feed(BOM + b"bad\n")
    assert (bad.line_number, bad.offset) == (1, 3)
    assert decoder.stats.skipped == 2


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 100])
def test_a_byte_order_mark(size: int) -> None:
    stream = BOM + b'{"type":"user"}\n' + BOM + b'{"type":"user"}\n{"type":"result"}\n'
    found = fed(Decoder(dict, only=["result"]), cut(stream, size))
    assert found == fed(Decoder(dict), [blanked(stream, ["result"])])
    assert [type(message) for message in found] == [
        InvalidLine,
        dict,
    ]  # a second byte order mark hides the kind of a line


def test_blank_lines_are_not_counted() -> None:
    decoder = Decoder(dict, only=["result"])
    assert decoder.feed(b'\n \r\n\t\n{"type":"user"}\n\r\n') == []
    assert decoder.stats.skipped == 1
    assert decoder.stats.lines == 0


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_lines_above_the_limit_are_reported_whatever_they_are(size: int) -> None:
    long = b'{"type":"user","x":"' + b"x" * 100 + b'"}'
    lines = [b'{"type":"user"}', long, b'{"type":"result"}', long, long, b'{"type":"user"}', b"bad", long]
    stream = b"\n".join(lines)
    decoder = Decoder(dict, only=["result"], max_line_bytes=50)
    found = fed(decoder, cut(stream, size))
    assert found == fed(Decoder(dict, max_line_bytes=50), [blanked(stream, ["result"], 50)])
    assert [getattr(message, "length", None) for message in found] == [122, None, 122, 122, 3, 122]
    assert decoder.stats.skipped == 2


def test_a_line_of_just_the_limit() -> None:
    line = b'{"type":"user"}'
    for limit, length in ((len(line), None), (len(line) - 1, len(line))):
        decoder = Decoder(only=["result"], max_line_bytes=limit)
        assert [getattr(message, "length", None) for message in decoder.feed(line + b"\n")] == [length][: bool(length)]


# --- Options ----------------------------------------------------------------------------------------------------------


def test_on_invalid_raise() -> None:
    stream = b'{"type":"result"}\n{"type":"user"}\nbad\n{"type":"user"}\n{"type":"result"}\nworse\n'
    decoder = Decoder(dict, only=["result"], on_invalid="raise")
    with pytest.raises(InvalidLineError) as caught:
        decoder.feed(stream)
    assert caught.value.messages == [{"type": "result"}]
    assert (caught.value.line.line_number, caught.value.line.offset) == (3, 34)
    with pytest.raises(InvalidLineError) as caught:
        decoder.feed(b'{"type":"user"}\n{"type":"result"}\n')
    assert caught.value.messages == [{"type": "result"}]
    assert caught.value.line.line_number == 6
    assert decoder.close() == [{"type": "result"}]
    assert decoder.stats.skipped == 3


def test_on_invalid_a_callable() -> None:
    bad: list[InvalidLine] = []
    decoder = Decoder(dict, only=["result"], on_invalid=bad.append)
    stream = b'{"type":"user"}\nbad\n{"type":"user"}\n{"type":"result"}\nworse\n'
    assert decoder.feed(stream) == [{"type": "result"}]
    assert [(line.raw, line.line_number, line.offset) for line in bad] == [(b"bad", 2, 16), (b"worse", 5, 54)]


@every_type
@pytest.mark.parametrize("surrogates", ["keep", "replace"])
def test_surrogates(type_: Any, surrogates: Any) -> None:
    stream = traffic(2, lines=200, text="emoji")
    assert b"\\ud83" in stream
    for only in ONLY:
        decoder = Decoder(type_, only=only, surrogates=surrogates)
        found = fed(decoder, cut(stream, 5_000))
        assert found == fed(Decoder(type_, surrogates=surrogates), [blanked(stream, only)])


def test_with_a_loads_of_ones_own() -> None:
    seen: list[bytes] = []

    def loads(line: bytes) -> Any:
        seen.append(line)
        return {"mine": len(line)}

    decoder = Decoder(dict, only=["result"], loads=loads)
    assert decoder.feed(b'{"type":"user"}\n{"type":"result"}\n') == [{"mine": 17}]
    assert seen == [b'{"type":"result"}']


@pytest.mark.parametrize("make", [bytearray, memoryview, lambda data: memoryview(data + b" ")[:-1]])
def test_any_bytes(make: Any) -> None:
    data = b'{"type":"user"}\n{"type":"result"}\n' * 1_000
    assert Decoder(dict, only=["result"]).feed(make(data)) == [{"type": "result"}] * 1_000


@every_only
def test_reading_a_file(only: Sequence[str]) -> None:
    stream = traffic(4, lines=500)
    with read(io.BytesIO(stream), dict, only=only) as reader:
        found = list(reader)
    assert found == Decoder(dict).feed(blanked(stream, only))
    assert reader.stats.skipped == 500 - len(found)


def test_results_and_assistants() -> None:
    stream = traffic(6, lines=2_000)
    expected = [message for message in Decoder().feed(stream) if isinstance(message, (AssistantMessage, ResultMessage))]
    assert Decoder(only={"result", "assistant"}).feed(stream) == expected


def test_counts() -> None:
    stream = traffic(7, lines=300) + b"bad\n\n" + b'{"type":"of_tomorrow"}\n'
    decoder = Decoder(only=["assistant", Kind("of_tomorrow")])
    found = decoder.feed(stream)
    stats = decoder.stats
    assert stats.bytes == len(stream)
    assert stats.invalid == 1
    assert stats.unknown == 1
    assert stats.messages == len(found) - 1
    assert stats.lines == len(found)
    assert stats.skipped == 302 - len(found)
    assert stats.merged == 0
    with decoder:
        pass
    assert decoder.stats == stats


def test_one_line_at_a_time() -> None:
    """A live process writes one line at a time. A decoder without ``only`` has a fast path for this."""
    stream = traffic(8, lines=400, text="mixed") + b"bad\n" + traffic(9, lines=50)
    for only in ONLY:
        decoder = Decoder(dict, only=only)
        found = fed(decoder, stream.splitlines(keepends=True))
        assert found == fed(Decoder(dict), [blanked(stream, only)])


# --- Against JSON -----------------------------------------------------------------------------------------------------


@every_type
@each("name", NAMES, str)
def test_recordings(name: str, type_: Any) -> None:
    """Lines of megabytes are in :func:`test_a_late_type_behind_megabytes`."""
    lines = [line for line in recordings.load(name).stdout.split(b"\n") if len(line) < 30_000]
    stream = b"\n".join(lines)
    for only in ONLY:
        expected = fed(Decoder(type_), [blanked(stream, only)])
        skipped = sum(passed_over(line, only) for line in lines)
        for chunks in ([stream], cut(stream, 1 + len(stream) // 3), cut(stream, 311, 1, 4_096)):
            decoder = Decoder(type_, only=only)
            assert fed(decoder, chunks) == expected
            assert decoder.stats.skipped == skipped
        assert fed(without_vectors(Decoder(type_, only=only)), [stream]) == expected


@every_only
@pytest.mark.parametrize("text", ["ascii", "cjk", "emoji"])
@pytest.mark.parametrize("order", ["cli", "shuffled"])
def test_traffic(only: Sequence[str], text: Any, order: Any) -> None:
    stream = traffic(3, lines=400, text=text, order=order, style="python" if text == "cjk" else "compact")
    expected = fed(Decoder(), [blanked(stream, only)])
    for sizes in ((len(stream),), (BLOCK_BYTES,), (1_000,), (290, 5)):
        assert fed(Decoder(only=only), cut(stream, *sizes)) == expected
    assert fed(without_vectors(Decoder(only=only)), [stream]) == expected
    part = b"".join(stream.splitlines(keepends=True)[:120])
    assert fed(Decoder(only=only), cut(part, 1)) == fed(Decoder(), [blanked(part, only)])


@every_only
def test_long_lines_among_short_ones(only: Sequence[str]) -> None:
    stream = traffic(3, lines=120, size="mixed", sessions=3)
    lines = stream.split(b"\n")
    assert max(map(len, lines)) > BLOCK_BYTES
    names = frozenset(only)
    kept = [b"" if passed_over(line, names) else line for line in lines]
    for line in lines:
        assert len(line) < 20_000 or wanted(line, names) is not passed_over(line, names)
    expected = Decoder(dict).feed(b"\n".join(kept))
    for sizes in ((len(stream),), (BLOCK_BYTES,), (10_000, 1)):
        assert fed(Decoder(dict, only=only), cut(stream, *sizes)) == expected


def wanted(line: bytes, names: frozenset[str]) -> bool:
    full = decode(line)
    tag = cast("str", full.to_dict()["type"])
    event = getattr(full, "event", None)
    subtype = event.to_dict()["type"] if event is not None else ""
    delta = getattr(event, "delta", None)
    detail = delta.to_dict()["type"] if delta is not None else ""
    return bool(names & {tag, f"{tag}/{subtype}", f"{tag}/{subtype}/{detail}"})


@every_only
def test_every_cut(only: Sequence[str]) -> None:
    session = [
        message("system/init"),
        b"bad",
        b"",
        message("stream_event/content_block_delta/text_delta") + b"\r",
        message("control_request/can_use_tool"),
        b'{"x":"\xff"}',
        message("of_tomorrow"),
        '{"type":"user","message":{"role":"user","content":"é"}}'.encode(),
        message("result")[:-1],
    ]
    stream = BOM + b"\n".join(session)
    expected = fed(Decoder(dict), [blanked(stream, only)])
    assert fed(Decoder(dict, only=only), cut(stream, 1)) == expected
    for one in range(len(stream)):
        assert fed(Decoder(dict, only=only), [stream[:one], stream[one:]]) == expected
    rng = random.Random(1)
    for _ in range(300):
        one, other = sorted((rng.randrange(len(stream)), rng.randrange(len(stream))))
        assert fed(Decoder(dict, only=only), [stream[:one], stream[one:other], b"", stream[other:]]) == expected


@every_only
def test_mutated_lines(only: Sequence[str]) -> None:
    lines = [line for line in traffic(11, lines=100, text="mixed").split(b"\n") if line]
    lines += [message(kind) for kind in KINDS]
    stream = b"\n".join(mutants(lines, 12, 1_500))
    for type_ in (Message, dict):
        expected = fed(Decoder(type_), [blanked(stream, only)])
        assert fed(Decoder(type_, only=only), [stream]) == expected
        assert fed(Decoder(type_, only=only), cut(stream, 1_000, 3)) == expected
        assert fed(without_vectors(Decoder(type_, only=only)), cut(stream, 1_777)) == expected


pieces = st.sampled_from(
    [
        *[message(kind) + b"\n" for kind in KINDS],
        *[b"\n", b"\r\n", b" ", b"bad\n", b"{", b"}", b'{"type":"user"}', b'"type":"result"', b"\xff", BOM, b"{}\n"],
    ]
)
names = st.sets(
    st.sampled_from(["result", "user", "system", "system/init", "stream_event", "of_tomorrow", "control_request"])
)


@given(st.lists(pieces, max_size=12).map(b"".join), names, st.lists(st.integers(1, 40), min_size=1, max_size=4))
@example(b'{"type":"user"}', set(), [1])
def test_any_stream_at_any_cut(stream: bytes, only: set[str], sizes: list[int]) -> None:
    expected = fed(Decoder(dict), [blanked(stream, only)])
    kinds = [Kind(*name.split("/")) for name in only]
    assert fed(Decoder(dict, only=kinds), [stream]) == expected
    decoder = Decoder(dict, only=kinds)
    assert fed(decoder, cut(stream, *sizes)) == expected
    start = len(BOM) if stream.startswith(BOM) else 0
    skipped = [passed_over(line, only) for line in stream[start:].split(b"\n")]
    assert decoder.stats.skipped == sum(skipped)
