"""Permission questions at a terminal: the options that they offer, the accepted answers, and what an answer grants."""

from __future__ import annotations

import os
import select
import sys
from contextlib import closing
from typing import Any

import anyio
import pytest

pytest.importorskip("click")
pytest.importorskip("rich")
if os.name != "posix":
    pytest.skip("pseudo-terminals of POSIX", allow_module_level=True)

from rich.console import Console

from claude_wire import decode
from claude_wire.messages import (
    AddRules,
    CanUseToolRequest,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionRuleValue,
    PermissionUpdate,
    SetMode,
)
from claude_wire_kit.terminal.asking import Terminal
from claude_wire_kit.terminal.excerpts import MAX_LINES
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.page import Page
from cli_lines import assistant, call, line
from screens import PATIENCE, Screen

MODE = SetMode(mode="acceptEdits", destination="session")
RULE = AddRules(
    rules=[PermissionRuleValue(toolName="Bash", ruleContent="make *")], behavior="allow", destination="localSettings"
)


def request(
    *suggestions: PermissionUpdate, suppress: bool | None = None, id: str | None = None, **given: Any
) -> CanUseToolRequest:
    return CanUseToolRequest(
        tool_name="Bash",
        input=given or {"command": "make"},
        permission_suggestions=list(suggestions),
        suppress_always_allow_rule=suppress,
        tool_use_id=id,
    )


def ask(
    monkeypatch: pytest.MonkeyPatch,
    asked: CanUseToolRequest,
    *typed: str,
    called: dict[str, Any] | None = None,
    before: str = "",
) -> tuple[PermissionResult, str]:
    """Ask a question and type an answer each time it is asked. Return the result, and what the terminal showed.

    `called` is the tool's input that the terminal showed with the call. `before` is typed before the question appears.
    """
    screen = Screen(200)
    with (
        closing(screen),
        open(screen.terminal, encoding="utf-8") as keyboard,
        open(screen.terminal, "w", encoding="utf-8", closefd=False) as display,
        closing(Page(Console(file=display))) as page,
    ):
        live = LiveView(page)
        if called is not None and asked.tool_use_id is not None:
            live.show(decode(line(assistant(call(asked.tool_use_id, **called)))))
        monkeypatch.setattr(sys, "stdin", keyboard)
        if before:
            os.write(screen.master, before.encode())
            assert select.select([keyboard], [], [], PATIENCE)[0]

        def type_when_asked() -> None:
            for times, text in enumerate(typed, 1):
                screen.until(lambda shown, times=times: shown.count(b"allow? [") >= times)
                os.write(screen.master, text.encode())

        async def run() -> PermissionResult:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, type_when_asked)
                with anyio.fail_after(PATIENCE):
                    return await Terminal(page, live).ask(asked)
            raise AssertionError

        result = anyio.run(run)
        screen.until(lambda shown: b"? allowed" in shown or b"? denied" in shown)
        return result, screen.text()


def granted(result: PermissionResult) -> list[PermissionUpdate] | None:
    assert isinstance(result, PermissionResultAllow)
    return result.updatedPermissions


def test_suggestions_are_choices_and_a_number_grants_that_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    result, shown = ask(monkeypatch, request(RULE, MODE), "1\n")
    assert granted(result) == [RULE]
    assert (
        "    1: yes, and allow Bash(make *) (localSettings)\n"
        "    2: yes, and switch to permission mode acceptEdits (session)\n"
        "  allow? [y, n, n REASON, 1, 2] 1\n"
        "? allowed\n    and allow Bash(make *) (localSettings)\n"
    ) in shown
    assert granted(ask(monkeypatch, request(RULE, MODE), "2\n")[0]) == [MODE]


@pytest.mark.parametrize("yes", ["y", "yes", " Y "])
def test_yes_grants_this_once_and_nothing_else(monkeypatch: pytest.MonkeyPatch, yes: str) -> None:
    result, shown = ask(monkeypatch, request(RULE, MODE), f"{yes}\n")
    assert granted(result) is None
    assert shown.endswith("? allowed\n")


@pytest.mark.parametrize("no", ["a", "always", "3", "0", "-1", "1 2", "y but not twice", "No, twice", "s", ""])
def test_what_is_no_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch, no: str) -> None:
    result, shown = ask(monkeypatch, request(RULE, MODE), f"{no}\n", "n\n")
    assert isinstance(result, PermissionResultDeny)
    assert shown.count("allow? [") == 2


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("n\n", "The user does not want this tool to run."),
        ("NO\n", "The user does not want this tool to run."),
        ("n use make -n \n", "use make -n"),
        ("\x04", "The user gave no answer."),
    ],
)
def test_no_with_and_without_a_reason(monkeypatch: pytest.MonkeyPatch, typed: str, message: str) -> None:
    result, shown = ask(monkeypatch, request(), typed)
    assert isinstance(result, PermissionResultDeny)
    assert result.message == message
    assert f"? denied: {message}\n" in shown


def test_where_the_cli_wants_no_lasting_permission_none_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    result, shown = ask(monkeypatch, request(RULE, suppress=True), "1\n", "y\n")
    assert granted(result) is None
    assert "allow? [y, n, n REASON] 1\n" in shown
    assert "yes, and" not in shown


def test_what_was_typed_before_the_question_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = ask(monkeypatch, request(), "n\n", before="y\n")
    assert isinstance(result, PermissionResultDeny)


def test_suggestion_is_shown_whole_and_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = PermissionRuleValue(toolName="Bash", ruleContent="echo " + "x" * 500 + "\x1b[2J; rm *")
    long = AddRules(rules=[rule], behavior="allow", destination="session")
    _, shown = ask(monkeypatch, request(long), "y\n")
    assert "x" * 500 + "\\x1b[2J; rm *) (session)" in " ".join(shown.split())


def test_input_that_was_cut_can_be_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "\n".join(f"echo {number}" for number in range(MAX_LINES + 5)) + "\nrm -r /"
    result, shown = ask(monkeypatch, request(id="a", command=command), "s\n", "n\n", called={"command": command})
    assert isinstance(result, PermissionResultDeny)
    before, _, after = shown.partition("allow? [y, n, n REASON, s (show all of it)] s\n")
    assert "rm -r /" not in before
    assert "      rm -r /\n  allow? [" in after


def test_input_that_was_shown_with_the_call_is_not_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = ask(monkeypatch, request(id="a", command="make", more=1), "y\n", called={"command": "make", "more": 1})
    assert shown.count("make") == 1


def test_input_that_is_not_that_of_the_call_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = ask(monkeypatch, request(id="a", command="rm", more=1), "n\n", called={"command": "make", "more": 1})
    assert "? may Bash run?\n    command: rm\n" in shown


def test_input_of_a_call_that_was_not_shown_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = ask(monkeypatch, request(), "n\n")
    assert "? may Bash run?\n    command: make\n" in shown
