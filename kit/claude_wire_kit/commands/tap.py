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
from claude_wire_kit.commands.shared.failure import Failure, missing_cli
from claude_wire_kit.commands.shared.options import PASSES_FLAGS, takes_cli
from claude_wire_kit.commands.shared.sources import display_name
from claude_wire_kit.tap import program


@click.command(context_settings=PASSES_FLAGS)
@click.argument("flags", metavar="[-- FLAGS...]", nargs=-1, type=click.UNPROCESSED)
@takes_cli
@click.option("--record", type=click.Path(file_okay=False), metavar="DIR", help="Record each session in DIR.")
@click.option("--redact", is_flag=True, help="Record no secrets, and no unknown types and fields.")
@click.option("--install", type=click.Path(dir_okay=False), metavar="PATH", help="Write a program that runs this tap.")
def tap(flags: tuple[str, ...], cli: str | None, record: str | None, redact: bool, install: str | None) -> None:
    """Run the CLI, pass its streams on, and record them.

    The CLI gets FLAGS. To use the tap with an SDK, write a program with --install, and tell the SDK its path.

    The tap passes all bytes on unchanged, in both directions. It also passes on signals, the end of the input, standard
    error and the exit code. It keeps up to 256 MiB of output that the host has not read, so the CLI need not wait.

    With --install, PATH becomes a program that runs the tap with these options. In claude-agent-sdk it is the cli_path,
    in the TypeScript SDK the pathToClaudeCodeExecutable. This command searches for the CLI; the program does not.

    With --record, DIR gets a folder for each run, with everything that both sides wrote, byte for byte and with times.
    "claude-wire run --help" lists the files. Only you can read them. A full disk ends the recording, not the session.
    With --redact, each line keeps its structure, but loses texts that look like secrets, texts in deltas, and all types
    and fields that this version does not know.
    """
    if os.name != "posix":
        raise Failure("the tap needs the pipes and signals of POSIX")
    if redact and not record:
        raise click.UsageError("--redact needs --record.")
    if install is not None and flags:
        raise click.UsageError("--install takes no FLAGS: give them to PATH when it runs.")
    try:
        found = cli or find_cli()
    except CLINotFoundError as error:
        raise missing_cli(error, "--cli") from error
    if is_tap(found):
        raise Failure(f"{display_name(found)} is a tap: pass the path of the CLI with --cli")
    how = "redacted" if redact else "plain"
    command = [sys.executable, "-I", program.__file__, found, os.path.abspath(record) if record else "", how]
    if install is None:
        os.execv(command[0], [*command, *flags])
    _install(command, install, found)


def _install(command: list[str], path: str, cli: str) -> None:
    if os.path.lexists(path) and not is_tap(path):
        raise Failure(f"{display_name(path)} already exists and is not a tap")
    script = f'exec {" ".join(map(shlex.quote, command))} "$@"\n'
    try:
        write_private(path, TAP_HEAD + os.fsencode(script), 0o700)
    except OSError as error:
        raise Failure(f"{display_name(path)} cannot be written: {error.strerror}") from error
    click.echo(f"{os.path.abspath(path)} runs {cli}")
