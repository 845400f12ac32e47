"""Unknown parts of messages, known parts that do not fit their class, and the values that represent both."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from claude_wire import (
    AssistantMessage,
    CanUseToolRequest,
    ControlRequest,
    ControlResponse,
    Decoder,
    HookCallbackRequest,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    UnknownMessage,
    decode,
    encode,
)
from claude_wire.messages import (
    ContentBlockDeltaEvent,
    ContentBlockStartEvent,
    ControlSuccess,
    DocumentBlock,
    ImageBlock,
    Unknown,
    UnknownBlock,
    UnknownDelta,
    UnknownEvent,
    UnknownHookInput,
    UnknownObject,
    UnknownRequest,
)
from each import each
from unknown_lines import INIT, KEEP_ALIVE, decoded, line_of

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

#: Place -> a message with an unknown part there, a function that returns this part, its class, and its JSON.
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
            # The encoded message has everything that was read, plus the fields that are always written.
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


# --- Known parts that do not fit their class
# ----------------------------------------------------------------------------

DOES_NOT_FIT: list[tuple[dict[str, Any], Callable[[Any], Any], type[Unknown], str]] = [
    # Only the smallest part that can be unknown becomes unknown. Its reason says where the error is.
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
        "expected an array, got an object at $.citations",
    ),
    (event({"type": "content_block_delta", "index": 0}), lambda m: m.event, UnknownEvent, "missing 'delta'"),
    (
        event({"type": "content_block_delta", "index": 0.5, "delta": {"type": "text_delta", "text": ""}}),
        lambda m: m.event,
        UnknownEvent,
        "expected a whole number, got a fraction at $.index",
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
    # A part that cannot be unknown makes the part around it unknown.
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
        "expected a string or an array, got a number at $.message.content",
    ),
    (
        {"type": "system", "subtype": "init", "cwd": 7},
        lambda m: m,
        UnknownMessage,
        "expected a string, got a number at $.cwd",
    ),
    (
        {"type": "result", "subtype": "success", "is_error": 0},
        lambda m: m,
        UnknownMessage,
        "expected true or false, got a number at $.is_error",
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
    # Otherwise encoding the message would add fields to the inner part.
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
