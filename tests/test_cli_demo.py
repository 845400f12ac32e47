"""``claude-wire demo``: the packaged recording is real, is shown as what it says, and is measured honestly."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import CliRunner
from rich.console import Console

from claude_wire import Decoder, InvalidLine, Process, decode, open_process
from claude_wire.cli import demo as demo_module
from claude_wire.cli.app import cli
from claude_wire.cli.race import Way, race, ways
from claude_wire.cli.transcript import DETAIL_CHARS, Transcript
from claude_wire.testing import Recording
from recordings import load as load_original

COMMAND = [sys.executable, "-m", "claude_wire.cli", "demo"]
RECORDING = Recording.load(demo_module.SESSION)

#: What the session says, in the order in which it must be shown.
STORY = [
    '> SCRIPT [[{"type": "tool_use", "name": "Bash"',
    "* claude-opus-5-5 in /home/user/repo/runs/17_sdk_client_full/work, CLI 2.1.330",
    '+ Bash {"command": "touch ok", "description": "x"}',
    "? the CLI asks the host: may Bash run?",
    "  = (Bash completed with no output)",
    '+ Bash {"command": "touch deny", "description": "y"}',
    "? the CLI asks the host: may Bash run?",
    "  = denied by cb",
    '+ mcp__calc__add {"a": 1, "b": 2}',
    "  = 3",
    "\nall done\n",
    "= ok, $0.000360 in this session, turns: 4, 0.41 s, 0.10 s in the API",
    "> THINK please",
    "Let me think about this.\nStep one: consider \\u2028 things.\nStep two: answer.\n",
    "(redacted thinking)",
    "\nThe answer is 42.\n",
    "= ok, $0.000540 in this session, turns: 1",
    "> SLOW please",
    "* claude-haiku-4-5-20251001 in ",
    "\nslow slow slow slow ",
    "> [Request interrupted by user]",
    "= not ok (aborted_streaming), $0.000645 in this session, turns: 2, 1.50 s, 0.11 s in the API",
    "76,647 bytes through the pipe of a process that exited with 0: 128 messages, 0 invalid, 0 unknown",
]


def assert_in_order(shown: str, parts: list[str]) -> None:
    at = 0
    for part in parts:
        at = shown.find(part, at)
        assert at >= 0, part
        at += len(part.rstrip("\n"))


# --- the recording ----------------------------------------------------------------------------------------------------


def test_packaged_recording_is_the_beginning_of_a_recorded_session() -> None:
    original = load_original("17_sdk_client_full")
    assert original.stdout.startswith(RECORDING.stdout)
    reads = RECORDING.files["stdout.reads.jsonl"]
    assert original.files["stdout.reads.jsonl"].startswith(reads)
    assert sum(json.loads(read)[1] for read in reads.splitlines()) == len(RECORDING.stdout)


def test_packaged_recording_is_whole_and_small() -> None:
    assert RECORDING.stdout.endswith(b"\n")
    assert sum(file.stat().st_size for file in demo_module.SESSION.iterdir()) < 50_000


# --- the transcript ---------------------------------------------------------------------------------------------------


def transcript(messages: list[Any], **console: Any) -> str:
    shown = io.StringIO()
    taken = Transcript(Console(file=shown, markup=False, highlight=False, emoji=False, **console))
    for message in messages:
        taken.show(message)
    taken.close()
    return shown.getvalue()


def decoded(data: bytes, size: int) -> list[Any]:
    decoder = Decoder()
    messages: list[Any] = []
    for at in range(0, len(data), size):
        messages += decoder.feed(data[at : at + size])
    return messages + decoder.close()


def show(*messages: dict[str, Any]) -> str:
    return transcript([decode(json.dumps(message)) for message in messages])


def text_delta(text: str, kind: str = "text_delta", key: str = "text") -> dict[str, Any]:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: text}}
    return {"type": "stream_event", "event": event, "api_message_id": "m"}


def assistant(*blocks: dict[str, Any], id: str = "m") -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": id, "content": list(blocks)}}


@pytest.mark.parametrize("size", [1, 100, 4096, 10**6])
def test_transcript_is_the_same_at_every_chunking(size: int) -> None:
    shown = transcript(decoded(RECORDING.stdout, size))
    assert_in_order(shown, STORY[:-1])
    assert shown == transcript(decoded(RECORDING.stdout, 65536))


def test_streamed_text_is_shown_at_once_and_not_again_with_its_finished_block() -> None:
    shown = io.StringIO()
    taken = Transcript(Console(file=shown))
    taken.show(decode(json.dumps(text_delta("The "))))
    assert shown.getvalue() == "The "
    taken.show(decode(json.dumps(text_delta("answer"))))
    taken.show(decode(json.dumps(assistant({"type": "text", "text": "The answer"}))))
    taken.close()
    assert shown.getvalue() == "The answer\n"


def test_text_that_was_not_streamed_is_shown_with_its_block() -> None:
    shown = show(text_delta("streamed"), assistant({"type": "text", "text": "whole"}, id="other"))
    assert shown == "streamed\nwhole\n"


def test_thinking_is_dimmed_and_on_lines_of_its_own() -> None:
    messages = [text_delta("hmm", "thinking_delta", "thinking"), text_delta("yes")]
    assert show(*messages) == "hmm\nyes\n"
    coloured = transcript(
        [decode(json.dumps(message)) for message in messages], force_terminal=True, color_system="standard"
    )
    assert coloured.startswith("\x1b[2;3mhmm\x1b[0m")
    assert coloured.rstrip().endswith("yes")


def test_tool_result_of_blocks_is_joined_and_an_error_is_red() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "zzz"}, {"type": "text", "text": "b"}]
    result = {"type": "tool_result", "tool_use_id": "u", "content": blocks, "is_error": True}
    message = decode(json.dumps({"type": "user", "message": {"role": "user", "content": [result]}}))
    assert transcript([message]) == "  = a[zzz]b\n"
    assert "\x1b[31m" in transcript([message], force_terminal=True, color_system="standard")


def test_user_text_that_the_cli_repeats_is_shown_as_a_prompt() -> None:
    assert show({"type": "user", "message": {"role": "user", "content": "Hello\nthere"}}) == "> Hello\\nthere\n"


def test_header_comes_again_only_when_it_says_something_else() -> None:
    init = {"type": "system", "subtype": "init", "model": "m", "cwd": "/w"}
    assert show(init, init, {**init, "model": "n"}) == "* m in /w\n* n in /w\n"


def test_result_says_what_it_knows() -> None:
    assert show({"type": "result", "subtype": "success"}) == "= ok\n"
    failed = {"type": "result", "subtype": "error_max_turns", "is_error": True, "num_turns": 3, "duration_ms": 1234}
    assert show(failed) == "= not ok (error_max_turns), turns: 3, 1.23 s\n"


def test_invalid_line_is_shown_by_its_reason_only() -> None:
    shown = transcript([InvalidLine(b"secret", 7, 100, "not JSON")])
    assert shown == "! line 7 is invalid: not JSON\n"


def test_foreign_text_cannot_give_orders_to_the_terminal() -> None:
    shown = show(
        text_delta("[bold]a[/bold]\x1b[2J\n"),
        assistant({"type": "tool_use", "id": "i", "name": "[red]x\x1b[0m", "input": {"a": "\x1b[1m" + "b" * 1000}}),
    )
    assert "\x1b" not in shown
    assert "[bold]a[/bold]\\x1b[2J\n" in shown
    assert "+ [red]x\\x1b[0m " in shown
    assert len(shown.splitlines()[-1]) < DETAIL_CHARS + 30


# --- the race ---------------------------------------------------------------------------------------------------------


def test_every_way_decodes_every_line() -> None:
    lines = RECORDING.stdout.count(b"\n")
    for way in ways():
        assert way.decode(RECORDING.stdout * 2) == 2 * lines, way.name


def test_orjson_is_measured_if_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("orjson")
    ours_and_json = ["claude_wire, typed", "claude_wire, dict", "json.loads per line"]
    assert [way.name for way in ways()] == [*ours_and_json, "orjson.loads per line"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert [way.name for way in ways()] == ours_and_json


def test_ways_take_turns_and_the_best_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    order: list[str] = []
    costs = {"slow": iter([5.0, 4.0, 6.0]), "fast": iter([2.0, 3.0, 1.0])}

    def way(name: str) -> Way:
        def run(data: bytes) -> int:
            nonlocal now
            order.append(name)
            now += next(costs[name])
            return len(data)

        return Way(name, run)

    monkeypatch.setattr("time.perf_counter", lambda: now)
    laps = race([way("slow"), way("fast")], b"12345", rounds=3, seconds=1000)
    assert order == ["slow", "fast"] * 3
    assert [tuple(lap) for lap in laps] == [("slow", 4.0, 5, 3), ("fast", 1.0, 5, 3)]


def test_race_ends_with_the_round_in_which_its_time_is_up() -> None:
    order: list[str] = []
    both = [Way(name, lambda data, name=name: order.append(name) or 1) for name in ("a", "b")]  # type: ignore[misc]
    assert [lap.rounds for lap in race(both, b"", rounds=5, seconds=0)] == [1, 1]
    assert order == ["a", "b"]


# --- the command ------------------------------------------------------------------------------------------------------


def test_demo_shows_the_story_and_a_row_for_each_way() -> None:
    done = subprocess.run(COMMAND, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stderr == b""
    shown = done.stdout.decode()
    assert "\x1b" not in shown  # no terminal, no colours
    assert_in_order(shown, [*STORY, "Decoding this recording 260 times", "33,280 lines", "ratio to json"])
    ratios = {
        way.name: re.findall(rf"^\W+{re.escape(way.name)} .* ([\d.]+) x\W*$", shown, re.MULTILINE) for way in ways()
    }
    assert [len(found) for found in ratios.values()] == [1] * len(ratios), shown
    assert ratios["json.loads per line"] == ["1.0"]


def test_no_bench_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("nothing was to be measured")

    monkeypatch.setattr(demo_module, "race", never)
    done = CliRunner().invoke(cli, ["demo", "--no-bench"])
    assert done.exit_code == 0
    assert_in_order(done.stdout, STORY)
    assert "ratio" not in done.stdout


def test_session_is_played_by_a_child_and_comes_through_its_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    spawned: list[list[str]] = []

    def watched(argv: list[str]) -> Process[Any]:
        spawned.append(argv)
        return open_process(argv)

    monkeypatch.setattr(demo_module, "open_process", watched)
    assert CliRunner().invoke(cli, ["demo", "--no-bench"]).exit_code == 0
    assert [argv[0] for argv in spawned] == [sys.executable]


def test_demo_needs_no_network() -> None:
    program = (
        "import sys\n"
        "def refuse(event, arguments):\n"
        "    if event.startswith('socket.') and event != 'socket.__new__':\n"
        "        raise RuntimeError(event)\n"
        "sys.addaudithook(refuse)\n"
        "sys.argv = ['claude-wire', 'demo', '--no-bench']\n"
        "from claude_wire.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert b"The answer is 42." in done.stdout
