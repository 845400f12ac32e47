"""The terminal display shows each important message once and without delay, and escapes control characters."""

from __future__ import annotations

import io
import json
import re
from contextlib import closing
from typing import Any

import pytest

from each import each

pytest.importorskip("click")
pytest.importorskip("rich")

from rich.console import Console

from claude_wire import AssistantMessage, InvalidLine, ResultMessage, TextBlock, ToolUseBlock, decode
from claude_wire_kit.events.tools import call_name
from claude_wire_kit.terminal import live as live_module
from claude_wire_kit.terminal.excerpts import MAX_CHARS, MAX_LINES, excerpt, fields
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.page import Page
from cli_lines import assistant, block_start, call, delta, event, result, returned, start, stop, system
from recordings import load, names
from shown import decoded, viewed


def show(*messages: dict[str, Any]) -> str:
    return viewed([decode(json.dumps(message)) for message in messages])


# --- text -------------------------------------------------------------------------------------------------------------


def test_text_is_shown_while_it_streams_and_not_again() -> None:
    messages = [start(), block_start(), delta("Hello "), delta("world"), assistant("Hello world"), stop(), result()]
    assert show(*messages) == "Hello world\n= ok\n"


def test_every_prefix_of_a_stream_is_a_prefix_of_what_is_shown() -> None:
    """The display neither rewrites text nor holds it back."""
    messages = decoded(load("03_think_partial").stdout)
    whole = viewed(messages)
    shown = ""
    for count in range(len(messages)):
        longer = viewed(messages[:count])
        assert whole.startswith(longer.rstrip("\n"))
        assert len(longer) >= len(shown)
        shown = longer
    assert "Let me think about this.\n" in whole


def test_without_partial_messages_the_assistant_lines_are_shown() -> None:
    assert show(assistant("Hello"), assistant("world", id="n")) == "Hello\nworld\n"


def test_message_that_did_not_stream_whole_is_shown_whole() -> None:
    assert show(start(), block_start(), delta("Hel"), assistant("Hello"), stop()) == "Hello\n"
    assert show(start("other"), delta("Hel", id="other"), assistant("Hello")) == "Hel\nHello\n"
    assert show(delta("lo"), assistant("Hello", id="n")) == "lo\nHello\n"


def test_blocks_of_one_message_are_matched_in_order() -> None:
    shown = show(
        start(),
        block_start(0, "thinking"),
        delta("Hm.", 0, "thinking"),
        assistant({"type": "thinking", "thinking": "Hm.", "signature": "x"}),
        stop(0),
        block_start(1),
        delta("A", 1),
        assistant("A"),
        stop(1),
        block_start(2),
        delta("A", 2),
        assistant("A"),
        stop(2),
    )
    assert shown == "Hm.\nA\nA\n"


@pytest.mark.parametrize("halves", [("\ud83d", "\ude00"), ("a\ud83d", "\ude00b"), ("\ud83d", "", "\ude00")])
def test_halves_of_a_character_are_put_together(halves: tuple[str, ...]) -> None:
    text = "".join(halves).encode("utf-16", "surrogatepass").decode("utf-16")
    streamed = [start(), block_start(), delta("x"), *(delta(half) for half in halves), delta("y")]
    assert show(*streamed, assistant(f"x{text}y"), stop()) == f"x{text}y\n"


def test_half_that_stays_alone_is_an_escape() -> None:
    shown = show(start(), block_start(), delta("a\ud83d"), delta("b"), assistant("a\ud83db"), stop())
    assert shown == "a\\ud83db\n"


def test_two_that_speak_at_once_are_not_mixed() -> None:
    sub: dict[str, Any] = {"id": "n", "parent": "p"}
    shown = show(
        assistant(call("p", "Agent", description="look", subagent_type="finder")),
        start(),
        block_start(),
        delta("main "),
        start(**sub),
        block_start(**sub),
        delta("sub ", **sub),
        delta("goes on"),
        delta("speaks", **sub),
        stop(),
        delta(" late", **sub),
        assistant("sub speaks late", **sub),
        stop(**sub),
    )
    assert shown.splitlines()[1:] == [
        "    subagent_type: finder",
        "main goes on",
        "| -- subagent finder: look",
        "| sub speaks late",
    ]


