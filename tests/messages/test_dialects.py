"""Fields and messages that the typings do not declare, but some agents or CLI versions write, are typed and kept."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from claude_wire import (
    AssistantMessage,
    ControlRequest,
    ControlResponse,
    Decoder,
    InitMessage,
    ResultMessage,
    UserMessage,
    decode,
    encode,
)
from claude_wire.messages import (
    ConsolidationMessage,
    ControlCancelRequest,
    ControlError,
    ControlSuccess,
    InterruptedMessage,
    InterruptRequest,
    StatusMessage,
    UiInvalidateMessage,
)

SYSTEM = {"type": "system"}
RESULT = {"type": "result", "subtype": "success", "is_error": False}
TEXT = {"role": "assistant", "content": []}

#: A class, a line without the extra fields, and the extra fields.
WRITTEN: list[tuple[type[Any], dict[str, Any], dict[str, Any]]] = [
    (
        ConsolidationMessage,
        {**SYSTEM, "subtype": "consolidation", "entries_created": 1, "entries_updated": 2},
        {"entries_archived": 3, "summary": "s"},
    ),
    (InterruptedMessage, {**SYSTEM, "subtype": "interrupted"}, {"message": "m", "session_id": "s"}),
    (AssistantMessage, {"type": "assistant", "message": TEXT}, {"api_error": "hook_denied", "refused_message_id": "m"}),
    (UserMessage, {"type": "user", "message": {"role": "user", "content": ""}}, {"refused_message_id": "m"}),
    (StatusMessage, {**SYSTEM, "subtype": "status", "status": "compacting"}, {"compact_output_chars": 7}),
    (UiInvalidateMessage, {**SYSTEM, "subtype": "ui_invalidate"}, {"event": "ui.render"}),
    (
        ResultMessage,
        RESULT,
        {
            "api_error": "max_output_tokens",
            "time_to_request_phases_ms": {"hooks": 1},
            "handoff_intake_phases_ms": {"a": 1},
            "time_to_request_cpu_ms": 1.5,
            "time_to_request_loop_lag_ms": 1,
            "process_cpu_ms_turn": 1,
            "process_wall_ms_turn": 2,
            "frame_received_wall_ms": 1700000000000.5,
            "turn_started_wall_ms": 1700000000001,
            "frame_intake_phases_ms": {"a": 1},
            "turn_start_phases_ms": {"a": 1},
            "turn_start_control_requests_ms": 0,
            "text_post_flush_timer_max_late_ms": 3,
        },
    ),
]


@pytest.mark.parametrize(("cls", "line", "fields"), WRITTEN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_field_that_is_written_is_typed(cls: type[Any], line: dict[str, Any], fields: dict[str, Any]) -> None:
    message = decode(json.dumps({**line, **fields}))
    assert isinstance(message, cls)
    assert {name: getattr(message, name) for name in fields} == fields
    assert json.loads(encode(message)).items() >= fields.items()
    without = decode(json.dumps(line))
    assert type(without) is type(message)
    assert {getattr(without, name) for name in fields} == {None}


def test_an_interrupted_turn_is_told_with_all_that_is_beside_it() -> None:
    message = decode('{"type":"system","subtype":"interrupted","reason":["by hand"]}')
    assert isinstance(message, InterruptedMessage)
    assert message.extra == {"reason": ["by hand"]}
    assert json.loads(encode(message)) == {"type": "system", "subtype": "interrupted", "reason": ["by hand"]}


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        (["Bash", "Read"], ["Bash", "Read"]),
        ([{"name": "Bash", "input_schema": {"type": "object"}}, {"name": "Read"}], ["Bash", "Read"]),
        (["Bash", {"name": "Read"}, {"title": "no name"}, {"name": 7}], ["Bash", "Read"]),
        ([], []),
    ],
)
def test_the_tools_of_a_session_are_named_or_described(tools: list[Any], names: list[str]) -> None:
    line = {"type": "system", "subtype": "init", "cwd": "/", "tools": tools}
    message = decode(json.dumps(line))
    assert isinstance(message, InitMessage)
    assert message.tools == tools
    assert message.tool_names == names
    assert json.loads(encode(message)) == line
    assert InitMessage().tool_names == []


# --- Ids of control messages ------------------------------------------------------------------------------------------

IDS = ['"request_id":"a",', '"request_id":7,', '"request_id":7.5,', '"request_id":null,', ""]
VALUES = ["a", 7, 7.5, None, UNSET]


@pytest.mark.parametrize(("text", "value"), list(zip(IDS, VALUES, strict=True)))
def test_an_id_may_be_a_string_a_number_null_or_absent(text: str, value: Any) -> None:
    for line, cls in (
        ('{"type":"control_request",%s"request":{"subtype":"interrupt"}}', ControlRequest),
        ('{"type":"control_cancel_request",%s"tool_use_id":"t"}', ControlCancelRequest),
    ):
        given = (line % text).encode()
        (*_, message, _) = Decoder().feed(b'{"type":"keep_alive"}\n' + given + b'\n{"type":"keep_alive"}\n')
        assert message == decode(given)
        assert isinstance(message, cls)
        assert message.request_id == value
        assert encode(message) == given + b"\n"


@pytest.mark.parametrize(("text", "value"), list(zip(IDS, VALUES, strict=True)))
def test_an_answer_repeats_the_id_of_its_request_whatever_it_is(text: str, value: Any) -> None:
    request = decode('{"type":"control_request",' + text + '"request":{"subtype":"interrupt"}}')
    assert isinstance(request, ControlRequest)
    for answer, cls in (
        (ControlResponse.success(request.request_id, {"a": 1}), ControlSuccess),
        (ControlResponse.failure(request.request_id, "no"), ControlError),
    ):
        plain = answer.to_dict()["response"]
        assert plain.get("request_id", UNSET) == value
        again = decode(encode(answer))
        assert again == answer
        assert isinstance(again, ControlResponse)
        assert isinstance(again.response, cls)
        assert again.request_id == (None if value is UNSET else value)


def test_whoever_makes_a_request_gives_it_an_id() -> None:
    with pytest.raises(TypeError):
        ControlRequest(request=InterruptRequest())
    with pytest.raises(TypeError):
        ControlSuccess()
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"type": "control_request", "request": {"subtype": "interrupt"}}, ControlRequest)
