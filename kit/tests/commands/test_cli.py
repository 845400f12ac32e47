"""``claude-wire`` as a process: its start, its help and version, and its exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from claude_wire_kit import commands
from claude_wire_kit.commands.app import cli
from shown import RUNNER

pytest.importorskip("click")
pytest.importorskip("rich")

import click

import claude_wire
from claude_wire_kit.commands.app import COMMANDS

COMMAND = [sys.executable, "-m", "claude_wire_kit"]
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def run(*arguments: str, stdin: bytes = b"", command: Sequence[str] = COMMAND) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*command, *arguments], input=stdin, capture_output=True, timeout=60, check=False)


def test_version_names_the_package_and_the_protocol() -> None:
    done = run("--version")
    assert done.returncode == 0
    expected = f"claude-wire {claude_wire.__version__} (protocol of CLI {claude_wire.PROTOCOL_VERSION})"
    assert done.stdout.decode().strip() == expected


def test_installed_script_is_the_same_command() -> None:
    script = Path(sys.executable).with_name("claude-wire")
    if not script.exists():
        pytest.skip("the package is not installed, but imported from its directory")
    assert run("--version", command=[str(script)]).stdout == run("--version").stdout


def test_help_lists_the_commands() -> None:
    done = run("--help")
    assert done.returncode == 0
    listed = done.stdout.decode().partition("Commands:\n")[2]
    commands = [line.split()[0] for line in listed.splitlines()]
    assert commands == [
        *(
            "agent",
            "check",
            "conform",
            "demo",
            "export",
            "replay",
            "run",
            "search",
            "serve",
            "sessions",
            "stats",
            "supervisor",
            "tap",
        ),
        *("usage", "view"),
    ]
    bare = run()  # the stream of the help and the exit code depend on the version of click
    assert bare.stdout + bare.stderr == done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["--nonsense"],
        ["check"],
        ["check", "--nonsense", "-"],
        ["check", "-", "-"],
        ["demo", "extra"],
        ["replay"],
        ["replay", "--nonsense", "."],
        ["run"],
        ["run", "--nonsense", "--", "prompt"],
        ["search"],
        ["search", "(", "."],
        ["serve", "--demo", "--folder", "x"],
        ["sessions", "nowhere"],
        ["stats"],
        ["stats", "-", "-"],
        ["tap", "--install", "tap", "--", "--model"],
        ["usage", "nowhere"],
        ["view"],
        ["view", "-", "-"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2_and_says_so_on_stderr(arguments: list[str]) -> None:
    done = RUNNER.invoke(cli, arguments, prog_name="claude-wire")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Usage: claude-wire" in done.stderr


@pytest.mark.parametrize("command", ["check", "replay", "stats", "view"])
def test_damaged_file_is_no_wrong_usage(command: str, tmp_path: Path) -> None:
    file = tmp_path / "recording.xz"
    file.write_bytes(b"no xz")
    done = RUNNER.invoke(cli, [command, str(file)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {file} cannot be read: ")
    assert "is damaged: Input format not supported by decoder\n" in done.stderr


def test_python_m_runs_the_command() -> None:
    assert run("--version", command=[sys.executable, "-m", "claude_wire_kit"]).stdout == run("--version").stdout


# --- streams that are missing or full ---------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "arguments", [["--help"], ["check", "-"], ["demo"], ["stats", "--json", "-"], ["view", "-"]], ids=" ".join
)
def test_output_that_cannot_be_written_ends_it_with_2_and_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], input=b"x\n", stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"Error: the output cannot be written: No space left on device\n"


@POSIX
@pytest.mark.parametrize("arguments", [["check", "-"], ["run", "-"], ["stats", "-"], ["view", "-"]], ids=" ".join)
def test_closed_standard_input_ends_it_with_2_and_one_line(arguments: list[str]) -> None:
    done = run(*arguments, command=["/bin/sh", "-c", 'exec "$@" <&-', "sh", *COMMAND])
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"Error: standard input cannot be read: it was closed by the parent process\n"


# --- signals and closed pipes -----------------------------------------------------------------------------------------


def start(*arguments: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([*COMMAND, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)


@POSIX
def test_reader_that_goes_away_ends_it_by_sigpipe_without_a_word() -> None:
    with start("check", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"standard input:\n"
        process.stdout.close()
        process.stdin.write(b"x\n")  # an invalid line, so the command has something to print
        assert process.wait(60) == -signal.SIGPIPE
        assert process.stderr.read() == b""


@POSIX
def test_ctrl_c_ends_it_with_130_without_a_traceback() -> None:
    with start("check", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        # Once the command has reported the line, it waits for more.
        process.stdin.write(b"x\n")
        assert process.stdout.readline() == b"standard input:\n"
        assert process.stdout.readline().startswith(b"  line 1, byte 0: ")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read().strip() == b""


@POSIX
def test_ctrl_c_while_it_starts_ends_it_with_130_without_a_traceback() -> None:
    program = """if True:
        import signal, sys
        from claude_wire_kit.commands import main

        class CtrlC:
            def find_spec(self, *_: object) -> None:
                signal.raise_signal(signal.SIGINT)

        sys.meta_path.insert(0, CtrlC())
        main()
    """
    done = run("check", "-", command=[sys.executable, "-c", program])
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_output_that_the_terminal_cannot_encode_is_escaped(tmp_path: Path) -> None:
    file = tmp_path / "recording.ndjson"
    file.write_text('{"type":"tü→p"}\n', "utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([*COMMAND, "check", str(file)], env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert b'type "t\xfc\\u2192p"' in done.stdout


# --- ``claude-wire`` lists its subcommands in the help, completes them in a shell, and corrects mistyped names --------


#: The list of subcommands is 80 columns wide. It truncates a short help text with more characters than this.
MAX_SHORT_HELP = 60


def all_commands(of: click.Command = cli, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command and group with the words that call it."""
    yield " ".join(("claude-wire", *path)), of
    if isinstance(of, click.Group):
        context = click.Context(of)
        for name in of.list_commands(context):
            command = of.get_command(context, name)
            assert command is not None
            yield from all_commands(command, *path, name)