def test_block_that_never_had_the_floor_is_shown_when_it_is_whole() -> None:
    sub: dict[str, Any] = {"id": "n", "parent": "p"}
    shown = show(
        start(),
        block_start(),
        delta("main "),
        start(**sub),
        delta("sub", **sub),
        assistant("sub", **sub),
        stop(**sub),
        delta("goes on"),
    )
    assert shown == "main \n| -- subagent\n| sub\ngoes on\n"


def test_text_that_waits_for_the_floor_is_bounded_and_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "MAX_WAITING_CHARS", 10)
    sub: dict[str, Any] = {"id": "n", "parent": "p"}
    begun = [start(), block_start(), delta("main"), start(**sub)]
    pieces = [delta("12345678", **sub), delta("90abc", **sub), stop(), delta("def", **sub)]
    whole = [assistant("1234567890abcdef", **sub), stop(**sub)]
    assert show(*begun, *pieces, *whole) == "main\n| -- subagent\n| 1234567890abcdef\n"
    with closing(Page(Console(file=io.StringIO()))) as page:
        live = LiveView(page)
        for message in (*begun, *pieces):
            live.show(decode(json.dumps(message)))
            assert sum(len(block.waiting) for block in live._blocks.values()) <= 10


def test_message_that_was_cut_off_gives_up_the_floor() -> None:
    shown = show(
        start(),
        delta("one"),
        system("api_retry", attempt=1, max_retries=2, retry_delay_ms=500, error="x"),
        start("n"),
        delta("two", id="n"),
        result(),
        start("o", parent="p"),
        delta("three", id="o", parent="p"),
    )
    assert shown == "one\n! API error (x): try 1 of 2 in 0.5 s\ntwo\n= ok\n| -- subagent\n| three\n"


def test_subagent_that_is_ended_in_mid_sentence_gives_up_the_floor() -> None:
    sub: dict[str, Any] = {"id": "n", "parent": "p"}
    called = assistant(call("p", "Agent", description="look"))
    shown = show(called, start(**sub), delta("sub", **sub), returned("p", "ended"), start(), delta("main"))
    assert shown.splitlines()[1:] == ["| -- subagent look", "| sub", "  = ended", "main"]


def test_thinking_is_dim() -> None:
    shown = coloured(assistant({"type": "thinking", "thinking": "Hm.", "signature": ""}, "Yes."))
    assert "\x1b[2;3mHm." in shown
    assert "\nYes." in shown


@pytest.mark.parametrize("is_error", [True, False])
def test_a_call_that_failed_is_red_in_every_dialect(is_error: bool) -> None:
    red_or_green = "\x1b[31m" if is_error else "\x1b[32m"
    block = {"type": "tool_result", "tool_use_id": "a", "content": "told", "is_error": is_error}
    for message in (
        returned("a", "told", is_error=is_error),
        {"type": "tool_result", "tool_use_id": "a", "result": "told", "is_error": is_error},
        system("tool_result", tool_result=block),
    ):
        assert f"{red_or_green}  = told" in coloured(assistant(call("a", command="x")), message)


def test_a_result_that_names_no_call_is_shown() -> None:
    assert show(system("tool_result", content="told"), system("tool_result")) == "  = told\n  =\n"


def coloured(*messages: dict[str, Any]) -> str:
    shown = io.StringIO()
    with closing(Page(Console(file=shown, force_terminal=True, color_system="standard", width=80))) as page:
        live = LiveView(page)
        for message in messages:
            live.show(decode(json.dumps(message)))
    return shown.getvalue()


@each("name", names(), str)
def test_all_texts_and_calls_of_all_recordings_are_shown(name: str) -> None:
    messages = decoded(load(name).stdout[:500_000])
    shown = viewed(messages)
    flat = re.sub(r"\s+|^(\| )+", " ", shown, flags=re.MULTILINE)
    for message in messages:
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock) and block.text.isprintable():
                    assert " ".join(block.text.split()) in flat
                elif isinstance(block, ToolUseBlock):
                    assert f"+ {call_name(block.name)}" in shown
        elif isinstance(message, InvalidLine):
            assert f"! line {message.line_number}, byte {message.offset}: {message.reason}" in shown
    results = [message for message in messages if isinstance(message, ResultMessage)]
    assert len(re.findall(r"^= (?:ok|not ok)", shown, re.MULTILINE)) == len(results)


