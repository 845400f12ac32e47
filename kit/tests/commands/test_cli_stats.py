"""``claude-wire stats`` computes exact sums for any stream, in bounded memory."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from each import each

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import Result

from claude_wire import PROTOCOL_VERSION, Decoder, InvalidLine
from claude_wire.testing import Recording
from claude_wire_kit.commands.app import cli
from claude_wire_kit.survey import totals as totals_module
from claude_wire_kit.survey.totals import Stats, Tally
from claude_wire_kit.usage.meter import OTHERS
from cli_lines import line
from recordings import load, names
from screens import PATIENCE, Screen, terminal_environment
from shown import RUNNER
from usage_lines import model, result

COMMAND = [sys.executable, "-m", "claude_wire_kit", "stats"]


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(map(line, messages))


def tallied(data: bytes, size: int = 65536) -> Stats:
    tally = Tally()
    for at in range(0, len(data), size):
        tally.feed(data[at : at + size])
    return tally.close()


def call(id: str, name: str = "Bash", kind: str = "tool_use") -> dict[str, Any]:
    block = {"type": kind, "id": id, "name": name, "input": {}}
    return {"type": "assistant", "message": {"role": "assistant", "content": [block]}}


def answer(id: str, is_error: bool | None = None) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id, "content": "x", "is_error": is_error}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def invoke(*arguments: str, stdin: bytes = b"") -> Result:
    return RUNNER.invoke(cli, ["stats", *arguments], input=stdin)


def as_json(*arguments: str, stdin: bytes = b"") -> dict[str, Any]:
    done = invoke("--json", *arguments, stdin=stdin)
    assert done.exit_code == 0, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    return report


# --- counts -----------------------------------------------------------------------------------------------------------


@each("name", names(), str)
def test_bytes_and_lines_of_all_kinds_add_up(name: str) -> None:
    data = load(name).stdout
    stats = tallied(data)
    assert stats.bytes == sum(kind.bytes for kind in stats.kinds.values()) == len(data)
    blank = stats.kinds.pop("blank", None)
    assert stats.lines == sum(kind.lines for kind in stats.kinds.values())
    assert sum(part.strip() == b"" for part in data.split(b"\n")[:-1]) == (blank.lines if blank else 0)
    decoder = Decoder()
    messages = decoder.feed(data) + decoder.close()
    invalid = [message for message in messages if isinstance(message, InvalidLine)]
    assert (stats.messages, stats.invalid) == (len(messages) - len(invalid), len(invalid))
    if invalid:
        found = stats.kinds["invalid"]
        assert found.lines == len(invalid)
        assert found.bytes - sum(each.length for each in invalid) in (found.lines, found.lines - 1)


@pytest.mark.parametrize("size", [1, 7, 1000, 10**7])
@pytest.mark.parametrize("name", ["05_perm_allow_deny", "15_subagent_partial", "17_sdk_client_full"])
def test_sums_are_the_same_at_every_chunking(name: str, size: int) -> None:
    data = load(name).stdout[:200_000]
    assert tallied(data, size) == tallied(data)


def test_line_above_the_limit_is_one_invalid_line_with_all_its_bytes() -> None:
    tally = Tally(max_line_bytes=100)
    data = b"{}\n" + b'{"x":"' + b"a" * 500 + b'"}\n' + line({"type": "keep_alive"})
    for at in range(0, len(data), 64):
        tally.feed(data[at : at + 64])
    stats = tally.close()
    assert (stats.kinds["invalid"].lines, stats.kinds["invalid"].bytes) == (1, 509)
    assert (stats.kinds["keep_alive"].bytes, stats.bytes) == (23, len(data))


def test_unterminated_last_line_and_blank_lines_have_their_bytes() -> None:
    stats = tallied(b'\n  \r\n{"type":"keep_alive"}')
    assert (stats.lines, stats.bytes) == (1, 26)
    assert {kind: (count.lines, count.bytes) for kind, count in stats.kinds.items()} == {
        "blank": (2, 5),
        "keep_alive": (1, 21),
    }


# --- turns ------------------------------------------------------------------------------------------------------------


def test_turns_are_ok_or_failed_for_a_reason() -> None:
    stats = tallied(
        lines(
            result(0, 0, num_turns=2, duration_ms=10),
            result(0, 0, is_error=True, api_error_status=400, terminal_reason="completed"),
            result(0, 0, is_error=True, terminal_reason="aborted_tools", subtype="error_during_execution"),
            result(0, 0, is_error=True, subtype="error_during_execution", startup_failure_reason="bypass_root"),
            result(0, 0, is_error=True, subtype="error_max_turns", num_turns=3, duration_ms=1.5),
        )
    )
    assert (stats.results, stats.ok, stats.usage.num_turns, stats.usage.duration_ms) == (5, 1, 5, 11.5)
    assert stats.failed == {"api_error": 1, "aborted_tools": 1, "bypass_root": 1, "error_max_turns": 1}


@pytest.mark.parametrize(
    ("name", "unfinished"),
    [("08_eof_midturn", 0), ("05_perm_allow_deny", 0), ("17_sdk_client_full", 1), ("15_subagent_background", 0)],
)
def test_stream_that_ends_in_a_turn_is_unfinished(name: str, unfinished: int) -> None:
    assert tallied(load(name).stdout).unfinished == unfinished


def test_every_cut_before_the_result_leaves_the_turn_unfinished() -> None:
    data = load("03_think_partial").stdout
    cuts = [at for at in range(len(data)) if data[at : at + 1] == b"\n"]
    for at in cuts[:-1]:
        assert tallied(data[: at + 1]).unfinished == 1
    assert tallied(data).unfinished == 0


def test_subagent_in_the_background_opens_no_turn() -> None:
    stats = tallied(lines(result(0, 0), {**call("a"), "parent_tool_use_id": "p"}))
    assert (stats.unfinished, stats.tools["Bash"].calls) == (0, 1)


# --- tokens and cost ------------------------------------------------------------------------------------------------


def test_a_result_that_comes_again_is_one_turn() -> None:
    message = result(0.25, 1, uuid="a", recent={"m": model(1, 0.25)}, is_error=True, terminal_reason="max_turns")
    stats = tallied(lines(message, message))
    assert (stats.results, stats.failed, stats.usage.turns, stats.usage.cost_usd) == (1, {"max_turns": 1}, 1, 0.25)


# --- tools ------------------------------------------------------------------------------------------------------------


def test_calls_and_their_results() -> None:
    stats = tallied(
        lines(
            *(call(id) for id in ("a", "b", "c")),
            call("a"),  # a second time, as in a line that supersedes the first
            answer("a"),
            answer("b", is_error=True),
            answer("b", is_error=True),
            answer("nobody asked"),
            call("d", "web_search", "server_tool_use"),
            result(0, 0, permission_denials=[{"tool_name": "Bash", "tool_use_id": "b", "tool_input": {}}]),
        )
    )
    bash, search = stats.tools["Bash"], stats.tools["web_search"]
    assert (bash.calls, bash.errors, bash.denied, bash.unanswered) == (3, 1, 1, 1)
    assert (search.calls, search.unanswered) == (1, 1)


def test_results_of_tools_that_the_api_runs() -> None:
    tools = tallied(load("16_server_tools").stdout).tools
    assert tools["web_search"].calls == 1
    assert tools["web_search"].unanswered == 0
    failed = {
        "type": "web_search_tool_result",
        "tool_use_id": "a",
        "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
    }
    message = {"type": "assistant", "message": {"content": [failed]}}
    assert tallied(lines(call("a", "web_search", "server_tool_use"), message)).tools["web_search"].errors == 1


def test_recorded_permissions() -> None:
    tools = tallied(load("05_perm_allow_deny").stdout).tools
    assert {name: (tool.calls, tool.errors, tool.denied, tool.unanswered) for name, tool in tools.items()} == {
        "Bash": (2, 1, 1, 0),
        "Write": (1, 0, 0, 0),
    }


# --- memory -----------------------------------------------------------------------------------------------------------


def test_names_that_a_stream_makes_up_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals_module, "MAX_NAMES", 5)
    tally = Tally()
    for number in range(20):
        tally.feed(line(call(f"id{number}", f"tool{number}")))
        tally.feed(line(result(1, 1, session=f"s{number}", is_error=True, terminal_reason=f"r{number}")))
        assert len(tally._waiting) <= 5
    stats = tally.close()
    assert len(stats.tools) == len(stats.failed) == 6
    assert sum(tool.calls for tool in stats.tools.values()) == 20
    assert sum(tool.unanswered for tool in stats.tools.values()) == 20
    assert stats.failed[OTHERS] == 15


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "recorded.ndjson"
    path.write_bytes(load("05_perm_allow_deny").stdout)
    return path


def test_json_has_the_documented_shape(recorded: Path) -> None:
    report = as_json(str(recorded))
    assert list(report) == ["files", "total", "protocol"]
    assert report["protocol"] == PROTOCOL_VERSION
    (file,) = report["files"]
    assert file.pop("path") == str(recorded)
    assert file == report["total"]
    total = report["total"]
    assert list(total) == [
        *("bytes", "lines", "messages", "invalid", "unknown", "turns", "duration_ms", "duration_api_ms", "usd"),
        *("tokens", "models", "main_loop_tokens", "tools", "kinds"),
    ]
    tokens = {"input_tokens": 40, "output_tokens": 17, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    assert (total["bytes"], total["lines"], total["messages"]) == (29582, 14, 14)
    assert total["turns"] == {
        "results": 1,
        "ok": 1,
        "failed": {},
        "unfinished": 0,
        "prompts": 0,
        "num_turns": 4,
        "api_retries": 0,
    }
    assert total["usd"] == pytest.approx(0.0005)
    assert total["tokens"] == total["main_loop_tokens"] == tokens
    assert total["models"] == {"claude-opus-5-5": {**tokens, "usd": pytest.approx(0.0005)}}
    assert total["tools"]["Bash"] == {"calls": 2, "errors": 1, "denied": 1, "unanswered": 0}
    assert total["kinds"]["control_request/can_use_tool"] == {"lines": 3, "bytes": 1802}


def test_several_files_are_added_up(recorded: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.ndjson"
    other.write_bytes(load("15_subagent_partial").stdout)
    report = as_json(str(recorded), str(other), "-", stdin=line(result(1.0, 7)))
    assert [file["path"] for file in report["files"]] == [str(recorded), str(other), "-"]
    for name in ("bytes", "lines", "messages", "usd", "duration_ms"):
        assert report["total"][name] == pytest.approx(sum(file[name] for file in report["files"]))
    assert report["total"]["tokens"]["input_tokens"] == 40 + 50 + 7
    assert report["total"]["tools"]["Bash"]["calls"] == 4
    assert report["total"]["turns"]["results"] == 3


def test_folders_and_compressed_files(tmp_path: Path) -> None:
    source = load("09_err429_retries")
    folder = Recording.from_files(source.files).save(tmp_path / "folder").path or ""
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress(source.stdout))
    (tmp_path / "a.ndjson.xz").write_bytes(lzma.compress(source.stdout))
    report = as_json(folder, str(tmp_path / "a.ndjson.gz"), str(tmp_path / "a.ndjson.xz"))
    first, *others = [{**file, "path": ""} for file in report["files"]]
    assert all(other == first for other in others)
    assert first["bytes"] == len(source.stdout)
    assert first["turns"]["api_retries"] == 2
    assert first["turns"]["failed"] == {"api_error": 1}


def test_one_is_singular() -> None:
    retry = {
        "type": "system",
        "subtype": "api_retry",
        "attempt": 1,
        "max_retries": 10,
        "retry_delay_ms": 5,
        "error": "x",
    }
    text = invoke("-", stdin=lines(retry, result(0.1, 1, num_turns=1, duration_ms=1.0))).stdout
    assert "  turns: 1 (1 ok), 1 answer of the model\n" in text
    assert " in the API, 1 retry\n" in text
    assert " bytes, 2 messages, " in text
    assert "  lines: 1 in 1 byte, 0 messages, 1 invalid, " in invoke("-", stdin=b"x").stdout


def test_tables_say_what_json_says(recorded: Path) -> None:
    done = invoke(str(recorded))
    assert done.exit_code == 0
    text = done.stdout
    for expected in (
        f"{recorded}:\n  turns: 1 (1 ok), 4 answers of the model\n",
        "  cost: $0.000500\n",
        "  lines: 14 in 29,582 bytes, 14 messages, 0 invalid, 0 with something unknown\n",
    ):
        assert expected in text
    rows = [row.split() for row in text.splitlines()]
    assert ["claude-opus-5-5", "40", "17", "0", "0", "$0.000500"] in rows
    assert ["Bash", "2", "1", "1", "0"] in rows
    assert ["control_request/can_use_tool", "3", "1,802", "6.1%"] in rows


def test_turn_without_result_is_named_in_the_cost(tmp_path: Path) -> None:
    file = tmp_path / "cut.ndjson"
    file.write_bytes(load("03_think_partial").stdout[:4000])
    text = invoke(str(file)).stdout
    assert "turns: 1 (1 without a result)" in text
    assert "cost: $0.000000, excluding turns without a result\n" in text


def test_empty_file_has_zeros(tmp_path: Path) -> None:
    file = tmp_path / "empty"
    file.touch()
    done = invoke(str(file))
    assert done.exit_code == 0
    assert "turns: 0 (0 ok)" in done.stdout


def test_names_out_of_the_stream_are_made_harmless(tmp_path: Path) -> None:
    file = tmp_path / "evil"
    evil = "\x1b]0;owned\x07\n\u202e" + "x" * 500
    file.write_bytes(
        lines(call("a", evil), {**result(1, 1, is_error=True, terminal_reason=evil), "modelUsage": {evil: model(1, 1)}})
    )
    text = invoke(str(file)).stdout
    assert "\\x1b]0;owned" in text
    assert all(part.isprintable() for part in text.splitlines())
    assert max(map(len, text.splitlines())) < 250
    assert evil in as_json(str(file))["total"]["tools"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bad.gz", b"no gzip"),
        ("cut.gz", gzip.compress(b"x" * 1000)[:-9]),
        ("bad.xz", b"no xz"),
        ("cut.xz", lzma.compress(b"x" * 1000)[:-9]),
    ],
    ids=["bad.gz", "cut.gz", "bad.xz", "cut.xz"],
)
def test_damaged_file_ends_with_2(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    done = invoke(str(tmp_path / name))
    assert done.exit_code == 2
    assert "damaged" in done.stderr
    assert name in done.stderr


def test_what_is_no_recording_ends_with_2(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        done = invoke(str(path))
        assert done.exit_code == 2
        assert done.stdout == ""
    assert invoke().exit_code == 2
    assert invoke("-", "-").exit_code == 2


def test_in_a_process_from_a_pipe() -> None:
    data = load("05_perm_allow_deny").stdout
    done = subprocess.run([*COMMAND, "--json", "-"], input=data, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["total"]["bytes"] == len(data)


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals of POSIX")
@pytest.mark.parametrize("columns", [20, 40, 80])
def test_narrow_terminal_cuts_no_number(recorded: Path, columns: int) -> None:
    screen = Screen(columns)
    with subprocess.Popen(
        [*COMMAND, str(recorded)], stdout=screen.terminal, env=terminal_environment(NO_COLOR="1")
    ) as process:
        os.close(screen.terminal)
        while screen.read():
            pass
        assert process.wait(PATIENCE) == 0
    screen.close()
    sentence = "lines: 14 in 29,582 bytes, 14 messages, 0 invalid, 0 with something unknown"
    assert sentence in " ".join(screen.text().split())  # no word is broken
    assert all(len(row) <= columns or len(row.split()) == 1 for row in screen.text().split("\n"))
    for number in (b"17,370", b"29,582", b"58.7%", b"$0.000500", b"1,802"):
        assert number in screen.shown


def test_a_file_of_which_no_line_is_a_message_ends_with_1() -> None:
    done = invoke("-", stdin=b"\x7fELF\x00\n\xff\xfe\n")
    assert done.exit_code == 1
    assert done.stderr == "note: the input has no messages; is it a recording?\n"
    assert invoke("-", stdin=b"\x7fELF\n" + line({"type": "keep_alive"})).exit_code == 0
