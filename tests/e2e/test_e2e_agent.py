"""Both official SDKs drive one agent file, as they drive the CLI."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import driven_agent
from agent_conversations import HOSTS

Talk = Callable[..., dict[str, Any]]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "asked": {}}, "required": ["name"]}


def executable(path: Path, source: Path) -> Path:
    """Return the path of an executable agent file, which a host can start as its CLI."""
    path.write_text(f"#!{sys.executable}\n{source.read_text()}")
    path.chmod(0o755)
    return path


@pytest.fixture(params=sorted(HOSTS))
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Talk:
    """Return a function that runs a conversation of prompts and other acts, and returns what the host saw."""
    agent = executable(tmp_path / "agent", Path(driven_agent.__file__))

    def hold(*acts: str | tuple[str, Any], error: str | None = None, **options: Any) -> dict[str, Any]:
        done: list[tuple[str, Any]] = []
        for act in acts:
            done += [("send", act), ("result", None)] if isinstance(act, str) else [act]
        seen = HOSTS[request.param](agent, {"options": options, "acts": [*done, ("end", None)]})
        assert seen["error"] == error, seen
        return seen

    return hold


def kinds(seen: dict[str, Any]) -> list[str]:
    return [next(iter(one)) for one in seen["seen"]]


def texts(seen: dict[str, Any]) -> list[str]:
    return [one["text"] for one in seen["seen"] if "text" in one and "result" not in one]


def results(seen: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in seen["seen"] if "result" in one]


def of(seen: dict[str, Any], key: str) -> list[Any]:
    return [one[key] for one in seen["seen"] if key in one]


def test_text_for_a_prompt_given_as_a_string(talk: Talk) -> None:
    seen = talk(string="echo hello")
    assert seen["seen"] == [
        {"init": {"model": "driven-1", "mode": "default", "tools": ["Bash", "Task"]}},
        {"text": "1: hello"},
        {"result": "success", "text": "1: hello", "is_error": False, "output": None},
    ]


def test_several_turns_of_one_session(talk: Talk) -> None:
    seen = talk("echo a", "echo b", "echo c")
    assert texts(seen) == ["1: a", "2: b", "3: c"]
    assert kinds(seen) == ["init", "text", "result"] * 3


def test_partial_messages(talk: Talk) -> None:
    seen = talk("stream one two three", partial=True)
    assert of(seen, "delta") == ["one ", "two ", "three "]
    assert kinds(seen) == ["init", "thinking", "delta", "delta", "delta", "text", "result"]
    assert texts(seen) == ["one two three "]


def test_without_partial_messages_the_text_comes_as_a_whole(talk: Talk) -> None:
    seen = talk("stream one two three")
    assert kinds(seen) == ["init", "thinking", "text", "result"]


def test_hooks_are_asked_in_their_order(talk: Talk) -> None:
    events: list[str] = ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
    seen = talk("bash ls", hooks={event: {} for event in events}, permission={"Bash": {"behavior": "allow"}})
    assert seen["calls"] == [
        ["hook", "UserPromptSubmit", None],
        ["hook", "PreToolUse", "Bash"],
        ["permission", "Bash", {"command": "ls"}],
        ["hook", "PostToolUse", "Bash"],
        ["hook", "Stop", None],
    ]
    assert texts(seen) == ["ran: True"]


def test_a_hook_refuses_a_tool(talk: Talk) -> None:
    refusal = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not here"}
    seen = talk("bash ls", hooks={"PreToolUse": {"hookSpecificOutput": refusal}})
    assert seen["calls"] == [["hook", "PreToolUse", "Bash"]]
    assert of(seen, "is_error")[0] is True
    assert "not here" in of(seen, "tool_result")[0]
    assert texts(seen) == ["ran: False"]


def test_permission_allows(talk: Talk) -> None:
    seen = talk("bash ls", permission={"Bash": {"behavior": "allow"}})
    assert seen["calls"] == [["permission", "Bash", {"command": "ls"}]]
    assert of(seen, "tool_result") == ["ran ls"]
    assert kinds(seen) == ["init", "tool_use", "tool_result", "text", "result"]


def test_permission_denies(talk: Talk) -> None:
    seen = talk("bash ls", permission={"Bash": {"behavior": "deny", "message": "not today"}})
    assert of(seen, "tool_result") == ["not today"]
    assert texts(seen) == ["ran: False"]
    assert [one["result"] for one in results(seen)] == ["success"]


def test_permission_changes_the_input(talk: Talk) -> None:
    allowed = {"behavior": "allow", "updatedInput": {"command": "ls -l"}}
    seen = talk("bash ls", permission={"Bash": allowed})
    assert of(seen, "input") == [{"command": "ls"}]
    assert of(seen, "tool_result") == ["ran ls -l"]


def test_an_mcp_server_in_the_host(talk: Talk) -> None:
    seen = talk("add 2 3", mcp=True)
    assert seen["calls"] == [["mcp", "add", {"a": 2, "b": 3}], ["mcp", "fail", {}]]
    assert of(seen, "tool_result") == [[{"type": "text", "text": "5"}], [{"type": "text", "text": "out of order"}]]
    assert texts(seen) == ["errors: False, True"]
    assert {"mcp__calc__add", "mcp__calc__fail"} <= {*of(seen, "init")[0]["tools"]}


@pytest.fixture
def typescript(tmp_path: Path) -> Talk:
    """Return a function that runs a conversation with the TypeScript SDK."""
    agent = executable(tmp_path / "agent", Path(driven_agent.__file__))

    def hold(*acts: tuple[str, Any], **options: Any) -> dict[str, Any]:
        seen = HOSTS["typescript"](agent, {"options": options, "acts": [*acts, ("end", None)]})
        assert seen["error"] is None, seen
        return seen

    return hold


@pytest.mark.parametrize("delivery", ["argv", "initialize"])
def test_mcp_servers_come_either_way_of_the_typescript_sdk(delivery: str, typescript: Talk) -> None:
    seen = typescript(("send", "echo a"), ("result", None), delivery=delivery)
    assert texts(seen) == ["1: a"]


#: Methods of the TypeScript SDK's query that need no model, and the answers of `driven_agent.py`.
METHODS: dict[str, tuple[list[Any], Any]] = {
    "initializationResult": ([], ...),
    "reinitialize": ([], ...),
    "supportedCommands": ([], []),
    "supportedModels": ([], []),
    "supportedAgents": ([], []),
    "accountInfo": ([], {}),
    "mcpServerStatus": ([], []),
    "setPermissionMode": (["plan"], ...),
    "setModel": (["driven-2"], ...),
    "setMaxThinkingTokens": ([1000], ...),
    "applyFlagSettings": ([{"effortLevel": "low"}], ...),
    "getSettings": ([], {"effective": {"effortLevel": "low"}, "sources": []}),
    "stopTask": (["nobody"], ...),
    "backgroundTasks": ([], ...),
    "seedReadState": (["notes.txt", 1], ...),
    "reloadSkills": ([], {"skills": []}),
    "reloadPlugins": ([], ...),
    "reloadOutputStyles": ([], {"available_output_styles": ["default"]}),
    "rewindFiles": (["nobody"], {"canRewind": False, "error": "this agent keeps no checkpoints of files"}),
    "setMcpServers": ([{}], {"added": [], "removed": [], "errors": {}}),
    "interrupt": ([], ...),
}


def test_methods_that_need_no_model_are_answered(typescript: Talk) -> None:
    asked = [("ask", [method, *arguments]) for method, (arguments, _) in METHODS.items()]
    seen = typescript(("send", "echo a"), ("result", None), *asked)
    answers = {one["asked"]: one for one in seen["seen"] if "asked" in one}
    assert [(name, one["refused"]) for name, one in answers.items() if "refused" in one] == []
    for method, (_, expected) in METHODS.items():
        assert expected is ... or answers[method]["answer"] == expected, method


def test_an_interrupt_ends_the_turn_and_the_next_one_is_answered(talk: Talk) -> None:
    interrupted = [("send", "forever"), ("delta", "working"), ("interrupt", None), ("result", None)]
    seen = talk(*interrupted, "cleaned", partial=True)
    assert [one["result"] for one in results(seen)] == ["error_during_execution", "success"]
    assert of(seen, "user") == ["[Request interrupted by user]"]
    assert texts(seen) == ["working", "cleaned: True"]


def test_an_interrupt_reaches_a_tool(talk: Talk) -> None:
    interrupted = [("send", "forever_in_tool"), ("said", "working"), ("interrupt", None), ("result", None)]
    seen = talk(*interrupted, "echo again", permission={"Bash": {"behavior": "allow"}})
    assert [one["result"] for one in results(seen)] == ["error_during_execution", "success"]
    assert texts(seen) == ["working", "1: again"]


def test_the_model_and_the_mode_are_set(talk: Talk) -> None:
    seen = talk(
        "who", ("set_model", "other-2"), ("set_permission_mode", "acceptEdits"), "who", ("set_model", None), "who"
    )
    assert texts(seen) == ["driven-1, default", "other-2, acceptEdits", "driven-1, acceptEdits"]
    assert [one["model"] for one in of(seen, "init")] == ["driven-1", "other-2", "driven-1"]
    assert [one["mode"] for one in of(seen, "init")] == ["default", "acceptEdits", "acceptEdits"]


def test_a_prompt_that_comes_while_a_turn_is_under_way_enters_it(talk: Talk) -> None:
    came = [("said", "waiting"), ("send", "echo b"), ("set_permission_mode", "plan"), ("result", None)]
    seen = talk(("send", "fold"), *came)
    assert texts(seen) == ["waiting", "And: echo b"]
    assert len(results(seen)) == 1


def test_prompts_that_are_left_begin_one_next_turn(talk: Talk) -> None:
    came = [("said", "waiting"), ("send", "echo b"), ("send", "echo c"), ("set_permission_mode", "plan")]
    seen = talk(("send", "pause"), *came, ("result", None), ("result", None))
    assert texts(seen) == ["waiting", "rested", "1: b\necho c"]
    assert len(results(seen)) == 2


def test_structured_output(talk: Talk) -> None:
    seen = talk("structured Ada", schema=SCHEMA)
    [result] = results(seen)
    assert result["output"] == {"name": "Ada", "asked": ["asked", "name"]}
    assert result["text"] == '{"name":"Ada","asked":["asked","name"]}'


def test_what_a_function_raises_is_an_error_result(talk: Talk) -> None:
    seen = talk("fail", "echo after")
    assert [one["result"] for one in results(seen)] == ["error_during_execution", "success"]
    assert "LookupError: nothing was found" in seen["stderr"]
    assert "raise LookupError" in seen["stderr"]


def test_nothing_writes_between_two_lines(talk: Talk) -> None:
    seen = talk("loud")
    assert kinds(seen) == ["init", "text", "result"]
    for word in ("print", "descriptor", "child"):
        assert word in seen["stderr"]


def test_messages_of_a_subagent_say_so(talk: Talk) -> None:
    seen = talk("helper north")
    assert [one for one in seen["seen"] if "subagent" in one] == [{"text": "scouting north", "subagent": True}]
    assert texts(seen)[-1] == "done"
