"""Events match the JSON of the document that specifies them, have a schema, and are encoded correctly."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import msgspec
import pytest

import recordings
from claude_wire import AssistantMessage, Decoder, decode, encode
from claude_wire.messages import Wire, wire_fields
from claude_wire_kit.events import (
    Bridge,
    ClaudeResponse,
    Notice,
    Operation,
    Part,
    PermissionRequest,
    UiEvent,
    UserPrompt,
    event_schema,
)
from claude_wire_kit.events.bounds import EVENT_CHARS, HEAD_CHARS, PICTURE_CHARS, TAIL_CHARS, bounded
from each import each
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


# --- Every event of the recorded sessions conforms to the published JSON schema ---------------------------------------


jsonschema = pytest.importorskip("jsonschema")

SCHEMA = event_schema()


def validator_of(type: str) -> Any:
    """Return a validator for one type of event, which is much faster than one for all types."""
    found = SCHEMA["discriminator"]["mapping"][type]
    return jsonschema.Draft202012Validator({"$ref": found, "$defs": SCHEMA["$defs"]})


VALIDATORS = {type: validator_of(type) for type in SCHEMA["discriminator"]["mapping"]}


@each("name", recordings.names(), str)
def test_every_event_of_a_recorded_session_keeps_the_schema(name: str) -> None:
    ui = Bridge(partial=True, prompts=True, project=lambda conversation: "p")
    events = [event for message in Decoder().feed(recordings.load(name).stdout) for event in ui.add(message)]
    for event in [*events, *ui.end()]:
        data = json.loads(event.to_json())
        VALIDATORS[data["type"]].validate(data)


def test_the_schema_is_one_of_its_draft_and_takes_all_types() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    whole = jsonschema.Draft202012Validator(SCHEMA)
    ui = Bridge(partial=True)
    for message in Decoder().feed(recordings.load("05_perm_allow_deny").stdout):
        for event in ui.add(message):
            whole.validate(event.to_dict())


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "nothing"},
        {"type": "claude_response"},
        {"type": "claude_response", "content": 1},
        {"type": "operation", "id": "a", "kind": "dream", "title": "b", "state": "started"},
        {"type": "permission_cancelled", "requestId": "a", "reason": "answered", "allowed": "yes"},
    ],
)
def test_what_is_no_event_does_not_keep_it(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(wrong)


# --- Events with details are truncated to a size that a browser can handle --------------------------------------------


LONG = "".join(f"{number} " for number in range(200_000))


def operation(**fields: Any) -> Operation:
    return Operation(id="t", kind="other", title="t", state="started", **fields)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else "x"


def test_a_text_keeps_its_beginning_and_its_end() -> None:
    event = bounded(operation(content=[Part(text=LONG)]))
    assert isinstance(event, Operation)
    assert event.content is not None
    text = event.content[0].text or ""
    assert text.startswith(LONG[:HEAD_CHARS])
    assert text.endswith(LONG[-TAIL_CHARS:])
    assert f"… {len(LONG) - HEAD_CHARS - TAIL_CHARS:,} characters are left out …" in text


@pytest.mark.parametrize(
    "event",
    [
        operation(content=[Part(text=LONG) for _ in range(1000)]),
        operation(content=[Part(name="image", mediaType="image/png", data="A" * 1_000_000)] * 10),
        operation(input={"a": LONG, "b": [LONG] * 500, LONG: {"c": LONG}}),
        operation(input={str(number): {"x": [number] * 1000} for number in range(1000)}),
        operation(input=nested(500)),
        operation(input=[[[1] * 200] * 200] * 200),
        operation(change=[f"+{LONG}", "-x"] * 100),
        operation(name="Write", input={"file_path": "f", "content": LONG}, change=[f"+{LONG}"]),
        UserPrompt(content="x", parts=[Part(text=LONG)] * 20),
        Notice(kind="hook", text="x", detail=LONG, fields={"a": [LONG] * 20}),
    ],
    ids=range(10),
)
def test_no_event_is_larger_than_its_bound(event: UiEvent) -> None:
    assert len(encode(bounded(event))) < EVENT_CHARS + PICTURE_CHARS + 100_000


def test_what_is_small_stays_as_it_is() -> None:
    event = operation(input={"a": [1, {"b": None}], "c": ""}, content=[Part(text="x"), Part(name="document")])
    assert bounded(event) == event


def test_a_text_with_exactly_the_maximum_length_stays_whole() -> None:
    event = operation(content=[Part(text="x" * (HEAD_CHARS + TAIL_CHARS))])
    assert bounded(event) == event


def test_what_a_person_decides_on_is_not_cut() -> None:
    event = PermissionRequest(requestId="r", tool="Bash", input={"command": LONG}, options=[])
    assert bounded(event) is event


@pytest.mark.parametrize(("replace_all", "shown"), [(False, {}), (True, {"replace_all": True})])
def test_an_edit_beside_its_change_shows_replace_all_only_if_it_is_true(replace_all: bool, shown: Any) -> None:
    given = {"old_string": "x", "new_string": "y", "replace_all": replace_all}
    event = bounded(operation(name="Edit", input=given, change=["-x", "+y"]))
    assert isinstance(event, Operation)
    assert event.input == shown


def test_a_call_says_the_change_that_it_asks_for_and_a_failed_command_its_exit_code() -> None:
    ui = Bridge(details=True)
    edit = b'{"type":"tool_use","id":"e","name":"Edit","input":{"file_path":"a","old_string":"x\\ny","new_string":"z"}}'
    bash = b'{"type":"tool_use","id":"b","name":"Bash","input":{"command":"false"}}'
    said = decode(b'{"type":"assistant","session_id":"s","message":{"content":[' + edit + b"," + bash + b"]}}")
    started = [event for event in ui.add(said) if isinstance(event, Operation)]
    assert [event.change for event in started] == [["-x", "-y", "+z"], None]
    assert bounded(started[0]).to_dict()["input"] == {"file_path": "a"}
    result = (
        b'{"type":"user","session_id":"s","message":{"role":"user","content":[{"type":"tool_result",'
        b'"tool_use_id":"b","is_error":true,"content":"Exit code 127\\nno such command"}]}}'
    )
    ended = [event for event in ui.add(decode(result)) if isinstance(event, Operation)]
    assert [(event.state, event.exitCode) for event in ended] == [("failed", 127)]
