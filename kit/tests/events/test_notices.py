"""Messages of the CLI outside the conversation, such as API retries, become notices or activities in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from claude_wire import decode
from claude_wire_kit.events import Activity, Bridge, Notice, Thinking
from claude_wire_kit.events.notices import describe_activity, describe_message


def system(subtype: str, **fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, **fields}


def read(line: dict[str, Any]) -> Any:
    return decode(json.dumps(line).encode())


RETRY = {"attempt": 1, "max_retries": 10, "retry_delay_ms": 5, "error": "overloaded"}
HOOK = {"hook_id": "h", "hook_name": "check", "hook_event": "Stop", "stdout": "", "stderr": ""}
COMPACTED = {"trigger": "auto", "pre_tokens": 12000}
TASK = {"task_id": "t", "description": "watch"}
NOTICES: list[tuple[dict[str, Any], Notice | None]] = [
    (system("status"), None),
    (system("status", status="requesting"), None),
    (system("status", status="compacting"), Notice(kind="status", text="compacting the conversation")),
    (system("status", compact_result="failed", compact_error="no"), Notice(kind="error", text="not compacted: no")),
    (system("status", permissionMode="plan"), Notice(kind="status", text="permission mode: plan")),
    (system("api_retry", **RETRY), Notice(kind="retry", text="API error (overloaded): try 1 of 10 in 0.0 s")),
    (
        system("api_retry", error_status=529, **RETRY),
        Notice(kind="retry", text="API error 529 (overloaded): try 1 of 10 in 0.0 s"),
    ),
    ({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}}, None),
    (
        {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "rateLimitType": "five_hour"}},
        Notice(kind="rate_limit", text="rate limit (five_hour): rejected"),
    ),
    (system("error", message="no"), Notice(kind="error", text="no")),
    (system("error", message="", error={"message": "why", "code": "c"}), Notice(kind="error", text="why")),
    (system("error"), Notice(kind="error", text="error")),
    ({"type": "auth_status", "isAuthenticating": True, "output": []}, None),
    (
        {"type": "auth_status", "isAuthenticating": False, "output": ["a"], "error": "no"},
        Notice(kind="auth", text="no", level="error"),
    ),
    ({"type": "auth_status", "isAuthenticating": True, "output": ["a", "b"]}, Notice(kind="auth", text="a\nb")),
    (system("informational", content="a", level="info"), Notice(kind="info", text="a")),
    (system("informational", content="a", level="warning"), Notice(kind="info", text="a", level="warning")),
    (system("local_command_output", content="/cost"), Notice(kind="info", text="/cost", level="plain")),
    (system("hook_response", outcome="success", output="", **HOOK), Notice(kind="hook", text="hook check: success")),
    (
        system("hook_response", outcome="error", output="o", exit_code=2, **HOOK),
        Notice(kind="hook", text="hook check: error, exit code 2", level="warning", detail="o"),
    ),
    (
        system("compact_boundary", compact_metadata=COMPACTED),
        Notice(kind="status", text="compacted (auto): 12,000 tokens"),
    ),
    (
        system("compact_boundary", compact_metadata={**COMPACTED, "post_tokens": 3000}),
        Notice(kind="status", text="compacted (auto): 12,000 to 3,000 tokens"),
    ),
    (system("task_started", task_type="local_agent", **TASK), None),
    (system("task_started", task_type="local_bash", **TASK), Notice(kind="status", text="watch")),
    (
        system("task_started", task_type="local_bash", is_backgrounded=True, **TASK),
        Notice(kind="status", text="in the background: watch"),
    ),
    (
        system("task_notification", task_id="t", status="completed", output_file="", summary="done"),
        Notice(kind="status", text="task completed: done"),
    ),
    (
        system("task_notification", task_id="t", status="failed", output_file="", summary="no"),
        Notice(kind="status", text="task failed: no", level="warning"),
    ),
    (system("task_updated", task_id="t", patch={"status": "running"}), None),
    (
        system("task_updated", task_id="t", patch={"status": "killed", "error": "no"}),
        Notice(kind="status", text="task killed: no", level="warning"),
    ),
    (
        {"type": "tool_use_summary", "summary": "Read 3 files", "preceding_tool_use_ids": []},
        Notice(kind="status", text="Read 3 files"),
    ),
    ({"type": "prompt_suggestion", "suggestion": "Run it"}, Notice(kind="status", text="suggestion: Run it")),
    (system("session_title_changed", title="Tests"), Notice(kind="status", text="title: Tests")),
    (
        system("elicitation_complete", mcp_server_name="db", elicitation_id="e"),
        Notice(kind="status", text="db has its answer"),
    ),
    (system("worker_shutting_down", reason="idle"), Notice(kind="status", text="shutting down: idle", level="warning")),
    ({"type": "dream", "subtype": "deep"}, Notice(kind="warning", text="dream/deep: unknown type")),
    ({"type": "assistant", "message": {"content": []}}, None),
]


@pytest.mark.parametrize(("line", "notice"), NOTICES)
def test_each_report_is_its_notice(line: dict[str, Any], notice: Notice | None) -> None:
    assert describe_message(read(line)) == notice


@pytest.mark.parametrize(
    ("line", "activity"),
    [
        (system("status"), None),
        (system("status", status="requesting"), Activity(what="waiting for the API")),
        (system("status", status="compacting"), Activity(what="compacting")),
        (system("api_retry", **RETRY), Activity(what="waiting to ask the API again")),
        (
            {"type": "tool_progress", "tool_use_id": "t", "tool_name": "Bash", "elapsed_time_seconds": 2.4},
            Activity(what="running Bash", detail="2 s in all"),
        ),
        (system("background_tasks_changed", tasks=[]), None),
        (
            system("background_tasks_changed", tasks=[{**TASK, "task_type": "local_bash"}]),
            Activity(what="running in the background", detail="1"),
        ),
        (
            system("hook_started", hook_id="h", hook_name="check", hook_event="Stop"),
            Activity(what="running a hook", detail="check"),
        ),
    ],
)
def test_each_report_of_work_is_its_activity(line: dict[str, Any], activity: Activity | None) -> None:
    assert describe_activity(read(line)) == activity


@pytest.mark.parametrize(("line", "notice"), NOTICES)
def test_a_page_with_details_gets_each_notice(line: dict[str, Any], notice: Notice | None) -> None:
    events = Bridge(details=True).add(read({**line, "session_id": "s"}))
    given = [replace(event, conversationId=None) for event in events if isinstance(event, Notice)]
    assert given == ([] if notice is None else [notice])


def test_a_page_with_details_is_told_that_thinking_was_redacted() -> None:
    block = {"type": "redacted_thinking", "data": "x"}
    line = {"type": "assistant", "session_id": "s", "message": {"id": "m", "content": [block]}}
    [thinking] = [event for event in Bridge(details=True).add(read(line)) if isinstance(event, Thinking)]
    assert (thinking.content, thinking.redacted) == ("", True)


@pytest.mark.parametrize(
    ("line", "notice"),
    [
        ({"type": "control_request", "request_id": "r", "request": {"subtype": "initialize"}}, None),
        (
            {"type": "control_request", "request_id": "r", "request": {"subtype": "set_model", "model": "x"}},
            Notice(kind="host", text="set_model", fields={"model": "x"}),
        ),
        (
            {"type": "control_response", "response": {"subtype": "error", "request_id": "r", "error": "no"}},
            Notice(kind="error", text="the host refuses: no"),
        ),
        ({"type": "control_cancel_request", "request_id": "r"}, Notice(kind="host", text="no longer asked")),
        ({"allow": True}, Notice(kind="allowed", text="allowed")),
        ({"allow": False}, Notice(kind="denied", text="denied")),
        ({"type": "keep_alive"}, None),
    ],
)
def test_what_the_host_has_sent_is_a_notice_for_a_page_with_details(
    line: dict[str, Any], notice: Notice | None
) -> None:
    assert Bridge(details=True).sent(read(line)) == ([] if notice is None else [notice])
