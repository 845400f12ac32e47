"""Properties of the codec for any input: it loses nothing, raises only its own errors, and takes linear time."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from claude_wire import Decoder, EncodeError, Encoder, InvalidLine, InvalidLineError, Message, decode, encode
from claude_wire.messages import Unknown
from same_json import differences

BOM = b"\xef\xbb\xbf"
BLANK = b" \t\r"
KEEP_ALIVE = b'{"type":"keep_alive"}'

# --- Strategies -------------------------------------------------------------------------------------------------------

#: Text with the characters that readers and writers of lines often get wrong.
text = st.text(max_size=20) | st.lists(
    st.sampled_from(["a", "\n", "\r", "\t", "\0", '"', "\\", "/", "{", "}", "\x7f", "\x85", "\u2028", "\u2029"])
    | st.sampled_from(
        ["é", "\U0001f600", "\ud83d", "\ude00", "\udfff", "\ufeff", "\ufffd", "\uffff", '"}\n{"', "\\ud83d"]
    ),
    max_size=8,
).map("".join)

numbers = (
    st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, -0.0, 2**63, 2**64, -(2**63) - 1, 1e300, 5e-324, 10**30])
)

json_values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
#: Objects without "type" and "subtype", for fields that may hold any object.
objects = st.dictionaries(text.filter(lambda key: key not in ("type", "subtype")), json_values, max_size=3)
new_tags = st.sampled_from(["of_tomorrow", "von_übermorgen", ""])


def with_tag(tag: st.SearchStrategy[str] | str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    strategies = {
        key: value if isinstance(value, st.SearchStrategy) else st.just(value) for key, value in fields.items()
    }
    tag = st.just(tag) if isinstance(tag, str) else tag
    return st.fixed_dictionaries({"type": tag, **strategies})


unknown_parts = st.builds(lambda tag, rest: {"type": tag, **rest}, new_tags, objects)
small = st.integers(0, 10**6)

deltas = (
    with_tag("text_delta", text=text)
    | with_tag("thinking_delta", thinking=text)
    | with_tag("input_json_delta", partial_json=text)
    | with_tag("signature_delta", signature=text)
    | unknown_parts
)
blocks = (
    with_tag("text", text=text)
    | with_tag("thinking", thinking=text, signature=text)
    | with_tag("tool_use", id=text, name=text, input=objects)
    | with_tag("tool_result", tool_use_id=text, content=text)
    | with_tag(
        "tool_result", tool_use_id=text, content=st.lists(with_tag("text", text=text) | unknown_parts, max_size=2)
    )
    | unknown_parts
)
api_messages = st.fixed_dictionaries({"content": st.lists(blocks, max_size=3), "model": text, "stop_reason": st.none()})
events = (
    with_tag("content_block_delta", index=small, delta=deltas)
    | with_tag("content_block_start", index=small, content_block=blocks)
    | with_tag("content_block_stop", index=small)
    | with_tag("message_start", message=api_messages)
    | with_tag("message_delta", delta=st.just({"stop_reason": "end_turn"}), usage=st.just({"output_tokens": 1}))
    | with_tag("message_stop")
    | with_tag("ping")
    | unknown_parts
)
stream_events = with_tag("stream_event", event=events, session_id=text, uuid=text)
messages = (
    stream_events
    | with_tag("assistant", message=api_messages, error=text)
    | with_tag(
        "user", message=st.fixed_dictionaries({"role": st.just("user"), "content": st.lists(blocks, max_size=2)})
    )
    | with_tag(
        "user", message=st.fixed_dictionaries({"role": st.just("user"), "content": text}), tool_use_result=json_values
    )
    | with_tag("system", subtype="init", cwd=text, tools=st.lists(text, max_size=2))
    | with_tag(
        "result", subtype=st.sampled_from(["success", "error", "of_tomorrow"]), is_error=st.booleans(), result=text
    )
    | with_tag("control_request", request_id=text, request=st.just({"subtype": "interrupt"}))
    | with_tag(
        "control_response",
        response=st.fixed_dictionaries({"subtype": st.just("success"), "request_id": text, "response": objects}),
    )
    | with_tag("keep_alive")
    # Dialects.
    | with_tag("system", subtype="queued", position=small)
    | with_tag("system", subtype="tool_result", tool_use_id=text, content=text)
    | with_tag("control", action=text)
    | st.fixed_dictionaries({"allow": st.booleans()})
    # Unknown.
    | unknown_parts
    | with_tag("system", subtype=st.sampled_from(["of_tomorrow", ""]), x=json_values)
    | objects.filter(lambda value: "allow" not in value)
)


def written(value: dict[str, Any], ascii_only: bool, spaces: bool) -> bytes:
    """Encode a message with the escapes and spaces of one of several JSON writers."""
    separators = (", ", ": ") if spaces else (",", ":")
    line = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    return line.encode("utf-8", "backslashreplace")  # a lone surrogate can only be written as an escape


lines = st.builds(written, messages, st.booleans(), st.booleans())


def as_json(value: Any) -> Any:
    """Encode and decode a value with json, which joins two adjacent surrogate halves into one character."""
    return json.loads(json.dumps(value))


@st.composite
def chunked(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    """Cut the stream at random positions, or into small pieces of equal size."""
    size = draw(st.none() | st.integers(1, 9))
    if size is not None:
        return [stream[start : start + size] for start in range(0, len(stream), size)]
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    return [stream[start:end] for start, end in itertools.pairwise([0, *cuts, len(stream)])]


def decoded(chunks: list[bytes], decoder: Decoder[Any]) -> list[Any]:
    return [message for chunk in chunks for message in decoder.feed(chunk)] + decoder.close()


# --- Messages ---------------------------------------------------------------------------------------------------------


@given(
    st.data(), st.lists(messages, max_size=6), st.sampled_from([b"\n", b"\r\n", b"\n\n"]), st.booleans(), st.booleans()
)
def test_any_messages_at_any_chunking_come_back(
    data: st.DataObject, values: list[dict[str, Any]], end: bytes, ascii_only: bool, spaces: bool
) -> None:
    stream = b"".join(written(value, ascii_only, spaces) + end for value in values)
    decoder = Decoder()
    found = decoded(data.draw(chunked(stream)), decoder)
    assert decoder.stats.invalid == 0
    assert len(found) == len(values)
    for message, value in zip(found, values, strict=True):
        assert differences(message, as_json(value), json.loads(encode(message))) == []
        assert message == decode(written(value, ascii_only, spaces))
    assert decoded(data.draw(chunked(stream)), Decoder(dict)) == [as_json(value) for value in values]


@given(messages, st.booleans(), st.booleans())
def test_encoding_then_decoding_is_identity(value: dict[str, Any], ascii_only: bool, spaces: bool) -> None:
    message = decode(written(value, ascii_only, spaces))
    line = encode(message)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert len(line.decode().splitlines()) <= 1 + line.count(b"\xc2\x85")
    again = decode(line)
    assert again == message
    assert encode(again) == line
    if isinstance(message, Unknown):
        assert (type(again), getattr(again, "reason", None)) == (type(message), message.reason)


@given(st.lists(messages, max_size=4))
def test_lines_encoded_together_are_lines_encoded_one_by_one(values: list[dict[str, Any]]) -> None:
    made = [decode(written(value, True, False)) for value in values]
    buffer = bytearray()
    for message in made:
        Encoder().encode_into(message, buffer)
    assert Encoder().encode_lines(made) == buffer == b"".join(map(encode, made))
    assert Decoder().feed(bytes(buffer)) == made


@given(st.dictionaries(text, json_values | st.floats() | st.binary(max_size=3) | st.sets(st.integers(), max_size=2)))
def test_any_dict_is_one_line_of_json_or_an_encode_error(value: dict[str, Any]) -> None:
    try:
        line = encode(value)
    except EncodeError:
        return
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert isinstance(json.loads(line), dict)


# --- Any bytes --------------------------------------------------------------------------------------------------------

#: Pieces of a stream, many of which are almost valid lines.
pieces = st.one_of(
    lines,
    lines.map(lambda line: line + b"\n"),
    st.sampled_from(
        [b"\n", b"\r\n", b"\r", b" ", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", BOM, BOM[:1], b"\0"]
    ),
    st.sampled_from(
        [b"null", b"NaN", b"1e400", b"-0", b"01", b'{"type":"', KEEP_ALIVE, b'"}', rb"\ud83d", b"\xed\xa0\xbd"]
    ),
    st.binary(max_size=6),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a stream of lines in which a few bytes were replaced, removed or inserted."""
    stream = bytearray(b"\n".join(draw(st.lists(lines, max_size=4))) + b"\n")
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(stream)))
        end = draw(st.integers(start, min(len(stream), start + 3)))
        stream[start:end] = draw(st.binary(max_size=3) | st.sampled_from([b"\n", b'"', b"\\", b"{", b"}", b"9"]))
    return bytes(stream)


