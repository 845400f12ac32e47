"""``--json`` has the keys that the documentation lists, and a key means the same in each command."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

import json_forms
from claude_wire_kit.commands.app import cli
from claude_wire_kit.commands.supervisor.table import session_as_json
from claude_wire_kit.supervisor.frames import Life, SessionInfo
from cli_lines import line
from recordings import load
from sessions import unpack
from shown import RUNNER

#: Keys whose value is a dict from names (such as a model or a tool) to values.
BY_NAME = {"models", "costs", "rows", "kinds", "tools", "failed"}
TIMES = {"started", "ended", "kept_until", "time"}


def documented(command: str) -> set[str]:
    return set(re.findall(r'"(\w+)": ', json_forms.form(command)))


def items(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield all keys in a JSON value with their values, but not the names in dicts of BY_NAME."""
    if isinstance(value, list):
        for each in value:
            yield from items(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key, each
            yield from items(list(each.values()) if key in BY_NAME and isinstance(each, dict) else each)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("json")
    projects = unpack("subagent_background", folder)
    recording = folder / "recording.ndjson"
    unknown = line({"type": "user", "message": {"role": "user", "content": "x"}, "zzz": 1})
    recording.write_bytes(load("15_subagent_partial").stdout + unknown + b"no JSON\n")
    commands = {
        "usage": [str(projects)],
        "sessions": [str(projects)],
        "search": ["e", str(projects)],
        "check": [str(recording)],
        "stats": [str(recording)],
        "conform": ["--only", "prompt", "--", "true"],
    }
    found = {name: RUNNER.invoke(cli, [name, "--json", *arguments]).stdout for name, arguments in commands.items()}
    session = SessionInfo(
        id="a",
        name="n",
        life=Life.IDLE,
        cwd="/",
        epoch=1,
        line=1,
        pid=1,
        cli_session_id="c",
        began=1.5,
        clients=0,
        driver=False,
        bytes=1,
    )
    ps = {"supervisor": {"pid": 1, "package": "0", "version": 1}, "sessions": [session_as_json(session)]}
    return {**{name: json.loads(output) for name, output in found.items()}, "supervisor ps": ps}


@pytest.mark.parametrize("command", json_forms.COMMANDS)
def test_the_page_has_the_keys_of_each_command(command: str, outputs: dict[str, Any]) -> None:
    keys = {key for key, _ in items(outputs[command])}
    wanted = documented(command)
    if command == "search":
        wanted |= documented("sessions") - {"kept_until", "goes_soon"}
    if command == "check":
        wanted |= {"first_path"}
    assert keys == wanted


def test_times_have_one_format_and_costs_are_called_usd(outputs: dict[str, Any]) -> None:
    found = [(key, value) for output in outputs.values() for key, value in items(output)]
    times = [value for key, value in found if key in TIMES and value]
    assert {key for key, value in found if key in TIMES and value} == TIMES
    assert [time for time in times if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", time)] == []
    assert [key for key, _ in found if "cost_usd" in key or key in ("began", "file", "size", "input", "output")] == []


@pytest.mark.parametrize("command", [["usage"], ["sessions"], ["search", "x"]], ids=" ".join)
def test_one_kind_of_output_is_printed(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b"")
    done = RUNNER.invoke(cli, [*command, "--json", "--csv", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--json and --csv exclude each other" in done.stderr


@pytest.mark.parametrize("command", [["sessions"], ["search", "e"]], ids=" ".join)
def test_csv_has_the_keys_and_the_values_of_json(command: list[str], tmp_path: Path) -> None:
    projects = str(unpack("subagent_background", tmp_path))
    sessions = json.loads(RUNNER.invoke(cli, [*command, "--json", projects]).stdout)["sessions"]
    rows = list(csv.DictReader(io.StringIO(RUNNER.invoke(cli, [*command, "--csv", projects]).stdout)))
    wanted = [{**session, **match} for session in sessions for match in session.get("matches", [{}])]
    assert len(rows) == len(wanted) > 0
    for row, values in zip(rows, wanted, strict=True):
        values.pop("matches", None)
        assert row.keys() == values.keys()
        for key, value in values.items():
            assert row[key] == ("" if value is None else str(value).lower() if value is False else str(value)), key


@pytest.mark.parametrize("command", [["sessions"], ["search", "red"]], ids=" ".join)
def test_csv_shows_invisible_characters_and_names_that_are_not_utf_8(command: list[str], tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    prompt = "red \x1b[31m, half \ud83d"
    record = {"type": "user", "sessionId": "a", "uuid": "1", "message": {"role": "user", "content": prompt}}
    (folder / "a.jsonl").write_bytes(line(record))
    program = [sys.executable, "-m", "claude_wire_kit", *command, "--csv", os.fspath(tmp_path)]
    done = subprocess.run(program, capture_output=True, encoding="utf-8", timeout=60, check=True)
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert row["first_prompt"] == "red \\x1b[31m, half \N{REPLACEMENT CHARACTER}"
    assert row["path"].endswith("/\N{REPLACEMENT CHARACTER}/a.jsonl")


@pytest.mark.parametrize("command", [["sessions"], ["search", "half"]])
def test_the_strictest_reader_takes_a_session_with_half_an_emoji(tmp_path: Path, command: list[str]) -> None:
    prompt = "half \ud83d, whole \U0001f600, written \\ud83d"
    record = {"type": "user", "sessionId": "a", "uuid": "1", "message": {"role": "user", "content": prompt}}
    (tmp_path / "a.jsonl").write_bytes(line(record))
    done = RUNNER.invoke(cli, [*command, "--json", str(tmp_path)])
    [session] = msgspec.json.decode(done.stdout)["sessions"]  # msgspec refuses a lone surrogate
    assert session["first_prompt"] == prompt.replace("\ud83d", "\N{REPLACEMENT CHARACTER}")
