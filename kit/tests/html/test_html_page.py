"""``claude-wire view --html`` writes the page of a session: its contents, its size, and its file."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import Result

from claude_wire.testing import Recording
from claude_wire_kit.commands.app import cli
from claude_wire_kit.html import markup
from cli_lines import assistant, block_start, call, delta, line, returned, start
from pages_html import HtmlPage
from recordings import load, names
from sessions import outputs, scenarios, unpack
from shown import RUNNER, in_order


def view(*arguments: str, stdin: bytes = b"") -> Result:
    return RUNNER.invoke(cli, ["view", "--html", *arguments], input=stdin)


def page(*lines: dict[str, Any]) -> HtmlPage:
    done = view("-", stdin=b"".join(map(line, lines)))
    assert done.exit_code == 0, done.output
    return HtmlPage(done.stdout)


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None, **more}


# --- contents ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_recording_has_a_page(name: str, tmp_path: Path) -> None:
    folder = Recording.from_files(load(name).files).save(tmp_path / "r").path or ""
    done = view(folder)
    assert done.exit_code == 0
    HtmlPage(done.stdout)


@pytest.mark.parametrize("scenario", scenarios())
def test_session_has_a_page_as_transcript_and_as_stream(scenario: str, tmp_path: Path) -> None:
    for path in sorted(unpack(scenario, tmp_path).rglob("*.jsonl")):
        done = view(str(path))
        assert done.exit_code == 0
        HtmlPage(done.stdout)
    for output in outputs(scenario):
        done = view("-", stdin=output)
        assert done.exit_code == 0
        HtmlPage(done.stdout)


def test_page_loads_nothing_and_has_no_script(tmp_path: Path) -> None:
    (path,) = unpack("tools", tmp_path).glob("*/*.jsonl")
    shown = view(str(path)).stdout
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"" in shown
    assert "prefers-color-scheme: dark" in shown
    style = shown[shown.index("<style>") : shown.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_transcript_has_turns_calls_changes_times_and_cost(tmp_path: Path) -> None:
    (path,) = unpack("tools", tmp_path).glob("*/*.jsonl")
    shown = HtmlPage(view(str(path)).stdout)
    in_order(
        shown.text,
        "Began2026-11-22 19:55 UTC",
        "Cost$0.4573",
        "Turns1",
        "Tool calls10",
        "Folder/home/user/src/tools",
        "CLI2.1.330",
        "Turn 1",
        "Prompt 19:55:45SCRIPT",
        "Bash echo hi; echo e >&2 19:55:45 done",
        "description: run",
        "Allowed by the settings",
        "Write a.txt",
        "+v1\n+line2",
        "Edit a.txt",
        "@@ -1 +1 @@\n-v1\n+v2\n line2",
        "Glob *.txt 19:55:45 failed",
        "10 answers, tokens: ",
    )


def test_subagents_stand_in_the_calls_that_started_them(tmp_path: Path) -> None:
    (path,) = unpack("subagent_nested", tmp_path).glob("*/*.jsonl")
    shown = HtmlPage(view(str(path)).stdout)
    assert (shown.classes["agent"], shown.count["h3"], shown.count["h4"]) == (2, 1, 1)
    in_order(
        shown.text,
        "Agent middle",
        "Subagent",
        "middle spawns",
        "Agent inner",
        "Subagent",
        "Bash echo innermost",
        "inner result",
        "middle result",
        "outer done",
    )


def test_questions_and_answers_stand_in_their_calls(tmp_path: Path) -> None:
    folder = Recording.from_files(load("05_perm_allow_deny").files).save(tmp_path / "r").path or ""
    shown = HtmlPage(view(folder).stdout)
    in_order(
        shown.text,
        "Bash touch",
        "done",
        "may Bash run?",
        "allowed",
        "made",
        "Bash",
        "denied",
        "may Bash run?",
        "denied: Not today, thanks",
        "Write c.txt",
        "finished",
        "ok, $0.000500",
    )


def test_interrupted_turn_says_so() -> None:
    folder = outputs("interrupt_stream")[0]
    assert "[Request interrupted by user]" in HtmlPage(view("-", stdin=folder).stdout).text
    meta = [{"id": "a", "non_execution_kind": "interrupted"}]
    shown = page(assistant(call("a", command="x")), {**returned("a", "no", is_error=True), "tool_result_meta": meta})
    in_order(shown.text, "Bash x", "interrupted", "no")


def test_text_that_no_message_repeats_is_cut_off() -> None:
    shown = page(start("n"), block_start(id="n"), delta("by pie", id="n"), delta("ces", id="n"))
    in_order(shown.text, "by pieces", "Cut off")
    shown = page(start("n"), block_start(id="n"), delta("by pieces", id="n"), assistant("by pieces", id="n"))
    assert shown.text.count("by pieces") == 1
    assert "Cut off" not in shown.text


def test_call_without_a_result_says_so() -> None:
    assert "no result" in page(assistant(call("a", command="sleep 5"))).text
    assert "no result" not in page(assistant(call("a", command="sleep 5")), returned("a", "slept")).text


def test_command_of_several_lines_is_shown_as_it_is() -> None:
    shown = page(assistant(call("a", command="cat <<E\n  in\nE", description="Say it")))
    in_order(shown.text, "Bash cat <<E", "cat <<E\n  in\nE", "description: Say it")


def test_prompts_that_are_repeated_are_shown_once(tmp_path: Path) -> None:
    folder = Recording.from_files(load("12_multi_replay").files).save(tmp_path / "r").path or ""
    assert HtmlPage(view(folder).stdout).classes["user"] == 5


def test_prompt_that_a_hook_is_asked_about_twice_is_shown_twice_and_a_repetition_of_it_is_not() -> None:
    def asked(id: str) -> dict[str, Any]:
        input = {"hook_event_name": "UserPromptSubmit", "prompt": "go on", "session_id": "s", "cwd": "/"}
        request = {"subtype": "hook_callback", "callback_id": "h", "input": {**input, "transcript_path": ""}}
        return {"type": "control_request", "request_id": id, "request": request}

    assert page(asked("a"), asked("b")).classes["user"] == 2
    assert page(asked("a"), user("go on", isReplay=True), asked("b")).classes["user"] == 2


def test_pictures_are_shown_if_they_are_pictures() -> None:
    def picture(type: str, data: str) -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "media_type": type, "data": data}}

    assert page(user([picture("image/png", "iVBORw0KGgo=")])).count["img"] == 1
    for type, data in (("image/svg+xml", "PHN2Zz4="), ("image/png", '"><script>'), ("image/png", "A" * 2_000_001)):
        shown = page(user([picture(type, data)]))
        assert "img" not in shown.count
        assert f"[{type}, {len(data):,} characters of base64]" in shown.text


def test_changes_of_any_json_are_none() -> None:
    for odd in (1, [1], {"structuredPatch": 1}, {"structuredPatch": [1, {"lines": [1, "+x"], "oldStart": "<b>"}]}):
        shown = page(assistant(call("a", command="x")), {**returned("a", "done"), "tool_use_result": odd})
        assert "done" in shown.text
    for given in ({"edits": 1}, {"edits": [1, {"old_string": "a"}]}, {"old_string": 1, "new_string": "b"}, [], None, 7):
        for name in ("Edit", "MultiEdit", "Write"):
            block = {**call("a", name), "input": given}
            assert name in page(assistant(block)).text
    edits = {"edits": [{"old_string": "one", "new_string": "two"}, {"old_string": "", "new_string": "three"}]}
    in_order(page(assistant({**call("a", "MultiEdit"), "input": edits})).text, "@@\n-one\n+two\n@@\n+three")


# --- size -------------------------------------------------------------------------------------------------------------


def test_long_text_is_folded_and_a_very_long_one_is_cut() -> None:
    shown = page(assistant(call("a", command="x")), returned("a", "\n".join(f"line {n}" for n in range(1, 101))))
    assert shown.classes["more"] == 1
    in_order(shown.text, "line 16", "84 more lines", "line 17", "line 100")
    done = view("-", stdin=line(assistant("x" * 5_000_000)))
    assert len(done.stdout) < 200_000
    assert "… 4,900,000 more characters" in HtmlPage(done.stdout).text
    done = view("-", stdin=line(assistant(call("a", command="y" * 5_000_000))))
    assert len(done.stdout) < 200_000
    content = {
        "type": "tool_use",
        "id": "a",
        "name": "Write",
        "input": {"file_path": "f", "content": "z\n" * 2_500_000},
    }
    done = view("-", stdin=line(assistant(content)))
    assert len(done.stdout) < 500_000
    HtmlPage(done.stdout)


def test_full_page_counts_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markup.Budget.__init__, "__defaults__", (20_000,))
    shown = page(*(assistant(call(f"c{n}", command=f"echo {n}"), id=f"m{n}") for n in range(1000)))
    assert "The page is full: " in shown.text
    assert 5 < shown.classes["call"] < 40
    assert "Tool calls1,000" in shown.text


def test_subagents_in_each_other_end_at_a_depth() -> None:
    lines = [assistant(call("c0", command="x"))]
    lines += [{**assistant(call(f"c{n}", command="x")), "parent_tool_use_id": f"c{n - 1}"} for n in range(1, 200)]
    shown = page(*lines)
    assert shown.classes["call"] == 200
    assert shown.deepest < 50


# --- file -------------------------------------------------------------------------------------------------------------


def test_file_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, out = tmp_path / "r.ndjson", tmp_path / "page.html"
    recorded.write_bytes(load("15_subagent_partial").stdout)
    assert view(str(recorded), "-o", str(out)).output == ""
    assert out.read_text("utf-8") == view(str(recorded)).stdout
    assert sorted(os.listdir(tmp_path)) == ["page.html", "r.ndjson"]

    out.write_text("before")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    done = view(str(recorded), "-o", str(out))
    assert (done.exit_code, "No space left on device" in done.stderr) == (2, True)
    assert out.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["page.html", "r.ndjson"]


def test_file_that_cannot_be_written_ends_with_2(tmp_path: Path) -> None:
    done = view("-", "-o", str(tmp_path / "nowhere" / "page.html"), stdin=line(assistant("x")))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize("name", ["n" * 250 + ".html", "ü" * 127, os.fsdecode(b"\xff.html"), "\n\x1b"], ids=ascii)
def test_file_may_have_any_name(name: str, tmp_path: Path) -> None:
    assert view("-", "-o", str(tmp_path / name), stdin=line(assistant("Hello"))).exit_code == 0
    assert os.listdir(tmp_path) == [name]
    assert "Hello" in (tmp_path / name).read_text("utf-8")


def test_link_stays_a_link_and_a_pipe_gets_the_page(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    view("-", "-o", str(tmp_path / "link"), stdin=line(assistant("Hello")))
    assert (tmp_path / "link").is_symlink()
    assert "Hello" in (tmp_path / "target").read_text()
    assert view("-", "-o", os.devnull, stdin=line(assistant("Hello"))).exit_code == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_output_without_a_page_is_wrong_usage() -> None:
    done = RUNNER.invoke(cli, ["view", "-o", "x", "-"], input=b"")
    assert done.exit_code == 2
    assert "--html" in done.stderr


def test_what_is_unreadable_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.gz").write_bytes(b"no gzip")
    done = view(str(tmp_path / "bad.gz"), "-o", str(tmp_path / "page.html"))
    assert done.exit_code == 2
    assert not (tmp_path / "page.html").exists()


def test_nothing_has_a_page_too() -> None:
    assert "A session" in HtmlPage(view("-", stdin=b"").stdout).text
    invalid = HtmlPage(view("-", stdin=b"{torn\n" + json.dumps(user("Hi")).encode() + b"\n").stdout)
    in_order(invalid.text, "line 1, byte 0", "{torn")
