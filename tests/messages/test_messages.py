"""The message classes: the properties of each class, and the guarantees of all classes."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import subprocess
import sys
import tracemalloc
import types
from collections import Counter
from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest
from msgspec import UNSET

from claude_wire import (
    AssistantMessage,
    AsyncHookOutput,
    CanUseToolRequest,
    ControlRequest,
    ControlResponse,
    HookCallbackRequest,
    HookOutput,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    decode,
    encode,
    messages,
)
from claude_wire.errors import PayloadError
from claude_wire.messages import (
    ApiMessage,
    ContentBlockDeltaEvent,
    ControlError,
    ControlSuccess,
    ImageBlock,
    InitializeRequest,
    InitializeResponse,
    InputJsonDelta,
    InterruptRequest,
    KeepAlive,
    McpCallRequest,
    MessageParam,
    PermissionUpdate,
    PreToolUseHookSpecificOutput,
    ResultSuccess,
    SetMode,
    TextDelta,
    ThinkingDelta,
    UnknownBlock,
    UnknownDelta,
    UnknownEvent,
    UnknownObject,
)
from claude_wire.messages.base import MessageBase, Wire, wire_fields
from claude_wire.messages.control.request_body import ControlRequestBody
from each import each
from examples import CLASSES, example, full, minimal
from protocol_tables import ALL_CLASSES, StructType, parts_of
from protocol_tables import CLASSES as CLASSES_OF_TABLES
from same_json import differences

every_class = each("cls", CLASSES)


def instance(cls: type[Wire], value: dict[str, Any]) -> Wire:
    return msgspec.json.decode(json.dumps(value), type=cls)


def through_json(message: Any) -> Any:
    """Encode a message and decode it again."""
    return decode(encode(message))


# --- The conversation -------------------------------------------------------------------------------------------------


def test_the_text_of_an_answer_is_that_of_its_text_blocks() -> None:
    blocks = [
        TextBlock("a"),
        ThinkingBlock("hidden"),
        UnknownBlock(type="new", text="x"),
        TextBlock(""),
        TextBlock("b"),
    ]
    message = AssistantMessage.of(blocks)
    assert message.text == "ab"
    assert message.content is message.message.content
    assert message.content == blocks
    assert AssistantMessage.of([]).text == ""


def test_the_tool_uses_of_an_answer_are_in_order() -> None:
    first, second = ToolUseBlock("1", "Bash", {"command": "ls"}), ToolUseBlock("2", "Read", {})
    assert AssistantMessage.of([first, TextBlock("a"), second]).tool_uses == [first, second]
    assert AssistantMessage.of("a").tool_uses == []


def test_the_model_is_found_on_either_level() -> None:
    for value in ({"message": {"content": [], "model": "opus"}}, {"message": {"content": []}, "model": "opus"}):
        message = decode(json.dumps({"type": "assistant", **value}))
        assert isinstance(message, AssistantMessage)
        assert message.model == "opus"
        # The message is written with the spelling that was read.
        assert message.to_dict().get("model", message.to_dict()["message"].get("model")) == "opus"
    assert AssistantMessage(message=ApiMessage(content=[], model="inner"), model_="outer").model == "inner"
    assert AssistantMessage.of("a").model is None


def test_the_reason_of_an_api_error_is_found_on_either_level() -> None:
    for value in (
        {"message": {"content": []}, "error": "rate_limit"},
        {"message": {"content": [], "error": "rate_limit"}},
    ):
        message = decode(json.dumps({"type": "assistant", **value}))
        assert isinstance(message, AssistantMessage)
        assert message.error_reason == "rate_limit"
    assert AssistantMessage.of("a").error_reason is None


def test_an_answer_is_made_of_text_or_blocks() -> None:
    message = AssistantMessage.of("a", model="opus", session_id="s")
    assert message == AssistantMessage.of([TextBlock("a")], model="opus", session_id="s")
    assert message.to_dict() == {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}],
            "model": "opus",
            "stop_reason": None,
            "stop_sequence": None,
        },
        "parent_tool_use_id": None,
        "session_id": "s",
    }
    assert through_json(message) == message


def test_a_prompt_is_made_of_text_or_blocks() -> None:
    assert UserMessage.of("a").to_dict() == {
        "type": "user",
        "message": {"role": "user", "content": "a"},
        "parent_tool_use_id": None,
        "session_id": "",
    }
    message = UserMessage.of([TextBlock("a"), TextBlock("b")], session_id="s", uuid="u")
    assert (message.session_id, message.uuid, message.message) == ("s", "u", MessageParam("user", message.content))
    assert through_json(message) == message


def test_the_text_of_a_prompt_is_its_string_or_that_of_its_text_blocks() -> None:
    assert UserMessage.of("a").text == UserMessage.of("a").content == "a"
    message = UserMessage.of(
        [TextBlock("a"), ToolResultBlock("t", "not this"), UnknownBlock(type="new"), TextBlock("b")]
    )
    assert message.text == "ab"


def test_the_tool_results_of_a_user_message_are_in_order() -> None:
    first, second = ToolResultBlock("1", "x"), ToolResultBlock("2", is_error=True)
    assert UserMessage.of([first, TextBlock("a"), second]).tool_results == [first, second]
    assert UserMessage.of("a").tool_results == []


@pytest.mark.parametrize("cls", [UserMessage, AssistantMessage])
@pytest.mark.parametrize("content", [5, None])
def test_what_is_no_content_is_refused(cls: Any, content: Any) -> None:
    with pytest.raises(TypeError, match=f"content must be a str or blocks, not {type(content).__name__}"):
        cls.of(content)


def test_only_a_text_delta_adds_text() -> None:
    def text(delta: Any) -> str | None:
        return StreamEvent(event=ContentBlockDeltaEvent(0, delta)).text_delta

    assert text(TextDelta("a")) == "a"
    assert text(TextDelta("")) == ""
    for delta in (ThinkingDelta("a"), InputJsonDelta("a"), UnknownDelta(type="text_delta", text="a")):
        assert text(delta) is None
    for event in (messages.PingEvent(), UnknownEvent(type="new"), messages.ContentBlockStartEvent(0, TextBlock("a"))):
        assert StreamEvent(event=event).text_delta is None


# --- Results ----------------------------------------------------------------------------------------------------------


def test_every_result_is_a_result_message() -> None:
    line = b'{"type":"result","subtype":"%s","is_error":true}'
    for subtype in (b"success", b"error_during_execution", b"error_max_turns", b"error", b"cancelled", b"of_tomorrow"):
        message = decode(line % subtype)
        assert isinstance(message, ResultMessage)
        assert message.subtype == subtype.decode()


# --- Requests and their answers ---------------------------------------------------------------------------------------

REQUESTS = [cls for cls in CLASSES if issubclass(cls, ControlRequestBody) and cls is not ControlRequestBody]


def test_there_are_requests() -> None:
    assert len(REQUESTS) > 50


@each("request_class", REQUESTS)
class TestEveryRequest:
    def test_is_told_by_its_subtype(self, request_class: Any) -> None:
        for value in (minimal(request_class), full(request_class), full(request_class, 2)):
            line = json.dumps({"type": "control_request", "request_id": "1", "request": value})
            message = decode(line)
            assert isinstance(message, ControlRequest)
            assert type(message.request) is request_class
            assert message.request == instance(request_class, value)
            assert through_json(message) == message

    def test_types_the_payload_of_its_answer(self, request_class: Any) -> None:
        answer = request_class.answer_type()
        if answer == dict[str, Any]:
            payload = {"any": ["thing"]}
            assert ControlResponse.success("1", payload).payload_as(request_class) == payload
            return
        members = [member for member in get_args(answer) or [answer] if member is not AsyncHookOutput]
        for member in members:
            for payload in (minimal(member), full(member), full(member, 2)):
                response = through_json(ControlResponse.success("1", payload))
                found = response.payload_as(request_class)
                assert type(found) is member
                assert found == instance(member, payload)
                # The reverse also works: an answer accepts an instance of the class.
                assert ControlResponse.success("1", found).payload == found.to_dict()

    def test_refuses_the_payload_of_a_failed_request(self, request_class: Any) -> None:
        with pytest.raises(PayloadError) as caught:
            ControlResponse.failure("1", "no").payload_as(request_class)
        assert caught.value.payload == {"subtype": "error", "request_id": "1", "error": "no"}


def test_a_successful_answer() -> None:
    response = ControlResponse.success("1", {"a": 1})
    assert response == ControlResponse(ControlSuccess(request_id="1", response={"a": 1}))
    assert (response.request_id, response.ok, response.payload) == ("1", True, {"a": 1})
    assert response.to_dict() == {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": "1", "response": {"a": 1}},
    }


def test_a_plain_acknowledgement() -> None:
    assert ControlResponse.success("1").to_dict()["response"] == {"subtype": "success", "request_id": "1"}
    assert ControlResponse.success("1", {}).to_dict()["response"]["response"] == {}
    # A program reads the same payload for an absent, a null and an empty response.
    for response in (UNSET, None, {}):
        answer = ControlResponse(ControlSuccess(request_id="1", response=response))
        assert answer.ok
        assert answer.payload == {}
        assert through_json(answer) == answer
        assert answer.payload_as(McpCallRequest) == {}


def test_a_failure() -> None:
    response = ControlResponse.failure("1", "no", error_code="unsupported_request")
    assert response == ControlResponse(ControlError(request_id="1", error="no", error_code="unsupported_request"))
    assert (response.request_id, response.ok, response.payload) == ("1", False, {})
    assert "error_code" not in ControlResponse.failure("1", "no").to_dict()["response"]


def test_an_answer_of_an_unknown_subtype() -> None:
    for request_id, expected in (("1", "1"), (7, None)):
        response = ControlResponse(UnknownObject({"subtype": "later", "request_id": request_id}))
        assert (response.request_id, response.ok, response.payload) == (expected, False, {})
        with pytest.raises(PayloadError):
            response.payload_as(InitializeRequest)
    assert ControlResponse(UnknownObject({"subtype": "later"})).request_id is None


def test_a_payload_that_does_not_fit_is_an_error_with_the_place() -> None:
    with pytest.raises(PayloadError, match=r"does not fit: .* at \$\.models\[0\]") as caught:
        ControlResponse.success("1", {"models": [7]}).payload_as(InitializeRequest)
    assert caught.value.payload == {"models": [7]}


def test_what_is_unknown_in_a_payload_is_kept() -> None:
    answer = ControlResponse.success("1", {"behavior": "ask_tomorrow", "x": 1}).payload_as(CanUseToolRequest)
    assert answer == {"behavior": "ask_tomorrow", "x": 1}
    assert isinstance(answer, UnknownObject)
    assert answer.type == "ask_tomorrow"


def test_unknown_fields_of_a_payload_are_ignored() -> None:
    assert isinstance(ControlResponse.success("1", {"new": 1}).payload_as(InitializeRequest), InitializeResponse)


CAN_USE = CanUseToolRequest(tool_name="Bash", input={"command": "ls"}, tool_use_id="t")


def test_allowing_a_tool_sends_its_input_back() -> None:
    assert CAN_USE.allow() == PermissionResultAllow(updatedInput={"command": "ls"}, toolUseID="t")
    assert CAN_USE.allow().to_dict() == {"behavior": "allow", "updatedInput": {"command": "ls"}, "toolUseID": "t"}


def test_allowing_a_tool_with_another_input_or_for_later_too() -> None:
    updates: list[PermissionUpdate] = [SetMode("acceptEdits", "session"), UnknownObject({"type": "new"})]
    assert CAN_USE.allow({}, updated_permissions=updates).to_dict() == {
        "behavior": "allow",
        "updatedInput": {},
        "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}, {"type": "new"}],
        "toolUseID": "t",
    }


def test_denying_a_tool() -> None:
    assert CAN_USE.deny("no") == PermissionResultDeny("no", toolUseID="t")
    assert CAN_USE.deny("no").to_dict() == {"behavior": "deny", "message": "no", "toolUseID": "t"}
    assert CAN_USE.deny("no", interrupt=True).to_dict()["interrupt"] is True


def test_the_answer_to_can_use_tool_reaches_the_cli() -> None:
    for result in (CAN_USE.allow(), CAN_USE.deny("no")):
        response = through_json(ControlResponse.success("1", result))
        assert response.payload_as(CanUseToolRequest) == result


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({}, HookOutput()),
        ({"continue": False, "stopReason": "r"}, HookOutput(continue_=False, stopReason="r")),
        ({"continue_": False}, HookOutput(continue_=False)),
        ({"async": True, "asyncTimeout": 5000}, AsyncHookOutput(async_=True, asyncTimeout=5000)),
        ({"async_": True}, AsyncHookOutput(async_=True)),
        ({"async": False}, HookOutput(extra={"async": False})),
        (
            {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}},
            HookOutput(hookSpecificOutput=PreToolUseHookSpecificOutput(permissionDecision="deny")),
        ),
        (
            {"hookSpecificOutput": {"hookEventName": "OfTomorrow"}},
            HookOutput(hookSpecificOutput=UnknownObject({"hookEventName": "OfTomorrow"})),
        ),
    ],
)
def test_the_output_of_a_hook_is_typed_however_it_is_spelled(payload: dict[str, Any], expected: Any) -> None:
    before = dict(payload)
    found = ControlResponse.success("1", payload).payload_as(HookCallbackRequest)
    assert type(found) is type(expected)
    assert found == expected
    assert payload == before


def test_the_output_of_a_hook_is_written_as_the_cli_spells_it() -> None:
    assert HookOutput(continue_=False).to_dict() == {"continue": False}
    assert AsyncHookOutput(async_=True).to_dict() == {"async": True}


# --- All classes ------------------------------------------------------------------------------------------------------


@every_class
class TestEveryClass:
    def test_to_dict_gives_the_json_it_came_from(self, cls: type[Wire]) -> None:
        for value in (minimal(cls), full(cls), full(cls, 2)):
            message = instance(cls, value)
            assert type(message.to_dict()) is dict
            assert differences(message, value, message.to_dict()) == []

    def test_to_dict_gives_what_is_encoded(self, cls: type[Wire]) -> None:
        for value in (minimal(cls), full(cls)):
            message = instance(cls, value)
            assert message.to_dict() == json.loads(encode(message))

    def test_decoding_what_was_encoded_gives_the_same(self, cls: type[Wire]) -> None:
        for value in (minimal(cls), full(cls, 1)):
            message = instance(cls, value)
            assert msgspec.json.decode(encode(message), type=cls) == message

    def test_instances_go_through_pickle_and_copy(self, cls: type[Wire]) -> None:
        message = instance(cls, full(cls, 1))
        protocols = range(2, pickle.HIGHEST_PROTOCOL + 1)
        made = [
            copy.copy(message),
            copy.deepcopy(message),
            *(pickle.loads(pickle.dumps(message, p)) for p in protocols),
        ]
        for again in made:
            assert type(again) is cls
            assert again == message
            assert encode(again) == encode(message)

    def test_deepcopy_copies_what_can_be_changed(self, cls: type[Wire]) -> None:
        message = instance(cls, full(cls, 1))
        again = copy.deepcopy(message)
        for name in cls.__struct_fields__:
            if isinstance(getattr(message, name), (list, dict)):
                assert getattr(again, name) is not getattr(message, name)
                assert getattr(copy.copy(message), name) is getattr(message, name)

    def test_instances_compare_by_class_and_content(self, cls: type[Wire]) -> None:
        value = full(cls)
        assert instance(cls, value) == instance(cls, value)
        assert instance(cls, value) != value
        assert instance(cls, value) != Other()
        for field in wire_fields(cls):
            if isinstance(value[field.encode_name], str):
                changed = msgspec.structs.replace(instance(cls, value), **{field.name: "something else"})
                assert changed != instance(cls, value)

    def test_instances_hash_if_all_they_hold_does(self, cls: type[Wire]) -> None:
        one, other = (instance(cls, minimal(cls)) for _ in range(2))
        values = [getattr(one, name) for name in cls.__struct_fields__]
        if any(isinstance(value, (list, dict, Wire)) for value in values):
            return
        assert hash(one) == hash(other)
        assert len({one, other}) == 1

    def test_instances_are_immutable(self, cls: type[Wire]) -> None:
        message = instance(cls, full(cls))
        before = message.to_dict()
        for name in (*cls.__struct_fields__, "new"):
            with pytest.raises(AttributeError):
                setattr(message, name, None)
            with pytest.raises(AttributeError):
                delattr(message, name)
        assert message.to_dict() == before

    def test_instances_are_left_out_of_garbage_collection(self, cls: type[Wire]) -> None:
        assert cls.__struct_config__.frozen
        assert not cls.__struct_config__.gc

    def test_repr_shows_at_most_80_characters(self, cls: type[Wire]) -> None:
        for value in (minimal(cls), full(cls), huge(full(cls, 1))):
            shown = repr(instance(cls, value))
            assert shown.startswith(f"{cls.__name__}(")
            assert shown.endswith(")")
            assert len(shown) <= len(cls.__name__) + 2 + 80


class Other(Wire, frozen=True):
    pass


HUGE = "x" * 10_000


def huge(value: Any, key: str = "") -> Any:
    """Make all texts, lists and maps in a value large, except for the tags."""
    if isinstance(value, dict):
        return {key: huge(item, key) for key, item in value.items()} | ({HUGE: HUGE} if "any" in value else {})
    if isinstance(value, list):
        return [huge(item) for item in value] * 10
    return HUGE if value == "words" else 10**15 if type(value) is int else value


def test_repr_shows_the_fields_that_are_there_by_name() -> None:
    assert repr(TextBlock("a")) == "TextBlock(text='a')"
    assert repr(UserMessage.of("hello")) == "UserMessage(content='hello', session_id='')"
    assert repr(KeepAlive()) == "KeepAlive()"
    assert repr(InterruptRequest()) == "InterruptRequest()"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            b'{"type":"assistant","message":{"id":"msg_0123456789","type":"message","role":"assistant","model":"opus",'
            b'"content":[{"type":"text","text":"Hello!"}]},"uuid":"c54e087c","session_id":"3344c1"}',
            "AssistantMessage(content=[TextBlock(text='Hello!')], model='opus', session_id='3344c1', uuid='c5…)",
        ),
        (
            b'{"type":"assistant","message":{"id":"msg_01","role":"assistant",'
            b'"content":[{"type":"tool_use","id":"toolu_0123456789","name":"Bash","input":{"command":"ls"}}]}}',
            "AssistantMessage(content=[ToolUseBlock(name='Bash', input={'command': 'ls'}, id='toolu_012345678…)",
        ),
        (
            b'{"type":"result","subtype":"success","session_id":"3344c1","is_error":false,"num_turns":2,'
            b'"total_cost_usd":0.5,"result":"Done."}',
            "ResultSuccess(result='Done.', num_turns=2, total_cost_usd=0.5, is_error=False, session_id='33…)",
        ),
    ],
    ids=["text", "tool call", "result"],
)
def test_repr_shows_what_was_said_before_ids(line: bytes, shown: str) -> None:
    assert repr(decode(line)) == shown


@pytest.mark.parametrize(
    "make",
    [lambda: "x" * 50_000_000, lambda: ["x"] * 2_000_000, lambda: {str(number): number for number in range(500_000)}],
    ids=["text", "list", "table"],
)
def test_repr_does_not_walk_through_what_it_does_not_show(make: Callable[[], Any]) -> None:
    # This checks memory instead of time: a repr that visits everything would have to hold a part of it.
    message = AssistantMessage.of([ToolUseBlock("1", "Bash", make())])
    tracemalloc.start()
    try:
        shown = repr(message)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(shown) <= len("AssistantMessage()") + 80
    assert peak < 1_000_000


def test_repr_of_blocks_within_blocks() -> None:
    block = ToolResultBlock("t", "x")
    for _ in range(50):
        block = ToolResultBlock("t", [block, TextBlock("y")])
    assert len(repr(UserMessage.of([block]))) <= len("UserMessage()") + 80


def test_absent_and_null_are_different_values() -> None:
    def request(**fields: Any) -> Any:
        return messages.SetModelRequest(**fields)

    assert request() == request(model=UNSET)
    assert request() != request(model=None)
    assert not request().model
    assert through_json(ControlRequest("1", request())) != through_json(ControlRequest("1", request(model=None)))


def test_messages_with_lists_do_not_hash() -> None:
    with pytest.raises(TypeError):
        hash(AssistantMessage.of("a"))
    assert hash(TextBlock("a")) == hash(TextBlock("a"))


def test_a_number_stays_as_it_was_written() -> None:
    for digits in ("5432", "5432.0", "0.5"):
        message = decode(f'{{"type":"result","subtype":"success","duration_ms":{digits}}}')
        assert isinstance(message, ResultSuccess)
        assert repr(message.duration_ms) == digits
        assert f'"duration_ms":{digits}'.encode() in encode(message)


def test_a_whole_number_may_come_with_a_point() -> None:
    message = decode('{"type":"result","subtype":"success","num_turns":3.0}')
    assert isinstance(message, ResultSuccess)
    assert repr(message.num_turns) == "3"


@pytest.mark.parametrize("told", [True, "unknown"])
def test_a_cli_may_not_know_whether_its_commands_run_in_a_sandbox(told: bool | str) -> None:
    init = decode(json.dumps({"type": "system", "subtype": "init", "sandbox_enabled": told}))
    assert isinstance(init, messages.InitMessage)
    assert init.sandbox_enabled == told
    answer = InitializeRequest().parse_answer({"sandbox_enabled": told})
    assert answer.sandbox_enabled == told


# --- match ------------------------------------------------------------------------------------------------------------


def describe(message: Any) -> str:
    match message:
        case StreamEvent(text_delta=str(text)):
            return f"text {text}"
        case StreamEvent(event=ContentBlockDeltaEvent(index, ThinkingDelta(thinking))):
            return f"thinking {thinking} of block {index}"
        case StreamEvent():
            return "event"
        case AssistantMessage(content=[ToolUseBlock(_, name, {"command": command}), *_]):
            return f"{name} {command}"
        case AssistantMessage(error_reason=str(reason)):
            return f"error {reason}"
        case AssistantMessage(content=[TextBlock(text), UnknownBlock(type=tag)]):
            return f"{text} and {tag}"
        case ResultSuccess(ok=True, result=str(result)):
            return f"done {result}"
        case ResultMessage(ok=ok, subtype=subtype):
            return f"{subtype} {ok}"
        case ControlRequest(request_id, CanUseToolRequest(tool_name=name)):
            return f"may {request_id} use {name}"
    return "other"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (StreamEvent(event=ContentBlockDeltaEvent(0, TextDelta("a"))), "text a"),
        (StreamEvent(event=ContentBlockDeltaEvent(0, TextDelta(""))), "text "),
        (StreamEvent(event=ContentBlockDeltaEvent(7, ThinkingDelta("hm"))), "thinking hm of block 7"),
        (StreamEvent(event=UnknownEvent(type="new")), "event"),
        (AssistantMessage.of([ToolUseBlock("1", "Bash", {"command": "ls"}), TextBlock("")]), "Bash ls"),
        (AssistantMessage(message=ApiMessage(content=[], error="overloaded")), "error overloaded"),
        (AssistantMessage.of([TextBlock("a"), UnknownBlock(type="new")]), "a and new"),
        (AssistantMessage.of([ImageBlock(UnknownObject())]), "other"),
        (ResultSuccess(is_error=False, result="fine"), "done fine"),
        (ResultSuccess(is_error=True, result="API Error"), "success False"),
        (ResultMessage(subtype="new"), "new False"),
        (ControlRequest("1", CAN_USE), "may 1 use Bash"),
        (KeepAlive(), "other"),
    ],
)
def test_messages_are_matched_by_position_and_keyword(message: Any, expected: str) -> None:
    assert describe(message) == expected
    assert describe(through_json(message)) == expected


def test_a_class_with_many_fields_takes_no_positions() -> None:
    # New fields may be added anywhere in these classes, which would change the meaning of a position.
    for cls in (AssistantMessage, UserMessage, StreamEvent, ResultMessage, messages.InitMessage):
        assert cls.__match_args__ == ()
        with pytest.raises(TypeError):
            cls(example(str))


@pytest.mark.parametrize("cls", [ControlRequest, KeepAlive, InterruptRequest.__mro__[1]])
def test_payload_as_takes_a_kind_of_request_only(cls: Any) -> None:
    with pytest.raises(TypeError):
        ControlResponse.success("r", {}).payload_as(cls)


def test_repr_of_a_tree_does_not_grow_with_its_leaves() -> None:
    # The tree has 4 ** 40 leaves. A repr that visits them all would never end, so it runs in another process.
    code = """
