"""Tests of ``InvalidLine.kind``: each kind of invalid line, cut into chunks at every position."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from claude_wire import Decoder, InvalidLine, InvalidLineError, decode
from claude_wire.messages import KeepAlive
from claude_wire.messages.invalid import InvalidKind

KEEP_ALIVE = b'{"type":"keep_alive"}'
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


def decoded(chunks: list[bytes], **options: Any) -> list[Any]:
    decoder = Decoder(**options)
    messages = [message for chunk in chunks for message in decoder.feed(chunk)]
    return messages + decoder.close()


def kinds(messages: list[Any]) -> list[str | None]:
    return [message.kind if isinstance(message, InvalidLine) else None for message in messages]


@pytest.mark.parametrize(("line", "kind"), LINES)
def test_each_kind_is_told_at_every_chunking(line: bytes, kind: InvalidKind) -> None:
    stream = b"\n".join([KEEP_ALIVE, line, KEEP_ALIVE, b""])
    expected = [None, kind, None]
    assert kinds(decoded([stream])) == expected
    assert kinds(decoded([stream[i : i + 1] for i in range(len(stream))])) == expected
    for cut in range(len(stream)):
        messages = decoded([stream[:cut], stream[cut:]])
        assert kinds(messages) == expected
        assert messages[1].raw == line
    assert kinds(decoded([line + b"\n"])) == [kind]  # a chunk of exactly one line takes another path
    assert kinds(decoded([line + b"\r\n"])) == [kind]
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
        messages = decoded([stream[:cut], stream[cut:]])
        assert kinds(messages) == [None, "truncated"]
        assert messages[1].reason.startswith("truncated: ")


def test_every_cut_of_a_line_is_truncated() -> None:
    for end in range(1, len(KEEP_ALIVE)):
        assert kinds(decoded([KEEP_ALIVE + b"\n" + KEEP_ALIVE[:end]])) == [None, "truncated"]
    assert decoded([KEEP_ALIVE]) == [KeepAlive()]


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
        assert kinds(decoded(chunks, **options)) == [None, kind, None]
    assert kinds(decoded([line + b"\n"], **options)) == [kind]


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
