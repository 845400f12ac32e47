"""``claude-wire`` lists its subcommands in the help, completes them in a shell, and corrects mistyped names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

import click

from claude_wire_kit.commands.app import COMMANDS, cli
from shown import RUNNER

#: The list of subcommands is 80 columns wide. It truncates a short help text with more characters than this.
MAX_SHORT_HELP = 60


def commands(of: click.Command = cli, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command and group with the words that call it."""
    yield " ".join(("claude-wire", *path)), of
    if isinstance(of, click.Group):
        context = click.Context(of)
        for name in of.list_commands(context):
            command = of.get_command(context, name)
            assert command is not None
            yield from commands(command, *path, name)


ALL = dict(commands())


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
