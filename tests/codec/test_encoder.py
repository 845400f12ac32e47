"""Tests of the encoder: one compact line of UTF-8 per message, in which null and a missing key differ."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from claude_wire import (
    AssistantMessage,
    ControlRequest,
    ControlResponse,
    EncodeError,
    Encoder,
    InitMessage,
    InvalidLine,
    StreamEvent,
    TextBlock,
    ToolUseBlock,
    UnknownMessage,
    UserMessage,
    decode,
    encode,
)
from claude_wire.messages import (
    ApiMessage,
    ContentBlockDeltaEvent,
    ControlCancelRequest,
    InitializeRequest,
    KeepAlive,
    ResultSuccess,
    SetModelRequest,
    SubagentRetry,
    TextDelta,
    ThinkingDelta,
    UnknownBlock,
    UnknownRequest,
)
from each import each


def encode_lines_one(message: Any) -> bytes:
    return Encoder().encode_lines([message])


def encode_into_new(message: Any) -> bytes:
    buffer = bytearray()
    Encoder().encode_into(message, buffer)
    return bytes(buffer)


#: All functions that encode one message. They must give the same bytes.
ENCODERS = [encode, Encoder().encode, encode_lines_one, encode_into_new]
every_encoder = pytest.mark.parametrize("encode_one", ENCODERS, ids=["encode", "method", "encode_lines", "encode_into"])


def text_of(line: bytes) -> str:
    content = json.loads(line)["message"]["content"]
    assert isinstance(content, str)
    return content


# --- One line of compact UTF-8 ----------------------------------------------------------------------------------------


@every_encoder
class TestEveryEncoder:
    def test_writes_compact_json_that_ends_with_a_line_feed(self, encode_one: Any) -> None:
        assert encode_one(KeepAlive()) == b'{"type":"keep_alive"}\n'
        assert encode_one({"a": [1, 2.5, None, True], "b": {}}) == b'{"a":[1,2.5,null,true],"b":{}}\n'
        assert encode_one({}) == b"{}\n"

    def test_never_writes_a_raw_line_end(self, encode_one: Any) -> None:
        # JavaScript ends lines at U+2028 and U+2029. str.splitlines also ends them at U+0085 and some controls.
        text = "".join(map(chr, range(0x20))) + "\x7f\x85\u2028\u2029"
        line = encode_one(UserMessage.of(text))
        assert text_of(line) == text
        assert line.count(b"\n") == 1
        assert b"\r" not in line
        assert rb"\u2028\u2029" in line
        assert "\u2028".encode() not in line
        assert "\u2029".encode() not in line

    def test_escapes_line_separators_in_keys_too(self, encode_one: Any) -> None:
        assert encode_one({"\u2028": "é\u2029"}) == '{"\\u2028":"é\\u2029"}\n'.encode()

    def test_writes_other_text_raw(self, encode_one: Any) -> None:
        text = "é ß 日本 \U0001f600 \u2027\u202a \ufeff \ufffd"
        assert text.encode() in encode_one(UserMessage.of(text))

    @pytest.mark.parametrize(
        ("text", "escaped"),
        [
            ("\ud83d", rb"\ud83d"),
            ("\ude00", rb"\ude00"),
            ("a\udfffz", rb"a\udfffz"),
            ("\ude00\ud83d", rb"\ude00\ud83d"),
            ("\U0001f600\ud83d", b"\xf0\x9f\x98\x80" + rb"\ud83d"),
            ("\ud83d\u2028", rb"\ud83d\u2028"),
            ('\ud83d"\\\n', rb"\ud83d\"\\\n"),
        ],
    )
    def test_writes_lone_surrogates_as_escapes(self, encode_one: Any, text: str, escaped: bytes) -> None:
        line = encode_one(UserMessage.of(text))
        assert b'"content":"' + escaped + b'"' in line
        assert text_of(line) == text
        assert decode(line) == UserMessage.of(text)

    @pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**400, -(10**400)])
    def test_writes_whole_numbers_of_any_size(self, encode_one: Any, number: int) -> None:
        assert encode_one({"a": [number]}) == f'{{"a":[{number}]}}\n'.encode()

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    def test_writes_null_for_what_is_no_json_number(self, encode_one: Any, number: float) -> None:
        # JSON.stringify writes null, too. The second and third message take the encoder's slow path.
        assert encode_one({"a": number}) == b'{"a":null}\n'
        assert encode_one({"a": [{"b": number}], "c": "\ud83d"}) == rb'{"a":[{"b":null}],"c":"\ud83d"}' + b"\n"
        assert encode_one({"a": (number,), "c": 2**70}) == b'{"a":[null],"c":1180591620717411303424}\n'

    @pytest.mark.parametrize("value", ["text", 2**64, "\ud83d"])
    def test_writes_the_same_whatever_else_is_in_the_message(self, encode_one: Any, value: Any) -> None:
        # A surrogate or a huge number makes the encoder take its slow path, which must write the rest the same way.
        rest = {"f": 1.0, "z": -0.0, "e": 1e300, "s": 'é\x7f/\u2028"\\', "n": None, "t": [True, (), {}], "d": {"": 0}}
        written = json.loads(encode_one({**rest, "v": value}))
        assert repr(written) == repr({**json.loads(encode_one(rest)), "v": value})

        def message(given: dict[str, Any]) -> Any:
            return AssistantMessage.of([ToolUseBlock("1", "Bash", given), TextBlock("", citations=None)])

        written = json.loads(encode_one(message({"v": value})))
        assert written["message"]["content"][0].pop("input") == {"v": value}
        expected = json.loads(encode_one(message({})))
        del expected["message"]["content"][0]["input"]
        assert written == expected

    def test_refuses_what_is_no_message(self, encode_one: Any) -> None:
        for value in (None, "text", b"{}", 1, [], [KeepAlive()], InvalidLine(b"sk-secret", 1, 0, "not JSON"), object):
            with pytest.raises(TypeError, match=r"takes (a message or a dict|messages and dicts), not") as caught:
                encode_one(value)
            assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        "value",
        [object(), InvalidLine(b"", 1, 0, "not JSON"), 1 + 2j, {(1, 2): 3}, range(3), lambda: None],
        ids=["object", "invalid line", "complex", "key", "range", "function"],
    )
    @each("beside", ["", "\ud83d", 2**64], ascii)
    def test_refuses_what_json_has_no_form_for(self, encode_one: Any, value: Any, beside: Any) -> None:
        with pytest.raises(EncodeError, match="no JSON for this message"):
            encode_one({"a": value, "b": beside})
        with pytest.raises(EncodeError):
            encode_one({"b": beside, "a": value})

    @pytest.mark.parametrize("beside", ["", "\ud83d", 2**64])
    def test_refuses_a_value_that_contains_itself(self, encode_one: Any, beside: Any) -> None:
        cycle: list[Any] = []
        cycle.append(cycle)
        with pytest.raises(EncodeError):
            encode_one({"b": beside, "a": cycle})


# --- Several at once --------------------------------------------------------------------------------------------------

MESSAGES = [
    KeepAlive(),
    UserMessage.of("é\u2028"),
    {"plain": "dict"},
    UnknownMessage({"type": "new"}),
    ControlCancelRequest("1"),
]


@pytest.mark.parametrize("odd", [None, UserMessage.of("\ud83d"), {"a": 2**64}, {"a": math.nan}])
def test_encode_lines_is_each_message_encoded_in_order(odd: Any) -> None:
    messages: list[Any] = [*MESSAGES, *([odd] if odd is not None else []), *MESSAGES]
    expected = b"".join(map(encode, messages))
    assert Encoder().encode_lines(messages) == expected
    assert Encoder().encode_lines(iter(messages)) == expected
    assert Encoder().encode_lines(tuple(messages)) == expected


def test_encode_lines_of_nothing_is_nothing() -> None:
    assert Encoder().encode_lines([]) == b""


def test_encode_lines_refuses_the_whole_for_one() -> None:
    for bad, error in ((InvalidLine(b"", 1, 0, ""), TypeError), ({"a": object()}, EncodeError)):
        with pytest.raises(error):
            Encoder().encode_lines([KeepAlive(), bad, KeepAlive()])


def test_encode_into_appends() -> None:
    encoder, buffer = Encoder(), bytearray(b"before\n")
    for message in MESSAGES:
        encoder.encode_into(message, buffer)
    assert buffer == b"before\n" + encoder.encode_lines(MESSAGES)


@pytest.mark.parametrize("bad", [None, {"a": object()}, {"a": "\ud83d", "b": object()}])
def test_encode_into_leaves_the_buffer_as_it_was_when_it_raises(bad: Any) -> None:
    buffer = bytearray(b"before\n")
    with pytest.raises((TypeError, EncodeError)):
        Encoder().encode_into(bad, buffer)
    assert buffer == b"before\n"


# --- Null, absent and value -------------------------------------------------------------------------------------------


@every_encoder
class TestPresence:
    def test_what_is_always_there_is_written_as_null(self, encode_one: Any) -> None:
        # The TypeScript SDK checks parent_tool_use_id === null, so the key must not be missing.
        event = StreamEvent(event=ContentBlockDeltaEvent(0, TextDelta("a")))
        assert json.loads(encode_one(event)) == {
            "type": "stream_event",
            "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
            "parent_tool_use_id": None,
        }
        retry = SubagentRetry(agent_id="a", attempt=1, max_retries=2, retry_delay_ms=3, error_category="c")
        assert json.loads(encode_one({"retry": retry}))["retry"]["error_status"] is None
        assert json.loads(encode_one(AssistantMessage.of("a")))["message"]["stop_reason"] is None

    def test_constants_are_written(self, encode_one: Any) -> None:
        assert json.loads(encode_one(InitMessage())) == {"type": "system", "subtype": "init"}
        assert json.loads(encode_one(ResultSuccess())) == {"type": "result", "subtype": "success", "stop_reason": None}

    def test_what_may_be_absent_is_left_out_when_none(self, encode_one: Any) -> None:
        assert json.loads(encode_one(UserMessage.of("a", session_id=""))) == {
            "type": "user",
            "message": {"role": "user", "content": "a"},
            "parent_tool_use_id": None,
            "session_id": "",
        }

    def test_absent_and_null_differ_where_the_protocol_tells_them_apart(self, encode_one: Any) -> None:
        def request(**fields: Any) -> Any:
            return json.loads(encode_one(ControlRequest("1", SetModelRequest(**fields))))["request"]

        assert request() == request(model=UNSET) == {"subtype": "set_model"}
        assert request(model=None) == {"subtype": "set_model", "model": None}
        assert request(model="opus") == {"subtype": "set_model", "model": "opus"}

    @pytest.mark.parametrize("beside", ["a", "\ud83d"])
    def test_unset_is_left_out_and_none_is_written(self, encode_one: Any, beside: str) -> None:
        for estimated, expected in ((UNSET, {}), (None, {"estimated_tokens": None}), (0, {"estimated_tokens": 0})):
            event = StreamEvent(event=ContentBlockDeltaEvent(0, ThinkingDelta(beside, estimated)))
            delta = json.loads(encode_one(event))["event"]["delta"]
            assert delta == {"type": "thinking_delta", "thinking": beside, **expected}

    def test_values_that_are_false_are_written(self, encode_one: Any) -> None:
        message = ResultSuccess(is_error=False, result="", num_turns=0, total_cost_usd=0.0, errors=[], modelUsage={})
        assert json.loads(encode_one(message)) == {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "result": "",
            "num_turns": 0,
            "total_cost_usd": 0.0,
            "errors": [],
            "modelUsage": {},
            "stop_reason": None,
        }

    def test_keys_that_python_cannot_spell_have_their_wire_names(self, encode_one: Any) -> None:
        message = AssistantMessage(message=ApiMessage(content=[]), model_="opus")
        assert json.loads(encode_one(message))["model"] == "opus"


# --- Unknown values ---------------------------------------------------------------------------------------------------


@every_encoder
@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"new","a":[1,{"b":null}],"reason":"its own"}',
        b"{}",
        b'{"type":7}',
        b'{"type":"new","x":1180591620717411303424,"y":"\\ud83d"}',
        b'{"type":"assistant","message":{"content":"text"}}',
        b'{"type":"assistant","message":{"content":[{"type":"new","b":1}],"stop_reason":null,"stop_sequence":null},'
        b'"parent_tool_use_id":null}',
        b'{"type":"stream_event","event":{"type":"new","b":1},"parent_tool_use_id":null}',
        b'{"type":"control_request","request_id":"1","request":{"subtype":"new","b":1}}',
    ],
)
def test_what_is_unknown_encodes_to_the_same_json(encode_one: Any, line: bytes) -> None:
    assert json.loads(encode_one(decode(line))) == json.loads(line)


@every_encoder
def test_unknown_values_may_be_made_and_sent(encode_one: Any) -> None:
    message = AssistantMessage.of([UnknownBlock({"type": "new", "x": None}), TextBlock("a")])
    assert json.loads(encode_one(message))["message"]["content"] == [
        {"type": "new", "x": None},
        {"type": "text", "text": "a"},
    ]
    request = ControlRequest("1", UnknownRequest(subtype="new", value=[1]))
    assert json.loads(encode_one(request))["request"] == {"subtype": "new", "value": [1]}


@every_encoder
def test_messages_within_a_dict_are_encoded(encode_one: Any) -> None:
    assert json.loads(encode_one({"pending": [ControlRequest("1", InitializeRequest())]})) == {
        "pending": [{"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}}]
    }


def test_an_answer_is_encoded_where_the_protocol_has_it() -> None:
    assert json.loads(encode(ControlResponse.success("1", {"a": 1}))) == {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": "1", "response": {"a": 1}},
    }


def test_the_message_is_not_changed_by_encoding() -> None:
    value = {"a": [math.nan, "\ud83d", (1, 2)]}
    message = UserMessage.of("\ud83d")
    before = repr(value), message.to_dict()
    encode(value)
    encode(message)
    assert (repr(value), message.to_dict()) == before


def test_the_encoder_agrees_with_json_where_it_takes_the_slow_way() -> None:
    # What msgspec can encode must be written as msgspec writes it.
    value = {"é": 1.5, "list": [None, True, '\x1f\x7f\\"/']}
    assert encode(value) == msgspec.json.encode(value) + b"\n"
    assert json.loads(encode({**value, "s": "\ud83d"})) == {**value, "s": "\ud83d"}


@dataclasses.dataclass
class Foreign:
    text: str = "\ud800"


@pytest.mark.parametrize("foreign", [msgspec.Raw(b""), msgspec.Raw(b'{"a":\n1}'), msgspec.Raw(b"{nonsense"), Foreign()])
def test_what_is_neither_a_message_nor_a_dict_is_refused_whatever_its_json_would_be(foreign: Any) -> None:
    for write in (encode, Encoder().encode, lambda value: Encoder().encode_lines([value])):
        with pytest.raises(TypeError, match=type(foreign).__name__):
            write(foreign)


def test_encode_into_takes_nothing_but_a_bytearray() -> None:
    with pytest.raises(AttributeError):
        Encoder().encode_into(KeepAlive(), b"abc")


@pytest.mark.parametrize("subtype", [b',"subtype":""', b',"subtype":"new"', b""])
def test_a_result_keeps_its_subtype_empty_or_absent(subtype: bytes) -> None:
    line = b'{"type":"result","stop_reason":null,"is_error":false%s}\n' % subtype
    message = decode(line)
    assert encode(message) == line
    assert Encoder().encode_lines([message]) == line