# --- tools ------------------------------------------------------------------------------------------------------------


def test_tool_with_input_and_result() -> None:
    shown = show(assistant(call("a", command="ls")), returned("a", "x\ny\n"))
    assert shown == "+ Bash ls\n  = x\n    y\n"


@pytest.mark.parametrize(
    ("called", "lines"),
    [
        (call("a", command="touch a.txt"), ["+ Bash touch a.txt"]),
        (call("a", command="touch a.txt", description="Make a"), ["+ Bash touch a.txt", "    description: Make a"]),
        (call("a", "Read", file_path="/a b/c", limit=5), ["+ Read /a b/c", "    limit: 5"]),
        (call("a", "Grep", pattern="a, b: c", path="src", i=True), ["+ Grep a, b: c", "    path: src, i: true"]),
        (call("a", "calc", a=1, b="two"), ["+ calc a: 1, b: two"]),
        (call("a", "calc", a="1, b: 2", c=""), ['+ calc a: "1, b: 2", c: ""']),
        (call("a", "mcp__calc__add", a=1), ["+ calc - add (MCP) a: 1"]),
        (call("a", "mcp__a__b__c"), ["+ a - b__c (MCP)"]),
        (call("a", "mcp__calc"), ["+ mcp__calc"]),
        (
            call(
                "a",
                "TodoWrite",
                todos=[
                    {"content": "Read it", "status": "completed", "activeForm": "Reading it"},
                    {"content": "Mend it\n[x] Test it", "status": "in_progress"},
                    {"content": "Test it", "status": "pending"},
                    {"content": "Ship it", "status": ["new"]},
                ],
            ),
            ["+ TodoWrite", "    [x] Read it", r"    [>] Mend it\n[x] Test it", "    [ ] Test it", "    [?] Ship it"],
        ),
        (
            call("a", "TodoWrite", todos=[{"content": str(number), "status": "pending"} for number in range(1012)]),
            ["+ TodoWrite", *(f"    [ ] {number}" for number in range(12)), "    … 1,000 more"],
        ),
        (call("a", "TodoWrite", todos=["x"]), ['+ TodoWrite todos: ["x"]']),
        (call("a", "TodoWrite", todos=[{"text": "x"}]), ['+ TodoWrite todos: [{"text": "x"}]']),
        (
            call(
                "a",
                "AskUserQuestion",
                questions=[
                    {"question": "Which?", "options": [{"label": "Red", "description": "A colour"}, {"label": "1"}]},
                    {"question": "Why?", "options": "none"},
                ],
            ),
            ["+ AskUserQuestion", "    Which?", "      - Red: A colour", "      - 1", "    Why?"],
        ),
        (
            call("a", "Edit", file_path="a.txt", old_string="one\ntwo", new_string="ONE", replace_all=False),
            ["+ Edit a.txt", "    - one", "    - two", "    + ONE"],
        ),
        (
            call("a", "Edit", file_path="a.txt", old_string="", new_string="ONE", replace_all=True),
            ["+ Edit a.txt", "    replace_all: true", "    + ONE"],
        ),
        (call("a", "Edit", old_string="one", new_string=1), ["+ Edit old_string: one, new_string: 1"]),
        (call("a", "Write", content="one\ntwo: 2\n"), ["+ Write", "    content: one", "      two: 2"]),
        (call("a"), ["+ Bash"]),
        (call("a", command="one\ndescription: harmless"), ["+ Bash one", "      description: harmless"]),
        (call("a", command="", x=1), ['+ Bash command: "", x: 1']),
    ],
)
def test_call_is_shown_as_people_write_it(called: dict[str, Any], lines: list[str]) -> None:
    """The text of one field cannot look like another field."""
    assert show(assistant(called)).splitlines() == lines


