"""The command ``claude-wire replay``: play a recording in place of the CLI."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast, get_args

import click

from claude_wire import InvalidLine, read
from claude_wire.testing import Fault, Recording, Replay, Writes, faults
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.sources import Unreadable, display_name, note_no_messages

F = TypeVar("F", bound=Callable[..., Any])


def _fault(name: str, make: Callable[..., Fault], metavar: str, help: str) -> Callable[[F], F]:
    """Return a decorator for an option that adds a fault. The user may repeat it.

    Args:
        make: creates the fault from the option's values.
        metavar: one word for each value: ``SECONDS`` is a float, any other word an integer.
    """
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
    """Return the faults in the order of the command line. The callback of each option appends to this list."""
    return cast("list[Fault]", context.ensure_object(list))


def _stall_at(at_byte: int, seconds: float) -> faults.Stall:
    return faults.Stall(seconds, at_byte=at_byte)


def _stall_before(before_line: int, seconds: float) -> faults.Stall:
    return faults.Stall(seconds, before_line=before_line)


class _NamesValues(click.Command):
    """A command whose errors name the missing values of an option: "requires 2 arguments: BYTE CODE"."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.BadOptionUsage as error:
            for option in self.params:
                if error.option_name in option.opts and option.nargs > 1:
                    message = f"{error.message.removesuffix('.')}: {option.metavar}."
                    raise click.BadOptionUsage(error.option_name, message, error.ctx) from None
            raise


@click.command(cls=_NamesValues)
@click.argument("recording", type=click.Path(exists=True))
@click.argument("flags", metavar="[-- FLAGS...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    metavar="FACTOR",
    help="1 keeps the recorded times (default: as fast as possible).",
)
@click.option(
    "--writes", type=click.Choice(get_args(Writes)), default="lines", show_default=True, help="What one write contains."
)
@click.option("--no-wait", is_flag=True, help="Do not wait for input.")
@click.option("--script", type=click.Path(dir_okay=False), help="Write a program that plays the recording.")
@_fault("--cut-at", faults.CutOutput, "BYTE CODE", "Exit at this byte, with this code.")
@_fault("--kill-at", faults.Kill, "BYTE", "Die at this byte of SIGKILL.")
@_fault("--stall-at", _stall_at, "BYTE SECONDS", "Pause at this byte.")
@_fault("--stall-before", _stall_before, "LINE SECONDS", "Pause before this line.")
@_fault("--garbage-before", faults.GarbageLine, "LINE", "Before this line, write one that is not JSON.")
@_fault("--flood-stderr", faults.FloodStderr, "BYTES", "First write this many bytes to standard error.")
@_fault("--ignore-term", faults.IgnoreTerm, "SECONDS", "Ignore SIGTERM and the end of input.")
@_fault("--hold-stdout", faults.HoldStdout, "SECONDS", "Leave a child that keeps standard output open.")
@_fault("--close-stdout", faults.CloseStdout, "SECONDS", "At the end close standard output, and keep running.")
@_fault("--exit-at-once", faults.ExitAtOnce, "CODE", "Read and write nothing.")
@_fault("--write-first", faults.WriteFirst, "BYTES", "Write this many bytes before reading any input.")
@_fault("--silence", faults.Silence, "SECONDS", "Write nothing; without input, end after this time.")
@_fault("--give-up", faults.GiveUp, "SECONDS", "Exit if the host does not read for this time; the CLI uses 2.")
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

    RECORDING is a folder with stdout.ndjson, and perhaps stdin.ndjson, order.jsonl, cmd.json, exit.json and stderr.txt.
    Or it is a file with standard output only, as "claude -p PROMPT --output-format stream-json --verbose" writes it.
    The file may be compressed (.gz, .xz). Without --speed, the player writes as fast as the host reads.

    The player waits for the host where the recorded CLI waited: for one line of input for each recorded prompt, request
    and response. The ids may differ. When the input ends, the player writes the rest. The player does not wait if its
    input is a terminal. FLAGS are flags of the CLI: with --input-format stream-json, the player waits for a first
    prompt, and exits when its input ends; with other flags only, it does not wait. The exit code is the recorded one.

    A program from --script can replace the CLI of any host: give the host its path.

    BYTE and LINE are counted in the recorded standard output; LINE 1 is the first.
    """
    # A script may later run without a terminal, even if it was written in one.
    wait = not no_wait and (script is not None or not os.isatty(0))
    try:
        recorded = Recording.load(recording)
    except (OSError, ValueError) as error:
        raise Unreadable(recording, (isinstance(error, OSError) and error.strerror) or str(error)) from error
    lines = read(io.BytesIO(recorded.stdout), dict)
    if recorded.stdout.strip() and all(isinstance(line, InvalidLine) for line in lines):
        note_no_messages()
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
    """Replace this process with a command. On Windows, which cannot do that, run the command as a child and exit."""
    if os.name != "posix":
        sys.exit(subprocess.call(argv))
    os.execv(argv[0], argv)
