"""The checks of each conversation: the function with its name asserts the expected outcome.

Without these checks, two libraries that make the same mistake would pass the comparison.
"""

from __future__ import annotations

from collections.abc import Callable

from accounts import Account
from drift.requests import REQUESTS
from scripts import DELTAS, HUGE, REPORT, SESSION_ID, UNICODE

__all__ = ["CHECKS"]


def simple(seen: Account) -> None:
    assert seen.texts == ["Hello, world."]
    assert seen.results == [("success", False, None, "Hello, world.")]


def partial(seen: Account) -> None:
    simple(seen)
    assert seen.streamed == "Hello, world."


def thinking(seen: Account) -> None:
    assert seen.thoughts == [("First this, then that.", "c2lnbmF0dXJl")]
    assert seen.texts == ["Done thinking."]


def tool(seen: Account) -> None:
    [(_, content)] = seen.tools
    assert "Another note." in content


def permission(seen: Account) -> None:
    assert [call[0] for call in seen.calls] == ["Bash", "Bash", "Write"]
    assert seen.made("allowed")
    assert not seen.made("refused")
    assert (seen.place.work / "changed.txt").read_text() == "as the host wanted it"
    assert seen.tools[1] == (True, "Not today")


def hooks(seen: Account) -> None:
    names = [call[0] for call in seen.calls]
    assert names == ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PreToolUse", "Stop"]
    assert [is_error for is_error, _ in seen.tools] == [False, True]


def command_hooks(seen: Account) -> None:
    assert {kind for kind, _ in seen.hooks} == {"hook_started", "hook_response"}
    assert {event for _, event in seen.hooks} == {"PreToolUse", "PostToolUse"}


def mcp(seen: Account) -> None:
    assert seen.calls == [("add", {"a": 20, "b": 22}), ("fail", {})]
    assert seen.tools[0][1] == [{"type": "text", "text": "42"}]


def interrupt(seen: Account) -> None:
    assert [result[0] for result in seen.results] == ["error_during_execution", "success"]
    assert seen.texts == ["One two ", "Hello again."]


def set_model(seen: Account) -> None:
    assert seen.models == ["claude-sonnet-4-5", "claude-haiku-4-5"]


def queued(seen: Account) -> None:
    # The CLI sends both waiting prompts to the model in one turn.
    assert seen.texts == ["Slowly.", "Hello again."]
    assert seen.place.api is not None
    [request] = seen.place.api.asked("again")
    assert all(f"[[{name}]]" in str(request.body["messages"]) for name in ("slow", "simple", "again"))


def max_turns(seen: Account) -> None:
    assert [result[0] for result in seen.results] == ["error_max_turns"]
    assert seen.failed


def unicode(seen: Account) -> None:
    # Adjacent surrogate halves become one character; lone halves stay as they are.
    whole = "".join(UNICODE).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert "\ud83d" in whole
    assert seen.streamed == "".join(UNICODE)
    assert seen.texts == [whole] == [seen.results[0][3]]


def long(seen: Account) -> None:
    assert seen.streamed == "".join(f"word {number} " for number in range(DELTAS))
    assert seen.texts == [seen.streamed]


def huge(seen: Account) -> None:
    assert seen.streamed == "x" * HUGE
    assert seen.texts == [seen.streamed]


def huge_at_once(seen: Account) -> None:
    assert seen.streamed == "y" * HUGE
    assert seen.texts == [seen.streamed]


def failed(status: int) -> Callable[[Account], None]:
    def check(seen: Account) -> None:
        [(_, is_error, api_error_status, _)] = seen.results
        assert is_error
        assert api_error_status == status
        assert seen.failed

    return check


def recovered(text: str) -> Callable[[Account], None]:
    def check(seen: Account) -> None:
        assert seen.texts == [text]
        assert seen.results == [("success", False, None, text)]
        assert not seen.failed

    return check


# --- of the host's callbacks


