"""``claude-wire sessions`` and ``search`` list and search transcripts, and print the command that resumes each."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import Result

from claude_wire.transcripts import find_sessions
from claude_wire_kit.commands.app import cli
from claude_wire_kit.commands.sessions import resume_command
from claude_wire_kit.survey.search import BLOCK_BYTES, Pattern, said_in
from claude_wire_kit.terminal.columns import cell_count
from cli_lines import line
from screens import PATIENCE, Screen, terminal_environment
from sessions import scenarios, unpack
from shown import RUNNER

COMMAND = [sys.executable, "-m", "claude_wire_kit"]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("everything")
    for scenario in scenarios():
        unpack(scenario, folder)
    for number, path in enumerate(sorted((folder / "projects").glob("*/*.jsonl"))):
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder / "projects"


def run(*arguments: object) -> Result:
    return RUNNER.invoke(cli, list(map(str, arguments)))


def shown(*arguments: object) -> str:
    done = run(*arguments)
    assert (done.exit_code, done.stderr) == (0, ""), done
    return done.stdout


def record(type: str, content: Any, **others: Any) -> bytes:
    message = {"role": type, "content": content}
    base = {"type": type, "uuid": f"{others}{content}", "parentUuid": None, "sessionId": "s", "cwd": "/home/user"}
    return line({**base, "timestamp": "2026-01-02T03:04:05Z", "message": message, **others})


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_the_sessions_changed_last_come_first_and_each_can_be_gone_on_with(everything: Path) -> None:
    known = {each.id: each for each in find_sessions(everything)}
    newest = sorted(known.values(), key=lambda each: each.path, reverse=True)
    for count in (1, 5, 20):
        resumed = re.findall(r"^  cd (\S+) && claude --resume (\S+)$", shown("sessions", everything, "-n", count), re.M)
        assert resumed == [(each.project, each.id) for each in newest[:count]]
    assert shown("sessions", everything).count("--resume") == 20
    assert shown("sessions", everything, "--all").count("--resume") == len(known)


def test_sessions_come_by_the_time_that_is_shown(everything: Path, tmp_path: Path) -> None:
    """The order uses the times in the transcripts, because copied files have new modification times."""
    sessions = sorted(everything.glob("*/*.jsonl"))
    for number, path in enumerate(sessions):
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        os.utime(copy, (2_000_000_000 + number, 2_000_000_000 + number))
    found = json.loads(shown("sessions", "--json", "--all", tmp_path))["sessions"]
    ended = [each["ended"] for each in found]
    assert len(ended) == len(sessions)
    assert ended == sorted(ended, reverse=True)
    assert len(set(ended)) > 10


def test_no_session_is_called_by_markup(everything: Path) -> None:
    for arguments in ((), ("--json",)):
        output = shown("sessions", "--all", *arguments, everything)
        assert "<command-" not in output
        assert "/greet" in output


def test_json_has_all_that_is_known(everything: Path) -> None:
    found = json.loads(shown("sessions", "--json", "--all", everything.parent))["sessions"]
    for said, known in zip(found, find_sessions(everything, newest_first=True), strict=True):
        times = {name: getattr(known, name).isoformat(timespec="microseconds") for name in ("started", "ended")}
        resume = f"cd {known.project} && claude --resume {known.id}"
        assert said.pop("goes_soon")
        assert datetime.fromisoformat(said.pop("kept_until")).timestamp() == known.path.stat().st_mtime + 30 * DAY
        half = re.compile("[\ud800-\udfff]")
        fields = {name: half.sub("\ufffd", it) if isinstance(it, str) else it for name, it in known._asdict().items()}
        assert said.pop("bytes") == fields.pop("size")
        assert said == {**fields, **times, "path": str(known.path), "resume": resume}


def test_the_sessions_of_a_project_are_those_that_began_there(everything: Path, tmp_path: Path) -> None:
    found = json.loads(shown("sessions", "--json", "--project", "/home/user/src/two_folders/../x", everything))[
        "sessions"
    ]
    assert {each["project"] for each in found} == {"/home/user/src/x"}
    assert len(found) == 1
    # The CLI keeps the projects a_b and a-b in the same folder.
    (tmp_path / "-home-a-b").mkdir()
    for name in ("a_b", "a-b"):
        (tmp_path / "-home-a-b" / f"{name}.jsonl").write_bytes(record("user", "hi", cwd=f"/home/{name}"))
    found = json.loads(shown("sessions", "--json", "--project", "/home/a_b", tmp_path))["sessions"]
    assert [each["id"] for each in found] == ["a_b"]
    done = run("sessions", "--project", "/nowhere", tmp_path)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"note: no sessions found in {tmp_path}\n"


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678000+00:00"),
        ("2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05.000000+00:00"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05.000000+00:00"),
        ("soon", None),
    ],
)
def test_json_has_every_time_in_one_format(tmp_path: Path, stamp: str, time: str | None) -> None:
    (tmp_path / "s.jsonl").write_bytes(record("user", "needle", timestamp=stamp))
    (found,) = json.loads(run("search", "--json", "needle", tmp_path).stdout)["sessions"]
    assert (found["started"], found["ended"], found["matches"][0]["time"]) == (time, time, time)


def test_days_and_projects_narrow_what_is_listed_and_searched(tmp_path: Path) -> None:
    for name, days in (("one", ["01", "03"]), ("two", ["05"])):
        project = f"/home/{name}"
        (tmp_path / project.replace("/", "-")).mkdir()
        records = [
            record("user", f"needle {day}", cwd=project, timestamp=f"2026-05-{day}T12:00:00Z", uuid=day) for day in days
        ]
        (tmp_path / project.replace("/", "-") / f"{name}.jsonl").write_bytes(b"".join(records))

    def listed(*arguments: str) -> set[str]:
        return {each["id"] for each in json.loads(run("sessions", "--json", *arguments, tmp_path).stdout)["sessions"]}

    def matches(*arguments: str) -> set[str]:
        found = json.loads(run("search", "--json", "needle", tmp_path, *arguments).stdout)["sessions"]
        return {match["after"].strip() for each in found for match in each["matches"]}

    for arguments, sessions, texts in (
        ([], {"one", "two"}, {"01", "03", "05"}),
        (["--since", "2026-05-02"], {"one", "two"}, {"03", "05"}),
        (["--until", "2026-05-02"], {"one"}, {"01"}),
        (["--since", "2026-05-02", "--until", "2026-05-02"], {"one"}, set()),
        (["--since", "2026-05-04", "--until", "2026-05-05"], {"two"}, {"05"}),
        (["--since", "2000-01-01", "--project", "/home/one"], {"one"}, {"01", "03"}),
        (["--project", "/home/three"], set(), set()),
        (["--since", "0d"], set(), set()),
    ):
        assert (listed(*arguments), matches(*arguments)) == (sessions, texts)
    for command in (["sessions"], ["search", "needle"]):
        done = run(*command, tmp_path, "--since", "2026-05-02", "--until", "2026-05-01")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "--since 2026-05-02 is after --until 2026-05-01" in done.stderr


def test_arguments_of_a_search_in_the_wrong_order_are_put_right(tmp_path: Path) -> None:
    (tmp_path / "my sessions").mkdir()
    done = run("search", tmp_path / "my sessions", "a haiku")
    assert (done.exit_code, done.stdout) == (2, "")
    advice = f"Error: PATTERN comes before FOLDER: claude-wire search 'a haiku' '{tmp_path / 'my sessions'}'\n"
    assert done.stderr.endswith(advice)
    assert "Directory 'nowhere' does not exist" in run("search", "text", "nowhere").stderr


def test_a_shell_takes_the_command_whatever_the_names_are(tmp_path: Path) -> None:
    for project, session in (("/home/it's; rm -rf $HOME", "x-"), ("/home/日本", "a b")):
        words = shlex.split(resume_command(session, project))
        assert words == ["cd", project, "&&", "claude", "--resume", session]
    assert resume_command("s", None) == "claude --resume s"
    assert resume_command("--fork-session", "-P") == "cd -- -P && claude --resume=--fork-session"
    strange = "/a\x1b[2J\n\u202eü"
    assert shlex.split(resume_command("s", strange))[1] == strange
    (tmp_path / "s.jsonl").write_bytes(record("user", "red \x1b[31m\nnext", cwd="/a\x1b[2J"))
    for output in (shown("sessions", tmp_path), shown("search", "red", tmp_path)):
        assert "\x1b" not in output
        assert "red \\x1b[31m next" in output
        assert "  cd '/a\\x1b[2J' && claude --resume s\n" in output


def test_json_has_commands_and_paths_for_programs(tmp_path: Path) -> None:
    """Paths in the JSON have only JSON's own escapes, and ``os.fsencode`` restores bytes that are not UTF-8."""
    folder = tmp_path / os.fsdecode(b"p\xff\n\xc3\xbc")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has names of UTF-8 alone")
    project = "/a\x1b[2J\nü"
    (folder / "s.jsonl").write_bytes(record("user", "needle", cwd=project))
    for arguments in (("sessions",), ("search", "needle")):
        output = shown(*arguments, "--json", tmp_path)
        assert output.rstrip("\n").isascii()
        (session,) = json.loads(output)["sessions"]
        assert shlex.split(session["resume"]) == ["cd", project, "&&", "claude", "--resume", "s"]
        assert os.fsencode(session["path"]) == os.fsencode(folder / "s.jsonl")