def test_cost_is_told_once() -> None:
    """The cost of the session is shown only if it differs from the cost of the turn."""
    shown = viewed(decoded(load("17_sdk_client_full").stdout))
    turns = re.findall(r"^= .*$", shown, re.MULTILINE)
    assert turns[0].count("$") == 1
    assert [re.findall(r"\$[\d.]+", turn) for turn in turns[:3]] == [
        ["$0.000360"],
        ["$0.000180", "$0.000540"],
        ["$0.000105", "$0.000645"],
    ]


def test_long_input_is_cut_and_says_how_much() -> None:
    content = "\n".join(f"line {number}" for number in range(1000))
    shown = show(assistant(call("a", "Write", file_path="f", content=content, more=1)))
    assert shown.splitlines() == [
        "+ Write f",
        "    content: line 0",
        *(f"      line {number}" for number in range(1, MAX_LINES)),
        f"      … {1000 - MAX_LINES} more lines, {len(content) - 7 * MAX_LINES:,} characters",
        "    more: 1",
    ]


def test_long_result_is_cut_and_says_how_much() -> None:
    shown = show(returned("a", "z" * 10_000))
    assert shown.splitlines() == [f"  = {'z' * MAX_CHARS}…", f"    … {10_000 - MAX_CHARS:,} more characters"]


def test_results_of_calls_that_run_at_once_are_named() -> None:
    shown = show(assistant(call("a", "Read")), assistant(call("b", "Grep")), returned("a", "1"), returned("b", "2"))
    assert shown.splitlines()[2:] == ["  = Read: 1", "  = 2"]


def test_blocks_that_are_no_text_are_named() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    assert "  = [image]\n    [zzz]\n    text" in show(
        returned("a", [image, {"type": "zzz"}, {"type": "text", "text": "text"}])
    )
    assert show(returned("a", None)) == "  =\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("\n\n", [""]),
        ("a\n", ["a"]),
        ("a\nb", ["a", "b"]),
        ("a\nb\nc", ["a", "b", "… 1 more lines, 1 characters"]),
        ("abcd", ["abc…", "… 1 more characters"]),
        ("abcd\nb\nc", ["abc…", "b", "… 1 more lines, 2 characters"]),
    ],
)
def test_excerpts(text: str, lines: list[str]) -> None:
    assert excerpt(text, 2, 3) == lines


def test_input_of_any_kind_has_a_form() -> None:
    deep: Any = []
    for _ in range(100_000):  # some versions of Python can encode a few thousand levels
        deep = [deep]
    assert fields(deep) == ["(nested too deeply)"]
    assert fields(None) == ["null"]
    assert fields("text") == ["text"]
    assert fields({"a": "x" * 200, "b": [1]})[-1] == "b: [1]"
    assert fields({f"k{number}": "x" * 20 for number in range(100)})[-1] == "… 88 more members"


# --- subagents --------------------------------------------------------------------------------------------------------


def test_subagents_are_marked_by_level() -> None:
    shown = show(
        assistant(call("p", "Agent", description="outer", subagent_type="t")),
        assistant("one", parent="p"),
        assistant(call("q", "Task", description="inner"), parent="p"),
        assistant("two", parent="q"),
        assistant("three", parent="p"),
        returned("p", "done"),
        assistant("four"),
    )
    assert shown.splitlines() == [
        "+ Agent outer",
        "    subagent_type: t",
        "| -- subagent t: outer",
        "| one",
        "| + Task inner",
        "| | -- subagent inner",
        "| | two",
        "| -- subagent t: outer",
        "| three",
        "  = done",
        "four",
    ]


def test_subagent_whose_call_was_not_seen() -> None:
    shown = show(assistant("one\ntwo", parent="p", subagent_type="t", task_description="d"))
    assert shown == "| -- subagent t: d\n| one\n| two\n"