streams = st.lists(pieces, max_size=10).map(b"".join) | damaged()


class NotOneObject(Exception):
    """Raised by :func:`one_object` for a line that is not one JSON object."""


def no_number(name: str) -> Any:
    raise NotOneObject(name)


def one_object(line: bytes) -> Any:
    """Parse a line as one JSON object by the definition: valid UTF-8, strict JSON, no number beyond a double."""

    def number(digits: str) -> float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            raise NotOneObject
        return value

    try:
        value = json.loads(line.decode("utf-8").strip(" \t\r"), parse_constant=no_number, parse_float=number)
    except (ValueError, RecursionError):
        raise NotOneObject from None
    if not isinstance(value, dict):
        raise NotOneObject
    return value


def reference(stream: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield each line that is not blank, with its number and byte offset, by the definition."""
    offset = len(BOM) if stream.startswith(BOM) else 0
    for number, line in enumerate(stream[offset:].split(b"\n"), 1):
        if line.strip(BLANK):
            yield line, number, offset
        offset += len(line) + 1


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), streams)
def test_any_bytes_give_what_the_slow_way_gives(data: st.DataObject, stream: bytes) -> None:
    found = decoded(data.draw(chunked(stream)), Decoder(dict))
    expected = list(reference(stream))
    assert len(found) == len(expected)
    for item, (line, number, offset) in zip(found, expected, strict=True):
        try:
            value = one_object(line.removesuffix(b"\r"))
        except NotOneObject:
            value = None
        if isinstance(item, InvalidLine):
            # A line with two values for a tag is invalid for us, but it is valid JSON.
            assert value is None or "two values" in item.reason
            assert (item.raw, item.line_number, item.offset, item.length) == (line, number, offset, len(line))
        else:
            assert item == value
            assert json.dumps(item) == json.dumps(value)  # 1, 1.0 and True are equal, but their JSON differs


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), streams)
def test_any_bytes_are_refused_as_messages_if_they_are_as_dicts(data: st.DataObject, stream: bytes) -> None:
    typed = decoded(data.draw(chunked(stream)), Decoder())
    plain = decoded([stream], Decoder(dict))
    assert len(typed) == len(plain)
    for message, value in zip(typed, plain, strict=True):
        if isinstance(message, InvalidLine):
            if isinstance(value, InvalidLine):
                assert message == value
            else:
                assert "two values" in message.reason
        elif isinstance(value, InvalidLine):
            # A number of any size is allowed in a field that the class skips.
            assert value.reason == "a number is out of range"
        elif isinstance(message, Unknown):
            assert message == value


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), streams)
def test_any_bytes_leave_the_lines_around_them_intact(data: st.DataObject, noise: bytes) -> None:
    before = [b'{"type":"system","subtype":"init","cwd":"/"}', KEEP_ALIVE, b'{"type":"of_tomorrow","n":1}']
    around = b"\n".join([*before, b""])
    stream = around + noise + b"\n" + around
    chunks = data.draw(chunked(stream))
    for kind in (Message, dict):
        expected = Decoder(kind).feed(around)
        found = decoded(chunks, Decoder(kind))
        assert found[:3] == found[-3:] == expected


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), streams)
def test_no_mode_of_on_invalid_loses_anything(data: st.DataObject, stream: bytes) -> None:
    kind = data.draw(st.sampled_from([Message, dict]))
    expected = decoded([stream], Decoder(kind))
    raising: Decoder[Any] = Decoder(kind, on_invalid="raise")
    found: list[Any] = []
    calls = [*data.draw(chunked(stream)), *[None] * (len(expected) + 1)]
    for chunk in calls:
        try:
            found += raising.close() if chunk is None else raising.feed(chunk)
        except InvalidLineError as error:
            found += [*error.messages, error.line]
    assert found == expected
    bad: list[Any] = []
    calling: Decoder[Any] = Decoder(kind, on_invalid=bad.append)
    assert decoded(data.draw(chunked(stream)), calling) == [
        item for item in expected if not isinstance(item, InvalidLine)
    ]
    assert bad == [item for item in expected if isinstance(item, InvalidLine)]
    assert raising.stats == calling.stats


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), streams, st.integers(1, 60))
def test_any_limit_drops_the_lines_above_it_and_no_other(data: st.DataObject, stream: bytes, limit: int) -> None:
    found = decoded(data.draw(chunked(stream)), Decoder(dict, max_line_bytes=limit))
    whole = {item.line_number: item for item in decoded([stream], Decoder(dict)) if isinstance(item, InvalidLine)}
    # The decoder drops a blank line above the limit before it can see that the line is blank.
    offset = len(BOM) if stream.startswith(BOM) else 0
    all_lines = enumerate(stream[offset:].split(b"\n"), 1)
    expected = [(number, line) for number, line in all_lines if len(line) > limit or line.strip(BLANK)]
    assert len(found) == len(expected)
    for item, (number, line) in zip(found, expected, strict=True):
        if len(line) > limit:
            assert isinstance(item, InvalidLine)
            assert item.reason == "longer than max_line_bytes"
            assert (item.raw, item.length, item.line_number) == (line[:1024], len(line), number)
        elif number in whole:
            assert item == whole[number]
        else:
            assert not isinstance(item, InvalidLine)


def result(line: Any) -> Any:
    try:
        return decode(line)
    except InvalidLineError as error:
        return error.line


@given(st.binary(max_size=40) | streams)
def test_decode_raises_for_what_a_decoder_calls_invalid(line: bytes) -> None:
    assume(b"\n" not in line)
    assume(line.removeprefix(BOM).strip(BLANK))
    (expected,) = Decoder().feed(line + b"\n")
    found = result(line)
    if isinstance(expected, InvalidLine):
        assert isinstance(found, InvalidLine)
        assert found.reason == expected.reason
    else:
        assert found == expected


@given(st.text(max_size=40) | streams.map(lambda stream: stream.decode("utf-8", "replace")))
def test_decode_of_a_str_is_that_of_its_bytes(text: str) -> None:
    encoded = text.encode("utf-8", "backslashreplace")
    assert result(text) == result(encoded)


# --- Surrogates -------------------------------------------------------------------------------------------------------


def has_surrogate(value: Any) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in json.dumps(value, ensure_ascii=False))


def without_surrogates(value: Any) -> Any:
    """Replace lone surrogates as the codec does."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


@given(st.data(), st.lists(messages, max_size=4))
def test_replacing_surrogates_changes_nothing_else(data: st.DataObject, values: list[dict[str, Any]]) -> None:
    stream = b"".join(written(value, True, False) + b"\n" for value in values)
    kept, replaced = Decoder(dict, surrogates="keep"), Decoder(dict, surrogates="replace")
    found = decoded(data.draw(chunked(stream)), kept)
    assert found == [as_json(value) for value in values]
    assert kept.stats.repaired == sum(map(has_surrogate, found))
    assert decoded(data.draw(chunked(stream)), replaced) == [without_surrogates(value) for value in found]
    assert replaced.stats == kept.stats


# --- Cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [64 * 1024, 1024, 1], ids=["64 KiB", "1 KiB", "1 byte"])
@pytest.mark.parametrize("kind", [Message, dict], ids=["typed", "dict"])
@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"stream_event","event":{"type":"ping"}}\n',
        b'{"type":"user","message":{"role":"user","content":"' + b"x" * 70_000 + b'"}}\n',
        b"bad\n",
        b"\n",
    ],
    ids=["short", "long", "bad", "blank"],
)
def test_bytes_touched_are_linear_at_any_chunking(line: bytes, kind: Any, size: int) -> None:
    # The bound is proportional to the length of the stream. Repeated work would exceed it.
    stream = line * max(2, (100_000 if size > 1 else 30_000) // len(line))
    decoder: Decoder[Any] = Decoder(kind)
    held = 0
    for start in range(0, len(stream), size):
        decoder.feed(stream[start : start + size])
        held = max(held, decoder._buffer.stats().held)
    searched, copied, _ = decoder._buffer.stats()
    assert decoder.stats.bytes == searched == len(stream)
    assert copied <= 3 * len(stream)
    assert held <= 3 * max(len(line), 64 * 1024)
