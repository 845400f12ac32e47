"""The group of commands, and how one invocation becomes an exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module

import click

import claude_wire
from claude_wire.cli.failure import Failure

__all__ = ["cli", "invoke"]


#: Each is a function of its name in a module of that name, in ``commands`` or in a folder of its own.
COMMANDS = [
    "agent",
    "attach",
    "check",
    "demo",
    "drift",
    "export",
    "host",
    "replay",
    "run",
    "search",
    "serve",
    "sessions",
    "stats",
    "tap",
    "usage",
    "view",
]

#: The modules of those that are not in ``commands``.
FOLDERS = {
    "attach": "claude_wire.cli.supervisor.remote",
    "host": "claude_wire.cli.supervisor.command",
    "serve": "claude_wire.cli.serving.command",
    "tap": "claude_wire.cli.tap.command",
}


class _Commands(click.Group):
    """Imports a command when it is asked for. To import all of them took half of the time of ``claude-wire check``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = FOLDERS.get(cmd_name) or f"claude_wire.cli.commands.{cmd_name}"
        command: click.Command = getattr(import_module(module), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], COMMANDS, n=1)
            if not near or "Did you mean" in error.message:  # later versions of click say so themselves
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    claude_wire.__version__,
    prog_name="claude-wire",
    message=f"%(prog)s %(version)s (protocol of CLI {claude_wire.PROTOCOL_VERSION})",
)
def cli() -> None:
    """Run the Claude Code CLI, and look at its NDJSON (stream-json)."""


def invoke() -> int:
    """Run what the arguments of the process say and return the exit code.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    try:
        # In click's own standalone mode Ctrl-C would be a message and exit code 1.
        code = cli.main(prog_name="claude-wire", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        return _ended(error)
    except OSError as error:
        if error.filename is not None:
            raise
        # What a command reads or runs it gives the blame itself.
        _discard_output()
        return _ended(Failure(f"the output cannot be written: {error.strerror}"))
    except click.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0


def _discard_output() -> None:
    """What is left of the output would fail once more at the end of the interpreter, with an exit code of its own."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _ended(error: click.ClickException) -> int:
    error.show()
    return error.exit_code