# --- the rest ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (system("api_retry", attempt=1, max_retries=10, retry_delay_ms=1500, error_status=529, error="overloaded"),
         "! API error 529 (overloaded): try 1 of 10 in 1.5 s"),
        (system("status", status="compacting"), "* compacting the conversation"),
        (system("status", status=None, compact_result="failed", compact_error="no"), "! not compacted: no"),
        (system("status", status=None, permissionMode="plan"), "* permission mode: plan"),
        (system("status", status="requesting"), ""),
        (system("compact_boundary", compact_metadata={"trigger": "auto", "pre_tokens": 1234, "post_tokens": 5}),
         "* compacted (auto): 1,234 to 5 tokens"),
        (system("hook_response", hook_name="PreToolUse:Bash", hook_event="PreToolUse", output="no\n", exit_code=2,
                outcome="error"), "# hook PreToolUse:Bash: error, exit code 2\n    no"),
        (system("permission_denied", tool_name="Bash", tool_use_id="a", message="no", decision_reason="rule"),
         "? Bash denied without a question: rule"),
        (system("task_notification", task_id="a", status="failed", output_file="", summary="it broke"),
         "* task failed: it broke"),
        (system("informational", content="look", level="warning"), "* look"),
        (system("model_fallback", content="another"), "! another"),
        (system("session_writes_lost", error_code="ENOSPC", lost=["transcript"]), "! not saved (ENOSPC): transcript"),
        (system("zzz"), "! system/zzz: unknown subtype"),
        ({"type": "zzz"}, "! zzz: unknown type"),
        ({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "rateLimitType": "five_hour"}},
         "! rate limit (five_hour): rejected"),
        ({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}}, ""),
        ({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1e300}},
         "! rate limit: rejected, until 1e+300"),
        ({"type": "keep_alive"}, ""),
        ({"type": "conversation_reset", "new_conversation_id": "x"}, "* the conversation starts afresh"),
        (event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
         "! API error: Overloaded"),
        (assistant("Request refused", error="rate_limit"), "Request refused\n! API error: rate_limit"),
        (assistant("Hel", aborted=True), "Hel\n(cut off)"),
        ({"type": "user", "message": {"role": "user", "content": "again"}, "isReplay": True}, "> again"),
    ],
    ids=lambda value: value.get("subtype", value["type"]) if isinstance(value, dict) else "",
)  # fmt: skip
def test_what_the_cli_tells_of_itself(message: dict[str, Any], shown: str) -> None:
    assert show(message).rstrip("\n") == shown


def test_permission_question_in_a_file_of_the_output_alone() -> None:
    shown = viewed(decoded(load("05_perm_allow_deny").stdout))
    assert shown.count("? may Bash run?\n    Make a\n    path: ") == 1


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ({"behavior": "allow", "updatedInput": {}}, "? allowed"),
        ({"behavior": "deny", "message": "no\n"}, "? denied: no"),
        ({"behavior": "perhaps"}, "! neither allowed nor denied"),
        ({"behavior": "deny"}, "? denied"),
        ({}, "! neither allowed nor denied"),
        ({"behavior": "allow", "updatedPermissions": [
            {"type": "setMode", "mode": "plan", "destination": "session"},
            {"type": "replaceRules", "rules": [{"toolName": "A"}, {"toolName": "B", "ruleContent": "c"}],
             "behavior": "deny", "destination": "session"},
            {"type": "removeRules", "rules": [{"toolName": "A"}], "behavior": "ask", "destination": "userSettings"},
            {"type": "addDirectories", "directories": ["/a", "/b"], "destination": "session"},
            {"type": "removeDirectories", "directories": ["/a"], "destination": "session"},
            {"type": "zzz"},
         ]},
         "? allowed\n"
         "    and switch to permission mode plan (session)\n"
         "    and deny only A, B(c) (session)\n"
         "    and no longer ask A (userSettings)\n"
         "    and work in /a, /b (session)\n"
         "    and no longer work in /a (session)\n"
         '    and {"type": "zzz"}'),
    ],
    ids=["allowed", "denied", "perhaps", "denied for no reason", "nothing", "allowed and more"],
)  # fmt: skip
def test_what_a_permission_grants(payload: dict[str, Any], shown: str) -> None:
    asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
    answer = {"type": "control_response", "response": {"subtype": "success", "request_id": "r", "response": payload}}
    drawn = io.StringIO()
    with closing(Page(Console(file=drawn, markup=False, highlight=False, emoji=False))) as page:
        live = LiveView(page)
        live.show(decode(json.dumps({"type": "control_request", "request_id": "r", "request": asked})))
        live.sent(decode(json.dumps(answer)))
    assert drawn.getvalue() == f"? may Bash run?\n{shown}\n"