DAY = 24 * 60 * 60


@pytest.mark.parametrize(
    ("settings", "days"),
    [
        (None, 30),
        ({}, 30),
        ({"cleanupPeriodDays": 10}, 10),
        ({"cleanupPeriodDays": 1.0}, 1),
        # With these values the CLI deletes nothing, or only at a date beyond the calendar.
        ({"cleanupPeriodDays": 10**9}, None),
        ({"cleanupPeriodDays": 0.5}, None),
        ({"cleanupPeriodDays": 0}, None),
        ({"cleanupPeriodDays": "30"}, None),
        ({"cleanupPeriodDays": True}, None),
        ({"cleanupPeriodDays": -1}, None),
        ([], None),
        ("{", None),
        ("", None),
    ],
)
def test_sessions_that_the_cli_will_delete_within_a_week_are_marked(
    settings: object, days: float | None, tmp_path: Path
) -> None:
    own = tmp_path / "projects" / "-home-user"
    own.mkdir(parents=True)
    if settings is not None:
        text = settings if isinstance(settings, str) else json.dumps(settings)
        (tmp_path / "settings.json").write_text(text)
    now = time.time()
    # The days until the CLI deletes each file. The CLI goes by the file's modification time, not by its contents.
    left = {"soon": 6.9, "later": 7.1, "over": -0.1}
    for name, rest in left.items():
        (own / f"{name}.jsonl").write_bytes(record("user", "hi"))
        changed = now + (rest - (days or 0)) * DAY
        os.utime(own / f"{name}.jsonl", (changed, changed))
    for folder in (tmp_path, own.parent, own):
        found = {each["id"]: each for each in json.loads(shown("sessions", "--json", folder))["sessions"]}
        assert found.keys() == left.keys()
        soon = {name for name, each in found.items() if each["goes_soon"]}
        assert soon == ({"soon", "over"} if days is not None else set())
        for name, rest in left.items():
            end = found[name]["kept_until"]
            assert (end is None) is (days is None)
            assert end is None or datetime.fromisoformat(end).timestamp() == pytest.approx(now + rest * DAY, abs=1)
        output = shown("sessions", folder)
        assert output.count("the CLI deletes this session when it starts after ") == (days is not None)
        assert output.count("the CLI deletes this session at its next start\n") == (days is not None)


