"""``claude-wire check`` reports findings as text and JSON, and prints nothing else of a line."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import Result

from claude_wire import PROTOCOL_VERSION, decode
from claude_wire.messages import ControlRequest, ControlResponse, McpStatusRequest
from claude_wire.support.text import NAME_CHARS
from claude_wire.testing import Recording
from claude_wire_kit.commands import check as check_module
from claude_wire_kit.commands.app import cli
from claude_wire_kit.commands.shared import sources as sources_module
from claude_wire_kit.commands.shared.sources import known_size
from claude_wire_kit.survey import check as survey_module
from claude_wire_kit.survey.answers import MAX_ASKED, MAX_ID, Requests
from claude_wire_kit.survey.check import Survey
from cli_lines import line
from recordings import load
from shown import RUNNER

COMMAND = [sys.executable, "-m", "claude_wire_kit", "check"]
SECRET = "hunter2"

USER: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": "hi"}, "parent_tool_use_id": None}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "content": list(blocks)}}


# --- the command ------------------------------------------------------------------------------------------------------


def check(*arguments: str, stdin: bytes = b"") -> Result:
    return RUNNER.invoke(cli, ["check", *arguments], input=stdin)


def check_json(*arguments: str, stdin: bytes = b"") -> dict[str, Any]:
    report: dict[str, Any] = json.loads(check("--json", *arguments, stdin=stdin).stdout)
    return report


MIXED = (
    line({**USER, "zzz": SECRET})
    + b"\n"
    + f"not JSON {SECRET}\n".encode()
    + line(assistant({"type": "zzz", "secret": SECRET}))
    + line({"type": "brandnew", "secret": SECRET})
    + line({**USER, "zzz": SECRET})
    + b'{"type":"user'
)


def test_clean_file_ends_with_0(tmp_path: Path) -> None:
    file = tmp_path / "clean.ndjson"
    file.write_bytes(line(USER) * 2 + line({"type": "result", "subtype": "success"}))
    done = check(str(file))
    assert done.exit_code == 0
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"{file}:",
        f"  3 lines, {file.stat().st_size} bytes: 3 messages, 0 invalid",
        "    1  result/success",
        "    2  user",
    ]


def test_unknown_things_alone_are_no_error() -> None:
    done = check("-", stdin=line({"type": "zzz"}) + line({**USER, "zzz": 1}))
    assert done.exit_code == 0
    assert 'type "zzz"' in done.stdout


def test_report_names_what_is_wrong_and_what_is_unknown() -> None:
    done = check("-", stdin=MIXED)
    assert done.exit_code == 1
    offsets = [MIXED.index(b"not JSON"), MIXED.rindex(b'{"type":"user')]
    first, second = done.stdout.splitlines()[1:3]
    assert first == f"  line 3, byte {offsets[0]}: not JSON: Expecting value at character 0 of the line"
    assert second.startswith(f"  line 7, byte {offsets[1]}: truncated: not JSON: ")
    assert done.stdout.splitlines()[3:] == [
        f"  6 lines, {len(MIXED):,} bytes: 4 messages, 2 invalid",
        "    1  assistant",
        "    1  unknown",
        "    2  user",
        f"  not known to this version, which describes the protocol of CLI {PROTOCOL_VERSION}:",
        '    1 x block "zzz" at assistant.message.content[] (first in line 4)',
        '    1 x type "brandnew" (first in line 5)',
        "    2 x field user.zzz (first in line 1)",
    ]


def test_json_report_has_the_documented_shape() -> None:
    report = check_json("-", stdin=MIXED)
    shared = {
        "bytes": len(MIXED),
        "lines": 6,
        "messages": 4,
        "invalid": 2,
        "kinds": {"assistant": 1, "unknown": 1, "user": 2},
        "unknown_not_listed": 0,
    }
    unknown = [
        {"what": "block", "name": "zzz", "path": "assistant.message.content[]", "reason": "unknown type"},
        {"what": "type", "name": "brandnew", "path": "brandnew", "reason": "unknown type"},
        {"what": "field", "name": "zzz", "path": "user.zzz", "reason": "unknown field"},
    ]
    counts = [{"count": 1, "first_line": 4}, {"count": 1, "first_line": 5}, {"count": 2, "first_line": 1}]
    offsets = [MIXED.index(b"not JSON"), MIXED.rindex(b'{"type":"user')]
    [file] = report["files"]
    reasons = [bad.pop("reason") for bad in file["invalid_lines"]]
    assert reasons[0] == "not JSON: Expecting value at character 0 of the line"
    assert reasons[1].startswith("truncated: not JSON: ")
    assert file == {
        "path": "-",
        "dialect": "stream",
        **shared,
        "unknown": [a | b for a, b in zip(unknown, counts, strict=True)],
        "invalid_lines": [
            {"line": 3, "offset": offsets[0], "length": len(f"not JSON {SECRET}"), "kind": "not_json"},
            {"line": 7, "offset": offsets[1], "length": len('{"type":"user'), "kind": "truncated"},
        ],
    }
    assert report == {
        "files": [file],
        "total": {**shared, "unknown": [a | b | {"first_path": "-"} for a, b in zip(unknown, counts, strict=True)]},
        "protocol": PROTOCOL_VERSION,
    }


@pytest.mark.parametrize("arguments", [["-"], ["--json", "-"]], ids=" ".join)
def test_json_or_text_the_exit_code_is_the_same(arguments: list[str]) -> None:
    assert check(*arguments, stdin=MIXED).exit_code == 1
    assert check(*arguments, stdin=line(USER)).exit_code == 0


@pytest.mark.parametrize("arguments", [["-"], ["--json", "-"]], ids=" ".join)
def test_a_note_says_that_no_line_is_a_message(arguments: list[str]) -> None:
    done = check(*arguments, stdin=b"<!doctype html>\n<p>\n")
    assert (done.exit_code, done.stderr) == (1, "note: the input has no messages; is it a recording?\n")
    assert check(*arguments, stdin=MIXED).stderr == ""


@pytest.mark.parametrize("arguments", [["-"], ["--json", "-"]], ids=" ".join)
def test_content_of_lines_is_never_printed(arguments: list[str]) -> None:
    done = check(*arguments, stdin=MIXED)
    assert SECRET not in done.stdout + done.stderr


def test_several_files_have_a_section_each_and_a_total(tmp_path: Path) -> None:
    one, two = tmp_path / "one.ndjson", tmp_path / "two.ndjson"
    one.write_bytes(line(USER))
    two.write_bytes(line(USER) + line({**USER, "zzz": 1}))
    done = check(str(one), str(two), "-", stdin=b"x\n")
    assert done.exit_code == 1
    sections = done.stdout.split("\n\n")
    assert [section.partition("\n")[0] for section in sections] == [
        f"{one}:",
        f"{two}:",
        "standard input:",
        "all 3 files:",
    ]
    assert sections[2].splitlines()[1].startswith("  line 1, byte 0: ")
    assert "4 lines" in sections[3]
    assert "3 messages, 1 invalid" in sections[3]
    assert f"1 x field user.zzz (first in {two}, line 2)" in sections[3]


def test_one_file_has_no_total() -> None:
    assert "all" not in check("-", stdin=line(USER)).stdout


def test_names_are_shown_as_they_are_without_markup_or_escapes(tmp_path: Path) -> None:
    file = tmp_path / "[bold]:smile:.ndjson"
    file.write_bytes(line({"type": "[red]a[/red]\x1b[31m:smile:"}) + line({**USER, "[/]": 1, "[link=x]": 1}))
    done = check(str(file))
    assert done.exit_code == 0
    assert f"{file}:\n" in done.stdout
    assert 'type "[red]a[/red]\\x1b[31m:smile:"' in done.stdout
    assert "field user.[/]" in done.stdout
    assert "field user.[link=x]" in done.stdout
    assert "\x1b" not in done.stdout


def test_long_names_are_cut() -> None:
    done = check("-", stdin=line({"type": "a" * 10_000, "b" * 10_000: 1}))
    assert "a" * (NAME_CHARS - 1) + "…" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 2 * NAME_CHARS


def test_reading_is_in_pieces_of_64_kib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sizes: list[int] = []

    class Watched(Survey):
        def feed(self, data: bytes) -> None:
            sizes.append(len(data))
            super().feed(data)

    monkeypatch.setattr(check_module, "Survey", Watched)
    file = tmp_path / "recording.ndjson"
    file.write_bytes(line(USER) * 3000)
    assert check(str(file)).exit_code == 0
    assert sum(sizes) == file.stat().st_size
    assert max(sizes) == 64 * 1024


def test_missing_file_ends_with_2_before_anything_is_read(tmp_path: Path) -> None:
    done = check("-", str(tmp_path / "missing"), stdin=b"x\n")
    assert done.exit_code == 2
    assert "does not exist" in done.stderr
    assert done.stdout == ""


def test_directory_that_is_no_recording_ends_with_2(tmp_path: Path) -> None:
    done = check(str(tmp_path))
    assert done.exit_code == 2
    assert f"Error: {tmp_path} cannot be read: " in done.stderr
    assert done.stdout == ""


ASKED = {"type": "control_request", "request_id": "r1", "request": {"subtype": "mcp_status"}}


def answered(payload: dict[str, Any] | None, request_id: str = "r1") -> bytes:
    response = {"subtype": "success", "request_id": request_id, "response": payload}
    return line({"type": "control_response", "response": response})


def test_an_answer_is_compared_with_the_class_that_its_request_tells(tmp_path: Path) -> None:
    server = {"name": SECRET, "status": "connected", "zzz": SECRET}
    stdout = answered({"mcpServers": [server, server], "top": SECRET}) + answered({"mcpServers": [{"name": 5}]})
    stdout += answered(None) + answered({"other": 1}, "r2")
    files = {"stdin.ndjson": b"no JSON\n" + line(ASKED), "stdout.ndjson": stdout}
    folder = Recording.from_files(files).save(tmp_path / "folder").path
    for done in (check(str(folder)), check("-", stdin=line(ASKED) + stdout)):
        assert SECRET not in done.stdout
        said = done.stdout.partition("not known to this version")[2].splitlines()[1:]
        assert [each.partition(" (first in")[0].strip() for each in said] == [
            '1 x answer "mcp_status" at answer.mcp_status: the payload does not fit: '
            "expected a string, got a number at $.mcpServers[].name",
            "2 x field answer.mcp_status.mcpServers[].zzz",
            "1 x field answer.mcp_status.top",
        ]
    assert "not known" not in check("-", stdin=stdout).stdout


def test_requests_that_are_known_have_a_bound() -> None:
    requests = Requests()
    for number in range(MAX_ASKED + 1):
        requests.note(ControlRequest(request_id=f"r{number}", request=McpStatusRequest()))
    requests.note(ControlRequest(request_id="x" * (MAX_ID + 1), request=McpStatusRequest()))
    answers = [decode(answered({"top": 1}, name)) for name in ("r0", "r1", "x" * (MAX_ID + 1))]
    found = [bool(list(requests.find_unknown(answer))) for answer in answers if isinstance(answer, ControlResponse)]
    assert found == [False, True, False]


def test_recording_and_compressed_file_are_checked_as_the_file_is(tmp_path: Path) -> None:
    recording = load("15_subagent_partial")
    plain, packed = tmp_path / "plain", tmp_path / "packed.gz"
    plain.write_bytes(recording.stdout)
    packed.write_bytes(gzip.compress(recording.stdout))
    folder = Recording.from_files(recording.files).save(tmp_path / "folder").path
    assert folder is not None
    files = check_json(str(plain), str(packed), folder)["files"]
    assert [file.pop("path") for file in files] == [str(plain), str(packed), folder]
    assert files[0]["messages"] > 0
    assert files[0] == files[1] == files[2]


def test_file_that_fails_while_it_is_read_ends_with_2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Broken(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().readinto(buffer)

    monkeypatch.setattr(sources_module, "open", lambda source, mode: io.BufferedReader(Broken(source)), raising=False)
    file = tmp_path / "recording.ndjson"
    file.write_bytes(b"x\n")
    done = check(str(file))
    assert done.exit_code == 2
    assert "line 1, byte 0: " in done.stdout
    assert f"Error: {file} cannot be read: Input/output error" in done.stderr


def test_piped_input_is_reported_while_it_comes() -> None:
    with subprocess.Popen([*COMMAND, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"standard input:\n"
        # Standard input is still open, because the report does not wait for its end.
        assert process.stdout.readline().startswith(b"  line 1, byte 0: not JSON")
        process.stdin.write(line(USER))
        process.stdin.close()
        assert b"2 lines" in process.stdout.read()
        assert process.wait(60) == 1


def test_only_plain_files_have_a_known_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("recording.ndjson", "recording.ndjson.gz"):
        (tmp_path / name).write_bytes(b"12345")
    assert known_size(str(tmp_path / "recording.ndjson")) == 5
    assert known_size(str(tmp_path / "recording.ndjson.gz")) == 0
    assert known_size(str(tmp_path)) == 0
    reading, writing = os.pipe()
    os.write(writing, b"12345")
    with open(reading) as pipe, open(writing, "wb"):
        monkeypatch.setattr(sys, "stdin", pipe)
        assert known_size("-") == 0
    with (tmp_path / "recording.ndjson").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert known_size("-") == 5


def test_most_findings_of_the_survey_is_what_the_report_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_module, "MAX_FINDINGS", 1)
    done = check("-", stdin=line({**USER, "a": 1, "b": 1, "c": 1}))
    assert "field user.a" in done.stdout
    assert "2 x others" in done.stdout
    assert check_json("-", stdin=line({**USER, "a": 1, "b": 1}))["files"][0]["unknown_not_listed"] == 1