def test_question_that_is_withdrawn() -> None:
    asked = {
        "type": "control_request",
        "request_id": "r",
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}},
    }
    withdrawn = {"type": "control_cancel_request", "request_id": "r"}
    assert show(asked, withdrawn, withdrawn) == "? may Bash run?\n? no longer asked\n"


def test_result_has_cost_turns_and_time() -> None:
    usage = {"input_tokens": 1000, "output_tokens": 20, "cache_read_input_tokens": 5}
    first = result(num_turns=2, duration_ms=1234, total_cost_usd=0.5, session_id="s", usage=usage)
    second = result(
        total_cost_usd=0.75, session_id="s", is_error=True, terminal_reason="max_turns", errors=["Too many"]
    )
    third = result(total_cost_usd=9, session_id="t", model_usage_since_last_result={"m": {"costUSD": 0.125}})
    assert show(first, second, third).splitlines() == [
        "= ok, $0.500000, answers: 2, 1.23 s",
        "  tokens without subagents: 1,000 in and 5 from the cache, 20 out",
        "! Too many",
        "= not ok (max_turns), $0.250000 of $0.750000 in this session",
        "= ok, $0.125000 of $9.000000 in this session",
    ]


def test_text_of_a_result_is_shown_if_nothing_else_has_shown_it() -> None:
    assert show(assistant("Hi"), result(result="Hi")) == "Hi\n= ok\n"
    assert show(result(result="Hi")) == "Hi\n= ok\n"
    assert show(assistant("Hi"), assistant("Ho", parent="p"), result(result="Hi")).endswith("| Ho\n= ok\n")


def test_header_comes_again_only_when_it_changes() -> None:
    init = system("init", model="m", cwd="/d", claude_code_version="2", permissionMode="default")
    assert show(init, init, {**init, "permissionMode": "plan"}).splitlines() == [
        "* m in /d, CLI 2",
        "* m in /d, CLI 2, permission mode plan",
    ]


def test_invalid_line_has_its_number_and_offset() -> None:
    shown = viewed(decoded(b'{"type":"keep_alive"}\n\nnot \x1b[31mJSON\xff\n'))
    assert shown == "! line 3, byte 23: not UTF-8 at byte 13 of the line\n    not \\x1b[31mJSON\\xff\n"


def test_bounded_memory_of_what_is_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "MAX_REMEMBERED", 5)
    with closing(Page(Console(file=io.StringIO()))) as page:
        live = LiveView(page)
        for number in range(50):
            for message in (
                assistant(call(f"a{number}", "Agent"), id=f"m{number}"),
                assistant("x", parent=f"p{number}"),
                start(f"m{number}", f"p{number}"),
                delta("x", id=f"m{number}", parent=f"p{number}"),
                {"type": "control_request", "request_id": f"r{number}", "request": {"subtype": "interrupt"}},
                result(session_id=f"s{number}", total_cost_usd=1),
            ):
                live.show(decode(json.dumps(message)))
        for name in ("_calls", "_agents", "_blocks"):
            assert len(getattr(live, name)) <= 5


# --- nothing in a line can harm a terminal ----------------------------------------------------------------------------

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\x08\u202eabc\ud800\x00\x7f"


def all_strings(value: Any) -> Any:
    """Return the JSON value with every text replaced by EVIL, except tags such as ``type`` and ids."""
    tags = ("type", "subtype", "role", "hook_event_name", "id", "tool_use_id", "request_id", "parent_tool_use_id")
    if isinstance(value, dict):
        return {
            key: member if key in tags and isinstance(member, str) else all_strings(member)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [all_strings(member) for member in value]
    return EVIL if isinstance(value, str) else value


@each("name", names(), str)
def test_no_text_of_any_recording_reaches_the_terminal_unescaped(name: str) -> None:
    messages = []
    for part in load(name).stdout[:100_000].split(b"\n")[:-1]:
        try:
            messages.append(decode(json.dumps(all_strings(json.loads(part)))))
        except ValueError:
            messages += decoded(part + b"\n")
    shown = viewed(messages)
    assert "owned" in shown or not any(isinstance(message, AssistantMessage) for message in messages)
    assert all(c.isprintable() or c in "\n\t" for c in shown)