def test_sessions_outside_of_the_folder_of_the_cli_are_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(record("user", "hi"))
    os.utime(tmp_path / "s.jsonl", (1, 1))
    (session,) = json.loads(shown("sessions", "--json", tmp_path))["sessions"]
    assert (session["kept_until"], session["goes_soon"]) == (None, False)
    assert "deletes" not in shown("sessions", tmp_path)


# --- search -----------------------------------------------------------------------------------------------------------


def found(*arguments: object) -> list[dict[str, Any]]:
    done = run("search", "--json", *arguments)
    sessions: list[dict[str, Any]] = json.loads(done.stdout)["sessions"]
    assert done.exit_code == (not sessions)
    return sessions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "echo needle"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a needle\nfell"}]}
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "s.jsonl").write_bytes(
        record("user", "find the Needle")
        + record("assistant", [{"type": "thinking", "thinking": "needle?", "signature": ""}])
        + record("assistant", [call])
        + record("user", [result])
        + record("assistant", [{"type": "text", "text": "The needle is there."}])
        + b'{"torn needle\n'
        + line({"type": "last-prompt", "lastPrompt": "needle", "sessionId": "s"})
    )
    subagents = tmp_path / "p" / "s" / "subagents"
    subagents.mkdir(parents=True)
    (subagents / "agent-a.jsonl").write_bytes(record("assistant", [{"type": "text", "text": "hay"}], isSidechain=True))
    return tmp_path


def test_a_pattern_is_found_in_all_that_was_said(folder: Path) -> None:
    (session,) = found("needle", folder, "-m", 10)
    assert [(each["role"], each["tool"], each["match"]) for each in session["matches"]] == [
        ("thinking", None, "needle"),
        ("tool", "Bash", "needle"),
        ("tool", "Bash", "needle"),
        ("assistant", None, "needle"),
    ]
    (of_all,) = found("needle", folder)
    assert (len(of_all["matches"]), of_all["more"]) == (3, 1)
    assert of_all["matches"][2]["before"] + "|" + of_all["matches"][2]["after"] == "a |\nfell"
    assert of_all["resume"] == "cd /home/user && claude --resume s"


