"""Example sessions for checking the look of the page and for its screenshots."""

from __future__ import annotations

from typing import Any

from page_server import Event, PageServer

__all__ = ["scene"]

PLAN = """\
The total of the cart is **one cent too low** for some customers. `total()` rounds each item, and then adds up:

```python
def total(items):
    return sum(round(item.price * item.count, 2) for item in items)
```

I will:

1. round the sum and not the items
2. add a test with the numbers of the report
3. run all tests\
"""


CHANGE = [
    "@@ -7 +7 @@",
    "-    return sum(round(item.price * item.count, 2) for item in items)",
    "+    return round(sum(item.price * item.count for item in items), 2)",
]


def _call(id: str, kind: str, title: str, state: str, **fields: Any) -> list[Event]:
    call = {"type": "operation", "id": id, "kind": kind, "title": title, **fields}
    return [{**call, "state": "started"}] + ([] if state == "started" else [{**call, "state": state}])


def scene(server: PageServer) -> None:
    """Add a session in the middle of a turn, with an open question, and three other sessions."""
    server.add("docs", name="Write the release notes", cwd="/home/user/docs", life="ended", ended=True)
    server.add("api", name="Fix the flaky test", cwd="/home/user/api", life="running")
    server.add("site", name="Update the start page", cwd="/home/user/site", life="idle")
    server.add(
        "shop",
        {"type": "notice", "kind": "retry", "text": "The API is overloaded. Attempt 2 of 10 begins in 1.2 s."},
        {"type": "claude_response", "content": "I will look for the place where the cart is added up."},
        *_call("t1", "search", "Search def total", "succeeded"),
        *_call("t2", "file_read", "Read src/cart.py", "succeeded", path="src/cart.py"),
        {"type": "turn_complete", "ok": True, "costUsd": 0.0312, "durationMs": 41800, "turns": 3},
        {"type": "claude_response", "content": PLAN},
        *_call("t3", "file_edit", "Edit src/cart.py", "succeeded", path="src/cart.py", change=CHANGE),
        *_call(
            "t4",
            "command",
            "Run the tests of the cart",
            "failed",
            command="python -m pytest -q tests/test_cart.py",
            exitCode=1,
            content=[{"text": "Exit code 1\ntests/test_cart.py:12: assert 29.98 == 29.97\n1 failed, 3 passed"}],
        ),
        *_call("t5", "subagent", "Subagent look for other callers", "started"),
        {
            "type": "subagent_progress",
            "agentId": "t5",
            "name": "reviewer",
            "status": "running",
            "lastTool": "Grep",
            "summary": "Looking for other callers",
        },
        *_call("t6", "search", "Search total\\(", "succeeded", agentId="t5"),
        {
            "type": "progress_update",
            "currentStep": "Running tests",
            "completedSteps": 5,
            "totalSteps": 20,
            "percentage": 25.0,
        },
        {
            "type": "claude_response",
            "id": "m",
            "content": "One test still expects the old sum, so I will ru",
            "partial": True,
        },
        {
            "type": "permission_request",
            "requestId": "q",
            "tool": "Bash",
            "description": "Run all tests",
            "input": {"command": "python -m pytest -q", "timeout": 120000},
            "options": ["allow once", "allow Bash(python -m pytest:*) (localSettings)"],
        },
        name="The cart is one cent off",
        cwd="/home/user/shop",
        life="asking",
    )
