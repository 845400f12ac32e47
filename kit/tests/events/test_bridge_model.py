"""After any messages in any order, with repeated or unknown ids, everything that begins ends exactly once."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from test_bridge_recordings import check_ends

from claude_wire import decode
from claude_wire.errors import AnswerError
from claude_wire_kit.events import Bridge, UiEvent

IDS = st.sampled_from(["a", "b", "c", "x" * 200])
SESSIONS = st.sampled_from([{}, {"session_id": "s"}, {"session_id": "t"}, {"session_id": "u" * 200}])
PARENTS = st.none() | IDS
NAMES = st.sampled_from(["todos", "status", "content", "task", "id", "command", "subagent_type"])
ANY = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


def _message(type: str, **fields: Any) -> Any:
    return {"type": type, **{key: value for key, value in fields.items() if value is not None}}


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    id, session, parent = draw(IDS), draw(SESSIONS), draw(PARENTS)
    name = draw(st.sampled_from(["Bash", "Task", "Agent", "TodoWrite", "TaskCreate", "TaskUpdate", "mcp__a__b"]))
    kind = draw(st.integers(0, 13))
    status = draw(st.sampled_from(["completed", "failed", "killed", "stopped", "running", "new"]))
    flag = draw(st.none() | st.booleans())
    calls = {"type": "tool_use", "id": id, "name": name, "input": draw(ANY)}
    text = {"type": "text", "text": draw(st.sampled_from(["", " ", "Running test 1 of 2", "Started subagent `b`"]))}
    result = {"type": "tool_result", "tool_use_id": id, "content": draw(st.none() | st.text()), "is_error": flag}
    asks = {"subtype": "can_use_tool", "tool_name": name, "input": {}, "tool_use_id": draw(IDS)}
    denied = {"behavior": "deny", "message": "no"}
    made: list[dict[str, Any]] = [
        _message("assistant", message={"content": [calls, text]}, parent_tool_use_id=parent, **session),
        _message("assistant", message={"content": [text, calls, calls]}, **session),
        _message("user", message={"role": "user", "content": [result]}, parent_tool_use_id=parent, **session,
                 tool_use_result=draw(ANY), tool_result_meta=draw(ANY)),
        _message("tool_result", tool_use_id=id, result="x"),
        _message("system", subtype="tool_result", tool_use_id=id, content="x", **session),
        _message("result", subtype=draw(st.sampled_from(["success", "cancelled"])), is_error=flag, **session),
        _message("system", subtype="task_started", task_id=draw(IDS), tool_use_id=parent, description="d",
                 task_type="local_agent", is_backgrounded=flag, **session),
        _message("system", subtype="task_progress", task_id=id, tool_use_id=parent, description="d",
                 usage={"total_tokens": 1, "tool_uses": 1, "duration_ms": 1}, **session),
        _message("system", subtype="task_updated", task_id=id, **session,
                 patch={"status": status, "is_backgrounded": flag}),
        _message("system", subtype="task_notification", task_id=id, tool_use_id=parent, status=status,
                 output_file="", summary="s", **session),
        _message("control_request", request_id=id, request=asks),
        _message("control_cancel_request", request_id=id),
        _message("control_response", response={"subtype": "success", "request_id": id, "response": denied}),
        _message("system", subtype="permission_request", name=name, args={}, uuid=parent, **session),
    ]  # fmt: skip
    return made[kind]


@settings(deadline=None)
@given(st.lists(messages() | IDS, max_size=30), st.booleans())
def test_all_that_begins_ends_once_whatever_comes_in_whatever_order(steps: list[Any], partial: bool) -> None:
    ui = Bridge(partial=partial)
    events: list[UiEvent] = []
    for step in steps:
        if isinstance(step, str):  # the front end answers a question that may not exist
            with contextlib.suppress(AnswerError):
                ui.answer(step, allow=len(events) % 2 == 0)
        else:
            events += ui.add(decode(json.dumps(step).encode()))
    events += ui.end()
    check_ends(events, answered=True)
    assert repr(ui) == repr(Bridge())
    for event in events:
        assert json.loads(event.to_json())["type"]
