"""The command ``claude-wire tap``: run the CLI, pass its streams on, and record them."""

from __future__ import annotations

import os
import shlex
import sys

import click

from claude_wire import find_cli
from claude_wire.errors import CLINotFoundError
from claude_wire.process.find_cli import TAP_HEAD, is_tap
from claude_wire.testing.recording import write_private
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.sources import display_name
from claude_wire_kit.tap import program


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("flags", metavar="[-- FLAGS...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--cli",
    type=click.Path(exists=True, dir_okay=False, executable=True, resolve_path=False),
    help="The CLI (default: searched for).",
)
@click.option("--record", type=click.Path(file_okay=False), metavar="DIR", help="Record each session there.")
@click.option("--redact", is_flag=True, help="Record no secrets, and nothing unknown.")
@click.option("--install", type=click.Path(dir_okay=False), metavar="PATH", help="Write a program that runs this tap.")
def tap(flags: tuple[str, ...], cli: str | None, record: str | None, redact: bool, install: str | None) -> None:
    """Run the CLI, pass its streams on, and record them.

    The CLI gets FLAGS. For an SDK that gives no flags of its own, --install the tap first.

    All bytes are passed on as they are, in both directions, and so are signals, the end of the input, the standard
    error and the exit code. What the host does not read is kept, up to 256 MiB, so that the CLI need not wait.

    With --install, PATH becomes a program that does this with these options, for any SDK: claude-agent-sdk takes it
    as cli_path, the TypeScript SDK as pathToClaudeCodeExecutable. The CLI is searched for once, now.

    With --record, each run gets a folder of its own in DIR, with what both sides wrote, byte for byte and with times,
    as "claude-wire run --record" has it. Only its owner can read it. A full disk ends the recording, not the session.
    With --redact each line keeps its structure and loses what looks like a secret, texts that come in pieces, and all
    that this version does not know.
    """
    if os.name != "posix":
        raise Failure("the tap needs pipes and signals as POSIX has them")
    if redact and not record:
        raise click.UsageError("--redact is about what --record writes.")
    if install is not None and flags:
        raise click.UsageError("FLAGS are given to PATH, when it runs.")
    try:
        found = os.path.abspath(cli) if cli is not None else find_cli()
    except CLINotFoundError as error:
        raise Failure(str(error).replace("ClaudeOptions(cli_path=...)", "--cli")) from error
    if is_tap(found):
        raise Failure(f"{display_name(found)} is a tap itself: say with --cli where the CLI is")
    how = "redacted" if redact else "plain"
    command = [sys.executable, "-I", program.__file__, found, os.path.abspath(record) if record else "", how]
    if install is None:
        os.execv(command[0], [*command, *flags])
    _install(command, install, found)


def _install(command: list[str], path: str, cli: str) -> None:
    if os.path.lexists(path) and not is_tap(path):
        raise Failure(f"{display_name(path)} is there already, and is no tap")
    script = f'exec {" ".join(map(shlex.quote, command))} "$@"\n'
    try:
        write_private(path, TAP_HEAD + os.fsencode(script), 0o700)
    except OSError as error:
        raise Failure(f"{display_name(path)} cannot be written: {error.strerror}") from error
    click.echo(f"{os.path.abspath(path)} runs {cli}")