def test_a_prompt_that_was_sent_during_a_turn_is_found(everything: Path) -> None:
    for pattern in ("fold me into", "and a picture"):
        (session,) = found(pattern, everything)
        assert [each["role"] for each in session["matches"]] == ["user"]
        assert len(found(pattern, everything, "--role", "user")) == 1


def test_roles_tools_and_case_narrow_or_widen_it(folder: Path) -> None:
    def roles(*arguments: object) -> list[str]:
        return [each["role"] for session in found(*arguments, folder, "-m", 10) for each in session["matches"]]

    assert roles("needle", "--role", "user") == []
    assert roles("needle", "--role", "user", "-i") == ["user"]
    assert roles("needle", "--role", "assistant", "--role", "thinking") == ["thinking", "assistant"]
    assert roles("needle", "--tool", "Bash") == roles("needle", "--role", "tool") == ["tool", "tool"]
    assert roles("needle", "--tool", "Read") == []
    assert roles("n..dle.fell") == []
    assert roles("(?s)n..dle.fell") == ["tool"]
    assert roles("needle?", "-F") == ["thinking"]
    assert roles("hay") == ["assistant"]


def test_the_end_of_a_match_is_the_command_that_goes_on(folder: Path) -> None:
    rows = shown("search", "needle", folder).splitlines()
    assert rows[1:] == [
        "  thinking: needle?",
        '  Bash: {"command": "echo needle"}',
        "  Bash: a needle fell",
        "  … 1 more",
        "  cd /home/user && claude --resume s",
    ]
    done = run("search", "nothing of this", folder)
    assert (done.exit_code, done.stdout) == (1, "")
    for wrong in ("(", "a{99999999999}", "?", ""):
        done = run("search", wrong, folder)
        assert done.exit_code == 2
        assert "PATTERN" in done.stderr


@pytest.mark.parametrize("pattern", ["file", "Read", "[Ee]rror", "sub result", "line2"])
def test_what_is_skipped_unread_has_no_match(pattern: str, everything: Path) -> None:
    wanted = Pattern.of(pattern)
    assert bool(wanted.bytes) == ("[" not in pattern)
    some = 0
    for path in everything.rglob("*.jsonl"):
        has = any(wanted.search(said.text) for said in said_in(path))
        some += has
        assert wanted.may_be_in(path) >= has
    assert some


def test_a_text_across_two_blocks_is_found(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    wanted = Pattern.of("needle")
    for before in range(BLOCK_BYTES - 8, BLOCK_BYTES + 2):
        path.write_bytes(b"x" * before + b"needle")
        assert wanted.may_be_in(path)
    path.write_bytes(b"need" + b"x" * BLOCK_BYTES + b"le")
    assert not wanted.may_be_in(path)


def test_what_is_no_file_makes_nobody_wait(folder: Path) -> None:
    os.mkfifo(folder / "p" / "fifo.jsonl")
    os.mkfifo(folder / "p" / "s" / "subagents" / "agent-b.jsonl")
    done = run("search", "hay", folder, "-n", 5)
    assert done.exit_code == 0
    assert "claude --resume s" in done.stdout
    assert done.stderr.count("cannot be read") == 2


# --- what a terminal shows --------------------------------------------------------------------------------------------


def rows(columns: int, *arguments: object) -> list[str]:
    screen = Screen(columns)
    environment = terminal_environment(PYTHONIOENCODING="utf-8")
    command = [*COMMAND, *map(str, arguments)]
    with subprocess.Popen(command, stdout=screen.terminal, stderr=screen.terminal, env=environment) as process:
        os.close(screen.terminal)
        while screen.read():
            pass
        assert process.wait(PATIENCE) == 0
    screen.close()
    return screen.rows()


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize(
    "command", [["sessions", "--all"], ["search", "e", "-n", "99"], ["search", "日本|é|line", "-i"]]
)
def test_rows_fit_a_terminal_and_commands_stay_whole(command: list[str], width: int, everything: Path) -> None:
    found = rows(width, *command, everything)
    assert [row for row in found if cell_count(row) > width and "claude --resume" not in row] == []
    for row in found:
        if "claude --resume" in row:
            assert shlex.split(row)[::2] == ["cd", "&&", "--resume"]
    assert sum("claude --resume" in row for row in found) > 1
