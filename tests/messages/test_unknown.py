"""What no table knows: kept whole, in its place, at every level, the first time and later, whatever is beside it."""

from __future__ import annotations

import copy
import itertools
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from claude_wire import (
    AssistantMessage,
    CanUseToolRequest,
    ContentBlockDeltaEvent,
    ContentBlockStartEvent,
    ControlRequest,
    ControlResponse,
    ControlSuccess,
    Decoder,
    DocumentBlock,
    HookCallbackRequest,
    ImageBlock,
    InitMessage,
    InvalidLine,
    KeepAlive,
    PermissionReply,
    ResultMessage,
    ResultSuccess,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    Unknown,
    UnknownBlock,
    UnknownDelta,
    UnknownEvent,
    UnknownHookInput,
    UnknownMessage,
    UnknownObject,
    UnknownRequest,
    decode,
    encode,
)
from claude_wire.codec import lines as _decoding
from claude_wire.codec.typed_lines import MOST_LEARNED, SUBTYPED, _union
from each import each
from folders import SUPPORT

KEEP_ALIVE = b'{"type":"keep_alive"}'
INIT = b'{"type":"system","subtype":"init","cwd":"/"}'
RESULT = b'{"type":"result","subtype":"success"}'

#: Types that no table has; they are few because a process remembers only so many.
TYPES = ["of_tomorrow", "von_übermorgen", 'with "quotes" and \\']


def line_of(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def decoded(*lines: bytes, decoder: Decoder[Any] | None = None) -> list[Any]:
    decoder = Decoder() if decoder is None else decoder
    return decoder.feed(b"\n".join([*lines, b""]))


# --- Messages of unknown types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", TYPES)
def test_an_unknown_type_is_kept_whole_the_first_time_and_later(tag: str) -> None:
    value = {"type": tag, "subtype": "s", "a": [1, 2.5, None, {"b": "é\u2028\U0001f600"}], "": {}}
    decoder = Decoder()
    for count in range(1, 4):
        (message,) = decoded(line_of(value), decoder=decoder)
        assert type(message) is UnknownMessage
        assert message == value
        assert list(message) == list(value)
        assert (message.type, message.subtype, message.reason) == (tag, "s", "unknown type")
        assert decoder.stats.unknown == decoder.stats.messages == count


@pytest.mark.parametrize("tag", TYPES)
def test_unknown_types_stay_in_their_place_between_known_ones(tag: str) -> None:
    new = line_of({"type": tag, "n": 1})
    known = [KEEP_ALIVE, INIT, RESULT]
    expected = {
        new: {"type": tag, "n": 1},
        KEEP_ALIVE: KeepAlive(),
        INIT: InitMessage(cwd="/"),
        RESULT: ResultSuccess(),
    }
    for order in set(itertools.permutations([new, new, *known])):
        assert decoded(*order) == [expected[line] for line in order]


DELTA = line_of({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "?"}}})


@pytest.mark.parametrize(
    "tag", ["`$[0]", "`$[7].type`", "`$[49]`", f"`$[{'9' * 5000}]", "(byte 1)", "(byte 1000)", f"(byte {'9' * 5000})"]
)
def test_a_tag_that_looks_like_a_place_misleads_nobody(tag: str) -> None:
    odd = DELTA.replace(b'"?"', line_of(tag))
    found = decoded(*[KEEP_ALIVE] * 20, odd, *[KEEP_ALIVE] * 29)
    assert found == [KeepAlive()] * 20 + decoded(odd) + [KeepAlive()] * 29
    assert found[20].event.delta == {"type": tag}


