"""Operations and subagents begin and end in every possible way, in every dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claude_wire import AssistantMessage, ToolResultBlock, ToolUseBlock, UserMessage, decode
from claude_wire.messages import (
    ApiMessage,
    InterruptedMessage,
    MessageParam,
    PermissionDeniedMessage,
    ResultSuccess,
    TaskNotificationMessage,
    TaskPatch,
    TaskProgressMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    TaskUsage,
)
from claude_wire_kit.events import Bridge, Operation, SubagentProgress
from claude_wire_kit.events.tools import described

USAGE = TaskUsage(total_tokens=1, tool_uses=1, duration_ms=1)


def called(name: str, input: Any = None, id: str = "t1", *, session: str = "s", parent: str | None = None) -> Any:
    content: list[Any] = [ToolUseBlock(id, name, {} if input is None else input)]
    return AssistantMessage(message=ApiMessage(content=content), session_id=session, parent_tool_use_id=parent)


def returned(
    content: Any = "ok", id: str = "t1", *, is_error: bool | None = None, session: str = "s", meta: Any = None
) -> UserMessage:
    block = ToolResultBlock(id, content, is_error)
    return UserMessage(message=MessageParam("user", [block]), session_id=session, tool_result_meta=meta)


def line(**message: Any) -> Any:
    return decode(json.dumps(message).encode())


def states(ui: Bridge, *messages: Any) -> list[tuple[str, str]]:
    events = [event for message in messages for event in ui.add(message)]
    return [(event.id, event.state) for event in events if isinstance(event, Operation)]


@pytest.mark.parametrize(
    ("tool", "input", "expected"),
    [
        ("Read", {"file_path": "/a"}, {"kind": "file_read", "title": "Read /a", "path": "/a"}),
        ("Write", {"file_path": "/a", "content": "x"}, {"kind": "file_write", "title": "Write /a", "path": "/a"}),
        ("Edit", {"file_path": "/a"}, {"kind": "file_edit", "title": "Edit /a", "path": "/a"}),
        ("NotebookEdit", {"notebook_path": "/n"}, {"kind": "file_edit", "title": "Edit /n", "path": "/n"}),
        ("Bash", {"command": "ls"}, {"kind": "command", "title": "Run ls", "command": "ls"}),
        ("Bash", {"command": "ls", "description": "List"}, {"kind": "command", "title": "List", "command": "ls"}),
        ("Grep", {"pattern": "x", "path": "/d"}, {"kind": "search", "title": "Search x", "path": "/d"}),
        ("WebFetch", {"url": "http://x"}, {"kind": "web", "title": "Web http://x"}),
        ("mcp__calc__add", {"a": 1}, {"kind": "mcp", "title": "calc: add"}),
        ("Task", {"description": "do"}, {"kind": "subagent", "title": "Subagent do"}),
        ("Agent", {}, {"kind": "subagent", "title": "Subagent"}),
        ("Else", {"file_path": "/a"}, {"kind": "other", "title": "Else"}),
        ("Bash", {"command": 5}, {"kind": "command", "title": "Run"}),
        ("Bash", [1], {"kind": "command", "title": "Run"}),
        ("Bash", "ls", {"kind": "command", "title": "Run"}),
        (
            "Read",
            {"file_path": "\x1b[3m\na"},
            {"kind": "file_read", "title": "Read \\x1b[3m\\na", "path": "\x1b[3m\na"},
        ),
    ],
)
def test_what_a_call_is(tool: str, input: Any, expected: dict[str, Any]) -> None:
    event = Bridge().add(called(tool, input))[0]
    assert event.to_dict() == {"type": "operation", "id": "t1", **expected, "state": "started", "conversationId": "s"}


def test_long_paths_and_commands_are_cut() -> None:
    [event] = Bridge().add(called("Bash", {"command": "x" * 1001}))
    assert isinstance(event, Operation)
    assert event.command == "x" * 999 + "\u2026"
    assert len(event.title) == 120


RESULTS = {
    "a block in a user message": line(
        type="user",
        message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]},
        session_id="s",
    ),
    "a message of its own": line(type="tool_result", tool_use_id="t1", result={"type": "text", "text": "x"}),
    "a system message with a block": line(
        type="system", subtype="tool_result", tool_result={"type": "tool_result", "tool_use_id": "t1", "content": "x"}
    ),
    "a flat system message": line(type="system", subtype="tool_result", tool_use_id="t1", content="x", session_id="s"),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_result_of_every_form_ends_its_call_once(result: Any) -> None:
    assert states(Bridge(), called("Bash"), result, result, called("Bash")) == [("t1", "started"), ("t1", "succeeded")]


def test_a_message_of_its_own_may_say_that_its_call_failed() -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "x", "is_error": True}
    result = line(type="tool_result", tool_use_id="t1", result=block)
    failed = line(type="tool_result", tool_use_id="t1", result="x", is_error=True)
    for one in (result, failed):
        assert states(Bridge(), called("Bash"), one) == [("t1", "started"), ("t1", "failed")]


def test_a_result_ends_the_call_of_its_own_session_alone() -> None:
    ui = Bridge()
    assert states(ui, called("Bash"), called("Bash", session="x"), returned(session="x")) == [
        ("t1", "started"),
        ("t1", "started"),
        ("t1", "succeeded"),
    ]
    [event] = ui.end()
    assert (event.conversationId, event.to_dict()["state"]) == ("s", "interrupted")


REFUSED = PermissionDeniedMessage(tool_name="Bash", tool_use_id="t1", message="no", session_id="s")
REJECTED = "The user doesn't want to proceed with this tool use."


@pytest.mark.parametrize(
    ("messages", "state"),
    [
        ([returned("x", is_error=True)], "failed"),
        ([returned("x", is_error=False)], "succeeded"),
        ([REFUSED, returned("x", is_error=True)], "denied"),
        ([REFUSED, returned("x")], "succeeded"),
        ([returned("x", is_error=True, meta=[{"id": "t1", "non_execution_kind": "permission-rule"}])], "denied"),
        ([returned("x", is_error=True, meta=[{"id": "t1", "non_execution_kind": "user-rejected"}])], "denied"),
        ([returned("x", is_error=True, meta=[{"id": "t1", "non_execution_kind": "interrupted"}])], "interrupted"),
        ([returned("x", is_error=True, meta=[{"id": "t1", "permission_decision": {"decision": "reject"}}])], "denied"),
        ([returned("x", is_error=True, meta=[{"id": "t2", "non_execution_kind": "permission-rule"}])], "failed"),
        ([returned("x", is_error=True, meta=[5, {"id": "t1", "permission_decision": 5}])], "failed"),
        ([returned("x", is_error=True, meta="x")], "failed"),
        ([returned(REJECTED, is_error=True)], "interrupted"),
        ([ResultSuccess(session_id="s")], "interrupted"),
        ([ResultSuccess()], "interrupted"),
        ([InterruptedMessage()], "interrupted"),
    ],
)
def test_how_a_call_ends(messages: list[Any], state: str) -> None:
    assert states(Bridge(), called("Bash"), *messages) == [("t1", "started"), ("t1", state)]


def test_tools_that_the_api_runs_end_by_blocks_of_their_own() -> None:
    content = [
        {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "a", "content": []},
        {"type": "server_tool_use", "id": "b", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "b",
            "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
        },
        {"type": "mcp_tool_use", "id": "c", "name": "add", "server_name": "calc", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "c", "is_error": True, "content": []},
        {"type": "server_tool_use", "id": "d", "name": "new_tool", "input": {}},
        {"type": "new_tool_result", "tool_use_id": "d", "content": []},
        {"type": "new_tool_result", "tool_use_id": 5},
    ]
    message = line(type="assistant", message={"role": "assistant", "content": content}, session_id="s")
    events = [event.to_dict() for event in Bridge().add(message)]
    assert [(event["id"], event["kind"], event["state"]) for event in events] == [
        ("a", "web", "started"),
        ("a", "web", "succeeded"),
        ("b", "web", "started"),
        ("b", "web", "failed"),
        ("c", "mcp", "started"),
        ("c", "mcp", "failed"),
        ("d", "other", "started"),
        ("d", "other", "succeeded"),
    ]


# --- subagents --------------------------------------------------------------------------------------------------------


def agents(ui: Bridge, *messages: Any) -> list[tuple[str, str, str | None]]:
    events = [event for message in messages for event in ui.add(message)]
    return [(event.agentId, event.status, event.lastTool) for event in events if isinstance(event, SubagentProgress)]


CALL = called("Task", {"description": "do", "subagent_type": "general"})
STARTED = TaskStartedMessage(
    task_id="k", tool_use_id="t1", description="do", task_type="local_agent", session_id="s", is_backgrounded=False
)
IN_BACKGROUND = TaskStartedMessage(
    task_id="k", tool_use_id="t1", description="do", subagent_type="x", session_id="s", is_backgrounded=True
)


def updated(status: str | None, **patch: Any) -> TaskUpdatedMessage:
    return TaskUpdatedMessage(task_id="k", patch=TaskPatch(status=status, **patch), session_id="s")


def notified(status: str, tool_use_id: str | None = None) -> TaskNotificationMessage:
    return TaskNotificationMessage(
        task_id="k", tool_use_id=tool_use_id, status=status, output_file="", summary="done", session_id="s"
    )


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([STARTED, updated("completed"), notified("completed"), returned()], "completed"),
        ([STARTED, notified("failed"), updated("failed"), returned()], "failed"),
        ([STARTED, updated("killed"), notified("stopped")], "stopped"),
        ([STARTED, updated("paused"), updated(None), notified("completed")], "completed"),
        ([notified("completed", "t1"), returned()], "completed"),
        ([returned()], "completed"),
        ([returned("x", is_error=True)], "failed"),
        ([STARTED, returned()], "completed"),
        ([IN_BACKGROUND, returned(), ResultSuccess(session_id="s", is_error=False), updated("completed")], "completed"),
        ([STARTED, updated(None, is_backgrounded=True), returned(), notified("stopped")], "stopped"),
        ([ResultSuccess(session_id="s", is_error=True)], "stopped"),
        ([ResultSuccess(session_id="s", is_error=False)], "completed"),
    ],
)
def test_a_subagent_ends_once(messages: list[Any], status: str) -> None:
    ui = Bridge()
    assert agents(ui, CALL, *messages, CALL, *messages) == [("t1", "started", None), ("t1", status, None)]
    assert not any(isinstance(event, SubagentProgress) for event in ui.end())


def test_a_subagent_in_the_background_goes_on_after_the_turn() -> None:
    ui = Bridge()
    assert agents(ui, CALL, IN_BACKGROUND, returned(), ResultSuccess(session_id="s"))[1:] == []
    assert agents(ui, called("Bash", {}, "t2", parent="t1")) == [("t1", "running", "Bash")]
    events = [event.to_dict() for event in ui.end()]
    assert [(event["type"], event.get("state", event.get("status"))) for event in events] == [
        ("operation", "interrupted"),
        ("subagent_progress", "stopped"),
    ]


def test_the_open_calls_of_a_subagent_end_with_it() -> None:
    ui = Bridge()
    assert states(ui, CALL, STARTED, called("Bash", {}, "t2", parent="t1"), updated("completed")) == [
        ("t1", "started"),
        ("t2", "started"),
        ("t2", "interrupted"),
    ]
    # A call that arrives after the end of its subagent ends with the turn.
    assert states(ui, called("Bash", {}, "t3", parent="t1"), ResultSuccess(session_id="s")) == [
        ("t3", "started"),
        ("t1", "interrupted"),
        ("t3", "interrupted"),
    ]


def test_what_a_subagent_does_is_told_once() -> None:
    progress = TaskProgressMessage(
        task_id="k", description="Running x", usage=USAGE, last_tool_name="Bash", session_id="s"
    )
    assert agents(Bridge(), CALL, STARTED, progress, progress, called("Read", {}, "t2", parent="t1")) == [
        ("t1", "started", None),
        ("t1", "running", "Bash"),
        ("t1", "running", "Read"),
    ]


def test_a_subagent_that_is_heard_of_by_its_messages_alone_is_one() -> None:
    message = AssistantMessage.of("Hi", session_id="s")
    message = AssistantMessage(
        message=message.message, session_id="s", parent_tool_use_id="p", subagent_type="x", task_description="do"
    )
    [event] = Bridge().add(message)
    assert event.to_dict() == {
        "type": "subagent_progress",
        "agentId": "p",
        "name": "x",
        "status": "started",
        "summary": "do",
        "conversationId": "s",
    }


def test_tasks_that_are_no_subagents_are_passed_over() -> None:
    command = TaskStartedMessage(task_id="k", tool_use_id="t1", description="x", task_type="local_bash", session_id="s")
    assert agents(Bridge(), called("Bash"), command, updated("completed"), notified("completed", "t1")) == []


SAID = "Launching subagent `tests`. Subagent Docs is running. The subagent is fine."


def test_a_text_that_names_subagents_counts_where_nothing_else_tells_of_them() -> None:
    ui = Bridge()
    assert agents(ui, AssistantMessage.of(SAID, session_id="s")) == [
        ("tests", "started", None),
        ("Docs", "running", None),
    ]
    assert agents(ui, AssistantMessage.of("Subagent 'tests' has finished, sub-agent Docs failed", session_id="s")) == [
        ("tests", "completed", None),
        ("Docs", "failed", None),
    ]
    init = line(type="system", subtype="init", session_id="s", tools=["Agent"])
    for first in (CALL, STARTED, init, called("Bash", parent="t1")):
        ui = Bridge()
        ui.add(first)
        assert agents(ui, AssistantMessage.of(SAID, session_id="s")) == []


# --- The bridge recognizes a tool by each name that the five documents use for it -------------------------------------


@pytest.mark.parametrize(
    ("name", "input", "expected"),
    [
        ("read", {"filePath": "/tmp/test.txt"}, ("file_read", "Read /tmp/test.txt", "/tmp/test.txt", None)),
        ("write", {"filePath": "/a", "content": ""}, ("file_write", "Write /a", "/a", None)),
        ("bash", {"command": "ls"}, ("command", "Run ls", None, "ls")),
        ("Read", {"file_path": "/a"}, ("file_read", "Read /a", "/a", None)),
        (
            "Write",
            {"file_path": "/path/to/file.py"},
            ("file_write", "Write /path/to/file.py", "/path/to/file.py", None),
        ),
        ("task", {}, ("other", "task", None, None)),
    ],
)
def test_a_tool_is_known_by_the_names_of_all_documents(name: str, input: object, expected: object) -> None:
    assert described(name, input) == expected
