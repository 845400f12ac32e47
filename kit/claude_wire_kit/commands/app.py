"""Find and run a subcommand, and turn its exceptions into exit codes."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from claude_wire_kit.commands.shared import signals
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.groups import SuggestingGroup

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Subcommand -> the first line of its help. The subcommand is a function in the module of the same name. ``--help`` and
#: shell completion show these lines without importing the modules, which would take three times as long.
COMMANDS = {
    "agent": "Run an agent that a Python file defines.",
    "check": "Check recorded lines, and list what is unknown.",
    "conform": "Check a host against scenarios of an agent.",
    "demo": "Talk to an agent, then measure decoders on a recording.",
    "export": "Write sessions as Parquet or CSV files.",
    "replay": "Play a recording in place of the CLI.",
    "run": "Run the CLI with a prompt, and show the session live.",
    "search": "Search what was said in the sessions on disk.",
    "serve": "Serve the sessions of the supervisor over HTTP.",
    "sessions": "List the sessions on disk, the newest first.",
    "stats": "Add up turns, tokens, cost and tools of recordings.",
    "supervisor": "Run sessions that outlive their clients.",
    "tap": "Run the CLI, pass its streams on, and record them.",
    "usage": "Add up tokens and cost of the sessions on disk.",
    "view": "Show a recorded session, or a pipe.",
}


class _Commands(SuggestingGroup):
    """The group of subcommands. Imports the module of a subcommand only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        # The subcommand "supervisor" has its own subcommands, so it is a folder, not a module.
        module = "supervisor.command" if cmd_name == "supervisor" else cmd_name
        command: click.Command = getattr(import_module(f"claude_wire_kit.commands.{module}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            signals.set_for_command(name)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would exit with 1, but the shell expects SIGPIPE
            return signals.end_by_sigpipe()


def _print_version(ctx: click.Context, parameter: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        import claude_wire

        click.echo(f"claude-wire {claude_wire.__version__} (protocol of CLI {claude_wire.PROTOCOL_VERSION})")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Run the Claude Code CLI, and examine its NDJSON (stream-json)."""


def invoke() -> int:
    """Run the subcommand that the process's arguments name, and return the exit code.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    try:
        # In standalone mode click itself would handle Ctrl-C, with a message and exit code 1.
        code = cli.main(prog_name="claude-wire", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        return _ended(error)
    except BrokenPipeError:
        return signals.end_by_sigpipe()
    except OSError as error:
        if error.filename is not None:
            raise
        # Subcommands report errors of files and child processes themselves, so standard output caused this error.
        signals.discard_output()
        return _ended(Failure(f"the output cannot be written: {error.strerror}"))
    except click.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0


def _ended(error: click.ClickException) -> int:
    error.show()
    return error.exit_code