from claude_wire import ToolResultBlock
block = ToolResultBlock("t", "x")
for _ in range(40):
    block = ToolResultBlock("t", [block] * 4)
print(repr(block))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("ToolResultBlock(content=[ToolResultBlock(")
    assert len(done.stdout) <= len("ToolResultBlock()\n") + 80


# --- Every message class uses little memory, is public and has a docstring, even if no protocol table describes it ----


def test_every_class_of_the_tables_is_among_all_classes() -> None:
    assert set(CLASSES_OF_TABLES) <= set(ALL_CLASSES)
    assert not [name for name, times in Counter(cls.__name__ for cls in ALL_CLASSES).items() if times > 1]


@each("cls", ALL_CLASSES)
def test_no_field_can_hold_memory_that_is_not_its_own(cls: StructType) -> None:
    for field in msgspec.structs.fields(cls):
        assert not {msgspec.Raw, memoryview, bytes, bytearray} & set(parts_of(field.type)), field.name


@each("cls", ALL_CLASSES)
def test_every_class_is_immutable_and_left_out_of_garbage_collection(cls: StructType) -> None:
    config = cls.__struct_config__
    assert (config.frozen, config.gc, config.omit_defaults) == (True, False, True)
    assert config.forbid_unknown_fields  # so msgspec reports a key without a field
    assert not config.array_like


