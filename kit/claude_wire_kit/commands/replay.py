"""The command ``claude-wire replay``: play a recording in place of the CLI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast, get_args

import click

from claude_wire.testing import Fault, Recording, Replay, Writes, faults
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.sources import Unreadable, display_name

F = TypeVar("F", bound=Callable[..., Any])


def _fault(name: str, make: Callable[..., Fault], metavar: str, help: str) -> Callable[[F], F]:
    """Make an option that adds a fault each time it is given. ``metavar`` has one word for each parameter."""
    kinds = [float if word == "SECONDS" else int for word in metavar.split()]

    def collect(context: click.Context, parameter: click.Parameter, values: tuple[Any, ...]) -> None:
        try:
            _ordered(context).extend(make(*value) if len(kinds) > 1 else make(value) for value in values)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    kind = click.Tuple(kinds) if len(kinds) > 1 else kinds[0]
    return click.option(
        name, type=kind, metavar=metavar, multiple=True, expose_value=False, callback=collect, help=help
    )


def _ordered(context: click.Context) -> list[Fault]:
    """Return the list of faults that the options before this one have added."""
    return cast("list[Fault]", context.ensure_object(list))


def _stall_at(at_byte: int, seconds: float) -> faults.Stall:
    return faults.Stall(seconds, at_byte=at_byte)


def _stall_before(before_line: int, seconds: float) -> faults.Stall:
    return faults.Stall(seconds, before_line=before_line)


@click.command()
@click.argument("recording", type=click.Path(exists=True))
@click.argument("flags", metavar="[-- FLAGS...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    metavar="FACTOR",
    help="1 for the recorded times (default: as fast as possible).",
)
@click.option(
    "--writes", type=click.Choice(get_args(Writes)), default="lines", show_default=True, help="What one write contains."
)
@click.option("--no-wait", is_flag=True, help="Do not wait for input.")
@click.option("--script", type=click.Path(dir_okay=False), help="Write a program that plays it.")
@_fault("--cut-at", faults.CutOutput, "BYTE CODE", "Exit there, with this code.")
@_fault("--kill-at", faults.Kill, "BYTE", "Die there by SIGKILL.")
@_fault("--stall-at", _stall_at, "BYTE SECONDS", "Stand still there.")
@_fault("--stall-before", _stall_before, "LINE SECONDS", "Stand still there.")
@_fault("--garbage-before", faults.GarbageLine, "LINE", "Write a line that is not JSON there.")
@_fault("--flood-stderr", faults.FloodStderr, "BYTES", "First write this many bytes to standard error.")
@_fault("--ignore-term", faults.IgnoreTerm, "SECONDS", "Ignore SIGTERM and the end of input.")
@_fault("--hold-stdout", faults.HoldStdout, "SECONDS", "Leave a child that holds standard output open.")
@_fault("--close-stdout", faults.CloseStdout, "SECONDS", "At the end close standard output, and keep running.")
@_fault("--exit-at-once", faults.ExitAtOnce, "CODE", "Read and write nothing.")
@_fault("--write-first", faults.WriteFirst, "BYTES", "Write this many bytes before reading any input.")
@_fault("--silence", faults.Silence, "SECONDS", "Write nothing; without input, end after this time.")
@_fault("--give-up", faults.GiveUp, "SECONDS", "Exit if nobody reads for this time; the CLI does, after 2.")
@click.pass_context
def replay(
    context: click.Context,
    recording: str,
    flags: tuple[str, ...],
    speed: float | None,
    writes: Writes,
    no_wait: bool,
    script: str | None,
) -> None:
    """Play a recording in place of the CLI.

    RECORDING is a folder (stdout.ndjson, stdin.ndjson, order.jsonl, cmd.json, exit.json, stderr.txt; only the first
    must be there), or a file with the standard output alone, such as "claude -p PROMPT --output-format stream-json
    --verbose" writes it; .gz and .xz are unpacked. As fast as it is read, unless --speed says otherwise.

    It waits for the host where the recorded CLI did: each recorded prompt, request and response is one line of
    standard input, ids need not be the same, and when the input ends, the rest is played. A terminal is not waited
    for. FLAGS are those of the CLI; with --input-format stream-json among them it waits for a first prompt and ends
    when its input does, with others only it waits for nothing. The exit code is the recorded one.

    With --script, what is written can be given to any host as the path of its CLI.

    Bytes and lines are those of the recorded standard output; line 1 is the first.
    """
    # The terminal where a script is written says nothing about where the script will run.
    wait = not no_wait and (script is not None or not os.isatty(0))
    try:
        recorded = Recording.load(recording)
    except (OSError, ValueError) as error:
        raise Unreadable(recording, (isinstance(error, OSError) and error.strerror) or str(error)) from error
    try:
        play = Replay(recorded, speed=speed, writes=writes, faults=_ordered(context), wait=wait)
        if script is None:
            _become([*play.argv(), *flags])
        play.script(script)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise Failure(f"{display_name(script or recording)}: {error.strerror}") from error


def _become(argv: list[str]) -> NoReturn:
    """Replace this process by a command. On Windows, where that is impossible, run the command as a child."""
    if os.name != "posix":
        sys.exit(subprocess.call(argv))
    os.execv(argv[0], argv)