@pytest.mark.parametrize("place", ["first", "last", "outside", "none"])
@pytest.mark.parametrize("odd", [DELTA, b'{"type":"keep_alive" "x":1}', b'{"type":"von \\ud83d"}', INIT])
@pytest.mark.parametrize("at", [0, 1, 20, 49])
def test_a_wrong_place_in_a_refusal_costs_time_only(
    place: str, odd: bytes, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = b"\n".join([*[KEEP_ALIVE] * at, odd, *[INIT] * (49 - at), b""])
    expected = decoded(stream[:-1])
    places = {"first": "`$[0]`", "last": "`$[49]`", "outside": "`$[5000]`", "none": "no"}
    find = _decoding._line_of

    def misled(refusal: str, starts: list[int], first: int, last: int) -> int | None:
        return find(places[place], starts, first, last)

    monkeypatch.setattr(_decoding, "_line_of", misled)
    decoder = Decoder()
    # The second time the decoder goes more warily from the start.
    for found in (decoder.feed(stream), decoder.feed(stream)):
        assert [m.reason if isinstance(m, InvalidLine) else m for m in found] == [
            m.reason if isinstance(m, InvalidLine) else m for m in expected
        ]


@pytest.mark.parametrize("tag", TYPES)
def test_unknown_types_beside_bad_lines(tag: str) -> None:
    new = line_of({"type": tag, "n": 1})
    decoded(new)
    for bad in (b"bad", new[:-1], new + new, new[:-1] + b',"x":NaN}', b'{"type":"\xff"}'):
        for order in itertools.permutations([new, bad, KEEP_ALIVE]):
            found = dict(zip(order, decoded(*order), strict=True))
            assert found[new] == {"type": tag, "n": 1}
            assert found[KEEP_ALIVE] == KeepAlive()
            assert isinstance(found[bad], InvalidLine)
            assert found[bad].raw == bad


@pytest.mark.parametrize(("surrogates", "half"), [("keep", "\ud83d"), ("replace", "\ufffd")])
def test_surrogates_in_an_unknown_type_the_first_time_and_later(surrogates: Any, half: str) -> None:
    decoder = Decoder(surrogates=surrogates)
    line = line_of({"type": TYPES[0]})[:-1] + rb',"x":"\ud83d"}'
    for count in range(1, 4):
        assert decoded(line, decoder=decoder) == [{"type": TYPES[0], "x": half}]
        assert (decoder.stats.unknown, decoder.stats.repaired) == (count, count)


def test_two_decoders_do_not_share_what_they_count() -> None:
    one, other = Decoder(), Decoder()
    decoded(line_of({"type": TYPES[0]}), decoder=one)
    decoded(line_of({"type": TYPES[0]}), decoder=other)
    assert one.stats.unknown == other.stats.unknown == 1


def more_types_than_are_remembered() -> None:
    tags = [f"new_{number}" for number in range(3 * MOST_LEARNED)]
    values = [{"type": tag, "n": number} for number, tag in enumerate(tags)]
    stream = b"".join(line_of(value) + b"\n" + KEEP_ALIVE + b"\n" for value in values)
    for size in (len(stream), 100) * 2:
        decoder = Decoder()
        found = [message for at in range(0, len(stream), size) for message in decoder.feed(stream[at : at + size])]
        assert found[1::2] == [KeepAlive()] * len(tags)
        assert found[::2] == values
        assert {(type(message), message.reason) for message in found[::2]} == {(UnknownMessage, "unknown type")}
        assert decoder.stats.unknown == len(tags)
        assert len(_union._learned) == len(_union.later - SUBTYPED) == MOST_LEARNED  # and the decoder grows no more


def types_with_surrogates() -> None:
    # Such a type cannot be remembered, which may not spoil the others.
    for surrogates, half in (("keep", "\ud83d"), ("replace", "\ufffd")):
        decoder: Decoder[Any] = Decoder(surrogates=surrogates)
        for _ in range(2):
            assert decoded(KEEP_ALIVE, rb'{"type":"\ud83d"}', decoder=decoder) == [KeepAlive(), {"type": half}]
            assert decoded(b'{"type":"other"}', KEEP_ALIVE, decoder=decoder) == [{"type": "other"}, KeepAlive()]
            (message,) = decoded(rb'{"type":"system","subtype":"\ud83d"}', decoder=decoder)
            assert message == {"type": "system", "subtype": half}


def types_of_any_name() -> None:
    for name in ("", " ", "\0", "system ", "Keep_Alive", "x" * 1_000_000, "_Later", "\n", "null", "\u2028"):
        value = {"type": name, "n": 1}
        line = line_of(value)
        for lines in ([line], [line], [line, line], [KEEP_ALIVE, line]):
            message = decoded(*lines)[-1]
            assert (message, message.reason) == (value, "unknown type")


VALID = [b"1e300", b"9" * 4000, b'{"type":"a","type":"a"}', b"[" * 100 + b"]" * 100, b'{"type":null}', b'"NaN"']
# Of a type that is unknown, nothing but the type itself tells what it is.
VALID += [b'{"type":"a","type":"b"}', b'[{"subtype":1,"subtype":2}]', b'1,"subtype":1,"subtype":2']
INVALID = [b"1e400", b"-1e400", b"9" * 5000, b"[" * 100_000 + b"]" * 100_000, b"NaN", b'"\xff"', rb'"\x"', b"01"]
INVALID += [b'1,"type":"b"', b'1,"type":null']


def what_is_valid_does_not_depend_on_what_was_met() -> None:
    for number, value in enumerate(VALID + INVALID):
        plain = line_of({"type": f"new_{number}"})
        line = plain[:-1] + b',"x":' + value + b"}"
        for lines in ([line], [plain], [line], [KEEP_ALIVE, line, plain], [plain, line]):
            for given, item in zip(lines, decoded(*lines), strict=True):
                assert isinstance(item, InvalidLine) == (given == line and value in INVALID), (number, item)


@pytest.mark.parametrize(
    "promise",
    [
        more_types_than_are_remembered,
        types_with_surrogates,
        types_of_any_name,
        what_is_valid_does_not_depend_on_what_was_met,
    ],
    ids=lambda promise: promise.__name__,
)
def test_in_a_process_that_has_met_no_unknown_types(promise: Callable[[], None]) -> None:
    # Types stay learned.
    done = subprocess.run(
        [sys.executable, "-c", f"import test_unknown; test_unknown.{promise.__name__}()"],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        timeout=600,  # some seconds on a machine that does nothing else
    )
    assert done.returncode == 0, done.stderr


def test_unknown_types_met_by_several_threads_at_once() -> None:
    barrier = threading.Barrier(4)
    found: list[Any] = []

    def run(number: int) -> None:
        decoder = Decoder()
        lines = [line_of({"type": tag, "thread": number}) for tag in TYPES] + [INIT, KEEP_ALIVE]
        barrier.wait()
        found.extend((number, message) for _ in range(50) for message in decoded(*lines, decoder=decoder))

    threads = [threading.Thread(target=run, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 * 50 * 5
    for number in range(4):
        own = [message for thread, message in found if thread == number]
        assert own == [*({"type": tag, "thread": number} for tag in TYPES), InitMessage(cwd="/"), KeepAlive()] * 50


# --- Objects without a type, or with a strange one --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{}", "no type"),
        (b'{"a":1}', "no type"),
        (b'{"type":null}', "no type"),
        (b'{"type":7}', "no type"),
        (b'{"type":["user"]}', "no type"),
        (b'{"type":{"type":"user"}}', "no type"),
        (b'{"Type":"user"}', "no type"),
        (b'{"type":7,"allow":true}', "no type"),
        (b'{"type":"system"}', "no subtype"),
        (b'{"type":"system","subtype":null}', "no subtype"),
        (b'{"type":"system","subtype":3}', "no subtype"),
        (b'{"type":"system","subtype":"of_tomorrow","x":1}', "unknown subtype"),
        (b'{"type":"result"}', "no subtype"),
        (b'{"type":"result","subtype":null}', "no subtype"),
    ],
)
def test_an_object_of_no_known_kind_is_kept_with_the_reason(line: bytes, reason: str) -> None:
    for message in (decode(line), decoded(line)[0], decoded(KEEP_ALIVE, line, KEEP_ALIVE)[1]):
        assert type(message) is UnknownMessage
        assert message == json.loads(line)
        assert message.reason == reason


def test_a_result_of_an_unknown_subtype_is_a_result() -> None:
    line = b'{"type":"result","subtype":"of_tomorrow","is_error":true,"result":"text"}'
    for message in (decode(line), decoded(RESULT, line)[1]):
        assert type(message) is ResultMessage
        assert message == ResultMessage(subtype="of_tomorrow", is_error=True, result="text")
        assert not message.ok
    decoder = Decoder()
    decoded(line, decoder=decoder)
    assert decoder.stats.unknown == 0


def test_a_permission_reply_has_no_type() -> None:
    assert decode(b'{"allow": true}') == PermissionReply(True)
    assert decode(b'{"allow":false}') == PermissionReply(False)
    assert decoded(KEEP_ALIVE, b'{"allow":true}', KEEP_ALIVE) == [KeepAlive(), PermissionReply(True), KeepAlive()]
    assert json.loads(encode(PermissionReply(True))) == {"allow": True}
    (message,) = decoded(b'{"allow":"yes"}')
    assert message == {"allow": "yes"}
    assert message.reason == "expected true or false, got a string at $.allow"


# --- Parts of a message -----------------------------------------------------------------------------------------------


def assistant(*content: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"content": list(content)}}


