"""``claude-wire view`` shows files, folders and pipes, and adapts to a terminal."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import Result

from claude_wire.testing import Recording, Replay
from claude_wire_kit.commands.app import cli
from cli_lines import assistant, block_start, call, delta, line, returned, start
from recordings import load
from screens import PATIENCE, Screen, terminal_environment
from shown import RUNNER, decoded, in_order, viewed

COMMAND = [sys.executable, "-m", "claude_wire_kit", "view"]


def invoke(*arguments: str, stdin: bytes = b"") -> Result:
    return RUNNER.invoke(cli, ["view", *arguments], input=stdin)


# --- the command ------------------------------------------------------------------------------------------------------


def test_file_and_compressed_file_and_pipe_are_shown_alike(tmp_path: Path) -> None:
    data = load("15_subagent_partial").stdout
    expected = viewed(decoded(data))
    (tmp_path / "a").write_bytes(data)
    (tmp_path / "a.gz").write_bytes(gzip.compress(data))
    (tmp_path / "a.xz").write_bytes(lzma.compress(data))
    Replay(Recording.from_files({"stdout.ndjson": data})).script(tmp_path / "claude")
    for name in ("a", "a.gz", "a.xz", "claude"):
        done = invoke(str(tmp_path / name))
        assert (done.exit_code, done.stdout) == (0, expected)
    assert invoke("-", stdin=data).stdout == expected


def test_folder_has_what_the_host_wrote(tmp_path: Path) -> None:
    folder = Recording.from_files(load("05_perm_allow_deny").files).save(tmp_path / "r").path or ""
    shown = invoke(folder).stdout
    in_order(
        shown,
        "> SCRIPT [[",
        "* claude-opus-5-5 in ",
        "+ Bash touch",
        "? may Bash run?\n",
        "? allowed\n",
        "  = made\n",
        "? may Bash run?\n",
        "? denied: Not today, thanks\n",
        "  = Not today, thanks\n",
        "+ Write c.txt\n",
        "? allowed\n",
        "finished\n",
        "= ok, $0.000500",
    )
    assert shown.count("> SCRIPT") == 1


def test_folder_with_requests_of_the_host_and_prompts_that_are_repeated(tmp_path: Path) -> None:
    folder = Recording.from_files(load("12_multi_replay").files).save(tmp_path / "r").path or ""
    prompts = re.findall(r"^> (.*)$", invoke(folder).stdout, re.MULTILINE)
    # The prompts as the host sent them. The CLI repeated each one, and two reuse the uuid of an earlier prompt.
    assert prompts == ["first", "second", "second again", "third", "first"]
    folder = Recording.from_files(load("08_interrupt").files).save(tmp_path / "s").path or ""
    assert "< interrupt\n" in invoke(folder).stdout


@pytest.mark.parametrize("name", ["folder", "nowhere", "bad.gz", "bad.xz"])
def test_what_cannot_be_read_ends_with_2(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bad.gz").write_bytes(b"no gzip")
    (tmp_path / "bad.xz").write_bytes(b"no xz")
    done = invoke(str(tmp_path / name))
    assert done.exit_code == 2
    assert done.stdout == ""


@pytest.mark.parametrize("options", [[], ["--html"]])
def test_a_file_without_a_line_is_said_to_be_empty(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "nothing").write_bytes(b"")
    done = invoke(*options, str(tmp_path / "nothing"))
    assert (done.exit_code, bool(done.stdout)) == (0, bool(options))
    assert done.stderr == f"note: {tmp_path / 'nothing'} is empty\n"


@pytest.mark.parametrize("options", [[], ["--html"]])
def test_a_note_says_that_no_line_is_a_message(options: list[str]) -> None:
    done = invoke(*options, "-", stdin=b"<!doctype html>\n<p>\n")
    assert done.exit_code == 0
    assert done.stderr == "note: the input has no messages; is it a recording?\n"
    for message in ({"type": "keep_alive"}, {"type": "file-history-snapshot", "messageId": "1", "snapshot": {}}):
        assert invoke(*options, "-", stdin=b"<p>\n" + line(message)).stderr == ""


def test_damage_ends_with_2_after_what_came_before(tmp_path: Path) -> None:
    data = load("02_long_partial").stdout
    (tmp_path / "cut.gz").write_bytes(gzip.compress(data)[:-50])
    done = invoke(str(tmp_path / "cut.gz"))
    assert done.exit_code == 2
    assert len(done.stdout) > 1000
    assert "damaged" in done.stderr


# --- as a process -----------------------------------------------------------------------------------------------------


@contextmanager
def running(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([*COMMAND, *arguments], bufsize=0, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def on_screen(*arguments: str, columns: int = 80, env: dict[str, str] | None = None) -> tuple[bytes, int]:
    screen = Screen(columns)
    with running(
        *arguments, stdout=screen.terminal, stderr=screen.terminal, env=env or terminal_environment()
    ) as process:
        os.close(screen.terminal)
        while screen.read():
            pass
        code = process.wait(PATIENCE)
    screen.close()
    return screen.shown, code


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    path = tmp_path / "recorded.ndjson"
    path.write_bytes(load("15_subagent_partial").stdout)
    return str(path)


def test_line_is_shown_as_soon_as_it_comes() -> None:
    with running("-", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line(assistant("first")))
        assert process.stdout.readline() == b"first\n"
        for message in (start("n"), block_start(id="n"), delta("by ", id="n")):
            process.stdin.write(line(message))
        assert process.stdout.read(3) == b"by "
        process.stdin.write(line(delta("pieces", id="n")))
        assert process.stdout.read(6) == b"pieces"
        process.stdin.close()
        assert process.stdout.read() == b"\n"
        assert process.wait(PATIENCE) == 0


def test_pipe_gets_plain_text_even_where_color_is_forced(recorded: str) -> None:
    done = subprocess.run(
        [*COMMAND, recorded], capture_output=True, env=terminal_environment(), timeout=PATIENCE, check=False
    )
    assert b"\x1b" not in done.stdout
    assert b"\r" not in done.stdout
    data = Path(recorded).read_bytes()
    forced = terminal_environment(FORCE_COLOR="1")
    done = subprocess.run([*COMMAND, "-"], input=data, capture_output=True, env=forced, timeout=PATIENCE, check=False)
    assert re.sub(rb"\x1b\[[\d;]*m", b"", done.stdout).count(b"\x1b") == 0


def test_colors_on_a_terminal_and_none_with_no_color(recorded: str) -> None:
    shown, code = on_screen(recorded)
    assert code == 0
    assert b"\x1b[36m+ Agent" in shown
    plain, code = on_screen(recorded, env=terminal_environment(NO_COLOR="1"))
    assert code == 0
    assert not re.search(rb"\x1b\[(\d+;)*[349]\d", plain)
    dumb, code = on_screen(recorded, env=terminal_environment(TERM="dumb"))
    assert (b"\x1b" in dumb, code) == (False, 0)


def rows(*arguments: str, columns: int) -> list[str]:
    """Return the rows that a terminal receives, without colours."""
    return re.sub(r"\x1b\[[\d;]*m|\r", "", on_screen(*arguments, columns=columns)[0].decode()).split("\n")


def test_narrow_terminal_has_every_word_whole(recorded: str) -> None:
    """Only a row with a single word may be too long. Rows of a subagent begin with a bar."""
    every = [word for row in rows(recorded, columns=1000) for word in row.split() if word != "|"]
    for columns in (10, 40, 80):
        shown = rows(recorded, columns=columns)
        assert [word for row in shown for word in row.split() if word != "|"] == every
        assert all(len(row) <= columns or len(row.strip("| +=?!*>").split()) == 1 for row in shown)


def test_row_says_what_goes_on_and_goes_away() -> None:
    screen = Screen(60)
    with running("-", stdin=subprocess.PIPE, stdout=screen.terminal, env=terminal_environment()) as process:
        os.close(screen.terminal)
        assert process.stdin is not None
        screen.until(lambda shown: b"waiting for the first line" in shown)
        process.stdin.write(line(assistant(call("a", command="sleep 5"))))
        screen.until(lambda shown: b"running Bash" in shown)
        process.stdin.write(line(returned("a", "slept")))
        screen.until(lambda shown: b"= slept" in shown)
        screen.until(lambda shown: b"waiting for the model" in shown)
        for message in (start("n"), delta("Slept.", id="n")):
            process.stdin.write(line(message))
        process.stdin.close()
        while screen.read():
            pass
        assert process.wait(PATIENCE) == 0
    screen.close()
    assert screen.shown.count(b"\x1b[?25l") == screen.shown.count(b"\x1b[?25h") > 0
    for row in (b"waiting for the first line", b"running Bash", b"waiting for the model"):
        after = screen.shown.rpartition(row)[2]
        assert re.match(rb", \d+ s\x1b\[0m\r", after)
        # The command erases the status line before it writes anything else.
        assert re.match(rb"(?:\r|\n|\x1b\[\?25h|\x1b\[1A)+\x1b\[2K", after.partition(b"\x1b[0m")[2])
    assert b"\x1b[2m, " not in screen.shown  # no status row without a text


def test_no_row_where_nothing_can_be_erased() -> None:
    screen = Screen(60)
    environment = terminal_environment(TERM="dumb")
    with running("-", stdin=subprocess.PIPE, stdout=screen.terminal, env=environment) as process:
        os.close(screen.terminal)
        assert process.stdin is not None
        process.stdin.write(line(assistant("Hello")))
        screen.until(lambda shown: b"Hello" in shown)
        process.stdin.close()
        while screen.read():
            pass
    screen.close()
    assert screen.shown == b"Hello\r\n"


def test_closed_pipe_ends_it_without_a_word(recorded: str) -> None:
    with running("-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(line(assistant("first")))
        assert process.stdout.readline() == b"first\n"
        process.stdout.close()
        process.stdin.write(line(assistant("second", id="n")))
        assert process.wait(PATIENCE) == -signal.SIGPIPE
        assert process.stderr.read() == b""


def test_ctrl_c_ends_it_with_130_and_leaves_the_terminal_as_it_was() -> None:
    screen = Screen(80)
    with running(
        "-", stdin=subprocess.PIPE, stdout=screen.terminal, stderr=screen.terminal, env=terminal_environment()
    ) as process:
        os.close(screen.terminal)
        screen.until(lambda shown: b"waiting for the first line" in shown)
        process.send_signal(signal.SIGINT)
        while screen.read():
            pass
        assert process.wait(PATIENCE) == 130
    screen.close()
    assert screen.shown.count(b"\x1b[?25l") == screen.shown.count(b"\x1b[?25h") == 1
    assert b"Traceback" not in screen.shown


def test_a_folder_of_sessions_is_no_recording(tmp_path: Path) -> None:
    projects = tmp_path / "my sessions"
    (projects / "-home").mkdir(parents=True)
    (projects / "-home" / "s.jsonl").write_bytes(line(assistant("hello")))
    for folder in (projects, projects / "-home"):
        done = invoke(str(folder))
        assert (done.exit_code, done.stdout) == (2, "")
        advice = f"claude-wire sessions '{folder}'"
        assert done.stderr == f"Error: {folder} is a folder of sessions: list them with {advice}\n"
    done = invoke(str(tmp_path / "my sessions" / ".."))
    assert "stdout.ndjson" in done.stderr
