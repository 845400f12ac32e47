"""``claude-wire replay`` plays a recording as a fake CLI, like :mod:`claude_wire.testing`."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

import recordings
from claude_wire.testing import Recording
from claude_wire_kit.commands.app import cli
from shown import RUNNER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a process becomes another on POSIX only")

COMMAND = [sys.executable, "-m", "claude_wire_kit", "replay"]

ASKING = recordings.load("05_perm_allow_deny")
ONE_SHOT = recordings.load("09_err400")


@pytest.fixture
def asking(tmp_path: Path) -> str:
    return Recording.from_files(ASKING.files).save(tmp_path / "asking").path or ""


@pytest.fixture
def one_shot(tmp_path: Path) -> str:
    return Recording.from_files(ONE_SHOT.files).save(tmp_path / "one_shot").path or ""


def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *arguments], input=stdin, capture_output=True, timeout=60, check=False)


def test_recording_is_played_with_its_exit_code(one_shot: str, asking: str) -> None:
    done = run(one_shot)
    assert (done.stdout, done.stderr, done.returncode) == (ONE_SHOT.stdout, b"", 1)
    assert run(asking, stdin=ASKING.stdin).stdout == ASKING.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_written_ends_it_with_2_and_one_line(one_shot: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, one_shot], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == b"Error: the output cannot be written: No space left on device\n"


def test_plain_file_is_a_recording(tmp_path: Path) -> None:
    file = tmp_path / "recorded.ndjson"
    file.write_bytes(ONE_SHOT.stdout)
    done = run(str(file))
    assert (done.stdout, done.returncode) == (ONE_SHOT.stdout, 0)


def test_a_note_says_that_no_line_is_a_message(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(b"<!doctype html>\n<p>\n")
    done = run(str(file))
    assert (done.stdout, done.returncode) == (file.read_bytes(), 0)
    assert done.stderr == b"note: the input has no messages; is it a recording?\n"


def test_a_recording_without_output_gets_no_note(tmp_path: Path) -> None:
    file = tmp_path / "nothing.ndjson"
    file.write_bytes(b"")
    assert run(str(file)).stderr == b""


def test_command_becomes_the_player(asking: str) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, asking], stdin=pipe, stdout=pipe, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(ASKING.stdin.splitlines(keepends=True)[0])
        assert process.stdout.readline() == ASKING.stdout.splitlines(keepends=True)[0]
        process.terminate()  # replay starts no child process
        assert process.wait(60) == 143
        assert process.stdout.read() == b""


def test_flags_of_the_cli_come_after_two_dashes(one_shot: str, asking: str) -> None:
    assert run(asking, "--", "-p", "--output-format", "stream-json", "hello").stdout == ASKING.stdout
    assert run(one_shot, "--", "--version").stdout == b"2.1.330 (Claude Code)\n"


def test_terminal_is_not_waited_for(asking: str) -> None:
    terminal, child = os.openpty()
    try:
        done = subprocess.run([*COMMAND, asking], stdin=child, capture_output=True, timeout=60, check=False)
    finally:
        os.close(terminal)
        os.close(child)
    assert done.stdout == ASKING.stdout


def test_without_standard_input_nothing_is_waited_for(asking: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" <&-', "sh", *COMMAND, asking], capture_output=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (ASKING.stdout, b"")


def test_no_wait(asking: str) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, asking, "--no-wait"], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.read() == ASKING.stdout  # although its standard input is still open
        assert process.wait(60) == 0


def test_script_is_written_and_nothing_played(asking: str, tmp_path: Path) -> None:
    path = tmp_path / "claude"
    done = run(asking, "--script", str(path), "--garbage-before", "1", stdin=ASKING.stdin)
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    played = subprocess.run([str(path)], input=ASKING.stdin, capture_output=True, timeout=60, check=False).stdout
    assert played == b"This line is not JSON.\n" + ASKING.stdout


def test_speed_and_writes_are_passed_on(one_shot: str) -> None:
    assert run(one_shot, "--speed", "1000", "--writes", "bytes").stdout == ONE_SHOT.stdout


KEEP_ALIVE = b'{"type":"keep_alive"}\n'
GARBAGE = b"This line is not JSON.\n"
FIRST = ONE_SHOT.stdout.index(b"\n") + 1


@pytest.mark.parametrize(
    ("options", "stdout", "code"),
    [
        ("--cut-at 100 7", ONE_SHOT.stdout[:100], 7),
        ("--kill-at 100", ONE_SHOT.stdout[:100], -signal.SIGKILL),
        ("--stall-at 100 0.01 --stall-before 2 0.01 --stall-before 1 0.01", ONE_SHOT.stdout, 1),
        ("--garbage-before 1", GARBAGE + ONE_SHOT.stdout, 1),
        ("--garbage-before 2 --kill-at 3000", ONE_SHOT.stdout[:FIRST] + GARBAGE + ONE_SHOT.stdout[FIRST:3000], -9),
        ("--ignore-term 0.01", ONE_SHOT.stdout, 1),
        ("--hold-stdout 0.01", ONE_SHOT.stdout, 1),
        ("--close-stdout 0.01", ONE_SHOT.stdout, 1),
        ("--exit-at-once 9", b"", 9),
        ("--write-first 44", KEEP_ALIVE * 2 + ONE_SHOT.stdout, 1),
        ("--silence 0.01", b"", 1),
        ("--give-up 60", ONE_SHOT.stdout, 1),
    ],
)
def test_faults_are_options(options: str, stdout: bytes, code: int, one_shot: str) -> None:
    done = run(one_shot, *options.split())
    assert (done.stdout, done.stderr, done.returncode) == (stdout, b"", code)


def test_flood_of_stderr(one_shot: str) -> None:
    done = run(one_shot, "--flood-stderr", "200000")
    assert (done.stdout, len(done.stderr)) == (ONE_SHOT.stdout, 200_000)


@pytest.mark.parametrize(
    "options",
    [
        "--speed 0",
        "--speed x",
        "--writes words",
        "--cut-at 5",
        "--cut-at 1000000 0",
        "--garbage-before 0",
        "--write-first 1",
        "--silence -1",
        "--stall-at 0 nan",
        "--exit-at-once 256",
    ],
)
def test_wrong_option_is_wrong_usage(options: str, one_shot: str) -> None:
    done = RUNNER.invoke(cli, ["replay", one_shot, *options.split()])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Error: " in done.stderr


@pytest.mark.parametrize(("option", "values"), [("--cut-at=5", "BYTE CODE"), ("--stall-at=5", "BYTE SECONDS")])
def test_the_error_for_a_missing_value_names_the_values(option: str, values: str) -> None:
    done = RUNNER.invoke(cli, ["replay", option])
    name = option.partition("=")[0]
    assert done.stderr.endswith(f"Error: Option '{name}' requires 2 arguments: {values}.\n")


def test_what_is_no_recording_ends_with_2(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        done = run(str(path))
        assert (done.stdout, done.returncode) == (b"", 2)
        assert str(path).encode() in done.stderr
    (tmp_path / "damaged.gz").write_bytes(b"no gzip")
    assert run(str(tmp_path / "damaged.gz")).returncode == 2


def test_script_that_cannot_be_written_ends_with_2(one_shot: str, tmp_path: Path) -> None:
    done = run(one_shot, "--script", str(tmp_path / "nowhere" / "claude"))
    assert done.returncode == 2
    assert b"No such file or directory" in done.stderr
