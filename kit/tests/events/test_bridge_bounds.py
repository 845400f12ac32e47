"""A bridge keeps a bounded number of questions, calls and conversations, and drops the oldest above the bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claude_wire import AssistantMessage, ControlRequest, decode
from claude_wire.errors import AnswerError
from claude_wire_kit.events import (
    MAX_CONVERSATIONS,
    MAX_OPERATIONS,
    MAX_QUESTION_BYTES,
    MAX_QUESTIONS,
    MAX_SUBAGENTS,
    Bridge,
    Operation,
    PermissionCancelled,
    PermissionRequest,
    Step,
    SubagentProgress,
)
from claude_wire_kit.events.todos import MAX_TODOS, Todos
from what_is_kept import drive


def line(**message: Any) -> Any:
    return decode(json.dumps(message).encode())


def call(id: str, session: str = "s", **input: Any) -> Any:
    block = {"type": "tool_use", "id": id, "name": "Bash", "input": input}
    return line(type="assistant", message={"content": [block]}, session_id=session)


def permission(id: str, **fields: Any) -> Any:
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, **fields}
    return line(type="control_request", request_id=id, request=request)


def test_one_call_more_than_are_kept_ends_the_oldest() -> None:
    ui = Bridge()
    for number in range(MAX_OPERATIONS):
        ui.add(call(f"t{number}"))
    first, new = ui.add(call("new"))
    assert isinstance(first, Operation)
    assert (first.id, first.state) == ("t0", "interrupted")
    assert isinstance(new, Operation)
    assert len(ui.end()) == MAX_OPERATIONS


def test_one_subagent_more_than_are_kept_stops_the_oldest() -> None:
    ui = Bridge()
    speaks = [
        line(type="assistant", message={"content": []}, session_id="s", parent_tool_use_id=f"p{number}")
        for number in range(MAX_SUBAGENTS + 1)
    ]
    for message in speaks[:-1]:
        ui.add(message)
    first, new = ui.add(speaks[-1])
    assert isinstance(first, SubagentProgress)
    assert (first.agentId, first.status) == ("p0", "stopped")
    assert isinstance(new, SubagentProgress)
    assert new.status == "started"


def test_nothing_is_kept_of_a_subagent_that_has_ended_but_its_id() -> None:
    ui = Bridge()
    for number in range(MAX_SUBAGENTS + 10):
        task = {"task_id": f"k{number}", "session_id": "s"}
        ui.add(line(type="system", subtype="task_started", description="d", task_type="local_agent", **task))
        ui.add(line(type="system", subtype="task_updated", patch={"status": "completed"}, **task))
    assert len(ui._work.subagents) == len(ui._work.subagents._by_task) == 0


def test_a_subagent_keeps_its_first_task() -> None:
    ui = Bridge()
    for task in ("k1", "k2"):
        started = {"description": "d", "task_type": "local_agent", "tool_use_id": "t"}
        ui.add(line(type="system", subtype="task_started", task_id=task, session_id="s", **started))
    assert ui._work.subagents._by_task == {("s", "k1"): "t"}
    ui.end()
    assert ui._work.subagents._by_task == {}


def test_created_tasks_without_a_result_count_toward_the_limit() -> None:
    todos = Todos()
    for number in range(MAX_TODOS + 1):
        assert todos.call(f"c{number}", "TaskCreate", {"subject": "Read"}) is None
    assert todos.result(f"c{MAX_TODOS}", "Task #101 created", None) is None
    assert todos.result("c0", "Task #1 created", None) == Step(0, "Read", 0, 1)


def test_one_question_more_than_are_kept_drops_the_oldest() -> None:
    ui = Bridge()
    for number in range(MAX_QUESTIONS):
        ui.add(permission(f"r{number}"))
    events = ui.add(permission("new"))
    assert [type(event) for event in events] == [PermissionRequest, PermissionCancelled]
    assert events[1] == PermissionCancelled(requestId="r0", reason="dropped")
    with pytest.raises(AnswerError):
        ui.answer("r0", allow=True)
    ui.answer("new", allow=True)


def test_questions_count_their_bytes() -> None:
    ui = Bridge()
    text = "x" * (MAX_QUESTION_BYTES // 4)
    for number in range(3):
        assert len(ui.add(permission(f"r{number}", description=text))) == 1
    assert ui.add(permission("new", description=text))[1:] == [PermissionCancelled(requestId="r0", reason="dropped")]
    # A question above the bound of all questions together is dropped itself. The others stay.
    huge = ui.add(permission("huge", description=text * 5))
    assert huge[1:] == [PermissionCancelled(requestId="huge", reason="dropped")]
    for id in ("r1", "r2", "new"):
        ui.answer(id, allow=True)


def test_a_question_that_is_nested_too_deeply_to_be_answered_is_dropped() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    request = permission("r1", permission_suggestions=[{"type": "new"}])
    assert isinstance(request, ControlRequest)
    body: Any = request.request
    body.input["deep"] = deep
    body.permission_suggestions[0]["deep"] = deep
    events = Bridge().add(request)
    assert isinstance(events[0], PermissionRequest)
    assert events[0].options == ["allow once", "(nested too deeply)"]
    assert events[1:] == [PermissionCancelled(requestId="r1", reason="dropped")]
    assert json.loads(events[0].to_json())["input"] == {}


def test_one_conversation_more_than_are_kept_ends_the_one_that_was_silent_for_longest() -> None:
    ui = Bridge()
    for number in range(MAX_CONVERSATIONS):
        ui.add(call("t1", session=f"s{number}"))
    ui.add(permission("r1", tool_use_id="t1"))  # a question of the latest conversation
    ui.add(AssistantMessage.of("Hi", session_id="s0"))
    events = ui.add(AssistantMessage.of("Hi", session_id="new"))
    assert [(event.conversationId, event.to_dict().get("state")) for event in events] == [
        ("s1", "interrupted"),
        ("new", None),
    ]


def test_an_id_that_is_long_is_shown_as_its_digest_everywhere() -> None:
    ui = Bridge()
    long = "x" * 129
    message = line(
        type="assistant",
        message={"content": [{"type": "tool_use", "id": long, "name": "Bash", "input": {}}]},
        session_id=long,
        parent_tool_use_id=long,
    )
    agent, operation, _ = ui.add(message)
    assert isinstance(operation, Operation)
    assert isinstance(agent, SubagentProgress)
    assert len({operation.id, operation.agentId, operation.conversationId, agent.agentId}) == 1
    assert len(operation.id) == 64
    result = {"type": "tool_result", "tool_use_id": long}
    events = ui.add(line(type="user", message={"role": "user", "content": [result]}, session_id=long))
    assert {type(event) for event in events} == {Operation, SubagentProgress}
    assert ui.end() == []


@pytest.mark.parametrize(
    "name", ["bridge_calls", "bridge_sessions", "bridge_subagents", "bridge_questions", "bridge_todos"]
)
def test_a_peer_that_never_ends_what_it_begins_fills_no_memory(name: str) -> None:
    numbers = drive(name)
    assert numbers["kept"] <= numbers["most"] * 1_000_000, numbers
    assert numbers["sent"] > 3 * numbers["kept"], numbers


def test_what_a_bridge_keeps_for_details_is_bounded() -> None:
    ui = Bridge(partial=True, details=True)
    for number in range(3 * MAX_OPERATIONS):
        hook = {"subtype": "hook_callback", "callback_id": "h", "input": {"hook_event_name": "UserPromptSubmit"}}
        hook["input"] |= {"prompt": f"{number}" * 100, "session_id": "s", "transcript_path": "", "cwd": ""}
        ui.add(line(type="control_request", request_id=f"{number}" * 100, request=hook))
        ui.add(AssistantMessage.of(f"{number}" * 1000, session_id="s"))
        ui.expect_prompt(f"{number}" * 1000)
    assert (len(ui._asked), len(ui._awaited), len(ui._hooked), len(ui._said)) == (MAX_OPERATIONS, 1000, 1000, 100)
    assert all(
        not isinstance(key, str) or len(key) <= 128 for kept in (ui._asked, ui._hooked, ui._said) for key in kept
    )


def test_an_input_is_told_and_not_kept() -> None:
    ui = Bridge(details=True)
    ui.add(call("t", command="x" * 1_000_000))
    [kept] = ui._work.operations._open.values()
    assert (kept.name, kept.input) == (None, None)
