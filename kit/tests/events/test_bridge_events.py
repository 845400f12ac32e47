"""Events match the JSON of the document that specifies them, have a schema, and are encoded correctly."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import msgspec
import pytest

from claude_wire import AssistantMessage, decode, encode
from claude_wire.messages import Wire, wire_fields
from claude_wire_kit.events import Bridge, ClaudeResponse, Notice, UiEvent, event_schema
from folders import DATA


def _document() -> tuple[bytes, list[dict[str, Any]]]:
    """Return the message and the events of the document's "Example Translation"."""
    text = (DATA / "documents" / "004.md").read_text().partition("## Example Translation")[2]
    message, events = re.findall(r"```json\n(.*?)```", text, re.S)
    return message.encode(), [json.loads(one) for one in re.split(r"\n\n// .*\n", events)]


def test_the_example_of_the_document_comes_out_byte_for_byte() -> None:
    message, expected = _document()
    events = Bridge().add(decode(message.replace(b"\n", b"")))
    compact = [json.dumps(one, separators=(",", ":")) for one in expected]
    assert len(compact) == 2
    assert [event.to_json() for event in events] == compact
    assert [encode(event) for event in events] == [one.encode() + b"\n" for one in compact]
    assert [event.to_dict() for event in events] == expected


def test_a_project_is_added_to_the_response_and_asked_for_once() -> None:
    asked: list[str] = []

    def project_of(conversation: str) -> str | None:
        asked.append(conversation)
        return "p" if conversation == "a" else None

    ui = Bridge(project=project_of)
    events = [event for id in "abab" for event in ui.add(AssistantMessage.of("Hi", session_id=id))]
    assert asked == ["a", "b"]
    assert [event.to_dict().get("projectId") for event in events] == ["p", None, "p", None]


def test_the_schema_is_that_of_the_classes() -> None:
    schema = event_schema()
    classes: tuple[type[Wire], ...] = get_args(UiEvent)
    definitions = schema["$defs"]
    assert schema["discriminator"]["mapping"].keys() == {str(cls.__struct_config__.tag) for cls in classes}
    for cls in classes:
        one = definitions[cls.__name__]
        fields = wire_fields(cls)
        assert list(one["properties"]) == ["type", *(field.name for field in fields)]
        assert one["required"] == ["type", *(field.name for field in fields if field.required)]
        assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]*)*", name) for name in one["properties"])
    assert definitions["Operation"]["properties"]["state"]["enum"] == sorted(
        ["started", "succeeded", "failed", "denied", "interrupted"]
    )
    json.dumps(schema)


def test_an_event_is_decoded_again_by_its_class() -> None:
    ui = Bridge()
    message, _ = _document()
    for event in ui.add(decode(message.replace(b"\n", b""))):
        assert msgspec.json.decode(event.to_json(), type=UiEvent) == event


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\u2028", "\x00\x1b[31m"])
def test_any_text_has_its_json(text: str) -> None:
    [event] = Bridge().add(AssistantMessage.of(text + "x", session_id="s"))
    assert isinstance(event, ClaudeResponse)
    assert json.loads(event.to_json())["content"] == text + "x"
    assert encode(event).decode() == event.to_json() + "\n"


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        (b'{"type":"auth_status","isAuthenticating":true,"output":["a","b"]}', "auth", "a\nb"),
        (b'{"type":"auth_status","isAuthenticating":false,"output":"a","error":"no"}', "auth", "no"),
        (
            b'{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":5,"error":"overloaded"}',
            "retry",
            "API error (overloaded): try 1 of 10 in 0.0 s",
        ),
        (b'{"type":"system","subtype":"error","message":"no"}', "error", "no"),
        (b'{"type":"system","subtype":"error","error":{"message":"no","code":"c"}}', "error", "no"),
        (
            b'{"type":"stream_event","event":{"type":"error","error":{"type":"overloaded_error"}}}',
            "error",
            "API error: overloaded_error",
        ),
        (b'{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}', "rate_limit", "rate limit: rejected"),
        (b'{"type":"system","subtype":"local_command_output","content":"/cost"}', "info", "/cost"),
    ],
)
def test_what_a_person_should_see_is_a_notice(line: bytes, kind: str, text: str) -> None:
    [notice] = Bridge().add(decode(line))
    assert isinstance(notice, Notice)
    assert (notice.kind, notice.text) == (kind, text)


def test_a_rate_limit_that_allows_is_no_notice() -> None:
    assert Bridge().add(decode(b'{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}')) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            {"subtype": "success", "is_error": False, "total_cost_usd": 0.1, "duration_ms": 5, "num_turns": 2},
            {"ok": True, "costUsd": 0.1, "durationMs": 5, "turns": 2},
        ),
        ({"subtype": "success", "is_error": True, "result": "API Error"}, {"ok": False, "error": "API Error"}),
        ({"subtype": "error_max_turns", "is_error": True}, {"ok": False, "error": "error_max_turns"}),
        ({"subtype": "error", "error": {"message": "no", "code": "c"}}, {"ok": False, "error": "no"}),
        ({"subtype": "cancelled"}, {"ok": False, "error": "interrupted"}),
    ],
)
def test_a_turn_ends_by_ok_and_not_by_its_subtype(line: dict[str, Any], expected: dict[str, Any]) -> None:
    [event] = Bridge().add(decode(json.dumps({"type": "result", "session_id": "s", **line}).encode()))
    assert event.to_dict() == {"type": "turn_complete", "conversationId": "s", **expected}


def test_a_turn_costs_what_it_has_used_and_comes_once() -> None:
    ui = Bridge()
    line = '{"type":"result","subtype":"success","is_error":false,"session_id":"s","total_cost_usd":%s,"uuid":"%s"}'
    results = [decode((line % (cost, uuid)).encode()) for cost, uuid in ((0.1, "a"), (0.3, "b"), (0.3, "b"))]
    events = [event for result in results for event in ui.add(result)]
    assert [event.to_dict()["costUsd"] for event in events] == [0.1, 0.2]


def test_what_is_no_message_is_refused() -> None:
    for wrong in ({"type": "assistant"}, b"{}", [AssistantMessage.of("Hi")], None):
        with pytest.raises(TypeError, match="a Bridge takes"):
            Bridge().add(wrong)
    with pytest.raises(TypeError, match="project must be a function"):
        Bridge(project="p")
    with pytest.raises(TypeError, match="progress must be a list of functions"):
        Bridge(progress=[5])