def permission_kept(seen: Account) -> None:
    # The first answer added a permission rule that allows the second call, so the CLI asks only once.
    assert [call[1]["command"] for call in seen.calls] == ["touch first"]
    assert seen.made("first")
    assert seen.made("second")


def permission_open(seen: Account) -> None:
    assert [call if isinstance(call, str) else call[0] for call in seen.calls] == ["Bash", "withdrawn", "over"]
    assert [result[0] for result in seen.results] == ["error_during_execution"]
    assert not seen.made("refused")


def permission_interrupts(seen: Account) -> None:
    assert [result[0] for result in seen.results] == ["error_during_execution"]
    assert not seen.made("refused")
    assert seen.place.api is not None
    assert len(seen.place.api.asked("permission_open")) == 1


def permission_raises(seen: Account) -> None:
    # The model gets the failure as the tool's error result, and the session continues.
    assert [is_error for is_error, _ in seen.tools] == [True]
    assert not seen.made("refused")
    assert seen.texts[-1] == "Nobody could be asked."


def hooks_decide(seen: Account) -> None:
    calls = [call if call == "withdrawn" else call[0].removeprefix("touch ") for call in seen.calls]
    # The slow hook never returns. Without its timeout the calls after it would not happen.
    assert calls == ["allowed", "forbidden", "changed", "slow", "withdrawn", "raised", "Write"]
    assert [is_error for is_error, _ in seen.tools] == [False, True, False, True, True, True]
    made = {path.name for path in seen.place.work.iterdir()} - {"notes.txt"}
    assert made == {"allowed", "instead"}
    assert "A hook said no" in seen.tools[1][1]
    assert seen.texts[-1] == "Hooks decided."


def set_permission_mode(seen: Account) -> None:
    # The CLI asks in the first mode, where the host refuses, and does not ask in the second mode.
    assert [call[0] for call in seen.calls] == ["Write"]
    assert [bool(is_error) for is_error, _ in seen.tools] == [True, False]
    assert seen.made("written.txt")


# --- of what outlives a turn


def background_bash(seen: Account) -> None:
    assert seen.course == [
        "I will run a command.",
        "task_started",
        "It runs.",
        "result",
        "task_notification completed",
        "It has ended.",
        "result",
    ]


def background_agent(seen: Account) -> None:
    assert seen.course == [
        "task_started",
        "It is on its way.",
        "result",
        "sub: I will run a command.",
        f"sub: {REPORT}",
        "task_notification completed",
        "It is back.",
        "result",
    ]


def background_stopped(seen: Account) -> None:
    assert seen.course[-2:] == ["result", "task_notification stopped"]


def sent_away(seen: Account) -> None:
    assert seen.answers == [
        ("background_tasks", {"backgrounded": True}),
        ("get_task_output", {"output": "so far\n", "total_bytes": 7, "truncated": False}),
        ("stop_task", {}),
    ]
    assert seen.course[1:] == ["task_started", "It runs.", "result", "task_notification stopped"]


def taken_back(seen: Account) -> None:
    assert [(subtype, answer["cancelled"]) for subtype, answer in seen.answers] == [("cancel_async_message", True)]
    assert seen.course == ["Held no more.", "result", "Hello again.", "result"]
    assert seen.place.api is not None
    assert [request.script for request in seen.place.api.requests if request.script] == ["held", "again"]


def rewind(seen: Account) -> None:
    assert seen.calls == [True, False]
    assert [answer["canRewind"] for _, answer in seen.answers] == [True, True]


def agent(seen: Account) -> None:
    assert seen.made("worker.txt")
    assert seen.course == ["task_started", "task_notification completed", "The worker has reported.", "result"]
    [(_, reported)] = [tool for tool in seen.tools if REPORT in str(tool)]
    assert isinstance(reported, list)