def test_no_base_has_annotations_that_are_evaluated_again_for_each_subclass() -> None:
    # msgspec evaluates string annotations when it creates a decoder. That would delay a program's first message.
    bases = (Wire, MessageBase, messages.ControlRequestBody)
    evaluated = [cls.__name__ for cls in bases for hint in inspect.get_annotations(cls).values() if type(hint) is str]
    assert evaluated == []


PUBLIC = sorted(set(messages.__all__))


def _is_class(value: object) -> bool:
    return isinstance(value, type) and type(value) is not types.GenericAlias  # Python 3.10 treats it as a class


@each("name", [name for name in PUBLIC if _is_class(getattr(messages, name))], str)
def test_every_public_class_says_what_it_is(name: str) -> None:
    cls = getattr(messages, name)
    assert (vars(cls).get("__doc__") or "").strip().endswith((".", "::", '"', "`"))


def _leaves(cls: StructType) -> set[StructType]:
    """Return the subclasses of a class in the package that have no subclasses themselves."""
    children = [child for child in cls.__subclasses__() if child.__module__.startswith("claude_wire.messages.")]
    return set().union(*map(_leaves, children)) if children else {cls}


def test_every_message_class_is_in_the_union_of_messages() -> None:
    assert {*get_args(messages.Message)} == {*_leaves(MessageBase), messages.ResultMessage, messages.UnknownMessage}


def test_every_request_class_is_in_the_union_of_requests() -> None:
    assert {*get_args(messages.ControlRequestPayload)} == _leaves(messages.ControlRequestBody)


def test_every_class_of_the_tables_is_public() -> None:
    assert {cls.__name__ for cls in CLASSES_OF_TABLES} <= set(PUBLIC)


def test_no_name_is_public_twice() -> None:
    assert len(PUBLIC) == len(messages.__all__)
