"""Events with details are truncated to a size that a browser can handle."""

from __future__ import annotations

from typing import Any

import pytest

from claude_wire import decode
from claude_wire.codec import encode
from claude_wire_kit.events import Bridge, Notice, Operation, Part, PermissionRequest, UiEvent, UserPrompt
from claude_wire_kit.events.bounds import EVENT_CHARS, HEAD_CHARS, PICTURE_CHARS, TAIL_CHARS, bounded

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


def test_what_a_person_decides_on_is_not_cut() -> None:
    event = PermissionRequest(requestId="r", tool="Bash", input={"command": LONG}, options=[])
    assert bounded(event) is event


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