def event(event: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": event}


def request(request: Any) -> dict[str, Any]:
    return {"type": "control_request", "request_id": "1", "request": request}


def hook(given: Any) -> dict[str, Any]:
    return request({"subtype": "hook_callback", "callback_id": "c", "input": given})


NEW = {"type": "of_tomorrow", "a": [1], "reason": "its own", "nested": {"type": "text"}}
NEW_REQUEST = {"subtype": "of_tomorrow", "a": [1]}
NEW_HOOK = {"hook_event_name": "OfTomorrow", "a": [1]}
TOOL_USE = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
CAN_USE = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}

#: Where something unknown may stand: a message with it there, and how to get at it.
PLACES: dict[str, tuple[dict[str, Any], Callable[[Any], Any], type[Unknown], Any]] = {
    "block of an assistant message": (assistant(NEW), lambda m: m.content[0], UnknownBlock, NEW),
    "block after known blocks": (assistant(TOOL_USE, NEW), lambda m: m.content[1], UnknownBlock, NEW),
    "block of a user message": (
        {"type": "user", "message": {"role": "user", "content": [NEW]}},
        lambda m: m.content[0],
        UnknownBlock,
        NEW,
    ),
    "block within a tool result": (
        {
            "type": "user",
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [NEW]}]},
        },
        lambda m: m.tool_results[0].content[0],
        UnknownBlock,
        NEW,
    ),
    "block that starts": (
        event({"type": "content_block_start", "index": 0, "content_block": NEW}),
        lambda m: m.event.content_block,
        UnknownBlock,
        NEW,
    ),
    "event": (event(NEW), lambda m: m.event, UnknownEvent, NEW),
    "delta": (
        event({"type": "content_block_delta", "index": 0, "delta": NEW}),
        lambda m: m.event.delta,
        UnknownDelta,
        NEW,
    ),
    "citation of a text block": (
        assistant({"type": "text", "text": "a", "citations": [NEW]}),
        lambda m: m.content[0].citations[0],
        UnknownObject,
        NEW,
    ),
    "citation of a delta": (
        event({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": NEW}}),
        lambda m: m.event.delta.citation,
        UnknownObject,
        NEW,
    ),
    "source of an image": (
        assistant({"type": "image", "source": NEW}),
        lambda m: m.content[0].source,
        UnknownObject,
        NEW,
    ),
    "source of a document": (
        assistant({"type": "document", "source": NEW}),
        lambda m: m.content[0].source,
        UnknownObject,
        NEW,
    ),
    "request": (request(NEW_REQUEST), lambda m: m.request, UnknownRequest, NEW_REQUEST),
    "request that still waits": (
        {
            "type": "control_response",
            "response": {
                "subtype": "success",
                "request_id": "1",
                "pending_permission_requests": [request(NEW_REQUEST)],
            },
        },
        lambda m: m.response.pending_permission_requests[0].request,
        UnknownRequest,
        NEW_REQUEST,
    ),
    "hook input": (hook(NEW_HOOK), lambda m: m.request.input, UnknownHookInput, NEW_HOOK),
    "permission suggestion": (
        request({**CAN_USE, "permission_suggestions": [NEW]}),
        lambda m: m.request.permission_suggestions[0],
        UnknownObject,
        NEW,
    ),
    "answer": (
        {"type": "control_response", "response": {"subtype": "later", "request_id": "1"}},
        lambda m: m.response,
        UnknownObject,
        {"subtype": "later", "request_id": "1"},
    ),
    "origin of a user message": (
        {"type": "user", "message": {"role": "user", "content": ""}, "origin": {"kind": "of_tomorrow"}},
        lambda m: m.origin,
        UnknownObject,
        {"kind": "of_tomorrow"},
    ),
}


@pytest.mark.parametrize(("value", "at", "cls", "part"), PLACES.values(), ids=PLACES)
class TestAnUnknownPart:
    def test_is_kept_whole_in_its_place(self, value: Any, at: Any, cls: type[Unknown], part: Any) -> None:
        line = line_of(value)
        for message in (decode(line), decoded(line)[0], decoded(KEEP_ALIVE, line, KEEP_ALIVE)[1]):
            found = at(message)
            assert type(found) is cls
            assert found == part
            tag = next(key for key in ("type", "subtype", "hook_event_name", "kind") if key in part)
            assert found.type == part[tag]
            assert found.reason == f"unknown {tag}"

    def test_leaves_the_rest_typed(self, value: Any, at: Any, cls: type[Unknown], part: Any) -> None:
        message = decode(line_of(value))
        assert not isinstance(message, Unknown)
        assert message.to_dict()["type"] == value["type"]

    def test_is_encoded_as_it_came(self, value: Any, at: Any, cls: type[Unknown], part: Any) -> None:
        def holds(written: Any, wanted: Any) -> bool:
            # The message has what came, plus the fields that are always written.
            if isinstance(wanted, dict) and wanted != part:
                return all(key in written and holds(written[key], wanted[key]) for key in wanted)
            if isinstance(wanted, list):
                return len(written) == len(wanted) and all(map(holds, written, wanted))
            return bool(written == wanted)

        assert holds(json.loads(encode(decode(line_of(value)))), value)

    def test_is_counted(self, value: Any, at: Any, cls: type[Unknown], part: Any) -> None:
        decoder = Decoder()
        decoded(KEEP_ALIVE, line_of(value), line_of(value), decoder=decoder)
        assert (decoder.stats.unknown, decoder.stats.messages) == (2, 3)

    def test_is_the_same_beside_a_bad_line(self, value: Any, at: Any, cls: type[Unknown], part: Any) -> None:
        found = decoded(line_of(value), b"bad", line_of(value))
        assert [found[0], found[2]] == [decode(line_of(value))] * 2


@pytest.mark.parametrize(("value", "at", "cls", "part"), PLACES.values(), ids=PLACES)
@each("tag_value", [None, 7, [], {}, True], repr)
def test_a_part_whose_tag_is_no_string_is_unknown(
    value: Any, at: Any, cls: type[Unknown], part: Any, tag_value: Any
) -> None:
    tag = next(key for key in ("type", "subtype", "hook_event_name", "kind") if key in part)
    strange = {**part, tag: tag_value}
    found = at(decode(line_of(value).replace(line_of(part), line_of(strange))))
    assert type(found) is cls
    assert found == strange
    assert (found.type, found.reason) == (None, f"no {tag}")


# --- Known kinds that do not fit --------------------------------------------------------------------------------------

DOES_NOT_FIT: list[tuple[dict[str, Any], Callable[[Any], Any], type[Unknown], str]] = [
    # The smallest part that may be unknown is, and says where within it the trouble is.
    (assistant({"type": "text"}), lambda m: m.content[0], UnknownBlock, "missing 'text'"),
    (
        assistant({"type": "text", "text": 7}),
        lambda m: m.content[0],
        UnknownBlock,
        "expected a string, got a number at $.text",
    ),
    (
        assistant({"type": "text", "text": None}),
        lambda m: m.content[0],
        UnknownBlock,
        "expected a string, got null at $.text",
    ),
    (
        assistant({"type": "text", "text": "a", "citations": [{"type": "page_location"}]}),
        lambda m: m.content[0].citations[0],
        UnknownObject,
        "missing 'cited_text'",
    ),
    (
        assistant({"type": "text", "text": "a", "citations": {}}),
        lambda m: m.content[0],
        UnknownBlock,
        "unexpected an object at $.citations",
    ),
    (event({"type": "content_block_delta", "index": 0}), lambda m: m.event, UnknownEvent, "missing 'delta'"),
    (
        event({"type": "content_block_delta", "index": 0.5, "delta": {"type": "text_delta", "text": ""}}),
        lambda m: m.event,
        UnknownEvent,
        "expected a whole number, got a number at $.index",
    ),
    (
        event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": []}}),
        lambda m: m.event.delta,
        UnknownDelta,
        "expected a string, got an array at $.text",
    ),
    (request({"subtype": "can_use_tool", "tool_name": "Bash"}), lambda m: m.request, UnknownRequest, "missing 'input'"),
    (
        request({**CAN_USE, "input": []}),
        lambda m: m.request,
        UnknownRequest,
        "expected an object, got an array at $.input",
    ),
    (hook({"hook_event_name": "Notification"}), lambda m: m.request.input, UnknownHookInput, "missing 'session_id'"),
    # What may not be unknown by itself takes what is around it along.
    (
        assistant({"type": "image", "source": "a"}),
        lambda m: m.content[0],
        UnknownBlock,
        "expected an object, got a string at $.source",
    ),
    (assistant("text"), lambda m: m, UnknownMessage, "expected an object, got a string at $.message.content[0]"),
    ({"type": "assistant"}, lambda m: m, UnknownMessage, "missing 'message'"),
    ({"type": "assistant", "message": {}}, lambda m: m, UnknownMessage, "missing 'content' at $.message"),
    (
        {"type": "assistant", "message": {"content": "text"}},
        lambda m: m,
        UnknownMessage,
        "expected an array, got a string at $.message.content",
    ),
    (
        {"type": "user", "message": {"role": "user", "content": 7}},
        lambda m: m,
        UnknownMessage,
        "unexpected a number at $.message.content",
    ),
    ({"type": "system", "subtype": "init", "cwd": 7}, lambda m: m, UnknownMessage, "unexpected a number at $.cwd"),
    (
        {"type": "result", "subtype": "success", "is_error": 0},
        lambda m: m,
        UnknownMessage,
        "unexpected a number at $.is_error",
    ),
    (
        {"type": "result", "subtype": "new", "usage": []},
        lambda m: m,
        UnknownMessage,
        "expected an object, got an array at $.usage",
    ),
    ({"type": "control_request", "request_id": "1"}, lambda m: m, UnknownMessage, "missing 'request'"),
]


@pytest.mark.parametrize(("value", "at", "cls", "reason"), DOES_NOT_FIT, ids=[case[3] for case in DOES_NOT_FIT])
def test_a_known_kind_that_does_not_fit_is_kept_with_the_reason(
    value: Any, at: Any, cls: type[Unknown], reason: str
) -> None:
    line = line_of(value)
    for message in (decode(line), decoded(line)[0], decoded(KEEP_ALIVE, line, INIT)[1]):
        found = at(message)
        assert type(found) is cls
        assert found.reason == reason
        if found is message:
            assert found == value
    decoder = Decoder()
    decoded(KEEP_ALIVE, line, decoder=decoder)
    assert decoder.stats.unknown == 1


def test_a_part_within_an_unknown_part_is_not_typed() -> None:
    # Else its bytes would come back with fields added.
    block = {"type": "tool_result", "tool_use_id": 7, "content": [{"type": "text", "text": "a"}, NEW]}
    (message,) = decoded(line_of({"type": "user", "message": {"role": "user", "content": [block]}}))
    (found,) = message.content
    assert type(found) is UnknownBlock
    assert found == block
    assert [type(part) for part in found["content"]] == [dict, dict]


def test_known_and_unknown_parts_stand_side_by_side() -> None:
    text, image = {"type": "text", "text": "a"}, {"type": "image"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [NEW, text, image]}
    (message,) = decoded(line_of({"type": "user", "message": {"role": "user", "content": [text, NEW, result]}}))
    assert message.content == [
        TextBlock("a"),
        UnknownBlock(NEW),
        ToolResultBlock("t", [UnknownBlock(NEW), TextBlock("a"), UnknownBlock(image)]),
    ]


def test_the_classes_around_an_unknown_part_are_the_usual_ones() -> None:
    def typed(name: str) -> Any:
        return decode(line_of(PLACES[name][0]))

    assert isinstance(typed("delta"), StreamEvent)
    assert isinstance(typed("delta").event, ContentBlockDeltaEvent)
    assert isinstance(typed("block that starts").event, ContentBlockStartEvent)
    assert isinstance(typed("request"), ControlRequest)
    assert isinstance(typed("permission suggestion").request, CanUseToolRequest)
    assert isinstance(typed("hook input").request, HookCallbackRequest)
    assert isinstance(typed("request that still waits"), ControlResponse)
    assert isinstance(typed("request that still waits").response, ControlSuccess)
    assert isinstance(typed("source of an image").content[0], ImageBlock)
    assert isinstance(typed("source of a document").content[0], DocumentBlock)
    assert isinstance(typed("block after known blocks"), AssistantMessage)


def test_what_is_unknown_is_no_known_message() -> None:
    assert not isinstance(decode(b'{"type":"system","subtype":"of_tomorrow"}'), SystemMessage)


# --- The values themselves --------------------------------------------------------------------------------------------

CLASSES = [UnknownMessage, UnknownBlock, UnknownEvent, UnknownDelta, UnknownRequest, UnknownHookInput, UnknownObject]


@pytest.mark.parametrize("cls", CLASSES)
class TestUnknownValues:
    def test_are_dicts(self, cls: type[Unknown]) -> None:
        value = cls({"a": 1})
        assert value == {"a": 1} == cls(a=1)
        assert dict(value) == {"a": 1}
        assert json.dumps(value) == '{"a": 1}'
        value["b"] = 2
        assert value.get("b") == 2

    def test_give_a_plain_dict(self, cls: type[Unknown]) -> None:
        value = cls({"a": {"b": 1}})
        assert type(value.to_dict()) is dict
        assert value.to_dict() == {"a": {"b": 1}}
        value.to_dict()["a2"] = 1
        assert "a2" not in value

    def test_have_a_type_whatever_they_hold(self, cls: type[Unknown]) -> None:
        key = cls.tag_fields[0]
        assert cls().type is None
        assert cls({key: "x"}).type == "x"
        assert cls({key: 7}).type is None
        assert cls().reason == ""

    def test_go_through_pickle_and_copy_with_their_reason(self, cls: type[Unknown]) -> None:
        whole = next(at(decode(line_of(value))) for value, at, made, _ in [*PLACES.values(), TOP] if made is cls)
        assert whole.reason
        protocols = range(2, pickle.HIGHEST_PROTOCOL + 1)
        made = [copy.copy(whole), copy.deepcopy(whole), *(pickle.loads(pickle.dumps(whole, p)) for p in protocols)]
        for again in made:
            assert type(again) is cls
            assert again == whole
            assert again.reason == whole.reason

    def test_show_their_keys_and_not_their_content(self, cls: type[Unknown]) -> None:
        value = cls({cls.tag_fields[0]: "new", "b": "sk-secret", "a": {"sk-secret": 1}})
        assert "sk-secret" not in repr(value)
        assert repr(value).startswith(f"{cls.__name__}(type='new'")
        assert "'a'" in repr(value)

    def test_show_at_most_80_characters(self, cls: type[Unknown]) -> None:
        value = cls({cls.tag_fields[0]: "x" * 10**6, **{f"key {n}" * 100: n for n in range(1000)}})
        assert len(repr(value)) <= len(cls.__name__) + 2 + 80


TOP = ({"type": "of_tomorrow"}, lambda message: message, UnknownMessage, {"type": "of_tomorrow"})


def test_they_are_matched_before_a_mapping_would() -> None:
    def kind(message: Any) -> str:
        match message:
            case UnknownMessage(type="system", subtype=subtype):
                return f"system {subtype}"
            case UnknownMessage():
                return "unknown"
            case {"type": _}:
                return "mapping"
        return "none"

    assert kind(decode(b'{"type":"system","subtype":"new"}')) == "system new"
    assert kind(decode(b'{"type":"new"}')) == "unknown"
    assert kind({"type": "new"}) == "mapping"


def test_a_type_may_be_told_apart_by_any_of_several_keys() -> None:
    for key in ("type", "subtype", "kind", "behavior", "hookEventName"):
        assert UnknownObject({key: "x"}).type == "x"
    assert UnknownRequest({"type": "a", "subtype": "b"}).type == "b"
    assert UnknownHookInput({"hook_event_name": "b"}).type == "b"