ALL = dict(all_commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    assert COMMANDS[name] == ALL[f"claude-wire {name}"].get_short_help_str(MAX_SHORT_HELP)


@pytest.mark.parametrize("name", [name for name in ALL if name != "claude-wire"])
def test_short_help_is_whole(name: str) -> None:
    text = ALL[name].get_short_help_str(1000)
    assert text.endswith(".")
    assert ALL[name].get_short_help_str(MAX_SHORT_HELP) == text


@pytest.mark.parametrize(
    "start",
    [
        {"arguments": ["--help"]},
        {"_CLAUDE_WIRE_COMPLETE": "bash_complete", "COMP_WORDS": "claude-wire s", "COMP_CWORD": "1"},
        {"_CLAUDE_WIRE_COMPLETE": "zsh_complete", "COMP_WORDS": "claude-wire ", "COMP_CWORD": "1"},
    ],
    ids=["help", "bash", "zsh"],
)
def test_the_list_of_commands_imports_none_of_them(start: dict[str, object]) -> None:
    arguments = start.get("arguments", [])
    environment = {name: str(value) for name, value in start.items() if name != "arguments"}
    program = (
        "import atexit, sys; from claude_wire_kit.commands import main; sys.argv[1:] = " + repr(arguments) + "\n"
        "atexit.register(lambda: print([name for name in sys.modules if name in ('claude_wire', 'rich', 'msgspec')]))\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    *output, imported = done.stdout.splitlines()
    assert any("sessions" in line for line in output)
    assert imported == "[]"


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["usgae"], "Did you mean 'usage'?"),
        (["viwe"], "Did you mean 'view'?"),
        (["frobnicate"], f"There are {', '.join(COMMANDS)}."),
        (["supervisor", "strat"], "Did you mean 'start'?"),
        (["supervisor", "frobnicate"], "There are attach, logs, ps, resume, rm, run, start, stdio, stop."),
    ],
)
def test_an_unknown_command_is_answered_with_a_known_one(arguments: list[str], advice: str) -> None:
    done = RUNNER.invoke(cli, arguments, prog_name="claude-wire")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith(f"No such command {arguments[-1]!r}. {advice}\n")


@pytest.mark.parametrize("name", ALL)
def test_help_is_80_columns_wide_and_options_are_not_below_a_schema(name: str) -> None:
    done = RUNNER.invoke(cli, [*name.split()[1:], "--help"], prog_name="claude-wire", terminal_width=80)
    assert [row for row in done.stdout.splitlines() if len(row) > 80] == []
    assert '": ' not in done.stdout  # part of a JSON example


# --- Without pyarrow ``claude-wire export`` says what to install. Importing its modules loads no table library --------


def test_export_asks_for_it_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "claude_wire_kit.commands.table_files", raising=False)
    monkeypatch.delattr(commands, "table_files", raising=False)
    (tmp_path / "in").mkdir()
    result = RUNNER.invoke(cli, ["export", str(tmp_path / "in"), "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert result.output == (
        "Error: this needs pyarrow: install the extra 'export' of claude-wire-kit, or: pip install \"pyarrow>=17\"\n"
    )
    assert not (tmp_path / "out").exists()


def test_nothing_is_imported_that_nobody_asked_for() -> None:
    code = (
        "import sys, claude_wire.columns, claude_wire_kit.commands.export;"
        "print(*{'pyarrow', 'pandas', 'polars', 'duckdb', 'dask', 'ray'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "\n"
