"""Test the codec with both streams of every recorded session.

The expected messages come from the bytes and :mod:`json` alone. Streams up to 5 KB, or up to 1 MB in the long tests,
are fed one byte at a time. Larger streams (up to 7 MB, mostly in a few long lines) are cut every 127 bytes or every
KiB, and also at every position within four bytes of the end of a line, because only such a cut could change
anything.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

import claude_wire
import recordings
from claude_wire import ControlRequest, ControlResponse, Decoder, InvalidLine, InvalidLineError, decode, encode
from claude_wire.messages import Unknown
from claude_wire.messages.base import Wire
from each import each
from long_tests import LONG
from same_json import differences

SURROGATE = re.compile("[\ud800-\udfff]")

STREAMS = [
    f"{name}/{stream}"
    for name in recordings.names()
    for stream in ("stdout", "stdin")
    if getattr(recordings.load(name), stream)
]
every_stream = each("stream", STREAMS, str)


class Line(NamedTuple):
    """A line that is not blank, with its value as json decodes it."""

    number: int
    offset: int
    #: Without the line feed. The first line has no byte order mark.
    raw: bytes
    #: None if it is not one JSON object.
    value: dict[str, Any] | None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _bytes(stream: str) -> bytes:
    name, _, which = stream.rpartition("/")
    data: bytes = getattr(recordings.load(name), which)
    return data


@functools.cache
def _lines(stream: str) -> list[Line]:
    lines = []
    offset = 0
    for number, raw in enumerate(_bytes(stream).split(b"\n"), 1):
        bom = 3 if number == 1 and raw.startswith(b"\xef\xbb\xbf") else 0
        bare = raw[bom:]
        if bare.strip(b" \t\r"):
            lines.append(Line(number, offset + bom, bare, _object(bare)))
        offset += len(raw) + 1
    return lines


@functools.cache
def _whole(stream: str) -> list[Any]:
    """Decode the whole stream in one call of feed()."""
    decoder = Decoder()
    return decoder.feed(_bytes(stream)) + decoder.close()


def _fed(chunks: Iterator[bytes]) -> list[Any]:
    decoder = Decoder()
    messages: list[Any] = []
    for chunk in chunks:
        messages += decoder.feed(chunk)
    return messages + decoder.close()


def _known(stream: str) -> Iterator[tuple[Line, Any]]:
    """Yield each line that is a JSON object, with its message."""
    for line, message in zip(_lines(stream), _whole(stream), strict=True):
        if line.value is not None:
            yield line, message


def _unknown(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Unknown]]:
    """Yield every unknown value in a message (or the message itself), with its path in the JSON."""
    if isinstance(value, Unknown):
        yield path, value
    elif isinstance(value, Wire):
        for name, key in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            yield from _unknown(getattr(value, name), (*path, key))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _unknown(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, (*path, index))


# --- lines that are no JSON object ------------------------------------------------------------------------------------


@every_stream
def test_exactly_the_lines_that_json_cannot_read_as_an_object_are_invalid_in_their_place(stream: str) -> None:
    lines, messages = _lines(stream), _whole(stream)
    assert len(messages) == len(lines)
    for line, message in zip(lines, messages, strict=True):
        if line.value is None:
            assert type(message) is InvalidLine
            assert (message.line_number, message.offset, message.raw) == (line.number, line.offset, line.raw)
            assert message.length == len(line.raw)
            assert message.reason
        else:
            assert not isinstance(message, InvalidLine)


def test_the_recordings_hold_invalid_lines_of_every_kind() -> None:
    invalid = {stream for stream in STREAMS if any(line.value is None for line in _lines(stream))}
    assert invalid == {
        "14_bad_deep/stdin",
        "14_bad_ls_between/stdin",
        "14_bad_midsession/stdin",
        "14_bad_nan/stdin",
        "14_bad_nul/stdin",
        "14_bad_partial_eof/stdin",
        "14_bad_string/stdin",
        "14_bad_true/stdin",
        "14_bad_truncated_json/stdin",
        "14_bad_two_on_line/stdin",
        "16_anthropic_log_debug/stdout",
        "17_sdk_client_full/stdout",
        "19_slowread_long_6/stdout",
    }


# --- what the tables do not know --------------------------------------------------------------------------------------

#: All unknown values in the recordings, which were recorded on purpose: stream -> [(line, class, its type)].
UNKNOWN = {
    # requests that the CLI refuses
    "08_control/stdin": [
        (6, "UnknownRequest", "set_permission_mode"),  # without a mode
        (16, "UnknownRequest", "no_such_subtype"),
        (37, "UnknownRequest", "list_directory"),
        (50, "UnknownHookInput", None),  # a hook_callback whose input is {}
        (54, "UnknownRequest", ""),
        (55, "UnknownRequest", None),  # subtype null
        (56, "UnknownRequest", None),  # subtype 5
        (57, "UnknownRequest", None),  # no subtype
    ],
    "14_bad_bad_block/stdin": [(1, "UnknownBlock", "wobble")],
    "14_bad_num_content/stdin": [(1, "UnknownMessage", "user")],  # content is a number
    "14_bad_unknown_type/stdin": [(1, "UnknownMessage", "wibble")],
    # a fake model that answers with a block of unknown type
    "16_unknown_block/stdout": [(4, "UnknownBlock", "wibble_block"), (5, "UnknownBlock", "wibble_block")],
}


@every_stream
def test_nothing_is_unknown_but_what_was_made_unknown(stream: str) -> None:
    unknown = [
        (line.number, type(value).__name__, value.type)
        for line, message in _known(stream)
        for _, value in _unknown(message)
    ]
    assert unknown == UNKNOWN.get(stream, [])


def test_no_recording_that_holds_something_unknown_went_missing() -> None:
    assert UNKNOWN.keys() <= set(STREAMS)


@each("stream", sorted(UNKNOWN), str)
def test_an_unknown_value_says_why_and_holds_its_whole_payload(stream: str) -> None:
    for line, message in _known(stream):
        for path, value in _unknown(message):
            at: Any = line.value
            for step in path:
                at = at[step]
            assert value == at
            assert value.reason


# --- cuts -------------------------------------------------------------------------------------------------------------


@every_stream
def test_the_finest_cuts_give_the_same_messages(stream: str) -> None:
    data = _bytes(stream)
    cuts = set(range(len(data) + 1))
    if len(data) > (1_000_000 if LONG else 5_000):
        ends = [line.offset + len(line.raw) for line in _lines(stream)]
        near = {end + around for end in ends for around in range(-4, 6)}
        cuts = {*range(0, len(data), 1021 if len(data) > 1_000_000 else 127), *near, 0, len(data)}
    at = sorted(cut for cut in cuts if 0 <= cut <= len(data))
    assert _fed(data[start:stop] for start, stop in pairwise(at)) == _whole(stream)


@every_stream
def test_chunks_of_a_line_and_a_bit_more_or_less_give_the_same_messages(stream: str) -> None:
    # These chunks end a few bytes after, at, or before the end of a line. Single bytes never cover that case.
    data = _bytes(stream)
    for more in (-2, -1, 0, 1, 2, 3, 9):
        ends = {line.offset + len(line.raw) + more for line in _lines(stream)}
        at = sorted({0, len(data), *(end for end in ends if 0 < end < len(data))})
        assert _fed(data[start:stop] for start, stop in pairwise(at)) == _whole(stream)


# --- encoding ---------------------------------------------------------------------------------------------------------


@every_stream
def test_encoding_gives_the_line_back(stream: str) -> None:
    found = [
        difference
        for line, message in _known(stream)
        for difference in differences(message, line.value, json.loads(encode(message)))
    ]
    assert found == []


@every_stream
def test_encoding_is_one_line_of_compact_json(stream: str) -> None:
    for _, message in _known(stream):
        line = encode(message)
        assert line.endswith(b"}\n")
        assert b"\n" not in line[:-1]
        assert not re.search("[\u2028\u2029]", line.decode("utf-8"))
        assert decode(line) == message


# --- answers to control requests --------------------------------------------------------------------------------------


@functools.cache
def _exchanges() -> dict[str, list[tuple[Line, Line]]]:
    """Return "subtype on stream" -> pairs of a control request and its successful answer."""
    exchanges: dict[str, list[tuple[Line, Line]]] = defaultdict(list)
    for name in recordings.names():
        for asked, answered in (("stdin", "stdout"), ("stdout", "stdin")):
            requests = {
                line.value["request_id"]: line
                for line in _lines(f"{name}/{asked}")
                if line.value and line.value.get("type") == "control_request" and "request_id" in line.value
            }
            for line in _lines(f"{name}/{answered}"):
                if line.value and line.value.get("type") == "control_response":
                    request = requests.get(line.value["response"].get("request_id"))
                    if request is not None and line.value["response"]["subtype"] == "success":
                        exchanges[f"{request.value['request']['subtype']} on {asked}"].append((request, line))
    return exchanges


@each("asked", sorted(_exchanges()), str)
def test_every_answer_is_typed_by_its_request_and_keeps_what_it_says(asked: str) -> None:
    found = set()
    for request_line, response_line in _exchanges()[asked]:
        request, response = decode(request_line.raw), decode(response_line.raw)
        assert isinstance(request, ControlRequest)
        assert isinstance(response, ControlResponse)
        assert response.request_id == request.request_id
        assert not isinstance(request.request, Unknown)
        payload = response_line.value["response"].get("response") or {}
        answer = response.payload_as(type(request.request))
        plain = answer.to_dict() if isinstance(answer, (Wire, Unknown)) else answer
        found.update(re.sub(r"\[\d+\]", "[]", difference) for difference in differences(answer, payload, plain))
    assert sorted(found) == []


def test_the_recordings_hold_answers_in_both_directions() -> None:
    # a host may send 48 kinds of requests, the CLI 5
    assert Counter(asked.rpartition(" on ")[2] for asked in _exchanges()) == {"stdin": 35, "stdout": 4}


# --- other writers ----------------------------------------------------------------------------------------------------


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


@every_stream
def test_neither_the_order_of_keys_nor_spaces_nor_escapes_matter(stream: str) -> None:
    known = list(_known(stream))
    # json.dumps writes ", " and ": ", and escapes everything that is not ASCII
    rewritten = b"".join(json.dumps(_reversed(line.value)).encode() + b"\n" for line, _ in known)
    messages = Decoder().feed(rewritten)
    assert messages == [message for _, message in known]
    for message, (_, original) in zip(messages, known, strict=True):
        assert json.loads(encode(message)) == json.loads(encode(original))


# --- dicts and surrogates ---------------------------------------------------------------------------------------------


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_replaced(key): _replaced(item) for key, item in value.items()}
    return [_replaced(item) for item in value] if isinstance(value, list) else value


def _has_surrogate(value: Any) -> bool:
    return bool(SURROGATE.search(json.dumps(value, ensure_ascii=False)))


@every_stream
def test_dict_decoding_is_what_json_reads(stream: str) -> None:
    for mode, expected in (("keep", lambda value: value), ("replace", _replaced)):
        decoder = Decoder(dict, surrogates=mode)
        objects = decoder.feed(_bytes(stream)) + decoder.close()
        for line, value in zip(_lines(stream), objects, strict=True):
            if line.value is None:
                assert isinstance(value, InvalidLine)
            else:
                assert type(value) is dict
                assert value == expected(line.value)
        repaired = sum(line.value is not None and _has_surrogate(line.value) for line in _lines(stream))
        assert decoder.stats.repaired == repaired


def test_the_recordings_hold_lone_surrogates() -> None:
    held = {stream for stream in STREAMS if any(line.value and _has_surrogate(line.value) for line in _lines(stream))}
    assert held == {"10_unicode/stdout", "17_sdk_query_iter/stdout"}


@every_stream
def test_typed_decoding_replaces_surrogates_when_asked_to_and_changes_nothing_else(stream: str) -> None:
    decoder = Decoder(surrogates="replace")
    messages = decoder.feed(_bytes(stream)) + decoder.close()
    for line, message, kept in zip(_lines(stream), messages, _whole(stream), strict=True):
        if line.value is None or not _has_surrogate(line.value):
            assert message == kept
        else:
            assert not differences(message, _replaced(line.value), json.loads(encode(message)))
            assert message == decode(json.dumps(_replaced(line.value)))


# --- one line, and the counts -----------------------------------------------------------------------------------------


@every_stream
def test_decode_agrees_with_the_decoder_on_every_line(stream: str) -> None:
    for line, message in zip(_lines(stream), _whole(stream), strict=True):
        if line.value is None:
            with pytest.raises(InvalidLineError) as caught:
                decode(line.raw)
            assert caught.value.line.raw == line.raw
        else:
            assert decode(line.raw) == decode(line.raw + b"\n") == message
            assert type(decode(line.raw)) is type(message)


@every_stream
def test_the_counts_add_up(stream: str) -> None:
    lines = _lines(stream)
    decoder = Decoder()
    messages = decoder.feed(_bytes(stream)) + decoder.close()
    stats = decoder.stats
    assert stats.bytes == len(_bytes(stream))
    assert stats.lines == stats.messages + stats.invalid == len(lines)
    assert stats.invalid == sum(line.value is None for line in lines)
    assert stats.unknown == sum(any(True for _ in _unknown(message)) for message in messages)


def test_fields_stand_in_the_order_in_which_the_cli_writes_them() -> None:
    # msgspec looks up a key fastest if it comes in the order of the fields. Optional fields do not matter much.
    lines = [json.loads(line) for line in recordings.load("02_long_partial").stdout.splitlines()]
    event = next(line for line in lines if line["type"] == "stream_event" and "delta" in line["event"])
    assistant = next(line for line in lines if line["type"] == "assistant")
    for value, cls in (
        (event, claude_wire.StreamEvent),
        (assistant, claude_wire.AssistantMessage),
        (assistant["message"], claude_wire.messages.ApiMessage),
        (assistant["message"]["usage"], claude_wire.messages.Usage),
    ):
        fields = list(cls.__struct_encode_fields__)
        places = [fields.index(key) for key in value if key in fields]
        assert places == sorted(places), cls
