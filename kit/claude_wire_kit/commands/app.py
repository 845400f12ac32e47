"""The group of subcommands, and the exit code of an invocation."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module

import click

import claude_wire
from claude_wire_kit.commands.shared import signals
from claude_wire_kit.commands.shared.failure import Failure

#: The subcommands. Each is a function in the module of the same name.
COMMANDS = [
    "agent",
    "check",
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
    "usage",
    "view",
]


class _Commands(click.Group):
    """Imports a subcommand when it is needed. Importing all of them took half of the time of ``claude-wire check``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        # The subcommands of a supervisor have a folder.
        module = "supervisor.command" if cmd_name == "supervisor" else cmd_name
        command: click.Command = getattr(import_module(f"claude_wire_kit.commands.{module}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            name, command, rest = super().resolve_command(ctx, args)
            if name is not None:
                signals.set_for_command(name)
            return name, command, rest
        except click.UsageError as error:
            near = get_close_matches(args[0], COMMANDS, n=1)
            if not near or "Did you mean" in error.message:  # later versions of click suggest names themselves
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would exit with 1
            return signals.end_by_sigpipe()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    claude_wire.__version__,
    prog_name="claude-wire",
    message=f"%(prog)s %(version)s (protocol of CLI {claude_wire.PROTOCOL_VERSION})",
)
def cli() -> None:
    """Run the Claude Code CLI, and look at its NDJSON (stream-json)."""


def invoke() -> int:
    """Run the subcommand that the process's arguments name, and return the exit code.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    try:
        # In standalone mode click itself would handle Ctrl-C: with a message and exit code 1.
        code = cli.main(prog_name="claude-wire", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        return _ended(error)
    except BrokenPipeError:
        return signals.end_by_sigpipe()
    except OSError as error:
        if error.filename is not None:
            raise
        # The output failed. Subcommands report the errors of files and children themselves.
        signals.discard_output()
        return _ended(Failure(f"the output cannot be written: {error.strerror}"))
    except click.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0


def _ended(error: click.ClickException) -> int:
    error.show()
    return error.exit_code