def structured(seen: Account) -> None:
    # The first output did not match the schema, and the CLI reported that to the model.
    assert [is_error for is_error, _ in seen.tools] == [True, None]
    assert seen.structured == [{"name": "Ada", "age": 36}]


def unstructured(seen: Account) -> None:
    assert seen.structured == [None]
    assert seen.results == [("success", False, None, "In plain words.")]


def never_fits(seen: Account) -> None:
    assert [result[0] for result in seen.results] == ["error_max_structured_output_retries"]
    assert seen.structured == [None]
    assert seen.failed


def compact(seen: Account) -> None:
    assert seen.course == ["Hello, world.", "result", "compact_boundary", "result", "Hello again.", "result"]
    assert seen.place.api is not None
    [request] = seen.place.api.asked("again")
    # The summary has replaced the earlier messages of the conversation.
    assert "Hello, world." not in str(request.body["messages"])
    assert "They said hello." in str(request.body["messages"])


def resume(seen: Account) -> None:
    first, again, fork = seen.sessions
    assert first == again == SESSION_ID != fork
    assert seen.place.api is not None
    assert ["Hello, world." in str(request.body["messages"]) for request in seen.place.api.asked("again")] == [True] * 2


def max_budget(seen: Account) -> None:
    assert [result[0] for result in seen.results] == ["error_max_budget_usd"]
    assert seen.failed


def interrupt_bash(seen: Account) -> None:
    assert [result[0] for result in seen.results] == ["error_during_execution", "success"]
    assert seen.tools[0][0] is True
    assert seen.texts[-1] == "Hello again."


def requests(seen: Account) -> None:
    assert [subtype for subtype, _ in seen.answers[1:]] == [request.to_dict()["subtype"] for request in REQUESTS]
    refused = {subtype for subtype, answer in seen.answers if isinstance(answer, str)}
    assert refused == {
        "get_task_output",
        "mcp_call",
        "mcp_read_resource",
        "mcp_reconnect",
        "mcp_toggle",
        "read_file",
        "register_repo_root",
        "set_color",
        "set_permission_mode",
        "update_settings",
    }
    answers = dict(reversed(seen.answers))
    assert answers["read_file"]["contents"] == "A note.\nAnother note.\n"
    assert answers["set_model"] == {"model": "claude-haiku-4-5"}
    assert answers["set_permission_mode"] == {"mode": "acceptEdits"}
    assert [rule["rule"] for rule in answers["list_permission_rules"]["state"]["rules"]] == ["Bash(ls)"]
    assert answers["initialize"]["commands"]


CHECKS: dict[str, Callable[[Account], None]] = {
    "simple": simple,
    "partial": partial,
    "thinking": thinking,
    "tool": tool,
    "permission": permission,
    "hooks": hooks,
    "command_hooks": command_hooks,
    "mcp": mcp,
    "interrupt": interrupt,
    "set_model": set_model,
    "queued": queued,
    "three_in_a_stream": queued,
    "permission_kept": permission_kept,
    "permission_open": permission_open,
    "permission_interrupts": permission_interrupts,
    "permission_raises": permission_raises,
    "hooks_decide": hooks_decide,
    "set_permission_mode": set_permission_mode,
    "background_bash": background_bash,
    "background_agent": background_agent,
    "background_stopped": background_stopped,
    "sent_away": sent_away,
    "taken_back": taken_back,
    "rewind": rewind,
    "agent": agent,
    "structured": structured,
    "unstructured": unstructured,
    "never_fits": never_fits,
    "compact": compact,
    "resume": resume,
    "interrupt_bash": interrupt_bash,
    "requests": requests,
    "max_turns": max_turns,
    "max_budget": max_budget,
    "unicode": unicode,
    "long": long,
    "huge": huge,
    "huge_at_once": huge_at_once,
    "error_400": failed(400),
    "error_401": failed(401),
    "error_429": recovered("After the limit."),
    "error_500": failed(500),
    "overloaded": recovered("At the second try."),
}
